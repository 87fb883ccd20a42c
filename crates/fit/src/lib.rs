//! What fits where: requirements, quantities, instance types and what a node of each would offer.
//!
//! Pure: what it answers depends on its arguments alone.

pub mod label;

pub mod family;
pub mod instance_type;
pub mod types;
pub mod prices;
pub mod vpc_limits;
pub mod type_labels;
pub mod capacity;
pub mod attachments;
mod nearest;
pub mod vocabulary;
pub mod requirement;
pub mod quantity;
pub mod duration;
pub mod taint;
pub mod selector;
pub mod pod;
pub mod node;
pub mod pool;
pub mod pack;

pub use duration::go_duration;
pub use family::Family;
pub use instance_type::InstanceType;
pub use quantity::{ParseQuantityError, Quantity};
pub use requirement::{
    Clash, MinValuesShort, Operator, ParseOperatorError, Requirement, Requirements, Undefined,
    Written, WrittenError,
};
pub use types::Types;
pub use vocabulary::{Key, Value, Vocabulary};
