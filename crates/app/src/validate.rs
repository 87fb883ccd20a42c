//! Would the cluster take this, and would it do what was meant?
//!
//! `files → findings`, each with line, column and who says so
//!
//! Two are asked about every object: the API server (through our validator, from the CRD alone) and the
//! controller (through the strict door and the conversions that it makes itself). What one has said about
//! a field the other need not say again. Of classes the admission policies are asked, too, for the
//! `ImagePolicies` that came along.

mod fences;
mod once;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nodemolt_api::admission::{Cause, CauseKind, NO_FIELD, Validator, cases};
use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::{self, Located, Object, Source, raw};
use nodemolt_api::into_core::PoolOfClass;
use nodemolt_api::problem::{Finding, Problem, Severity};
use nodemolt_api::{awsimage, crd, disruptionledger, imagepolicy, nodedisruptionbudget};
use nodemolt_core::ask::Ask;
use nodemolt_core::bootstrap::OfClass;
use nodemolt_core::launch::Settings;
use nodemolt_core::policy::{Quarantine, Rule};
use nodemolt_fit::capacity::NodeSettings;
use serde::Serialize;
use serde_json::Value;

use self::fences::Fences;
use crate::cli::{Validate, ValidateFormat};
use crate::input;
use crate::output::{self, Answer, Exit, Failure, Look};

/// What etcd takes for one object, by default.
const OBJECT_BYTES_MAX: usize = 1_572_864;

/// Who would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    ApiServer,
    AdmissionPolicy,
    Controller,
}

/// One thing to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    by: By,
    /// The server's word for the kind of mistake.
    reason: Option<CauseKind>,
    problem: Problem,
}

/// One object that was looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    file: String,
    line: usize,
    last_line: usize,
    api_version: String,
    kind: String,
    /// Its name, or the beginning that the API server makes one of.
    name: String,
    generated: bool,
    said: Vec<Said>,
}

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Report {
    objects: Vec<Looked>,
    /// What belongs to no object: YAML that is none, kinds that are not ours.
    loose: Vec<Said>,
    /// Of folders that were not looked into.
    folders: Vec<Said>,
    /// How many files are in those.
    left_out: usize,
}

pub(crate) fn run(verb: &Validate, look: Look) -> Result<Answer, Failure> {
    let validators = Validators::new()?;
    let old = match &verb.old {
        Some(path) => read_raw(std::slice::from_ref(path))?,
        None => Vec::new(),
    };
    let mut report = Report::default();
    let mut sound = Vec::new();
    for source in read_sources(&verb.files, verb.recursive, &mut report) {
        sound.extend(look_at(&source, &validators, &old, &mut report));
    }
    ask_fences(&sound, &old, &mut report);
    tell_twins(&mut report);
    report.settle();
    let exit = if report.refused() { Exit::Failed } else { Exit::Done };
    let data = match verb.output {
        ValidateFormat::Text => look.plain(&page::text(&report)),
        ValidateFormat::Json => output::serialize(crate::cli::Format::Json, &page::json(&report))?,
    };
    Ok(Answer { data, talk: String::new(), exit })
}

/// One for each kind that is served.
struct Validators(BTreeMap<(String, String), Validator>);

impl Validators {
    fn new() -> Result<Self, Failure> {
        let mut validators = BTreeMap::new();
        for crd in crd::all() {
            let validator = Validator::new(&(crd.definition)()).map_err(|error| {
                Failure::new(format!("the CRD {} is broken: {error}", crd.name))
            })?;
            validators.insert((crd.group.to_owned(), crd.kind.to_owned()), validator);
        }
        Ok(Self(validators))
    }

    fn of(&self, object: &Value) -> Option<&Validator> {
        let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
        let (group, _) = api_version.split_once('/')?;
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn text_of_metadata<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get("metadata").map_or("", |it| text(it, field))
}

fn name(object: &Value) -> &str {
    match text_of_metadata(object, "name") {
        "" => text_of_metadata(object, "generateName"),
        name => name,
    }
}

fn read_sources(paths: &[PathBuf], recursive: bool, report: &mut Report) -> Vec<Source> {
    let mut sources = Vec::new();
    for path in paths {
        let listed = match input::list_manifests(path, recursive) {
            Ok(listed) => listed,
            Err(error) => {
                report.loose.push(told_of_file(path, Finding::error("", format!("{error:#}"))));
                continue;
            }
        };
        if listed.nested > 0 {
            let nouns = if listed.nested == 1 { "manifest is" } else { "manifests are" };
            let message = format!("{} {nouns} in folders below it, and left out", listed.nested);
            let severity = if listed.files.is_empty() { Severity::Error } else { Severity::Note };
            let finding = Finding { severity, ..Finding::note("", message) };
            report.folders.push(told_of_file(path, finding.hint("pass -R to look into them, too")));
            report.left_out += listed.nested;
        }
        read_files(&listed.files, &mut sources, report);
    }
    sources
}

fn read_files(paths: &[PathBuf], sources: &mut Vec<Source>, report: &mut Report) {
    for path in paths {
        let bytes = match input::read_bytes(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                report.loose.push(told_of_file(path, Finding::error("", format!("{error:#}"))));
                continue;
            }
        };
        match Source::from_bytes(path.display().to_string(), &bytes) {
            Ok(source) => sources.push(source),
            Err(problem) => {
                report.loose.push(Said { by: By::Controller, reason: None, problem: *problem });
            }
        }
    }
}

/// One file that cannot be read does not hide what is to be said of the others.
fn told_of_file(path: &Path, finding: Finding) -> Said {
    let Finding { severity, field, message, hint } = finding;
    let file = path.display().to_string();
    let problem = Problem { severity, file, line: 1, column: 1, span: None, field, message, hint };
    Said { by: By::Controller, reason: None, problem }
}

fn read_raw(paths: &[PathBuf]) -> Result<Vec<Located<Value>>, Failure> {
    let mut report = Report::default();
    let sources = read_sources(paths, false, &mut report);
    if let Some(said) = report.loose.first() {
        return Err(Failure::new(&said.problem));
    }
    let found: Vec<_> = sources.iter().flat_map(raw::objects).collect();
    if found.is_empty() {
        return Err(Failure::usage("--old names no object that can be read"));
    }
    Ok(found)
}

/// The objects that the strict door takes.
fn look_at(
    source: &Source,
    validators: &Validators,
    old: &[Located<Value>],
    report: &mut Report,
) -> Vec<Located<Object>> {
    let (sound, problems) = file::read_as_applied(source);
    let first = report.objects.len();
    for object in raw::objects(source) {
        let Some(validator) = validators.of(&object.value) else { continue };
        let before = old.iter().find(|it| same_object(&it.value, &object.value));
        let said = ask_server(validator, &object, before);
        let (line, last_line) = object.lines();
        report.objects.push(Looked {
            file: object.file.clone(),
            line,
            last_line,
            api_version: text(&object.value, "apiVersion").to_owned(),
            kind: text(&object.value, "kind").to_owned(),
            name: name(&object.value).to_owned(),
            generated: text_of_metadata(&object.value, "name").is_empty(),
            said,
        });
    }
    let mut rest: Vec<Problem> = problems;
    for object in &sound {
        rest.extend(ask_controller(object).into_iter().map(|it| object.problem(it)));
    }
    for problem in rest {
        let said = Said { by: By::Controller, reason: None, problem };
        attach(said, &mut report.objects[first..], &mut report.loose);
    }
    sound
}

/// To the object that stands there.
fn attach(said: Said, objects: &mut [Looked], loose: &mut Vec<Said>) {
    let Problem { file, line, .. } = &said.problem;
    let owner = objects
        .iter_mut()
        .rev()
        .find(|it| it.file == *file && (it.line..=it.last_line).contains(line));
    match owner {
        Some(owner) => owner.said.push(said),
        None => loose.push(said),
    }
}

fn ask_fences(sound: &[Located<Object>], old: &[Located<Value>], report: &mut Report) {
    let fences = Fences::of(sound);
    for object in sound {
        let Object::Class(class) = &object.value else { continue };
        let group = class.api_version.split('/').next();
        let before = old.iter().find(|it| {
            text(&it.value, "kind") == class.kind
                && text(&it.value, "apiVersion").split('/').next() == group
                && text_of_metadata(&it.value, "name") == class.metadata.name
        });
        let before = before.and_then(|it| serde_json::from_value(it.value.clone()).ok());
        for finding in fences.judge(class, before.as_ref()) {
            let problem = object.problem(finding);
            let said = Said { by: By::AdmissionPolicy, reason: None, problem };
            attach(said, &mut report.objects, &mut report.loose);
        }
    }
}

fn same_object(one: &Value, other: &Value) -> bool {
    let group = |it: &Value| text(it, "apiVersion").split('/').next().map(str::to_owned);
    text(one, "kind") == text(other, "kind")
        && group(one) == group(other)
        && text_of_metadata(one, "name") == text_of_metadata(other, "name")
}

fn ask_server(
    validator: &Validator,
    object: &Located<Value>,
    before: Option<&Located<Value>>,
) -> Vec<Said> {
    let outcome = match before {
        None => validator.create(&object.value),
        Some(before) => validator.update(&before.value, &object.value),
    };
    let mut said: Vec<Said> = outcome.causes().iter().map(|it| told(object, it)).collect();
    for field in &outcome.unknown {
        // Other clients are not told, and the field is dropped.
        let message = format!("strict decoding error: unknown field {field:?}");
        let problem = object.problem(Finding::error(field.clone(), message));
        said.push(Said { by: By::ApiServer, reason: None, problem });
    }
    for warning in &outcome.warnings {
        let (field, message) = warning.split_once(": ").unwrap_or(("", warning));
        let finding = Finding::warning(field, message);
        said.push(Said { by: By::ApiServer, reason: None, problem: object.problem(finding) });
    }
    for finding in dropped(validator, &object.value) {
        said.push(Said { by: By::ApiServer, reason: None, problem: object.problem(finding) });
    }
    let bytes = object.value.to_string().len();
    if bytes > OBJECT_BYTES_MAX {
        let message = format!(
            "is {bytes} bytes as JSON, more than the {OBJECT_BYTES_MAX} that are stored: etcdserver: request is too large"
        );
        let problem = object.problem(Finding::error("", message));
        said.push(Said { by: By::ApiServer, reason: None, problem });
    }
    said
}

/// What is taken, and does not arrive as it was written.
fn dropped(validator: &Validator, object: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    if !validator.namespaced() && !text_of_metadata(object, "namespace").is_empty() {
        let message = "is dropped: objects of this kind are in no namespace";
        found.push(Finding::warning("metadata.namespace", message).hint("remove it"));
    }
    let named = !text_of_metadata(object, "name").is_empty();
    if !named && !text_of_metadata(object, "generateName").is_empty() {
        let message = "`kubectl create` takes it, `kubectl apply` needs a `name`";
        found.push(Finding::warning("metadata.generateName", message));
    }
    if object.get("status").is_some_and(|it| !it.is_null()) {
        let message = "is dropped: only controllers write it, apart from the rest";
        found.push(Finding::warning("status", message).hint("remove it"));
    }
    found
}

fn told(object: &Located<Value>, cause: &Cause) -> Said {
    let field = if cause.field == NO_FIELD { "" } else { cause.field.trim_start_matches('.') };
    let finding = if cause.message.contains(cases::RULES_LEFT_OUT) {
        Finding::note(field, "the rules were not asked, because the object has the wrong shape")
    } else if cause.field == "apiVersion" {
        let message = format!("is not served: {}", cause.message);
        Finding::error(field, message)
    } else {
        Finding::error(field, cause.message.clone())
    };
    Said { by: By::ApiServer, reason: Some(cause.kind), problem: object.problem(finding) }
}

/// What the controller finds when it reads a sound object.
fn ask_controller(object: &Located<Object>) -> Vec<Finding> {
    fn unless<T>(converted: Result<T, Vec<Finding>>, findings: &mut Vec<Finding>) {
        findings.extend(converted.err().into_iter().flatten());
    }
    fn class(class: &EC2NodeClass, findings: &mut Vec<Finding>) {
        unless(Ask::try_from(class), findings);
        unless(NodeSettings::try_from(class), findings);
        unless(Settings::try_from(class), findings);
        unless(OfClass::try_from(class), findings);
    }
    let mut findings = Vec::new();
    let ignored = match &object.value {
        Object::Class(it) => {
            class(it, &mut findings);
            &[][..]
        }
        Object::Pool(it) => {
            unless(PoolOfClass::try_from(it), &mut findings);
            &[]
        }
        Object::Policy(it) => {
            unless(Rule::try_from(it), &mut findings);
            imagepolicy::IGNORED_FIELDS
        }
        Object::Quarantine(it) => {
            unless(Quarantine::try_from(it), &mut findings);
            &[]
        }
        Object::Budget(_) => nodedisruptionbudget::IGNORED_FIELDS,
        Object::Ledger(_) => disruptionledger::IGNORED_FIELDS,
        Object::Image(_) => awsimage::IGNORED_FIELDS,
        Object::Claim(_) | Object::Replacement(_) => &[],
    };
    for (field, why) in ignored {
        if object.written(field) {
            let message = format!("has no effect yet: {why}");
            findings.push(Finding::warning(*field, message));
        }
    }
    findings
}

/// Two objects of one name: the later one would win.
fn tell_twins(report: &mut Report) {
    let mut seen: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for object in &mut report.objects {
        let group = object.api_version.split('/').next().unwrap_or_default().to_owned();
        let key = (group, object.kind.clone(), object.name.clone());
        let place = format!("{}:{}", object.file, object.line);
        if object.name.is_empty() || object.generated {
            continue;
        }
        if let Some(before) = seen.insert(key, place) {
            let problem = Problem {
                severity: Severity::Warning,
                file: object.file.clone(),
                line: object.line,
                column: 1,
                span: None,
                field: "metadata.name".to_owned(),
                message: format!(
                    "is the name of another {} at {before}; the later one wins",
                    object.kind
                ),
                hint: None,
            };
            object.said.push(Said { by: By::ApiServer, reason: None, problem });
        }
    }
}

impl Report {
    /// In the order of the text, and nothing twice.
    fn settle(&mut self) {
        for object in &mut self.objects {
            let refused: BTreeSet<String> = object
                .said
                .iter()
                .filter(|it| it.by == By::ApiServer && it.problem.severity == Severity::Error)
                .map(|it| it.problem.field.clone())
                .collect();
            once::fold(&mut object.said);
            // The controller's remedy is worth more than its saying the same again.
            let mut hints: BTreeMap<String, String> = BTreeMap::new();
            object.said.retain(|it| {
                let again = it.by == By::Controller
                    && it.problem.severity == Severity::Error
                    && refused.contains(&it.problem.field);
                if again && let Some(hint) = &it.problem.hint {
                    hints.insert(it.problem.field.clone(), hint.clone());
                }
                !again
            });
            for said in object.said.iter_mut().filter(|it| it.by == By::ApiServer) {
                if said.problem.hint.is_none() && said.problem.severity == Severity::Error {
                    said.problem.hint = hints.get(&said.problem.field).cloned();
                }
            }
            sort(&mut object.said);
        }
        sort(&mut self.loose);
        sort(&mut self.folders);
    }

    fn refused(&self) -> bool {
        self.objects.iter().any(|it| worst(&it.said) == Some(Severity::Error))
            || worst(&self.loose) == Some(Severity::Error)
            || worst(&self.folders) == Some(Severity::Error)
    }
}

fn worst(said: &[Said]) -> Option<Severity> {
    said.iter().map(|it| it.problem.severity).max()
}

fn sort(said: &mut Vec<Said>) {
    let key = |it: &Said| {
        let problem = &it.problem;
        let place = (problem.file.clone(), problem.line, problem.column);
        (place, it.by, problem.field.clone(), problem.message.clone())
    };
    said.sort_by_cached_key(key);
    said.dedup_by_key(|it| key(it));
}
