//! Where can a pod's volumes be reached?
//!
//! `pod's volumes → claims → volumes or classes → node terms`
//!
//! A bound volume has a place of its own. An unbound one whose class waits for its first consumer will
//! be made where the pod goes, within the topologies of the class. Whatever else there is (a claim that
//! is not in the files, one that binds before the pod is placed) is not for us to foresee.

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PodSpec, Volume as WireVolume,
};
use nodemolt_fit::{
    Operator, Written, label,
    pod::{Demand, Volume},
    selector::{NODE_NAME_FIELD, NodeTerm},
};

use super::{around::Around, name, pod::Asked, reader::Reader};
use crate::problem::quoted;

const WAIT: &str = "WaitForFirstConsumer";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Where the scheduler has sent the pod for which the volume is being made.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const ONE_POD: &str = "ReadWriteOncePod";
/// Volumes from before CSI are attached by the driver that took over.
const IN_TREE_EBS: &str = "kubernetes.io/aws-ebs";
const EBS: &str = "ebs.csi.aws.com";
/// How several values stand in one label of a volume.
const SEPARATOR: &str = "__";

/// Why nobody can say where the pod goes.
type Unforeseen = String;
/// What a claim for one pod alone is made from, and the name that the pod's spec has for it.
type Template<'t> = (String, &'t PersistentVolumeClaim);

/// Adds the pod's volumes to what it demands.
pub(super) fn of_pod(around: &dyn Around, asked: &Asked<'_>, demand: &mut Demand) {
    let own = asked.own_claims.iter();
    let mounted =
        own.map(|(claim, it)| (claim.clone(), Some((name(&it.metadata).to_owned(), *it))));
    let mut claims: Vec<(String, Option<Template<'_>>)> = mounted.collect();
    // The spec of a claim that will be made for the pod alone.
    let mut made = Vec::new();
    for it in asked.spec.volumes.iter().flatten() {
        if let Some(inline) = inline(it) {
            demand.unmodelled.push(format!("the inline {inline} volume {}", quoted(&it.name)));
        }
        if let Some(source) = &it.persistent_volume_claim {
            claims.push((source.claim_name.clone(), None));
        }
        if let Some(source) = &it.ephemeral {
            let spec = source.volume_claim_template.as_ref().map(|it| it.spec.clone());
            let claim = PersistentVolumeClaim { spec, ..PersistentVolumeClaim::default() };
            made.push((format!("{}-{}", asked.name, it.name), it.name.clone(), claim));
        }
    }
    claims.extend(
        made.iter().map(|(called, name, claim)| (called.clone(), Some((name.clone(), claim)))),
    );
    for (claim, template) in claims {
        // Of copies without a name no claim is there yet; one that is called so is somebody else's.
        let known = if asked.nameless && template.is_some() {
            None
        } else {
            around.claim(asked.namespace, &claim)
        };
        match of_claim(around, asked.namespace, &claim, known, template) {
            Ok(volume) => demand.volumes.push(volume),
            Err(what) => demand.unmodelled.push(what),
        }
    }
    demand.volumes.sort_unstable();
    // Two of its own may look alike and are two.
    demand.volumes.dedup_by(|left, right| !left.own && left == right);
}

fn of_claim(
    around: &dyn Around,
    namespace: &str,
    called: &str,
    known: Option<&PersistentVolumeClaim>,
    template: Option<Template<'_>>,
) -> Result<Volume, Unforeseen> {
    let (claim, own) = match (known, template) {
        (Some(claim), _) => (claim, None),
        (None, Some((name, claim))) => (claim, Some(name)),
        (None, None) => {
            return Err(format!("the claim {}, {}", quoted(called), around.missing("pvc -A")));
        }
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("the claim {}, which is being deleted", quoted(called)));
    }
    let spec = claim.spec.as_ref();
    let modes = spec.and_then(|it| it.access_modes.as_ref()).into_iter().flatten();
    let users = around.users(namespace, called);
    if modes.into_iter().any(|it| it == ONE_POD) && users > 1 {
        return Err(format!("the claim {}, which is for one pod only", quoted(called)));
    }
    let bound = spec.and_then(|it| it.volume_name.as_deref()).filter(|it| !it.is_empty());
    let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
    match (bound, phase) {
        (_, Some("Lost")) => Err(format!("the claim {}, whose volume is lost", quoted(called))),
        (Some(volume), _) => match around.volume(volume) {
            Some(volume) => bound_volume(volume),
            None => Err(format!(
                "the volume {} of the claim {}, {}",
                quoted(volume),
                quoted(called),
                around.missing("pv")
            )),
        },
        (None, _) => {
            // Copies of one workload are told of as one.
            let told = own.as_deref().unwrap_or(called);
            let volume = unbound(around, namespace, told, claim, users)?;
            Ok(match own {
                // It will have a name that only its pod knows: people call it by that of its template.
                Some(handle) => Volume { handle, own: true, ..volume },
                None => volume,
            })
        }
    }
}

fn unbound(
    around: &dyn Around,
    namespace: &str,
    called: &str,
    claim: &PersistentVolumeClaim,
    users: usize,
) -> Result<Volume, Unforeseen> {
    let written = claim.spec.as_ref().and_then(|it| it.storage_class_name.as_deref());
    let class = match written {
        Some("") => {
            return Err(format!("the claim {}, which waits for a volume", quoted(called)));
        }
        Some(class) => around.storage_class(class),
        None => around.default_storage_class(),
    };
    let Some(class) = class else {
        let class = written.map_or("the default one".to_owned(), quoted);
        return Err(format!(
            "the StorageClass of the claim {} ({class}), {}",
            quoted(called),
            around.missing("storageclasses")
        ));
    };
    if class.volume_binding_mode.as_deref() != Some(WAIT) {
        return Err(format!(
            "the claim {}, which is not bound though its class binds at once",
            quoted(called)
        ));
    }
    if class.provisioner == NO_PROVISIONER {
        return Err(format!("the claim {}, whose class makes no volumes", quoted(called)));
    }
    if around.counts_capacity(driver(&class.provisioner)) {
        return Err(format!(
            "the claim {}, as nobody here knows where {} has room for it",
            quoted(called),
            class.provisioner
        ));
    }
    let terms = class.allowed_topologies.iter().flatten().map(|it| {
        let labels = it.match_label_expressions.iter().flatten();
        NodeTerm::labels(labels.map(|it| within(&it.key, it.values.clone())).collect())
    });
    let mut terms: Vec<NodeTerm> = terms.filter(|it| !it.labels.is_empty()).collect();
    let annotations = claim.metadata.annotations.as_ref();
    let selected = annotations.and_then(|it| it.get(SELECTED_NODE)).filter(|it| !it.is_empty());
    if let Some(node) = selected {
        if !around.has_node(node) {
            return Err(format!(
                "the claim {}, whose volume is being made for node {}, {}",
                quoted(called),
                quoted(node),
                around.missing("nodes")
            ));
        }
        // The scheduler has decided, and sends no pod of this claim anywhere else.
        if terms.is_empty() {
            terms.push(NodeTerm::default());
        }
        for term in &mut terms {
            term.fields.push(within(NODE_NAME_FIELD, vec![node.clone()]));
        }
    } else if users > 1 {
        // The volume is made where the first of them goes, and the others have to follow it.
        return Err(format!(
            "the unbound claim {}, which it shares with other pods",
            quoted(called)
        ));
    }
    Ok(Volume {
        handle: format!("{namespace}/{called}"),
        driver: Some(driver(&class.provisioner).to_owned()),
        reach: (!terms.is_empty()).then_some(terms),
        own: false,
    })
}

/// Names of the claims that a pod mounts by name.
pub(crate) fn claims_of(spec: Option<&PodSpec>) -> Vec<&str> {
    let volumes = spec.into_iter().flat_map(|it| it.volumes.iter().flatten());
    let claims = volumes.filter_map(|it| it.persistent_volume_claim.as_ref());
    let mut claims: Vec<&str> = claims.map(|it| it.claim_name.as_str()).collect();
    // A pod may mount one claim twice and is one user still.
    claims.sort_unstable();
    claims.dedup();
    claims
}

fn driver(provisioner: &str) -> &str {
    if provisioner == IN_TREE_EBS { EBS } else { provisioner }
}

fn bound_volume(volume: &PersistentVolume) -> Result<Volume, Unforeseen> {
    let called = name(&volume.metadata);
    let spec = volume.spec.as_ref();
    let mut reader = Reader::default();
    let affinity =
        spec.and_then(|it| it.node_affinity.as_ref()).and_then(|it| it.required.as_ref());
    let terms = affinity.map(|it| {
        let terms = it.node_selector_terms.iter();
        terms.map(|it| reader.node_term("", it)).collect::<Vec<NodeTerm>>()
    });
    if !reader.found.is_empty() {
        return Err(format!("the volume {}, whose node affinity is unreadable", quoted(called)));
    }
    let labels = zone_labels(volume);
    let reach = match (terms, labels.is_empty()) {
        (terms, true) => terms,
        (None, false) => Some(vec![NodeTerm::labels(labels)]),
        (Some(terms), false) => Some(
            terms
                .into_iter()
                .map(|it| NodeTerm { labels: [it.labels, labels.clone()].concat(), ..it })
                .collect(),
        ),
    };
    let (handle, driver) = attached(volume);
    Ok(Volume { handle: handle.to_owned(), driver: driver.map(str::to_owned), reach, own: false })
}

/// One that is attached to a node: what counts there is which it is. None, if no CSI driver attaches it.
pub(super) fn left_attached(volume: &PersistentVolume) -> Option<Volume> {
    let (handle, driver) = attached(volume);
    let (handle, driver) = (handle.to_owned(), Some(driver?.to_owned()));
    Some(Volume { handle, driver, reach: None, own: false })
}

/// What makes it one volume, and who attaches it.
pub(super) fn attached(volume: &PersistentVolume) -> (&str, Option<&str>) {
    let spec = volume.spec.as_ref();
    let csi = spec.and_then(|it| it.csi.as_ref());
    let ebs = spec.and_then(|it| it.aws_elastic_block_store.as_ref());
    match (csi, ebs) {
        (Some(csi), _) => (&csi.volume_handle, Some(&csi.driver)),
        (None, Some(ebs)) => (&ebs.volume_id, Some(EBS)),
        (None, None) => (name(&volume.metadata), None),
    }
}

/// Zone and region that stand on a volume as labels, several values in one.
fn zone_labels(volume: &PersistentVolume) -> Vec<Written> {
    let labels = volume.metadata.labels.iter().flatten();
    labels
        .map(|(key, value)| (label::normalise(key), value))
        .filter(|(key, _)| [label::ZONE, label::REGION].contains(key))
        .map(|(key, value)| within(key, value.split(SEPARATOR).map(str::to_owned).collect()))
        .collect()
}

fn within(key: &str, values: Vec<String>) -> Written {
    Written { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

/// Volumes that keep others away by what they are, and that nobody writes any more.
fn inline(volume: &WireVolume) -> Option<&'static str> {
    let kinds = [
        (volume.aws_elastic_block_store.is_some(), "awsElasticBlockStore"),
        (volume.azure_disk.is_some(), "azureDisk"),
        (volume.gce_persistent_disk.is_some(), "gcePersistentDisk"),
        (volume.iscsi.is_some(), "iscsi"),
        (volume.rbd.is_some(), "rbd"),
        (volume.cinder.is_some(), "cinder"),
    ];
    kinds.into_iter().find(|(there, _)| *there).map(|(_, kind)| kind)
}
