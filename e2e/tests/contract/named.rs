//! One case for each method of the port, and for each answer of the eviction API.
//!
//! After each of them the watches are lost as well, on both: eyes that heard only the beginning are told
//! whole lists, and must see what those see that heard everything. That a watch is ended with 410 is not brought
//! about here, since the real server forgets nothing for five minutes: `crates/cluster/src/live/tests.rs` has
//! what the adapter then does, in a script.
//!
//! Two answers of the eviction API are not here, because the real server cannot be brought to them from outside:
//! 403 for a budget that allows less than nothing (no such status can be written, which is a case), and 504
//! after twenty conflicts in a row with whoever writes the budget's status. `crates/cluster/tests/adapter.rs` has
//! both in a script. An eviction as a dry run is no method of the port.

use nodemolt_engine::port::EvictAnswer;
use tokio::task::LocalSet;

use crate::acts::{Act, Of, Other, Which};
use crate::pair::Pair;

use Which::{Another, AsMade, Now};

/// Everything that is only read.
const OTHERS: [Act; 8] = [
    Act::MakeOther(Other::Quarantine),
    Act::MakeOther(Other::Namespace),
    Act::MakeOther(Other::DaemonSet),
    Act::MakeOther(Other::Volume),
    Act::MakeOther(Other::VolumeClaim),
    Act::MakeOther(Other::StorageClass),
    Act::MakeOther(Other::CsiNode),
    Act::View,
];

const STATUS_OWN_CLASS: [Act; 7] = status_of(Of::OwnClass);
const STATUS_KARPENTER_CLASS: [Act; 7] = status_of(Of::KarpenterClass);
const STATUS_BUDGET: [Act; 7] = status_of(Of::DisruptionBudget);
const STATUS_POLICY: [Act; 7] = status_of(Of::Policy);

/// Little by little, the same again, and after people have written something else.
const fn status_of(of: Of) -> [Act; 7] {
    [
        Act::MakeSubject(of),
        Act::TellSubject(of, true, 0),
        Act::TellSubject(of, true, 2),
        Act::TellSubject(of, true, 2),
        Act::TouchSubject(of),
        Act::TellSubject(of, true, 3),
        Act::TellSubject(of, true, 1),
    ]
}

/// What is done, and what the last act was answered, in part.
const CASES: &[(&str, &[Act], &str)] = &[
    ("create_claim", &[Act::MakePool, Act::MakeClaim(0)], "Ok(\"UID\")"),
    ("create_claim twice", &[Act::MakePool, Act::MakeClaim(0), Act::MakeClaim(0)], "Err(Exists("),
    ("record_attempt", &[Act::MakePool, Act::MakeClaim(0), Act::Attempt(0, Now, 1)], "Ok(Revision"),
    (
        "record_attempt on what has changed",
        &[Act::MakePool, Act::MakeClaim(0), Act::Attempt(0, Now, 1), Act::Attempt(0, AsMade, 2)],
        "Err(Conflict(",
    ),
    ("record_attempt on nothing", &[Act::Attempt(0, Now, 1)], "Err(Absent("),
    ("write_claim", &[Act::MakePool, Act::MakeClaim(0), Act::TellClaim(0, Now, 2)], "Ok(Revision"),
    (
        "write_claim again",
        &[
            Act::MakePool,
            Act::MakeClaim(1),
            Act::TellClaim(1, Now, 1),
            Act::TellClaim(1, Now, 1),
            Act::TellClaim(1, Now, 3),
        ],
        "Ok(Revision",
    ),
    (
        "write_claim on what has changed",
        &[
            Act::MakePool,
            Act::MakeClaim(0),
            Act::TellClaim(0, Now, 1),
            Act::TellClaim(0, AsMade, 2),
        ],
        "Err(Conflict(",
    ),
    (
        "delete_claim waits for its finalizer",
        &[Act::MakePool, Act::MakeClaim(0), Act::EndClaim(0, Now), Act::EndClaim(0, Now)],
        "Ok(())",
    ),
    (
        "delete_claim of another",
        &[Act::MakePool, Act::MakeClaim(0), Act::EndClaim(0, Another)],
        "Err(Absent(",
    ),
    (
        "release_claim ends it",
        &[
            Act::MakePool,
            Act::MakeClaim(0),
            Act::EndClaim(0, Now),
            Act::ReleaseClaim(0, Now),
            Act::EndClaim(0, AsMade),
        ],
        "Err(Absent(",
    ),
    ("release_claim of nothing", &[Act::ReleaseClaim(0, Now)], "Ok(())"),
    (
        "register_node",
        &[Act::MakePool, Act::MakeClaim(0), Act::MakeNode(0), Act::Register(0, Now)],
        "Ok(())",
    ),
    (
        "register_node that goes",
        &[
            Act::MakeNode(0),
            Act::Register(0, Now),
            Act::EndNode(0, Now),
            Act::ReleaseNode(0, Another),
            Act::Register(0, Now),
        ],
        "Err(Conflict(",
    ),
    ("cordon", &[Act::MakeNode(0), Act::Cordon(0, Now, 0)], "Ok(())"),
    ("cordon of nothing", &[Act::Cordon(0, Now, 0)], "Err(Absent("),
    (
        "uncordon takes back what was done, and by whom",
        &[
            Act::MakeNode(0),
            Act::Cordon(0, Now, 0),
            Act::Cordon(0, AsMade, 0),
            Act::TouchNode(0),
            Act::Uncordon(0, Now, 1),
            Act::Uncordon(0, Now, 0),
        ],
        "Ok(())",
    ),
    (
        "uncordon leaves a cordon of others",
        &[Act::MakeNode(1), Act::Cordon(1, Now, 0), Act::Uncordon(1, Now, 0)],
        "Ok(())",
    ),
    ("cordon of another", &[Act::MakeNode(0), Act::Cordon(0, Another, 0)], "Err(Absent("),
    ("delete_node", &[Act::MakeNode(0), Act::EndNode(0, Now), Act::EndNode(0, Now)], "Err(Absent("),
    (
        "release_node ends it",
        &[
            Act::MakeNode(0),
            Act::Register(0, Now),
            Act::EndNode(0, Now),
            Act::ReleaseNode(0, Now),
            Act::EndNode(0, AsMade),
        ],
        "Err(Absent(",
    ),
    (
        "pods_on: all that are bound, and no others",
        &[
            Act::PodsOn,
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::MakePod(1, false, true),
            Act::MakePod(2, true, false),
            Act::PodsOn,
            Act::KillPod(2),
            Act::PodsOn,
        ],
        "p0\"])",
    ),
    (
        "node: as it is now",
        &[Act::ReadNode(0), Act::MakeNode(0), Act::Cordon(0, Now, 0), Act::ReadNode(0)],
        "Ok(Some((",
    ),
    ("evict: no pod", &[Act::Evict(0, Now)], "Ok(Gone)"),
    (
        "evict: accepted",
        &[Act::MakeNode(0), Act::MakePod(0, true, true), Act::RunPod(0, true), Act::Evict(0, Now)],
        "Ok(Accepted)",
    ),
    (
        "evict: another pod of that name",
        &[
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::KillPod(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::Evict(0, Another),
        ],
        "Ok(Another)",
    ),
    (
        "evict: another pod of that name, which is pending",
        &[Act::MakePod(0, false, true), Act::Evict(0, Another)],
        "Ok(Another)",
    ),
    (
        "evict: a pending pod passes its budget",
        &[Act::MakePdb(0, false), Act::MakePod(0, false, true), Act::Evict(0, Now)],
        "Ok(Accepted)",
    ),
    (
        "evict: a finished pod passes its budget",
        &[
            Act::MakePdb(0, false),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::FinishPod(0),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: a failed pod passes its budget",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 0, 1, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::FailPod(0),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: a pod that is going passes its budget",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 0, 1, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::EndPod(0, Now),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: a pod that is going passes several budgets",
        &[
            Act::MakePdb(0, false),
            Act::MakePdb(1, false),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::EndPod(0, Now),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: held by a budget, without a word on when",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 0, 1, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::Evict(0, Now),
        ],
        "Ok(Held { retry_after: None",
    ),
    (
        "evict: held by a controller that lags, with a word on when",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 1, 2, 1),
            Act::TouchPdb(0),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::Evict(0, Now),
        ],
        "Ok(Held { retry_after: Some(10s)",
    ),
    (
        "evict: allowed once",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 1, 2, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::MakePod(1, true, true),
            Act::RunPod(1, true),
            Act::Evict(0, Now),
            Act::Evict(1, Now),
        ],
        "Ok(Held { retry_after: None",
    ),
    (
        "evict: several budgets",
        &[
            Act::MakePdb(0, false),
            Act::MakePdb(1, false),
            Act::JudgePdb(0, 1, 2, 1),
            Act::JudgePdb(1, 1, 2, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::Evict(0, Now),
        ],
        "Ok(SeveralBudgets {",
    ),
    (
        "evict: a status that makes no sense",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 1, 2, 1),
            Act::FloodPdb(0),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, true),
            Act::Evict(0, Now),
        ],
        "Ok(Forbidden { namespace_terminating: false",
    ),
    (
        "a budget's status is never negative",
        &[Act::MakePdb(0, false), Act::JudgePdb(0, -1, 1, 1)],
        "422 Invalid",
    ),
    (
        "evict: a namespace that goes",
        &[Act::EvictInGoing(0)],
        "Ok(Forbidden { namespace_terminating: true",
    ),
    (
        "evict: not ready, always allowed",
        &[
            Act::MakePdb(0, true),
            Act::JudgePdb(0, 0, 0, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, false),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: not ready, and the budget is healthy without it",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 0, 1, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, false),
            Act::Evict(0, Now),
        ],
        "Ok(Accepted)",
    ),
    (
        "evict: not ready, and a budget that nobody has counted yet",
        &[
            Act::MakePdb(0, false),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, false),
            Act::Evict(0, Now),
        ],
        "Ok(Held { retry_after: Some(10s)",
    ),
    (
        "evict: not ready, and the budget needs it",
        &[
            Act::MakePdb(0, false),
            Act::JudgePdb(0, 0, 0, 1),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::RunPod(0, false),
            Act::Evict(0, Now),
        ],
        "Ok(Held { retry_after: None",
    ),
    (
        "delete_pod",
        &[Act::MakeNode(0), Act::MakePod(0, true, true), Act::RunPod(0, true), Act::EndPod(0, Now)],
        "Ok(())",
    ),
    (
        "delete_pod of another",
        &[Act::MakePod(0, false, true), Act::EndPod(0, Another)],
        "Err(Absent(",
    ),
    (
        "write_replacement",
        &[Act::Record(0, Now, 0), Act::Record(0, Now, 6), Act::Records],
        "Ok(Records",
    ),
    (
        "write_replacement twice",
        &[Act::Record(0, Now, 0), Act::Record(0, Another, 0)],
        "Err(Exists(",
    ),
    (
        "write_replacement on what has changed",
        &[Act::Record(0, Now, 0), Act::Record(0, Now, 1), Act::Record(0, AsMade, 2)],
        "Err(Conflict(",
    ),
    (
        "delete_replacement",
        &[Act::Record(0, Now, 6), Act::Forget(0, Now), Act::Records],
        "Ok(Records",
    ),
    (
        "delete_replacement that has changed",
        &[Act::Record(0, Now, 6), Act::Record(0, Now, 7), Act::Forget(0, AsMade)],
        "Err(Conflict(",
    ),
    ("write_ledger", &[Act::Ledger(0), Act::Ledger(1)], "Ok(Revision(\"\")) then Err(Conflict("),
    ("write_ledger gives back", &[Act::Ledger(0), Act::Ledger(3), Act::Records], "Ok(Records"),
    (
        "write_ledger of a leader of old",
        &[Act::Ledger(0), Act::Ledger(0), Act::Ledger(4)],
        "Invalid",
    ),
    ("write_ledger on what is not there", &[Act::Ledger(0), Act::Ledger(5)], "Err(Conflict("),
    ("write_ledger that is there", &[Act::Ledger(0), Act::Ledger(6)], "Err(Exists("),
    ("remember", &[Act::Remember(0, 0)], "Ok(())"),
    ("remember more", &[Act::Remember(0, 0), Act::Remember(0, 3)], "Ok(())"),
    ("remember nothing new", &[Act::Remember(0, 3), Act::Remember(0, 2)], "Ok(())"),
    ("remember that it came back", &[Act::Remember(0, 3), Act::Remember(0, 6)], "Ok(())"),
    (
        "remember that it went again",
        &[Act::Remember(0, 3), Act::Remember(0, 6), Act::Remember(0, 7)],
        "Ok(())",
    ),
    ("remember what is there", &[Act::Remember(0, 0), Act::Remember(0, 4)], "Err(Exists("),
    ("records", &[Act::Record(0, Now, 3), Act::Record(1, Now, 9), Act::Records], "Ok(Records"),
    (
        "view",
        &[
            Act::MakePool,
            Act::MakeClaim(0),
            Act::MakeNode(0),
            Act::MakePod(0, true, true),
            Act::MakePdb(0, false),
            Act::MakeSubject(Of::OwnClass),
            Act::MakeSubject(Of::KarpenterClass),
            Act::MakeSubject(Of::DisruptionBudget),
            Act::MakeSubject(Of::Policy),
            Act::View,
        ],
        "Identity { uid: \"UID\", generation: 1",
    ),
    ("view of what others write", &OTHERS, "ami-0123456789abcdef0"),
    (
        "view of a quarantine that is lifted",
        &[
            Act::MakeOther(Other::Quarantine),
            Act::TouchOther(Other::Quarantine),
            Act::EndOther(Other::Quarantine),
            Act::View,
        ],
        "",
    ),
    (
        "view of a namespace that goes",
        &[
            Act::MakeOther(Other::Namespace),
            Act::TouchOther(Other::Namespace),
            Act::EndOther(Other::Namespace),
            Act::View,
        ],
        "-o0",
    ),
    ("write_status of a class", &STATUS_OWN_CLASS, "Ok(())"),
    ("write_status of Karpenter's class", &STATUS_KARPENTER_CLASS, "Ok(())"),
    ("write_status of a NodeDisruptionBudget", &STATUS_BUDGET, "Ok(())"),
    ("write_status of a policy", &STATUS_POLICY, "Ok(())"),
    (
        "write_status of a class, of old",
        &[Act::MakeSubject(Of::OwnClass), Act::TellSubject(Of::OwnClass, false, 2)],
        "Err(Conflict(",
    ),
    (
        "write_status of a NodeDisruptionBudget, of old",
        &[Act::MakeSubject(Of::DisruptionBudget), Act::TellSubject(Of::DisruptionBudget, false, 2)],
        "Err(Conflict(",
    ),
    (
        "write_status of a policy, of old",
        &[Act::MakeSubject(Of::Policy), Act::TellSubject(Of::Policy, false, 2)],
        "Err(Conflict(",
    ),
    (
        "write_status of a class that is not there",
        &[Act::TellSubject(Of::OwnClass, true, 2)],
        "Err(Absent(",
    ),
    (
        "write_status of what cannot be read touches nothing else",
        &[
            Act::MakeSubject(Of::OwnClass),
            Act::TellSubject(Of::OwnClass, true, 2),
            Act::Complain(Of::OwnClass, true),
            Act::View,
            Act::Complain(Of::OwnClass, true),
        ],
        "Ok(())",
    ),
    ("write_status", &[Act::MakePool, Act::TellPool(true, 1), Act::TellPool(true, 2)], "Ok(())"),
    ("write_status of old", &[Act::MakePool, Act::TellPool(false, 1)], "Err(Conflict("),
    ("write_status of nothing", &[Act::TellPool(true, 1)], "Err(Absent("),
    ("lead", &[Act::Lead(0, 0), Act::Lead(0, 10)], "Ok(Leads { until: TIME, transitions: 1 })"),
    (
        "lead: another leads",
        &[Act::Lead(0, 0), Act::Lead(1, 60)],
        "Ok(Follows { leader: \"replica-0\" })",
    ),
    (
        "lead: a lease that nobody renews",
        &[Act::Lead(0, 0), Act::Lead(1, 60), Act::Lead(1, 65), Act::Lead(1, 70), Act::Lead(1, 75)],
        "Ok(Leads { until: TIME, transitions: 2 })",
    ),
    (
        "lead: a lease that is renewed",
        &[Act::Lead(0, 0), Act::Lead(1, 60), Act::Lead(0, 10), Act::Lead(1, 75)],
        "Ok(Follows { leader: \"replica-0\" })",
    ),
];

#[tokio::test]
async fn every_method_and_every_answer_is_the_same_on_both() {
    // On the heap: such a future is too large for a stack.
    LocalSet::new()
        .run_until(Box::pin(async {
            let pair = Pair::start().await;
            let mut wrong = Vec::new();
            for (at, (name, acts, expected)) in CASES.iter().enumerate() {
                match pair.run_and_lose(&format!("b{at:07}"), acts).await {
                    Ok(answers) if answers.last().is_some_and(|it| it.contains(expected)) => {}
                    Ok(answers) => wrong.push(format!("{name}: {answers:#?}")),
                    Err(how) => wrong.push(format!("{name}: {how}")),
                }
            }
            if let Err(how) = pair.compare_ledger().await {
                wrong.push(how);
            }
            assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
            println!("contract: {} named cases, equal on both", CASES.len());
        }))
        .await;
}

/// The methods of the port, from its own text.
fn methods() -> Vec<&'static str> {
    const PORT: &str = include_str!("../../../crates/engine/src/port/cluster.rs");
    let (_, after) = PORT.split_once("pub trait Cluster {").unwrap();
    let (inside, _) = after.split_once("\n}\n").unwrap();
    let name = |line: &'static str| {
        let line = line.trim_start();
        let (name, _) =
            line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?.split_once('(')?;
        Some(name)
    };
    inside.lines().filter_map(name).collect()
}

#[test]
fn every_method_of_the_port_has_a_named_case() {
    let methods = methods();
    assert!(methods.len() >= 20, "{methods:?}");
    for method in &methods {
        let named = |name: &str| {
            let after = name.strip_prefix(method);
            after.is_some_and(|it| !it.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
        };
        let calls =
            |acts: &[Act]| acts.iter().any(|it| it.method().is_some_and(|it| it == *method));
        let case = CASES.iter().any(|(name, acts, _)| named(name) && calls(acts));
        assert!(case, "no case is called after {method} and calls it");
    }
    for (name, acts, _) in CASES {
        for method in acts.iter().filter_map(|it| it.method()) {
            assert!(methods.contains(&method), "{name}: {method} is no method of the port");
        }
    }
}

#[test]
fn every_answer_of_the_eviction_api_has_a_named_case() {
    /// A new answer has to find its place here.
    fn told(answer: &EvictAnswer) -> &'static [&'static str] {
        match answer {
            EvictAnswer::Accepted => &["Ok(Accepted)"],
            EvictAnswer::Gone => &["Ok(Gone)"],
            EvictAnswer::Another => &["Ok(Another)"],
            EvictAnswer::Held { .. } => {
                &["Ok(Held { retry_after: None", "Ok(Held { retry_after: Some(10s)"]
            }
            EvictAnswer::SeveralBudgets { .. } => &["Ok(SeveralBudgets {"],
            EvictAnswer::Forbidden { .. } => &[
                "Ok(Forbidden { namespace_terminating: false",
                "Ok(Forbidden { namespace_terminating: true",
            ],
        }
    }
    let message = String::new;
    let all = [
        EvictAnswer::Accepted,
        EvictAnswer::Gone,
        EvictAnswer::Another,
        EvictAnswer::Held { retry_after: None, message: message() },
        EvictAnswer::SeveralBudgets { message: message() },
        EvictAnswer::Forbidden { namespace_terminating: false, message: message() },
    ];
    for said in all.iter().flat_map(told) {
        let case = |(name, _, expected): &&(&str, &[Act], &str)| {
            name.starts_with("evict: ") && expected == said
        };
        assert!(CASES.iter().any(|it| case(&it)), "no case of `evict` is answered {said}");
    }
}
