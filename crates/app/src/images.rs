//! What is in the catalog?
//!
//! `list` shows images by flavour, `get` all that is known of one, `lock` writes down what was seen.

mod shelf;
mod item;
mod state;
mod list;
mod get;
mod lock;

use crate::cli::{self, ImagesVerb};
use crate::output::{Answer, Failure, Look};

pub(crate) fn run(verb: &cli::Images, look: Look) -> Result<Answer, Failure> {
    match &verb.verb {
        ImagesVerb::List(verb) => list::run(verb, look),
        ImagesVerb::Get(verb) => get::run(verb, look),
        ImagesVerb::Lock(verb) => lock::run(verb, look),
    }
}

fn warn(warnings: &[String]) -> String {
    lines(warnings.iter().map(|it| format!("warning: {it}")))
}

fn lines(all: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for line in all {
        text.push_str(line.as_ref());
        text.push('\n');
    }
    text
}
