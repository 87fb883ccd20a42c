//! Is this text a date, a duration, an address?
//!
//! The formats that the API server checks. One that it does not know it ignores, and so do we.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nodemolt_fit::go_duration;

use super::pattern;

/// A format, by the name that the schema gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) name: String,
    pub(crate) check: Check,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Of numbers; their range is looked at elsewhere.
    Number,
    DateTime,
    Date,
    Duration,
    Byte,
    Regex(&'static str),
    Ipv4,
    Ipv6,
    Cidr,
    Uri,
    Email,
    LongName,
    /// Known to the server and not to us, or something that every text is.
    Anything,
}

impl Format {
    /// What the server makes of `format`: unknown ones it drops.
    pub(crate) fn of(types: &[&str], format: Option<&str>) -> Option<Self> {
        let name = format.filter(|it| !it.is_empty())?;
        let check = match types {
            [] | ["string"] => string_check(&name.replace('-', ""))?,
            ["integer"] if matches!(name, "int32" | "int64") => Check::Number,
            ["number"] if matches!(name, "float" | "double") => Check::Number,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), check })
    }

    pub(crate) fn accepts(&self, text: &str) -> bool {
        match self.check {
            Check::Number | Check::Anything => true,
            Check::DateTime => date_time(text),
            Check::Date => date(text),
            Check::Duration => duration(text),
            Check::Byte => base64(text),
            Check::Regex(regex) => pattern::remembered(regex).is_ok_and(|it| it.is_match(text)),
            Check::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Check::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Check::Cidr => cidr(text),
            Check::Uri => uri(text),
            Check::Email => email(text),
            Check::LongName => super::names::subdomain(text).is_empty(),
        }
    }
}

/// By the name without dashes, as the server looks it up.
fn string_check(name: &str) -> Option<Check> {
    Some(match name {
        "datetime" => Check::DateTime,
        "date" => Check::Date,
        "duration" => Check::Duration,
        "byte" => Check::Byte,
        "ipv4" => Check::Ipv4,
        "ipv6" => Check::Ipv6,
        "cidr" => Check::Cidr,
        "uri" => Check::Uri,
        "email" => Check::Email,
        "mac" => Check::Regex(
            "^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}([:-][0-9a-fA-F]{2}[:-][0-9a-fA-F]{2})?|([0-9a-fA-F]{4}[.]){2}[0-9a-fA-F]{4})$",
        ),
        "uuid" => {
            Check::Regex("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        }
        "uuid3" => {
            Check::Regex("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        }
        "uuid4" => Check::Regex(
            "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
        "uuid5" => Check::Regex(
            "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
        "bsonobjectid" => Check::Regex("^[0-9a-fA-F]{24}$"),
        "hexcolor" => Check::Regex("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "ssn" => Check::Regex(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        "hostname" => Check::Regex(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        ),
        "k8sshortname" => Check::Regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
        "k8slongname" => Check::LongName,
        "password" | "isbn" | "isbn10" | "isbn13" | "creditcard" | "rgbcolor" => Check::Anything,
        _ => return None,
    })
}

fn date(text: &str) -> bool {
    // jiff takes years of six digits and dates without dashes; the server does not.
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((day, time)) = lower.split_once('t') else { return false };
    let Ok(regex) = pattern::remembered(
        r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$",
    ) else {
        return false;
    };
    let Some(found) = regex.captures(time) else { return false };
    let part = |at| found.get(at).map_or("", |it| it.as_str());
    date(day) && part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

/// Go's durations, and `3 days` as Scala has them.
fn duration(text: &str) -> bool {
    if go_duration(text).is_some() {
        return true;
    }
    let units = "(?i)^\\s*(\\d+(\\.\\d+)?\\s*(ns|nano|nanos|nanosec|nanosecs|nanosecond|nanoseconds|us|µs|μs|micro|micros|microsec|microsecs|microsecond|microseconds|ms|milli|millis|millisec|millisecs|millisecond|milliseconds|s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hr|hrs|hour|hours|d|day|days|w|wk|wks|week|weeks)\\s*)+$";
    pattern::remembered(units).is_ok_and(|it| it.is_match(text))
}

fn base64(text: &str) -> bool {
    let filled = text.trim_end_matches('=');
    let padding = text.len() - filled.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && filled.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/'))
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|it| it.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'))
        && bits.parse::<u8>().is_ok_and(|it| it <= most)
}

/// What Go's `ParseRequestURI` takes: an absolute URI or an absolute path.
fn uri(text: &str) -> bool {
    if text.bytes().any(|it| it < 0x20 || it == 0x7f) || text.is_empty() {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let sound = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'));
    sound && rest.starts_with('/') && !rest.contains(' ')
}

fn email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(at), Some(_)) => &text[at + 1..text.len() - 1],
        _ => text,
    };
    pattern::remembered(r"^[^\s@<>(),;:]+@[^\s@<>(),;:]+$").is_ok_and(|it| it.is_match(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_their_format_says() {
        let cases = [
            ("date-time", "2026-08-01T00:00:00Z", true),
            ("date-time", "2026-08-01t00:00:00.123+02:00", true),
            ("date-time", "2026-08-01 00:00:00Z", false),
            ("date-time", "2026-13-01T00:00:00Z", false),
            ("date-time", "2026-08-01T24:00:00Z", false),
            ("date-time", "soon", false),
            ("date", "2026-02-29", false),
            ("date", "2024-02-29", true),
            ("duration", "1h30m", true),
            ("duration", "3 days", true),
            ("duration", "-5m", true),
            ("duration", "7x", false),
            ("duration", "", false),
            ("byte", "aGk=", true),
            ("byte", "aGk", false),
            ("byte", "", false),
            ("ipv4", "10.0.0.1", true),
            ("ipv4", "::1", false),
            ("ipv6", "::1", true),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("uuid", "550e8400-e29b-41d4-a716-446655440000", true),
            ("uuid", "550e", false),
            ("uri", "https://example.com/a", true),
            ("uri", "example", false),
            ("email", "a@b.c", true),
            ("email", "a", false),
            ("password", "", true),
        ];
        for (name, text, accepted) in cases {
            let format = Format::of(&["string"], Some(name)).unwrap();
            assert_eq!(format.accepts(text), accepted, "{name} {text:?}");
        }
    }

    #[test]
    fn a_format_that_the_server_does_not_know_is_dropped() {
        assert_eq!(Format::of(&["string"], Some("ami")), None);
        assert_eq!(Format::of(&["integer"], Some("uint32")), None);
        assert_eq!(Format::of(&["integer", "string"], Some("int32")), None);
    }
}
