//! What are the settings of a kubelet called?
//!
//! The fields of `kubelet.config.k8s.io/v1beta1` `KubeletConfiguration` and their types, field by field as
//! `config/v1beta1/types.go` of the Go module `k8s.io/kubelet` v0.36.4 has them (Kubernetes 1.36; `logging`
//! and `tracing` as `k8s.io/component-base` v0.36.4), and `systemPartition`, which is being added. An old
//! kubelet refuses a field that only a new one knows.

use nodemolt_fit::Quantity;
use serde_json::Value;

use super::super::identity::shown;

/// Those that a class sets on every family, under the family's own names.
pub const MANAGED: [&str; 12] = [
    "clusterDNS",
    "maxPods",
    "podsPerCore",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
];

/// All of them, sorted.
pub const FIELDS: &[&str] = &[
    "address",
    "allowedUnsafeSysctls",
    "apiVersion",
    "authentication",
    "authorization",
    "cgroupDriver",
    "cgroupRoot",
    "cgroupsPerQOS",
    "clusterDNS",
    "clusterDomain",
    "configMapAndSecretChangeDetectionStrategy",
    "containerLogMaxFiles",
    "containerLogMaxSize",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "containerRuntimeEndpoint",
    "contentType",
    "cpuCFSQuota",
    "cpuCFSQuotaPeriod",
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "cpuManagerReconcilePeriod",
    "crashLoopBackOff",
    "enableContentionProfiling",
    "enableControllerAttachDetach",
    "enableDebugFlagsHandler",
    "enableDebuggingHandlers",
    "enableProfilingHandler",
    "enableServer",
    "enableSystemLogHandler",
    "enableSystemLogQuery",
    "enforceNodeAllocatable",
    "eventBurst",
    "eventRecordQPS",
    "evictionHard",
    "evictionMaxPodGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "failCgroupV1",
    "failSwapOn",
    "featureGates",
    "fileCheckFrequency",
    "hairpinMode",
    "healthzBindAddress",
    "healthzPort",
    "httpCheckFrequency",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "imagePullCredentialsVerificationPolicy",
    "imageServiceEndpoint",
    "iptablesDropBit",
    "iptablesMasqueradeBit",
    "kernelMemcgNotification",
    "kind",
    "kubeAPIBurst",
    "kubeAPIQPS",
    "kubeReserved",
    "kubeReservedCgroup",
    "kubeletCgroups",
    "localStorageCapacityIsolation",
    "logging",
    "makeIPTablesUtilChains",
    "maxOpenFiles",
    "maxParallelImagePulls",
    "maxPods",
    "memoryManagerPolicy",
    "memoryReservationPolicy",
    "memorySwap",
    "memoryThrottlingFactor",
    "mergeDefaultEvictionSettings",
    "nodeLeaseDurationSeconds",
    "nodeStatusMaxImages",
    "nodeStatusReportFrequency",
    "nodeStatusUpdateFrequency",
    "oomScoreAdj",
    "podCIDR",
    "podLogsDir",
    "podPidsLimit",
    "podsPerCore",
    "port",
    "preloadedImagesVerificationAllowlist",
    "protectKernelDefaults",
    "providerID",
    "qosReserved",
    "readOnlyPort",
    "registerNode",
    "registerWithTaints",
    "registryBurst",
    "registryPullQPS",
    "reservedMemory",
    "reservedSystemCPUs",
    "resolvConf",
    "rotateCertificates",
    "runOnce",
    "runtimeRequestTimeout",
    "seccompDefault",
    "serializeImagePulls",
    "serverTLSBootstrap",
    "showHiddenMetricsForVersion",
    "shutdownGracePeriod",
    "shutdownGracePeriodByPodPriority",
    "shutdownGracePeriodCriticalPods",
    "singleProcessOOMKill",
    "staticPodPath",
    "staticPodURL",
    "staticPodURLHeader",
    "streamingConnectionIdleTimeout",
    "syncFrequency",
    "systemCgroups",
    "systemPartition",
    "systemReserved",
    "systemReservedCgroup",
    "tlsCertFile",
    "tlsCipherSuites",
    "tlsCurvePreferences",
    "tlsMinVersion",
    "tlsPrivateKeyFile",
    "topologyManagerPolicy",
    "topologyManagerPolicyOptions",
    "topologyManagerScope",
    "tracing",
    "userNamespaces",
    "volumePluginDir",
    "volumeStatsAggPeriod",
];

/// What a kubelet decodes a field into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Flag,
    /// Go's `int32`.
    Whole,
    /// Go's `int64`.
    Long,
    /// Go's `uint32`.
    Natural,
    Number,
    Text,
    /// Text that is read as a quantity later.
    Quantity,
    /// A quantity as such, which may be a number too.
    Amount,
    /// `1m30s`, in Go's words.
    Duration,
    /// The same, or nanoseconds.
    Pause,
    ListOf(&'static Type),
    MapOf(&'static Type),
    /// Of the keys that we know. A kubelet passes over the others.
    Map(&'static [(&'static str, Type)]),
}

const TEXTS: Type = Type::ListOf(&Type::Text);
const TEXT_MAP: Type = Type::MapOf(&Type::Text);
const SWITCH: (&str, Type) = ("enabled", Type::Flag);

const AUTHENTICATION: Type = Type::Map(&[
    ("anonymous", Type::Map(&[SWITCH])),
    ("webhook", Type::Map(&[("cacheTTL", Type::Duration), SWITCH])),
    ("x509", Type::Map(&[("clientCAFile", Type::Text)])),
]);

const AUTHORIZATION: Type = Type::Map(&[
    ("mode", Type::Text),
    (
        "webhook",
        Type::Map(&[
            ("cacheAuthorizedTTL", Type::Duration),
            ("cacheUnauthorizedTTL", Type::Duration),
        ]),
    ),
]);

const LOG_STREAM: Type =
    Type::Map(&[("infoBufferSize", Type::Amount), ("splitStream", Type::Flag)]);

const LOGGING: Type = Type::Map(&[
    ("flushFrequency", Type::Pause),
    ("format", Type::Text),
    ("options", Type::Map(&[("json", LOG_STREAM), ("text", LOG_STREAM)])),
    ("verbosity", Type::Natural),
    (
        "vmodule",
        Type::ListOf(&Type::Map(&[("filePattern", Type::Text), ("verbosity", Type::Natural)])),
    ),
]);

const RESERVED_MEMORY: Type =
    Type::ListOf(&Type::Map(&[("limits", Type::MapOf(&Type::Amount)), ("numaNode", Type::Whole)]));

const SHUTDOWN: Type = Type::ListOf(&Type::Map(&[
    ("priority", Type::Whole),
    ("shutdownGracePeriodSeconds", Type::Long),
]));

const TRACING: Type =
    Type::Map(&[("endpoint", Type::Text), ("samplingRatePerMillion", Type::Whole)]);

/// Of the fields that a class does not set on every family; those have rules of their own.
const TYPES: &[(&str, Type)] = &[
    ("address", Type::Text),
    ("allowedUnsafeSysctls", TEXTS),
    ("apiVersion", Type::Text),
    ("authentication", AUTHENTICATION),
    ("authorization", AUTHORIZATION),
    ("cgroupDriver", Type::Text),
    ("cgroupRoot", Type::Text),
    ("cgroupsPerQOS", Type::Flag),
    ("clusterDomain", Type::Text),
    ("configMapAndSecretChangeDetectionStrategy", Type::Text),
    ("containerLogMaxFiles", Type::Whole),
    ("containerLogMaxSize", Type::Quantity),
    ("containerLogMaxWorkers", Type::Whole),
    ("containerLogMonitorInterval", Type::Duration),
    ("containerRuntimeEndpoint", Type::Text),
    ("contentType", Type::Text),
    ("cpuCFSQuotaPeriod", Type::Duration),
    ("cpuManagerPolicy", Type::Text),
    ("cpuManagerPolicyOptions", TEXT_MAP),
    ("cpuManagerReconcilePeriod", Type::Duration),
    ("crashLoopBackOff", Type::Map(&[("maxContainerRestartPeriod", Type::Duration)])),
    ("enableContentionProfiling", Type::Flag),
    ("enableControllerAttachDetach", Type::Flag),
    ("enableDebugFlagsHandler", Type::Flag),
    ("enableDebuggingHandlers", Type::Flag),
    ("enableProfilingHandler", Type::Flag),
    ("enableServer", Type::Flag),
    ("enableSystemLogHandler", Type::Flag),
    ("enableSystemLogQuery", Type::Flag),
    ("enforceNodeAllocatable", TEXTS),
    ("eventBurst", Type::Whole),
    ("eventRecordQPS", Type::Whole),
    ("evictionMinimumReclaim", TEXT_MAP),
    ("evictionPressureTransitionPeriod", Type::Duration),
    ("failCgroupV1", Type::Flag),
    ("failSwapOn", Type::Flag),
    ("featureGates", Type::MapOf(&Type::Flag)),
    ("fileCheckFrequency", Type::Duration),
    ("hairpinMode", Type::Text),
    ("healthzBindAddress", Type::Text),
    ("healthzPort", Type::Whole),
    ("httpCheckFrequency", Type::Duration),
    ("imageMaximumGCAge", Type::Duration),
    ("imageMinimumGCAge", Type::Duration),
    ("imagePullCredentialsVerificationPolicy", Type::Text),
    ("imageServiceEndpoint", Type::Text),
    ("iptablesDropBit", Type::Whole),
    ("iptablesMasqueradeBit", Type::Whole),
    ("kernelMemcgNotification", Type::Flag),
    ("kind", Type::Text),
    ("kubeAPIBurst", Type::Whole),
    ("kubeAPIQPS", Type::Whole),
    ("kubeReservedCgroup", Type::Text),
    ("kubeletCgroups", Type::Text),
    ("localStorageCapacityIsolation", Type::Flag),
    ("logging", LOGGING),
    ("makeIPTablesUtilChains", Type::Flag),
    ("maxOpenFiles", Type::Long),
    ("maxParallelImagePulls", Type::Whole),
    ("memoryManagerPolicy", Type::Text),
    ("memoryReservationPolicy", Type::Text),
    ("memorySwap", Type::Map(&[("swapBehavior", Type::Text)])),
    ("memoryThrottlingFactor", Type::Number),
    ("mergeDefaultEvictionSettings", Type::Flag),
    ("nodeLeaseDurationSeconds", Type::Whole),
    ("nodeStatusMaxImages", Type::Whole),
    ("nodeStatusReportFrequency", Type::Duration),
    ("nodeStatusUpdateFrequency", Type::Duration),
    ("oomScoreAdj", Type::Whole),
    ("podCIDR", Type::Text),
    ("podLogsDir", Type::Text),
    ("podPidsLimit", Type::Long),
    ("port", Type::Whole),
    ("preloadedImagesVerificationAllowlist", TEXTS),
    ("protectKernelDefaults", Type::Flag),
    ("providerID", Type::Text),
    ("qosReserved", TEXT_MAP),
    ("readOnlyPort", Type::Whole),
    ("registerNode", Type::Flag),
    ("registryBurst", Type::Whole),
    ("registryPullQPS", Type::Whole),
    ("reservedMemory", RESERVED_MEMORY),
    ("reservedSystemCPUs", Type::Text),
    ("resolvConf", Type::Text),
    ("rotateCertificates", Type::Flag),
    ("runOnce", Type::Flag),
    ("runtimeRequestTimeout", Type::Duration),
    ("seccompDefault", Type::Flag),
    ("serializeImagePulls", Type::Flag),
    ("serverTLSBootstrap", Type::Flag),
    ("showHiddenMetricsForVersion", Type::Text),
    ("shutdownGracePeriod", Type::Duration),
    ("shutdownGracePeriodByPodPriority", SHUTDOWN),
    ("shutdownGracePeriodCriticalPods", Type::Duration),
    ("singleProcessOOMKill", Type::Flag),
    ("staticPodPath", Type::Text),
    ("staticPodURL", Type::Text),
    ("staticPodURLHeader", Type::MapOf(&TEXTS)),
    ("streamingConnectionIdleTimeout", Type::Duration),
    ("syncFrequency", Type::Duration),
    ("systemCgroups", Type::Text),
    ("systemReservedCgroup", Type::Text),
    ("tlsCertFile", Type::Text),
    ("tlsCipherSuites", TEXTS),
    ("tlsCurvePreferences", Type::ListOf(&Type::Whole)),
    ("tlsMinVersion", Type::Text),
    ("tlsPrivateKeyFile", Type::Text),
    ("topologyManagerPolicy", Type::Text),
    ("topologyManagerPolicyOptions", TEXT_MAP),
    ("topologyManagerScope", Type::Text),
    ("tracing", TRACING),
    ("userNamespaces", Type::Map(&[("idsPerPod", Type::Long)])),
    ("volumePluginDir", Type::Text),
    ("volumeStatsAggPeriod", Type::Duration),
];

/// What is wrong with the value of an open field, by its type. Null says nothing, and of fields that we do
/// not know nothing is said.
pub(crate) fn type_problem(name: &str, value: &Value) -> Option<String> {
    let (_, kind) = TYPES.iter().find(|(it, _)| *it == name)?;
    let (path, wanted) = misfit(*kind, value)?;
    Some(match path.as_str() {
        "" => format!("must be {wanted}"),
        path => format!("must have {wanted} as `{}`", path.trim_start_matches('.')),
    })
}

/// Where the first value stands that is not of its type, and what that would be.
fn misfit(kind: Type, value: &Value) -> Option<(String, &'static str)> {
    let below = |at: String, (path, wanted): (String, &'static str)| (at + &path, wanted);
    let quantity = |it: &str| it.parse::<Quantity>().is_ok();
    let (fits, wanted) = match (kind, value) {
        (_, Value::Null) => return None,
        (Type::ListOf(inner), Value::Array(items)) => {
            return items
                .iter()
                .enumerate()
                .find_map(|(index, it)| Some(below(format!("[{index}]"), misfit(*inner, it)?)));
        }
        (Type::MapOf(inner), Value::Object(map)) => {
            return map.iter().find_map(|(key, it)| {
                Some(below(format!(".{}", shown(key)), misfit(*inner, it)?))
            });
        }
        (Type::Map(known), Value::Object(map)) => {
            return known.iter().find_map(|(key, inner)| {
                Some(below(format!(".{key}"), misfit(*inner, map.get(*key)?)?))
            });
        }
        (Type::ListOf(_), _) => (false, "a list"),
        (Type::MapOf(_) | Type::Map(_), _) => (false, "a map"),
        (Type::Flag, it) => (it.is_boolean(), "true or false"),
        (Type::Whole, it) => {
            (it.as_i64().is_some_and(|it| i32::try_from(it).is_ok()), "a whole number of 32 bits")
        }
        (Type::Long, it) => (it.is_i64(), "a whole number"),
        (Type::Natural, it) => {
            (it.as_u64().is_some_and(|it| u32::try_from(it).is_ok()), "a whole number from 0")
        }
        (Type::Number, it) => (it.is_number(), "a number"),
        (Type::Text, it) => (it.is_string(), "text"),
        (Type::Quantity, it) => (it.as_str().is_some_and(quantity), "a resource quantity"),
        (Type::Amount, it) => {
            (it.is_number() || it.as_str().is_some_and(quantity), "a resource quantity")
        }
        (Type::Duration, it) => {
            (it.as_str().is_some_and(super::duration), "a duration, such as `1m30s`")
        }
        (Type::Pause, it) => {
            (it.is_i64() || it.as_str().is_some_and(super::duration), "a duration, such as `1m30s`")
        }
    };
    (!fits).then(|| (String::new(), wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_open_field_of_one_type_has_it() {
        assert!(TYPES.is_sorted_by_key(|(name, _)| *name));
        for (name, _) in TYPES {
            assert!(FIELDS.contains(name) && !MANAGED.contains(name), "{name}");
        }
        // Taints have a check of their own.
        let untyped = ["registerWithTaints", "systemPartition"];
        for name in FIELDS.iter().filter(|it| !MANAGED.contains(it) && !untyped.contains(it)) {
            assert!(TYPES.iter().any(|(it, _)| it == name), "{name} has no type");
        }
    }

    #[test]
    fn values_are_of_the_types_that_go_decodes() {
        for (name, value) in [
            ("address", json!("0.0.0.0")),
            (
                "authentication",
                json!({"anonymous": {"enabled": false}, "webhook": {"cacheTTL": "2m"}}),
            ),
            ("containerLogMaxSize", json!("10Mi")),
            ("featureGates", json!({"A": true})),
            ("logging", json!({"flushFrequency": 5, "verbosity": 2, "newer": []})),
            (
                "logging",
                json!({"flushFrequency": "5s", "options": {"json": {"infoBufferSize": "0"}}}),
            ),
            ("maxOpenFiles", json!(2_147_483_648_i64)),
            ("memoryThrottlingFactor", json!(0.9)),
            ("reservedMemory", json!([{"numaNode": 0, "limits": {"memory": "1Gi", "cpu": 1}}])),
            ("serializeImagePulls", json!(null)),
            ("staticPodURLHeader", json!({"Accept": ["a", "b"]})),
            ("tlsCurvePreferences", json!([29])),
            ("brandNew", json!("whatever")),
        ] {
            assert_eq!(type_problem(name, &value), None, "{name}: {value}");
        }
        for (name, value, problem) in [
            ("serializeImagePulls", json!("x"), "must be true or false"),
            ("maxOpenFiles", json!("3"), "must be a whole number"),
            ("healthzPort", json!(2_147_483_648_i64), "must be a whole number of 32 bits"),
            ("kubeAPIQPS", json!(1.5), "must be a whole number of 32 bits"),
            ("clusterDomain", json!(5), "must be text"),
            ("nodeStatusUpdateFrequency", json!("abc"), "must be a duration, such as `1m30s`"),
            ("nodeStatusUpdateFrequency", json!(10), "must be a duration, such as `1m30s`"),
            ("featureGates", json!({"A": "true"}), "must have true or false as `A`"),
            ("containerLogMaxSize", json!("x"), "must be a resource quantity"),
            ("tlsCipherSuites", json!(["a", 1]), "must have text as `[1]`"),
            (
                "tlsCurvePreferences",
                json!(["X25519"]),
                "must have a whole number of 32 bits as `[0]`",
            ),
            ("staticPodURLHeader", json!({"Accept": "a"}), "must have a list as `Accept`"),
            ("logging", json!({"verbosity": -1}), "must have a whole number from 0 as `verbosity`"),
            ("authentication", json!({"anonymous": false}), "must have a map as `anonymous`"),
            (
                "authentication",
                json!({"webhook": {"enabled": "yes"}}),
                "must have true or false as `webhook.enabled`",
            ),
            (
                "shutdownGracePeriodByPodPriority",
                json!([{"priority": "high"}]),
                "must have a whole number of 32 bits as `[0].priority`",
            ),
            ("memorySwap", json!([]), "must be a map"),
        ] {
            assert_eq!(type_problem(name, &value).as_deref(), Some(problem), "{name}: {value}");
        }
    }
}
