//! How does an answer look?
//!
//! Columns that `awk` can cut and nothing drawn around them. Every state has a glyph and a word; colour
//! only repeats what they say.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::cli::{Arguments, Colour, Format};
use crate::terminal::{self, ROOM_MIN, broken, cut, width_of};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Differs,
    HeldBack,
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Differs => 2,
            Exit::HeldBack => 3,
            Exit::Usage => 64,
        })
    }
}

/// What a command has to say.
#[derive(Debug)]
pub(crate) struct Answer {
    pub data: String,
    pub talk: String,
    pub exit: Exit,
}

/// A command that could not answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub talk: String,
    pub exit: Exit,
}

impl Failure {
    pub(crate) fn new(message: impl std::fmt::Display) -> Self {
        Self { talk: format!("error: {message}\n"), exit: Exit::Failed }
    }

    /// What was typed cannot be meant.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Usage, ..Self::new(message) }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl std::fmt::Display) -> Self {
        let _ = writeln!(self.talk, "hint: {hint}");
        self
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(format!("{error:#}"))
    }
}

/// Glyphs and colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    ascii: bool,
    colour: Colour,
}

/// What a line says about an image or a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Waiting,
    Refused,
    Passed,
    Careful,
}

impl Look {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        Self { ascii: arguments.ascii, colour: arguments.color }
    }

    pub(crate) fn choice(self) -> anstream::ColorChoice {
        match self.colour {
            Colour::Auto => anstream::AutoStream::choice(&std::io::stdout()),
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        }
    }

    /// Glyph and word, for instance `✔ chosen`. The colour-blind see blue and orange, not green and red.
    pub(crate) fn mark(self, mark: Mark, word: &str) -> String {
        let (glyph, plain, colour) = match mark {
            Mark::Good => ("✔", "+", Some(AnsiColor::Blue)),
            Mark::Waiting => ("◷", "~", Some(AnsiColor::Yellow)),
            Mark::Refused => ("✖", "x", Some(AnsiColor::Yellow)),
            Mark::Passed => ("·", "-", None),
            Mark::Careful => ("⚠", "!", Some(AnsiColor::Yellow)),
        };
        let glyph = if self.ascii { plain } else { glyph };
        let style = Style::new().fg_color(colour.map(Into::into));
        format!("{style}{glyph} {word}{style:#}")
    }

    /// Text with nothing outside ASCII in it, where that was asked for.
    pub(crate) fn plain(self, text: &str) -> String {
        if !self.ascii {
            return text.to_owned();
        }
        let mut plain = String::new();
        for character in text.chars() {
            match character {
                '…' => plain.push_str("..."),
                '≥' => plain.push_str(">="),
                '≤' => plain.push_str("<="),
                '→' => plain.push_str("->"),
                '×' => plain.push('x'),
                other if other.is_ascii() => plain.push(other),
                other => {
                    let _ = write!(plain, "\\u{{{:x}}}", u32::from(other));
                }
            }
        }
        plain
    }
}

/// kubectl's kind of table: upper-case headers, three spaces between, nothing else.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headers.len(), "a cell for each header");
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, with_headers: bool) -> String {
        self.print_within(with_headers, Within::default())
    }

    /// Where it is wider than that, its columns move together; then the last one goes on under itself, or under the
    /// row where little is left beside the others. Columns that have no room beside those before them stand under
    /// them, in each row and in the headers.
    pub(crate) fn print_within(&self, with_headers: bool, within: Within) -> String {
        let headers: Vec<String> = self.headers.iter().map(|it| (*it).to_owned()).collect();
        let mut lines: Vec<&Vec<String>> = Vec::new();
        if with_headers {
            lines.push(&headers);
        }
        lines.extend(&self.rows);
        let mut widths = vec![0; self.headers.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line.iter()) {
                *width = (*width).max(width_of(cell));
            }
        }
        let last = self.headers.len().saturating_sub(1);
        let room = within.columns.unwrap_or(usize::MAX);
        let all: usize = widths.iter().sum();
        let gap = if all + 3 * last <= room { 3 } else { 2 };
        let (breaks, before) = breaks(&widths[..last], gap, room);
        let beside = room.saturating_sub(before);
        let mut text = String::new();
        for line in lines {
            let mut row = String::new();
            for (at, cell) in line.iter().enumerate() {
                if at < last {
                    if breaks.contains(&at) {
                        row.truncate(row.trim_end().len());
                        row.push('\n');
                        row.extend(std::iter::repeat_n(' ', UNDER));
                    }
                    row.push_str(cell);
                    let gap = widths[at].saturating_sub(width_of(cell)) + gap;
                    row.extend(std::iter::repeat_n(' ', gap));
                } else if width_of(cell) <= beside {
                    row.push_str(cell);
                } else {
                    let (indent, room) = match beside {
                        ROOM_MIN.. => (before, beside),
                        _ => (UNDER, room.saturating_sub(UNDER).max(ROOM_MIN)),
                    };
                    let under = indent != before;
                    let parts = within.parts(cell, room);
                    for (place, part) in parts.iter().enumerate() {
                        if place > 0 || under {
                            row.truncate(row.trim_end().len());
                            row.push('\n');
                            row.extend(std::iter::repeat_n(' ', indent));
                        }
                        row.push_str(part);
                    }
                }
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Which columns begin a new line, and where the one behind all of them begins.
fn breaks(widths: &[usize], gap: usize, room: usize) -> (Vec<usize>, usize) {
    let mut breaks = Vec::new();
    let mut before = 0;
    for (at, width) in widths.iter().enumerate() {
        if at > 0 && before + width > room {
            breaks.push(at);
            before = UNDER;
        }
        before += width + gap;
    }
    (breaks, before)
}

/// How far to the right the last cell of a row begins that has no room beside the others.
const UNDER: usize = 4;

/// What a table may take. By default all that it wants, as programs read it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Within {
    pub columns: Option<usize>,
    /// So many lines of one cell; what is more is left out, and `…` says so.
    pub cell_lines: Option<usize>,
}

impl Within {
    /// The terminal that stdout is, if it is one.
    pub(crate) fn terminal() -> Self {
        Self { columns: terminal::columns(), cell_lines: None }
    }

    fn parts(self, cell: &str, room: usize) -> Vec<String> {
        let parts = broken(cell, room, room);
        let Some(max) = self.cell_lines.filter(|it| *it > 0 && *it < parts.len()) else {
            return parts;
        };
        let mut kept = parts[..max - 1].to_vec();
        // The colour ends where it would have ended.
        kept.push(cut(&parts[max - 1..].join(" "), room, true));
        kept
    }
}

/// Text on its way to a terminal: of what would move the cursor or paint the screen only ends of lines, tabs and our
/// own colours go through, whoever wrote it.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let odd = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let own: Vec<String> = [AnsiColor::Blue, AnsiColor::Yellow]
        .map(|it| Style::new().fg_color(Some(it.into())).render().to_string())
        .into_iter()
        .chain([Style::new().bold().render_reset().to_string()])
        .collect();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(odd) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = own.iter().find(|it| rest.starts_with(it.as_str()));
        let length =
            colour.map_or_else(|| rest.chars().next().map_or(0, char::len_utf8), String::len);
        let (one, after) = rest.split_at(length);
        match colour {
            Some(colour) => shown.push_str(colour),
            None => shown.push_str(&printable(one)),
        }
        rest = after;
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Writes it to stdout, at once.
pub(crate) fn write(data: &str, look: Look) -> io::Result<()> {
    write_as(&shown(data), look.choice())
}

/// The same where nothing in it is ours to colour, and not a byte of it ours to drop.
pub(crate) fn write_verbatim(data: &str) -> io::Result<()> {
    write_as(data, anstream::ColorChoice::AlwaysAnsi)
}

fn write_as(data: &str, choice: anstream::ColorChoice) -> io::Result<()> {
    let mut stdout = anstream::AutoStream::new(io::stdout(), choice);
    match stdout.write_all(data.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever reads us may stop reading; that is no failure of ours.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Nobody was told. Who acted has to know that it is done all the same: whoever tries again does it twice.
pub(crate) fn unwritten(error: &io::Error, acted: bool) -> Failure {
    let failure = Failure::new(format!("could not write the answer: {error}"));
    if acted {
        failure.hint("what was asked is done and saved all the same, time that was to pass has passed; `nodemolt sim list` shows it")
    } else {
        failure
    }
}

/// Data for programs.
pub(crate) fn serialize(format: Format, value: &impl Serialize) -> anyhow::Result<String> {
    match format {
        Format::Yaml => Ok(serde_saphyr::to_string(value)?),
        Format::Table | Format::Wide | Format::Json | Format::Name => {
            Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
        }
    }
}

/// `2026-11-12 09:14`, in UTC, as the column's header says.
pub(crate) fn minute(at: Timestamp) -> String {
    let zoned = at.to_zoned(jiff::tz::TimeZone::UTC);
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `3d`, `5h`, `12m`: the largest unit that says something.
pub(crate) fn length(duration: SignedDuration) -> String {
    let minutes = duration.as_mins().abs();
    match (minutes / (24 * 60), minutes / 60) {
        (0, 0) => format!("{minutes}m"),
        (0, hours) => format!("{hours}h"),
        (days, _) => format!("{days}d"),
    }
}

pub(crate) fn age(dated: Option<Timestamp>, now: Timestamp) -> String {
    match dated.map(|it| now.duration_since(it)) {
        None => "?".to_owned(),
        // It is not there yet, by its own account.
        Some(age) if age.is_negative() => format!("-{}", length(age)),
        Some(age) => length(age),
    }
}

/// What others wrote, without what would move the cursor, paint the screen or begin a new row.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// `in 4d` or `4d ago`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let until = at.duration_since(now);
    if until.is_negative() {
        format!("{} ago", length(until))
    } else {
        format!("in {}", length(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_paint_the_screen() {
        let look = Look { ascii: false, colour: Colour::Always };
        for mark in [Mark::Good, Mark::Waiting, Mark::Refused, Mark::Passed, Mark::Careful] {
            let line = format!("{}\n", look.mark(mark, "so\tit is"));
            assert_eq!(shown(&line), line);
        }
        assert_eq!(shown("a\x1b[31mred\x07\r\n"), "a\\u{1b}[31mred\\u{7}\\r\n");
        assert_eq!(shown("\u{9b}31m\x1b"), "\\u{9b}31m\\u{1b}");
    }

    #[test]
    fn a_table_fits_its_terminal() {
        let mut table = Table::new(&["NODE", "POOL", "STATE"]);
        table.row(vec!["node-0".into(), "web".into(), "current".into()]);
        let state = "waits for a person: pod default/import has no controller";
        table.row(vec!["node-1".into(), "web".into(), state.into()]);
        let shown = |columns, cell_lines| table.print_within(true, Within { columns, cell_lines });
        let whole =
            format!("NODE     POOL   STATE\nnode-0   web    current\nnode-1   web    {state}\n");
        assert_eq!(shown(None, None), whole);
        assert_eq!(shown(Some(200), None), whole);
        let beside = "\
NODE    POOL  STATE
node-0  web   current
node-1  web   waits for a person: pod
              default/import has no
              controller
";
        assert_eq!(shown(Some(40), None), beside);
        let cut = "\
NODE    POOL  STATE
node-0  web   current
node-1  web   waits for a person: pod
              default/import has no con…
";
        assert_eq!(shown(Some(40), Some(2)), cut);
        let under = "\
NODE    POOL  STATE
node-0  web   current
node-1  web
    waits for a person: pod
    default/import has no
    controller
";
        assert_eq!(shown(Some(30), None), under);
        // No word is broken, where not even what stands before it has room.
        let narrow = "\
NODE
    POOL
    STATE
node-0
    web
    current
node-1
    web
    waits for a person: pod
    default/import has no
    controller
";
        assert_eq!(shown(Some(11), None), narrow);
    }
}
