//! What do machines cost, by the shipped table and by a user's own?

use nodemolt_fit::pool::Price;
use nodemolt_fit::prices::{
    Currency, Prices, SHIPPED_PRICES, decimal, price, read, region_of_zone, write,
};
use sha2::{Digest, Sha256};

/// The pinned figures of the generator's last run: an edit by hand changes one of them.
const MODULE_SUM: &str = "h1:WGtIQTQcxpElYMdWfWuPwaF2+9muR+hYhPZsTtoY8Gs=";
const REGIONS: [(&str, usize, &str); 4] = [
    ("cn-north-1", 316, "2024-11-06"),
    ("us-east-1", 1361, "2026-07-06"),
    ("us-gov-east-1", 503, "2026-06-15"),
    ("us-gov-west-1", 724, "2026-06-15"),
];

#[test]
fn the_shipped_table_is_what_its_header_says() {
    let header: Vec<&str> = SHIPPED_PRICES.lines().take_while(|it| it.starts_with('#')).collect();
    let body: String =
        SHIPPED_PRICES.split_inclusive('\n').filter(|it| !it.starts_with('#')).collect();
    assert!(header.contains(&format!("# module sum: {MODULE_SUM}").as_str()));
    assert!(header.contains(&format!("# body sha256: {:x}", Sha256::digest(&body)).as_str()));
    let prices = Prices::shipped();
    assert_eq!(prices.regions.len(), REGIONS.len());
    for (region, count, date) in REGIONS {
        assert_eq!(prices.regions[region].len(), count, "{region}");
        let currency = Currency::of_region(region).code();
        let line = format!("# {region}: {count} types, {currency}, as of {date}");
        assert!(header.contains(&line.as_str()), "{line}");
    }
    let (names, rows) = write(prices);
    assert_eq!((format!("# {names}").as_str(), &rows), (*header.last().unwrap(), &body));
}

#[test]
fn known_prices_are_there() {
    let known = |region: &str, name: &str| Prices::shipped().regions[region].get(name).copied();
    assert_eq!(known("us-east-1", "m5.large"), Some(Price(96_000_000)));
    assert_eq!(known("us-gov-west-1", "c5.large"), Some(Price(102_000_000)));
    assert_eq!(known("us-gov-east-1", "a1.large"), None);
    assert_eq!(Currency::of_region("cn-north-1"), Currency::Yuan);
}

#[test]
fn a_price_is_a_plain_decimal_number() {
    for (text, expected) in [
        ("0.0960000000", Some(96_000_000)),
        ("0.0000000001", Some(0)),
        ("12", Some(12_000_000_000)),
        ("18446744074", None),
        ("", None),
        (".5", None),
        ("-1", None),
        ("1e3", None),
        ("0.1é", None),
        ("NaN", None),
    ] {
        assert_eq!(price(text), expected.map(Price), "{text}");
    }
    for amount in [0, 1, 96_000_000, 1_500_000_000, u64::MAX] {
        assert_eq!(price(&decimal(Price(amount))), Some(Price(amount)));
    }
}

#[test]
fn the_region_of_a_zone_ends_with_its_first_number() {
    for (zone, region) in [
        ("us-east-1a", Some("us-east-1")),
        ("us-gov-west-1b", Some("us-gov-west-1")),
        ("ap-southeast-2c", Some("ap-southeast-2")),
        ("us-west-2-lax-1a", Some("us-west-2")),
        ("us-east-1-wl1-bos-wlz-1", Some("us-east-1")),
        ("cn-north-1a", Some("cn-north-1")),
        ("zone-1", None),
        ("use1-az1", None),
        ("", None),
        ("-", None),
        ("1", None),
    ] {
        assert_eq!(region_of_zone(zone), region, "{zone}");
    }
}

#[test]
fn a_users_table_may_have_commas_and_gaps() {
    let prices =
        read("type, eu-central-1, eu-west-1\nm5.large, 0.115,\nm5.xlarge,,0.214\n").unwrap();
    assert_eq!(prices.regions["eu-central-1"].len(), 1);
    assert_eq!(prices.regions["eu-west-1"]["m5.xlarge"], Price(214_000_000));
    for (text, line, what) in [
        ("m5.large,0.1", 1, "expected a row `type`"),
        ("type,eu-west-1\nm5.large,cheap", 2, "`cheap` is not a price"),
        ("type,eu-west-1\nm5.large,1,2", 2, "expected a type and 1 price"),
        ("type,eu-west-1,\nm5.large,1", 1, "is not a region"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.what.contains(what), "{error}");
    }
}
