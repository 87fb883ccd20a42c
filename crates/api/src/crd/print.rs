//! How is a definition printed for `kubectl apply`?

use serde_json::{Value, json};

use super::{Crd, to_value};

/// A definition could not be printed. None of ours should come here.
#[derive(Debug, thiserror::Error)]
#[error("could not print the definition of {name}")]
pub struct PrintError {
    name: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The definitions as one YAML text of several documents.
pub fn yaml(crds: &[Crd]) -> Result<String, PrintError> {
    let mut text = String::new();
    for crd in crds {
        let document = serde_saphyr::to_string(&value(crd)?)
            .map_err(|source| PrintError { name: crd.name, source: source.into() })?;
        text.push_str("---\n");
        text.push_str(document.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// The definitions as one JSON object that holds them all.
pub fn json(crds: &[Crd]) -> Result<String, PrintError> {
    let items = crds.iter().map(value).collect::<Result<Vec<Value>, _>>()?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    Ok(format!("{list:#}\n"))
}

fn value(crd: &Crd) -> Result<Value, PrintError> {
    to_value(&(crd.definition)())
        .map_err(|source| PrintError { name: crd.name, source: source.into() })
}
