//! What do a class and a pool say of what a node is told at boot?
//!
//! `EC2NodeClass, NodePool → pieces of the bootstrap settings`
//!
//! Words are read here. What a kubelet or a family cannot be told is for core to say when it renders.

use std::collections::BTreeMap;

use nodemolt_core::bootstrap::{
    Kubelet, OfClass, OfPool, Place, Placement, Remark, Taint, UserPart, class_problems,
    effective_reservations,
};
use nodemolt_fit::capacity::{NodeSettings, Threshold};
use nodemolt_fit::{Family, Operator, Quantity, Requirements, Vocabulary, Written, label};

use crate::ec2nodeclass::{self, EC2NodeClass, EC2NodeClassSpec};
use crate::file::path;
use crate::into_core::PoolOfClass;
use crate::meta::IntOrString;
use crate::nodepool::{self, NodePool};
use crate::problem::{Finding, nearest};

const PLACEMENTS: [&str; 2] = ["BeforeBootstrap", "BetweenBootstrapAndKubelet"];

impl TryFrom<&EC2NodeClass> for OfClass {
    type Error = Vec<Finding>;

    fn try_from(class: &EC2NodeClass) -> Result<Self, Self::Error> {
        let spec = &class.spec;
        let mut found = Vec::new();
        // Of the rest of the kubelet's settings core says more, family by family.
        let read_here = ["spec.amiFamily", "spec.instanceStorePolicy", "spec.kubelet.maxPods"];
        let also_here = "spec.kubelet.podsPerCore";
        if let Err(told) = NodeSettings::try_from(class) {
            let ours = |it: &Finding| read_here.contains(&&*it.field) || it.field == also_here;
            found.extend(told.into_iter().filter(ours));
        }
        let placement = placement(spec, &mut found);
        let this = Self {
            name: class.metadata.name.clone(),
            label: class_label(&class.api_version),
            family: family(spec),
            kubelet: spec.kubelet.as_ref().map(kubelet).unwrap_or_default(),
            instance_store_raid0: spec.instance_store_policy.as_deref() == Some("RAID0"),
            placement,
            user_part: spec.user_data.clone().unwrap_or_default(),
            release: release(class),
        };
        if found.is_empty() { Ok(this) } else { Err(found) }
    }
}

/// What of a class no node of its family can be told, whatever the cluster and the user's part are.
pub fn problems(class: &EC2NodeClass) -> Vec<Finding> {
    let of_class = match OfClass::try_from(class) {
        Ok(of_class) => of_class,
        Err(findings) => return findings,
    };
    let OfClass { family, kubelet, placement, .. } = &of_class;
    let told = |remark: Remark| {
        let field = match remark.place {
            Place::Field(field) => field,
            Place::UserPart { .. } | Place::Label(_) | Place::Taint(_) | Place::Whole => {
                "spec.userData".to_owned()
            }
        };
        let finding = Finding::error(field, remark.message);
        match remark.hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    };
    class_problems(*family, kubelet, *placement).into_iter().map(told).collect()
}

/// What nodes of the class offer: what the class reserves, and where it says nothing what its user data
/// does. User data that cannot be read reserves nothing that we know of, and that is told.
pub fn offered(class: &EC2NodeClass) -> Result<(NodeSettings, Vec<Finding>), Vec<Finding>> {
    let mut settings = NodeSettings::try_from(class)?;
    let Ok(of_class) = OfClass::try_from(class) else { return Ok((settings, Vec::new())) };
    let user = UserPart(&of_class.user_part);
    let effective = match effective_reservations(settings.family, &of_class.kubelet, user) {
        Ok(effective) => effective,
        Err(conflict) => {
            let message = format!("what it reserves is not counted: {conflict}");
            let hint = "`nodemolt userdata lint` tells more";
            return Ok((settings, vec![Finding::warning("spec.userData", message).hint(hint)]));
        }
    };
    // Every value was checked when it was read, so none is lost here.
    let quantities = |map: &BTreeMap<String, String>| {
        let read = |(key, text): (&String, &String)| Some((key.clone(), text.parse().ok()?));
        map.iter().filter_map(read).collect::<BTreeMap<String, Quantity>>()
    };
    settings.kube_reserved = quantities(&effective.kube_reserved);
    settings.system_reserved = quantities(&effective.system_reserved);
    let threshold = |text: &String| {
        Threshold::from_percent(text).or_else(|| text.parse().ok().map(Threshold::Fixed))
    };
    let hard = effective.eviction_hard.iter();
    settings.eviction_hard =
        hard.filter_map(|(key, it)| Some((key.clone(), threshold(it)?))).collect();
    settings.max_pods = effective.max_pods;
    settings.pods_per_core = effective.pods_per_core;
    Ok((settings, Vec::new()))
}

/// `nodemolt.dev/ec2nodeclass` of our group; Karpenter's own of any other.
fn class_label(api_version: &str) -> String {
    if api_version == ec2nodeclass::NODEMOLT_V1ALPHA1 {
        return "nodemolt.dev/ec2nodeclass".to_owned();
    }
    label::NODECLASS.to_owned()
}

/// As written, else as the alias says; images that are selected otherwise are custom.
fn family(spec: &EC2NodeClassSpec) -> Family {
    let written = spec.ami_family.as_ref().and_then(|it| it.parse().ok());
    written
        .or_else(|| Family::from_alias_name(alias(spec)?.split('@').next()?).ok())
        .unwrap_or(Family::Custom)
}

fn alias(spec: &EC2NodeClassSpec) -> Option<&str> {
    spec.terms().iter().find_map(|it| it.alias.as_deref())
}

/// Of the alias, else of the name that is asked for, else of an image that was resolved.
fn release(class: &EC2NodeClass) -> Option<String> {
    let spec = &class.spec;
    if let Some(alias) = alias(spec).map(str::to_owned).or_else(|| spec.implied_alias()) {
        return alias.split_once('@').map(|(_, release)| release.to_owned());
    }
    let asked = spec.terms().iter().filter_map(|it| it.name.as_deref());
    let amis = class.status.iter().flat_map(|it| it.amis.iter().flatten());
    let resolved = amis.filter_map(|it| it.name.as_deref());
    asked.chain(resolved).find_map(release_in_name)
}

/// `v1.50.0` of `bottlerocket-aws-k8s-1.35-x86_64-v1.50.0-0a1b2c3d`.
fn release_in_name(name: &str) -> Option<String> {
    let mut words = name.strip_prefix("bottlerocket-")?.split('-');
    let version = |it: &&str| it.starts_with('v') && it.contains('.') && !it.contains('*');
    words.rfind(version).map(str::to_owned)
}

fn placement(spec: &EC2NodeClassSpec, found: &mut Vec<Finding>) -> Placement {
    match spec.user_data_placement.as_deref() {
        None | Some("BeforeBootstrap") => Placement::BeforeBootstrap,
        Some("BetweenBootstrapAndKubelet") => Placement::BetweenBootstrapAndKubelet,
        Some(other) => {
            let message = format!("`{other}` is not one of {}", PLACEMENTS.join(", "));
            let hint = match nearest(other, &PLACEMENTS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it for `BeforeBootstrap`".to_owned(),
            };
            found.push(Finding::error("spec.userDataPlacement", message).hint(hint));
            Placement::BeforeBootstrap
        }
    }
}

fn kubelet(wire: &ec2nodeclass::Kubelet) -> Kubelet {
    let max_pods = wire.max_pods.as_ref().and_then(|it| match it {
        IntOrString::Int(number) => u32::try_from(*number).ok(),
        IntOrString::String(text) => text.trim().parse().ok(),
    });
    Kubelet {
        cluster_dns: wire.cluster_dns.clone().unwrap_or_default(),
        max_pods,
        pods_per_core: wire.pods_per_core.and_then(|it| u32::try_from(it).ok()),
        system_reserved: wire.system_reserved.clone().unwrap_or_default(),
        kube_reserved: wire.kube_reserved.clone().unwrap_or_default(),
        eviction_hard: wire.eviction_hard.clone().unwrap_or_default(),
        eviction_soft: wire.eviction_soft.clone().unwrap_or_default(),
        eviction_soft_grace_period: wire.eviction_soft_grace_period.clone().unwrap_or_default(),
        eviction_max_pod_grace_period: wire.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent: wire.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent: wire.image_gc_low_threshold_percent,
        cpu_cfs_quota: wire.cpu_cfs_quota,
        rest: wire.rest.clone(),
    }
}

impl From<&NodePool> for OfPool {
    fn from(pool: &NodePool) -> Self {
        let template = &pool.spec.template;
        let class = &template.spec.node_class_ref;
        let taint = |it: &nodepool::Taint| Taint {
            key: it.key.clone(),
            value: it.value.clone(),
            effect: it.effect.clone(),
        };
        let written = PoolOfClass::try_from(pool).map(|it| it.pool.requirements);
        let written = written.unwrap_or_default();
        let required = only_values(&written);
        let mut label_fields = BTreeMap::new();
        for (at, it) in written.iter().enumerate().rev() {
            let field = format!("spec.template.spec.requirements[{at}]");
            label_fields.insert(label::normalise(&it.key).to_owned(), field);
        }
        for key in template.metadata.iter().flat_map(|it| it.labels.keys()) {
            let field = path::join("spec.template.metadata.labels", key);
            label_fields.insert(key.clone(), field);
        }
        label_fields.insert(label::NODEPOOL.to_owned(), "metadata.name".to_owned());
        let capacity_type = required.get(label::CAPACITY_TYPE).cloned();
        let mut labels = required;
        // Where and how a machine is bought is known when it was.
        labels.retain(|key, _| !label::by_offering(key));
        labels.extend(template.metadata.iter().flat_map(|it| it.labels.clone()));
        let staying = template.spec.taints.iter().flatten();
        let startup = template.spec.startup_taints.iter().flatten();
        let field = |list: &str, count: usize| {
            (0..count).map(|at| format!("spec.template.spec.{list}[{at}]")).collect::<Vec<_>>()
        };
        let mut taint_fields = field("taints", staying.clone().count());
        taint_fields.extend(field("startupTaints", startup.clone().count()));
        Self {
            name: pool.metadata.name.clone(),
            class: (class.group.clone(), class.name.clone()),
            labels,
            capacity_type,
            taints: staying.chain(startup).map(taint).collect(),
            label_fields,
            taint_fields,
        }
    }
}

/// The labels of which these requirements, taken together, leave one value.
fn only_values(required: &[Written]) -> BTreeMap<String, String> {
    let vocabulary = Vocabulary::new();
    let together = Requirements::read(required, &vocabulary);
    let only = |(key, requirement): (_, &nodemolt_fit::Requirement)| {
        let key = vocabulary.key_text(key).as_ref().to_owned();
        let written = requirement.written(&key, &vocabulary);
        let value = match written.as_slice() {
            [it] if it.operator == Operator::In => it.values.as_slice(),
            [least, most]
                if least.operator == Operator::Gte
                    && most.operator == Operator::Lte
                    && least.values == most.values =>
            {
                least.values.as_slice()
            }
            _ => &[],
        };
        match value {
            [value] => Some((key, value.clone())),
            _ => None,
        }
    };
    together.iter().filter_map(only).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

    use nodemolt_core::bootstrap::{Cluster, settings};
    use nodemolt_core::launch::CapacityType;

    use super::*;
    use crate::file::{self, Object, Source};

    fn read(spec: &str) -> Result<OfClass, Vec<Finding>> {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: web}}\nspec: {spec}\n"
        );
        let (objects, problems) = file::read(&Source { name: "class.yaml".to_owned(), text });
        let Some(Object::Class(class)) = objects.first().map(|it| &it.value) else {
            panic!("{problems:?}")
        };
        OfClass::try_from(class)
    }

    #[test]
    fn the_family_is_as_written_or_as_the_alias_says() {
        let family = |spec: &str| read(spec).unwrap().family;
        let aliased = "{role: r, amiSelectorTerms: [{alias: bottlerocket@v1.20.4}]}";
        assert_eq!(family(aliased), Family::Bottlerocket);
        assert_eq!(read(aliased).unwrap().release.as_deref(), Some("v1.20.4"));
        assert_eq!(
            family("{role: r, amiFamily: AL2, amiSelectorTerms: [{id: ami-00000000}]}"),
            Family::Al2
        );
        assert_eq!(
            family("{role: r, amiFamily: Custom, amiSelectorTerms: [{id: ami-00000000}]}"),
            Family::Custom
        );
    }

    #[test]
    fn the_release_is_that_of_the_name_where_there_is_no_alias() {
        let name = "bottlerocket-aws-k8s-1.35-x86_64-v1.50.0-0a1b2c3d";
        assert_eq!(release_in_name(name).as_deref(), Some("v1.50.0"));
        assert_eq!(release_in_name("bottlerocket-aws-k8s-1.35-x86_64-v1.*"), None);
        assert_eq!(release_in_name("my-image-v1.50.0"), None);
        let spec =
            format!("{{role: r, amiFamily: Bottlerocket, amiSelectorTerms: [{{name: {name}}}]}}");
        assert_eq!(read(&spec).unwrap().release.as_deref(), Some("v1.50.0"));
    }

    #[test]
    fn a_placement_that_nobody_knows_is_told() {
        let spec = "{role: r, amiFamily: AL2, userDataPlacement: BetweenBootstrapAndKubelets}";
        let found = read(spec).unwrap_err();
        let told: Vec<_> = found.iter().map(|it| (&*it.field, it.hint.as_deref())).collect();
        let hint = "did you mean `BetweenBootstrapAndKubelet`?";
        assert_eq!(told, [("spec.userDataPlacement", Some(hint))]);
    }

    #[test]
    fn taints_are_the_pools_and_then_ours_once() {
        let class = read("{role: r, amiFamily: AL2, kubelet: {maxPods: 20, seccompDefault: true}}")
            .unwrap();
        assert_eq!((class.kubelet.max_pods, class.kubelet.rest.len()), (Some(20), 1));
        let taint = |key: &str, effect: &str| Taint {
            key: key.to_owned(),
            value: None,
            effect: effect.to_owned(),
        };
        let mut pool = OfPool {
            name: "web".to_owned(),
            class: (String::new(), String::new()),
            labels: BTreeMap::from([(label::NODEPOOL.to_owned(), "other".to_owned())]),
            capacity_type: None,
            taints: vec![taint("a", "NoSchedule")],
            label_fields: BTreeMap::new(),
            taint_fields: Vec::new(),
        };
        let cluster = || Cluster {
            name: "blue".to_owned(),
            endpoint: "https://blue".to_owned(),
            certificate_authority: "Y2E=".to_owned(),
            service_cidr: None,
            dns: Vec::new(),
            ip_family: nodemolt_core::bootstrap::IpFamily::V4,
        };
        let said = settings(cluster(), &class, Some(&pool), Some(CapacityType::Spot));
        assert_eq!(said.labels[label::NODEPOOL], "web", "a pool cannot pose as another");
        assert_eq!(said.labels[label::CAPACITY_TYPE], "spot");
        assert_eq!(said.taints.len(), 2);
        pool.taints = said.taints.clone();
        assert_eq!(settings(cluster(), &class, Some(&pool), None).taints, said.taints);
    }

    #[test]
    fn the_class_is_named_under_its_own_group() {
        assert_eq!(class_label("karpenter.k8s.aws/v1"), "karpenter.k8s.aws/ec2nodeclass");
        assert_eq!(class_label("nodemolt.dev/v1alpha1"), "nodemolt.dev/ec2nodeclass");
    }

    #[test]
    fn a_requirement_that_leaves_one_value_is_a_label() {
        let text = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec:
  template:
    metadata: {labels: {written: template}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: web}
      requirements:
        - {key: one, operator: In, values: [a]}
        - {key: several, operator: In, values: [a, b]}
        - {key: narrowed, operator: In, values: [a, b]}
        - {key: narrowed, operator: NotIn, values: [b]}
        - {key: there, operator: Exists}
        - {key: not, operator: NotIn, values: [a]}
        - {key: gone, operator: DoesNotExist}
        - {key: bounded, operator: Gt, values: ['4']}
        - {key: bounded, operator: Lt, values: ['6']}
        - {key: wide, operator: Gt, values: ['4']}
        - {key: none, operator: In, values: [a]}
        - {key: none, operator: In, values: [b]}
        - {key: written, operator: In, values: [requirement]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
        - {key: topology.k8s.aws/zone-id, operator: In, values: [use1-az1]}
        - {key: karpenter.k8s.aws/capacity-reservation-id, operator: In, values: [cr-1]}
";
        let source = Source { name: "pool.yaml".to_owned(), text: text.to_owned() };
        let (objects, problems) = file::read(&source);
        let Some(Object::Pool(pool)) = objects.first().map(|it| &it.value) else {
            panic!("{problems:?}")
        };
        let pool = OfPool::from(pool);
        let labels: Vec<_> = pool.labels.iter().map(|(key, it)| (&**key, &**it)).collect();
        let expected = [("bounded", "5"), ("narrowed", "a"), ("one", "a"), ("written", "template")];
        assert_eq!(labels, expected);
        assert_eq!(pool.capacity_type.as_deref(), Some("spot"));
    }
}
