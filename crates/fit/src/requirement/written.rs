//! Is this what a person may write about a label?
//!
//! `key operator values → fine, or what to write instead`

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Kubernetes' own limits for the parts of a label, in bytes.
const NAME_MAX: usize = 63;
const PREFIX_MAX: usize = 253;

/// Karpenter's limit for a key in a requirement.
const KEY_MAX: usize = 316;

/// Karpenter's limit for `minValues`.
const MIN_VALUES_MAX: u32 = 50;

/// A requirement as a person wrote it, or would.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub key: String,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

impl Written {
    /// Whether it means something, by the rules that Kubernetes and Karpenter have for it. Negative
    /// bounds are fine here; who forbids them does so at its own door.
    pub fn check(&self) -> Result<(), WrittenError> {
        self.check_key()?;
        self.check_values()?;
        self.check_min_values()
    }

    fn check_key(&self) -> Result<(), WrittenError> {
        let prefixed = self.key.split_once('/');
        let name = prefixed.map_or(self.key.as_str(), |(_, name)| name);
        let well_formed = self.key.len() <= KEY_MAX
            && !name.is_empty()
            && name_like(name)
            && prefixed.is_none_or(|(prefix, _)| domain_like(prefix));
        if well_formed { Ok(()) } else { Err(WrittenError::Key { key: self.key.clone() }) }
    }

    fn check_values(&self) -> Result<(), WrittenError> {
        let (key, operator) = (self.key.clone(), self.operator);
        match operator {
            Operator::Exists | Operator::DoesNotExist => match self.values.first() {
                None => Ok(()),
                Some(value) => {
                    Err(WrittenError::NoValueWanted { key, operator, value: value.clone() })
                }
            },
            Operator::In if self.values.is_empty() => Err(WrittenError::ValueWanted { key }),
            Operator::In | Operator::NotIn => match self.values.iter().find(|it| !name_like(it)) {
                None => Ok(()),
                Some(value) => Err(WrittenError::Value { key, operator, value: value.clone() }),
            },
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
                match self.values.as_slice() {
                    [value] if value.parse::<i64>().is_ok() => Ok(()),
                    [value] => Err(WrittenError::Bound { key, operator, value: value.clone() }),
                    [] => Err(WrittenError::NoBound { key, operator }),
                    [_, _, ..] => Err(WrittenError::ManyBounds {
                        key,
                        operator,
                        values: self.values.join("`, `"),
                    }),
                }
            }
        }
    }

    fn check_min_values(&self) -> Result<(), WrittenError> {
        let Some(min_values) = self.min_values else { return Ok(()) };
        let key = self.key.clone();
        if !(1..=MIN_VALUES_MAX).contains(&min_values) {
            return Err(WrittenError::MinValues { key, min_values });
        }
        let have = self.values.len();
        let enough = usize::try_from(min_values).is_ok_and(|need| have >= need);
        if self.operator == Operator::In && !enough {
            return Err(WrittenError::FewValues { key, min_values, have });
        }
        Ok(())
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator)?;
        match (self.operator, self.values.as_slice()) {
            (Operator::In | Operator::NotIn, values) => write!(f, " [{}]", values.join(", "))?,
            (_, []) => {}
            (_, values) => write!(f, " {}", values.join(", "))?,
        }
        match self.min_values {
            Some(min_values) => write!(f, ", {min_values} values at least"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a requirement, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    #[error(
        "`{key}` is not the name of a label: write letters, digits, `-`, `_` and `.`, at most \
         63, perhaps after a domain and `/`, such as `example.com/team`"
    )]
    Key { key: String },
    #[error(
        "`{value}` cannot be a value of `{key}` ({operator}): write letters, digits, `-`, `_` and \
         `.`, at most 63, with a letter or digit at both ends"
    )]
    Value { key: String, operator: Operator, value: String },
    #[error("`{key}` {operator} takes no value: leave out `{value}`, or write In")]
    NoValueWanted { key: String, operator: Operator, value: String },
    #[error("`{key}` In needs a value: name at least one, or write Exists")]
    ValueWanted { key: String },
    #[error("`{key}` {operator} `{value}` is no bound: write a whole number, such as `4`")]
    Bound { key: String, operator: Operator, value: String },
    #[error("`{key}` {operator} needs a bound: write one whole number, such as `4`")]
    NoBound { key: String, operator: Operator },
    #[error("`{key}` {operator} takes one bound, not `{values}`: keep one of them")]
    ManyBounds { key: String, operator: Operator, values: String },
    #[error("`{key}` asks for minValues {min_values}: write a number from 1 to {MIN_VALUES_MAX}")]
    MinValues { key: String, min_values: u32 },
    #[error(
        "`{key}` asks for minValues {min_values} and names {have}: name more values, or ask for \
         fewer"
    )]
    FewValues { key: String, min_values: u32, have: usize },
}

/// What a label's value and the name in its key may be. The empty text is a value, not a name.
fn name_like(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= NAME_MAX
        && bytes.iter().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

/// Lower case, as in DNS.
fn domain_like(text: &str) -> bool {
    let part_like = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(part_like)
}

impl Operator {
    pub const ALL: [Self; 8] = [
        Self::In,
        Self::NotIn,
        Self::Exists,
        Self::DoesNotExist,
        Self::Gt,
        Self::Lt,
        Self::Gte,
        Self::Lte,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Operator> for String {
    fn from(operator: Operator) -> Self {
        operator.name().to_owned()
    }
}

impl FromStr for Operator {
    type Err = ParseOperatorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|it| it.name() == text);
        known.ok_or_else(|| ParseOperatorError { text: text.to_owned(), nearest: nearest(text) })
    }
}

impl TryFrom<String> for Operator {
    type Error = ParseOperatorError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The operators have names of their own; `==` and `in` are not among them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an operator: write {nearest}")]
pub struct ParseOperatorError {
    pub text: String,
    pub nearest: Operator,
}

/// By spelling, or by meaning for signs that have none of our letters.
fn nearest(text: &str) -> Operator {
    // Spelling is compared in quadratic time, so nobody's essay is.
    let text: String = text.chars().take(NAME_MAX).collect::<String>().to_ascii_lowercase();
    match text.trim() {
        ">" | "greaterthan" => Operator::Gt,
        ">=" | "=>" | "≥" => Operator::Gte,
        "<" | "lessthan" => Operator::Lt,
        "<=" | "=<" | "≤" => Operator::Lte,
        "!=" | "<>" | "≠" | "notequal" | "notequals" => Operator::NotIn,
        "=" | "==" | "equal" | "equals" => Operator::In,
        "!" | "absent" => Operator::DoesNotExist,
        spelled => {
            let distance = |it: &Operator| {
                strsim::damerau_levenshtein(spelled, &it.name().to_ascii_lowercase())
            };
            Operator::ALL.into_iter().min_by_key(distance).unwrap_or(Operator::In)
        }
    }
}
