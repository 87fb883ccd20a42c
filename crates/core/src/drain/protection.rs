//! Did somebody say that this must not be disturbed?
//!
//! `karpenter.sh/do-not-disrupt` says `true`, or for how long after the start. Its older name,
//! `karpenter.sh/do-not-evict`, says `true` only. What cannot be read protects, and says so: whoever wrote it
//! meant something by it, and a pod that is gone does not come back (decision 0036).

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use nodemolt_fit::go_duration;

use crate::image::shorten;

pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
pub const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    pub annotation: &'static str,
    /// `None`: until somebody takes the annotation away.
    pub until: Option<Timestamp>,
    /// What was written, where nobody can read it.
    pub unread: Option<String>,
}

impl Protection {
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|it| now < it)
    }
}

/// What somebody wrote, without until when.
impl fmt::Display for Protection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unread {
            None => write!(out, "`{}`", self.annotation),
            Some(word) => {
                write!(out, "`{}: {word}`, which cannot be read and so protects", self.annotation)
            }
        }
    }
}

/// What the annotations of a pod say. A pod that has not started is protected for as long as that is so.
/// `false`, nothing at all and a length of zero protect nothing.
pub fn protection(
    annotations: &BTreeMap<String, String>,
    started_at: Option<Timestamp>,
) -> Option<Protection> {
    let said = |annotation: &'static str, lengths: bool| {
        let value = annotations.get(annotation)?;
        let held = |until, unread| Some(Protection { annotation, until, unread });
        match (value.trim(), go_duration(value).filter(|_| lengths)) {
            ("true", _) => held(None, None),
            ("" | "false", _) | (_, Some(0)) => None,
            (_, Some(length @ 1..)) => {
                let length = SignedDuration::from_nanos(length);
                held(started_at.and_then(|it| it.checked_add(length).ok()), None)
            }
            (_, Some(_) | None) => held(None, Some(shorten(value))),
        }
    };
    said(DO_NOT_EVICT, false).or_else(|| said(DO_NOT_DISRUPT, true))
}
