//! Is there something in the user's part that nobody should read?
//!
//! `text → remarks`, each with its place and never with the secret
//!
//! User data can be read by every process on the node and by everyone who may describe the instance.

use nodemolt_core::bootstrap::{Place, Remark};

const HINT: &str =
    "every pod that reaches the metadata service can read it; fetch it at boot, by the node's role";

/// What a secret begins with, which characters go on, and how many of them at least.
struct Shape {
    begins: &'static str,
    goes_on: fn(char) -> bool,
    at_least: usize,
    called: &'static str,
}

const SHAPES: [Shape; 14] = [
    shape("AKIA", upper, 16, "an AWS access key"),
    shape("ASIA", upper, 16, "an AWS access key"),
    shape("ghp_", letter, 30, "a GitHub token"),
    shape("gho_", letter, 30, "a GitHub token"),
    shape("ghu_", letter, 30, "a GitHub token"),
    shape("ghs_", letter, 30, "a GitHub token"),
    shape("ghr_", letter, 30, "a GitHub token"),
    shape("github_pat_", word, 22, "a GitHub token"),
    shape("xoxb-", dashed, 10, "a Slack token"),
    shape("xoxp-", dashed, 10, "a Slack token"),
    shape("xoxa-", dashed, 10, "a Slack token"),
    shape("xoxr-", dashed, 10, "a Slack token"),
    shape("xoxs-", dashed, 10, "a Slack token"),
    shape("xapp-", dashed, 10, "a Slack token"),
];

const fn shape(
    begins: &'static str,
    goes_on: fn(char) -> bool,
    at_least: usize,
    called: &'static str,
) -> Shape {
    Shape { begins, goes_on, at_least, called }
}

fn upper(it: char) -> bool {
    it.is_ascii_uppercase() || it.is_ascii_digit()
}

fn letter(it: char) -> bool {
    it.is_ascii_alphanumeric()
}

fn word(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

fn dashed(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '-'
}

/// In the order of the text.
pub(crate) fn find(text: &str) -> Vec<Remark> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for shape in &SHAPES {
        for (at, _) in text.match_indices(shape.begins) {
            let alone = !text[..at].ends_with(|it: char| it.is_ascii_alphanumeric());
            let rest = &text[at + shape.begins.len()..];
            let length = rest.chars().take_while(|it| (shape.goes_on)(*it)).count();
            if alone && length >= shape.at_least {
                found.push((at, shape.called));
            }
        }
    }
    for (at, _) in text.match_indices("-----BEGIN ") {
        let line = text[at..].lines().next().unwrap_or_default();
        if line.contains("PRIVATE KEY") {
            found.push((at, "a private key"));
        }
    }
    for (at, _) in text.match_indices("://") {
        if password_in_url(&text[at + 3..]) {
            found.push((at + 3, "a password in a URL"));
        }
    }
    found.sort_unstable();
    let remark = |(at, called): (usize, &str)| {
        Remark::new(Place::of_byte(text, at), format!("looks like {called}")).with_hint(HINT)
    };
    found.into_iter().map(remark).collect()
}

/// `user:password@host`; a variable in place of the password is none.
fn password_in_url(rest: &str) -> bool {
    let ends = |it: char| it.is_whitespace() || "/\"'`<>\\?#".contains(it);
    let authority = rest.split(ends).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return false };
    let password = user.split_once(':').map_or("", |(_, it)| it);
    !password.is_empty() && !password.starts_with(['$', '{', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        find(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn secrets_are_found_where_they_stand_and_are_not_repeated() {
        let github = format!("ghp_{}", "a1".repeat(18));
        let slack = format!("xoxb-{}", "1".repeat(12));
        let text = format!(
            "export KEY=AKIAIOSFODNN7EXAMPLE\n{github} {slack}\n-----BEGIN RSA PRIVATE KEY-----\n\
             curl https://me:hunter2@example.com/\n"
        );
        assert_eq!(
            said(&text),
            [
                "userData:1:12: looks like an AWS access key",
                "userData:2:1: looks like a GitHub token",
                "userData:2:42: looks like a Slack token",
                "userData:3:1: looks like a private key",
                "userData:4:14: looks like a password in a URL",
            ]
        );
    }

    #[test]
    fn what_only_resembles_a_secret_is_left_alone() {
        for text in [
            "AKIASHORT",
            "XAKIAIOSFODNN7EXAMPLE",
            "https://$USER:$TOKEN@example.com",
            "https://me@example.com:8080/a:b@c",
            "https://[::1]:8080/",
            "-----BEGIN CERTIFICATE-----",
            "ghp_",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }
}
