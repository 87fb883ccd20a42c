//! Does the rig itself hold what it promises?

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams};
use nodemolt_rig::{KUBERNETES_VERSION, Parts, Rig, RigError, free_ports};

use crate::rig;

#[test]
fn kubectl_and_the_server_are_of_the_version_we_build() {
    let output = rig().kubectl(&["version"]).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let versions: Vec<&str> = said
        .lines()
        .filter(|it| it.starts_with("Client") || it.starts_with("Server"))
        .filter_map(|it| it.split_once(": "))
        .map(|it| it.1)
        .collect();
    // Whoever brings binaries of his own brings their version.
    let expected =
        if env::var_os("KUBEBUILDER_ASSETS").is_some() { versions[0] } else { KUBERNETES_VERSION };
    assert_eq!(versions, [expected; 2], "{said}");
}

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.rig.nodemolt.dev}
spec:
  group: rig.nodemolt.dev
  scope: Cluster
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.least <= self.most", message: "least must not be above most"}
            properties:
              least: {type: integer}
              most: {type: integer}
"#;

fn widget(least: i32, most: i32) -> String {
    let spec = format!("{{least: {least}, most: {most}}}");
    format!(
        "{{apiVersion: rig.nodemolt.dev/v1, kind: Widget, metadata: {{name: w}}, spec: {spec}}}"
    )
}

#[test]
fn a_rule_of_a_resource_is_kept_by_the_server() {
    rig().apply_crds(WIDGETS).unwrap();
    assert_eq!(rig().apply(&widget(1, 2)).unwrap(), "widget.rig.nodemolt.dev/w created\n");
    let error = rig().apply(&widget(3, 2)).unwrap_err();
    let RigError::Refused { said, .. } = &error else { panic!("{error:?}") };
    assert!(said.contains("spec: Invalid value") && said.contains("least must not be above most"));
    let kept = rig().kubectl(&["get", "widget", "w", "-o=jsonpath={.spec.least}"]).unwrap();
    assert_eq!(kept.stdout, b"1");
}

#[tokio::test]
async fn the_client_shakes_hands_with_the_server() {
    let client = rig().client().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    let names = namespaces.list(&ListParams::default()).await.unwrap();
    assert!(names.items.iter().any(|it| it.metadata.name.as_deref() == Some("kube-system")));
}

fn config_map(name: &str) -> String {
    let metadata = format!("{{name: {name}, namespace: default}}");
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{a: b}}}}")
}

#[test]
fn a_second_one_is_a_world_of_its_own_survives_a_restart_and_leaves_nothing_behind() {
    let first = rig();
    let mut second = Rig::start(Parts::default()).unwrap();
    let name = second.unique("only-here");
    second.apply(&config_map(&name)).unwrap();
    let found = |rig: &Rig| rig.kubectl(&["get", "configmap", &name]).unwrap().status.success();
    assert!(found(&second) && !found(first));

    let before = second.process_ids();
    let url = second.url();
    second.restart().unwrap();
    assert_eq!(second.url(), url);
    assert!(found(&second), "what was written is still there");
    let after = second.process_ids();
    assert!(before.iter().all(|it| !after.contains(it)), "{before:?} {after:?}");

    let folder = second.folder().to_owned();
    drop(second);
    for id in before.into_iter().chain(after) {
        assert!(!runs(id, &folder), "process {id} is left");
    }
    assert!(!folder.exists());
    assert!(found_anything(first), "the other one is not touched");
}

fn found_anything(rig: &Rig) -> bool {
    rig.kubectl(&["get", "namespace", "default"]).unwrap().status.success()
}

#[test]
fn a_port_that_is_taken_is_tried_elsewhere_and_its_owner_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    // etcd's and the API server's.
    for place in [0, 2] {
        let mut asked = 0;
        let rig = Rig::start_on(Parts::default(), || {
            asked += 1;
            let mut ports = free_ports()?;
            if asked == 1 {
                ports[place] = taken;
            }
            Ok(ports)
        });
        assert!(found_anything(&rig.unwrap()));
        assert_eq!(asked, 2, "port {place}");
    }
}

/// Set for a copy of this test program that only holds a rig until somebody kills it.
const HELD: &str = "NODEMOLT_E2E_HOLDS_A_RIG";

#[test]
fn the_servers_end_with_a_process_that_was_killed() {
    if env::var_os(HELD).is_some() {
        return hold();
    }
    let this = concat!(module_path!(), "::the_servers_end_with_a_process_that_was_killed");
    let this = this.split_once("::").unwrap().1;
    let mut holder = Command::new(env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture"])
        .env(HELD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find_map(|it| Some(it.split_once("held: ")?.1.to_owned()));
    let line = line.expect("the copy says what it started");
    let (folder, ids) = line.split_once(' ').unwrap();
    let folder = Path::new(folder);
    let ids: Vec<u32> = ids.split(' ').map(|it| it.parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids.iter().all(|it| runs(*it, folder)), "{ids:?}");

    // On Unix this is SIGKILL: it cannot clean up.
    holder.kill().unwrap();
    holder.wait().unwrap();
    let killed_at = Instant::now();
    while ids.iter().any(|it| runs(*it, folder)) || folder.exists() {
        assert!(killed_at.elapsed() < Duration::from_secs(30), "still there: {ids:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn hold() {
    let rig = Rig::start(Parts::default()).unwrap();
    let ids: Vec<String> = rig.process_ids().iter().map(u32::to_string).collect();
    println!("\nheld: {} {}", rig.folder().display(), ids.join(" "));
    // Until the test that started us kills us, or is itself no more.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Whether a process of this number is one of that rig's; one that ended has no command line.
fn runs(id: u32, folder: &Path) -> bool {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(&folder.display().to_string())
}

#[tokio::test]
async fn refusals_reach_the_client_at_once() {
    let client = rig().client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let error = maps.get("nobody").await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(it) if it.code == 404), "{error:?}");
}
