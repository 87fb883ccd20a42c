//! Do `kubectl get` and `kubectl explain` answer the daily questions?

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_api::crd;
use nodemolt_rig::Rig;
use serde_json::Value;

use super::{
    fixed_names,
    server::{Resource, Server, Write},
    standalone,
};

const SHOWN: &str = include_str!("columns.yaml");

#[tokio::test]
async fn kubectl_get_tells_which_image_how_old_whether_ready_and_why_not() {
    let rig = standalone().await;
    let server = Server::of(rig).await;
    let _alone = fixed_names().await;
    let documents: Vec<Value> = serde_saphyr::from_multiple(SHOWN).unwrap();
    let mut seen = BTreeSet::new();
    for document in &documents {
        let object = &document["object"];
        let resource = Resource::of(object).unwrap_or_else(|| panic!("not ours: {object}"));
        let created = server.create(&resource, object, Write::Stays).await;
        let created = created.unwrap_or_else(|it| panic!("{object}: {it:?}"));
        let written = server.replace(&resource, &created, "/status", object, Write::Stays).await;
        written.unwrap_or_else(|it| panic!("{object}: {it:?}"));

        let plain = get(rig, &resource, object, &[]);
        assert_shown(&plain, &document["shows"]);
        if let Some(wide) = document.get("wide") {
            assert_shown(&get(rig, &resource, object, &["-o", "wide"]), wide);
        }
        // Nobody should have to scroll sideways for the answer to appear.
        assert!(plain.contains_key("READY"), "{plain:?}");
        server.delete(&resource, object).await;
        let group = resource.group_version.split('/').next().unwrap_or_default();
        seen.insert(format!("{}.{group}", resource.plural));
    }
    let all: BTreeSet<String> = crd::all().iter().map(|it| it.name.to_owned()).collect();
    assert_eq!(seen, all, "each kind is shown");
}

fn assert_shown(row: &BTreeMap<String, String>, expected: &Value) {
    for (column, value) in expected.as_object().unwrap() {
        let shown = row.get(column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
        let right = match value.as_str().unwrap() {
            // `3s`, `5m10s`, `682d`, `5y141d`.
            "some age" => {
                shown.starts_with(|it: char| it.is_ascii_digit())
                    && shown.ends_with(['s', 'm', 'h', 'd', 'y'])
            }
            value => shown == value,
        };
        assert!(right, "{column} shows {shown:?}, expected {value}: {row:?}");
    }
}

/// What `kubectl get` prints of one object, by the heads of its columns.
fn get(rig: &Rig, resource: &Resource, object: &Value, more: &[&str]) -> BTreeMap<String, String> {
    let (group, version) = resource.group_version.split_once('/').unwrap();
    let kind = format!("{}.{version}.{group}", resource.plural);
    let name = object["metadata"]["name"].as_str().unwrap();
    let output = rig.kubectl(&[&["get", kind.as_str(), name], more].concat()).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut lines = said.lines();
    let (Some(heads), Some(row)) = (lines.next(), lines.next()) else {
        panic!("{kind} {name}: {said}{}", String::from_utf8_lossy(&output.stderr))
    };
    // Each column begins below its head; heads have no spaces in them.
    let starts: Vec<usize> = heads
        .char_indices()
        .filter(|(at, it)| *it != ' ' && (*at == 0 || heads[..*at].ends_with(' ')))
        .map(|(at, _)| at)
        .collect();
    let cell = |line: &str, at: usize| {
        let end = starts.get(at + 1).copied().unwrap_or(line.len()).min(line.len());
        line.get(starts[at]..end).unwrap_or_default().trim().to_owned()
    };
    (0..starts.len()).map(|at| (cell(heads, at), cell(row, at))).collect()
}

/// A field, and a part of what is said of it.
const TAUGHT: [(&str, &str, &str); 6] = [
    ("ec2nodeclasses.spec.amiMinimumAge", "nodemolt.dev/v1alpha1", "7d"),
    ("ec2nodeclasses.spec.amiSelectorTerms.alias", "karpenter.k8s.aws/v1", "al2023@"),
    ("nodepools.spec.disruption.budgets.nodes", "karpenter.sh/v1", "percent"),
    ("imagepolicies.spec.rollout.windows", "nodemolt.dev/v1alpha1", "zone"),
    ("nodedisruptionbudgets.spec.gates", "karpenter.sh/v1alpha1", "Controller"),
    ("awsimages.spec.memory", "infrastructure.cluster.x-k8s.io/v1alpha3", "first"),
];

#[tokio::test]
async fn kubectl_explain_teaches() {
    let rig = standalone().await;
    let server = Server::of(rig).await;
    let mut silent = Vec::new();
    let mut fields = 0;
    for crd in crd::all() {
        for version in (crd.definition)().spec.versions.iter().filter(|it| it.served) {
            let published = published(&server, crd.group, &version.name, crd.kind).await;
            undescribed(crd.name, &published, &mut fields, &mut silent);
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(fields > 300, "{fields}");

    for (field, version, said) in TAUGHT {
        let output = rig.kubectl(&["explain", field, &format!("--api-version={version}")]).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("DESCRIPTION:") && text.contains(said), "{field}: {text}");
    }
}

/// The schema that clients are told, which is published a moment after the kind is served.
async fn published(server: &Server, group: &str, version: &str, kind: &str) -> Value {
    let since = std::time::Instant::now();
    loop {
        let index = server.get("/openapi/v3").await;
        if let Some(path) =
            index["paths"][format!("apis/{group}/{version}")]["serverRelativeURL"].as_str()
        {
            let document = server.get(path).await;
            let schemas = document["components"]["schemas"].as_object().cloned();
            let ours = |it: &Value| {
                let of = &it["x-kubernetes-group-version-kind"][0];
                of["kind"] == kind && of["group"] == group && of["version"] == version
            };
            if let Some(schema) = schemas.unwrap_or_default().values().find(|it| ours(it)) {
                return schema.clone();
            }
        }
        assert!(since.elapsed().as_secs() < 60, "{group}/{version} {kind} is not published");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

fn undescribed(path: &str, schema: &Value, fields: &mut usize, silent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        *fields += 1;
        let path = format!("{path}.{name}");
        if field["description"].as_str().is_none_or(str::is_empty) {
            silent.push(path.clone());
        }
        undescribed(&path, field, fields, silent);
        undescribed(&path, &field["items"], fields, silent);
        undescribed(&path, &field["additionalProperties"], fields, silent);
    }
}
