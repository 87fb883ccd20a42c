//! Which volumes do pods use, and who has to be read again when one changes?

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod as WirePod};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::storage::v1::StorageClass;
use nodemolt_core::seen::{Node, PodKey};

use crate::listing::around::{Around, default_class};
use crate::listing::owners::ended;
use crate::listing::volume::claims_of;
use crate::listing::{name, namespace};

/// Drivers that do not tell the scheduler where they have room. Of others nobody here knows: what they still have to make is
/// not foreseen.
const COUNT_NOTHING: [&str; 4] =
    ["ebs.csi.aws.com", "efs.csi.aws.com", "fsx.csi.aws.com", "s3.csi.aws.com"];

/// A pod as it came, and the fields of its spec that our types do not have.
pub(super) type Mounting = (WirePod, Vec<String>);

/// What is known of volumes.
#[derive(Debug, Default)]
pub(super) struct Storage {
    pub(super) claims: BTreeMap<String, BTreeMap<String, PersistentVolumeClaim>>,
    pub(super) volumes: BTreeMap<String, PersistentVolume>,
    pub(super) classes: BTreeMap<String, StorageClass>,
    /// Of each driver, by node.
    pub(super) limits: BTreeMap<String, BTreeMap<String, u32>>,
    /// Pods that have volumes, as they came: what they demand depends on all of this.
    pods: BTreeMap<PodKey, Mounting>,
    /// By namespace and claim.
    users: BTreeMap<String, BTreeMap<String, BTreeSet<PodKey>>>,
}

impl Storage {
    /// Takes note of a pod, and says which others have to be read again: those that share a claim with it.
    pub(super) fn note(
        &mut self,
        key: &PodKey,
        pod: &WirePod,
        unknown: &[String],
    ) -> BTreeSet<PodKey> {
        let claims = mounted(pod);
        if claims.is_empty() {
            return self.forget(key);
        }
        let same = |it: &Mounting| mounted(&it.0) == claims && ended(&it.0) == ended(pod);
        let known = self.pods.get(key).is_some_and(same);
        let mut again = if known { BTreeSet::new() } else { self.forget(key) };
        self.pods.insert(key.clone(), (pod.clone(), unknown.to_vec()));
        if known || ended(pod) {
            return again;
        }
        let of = self.users.entry(namespace(&pod.metadata).to_owned()).or_default();
        for claim in claims {
            let users = of.entry(claim).or_default();
            again.extend(users.iter().cloned());
            users.insert(key.clone());
        }
        again
    }

    /// Who has to be read again when the pod is gone.
    pub(super) fn forget(&mut self, key: &PodKey) -> BTreeSet<PodKey> {
        let Some((pod, _)) = self.pods.remove(key) else { return BTreeSet::new() };
        let mut again = BTreeSet::new();
        if let Some(of) = self.users.get_mut(namespace(&pod.metadata)) {
            for claim in mounted(&pod) {
                if let Some(users) = of.get_mut(&claim) {
                    users.remove(key);
                    again.extend(users.iter().cloned());
                    if users.is_empty() {
                        of.remove(&claim);
                    }
                }
            }
        }
        again
    }

    pub(super) fn pod(&self, key: &PodKey) -> Option<&Mounting> {
        self.pods.get(key)
    }

    pub(super) fn of_claim(&self, namespace: &str, claim: &str) -> BTreeSet<PodKey> {
        self.users.get(namespace).and_then(|it| it.get(claim)).cloned().unwrap_or_default()
    }

    pub(super) fn of_volume(&self, volume: &str) -> BTreeSet<PodKey> {
        let bound = self.claims.iter().flat_map(|(namespace, claims)| {
            let theirs = claims.iter().filter(|(_, it)| {
                it.spec.as_ref().and_then(|it| it.volume_name.as_deref()) == Some(volume)
            });
            theirs.map(move |(claim, _)| self.of_claim(namespace, claim))
        });
        bound.flatten().collect()
    }

    pub(super) fn all(&self) -> BTreeSet<PodKey> {
        self.pods.keys().cloned().collect()
    }
}

/// Claims by name, and those that are made for the pod alone.
fn mounted(pod: &WirePod) -> BTreeSet<String> {
    let spec = pod.spec.as_ref();
    let volumes = spec.into_iter().flat_map(|it| it.volumes.iter().flatten());
    let own = volumes.filter(|it| it.ephemeral.is_some());
    let own = own.map(|it| format!("{}-{}", name(&pod.metadata), it.name));
    claims_of(spec).into_iter().map(str::to_owned).chain(own).collect()
}

/// What is around a pod in the cluster.
pub(super) struct Surroundings<'a> {
    pub(super) storage: &'a Storage,
    pub(super) nodes: &'a BTreeMap<String, Node>,
}

impl Around for Surroundings<'_> {
    fn claim(&self, namespace: &str, name: &str) -> Option<&PersistentVolumeClaim> {
        self.storage.claims.get(namespace)?.get(name)
    }

    fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.storage.volumes.get(name)
    }

    fn storage_class(&self, name: &str) -> Option<&StorageClass> {
        self.storage.classes.get(name)
    }

    fn default_storage_class(&self) -> Option<&StorageClass> {
        default_class(self.storage.classes.values())
    }

    fn users(&self, namespace: &str, claim: &str) -> usize {
        let of = self.storage.users.get(namespace).and_then(|it| it.get(claim));
        of.map_or(0, BTreeSet::len)
    }

    fn has_node(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    /// Only templates ask, and of those only what daemons take: their overhead is in the pods.
    fn runtime_class(&self, _: &str) -> Option<&RuntimeClass> {
        None
    }

    /// Pods that were admitted have it written; daemons are not placed by it.
    fn priority(&self, _: &str) -> Option<i32> {
        Some(0)
    }

    fn default_priority(&self) -> i32 {
        0
    }

    fn counts_capacity(&self, driver: &str) -> bool {
        !COUNT_NOTHING.contains(&driver)
    }

    fn missing(&self, _: &str) -> String {
        "which is not there".to_owned()
    }
}
