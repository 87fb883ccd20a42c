//! Which images does an answer of `aws ec2 describe-images` describe?
//!
//! Read are the members that decide anything. A date that is missing or cannot be read is kept as what
//! it is and is no error: the image is there, and its age is unknown.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_core::image::{
    AccountId, Architecture, BootMode, Date, Image, ImageId, NamePattern, State,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ReadAnswerError;

/// An image as EC2 writes it, and as our lock file keeps it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an image")]
pub struct WireImage {
    image_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// `machine`, or one of the two kinds that boot nothing by themselves.
    #[serde(default, skip_serializing)]
    image_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image_owner_alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    creation_date: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deprecation_time: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tpm_support: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    virtualization_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_device_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ena_support: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<WireTag>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    product_codes: Option<Vec<WireProductCode>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image_allowed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_image_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_image_region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_ssm_parameter_name: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance_type_specification: Option<WireTypes>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a tag with Key and Value")]
struct WireTag {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a product code")]
struct WireProductCode {
    product_code_id: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "lists of instance types")]
struct WireTypes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    supported_instance_types: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsupported_instance_types: Vec<String>,
}

impl WireImage {
    /// Kernels and RAM disks are listed among the images, and are none.
    pub(super) fn boots_machines(&self) -> bool {
        self.image_type.as_deref().is_none_or(|it| it == "machine")
    }

    /// Checks what must hold and leaves nothing to guess. `place` is where it stands in the answer.
    pub fn read(self, place: &str) -> Result<Image, ReadAnswerError> {
        let error = |member: &str, message: String| ReadAnswerError::Member {
            field: if place.is_empty() { member.to_owned() } else { format!("{place}.{member}") },
            message,
        };
        let id: ImageId = self.image_id.parse().map_err(|it| error("ImageId", format!("{it}")))?;
        let owner = match self.owner_id {
            None => None,
            Some(text) => {
                let owner: AccountId =
                    text.parse().map_err(|it| error("OwnerId", format!("{it}")))?;
                Some(owner)
            }
        };
        let source = match self.source_image_id.as_deref() {
            None | Some("") => None,
            Some(text) => {
                let source: ImageId =
                    text.parse().map_err(|it| error("SourceImageId", format!("{it}")))?;
                Some(source)
            }
        };
        let types = self.instance_type_specification.unwrap_or_default();
        let patterns = |all: Vec<String>| all.iter().map(|it| NamePattern::new(it)).collect();
        let public_parameters = one_or_many(self.public_ssm_parameter_name)
            .map_err(|it| error("PublicSsmParameterName", it))?;
        let tags: BTreeMap<String, String> =
            self.tags.into_iter().flatten().map(|it| (it.key, it.value)).collect();
        let product_codes =
            self.product_codes.into_iter().flatten().map(|it| it.product_code_id).collect();
        Ok(Image {
            id,
            name: self.name.unwrap_or_default(),
            description: self.description,
            owner,
            owner_alias: self.image_owner_alias,
            state: State::read(self.state.as_deref().unwrap_or("available")),
            created: date(self.creation_date),
            deprecated: date(self.deprecation_time),
            architecture: Architecture::read(self.architecture.as_deref().unwrap_or("unknown")),
            boot_mode: self.boot_mode.as_deref().map(BootMode::read),
            tpm: self.tpm_support,
            virtualization: self.virtualization_type,
            root_device: self.root_device_type,
            ena: self.ena_support,
            platform: self.platform,
            public: self.public,
            tags,
            product_codes,
            allowed: self.image_allowed,
            source,
            source_region: self.source_image_region,
            public_parameters,
            supported_types: patterns(types.supported_instance_types),
            unsupported_types: patterns(types.unsupported_instance_types),
        })
    }

    /// The way back, for the lock file.
    pub fn write(image: &Image) -> Self {
        let texts = |all: &[NamePattern]| all.iter().map(|it| it.as_str().to_owned()).collect();
        let types = WireTypes {
            supported_instance_types: texts(&image.supported_types),
            unsupported_instance_types: texts(&image.unsupported_types),
        };
        let named_types = !image.supported_types.is_empty() || !image.unsupported_types.is_empty();
        let tags = image
            .tags
            .iter()
            .map(|(key, value)| WireTag { key: key.clone(), value: value.clone() });
        let codes =
            image.product_codes.iter().map(|it| WireProductCode { product_code_id: it.clone() });
        let parameters: Vec<String> = image.public_parameters.iter().cloned().collect();
        Self {
            image_id: image.id.to_string(),
            image_type: None,
            name: Some(image.name.clone()),
            description: image.description.clone(),
            owner_id: image.owner.as_ref().map(ToString::to_string),
            image_owner_alias: image.owner_alias.clone(),
            state: Some(image.state.as_str().to_owned()),
            creation_date: undate(&image.created),
            deprecation_time: undate(&image.deprecated),
            architecture: Some(image.architecture.as_str().to_owned()),
            boot_mode: image.boot_mode.as_ref().map(|it| it.as_str().to_owned()),
            tpm_support: image.tpm.clone(),
            virtualization_type: image.virtualization.clone(),
            root_device_type: image.root_device.clone(),
            ena_support: image.ena,
            platform: image.platform.clone(),
            public: image.public,
            tags: (!image.tags.is_empty()).then(|| tags.collect()),
            product_codes: (!image.product_codes.is_empty()).then(|| codes.collect()),
            image_allowed: image.allowed,
            source_image_id: image.source.as_ref().map(ToString::to_string),
            source_image_region: image.source_region.clone(),
            public_ssm_parameter_name: match parameters.as_slice() {
                [] => None,
                [one] => Some(Value::from(one.clone())),
                _ => Some(Value::from(parameters)),
            },
            instance_type_specification: named_types.then_some(types),
        }
    }
}

/// EC2 prints one name; our lock file keeps all that were ever seen.
fn one_or_many(value: Option<Value>) -> Result<BTreeSet<String>, String> {
    let values = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(many)) => many,
        Some(one) => vec![one],
    };
    values
        .into_iter()
        .map(|it| match it.as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(format!("`{}` is not the name of a parameter", quoted(&it))),
        })
        .collect()
}

/// A message quotes what was written, but not a page of it.
fn quoted(value: &Value) -> String {
    const SHOWN: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Whatever stands where a date should be is a date, or a text that is none.
pub(super) fn date(value: Option<Value>) -> Date {
    match value {
        None | Some(Value::Null) => Date::Missing,
        Some(Value::String(text)) if text.is_empty() => Date::Missing,
        Some(Value::String(text)) => Date::read(Some(&text)),
        // Old AWS commands print seconds since 1970, with a fraction.
        Some(Value::Number(number)) => {
            let text = number.to_string();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let nanos = format!("{fraction:0<9}").get(..9).and_then(|it| it.parse().ok());
            let at = match (whole.parse().ok(), nanos) {
                (Some(seconds), Some(nanos)) => jiff::Timestamp::new(seconds, nanos).ok(),
                _ => None,
            };
            at.map_or_else(|| Date::read(Some(&text)), Date::At)
        }
        Some(other) => Date::read(Some(&other.to_string())),
    }
}

pub(super) fn undate(date: &Date) -> Option<Value> {
    match date {
        Date::At(at) => Some(Value::String(at.to_string())),
        Date::Missing => None,
        Date::Unreadable(text) => Some(Value::String(text.clone())),
    }
}
