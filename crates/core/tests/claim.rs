//! How far has a machine come, and what is its next step?

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::claim::{
    ATTEMPTS_MAX, Because, CallSeen, ClaimStep, Command, Gate, MachineSeen, NodesSeen, Phase, Seen,
    forced_at, next,
};
use nodemolt_core::replace::READY_DEADLINE;
use nodemolt_core::seen::{
    Attempt, Claim, ClassKey, DISRUPTED_TAINT, FrozenRequest, MachineId, Node, Readiness, Revision,
    Stage, UNREGISTERED_TAINT,
};
use nodemolt_fit as fit;
use nodemolt_fit::Quantity;
use nodemolt_fit::taint::{Effect, Taint};
use proptest::prelude::*;

fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

fn secs(minutes: i64, seconds: i64) -> Timestamp {
    at(minutes) + SignedDuration::from_secs(seconds)
}

fn claim() -> Claim {
    Claim {
        name: "web-1".to_owned(),
        uid: "u-1".to_owned(),
        revision: Revision("1".to_owned()),
        pool: Some("web".to_owned()),
        class: ClassKey::own("web"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        created_at: at(0),
        deleting_since: None,
        held: true,
        finalizers: Vec::new(),
        requirements: Vec::new(),
        taints: Vec::new(),
        startup_taints: vec![Taint::new("example.com/starting", "", Effect::NoSchedule)],
        requests: [("cpu".to_owned(), Quantity::from_units(1))].into(),
        termination_grace_period: None,
        expire_after: None,
        attempt: None,
        machine: None,
        node: None,
        image: None,
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        stages: BTreeMap::new(),
        class_stamp: None,
        template_stamp: None,
        foreign: Vec::new(),
        protection: None,
        upgrade_asked_at: None,
        successor_of: None,
    }
}

fn attempt(number: u32, since: Timestamp, ended: Option<&str>) -> Attempt {
    let request = FrozenRequest::default();
    let ended = ended.map(str::to_owned);
    Attempt { number, since, request, last_ended: None, ended }
}

fn machine() -> MachineId {
    MachineId("i-1".to_owned())
}

fn live() -> MachineSeen {
    MachineSeen::Live(machine())
}

fn node(name: &str) -> Node {
    let offered = [("cpu".to_owned(), Quantity::from_units(2))];
    Node {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        revision: Revision("1".to_owned()),
        fit: fit::node::Node { allocatable: offered.into(), ..fit::node::Node::default() },
        created_at: at(2),
        deleting_since: None,
        held: true,
        finalizers: Vec::new(),
        machine: Some(machine()),
        ready: Readiness::Ready,
        ready_since: None,
        kubelet: None,
        cordoned_by: None,
        protection: None,
        upgrade_asked_at: None,
    }
}

fn tainted(key: &str) -> Node {
    let mut node = node("a");
    node.fit.taints.push(Taint::new(key, "", Effect::NoSchedule));
    node
}

/// With a machine since minute one, and as far as these stages.
fn launched(stages: &[Stage]) -> Claim {
    let mut claim =
        Claim { machine: Some(machine()), attempt: Some(attempt(1, at(1), None)), ..claim() };
    claim.stages.insert(Stage::Launched, at(1));
    for stage in stages {
        claim.stages.insert(*stage, at(3));
        claim.node = Some("a".to_owned());
    }
    claim
}

fn running() -> Claim {
    launched(&[Stage::Registered, Stage::Initialized])
}

fn deleted(claim: Claim, since: Timestamp) -> Claim {
    Claim { deleting_since: Some(since), ..claim }
}

fn seen(machine: MachineSeen, nodes: NodesSeen<'_>) -> Seen<'_> {
    Seen { machine, nodes, pods_left: Some(0), ..Seen::UNKNOWN }
}

fn no_node<'a>() -> NodesSeen<'a> {
    NodesSeen::None { missing_since: None }
}

/// Phase, what it waits for, and what it asks, on one line.
fn told(step: &ClaimStep) -> String {
    let asks = match &step.asks {
        None => String::new(),
        Some(command) => format!("{command:?}"),
    };
    let next = step.because == Because::Next;
    let because = if next { String::new() } else { format!(" ({})", step.because) };
    format!("{}{because} → {asks}", step.phase.as_str()).trim_end_matches([' ', '→']).to_owned()
}

#[track_caller]
fn check(claim: &Claim, seen: &Seen<'_>, now: Timestamp, expected: &str) {
    assert_eq!(told(&next(claim, seen, now)), expected);
}

#[test]
fn a_machine_is_asked_for_one_attempt_at_a_time() {
    let absent = |first, last| MachineSeen::Absent { first, last };
    let fresh = claim();
    let asking = Claim { attempt: Some(attempt(1, at(1), None)), ..claim() };
    let ended = Claim { attempt: Some(attempt(1, at(1), Some("no capacity"))), ..claim() };
    let last =
        Claim { attempt: Some(attempt(ATTEMPTS_MAX, at(1), Some("no capacity"))), ..claim() };
    let withheld = CallSeen::Withheld("ami-1 is quarantined".to_owned());
    let unknown = CallSeen::Unknown { about: "no answer".to_owned() };
    let refused = CallSeen::Refused { why: "quota".to_owned(), at: at(4) };
    let with = |machine: MachineSeen, call: &CallSeen| Seen {
        call: call.clone(),
        withheld_since: Some(at(1)),
        ..seen(machine, no_node())
    };
    let since = |withheld_since, seen: Seen<'static>| Seen { withheld_since, ..seen };
    let free = &CallSeen::Free;
    let now = at(20);
    let proof = || absent(at(10), at(11));

    for (claim, seen, expected) in [
        (&fresh, with(MachineSeen::Unknown, free), "asked for → Attempt { number: 1 }"),
        (
            &fresh,
            with(MachineSeen::Unknown, &withheld),
            "asked for (no machine can be asked for: ami-1 is quarantined)",
        ),
        (
            &fresh,
            with(MachineSeen::Unknown, &unknown),
            "asked for (no machine is asked for: no answer)",
        ),
        // The call may have been lost: the same words again, and nothing else.
        (&asking, with(MachineSeen::Unknown, free), "asking → Call { number: 1 }"),
        (&asking, with(proof(), free), "asking → Call { number: 1 }"),
        (&asking, with(proof(), &unknown), "asking (no machine is asked for: no answer)"),
        (&asking, with(live(), free), "asking → Adopt { machine: MachineId(\"i-1\") }"),
        (&asking, with(live(), &withheld), "asking → Adopt { machine: MachineId(\"i-1\") }"),
        // What may not be asked again has to be proved empty before another is made.
        (
            &asking,
            with(MachineSeen::Unknown, &withheld),
            "asking (whether the last attempt made nothing is not proved yet: ami-1 is quarantined)",
        ),
        (
            &asking,
            with(absent(at(5), at(11)), &withheld),
            "asking (whether the last attempt made nothing is not proved yet: ami-1 is quarantined)",
        ),
        (
            &asking,
            with(absent(at(10), secs(10, 29)), &withheld),
            "asking (whether the last attempt made nothing is not proved yet: ami-1 is quarantined)",
        ),
        (
            &asking,
            with(absent(at(6), secs(6, 30)), &withheld),
            "asking → EndAttempt { number: 1, why: \"ami-1 is quarantined\" }",
        ),
        // Until it was withheld it may have been called again: that counts, and whoever knows of no time
        // has to watch first.
        (
            &asking,
            since(None, with(proof(), &withheld)),
            "asking (whether the last attempt made nothing is not proved yet: ami-1 is quarantined)",
        ),
        (
            &asking,
            since(Some(at(8)), with(proof(), &withheld)),
            "asking (whether the last attempt made nothing is not proved yet: ami-1 is quarantined)",
        ),
        (
            &asking,
            since(Some(at(5)), with(proof(), &withheld)),
            "asking → EndAttempt { number: 1, why: \"ami-1 is quarantined\" }",
        ),
        // A refusal counts from when it was heard.
        (
            &asking,
            with(absent(at(6), at(7)), &refused),
            "asking (whether the last attempt made nothing is not proved yet: quota)",
        ),
        (
            &asking,
            with(absent(at(9), at(10)), &refused),
            "asking → EndAttempt { number: 1, why: \"quota\" }",
        ),
        (
            &asking,
            with(MachineSeen::Gone, free),
            "asking → EndAttempt { number: 1, why: \"its machine ended before it was written down\" }",
        ),
        (
            &asking,
            with(MachineSeen::Ending(machine()), free),
            "asking (waits for its machine to end)",
        ),
        (&ended, with(MachineSeen::Unknown, free), "asked for → Attempt { number: 2 }"),
        (&ended, with(live(), free), "asking → Adopt { machine: MachineId(\"i-1\") }"),
        (
            &ended,
            with(MachineSeen::Ending(machine()), free),
            "asked for (waits for its machine to end)",
        ),
        (
            &last,
            with(proof(), free),
            "given up (given up after 5 attempts: no capacity) → DeleteClaim",
        ),
        (
            &last,
            Seen { successor: true, ..with(proof(), free) },
            "given up (given up after 5 attempts: no capacity)",
        ),
    ] {
        check(claim, &seen, now, expected);
    }
}

#[test]
fn a_node_joins_and_is_set_up() {
    let (one, ready) = (node("a"), node("a"));
    let not_ready = Node { ready: Readiness::NotReady, ..node("a") };
    let unknown = Node { ready: Readiness::Unknown, ..node("a") };
    let (starting, unregistered) = (tainted("example.com/starting"), tainted(UNREGISTERED_TAINT));
    let reported = tainted("readiness.k8s.io/network");
    let (own, mut poor) = (tainted("example.com/dedicated"), node("a"));
    poor.fit.allocatable.clear();
    let two = node("b");
    let joining = launched(&[]);
    let registered = launched(&[Stage::Registered]);
    let early = at(10);
    let (in_time, overdue) = (registered.stages[&Stage::Registered] + READY_DEADLINE, at(600));

    for (claim, nodes, now, expected) in [
        (&joining, no_node(), early, "joining (waits for its node to join)"),
        (&joining, NodesSeen::Unknown, at(60), "joining (waits for a fresh list of nodes)"),
        (&joining, NodesSeen::One(&one), early, "joining → Register { node: \"a\" }"),
        // One that came late has come.
        (&joining, NodesSeen::One(&one), at(60), "joining → Register { node: \"a\" }"),
        (&joining, no_node(), at(16), "joining (waits for its node to join)"),
        (&joining, no_node(), secs(16, 1), "condemned (no node joined in 15m) → DeleteClaim"),
        (
            &joining,
            NodesSeen::Several(vec![&one, &two]),
            early,
            "joining (waits for one of its nodes to go: a, b have one machine id)",
        ),
        (
            &joining,
            NodesSeen::Several(vec![&one, &two]),
            at(17),
            "condemned (no node joined in 15m) → DeleteClaim",
        ),
        (&registered, NodesSeen::One(&ready), early, "starting → Initialise { node: \"a\" }"),
        (
            &registered,
            NodesSeen::One(&not_ready),
            early,
            "starting (waits for its node to be ready)",
        ),
        (&registered, NodesSeen::One(&unknown), early, "starting (waits for its node to be ready)"),
        (
            &registered,
            NodesSeen::One(&starting),
            early,
            "starting (waits for taint example.com/starting to go)",
        ),
        (
            &registered,
            NodesSeen::One(&unregistered),
            early,
            "starting (waits for taint karpenter.sh/unregistered to go)",
        ),
        (
            &registered,
            NodesSeen::One(&reported),
            early,
            "starting (waits for taint readiness.k8s.io/network to go)",
        ),
        (&registered, NodesSeen::One(&own), early, "starting → Initialise { node: \"a\" }"),
        (&registered, NodesSeen::One(&poor), early, "starting (waits for its node to offer cpu)"),
        // Karpenter waits for ever. Whoever was to run there would wait as long: decision 0042.
        (
            &registered,
            NodesSeen::One(&not_ready),
            overdue,
            "condemned (it was not set up in 15m: it waited for its node to be ready) → DeleteClaim",
        ),
        (
            &registered,
            NodesSeen::One(&poor),
            overdue,
            "condemned (it was not set up in 15m: it waited for its node to offer cpu) → DeleteClaim",
        ),
        (&registered, NodesSeen::One(&poor), in_time, "starting (waits for its node to offer cpu)"),
        (&registered, NodesSeen::One(&ready), overdue, "starting → Initialise { node: \"a\" }"),
        // Once it was set up, it is whoever replaces it that looks.
        (&running(), NodesSeen::One(&not_ready), overdue, "running (nothing is in the way)"),
    ] {
        check(claim, &seen(live(), nodes), now, expected);
    }
    // Somebody is on it, or nobody knows; EC2 does not tell; its Replacement has the deadline.
    let late = || seen(live(), NodesSeen::One(&not_ready));
    for kept in [
        Seen { pods_left: Some(1), ..late() },
        Seen { pods_left: None, ..late() },
        Seen { machine: MachineSeen::Unknown, ..late() },
        Seen { successor: true, ..late() },
    ] {
        check(&registered, &kept, overdue, "starting (waits for its node to be ready)");
    }
    let successor = Seen { successor: true, ..seen(live(), no_node()) };
    check(&joining, &successor, at(60), "joining (waits for its node to join)");
    let blind = seen(MachineSeen::Unknown, no_node());
    check(&joining, &blind, at(60), "joining (waits for EC2 to tell of its machine)");
}

#[test]
fn what_others_end_is_ended_once_that_is_certain() {
    let (one, dead) = (node("a"), Node { ready: Readiness::Unknown, ..node("a") });
    let going = Node { deleting_since: Some(at(8)), ..node("a") };
    let claim = running();
    let missing = |since| NodesSeen::None { missing_since: Some(since) };
    let absent = |first, last| MachineSeen::Absent { first, last };
    for (machine, nodes, expected) in [
        (live(), NodesSeen::One(&one), "running (nothing is in the way)"),
        (MachineSeen::Unknown, NodesSeen::One(&dead), "running (nothing is in the way)"),
        (MachineSeen::Gone, NodesSeen::One(&dead), "condemned (its machine is gone) → DeleteClaim"),
        (MachineSeen::Gone, NodesSeen::Unknown, "condemned (its machine is gone) → DeleteClaim"),
        (
            absent(at(6), at(7)),
            NodesSeen::One(&dead),
            "condemned (its machine is gone) → DeleteClaim",
        ),
        // A list that lacks a machine whose node is ready is wrong.
        (absent(at(6), at(7)), NodesSeen::One(&one), "running (nothing is in the way)"),
        (absent(at(5), at(7)), NodesSeen::One(&dead), "running (nothing is in the way)"),
        (absent(at(6), secs(6, 10)), NodesSeen::One(&dead), "running (nothing is in the way)"),
        (
            MachineSeen::Ending(machine()),
            NodesSeen::One(&one),
            "running (waits for its machine to end)",
        ),
        (live(), NodesSeen::One(&going), "condemned (its node was deleted) → DeleteClaim"),
        (live(), no_node(), "running (waits for a fresh list of nodes)"),
        (live(), missing(secs(9, 30)), "running (waits for a fresh list of nodes)"),
        (live(), missing(at(9)), "condemned (its node is not there any more) → DeleteClaim"),
        (live(), NodesSeen::Unknown, "running (waits for a fresh list of nodes)"),
    ] {
        check(&claim, &seen(machine, nodes), at(10), expected);
    }
}

#[test]
fn what_is_deleted_goes_in_order() {
    let gone = || deleted(running(), at(10));
    let one = node("a");
    let going = Node { deleting_since: Some(at(10)), ..tainted(DISRUPTED_TAINT) };
    let open = Node { deleting_since: Some(at(10)), ..node("a") };
    let released = Node { held: false, ..going.clone() };
    let stranger = Node { held: false, ..tainted(UNREGISTERED_TAINT) };
    let with = |nodes, pods_left| Seen { pods_left, ..seen(live(), nodes) };
    let delete_node = "emptying → DeleteNode { node: \"a\", uid: \"uid-of-a\" }";
    let terminate = "ending → Terminate { machine: MachineId(\"i-1\") }";
    let now = at(11);

    check(&gone(), &with(NodesSeen::One(&one), Some(3)), now, delete_node);
    let cordon = "emptying (waits for node a to be cordoned)";
    check(&gone(), &with(NodesSeen::One(&open), Some(0)), now, cordon);
    let successor = Seen { successor: true, ..with(NodesSeen::One(&open), Some(0)) };
    check(&gone(), &successor, secs(10, 59), cordon);
    check(&gone(), &successor, now, terminate);
    let pods = "emptying (waits for 3 pods to leave)";
    check(&gone(), &with(NodesSeen::One(&going), Some(3)), now, pods);
    let unknown = "emptying (waits for a fresh list of pods)";
    check(&gone(), &with(NodesSeen::One(&going), None), now, unknown);
    check(&gone(), &with(NodesSeen::One(&going), Some(0)), now, terminate);
    let young = "emptying (waits for 0 pods to leave)";
    check(&gone(), &with(NodesSeen::One(&going), Some(0)), secs(10, 4), young);
    let nodes = "emptying (waits for a fresh list of nodes)";
    check(&gone(), &with(NodesSeen::Unknown, Some(0)), now, nodes);
    // A node that never joined is somebody else's to remove, while its machine lives.
    let never = deleted(launched(&[]), at(10));
    check(&never, &with(NodesSeen::One(&stranger), Some(0)), now, terminate);
    check(&never, &with(no_node(), Some(0)), now, terminate);
    // Somebody removed the node by force, or a list lacks it: pods that are bound to it may still run there.
    let lost = || NodesSeen::None { missing_since: Some(at(9)) };
    check(&gone(), &with(lost(), Some(2)), now, "emptying (waits for 2 pods to leave)");
    check(&gone(), &with(lost(), Some(0)), now, terminate);

    let graced = Claim { termination_grace_period: Some(SignedDuration::from_mins(5)), ..gone() };
    check(&graced, &with(NodesSeen::One(&going), Some(3)), secs(14, 59), pods);
    check(&graced, &with(NodesSeen::One(&going), Some(3)), at(15), terminate);
    check(&graced, &with(NodesSeen::Unknown, Some(3)), at(15), nodes);
    // A budget that people wait for holds pods and machine, and time counts from when it lets them go.
    let gated = |gate| Seen { gate, ..with(NodesSeen::One(&going), Some(3)) };
    let closed = || Gate::Closed { budget: "people".to_owned() };
    let budget = "emptying (waits for NodeDisruptionBudget `people`)";
    check(&graced, &gated(closed()), at(60), budget);
    check(&gone(), &Seen { pods_left: Some(0), ..gated(closed()) }, at(60), budget);
    check(&graced, &gated(Gate::Open { since: at(60) }), secs(64, 59), pods);
    check(&graced, &gated(Gate::Open { since: at(60) }), at(65), terminate);
    check(&graced, &gated(Gate::Open { since: at(1) }), at(15), terminate);

    let waits = "ending (waits for its machine to end)";
    check(&gone(), &seen(MachineSeen::Ending(machine()), NodesSeen::One(&going)), now, waits);
    let blind = "ending (waits for EC2 to tell of its machine)";
    check(&gone(), &seen(MachineSeen::Unknown, NodesSeen::One(&going)), now, blind);
    let soon = MachineSeen::Absent { first: at(5), last: at(6) };
    check(&gone(), &seen(soon, NodesSeen::One(&going)), now, blind);

    let ended = |nodes| seen(MachineSeen::Gone, nodes);
    let release_node = "parting → ReleaseNode { node: \"a\", uid: \"uid-of-a\" }";
    check(&gone(), &ended(NodesSeen::One(&going)), now, release_node);
    // What others hold is not waited for.
    check(&gone(), &ended(NodesSeen::One(&released)), now, "parting → ReleaseClaim");
    check(&gone(), &ended(no_node()), now, "parting → ReleaseClaim");
    // Nobody else knows whose the other one is that EC2 has made.
    let second = Seen { second: Some(MachineId("i-2".to_owned())), ..ended(no_node()) };
    check(&gone(), &second, now, "parting (waits for its second machine i-2 to end)");
    check(&gone(), &ended(NodesSeen::Unknown), now, "parting (waits for a fresh list of nodes)");
    let delete = "parting → DeleteNode { node: \"a\", uid: \"uid-of-a\" }";
    check(&gone(), &ended(NodesSeen::One(&stranger)), now, delete);
    let free = Claim { held: false, ..gone() };
    check(&free, &ended(NodesSeen::One(&going)), now, "parting (waits for nothing)");
}

#[test]
fn a_claim_whose_call_was_lost_is_kept_until_its_machine_is_found_or_disproved() {
    let lost = deleted(Claim { attempt: Some(attempt(1, at(1), None)), ..claim() }, at(10));
    let blind = "ending (waits for EC2 to tell of its machine)";
    let absent = |first, last| MachineSeen::Absent { first, last };
    for (machine, expected) in [
        (MachineSeen::Unknown, blind),
        // Long after the attempt, and not after the deletion: the call may have been made again.
        (absent(at(14), at(20)), blind),
        (absent(at(15), secs(15, 29)), blind),
        (absent(at(15), at(16)), "parting → ReleaseClaim"),
        (live(), "ending → Terminate { machine: MachineId(\"i-1\") }"),
        (MachineSeen::Gone, "parting → ReleaseClaim"),
    ] {
        check(&lost, &seen(machine, no_node()), at(30), expected);
    }
    let ended = Claim { attempt: Some(attempt(1, at(1), Some("no capacity"))), ..lost.clone() };
    check(&ended, &seen(MachineSeen::Unknown, no_node()), at(11), "parting → ReleaseClaim");
    let never = Claim { attempt: None, ..lost };
    check(&never, &seen(MachineSeen::Unknown, no_node()), at(11), "parting → ReleaseClaim");
}

prop_compose! {
    fn any_time()(seconds in 0..3_600_i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }
}

fn any_machine() -> impl Strategy<Value = MachineSeen> {
    prop_oneof![
        Just(MachineSeen::Unknown),
        Just(live()),
        Just(MachineSeen::Ending(machine())),
        Just(MachineSeen::Gone),
        (any_time(), any_time())
            .prop_map(|(a, b)| MachineSeen::Absent { first: a.min(b), last: a.max(b) }),
    ]
}

fn any_call() -> impl Strategy<Value = CallSeen> {
    prop_oneof![
        Just(CallSeen::Free),
        Just(CallSeen::Unknown { about: "x".to_owned() }),
        Just(CallSeen::Withheld("x".to_owned())),
        any_time().prop_map(|at| CallSeen::Refused { why: "x".to_owned(), at }),
    ]
}

prop_compose! {
    fn any_claim()(
        number in 0..=ATTEMPTS_MAX + 1,
        since in any_time(),
        ended in any::<bool>(),
        has_machine in any::<bool>(),
        stages in 0..4_usize,
        deleting in proptest::option::of(any_time()),
        held in any::<bool>(),
        grace in proptest::option::of(0..600_i64),
    ) -> Claim {
        let mut claim = claim();
        let tried = attempt(number, since, ended.then_some("x"));
        claim.attempt = (number > 0).then_some(tried);
        claim.machine = (has_machine && claim.attempt.is_some()).then(machine);
        if claim.machine.is_some() {
            let all = [Stage::Launched, Stage::Registered, Stage::Initialized];
            claim.stages = all.into_iter().take(stages).map(|it| (it, since)).collect();
        }
        claim.deleting_since = deleting;
        claim.held = held;
        claim.termination_grace_period = grace.map(SignedDuration::from_secs);
        claim
    }
}

fn any_nodes() -> impl Strategy<Value = (u8, Vec<Node>, Option<Timestamp>)> {
    let one =
        (any::<[bool; 3]>(), proptest::option::of(any_time())).prop_map(|(flags, deleting)| {
            let [held, ready, cordoned] = flags;
            let mut node = if cordoned { tainted(DISRUPTED_TAINT) } else { node("a") };
            node.held = held;
            node.ready = if ready { Readiness::Ready } else { Readiness::NotReady };
            node.deleting_since = deleting;
            node
        });
    (0..2_u8, proptest::collection::vec(one, 0..3), proptest::option::of(any_time()))
}

proptest! {
    /// Whatever is seen: no second machine beside one, nothing from doubt, and an arrow from everywhere.
    #[test]
    fn every_state_has_an_arrow(
        claim in any_claim(),
        machine in any_machine(),
        call in any_call(),
        (known, nodes, missing_since) in any_nodes(),
        withheld_since in proptest::option::of(any_time()),
        pods_left in proptest::option::of(0..3_usize),
        successor in any::<bool>(),
        gate in 0..3_u8,
        second in any::<bool>(),
        now in any_time(),
    ) {
        let nodes = match (known, nodes.as_slice()) {
            (0, _) => NodesSeen::Unknown,
            (_, []) => NodesSeen::None { missing_since },
            (_, [one]) => NodesSeen::One(one),
            (_, several) => NodesSeen::Several(several.iter().collect()),
        };
        let gate = match gate {
            0 => Gate::None,
            1 => Gate::Open { since: at(7) },
            _ => Gate::Closed { budget: "people".to_owned() },
        };
        let second = second.then(|| MachineId("i-2".to_owned()));
        let seen =
            Seen { machine, nodes, call, withheld_since, pods_left, successor, gate, second };
        let step = next(&claim, &seen, now);
        prop_assert_eq!(&step, &next(&claim, &seen, now));

        // It does something, rests, or waits for something that it names.
        let rests = step.because == Because::AtRest;
        prop_assert!(step.asks.is_some() || rests || !step.because.to_string().is_empty());
        prop_assert_eq!(step.because == Because::Next && step.asks.is_none(), false);

        let unended = claim.attempt.as_ref().is_some_and(|it| it.ended.is_none());
        match &step.asks {
            Some(Command::Attempt { number }) => {
                prop_assert!(!unended && claim.machine.is_none(), "a second live attempt");
                prop_assert!(claim.deleting_since.is_none());
                prop_assert!(!matches!(seen.machine, MachineSeen::Live(_)), "beside a machine");
                let last = claim.attempt.as_ref().map_or(0, |it| it.number);
                prop_assert_eq!(*number, last + 1);
                prop_assert!(*number <= ATTEMPTS_MAX);
            }
            Some(Command::Call { number }) => {
                prop_assert!(unended && claim.machine.is_none() && claim.deleting_since.is_none());
                prop_assert_eq!(Some(*number), claim.attempt.as_ref().map(|it| it.number));
                prop_assert_eq!(&seen.call, &CallSeen::Free);
            }
            Some(Command::Terminate { .. }) => {
                let elapsed = forced_at(&claim, &seen.gate).is_some_and(|it| it <= now);
                prop_assert!(claim.deleting_since.is_some());
                prop_assert!(!matches!(seen.gate, Gate::Closed { .. }), "past a budget");
                prop_assert!(seen.pods_left == Some(0) || elapsed, "pods remain");
            }
            Some(Command::ReleaseClaim | Command::ReleaseNode { .. }) => {
                prop_assert!(claim.deleting_since.is_some() && claim.held);
                prop_assert!(!matches!(seen.machine, MachineSeen::Live(_) | MachineSeen::Ending(_)));
                let claim_goes = step.asks == Some(Command::ReleaseClaim);
                prop_assert!(!claim_goes || seen.second.is_none(), "before its machines");
            }
            Some(_) | None => {}
        }
        let destroys = step.asks.as_ref().is_some_and(Command::destroys);
        // EC2 did not answer, and a machine may be there.
        if seen.machine == MachineSeen::Unknown && (claim.machine.is_some() || unended) && destroys {
            let deleted = matches!(step.because, Because::NodeDeleted);
            prop_assert!(deleted, "doubt led to {:?}", step.asks);
        }
        if matches!(seen.nodes, NodesSeen::Unknown) && destroys {
            let allowed = [Phase::Condemned, Phase::GaveUp];
            prop_assert!(allowed.contains(&step.phase), "doubt led to {:?}", step.asks);
        }
    }
}
