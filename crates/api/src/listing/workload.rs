//! For how many pods does this stand?
//!
//! A workload is read as its template and the number of copies that should run. Which of them exist
//! already is found out later, when all files are read.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job, JobSpec, JobStatus},
    core::v1::{PodTemplateSpec, ReplicationController},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use serde_json::Value;

use super::{Copies, Indexes, MADE_UP, Workload, name};
use crate::problem::{Finding, quoted};

/// More than a whole cluster of Kubernetes is made for (150,000 pods): somebody leaned on a key.
pub(super) const COPIES_MAX: usize = 200_000;
const INDEXED: &str = "Indexed";
/// Old and new labels of a Job's pods: the name of the Job, and its uid.
const JOB_NAMES: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const JOB_UIDS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(super) fn deployment(it: Deployment) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let copies = Copies::Alike(count("spec.replicas", spec.replicas)?);
    let workload =
        Workload::new("Deployment", it.metadata, spec.template, copies).counted(spec.replicas);
    selected(workload.selecting(Some(spec.selector)))
}

/// Argo's `Rollout`, v1alpha1: what says how many pods there are and of what kind. The rest is named so that a
/// misspelt field is told from one that is only of no interest here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rollout {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    spec: RolloutSpec,
    #[serde(rename = "status")]
    _status: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RolloutSpec {
    replicas: Option<i32>,
    template: Option<PodTemplateSpec>,
    workload_ref: Option<Value>,
    selector: Option<LabelSelector>,
    #[serde(rename = "strategy")]
    _strategy: Option<Value>,
    #[serde(rename = "analysis")]
    _analysis: Option<Value>,
    #[serde(rename = "rollbackWindow")]
    _rollback_window: Option<Value>,
    #[serde(rename = "minReadySeconds")]
    _min_ready_seconds: Option<i32>,
    #[serde(rename = "revisionHistoryLimit")]
    _revision_history_limit: Option<i32>,
    #[serde(rename = "paused")]
    _paused: Option<bool>,
    #[serde(rename = "progressDeadlineSeconds")]
    _progress_deadline_seconds: Option<i32>,
    #[serde(rename = "progressDeadlineAbort")]
    _progress_deadline_abort: Option<bool>,
    #[serde(rename = "restartAt")]
    _restart_at: Option<String>,
}

impl Rollout {
    /// Whether its template is that of another object, whose replicas then are not its own.
    pub(super) fn refers(&self) -> bool {
        self.spec.workload_ref.is_some()
    }
}

pub(super) fn rollout(it: Rollout) -> Result<Workload, Finding> {
    let copies = Copies::Alike(count("spec.replicas", it.spec.replicas)?);
    let Some(template) = it.spec.template else {
        let finding = Finding::error("spec.template", "is missing, and so is spec.workloadRef");
        return Err(finding.hint("a Rollout needs one of them"));
    };
    let workload = Workload::new(super::ROLLOUT, it.metadata, template, copies);
    Ok(workload.counted(it.spec.replicas).selecting(it.spec.selector))
}

pub(super) fn replica_set(it: ReplicaSet) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let copies = Copies::Alike(count("spec.replicas", spec.replicas)?);
    let template = spec.template.unwrap_or_default();
    let workload =
        Workload::new("ReplicaSet", it.metadata, template, copies).counted(spec.replicas);
    selected(workload.selecting(Some(spec.selector)))
}

pub(super) fn replication_controller(it: ReplicationController) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let copies = Copies::Alike(count("spec.replicas", spec.replicas)?);
    let template = spec.template.unwrap_or_default();
    let workload = Workload::new("ReplicationController", it.metadata, template, copies);
    Ok(workload.counted(spec.replicas))
}

pub(super) fn stateful_set(it: StatefulSet) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let from = spec.ordinals.as_ref().and_then(|it| it.start);
    let copies = Copies::Numbered {
        count: count("spec.replicas", spec.replicas)?,
        from: from.map_or(Ok(0), |it| {
            usize::try_from(it).map_err(|_| negative("spec.ordinals.start", it))
        })?,
        claims: spec.volume_claim_templates.unwrap_or_default(),
    };
    let workload =
        Workload::new("StatefulSet", it.metadata, spec.template, copies).counted(spec.replicas);
    selected(workload.selecting(Some(spec.selector)))
}

pub(super) fn daemon_set(it: DaemonSet) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let workload = Workload::new("DaemonSet", it.metadata, spec.template, Copies::OnEveryNode);
    selected(workload.selecting(Some(spec.selector)))
}

/// What a person wrote must select its own pods, or the API server refuses it.
fn selected(workload: Workload) -> Result<Workload, Finding> {
    let labels = workload.template.metadata.as_ref().and_then(|it| it.labels.as_ref());
    let has = |key: &String| labels.and_then(|it| it.get(key));
    let lacks = workload.selects.iter().find(|(key, value)| has(key) != Some(*value));
    match lacks.filter(|_| workload.meta.uid.is_none()) {
        None => Ok(workload),
        Some((key, value)) => {
            let field = crate::file::path::join("spec.selector.matchLabels", key);
            let message = match has(key) {
                Some(other) => {
                    format!("is {}, and the template has {}", quoted(value), quoted(other))
                }
                None => format!("is {}, and the template has no such label", quoted(value)),
            };
            let hint = "write the same in spec.template.metadata.labels";
            Err(Finding::error(field, message).hint(hint))
        }
    }
}

pub(super) fn job(it: Job) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let status = it.status.unwrap_or_default();
    let copies = Copies::Alike(at_a_time("spec", &spec, &status)?);
    let called = name(&it.metadata).to_owned();
    let live = it.metadata.uid.is_some();
    let (adds, indexes) = (labels_of_job(&spec, &called, live), indexes(&spec, &status));
    Ok(Workload { adds, indexes, ..Workload::new("Job", it.metadata, spec.template, copies) })
}

/// What the API server writes into the template of a Job when it is created. Its uid is nobody's else.
fn labels_of_job(spec: &JobSpec, called: &str, live: bool) -> BTreeMap<String, String> {
    if live || spec.manual_selector == Some(true) {
        return BTreeMap::new();
    }
    let uid = format!("{MADE_UP}{called}");
    let labels = [(JOB_NAMES, called), (JOB_UIDS, uid.as_str())];
    let all = labels.iter().flat_map(|(keys, value)| keys.map(|key| (key, *value)));
    all.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The numbers of an Indexed Job that are still to be completed.
fn indexes(spec: &JobSpec, status: &JobStatus) -> Option<Indexes> {
    spec.completion_mode.as_ref().filter(|it| *it == INDEXED)?;
    let count = usize::try_from(spec.completions?).ok()?;
    let done = [&status.completed_indexes, &status.failed_indexes];
    let ranges = done.into_iter().flatten().flat_map(|it| it.split(','));
    let done = ranges.filter_map(|it| {
        // `1,3-5`
        let (from, to) = it.split_once('-').unwrap_or((it, it));
        Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
    });
    Some(Indexes { count, done: done.collect() })
}

/// The pods of one run.
pub(super) fn cron_job(it: CronJob) -> Result<Workload, Finding> {
    let spec = it.spec.unwrap_or_default();
    let run = spec.job_template.spec.unwrap_or_default();
    let count = at_a_time("spec.jobTemplate.spec", &run, &JobStatus::default())?;
    let copies = Copies::Alike(if spec.suspend.unwrap_or(false) { 0 } else { count });
    // Each run is a Job of its own, with a time in its name.
    let called = format!("{}{MADE_UP}", name(&it.metadata));
    let adds = labels_of_job(&run, &called, false);
    let indexes = indexes(&run, &JobStatus::default());
    let workload = Workload::new(super::CRON_JOB, it.metadata, run.template, copies);
    Ok(Workload { adds, indexes, ..workload })
}

/// As many as run in parallel, and not more than are still to be completed.
fn at_a_time(field: &str, spec: &JobSpec, status: &JobStatus) -> Result<usize, Finding> {
    let parallel = count(&format!("{field}.parallelism"), spec.parallelism)?;
    let ended = status.conditions.iter().flatten().any(|it| {
        it.status == "True" && ["Complete", "Failed", "SuccessCriteriaMet"].contains(&&*it.type_)
    });
    let left = if spec.completions.is_none() {
        parallel
    } else {
        let wanted = count(&format!("{field}.completions"), spec.completions)?;
        let done = usize::try_from(status.succeeded.unwrap_or(0)).unwrap_or(0);
        parallel.min(wanted.saturating_sub(done))
    };
    let idle = ended || spec.suspend.unwrap_or(false);
    Ok(if idle { 0 } else { left })
}

/// One, where nothing is written.
fn count(field: &str, written: Option<i32>) -> Result<usize, Finding> {
    let Some(written) = written else { return Ok(1) };
    match usize::try_from(written) {
        Ok(count) if count <= COPIES_MAX => Ok(count),
        Ok(count) => Err(Finding::error(
            field,
            format!("{count} is more than {COPIES_MAX} pods, which is what is packed at once"),
        )
        .hint("no cluster of Kubernetes is made for that many; fewer tell as much")),
        Err(_) => Err(negative(field, written)),
    }
}

fn negative(field: &str, written: i32) -> Finding {
    Finding::error(field, format!("`{written}` is negative")).hint("write 0 or more")
}
