//! How are findings shown?
//!
//! A finding is a line that an editor can jump to, as compilers have it; or JSON for programs, whose form
//! docs/validating.md fixes.

use std::fmt::Write as _;

use nodemolt_api::admission::CauseKind;
use nodemolt_api::problem::Severity;
use serde::Serialize;

use super::{By, Looked, Report, Said, worst};
use crate::output::printable;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut all: Vec<(&Said, Option<&Looked>)> = elsewhere(report).map(|it| (it, None)).collect();
    for object in &report.objects {
        all.extend(object.said.iter().map(|it| (it, Some(object))));
    }
    // A file's findings together, in its order; files in the order they were given in.
    let mut order: Vec<&str> = report.objects.iter().map(|it| it.file.as_str()).collect();
    order.extend(elsewhere(report).map(|it| it.problem.file.as_str()));
    all.sort_by_key(|(it, _)| {
        let file = order.iter().position(|file| *file == it.problem.file);
        (file, it.problem.line, it.problem.column)
    });
    for (said, object) in all {
        let problem = &said.problem;
        let who = match said.by {
            By::ApiServer => "API server",
            By::AdmissionPolicy => "admission policy",
            By::Controller => "controller",
        };
        let _ = write!(
            text,
            "{}:{}:{}: {}: ",
            problem.file,
            problem.line,
            problem.column,
            word(problem.severity)
        );
        if let Some(object) = object {
            let _ = write!(text, "{}/{}: ", object.kind, printable(&object.name));
        }
        if !problem.field.is_empty() {
            let _ = write!(text, "{}: ", printable(&problem.field));
        }
        let _ = writeln!(text, "{} [{who}]", printable(&problem.message));
        if let Some(hint) = &problem.hint {
            let _ = writeln!(text, "  hint: {}", printable(hint));
        }
    }
    let Summary { objects, refused, warned, passed_over, left_out, unreadable } = summary(report);
    let noun = if objects == 1 { "object" } else { "objects" };
    let _ = writeln!(
        text,
        "{objects} {noun}: {} sound, {warned} with warnings, {refused} refused; {passed_over} passed over{}{}",
        objects - refused - warned,
        match left_out {
            0 => String::new(),
            several => format!(", {several} left out"),
        },
        match unreadable {
            0 => String::new(),
            1 => ", 1 error elsewhere".to_owned(),
            several => format!(", {several} errors elsewhere"),
        }
    );
    text
}

/// What belongs to no object.
fn elsewhere(report: &Report) -> impl Iterator<Item = &Said> {
    report.folders.iter().chain(&report.loose)
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<'r> {
    objects: Vec<ObjectLine<'r>>,
    findings: Vec<FindingLine<'r>>,
    summary: Summary,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectLine<'r> {
    file: &'r str,
    line: usize,
    api_version: &'r str,
    kind: &'r str,
    name: &'r str,
    verdict: &'static str,
    findings: Vec<FindingLine<'r>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingLine<'r> {
    severity: &'static str,
    by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<CauseKind>,
    file: &'r str,
    line: usize,
    column: usize,
    field: &'r str,
    message: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'r str>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    objects: usize,
    refused: usize,
    warned: usize,
    passed_over: usize,
    left_out: usize,
    unreadable: usize,
}

pub(super) fn json(report: &Report) -> Page<'_> {
    let objects = report
        .objects
        .iter()
        .map(|it| ObjectLine {
            file: &it.file,
            line: it.line,
            api_version: &it.api_version,
            kind: &it.kind,
            name: &it.name,
            verdict: verdict(it),
            findings: it.said.iter().map(line).collect(),
        })
        .collect();
    let findings = elsewhere(report).map(line).collect();
    Page { objects, findings, summary: summary(report) }
}

fn verdict(object: &Looked) -> &'static str {
    match worst(&object.said) {
        Some(Severity::Error) => "refused",
        Some(Severity::Warning) => "warned",
        Some(Severity::Note) | None => "sound",
    }
}

fn line(said: &Said) -> FindingLine<'_> {
    let problem = &said.problem;
    FindingLine {
        severity: word(problem.severity),
        by: said.by,
        reason: said.reason,
        file: &problem.file,
        line: problem.line,
        column: problem.column,
        field: &problem.field,
        message: &problem.message,
        hint: problem.hint.as_deref(),
    }
}

fn summary(report: &Report) -> Summary {
    fn of(said: &[Said], severity: Severity) -> usize {
        said.iter().filter(|it| it.problem.severity == severity).count()
    }
    let count = |wanted| report.objects.iter().filter(|it| verdict(it) == wanted).count();
    Summary {
        objects: report.objects.len(),
        refused: count("refused"),
        warned: count("warned"),
        passed_over: of(&report.loose, Severity::Note),
        left_out: report.left_out,
        unreadable: of(&report.loose, Severity::Error) + of(&report.folders, Severity::Error),
    }
}
