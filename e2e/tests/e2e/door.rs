//! Does the real API server say to our kinds what we say that it does?
//!
//! Our definitions stand on the control plane that all tests share; what would be in the way of others there (Karpenter's
//! own definitions, admission policies) has one of its own.

use std::path::{Path, PathBuf};

use nodemolt_api::crd::{self, Crd};
use nodemolt_rig::Rig;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

mod cases;
mod columns;
mod install;
mod lockdown;
mod manifests;
mod published;
mod server;

/// The shared control plane with every kind that we serve where nobody else serves them.
async fn standalone() -> &'static Rig {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let rig = crate::rig();
    INSTALLED.get_or_init(|| install::definitions(rig, crd::all())).await;
    rig
}

/// Held by whoever writes objects whose names are not free to choose: a cluster has one ledger.
async fn fixed_names() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

/// What comes beside somebody else's Karpenter.
fn beside_karpenter() -> Vec<Crd> {
    crd::all().into_iter().filter(|it| !it.standalone_only).collect()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The YAML files of a folder and of those inside it, in the order of their paths.
fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let listed =
        std::fs::read_dir(folder).unwrap_or_else(|it| panic!("{}: {it}", folder.display()));
    for entry in listed {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|it| it == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// An object without what only a server can know.
fn as_written(mut object: Value) -> Value {
    const OF_THE_SERVER: [&str; 6] =
        ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !OF_THE_SERVER.contains(&key.as_str()));
    }
    object
}
