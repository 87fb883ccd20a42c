//! What does `docs/seed-examples.md` claim?
//!
//! `page → blocks`, each with the example it belongs to and what must become of it
//!
//! Read by three tests: through our validator (`crates/api`), through the command line (`crates/app`) and
//! on a real API server (`e2e`).

#![allow(dead_code, reason = "each of the three tests reads what it needs")]
#![allow(unreachable_pub, reason = "a module of three tests has no crate of its own")]

use std::path::{Path, PathBuf};

/// What must become of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The API server takes it.
    Applied,
    /// The API server takes it, and then its status.
    Status,
    /// The API server refuses it and says all of this.
    Refused(Vec<String>),
    /// The API server takes it, and the controller could not use it: `validate` says all of this.
    Unusable(Vec<String>),
    /// An object of a kind or version that is not ours to serve.
    NotServed,
    /// Nothing that names a kind, or not even YAML: it reaches no server.
    NoObject,
    /// Not an object but something to read, under this name: a file.
    Input,
    /// The value of this SSM parameter.
    Parameter(String),
    /// A command that ends with this code, and what it prints.
    Command { exit: i32 },
}

#[derive(Debug, Clone)]
pub struct Block {
    /// The example that it belongs to, such as `2.4`.
    pub example: String,
    pub language: String,
    /// Under which name commands find it.
    pub file: Option<String>,
    pub verdict: Verdict,
    pub text: String,
    /// Where its text begins, in bytes.
    pub start: usize,
    /// The line of its fence, counted from one.
    pub line: usize,
}

impl Block {
    /// Where to look, for messages.
    pub fn place(&self) -> String {
        format!("docs/seed-examples.md:{} (example {})", self.line, self.example)
    }
}

pub fn path(manifest_dir: &str) -> PathBuf {
    let mut root = Path::new(manifest_dir);
    while !root.join("docs/seed-examples.md").is_file() {
        root = root.parent().expect("the page stands in the repository");
    }
    root.join("docs/seed-examples.md")
}

/// The examples that have a heading, and all blocks.
pub fn read(page: &str) -> (Vec<String>, Vec<Block>) {
    let mut headings = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    let mut at = 0;
    for (index, line) in page.split_inclusive('\n').enumerate() {
        at += line.len();
        let bare = line.trim_end();
        if inside && bare == "```" {
            inside = false;
        } else if inside {
            let block = blocks.last_mut().expect("inside of one");
            block.text.push_str(line);
        } else if let Some(said) = bare.strip_prefix("```") {
            let block = open(said, at, index + 1);
            let last = headings.last();
            assert_eq!(last, Some(&block.example), "line {}: under its own heading", index + 1);
            blocks.push(block);
            inside = true;
        } else if let Some(title) = bare.strip_prefix("### ") {
            headings.push(title.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    assert!(!inside, "the last block of the page has no end");
    (headings, blocks)
}

/// `yaml seed=2.4 file=image.yaml refused: this; and that`
fn open(said: &str, start: usize, line: usize) -> Block {
    let wrong = |why: &str| -> ! { panic!("docs/seed-examples.md:{line}: {why}: {said}") };
    let parts = |it: &str| it.split("; ").map(str::to_owned).collect();
    let (front, mut verdict) = if let Some((front, said)) = said.split_once(" refused: ") {
        (front, Some(Verdict::Refused(parts(said))))
    } else if let Some((front, said)) = said.split_once(" unusable: ") {
        (front, Some(Verdict::Unusable(parts(said))))
    } else {
        (said, None)
    };
    let mut words = front.split(' ');
    let language = words.next().unwrap_or_default().to_owned();
    let mut example = None;
    let mut file = None;
    for word in words {
        let found = match word.split_once('=') {
            Some(("seed", it)) => {
                example = Some(it.to_owned());
                continue;
            }
            Some(("file", it)) => {
                file = Some(it.to_owned());
                continue;
            }
            Some(("parameter", it)) => Verdict::Parameter(it.to_owned()),
            Some(("exit", it)) => match it.parse() {
                Ok(exit) => Verdict::Command { exit },
                Err(_) => wrong("no exit code"),
            },
            Some(_) => wrong("what is that"),
            None => match word {
                "applied" => Verdict::Applied,
                "status" => Verdict::Status,
                "not-served" => Verdict::NotServed,
                "no-object" => Verdict::NoObject,
                "input" => Verdict::Input,
                _ => wrong("no such verdict"),
            },
        };
        if verdict.replace(found).is_some() {
            wrong("two verdicts");
        }
    }
    let Some(example) = example else { wrong("which example") };
    let Some(verdict) = verdict else { wrong("no verdict") };
    let command = matches!(verdict, Verdict::Command { .. });
    if command != (language == "console") || (verdict == Verdict::Input) && file.is_none() {
        wrong("block and verdict do not go together");
    }
    Block { example, language, file, verdict, text: String::new(), start, line }
}
