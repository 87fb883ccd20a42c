//! How does a world outlive the program?
//!
//! `scenario + seed + acts with their times ↔ text`
//!
//! A world is not stored, only what made it: whoever replays the acts gets the same world, to the hash.
//! Each act is one line, so a world file can be read, sent to somebody, and cut.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;

use crate::act::{Act, read_time};
use crate::json::in_words;
use crate::scenario::{self, Scenario};
use crate::world::{ActError, LoadError, World};

/// What this program writes, and the only version that it reads.
const VERSION: u32 = 1;

/// A world, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldFile {
    /// What the scenario was called, for messages.
    pub name: String,
    pub scenario: Scenario,
    pub seed: u64,
    /// In order; none before the one in front of it.
    pub acts: Vec<(Timestamp, Act)>,
    /// Up to when it has been run.
    pub until: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    version: u32,
    name: String,
    seed: u64,
    until: String,
    acts: Vec<String>,
    scenario: String,
}

/// Only what tells the version, so that a newer file is not called broken.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A part of a world file by its field, or what is wrong there.
fn part<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        let told = in_words(&error.into_inner().to_string());
        if field == "." { told } else { format!("{field}: {told}") }
    })
}

/// What the text is, and where it stops being JSON if it does.
fn read_json(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Eof => "it is JSON whose end is missing".to_owned(),
        Category::Syntax | Category::Data | Category::Io => {
            format!("it is no JSON from line {} on", error.line())
        }
    })
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("could not read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("could not write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error(
        "{file} is no world file: {why}; it was left as it is, move it away or name another with --sim"
    )]
    Broken { file: String, why: String },
    #[error(
        "{0} is a scenario, and no world file; `nodemolt sim load {0}` begins it, in the file that --sim names or in your own"
    )]
    Scenario(String),
    #[error(
        "{file} is a world file of version {found}, and this program reads version {VERSION}; use the program that wrote it, or load the scenario anew"
    )]
    Version { file: String, found: u32 },
}

/// Why a world cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("the scenario cannot begin")]
    Load(#[from] LoadError),
    #[error("at {at}: {act}")]
    Act {
        at: Timestamp,
        act: String,
        #[source]
        source: ActError,
    },
}

impl WorldFile {
    /// Nothing has happened yet.
    pub fn new(name: &str, scenario: Scenario, seed: u64) -> Self {
        let until = scenario.simulation.start;
        Self { name: name.to_owned(), scenario, seed, acts: Vec::new(), until }
    }

    pub fn load(path: &Path) -> Result<Self, FileError> {
        let wrong = |it| FileError::Read(path.to_owned(), it);
        // A device may have no end, and a pipe nobody who writes.
        if !fs::metadata(path).map_err(wrong)?.is_file() {
            let (file, why) = (path.display().to_string(), "it is no regular file".to_owned());
            return Err(FileError::Broken { file, why });
        }
        let file = path.display().to_string();
        match String::from_utf8(fs::read(path).map_err(wrong)?) {
            Ok(text) => Self::read(&file, &text),
            Err(_) => Err(FileError::Broken { file, why: "it is no text in UTF-8".to_owned() }),
        }
    }

    /// `file` is what errors call it.
    pub fn read(file: &str, text: &str) -> Result<Self, FileError> {
        let broken = |why: String| FileError::Broken { file: file.to_owned(), why };
        let wrong = |why: String| {
            if scenario::simulates(text) {
                FileError::Scenario(file.to_owned())
            } else {
                broken(why)
            }
        };
        let value = read_json(text).map_err(wrong)?;
        let versioned: Versioned = part(&value).map_err(wrong)?;
        if versioned.version != VERSION {
            return Err(FileError::Version { file: file.to_owned(), found: versioned.version });
        }
        let wire: Wire = part(&value).map_err(broken)?;
        // What was read above keeps the last of two fields, and says nothing.
        if let Err(told) = serde_json::from_str::<Wire>(text) {
            return Err(broken(told.to_string()));
        }
        let until = read_time(&wire.until).map_err(|it| broken(format!("until: {it}")))?;
        let scenario = Scenario::read(&wire.name, &wire.scenario).map_err(|problems| {
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            broken(format!("its scenario cannot be read: {}", told.join("; ")))
        })?;
        let mut acts = Vec::new();
        let mut last = scenario.simulation.start;
        for (at, line) in wire.acts.iter().enumerate() {
            let number = at + 1;
            let (time, act) = line
                .split_once(' ')
                .ok_or_else(|| broken(format!("act {number} has no time: `{line}`")))?;
            let time =
                read_time(time).map_err(|it| broken(format!("the time of act {number}: {it}")))?;
            if time < last || time > until {
                return Err(broken(format!("act {number} is out of order: `{line}`")));
            }
            last = time;
            let act = act.parse().map_err(|it| broken(format!("act {number}: {it}")))?;
            acts.push((time, act));
        }
        if until < last {
            return Err(broken(format!("it ends at {until}, before its last act")));
        }
        Ok(Self { name: wire.name, scenario, seed: wire.seed, acts, until })
    }

    /// The world as it is, and every act with what came of it.
    pub fn replay(&self) -> Result<World, ReplayError> {
        let mut world = World::new(&self.scenario, self.seed)?;
        self.replay_into(&mut world)?;
        Ok(world)
    }

    /// The same, in a world that has just begun: whoever watches it has come first.
    pub fn replay_into(&self, world: &mut World) -> Result<(), ReplayError> {
        for (at, act) in &self.acts {
            world.run(at.duration_since(world.now()));
            world.act(act).map_err(|source| ReplayError::Act {
                at: *at,
                act: act.to_string(),
                source,
            })?;
        }
        world.run(self.until.duration_since(world.now()));
        Ok(())
    }

    /// Remembers an act that the world has done. Running is no act of its own here: it only moves the end.
    pub fn note(&mut self, act: &Act, at: Timestamp, world: &World) {
        if !matches!(act, Act::Run(_)) {
            self.acts.push((at, act.clone()));
        }
        self.until = world.now();
    }

    /// How long it has lived.
    pub fn age(&self) -> SignedDuration {
        self.until.duration_since(self.scenario.simulation.start)
    }

    /// Whole or not at all: written beside it, and then put in its place.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let wrong = |it: io::Error| FileError::Write(path.to_owned(), it);
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        let (beside, mut file) = fresh(path).map_err(wrong)?;
        let mut write = || {
            // Who may read it stays as people said.
            if let Ok(before) = fs::metadata(path) {
                file.set_permissions(before.permissions())?;
            }
            file.write_all(self.to_string().as_bytes())?;
            file.sync_all()
        };
        let written = write();
        written.and_then(|()| fs::rename(&beside, path)).map_err(|error| {
            // What is left of it is of no use to anybody; that it stays is no reason to say less.
            let _ = fs::remove_file(&beside);
            wrong(error)
        })
    }
}

/// A file beside it that was not there before: what somebody else has there, or a program that was ended has left, is
/// not written over, and no link is followed.
fn fresh(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    let mut number = 0_u32;
    loop {
        // By process: two that save at once must not write into one file.
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".new-{}", std::process::id()));
        if number > 0 {
            beside.push(format!("-{number}"));
        }
        let beside = PathBuf::from(beside);
        match fs::File::options().write(true).create_new(true).open(&beside) {
            Err(it) if it.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            made => return made.map(|it| (beside, it)),
        }
    }
}

/// The text that is read.
impl fmt::Display for WorldFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wire = Wire {
            version: VERSION,
            name: self.name.clone(),
            seed: self.seed,
            until: self.until.to_string(),
            acts: self.acts.iter().map(|(at, act)| format!("{at} {act}")).collect(),
            scenario: self.scenario.text.clone(),
        };
        let text = serde_json::to_string_pretty(&wire).map_err(|_| fmt::Error)?;
        writeln!(out, "{text}")
    }
}
