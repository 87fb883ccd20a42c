//! Which nodes run already, and on what?
//!
//! Each group is held against what else the scenario says: its pools, zones, types, images, subnets and reservations.

use std::collections::BTreeSet;

use nodemolt_api::problem::Finding;
use nodemolt_core::image::Architecture;
use nodemolt_fit::Types;

use super::{AGE, NODES_MAX, WireGroup, or_none, or_tell};
use crate::act::{ImageName, Publication};
use crate::length;
use crate::region::id_of;
use crate::scenario::Group;

pub(super) struct Known<'a> {
    pub pools: &'a BTreeSet<String>,
    pub zones: &'a [String],
    pub types: &'a BTreeSet<String>,
    pub images: &'a [Publication],
    /// Those of them, by their places, that cannot be read: what is said of them may be wrong.
    pub doubted: &'a BTreeSet<usize>,
    /// Where subnets are written. Where there are none, they are made everywhere.
    pub subnet_zones: &'a BTreeSet<String>,
    pub reserved: &'a BTreeSet<String>,
    /// Of the groups so far.
    pub names: BTreeSet<String>,
    pub found: &'a mut Vec<Finding>,
}

/// Why Kubernetes would not take it as the name of a node, which is a subdomain.
fn no_name(name: &str) -> Option<String> {
    let wrong = name.chars().find(|it| !matches!(it, 'a'..='z' | '0'..='9' | '-' | '.'));
    let ends = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    match wrong {
        Some(it) => Some(format!("`{it}` may not be in it")),
        None if name.is_empty() => Some("it is empty".to_owned()),
        None if name.len() > 253 => Some("it is longer than 253".to_owned()),
        None if !name.split('.').all(|it| it.starts_with(ends) && it.ends_with(ends)) => {
            Some("each part begins and ends with a letter or a digit".to_owned())
        }
        None => None,
    }
}

impl Known<'_> {
    pub(super) fn zone(&mut self, zone: &str, field: &str) {
        if !self.zones.iter().any(|it| it == zone) {
            let message = format!("there is no zone `{zone}`");
            let hint = format!("write one of {}", self.zones.join(", "));
            self.found.push(Finding::error(field, message).hint(hint));
        }
    }

    pub(super) fn instance_type(&mut self, name: &str, field: &str) {
        if !self.types.contains(name) {
            // Those that were refused are no advice.
            let there = |it: &&str| Types::shipped().find(it).is_ok();
            let all: Vec<&str> = self.types.iter().map(String::as_str).filter(there).collect();
            let message = format!("EC2 does not offer `{name}` here");
            let hint = match (there(&name), all.is_empty()) {
                (true, true) => "add it to `types`".to_owned(),
                (true, false) => format!("add it to `types`, or write one of {}", all.join(", ")),
                (false, true) => "`nodemolt types` lists those that this program knows".to_owned(),
                (false, false) => format!("write one of {}", all.join(", ")),
            };
            self.found.push(Finding::error(field, message).hint(hint));
        }
    }

    /// The image that is meant, if it is known for sure.
    fn image(&mut self, name: &ImageName, field: &str) -> Option<&Publication> {
        let is = |it: &Publication| match name {
            ImageName::Id(id) => {
                it.id.as_ref().map_or_else(|| id_of(&it.name) == *id, |it| it == id)
            }
            ImageName::Name(name) => it.name == *name,
        };
        let found: Vec<(usize, &Publication)> =
            self.images.iter().enumerate().filter(|(_, it)| is(it)).collect();
        match found[..] {
            [] => {
                // Any of those whose id cannot be read may be meant.
                if matches!(name, ImageName::Name(_)) || self.doubted.is_empty() {
                    let message = format!("there is no image `{name}`");
                    let hint = "write an id or a name of one of `images`";
                    self.found.push(Finding::error(field, message).hint(hint));
                }
                None
            }
            [(at, image)] => Some(image).filter(|_| !self.doubted.contains(&at)),
            [..] => {
                let id = |it: &Publication| it.id.clone().unwrap_or_else(|| id_of(&it.name));
                let ids: Vec<String> = found.iter().map(|(_, it)| id(it).to_string()).collect();
                let message = format!("{} images are called `{name}`", found.len());
                let hint = format!("write the id of one: {}", ids.join(", "));
                self.found.push(Finding::error(field, message).hint(hint));
                None
            }
        }
    }

    /// Nodes are in subnets: where some are written, no others are made.
    fn subnets(&mut self, zones: &[String], field: &str) {
        let bare = |it: &&String| !self.subnet_zones.contains(*it) && self.zones.contains(*it);
        let bare: Vec<&str> = zones.iter().filter(bare).map(String::as_str).collect();
        if !self.subnet_zones.is_empty() && !bare.is_empty() {
            let message = format!("there is no subnet in {}", bare.join(", "));
            let hint = "write one into `subnets`, or `zones` that have one";
            self.found.push(Finding::error(field, message).hint(hint));
        }
    }

    pub(super) fn group(&mut self, wire: WireGroup, field: &str) -> Option<Group> {
        let before = self.found.len();
        let under = |it: &str| format!("{field}.{it}");
        if !self.pools.contains(&wire.pool) {
            let message = format!("there is no NodePool `{}`", wire.pool);
            self.found.push(
                Finding::error(under("pool"), message).hint("write the NodePool into this file"),
            );
        }
        if wire.nodes > NODES_MAX {
            let message = format!("`{}` nodes are more than {NODES_MAX}", wire.nodes);
            self.found.push(Finding::error(under("nodes"), message).hint("write fewer"));
        }
        self.instance_type(&wire.instance_type, &under("instanceType"));
        let zones = or_none(wire.zones, under("zones"), self.found);
        for zone in zones.iter().flatten() {
            self.zone(zone, &under("zones"));
        }
        for name in &wire.names {
            if let Some(wrong) = no_name(name) {
                let message = format!("`{name}` is no name for a node: {wrong}");
                let hint = "write a-z, 0-9, `-` and `.`, such as `node-0`";
                self.found.push(Finding::error(under("names"), message).hint(hint));
            }
            if !self.names.insert(name.clone()) {
                let message = format!("two nodes are called `{name}`");
                self.found.push(
                    Finding::error(under("names"), message).hint("give each a name of its own"),
                );
            }
        }
        if wire.names.len() > usize::try_from(wire.nodes).unwrap_or(usize::MAX) {
            let message = format!("there are {} names for {} nodes", wire.names.len(), wire.nodes);
            let hint = "write one for each of the first nodes, or more `nodes`";
            self.found.push(Finding::error(under("names"), message).hint(hint));
        }
        let image = or_tell(wire.image.parse::<ImageName>(), &under("image"), self.found);
        let meant = image.as_ref().and_then(|it| self.image(it, &under("image")));
        let known_type = Types::shipped().find(&wire.instance_type).ok();
        if let Some((publication, kind)) = meant.zip(known_type) {
            let has = publication.architecture();
            if !kind.architectures.iter().any(|it| Architecture::read(it) == has) {
                let message = format!(
                    "`{}` cannot boot `{}`, which is for {}",
                    wire.instance_type,
                    publication.name,
                    has.as_str()
                );
                let hint = "write an instance type of that processor, or another image";
                self.found.push(Finding::error(under("instanceType"), message).hint(hint));
            }
        }
        let age = wire.age.as_deref().unwrap_or(AGE);
        let age = or_tell(length::read(age), &under("age"), self.found);
        let capacity_type = wire.capacity_type.unwrap_or_else(|| "on-demand".to_owned());
        if !["on-demand", "spot", "reserved"].contains(&capacity_type.as_str()) {
            let message = format!("`{capacity_type}` is no capacity type");
            let hint = "write on-demand, spot or reserved";
            self.found.push(Finding::error(under("capacityType"), message).hint(hint));
        }
        if capacity_type == "reserved" && wire.reservation.is_none() {
            let message = "it does not say of which reservation";
            let hint = "write `reservation:` with the id of one of `reservations`";
            self.found.push(Finding::error(under("capacityType"), message).hint(hint));
        }
        if let Some(id) = wire.reservation.as_ref().filter(|it| !self.reserved.contains(*it)) {
            let message = format!("there is no capacity reservation `{id}`");
            let hint = "write it into `reservations`, with its `instanceType`, `zone` and `count`";
            self.found.push(Finding::error(under("reservation"), message).hint(hint));
        }
        // In turns: few nodes do not come to all of them.
        let used = usize::try_from(wire.nodes).unwrap_or(usize::MAX);
        let all = zones.as_deref().unwrap_or(self.zones);
        self.subnets(&all[..used.min(all.len())], &under("zones"));
        if self.found.len() > before {
            return None;
        }
        Some(Group {
            pool: wire.pool,
            nodes: wire.nodes,
            instance_type: wire.instance_type,
            zones: zones.unwrap_or_else(|| self.zones.to_vec()),
            image: image?,
            age: age?,
            names: wire.names,
            capacity_type,
            reservation: wire.reservation,
        })
    }
}
