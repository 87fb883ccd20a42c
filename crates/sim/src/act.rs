//! What can be done to a simulated world?
//!
//! `line ↔ act`
//!
//! What a person, a publisher or fate does. Each act is one line of text: a world file is a scenario and
//! such lines, and `nodemolt sim` takes the same words.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::image::{AccountId, Architecture, ImageId};
use nodemolt_core::lookup;

use crate::faults::Fault;
use crate::length;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A new image, with the parameters that name it from now on.
    Publish(Box<Publication>),
    /// A parameter names another image, which may be older.
    Move {
        parameter: String,
        to: ImageName,
    },
    /// Any other value, which need not make sense.
    Put {
        parameter: String,
        value: String,
    },
    Deprecate(ImageName),
    Disable(ImageName),
    Enable(ImageName),
    Deregister(ImageName),
    Unshare(ImageName),
    Fault(Fault),
    /// A person asks that a node, or every node of a pool, be replaced.
    Upgrade(Target),
    Pause {
        reason: String,
    },
    Resume,
    Unlock,
    /// `kubectl apply`: manifests, as they are written.
    Apply {
        manifest: String,
    },
    /// Only the status of what is there, as its controller, or somebody else's, writes it.
    ApplyStatus {
        manifest: String,
    },
    /// Past the schemas: as an older or newer definition of the kind would have let it in.
    ApplyUnchecked {
        manifest: String,
    },
    /// `kubectl delete`. The kind as people call it.
    Delete {
        kind: String,
        namespace: Option<String>,
        name: String,
    },
    /// A person's own cordon, which is none of ours.
    Cordon {
        node: String,
    },
    Uncordon {
        node: String,
    },
    /// A person takes our own taint off, and nothing else.
    Untaint {
        node: String,
    },
    /// `kubectl annotate`. Without a value it is taken away.
    Annotate {
        kind: String,
        namespace: Option<String>,
        name: String,
        key: String,
        value: Option<String>,
    },
    /// Another controller's finalizer comes onto what has no namespace.
    Hold {
        kind: String,
        name: String,
    },
    /// That controller lets go of everything that it holds.
    Release,
    Run(SignedDuration),
}

/// An image by its id or by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageName {
    Id(ImageId),
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Node(String),
    Pool(String),
}

/// A new image. What is `None` follows from the name, or is usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub name: String,
    pub id: Option<ImageId>,
    pub architecture: Option<Architecture>,
    pub owner: Option<AccountId>,
    pub created: Option<Timestamp>,
    /// Named by these from now on. None: those that its flavour has, if its name tells one.
    pub parameters: Vec<String>,
    pub tags: BTreeMap<String, String>,
    pub behaviour: Behaviour,
}

impl Publication {
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: None,
            architecture: None,
            owner: None,
            created: None,
            parameters: Vec::new(),
            tags: BTreeMap::new(),
            behaviour: Behaviour::Good,
        }
    }

    /// What is written, else what its name tells, else what is usual.
    pub fn architecture(&self) -> Architecture {
        match (&self.architecture, lookup::read_name(&self.name)) {
            (Some(architecture), _) => architecture.clone(),
            (None, Some((flavour, _))) => match flavour.processor {
                lookup::Processor::Amd64 => Architecture::X86_64,
                lookup::Processor::Arm64 => Architecture::Arm64,
            },
            (None, None) => Architecture::X86_64,
        }
    }
}

/// How machines with an image behave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    #[default]
    Good,
    /// Machines run and never become nodes.
    Stillborn,
    /// Nodes join and are never ready.
    NeverReady,
    /// Nodes are ready and not ready, in turns.
    Flapping,
}

impl Act {
    /// One line per act, for help and for errors.
    pub const WORDS: [&str; 24] = [
        "publish NAME [--id AMI] [--arch x86_64|arm64] [--owner ACCOUNT] [--created TIME] [--parameter NAME]… [--tag KEY=VALUE]… [--stillborn|--never-ready|--flapping]",
        "move PARAMETER IMAGE",
        "put PARAMETER VALUE",
        "deprecate IMAGE",
        "disable IMAGE",
        "enable IMAGE",
        "deregister IMAGE",
        "unshare IMAGE",
        "fault WORDS",
        "upgrade node/NAME|pool/NAME",
        "pause REASON",
        "resume",
        "unlock",
        "apply \"MANIFEST\"",
        "apply-status \"MANIFEST\"",
        "apply-unchecked \"MANIFEST\"",
        "delete KIND [NAMESPACE/]NAME",
        "cordon NODE",
        "uncordon NODE",
        "untaint NODE",
        "annotate KIND [NAMESPACE/]NAME KEY=VALUE|KEY-",
        "hold KIND NAME",
        "release",
        "run LENGTH",
    ];
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseActError(pub String);

impl FromStr for Act {
    type Err = ParseActError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        // What is written here has none: in quotes they are escaped. Terminals obey them.
        if text.chars().any(char::is_control) {
            let told = "it has a control character";
            return Err(ParseActError(format!(
                "`{}`: {told}; write it without",
                text.escape_debug()
            )));
        }
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let usage = Self::WORDS.iter().find(|it| it.split(' ').next() == Some(verb));
        let Some(usage) = usage else {
            let verbs: Vec<&str> =
                Self::WORDS.iter().filter_map(|it| it.split(' ').next()).collect();
            return Err(ParseActError(format!(
                "`{verb}` is no act; write one of {}",
                verbs.join(", ")
            )));
        };
        read(verb, rest.trim()).map_err(|it| ParseActError(format!("{it}; write `{usage}`")))
    }
}

fn read(verb: &str, rest: &str) -> Result<Act, String> {
    let one = |what: &str| match rest.split_whitespace().collect::<Vec<_>>()[..] {
        [] => Err(format!("it does not say {what}")),
        [word] => Ok(word.to_owned()),
        [_, more, ..] => Err(format!("`{more}` is too much")),
    };
    let nothing = |act: Act| match rest {
        "" => Ok(act),
        more => Err(format!("`{more}` is too much")),
    };
    let image = || one("which image").and_then(|it| it.parse::<ImageName>());
    Ok(match verb {
        "publish" => Act::Publish(Box::new(read_publication(rest)?)),
        "move" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [parameter, to] => Act::Move { parameter: parameter.to_owned(), to: to.parse()? },
            _ => return Err("it needs a parameter and an image".to_owned()),
        },
        "put" => {
            let (parameter, value) =
                rest.split_once(char::is_whitespace).ok_or("it needs a parameter and a value")?;
            Act::Put { parameter: parameter.to_owned(), value: unquote(value.trim())? }
        }
        "deprecate" => Act::Deprecate(image()?),
        "disable" => Act::Disable(image()?),
        "enable" => Act::Enable(image()?),
        "deregister" => Act::Deregister(image()?),
        "unshare" => Act::Unshare(image()?),
        "fault" => Act::Fault(rest.parse().map_err(|it: crate::faults::ParseFaultError| it.0)?),
        "upgrade" => Act::Upgrade(one("what")?.parse()?),
        "pause" => match unquote(rest)? {
            reason if reason.is_empty() => return Err("it does not say why".to_owned()),
            reason => Act::Pause { reason },
        },
        "resume" => nothing(Act::Resume)?,
        "unlock" => nothing(Act::Unlock)?,
        "apply" => Act::Apply { manifest: read_manifest(rest)? },
        "apply-status" => Act::ApplyStatus { manifest: read_manifest(rest)? },
        "apply-unchecked" => Act::ApplyUnchecked { manifest: read_manifest(rest)? },
        "delete" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [kind, name] => {
                let (namespace, name) = read_place(name);
                Act::Delete { kind: kind.to_owned(), namespace, name }
            }
            _ => return Err("it needs a kind and a name".to_owned()),
        },
        "cordon" => Act::Cordon { node: one("which node")? },
        "uncordon" => Act::Uncordon { node: one("which node")? },
        "untaint" => Act::Untaint { node: one("which node")? },
        "annotate" => match rest.splitn(3, char::is_whitespace).collect::<Vec<_>>()[..] {
            [kind, name, word] => {
                let (kind, (namespace, name)) = (kind.to_owned(), read_place(name));
                match (word.split_once('='), word.strip_suffix('-')) {
                    (Some((key, value)), _) => Act::Annotate {
                        kind,
                        namespace,
                        name,
                        key: key.to_owned(),
                        value: Some(unquote(value)?),
                    },
                    (None, Some(key)) => {
                        Act::Annotate { kind, namespace, name, key: key.to_owned(), value: None }
                    }
                    (None, None) => return Err(format!("`{word}` says nothing of a value")),
                }
            }
            _ => return Err("it needs a kind, a name and what to say".to_owned()),
        },
        "hold" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [kind, name] => Act::Hold { kind: kind.to_owned(), name: name.to_owned() },
            _ => return Err("it needs a kind and a name".to_owned()),
        },
        "release" => nothing(Act::Release)?,
        _ => Act::Run(length::read(&one("for how long")?)?),
    })
}

/// `[NAMESPACE/]NAME`
fn read_place(text: &str) -> (Option<String>, String) {
    match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, text.to_owned()),
    }
}

fn read_manifest(rest: &str) -> Result<String, String> {
    let manifest = unquote(rest)?;
    if manifest.trim().is_empty() { Err("it does not say what".to_owned()) } else { Ok(manifest) }
}

fn read_publication(rest: &str) -> Result<Publication, String> {
    let mut words = rest.split_whitespace();
    let name = words.next().filter(|it| !it.starts_with("--")).ok_or("it does not say its name")?;
    let mut found = Publication::of(name);
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        let mut value = || {
            value.or_else(|| words.next()).ok_or_else(|| format!("nothing stands behind `{flag}`"))
        };
        match flag {
            "--id" => {
                found.id = Some(
                    value()?
                        .parse()
                        .map_err(|it: nodemolt_core::image::ParseImageIdError| it.to_string())?,
                );
            }
            "--arch" => found.architecture = Some(read_architecture(value()?)?),
            "--owner" => {
                found.owner = Some(
                    value()?
                        .parse()
                        .map_err(|it: nodemolt_core::image::ParseAccountIdError| it.to_string())?,
                );
            }
            "--created" => found.created = Some(read_time(value()?)?),
            "--parameter" => found.parameters.push(value()?.to_owned()),
            "--tag" => {
                let tag = value()?;
                let (key, value) =
                    tag.split_once('=').ok_or_else(|| format!("tag `{tag}` has no value"))?;
                found.tags.insert(key.to_owned(), value.to_owned());
            }
            "--stillborn" => found.behaviour = Behaviour::Stillborn,
            "--never-ready" => found.behaviour = Behaviour::NeverReady,
            "--flapping" => found.behaviour = Behaviour::Flapping,
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    Ok(found)
}

pub(crate) fn read_architecture(text: &str) -> Result<Architecture, String> {
    match text {
        "amd64" => Ok(Architecture::X86_64),
        other => match Architecture::read(other) {
            Architecture::Other(_) => {
                Err(format!("`{other}` is no architecture that we boot: x86_64 or arm64"))
            }
            known @ (Architecture::X86_64 | Architecture::Arm64) => Ok(known),
        },
    }
}

/// A date means its first moment.
pub(crate) fn read_time(text: &str) -> Result<Timestamp, String> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    whole.parse().map_err(|_| {
        let date = text.get(..10).and_then(|it| it.parse::<jiff::civil::Date>().ok());
        if date.is_some_and(|it| it >= jiff::civil::date(9999, 12, 30)) {
            format!("`{text}` is no time that can be counted to; write one before 9999-12-30")
        } else {
            format!("`{text}` is no time: write it as `2026-08-01` or `2026-08-01T12:00:00Z`")
        }
    })
}

/// Text in double quotes as in JSON, or else as it stands.
fn unquote(text: &str) -> Result<String, String> {
    if text.starts_with('"') {
        serde_json::from_str(text).map_err(|it| format!("the quoted text cannot be read: {it}"))
    } else {
        Ok(text.to_owned())
    }
}

/// As it stands where that reads back, else in quotes.
fn quote(text: &str) -> String {
    let plain = !text.is_empty()
        && !text.starts_with('"')
        && text.trim() == text
        && !text.chars().any(char::is_control);
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn place(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |it| format!("{it}/{name}"))
}

impl FromStr for ImageName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_) if text.starts_with("ami-") => Err(format!(
                "`{text}` is not an image id; write `ami-` and 8 or 17 of the digits 0-9 and a-f, or a name"
            )),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some(("node", name)) if !name.is_empty() => Ok(Self::Node(name.to_owned())),
            Some(("pool", name)) if !name.is_empty() => Ok(Self::Pool(name.to_owned())),
            Some(_) | None => Err(format!("`{text}` is neither a node nor a pool")),
        }
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(out, "{id}"),
            Self::Name(name) => write!(out, "{name}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(out, "node/{name}"),
            Self::Pool(name) => write!(out, "pool/{name}"),
        }
    }
}

impl fmt::Display for Publication {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name)?;
        if let Some(id) = &self.id {
            write!(out, " --id {id}")?;
        }
        if let Some(architecture) = &self.architecture {
            write!(out, " --arch {}", architecture.as_str())?;
        }
        if let Some(owner) = &self.owner {
            write!(out, " --owner {owner}")?;
        }
        if let Some(created) = &self.created {
            write!(out, " --created {created}")?;
        }
        for parameter in &self.parameters {
            write!(out, " --parameter {parameter}")?;
        }
        for (key, value) in &self.tags {
            write!(out, " --tag {key}={value}")?;
        }
        match self.behaviour {
            Behaviour::Good => Ok(()),
            Behaviour::Stillborn => write!(out, " --stillborn"),
            Behaviour::NeverReady => write!(out, " --never-ready"),
            Behaviour::Flapping => write!(out, " --flapping"),
        }
    }
}

/// The line that is read.
impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publish(it) => write!(out, "publish {it}"),
            Self::Move { parameter, to } => write!(out, "move {parameter} {to}"),
            Self::Put { parameter, value } => write!(out, "put {parameter} {}", quote(value)),
            Self::Deprecate(it) => write!(out, "deprecate {it}"),
            Self::Disable(it) => write!(out, "disable {it}"),
            Self::Enable(it) => write!(out, "enable {it}"),
            Self::Deregister(it) => write!(out, "deregister {it}"),
            Self::Unshare(it) => write!(out, "unshare {it}"),
            Self::Fault(it) => write!(out, "fault {it}"),
            Self::Upgrade(it) => write!(out, "upgrade {it}"),
            Self::Pause { reason } => write!(out, "pause {}", quote(reason)),
            Self::Resume => write!(out, "resume"),
            Self::Unlock => write!(out, "unlock"),
            Self::Apply { manifest } => write!(out, "apply {}", quote(manifest)),
            Self::ApplyStatus { manifest } => write!(out, "apply-status {}", quote(manifest)),
            Self::ApplyUnchecked { manifest } => write!(out, "apply-unchecked {}", quote(manifest)),
            Self::Delete { kind, namespace, name } => {
                write!(out, "delete {kind} {}", place(namespace.as_deref(), name))
            }
            Self::Cordon { node } => write!(out, "cordon {node}"),
            Self::Uncordon { node } => write!(out, "uncordon {node}"),
            Self::Untaint { node } => write!(out, "untaint {node}"),
            Self::Annotate { kind, namespace, name, key, value } => {
                write!(out, "annotate {kind} {} {key}", place(namespace.as_deref(), name))?;
                match value {
                    Some(value) => write!(out, "={}", quote(value)),
                    None => write!(out, "-"),
                }
            }
            Self::Hold { kind, name } => write!(out, "hold {kind} {name}"),
            Self::Release => write!(out, "release"),
            Self::Run(length) => write!(out, "run {}", length::write(*length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_reads_back_as_it_is_written() {
        for text in [
            "publish amazon-eks-node-al2023-arm64-standard-1.33-v20260801",
            "publish golden-2 --id ami-0123456789abcdef0 --arch arm64 --owner 111122223333 --created 2026-08-01T00:00:00Z --parameter /golden/a --parameter /golden/b --tag team=web --stillborn",
            "publish golden-3 --never-ready",
            "publish golden-4 --flapping",
            "move /golden/a ami-0123456789abcdef0",
            "move /golden/a golden-1",
            "put /golden/a \"\"",
            "put /golden/a {\"id\":\"ami-0123456789abcdef0\"}",
            "deprecate golden-1",
            "disable golden-1",
            "enable golden-1",
            "deregister ami-0123456789abcdef0",
            "unshare golden-1",
            "fault crash leader for 10s",
            "upgrade node/web-0",
            "upgrade pool/web",
            "pause the network is being mended",
            "resume",
            "unlock",
            "apply \"kind: Pod\\nmetadata:\\n  name: a\\n\"",
            "apply-status \"kind: Pod\\nmetadata:\\n  name: a\\n\"",
            "apply-unchecked \"kind: Pod\\nmetadata:\\n  name: a\\n\"",
            "delete NodeClaim web-0",
            "delete Pod shop/cart-0",
            "cordon web-0",
            "uncordon web-0",
            "untaint @leaving",
            "annotate node @any karpenter.sh/do-not-disrupt=true",
            "annotate nodeclaim web-0 karpenter.sh/do-not-disrupt-",
            "annotate pod shop/cart-0 karpenter.sh/do-not-disrupt-",
            "hold nodeclaim web-0",
            "release",
            "run 8d",
        ] {
            let act: Act = text.parse().unwrap_or_else(|it| panic!("{text}: {it}"));
            assert_eq!(act.to_string(), text);
            assert_eq!(act.to_string().lines().count(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_act_says_what_to_write() {
        for text in [
            "",
            "dance",
            "publish",
            "publish a --id ami-1",
            "publish a --arch mips",
            "move a",
            "upgrade web",
            "pause",
            "resume now",
            "apply",
            "apply \"",
            "delete Pod",
            "annotate node web-0",
            "annotate node web-0 karpenter.sh/do-not-disrupt",
            "hold node",
            "release node",
            "run",
            "run soon",
            "fault",
            "deprecate ami-xyz",
            "publish red\u{1b}[31m",
            "put /golden/a red\u{1b}[31m",
            "fault skew leader 99999999999",
        ] {
            let told = text.parse::<Act>().unwrap_err().to_string();
            assert!(told.contains("write"), "{text}: {told}");
        }
    }
}
