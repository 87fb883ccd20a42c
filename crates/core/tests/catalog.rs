//! What images are there, and since when? Stories of observations, told as text.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use nodemolt_core::catalog::{
    Appeared, Because, Catalog, Change, Observation, Outcome, Parameter, ParameterValue, Query,
    merge,
};
use nodemolt_core::image::{AccountId, Date, Image};
use proptest::prelude::*;
use support::{ACCOUNT, NOW, check, id, moment, read_image, time, with_ids};

/// A story:
///
/// ```text
/// image 0a golden-1 self x86_64 30d      how 0a is described; `0a2` is another description of 0a
/// param p1 /golden 1 9d = 0a             version 1 of a parameter, written 9d ago
/// 10d owner=self = complete: 0a p1       ten days ago this was asked, and that was the answer
/// untimed untold = complete: 0a          a file that says neither when nor what
/// ```
struct Story {
    images: BTreeMap<String, Image>,
    parameters: BTreeMap<String, Parameter>,
    steps: Vec<Observation>,
}

fn now() -> Timestamp {
    time(NOW)
}

impl Story {
    fn read(text: &str) -> Self {
        let mut story =
            Self { images: BTreeMap::new(), parameters: BTreeMap::new(), steps: Vec::new() };
        for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap();
            match word {
                "image" => {
                    let (key, description) = rest.split_once(' ').unwrap();
                    let line = format!("{} {description}", &key[..2]);
                    story.images.insert(key.to_owned(), read_image(&line, now()).image);
                }
                "param" => {
                    let (head, value) = rest.split_once(" = ").unwrap();
                    let words: Vec<&str> = head.split_whitespace().collect();
                    let value = ParameterValue {
                        version: words[2].parse().ok(),
                        modified: Date::At(moment(words[3], now())),
                        text: with_ids(value),
                        labels: Vec::new(),
                    };
                    story.parameters.insert(words[0].to_owned(), Parameter::new(words[1], value));
                }
                when => {
                    let step = story.step(when, rest);
                    story.steps.push(step);
                }
            }
        }
        story
    }

    fn step(&self, when: &str, rest: &str) -> Observation {
        let (asked, answer) = rest.split_once(" = ").unwrap();
        let (outcome, listed) = answer.split_once(':').unwrap();
        let mut images = Vec::new();
        let mut parameters = Vec::new();
        for key in listed.split_whitespace() {
            if let Some(image) = self.images.get(key) {
                images.push(image.clone());
            } else {
                parameters.push(self.parameters[key].clone());
            }
        }
        Observation {
            asked: asked.parse::<Query>().unwrap(),
            outcome: outcome.parse::<Outcome>().unwrap(),
            seen_at: (when != "untimed").then(|| moment(when, now())),
            account: Some(ACCOUNT.parse::<AccountId>().unwrap()),
            images,
            parameters,
        }
    }

    fn merged(&self) -> (Catalog, Vec<Change>) {
        let mut catalog = Catalog::default();
        let mut changes = Vec::new();
        for step in &self.steps {
            (catalog, changes) = merge(catalog, step.clone());
        }
        (catalog, changes)
    }
}

/// State, first seen where it counts, withdrawn; and parameters that are gone.
fn shown(catalog: &Catalog, at: Timestamp) -> String {
    let mut out = String::new();
    let index = catalog.index(at);
    for kept in index.all() {
        let sighting = kept.sighting;
        let _ = write!(out, "{} {}", kept.id(), sighting.standing(at).as_str());
        if sighting.appeared == Appeared::Later {
            let _ = write!(out, ", appeared {}", sighting.first_seen.unwrap());
        }
        if let Some(mark) = &kept.withdrawn {
            out.push_str(match mark.because {
                Because::PointerMovedBack { .. } => ", pointer moved back",
                Because::DeprecatedEarly => ", deprecated early",
                Because::DisabledEarly => ", disabled early",
                Because::UnsharedEarly => ", unshared early",
                Because::Recalled => ", recalled",
            });
        }
        out.push('\n');
    }
    for parameter in catalog.parameters.values() {
        if let Some(gone) = parameter.gone {
            let _ = writeln!(out, "{} gone {gone}", parameter.name);
        }
    }
    out.replace("ami-000000", "").replace("T00:00:00Z", "")
}

/// What is known at the end of a story.
fn ends(story: &str, expected: &str) {
    let answer = shown(&Story::read(story).merged().0, now());
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    assert_eq!(answer.trim_end(), expected.join("\n"), "\n--- told ---\n{answer}---\n{story}");
}

#[test]
fn who_could_not_ask_removes_nothing() {
    for outcome in ["incomplete", "throttled", "denied", "failed"] {
        ends(
            &format!(
                "
                image 0a golden-1 self x86_64 30d
                image 0b golden-2 self x86_64 30d
                param p1 /golden 1 9d = 0a
                9d owner=self = complete: 0a 0b
                9d parameter=/golden = complete: p1
                2d owner=self = {outcome}: 0b
                2d parameter=/golden = {outcome}:
                "
            ),
            "
            0a Available
            0b Available
            ",
        );
    }
}

#[test]
fn a_complete_answer_removes_what_its_query_would_have_listed_and_nothing_else() {
    for (query, removed) in [
        ("owner=self", true),
        ("owner=111122223333", true),
        ("owner=amazon", false),
        ("owner=666666666666", false),
        ("owner=amazon,owner=self", true),
        ("name=golden-*", true),
        ("name=golden-?", true),
        ("name=silver-*", false),
        ("name=silver-*,name=golden-1", true),
        ("owner=self,name=silver-*", false),
        ("owner=self,name=golden-*,tag:stage=prod", true),
        ("tag:stage=prod", true),
        ("tag:stage=p*", true),
        ("tag:stage=*", true),
        ("tag:stage=test", false),
        ("tag:team=*", false),
        ("tag:stage=*,tag:team=*", false),
        ("id=ami-0000000a", true),
        ("id=ami-0000000b", false),
        ("public-ssm-parameter-name=/aws/service/x", false),
        ("untold", false),
        ("parameter=/golden", false),
    ] {
        let expected = if removed { "0a NotVisible" } else { "0a Available" };
        ends(
            &format!(
                "
                image 0a golden-1 self x86_64 300d tag:stage=prod
                9d owner=self = complete: 0a
                2d {query} = complete:
                "
            ),
            expected,
        );
    }
}

#[test]
fn what_is_hidden_from_a_query_is_not_missing_from_its_answer() {
    for (flags, owner, query, expected) in [
        ("deprecated=50d", "amazon", "owner=amazon", "Deprecated"),
        ("deprecated=50d", "amazon", "owner=amazon,include-deprecated", "NotVisible"),
        ("deprecated=1d", "amazon", "owner=amazon", "NotVisible"),
        // One's own deprecated images are always listed.
        ("deprecated=50d", "self", "owner=self", "NotVisible"),
        ("state=disabled", "self", "owner=self", "Disabled"),
        ("state=disabled", "self", "owner=self,include-disabled", "Deregistered"),
    ] {
        ends(
            &format!(
                "
                image 0a golden-1 {owner} x86_64 300d {flags}
                9d owner={owner},include-deprecated,include-disabled = complete: 0a
                2d {query} = complete:
                "
            ),
            &format!("0a {expected}"),
        );
    }
}

#[test]
fn one_s_own_image_is_gone_only_where_disabled_ones_would_have_been_listed() {
    for (owner, query, expected) in [
        ("self", "owner=self", "NotVisible"),
        ("self", "owner=self,include-disabled", "Deregistered"),
        ("foreign", "name=golden-*,include-disabled", "NotVisible"),
    ] {
        ends(
            &format!(
                "
                image 0a golden-1 {owner} x86_64 300d
                9d {query} = complete: 0a
                2d {query} = complete:
                "
            ),
            &format!("0a {expected}"),
        );
    }
}

#[test]
fn a_file_that_says_nothing_adds_and_never_removes() {
    ends(
        "
        image 0a golden-1 self x86_64 300d
        image 0b golden-2 self x86_64 3d
        9d owner=self = complete: 0a
        untimed untold = complete: 0b
        ",
        "
        0a Available
        0b Available
        ",
    );
    // Nor does it bring back what is gone, for it may be old.
    ends(
        "
        image 0a golden-1 self x86_64 300d
        9d owner=self = complete: 0a
        2d owner=self = complete:
        untimed untold = complete: 0a
        ",
        "0a NotVisible",
    );
}

#[test]
fn an_image_is_new_to_us_only_after_the_first_complete_answer() {
    ends(
        "
        image 0a golden-1 self x86_64 300d
        image 0b golden-2 self x86_64 200d
        image 0c golden-3 self x86_64 100d
        image 0d golden-4 self x86_64 90d
        9d owner=self = incomplete: 0a
        8d owner=self = throttled: 0b
        7d owner=self = complete: 0a 0b 0c
        6d owner=self = complete: 0a 0b 0c 0d
        ",
        "
        0a Available
        0b Available
        0c Available
        0d Available, appeared 2026-07-26
        ",
    );
}

#[test]
fn another_question_s_first_answer_makes_nothing_new() {
    ends(
        "
        image 0a golden-1 self x86_64 300d
        image 0b silver-1 self x86_64 200d
        image 0c golden-2 self x86_64 1d
        9d name=golden-* = complete: 0a
        2d name=silver-* = complete: 0b
        1d owner=self = complete: 0a 0b 0c
        ",
        "
        0a Available
        0b Available
        0c Available, appeared 2026-07-31
        ",
    );
}

#[test]
fn what_an_earlier_question_hid_is_not_new() {
    ends(
        "
        image 0a golden-1 amazon x86_64 400d deprecated=100d
        image 0b golden-2 amazon x86_64 30d
        9d owner=amazon = complete: 0b
        2d owner=amazon,include-deprecated = complete: 0a 0b
        ",
        "
        0a Deprecated
        0b Available
        ",
    );
}

#[test]
fn an_earlier_answer_that_comes_late_changes_only_when_it_was_first_seen() {
    let story = Story::read(
        "
        image 0a golden-1 self x86_64 300d
        image 0a2 golden-1 self x86_64 300d tag:stage=prod
        5d owner=self = complete: 0a2
        9d owner=self = complete: 0a
        ",
    );
    let (catalog, changes) = story.merged();
    let sighting = &catalog.images[&id("0a")];
    assert_eq!(sighting.first_seen, Some(moment("9d", now())));
    assert_eq!(sighting.last_seen, Some(moment("5d", now())));
    assert_eq!(sighting.image.tags.len(), 1, "the later description stands");
    assert_eq!(changes, []);
    // Nor does an earlier answer remove what a later one listed.
    ends(
        "
        image 0a golden-1 self x86_64 300d
        param p1 /golden 1 6d = 0a
        5d owner=self = complete: 0a
        5d parameter=/golden = complete: p1
        9d owner=self = complete:
        9d parameter=/golden = complete:
        ",
        // It does tell that the image was not there yet.
        "0a Available, appeared 2026-07-27",
    );
}

#[test]
fn a_parameter_is_gone_when_it_was_asked_for_by_name_or_path_and_comes_back() {
    let story = "
        image 0a golden-1 self x86_64 300d
        param p1 /org/golden 1 20d = 0a
        9d path=/org = complete: p1
        ";
    for (query, gone) in [
        ("path=/org", true),
        ("path=/org/", true),
        ("path=/or", false),
        ("path=/", true),
        ("parameter=/org/golden", true),
        ("parameter=/org/silver", false),
        ("path=/org/golden", false),
        ("owner=self", false),
    ] {
        let answer =
            shown(&Story::read(&format!("{story}\n2d {query} = complete:")).merged().0, now());
        assert_eq!(answer.contains("/org/golden gone 2026-07-30"), gone, "{query}");
    }
    let ending = format!("{story}\n2d path=/org = complete:");
    for (last, gone) in [
        ("1d path=/org = complete: p1", false),
        ("1d parameter=/org/golden = complete: p1", false),
        ("1d path=/org = throttled:", true),
        // What was seen before, or who knows when, does not bring it back.
        ("3d path=/org = complete: p1", true),
        ("untimed untold = complete: p1", true),
    ] {
        let answer = shown(&Story::read(&format!("{ending}\n{last}")).merged().0, now());
        assert_eq!(answer.contains("gone"), gone, "{last}");
    }
}

#[test]
fn an_image_that_vanishes_or_is_disabled_early_is_withdrawn_until_it_returns() {
    let vanished = "
        image 0a golden-1 amazon x86_64 30d
        image 0b golden-2 amazon x86_64 120d
        9d owner=amazon = complete: 0a 0b
        5d owner=amazon = complete:
        ";
    ends(vanished, "0a NotVisible, unshared early\n0b NotVisible");
    ends(&format!("{vanished}\n4d owner=amazon = complete: 0a 0b"), "0a Available\n0b Available");
    ends(
        &format!("{vanished}\nuntimed untold = complete: 0a 0b"),
        "0a NotVisible, unshared early\n0b NotVisible",
    );
    let disabled = "
        image 0a golden-1 self x86_64 30d
        image 0a2 golden-1 self x86_64 30d state=disabled
        image 0b golden-2 self x86_64 120d
        image 0b2 golden-2 self x86_64 120d state=disabled
        9d owner=self,include-disabled = complete: 0a 0b
        5d owner=self,include-disabled = complete: 0a2 0b2
        ";
    ends(disabled, "0a Disabled, disabled early\n0b Disabled");
    ends(
        &format!("{disabled}\n4d owner=self,include-disabled = complete: 0a 0b"),
        "0a Available\n0b Available",
    );
}

#[test]
fn deprecated_within_90_days_is_withdrawn_and_later_is_not() {
    ends(
        "
        image 0a golden-1 amazon x86_64 100d deprecated=11d
        image 0b golden-2 amazon x86_64 100d deprecated=10d
        image 0c golden-3 amazon x86_64 10d deprecated=+10d
        image 0d golden-4 amazon x86_64 undated deprecated=10d
        9d owner=amazon,include-deprecated = complete: 0a 0b 0c 0d
        ",
        "
        0a Deprecated, deprecated early
        0b Deprecated
        0c Available
        0d Deprecated
        ",
    );
}

#[test]
fn a_pointer_that_moves_back_withdraws_and_takes_it_back_by_returning() {
    let images = "
        image 0a golden-1 self x86_64 30d
        image 0b golden-2 self x86_64 20d
        image 0c golden-3 self x86_64 1d
        param a1 /aws/p 1 30d = 0a
        param b2 /aws/p 2 20d = 0b
        param a3 /aws/p 3 10d = 0a
        param b4 /aws/p 4 9d = 0b
        param a5 /aws/p 5 8d = 0a
        param c6 /aws/p 6 1d = 0c
        40d owner=self = complete: 0a 0b 0c
        ";
    let forward = "0a Available\n0b Available\n0c Available";
    let back = "0a Available\n0b Available, pointer moved back\n0c Available";
    for (values, expected) in [
        ("a1", forward),
        ("a1 b2", forward),
        ("a1 b2 a3", back),
        ("a1 b2 a3 b4", forward),
        ("a1 b2 a3 b4 a5", back),
        ("a1 b2 a3 b4 a5 c6", back),
        // The history may come in any order.
        ("a3 b2 a1", back),
        ("b4 a1 a3 b2", forward),
        ("b2 a1", forward),
        // Versions that nobody saw in between do not matter.
        ("b2 a5", back),
    ] {
        let mut story = images.to_owned();
        for value in values.split(' ') {
            let _ = writeln!(story, "7d path=/aws = incomplete: {value}");
        }
        ends(&story, expected);
    }
}

#[test]
fn a_mark_outlives_the_history_that_it_was_read_from() {
    let story = Story::read(
        "
        image 0a golden-1 self x86_64 30d
        image 0b golden-2 self x86_64 20d
        param a1 /aws/p 1 30d = 0a
        param b2 /aws/p 2 20d = 0b
        param a3 /aws/p 3 10d = 0a
        9d path=/aws = complete: a1 b2 a3
        9d owner=self = complete: 0a 0b
        ",
    );
    let mut catalog = story.merged().0;
    catalog.parameters.clear();
    assert_eq!(shown(&catalog, now()), "0a Available\n0b Available, pointer moved back\n");
    // The pointer is on it again.
    let mut again = Story::read(
        "
        param b4 /aws/p 4 2d = 0b
        1d path=/aws = complete: b4
        ",
    );
    let catalog = merge(catalog, again.steps.remove(0)).0;
    assert_eq!(shown(&catalog, now()), "0a Available\n0b Available\n");
}

#[test]
fn what_changed_is_told() {
    for (last, expected) in [
        ("1d owner=self = complete: 0a 0b 0c", vec![Change::Appeared(id("0c"))]),
        (
            "1d owner=self = complete: 0a2 0b",
            vec![Change::Differs(id("0a"), vec!["DeprecationTime", "Tags"])],
        ),
        ("1d owner=self = complete: 0a", vec![Change::NotListed(id("0b"))]),
        ("1d owner=self,include-disabled = complete: 0a", vec![Change::Gone(id("0b"))]),
        ("1d owner=self = throttled:", vec![]),
        ("1d path=/ = complete:", vec![Change::ParameterGone("/golden".to_owned())]),
        ("1d path=/ = complete: p2", vec![Change::ParameterDiffers("/golden".to_owned())]),
    ] {
        let story = Story::read(&format!(
            "
            image 0a golden-1 self x86_64 300d
            image 0a2 golden-1 self x86_64 300d tag:stage=prod deprecated=+9d
            image 0b golden-2 self x86_64 200d
            image 0c golden-3 self x86_64 1d
            param p1 /golden 1 9d = 0a
            param p2 /golden 1 9d = 0b
            9d owner=self = complete: 0a 0b
            9d path=/ = complete: p1
            {last}
            "
        ));
        assert_eq!(story.merged().1, expected, "{last}");
    }
}

// ---- two catalogs ----

fn joined(a: &str, b: &str) -> (Catalog, Vec<Change>) {
    let (mut catalog, _) = Story::read(a).merged();
    let changes = catalog.join(Story::read(b).merged().0);
    (catalog, changes)
}

#[test]
fn of_two_catalogs_the_later_sight_stands_in_either_order() {
    let early = "
        image 0a golden-1 self x86_64 30d
        9d owner=self = complete: 0a
        ";
    let late = "
        image 0a golden-1 self x86_64 30d tag:stage=prod
        2d owner=self = complete: 0a
        ";
    for (catalog, changes) in [joined(early, late), joined(late, early)] {
        let sighting = &catalog.images[&id("0a")];
        assert_eq!(sighting.image.tags.len(), 1);
        assert_eq!(sighting.first_seen, Some(moment("9d", now())));
        assert_eq!(sighting.last_seen, Some(moment("2d", now())));
        assert_eq!(changes, [Change::Differs(id("0a"), vec!["Tags"])]);
        let answered = catalog.answers.values().next().unwrap();
        assert_eq!(answered.first_complete, Some(moment("9d", now())));
        assert_eq!(answered.last_complete, Some(moment("2d", now())));
        assert_eq!(answered.last, Some((Outcome::Complete, moment("2d", now()))));
    }
}

#[test]
fn of_two_untimed_files_the_one_given_later_stands() {
    let plain = "
        image 0a golden-1 self x86_64 30d
        untimed untold = complete: 0a
        ";
    let tagged = plain.replace("30d", "30d tag:stage=prod");
    assert_eq!(joined(plain, &tagged).0.images[&id("0a")].image.tags.len(), 1);
    assert_eq!(joined(&tagged, plain).0.images[&id("0a")].image.tags.len(), 0);
}

#[test]
fn joining_keeps_what_either_remembers_and_lets_the_later_take_back() {
    let vanished = "
        image 0a golden-1 amazon x86_64 30d
        9d owner=amazon = complete: 0a
        5d owner=amazon = complete:
        ";
    let returned = format!("{vanished}\n4d owner=amazon = complete: 0a");
    let before = "
        image 0a golden-1 amazon x86_64 30d
        9d owner=amazon = complete: 0a
        ";
    for (a, b, expected) in [
        (vanished, returned.as_str(), "0a Available\n"),
        (returned.as_str(), vanished, "0a Available\n"),
        (before, vanished, "0a NotVisible, unshared early\n"),
        (vanished, before, "0a NotVisible, unshared early\n"),
    ] {
        assert_eq!(shown(&joined(a, b).0, now()), expected, "{a} and {b}");
    }
}

#[test]
fn joining_agrees_about_a_parameter_that_is_gone_in_either_order() {
    let gone = "
        param p1 /golden 1 20d = 0a
        9d parameter=/golden = complete: p1
        5d parameter=/golden = complete:
        ";
    let before = "
        param p1 /golden 1 20d = 0a
        9d parameter=/golden = complete: p1
        ";
    let back = format!("{gone}\n2d parameter=/golden = complete: p1");
    for (a, b, expected) in [
        (gone, before, "/golden gone 2026-07-27\n"),
        (before, gone, "/golden gone 2026-07-27\n"),
        (gone, back.as_str(), ""),
        (back.as_str(), gone, ""),
    ] {
        assert_eq!(shown(&joined(a, b).0, now()), expected, "{a} and {b}");
    }
}

// ---- as it was ----

#[test]
fn as_of_a_moment_later_images_do_not_exist() {
    let story = "
        image 0a golden-1 self x86_64 30d
        image 0b golden-2 self x86_64 10d
        image 0c golden-3 self x86_64 undated
        40d owner=self = incomplete: 0a
        9d owner=self = complete: 0a 0b 0c
        2d owner=self = complete:
        ";
    let catalog = Story::read(story).merged().0;
    for (age, expected) in [
        // One without a date is there since it was first seen, for all we know.
        ("11d", "0a Available\n"),
        ("10d", "0a Available\n0b Available\n"),
        ("3d", "0a Available\n0b Available\n0c Available\n"),
        ("1d", "0a NotVisible, unshared early\n0b NotVisible, unshared early\n0c NotVisible\n"),
    ] {
        let at = moment(age, now());
        assert_eq!(shown(&catalog.clone().as_of(at), at), expected, "{age}");
    }
}

#[test]
fn a_pointer_that_was_written_later_needs_its_history() {
    let world = |values: &str, now: &str| {
        let mut world = support::World::read(&format!(
            "
            image 0a golden-1.35-a self x86_64 30d
            image 0b golden-1.35-b self x86_64 10d
            {values}
            term ssm=/golden
            "
        ));
        world.now = moment(now, time(NOW));
        world.catalog = world.catalog.as_of(world.now);
        world.answer()
    };
    let short = "param /golden 9d = 0b";
    let long = "param /golden 29d = 0a\nparam /golden 9d = 0b";
    assert_eq!(world(short, "0h"), "0b chosen\n");
    assert_eq!(world(short, "9d"), "0b chosen\n");
    assert_eq!(
        world(short, "20d"),
        "problem 1: /golden was last written on 2026-07-23, after the moment asked for; add the output of `aws ssm get-parameter-history --name /golden`\n"
    );
    assert_eq!(world(long, "20d"), "0a chosen\n");
    assert_eq!(world(long, "9d"), "0b chosen\n");
    // It did not exist yet, and its history says so.
    assert!(world(long, "35d").contains("was last written on 2026-07-03"));
}

#[test]
fn a_gap_in_the_history_is_no_history() {
    let story = Story::read(
        "
        image 0a golden-1 self x86_64 30d
        image 0b golden-2 self x86_64 10d
        param p1 /golden 1 29d = 0a
        param p4 /golden 4 9d = 0b
        5d parameter=/golden = complete: p1 p4
        5d owner=self = complete: 0a 0b
        ",
    );
    let mut world = support::World::read("term ssm=/golden");
    world.now = moment("20d", now());
    world.catalog = story.merged().0.as_of(world.now);
    // Versions 2 and 3 may have been in force by then.
    assert!(
        world.answer().starts_with("problem 1: /golden was last written"),
        "{}",
        world.answer()
    );
}

#[test]
fn what_nobody_answered_later_was_not_yet_so() {
    let mut world = support::World::read(
        "
        image 0a golden-1.35 self x86_64 30d
        param /golden 29d = 0a
        asked parameter=/golden = throttled 2d
        term ssm=/golden
        ",
    );
    world.now = moment("9d", now());
    world.catalog = world.catalog.as_of(world.now);
    assert_eq!(world.answer(), "0a chosen\n");
}

// ---- queries ----

#[test]
fn a_query_is_read_as_people_write_it() {
    for (text, expected) in [
        ("untold", "untold"),
        ("owner=amazon,name=amazon-eks-node-*", "owner=amazon,name=amazon-eks-node-*"),
        ("name=b,owner=self,name=a", "owner=self,name=a,name=b"),
        ("owner=self,,", "owner=self"),
        (r"name=a\,b", r"name=a\,b"),
        (r"name=a\*", r"name=a\\*"),
        ("include-deprecated=true,owner=self", "owner=self,include-deprecated"),
        ("tag:a=b=c", "tag:a=b=c"),
        (r"tag:a\=b=c", r"tag:a\=b=c"),
        ("tag:stage=*", "tag:stage=*"),
        ("path=/aws,parameter=/x,region=us-east-1", "region=us-east-1,parameter=/x,path=/aws"),
        ("", "error: the query says nothing"),
        ("region=us-east-1", "error: the query says nothing"),
        ("owner=", "error: `owner` has no value"),
        ("owner=me", "error: `me` is not an owner"),
        ("owners=self", "error: `owners=self` is no part of a query"),
        ("include-deprecated=false", "error: `include-deprecated=false` is no part of a query"),
        ("owner=self,path=/aws", "error: a query is about images or about parameters"),
        ("id=ami-1", "error: `ami-1` is not an image id"),
    ] {
        match text.parse::<Query>() {
            Ok(query) => assert_eq!(query.to_string(), expected, "{text}"),
            Err(error) => {
                assert!(format!("error: {error}").starts_with(expected), "{text}: {error}");
            }
        }
    }
}

fn any_query() -> impl Strategy<Value = Query> {
    use nodemolt_core::ask::Owner;
    use nodemolt_core::catalog::{ImageQuery, ParameterQuery};
    use nodemolt_core::image::NamePattern;
    use proptest::collection::{btree_map, btree_set};
    let text = || "[ab*?=,\\\\: ]{1,4}".prop_map(|it: String| it);
    let owner = prop_oneof![
        Just(Owner::Own),
        Just(Owner::Group("amazon".to_owned())),
        Just(Owner::Account(ACCOUNT.parse().unwrap())),
    ];
    let region = || proptest::option::of("[a-z,=\\\\-]{1,6}");
    let images = (
        region(),
        btree_set(owner, 0..3),
        btree_set(text().prop_map(|it| NamePattern::new(&it)), 0..3),
        btree_set((0..9_u8).prop_map(|it| id(&format!("{it:02x}"))), 0..3),
        btree_map(
            text(),
            // `*` as a pattern is written as any value, and read as such.
            proptest::option::of(text().prop_map(|it| NamePattern::new(&it)))
                .prop_map(|it| it.filter(|it| it.as_str() != "*")),
            0..3,
        ),
        btree_set(text(), 0..2),
        any::<(bool, bool)>(),
    )
        .prop_map(|(region, owners, names, ids, tags, public_parameters, include)| {
            Query::Images(ImageQuery {
                region,
                owners,
                names,
                ids,
                tags,
                public_parameters,
                include_deprecated: include.0,
                include_disabled: include.1,
            })
        });
    let parameters = (region(), btree_set(text(), 0..3), btree_set(text(), 0..3)).prop_map(
        |(region, names, paths)| Query::Parameters(ParameterQuery { region, names, paths }),
    );
    prop_oneof![Just(Query::Untold), images, parameters].prop_filter(
        "says something",
        |it| match it {
            Query::Untold => true,
            Query::Images(it) => {
                *it != ImageQuery { region: it.region.clone(), ..ImageQuery::default() }
            }
            Query::Parameters(it) => !it.names.is_empty() || !it.paths.is_empty(),
        },
    )
}

proptest! {
    #[test]
    fn a_query_is_read_as_it_is_shown(query in any_query()) {
        prop_assert_eq!(query.to_string().parse::<Query>(), Ok(query.clone()), "{}", query);
    }

    #[test]
    fn no_text_as_query_panics(text in "\\PC{0,30}|[a-z:=,\\\\*]{0,30}") {
        if let Ok(query) = text.parse::<Query>() {
            prop_assert_eq!(query.to_string().parse::<Query>(), Ok(query));
        }
    }
}

// ---- laws of merging ----

fn any_story() -> impl Strategy<Value = Vec<Observation>> {
    let queries = prop_oneof![
        Just("untold"),
        Just("owner=self"),
        Just("owner=self,include-disabled"),
        Just("owner=amazon"),
        Just("owner=amazon,include-deprecated"),
        Just("name=golden-*"),
        Just("tag:stage=*"),
        Just("path=/"),
        Just("parameter=/golden"),
    ];
    let image = (0..6_u8, any::<bool>(), 0..4_u8, 0..120_i64).prop_map(|(at, own, flag, age)| {
        let owner = if own { "self" } else { "amazon" };
        let flag = ["", "state=disabled", "deprecated=3d", "tag:stage=prod"][usize::from(flag)];
        read_image(&format!("{at:02x} golden-{at} {owner} x86_64 {age}d {flag}"), now()).image
    });
    let parameter = (0..2_u8, 1..5_u64, 0..6_u8).prop_map(|(name, version, at)| {
        let value = ParameterValue {
            version: Some(version),
            modified: Date::At(moment(&format!("{}d", 40 - version), now())),
            text: id(&format!("{at:02x}")).to_string(),
            labels: Vec::new(),
        };
        Parameter::new(["/golden", "/aws/golden"][usize::from(name)], value)
    });
    let observation = (
        queries,
        0..5_usize,
        proptest::option::weighted(0.9, 0..40_i64),
        proptest::collection::vec(image, 0..6),
        proptest::collection::vec(parameter, 0..3),
    )
        .prop_map(|(asked, outcome, age, images, parameters)| {
            // EC2 lists an image once, SSM a version once.
            let images: BTreeMap<_, _> = images.into_iter().map(|it| (it.id.clone(), it)).collect();
            let parameters: BTreeMap<_, _> = parameters
                .into_iter()
                .map(|it| ((it.name.clone(), it.newest().unwrap().version), it))
                .collect();
            Observation {
                asked: asked.parse().unwrap(),
                outcome: Outcome::ALL[outcome],
                seen_at: age.map(|it| moment(&format!("{it}d"), now())),
                account: Some(ACCOUNT.parse().unwrap()),
                images: images.into_values().collect(),
                parameters: parameters.into_values().collect(),
            }
        });
    proptest::collection::vec(observation, 0..6)
}

fn after(story: Vec<Observation>) -> Catalog {
    story.into_iter().fold(Catalog::default(), |known, seen| merge(known, seen).0)
}

proptest! {
    #[test]
    fn seeing_the_same_twice_changes_nothing(story in any_story(), last in any_story()) {
        let known = after(story);
        if let Some(seen) = last.first() {
            let once = merge(known, seen.clone()).0;
            let (twice, changes) = merge(once.clone(), seen.clone());
            prop_assert_eq!(changes, []);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn the_order_inside_an_answer_does_not_matter(story in any_story()) {
        let mut turned = story.clone();
        for seen in &mut turned {
            seen.images.reverse();
            seen.parameters.reverse();
        }
        prop_assert_eq!(after(story), after(turned));
    }

    #[test]
    fn who_could_not_ask_never_makes_an_image_absent(story in any_story(), last in any_story()) {
        let known = after(story);
        for seen in last {
            if seen.outcome != Outcome::Complete || seen.seen_at.is_none() || seen.asked == Query::Untold {
                let listed = |it: &Catalog| {
                    // One that is new to us may have vanished before we heard of it.
                    let absent = it.images.values().filter(|it| {
                        it.presence != nodemolt_core::catalog::Presence::Listed
                            && known.images.contains_key(&it.image.id)
                    });
                    let gone = it.parameters.values().filter(|it| it.gone.is_some());
                    (absent.count(), gone.count(), it.images.len())
                };
                let (before, after) = (listed(&known), listed(&merge(known.clone(), seen).0));
                prop_assert!(after.0 <= before.0 && after.1 <= before.1 && after.2 >= before.2);
            }
        }
    }

    #[test]
    fn joining_a_catalog_with_itself_changes_nothing(story in any_story()) {
        let known = after(story);
        let mut both = known.clone();
        prop_assert_eq!(both.join(known.clone()), []);
        prop_assert_eq!(both, known);
    }
}

#[test]
fn a_throttled_answer_in_the_catalog_shrinks_no_resolution() {
    check(
        "
        image 0a golden-1.35 self x86_64 30d
        asked owner=self = throttled 1d
        term name=golden-*
        ",
        "0a chosen",
    );
}

#[test]
fn a_region_says_nothing_about_another_s_images() {
    let story = "
        image 0a golden-1 self x86_64 30d
        image 0b golden-2 self x86_64 20d
        9d region=eu-west-1,owner=self = complete: 0a
        8d region=us-east-1,owner=self = complete: 0b
        7d region=us-east-1,owner=self = complete:
        ";
    let catalog = Story::read(story).merged().0;
    assert_eq!(shown(&catalog, now()), "0a Available\n0b NotVisible, unshared early\n");
    assert!(catalog.images.values().all(|it| it.appeared == Appeared::WithFirstAnswer));
}

#[test]
fn an_answer_from_before_it_vanished_does_not_bring_an_image_back() {
    let story = "
        image 0a golden-1 self x86_64 30d
        9d owner=self = complete: 0a
        3d owner=self = complete:
        5d owner=self = complete: 0a
        ";
    let catalog = Story::read(story).merged().0;
    assert_eq!(shown(&catalog, now()), "0a NotVisible, unshared early\n");
}

#[test]
fn an_answer_that_comes_late_does_not_revive_what_a_later_one_lacked() {
    ends(
        "
        image 01 golden-1 self x86_64 300d
        image 02 golden-2 self x86_64 30d
        image 03 golden-3 self x86_64 20d
        5d owner=self = complete: 01 03
        9d owner=self = complete: 01 02
        ",
        "
        01 Available
        02 NotVisible, unshared early
        03 Available, appeared 2026-07-27
        ",
    );
}
