//! Which parameters does an answer of `aws ssm get-parameter…` hold?
//!
//! One value of `get-parameter`, many of `get-parameters`, all that ever were of
//! `get-parameter-history`: each is one value of one parameter. What it means is read later, and
//! strictly; a value that nobody asks for may be anything.

use nodemolt_core::catalog::{Parameter, ParameterValue};
use serde::Deserialize;
use serde_json::Value;

use super::{ReadAnswerError, images::date};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a parameter")]
pub struct WireParameter {
    name: String,
    #[serde(default, rename = "ARN")]
    arn: Option<String>,
    value: String,
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    last_modified_date: Option<Value>,
    #[serde(default)]
    labels: Option<Vec<String>>,
}

pub(super) fn read(wire: WireParameter, place: &str) -> Result<Parameter, ReadAnswerError> {
    let WireParameter { name, arn, value, version, last_modified_date, labels } = wire;
    if name.is_empty() {
        return Err(ReadAnswerError::Member {
            field: format!("{place}.Name"),
            message: "it is empty; a parameter has a name".to_owned(),
        });
    }
    let value = ParameterValue {
        version,
        modified: date(last_modified_date),
        text: value,
        labels: labels.unwrap_or_default(),
    };
    let mut parameter = Parameter::new(name, value);
    parameter.arn = arn;
    Ok(parameter)
}
