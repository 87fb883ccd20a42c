//! What follows from what we see?
//!
//! `view × records × memory × now → decision`, without a single call
//!
//! The stages are the story of a node, in order: which images are there, what each class should run, what
//! runs, who should go, who may go, where the pods would go, and the next step of those that are going.
//! Whatever is decided here is recorded by the turn before anything is done about it.

pub(crate) mod along;
pub(crate) mod classes;
pub(crate) mod coming;
pub(crate) mod fleet;
pub(crate) mod going;
pub(crate) mod homes;
pub(crate) mod limits;
pub(crate) mod placing;
pub(crate) mod pools;
pub(crate) mod questions;
pub(crate) mod roll;
pub(crate) mod starting;
pub(crate) mod successors;
pub(crate) mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Grants, Member, Standing};
use nodemolt_core::drain::{AllPdbs, homeless, with_machine};
use nodemolt_core::explain::Doubted;
use nodemolt_core::plan::Start;
use nodemolt_core::replace::Cause;
use nodemolt_core::seen::{Claim, Class, ClassKey, Kind, OWN_CLASS_GROUP, View};
use nodemolt_core::wanted::{NoImage, Purpose};
use nodemolt_fit::label;

use self::roll::Roll;
use crate::Config;
use crate::act::{Errand, Intent, Question};
use crate::claims::{self, ClaimAct};
use crate::counted::Selected;
use crate::freshness::{GRANTING, unheard};
use crate::memory::{Memory, after};
use crate::picture::{Picture, unread_claims};
use crate::port::{NewMemory, Records, Status};
use crate::record::Recorded;
use crate::status;

/// While no watch tells of something that budgets rest on, it is looked again so often.
const HEARD_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// What one part of a turn has found out for another.
const LOOK_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// All that a turn looks at.
pub(crate) struct Sight<'a> {
    pub(crate) config: &'a Config,
    pub(crate) view: &'a View,
    pub(crate) records: &'a Records,
    pub(crate) now: Timestamp,
    /// What all claims come to.
    pub(crate) roll: Arc<Roll>,
    /// Claims that take over from a node whose replacement is open, and the name of that.
    pub(crate) successors: BTreeMap<&'a str, &'a str>,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(
        memory: &mut Memory,
        config: &'a Config,
        view: &'a View,
        records: &'a Records,
        now: Timestamp,
    ) -> Self {
        // Nobody else has it: what looked at it before is over.
        let mut roll = std::mem::take(&mut memory.roll);
        match Arc::get_mut(&mut roll) {
            Some(roll) => roll.look(view),
            None => roll = Arc::new(Roll::of(view)),
        }
        memory.roll = Arc::clone(&roll);
        let open = records.replacements.iter().filter(|(_, it)| !it.replacement.phase.ended());
        let successors = open
            .flat_map(|(name, it)| {
                it.replacement.successors.iter().map(move |it| (it.claim.as_str(), name.as_str()))
            })
            .collect();
        Self { config, view, records, now, roll, successors }
    }

    /// The claim that a node belongs to.
    pub(crate) fn claim_of(&self, node: &str) -> Option<&'a Claim> {
        self.view.claims.get(self.roll.claim_of(node)?)
    }

    /// The claim of that name and no later one.
    pub(crate) fn claim(&self, name: &str, uid: &str) -> Option<&'a Claim> {
        self.view.claims.get(name).filter(|it| it.uid == uid)
    }

    /// Whether we are the ones that move nodes of this class, whether it is there or not.
    pub(crate) fn ours(&self, class: &ClassKey) -> bool {
        class.group == OWN_CLASS_GROUP || self.config.groups.contains(&class.group)
    }

    /// Whether we look after the node of this claim: by its class, or because we have asked for its machine.
    pub(crate) fn looks_after(&self, claim: &Claim) -> bool {
        self.ours(&claim.class) || claim.attempt.is_some()
    }

    /// Classes that are ours, as far as they can be read.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&'a ClassKey, &'a Class)> {
        self.view.classes.iter().filter(|(key, _)| self.ours(key))
    }

    /// Why a claim's class or pool cannot be read, if one of them cannot.
    pub(crate) fn hidden(&self, claim: &Claim) -> Option<NoImage> {
        let class = self.unread(Kind::Class, &claim.class.to_string());
        class.or_else(|| self.unread(Kind::Pool, claim.pool.as_ref()?))
    }

    /// Why an object of this kind cannot be read, if one cannot.
    pub(crate) fn unreadable(&self, kind: Kind) -> Option<NoImage> {
        let object = self.view.unreadable.keys().find(|it| it.kind == kind)?;
        self.unread(kind, &object.name)
    }

    fn unread(&self, kind: Kind, name: &str) -> Option<NoImage> {
        let because = self.view.why_unreadable(kind, name)?;
        Some(NoImage { because, object: Some((kind.as_str(), name.to_owned())), until: None })
    }
}

/// What is to be recorded, in this order, and then done.
pub(crate) struct Decision {
    pub(crate) questions: Vec<Question>,
    /// Before an image is used.
    pub(crate) remember: Vec<NewMemory>,
    pub(crate) going: Vec<going::Going>,
    pub(crate) starts: Vec<starting::Begun>,
    /// Nodes for pods that we moved and that found no place.
    pub(crate) rooms: Vec<(Intent, Errand)>,
    /// Successors that came after their replacement had ended, and cordons that it left.
    pub(crate) abandoned: Vec<(Intent, Errand)>,
    /// The life of claims.
    pub(crate) claims: Vec<ClaimAct>,
    /// Ended long ago.
    pub(crate) forget: Vec<Recorded>,
    pub(crate) statuses: Vec<Status>,
    /// How long ended grants are kept in the ledger.
    pub(crate) cooldown_max: SignedDuration,
    pub(crate) picture: Picture,
    /// When something is due that no watch tells.
    pub(crate) wake_at: Option<Timestamp>,
}

pub(crate) fn decide(memory: &mut Memory, sight: &Sight<'_>) -> Decision {
    let now = sight.now;
    let mut wake = Wake::new(now);

    // Which images are there, and what should each class run?
    memory.images.recall(&sight.view.images, &sight.config.region, now);
    let asked = classes::resolve_all(memory, sight);
    wake.at(asked.look_again_at);
    let questions = questions::due(memory, sight, &asked.queries, &mut wake);
    let remember = classes::to_remember(memory, sight);

    // What runs, and who should go?
    let mut readings = std::mem::take(&mut memory.readings);
    readings.read(memory, sight);
    let wished = wishes::wish(memory, sight, &mut readings);
    wake.at(wished.next_at);

    // How many at once, and when?
    let limits = limits::limits(sight);
    let grants = grants(memory, sight);
    let going_away = readings.going.clone();
    let gone = gone(sight);
    readings.members += u64::from(readings.fleet().gone != gone);
    let fleet = readings.fleet_mut();
    fleet.gone = gone;
    fleet.pools = pools::states(sight);
    pools::tell_unable(memory, sight, &limits, fleet);
    let mut selected = std::mem::take(&mut memory.selected);
    selected.look(sight.view);
    fleet.pdbs = pdbs(sight, &mut selected, &going_away, &[]);
    if let Some(spread) = &mut fleet.spread {
        spread.select(&fleet.pdbs);
    }
    let moved = homes::moved(sight);
    fleet.homeless = homeless(&moved, now);
    fleet.pending = homes::pending(sight, &moved);
    fleet.unsettled = homes::unsettled(sight);
    fleet.missing = homes::missing(sight);
    fleet.pace.clone_from(memory.pace.phases());

    // The next step of those that are going; then who starts beside them. Placements of all who leave are
    // found together, so that no two count on the same room.
    let mut table = placing::Table::new(sight, &mut readings);
    let going = going::go_on(memory, sight, &mut table, &limits, &mut wake);
    let mut planned = placing::plan_all(memory, sight, &mut table, &grants, &limits);
    // Whose budgets nobody had a reason to count before.
    if !planned.plan.start.is_empty() {
        let counted = pdbs(sight, &mut selected, &going_away, &planned.plan.start);
        if counted != table.readings.fleet().pdbs {
            table.readings.fleet_mut().pdbs = counted;
            planned = placing::plan_all(memory, sight, &mut table, &grants, &limits);
        }
    }
    memory.selected = selected;
    wake.at(planned.look_on_at);
    let starts = starting::begin(memory, sight, &table, &planned, &limits);
    let mut rooms = homes::make_room(memory, sight, &mut table, &moved, &mut wake);
    // Here join, each as a wish about a node and through the same rooms and the same plan:
    // room for pods that are pending for other reasons (in `homes`), nodes that are empty
    // (`budget::Act::RemoveEmpty`), and nodes whose work fewer could do (`budget::Act::Consolidate`).
    drop(table);
    rooms.tell(readings.fleet_mut());

    // And the life of each claim, whoever made it.
    let lives = lives(memory, sight, &going);
    wake.at(lives.wake_at);
    // Whoever counts on those learns of it in its next turn.
    if lives.nowhere.iter().any(|it| !memory.claims.nowhere.contains(it)) {
        wake.at(Some(after(now, LOOK_AGAIN_AFTER)));
    }
    memory.claims.nowhere.clone_from(&lives.nowhere);

    for it in planned.plan.waiting.values() {
        wake.at(it.first.ends_at());
    }
    // Nobody says that a watch tells again, or that a clock was put right.
    let stands = grants.unheard.is_some() || grants.apart.is_some();
    if stands && !planned.plan.waiting.is_empty() {
        wake.at(Some(after(now, HEARD_AGAIN_AFTER)));
    }
    let cooldown_max = limits.classes.values().map(|it| it.cooldown).max().unwrap_or_default();
    let mut picture = Picture::new(sight, &readings, planned.plan, planned.rooms, &going, limits);
    picture.apart = memory.apart;
    picture.classes = classes::told(memory, sight);
    let unread = unread_claims(sight.view);
    picture.doubted = Doubted { machines: lives.orphans.kept, missing: lives.missing, unread };
    let stray = going::stray_cordons(sight, &readings.cordoned);
    memory.readings = readings;
    let statuses = status::statuses(memory, sight, &picture);
    Decision {
        questions,
        remember,
        going,
        starts,
        abandoned: [going::abandoned(sight), stray].concat(),
        rooms: rooms.made,
        claims: lives.acts,
        forget: starting::to_forget(memory, sight),
        statuses,
        cooldown_max,
        picture,
        wake_at: wake.earliest,
    }
}

/// Budgets of pods. Those of whom somebody is about to leave, or may have ended, are counted once more.
fn pdbs(
    sight: &Sight<'_>,
    selected: &mut Selected,
    going: &BTreeSet<String>,
    starts: &[Start],
) -> AllPdbs {
    let view = sight.view;
    let open = sight.records.replacements.values().filter(|it| !it.replacement.phase.ended());
    let open = open.map(|it| it.replacement.old.node.as_str());
    let starts = starts.iter().map(|it| it.node.as_str());
    let some_gone = !going.is_empty();
    let going = going.iter().map(String::as_str);
    selected.pdbs(view, open.chain(starts).chain(going), some_gone, sight.now)
}

/// What is to be done about claims: machines asked for, joined, ended.
fn lives(memory: &mut Memory, sight: &Sight<'_>, going: &[going::Going]) -> claims::Decided {
    let here = claims::Here::of(sight.config);
    let mut loud = std::mem::take(&mut memory.loud);
    let lists = [memory.machines.last(), memory.machines.before()];
    loud.look(sight.view, &sight.roll, &here, lists);
    let claims = loud.claims(sight.view).into_iter().map(|it| it.1);
    memory.claims.look_at(sight.view, claims, sight.now);
    let networks = sight.classes().filter_map(|(_, class)| {
        let network = memory.networks.get(&class.network)?.value()?;
        Some((class.key.clone(), network.as_ref()))
    });
    let open = sight.records.replacements.values().filter(|it| !it.replacement.phase.ended());
    let open = open.map(|it| (it.name.clone(), purpose(it))).collect();
    let known = claims::Known {
        here: &here,
        offered: memory.offered.value().map(AsRef::as_ref),
        networks: networks.collect(),
        machines: memory.machines.last().map(|(it, at)| (it.as_ref(), at)),
        machines_before: memory.machines.before().map(|(it, at)| (it.as_ref(), at)),
        wanted: classes::for_launch(memory, sight),
        open,
        counted_on: sight.successors.keys().map(|it| (*it).to_owned()).collect(),
        lingering: lingering(sight, going),
        granted: granted(sight),
        memory: &memory.claims,
    };
    let decided = claims::decide_loud(sight.view, &known, &mut loud, sight.now);
    memory.loud = loud;
    memory.claims.withhold(&decided.withheld, sight.now);
    decided
}

/// By the UID of each claim whose node may be disturbed: since when.
fn granted(sight: &Sight<'_>) -> BTreeMap<String, Timestamp> {
    sight.records.ledger.grants.iter().map(|(uid, it)| (uid.clone(), it.since)).collect()
}

/// By the UID of each claim that is deleted: how many pods that nobody evicts may not end with its machine now. While
/// nobody empties it nobody has asked for them, so all of them.
fn lingering(sight: &Sight<'_>, going: &[going::Going]) -> BTreeMap<String, usize> {
    let asked: BTreeMap<&str, usize> =
        going.iter().map(|it| (it.recorded.name.as_str(), it.lingering)).collect();
    let deleted = sight.roll.unsettled(sight.view).filter(|it| it.deleting_since.is_some());
    let lingering = deleted.map(|it| {
        let all = || {
            let on = claims::own_name(sight.view, it).map(|node| sight.view.pods.on(node));
            on.into_iter().flatten().filter(|it| with_machine(&it.drain, sight.now)).count()
        };
        (it.uid.clone(), asked.get(it.uid.as_str()).copied().unwrap_or_else(all))
    });
    lingering.filter(|(_, pods)| *pods > 0).collect()
}

/// What a replacement's successors are for.
fn purpose(record: &Recorded) -> Purpose {
    match record.replacement.cause {
        Cause::Drift => Purpose::Wave,
        Cause::Expiry | Cause::Asked | Cause::Deleted | Cause::Interrupted => Purpose::Other,
    }
}

/// The ledger, as budgets look at it.
fn grants(memory: &Memory, sight: &Sight<'_>) -> Grants {
    let ledger = &sight.records.ledger;
    let lost = crate::ledger::lost(sight.records);
    let open = ledger.grants.values().cloned().chain(lost).map(|it| {
        let grant = nodemolt_core::budget::Grant { kind: it.kind, since: it.since };
        (it.node, grant)
    });
    Grants {
        open: open.collect(),
        closed: ledger.closed.clone(),
        paused: ledger.pause.as_ref().map(|it| match &it.by {
            Some(by) => format!("{by}: {}", it.reason),
            None => it.reason.clone(),
        }),
        locked: ledger.locked().map(|it| it.reason.clone()),
        unheard: unheard(sight.view, &GRANTING, sight.now),
        apart: memory.apart,
    }
}

/// Nodes that have gone and whose grant stands: with what is known of their pool.
fn gone(sight: &Sight<'_>) -> BTreeMap<String, Member> {
    let granted = sight.records.ledger.grants.values().cloned();
    let granted = granted.chain(crate::ledger::lost(sight.records));
    let gone = granted.filter(|it| !sight.view.nodes.contains_key(&it.node)).map(|it| {
        let member = Member {
            taken_from: it.taken_from.clone(),
            ..gone_from(sight, it.pool.as_ref(), it.cpu_millis)
        };
        (it.node.clone(), member)
    });
    gone.collect()
}

/// A node that is gone, as budgets look at it by what is known of its pool.
fn gone_from(sight: &Sight<'_>, pool: Option<&String>, cpu_millis: Option<u64>) -> Member {
    let seen = pool.and_then(|it| sight.view.pools.get(it));
    let mut labels = seen.map(|it| it.template.labels.clone()).unwrap_or_default();
    labels.extend(pool.map(|it| (label::NODEPOOL.to_owned(), it.clone())));
    Member {
        pool: pool.cloned(),
        class: seen.map(|it| it.class.to_string()),
        labels,
        // What nobody knows the size of is taken for all there is.
        cpu_millis: cpu_millis.unwrap_or(u64::MAX),
        standing: Standing::Outside,
        surge: false,
        taken_from: BTreeSet::new(),
    }
}

/// The earliest time at which something is due.
pub(crate) struct Wake {
    now: Timestamp,
    earliest: Option<Timestamp>,
}

impl Wake {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { now, earliest: None }
    }

    /// What is due already is due by another turn only.
    pub(crate) fn at(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at.filter(|it| *it > self.now) {
            self.earliest = Some(self.earliest.map_or(at, |it| it.min(at)));
        }
    }
}
