//! Does the same seed give the same life?
//!
//! `steps → number`
//!
//! 64 bits over everything that happened. Our own arithmetic, FNV with eight bytes at a time: it is the same
//! on every machine and in every version, which the standard library's is not.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::{Law, Violation};
use crate::trace::{Actor, Fact, Image, Machine, ReplicaState, Step, Turned, WaitsFor};

/// Of all steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

pub fn hash_of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    let mut hash = TraceHash::default();
    for step in steps {
        hash.add(step);
    }
    hash.value()
}

/// Two runs of one seed.
pub fn same_life(seed: u64, one: u64, other: u64, now: Timestamp) -> Option<Violation> {
    (one != other).then(|| Violation {
        law: Law::Determinism,
        at: now,
        what: format!("seed {seed} gave {one:016x} and then {other:016x}"),
    })
}

impl TraceHash {
    pub fn value(self) -> u64 {
        // The last bytes have not spread yet.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    pub fn add(&mut self, step: &Step) {
        let Step { at, by, fact } = step;
        self.number(at.as_second());
        self.number(at.subsec_nanosecond());
        self.number(match by {
            Actor::Operator(number) => 100 + i64::from(*number),
            Actor::Person => 1,
            Actor::Kubelet => 2,
            Actor::Scheduler => 3,
            Actor::Controllers => 4,
            Actor::Cloud => 5,
            Actor::Publisher => 6,
            Actor::Fate => 7,
        });
        self.fact(fact);
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            // What it was before was hashed when it was stored.
            Fact::Stored { resource, object, old: _ } => {
                self.words(&["stored", resource.group, resource.plural]);
                self.json(object);
            }
            Fact::Removed { resource, last } => {
                self.words(&["removed", resource.group, resource.plural]);
                self.json(last);
            }
            Fact::Evicted { namespace, pod, uid, grace_seconds, code } => {
                self.words(&["evicted", namespace, pod]);
                self.maybe(uid.as_deref());
                self.number(grace_seconds.unwrap_or(-1));
                self.number(*code);
            }
            Fact::PodDeleted { namespace, pod, uid, grace_seconds } => {
                self.words(&["deleted", namespace, pod]);
                self.maybe(uid.as_deref());
                self.number(grace_seconds.unwrap_or(-1));
            }
            Fact::LaunchAsked { token, machine, made, error } => {
                self.words(&["launch", token]);
                self.maybe(machine.as_deref());
                self.number(*made);
                self.maybe(error.as_deref());
            }
            Fact::TerminateAsked { machine } => self.words(&["terminate", machine]),
            Fact::Answered { question, about: _, complete } => {
                self.words(&["answered", question]);
                self.number(*complete);
            }
            Fact::Machine(machine) => self.machine(machine),
            Fact::Published { what } => self.words(&["published", what]),
            Fact::Image(image) => self.image(image),
            Fact::Turned(turned) => self.turned(turned),
            Fact::Replica { number, state } => {
                self.words(&[match state {
                    ReplicaState::Started => "started",
                    ReplicaState::Leads => "leads",
                    ReplicaState::Follows => "follows",
                    ReplicaState::Crashed => "crashed",
                }]);
                self.number(*number);
            }
            Fact::Fault { what } => self.words(&["fault", what]),
            Fact::FaultsEnd => self.words(&["faults end"]),
            Fact::HeldUp { since } => self.words(&["held up", &since.to_string()]),
            Fact::Refused { what, why } => self.words(&["refused", what, why]),
            Fact::Act { what } => self.words(&["act", what]),
        }
    }

    fn machine(&mut self, machine: &Machine) {
        let Machine { id, token, state, image, instance_type, zone, tags, node } = machine;
        self.words(&["machine", id, token, state, image, instance_type, zone]);
        for (key, value) in tags {
            self.words(&[key, value]);
        }
        self.maybe(node.as_deref());
    }

    fn image(&mut self, image: &Image) {
        let Image { id, name, owner, owner_alias, created_at, launchable, deprecated } = image;
        self.words(&["image", id, name]);
        self.maybe(owner.as_deref());
        self.maybe(owner_alias.as_deref());
        self.number(created_at.map_or(-1, Timestamp::as_second));
        self.number(*launchable);
        self.number(*deprecated);
    }

    fn turned(&mut self, turned: &Turned) {
        let Turned { wished, starts, under_way, waits, unknown, writes, commands } = turned;
        for (what, nodes) in
            [("wished", wished), ("starts", starts), ("under way", under_way), ("unknown", unknown)]
        {
            self.words(&[what]);
            for node in nodes {
                self.words(&[node]);
            }
        }
        for (node, reasons) in waits {
            self.words(&["waits", node]);
            for WaitsFor { reason, kind, namespace, name, behind, sentence } in reasons {
                self.words(&[reason, kind, sentence]);
                self.maybe(namespace.as_deref());
                self.maybe(name.as_deref());
                self.maybe(behind.as_deref());
            }
        }
        self.number(*writes);
        self.number(*commands);
    }

    fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.byte(0),
            Value::Bool(it) => self.number(*it),
            Value::Number(it) => match it.as_i64() {
                Some(whole) => self.number(whole),
                None => {
                    // Rare: no object of ours has a fraction.
                    write!(self, "{it}").unwrap_or_default();
                }
            },
            Value::String(it) => self.words(&[it]),
            Value::Array(items) => {
                self.byte(b'[');
                for it in items {
                    self.json(it);
                }
                self.byte(b']');
            }
            Value::Object(fields) => {
                self.byte(b'{');
                for (key, it) in fields {
                    self.words(&[key]);
                    self.json(it);
                }
                self.byte(b'}');
            }
        }
    }

    fn maybe(&mut self, word: Option<&str>) {
        match word {
            None => self.byte(0),
            Some(word) => self.words(&["some", word]),
        }
    }

    /// Each with its length, so that `ab, c` is not `a, bc`.
    fn words(&mut self, words: &[&str]) {
        for word in words {
            let mut eights = word.as_bytes().chunks_exact(8);
            for eight in &mut eights {
                self.eight(eight.try_into().map_or(0, u64::from_le_bytes));
            }
            let rest = eights.remainder().iter().rev();
            self.eight(rest.fold(0, |all, it| all << 8 | u64::from(*it)));
            self.eight(u64::try_from(word.len()).unwrap_or(u64::MAX));
        }
    }

    fn number(&mut self, number: impl Into<i64>) {
        self.eight(u64::from_le_bytes(number.into().to_le_bytes()));
    }

    fn byte(&mut self, byte: u8) {
        self.eight(u64::from(byte));
    }

    fn eight(&mut self, eight: u64) {
        self.0 = (self.0 ^ eight).wrapping_mul(0x0100_0000_01b3);
        // A product never carries downwards.
        self.0 ^= self.0 >> 29;
    }
}

impl std::fmt::Write for TraceHash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.words(&[text]);
        Ok(())
    }
}
