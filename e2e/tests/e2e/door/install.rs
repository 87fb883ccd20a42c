//! Does the API server take our definitions?

use nodemolt_api::crd::{Crd, print};
use nodemolt_rig::Rig;
use serde_json::Value;

use super::{beside_karpenter, published::with_karpenter, server::Server, standalone};

/// As `nodemolt crds | kubectl apply --server-side -f -` does, and until all are served.
pub(super) async fn definitions(rig: &Rig, crds: Vec<Crd>) {
    let yaml = print::yaml(&crds).unwrap();
    for arguments in [
        &["apply", "--server-side", "-f", "-"][..],
        &["wait", "--for=condition=Established", "--timeout=60s", "-f", "-"],
    ] {
        let output = rig.kubectl_with(arguments, &yaml).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // A warning, for example of a format that it does not know, is as bad.
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
    }
    let server = Server::of(rig).await;
    for crd in &crds {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let stored = server.get(&format!("{path}/{}", crd.name)).await;
        assert_eq!(condition(&stored, "Established"), "True", "{}", crd.name);
        assert_eq!(condition(&stored, "NamesAccepted"), "True", "{}", crd.name);
        // Absent means that the schema is structural.
        assert_eq!(condition(&stored, "NonStructuralSchema"), "", "{}", crd.name);
    }
}

fn condition<'v>(crd: &'v Value, name: &str) -> &'v str {
    let conditions = crd["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|it| it["type"] == name);
    found.and_then(|it| it["status"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn the_definitions_for_a_cluster_without_karpenter_install() {
    standalone().await;
}

#[tokio::test]
async fn ours_install_beside_karpenters_own_and_leave_those_alone() {
    let rig = with_karpenter().await;
    let server = Server::of(rig).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let names = |list: &Value| -> Vec<(String, u64)> {
        let items = list["items"].as_array().unwrap().iter();
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap().to_owned();
        items.map(|it| (name(it), it["metadata"]["generation"].as_u64().unwrap())).collect()
    };
    let before = names(&server.get(path).await);
    definitions(rig, beside_karpenter()).await;
    let after = names(&server.get(path).await);
    assert!(before.iter().all(|it| after.contains(it)), "{before:?}\n{after:?}");
    assert_eq!(after.len(), before.len() + beside_karpenter().len());
}
