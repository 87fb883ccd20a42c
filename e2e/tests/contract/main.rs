//! Does the simulated API server answer what the real one answers?
//!
//! The same adapter speaks to both, act by act. What it is answered, what is stored, what watches tell and
//! what the eyes make of it must be equal, save for what no two servers have in common: UIDs, revisions,
//! times and who wrote which field.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod acts;
mod named;
mod pair;
mod random;
mod same;
