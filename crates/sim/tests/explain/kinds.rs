//! What can be in the way of a node?
//!
//! One function for each kind: it puts the thing into the world and says what a story has to name.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodemolt_sim::{Act, World, kinds};
use serde_json::{Value, json};

use crate::draft::{Draft, NEW_IMAGE};

/// Kind, namespace and name.
pub(crate) type Object = (String, String, String);

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) inject: fn(&mut Draft) -> Injected,
}

/// What was put into a world, and what is done in it before anybody asks.
#[derive(Default)]
pub(crate) struct Injected {
    pub(crate) does: Vec<Does>,
    /// Each of these has to be named.
    pub(crate) expected: Vec<Object>,
    /// And may be named beside, since it was put there too.
    pub(crate) allowed: Vec<Object>,
    /// Each of these has to be read.
    pub(crate) words: Vec<String>,
    pub(crate) ends_at: Option<Timestamp>,
    pub(crate) holds: Holds,
}

#[derive(Default)]
pub(crate) enum Holds {
    /// Every old node that has no grant.
    #[default]
    Ungranted,
    /// Every old node.
    All,
    /// The nodes that have pods whose name begins with this, in this namespace.
    PodsOf(String, String),
    Node(String),
    /// Those that have a grant.
    Granted,
}

pub(crate) enum Does {
    Run(i64),
    Act(String),
    /// Until it is so, a few seconds at a time, and at most for half an hour.
    Until(fn(&World) -> bool),
    /// What can be known only then.
    Look(fn(&World, &mut Injected)),
    /// An act that depends on what is there.
    ActOn(fn(&World, &Injected) -> Vec<String>),
}

impl Injected {
    fn naming(kind: &str, namespace: &str, name: &str) -> Self {
        let expected = vec![object(kind, namespace, name)];
        Self { does: vec![Does::Run(2)], expected, ..Self::default() }
    }

    fn holding(self, holds: Holds) -> Self {
        Self { holds, ..self }
    }

    fn saying(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    fn doing(self, does: Vec<Does>) -> Self {
        Self { does, ..self }
    }

    fn until(self, at: Timestamp) -> Self {
        Self { ends_at: Some(at), ..self }
    }

    /// And what is known only afterwards.
    pub(crate) fn live(mut self, world: &mut World) -> Self {
        for does in std::mem::take(&mut self.does) {
            match does {
                Does::Run(mins) => world.run(SignedDuration::from_mins(mins)),
                Does::Act(line) => act(world, &line),
                Does::Until(so) => {
                    let mut left = 600;
                    while !so(world) && left > 0 {
                        world.run(SignedDuration::from_secs(3));
                        left -= 1;
                    }
                }
                Does::Look(look) => look(world, &mut self),
                Does::ActOn(acts) => {
                    for line in acts(world, &self) {
                        act(world, &line);
                    }
                }
            }
        }
        self
    }
}

fn act(world: &mut World, line: &str) {
    let act: Act = line.parse().unwrap_or_else(|it| panic!("{it}"));
    world.act(&act).unwrap_or_else(|it| panic!("{line}: {it}"));
}

pub(crate) fn object(kind: &str, namespace: &str, name: &str) -> Object {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

pub(crate) const ALL: &[Kind] = &[
    Kind { name: "the cluster's one slot", inject: slot },
    Kind { name: "NodePool budget of one", inject: pool_budget },
    Kind { name: "NodePool budget of nought by schedule", inject: pool_schedule },
    Kind { name: "NodePool budget that cannot be read", inject: pool_unreadable },
    Kind { name: "NodeDisruptionBudget that allows none", inject: disruption_budget },
    Kind { name: "ImagePolicy concurrency", inject: concurrency },
    Kind { name: "ImagePolicy window", inject: window },
    Kind { name: "ImagePolicy budget that cannot be read", inject: policy_unreadable },
    Kind { name: "minimum node lifetime", inject: lifetime },
    Kind { name: "PodDisruptionBudget that never allows", inject: pdb_never },
    Kind { name: "two PodDisruptionBudgets on a pod", inject: pdb_two },
    Kind { name: "PodDisruptionBudget not counted anew", inject: pdb_stale },
    Kind { name: "PodDisruptionBudget spoken for", inject: pdb_shared },
    Kind { name: "PodDisruptionBudget in the middle of a drain", inject: pdb_mid_drain },
    Kind { name: "protected pod", inject: protected_pod },
    Kind { name: "protected node", inject: protected_node },
    Kind { name: "protected claim", inject: protected_claim },
    Kind { name: "bare pod", inject: bare_pod },
    Kind { name: "no place for a pod", inject: no_place },
    Kind { name: "NodePool limit", inject: limit },
    Kind { name: "no capacity", inject: no_capacity },
    Kind { name: "subnets without a free address", inject: no_address },
    Kind { name: "user data that nobody can read", inject: user_data },
    Kind { name: "SSM is throttled", inject: throttled_ssm },
    Kind { name: "EC2 is throttled", inject: throttled_ec2 },
    Kind { name: "quarantined image", inject: quarantined },
    Kind { name: "image too young", inject: too_young },
    Kind { name: "image deregistered", inject: deregistered },
    Kind { name: "successor never joins", inject: never_joins },
    Kind { name: "successor is never ready", inject: never_ready },
    Kind { name: "next try after a failure", inject: next_try },
    Kind { name: "successor died", inject: successor_died },
    Kind { name: "successor was deleted", inject: successor_deleted },
    Kind { name: "paused", inject: paused },
    Kind { name: "locked", inject: locked },
    Kind { name: "another replacement of the same workload", inject: shared_workload },
    Kind { name: "homeless pod in the pool", inject: homeless },
    Kind { name: "successor cordoned by a person", inject: successor_cordoned },
];

/// The node whose grant stands in the ledger.
fn user(world: &World, injected: &mut Injected) {
    injected.words.extend(granted(world).into_iter().take(1));
}

pub(crate) fn granted(world: &World) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for ledger in world.objects(kinds::LEDGER) {
        for grant in ledger["status"]["grants"].as_array().into_iter().flatten() {
            all.extend(grant["nodeName"].as_str().map(str::to_owned));
        }
    }
    all
}

fn somebody_granted(world: &World) -> bool {
    !granted(world).is_empty()
}

fn slot(draft: &mut Draft) -> Injected {
    full(draft);
    let does = vec![Does::Until(somebody_granted), Does::Run(1), Does::Look(user)];
    Injected::naming("DisruptionLedger", "", "cluster").doing(does)
}

fn pool_budget(draft: &mut Draft) -> Injected {
    full(draft);
    draft.all_at_once();
    draft.pool_spec["disruption"]["budgets"] = json!([{"nodes": "1"}]);
    let does = vec![Does::Until(somebody_granted), Does::Run(1), Does::Look(user)];
    Injected::naming("NodePool", "", &draft.pool).doing(does)
}

/// It began some minutes ago and ends at a known time.
fn pool_schedule(draft: &mut Draft) -> Injected {
    let began =
        draft.start - SignedDuration::from_mins(i64::try_from(draft.dice.between(1, 50)).unwrap());
    let hours = i64::try_from(draft.dice.between(1, 9)).unwrap();
    let at = began.to_zoned(jiff::tz::TimeZone::UTC);
    let schedule = format!("{} {} * * *", at.minute(), at.hour());
    draft.pool_spec["disruption"]["budgets"] = json!([
        {"nodes": "100%"},
        {"nodes": "0", "schedule": schedule, "duration": format!("{hours}h")},
    ]);
    let ends = began + SignedDuration::from_hours(hours);
    Injected::naming("NodePool", "", &draft.pool).until(ends).holding(Holds::All)
}

fn pool_unreadable(draft: &mut Draft) -> Injected {
    let schedule = *draft.dice.pick(&["99 * * * *", "0 25 * * *", "0 0 31 2 *x"]).unwrap();
    draft.pool_spec["disruption"]["budgets"] =
        json!([{"nodes": "100%"}, {"nodes": "1", "schedule": schedule, "duration": "1h"}]);
    Injected::naming("NodePool", "", &draft.pool).saying("cannot be read").holding(Holds::All)
}

fn disruption_budget(draft: &mut Draft) -> Injected {
    let choices = [
        json!({"maxUnavailable": 0}),
        json!({"maxUnavailable": "0%"}),
        json!({"minAvailable": "100%"}),
        json!({"minAvailable": 99}),
    ];
    let mut spec = draft.dice.pick(&choices).unwrap().clone();
    spec["labelSelectors"] = json!([{"karpenter.sh/nodepool": draft.pool}]);
    let name = (*draft.dice.pick(&["frozen", "keep-all", "budget"]).unwrap()).to_owned();
    draft.document("karpenter.sh/v1alpha1", "NodeDisruptionBudget", &json!({"name": name}), &spec);
    Injected::naming("NodeDisruptionBudget", "", &name).holding(Holds::All)
}

fn concurrency(draft: &mut Draft) -> Injected {
    full(draft);
    draft.rollout = json!({"concurrency": 1});
    let does = vec![Does::Until(somebody_granted), Does::Run(1), Does::Look(user)];
    Injected::naming("ImagePolicy", "", &draft.policy).doing(does)
}

fn window(draft: &mut Draft) -> Injected {
    let opens = draft.start
        + SignedDuration::from_mins(i64::try_from(draft.dice.between(20, 600)).unwrap());
    let at = opens.to_zoned(jiff::tz::TimeZone::UTC);
    let schedule = format!("{} {} * * *", at.minute(), at.hour());
    let allow = json!([{"schedule": schedule, "duration": "10m"}]);
    draft.rollout = json!({"windows": {"allow": allow}});
    let opens = opens - SignedDuration::from_secs(i64::from(at.second()));
    Injected::naming("ImagePolicy", "", &draft.policy).until(opens).holding(Holds::All)
}

fn policy_unreadable(draft: &mut Draft) -> Injected {
    let choices = [
        json!({"windows": {"timeZone": "Europe/Atlantis", "allow": [{"from": "00:00", "to": "24:00"}]}}),
        json!({"windows": {"allow": [{"schedule": "0 0 31 2 x", "duration": "1h"}]}}),
        json!({"windows": {"timeZone": "Mars/Olympus", "forbid": []}}),
    ];
    let rollout = draft.dice.pick(&choices).unwrap().clone();
    // A file is not read with that in it; a cluster takes it.
    let manifest = json!({"apiVersion": "nodemolt.dev/v1alpha1", "kind": "ImagePolicy",
        "metadata": {"name": draft.policy}, "spec": {"rollout": rollout}});
    let does =
        vec![Does::Act(format!("apply {}", Value::from(manifest.to_string()))), Does::Run(2)];
    Injected::naming("ImagePolicy", "", &draft.policy)
        .doing(does)
        .saying("cannot be read")
        .holding(Holds::All)
}

fn lifetime(draft: &mut Draft) -> Injected {
    let more = i64::try_from(draft.dice.between(2, 90)).unwrap();
    let hours = draft.age_hours + more;
    draft.rollout = json!({"minimumNodeLifetime": format!("{hours}h")});
    let until = draft.start + SignedDuration::from_hours(more);
    Injected::naming("ImagePolicy", "", &draft.policy).until(until).holding(Holds::All)
}

fn pdb(draft: &mut Draft, name: &str, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": draft.app}});
    let called = json!({"name": name, "namespace": draft.namespace});
    draft.document("policy/v1", "PodDisruptionBudget", &called, &spec);
}

fn pods_of(draft: &Draft) -> Holds {
    Holds::PodsOf(draft.namespace.clone(), draft.app.clone())
}

fn pdb_never(draft: &mut Draft) -> Injected {
    let amounts = [
        json!({"maxUnavailable": 0}),
        json!({"minAvailable": "100%"}),
        json!({"minAvailable": draft.replicas}),
    ];
    let amount = draft.dice.pick(&amounts).unwrap().clone();
    let name = (*draft.dice.pick(&["never", "cart", "all-or-none"]).unwrap()).to_owned();
    pdb(draft, &name, amount);
    Injected::naming("PodDisruptionBudget", &draft.namespace, &name)
        .saying(format!("namespace {}", draft.namespace))
        .holding(pods_of(draft))
}

fn pdb_two(draft: &mut Draft) -> Injected {
    pdb(draft, "first", json!({"maxUnavailable": 1}));
    pdb(draft, "second", json!({"maxUnavailable": "50%"}));
    let mut injected = Injected::naming("PodDisruptionBudget", &draft.namespace, "first");
    injected.expected.push(object("PodDisruptionBudget", &draft.namespace, "second"));
    injected.holding(pods_of(draft))
}

/// It is paused, so that nothing begins before; then the budget is changed, and somebody asks at once.
fn pdb_stale(draft: &mut Draft) -> Injected {
    pdb(draft, "slow", json!({"maxUnavailable": 1}));
    let manifest = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "slow", "namespace": draft.namespace},
        "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": draft.app}}},
    });
    let does = vec![
        Does::Act("pause the night before the sale".to_owned()),
        Does::Run(2),
        Does::Act(format!("apply {}", Value::from(manifest.to_string()))),
    ];
    let mut injected =
        Injected::naming("PodDisruptionBudget", &draft.namespace, "slow").doing(does);
    injected.allowed.push(object("DisruptionLedger", "", "cluster"));
    injected.saying("not yet counted anew").holding(pods_of(draft))
}

fn pdb_shared(draft: &mut Draft) -> Injected {
    draft.all_at_once();
    full(draft);
    pdb(draft, "one", json!({"maxUnavailable": 1}));
    let does = vec![Does::Until(somebody_granted), Does::Run(1)];
    Injected::naming("PodDisruptionBudget", &draft.namespace, "one").doing(does)
}

fn cordoned(world: &World) -> bool {
    world.objects(kinds::NODE).iter().any(|it| {
        let taints = it["spec"]["taints"].as_array();
        taints.into_iter().flatten().any(|it| it["key"] == "karpenter.sh/disrupted")
    })
}

/// It allows one after another, and then none any more.
fn pdb_mid_drain(draft: &mut Draft) -> Injected {
    draft.replicas = 3 * draft.nodes.len();
    draft.pod_annotations = json!({"sim.nodemolt.dev/ready-after": "1m"});
    pdb(draft, "one", json!({"maxUnavailable": 1}));
    let never = format!("fault pdb-never {}/one", draft.namespace);
    let does = vec![Does::Until(cordoned), Does::Act(never), Does::Run(3)];
    Injected::naming("PodDisruptionBudget", &draft.namespace, "one")
        .doing(does)
        .holding(Holds::Granted)
}

fn protected_pod(draft: &mut Draft) -> Injected {
    let annotation =
        *draft.dice.pick(&["karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict"]).unwrap();
    let labels = json!({"app": "precious"});
    let metadata = json!({"labels": labels, "annotations": {annotation: "true"}});
    let spec = json!({"replicas": 1, "serviceName": "precious", "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": draft.pod}});
    let called = json!({"name": "precious", "namespace": draft.namespace});
    draft.document("apps/v1", "StatefulSet", &called, &spec);
    Injected::naming("Pod", &draft.namespace, "precious-0")
        .saying(annotation)
        .holding(Holds::PodsOf(draft.namespace.clone(), "precious".to_owned()))
}

fn protected_node(draft: &mut Draft) -> Injected {
    let node = draft.dice.pick(&draft.nodes).unwrap().clone();
    let manifest = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let does =
        vec![Does::Act(format!("apply {}", Value::from(manifest.to_string()))), Does::Run(2)];
    Injected::naming("Node", "", &node).doing(does).holding(Holds::Node(node))
}

fn protected_claim(draft: &mut Draft) -> Injected {
    let at = usize::try_from(draft.dice.below(draft.nodes.len() as u64)).unwrap();
    let claim = format!("{}-{at}", draft.pool);
    let manifest = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": claim, "annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let does =
        vec![Does::Act(format!("apply {}", Value::from(manifest.to_string()))), Does::Run(2)];
    let node = draft.nodes[at].clone();
    Injected::naming("NodeClaim", "", &claim).doing(does).holding(Holds::Node(node))
}

fn bare_pod(draft: &mut Draft) -> Injected {
    let name = format!("by-hand-{}", draft.dice.below(100));
    let metadata = json!({"name": name, "namespace": draft.namespace});
    let pod = draft.pod.clone();
    draft.document("v1", "Pod", &metadata, &pod);
    Injected::naming("Pod", &draft.namespace, &name)
        .saying("no controller")
        .holding(Holds::PodsOf(draft.namespace.clone(), name))
}

/// It wants to be on that very node, and on no other.
fn no_place(draft: &mut Draft) -> Injected {
    let node = draft.dice.pick(&draft.nodes).unwrap().clone();
    let mut pod = draft.pod.clone();
    pod["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    let labels = json!({"app": "pinned"});
    let spec = json!({"replicas": 1, "serviceName": "pinned", "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}});
    draft.document(
        "apps/v1",
        "StatefulSet",
        &json!({"name": "pinned", "namespace": draft.namespace}),
        &spec,
    );
    draft.all_at_once();
    Injected::naming("Pod", &draft.namespace, "pinned-0").holding(Holds::Node(node))
}

/// Its nodes have all the processors that it may have, and are full.
fn limit(draft: &mut Draft) -> Injected {
    let each = if draft.instance_type.ends_with("xlarge") { 4 } else { 2 };
    draft.pool_spec["limits"] = json!({"cpu": (each * draft.nodes.len()).to_string()});
    draft.pod["containers"][0]["resources"]["requests"] = json!({"cpu": "800m", "memory": "256Mi"});
    draft.replicas = draft.nodes.len() * if each == 4 { 4 } else { 2 };
    Injected::naming("NodePool", "", &draft.pool).saying("limits").holding(Holds::All)
}

/// Attempts are made until none is left to make.
fn no_capacity(draft: &mut Draft) -> Injected {
    full(draft);
    let does =
        vec![Does::Act("fault no-capacity".to_owned()), Does::Run(4), Does::Look(open_claims)];
    Injected::default().doing(does).saying("apacity").holding(Holds::Granted)
}

/// There are machines, and no address for one.
fn no_address(draft: &mut Draft) -> Injected {
    full(draft);
    let tags = json!({"nodemolt.dev/discovery": "blue"});
    let zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"].into_iter().enumerate();
    let subnet = |(at, zone)| json!({"id": format!("subnet-0000000{at}"), "zone": zone, "tags": tags, "freeAddresses": 0});
    draft.subnets = zones.map(subnet).collect();
    let injected = Injected::naming("EC2NodeClass", "", &draft.class).holding(Holds::All);
    injected.saying("free addresses").saying("subnet-00000001 (eu-central-1b)")
}

/// Whatever machine it would be, nobody can tell it how to join.
fn user_data(draft: &mut Draft) -> Injected {
    full(draft);
    let broken = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet: [broken\n";
    draft.class_spec["userData"] = json!(broken);
    let injected = Injected::naming("EC2NodeClass", "", &draft.class).holding(Holds::All);
    injected.saying("nothing can be launched of EC2NodeClass").saying("its user data")
}

/// So full that a successor is needed.
fn full(draft: &mut Draft) {
    let xlarge = draft.instance_type.ends_with("xlarge");
    draft.pod["containers"][0]["resources"]["requests"] = json!({"cpu": "800m", "memory": "256Mi"});
    draft.replicas = draft.nodes.len() * if xlarge { 4 } else { 2 };
}

/// Claims that are no nodes yet.
fn open_claims(world: &World, injected: &mut Injected) {
    for claim in world.objects(kinds::CLAIM) {
        let conditions = claim["status"]["conditions"].as_array();
        let there = conditions
            .into_iter()
            .flatten()
            .any(|it| it["type"] == "Initialized" && it["status"] == "True");
        if !there {
            injected.expected.push(object(
                "NodeClaim",
                "",
                claim["metadata"]["name"].as_str().unwrap(),
            ));
        }
    }
}

fn parameter(draft: &Draft) -> String {
    let arch = if draft.arch == "amd64" { "x86_64" } else { draft.arch };
    format!(
        "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/{arch}/standard/recommended/image_id"
    )
}

fn throttled_ssm(draft: &mut Draft) -> Injected {
    let run = i64::try_from(draft.dice.between(1, 12)).unwrap();
    let does = vec![Does::Act("fault throttle ssm".to_owned()), Does::Run(run)];
    let mut injected = Injected::naming("SSMParameter", "", &parameter(draft)).doing(does);
    // It is one question about all flavours.
    for (arch, flavour) in [
        ("arm64", "nvidia"),
        ("arm64", "standard"),
        ("x86_64", "neuron"),
        ("x86_64", "nvidia"),
        ("x86_64", "standard"),
    ] {
        let name = format!(
            "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/{arch}/{flavour}/recommended/image_id"
        );
        injected.allowed.push(object("SSMParameter", "", &name));
    }
    injected.saying("AWS SSM").saying("throttled").saying("asked again").holding(Holds::All)
}

/// SSM says which, and EC2 does not say what that is.
fn throttled_ec2(draft: &mut Draft) -> Injected {
    let run = i64::try_from(draft.dice.between(1, 12)).unwrap();
    let does = vec![Does::Act("fault throttle ec2".to_owned()), Does::Run(run)];
    let mut injected = Injected::naming("AWSCall", "", "ec2:DescribeInstanceTypes").doing(does);
    for call in ["ec2:DescribeSecurityGroups", "ec2:DescribeSubnets"] {
        injected.allowed.push(object("AWSCall", "", call));
    }
    injected.holding(Holds::All).saying("Amazon EC2").saying("asked again")
}

fn quarantined(draft: &mut Draft) -> Injected {
    let name = format!("bad-{}", draft.dice.below(1000));
    let spec = json!({"id": NEW_IMAGE, "reason": "nodes lose their network"});
    draft.document("nodemolt.dev/v1alpha1", "ImageQuarantine", &json!({"name": name}), &spec);
    Injected::naming("ImageQuarantine", "", &name).saying(NEW_IMAGE).holding(Holds::All)
}

fn too_young(draft: &mut Draft) -> Injected {
    let days = draft.dice.between(11, 40);
    let by_class = draft.dice.chance(500);
    let ripe = draft.start + SignedDuration::from_hours(24 * (i64::try_from(days).unwrap() - 10));
    let injected = if by_class {
        draft.class_spec["amiMinimumAge"] = json!(format!("{days}d"));
        Injected::naming("EC2NodeClass", "", &draft.class)
    } else {
        let spec = json!({"minimumAge": format!("{days}d")});
        draft.document("nodemolt.dev/v1alpha1", "ImagePolicy", &json!({"name": "patience"}), &spec);
        Injected::naming("ImagePolicy", "", "patience")
    };
    injected.saying(NEW_IMAGE).until(ripe).holding(Holds::All)
}

/// The parameter names what is not there any more.
fn deregistered(draft: &mut Draft) -> Injected {
    draft.new_image_there = false;
    let publish = format!("publish {} --id {NEW_IMAGE}", draft.image_name("v20261101"));
    let gone = *draft.dice.pick(&["deregister", "disable"]).unwrap();
    let does = vec![Does::Act(publish), Does::Act(format!("{gone} {NEW_IMAGE}")), Does::Run(2)];
    Injected::naming("Image", "", NEW_IMAGE).doing(does).holding(Holds::All)
}

fn never_joins(draft: &mut Draft) -> Injected {
    full(draft);
    let fault = Does::Act("fault never-joins".to_owned());
    let does = vec![fault, Does::Until(somebody_granted), Does::Run(3), Does::Look(open_claims)];
    Injected::default().doing(does).saying("to join").holding(Holds::Granted)
}

fn never_ready(draft: &mut Draft) -> Injected {
    full(draft);
    let fault = Does::Act("fault never-ready".to_owned());
    let does = vec![fault, Does::Until(somebody_granted), Does::Run(5), Does::Look(open_claims)];
    Injected::default().doing(does).saying("ready").holding(Holds::Granted)
}

fn ended(world: &World) -> bool {
    let phase = |it: &Value| it["status"]["phase"].as_str().map(str::to_owned);
    let failed = |it: &Value| matches!(phase(it).as_deref(), Some("Failed" | "Skipped" | "Kept"));
    world.objects(kinds::REPLACEMENT).iter().any(|it| failed(it))
}

/// The node whose try failed, and what it failed with.
fn failed(world: &World, injected: &mut Injected) {
    for it in world.objects(kinds::REPLACEMENT) {
        if matches!(it["status"]["phase"].as_str(), Some("Failed" | "Skipped" | "Kept")) {
            injected.holds = Holds::Node(it["spec"]["nodeName"].as_str().unwrap().to_owned());
        }
    }
}

/// The first that was made for a replacement.
fn remember_claim(world: &World, injected: &mut Injected) {
    let known = injected.expected.len();
    open_claims(world, injected);
    injected.expected.truncate(known + 1);
}

fn next_try(draft: &mut Draft) -> Injected {
    full(draft);
    let does = vec![
        Does::Act("fault never-joins".to_owned()),
        Does::Until(has_claim),
        Does::Look(remember_claim),
        Does::Until(ended),
        Does::Run(1),
        Does::Look(failed),
        Does::Look(others_open),
    ];
    Injected::default().doing(does).saying("next try")
}

/// Those that are tried meanwhile wait for what never joins, too.
fn others_open(world: &World, injected: &mut Injected) {
    let known = injected.expected.len();
    open_claims(world, injected);
    let others = injected.expected.split_off(known);
    injected.allowed.extend(others);
}

fn has_claim(world: &World) -> bool {
    let mut injected = Injected::default();
    open_claims(world, &mut injected);
    !injected.expected.is_empty()
}

/// The names of nodes that were not there at the beginning.
fn successors(world: &World) -> Vec<String> {
    let all = world.objects(kinds::NODE);
    let names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
    names.filter(|it| !it.contains("-node-")).map(str::to_owned).collect()
}

fn successor_died(draft: &mut Draft) -> Injected {
    full(draft);
    draft.pod_annotations = json!({"sim.nodemolt.dev/ready-after": "2m"});
    pdb(draft, "one", json!({"maxUnavailable": 1}));
    let does = vec![
        Does::Until(cordoned),
        Does::Look(|world, injected| {
            let node = successors(world).remove(0);
            injected.expected.push(object("Node", "", &node));
        }),
        Does::ActOn(|_, injected| vec![format!("fault node-dies {}", injected.expected[0].2)]),
        Does::Until(ended),
        Does::Look(failed),
    ];
    Injected::default().doing(does).saying("machine").saying("has ended")
}

fn successor_deleted(draft: &mut Draft) -> Injected {
    full(draft);
    let does = vec![
        Does::Until(has_claim),
        Does::Look(remember_claim),
        Does::ActOn(|_, injected| vec![format!("delete NodeClaim {}", injected.expected[0].2)]),
        Does::Until(ended),
        Does::Run(1),
        Does::Look(failed),
    ];
    Injected::default().doing(does).saying("was deleted")
}

fn paused(draft: &mut Draft) -> Injected {
    let reason = *draft.dice.pick(&["the sale begins", "INC-2041", "ask Ada first"]).unwrap();
    let does = vec![Does::Act(format!("pause {reason}")), Does::Run(2)];
    Injected::naming("DisruptionLedger", "", "cluster")
        .doing(does)
        .saying(reason)
        .holding(Holds::All)
}

/// Two records of one node contradict each other. They are of claims that are there: a name is given again
/// when a claim is gone.
fn locked(_: &mut Draft) -> Injected {
    fn both(world: &World, _: &Injected) -> Vec<String> {
        let claims = world.objects(kinds::CLAIM);
        let node = &claims[0]["status"]["nodeName"];
        let record = |claim: &Value| {
            let (name, uid) = (&claim["metadata"]["name"], &claim["metadata"]["uid"]);
            json!({"apiVersion": "nodemolt.dev/v1alpha1", "kind": "Replacement", "metadata": {"name": uid},
                "spec": {"nodeClaim": {"name": name, "uid": uid}, "nodeName": node}})
        };
        let both = format!("{}\n---\n{}", record(&claims[0]), record(&claims[1]));
        vec![format!("apply {}", Value::from(both))]
    }
    Injected::naming("DisruptionLedger", "", "cluster")
        .doing(vec![Does::ActOn(both), Does::Run(2)])
        .saying("unlock")
}

fn shared_workload(draft: &mut Draft) -> Injected {
    draft.nodes.truncate(2);
    draft.all_at_once();
    draft.replicas = 2;
    draft.pod["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": draft.app}}}]);
    let does = vec![
        Does::Until(somebody_granted),
        Does::Look(|world, injected| {
            for node in granted(world) {
                injected.expected.push(object("Node", "", &node));
            }
        }),
    ];
    Injected::default().doing(does).saying(format!("{}/{}", draft.namespace, draft.app))
}

/// Before the old node is: its pods were to go there.
fn successor_cordoned(draft: &mut Draft) -> Injected {
    full(draft);
    let does = vec![
        Does::Until(|world| !successors(world).is_empty()),
        Does::Look(|world, injected| {
            let node = successors(world).remove(0);
            injected.expected.push(object("Node", "", &node));
        }),
        Does::ActOn(|_, injected| vec![format!("cordon {}", injected.expected[0].2)]),
        Does::Run(3),
    ];
    Injected::default().doing(does).saying("somebody has cordoned it").holding(Holds::Granted)
}

/// What is moved finds every other node closed by a person, and EC2 has no machine for it.
fn homeless(draft: &mut Draft) -> Injected {
    full(draft);
    draft.rollout = json!({"drainLimit": "2h"});
    // One after another, so that some are left when the nodes are closed.
    draft.pod_annotations = json!({"sim.nodemolt.dev/ready-after": "1m"});
    pdb(draft, "one", json!({"maxUnavailable": 1}));
    let does = vec![
        Does::Until(cordoned),
        Does::ActOn(|world, _| {
            let all = world.objects(kinds::NODE);
            let names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
            let cordons = names.map(|it| format!("cordon {it}"));
            cordons.chain(["fault no-capacity".to_owned()]).collect()
        }),
        Does::Run(9),
        Does::Look(|world, injected| {
            let pods = world.objects(kinds::POD);
            let first = pods.iter().filter(|it| it["spec"]["nodeName"].is_null());
            let first = first.min_by_key(|it| {
                (
                    it["metadata"]["creationTimestamp"].to_string(),
                    it["metadata"]["name"].to_string(),
                )
            });
            let Some(first) = first else { return };
            let text = |at: &str| first.pointer(at).and_then(Value::as_str).unwrap().to_owned();
            injected.expected.push(object(
                "Pod",
                &text("/metadata/namespace"),
                &text("/metadata/name"),
            ));
        }),
    ];
    Injected::default().doing(does).saying("pending since")
}
