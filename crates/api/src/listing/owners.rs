//! Which workload answers for a pod?
//!
//! `owner references → the topmost workload in the files`

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod as WirePod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{
    COMPLETION_INDEX, CRON_JOB, Copies, DAEMON_SET, Indexes, Listing, MADE_UP, ROLLOUT,
    ROLLOUT_HASH, TEMPLATE_HASH, Workload, change::written_alike, name, namespace,
};

const REVISIONS: [&str; 2] = ["deployment.kubernetes.io/revision", "rollout.argoproj.io/revision"];
const JOB: &str = "Job";

pub(super) type Key<'l> = (&'l str, &'l str, &'l str);

/// Who owns whom: kind, namespace and name.
pub(super) struct Owners<'l> {
    listing: &'l Listing,
    workloads: BTreeMap<Key<'l>, &'l Workload>,
    /// Pods by the workload in the files that answers for them.
    pods: BTreeMap<Key<'l>, BTreeSet<&'l str>>,
    nodes: BTreeMap<Key<'l>, BTreeSet<&'l str>>,
    /// Numbers that pods of Jobs have.
    indexes: BTreeMap<Key<'l>, BTreeSet<usize>>,
    /// `CronJob`s of which a run is under way, by namespace and name.
    running: BTreeSet<(&'l str, &'l str)>,
}

impl<'l> Owners<'l> {
    pub(super) fn new(listing: &'l Listing) -> Self {
        let all = listing.workloads.iter().map(|it| &it.value);
        let workloads = all.map(|it| (key(it), it)).collect();
        let mut owners = Self {
            listing,
            workloads,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            indexes: BTreeMap::new(),
            running: BTreeSet::new(),
        };
        owners.find_runs();
        for pod in listing.pods.iter().map(|it| &it.value.pod) {
            let Some(owner) = owners.of(&pod.metadata).map(key) else { continue };
            if ended(pod) {
                continue;
            }
            let bound = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
            let node = bound.filter(|it| !it.is_empty()).or_else(|| targeted(pod));
            owners.nodes.entry(owner).or_default().extend(node);
            if pod.metadata.deletion_timestamp.is_none() {
                owners.pods.entry(owner).or_default().insert(name(&pod.metadata));
                let labels = pod.metadata.labels.as_ref();
                let index = labels.and_then(|it| it.get(COMPLETION_INDEX)?.parse().ok());
                if let Some(index) = index {
                    owners.indexes.entry(owner).or_default().insert(index);
                }
            }
        }
        owners
    }

    /// By the Jobs that are not done yet, or by their pods where the Jobs are not in the files.
    fn find_runs(&mut self) {
        let jobs = self.listing.workloads.iter().map(|it| &it.value);
        let undone = jobs.filter(|it| it.kind == JOB && it.copies != Copies::Alike(0));
        let theirs = undone.filter_map(|job| {
            let owner = controller(&job.meta).filter(|it| it.kind == CRON_JOB)?;
            Some((namespace(&job.meta), owner.name.as_str()))
        });
        self.running.extend(theirs);
        let pods = self.listing.pods.iter().map(|it| &it.value.pod).filter(|it| !ended(it));
        let theirs = pods.filter_map(|pod| {
            let job = controller(&pod.metadata).filter(|it| it.kind == JOB)?;
            let namespace = namespace(&pod.metadata);
            // `report-29384720` is made by the CronJob `report`.
            let (cron, number) = job.name.rsplit_once('-')?;
            let unread = !self.workloads.contains_key(&(JOB, namespace, job.name.as_str()));
            let numbered = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
            (unread && numbered).then_some((namespace, cron))
        });
        let theirs: Vec<_> = theirs.collect();
        self.running.extend(theirs);
    }

    /// The workload in the files that answers for this object.
    pub(super) fn of(&self, meta: &'l ObjectMeta) -> Option<&'l Workload> {
        // Each run of a CronJob answers for itself.
        let owner = controller(meta).filter(|it| it.kind != CRON_JOB)?;
        let namespace = namespace(meta);
        let find = |kind: &'l str, called: &'l str| {
            self.workloads.get(&(kind, namespace, called)).copied()
        };
        let direct = find(&owner.kind, &owner.name);
        if owner.kind != "ReplicaSet" {
            return direct;
        }
        let above = match direct {
            Some(set) => controller(&set.meta).and_then(|it| find(&it.kind, &it.name)),
            // `web-5d4f8c7b9` is made by the Deployment `web`, or by the Rollout of that name.
            None => owner
                .name
                .rsplit_once('-')
                .and_then(|(it, _)| find("Deployment", it).or_else(|| find(ROLLOUT, it)))
                .filter(|it| selected_by(it, meta)),
        };
        above.or(direct)
    }

    /// Whether another workload in the files speaks for this one.
    pub(super) fn spoken_for(&self, workload: &'l Workload) -> bool {
        let meta = &workload.meta;
        let under_way =
            workload.kind == CRON_JOB && self.running.contains(&(namespace(meta), name(meta)));
        under_way || self.of(meta).is_some()
    }

    /// How many pods of it the files do not show. Of daemons, always several.
    pub(super) fn copies_to_come(&self, workload: &'l Workload) -> usize {
        let count = match &workload.copies {
            Copies::OnEveryNode => return 2,
            Copies::Alike(count) | Copies::Numbered { count, .. } => *count,
        };
        if self.spoken_for(workload) {
            return 0;
        }
        count.saturating_sub(self.pods_of(workload).len()).max(self.set_lacks(workload))
    }

    /// How many pods the set of a live `Deployment`'s template has yet to make. While it rolls out, pods of both revisions are
    /// there, and the set says how many it will have: to count them all would hide those to come.
    pub(super) fn set_lacks(&self, workload: &'l Workload) -> usize {
        if workload.meta.uid.is_none() {
            return 0;
        }
        let Some(key) = hash_key(workload) else { return 0 };
        let lacks = |set: &'l Workload| {
            let theirs = |pod: &&WirePod| {
                let owner = controller(&pod.metadata).filter(|it| it.kind == set.kind);
                owner.is_some_and(|it| it.name == name(&set.meta))
                    && namespace(&pod.metadata) == namespace(&set.meta)
                    && pod.metadata.deletion_timestamp.is_none()
                    && !ended(pod)
            };
            let pods = self.listing.pods.iter().map(|it| &it.value.pod);
            set.copies.count().saturating_sub(pods.filter(theirs).count())
        };
        self.current_sets(workload, key).map(lacks).sum()
    }

    pub(super) fn pods_of(&self, workload: &'l Workload) -> BTreeSet<&'l str> {
        self.pods.get(&key(workload)).cloned().unwrap_or_default()
    }

    /// The numbers that the next pods of an Indexed Job will have.
    pub(super) fn open_indexes(&self, workload: &'l Workload) -> Vec<usize> {
        let taken = self.indexes.get(&key(workload));
        let open = workload.indexes.iter().flat_map(Indexes::open);
        let free = open.filter(|it| taken.is_none_or(|taken| !taken.contains(it)));
        free.take(workload.copies.count()).collect()
    }

    pub(super) fn nodes_with(&self, workload: &'l Workload) -> BTreeSet<&'l str> {
        self.nodes.get(&key(workload)).cloned().unwrap_or_default()
    }

    /// The label that tells the pods of a `Deployment` as it is now from those of other revisions: key and value. One that
    /// no pod has yet, where the `ReplicaSet` of its template is not in the files.
    pub(super) fn template_hash(&self, workload: &'l Workload) -> Option<(&'static str, String)> {
        let key = hash_key(workload)?;
        let revision = |it: &&Workload| {
            let annotations = it.meta.annotations.as_ref();
            let written = annotations.and_then(|all| REVISIONS.iter().find_map(|it| all.get(*it)));
            written.and_then(|it| it.parse::<u64>().ok())
        };
        let sets = self.current_sets(workload, key);
        let newest = sets.max_by_key(|it| (revision(it), name(&it.meta)));
        let known = newest.and_then(|it| hash_of(it, key).cloned());
        let (namespace, called) = (namespace(&workload.meta), name(&workload.meta));
        Some((key, known.unwrap_or_else(|| format!("{namespace}{MADE_UP}{called}"))))
    }

    /// The sets in the files that were made for the template as it is now: one of them, but where somebody has made others.
    fn current_sets(
        &self,
        workload: &'l Workload,
        key: &'static str,
    ) -> impl Iterator<Item = &'l Workload> {
        let sets = self.listing.workloads.iter().map(|it| &it.value);
        sets.filter(move |it| {
            it.kind == "ReplicaSet"
                && self.of(&it.meta).is_some_and(|it| std::ptr::eq(it, workload))
                && of_this_revision(workload, it, key)
        })
    }
}

/// The label by which the sets of such a workload know their pods.
fn hash_key(workload: &Workload) -> Option<&'static str> {
    match workload.kind {
        "Deployment" => Some(TEMPLATE_HASH),
        ROLLOUT => Some(ROLLOUT_HASH),
        _ => None,
    }
}

fn hash_of<'l>(set: &'l Workload, key: &str) -> Option<&'l String> {
    let template = set.template.metadata.as_ref().and_then(|it| it.labels.as_ref());
    [set.meta.labels.as_ref(), template].into_iter().flatten().find_map(|it| it.get(key))
}

/// Whether the set was made for the template as it is now. What a person wrote lacks what an API server has filled in.
fn of_this_revision(workload: &Workload, set: &Workload, key: &str) -> bool {
    if workload.meta.uid.is_none() {
        return written_alike(&workload.template, &set.template);
    }
    let marks = |it: &Workload| {
        let meta = it.template.metadata.clone().unwrap_or_default();
        let mut labels = meta.labels.unwrap_or_default();
        labels.remove(key);
        // By an annotation somebody starts all anew.
        (labels, meta.annotations.unwrap_or_default())
    };
    marks(workload) == marks(set) && workload.template.spec == set.template.spec
}

/// A name alone is no proof.
fn selected_by(workload: &Workload, meta: &ObjectMeta) -> bool {
    let label = |key: &String| meta.labels.as_ref().and_then(|it| it.get(key));
    workload.selects.iter().all(|(key, value)| label(key) == Some(value))
}

pub(super) fn key(workload: &Workload) -> Key<'_> {
    (workload.kind, namespace(&workload.meta), name(&workload.meta))
}

/// A pod that will not run again takes no room.
pub(crate) fn ended(pod: &WirePod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The node that a daemon's pod was made for and has not been bound to yet.
pub(super) fn targeted(pod: &WirePod) -> Option<&str> {
    controller(&pod.metadata).filter(|it| it.kind == DAEMON_SET)?;
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields =
        required.node_selector_terms.iter().flat_map(|it| it.match_fields.iter().flatten());
    fields.flat_map(|it| it.values.iter().flatten()).map(String::as_str).next()
}

pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|it| it.controller == Some(true))
}
