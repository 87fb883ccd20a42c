//! What time is it, and is that certain?
//!
//! `our clock × the API server's last word → now`
//!
//! Whatever is decided, recorded or remembered has one time: the lesser of both, so that neither clock alone can
//! let time run out for somebody. Only the lease is about our own clock. Where ours is far behind, others' words
//! (when a node became ready, when a pod was made) would lie in its future for as long as that lasts, and what is written by it would have
//! been long ago once it is put right; so the API server's clock counts then, by which all of those were written.

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Apart;

/// Clocks that are looked after differ by less than a second. By so much, one of two is wrong.
pub const APART_MAX: SignedDuration = SignedDuration::from_mins(1);

/// A difference that is still the same is told in the same words.
const SAME_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// What counts as now.
pub fn now(ours: Timestamp, servers: Option<Timestamp>) -> Timestamp {
    match servers {
        None => ours,
        Some(servers) if servers.duration_since(ours) > APART_MAX => servers,
        Some(servers) => servers.min(ours),
    }
}

/// Both clocks, if they are too far apart: the API server's word came between two looks at ours. An answer that took its
/// time is no wrong clock.
pub(crate) fn apart(
    before: Timestamp,
    after: Timestamp,
    servers: Timestamp,
    known: Option<Apart>,
) -> Option<Apart> {
    let ours = if servers < before { before } else { after };
    let found = Apart { ours, servers };
    let differs = (servers < before || servers > after) && found.ahead().abs() > APART_MAX;
    let same = |it: &Apart| (it.ahead() - found.ahead()).abs() <= SAME_WITHIN;
    differs.then(|| known.filter(same).unwrap_or(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    #[test]
    fn the_lesser_of_two_clocks_counts_unless_ours_is_far_behind() {
        let cases = [
            (1000, None, 1000),
            (1000, Some(1000), 1000),
            (1060, Some(1000), 1000),
            (9999, Some(1000), 1000),
            (990, Some(1000), 990),
            (940, Some(1000), 940),
            (939, Some(1000), 1000),
            (0, Some(1000), 1000),
        ];
        for (ours, servers, expected) in cases {
            assert_eq!(now(at(ours), servers.map(at)), at(expected), "{ours} {servers:?}");
        }
    }

    #[test]
    fn a_slow_answer_is_no_wrong_clock() {
        // Before the question, after the answer, what the server said, and by how much ours is ahead.
        let cases = [
            (1000, 1001, 1000, None),
            (1000, 1300, 1000, None),
            (1000, 1300, 1299, None),
            (1060, 1061, 1000, None),
            (1061, 1062, 1000, Some(61)),
            (1000, 1001, 1061, None),
            (1000, 1001, 1062, Some(-61)),
        ];
        for (before, after, servers, expected) in cases {
            let found = apart(at(before), at(after), at(servers), None);
            let found = found.map(|it| it.ahead().as_secs());
            assert_eq!(found, expected, "{before} {after} {servers}");
        }
    }

    #[test]
    fn the_same_difference_is_told_in_the_same_words() {
        let first = apart(at(4600), at(4601), at(1000), None);
        assert_eq!(apart(at(4720), at(4721), at(1118), first), first);
        let other = apart(at(4820), at(4821), at(1118), first);
        assert_eq!(other.map(|it| it.ahead().as_secs()), Some(3702));
        assert_eq!(apart(at(1119), at(1120), at(1119), other), None);
    }
}
