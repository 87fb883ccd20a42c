//! Which pods are counted together, and by which label?
//!
//! `terms and spreads of all pods → counters`, each kept per domain of one label
//!
//! Kubernetes asks the same few questions again and again: is somebody like that in this zone, who
//! here wants nobody like me around, how many of us are where? Each distinct question becomes one
//! counter; placing a pod adds one to those that count it.

use std::collections::{BTreeMap, BTreeSet};

use super::{bits::Bits, template::Source, template::Template};
use crate::{
    label,
    node::Node,
    pod::{Namespace, PodTerm, Spread},
    requirement::Operator,
    selector::{Labels, Selector},
    vocabulary::{Key, Value, Vocabulary},
};

/// The pods that a term means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach {
    namespaces: Vec<String>,
    namespace_selector: Option<Selector>,
    selector: Selector,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Pods that a term means.
    Meant(Reach),
    /// Pods that must stay away from those that the term means.
    Averse(Reach),
    /// Pods that all terms mean.
    MeantByAll(Vec<Reach>),
    /// Pods among which one is spread, on the nodes that count.
    Spread(Reach, Filter),
}

/// Which nodes count for a spread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filter {
    /// Nodes must have all of these labels.
    pub(super) keys: Vec<usize>,
    /// They must meet this selector and affinity.
    pub(super) required: Option<usize>,
    /// Their taints must be tolerated.
    pub(super) tolerations: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Counter {
    pub(super) key: usize,
    pub(super) what: What,
    /// Somebody must obey it. What is only preferred does not force a node's hand.
    pub(super) hard: bool,
    /// For spreads: the domains over which the least is sought.
    pub(super) domains: Domains,
}

#[derive(Debug, Default)]
pub(super) struct Domains {
    /// The nodes that count.
    pub(super) sites: Bits,
    /// Those of nodes that exist.
    pub(super) existing: Bits,
    /// Those, and the ones that new nodes could add.
    pub(super) possible: Bits,
    /// New nodes can always add another one.
    pub(super) endless: bool,
    /// The pools whose new nodes may count.
    pub(super) pools: Bits,
}

/// A label by which pods are spread or gathered.
#[derive(Debug)]
pub(super) struct TopologyKey {
    pub(super) text: String,
    /// In order.
    pub(super) domains: Vec<String>,
    pub(super) by_site: Vec<Option<usize>>,
    pub(super) by_pool: Vec<PoolKey>,
}

/// Which domains a new node of a pool can be in.
#[derive(Debug)]
pub(super) enum PoolKey {
    EachItsOwn,
    Fixed(usize),
    BySlot(Vec<Option<usize>>),
    ByMachine(Vec<Option<usize>>),
    Custom { key: Key, values: Vec<(Value, usize)> },
    Absent,
}

impl Reach {
    pub(super) fn of_term(term: &PodTerm, namespace: &Namespace, own: &Labels) -> Self {
        let mut namespaces = term.namespaces.clone();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.name.as_ref().to_owned());
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        let keys = (&term.match_label_keys, &term.mismatch_label_keys);
        Self {
            namespaces,
            namespace_selector: term.namespace_selector.clone(),
            selector: term.selector.with_own(keys.0, keys.1, own),
        }
    }

    /// How kube-scheduler 1.36 reads a pod's own required term: a selector of namespaces that one without labels would
    /// meet (`NotIn`, `DoesNotExist`) means all of them to it. By the documentation, and for pods that run already, it
    /// means those that it selects.
    pub(super) fn as_its_own(&self) -> Self {
        let misread = |it: &Selector| it.selects(&Labels::new());
        if self.namespace_selector.as_ref().is_some_and(misread) {
            return Self { namespace_selector: Some(Selector::everything()), ..self.clone() };
        }
        self.clone()
    }

    pub(super) fn of_spread(spread: &Spread, namespace: &Namespace, own: &Labels) -> Self {
        Self {
            namespaces: vec![namespace.name.as_ref().to_owned()],
            namespace_selector: None,
            selector: spread.selector.with_own(&spread.match_label_keys, &[], own),
        }
    }

    pub(super) fn means(&self, namespace: &Namespace, labels: &Labels) -> bool {
        let theirs = self.namespaces.iter().any(|it| **it == *namespace.name)
            || self.namespace_selector.as_ref().is_some_and(|it| it.selects(&namespace.labels));
        theirs && self.selector.selects(labels)
    }

    /// Spreads count nobody with a selector that asks nothing, save the pod itself.
    fn counts(&self, namespace: &Namespace, labels: &Labels) -> bool {
        !self.selector.asks_nothing() && self.means(namespace, labels)
    }

    /// A label that every pod meant has with this value: where to look for the term.
    fn handle(&self) -> Option<(&str, &str)> {
        let Selector::All(all) = &self.selector else { return None };
        all.iter().find_map(|it| match (it.operator, it.values.as_slice()) {
            (Operator::In, [only]) => Some((it.key.as_str(), only.as_str())),
            _ => None,
        })
    }
}

/// Every counter, and how to find those that a pod is counted by.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) all: Vec<Counter>,
    known: BTreeMap<(usize, What), usize>,
    by_label: BTreeMap<(String, String), Vec<usize>>,
    others: Vec<usize>,
}

impl Counters {
    pub(super) fn find(&mut self, key: usize, what: What, hard: bool) -> usize {
        if let Some(at) = self.known.get(&(key, what.clone())) {
            self.all[*at].hard |= hard;
            return *at;
        }
        let at = self.all.len();
        let handle = match &what {
            What::Meant(it) | What::Averse(it) | What::Spread(it, _) => it.handle(),
            What::MeantByAll(all) => all.iter().find_map(Reach::handle),
        };
        match handle {
            Some((key, value)) => {
                self.by_label.entry((key.to_owned(), value.to_owned())).or_default().push(at);
            }
            None => self.others.push(at),
        }
        self.known.insert((key, what.clone()), at);
        self.all.push(Counter { key, what, hard, domains: Domains::default() });
        at
    }

    pub(super) fn known(&self, key: usize, what: What) -> Option<usize> {
        self.known.get(&(key, what)).copied()
    }

    /// Those that count a pod like this, and those of pods that must stay away from it.
    pub(super) fn concerning(&self, namespace: &Namespace, labels: &Labels) -> Concerning {
        let labelled = labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(&(key.clone(), value.clone())))
            .flatten();
        let mut candidates: Vec<usize> = labelled.chain(&self.others).copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let mut concerning = Concerning::default();
        for at in candidates {
            match &self.all[at].what {
                What::Meant(it) if it.means(namespace, labels) => concerning.counted_by.push(at),
                What::Averse(it) if it.means(namespace, labels) => concerning.shunned_by.push(at),
                What::MeantByAll(all) if all.iter().all(|it| it.means(namespace, labels)) => {
                    concerning.counted_by.push(at);
                }
                What::Spread(it, _) if it.counts(namespace, labels) => {
                    concerning.counted_by.push(at);
                }
                What::Meant(_) | What::Averse(_) | What::MeantByAll(_) | What::Spread(..) => {}
            }
        }
        concerning
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Concerning {
    pub(super) counted_by: Vec<usize>,
    pub(super) shunned_by: Vec<usize>,
}

impl TopologyKey {
    pub(super) fn new(
        text: &str,
        sites: &[&Node],
        leaving: &[&Node],
        pools: &[Template<'_>],
        vocabulary: &Vocabulary,
    ) -> Self {
        let of_sites = sites.iter().chain(leaving).filter_map(|it| it.labels.get(text).cloned());
        let of_pools = pools.iter().flat_map(|it| it.values(text, vocabulary));
        let domains: Vec<String> =
            of_sites.chain(of_pools).collect::<BTreeSet<_>>().into_iter().collect();
        let find = |value: &str| domains.binary_search_by(|it| it.as_str().cmp(value)).ok();
        let by_site = sites.iter().map(|it| it.labels.get(text).and_then(|it| find(it))).collect();
        let name = label::normalise(text);
        let by_pool = pools.iter().map(|pool| match pool.source(text, vocabulary) {
            Source::EachItsOwn => PoolKey::EachItsOwn,
            Source::Fixed(value) => find(&value).map_or(PoolKey::Absent, PoolKey::Fixed),
            Source::BySlot => {
                let values = pool.slots.iter().map(|it| it.labels.get(name));
                PoolKey::BySlot(values.map(|it| it.and_then(|it| find(it))).collect())
            }
            Source::ByMachine => {
                let values = (0..pool.machines.len()).map(|at| pool.value(at, name));
                PoolKey::ByMachine(values.map(|it| it.and_then(find)).collect())
            }
            Source::Custom => {
                let values = pool.values(text, vocabulary);
                let values = values.iter().filter_map(|it| Some((vocabulary.value(it), find(it)?)));
                PoolKey::Custom { key: vocabulary.key(name), values: values.collect() }
            }
            Source::Absent => PoolKey::Absent,
        });
        let by_pool = by_pool.collect();
        Self { text: text.to_owned(), domains, by_site, by_pool }
    }

    /// Each new node is a domain of its own.
    pub(super) fn fine(&self) -> bool {
        label::normalise(&self.text) == label::HOSTNAME
    }

    pub(super) fn find(&self, value: &str) -> Option<usize> {
        self.domains.binary_search_by(|it| it.as_str().cmp(value)).ok()
    }
}
