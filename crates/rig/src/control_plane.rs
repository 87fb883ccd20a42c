//! What is a control plane, and when is it there?
//!
//! etcd, then the API server on it, then whoever else is asked for: plain processes on loopback, each ready before
//! the next begins. They stop in the other order, for an API server without etcd hangs.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    client,
    credentials::Credentials,
    error::RigError,
    guardian::Guardian,
    ports,
    processes::Process,
    tools::{Tool, programs},
};

mod flags;

/// An idle machine needs 5 s, two busy cores with a cold disk have needed 40.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// The server publishes within a second or two, if it gets to run.
const EXPLAINED_WITHIN: Duration = Duration::from_mins(1);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Somebody else took a port that we had just seen free: rare once, absurd three times.
const TRIES: usize = 3;

/// What runs beside etcd and the API server, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// Without it nothing is garbage collected, no pod is made for a Deployment and no disruption budget counts.
    pub controller_manager: bool,
    pub scheduler: bool,
    /// After this everything ends, whoever still holds it.
    pub lifetime: Duration,
}

impl Default for Parts {
    fn default() -> Self {
        Self { controller_manager: false, scheduler: false, lifetime: Duration::from_hours(1) }
    }
}

impl Parts {
    pub fn all() -> Self {
        Self { controller_manager: true, scheduler: true, ..Self::default() }
    }

    pub fn tools(&self) -> Vec<Tool> {
        let mut tools = vec![Tool::Etcd, Tool::ApiServer, Tool::Kubectl];
        tools.extend(self.controller_manager.then_some(Tool::ControllerManager));
        tools.extend(self.scheduler.then_some(Tool::Scheduler));
        tools
    }
}

/// A running control plane. Dropping it ends it.
#[derive(Debug)]
pub struct Rig {
    parts: Parts,
    programs: BTreeMap<Tool, PathBuf>,
    ports: Ports,
    credentials: Credentials,
    /// In the order of their start.
    processes: Vec<Process>,
    _guardian: Guardian,
    folder: TempDir,
}

#[derive(Debug)]
struct Ports {
    etcd: u16,
    etcd_peers: u16,
    api_server: u16,
    controller_manager: u16,
    scheduler: u16,
}

impl Ports {
    fn of(
        [etcd, etcd_peers, api_server, controller_manager, scheduler]: [u16; Rig::PORTS],
    ) -> Self {
        Self { etcd, etcd_peers, api_server, controller_manager, scheduler }
    }
}

/// One control plane for all tests of a process: etcd and the API server, and nobody who acts by himself. Tests keep
/// out of each other's way with names of their own, see [`Rig::unique`].
pub fn shared() -> Result<&'static Rig, &'static RigError> {
    // Never dropped; the guardian ends it with the process.
    static SHARED: OnceLock<Result<Rig, RigError>> = OnceLock::new();
    SHARED.get_or_init(|| Rig::start(Parts::default())).as_ref()
}

impl Rig {
    /// One for etcd and one for its peers, one each for API server, controller manager and scheduler.
    pub const PORTS: usize = 5;

    pub fn start(parts: Parts) -> Result<Self, RigError> {
        Self::start_on(parts, ports::free)
    }

    /// The same on chosen ports. They are asked for again if somebody else took one in between.
    pub fn start_on(
        parts: Parts,
        mut free: impl FnMut() -> Result<[u16; Self::PORTS], RigError>,
    ) -> Result<Self, RigError> {
        let programs = programs(&parts.tools())?;
        let mut tries_left = TRIES;
        loop {
            tries_left -= 1;
            match Self::try_start(parts, programs.clone(), free()?) {
                Err(RigError::PortTaken { .. }) if tries_left > 0 => {}
                outcome => return outcome,
            }
        }
    }

    fn try_start(
        parts: Parts,
        programs: BTreeMap<Tool, PathBuf>,
        on: [u16; Self::PORTS],
    ) -> Result<Self, RigError> {
        let folder = tempfile::Builder::new()
            .prefix("nodemolt-rig-")
            .tempdir()
            .map_err(RigError::file("create a folder in", std::env::temp_dir()))?;
        let on = Ports::of(on);
        let credentials = Credentials::write(folder.path())?;
        credentials.write_kubeconfigs(on.api_server)?;
        let guardian = Guardian::over(folder.path(), parts.lifetime)?;
        let mut rig = Self {
            parts,
            programs,
            ports: on,
            credentials,
            processes: Vec::new(),
            _guardian: guardian,
            folder,
        };
        rig.start_processes()?;
        Ok(rig)
    }

    /// Stops everything and starts it again on the same ports with the same objects.
    pub fn restart(&mut self) -> Result<(), RigError> {
        self.stop_processes();
        self.start_processes()
    }

    /// The file that makes any client an administrator here.
    pub fn kubeconfig(&self) -> PathBuf {
        self.credentials.admin()
    }

    /// Holds kubeconfig, logs and data; goes with the rig.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }

    /// The process ids of the servers, etcd's first.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::id).collect()
    }

    /// A client without retries, for the runtime that polls this.
    pub async fn client(&self) -> Result<kube::Client, RigError> {
        client::client(&self.kubeconfig()).await
    }

    /// A name that no other test of this process was given.
    pub fn unique(&self, prefix: &str) -> String {
        static GIVEN: AtomicU32 = AtomicU32::new(0);
        format!("{prefix}-{}", GIVEN.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs kubectl to its end, whatever that is.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<Output, RigError> {
        self.kubectl_with(arguments, "")
    }

    /// The same, with something to read on its standard input.
    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<Output, RigError> {
        let program = self.program(Tool::Kubectl);
        let mut child = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            // Another cluster may have had the same port yesterday.
            .env("KUBECACHEDIR", self.folder().join("kubectl-cache"))
            .current_dir(self.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(RigError::start(program))?;
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            // Beside the reading: kubectl may answer before it has read everything. One that reads nothing closes
            // the pipe, which is no error of ours.
            scope.spawn(move || stdin.map(|mut it| it.write_all(input.as_bytes())));
            child.wait_with_output().map_err(RigError::start(program))
        })
    }

    /// `kubectl apply`, as a user would: says what kubectl said, or why it was refused.
    pub fn apply(&self, yaml: &str) -> Result<String, RigError> {
        self.succeed(&["apply", "-f", "-"], yaml)
    }

    /// Applies CRDs and waits until they are served, and explained.
    pub fn apply_crds(&self, yaml: &str) -> Result<(), RigError> {
        self.apply(yaml)?;
        let wait = ["wait", "--for=condition=Established", "--timeout=60s", "-f", "-"];
        self.succeed(&wait, yaml)?;
        let applied = self.succeed(&["get", "-f", "-", "-o", "json"], yaml)?;
        // What they look like is published a moment after they are served.
        for (resource, version) in served(&applied) {
            let since = Instant::now();
            let explain = ["explain", &resource, &format!("--api-version={version}")];
            loop {
                match self.succeed(&explain, "") {
                    Ok(_) => break,
                    Err(error) if since.elapsed() > EXPLAINED_WITHIN => return Err(error),
                    Err(_) => thread::sleep(LOOK_AGAIN_AFTER),
                }
            }
        }
        Ok(())
    }

    fn succeed(&self, arguments: &[&str], input: &str) -> Result<String, RigError> {
        let output = self.kubectl_with(arguments, input)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(RigError::Refused {
            arguments: arguments.join(" "),
            said: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        })
    }

    fn start_processes(&mut self) -> Result<(), RigError> {
        let api_server = self.ports.api_server;
        self.start_one(Tool::Etcd, &self.etcd_flags())?;
        // Not asked over its port: the etcd of another rig may have been quicker to take that, and would answer.
        self.await_last(|it| match it.processes.last() {
            Some(etcd) if etcd.said("ready to serve client requests") => Ok(()),
            _ => Err("it does not say that it is".to_owned()),
        })?;

        // From here on our own authority vouches for who answers.
        self.start_one(Tool::ApiServer, &self.api_server_flags())?;
        self.await_last(|it| client::answers(&it.kubeconfig(), api_server, "/readyz"))?;

        if self.parts.controller_manager {
            self.start_one(Tool::ControllerManager, &self.controller_manager_flags())?;
            // From then on pods can be created.
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            self.await_last(|it| client::answers(&it.kubeconfig(), api_server, account))?;
        }
        if self.parts.scheduler {
            self.start_one(Tool::Scheduler, &self.scheduler_flags())?;
            let port = self.ports.scheduler;
            self.await_last(|it| client::answers(&it.kubeconfig(), port, "/readyz"))?;
        }
        Ok(())
    }

    fn start_one(&mut self, tool: Tool, flags: &[String]) -> Result<(), RigError> {
        let process = Process::start(tool.name(), self.program(tool), flags, self.folder.path())?;
        self.processes.push(process);
        Ok(())
    }

    fn stop_processes(&mut self) {
        while let Some(mut process) = self.processes.pop() {
            process.stop();
        }
    }

    /// Until the process that was started last is ready, or dead, or too late.
    fn await_last(&mut self, ready: impl Fn(&Self) -> Result<(), String>) -> Result<(), RigError> {
        let started_at = Instant::now();
        loop {
            let answer = ready(self);
            let Some(process) = self.processes.last_mut() else { return Ok(()) };
            if process.ended().is_some() {
                return Err(process.post_mortem());
            }
            match answer {
                Ok(()) => return Ok(()),
                Err(because) if started_at.elapsed() > READY_WITHIN => {
                    return Err(process.late(READY_WITHIN, because));
                }
                Err(_) => thread::sleep(LOOK_AGAIN_AFTER),
            }
        }
    }

    fn program(&self, tool: Tool) -> &Path {
        self.programs.get(&tool).expect("the tools of all parts were asked for at the start")
    }
}

/// Each resource with each version that is served, of what kubectl printed: one CRD, or a list of them.
fn served(crds: &str) -> Vec<(String, String)> {
    let printed: Value = serde_json::from_str(crds).unwrap_or_default();
    let crds = match printed.get("items").and_then(Value::as_array) {
        Some(items) => items.clone(),
        None => vec![printed],
    };
    let mut served = Vec::new();
    for spec in crds.iter().filter_map(|it| it.get("spec")) {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        for version in spec["versions"].as_array().into_iter().flatten() {
            if version["served"] == true {
                served.push((plural.clone(), format!("{group}/{}", text(&version["name"]))));
            }
        }
    }
    served
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop_processes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_served_version_is_waited_for() {
        let crd = r#"{"spec": {"group": "g.dev", "names": {"plural": "things"}, "versions": [
            {"name": "v1", "served": true}, {"name": "v2", "served": false}, {"name": "v3", "served": true}]}}"#;
        let expected = [("things", "g.dev/v1"), ("things", "g.dev/v3")]
            .map(|(resource, version)| (resource.to_owned(), version.to_owned()));
        assert_eq!(served(crd), expected);
        assert_eq!(served(&format!(r#"{{"items": [{crd}]}}"#)), expected);
        assert!(served("no JSON").is_empty());
    }
}
