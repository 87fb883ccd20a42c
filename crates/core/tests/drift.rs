//! Does it still match, and what should it run?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::bootstrap::Taint;
use nodemolt_core::drift::{Divergence, Drift, Missing, drift, restamps};
use nodemolt_core::fit::{Family, Operator, Requirement, Requirements, Vocabulary, Written};
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::Settings;
use nodemolt_core::node::{
    Foreign, ImageRef, Instance, Running, Stamp, WrittenCondition, foreign_drift,
};
use nodemolt_core::wanted::{
    Beside, Listed, PoolTemplate, Purpose, Replacing, Rollout, Wanted, pinned, wanted,
};
use proptest::prelude::*;
use proptest::sample::select;
use support::World;

type Change = Box<dyn Fn(&mut Running, &mut Wanted)>;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn id(digits: &str) -> ImageId {
    format!("ami-{digits:0>17}").parse().unwrap()
}

fn image(digits: &str, name: &str, day: &str) -> ImageRef {
    let dated = (!day.is_empty()).then(|| at(&format!("{day}T00:00:00Z")));
    ImageRef { id: id(digits), name: Some(name.to_owned()).filter(|it| !it.is_empty()), dated }
}

fn set(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn settings() -> Settings {
    Settings::of("general", Family::Al2023, "nodes")
}

fn template() -> PoolTemplate {
    PoolTemplate {
        class: ("nodemolt.dev".to_owned(), "EC2NodeClass".to_owned(), "general".to_owned()),
        expire_after: Some(SignedDuration::from_hours(720)),
        ..PoolTemplate::default()
    }
}

fn beside() -> Beside {
    Beside {
        class_stamp: Some(settings().static_stamp()),
        template_stamp: Some(template().stamp()),
        requirements: Vec::new(),
        instance_types: Some(Listed::twice(set("m7g.large m7g.xlarge"))),
        security_groups: Some(Listed::twice(set("sg-1 sg-2"))),
        subnets: Some(Listed::twice(set("subnet-1 subnet-2"))),
        reservations: Some(Listed::twice(BTreeSet::new())),
        placement_group: Some(None),
        control_plane: "1.35".parse().ok(),
    }
}

fn wants() -> Wanted {
    Wanted::image(image("b", "golden-2", "2026-07-22"), ["m7g.large".into()]).beside(beside())
}

/// A node that matches in everything.
fn running() -> Running {
    let labels = BTreeMap::from([("kubernetes.io/arch".to_owned(), "arm64".to_owned())]);
    Running {
        pool: Some("web".to_owned()),
        instance_type: Some("m7g.large".to_owned()),
        image: Some(image("b", "golden-2", "2026-07-22")),
        labels,
        class_stamp: Some(settings().static_stamp()),
        template_stamp: Some(template().stamp()),
        instance: Some(Instance {
            security_groups: set("sg-2 sg-1"),
            subnet: Some("subnet-2".to_owned()),
            reservation: None,
            placement_group: None,
        }),
        kubelet: "1.35".parse().ok(),
        ..Running::of("claim", "uid", at("2026-06-01T00:00:00Z"))
    }
}

/// It is not what would boot, and may stay.
fn another_image_that_is_fine(running: &mut Running, wanted: &mut Wanted) {
    let image = image("a", "golden-1", "2026-06-10");
    wanted.in_sync.insert(image.id.clone());
    running.image = Some(image);
}

fn told(running: &Running, wanted: &Wanted) -> Vec<String> {
    match drift(running, wanted) {
        Drift::InSync => vec!["in sync".to_owned()],
        Drift::Unknown(missing) => vec![format!("unknown: {missing}")],
        it @ Drift::Drifted { .. } => it.divergences().map(ToString::to_string).collect(),
    }
}

fn written(key: &str, operator: Operator, values: &str) -> Written {
    let values = values.split_whitespace().map(str::to_owned).collect();
    Written { key: key.to_owned(), operator, values, min_values: None }
}

/// One list after another; none before the first.
fn listed(before: Option<&str>, last: &str) -> Listed {
    let all = |words: &str| Arc::new(set(words));
    Listed { last: all(last), before: before.map(all) }
}

/// A list that lacks what is there is no difference, until the next one lacks it, too.
#[test]
fn what_one_list_lacks_is_not_gone() {
    type Change = Box<dyn Fn(&mut Beside, Option<Listed>)>;
    let cases: [(Change, &str, &str, &str, &str); 4] = [
        (
            Box::new(|it, list| it.instance_types = list),
            "m7g.large m7g.xlarge",
            "m7g.xlarge",
            "unknown: which instance types EC2 offers",
            "instance type m7g.large is not offered any more",
        ),
        (
            Box::new(|it, list| it.subnets = list),
            "subnet-1 subnet-2",
            "subnet-1",
            "unknown: which subnets the class selects",
            "subnet subnet-2 is none of subnet-1",
        ),
        (
            Box::new(|it, list| it.security_groups = list),
            "sg-1 sg-2",
            "sg-1",
            "unknown: which security groups the class selects",
            "security groups sg-1, sg-2 → sg-1",
        ),
        (
            Box::new(|it, list| it.reservations = list),
            "cr-1 cr-2",
            "cr-2",
            "unknown: which capacity reservations the class selects",
            "capacity reservation cr-1 is none of cr-2",
        ),
    ];
    for (put, all, less, unknown, gone) in cases {
        let lives = [
            (None, all, "in sync"),
            (None, less, unknown),
            (Some(all), less, unknown),
            (Some(less), all, "in sync"),
            (Some(less), less, gone),
        ];
        for (before, last, expected) in lives {
            let (mut running, mut wanted) = (running(), wants());
            running.instance.as_mut().unwrap().reservation = Some("cr-1".to_owned());
            wanted.beside.reservations = Some(listed(None, "cr-1"));
            put(&mut wanted.beside, Some(listed(before, last)));
            assert_eq!(told(&running, &wanted), [expected], "{before:?} and then {last}");
        }
    }
    // What is listed and not on the machine is there, by whatever list.
    let mut wanted = wants();
    wanted.beside.security_groups = Some(listed(None, "sg-1 sg-3"));
    assert!(drift(&running(), &wanted).drifted());
}

/// Each divergence alone, with what is and what should be.
#[test]
fn each_difference_is_told_with_old_and_new() {
    let mut tagged = settings();
    tagged.tags.insert("team".to_owned(), "web".to_owned());
    let mut user = settings();
    user.user_part = Some("#!/bin/bash\necho secret\n".to_owned());
    let mut labelled = template();
    labelled.labels.insert("tier".to_owned(), "front".to_owned());
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|_, _| {}), "in sync"),
        (
            Box::new(|it, _| it.image = Some(image("a", "golden-1", "2026-06-10"))),
            "image ami-0000000000000000a → ami-0000000000000000b (upgrade)",
        ),
        (
            Box::new(|it, _| it.image = Some(image("c", "golden-3", "2026-07-30"))),
            "image ami-0000000000000000c → ami-0000000000000000b (downgrade)",
        ),
        (
            Box::new(|it, _| it.image = Some(image("c", "golden-3", "2026-07-22"))),
            "image ami-0000000000000000c → ami-0000000000000000b (sideways)",
        ),
        (
            Box::new(|it, _| it.image = Some(image("c", "", ""))),
            "image ami-0000000000000000c → ami-0000000000000000b (sideways)",
        ),
        (
            Box::new(move |_, wanted| wanted.beside.class_stamp = Some(tagged.static_stamp())),
            "class: tags {} → {\"team\":\"web\"}",
        ),
        (
            Box::new(move |_, wanted| wanted.beside.template_stamp = Some(labelled.stamp())),
            "pool: labels nothing → {\"tier\":\"front\"}",
        ),
        (
            Box::new(|_, wanted| {
                wanted.beside.requirements =
                    vec![written("kubernetes.io/arch", Operator::In, "amd64")];
            }),
            "label kubernetes.io/arch is arm64, the pool asks for kubernetes.io/arch In [amd64]",
        ),
        (
            Box::new(|_, wanted| {
                wanted.beside.instance_types = Some(Listed::twice(set("m8g.large")));
            }),
            "instance type m7g.large is not offered any more",
        ),
        (
            Box::new(|_, wanted| wanted.beside.security_groups = Some(Listed::twice(set("sg-1")))),
            "security groups sg-1, sg-2 → sg-1",
        ),
        (
            Box::new(|_, wanted| wanted.beside.subnets = Some(Listed::twice(set("subnet-1")))),
            "subnet subnet-2 is none of subnet-1",
        ),
        (
            Box::new(|it, wanted| {
                it.instance.as_mut().unwrap().reservation = Some("cr-1".to_owned());
                wanted.beside.reservations = Some(Listed::twice(set("cr-2")));
            }),
            "capacity reservation cr-1 is none of cr-2",
        ),
        (
            Box::new(|_, wanted| wanted.beside.placement_group = Some(Some("rack".to_owned()))),
            "placement group none → rack",
        ),
        (
            Box::new(|it, wanted| {
                another_image_that_is_fine(it, wanted);
                it.kubelet = "1.31".parse().ok();
            }),
            "kubelet 1.31 is outside of what an API server 1.35 supports",
        ),
        (
            Box::new(|it, wanted| {
                another_image_that_is_fine(it, wanted);
                it.kubelet = "1.36".parse().ok();
            }),
            "kubelet 1.36 is outside of what an API server 1.35 supports",
        ),
        (Box::new(|it, _| it.kubelet = "1.32".parse().ok()), "in sync"),
        // Issue 7: its successor would boot the same image, and have drifted in the same way.
        (
            Box::new(|it, _| it.kubelet = "1.31".parse().ok()),
            "unknown: an image for m7g.large: ami-0000000000000000b is what would boot and what it runs, and its kubelet is of \
             1.31: Kubernetes 1.35 supports none more than 3 minor versions older, and none that is newer",
        ),
        (
            Box::new(|it, _| {
                it.foreign = vec![Foreign {
                    by: "security.example.com/Drifted".to_owned(),
                    reason: "KernelCve".to_owned(),
                    message: "CVE-2026-1".to_owned(),
                    since: None,
                }];
            }),
            "security.example.com/Drifted says KernelCve: CVE-2026-1",
        ),
    ];
    for (change, expected) in cases {
        let (mut running, mut wanted) = (running(), wants());
        change(&mut running, &mut wanted);
        assert_eq!(told(&running, &wanted), [expected]);
    }
    let mut wanted = wants();
    wanted.beside.class_stamp = Some(user.static_stamp());
    let told = told(&running(), &wanted);
    assert!(told[0].starts_with("user data nothing → sha256:"), "{told:?}");
    assert!(!told[0].contains("secret"));
}

/// A pool that asks for other machines by now: what is launched in place of the node has an image, so that
/// nobody has looked one up for the node's own kind says nothing.
#[test]
fn a_kind_that_the_pool_does_not_ask_for_any_more_is_a_difference() {
    let arm = |it: &mut Running| {
        it.instance_type = Some("c7g.large".to_owned());
        it.labels.insert("karpenter.k8s.aws/instance-family".to_owned(), "c7g".to_owned());
    };
    let offered = |wanted: &mut Wanted| {
        wanted.beside.instance_types = Some(Listed::twice(set("m7g.large c7g.large")));
    };
    let family = written("karpenter.k8s.aws/instance-family", Operator::In, "m7g");
    let arch = written("beta.kubernetes.io/arch", Operator::In, "amd64");
    for (requirements, gone, expected) in [
        (
            vec![family],
            false,
            "label karpenter.k8s.aws/instance-family is c7g, the pool asks for \
             karpenter.k8s.aws/instance-family In [m7g]",
        ),
        (
            vec![arch],
            false,
            "label beta.kubernetes.io/arch is arm64, the pool asks for beta.kubernetes.io/arch In [amd64]",
        ),
        (vec![], true, "instance type c7g.large is not offered any more"),
        (
            vec![],
            false,
            "unknown: an image for c7g.large: NodePool `web` does not ask for such a machine",
        ),
    ] {
        let (mut running, mut wanted) = (running(), wants());
        arm(&mut running);
        if !gone {
            offered(&mut wanted);
        }
        wanted.beside.requirements = requirements;
        // Its image is another one, too: there is nothing to compare that with.
        running.image = Some(image("a", "golden-1", "2026-06-10"));
        assert_eq!(told(&running, &wanted), [expected]);
    }
}

/// What a pool asks of labels that neither a machine nor how it is bought decides is pinned at launch.
#[test]
fn a_new_node_has_one_value_of_every_label_that_its_pool_asks_for() {
    use Operator::{DoesNotExist, Exists, Gt, Gte, In, Lt, NotIn};
    let team = "company.com/team";
    for (requirements, expected) in [
        (vec![written(team, In, "b a")], Some("a")),
        (vec![written(team, In, "b a"), written(team, NotIn, "a")], Some("b")),
        (vec![written(team, Exists, "")], Some("true")),
        (vec![written(team, Exists, ""), written(team, NotIn, "true 0")], Some("1")),
        (vec![written(team, Gt, "4"), written(team, NotIn, "5")], Some("6")),
        (vec![written(team, Gte, "4"), written(team, Lt, "7")], Some("4")),
        (vec![written(team, Lt, "7")], Some("6")),
        (vec![written(team, Lt, "0")], None),
        (vec![written(team, NotIn, "a")], None),
        (vec![written(team, DoesNotExist, "")], None),
        (vec![written("karpenter.k8s.aws/instance-tenancy", In, "default dedicated")], None),
        (vec![written("karpenter.k8s.aws/instance-family", In, "m5 m6i")], None),
    ] {
        let pinned = pinned(&requirements);
        assert_eq!(pinned.values().map(String::as_str).next(), expected, "{requirements:?}");
    }
}

proptest! {
    /// A node that is launched now, and that nobody has changed, has not drifted by what its pool asks.
    #[test]
    fn a_new_node_has_what_its_pool_asks_for(
        requirements in prop::collection::vec(
            (
                select(vec!["company.com/team", "company.com/rack", "karpenter.k8s.aws/instance-tenancy",
                    "topology.k8s.aws/zone-id"]),
                select(vec![
                    Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist,
                    Operator::Gt, Operator::Gte, Operator::Lt, Operator::Lte,
                ]),
                prop::collection::vec(select(vec!["0", "1", "2", "7", "a", "b"]), 1..4),
            ),
            0..5,
        ),
    ) {
        let requirements: Vec<Written> = requirements
            .into_iter()
            .map(|(key, operator, values)| {
                let values = match operator {
                    Operator::In | Operator::NotIn => values.join(" "),
                    Operator::Exists | Operator::DoesNotExist => String::new(),
                    Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => "2".to_owned(),
                };
                written(key, operator, &values)
            })
            .collect();
        let vocabulary = Vocabulary::new();
        prop_assume!(!Requirements::read(&requirements, &vocabulary).nothing());
        let (mut running, mut wanted) = (running(), wants());
        running.labels.extend(pinned(&requirements));
        wanted.beside.requirements = requirements;
        prop_assert_eq!(drift(&running, &wanted), Drift::InSync);
    }
}

#[test]
fn all_differences_are_told_at_once() {
    let mut running = running();
    running.image = Some(image("a", "golden-1", "2026-06-10"));
    running.kubelet = "1.30".parse().ok();
    let mut wanted = wants();
    wanted.beside.security_groups = Some(Listed::twice(set("sg-9")));
    wanted.beside.subnets = None;
    let Drift::Drifted { first, more, unchecked } = drift(&running, &wanted) else { panic!() };
    let reasons: Vec<&str> = std::iter::once(&first).chain(&more).map(Divergence::reason).collect();
    assert_eq!(reasons, ["Image", "SecurityGroups", "KubernetesSkew"]);
    assert_eq!(unchecked, [Missing::Subnets]);
}

/// Law 4 in small: whatever was not found out is missing, and never a difference.
#[test]
fn what_is_missing_is_never_a_difference() {
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|it, _| it.image = None), "unknown: which image it runs"),
        (Box::new(|it, _| it.instance_type = None), "unknown: which instance type it is"),
        (
            Box::new(|it, _| it.class_stamp = None),
            "unknown: what its class said when it was launched",
        ),
        (
            Box::new(|it, _| it.template_stamp = None),
            "unknown: what its pool said when it was launched",
        ),
        (Box::new(|it, _| it.instance = None), "unknown: what EC2 says of its instance"),
        (Box::new(|it, _| it.kubelet = None), "unknown: the version of its kubelet"),
        (
            Box::new(|_, it| it.beside.control_plane = None),
            "unknown: the version of the API server",
        ),
        (
            Box::new(|_, it| it.beside.placement_group = None),
            "unknown: the name of the class's placement group",
        ),
        (
            Box::new(|_, it| it.beside.security_groups = None),
            "unknown: which security groups the class selects",
        ),
        (
            Box::new(|_, it| it.beside.security_groups = Some(Listed::twice(BTreeSet::new()))),
            "unknown: which security groups it should have: its class selects none that there is",
        ),
        (
            Box::new(|_, it| it.beside.subnets = Some(Listed::twice(BTreeSet::new()))),
            "unknown: which subnets it should have: its class selects none that there is",
        ),
        (
            Box::new(|_, it| it.beside.instance_types = Some(Listed::default())),
            "unknown: which instance types EC2 offers",
        ),
        (
            Box::new(|_, it| it.beside.instance_types = None),
            "unknown: which instance types EC2 offers",
        ),
        (
            Box::new(|it, wanted| {
                it.instance.as_mut().unwrap().reservation = Some("cr-1".to_owned());
                wanted.beside.reservations = None;
            }),
            "unknown: which capacity reservations the class selects",
        ),
        (
            Box::new(|it, _| it.instance_type = Some("m7g.xlarge".to_owned())),
            "unknown: an image for m7g.xlarge: NodePool `web` does not ask for such a machine",
        ),
        // Different in everything; but there is nothing to replace it with.
        (
            Box::new(|it, wanted| {
                let nothing = Wanted::image(image("b", "golden-2", "2026-07-22"), []);
                *wanted = nothing.beside(wanted.beside.clone());
                it.instance_type = Some("c7g.large".to_owned());
                it.image = None;
                it.instance = Some(Instance::default());
                it.kubelet = "1.20".parse().ok();
            }),
            "unknown: an image for c7g.large: NodePool `web` does not ask for such a machine",
        ),
    ];
    for (change, expected) in cases {
        let (mut running, mut wanted) = (running(), wants());
        change(&mut running, &mut wanted);
        assert_eq!(told(&running, &wanted), [expected]);
    }
}

#[test]
fn another_version_of_a_digest_is_stamped_anew_and_never_drifts() {
    let mut running = running();
    running.class_stamp =
        Some(Stamp { digest: "nodemolt-static/v0:abc".to_owned(), fields: BTreeMap::new() });
    running.template_stamp = Some(Stamp { digest: "v3".to_owned(), fields: BTreeMap::new() });
    assert_eq!(drift(&running, &wants()), Drift::InSync);
    let anew = restamps(&running, &wants());
    assert_eq!(anew.class, wants().beside.class_stamp);
    assert_eq!(anew.template, wants().beside.template_stamp);
    // Who has drifted keeps its old stamp: a new version forgives nothing.
    running.image = Some(image("a", "golden-1", "2026-06-10"));
    assert_eq!(restamps(&running, &wants()).class, None);
    // Of one version, without fields, the digests are the difference.
    running = self::running();
    running.class_stamp.as_mut().unwrap().fields.clear();
    running.class_stamp.as_mut().unwrap().digest = "nodemolt-static/v1:old".to_owned();
    assert!(
        told(&running, &wants())[0]
            .starts_with("class nodemolt-static/v1:old → nodemolt-static/v1:")
    );
    assert_eq!(
        restamps(&self::running(), &wants()).class,
        None,
        "nothing to write in a world in sync"
    );
}

#[test]
fn a_template_is_the_same_however_it_is_written() {
    let taint =
        |key: &str| Taint { key: key.to_owned(), value: None, effect: "NoSchedule".to_owned() };
    let one = PoolTemplate { taints: vec![taint("a"), taint("b")], ..template() };
    let two = PoolTemplate { taints: vec![taint("b"), taint("a"), taint("b")], ..template() };
    assert_eq!(one.stamp(), two.stamp());
    let forever = PoolTemplate { expire_after: None, ..template() };
    assert_ne!(forever.stamp().digest, template().stamp().digest);
    assert!(!forever.stamp().fields.contains_key("expireAfter"));
    assert_eq!(template().stamp().version(), "nodemolt-template/v1");
}

#[test]
fn direction_goes_by_flavour_then_kubernetes_then_date() {
    let name = |kubernetes: &str, version: &str| {
        format!("amazon-eks-node-al2023-arm64-standard-{kubernetes}-v{version}")
    };
    let bottlerocket = "bottlerocket-aws-k8s-1.35-aarch64-v1.52.0-abcdef12";
    for (from, from_day, to, to_day, expected) in [
        (name("1.35", "20260601"), "2026-06-01", name("1.35", "20260701"), "2026-07-01", "upgrade"),
        (
            name("1.35", "20260701"),
            "2026-07-01",
            name("1.35", "20260601"),
            "2026-06-01",
            "downgrade",
        ),
        (name("1.34", "20260701"), "2026-07-01", name("1.35", "20260601"), "2026-06-01", "upgrade"),
        (bottlerocket.to_owned(), "2026-06-01", name("1.35", "20260701"), "2026-07-01", "sideways"),
        ("golden".to_owned(), "2026-06-01", name("1.35", "20260701"), "2026-07-01", "sideways"),
    ] {
        let mut running = running();
        running.image = Some(image("a", &from, from_day));
        let wanted = Wanted::image(image("b", &to, to_day), ["m7g.large".into()]);
        let drift = drift(&running, &wanted);
        let Some(Divergence::Image { direction, .. }) = drift.divergences().next() else {
            panic!()
        };
        assert_eq!(direction.as_str(), expected, "{from} → {to}");
    }
}

#[test]
fn others_tell_drift_in_two_documented_forms() {
    let annotations = BTreeMap::from([
        ("drift.nodemolt.dev/KernelCve".to_owned(), "CVE-2026-1".to_owned()),
        ("drift.nodemolt.dev/Flag".to_owned(), "true".to_owned()),
        ("drift.nodemolt.dev/Over".to_owned(), "false".to_owned()),
        ("drift.nodemolt.dev/".to_owned(), "nothing".to_owned()),
        ("other.example.com/KernelCve".to_owned(), "x".to_owned()),
    ]);
    let condition = |kind, status| WrittenCondition {
        kind,
        status,
        reason: "Why",
        message: "text",
        since: None,
    };
    let conditions = [
        condition("Drifted", "True"),
        condition("/Drifted", "True"),
        condition("a.example.com/Drifted", "True"),
        condition("b.example.com/Drifted", "Unknown"),
        condition("c.example.com/Drifted", "False"),
        condition("d.example.com/Ready", "True"),
    ];
    let found: Vec<_> = foreign_drift(&annotations, conditions)
        .into_iter()
        .map(|it| format!("{} {} {}", it.by, it.reason, it.message))
        .collect();
    assert_eq!(
        found,
        [
            "a.example.com/Drifted Why text",
            "drift.nodemolt.dev/Flag Flag ",
            "drift.nodemolt.dev/KernelCve KernelCve CVE-2026-1",
        ]
    );
}

// ---- wanted, from a resolution ----

/// Two images of a class that wants images a week old, one of them too young.
const TWO: &str = "
    now 2026-08-01
    min 7d
    image 0a al2023-v20260708 amazon arm64 24d
    image 0b al2023-v20260722 amazon arm64 10d
    image 0c al2023-v20260730 amazon arm64 2d
    pointer al2023/arm64 0a@24d 0b@10d 0c@2d
    term alias=al2023@latest
    types m7g.large m5.large
";

fn resolved(more: &str, rollout: Option<&Rollout>, purpose: Purpose) -> Wanted {
    let world = World::read(&format!("{TWO}{more}"));
    wanted(&world.resolve(), rollout, purpose)
}

fn replacing(wanted: &Wanted, instance_type: &str) -> String {
    match wanted.replacing(Some("web"), instance_type) {
        Replacing::Image(image) => image.id.as_str()[image.id.as_str().len() - 2..].to_owned(),
        Replacing::HeldBack(_) => "held back".to_owned(),
        Replacing::NoImageFits => "no image fits".to_owned(),
        Replacing::NotResolved => "not resolved".to_owned(),
    }
}

fn runs(digits: &str, instance_type: &str) -> Running {
    let mut it = running();
    it.image = Some(ImageRef { id: support::id(digits), name: None, dated: None });
    it.instance_type = Some(instance_type.to_owned());
    it
}

#[test]
fn a_type_without_an_image_is_told_so() {
    let wanted = resolved("", None, Purpose::Wave);
    assert_eq!(replacing(&wanted, "m7g.large"), "0b");
    assert_eq!(replacing(&wanted, "m5.large"), "no image fits");
    assert_eq!(replacing(&wanted, "c5.large"), "not resolved");
    assert!(drift(&runs("0a", "m7g.large"), &wanted).drifted());
    assert!(matches!(drift(&runs("0a", "m5.large"), &wanted), Drift::Unknown(_)));
}

/// Found by an attack: the pool asks for other machines by now, and an image was missed for what the node is.
#[test]
fn what_the_pool_asks_for_now_lacks_the_image() {
    for (types, told) in [
        (
            "m5.large",
            "an image for m5.large: NodePool `web` asks for that now and not for m7g.large; no image fits it",
        ),
        (
            "m5.large m5.xlarge",
            "an image for m5.large and another type: NodePool `web` asks for that now and not for m7g.large; \
             no image fits it",
        ),
    ] {
        let world = format!("image 0a mine-v1 self arm64 52d\nterm name=mine-*\ntypes {types}");
        let wanted = wanted(&World::read(&world).resolve(), None, Purpose::Wave);
        let found = drift(&runs("0a", "m7g.large"), &wanted);
        let Drift::Unknown(missing) = found else { panic!("{found:?}") };
        assert_eq!(missing.to_string(), told);
    }
}

/// Where nothing else was asked for, it is the image that a person has to hear of.
#[test]
fn an_image_that_cannot_be_used_any_more_is_named() {
    for (flag, because) in [
        (
            "unlisted=1d",
            "not listed any more since 2026-07-31T00:00:00Z: unshared, disallowed or deregistered",
        ),
        ("gone=1d", "deregistered, gone since 2026-07-31T00:00:00Z"),
        ("state=disabled", "its owner has disabled it"),
    ] {
        let world = format!(
            "
            image 0a mine-v1 self arm64 52d {flag}
            term name=mine-*
            types m7g.large m5.large
            "
        );
        let wanted = wanted(&World::read(&world).resolve(), None, Purpose::Wave);
        let Drift::Unknown(missing) = drift(&runs("0a", "m7g.large"), &wanted) else {
            panic!("{flag}: nobody knows what it should run");
        };
        let text = format!("an image for m7g.large: ami-0000000a cannot be used: {because}");
        assert_eq!(missing.to_string(), text);
        let Missing::ReplacementImage { because, .. } = missing else { panic!("{text}") };
        assert_eq!(because.object, Some(("Image", "ami-0000000a".to_owned())));
        assert_eq!(replacing(&wanted, "m5.large"), "no image fits", "it is of another processor");
    }
}

#[test]
fn a_node_on_a_young_image_that_is_in_use_is_in_sync() {
    let fresh = resolved("", None, Purpose::Wave);
    assert!(drift(&runs("0c", "m7g.large"), &fresh).drifted(), "nobody said that it is in use");
    let used = resolved("in-use 0c", None, Purpose::Wave);
    assert_eq!(replacing(&used, "m7g.large"), "0b", "new nodes get the ripe one");
    let young = runs("0c", "m7g.large");
    assert!(!drift(&young, &used).divergences().any(|it| it.reason() == "Image"));
    // Exempt from age, and from age only.
    let bad = resolved("in-use 0c\n quarantine bad id:0c", None, Purpose::Wave);
    assert!(drift(&young, &bad).drifted());
}

#[test]
fn a_candidate_is_for_its_own_slots_and_a_halt_is_for_all() {
    let last_good = ImageRef { id: support::id("0a"), name: None, dated: None };
    let rollout =
        |halted| Rollout { candidate: support::id("0b"), last_good: last_good.clone(), halted };
    for (halted, purpose, expected) in [
        (false, Purpose::Wave, "0b"),
        (false, Purpose::Other, "0a"),
        (true, Purpose::Wave, "0a"),
        (true, Purpose::Other, "0a"),
    ] {
        let wanted = resolved("", Some(&rollout(halted)), purpose);
        assert_eq!(replacing(&wanted, "m7g.large"), expected, "{halted} {purpose:?}");
    }
    // Going back is ordinary drift.
    let halted = resolved("", Some(&rollout(true)), Purpose::Wave);
    assert!(drift(&runs("0b", "m7g.large"), &halted).drifted());
    assert!(
        !drift(&runs("0a", "m7g.large"), &halted).divergences().any(|it| it.reason() == "Image")
    );
}

// ---- laws ----

proptest! {
    /// A label is judged as the algebra of requirements judges it.
    #[test]
    fn labels_are_judged_by_the_algebra(
        operator in select(vec![Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist,
            Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte]),
        values in prop::collection::vec(select(vec!["a", "b", "5", "7", "-3", "05"]), 0..3),
        have in prop::option::of(select(vec!["a", "b", "5", "6", "07", "-3", ""])),
    ) {
        let asked = written("k", operator, &values.join(" "));
        prop_assume!(asked.check().is_ok());
        let vocabulary = Vocabulary::new();
        let requirement = Requirement::read(&asked, &vocabulary);
        let expected = match have {
            // What no label can be, none lacks.
            None => requirement.admits_absent() || pinned(std::slice::from_ref(&asked)).is_empty(),
            Some(value) => requirement.admits(vocabulary.value(value)),
        };
        let (mut running, mut wanted) = (running(), wants());
        running.labels = have.map(|it| ("k".to_owned(), it.to_owned())).into_iter().collect();
        wanted.beside.requirements = vec![asked];
        prop_assert_eq!(drift(&running, &wanted) == Drift::InSync, expected);
    }

    /// Law 4: take away whatever you like from what is known; a difference never appears by that.
    #[test]
    fn forgetting_never_makes_a_difference(mask in 0..4096_u32, differs in 0..64_u32) {
        let (mut full, mut want) = (running(), wants());
        if differs & 1 != 0 { full.image = Some(image("a", "x", "2026-01-01")); }
        if differs & 2 != 0 { full.kubelet = "1.20".parse().ok(); }
        if differs & 4 != 0 { want.beside.security_groups = Some(Listed::twice(set("sg-9"))); }
        if differs & 8 != 0 { want.beside.subnets = Some(Listed::twice(set("subnet-9"))); }
        if differs & 16 != 0 { want.beside.template_stamp = Some(PoolTemplate::default().stamp()); }
        if differs & 32 != 0 { want.beside.instance_types = Some(Listed::twice(set("x"))); }
        let all: Vec<Divergence> = drift(&full, &want).divergences().cloned().collect();
        let (mut less, mut wanted) = (full, want);
        let forget = |bit: u32| mask & (1 << bit) != 0;
        if forget(0) { less.image = None; }
        if forget(1) { less.instance_type = None; }
        if forget(2) { less.class_stamp = None; }
        if forget(3) { less.template_stamp = None; }
        if forget(4) { less.instance = None; }
        if forget(5) { less.kubelet = None; }
        if forget(6) { wanted.beside.security_groups = None; }
        if forget(7) { wanted.beside.subnets = None; }
        if forget(8) { wanted.beside.class_stamp = None; }
        if forget(9) { wanted.beside.template_stamp = None; }
        if forget(10) { wanted.beside.instance_types = None; }
        if forget(11) { wanted.beside.control_plane = None; }
        let found: Vec<Divergence> = drift(&less, &wanted).divergences().cloned().collect();
        prop_assert!(found.iter().all(|it| all.contains(it)), "{found:?} of {all:?}");
    }
}
