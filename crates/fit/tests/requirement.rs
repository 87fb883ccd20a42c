#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use nodemolt_fit::{
    Key, MinValuesShort, Operator, Requirement, Requirements, Undefined, Vocabulary, Written, label,
};
use serde::{
    Deserialize,
    de::{IntoDeserializer, value::Error},
};

/// `key In a b`, with `min 2` at the end if so many values are wanted.
fn written(text: &str) -> Written {
    let (text, min_values) = match text.split_once(" min ") {
        Some((text, min_values)) => (text, Some(min_values.parse().unwrap())),
        None => (text, None),
    };
    let mut words = text.split_whitespace().map(str::to_owned);
    Written {
        key: words.next().unwrap(),
        operator: words.next().unwrap().parse().unwrap(),
        values: words.map(|it| if it == "\"\"" { String::new() } else { it }).collect(),
        min_values,
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|it| !it.is_empty())
}

fn arrow(line: &str) -> (&str, &str) {
    line.split_once('→').map(|(left, right)| (left.trim(), right.trim())).unwrap()
}

/// `In a b & NotIn b`, about one label.
fn requirement(text: &str, vocabulary: &Vocabulary) -> Requirement {
    text.split(" & ")
        .map(|it| Requirement::read(&written(&format!("k {it}")), vocabulary))
        .fold(Requirement::anything(), |all, it| all.intersect(&it))
}

/// `zone In a b, arch In arm64`.
fn requirements(text: &str, vocabulary: &Vocabulary) -> Requirements {
    let all: Vec<Written> =
        text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(written).collect();
    Requirements::read(&all, vocabulary)
}

fn shown(all: &[Written]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" & ")
}

#[test]
fn requirements_on_one_label_become_one() {
    let cases = "
        In a → k In [a]
        In b a b → k In [a, b]
        NotIn a → k NotIn [a]
        NotIn →
        Exists → k Exists
        DoesNotExist → k DoesNotExist
        Gt 3 → k Gte 4
        Lt 3 → k Lte 2
        Gte 3 → k Gte 3
        Lte -3 → k Lte -3
        Gte -9223372036854775808 → k Gte -9223372036854775808
        Lte 9223372036854775807 → k Gte -9223372036854775808

        In a b & In b c → k In [b]
        In a & In b → k In []
        In a b & NotIn b → k In [a]
        In a & Exists → k In [a]
        In a & DoesNotExist → k In []
        NotIn a & NotIn b → k NotIn [a, b]
        NotIn a & Exists → k Exists & k NotIn [a]
        NotIn a & DoesNotExist → k DoesNotExist
        Exists & DoesNotExist → k In []
        DoesNotExist & Gt 3 → k In []
        Gt 3 & Lt 6 → k Gte 4 & k Lte 5
        Gt 3 & Lt 4 → k In []
        Gt 5 & Lt 3 → k In []
        Gt 3 & Exists → k Gte 4
        In 1 2 3 4 5 x & Gt 2 & Lte 4 → k In [3, 4]
        In 5 05 +5 5.0 & Gte 5 → k In [5]
        Gte 0 & Lte 9 & NotIn 5 x → k Gte 0 & k Lte 9 & k NotIn [5]

        Gte 0 & Lte 9 & NotIn 0 1 9 20 → k Gte 2 & k Lte 8
        Gte 1 & Lte 3 & NotIn 1 2 3 → k In []
        Gte 1 & Lte 3 & NotIn 1 3 → k Gte 2 & k Lte 2
        Gte 1 & Lte 1 & NotIn 01 → k Gte 1 & k Lte 1
        Gt 9223372036854775806 & NotIn 9223372036854775807 → k In []
        Lt -9223372036854775807 & NotIn -9223372036854775808 → k In []

        Lt 0 → k Lte -1
        Gt 9223372036854775807 → k In []
        Lt -9223372036854775808 → k In []
        Gt 99999999999999999999 → k In []
        Gt x → k In []
        Gt 1 2 → k In []
        Gt → k In []
        Exists a → k In []
    ";
    let vocabulary = Vocabulary::new();
    for (asked, expected) in lines(cases).map(arrow) {
        let read = requirement(asked, &vocabulary);
        let all = read.written("k", &vocabulary);
        assert_eq!(shown(&all), expected, "{asked}");
        assert_eq!(read.nothing(), expected == "k In []", "{asked}");
    }
}

#[test]
fn one_requirement_lies_within_another() {
    let cases = "
        In a ⊆ In a b
        In a ⊆ Exists
        In a ⊆ NotIn b
        In a b ⊄ In a
        In a ⊄ NotIn a
        In 3 ⊆ Gt 2
        In x ⊄ Gt 2
        NotIn a b ⊆ NotIn a
        NotIn a ⊄ NotIn a b
        NotIn a ⊄ Exists
        Exists ⊆ NotIn
        Exists ⊄ NotIn a
        DoesNotExist ⊆ NotIn a
        DoesNotExist ⊄ Exists
        NotIn a ⊄ DoesNotExist
        Gte 3 & Lte 5 ⊆ In 3 4 5 6
        Gte 3 & Lte 5 ⊄ In 3 5
        Gte 3 & Lte 5 & NotIn 4 ⊆ In 3 5
        Gte 3 ⊆ Gt 2
        Gte 3 ⊄ Gt 3
        Gte 3 & NotIn 3 ⊆ Gt 3
        Gte 3 ⊆ NotIn 2 x
        Gte 3 ⊄ NotIn 4
        Gte 3 ⊄ DoesNotExist
        Gt 3 & Lt 4 ⊆ DoesNotExist
        Exists ⊄ Gte -9223372036854775808
        Gt -9223372036854775808 ⊄ In 1
    ";
    let vocabulary = Vocabulary::new();
    for line in lines(cases) {
        let (left, right, expected) = match line.split_once(" ⊆ ") {
            Some((left, right)) => (left, right, true),
            None => line.split_once(" ⊄ ").map(|(left, right)| (left, right, false)).unwrap(),
        };
        let within = requirement(left, &vocabulary).within(&requirement(right, &vocabulary));
        assert_eq!(within, expected, "{line}");
    }
}

#[test]
fn an_integer_that_both_exclude_is_missing_once() {
    let vocabulary = Vocabulary::new();
    let holed = requirement("Gte 1 & Lte 4 & NotIn 2 3", &vocabulary);
    assert!(holed.intersects(&holed), "1 and 4 are left");
    let used_up = requirement("Exists & NotIn 1 4", &vocabulary);
    assert!(!holed.intersects(&used_up) && holed.intersect(&used_up).nothing());
}

#[test]
fn absence_is_an_outcome_of_its_own() {
    let vocabulary = Vocabulary::new();
    let admits_absent = |text| requirement(text, &vocabulary).admits_absent();
    assert!(admits_absent("NotIn a") && admits_absent("DoesNotExist") && admits_absent("NotIn"));
    assert!(!admits_absent("In a") && !admits_absent("Exists") && !admits_absent("Gt 1"));
    assert_eq!(requirement("DoesNotExist", &vocabulary), Requirement::absent());
    assert_eq!(requirement("In a", &vocabulary), Requirement::exactly(vocabulary.value("a")));
    assert_eq!(requirement("Exists", &vocabulary), Requirement::present());
    assert_eq!(requirement("Gte 1 & Lte 4", &vocabulary), Requirement::between(1, 4));
    assert!(Requirement::between(4, 1).nothing());
}

#[test]
fn a_wrong_requirement_is_answered_with_a_right_one() {
    let long = "x".repeat(64);
    let cases = "
        team In a → fine
        team In \"\" → fine
        team NotIn → fine
        example.com/team Exists → fine
        Team_1.x DoesNotExist → fine
        team Gt 4 → fine
        team Lt -4 → fine
        team In a b min 2 → fine
        team Exists min 50 → fine
        team Exists a → `team` Exists takes no value: leave out `a`, or write In
        team DoesNotExist a → `team` DoesNotExist takes no value: leave out `a`, or write In
        team In → `team` In needs a value: name at least one, or write Exists
        team Gt → `team` Gt needs a bound: write one whole number, such as `4`
        team Gt 1 2 → `team` Gt takes one bound, not `1`, `2`: keep one of them
        team Gte 1.5 → `team` Gte `1.5` is no bound: write a whole number, such as `4`
        team Lte 9223372036854775808 → `team` Lte `9223372036854775808` is no bound: \
                                       write a whole number, such as `4`
        team Exists min 0 → `team` asks for minValues 0: write a number from 1 to 50
        team Exists min 51 → `team` asks for minValues 51: write a number from 1 to 50
        team In a min 2 → `team` asks for minValues 2 and names 1: name more values, or ask for fewer
        team In a -b → `-b` cannot be a value of `team` (In): write letters, digits, `-`, `_` and \
                       `.`, at most 63, with a letter or digit at both ends
        team NotIn a/b → `a/b` cannot be a value of `team` (NotIn): write letters, digits, `-`, `_` \
                         and `.`, at most 63, with a letter or digit at both ends
    ";
    for (text, expected) in lines(cases).map(arrow) {
        let answer = match written(text).check() {
            Ok(()) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected, "{text}");
    }

    let key = |key: &str| Written {
        key: key.to_owned(),
        operator: Operator::Exists,
        values: Vec::new(),
        min_values: None,
    };
    let domain = format!("{}.{}.{}.{}", &long[..63], &long[..63], &long[..63], &long[..61]);
    assert_eq!(domain.len(), 253);
    let longest = format!("{domain}/{}", &long[..62]);
    for fine in ["a", "a.b/c", &long[..63], "1", "a-b.c/D_e.f", &longest] {
        assert_eq!(key(fine).check(), Ok(()), "{fine}");
    }
    let too_long = format!("{longest}x");
    let long_domain = format!("{domain}x/a");
    for wrong in [
        "",
        "/",
        "a/",
        "/a",
        "a/b/c",
        "-a",
        "a-",
        "A.com/x",
        "a..b/x",
        "-a/x",
        "a b",
        "ä",
        &long,
        &too_long,
        &long_domain,
        "a_b/x",
        "a/.",
    ] {
        assert!(key(wrong).check().is_err(), "{wrong}");
    }
    assert_eq!(
        key("a b").check().unwrap_err().to_string(),
        "`a b` is not the name of a label: write letters, digits, `-`, `_` and `.`, at most 63, \
         perhaps after a domain and `/`, such as `example.com/team`"
    );
}

#[test]
fn a_mistyped_operator_is_answered_with_the_nearest() {
    for operator in Operator::ALL {
        assert_eq!(operator.to_string().parse(), Ok(operator));
    }
    let cases = "
        in → In
        notin → NotIn
        NotInn → NotIn
        Exist → Exists
        NotExists → Exists
        DoesntExist → DoesNotExist
        gte → Gte
        >= → Gte
        < → Lt
        == → In
        != → NotIn
    ";
    for (text, expected) in lines(cases).map(arrow) {
        let error = text.parse::<Operator>().unwrap_err();
        assert_eq!(error.to_string(), format!("`{text}` is not an operator: write {expected}"));
    }
    let told = Operator::deserialize(IntoDeserializer::<Error>::into_deserializer("notin"));
    assert_eq!(told.unwrap_err().to_string(), "`notin` is not an operator: write NotIn");
    let read = Operator::deserialize(IntoDeserializer::<Error>::into_deserializer("Gte"));
    assert_eq!(read, Ok(Operator::Gte));
    assert!("".parse::<Operator>().is_err() && "x".repeat(100_000).parse::<Operator>().is_err());
}

#[test]
fn an_old_name_and_the_new_one_are_one_key() {
    let vocabulary = Vocabulary::new();
    assert_eq!(vocabulary.key("beta.kubernetes.io/arch"), vocabulary.key(label::ARCH));
    assert_eq!(&*vocabulary.key_text(vocabulary.key("beta.kubernetes.io/arch")), label::ARCH);
    let both = requirements(
        "failure-domain.beta.kubernetes.io/zone In a b, topology.kubernetes.io/zone In b c",
        &vocabulary,
    );
    assert_eq!(shown(&both.written(&vocabulary)), "topology.kubernetes.io/zone In [b]");
}

#[test]
fn a_vocabulary_is_shared_without_confusion() {
    let vocabulary = Vocabulary::new();
    let texts: Vec<String> = (0..200).map(|it| it.to_string()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for text in &texts {
                    assert_eq!(&*vocabulary.value_text(vocabulary.value(text)), text);
                    assert_eq!(&*vocabulary.key_text(vocabulary.key(text)), text);
                }
            });
        }
    });
    assert_eq!(vocabulary.value("7"), vocabulary.value("7"));
    assert_eq!(vocabulary.value("-7").integer(), Some(-7));
    for text in ["07", "+7", "-0", "", "-", "7.0", "9223372036854775808", "٧"] {
        assert_eq!(vocabulary.value(text).integer(), None, "{text}");
    }
    // Another's number is answered, though not with sense.
    assert_eq!(&*Vocabulary::new().value_text(vocabulary.value("7")), "?");
}

#[test]
fn what_is_offered_meets_what_is_asked() {
    // zone is a label that a new machine may yet get; team is not.
    let cases = "
        zone In a b | zone In b c → fine
        zone In a | zone In b → zone
        zone In a, arch In arm64 | zone In b, arch In amd64 → arch zone
        arch In arm64 | zone In b → fine
        arch In arm64 | zone In b, arch In amd64 → arch
        arch In arm64 | team In b → team
        arch In arm64 | team NotIn b → fine
        arch In arm64 | team DoesNotExist → fine
        arch In arm64 | team Exists → team
        arch In arm64 | team Gt 3 → team
        arch In arm64 | zone DoesNotExist → fine
        arch In arm64 | zone Gt 3, zone Lt 4 → zone
        team Exists | team DoesNotExist → team
        team NotIn a | team DoesNotExist → fine
        team NotIn a | team NotIn b → fine
        team NotIn | team In b → fine
        cpu In 4 | cpu Gt 3 → fine
        cpu In 4 | cpu Gt 4 → cpu
    ";
    let vocabulary = Vocabulary::new();
    let zone = vocabulary.key("zone");
    for (sides, expected) in lines(cases).map(arrow) {
        let (offered, asked) = sides.split_once('|').unwrap();
        let (offered, asked) =
            (requirements(offered, &vocabulary), requirements(asked, &vocabulary));
        let clashes = offered.clashes(&asked, Undefined::Allowed(&|key| key == zone));
        let mut keys: Vec<_> = clashes.iter().map(|it| vocabulary.key_text(it.key)).collect();
        keys.sort();
        let answer = if keys.is_empty() { "fine".to_owned() } else { keys.join(" ") };
        assert_eq!(answer, expected, "{sides}");
    }

    let offered = requirements("arch In arm64", &vocabulary);
    let asked = requirements("zone In b", &vocabulary);
    assert!(offered.compatible_with(&asked, Undefined::Allowed(&|key| key == zone)));
    assert!(!offered.compatible_with(&asked, Undefined::Denied));
    let clash = offered.compatible(&asked, Undefined::Denied).unwrap_err();
    assert_eq!((clash.key, clash.have), (zone, None));
    assert_eq!(shown(&clash.asked.written("zone", &vocabulary)), "zone In [b]");
}

#[test]
fn requirements_are_read_sorted_by_text() {
    let vocabulary = Vocabulary::new();
    // Interned in another order, on purpose.
    for text in ["z", "y", "b", "a"] {
        vocabulary.key(text);
        vocabulary.value(text);
    }
    let all = requirements("z In z b a, a Gt 3, b NotIn, a Lt 9, a NotIn 5, b NotIn", &vocabulary);
    assert_eq!(
        shown(&all.written(&vocabulary)),
        "a Gte 4 & a Lte 8 & a NotIn [5] & b NotIn [] & z In [a, b, z]"
    );
    assert_eq!(Requirements::read(&all.written(&vocabulary), &vocabulary), all);
    assert_eq!(all.iter().len(), 3);
    let keys: Vec<Key> = all.iter().map(|(key, _)| key).collect();
    assert!(keys.is_sorted());
}

#[test]
fn setting_replaces_and_adding_narrows() {
    let vocabulary = Vocabulary::new();
    let zone = vocabulary.key("zone");
    let mut all = requirements("zone In a b", &vocabulary);
    all.add(zone, &requirement("In b c", &vocabulary));
    assert_eq!(shown(&all.written(&vocabulary)), "zone In [b]");
    all.set(zone, requirement("In c", &vocabulary));
    assert_eq!(shown(&all.written(&vocabulary)), "zone In [c]");
    assert_eq!(all.get(zone), Some(&requirement("In c", &vocabulary)));
    assert_eq!(all.get(vocabulary.key("arch")), None);
}

#[test]
fn the_larger_number_of_values_is_wanted() {
    let vocabulary = Vocabulary::new();
    let cases = "
        Exists min 3 & In a b c d min 2 → k In [a, b, c, d], 3 values at least
        Exists & In a b min 2 → k In [a, b], 2 values at least
        NotIn min 2 → k NotIn [], 2 values at least
    ";
    for (asked, expected) in lines(cases).map(arrow) {
        let read = requirement(asked, &vocabulary);
        assert_eq!(shown(&read.written("k", &vocabulary)), expected);
    }
}

#[test]
fn machines_are_counted_by_the_values_they_offer() {
    let vocabulary = Vocabulary::new();
    let machines = [
        "family In m5, zone In a b",
        "family In m5, zone In b c",
        "family In m6, zone In d",
        "zone NotIn e",
    ]
    .map(|it| requirements(it, &vocabulary));
    let short = |asked: &str| requirements(asked, &vocabulary).min_values_short(&machines);
    let key = |text| vocabulary.key(text);

    assert_eq!(short("family Exists min 2, zone Exists min 4, arch In a b"), []);
    assert_eq!(
        short("family Exists min 3, zone In a b min 2"),
        [MinValuesShort { key: key("family"), have: 2, need: 3 }]
    );
    // What the asker excludes does not count.
    assert_eq!(
        short("zone NotIn a min 4"),
        [MinValuesShort { key: key("zone"), have: 3, need: 4 }]
    );
    assert_eq!(short("arch Exists min 1"), [MinValuesShort { key: key("arch"), have: 0, need: 1 }]);
}
