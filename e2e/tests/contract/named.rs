//! One case for each method of the port, and for each answer of the eviction API.

use tokio::task::LocalSet;

use crate::acts::{Act, Which};
use crate::pair::Pair;

use Which::{Another, AsMade, Now};

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
    (
        "cordon and uncordon",
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
        "a cordon of others stays",
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
    ("remember what is there", &[Act::Remember(0, 0), Act::Remember(0, 4)], "Err(Exists("),
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
        &[Act::Lead(0, 0), Act::Lead(1, 60), Act::Lead(1, 70), Act::Lead(1, 75)],
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
    LocalSet::new()
        .run_until(async {
            let pair = Pair::start().await;
            let mut wrong = Vec::new();
            for (at, (name, acts, expected)) in CASES.iter().enumerate() {
                match pair.run(&format!("b{at:07}"), acts).await {
                    Ok(answers) if answers.last().is_some_and(|it| it.contains(expected)) => {}
                    Ok(answers) => wrong.push(format!("{name}: {answers:#?}")),
                    Err(how) => wrong.push(format!("{name}: {how}")),
                }
            }
            assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
            println!("contract: {} named cases, equal on both", CASES.len());
        })
        .await;
}
