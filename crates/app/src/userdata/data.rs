//! What do programs get?

use nodemolt_core::bootstrap::{Place, Remark, UserData};
use serde::Serialize;

use super::Prepared;
use super::place::{At, Told, bare};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    api_version: &'static str,
    kind: &'static str,
    class: String,
    family: &'static str,
    digest: String,
    bytes: usize,
    text: String,
    provenance: Vec<Said>,
    remarks: Vec<Remarked>,
}

#[derive(Debug, Serialize)]
struct Said {
    what: String,
    source: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Linted {
    api_version: &'static str,
    kind: &'static str,
    class: String,
    family: &'static str,
    /// In the order of their places. Empty where all is well.
    findings: Vec<Finding>,
}

/// Of several classes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LintedList {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Linted>,
}

pub(crate) fn list(items: Vec<Linted>) -> LintedList {
    LintedList { api_version: "nodemolt.dev/cli/v1", kind: "UserDataFindingsList", items }
}

#[derive(Debug, Serialize)]
struct Finding {
    /// `error` keeps it from being rendered; `warning` does not.
    severity: &'static str,
    #[serde(flatten)]
    remark: Remarked,
}

#[derive(Debug, Serialize)]
struct Remarked {
    /// `spec.userData`, a field of the class, the pool or the cluster, or a flag.
    field: String,
    /// In the user's part, from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// In the file, where it stands in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(crate) fn document(prepared: &Prepared, user_data: &UserData) -> Document {
    Document {
        api_version: "nodemolt.dev/cli/v1",
        kind: "UserData",
        class: prepared.class.name.clone(),
        family: prepared.family.name(),
        digest: user_data.digest(),
        bytes: user_data.text.len(),
        text: user_data.text.clone(),
        provenance: user_data
            .provenance
            .iter()
            .map(|it| Said { what: it.what.clone(), source: super::source(it.source) })
            .collect(),
        remarks: user_data.remarks.iter().map(|it| remarked(prepared, it)).collect(),
    }
}

pub(crate) fn findings(prepared: &Prepared, found: &[(&'static str, Remark)]) -> Linted {
    let finding = |(severity, remark): &(&'static str, Remark)| Finding {
        severity,
        remark: remarked(prepared, remark),
    };
    Linted {
        api_version: "nodemolt.dev/cli/v1",
        kind: "UserDataFindings",
        class: prepared.class.name.clone(),
        family: prepared.family.name(),
        findings: found.iter().map(finding).collect(),
    }
}

fn remarked(prepared: &Prepared, remark: &Remark) -> Remarked {
    let Told { at, what } = prepared.written.told(&remark.place, &prepared.class.user_part);
    let (field, line, column) = match &remark.place {
        Place::UserPart { line, column } => (bare(&remark.place), Some(*line), Some(*column)),
        Place::Whole => (bare(&remark.place), None, None),
        Place::Field(_) | Place::Label(_) | Place::Taint(_) => (what, None, None),
    };
    let (message, hint) = (remark.message.clone(), remark.hint.clone());
    Remarked { field, line, column, at, message, hint }
}
