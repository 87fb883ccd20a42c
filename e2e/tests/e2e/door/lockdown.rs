//! Do the admission policies refuse on the server what they should, and nothing else?

use std::time::{Duration, Instant};

use nodemolt_api::{crd, lockdown::POLICIES};
use nodemolt_rig::{Parts, Rig};
use serde_json::{Value, json};

use super::{
    install,
    server::{Refused, Resource, Server, Write},
};

const GROUPS: [&str; 2] = ["nodemolt.dev/v1alpha1", "karpenter.k8s.aws/v1"];

/// What holds for whom: one for production, one for a team, one for all.
const IMAGE_POLICIES: &str = r#"
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: production}
spec:
  classSelector: {matchLabels: {env: prod}}
  owners: [self, amazon]
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: learning}
spec:
  classSelector: {matchExpressions: [{key: team, operator: In, values: [ml, vision]}, {key: sandbox, operator: DoesNotExist}]}
  allowedImages: {ids: [ami-0123456789abcdef0]}
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: everybody}
spec:
  owners: [self, amazon, "111122223333"]
"#;

fn class(version: &str, name: &str, labels: &Value, spec: &Value) -> Value {
    let mut whole = json!({
        "role": "nodes",
        "amiSelectorTerms": [{ "alias": "al2023@latest" }],
        "subnetSelectorTerms": [{ "tags": { "discovery": "blue" } }],
        "securityGroupSelectorTerms": [{ "tags": { "discovery": "blue" } }],
    });
    nodemolt_api::admission::cases::merge(&mut whole, spec);
    let metadata = json!({ "name": name, "labels": labels });
    json!({ "apiVersion": version, "kind": "EC2NodeClass", "metadata": metadata, "spec": whole })
}

/// Labels, spec, and what must be said against it; nothing, if it passes.
fn writes() -> Vec<(Value, Value, &'static [&'static str])> {
    let owned = |owner: &str| json!({ "amiFamily": "AL2023", "amiSelectorTerms": [{ "name": "a", "owner": owner }] });
    let image = |id: &str| json!({ "amiFamily": "AL2023", "amiSelectorTerms": [{ "id": id }] });
    let metadata = |options: Value| json!({ "metadataOptions": options });
    let (allowed, other) = ("ami-0123456789abcdef0", "ami-0fedcba9876543210");
    let (prod, dev, ml) =
        (json!({ "env": "prod" }), json!({ "env": "dev" }), json!({ "team": "ml" }));
    let both = json!({ "env": "prod", "team": "vision" });
    let sandbox = json!({ "team": "ml", "sandbox": "yes" });
    vec![
        (prod.clone(), json!({}), &[]),
        (prod.clone(), owned("amazon"), &[]),
        (
            prod.clone(),
            owned("111122223333"),
            &[
                "owner 111122223333 is not allowed by ImagePolicy production, which allows self, amazon",
            ],
        ),
        (dev.clone(), owned("111122223333"), &[]),
        (
            dev.clone(),
            owned("999988887777"),
            &["owner 999988887777 is not allowed by ImagePolicy everybody"],
        ),
        (json!({}), owned("999988887777"), &["by ImagePolicy everybody"]),
        (ml.clone(), image(allowed), &[]),
        (ml, image(other), &["image ami-0fedcba9876543210 is not allowed by ImagePolicy learning"]),
        (sandbox, image(other), &[]),
        (dev.clone(), image(other), &[]),
        (both.clone(), image(allowed), &[]),
        (both.clone(), image(other), &["by ImagePolicy learning"]),
        (both, owned("111122223333"), &["by ImagePolicy production"]),
        (
            dev.clone(),
            metadata(json!({ "httpTokens": "optional" })),
            &["spec.metadataOptions.httpTokens", "write `required`"],
        ),
        (
            dev.clone(),
            metadata(json!({ "httpPutResponseHopLimit": 2 })),
            &["spec.metadataOptions.httpPutResponseHopLimit", "write 1"],
        ),
        (dev, metadata(json!({ "httpTokens": "required", "httpPutResponseHopLimit": 1 })), &[]),
    ]
}

#[tokio::test]
async fn a_locked_cluster_refuses_foreign_owners_images_and_open_metadata() {
    let rig = Rig::start(Parts::default()).unwrap();
    install::definitions(&rig, crd::all()).await;
    let server = Server::of(&rig).await;

    // Two that were there before anybody locked anything, and one that was always good.
    let foreign = json!({ "amiFamily": "AL2023", "amiSelectorTerms": [{ "name": "a", "owner": "999988887777" }] });
    let open = json!({ "metadataOptions": { "httpTokens": "optional" } });
    let mut there = Vec::new();
    for version in GROUPS {
        for (name, spec) in [("foreign", &foreign), ("open", &open), ("good", &json!({}))] {
            let object = class(version, name, &json!({}), spec);
            let resource = Resource::of(&object).unwrap();
            there.push(server.create(&resource, &object, Write::Stays).await.unwrap());
        }
    }
    rig.apply(IMAGE_POLICIES).unwrap();
    for (file, text) in POLICIES {
        rig.apply(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    // Policies and what they are asked about are watched by the server itself, a moment later.
    for version in GROUPS {
        for (labels, spec, expected) in writes().iter().filter(|it| !it.2.is_empty()) {
            let object = class(version, "new", labels, spec);
            let resource = Resource::of(&object).unwrap();
            until_refused(expected, async || server.create(&resource, &object, Write::Dry).await)
                .await;
        }
    }
    // From here on everything is in force.
    for version in GROUPS {
        for (labels, spec, _) in writes().iter().filter(|it| it.2.is_empty()) {
            let object = class(version, "new", labels, spec);
            let resource = Resource::of(&object).unwrap();
            let answer = server.create(&resource, &object, Write::Dry).await;
            assert!(answer.is_ok(), "{object}: {answer:?}");
        }
    }

    for object in &there {
        // Whoever keeps it may still write what is not judged, else it could not even be deleted.
        let annotated = changed(object, &json!({ "metadata": { "annotations": { "a": "b" } } }));
        passes(&server, object, &annotated).await;
        let worse = [
            (
                json!({ "spec": { "amiFamily": "AL2023", "amiSelectorTerms": [{ "name": "b", "owner": "999988887777" }] } }),
                "owner 999988887777",
            ),
            (
                json!({ "spec": { "metadataOptions": { "httpPutResponseHopLimit": 3 } } }),
                "HopLimit",
            ),
        ];
        for (patch, said) in worse {
            let refused = write(&server, object, &changed(object, &patch)).await.unwrap_err();
            assert!(refused.message.contains(said), "{}: {}", object["metadata"], refused.message);
        }
        let closed = json!({ "spec": { "metadataOptions": { "httpTokens": "required" } } });
        passes(&server, object, &changed(object, &closed)).await;
        let opened = changed(
            object,
            &json!({ "spec": { "metadataOptions": { "httpTokens": "optional" } } }),
        );
        let was_open = object["metadata"]["name"] == "open";
        assert_eq!(
            write(&server, object, &opened).await.is_ok(),
            was_open,
            "{}",
            object["metadata"]
        );
    }
}

fn changed(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    nodemolt_api::admission::cases::merge(&mut object, patch);
    object
}

async fn write(server: &Server, there: &Value, object: &Value) -> Result<Value, Refused> {
    let resource = Resource::of(there).unwrap();
    server.replace(&resource, there, "", object, Write::Dry).await
}

async fn passes(server: &Server, there: &Value, object: &Value) {
    let answer = write(server, there, object).await;
    assert!(answer.is_ok(), "{object}: {answer:?}");
}

async fn until_refused(expected: &[&str], ask: impl AsyncFn() -> Result<Value, Refused>) {
    /// Two busy cores share this with other tests.
    const PATIENCE: Duration = Duration::from_mins(1);
    let waits_since = Instant::now();
    loop {
        let answer = ask().await;
        if let Err(refused) = &answer
            && refused.code == 403
            && expected.iter().all(|it| refused.message.contains(it))
        {
            return;
        }
        assert!(waits_since.elapsed() < PATIENCE, "not refused with {expected:?}: {answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
