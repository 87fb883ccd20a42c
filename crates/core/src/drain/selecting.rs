//! Which budgets select a pod?
//!
//! Each budget stands under one label that its selector asks for, the one that the fewest others ask for: a pod looks at those that
//! stand under its own labels, and not at all of its namespace.

use std::collections::BTreeMap;

use super::Pod;
use super::eviction::Pdb;

/// Namespace, key and value.
type Label<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug)]
pub struct Selecting<'a> {
    pdbs: Vec<&'a Pdb>,
    by_label: BTreeMap<Label<'a>, Vec<usize>>,
    /// By their namespace: those that ask for no label with one value.
    others: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Selecting<'a> {
    pub fn new(pdbs: impl Iterator<Item = &'a Pdb>) -> Self {
        let pdbs: Vec<&Pdb> = pdbs.collect();
        let mut asked: BTreeMap<Label<'_>, usize> = BTreeMap::new();
        for label in pdbs.iter().flat_map(|it| labels(it)) {
            let asked = asked.entry(label).or_default();
            *asked = asked.saturating_add(1);
        }
        let (mut by_label, mut others) = (BTreeMap::new(), BTreeMap::new());
        for (at, pdb) in pdbs.iter().enumerate() {
            let stands: &mut Vec<usize> = match labels(pdb).min_by_key(|it| asked.get(it)) {
                Some(label) => by_label.entry(label).or_default(),
                None => others.entry(pdb.namespace.as_str()).or_default(),
            };
            stands.push(at);
        }
        Self { pdbs, by_label, others }
    }

    pub fn all(&self) -> &[&'a Pdb] {
        &self.pdbs
    }

    /// Where in [`Self::all`] those that select a pod are, in the order of their names.
    pub fn of(&self, pod: &Pod) -> Vec<usize> {
        let namespace = pod.id.namespace.as_str();
        let labels =
            pod.labels.iter().map(|(key, value)| (namespace, key.as_str(), value.as_str()));
        let labelled = labels.filter_map(|it| self.by_label.get(&it));
        let asked = self.others.get(namespace).into_iter().chain(labelled).flatten().copied();
        let mut found: Vec<usize> =
            asked.filter(|at| self.pdbs.get(*at).is_some_and(|it| it.selects(pod))).collect();
        found.sort_by_key(|at| self.pdbs.get(*at).map(|it| it.name.as_str()));
        found
    }
}

fn labels(pdb: &Pdb) -> impl Iterator<Item = Label<'_>> {
    let labels = pdb.selector.iter().flat_map(|it| &it.labels);
    labels.map(|(key, value)| (pdb.namespace.as_str(), key.as_str(), value.as_str()))
}
