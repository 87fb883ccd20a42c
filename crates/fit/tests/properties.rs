//! The laws. Requirements are held against a model that knows only what each operator means for one
//! label on one machine; quantities against exact fractions.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{collections::BTreeSet, num::NonZeroU64};

use nodemolt_fit::{
    Key, Operator, Quantity, Requirement, Requirements, Undefined, Vocabulary, Written,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// What a label of one machine may be: `None` is absent.
type Outcome = Option<String>;

/// Words that the generators put into requirements.
const WORDS: [&str; 14] = ["a", "b", "c", "", "05", "+5", "-0", "-1", "0", "1", "2", "3", "4", "5"];

const BOUNDS: [i64; 12] =
    [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 2, 3, 4, 5, i64::MAX - 1, i64::MAX];

/// Finite, and yet enough to tell any two sets apart that the generators can make: every word, every
/// integer at or beside a bound, and one each that no requirement mentions (a text, an integer far
/// below, one far above).
fn universe() -> Vec<Outcome> {
    let near = (-5..=8).chain(i64::MIN..=i64::MIN + 3).chain(i64::MAX - 3..=i64::MAX);
    let integers = near.chain([-1000, 1000]).map(|it| it.to_string());
    let words = WORDS.into_iter().chain(["unmentioned", "99999999999999999999"]);
    let texts: BTreeSet<String> = words.map(str::to_owned).chain(integers).collect();
    [None].into_iter().chain(texts.into_iter().map(Some)).collect()
}

fn integer(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|it| it.to_string() == text)
}

/// What the operator means, told of one machine.
fn meets(outcome: &Outcome, written: &Written) -> bool {
    let listed = outcome.as_ref().is_some_and(|it| written.values.contains(it));
    let number = outcome.as_deref().and_then(integer);
    let bound = written.values.first().and_then(|it| it.parse::<i64>().ok());
    let compared = number.zip(bound);
    match written.operator {
        Operator::In => listed,
        Operator::NotIn => !listed,
        Operator::Exists => outcome.is_some(),
        Operator::DoesNotExist => outcome.is_none(),
        Operator::Gt => compared.is_some_and(|(number, bound)| number > bound),
        Operator::Lt => compared.is_some_and(|(number, bound)| number < bound),
        Operator::Gte => compared.is_some_and(|(number, bound)| number >= bound),
        Operator::Lte => compared.is_some_and(|(number, bound)| number <= bound),
    }
}

fn model(all: &[Written]) -> BTreeSet<Outcome> {
    universe().into_iter().filter(|it| all.iter().all(|written| meets(it, written))).collect()
}

fn read(all: &[Written], vocabulary: &Vocabulary) -> Requirement {
    all.iter()
        .map(|it| Requirement::read(it, vocabulary))
        .fold(Requirement::anything(), |all, it| all.intersect(&it))
}

fn outcomes(requirement: &Requirement, vocabulary: &Vocabulary) -> BTreeSet<Outcome> {
    let admits = |it: &Outcome| match it {
        Some(text) => requirement.admits(vocabulary.value(text)),
        None => requirement.admits_absent(),
    };
    universe().into_iter().filter(admits).collect()
}

prop_compose! {
    fn one_about(key: &'static str)(
        operator in select(Operator::ALL.as_slice()),
        words in vec(select(WORDS.as_slice()), 0..9),
        bound in select(BOUNDS.as_slice()),
        min_values in option::weighted(0.2, 1..6_u32),
    ) -> Written {
        let values = match operator {
            Operator::In | Operator::NotIn => words.into_iter().map(str::to_owned).collect(),
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => vec![bound.to_string()],
        };
        Written { key: key.to_owned(), operator, values, min_values }
    }
}

/// What is hard: a short range of which much has been excluded.
fn narrow() -> impl Strategy<Value = Vec<Written>> {
    let integers = WORDS.into_iter().filter(|it| integer(it).is_some()).collect::<Vec<_>>();
    let excluded = vec(prop_oneof![3 => select(integers), 1 => select(WORDS.as_slice())], 0..8);
    (-1..3_i64, 0..6_i64, excluded).prop_map(|(low, more, excluded)| {
        let say =
            |operator, values| Written { key: "k".to_owned(), operator, values, min_values: None };
        vec![
            say(Operator::Gte, vec![low.to_string()]),
            say(Operator::Lte, vec![(low + more).to_string()]),
            say(Operator::NotIn, excluded.into_iter().map(str::to_owned).collect()),
        ]
    })
}

/// The same numbers, one by one, or some of them.
fn list() -> impl Strategy<Value = Vec<Written>> {
    vec(select(WORDS.as_slice()), 0..24).prop_map(|words| {
        let values = words.into_iter().map(str::to_owned).collect();
        vec![Written { key: "k".to_owned(), operator: Operator::In, values, min_values: None }]
    })
}

fn some() -> impl Strategy<Value = Vec<Written>> {
    prop_oneof![2 => vec(one_about("k"), 0..4), 2 => narrow(), 1 => list()]
}

fn several() -> impl Strategy<Value = Vec<Written>> {
    vec(prop_oneof![one_about("x"), one_about("y"), one_about("z")], 0..5)
}

fn about(all: &[Written], key: &str) -> Vec<Written> {
    all.iter().filter(|it| it.key == key).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn a_requirement_allows_what_its_parts_allow_together(all in some()) {
        let vocabulary = Vocabulary::new();
        let requirement = read(&all, &vocabulary);
        prop_assert_eq!(outcomes(&requirement, &vocabulary), model(&all));
        prop_assert_eq!(requirement.nothing(), model(&all).is_empty());
        let min_values = all.iter().filter_map(|it| it.min_values).max();
        prop_assert_eq!(requirement.min_values(), min_values);
    }

    #[test]
    fn intersecting_does_not_depend_on_the_order(a in some(), b in some(), c in some()) {
        let vocabulary = Vocabulary::new();
        let [a, b, c] = [a, b, c].map(|it| read(&it, &vocabulary));
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(a.intersect(&a), a.clone());
        prop_assert_eq!(a.intersect(&Requirement::anything()), a);
    }

    #[test]
    fn requirements_intersect_if_something_meets_both(a in some(), b in some()) {
        let vocabulary = Vocabulary::new();
        let (left, right) = (read(&a, &vocabulary), read(&b, &vocabulary));
        let both = left.intersect(&right);
        prop_assert_eq!(left.intersects(&right), !both.nothing());
        prop_assert_eq!(right.intersects(&left), !both.nothing());
        prop_assert_eq!(both.nothing(), model(&a).is_disjoint(&model(&b)));
        prop_assert_eq!(
            outcomes(&both, &vocabulary),
            model(&a).intersection(&model(&b)).cloned().collect::<BTreeSet<_>>()
        );
        prop_assert!(both.within(&left) && both.within(&right));
    }

    #[test]
    fn within_is_being_a_subset(a in some(), b in some()) {
        let vocabulary = Vocabulary::new();
        let (left, right) = (read(&a, &vocabulary), read(&b, &vocabulary));
        prop_assert_eq!(left.within(&right), model(&a).is_subset(&model(&b)));
        prop_assert!(left.within(&left));
        prop_assert_eq!(left.within(&right), left.intersect(&right).within(&left)
            && left.within(&left.intersect(&right)));
    }

    #[test]
    fn what_is_written_reads_as_the_same(all in some()) {
        let vocabulary = Vocabulary::new();
        let requirement = read(&all, &vocabulary);
        let written = requirement.written("k", &vocabulary);
        prop_assert_eq!(read(&written, &vocabulary), requirement);
        // In another vocabulary the numbers differ, and a person must not see it.
        let other = Vocabulary::new();
        for text in WORDS.iter().rev() {
            other.value(text);
        }
        prop_assert_eq!(read(&all, &other).written("k", &other), written);
    }

    #[test]
    fn several_labels_are_read_back_as_the_same(all in several(), more in several()) {
        let vocabulary = Vocabulary::new();
        let [left, right] = [&all, &more].map(|it| Requirements::read(it, &vocabulary));
        prop_assert_eq!(&Requirements::read(&left.written(&vocabulary), &vocabulary), &left);
        let together: Vec<Written> = all.iter().chain(&more).cloned().collect();
        prop_assert_eq!(left.intersect(&right), Requirements::read(&together, &vocabulary));
        prop_assert_eq!(left.intersect(&right), right.intersect(&left));
        let mut reversed = all.clone();
        reversed.reverse();
        prop_assert_eq!(Requirements::read(&reversed, &vocabulary), left);
    }

    #[test]
    fn offered_and_asked_agree_if_every_label_can(
        offered in several(),
        asked in several(),
        allowed in vec(select(["x", "y", "z"].as_slice()), 0..3),
        denied in any::<bool>(),
    ) {
        let vocabulary = Vocabulary::new();
        let may_become = |key: Key| allowed.iter().any(|it| vocabulary.key(it) == key);
        let undefined = if denied { Undefined::Denied } else { Undefined::Allowed(&may_become) };
        let possible = |key: &str| {
            let about = about(&offered, key);
            let open = !denied && allowed.contains(&key);
            if about.is_empty() && !open { BTreeSet::from([None]) } else { model(&about) }
        };
        let expected: Vec<&str> = ["x", "y", "z"]
            .into_iter()
            .filter(|key| asked.iter().any(|it| it.key == *key))
            .filter(|key| possible(key).is_disjoint(&model(&about(&asked, key))))
            .collect();

        let (have, want) =
            (Requirements::read(&offered, &vocabulary), Requirements::read(&asked, &vocabulary));
        let clashes = have.clashes(&want, undefined);
        let mut keys: Vec<_> = clashes.iter().map(|it| vocabulary.key_text(it.key)).collect();
        keys.sort();
        prop_assert_eq!(keys.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), expected.clone());
        prop_assert_eq!(have.compatible_with(&want, undefined), expected.is_empty());
        let first = have.compatible(&want, undefined).err();
        prop_assert_eq!(first.as_deref(), clashes.first());
        for clash in &clashes {
            prop_assert_eq!(clash.have.as_ref(), have.get(clash.key));
            prop_assert_eq!(Some(&clash.asked), want.get(clash.key));
        }
    }

    #[test]
    fn too_few_values_are_counted_as_one_would(
        asked in several(),
        machines in vec(several(), 0..4),
    ) {
        let vocabulary = Vocabulary::new();
        let want = Requirements::read(&asked, &vocabulary);
        let offers: Vec<_> = machines.iter().map(|it| Requirements::read(it, &vocabulary)).collect();
        let mut expected = Vec::new();
        for (key, requirement) in want.iter() {
            let Some(need) = requirement.min_values() else { continue };
            let text = vocabulary.key_text(key);
            let allowed = model(&about(&asked, &text));
            // A machine names values if some `In` does: then those of the model, else none.
            let named = machines.iter().map(|it| about(it, &text));
            let named = named.filter(|it| it.iter().any(|it| it.operator == Operator::In));
            let seen: BTreeSet<Outcome> = named.flat_map(|it| model(&it)).collect();
            let have = u32::try_from(seen.intersection(&allowed).count()).unwrap();
            if have < need {
                expected.push((key, have, need));
            }
        }
        let short = want.min_values_short(&offers);
        prop_assert_eq!(
            short.iter().map(|it| (it.key, it.have, it.need)).collect::<Vec<_>>(),
            expected
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Over all pairs of outcomes: a machine has one for each label.
    #[test]
    fn several_within_several_is_being_a_subset(
        a in vec(prop_oneof![one_about("x"), one_about("y")], 0..4),
        b in vec(prop_oneof![one_about("x"), one_about("y")], 0..4),
    ) {
        let vocabulary = Vocabulary::new();
        let [ax, ay, bx, by] =
            [(&a, "x"), (&a, "y"), (&b, "x"), (&b, "y")].map(|(it, key)| model(&about(it, key)));
        let expected = ax
            .iter()
            .flat_map(|x| ay.iter().map(move |y| (x, y)))
            .all(|(x, y)| bx.contains(x) && by.contains(y));
        let [left, right] = [&a, &b].map(|it| Requirements::read(it, &vocabulary));
        prop_assert_eq!(left.within(&right), expected);
        prop_assert_eq!(left.nothing(), ax.is_empty() || ay.is_empty());
    }
}

const SUFFIXES: [(&str, i128, i128); 16] = [
    ("n", 1, 1_000_000_000),
    ("u", 1, 1_000_000),
    ("m", 1, 1_000),
    ("", 1, 1),
    ("k", 1_000, 1),
    ("M", 1_000_000, 1),
    ("G", 1_000_000_000, 1),
    ("T", 1_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000, 1),
    ("Ki", 1 << 10, 1),
    ("Mi", 1 << 20, 1),
    ("Gi", 1 << 30, 1),
    ("Ti", 1 << 40, 1),
    ("Pi", 1 << 50, 1),
    ("Ei", 1 << 60, 1),
];

const BILLION: i128 = 1_000_000_000;

/// A text, and what it is worth in billionths, by plain fractions.
fn valued() -> impl Strategy<Value = (String, i128)> {
    let suffix = prop_oneof![
        select(SUFFIXES.as_slice()).prop_map(|(text, up, down)| (text.to_owned(), up, down)),
        (0..16_u32, any::<bool>()).prop_map(|(power, capital)| {
            (format!("{}{power}", if capital { "E" } else { "e" }), 10_i128.pow(power), 1)
        }),
        (1..12_u32).prop_map(|power| (format!("e-{power}"), 1, 10_i128.pow(power))),
    ];
    ("[-+]?", "[0-9]{1,5}", option::of("[0-9]{0,5}"), suffix).prop_map(
        |(sign, whole, fraction, (suffix, up, down))| {
            let digits = fraction.clone().unwrap_or_default();
            let number: i128 = format!("{whole}{digits}").parse().unwrap();
            let down = down * 10_i128.pow(u32::try_from(digits.len()).unwrap());
            let over = number * up * BILLION;
            let mut nanos = over / down + i128::from(over % down != 0);
            if suffix.ends_with('i') {
                nanos = nanos.min(i128::from(i64::MAX) * BILLION);
            }
            let point = fraction.map(|it| format!(".{it}")).unwrap_or_default();
            let nanos = if sign == "-" { -nanos } else { nanos };
            (format!("{sign}{whole}{point}{suffix}"), nanos)
        },
    )
}

fn of_nanos(nanos: i128) -> Quantity {
    format!("{nanos}n").parse().unwrap()
}

/// Twice a decimal text, digit by digit as at school.
fn doubled(text: &str) -> String {
    let mut carry = 0;
    let mut digits: Vec<char> = Vec::new();
    for it in text.chars().rev() {
        let Some(digit) = it.to_digit(10) else {
            digits.push(it);
            continue;
        };
        let twice = digit * 2 + carry;
        carry = twice / 10;
        digits.push(char::from_digit(twice % 10, 10).unwrap());
    }
    digits.extend(char::from_digit(carry, 10));
    digits.into_iter().rev().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn a_quantity_is_worth_what_its_fraction_is((text, nanos) in valued()) {
        let read: Quantity = text.parse().unwrap();
        prop_assert_eq!(read, of_nanos(nanos));
        prop_assert_eq!(read.negative(), nanos < 0);
        prop_assert_eq!(read.ceil_units(), nanos.div_euclid(BILLION)
            + i128::from(nanos.rem_euclid(BILLION) > 0));
        let up = -((-nanos).div_euclid(1_000_000));
        prop_assert_eq!(read.ceil_millis(), up);
        let shown = read.to_string();
        prop_assert_eq!(shown.parse::<Quantity>().unwrap(), read);
        prop_assert!(!shown.contains('.') && !shown.starts_with('+'));
    }

    #[test]
    fn quantities_compare_and_add_as_fractions_do(
        (left, left_nanos) in valued(),
        (right, right_nanos) in valued(),
        numerator in -1_000_000..1_000_000_i64,
        denominator in 1..1_000_000_u64,
    ) {
        let [a, b]: [Quantity; 2] = [left.parse().unwrap(), right.parse().unwrap()];
        prop_assert_eq!(a.cmp(&b), left_nanos.cmp(&right_nanos));
        prop_assert_eq!(a.checked_add(b), left_nanos.checked_add(right_nanos).map(of_nanos));
        prop_assert_eq!(a.checked_sub(b), left_nanos.checked_sub(right_nanos).map(of_nanos));
        prop_assert_eq!(a.saturating_add(b), of_nanos(left_nanos.saturating_add(right_nanos)));
        prop_assert_eq!(a.saturating_sub(b), of_nanos(left_nanos.saturating_sub(right_nanos)));
        if let Some(over) = left_nanos.checked_mul(i128::from(numerator)) {
            let expected = -((-over).div_euclid(i128::from(denominator)));
            let denominator = NonZeroU64::new(denominator).unwrap();
            prop_assert_eq!(a.times_ceil(numerator, denominator), of_nanos(expected));
        }
    }

    #[test]
    fn every_amount_is_shown_so_that_it_reads_the_same(
        nanos in any::<i128>(),
        shift in 0..127_u32,
        form in select(["0", "1Ki", "1e3"].as_slice()),
    ) {
        let nanos = (nanos >> shift).max(-i128::MAX);
        let form: Quantity = form.parse().unwrap();
        let amount = form.saturating_add(of_nanos(nanos));
        prop_assert_eq!(amount.to_string().parse::<Quantity>().unwrap(), amount);
        let negative = form.saturating_sub(of_nanos(nanos));
        prop_assert_eq!(negative.to_string().parse::<Quantity>().unwrap(), negative);
    }

    /// However many digits: the binary suffix doubles, the point moves.
    #[test]
    fn long_fractions_are_exact(
        whole in "[0-9]{1,9}",
        fraction in "[0-9]{1,80}",
        binary in select([("Ki", 10), ("Mi", 20), ("Gi", 30)].as_slice()),
        places in 0..20_usize,
    ) {
        let number = format!("{whole}.{fraction}");
        let (suffix, doublings) = binary;
        let plain = (0..doublings).fold(number.clone(), |it, _| doubled(&it));
        let read = |text: String| text.parse::<Quantity>().unwrap();
        prop_assert_eq!(read(format!("{number}{suffix}")), read(plain));
        let moved = format!("0.{}{whole}{fraction}", "0".repeat(places));
        let exponent = places + whole.len();
        prop_assert_eq!(read(format!("{moved}e{exponent}")), read(number));
    }
}
