//! The laws of resolving, on worlds that nobody thought of.
//!
//! Oracles here look at the world and never at how it was resolved.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::BTreeSet;

use jiff::Timestamp;
use nodemolt_core::ask::{Age, Alias, AliasVersion, Owner, ParameterName, Term};
use nodemolt_core::catalog::{Appeared, ParameterValue, Query, read_value};
use nodemolt_core::fit::{Requirements, label};
use nodemolt_core::image::{Date, Image, ImageId, NamePattern};
use nodemolt_core::lookup::{self, Flavour};
use nodemolt_core::policy::{AgeFrom, PinnedIds, Rule, Which};
use nodemolt_core::resolve::{Boots, Chosen, Refusal, TypesAsked};
use proptest::prelude::*;
use proptest::sample::select;
use support::World;

// ---- worlds ----

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(words).prop_map(str::to_owned)
}

/// Nothing, more often than not.
fn perhaps(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 2 => word(words)]
}

fn short() -> impl Strategy<Value = String> {
    (1..16_u8).prop_map(|it| format!("{it:02x}"))
}

fn image() -> impl Strategy<Value = String> {
    let called = word(&[
        "al2023-v20260730",
        "al2023-v20260722",
        "al2023-v20260715",
        "al2023-v20260708",
        "al2023-nvidia-v20260722",
        "al2023-nvidia-v20260715",
        "al2023-neuron-v20260722",
        "br-1.52.0",
        "br-1.51.0",
        "br-nvidia-1.52.0",
        "golden-1.35-a",
        "golden-1.35-b",
        "golden-1.36",
        "golden-rc1",
        "silver-1.35",
    ]);
    let owner = word(&[
        "self",
        "amazon",
        "amazon",
        "amazon",
        "lookalike",
        "foreign",
        "unknown",
        "bottlerocket",
    ]);
    let processor = word(&["x86_64", "x86_64", "x86_64", "arm64", "i386"]);
    let age = word(&[
        "1d",
        "2d",
        "6d",
        "7d",
        "8d",
        "13d",
        "20d",
        "20d",
        "60d",
        "95d",
        "400d",
        "undated",
        "unreadable",
        "+1d",
    ]);
    let life = perhaps(&[
        "deprecated=1d",
        "deprecated=1d",
        "deprecated=1d",
        "deprecated=90d",
        "deprecated=+3d",
        "deprecated=unreadable",
        "state=disabled",
        "state=pending",
        "disallowed",
        "unlisted=1d",
        "gone=1d",
        "appeared=3d",
        "appeared=9d",
        "there=1d",
        "source=01",
        "source=02",
    ]);
    let hardware = perhaps(&[
        "boot=uefi",
        "boot=legacy-bios",
        "boot=uefi-preferred",
        "tpm",
        "noena",
        "virt=paravirtual",
        "root=instance-store",
        "only=m5.*",
        "not=m5.*",
    ]);
    let tag = perhaps(&[
        "tag:stage=prod",
        "tag:stage=test",
        "tag:kubernetes_version=1.36",
        "tag:team=web",
    ]);
    let at = (1..200_u8).prop_map(|it| format!("{it:02x}"));
    (prop_oneof![3 => short(), 1 => at], called, owner, processor, age, life, hardware, tag)
        .prop_map(|(id, called, owner, processor, age, life, hardware, tag)| {
            format!("image {id} {called} {owner} {processor} {age} {life} {hardware} {tag}")
        })
}

fn pointer() -> impl Strategy<Value = String> {
    let flavour = word(&[
        "al2023",
        "al2023",
        "al2023/arm64",
        "al2023/nvidia",
        "al2023/neuron",
        "br",
        "br/nvidia",
    ]);
    let values = proptest::collection::vec((short(), 0..30_u8), 1..5);
    (flavour, values).prop_map(|(flavour, mut values)| {
        values.sort_by_key(|(_, age)| std::cmp::Reverse(*age));
        let values: Vec<String> = values.iter().map(|(id, age)| format!("{id}@{age}d")).collect();
        format!("pointer {flavour} {}", values.join(" "))
    })
}

fn parameter() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        3 => short(),
        1 => word(&["nonsense", "{", "ami-", "{\"id\": 1}"]),
        2 => short().prop_map(|it| format!(
            r#"{{"id": "${it}", "requirements": [{{"key": "example.com/driver", "operator": "In", "values": ["550"]}}]}}"#
        )),
        1 => short().prop_map(|it| format!(
            r#"{{"id": "${it}", "requirements": [{{"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["amd64"]}}]}}"#
        )),
    ];
    (word(&["/golden", "/other"]), 0..30_u8, value)
        .prop_map(|(name, age, value)| format!("param {name} {age}d = {value}"))
}

fn term() -> impl Strategy<Value = String> {
    let way = prop_oneof![
        5 => word(&[
            "alias=al2023@latest",
            "alias=al2023@latest",
            "alias=al2023@latest~1",
            "alias=al2023@latest~2",
            "alias=al2023@v20260722",
            "alias=bottlerocket@latest",
            "ssm=/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id",
        ]),
        3 => word(&["ssm=/golden", "ssm=/other", "ssm=/golden:1"]),
        6 => word(&["name=*", "name=golden-*", "name=*1.35*", "name=silver-1.35", "tag:stage=*", "tag:stage=prod"]),
        2 => short().prop_map(|it| format!("id={it}")),
    ];
    let more = perhaps(&["owner=self", "owner=amazon", "owner=666666666666", "tag:team=*"]);
    let requirement = || {
        perhaps(&[
            "req:aws/gpu-count=Exists",
            "req:aws/gpu-count=DoesNotExist",
            "req:aws/gpu-count=Gt:1",
            "req:aws/cpu=Lt:8",
            "req:arch=In:arm64",
            "req:arch=NotIn:arm64",
            "req:example.com/driver=In:550,570",
            "req:example.com/driver=NotIn:550",
            "req:example.com/driver=In:550",
            "req:example.com/driver=In:570",
            "req:example.com/fips=Exists",
            "req:example.com/licence=In:db",
        ])
    };
    (way, more, requirement(), requirement()).prop_map(|(way, more, first, second)| {
        // An alias is alone in its term; tags in it would be refused at the door.
        let more = if way.starts_with("alias") { String::new() } else { more };
        format!("term {way} {more} {first} {second}")
    })
}

fn rule() -> impl Strategy<Value = String> {
    let parts = (
        perhaps(&["owners=self,amazon", "owners=self", "owners=", "owners=602401143452"]),
        perhaps(&["min=7d", "min=2d", "min=14d"]),
        perhaps(&["from=creation", "from=first-seen"]),
        perhaps(&["ids=exempt", "ids=held"]),
        perhaps(&["deprecated=forbidden", "deprecated=last"]),
        perhaps(&["allow=golden-*", "allow=*", "allow=id:01", "for=team=web"]),
        prop_oneof![
            2 => Just(String::new()),
            1 => (short(), word(&["+3d", "1d"])).prop_map(|(it, until)| format!("except=id:{it}@{until}")),
            1 => word(&["except=name:golden-*@+3d", "except=version:v20260730@+3d"]),
        ],
    );
    (word(&["p", "q", "r"]), parts).prop_map(|(name, parts)| {
        let (owners, min, from, ids, deprecated, allow, except) = parts;
        format!("policy {name} {owners} {min} {from} {ids} {deprecated} {allow} {except}")
    })
}

fn quarantine() -> impl Strategy<Value = String> {
    let what = prop_oneof![
        short().prop_map(|it| format!("id:{it}")),
        word(&["name:golden-*", "version:v20260722", "version:20260715", "version:1.52.0"]),
    ];
    (word(&["k", "l", "m"]), what, perhaps(&["until=+2d", "until=1d"]))
        .prop_map(|(name, what, until)| format!("quarantine {name} {what} {until}"))
}

fn pool() -> impl Strategy<Value = String> {
    let words = perhaps(&[
        "example.com/driver=550",
        "req:example.com/driver=In:550,570",
        "req:arch=In:arm64",
        "req:aws/cpu=Gt:3",
    ]);
    (word(&["one", "two"]), words).prop_map(|(name, words)| format!("pool {name} {words}"))
}

/// Wild worlds find what nobody thought of; plain ones are full of near misses.
fn world() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![2 => wild(), 1 => plain()]
}

/// One's own images of one kind, of which most may boot.
fn plain() -> impl Strategy<Value = Vec<String>> {
    use proptest::collection::vec;
    let image = (
        word(&["1d", "2d", "6d", "8d", "20d"]),
        perhaps(&["deprecated=1d", "deprecated=1d", "appeared=1d", "source=01", "source=02"]),
    );
    let term = (
        word(&["name=*", "name=golden-*"]),
        perhaps(&[
            "req:example.com/driver=In:550",
            "req:example.com/driver=In:570",
            "req:example.com/fips=Exists",
            "req:example.com/licence=In:db",
        ]),
    );
    let policies = (
        perhaps(&["policy p min=3d except=name:golden-*@+3d", "policy p except=id:01@+3d"]),
        perhaps(&["policy q min=2d", "policy q min=14d", "policy q from=creation"]),
    );
    (vec(image, 0..6), vec(term, 1..4), vec(1..6_u8, 0..4), policies).prop_map(
        |(images, terms, in_use, policies)| {
            let mut lines = vec!["show requirements".to_owned(), "min 7d".to_owned()];
            lines.extend([policies.0, policies.1]);
            lines.extend(in_use.iter().map(|it| format!("in-use {it:02x}")));
            for (at, (age, flag)) in images.iter().enumerate() {
                let at = at + 1;
                lines.push(format!(
                    "image {at:02x} golden-1.35-{} self x86_64 {age} {flag}",
                    at % 3
                ));
            }
            lines.extend(terms.iter().map(|(way, more)| format!("term {way} {more}")));
            lines
        },
    )
}

/// Each kind of line in any number.
fn wild() -> impl Strategy<Value = Vec<String>> {
    use proptest::collection::vec;
    let rest = (
        vec(rule(), 0..3),
        vec(quarantine(), 0..3),
        vec(pool(), 0..3),
        proptest::option::of(vec(short(), 0..9)),
        word(&["min 0h", "min 7d", "min 7d", "min 1w3d12h"]),
        word(&["kubernetes 1.35", "kubernetes 1.35", "kubernetes none", "kubernetes 1.34"]),
        word(&["account 111122223333", "account 111122223333", "account none"]),
        word(&["", "types m5.large g5.xlarge m7g.large g4ad.xlarge t2.micro", "label team=web"]),
    );
    (vec(image(), 0..40), vec(pointer(), 0..5), vec(parameter(), 0..4), vec(term(), 0..5), rest)
        .prop_map(|(images, pointers, parameters, terms, rest)| {
            let (rules, quarantines, pools, in_use, min, kubernetes, account, more) = rest;
            let mut lines = vec!["show requirements".to_owned(), min, kubernetes, account, more];
            // Names of objects are unique in a cluster.
            let named = |lines: Vec<String>| {
                let mut seen = BTreeSet::new();
                lines.into_iter().filter(move |it| {
                    seen.insert(it.split_whitespace().nth(1).unwrap_or_default().to_owned())
                })
            };
            lines.extend(named(rules));
            lines.extend(named(quarantines));
            lines.extend(named(pools));
            lines.extend(named(images));
            lines.extend(in_use.map(|it| format!("in-use {}", it.join(" "))));
            lines.extend(pointers);
            lines.extend(parameters);
            lines.extend(terms);
            lines
        })
}

fn read(lines: &[String]) -> World {
    World::read(&lines.join("\n"))
}

// ---- oracles ----

/// By which an image ages: along its sources, as long as each is older than its copy.
fn dated(world: &World, image: &Image) -> Option<Timestamp> {
    let mut oldest = image.created.at()?;
    let mut at = image;
    let mut steps = 0;
    while let Some(source) = at.source.as_ref().and_then(|it| world.catalog.images.get(it)) {
        match source.image.created {
            Date::At(created) if created <= oldest && steps < 20 => oldest = created,
            Date::At(_) | Date::Missing | Date::Unreadable(_) => break,
        }
        at = &source.image;
        steps += 1;
    }
    Some(oldest)
}

fn rules(world: &World) -> impl Iterator<Item = &Rule> {
    world.policy.rules.iter().filter(|rule| {
        rule.classes.labels.iter().all(|(key, value)| world.ask.labels.get(key) == Some(value))
    })
}

fn is_meant(which: &Which, image: &Image) -> bool {
    match which {
        Which::Id(id) => *id == image.id,
        Which::Name(pattern) => pattern.matches(&image.name),
        // All versions in these worlds are plain. Names say `v` before the last number that is one.
        Which::Version(pattern) => {
            let bare = pattern.as_str().trim_start_matches('v');
            let words: Vec<&str> = image.name.split('-').collect();
            let numbered = |it: &&&str| {
                it.starts_with('v') && it.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
            };
            let version = words.iter().rev().find(numbered).or(words.last());
            version.is_some_and(|it| it.trim_start_matches('v') == bare)
        }
    }
}

fn old_enough(world: &World, image: &Image, by_id: bool) -> bool {
    let excepted = |rule: &Rule| {
        rule.exceptions.iter().any(|it| it.until > world.now && is_meant(&it.image, image))
    };
    let wish = if rules(world).any(excepted) { Age::NONE } else { world.ask.minimum_age };
    let floor = rules(world)
        .filter(|it| !excepted(it))
        .map(|it| it.minimum_age)
        .chain([wish])
        .max()
        .unwrap();
    let exempt = rules(world).any(|it| it.pinned_ids == Some(PinnedIds::ExemptFromAge))
        && !rules(world).any(|it| it.pinned_ids == Some(PinnedIds::HeldByAge));
    if floor.none() || (by_id && exempt) {
        return true;
    }
    let creation_alone = rules(world).any(|it| it.age_from == Some(AgeFrom::Creation))
        && !rules(world).any(|it| it.age_from == Some(AgeFrom::CreationOrFirstSeen));
    let sighting = &world.catalog.images[&image.id];
    let Some(mut from) = dated(world, image) else { return false };
    if sighting.appeared == Appeared::Later && !creation_alone {
        from = from.max(sighting.first_seen.unwrap());
    }
    from <= world.now && world.now.duration_since(from) >= floor.duration()
}

fn owned(owner: &Owner, image: &Image, world: &World) -> bool {
    match owner.to_string().as_str() {
        "self" => image.owner.is_some() && image.owner == world.account,
        group @ ("amazon" | "aws-marketplace") => image.owner_alias.as_deref() == Some(group),
        account => image.owner.as_ref().is_some_and(|it| it.as_str() == account),
    }
}

fn term_takes_owner(term: &Term, image: &Image, world: &World) -> bool {
    match (&term.owner, &term.name) {
        (Some(owner), _) => owned(owner, image, world),
        (None, Some(_)) => {
            ["self", "amazon"].iter().any(|it| owned(&it.parse().unwrap(), image, world))
        }
        (None, None) => true,
    }
}

/// What a name, a tag or an id finds; what an alias finds at least.
fn surely_matched(world: &World, term: &Term) -> (BTreeSet<ImageId>, bool) {
    let all = world.catalog.images.values().map(|it| &it.image);
    if let Some(alias) = &term.alias {
        let follows = matches!(alias.version, AliasVersion::Latest { .. });
        let Some(minor) = world.kubernetes.filter(|_| follows) else {
            return (BTreeSet::new(), false);
        };
        let published: Vec<Flavour> = lookup::flavours(alias.family, minor).collect();
        let releases =
            all.filter(|it| lookup::release_of(it).is_some_and(|(it, _)| published.contains(&it)));
        return (releases.map(|it| it.id.clone()).collect(), false);
    }
    if term.parameter.is_some() {
        return (BTreeSet::new(), false);
    }
    let found = all.filter(|image| {
        term.id.as_ref().is_none_or(|it| *it == image.id)
            && term.name.as_ref().is_none_or(|it| it.matches(&image.name))
            && term.tags.iter().all(|(key, value)| match (image.tags.get(key), value) {
                (Some(_), None) => true,
                (Some(have), Some(want)) => want.matches(have),
                (None, _) => false,
            })
    });
    (found.map(|it| it.id.clone()).collect(), true)
}

fn image_of<'a>(world: &'a World, chosen: &Chosen) -> &'a Image {
    &world.catalog.images[&chosen.id].image
}

/// Moves everything whose order means nothing.
fn shuffled(lines: &[String], seed: usize) -> Vec<String> {
    let free = |line: &String| {
        ["image", "policy", "quarantine", "pool", "in-use"].iter().any(|it| line.starts_with(it))
    };
    let (mut moved, fixed): (Vec<String>, Vec<String>) = lines.iter().cloned().partition(free);
    if !moved.is_empty() {
        let by = seed % moved.len();
        moved.rotate_left(by);
        moved.reverse();
    }
    fixed.into_iter().chain(moved).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, ..ProptestConfig::default() })]

    #[test]
    fn every_matching_image_is_chosen_or_refused_once(lines in world()) {
        let world = read(&lines);
        let resolution = world.resolve();
        let chosen: BTreeSet<ImageId> = resolution.chosen.iter().map(|it| it.id.clone()).collect();
        let refused: BTreeSet<ImageId> = resolution.refused.keys().cloned().collect();
        prop_assert!(chosen.is_disjoint(&refused), "{:?} {:?}", chosen, refused);
        let mut told = BTreeSet::new();
        prop_assert_eq!(resolution.terms.len(), world.ask.terms.len());
        for (term, report) in world.ask.terms.iter().zip(&resolution.terms) {
            let ids: BTreeSet<ImageId> = report.verdicts.iter().map(|(id, _)| id.clone()).collect();
            prop_assert_eq!(ids.len(), report.verdicts.len(), "a term speaks once of an image");
            let (sure, exactly) = surely_matched(&world, term);
            prop_assert!(sure.is_subset(&ids), "{}: {:?} not all in {:?}", term, sure, ids);
            prop_assert!(!exactly || sure == ids, "{}: {:?} is not {:?}", term, sure, ids);
            prop_assert!(!ids.is_empty() || !report.problems.is_empty(), "nothing found, nothing said");
            told.extend(ids);
        }
        let answered: BTreeSet<ImageId> = chosen.union(&refused).cloned().collect();
        prop_assert_eq!(answered, told);
    }

    #[test]
    fn order_and_earlier_words_change_nothing(
        lines in world(),
        seed in any::<usize>(),
        junk in proptest::collection::vec(word(&[
            "example.com/driver", "550", "570", "amd64", "arm64", "nvidia", "aws", "0", "linux", "zzz", "kubernetes.io/zzz", "karpenter.sh/nodepool", "one", "two",
        ]), 0..12),
    ) {
        let world = read(&lines);
        let other = read(&shuffled(&lines, seed));
        for it in &junk {
            other.machines.vocabulary.key(it);
            other.machines.vocabulary.value(it);
        }
        prop_assert_eq!(world.answer(), other.answer());
        prop_assert_eq!(world.answer(), world.answer(), "deciding twice decides the same");
        prop_assert_eq!(support::verdicts(&world.resolve()), support::verdicts(&other.resolve()));
    }

    #[test]
    fn no_image_below_the_minimum_age_is_chosen_save_one_in_use(lines in world()) {
        let world = read(&lines);
        for chosen in world.resolve().chosen {
            let image = image_of(&world, &chosen);
            let by_id = chosen.terms.iter().any(|it| world.ask.terms[*it].id.is_some());
            let ripe = old_enough(&world, image, by_id);
            prop_assert!(ripe || world.in_use.contains(&image.id), "{} is too young", image.id);
            prop_assert!(ripe || chosen.only_in_use);
        }
    }

    #[test]
    fn no_image_of_a_wrong_owner_is_chosen(lines in world()) {
        let world = read(&lines);
        for chosen in world.resolve().chosen {
            let image = image_of(&world, &chosen);
            for owners in rules(&world).filter_map(|it| it.owners.as_ref()) {
                prop_assert!(owners.iter().any(|it| owned(it, image, &world)), "{}", image.id);
            }
            let taken = chosen.terms.iter().any(|it| term_takes_owner(&world.ask.terms[*it], image, &world));
            prop_assert!(taken, "{} is of no owner that a term takes", image.id);
        }
    }

    /// Whoever looks like a release and is chosen as one belongs to an account that a public parameter
    /// of the family has named.
    #[test]
    fn no_look_alike_is_chosen_by_an_alias(lines in world()) {
        let world = read(&lines);
        for chosen in world.resolve().chosen {
            let mut aliases =
                chosen.terms.iter().filter_map(|it| world.ask.terms[*it].alias.as_ref());
            let Some(alias) = aliases.next_back().filter(|_| chosen.terms.len() == 1) else { continue };
            let owner = image_of(&world, &chosen).owner.clone();
            let named = world.catalog.parameters.values().any(|it| {
                lookup::read_path(&it.name).is_some_and(|(it, _)| it.family == alias.family)
                    && it.values().filter_map(ParameterValue::image).any(|it| {
                        world.catalog.images.get(&it).is_some_and(|it| it.image.owner == owner)
                    })
            });
            prop_assert!(named && owner.is_some(), "{}", chosen.id);
        }
    }

    #[test]
    fn nothing_that_may_not_boot_is_chosen(lines in world()) {
        let world = read(&lines);
        for chosen in world.resolve().chosen {
            let image = image_of(&world, &chosen);
            let sighting = &world.catalog.images[&image.id];
            for quarantine in &world.policy.quarantines {
                let over = quarantine.expires_at.is_some_and(|it| it <= world.now);
                prop_assert!(over || !is_meant(&quarantine.image, image), "{} is quarantined", image.id);
            }
            for rule in rules(&world) {
                if let Some(allowed) = &rule.allowed {
                    let named = allowed.names.iter().any(|it| it.matches(&image.name));
                    prop_assert!(named || allowed.ids.contains(&image.id));
                }
                let forbids = rule.deprecated == Some(nodemolt_core::policy::DeprecatedImages::Forbidden);
                prop_assert!(!forbids || !chosen.deprecated);
            }
            prop_assert!(image.allowed != Some(false));
            prop_assert_eq!(image.state.as_str(), "available");
            prop_assert_eq!(&sighting.presence, &nodemolt_core::catalog::Presence::Listed);
            if let (Some(kubelet), Some(server)) = (lookup::kubelet_of(image), world.kubernetes) {
                prop_assert!(kubelet <= server);
            }
        }
    }

    /// A term or a parameter narrows what the image itself requires, key by key.
    #[test]
    fn requirements_never_widen(lines in world()) {
        let world = read(&lines);
        let vocabulary = &world.machines.vocabulary;
        for chosen in world.resolve().chosen {
            let image = image_of(&world, &chosen);
            let processor = image.architecture.kubernetes().unwrap();
            let arch = chosen.requirements.get(vocabulary.key(label::ARCH)).unwrap();
            prop_assert!(arch.admits(vocabulary.value(processor)));
            prop_assert_eq!(arch.listed().map(<[_]>::len), Some(1));
            let aliases: Vec<_> =
                chosen.terms.iter().filter_map(|it| world.ask.terms[*it].alias.as_ref()).collect();
            let Some(alias) = aliases.first().filter(|_| aliases.len() == chosen.terms.len()) else {
                continue;
            };
            // The pointer says which flavour it is, or else its name does.
            let named = |flavour: Flavour| {
                let pointer = world.catalog.parameters.get(&flavour.pointer());
                let pointed = pointer.is_some_and(|it| {
                    it.values().filter_map(ParameterValue::image).any(|it| it == image.id)
                });
                pointed || lookup::release_of(image).is_some_and(|(it, _)| it == flavour)
            };
            let within = lookup::flavours(alias.family, world.kubernetes.unwrap())
                .filter(|it| named(*it))
                .flat_map(|it| it.variants().iter().map(move |variant| it.requirements(*variant)))
                .any(|it| {
                    let inferred = Requirements::read(&it, vocabulary);
                    inferred.iter().all(|(key, inferred)| {
                        let it = chosen.requirements.get(key);
                        it.is_some_and(|it| it.within(inferred) && !it.nothing())
                    })
                });
            prop_assert!(within, "{} as {}", image.id, support::written(&chosen.requirements.written(vocabulary)));
        }
    }

    #[test]
    fn what_only_its_use_exempts_supersedes_nobody(lines in world()) {
        let world = read(&lines);
        let resolution = world.resolve();
        for chosen in resolution.chosen.iter().filter(|it| it.only_in_use) {
            prop_assert!(world.in_use.contains(&chosen.id));
            for (id, refused) in &resolution.refused {
                let by = Refusal::Superseded { by: chosen.id.clone() };
                prop_assert!(refused.refusal != by, "{} may boot, and gave way to {}", id, chosen.id);
            }
            // Nor does a type try it before what may boot anyway.
            let at = resolution.chosen.iter().position(|it| it == chosen).unwrap();
            prop_assert!(resolution.chosen[at..].iter().all(|it| it.only_in_use));
        }
    }

    #[test]
    fn whoever_is_superseded_is_worse_than_who_took_its_place(lines in world()) {
        let world = read(&lines);
        let resolution = world.resolve();
        for (id, refused) in &resolution.refused {
            let Refusal::Superseded { by } = &refused.refusal else { continue };
            let winner = resolution.chosen.iter().find(|it| it.id == *by);
            prop_assert!(winner.is_some(), "{} gave way to {}, which is not chosen", id, by);
            let order = |image: &Image| {
                let when = dated(&world, image).filter(|it| *it <= world.now);
                let deprecated = image.deprecated_by(world.now);
                (!deprecated, when, image.name.clone(), std::cmp::Reverse(image.id.clone()))
            };
            let image = |id: &ImageId| &world.catalog.images[id].image;
            prop_assert!(order(image(id)) < order(image(by)), "{} and {}", id, by);
        }
    }

    #[test]
    fn every_type_asked_for_is_answered_once_in_every_pool(lines in world()) {
        let world = read(&lines);
        let resolution = world.resolve();
        let mut seen = BTreeSet::new();
        for answer in &resolution.types {
            prop_assert!(seen.insert((&answer.pool, &answer.instance_type)));
            match answer.boots {
                Boots::Image(at) => prop_assert!(at < resolution.chosen.len()),
                Boots::HeldBack(at) => prop_assert!(at < resolution.held.len()),
                Boots::Nothing { ref nearest, lost } => {
                    prop_assert!(lost.is_none_or(|at| at < resolution.lost.len()));
                    prop_assert_eq!(nearest.is_none(), resolution.chosen.is_empty());
                    prop_assert!(nearest.as_ref().is_none_or(|(_, misses)| !misses.is_empty()));
                }
            }
        }
        if let (TypesAsked::Named(names), true) = (&world.types, world.pools.is_empty()) {
            prop_assert_eq!(names.len(), resolution.types.len());
        }
    }

    /// Nothing else happens: then what was announced is chosen when its moment comes.
    #[test]
    fn what_was_announced_comes(lines in world()) {
        let happens = |it: &&String| {
            !["deprecated=+", "except=", " +1d "].iter().any(|other| it.contains(other))
        };
        let lines: Vec<String> = lines.iter().filter(happens).cloned().collect();
        let mut world = read(&lines);
        let resolution = world.resolve();
        let announced = resolution.chosen.iter().map(|it| &it.next).chain(resolution.held.iter().map(|it| &it.next));
        for next in announced.flatten() {
            prop_assert!(next.at > world.now);
        }
        let first = resolution
            .chosen
            .iter()
            .map(|it| &it.next)
            .chain(resolution.held.iter().map(|it| &it.next))
            .flatten()
            .min_by_key(|it| it.at)
            .cloned();
        if let Some(next) = first {
            world.now = next.at;
            let then = world.resolve();
            let chosen = then.chosen.iter().any(|it| it.id == next.id && !it.only_in_use);
            prop_assert!(chosen, "{} on {}\n{}", next.id, next.at, world.render(&then));
        }
    }

    #[test]
    fn as_of_a_moment_nothing_later_is_chosen(lines in world(), back in 0..30_i64) {
        let mut world = read(&lines);
        world.now -= support::days(back);
        world.catalog = world.catalog.as_of(world.now);
        for chosen in world.resolve().chosen {
            let created = image_of(&world, &chosen).created.at();
            prop_assert!(created.is_none_or(|it| it <= world.now));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    /// Doors take any text, and say no without a panic. What they take they show as they took it.
    #[test]
    fn no_text_panics(text in "\\PC{0,40}|[a-z0-9@~.:/*?\\\\{}\",=\\[\\] -]{0,40}") {
        let _ = read_value(&text);
        let _ = NamePattern::new(&text).matches(&text);
        let _ = text.parse::<Age>();
        let _ = text.parse::<Query>();
        let _ = Date::read(Some(&text));
        let _ = lookup::read_path(&text);
        let _ = lookup::kubelet_of(&Image::new(support::id("0a"), text.clone()));
        if let Ok(owner) = text.parse::<Owner>() {
            prop_assert_eq!(owner.to_string(), text.clone());
        }
        if let Ok(name) = text.parse::<ParameterName>() {
            prop_assert_eq!(name.to_string(), text.clone());
        }
        if let Ok(alias) = text.parse::<Alias>() {
            prop_assert_eq!(alias.to_string().parse::<Alias>(), Ok(alias));
        }
    }

    #[test]
    fn no_alias_panics_and_each_is_read_as_it_is_shown(
        family in word(&["al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025", "custom", "AL2", ""]),
        version in "latest(~[0-9]{0,12})?|v?[0-9.]{0,10}|\\PC{0,10}|[a-z~@v-]{0,8}",
    ) {
        if let Ok(alias) = format!("{family}@{version}").parse::<Alias>() {
            prop_assert_eq!(alias.to_string().parse::<Alias>(), Ok(alias));
        }
    }

    #[test]
    fn no_value_of_a_parameter_panics(
        id in "ami-[0-9a-f]{8}|\\PC{0,8}",
        key in "[a-z./-]{0,12}|\\PC{0,8}",
        operator in word(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "in", ""]),
        values in proptest::collection::vec("[0-9-]{0,24}|\\PC{0,8}", 0..3),
        cut in 0..400_usize,
    ) {
        let values: Vec<String> = values.iter().map(|it| format!("{it:?}")).collect();
        let text = format!(
            r#"{{"id": {id:?}, "requirements": [{{"key": {key:?}, "operator": "{operator}", "values": [{}]}}]}}"#,
            values.join(",")
        );
        if let Ok(value) = read_value(&text) {
            let vocabulary = nodemolt_core::fit::Vocabulary::new();
            let _ = Requirements::read(&value.requirements, &vocabulary).written(&vocabulary);
        }
        let cut: String = text.chars().take(cut).collect();
        let _ = read_value(&cut);
    }
}
