#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::num::NonZeroU64;

use nodemolt_fit::Quantity;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

/// Each line: what is written, and what is shown.
fn check(cases: &str) {
    for line in cases.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (written, shown) = line.split_once(" → ").unwrap();
        let read = quantity(written);
        assert_eq!(read.to_string(), shown, "{written}");
        assert_eq!(quantity(shown), read, "{shown} is read back as something else");
    }
}

/// Each line: what is written, and what is answered.
fn refused(cases: &str) {
    for line in cases.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (written, answer) = line.split_once(" → ").unwrap();
        let error = written.trim_matches('"').parse::<Quantity>().unwrap_err();
        assert_eq!(error.to_string(), answer, "{written}");
    }
}

#[test]
fn a_quantity_is_shown_as_kubectl_shows_it() {
    check(
        "
        0 → 0
        00 → 0
        -0 → 0
        0Ki → 0
        0e99999999999999999999 → 0
        1 → 1
        +1 → 1
        -1 → -1
        007 → 7
        0.5 → 500m
        .5 → 500m
        5. → 5
        1.5 → 1500m
        1500m → 1500m
        1000m → 1
        1.2345 → 1234500u
        100n → 100n
        1000n → 1u
        1000u → 1m
        4k → 4k
        1500k → 1500k
        4000 → 4k
        1M → 1M
        1.5G → 1500M
        1T → 1T
        1P → 1P
        1E → 1E
        1000E → 1e21
        1024 → 1024
        1Ki → 1Ki
        1024Ki → 1Mi
        1.5Gi → 1536Mi
        0.5Ki → 512
        0.9765625Ki → 1k
        1000Ki → 1000Ki
        1025Ki → 1025Ki
        1Gi → 1Gi
        1024Gi → 1Ti
        1Pi → 1Pi
        1Ei → 1Ei
        -2Gi → -2Gi
        .5Gi → 512Mi
        2.Gi → 2Gi
        1.0001Ki → 1024102400u
        0.0001Ki → 102400u
        1e3 → 1e3
        1E3 → 1e3
        1e+3 → 1e3
        1.5e3 → 1500
        12e6 → 12e6
        12000e3 → 12e6
        1e-3 → 1e-3
        1e0 → 1
        ",
    );
}

#[test]
fn what_is_too_fine_is_rounded_away_from_zero() {
    check(
        "
        0.9n → 1n
        1.1n → 2n
        -0.1n → -1n
        1e-10 → 1e-9
        1e-9999999999 → 1e-9
        0.0000000001 → 1n
        1.0000000001 → 1000000001n
        0.00000000000000000001Ki → 1n
        1.00000000000000000000000000000000001Gi → 1073741824000000001n
        ",
    );
}

#[test]
fn what_is_too_large_becomes_the_largest() {
    let largest = "170141183460469231731687303715884105727n";
    for text in ["1e1000000000", "1e99999999999999999999", "999999999999E", largest] {
        assert_eq!(quantity(text), quantity(largest), "{text}");
        assert_eq!(quantity(&format!("-{text}")), quantity(&format!("-{largest}")), "{text}");
        assert_eq!(quantity(&quantity(text).to_string()), quantity(largest), "{text}");
    }
    let thousand_nines = "9".repeat(1000);
    assert_eq!(quantity(&thousand_nines).to_string(), largest);
    assert_eq!(quantity(&format!("0.{thousand_nines}")), quantity("1"));
    assert_eq!(quantity(&format!("{}1", "0".repeat(1000))), quantity("1"));
    assert_eq!(quantity(&format!("0.{}1", "0".repeat(1000))), quantity("1n"));

    // Only what has a binary suffix is capped at 2^63-1, as in Kubernetes.
    assert_eq!(quantity("8Ei").to_string(), "9223372036854775807");
    assert_eq!(quantity("-8Ei").to_string(), "-9223372036854775807");
    assert_eq!(quantity(&format!("{thousand_nines}Ki")), quantity("9223372036854775807"));
    assert_eq!(quantity("18446744073709551616").to_string(), "18446744073709551616");
    assert_eq!(quantity("100E"), quantity("1e20"));
}

#[test]
fn a_wrong_text_is_answered_with_a_right_one() {
    refused(
        r#"
        "" → `` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        . → `.` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        - → `-` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        +-1 → `+-1` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        Gi → `Gi` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        " 1" → ` 1` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        1GB → `1GB` is not a quantity: there is no unit `GB`, write `G` or `Gi`
        1 Gi → `1 Gi` is not a quantity: there is no unit ` Gi`, write `G` or `Gi`
        1K → `1K` is not a quantity: there is no unit `K`, write `k` or `Ki`
        1gi → `1gi` is not a quantity: there is no unit `gi`, write `G` or `Gi`
        1e → `1e` is not a quantity: there is no unit `e`, write `E` or `Ei`
        1mm → `1mm` is not a quantity: there is no unit `mm`, write `m`, `k`, `M`, `G`, `Ki`, `Mi` or `Gi`
        1.2.3 → `1.2.3` is not a quantity: there is no unit `.3`, write `m`, `k`, `M`, `G`, `Ki`, `Mi` or `Gi`
        1e3.5 → `1e3.5` is not a quantity: there is no unit `e3.5`, write `m`, `k`, `M`, `G`, `Ki`, `Mi` or `Gi`
        1e3Ki → `1e3Ki` is not a quantity: there is no unit `e3Ki`, write `m`, `k`, `M`, `G`, `Ki`, `Mi` or `Gi`
        ١ → `١` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        "#,
    );
    let long = format!("1{}", "x".repeat(1000));
    assert!(long.parse::<Quantity>().unwrap_err().to_string().len() < 250);
}

#[test]
fn equal_amounts_are_equal_however_they_were_written() {
    assert_eq!(quantity("1Ki"), quantity("1024"));
    assert_eq!(quantity("1e3"), quantity("1k"));
    assert!(quantity("1Gi") > quantity("1G"));
    assert!(quantity("-1") < quantity("1n"));
}

#[test]
fn rounding_up_is_towards_more() {
    assert_eq!(quantity("1500m").ceil_units(), 2);
    assert_eq!(quantity("-1500m").ceil_units(), -1);
    assert_eq!(quantity("2").ceil_units(), 2);
    assert_eq!(quantity("1n").ceil_units(), 1);
    assert_eq!(quantity("1n").ceil_millis(), 1);
    assert_eq!(quantity("1.5").ceil_millis(), 1500);
    assert_eq!(quantity("-1n").ceil_millis(), 0);
    // 7.5 % of 16 GiB.
    let thousand = NonZeroU64::new(1000).unwrap();
    assert_eq!(quantity("16Gi").times_ceil(75, thousand).to_string(), "1288490188800m");
    assert_eq!(quantity("1n").times_ceil(1, thousand), quantity("1n"));
    assert_eq!(quantity("-1n").times_ceil(1, thousand), quantity("0"));
}

#[test]
fn sums_stop_at_the_largest() {
    let largest = quantity("1e1000");
    assert_eq!(largest.saturating_add(quantity("1n")), largest);
    assert_eq!(largest.checked_add(quantity("1n")), None);
    assert_eq!(quantity("-1e1000").checked_sub(quantity("1n")), None);
    assert_eq!(quantity("-1e1000").saturating_sub(quantity("1n")), quantity("-1e1000"));
    assert_eq!(largest.times_ceil(i64::MIN, NonZeroU64::MIN), quantity("-1e1000"));
    assert_eq!(largest.times_ceil(i64::MAX, NonZeroU64::MIN), largest);
    // More bytes than Kubernetes would read behind `Ei` are shown without it.
    let sum = quantity("7Ei").saturating_add(quantity("7Ei"));
    assert_eq!(sum.to_string(), "16140901064495857664");
}

#[test]
fn a_sum_looks_like_its_parts() {
    let sum = Quantity::ZERO.saturating_add(quantity("1Gi")).saturating_add(quantity("512Mi"));
    assert_eq!(sum.to_string(), "1536Mi");
    assert_eq!(quantity("2").saturating_sub(quantity("500m")).to_string(), "1500m");
    assert_eq!(Quantity::from_millis(1930).to_string(), "1930m");
    assert_eq!(Quantity::from_units(4).to_string(), "4");
    assert_eq!(Quantity::from_bytes(1 << 30).to_string(), "1Gi");
    assert_eq!(Quantity::from_mebibytes(1536).to_string(), "1536Mi");
    assert_eq!(Quantity::from_mebibytes(i64::MAX).to_string(), "9671406556917033396600832");
    assert!(quantity("500m").saturating_sub(quantity("1")).negative());
    assert!(!Quantity::ZERO.negative() && Quantity::ZERO.zero());
}

#[test]
fn a_quantity_comes_as_text_or_as_a_bare_number() {
    use serde::{
        Deserialize,
        de::{IntoDeserializer, value::Error},
    };

    let from = |it: Result<Quantity, Error>| it.map_err(|it| it.to_string());
    assert_eq!(from(Quantity::deserialize("1Gi".into_deserializer())), Ok(quantity("1Gi")));
    assert_eq!(from(Quantity::deserialize(2_u64.into_deserializer())), Ok(quantity("2")));
    assert_eq!(from(Quantity::deserialize((-2_i64).into_deserializer())), Ok(quantity("-2")));
    assert_eq!(from(Quantity::deserialize(0.1_f64.into_deserializer())), Ok(quantity("100m")));
    assert_eq!(
        from(Quantity::deserialize("1GB".into_deserializer())),
        Err("`1GB` is not a quantity: there is no unit `GB`, write `G` or `Gi`".to_owned())
    );
    assert!(Quantity::deserialize(IntoDeserializer::<Error>::into_deserializer(f64::NAN)).is_err());
}

#[test]
fn more_than_all_leaves_nothing() {
    assert_eq!(quantity("2Gi").less(quantity("512Mi")).to_string(), "1536Mi");
    assert_eq!(quantity("2").less(quantity("70m")).to_string(), "1930m");
    assert_eq!(quantity("1").less(quantity("1E")), Quantity::ZERO);
}

#[test]
fn a_share_is_rounded_up_to_whole_units() {
    // 8192 × 0.075 = 614.4
    assert_eq!(Quantity::from_units(8192).share(75_000), Quantity::from_units(615));
    assert_eq!(Quantity::from_gibibytes(20).share(100_000).to_string(), "2Gi");
    assert_eq!(Quantity::from_gibibytes(1).share(0), Quantity::ZERO);
    assert_eq!(Quantity::from_gigabytes(75).share(1_000_000).to_string(), "75G");
}
