//! Did anything boot that policy refuses?
//!
//! Looked at when a machine is made for us: whose the image is, how old, whether somebody allows it, and whether
//! somebody has it in quarantine. Age counts by the world's clock, whatever a replica's own says.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::read::{self, at, items, matches, text};
use super::said::line_of;
use super::world::{Kept, World, class_key, known};
use super::{Found, Law, Setting};
use crate::trace::{Actor, Image, Machine, Step};

/// A launch is tried for so long; what was in use when it began may be gone when it succeeds.
const LAUNCH_LASTS: SignedDuration = SignedDuration::from_mins(30);

#[derive(Debug, Default)]
pub(super) struct Images {
    /// Made for us, and not yet described.
    awaited: BTreeSet<String>,
}

impl Images {
    pub(super) fn see_launch(
        &mut self,
        world: &World,
        setting: &Setting,
        machine: Option<&str>,
        made: bool,
        step: &Step,
        found: &mut Found,
    ) {
        let Some(id) = machine.filter(|_| made && matches!(step.by, Actor::Operator(_))) else {
            return;
        };
        match world.machines.get(id) {
            Some(machine) => check(world, setting, machine, step.at, found),
            None => {
                self.awaited.insert(id.to_owned());
            }
        }
    }

    pub(super) fn see_machine(
        &mut self,
        world: &World,
        setting: &Setting,
        machine: &Machine,
        step: &Step,
        found: &mut Found,
    ) {
        if self.awaited.remove(&machine.id) {
            check(world, setting, machine, step.at, found);
        }
    }
}

fn check(world: &World, setting: &Setting, machine: &Machine, now: Timestamp, found: &mut Found) {
    let Some(image) = world.images.get(&machine.image) else { return };
    let Some(claim) = world.claim_of_machine(machine) else { return };
    let class = class_key(&claim.object, &["spec", "nodeClassRef"]);
    let kept = world.others.get("EC2NodeClass").and_then(|it| it.get(&class));
    // Nobody could know of what was written a moment ago.
    let policies: Vec<(&str, &Kept)> =
        world.policies_of(&class).filter(|(_, it)| known(it.since, now)).collect();
    let quarantines: Vec<(&str, &Kept)> =
        world.all("ImageQuarantine").filter(|(_, it)| known(it.since, now)).collect();
    let rules = Rules {
        class: &class,
        kept,
        policies: &policies,
        quarantines: &quarantines,
        used_is_old_enough: true,
        as_remembered: false,
    };
    let refused = |it: &Image| rules.refusal(world, setting, it, now);
    // Another of its line could have booted, if nobody refused it.
    let like = |it: &&Image| it.launchable && line_of(&it.name) == line_of(&image.name);
    if world.images.values().filter(like).any(|it| refused(it).is_some()) {
        found.premise(Law::Image);
    }
    if let Some(why) = refused(image) {
        let what = format!("machine {} boots {} ({}): {why}", machine.id, image.id, image.name);
        found.broken(Law::Image, now, what);
    }
}

/// All that is said about what the nodes of a class may boot.
pub(super) struct Rules<'a> {
    pub(super) class: &'a str,
    pub(super) kept: Option<&'a Kept>,
    pub(super) policies: &'a [(&'a str, &'a Kept)],
    pub(super) quarantines: &'a [(&'a str, &'a Kept)],
    /// Age, and age only, does not hold for what nodes of the class run already.
    pub(super) used_is_old_enough: bool,
    /// Ages from when whoever decides first saw an image, which is some time after it came.
    pub(super) as_remembered: bool,
}

impl Rules<'_> {
    /// Why an image may not boot.
    pub(super) fn refusal(
        &self,
        world: &World,
        setting: &Setting,
        image: &Image,
        now: Timestamp,
    ) -> Option<String> {
        for (name, policy) in self.policies {
            let policy = &policy.object;
            if at(policy, &["spec", "owners"]).is_some()
                && !items(policy, &["spec", "owners"])
                    .filter_map(Value::as_str)
                    .any(|it| owns(it, image, setting))
            {
                return Some(format!("ImagePolicy {name} allows other owners only"));
            }
            if let Some(allowed) = at(policy, &["spec", "allowedImages"])
                && !items(allowed, &["ids"]).any(|it| it.as_str() == Some(&image.id))
                && !items(allowed, &["names"])
                    .filter_map(Value::as_str)
                    .any(|it| matches(it, &image.name))
            {
                return Some(format!("ImagePolicy {name} allows other images only"));
            }
        }
        let held = self.quarantines.iter().find(|(_, it)| quarantined(&it.object, image, now));
        if let Some((name, _)) = held {
            return Some(format!("ImageQuarantine {name} holds it"));
        }
        let ripe_at = self.ripe_at(world, image, now)?;
        Some(format!("it is too young until {ripe_at}"))
    }

    /// When it will be old enough, if it is not.
    fn ripe_at(&self, world: &World, image: &Image, now: Timestamp) -> Option<Timestamp> {
        let Rules { class, kept, policies, quarantines: _, used_is_old_enough, as_remembered } =
            *self;
        let used = world.in_use.get(&(class.to_owned(), image.id.clone()));
        if used_is_old_enough && used.is_some_and(|it| now.duration_since(*it) < LAUNCH_LASTS) {
            return None;
        }
        let excepted = |policy: &Value| {
            items(policy, &["spec", "exceptions"]).any(|it| {
                let until = text(it, &["until"]).and_then(moment);
                let which = text(it, &["image"]).unwrap_or_default();
                until.is_some_and(|it| now < it)
                    && (which == image.id || matches(which, &image.name))
            })
        };
        let says = |policies: &[(&str, &Kept)], key: &str, word: &str| {
            policies.iter().any(|(_, it)| text(&it.object, &["spec", key]) == Some(word))
        };
        let pinned = kept.is_some_and(|it| {
            items(&it.object, &["spec", "amiSelectorTerms"])
                .any(|it| text(it, &["id"]) == Some(&image.id))
        });
        if pinned
            && says(policies, "pinnedIds", "ExemptFromAge")
            && !says(policies, "pinnedIds", "HeldByAge")
        {
            return None;
        }
        let floors =
            policies.iter().filter(|(_, it)| !excepted(&it.object)).filter_map(|(_, it)| {
                text(&it.object, &["spec", "minimumAge"]).and_then(read::duration)
            });
        let lifted = policies.iter().any(|(_, it)| excepted(&it.object));
        let own = kept
            .filter(|it| !lifted && known(it.since, now))
            .and_then(|it| text(&it.object, &["spec", "amiMinimumAge"]).and_then(read::duration));
        let age = floors.chain(own).max().filter(SignedDuration::is_positive)?;
        let created_at = image.created_at?;
        let from_creation = says(policies, "ageFrom", "Creation")
            && !says(policies, "ageFrom", "CreationOrFirstSeen");
        let from = match world.appeared.get(&image.id) {
            Some(_) if !from_creation && as_remembered => {
                // Nobody knows how old somebody takes it for who has not written it down.
                created_at.max(world.remembered_since(&image.id).unwrap_or(Timestamp::MAX))
            }
            Some(seen) if !from_creation => created_at.max(*seen),
            Some(_) | None => created_at,
        };
        let ripe_at = from.saturating_add(age).unwrap_or(Timestamp::MAX);
        (ripe_at > now).then_some(ripe_at)
    }

    /// Whether it is in quarantine.
    pub(super) fn held(&self, image: &Image, now: Timestamp) -> bool {
        self.quarantines.iter().any(|(_, it)| quarantined(&it.object, image, now))
    }
}

fn owns(word: &str, image: &Image, setting: &Setting) -> bool {
    match word {
        "self" => setting.account.is_some() && image.owner == setting.account,
        word if word.bytes().all(|it| it.is_ascii_digit()) => image.owner.as_deref() == Some(word),
        word => image.owner_alias.as_deref() == Some(word),
    }
}

fn quarantined(quarantine: &Value, image: &Image, now: Timestamp) -> bool {
    let spec = |key: &str| text(quarantine, &["spec", key]);
    if spec("expiresAt").is_some_and(|it| moment(it).is_some_and(|it| it <= now)) {
        return false;
    }
    // A version is the last word of the name that begins with `v` and a digit, or else the last one; people
    // write it with or without its `v`.
    let version = |pattern: &str| {
        let words: Vec<&str> = image.name.split(['-', '_', '/', ' ', ':']).collect();
        let digit = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
        let numbered = |it: &&&str| it.strip_prefix('v').is_some_and(digit);
        let version = words.iter().rev().find(numbered).or(words.last()).copied();
        let bare = version.unwrap_or_default().trim_start_matches('v');
        matches(pattern, bare) || matches(pattern, &format!("v{bare}"))
    };
    spec("id").is_some_and(|it| it == image.id)
        || spec("name").is_some_and(|it| matches(it, &image.name))
        || spec("version").is_some_and(version)
}

/// A date means its first moment.
fn moment(written: &str) -> Option<Timestamp> {
    if written.len() == 10 {
        return format!("{written}T00:00:00Z").parse().ok();
    }
    written.parse().ok()
}
