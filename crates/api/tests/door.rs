//! Bad files are refused well, and good ones are read as they were meant.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{fmt::Write as _, time::Instant};

use nodemolt_api::{
    ec2nodeclass::EC2NodeClass,
    file::{Located, Object, Source, read},
    imagepolicy::{AgeFrom, DeprecatedImages, ImagePolicy, PinnedIds},
    nodepool::NodePool,
    problem::{Problem, Severity},
};
use proptest::prelude::*;

fn source(text: &str) -> Source {
    Source { name: "f.yaml".to_owned(), text: text.to_owned() }
}

/// The text without the indentation of its first line.
fn dedent(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let width = text.len() - text.trim_start_matches(' ').len();
    text.lines().fold(String::new(), |all, line| all + line.get(width..).unwrap_or("") + "\n")
}

fn shown(problems: &[Problem]) -> String {
    let mut all = String::new();
    for it in problems {
        let severity = match it.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
            Severity::Note => "note: ",
        };
        writeln!(all, "{severity}{it}").unwrap();
        if let Some(hint) = &it.hint {
            writeln!(all, "  {hint}").unwrap();
        }
    }
    all
}

#[track_caller]
fn check(text: &str, expected: &str) -> Vec<Located<Object>> {
    let (objects, problems) = read(&source(&dedent(text)));
    assert_eq!(shown(&problems), dedent(expected));
    objects
}

#[track_caller]
fn class(text: &str) -> EC2NodeClass {
    let (objects, problems) = read(&source(text));
    assert_eq!(shown(&problems), "");
    match objects.into_iter().map(|it| it.value).next() {
        Some(Object::Class(class)) => class,
        other => panic!("expected a class, found {other:?}"),
    }
}
