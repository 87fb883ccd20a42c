//! By when has everybody heard?
//!
//! `faults of watches and of lists × since when it is so → when it was told`
//!
//! What nobody could know yet is held against nobody. Watches tell late, and answers are older than they seem,
//! for as long as somebody said so by a fault.

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::Kind;

use crate::faults::Fault;
use crate::laws::{CALL_TAKES, KNOWN_AFTER};

/// Docs say: nothing voluntary begins while a kind was not heard of for so long. Until then a watch that tells late looks
/// like one of whose kind nothing happens.
const SILENT_AFTER: SignedDuration = SignedDuration::from_secs(90);

#[derive(Debug, Default)]
pub(in super::super) struct Hearing {
    /// Answers before this may be older than they seem.
    stale_until: Option<Timestamp>,
    /// Watches that told late, or still do.
    late: Vec<Late>,
}

/// What happens to a kind, or to all, between two times is told so much later.
#[derive(Debug)]
struct Late {
    kind: Option<Kind>,
    by: SignedDuration,
    from: Timestamp,
    until: Timestamp,
}

impl Hearing {
    /// Of `watch-lag 80s Node for 2m`, which watches tell how late from now on. How long answers will be older than they
    /// seem: `stale ec2 2m for 5m` says that nobody can know what has changed until then.
    pub(super) fn learn(&mut self, fault: &str, now: Timestamp) {
        let until =
            |lasts: Option<SignedDuration>| after(now, lasts.unwrap_or(SignedDuration::MAX));
        let fault = fault.parse();
        if let Ok(Fault::Stale { lasts, .. }) = fault {
            self.stale_until = self.stale_until.max(Some(until(lasts)));
        } else if let Ok(Fault::WatchLag { kind, by, lasts }) = fault {
            self.late.push(Late { kind, by, from: now, until: until(lasts) });
        }
    }

    pub(super) fn faults_end(&mut self, now: Timestamp) {
        self.stale_until = self.stale_until.min(Some(now));
        for it in &mut self.late {
            it.until = it.until.min(now);
        }
    }

    pub(super) fn stale_until(&self) -> Timestamp {
        self.stale_until.unwrap_or(Timestamp::MIN)
    }

    /// By how much later than others a watch of this kind may have told what was so from then on. It tells one change
    /// after the other: what comes while another is on its way waits for that one first.
    pub(in super::super) fn late_by(&self, kind: Kind, since: Timestamp) -> SignedDuration {
        let late = self.late.iter().filter(|it| {
            it.kind.is_none_or(|of| of == kind)
                && it.from <= since
                && since <= after(it.until, it.by)
        });
        let by = late.map(|it| it.by).max().unwrap_or_default();
        by.saturating_add(by)
    }

    /// Whether whoever grants must have heard what was so of this kind from then on: nobody can tell a watch that is late
    /// from one that has nothing to tell, before it is silent for too long.
    pub(in super::super) fn heard(&self, kind: Kind, since: Timestamp, now: Timestamp) -> bool {
        let late = self.late_by(kind, since).min(SILENT_AFTER.saturating_add(SILENT_AFTER));
        now.duration_since(since) > KNOWN_AFTER.max(late.saturating_add(CALL_TAKES))
    }

    /// By when everybody has heard of what was so of these kinds at a time.
    pub(in super::super) fn told_by(&self, kinds: &[Kind], since: Timestamp) -> Timestamp {
        let late = self.late.iter().filter(|it| it.kind.is_none_or(|it| kinds.contains(&it)));
        late.map(|it| it.told_by(since)).max().unwrap_or(since)
    }
}

impl Late {
    /// By when everybody has heard of what was so at this time. What comes while something else is on its way comes with the next,
    /// so that is twice as late; and what was put off last arrives when the fault is over for that long.
    fn told_by(&self, since: Timestamp) -> Timestamp {
        if self.from > after(since, KNOWN_AFTER) {
            return since;
        }
        let twice = after(since, self.by.saturating_add(self.by));
        after(twice.min(after(self.until, self.by)), KNOWN_AFTER)
    }
}

fn after(time: Timestamp, length: SignedDuration) -> Timestamp {
    time.saturating_add(length).unwrap_or(Timestamp::MAX)
}
