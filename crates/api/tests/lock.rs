//! Catalog files: a lock file keeps all that a catalog knows, and no bytes at all can make us stumble.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_api::answers::{Answer, lock, read};
use nodemolt_core::catalog::{
    Answered, Appeared, Because, Catalog, Observation, Outcome, Parameter, ParameterValue,
    Presence, Query, Sighting, Withdrawn, merge,
};
use nodemolt_core::image::{Architecture, BootMode, Date, Image, ImageId, NamePattern, State};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

const IMAGES: &[u8] = include_bytes!("../../../examples/catalog/images.json");
const PARAMETERS: &[u8] = include_bytes!("../../../examples/catalog/parameters.json");
const HISTORY: &[u8] = include_bytes!("../../../examples/catalog/history.json");

fn locked(text: &str) -> Catalog {
    match read(text.as_bytes()).unwrap() {
        Answer::Lock(catalog) => catalog,
        Answer::Plain(_) => panic!("a lock file was taken for an answer of AWS"),
    }
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), expected);
}

// What can stand in a catalog.

/// To the second, the millisecond and the nanosecond, and before 1970.
fn moment() -> impl Strategy<Value = Timestamp> {
    (-2_000_000_000i64..4_000_000_000, prop_oneof![Just(0), Just(286_000_000), 0..1_000_000_000i32])
        .prop_map(|(second, nanos)| {
            Timestamp::from_second(second).unwrap() + jiff::SignedDuration::from_nanos(nanos.into())
        })
}

fn date() -> impl Strategy<Value = Date> {
    prop_oneof![
        4 => moment().prop_map(Date::At),
        1 => Just(Date::Missing),
        1 => prop_oneof![
            Just("last Tuesday".to_owned()),
            Just("2026-11-31T08:12:44.000Z".to_owned()),
            Just("99999999999999999999".to_owned()),
            "x".prop_map(|it| it.repeat(200)),
            "[^0-9]{1,90}".prop_filter("an empty date is a missing one", |it| !it.is_empty()),
        ]
        .prop_map(|it| Date::read(Some(&it))),
    ]
}

/// Few, so that they meet.
fn image_id() -> impl Strategy<Value = ImageId> {
    prop_oneof![
        (0..12u8).prop_map(|it| format!("ami-{it:08x}").parse().unwrap()),
        (0..12u8).prop_map(|it| format!("ami-{it:017x}").parse().unwrap()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9-]{1,20}",
        Just("a,b*c?\\".to_owned()),
        Just("\"quoted\" \u{1b}[31m\n".to_owned()),
        "\\PC{0,12}",
    ]
}

fn patterns() -> impl Strategy<Value = Vec<NamePattern>> {
    vec(text().prop_map(|it| NamePattern::new(&it)), 0..3)
}

fn image() -> impl Strategy<Value = Image> {
    let who = (
        option::of("[0-9]{12}".prop_map(|it| it.parse().unwrap())),
        option::of(text()),
        text().prop_map(|it| State::read(&it)),
        any::<bool>(),
        text(),
        option::of(text()),
    );
    let dates = (date(), date());
    let machine = (
        prop_oneof![Just("x86_64".to_owned()), Just("arm64".to_owned()), text()],
        option::of(prop_oneof![Just("uefi".to_owned()), text()]),
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(any::<bool>()),
        option::of(text()),
        option::of(any::<bool>()),
    );
    let rest = (
        btree_map(text(), text(), 0..3),
        btree_set(text(), 0..3),
        option::of(any::<bool>()),
        option::of(image_id()),
        option::of(text()),
        btree_set(text(), 0..3),
        patterns(),
        patterns(),
    );
    (image_id(), who, dates, machine, rest).prop_map(|(id, who, dates, machine, rest)| {
        let (owner, owner_alias, odd_state, odd, name, description) = who;
        let (architecture, boot_mode, tpm, virtualization, root_device, ena, platform, public) =
            machine;
        let (tags, product_codes, allowed, source, source_region, public_parameters, yes, no) =
            rest;
        Image {
            description,
            owner,
            owner_alias,
            state: if odd { odd_state } else { State::Available },
            created: dates.0,
            deprecated: dates.1,
            architecture: Architecture::read(&architecture),
            boot_mode: boot_mode.as_deref().map(BootMode::read),
            tpm,
            virtualization,
            root_device,
            ena,
            platform,
            public,
            tags,
            product_codes,
            allowed,
            source,
            source_region,
            public_parameters,
            supported_types: yes,
            unsupported_types: no,
            ..Image::new(id, name)
        }
    })
}

fn sighting() -> impl Strategy<Value = Sighting> {
    let because = prop_oneof![
        (text(), image_id())
            .prop_map(|(parameter, to)| Because::PointerMovedBack { parameter, to }),
        Just(Because::DeprecatedEarly),
        Just(Because::DisabledEarly),
        Just(Because::UnsharedEarly),
        Just(Because::Recalled),
    ];
    let presence = prop_oneof![
        Just(Presence::Listed),
        moment().prop_map(|since| Presence::NotListed { since }),
        moment().prop_map(|since| Presence::Gone { since }),
    ];
    let appeared = prop_oneof![Just(Appeared::WithFirstAnswer), Just(Appeared::Later)];
    let withdrawn =
        (option::of(moment()), because).prop_map(|(at, because)| Withdrawn { at, because });
    (
        image(),
        option::of(moment()),
        option::of(moment()),
        btree_set(text(), 0..3),
        appeared,
        presence,
        option::of(withdrawn),
    )
        .prop_map(|(image, first_seen, last_seen, seen_by, appeared, presence, withdrawn)| {
            Sighting { image, first_seen, seen_by, appeared, last_seen, presence, withdrawn }
        })
}

/// SSM numbers every value, or an old file numbers none.
fn parameter() -> impl Strategy<Value = Parameter> {
    let value = (0..5u64, date(), text(), vec(text(), 0..3));
    let name = prop_oneof![
        (0..4u8).prop_map(|it| format!("/my-org/amis/{it}")),
        Just("/aws/service/bottlerocket/aws-k8s-1.35/x86_64/latest/image_id".to_owned()),
    ];
    (name, option::of(text()), option::of(moment()), any::<bool>(), vec(value, 1..4)).prop_map(
        |(name, arn, gone, numbered, values)| {
            let mut whole: Option<Parameter> = None;
            for (version, modified, text, labels) in values {
                let version = numbered.then_some(version);
                let value = ParameterValue { version, modified, text, labels };
                let one = Parameter::new(name.clone(), value);
                match &mut whole {
                    None => whole = Some(one),
                    Some(whole) => {
                        whole.learn(one);
                    }
                }
            }
            let mut parameter = whole.unwrap();
            parameter.arn = arn;
            parameter.gone = gone;
            parameter
        },
    )
}

/// As people write it, and so as it can be read again.
fn query() -> impl Strategy<Value = Query> {
    let word = prop_oneof![
        Just("owner=self".to_owned()),
        Just("owner=amazon".to_owned()),
        Just("owner=602401143452".to_owned()),
        "name=[a-z*?.-]{1,8}",
        Just("name=a\\,b*".to_owned()),
        Just("name=\\\\*literal".to_owned()),
        Just("id=ami-00000001".to_owned()),
        Just("tag:team=*".to_owned()),
        Just("tag:a\\,b=c\\,?".to_owned()),
        Just("public-ssm-parameter-name=/aws/x\\,y".to_owned()),
        Just("region=us-west-2".to_owned()),
        Just("include-deprecated".to_owned()),
        Just("include-disabled".to_owned()),
    ];
    let about_images = vec(word, 1..5).prop_map(|mut words| {
        words.push("owner=amazon".to_owned());
        words.join(",").parse().unwrap()
    });
    let word = prop_oneof![
        "parameter=/[a-z/]{1,8}",
        "path=/[a-z/]{1,8}",
        Just("path=/a\\,b/".to_owned()),
    ];
    let about_parameters = vec(word, 1..4).prop_map(|it| it.join(",").parse().unwrap());
    prop_oneof![1 => Just(Query::Untold), 4 => about_images, 2 => about_parameters]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (0..Outcome::ALL.len()).prop_map(|it| Outcome::ALL[it])
}

fn answered() -> impl Strategy<Value = Answered> {
    (option::of(moment()), option::of(moment()), option::of((outcome(), moment()))).prop_map(
        |(first_complete, last_complete, last)| Answered { first_complete, last_complete, last },
    )
}

fn catalog() -> impl Strategy<Value = Catalog> {
    (vec(sighting(), 0..6), vec(parameter(), 0..4), btree_map(query(), answered(), 0..4)).prop_map(
        |(sightings, parameters, answers)| {
            let mut catalog = Catalog::default();
            catalog.images = sightings.into_iter().map(|it| (it.image.id.clone(), it)).collect();
            catalog.parameters = parameters.into_iter().map(|it| (it.name.clone(), it)).collect();
            catalog.answers = answers;
            catalog
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What is written down is what was known.
    #[test]
    fn a_lock_file_keeps_all_that_a_catalog_knows(catalog in catalog()) {
        let text = lock::write(&catalog);
        let again = locked(&text);
        prop_assert_eq!(&again, &catalog);
        prop_assert_eq!(lock::write(&again), text);
    }

    /// Whichever way round AWS lists things, and on whichever pages, the file has the same bytes.
    #[test]
    fn the_order_of_an_answer_leaves_no_trace(
        known in catalog(),
        images in vec(image(), 0..6),
        parameters in vec(parameter(), 0..4),
        (asked, outcome, seen_at) in (query(), outcome(), moment()),
        order in any::<u64>(),
    ) {
        // Where two files disagree the later one stands; here they agree.
        let images: BTreeMap<ImageId, Image> =
            images.into_iter().map(|it| (it.id.clone(), it)).collect();
        let parameters: BTreeMap<String, Parameter> =
            parameters.into_iter().map(|it| (it.name.clone(), it)).collect();
        let observed = |images: Vec<Image>, parameters: Vec<Parameter>| Observation {
            asked: asked.clone(),
            outcome,
            seen_at: Some(seen_at),
            account: None,
            images,
            parameters,
        };
        let sorted = observed(
            images.values().cloned().collect(),
            parameters.values().cloned().collect(),
        );
        let shuffled = observed(
            shuffle(images.into_values().collect(), order),
            shuffle(parameters.into_values().collect(), order),
        );
        let written = |seen| lock::write(&merge(known.clone(), seen).0);
        prop_assert_eq!(written(sorted), written(shuffled));
    }

    /// The lists of a lock file may stand in any order too.
    #[test]
    fn a_lock_file_in_disorder_is_put_in_order(catalog in catalog(), order in any::<u64>()) {
        let text = lock::write(&catalog);
        let mut value: Value = serde_json::from_str(&text).unwrap();
        for list in ["answers", "images", "parameters"] {
            let entries = value[list].as_array().unwrap().clone();
            value[list] = Value::from(shuffle(entries, order));
        }
        prop_assert_eq!(lock::write(&locked(&value.to_string())), text);
    }

    #[test]
    fn no_bytes_make_us_stumble(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn no_text_makes_us_stumble(text in "[\\[\\]{}\":, a-zA-Z0-9.\\\\-]{0,120}") {
        let _ = read(text.as_bytes());
    }

    /// Cut off, as after a full disk: an error, and never half a catalog.
    #[test]
    fn half_a_lock_file_is_none(catalog in catalog(), cut in 0.0..1.0f64) {
        let text = lock::write(&catalog);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "some place in the text is all that is needed"
        )]
        let end = ((text.trim_end().len() as f64) * cut) as usize;
        prop_assert!(read(&text.as_bytes()[..end]).is_err());
    }

    #[test]
    fn no_flipped_bytes_make_us_stumble(
        catalog in catalog(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = lock::write(&catalog).into_bytes();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }

    /// Any member may hold anything: it is read, or refused by name.
    #[test]
    fn what_cannot_be_read_is_named(
        source in 0..3usize,
        place in any::<prop::sample::Index>(),
        wrong in prop_oneof![
            Just(json!(null)), Just(json!(true)), Just(json!(-1)), Just(json!(1e300)),
            Just(json!("")), Just(json!("nonsense")), Just(json!([])), Just(json!({})),
            Just(json!([[["deep"]]])),
        ],
    ) {
        let first = |bytes: &[u8], list: &str| {
            let mut value: Value = serde_json::from_slice(bytes).unwrap();
            value[list].as_array_mut().unwrap().truncate(1);
            value
        };
        let mut value = match source {
            0 => first(IMAGES, "Images"),
            1 => first(PARAMETERS, "Parameters"),
            _ => first(HISTORY, "Parameters"),
        };
        let mut places = Vec::new();
        pointers(&value, String::new(), &mut places);
        let place = &places[place.index(places.len())];
        *value.pointer_mut(place).unwrap() = wrong;
        if let Err(error) = read(value.to_string().as_bytes()) {
            let told = error.to_string();
            let member = place.split('/').rfind(|it| !it.is_empty() && !it.bytes().all(|it| it.is_ascii_digit()));
            let named = member.is_none_or(|it| told.contains(it)) || told.starts_with("it is no catalog");
            prop_assert!(named, "{} was not named in `{}`", place, told);
        }
    }
}

fn shuffle<T>(mut all: Vec<T>, order: u64) -> Vec<T> {
    let mut state = order | 1;
    for at in (1..all.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap() % (at + 1);
        all.swap(at, other);
    }
    all
}

/// The JSON pointers of all that stands in a value.
fn pointers(value: &Value, here: String, all: &mut Vec<String>) {
    if let Some(list) = value.as_array() {
        for (at, value) in list.iter().enumerate() {
            pointers(value, format!("{here}/{at}"), all);
        }
    }
    if let Some(members) = value.as_object() {
        for (key, value) in members {
            pointers(value, format!("{here}/{}", key.replace('/', "~1")), all);
        }
    }
    all.push(here);
}

// Files, one by one.

fn lock_of(members: &Value) -> String {
    let mut lock = json!({ "apiVersion": "nodemolt.dev/cli/v1", "kind": "CatalogLock" });
    for (key, value) in members.as_object().unwrap() {
        lock[key] = value.clone();
    }
    lock.to_string()
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"Images\":[", "]}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(read(deep.as_bytes()).is_err(), "{open}");
    }
    let deep = "[".repeat(100_000);
    let inside = format!("{{\"Images\":[{{\"ImageId\":\"ami-00000001\",\"CreationDate\":{deep}");
    assert!(read(inside.as_bytes()).is_err());
    // Below the members that nobody reads it does no harm either.
    let unread = format!("{{\"Images\":[],\"Other\":{deep}{}}}", "]".repeat(100_000));
    let _ = read(unread.as_bytes());
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    check_refused(
        r#"{"Images":[{"ImageId":"ami-00000001","ImageId":"ami-00000002"}]}"#,
        "Images[0]: duplicate field `ImageId` at line 1 column 46",
    );
    check_refused(
        r#"{"Images":[],"Images":[]}"#,
        "the file: duplicate field `Images` at line 1 column 21",
    );
}

#[test]
fn what_our_own_file_says_twice_is_refused() {
    let image = json!({ "image": { "ImageId": "ami-00000001" } });
    check_refused(
        &lock_of(&json!({ "images": [image, image] })),
        "images[1].image.ImageId: `ami-00000001` stands twice; write the lock file anew, with both as --catalog files",
    );
    let parameter = json!({ "name": "/a", "values": [{ "value": "ami-00000001" }] });
    check_refused(
        &lock_of(&json!({ "parameters": [parameter, parameter] })),
        "parameters[1].name: `/a` stands twice; write the lock file anew, with both as --catalog files",
    );
    let answers = json!([{ "asked": "owner=self,name=a" }, { "asked": "name=a,owner=self" }]);
    check_refused(
        &lock_of(&json!({ "answers": answers })),
        "answers[1].asked: `name=a,owner=self` stands twice; write the lock file anew, with both as --catalog files",
    );
}

#[test]
fn a_member_that_cannot_be_read_is_told_with_its_value() {
    let image = |members: Value| json!({ "Images": [members] }).to_string();
    check_refused(
        &image(json!({ "ImageId": "ami-1" })),
        "Images[0].ImageId: `ami-1` is not an image id; write `ami-` and 8 or 17 of the digits 0-9 and a-f",
    );
    check_refused(
        &image(json!({ "ImageId": "ami-00000001", "OwnerId": "me" })),
        "Images[0].OwnerId: `me` is not an AWS account; write its 12 digits, leading zeros included",
    );
    check_refused(
        &image(json!({ "ImageId": "ami-00000001", "PublicSsmParameterName": ["/a", 5] })),
        "Images[0].PublicSsmParameterName: `5` is not the name of a parameter",
    );
    check_refused(
        r#"{"Images":[{"ImageId":"ami-00000001","EnaSupport":"yes"}]}"#,
        r#"Images[0].EnaSupport: invalid type: string "yes", expected a boolean at line 1 column 55"#,
    );
    check_refused(
        r#"{"Parameters":[{"Name":"/a","Value":"ami-00000001","Version":-3}]}"#,
        "Parameters[0].Version: invalid value: integer `-3`, expected u64 at line 1 column 63",
    );
    check_refused(
        &lock_of(&json!({ "answers": [{ "asked": "owner=nobody" }] })),
        "answers[0].asked: `nobody` is not an owner; write 12 digits (quoted), `self`, `amazon`, `aws-marketplace` or `aws-backup-vault`",
    );
    check_refused(
        &lock_of(
            &json!({ "answers": [{ "asked": "owner=self", "outcome": "lost", "at": "2026-11-15T00:00:00Z" }] }),
        ),
        "answers[0].outcome: `lost` is not an outcome; write one of complete, incomplete, throttled, denied, failed",
    );
    check_refused(
        &lock_of(
            &json!({ "images": [{ "image": { "ImageId": "ami-00000001" }, "withdrawn": { "reason": "Rumour" } }] }),
        ),
        "images[0].withdrawn: `Rumour` is no reason; known are PointerMovedBack (with parameter and movedBackTo), DeprecatedEarly, DisabledEarly and UnsharedEarly",
    );
    check_refused(
        &lock_of(&json!({ "images": [{
            "image": { "ImageId": "ami-00000001" },
            "goneSince": "2026-11-15T00:00:00Z",
            "notListedSince": "2026-11-15T00:00:00Z",
        }] })),
        "images[0].goneSince: it stands beside `notListedSince`; an image is either gone or not listed",
    );
}

#[test]
fn what_is_no_catalog_is_told_in_words() {
    check_refused(
        "5",
        "the file: invalid type: integer `5`, expected what an AWS command prints at line 1 column 1",
    );
    check_refused("[5]", "[0]: invalid type: integer `5`, expected an image at line 1 column 2");
    check_refused(
        r#"{"Parameters":["a"]}"#,
        r#"Parameters[0]: invalid type: string "a", expected a parameter at line 1 column 18"#,
    );
    check_refused(
        "",
        "it is not JSON: EOF while parsing a value at line 1 column 0; AWS commands print it with `--output json`",
    );
    check_refused(
        r#"{"Reservations":[]}"#,
        "it is no catalog: expected the JSON of `aws ec2 describe-images`, of `aws ssm get-parameter`, `get-parameters`, `get-parameters-by-path` or `get-parameter-history`, or of `nodemolt images lock`",
    );
}

#[test]
fn a_lock_file_of_another_version_is_refused() {
    check_refused(
        r#"{"apiVersion":"nodemolt.dev/cli/v2","kind":"CatalogLock"}"#,
        "apiVersion: `nodemolt.dev/cli/v2` is not known; this version reads `nodemolt.dev/cli/v1`",
    );
}

#[test]
fn the_examples_survive_being_locked() {
    let mut catalog = Catalog::default();
    for bytes in [IMAGES, PARAMETERS, HISTORY] {
        let Answer::Plain(plain) = read(bytes).unwrap() else { panic!("no answer of AWS") };
        catalog = merge(catalog, Observation::plain(plain.images, plain.parameters)).0;
    }
    let ids: BTreeSet<&str> = catalog.images.keys().map(ImageId::as_str).collect();
    assert!(ids.len() > 400, "{}", ids.len());
    assert_eq!(locked(&lock::write(&catalog)), catalog);
}

#[test]
fn an_answer_says_what_it_is_about() {
    let about = |text: &str| match read(text.as_bytes()).unwrap() {
        Answer::Plain(plain) => (plain.about_images, plain.about_parameters),
        Answer::Lock(_) => panic!("an answer of AWS was taken for a lock file"),
    };
    assert_eq!(about(r#"{"Images":[]}"#), (true, false));
    assert_eq!(about("[]"), (true, false));
    assert_eq!(about(r#"{"Parameters":[]}"#), (false, true));
    assert_eq!(about(r#"{"InvalidParameters":["/a"]}"#), (false, true));
    assert_eq!(about(r#"{"Images":[],"Parameters":[]}"#), (true, true));
}
