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
use crate::faults::{Counterpart, DOWN, Fault, Lasts, Moment, Whom};

/// Whatever lasts longer than this in unrest would leave no time to see what comes of it.
const LASTS: (u64, u64) = (30, 600);

/// The fewest faults of a life.
const FAULTS_MIN: usize = 3;

type Draws = fn(&Drawn, &mut Dice) -> Option<Fault>;

/// Every kind of fault.
const KINDS: [Draws; 19] = [
    |_, dice| Some(Fault::Crash { whom: whom(dice), when: moment(dice), down: DOWN }),
    |_, dice| {
        Some(Fault::Crash { whom: Whom::Leader, when: moment(dice), down: seconds(dice, 5, 300) })
    },
    |_, dice| Some(Fault::Freeze { whom: Whom::Leader, lasts: seconds(dice, 10, 120) }),
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
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Ec2, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Ssm, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Throttle { whom: Counterpart::Kubernetes, lasts: lasts(dice) }),
    |_, dice| Some(Fault::Conflicts { percent: percent(dice), lasts: lasts(dice) }),
    |drawn, dice| {
        let instance_type = dice.pick(&drawn.types).cloned().filter(|_| dice.chance(500));
        Some(Fault::NoCapacity { instance_type, zone: None, lasts: lasts(dice) })
    },
    |_, dice| Some(Fault::NeverJoins { lasts: lasts(dice) }),
    |_, dice| Some(Fault::NeverReady { lasts: lasts(dice) }),
    |drawn, dice| Some(Fault::NodeDies { node: dice.pick(&drawn.nodes)?.0.clone() }),
    |drawn, dice| {
        Some(Fault::NodeFlaps { node: dice.pick(&drawn.nodes)?.0.clone(), lasts: lasts(dice) })
    },
    |drawn, dice| {
        let (namespace, name) = dice.pick(&drawn.pdbs)?.clone();
        Some(Fault::PdbNever { namespace, name, lasts: lasts(dice) })
    },
    |_, dice| {
        let by = seconds(dice, 1, 90);
        Some(Fault::WatchLag { kind: kind(dice), by, lasts: lasts(dice) })
    },
    |_, dice| Some(Fault::WatchDrop { kind: kind(dice) }),
];

pub(super) fn draw(
    drawn: &Drawn,
    unrest: SignedDuration,
    dice: &mut Dice,
) -> Vec<(SignedDuration, Act)> {
    let mut script = faults(drawn, unrest, &mut dice.fork("faults"));
    script.extend(people(drawn, unrest, &mut dice.fork("people")));
    for image in &drawn.to_publish {
        let at = when(SignedDuration::from_mins(12), &mut dice.fork("publisher"));
        if let Ok(act) = format!("publish {image}").parse::<Act>() {
            script.push((at, act));
        }
    }
    script.sort_by_key(|(at, _)| *at);
    script
}

fn faults(drawn: &Drawn, unrest: SignedDuration, dice: &mut Dice) -> Vec<(SignedDuration, Act)> {
    let mut kinds: Vec<Draws> = KINDS.to_vec();
    dice.shuffle(&mut kinds);
    kinds.truncate(usize::try_from(dice.between(2, 7)).unwrap_or(3));
    let mut script = Vec::new();
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
        let target = Target::Node(node(dice).0);
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
    if dice.chance(150) {
        let (kind, namespace, name) = ("nodeclaim".to_owned(), None, node(dice).1);
        script.push((when(unrest, dice), Act::Delete { kind, namespace, name }));
    }
    if dice.chance(60) {
        let (kind, namespace, name) = ("node".to_owned(), None, node(dice).0);
        script.push((when(unrest, dice), Act::Delete { kind, namespace, name }));
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
        let quarantine = json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "ImageQuarantine",
            "metadata": {"name": "for-a-while"},
            "spec": {"version": "v20261101", "reason": "looks bad"},
        });
        let at = when(unrest, dice);
        script.push((at, Act::Apply { manifest: quarantine.to_string() }));
        let (kind, name) = ("imagequarantine".to_owned(), "for-a-while".to_owned());
        script.push((at + seconds(dice, 300, 1200), Act::Delete { kind, namespace: None, name }));
    }
    script
}

/// Whatever would hold the world for ever is taken back: faults end, and what people began they finish.
pub(super) fn healing(script: &[(SignedDuration, Act)]) -> Vec<Act> {
    let finishing = script.iter().filter_map(|(_, act)| match act {
        Act::Pause { .. } => Some(Act::Resume),
        Act::Cordon { node } => Some(Act::Uncordon { node: node.clone() }),
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
        | Act::Delete { .. }
        | Act::Uncordon { .. }
        | Act::Run(_) => None,
    });
    std::iter::once(super::end()).chain(finishing).collect()
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
    let moments = [Moment::Now, Moment::BeforeSend, Moment::AfterSend, Moment::AfterAnswer];
    dice.pick(&moments).copied().unwrap_or(Moment::Now)
}

/// Of one kind of object, or of all.
fn kind(dice: &mut Dice) -> Option<Kind> {
    let kinds = [Kind::Node, Kind::Pod, Kind::Claim, Kind::Pdb, Kind::Pool, Kind::Replacement];
    dice.pick(&kinds).copied().filter(|_| dice.chance(600))
}
