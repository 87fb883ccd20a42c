//! The engine's words as Kubernetes' verbs.
//!
//! `Cluster` is implemented once, over a transport that sends one request and returns one answer. Over the
//! network that is kube-rs; in the simulator it is the simulated API server. So what the simulator tests
//! is what runs.

pub mod adapter;
#[cfg(feature = "live")]
pub mod live;
pub mod resources;
pub mod transport;

pub use adapter::Adapter;
