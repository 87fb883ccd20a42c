//! Which of the names that exist was meant?
//!
//! `a misspelt name × the names that exist → the nearest ones`

use std::cmp::Reverse;

/// Longer than any name we know. A page that was pasted by mistake has no nearest name, and the
/// comparison takes the square of the length.
const COMPARED_CHARS_MAX: usize = 64;
/// More than three proposals are a list and not an answer.
const PROPOSALS_MAX: usize = 3;

/// The names at the smallest distance, none if even that is more than a third of what was written.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let length = written.chars().count();
    if length > COMPARED_CHARS_MAX {
        return Vec::new();
    }
    let lower = written.to_lowercase();
    let mut ranked: Vec<_> = known
        .map(|it| {
            let candidate = it.to_lowercase();
            let distance = strsim::damerau_levenshtein(&lower, &candidate);
            (distance, Reverse(shared_start(&lower, &candidate)), it)
        })
        .filter(|(distance, ..)| *distance <= (length / 3).max(1))
        .collect();
    ranked.sort_unstable();
    let best = ranked.first().map(|(distance, ..)| *distance);
    ranked
        .into_iter()
        .take_while(|(distance, ..)| Some(*distance) == best)
        .take(PROPOSALS_MAX)
        .map(|(_, _, name)| name)
        .collect()
}

/// People misspell the end of a name more often than its beginning.
fn shared_start(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
}
