//! What must a kubelet do so that the rest of Kubernetes believes in it?
//!
//! Renew the node's lease, say that the node is ready, say that its pods run, and let go of those that end. One
//! thread does it for all nodes with the label of `nodes`, by looking at everything twice a second: no watch that
//! could miss something, and good for the hundred nodes of a test.
//!
//! A test turns the knobs while it runs, by annotating nodes and pods:
//!
//! | annotation | on a node | on a pod |
//! |---|---|---|
//! | `rig.nodemolt.dev/silent` | the machine is dead: no heartbeat, nothing happens on it | |
//! | `rig.nodemolt.dev/unready` | it says that it is not ready | it runs and does not become ready |
//! | `rig.nodemolt.dev/lingers` | | it does not end when it is told to |

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{
    Client, ResourceExt,
    api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};

use crate::{Rig, RigError, client, nodes};

pub const SILENT: &str = "rig.nodemolt.dev/silent";
pub const UNREADY: &str = "rig.nodemolt.dev/unready";
pub const LINGERS: &str = "rig.nodemolt.dev/lingers";

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A real kubelet renews every 10 s; the controller manager of the rig gives up after 16.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// The kubelets of all nodes of a rig, until this is dropped.
#[derive(Debug)]
pub struct Kubelets {
    stopped: Arc<AtomicBool>,
    trouble: Trouble,
    thread: Option<JoinHandle<()>>,
}

impl Kubelets {
    pub fn start(rig: &Rig) -> Result<Self, RigError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RigError::start("the kubelets' runtime"))?;
        let kubeconfig = rig.kubeconfig();
        let stopped = Arc::new(AtomicBool::new(false));
        let trouble = Trouble::default();
        let (end, tell) = (Arc::clone(&stopped), trouble.clone());
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let mut renewed = BTreeMap::new();
                let client = client::client(&kubeconfig).await;
                let Ok(client) = client.inspect_err(|it| tell.note(it.to_string())) else { return };
                while !end.load(Ordering::Relaxed) {
                    // The server may be restarting: what fails now is done in the next round.
                    if let Err(error) = look(&client, &mut renewed, &tell).await {
                        tell.note(error);
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            });
        });
        Ok(Self { stopped, trouble, thread: Some(thread) })
    }

    /// The last thing that went wrong, for the message of a test that waits in vain.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug, Clone, Default)]
struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    fn note(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the kubelets panicked");
        }
    }
}

/// One round. It fails only where it cannot see; what fails for one node or pod must not hold up the others.
async fn look(
    client: &Client,
    renewed: &mut BTreeMap<String, Instant>,
    trouble: &Trouble,
) -> Result<(), String> {
    let tell = |done: Result<(), String>| done.unwrap_or_else(|it| trouble.note(it));
    let mut awake = BTreeSet::new();
    for node in ours(client).await? {
        let name = node.name_any();
        if node.annotations().contains_key(SILENT) {
            continue;
        }
        // By its own identity: a node that comes back under its name has no lease yet.
        let identity = node.uid().unwrap_or_default();
        if renewed.get(&identity).is_none_or(|it| it.elapsed() >= RENEW_EVERY) {
            tell(renew(client, &node).await);
            renewed.insert(identity, Instant::now());
        }
        tell(say_ready(client, &node).await);
        awake.insert(name);
    }
    for pod in bound(client).await? {
        let node = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
        if node.is_some_and(|it| awake.contains(it)) {
            tell(keep(client, &pod).await);
        }
    }
    Ok(())
}

async fn ours(client: &Client) -> Result<Vec<Node>, String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let listed = nodes.list(&ListParams::default().labels(nodes::LABEL)).await;
    Ok(listed.map_err(in_words("list nodes"))?.items)
}

async fn bound(client: &Client) -> Result<Vec<Pod>, String> {
    let pods: Api<Pod> = Api::all(client.clone());
    let listed = pods.list(&ListParams::default().fields("spec.nodeName!=")).await;
    Ok(listed.map_err(in_words("list pods"))?.items)
}

async fn renew(client: &Client, node: &Node) -> Result<(), String> {
    let name = node.name_any();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            // It goes with its node.
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid(),
            }],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": format!("{:.6}", Timestamp::now()),
        },
    });
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let whole = PatchParams::apply("kubelet").force();
    let done = leases.patch(&name, &whole, &Patch::Apply(lease)).await;
    done.map(drop).map_err(in_words("renew a lease"))
}

async fn say_ready(client: &Client, node: &Node) -> Result<(), String> {
    let wanted = !node.annotations().contains_key(UNREADY);
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    let said = conditions.and_then(|it| it.iter().find(|it| it.type_ == "Ready"));
    if said.is_some_and(|it| it.status == truth(wanted)) {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let status = json!({ "status": { "conditions": node_conditions(wanted) } });
    let patch = Patch::Strategic(status);
    let done = nodes.patch_status(&node.name_any(), &PatchParams::default(), &patch).await;
    unless_gone(done, "say whether a node is ready")
}

/// One pod on one of our nodes: brought to life, or let go.
async fn keep(client: &Client, pod: &Pod) -> Result<(), String> {
    let name = pod.name_any();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    if pod.metadata.deletion_timestamp.is_some() {
        if pod.annotations().contains_key(LINGERS) {
            return Ok(());
        }
        // Not another pod of the same name: those of a StatefulSet come back under theirs.
        let this = Preconditions { uid: pod.uid(), ..Preconditions::default() };
        let at_once = DeleteParams::default().grace_period(0).preconditions(this);
        return unless_gone(pods.delete(&name, &at_once).await, "let go of a pod");
    }

    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref()).unwrap_or("Pending");
    let wanted = !pod.annotations().contains_key(UNREADY);
    let conditions = pod.status.as_ref().and_then(|it| it.conditions.as_ref());
    let said = conditions.and_then(|it| it.iter().find(|it| it.type_ == "Ready"));
    let settled = match phase {
        "Pending" => false,
        "Running" => said.is_some_and(|it| it.status == truth(wanted)),
        // Succeeded or Failed, by somebody else's word.
        _ => true,
    };
    if settled {
        return Ok(());
    }
    let patch = Patch::Strategic(json!({ "status": pod_status(pod, wanted) }));
    let done = pods.patch_status(&name, &PatchParams::default(), &patch).await;
    unless_gone(done, "say that a pod runs")
}

pub(crate) fn node_conditions(ready: bool) -> Value {
    let now = now();
    let condition = |kind: &str, holds: bool, reason: &str| {
        json!({
            "type": kind, "status": truth(holds), "reason": reason, "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!([
        condition("MemoryPressure", false, "KubeletHasSufficientMemory"),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID"),
        condition("Ready", ready, if ready { "KubeletReady" } else { "KubeletNotReady" }),
    ])
}

fn pod_status(pod: &Pod, ready: bool) -> Value {
    let now = now();
    let condition = |kind: &str, holds: bool| json!({ "type": kind, "status": truth(holds), "lastTransitionTime": now });
    let containers = pod.spec.iter().flat_map(|it| &it.containers).map(|it| {
        json!({
            "name": it.name, "image": it.image, "imageID": "", "containerID": "none://0",
            "ready": ready, "started": true, "restartCount": 0,
            "state": { "running": { "startedAt": now } },
        })
    });
    json!({
        "phase": "Running",
        "startTime": now,
        "podIP": "10.1.0.1",
        "podIPs": [{ "ip": "10.1.0.1" }],
        "conditions": [
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ],
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

/// Objects may go at any moment, and then there is nothing left to say about them.
fn unless_gone<T>(done: Result<T, kube::Error>, act: &'static str) -> Result<(), String> {
    match done {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        outcome => outcome.map(drop).map_err(in_words(act)),
    }
}

fn in_words<E: Display>(act: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("could not {act}: {error}")
}

fn truth(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}
