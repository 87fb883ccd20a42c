//! What was given, and what is wrong with it?
//!
//! Reads files and turns them into what core decides on. All problems of all files are told at once,
//! each with file, line and field.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use nodemolt_api::answers::{self, Answer};
use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::{self, Located, Object, Source};
use nodemolt_api::into_bootstrap;
use nodemolt_api::into_core::PoolOfClass;
use nodemolt_api::problem::{Finding, Problem, Severity};
use nodemolt_core::ask::{Ask, Owner};
use nodemolt_core::catalog::{Catalog, Change, Observation, Outcome, merge};
use nodemolt_core::image::AccountId;
use nodemolt_core::lookup::Minor;
use nodemolt_core::policy::{Policy, Quarantine, Rule};
use nodemolt_fit::Types;
use nodemolt_fit::capacity::NodeSettings;

use crate::cli;
use crate::output::Failure;

/// `-`, or a file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    // It can be read once, and a verb may look at a file twice.
    static STDIN: Mutex<Option<Vec<u8>>> = Mutex::new(None);
    if path == Path::new("-") {
        let mut stdin = STDIN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &*stdin {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("could not read standard input")?;
        return Ok(stdin.insert(bytes).clone());
    }
    std::fs::read(path).with_context(|| format!("could not read `{}`", path.display()))
}

/// One standard input cannot be two things.
pub(crate) fn read_stdin_once<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    if paths.into_iter().filter(|it| it.as_os_str() == "-").count() > 1 {
        let message = "`-` was given more than once, and there is one standard input";
        return Err(Failure::usage(message).hint("save one of them in a file"));
    }
    Ok(())
}

/// A catalog and what is to be said about it.
#[derive(Debug)]
pub(crate) struct ReadCatalog {
    pub catalog: Catalog,
    pub warnings: Vec<String>,
}

/// All catalog files together, the later ones standing over the earlier.
pub(crate) fn read_catalog(files: &cli::CatalogFiles) -> Result<ReadCatalog, Failure> {
    if files.catalog.is_empty() {
        return Err(Failure::usage("no catalog was given").hint(
            "pass --catalog FILE: the JSON of `aws ec2 describe-images` and of `aws ssm get-parameters-by-path`, or a lock file; `examples/catalog` has some",
        ));
    }
    let mut catalog = Catalog::default();
    let mut warnings = Vec::new();
    for path in &files.catalog {
        let shown = path.display();
        let changes = match read_answer(path)? {
            Answer::Lock(other) => catalog.join(other),
            Answer::Plain(plain) => {
                if !plain.complete {
                    warnings.push(format!(
                        "{shown}: the answer has a NextToken, so it is incomplete; what it does not list may exist"
                    ));
                }
                for name in &plain.not_there {
                    warnings.push(format!("{shown}: SSM says that {name} is not there"));
                }
                let seen = Observation::plain(plain.images, plain.parameters);
                let (merged, changes) = merge(catalog, seen);
                catalog = merged;
                changes
            }
        };
        warnings.extend(disagreements(&changes).map(|it| format!("{shown}: {it}")));
    }
    for (query, answered) in &catalog.answers {
        if let Some((outcome, at)) = answered.last.filter(|(it, _)| *it != Outcome::Complete) {
            warnings.push(format!(
                "the last answer to `{query}` was {outcome}, on {at}; what was known before stands"
            ));
        }
    }
    Ok(ReadCatalog { catalog, warnings })
}

pub(crate) fn read_answer(path: &Path) -> Result<Answer> {
    let bytes = read_bytes(path)?;
    answers::read(&bytes).with_context(|| format!("cannot use `{}` as a catalog", path.display()))
}

/// What two files say differently of one thing.
pub(crate) fn disagreements(changes: &[Change]) -> impl Iterator<Item = String> {
    changes.iter().filter_map(|it| match it {
        Change::Differs(id, members) => Some(format!(
            "it disagrees with an earlier file about {id} ({}); the later one stands",
            members.join(", ")
        )),
        Change::ParameterDiffers(name) => Some(format!(
            "it disagrees with an earlier file about the value of {name}; the later one stands"
        )),
        Change::Appeared(_)
        | Change::Returned(_)
        | Change::NotListed(_)
        | Change::Gone(_)
        | Change::Withdrawn(..)
        | Change::ParameterGone(_) => None,
    })
}

/// The shipped instance types, and what the user brought.
pub(crate) fn read_types(files: &cli::TypeFiles, warnings: &mut Vec<String>) -> Result<Types> {
    let mut types = if files.only_types { Types::default() } else { Types::shipped().clone() };
    for path in &files.types {
        let bytes = read_bytes(path)?;
        let answer = answers::instance_types::read(&bytes)
            .with_context(|| format!("cannot use `{}` as instance types", path.display()))?;
        if !answer.complete {
            warnings.push(format!(
                "{}: the answer has a NextToken, so it is incomplete",
                path.display()
            ));
        }
        types = types.with(answer.types).types;
    }
    Ok(types)
}

/// What `-f` brought.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub classes: Vec<(EC2NodeClass, Ask)>,
    pub pools: Vec<PoolOfClass>,
    pub policy: Policy,
    /// By [`class_name`] of the class: what its nodes offer and what there is to say of it, or what is
    /// wrong with it, ready to print. Images are chosen without it.
    pub settings: BTreeMap<String, Result<(NodeSettings, String), String>>,
    /// Warnings and notes, ready to print.
    pub talk: String,
}

/// Reads all files, or says all that is wrong with them.
pub(crate) fn read_objects(paths: &[PathBuf]) -> Result<Objects, Failure> {
    read_objects_for(paths, "resolved", |_, _| Vec::new())
}

/// The same for a verb that asks more of an object than that it can be resolved. `done` is what did not
/// happen where it cannot answer.
pub(crate) fn read_objects_for(
    paths: &[PathBuf],
    done: &str,
    mut ask_more: impl FnMut(&Located<Object>, &Source) -> Vec<Finding>,
) -> Result<Objects, Failure> {
    let mut objects = Objects::default();
    let mut problems: Vec<(Problem, String)> = Vec::new();
    let mut seen: BTreeMap<(&'static str, String), String> = BTreeMap::new();
    for path in list_files(paths)? {
        let bytes = read_bytes(&path)?;
        let name = path.display().to_string();
        let source = match Source::from_bytes(&name, &bytes) {
            Ok(source) => source,
            Err(problem) => {
                problems.push((*problem, String::new()));
                continue;
            }
        };
        let (found, told) = file::read(&source);
        // Of a file that is too long no line is shown: to find its lines takes as long as to read it.
        let too_long = source.text.len() > file::FILE_BYTES_MAX;
        let text = if too_long { "" } else { source.text.as_str() };
        problems.extend(told.into_iter().map(|it| (it, text.to_owned())));
        for object in &found {
            let key = (object.value.kind(), qualified_name(&object.value));
            if let Some(before) = seen.insert(key, name.clone()) {
                let message = format!(
                    "{} `{}` was read before, from {before}",
                    object.value.kind(),
                    object.value.name()
                );
                let problem = object.problem(Finding::error("metadata.name", message));
                problems.push((problem, source.text.clone()));
                continue;
            }
            let mut findings = take(object, &mut objects);
            findings.extend(ask_more(object, &source));
            for finding in findings {
                problems.push((object.problem(finding), source.text.clone()));
            }
            if let Object::Class(class) = &object.value {
                let told = |findings: Vec<Finding>| -> String {
                    let told = findings.into_iter().map(|it| object.problem(it));
                    told.map(|it| show(&it, &source.text)).collect()
                };
                let settings = into_bootstrap::offered(class)
                    .map(|(settings, findings)| (settings, told(findings)))
                    .map_err(told);
                objects.settings.insert(class_name(class), settings);
            }
        }
    }
    let failed = problems.iter().any(|(it, _)| it.severity == Severity::Error);
    for (problem, text) in &problems {
        objects.talk.push_str(&show(problem, text));
    }
    if failed {
        let errors = problems.iter().filter(|(it, _)| it.severity == Severity::Error).count();
        let mut talk = objects.talk;
        let noun = if errors == 1 { "error" } else { "errors" };
        let _ = writeln!(talk, "{errors} {noun}; nothing was {done}");
        return Err(Failure { talk, exit: crate::output::Exit::Failed });
    }
    Ok(objects)
}

/// `karpenter.k8s.aws/general`: a class with its group.
pub(crate) fn class_name(class: &EC2NodeClass) -> String {
    let group = class.api_version.split('/').next().unwrap_or_default();
    format!("{group}/{}", class.metadata.name)
}

/// The same name in both class groups is two classes.
fn qualified_name(object: &Object) -> String {
    match object {
        Object::Class(class) => class_name(class),
        Object::Pool(_)
        | Object::Claim(_)
        | Object::Policy(_)
        | Object::Quarantine(_)
        | Object::Budget(_)
        | Object::Replacement(_)
        | Object::Ledger(_)
        | Object::Image(_) => object.name().to_owned(),
    }
}

fn take(object: &Located<Object>, objects: &mut Objects) -> Vec<Finding> {
    match &object.value {
        Object::Class(class) => match Ask::try_from(class) {
            Ok(ask) => objects.classes.push((class.clone(), ask)),
            Err(findings) => return findings,
        },
        Object::Pool(pool) => match PoolOfClass::try_from(pool) {
            Ok(pool) => objects.pools.push(pool),
            Err(findings) => return findings,
        },
        Object::Policy(policy) => match Rule::try_from(policy) {
            Ok(rule) => objects.policy.rules.push(rule),
            Err(findings) => return findings,
        },
        Object::Quarantine(quarantine) => match Quarantine::try_from(quarantine) {
            Ok(quarantine) => objects.policy.quarantines.push(quarantine),
            Err(findings) => return findings,
        },
        // Nothing that is answered from files depends on these.
        Object::Claim(_)
        | Object::Budget(_)
        | Object::Replacement(_)
        | Object::Ledger(_)
        | Object::Image(_) => {}
    }
    Vec::new()
}

/// A folder means the manifests in it, in the order of their names.
pub(crate) fn list_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let listed = list_manifests(path, false)?;
        if listed.files.is_empty() {
            anyhow::bail!("no .yaml, .yml or .json file in `{}`", path.display());
        }
        files.extend(listed.files);
    }
    Ok(files)
}

/// What a path stands for.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub files: Vec<PathBuf>,
    /// How many manifests are in folders below that were not asked for.
    pub nested: usize,
}

/// A file itself, or the manifests of a folder, in the order of their names. Links to folders are not
/// followed: they may lead back.
pub(crate) fn list_manifests(path: &Path, recursive: bool) -> Result<Listed> {
    if !path.is_dir() {
        return Ok(Listed { files: vec![path.to_owned()], nested: 0 });
    }
    let mut listed = Listed::default();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let could_not = || format!("could not list `{}`", folder.display());
        let below = folder != path;
        let entries = match std::fs::read_dir(&folder) {
            // What nobody asked for is counted as far as it can be.
            Err(_) if below && !recursive => continue,
            entries => entries.with_context(could_not)?,
        };
        for entry in entries {
            let entry = entry.with_context(could_not)?;
            let found = entry.path();
            let manifest = found
                .extension()
                .and_then(|it| it.to_str())
                .is_some_and(|it| matches!(it, "yaml" | "yml" | "json"));
            if entry.file_type().with_context(could_not)?.is_dir() {
                folders.push(found);
            } else if manifest && found.is_file() {
                if below && !recursive {
                    listed.nested += 1;
                } else {
                    listed.files.push(found);
                }
            }
        }
    }
    listed.files.sort();
    if listed.files.is_empty() && listed.nested == 0 {
        anyhow::bail!("no .yaml, .yml or .json file in `{}`", path.display());
    }
    Ok(listed)
}

/// A problem with the line it is about.
pub(crate) fn show(problem: &Problem, text: &str) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = if problem.field.is_empty() {
        problem.message.clone()
    } else {
        format!("{}: {}", problem.field, problem.message)
    };
    let start = problem.span.as_ref().map_or(0, |it| it.start).min(text.len());
    let mut end = problem.span.as_ref().map_or(start, |it| it.end).min(text.len());
    // One line is enough: the whole of a long mapping would hide what is wrong with it.
    if let Some(newline) = text.get(start..end).and_then(|it| it.find('\n')) {
        end = start + newline;
    }
    let mut group = level.primary_title(title).element(
        Snippet::source(text)
            .path(&problem.file)
            .annotation(AnnotationKind::Primary.span(start..end)),
    );
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint));
    }
    format!("{}\n", Renderer::plain().render(&[group]))
}

/// Whether enough was typed to resolve this ask: what an alias or `self` means is not in the files.
pub(crate) fn check_setting(
    ask: &Ask,
    policy: &Policy,
    kubernetes: Option<Minor>,
    account: Option<&AccountId>,
) -> Result<(), Failure> {
    // What was asked for on the command line belongs to no class.
    let of_class =
        if ask.class.is_empty() { String::new() } else { format!(" of class `{}`", ask.class) };
    // A class without terms means the alias of its family.
    let alias = ask.terms.iter().find_map(|it| it.alias.as_ref());
    if kubernetes.is_none() && (alias.is_some() || ask.terms.is_empty()) {
        let alias = alias.map_or_else(|| ask.family.to_string(), ToString::to_string);
        let message = format!(
            "{alias}{of_class} follows the cluster's Kubernetes version, and --kubernetes is missing"
        );
        return Err(Failure::usage(message).hint("pass --kubernetes VERSION, for example 1.35"));
    }
    if account.is_some() {
        return Ok(());
    }
    let own_term = ask.terms.iter().position(|it| it.owner == Some(Owner::Own));
    let ruling = policy.for_class(&ask.labels);
    let own_rule = ruling
        .rules
        .iter()
        .find(|it| it.owners.as_ref().is_some_and(|it| it.contains(&Owner::Own)));
    let says = match (own_term, own_rule) {
        (Some(at), _) => format!("term {}{of_class}", at + 1),
        (None, Some(rule)) => format!("policy `{}`", rule.name),
        (None, None) => return Ok(()),
    };
    let message = format!("{says} says `self`, and --account is missing");
    Err(Failure::usage(message)
        .hint("pass --account ID, the 12 digits of the account that `self` means"))
}

/// The moment that is asked about.
pub(crate) fn moment(at: Option<Timestamp>) -> Timestamp {
    at.unwrap_or_else(Timestamp::now)
}
