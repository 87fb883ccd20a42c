//! Where can machines be had, and for how much?
//!
//! `--region, --zones, --offerings, --prices, classes, nodes → zones of each type + prices`
//!
//! Nothing is made up: where no zone is known, machines have none; where no region is known, or the
//! tables do not have it, they have no price, and nobody speaks of the cheapest.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use nodemolt_api::answers;
use nodemolt_api::listing::World;
use nodemolt_fit::Operator;
use nodemolt_fit::label;
use nodemolt_fit::pool::{Offering, Price};
use nodemolt_fit::prices::{Currency, OfRegion, Prices, SHIPPED_PRICES, region_of_zone};

use super::{Talk, files::Files};
use crate::cli;
use crate::input::read_bytes;
use crate::output::Failure;

const SPOT: &str = "spot";
const ON_DEMAND: &str = "on-demand";
const CAPACITY_TYPES: [&str; 2] = [ON_DEMAND, SPOT];

#[derive(Debug, Default)]
pub(super) struct Market {
    pub region: Option<String>,
    /// Known from anywhere, where a class does not have its own.
    zones: BTreeSet<String>,
    offered: Option<BTreeMap<String, BTreeSet<String>>>,
    on_demand: OfRegion,
    spot: BTreeMap<(String, String), Price>,
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
            let offered = market.offered.get_or_insert_default();
            for (name, zones) in answer.zones {
                offered.entry(name).or_default().extend(zones);
            }
        }
        market.find_zones(verb, files, world);
        market.region = match &verb.region {
            Some(typed) => Some(typed.clone()),
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

    fn find_region(&self, world: &World, talk: &mut Talk) -> Option<String> {
        let labels = world.nodes.iter().filter_map(|it| it.labels.get(label::REGION));
        let of_zones = self.zones.iter().filter_map(|it| region_of_zone(it));
        let all: BTreeSet<&str> = labels.map(String::as_str).chain(of_zones).collect();
        let mut all = all.into_iter();
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
        let mut brought = Prices::default();
        for path in &verb.prices {
            let answer = answers::prices::read(&read_bytes(path)?)
                .with_context(|| format!("cannot use `{}` as prices", path.display()))?;
            if !answer.complete {
                talk.warnings.push(incomplete(path));
            }
            for (region, prices) in answer.on_demand.regions {
                brought.regions.entry(region).or_default().extend(prices);
            }
            self.spot.extend(answer.spot);
        }
        // One region in the user's own prices is the region that is meant, if nothing else tells.
        if self.region.is_none() && brought.regions.len() == 1 {
            self.region = brought.regions.keys().next().cloned();
        }
        let Some(region) = self.region.clone() else {
            self.prices = Known::Unpriced("no region is known: pass --region".to_owned());
            return Ok(());
        };
        let shipped = Prices::shipped().regions.get(&region);
        let own = brought.regions.remove(&region);
        let currency = Currency::of_region(&region);
        let zones_priced = !self.spot.is_empty();
        self.prices = match (shipped, own) {
            (shipped, Some(own)) => {
                self.on_demand = shipped.cloned().unwrap_or_default();
                self.on_demand.extend(own);
                Known::Priced { currency, whence: format!("{region}, from --prices") }
            }
            (Some(shipped), None) => {
                self.on_demand = shipped.clone();
                let date = shipped_date(&region).unwrap_or_default();
                Known::Priced { currency, whence: format!("{region}, shipped prices of {date}") }
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

    pub(super) fn without_spot_prices(&self) -> bool {
        self.spot.is_empty()
    }

    /// How a type can be had, in the zones of a class if it has its own.
    pub(super) fn offerings(&self, name: &str, of_class: &BTreeSet<String>) -> Vec<Offering> {
        let zones = if of_class.is_empty() { &self.zones } else { of_class };
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
        let ways = zones.iter().flat_map(|zone| CAPACITY_TYPES.map(|it| (*zone, it)));
        ways.map(|(zone, capacity_type)| {
            let price = match (capacity_type, zone) {
                (SPOT, Some(zone)) => self.spot.get(&(name.to_owned(), zone.to_owned())),
                (SPOT, None) => None,
                _ => self.on_demand.get(name),
            };
            let mut offering =
                Offering::new(zone.unwrap_or_default(), capacity_type, price.copied());
            if zone.is_none() {
                offering.labels.remove(label::ZONE);
            }
            let region = self.region.as_deref().or(zone.and_then(region_of_zone));
            if let Some(region) = region {
                offering.labels.insert(label::REGION.to_owned(), region.to_owned());
            }
            offering
        })
        .collect()
    }
}

/// The zones of the subnets that Karpenter found for a class.
pub(super) fn zones_of_class(class: &nodemolt_api::ec2nodeclass::EC2NodeClass) -> BTreeSet<String> {
    // Kept as it came: what is no list of subnets has no zones.
    let status = serde_json::to_value(&class.status).unwrap_or_default();
    let subnets = status["subnets"].as_array().cloned().unwrap_or_default();
    subnets.iter().filter_map(|it| it["zone"].as_str()).map(str::to_owned).collect()
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
