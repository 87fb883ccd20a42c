//! What exactly is asked of EC2?
//!
//! `claim × choices × class × pool → frozen request and its launch templates`
//!
//! An attempt is frozen when it is recorded. Asked again it says the same words, or is not asked again:
//! what its images may do is checked each time, here and once more right before the call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::bootstrap::{self, OfPool, UserPart, render};
use nodemolt_core::claim::{CallSeen, Command};
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::{
    self, Capacity, CapacityType, Identity, Occasion, SecurityGroupId, Template, Tenancy, specify,
};
use nodemolt_core::seen::{
    Attempt, Choice, Claim, Class, FrozenRequest, Kind, ObjectName, Pool, View,
};
use nodemolt_core::wanted::{Replacing, Wanted};
use nodemolt_fit::capacity::EFA;
use nodemolt_fit::{Operator, label};

use super::act::{Launch, OfType, Rules};
use super::choose::{self, Chosen, Market};
use super::state::{CLAIM_TAG, CLAIM_UID_TAG};
use super::{Here, Known, object};
use crate::port::Network;

/// All that a request is made of.
pub(super) struct Asking<'a> {
    pub view: &'a View,
    pub known: &'a Known<'a>,
    pub rules: &'a Arc<Rules>,
    pub claim: &'a Claim,
    pub now: Timestamp,
}

fn unknown(about: impl Into<String>) -> CallSeen {
    CallSeen::Unknown { about: about.into() }
}

fn withheld(why: impl Into<String>) -> CallSeen {
    CallSeen::Withheld(why.into())
}

impl<'a> Asking<'a> {
    /// The attempt that a command is for, or why it is not made.
    pub(super) fn launch(&self, command: &Command) -> Result<Launch, CallSeen> {
        let recorded = self.claim.attempt.as_ref();
        match command {
            Command::Attempt { number } => self.anew(*number),
            Command::Call { number } => match recorded.filter(|it| it.number == *number) {
                Some(attempt) => self.again(attempt),
                None => Err(unknown("the attempt is not recorded")),
            },
            Command::EndAttempt { .. }
            | Command::Adopt { .. }
            | Command::Register { .. }
            | Command::Initialise { .. }
            | Command::DeleteClaim
            | Command::DeleteNode { .. }
            | Command::Terminate { .. }
            | Command::ReleaseNode { .. }
            | Command::ReleaseClaim => Err(unknown("it is no launch")),
        }
    }

    fn anew(&self, number: u32) -> Result<Launch, CallSeen> {
        let class = self.class()?;
        let wanted = self.wanted()?;
        let network = self.network()?;
        let offered =
            self.known.offered.ok_or_else(|| unknown("what EC2 offers is not known yet"))?;
        let market = Market {
            claim: self.claim,
            class,
            offered,
            network,
            wanted,
            memory: self.known.memory,
            region: &self.known.here.region,
            now: self.now,
        };
        let Chosen { capacity_type, ways, types } = choose::choose(&market).map_err(|nothing| {
            if nothing.unknown() {
                unknown(nothing.to_string())
            } else {
                withheld(nothing.to_string())
            }
        })?;
        let mut templates: BTreeMap<(ImageId, Option<String>), Template> = BTreeMap::new();
        let mut choices = Vec::new();
        for way in ways {
            let key = (way.image.clone(), way.reservation.clone());
            if !templates.contains_key(&key) {
                let made =
                    self.template(class, network, &key.0, capacity_type, key.1.as_deref())?;
                templates.insert(key.clone(), made);
            }
            let template = templates.get(&key).map(Template::name).unwrap_or_default();
            choices.push(Choice {
                template,
                image: way.image,
                instance_type: way.instance_type,
                zone: way.zone,
                subnet: way.subnet,
            });
        }
        let mut tags = templates.values().next().map(|it| it.tags.clone()).unwrap_or_default();
        tags.insert(CLAIM_TAG.to_owned(), self.claim.name.clone());
        tags.insert(CLAIM_UID_TAG.to_owned(), self.claim.uid.clone());
        let request = FrozenRequest {
            capacity_type: capacity_type.word().to_owned(),
            choices,
            context: class.launch.context.clone(),
            tags,
        };
        let last_ended = self.claim.attempt.as_ref().and_then(|it| it.ended.clone());
        let attempt = Attempt { number, since: self.now, request, last_ended, ended: None };
        Ok(self.complete(attempt, false, templates.into_values().collect(), types))
    }

    /// The recorded words again. Each image must still be the one that is wanted.
    fn again(&self, attempt: &Attempt) -> Result<Launch, CallSeen> {
        let class = self.class()?;
        let wanted = self.wanted()?;
        let network = self.network()?;
        let choices = &attempt.request.choices;
        for choice in choices {
            let kind = &choice.instance_type;
            let why = match wanted.replacing(self.claim.pool.as_deref(), kind) {
                Replacing::Image(image) if image.id == choice.image => continue,
                Replacing::Image(image) => format!("{} is wanted now", image.id),
                Replacing::HeldBack(why) => why.to_string(),
                Replacing::NoImageFits => "no image fits it".to_owned(),
                Replacing::NotResolved => {
                    return Err(unknown(format!("no image was looked up for {kind}")));
                }
            };
            return Err(withheld(format!(
                "{} may not boot on {kind} any more: {why}",
                choice.image
            )));
        }
        // Those that are not made anew were made before, or EC2 will say that they are not there.
        let named: BTreeSet<&str> = choices.iter().map(|it| it.template.as_str()).collect();
        let images: BTreeSet<&ImageId> = choices.iter().map(|it| &it.image).collect();
        let mut templates = Vec::new();
        if let Ok(capacity_type) = attempt.request.capacity_type.parse::<CapacityType>() {
            let reservations: Vec<Option<&str>> = match capacity_type {
                CapacityType::Reserved => {
                    network.reservations.iter().map(|it| Some(it.id.as_str())).collect()
                }
                CapacityType::OnDemand | CapacityType::Spot => vec![None],
            };
            for image in images {
                for reservation in &reservations {
                    let made = self.template(class, network, image, capacity_type, *reservation);
                    templates.extend(made.ok().filter(|it| named.contains(it.name().as_str())));
                }
            }
        }
        let kinds: BTreeSet<&str> = choices.iter().map(|it| it.instance_type.as_str()).collect();
        let types = kinds
            .into_iter()
            .filter_map(|name| {
                let kind = self.known.offered?.types.find(name).ok()?;
                Some((name.to_owned(), choose::of_type(kind, class)))
            })
            .collect();
        Ok(self.complete(attempt.clone(), true, templates, types))
    }

    fn complete(
        &self,
        attempt: Attempt,
        recorded: bool,
        templates: Vec<Template>,
        types: BTreeMap<String, OfType>,
    ) -> Launch {
        Launch {
            claim: object(self.claim),
            class: self.claim.class.clone(),
            attempt,
            recorded,
            templates,
            types,
            rules: Arc::clone(self.rules),
        }
    }

    fn class(&self) -> Result<&'a Class, CallSeen> {
        let rules = |it: &&ObjectName| matches!(it.kind, Kind::Policy | Kind::Quarantine);
        if let Some(it) = self.view.unreadable.keys().find(rules) {
            return Err(unknown(format!("{} {} cannot be read", it.kind.as_str(), it.name)));
        }
        let key = &self.claim.class;
        if self
            .view
            .unreadable
            .keys()
            .any(|it| it.kind == Kind::Class && it.name == key.to_string())
        {
            return Err(unknown(format!("EC2NodeClass {key} cannot be read")));
        }
        match self.view.classes.get(key) {
            None => Err(withheld(format!("EC2NodeClass {key} is not there"))),
            Some(class) if class.deleting => {
                Err(withheld(format!("EC2NodeClass {key} is being deleted")))
            }
            Some(class) => Ok(class),
        }
    }

    fn wanted(&self) -> Result<&'a Wanted, CallSeen> {
        self.known.wanted(self.claim).ok_or_else(|| {
            let pool = self.claim.pool.as_deref().unwrap_or("no pool");
            let class = &self.claim.class;
            unknown(format!("the images of EC2NodeClass {class} for {pool} are not known yet"))
        })
    }

    fn network(&self) -> Result<&'a Network, CallSeen> {
        let class = &self.claim.class;
        let network = self.known.networks.get(class).copied();
        network
            .ok_or_else(|| unknown(format!("the network of EC2NodeClass {class} is not known yet")))
    }

    fn pool(&self) -> Option<&'a Pool> {
        self.claim.pool.as_ref().and_then(|it| self.view.pools.get(it))
    }

    fn template(
        &self,
        class: &Class,
        network: &Network,
        image: &ImageId,
        capacity_type: CapacityType,
        reservation: Option<&str>,
    ) -> Result<Template, CallSeen> {
        let of_claim = of_claim(self.claim);
        let efa = self.claim.requests.get(EFA).map_or(0, |it| it.ceil_units());
        let asked = AskedOfTemplate {
            pool: self.pool().map_or(&of_claim, |it| &it.boot),
            image,
            capacity_type,
            reservation,
            efa: u32::try_from(efa).unwrap_or(0),
            tenancy: tenancy(self.claim),
            partition: partition(self.claim, class),
        };
        template(self.known.here, class, network, &asked)
            .map_err(|why| withheld(format!("EC2NodeClass {}: {why}", class.key)))
    }
}

/// What a launch template depends on beside class and network.
struct AskedOfTemplate<'a> {
    pool: &'a OfPool,
    image: &'a ImageId,
    capacity_type: CapacityType,
    reservation: Option<&'a str>,
    efa: u32,
    tenancy: Option<Tenancy>,
    partition: Option<u32>,
}

/// Why nothing of a class can be launched for a pool, whatever it would be.
pub(crate) fn launches_nothing(
    here: &Here,
    (class, network): (&Class, &Network),
    pool: &OfPool,
    image: &ImageId,
) -> Option<String> {
    let asked = AskedOfTemplate {
        pool,
        image,
        capacity_type: CapacityType::OnDemand,
        reservation: None,
        efa: 0,
        tenancy: None,
        partition: None,
    };
    template(here, class, network, &asked).err()
}

fn template(
    here: &Here,
    class: &Class,
    network: &Network,
    asked: &AskedOfTemplate<'_>,
) -> Result<Template, String> {
    let AskedOfTemplate { pool, image, capacity_type, reservation, efa, tenancy, partition } =
        *asked;
    let told =
        bootstrap::settings(here.cluster.clone(), &class.boot, Some(pool), Some(capacity_type));
    let user_data =
        render(class.boot.family, &told, UserPart(&class.boot.user_part)).map_err(|it| {
            let all: Vec<String> = it.remarks.iter().map(ToString::to_string).collect();
            format!("its user data: {}", all.join("; "))
        })?;
    let capacity = match (capacity_type, reservation) {
        (CapacityType::OnDemand, _) => Capacity::OnDemand { open: false },
        (CapacityType::Spot, _) => Capacity::Spot,
        (CapacityType::Reserved, id) => {
            let id = id.unwrap_or_default().parse().map_err(|it| format!("{it}"))?;
            Capacity::Reserved(launch::Reservation { id, market: None })
        }
    };
    let mut security_groups: BTreeSet<SecurityGroupId> = BTreeSet::new();
    for id in network.security_groups.keys() {
        security_groups.insert(id.parse().map_err(|it| format!("{it}"))?);
    }
    let occasion = Occasion {
        cluster: here.cluster.name.clone(),
        pool: pool.name.clone(),
        region: Some(here.region.clone()),
        ip_family: here.cluster.ip_family,
        image: image.clone(),
        // No content of a template.
        instance_types: BTreeSet::new(),
        zones: BTreeSet::new(),
        capacity,
        security_groups,
        instance_profile: match &class.launch.identity {
            Identity::InstanceProfile(profile) => profile.clone(),
            Identity::Role(role) => here.profiles.get(role).unwrap_or(role).clone(),
        },
        user_data: Some(user_data.text),
        efa,
        tenancy,
        partition,
        enclave: false,
    };
    let specification = specify(&class.launch, &occasion).map_err(|found| {
        let told = |it: &launch::Finding| format!("{}: {}", it.field, it.message);
        let all: Vec<String> = found.iter().map(told).collect();
        all.join("; ")
    })?;
    Ok(specification.template)
}

/// What a claim says itself, where it has no pool, or none any more.
fn of_claim(claim: &Claim) -> OfPool {
    let taints = claim.taints.iter().chain(&claim.startup_taints);
    let taints = taints.map(|it| bootstrap::Taint {
        key: it.key.clone(),
        value: Some(it.value.clone()).filter(|it| !it.is_empty()),
        effect: it.effect.name().to_owned(),
    });
    OfPool {
        name: claim.pool.clone().unwrap_or_default(),
        class: (claim.class.name.clone(), claim.class.group.clone()),
        labels: claim.labels.clone(),
        capacity_type: None,
        taints: taints.collect(),
        label_fields: BTreeMap::new(),
        taint_fields: Vec::new(),
    }
}

/// Ordinary hardware where both are fine; where nobody says, the network decides.
fn tenancy(claim: &Claim) -> Option<Tenancy> {
    let asked = claim.requirements.iter().filter(|it| it.key == label::TENANCY);
    let mut said = None;
    for it in asked {
        let listed = |word: &str| it.values.iter().any(|it| it == word);
        said = match it.operator {
            Operator::In if listed(Tenancy::Default.word()) => said.or(Some(Tenancy::Default)),
            Operator::In if listed(Tenancy::Dedicated.word()) => Some(Tenancy::Dedicated),
            Operator::NotIn if listed(Tenancy::Default.word()) => Some(Tenancy::Dedicated),
            Operator::In
            | Operator::NotIn
            | Operator::Exists
            | Operator::DoesNotExist
            | Operator::Gt
            | Operator::Lt
            | Operator::Gte
            | Operator::Lte => said,
        };
    }
    said
}

/// The lowest that is asked for, of the class's placement group.
fn partition(claim: &Claim, class: &Class) -> Option<u32> {
    class.launch.placement_group.as_ref()?;
    let asked = claim
        .requirements
        .iter()
        .filter(|it| it.key == label::PLACEMENT_GROUP_PARTITION && it.operator == Operator::In);
    asked.flat_map(|it| &it.values).filter_map(|it| it.parse().ok()).min()
}
