//! What does it look like?
//!
//! A scenario on the simulator: on a terminal a picture that goes on at a speed a person can follow,
//! elsewhere lines. Nothing is written to disk.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use jiff::SignedDuration;
use nodemolt_sim::{Act, World, WorldFile};

use crate::cli;
use crate::fleet::named::Names;
use crate::fleet::{node_states, pool_table, rows, short_node_table};
use crate::output::{Answer, Exit, Failure, Look, Within};
use crate::sim::{self, news::News};
use crate::terminal::{Size, cut};

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
const NEWS_SHOWN_MIN: usize = 3;

const NEXT: &str = "\
What to try next:
  nodemolt sim list              the scenarios: budgets, crashes, two leaders, …
  nodemolt sim load demo         this one by steps; then `nodemolt sim run 5m`
  nodemolt status, plan, drift   what is going on in it
  nodemolt explain node-4        why is this node not replaced yet?
  nodemolt sim fault --help      what can go wrong
";

/// In the repository there are examples to ask of.
const IMAGES: &str =
    "  cargo demo --images            which image boots, and why not the newer one?\n";
const IMAGES_INSTALLED: &str =
    "  nodemolt resolve --help        which image boots, and why not the newer one?\n";

/// Whether cargo runs us in our repository, as `cargo demo` does.
fn by_cargo() -> bool {
    std::env::var_os("CARGO_PKG_NAME").is_some_and(|it| it == env!("CARGO_PKG_NAME"))
}

pub(crate) fn run(verb: &cli::Demo, look: Look) -> Result<Answer, Failure> {
    let (name, scenario) = sim::scenario(SCENARIO)?;
    let mut world = WorldFile::new(&name, scenario, verb.seed).replay().map_err(Failure::new)?;
    // Whether it moves is one thing, whether it is coloured another. A dumb terminal cannot go back.
    let dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
    let live = !verb.lines && !dumb && std::io::stdout().is_terminal();
    let images = if by_cargo() { IMAGES } else { IMAGES_INSTALLED };
    let data = if live { draw(&mut world, look)? } else { lines(&mut world)? };
    Ok(Answer {
        data: look.plain(&format!("{data}\n{NEXT}{images}")),
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
    let mut size = Size::ask().unwrap_or(Size::USUAL);
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
        let lines = fitting(&look.plain(&picture(world, &told, size, look)?), size, look);
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
            size = Size::ask().unwrap_or(size);
        }
    }
    Ok(String::new())
}

/// The picture in a window of this size, where nothing else has helped: lines are cut at its edge, and of too many the
/// tables go first, from their end, since the news are what is new.
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

/// With what is left out where the window is too small for all of it: older news first, then the ends of what nodes
/// wait for, then the pools, and in the end all but each node's name and how it begins to say where it stands.
fn picture(world: &World, told: &[String], size: Size, look: Look) -> Result<String, Failure> {
    let picture = world.picture().map_err(Failure::new)?;
    let rows = rows::rows(&picture);
    let names = Names::new(world, &picture);
    let pools = rows::pools(&rows, &rows::homeless(&picture), &names.pools, &picture);
    let all: Vec<_> = rows.iter().collect();
    let (pools, nodes) = (pool_table(&pools, look), short_node_table(&all, look));
    // Nothing stands in the last column, nor in the last line, where the cursor is.
    let columns = Some(size.columns.saturating_sub(1));
    let drawn = |news: usize, tables: &[String], gap: &str| {
        let mut text = format!("{}   (simulated)\n{gap}", world.now());
        for table in tables {
            text.push_str(table);
            text.push('\n');
        }
        for line in &told[told.len().saturating_sub(news)..] {
            text.push_str(line);
            text.push('\n');
        }
        text
    };
    let both = |cell_lines: Option<usize>| {
        let within = Within { columns, cell_lines };
        [pools.print_within(true, within), nodes.print_within(true, within)]
    };
    let no_pools = |it: usize| [nodes.print_within(true, Within { columns, cell_lines: Some(it) })];
    // What is too long is cut at the edge.
    let states = || [node_states(&all, look).print(true)];
    let less_news = (NEWS_SHOWN_MIN..=NEWS_SHOWN).rev().map(|it| drawn(it, &both(None), "\n"));
    let less_words = (1..=3).rev().map(|it| drawn(NEWS_SHOWN_MIN, &both(Some(it)), "\n"));
    let less_tables = (1..=3).rev().map(|it| drawn(NEWS_SHOWN_MIN, &no_pools(it), "\n"));
    let least = (1..=NEWS_SHOWN_MIN).rev().map(|it| drawn(it, &states(), ""));
    let mut tries = less_news.chain(less_words).chain(less_tables).chain(least);
    let fits = |it: &String| it.lines().count() < size.lines;
    Ok(tries.find(fits).unwrap_or_else(|| drawn(1, &states(), "")))
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
                assert_eq!(shown.last(), Some(&cut("last news", columns - 1, false)));
            }
        }
        assert_eq!(fitting(picture, Size { lines: 24, columns: 80 }, look).len(), 11);
    }

    /// What is replaced is what one looks at.
    #[test]
    fn a_small_window_shows_all_nodes() {
        let look = Look::new(&<cli::Arguments as clap::Parser>::parse_from(["nodemolt", "demo"]));
        let (name, scenario) = sim::scenario(SCENARIO).unwrap();
        let mut world = WorldFile::new(&name, scenario, 1).replay().unwrap();
        // One has come, and the one that goes is still there.
        go_on(&mut world, &mut 0, SignedDuration::from_mins(6)).unwrap();
        assert_eq!(world.objects(nodemolt_sim::kinds::NODE).len(), 7);
        let told = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        for (lines, columns) in [(12, 40), (16, 60), (24, 80), (50, 200)] {
            let size = Size { lines, columns };
            let picture = picture(&world, &told, size, look).unwrap();
            let shown = fitting(&picture, size, look);
            for node in 0..6 {
                let node = format!("node-{node}");
                let there = shown.iter().any(|it| it.starts_with(&node));
                assert!(there, "{node} in {lines}, {columns}:\n{}", shown.join("\n"));
            }
            assert_eq!(shown.last().map(String::as_str), Some("three"));
        }
    }
}
