//! Is there something in the user's part that nobody should read?
//!
//! `text → remarks`, each with its place and never with the secret
//!
//! User data can be read by every process on the node and by everyone who may describe the instance. Parts
//! of MIME that are encoded are looked into as well: they are no less readable there.

use nodemolt_core::bootstrap::mime::Found;
use nodemolt_core::bootstrap::user_part::{self, Kind};
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

const SHAPES: [Shape; 29] = [
    shape("AKIA", upper, 16, "an AWS access key"),
    shape("ASIA", upper, 16, "an AWS access key"),
    shape("ghp_", letter, 30, "a GitHub token"),
    shape("gho_", letter, 30, "a GitHub token"),
    shape("ghu_", letter, 30, "a GitHub token"),
    shape("ghs_", letter, 30, "a GitHub token"),
    shape("ghr_", letter, 30, "a GitHub token"),
    shape("github_pat_", word, 22, "a GitHub token"),
    shape("glpat-", dashed, 16, "a GitLab token"),
    shape("xoxb-", dashed, 10, "a Slack token"),
    shape("xoxp-", dashed, 10, "a Slack token"),
    shape("xoxa-", dashed, 10, "a Slack token"),
    shape("xoxr-", dashed, 10, "a Slack token"),
    shape("xoxs-", dashed, 10, "a Slack token"),
    shape("xapp-", dashed, 10, "a Slack token"),
    shape("npm_", letter, 30, "an npm token"),
    shape("pypi-AgEI", dashed, 30, "a PyPI token"),
    shape("AIza", dashed, 30, "a Google API key"),
    shape("sk_live_", letter, 16, "a Stripe key"),
    shape("rk_live_", letter, 16, "a Stripe key"),
    shape("sk-proj-", dashed, 16, "an OpenAI key"),
    shape("sk-ant-", dashed, 16, "an Anthropic key"),
    shape("hvs.", dashed, 20, "a Vault token"),
    shape("hf_", letter, 24, "a Hugging Face token"),
    shape("dop_v1_", letter, 32, "a DigitalOcean token"),
    shape("SG.", dashed, 16, "a SendGrid key"),
    shape("glsa_", word, 30, "a Grafana token"),
    shape("SK", hex, 32, "a Twilio key"),
    shape("eyJ", jwt, 30, "a JSON web token"),
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

fn hex(it: char) -> bool {
    matches!(it, '0'..='9' | 'a'..='f')
}

fn word(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

fn dashed(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '-' | '_')
}

fn jwt(it: char) -> bool {
    dashed(it) || it == '.'
}

/// What names a secret, in lower case and without `-`, `_` and `.`; the whole name, or its end.
const NAMES: [(&str, &str); 18] = [
    ("secretaccesskey", "an AWS secret access key"),
    ("awssecretkey", "an AWS secret access key"),
    ("sessiontoken", "an AWS session token"),
    ("securitytoken", "an AWS session token"),
    ("password", "a password"),
    ("passwd", "a password"),
    ("passphrase", "a password"),
    ("pwd", "a password"),
    ("bindpw", "a password"),
    ("pgpass", "a password"),
    ("clientsecret", "a secret"),
    ("secretkey", "a secret"),
    ("secret", "a secret"),
    ("apikey", "an API key"),
    ("licensekey", "a key"),
    ("accesskey", "a key"),
    ("privatekey", "a private key"),
    ("token", "a token"),
];

/// Two names and a secret; a placeholder is shorter.
const WEBHOOK_CHARS_MIN: usize = 30;

/// In the order of the text.
pub(crate) fn find(text: &str) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = found(text)
        .into_iter()
        .map(|(at, called)| remark(Place::of_byte(text, at), called))
        .collect();
    if Kind::of(text) == Kind::Mime {
        remarks.extend(encoded(text));
        remarks.sort_by(|one, other| one.place.cmp(&other.place));
    }
    remarks
}

fn remark(place: Place, called: &str) -> Remark {
    Remark::new(place, format!("looks like {called}")).with_hint(HINT)
}

/// In parts whose text is not what stands there. A part that we cannot read is told elsewhere.
fn encoded(text: &str) -> Vec<Remark> {
    let Ok(read) = user_part::read(text) else { return Vec::new() };
    let leaves = read.parts.iter().flat_map(|it| user_part::leaves(it).unwrap_or_default());
    let in_part = |Found { part, body_line, .. }: Found| {
        let bytes = user_part::decoded(&part).unwrap_or_default();
        let decoded = String::from_utf8_lossy(&bytes).into_owned();
        let place = Place::UserPart { line: body_line, column: 1 };
        let hits = if decoded == part.body { Vec::new() } else { found(&decoded) };
        let told = move |(_, called): (usize, &'static str)| {
            remark(place.clone(), &format!("{called}, in what this part encodes"))
        };
        hits.into_iter().map(told).collect::<Vec<_>>()
    };
    leaves.flat_map(in_part).collect()
}

/// Where each begins, and what it is. One place is told once, by its most telling name.
fn found(text: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for shape in &SHAPES {
        for (at, _) in text.match_indices(shape.begins) {
            let alone = !text[..at].ends_with(|it: char| it.is_ascii_alphanumeric());
            let rest = &text[at + shape.begins.len()..];
            let length = rest.chars().take_while(|it| (shape.goes_on)(*it)).count();
            let whole = shape.begins != "eyJ"
                || rest.split(|it| !jwt(it)).next().is_some_and(|it| it.matches('.').count() == 2);
            if alone && length >= shape.at_least && whole {
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
    for (at, hook) in text.match_indices("hooks.slack.com/services/") {
        let rest = &text[at + hook.len()..];
        if rest.chars().take_while(|it| letter(*it) || *it == '/').count() > WEBHOOK_CHARS_MIN {
            found.push((at, "an address by which anybody may write to Slack"));
        }
    }
    for (at, _) in text.match_indices("://") {
        if password_in_url(&text[at + 3..]) {
            found.push((at + 3, "a password in a URL"));
        }
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let told = assigned(line).into_iter().chain(beside_key(line)).chain(commanded(line));
        for (at, called) in told {
            let at = start + at;
            if !found.iter().any(|(it, _)| *it == at) {
                found.push((at, called));
            }
        }
        start += line.len();
    }
    found.sort_unstable();
    found
}

/// Values that a name calls secret: `NAME=value`, `name: value`, `"name": "value"`, `--name value`, and
/// what follows `Bearer`.
fn assigned(line: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (at, it) in line.match_indices(['=', ':', ' ']) {
        let before = line[..at].trim_end_matches([' ', '\t', '"', '\'']);
        let begin = before.rfind(|it: char| !(dashed(it) || it == '.')).map_or(0, |it| it + 1);
        let name = &before[begin..];
        let bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let bare = bare.to_ascii_lowercase();
        let flag = name.starts_with("--");
        let scheme = match bare.as_str() {
            "bearer" => true,
            "basic" => line.contains("uthorization") || user_and_password(&line[at + it.len()..]),
            _ => false,
        };
        // A blank alone separates only a flag, a scheme, or what `aws configure set` sets, from its value.
        let set = flag || scheme || bare.starts_with("aws");
        // And `…:secret:…` is a piece of an ARN.
        if (it == " " && !set) || (it == ":" && line[..begin].ends_with(':')) {
            continue;
        }
        let called = if bare == "bearer" {
            Some("a bearer token")
        } else if scheme {
            Some("a password")
        } else if bare == "auth" && line[..at].trim_end().ends_with("\"auth\"") {
            Some("a password of a registry")
        } else {
            NAMES.iter().find(|(it, _)| bare.ends_with(it)).map(|(_, called)| *called)
        };
        let rest = &line[at + it.len()..];
        let value = rest.trim_start_matches([' ', '\t', '"', '\'', '=']);
        // A key by any other name, where it looks like chance.
        let called = called
            .or_else(|| (it != " " && bare.ends_with("key") && random(value)).then_some("a key"));
        let Some(called) = called else { continue };
        if secret_value(value) || phrase(rest) {
            found.push((line.len() - value.len(), called));
        }
    }
    found
}

/// Words in one pair of quotes, none of them a variable: a password of several words.
fn phrase(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t', '=']);
    let Some(quote) = rest.chars().next().filter(|it| matches!(it, '"' | '\'')) else {
        return false;
    };
    let inner = rest[1..].split(quote).next().unwrap_or_default();
    let plain = !inner.contains(['$', '{', '(', '/', '<', '=', '%']);
    let digits = inner.chars().any(|it| it.is_ascii_digit());
    plain && digits && inner.contains(' ') && inner.chars().count() >= PHRASE_CHARS_MIN
}

const PHRASE_CHARS_MIN: usize = 10;

/// What HTTP's `Basic` is followed by.
fn user_and_password(rest: &str) -> bool {
    let value = rest.split([' ', '"', '\'', '\n']).next().unwrap_or_default();
    user_part::text_in_base64(value).is_some_and(|it| it.contains(':'))
}

/// Whether a word is long and without a pattern: at least so many different characters as chance would have
/// among 16 or 64, letters and digits mixed.
fn random(value: &str) -> bool {
    const CHARS_MIN: usize = 24;
    const DIFFERENT_MIN: usize = 10;
    let base64 = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/');
    let word: String = value.chars().take_while(base64).collect();
    let different = word.chars().collect::<std::collections::BTreeSet<_>>().len();
    word.len() >= CHARS_MIN
        && different >= DIFFERENT_MIN
        && word.chars().any(|it| it.is_ascii_digit())
        && word.chars().any(|it| it.is_ascii_alphabetic())
}

/// Passwords that commands are given: `curl -u user:password`, `docker login -p password`,
/// `echo user:password | chpasswd`, `net user name password`.
fn commanded(line: &str) -> Vec<(usize, &'static str)> {
    let words: Vec<(usize, &str)> = line
        .split([' ', '\t', '\n', '"', '\''])
        .filter(|it| !it.is_empty())
        .map(|it| (it.as_ptr().addr() - line.as_ptr().addr(), it))
        .collect();
    let has = |word: &str| words.iter().any(|(_, it)| *it == word);
    let behind_colon = |(at, word): (usize, &str)| {
        let (user, password) = word.split_once(':')?;
        let literal = !user.contains(['$', '/']) && secret_value(password);
        literal.then_some((at + user.len() + 1, "a password"))
    };
    let behind = |flags: &[&str]| {
        let flag = words.iter().position(|(_, it)| flags.contains(it))?;
        words.get(flag + 1).copied()
    };
    let mut found = Vec::new();
    if has("curl") || has("wget") {
        found.extend(behind(&["-u", "--user"]).and_then(behind_colon));
    }
    if has("login") || has("sshpass") {
        let password = behind(&["-p"]).filter(|(_, it)| secret_value(it));
        found.extend(password.map(|(at, _)| (at, "a password")));
    }
    let literal = |(at, it): (usize, &str)| secret_value(it).then_some((at, "a password"));
    if has("mysql") || has("mysqldump") || has("mysqladmin") {
        let attached = words.iter().filter_map(|(at, it)| Some((at + 2, it.strip_prefix("-p")?)));
        found.extend(attached.filter_map(literal));
    }
    if has("passwd") && has("--stdin") {
        found.extend(behind(&["echo"]).and_then(literal));
    }
    if has("htpasswd") && has("-b") {
        let file = words.iter().position(|(_, it)| *it == "-b").unwrap_or_default() + 1;
        found.extend(words.get(file + 2).copied().and_then(literal));
    }
    if line.contains('\'') || line.contains('"') {
        let typed = behind(&["ConvertTo-SecureString"]);
        let typed = typed.filter(|(at, _)| line[..*at].ends_with(['\'', '"']));
        found.extend(typed.and_then(literal));
    }
    if has("chpasswd") {
        found.extend(words.iter().copied().find_map(behind_colon));
    }
    if let [(_, net), (_, user), _, (at, password), ..] = words.as_slice()
        && net.eq_ignore_ascii_case("net")
        && user.eq_ignore_ascii_case("user")
        && secret_value(password)
    {
        found.push((*at, "a password"));
    }
    found
}

/// A literal of some length: no variable, no command, no path, no file, no word of a configuration.
fn secret_value(value: &str) -> bool {
    const CHARS_MIN: usize = 6;
    let ends = |it: char| it.is_whitespace() || "\"'`;,)}&|<>".contains(it);
    let value = value.split(ends).next().unwrap_or_default();
    let lower = value.to_ascii_lowercase();
    let harmless = ["required", "optional", "disabled", "enabled", "default", "prompt", "changeme"];
    value.chars().count() >= CHARS_MIN
        && !value.starts_with(['$', '{', '%', '/', '~', '.', '-', '(', '[', '@', '*', '#', '!'])
        && !value.contains("://")
        // What Terraform will put there.
        && !["var.", "local.", "data.", "module.", "each."].iter().any(|it| value.starts_with(it))
        && !["arn:", "ssm:", "file:", "secretsmanager:", "vault:", "env:"]
            .iter()
            .any(|it| lower.starts_with(it))
        && !["true", "false", "null", "none"].contains(&lower.as_str())
        && !harmless.contains(&lower.as_str())
}

/// Forty characters of base64 on a line that has an access key's id: what belongs to it.
fn beside_key(line: &str) -> Vec<(usize, &'static str)> {
    const SECRET_CHARS: usize = 40;
    let base64 = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/');
    if !line.contains("AKIA") && !line.contains("ASIA") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = 0;
    for piece in line.split(|it| !base64(it)) {
        if piece.len() == SECRET_CHARS {
            found.push((at, "an AWS secret access key"));
        }
        // Past the piece, and the character that ended it.
        at += piece.len();
        at += line[at..].chars().next().map_or(0, char::len_utf8);
    }
    found
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
mod measured;

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
    fn each_of_these_is_one_secret() {
        let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let digits = "0123456789abcdef0123456789abcdef";
        for text in [
            format!("aws_secret_access_key = {aws}"),
            format!("export AWS_SECRET_ACCESS_KEY='{aws}'"),
            format!("AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjE{digits}"),
            "export PASSWORD=hunter2supersecret".to_owned(),
            "password: correct-horse-battery".to_owned(),
            "  \"password\": \"correct-horse\",".to_owned(),
            "mysql --password=hunter2 -u root".to_owned(),
            "mysql --password hunter2 -u root".to_owned(),
            "DB_PASSWD=s3cr3t!!".to_owned(),
            "client_secret: abc~8Q12345".to_owned(),
            format!("DD_API_KEY={digits}"),
            "kubeadm join --token abcdef.0123456789abcdef".to_owned(),
            format!("curl -H 'Authorization: Bearer {digits}' x"),
            format!("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{digits}"),
            format!("glpat-{}", &digits[..20]),
            format!("npm_{digits}{}", &digits[..4]),
            format!("AIza{digits}abc"),
            format!("sk_live_{digits}"),
            format!("sk-proj-{digits}"),
            format!("hvs.{digits}"),
            format!("hf_{digits}"),
            "{\"auths\": {\"r.example.com\": {\n\"auth\": \"dXNlcjpwYXNzd29yZA==\"}}}".to_owned(),
        ] {
            let said = said(&text);
            assert_eq!(said.len(), 1, "{text}: {said:?}");
            assert!(!said[0].contains(&digits[..12]) && !said[0].contains("hunter2"), "{said:?}");
        }
        let both = format!("AKIAIOSFODNN7EXAMPLE:{aws}");
        assert_eq!(
            said(&both),
            [
                "userData:1:1: looks like an AWS access key",
                "userData:1:22: looks like an AWS secret access key"
            ]
        );
    }

    #[test]
    fn encoded_parts_are_looked_into() {
        let part = |encoding: &str, body: &str| {
            format!(
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/x-shellscript\n\
                 Content-Transfer-Encoding: {encoding}\n\n{body}\n--b--\n"
            )
        };
        let told = ["userData:7:1: looks like an AWS access key, in what this part encodes"];
        // `#!/bin/sh` and the key of AWS's own examples.
        let body = "IyEvYmluL3NoCmV4cG9ydCBLRVk9QUtJQUlPU0ZPRE5ON0VYQU1QTEUK";
        assert_eq!(said(&part("base64", body)), told);
        assert_eq!(said(&part("quoted-printable", "#!/bin/sh\nK=3DAKIAIOSFODNN=\n7EXAMPLE")), told);
        assert_eq!(said(&part("7bit", "#!/bin/sh\n")), [""; 0]);
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
            "PASSWORD=$(aws secretsmanager get-secret-value --secret-id x)",
            "PASSWORD=\"${DB_PASSWORD}\"",
            "password: ''",
            "password-file: /etc/password",
            "TOKEN=$(curl -X PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60')",
            "curl -H \"X-aws-ec2-metadata-token: $TOKEN\" http://169.254.169.254/",
            "aws secretsmanager get-secret-value --secret-id prod/db",
            "httpTokens: required",
            "tokenReview: enabled",
            "--token-file=/run/token",
            "secret: arn:aws:secretsmanager:eu-west-1:1:secret:x",
            "passwd -l root",
            "serviceAccountToken:",
            "automountServiceAccountToken: false",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9abcdefgh",
            "sha256: 0123456789abcdef0123456789abcdef01234567",
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
            "certificateAuthority: Y2EtYnVuZGxlCg==",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }
}
