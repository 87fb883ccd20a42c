//! Do two definitions say the same?
//!
//! `definition → one line per fact`, without descriptions
//!
//! What a definition says to the API server is a set of facts: this field is a string, that one has a
//! limit. As lines they are compared by comparing sets, and a difference names itself. So ours are
//! compared with Karpenter's own, of which the facts are kept here and the sentences are not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// What a definition says: where, and what. `v1 spec.weight maximum` → `100`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digest(BTreeMap<String, String>);

/// A fact that two definitions do not share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Where: version, field and keyword.
    pub place: String,
    /// What the first says, if anything.
    pub theirs: Option<String>,
    /// What the second says, if anything.
    pub ours: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, theirs, ours } = self;
        let shown = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
        write!(f, "{place}: {} → {}", shown(theirs), shown(ours))
    }
}

impl Digest {
    /// Of a `CustomResourceDefinition`. What it has no words for, such as its name's annotations, it
    /// leaves out; what is no definition has an empty digest.
    pub fn of(crd: &Value) -> Self {
        let mut this = Self::default();
        let spec = &crd["spec"];
        this.say("group", &spec["group"]);
        this.say("scope", &spec["scope"]);
        for (name, value) in spec["names"].as_object().into_iter().flatten() {
            this.say(&format!("names {name}"), value);
        }
        for version in spec["versions"].as_array().into_iter().flatten() {
            this.version(version);
        }
        this
    }

    /// Of a definition in YAML, as projects publish them.
    pub fn of_yaml(text: &str) -> Result<Self, String> {
        let crd: Value = serde_saphyr::from_str(text).map_err(|it| it.to_string())?;
        match Self::of(&crd) {
            digest if digest.0.is_empty() => Err("is no CustomResourceDefinition".to_owned()),
            digest => Ok(digest),
        }
    }

    /// From [`Self::to_text`]. Lines that begin with `#` are for people.
    pub fn from_text(text: &str) -> Self {
        let lines = text.lines().filter(|it| !it.starts_with('#'));
        Self(
            lines
                .filter_map(|it| it.split_once(" = "))
                .map(|(place, said)| (place.to_owned(), said.to_owned()))
                .collect(),
        )
    }

    /// One line per fact, in the order of their places.
    pub fn to_text(&self) -> String {
        self.0.iter().fold(String::new(), |all, (place, said)| all + place + " = " + said + "\n")
    }

    /// What the two do not share, seen from `theirs`.
    pub fn differences(theirs: &Self, ours: &Self) -> Vec<Difference> {
        let places: BTreeSet<&String> = theirs.0.keys().chain(ours.0.keys()).collect();
        places
            .into_iter()
            .filter(|it| theirs.0.get(*it) != ours.0.get(*it))
            .map(|place| Difference {
                place: place.clone(),
                theirs: theirs.0.get(place).cloned(),
                ours: ours.0.get(place).cloned(),
            })
            .collect()
    }

    fn say(&mut self, place: &str, value: &Value) {
        if !value.is_null() {
            self.0.insert(place.to_owned(), value.to_string());
        }
    }

    fn version(&mut self, version: &Value) {
        let name = version["name"].as_str().unwrap_or_default();
        for keyword in ["served", "storage", "deprecated", "subresources", "selectableFields"] {
            self.say(&format!("{name} {keyword}"), &version[keyword]);
        }
        let columns = version["additionalPrinterColumns"].as_array();
        for (at, column) in columns.into_iter().flatten().enumerate() {
            let mut column = column.clone();
            column.as_object_mut().map(|it| it.remove("description"));
            self.say(&format!("{name} column {at:02}"), &column);
        }
        self.schema(name, "", &version["schema"]["openAPIV3Schema"]);
    }

    fn schema(&mut self, version: &str, field: &str, schema: &Value) {
        let empty = Map::new();
        let here = format!("{version} {}", if field.is_empty() { "." } else { field });
        for (keyword, value) in schema.as_object().unwrap_or(&empty) {
            match keyword.as_str() {
                "description" => {}
                "properties" => {
                    for (name, schema) in value.as_object().unwrap_or(&empty) {
                        let inside = if field.is_empty() { "" } else { "." };
                        self.schema(version, &format!("{field}{inside}{name}"), schema);
                    }
                }
                "items" => self.schema(version, &format!("{field}[]"), value),
                "additionalProperties" if value.is_object() => {
                    self.schema(version, &format!("{field}{{}}"), value);
                }
                "x-kubernetes-validations" => {
                    for rule in value.as_array().into_iter().flatten() {
                        self.rule(&here, rule);
                    }
                }
                // Their order means nothing.
                "required" | "enum" => {
                    let mut words: Vec<String> =
                        value.as_array().into_iter().flatten().map(Value::to_string).collect();
                    words.sort();
                    self.0.insert(format!("{here} {keyword}"), words.join(" "));
                }
                _ => self.say(&format!("{here} {keyword}"), value),
            }
        }
    }

    /// By its message, which is what people know it by; spaces in the rule mean nothing.
    fn rule(&mut self, here: &str, rule: &Value) {
        let mut rest = rule.as_object().cloned().unwrap_or_default();
        let message = rest.remove("message").unwrap_or_default();
        if let Some(Value::String(text)) = rest.get_mut("rule") {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        self.say(&format!("{here} rule {message}"), &Value::Object(rest));
    }
}
