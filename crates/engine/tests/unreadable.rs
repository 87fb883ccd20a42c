//! What is done about what people wrote and nobody can read, and what are they told?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_core::budget::{ClassRule, DisruptionBudget, Keep, Unreadable};
use nodemolt_core::drift::Drift;
use nodemolt_core::explain::explain;
use nodemolt_core::policy::{LabelSelector, Rule};
use nodemolt_core::seen::{ClassKey, Complaint, Identity, PolicySeen, Subject, View};
use nodemolt_engine::Turn;
use nodemolt_engine::port::{Condition, Status};
use support::{NEW_IMAGE, OLD_IMAGE, POOL, World};

const WHY: &str = "spec.field: nobody understands this";

fn named(view: &mut View, subject: &Subject) {
    let identity = Identity {
        uid: "uid-7".to_owned(),
        generation: 7,
        class: matches!(subject, Subject::Pool(_)).then(|| ClassKey::own(POOL)),
    };
    view.subjects.insert(subject.clone(), identity);
}

fn unreadable(view: &mut View, subject: &Subject) {
    named(view, subject);
    let complaint =
        Complaint { field: "spec.field".to_owned(), message: "nobody understands this".to_owned() };
    view.unreadable.insert(subject.object(), vec![complaint]);
}

/// Two nodes that drift, in a world that was changed before anything was decided.
fn lived(change: impl Fn(&mut View)) -> (World, Turn) {
    let mut world = World::new(2, 2, &[OLD_IMAGE]);
    change(&mut world.cluster.view.borrow_mut());
    for _ in 0..5 {
        world.turn();
        world.pass(1);
    }
    let turn = world.turn();
    (world, turn)
}

/// Whose status, and the condition of that type in it.
fn told(world: &World, of: &str, kind: &str) -> Condition {
    let all = world.cluster.told.borrow();
    let last = all.iter().rev().find_map(|it| {
        let (whose, conditions) = match it {
            Status::Class(it) => (format!("class {}", it.key), &it.conditions),
            Status::Pool { name, conditions, .. } => (format!("pool {name}"), conditions),
            Status::DisruptionBudget { name, conditions, .. } => {
                (format!("budget {name}"), conditions)
            }
            Status::Policy { name, conditions, .. } => (format!("policy {name}"), conditions),
            Status::Unreadable { subject, uid, generation, conditions } => {
                assert_eq!((uid.as_str(), *generation), ("uid-7", 7));
                (format!("unreadable {}", subject.object().name), conditions)
            }
        };
        conditions.iter().find(|it| whose == of && it.kind == kind).cloned()
    });
    last.unwrap_or_else(|| panic!("nothing is told of {of}: {all:#?}"))
}

fn nothing_began(world: &World) {
    let records = world.cluster.records.borrow();
    assert!(records.replacements.is_empty() && records.ledger.grants.is_empty(), "{records:?}");
}

#[test]
fn a_class_that_cannot_be_read_is_not_accepted_and_its_nodes_stay() {
    let class = Subject::Class(ClassKey::own(POOL));
    let (world, turn) = lived(|view| {
        view.classes.clear();
        unreadable(view, &class);
    });
    nothing_began(&world);
    for kind in ["Accepted", "Ready"] {
        let said = told(&world, &format!("unreadable {POOL}"), kind);
        assert_eq!((said.status, said.reason.as_str()), (Some(false), "Unreadable"));
        assert_eq!(said.message, WHY);
    }
    let pool = told(&world, &format!("pool {POOL}"), "Ready");
    assert_eq!((pool.status, pool.reason.as_str()), (Some(false), "NodeClassNotReady"));
    let sentence = format!("EC2NodeClass `{POOL}` cannot be read: {WHY}");
    assert_eq!(turn.picture.warnings(), [sentence.as_str()]);
    for (name, drift) in turn.picture.drifts.iter() {
        assert!(matches!(drift, Drift::Unknown(_)), "{drift:?}");
        let story = explain(&turn.picture.world(), name, world.now).unwrap().to_string();
        assert!(story.contains(&sentence), "{story}");
    }
}

#[test]
fn a_class_that_can_be_read_again_is_accepted() {
    let mut world = World::new(2, 1, &[NEW_IMAGE]);
    let class = world.cluster.view.borrow_mut().classes.remove(&ClassKey::own(POOL)).unwrap();
    unreadable(&mut world.cluster.view.borrow_mut(), &Subject::Class(class.key.clone()));
    world.turn();
    {
        let mut view = world.cluster.view.borrow_mut();
        view.unreadable.clear();
        view.classes.insert(class.key.clone(), class);
    }
    for _ in 0..5 {
        world.pass(1);
        world.turn();
    }
    let said = told(&world, &format!("class {POOL}"), "Accepted");
    assert_eq!(said.status, Some(true));
    let turn = world.turn();
    assert!(
        turn.picture.drifts.values().all(|it| *it == Drift::InSync),
        "{:?}",
        turn.picture.drifts
    );
    assert!(turn.picture.warnings().is_empty());
}

#[test]
fn what_is_not_known_of_a_class_yet_leaves_its_status_as_it_stands() {
    let mut world = World::new(1, 1, &[NEW_IMAGE]);
    let class = |world: &World| {
        world.cluster.told.borrow().iter().find_map(|it| match it {
            Status::Class(class) => Some(class.clone()),
            Status::Pool { .. }
            | Status::DisruptionBudget { .. }
            | Status::Policy { .. }
            | Status::Unreadable { .. } => None,
        })
    };
    // Nobody answers. What the one before us has told stands for two minutes.
    world.turn_alone();
    world.pass(119);
    world.turn_alone();
    assert_eq!(class(&world), None);
    world.pass(1);
    world.turn_alone();
    let told = class(&world).unwrap();
    assert_eq!((told.images, told.subnets, told.security_groups), (None, None, None));
    assert_eq!(told.conditions[0].status, None, "it is not known yet");
}

#[test]
fn a_budget_that_cannot_be_read_is_zero_and_says_so() {
    let budget = Subject::DisruptionBudget("slow".to_owned());
    let in_part = |view: &mut View| {
        named(view, &budget);
        let written = DisruptionBudget {
            name: "slow".to_owned(),
            selectors: vec![std::collections::BTreeMap::new()],
            keep: Err(Unreadable(WHY.to_owned())),
            gates_controller: true,
            gates_people: false,
        };
        view.budgets.insert("slow".to_owned(), written);
    };
    let worlds = [lived(|view| unreadable(view, &budget)), lived(in_part)];
    for (world, turn) in worlds {
        nothing_began(&world);
        let said = told(&world, "budget slow", "Ready");
        assert_eq!((said.status, said.reason.as_str()), (Some(false), "Unreadable"));
        assert_eq!(said.message, format!("it counts as zero: {WHY}"));
        let warnings = turn.picture.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("`slow`"), "{warnings:?}");
        let node = turn.picture.plan.waiting.keys().next().unwrap();
        let story = explain(&turn.picture.world(), node, world.now).unwrap().to_string();
        assert!(story.contains("NodeDisruptionBudget `slow`") && story.contains(WHY), "{story}");
    }
}

#[test]
fn a_budget_that_selects_nothing_says_so_and_holds_nobody() {
    let (world, turn) = lived(|view| {
        named(view, &Subject::DisruptionBudget("slow".to_owned()));
        let written = DisruptionBudget {
            name: "slow".to_owned(),
            selectors: vec![[("team".to_owned(), "nobody".to_owned())].into()],
            keep: Ok(Keep::MaxUnavailable("0".parse().unwrap())),
            gates_controller: true,
            gates_people: false,
        };
        view.budgets.insert("slow".to_owned(), written);
    });
    assert_eq!(world.cluster.records.borrow().replacements.len(), 1);
    let said = told(&world, "budget slow", "Ready");
    assert_eq!((said.status, said.reason.as_str()), (Some(false), "SelectsNothing"));
    assert_eq!(turn.picture.warnings(), ["NodeDisruptionBudget `slow` selects no node"]);
}

#[test]
fn budgets_of_a_pool_that_cannot_be_read_are_zero_and_say_so() {
    let (world, turn) = lived(|view| {
        let pool = view.pools.get_mut(POOL).unwrap();
        pool.budgets = vec![Err(Unreadable(WHY.to_owned()))];
    });
    nothing_began(&world);
    let said = told(&world, &format!("pool {POOL}"), "Accepted");
    assert_eq!((said.status, said.reason.as_str()), (Some(false), "Unreadable"));
    assert_eq!(said.message, format!("its budgets count as zero: {WHY}"));
    let ready = told(&world, &format!("pool {POOL}"), "Ready");
    assert_eq!(ready.status, Some(true), "it can launch");
    assert_eq!(turn.picture.warnings().len(), 1);
}

#[test]
fn a_pool_that_cannot_be_read_lets_none_of_its_nodes_go() {
    let (world, turn) = lived(|view| {
        view.pools.clear();
        unreadable(view, &Subject::Pool(POOL.to_owned()));
        // They would have gone for this, with or without an image to compare with.
        for claim in view.claims.values_mut() {
            claim.upgrade_asked_at = Some(support::start());
        }
    });
    nothing_began(&world);
    let said = told(&world, &format!("unreadable {POOL}"), "Accepted");
    assert_eq!((said.status, said.message.as_str()), (Some(false), WHY));
    let node = turn.picture.plan.waiting.keys().next().unwrap();
    let story = explain(&turn.picture.world(), node, world.now).unwrap().to_string();
    assert!(story.contains(&format!("NodePool `{POOL}`")) && story.contains(WHY), "{story}");
}

#[test]
fn a_pool_of_somebody_else_is_not_written_to() {
    let (world, _) = lived(|view| {
        let theirs = Subject::Pool("theirs".to_owned());
        unreadable(view, &theirs);
        let group = "karpenter.k8s.aws".to_owned();
        let class = ClassKey { group, name: "theirs".to_owned() };
        view.subjects.get_mut(&theirs).unwrap().class = Some(class);
    });
    let told = world.cluster.told.borrow();
    let unreadable = |it: &&Status| matches!(it, Status::Unreadable { .. });
    assert_eq!(told.iter().find(unreadable), None);
}

#[test]
fn a_policy_that_cannot_be_read_lets_nothing_boot_and_nothing_go() {
    let (world, turn) = lived(|view| unreadable(view, &Subject::Policy("rules".to_owned())));
    nothing_began(&world);
    let said = told(&world, "unreadable rules", "Ready");
    assert_eq!((said.status, said.reason.as_str()), (Some(false), "Unreadable"));
    assert!(said.message.starts_with(WHY), "{}", said.message);
    let class = told(&world, &format!("class {POOL}"), "Ready");
    assert!(class.message.contains("ImagePolicy `rules` cannot be read"), "{}", class.message);
    let warnings = turn.picture.warnings();
    assert!(warnings.iter().any(|it| it.contains("`rules` cannot be read")), "{warnings:?}");
}

#[test]
fn a_policy_says_what_of_it_holds() {
    let policy = |name: &str, rollout: Option<ClassRule>| {
        (name.to_owned(), PolicySeen { rule: Rule::named(name), rollout })
    };
    let (world, turn) = lived(|view| {
        let mut odd = ClassRule::of("b");
        odd.windows = Some(Err(Unreadable(WHY.to_owned())));
        let (nobody, mut seen) = policy("d", None);
        let labels = [("team".to_owned(), "nobody".to_owned())].into();
        seen.rule.classes = LabelSelector { labels, expressions: Vec::new() };
        let all = [
            policy("a", Some(ClassRule::of("a"))),
            policy("b", Some(odd)),
            policy("c", None),
            (nobody, seen),
        ];
        for (name, seen) in all {
            named(view, &Subject::Policy(name.clone()));
            view.policies.insert(name, seen);
        }
    });
    let said = |name: &str, kind: &str| {
        let it = told(&world, &format!("policy {name}"), kind);
        (it.status, it.reason, it.message)
    };
    let text = |it: &str| it.to_owned();
    assert_eq!(said("a", "Ready"), (Some(true), text("Ready"), text("")));
    assert_eq!(said("a", "PoliciesOverlap").0, Some(false));
    let zero = format!("it counts as zero: {WHY}");
    assert_eq!(said("b", "Ready"), (Some(false), text("Unreadable"), zero));
    let why = format!("class `{POOL}` follows the rollout of `a`");
    assert_eq!(said("b", "PoliciesOverlap"), (Some(true), text("SeveralPolicies"), why));
    assert_eq!(said("c", "Ready").0, Some(true));
    assert_eq!(said("c", "PoliciesOverlap").0, Some(false), "it says nothing of rollouts");
    let nothing = text("its selector matches no class");
    assert_eq!(said("d", "Ready"), (Some(false), text("SelectsNothing"), nothing));
    // Whoever looks at the fleet is told, too.
    let warnings = turn.picture.warnings();
    let follows = format!("ImagePolicy `b`: class `{POOL}` follows the rollout of `a`");
    for it in [follows.as_str(), "ImagePolicy `d`: its selector matches no class"] {
        assert!(warnings.iter().any(|warning| warning == it), "{it} is none of {warnings:?}");
    }
    assert!(!warnings.iter().any(|it| it.contains("`a`:") || it.contains("`c`:")), "{warnings:?}");
}

/// What nobody can read holds what it held: its node waits for it by name, and the slot is for others.
#[test]
fn a_record_that_cannot_be_read_keeps_its_own_node_and_nobody_elses() {
    let mut world = World::new(2, 2, &[OLD_IMAGE]);
    world.cluster.records.borrow_mut().unreadable =
        [("uid-node-00000".to_owned(), "status.phase: nobody knows it".to_owned())].into();
    // Where the ledger was never there nothing is known of what it held: a person releases that.
    world.turn();
    let id = world.cluster.records.borrow().ledger.lock.clone().unwrap().id;
    world.cluster.records.borrow_mut().ledger.released_lock = Some(id);
    for _ in 0..5 {
        world.turn();
        world.pass(1);
    }
    let begun: Vec<String> = world.cluster.records.borrow().replacements.keys().cloned().collect();
    assert_eq!(begun, ["uid-node-00001"]);
    let turn = world.turn();
    let story = explain(&turn.picture.world(), "node-00000", world.now).unwrap();
    let named = story.causes.iter().any(|it| it.text.contains("uid-node-00000"));
    assert!(named, "{:?}", story.causes);
}

/// Issue 7: as long as a node stayed as it was, what had once kept us from knowing was told for ever.
#[test]
fn why_nothing_is_known_of_a_node_is_what_is_so_now() {
    let mut world = World::new(1, 1, &[NEW_IMAGE]);
    world.settle();
    let because = |world: &mut World| {
        world.pass(1);
        world.turn();
        let turn = world.turn();
        turn.picture.drifts["node-00000"].clone()
    };
    let says = |drift: &Drift, what: &str| {
        let Drift::Unknown(missing) = drift else { panic!("{drift:?}") };
        assert!(missing.to_string().contains(what), "{missing}");
    };
    let pool = world.cluster.view.borrow_mut().pools.remove(POOL).unwrap();
    says(&because(&mut world), &format!("NodePool `{POOL}`"));
    let class = world.cluster.view.borrow_mut().classes.remove(&ClassKey::own(POOL)).unwrap();
    says(&because(&mut world), &format!("there is no EC2NodeClass `{POOL}`"));
    world.cluster.view.borrow_mut().classes.insert(class.key.clone(), class);
    world.cluster.view.borrow_mut().pools.insert(POOL.to_owned(), pool);
    for _ in 0..5 {
        because(&mut world);
    }
    assert_eq!(because(&mut world), Drift::InSync);
}
