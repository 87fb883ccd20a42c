//! Which outcomes may one label have?
//!
//! `written × vocabulary → requirement`, and requirements intersect
//!
//! A label is absent or it has one of all strings; a requirement is the exact set of the outcomes it
//! allows. Nothing is approximated: when every integer of a range has been excluded, the range is
//! known to be empty. That works because only canonical decimals count as integers (`5`, not `05`),
//! so that a range holds as many texts as numbers.

mod together;
mod written;

use smallvec::SmallVec;

pub use self::{
    together::{Clash, MinValuesShort, Requirements, Undefined},
    written::{Operator, ParseOperatorError, Written, WrittenError},
};
use crate::vocabulary::{Value, Vocabulary};

/// Sorted and without repetition. Most requirements name four values at most.
type Values = SmallVec<[Value; 4]>;

/// What a label may be, and how many different values the machines considered must offer for it.
///
/// Equal requirements are equal in form: the same set has one form, except that a short range of
/// integers and the list of them are two. Ask `within` both ways where that matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    outcomes: Outcomes,
    min_values: Option<u32>,
}

/// Every set that a conjunction of operators can describe, and no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Outcomes {
    Absent,
    /// None of them: nothing is allowed, not even absence.
    Only(Values),
    /// Both ends are allowed, and `but` has integers from between them only; see `integers`.
    Integers {
        at_least: i64,
        at_most: i64,
        but: Values,
    },
    Anything {
        but: Values,
        or_absent: bool,
    },
}

impl Requirement {
    /// Present or absent, whatever the value.
    pub fn anything() -> Self {
        Self::none_of([])
    }

    /// Present, whatever the value.
    pub fn present() -> Self {
        Outcomes::Anything { but: Values::new(), or_absent: false }.into()
    }

    pub fn absent() -> Self {
        Outcomes::Absent.into()
    }

    pub fn exactly(value: Value) -> Self {
        Self::any_of([value])
    }

    pub fn any_of(values: impl IntoIterator<Item = Value>) -> Self {
        Outcomes::Only(sorted(values)).into()
    }

    /// Absent, or present with another value. That is what Kubernetes means by `NotIn`.
    pub fn none_of(values: impl IntoIterator<Item = Value>) -> Self {
        Outcomes::Anything { but: sorted(values), or_absent: true }.into()
    }

    /// Present with an integer from `at_least` to `at_most`, both included.
    pub fn between(at_least: i64, at_most: i64) -> Self {
        integers(at_least, at_most, Values::new()).into()
    }

    /// What a person wrote. Nothing fails here, `Written::check` is the door: what would not have
    /// passed it (no value, a bound that is no integer) allows nothing.
    pub fn read(written: &Written, vocabulary: &Vocabulary) -> Self {
        let values = || written.values.iter().map(|it| vocabulary.value(it));
        let bound = || match written.values.as_slice() {
            [only] => only.parse::<i64>().ok(),
            _ => None,
        };
        let bare = |requirement| written.values.is_empty().then_some(requirement);
        let read = match written.operator {
            Operator::In => Some(Self::any_of(values())),
            Operator::NotIn => Some(Self::none_of(values())),
            Operator::Exists => bare(Self::present()),
            Operator::DoesNotExist => bare(Self::absent()),
            Operator::Gt => bound().and_then(|it| it.checked_add(1)).map(Self::at_least),
            Operator::Gte => bound().map(Self::at_least),
            Operator::Lt => bound().and_then(|it| it.checked_sub(1)).map(Self::at_most),
            Operator::Lte => bound().map(Self::at_most),
        };
        read.unwrap_or_else(|| Self::any_of([])).with_min_values(written.min_values)
    }

    /// What a person can read, to be taken together. Empty if anything goes; `In` without a value
    /// if nothing does.
    pub fn written(&self, key: &str, vocabulary: &Vocabulary) -> Vec<Written> {
        let texts = |values: &Values| {
            let mut texts: Vec<String> =
                values.iter().map(|it| vocabulary.value_text(*it).as_ref().to_owned()).collect();
            texts.sort_unstable();
            texts
        };
        let mut all = Vec::new();
        let mut say = |operator, values| {
            all.push(Written { key: key.to_owned(), operator, values, min_values: None });
        };
        match &self.outcomes {
            Outcomes::Absent => say(Operator::DoesNotExist, Vec::new()),
            Outcomes::Only(values) => say(Operator::In, texts(values)),
            Outcomes::Integers { at_least, at_most, but } => {
                if *at_least != i64::MIN || *at_most == i64::MAX {
                    say(Operator::Gte, vec![at_least.to_string()]);
                }
                if *at_most != i64::MAX {
                    say(Operator::Lte, vec![at_most.to_string()]);
                }
                if !but.is_empty() {
                    say(Operator::NotIn, texts(but));
                }
            }
            Outcomes::Anything { but, or_absent } => {
                if !or_absent {
                    say(Operator::Exists, Vec::new());
                }
                // A number of values alone needs something to stand on.
                if !but.is_empty() || (*or_absent && self.min_values.is_some()) {
                    say(Operator::NotIn, texts(but));
                }
            }
        }
        if let Some(first) = all.first_mut() {
            first.min_values = self.min_values;
        }
        all
    }

    /// How many different values the machines considered must offer. No part of the set.
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Self {
        Self { min_values, ..self }
    }

    /// The values by name, if only these are allowed.
    pub fn listed(&self) -> Option<&[Value]> {
        match &self.outcomes {
            Outcomes::Only(values) => Some(values),
            Outcomes::Absent | Outcomes::Integers { .. } | Outcomes::Anything { .. } => None,
        }
    }

    /// What both allow, and the larger of the two numbers of values.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            outcomes: self.outcomes.intersect(&other.outcomes),
            min_values: self.min_values.max(other.min_values),
        }
    }

    /// Whether `intersect` would allow anything. Allocates nothing.
    pub fn intersects(&self, other: &Self) -> bool {
        self.outcomes.intersects(&other.outcomes)
    }

    pub fn admits(&self, value: Value) -> bool {
        self.outcomes.admits(value)
    }

    pub fn admits_absent(&self) -> bool {
        self.outcomes.admits_absent()
    }

    /// Whether no outcome is allowed at all, not even absence.
    pub fn nothing(&self) -> bool {
        matches!(&self.outcomes, Outcomes::Only(values) if values.is_empty())
    }

    /// Whether only integers below zero are allowed: no label has such a value, as values begin with a letter or a digit.
    pub fn negative(&self) -> bool {
        matches!(&self.outcomes, Outcomes::Integers { at_most, .. } if *at_most < 0)
    }

    /// Whether `other` allows whatever this allows.
    pub fn within(&self, other: &Self) -> bool {
        self.outcomes.within(&other.outcomes)
    }

    fn at_least(bound: i64) -> Self {
        Self::between(bound, i64::MAX)
    }

    fn at_most(bound: i64) -> Self {
        Self::between(i64::MIN, bound)
    }
}

impl From<Outcomes> for Requirement {
    fn from(outcomes: Outcomes) -> Self {
        Self { outcomes, min_values: None }
    }
}

impl Outcomes {
    fn admits(&self, value: Value) -> bool {
        match self {
            Self::Absent => false,
            Self::Only(values) => has(values, value),
            Self::Integers { at_least, at_most, but } => {
                inside(value, *at_least, *at_most) && !has(but, value)
            }
            Self::Anything { but, or_absent: _ } => !has(but, value),
        }
    }

    fn admits_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Only(_) | Self::Integers { .. } => false,
            Self::Anything { but: _, or_absent } => *or_absent,
        }
    }

    fn intersect(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Absent, it) | (it, Self::Absent) => {
                if it.admits_absent() {
                    Self::Absent
                } else {
                    Self::Only(Values::new())
                }
            }
            (Self::Only(values), it) | (it, Self::Only(values)) => {
                Self::Only(values.iter().copied().filter(|value| it.admits(*value)).collect())
            }
            (
                Self::Integers { at_least, at_most, but },
                Self::Integers { at_least: other_least, at_most: other_most, but: other_but },
            ) => integers(
                *at_least.max(other_least),
                *at_most.min(other_most),
                union(but, other_but),
            ),
            (
                Self::Integers { at_least, at_most, but },
                Self::Anything { but: other_but, or_absent: _ },
            )
            | (
                Self::Anything { but: other_but, or_absent: _ },
                Self::Integers { at_least, at_most, but },
            ) => integers(*at_least, *at_most, union(but, other_but)),
            (
                Self::Anything { but, or_absent },
                Self::Anything { but: other_but, or_absent: other_or_absent },
            ) => Self::Anything {
                but: union(but, other_but),
                or_absent: *or_absent && *other_or_absent,
            },
        }
    }

    fn intersects(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, it) | (it, Self::Absent) => it.admits_absent(),
            (Self::Only(left), Self::Only(right)) => {
                let (few, many) =
                    if left.len() < right.len() { (left, right) } else { (right, left) };
                few.iter().any(|it| has(many, *it))
            }
            (Self::Only(values), it) | (it, Self::Only(values)) => {
                values.iter().any(|value| it.admits(*value))
            }
            (
                Self::Integers { at_least, at_most, but },
                Self::Integers { at_least: other_least, at_most: other_most, but: other_but },
            ) => some_left(*at_least.max(other_least), *at_most.min(other_most), but, other_but),
            (
                Self::Integers { at_least, at_most, but },
                Self::Anything { but: other_but, or_absent: _ },
            )
            | (
                Self::Anything { but: other_but, or_absent: _ },
                Self::Integers { at_least, at_most, but },
            ) => some_left(*at_least, *at_most, but, other_but),
            // There are always more strings than were excluded.
            (Self::Anything { .. }, Self::Anything { .. }) => true,
        }
    }

    fn within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, it) => it.admits_absent(),
            (Self::Only(values), it) => values.iter().all(|value| it.admits(*value)),
            (Self::Integers { .. } | Self::Anything { .. }, Self::Absent)
            | (Self::Anything { .. }, Self::Only(_) | Self::Integers { .. }) => false,
            (Self::Integers { at_least, at_most, but }, Self::Only(values)) => {
                let listed = values.iter().filter(|value| self.admits(**value)).count();
                how_many(*at_least, *at_most) == wide(listed) + wide(but.len())
            }
            // Our ends are allowed outcomes, so theirs must lie outside or upon them.
            (
                Self::Integers { at_least, at_most, but: _ },
                Self::Integers { at_least: other_least, at_most: other_most, but },
            ) => {
                other_least <= at_least
                    && at_most <= other_most
                    && !but.iter().any(|value| self.admits(*value))
            }
            (Self::Integers { .. }, Self::Anything { but, or_absent: _ }) => {
                !but.iter().any(|value| self.admits(*value))
            }
            (
                Self::Anything { but: _, or_absent },
                Self::Anything { but, or_absent: other_or_absent },
            ) => (!or_absent || *other_or_absent) && !but.iter().any(|value| self.admits(*value)),
        }
    }
}

/// The integers from `at_least` to `at_most` without those of `but`, in the one form of that set:
/// exclusions outside the range are dropped, those at its ends shorten it. What has both ends in
/// order is therefore never empty.
fn integers(mut at_least: i64, mut at_most: i64, mut but: Values) -> Outcomes {
    let mut excluded: SmallVec<[i64; 4]> = but
        .iter()
        .filter_map(|it| it.integer())
        .filter(|it| (at_least..=at_most).contains(it))
        .collect();
    excluded.sort_unstable();
    for number in &excluded {
        if *number != at_least {
            break;
        }
        match at_least.checked_add(1) {
            Some(next) => at_least = next,
            None => return Outcomes::Only(Values::new()),
        }
    }
    if at_least > at_most {
        return Outcomes::Only(Values::new());
    }
    // Ends at `at_least` at the latest, which is not excluded any more.
    for number in excluded.iter().rev() {
        if *number != at_most {
            break;
        }
        at_most = at_most.saturating_sub(1);
    }
    but.retain(|it| inside(*it, at_least, at_most));
    Outcomes::Integers { at_least, at_most, but }
}

/// Whether the range has an integer that neither list excludes: fewer exclusions than integers.
fn some_left(at_least: i64, at_most: i64, left: &Values, right: &Values) -> bool {
    let room = how_many(at_least, at_most);
    if room > wide(left.len()) + wide(right.len()) {
        return true;
    }
    let by_left = left.iter().filter(|it| inside(**it, at_least, at_most)).count();
    let by_right_alone =
        right.iter().filter(|it| inside(**it, at_least, at_most) && !has(left, **it)).count();
    room > wide(by_left) + wide(by_right_alone)
}

/// Negative or zero if the ends are out of order.
fn how_many(at_least: i64, at_most: i64) -> i128 {
    i128::from(at_most) - i128::from(at_least) + 1
}

fn wide(count: usize) -> i128 {
    i128::try_from(count).unwrap_or(i128::MAX)
}

fn inside(value: Value, at_least: i64, at_most: i64) -> bool {
    value.integer().is_some_and(|it| (at_least..=at_most).contains(&it))
}

fn has(values: &Values, value: Value) -> bool {
    values.binary_search(&value).is_ok()
}

fn sorted(values: impl IntoIterator<Item = Value>) -> Values {
    let mut values: Values = values.into_iter().collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn union(left: &Values, right: &Values) -> Values {
    sorted(left.iter().chain(right).copied())
}
