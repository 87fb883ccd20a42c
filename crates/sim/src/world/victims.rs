//! Whom does it strike?
//!
//! Whoever writes down beforehand what will happen does not know who will be there. `@any`, `@successor` and
//! `@leaving` stand for one of those who are, when it happens.

use std::collections::BTreeSet;

use nodemolt_cluster::transport::Resource;
use serde_json::Value;

use super::{ActError, World};
use crate::kinds;

/// Every other phase of a replacement is an end.
const OPEN: [&str; 6] =
    ["Launching", "Joining", "Settling", "Draining", "Terminating", "Retreating"];

impl World {
    /// A name as it stands; of one that begins with `@`, somebody's whom it fits.
    pub(super) fn resolved(&mut self, of: Resource, name: &str) -> Result<String, ActError> {
        let Some(word) = name.strip_prefix('@') else { return Ok(name.to_owned()) };
        let found: Vec<String> = match word {
            "any" => self.names(of),
            "successor" | "leaving" => {
                let claims = self.replaced(word == "successor");
                match of {
                    kinds::CLAIM => claims.into_iter().collect(),
                    kinds::NODE => self.nodes_of(&claims),
                    kinds::REPLACEMENT if word == "leaving" => self.open(),
                    _ => {
                        let told = format!("`{name}` is a node or a NodeClaim");
                        return Err(ActError::unknown(told));
                    }
                }
            }
            _ => {
                let told = format!("`{name}` is nobody: write `@any`, `@successor` or `@leaving`");
                return Err(ActError::unknown(told));
            }
        };
        let one = self.dice.weather.pick(&found).cloned();
        one.ok_or_else(|| ActError::gone(format!("no {} is `{name}` now", of.kind)))
    }

    fn names(&self, of: Resource) -> Vec<String> {
        self.kube.borrow().server.all(of).map(|(key, _)| key.name.clone()).collect()
    }

    /// Replacements that are under way.
    fn open(&self) -> Vec<String> {
        let kube = self.kube.borrow();
        let records = kube.server.all(kinds::REPLACEMENT).filter(|(_, it)| open(it));
        records.map(|(key, _)| key.name.clone()).collect()
    }

    /// Claims of replacements that are under way: those that come, or those that go.
    fn replaced(&self, coming: bool) -> BTreeSet<String> {
        let kube = self.kube.borrow();
        let text = |it: &Value, at: &str| it.pointer(at)?.as_str().map(str::to_owned);
        let mut found = BTreeSet::new();
        for (_, record) in kube.server.all(kinds::REPLACEMENT).filter(|(_, it)| open(it)) {
            if coming {
                let successors = record.pointer("/status/successors").and_then(Value::as_array);
                let names = successors.into_iter().flatten();
                found.extend(names.filter_map(|it| text(it, "/name")));
            } else {
                found.extend(text(record, "/spec/nodeClaim/name"));
            }
        }
        found.retain(|it| kube.server.get(kinds::CLAIM, "", it).is_some());
        found
    }

    fn nodes_of(&self, claims: &BTreeSet<String>) -> Vec<String> {
        let kube = self.kube.borrow();
        let node = |claim: &String| {
            let claim = kube.server.get(kinds::CLAIM, "", claim)?;
            claim.pointer("/status/nodeName")?.as_str().map(str::to_owned)
        };
        let known = |it: &String| kube.server.get(kinds::NODE, "", it).is_some();
        claims.iter().filter_map(node).filter(known).collect()
    }
}

fn open(record: &Value) -> bool {
    let phase = record.pointer("/status/phase").and_then(Value::as_str);
    phase.is_some_and(|it| OPEN.contains(&it))
}
