//! Which nodes does a pod want, because of their labels and of who is there?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::room::Room;
use crate::json::{at, items, members, text, whole};
use crate::selector::{expression, selects};

/// Required node affinity.
const NODE_TERMS: [&str; 5] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// `nodeSelector` and required node affinity.
pub(in crate::kube) fn node_wanted(pod: &Value, node: &Value) -> bool {
    let label = |key: &str| at(node, &["metadata", "labels", key]).and_then(Value::as_str);
    members(pod, &["spec", "nodeSelector"]).all(|(key, value)| label(key) == value.as_str())
        && (at(pod, &NODE_TERMS).is_none() || any_node_term(items(pod, &NODE_TERMS), node))
}

/// Terms are alternatives; one that says nothing matches nothing.
pub(super) fn any_node_term(terms: &[Value], node: &Value) -> bool {
    let label = |key: &str| at(node, &["metadata", "labels", key]).and_then(Value::as_str);
    terms.iter().any(|term| {
        let (labels, fields) = (items(term, &["matchExpressions"]), items(term, &["matchFields"]));
        let name = Some(text(node, &["metadata", "name"]));
        (!labels.is_empty() || !fields.is_empty())
            && labels.iter().all(|it| expression(it, label(text(it, &["key"]))))
            && fields.iter().all(|it| text(it, &["key"]) == "metadata.name" && expression(it, name))
    })
}

/// The nodes that a pod may be on by their names, as places among all of them, which are in the order of names. A pod
/// of a `DaemonSet` names one, and any other pod none.
pub(super) fn named_rooms(pod: &Value, rooms: &[Room]) -> Vec<usize> {
    let names = |term| {
        let mut fields = items(term, &["matchFields"]).iter();
        fields.find(|it| text(it, &["key"]) == "metadata.name" && text(it, &["operator"]) == "In")
    };
    let all = || (0..rooms.len()).collect();
    let terms = items(pod, &NODE_TERMS);
    if terms.is_empty() {
        return all();
    }
    let mut found = BTreeSet::new();
    for term in terms {
        let Some(names) = names(term) else { return all() };
        for name in items(names, &["values"]).iter().filter_map(Value::as_str) {
            found.extend(rooms.binary_search_by(|it| it.name().cmp(name)).ok());
        }
    }
    found.into_iter().collect()
}

/// Where a pod may be because of other pods: values of labels of nodes.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// The label must be there and have one of these values.
    only: Vec<(String, BTreeSet<String>)>,
    /// The label must not have one of these values.
    never: Vec<(String, BTreeSet<String>)>,
}

impl Topology {
    pub(super) fn of(pod: &Value, rooms: &[Room]) -> Self {
        let mut topology = Self::default();
        topology.affinity(pod, rooms);
        topology.anti_affinity(pod, rooms);
        topology.spread(pod, rooms);
        topology
    }

    pub(super) fn admits(&self, room: &Room) -> bool {
        self.only
            .iter()
            .all(|(key, values)| domain(room, key).is_some_and(|it| values.contains(it)))
            && self
                .never
                .iter()
                .all(|(key, values)| domain(room, key).is_none_or(|it| !values.contains(it)))
    }

    fn affinity(&mut self, pod: &Value, rooms: &[Room]) {
        for term in required(pod, "podAffinity") {
            let key = text(term, &["topologyKey"]);
            let near = rooms.iter().filter(|room| room.pods.iter().any(|it| means(term, pod, it)));
            let near: BTreeSet<String> =
                near.filter_map(|it| domain(it, key)).map(str::to_owned).collect();
            if near.is_empty() && means(term, pod, pod) {
                // The first of its kind may be anywhere that has the label.
                let all = rooms.iter().filter_map(|it| domain(it, key)).map(str::to_owned);
                self.only.push((key.to_owned(), all.collect()));
            } else {
                self.only.push((key.to_owned(), near));
            }
        }
    }

    /// Its own, and those of pods that want it away from them.
    fn anti_affinity(&mut self, pod: &Value, rooms: &[Room]) {
        for term in required(pod, "podAntiAffinity") {
            let key = text(term, &["topologyKey"]);
            let there = rooms.iter().filter(|room| room.pods.iter().any(|it| means(term, pod, it)));
            let taken = there.filter_map(|it| domain(it, key)).map(str::to_owned).collect();
            self.never.push((key.to_owned(), taken));
        }
        for room in rooms {
            for other in room.keep_away() {
                for term in required(other, "podAntiAffinity") {
                    let key = text(term, &["topologyKey"]);
                    if means(term, other, pod)
                        && let Some(value) = domain(room, key)
                    {
                        self.never.push((key.to_owned(), [value.to_owned()].into()));
                    }
                }
            }
        }
    }

    fn spread(&mut self, pod: &Value, rooms: &[Room]) {
        let constraints = items(pod, &["spec", "topologySpreadConstraints"]);
        for it in
            constraints.iter().filter(|it| text(it, &["whenUnsatisfiable"]) != "ScheduleAnyway")
        {
            let (key, selector) = (text(it, &["topologyKey"]), at(it, &["labelSelector"]));
            let namespace = text(pod, &["metadata", "namespace"]);
            let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
            // Nodes that the pod does not want anyway are no domains of it.
            for room in rooms.iter().filter(|room| node_wanted(pod, &room.node)) {
                let Some(value) = domain(room, key) else { continue };
                let alike = room.pods.iter().filter(|other| {
                    text(other, &["metadata", "namespace"]) == namespace
                        && at(other, &["metadata", "deletionTimestamp"]).is_none()
                        && selects(selector, other)
                });
                *counts.entry(value).or_default() += i64::try_from(alike.count()).unwrap_or(0);
            }
            let domains = i64::try_from(counts.len()).unwrap_or(i64::MAX);
            let few = whole(it, &["minDomains"]).is_some_and(|least| domains < least);
            let least = if few { 0 } else { counts.values().min().copied().unwrap_or(0) };
            let own = i64::from(selects(selector, pod));
            let skew_max = whole(it, &["maxSkew"]).unwrap_or(1);
            let open = counts.iter().filter(|(_, count)| **count + own - least <= skew_max);
            self.only.push((key.to_owned(), open.map(|(it, _)| (*it).to_owned()).collect()));
        }
    }
}

fn domain<'r>(room: &'r Room, key: &str) -> Option<&'r str> {
    at(&room.node, &["metadata", "labels", key]).and_then(Value::as_str)
}

pub(super) fn required<'p>(pod: &'p Value, kind: &str) -> &'p [Value] {
    items(pod, &["spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"])
}

/// Whether a term of one pod means another. Selectors of namespaces mean all of them when empty, and are not
/// read further.
fn means(term: &Value, of: &Value, other: &Value) -> bool {
    let namespace = text(other, &["metadata", "namespace"]);
    let listed = items(term, &["namespaces"]);
    let there = if at(term, &["namespaceSelector"]).is_some() {
        true
    } else if listed.is_empty() {
        namespace == text(of, &["metadata", "namespace"])
    } else {
        listed.iter().any(|it| it == namespace)
    };
    there && selects(at(term, &["labelSelector"]), other)
}
