//! Where can machines be had, and for how much?
//!
//! `--region, --zones, --offerings, --prices, classes, nodes → zones of each type + prices`
//!
//! Nothing is made up: where no zone is known, machines have none; where no region is known, or the
//! tables do not have it, they have no price, and nobody speaks of the cheapest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Context as _;
use nodemolt_api::answers;
use nodemolt_api::answers::offerings::Unavailable;
use nodemolt_api::ec2nodeclass::{EC2NodeClass, StatusCapacityReservation};
use nodemolt_api::listing::World;
use nodemolt_fit::label;
use nodemolt_fit::pool::{Offering, Price};
use nodemolt_fit::prices::{Currency, OfRegion, Prices, SHIPPED_PRICES, region_of_zone};
use nodemolt_fit::{Operator, Types};

use super::{Talk, files::Files};
use crate::cli;
use crate::input::read_bytes;
use crate::output::Failure;

const SPOT: &str = "spot";
const ON_DEMAND: &str = "on-demand";
const RESERVED: &str = "reserved";
const EXPIRING: &str = "expiring";
const CAPACITY_TYPES: [&str; 2] = [ON_DEMAND, SPOT];

/// So many of what is not known are named.
const NAMED_MAX: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Market {
    pub region: Option<String>,
    /// Known from anywhere, where a class does not have its own.
    zones: BTreeSet<String>,
    /// `use1-az2` of `us-east-1a`, where a class's subnets tell.
    zone_ids: BTreeMap<String, String>,
    offered: Option<BTreeMap<String, BTreeSet<String>>>,
    /// Of what there is no capacity just now.
    unavailable: BTreeSet<Unavailable>,
    /// How many more instances each capacity reservation takes, where somebody told.
    reserved: BTreeMap<String, u32>,
    on_demand: OfRegion,
    spot: BTreeMap<(String, String), Price>,
    /// Types that `--prices` names.
    priced: BTreeSet<String>,
    /// The same with a licence of Windows, where somebody told.
    windows: OfRegion,
    windows_spot: BTreeMap<(String, String), Price>,
    /// Where the prices come from, or why there are none.
    pub prices: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// In words: whence.
    Priced { currency: Currency, whence: String },
    /// In words: why not.
    Unpriced(String),
}

impl Default for Known {
    fn default() -> Self {
        Self::Unpriced(String::new())
    }
}

impl Market {
    pub(super) fn read(
        verb: &cli::Pack,
        files: &Files,
        world: &World,
        talk: &mut Talk,
    ) -> Result<Self, Failure> {
        let mut market = Self::default();
        for path in &verb.offerings {
            let answer = answers::offerings::read(&read_bytes(path)?)
                .with_context(|| format!("cannot use `{}` as offerings", path.display()))?;
            if !answer.complete {
                talk.warnings.push(incomplete(path));
            }
            market.unavailable.extend(answer.unavailable);
            market.reserved.extend(answer.reserved);
            if let Some(zones) = answer.zones {
                let offered = market.offered.get_or_insert_default();
                for (name, zones) in zones {
                    offered.entry(name).or_default().extend(zones);
                }
            }
        }
        market.find_zones(verb, files, world);
        market.zone_ids =
            files.classes.values().flat_map(|it| zone_ids_of_class(&it.wire)).collect();
        market.region = match &verb.region {
            Some(typed) => Some(market.agreed(typed, world)?),
            None => market.find_region(world, talk),
        };
        market.find_prices(verb, talk)?;
        if market.zones.is_empty() && !files.pools.is_empty() {
            talk.notes.push(
                "no zones are known, so new nodes have none: pass --offerings FILE or --zones ZONE,…"
                    .to_owned(),
            );
        }
        Ok(market)
    }

    fn find_zones(&mut self, verb: &cli::Pack, files: &Files, world: &World) {
        if !verb.zones.is_empty() {
            self.zones.extend(verb.zones.iter().cloned());
            return;
        }
        if let Some(offered) = &self.offered {
            self.zones.extend(offered.values().flatten().cloned());
        }
        let of_classes = files.classes.values().flat_map(|it| zones_of_class(&it.wire));
        self.zones.extend(of_classes);
        let of_nodes = world.nodes.iter().filter_map(|it| it.labels.get(label::ZONE));
        self.zones.extend(of_nodes.cloned());
        let written = files.pools.iter().flat_map(|it| &it.pool.requirements);
        let named = written
            .filter(|it| label::normalise(&it.key) == label::ZONE && it.operator == Operator::In);
        self.zones.extend(named.flat_map(|it| it.values.iter().cloned()));
    }

    /// All that nodes and zones speak of.
    fn regions<'m>(&'m self, world: &'m World) -> BTreeSet<&'m str> {
        let labels = world.nodes.iter().filter_map(|it| it.labels.get(label::REGION));
        let of_zones = self.zones.iter().filter_map(|it| region_of_zone(it));
        labels.map(String::as_str).chain(of_zones).collect()
    }

    /// A claim for one region and the zones of another could never be launched.
    fn agreed(&self, typed: &str, world: &World) -> Result<String, Failure> {
        let known = self.regions(world);
        match known.first() {
            Some(other) if !known.contains(typed) => Err(Failure::usage(format!(
                "--region is `{typed}`, but nodes and zones are of `{other}`"
            ))
            .hint("leave --region out: nodes and zones tell it")),
            Some(_) | None => Ok(typed.to_owned()),
        }
    }

    fn find_region(&self, world: &World, talk: &mut Talk) -> Option<String> {
        let mut all = self.regions(world).into_iter();
        match (all.next(), all.next()) {
            (Some(only), None) => Some(only.to_owned()),
            (Some(one), Some(other)) => {
                talk.warnings.push(format!(
                    "the files speak of several regions, such as {one} and {other}: pass --region"
                ));
                None
            }
            (None, _) => None,
        }
    }

    fn find_prices(&mut self, verb: &cli::Pack, talk: &mut Talk) -> Result<(), Failure> {
        let (mut brought, mut windows) = (Prices::default(), Prices::default());
        for path in &verb.prices {
            let answer = answers::prices::read(&read_bytes(path)?)
                .with_context(|| format!("cannot use `{}` as prices", path.display()))?;
            if !answer.complete {
                talk.warnings.push(incomplete(path));
            }
            let empty = |it: &Prices| it.regions.values().all(BTreeMap::is_empty);
            if empty(&answer.on_demand)
                && empty(&answer.windows)
                && answer.spot.is_empty()
                && answer.windows_spot.is_empty()
            {
                talk.warnings.push(format!("{}: there is no price in it", path.display()));
            }
            let of_regions = [&answer.on_demand, &answer.windows].into_iter();
            let named = of_regions.flat_map(|it| it.regions.values()).flat_map(BTreeMap::keys);
            let on_spot = answer.spot.keys().chain(answer.windows_spot.keys());
            self.priced.extend(named.chain(on_spot.map(|(name, _)| name)).cloned());
            for (region, prices) in answer.on_demand.regions {
                brought.regions.entry(region).or_default().extend(prices);
            }
            // Where Windows alone is priced, these are prices of that region all the same.
            for (region, prices) in answer.windows.regions {
                brought.regions.entry(region.clone()).or_default();
                windows.regions.entry(region).or_default().extend(prices);
            }
            self.spot.extend(answer.spot);
            self.windows_spot.extend(answer.windows_spot);
        }
        // One region in the user's own prices is the region that is meant, if nothing else tells.
        if self.region.is_none() && brought.regions.len() == 1 {
            self.region = brought.regions.keys().next().cloned();
        }
        let Some(region) = self.region.clone() else {
            self.prices = Known::Unpriced("no region is known: pass --region".to_owned());
            return Ok(());
        };
        self.windows = windows.regions.remove(&region).unwrap_or_default();
        let shipped = Prices::shipped().regions.get(&region);
        let own = brought.regions.remove(&region);
        if own.is_none() && !brought.regions.is_empty() {
            let others: Vec<&str> = brought.regions.keys().map(String::as_str).collect();
            talk.warnings.push(format!(
                "--prices has none of {region}, only of {}: they are not used",
                others.join(", ")
            ));
        }
        let currency = Currency::of_region(&region);
        let zones_priced = !self.spot.is_empty() || !self.windows_spot.is_empty();
        self.prices = match (shipped, own) {
            (shipped, Some(own)) => {
                self.on_demand = shipped.cloned().unwrap_or_default();
                let rest = self.on_demand.keys().any(|it| !own.contains_key(it));
                self.on_demand.extend(own);
                let mut whence = format!("{region}, from --prices");
                if let (true, Some(date)) = (rest, shipped_date(&region)) {
                    let _ = write!(whence, ", the rest shipped, of {date}");
                }
                Known::Priced { currency, whence }
            }
            (Some(shipped), None) => {
                self.on_demand = shipped.clone();
                let date = shipped_date(&region).unwrap_or_default();
                let spot = if zones_priced { ", spot from --prices" } else { "" };
                let whence = format!("{region}, shipped prices of {date}{spot}");
                Known::Priced { currency, whence }
            }
            (None, None) if zones_priced => {
                Known::Priced { currency, whence: format!("{region}, spot from --prices") }
            }
            (None, None) => {
                let known: Vec<&str> =
                    Prices::shipped().regions.keys().map(String::as_str).collect();
                Known::Unpriced(format!(
                    "the shipped table has no prices of {region}, only of {}: pass --prices FILE",
                    known.join(", ")
                ))
            }
        };
        Ok(())
    }

    /// Prices of types that nobody knows: of few, mistyped; AWS itself prints those of types that are newer than the table.
    pub(super) fn prices_in_vain(&self, types: &Types) -> Vec<String> {
        let vain = self.priced.iter().filter(|it| types.find(it).is_err());
        let vain: Vec<&str> = vain.map(String::as_str).collect();
        let first: Vec<&str> = vain.iter().take(NAMED_MAX).copied().collect();
        let more = if vain.len() > NAMED_MAX { ", …" } else { "" };
        let text = format!(
            "--prices has prices of instance types that are not known here: {}{more}",
            first.join(", ")
        );
        (!vain.is_empty()).then_some(text).into_iter().collect()
    }

    /// Marks of what cannot be had that mean nothing: most often mistyped.
    pub(super) fn marks_in_vain(&self, types: &Types) -> Vec<String> {
        let vain = |it: &&Unavailable| {
            types.find(&it.instance_type).is_err() || !self.knows_zone(&it.location)
        };
        let mut names: Vec<String> = self
            .unavailable
            .iter()
            .filter(vain)
            .map(|it| format!("{} in {}", it.instance_type, it.location))
            .collect();
        names.dedup();
        let text = names.join(", ");
        let warning = format!(
            "--offerings marks as unavailable what is not known here, by instance type or zone: {text}"
        );
        (!names.is_empty()).then_some(warning).into_iter().collect()
    }

    /// Whether the zone is one in which new nodes are looked for.
    pub(super) fn knows_zone(&self, zone: &str) -> bool {
        self.zones.is_empty() || self.zones.contains(zone) || self.zone_ids.contains_key(zone)
    }

    pub(super) fn without_spot_prices(&self) -> bool {
        self.spot.is_empty()
    }

    /// Whether the machine may be bought on the spot market of a zone of which no price is known,
    /// while others are.
    pub(super) fn spot_unpriced_somewhere(&self, name: &str, zones: &[String]) -> bool {
        let priced = |zone: &String| self.spot.contains_key(&(name.to_owned(), zone.clone()));
        !self.spot.is_empty() && zones.iter().any(|it| !priced(it))
    }

    /// How a type can be had, in the zones of a class if it has its own.
    pub(super) fn offerings(&self, name: &str, class: &OfClass) -> Vec<Offering> {
        let zones = if class.zones.is_empty() { &self.zones } else { &class.zones };
        let offered = self.offered.as_ref().map(|it| it.get(name));
        let zones: Vec<Option<&str>> = match offered {
            Some(None) => return Vec::new(),
            Some(Some(offered)) => zones
                .iter()
                .filter(|it| offered.contains(*it))
                .map(|it| Some(it.as_str()))
                .collect(),
            None if zones.is_empty() => vec![None],
            None => zones.iter().map(|it| Some(it.as_str())).collect(),
        };
        let zones: Vec<Option<&str>> = zones.into_iter().filter(|it| self.here(*it)).collect();
        let ways = zones.iter().flat_map(|zone| CAPACITY_TYPES.map(|it| (*zone, it)));
        let mut offerings: Vec<Offering> = ways
            .map(|(zone, capacity_type)| {
                let (on_demand, spot) = if class.windows {
                    (&self.windows, &self.windows_spot)
                } else {
                    (&self.on_demand, &self.spot)
                };
                let price = match (capacity_type, zone) {
                    (SPOT, Some(zone)) => spot.get(&(name.to_owned(), zone.to_owned())),
                    (SPOT, None) => None,
                    _ => on_demand.get(name),
                };
                self.offering(name, zone, capacity_type, price.copied())
            })
            .collect();
        let reservations = class.reservations.iter();
        let of_type = reservations.filter(|it| it.instance_type.as_deref() == Some(name));
        offerings.extend(of_type.filter_map(|it| self.reservation(name, it)));
        offerings
    }

    /// Where several regions are spoken of, new nodes are launched in the one that is meant.
    fn here(&self, zone: Option<&str>) -> bool {
        match (&self.region, zone.and_then(region_of_zone)) {
            (Some(region), Some(of_zone)) => region == of_zone,
            (Some(_) | None, Some(_) | None) => true,
        }
    }

    fn offering(
        &self,
        name: &str,
        zone: Option<&str>,
        capacity_type: &str,
        price: Option<Price>,
    ) -> Offering {
        let mut offering = Offering::new(zone.unwrap_or_default(), capacity_type, price);
        if zone.is_none() {
            offering.labels.remove(label::ZONE);
        }
        if let Some(id) = zone.and_then(|it| self.zone_ids.get(it)) {
            offering.labels.insert(label::ZONE_ID.to_owned(), id.clone());
        }
        let region = self.region.as_deref().or(zone.and_then(region_of_zone));
        if let Some(region) = region {
            offering.labels.insert(label::REGION.to_owned(), region.to_owned());
        }
        let spent = |bought: Option<&str>| {
            zone.is_some_and(|zone| {
                self.unavailable.contains(&Unavailable {
                    instance_type: name.to_owned(),
                    location: zone.to_owned(),
                    capacity_type: bought.map(str::to_owned),
                })
            })
        };
        offering.available = !spent(None) && !spent(Some(capacity_type));
        offering
    }

    /// Reserved capacity is paid for whether it is used or not. Where nobody told how much of it is
    /// free, none is counted upon.
    fn reservation(&self, name: &str, it: &StatusCapacityReservation) -> Option<Offering> {
        let id = it.id.as_ref()?;
        let zone = it.availability_zone.as_deref();
        if it.state.as_deref() == Some(EXPIRING) || !self.here(zone) {
            return None;
        }
        let mut offering = self.offering(name, zone, RESERVED, Some(Price(0)));
        let kind = it.reservation_type.as_deref().unwrap_or("default");
        let interruptible = it.interruptible.unwrap_or(false).to_string();
        let labels = [
            (label::CAPACITY_RESERVATION_ID, id.as_str()),
            (label::CAPACITY_RESERVATION_TYPE, kind),
            (label::CAPACITY_RESERVATION_INTERRUPTIBLE, interruptible.as_str()),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        offering.labels.extend(labels);
        offering.remaining = Some(self.reserved.get(id).copied().unwrap_or(0));
        Some(offering)
    }

    /// Whether machines for Windows have no price, though others have.
    pub(super) fn lacks_windows(&self) -> bool {
        let priced = matches!(self.prices, Known::Priced { .. });
        priced && self.windows.is_empty() && self.windows_spot.is_empty()
    }

    /// Reservations of the class of which nobody told how many instances they still take.
    pub(super) fn uncounted<'c>(&self, class: &'c OfClass) -> Vec<&'c str> {
        let all = class.reservations.iter();
        let usable = all.filter(|it| it.state.as_deref() != Some(EXPIRING));
        let ids = usable.filter_map(|it| it.id.as_deref());
        ids.filter(|it| !self.reserved.contains_key(*it)).collect()
    }
}

/// What a class's own status says about where its nodes can be had.
#[derive(Debug, Default)]
pub(super) struct OfClass {
    /// Of the subnets that Karpenter found.
    pub zones: BTreeSet<String>,
    reservations: Vec<StatusCapacityReservation>,
    /// Its nodes have a licence to pay for.
    pub windows: bool,
}

impl OfClass {
    pub(super) fn new(class: &EC2NodeClass, windows: bool) -> Self {
        let reservations = class.status.as_ref().and_then(|it| it.capacity_reservations.clone());
        let reservations = reservations.unwrap_or_default();
        Self { zones: zones_of_class(class), reservations, windows }
    }
}

/// The zones of the subnets that Karpenter found for a class.
fn zones_of_class(class: &EC2NodeClass) -> BTreeSet<String> {
    // Kept as it came: what is no list of subnets has no zones.
    let status = serde_json::to_value(&class.status).unwrap_or_default();
    let subnets = status["subnets"].as_array().cloned().unwrap_or_default();
    subnets.iter().filter_map(|it| it["zone"].as_str()).map(str::to_owned).collect()
}

fn zone_ids_of_class(class: &EC2NodeClass) -> BTreeMap<String, String> {
    let status = serde_json::to_value(&class.status).unwrap_or_default();
    let subnets = status["subnets"].as_array().cloned().unwrap_or_default();
    let pairs = subnets.iter().filter_map(|it| {
        let id = it["zoneID"].as_str().filter(|it| !it.is_empty())?;
        Some((it["zone"].as_str()?.to_owned(), id.to_owned()))
    });
    pairs.collect()
}

fn incomplete(path: &std::path::Path) -> String {
    format!("{}: the answer has a NextToken, so it is incomplete", path.display())
}

/// `# us-east-1: 1361 types, USD, as of 2026-07-06`
fn shipped_date(region: &str) -> Option<&'static str> {
    let start = format!("# {region}: ");
    let line = SHIPPED_PRICES.lines().find(|it| it.starts_with(&start))?;
    line.rsplit_once(' ').map(|(_, date)| date)
}
