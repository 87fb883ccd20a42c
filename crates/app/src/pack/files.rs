//! What was given, and what is wrong with it?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::{Object, Source};
use nodemolt_api::into_bootstrap::offered;
use nodemolt_api::listing::class::status_of_written;
use nodemolt_api::listing::{Listing, pool};
use nodemolt_api::meta::ObjectMeta;
use nodemolt_api::nodeclaim::NodeClaim;
use nodemolt_api::nodepool::NodePool;
use nodemolt_api::problem::{Finding, Problem, Severity};
use nodemolt_fit::capacity::NodeSettings;
use nodemolt_fit::pool::Pool;

use super::Talk;
use crate::input::{class_name, list_files, read_bytes, show};
use crate::output::{Exit, Failure};

/// Kinds that decide about pods which a person has written, before the scheduler sees them.
const NOT_READ: [&str; 4] =
    ["HorizontalPodAutoscaler", "ResourceQuota", "ScaledObject", "VerticalPodAutoscaler"];

/// Of Karpenter: other prices and capacities than those of EC2.
const OVERLAY: &str = "NodeOverlay";

#[derive(Debug, Default)]
pub(super) struct Files {
    pub listing: Listing,
    pub pools: Vec<PoolFile>,
    pub classes: BTreeMap<String, ClassFile>,
    pub claims: Vec<NodeClaim>,
    notes: Vec<String>,
    /// By the file's name, to show the line of a problem.
    texts: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct PoolFile {
    pub wire: NodePool,
    pub pool: Pool,
}

#[derive(Debug)]
pub(super) struct ClassFile {
    pub wire: EC2NodeClass,
    pub settings: NodeSettings,
}

impl Files {
    /// Reads all files, or says all that is wrong with them.
    pub(super) fn read(paths: &[PathBuf], talk: &mut Talk) -> Result<Self, Failure> {
        let mut files = Self::default();
        let mut problems = Vec::new();
        for path in list_files(paths)? {
            let bytes = read_bytes(&path)?;
            let source = match Source::from_bytes(path.display().to_string(), &bytes) {
                Ok(source) => source,
                Err(problem) => {
                    problems.push(*problem);
                    continue;
                }
            };
            drop(bytes);
            let (before, told_before) = (files.listing.written(), problems.len());
            let (objects, told) = files.listing.read(&source);
            problems.extend(told);
            for object in objects {
                let found = files.take(&object.value);
                problems.extend(found.into_iter().map(|it| object.problem(it)));
            }
            // Of what exists no line will be shown, and that is most of a long text.
            if files.listing.written() > before || problems.len() > told_before {
                files.texts.insert(source.name, source.text);
            }
        }
        if problems.iter().any(|it| it.severity == Severity::Error) {
            return Err(files.failure(&problems));
        }
        // Whoever is told of several is told of them in one order, whatever the files have first.
        files.pools.sort_by(|left, right| left.pool.name.cmp(&right.pool.name));
        files.claims.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        talk.text.push_str(&files.shown(&problems));
        talk.told.extend(problems.iter().map(|it| match &it.hint {
            Some(hint) => format!("{it}; {hint}"),
            None => it.to_string(),
        }));
        talk.notes.append(&mut files.listing.notes);
        talk.notes.append(&mut files.notes);
        let ignored = files.listing.ignored.iter();
        let (matter, others): (Vec<_>, Vec<_>) = ignored
            .filter(|(kind, _)| *kind != OVERLAY)
            .partition(|(kind, _)| NOT_READ.contains(&kind.as_str()));
        let counted = |all: Vec<(&String, &usize)>| {
            let kinds = all.iter().map(|(kind, count)| format!("{count} {kind}"));
            kinds.collect::<Vec<String>>().join(", ")
        };
        if !matter.is_empty() {
            talk.warnings.push(format!(
                "these change how many pods there are, or what they ask for, and are not read: {}",
                counted(matter)
            ));
        }
        let makers: Vec<(&String, &usize)> = files.listing.makers.iter().collect();
        if !makers.is_empty() {
            talk.warnings.push(format!(
                "these make pods and are not read, so that only those count which the files show: {}",
                counted(makers)
            ));
        }
        if let Some(count) = files.listing.ignored.get(OVERLAY) {
            talk.warnings.push(format!(
                "{OVERLAY}s change prices and what machines offer, and are not read: {count}; what is called the cheapest may not be"
            ));
        }
        if !others.is_empty() {
            talk.notes
                .push(format!("ignored, as they do not say where pods fit: {}", counted(others)));
        }
        Ok(files)
    }

    fn take(&mut self, object: &Object) -> Vec<Finding> {
        match object {
            Object::Pool(wire) => {
                let mut read = match pool(wire) {
                    Ok(pool) => PoolFile { wire: wire.clone(), pool },
                    Err(found) => return found,
                };
                let same = |it: &PoolFile| it.pool.name == wire.metadata.name;
                let at = self.pools.iter().position(same);
                let before = at.map(|it| &self.pools[it].wire.metadata);
                match twice(before, &wire.metadata, "NodePool") {
                    Twice::No => self.pools.push(read),
                    // What a controller has found out is true of both.
                    Twice::Keep(note) => {
                        let status = at.map(|it| &mut self.pools[it].wire.status);
                        if let Some(status @ None) = status {
                            status.clone_from(&wire.status);
                        }
                        self.notes.extend(note);
                    }
                    Twice::Replace(note) => {
                        let live = at.map(|it| self.pools.remove(it));
                        read.wire.status = read.wire.status.or(live.and_then(|it| it.wire.status));
                        self.pools.push(read);
                        self.notes.push(note);
                    }
                    Twice::Mistake(finding) => return vec![finding],
                }
            }
            Object::Class(wire) => {
                let (settings, told) = match offered(wire) {
                    Ok(read) => read,
                    Err(found) => return found,
                };
                let mut class = ClassFile { wire: wire.clone(), settings };
                let known = self.classes.get_mut(&class_name(wire));
                let before = known.as_ref().map(|it| &it.wire.metadata);
                match (twice(before, &wire.metadata, "EC2NodeClass"), known) {
                    (Twice::No, _) | (Twice::Replace(_), None) => {
                        self.classes.insert(class_name(wire), class);
                    }
                    (Twice::Keep(note), known) => {
                        if let Some(known) = known.filter(|it| it.wire.status.is_none()) {
                            known.wire.status = status_of_written(&known.wire, wire);
                        }
                        self.notes.extend(note);
                    }
                    (Twice::Replace(note), Some(live)) => {
                        let of_live = status_of_written(&class.wire, &live.wire);
                        class.wire.status = class.wire.status.or(of_live);
                        *live = class;
                        self.notes.push(note);
                    }
                    (Twice::Mistake(finding), _) => return vec![finding],
                }
                return told;
            }
            Object::Claim(wire) => {
                let same = |it: &NodeClaim| it.metadata.name == wire.metadata.name;
                let before = self.claims.iter().find(|it| same(it)).map(|it| &it.metadata);
                match twice(before, &wire.metadata, "NodeClaim") {
                    Twice::No => self.claims.push(wire.clone()),
                    Twice::Keep(note) => self.notes.extend(note),
                    Twice::Replace(note) => {
                        self.claims.retain(|it| !same(it));
                        self.claims.push(wire.clone());
                        self.notes.push(note);
                    }
                    Twice::Mistake(finding) => return vec![finding],
                }
            }
            // Which image boots, and when nodes may go, does not decide what fits.
            Object::Policy(_)
            | Object::Quarantine(_)
            | Object::Budget(_)
            | Object::Replacement(_)
            | Object::Ledger(_)
            | Object::Image(_) => {}
        }
        Vec::new()
    }

    pub(super) fn bare_pools(&self) -> Vec<Pool> {
        self.pools.iter().map(|it| it.pool.clone()).collect()
    }

    fn shown(&self, problems: &[Problem]) -> String {
        let text = |it: &Problem| self.texts.get(&it.file).map(String::as_str).unwrap_or_default();
        problems.iter().map(|it| show(it, text(it))).collect()
    }

    pub(super) fn failure(&self, problems: &[Problem]) -> Failure {
        let mut problems = problems.to_vec();
        problems.sort_by(|left, right| {
            (&left.file, left.line, left.column).cmp(&(&right.file, right.line, right.column))
        });
        let mut talk = self.shown(&problems);
        let errors = problems.iter().filter(|it| it.severity == Severity::Error).count();
        let noun = if errors == 1 { "error" } else { "errors" };
        let _ = writeln!(talk, "{errors} {noun}; nothing was packed");
        Failure { talk, exit: Exit::Failed }
    }
}

/// What is done with an object that was perhaps read before.
enum Twice {
    No,
    /// The first holds.
    Keep(Option<String>),
    Replace(String),
    Mistake(Finding),
}

/// As for all other kinds: one object in two files is one, and a manifest stands in for the live object.
fn twice(before: Option<&ObjectMeta>, now: &ObjectMeta, kind: &str) -> Twice {
    let name = &now.name;
    let note = || format!("{kind} {name} as it was written stands in for the live one");
    match (before.map(|it| &it.uid), &now.uid) {
        (None, _) => Twice::No,
        (Some(Some(before)), Some(uid)) if before == uid => Twice::Keep(None),
        (Some(None), Some(_)) => Twice::Keep(Some(note())),
        (Some(Some(_)), None) => Twice::Replace(note()),
        (Some(None), None) | (Some(Some(_)), Some(_)) => {
            let message = format!("{kind} `{name}` was read before");
            Twice::Mistake(Finding::error("metadata.name", message))
        }
    }
}
