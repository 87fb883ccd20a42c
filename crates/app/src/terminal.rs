//! How much fits on a line of whoever looks?
//!
//! A terminal breaks what is too long for it in the middle of a word. Where stdout is one, lines are broken
//! between words and go on under where they began; elsewhere nothing is broken, since programs read lines.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

/// Of a window, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub lines: usize,
    pub columns: usize,
}

impl Size {
    /// What terminals have always been.
    pub(crate) const USUAL: Self = Self { lines: 24, columns: 80 };

    /// By `stty`, which every system with terminals has.
    pub(crate) fn ask() -> Option<Self> {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        let asked = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output();
        let told = String::from_utf8(asked.ok()?.stdout).ok()?;
        Self::read(&told)
    }

    /// `24 80`; noughts where nobody knows.
    fn read(text: &str) -> Option<Self> {
        let (lines, columns) = text.trim().split_once(' ')?;
        let (lines, columns) = (lines.parse().ok()?, columns.parse().ok()?);
        (lines > 0 && columns > 0).then_some(Self { lines, columns })
    }
}

/// The width of the terminal that stdout is; `None` where it is none, or nobody knows.
pub(crate) fn columns() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    Size::ask().map(|it| it.columns)
}

/// Whole lines, each broken between words, where there is a width, and going on so far to the right.
pub(crate) fn hanging(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    };
    let room = columns.saturating_sub(indent).max(ROOM_MIN);
    let mut shown = String::new();
    for line in text.lines() {
        // What stands left of the indent takes room in the first line only.
        for (place, part) in broken(line, columns.max(ROOM_MIN), room).into_iter().enumerate() {
            if place > 0 {
                shown.extend(std::iter::repeat_n(' ', indent));
            }
            shown.push_str(&part);
            shown.push('\n');
        }
    }
    shown
}

/// Narrower than this no sentence can be read.
pub(crate) const ROOM_MIN: usize = 24;

/// In lines of so many characters, the first one and all others. A word that is longer stays whole: somebody may
/// want to copy it.
pub(crate) fn broken(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ');
    let mut line = words.next().unwrap_or_default().to_owned();
    let mut width = width_of(&line);
    for word in words {
        let room = if lines.is_empty() { first } else { others };
        let more = width_of(word);
        if line.is_empty() && !lines.is_empty() {
            // Two spaces where a line ends are none where the next one begins.
            (line, width) = (word.to_owned(), more);
        } else if width + 1 + more > room && !line.trim().is_empty() {
            lines.push(line.trim_end().to_owned());
            (line, width) = (word.to_owned(), more);
        } else {
            line.push(' ');
            line.push_str(word);
            width += 1 + more;
        }
    }
    if !line.trim().is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Characters that a terminal shows: escape sequences take no room.
pub(crate) fn width_of(text: &str) -> usize {
    let mut width = 0;
    let mut in_escape = false;
    for character in text.chars() {
        match character {
            '\u{1b}' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            _ => width += 1,
        }
    }
    width
}

/// So many characters of it, with `…` where something is missing; escape sequences take no room, and are left out
/// where no colours are wanted.
pub(crate) fn cut(line: &str, columns: usize, colours: bool) -> String {
    let whole = width_of(line) <= columns;
    let room = if whole { columns } else { columns.saturating_sub(1) };
    let mut shown = String::new();
    let (mut width, mut in_escape, mut ended) = (0, false, whole);
    for character in line.chars() {
        let escape = in_escape || character == '\u{1b}';
        in_escape = escape && character != 'm';
        if escape {
            shown.extend(Some(character).filter(|_| colours));
        } else if width < room {
            shown.push(character);
            width += 1;
        } else if !ended {
            shown.extend(Some('…').filter(|_| columns > 0));
            ended = true;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        for (text, first, others, expected) in [
            ("waits for node-2", 20, 20, &["waits for node-2"][..]),
            ("waits for node-2", 16, 4, &["waits for node-2"]),
            ("waits for node-2", 15, 15, &["waits for", "node-2"]),
            ("waits for node-2", 9, 3, &["waits for", "node-2"]),
            ("runs   ami-1   al2023", 12, 12, &["runs   ami-1", "al2023"]),
            ("         pod a: held", 14, 8, &["         pod", "a: held"]),
            ("", 5, 5, &[""]),
            ("\u{1b}[33m⚠ waits\u{1b}[0m", 7, 7, &["\u{1b}[33m⚠ waits\u{1b}[0m"]),
        ] {
            assert_eq!(broken(text, first, others), expected, "{text:?} in {first}, {others}");
        }
    }

    #[test]
    fn a_line_goes_on_under_where_it_began() {
        let told = "plan     waiting for the cluster's one slot\nnext     nothing\n";
        let shown = "plan     waiting for the cluster's\n         one slot\nnext     nothing\n";
        assert_eq!(hanging(told, 9, Some(36)), shown);
        assert_eq!(hanging(told, 9, None), told);
        assert_eq!(hanging(told.trim_end(), 9, None), told);
        assert_eq!(hanging(told.trim_end(), 9, Some(36)), shown);
    }

    #[test]
    fn what_is_not_to_be_seen_takes_no_room() {
        let line = "\u{1b}[33mabc\u{1b}[0m def";
        assert_eq!(cut(line, 5, true), "\u{1b}[33mabc\u{1b}[0m …");
        assert_eq!(cut(line, 5, false), "abc …");
        assert_eq!(cut(line, 7, false), "abc def");
        assert_eq!(cut(line, 1, false), "…");
        assert_eq!(cut(line, 0, false), "");
    }

    #[test]
    fn sizes_that_nobody_knows_are_none() {
        for (text, expected) in [("24 80\n", Some((24, 80))), ("0 0\n", None), ("", None)] {
            assert_eq!(Size::read(text).map(|it| (it.lines, it.columns)), expected);
        }
    }
}
