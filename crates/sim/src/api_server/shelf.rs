//! Where are the objects of one kind, and what became of them?

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use serde_json::Value;

use super::{Change, Compacted, Key, What};
use crate::json::{at, items, members, text};

/// About what etcd keeps in its five minutes in a busy cluster. Who lags more has to list again.
const LOG_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) objects: BTreeMap<Key, Rc<Value>>,
    log: VecDeque<Change>,
    /// Changes up to here are forgotten.
    forgotten: u64,
}

impl Shelf {
    pub(super) fn note(&mut self, revision: u64, what: What, object: Rc<Value>) {
        if self.log.len() >= LOG_MAX
            && let Some(oldest) = self.log.pop_front()
        {
            self.forgotten = oldest.revision;
        }
        self.log.push_back(Change { revision, what, object });
    }

    pub(super) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, Compacted> {
        if revision < self.forgotten {
            return Err(Compacted);
        }
        let first = self.log.partition_point(|it| it.revision <= revision);
        Ok(self.log.range(first..))
    }

    /// Everybody who watches was told of all changes up to this one.
    pub(super) fn forget_until(&mut self, revision: u64) {
        while let Some(oldest) = self.log.pop_front_if(|it| it.revision <= revision) {
            self.forgotten = oldest.revision;
        }
    }

    pub(super) fn forget(&mut self) {
        if let Some(newest) = self.log.back() {
            self.forgotten = newest.revision;
        }
        self.log.clear();
    }
}

/// Who is where and whose, so that nobody has to look at everything.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Kind and key, by UID.
    pub(super) known: BTreeMap<String, (usize, Key)>,
    /// Kind and key, by the UID of an owner.
    pub(super) owned: BTreeMap<String, BTreeSet<(usize, Key)>>,
    /// Pods, by node.
    pub(super) on: BTreeMap<String, BTreeSet<Key>>,
    /// Pods without a node.
    pub(super) nowhere: BTreeSet<Key>,
    /// Pods, by label and its value.
    labelled: BTreeMap<String, BTreeMap<String, BTreeSet<Key>>>,
}

impl Index {
    pub(super) fn replace(
        &mut self,
        kind: usize,
        pods: bool,
        key: &Key,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let uid = |it: &Value| text(it, &["metadata", "uid"]).to_owned();
        match (old, new) {
            (None, Some(new)) => {
                self.known.insert(uid(new), (kind, key.clone()));
            }
            (Some(old), None) => {
                self.known.remove(&uid(old));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        let owners = |it: Option<&Value>| -> Vec<String> {
            let listed = it.map_or(&[][..], |it| items(it, &["metadata", "ownerReferences"]));
            listed.iter().map(|it| text(it, &["uid"]).to_owned()).collect()
        };
        let (before, after) = (owners(old), owners(new));
        if before != after {
            for uid in before {
                drop_from(&mut self.owned, &uid, &(kind, key.clone()));
            }
            for uid in after {
                self.owned.entry(uid).or_default().insert((kind, key.clone()));
            }
        }
        if pods {
            self.relabel(key, old, new);
            let node = |it: &'_ Value| text(it, &["spec", "nodeName"]).to_owned();
            let (before, after) = (old.map(node), new.map(node));
            if before != after {
                match before.as_deref() {
                    None => {}
                    Some("") => {
                        self.nowhere.remove(key);
                    }
                    Some(node) => drop_from(&mut self.on, node, key),
                }
                match after {
                    None => {}
                    Some(node) if node.is_empty() => {
                        self.nowhere.insert(key.clone());
                    }
                    Some(node) => {
                        self.on.entry(node).or_default().insert(key.clone());
                    }
                }
            }
        }
    }

    fn relabel(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        let labels = |it: Option<&Value>| -> Vec<(String, String)> {
            let all = it.into_iter().flat_map(|it| members(it, &["metadata", "labels"]));
            all.filter_map(|(key, it)| Some((key.to_owned(), it.as_str()?.to_owned()))).collect()
        };
        let path = ["metadata", "labels"];
        if old.and_then(|it| at(it, &path)) == new.and_then(|it| at(it, &path)) {
            return;
        }
        for (label, value) in labels(old) {
            if let Some(values) = self.labelled.get_mut(&label) {
                drop_from(values, &value, key);
            }
        }
        for (label, value) in labels(new) {
            let values = self.labelled.entry(label).or_default();
            values.entry(value).or_default().insert(key.clone());
        }
    }

    /// The pods with this label, in all namespaces.
    pub(super) fn labelled(&self, label: &str, value: &str) -> impl Iterator<Item = &Key> {
        self.labelled.get(label).and_then(|it| it.get(value)).into_iter().flatten()
    }
}

fn drop_from<T: Ord>(index: &mut BTreeMap<String, BTreeSet<T>>, key: &str, value: &T) {
    if let Some(there) = index.get_mut(key) {
        there.remove(value);
        if there.is_empty() {
            index.remove(key);
        }
    }
}
