//! A world as text, and an answer as text.
//!
//! Words of a world, one per line (ages count back from `now`, ids are two hexadecimal digits):
//!
//! ```text
//! now 2026-08-01              kubernetes 1.35 | none      account 111122223333 | none
//! image ID NAME OWNER ARCH AGE [FLAG…]
//! pointer FLAVOUR ID@AGE…     the public parameter of `al2023`, `al2023/arm64`, `al2023/nvidia`, `br`, …
//! param NAME AGE = VALUE      a value of any parameter; `$0a` is the id of 0a
//! asked QUERY = OUTCOME AGE   what became of a query
//! min 7d                      the class's minimum age
//! label KEY=VALUE             of the class
//! term WORD…                  alias= id= ssm= name= owner= tag:K=V req:KEY=Op[:a,b]
//! policy NAME [WORD…]         owners= min= from=creation ids=exempt|held deprecated=forbidden
//!                             allow=PATTERN-or-ID for=LABEL=VALUE except=WHICH@AGE
//! quarantine NAME WHICH [until=AGE]     WHICH: id:0a name:PATTERN version:PATTERN
//! in-use ID…                  types NAME…                 pool NAME [K=V…] [req:KEY=Op[:a,b]]
//! show requirements
//! ```
//!
//! Ages of things to come are written with a plus: `until=+3d`.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::ask::{Age, Alias, Ask, Owner, Term};
use nodemolt_core::catalog::{
    Answered, Appeared, Because, Catalog, Outcome, Parameter, ParameterValue, Presence, Query,
    Sighting,
};
use nodemolt_core::fit::instance_type::Gpu;
use nodemolt_core::fit::{Family, InstanceType, Operator, Types, Written};
use nodemolt_core::image::{
    AccountId, Architecture, BootMode, Date, Image, ImageId, NamePattern, State,
};
use nodemolt_core::lookup::{Flavour, Minor, Processor, Track};
use nodemolt_core::policy::{
    AgeFrom, AllowedImages, DeprecatedImages, Exception, PinnedIds, Policy, Quarantine, Rule, Which,
};
use nodemolt_core::resolve::{
    Boots, Machines, Pool, Refusal, Resolution, Setting, TypesAsked, Verdict, resolve,
};

pub(crate) const NOW: &str = "2026-08-01";
pub(crate) const ACCOUNT: &str = "111122223333";

pub(crate) struct World {
    pub catalog: Catalog,
    pub ask: Ask,
    pub policy: Policy,
    pub machines: Machines,
    pub kubernetes: Option<Minor>,
    pub account: Option<AccountId>,
    pub types: TypesAsked,
    pub pools: Vec<Pool>,
    pub in_use: BTreeSet<ImageId>,
    pub now: Timestamp,
    pub requirements_shown: bool,
}

pub(crate) fn time(date: &str) -> Timestamp {
    if date.contains('T') {
        date.parse().unwrap()
    } else {
        format!("{date}T00:00:00Z").parse().unwrap()
    }
}

pub(crate) fn id(short: &str) -> ImageId {
    format!("ami-{short:0>8}").parse().unwrap()
}

/// `3d` before now, `+3d` after it.
pub(crate) fn moment(age: &str, now: Timestamp) -> Timestamp {
    match age.strip_prefix('+') {
        Some(ahead) => now + ahead.parse::<Age>().unwrap().duration(),
        None => now - age.parse::<Age>().unwrap().duration(),
    }
}

/// The owner's account and EC2's word for its group.
fn owner(word: &str) -> (Option<AccountId>, Option<String>) {
    let (account, group) = match word {
        "self" => (Some(ACCOUNT), None),
        "amazon" => (Some("602401143452"), Some("amazon")),
        "bottlerocket" => (Some("092701018921"), Some("amazon")),
        "lookalike" => (Some("999999999999"), Some("amazon")),
        "market" => (Some("679593333241"), Some("aws-marketplace")),
        "foreign" => (Some("666666666666"), None),
        "unknown" => (None, None),
        account => (Some(account), None),
    };
    (account.map(|it| it.parse().unwrap()), group.map(str::to_owned))
}

/// `al2023-v20260701` in full, for this architecture and 1.35.
fn name(word: &str, architecture: &str) -> String {
    let k = "1.35";
    let tracked = |rest: &str| match rest.split_once('-') {
        Some((track, version)) => (track.to_owned(), version.to_owned()),
        None => (String::new(), rest.to_owned()),
    };
    if let Some(rest) = word.strip_prefix("al2023-") {
        let (track, version) = tracked(rest);
        let track = if track.is_empty() { "standard" } else { &track };
        format!("amazon-eks-node-al2023-{architecture}-{track}-{k}-{version}")
    } else if let Some(rest) = word.strip_prefix("br-") {
        let (track, version) = tracked(rest);
        let track = if track.is_empty() { String::new() } else { format!("{track}-") };
        let cpu = if architecture == "arm64" { "aarch64" } else { architecture };
        format!("bottlerocket-aws-k8s-{k}-{track}{cpu}-v{version}-0a1b2c3d")
    } else if let Some(rest) = word.strip_prefix("win2022-") {
        format!("Windows_Server-2022-English-Core-EKS_Optimized-{k}-{rest}")
    } else {
        word.to_owned()
    }
}

pub(crate) fn flavour(word: &str, kubernetes: Minor) -> Flavour {
    let mut words = word.split('/');
    let family = match words.next() {
        Some("al2") => Family::Al2,
        Some("al2023") => Family::Al2023,
        Some("br") => Family::Bottlerocket,
        Some("win2022") => Family::Windows2022,
        other => panic!("no family {other:?}"),
    };
    let mut flavour =
        Flavour { family, processor: Processor::Amd64, track: Track::Standard, kubernetes };
    for word in words {
        match word {
            "arm64" => flavour.processor = Processor::Arm64,
            "nvidia" => flavour.track = Track::Nvidia,
            "neuron" => flavour.track = Track::Neuron,
            "gpu" => flavour.track = Track::Gpu,
            other => panic!("no part of a flavour: {other}"),
        }
    }
    flavour
}

fn which(word: &str) -> Which {
    match word.split_once(':') {
        Some(("id", short)) => Which::Id(id(short)),
        Some(("name", pattern)) => Which::Name(NamePattern::new(pattern)),
        Some(("version", pattern)) => Which::Version(NamePattern::new(pattern)),
        _ => panic!("which image is `{word}`?"),
    }
}

/// `KEY=In:a,b`; the prefix `aws/` stands for Karpenter's.
pub(crate) fn requirement(word: &str) -> Written {
    let (key, rest) = word.split_once('=').unwrap();
    let (operator, values) = rest.split_once(':').unwrap_or((rest, ""));
    let key = match key.strip_prefix("aws/") {
        Some(rest) => format!("karpenter.k8s.aws/instance-{rest}"),
        None if key == "arch" => "kubernetes.io/arch".to_owned(),
        None => key.to_owned(),
    };
    Written {
        key,
        operator: operator.parse::<Operator>().unwrap(),
        values: values.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        min_values: None,
    }
}

pub(crate) fn read_image(line: &str, now: Timestamp) -> Sighting {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [short, called, owned, architecture, age, flags @ ..] = words.as_slice() else {
        panic!("an image needs id, name, owner, architecture and age: {line}");
    };
    let mut image = Image::new(id(short), name(called, architecture));
    (image.owner, image.owner_alias) = owner(owned);
    image.architecture = Architecture::read(architecture);
    image.created = match *age {
        "undated" => Date::Missing,
        "unreadable" => Date::read(Some("last tuesday")),
        age => Date::At(moment(age, now)),
    };
    let mut sighting = Sighting::of(image);
    for flag in flags {
        let image = &mut sighting.image;
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("deprecated", "unreadable") => image.deprecated = Date::Unreadable("soon".to_owned()),
            ("deprecated", age) => image.deprecated = Date::At(moment(age, now)),
            ("state", word) => image.state = State::read(word),
            ("disallowed", _) => image.allowed = Some(false),
            ("boot", mode) => image.boot_mode = Some(BootMode::read(mode)),
            ("tpm", _) => image.tpm = Some("v2.0".to_owned()),
            ("virt", kind) => image.virtualization = Some(kind.to_owned()),
            ("root", kind) => image.root_device = Some(kind.to_owned()),
            ("noena", _) => image.ena = Some(false),
            ("source", short) => image.source = Some(id(short)),
            ("only", pattern) => image.supported_types.push(NamePattern::new(pattern)),
            ("not", pattern) => image.unsupported_types.push(NamePattern::new(pattern)),
            ("public", path) => {
                image.public_parameters.insert(path.to_owned());
            }
            ("appeared", age) => {
                sighting.first_seen = Some(moment(age, now));
                sighting.appeared = Appeared::Later;
            }
            ("there", age) => sighting.first_seen = Some(moment(age, now)),
            ("unlisted", age) => {
                sighting.presence = Presence::NotListed { since: moment(age, now) }
            }
            ("gone", age) => sighting.presence = Presence::Gone { since: moment(age, now) },
            (tag, value) if tag.starts_with("tag:") => {
                image.tags.insert(tag["tag:".len()..].to_owned(), value.to_owned());
            }
            _ => panic!("an image has no flag `{flag}`"),
        }
    }
    sighting
}

fn read_term(line: &str) -> Term {
    let mut term = Term::default();
    for word in line.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "alias" => term.alias = Some(value.parse::<Alias>().unwrap()),
            "id" => term.id = Some(id(value)),
            "ssm" => term.parameter = Some(value.parse().unwrap()),
            "name" => term.name = Some(NamePattern::new(value)),
            "owner" => term.owner = Some(value.parse::<Owner>().unwrap()),
            tag if tag.starts_with("tag:") => {
                let value = (value != "*").then(|| NamePattern::new(value));
                term.tags.insert(tag["tag:".len()..].to_owned(), value);
            }
            req if req.starts_with("req:") => {
                term.requirements.push(requirement(&word["req:".len()..]));
            }
            other => panic!("a term has no `{other}`"),
        }
    }
    term
}

fn read_rule(line: &str, now: Timestamp) -> Rule {
    let mut words = line.split_whitespace();
    let mut rule = Rule::named(words.next().unwrap());
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("owners", owners) => {
                let owners = owners.split(',').filter(|it| !it.is_empty());
                rule.owners = Some(owners.map(|it| it.parse().unwrap()).collect());
            }
            ("min", age) => rule.minimum_age = age.parse().unwrap(),
            ("from", "creation") => rule.age_from = Some(AgeFrom::Creation),
            ("from", "first-seen") => rule.age_from = Some(AgeFrom::CreationOrFirstSeen),
            ("ids", "exempt") => rule.pinned_ids = Some(PinnedIds::ExemptFromAge),
            ("ids", "held") => rule.pinned_ids = Some(PinnedIds::HeldByAge),
            ("deprecated", "forbidden") => rule.deprecated = Some(DeprecatedImages::Forbidden),
            ("deprecated", "last") => rule.deprecated = Some(DeprecatedImages::LastChoice),
            ("allow", what) => {
                let allowed = rule.allowed.get_or_insert_with(AllowedImages::default);
                match what.strip_prefix("id:") {
                    Some(short) => allowed.ids.insert(id(short)),
                    None => allowed.names.insert(NamePattern::new(what)),
                };
            }
            ("for", label) => {
                let (key, value) = label.split_once('=').unwrap();
                rule.classes.labels.insert(key.to_owned(), value.to_owned());
            }
            ("except", what) => {
                let (what, until) = what.split_once('@').unwrap();
                rule.exceptions.push(Exception {
                    image: which(what),
                    reason: "the fix is needed".to_owned(),
                    until: moment(until, now),
                });
            }
            _ => panic!("a policy has no `{word}`"),
        }
    }
    rule
}

/// Shipped types, and some that the shipped table lacks.
pub(crate) fn types(names: &[&str]) -> Types {
    names.iter().map(|it| instance_type(it)).collect()
}

fn instance_type(name: &str) -> InstanceType {
    let shipped = |name: &str| Types::shipped().find(name).unwrap().clone();
    match name {
        "g4ad.xlarge" => {
            let gpu = Gpu {
                name: Some("Radeon Pro V520".to_owned()),
                manufacturer: Some("AMD".to_owned()),
                count: 1,
                memory_mib: Some(8192),
            };
            InstanceType { name: name.to_owned(), gpus: vec![gpu], ..shipped("g5.xlarge") }
        }
        other => shipped(other),
    }
}

const USUAL_TYPES: [&str; 2] = ["m5.large", "m7g.large"];

impl World {
    pub(crate) fn read(text: &str) -> Self {
        let lines: Vec<(&str, &str)> = text
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
            .map(|it| it.split_once(' ').unwrap_or((it, "")))
            .map(|(word, rest)| (word, rest.trim()))
            .collect();
        let last = |what: &str| lines.iter().rev().find(|(it, _)| *it == what).map(|(_, it)| *it);
        let now = time(last("now").unwrap_or(NOW));
        let kubernetes = match last("kubernetes").unwrap_or("1.35") {
            "none" => None,
            version => Some(version.parse::<Minor>().unwrap()),
        };
        let account = match last("account").unwrap_or(ACCOUNT) {
            "none" => None,
            account => Some(account.parse().unwrap()),
        };
        let mut family = Family::Custom;
        let mut catalog = Catalog::default();
        let mut ask = Ask {
            class: "general".to_owned(),
            labels: BTreeMap::new(),
            family,
            terms: Vec::new(),
            minimum_age: Age::NONE,
        };
        let mut policy = Policy::default();
        let mut pools = Vec::new();
        let mut in_use = BTreeSet::new();
        let mut requirements_shown = false;
        let add_value = |catalog: &mut Catalog, name: String, age: &str, text: String| {
            let modified =
                if age == "undated" { Date::Missing } else { Date::At(moment(age, now)) };
            add_value(catalog, &name, modified, text);
        };
        for (word, rest) in &lines {
            match *word {
                "image" => {
                    let sighting = read_image(rest, now);
                    catalog.images.insert(sighting.image.id.clone(), sighting);
                }
                "pointer" => {
                    let mut words = rest.split_whitespace();
                    let minor = kubernetes.unwrap_or(Minor { major: 1, minor: 35 });
                    let path = flavour(words.next().unwrap(), minor).pointer();
                    for word in words {
                        let (short, age) = word.split_once('@').unwrap();
                        add_value(&mut catalog, path.clone(), age, id(short).to_string());
                    }
                }
                "param" => {
                    let (head, value) = rest.split_once(" = ").unwrap();
                    let (name, age) = head.split_once(' ').unwrap();
                    let value = with_ids(value.trim());
                    add_value(&mut catalog, name.to_owned(), age.trim(), value);
                }
                "asked" => {
                    let (query, outcome) = rest.split_once(" = ").unwrap();
                    let (outcome, age) = outcome.trim().split_once(' ').unwrap();
                    let at = moment(age, now);
                    let outcome: Outcome = outcome.parse().unwrap();
                    let complete = (outcome == Outcome::Complete).then_some(at);
                    catalog.answers.insert(
                        query.parse::<Query>().unwrap(),
                        Answered {
                            first_complete: complete,
                            last_complete: complete,
                            last: Some((outcome, at)),
                        },
                    );
                }
                "min" => ask.minimum_age = rest.parse().unwrap(),
                "label" => {
                    let (key, value) = rest.split_once('=').unwrap();
                    ask.labels.insert(key.to_owned(), value.to_owned());
                }
                "term" => {
                    let term = read_term(rest);
                    if let Some(alias) = &term.alias {
                        family = alias.family;
                    }
                    ask.terms.push(term);
                }
                "policy" => policy.rules.push(read_rule(rest, now)),
                "quarantine" => {
                    let words: Vec<&str> = rest.split_whitespace().collect();
                    let until = words.get(2).and_then(|it| it.strip_prefix("until="));
                    policy.quarantines.push(Quarantine {
                        name: words[0].to_owned(),
                        image: which(words[1]),
                        reason: "kernel panics".to_owned(),
                        evidence: Vec::new(),
                        expires_at: until.map(|it| moment(it, now)),
                    });
                }
                "in-use" => in_use.extend(rest.split_whitespace().map(id)),
                "pool" => {
                    let mut words = rest.split_whitespace();
                    let mut pool = Pool {
                        name: words.next().unwrap().to_owned(),
                        labels: BTreeMap::new(),
                        requirements: Vec::new(),
                    };
                    for word in words {
                        if let Some(written) = word.strip_prefix("req:") {
                            pool.requirements.push(requirement(written));
                        } else {
                            let (key, value) = word.split_once('=').unwrap();
                            pool.labels.insert(key.to_owned(), value.to_owned());
                        }
                    }
                    pools.push(pool);
                }
                "show" => requirements_shown = true,
                "now" | "kubernetes" | "account" | "types" => {}
                other => panic!("a world has no `{other}`"),
            }
        }
        ask.family = family;
        let (names, asked) = match last("types") {
            Some(names) => {
                let names: Vec<&str> = names.split_whitespace().collect();
                let asked = names.iter().map(|it| (*it).to_owned()).collect();
                (names, TypesAsked::Named(asked))
            }
            None => (USUAL_TYPES.to_vec(), TypesAsked::Any),
        };
        let machines = Machines::new(&types(&names), family);
        Self {
            catalog,
            ask,
            policy,
            machines,
            kubernetes,
            account,
            types: asked,
            pools,
            in_use,
            now,
            requirements_shown,
        }
    }

    pub(crate) fn setting(&self) -> Setting<'_> {
        Setting {
            kubernetes: self.kubernetes,
            account: self.account.clone(),
            machines: &self.machines,
            types: self.types.clone(),
            pools: self.pools.clone(),
            in_use: self.in_use.clone(),
        }
    }

    pub(crate) fn resolve(&self) -> Resolution {
        resolve(&self.catalog.index(self.now), &self.ask, &self.policy, &self.setting())
    }

    pub(crate) fn answer(&self) -> String {
        self.render(&self.resolve())
    }

    /// Chosen, refused, held, problems, types, warnings.
    pub(crate) fn render(&self, resolution: &Resolution) -> String {
        let mut out = String::new();
        let vocabulary = &self.machines.vocabulary;
        let next = |next: &Option<nodemolt_core::resolve::Next>| {
            next.as_ref().map_or(String::new(), |it| format!(", next {} on {}", it.id, it.at))
        };
        for it in &resolution.chosen {
            let _ = write!(out, "{} chosen", it.id);
            out.push_str(if it.only_in_use { ", only in use" } else { "" });
            out.push_str(if it.deprecated { ", deprecated" } else { "" });
            out.push_str(&next(&it.next));
            if self.requirements_shown {
                let _ = write!(out, " [{}]", written(&it.requirements.written(vocabulary)));
            }
            out.push('\n');
        }
        for (id, refused) in &resolution.refused {
            let _ = write!(out, "{id} {}", word(&refused.refusal));
            for also in &refused.also {
                let _ = write!(out, " + {}", word(also));
            }
            out.push('\n');
        }
        for held in &resolution.held {
            let _ = write!(out, "held {} {}{}", held.id, held.refusal.reason(), next(&held.next));
            if self.requirements_shown {
                let _ = write!(out, " [{}]", written(&held.requirements.written(vocabulary)));
            }
            out.push('\n');
        }
        for (at, term) in resolution.terms.iter().enumerate() {
            for problem in &term.problems {
                let _ = writeln!(out, "problem {}: {problem}", at + 1);
            }
        }
        if self.types != TypesAsked::Any {
            for answer in &resolution.types {
                let pool = answer.pool.as_ref().map_or(String::new(), |it| format!("{it}/"));
                let _ = write!(out, "type {pool}{} ", answer.instance_type);
                let _ = match &answer.boots {
                    Boots::Image(at) => writeln!(out, "boots {}", resolution.chosen[*at].id),
                    Boots::HeldBack(at) => writeln!(out, "held back {}", resolution.held[*at].id),
                    Boots::Nothing { nearest: None, .. } => writeln!(out, "boots nothing"),
                    Boots::Nothing { nearest: Some((id, misses)), .. } => {
                        let misses: Vec<String> = misses.iter().map(ToString::to_string).collect();
                        writeln!(out, "boots nothing; {id} but for {}", misses.join("; "))
                    }
                };
            }
        }
        for warning in &resolution.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out.replace("ami-000000", "").replace("T00:00:00Z", "")
    }
}

/// The id `$0a` in full; a value of two digits is an id by itself.
pub(crate) fn with_ids(value: &str) -> String {
    if value.len() == 2 {
        return id(value).to_string();
    }
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        text.push_str(id(&after[..2]).as_str());
        rest = &after[2..];
    }
    text + rest
}

/// One more version of a parameter.
pub(crate) fn add_value(catalog: &mut Catalog, name: &str, modified: Date, text: String) {
    let known = catalog.parameters.remove(name);
    let mut values: Vec<ParameterValue> =
        known.iter().flat_map(|it| it.values().cloned()).collect();
    let version = Some(values.len() as u64 + 1);
    values.push(ParameterValue { version, modified, text, labels: Vec::new() });
    let mut all = values.into_iter();
    let mut observed = vec![Parameter::new(name, all.next().unwrap())];
    observed.extend(all.map(|it| Parameter::new(name, it)));
    let mut fresh = Catalog::default();
    for parameter in observed {
        let mut one = Catalog::default();
        one.parameters.insert(name.to_owned(), parameter);
        fresh.join(one);
    }
    catalog.parameters.extend(fresh.parameters);
}

pub(crate) fn written(all: &[Written]) -> String {
    let all: Vec<String> = all
        .iter()
        .map(|it| {
            let key = it.key.replace("karpenter.k8s.aws/instance-", "aws/");
            let key = key.replace("kubernetes.io/arch", "arch");
            if it.values.is_empty() {
                format!("{key} {}", it.operator)
            } else {
                format!("{key} {} {}", it.operator, it.values.join(","))
            }
        })
        .collect();
    all.join("; ")
}

/// A refusal in one word or two.
pub(crate) fn word(refusal: &Refusal) -> String {
    use nodemolt_core::resolve::{Counted, DeprecatedRule, OwnerRule, UnknownDate};
    let reason = refusal.reason();
    let detail = match refusal {
        Refusal::WrongOwner { rule, .. } => match rule {
            OwnerRule::Term { owner } => format!("term says {owner}"),
            OwnerRule::Default { account_known: true } => "self and amazon by default".to_owned(),
            OwnerRule::Default { account_known: false } => "account unknown".to_owned(),
            OwnerRule::Policy { name, .. } => format!("policy {name}"),
            OwnerRule::Publisher { .. } => "not the publisher".to_owned(),
        },
        Refusal::NotAllowedByPolicy { policy } => policy.clone(),
        Refusal::Quarantined { by, until, .. } => {
            by.clone() + &until.map_or(String::new(), |it| format!(" until {it}"))
        }
        Refusal::KubeletTooNew { kubelet, .. } => kubelet.to_string(),
        Refusal::Withdrawn(mark) => match &mark.because {
            Because::PointerMovedBack { to, .. } => format!("pointer moved back to {to}"),
            Because::DeprecatedEarly => "deprecated early".to_owned(),
            Because::DisabledEarly => "disabled early".to_owned(),
            Because::UnsharedEarly => "unshared early".to_owned(),
            Because::Recalled => "recalled".to_owned(),
        },
        Refusal::Deprecated { because: DeprecatedRule::Policy { name }, .. } => {
            format!("policy {name}")
        }
        Refusal::Deprecated { because: DeprecatedRule::Fallback, .. } => "no fallback".to_owned(),
        Refusal::AgeUnknown { date, .. } => match date {
            UnknownDate::Missing => "missing".to_owned(),
            UnknownDate::Unreadable(_) => "unreadable".to_owned(),
            UnknownDate::InTheFuture(_) => "future".to_owned(),
        },
        Refusal::TooYoung { counted, policy, ripe_at, .. } => {
            let by = policy.as_ref().map_or(String::new(), |it| format!(" by {it}"));
            let from = match counted {
                Counted::FromCreation => "",
                Counted::FromSourceCreation => " from its source",
                Counted::FromFirstSeen => " from first seen",
            };
            format!("until {ripe_at}{from}{by}")
        }
        Refusal::NotRecommended { recommended } => {
            recommended.as_ref().map_or("unknown".to_owned(), ToString::to_string)
        }
        Refusal::NewerThanAsked { asked, version } => {
            format!("{asked} is {}", version.as_deref().unwrap_or("none"))
        }
        Refusal::Superseded { by } => format!("by {by}"),
        Refusal::UnsupportedArchitecture(word) => word.clone(),
        Refusal::NotAllowedByAccount
        | Refusal::NotBootable(_)
        | Refusal::NoLongerNamed { .. }
        | Refusal::WrongPlatform { .. } => String::new(),
    };
    if detail.is_empty() { reason.to_owned() } else { format!("{reason} ({detail})") }
}

/// What each term says of each image, best first.
pub(crate) fn verdicts(resolution: &Resolution) -> Vec<Vec<(ImageId, String)>> {
    let told = |verdict: &Verdict| match verdict {
        Verdict::Chosen => "chosen".to_owned(),
        Verdict::Refused(refusal, _) => word(refusal),
    };
    resolution
        .terms
        .iter()
        .map(|term| term.verdicts.iter().map(|(id, it)| (id.clone(), told(it))).collect())
        .collect()
}

/// Resolves the world and compares the answer, line by line.
pub(crate) fn check(world: &str, expected: &str) {
    let answer = World::read(world).answer();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    assert_eq!(answer.trim_end(), expected.join("\n"), "\n--- answered ---\n{answer}---");
}

pub(crate) fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}
