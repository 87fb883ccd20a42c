//! Which nodes and which pods does this mean?
//!
//! Selectors, terms and tolerations of Kubernetes, as the packing knows them.

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    Toleration as WireToleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use nodemolt_fit::{
    Operator, Written, WrittenError,
    pod::{Demand, PodTerm, Spread, Weighted},
    selector::{NODE_NAME_FIELD, NodeTerm, Selector},
    taint::{Tolerated, Toleration},
};

use super::reader::Reader;
use crate::problem::quoted;

impl Reader {
    pub(super) fn selector(&mut self, field: &str, wire: Option<&LabelSelector>) -> Selector {
        let Some(wire) = wire else { return Selector::Nothing };
        let labels = wire.match_labels.iter().flatten();
        let mut all: Vec<Written> = labels.map(|(key, value)| equal(key, value)).collect();
        for (at, it) in wire.match_expressions.iter().flatten().enumerate() {
            let field = format!("{field}.matchExpressions[{at}]");
            let values = it.values.clone().unwrap_or_default();
            all.extend(self.written(&field, &it.key, &it.operator, values, &SELECTOR_OPERATORS));
        }
        all.sort_unstable();
        Selector::All(all)
    }

    fn written(
        &mut self,
        field: &str,
        key: &str,
        operator: &str,
        values: Vec<String>,
        known: &[Operator],
    ) -> Option<Written> {
        let Some(operator) = operator.parse().ok().filter(|it| known.contains(it)) else {
            let names: Vec<&str> = known.iter().map(|it| it.name()).collect();
            let message = format!("{} is not an operator here", quoted(operator));
            let hint = format!("write one of {}", names.join(", "));
            self.refuse_with(&format!("{field}.operator"), message, hint);
            return None;
        };
        let written = Written { key: key.to_owned(), operator, values, min_values: None };
        match written.check() {
            Ok(()) => Some(written),
            // Kubernetes takes it, and no number is above or below what is none: no node will do.
            Err(WrittenError::Bound { .. }) if known == NODE_OPERATORS => Some(written),
            Err(error) => {
                self.refuse(field, error.to_string());
                None
            }
        }
    }

    /// By the rules of the API server: one name of a node, or all but one.
    fn field(&mut self, field: &str, wire: &NodeSelectorRequirement) -> Option<Written> {
        if wire.key != NODE_NAME_FIELD {
            let message = format!("{} is not a field of nodes", quoted(&wire.key));
            self.refuse_with(field, message, format!("write {NODE_NAME_FIELD}"));
            return None;
        }
        let operators = [Operator::In, Operator::NotIn];
        let operator = wire.operator.parse().ok().filter(|it| operators.contains(it));
        let Some(operator) = operator else {
            let message = format!("{} is not an operator here", quoted(&wire.operator));
            self.refuse_with(&format!("{field}.operator"), message, "write In or NotIn");
            return None;
        };
        let values = wire.values.clone().unwrap_or_default();
        let [name] = values.as_slice() else {
            self.refuse(format!("{field}.values"), "must be the name of one node");
            return None;
        };
        if !node_name(name) {
            let message = format!("{} cannot be the name of a node", quoted(name));
            self.refuse(format!("{field}.values[0]"), message);
            return None;
        }
        Some(Written { key: wire.key.clone(), operator, values, min_values: None })
    }

    pub(super) fn node_term(&mut self, field: &str, wire: &NodeSelectorTerm) -> NodeTerm {
        let mut read = |list: Option<&Vec<NodeSelectorRequirement>>, name: &str| {
            let mut all = Vec::new();
            for (at, it) in list.into_iter().flatten().enumerate() {
                let field = format!("{field}.{name}[{at}]");
                let values = it.values.clone().unwrap_or_default();
                if name == "matchFields" {
                    all.extend(self.field(&field, it));
                    continue;
                }
                all.extend(self.written(&field, &it.key, &it.operator, values, &NODE_OPERATORS));
            }
            all
        };
        NodeTerm {
            labels: read(wire.match_expressions.as_ref(), "matchExpressions"),
            fields: read(wire.match_fields.as_ref(), "matchFields"),
        }
    }

    fn pod_term(&mut self, field: &str, wire: &PodAffinityTerm) -> PodTerm {
        if wire.topology_key.is_empty() {
            let hint = "write a label of nodes, such as topology.kubernetes.io/zone";
            self.refuse_with(&format!("{field}.topologyKey"), "is empty".to_owned(), hint);
        }
        let namespace_selector = wire
            .namespace_selector
            .as_ref()
            .map(|it| self.selector(&format!("{field}.namespaceSelector"), Some(it)));
        PodTerm {
            topology_key: wire.topology_key.clone(),
            selector: self
                .selector(&format!("{field}.labelSelector"), wire.label_selector.as_ref()),
            namespaces: wire.namespaces.clone().unwrap_or_default(),
            namespace_selector,
            match_label_keys: wire.match_label_keys.clone().unwrap_or_default(),
            mismatch_label_keys: wire.mismatch_label_keys.clone().unwrap_or_default(),
        }
    }

    fn pod_terms(&mut self, field: &str, wire: Option<&Vec<PodAffinityTerm>>) -> Vec<PodTerm> {
        let all = wire.into_iter().flatten().enumerate();
        all.map(|(at, it)| self.pod_term(&format!("{field}[{at}]"), it)).collect()
    }

    fn weighted(
        &mut self,
        field: &str,
        wire: Option<&Vec<WeightedPodAffinityTerm>>,
    ) -> Vec<Weighted<PodTerm>> {
        let all = wire.into_iter().flatten().enumerate();
        all.map(|(at, it)| Weighted {
            weight: it.weight,
            term: self.pod_term(&format!("{field}[{at}].podAffinityTerm"), &it.pod_affinity_term),
        })
        .collect()
    }

    pub(super) fn affinity(&mut self, field: &str, wire: &Affinity, demand: &mut Demand) {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        if let Some(nodes) = &wire.node_affinity {
            let field = format!("{field}.nodeAffinity");
            if let Some(required) = &nodes.required_during_scheduling_ignored_during_execution {
                let terms = required.node_selector_terms.iter().enumerate().map(|(at, it)| {
                    self.node_term(&format!("{field}.{REQUIRED}.nodeSelectorTerms[{at}]"), it)
                });
                demand.node_terms = Some(terms.collect());
            }
            let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter();
            for (at, it) in preferred.flatten().enumerate() {
                let term = self
                    .node_term(&format!("{field}.{PREFERRED}[{at}].preference"), &it.preference);
                // With a bound that is no number the scheduler gives up on the pod, but only where there is a choice.
                if let Some(it) = term.labels.iter().find(|it| it.check().is_err()) {
                    demand.unmodelled.push(format!("the preference for {it}"));
                }
                // Kubernetes: a term that asks nothing prefers no node.
                if !term.labels.is_empty() || !term.fields.is_empty() {
                    demand.preferred_nodes.push(Weighted { weight: it.weight, term });
                }
            }
        }
        if let Some(pods) = &wire.pod_affinity {
            let field = format!("{field}.podAffinity");
            let required = pods.required_during_scheduling_ignored_during_execution.as_ref();
            demand.affinity = self.pod_terms(&format!("{field}.{REQUIRED}"), required);
            let preferred = pods.preferred_during_scheduling_ignored_during_execution.as_ref();
            demand.preferred_affinity = self.weighted(&format!("{field}.{PREFERRED}"), preferred);
        }
        if let Some(pods) = &wire.pod_anti_affinity {
            let field = format!("{field}.podAntiAffinity");
            let required = pods.required_during_scheduling_ignored_during_execution.as_ref();
            demand.anti_affinity = self.pod_terms(&format!("{field}.{REQUIRED}"), required);
            let preferred = pods.preferred_during_scheduling_ignored_during_execution.as_ref();
            demand.preferred_anti_affinity =
                self.weighted(&format!("{field}.{PREFERRED}"), preferred);
        }
    }

    pub(super) fn spread(&mut self, field: &str, wire: &TopologySpreadConstraint) -> Spread {
        let max_skew = u32::try_from(wire.max_skew).ok().filter(|it| *it > 0);
        if max_skew.is_none() {
            let message = format!("`{}` is too little", wire.max_skew);
            self.refuse_with(&format!("{field}.maxSkew"), message, "write 1 or more");
        }
        let min_domains = wire.min_domains.map(|it| u32::try_from(it).ok().filter(|it| *it > 0));
        if let (Some(written), Some(None)) = (wire.min_domains, min_domains) {
            let message = format!("`{written}` is too little");
            self.refuse_with(&format!("{field}.minDomains"), message, "write 1 or more");
        }
        if wire.topology_key.is_empty() {
            let hint = "write a label of nodes, such as topology.kubernetes.io/zone";
            self.refuse_with(&format!("{field}.topologyKey"), "is empty".to_owned(), hint);
        }
        let required =
            self.one_of(field, "whenUnsatisfiable", &wire.when_unsatisfiable, UNSATISFIABLE);
        let mut honours = |name: &str, text: Option<&String>, default: bool| {
            text.map_or(default, |it| self.one_of(field, name, it, POLICY))
        };
        let honour_node_affinity =
            honours("nodeAffinityPolicy", wire.node_affinity_policy.as_ref(), true);
        let honour_taints = honours("nodeTaintsPolicy", wire.node_taints_policy.as_ref(), false);
        Spread {
            topology_key: wire.topology_key.clone(),
            max_skew: max_skew.unwrap_or(1),
            required,
            selector: self
                .selector(&format!("{field}.labelSelector"), wire.label_selector.as_ref()),
            match_label_keys: wire.match_label_keys.clone().unwrap_or_default(),
            min_domains: min_domains.flatten(),
            honour_node_affinity,
            honour_taints,
        }
    }

    /// Whether it is the first of the two words.
    fn one_of(&mut self, field: &str, name: &str, text: &str, words: [&str; 2]) -> bool {
        if !words.contains(&text) {
            let message = format!("{} is not known here", quoted(text));
            let hint = format!("write {} or {}", words[0], words[1]);
            self.refuse_with(&format!("{field}.{name}"), message, hint);
        }
        text == words[0]
    }

    /// `None` where it cannot be understood; then it was told, or stands in `unmodelled`.
    pub(super) fn toleration(
        &mut self,
        field: &str,
        wire: &WireToleration,
        unmodelled: &mut Vec<String>,
    ) -> Option<Toleration> {
        let effect = match wire.effect.as_deref() {
            None | Some("") => None,
            Some(text) => Some(self.effect(field, text)?),
        };
        let key = wire.key.clone().filter(|it| !it.is_empty());
        let value = match wire.operator.as_deref() {
            Some("Exists") => Tolerated::Any,
            None | Some("" | "Equal") if key.is_none() => {
                let message = "without a key, the operator must be Exists";
                self.refuse(format!("{field}.operator"), message);
                return None;
            }
            None | Some("" | "Equal") => Tolerated::Equal(wire.value.clone().unwrap_or_default()),
            // Kubernetes 1.35 compares numbers, where that is switched on.
            Some(operator @ ("Gt" | "Lt")) => {
                unmodelled.push(format!("a toleration with the operator {operator}"));
                return None;
            }
            Some(other) => {
                let message = format!("{} is not an operator here", quoted(other));
                self.refuse_with(&format!("{field}.operator"), message, "write Exists or Equal");
                return None;
            }
        };
        Some(Toleration { key, value, effect })
    }
}

/// Kubernetes' own limit for names that are domains, in bytes.
const NODE_NAME_MAX: usize = 253;
const UNSATISFIABLE: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const POLICY: [&str; 2] = ["Honor", "Ignore"];
const SELECTOR_OPERATORS: [Operator; 4] =
    [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];
const NODE_OPERATORS: [Operator; 6] = [
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::Gt,
    Operator::Lt,
];

/// Small letters, digits, `-` and `.`, at most 253, with a letter or digit at both ends of each part.
fn node_name(name: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    name.len() <= NODE_NAME_MAX
        && name.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
}

pub(super) fn equal(key: &str, value: &str) -> Written {
    let values = vec![value.to_owned()];
    Written { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}
