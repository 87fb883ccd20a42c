//! A region and a cluster in memory.
//!
//! The engine of the product lives here without knowing it: its two ports lead to a simulated API server
//! and a simulated EC2, on a clock of their own. One thread, one seed, one trace.

pub mod laws;
pub mod trace;
