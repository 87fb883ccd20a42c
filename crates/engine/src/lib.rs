//! Turns: observe, decide, record; hands perform.
//!
//! One loop over the whole fleet, because a budget is a property of the fleet and not of an object. It
//! sees the world through two ports and runs unchanged against the real one and the simulated one.
//! Everything runs on one thread: futures need not be `Send`, and nothing here spawns.

pub mod claims;
pub mod port;
pub mod record;
