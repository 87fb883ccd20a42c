//! A region and a cluster in memory.
//!
//! The engine of the product lives here without knowing it: its two ports lead to a simulated API server
//! and a simulated EC2, on a clock of their own. One thread, one seed, one trace.

pub mod laws;
pub mod trace;
pub mod kinds;
pub mod dice;
mod json;
mod selector;
pub mod api_server;
pub mod kube;
pub mod region;
pub mod executor;
pub mod desk;
pub mod replica;
pub mod act;
pub mod faults;
pub mod length;
pub mod scenario;
pub mod world;
pub mod life;
pub mod file;

pub use act::Act;
pub use faults::Fault;
pub use file::WorldFile;
pub use scenario::Scenario;
pub use world::{ActError, Broken, LoadError, World};
