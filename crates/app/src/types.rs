//! What would a node of this type offer, and which image would it boot?
//!
//! `instance types × class × catalog → an offer for each type`
//!
//! Everything is computed here; the renderers in [`page`] and [`data`] only print.

mod data;
mod page;
mod selector;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_core::ask::{Age, Alias, Ask, Term};
use nodemolt_core::image::ImageId;
use nodemolt_core::policy::Policy;
use nodemolt_core::resolve::{
    Boots, Machines, Miss, Next, Pool, Refusal, Resolution, Setting, TypesAsked, Verdict, resolve,
};
use nodemolt_fit::capacity::{NodeOffer, NodeSettings, offer};
use nodemolt_fit::type_labels::{TypeLabel, labels};
use nodemolt_fit::{Family, InstanceType, Types};

use crate::cli::{self, Format, TypesVerb};
use crate::input::{self, Objects};
use crate::output::{Answer, Exit, Failure, Look, serialize};
use selector::Selector;

/// The whole answer.
#[derive(Debug)]
pub(crate) struct Story<'t> {
    /// The class by its name, where one was given.
    class: Option<String>,
    family: Family,
    now: Timestamp,
    /// Whether a catalog was given, so that images are known.
    with_images: bool,
    /// Where the class's terms led nowhere.
    problems: Vec<String>,
    items: Vec<Item<'t>>,
}

#[derive(Debug)]
struct Item<'t> {
    it: &'t InstanceType,
    labels: Vec<TypeLabel>,
    offer: NodeOffer,
    /// Per pool, or once if there are no pools. Empty without a catalog.
    boots: Vec<(Option<String>, Bootable)>,
}

/// What becomes of a node of one type, in words that stand alone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bootable {
    Image { image: ImageSaid, next: Option<Next> },
    HeldBack { image: ImageSaid, refusal: Refusal, next: Option<Next> },
    Nothing { nearest: Option<(ImageSaid, Vec<Miss>)>, reasons: Vec<String> },
    InNoPool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ImageSaid {
    id: ImageId,
    name: String,
    version: Option<String>,
    dated: Option<Timestamp>,
}

pub(crate) fn run(verb: &cli::Types, look: Look) -> Result<Answer, Failure> {
    let answer = match &verb.verb {
        TypesVerb::List(verb) => list(verb, look),
        TypesVerb::Get(verb) => get(verb, look),
    };
    match answer {
        Ok(answer) => Ok(Answer { talk: look.plain(&answer.talk), ..answer }),
        Err(failure) => Err(Failure { talk: look.plain(&failure.talk), ..failure }),
    }
}

fn list(verb: &cli::TypesList, look: Look) -> Result<Answer, Failure> {
    let selector = Selector::read(&verb.selector)?;
    let mut talk = Talk::default();
    let types = input::read_types(&verb.under.types, &mut talk.warnings)?;
    let under = Under::read(&verb.under, &mut talk)?;

    let (mut chosen, strangers): (Vec<&InstanceType>, Vec<_>) = types
        .iter()
        .filter(|it| selector.admits(&labels(it, under.settings.family)))
        .partition(|it| it.kubernetes_arch().is_some());
    // `xlarge` before `2xlarge`, as people count.
    chosen.sort_by_key(|it| (instance_family(&it.name), it.vcpus, it.memory_mib, &it.name));
    if !strangers.is_empty() {
        let names: Vec<&str> = strangers.iter().map(|it| it.name.as_str()).take(2).collect();
        talk.notes.push(format!(
            "{} types of an architecture that no Kubernetes node has are left out, such as {}",
            strangers.len(),
            names.join(" and ")
        ));
    }
    if chosen.is_empty() {
        talk.notes.push("no instance type satisfies the selector".to_owned());
    }
    let story = tell(&types, &chosen, &under, &mut talk);
    talk.warnings.extend(story.problems.iter().cloned());
    let data = match verb.output {
        Format::Table => look.plain(&page::list(&story, look, false, !verb.no_headers)),
        Format::Wide => look.plain(&page::list(&story, look, true, !verb.no_headers)),
        Format::Name => names(&story),
        Format::Json | Format::Yaml => serialize(verb.output, &data::list(&story))?,
    };
    Ok(Answer { data, talk: talk.print(), exit: Exit::Done })
}

fn get(verb: &cli::TypesGet, look: Look) -> Result<Answer, Failure> {
    let mut talk = Talk::default();
    let types = input::read_types(&verb.under.types, &mut talk.warnings)?;
    let chosen = find(&types, &verb.names)?;
    let under = Under::read(&verb.under, &mut talk)?;
    let story = tell(&types, &chosen, &under, &mut talk);
    // Where nothing was found at all, each page has them as its reasons.
    if !story.items.iter().all(Item::without_any) {
        talk.warnings.extend(story.problems.iter().cloned());
    }
    let data = match verb.output {
        Format::Table | Format::Wide => look.plain(&page::pages(&story, look)),
        Format::Name => names(&story),
        Format::Json | Format::Yaml => serialize(verb.output, &data::list(&story))?,
    };
    Ok(Answer { data, talk: talk.print(), exit: story.exit() })
}

/// In the order in which they were asked for, or all that are not there.
fn find<'t>(types: &'t Types, names: &[String]) -> Result<Vec<&'t InstanceType>, Failure> {
    let mut found: Vec<&InstanceType> = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        match types.find(name) {
            Ok(it) if found.iter().any(|other| other.name == it.name) => {}
            Ok(it) => found.push(it),
            Err(error) => unknown.push(Failure::usage(error).talk),
        }
    }
    if unknown.is_empty() {
        return Ok(found);
    }
    Err(Failure { talk: unknown.concat(), exit: Exit::Usage })
}

fn instance_family(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn names(story: &Story<'_>) -> String {
    story.items.iter().fold(String::new(), |all, item| all + &item.it.name + "\n")
}

/// What goes to stderr.
#[derive(Debug, Default)]
struct Talk {
    /// Ready to print.
    text: String,
    warnings: Vec<String>,
    notes: Vec<String>,
}

impl Talk {
    fn print(&self) -> String {
        let mut text = self.text.clone();
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

/// The class and the catalog, read.
struct Under {
    class: Option<String>,
    settings: NodeSettings,
    /// Only where there is a catalog.
    asked: Option<Asked>,
}

struct Asked {
    catalog: nodemolt_core::catalog::Catalog,
    ask: Ask,
    policy: Policy,
    pools: Vec<Pool>,
    in_use: BTreeSet<ImageId>,
    kubernetes: Option<nodemolt_core::lookup::Minor>,
    account: Option<nodemolt_core::image::AccountId>,
    now: Timestamp,
}

impl Under {
    fn read(typed: &cli::UnderClass, talk: &mut Talk) -> Result<Self, Failure> {
        let mut objects = input::read_objects(&typed.files)?;
        talk.text.push_str(&objects.talk);
        let chosen = if typed.files.is_empty() {
            talk.notes.push(
                "no class was given with -f; these are AL2023 nodes with the kubelet's defaults"
                    .to_owned(),
            );
            None
        } else {
            Some(pick(&mut objects, typed.class.as_deref())?)
        };
        let mut settings = match &chosen {
            None => NodeSettings::of(Family::Al2023),
            Some((class, _)) => match objects.settings.remove(&input::class_name(class)) {
                Some(Ok((settings, told))) => {
                    talk.text.push_str(&told);
                    settings
                }
                Some(Err(told)) => return Err(Failure { talk: told, exit: Exit::Failed }),
                None => NodeSettings::of(Family::Custom),
            },
        };
        settings.reserved_interfaces = typed.reserved_enis;
        settings.vm_memory_overhead_millionths = typed.vm_memory_overhead_percent;

        let name = chosen.as_ref().map(|(class, _)| class.metadata.name.clone());
        if typed.catalog.catalog.is_empty() {
            return Ok(Self { class: name, settings, asked: None });
        }
        let asked = Asked::read(typed, chosen, objects, talk)?;
        Ok(Self { class: name, settings, asked: Some(asked) })
    }
}

impl Asked {
    fn read(
        typed: &cli::UnderClass,
        chosen: Option<(EC2NodeClass, Ask)>,
        objects: Objects,
        talk: &mut Talk,
    ) -> Result<Self, Failure> {
        let (pools, in_use) = match &chosen {
            None => (Vec::new(), BTreeSet::new()),
            Some((class, _)) => (pools_of(class, objects.pools), in_use(class)),
        };
        let ask = chosen.map_or_else(al2023, |(_, ask)| ask);
        let account = typed.account.clone();
        input::check_setting(&ask, &objects.policy, typed.kubernetes, account.as_ref())?;
        let read = input::read_catalog(&typed.catalog)?;
        talk.warnings.extend(read.warnings);
        let catalog = match typed.at {
            Some(at) => read.catalog.as_of(at),
            None => read.catalog,
        };
        Ok(Self {
            catalog,
            ask,
            policy: objects.policy,
            pools,
            in_use,
            kubernetes: typed.kubernetes,
            account,
            now: input::moment(typed.at),
        })
    }
}

/// What a class would ask for that says nothing but `amiFamily: AL2023`.
fn al2023() -> Ask {
    Ask {
        class: String::new(),
        labels: std::collections::BTreeMap::new(),
        family: Family::Al2023,
        terms: vec![Term::of_alias(Alias::latest(Family::Al2023))],
        minimum_age: Age::NONE,
    }
}

/// The class that is meant: the only one, or the one that was named.
fn pick(objects: &mut Objects, named: Option<&str>) -> Result<(EC2NodeClass, Ask), Failure> {
    let all = &objects.classes;
    // By its name; with its group where the other group has one of this name, too.
    let called = |class: &EC2NodeClass| {
        let name = &class.metadata.name;
        let alike = all.iter().filter(|(it, _)| it.metadata.name == *name).count();
        if alike > 1 { input::class_name(class) } else { name.clone() }
    };
    let meant = |class: &EC2NodeClass| {
        named.is_none_or(|it| it == class.metadata.name || it == input::class_name(class))
    };
    let (found, others): (Vec<_>, Vec<_>) =
        all.iter().enumerate().partition(|(_, (class, _))| meant(class));
    let listed = |of: &[(usize, &(EC2NodeClass, Ask))]| {
        let mut all: Vec<String> = of.iter().map(|(_, (it, _))| called(it)).collect();
        all.sort();
        quoted(&all)
    };
    match (found.as_slice(), named) {
        ([(only, _)], _) => Ok(objects.classes.swap_remove(*only)),
        ([], Some(named)) if !others.is_empty() => {
            Err(Failure::usage(format!("the files hold no class `{named}`"))
                .hint(format!("pass --class with one of {}", listed(&others))))
        }
        ([], _) => Err(Failure::usage("the files hold no EC2NodeClass")
            .hint("add the class's file with -f, or leave -f out for the defaults of AL2023")),
        (several, named) => {
            let which = named.map(|it| format!(" `{it}`")).unwrap_or_default();
            let message = format!("the files hold {} classes{which}", several.len());
            Err(Failure::usage(message)
                .hint(format!("pass --class with one of {}", listed(several))))
        }
    }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    quoted.join(", ")
}

fn pools_of(class: &EC2NodeClass, pools: Vec<nodemolt_api::into_core::PoolOfClass>) -> Vec<Pool> {
    let name = input::class_name(class);
    let theirs =
        pools.into_iter().filter(|it| format!("{}/{}", it.class_group, it.class_name) == name);
    theirs.map(|it| it.pool).collect()
}

/// What the class's status says that nodes boot already.
fn in_use(class: &EC2NodeClass) -> BTreeSet<ImageId> {
    let amis = class.status.iter().flat_map(|it| it.amis.iter().flatten());
    amis.filter_map(|it| it.id.as_deref()?.parse().ok()).collect()
}

fn tell<'t>(
    types: &Types,
    chosen: &[&'t InstanceType],
    under: &Under,
    talk: &mut Talk,
) -> Story<'t> {
    let family = under.settings.family;
    let resolution = under.asked.as_ref().map(|asked| {
        let machines = Machines::new(types, family);
        let names = chosen.iter().map(|it| it.name.clone()).collect();
        let setting = Setting {
            kubernetes: asked.kubernetes,
            account: asked.account.clone(),
            machines: &machines,
            types: TypesAsked::Named(names),
            pools: asked.pools.clone(),
            in_use: asked.in_use.clone(),
        };
        resolve(&asked.catalog.index(asked.now), &asked.ask, &asked.policy, &setting)
    });
    if let Some(resolution) = &resolution {
        talk.warnings.extend(resolution.warnings.iter().map(ToString::to_string));
    }
    let terms = resolution.iter().flat_map(|it| &it.terms);
    let problems =
        terms.flat_map(|term| term.problems.iter().map(move |it| format!("{}: {it}", term.text)));
    let items = chosen.iter().map(|it| Item {
        it,
        labels: labels(it, family),
        offer: offer(it, &under.settings),
        boots: resolution.as_ref().map(|all| bootable(all, &it.name)).unwrap_or_default(),
    });
    Story {
        class: under.class.clone(),
        family,
        now: under.asked.as_ref().map_or(Timestamp::UNIX_EPOCH, |it| it.now),
        with_images: resolution.is_some(),
        problems: problems.collect(),
        items: items.collect(),
    }
}

fn bootable(resolution: &Resolution, name: &str) -> Vec<(Option<String>, Bootable)> {
    let answers = resolution.types.iter().filter(|it| *it.instance_type == *name);
    let mut all: Vec<(Option<String>, Bootable)> = answers
        .map(|it| {
            let bootable = match &it.boots {
                Boots::Image(at) => {
                    let chosen = &resolution.chosen[*at];
                    Bootable::Image {
                        image: said(resolution, &chosen.id),
                        next: chosen.next.clone(),
                    }
                }
                Boots::HeldBack(at) => {
                    let held = &resolution.held[*at];
                    Bootable::HeldBack {
                        image: said(resolution, &held.id),
                        refusal: held.refusal.clone(),
                        next: held.next.clone(),
                    }
                }
                Boots::Nothing { nearest, .. } => Bootable::Nothing {
                    reasons: if nearest.is_none() { reasons(resolution) } else { Vec::new() },
                    nearest: nearest
                        .as_ref()
                        .map(|(id, misses)| (said(resolution, id), misses.to_vec())),
                },
            };
            (it.pool.clone(), bootable)
        })
        .collect();
    if all.is_empty() {
        all.push((None, Bootable::InNoPool));
    }
    all
}

fn said(resolution: &Resolution, id: &ImageId) -> ImageSaid {
    let (name, version, dated) = match resolution.chosen.iter().find(|it| it.id == *id) {
        Some(chosen) => (chosen.name.clone(), chosen.version.clone(), chosen.dated),
        None => resolution
            .refused
            .get(id)
            .map_or_else(Default::default, |it| (it.name.clone(), it.version.clone(), it.dated)),
    };
    ImageSaid { id: id.clone(), name, version, dated }
}

/// Why nothing was chosen at all: what is wrong with each term, or why its best image is refused.
fn reasons(resolution: &Resolution) -> Vec<String> {
    let mut reasons = Vec::new();
    for term in &resolution.terms {
        let problems = term.problems.iter().map(ToString::to_string);
        let refused = term.verdicts.iter().find_map(|(id, verdict)| match verdict {
            Verdict::Refused(refusal, _) => Some(format!("{id}: {refusal}")),
            Verdict::Chosen => None,
        });
        reasons.extend(refused.into_iter().chain(problems));
    }
    reasons
}

impl Story<'_> {
    /// Of the types that were asked for by name.
    fn exit(&self) -> Exit {
        let all = || self.items.iter().flat_map(|it| &it.boots).map(|(_, it)| it);
        if all().any(|it| matches!(it, Bootable::HeldBack { .. })) {
            Exit::HeldBack
        } else if all().any(|it| matches!(it, Bootable::Nothing { .. } | Bootable::InNoPool)) {
            Exit::Failed
        } else {
            Exit::Done
        }
    }
}

impl Item<'_> {
    /// Whether no image was chosen, not even for another type.
    fn without_any(&self) -> bool {
        let none = |it: &Bootable| matches!(it, Bootable::Nothing { nearest: None, .. });
        self.boots.iter().all(|(_, it)| none(it))
    }

    /// What all pools agree on, if they do.
    fn boots_everywhere(&self) -> Option<&Bootable> {
        let (_, first) = self.boots.first()?;
        self.boots.iter().all(|(_, it)| it == first).then_some(first)
    }
}
