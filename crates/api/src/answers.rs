//! What did AWS say?
//!
//! `the printed answer of an AWS command → our types`
//!
//! Each module reads one command's JSON, as people save it to a file. Members that we do not know
//! are ignored, because AWS adds some every month; members that we know and cannot read are errors.

pub mod images;
pub mod instance_types;
pub mod cluster;
pub mod lock;
pub mod parameters;
pub mod offerings;
pub mod prices;

use nodemolt_core::catalog::{Catalog, Parameter};
use nodemolt_core::image::Image;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What a catalog file held.
#[derive(Debug)]
pub enum Answer {
    /// Of `aws ec2 describe-images` or `aws ssm get-parameter…`.
    Plain(Plain),
    /// Our own lock file.
    Lock(Catalog),
}

#[derive(Debug, Default)]
pub struct Plain {
    pub images: Vec<Image>,
    pub parameters: Vec<Parameter>,
    /// Names that SSM said are not there.
    pub not_there: Vec<String>,
    /// The file is an answer about images, even if it lists none: an empty list says that there are none,
    /// and a list of parameters says nothing about images.
    pub about_images: bool,
    pub about_parameters: bool,
    /// False if the answer has a `NextToken`: there were more, on a page that we were not given.
    pub complete: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadAnswerError {
    #[error("it is not JSON: {0}; AWS commands print it with `--output json`")]
    NotJson(String),
    #[error(
        "it is no catalog: expected the JSON of `aws ec2 describe-images`, of `aws ssm get-parameter`, `get-parameters`, `get-parameters-by-path` or `get-parameter-history`, or of `nodemolt images lock`"
    )]
    NotACatalog,
    #[error("{field}: {message}")]
    Member { field: String, message: String },
}

/// Windows shells put one before everything they save.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Which of the answers it is, by its members.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "what an AWS command prints")]
struct Envelope {
    #[serde(default)]
    images: Option<Vec<images::WireImage>>,
    #[serde(default)]
    parameters: Option<Vec<parameters::WireParameter>>,
    #[serde(default)]
    parameter: Option<parameters::WireParameter>,
    #[serde(default)]
    invalid_parameters: Option<Vec<String>>,
    #[serde(default)]
    next_token: Option<String>,
    #[serde(default, rename = "kind")]
    kind: Option<String>,
}

/// Reads a catalog file, whichever it is.
pub fn read(bytes: &[u8]) -> Result<Answer, ReadAnswerError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    // `--query Images[]` leaves only the list.
    if bytes.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'[') {
        // serde reads structs from lists, too; an image is an object.
        if bytes.iter().filter(|it| !it.is_ascii_whitespace()).nth(1) == Some(&b'[') {
            return Err(ReadAnswerError::NotACatalog);
        }
        let wire: Vec<images::WireImage> = parse(bytes)?;
        let images = read_images(wire, "")?;
        let plain = Plain { images, about_images: true, complete: true, ..Plain::default() };
        return Ok(Answer::Plain(plain));
    }
    let envelope: Envelope = parse(bytes)?;
    if envelope.kind.as_deref() == Some(lock::KIND) {
        return lock::read(bytes).map(Answer::Lock);
    }
    let Envelope { images, parameters, parameter, invalid_parameters, next_token, kind: _ } =
        envelope;
    let about_images = images.is_some();
    let about_parameters =
        parameters.is_some() || parameter.is_some() || invalid_parameters.is_some();
    if !about_images && !about_parameters {
        return Err(ReadAnswerError::NotACatalog);
    }
    let images = read_images(images.unwrap_or_default(), "Images")?;
    let mut read = Vec::new();
    for (at, wire) in parameters.into_iter().flatten().enumerate() {
        read.push(parameters::read(wire, &format!("Parameters[{at}]"))?);
    }
    if let Some(wire) = parameter {
        read.push(parameters::read(wire, "Parameter")?);
    }
    Ok(Answer::Plain(Plain {
        images,
        parameters: read,
        not_there: invalid_parameters.unwrap_or_default(),
        about_images,
        about_parameters,
        complete: next_token.is_none_or(|it| it.is_empty()),
    }))
}

fn read_images(wire: Vec<images::WireImage>, list: &str) -> Result<Vec<Image>, ReadAnswerError> {
    wire.into_iter()
        .enumerate()
        .filter(|(_, it)| it.boots_machines())
        .map(|(at, it)| it.read(&format!("{list}[{at}]")))
        .collect()
}

/// JSON with the place of what is wrong in it.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadAnswerError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        // The root's path is a dot, which says nothing.
        let field = error.path().to_string();
        let field = if field == "." { "the file".to_owned() } else { field };
        let inner = error.into_inner();
        if inner.is_data() {
            ReadAnswerError::Member { field, message: inner.to_string() }
        } else {
            ReadAnswerError::NotJson(inner.to_string())
        }
    })?;
    deserializer.end().map_err(|it| ReadAnswerError::NotJson(it.to_string()))?;
    Ok(parsed)
}
