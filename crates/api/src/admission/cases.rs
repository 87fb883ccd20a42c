//! What must an API server say to these objects?
//!
//! `cases as data × somebody's answers → differences`
//!
//! The same cases run through our validator and against a real API server. Whoever answers turns its
//! answer into an [`Answer`]; everything else is here, so that both are held to the same words.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::{Cause, CauseKind, NO_FIELD, Validator};

/// The cause that the server adds where it did not ask the rules. It says nothing of its own.
pub const RULES_LEFT_OUT: &str = "some validation rules were not checked";

/// One write and what must come of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    /// What is there before, where the write changes something.
    pub old: Option<Value>,
    /// What is sent.
    pub object: Value,
    /// It goes to `/status`.
    pub status: bool,
    pub expected: Expected,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// And what the stored object must contain; null means that it must not.
    Accepted {
        reads: Option<Value>,
    },
    Refused {
        causes: Vec<ExpectedCause>,
        more: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCause {
    pub field: String,
    /// A part of the message.
    pub message: String,
}

/// What was answered: the object as stored, or fields with messages.
pub type Answer = Result<Value, Vec<(String, String)>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    base: Option<Value>,
    case: Option<String>,
    object: Option<Value>,
    patch: Option<Value>,
    old: Option<Value>,
    #[serde(default)]
    status: bool,
    accepted: Option<bool>,
    refused: Option<Vec<ExpectedCause>>,
    #[serde(default)]
    more: bool,
    reads: Option<Value>,
}

/// The object that a file's patches are applied to, and its cases.
pub fn read(text: &str) -> Result<(Option<Value>, Vec<Case>), String> {
    let documents: Vec<Document> =
        serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    let mut base = None;
    let mut cases: Vec<Case> = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        if let Some(object) = document.base {
            if index > 0 {
                return Err("`base` must be the first document".to_owned());
            }
            base = Some(object);
            continue;
        }
        let name = document.case.ok_or_else(|| format!("document {} has no `case`", index + 1))?;
        if cases.iter().any(|it| it.name == name) {
            return Err(format!("case `{name}` is there twice"));
        }
        let patched = |patch: &Value| {
            let mut object =
                base.clone().ok_or_else(|| format!("case `{name}`: no `base` to patch"))?;
            merge(&mut object, patch);
            Ok::<_, String>(object)
        };
        let object = match (document.object, &document.patch) {
            (Some(object), None) => object,
            (None, Some(patch)) => patched(patch)?,
            _ => return Err(format!("case `{name}`: write either `object` or `patch`")),
        };
        let expected = match (document.accepted, document.refused) {
            (Some(true), None) => Expected::Accepted { reads: document.reads },
            (None, Some(told)) if !told.is_empty() => {
                Expected::Refused { causes: told, more: document.more }
            }
            _ => return Err(format!("case `{name}`: write either `accepted: true` or `refused`")),
        };
        let old = document.old.as_ref().map(patched).transpose()?;
        cases.push(Case { name, old, object, status: document.status, expected });
    }
    Ok((base, cases))
}

/// JSON merge patch: null removes, lists replace.
pub fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = object else { return };
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Our validator's answer.
pub fn ask(validator: &Validator, case: &Case) -> Answer {
    let outcome = match &case.old {
        None if case.status => {
            // A status belongs to something that is there.
            let created = match validator.create(&case.object).verdict {
                Ok(created) => created,
                Err(causes) => return Err(plain(&causes)),
            };
            validator.update_status(&created, &case.object)
        }
        None => validator.create(&case.object),
        Some(old) => {
            let created = match validator.create(old).verdict {
                Ok(created) => created,
                Err(causes) => {
                    let mut causes = plain(&causes);
                    causes.insert(0, ("old".to_owned(), "is refused itself".to_owned()));
                    return Err(causes);
                }
            };
            // What is there may have a status, which is written apart.
            let created = match old.get("status") {
                Some(_) => match validator.update_status(&created, old).verdict {
                    Ok(created) => created,
                    Err(causes) => return Err(plain(&causes)),
                },
                None => created,
            };
            if case.status {
                validator.update_status(&created, &case.object)
            } else {
                validator.update(&created, &case.object)
            }
        }
    };
    outcome.verdict.map_err(|causes| plain(&causes))
}

fn plain(causes: &[Cause]) -> Vec<(String, String)> {
    // The server names no field of what it cannot read at all.
    let field = |it: &Cause| {
        if it.kind == CauseKind::Malformed { String::new() } else { it.field.clone() }
    };
    causes.iter().map(|it| (field(it), it.message.clone())).collect()
}

/// What is wrong with an answer; nothing, if it is as expected.
pub fn judge(case: &Case, answer: &Answer) -> Result<(), String> {
    match (&case.expected, answer) {
        (Expected::Accepted { reads }, Ok(stored)) => match reads {
            Some(reads) => contains(stored, reads, "").map_or(Ok(()), Err),
            None => Ok(()),
        },
        (Expected::Accepted { .. }, Err(causes)) => Err(format!("was refused:{}", listed(causes))),
        (Expected::Refused { .. }, Ok(_)) => Err("was accepted".to_owned()),
        (Expected::Refused { causes: expected, more }, Err(causes)) => {
            let mut left: Vec<&(String, String)> = causes.iter().collect();
            let mut missing = String::new();
            for it in expected {
                let met = left.iter().position(|(field, message)| {
                    *field == it.field && message.contains(&it.message)
                });
                match met {
                    Some(at) => drop(left.remove(at)),
                    None => drop(write!(missing, "\n    missing  {}: …{}…", it.field, it.message)),
                }
            }
            left.retain(|(field, message)| {
                let met =
                    expected.iter().any(|it| it.field == *field && message.contains(&it.message));
                !(met || field == NO_FIELD && message.contains(RULES_LEFT_OUT))
            });
            if missing.is_empty() && (*more || left.is_empty()) {
                return Ok(());
            }
            Err(format!("was refused otherwise:{missing}{}", listed(causes)))
        }
    }
}

/// Whether two answerers agree: on the verdict, and on every field and message.
pub fn agree(ours: &Answer, theirs: &Answer) -> Result<(), String> {
    match (ours, theirs) {
        (Ok(_), Ok(_)) => Ok(()),
        (Ok(_), Err(causes)) => Err(format!("only they refuse it:{}", listed(causes))),
        (Err(causes), Ok(_)) => Err(format!("only we refuse it:{}", listed(causes))),
        (Err(ours), Err(theirs)) => {
            // Go walks maps in no order, and checks metadata as often as it passes by.
            let sorted = |it: &[(String, String)]| {
                let mut it = it.to_vec();
                it.sort();
                it.dedup();
                it
            };
            if sorted(ours) == sorted(theirs) {
                return Ok(());
            }
            Err(format!("we say:{}\n  they say:{}", listed(ours), listed(theirs)))
        }
    }
}

fn listed(causes: &[(String, String)]) -> String {
    let mut text = String::new();
    for (field, message) in causes {
        let _ = write!(text, "\n    {field}: {message}");
    }
    text
}

/// The first difference, if `whole` does not contain `part`; `path` is where they stand. A null in `part` means
/// that nothing may be there.
pub fn contains(whole: &Value, part: &Value, path: &str) -> Option<String> {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().find_map(|(key, part)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match (whole.get(key), part) {
                (None, Value::Null) => None,
                (Some(found), Value::Null) => Some(format!("{path} is there: {found}")),
                (None, part) => Some(format!("{path} is not there, expected {part}")),
                (Some(whole), part) => contains(whole, part, &path),
            }
        }),
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            let mut pairs = whole.iter().zip(part).enumerate();
            pairs.find_map(|(at, (whole, part))| contains(whole, part, &format!("{path}[{at}]")))
        }
        (whole, part) if whole == part => None,
        (whole, part) => Some(format!("{path} is {whole}, expected {part}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_removes_and_replaces() {
        let mut object = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        merge(&mut object, &json!({"a": {"b": null, "c": [3], "e": {"f": null}}, "d": 2}));
        assert_eq!(object, json!({"a": {"c": [3], "e": {}}, "d": 2}));
    }

    #[test]
    fn an_answer_is_held_to_every_cause() {
        let case = |more| Case {
            name: "x".to_owned(),
            old: None,
            object: json!({}),
            status: false,
            expected: Expected::Refused {
                causes: vec![ExpectedCause {
                    field: "spec.a".to_owned(),
                    message: "no".to_owned(),
                }],
                more,
            },
        };
        let told = |causes: &[(&str, &str)]| {
            Err(causes.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
        };
        assert_eq!(judge(&case(false), &told(&[("spec.a", "it says no")])), Ok(()));
        assert!(judge(&case(false), &told(&[("spec.b", "no")])).is_err());
        assert!(judge(&case(false), &told(&[("spec.a", "no"), ("spec.b", "no")])).is_err());
        assert_eq!(judge(&case(true), &told(&[("spec.a", "no"), ("spec.b", "no")])), Ok(()));
        let left_out = (NO_FIELD, "Invalid value: null: some validation rules were not checked");
        assert_eq!(judge(&case(false), &told(&[("spec.a", "no"), left_out])), Ok(()));
        assert!(judge(&case(false), &Ok(json!({}))).is_err());
    }

    #[test]
    fn a_case_says_what_it_expects() {
        for text in [
            "case: a\nobject: {}\n",
            "case: a\naccepted: true\n",
            "case: a\nobject: {}\naccepted: false\n",
            "case: a\nobject: {}\nrefused: []\n",
            "case: a\npatch: {}\naccepted: true\n",
            "object: {}\naccepted: true\n",
            "case: a\nobject: {}\naccepted: true\n---\ncase: a\nobject: {}\naccepted: true\n",
            "case: a\nobject: {}\naccepted: true\nsurprise: 1\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(read("base: {}\n---\ncase: a\npatch: {}\naccepted: true\n").unwrap().1.len(), 1);
    }
}
