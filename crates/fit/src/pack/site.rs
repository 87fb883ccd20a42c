//! What of a node is the same in every packing?
//!
//! `node → node + tally`
//!
//! A fleet is packed onto again and again, and hardly a node changes in between. So what its pods leave of it, and which
//! of them others have to mind, is worked out when the node is read, and again only when it is edited.

use std::ops::Deref;

use super::measure::{CPU_AT, MEMORY_AT, PODS_AT, measured};
use crate::{
    capacity::{Amounts, CPU, MEMORY, PODS},
    node::Node,
    pod::{Demand, Pod, Volume},
};

/// A node and what it comes to. Reading goes through to the node; whoever changes it says how far that goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    node: Node,
    tally: Tally,
}

/// What pods leave of a node, and those of them that others have to mind. In the units of `measure`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// What is left of processors, memory and pods: less than nothing where too much was promised.
    pub(super) left: [i64; PODS_AT + 1],
    /// And of every other resource that the node has or somebody there asks for, by name.
    others: Vec<(Box<str>, i64)>,
    /// Volumes that each pod has for itself, by driver.
    own_volumes: Vec<(Box<str>, i64)>,
    /// Places among its pods: who keeps others away, who has a port of the node, and who has volumes that can be shared.
    pub(super) averse: Vec<u32>,
    pub(super) with_ports: Vec<u32>,
    pub(super) with_volumes: Vec<u32>,
}

pub(super) type Counted<'a> = (&'a Node, &'a Tally);

impl Site {
    pub fn new(node: Node) -> Self {
        let tally = Tally::of(&node);
        Self { node, tally }
    }

    pub fn into_node(self) -> Node {
        self.node
    }

    /// Whatever is changed of it is counted again.
    pub fn edit(&mut self, change: impl FnOnce(&mut Node)) {
        change(&mut self.node);
        self.tally = Tally::of(&self.node);
    }

    pub fn set_leaving(&mut self, leaving: bool) {
        self.node.leaving = leaving;
    }

    pub fn set_fades(&mut self, fades: bool) {
        self.node.fades = fades;
    }

    pub fn set_closed(&mut self, closed: bool) {
        self.node.closed = closed;
    }

    pub(super) fn counted(&self) -> Counted<'_> {
        (&self.node, &self.tally)
    }
}

impl From<Node> for Site {
    fn from(node: Node) -> Self {
        Self::new(node)
    }
}

impl Deref for Site {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Tally {
    pub(super) fn of(node: &Node) -> Self {
        let mut tally = Self::default();
        for (name, amount) in &node.allocatable {
            let place = place_of(name);
            tally.give(name, place, measured(place, *amount));
        }
        tally.take(&node.set_aside);
        for (at, pod) in (0_u32..).zip(&node.pods) {
            tally.host(at, pod);
        }
        tally
    }

    /// What is left of a resource that is none of the first three.
    pub(super) fn left_of(&self, resource: &str) -> i64 {
        found(&self.others, resource)
    }

    /// How many volumes its pods have for themselves.
    pub(super) fn own_volumes_of(&self, driver: &str) -> i64 {
        found(&self.own_volumes, driver)
    }

    fn host(&mut self, at: u32, pod: &Pod) {
        let Demand { requests, anti_affinity, host_ports, volumes, .. } = &*pod.demand;
        // One pod is one pod, whatever it says.
        let pods = self.left[PODS_AT].saturating_sub(1);
        self.take(requests);
        self.left[PODS_AT] = pods;
        for it in volumes.iter().filter(|it| it.own).filter_map(|it| it.driver.as_deref()) {
            add(&mut self.own_volumes, it, 1);
        }
        let shared = |it: &Volume| !it.own;
        let marks = [
            (&mut self.averse, !anti_affinity.is_empty()),
            (&mut self.with_ports, !host_ports.is_empty()),
            (&mut self.with_volumes, volumes.iter().any(shared)),
        ];
        for (list, _) in marks.into_iter().filter(|(_, it)| *it) {
            list.push(at);
        }
    }

    fn take(&mut self, amounts: &Amounts) {
        for (name, amount) in amounts {
            let place = place_of(name);
            let amount = measured(place, *amount).max(0);
            self.give(name, place, amount.saturating_neg());
        }
    }

    fn give(&mut self, name: &str, place: usize, amount: i64) {
        match self.left.get_mut(place) {
            Some(left) => *left = left.saturating_add(amount),
            None => add(&mut self.others, name, amount),
        }
    }
}

/// Every other resource is beyond the first three.
fn place_of(resource: &str) -> usize {
    match resource {
        CPU => CPU_AT,
        MEMORY => MEMORY_AT,
        PODS => PODS_AT,
        _ => PODS_AT + 1,
    }
}

fn found(list: &[(Box<str>, i64)], name: &str) -> i64 {
    list.iter().find(|(it, _)| **it == *name).map_or(0, |(_, amount)| *amount)
}

fn add(list: &mut Vec<(Box<str>, i64)>, name: &str, amount: i64) {
    match list.iter_mut().find(|(it, _)| **it == *name) {
        Some((_, sum)) => *sum = sum.saturating_add(amount),
        None => list.push((name.into(), amount)),
    }
}
