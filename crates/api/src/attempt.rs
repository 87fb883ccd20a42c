//! How is an attempt to launch written onto its claim?
//!
//! `attempt ↔ the value of an annotation`, without loss: the same token with other parameters is an error.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::{Attempt, Choice, FrozenRequest};
use serde::{Deserialize, Serialize};

/// On a claim: the last call for its machine, recorded before it is made.
pub const ATTEMPT: &str = "nodemolt.dev/attempt";
/// On a claim: the `Replacement` that it was made for, by name.
pub const SUCCESSOR_OF: &str = "nodemolt.dev/successor-of";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    number: u32,
    since: Timestamp,
    capacity_type: String,
    choices: Vec<WrittenChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_ended: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenChoice {
    template: String,
    image: String,
    instance_type: String,
    zone: String,
    subnet: String,
}

/// What is written into [`ATTEMPT`].
pub fn text(attempt: &Attempt) -> String {
    let Attempt { number, since, request, last_ended, ended } = attempt;
    let FrozenRequest { capacity_type, choices, context, tags } = request;
    let choice = |it: &Choice| WrittenChoice {
        template: it.template.clone(),
        image: it.image.to_string(),
        instance_type: it.instance_type.clone(),
        zone: it.zone.clone(),
        subnet: it.subnet.clone(),
    };
    let written = Written {
        number: *number,
        since: *since,
        capacity_type: capacity_type.clone(),
        choices: choices.iter().map(choice).collect(),
        context: context.clone(),
        tags: tags.clone(),
        last_ended: last_ended.clone(),
        ended: ended.clone(),
    };
    // Strings and numbers only: there is nothing in it that JSON has no form for.
    serde_json::to_string(&written).unwrap_or_default()
}

/// What was written there, or what is wrong with it.
pub fn read(text: &str) -> Result<Attempt, String> {
    let written: Written = serde_json::from_str(text).map_err(|it| it.to_string())?;
    let choice = |it: WrittenChoice| {
        let image: ImageId = it.image.parse().map_err(|error| format!("{error}"))?;
        let WrittenChoice { template, image: _, instance_type, zone, subnet } = it;
        Ok(Choice { template, image, instance_type, zone, subnet })
    };
    let Written { number, since, capacity_type, choices, context, tags, last_ended, ended } =
        written;
    if number == 0 {
        return Err("attempts count from 1".to_owned());
    }
    let choices: Result<Vec<Choice>, String> = choices.into_iter().map(choice).collect();
    let request = FrozenRequest { capacity_type, choices: choices?, context, tags };
    Ok(Attempt { number, since, request, last_ended, ended })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

    use super::*;

    #[test]
    fn an_attempt_comes_back_as_it_was_written() {
        let choice = |zone: &str| Choice {
            template: "nodemolt-0a1b".to_owned(),
            image: "ami-0123456789abcdef0".parse().unwrap(),
            instance_type: "m6i.large".to_owned(),
            zone: zone.to_owned(),
            subnet: format!("subnet-{zone}"),
        };
        let full = Attempt {
            number: 3,
            since: "2026-11-01T12:00:00.5Z".parse().unwrap(),
            request: FrozenRequest {
                capacity_type: "spot".to_owned(),
                choices: vec![choice("b"), choice("a")],
                context: Some("x".to_owned()),
                tags: BTreeMap::from([("a\"b".to_owned(), "ü".to_owned())]),
            },
            last_ended: Some("no capacity".to_owned()),
            ended: Some("the fleet was empty".to_owned()),
        };
        assert_eq!(read(&text(&full)).unwrap(), full);
        let bare = Attempt {
            number: 1,
            since: full.since,
            request: FrozenRequest::default(),
            last_ended: None,
            ended: None,
        };
        assert_eq!(read(&text(&bare)).unwrap(), bare);
    }

    #[test]
    fn what_is_no_attempt_is_told() {
        for broken in ["", "{}", "null", "[1]", &text_with(0), &text_with_image("ami-x")] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }

    fn text_with(number: u32) -> String {
        format!(
            r#"{{"number":{number},"since":"2026-11-01T12:00:00Z","capacityType":"spot","choices":[]}}"#
        )
    }

    fn text_with_image(image: &str) -> String {
        text_with(1).replace(
            "[]",
            &format!(
                r#"[{{"template":"t","image":"{image}","instanceType":"m","zone":"z","subnet":"s"}}]"#
            ),
        )
    }
}
