//! How is a field read out of an object?
//!
//! Only what some law needs, and by nobody else's code: what the product misreads must not be misread here
//! as well.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

pub(super) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key)).filter(|it| !it.is_null())
}

pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(object, path)?.as_str()
}

pub(super) fn number(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path)?.as_i64()
}

pub(super) fn flag(object: &Value, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    text(object, path)?.parse().ok()
}

pub(super) fn items<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    at(object, path).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"]).unwrap_or_default()
}

pub(super) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or_default()
}

pub(super) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    at(object, &["metadata", "labels"])?.as_object()
}

pub(super) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    labels(object)?.get(key)?.as_str()
}

pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    text(object, &["metadata", "annotations", key])
}

pub(super) fn deleting(object: &Value) -> Option<Timestamp> {
    time(object, &["metadata", "deletionTimestamp"])
}

/// Whether the condition of this type is true.
pub(super) fn condition(object: &Value, kind: &str) -> bool {
    items(object, &["status", "conditions"])
        .any(|it| text(it, &["type"]) == Some(kind) && text(it, &["status"]) == Some("True"))
}

/// The owner that would make it again: kind, name and UID.
pub(super) fn controller(object: &Value) -> Option<(&str, &str, &str)> {
    items(object, &["metadata", "ownerReferences"]).find(|it| flag(it, &["controller"])).map(|it| {
        let word = |key| text(it, &[key]).unwrap_or_default();
        (word("kind"), word("name"), word("uid"))
    })
}

/// `7d`, `36h`, `2w`, `1h30m`, `90s`. `None` for words such as `Never`.
pub(super) fn duration(written: &str) -> Option<SignedDuration> {
    let mut seconds = 0_i64;
    let mut digits = String::new();
    for it in written.chars() {
        if it.is_ascii_digit() {
            digits.push(it);
            continue;
        }
        let unit = match it {
            'w' => 604_800,
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: i64 = digits.parse().ok()?;
        seconds = seconds.saturating_add(count.saturating_mul(unit));
        digits.clear();
    }
    (digits.is_empty() && !written.is_empty()).then(|| SignedDuration::from_secs(seconds))
}

/// In thousandths: of a processor, of a byte.
pub(super) fn quantity(value: Option<&Value>) -> i128 {
    let Some(value) = value else { return 0 };
    if let Some(whole) = value.as_i64() {
        return i128::from(whole) * 1000;
    }
    value.as_str().and_then(written_quantity).unwrap_or(0)
}

fn written_quantity(written: &str) -> Option<i128> {
    let end = written.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(written.len());
    let (figures, suffix) = written.split_at(end);
    let (whole, fraction) = figures.split_once('.').unwrap_or((figures, ""));
    let mut thousandths = whole.parse::<i128>().unwrap_or(0) * 1000;
    let mut place = 100;
    for digit in fraction.bytes().take(3) {
        thousandths += i128::from(digit.checked_sub(b'0')?) * place;
        place /= 10;
    }
    let factor: i128 = match suffix {
        "m" => return Some(thousandths / 1000),
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    Some(thousandths * factor)
}

/// Kubernetes' label selector. An absent one selects nothing, an empty one everything.
pub(super) fn selects(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector else { return false };
    let of = |key: &str| labels.and_then(|it| it.get(key)).and_then(Value::as_str);
    let wanted = at(selector, &["matchLabels"]).and_then(Value::as_object);
    let all = wanted.is_none_or(|it| {
        it.iter().all(|(key, value)| value.as_str().is_some() && of(key) == value.as_str())
    });
    all && items(selector, &["matchExpressions"]).all(|it| {
        let own = of(text(it, &["key"]).unwrap_or_default());
        let among = |own: &str| items(it, &["values"]).any(|value| value.as_str() == Some(own));
        match text(it, &["operator"]) {
            Some("In") => own.is_some_and(among),
            Some("NotIn") => !own.is_some_and(among),
            Some("Exists") => own.is_some(),
            Some("DoesNotExist") => own.is_none(),
            Some(_) | None => false,
        }
    })
}

/// EC2's pattern: `*` is anything, `?` is one character or none.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = chars.as_str();
            matches(rest, name)
                || name.char_indices().any(|(at, it)| matches(rest, &name[at + it.len_utf8()..]))
        }
        Some('?') => {
            let rest = chars.as_str();
            let mut after = name.chars();
            matches(rest, name) || (after.next().is_some() && matches(rest, after.as_str()))
        }
        Some(it) => {
            let mut after = name.chars();
            after.next() == Some(it) && matches(chars.as_str(), after.as_str())
        }
    }
}

/// Whether one of the tolerations is for the taint.
pub(super) fn tolerates(pod: &Value, key: &str, value: &str, effect: &str) -> bool {
    items(pod, &["spec", "tolerations"]).any(|it| {
        let own = text(it, &["key"]).unwrap_or_default();
        let exists = text(it, &["operator"]) == Some("Exists");
        let wanted = text(it, &["effect"]).unwrap_or_default();
        (wanted.is_empty() || wanted == effect)
            && ((own.is_empty() && exists)
                || (own == key && (exists || text(it, &["value"]).unwrap_or_default() == value)))
    })
}

/// The last part of `aws:///us-east-1a/i-0123456789abcdef0`.
pub(super) fn machine_of(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_read_in_thousandths() {
        for (written, thousandths) in [
            (json!("500m"), 500),
            (json!("2"), 2000),
            (json!(3), 3000),
            (json!("0.25"), 250),
            (json!("1Ki"), 1_024_000),
            (json!("1.5Gi"), 1_610_612_736_000),
        ] {
            assert_eq!(quantity(Some(&written)), thousandths, "{written}");
        }
    }

    #[test]
    fn lengths_of_time_are_read() {
        for (written, seconds) in [
            ("7d", Some(604_800)),
            ("1h30m", Some(5_400)),
            ("2w", Some(1_209_600)),
            ("Never", None),
            ("5", None),
        ] {
            assert_eq!(duration(written).map(|it| it.as_secs()), seconds, "{written}");
        }
    }

    #[test]
    fn a_question_mark_is_one_character_or_none() {
        assert!(matches("al2023-?*", "al2023-"));
        assert!(matches("al2023-v?", "al2023-v1"));
        assert!(!matches("al2023-v?", "al2023-v12"));
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
        let labels = json!({"app": "web"});
        assert!(!selects(None, labels.as_object()));
        assert!(selects(Some(&json!({})), labels.as_object()));
        assert!(selects(Some(&json!({"matchLabels": {"app": "web"}})), labels.as_object()));
        let not =
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]});
        assert!(!selects(Some(&not), labels.as_object()));
    }
}
