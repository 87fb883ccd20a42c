//! Which kinds do we serve, and how are they declared to the API server?
//!
//! `wire structs + their rules → CustomResourceDefinition`
//!
//! A kind's schema is derived from the very structs it is read into, so there is no second one to
//! keep in step. What the derive cannot know is put right in [`finish`], once for all kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

pub mod digest;
pub mod print;
pub mod schema;

/// One kind in one group.
#[derive(Debug, Clone, Copy)]
pub struct Crd {
    /// `<plural>.<group>`, as the API server calls it.
    pub name: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is someone else's where they are installed: then we never bring it along.
    pub standalone_only: bool,
    /// The whole definition, finished.
    pub definition: fn() -> CustomResourceDefinition,
}

/// Every kind that this version serves, ours first, in the order of their names.
pub fn all() -> Vec<Crd> {
    let mut all = vec![
        crate::awsimage::CRD,
        crate::disruptionledger::CRD,
        crate::ec2nodeclass::CRD,
        crate::ec2nodeclass::KARPENTER_CRD,
        crate::imagepolicy::CRD,
        crate::imagequarantine::CRD,
        crate::nodeclaim::CRD,
        crate::nodedisruptionbudget::CRD,
        crate::nodepool::CRD,
        crate::replacement::CRD,
    ];
    all.sort_by_key(|it| (it.standalone_only, it.name));
    all
}

/// Formats that the API server checks or that clients need. schemars knows more, such as `uint32`,
/// which the API server would only warn about.
const FORMATS: [&str; 7] = ["int32", "int64", "float", "double", "date-time", "duration", "byte"];

/// What every definition needs and no derive writes: the fields that all objects have, a list kind,
/// and none of schemars' own habits.
///
/// - No field is nullable: `null` is "not said", as everywhere in Kubernetes.
/// - A default of null or of an empty list is what an absent field means anyway, so it is none.
#[must_use]
pub fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    for schema in crd.spec.versions.iter_mut().filter_map(schema_mut) {
        each(schema, &mut |it| {
            it.nullable = None;
            it.title = None;
            // A comment is broken where the source ends; `kubectl explain` breaks lines itself.
            if let Some(text) = &mut it.description {
                *text = text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n\n");
            }
            let empty = |it: &Value| it.is_null() || it.as_array().is_some_and(Vec::is_empty);
            if it.default.as_ref().is_some_and(|it| empty(&it.0)) {
                it.default = None;
            }
            // kube's rewriter takes the types away, without which a number is as good as a list.
            if it.x_kubernetes_int_or_string == Some(true) {
                it.type_ = None;
                it.any_of = Some(vec![of_type("integer"), of_type("string")]);
            }
            if it.format.as_deref().is_some_and(|it| !FORMATS.contains(&it)) {
                it.format = None;
            }
            // schemars lets optional enums be null; we do not.
            if let Some(values) = &mut it.enum_ {
                values.retain(|it| !it.0.is_null());
            }
            if let Some(required) = &mut it.required {
                required.sort();
            }
        });
        with_object_fields(schema);
    }
    crd
}

/// `apiVersion`, `kind` and `metadata`, so that what reads only the definition knows them, too.
fn with_object_fields(schema: &mut JSONSchemaProps) {
    let properties = schema.properties.get_or_insert_default();
    for (name, type_, description) in [
        ("apiVersion", "string", Some("The group and version in which this object is written.")),
        ("kind", "string", Some("What sort of object this is.")),
        ("metadata", "object", None), // The API server describes it itself.
    ] {
        let description = description.map(str::to_owned);
        let field = JSONSchemaProps { description, ..of_type(type_) };
        properties.insert(name.to_owned(), field);
    }
}

fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(name.to_owned()), ..Default::default() }
}

/// The same kind in another group and version.
#[must_use]
pub fn in_group(
    mut crd: CustomResourceDefinition,
    group: &str,
    version: &str,
) -> CustomResourceDefinition {
    crd.metadata.name = Some(format!("{}.{group}", crd.spec.names.plural));
    group.clone_into(&mut crd.spec.group);
    for it in &mut crd.spec.versions {
        version.clone_into(&mut it.name);
    }
    crd
}

/// The same schema under several versions, of which the API server stores one. None is converted:
/// they differ by name alone.
#[must_use]
pub fn in_versions(
    mut crd: CustomResourceDefinition,
    versions: &[&str],
    stored: &str,
) -> CustomResourceDefinition {
    let Some(schema) = crd.spec.versions.pop() else { return crd };
    crd.spec.versions = versions
        .iter()
        .map(|name| CustomResourceDefinitionVersion {
            name: (*name).to_owned(),
            served: true,
            storage: *name == stored,
            ..schema.clone()
        })
        .collect();
    crd
}

/// The definition as people should see it: whole numbers as such, nothing that is empty.
pub fn to_value(crd: &CustomResourceDefinition) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(crd)?;
    whole_numbers(&mut value);
    Ok(value)
}

/// k8s-openapi has limits as floating point numbers, which print as `64.0`.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Below this every whole number is one as a float, too.
            let whole = |it: &f64| it.fract() == 0.0 && it.abs() < 9e15;
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()).filter(whole) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn schema_mut(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    version.schema.as_mut()?.open_api_v3_schema.as_mut()
}

/// Visits a schema and every schema inside it.
pub fn each(schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for it in schema.properties.iter_mut().flat_map(|it| it.values_mut()) {
        each(it, visit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(it)) => each(it, visit),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(|it| each(it, visit)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(it)) = &mut schema.additional_properties {
        each(it, visit);
    }
    for all in [&mut schema.any_of, &mut schema.one_of, &mut schema.all_of].into_iter().flatten() {
        for it in all {
            each(it, visit);
        }
    }
}
