//! Decides: which image may boot, and why not the others.
//!
//! Pure: no I/O, no clock, no environment, no dice. `now` is an argument, and comes last. The modules
//! are the story of an image, in order.

pub mod image;
pub mod catalog;
pub mod lookup;
pub mod ask;
pub mod policy;
pub mod resolve;
pub mod bootstrap;
pub mod launch;
pub mod seen;
pub mod node;
pub mod wanted;
pub mod drift;
pub mod place;
pub mod budget;
pub mod plan;
pub mod drain;
pub mod replace;
pub mod claim;
pub mod explain;

pub use nodemolt_fit as fit;
