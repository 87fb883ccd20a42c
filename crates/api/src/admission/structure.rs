//! Does the object have the shape that the schema asks for?
//!
//! `schema × object → causes`
//!
//! A port of what kube-openapi's validator answers, message by message; its quirks are kept, because
//! people read them every day. What did not change since the last write is forgiven.

use serde_json::{Map, Number, Value};

use super::{
    cause::Cause,
    correlate::{Before, same},
    format::Check,
    go,
    place::Place,
    rules::Asks,
    schema::{Additional, Bound, Node},
};

/// All that is wrong with the shape. `base` is what the paths in causes begin with: nothing, or
/// `status` where only that part is written.
pub(crate) fn check(
    node: &Node,
    value: &Value,
    before: Before<'_>,
    base: &str,
    asks: Asks,
) -> Vec<Cause> {
    let walk = Walk { base, asks };
    walk.ratcheted(node, value, before, Place::Root).causes
}

struct Walk<'b> {
    base: &'b str,
    /// Of what changed only, what did not had its shape before.
    asks: Asks,
}

/// What was found, and how much was right: the best of several alternatives is the one that is told.
#[derive(Debug, Default)]
struct Found {
    causes: Vec<Cause>,
    matches: usize,
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.causes.extend(other.causes);
        self.matches += other.matches;
    }
}

impl Walk<'_> {
    /// The field of a cause at this place.
    fn field(&self, place: Place<'_>) -> String {
        self.under(&place.to_string())
    }

    fn under(&self, path: &str) -> String {
        match (self.base, path) {
            ("", "") => super::NO_FIELD.to_owned(),
            ("", path) => path.to_owned(),
            (base, "") => base.to_owned(),
            (base, path) => format!("{base}.{path}"),
        }
    }

    /// A complaint that belongs to no field, only to the whole.
    fn unplaced(&self, detail: &str) -> Cause {
        Cause::invalid(self.under(""), &Value::String(String::new()), detail)
    }

    /// What equals its old value is not held against anybody.
    fn ratcheted(&self, node: &Node, value: &Value, before: Before<'_>, place: Place<'_>) -> Found {
        if self.asks == Asks::WhatChanged && before == Some(value) {
            return Found::default();
        }
        let mut found = self.node(node, value, before, place);
        if !found.causes.is_empty() && before.is_some_and(|old| same(node, value, old)) {
            found.causes.clear();
        }
        found
    }

    fn node(&self, node: &Node, value: &Value, before: Before<'_>, place: Place<'_>) -> Found {
        let mut found = Found { causes: Vec::new(), matches: 1 };
        match self.wrong_type(node, value, place) {
            Some(cause) => found.causes.push(cause),
            None => found.matches += 1,
        }
        if !value.is_null() {
            self.alternatives(node, value, before, place, &mut found);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
            Value::String(text) => {
                found.causes.extend(self.text(node, text, place));
                if let Some(format) = &node.format
                    && format.check != Check::Number
                {
                    found.matches += 1;
                    if !format.accepts(text) {
                        found.causes.push(self.no_type(&format.name, text, place));
                    }
                }
            }
            Value::Number(number) => self.number(node, number, place, &mut found),
            Value::Array(items) => self.list(node, items, before, place, &mut found),
        }
        found.causes.extend(self.choice(node, value, place));
        if let Value::Object(members) = value {
            self.object(node, members, before, place, &mut found);
        }
        found
    }

    fn no_type(&self, wanted: &str, found: &str, place: Place<'_>) -> Cause {
        let detail = format!("{place} in body must be of type {wanted}: {}", go::quote(found));
        Cause::type_invalid(self.field(place), found, &detail)
    }

    fn wrong_type(&self, node: &Node, value: &Value, place: Place<'_>) -> Option<Cause> {
        if node.types.is_empty() && node.format.is_none() {
            return None;
        }
        let wanted = || node.types.join(",");
        let format = node.format.as_ref().map_or("", |it| it.name.as_str());
        let (found, found_format) = match value {
            Value::Null => {
                let nameless = node.types.is_empty() || node.nullable;
                return (!nameless).then(|| self.no_type(&wanted(), "null", place));
            }
            Value::Bool(_) => ("boolean", ""),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
            Value::Number(number) if number.is_i64() => ("integer", "int64"),
            Value::Number(_) => ("number", "float64"),
        };
        let whole = match value {
            Value::Number(number) => number.as_f64().is_some_and(whole_number),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => false,
        };
        let numeric = node.types.contains(&"number") || node.types.contains(&"integer");
        let fits = node.types.contains(&found)
            || found == "number" && whole && node.types.contains(&"integer")
            || found == "integer" && node.types.contains(&"number");
        let text_or_list = matches!(found, "string" | "array");
        if !text_or_list && !format.is_empty() && !fits && found_format != format {
            return Some(self.no_type(format, found_format, place));
        }
        // The server leaves these to the format alone, and a list has none.
        if !numeric && !format.is_empty() && text_or_list {
            return None;
        }
        (!fits && !node.types.is_empty()).then(|| self.no_type(&wanted(), found, place))
    }

    fn text(&self, node: &Node, text: &str, place: Place<'_>) -> Option<Cause> {
        // Runes, as the server counts, whatever its message says.
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let value = || Value::String(text.to_owned());
        if let Some(most) = node.max_length
            && length() > most
        {
            return Some(Cause::too_long(self.field(place), most));
        }
        if let Some(least) = node.min_length
            && length() < least
        {
            let detail = format!("{place} in body should be at least {least} chars long");
            return Some(Cause::invalid(self.field(place), &value(), &detail));
        }
        if let Some((pattern, regex)) = &node.pattern
            && !regex.is_match(text)
        {
            let detail = format!("{place} in body should match '{pattern}'");
            return Some(Cause::invalid(self.field(place), &value(), &detail));
        }
        None
    }

    fn number(&self, node: &Node, number: &Number, place: Place<'_>, found: &mut Found) {
        found.matches += 1;
        let float = number.as_f64().unwrap_or(f64::NAN);
        let format = node.format.as_ref().map(|it| it.name.as_str());
        if let [only] = node.types.as_slice() {
            let in_range = match (*only, format) {
                ("integer", Some("int32")) => {
                    whole_number(float) && (-2_147_483_648.0..=2_147_483_647.0).contains(&float)
                }
                ("integer", _) => {
                    number.is_i64()
                        || whole_number(float)
                            && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
                                .contains(&float)
                }
                ("number", Some("float")) => float.abs() <= f64::from(f32::MAX),
                _ => true,
            };
            if !in_range {
                let detail = match format {
                    Some(format) => {
                        format!(
                            "Checked value must be of type {only} with format {format} in {place}"
                        )
                    }
                    None => {
                        format!("Checked value must be of type {only} (default format) in {place}")
                    }
                };
                found.causes.push(self.unplaced(&detail));
            }
        }
        let value = || Value::Number(number.clone());
        let shown = |bound: f64| bound_text(number, bound);
        if let Some(factor) = node.multiple_of
            && factor > 0.0
            && !whole_number(float / factor)
        {
            let detail = format!("{place} in body should be a multiple of {}", shown(factor));
            found.causes.push(Cause::invalid(self.field(place), &value(), &detail));
        }
        if let Some(Bound { value: least, exclusive }) = node.minimum
            && (beside(number, least, |a, b| a < b)
                || exclusive && beside(number, least, |a, b| a <= b))
        {
            let than = if exclusive { "greater than" } else { "greater than or equal to" };
            let detail = format!("{place} in body should be {than} {}", shown(least));
            found.causes.push(Cause::invalid(self.field(place), &value(), &detail));
        }
        if let Some(Bound { value: most, exclusive }) = node.maximum
            && (beside(number, most, |a, b| a > b)
                || exclusive && beside(number, most, |a, b| a >= b))
        {
            let than = if exclusive { "less than" } else { "less than or equal to" };
            let detail = format!("{place} in body should be {than} {}", shown(most));
            found.causes.push(Cause::invalid(self.field(place), &value(), &detail));
        }
    }

    fn list(
        &self,
        node: &Node,
        items: &[Value],
        before: Before<'_>,
        place: Place<'_>,
        found: &mut Found,
    ) {
        found.matches += 1;
        if let Some(schema) = &node.items {
            let olds = super::correlate::Items::of(node, before);
            for (index, item) in items.iter().enumerate() {
                let old = olds.before(item);
                found.merge(self.ratcheted(schema, item, old, Place::Item(&place, index)));
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.min_items
            && size < least
        {
            let detail = format!("{place} in body should have at least {least} items");
            found.causes.push(Cause::invalid(self.field(place), &Value::from(size), &detail));
        }
        if let Some(most) = node.max_items
            && size > most
        {
            found.causes.push(Cause::too_many(self.field(place), items.len(), most));
        }
        if node.unique_items {
            let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            if texts.windows(2).any(|it| it[0] == it[1]) {
                let detail = format!("{place} in body shouldn't contain duplicates");
                let empty = Value::String(String::new());
                found.causes.push(Cause::invalid(self.field(place), &empty, &detail));
            }
        }
    }

    fn choice(&self, node: &Node, value: &Value, place: Place<'_>) -> Option<Cause> {
        let equal = |it: &Value| match (it, value) {
            (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
            _ => it == value,
        };
        let known = node.choices.is_empty() || node.choices.iter().any(equal);
        (!known).then(|| Cause::not_supported(self.field(place), value, &node.choices))
    }

    fn object(
        &self,
        node: &Node,
        members: &Map<String, Value>,
        before: Before<'_>,
        place: Place<'_>,
        found: &mut Found,
    ) {
        found.matches += 1;
        let size = i64::try_from(members.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.min_properties
            && size < least
        {
            let detail = format!("{place} in body should have at least {least} properties");
            found.causes.push(Cause::invalid(self.field(place), &Value::from(size), &detail));
        }
        if let Some(most) = node.max_properties
            && size > most
        {
            found.causes.push(Cause::too_many(self.field(place), members.len(), most));
        }
        let before_of = |key: &str| {
            // Both are read in the version that is asked for, so these never change.
            let type_meta = matches!(place, Place::Root) && matches!(key, "apiVersion" | "kind");
            if type_meta { None } else { before.and_then(|it| it.get(key)) }
        };
        match &node.additional {
            Additional::Like(schema) => {
                for (key, value) in members {
                    if !node.properties.contains_key(key) {
                        let at = Place::Member(&place, key);
                        found.merge(self.ratcheted(schema, value, before_of(key), at));
                    }
                }
            }
            Additional::Forbidden => {
                for key in members.keys().filter(|it| !node.properties.contains_key(*it)) {
                    let detail = format!("{place}.{key} in body is a forbidden property");
                    let empty = Value::String(String::new());
                    found.causes.push(Cause::invalid(self.field(place), &empty, &detail));
                }
            }
            Additional::Unnamed | Additional::Anything => {}
        }
        for (name, schema) in &node.properties {
            if let Some(value) = members.get(name) {
                let at = Place::Member(&place, name);
                found.merge(self.ratcheted(schema, value, before_of(name), at));
            }
        }
        for name in &node.required {
            if !members.contains_key(name) {
                let field = self.field(Place::Member(&place, name));
                found.causes.push(Cause::required(field, ""));
            }
        }
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`.
    fn alternatives(
        &self,
        node: &Node,
        value: &Value,
        before: Before<'_>,
        place: Place<'_>,
        found: &mut Found,
    ) {
        found.matches += 1;
        // Nearly always all is well, and nobody asks for the name.
        let name = || go::quote(&place.to_string());
        // Of alternatives it counts how much is right, changed or not.
        let whole = Walk { base: self.base, asks: Asks::All };
        let try_one = |it: &Node| whole.node(it, value, before, place);
        let best = |tried: Vec<Found>| {
            // The first of those that got farthest.
            tried.into_iter().reduce(|best, it| if it.matches > best.matches { it } else { best })
        };
        if !node.any_of.is_empty() {
            let tried: Vec<Found> = node.any_of.iter().map(try_one).collect();
            if tried.iter().all(|it| !it.causes.is_empty()) {
                let detail = format!("{} must validate at least one schema (anyOf)", name());
                found.causes.push(self.unplaced(&detail));
                found.causes.extend(best(tried).into_iter().flat_map(|it| it.causes));
            }
        }
        if !node.one_of.is_empty() {
            let tried: Vec<Found> = node.one_of.iter().map(try_one).collect();
            let valid = tried.iter().filter(|it| it.causes.is_empty()).count();
            if valid != 1 {
                let many = match valid {
                    0 => "Found none valid".to_owned(),
                    several => format!("Found {several} valid alternatives"),
                };
                let name = name();
                let detail =
                    format!("{name} must validate one and only one schema (oneOf). {many}");
                found.causes.push(self.unplaced(&detail));
                if valid == 0 {
                    found.causes.extend(best(tried).into_iter().flat_map(|it| it.causes));
                }
            }
        }
        if !node.all_of.is_empty() {
            let tried: Vec<Found> = node.all_of.iter().map(try_one).collect();
            let valid = tried.iter().filter(|it| it.causes.is_empty()).count();
            let all = valid == tried.len();
            found.causes.extend(tried.into_iter().flat_map(|it| it.causes));
            if !all {
                let addition = if valid == 0 { ". None validated" } else { "" };
                let name = name();
                let detail = format!("{name} must validate all the schemas (allOf){addition}");
                found.causes.push(self.unplaced(&detail));
            }
        }
        if let Some(not) = &node.not
            && try_one(not).causes.is_empty()
        {
            let detail = format!("{} must not validate the schema (not)", name());
            found.causes.push(self.unplaced(&detail));
        }
    }
}

/// As far as JSON numbers are exact, which is where the server stops counting.
fn whole_number(float: f64) -> bool {
    float.abs() <= 9_007_199_254_740_991.0 && (float - float.trunc()).abs() < 1e-9
}

/// How a number stands to a bound. Beside a whole number the server takes the bound as one, too.
fn beside(number: &Number, bound: f64, stands: impl Fn(f64, f64) -> bool) -> bool {
    let bound = if number.is_i64() { bound.trunc() } else { bound };
    stands(number.as_f64().unwrap_or(f64::NAN), bound)
}

/// A bound beside a whole number is told as one.
fn bound_text(number: &Number, bound: f64) -> String {
    if number.is_i64() { go::float_text(bound.trunc()) } else { go::float_text(bound) }
}
