//! What fits where: requirements, quantities, instance types and what a node of each would offer.
//!
//! Pure: what it answers depends on its arguments alone.

pub mod label;
pub mod quantity;
pub mod vocabulary;

pub use quantity::{ParseQuantityError, Quantity};
pub use vocabulary::{Key, Value, Vocabulary};
