//! What does a class say of how its nodes are started?
//!
//! `EC2NodeClass → launch settings`, and what its status already knows
//!
//! Words are read here; ranges and what must hold between fields is for core to say, and stands beside
//! what could not be read, so that all of it is told at once.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use nodemolt_core::bootstrap::Placement;
use nodemolt_core::launch::{
    BlockDevice, ConnectionTracking, Cpu, Identity, InstanceStorePolicy, Market, Metadata,
    PlacementGroup, PlacementGroupId, Reservation, ReservationId, SecurityGroupId, Settings,
    Switch, UnknownWord, Volume, VolumeSize, WrittenInterface, WrittenKind,
};
use nodemolt_fit::Family;
use serde_json::Value;

use crate::ec2nodeclass::{
    self, EC2NodeClass, EC2NodeClassSpec, Ebs, MetadataOptions, PlacementGroupSelector,
    StatusCapacityReservation,
};
use crate::problem::{Finding, nearest};

const TERMS_MAX: usize = 30;

const SIZE_HINT: &str = "write 1Gi to 59000Gi, 1Ti to 58Ti, 1G to 64000G or 1T to 64T";

impl TryFrom<&EC2NodeClass> for Settings {
    type Error = Vec<Finding>;

    fn try_from(class: &EC2NodeClass) -> Result<Self, Self::Error> {
        let mut reader = Reader { found: Vec::new() };
        let spec = &class.spec;
        let family = reader.family(spec);
        let identity = reader.identity(spec);
        reader.terms(spec);
        let devices = spec.block_device_mappings.as_deref().unwrap_or_default();
        if devices.iter().filter(|it| it.root_volume == Some(true)).count() > 1 {
            let message = "must have only one blockDeviceMappings with rootVolume";
            let finding = Finding::error("spec.blockDeviceMappings", message);
            reader.found.push(finding.hint("keep `rootVolume: true` where pods' files are"));
        }
        let settings = Self {
            class: class.metadata.name.clone(),
            family,
            block_devices: devices
                .iter()
                .enumerate()
                .map(|(at, it)| BlockDevice {
                    name: it.device_name.clone(),
                    volume: it.ebs.as_ref().map(|ebs| {
                        reader.volume(&format!("spec.blockDeviceMappings[{at}].ebs"), ebs)
                    }),
                })
                .collect(),
            instance_store: reader.word::<InstanceStorePolicy>(
                "spec.instanceStorePolicy",
                spec.instance_store_policy.as_deref(),
            ),
            metadata: reader.metadata(spec.metadata_options.as_ref()),
            interfaces: reader.interfaces(spec),
            public_ip: spec.associate_public_ip_address,
            ip_prefixes: spec.ip_prefix_count.map(i64::from),
            connection_tracking: spec.connection_tracking.as_ref().map(|it| ConnectionTracking {
                tcp_established: it.tcp_established_timeout.map(i64::from),
                udp_stream: it.udp_stream_timeout.map(i64::from),
                udp: it.udp_timeout.map(i64::from),
            }),
            tags: spec.tags.clone().unwrap_or_default(),
            identity,
            detailed_monitoring: spec.detailed_monitoring.unwrap_or_default(),
            cpu: reader.cpu(spec.cpu_options.as_ref()),
            placement_group: spec
                .placement_group_selector
                .as_ref()
                .and_then(|it| reader.placement_group(it)),
            context: spec.context.clone(),
            user_part: spec.user_data.clone(),
            user_part_placement: reader.placement(spec.user_data_placement.as_deref()),
            kubelet: kubelet(spec),
        };
        let mut findings = settings.check();
        if findings.is_empty() {
            findings = settings.proportions();
        }
        reader.found.extend(findings.into_iter().map(told));
        if reader.found.is_empty() { Ok(settings) } else { Err(reader.found) }
    }
}

/// A finding of core's.
pub fn told(finding: nodemolt_core::launch::Finding) -> Finding {
    Finding::error(finding.field, finding.message).hint(finding.remedy)
}

/// An empty `kubelet: {}` says nothing, as none does.
fn kubelet(spec: &EC2NodeClassSpec) -> Value {
    let written = spec.kubelet.as_ref().and_then(|it| serde_json::to_value(it).ok());
    written.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())).unwrap_or_default()
}

struct Reader {
    found: Vec<Finding>,
}

impl Reader {
    fn error(&mut self, field: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.found.push(Finding::error(field, message).hint(hint));
    }

    fn word<T>(&mut self, field: &str, written: Option<&str>) -> Option<T>
    where
        T: FromStr<Err = UnknownWord>,
    {
        match written?.parse() {
            Ok(word) => Some(word),
            Err(error) => {
                let message = error.to_string();
                let hint = match nearest(&error.written, &error.known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write one of {}", error.known.join(", ")),
                };
                self.error(field, message, &hint);
                None
            }
        }
    }

    fn parse<T: FromStr>(&mut self, field: &str, written: &str, hint: &str) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        match written.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(field, T::Err::to_string(&error), hint);
                None
            }
        }
    }

    /// As written, else as the alias says. The door has told what is wrong with either.
    fn family(&mut self, spec: &EC2NodeClassSpec) -> Family {
        if let Some(written) = &spec.ami_family {
            let hint = "write the family whose bootstrap the image understands";
            return self.parse("spec.amiFamily", written, hint).unwrap_or(Family::Custom);
        }
        let alias = spec.terms().iter().find_map(|it| it.alias.as_deref()).unwrap_or_default();
        let word = alias.split('@').next().unwrap_or_default();
        Family::from_alias_name(word).unwrap_or(Family::Custom)
    }

    fn identity(&mut self, spec: &EC2NodeClassSpec) -> Identity {
        match (&spec.role, &spec.instance_profile) {
            (Some(role), None) => Identity::Role(role.clone()),
            (None, Some(profile)) => Identity::InstanceProfile(profile.clone()),
            (Some(role), Some(_)) => {
                let message = "must specify exactly one of ['role', 'instanceProfile']";
                self.error("spec.instanceProfile", message, "keep one of the two");
                Identity::Role(role.clone())
            }
            (None, None) => {
                let message = "must specify exactly one of ['role', 'instanceProfile']";
                self.error("spec", message, "write `role` with the IAM role of nodes");
                Identity::Role("unsaid".to_owned())
            }
        }
    }

    fn volume(&mut self, field: &str, ebs: &Ebs) -> Volume {
        let size = ebs
            .volume_size
            .as_deref()
            .and_then(|it| self.parse::<VolumeSize>(&format!("{field}.volumeSize"), it, SIZE_HINT));
        let unread = size.is_none() && ebs.volume_size.is_some();
        Volume {
            // What could not be read was told; it should not be called absent too.
            size: size.or_else(|| unread.then_some(VolumeSize { gib: 1_000 })),
            kind: self.word(&format!("{field}.volumeType"), ebs.volume_type.as_deref()),
            encrypted: ebs.encrypted,
            delete_on_termination: ebs.delete_on_termination,
            iops: ebs.iops,
            throughput: ebs.throughput,
            kms_key: ebs.kms_key_id.clone(),
            snapshot: ebs.snapshot_id.clone(),
            initialization_rate: ebs.volume_initialization_rate.map(i64::from),
        }
    }

    /// What is not written has its own default each, as the schema gives it.
    fn metadata(&mut self, written: Option<&MetadataOptions>) -> Metadata {
        let default = Metadata::default();
        let Some(written) = written else { return default };
        let at = |name: &str| format!("spec.metadataOptions.{name}");
        Metadata {
            endpoint: self
                .word(&at("httpEndpoint"), written.http_endpoint.as_deref())
                .unwrap_or(default.endpoint),
            ipv6: self
                .word(&at("httpProtocolIPv6"), written.http_protocol_ipv6.as_deref())
                .or(default.ipv6),
            hop_limit: written.http_put_response_hop_limit.unwrap_or(default.hop_limit),
            tokens: self
                .word(&at("httpTokens"), written.http_tokens.as_deref())
                .unwrap_or(default.tokens),
        }
    }

    fn interfaces(&mut self, spec: &EC2NodeClassSpec) -> Vec<WrittenInterface> {
        let written = spec.network_interfaces.iter().flatten().enumerate();
        written
            .map(|(at, it)| {
                let field = format!("spec.networkInterfaces[{at}].interfaceType");
                // What could not be read keeps its place, so that what else is told counts right.
                let kind = self.word(&field, Some(it.interface_type.as_str()));
                WrittenInterface {
                    card: i64::from(it.network_card_index),
                    device: i64::from(it.device_index),
                    kind: kind.unwrap_or(WrittenKind::Interface),
                }
            })
            .collect()
    }

    fn cpu(&mut self, written: Option<&ec2nodeclass::CpuOptions>) -> Cpu {
        let Some(written) = written else { return Cpu::default() };
        let at = |name: &str| format!("spec.cpuOptions.{name}");
        Cpu {
            cores: written.core_count.map(i64::from),
            threads_per_core: written.threads_per_core.map(i64::from),
            amd_sev_snp: self.word::<Switch>(&at("amdSevSnp"), written.amd_sev_snp.as_deref()),
            nested_virtualization: self.word::<Switch>(
                &at("nestedVirtualization"),
                written.nested_virtualization.as_deref(),
            ),
        }
    }

    fn placement(&mut self, written: Option<&str>) -> Placement {
        match written {
            None | Some("BeforeBootstrap") => Placement::BeforeBootstrap,
            Some("BetweenBootstrapAndKubelet") => Placement::BetweenBootstrapAndKubelet,
            Some(other) => {
                let known = ["BeforeBootstrap", "BetweenBootstrapAndKubelet"];
                let message = format!("`{other}` is not one of {}", known.join(", "));
                self.error("spec.userDataPlacement", message, "remove it for `BeforeBootstrap`");
                Placement::BeforeBootstrap
            }
        }
    }

    fn placement_group(&mut self, written: &PlacementGroupSelector) -> Option<PlacementGroup> {
        let field = "spec.placementGroupSelector";
        match (&written.name, &written.id) {
            (Some(name), None) => Some(PlacementGroup::Name(name.clone())),
            (None, Some(id)) => self
                .parse::<PlacementGroupId>(&format!("{field}.id"), id, "or select it by `name`")
                .map(PlacementGroup::Id),
            (Some(_), Some(_)) => {
                let message = "'name' and 'id' are mutually exclusive";
                self.error(field, message, "keep one of the two");
                None
            }
            (None, None) => {
                let message = "expected at least one, got none, ['name', 'id']";
                self.error(field, message, "write the group's name, or remove the selector");
                None
            }
        }
    }

    /// What the selectors of the network and of reservations must be. Karpenter means each rule for each
    /// term, and by a slip refuses only a list in which every term breaks it.
    fn terms(&mut self, spec: &EC2NodeClassSpec) {
        let subnets: Vec<Term<'_>> = spec
            .subnet_selector_terms
            .iter()
            .flatten()
            .map(|it| Term { tags: it.tags.as_ref(), id: it.id.as_deref(), others: Vec::new() })
            .collect();
        self.list("spec.subnetSelectorTerms", "a subnet selector term", "subnet-", &subnets);
        let groups: Vec<Term<'_>> = spec
            .security_group_selector_terms
            .iter()
            .flatten()
            .map(|it| Term {
                tags: it.tags.as_ref(),
                id: it.id.as_deref(),
                others: vec![("name", it.name.as_deref())],
            })
            .collect();
        let list = "spec.securityGroupSelectorTerms";
        self.list(list, "a security group selector term", "sg-", &groups);
        for (at, term) in groups.iter().enumerate() {
            let named = term.others.iter().any(|(_, it)| it.is_some());
            if named && (term.tags.is_some() || term.id.is_some()) {
                let message = "'name' is mutually exclusive, cannot be set with a combination of \
                               other fields in a security group selector term";
                self.error(format!("{list}[{at}].name"), message, "make two terms of it");
            }
        }
        let reservations: Vec<Term<'_>> = spec
            .capacity_reservation_selector_terms
            .iter()
            .flatten()
            .map(|it| Term {
                tags: it.tags.as_ref(),
                id: it.id.as_deref(),
                others: vec![
                    ("instanceMatchCriteria", it.instance_match_criteria.as_deref()),
                    ("ownerID", it.owner_id.as_deref()),
                ],
            })
            .collect();
        if !reservations.is_empty() {
            let list = "spec.capacityReservationSelectorTerms";
            self.list(list, "a capacity reservation selector term", "cr-", &reservations);
        }
        for (at, term) in spec.capacity_reservation_selector_terms.iter().flatten().enumerate() {
            let field = format!("spec.capacityReservationSelectorTerms[{at}]");
            if let Some(owner) = &term.owner_id
                && !(owner.len() == 12 && owner.bytes().all(|it| it.is_ascii_digit()))
            {
                let message = format!("`{owner}` is not an AWS account");
                self.error(format!("{field}.ownerID"), message, "write its 12 digits");
            }
            if let Some(word) = &term.instance_match_criteria
                && !matches!(word.as_str(), "open" | "targeted")
            {
                let message = format!("`{word}` is not one of open, targeted");
                self.error(format!("{field}.instanceMatchCriteria"), message, "write one of them");
            }
        }
    }

    fn list(&mut self, list: &str, what: &str, prefix: &str, terms: &[Term<'_>]) {
        let name = list.strip_prefix("spec.").unwrap_or(list);
        if terms.is_empty() {
            let hint = "write a term, for example `- tags: {my/discovery: blue}`";
            self.error(list, format!("{name} cannot be empty"), hint);
        }
        if terms.len() > TERMS_MAX {
            let message = format!("has {} terms, must have at most {TERMS_MAX}", terms.len());
            self.error(list, message, "select by a tag that they share");
        }
        for (at, term) in terms.iter().take(TERMS_MAX).enumerate() {
            self.term(&format!("{list}[{at}]"), what, prefix, term);
        }
    }

    fn term(&mut self, field: &str, what: &str, prefix: &str, term: &Term<'_>) {
        // An owner alone selects nothing: it says whose, not which.
        let others: Vec<&str> =
            term.others.iter().map(|(name, _)| *name).filter(|it| *it != "ownerID").collect();
        let other_said = term.others.iter().any(|(_, it)| it.is_some());
        let selects = term.tags.is_some()
            || term.id.is_some()
            || term.others.iter().any(|(name, it)| *name != "ownerID" && it.is_some());
        if !selects {
            let mut names = vec!["'tags'".to_owned(), "'id'".to_owned()];
            names.extend(others.iter().map(|it| format!("'{it}'")));
            let message = format!("expected at least one, got none, [{}]", names.join(", "));
            self.error(field, message, "write one of them, or remove the term");
        }
        if term.id.is_some() && (term.tags.is_some() || other_said) {
            let message = format!(
                "'id' is mutually exclusive, cannot be set with a combination of other fields in {what}"
            );
            self.error(format!("{field}.id"), message, "an id names one: it needs no more");
        }
        if let Some(id) = term.id {
            let rest = id.strip_prefix(prefix).unwrap_or_default();
            let digits = rest.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'z'));
            if rest.is_empty() || !digits {
                let message = format!("`{id}` is not an id of its kind");
                let hint = format!("an id is `{prefix}` and then digits and lower-case letters");
                self.error(format!("{field}.id"), message, &hint);
            }
        }
        let empty = |(key, value): (&String, &String)| key.is_empty() || value.is_empty();
        if term.tags.is_some_and(|it| it.iter().any(empty)) {
            let message = "empty tag keys or values aren't supported";
            self.error(format!("{field}.tags"), message, "write `*` to match any value");
        }
    }
}

/// What the selectors have in common.
struct Term<'a> {
    tags: Option<&'a BTreeMap<String, String>>,
    id: Option<&'a str>,
    others: Vec<(&'static str, Option<&'a str>)>,
}

/// What the class itself, or whoever wrote its status, knows of what a launch needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    pub security_groups: BTreeSet<SecurityGroupId>,
    pub instance_profile: Option<String>,
    pub reservations: BTreeMap<ReservationId, Reservation>,
}

impl Known {
    /// The status tells what the selectors found. Where they name ids and nothing else, no one had to look.
    pub fn of(class: &EC2NodeClass) -> Self {
        let mut known =
            Self { instance_profile: class.spec.instance_profile.clone(), ..Self::default() };
        if let Some(status) = &class.status {
            let groups = status.security_groups.iter().flatten();
            known.security_groups =
                groups.filter_map(|it| it.id.as_deref()?.parse().ok()).collect();
            if known.instance_profile.is_none() {
                known.instance_profile =
                    status.instance_profile.clone().filter(|it| !it.is_empty());
            }
            for written in status.capacity_reservations.iter().flatten() {
                let reservation = reservation(written);
                known.reservations.extend(reservation.map(|it| (it.id.clone(), it)));
            }
        }
        if known.security_groups.is_empty() {
            let terms = class.spec.security_group_selector_terms.iter().flatten();
            let ids: Option<BTreeSet<SecurityGroupId>> =
                terms.map(|it| it.id.as_deref()?.parse().ok()).collect();
            known.security_groups = ids.unwrap_or_default();
        }
        if known.reservations.is_empty() {
            let terms = class.spec.capacity_reservation_selector_terms.iter().flatten();
            let ids: Option<Vec<ReservationId>> =
                terms.map(|it| it.id.as_deref()?.parse().ok()).collect();
            let plain = |id: ReservationId| (id.clone(), Reservation { id, market: None });
            known.reservations = ids.into_iter().flatten().map(plain).collect();
        }
        known
    }
}

/// One that can be interrupted is a market of its own, whatever its type.
fn reservation(written: &StatusCapacityReservation) -> Option<Reservation> {
    let id = written.id.as_deref()?.parse().ok()?;
    let block = written.reservation_type.as_deref() == Some("capacity-block");
    let market = if written.interruptible == Some(true) {
        Some(Market::Interruptible)
    } else {
        block.then_some(Market::CapacityBlock)
    };
    Some(Reservation { id, market })
}
