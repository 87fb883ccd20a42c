//! Which images are there in the beginning?
//!
//! Of an image that cannot be read nothing more is said: what follows from a mistake is none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_api::problem::Finding;

use super::{ParseAccount, ParseImage, WireBehaviour, WireImage, or_tell};
use crate::act::{Behaviour, Publication, read_architecture, read_time};
use crate::region::id_of;

pub(super) fn image(
    wire: WireImage,
    start: Option<Timestamp>,
    field: &str,
    found: &mut Vec<Finding>,
) -> Publication {
    let under = |it: &str| format!("{field}.{it}");
    let id = wire.id.map(|it| it.parse().map_err(|it: ParseImage| it.to_string()));
    let id = id.and_then(|it| or_tell(it, &under("id"), found));
    let created = or_tell(read_time(&wire.created), &under("created"), found);
    if let Some((created, start)) = created.zip(start).filter(|(it, start)| it > start) {
        let message = format!("{created} is later than `start`, {start}");
        let hint = "write an earlier time, or publish it later: `nodemolt sim publish NAME`";
        found.push(Finding::error(under("created"), message).hint(hint));
    }
    let architecture = wire.architecture.map(|it| read_architecture(&it));
    let architecture = architecture.and_then(|it| or_tell(it, &under("architecture"), found));
    let owner = wire.owner.map(|it| it.parse().map_err(|it: ParseAccount| it.to_string()));
    let owner = owner.and_then(|it| or_tell(it, &under("owner"), found));
    if wire.name.is_empty() || wire.name.contains(char::is_whitespace) {
        let message = format!("`{}` is no name of an image", wire.name);
        found.push(Finding::error(under("name"), message).hint("write it without spaces"));
    }
    for (at, parameter) in wire.parameters.iter().enumerate() {
        if parameter.is_empty() || parameter.contains(char::is_whitespace) {
            let message = format!("`{parameter}` is no name of a parameter");
            let finding = Finding::error(under(&format!("parameters[{at}]")), message);
            found.push(finding.hint("write one without spaces, such as `/golden/latest`"));
        }
    }
    let behaviour = match wire.behaviour {
        None | Some(WireBehaviour::Good) => Behaviour::Good,
        Some(WireBehaviour::Stillborn) => Behaviour::Stillborn,
        Some(WireBehaviour::NeverReady) => Behaviour::NeverReady,
        Some(WireBehaviour::Flapping) => Behaviour::Flapping,
    };
    Publication {
        name: wire.name,
        id,
        architecture,
        owner,
        created,
        parameters: wire.parameters,
        tags: wire.tags,
        behaviour,
    }
}

/// Names may be there twice, as in EC2; ids may not. Of an image that cannot be read nothing more is said.
pub(super) fn one_id_each(
    images: &[Publication],
    doubted: &BTreeSet<usize>,
    found: &mut Vec<Finding>,
) {
    let id = |it: &Publication| it.id.clone().unwrap_or_else(|| id_of(&it.name));
    let mut known: BTreeMap<_, &Publication> = BTreeMap::new();
    for (at, image) in images.iter().enumerate().filter(|(at, _)| !doubted.contains(at)) {
        let id = id(image);
        let Some(first) = known.get(&id) else {
            known.insert(id, image);
            continue;
        };
        let finding = if first.id.is_none() && image.id.is_none() {
            let message =
                format!("two images are called `{}`, and ids are made of names", image.name);
            Finding::error(format!("images[{at}].name"), message)
        } else {
            let field = if image.id.is_some() { "id" } else { "name" };
            let message = format!("`{id}` is the id of `{}` already", first.name);
            Finding::error(format!("images[{at}].{field}"), message)
        };
        found.push(finding.hint("give each image an `id` of its own"));
    }
}
