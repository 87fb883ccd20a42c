//! Whatever is written: an answer, and the same one twice.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use nodemolt_fit::{Operator, Quantity, Requirements, Vocabulary, Written};
use proptest::{collection::vec, prelude::*, sample::select};

#[path = "support/fuzz.rs"]
mod fuzz;

/// Few keys, so that they meet; and what is nearly a key or a number.
const KEYS: [&str; 8] =
    ["k", "karpenter.k8s.aws/instance-cpu", "K", "", "/", "a/b/c", "-k", "kubernetes.io/arch"];

const VALUES: [&str; 18] = [
    "a",
    "b",
    "",
    "0",
    "-0",
    "+1",
    "01",
    "1",
    "2",
    "3",
    "-1",
    " 1",
    "1.5",
    "0x1",
    "1e3",
    "१",
    "9223372036854775807",
    "-9223372036854775808",
];

fn text(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(words).prop_map(str::to_owned),
        1 => any::<i64>().prop_map(|it| it.to_string()),
        1 => fuzz::like("(?s).{0,12}"),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let operator = prop_oneof![
        4 => select(Operator::ALL.as_slice()),
        1 => fuzz::like("(?s).{0,12}").prop_map(|it| it.parse().unwrap_or_else(|it: nodemolt_fit::ParseOperatorError| it.nearest)),
    ];
    (text(&KEYS), operator, vec(text(&VALUES), 0..5), any::<Option<u32>>()).prop_map(
        |(key, operator, values, min_values)| Written { key, operator, values, min_values },
    )
}

proptest! {
    #![proptest_config(fuzz::config(20_000))]

    #[test]
    fn whatever_is_written_has_an_answer(
        left in vec(written(), 0..4),
        right in vec(written(), 0..3),
    ) {
        for written in left.iter().chain(&right) {
            prop_assert!(!written.to_string().is_empty());
            let _ = written.check().map_err(|it| it.to_string());
        }
        let vocabulary = Vocabulary::new();
        let [a, b] = [&left, &right].map(|it| Requirements::read(it, &vocabulary));
        for read in [&a, &b] {
            prop_assert_eq!(&Requirements::read(&read.written(&vocabulary), &vocabulary), read);
            prop_assert!(read.within(read));
        }
        let both = a.intersect(&b);
        prop_assert_eq!(&b.intersect(&a), &both);
        prop_assert_eq!(&both.intersect(&a), &both);
        prop_assert!(both.within(&a) && both.within(&b));
        let together = [left, right].concat();
        prop_assert_eq!(Requirements::read(&together, &vocabulary), both);
    }

    #[test]
    fn any_text_is_a_quantity_or_is_refused(
        text in prop_oneof![
            fuzz::like("(?s).{0,12}"),
            fuzz::like("[-+]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,30}"),
        ],
    ) {
        match text.parse::<Quantity>() {
            Ok(read) => prop_assert_eq!(read.to_string().parse::<Quantity>().unwrap(), read),
            Err(error) => prop_assert!(error.to_string().contains("is not a quantity")),
        }
    }
}
