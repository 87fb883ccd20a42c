//! What happens in a random life, and when?
//!
//! Each life draws some kinds of faults and leaves the others out, each kind with its own weight: a life in
//! which everything goes wrong at once hides what only some of it would show.

use jiff::SignedDuration;
use nodemolt_core::seen::Kind;
use serde_json::json;

use super::scenario::Drawn;
use crate::act::{Act, Target};
use crate::dice::Dice;
use crate::faults::{Counterpart, DOWN, Fault, Lasts, Moment, Side, Whom, Writing};

/// Whatever lasts longer than this in unrest would leave no time to see what comes of it.
const LASTS: (u64, u64) = (30, 600);

/// The fewest faults of a life.
const FAULTS_MIN: usize = 3;

type Draws = fn(&Drawn, &mut Dice) -> Option<Fault>;

/// Every kind of fault.
const KINDS: [Draws; 28] = [
    |_, dice| Some(Fault::Crash { whom: whom(dice), when: moment(dice), down: DOWN }),
    |_, dice| {
        Some(Fault::Crash { whom: Whom::Leader, when: moment(dice), down: seconds(dice, 5, 300) })
    },
    |_, dice| {
        let when = Moment::Now;
        Some(Fault::Freeze { whom: Whom::Leader, when, lasts: seconds(dice, 10, 120) })
    },
    |_, dice| {
        let when = at_a_write(dice);
        Some(Fault::Freeze { whom: Whom::Leader, when, lasts: seconds(dice, 10, 120) })
    },
    |drawn, dice| {
        let whom = Whom::Replica(u8::try_from(dice.below(u64::from(drawn.replicas))).ok()?);
        let seconds = i64::try_from(dice.between(1, 600)).ok()?;
        Some(Fault::Skew { whom, seconds: if dice.chance(500) { seconds } else { -seconds } })
    },
    |_, dice| Some(Fault::LoseRequests { percent: percent(dice), lasts: lasts(dice) }),
    |_, dice| Some(Fault::LoseAnswers { percent: percent(dice), lasts: lasts(dice) }),
    |_, dice| {
        let by = seconds(dice, 1, 40);
        Some(Fault::LateAnswers { percent: percent(dice), by, lasts: lasts(dice) })
    },
    |_, dice| {
        let by = seconds(dice, 1, 90);
        Some(Fault::LateRequests { percent: percent(dice), by, lasts: lasts(dice) })
    },
    |_, dice| Some(stale(Counterpart::Ec2, dice)),
    |_, dice| Some(stale(Counterpart::Ssm, dice)),
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Ec2, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Ssm, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Kubernetes, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Conflicts { percent: percent(dice), lasts: lasts(dice) }),
    |drawn, dice| {
        let instance_type = dice.pick(&drawn.types).cloned().filter(|_| dice.chance(500));
        Some(Fault::NoCapacity { instance_type, zone: None, lasts: lasts(dice) })
    },
    |drawn, dice| {
        let instance_type = dice.pick(&drawn.types).cloned().filter(|_| dice.chance(300));
        let zone = dice.pick(&drawn.zones).cloned();
        Some(Fault::NoCapacity { instance_type, zone, lasts: lasts(dice) })
    },
    |_, dice| Some(Fault::NeverJoins { lasts: lasts(dice) }),
    |_, dice| Some(Fault::NeverReady { lasts: lasts(dice) }),
    |drawn, dice| Some(Fault::NodeDies { node: node(drawn, dice) }),
    |drawn, dice| Some(Fault::NodeFlaps { node: node(drawn, dice), lasts: lasts(dice) }),
    |drawn, dice| {
        let (namespace, name) = dice.pick(&drawn.pdbs)?.clone();
        Some(Fault::PdbNever { namespace, name, lasts: lasts(dice) })
    },
    |_, dice| {
        let by = seconds(dice, 1, 90);
        Some(Fault::WatchLag { kind: kind(dice), by, lasts: lasts(dice) })
    },
    |_, dice| Some(Fault::WatchDrop { kind: kind(dice) }),
    // What people say of how many and who may go is told late, and nothing else is.
    |_, dice| {
        let words = [Kind::Pdb, Kind::DisruptionBudget, Kind::Policy, Kind::Pool];
        let (kind, by) = (dice.pick(&words).copied(), seconds(dice, 30, 300));
        Some(Fault::WatchLag { kind, by, lasts: lasts(dice) })
    },
    |_, dice| Some(Fault::EvictionsGiveUp { percent: percent(dice), lasts: lasts(dice) }),
    |_, dice| Some(Fault::Twins { percent: percent(dice), lasts: lasts(dice) }),
    |drawn, dice| Some(Fault::ListsLack { id: dice.pick(&drawn.listed)?.clone() }),
];

pub(super) fn draw(
    drawn: &Drawn,
    unrest: SignedDuration,
    dice: &mut Dice,
) -> Vec<(SignedDuration, Act)> {
    let mut script = faults(drawn, unrest, &mut dice.fork("faults"));
    script.extend(people(drawn, unrest, &mut dice.fork("people")));
    for (at, line) in &drawn.publishing {
        let act = line.parse::<Act>().unwrap_or_else(|it| unreachable!("{line}: {it}"));
        script.push((*at, act));
    }
    script.sort_by_key(|(at, _)| *at);
    script
}

fn faults(drawn: &Drawn, unrest: SignedDuration, dice: &mut Dice) -> Vec<(SignedDuration, Act)> {
    let mut kinds: Vec<Draws> = KINDS.to_vec();
    dice.shuffle(&mut kinds);
    kinds.truncate(usize::try_from(dice.between(2, 7)).unwrap_or(3));
    // In every life one of us dies at a write of a kind, on a side of it: all of both in many lives.
    let early = SignedDuration::from_mins(25);
    let crash = Fault::Crash { whom: Whom::Leader, when: at_a_write(dice), down: DOWN };
    let mut script = vec![(when(early, dice), Act::Fault(crash))];
    while script.len() < FAULTS_MIN {
        for draws in &kinds {
            for _ in 0..dice.between(1, 3) {
                if let Some(fault) = draws(drawn, dice) {
                    script.push((when(unrest, dice), Act::Fault(fault)));
                }
            }
        }
        // A life may have drawn only what it has no object for.
        kinds.push(KINDS[0]);
    }
    script
}

/// What people do meanwhile.
fn people(drawn: &Drawn, unrest: SignedDuration, dice: &mut Dice) -> Vec<(SignedDuration, Act)> {
    let mut script = Vec::new();
    let node = |dice: &mut Dice| dice.pick(&drawn.nodes).cloned().unwrap_or_default();
    if dice.chance(200) {
        let name = if dice.chance(500) { "@any".to_owned() } else { node(dice).0 };
        let target = Target::Node(name);
        script.push((when(unrest, dice), Act::Upgrade(target)));
    }
    if dice.chance(50)
        && let Some(pool) = dice.pick(&drawn.pools)
    {
        script.push((when(unrest, dice), Act::Upgrade(Target::Pool(pool.clone()))));
    }
    if dice.chance(150) {
        let at = when(unrest, dice);
        script.push((at, Act::Pause { reason: "a sale".to_owned() }));
        script.push((at + seconds(dice, 60, 900), Act::Resume));
    }
    if dice.chance(150) {
        let (at, node) = (when(unrest, dice), node(dice).0);
        script.push((at, Act::Cordon { node: node.clone() }));
        script.push((at + seconds(dice, 60, 900), Act::Uncordon { node }));
    }
    for (chance, kind, name) in [
        (100, "nodeclaim", "@any"),
        (60, "nodeclaim", "@successor"),
        (30, "nodeclaim", "@leaving"),
        (40, "node", "@any"),
        (40, "node", "@successor"),
        (60, "replacement", "@leaving"),
        (20, "replacement", "@any"),
        (60, "disruptionledger", "@any"),
    ] {
        if dice.chance(chance) {
            let (kind, namespace, name) = (kind.to_owned(), None, name.to_owned());
            script.push((when(unrest, dice), Act::Delete { kind, namespace, name }));
        }
    }
    people_hold(drawn, unrest, dice, &mut script);
    if dice.chance(60) {
        script.push((when(unrest, dice), Act::Untaint { node: "@leaving".to_owned() }));
    }
    if dice.chance(100)
        && let Some(manifest) = dice.pick(&drawn.edits)
    {
        script.push((when(unrest, dice), Act::Apply { manifest: manifest.clone() }));
    }
    if dice.chance(100)
        && let Some(pool) = dice.pick(&drawn.pools)
    {
        let budget = json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeDisruptionBudget",
            "metadata": {"name": "later"},
            "spec": {"labelSelectors": [{"karpenter.sh/nodepool": pool}], "maxUnavailable": 1},
        });
        script.push((when(unrest, dice), Act::Apply { manifest: budget.to_string() }));
    }
    if dice.chance(80) {
        let mut quarantine = json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "ImageQuarantine",
            "metadata": {"name": "for-a-while"},
            "spec": {"reason": "looks bad"},
        });
        if drawn.own_images {
            quarantine["spec"]["name"] = json!("golden-*-v20261101");
        } else {
            quarantine["spec"]["version"] = json!("v20261101");
        }
        let at = when(unrest, dice);
        script.push((at, Act::Apply { manifest: quarantine.to_string() }));
        let (kind, name) = ("imagequarantine".to_owned(), "for-a-while".to_owned());
        script.push((at + seconds(dice, 300, 1200), Act::Delete { kind, namespace: None, name }));
    }
    script
}

/// What people and other controllers keep from going, some of it only for a while.
fn people_hold(
    drawn: &Drawn,
    unrest: SignedDuration,
    dice: &mut Dice,
    script: &mut Vec<(SignedDuration, Act)>,
) {
    if dice.chance(120)
        && let Some((node, claim)) = dice.pick(&drawn.nodes).cloned()
    {
        let (kind, name) = if dice.chance(700) { ("node", node) } else { ("nodeclaim", claim) };
        let words = ["true", "true", "5m", "1h"];
        let value = dice.pick(&words).map(|it| (*it).to_owned());
        let annotate = |value| {
            let (kind, name, key) = (kind.to_owned(), name.clone(), DO_NOT_DISRUPT.to_owned());
            Act::Annotate { kind, namespace: None, name, key, value }
        };
        let at = when(unrest, dice);
        script.push((at, annotate(value)));
        if dice.chance(700) {
            script.push((at + seconds(dice, 60, 900), annotate(None)));
        }
    }
    if dice.chance(40) {
        // Whoever is replaced just now must not be disturbed any more.
        let (kind, name) = ("node".to_owned(), "@leaving".to_owned());
        let (key, value) = (DO_NOT_DISRUPT.to_owned(), Some("true".to_owned()));
        script
            .push((when(unrest, dice), Act::Annotate { kind, namespace: None, name, key, value }));
    }
    if dice.chance(80) {
        let kinds = [("nodeclaim", "@any"), ("nodeclaim", "@leaving"), ("node", "@leaving")];
        if let Some((kind, name)) = dice.pick(&kinds) {
            let (kind, name) = ((*kind).to_owned(), (*name).to_owned());
            let at = when(unrest, dice);
            script.push((at, Act::Hold { kind, name }));
            script.push((at + seconds(dice, 60, 1800), Act::Release));
        }
    }
    if dice.chance(40) {
        // As one of us would who found its own records broken.
        let lock = json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "DisruptionLedger",
            "metadata": {"name": "cluster"},
            "status": {"lock": {
                "id": "0123456789ab", "reason": "a record is broken",
                "since": drawn.start.to_string(),
            }},
        });
        let at = when(unrest, dice);
        script.push((at, Act::ApplyStatus { manifest: lock.to_string() }));
        script.push((at + seconds(dice, 60, 900), Act::Unlock));
    }
}

const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// Whatever would hold the world for ever is taken back: faults end, and what people began they finish.
pub(super) fn healing(script: &[(SignedDuration, Act)]) -> Vec<Act> {
    let finishing = script.iter().filter_map(|(_, act)| match act {
        Act::Pause { .. } => Some(Act::Resume),
        Act::Cordon { node } => Some(Act::Uncordon { node: node.clone() }),
        Act::Hold { .. } => Some(Act::Release),
        Act::Apply { manifest } if manifest.contains("ImageQuarantine") => {
            let (kind, name) = ("imagequarantine".to_owned(), "for-a-while".to_owned());
            Some(Act::Delete { kind, namespace: None, name })
        }
        Act::Publish(_)
        | Act::Move { .. }
        | Act::Put { .. }
        | Act::Deprecate(_)
        | Act::Disable(_)
        | Act::Enable(_)
        | Act::Deregister(_)
        | Act::Unshare(_)
        | Act::Fault(_)
        | Act::Upgrade(_)
        | Act::Resume
        | Act::Unlock
        | Act::Apply { .. }
        | Act::ApplyStatus { .. }
        | Act::ApplyUnchecked { .. }
        | Act::Delete { .. }
        | Act::Uncordon { .. }
        | Act::Untaint { .. }
        | Act::Annotate { .. }
        | Act::Release
        | Act::Run(_) => None,
    });
    // Whoever has locked itself is released by a person who has looked.
    [super::end(), Act::Unlock].into_iter().chain(finishing).collect()
}

fn when(before: SignedDuration, dice: &mut Dice) -> SignedDuration {
    dice.span(SignedDuration::from_secs(5), before)
}

fn seconds(dice: &mut Dice, least: u64, most: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(dice.between(least, most)).unwrap_or(1))
}

/// Most faults are over after a while; some last until all are.
fn lasts(dice: &mut Dice) -> Lasts {
    (!dice.chance(30)).then(|| seconds(dice, LASTS.0, LASTS.1))
}

fn percent(dice: &mut Dice) -> u8 {
    u8::try_from(dice.between(2, 50)).unwrap_or(10)
}

fn whom(dice: &mut Dice) -> Whom {
    if dice.chance(700) { Whom::Leader } else { Whom::Replica(0) }
}

fn moment(dice: &mut Dice) -> Moment {
    if dice.chance(250) { Moment::Now } else { at_a_write(dice) }
}

/// On either side of a write of some kind.
fn at_a_write(dice: &mut Dice) -> Moment {
    let side = dice.pick(&Side::ALL).copied().unwrap_or(Side::AfterSend);
    Moment::At(side, dice.pick(&Writing::ALL).copied())
}

/// Less than what the engine counts on: what lists lack is shown within minutes.
fn stale(whom: Counterpart, dice: &mut Dice) -> Fault {
    Fault::Stale { whom, by: seconds(dice, 5, 180), lasts: lasts(dice) }
}

/// One of the first, or whoever is there then.
fn node(drawn: &Drawn, dice: &mut Dice) -> String {
    let whoever = ["@any", "@successor", "@leaving"];
    match dice.pick(&whoever).filter(|_| dice.chance(700)) {
        Some(word) => (*word).to_owned(),
        None => dice.pick(&drawn.nodes).map_or_else(|| "@any".to_owned(), |it| it.0.clone()),
    }
}

/// Of one kind of object, or of all.
fn kind(dice: &mut Dice) -> Option<Kind> {
    let kinds = [
        Kind::Node,
        Kind::Pod,
        Kind::Claim,
        Kind::Pdb,
        Kind::Pool,
        Kind::Replacement,
        Kind::DisruptionBudget,
        Kind::Policy,
        Kind::Class,
        Kind::Quarantine,
    ];
    dice.pick(&kinds).copied().filter(|_| dice.chance(600))
}
