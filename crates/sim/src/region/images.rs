//! Which images and parameters are there?

use jiff::Timestamp;
use nodemolt_core::ask::Owner;
use nodemolt_core::catalog::{
    ImageQuery, Observation, Outcome, Parameter, ParameterQuery, ParameterValue, Query,
};
use nodemolt_core::image::{AccountId, Date, Image, ImageId, State};
use nodemolt_core::lookup;

use super::{Held, Region};
use crate::act::{Behaviour, ImageName, Publication};
use crate::faults::Counterpart;
use crate::trace::{self, Actor, Fact};

/// Who publishes EKS' own images.
const EKS_ACCOUNT: &str = "602401143452";

impl Region {
    /// Images or parameters, as they are now.
    pub fn ask(&self, query: &Query, now: Timestamp) -> Observation {
        let service = match query {
            Query::Images(_) | Query::Untold => Counterpart::Ec2,
            Query::Parameters(_) => Counterpart::Ssm,
        };
        let mut seen = Observation {
            asked: query.clone(),
            outcome: Outcome::Complete,
            seen_at: Some(now),
            account: Some(self.account.clone()),
            images: Vec::new(),
            parameters: Vec::new(),
        };
        if self.throttled.contains(&service) {
            seen.outcome = Outcome::Throttled;
            return seen;
        }
        match query {
            // Nobody can ask what was not told.
            Query::Untold => seen.outcome = Outcome::Failed,
            Query::Images(query) => {
                let then = self.as_of(service, now);
                let past = self.past_images.iter().rev().find(|(since, _)| *since <= then);
                let all = past.into_iter().flat_map(|(_, it)| it.values());
                let listed = all.filter(|it| self.lists(query, it, now));
                seen.images = listed.map(|it| it.image.clone()).collect();
            }
            Query::Parameters(query) => {
                seen.parameters = self.answer_parameters(query, self.as_of(service, now));
            }
        }
        seen
    }

    /// `DescribeImages` lists it: every kind of filter that is given lets it through.
    fn lists(&self, query: &ImageQuery, held: &Held, now: Timestamp) -> bool {
        let image = &held.image;
        let own = image.owner.as_ref() == Some(&self.account);
        let visible = !held.deregistered && (held.shared || own);
        let old_enough_to_hide = image.deprecated.at().is_some_and(|it| it <= now);
        let hidden = old_enough_to_hide && !own && !query.include_deprecated
            || image.state == State::Disabled && !query.include_disabled;
        let owned = |owner: &Owner| match owner {
            Owner::Own => own,
            Owner::Group(group) => image.owner_alias.as_ref() == Some(group),
            Owner::Account(account) => image.owner.as_ref() == Some(account),
        };
        let here = query.region.as_ref().is_none_or(|it| *it == self.name);
        visible
            && !hidden
            && here
            && (query.owners.is_empty() || query.owners.iter().any(owned))
            && (query.names.is_empty() || query.names.iter().any(|it| it.matches(&image.name)))
            && (query.ids.is_empty() || query.ids.contains(&image.id))
            && query.tags.iter().all(|(key, value)| {
                image
                    .tags
                    .get(key)
                    .is_some_and(|have| value.as_ref().is_none_or(|pattern| pattern.matches(have)))
            })
            && (query.public_parameters.is_empty()
                || query.public_parameters.iter().any(|it| image.public_parameters.contains(it)))
    }

    /// `GetParameters`, which takes a version behind a colon, or `GetParametersByPath`, recursively.
    fn answer_parameters(&self, query: &ParameterQuery, then: Timestamp) -> Vec<Parameter> {
        let known = |values: &[(Timestamp, ParameterValue)]| -> Vec<ParameterValue> {
            let known = values.iter().filter(|(since, _)| *since <= then);
            known.map(|(_, it)| it.clone()).collect()
        };
        let mut found: Vec<Parameter> = Vec::new();
        for asked in &query.names {
            let (name, version) = match asked.rsplit_once(':') {
                Some((name, version)) => (name, version.parse::<u64>().ok()),
                None => (asked.as_str(), None),
            };
            let Some(values) = self.parameters.get(name).map(|it| known(it)) else { continue };
            let value = match version {
                None => values.last(),
                Some(_) => values.iter().find(|it| it.version == version),
            };
            found.extend(value.map(|it| Parameter::new(name, it.clone())));
        }
        for path in &query.paths {
            let folder = format!("{}/", path.trim_end_matches('/'));
            let below = self.parameters.iter().filter(|(name, _)| name.starts_with(&folder));
            found.extend(below.filter_map(|(name, values)| {
                Some(Parameter::new(name.clone(), known(values).pop()?))
            }));
        }
        found
    }

    /// A new image, and the parameters that name it from now on.
    pub fn publish(
        &mut self,
        publication: &Publication,
        now: Timestamp,
    ) -> Result<ImageId, String> {
        let Publication { name, id, architecture: _, owner, created, parameters, tags, behaviour } =
            publication;
        let flavour = lookup::read_name(name);
        let id = match id {
            Some(id) => id.clone(),
            None => id_of(name),
        };
        if let Some(known) = self.images.get(&id) {
            return Err(format!(
                "there is an image {id} already, called {}; publish another id or name",
                known.image.name
            ));
        }
        let mut image = Image::new(id.clone(), name.clone());
        let eks: Option<AccountId> = EKS_ACCOUNT.parse().ok();
        image.owner = match (owner, &flavour) {
            (Some(owner), _) => Some(owner.clone()),
            (None, Some(_)) => eks.clone(),
            (None, None) => Some(self.account.clone()),
        };
        image.owner_alias = (image.owner == eks).then(|| "amazon".to_owned());
        image.public = Some(image.owner != Some(self.account.clone()));
        image.architecture = publication.architecture();
        image.created = Date::At(created.unwrap_or(now));
        image.tags.clone_from(tags);
        image.virtualization = Some("hvm".to_owned());
        image.root_device = Some("ebs".to_owned());
        image.ena = Some(true);
        let named = match (&flavour, parameters.is_empty()) {
            (Some((flavour, release)), true) => {
                flavour.pinned(release).into_iter().chain([flavour.pointer()]).collect()
            }
            (Some(_) | None, _) => parameters.clone(),
        };
        image.public_parameters =
            named.iter().filter(|it| it.starts_with("/aws/service/")).cloned().collect();
        let held = Held { image, behaviour: *behaviour, shared: true, deregistered: false };
        self.images.insert(id.clone(), held);
        self.note_images(now);
        self.tell_image(&id, &format!("{name} is published as {id}"), now);
        for parameter in named {
            self.put(&parameter, id.as_str(), created.unwrap_or(now), now);
        }
        Ok(id)
    }

    /// A parameter gets another value.
    pub fn put(&mut self, parameter: &str, value: &str, modified: Timestamp, now: Timestamp) {
        let values = self.parameters.entry(parameter.to_owned()).or_default();
        let version = values.last().and_then(|it| it.1.version).unwrap_or(0).saturating_add(1);
        let value_put = ParameterValue {
            version: Some(version),
            modified: Date::At(modified),
            text: value.to_owned(),
            labels: Vec::new(),
        };
        values.push((now, value_put));
        let what = format!("parameter {parameter} says {value}");
        self.tell(now, Actor::Publisher, Fact::Published { what });
    }

    pub fn move_parameter(
        &mut self,
        parameter: &str,
        to: &ImageName,
        now: Timestamp,
    ) -> Result<ImageId, String> {
        let id = self.find_image(to)?;
        if !self.parameters.contains_key(parameter) {
            let all: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
            return Err(format!(
                "there is no parameter `{parameter}`; there are {}",
                if all.is_empty() { "none".to_owned() } else { all.join(", ") }
            ));
        }
        self.put(parameter, id.as_str(), now, now);
        Ok(id)
    }

    pub fn deprecate(&mut self, image: &ImageName, now: Timestamp) -> Result<ImageId, String> {
        self.change(image, "deprecated", now, |held| held.image.deprecated = Date::At(now))
    }

    pub fn disable(&mut self, image: &ImageName, now: Timestamp) -> Result<ImageId, String> {
        self.change(image, "disabled", now, |held| held.image.state = State::Disabled)
    }

    pub fn enable(&mut self, image: &ImageName, now: Timestamp) -> Result<ImageId, String> {
        self.change(image, "enabled and shared", now, |held| {
            held.image.state = State::Available;
            held.shared = true;
        })
    }

    pub fn deregister(&mut self, image: &ImageName, now: Timestamp) -> Result<ImageId, String> {
        self.change(image, "deregistered", now, |held| held.deregistered = true)
    }

    pub fn unshare(&mut self, image: &ImageName, now: Timestamp) -> Result<ImageId, String> {
        self.change(image, "not shared any more", now, |held| held.shared = false)
    }

    pub fn find_image(&self, name: &ImageName) -> Result<ImageId, String> {
        let called: Vec<&Held> = match name {
            ImageName::Id(id) => self.images.get(id).into_iter().collect(),
            ImageName::Name(name) => {
                self.images.values().filter(|it| it.image.name == *name).collect()
            }
        };
        // One that is gone is meant only where no other one has its name.
        let living: Vec<&Held> = called.iter().copied().filter(|it| !it.deregistered).collect();
        match (&living[..], &called[..]) {
            ([one], _) | ([], [one, ..]) => Ok(one.image.id.clone()),
            ([], []) => {
                let all = self.images.values().filter(|it| !it.deregistered);
                let all: Vec<&str> = all.map(|it| it.image.name.as_str()).collect();
                Err(format!("there is no image `{name}`; there are {}", all.join(", ")))
            }
            (several, _) => {
                let ids: Vec<&str> = several.iter().map(|it| it.image.id.as_str()).collect();
                let count = several.len();
                let ids = ids.join(", ");
                Err(format!("{count} images are called `{name}`; write the id of one: {ids}"))
            }
        }
    }

    pub fn image(&self, id: &ImageId) -> Option<&Image> {
        self.images.get(id).map(|it| &it.image)
    }

    pub fn behaviour(&self, id: &ImageId) -> Behaviour {
        self.images.get(id).map_or(Behaviour::Good, |it| it.behaviour)
    }

    /// Machines can be made of it.
    pub(super) fn launchable(&self, id: &ImageId) -> bool {
        self.images.get(id).is_some_and(|it| self.may_launch(it))
    }

    fn may_launch(&self, held: &Held) -> bool {
        let own = held.image.owner.as_ref() == Some(&self.account);
        held.image.state == State::Available && !held.deregistered && (held.shared || own)
    }

    fn change(
        &mut self,
        name: &ImageName,
        what: &str,
        now: Timestamp,
        change: impl FnOnce(&mut Held),
    ) -> Result<ImageId, String> {
        let id = self.find_image(name)?;
        if let Some(held) = self.images.get_mut(&id) {
            if held.deregistered {
                return Err(format!(
                    "`{name}` is deregistered, which nobody takes back; publish another image"
                ));
            }
            change(held);
        }
        self.note_images(now);
        self.tell_image(&id, &format!("{name} is {what}"), now);
        Ok(id)
    }

    /// From now on they are so, for lists that lag.
    fn note_images(&mut self, now: Timestamp) {
        self.past_images.push((now, self.images.clone()));
    }

    fn tell_image(&self, id: &ImageId, what: &str, now: Timestamp) {
        self.tell(now, Actor::Publisher, Fact::Published { what: what.to_owned() });
        let Some(held) = self.images.get(id) else { return };
        let image = &held.image;
        let told = trace::Image {
            id: id.to_string(),
            name: image.name.clone(),
            owner: image.owner.as_ref().map(ToString::to_string),
            owner_alias: image.owner_alias.clone(),
            created_at: image.created.at(),
            launchable: self.may_launch(held),
            deprecated: image.deprecated.at().is_some_and(|it| it <= now),
        };
        self.tell(now, Actor::Publisher, Fact::Image(told));
    }
}

/// The same name has the same id in every life. FNV, twice: 17 digits are more than one of them has.
pub(crate) fn id_of(name: &str) -> ImageId {
    let hash = |seed: u64| {
        name.bytes()
            .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let digits =
        format!("{:016x}{:016x}", hash(0xcbf2_9ce4_8422_2325), hash(0x1234_5678_9abc_def1));
    let text = format!("ami-{}", &digits[..17]);
    text.parse().expect("seventeen hexadecimal digits")
}
