//! Which names does an EC2 pattern match?
//!
//! `*` is any run of characters, `?` is zero or one character (EC2's own meaning, not a shell's), and a
//! backslash takes away the meaning of the next character. Upper and lower case differ.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A name as users write it in `amiSelectorTerms`, in policies and in quarantines.
///
/// All else follows from its text, which alone is compared: queries are looked up by their patterns in every turn.
#[derive(Debug, Clone)]
pub struct NamePattern {
    text: String,
    pieces: Vec<Piece>,
    /// What stands before, between and behind the `*`, where there is no `?`.
    plain: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Exactly(char),
    AtMostOne,
    Any,
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl PartialOrd for NamePattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NamePattern {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for NamePattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl NamePattern {
    pub fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let piece = match character {
                '*' => Piece::Any,
                '?' => Piece::AtMostOne,
                '\\' => Piece::Exactly(characters.next().unwrap_or('\\')),
                other => Piece::Exactly(other),
            };
            // `**` means `*`, and so does any mixture of `*` and `?`.
            match (pieces.last(), piece) {
                (Some(Piece::Any), Piece::Any | Piece::AtMostOne) => {}
                (Some(Piece::AtMostOne), Piece::Any) => {
                    while pieces.last() == Some(&Piece::AtMostOne) {
                        pieces.pop();
                    }
                    if pieces.last() != Some(&Piece::Any) {
                        pieces.push(Piece::Any);
                    }
                }
                _ => pieces.push(piece),
            }
        }
        let plain = between_stars(&pieces);
        Self { text: text.to_owned(), pieces, plain }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it can match more than one name.
    pub fn wild(&self) -> bool {
        self.pieces.iter().any(|it| !matches!(it, Piece::Exactly(_)))
    }

    /// What every matching name begins with.
    pub fn prefix(&self) -> String {
        self.pieces
            .iter()
            .map_while(|it| match it {
                Piece::Exactly(character) => Some(*character),
                Piece::AtMostOne | Piece::Any => None,
            })
            .collect()
    }

    /// The longest text without a wildcard that every matching name has in it behind its prefix.
    pub(crate) fn longest_part(&self) -> String {
        let parts = self.pieces.split(|it| !matches!(it, Piece::Exactly(_))).skip(1);
        let longest = parts.max_by_key(|it| it.len()).unwrap_or_default();
        longest
            .iter()
            .filter_map(|it| match it {
                Piece::Exactly(character) => Some(*character),
                Piece::AtMostOne | Piece::Any => None,
            })
            .collect()
    }

    /// False where no name that begins so can match.
    pub(crate) fn may_begin_with(&self, character: char) -> bool {
        match self.pieces.first() {
            Some(Piece::Exactly(first)) => *first == character,
            Some(Piece::AtMostOne | Piece::Any) => true,
            None => false,
        }
    }

    pub fn matches(&self, name: &str) -> bool {
        match self.plain.as_deref() {
            Some([whole]) => name == whole,
            Some([first, middle @ .., last]) => {
                let name = name.as_bytes();
                let Some(mut rest) = name.strip_prefix(first.as_bytes()) else { return false };
                // The earliest place of each leaves the most for those behind it.
                for part in middle {
                    let Some(behind) = behind(rest, part.as_bytes()) else { return false };
                    rest = behind;
                }
                rest.ends_with(last.as_bytes())
            }
            Some([]) | None => self.begins(name) && self.walk(name),
        }
    }

    /// Whether the name begins as every matching one does. Most names do not, and need no walk.
    fn begins(&self, name: &str) -> bool {
        let mut characters = name.chars();
        self.pieces
            .iter()
            .map_while(|it| match it {
                Piece::Exactly(wanted) => Some(*wanted),
                Piece::AtMostOne | Piece::Any => None,
            })
            .all(|wanted| characters.next() == Some(wanted))
    }

    /// All positions in the pattern that the name read so far can stand at, moved on a character at a
    /// time: pattern length times name length at the worst, never exponential.
    fn walk(&self, name: &str) -> bool {
        let end = self.pieces.len();
        let mut here = vec![false; end + 1];
        here[0] = true;
        // Nobody stands before `first`, nor behind `last`.
        let (mut first, mut last) = (0, self.skip_optional(&mut here, 0, 0));
        for character in name.chars() {
            // From behind, so that nobody is moved twice. Who stands at the end has nowhere to go.
            for at in (first..=last).rev() {
                if !here[at] {
                    continue;
                }
                let (stays, goes) = match self.pieces.get(at) {
                    None => (false, false),
                    Some(Piece::Exactly(wanted)) => (false, *wanted == character),
                    Some(Piece::AtMostOne) => (false, true),
                    Some(Piece::Any) => (true, false),
                };
                here[at] = stays;
                if goes {
                    here[at + 1] = true;
                    last = last.max(at + 1);
                }
            }
            match (first..=last).find(|it| here[*it]) {
                None => return false,
                Some(at) => first = at,
            }
            last = self.skip_optional(&mut here, first, last);
        }
        here[end]
    }

    /// Whoever may go on without a character stands there too. The last position that anybody stands at.
    fn skip_optional(&self, here: &mut [bool], first: usize, mut last: usize) -> usize {
        for (at, piece) in self.pieces.iter().enumerate().skip(first) {
            if at > last {
                break;
            }
            if here[at] && matches!(piece, Piece::AtMostOne | Piece::Any) {
                here[at + 1] = true;
                last = last.max(at + 1);
            }
        }
        last
    }
}

/// What follows the first place of a part. Names are short: to prepare a cleverer search would take
/// longer than this one.
fn behind<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    let Some((first, others)) = part.split_first() else { return Some(text) };
    let mut rest = text;
    loop {
        let at = rest.iter().position(|it| it == first)?;
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(others) {
            return Some(behind);
        }
    }
}

fn between_stars(pieces: &[Piece]) -> Option<Vec<String>> {
    pieces
        .split(|it| *it == Piece::Any)
        .map(|part| {
            part.iter()
                .map(|it| match it {
                    Piece::Exactly(character) => Some(*character),
                    Piece::AtMostOne | Piece::Any => None,
                })
                .collect()
        })
        .collect()
}

impl fmt::Display for NamePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.text)
    }
}

impl From<&str> for NamePattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::NamePattern;

    #[test]
    fn a_question_mark_is_zero_or_one_character() {
        for (pattern, name, expected) in [
            ("al2023-*", "al2023-v1", true),
            ("al2023-*", "al2023-", true),
            ("al2023-?", "al2023-", true),
            ("al2023-?", "al2023-1", true),
            ("al2023-?", "al2023-12", false),
            ("a??c", "ac", true),
            ("a??c", "abbc", true),
            ("a??c", "abbbc", false),
            ("*-1.3?-*", "amazon-eks-node-1.31-v1", true),
            ("*-1.3?-*", "amazon-eks-node-1.3-v1", true),
            ("*-1.3?-*", "amazon-eks-node-1.4-v1", false),
            ("?*", "", true),
            ("", "", true),
            ("", "a", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("golden", "Golden", false),
            ("ä?", "äö", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }

    /// The definition itself, as slow as it is plain.
    fn plainly(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| plainly(rest, &name[taken..])),
            Some(('?', rest)) => {
                plainly(rest, name) || (!name.is_empty() && plainly(rest, &name[1..]))
            }
            Some((wanted, rest)) => name.first() == Some(wanted) && plainly(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_equals_its_definition(pattern in "[ab*?]{0,9}", name in "[ab]{0,9}") {
            let slow = plainly(
                &pattern.chars().collect::<Vec<_>>(),
                &name.chars().collect::<Vec<_>>(),
            );
            let quick = NamePattern::new(&pattern);
            prop_assert_eq!(quick.matches(&name), slow);
            prop_assert!(!slow || name.starts_with(&quick.prefix()));
        }

        #[test]
        fn no_pattern_panics(pattern in "\\PC{0,40}", name in "\\PC{0,40}") {
            let _ = NamePattern::new(&pattern).matches(&name);
        }
    }
}
