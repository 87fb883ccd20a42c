//! What did people write, and what did AWS answer?
//!
//! The only door into core: files and resources come in here as text and leave as wire types that
//! are known to be well formed. Nothing here decides anything.

#![expect(
    unreachable_pub,
    reason = "kube derives a schema through a hidden copy of each struct, which nobody reaches"
)]
#![expect(
    clippy::duplicated_attributes,
    reason = "two printer columns of the same type are two columns, which clippy does not know"
)]

pub mod file;
pub mod problem;

pub mod crd;
pub mod admission;

pub mod ec2nodeclass;
pub mod nodepool;
pub mod nodeclaim;
pub mod nodedisruptionbudget;
pub mod imagepolicy;
pub mod imagequarantine;
pub mod replacement;
pub mod disruptionledger;
pub mod awsimage;
pub mod lockdown;
pub mod meta;
pub mod requirement;
pub mod v1beta1;

pub mod answers;
pub mod into_core;
pub mod into_budget;
pub mod into_node;
pub mod into_record;
pub mod into_launch;
pub mod into_bootstrap;

pub mod listing;
pub mod eyes;
pub mod attempt;

mod owner;
mod shape;
mod time;
