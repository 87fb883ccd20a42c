//! Which image should a new node boot, and why not the others? Cases as text.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::fmt::Write as _;

use nodemolt_core::catalog::read_value;
use nodemolt_core::resolve::Answer;
use support::{World, check, days, id, time};

// ---- minimum age ----

#[test]
fn a_too_young_release_gives_way_to_the_next_older_one() {
    check(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        image 0c al2023-v20260701 amazon x86_64 30d
        pointer al2023 0c@30d 0b@9d 0a@2d
        min 7d
        term ssm=/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id
        ",
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        0c Superseded (by 0b)
        ",
    );
}

#[test]
fn an_image_is_old_enough_from_the_very_moment() {
    for (age, chosen) in [("7d", true), ("6d23h59m", false), ("7d1m", true)] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 self x86_64 {age}
            min 7d
            term name=golden-*
            "
        ))
        .answer();
        assert_eq!(answer.contains("0a chosen"), chosen, "{age}: {answer}");
    }
}

#[test]
fn a_withdrawn_release_in_between_is_passed_over() {
    // 0b: the pointer went back from it. 0c: deprecated within 90 days of its creation.
    check(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 10d
        image 0c al2023-v20260715 amazon x86_64 17d deprecated=3d
        image 0d al2023-v20260701 amazon x86_64 31d
        pointer al2023 0d@31d 0c@17d 0b@10d 0d@9d 0a@2d
        min 7d
        term alias=al2023@latest
        policy only-amazon owners=amazon
        ",
        "
        0d chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        0b Withdrawn (pointer moved back to 0d)
        0c Withdrawn (deprecated early) + Deprecated (no fallback)
        problem 1: the catalog does not hold /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id; add the output of `aws ssm get-parameters --names /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id`
        problem 1: the catalog does not hold /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/recommended/image_id; add the output of `aws ssm get-parameters --names /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/recommended/image_id`
        problem 1: the catalog does not hold /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/nvidia/recommended/image_id; add the output of `aws ssm get-parameters --names /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/nvidia/recommended/image_id`
        problem 1: the catalog does not hold /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/neuron/recommended/image_id; add the output of `aws ssm get-parameters --names /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/neuron/recommended/image_id`
        ",
    );
}

#[test]
fn superseded_is_not_withdrawn() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 10d
        pointer al2023 0b@10d 0a@2d
        min 7d
        ",
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        ",
    );
}

#[test]
fn with_nothing_old_enough_and_nothing_in_use_the_next_moment_is_told() {
    check(
        "
        image 0a golden-1.35-a self x86_64 2d
        image 0b golden-1.35-b self x86_64 3d
        min 7d
        term name=golden-*
        types m5.large
        ",
        "
        0a TooYoung (until 2026-08-06)
        0b TooYoung (until 2026-08-05)
        held 0a TooYoung, next 0b on 2026-08-05
        type m5.large held back 0a
        ",
    );
}

#[test]
fn with_nothing_old_enough_the_image_in_use_stays() {
    check(
        "
        image 0a golden-1.35-a self x86_64 2d
        image 0b golden-1.35-b self x86_64 3d
        in-use 0a
        min 7d
        term name=golden-*
        types m5.large
        ",
        "
        0a chosen, only in use, next 0b on 2026-08-05
        0b TooYoung (until 2026-08-05)
        type m5.large boots 0a
        ",
    );
}

#[test]
fn of_several_in_use_the_newest_stays() {
    check(
        "
        image 0a golden-1.35-a self x86_64 2d
        image 0b golden-1.35-b self x86_64 3d
        in-use 0a 0b
        min 7d
        term name=golden-*
        ",
        "
        0a chosen, only in use, next 0b on 2026-08-05
        0b TooYoung (until 2026-08-05)
        ",
    );
}

#[test]
fn an_image_in_use_that_is_too_young_is_chosen_only_for_want_of_another() {
    check(
        "
        image 0a golden-1.35-a self x86_64 2d
        image 0b golden-1.35-b self x86_64 30d
        in-use 0a
        min 7d
        term name=golden-*
        ",
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        ",
    );
}

#[test]
fn an_eligible_deprecated_image_comes_before_one_that_is_too_young_and_in_use() {
    check(
        "
        image 0a golden-1.35-a self x86_64 2d
        image 0b golden-1.35-b self x86_64 300d deprecated=10d
        in-use 0a
        min 7d
        term name=golden-*
        ",
        "
        0b chosen, deprecated, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        warning: 0b is deprecated since 2026-07-22 and was chosen for want of another
        ",
    );
}

#[test]
fn in_use_is_exempt_from_age_and_from_nothing_else() {
    for (flags, extra, expected) in [
        ("", "quarantine q id:0a", "Quarantined (q) + TooYoung (until 2026-08-06)"),
        ("unlisted=1d", "", "NotVisible + TooYoung (until 2026-08-06)"),
        ("state=disabled", "", "Disabled + TooYoung (until 2026-08-06)"),
        ("disallowed", "", "NotAllowedByAccount + TooYoung (until 2026-08-06)"),
        ("", "policy p owners=amazon", "WrongOwner (policy p) + TooYoung (until 2026-08-06)"),
        ("", "kubernetes 1.34", "KubeletTooNew (1.35) + TooYoung (until 2026-08-06)"),
        (
            "deprecated=1d",
            "policy p deprecated=forbidden",
            "Deprecated (policy p) + TooYoung (until 2026-08-06)",
        ),
    ] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35-a self x86_64 2d {flags}
            in-use 0a
            min 7d
            term id=0a
            {extra}
            "
        ))
        .answer();
        let first = answer.lines().next().unwrap_or_default();
        assert_eq!(first, format!("0a {expected}"), "{flags} {extra}");
    }
}

#[test]
fn an_image_in_use_that_a_pointer_left_for_an_older_one_is_refused() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260728 amazon x86_64 4d
        pointer al2023 0b@4d 0a@2d 0b@1d
        in-use 0a
        min 7d
        ",
        "
        0a Withdrawn (pointer moved back to 0b) + TooYoung (until 2026-08-06)
        0b TooYoung (until 2026-08-04)
        held 0a Withdrawn, next 0b on 2026-08-04
        ",
    );
}

/// A release every three days under two weeks: from the first one on that is old enough there is
/// always one, and it is never older than two releases more than it must be.
#[test]
fn with_a_release_every_three_days_there_is_always_one_of_two_weeks() {
    let mut text = String::new();
    let mut pointers = String::from("pointer al2023");
    for at in 0..40 {
        let age = 120 - 3 * at;
        let at = at + 1;
        let _ = writeln!(text, "image {at:02x} al2023-v2026{at:04} amazon x86_64 {age}d");
        let _ = write!(pointers, " {at:02x}@{age}d");
    }
    let world = World::read(&format!("{text}\n{pointers}\nmin 2w\nterm alias=al2023@latest"));
    for day in 0..=120 {
        let now = world.now - days(120 - day);
        let was = World {
            catalog: world.catalog.clone().as_of(now),
            now,
            ..World::read("min 2w\nterm alias=al2023@latest")
        };
        let resolution = was.resolve();
        let chosen: Vec<&str> = resolution.chosen.iter().map(|it| it.id.as_str()).collect();
        if day < 14 {
            assert!(chosen.is_empty(), "day {day}: {chosen:?}");
            assert_eq!(resolution.held[0].next.as_ref().unwrap().at, world.now - days(106));
        } else {
            let expected = id(&format!("{:02x}", (day - 14) / 3 + 1));
            assert_eq!(chosen, [expected.as_str()], "day {day}");
        }
    }
}

#[test]
fn an_image_without_a_date_that_can_be_believed_is_last_and_has_no_age() {
    let world = "
        image 0a golden-1.35-d self x86_64 undated
        image 0b golden-1.35-c self x86_64 unreadable
        image 0c golden-1.35-b self x86_64 +1d
        image 0d golden-1.35-a self x86_64 300d
        term name=golden-*
        ";
    check(
        world,
        "
        0d chosen
        0a Superseded (by 0d)
        0b Superseded (by 0d)
        0c Superseded (by 0d)
        ",
    );
    check(
        &format!("{world}\nmin 400d"),
        "
        0a AgeUnknown (missing)
        0b AgeUnknown (unreadable)
        0c AgeUnknown (future)
        0d TooYoung (until 2026-11-09)
        held 0d TooYoung, next 0d on 2026-11-09
        ",
    );
    check(
        &world.replace("300d", "undated"),
        "
        0a chosen
        0b Superseded (by 0a)
        0c Superseded (by 0a)
        0d Superseded (by 0a)
        ",
    );
}

#[test]
fn a_copy_is_ordered_and_ages_by_its_source() {
    check(
        "
        image 0a golden-1.35-copy self x86_64 1d source=0c
        image 0b golden-1.35 self x86_64 20d
        image 0c upstream foreign x86_64 30d
        min 7d
        term name=golden-*
        ",
        "
        0b chosen
        0a Superseded (by 0b)
        ",
    );
    check(
        "
        image 0a golden-1.35-copy self x86_64 1d source=0c
        image 0c upstream foreign x86_64 3d
        min 7d
        term name=golden-*
        ",
        "
        0a TooYoung (until 2026-08-05 from its source)
        held 0a TooYoung, next 0a on 2026-08-05
        ",
    );
    // A source that we do not know says nothing; one that is younger than its copy is not believed.
    check(
        "
        image 0a golden-1.35-copy self x86_64 10d source=0c
        image 0b golden-1.35 self x86_64 20d source=0e
        image 0c upstream foreign x86_64 3d
        min 7d
        term name=golden-*
        ",
        "
        0a chosen
        0b Superseded (by 0a)
        ",
    );
}

#[test]
fn first_seen_counts_for_what_appeared_before_our_eyes() {
    let world = "
        image 0a golden-1.35-a self x86_64 30d appeared=2d
        image 0b golden-1.35-b self x86_64 40d there=2d
        min 7d
        term name=golden-*
        ";
    check(
        world,
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06 from first seen)
        ",
    );
    check(
        &format!("{world}\npolicy p from=creation"),
        "
        0a chosen
        0b Superseded (by 0a)
        ",
    );
    // One policy says creation alone and another says otherwise: the stricter holds.
    check(
        &format!("{world}\npolicy p from=creation\npolicy q from=first-seen"),
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06 from first seen)
        ",
    );
}

#[test]
fn a_policy_s_age_is_a_floor_that_the_class_may_lengthen() {
    for (class, policy, expected) in [
        ("0h", "7d", "0a TooYoung (until 2026-08-06 by p)"),
        ("3d", "7d", "0a TooYoung (until 2026-08-06 by p)"),
        ("7d", "7d", "0a TooYoung (until 2026-08-06)"),
        ("9d", "7d", "0a TooYoung (until 2026-08-08)"),
        ("0h", "2d", "0a chosen"),
    ] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 self x86_64 2d
            min {class}
            policy p min={policy}
            term name=golden-*
            "
        ))
        .answer();
        assert_eq!(answer.lines().next(), Some(expected), "{class} {policy}");
    }
}

#[test]
fn the_class_may_not_outgrow_another_policy_and_a_policy_for_others_says_nothing() {
    check(
        "
        image 0a golden-1.35 self x86_64 2d
        label team=web
        policy p min=7d for=team=db
        policy q min=1d for=team=web
        term name=golden-*
        ",
        "0a chosen",
    );
}

// ---- exceptions ----

#[test]
fn an_exception_lifts_age_until_its_date_and_nothing_else() {
    for (words, expected) in [
        ("policy p min=7d except=id:0a@+1d", "0a chosen"),
        ("policy p min=7d except=name:golden-*@+1d", "0a chosen"),
        ("policy p min=7d except=id:0a@0h", "0a TooYoung (until 2026-08-06 by p)"),
        ("policy p min=7d except=id:0b@+1d", "0a TooYoung (until 2026-08-06 by p)"),
        ("min 7d\npolicy p except=id:0a@+1d", "0a chosen"),
        (
            "policy p min=7d except=id:0a@+1d\npolicy q min=3d",
            "0a TooYoung (until 2026-08-02 by q)",
        ),
        ("policy p min=7d except=id:0a@+1d\nquarantine q id:0a", "0a Quarantined (q)"),
        ("policy p min=7d owners=amazon except=id:0a@+1d", "0a WrongOwner (policy p)"),
        ("policy p min=7d allow=silver-* except=id:0a@+1d", "0a NotAllowedByPolicy (p)"),
        (
            "policy p min=7d deprecated=forbidden except=id:0a@+1d\n# deprecated",
            "0a Deprecated (policy p)",
        ),
    ] {
        let flags = if words.contains("# deprecated") { "deprecated=1d" } else { "" };
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 self x86_64 2d {flags}
            term name=golden-*
            {words}
            "
        ))
        .answer();
        assert_eq!(answer.lines().next(), Some(expected), "{words}");
    }
}

#[test]
fn a_pinned_id_is_held_by_age_unless_policy_says_otherwise() {
    for (words, expected) in [
        ("", "0a TooYoung (until 2026-08-06)"),
        ("policy p ids=exempt", "0a chosen"),
        ("policy p ids=exempt\npolicy q ids=held", "0a TooYoung (until 2026-08-06)"),
        ("policy p ids=held", "0a TooYoung (until 2026-08-06)"),
    ] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 self x86_64 2d
            min 7d
            term id=0a
            {words}
            "
        ))
        .answer();
        assert_eq!(answer.lines().next(), Some(expected), "{words}");
    }
}

// ---- what holds, and what falls back ----

#[test]
fn an_id_a_pinned_version_and_a_parameter_of_one_s_own_hold() {
    check(
        "
        image 0a golden-1.35-b self x86_64 2d
        image 0b golden-1.35-a self x86_64 30d
        min 7d
        term id=0a
        ",
        "
        0a TooYoung (until 2026-08-06)
        held 0a TooYoung, next 0a on 2026-08-06
        ",
    );
    check(
        "
        image 0a golden-1.35-b self x86_64 2d
        image 0b golden-1.35-a self x86_64 30d
        param /org/golden 30d = 0b
        param /org/golden 2d = 0a
        min 7d
        term ssm=/org/golden
        ",
        "
        0a TooYoung (until 2026-08-06)
        held 0a TooYoung, next 0a on 2026-08-06
        ",
    );
    check(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        pointer al2023 0b@9d 0a@2d
        min 7d
        term alias=al2023@v20260730
        ",
        "
        0a TooYoung (until 2026-08-06)
        held 0a TooYoung, next 0a on 2026-08-06
        ",
    );
}

#[test]
fn a_pinned_path_holds_like_its_alias() {
    let world = "
        image 0a al2023-v20260730 amazon x86_64 20d deprecated=1d
        image 0b al2023-v20260701 amazon x86_64 30d
        pointer al2023 0b@30d 0a@20d
        ";
    let expected = "
        0a Withdrawn (deprecated early)
        held 0a Withdrawn
        ";
    check(&format!("{world}\nterm alias=al2023@v20260730"), expected);
    check(
        &format!(
            "{world}\nterm ssm=/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.35-v20260730/image_id"
        ),
        expected,
    );
}

#[test]
fn a_pinned_version_that_was_never_published_is_told_with_the_newest() {
    check(
        "
        image 0b al2023-v20260722 amazon x86_64 9d
        pointer al2023 0b@9d
        term alias=al2023@v20260723
        ",
        "
        problem 1: al2023@v20260723 is not in the catalog for Kubernetes 1.35; the newest there is v20260722
        ",
    );
    check(
        "
        image 0b al2023-v20260722 amazon x86_64 9d
        pointer al2023 0b@9d
        term alias=al2023@20260722
        ",
        "
        problem 1: al2023@20260722 is not in the catalog for Kubernetes 1.35; did you mean v20260722?
        ",
    );
}

#[test]
fn latest_with_a_number_counts_releases_that_are_published_and_not_withdrawn() {
    let world = "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        image 0c al2023-v20260715 amazon x86_64 16d
        image 0d al2023-v20260708 amazon x86_64 23d
        image 0e al2023-v20260731 amazon x86_64 1d
        pointer al2023 0d@23d 0c@16d 0d@15d 0b@9d 0a@2d
        ";
    // 0c is withdrawn, 0e was never recommended: latest is 0a, ~1 is 0b, ~2 is 0d, ~3 is none.
    for (back, expected) in [
        ("~1", "0b chosen\n0a NewerThanAsked (latest~1 is v20260722)"),
        (
            "~2",
            "0d chosen\n0a NewerThanAsked (latest~2 is v20260708)\n0b NewerThanAsked (latest~2 is v20260708)",
        ),
        ("~3", "0a NewerThanAsked (latest~3 is none)\n0b NewerThanAsked (latest~3 is none)"),
    ] {
        let answer = alias(&format!("{world}\nterm alias=al2023@latest{back}"));
        assert!(answer.starts_with(expected), "{back}: {answer}");
        assert!(answer.contains("0c Withdrawn (pointer moved back to 0d)"), "{back}: {answer}");
        assert!(answer.contains("0e NotRecommended (0a)"), "{back}: {answer}");
    }
}

#[test]
fn the_age_applies_after_counting_back() {
    // ~1 is 0b, which is too young; the next older one is taken, and never 0a.
    let answer = alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        image 0c al2023-v20260715 amazon x86_64 16d
        pointer al2023 0c@16d 0b@9d 0a@2d
        min 2w
        term alias=al2023@latest~1
        ",
    );
    assert_eq!(
        answer,
        "0c chosen, next 0b on 2026-08-06\n\
         0a NewerThanAsked (latest~1 is v20260722) + TooYoung (until 2026-08-13)\n\
         0b TooYoung (until 2026-08-06)"
    );
}

#[test]
fn a_release_that_is_not_published_any_more_is_not_counted() {
    let answer = alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260301 amazon x86_64 150d gone=2d
        image 0c al2023-v20260201 amazon x86_64 180d
        pointer al2023 0c@180d 0b@150d 0a@2d
        term alias=al2023@latest~1
        ",
    );
    assert_eq!(
        answer,
        "0c chosen\n\
         0a NewerThanAsked (latest~1 is v20260201)\n\
         0b Deregistered"
    );
}

#[test]
fn a_recommended_release_that_is_gone_gives_way_to_the_one_before() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 20d gone=1d
        image 0b al2023-v20260722 amazon x86_64 29d
        pointer al2023 0b@29d 0a@20d
        ",
        "
        0b chosen
        0a Deregistered
        ",
    );
}

#[test]
fn a_release_that_is_newer_than_the_pointer_is_not_recommended() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        pointer al2023 0b@9d
        ",
        "
        0b chosen
        0a NotRecommended (0b)
        ",
    );
}

#[test]
fn a_look_alike_of_another_amazon_account_is_no_release() {
    check_alias(
        "
        image 0a al2023-v20260730 lookalike x86_64 8d
        image 0b al2023-v20260722 amazon x86_64 3d
        image 0c al2023-v20260701 lookalike x86_64 31d
        image 0d al2023-v20260601 amazon x86_64 61d
        pointer al2023 0b@3d
        min 7d
        ",
        "
        0d chosen, next 0b on 2026-08-05
        0a WrongOwner (not the publisher)
        0b TooYoung (until 2026-08-05)
        0c WrongOwner (not the publisher)
        ",
    );
}

#[test]
fn a_release_found_by_its_public_parameter_s_name_counts() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b renamed-1.35 amazon x86_64 20d public=/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.35-v20260712/image_id
        pointer al2023 0a@2d
        min 7d
        ",
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        ",
    );
}

#[test]
fn a_release_found_by_its_versioned_path_counts() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b renamed-1.35 amazon x86_64 20d
        pointer al2023 0a@2d
        param /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.35-v20260712/image_id 20d = 0b
        min 7d
        ",
        "
        0b chosen, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        ",
    );
}

#[test]
fn another_minor_or_processor_is_no_fallback() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b amazon-eks-node-al2023-x86_64-standard-1.34-v20260701 amazon x86_64 30d
        image 0c al2023-v20260701 amazon arm64 30d
        image 0d al2023-nvidia-v20260701 amazon x86_64 30d
        image 0e amazon-eks-node-al2023-x86_64-standard-1.35-v20260701 amazon arm64 30d
        pointer al2023 0a@2d
        min 7d
        types m5.large
        ",
        "
        0d chosen
        0c chosen
        0a TooYoung (until 2026-08-06)
        held 0a TooYoung, next 0a on 2026-08-06
        type m5.large held back 0a
        ",
    );
}

#[test]
fn windows_falls_back_by_names() {
    check(
        "
        image 0a win2022-2026.07.30 amazon x86_64 2d
        image 0b win2022-2026.07.14 amazon x86_64 18d
        pointer win2022 0b@18d 0a@2d
        min 7d
        term alias=windows2022@latest
        show requirements
        ",
        "
        0b chosen, next 0a on 2026-08-06 [arch In amd64; kubernetes.io/os In windows; node.kubernetes.io/windows-build In 10.0.20348]
        0a TooYoung (until 2026-08-06)
        ",
    );
}

#[test]
fn a_known_public_path_falls_back_and_another_version_of_it_does_not() {
    let world = "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260722 amazon x86_64 9d
        pointer al2023 0b@9d 0a@2d
        min 7d
        ";
    let path = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";
    let both = "0b chosen, next 0a on 2026-08-06\n0a TooYoung (until 2026-08-06)";
    check(&format!("{world}\nterm ssm={path}"), both);
    check(&format!("{world}\nterm ssm=arn:aws:ssm:us-east-1::parameter{path}"), both);
    check(
        &format!("{world}\nterm ssm={path}:2"),
        "0a TooYoung (until 2026-08-06)\nheld 0a TooYoung, next 0a on 2026-08-06",
    );
}

#[test]
fn without_its_pointer_the_newest_of_the_history_stands_and_warns() {
    let answer = World::read(
        "
        image 0a al2023-v20260730 amazon x86_64 9d
        image 0b al2023-v20260730 amazon arm64 9d
        pointer al2023/arm64 0b@9d
        term alias=al2023@latest
        ",
    )
    .answer();
    assert!(answer.contains("0a chosen"), "{answer}");
    assert!(
        answer.contains(
            "x86_64/standard/recommended/image_id, so the newest release of the history stands"
        ),
        "{answer}"
    );
}

#[test]
fn an_alias_without_a_version_of_kubernetes_names_the_flag() {
    check(
        "
        kubernetes none
        term alias=al2023@latest
        ",
        "problem 1: an alias follows the cluster's version; pass --kubernetes, for example 1.35",
    );
}

#[test]
fn al2_ends_with_1_32_and_windows_2025_begins_with_1_35() {
    check(
        "kubernetes 1.33\nterm alias=al2@latest",
        "problem 1: AL2 aliases are no longer supported on EKS 1.33+, and this cluster is 1.33; use al2023@latest",
    );
    check(
        "kubernetes 1.34\nterm alias=windows2025@latest",
        "problem 1: Windows Server 2025 requires EKS version 1.35 or higher, current version: 1.34",
    );
}

// ---- deprecated, withdrawn, gone ----

#[test]
fn a_deprecated_image_is_the_last_choice_of_names_tags_and_ids() {
    for term in ["name=golden-*", "tag:stage=prod", "tag:stage=*", "tag:stage=p?od*"] {
        check(
            &format!(
                "
                image 0a golden-1.35-b self x86_64 100d deprecated=2d tag:stage=prod
                image 0b golden-1.35-a self x86_64 200d tag:stage=prod
                term {term}
                "
            ),
            "
            0b chosen
            0a Superseded (by 0b)
            ",
        );
    }
    for term in ["name=golden-*", "tag:stage=prod", "id=0a", "ssm=/golden"] {
        let world = format!(
            "
            image 0a golden-1.35-b self x86_64 100d deprecated=2d tag:stage=prod
            param /golden 50d = 0a
            term {term}
            "
        );
        check(
            &world,
            "
            0a chosen, deprecated
            warning: 0a is deprecated since 2026-07-30 and was chosen for want of another
            ",
        );
        check(
            &format!("{world}\npolicy p deprecated=forbidden"),
            "
            0a Deprecated (policy p)
            held 0a Deprecated
            ",
        );
    }
}

#[test]
fn a_deprecation_date_that_cannot_be_read_may_have_passed() {
    check(
        "
        image 0a golden-1.35-b self x86_64 10d deprecated=unreadable
        image 0b golden-1.35-a self x86_64 20d deprecated=+3d
        term name=golden-*
        ",
        "
        0b chosen
        0a Superseded (by 0b)
        ",
    );
}

#[test]
fn a_deprecated_release_is_never_the_fallback_of_an_alias() {
    let world = "
        image 0a al2023-v20260730 amazon x86_64 2d
        image 0b al2023-v20260101 amazon x86_64 200d deprecated=20d
        pointer al2023 0b@200d 0a@2d
        ";
    check_alias(
        &format!("{world}\nmin 7d"),
        "
        0a TooYoung (until 2026-08-06)
        0b Deprecated (no fallback)
        held 0a TooYoung, next 0a on 2026-08-06
        ",
    );
    check_alias(world, "0a chosen\n0b Deprecated (no fallback)");
}

#[test]
fn not_deprecated_counts_across_requirement_sets() {
    check(
        "
        image 0a golden-1.35-b self x86_64 100d deprecated=2d
        image 0b silver-1.35-a self x86_64 200d
        term name=golden-* req:aws/cpu=Gt:1
        term name=silver-*
        types m5.large
        ",
        "
        0b chosen
        0a chosen, deprecated
        type m5.large boots 0b
        warning: 0a is deprecated since 2026-07-30 and was chosen for want of another
        warning: terms 1 and 2 overlap on 1 instance type, for example m5.large; the first of the chosen images wins there
        ",
    );
}

#[test]
fn what_is_gone_hidden_or_not_ready_does_not_boot() {
    check(
        "
        image 01 golden-1.35-a self x86_64 100d state=pending
        image 02 golden-1.35-b self x86_64 100d state=disabled
        image 03 golden-1.35-c self x86_64 100d state=deregistered
        image 04 golden-1.35-d self x86_64 100d unlisted=1d
        image 05 golden-1.35-e self x86_64 100d gone=1d
        image 06 golden-1.35-f self x86_64 100d disallowed
        image 07 golden-1.35-g self i386 100d
        term name=golden-*
        ",
        "
        01 Unready
        02 Disabled
        03 Deregistered
        04 NotVisible
        05 Deregistered
        06 NotAllowedByAccount
        07 UnsupportedArchitecture (i386)
        held 06 NotAllowedByAccount
        ",
    );
}

// ---- owners ----

#[test]
fn a_foreign_newer_image_of_the_same_name_does_not_win() {
    check(
        "
        image 0a golden-1.35 foreign x86_64 1d
        image 0b golden-1.35 self x86_64 30d
        image 0c golden-1.35 lookalike x86_64 40d
        image 0d golden-1.35 market x86_64 2d
        image 0e golden-1.35 unknown x86_64 2d
        term name=golden-*
        ",
        "
        0b chosen
        0a WrongOwner (self and amazon by default)
        0c Superseded (by 0b)
        0d WrongOwner (self and amazon by default)
        0e WrongOwner (self and amazon by default)
        ",
    );
}

#[test]
fn who_names_an_owner_means_it() {
    for (owner, chosen) in
        [("666666666666", "0a"), ("self", "0b"), ("amazon", "0c"), ("aws-marketplace", "0d")]
    {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 foreign x86_64 1d
            image 0b golden-1.35 self x86_64 30d
            image 0c golden-1.35 amazon x86_64 40d
            image 0d golden-1.35 market x86_64 50d
            term name=golden-* owner={owner}
            "
        ))
        .answer();
        assert!(answer.starts_with(&format!("{chosen} chosen")), "{owner}: {answer}");
        assert_eq!(answer.matches(&format!("WrongOwner (term says {owner})")).count(), 3);
    }
}

#[test]
fn an_owner_beside_an_id_or_a_parameter_holds_too() {
    for term in ["id=0a owner=self", "ssm=/golden owner=self", "tag:stage=* owner=self"] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 foreign x86_64 1d tag:stage=prod
            param /golden 1d = 0a
            term {term}
            "
        ))
        .answer();
        assert_eq!(answer, "0a WrongOwner (term says self)\n", "{term}");
    }
}

#[test]
fn without_an_account_nothing_is_one_s_own() {
    check(
        "
        account none
        image 0a golden-1.35 self x86_64 1d
        term name=golden-*
        ",
        "0a WrongOwner (account unknown)",
    );
}

#[test]
fn a_tag_has_no_default_owner_but_policy_s_owners_hold() {
    let world = "
        image 0a golden-1.35-b foreign x86_64 1d tag:stage=prod
        image 0b golden-1.35-a self x86_64 30d tag:stage=prod
        term tag:stage=prod
        ";
    check(world, "0a chosen\n0b Superseded (by 0a)");
    check(&format!("{world}\npolicy p owners=self,amazon"), "0b chosen\n0a WrongOwner (policy p)");
    check(
        &format!("{world}\npolicy p owners="),
        "
        0a WrongOwner (policy p)
        0b WrongOwner (policy p)
        held 0a WrongOwner
        ",
    );
    // Every policy's list holds.
    check(
        &format!("{world}\npolicy p owners=self,666666666666\npolicy q owners=666666666666"),
        "0a chosen\n0b WrongOwner (policy q)",
    );
}

#[test]
fn policy_s_owners_hold_for_aliases_ids_and_parameters() {
    for term in ["id=0a", "ssm=/golden", "alias=al2023@v20260722"] {
        let answer = World::read(&format!(
            "
            image 0a al2023-v20260722 amazon x86_64 9d
            pointer al2023 0a@9d
            param /golden 1d = 0a
            policy p owners=self
            term {term}
            "
        ))
        .answer();
        assert!(
            answer.starts_with("0a WrongOwner (policy p)\nheld 0a WrongOwner"),
            "{term}: {answer}"
        );
    }
}

// ---- allowed, quarantined ----

#[test]
fn allowed_images_are_ids_or_names() {
    check(
        "
        image 0a golden-1.35-b self x86_64 1d
        image 0b golden-1.35-a self x86_64 30d
        image 0c silver-1.35 self x86_64 3d
        image 0d silver-1.35-x self x86_64 2d
        policy p allow=id:0b allow=silver-?.3?
        policy q allow=*
        term name=*
        ",
        "
        0c chosen
        0a NotAllowedByPolicy (p)
        0b Superseded (by 0c)
        0d NotAllowedByPolicy (p)
        ",
    );
    check(
        "
        image 0a golden-1.35-b self x86_64 1d
        image 0b golden-1.35-a self x86_64 30d
        policy p allow=golden-*
        policy q allow=id:0b
        term name=*
        ",
        "
        0b chosen
        0a NotAllowedByPolicy (q)
        ",
    );
}

#[test]
fn a_quarantine_is_by_id_name_or_version_and_ends() {
    for (which, until, held) in [
        ("id:0a", "", true),
        ("id:0b", "", false),
        ("name:amazon-eks-node-al2023-*", "", true),
        ("name:amazon-eks-node-1.*", "", false),
        ("version:v20260722", "", true),
        ("version:20260722", "", true),
        ("version:v202607*", "", true),
        ("version:v20260721", "", false),
        ("id:0a", "until=+1h", true),
        ("id:0a", "until=0h", false),
        ("id:0a", "until=1h", false),
    ] {
        let answer = World::read(&format!(
            "
            image 0a al2023-v20260722 amazon x86_64 9d
            term id=0a
            quarantine q {which} {until}
            "
        ))
        .answer();
        assert_eq!(answer.starts_with("0a Quarantined (q"), held, "{which} {until}: {answer}");
    }
}

#[test]
fn a_bottlerocket_version_is_quarantined_in_both_spellings() {
    for pattern in ["v1.52.0", "1.52.0", "1.52.*"] {
        let answer = World::read(&format!(
            "
            image 0a br-1.52.0 bottlerocket x86_64 9d
            term id=0a
            quarantine q version:{pattern}
            "
        ))
        .answer();
        assert!(answer.starts_with("0a Quarantined (q)"), "{pattern}: {answer}");
    }
}

/// Whoever writes a version means all images of it, whatever they are called.
#[test]
fn a_version_in_quarantine_holds_images_with_names_of_ones_own() {
    for (name, pattern, held) in [
        ("golden-arm64-v20261101", "v20261101", true),
        ("golden-arm64-v20261101", "20261101", true),
        ("golden_al2023_20261101", "v20261101", true),
        ("golden-v3-final", "v3", true),
        ("golden-v20261101", "v20261102", false),
        // Neither the kubelet's version nor what stands before the last word is the image's own.
        ("golden-1.33-v20261101", "1.*", false),
        ("golden-3-arm64", "3", false),
    ] {
        let answer = World::read(&format!(
            "
            image 0a {name} self x86_64 9d
            term id=0a
            quarantine q version:{pattern}
            "
        ))
        .answer();
        assert_eq!(answer.starts_with("0a Quarantined (q)"), held, "{name} {pattern}: {answer}");
    }
}

#[test]
fn an_image_in_two_quarantines_is_free_when_both_have_ended() {
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        quarantine a id:0a until=+1d
        quarantine b name:golden-* until=+5d
        term name=golden-*
        ",
        "
        0a Quarantined (a until 2026-08-02) + Quarantined (b until 2026-08-06)
        held 0a Quarantined, next 0a on 2026-08-06
        ",
    );
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        quarantine a id:0a until=+1d
        quarantine b name:golden-*
        term name=golden-*
        ",
        "
        0a Quarantined (a until 2026-08-02) + Quarantined (b)
        held 0a Quarantined
        ",
    );
}

#[test]
fn a_quarantined_release_gives_way_to_the_one_before() {
    check_alias(
        "
        image 0a al2023-v20260730 amazon x86_64 9d
        image 0b al2023-v20260722 amazon x86_64 19d
        pointer al2023 0b@19d 0a@9d
        quarantine q version:v20260730 until=+3d
        ",
        "
        0b chosen, next 0a on 2026-08-04
        0a Quarantined (q until 2026-08-04)
        ",
    );
}

// ---- kubelet skew ----

#[test]
fn no_kubelet_is_newer_than_the_api_server() {
    check(
        "
        image 0a golden-1.36 self x86_64 1d
        image 0b golden-1.35 self x86_64 2d
        image 0c golden-1.34 self x86_64 3d
        image 0d golden-b self x86_64 4d tag:kubernetes_version=1.36.1
        image 0e golden-a self x86_64 5d
        term name=golden-*
        ",
        "
        0b chosen
        0a KubeletTooNew (1.36)
        0c Superseded (by 0b)
        0d KubeletTooNew (1.36)
        0e Superseded (by 0b)
        ",
    );
    check(
        "
        image 0a golden-a self x86_64 1d
        term name=golden-*
        ",
        "
        0a chosen
        warning: the kubelet version of 0a (golden-a) is not known, so it was not compared with the API server's
        ",
    );
}

// ---- parameters ----

#[test]
fn a_parameter_s_requirements_narrow_and_the_term_s_beat_them_key_by_key() {
    check(
        r#"
        image 0a golden-1.35 self x86_64 9d
        param /golden 9d = {"id": "$0a", "requirements": [{"key": "example.com/driver", "operator": "In", "values": ["550"]}, {"key": "example.com/fips", "operator": "Exists"}]}
        term ssm=/golden req:example.com/driver=In:570
        show requirements
        "#,
        "
        0a chosen [example.com/driver In 570; example.com/fips Exists; arch In amd64]
        ",
    );
}

#[test]
fn what_contradicts_the_image_is_told_and_the_image_stands() {
    check(
        r#"
        image 0a golden-1.35 self x86_64 9d
        param /golden 9d = {"id": "$0a", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}
        term ssm=/golden
        show requirements
        "#,
        "
        0a chosen [arch In amd64]
        warning: term 1: `kubernetes.io/arch` arm64 contradicts what 0a itself requires (amd64), which stands
        ",
    );
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        term name=golden-* req:arch=In:amd64,arm64
        show requirements
        ",
        "0a chosen [arch In amd64]",
    );
}

#[test]
fn a_term_may_ask_an_alias_for_more_gpus_and_never_for_another_processor() {
    check_alias(
        "
        image 0a al2023-nvidia-v20260722 amazon x86_64 9d
        pointer al2023/nvidia 0a@9d
        term alias=al2023@latest req:aws/gpu-count=Gt:3 req:arch=In:arm64
        types g5.xlarge g5.12xlarge
        show requirements
        ",
        "
        0a chosen [aws/gpu-count Gte 4; aws/gpu-manufacturer In nvidia; arch In amd64]
        type g5.12xlarge boots 0a
        type g5.xlarge boots nothing; 0a but for karpenter.k8s.aws/instance-gpu-count: image needs ≥ 4, type has 1
        warning: term 1: `kubernetes.io/arch` arm64 contradicts what 0a itself requires (amd64), which stands
        ",
    );
}

#[test]
fn a_contradiction_is_told_of_the_image_that_was_chosen_and_not_of_its_whole_history() {
    check_alias(
        "
        image 0a al2023-v20260722 amazon x86_64 9d
        image 0b al2023-v20260715 amazon x86_64 16d
        image 0c al2023-v20260708 amazon x86_64 23d
        pointer al2023 0c@23d 0b@16d 0a@9d
        term alias=al2023@latest req:aws/gpu-count=Gt:3
        ",
        "
        0a chosen
        0b Superseded (by 0a)
        0c Superseded (by 0a)
        warning: term 1: `karpenter.k8s.aws/instance-gpu-count` ≥ 4 contradicts what 0a itself requires (none), which stands
        ",
    );
}

#[test]
fn a_value_that_cannot_be_read_changes_nothing_and_is_told() {
    check(
        "
        image 0a golden-1.35-b self x86_64 2d
        image 0b golden-1.35-a self x86_64 9d
        param /golden 9d = 0b
        param /golden 2d = ami-nonsense
        term ssm=/golden
        ",
        "
        0b chosen
        warning: the newest value of /golden is refused as a whole (`ami-nonsense` is not an image id; write `ami-` and 8 or 17 of the digits 0-9 and a-f); the last good one stands: 0b
        ",
    );
    check(
        "
        param /golden 2d = hello
        term ssm=/golden
        ",
        "problem 1: the value of /golden is refused as a whole: `hello` is neither an image id nor JSON with `id` and `requirements`",
    );
}

#[test]
fn a_parameter_s_value_is_read_strictly_and_as_a_whole() {
    let good = "ami-0000000a";
    let long = format!("{{\"id\": \"{good}\"{}}}", " ".repeat(8192));
    let many = format!(
        r#"{{"id": "{good}", "requirements": [{}]}}"#,
        vec![r#"{"key": "a", "operator": "Exists"}"#; 31].join(",")
    );
    for (text, expected) in [
        ("ami-0000000a", ""),
        (" ami-0000000a\n", ""),
        (r#"{"id": "ami-0000000a"}"#, ""),
        (r#"{"id": "ami-0000000a", "requirements": []}"#, ""),
        (r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "operator": "Exists"}]}"#, ""),
        (r#"{"requirements": []}"#, "missing field `id`"),
        (r#"{"id": "ami-0000000a", "id": "ami-0000000b"}"#, "duplicate field `id`"),
        (r#"{"id": "ami-0000000a", "ids": []}"#, "unknown field `ids`"),
        (r#"{"id": "ami-0000000a", "requirements": null}"#, "invalid type: null"),
        (r#"{"id": 7}"#, "invalid type"),
        (r#"{"id": "ami-0000000a"} x"#, "trailing characters"),
        (r#"{"id": "ami-0000000a""#, "EOF"),
        (r#"{"id": "golden"}"#, "is not an image id"),
        (r#"["ami-0000000a"]"#, "neither an image id nor JSON"),
        ("", "neither an image id nor JSON"),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "operator": "In", "values": [4]}]}"#,
            "invalid type",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "operator": "in", "values": ["4"]}]}"#,
            "requirements[0]",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "operator": "Exists", "minValues": 2}]}"#,
            "unknown field `minValues`",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "key": "b", "operator": "Exists"}]}"#,
            "duplicate field `key`",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "a", "operator": "Exists"}, {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]}"#,
            "requirements[1]: an image has no `topology.kubernetes.io/zone`",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]}"#,
            "an image has no",
        ),
        (
            r#"{"id": "ami-0000000a", "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}"#,
            "an image has no `karpenter.sh/capacity-type`",
        ),
        (long.as_str(), "bytes, and a parameter at most 8192"),
        (many.as_str(), "31 requirements"),
    ] {
        match read_value(text) {
            Ok(value) => {
                assert_eq!(expected, "", "{text}");
                assert_eq!(value.id.as_str(), good);
            }
            Err(error) => {
                assert!(!expected.is_empty(), "{text}: {error}");
                assert!(error.to_string().contains(expected), "{text}: {error}");
            }
        }
    }
}

#[test]
fn could_not_ask_and_is_not_there_are_different() {
    check(
        "
        asked parameter=/golden = throttled 1d
        term ssm=/golden
        ",
        "problem 1: could not ask for /golden: throttled on 2026-07-31, and it was never answered before",
    );
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        param /golden 9d = 0a
        asked parameter=/golden = throttled 1d
        term ssm=/golden
        ",
        "
        0a chosen
        warning: could not ask for /golden (throttled on 2026-07-31); what was known before stands
        ",
    );
    check(
        "term ssm=/golden",
        "problem 1: the catalog does not hold /golden; add the output of `aws ssm get-parameters --names /golden`",
    );
    // Another query that would have listed it was answered since.
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        param /org/golden 9d = 0a
        asked path=/org = throttled 2d
        asked parameter=/org/golden = complete 1d
        term ssm=/org/golden
        ",
        "0a chosen",
    );
}

#[test]
fn a_term_that_finds_nothing_because_nobody_answered_says_so() {
    check(
        "
        asked owner=self,name=golden-* = denied 1d
        term name=golden-*
        ",
        "problem 1: could not ask for owner=self,name=golden-*: denied on 2026-07-31, and it was never answered before",
    );
    check(
        "
        asked owner=self,name=golden-* = complete 1d
        term name=golden-*
        ",
        "problem 1: the term matches no image of the catalog",
    );
}

#[test]
fn an_image_that_a_parameter_names_and_the_catalog_lacks_is_told() {
    check(
        "
        param /golden 9d = 0a
        term ssm=/golden
        term id=0b
        ",
        "
        problem 1: /golden names 0a, which the catalog does not hold; add the output of `aws ec2 describe-images --image-ids 0a`
        problem 2: the catalog does not hold 0b; add the output of `aws ec2 describe-images --image-ids 0b`
        ",
    );
}

#[test]
fn a_step_back_of_one_s_own_parameter_withdraws_only_what_nothing_else_names() {
    let world = "
        image 0a golden-1.35-b self x86_64 2d
        image 0b golden-1.35-a self x86_64 9d
        param /test/golden 9d = 0b
        param /test/golden 2d = 0a
        param /test/golden 1d = 0b
        term id=0a
        ";
    check(world, "0a Withdrawn (pointer moved back to 0b)\nheld 0a Withdrawn");
    check(&format!("{world}\nparam /prod/golden 1d = 0a"), "0a chosen");
}

#[test]
fn a_step_back_of_one_s_own_parameter_does_not_withdraw_what_is_recommended() {
    check_alias(
        "
        image 0a al2023-v20260722 amazon x86_64 9d
        image 0b al2023-v20260715 amazon x86_64 16d
        pointer al2023 0b@16d 0a@9d
        param /test/golden 9d = 0a
        param /test/golden 2d = 0b
        ",
        "
        0a chosen
        0b Superseded (by 0a)
        ",
    );
}

// ---- terms ----

#[test]
fn fields_of_a_term_all_hold() {
    check(
        "
        image 0a golden-1.35-c self x86_64 1d tag:stage=prod
        image 0b golden-1.35-b self x86_64 2d tag:stage=prod tag:team=web
        image 0c silver-1.35-a self x86_64 1d tag:stage=prod tag:team=web
        image 0d golden-1.35-a self x86_64 1d tag:stage=test tag:team=web
        term name=golden-* tag:stage=prod tag:team=*
        ",
        "0b chosen",
    );
    check(
        "
        image 0a golden-1.35 self x86_64 1d
        param /golden 1d = 0a
        term ssm=/golden name=silver-*
        term id=0a tag:stage=prod
        ",
        "
        problem 1: the term matches no image of the catalog
        problem 2: the term matches no image of the catalog
        ",
    );
}

#[test]
fn any_of_the_terms_may_lead_to_an_image() {
    check(
        "
        image 0a golden-1.35 self x86_64 3d
        image 0b silver-1.35 self x86_64 2d
        image 0c bronze-1.35 self x86_64 1d
        term name=golden-*
        term name=silver-*
        term name=tin-*
        ",
        "
        0b chosen
        0a Superseded (by 0b)
        problem 3: the term matches no image of the catalog
        ",
    );
}

#[test]
fn an_image_that_one_term_refuses_and_another_chooses_is_chosen() {
    check(
        "
        image 0a golden-1.35 foreign x86_64 3d
        term name=golden-*
        term name=golden-* owner=666666666666
        ",
        "0a chosen",
    );
}

#[test]
fn an_image_that_all_terms_refuse_is_told_by_the_gate_it_came_nearest_to() {
    check(
        "
        image 0a golden-1.35 foreign x86_64 3d
        min 7d
        term name=golden-*
        term name=golden-* owner=666666666666
        ",
        "
        0a TooYoung (until 2026-08-05)
        held 0a TooYoung, next 0a on 2026-08-05
        ",
    );
}

#[test]
fn two_terms_of_one_processor_with_different_requirements_both_live() {
    check(
        "
        image 0a gpu-1.35 self x86_64 1d
        image 0b plain-1.35 self x86_64 20d
        term name=gpu-* req:aws/gpu-count=Exists
        term name=plain-* req:aws/gpu-count=DoesNotExist
        types m5.large g5.xlarge m7g.large
        show requirements
        ",
        "
        0a chosen [aws/gpu-count Exists; arch In amd64]
        0b chosen [aws/gpu-count DoesNotExist; arch In amd64]
        type g5.xlarge boots 0a
        type m5.large boots 0b
        type m7g.large boots nothing; 0b but for kubernetes.io/arch: image needs amd64, type has arm64
        ",
    );
}

#[test]
fn terms_that_overlap_are_told() {
    check(
        "
        image 0a gpu-1.35 self x86_64 1d
        image 0b plain-1.35 self x86_64 20d
        term name=gpu-* req:aws/gpu-count=Exists
        term name=plain-*
        types m5.large g5.xlarge g5.12xlarge
        ",
        "
        0a chosen
        0b chosen
        type g5.12xlarge boots 0a
        type g5.xlarge boots 0a
        type m5.large boots 0b
        warning: terms 1 and 2 overlap on 2 instance types, for example g5.12xlarge; the first of the chosen images wins there
        ",
    );
}

#[test]
fn terms_that_overlap_by_what_a_pool_adds_are_told_too() {
    check(
        "
        image 0a licensed-1.35 self x86_64 1d
        image 0b plain-1.35 self x86_64 20d
        term name=licensed-* req:example.com/licence=In:db
        term name=plain-*
        pool db example.com/licence=db
        types m5.large
        ",
        "
        0a chosen
        0b chosen
        type db/m5.large boots 0a
        warning: terms 1 and 2 overlap on 1 instance type, for example m5.large; the first of the chosen images wins there
        ",
    );
}

#[test]
fn a_wildcard_that_chose_a_pre_release_warns() {
    for (called, term, warned) in [
        ("golden-1.35-rc1", "name=golden-*", true),
        ("golden-1.35-beta.2", "name=golden-*", true),
        ("golden-1.35-nightly-20260801", "tag:stage=*", true),
        ("golden-1.35-rc1", "name=golden-1.35-rc1", false),
        ("golden-1.35-rc1", "id=0a", false),
        ("golden-1.35-arctic", "name=golden-*", false),
        ("golden-1.35-developer", "name=golden-*", false),
    ] {
        let answer = World::read(&format!(
            "
            image 0a {called} self x86_64 1d tag:stage=prod
            term {term}
            "
        ))
        .answer();
        assert_eq!(answer.contains("looks like a pre-release"), warned, "{called} {term}");
    }
}

#[test]
fn ties_are_broken_by_the_greater_name_and_then_by_the_smaller_id() {
    check(
        "
        image 0c golden-1.35-a self x86_64 1d
        image 0b golden-1.35-b self x86_64 1d
        image 0a golden-1.35-b self x86_64 1d
        term name=golden-*
        ",
        "
        0a chosen
        0b Superseded (by 0a)
        0c Superseded (by 0a)
        ",
    );
}

// ---- variants ----

const AL2023: &str = "
    image 0a al2023-v20260722 amazon x86_64 9d
    image 0b al2023-v20260722 amazon arm64 9d
    image 0c al2023-nvidia-v20260722 amazon x86_64 9d
    image 0d al2023-nvidia-v20260722 amazon arm64 9d
    image 0e al2023-neuron-v20260722 amazon x86_64 9d
    pointer al2023 0a@9d
    pointer al2023/arm64 0b@9d
    pointer al2023/nvidia 0c@9d
    pointer al2023/arm64/nvidia 0d@9d
    pointer al2023/neuron 0e@9d
    term alias=al2023@latest
    ";

#[test]
fn variants_go_by_manufacturer() {
    check(
        &format!(
            "{AL2023}
            types m5.large m7g.large g5.xlarge g5g.xlarge inf2.xlarge g6f.large g4ad.xlarge dl2q.24xlarge
            "
        ),
        "
        0a chosen
        0c chosen
        0e chosen
        0b chosen
        0d chosen
        type dl2q.24xlarge boots nothing; 0e but for karpenter.k8s.aws/instance-accelerator-manufacturer: image needs aws, type has qualcomm
        type g4ad.xlarge boots nothing; 0c but for karpenter.k8s.aws/instance-gpu-manufacturer: image needs nvidia, type has amd
        type g5.xlarge boots 0c
        type g5g.xlarge boots 0d
        type g6f.large boots 0c
        type inf2.xlarge boots 0e
        type m5.large boots 0a
        type m7g.large boots 0b
        ",
    );
}

#[test]
fn al2_s_gpu_image_serves_two_variants() {
    check(
        "
        kubernetes 1.32
        image 0a amazon-eks-node-1.32-v20260722 amazon x86_64 9d
        image 0b amazon-eks-arm64-node-1.32-v20260722 amazon arm64 9d
        image 0c amazon-eks-gpu-node-1.32-v20260722 amazon x86_64 9d
        image 0d amazon-eks-gpu-node-1.32-v20260715 amazon x86_64 16d
        pointer al2 0a@9d
        pointer al2/arm64 0b@9d
        pointer al2/gpu 0d@16d 0c@9d
        term alias=al2@latest
        types m5.large m7g.large g5.xlarge inf2.xlarge
        show requirements
        ",
        "
        0a chosen [aws/accelerator-count DoesNotExist; aws/gpu-count DoesNotExist; arch In amd64]
        0c chosen [aws/accelerator-count Exists; aws/accelerator-manufacturer In aws; arch In amd64]
        0c chosen [aws/gpu-count Exists; aws/gpu-manufacturer In nvidia; arch In amd64]
        0b chosen [aws/accelerator-count DoesNotExist; aws/gpu-count DoesNotExist; arch In arm64]
        0d Superseded (by 0c)
        type g5.xlarge boots 0c
        type inf2.xlarge boots 0c
        type m5.large boots 0a
        type m7g.large boots 0b
        ",
    );
}

#[test]
fn bottlerocket_s_plain_image_serves_neuron_too() {
    check(
        "
        image 0a br-1.52.0 bottlerocket x86_64 9d
        image 0b br-1.52.0 bottlerocket arm64 9d
        image 0c br-nvidia-1.52.0 bottlerocket x86_64 9d
        image 0d br-nvidia-1.52.0 bottlerocket arm64 9d
        pointer br 0a@9d
        pointer br/arm64 0b@9d
        pointer br/nvidia 0c@9d
        pointer br/arm64/nvidia 0d@9d
        term alias=bottlerocket@latest
        types m5.large m7g.large g5.xlarge inf2.xlarge
        ",
        "
        0a chosen
        0a chosen
        0c chosen
        0d chosen
        0b chosen
        type g5.xlarge boots 0c
        type inf2.xlarge boots 0a
        type m5.large boots 0a
        type m7g.large boots 0b
        ",
    );
}

// ---- hardware ----

#[test]
fn what_an_image_needs_of_the_hardware_counts_like_a_requirement() {
    for (flags, name, misses) in [
        ("boot=uefi", "m5.large", ""),
        ("boot=legacy-bios", "m5.large", ""),
        ("boot=uefi-preferred", "t2.micro", ""),
        ("boot=uefi", "t2.micro", "boot mode: image needs uefi, type has legacy-bios"),
        ("boot=quantum", "m5.large", "boot mode: image needs quantum, type has legacy-bios, uefi"),
        ("tpm boot=uefi", "m5.large", ""),
        ("tpm", "t2.micro", "TPM: image needs NitroTPM, type has none"),
        ("virt=hvm", "m5.large", ""),
        ("virt=paravirtual", "m5.large", "virtualisation: image needs paravirtual, type has hvm"),
        ("root=ebs", "m5.large", ""),
        (
            "root=instance-store",
            "m5.large",
            "root device: image needs instance-store, type has ebs",
        ),
        ("noena", "m5.large", "ENA: image needs a machine without it, type has required"),
        ("noena", "t2.micro", ""),
        ("only=m5.*", "m5.large", ""),
        (
            "only=c5.*",
            "m5.large",
            "instance type: image needs instance types c5.*, type has m5.large",
        ),
        (
            "not=m5.*",
            "m5.large",
            "instance type: image needs instance types other than m5.*, type has m5.large",
        ),
        ("not=c5.*", "m5.large", ""),
    ] {
        let answer = World::read(&format!(
            "
            image 0a golden-1.35 self x86_64 1d {flags}
            term name=golden-*
            types {name}
            "
        ))
        .answer();
        let expected = if misses.is_empty() {
            format!("0a chosen\ntype {name} boots 0a\n")
        } else {
            format!("0a chosen\ntype {name} boots nothing; 0a but for {misses}\n")
        };
        assert_eq!(answer, expected, "{flags} on {name}");
    }
}

#[test]
fn an_older_image_lives_where_the_newer_one_cannot_boot() {
    check(
        "
        image 0a golden-1.35-c self x86_64 1d boot=uefi
        image 0b golden-1.35-b self x86_64 2d boot=legacy-bios
        image 0c golden-1.35-a self x86_64 3d boot=legacy-bios
        term name=golden-*
        types m5.large t2.micro
        ",
        "
        0a chosen
        0b chosen
        0c Superseded (by 0b)
        type m5.large boots 0a
        type t2.micro boots 0b
        ",
    );
    check(
        "
        image 0a golden-1.35-c self x86_64 1d
        image 0b golden-1.35-b self x86_64 2d boot=legacy-bios only=t2.*
        image 0c golden-1.35-a self x86_64 3d not=m5.* tpm
        term name=golden-*
        types m5.large t2.micro
        ",
        "
        0a chosen
        0b Superseded (by 0a)
        0c Superseded (by 0a)
        type m5.large boots 0a
        type t2.micro boots 0a
        ",
    );
}

// ---- pools ----

#[test]
fn keys_that_no_type_has_are_the_pool_s() {
    let world = "
        image 0a licensed-1.35 self x86_64 1d
        term name=licensed-* req:example.com/licence=In:db,erp
        types m5.large
        ";
    check(
        world,
        "
        0a chosen
        type m5.large boots nothing; 0a but for example.com/licence: image needs db or erp, type has none
        ",
    );
    check(
        &format!(
            "{world}
            pool a example.com/licence=db
            pool b example.com/licence=web
            pool c req:example.com/licence=In:erp,web
            pool d
            pool e req:example.com/licence=DoesNotExist
            "
        ),
        "
        0a chosen
        type a/m5.large boots 0a
        type b/m5.large boots nothing; 0a but for example.com/licence: image needs db or erp, type has web
        type c/m5.large boots 0a
        type d/m5.large boots nothing; 0a but for example.com/licence: image needs db or erp, type has none
        type e/m5.large boots nothing; 0a but for example.com/licence: image needs db or erp, type has none
        ",
    );
}

#[test]
fn a_pool_has_only_the_types_that_it_would_launch() {
    check(
        "
        image 0a golden-1.35 self x86_64 1d
        term name=golden-*
        pool arm req:arch=In:arm64
        pool big req:aws/cpu=Gt:7
        pool small req:aws/cpu=Lt:7 req:arch=In:amd64
        types m5.large m7g.large
        ",
        "
        0a chosen
        type arm/m7g.large boots nothing; 0a but for kubernetes.io/arch: image needs amd64, type has arm64
        type small/m5.large boots 0a
        ",
    );
}

#[test]
fn the_best_of_a_set_is_chosen_even_if_no_type_fits_it() {
    check(
        "
        image 0a golden-1.35 self arm64 1d
        term name=golden-*
        types m5.large
        ",
        "
        0a chosen
        type m5.large boots nothing; 0a but for kubernetes.io/arch: image needs arm64, type has amd64
        ",
    );
}

// ---- the answer in one word ----

#[test]
fn the_answer_is_found_or_held_back_or_no_match() {
    for (world, expected) in [
        ("image 0a golden-1.35 self x86_64 9d\nterm name=*", Answer::Found),
        ("image 0a golden-1.35 self x86_64 9d\nterm name=*\ntypes m7g.large", Answer::NoMatch),
        ("image 0a golden-1.35 self x86_64 1d\nterm name=*\nmin 7d", Answer::HeldBack),
        ("image 0a golden-1.35 self x86_64 1d\nterm name=*\nmin 7d\nin-use 0a", Answer::Found),
        ("image 0a golden-1.35 foreign x86_64 1d\nterm name=*", Answer::NoMatch),
        (
            "image 0a golden-1.35 self x86_64 9d\nterm name=*\npolicy p owners=amazon",
            Answer::HeldBack,
        ),
        ("term name=*", Answer::NoMatch),
        (
            "image 0a a-1.35 self x86_64 9d\nimage 0b b-1.35 self arm64 1d\nterm name=*\nmin 7d\ntypes m5.large m7g.large",
            Answer::HeldBack,
        ),
        (
            "image 0a a-1.35 self x86_64 9d\nimage 0b b-1.35 self arm64 1d\nterm name=*\nmin 7d\ntypes m5.large",
            Answer::Found,
        ),
    ] {
        let world = World::read(world);
        assert_eq!(world.resolve().answer(&world.types), expected, "{}", world.answer());
    }
}

#[test]
fn what_is_next_is_what_would_be_chosen_then() {
    // 0a will be old enough first, but it is deprecated and 0c is not.
    check(
        "
        image 0a golden-1.35-a self x86_64 6d deprecated=1d
        image 0c golden-1.35-c self x86_64 20d
        min 7d
        term name=golden-*
        ",
        "
        0c chosen
        0a TooYoung (until 2026-08-02)
        ",
    );
    // 0a and 0b will be old enough at the same time, and 0b is deprecated.
    check(
        "
        image 0a golden-1.35-a self x86_64 6d
        image 0b golden-1.35-b self x86_64 6d deprecated=1d
        min 7d
        term name=golden-*
        ",
        "
        0a TooYoung (until 2026-08-02)
        0b TooYoung (until 2026-08-02)
        held 0a TooYoung, next 0a on 2026-08-02
        ",
    );
    // What 0b could do 0a does already; 0c stays for what 0a cannot do.
    check(
        "
        image 0a golden-1.35-c self x86_64 1d only=m5.*
        image 0b golden-1.35-b self x86_64 1d only=m5.*
        image 0c golden-1.35-a self x86_64 1d
        quarantine q id:0b until=+2d
        term name=golden-*
        ",
        "
        0a chosen
        0c chosen
        0b Quarantined (q until 2026-08-03)
        ",
    );
    // 0b is older than what was chosen, and not deprecated.
    check(
        "
        image 0a golden-1.35-a self x86_64 100d deprecated=1d
        image 0b golden-1.35-b self x86_64 200d appeared=6d
        min 7d
        term name=golden-*
        ",
        "
        0a chosen, deprecated, next 0b on 2026-08-02
        0b TooYoung (until 2026-08-02 from first seen)
        warning: 0a is deprecated since 2026-07-31 and was chosen for want of another
        ",
    );
}

#[test]
fn an_image_in_use_that_no_term_matches_is_told() {
    check(
        "
        image 0a golden-1.35 self x86_64 9d
        image 0b silver-1.35 self x86_64 9d
        in-use 0b
        term name=golden-*
        ",
        "
        0a chosen
        warning: 0b is in use and no term matches it
        ",
    );
}

#[test]
fn each_term_says_what_it_makes_of_each_image() {
    let world = World::read(
        "
        image 0a golden-1.35 foreign x86_64 3d
        image 0b golden-1.35 self x86_64 9d
        term name=golden-*
        term name=golden-* owner=666666666666
        ",
    );
    let resolution = world.resolve();
    let told: Vec<Vec<String>> = support::verdicts(&resolution)
        .into_iter()
        .map(|term| term.into_iter().map(|(id, it)| format!("{id} {it}")).collect())
        .collect();
    assert_eq!(
        told,
        [
            vec![
                "ami-0000000a WrongOwner (self and amazon by default)",
                "ami-0000000b Superseded (by ami-0000000a)",
            ],
            vec!["ami-0000000a chosen", "ami-0000000b WrongOwner (term says 666666666666)"],
        ]
    );
}

#[test]
fn refusals_are_said_in_whole_sentences() {
    let world = World::read(
        "
        image 0a golden-1.35 self x86_64 2d
        image 0b golden-1.35 foreign x86_64 2d
        min 7d
        quarantine q id:0a until=+3d
        term name=golden-*
        ",
    );
    let resolution = world.resolve();
    let said: Vec<String> = resolution
        .refused
        .values()
        .flat_map(|it| std::iter::once(&it.refusal).chain(&it.also))
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        said,
        [
            "quarantined by `q`: kernel panics; until 2026-08-04T00:00:00Z",
            "too young until 2026-08-06T00:00:00Z: 7d after its creation on 2026-07-30T00:00:00Z",
            "owner 666666666666 is neither `self` nor `amazon`, which a name without an owner means",
            "too young until 2026-08-06T00:00:00Z: 7d after its creation on 2026-07-30T00:00:00Z",
        ]
    );
    assert_eq!(resolution.refused[&id("0a")].ends_at(), Some(time("2026-08-06")));
    assert_eq!(resolution.refused[&id("0b")].ends_at(), None);
}

/// An alias of which the catalog holds one flavour: what it says of the others is left out.
fn alias(world: &str) -> String {
    let world = if world.contains("term ") {
        world.to_owned()
    } else {
        format!("{world}\nterm alias=al2023@latest")
    };
    let lines: Vec<String> = World::read(&world)
        .answer()
        .lines()
        .filter(|it| !it.contains("the catalog does not hold /aws/service/"))
        .map(str::to_owned)
        .collect();
    lines.join("\n")
}

fn check_alias(world: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let answer = alias(world);
    assert_eq!(answer, expected.join("\n"), "\n--- answered ---\n{answer}\n---");
}

#[test]
fn nodes_go_on_with_what_a_parameter_named_before_while_its_image_may_not_boot() {
    let world = |min: &str| {
        format!(
            "
            image 0a golden-1.35-b self x86_64 2d
            image 0b golden-1.35-a self x86_64 30d
            image 0c golden-1.35-0 self x86_64 60d
            param /org/golden 60d = 0c
            param /org/golden 30d = 0b
            param /org/golden 2d = 0a
            min {min}
            term ssm=/org/golden
            in-use 0b
            "
        )
    };
    check(
        &world("7d"),
        "
        0b chosen, only in use, next 0a on 2026-08-06
        0a TooYoung (until 2026-08-06)
        ",
    );
    check(
        &world("1d"),
        "
        0a chosen
        0b NoLongerNamed
        ",
    );
}
