//! Would the API server take this object?
//!
//! `CRD × object (× what it was) → the object as stored, or the causes for refusing it`
//!
//! The one validator: `validate`, the admission cases and the simulator ask here. In the server's order:
//! what the schema does not name goes, defaults come, the shape is checked, then the rules, and rules
//! are left out where the shape is too wrong to ask them. The cases under `tests/admission` run here and
//! on a real server, and must agree.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceSubresourceScale,
};
use serde_json::{Map, Value};

use self::rules::Asks;
pub use self::{
    cause::{Cause, CauseKind, NO_FIELD},
    rule::Rule,
    schema::Node,
};

pub mod cases;
mod cause;
mod cel;
mod correlate;
pub mod coverage;
mod format;
mod go;
mod lists;
mod metadata;
mod names;
mod pattern;
mod place;
mod prune;
mod rule;
mod rules;
mod schema;
mod structure;

pub use metadata::check_words;

/// As deep as `serde_json` reads. Deeper values can only be made by hand, and would be walked by
/// recursion.
const DEPTH_MAX: usize = 128;

/// What the server would say to objects of one kind.
#[derive(Debug)]
pub struct Validator {
    group: String,
    kind: String,
    namespaced: bool,
    versions: BTreeMap<String, Version>,
    /// All that is stored was taken here, as it is.
    trusts: bool,
}

#[derive(Debug)]
struct Version {
    node: Node,
    /// Status is written apart from the rest.
    status: bool,
    scale: Option<CustomResourceSubresourceScale>,
}

/// How an object is read, the object, and what it does not know.
type Received<'v> = (&'v Version, Map<String, Value>, Vec<String>);

/// A CRD that cannot be understood. The server would refuse most of those, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    pub path: String,
    pub message: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for CompileError {}

/// What became of a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The object as it is stored, or all that is wrong with it.
    pub verdict: Result<Value, Vec<Cause>>,
    /// Fields that were dropped. `kubectl apply` refuses them beforehand; other clients are not told.
    pub unknown: Vec<String>,
    /// What the server says and takes the object all the same.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// None where the object is taken.
    pub fn causes(&self) -> &[Cause] {
        self.verdict.as_ref().err().map_or(&[], Vec::as_slice)
    }

    fn refused(cause: Cause) -> Self {
        Self { verdict: Err(vec![cause]), unknown: Vec::new(), warnings: Vec::new() }
    }
}

impl Validator {
    /// All versions that the CRD serves.
    pub fn new(crd: &CustomResourceDefinition) -> Result<Self, CompileError> {
        let mut versions = BTreeMap::new();
        for version in crd.spec.versions.iter().filter(|it| it.served) {
            let schema = version.schema.as_ref().and_then(|it| it.open_api_v3_schema.as_ref());
            let mut node = match schema {
                Some(schema) => Node::compile(schema, "").map_err(|error| CompileError {
                    message: format!("{}: {}", version.name, error.message),
                    ..error
                })?,
                None => Node::default(),
            };
            if crd.spec.preserve_unknown_fields == Some(true) {
                node.preserves_unknown = true;
            }
            let subresources = version.subresources.as_ref();
            let version_read = Version {
                node,
                status: subresources.is_some_and(|it| it.status.is_some()),
                scale: subresources.and_then(|it| it.scale.clone()),
            };
            versions.insert(version.name.clone(), version_read);
        }
        if versions.is_empty() {
            let message = "the CRD serves no version".to_owned();
            return Err(CompileError { path: String::new(), message });
        }
        Ok(Self {
            group: crd.spec.group.clone(),
            kind: crd.spec.names.kind.clone(),
            namespaced: crd.spec.scope == "Namespaced",
            versions,
            trusts: false,
        })
    }

    /// For a store that holds only what was taken here, by this definition: what is old is not read or
    /// checked again, and of what did not change no rule is asked that it has kept before. The verdicts are
    /// the same; it is quicker by half.
    #[must_use]
    pub fn trusting(self) -> Self {
        Self { trusts: true, ..self }
    }

    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    /// The versions that are served, with their schemas.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.versions.iter().map(|(name, it)| (name.as_str(), &it.node))
    }

    /// A new object.
    pub fn create(&self, object: &Value) -> Outcome {
        let (version, mut object, unknown) = match self.receive(object) {
            Ok(received) => received,
            Err(cause) => return Outcome::refused(cause),
        };
        if version.status {
            object.remove("status");
        }
        self.drop_namespace(&mut object);
        set_generation(&mut object, 1);
        let mut causes = metadata::check_new(object.get("metadata"), self.namespaced);
        let warnings = metadata::warnings(object.get("metadata"), None);
        let object = Value::Object(object);
        causes.extend(structure::check(&version.node, &object, None, "", Asks::All));
        causes.extend(scale(version.scale.as_ref(), &object, true));
        causes.extend(embedded(&version.node, &object));
        causes.extend(lists::check(&version.node, &object));
        conclude(version, object, None, Asks::All, causes, unknown, warnings)
    }

    /// Another version of an object that is there. Its status stays as it is, where that is written
    /// apart.
    pub fn update(&self, old: &Value, new: &Value) -> Outcome {
        let ((version, mut object, unknown), before) = match self.receive_both(old, new) {
            Ok(received) => received,
            Err(cause) => return Outcome::refused(cause),
        };
        if version.status {
            match before.get("status") {
                Some(status) => object.insert("status".to_owned(), status.clone()),
                None => object.remove("status"),
            };
        }
        self.drop_namespace(&mut object);
        let generation = generation(&before);
        let changed = changed(&object, &before);
        set_generation(&mut object, if changed { generation + 1 } else { generation });
        inherit(&mut object, &before);
        let mut causes = metadata::check_change(object.get("metadata"), before.get("metadata"));
        let mut warnings = metadata::warnings(object.get("metadata"), before.get("metadata"));
        let object = Value::Object(object);
        let asks = self.asks();
        causes.extend(structure::check(&version.node, &object, Some(&before), "", asks));
        causes.extend(scale(version.scale.as_ref(), &object, true));
        causes.extend(embedded(&version.node, &object));
        causes.extend(self.new_lists(version, &before, &object));
        warnings.sort();
        conclude(version, object, Some(&before), asks, causes, unknown, warnings)
    }

    /// Another status of an object that is there; everything else that was sent is ignored.
    pub fn update_status(&self, old: &Value, new: &Value) -> Outcome {
        let ((version, mut object, unknown), before) = match self.receive_both(old, new) {
            Ok(received) => received,
            Err(cause) => return Outcome::refused(cause),
        };
        if !version.status {
            let message = "the server could not find the requested resource";
            return Outcome::refused(Cause::malformed("", message));
        }
        let status = object.remove("status");
        let mut object = before.as_ref().clone();
        if let Value::Object(object) = &mut object {
            match status {
                Some(status) => object.insert("status".to_owned(), status),
                None => object.remove("status"),
            };
        }
        let mut causes = metadata::check_change(object.get("metadata"), before.get("metadata"));
        if let (Some(node), Some(status)) =
            (version.node.properties.get("status"), object.get("status"))
        {
            let before = before.get("status");
            causes.extend(structure::check(node, status, before, "status", self.asks()));
        }
        causes.extend(scale(version.scale.as_ref(), &object, false));
        causes.extend(self.new_lists(version, &before, &object));
        conclude(version, object, Some(&before), self.asks(), causes, unknown, Vec::new())
    }

    /// Lists that were wrong already may stay so.
    fn new_lists(&self, version: &Version, before: &Value, object: &Value) -> Vec<Cause> {
        if self.trusts || lists::check(&version.node, before).is_empty() {
            lists::check(&version.node, object)
        } else {
            Vec::new()
        }
    }

    fn asks(&self) -> Asks {
        if self.trusts { Asks::WhatChanged } else { Asks::All }
    }

    /// Whether its objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.namespaced
    }

    /// What lives in no namespace is written without one, whatever it says of itself.
    fn drop_namespace(&self, object: &mut Map<String, Value>) {
        if !self.namespaced
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            metadata.remove("namespace");
        }
    }

    /// Decoded as the server decodes: pruned, defaulted, with metadata that is one.
    fn receive(&self, object: &Value) -> Result<Received<'_>, Cause> {
        let version = self.version_of(object)?;
        if depth(object) > DEPTH_MAX {
            let message = format!("exceeded max depth: nested more than {DEPTH_MAX} levels");
            return Err(Cause::malformed("", message));
        }
        let mut object = object.clone();
        let mut unknown = prune::prune(&version.node, &mut object);
        prune::drop_nulls(Some(&version.node), &mut object);
        let Value::Object(mut members) = object else {
            return Err(Cause::malformed("", "expected an object"));
        };
        unknown.extend(metadata::coerce(&mut members).map_err(|cause| {
            let version = members.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let version = version.rsplit('/').next().unwrap_or_default();
            let (kind, message) = (&self.kind, cause.message);
            let message =
                format!("{kind} in version {version:?} cannot be handled as a {kind}: {message}");
            Cause { message, ..cause }
        })?);
        unknown.sort();
        let mut object = Value::Object(members);
        prune::fill(&version.node, &mut object);
        match object {
            Value::Object(members) => Ok((version, members, unknown)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(Cause::malformed("", "expected an object")),
        }
    }

    /// What is sent, and what is stored: that is read with the same schema.
    fn receive_both<'o>(
        &self,
        old: &'o Value,
        new: &Value,
    ) -> Result<(Received<'_>, Cow<'o, Value>), Cause> {
        let received = self.receive(new)?;
        if self.trusts && old.is_object() && old.get("apiVersion") == new.get("apiVersion") {
            return Ok((received, Cow::Borrowed(old)));
        }
        let mut old = old.clone();
        // An object is read in the version that is asked for.
        if let Some(version) = new.get("apiVersion")
            && let Some(members) = old.as_object_mut()
        {
            members.insert("apiVersion".to_owned(), version.clone());
        }
        let (_, old, _) = self.receive(&old)?;
        Ok((received, Cow::Owned(Value::Object(old))))
    }

    fn version_of(&self, object: &Value) -> Result<&Version, Cause> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        if !object.is_object() {
            return Err(Cause::malformed("", "expected an object"));
        }
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if kind.is_empty() {
            return Err(Cause::malformed("kind", "Object 'Kind' is missing"));
        }
        if api_version.is_empty() {
            return Err(Cause::malformed("apiVersion", "Object 'apiVersion' is missing"));
        }
        let wrong = |field: &str, found: &str, must: &str| {
            let value = Value::String(found.to_owned());
            Cause::invalid(field, &value, &format!("must be {must}"))
        };
        if kind != self.kind {
            return Err(wrong("kind", kind, &self.kind));
        }
        let known = api_version.split_once('/').filter(|(group, _)| *group == self.group);
        known.and_then(|(_, version)| self.versions.get(version)).ok_or_else(|| {
            let served: Vec<String> =
                self.versions.keys().map(|it| format!("{}/{it}", self.group)).collect();
            wrong("apiVersion", api_version, &served.join(" or "))
        })
    }
}

/// The rules, where it makes sense to ask them, and the end.
fn conclude(
    version: &Version,
    object: Value,
    old: Option<&Value>,
    asks: Asks,
    mut causes: Vec<Cause>,
    unknown: Vec<String>,
    mut warnings: Vec<String>,
) -> Outcome {
    if version.node.rules_within {
        if causes.iter().any(Cause::blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            causes.push(Cause::invalid(NO_FIELD, &Value::Null, detail));
        } else {
            let (broken, forgiven) = rules::check(&version.node, &object, old, asks);
            causes.extend(broken);
            warnings.extend(forgiven.iter().map(ToString::to_string));
        }
    }
    let verdict = if causes.is_empty() { Ok(go::stored(object)) } else { Err(causes) };
    Outcome { verdict, unknown, warnings }
}

/// Whole objects inside of objects need a type and sound metadata.
fn embedded(node: &Node, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    embedded_below(node, object, place::Place::Root, &mut causes);
    causes
}

fn embedded_below(node: &Node, value: &Value, place: place::Place<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(members) => {
            if node.embedded {
                for field in ["apiVersion", "kind"] {
                    if members.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                        let field = place::Place::Member(&place, field).field();
                        causes.push(Cause::required(field, ""));
                    }
                }
            }
            for (key, value) in members {
                if let Some(node) = node.properties.get(key) {
                    embedded_below(node, value, place::Place::Member(&place, key), causes);
                } else if let Some(node) = node.member(key) {
                    embedded_below(node, value, place::Place::Key(&place, key), causes);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(node) = &node.items {
                    embedded_below(node, item, place::Place::Item(&place, index), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the scale subresource reads must be readable.
fn scale(
    scale: Option<&CustomResourceSubresourceScale>,
    object: &Value,
    with_spec: bool,
) -> Vec<Cause> {
    let Some(scale) = scale else { return Vec::new() };
    let paths = [(with_spec, &scale.spec_replicas_path), (true, &scale.status_replicas_path)];
    let mut causes = Vec::new();
    for (_, path) in paths.into_iter().filter(|(asked, _)| *asked) {
        let (number, detail) = match replicas(path, object) {
            Err(detail) => (0, detail),
            Ok(Some(number)) if number < 0 => {
                (number, "should be a non-negative integer".to_owned())
            }
            Ok(Some(number)) if number > i64::from(i32::MAX) => {
                (number, format!("should be less than or equal to {}", i32::MAX))
            }
            Ok(Some(_) | None) => continue,
        };
        causes.push(Cause::invalid(path.clone(), &Value::from(number), &detail));
    }
    causes
}

fn replicas(path: &str, object: &Value) -> Result<Option<i64>, String> {
    let mut value = object;
    let mut walked = String::new();
    for name in path.trim_start_matches('.').split('.') {
        walked = format!("{walked}.{name}");
        let Value::Object(members) = value else {
            return Err(go::unexpected(&walked, value, "map[string]interface{}"));
        };
        match members.get(name) {
            Some(below) => value = below,
            None => return Ok(None),
        }
    }
    value.as_i64().map(Some).ok_or_else(|| go::unexpected(&walked, value, "int64"))
}

/// Whether anything is other than it was, beside metadata.
fn changed(object: &Map<String, Value>, before: &Value) -> bool {
    let none = Map::new();
    let before = before.as_object().unwrap_or(&none);
    let without = |all: &Map<String, Value>| all.len() - usize::from(all.contains_key("metadata"));
    without(object) != without(before)
        || object.iter().any(|(key, it)| key != "metadata" && before.get(key) != Some(it))
}

fn generation(object: &Value) -> i64 {
    let stored = object.get("metadata").and_then(|it| it.get("generation"));
    stored.and_then(Value::as_i64).unwrap_or(1)
}

fn set_generation(object: &mut Map<String, Value>, generation: i64) {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(metadata) = metadata {
        metadata.insert("generation".to_owned(), Value::from(generation));
    }
}

/// What a client need not send again, because the server knows it.
fn inherit(object: &mut Map<String, Value>, before: &Value) {
    let Some(Value::Object(before)) = before.get("metadata") else { return };
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    for field in ["uid", "namespace", "creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = before.get(field)
            && !metadata.contains_key(field)
        {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
}

/// Without recursion, so that it can be asked of anything.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if deepest > DEPTH_MAX {
            return deepest;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|it| (it, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}
