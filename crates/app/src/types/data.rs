//! The answer for programs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::resolve::Next;
use nodemolt_fit::Quantity;
use serde::Serialize;

use super::{Bootable, ImageSaid, Item, Story};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<'s> {
    api_version: &'static str,
    kind: &'static str,
    /// Absent where the defaults of the family stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'s str>,
    items: Vec<Type<'s>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Type<'s> {
    name: &'s str,
    /// Of the images.
    family: &'static str,
    labels: BTreeMap<&'s str, &'s str>,
    absent_labels: Vec<&'s str>,
    capacity: &'s BTreeMap<String, Quantity>,
    kube_reserved: &'s BTreeMap<String, Quantity>,
    system_reserved: &'s BTreeMap<String, Quantity>,
    eviction_threshold: &'s BTreeMap<String, Quantity>,
    allocatable: &'s BTreeMap<String, Quantity>,
    /// What all pools agree on.
    #[serde(skip_serializing_if = "Option::is_none")]
    bootable: Option<Boots<'s>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_pool: Vec<InPool<'s>>,
}

#[derive(Debug, Serialize)]
struct InPool<'s> {
    pool: &'s str,
    bootable: Boots<'s>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Boots<'s> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Image<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Upcoming<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Nearest<'s>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reasons: &'s [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Image<'s> {
    id: &'s str,
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dated: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused {
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Upcoming<'s> {
    id: &'s str,
    name: &'s str,
    at: Timestamp,
}

#[derive(Debug, Serialize)]
struct Nearest<'s> {
    image: Image<'s>,
    misses: Vec<Lack<'s>>,
}

#[derive(Debug, Serialize)]
struct Lack<'s> {
    what: &'s str,
    needs: &'s str,
    has: &'s str,
}

pub(super) fn list<'s>(story: &'s Story<'_>) -> List<'s> {
    List {
        api_version: "nodemolt.dev/cli/v1",
        kind: "InstanceTypeList",
        class: story.class.as_deref(),
        items: story.items.iter().map(|it| one(story, it)).collect(),
    }
}

fn one<'s>(story: &Story<'_>, item: &'s Item<'_>) -> Type<'s> {
    let Item { it, labels, offer, boots: answers } = item;
    let present = labels.iter().filter_map(|it| Some((it.key, it.value.as_deref()?)));
    let absent = labels.iter().filter(|it| it.value.is_none()).map(|it| it.key);
    let by_pool = answers.iter().filter_map(|(pool, bootable)| {
        Some(InPool { pool: pool.as_deref()?, bootable: boots(bootable) })
    });
    Type {
        name: &it.name,
        family: story.family.name(),
        labels: present.collect(),
        absent_labels: absent.collect(),
        capacity: &offer.capacity,
        kube_reserved: &offer.kube_reserved,
        system_reserved: &offer.system_reserved,
        eviction_threshold: &offer.eviction,
        allocatable: &offer.allocatable,
        bootable: item.boots_everywhere().map(boots),
        by_pool: by_pool.collect(),
    }
}

fn boots(bootable: &Bootable) -> Boots<'_> {
    match bootable {
        Bootable::Image { image: chosen, next } => Boots {
            outcome: "Image",
            image: Some(image(chosen)),
            next: next.as_ref().map(upcoming),
            ..Boots::default()
        },
        Bootable::HeldBack { image: held, refusal, next } => Boots {
            outcome: "HeldBack",
            image: Some(image(held)),
            refusal: Some(Refused {
                reason: refusal.reason(),
                message: refusal.to_string(),
                ends_at: refusal.ends_at(),
            }),
            next: next.as_ref().map(upcoming),
            ..Boots::default()
        },
        Bootable::Nothing { nearest, reasons } => Boots {
            outcome: "NoImage",
            nearest: nearest.as_ref().map(|(near, misses)| Nearest {
                image: image(near),
                misses: misses
                    .iter()
                    .map(|it| Lack { what: &it.what, needs: &it.needs, has: &it.has })
                    .collect(),
            }),
            reasons,
            ..Boots::default()
        },
        Bootable::InNoPool => Boots { outcome: "InNoPool", ..Boots::default() },
    }
}

fn image(said: &ImageSaid) -> Image<'_> {
    Image {
        id: said.id.as_str(),
        name: &said.name,
        version: said.version.as_deref(),
        dated: said.dated,
    }
}

fn upcoming(next: &Next) -> Upcoming<'_> {
    Upcoming { id: next.id.as_str(), name: &next.name, at: next.at }
}
