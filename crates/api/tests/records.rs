//! What is written down is read back as it was, and the API server takes it.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use nodemolt_api::admission::Validator;
use nodemolt_api::crd::Crd;
use nodemolt_api::disruptionledger::{self, DisruptionLedger, DisruptionLedgerStatus};
use nodemolt_api::replacement::{self, Replacement, ReplacementSpec, ReplacementStatus};
use nodemolt_core::budget::{Closed, GrantKind, Granted, Grants, Ledger, Lock};
use nodemolt_core::drain::AtLimit;
use nodemolt_core::replace::{self, Because, Cause, Old, Order, Phase, Successor};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn validator(crd: &Crd) -> Validator {
    Validator::new(&(crd.definition)()).unwrap()
}

static REPLACEMENTS: LazyLock<Validator> = LazyLock::new(|| validator(&replacement::CRD));
static LEDGERS: LazyLock<Validator> = LazyLock::new(|| validator(&disruptionledger::CRD));

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,20}[a-z0-9]"
}

fn uid() -> impl Strategy<Value = String> {
    "[0-9a-f]{8}-[0-9a-f]{12}"
}

fn moment() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_102_444_800, 0_i32..1_000_000_000)
        .prop_map(|(seconds, nanos)| Timestamp::new(seconds, nanos).unwrap())
}

fn because() -> impl Strategy<Value = Because> {
    let plain = select(vec![
        Because::Begun,
        Because::SuccessorsLaunched,
        Because::SuccessorsReady,
        Because::PlacementHolds,
        Because::DecideAgain,
        Because::Drained,
        Because::OldGone,
        Because::OldDeleted,
        Because::NoLongerWanted,
        Because::NotGranted,
    ]);
    let about: Vec<fn(String) -> Because> = vec![
        |claim| Because::LaunchTooSlow { claim },
        |claim| Because::NeverRegistered { claim },
        |claim| Because::NeverReady { claim },
        |claim| Because::Flapping { claim },
        |claim| Because::SuccessorGone { claim },
        |claim| Because::SuccessorLost { claim },
        |claim| Because::SuccessorDied { claim, node: "ip-10-0-0-6".to_owned() },
        |claim| Because::SuccessorCordoned {
            pod: "shop/cart-0".to_owned(),
            claim,
            node: "ip-10-0-0-6".to_owned(),
        },
        |pod| Because::DrainLimit { pod },
    ];
    prop_oneof![
        plain,
        (select(about), name()).prop_map(|(make, name)| make(name)),
        (0_usize..500).prop_map(|pods| Because::PodsCameBack { pods }),
        (name(), ".{0,60}").prop_map(|(claim, why)| Because::LaunchGaveUp { claim, why }),
        (name(), ".{0,60}").prop_map(|(pod, because)| Because::NoPlaceAnyMore { pod, because }),
        (prop::option::of(name()), ".{0,60}").prop_map(|(pod, why)| Because::HeldBack { pod, why }),
        ".{0,60}".prop_map(|why| Because::Protected { why }),
    ]
}

fn a_replacement() -> impl Strategy<Value = replace::Replacement> {
    let causes = [Cause::Drift, Cause::Expiry, Cause::Asked, Cause::Deleted, Cause::Interrupted];
    let node = prop_oneof![name().prop_map(Some), Just(None)];
    let old = (node, name(), uid()).prop_map(|(node, claim, claim_uid)| Old {
        node: node.unwrap_or_else(|| claim.clone()),
        claim,
        claim_uid,
    });
    (
        old,
        select(causes.to_vec()),
        select(&[Order::SuccessorFirst, Order::DeleteFirst][..]),
        select(&[AtLimit::Skip, AtLimit::Wait, AtLimit::Force][..]),
        (1_u32..40, 0_u32..40),
        btree_map(name(), option::of(uid()), 0..4),
        select(&Phase::ALL[..]),
        moment(),
        because(),
    )
        .prop_map(
            |(old, cause, order, at_limit, counts, successors, phase, since, because)| {
                let successors =
                    successors.into_iter().map(|(claim, uid)| Successor { claim, uid }).collect();
                replace::Replacement {
                    old,
                    cause,
                    order,
                    at_limit,
                    tries: counts.0,
                    failures: counts.1,
                    successors,
                    phase,
                    since,
                    because,
                }
            },
        )
}

fn wire(replacement: &replace::Replacement, status: ReplacementStatus) -> Replacement {
    let mut wire = Replacement {
        api_version: replacement::NODEMOLT_V1ALPHA1.to_owned(),
        kind: replacement::KIND.to_owned(),
        spec: ReplacementSpec::of(&replacement.old, Some("web")),
        status: Some(status),
        ..Replacement::default()
    };
    wire.metadata.name.clone_from(&replacement.old.claim_uid);
    wire
}

fn recorded(replacement: &replace::Replacement) -> Replacement {
    let mut status = ReplacementStatus::default();
    status.record(replacement);
    wire(replacement, status)
}

fn admitted(validator: &Validator, object: &Value) {
    let mut old = object.clone();
    old["status"].take();
    for outcome in [validator.create(&old), validator.update_status(&old, object)] {
        assert!(outcome.causes().is_empty(), "{:#?}\n{object:#}", outcome.causes());
    }
}

fn a_ledger() -> impl Strategy<Value = Ledger> {
    let kinds = [
        GrantKind::Replacement,
        GrantKind::Deleted,
        GrantKind::Interrupted,
        GrantKind::Empty,
        GrantKind::Consolidation,
    ];
    let cpu = option::of(0_u64..1_000_000);
    let budgets = btree_set(name(), 0..3);
    let whom = (name(), option::of(name()), budgets);
    let granted = (whom, cpu, select(kinds.to_vec()), 0_u64..9, moment()).prop_map(
        |((node, pool, taken_from), cpu_millis, kind, epoch, since)| Granted {
            node,
            pool,
            cpu_millis,
            taken_from,
            kind,
            epoch,
            since,
        },
    );
    let closed = (name(), name(), moment(), moment())
        .prop_map(|(node, class, since, ended_at)| Closed { node, class, since, ended_at });
    let lock = ("[a-z0-9]{1,9}", "[a-z]{1,40}", moment()).prop_map(|(id, reason, since)| Lock {
        id,
        reason,
        since,
    });
    (9_u64..99, btree_map(uid(), granted, 0..6), vec(closed, 0..6), option::of(lock)).prop_map(
        |(epoch, grants, closed, lock)| Ledger { epoch, grants, closed, pause: None, lock },
    )
}

fn ledger(status: DisruptionLedgerStatus) -> DisruptionLedger {
    let mut wire = DisruptionLedger {
        api_version: disruptionledger::NODEMOLT_V1ALPHA1.to_owned(),
        kind: disruptionledger::KIND.to_owned(),
        status: Some(status),
        ..DisruptionLedger::default()
    };
    disruptionledger::NAME.clone_into(&mut wire.metadata.name);
    wire
}

proptest! {
    #[test]
    fn a_replacement_is_read_back_as_it_was_written(it in a_replacement()) {
        let json = serde_json::to_value(recorded(&it)).unwrap();
        let read: Replacement = serde_json::from_value(json.clone()).unwrap();
        prop_assert_eq!(replace::Replacement::try_from(&read).unwrap(), it);
        admitted(&REPLACEMENTS, &json);
    }

    /// One try after the other: what an earlier one left does not come back, and nothing for people is lost.
    #[test]
    fn a_later_record_counts_and_writing_it_again_changes_nothing(
        one in a_replacement(),
        other in a_replacement(),
    ) {
        let other = replace::Replacement { old: one.old.clone(), ..other };
        let mut status = ReplacementStatus::default();
        status.record(&one);
        status.running_image = Some("ami-0123456789abcdef0".to_owned());
        status.record(&other);
        let before = status.clone();
        status.record(&other);
        prop_assert_eq!(&status, &before);
        prop_assert_eq!(status.running_image.as_deref(), Some("ami-0123456789abcdef0"));
        let read = wire(&other, status);
        prop_assert_eq!(replace::Replacement::try_from(&read).unwrap(), other);
        admitted(&REPLACEMENTS, &serde_json::to_value(read).unwrap());
    }

    #[test]
    fn a_ledger_is_read_back_as_it_was_written(it in a_ledger()) {
        let mut status = DisruptionLedgerStatus::default();
        status.record(&it);
        let json = serde_json::to_value(ledger(status)).unwrap();
        let read: DisruptionLedger = serde_json::from_value(json.clone()).unwrap();
        prop_assert_eq!(Ledger::try_from(&read).unwrap(), it.clone());
        let grants = Grants::try_from(&read).unwrap();
        let nodes: std::collections::BTreeSet<&String> =
            it.grants.values().map(|it| &it.node).collect();
        prop_assert!(grants.open.keys().eq(nodes), "no grant is forgotten");
        admitted(&LEDGERS, &json);
    }
}

#[test]
fn what_is_missing_in_a_record_is_named() {
    let spec = json!({"nodeClaim": {"name": "web-1", "uid": "u1"}});
    for (status, expected) in [
        (
            json!(null),
            "status.phase status.phaseSince status.cause status.order status.drainLimitAction \
             status.try status.reason",
        ),
        (
            json!({
                "phase": "Joining", "phaseSince": "soon", "cause": "Drift", "order": "DeleteFirst",
                "drainLimitAction": "Skip", "try": 0, "reason": {"word": "NeverReady"},
            }),
            "status.phaseSince status.try status.reason.claim",
        ),
    ] {
        let read: Replacement = serde_json::from_value(json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "Replacement",
            "metadata": {"name": "u1"}, "spec": spec, "status": status,
        }))
        .unwrap();
        let found = replace::Replacement::try_from(&read).unwrap_err();
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields.join(" "), expected);
    }
}

#[test]
fn every_end_of_a_replacement_is_told_from_the_others() {
    let words: BTreeMap<String, Phase> = Phase::ALL
        .into_iter()
        .map(|it| (format!("{:?}", replacement::Phase::from(it)), it))
        .collect();
    assert_eq!(words.len(), Phase::ALL.len());
    for (word, phase) in words {
        assert_eq!(word.to_lowercase(), phase.as_str());
        assert_eq!(Phase::from(replacement::Phase::from(phase)), phase);
    }
}

#[test]
fn a_pause_and_a_lock_hold_until_a_person_ends_them() {
    let lock =
        json!({"id": "l1", "reason": "two grants for one node", "since": "2026-11-16T00:00:00Z"});
    for (spec, paused, locked) in [
        (json!({}), None, Some("two grants for one node")),
        (json!({"releasedLock": "l0"}), None, Some("two grants for one node")),
        (json!({"releasedLock": "l1"}), None, None),
        (
            json!({"releasedLock": "l1", "pause": {"reason": "sale", "by": "ada", "since": "soon"}}),
            Some("ada: sale"),
            None,
        ),
        (json!({"releasedLock": "l1", "pause": {"reason": "sale"}}), Some("sale"), None),
    ] {
        let read: DisruptionLedger = serde_json::from_value(json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "DisruptionLedger",
            "metadata": {"name": "cluster"}, "spec": spec, "status": {"lock": lock},
        }))
        .unwrap();
        let grants = Grants::try_from(&read).unwrap();
        assert_eq!(grants.paused.as_deref(), paused, "{spec}");
        assert_eq!(grants.locked.as_deref(), locked, "{spec}");
    }
}

#[test]
fn a_ledger_that_cannot_be_read_is_no_empty_one() {
    let grant = |since: &str, epoch: i64| json!({"holder": "u1", "kind": "Replacement", "epoch": epoch, "since": since, "nodeName": "a"});
    let good = "2026-11-16T00:00:00Z";
    for (status, field) in [
        (json!({"grants": [grant("soon", 1)]}), "status.grants[0].since"),
        (json!({"grants": [grant(good, -1)]}), "status.grants[0].epoch"),
        (json!({"grants": [grant(good, 1), grant(good, 1)]}), "status.grants[1].holder"),
        (json!({"epoch": -1}), "status.epoch"),
        (
            json!({"closed": [{"nodeName": "a", "nodeClass": "c", "since": good, "endedAt": "x"}]}),
            "status.closed[0].endedAt",
        ),
    ] {
        let read: DisruptionLedger = serde_json::from_value(json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "DisruptionLedger",
            "metadata": {"name": "cluster"}, "spec": {}, "status": status,
        }))
        .unwrap();
        let found = Grants::try_from(&read).unwrap_err();
        assert_eq!(found[0].field, field);
    }
}
