//! Which machines could this claim become, and which are asked for?
//!
//! `claim × types × zones × prices × subnets × images → choices in the order of price`
//!
//! Karpenter's rules: reserved capacity before spot before on-demand; spot only where it is not dearer
//! than on-demand; accelerators and bare metal only where nothing else would do; the subnet of a zone is
//! the one with most free addresses. Who is left out is counted by reason, for whoever asks why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::CapacityType;
use nodemolt_core::seen::{Claim, Class};
use nodemolt_core::wanted::{Replacing, Wanted};
use nodemolt_fit::capacity::{Amounts, offer};
use nodemolt_fit::instance_type::InstanceType;
use nodemolt_fit::pool::Price;
use nodemolt_fit::type_labels::labels;
use nodemolt_fit::{Family, Quantity, Requirement, Vocabulary, label};

use super::act::OfType;
use super::memory::{Mark, Memory};
use crate::port::{Network, Offered, Reservation, Subnet};

/// Karpenter's: more would make a request that EC2 may refuse.
pub const TYPES_MAX: usize = 60;

/// All of them stand on the claim until the machine ends, so there are not too many.
pub const CHOICES_MAX: usize = 120;

/// The first Graviton does not boot AL2023's kernel.
const NO_AL2023: &str = "a1.";

const ORDER: [CapacityType; 3] =
    [CapacityType::Reserved, CapacityType::Spot, CapacityType::OnDemand];

/// One way to get the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub instance_type: String,
    pub zone: String,
    pub subnet: String,
    pub image: ImageId,
    pub reservation: Option<String>,
    pub price: Option<Price>,
}

impl Way {
    fn mark(&self, capacity_type: CapacityType) -> Mark {
        Mark {
            capacity_type: capacity_type.to_string(),
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
        }
    }

    /// Unknown prices last.
    fn order(&self) -> (bool, Option<Price>, &str, &str, Option<&str>) {
        let unknown = self.price.is_none();
        (unknown, self.price, &self.instance_type, &self.zone, self.reservation.as_deref())
    }
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct Chosen {
    pub capacity_type: CapacityType,
    /// At least one.
    pub ways: Vec<Way>,
    pub types: BTreeMap<String, OfType>,
}

/// Why there is nothing to ask for: how many instance types fail at what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Nothing {
    types: usize,
    /// By what the claim requires.
    requirements: BTreeMap<String, usize>,
    /// By resource.
    too_small: BTreeMap<String, usize>,
    /// By what holds the image back.
    images: BTreeMap<String, usize>,
    /// Nobody has looked up an image for them.
    not_resolved: usize,
    nowhere: usize,
    /// Ways that are marked, and when the first of them may be tried again.
    marked: usize,
    pub marked_until: Option<Timestamp>,
    min_values: Vec<String>,
}

impl Nothing {
    /// Whether more might be known later that changes the answer.
    pub(super) fn unknown(&self) -> bool {
        self.not_resolved > 0 && self.marked == 0
    }
}

/// All that a choice depends on.
pub(super) struct Market<'a> {
    pub claim: &'a Claim,
    pub class: &'a Class,
    pub offered: &'a Offered,
    pub network: &'a Network,
    pub wanted: &'a Wanted,
    pub memory: &'a Memory,
    pub region: &'a str,
    pub now: Timestamp,
}

pub(super) fn choose(market: &Market<'_>) -> Result<Chosen, Box<Nothing>> {
    let mut nothing = Nothing::default();
    let asked = Asked::of(market.claim);
    let subnets = best_subnets(&market.network.subnets);
    let mut candidates: Vec<Candidate<'_>> = market
        .offered
        .types
        .iter()
        .filter_map(|it| market.candidate(it, &asked, &subnets, &mut nothing))
        .collect();
    let counts = market.claim.requirements.iter().any(|it| it.min_values.is_some());
    if !counts && candidates.iter().any(|it| !exotic(it.kind)) {
        candidates.retain(|it| !exotic(it.kind));
    }
    for capacity_type in ORDER.into_iter().filter(|it| asked.admits_capacity(*it)) {
        let mut ways = market.ways(capacity_type, &candidates, &asked, &subnets);
        if capacity_type == CapacityType::Spot && asked.admits_capacity(CapacityType::OnDemand) {
            let on_demand = market.ways(CapacityType::OnDemand, &candidates, &asked, &subnets);
            if let Some(cheapest) = on_demand.iter().filter_map(|it| it.price).min() {
                ways.retain(|it| it.price.is_some_and(|it| it <= cheapest));
            }
        }
        ways.retain(|way| {
            let until = market.marked_until(way, capacity_type);
            nothing.marked += usize::from(until.is_some());
            nothing.marked_until = [nothing.marked_until, until].into_iter().flatten().min();
            until.is_none()
        });
        if ways.is_empty() {
            continue;
        }
        ways.sort_by(|a, b| a.order().cmp(&b.order()));
        cut(&mut ways, counts);
        let short = min_values_short(market.claim, &candidates, &ways, &asked);
        if !short.is_empty() {
            nothing.min_values = short;
            continue;
        }
        let names: BTreeSet<&str> = ways.iter().map(|it| it.instance_type.as_str()).collect();
        let chosen = candidates.iter().filter(|it| names.contains(it.kind.name.as_str()));
        let types = chosen.map(|it| (it.kind.name.clone(), it.of_type())).collect();
        return Ok(Chosen { capacity_type, ways, types });
    }
    if nothing.marked == 0 && nothing.min_values.is_empty() {
        nothing.nowhere += candidates.len();
    }
    Err(Box::new(nothing))
}

/// What a claim says once it has become such a machine.
pub(super) fn of_type(kind: &InstanceType, class: &Class) -> OfType {
    let node = offer(kind, &class.offers);
    let labels = labels(kind, class.boot.family).into_iter();
    let labels = labels.filter_map(|it| Some((it.key.to_owned(), it.value?)));
    let there = |amounts: Amounts| -> Amounts {
        amounts.into_iter().filter(|(_, it)| *it > Quantity::ZERO).collect()
    };
    OfType {
        // A label may not be empty where it means nothing.
        labels: labels.filter(|(_, value)| !value.is_empty()).collect(),
        capacity: there(node.capacity),
        allocatable: there(node.allocatable),
    }
}

struct Candidate<'a> {
    kind: &'a InstanceType,
    image: &'a ImageId,
    labels: BTreeMap<&'static str, Option<String>>,
    of_type: OfType,
}

impl Candidate<'_> {
    fn of_type(&self) -> OfType {
        self.of_type.clone()
    }
}

impl<'a> Market<'a> {
    fn candidate(
        &self,
        kind: &'a InstanceType,
        asked: &Asked,
        subnets: &BTreeMap<&str, &Subnet>,
        nothing: &mut Nothing,
    ) -> Option<Candidate<'a>> {
        let family = self.class.boot.family;
        kind.kubernetes_arch()?;
        nothing.types += 1;
        if family == Family::Al2023 && kind.name.starts_with(NO_AL2023) {
            *nothing
                .images
                .entry("AL2023 does not boot on the first Graviton".to_owned())
                .or_default() += 1;
            return None;
        }
        let nitro = kind.hypervisor.as_deref() == Some("nitro");
        if self.class.launch.connection_tracking.is_some() && !nitro {
            *nothing.requirements.entry("connectionTracking".to_owned()).or_default() += 1;
            return None;
        }
        let labels: BTreeMap<&'static str, Option<String>> =
            labels(kind, family).into_iter().map(|it| (it.key, it.value)).collect();
        if let Some(key) = asked.clash(&labels) {
            *nothing.requirements.entry(key).or_default() += 1;
            return None;
        }
        let of_type = of_type(kind, self.class);
        let room = |name: &str| of_type.allocatable.get(name).copied().unwrap_or(Quantity::ZERO);
        let short = self.claim.requests.iter().find(|(name, amount)| room(name) < **amount);
        if let Some((name, _)) = short {
            *nothing.too_small.entry(name.clone()).or_default() += 1;
            return None;
        }
        let zones = self.offered.zones.get(&kind.name);
        if !zones.into_iter().flatten().any(|it| subnets.contains_key(it.as_str())) {
            nothing.nowhere += 1;
            return None;
        }
        let image = match self.wanted.replacing(self.claim.pool.as_deref(), &kind.name) {
            Replacing::Image(image) => &image.id,
            Replacing::HeldBack(why) => {
                *nothing.images.entry(why.to_string()).or_default() += 1;
                return None;
            }
            Replacing::NoImageFits => {
                *nothing.images.entry("no image fits".to_owned()).or_default() += 1;
                return None;
            }
            Replacing::NotResolved => {
                nothing.not_resolved += 1;
                return None;
            }
        };
        Some(Candidate { kind, image, labels, of_type })
    }

    fn ways(
        &self,
        capacity_type: CapacityType,
        candidates: &[Candidate<'_>],
        asked: &Asked,
        subnets: &BTreeMap<&str, &Subnet>,
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        for it in candidates {
            let name = &it.kind.name;
            for zone in self.offered.zones.get(name).into_iter().flatten() {
                let Some(subnet) = subnets.get(zone.as_str()) else { continue };
                if !asked.admits_place(subnet, self.region) {
                    continue;
                }
                let on_demand = self.offered.on_demand.get(name).copied();
                let spot = self.offered.spot.get(&(name.clone(), zone.clone())).copied();
                let way = |price, reservation| Way {
                    instance_type: name.clone(),
                    zone: zone.clone(),
                    subnet: subnet.id.clone(),
                    image: it.image.clone(),
                    reservation,
                    price,
                };
                match capacity_type {
                    CapacityType::OnDemand => ways.push(way(on_demand, None)),
                    // Before the first answer about spot, its price is taken for that of on-demand.
                    CapacityType::Spot => {
                        let price = if self.offered.spot.is_empty() { on_demand } else { spot };
                        ways.extend(price.map(|it| way(Some(it), None)));
                    }
                    CapacityType::Reserved => {
                        let fits = |it: &&Reservation| {
                            it.instance_type == *name
                                && it.zone == *zone
                                && it.remaining > 0
                                && asked.admits(label::CAPACITY_RESERVATION_ID, Some(&it.id))
                        };
                        let all = self.network.reservations.iter().filter(fits);
                        ways.extend(all.map(|it| way(on_demand, Some(it.id.clone()))));
                    }
                }
            }
        }
        ways
    }

    /// By what others learned lately, and by what this claim's own last attempt did.
    fn marked_until(&self, way: &Way, capacity_type: CapacityType) -> Option<Timestamp> {
        let marked = self.memory.marked_until(&way.mark(capacity_type), self.now);
        let last =
            self.claim.attempt.as_ref().filter(|it| {
                it.ended.is_some() && it.request.capacity_type == capacity_type.word()
            });
        let until = last
            .map(|it| it.since.saturating_add(super::memory::MARKED_FOR).unwrap_or(Timestamp::MAX));
        let tried = last.is_some_and(|it| {
            it.request.choices.iter().any(|it| {
                (&it.instance_type, &it.zone, &it.image)
                    == (&way.instance_type, &way.zone, &way.image)
            })
        });
        marked.or(until.filter(|it| tried && *it > self.now))
    }
}

/// What the claim requires, read once.
struct Asked {
    vocabulary: Vocabulary,
    all: Vec<(String, Requirement)>,
}

impl Asked {
    fn of(claim: &Claim) -> Self {
        let vocabulary = Vocabulary::new();
        let all = claim
            .requirements
            .iter()
            .map(|it| (label::normalise(&it.key).to_owned(), Requirement::read(it, &vocabulary)))
            .collect();
        Self { vocabulary, all }
    }

    fn admits(&self, key: &str, value: Option<&str>) -> bool {
        self.all.iter().filter(|(it, _)| it == key).all(|(_, it)| match value {
            Some(value) => it.admits(self.vocabulary.value(value)),
            None => it.admits_absent(),
        })
    }

    /// The first of the type's labels that is not what is required. Labels that neither type nor
    /// purchase decides are the claim's own to have.
    fn clash(&self, labels: &BTreeMap<&'static str, Option<String>>) -> Option<String> {
        let by_type = self.all.iter().filter(|(key, _)| label::by_type(key));
        let mut clashes =
            by_type.filter(|(key, it)| match labels.get(key.as_str()).and_then(Option::as_deref) {
                Some(value) => !it.admits(self.vocabulary.value(value)),
                None => !it.admits_absent(),
            });
        clashes.next().map(|(key, _)| key.clone())
    }

    fn admits_capacity(&self, capacity_type: CapacityType) -> bool {
        self.admits(label::CAPACITY_TYPE, Some(capacity_type.word()))
    }

    fn admits_place(&self, subnet: &Subnet, region: &str) -> bool {
        self.admits(label::ZONE, Some(&subnet.zone))
            && self.admits(label::REGION, Some(region))
            && (subnet.zone_id.is_none() || self.admits(label::ZONE_ID, subnet.zone_id.as_deref()))
    }
}

/// By zone: the subnet with most free addresses. One that has none is none.
fn best_subnets(subnets: &[Subnet]) -> BTreeMap<&str, &Subnet> {
    let mut best: BTreeMap<&str, &Subnet> = BTreeMap::new();
    for it in subnets.iter().filter(|it| it.free_addresses > 0) {
        let rank = |it: &Subnet| (std::cmp::Reverse(it.free_addresses), it.id.clone());
        let known = best.entry(&it.zone).or_insert(it);
        if rank(it) < rank(known) {
            *known = it;
        }
    }
    best
}

/// With accelerators, or bare metal: dear, and rarely meant.
fn exotic(it: &InstanceType) -> bool {
    it.bare_metal == Some(true)
        || !it.gpus.is_empty()
        || !it.neuron_devices.is_empty()
        || !it.inference_accelerators.is_empty()
        || !it.fpgas.is_empty()
        || !it.media_accelerators.is_empty()
}

/// The cheapest; where many different types are asked for, one zone of each before the second of any.
fn cut(ways: &mut Vec<Way>, diverse: bool) {
    let mut types: BTreeSet<String> = BTreeSet::new();
    ways.retain(|it| {
        types.contains(&it.instance_type)
            || (types.len() < TYPES_MAX && types.insert(it.instance_type.clone()))
    });
    if !diverse {
        ways.truncate(CHOICES_MAX);
        return;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        let nth = seen.entry(way.instance_type.clone()).or_default();
        kept.push((*nth, at));
        *nth += 1;
    }
    kept.sort_unstable();
    let kept: BTreeSet<usize> = kept.into_iter().take(CHOICES_MAX).map(|(_, at)| at).collect();
    let mut at = 0;
    ways.retain(|_| {
        let keep = kept.contains(&at);
        at += 1;
        keep
    });
}

/// Of which labels there are too few different values among what is asked for.
fn min_values_short(
    claim: &Claim,
    candidates: &[Candidate<'_>],
    ways: &[Way],
    asked: &Asked,
) -> Vec<String> {
    let mut short = Vec::new();
    for written in &claim.requirements {
        let Some(need) = written.min_values.and_then(|it| usize::try_from(it).ok()) else {
            continue;
        };
        let key = label::normalise(&written.key);
        let values: BTreeSet<&str> = ways
            .iter()
            .filter_map(|way| {
                if key == label::ZONE {
                    return Some(way.zone.as_str());
                }
                let it = candidates.iter().find(|it| it.kind.name == way.instance_type)?;
                it.labels.get(key).and_then(Option::as_deref)
            })
            .filter(|it| asked.admits(key, Some(it)))
            .collect();
        let counted = key == label::ZONE || label::by_type(key);
        if counted && values.len() < need {
            short.push(format!("{key} has {} of {need} values", values.len()));
        }
    }
    short
}

impl fmt::Display for Nothing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(until) = self.marked_until {
            parts.push(format!("{} had no capacity, next try at {until}", self.marked));
        }
        parts.extend(self.min_values.iter().cloned());
        let told = |all: &BTreeMap<String, usize>, what: &str| -> Vec<String> {
            all.iter().map(|(key, count)| format!("{count} {what} {key}")).collect()
        };
        parts.extend(told(&self.images, "have no image:"));
        if self.not_resolved > 0 {
            parts.push(format!("{} were not asked about", self.not_resolved));
        }
        if self.nowhere > 0 {
            parts.push(format!("{} are not offered where the class has a subnet", self.nowhere));
        }
        parts.extend(told(&self.too_small, "have too little"));
        parts.extend(told(&self.requirements, "fail at"));
        write!(out, "none of {} instance types will do", self.types)?;
        if parts.is_empty() { Ok(()) } else { write!(out, ": {}", parts.join("; ")) }
    }
}
