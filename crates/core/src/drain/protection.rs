//! Did somebody say that this must not be disturbed?
//!
//! `karpenter.sh/do-not-disrupt` says `true`, or for how long after the start. Its older name,
//! `karpenter.sh/do-not-evict`, says `true` only.

use std::collections::BTreeMap;

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
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{annotation}: {value}` protects nothing; write `true`, or a length of time such as `4h`")]
pub struct ParseProtectionError {
    pub annotation: &'static str,
    pub value: String,
}

impl Protection {
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|it| now < it)
    }
}

/// What the annotations of a pod say. A pod that has not started is protected for as long as that is so.
/// What cannot be read protects nothing, as with Karpenter, and is told.
pub fn protection(
    annotations: &BTreeMap<String, String>,
    started_at: Option<Timestamp>,
) -> Result<Option<Protection>, ParseProtectionError> {
    if annotations.get(DO_NOT_EVICT).is_some_and(|it| it == "true") {
        return Ok(Some(Protection { annotation: DO_NOT_EVICT, until: None }));
    }
    let Some(value) = annotations.get(DO_NOT_DISRUPT) else { return Ok(None) };
    match value.as_str() {
        "true" => return Ok(Some(Protection { annotation: DO_NOT_DISRUPT, until: None })),
        "false" => return Ok(None),
        _ => {}
    }
    let refuse = || ParseProtectionError { annotation: DO_NOT_DISRUPT, value: shorten(value) };
    let length = go_duration(value).filter(|it| *it > 0).ok_or_else(refuse)?;
    let until = started_at.and_then(|it| it.checked_add(SignedDuration::from_nanos(length)).ok());
    Ok(Some(Protection { annotation: DO_NOT_DISRUPT, until }))
}
