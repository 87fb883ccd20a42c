//! What would a large organisation's account see?
//!
//! `number of images × seed → catalog`. A fifth are releases of Amazon's, of every family and minor,
//! some years of them. The rest are golden images of many teams, their copies, images that other
//! accounts share, and a few that only look like releases. Every share is fixed, so a catalog of ten
//! times the size has ten times the history and as many teams.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{
    Answered, Appeared, Catalog, Outcome, Parameter, ParameterValue, Query, Sighting,
};
use nodemolt_core::image::{Architecture, BootMode, Date, Image, ImageId, State};
use nodemolt_core::lookup::{self, Flavour, Minor, Processor, Track};
use nodemolt_fit::Family;

use super::dice::Dice;

pub(crate) const OWN: &str = "111122223333";
pub(crate) const PARTNERS: [&str; 3] = ["444455556666", "777788889999", "123456789012"];
const EKS: &str = "602401143452";
const BOTTLEROCKET: &str = "092701018921";
const WINDOWS: &str = "801119661308";
/// Anybody can name an image as EKS does.
const STRANGER: &str = "999900001111";

const FAMILIES: [Family; 6] = [
    Family::Al2,
    Family::Al2023,
    Family::Bottlerocket,
    Family::Windows2019,
    Family::Windows2022,
    Family::Windows2025,
];

/// Minors that EKS has had in the years of the catalog.
pub(crate) const MINORS: std::ops::RangeInclusive<u16> = 25..=35;

pub(crate) const TEAMS: usize = 240;
pub(crate) const CHANNELS: [&str; 4] = ["stable", "stable", "canary", "dev"];

/// A catalog, and what whoever writes classes has to know of it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) catalog: Catalog,
    pub(crate) now: Timestamp,
    /// Own golden images, for terms with ids and for what is in use.
    pub(crate) golden: Vec<ImageId>,
    /// Custom parameters.
    pub(crate) parameters: Vec<String>,
    /// Releases by flavour, oldest first, with their versions.
    pub(crate) lines: Vec<(Flavour, Vec<(ImageId, String)>)>,
}

pub(crate) fn team(number: usize) -> String {
    const WORDS: [&str; 12] = [
        "payments", "search", "ledger", "media", "identity", "billing", "checkout", "ads", "maps",
        "ml", "edge", "data",
    ];
    format!("{}-{:02}", WORDS[number % WORDS.len()], number / WORDS.len())
}

pub(crate) fn world(images: usize) -> World {
    let now: Timestamp = "2026-11-15T00:00:00Z".parse().expect("a fixed moment");
    let mut world = World {
        catalog: Catalog::default(),
        now,
        golden: Vec::new(),
        parameters: Vec::new(),
        lines: Vec::new(),
    };
    let mut dice = Dice::new(20_261_115);
    releases(&mut world, images / 5, &mut dice);
    golden(&mut world, images, &mut dice);
    parameters(&mut world, &mut dice);
    answers(&mut world);
    assert_eq!(world.catalog.images.len(), images, "ids of 64 bits do not collide");
    world
}

fn new_id(dice: &mut Dice) -> ImageId {
    format!("ami-0{:016x}", dice.roll()).parse().expect("17 digits")
}

fn add(world: &mut World, image: Image, dice: &mut Dice) {
    let mut sighting = Sighting::of(image);
    sighting.first_seen = sighting.image.created.at();
    sighting.last_seen = Some(world.now);
    if dice.percent(30) {
        sighting.appeared = Appeared::Later;
    }
    world.catalog.images.insert(sighting.image.id.clone(), sighting);
}

/// Between some days ago and so many more, at any second.
fn days_ago(now: Timestamp, days: usize, dice: &mut Dice) -> Timestamp {
    let second = dice.below(24 * 3600);
    let ago = i64::try_from(days * 24 * 3600 + second).unwrap_or(0);
    now - SignedDuration::from_secs(ago)
}

fn releases(world: &mut World, number: usize, dice: &mut Dice) {
    let flavours: Vec<Flavour> = MINORS
        .map(|minor| Minor { major: 1, minor })
        .flat_map(|minor| FAMILIES.into_iter().flat_map(move |it| lookup::flavours(it, minor)))
        .filter(|it| it.family != Family::Al2 || it.kubernetes.minor <= 32)
        .filter(|it| it.family != Family::Windows2025 || it.kubernetes.minor >= 35)
        .collect();
    for (at, flavour) in flavours.iter().enumerate() {
        let each = number / flavours.len() + usize::from(at < number % flavours.len());
        let mut line = Vec::new();
        for back in (0..each).rev() {
            // Three years of them, however many there are.
            let created = days_ago(world.now, 2 + back * 1095 / each, dice);
            let (name, version) = release_name(*flavour, created, each - back);
            let mut image = Image::new(new_id(dice), name);
            image.owner = publisher(flavour.family).parse().ok();
            image.owner_alias = Some("amazon".to_owned());
            image.created = Date::At(created);
            // Two years after creation, as EC2 does with public images; some are taken back early.
            let kept = if dice.percent(2) { 20 } else { 730 };
            image.deprecated = Date::At(created + SignedDuration::from_hours(kept * 24));
            describe(&mut image, flavour.processor);
            image.description = Some(format!("EKS-optimized Kubernetes node, {}", image.name));
            if back < 5 {
                let path = flavour.pinned(&version).unwrap_or_else(|| flavour.pointer());
                image.public_parameters.insert(path.clone());
                if path != flavour.pointer() {
                    world.catalog.parameters.insert(
                        path.clone(),
                        Parameter::new(path, value(1, created, image.id.as_str())),
                    );
                }
            }
            line.push((image.id.clone(), version));
            add(world, image, dice);
        }
        point(world, *flavour, &line, dice);
        world.lines.push((*flavour, line));
    }
}

fn publisher(family: Family) -> &'static str {
    match family {
        Family::Bottlerocket => BOTTLEROCKET,
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => WINDOWS,
        Family::Al2 | Family::Al2023 | Family::Custom => EKS,
    }
}

fn release_name(flavour: Flavour, created: Timestamp, number: usize) -> (String, String) {
    let day = created.strftime("%Y%m%d").to_string();
    let minor = flavour.kubernetes;
    let cpu = match flavour.processor {
        Processor::Amd64 => "x86_64",
        Processor::Arm64 => "arm64",
    };
    match flavour.family {
        Family::Bottlerocket => {
            let nvidia = if flavour.track == Track::Nvidia { "-nvidia" } else { "" };
            let cpu = if cpu == "arm64" { "aarch64" } else { cpu };
            let version = format!("1.{number}.0");
            let name = format!("bottlerocket-aws-k8s-{minor}{nvidia}-{cpu}-v{version}-5ed15786");
            (name, version)
        }
        Family::Al2 => {
            let infix = match (flavour.track, flavour.processor) {
                (Track::Gpu, _) => "gpu-",
                (_, Processor::Arm64) => "arm64-",
                _ => "",
            };
            (format!("amazon-eks-{infix}node-{minor}-v{day}"), format!("v{day}"))
        }
        Family::Al2023 => {
            let track = match flavour.track {
                Track::Nvidia => "nvidia",
                Track::Neuron => "neuron",
                Track::Standard | Track::Gpu => "standard",
            };
            (format!("amazon-eks-node-al2023-{cpu}-{track}-{minor}-v{day}"), format!("v{day}"))
        }
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 | Family::Custom => {
            let alias = flavour.family.alias_name().unwrap_or_default();
            let year = alias.trim_start_matches("windows");
            let version = created.strftime("%Y.%m.%d").to_string();
            let name =
                format!("Windows_Server-{year}-English-Core-EKS_Optimized-{minor}-{version}");
            (name, version)
        }
    }
}

fn describe(image: &mut Image, processor: Processor) {
    (image.architecture, image.boot_mode) = match processor {
        Processor::Amd64 => (Architecture::X86_64, Some(BootMode::UefiPreferred)),
        Processor::Arm64 => (Architecture::Arm64, Some(BootMode::Uefi)),
    };
    image.virtualization = Some("hvm".to_owned());
    image.root_device = Some("ebs".to_owned());
    image.ena = Some(true);
    image.public = Some(true);
}

fn value(version: u64, modified: Timestamp, text: &str) -> ParameterValue {
    ParameterValue {
        version: Some(version),
        modified: Date::At(modified),
        text: text.to_owned(),
        labels: Vec::new(),
    }
}

/// The pointer of a flavour: to its newest release, or for some still to the one before; of one in ten
/// the whole history is known, in which it once moved back.
fn point(world: &mut World, flavour: Flavour, line: &[(ImageId, String)], dice: &mut Dice) {
    let path = flavour.pointer();
    let Some(newest) = line.len().checked_sub(1) else { return };
    let at = |place: usize| {
        let days = i64::try_from(1 + newest - place).unwrap_or(0);
        world.now - SignedDuration::from_hours(24 * days)
    };
    let stays = newest.saturating_sub(usize::from(dice.percent(20)));
    let version = 1 + u64::try_from(stays).unwrap_or(0);
    let mut parameter =
        Parameter::new(path.clone(), value(2 * version, at(stays), line[stays].0.as_str()));
    if dice.percent(10) {
        for (place, (id, _)) in line[..stays].iter().enumerate() {
            let version = 2 + 2 * u64::try_from(place).unwrap_or(0);
            let moved = Parameter::new(path.clone(), value(version, at(place), id.as_str()));
            parameter.learn(moved);
            if place > 1 && place == stays / 2 {
                let back = value(version + 1, at(place), line[place - 1].0.as_str());
                parameter.learn(Parameter::new(path.clone(), back));
            }
        }
    }
    world.catalog.parameters.insert(path, parameter);
}

fn golden(world: &mut World, until: usize, dice: &mut Dice) {
    let mut number = 0;
    while world.catalog.images.len() < until {
        number += 1;
        let team = team(dice.below(TEAMS));
        let minor = MINORS.start() + u16::try_from(dice.below(MINORS.len())).unwrap_or(0);
        let processor = if dice.percent(70) { Processor::Amd64 } else { Processor::Arm64 };
        let cpu = if processor == Processor::Amd64 { "x86_64" } else { "arm64" };
        let created = {
            let days = dice.below(900);
            days_ago(world.now, days, dice)
        };
        let day = created.strftime("%Y%m%d").to_string();
        let name = format!("{team}-golden-al2023-{cpu}-1.{minor}-v{day}-{number:06}");
        let mut image = Image::new(new_id(dice), name);
        describe(&mut image, processor);
        image.public = Some(false);
        image.created = Date::At(created);
        image.owner = OWN.parse().ok();
        let channel = *dice.pick(&CHANNELS);
        for (key, value) in [
            ("team", team.as_str()),
            ("channel", channel),
            ("os", "al2023"),
            ("arch", cpu),
            ("kubernetes", &format!("1.{minor}")),
            ("cost-center", &format!("cc-{:03}", dice.below(90))),
            ("commit", &format!("{:012x}", dice.roll() >> 16)),
        ] {
            image.tags.insert(key.to_owned(), value.to_owned());
        }
        match dice.below(100) {
            // A copy from another region keeps the name, and says of what it is one.
            0..12 => image.source = world.golden.last().cloned(),
            12..20 => image.owner = dice.pick(&PARTNERS).parse().ok(),
            // Tags are seen only by the account that wrote them.
            20..23 => {
                image.owner = STRANGER.parse().ok();
                image.name = format!("amazon-eks-node-al2023-{cpu}-standard-1.{minor}-v{day}");
                image.tags.clear();
            }
            23..33 => {
                let deprecated = created + SignedDuration::from_hours(180 * 24);
                image.deprecated = Date::At(deprecated);
            }
            33 => image.created = Date::Missing,
            34 => image.created = Date::Unreadable("yesterday".to_owned()),
            35 => image.state = State::Disabled,
            36 => image.allowed = Some(false),
            37 => image.name.push_str("-rc1"),
            38 => image.tpm = Some("v2.0".to_owned()),
            39 => image.boot_mode = Some(BootMode::LegacyBios),
            40 => image.architecture = Architecture::Other("i386".to_owned()),
            _ => {}
        }
        if image.owner.as_ref().is_some_and(|it| it.as_str() == OWN) {
            world.golden.push(image.id.clone());
        }
        add(world, image, dice);
    }
}

/// Two parameters per team: what is new and what is stable; a third of them with requirements.
fn parameters(world: &mut World, dice: &mut Dice) {
    for number in 0..TEAMS {
        for channel in ["stable", "canary"] {
            let name = format!("/{}/amis/{channel}", team(number));
            let mut parameter: Option<Parameter> = None;
            for version in 1..=u64::try_from(1 + dice.below(4)).unwrap_or(1) {
                let id = dice.pick(&world.golden).clone();
                let text = match dice.below(6) {
                    0 => format!(
                        r#"{{"id":"{id}","requirements":[{{"key":"karpenter.k8s.aws/instance-gpu-count","operator":"DoesNotExist"}}]}}"#
                    ),
                    1 => format!(
                        r#"{{"id":"{id}","requirements":[{{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m","r"]}},{{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["5"]}}]}}"#
                    ),
                    2 if version > 1 && dice.percent(20) => "{\"id\":".to_owned(),
                    _ => id.to_string(),
                };
                let modified = world.now
                    - SignedDuration::from_hours(24 * (10 - i64::try_from(version).unwrap_or(0)));
                let written = Parameter::new(name.clone(), value(version, modified, &text));
                match &mut parameter {
                    None => parameter = Some(written),
                    Some(known) => {
                        known.learn(written);
                    }
                }
            }
            world.catalog.parameters.extend(parameter.map(|it| (name.clone(), it)));
            world.parameters.push(name);
        }
    }
}

/// What was asked to learn all this. One question was throttled the last time.
fn answers(world: &mut World) {
    let complete = Some(world.now - SignedDuration::from_hours(24));
    let mut asked: Vec<String> =
        ["owner=self", "owner=amazon,name=amazon-eks-*,include-deprecated", "path=/aws/service"]
            .map(str::to_owned)
            .to_vec();
    asked.extend(PARTNERS.map(|it| format!("owner={it}")));
    asked.extend((0..8).map(|it| format!("path=/{}/amis", team(it))));
    for (at, text) in asked.into_iter().enumerate() {
        let query: Query = text.parse().expect("a query as people write it");
        let outcome = if at == 8 { Outcome::Throttled } else { Outcome::Complete };
        let last = Some((outcome, world.now));
        let answered = Answered { first_complete: complete, last_complete: complete, last };
        world.catalog.answers.insert(query, answered);
    }
    let queries: BTreeSet<String> = ["owner=self".to_owned()].into();
    for sighting in world.catalog.images.values_mut() {
        sighting.seen_by.clone_from(&queries);
    }
}
