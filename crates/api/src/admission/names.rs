//! May this be called so?
//!
//! The rules for names, labels and annotations that every Kubernetes object follows, in the API server's
//! words.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Why this is no DNS-1123 subdomain, which is what most objects are called.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        // The server counts bytes here too; it says so only elsewhere.
        wrong.push("must be no more than 253 characters".to_owned());
    }
    wrong.extend(no_subdomain(name));
    wrong
}

fn prefix(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push(too_long(253));
    }
    wrong.extend(no_subdomain(name));
    wrong
}

fn no_subdomain(name: &str) -> Option<String> {
    let sound = name.split('.').all(dns_label);
    (!sound).then(|| format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{LABEL}(\\.{LABEL})*')"
        ))
}
/// Why this is no DNS-1123 label, which is what a namespace is called.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    if !dns_label(name) {
        let subdomain = name.split('.').all(dns_label);
        wrong.push(if subdomain {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
            )
        });
    }
    wrong
}

/// Why this cannot be the key of a label, or a finalizer.
pub(crate) fn qualified(name: &str) -> Vec<String> {
    let must = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let regex = || {
        format!(
            "{must} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED}')"
        )
    };
    let mut wrong = Vec::new();
    let mut parts = name.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong
                    .extend(self::prefix(prefix).into_iter().map(|it| format!("prefix part {it}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex()
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", too_long(63)));
    }
    if !label_text(name) {
        wrong.push(format!("name part {}", regex()));
    }
    wrong
}

/// Why this cannot be the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push(too_long(63));
    }
    if !value.is_empty() && !label_text(value) {
        wrong.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({QUALIFIED})?')"
        ));
    }
    wrong
}

fn too_long(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

fn dns_label(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn label_text(text: &str) -> bool {
    let end = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let inner = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    end(text.bytes().next()) && end(text.bytes().last()) && text.bytes().all(inner)
}
