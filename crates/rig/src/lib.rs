//! What stands between our tests and the real thing?
//!
//! Nothing: a real etcd, API server, scheduler and controller manager on loopback, and the tools of others that
//! judge what we write. For development only; the product never uses this crate.
//!
//! ```no_run
//! let rig = nodemolt_rig::shared()?;
//! rig.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}")?;
//! let out = rig.kubectl(&["get", "configmap", "a"])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything ends with the process that started it, however that ends: see `guardian`.

mod control_plane;
mod client;
mod processes;
mod guardian;
mod ports;
mod credentials;
mod tools;
mod go;
mod cache;
mod error;
pub mod nodes;
pub mod kubelets;
pub mod karpenter;
pub mod nodeadm;

pub use control_plane::{Parts, Rig, shared};
pub use error::RigError;
pub use ports::free as free_ports;
pub use tools::{KUBERNETES_VERSION, Tool, program, programs};
