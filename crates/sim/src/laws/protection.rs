//! What do people protect, and was a node disturbed that they do?
//!
//! `karpenter.sh/do-not-disrupt` says `true`, or a length of time after the start; its older name,
//! `karpenter.sh/do-not-evict`, says `true` only. What nobody can read protects. A node that says so, or whose claim
//! does, is neither granted nor cordoned, and once everybody must know of it none of its pods is asked to leave and its
//! claim is not deleted, unless somebody else decided that it goes.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::read;
use super::world::{DISRUPTED_TAINT, World, grants, has_taint, known};
use super::{Found, Law};
use crate::trace::{Actor, Fact, Step};

const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";

/// Since when each node and each claim says that it must not be disturbed.
#[derive(Debug, Default)]
pub(super) struct Protection {
    /// By UID.
    since: BTreeMap<String, Timestamp>,
}

impl Protection {
    /// Right before the step.
    pub(super) fn see(&mut self, world: &World, step: &Step, found: &mut Found) {
        let ours = matches!(step.by, Actor::Operator(_));
        if let Fact::Evicted { namespace, pod, code: 201, .. }
        | Fact::PodDeleted { namespace, pod, .. } = &step.fact
        {
            let node = world.pod(namespace, pod).and_then(|it| it.node.as_deref());
            if let Some(node) = node.filter(|_| ours) {
                self.disturbed(world, node, &format!("to lose pod {namespace}/{pod}"), step, found);
            }
            return;
        }
        let Fact::Stored { resource, object, old } = &step.fact else { return };
        match resource.kind {
            "Node" => {
                self.note(object, step.at);
                let name = read::name(object);
                let before = world.nodes.get(name);
                let news = has_taint(object, DISRUPTED_TAINT)
                    && before.is_some_and(|it| !has_taint(&it.object, DISRUPTED_TAINT));
                if news && ours {
                    self.disturbed(world, name, "cordoned", step, found);
                }
            }
            "NodeClaim" => {
                self.note(object, step.at);
                let news = read::deleting(object).is_some()
                    && old.as_deref().is_some_and(|it| read::deleting(it).is_none());
                // One that takes over and is given up has a record of another.
                let record = world.replacements.get(read::uid(object));
                let ends = record.and_then(|it| read::text(it, &["status", "phase"]));
                if let Some(name) = read::text(object, &["status", "nodeName"])
                    && ours
                    && news
                    && ends == Some("Terminating")
                {
                    self.disturbed(world, name, "ended", step, found);
                }
            }
            "DisruptionLedger" if ours => {
                // After somebody deleted it, it is written anew from the records: nothing in it is new.
                if world.ledger.lost() && !world.replacements.is_empty() {
                    return;
                }
                let fresh = grants(object).into_iter().filter(|(holder, it)| {
                    it.takes_slot() && !world.ledger.grants.contains_key(holder)
                });
                for (_, grant) in fresh {
                    self.disturbed(world, &grant.node, "granted", step, found);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, object: &Value, now: Timestamp) {
        if said(object) {
            self.since.entry(read::uid(object).to_owned()).or_insert(now);
        } else if !self.since.is_empty() {
            self.since.remove(read::uid(object));
        }
    }

    /// Whether some node is protected at all is what there is to keep to.
    fn disturbed(&self, world: &World, name: &str, how: &str, step: &Step, found: &mut Found) {
        if self.since.is_empty() {
            return;
        }
        found.premise(Law::Protection);
        let (node, claim) = (world.nodes.get(name), world.claim_of(name));
        let goes = node.is_some_and(|it| read::deleting(&it.object).is_some())
            || claim.is_some_and(|it| it.deleting_since.is_some())
            || claim
                .and_then(|it| world.ledger.grants.get(read::uid(&it.object)))
                .is_some_and(super::world::Grant::passes);
        let sent_at = world.sent_at(step);
        let objects = [node.map(|it| &it.object), claim.map(|it| &it.object)];
        let protects = |it: &Value| {
            let since = self.since.get(read::uid(it));
            since.is_some_and(|it| known(*it, sent_at)) && holds(it, sent_at)
        };
        if !goes && objects.into_iter().flatten().any(|it| protects(it)) {
            let what = format!("node {name} was {how}, and says that it must not be disturbed");
            found.broken(Law::Protection, step.at, what);
        }
    }
}

enum Said {
    ForEver,
    /// For so long after the start.
    For(SignedDuration),
}

fn words(object: &Value) -> impl Iterator<Item = Said> {
    let evict = read::annotation(object, DO_NOT_EVICT).and_then(|it| word(it, false));
    let disrupt = read::annotation(object, DO_NOT_DISRUPT).and_then(|it| word(it, true));
    evict.into_iter().chain(disrupt)
}

/// A length in days or weeks is none of Go's, and so nothing that can be read.
fn word(word: &str, lengths: bool) -> Option<Said> {
    let word = word.trim();
    if matches!(word, "" | "false") {
        return None;
    }
    match read::duration(word).filter(|_| lengths && !word.contains(['d', 'w'])) {
        None => Some(Said::ForEver),
        Some(length) => (!length.is_zero()).then_some(Said::For(length)),
    }
}

/// Whether it says anything of the kind, be it over by now.
pub(super) fn said(object: &Value) -> bool {
    words(object).next().is_some()
}

/// Whether it must not be disturbed now. A pod that has not started is protected for as long as that is so.
pub(super) fn holds(object: &Value, now: Timestamp) -> bool {
    // Of all that is protected only pods are in a namespace.
    let starts: &[&str] = match read::namespace(object) {
        "" => &["metadata", "creationTimestamp"],
        _ => &["status", "startTime"],
    };
    let begun = || read::time(object, starts);
    words(object).any(|it| match it {
        Said::ForEver => true,
        Said::For(length) => begun().is_none_or(|it| now.duration_since(it) < length),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_protection_lasts_as_long_as_it_says() {
        let now: Timestamp = "2026-11-02T09:00:00Z".parse().unwrap_or_default();
        for (word, disrupt, evict) in [
            ("true", true, true),
            ("false", false, false),
            ("2h", true, true),
            // The older name takes no length: nobody can read it.
            ("30m", false, true),
            ("", false, false),
            ("True", true, true),
            ("banana", true, true),
            ("1d", true, true),
        ] {
            for (annotation, expected) in [(DO_NOT_DISRUPT, disrupt), (DO_NOT_EVICT, evict)] {
                let pod = json!({
                    "metadata": {"namespace": "shop", "annotations": {annotation: word}},
                    "status": {"startTime": "2026-11-02T08:00:00Z"},
                });
                assert_eq!(holds(&pod, now), expected, "{annotation}: {word}");
            }
        }
        let unstarted = json!({
            "metadata": {"namespace": "shop", "annotations": {DO_NOT_DISRUPT: "1m"}},
        });
        assert!(holds(&unstarted, now));
    }
}
