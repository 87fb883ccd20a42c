//! What would a node of this class be told at boot?
//!
//! From files alone: what the class, the pool and the cluster's description say. What nobody says is
//! named, with its flag; nothing is made up.

mod cluster;
mod data;
mod diff;
mod keys;
mod place;
mod secret;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nodemolt_api::file::{Located, Object};
use nodemolt_core::bootstrap::{
    self, MergeConflict, Place, Remark, Settings, Source, UserData, UserPart, base64,
    effective_reservations, user_part,
};
use nodemolt_core::bootstrap::{OfClass, OfPool, settings};
use nodemolt_fit::Family;
use nodemolt_fit::capacity::{NodeSettings, offer};

use crate::cli::{self, Format, PlainFormat, TextFormat, UserdataVerb};
use crate::input;
use crate::output::{self, Answer, Exit, Failure, Look, Table};
use place::{ClusterSource, Written};

pub(crate) fn run(verb: &cli::Userdata, look: Look) -> Result<Answer, Failure> {
    let answer = match &verb.verb {
        UserdataVerb::Render(verb) => render(verb),
        UserdataVerb::Diff(verb) => diff::run(verb, look),
        UserdataVerb::Lint(verb) => lint(verb, look),
    };
    match answer {
        Ok(answer) => Ok(Answer { talk: look.plain(&answer.talk), ..answer }),
        Err(failure) => Err(Failure { talk: look.plain(&failure.talk), ..failure }),
    }
}

/// The files that are read for every class.
fn files_of(boot: &cli::Boot) -> impl Iterator<Item = &PathBuf> {
    boot.pools.iter().chain(&boot.cluster).chain(&boot.types.types)
}

/// Whether a cluster that nobody described may be stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cluster {
    Needed,
    StoodInFor,
}

/// Everything that rendering needs.
#[derive(Debug)]
struct Prepared {
    class: OfClass,
    /// The class's own, or what was asked for.
    family: Family,
    written: Written,
    settings: Settings,
    /// Warnings and notes, ready to print.
    talk: String,
}

impl Prepared {
    fn read(
        files: &[PathBuf],
        boot: &cli::Boot,
        described: Cluster,
        done: &str,
    ) -> Result<Self, Failure> {
        let read = Read::new(files, boot, done)?;
        let Read { class, node, mut written, mut talk } = read;
        let family = boot.family.unwrap_or(class.family);
        let (cluster, source) = cluster::cluster(boot, &class, family, described, &mut talk)
            .map_err(|missing| {
                let text = format!("{talk}{}", missing.print(&class.name, done));
                Failure { talk: text, exit: Exit::Failed }
            })?;
        written.cluster = source;
        let pool = written.pool.as_ref().map(|(it, _)| it);
        let mut settings = settings(cluster, &class, pool, boot.capacity_type);
        // An alias of another family says nothing of this one's releases.
        if family != class.family {
            settings.release = None;
        }
        if let Some(name) = &boot.instance_type {
            let mut warnings = Vec::new();
            let types = input::read_types(&boot.types, &mut warnings)?;
            for warning in warnings {
                let _ = writeln!(talk, "warning: {warning}");
            }
            let it = types.find(name).map_err(Failure::usage)?;
            let node = node.map_err(|told| Failure { talk: told, exit: Exit::Failed })?;
            let pods = offer(it, &NodeSettings { family, ..node }).capacity.get("pods").copied();
            // A user's own number stands where the class has none.
            let user = UserPart(&class.user_part);
            let theirs = effective_reservations(family, &settings.kubelet, user)
                .is_ok_and(|it| it.max_pods.is_some());
            if !theirs && family != Family::Custom {
                settings.kubelet.max_pods = pods.and_then(|it| u32::try_from(it.ceil_units()).ok());
            }
        }
        Ok(Self { class, family, written, settings, talk })
    }

    fn render(&self) -> Result<UserData, MergeConflict> {
        let rendered =
            bootstrap::render(self.family, &self.settings, UserPart(&self.class.user_part));
        if self.family == Family::Custom {
            return rendered;
        }
        let mut refused = cluster::contradictions(&self.settings.cluster);
        match rendered {
            Ok(user_data) if refused.is_empty() => Ok(user_data),
            Ok(UserData { remarks, .. }) => {
                Err(MergeConflict { remarks: refused, warnings: remarks })
            }
            Err(MergeConflict { remarks, warnings }) => {
                refused.extend(remarks);
                Err(MergeConflict { remarks: refused, warnings })
            }
        }
    }

    /// A remark with its place in the file, and what to do about it.
    fn told(&self, level: &str, remark: &Remark) -> String {
        let told = self.written.told(&remark.place, &self.class.user_part);
        let mut text = format!("{level}: {told}: {}\n", remark.message);
        if let Some(hint) = &remark.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }

    /// The text, with what there is to say about it; or all that speaks against it.
    fn rendered(&self, done: &str) -> Result<(UserData, String), Failure> {
        let mut talk = self.talk.clone();
        let secrets = secret::find(&self.class.user_part);
        match self.render() {
            Ok(mut user_data) => {
                user_data.remarks.extend(secrets);
                for remark in &user_data.remarks {
                    talk.push_str(&self.told("warning", remark));
                }
                Ok((user_data, talk))
            }
            Err(conflict) => {
                for remark in &conflict.remarks {
                    talk.push_str(&self.told("error", remark));
                }
                for remark in conflict.warnings.iter().chain(&secrets) {
                    talk.push_str(&self.told("warning", remark));
                }
                let count = conflict.remarks.len();
                let noun = if count == 1 { "error" } else { "errors" };
                let _ = writeln!(talk, "{count} {noun}; nothing was {done}");
                Err(Failure { talk, exit: Exit::Failed })
            }
        }
    }
}

/// The files, read: the one class and the one pool.
struct Read {
    class: OfClass,
    /// What its nodes offer, or what is wrong with that, ready to print.
    node: Result<NodeSettings, String>,
    written: Written,
    talk: String,
}

impl Read {
    fn new(files: &[PathBuf], boot: &cli::Boot, done: &str) -> Result<Self, Failure> {
        let mut classes = Vec::new();
        let mut pools = Vec::new();
        let all: Vec<PathBuf> = files.iter().chain(&boot.pools).cloned().collect();
        let mut objects = input::read_objects_for(&all, done, |object, source| {
            match &object.value {
                Object::Class(class) => {
                    if boot.class.as_ref().is_some_and(|it| *it != class.metadata.name) {
                        return Vec::new();
                    }
                    match OfClass::try_from(class) {
                        Ok(it) => {
                            let written = Written {
                                class: object.clone(),
                                text: source.text.clone(),
                                class_label: it.label.clone(),
                                pool: None,
                                cluster: ClusterSource::default(),
                            };
                            classes.push((input::class_name(class), it, written));
                        }
                        Err(findings) => return findings,
                    }
                }
                Object::Pool(pool) => pools.push((OfPool::from(pool), object.clone())),
                Object::Claim(_)
                | Object::Policy(_)
                | Object::Quarantine(_)
                | Object::Budget(_)
                | Object::Replacement(_)
                | Object::Ledger(_)
                | Object::Image(_) => {}
            }
            Vec::new()
        })?;
        let names: Vec<String> =
            classes.iter().map(|(_, it, _)| format!("`{}`", it.name)).collect();
        let Some((full_name, class, mut written)) = classes.pop() else {
            return Err(match &boot.class {
                Some(name) => Failure::usage(format!("no class is called `{name}`")),
                None => {
                    Failure::usage("no class was given").hint("pass a file with an EC2NodeClass")
                }
            });
        };
        if !classes.is_empty() {
            let message = format!("there are {} classes: {}", names.len(), names.join(", "));
            return Err(Failure::usage(message).hint("pass --class NAME"));
        }
        // What is wrong with the user data is told when it is rendered.
        let node = objects
            .settings
            .remove(&full_name)
            .map_or_else(|| Ok(NodeSettings::of(class.family)), |it| it.map(|(it, _)| it));
        let mut talk = std::mem::take(&mut objects.talk);
        written.pool =
            pick_pool(pools, &full_name, boot.family.unwrap_or(class.family), boot, &mut talk)?;
        Ok(Self { class, node, written, talk })
    }
}

/// The pool that was named, else the only one that refers to the class, else the only one at all.
fn pick_pool(
    mut pools: Vec<(OfPool, Located<Object>)>,
    full_name: &str,
    family: Family,
    boot: &cli::Boot,
    talk: &mut String,
) -> Result<Option<(OfPool, Located<Object>)>, Failure> {
    let refers = |it: &(OfPool, _)| format!("{}/{}", it.0.class.0, it.0.class.1) == full_name;
    if let Some(name) = &boot.nodepool {
        pools.retain(|it| it.0.name == *name);
        if pools.is_empty() {
            return Err(Failure::usage(format!("no pool is called `{name}`")));
        }
    } else if pools.iter().any(refers) {
        pools.retain(refers);
    }
    let names: Vec<String> = pools.iter().map(|(it, _)| format!("`{}`", it.name)).collect();
    let pool = pools.pop();
    if !pools.is_empty() {
        let message = format!("there are {} pools: {}", names.len(), names.join(", "));
        return Err(Failure::usage(message).hint("pass --nodepool NAME"));
    }
    match &pool {
        None if family != Family::Custom => {
            talk.push_str("note: no pool was given: its labels and taints are left out\n");
        }
        Some(it) if !refers(it) => {
            let (pool, (group, other)) = (&it.0.name, &it.0.class);
            let _ = writeln!(
                talk,
                "warning: pool `{pool}` refers to {group}/{other}, and this is {full_name}"
            );
        }
        Some(_) | None => {}
    }
    Ok(pool)
}

fn render(verb: &cli::UserdataRender) -> Result<Answer, Failure> {
    if verb.provenance && verb.output == TextFormat::Base64 {
        return Err(Failure::usage("--provenance is no base64").hint("leave out `-o base64`"));
    }
    input::read_stdin_once(verb.files.iter().chain(files_of(&verb.boot)))?;
    let prepared = Prepared::read(&verb.files, &verb.boot, Cluster::Needed, "rendered")?;
    let (user_data, talk) = prepared.rendered("rendered")?;
    let data = match verb.output {
        TextFormat::Json => {
            output::serialize(Format::Json, &data::document(&prepared, &user_data))?
        }
        TextFormat::Base64 => format!("{}\n", base64::encode(user_data.text.as_bytes())),
        TextFormat::Text if verb.provenance => provenance(&user_data),
        // Not a byte more: it is what the node gets.
        TextFormat::Text => user_data.text,
    };
    Ok(Answer { data, talk, exit: Exit::Done })
}

fn provenance(user_data: &UserData) -> String {
    let mut table = Table::new(&["SOURCE", "WHAT"]);
    for it in &user_data.provenance {
        table.row(vec![source(it.source).to_owned(), it.what.clone()]);
    }
    table.print(true)
}

fn source(source: Source) -> &'static str {
    match source {
        Source::User => "user",
        Source::Class => "class",
        Source::Nodemolt => "nodemolt",
    }
}

/// One class, or each of several.
fn lint(verb: &cli::UserdataLint, look: Look) -> Result<Answer, Failure> {
    input::read_stdin_once(verb.files.iter().chain(files_of(&verb.boot)))?;
    let names = if verb.boot.class.is_some() { Vec::new() } else { class_names(&verb.files) };
    if names.len() < 2 {
        let linted = Linted::new(verb, &verb.boot)?;
        let data = match verb.output {
            PlainFormat::Text => look.plain(&linted.told),
            PlainFormat::Json => output::serialize(Format::Json, &linted.document)?,
        };
        return Ok(Answer { data, talk: linted.talk, exit: linted.exit });
    }
    let (mut told, mut talk, mut documents) = (String::new(), String::new(), Vec::new());
    let mut exit = Exit::Done;
    for name in names {
        let boot = cli::Boot { class: Some(name), ..verb.boot.clone() };
        let more = match Linted::new(verb, &boot) {
            Ok(linted) => {
                told.push_str(&linted.told);
                documents.push(linted.document);
                exit = if linted.exit == Exit::Done { exit } else { linted.exit };
                linted.talk
            }
            // What was mistyped is mistyped for all of them.
            Err(failure) if failure.exit != Exit::Failed => return Err(failure),
            Err(failure) => {
                exit = Exit::Failed;
                failure.talk
            }
        };
        // What concerns all files is told once.
        if !talk.contains(&more) {
            tell_once(&mut talk, &more);
        }
    }
    let data = match verb.output {
        PlainFormat::Text => look.plain(&told),
        PlainFormat::Json => output::serialize(Format::Json, &data::list(documents))?,
    };
    Ok(Answer { data, talk, exit })
}

/// Adds what is said, save notes that were said before.
fn tell_once(talk: &mut String, more: &str) {
    for line in more.lines() {
        if !(line.starts_with("note: ") && talk.lines().any(|it| it == line)) {
            let _ = writeln!(talk, "{line}");
        }
    }
}

/// The classes that the files name, each once. What is wrong with a file is told when it is linted.
fn class_names(files: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    let _ = input::read_objects_for(files, "linted", |object, _| {
        if let Object::Class(class) = &object.value
            && !names.contains(&class.metadata.name)
        {
            names.push(class.metadata.name.clone());
        }
        Vec::new()
    });
    names
}

/// One class, looked through.
struct Linted {
    document: data::Linted,
    /// The findings, for people.
    told: String,
    talk: String,
    exit: Exit,
}

impl Linted {
    fn new(verb: &cli::UserdataLint, boot: &cli::Boot) -> Result<Self, Failure> {
        let prepared = Prepared::read(&verb.files, boot, Cluster::StoodInFor, "linted")?;
        let text = &prepared.class.user_part;
        let mut found: Vec<(&'static str, Remark)> = Vec::new();
        let mut add = |level, remarks: Vec<Remark>| {
            found.extend(remarks.into_iter().map(|it| (level, it)));
        };
        match prepared.render() {
            Ok(user_data) => add("warning", user_data.remarks),
            Err(conflict) => {
                add("error", conflict.remarks);
                add("warning", conflict.warnings);
            }
        }
        add("warning", secret::find(text));
        add("warning", unread(prepared.family, text));
        found.sort_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        let told = found.iter().map(|(level, remark)| prepared.told(level, remark)).collect();
        let document = data::findings(&prepared, &found);
        let mut talk = prepared.talk.clone();
        let exit = if found.is_empty() { Exit::Done } else { Exit::Failed };
        let noun = if found.len() == 1 { "finding" } else { "findings" };
        let _ = writeln!(talk, "class `{}`: {} {noun}", prepared.class.name, found.len());
        Ok(Self { document, told, talk, exit })
    }
}

/// What a family that does not read the user's part as MIME or as a script would not notice.
fn unread(family: Family, text: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let start = Place::UserPart { line: 1, column: 1 };
    // AL2's and AL2023's own readers say it.
    if !matches!(family, Family::Al2 | Family::Al2023)
        && let Some(inner) = user_part::looks_like_base64(text)
    {
        let message = format!("looks like base64 of {inner}; a node would read the letters");
        let hint = "write it as plain text: it is encoded when it is sent";
        remarks.push(Remark::new(start, message).with_hint(hint));
    }
    if !family.windows()
        && let Some(at) = text.find("\r\n")
    {
        let message = "ends in a carriage return, as Windows ends its lines";
        let remark = Remark::new(Place::of_byte(text, at), message);
        remarks.push(remark.with_hint("save the file with Unix line ends"));
    }
    remarks
}

/// A text file as it is.
fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = input::read_bytes(path)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("`{}` is not UTF-8 text", path.display())))
}
