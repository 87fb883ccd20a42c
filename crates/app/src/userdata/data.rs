//! What do programs get?

use nodemolt_core::bootstrap::{Place, Remark, UserData};
use serde::Serialize;

use super::Prepared;

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
struct Remarked {
    /// `userData`, or a field of the class, the pool or the cluster.
    field: String,
    /// In the user's part, from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
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
        remarks: user_data.remarks.iter().map(remarked).collect(),
    }
}

fn remarked(remark: &Remark) -> Remarked {
    let (field, line, column) = match &remark.place {
        Place::UserPart { line, column } => {
            ("spec.userData".to_owned(), Some(*line), Some(*column))
        }
        Place::Field(field) => (field.clone(), None, None),
        Place::Whole => ("spec.userData".to_owned(), None, None),
    };
    Remarked { field, line, column, message: remark.message.clone(), hint: remark.hint.clone() }
}
