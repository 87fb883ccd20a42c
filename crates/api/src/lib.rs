//! What did people write, and what did AWS answer?
//!
//! The only door into core: files and resources come in here as text and leave as wire types that
//! are known to be well formed. Nothing here decides anything.

pub mod file;
pub mod problem;

pub mod ec2nodeclass;
pub mod nodepool;
pub mod imagepolicy;
pub mod imagequarantine;
pub mod meta;
pub mod requirement;
pub mod v1beta1;

pub mod answers;
pub mod into_core;
pub mod into_launch;
pub mod into_bootstrap;

pub mod listing;

mod owner;
mod time;
