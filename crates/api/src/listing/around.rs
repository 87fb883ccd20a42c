//! What is around a pod?
//!
//! Claims, volumes and classes that what it demands depends on: from files, or from what watches told.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    node::v1::RuntimeClass,
    storage::v1::StorageClass,
};

use super::{
    Listing,
    limit::OfContainers,
    name, namespace,
    owners::{Owners, ended},
    volume::claims_of,
};

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(crate) trait Around {
    fn claim(&self, namespace: &str, name: &str) -> Option<&PersistentVolumeClaim>;
    fn volume(&self, name: &str) -> Option<&PersistentVolume>;
    fn storage_class(&self, name: &str) -> Option<&StorageClass>;
    fn default_storage_class(&self) -> Option<&StorageClass>;
    /// How many pods use a claim, or will.
    fn users(&self, namespace: &str, claim: &str) -> usize;
    fn has_node(&self, name: &str) -> bool;
    fn runtime_class(&self, name: &str) -> Option<&RuntimeClass>;
    fn priority(&self, class: &str) -> Option<i32>;
    fn default_priority(&self) -> i32;
    /// The `DeviceClass` that gives out this extended resource, where one is known.
    fn device_class(&self, _resource: &str) -> Option<&str> {
        None
    }
    /// Whether the driver tells the scheduler where it has room for how much, and the scheduler asks.
    fn counts_capacity(&self, _driver: &str) -> bool {
        false
    }
    /// What limit ranges do to the containers of a namespace, where they are known.
    fn limit_ranges(&self, _namespace: &str) -> Vec<OfContainers> {
        Vec::new()
    }
    /// What is said of something that is not there.
    /// `resource` is what `kubectl get` calls it.
    fn missing(&self, resource: &str) -> String;
}

/// What files say.
pub(super) struct Volumes<'l> {
    listing: &'l Listing,
    default_class: Option<&'l StorageClass>,
    /// Pods that use a claim and have not ended, and those that workloads still stand for.
    users: BTreeMap<(&'l str, &'l str), usize>,
}

impl<'l> Volumes<'l> {
    pub(super) fn new(listing: &'l Listing, owners: &Owners<'l>) -> Self {
        let mut users: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for pod in listing.pods.iter().map(|it| &it.value.pod).filter(|it| !ended(it)) {
            for claim in claims_of(pod.spec.as_ref()) {
                *users.entry((namespace(&pod.metadata), claim)).or_default() += 1;
            }
        }
        for workload in listing.workloads.iter().map(|it| &it.value) {
            let to_come = owners.copies_to_come(workload);
            for claim in claims_of(workload.template.spec.as_ref()) {
                let users = users.entry((namespace(&workload.meta), claim)).or_default();
                *users = users.saturating_add(to_come);
            }
        }
        let default_class = default_class(listing.storage_classes.values());
        Self { listing, default_class, users }
    }
}

/// Of several defaults the API server takes the newest.
pub(crate) fn default_class<'c>(
    classes: impl Iterator<Item = &'c StorageClass>,
) -> Option<&'c StorageClass> {
    let default = |it: &&StorageClass| {
        let annotations = it.metadata.annotations.as_ref();
        annotations.and_then(|it| it.get(DEFAULT_CLASS)).is_some_and(|it| it == "true")
    };
    classes
        .filter(default)
        .max_by_key(|it| (it.metadata.creation_timestamp.clone(), name(&it.metadata)))
}

impl Around for Volumes<'_> {
    fn claim(&self, namespace: &str, name: &str) -> Option<&PersistentVolumeClaim> {
        self.listing.claims.get(&(namespace.to_owned(), name.to_owned()))
    }

    fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.listing.volumes.get(name)
    }

    fn storage_class(&self, name: &str) -> Option<&StorageClass> {
        self.listing.storage_classes.get(name)
    }

    fn default_storage_class(&self) -> Option<&StorageClass> {
        self.default_class
    }

    fn users(&self, namespace: &str, claim: &str) -> usize {
        self.users.get(&(namespace, claim)).copied().unwrap_or(0)
    }

    fn has_node(&self, called: &str) -> bool {
        self.listing.nodes.iter().any(|it| name(&it.value.metadata) == called)
    }

    fn runtime_class(&self, name: &str) -> Option<&RuntimeClass> {
        self.listing.runtime_classes.get(name)
    }

    fn priority(&self, class: &str) -> Option<i32> {
        self.listing.priority_classes.get(class).map(|it| it.value)
    }

    fn default_priority(&self) -> i32 {
        let classes = self.listing.priority_classes.values();
        let defaults = classes.filter(|it| it.global_default == Some(true)).map(|it| it.value);
        defaults.min().unwrap_or(0)
    }

    fn device_class(&self, resource: &str) -> Option<&str> {
        self.listing.device_classes.get(resource).map(String::as_str)
    }

    fn counts_capacity(&self, driver: &str) -> bool {
        let driver = self.listing.csi_drivers.get(driver);
        driver.is_some_and(|it| it.spec.storage_capacity == Some(true))
    }

    fn limit_ranges(&self, namespace: &str) -> Vec<OfContainers> {
        let of = self.listing.limit_ranges.get(namespace);
        of.into_iter().flat_map(|it| it.values().flatten().cloned()).collect()
    }

    fn missing(&self, resource: &str) -> String {
        format!("which is not in the files: add what `kubectl get {resource} -o yaml` prints")
    }
}
