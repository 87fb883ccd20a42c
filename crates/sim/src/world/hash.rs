//! Was this the same life?
//!
//! 64 bits over everything that happened. Our own arithmetic: a library's may change with its version,
//! and a stored hash with it.

use std::hash::{Hash as _, Hasher};

use jiff::Timestamp;

use crate::trace::{Fact, Step};

#[derive(Debug, Clone)]
pub(super) struct StepHash(u64);

impl StepHash {
    pub(super) fn new(seed: u64) -> Self {
        let mut hash = Self(0xcbf2_9ce4_8422_2325);
        hash.write_u64(seed);
        hash
    }

    pub(super) fn get(&self) -> u64 {
        // The last bytes have not spread yet.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    fn time(&mut self, at: Timestamp) {
        self.write(&at.as_nanosecond().to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.write(text.as_bytes());
        self.write_u8(0xff);
    }

    pub(super) fn add(&mut self, step: &Step) {
        self.time(step.at);
        self.text(super::tell::who(step.by).as_ref());
        match &step.fact {
            Fact::Stored { resource, object, .. } => {
                self.text(resource.plural);
                object.hash(self);
            }
            Fact::Removed { resource, last } => {
                self.text("removed");
                self.text(resource.plural);
                last.hash(self);
            }
            // The rest is short, and says all of itself when it is printed.
            Fact::Evicted { .. }
            | Fact::PodDeleted { .. }
            | Fact::LaunchAsked { .. }
            | Fact::TerminateAsked { .. }
            | Fact::Machine(_)
            | Fact::Published { .. }
            | Fact::Image(_)
            | Fact::Turned(_)
            | Fact::Replica { .. }
            | Fact::Fault { .. }
            | Fact::FaultsEnd
            | Fact::Act { .. } => self.text(&format!("{:?}", step.fact)),
        }
    }
}

/// FNV, eight bytes at a time where there are so many.
impl Hasher for StepHash {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.iter().rev().fold(0u64, |word, it| word << 8 | u64::from(*it));
            self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
        for byte in chunks.remainder() {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.get()
    }
}
