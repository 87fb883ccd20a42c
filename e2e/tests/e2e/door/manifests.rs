//! Does what people have apply unchanged, come back as it was written, and mean something to us?

use std::path::Path;

use nodemolt_api::{
    admission::cases::contains,
    file::{self, Object, Source},
    into_core::PoolOfClass,
    problem::{Finding, Severity},
};
use nodemolt_core::{
    ask::Ask,
    bootstrap::{OfClass, OfPool},
    launch::Settings,
    policy::{Quarantine, Rule},
};
use serde_json::Value;

use super::{
    fixed_names, repository,
    server::{Resource, Server, Write},
    standalone, yaml_files,
};

/// The examples that no server takes, each with its reason.
const NOT_APPLIED: [(&str, &str); 1] = [
    // A version of the class that nobody serves any more; the file door shows it as v1.
    ("classes/seed-0.yaml", "v1beta1"),
];

#[tokio::test]
async fn every_example_applies_comes_back_and_is_understood() {
    let server = Server::of(standalone().await).await;
    let _alone = fixed_names().await;
    let folder = repository().join("examples");
    let mut applied = 0;
    for path in yaml_files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let expected = NOT_APPLIED.iter().find(|it| it.0 == name);
        for object in objects(&path) {
            let outcome = round_trip(&server, &object).await;
            match (expected, outcome) {
                (None, Ok(())) => applied += 1,
                (None, Err(why)) => panic!("{name}: {why}"),
                (Some((_, because)), outcome) => {
                    let why = outcome.expect_err(&name);
                    assert!(why.contains(because), "{name}: {why}");
                }
            }
        }
    }
    assert!(applied >= 12, "{applied}");
}

#[tokio::test]
async fn manifests_as_karpenters_users_write_them_apply_unchanged() {
    let rig = standalone().await;
    let server = Server::of(rig).await;
    let folder = repository().join("e2e/tests/e2e/door/manifests");
    let files = yaml_files(&folder);
    assert!(files.len() >= 10, "{}", files.len());

    // As users do it, strictly: a field that is not known would be an error.
    let folder = folder.display().to_string();
    let output = rig.kubectl(&["apply", "--validate=strict", "-f", &folder]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    for path in files {
        for written in objects(&path) {
            let resource = Resource::of(&written).unwrap();
            let stored = server.get(&resource.path_of(&written)).await;
            let outcome = same_and_understood(&written, &stored);
            assert_eq!(outcome, Ok(()), "{}", path.display());
            server.delete(&resource, &stored).await;
        }
    }
}

fn objects(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
}

/// Creates it with its status, reads it back, and takes it away again.
async fn round_trip(server: &Server, written: &Value) -> Result<(), String> {
    let resource =
        Resource::of(written).ok_or_else(|| format!("{} is not served", written["apiVersion"]))?;
    let refused = |it: super::server::Refused| it.message;
    let created = server.create(&resource, written, Write::Stays).await.map_err(refused)?;
    let mut outcome = Ok(());
    if written.get("status").is_some() {
        let told = server.replace(&resource, &created, "/status", written, Write::Stays).await;
        outcome = told.map(drop).map_err(refused);
    }
    let stored = server.get(&resource.path_of(written)).await;
    server.delete(&resource, &stored).await;
    outcome.and_then(|()| same_and_understood(written, &stored))
}

fn same_and_understood(written: &Value, stored: &Value) -> Result<(), String> {
    if let Some(difference) = contains(stored, written, "") {
        return Err(format!("came back otherwise: {difference}"));
    }
    let source = Source { name: "stored".to_owned(), text: stored.to_string() };
    let (objects, problems) = file::read(&source);
    let serious: Vec<String> = problems
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(|it| format!("{it:?}"))
        .collect();
    if !serious.is_empty() {
        return Err(format!("is not read: {serious:?}"));
    }
    let [object] = &objects[..] else { return Err(format!("is {} objects", objects.len())) };
    understood(&object.value).map_err(|it| format!("is not understood: {it:?}"))
}

/// Through every door into core that there is for its kind.
fn understood(object: &Object) -> Result<(), Vec<Finding>> {
    match object {
        Object::Class(class) => {
            Ask::try_from(class)?;
            OfClass::try_from(class)?;
            Settings::try_from(class)?;
        }
        Object::Pool(pool) => {
            PoolOfClass::try_from(pool)?;
            let _ = OfPool::from(pool);
        }
        Object::Policy(policy) => drop(Rule::try_from(policy)?),
        Object::Quarantine(quarantine) => drop(Quarantine::try_from(quarantine)?),
        // Their modules of core are still to come; that they are read is all there is.
        Object::Claim(_)
        | Object::Budget(_)
        | Object::Replacement(_)
        | Object::Ledger(_)
        | Object::Image(_) => {}
    }
    Ok(())
}
