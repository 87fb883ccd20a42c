//! On which instance types can an image boot?
//!
//! `labels of the type and of the pool × requirements of the image`, and the hardware itself: firmware,
//! TPM, virtualisation, root device. Hardware has no labels, but counts like any inferred requirement.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nodemolt_fit::{
    Family, InstanceType, Key, Requirement, Requirements, Types, Vocabulary, Written, type_labels,
};

use crate::image::{BootMode, Image, NamePattern};

/// The instance types, read once for a family of images.
#[derive(Debug)]
pub struct Machines {
    pub vocabulary: Vocabulary,
    all: Vec<Machine>,
    /// Who offers what: types are many, and the values that they have of a label are few.
    offers: BTreeMap<Key, Offers>,
    /// Types whose hardware is the same in all that an image can need of it, save their names.
    alike: Vec<Which>,
    /// For each machine its place in `alike`.
    bodies: Vec<Option<usize>>,
}

/// What the machines offer of one label.
#[derive(Debug)]
struct Offers {
    distinct: Vec<(Requirement, Which)>,
    /// For each machine its place in `distinct`, if it has the label.
    places: Vec<Option<usize>>,
}

/// Some of the machines, by their position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Which(Vec<u64>);

impl Which {
    fn none(of: usize) -> Self {
        Self(vec![0; of.div_ceil(64)])
    }

    /// Also those that there are not; nobody asks for them.
    fn all(of: usize) -> Self {
        Self(vec![u64::MAX; of.div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn add(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(it, other)| *it |= other);
    }

    fn keep(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(it, other)| *it &= other);
    }

    fn remove(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(it, other)| *it &= !other);
    }

    fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|it| *it != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }
}

#[derive(Debug)]
pub struct Machine {
    pub name: Arc<str>,
    pub offers: Requirements,
    boot_modes: Option<Vec<String>>,
    nitro_tpm: Option<bool>,
    root_devices: Option<Vec<String>>,
    virtualization: Option<Vec<String>>,
    ena_required: bool,
    /// Kubernetes runs on its architecture.
    pub for_nodes: bool,
}

impl Machines {
    pub fn new(types: &Types, family: Family) -> Self {
        let vocabulary = Vocabulary::new();
        let machines: Vec<Machine> = types.iter().map(|it| read(it, family, &vocabulary)).collect();
        let number = machines.len();
        let mut offers: BTreeMap<Key, BTreeMap<Requirement, Which>> = BTreeMap::new();
        let mut alike: BTreeMap<_, Which> = BTreeMap::new();
        for (at, machine) in machines.iter().enumerate() {
            for (key, offered) in machine.offers.iter() {
                let same = offers.entry(key).or_default().entry(offered.clone());
                same.or_insert_with(|| Which::none(number)).insert(at);
            }
            alike.entry(machine.body()).or_insert_with(|| Which::none(number)).insert(at);
        }
        let alike: Vec<Which> = alike.into_values().collect();
        let body = |at| alike.iter().position(|it| it.contains(at));
        let bodies = (0..number).map(body).collect();
        let offers = offers
            .into_iter()
            .map(|(key, by_offer)| {
                let distinct: Vec<(Requirement, Which)> = by_offer.into_iter().collect();
                let place = |at| distinct.iter().position(|(_, those)| those.contains(at));
                (key, Offers { places: (0..number).map(place).collect(), distinct })
            })
            .collect();
        Self { vocabulary, all: machines, offers, alike, bodies }
    }

    /// On which machines an image boots: those that offer, with the pool, what it requires, and have the
    /// hardware that it needs.
    pub(super) fn fitting(
        &self,
        pool: Option<&Requirements>,
        asked: &Requirements,
        hardware: &Hardware,
    ) -> Fitting {
        let hardware = self.with_hardware(hardware);
        let mut all = hardware.clone();
        let mut labels = Vec::with_capacity(asked.iter().len());
        for (key, asked) in asked.iter() {
            // The type's label decides; a label that a type does not have is the pool's.
            let otherwise = match pool.and_then(|it| it.get(key)) {
                Some(offered) => offered.intersects(asked),
                None => asked.admits_absent(),
            };
            let agreeing = self.agreeing(key, asked, otherwise);
            all.keep(&agreeing);
            labels.push(agreeing);
        }
        Fitting { all, labels, hardware }
    }

    /// Which machines the pool would launch at all.
    pub(super) fn in_pool(&self, pool: &Requirements) -> Which {
        let mut launched = Which::all(self.all.len());
        for (key, wanted) in pool.iter() {
            launched.keep(&self.agreeing(key, wanted, true));
        }
        launched
    }

    /// Who offers what is asked for; who does not have the label is in or out as told.
    fn agreeing(&self, key: Key, asked: &Requirement, otherwise: bool) -> Which {
        let number = self.all.len();
        let offers = self.offers.get(&key).map_or(&[][..], |it| &it.distinct);
        let mut agreeing = if otherwise { Which::all(number) } else { Which::none(number) };
        for (offered, those) in offers {
            match (offered.intersects(asked), otherwise) {
                (true, false) => agreeing.add(those),
                (false, true) => agreeing.remove(those),
                (true, true) | (false, false) => {}
            }
        }
        agreeing
    }

    /// By what these requirements, and hardware, tell machines from each other.
    pub(super) fn telling<'a>(
        &'a self,
        asked: impl Iterator<Item = &'a Requirements>,
    ) -> Telling<'a> {
        let mut keys: Vec<Key> = asked.flat_map(|it| it.iter().map(|(key, _)| key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut columns = vec![self.bodies.as_slice()];
        columns.extend(keys.iter().filter_map(|it| self.offers.get(it)).map(|it| &it.places[..]));
        Telling { columns }
    }

    fn with_hardware(&self, hardware: &Hardware) -> Which {
        let mut fitting = Which::none(self.all.len());
        if hardware.names_types() {
            for (at, machine) in self.all.iter().enumerate() {
                if hardware.misses(machine).is_empty() {
                    fitting.insert(at);
                }
            }
            return fitting;
        }
        for those in &self.alike {
            if those.first().is_some_and(|it| hardware.misses(&self.all[it]).is_empty()) {
                fitting.add(those);
            }
        }
        fitting
    }

    /// In order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Machine {
    /// All that hardware decides by, save the name.
    #[expect(clippy::type_complexity, reason = "nobody names it")]
    fn body(
        &self,
    ) -> (&Option<Vec<String>>, Option<bool>, &Option<Vec<String>>, &Option<Vec<String>>, bool)
    {
        let Self { boot_modes, nitro_tpm, root_devices, virtualization, ena_required, .. } = self;
        (boot_modes, *nitro_tpm, root_devices, virtualization, *ena_required)
    }
}

fn read(instance_type: &InstanceType, family: Family, vocabulary: &Vocabulary) -> Machine {
    let mut offers = Requirements::new();
    for label in type_labels::labels(instance_type, family) {
        let requirement = match &label.value {
            Some(value) => Requirement::exactly(vocabulary.value(value)),
            None => Requirement::absent(),
        };
        offers.set(vocabulary.key(label.key), requirement);
    }
    Machine {
        name: instance_type.name.as_str().into(),
        offers,
        boot_modes: instance_type.boot_modes.clone(),
        nitro_tpm: instance_type.nitro_tpm,
        root_devices: instance_type.root_devices.clone(),
        virtualization: instance_type.virtualisation.clone(),
        ena_required: instance_type.network.ena.as_deref() == Some("required"),
        for_nodes: instance_type.kubernetes_arch().is_some(),
    }
}

/// What a `NodePool` adds to a node: its labels and its requirements, as one.
#[derive(Debug, Clone)]
pub struct Pool {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub requirements: Vec<Written>,
}

impl Pool {
    pub(super) fn read(&self, vocabulary: &Vocabulary) -> Requirements {
        let mut read = Requirements::read(&self.requirements, vocabulary);
        for (key, value) in &self.labels {
            read.add(vocabulary.key(key), &Requirement::exactly(vocabulary.value(value)));
        }
        let name = Requirement::exactly(vocabulary.value(&self.name));
        read.add(vocabulary.key(nodemolt_fit::label::NODEPOOL), &name);
        read
    }
}

/// What an image needs of the machine itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    boot: Option<BootMode>,
    tpm: Option<String>,
    virtualization: Option<String>,
    root_device: Option<String>,
    without_ena: bool,
    supported: Vec<NamePattern>,
    unsupported: Vec<NamePattern>,
}

impl Hardware {
    pub fn of(image: &Image) -> Self {
        Self {
            boot: image.boot_mode.clone(),
            tpm: image.tpm.clone(),
            virtualization: image.virtualization.clone(),
            root_device: image.root_device.clone(),
            without_ena: image.ena == Some(false),
            supported: image.supported_types.clone(),
            unsupported: image.unsupported_types.clone(),
        }
    }

    /// Whether this boots wherever the other does. Then the older of two images is of no use.
    pub fn covers(&self, other: &Self) -> bool {
        self.as_needed().covers(&other.as_needed())
    }

    pub(super) fn covers_image(&self, image: &Image) -> bool {
        self.as_needed().covers(&Needed::by(image))
    }

    fn as_needed(&self) -> Needed<'_> {
        Needed {
            boot: self.boot.as_ref(),
            tpm: self.tpm.as_deref(),
            virtualization: self.virtualization.as_deref(),
            root_device: self.root_device.as_deref(),
            without_ena: self.without_ena,
            supported: &self.supported,
            unsupported: &self.unsupported,
        }
    }

    /// For people: what it says it needs.
    pub fn needs(&self) -> Vec<String> {
        let mut needs = Vec::new();
        needs.extend(self.boot.as_ref().map(|it| format!("boot mode {}", it.as_str())));
        needs.extend(self.tpm.as_ref().map(|it| format!("TPM {it}")));
        needs.extend(self.virtualization.as_ref().map(|it| format!("virtualisation {it}")));
        needs.extend(self.root_device.as_ref().map(|it| format!("root device {it}")));
        needs.extend(self.without_ena.then(|| "no ENA".to_owned()));
        if !self.supported.is_empty() {
            let all: Vec<&str> = self.supported.iter().map(NamePattern::as_str).collect();
            needs.push(format!("instance types {}", all.join(", ")));
        }
        if !self.unsupported.is_empty() {
            let all: Vec<&str> = self.unsupported.iter().map(NamePattern::as_str).collect();
            needs.push(format!("instance types other than {}", all.join(", ")));
        }
        needs
    }

    /// Whether it needs more of a machine than what machines have in common: a name.
    pub(super) fn names_types(&self) -> bool {
        !self.supported.is_empty() || !self.unsupported.is_empty()
    }

    /// What of it the machine lacks. What the machine's description does not say is taken to be there.
    pub(super) fn misses(&self, machine: &Machine) -> Vec<Miss> {
        let mut misses = Vec::new();
        let has = |list: &Option<Vec<String>>, word: &str| {
            list.as_ref().is_none_or(|it| it.iter().any(|it| it == word))
        };
        let shown = |list: &Option<Vec<String>>| list.as_deref().unwrap_or_default().join(", ");
        let boots = match &self.boot {
            None => true,
            Some(BootMode::UefiPreferred) => {
                has(&machine.boot_modes, "uefi") || has(&machine.boot_modes, "legacy-bios")
            }
            Some(mode) => has(&machine.boot_modes, mode.as_str()),
        };
        let mut miss = |what: &str, needs: String, has: String| {
            misses.push(Miss { what: what.to_owned(), needs, has });
        };
        if !boots {
            let needs = self.boot.as_ref().map_or("", BootMode::as_str).to_owned();
            miss("boot mode", needs, shown(&machine.boot_modes));
        }
        if self.tpm.is_some() && machine.nitro_tpm == Some(false) {
            miss("TPM", "NitroTPM".to_owned(), "none".to_owned());
        } else if self.tpm.is_some() && !has(&machine.boot_modes, "uefi") {
            miss("boot mode", "uefi (for its TPM)".to_owned(), shown(&machine.boot_modes));
        }
        if let Some(kind) =
            self.virtualization.as_ref().filter(|it| !has(&machine.virtualization, it))
        {
            miss("virtualisation", kind.clone(), shown(&machine.virtualization));
        }
        if let Some(kind) = self.root_device.as_ref().filter(|it| !has(&machine.root_devices, it)) {
            miss("root device", kind.clone(), shown(&machine.root_devices));
        }
        if self.without_ena && machine.ena_required {
            miss("ENA", "a machine without it".to_owned(), "required".to_owned());
        }
        let named = |patterns: &[NamePattern]| patterns.iter().any(|it| it.matches(&machine.name));
        if (!self.supported.is_empty() && !named(&self.supported)) || named(&self.unsupported) {
            miss("instance type", self.needs().pop().unwrap_or_default(), machine.name.to_string());
        }
        misses
    }
}

/// `Hardware`, where it stands.
struct Needed<'a> {
    boot: Option<&'a BootMode>,
    tpm: Option<&'a str>,
    virtualization: Option<&'a str>,
    root_device: Option<&'a str>,
    without_ena: bool,
    supported: &'a [NamePattern],
    unsupported: &'a [NamePattern],
}

impl<'a> Needed<'a> {
    fn by(image: &'a Image) -> Self {
        Self {
            boot: image.boot_mode.as_ref(),
            tpm: image.tpm.as_deref(),
            virtualization: image.virtualization.as_deref(),
            root_device: image.root_device.as_deref(),
            without_ena: image.ena == Some(false),
            supported: &image.supported_types,
            unsupported: &image.unsupported_types,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        let boot = self.boot == other.boot
            || matches!(self.boot, None | Some(BootMode::UefiPreferred))
                && !matches!(other.boot, Some(BootMode::Other(_)));
        // An image that names nothing may be taken to need nothing.
        let alike = |ours: Option<&str>, theirs: Option<&str>| ours.is_none() || ours == theirs;
        boot && alike(self.tpm, other.tpm)
            && alike(self.virtualization, other.virtualization)
            && alike(self.root_device, other.root_device)
            && (!self.without_ena || other.without_ena)
            && (self.supported.is_empty() || self.supported == other.supported)
            && self.unsupported.iter().all(|it| other.unsupported.contains(it))
    }
}

/// Whether one image boots wherever the other does.
pub(super) fn covers(one: &Image, other: &Image) -> bool {
    Needed::by(one).covers(&Needed::by(other))
}

/// One thing that an image needs and a node of this type would not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Miss {
    pub what: String,
    pub needs: String,
    pub has: String,
}

impl fmt::Display for Miss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: image needs {}, type has {}", self.what, self.needs, self.has)
    }
}

/// The type's label decides; a label that types do not have is the pool's; else there is none.
fn admitted(machine: &Machine, pool: Option<&Requirements>, key: Key, asked: &Requirement) -> bool {
    let offered = machine.offers.get(key).or_else(|| pool.and_then(|it| it.get(key)));
    offered.map_or_else(|| asked.admits_absent(), |it| it.intersects(asked))
}

/// How many labels an image asks for that a node of this type from this pool has.
pub(super) fn met(machine: &Machine, pool: Option<&Requirements>, asked: &Requirements) -> usize {
    asked
        .iter()
        .filter(|(key, asked)| !asked.admits_absent() && admitted(machine, pool, *key, asked))
        .count()
}

/// See `Machines::fitting`: on the whole, by each label that is asked for, and by hardware.
#[derive(Debug)]
pub(super) struct Fitting {
    all: Which,
    labels: Vec<Which>,
    hardware: Which,
}

impl Fitting {
    pub(super) fn contains(&self, at: usize) -> bool {
        self.all.contains(at)
    }

    /// How many things stand between the image and a type: as many as `misses` would tell.
    pub(super) fn misses_number(&self, at: usize, machine: &Machine, hardware: &Hardware) -> usize {
        let labels = self.labels.iter().filter(|it| !it.contains(at)).count();
        if self.hardware.contains(at) { labels } else { labels + hardware.misses(machine).len() }
    }
}

/// See `Machines::telling`.
#[derive(Debug)]
pub(super) struct Telling<'a> {
    columns: Vec<&'a [Option<usize>]>,
}

impl Telling<'_> {
    /// Whether two machines offer the same, and have the same hardware save their names.
    pub(super) fn alike(&self, one: usize, other: usize) -> bool {
        self.columns.iter().all(|it| it[one] == it[other])
    }
}

/// All that stands between an image and a type.
pub(super) fn misses(
    machine: &Machine,
    pool: Option<&Requirements>,
    asked: &Requirements,
    hardware: &Hardware,
    vocabulary: &Vocabulary,
) -> Vec<Miss> {
    let mut misses: Vec<Miss> = asked
        .iter()
        .filter(|(key, asked)| !admitted(machine, pool, *key, asked))
        .map(|(key, asked)| {
            let text = vocabulary.key_text(key);
            let offered = machine.offers.get(key).or_else(|| pool.and_then(|it| it.get(key)));
            Miss {
                what: text.to_string(),
                needs: shown(asked, vocabulary),
                has: offered.map_or_else(|| "none".to_owned(), |it| shown(it, vocabulary)),
            }
        })
        .collect();
    misses.extend(hardware.misses(machine));
    misses.sort();
    misses
}

/// A requirement's outcomes in few words.
pub fn shown(requirement: &Requirement, vocabulary: &Vocabulary) -> String {
    use nodemolt_fit::Operator;
    let words: Vec<String> = requirement
        .written("", vocabulary)
        .into_iter()
        .map(|it| match it.operator {
            Operator::In if it.values.is_empty() => "what nothing can be".to_owned(),
            Operator::In => it.values.join(" or "),
            Operator::NotIn => format!("not {}", it.values.join(" nor ")),
            Operator::Exists => "any".to_owned(),
            Operator::DoesNotExist => "none".to_owned(),
            Operator::Gt => format!("> {}", it.values.join("")),
            Operator::Lt => format!("< {}", it.values.join("")),
            Operator::Gte => format!("≥ {}", it.values.join("")),
            Operator::Lte => format!("≤ {}", it.values.join("")),
        })
        .collect();
    if words.is_empty() { "anything".to_owned() } else { words.join(" and ") }
}

#[cfg(test)]
mod tests {
    use nodemolt_fit::{Operator, label};

    use super::*;

    fn written(key: &str, operator: Operator, values: &[&str]) -> Written {
        let values = values.iter().map(|it| (*it).to_owned()).collect();
        Written { key: key.to_owned(), operator, values, min_values: None }
    }

    /// What is told of all machines at once is what is told of each alone.
    #[test]
    fn all_at_once_is_one_by_one() {
        let machines = Machines::new(Types::shipped(), Family::Al2023);
        let vocabulary = &machines.vocabulary;
        let asked = [
            vec![],
            vec![written(label::ARCH, Operator::In, &["arm64"])],
            vec![
                written(label::ARCH, Operator::In, &["amd64"]),
                written(label::GPU_COUNT, Operator::DoesNotExist, &[]),
            ],
            vec![
                written(label::GPU_COUNT, Operator::Exists, &[]),
                written(label::CPU, Operator::Gt, &["15"]),
                written(label::CATEGORY, Operator::NotIn, &["g"]),
            ],
            vec![written("example.com/licence", Operator::In, &["paid"])],
            vec![written("example.com/licence", Operator::NotIn, &["paid"])],
        ];
        let mut images = vec![Image::new("ami-00000001".parse().unwrap(), "plain")];
        for mode in [BootMode::Uefi, BootMode::LegacyBios, BootMode::UefiPreferred] {
            let mut image = images[0].clone();
            image.boot_mode = Some(mode);
            image.tpm = Some("v2.0".to_owned());
            image.root_device = Some("instance-store".to_owned());
            images.push(image);
        }
        let mut named = images[1].clone();
        named.supported_types = vec![NamePattern::new("m5*"), NamePattern::new("c7g.*")];
        images.push(named);
        let pool = Pool {
            name: "general".to_owned(),
            labels: [("example.com/licence".to_owned(), "paid".to_owned())].into(),
            requirements: vec![written(label::CATEGORY, Operator::In, &["c", "m"])],
        }
        .read(vocabulary);

        for pool in [None, Some(&pool)] {
            for (asked, image) in asked.iter().flat_map(|it| images.iter().map(move |to| (it, to)))
            {
                let asked = Requirements::read(asked, vocabulary);
                let hardware = Hardware::of(image);
                let fitting = machines.fitting(pool, &asked, &hardware);
                for (at, machine) in machines.iter().enumerate() {
                    let alone = misses(machine, pool, &asked, &hardware, vocabulary);
                    let number = fitting.misses_number(at, machine, &hardware);
                    assert_eq!(number, alone.len(), "{} {alone:?}", machine.name);
                    assert_eq!(fitting.contains(at), alone.is_empty(), "{}", machine.name);
                }
            }
        }
    }
}
