//! What can go wrong?
//!
//! `words ↔ fault`
//!
//! Each fault has the words that `nodemolt sim fault` takes, and random lives draw the same ones: what a
//! life did wrong can be typed. A fault without a length lasts until `end`.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use nodemolt_core::seen::Kind;

use crate::length;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process is gone with all that it remembers; another starts in its place after `down`.
    Crash {
        whom: Whom,
        when: Moment,
        down: SignedDuration,
    },
    /// The process stands still and does not know it. A leader's lease runs out meanwhile, so there are
    /// two who believe that they lead when it goes on.
    Freeze {
        whom: Whom,
        lasts: SignedDuration,
    },
    /// Its clock is wrong by this much; negative is behind.
    Skew {
        whom: Whom,
        seconds: i64,
    },
    /// Of a hundred requests this many never arrive.
    LoseRequests {
        percent: u8,
        lasts: Lasts,
    },
    /// Of a hundred answers this many never arrive, although it was done.
    LoseAnswers {
        percent: u8,
        lasts: Lasts,
    },
    LateAnswers {
        percent: u8,
        by: SignedDuration,
        lasts: Lasts,
    },
    Throttle {
        whom: Counterpart,
        lasts: Lasts,
    },
    /// Before this many of a hundred writes somebody else has just written the same object.
    Conflicts {
        percent: u8,
        lasts: Lasts,
    },
    /// EC2 has none of this type, in this zone; of any type or in any zone where none is named.
    NoCapacity {
        instance_type: Option<String>,
        zone: Option<String>,
        lasts: Lasts,
    },
    /// Machines that are launched meanwhile never become nodes.
    NeverJoins {
        lasts: Lasts,
    },
    /// Machines that are launched meanwhile become nodes that are never ready.
    NeverReady {
        lasts: Lasts,
    },
    NodeDies {
        node: String,
    },
    NodeFlaps {
        node: String,
        lasts: Lasts,
    },
    /// This `PodDisruptionBudget` allows nothing meanwhile.
    PdbNever {
        namespace: String,
        name: String,
        lasts: Lasts,
    },
    WatchLag {
        kind: Option<Kind>,
        by: SignedDuration,
        lasts: Lasts,
    },
    /// What is not told yet is never told; the watch begins anew with a list.
    WatchDrop {
        kind: Option<Kind>,
    },
    /// Nothing more goes wrong.
    End,
}

/// `None`: until `end`.
pub type Lasts = Option<SignedDuration>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    Replica(u8),
    /// Whoever leads when it happens.
    Leader,
}

/// Where in its life a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    Now,
    /// It was about to send a write.
    BeforeSend,
    /// A write was sent and done, and not answered yet.
    AfterSend,
    /// The answer to a write was received, and not used yet.
    AfterAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counterpart {
    Ec2,
    Ssm,
    Kubernetes,
}

/// How long a process is down if nobody says: about what a pod needs to start again.
pub const DOWN: SignedDuration = SignedDuration::from_secs(10);

impl Fault {
    /// One line per fault, for help and for errors.
    pub const WORDS: [&str; 17] = [
        "crash WHOM [before-send|after-send|after-answer] [for LENGTH]",
        "freeze WHOM for LENGTH",
        "skew WHOM [+|-]SECONDS",
        "lose-requests PERCENT% [for LENGTH]",
        "lose-answers PERCENT% [for LENGTH]",
        "late-answers PERCENT% by LENGTH [for LENGTH]",
        "throttle ec2|ssm|kubernetes [for LENGTH]",
        "conflicts PERCENT% [for LENGTH]",
        "no-capacity [TYPE] [in ZONE] [for LENGTH]",
        "never-joins [for LENGTH]",
        "never-ready [for LENGTH]",
        "node-dies NODE",
        "node-flaps NODE [for LENGTH]",
        "pdb-never NAMESPACE/NAME [for LENGTH]",
        "watch-lag LENGTH [KIND] [for LENGTH]",
        "watch-drop [KIND]",
        "end",
    ];

    /// How long it lasts. `None` for what has happened at once, and what lasts until `end`.
    pub fn lasts(&self) -> Lasts {
        match self {
            Self::Freeze { lasts, .. } => Some(*lasts),
            Self::LoseRequests { lasts, .. }
            | Self::LoseAnswers { lasts, .. }
            | Self::LateAnswers { lasts, .. }
            | Self::Throttle { lasts, .. }
            | Self::Conflicts { lasts, .. }
            | Self::NoCapacity { lasts, .. }
            | Self::NeverJoins { lasts }
            | Self::NeverReady { lasts }
            | Self::NodeFlaps { lasts, .. }
            | Self::PdbNever { lasts, .. }
            | Self::WatchLag { lasts, .. } => *lasts,
            Self::Crash { .. }
            | Self::Skew { .. }
            | Self::NodeDies { .. }
            | Self::WatchDrop { .. }
            | Self::End => None,
        }
    }
}

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
            let when = match words.left.first() {
                Some(&"before-send") => Moment::BeforeSend,
                Some(&"after-send") => Moment::AfterSend,
                Some(&"after-answer") => Moment::AfterAnswer,
                Some(_) | None => Moment::Now,
            };
            if when != Moment::Now {
                words.next();
            }
            Fault::Crash { whom, when, down: words.lasts()?.unwrap_or(DOWN) }
        }
        "freeze" => {
            let whom = words.whom()?;
            let lasts = words.lasts()?.ok_or("it does not say for how long")?;
            Fault::Freeze { whom, lasts }
        }
        "skew" => {
            let whom = words.whom()?;
            let word = words.some("how many seconds")?;
            let seconds = word.parse().map_err(|_| format!("`{word}` is no number of seconds"))?;
            Fault::Skew { whom, seconds }
        }
        "lose-requests" => Fault::LoseRequests { percent: words.percent()?, lasts: words.lasts()? },
        "lose-answers" => Fault::LoseAnswers { percent: words.percent()?, lasts: words.lasts()? },
        "late-answers" => {
            let percent = words.percent()?;
            let by = words.after("by")?.ok_or("it does not say by how much")?;
            Fault::LateAnswers { percent, by: length::read(by)?, lasts: words.lasts()? }
        }
        "throttle" => {
            let word = words.some("whom")?;
            let whom = Counterpart::ALL.into_iter().find(|it| it.as_str() == word);
            let whom = whom.ok_or_else(|| format!("`{word}` cannot be throttled"))?;
            Fault::Throttle { whom, lasts: words.lasts()? }
        }
        "conflicts" => Fault::Conflicts { percent: words.percent()?, lasts: words.lasts()? },
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

impl Counterpart {
    pub const ALL: [Self; 3] = [Self::Ec2, Self::Ssm, Self::Kubernetes];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Ssm => "ssm",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica(number) => write!(out, "operator-{number}"),
            Self::Leader => write!(out, "leader"),
        }
    }
}

/// In the words that are read.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { whom, when, .. } => {
                write!(out, "crash {whom}")?;
                match when {
                    Moment::Now => {}
                    Moment::BeforeSend => write!(out, " before-send")?,
                    Moment::AfterSend => write!(out, " after-send")?,
                    Moment::AfterAnswer => write!(out, " after-answer")?,
                }
            }
            Self::Freeze { whom, .. } => write!(out, "freeze {whom}")?,
            Self::Skew { whom, seconds } => write!(out, "skew {whom} {seconds:+}")?,
            Self::LoseRequests { percent, .. } => write!(out, "lose-requests {percent}%")?,
            Self::LoseAnswers { percent, .. } => write!(out, "lose-answers {percent}%")?,
            Self::LateAnswers { percent, by, .. } => {
                write!(out, "late-answers {percent}% by {}", length::write(*by))?;
            }
            Self::Throttle { whom, .. } => write!(out, "throttle {}", whom.as_str())?,
            Self::Conflicts { percent, .. } => write!(out, "conflicts {percent}%")?,
            Self::NoCapacity { instance_type, zone, .. } => {
                write!(out, "no-capacity")?;
                if let Some(it) = instance_type {
                    write!(out, " {it}")?;
                }
                if let Some(it) = zone {
                    write!(out, " in {it}")?;
                }
            }
            Self::NeverJoins { .. } => write!(out, "never-joins")?,
            Self::NeverReady { .. } => write!(out, "never-ready")?,
            Self::NodeDies { node } => write!(out, "node-dies {node}")?,
            Self::NodeFlaps { node, .. } => write!(out, "node-flaps {node}")?,
            Self::PdbNever { namespace, name, .. } => write!(out, "pdb-never {namespace}/{name}")?,
            Self::WatchLag { kind, by, .. } => {
                write!(out, "watch-lag {}", length::write(*by))?;
                if let Some(kind) = kind {
                    write!(out, " {}", kind.as_str())?;
                }
            }
            Self::WatchDrop { kind } => {
                write!(out, "watch-drop")?;
                if let Some(kind) = kind {
                    write!(out, " {}", kind.as_str())?;
                }
            }
            Self::End => write!(out, "end")?,
        }
        let lasts = if let Self::Crash { down, .. } = self { Some(*down) } else { self.lasts() };
        match lasts {
            Some(lasts) => write!(out, " for {}", length::write(lasts)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_it_is_written() {
        for text in [
            "crash operator-1 for 10s",
            "crash leader after-send for 1m",
            "freeze leader for 1m",
            "skew operator-0 -600",
            "skew operator-0 +5",
            "lose-requests 10%",
            "lose-answers 5% for 10m",
            "late-answers 100% by 30s for 1h",
            "throttle ssm for 20m",
            "conflicts 20%",
            "no-capacity",
            "no-capacity m7g.large for 2h",
            "no-capacity in eu-central-1a",
            "no-capacity m7g.large in eu-central-1a for 2h",
            "never-joins",
            "never-ready for 1h",
            "node-dies web-1",
            "node-flaps web-1 for 10m",
            "pdb-never shop/cart for 1h",
            "watch-lag 30s",
            "watch-lag 30s Pod for 10m",
            "watch-drop NodeClaim",
            "watch-drop",
            "end",
        ] {
            let fault: Fault = text.parse().unwrap_or_else(|it| panic!("{text}: {it}"));
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_fault_says_what_to_write() {
        for text in [
            "",
            "explode",
            "crash",
            "crash bob",
            "freeze leader",
            "lose-answers 10",
            "lose-answers 101%",
            "throttle s3",
            "no-capacity in",
            "watch-lag 3 Pod",
            "watch-drop Secret",
            "pdb-never cart",
            "end now",
        ] {
            let told = text.parse::<Fault>().unwrap_err().to_string();
            assert!(told.contains("write"), "{text}: {told}");
        }
    }
}
