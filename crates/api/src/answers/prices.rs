//! What do machines cost, by AWS's own account?
//!
//! `aws pricing get-products --service-code AmazonEC2`, `aws ec2 describe-spot-price-history` or a plain
//! table `→ prices`
//!
//! A product of AWS's price list counts if it is what a node is: Linux or Windows, shared tenancy, nothing
//! installed, used and not reserved. Of spot prices the newest of each zone counts.

use std::collections::BTreeMap;

use nodemolt_fit::{
    pool::Price,
    prices::{self, Prices},
};
use serde::Deserialize;
use serde_json::Value;

use super::{BYTE_ORDER_MARK, ReadAnswerError, parse};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quoted {
    pub on_demand: Prices,
    /// By instance type and zone.
    pub spot: BTreeMap<(String, String), Price>,
    /// The same with a licence of Windows.
    pub windows: Prices,
    pub windows_spot: BTreeMap<(String, String), Price>,
    /// False if the answer has a `NextToken`: there were more, on a page that we were not given.
    pub complete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "what an AWS command prints")]
struct Wire {
    #[serde(default)]
    price_list: Option<Vec<Value>>,
    #[serde(default)]
    spot_price_history: Option<Vec<WireSpot>>,
    #[serde(default)]
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a spot price")]
struct WireSpot {
    instance_type: String,
    availability_zone: String,
    spot_price: String,
    #[serde(default)]
    product_description: Option<String>,
    #[serde(default)]
    timestamp: Option<String>,
}

/// What a node is, in the words of the price list. A member that is not there does not exclude it.
const OF_A_NODE: [(&str, &str); 4] = [
    ("tenancy", "Shared"),
    ("preInstalledSw", "NA"),
    ("capacitystatus", "Used"),
    // Whoever brings a licence of Windows pays as for Linux; nodes of EKS do not.
    ("licenseModel", "No License required"),
];
const LINUX: &str = "Linux/UNIX";
const WINDOWS: &str = "Windows";
const CURRENCIES: [&str; 2] = ["USD", "CNY"];

pub fn read(bytes: &[u8]) -> Result<Quoted, ReadAnswerError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.iter().find(|it| !it.is_ascii_whitespace()) != Some(&b'{') {
        return table(bytes);
    }
    let wire: Wire = parse(bytes)?;
    let mut quoted = Quoted {
        complete: wire.next_token.as_deref().is_none_or(str::is_empty),
        ..Quoted::default()
    };
    if wire.price_list.is_none() && wire.spot_price_history.is_none() {
        let message = "has neither `PriceList` nor `SpotPriceHistory`".to_owned();
        return Err(ReadAnswerError::Member { field: "the file".to_owned(), message });
    }
    for (at, it) in wire.price_list.into_iter().flatten().enumerate() {
        product(&format!("PriceList[{at}]"), it, &mut quoted)?;
    }
    // In the order of their times, so that the newest is written last.
    let mut spots: Vec<WireSpot> = wire.spot_price_history.into_iter().flatten().collect();
    spots.sort_by(|left, right| left.timestamp.cmp(&right.timestamp));
    for it in spots {
        let spot = match it.product_description.as_deref() {
            None => &mut quoted.spot,
            Some(it) if it.starts_with(LINUX) => &mut quoted.spot,
            Some(it) if it.starts_with(WINDOWS) => &mut quoted.windows_spot,
            Some(_) => continue,
        };
        let price = price("SpotPriceHistory", &it.spot_price)?;
        spot.insert((it.instance_type, it.availability_zone), price);
    }
    Ok(quoted)
}

fn table(bytes: &[u8]) -> Result<Quoted, ReadAnswerError> {
    let text = std::str::from_utf8(bytes).map_err(|it| ReadAnswerError::Member {
        field: "the file".to_owned(),
        message: it.to_string(),
    })?;
    let on_demand = prices::read(text).map_err(|it| ReadAnswerError::Member {
        field: format!("line {}", it.line),
        message: it.what,
    })?;
    Ok(Quoted { on_demand, complete: true, ..Quoted::default() })
}

/// An entry of the list is JSON, or a text that holds JSON.
fn product(field: &str, entry: Value, quoted: &mut Quoted) -> Result<(), ReadAnswerError> {
    let wrong = |message: String| ReadAnswerError::Member { field: field.to_owned(), message };
    let entry: Value = match entry.as_str() {
        Some(text) => serde_json::from_str(text).map_err(|it| wrong(it.to_string()))?,
        None => entry,
    };
    let attributes = &entry["product"]["attributes"];
    let attribute = |name: &str| attributes[name].as_str();
    let (Some(name), Some(region)) = (attribute("instanceType"), attribute("regionCode")) else {
        return Ok(());
    };
    if OF_A_NODE.iter().any(|(name, value)| attribute(name).is_some_and(|it| it != *value)) {
        return Ok(());
    }
    let into = match attribute("operatingSystem") {
        None | Some("Linux") => &mut quoted.on_demand,
        Some(WINDOWS) => &mut quoted.windows,
        Some(_) => return Ok(()),
    };
    let terms = entry["terms"]["OnDemand"].as_object().into_iter().flat_map(|it| it.values());
    let dimensions = terms
        .filter_map(|it| it["priceDimensions"].as_object())
        .flat_map(serde_json::Map::values)
        .filter(|it| it["unit"].as_str().is_none_or(|it| it == "Hrs"));
    for dimension in dimensions {
        let per_unit = &dimension["pricePerUnit"];
        let amount = CURRENCIES.iter().find_map(|it| per_unit[*it].as_str());
        let Some(amount) = amount else { continue };
        let price = price(field, amount)?;
        // Reserved and dedicated offers of the same type cost nothing by the hour here.
        if price.0 > 0 {
            into.regions.entry(region.to_owned()).or_default().insert(name.to_owned(), price);
        }
    }
    Ok(())
}

fn price(field: &str, text: &str) -> Result<Price, ReadAnswerError> {
    prices::price(text).ok_or_else(|| ReadAnswerError::Member {
        field: field.to_owned(),
        message: format!("`{}` is not a price", text.chars().take(40).collect::<String>()),
    })
}
