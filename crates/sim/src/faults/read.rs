//! Which words mean which fault?

use std::str::FromStr;

use nodemolt_core::seen::Kind;

use super::{Counterpart, DOWN, Fault, Lasts, Moment, Side, Whom, Writing};
use crate::length;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseFaultError(pub String);

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Words { left: text.split_whitespace().collect() };
        let Some(first) = words.next() else {
            return Err(ParseFaultError(format!(
                "no fault is named; write one of: {}",
                Self::WORDS.join("; ")
            )));
        };
        let usage = Self::WORDS.iter().find(|it| it.split(' ').next() == Some(first));
        let Some(usage) = usage else {
            return Err(ParseFaultError(format!(
                "`{first}` is no fault; write one of: {}",
                Self::WORDS.join("; ")
            )));
        };
        let fault = read(first, &mut words)
            .and_then(|fault| match words.left.first() {
                None => Ok(fault),
                Some(word) => Err(format!("`{word}` is too much")),
            })
            .map_err(|told| ParseFaultError(format!("{told}; write `{usage}`")))?;
        Ok(fault)
    }
}

fn read(first: &str, words: &mut Words<'_>) -> Result<Fault, String> {
    Ok(match first {
        "crash" => {
            let whom = words.whom()?;
            let when = words.moment()?;
            Fault::Crash { whom, when, down: words.lasts()?.unwrap_or(DOWN) }
        }
        "freeze" => {
            let (whom, when) = (words.whom()?, words.moment()?);
            let lasts = words.lasts()?.ok_or("it does not say for how long")?;
            Fault::Freeze { whom, when, lasts }
        }
        "skew" => {
            let whom = words.whom()?;
            let word = words.some("how many seconds")?;
            let seconds: i64 =
                word.parse().map_err(|_| format!("`{word}` is no number of seconds"))?;
            if seconds.unsigned_abs() > length::LONGEST.as_secs().unsigned_abs() {
                return Err(format!("`{word}` seconds are more than a hundred years"));
            }
            Fault::Skew { whom, seconds }
        }
        "lose-requests" => Fault::LoseRequests { percent: words.percent()?, lasts: words.lasts()? },
        "lose-answers" => Fault::LoseAnswers { percent: words.percent()?, lasts: words.lasts()? },
        "late-requests" | "late-answers" => {
            let percent = words.percent()?;
            let by = length::read(words.after("by")?.ok_or("it does not say by how much")?)?;
            let lasts = words.lasts()?;
            if first == "late-requests" {
                Fault::LateRequests { percent, by, lasts }
            } else {
                Fault::LateAnswers { percent, by, lasts }
            }
        }
        "throttle" => {
            let word = words.some("whom")?;
            let whom = Counterpart::ALL.into_iter().find(|it| it.as_str() == word);
            let whom = whom.ok_or_else(|| format!("`{word}` cannot be throttled"))?;
            Fault::Throttle { whom, lasts: words.lasts()? }
        }
        "stale" => {
            let word = words.some("who")?;
            let lists = [Counterpart::Ec2, Counterpart::Ssm];
            let whom = lists.into_iter().find(|it| it.as_str() == word);
            let whom = whom.ok_or_else(|| format!("the lists of `{word}` are never stale"))?;
            let by = length::read(words.some("by how much")?)?;
            Fault::Stale { whom, by, lasts: words.lasts()? }
        }
        "conflicts" => Fault::Conflicts { percent: words.percent()?, lasts: words.lasts()? },
        "evictions-give-up" => {
            Fault::EvictionsGiveUp { percent: words.percent()?, lasts: words.lasts()? }
        }
        "twins" => Fault::Twins { percent: words.percent()?, lasts: words.lasts()? },
        "no-capacity" => {
            let instance_type = words.unless(&["in", "for"]);
            let zone = words.after("in")?.map(str::to_owned);
            Fault::NoCapacity { instance_type, zone, lasts: words.lasts()? }
        }
        "never-joins" => Fault::NeverJoins { lasts: words.lasts()? },
        "never-ready" => Fault::NeverReady { lasts: words.lasts()? },
        "node-dies" => Fault::NodeDies { node: words.some("which node")?.to_owned() },
        "node-flaps" => {
            let node = words.some("which node")?.to_owned();
            Fault::NodeFlaps { node, lasts: words.lasts()? }
        }
        "pdb-never" => {
            let word = words.some("which PodDisruptionBudget")?;
            let (namespace, name) =
                word.split_once('/').ok_or_else(|| format!("`{word}` has no namespace"))?;
            Fault::PdbNever {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                lasts: words.lasts()?,
            }
        }
        "watch-lag" => {
            let by = length::read(words.some("by how much")?)?;
            let kind = words.kind()?;
            Fault::WatchLag { kind, by, lasts: words.lasts()? }
        }
        "watch-drop" => Fault::WatchDrop { kind: words.kind()? },
        "lists-lack" => Fault::ListsLack { id: words.some("what")?.to_owned() },
        _ => Fault::End,
    })
}

struct Words<'t> {
    left: Vec<&'t str>,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Option<&'t str> {
        if self.left.is_empty() { None } else { Some(self.left.remove(0)) }
    }

    fn some(&mut self, what: &str) -> Result<&'t str, String> {
        self.next().ok_or_else(|| format!("it does not say {what}"))
    }

    /// The next word, unless it begins something else.
    fn unless(&mut self, others: &[&str]) -> Option<String> {
        let word = self.left.first().filter(|it| !others.contains(it))?;
        let word = (*word).to_owned();
        self.next();
        Some(word)
    }

    fn after(&mut self, word: &str) -> Result<Option<&'t str>, String> {
        if self.left.first() != Some(&word) {
            return Ok(None);
        }
        self.next();
        self.next().map(Some).ok_or_else(|| format!("nothing stands behind `{word}`"))
    }

    fn lasts(&mut self) -> Result<Lasts, String> {
        self.after("for")?.map(length::read).transpose()
    }

    fn whom(&mut self) -> Result<Whom, String> {
        let word = self.some("whom")?;
        if word == "leader" {
            return Ok(Whom::Leader);
        }
        let number = word.strip_prefix("operator-").and_then(|it| it.parse().ok());
        number.map(Whom::Replica).ok_or_else(|| {
            format!("`{word}` is none of us: WHOM is `leader`, `operator-0`, `operator-1` or so on")
        })
    }

    /// Before, after or at nothing; then of which kind of write, or of any.
    fn moment(&mut self) -> Result<Moment, String> {
        let side = Side::ALL.into_iter().find(|it| self.left.first() == Some(&it.as_str()));
        let Some(side) = side else { return Ok(Moment::Now) };
        self.next();
        let Some(word) = self.unless(&["for"]) else { return Ok(Moment::At(side, None)) };
        let what = Writing::ALL.into_iter().find(|it| it.as_str() == word);
        let all: Vec<&str> = Writing::ALL.iter().map(|it| it.as_str()).collect();
        let what = what.ok_or_else(|| {
            format!("`{word}` is nothing that we write: WRITE is one of {}", all.join(", "))
        })?;
        Ok(Moment::At(side, Some(what)))
    }

    fn percent(&mut self) -> Result<u8, String> {
        let word = self.some("how many of a hundred")?;
        let number = word.strip_suffix('%').and_then(|it| it.parse().ok());
        number
            .filter(|it| *it <= 100)
            .ok_or_else(|| format!("`{word}` is no share: PERCENT is a number from 0 to 100"))
    }

    fn kind(&mut self) -> Result<Option<Kind>, String> {
        let Some(word) = self.unless(&["for"]) else { return Ok(None) };
        let found = Kind::ALL.into_iter().find(|it| it.as_str().eq_ignore_ascii_case(&word));
        let all: Vec<&str> = Kind::ALL.iter().map(|it| it.as_str()).collect();
        found.map(Some).ok_or_else(|| {
            format!("`{word}` is no kind that is watched: KIND is one of {}", all.join(", "))
        })
    }
}
