//! Which types are meant by `-l`?
//!
//! `kubectl`'s selectors over the labels of instance types, with `>` and `<` for the many labels that
//! are numbers. A key may be written without its domain; one that no type has is a mistake and no
//! empty answer.

use nodemolt_fit::label;
use nodemolt_fit::type_labels::TypeLabel;

use crate::output::Failure;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    conditions: Vec<Condition>,
}

#[derive(Debug, PartialEq, Eq)]
struct Condition {
    key: &'static str,
    test: Test,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// As with `kubectl`, also where the label is absent.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Selector {
    pub(super) fn read(written: &[String]) -> Result<Self, Failure> {
        let mut conditions = Vec::new();
        for text in written {
            for part in split(text) {
                conditions.push(Condition::read(part.trim())?);
            }
        }
        Ok(Self { conditions })
    }

    pub(super) fn admits(&self, labels: &[TypeLabel]) -> bool {
        self.conditions.iter().all(|it| it.admits(labels))
    }
}

/// At the commas that are not inside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The longer before their beginnings.
const OPERATORS: [&str; 7] = ["!=", "==", ">=", "<=", "=", ">", "<"];

impl Condition {
    fn read(written: &str) -> Result<Self, Failure> {
        if written.is_empty() {
            return Err(Failure::usage("a selector cannot be empty").hint(
                "write for example -l kubernetes.io/arch=arm64, or -l 'instance-gpu-count>0'",
            ));
        }
        if let Some(condition) = Self::read_set(written)? {
            return Ok(condition);
        }
        let operator = OPERATORS
            .iter()
            .filter_map(|it| written.find(it).map(|at| (at, *it)))
            .min_by_key(|(at, it)| (*at, std::cmp::Reverse(it.len())));
        let Some((at, operator)) = operator else {
            let (test, rest) = match written.strip_prefix('!') {
                Some(rest) => (Test::Absent, rest),
                None => (Test::Exists, written),
            };
            return Ok(Self { key: key(rest.trim())?, test });
        };
        let key = key(written[..at].trim())?;
        let value = written[at + operator.len()..].trim();
        let number = || {
            value.parse::<i64>().map_err(|_| {
                Failure::usage(format!(
                    "`{written}` compares with `{value}`, which is no whole number"
                ))
                .hint(format!("write for example -l '{key}{operator}4'"))
            })
        };
        let test = match operator {
            "!=" => Test::NotIn(vec![value.to_owned()]),
            ">" => Test::Above(number()?),
            "<" => Test::Below(number()?),
            ">=" => Test::Above(number()?.saturating_sub(1)),
            "<=" => Test::Below(number()?.saturating_add(1)),
            _ => Test::In(vec![value.to_owned()]),
        };
        Ok(Self { key, test })
    }

    /// `key in (a, b)` and `key notin (a, b)`.
    fn read_set(written: &str) -> Result<Option<Self>, Failure> {
        let Some((before, values)) = written.strip_suffix(')').and_then(|it| it.split_once('('))
        else {
            return Ok(None);
        };
        let mut words = before.split_whitespace();
        let (Some(name), Some(operator), None) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        let values = values.split(',').map(|it| it.trim().to_owned()).collect();
        let test = match operator {
            "in" => Test::In(values),
            "notin" => Test::NotIn(values),
            _ => return Ok(None),
        };
        Ok(Some(Self { key: key(name)?, test }))
    }

    fn admits(&self, labels: &[TypeLabel]) -> bool {
        let label = labels.iter().find(|it| it.key == self.key);
        let value = label.and_then(|it| it.value.as_deref());
        let number = value.and_then(|it| it.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|it| values.iter().any(|other| other == it)),
            Test::NotIn(values) => !value.is_some_and(|it| values.iter().any(|other| other == it)),
            Test::Above(than) => number.is_some_and(|it| it > *than),
            Test::Below(than) => number.is_some_and(|it| it < *than),
        }
    }
}

/// The label that was meant: by its name, an old name of it, or its name without the domain.
fn key(written: &str) -> Result<&'static str, Failure> {
    let normal = label::normalise(written);
    if let Some(key) = label::BY_TYPE.iter().find(|it| **it == normal || short(it) == normal) {
        return Ok(key);
    }
    let failure = if label::by_offering(normal) {
        let message = format!("`{written}` is decided when a node is bought, not by its type");
        return Err(Failure::usage(message));
    } else {
        Failure::usage(format!("no instance type has a label `{written}`"))
    };
    let nearest = label::BY_TYPE
        .iter()
        .map(|it| {
            let compared = if written.contains('/') { *it } else { short(it) };
            (strsim::damerau_levenshtein(written, compared), *it)
        })
        .filter(|(distance, _)| *distance <= (written.chars().count() / 3).max(1))
        .min();
    Err(match nearest {
        Some((_, near)) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`nodemolt types get m7g.large` shows all labels"),
    })
}

fn short(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&'static str, Option<&str>)]) -> bool {
        let labels: Vec<TypeLabel> = labels
            .iter()
            .map(|(key, value)| TypeLabel { key, value: value.map(str::to_owned) })
            .collect();
        Selector::read(&[selector.to_owned()]).unwrap().admits(&labels)
    }

    #[test]
    fn every_form_is_understood() {
        let labels = [
            (label::ARCH, Some("arm64")),
            (label::CPU, Some("8")),
            (label::GPU_COUNT, None),
            (label::HYPERVISOR, Some("")),
        ];
        for yes in [
            "kubernetes.io/arch=arm64",
            "kubernetes.io/arch==arm64",
            "beta.kubernetes.io/arch=arm64",
            "arch=arm64",
            "instance-cpu>7",
            "instance-cpu < 9",
            "instance-cpu>=8,instance-cpu<=8",
            "!instance-gpu-count",
            "instance-gpu-count!=1",
            "karpenter.k8s.aws/instance-cpu",
            "arch in (amd64, arm64), instance-cpu notin (4)",
            "instance-hypervisor=",
        ] {
            assert!(check(yes, &labels), "{yes}");
        }
        for no in [
            "arch!=arm64",
            "arch=amd64",
            "instance-cpu>8",
            "instance-gpu-count",
            "instance-gpu-count>0",
            "!arch",
            "arch=arm64,instance-cpu=4",
            "arch>1",
        ] {
            assert!(!check(no, &labels), "{no}");
        }
    }

    #[test]
    fn a_mistake_is_told_the_nearest() {
        let told = |text: &str| Selector::read(&[text.to_owned()]).unwrap_err().talk;
        assert_eq!(
            told("instance-gpu-cuont>0"),
            "error: no instance type has a label `instance-gpu-cuont`\n\
             hint: did you mean `karpenter.k8s.aws/instance-gpu-count`?\n"
        );
        assert_eq!(
            told("instance-cpu>many"),
            "error: `instance-cpu>many` compares with `many`, which is no whole number\n\
             hint: write for example -l 'karpenter.k8s.aws/instance-cpu>4'\n"
        );
        assert_eq!(
            told("topology.kubernetes.io/zone=eu-west-1a"),
            "error: `topology.kubernetes.io/zone` is decided when a node is bought, not by its \
             type\n"
        );
        assert!(told("arch=arm64,,").starts_with("error: a selector cannot be empty"));
        assert!(told("team=web").contains("`nodemolt types get m7g.large` shows all labels"));
    }
}
