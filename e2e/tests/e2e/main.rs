//! What only the real thing can show: few tests, each a whole story. All share one control plane, see
//! `nodemolt_rig::shared`; a test that stops or restarts one starts its own.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod control_plane;
mod door;
mod karpenter;
mod nodeadm;
mod nodes;
mod seed_examples;

/// The control plane that all tests share.
fn rig() -> &'static nodemolt_rig::Rig {
    nodemolt_rig::shared().unwrap_or_else(|error| {
        let cause = std::error::Error::source(error);
        panic!("{error}{}", cause.map(|it| format!(": {it}")).unwrap_or_default())
    })
}
