//! What is the next step?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a kind world does the same with most")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::BTreeMap;

use fleet::{ago, at, minutes, now};
use jiff::{SignedDuration, Timestamp};
use nodemolt_core::drain::{AtLimit, DO_NOT_DISRUPT, Protection};
use nodemolt_core::plan::WaitFor;
use nodemolt_core::replace::{
    Because, Cause, Command, Old, OldSeen, Order, Phase, PlacementSeen, Replacement, Seen, Step,
    Successor, SuccessorSeen, Wait, asks, evicts, next, next_try_at,
};
use proptest::prelude::*;
use proptest::sample::select;

fn old() -> Old {
    Old { node: "old".to_owned(), claim: "claim".to_owned(), claim_uid: "uid".to_owned() }
}

fn begun(cause: Cause, order: Order) -> Replacement {
    Replacement::begin(old(), cause, order, AtLimit::Skip, vec!["new".to_owned()], now())
}

/// In a phase since some minutes, with one successor that was made.
fn at_phase(phase: Phase, since: i64) -> Replacement {
    Replacement {
        phase,
        since: ago(minutes(since)),
        successors: vec![Successor { claim: "new".to_owned(), uid: Some("u".to_owned()) }],
        ..begun(Cause::Drift, Order::SuccessorFirst)
    }
}

/// The old node as it was, its successor as told, and nothing else in the way.
fn seen(successor: SuccessorSeen) -> Seen {
    Seen {
        old: OldSeen::Present { deleting: false, cordoned: false, pods: 3 },
        successors: BTreeMap::from([("new".to_owned(), successor)]),
        unsteady: BTreeMap::new(),
        placement: PlacementSeen::Holds,
        more: Vec::new(),
        people: None,
        lingering: 0,
        drain_limit: None,
        wanted: Some(true),
        granted: true,
        halted: false,
        locked: false,
    }
}

fn ready(for_minutes: i64, pods: usize) -> SuccessorSeen {
    SuccessorSeen::Ready { since: ago(minutes(for_minutes)), pods }
}

fn unready(for_minutes: i64, pods: usize) -> SuccessorSeen {
    SuccessorSeen::NotReady { since: ago(minutes(for_minutes)), pods }
}

/// The same with the old node cordoned, as it is while it is emptied.
fn emptied(successor: SuccessorSeen) -> Seen {
    Seen { old: present(false, true, 3), ..seen(successor) }
}

/// The same while the successor is now ready and now not, for so long.
fn flapping(for_minutes: i64, successor: SuccessorSeen) -> Seen {
    let unsteady = BTreeMap::from([("new".to_owned(), ago(minutes(for_minutes)))]);
    Seen { unsteady, ..emptied(successor) }
}

fn protected() -> WaitFor {
    let protection = Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None };
    WaitFor::ProtectedNode { node: "old".to_owned(), claim: None, protection }
}

fn cordoned() -> PlacementSeen {
    let (pod, claim, node) = ("a/b".to_owned(), "s0".to_owned(), "n9".to_owned());
    PlacementSeen::Cordoned { pod, claim, node }
}

fn present(deleting: bool, cordoned: bool, pods: usize) -> OldSeen {
    OldSeen::Present { deleting, cordoned, pods }
}

/// Every arrow, and everything that makes it wait.
#[test]
fn each_phase_knows_its_arrows() {
    use Phase::{
        Cancelled, Done, Draining, Failed, Joining, Kept, Launching, Retreating, Settling,
    };
    use Phase::{Skipped, Terminating};
    let launching =
        |gave_up: Option<&str>| SuccessorSeen::Launching { gave_up: gave_up.map(str::to_owned) };
    let registered = |it: i64| SuccessorSeen::Registered { since: ago(minutes(it)), pods: 0 };
    let lost = || PlacementSeen::Lost { pod: "a/b".to_owned(), because: "no room".to_owned() };
    let limit = |it: i64| Some((ago(minutes(it)), "a/b".to_owned()));
    // On the heap: a table of such cases is too large for a stack.
    for (what, from, since, seen, to) in vec![
        ("asked for", Launching, 1, seen(launching(None)), Launching),
        ("launched", Launching, 1, seen(SuccessorSeen::Launched { pods: 0 }), Joining),
        ("no capacity at all", Launching, 1, seen(launching(Some("ICE"))), Retreating),
        ("slow", Launching, 15, seen(launching(None)), Launching),
        ("too slow", Launching, 16, seen(launching(None)), Retreating),
        ("late, but there", Launching, 60, seen(SuccessorSeen::Launched { pods: 0 }), Joining),
        (
            "user deleted the claim",
            Launching,
            1,
            seen(SuccessorSeen::Deleting { pods: 0 }),
            Retreating,
        ),
        (
            "user deleted the old node",
            Launching,
            1,
            Seen { old: present(true, false, 3), ..seen(launching(None)) },
            Draining,
        ),
        (
            "the old node is gone",
            Launching,
            1,
            Seen { old: OldSeen::Gone, ..seen(launching(None)) },
            Launching,
        ),
        (
            "it matches again",
            Launching,
            1,
            Seen { wanted: Some(false), ..seen(launching(None)) },
            Retreating,
        ),
        (
            "nobody knows whether it matches",
            Launching,
            1,
            Seen { wanted: None, ..seen(launching(None)) },
            Launching,
        ),
        (
            "a pause stops no launch",
            Launching,
            1,
            Seen { halted: true, ..seen(SuccessorSeen::Launched { pods: 0 }) },
            Joining,
        ),
        ("booting", Joining, 15, seen(SuccessorSeen::Launched { pods: 0 }), Joining),
        ("never registered", Joining, 16, seen(SuccessorSeen::Launched { pods: 0 }), Retreating),
        ("registered", Joining, 16, seen(registered(2)), Joining),
        ("never ready", Joining, 40, seen(registered(16)), Retreating),
        ("ready", Joining, 40, seen(ready(0, 0)), Settling),
        (
            "ready, the old one gone",
            Joining,
            1,
            Seen { old: OldSeen::Gone, ..seen(ready(0, 0)) },
            Done,
        ),
        ("gone", Joining, 1, seen(SuccessorSeen::Gone), Retreating),
        ("cannot be asked about", Joining, 900, seen(SuccessorSeen::Unknown), Joining),
        ("not steady yet", Settling, 0, seen(ready(0, 0)), Settling),
        ("steady", Settling, 1, seen(ready(1, 0)), Draining),
        ("flapping", Settling, 15, seen(unready(1, 0)), Settling),
        ("flapping on", Settling, 16, seen(unready(1, 0)), Retreating),
        (
            "placement not decided",
            Settling,
            900,
            Seen { placement: PlacementSeen::NotDecided, ..seen(ready(1, 0)) },
            Settling,
        ),
        ("placement lost", Settling, 1, Seen { placement: lost(), ..seen(ready(1, 0)) }, Settling),
        (
            "somebody cordoned the successor",
            Settling,
            1,
            Seen { placement: cordoned(), ..seen(ready(1, 0)) },
            Settling,
        ),
        (
            "somebody cordoned the successor for good",
            Settling,
            16,
            Seen { placement: cordoned(), ..seen(ready(1, 0)) },
            Retreating,
        ),
        (
            "placement lost for long",
            Settling,
            16,
            Seen { placement: lost(), ..seen(ready(1, 0)) },
            Retreating,
        ),
        ("paused", Settling, 900, Seen { halted: true, ..seen(ready(1, 0)) }, Settling),
        ("late, but fine", Settling, 900, seen(ready(1, 0)), Draining),
        (
            "somebody protects it",
            Settling,
            15,
            Seen { people: Some(protected()), ..seen(ready(1, 0)) },
            Settling,
        ),
        (
            "somebody protects it for long",
            Settling,
            16,
            Seen { people: Some(protected()), ..seen(ready(1, 0)) },
            Retreating,
        ),
        (
            "it matches again",
            Settling,
            1,
            Seen { wanted: Some(false), ..seen(ready(1, 0)) },
            Retreating,
        ),
        ("pods are left", Draining, 1, emptied(ready(9, 1)), Draining),
        (
            "drained",
            Draining,
            1,
            Seen { old: present(false, true, 0), ..emptied(ready(9, 3)) },
            Terminating,
        ),
        (
            "drained, but its successor is not ready",
            Draining,
            1,
            Seen { old: present(false, true, 0), ..emptied(unready(1, 3)) },
            Draining,
        ),
        ("a successor that blinks", Draining, 9, emptied(unready(1, 1)), Draining),
        ("successor lost", Draining, 30, emptied(unready(16, 1)), Retreating),
        ("successor flaps", Draining, 30, flapping(15, unready(1, 1)), Draining),
        ("successor flaps on", Draining, 30, flapping(16, unready(1, 1)), Retreating),
        ("successor has flapped", Draining, 30, flapping(16, ready(1, 1)), Draining),
        ("successor deleted", Draining, 1, emptied(SuccessorSeen::Gone), Retreating),
        (
            "successor deleted, but the old one goes anyway",
            Draining,
            1,
            Seen { old: present(true, true, 2), ..emptied(SuccessorSeen::Gone) },
            Draining,
        ),
        (
            "limit not reached",
            Draining,
            1,
            Seen { drain_limit: limit(-1), ..emptied(ready(9, 1)) },
            Draining,
        ),
        (
            "who ends with the machine may not end now",
            Draining,
            1,
            Seen { lingering: 1, old: present(false, true, 0), ..emptied(ready(9, 1)) },
            Draining,
        ),
        (
            "who ends with the machine may not end any more",
            Terminating,
            1,
            Seen { lingering: 1, old: present(false, true, 0), ..emptied(ready(9, 1)) },
            Draining,
        ),
        (
            "limit reached by one that would end with the machine",
            Draining,
            1,
            Seen {
                lingering: 1,
                drain_limit: limit(0),
                old: present(false, true, 0),
                ..emptied(ready(9, 1))
            },
            Retreating,
        ),
        (
            "limit reached",
            Draining,
            1,
            Seen { drain_limit: limit(0), ..emptied(ready(9, 1)) },
            Retreating,
        ),
        (
            "limit reached, but paused",
            Draining,
            1,
            Seen { drain_limit: limit(0), halted: true, ..emptied(ready(9, 1)) },
            Draining,
        ),
        (
            "limit reached, but it goes anyway",
            Draining,
            1,
            Seen { drain_limit: limit(0), old: present(true, true, 2), ..emptied(ready(9, 1)) },
            Draining,
        ),
        (
            "matches again: too late",
            Draining,
            1,
            Seen { wanted: Some(false), ..emptied(ready(9, 1)) },
            Draining,
        ),
        ("died", Draining, 1, Seen { old: OldSeen::Gone, ..emptied(ready(9, 1)) }, Done),
        (
            "died, successor not ready",
            Draining,
            1,
            Seen { old: OldSeen::Gone, ..emptied(unready(1, 1)) },
            Joining,
        ),
        ("cordoned in a moment", Draining, 1, seen(ready(9, 0)), Draining),
        ("not cordoned, and a successor blinks", Draining, 20, seen(unready(1, 0)), Settling),
        ("not cordoned, and not steady", Draining, 20, seen(ready(0, 0)), Settling),
        (
            "not cordoned, and the room is taken",
            Draining,
            20,
            Seen { placement: lost(), ..seen(ready(9, 0)) },
            Settling,
        ),
        (
            "nobody knows any more whether it has to go",
            Settling,
            1,
            Seen { wanted: None, ..seen(ready(9, 0)) },
            Settling,
        ),
        (
            "nobody has known for long whether it has to go",
            Settling,
            16,
            Seen { wanted: None, ..seen(ready(9, 0)) },
            Retreating,
        ),
        (
            "nobody knows any more whether it has to go, and its pods leave",
            Draining,
            1,
            Seen { wanted: None, ..emptied(ready(9, 0)) },
            Draining,
        ),
        (
            "the room is taken, and one more node would do",
            Settling,
            1,
            Seen { placement: lost(), more: vec!["more".to_owned()], ..seen(ready(9, 1)) },
            Launching,
        ),
        (
            "the room is taken for long, and one more node would do",
            Settling,
            16,
            Seen { placement: lost(), more: vec!["more".to_owned()], ..seen(ready(9, 1)) },
            Launching,
        ),
        (
            "not cordoned, and nobody has looked",
            Draining,
            20,
            Seen { placement: PlacementSeen::NotDecided, ..seen(ready(9, 0)) },
            Settling,
        ),
        (
            "not cordoned, and somebody protects it",
            Draining,
            20,
            Seen { people: Some(protected()), ..seen(ready(9, 0)) },
            Settling,
        ),
        (
            "not cordoned, and it matches again",
            Draining,
            20,
            Seen { wanted: Some(false), ..seen(ready(9, 0)) },
            Settling,
        ),
        (
            "not cordoned, but it goes anyway",
            Draining,
            20,
            Seen { old: present(true, false, 3), placement: lost(), ..seen(unready(1, 0)) },
            Draining,
        ),
        (
            "not cordoned, and paused",
            Draining,
            20,
            Seen { halted: true, placement: lost(), ..seen(ready(9, 0)) },
            Draining,
        ),
        (
            "protected when it is cordoned already",
            Draining,
            20,
            Seen { people: Some(protected()), ..emptied(ready(9, 0)) },
            Retreating,
        ),
        (
            "going",
            Terminating,
            900,
            Seen { old: present(true, true, 0), ..seen(ready(9, 3)) },
            Terminating,
        ),
        ("gone", Terminating, 1, Seen { old: OldSeen::Gone, ..seen(ready(9, 3)) }, Done),
        (
            "a pod came back",
            Terminating,
            1,
            Seen { old: present(false, true, 1), ..seen(ready(9, 3)) },
            Draining,
        ),
        (
            "somebody took the taint away",
            Terminating,
            1,
            Seen { old: present(false, false, 0), ..seen(ready(9, 3)) },
            Draining,
        ),
        (
            "its successor is lost: too late",
            Terminating,
            1,
            Seen { old: present(true, true, 0), ..seen(SuccessorSeen::Gone) },
            Terminating,
        ),
        (
            "still cordoned",
            Retreating,
            1,
            Seen { old: present(false, true, 1), ..seen(SuccessorSeen::Gone) },
            Retreating,
        ),
        ("successor still there", Retreating, 1, seen(ready(9, 0)), Retreating),
        ("all undone", Retreating, 1, seen(SuccessorSeen::Gone), Failed),
        ("it runs pods", Retreating, 1, seen(unready(9, 1)), Kept),
        (
            "it runs pods and was never set up",
            Retreating,
            1,
            seen(SuccessorSeen::Registered { since: ago(minutes(9)), pods: 1 }),
            Kept,
        ),
        (
            "it runs pods and was never registered",
            Retreating,
            1,
            seen(SuccessorSeen::Launched { pods: 1 }),
            Kept,
        ),
        ("we delete it", Retreating, 1, seen(SuccessorSeen::Deleting { pods: 0 }), Retreating),
        (
            "somebody deleted it, and its pods do not leave",
            Retreating,
            1,
            seen(SuccessorSeen::Deleting { pods: 1 }),
            Failed,
        ),
        ("never made", Retreating, 1, seen(SuccessorSeen::Unasked), Failed),
        (
            "the old one is gone too",
            Retreating,
            1,
            Seen { old: OldSeen::Gone, ..seen(SuccessorSeen::Gone) },
            Failed,
        ),
    ] {
        let step = next(&at_phase(from, since), &seen, now());
        assert_eq!(step.phase, to, "{} {what}: {}", from.as_str(), step.because);
    }
    // Issue 7: whoever was about to end waited for the machine, and a lock was told as a pause.
    let halted = |locked| Seen {
        halted: true,
        locked,
        old: present(false, true, 0),
        ..emptied(ready(9, 3))
    };
    for from in [Settling, Draining, Terminating] {
        for (seen, expected) in [(halted(false), Wait::Pause), (halted(true), Wait::Unlock)] {
            let step = next(&at_phase(from, 1), &seen, now());
            assert_eq!(step, Step { phase: from, because: Because::WaitsFor(expected) });
        }
    }
    let deleted = Seen { old: present(true, true, 0), ..halted(true) };
    let step = next(&at_phase(Terminating, 1), &deleted, now());
    assert_eq!(step.because, Because::WaitsFor(Wait::Termination), "somebody deleted it");
    let ends = |because, expected| {
        let retreating = Replacement { because, ..at_phase(Retreating, 1) };
        assert_eq!(next(&retreating, &seen(SuccessorSeen::Gone), now()).phase, expected);
    };
    ends(Because::DrainLimit { pod: "a/b".to_owned() }, Skipped);
    ends(Because::HeldBack { pod: None, why: "a person".to_owned() }, Skipped);
    ends(Because::NoLongerWanted, Cancelled);
    ends(Because::NotGranted, Cancelled);
    ends(Because::Flapping { claim: "new".to_owned() }, Failed);
}

#[test]
fn what_ended_it_is_why_it_was_given_up() {
    let because = Because::NeverRegistered { claim: "new".to_owned() };
    let retreating = Replacement { because: because.clone(), ..at_phase(Phase::Retreating, 1) };
    let step = next(&retreating, &seen(SuccessorSeen::Gone), now());
    let failed = retreating.after(step, now());
    assert_eq!(failed.because, because);
    assert_eq!(failed.next_try_at(), Some(now() + minutes(60)));
    assert!(!failed.holds_grant(&OldSeen::Unknown), "a failed one gives back its grant");
}

#[test]
fn a_later_try_opens_the_same_record_again() {
    let failed =
        Replacement { phase: Phase::Failed, tries: 3, failures: 2, ..at_phase(Phase::Failed, 60) };
    let again = failed.again(Cause::Asked, vec!["newer".to_owned()], now());
    assert_eq!((again.phase, again.tries, again.since), (Phase::Launching, 4, now()));
    assert_eq!(again.old, failed.old);
    assert_eq!(again.successors[0].uid, None);
    assert_eq!(again.failures, 2);
}

/// Issue 7: four tries that nobody wanted any more made the first that failed wait for 16 hours.
#[test]
fn what_nobody_wanted_any_more_makes_no_later_try_wait() {
    let end = |it: Replacement, because| {
        let retreating = Replacement { phase: Phase::Retreating, because, ..it };
        retreating.after(next(&retreating, &seen(SuccessorSeen::Gone), now()), now())
    };
    let mut replacement = begun(Cause::Drift, Order::SuccessorFirst);
    for (failures, because, hours) in [
        (0, Because::NoLongerWanted, None),
        (0, Because::NotGranted, None),
        (1, Because::SuccessorGone { claim: "new".to_owned() }, Some(1)),
        (1, Because::NoLongerWanted, None),
        (2, Because::DrainLimit { pod: "a/b".to_owned() }, Some(2)),
        (3, Because::Protected { why: "a person".to_owned() }, Some(4)),
    ] {
        let ended = end(replacement, because);
        let wait = ended.next_try_at().map(|it| it.duration_since(now()).as_hours());
        assert_eq!((ended.failures, wait), (failures, hours), "{:?}", ended.because);
        replacement = ended.again(Cause::Drift, vec!["new".to_owned()], now());
    }
    assert_eq!(replacement.tries, 7);
}

/// Issue 7: who protected a node in the middle of it was not heard, and its machine ended.
#[test]
fn a_node_that_a_person_protects_is_left_alone_however_far_it_is() {
    let people = Some(protected());
    let held = |old| Seen { old, people: people.clone(), ..seen(ready(9, 0)) };
    for (what, phase, seen, expected) in [
        ("while it is emptied", Phase::Draining, held(present(false, true, 3)), Phase::Retreating),
        ("empty", Phase::Draining, held(present(false, true, 0)), Phase::Retreating),
        ("about to end", Phase::Terminating, held(present(false, true, 0)), Phase::Draining),
        ("deleted", Phase::Draining, held(present(true, true, 3)), Phase::Draining),
        ("ending", Phase::Terminating, held(present(true, true, 0)), Phase::Terminating),
    ] {
        let replacement = at_phase(phase, 1);
        assert_eq!(next(&replacement, &seen, now()).phase, expected, "{what}");
        let goes = matches!(seen.old, OldSeen::Present { deleting: true, .. });
        let asks = phase == Phase::Draining && goes;
        assert_eq!(evicts(&replacement, &seen, now()), asks, "{what}");
    }
    let first = Replacement { order: Order::DeleteFirst, ..at_phase(Phase::Draining, 1) };
    assert_eq!(next(&first, &held(present(false, true, 3)), now()).phase, Phase::Retreating);
}

#[test]
fn the_wait_doubles_up_to_a_day() {
    let hours: Vec<i64> = [1, 2, 3, 4, 5, 6, 7, 100, u32::MAX]
        .map(|it| next_try_at(it, now()).duration_since(now()).as_hours())
        .to_vec();
    assert_eq!(hours, [1, 2, 4, 8, 16, 24, 24, 24, 24]);
    assert_eq!(next_try_at(0, Timestamp::MAX), Timestamp::MAX);
}

#[test]
fn the_old_node_goes_first_where_there_is_no_room() {
    let begun = begun(Cause::Drift, Order::DeleteFirst);
    assert_eq!(begun.phase, Phase::Draining);
    assert!(!asks(begun.phase, &begun).iter().any(|it| matches!(it, Command::Launch { .. })));
    let mut seen = seen(SuccessorSeen::Unasked);
    seen.old = present(false, true, 0);
    let terminating = begun.after(next(&begun, &seen, now()), now());
    assert_eq!(terminating.phase, Phase::Terminating);
    seen.old = OldSeen::Gone;
    let launching = terminating.after(next(&terminating, &seen, now()), now());
    assert_eq!(launching.phase, Phase::Launching);
    assert!(launching.holds_grant(&seen.old), "its room is missing until the successor is there");
    let launch = Command::Launch { claim: "new".to_owned() };
    assert!(asks(launching.phase, &launching).contains(&launch));
}

/// Where a person protects it, the old node that goes first waits too, before anything was disturbed.
#[test]
fn what_goes_first_is_not_cordoned_against_a_persons_word() {
    let begun = begun(Cause::Drift, Order::DeleteFirst);
    let held = Seen { people: Some(protected()), ..seen(SuccessorSeen::Unasked) };
    let settling = begun.after(next(&begun, &held, now()), now());
    assert_eq!(settling.phase, Phase::Settling);
    assert!(!asks(settling.phase, &settling).contains(&Command::Cordon { node: "old".to_owned() }));
    let free = Seen { people: None, ..held.clone() };
    assert_eq!(next(&settling, &free, now()).phase, Phase::Draining);
    let late = now() + minutes(16);
    assert_eq!(next(&settling, &held, late).phase, Phase::Retreating);
}

#[test]
fn pods_leave_only_while_their_successors_are_ready() {
    let deleted = |it| Seen { old: present(true, true, 2), ..seen(it) };
    for (what, seen, expected) in [
        ("ready", emptied(ready(0, 0)), true),
        ("not ready for a moment", emptied(unready(0, 0)), false),
        ("not known", emptied(SuccessorSeen::Unknown), false),
        ("not cordoned", seen(ready(9, 0)), false),
        ("halted", Seen { halted: true, ..emptied(ready(9, 0)) }, false),
        ("deleted by a person", deleted(unready(9, 0)), true),
        ("deleted, and halted", Seen { halted: true, ..deleted(unready(9, 0)) }, true),
    ] {
        assert_eq!(evicts(&at_phase(Phase::Draining, 1), &seen, now()), expected, "{what}");
        assert!(!evicts(&at_phase(Phase::Settling, 1), &seen, now()), "{what}");
    }
    let first = Replacement { order: Order::DeleteFirst, ..at_phase(Phase::Draining, 1) };
    assert!(evicts(&first, &emptied(SuccessorSeen::Unasked), now()));
}

#[test]
fn a_deleted_node_gets_successors_while_it_is_emptied() {
    let deleted = begun(Cause::Deleted, Order::SuccessorFirst);
    assert_eq!(deleted.phase, Phase::Draining);
    assert!(asks(deleted.phase, &deleted).contains(&Command::Launch { claim: "new".to_owned() }));
    let gone = Seen { old: OldSeen::Gone, ..seen(SuccessorSeen::Launched { pods: 0 }) };
    assert_eq!(next(&deleted, &gone, now()).phase, Phase::Joining);
    assert!(
        deleted.holds_grant(&OldSeen::Gone),
        "its room is missing until the successor is there"
    );
    let alone = Replacement { successors: Vec::new(), ..deleted };
    assert!(!alone.holds_grant(&OldSeen::Gone), "given back when the old machine is gone");
}

#[test]
fn no_successor_is_needed_where_there_is_room() {
    use Phase::{Draining, Joining, Launching, Settling};
    let mut spare = begun(Cause::Expiry, Order::SuccessorFirst);
    spare.successors.clear();
    let seen = Seen { successors: BTreeMap::new(), ..seen(SuccessorSeen::Unasked) };
    let mut phases = vec![spare.phase];
    for _ in 0..4 {
        spare = spare.after(next(&spare, &seen, now()), now());
        phases.push(spare.phase);
    }
    assert_eq!(phases, [Launching, Joining, Settling, Draining, Draining]);
}

// ---- laws ----

fn some_successor() -> impl Strategy<Value = SuccessorSeen> {
    let since = (0..40_i64).prop_map(|it| ago(minutes(it)));
    let pods = 0..3_usize;
    (0..10_usize, since, pods).prop_map(|(which, since, pods)| match which {
        0 => SuccessorSeen::Unknown,
        1 => SuccessorSeen::Unasked,
        2 => SuccessorSeen::Launching { gave_up: None },
        3 => SuccessorSeen::Launching { gave_up: Some("no capacity".to_owned()) },
        4 => SuccessorSeen::Launched { pods },
        5 => SuccessorSeen::Registered { since, pods },
        6 => SuccessorSeen::Ready { since, pods },
        7 => SuccessorSeen::NotReady { since, pods },
        8 => SuccessorSeen::Deleting { pods },
        _ => SuccessorSeen::Gone,
    })
}

fn some_old() -> impl Strategy<Value = OldSeen> {
    (0..6_usize, any::<bool>(), any::<bool>(), 0..4_usize).prop_map(
        |(which, deleting, cordoned, pods)| match which {
            0 => OldSeen::Gone,
            1 => OldSeen::Unknown,
            _ => OldSeen::Present { deleting, cordoned, pods },
        },
    )
}

prop_compose! {
    fn some_replacement()(
        phase in select(Phase::ALL.to_vec()),
        since in 0..60_i64,
        cause in select(vec![Cause::Drift, Cause::Expiry, Cause::Asked, Cause::Deleted, Cause::Interrupted]),
        delete_first in any::<bool>(),
        at_limit in select(vec![AtLimit::Skip, AtLimit::Wait, AtLimit::Force]),
        made in prop::collection::vec(any::<bool>(), 0..3),
        limit in any::<bool>(),
    ) -> Replacement {
        let successors = made.iter().enumerate().map(|(at, made)| Successor {
            claim: format!("s{at}"),
            uid: made.then(|| format!("u{at}")),
        });
        Replacement {
            phase,
            since: ago(minutes(since)),
            at_limit,
            order: if delete_first { Order::DeleteFirst } else { Order::SuccessorFirst },
            successors: successors.collect(),
            because: if limit { Because::DrainLimit { pod: "a/b".to_owned() } } else { Because::Begun },
            ..begun(cause, Order::SuccessorFirst)
        }
    }
}

prop_compose! {
    fn some_seen()(
        old in some_old(),
        all in prop::collection::vec(some_successor(), 3),
        placement in 0..4_usize,
        limit in prop::option::of(-10..10_i64),
        wanted in prop::option::of(any::<bool>()),
        (halted, granted) in any::<(bool, bool)>(),
        held in any::<bool>(),
        more in any::<bool>(),
        lingering in 0..2_usize,
        unsteady in prop::option::of(0..30_i64),
    ) -> Seen {
        Seen {
            old,
            successors: all.into_iter().enumerate().map(|(at, it)| (format!("s{at}"), it)).collect(),
            unsteady: unsteady.into_iter().map(|it| ("s0".to_owned(), ago(minutes(it)))).collect(),
            placement: match placement {
                0 => PlacementSeen::NotDecided,
                1 => PlacementSeen::Lost { pod: "a/b".to_owned(), because: "no room".to_owned() },
                2 => cordoned(),
                _ => PlacementSeen::Holds,
            },
            more: if more { vec!["more".to_owned()] } else { Vec::new() },
            people: held.then(protected),
            lingering,
            drain_limit: limit.map(|it| (ago(minutes(it)), "a/b".to_owned())),
            wanted,
            granted,
            halted,
            locked: false,
        }
    }
}

/// A world without faults: whatever is asked happens, one thing after the other.
struct Kind {
    seen: Seen,
    now: Timestamp,
}

impl Kind {
    const TICK: SignedDuration = SignedDuration::from_secs(20);

    /// Faults stop: what could not be found out is found out, and nothing is paused.
    fn heal(mut seen: Seen, replacement: &Replacement, now: Timestamp) -> Self {
        seen.halted = false;
        seen.wanted = seen.wanted.or(Some(true));
        seen.placement = PlacementSeen::Holds;
        seen.people = None;
        seen.lingering = 0;
        if seen.old == OldSeen::Unknown {
            seen.old = present(false, true, 2);
        }
        for it in &replacement.successors {
            let state = seen.successors.entry(it.claim.clone()).or_insert(SuccessorSeen::Unasked);
            if *state == SuccessorSeen::Unknown
                || (it.uid.is_some() && *state == SuccessorSeen::Unasked)
            {
                *state = SuccessorSeen::Gone;
            }
        }
        Self { seen, now }
    }

    fn obey(&mut self, command: &Command, replacement: &mut Replacement) {
        match command {
            Command::Launch { claim } => {
                let state = self.seen.successors.get_mut(claim).unwrap();
                if *state == SuccessorSeen::Unasked {
                    *state = SuccessorSeen::Launching { gave_up: None };
                }
                let made = replacement.successors.iter_mut().find(|it| it.claim == *claim);
                made.unwrap().uid = Some(format!("uid of {claim}"));
            }
            Command::Cordon { .. } => self.change_old(|_, cordoned, _| *cordoned = true),
            Command::Uncordon { .. } => self.change_old(|_, cordoned, _| *cordoned = false),
            Command::Evict { .. } => self.change_old(|_, _, pods| *pods = pods.saturating_sub(1)),
            Command::Terminate { .. } => {
                let OldSeen::Present { deleting, pods, .. } = self.seen.old else { return };
                assert!(pods == 0 || deleting, "terminated with {pods} pods on it");
                self.change_old(|deleting, _, _| *deleting = true);
            }
            Command::RemoveSuccessor { claim } => {
                let state = self.seen.successors.get_mut(claim).unwrap();
                match state {
                    SuccessorSeen::Ready { pods: 1.., .. }
                    | SuccessorSeen::NotReady { pods: 1.., .. }
                    | SuccessorSeen::Registered { pods: 1.., .. }
                    | SuccessorSeen::Launched { pods: 1.. }
                    | SuccessorSeen::Deleting { .. }
                    | SuccessorSeen::Unasked
                    | SuccessorSeen::Gone => {}
                    _ => *state = SuccessorSeen::Deleting { pods: 0 },
                }
            }
        }
    }

    fn change_old(&mut self, change: impl FnOnce(&mut bool, &mut bool, &mut usize)) {
        if let OldSeen::Present { deleting, cordoned, pods } = &mut self.seen.old {
            change(deleting, cordoned, pods);
        }
    }

    fn pass(&mut self) {
        self.now += Self::TICK;
        if self.seen.old == present(true, true, 0) || self.seen.old == present(true, false, 0) {
            self.seen.old = OldSeen::Gone;
        }
        let now = self.now;
        for state in self.seen.successors.values_mut() {
            *state = match state.clone() {
                SuccessorSeen::Launching { gave_up: None } => SuccessorSeen::Launched { pods: 0 },
                SuccessorSeen::Launched { pods } => SuccessorSeen::Registered { since: now, pods },
                SuccessorSeen::Registered { pods, .. } | SuccessorSeen::NotReady { pods, .. } => {
                    SuccessorSeen::Ready { since: now, pods }
                }
                // One with pods waits for somebody to let them go.
                SuccessorSeen::Deleting { pods: 0 } => SuccessorSeen::Gone,
                other => other,
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Law 8, for one replacement: from whatever state, when faults stop it ends, nothing of ours stays
    /// on the old node, and no successor is left over that nobody uses.
    #[test]
    fn when_faults_stop_it_ends(mut replacement in some_replacement(), seen in some_seen()) {
        if replacement.phase.ended() {
            replacement.phase = Phase::Launching;
        }
        let mut world = Kind::heal(seen, &replacement, now());
        let voluntary_first =
            replacement.order == Order::SuccessorFirst && replacement.cause.voluntary();
        for _ in 0..400 {
            let before = replacement.phase;
            let step = next(&replacement, &world.seen, world.now);
            replacement = replacement.after(step, world.now);
            if voluntary_first && before != Phase::Draining && replacement.phase == Phase::Draining {
                // Law 6: to the cordon from a place for every pod, or because somebody else moved.
                let allowed = matches!(
                    replacement.because,
                    Because::PlacementHolds
                        | Because::OldDeleted
                        | Because::PodsCameBack { .. }
                        | Because::DecideAgain
                );
                prop_assert!(allowed, "{}", replacement.because);
            }
            for command in asks(replacement.phase, &replacement.clone()) {
                world.obey(&command, &mut replacement);
            }
            if replacement.phase.ended() {
                break;
            }
            world.pass();
        }
        prop_assert!(replacement.phase.ended(), "still {} ({})", replacement.phase.as_str(), replacement.because);
        if replacement.phase != Phase::Done {
            let ours = matches!(world.seen.old, OldSeen::Present { deleting: false, cordoned: true, .. });
            prop_assert!(!ours, "cordoned for ever");
            for it in &replacement.successors {
                let left_over = match &world.seen.successors[&it.claim] {
                    SuccessorSeen::Gone | SuccessorSeen::Unasked => false,
                    SuccessorSeen::Ready { pods, .. }
                    | SuccessorSeen::NotReady { pods, .. }
                    | SuccessorSeen::Registered { pods, .. }
                    | SuccessorSeen::Launched { pods }
                    | SuccessorSeen::Deleting { pods } => *pods == 0,
                    _ => true,
                };
                prop_assert!(!left_over, "{} is left over", it.claim);
            }
        }
    }

    /// Law 4: what could not be found out leads nowhere, however long it takes.
    #[test]
    fn unknown_moves_nothing(replacement in some_replacement(), mut seen in some_seen(), later in 0..100_000_i64) {
        seen.old = OldSeen::Unknown;
        seen.successors.values_mut().for_each(|it| *it = SuccessorSeen::Unknown);
        let step = next(&replacement, &seen, now() + minutes(later));
        prop_assert_eq!(step.phase, replacement.phase);
    }

    /// Law 3: in a world that does not move a replacement comes to rest, and says the same again.
    #[test]
    fn it_comes_to_rest(mut replacement in some_replacement(), mut seen in some_seen()) {
        // One more node is a world that moves; how many there may be the engine counts.
        seen.more.clear();
        for _ in 0..8 {
            replacement = replacement.after(next(&replacement, &seen, now()), now());
        }
        let step = next(&replacement, &seen, now());
        prop_assert_eq!(step.phase, replacement.phase);
        prop_assert_eq!(replacement.after(step, now()), replacement);
    }

    /// Whoever has ended asks for nothing, and only phases that may touch the old node do.
    #[test]
    fn commands_belong_to_phases(replacement in some_replacement()) {
        let all = asks(replacement.phase, &replacement);
        prop_assert_eq!(replacement.phase.ended() && !all.is_empty(), false);
        for command in all {
            let may = match command {
                Command::Cordon { .. } => vec![Phase::Draining, Phase::Terminating],
                Command::Evict { .. } => vec![Phase::Draining],
                Command::Terminate { .. } => vec![Phase::Terminating],
                Command::RemoveSuccessor { .. } => vec![Phase::Retreating],
                Command::Uncordon { .. } => {
                    vec![Phase::Launching, Phase::Joining, Phase::Settling, Phase::Retreating]
                }
                Command::Launch { claim } => {
                    let made = replacement.successors.iter().any(|it| it.claim == claim && it.uid.is_some());
                    prop_assert!(!made, "never made twice");
                    vec![Phase::Launching, Phase::Joining, Phase::Draining]
                }
            };
            prop_assert!(may.contains(&replacement.phase));
        }
    }
}

#[test]
fn a_step_to_the_same_phase_does_not_restart_its_clock() {
    let joining = at_phase(Phase::Joining, 7);
    let waits = Step { phase: Phase::Joining, because: Because::Begun };
    assert_eq!(joining.after(waits, at("2030-01-01T00:00:00Z")), joining);
}
