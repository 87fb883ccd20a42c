//! Which pods are of one kind?
//!
//! `pods × the labels that anybody asks for → essence`, equal for pods of which each could stand for the other
//!
//! The pods of a `StatefulSet` have their own names in their labels, and claims of their own. Nobody asks for either, so
//! twenty thousand of them are one kind, and are looked at once.

use std::{cmp::Ordering, collections::BTreeSet};

use crate::{
    pod::{Demand, Namespace, Pod, PodTerm},
    pool::Pool,
    selector::{NodeTerm, Selector},
};

/// Keys of labels that some pod, daemon or running pod asks about others.
#[derive(Debug, Default)]
pub(super) struct Mentioned<'a>(BTreeSet<&'a str>);

impl<'a> Mentioned<'a> {
    /// Of those who run only whom they keep away matters.
    pub(super) fn new(
        pods: &'a [Pod],
        averse: impl Iterator<Item = &'a Pod>,
        pools: &[&'a Pool],
    ) -> Self {
        let daemons = pools.iter().flat_map(|it| &it.daemons);
        let mut mentioned = Self::default();
        let mut seen: BTreeSet<*const Demand> = BTreeSet::new();
        // Most often it is the one before once more.
        let mut before: Option<*const Demand> = None;
        let mut new = |it: &Demand| {
            let it = std::ptr::from_ref(it);
            before.replace(it) != Some(it) && seen.insert(it)
        };
        for demand in pods.iter().chain(daemons).map(|it| &*it.demand) {
            if new(demand) {
                mentioned.hear(demand);
            }
        }
        for demand in averse.map(|it| &*it.demand) {
            if new(demand) {
                mentioned.terms(demand.anti_affinity.iter());
            }
        }
        mentioned
    }

    fn hear(&mut self, demand: &'a Demand) {
        let preferred = demand.preferred_affinity.iter().chain(&demand.preferred_anti_affinity);
        self.terms(demand.affinity.iter().chain(&demand.anti_affinity));
        self.terms(preferred.map(|it| &it.term));
        for it in &demand.spread {
            self.selector(&it.selector);
            self.keys(&it.match_label_keys);
        }
    }

    fn terms(&mut self, terms: impl Iterator<Item = &'a PodTerm>) {
        for it in terms {
            self.selector(&it.selector);
            self.keys(&it.match_label_keys);
            self.keys(&it.mismatch_label_keys);
        }
    }

    fn selector(&mut self, selector: &'a Selector) {
        match selector {
            Selector::Nothing => {}
            Selector::All(all) => self.0.extend(all.iter().map(|it| it.key.as_str())),
        }
    }

    fn keys(&mut self, keys: &'a [String]) {
        self.0.extend(keys.iter().map(String::as_str));
    }
}

/// A volume as it decides where a pod goes. Of one that is made for its pod alone, the handle does not.
type EssentialVolume<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a [NodeTerm]>);

/// Everything about a pod but its name, and what of it nobody asks for.
#[derive(Debug)]
pub(super) struct Essence<'a> {
    order: u8,
    moves_once: bool,
    pool: Option<&'a str>,
    namespace: &'a Namespace,
    labels: Vec<(&'a str, &'a str)>,
    volumes: Vec<EssentialVolume<'a>>,
    /// For the rest.
    demand: &'a Demand,
}

impl<'a> Essence<'a> {
    pub(super) fn new(pod: &'a Pod, mentioned: &Mentioned<'_>) -> Self {
        let demand = &*pod.demand;
        let labels = demand.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut volumes: Vec<EssentialVolume<'_>> = demand
            .volumes
            .iter()
            .map(|it| {
                let handle = (!it.own).then_some(it.handle.as_str());
                (handle, it.driver.as_deref(), it.reach.as_deref())
            })
            .collect();
        volumes.sort_unstable();
        let labels = labels.filter(|(key, _)| mentioned.0.contains(key)).collect();
        let Pod { order, moves_once, pool, namespace, .. } = pod;
        let (order, moves_once, pool) = (*order, *moves_once, pool.as_deref());
        Self { order, moves_once, pool, namespace, labels, volumes, demand }
    }

    /// By what two are compared. Whoever adds a field to a demand is asked here whether it makes a difference.
    fn compared(&self) -> impl Ord {
        let Demand {
            labels: _,
            priority,
            requests,
            node_selector,
            node_terms,
            preferred_nodes,
            tolerations,
            affinity,
            anti_affinity,
            preferred_affinity,
            preferred_anti_affinity,
            spread,
            host_ports,
            volumes: _,
            gates,
            unmodelled,
        } = self.demand;
        let turn = (self.order, self.moves_once, self.pool);
        let itself = (turn, self.namespace, &self.labels, priority, requests);
        let nodes = (node_selector, node_terms, preferred_nodes, tolerations);
        let others = (affinity, anti_affinity, preferred_affinity, preferred_anti_affinity, spread);
        (itself, nodes, others, host_ports, &self.volumes, gates, unmodelled)
    }
}

impl Ord for Essence<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compared().cmp(&other.compared())
    }
}

impl PartialOrd for Essence<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Essence<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Essence<'_> {}
