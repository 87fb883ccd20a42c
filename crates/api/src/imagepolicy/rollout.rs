//! How may nodes be replaced: how many at once, when, and how gently?
//!
//! The words of a policy about the classes it selects. Waves, soaking, approval and deadlines belong
//! to whoever judges images, and are not served before that exists.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{meta::IntOrString, shape};

use self::schema::{concurrency, cron, date, time_of_day, time_of_day_or_midnight, time_zone};

pub(super) use check::check;
pub(crate) use check::{cron as read_schedule, read, unreadable};

mod check;
mod schema;

/// How the nodes of the selected classes are replaced. Where several policies select a class, the
/// first by name counts, and the class says `PoliciesOverlap`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "!has(self.unit) || self.unit != 'CPU' || !has(self.concurrency) || self.concurrency == 'Parallel' || string(self.concurrency).endsWith('%')",
    "with `unit: CPU` the concurrency is a share: write a percentage such as 10%, or `Parallel`"
))]
#[x_kube(validation = (
    "!has(self.unit) || self.unit != 'CPU' || !has(self.batchMaximum) || string(self.batchMaximum).endsWith('%')",
    "with `unit: CPU` the `batchMaximum` is a share: write a percentage such as 5%"
))]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// How many nodes of the selected classes may be in replacement at once: a number such as `3`, a
    /// share such as `10%` (rounded down, and at least one unless zero is written), or `Parallel`,
    /// which leaves the number to `batchMaximum`. Zero stops replacing. Absent, these classes
    /// share the cluster's one slot: one node at a time over the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "concurrency")]
    pub concurrency: Option<IntOrString>,
    /// What a share is a share of. `Nodes` counts nodes. `CPU` counts their processors, because a
    /// tenth of the nodes may be half of the cluster where sizes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<Unit>", extend("default" = "Nodes"))]
    pub unit: Option<Unit>,
    /// How many nodes may start before a `cooldown`, at most: a number, or a share such as `5%`.
    /// Absent, 5 % and at least one where `concurrency` is `Parallel`, else no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::number_or_percent")]
    pub batch_maximum: Option<IntOrString>,
    /// How long to wait after a batch before the next one starts, for example `10m`. Absent, not at
    /// all: a successor is ready before its predecessor goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::length")]
    pub cooldown: Option<String>,
    /// How long a node is left alone after it was created, for example `24h`. Absent, not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::length")]
    pub minimum_node_lifetime: Option<String>,
    /// How long a drain may go on without a pod leaving, for example `30m`. Absent, the sum of the
    /// grace periods that the pods still have, and at least 5 minutes. It does not apply where a pool
    /// says `terminationGracePeriod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::length")]
    pub drain_limit: Option<String>,
    /// What happens at the end of the drain limit. `Skip`: the node is uncordoned, and tried again
    /// after an hour, then two, up to a day. `Wait`: it stays cordoned until its pods may leave.
    /// `Force`: the pods that are left are deleted, with their grace period, whatever their
    /// `PodDisruptionBudget` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<DrainLimitAction>", extend("default" = "Skip"))]
    pub drain_limit_action: Option<DrainLimitAction>,
    /// What comes first. `SuccessorFirst`: pods have a place on a ready node before their own is
    /// cordoned. `DeleteFirst`: the old node goes first, for a full capacity reservation or a pool
    /// without room for one more; pods may be without a place meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<ReplacementOrder>", extend("default" = "SuccessorFirst"))]
    pub replacement: Option<ReplacementOrder>,
    /// What becomes of pods without a controller, which nothing would start again. `Wait`: their node
    /// waits for a person. `Evict`: they are evicted, and gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<BarePods>", extend("default" = "Wait"))]
    pub bare_pods: Option<BarePods>,
    /// When replacements may start. Absent, at any time. What has started is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
}

/// What a share is a share of.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nodes, whatever their size.
    Nodes,
    /// The processors of the nodes.
    #[serde(rename = "CPU")]
    Cpu,
}

/// What happens at the end of the drain limit.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DrainLimitAction {
    /// Uncordon the node and try again later.
    Skip,
    /// Keep it cordoned until its pods may leave.
    Wait,
    /// Delete the pods that are left.
    Force,
}

/// What comes first.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplacementOrder {
    /// The successor.
    SuccessorFirst,
    /// The deletion.
    DeleteFirst,
}

/// What becomes of pods without a controller.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarePods {
    /// Their node waits for a person.
    Wait,
    /// They are evicted.
    Evict,
}

/// When replacements may start: inside one of the windows of `allow`, if there are any, and outside
/// all of `forbid`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "has(self.allow) || has(self.forbid)",
    "names no window: write `allow` or `forbid`, or remove `windows`"
))]
#[serde(rename_all = "camelCase")]
pub struct Windows {
    /// The zone of all times here, by its name in the IANA database, for example `Europe/Berlin` or
    /// `America/New_York`. Summer time is followed. Absent, `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_zone")]
    pub time_zone: Option<String>,
    /// Replacements start only inside one of these. Absent, always; an empty list allows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub allow: Option<Vec<Window>>,
    /// Replacements never start inside one of these, whatever `allow` says: a freeze.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub forbid: Option<Vec<Window>>,
}

/// A time that comes again, or once. Everything said must hold: days of the week, times of the day
/// and dates may stand together. A cron schedule with a duration stands in place of days and times.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "has(self.days) || has(self.from) || has(self.schedule) || has(self.firstDate) || has(self.lastDate)",
    "says no time: write `days`, `from` and `to`, `schedule` and `duration`, or dates"
))]
#[x_kube(validation = (
    "has(self.from) == has(self.to)",
    "`from` and `to` belong together: write both, or none for the whole day"
))]
#[x_kube(validation = (
    "!has(self.from) || !has(self.to) || self.from != self.to",
    "`from` and `to` are the same: remove both for the whole day"
))]
#[x_kube(validation = (
    "has(self.schedule) == has(self.duration)",
    "`schedule` and `duration` belong together: write both"
))]
#[x_kube(validation = (
    "!has(self.schedule) || (!has(self.days) && !has(self.from))",
    "`schedule` already says when: remove it, or remove `days`, `from` and `to`"
))]
#[x_kube(validation = (
    "!has(self.firstDate) || !has(self.lastDate) || self.firstDate <= self.lastDate",
    "`lastDate` is before `firstDate`: swap them"
))]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// On these days of the week, on which it begins: `Mon`, `Tue`, `Wed`, `Thu`, `Fri`, `Sat`,
    /// `Sun`. Absent, on every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 7), extend("x-kubernetes-list-type" = "set"))]
    pub days: Option<Vec<Day>>,
    /// From this time of the day, for example `"22:00"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_of_day")]
    pub from: Option<String>,
    /// Until this time of the day, for example `"05:30"`. Earlier than `from`, it is on the next day.
    /// `"24:00"` is the day's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_of_day_or_midnight")]
    pub to: Option<String>,
    /// When it begins, as a cron expression of five fields (minute, hour, day of the month, month,
    /// day of the week) or one of `@yearly`, `@monthly`, `@weekly`, `@daily` and `@hourly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "cron")]
    pub schedule: Option<String>,
    /// How long it lasts from each beginning of the schedule, for example `6h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::length")]
    pub duration: Option<String>,
    /// Not before this date, for example `2026-12-20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date")]
    pub first_date: Option<String>,
    /// The last day on which the window begins; over midnight it lasts into the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date")]
    pub last_date: Option<String>,
    /// What it is for. It is shown to whoever waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub reason: Option<String>,
}

/// A day of the week.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}
