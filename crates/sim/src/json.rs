//! What does this JSON say there?

use jiff::Timestamp;
use serde_json::{Map, Value};

/// What stands there, `null` being nothing.
pub(crate) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let mut found = value;
    for step in path {
        found = found.get(*step)?;
    }
    Some(found).filter(|it| !it.is_null())
}

/// What was found and what was expected, as whoever wrote the file knows it: nobody of them knows how numbers are kept,
/// and what our types are called.
pub(crate) fn in_words(told: &str) -> String {
    let whole = |most: u64| format!("expected a whole number from 0 to {most}");
    let told = told.replace("expected u8", &whole(u8::MAX.into()));
    let told = told.replace("expected u32", &whole(u32::MAX.into()));
    let told = told.replace("expected u64", &whole(u64::MAX));
    match told.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a mapping of fields to values"),
        None => told,
    }
}

/// Empty where there is no text.
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn whole(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

pub(crate) fn items<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn members<'v>(
    value: &'v Value,
    path: &[&str],
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    at(value, path).and_then(Value::as_object).into_iter().flatten()
}

pub(crate) fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    text(value, path).parse().ok()
}

/// Puts it there, making the objects on the way.
pub(crate) fn set(value: &mut Value, path: &[&str], new: Value) {
    let [way @ .., last] = path else { return };
    let mut place = value;
    for step in way {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else { return };
        place = fields.entry(*step).or_insert_with(|| Value::Object(Map::new()));
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Value::Object(fields) = place {
        fields.insert((*last).to_owned(), new);
    }
}

/// Puts it there only where nothing is.
pub(crate) fn set_default(value: &mut Value, path: &[&str], new: Value) {
    if at(value, path).is_none() {
        set(value, path, new);
    }
}

pub(crate) fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let [way @ .., last] = path else { return None };
    let mut place = value;
    for step in way {
        place = place.get_mut(*step)?;
    }
    place.as_object_mut()?.remove(*last)
}

/// As Kubernetes writes times: whole seconds.
pub(crate) fn stamp(now: Timestamp) -> Value {
    Value::String(whole_second(now).to_string())
}

pub(crate) fn whole_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// RFC 7386: objects are merged, `null` takes away, everything else takes the place of what was there.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table of RFC 7386, appendix A.
    #[test]
    fn patches_merge_as_the_rfc_says() {
        for (original, patch, result) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            let mut merged = original.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, result, "{original} with {patch}");
        }
    }
}
