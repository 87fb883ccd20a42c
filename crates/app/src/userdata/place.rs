//! Where in the files does this stand?
//!
//! `place of a remark × the files → file:line:column`
//!
//! A user's part that is written as a block (`userData: |`) stands in the class's file line by line, so
//! that a place in it is a place in the file. Written otherwise, only its beginning is. Labels and taints
//! stand in the pool's file, the cluster in its own; what was typed is called by its flag.

use std::fmt;

use nodemolt_api::answers::cluster;
use nodemolt_api::file::{Located, Object};
use nodemolt_core::bootstrap::OfPool;
use nodemolt_core::bootstrap::Place;
use serde::Serialize;

/// What was read, with the texts it was read from.
#[derive(Debug)]
pub(crate) struct Written {
    pub class: Located<Object>,
    /// The whole text of the class's file.
    pub text: String,
    /// The label that has the class's name.
    pub class_label: String,
    pub pool: Option<(OfPool, Located<Object>)>,
    pub cluster: ClusterSource,
}

/// Where the cluster's words come from.
#[derive(Debug, Default)]
pub(crate) struct ClusterSource {
    /// The file of `--cluster`, and its text.
    pub file: Option<(String, String)>,
    /// What was typed: the field, and the flag.
    pub typed: Vec<(&'static str, &'static str)>,
}

/// A place as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub at: Option<At>,
    /// `userData:3:5`, the name of a field, or a flag.
    pub what: String,
}

/// A place in a file. Line and column count from one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct At {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

/// `class.yaml:14:5: userData:3:5`, or only what it is where that stands in no file.
impl fmt::Display for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(At { file, line, column }) = &self.at {
            write!(out, "{file}:{line}:{column}: ")?;
        }
        out.write_str(&self.what)
    }
}

const FIELD: &str = "spec.userData";

impl Written {
    pub(crate) fn told(&self, place: &Place, user: &str) -> Told {
        match place {
            Place::UserPart { line, column } => {
                let what = format!("userData:{line}:{column}");
                match self.in_file(*line, *column, user) {
                    Some((line, column)) => {
                        Told { at: Some(at(&self.class.file, line, column)), what }
                    }
                    None => of_field(&self.class, FIELD, what),
                }
            }
            Place::Whole => of_field(&self.class, FIELD, "userData".to_owned()),
            Place::Field(field) if field.starts_with("spec.") => {
                of_field(&self.class, field, field.clone())
            }
            Place::Field(field) => self.of_cluster(field),
            Place::Label(key) if *key == self.class_label => {
                of_field(&self.class, "metadata.name", "metadata.name".to_owned())
            }
            Place::Label(key) => self.of_pool(|it| it.label_fields.get(key), place),
            Place::Taint(index) => self.of_pool(|it| it.taint_fields.get(*index), place),
        }
    }

    fn of_pool(&self, field: impl Fn(&OfPool) -> Option<&String>, place: &Place) -> Told {
        let named = self.pool.as_ref().and_then(|(pool, file)| Some((field(pool)?, file)));
        match named {
            Some((field, file)) => of_field(file, field, field.clone()),
            None => Told { at: None, what: bare(place) },
        }
    }

    fn of_cluster(&self, field: &str) -> Told {
        let flag = self.cluster.typed.iter().find(|(it, _)| *it == field);
        if let Some((_, flag)) = flag {
            return Told { at: None, what: (*flag).to_owned() };
        }
        let found = self.cluster.file.as_ref().and_then(|(name, text)| {
            let (what, line, column) = cluster::locate(text, field)?;
            Some(Told { at: Some(at(name, line, column)), what: what.to_owned() })
        });
        found.unwrap_or_else(|| Told { at: None, what: field.to_owned() })
    }

    /// Only where the line of the file is the line of the part, but for what it is indented by.
    fn in_file(&self, line: usize, column: usize, user: &str) -> Option<(usize, usize)> {
        let key = self.class.locate(FIELD).line;
        let head = self.text.lines().nth(key.checked_sub(1)?)?;
        let (_, style) = head.split_once(':')?;
        if !style.trim_start().starts_with('|') {
            return None;
        }
        let at = key.checked_add(line)?;
        let found = self.text.lines().nth(at - 1)?;
        // One line behind the last is where a part that stops short is told.
        let theirs = user.lines().nth(line.checked_sub(1)?).unwrap_or_default();
        let indent = found.strip_suffix(theirs)?;
        indent.chars().all(|it| it == ' ').then(|| (at, indent.len() + column))
    }
}

fn at(file: &str, line: usize, column: usize) -> At {
    At { file: file.to_owned(), line, column }
}

fn of_field(object: &Located<Object>, field: &str, what: String) -> Told {
    let place = object.locate(field);
    Told { at: Some(at(&object.file, place.line, place.column)), what }
}

/// What a place is called without a file.
pub(crate) fn bare(place: &Place) -> String {
    match place {
        Place::UserPart { .. } | Place::Whole => FIELD.to_owned(),
        Place::Field(field) => field.clone(),
        Place::Label(key) => format!("labels[{}]", key.escape_debug()),
        Place::Taint(index) => format!("taints[{index}]"),
    }
}
