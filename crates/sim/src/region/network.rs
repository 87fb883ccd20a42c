//! Which subnets, security groups and reservations are there?

use std::collections::BTreeMap;

use nodemolt_core::seen::{NetworkAsk, Selects};
use nodemolt_engine::port::{Network, Reservation, Subnet};

use super::Region;
use crate::scenario;

impl Region {
    /// What a class's terms select.
    pub fn network(&self, ask: &NetworkAsk) -> Network {
        let any = |terms: &[Selects], id: &str, name: Option<&str>, tags: &BTreeMap<_, _>| {
            terms.iter().any(|it| self.selects(it, id, name, tags))
        };
        let subnets = self.subnets.iter().filter(|it| any(&ask.subnets, &it.id, None, &it.tags));
        let groups = self
            .security_groups
            .iter()
            .filter(|it| any(&ask.security_groups, &it.id, Some(&it.name), &it.tags));
        let reservations =
            self.reservations.iter().filter(|it| any(&ask.reservations, &it.id, None, &it.tags));
        Network {
            subnets: subnets
                .map(|it| Subnet {
                    id: it.id.clone(),
                    zone: it.zone.clone(),
                    zone_id: None,
                    free_addresses: self.free_addresses(it),
                })
                .collect(),
            security_groups: groups.map(|it| (it.id.clone(), Some(it.name.clone()))).collect(),
            reservations: reservations
                .map(|it| Reservation {
                    id: it.id.clone(),
                    instance_type: it.instance_type.clone(),
                    zone: it.zone.clone(),
                    remaining: self.remaining(it),
                })
                .collect(),
        }
    }

    /// Whether an image, a subnet or a security group is there.
    pub fn has(&self, id: &str) -> bool {
        self.images.keys().any(|it| it.as_str() == id)
            || self.subnets.iter().any(|it| it.id == id)
            || self.security_groups.iter().any(|it| it.id == id)
    }

    fn selects(
        &self,
        term: &Selects,
        id: &str,
        name: Option<&str>,
        tags: &BTreeMap<String, String>,
    ) -> bool {
        let Selects { id: wanted_id, name: wanted_name, owner, tags: wanted_tags } = term;
        wanted_id.as_ref().is_none_or(|it| it == id)
            && wanted_name.as_ref().is_none_or(|it| Some(it.as_str()) == name)
            && owner.as_ref().is_none_or(|it| it == "self" || it == self.account.as_str())
            && wanted_tags.iter().all(|(key, value)| {
                tags.get(key)
                    .is_some_and(|have| value.as_ref().is_none_or(|it| it == "*" || it == have))
            })
    }

    pub(super) fn free_addresses(&self, subnet: &scenario::Subnet) -> u32 {
        let used = self.live().filter(|it| it.subnet.as_ref() == Some(&subnet.id)).count();
        subnet.free_addresses.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    pub(super) fn remaining(&self, reservation: &scenario::Reservation) -> u32 {
        let used =
            self.live().filter(|it| it.reservation.as_ref() == Some(&reservation.id)).count();
        reservation.count.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    /// Makes sure that what the classes of a scenario select is there: whoever writes a class for a
    /// simulation should not have to invent a network for it. Whoever writes some means those, and no others.
    pub fn provide(&mut self, ask: &NetworkAsk, written: Written) {
        let subnets = if written.subnets { &[][..] } else { &ask.subnets };
        let security_groups = if written.security_groups { &[][..] } else { &ask.security_groups };
        for (at, term) in subnets.iter().enumerate() {
            if self.subnets.iter().any(|it| self.selects(term, &it.id, None, &it.tags)) {
                continue;
            }
            let tags = tags(term);
            // An id is one subnet, in one zone; tags may be on one in each.
            let zones = match &term.id {
                Some(_) => self.zones.get(at % self.zones.len().max(1)).into_iter().collect(),
                None => self.zones.iter().collect::<Vec<_>>(),
            };
            let made: Vec<scenario::Subnet> = zones
                .into_iter()
                .enumerate()
                .map(|(number, zone)| scenario::Subnet {
                    id: term.id.clone().unwrap_or_else(|| {
                        format!("subnet-{:017x}", (self.subnets.len() + number + 1) * 0x1111)
                    }),
                    zone: zone.clone(),
                    tags: tags.clone(),
                    free_addresses: 4_000,
                })
                .collect();
            self.subnets.extend(made);
        }
        for term in security_groups {
            let there =
                |it: &scenario::SecurityGroup| self.selects(term, &it.id, Some(&it.name), &it.tags);
            if self.security_groups.iter().any(there) {
                continue;
            }
            let number = self.security_groups.len() + 1;
            let id = term.id.clone().unwrap_or_else(|| format!("sg-{:017x}", number * 0x1111));
            let name = term.name.clone().unwrap_or_else(|| format!("nodes-{number}"));
            self.security_groups.push(scenario::SecurityGroup { id, name, tags: tags(term) });
        }
    }
}

/// Which parts of the network the scenario writes itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    pub subnets: bool,
    pub security_groups: bool,
}

/// Tags that a term is content with.
fn tags(term: &Selects) -> BTreeMap<String, String> {
    let some = |value: &Option<String>| match value.as_deref() {
        None | Some("*") => "yes".to_owned(),
        Some(value) => value.to_owned(),
    };
    term.tags.iter().map(|(key, value)| (key.clone(), some(value))).collect()
}
