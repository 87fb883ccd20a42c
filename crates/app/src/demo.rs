//! What does it look like?
//!
//! A scenario on the simulator: on a terminal a picture that goes on at a speed a person can follow,
//! elsewhere lines. Nothing is written to disk.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::SignedDuration;
use nodemolt_sim::{Act, World, WorldFile};

use crate::cli;
use crate::fleet::named::Names;
use crate::fleet::{node_table, pool_table, rows};
use crate::output::{Answer, Exit, Failure, Look};
use crate::sim::{self, news::News};

const SCENARIO: &str = "demo";

/// What others do in it, and when.
const SCRIPT: [(SignedDuration, &str, &str); 4] = [
    (
        SignedDuration::from_secs(60),
        "publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730",
        "AWS publishes a new image: all nodes have drifted now",
    ),
    (
        SignedDuration::from_mins(6),
        "fault crash leader after-send for 10s",
        "nodemolt is killed just after it has sent something, and starts again",
    ),
    (
        SignedDuration::from_mins(7),
        "fault never-joins for 2m",
        "for two minutes new machines start and never become nodes",
    ),
    (
        SignedDuration::from_mins(60),
        "delete pod default/import",
        "the import is done, and its pod is gone: its node may be replaced",
    ),
];

/// How much simulated time one picture is.
const PICTURE: SignedDuration = SignedDuration::from_secs(6);
/// How long a picture with news stands, and one without: about a minute in all.
const STANDS: Duration = Duration::from_millis(500);
const STANDS_QUIET: Duration = Duration::from_millis(20);
const LASTS: SignedDuration = SignedDuration::from_mins(100);
const NEWS_SHOWN: usize = 7;

const NEXT: &str = "\
What to try next:
  nodemolt sim list                      the scenarios: budgets, PodDisruptionBudgets, crashes, two leaders, …
  nodemolt sim load demo                 this one, step by step; then `nodemolt sim run 5m`
  nodemolt status, plan, drift           what is going on in it
  nodemolt explain node-4                why is this node not replaced yet?
  nodemolt sim fault --help              what can go wrong
  cargo demo --images                    which image would the example classes boot, and why not the newer one?
";

pub(crate) fn run(verb: &cli::Demo, look: Look) -> Result<Answer, Failure> {
    let (name, scenario) = sim::scenario(SCENARIO)?;
    let mut world = WorldFile::new(&name, scenario, verb.seed).replay().map_err(Failure::new)?;
    // Whether it moves is one thing, whether it is coloured another. A dumb terminal cannot go back.
    let dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
    let live = !verb.lines && !dumb && std::io::stdout().is_terminal();
    let data = if live { draw(&mut world, look)? } else { lines(&mut world)? };
    Ok(Answer {
        data: look.plain(&format!("{data}\n{NEXT}")),
        talk: String::new(),
        exit: Exit::Done,
    })
}

/// Goes on to the next thing that is done or to `until`, whichever is first; what was done, in words.
fn go_on(
    world: &mut World,
    done: &mut usize,
    length: SignedDuration,
) -> Result<Vec<String>, Failure> {
    let start = world.simulation().start;
    let until = world.now() + length;
    let mut told = Vec::new();
    while let Some((at, act, words)) = SCRIPT.get(*done) {
        let at = start + *at;
        if at > until {
            break;
        }
        world.run(at.duration_since(world.now()));
        let act: Act = act.parse().map_err(Failure::new)?;
        world.act(&act).map_err(Failure::new)?;
        told.push((*words).to_owned());
        *done += 1;
    }
    world.run(until.duration_since(world.now()));
    Ok(told)
}

fn lines(world: &mut World) -> Result<String, Failure> {
    let mut news = News::default();
    let mut text = String::new();
    let mut seen = world.trace().len();
    let mut done = 0;
    let end = world.now() + LASTS;
    while world.now() < end {
        for words in go_on(world, &mut done, PICTURE)? {
            text.push_str("# ");
            text.push_str(&words);
            text.push('\n');
        }
        for step in &world.trace()[seen..] {
            if let Some(line) = news.line(step) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        seen = world.trace().len();
    }
    Ok(text)
}

fn draw(world: &mut World, look: Look) -> Result<String, Failure> {
    let mut news = News::default();
    let mut told: Vec<String> = Vec::new();
    let mut seen = world.trace().len();
    let mut done = 0;
    let end = world.now() + LASTS;
    let mut out = std::io::stdout();
    let mut size = Size::ask();
    let mut frame = "\x1b[2J".to_owned();
    while world.now() < end {
        let before = told.len();
        told.extend(go_on(world, &mut done, PICTURE)?.into_iter().map(|it| format!("# {it}")));
        for line in world.trace()[seen..].iter().filter_map(|it| news.line(it)) {
            told.extend(line.lines().map(str::to_owned));
        }
        seen = world.trace().len();
        // From the top, without wrapping: each line over the one that was there.
        frame.push_str("\x1b[?7l\x1b[H");
        let lines = fitting(&look.plain(&picture(world, &told, look)?), size, look);
        for line in &lines {
            frame.push_str(line);
            frame.push_str("\x1b[K\r\n");
        }
        frame.push_str("\x1b[J\x1b[?7h");
        // Who has closed the terminal does not want to see more.
        if out.write_all(frame.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
        frame.clear();
        let news = told.len() > before;
        std::thread::sleep(if news { STANDS } else { STANDS_QUIET });
        if news {
            // Windows are made larger and smaller while one looks.
            size = Size::ask();
        }
    }
    Ok(String::new())
}

/// Of a window, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    lines: usize,
    columns: usize,
}

impl Size {
    /// By `stty`, which every system with terminals has; else what terminals have always been.
    fn ask() -> Self {
        let usual = Self { lines: 24, columns: 80 };
        let Ok(terminal) = std::fs::File::open("/dev/tty") else { return usual };
        let asked = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output();
        let told = asked.ok().and_then(|it| String::from_utf8(it.stdout).ok());
        told.and_then(|it| Self::read(&it)).unwrap_or(usual)
    }

    /// `24 80`; noughts where nobody knows.
    fn read(text: &str) -> Option<Self> {
        let (lines, columns) = text.trim().split_once(' ')?;
        let (lines, columns) = (lines.parse().ok()?, columns.parse().ok()?);
        (lines > 0 && columns > 0).then_some(Self { lines, columns })
    }
}

/// The picture in a window of this size: lines are cut at its edge, and of too many the tables go first,
/// from their end, since the news are what is new.
fn fitting(picture: &str, size: Size, look: Look) -> Vec<String> {
    let colours = look.choice() != anstream::ColorChoice::Never;
    let cut = |it: &str| cut(it, size.columns.saturating_sub(1), colours);
    let all: Vec<&str> = picture.lines().collect();
    // The last line is where the cursor stands.
    let room = size.lines.saturating_sub(1);
    let over = all.len().saturating_sub(room);
    let news = all.iter().rposition(|it| it.is_empty()).map_or(0, |it| all.len() - it);
    let tables = all.len() - news;
    let kept = tables.saturating_sub(over);
    let news = all.len() - tables - over.saturating_sub(tables);
    all[..kept].iter().chain(&all[all.len() - news..]).map(|it| cut(it)).collect()
}

/// So many characters of it; escape sequences take no room, and are left out where no colours are wanted.
fn cut(line: &str, columns: usize, colours: bool) -> String {
    let mut shown = String::new();
    let (mut width, mut in_escape) = (0, false);
    for character in line.chars() {
        let escape = in_escape || character == '\u{1b}';
        in_escape = escape && character != 'm';
        if escape {
            shown.extend(Some(character).filter(|_| colours));
        } else if width < columns {
            shown.push(character);
            width += 1;
        }
    }
    shown
}

fn picture(world: &World, told: &[String], look: Look) -> Result<String, Failure> {
    let picture = world.picture().map_err(Failure::new)?;
    let rows = rows::rows(&picture);
    let names = Names::new(world, &picture);
    let pools = rows::pools(&rows, &rows::homeless(&picture), &names.pools);
    let all: Vec<_> = rows.iter().collect();
    let mut text = format!("{}   (simulated)\n\n", world.now());
    text.push_str(&pool_table(&pools, look).print(true));
    text.push('\n');
    text.push_str(&node_table(&all, look).print(true));
    text.push('\n');
    let first = told.len().saturating_sub(NEWS_SHOWN);
    for line in &told[first..] {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits_its_window() {
        let picture = "head\n\nPOOL\nweb\n\nNODE\nnode-0\nnode-1\n\nfirst news\nlast news\n";
        let look = Look::new(&<cli::Arguments as clap::Parser>::parse_from(["nodemolt", "demo"]));
        for (lines, columns) in [(24, 80), (8, 80), (5, 6), (2, 3), (1, 1)] {
            let shown = fitting(picture, Size { lines, columns }, look);
            assert!(shown.len() < lines.max(2), "{lines}: {shown:?}");
            assert!(shown.iter().all(|it| it.chars().count() < columns.max(2)), "{shown:?}");
            if lines > 2 {
                let last: String = "last news".chars().take(columns - 1).collect();
                assert_eq!(shown.last(), Some(&last));
            }
        }
        assert_eq!(fitting(picture, Size { lines: 24, columns: 80 }, look).len(), 11);
    }

    #[test]
    fn what_is_not_to_be_seen_takes_no_room() {
        let line = "\u{1b}[33mabc\u{1b}[0m def";
        assert_eq!(cut(line, 5, true), "\u{1b}[33mabc\u{1b}[0m d");
        assert_eq!(cut(line, 5, false), "abc d");
    }

    #[test]
    fn sizes_that_nobody_knows_are_none() {
        for (text, expected) in [("24 80\n", Some((24, 80))), ("0 0\n", None), ("", None)] {
            assert_eq!(Size::read(text).map(|it| (it.lines, it.columns)), expected);
        }
    }
}
