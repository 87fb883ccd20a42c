//! What would a thousand classes ask for?
//!
//! A third follow aliases, a quarter names, the others tags, ids, their own parameters, or several of
//! these. Whom a class matches does not depend on the size of the catalog; how many, does.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_core::ask::{Age, Alias, AliasVersion, Ask, Owner, Term};
use nodemolt_core::image::{ImageId, NamePattern};
use nodemolt_core::lookup::Minor;
use nodemolt_core::policy::{
    AllowedImages, DeprecatedImages, Exception, LabelSelector, Policy, Quarantine, Rule, Which,
};
use nodemolt_core::resolve::Pool;
use nodemolt_fit::{Family, Operator, Written, label};

use super::dice::Dice;
use super::world::{CHANNELS, OWN, PARTNERS, TEAMS, World, team};

pub(crate) const CLASSES: usize = 1000;

/// A class, its cluster's version, what its nodes run, and its pools.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) ask: Ask,
    pub(crate) kubernetes: Minor,
    pub(crate) in_use: BTreeSet<ImageId>,
    pub(crate) pools: Vec<Pool>,
}

pub(crate) fn classes(world: &World) -> Vec<Class> {
    let mut dice = Dice::new(1000);
    (0..CLASSES).map(|number| class(world, number, &mut dice)).collect()
}

fn class(world: &World, number: usize, dice: &mut Dice) -> Class {
    let kubernetes = Minor { major: 1, minor: 29 + u16::try_from(dice.below(7)).unwrap_or(0) };
    let whose = team(dice.below(TEAMS));
    let (family, terms) = match dice.below(100) {
        0..35 => {
            let alias = alias(world, kubernetes, dice);
            (alias.family, vec![Term::of_alias(alias)])
        }
        35..60 => (Family::Custom, vec![by_name(&whose, kubernetes, dice)]),
        60..75 => (Family::Custom, vec![by_tags(&whose, kubernetes, dice)]),
        75..83 => (Family::Al2023, vec![by_id(world, dice)]),
        83..93 => (Family::Al2023, vec![by_parameter(world, dice)]),
        _ => (Family::Al2023, several(world, &whose, kubernetes, dice)),
    };
    let minimum_age = match dice.below(10) {
        0..5 => Age::NONE,
        5..8 => Age::from_hours(7 * 24),
        _ => Age::from_hours(14 * 24),
    };
    let labels = [
        ("team".to_owned(), whose.clone()),
        ("tier".to_owned(), (*dice.pick(&["prod", "prod", "test"])).to_owned()),
    ];
    let mut in_use = BTreeSet::new();
    if dice.percent(50) {
        in_use.insert(dice.pick(&world.golden).clone());
        let (_, line) = dice.pick(&world.lines);
        in_use.extend(line.last().map(|(id, _)| id.clone()));
    }
    let pools = if dice.percent(20) { pools(&whose, dice) } else { Vec::new() };
    let class = format!("{whose}-{number:04}");
    let ask = Ask { class, labels: labels.into(), family, terms, minimum_age };
    Class { ask, kubernetes, in_use, pools }
}

fn alias(world: &World, kubernetes: Minor, dice: &mut Dice) -> Alias {
    let family = match dice.below(10) {
        6..8 => Family::Bottlerocket,
        8 if kubernetes.minor <= 32 => Family::Al2,
        0..=8 => Family::Al2023,
        _ => *dice.pick(&[Family::Windows2019, Family::Windows2022]),
    };
    let windows = family.windows_build().is_some();
    let version = match dice.below(10) {
        0..5 => AliasVersion::Latest { back: 0 },
        5..7 => AliasVersion::Latest { back: 1 },
        _ if windows => AliasVersion::Latest { back: 0 },
        _ => {
            let line = world
                .lines
                .iter()
                .find(|(it, _)| it.family == family && it.kubernetes == kubernetes)
                .map_or(&[][..], |(_, line)| line);
            // Nobody pins what is years old.
            let back = dice.below(8);
            let version = line.iter().rev().nth(back).or(line.first());
            AliasVersion::Pinned(version.map_or_else(|| "v1".to_owned(), |(_, it)| it.clone()))
        }
    };
    Alias { family, version }
}

fn by_name(whose: &str, kubernetes: Minor, dice: &mut Dice) -> Term {
    let cpu = *dice.pick(&["x86_64", "arm64"]);
    let pattern = match dice.below(100) {
        0..40 => format!("{whose}-golden-*"),
        40..65 => format!("{whose}-golden-al2023-{cpu}-{kubernetes}-*"),
        65..80 => format!("{whose}-golden-al2023-*-{kubernetes}-v2026*"),
        80..92 => format!("{whose}-golden-al2023-*-1.3?-*"),
        // The whole catalog has to be looked at.
        92..96 => format!("*{whose}*-{kubernetes}-*"),
        _ => format!("amazon-eks-node-al2023-{cpu}-standard-{kubernetes}-*"),
    };
    let owner = match dice.below(10) {
        0..5 => None,
        5..8 => Some(Owner::Own),
        8 => PARTNERS[0].parse().ok(),
        _ => OWN.parse().ok(),
    };
    Term { name: Some(NamePattern::new(&pattern)), owner, ..Term::default() }
}

fn by_tags(whose: &str, kubernetes: Minor, dice: &mut Dice) -> Term {
    let mut tags: BTreeMap<String, Option<NamePattern>> = BTreeMap::new();
    tags.insert("team".to_owned(), Some(NamePattern::new(whose)));
    if dice.percent(60) {
        let channel: &str = dice.pick::<&str>(&CHANNELS);
        tags.insert("channel".to_owned(), Some(NamePattern::new(channel)));
    }
    if dice.percent(50) {
        tags.insert("kubernetes".to_owned(), Some(NamePattern::new(&kubernetes.to_string())));
    }
    if dice.percent(20) {
        tags.insert("cost-center".to_owned(), None);
    }
    Term { tags, ..Term::default() }
}

fn by_id(world: &World, dice: &mut Dice) -> Term {
    Term { id: Some(dice.pick(&world.golden).clone()), ..Term::default() }
}

fn by_parameter(world: &World, dice: &mut Dice) -> Term {
    let name = dice.pick(&world.parameters);
    Term { parameter: name.parse().ok(), ..Term::default() }
}

fn several(world: &World, whose: &str, kubernetes: Minor, dice: &mut Dice) -> Vec<Term> {
    let requires = |key: &str, operator, values: &[&str]| Written {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|it| (*it).to_owned()).collect(),
        min_values: None,
    };
    let mut plain = by_name(whose, kubernetes, dice);
    plain.requirements.push(requires(label::GPU_COUNT, Operator::DoesNotExist, &[]));
    let mut large = by_tags(whose, kubernetes, dice);
    large.requirements.push(requires(label::GPU_COUNT, Operator::Exists, &[]));
    large.requirements.push(requires(label::CPU, Operator::Gt, &["15"]));
    let mut terms = vec![plain, large];
    if dice.percent(50) {
        let mut alias = Term::of_alias(alias(world, kubernetes, dice));
        alias.requirements.push(requires(label::CATEGORY, Operator::In, &["c", "m", "r", "g"]));
        terms.push(alias);
    }
    terms
}

fn pools(whose: &str, dice: &mut Dice) -> Vec<Pool> {
    let pool = |name: &str, key: &str, operator, values: &[&str]| Pool {
        name: format!("{whose}-{name}"),
        labels: [("team".to_owned(), whose.to_owned())].into(),
        requirements: vec![Written {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|it| (*it).to_owned()).collect(),
            min_values: None,
        }],
    };
    let mut pools = vec![pool("general", label::CATEGORY, Operator::In, &["c", "m", "r"])];
    if dice.percent(50) {
        pools.push(pool("arm", label::ARCH, Operator::In, &["arm64"]));
    }
    pools
}

/// One floor for production, one list of owners for all, one list of names for some; and what the last
/// incidents left behind.
pub(crate) fn policy(world: &World) -> Policy {
    let tier = |tier: &str| LabelSelector {
        labels: [("tier".to_owned(), tier.to_owned())].into(),
        ..LabelSelector::default()
    };
    let day = |days: i64| world.now + jiff::SignedDuration::from_hours(24 * days);
    let mut prod = Rule::named("prod");
    prod.classes = tier("prod");
    prod.minimum_age = Age::from_hours(3 * 24);
    prod.deprecated = Some(DeprecatedImages::Forbidden);
    prod.exceptions = vec![Exception {
        image: Which::Version(NamePattern::new("v202611*")),
        reason: "fixes CVE-2026-0001".to_owned(),
        until: day(7),
    }];
    let mut everybody = Rule::named("everybody");
    let mut owners: BTreeSet<Owner> = [Owner::Own, Owner::Group("amazon".to_owned())].into();
    owners.extend(PARTNERS[0].parse::<Owner>());
    everybody.owners = Some(owners);
    let mut test = Rule::named("test");
    test.classes = tier("test");
    let names = ["*-golden-*", "amazon-eks-*", "bottlerocket-*", "Windows_Server-*"];
    let names = names.into_iter().map(NamePattern::new).collect();
    test.allowed = Some(AllowedImages { ids: BTreeSet::new(), names });

    let (_, line) = &world.lines[world.lines.len() / 2];
    let bad = [
        Which::Name(NamePattern::new("payments-0?-golden-*-v202610*")),
        Which::Version(NamePattern::new("1.7.*")),
        Which::Id(line[line.len() - 1].0.clone()),
        Which::Id(world.golden[0].clone()),
    ];
    let quarantines = bad
        .into_iter()
        .enumerate()
        .map(|(at, image)| Quarantine {
            name: format!("incident-{at}"),
            image,
            reason: "nodes did not join".to_owned(),
            evidence: Vec::new(),
            expires_at: (at % 2 == 0).then(|| day(30)),
        })
        .collect();
    Policy { rules: vec![prod, everybody, test], quarantines }
}
