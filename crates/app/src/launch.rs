//! How would a node of this class be started?
//!
//! What the class and its status know is taken from there, what they do not know from the command line,
//! and what nobody knows is named: nothing is made up.

mod document;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::Object;
use nodemolt_api::into_bootstrap;
use nodemolt_api::into_launch::Known;
use nodemolt_core::bootstrap::{self, IpFamily, Place, Remark};
use nodemolt_core::launch::{
    self, Capacity, CapacityType, Identity, Market, Occasion, Reservation, Settings,
};
use nodemolt_fit::Family;

use crate::cli::{self, DocumentFormat, Format, LaunchVerb, ReservationType};
use crate::input::{self, Objects};
use crate::output::{self, Answer, Exit, Failure, Look};

pub(crate) fn run(verb: &cli::Launch, look: Look) -> Result<Answer, Failure> {
    match &verb.verb {
        LaunchVerb::Render(verb) => render(verb, look),
    }
}

fn render(verb: &cli::LaunchRender, look: Look) -> Result<Answer, Failure> {
    check_usage(verb)?;
    input::read_stdin_once(verb.files.iter().chain(&verb.user_data))?;
    let mut read = Vec::new();
    let objects = input::read_objects_for(&verb.files, "rendered", |object, _| {
        let Object::Class(class) = &object.value else { return Vec::new() };
        if verb.class.as_ref().is_some_and(|it| *it != class.metadata.name) {
            return Vec::new();
        }
        match Settings::try_from(class) {
            Ok(settings) => {
                read.push((class.clone(), settings));
                // What it would be told at boot is part of how it is started.
                into_bootstrap::problems(class)
            }
            Err(findings) => findings,
        }
    })?;
    let (class, settings) = the_one(read, verb)?;

    let mut talk = objects.talk.clone();
    for it in settings.uncertain() {
        let (name, field, message) = (&settings.class, &it.field, &it.message);
        let _ = writeln!(talk, "warning: class `{name}`: {field}: {message}");
        let _ = writeln!(talk, "hint: {}", it.remedy);
    }
    let format = match verb.output {
        DocumentFormat::Json => Format::Json,
        DocumentFormat::Yaml => Format::Yaml,
        DocumentFormat::Digest => {
            let data = format!("{}\n", settings.static_digest().as_str());
            return Ok(Answer { data, talk: look.plain(&talk), exit: Exit::Done });
        }
    };
    let occasion = occasion(verb, &class, &settings, &objects, &mut talk)?;
    let specification = launch::specify(&settings, &occasion).map_err(|findings| {
        let mut failure = Failure { talk: talk.clone(), exit: Exit::Failed };
        for it in findings {
            let (name, field, message) = (&settings.class, &it.field, &it.message);
            let _ = writeln!(failure.talk, "error: class `{name}`: {field}: {message}");
            let _ = writeln!(failure.talk, "hint: {}", it.remedy);
        }
        failure
    })?;
    // No `--ascii` for the document: it is data, and names in it are what they are.
    let data = output::serialize(format, &document::document(&specification.template))?;
    Ok(Answer { data, talk: look.plain(&talk), exit: Exit::Done })
}

/// Flags that make no sense together.
fn check_usage(verb: &cli::LaunchRender) -> Result<(), Failure> {
    let reserved = verb.capacity_type == CapacityType::Reserved;
    let flags = [
        ("--capacity-reservation", verb.capacity_reservation.is_some()),
        ("--capacity-reservation-type", verb.capacity_reservation_type.is_some()),
    ];
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !reserved) {
        let message = format!("{flag} has no meaning for {} capacity", verb.capacity_type);
        return Err(Failure::usage(message).hint("pass --capacity-type reserved with it"));
    }
    if verb.open_reservations && verb.capacity_type != CapacityType::OnDemand {
        let message =
            format!("--open-reservations has no meaning for {} capacity", verb.capacity_type);
        return Err(Failure::usage(message).hint("pass --capacity-type on-demand with it"));
    }
    Ok(())
}

fn the_one(
    mut read: Vec<(EC2NodeClass, Settings)>,
    verb: &cli::LaunchRender,
) -> Result<(EC2NodeClass, Settings), Failure> {
    let names: Vec<String> = read.iter().map(|(it, _)| format!("`{}`", it.metadata.name)).collect();
    match (read.pop(), read.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => {
            let message = format!("there are {} classes: {}", names.len(), names.join(", "));
            Err(Failure::usage(message).hint("pass --class NAME"))
        }
        (None, _) => Err(match &verb.class {
            Some(name) => Failure::usage(format!("no class is called `{name}`")),
            None => Failure::usage("no class was given").hint("pass -f FILE with an EC2NodeClass"),
        }),
    }
}

/// What is not known, and the flag that tells it.
#[derive(Default)]
struct Missing(Vec<(String, &'static str)>);

impl Missing {
    fn unless<T>(
        &mut self,
        known: Option<T>,
        what: impl Into<String>,
        flag: &'static str,
    ) -> Option<T> {
        if known.is_none() {
            self.0.push((what.into(), flag));
        }
        known
    }
}

fn occasion(
    verb: &cli::LaunchRender,
    class: &EC2NodeClass,
    settings: &Settings,
    objects: &Objects,
    talk: &mut String,
) -> Result<Occasion, Failure> {
    let known = Known::of(class);
    let mut missing = Missing::default();
    let image = missing.unless(
        verb.image.clone(),
        "the image; `nodemolt resolve` says which",
        "--image ami-…",
    );
    let profile = verb.instance_profile.clone().or(known.instance_profile);
    let what = match &settings.identity {
        Identity::Role(role) => format!("the instance profile of role `{role}`"),
        Identity::InstanceProfile(name) => format!("the instance profile `{name}`"),
    };
    let instance_profile = missing.unless(profile, what, "--instance-profile NAME");
    let typed: BTreeSet<_> = verb.security_groups.iter().cloned().collect();
    let groups = if typed.is_empty() { known.security_groups } else { typed };
    let what = "the security groups; the class selects them by tag or name";
    let groups = Some(groups).filter(|it| !it.is_empty());
    let security_groups = missing.unless(groups, what, "--security-group sg-…");
    let what = "the cluster's name, for the tags";
    let cluster = missing.unless(verb.cluster_name.clone(), what, "--cluster-name NAME");
    let pool = verb.nodepool.clone().or_else(|| only_pool(class, objects));
    let pool = missing.unless(pool, "the pool's name, for the tags", "--nodepool NAME");
    let user_data = user_data(verb, settings, &mut missing, talk)?;
    let capacity = capacity(verb, &known.reservations, &mut missing);

    if verb.efa > 0 && !settings.interfaces.is_empty() {
        let efa = verb.efa;
        let _ = writeln!(
            talk,
            "warning: --efa {efa} has no effect: spec.networkInterfaces says what there is"
        );
    }
    match (image, instance_profile, security_groups, cluster, pool, capacity) {
        (
            Some(image),
            Some(instance_profile),
            Some(security_groups),
            Some(cluster),
            Some(pool),
            Some(capacity),
        ) if missing.0.is_empty() => Ok(Occasion {
            cluster,
            pool,
            region: verb.region.clone(),
            ip_family: if verb.ipv6 { IpFamily::V6 } else { IpFamily::V4 },
            image,
            instance_types: BTreeSet::new(),
            zones: BTreeSet::new(),
            capacity,
            security_groups,
            instance_profile,
            user_data,
            efa: verb.efa,
            tenancy: verb.tenancy,
            partition: verb.partition,
            enclave: verb.enclave,
        }),
        _ => Err(name_missing(&settings.class, &missing, talk)),
    }
}

fn name_missing(class: &str, missing: &Missing, talk: &str) -> Failure {
    let count = missing.0.len();
    let noun = if count == 1 { "thing is" } else { "things are" };
    let mut text = talk.to_owned();
    let _ = writeln!(text, "error: class `{class}`: {count} {noun} missing; nothing was rendered");
    let width = missing.0.iter().map(|(_, it)| it.chars().count()).max().unwrap_or_default();
    for (what, flag) in &missing.0 {
        let _ = writeln!(text, "  {flag:width$}   {what}");
    }
    Failure { talk: text, exit: Exit::Failed }
}

/// A pool that was read beside the class and refers to it, if there is just one.
fn only_pool(class: &EC2NodeClass, objects: &Objects) -> Option<String> {
    let group = class.api_version.split('/').next().unwrap_or_default();
    let mut pools = objects
        .pools
        .iter()
        .filter(|it| it.class_name == class.metadata.name && it.class_group == group);
    let first = pools.next()?;
    pools.next().is_none().then(|| first.pool.name.clone())
}

/// Rendered text, or for a custom image what the class says, byte for byte.
fn user_data(
    verb: &cli::LaunchRender,
    settings: &Settings,
    missing: &mut Missing,
    talk: &mut String,
) -> Result<Option<String>, Failure> {
    if let Some(path) = &verb.user_data {
        let bytes = input::read_bytes(path)?;
        return match String::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() && settings.family != Family::Custom => {
                let message = format!("`{}` is empty: a node does not join by it", path.display());
                Err(Failure::new(message).hint("`nodemolt userdata render` writes it"))
            }
            Ok(text) => sendable(path, settings.family, text, talk).map(Some),
            Err(_) => Err(Failure::new(format!("`{}` is not UTF-8 text", path.display()))),
        };
    }
    if settings.family == Family::Custom {
        if settings.user_part.is_none() {
            let class = &settings.class;
            let _ = writeln!(
                talk,
                "warning: class `{class}`: spec.userData is absent: a custom image must join by itself"
            );
        }
        return Ok(settings.user_part.clone());
    }
    let what =
        format!("the user data of {}; `nodemolt userdata render` writes it", settings.family);
    Ok(missing.unless(None, what, "--user-data FILE"))
}

/// The text, where a node of the family can be told it.
fn sendable(
    path: &Path,
    family: Family,
    text: String,
    talk: &mut String,
) -> Result<String, Failure> {
    let told = |it: &Remark| match it.place {
        Place::UserPart { line, column } => {
            format!("{}:{line}:{column}: {}", path.display(), it.message)
        }
        Place::Field(_) | Place::Label(_) | Place::Taint(_) | Place::Whole => {
            format!("{}: {}", path.display(), it.message)
        }
    };
    let hint = |it: &Remark| it.hint.clone().unwrap_or_default();
    match bootstrap::sendable(family, &text) {
        Ok(remarks) => {
            for remark in &remarks {
                let _ = writeln!(talk, "warning: {}", told(remark));
                let _ = writeln!(talk, "hint: {}", hint(remark));
            }
            Ok(text)
        }
        Err(remark) => {
            let failure = Failure::new(told(&remark));
            Err(match &remark.hint {
                Some(hint) => failure.hint(hint),
                None => failure.hint("`nodemolt userdata render` writes it"),
            })
        }
    }
}

fn capacity(
    verb: &cli::LaunchRender,
    known: &std::collections::BTreeMap<launch::ReservationId, Reservation>,
    missing: &mut Missing,
) -> Option<Capacity> {
    match verb.capacity_type {
        CapacityType::OnDemand => Some(Capacity::OnDemand { open: verb.open_reservations }),
        CapacityType::Spot => Some(Capacity::Spot),
        CapacityType::Reserved => {
            let mut ids = known.keys();
            let only = ids.next().filter(|_| ids.next().is_none());
            let id = verb.capacity_reservation.as_ref().or(only).cloned();
            let id = missing.unless(id, "the reservation to use", "--capacity-reservation cr-…")?;
            let market = match verb.capacity_reservation_type {
                None => known.get(&id).and_then(|it| it.market),
                Some(ReservationType::Default) => None,
                Some(ReservationType::CapacityBlock) => Some(Market::CapacityBlock),
                Some(ReservationType::Interruptible) => Some(Market::Interruptible),
            };
            Some(Capacity::Reserved(Reservation { id, market }))
        }
    }
}
