//! Which budgets select a pod?
//!
//! Each budget stands under one label that its selector asks for, the one that the fewest others ask for: a pod looks at those that
//! stand under its own labels, and not at all of its namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pod;
use super::eviction::Pdb;

/// Namespace, key and value.
type Label<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug, Clone, Default)]
pub struct Selecting {
    pdbs: Vec<Arc<Pdb>>,
    /// Of each what it allows, or nothing where it lets nobody go whatever that says. Side by side: budgets are many, and
    /// most of them are asked in every plan.
    open: Vec<i32>,
    places: Arc<Places>,
}

/// Where they stand: it follows from what they select alone.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// By namespace, key and value.
    by_label: BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<usize>>>>,
    /// By their namespace: those that ask for no label with one value.
    others: BTreeMap<String, Vec<usize>>,
}

impl Selecting {
    pub fn new(pdbs: impl Iterator<Item = Arc<Pdb>>) -> Self {
        let pdbs: Vec<Arc<Pdb>> = pdbs.collect();
        let mut asked: BTreeMap<Label<'_>, usize> = BTreeMap::new();
        for label in pdbs.iter().flat_map(|it| labels(it)) {
            let asked = asked.entry(label).or_default();
            *asked = asked.saturating_add(1);
        }
        let mut places = Places::default();
        for (at, pdb) in pdbs.iter().enumerate() {
            let stands = match labels(pdb).min_by_key(|it| asked.get(it)) {
                Some((namespace, key, value)) => {
                    let keys = places.by_label.entry(namespace.to_owned()).or_default();
                    keys.entry(key.to_owned()).or_default().entry(value.to_owned()).or_default()
                }
                None => places.others.entry(pdb.namespace.clone()).or_default(),
            };
            stands.push(at);
        }
        let open = pdbs.iter().map(|it| it.open()).collect();
        Self { pdbs, open, places: Arc::new(places) }
    }

    /// The same as long as nobody has come, has gone or selects others.
    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// What one allows, or nothing where it lets nobody go whatever that says.
    pub(super) fn open(&self, at: usize) -> i32 {
        self.open.get(at).copied().unwrap_or(0)
    }

    pub fn all(&self) -> &[Arc<Pdb>] {
        &self.pdbs
    }

    /// In the place of one that selects the same. Whether it does.
    pub fn renew(&mut self, at: usize, pdb: &Arc<Pdb>) -> bool {
        let Some(known) = self.pdbs.get_mut(at) else { return false };
        let same = (&known.namespace, &known.name, &known.selector)
            == (&pdb.namespace, &pdb.name, &pdb.selector);
        if same {
            *known = Arc::clone(pdb);
            if let Some(open) = self.open.get_mut(at) {
                *open = pdb.open();
            }
        }
        same
    }

    /// Where in [`Self::all`] those that select a pod are, in the order of their names.
    pub fn of(&self, pod: &Pod) -> Vec<usize> {
        let namespace = pod.id.namespace.as_str();
        let keys = self.places.by_label.get(namespace);
        let labels = keys.into_iter().flat_map(|keys| {
            let labelled = |(key, value): (&String, &String)| keys.get(key)?.get(value);
            pod.labels.iter().filter_map(labelled)
        });
        let others = self.places.others.get(namespace);
        let asked = others.into_iter().chain(labels).flatten().copied();
        let mut found: Vec<usize> =
            asked.filter(|at| self.pdbs.get(*at).is_some_and(|it| it.selects(pod))).collect();
        if found.len() > 1 {
            found.sort_by_key(|at| self.pdbs.get(*at).map(|it| it.name.as_str()));
        }
        found
    }
}

fn labels(pdb: &Pdb) -> impl Iterator<Item = Label<'_>> {
    let labels = pdb.selector.iter().flat_map(|it| &it.labels);
    labels.map(|(key, value)| (pdb.namespace.as_str(), key.as_str(), value.as_str()))
}
