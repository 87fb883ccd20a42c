//! What happens in a simulated world?
//!
//! `world file × verb → world, and what is told`
//!
//! Every verb replays the file; who only looks leaves it as it is, who acts appends the act and saves it
//! whole.

mod data;
mod lock;
pub(crate) mod news;
pub(crate) mod scenarios;
mod whom;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use nodemolt_api::file::{Source, raw};
use nodemolt_api::problem::Problem;
use nodemolt_sim::act::{Behaviour, Publication};
use nodemolt_sim::file::{FileError, ReplayError};
use nodemolt_sim::life::Life;
use nodemolt_sim::trace::Step;
use nodemolt_sim::world::{ActError, LoadError, failure, line, what};
use nodemolt_sim::{Act, Fault, Scenario, World, WorldFile, length};

use crate::cli::{self, Format, SimFormat, SimSubresource, SimVerb};
use crate::input;
use crate::output::{self, Answer, Exit, Failure, Look, Table, Within, printable, serialize};
use crate::terminal::cut;
use lock::Lock;
use news::News;

pub(crate) fn run(verb: &cli::Sim, look: Look) -> Result<Answer, Failure> {
    match &verb.verb {
        SimVerb::Load(verb) => load(verb),
        SimVerb::List(verb) => list(verb),
        SimVerb::Run(verb) => let_pass(verb, look),
        SimVerb::Publish(verb) => publish(verb),
        SimVerb::Fault(verb) => do_act(&verb.world, &Act::Fault(fault(&verb.words)?)),
        SimVerb::Apply(verb) => {
            let manifest = read_text(&verb.file)?;
            readable(&verb.file, &manifest)?;
            let act = match (verb.subresource, verb.unchecked) {
                (Some(SimSubresource::Status), _) => Act::ApplyStatus { manifest },
                (None, true) => Act::ApplyUnchecked { manifest },
                (None, false) => Act::Apply { manifest },
            };
            do_act(&verb.world, &act)
        }
        SimVerb::Delete(verb) => {
            do_line(&verb.world, &format!("delete {} {}", verb.kind, verb.name))
        }
        SimVerb::Cordon(verb) => do_act(&verb.world, &Act::Cordon { node: verb.node.clone() }),
        SimVerb::Uncordon(verb) => do_act(&verb.world, &Act::Uncordon { node: verb.node.clone() }),
        SimVerb::Untaint(verb) => do_act(&verb.world, &Act::Untaint { node: verb.node.clone() }),
        SimVerb::Annotate(verb) => do_line(
            &verb.world,
            &format!("annotate {} {} {}", verb.kind, verb.name, verb.annotation),
        ),
        SimVerb::Hold(verb) => do_line(&verb.world, &format!("hold {} {}", verb.kind, verb.name)),
        SimVerb::Release(verb) => do_act(&verb.world, &Act::Release),
        SimVerb::Replay(verb) => match verb.seed {
            Some(seed) => replay_life(verb, seed, look),
            None => replay(verb, look),
        },
    }
}

/// What stands in a world file as one line.
fn do_line(world: &cli::WorldPath, line: &str) -> Result<Answer, Failure> {
    do_act(world, &line.parse().map_err(Failure::usage)?)
}

/// A world out of its file, as it is now.
pub(crate) struct Opened {
    pub file: WorldFile,
    pub world: World,
}

impl Opened {
    pub(crate) fn open(asked: &cli::WorldPath) -> Result<Self, Failure> {
        let (path, file) = kept(asked)?;
        let world = file.replay().map_err(|it| {
            unlivable(&it)
                .hint(format!("{} cannot be lived again; load its scenario anew", path.display()))
        })?;
        Ok(Self { file, world })
    }
}

/// A world that nobody else acts on meanwhile.
struct Held {
    path: PathBuf,
    opened: Opened,
    _lock: Lock,
}

impl Held {
    fn open(asked: &cli::WorldPath) -> Result<Self, Failure> {
        // Where there is no world, nothing is made: no folder, no lock.
        let (path, _) = kept(asked)?;
        let lock = Lock::take(&path)?;
        Ok(Self { opened: Opened::open(asked)?, path, _lock: lock })
    }

    /// Does it, remembers it, saves it. What came of it, in a sentence.
    fn act(&mut self, act: &Act) -> Result<String, Failure> {
        let Opened { file, world } = &mut self.opened;
        let at = world.now();
        let told_of_it = world.act(act).map_err(|it| refused(world, act, it))?;
        file.note(act, at, world);
        file.save(&self.path).map_err(|it| told(&it))?;
        Ok(told_of_it)
    }
}

/// Who is not there was mistyped, whichever verb names it.
fn refused(world: &World, act: &Act, error: ActError) -> Failure {
    if !error.mistyped {
        return Failure::new(error);
    }
    let failure = Failure::usage(error);
    match whom::hint(world, act) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Why a world cannot be lived: each of several reasons is an error of its own.
fn unlivable(error: &ReplayError) -> Failure {
    match error {
        ReplayError::Load(LoadError(problems)) if !problems.is_empty() => {
            let mut talk = String::new();
            for it in problems {
                let _ = writeln!(talk, "error: {error}: {it}");
            }
            Failure { talk, exit: Exit::Failed }
        }
        ReplayError::Load(_) | ReplayError::Act { .. } => told(error),
    }
}

/// What was kept of a world.
fn kept(asked: &cli::WorldPath) -> Result<(PathBuf, WorldFile), Failure> {
    let path = path(asked)?;
    if !exists(&path)? {
        let example = scenarios::ALL.first().map_or("SCENARIO", |it| it.name);
        let message = format!("there is no simulated world: {} does not exist", path.display());
        if let Some(Some(file)) = &asked.file {
            // `explain --sim node-1`: the node was taken for the file.
            let file = file.display();
            return Err(Failure::new(message).hint(format!(
                "`--sim` takes the word after it as its FILE: if `{file}` is none, write it before `--sim` or leave `--sim` out; `nodemolt sim load {example} --sim {file}` begins a world there"
            )));
        }
        return Err(Failure::new(message).hint(format!(
            "`nodemolt sim load {example}` begins one, `nodemolt sim list` shows the others"
        )));
    }
    let file = WorldFile::load(&path).map_err(|it| told(&it))?;
    Ok((path, file))
}

/// What is no YAML, or says something twice, is shown where it stands: an act knows no file.
fn readable(path: &Path, manifest: &str) -> Result<(), Failure> {
    let name =
        if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    let source = Source { name: name.into_owned(), text: manifest.to_owned() };
    let problems = raw::problems(&source);
    if problems.is_empty() {
        return Ok(());
    }
    let talk = problems.iter().map(|it| input::show(it, manifest)).collect();
    Err(Failure { talk, exit: Exit::Failed }
        .hint("nothing was applied; `nodemolt validate` looks at a manifest without applying it"))
}

fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(input::read_bytes(path)?)
        .map_err(|_| Failure::new(format!("{} is no text in UTF-8", path.display())))
}

/// An error and all that caused it.
fn told(error: &dyn std::error::Error) -> Failure {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        text.push_str(": ");
        text.push_str(&it.to_string());
        cause = it.source();
    }
    Failure::new(text)
}

/// Whether there is a file. That nobody may look is another answer.
fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|it| {
        Failure::new(format!("could not look at {}: {it}", path.display()))
            .hint("name another file with `--sim FILE`, or see who may read its folder")
    })
}

/// The file that is meant: the one that was named, or the one in the user's state folder.
fn path(asked: &cli::WorldPath) -> Result<PathBuf, Failure> {
    if let Some(Some(file)) = &asked.file {
        return Ok(linked(file.clone()));
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|it| it.join(".local").join("state")))
        .or_else(|| absolute("LOCALAPPDATA"));
    let state = state.ok_or_else(|| {
        let relative = ["XDG_STATE_HOME", "HOME"]
            .into_iter()
            .find_map(|name| Some((name, std::env::var_os(name).filter(|it| !it.is_empty())?)));
        let why = match relative {
            Some((name, value)) => {
                format!("{name} is `{}`, which does not begin with `/`", value.display())
            }
            None => "neither XDG_STATE_HOME nor HOME is set".to_owned(),
        };
        Failure::usage(format!("there is no state folder: {why}"))
            .hint("name a file with `--sim FILE`")
    })?;
    Ok(linked(state.join("nodemolt").join("sim.json")))
}

/// What a link points at is the world, whether or not it is there yet: that is locked, and that is put in its own
/// place. Of links that lead in a circle the system tells itself.
fn linked(file: PathBuf) -> PathBuf {
    const LINKS_MAX: usize = 40;
    let mut path = file.clone();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&path) else { return path };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    file
}

pub(crate) fn do_act(asked: &cli::WorldPath, act: &Act) -> Result<Answer, Failure> {
    let told_of_it = Held::open(asked)?.act(act)?;
    let told_of_it = if told_of_it.is_empty() { act.to_string() } else { told_of_it };
    let talk = "time stands still until `nodemolt sim run LENGTH`\n".to_owned();
    Ok(Answer { data: format!("{told_of_it}\n"), talk, exit: Exit::Done })
}

/// Reads a scenario by its name, or from a file.
pub(crate) fn scenario(asked: &str) -> Result<(String, Scenario), Failure> {
    let built_in = scenarios::ALL.iter().find(|it| it.name == asked);
    let (name, text) = match built_in {
        Some(it) => (it.name.to_owned(), it.text.to_owned()),
        None if Path::new(asked).is_file() || asked == "-" => {
            (asked.to_owned(), read_text(Path::new(asked))?)
        }
        None => {
            let failure = Failure::usage(format!("`{asked}` is neither a scenario nor a file"));
            return Err(match nearest(asked, scenarios::ALL.iter().map(|it| it.name)) {
                Some(near) => {
                    failure.hint(format!("is `{near}` meant? `nodemolt sim list` shows all"))
                }
                None => failure.hint("`nodemolt sim list` shows the scenarios"),
            });
        }
    };
    let scenario = Scenario::read(&name, &text).map_err(|problems| unreadable(&problems, &text))?;
    Ok((name, scenario))
}

fn unreadable(problems: &[Problem], text: &str) -> Failure {
    let mut all = String::new();
    for problem in problems {
        all.push_str(&input::show(problem, text));
    }
    Failure { talk: all, exit: Exit::Failed }.hint("docs/simulator.md has the fields of a scenario")
}

/// The name that was probably meant. Kubernetes' names have no capitals, and people write them all the same.
pub(crate) fn nearest<'n>(asked: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let asked = asked.to_lowercase();
    let near = names
        .map(|it| (strsim::damerau_levenshtein(&asked, &it.to_lowercase()), it))
        // Mistyped, or not typed to its end.
        .filter(|(distance, it)| {
            *distance <= it.len() / 3 || (asked.len() > 3 && it.starts_with(&asked))
        })
        .min();
    near.map(|(_, it)| it)
}

fn load(verb: &cli::SimLoad) -> Result<Answer, Failure> {
    let path = path(&verb.world)?;
    let (name, scenario) = scenario(&verb.scenario)?;
    let file = WorldFile::new(&name, scenario, verb.seed);
    let world = file.replay().map_err(|it| unlivable(&it))?;
    // Beside what is refused no lock is left.
    replaced(&path)?;
    let _lock = Lock::take(&path)?;
    let mut talk = replaced(&path)?;
    file.save(&path).map_err(|it| told(&it))?;
    let simulation = world.simulation();
    let nodes: u32 = simulation.fleet.iter().map(|it| it.nodes).sum();
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let data = format!(
        "{name}   seed {}   {}   Kubernetes {}   {nodes}\n",
        verb.seed,
        world.now(),
        simulation.kubernetes,
    );
    let _ = writeln!(talk, "the world is kept in {}", path.display());
    talk.push_str("next: `nodemolt status`, `nodemolt sim run 5m`, `nodemolt sim publish …`, `nodemolt sim fault …`\n");
    Ok(Answer { data, talk, exit: Exit::Done })
}

/// What is lost by putting another world there, in a sentence; nothing where nothing is. What is no world of ours is
/// not overwritten; an older or newer one may be.
fn replaced(path: &Path) -> Result<String, Failure> {
    if !exists(path)? {
        return Ok(String::new());
    }
    match WorldFile::load(path) {
        Ok(old) => {
            Ok(format!("replaces the world of {}, seed {}\n", printable(&old.name), old.seed))
        }
        Err(FileError::Version { .. }) => Ok("replaces a world of another version\n".to_owned()),
        Err(
            error @ (FileError::Read(..)
            | FileError::Write(..)
            | FileError::Scenario(_)
            | FileError::Broken { .. }),
        ) => Err(told(&error)),
    }
}

fn list(verb: &cli::SimList) -> Result<Answer, Failure> {
    let path = path(&verb.world)?;
    let there = exists(&path)?;
    let file = there.then(|| WorldFile::load(&path).map_err(|it| told(&it))).transpose()?;
    if verb.output == SimFormat::Json {
        let data = serialize(Format::Json, &data::list(scenarios::ALL, file.as_ref()))?;
        return Ok(Answer { data, talk: String::new(), exit: Exit::Done });
    }
    let mut table = Table::new(&["SCENARIO", "WHAT IT SHOWS"]);
    for it in scenarios::ALL {
        table.row(vec![it.name.to_owned(), it.title().to_owned()]);
    }
    let within = Within::terminal();
    let mut data = table.print_within(!verb.no_headers, within);
    if let Some(file) = &file {
        let _ = writeln!(
            data,
            "\nloaded   {}   seed {}   {} after {}",
            printable(&file.name),
            file.seed,
            file.until,
            length::write(file.age())
        );
        for (at, act) in &file.acts {
            // A whole manifest may stand in one.
            let line = format!("{at}   {act}");
            let _ = writeln!(
                data,
                "{}",
                within.columns.map_or(line.clone(), |it| cut(&line, it, false))
            );
        }
    }
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

fn let_pass(verb: &cli::SimRun, look: Look) -> Result<Answer, Failure> {
    let mut held = Held::open(&verb.world)?;
    let mut seen = held.opened.world.trace().len();
    let mut news = News::of(held.opened.world.trace());
    let mut news_since = |world: &World| {
        let told = tell(world.trace()[seen..].iter(), &mut news, verb.all, verb.output)?;
        seen = world.trace().len();
        Ok::<_, Failure>(if verb.output == SimFormat::Text { look.plain(&told) } else { told })
    };
    let mut written = Ok(());
    let mut left = verb.duration;
    // What leads past the end of time is refused before any of it passes.
    let ends = held.opened.world.now().checked_add(left).is_ok_and(|it| it <= length::LAST);
    while ends && left > TOLD_EVERY {
        held.opened.world.run(TOLD_EVERY);
        left = left.saturating_sub(TOLD_EVERY);
        let told = news_since(&held.opened.world)?;
        // Time was asked to pass, and passes, also where nobody can be told.
        written = written.and_then(|()| output::write(&told, look));
    }
    let told_of_it = held.act(&Act::Run(left))?;
    written.map_err(|it| output::unwritten(&it, true))?;
    let world = &held.opened.world;
    let mut data = news_since(world)?;
    match verb.output {
        SimFormat::Text => data.push_str(&look.plain(&format!("{told_of_it}\n"))),
        SimFormat::Json => data.push_str(&data::end(world, false)?),
    }
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

/// A long time passes in parts of this length, and what happened is told after each: whoever watches sees that it goes
/// on, and whoever ends it has what was told so far.
const TOLD_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// What happened, a line each: every step, or what people would ask about.
fn tell<'s>(
    steps: impl Iterator<Item = &'s Step>,
    news: &mut News,
    all: bool,
    output: SimFormat,
) -> Result<String, Failure> {
    let mut data = String::new();
    for step in steps {
        let told_of_step = match output {
            SimFormat::Text if all => Some(line(step)),
            SimFormat::Json if all => Some(what(step)),
            SimFormat::Text => news.line(step),
            SimFormat::Json => news.text(step),
        };
        let Some(it) = told_of_step else { continue };
        match output {
            SimFormat::Text => {
                data.push_str(&it);
                data.push('\n');
            }
            SimFormat::Json => data.push_str(&data::event(step, &it)?),
        }
    }
    Ok(data)
}

fn publish(verb: &cli::SimPublish) -> Result<Answer, Failure> {
    let act = publication(verb)?;
    if let Some(created) = verb.created {
        let now = Opened::open(&verb.world)?.world.now();
        if created > now {
            return Err(Failure::usage(format!("--created {created} is later than now, {now}"))
                .hint("an image is there before it is published; let time pass with `nodemolt sim run`"));
        }
    }
    do_act(&verb.world, &act)
}

fn publication(verb: &cli::SimPublish) -> Result<Act, Failure> {
    const CHANGES: [&str; 7] =
        ["move", "put", "deprecate", "disable", "enable", "deregister", "unshare"];
    let first = verb.words.first().map_or("", String::as_str);
    if CHANGES.contains(&first) {
        let flagged = verb.id.is_some()
            || verb.arch.is_some()
            || verb.owner.is_some()
            || verb.created.is_some()
            || !verb.parameter.is_empty()
            || !verb.tag.is_empty()
            || verb.stillborn
            || verb.never_ready
            || verb.flapping;
        if flagged {
            return Err(Failure::usage(format!("`{first}` takes no options"))
                .hint("options describe a new image: `nodemolt sim publish NAME --arch arm64`"));
        }
        return verb.words.join(" ").parse().map_err(Failure::usage);
    }
    if let Some(more) = verb.words.get(1) {
        return Err(Failure::usage(format!("`{more}` is too much"))
            .hint("write one name, or one of `move`, `put`, `deprecate`, `disable`, `enable`, `deregister`, `unshare` first"));
    }
    let (parameters, tags) = (verb.parameter.iter(), verb.tag.iter());
    let typed = [("NAME", first)]
        .into_iter()
        .chain(verb.arch.iter().map(|it| ("--arch", it.as_str())))
        .chain(parameters.map(|it| ("--parameter", it.as_str())))
        .chain(tags.map(|it| ("--tag", it.as_str())));
    for (of, word) in typed {
        // An act is a line, and its words stand between blanks.
        if word.is_empty() || word.contains(char::is_whitespace) {
            let wrong = if word.is_empty() { "is empty" } else { "has a blank in it" };
            return Err(Failure::usage(format!("{of} `{}` {wrong}", printable(word)))
                .hint(format!("write {of} with something in it, and without blanks")));
        }
    }
    let mut publication = Publication::of(first);
    publication.id.clone_from(&verb.id);
    publication.owner.clone_from(&verb.owner);
    publication.created = verb.created;
    publication.parameters.clone_from(&verb.parameter);
    publication.behaviour = match (verb.stillborn, verb.never_ready, verb.flapping) {
        (true, _, _) => Behaviour::Stillborn,
        (_, true, _) => Behaviour::NeverReady,
        (_, _, true) => Behaviour::Flapping,
        (false, false, false) => Behaviour::Good,
    };
    // What is left is read where every act is read.
    let mut line = format!("publish {publication}");
    if let Some(arch) = &verb.arch {
        let _ = write!(line, " --arch {arch}");
    }
    for tag in &verb.tag {
        let _ = write!(line, " --tag {tag}");
    }
    line.parse().map_err(Failure::usage)
}

fn fault(words: &[String]) -> Result<Fault, Failure> {
    words
        .join(" ")
        .parse()
        .map_err(|it| Failure::usage(it).hint("`nodemolt sim fault --help` lists all faults"))
}

fn replay(verb: &cli::SimReplay, look: Look) -> Result<Answer, Failure> {
    let (path, mut file) = kept(&verb.world)?;
    if let Some(until) = verb.until {
        file.acts.retain(|(at, _)| *at <= until);
        file.until = file.until.min(until).max(file.scenario.simulation.start);
    }
    let mut world =
        World::new(&file.scenario, file.seed).map_err(|it| unlivable(&ReplayError::Load(it)))?;
    world.check_laws();
    file.replay_into(&mut world).map_err(|it| unlivable(&it))?;
    replayed(verb, &world, &format!("nodemolt sim replay --sim {}", path.display()), look)
}

fn replay_life(verb: &cli::SimReplay, seed: u64, look: Look) -> Result<Answer, Failure> {
    let (world, _) = Life::draw(seed).watched_until(verb.until).map_err(Failure::new)?;
    replayed(verb, &world, &format!("nodemolt sim replay --seed {seed}"), look)
}

fn replayed(
    verb: &cli::SimReplay,
    world: &World,
    command: &str,
    look: Look,
) -> Result<Answer, Failure> {
    // A world does not end before its start, whatever is asked.
    let steps = world.trace().iter().filter(|it| verb.until.is_none_or(|until| it.at <= until));
    let mut data = tell(steps, &mut News::default(), !verb.short, verb.output)?;
    match verb.output {
        SimFormat::Text => {
            let (now, steps, hash) = (world.now(), world.steps(), world.hash());
            let _ = writeln!(data, "it is {now}   {steps} steps   hash {hash:016x}");
            data = look.plain(&data);
        }
        SimFormat::Json => data.push_str(&data::end(world, true)?),
    }
    let (talk, exit) = match failure(world, command) {
        Some(broken) => (broken, Exit::Failed),
        None => ("no law was broken\n".to_owned(), Exit::Done),
    };
    Ok(Answer { data, talk, exit })
}
