//! Is every node that should go accounted for?
//!
//! It starts, it is under way, or it waits for something that has a name; and only one of these.

use std::collections::BTreeMap;

use super::{Found, Law};
use crate::trace::{Step, Turned};

pub(super) fn see(turned: &Turned, step: &Step, found: &mut Found) {
    let Turned { wished, starts, under_way, waits, unknown: _, writes: _, commands: _ } = turned;
    if wished.is_empty() {
        return;
    }
    found.premise(Law::Partition);
    let mut said: BTreeMap<&str, u32> = BTreeMap::new();
    let waiting = waits.iter().map(|(node, _)| node);
    for node in starts.iter().chain(under_way).chain(waiting) {
        *said.entry(node).or_default() += 1;
    }
    for node in wished {
        if !said.contains_key(node.as_str()) {
            let what = format!("node {node} should go, and nothing is said of it");
            found.broken(Law::Partition, step.at, what);
        }
    }
    for (node, _) in said.iter().filter(|(_, times)| **times > 1) {
        let what = format!("more than one thing is said of node {node}");
        found.broken(Law::Partition, step.at, what);
    }
    for (node, reasons) in waits {
        let named = !reasons.is_empty()
            && reasons.iter().all(|it| !it.kind.is_empty() && !it.sentence.is_empty());
        if !named {
            let what = format!("node {node} waits for something without a name");
            found.broken(Law::Partition, step.at, what);
        }
    }
}
