//! What may an object of this kind look like?
//!
//! `CustomResourceDefinition → a tree of nodes`, with patterns and rules compiled once
//!
//! The CRD's own structs say what its author wrote; a node says what the server makes of it: no option
//! that is absent and false at once, no format that the server does not know.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::{CompileError, format::Format, pattern, rule::Rule};

/// The server takes no schema that is deeper than some dozens of levels; ours have twelve.
const DEPTH_MAX: usize = 64;

/// One place of the schema, and everything below it.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a schema has that many switches")]
pub struct Node {
    /// Empty where anything may stand; `integer,string` for an int-or-string.
    pub(crate) types: Vec<&'static str>,
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    pub(crate) format: Option<Format>,
    pub(crate) default: Option<Value>,
    pub(crate) choices: Vec<Value>,
    pub(crate) pattern: Option<(String, Regex)>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
    pub(crate) list: ListKind,
    pub(crate) preserves_unknown: bool,
    /// A whole object with `apiVersion`, `kind` and `metadata` of its own.
    pub(crate) embedded: bool,
    pub(crate) rules: Vec<Rule>,
    /// Some rule, here or below.
    pub(crate) rules_within: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    pub(crate) exclusive: bool,
}

/// What may stand beside the properties that are named.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    #[default]
    Unnamed,
    Forbidden,
    Anything,
    Like(Box<Node>),
}

/// What makes two items of a list the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

impl Node {
    pub(crate) fn compile(props: &JSONSchemaProps, path: &str) -> Result<Self, CompileError> {
        compile(props, path, 0)
    }

    /// The node of a member of an object.
    pub(crate) fn member(&self, key: &str) -> Option<&Node> {
        self.properties.get(key).or(match &self.additional {
            Additional::Like(node) => Some(node),
            Additional::Unnamed | Additional::Forbidden | Additional::Anything => None,
        })
    }

    /// Whether members that are not named are kept.
    pub(crate) fn has_additional(&self) -> bool {
        match &self.additional {
            Additional::Anything | Additional::Like(_) => true,
            // `false` is a restriction that the server's structural form does not know.
            Additional::Unnamed | Additional::Forbidden => false,
        }
    }

    /// The name by which rules report a bad value.
    pub(crate) fn type_name(&self) -> &'static str {
        if self.int_or_string { "" } else { self.types.first().copied().unwrap_or("") }
    }

    /// Every node with its path: members by name, `[*]` for items and `[key]` for what a map holds.
    pub fn walk<'n>(&'n self, visit: &mut impl FnMut(&str, &'n Node)) {
        self.walk_from("", visit);
    }

    fn walk_from<'n>(&'n self, path: &str, visit: &mut impl FnMut(&str, &'n Node)) {
        visit(path, self);
        for (name, node) in &self.properties {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            node.walk_from(&below, visit);
        }
        if let Some(items) = &self.items {
            items.walk_from(&format!("{path}[*]"), visit);
        }
        if let Additional::Like(node) = &self.additional {
            node.walk_from(&format!("{path}[key]"), visit);
        }
    }

    /// Those that are below are ready.
    fn any_rules(&self) -> bool {
        let like = match &self.additional {
            Additional::Like(node) => Some(&**node),
            Additional::Unnamed | Additional::Forbidden | Additional::Anything => None,
        };
        let below = self.properties.values().chain(self.items.as_deref()).chain(like);
        !self.rules.is_empty() || below.chain(&self.all_of).any(|it| it.rules_within)
    }
}

fn compile(props: &JSONSchemaProps, path: &str, depth: usize) -> Result<Node, CompileError> {
    let wrong = |message: String| CompileError { path: path.to_owned(), message };
    if depth > DEPTH_MAX {
        return Err(wrong(format!("the schema is deeper than {DEPTH_MAX} levels")));
    }
    if props.ref_path.is_some() {
        return Err(wrong("$ref is not supported".to_owned()));
    }
    let below = |props: &JSONSchemaProps, path: &str| compile(props, path, depth + 1);
    let several = |list: &Option<Vec<JSONSchemaProps>>| {
        list.iter().flatten().map(|it| below(it, path)).collect::<Result<Vec<_>, _>>()
    };
    let int_or_string = props.x_kubernetes_int_or_string == Some(true);
    let types = if int_or_string {
        vec!["integer", "string"]
    } else {
        match props.type_.as_deref() {
            None | Some("") => vec![],
            Some(name) => {
                let known = ["object", "array", "string", "integer", "number", "boolean"];
                let name = known.iter().find(|it| **it == name);
                vec![*name.ok_or_else(|| wrong(format!("{:?} is no type", props.type_)))?]
            }
        }
    };
    let pattern = match props.pattern.as_deref() {
        None | Some("") => None,
        Some(text) => {
            let regex = pattern::compile(text).map_err(|it| wrong(format!("pattern: {it}")))?;
            Some((text.to_owned(), regex))
        }
    };
    let bound = |value: Option<f64>, exclusive: Option<bool>| {
        value.map(|value| Bound { value, exclusive: exclusive == Some(true) })
    };
    let mut properties = BTreeMap::new();
    for (name, member) in props.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        properties.insert(name.clone(), below(member, &path)?);
    }
    let additional = match &props.additional_properties {
        None => Additional::Unnamed,
        Some(JSONSchemaPropsOrBool::Bool(false)) => Additional::Forbidden,
        Some(JSONSchemaPropsOrBool::Bool(true)) => Additional::Anything,
        Some(JSONSchemaPropsOrBool::Schema(like)) => {
            Additional::Like(Box::new(below(like, &format!("{path}[key]"))?))
        }
    };
    let items = match &props.items {
        None => None,
        Some(JSONSchemaPropsOrArray::Schema(item)) => {
            Some(Box::new(below(item, &format!("{path}[*]"))?))
        }
        Some(JSONSchemaPropsOrArray::Schemas(_)) => {
            return Err(wrong("items must be one schema".to_owned()));
        }
    };
    let list = match props.x_kubernetes_list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(props.x_kubernetes_list_map_keys.clone().unwrap_or_default()),
        Some(_) | None => ListKind::Atomic,
    };
    let mut node = Node {
        format: Format::of(&types, props.format.as_deref()),
        types,
        int_or_string,
        nullable: props.nullable == Some(true),
        default: props.default.as_ref().map(|it| it.0.clone()),
        choices: props.enum_.iter().flatten().map(|it| it.0.clone()).collect(),
        pattern,
        min_length: props.min_length,
        max_length: props.max_length,
        minimum: bound(props.minimum, props.exclusive_minimum),
        maximum: bound(props.maximum, props.exclusive_maximum),
        multiple_of: props.multiple_of,
        min_items: props.min_items,
        max_items: props.max_items,
        unique_items: props.unique_items == Some(true),
        min_properties: props.min_properties,
        max_properties: props.max_properties,
        required: props.required.clone().unwrap_or_default(),
        properties,
        additional,
        items,
        all_of: several(&props.all_of)?,
        any_of: several(&props.any_of)?,
        one_of: several(&props.one_of)?,
        not: props.not.as_ref().map(|it| below(it, path).map(Box::new)).transpose()?,
        list,
        preserves_unknown: props.x_kubernetes_preserve_unknown_fields == Some(true),
        embedded: props.x_kubernetes_embedded_resource == Some(true),
        rules: Vec::new(),
        rules_within: false,
    };
    let mut rules = Vec::new();
    for rule in props.x_kubernetes_validations.iter().flatten() {
        if !rule.rule.trim().is_empty() {
            rules.push(Rule::compile(rule).map_err(wrong)?);
        }
    }
    node.rules = rules;
    node.rules_within = node.any_rules();
    Ok(node)
}
