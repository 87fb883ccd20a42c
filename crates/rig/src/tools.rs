//! Which programs are there, and how does a machine get them?
//!
//! Each belongs to a small Go module under `go/`, whose `go.sum` fixes every byte that is compiled. They are built
//! when somebody first asks, and kept under a name that says from what.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{
    cache::{self, Cache},
    error::{RigError, tail},
    go::Go,
};

pub const KUBERNETES_VERSION: &str = "v1.36.4";

/// The usual variable of Kubernetes' own test environments.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Etcd,
    ApiServer,
    Kubectl,
    ControllerManager,
    Scheduler,
    Nodeadm,
}

impl Tool {
    pub const ALL: [Self; 6] = [
        Self::Etcd,
        Self::ApiServer,
        Self::Kubectl,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Nodeadm,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::Kubectl => "kubectl",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Nodeadm => "nodeadm",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Nodeadm => "github.com/awslabs/amazon-eks-ami/nodeadm/cmd/nodeadm",
        }
    }

    fn module(self) -> &'static Module {
        match self {
            Self::Etcd => &ETCD,
            Self::ApiServer | Self::Kubectl | Self::ControllerManager | Self::Scheduler => {
                &CONTROL_PLANE
            }
            Self::Nodeadm => &NODEADM,
        }
    }

    /// What `go build` calls it: the last part of its package that is no version.
    fn built_as(self) -> &'static str {
        match self {
            Self::Etcd => "server",
            Self::ApiServer
            | Self::Kubectl
            | Self::ControllerManager
            | Self::Scheduler
            | Self::Nodeadm => self.name(),
        }
    }
}

/// A Go module of ours, which only names those of others.
#[derive(Debug)]
pub(crate) struct Module {
    pub name: &'static str,
    pub version: &'static str,
    pub go_mod: &'static str,
    pub go_sum: &'static str,
    build_flags: &'static [&'static str],
}

static CONTROL_PLANE: Module = Module {
    name: "controlplane",
    version: KUBERNETES_VERSION,
    go_mod: include_str!("../go/controlplane/go.mod"),
    go_sum: include_str!("../go/controlplane/go.sum"),
    build_flags: &[
        // Keeps the linker's removal of unused code working, as Kubernetes' own build does.
        "-tags=grpcnotrace",
        // Else it says v0.0.0-master, and kubectl warns about the distance.
        "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4 \
         -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    ],
};

static ETCD: Module = Module {
    name: "etcd",
    version: "v3.6.8",
    go_mod: include_str!("../go/etcd/go.mod"),
    go_sum: include_str!("../go/etcd/go.sum"),
    build_flags: &["-ldflags=-s -w"],
};

static NODEADM: Module = Module {
    name: "nodeadm",
    version: "v0.0.0-20260213141146-147b13ea3f4a",
    go_mod: include_str!("../go/nodeadm/go.mod"),
    go_sum: include_str!("../go/nodeadm/go.sum"),
    build_flags: &["-ldflags=-s -w"],
};

impl Module {
    pub(crate) const fn of_sources(
        name: &'static str,
        version: &'static str,
        go_mod: &'static str,
        go_sum: &'static str,
    ) -> Self {
        Self { name, version, go_mod, go_sum, build_flags: &[] }
    }

    /// The folder in the cache: what is built, and a digest of everything it is built from.
    pub(crate) fn key(&self) -> String {
        let mut digest = Sha256::new();
        let machine = [env::consts::OS, env::consts::ARCH];
        for text in [self.go_mod, self.go_sum].iter().chain(self.build_flags).chain(&machine) {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        }
        // Enough to tell versions of one project apart.
        let digest = hex(&digest.finalize()[..8]);
        format!("{}-{}-{digest}", self.name, self.version)
    }

    /// `go.mod` and `go.sum`, where Go can read them.
    pub(crate) fn write_to(&self, folder: &Path) -> Result<(), RigError> {
        for (name, text) in [("go.mod", self.go_mod), ("go.sum", self.go_sum)] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(RigError::file("write", &path))?;
        }
        Ok(())
    }
}

/// Where each of these programs is; those that are nowhere are built first.
pub fn programs(wanted: &[Tool]) -> Result<BTreeMap<Tool, PathBuf>, RigError> {
    let cache = Cache::open()?;
    let assets = assets()?;
    let found: BTreeMap<Tool, PathBuf> =
        wanted.iter().map(|it| (*it, find(&cache, assets.as_deref(), *it))).collect();

    let mut missing: BTreeMap<&str, BTreeSet<Tool>> = BTreeMap::new();
    for (tool, _) in found.iter().filter(|(_, path)| !path.is_file()) {
        missing.entry(tool.module().name).or_default().insert(*tool);
    }
    for tools in missing.values() {
        build(&cache, tools)?;
    }
    Ok(found)
}

/// The same for one.
pub fn program(tool: Tool) -> Result<PathBuf, RigError> {
    programs(&[tool])?;
    Ok(find(&Cache::open()?, assets()?.as_deref(), tool))
}

fn assets() -> Result<Option<PathBuf>, RigError> {
    let Some(folder) = env::var_os(ASSETS).filter(|it| !it.is_empty()) else { return Ok(None) };
    // Programs are started in other folders than ours.
    let folder = std::path::absolute(&folder).map_err(RigError::file("find", &folder))?;
    if folder.is_dir() { Ok(Some(folder)) } else { Err(RigError::NoAssets { folder }) }
}

/// What others brought comes first. They bring only some: no scheduler, for one.
fn find(cache: &Cache, assets: Option<&Path>, tool: Tool) -> PathBuf {
    let asset = assets.map(|it| it.join(tool.name())).filter(|it| it.is_file());
    asset.unwrap_or_else(|| place(cache, tool))
}

fn place(cache: &Cache, tool: Tool) -> PathBuf {
    cache.path(&tool.module().key()).join(tool.name())
}

/// Builds tools of one module in one go, for they share nearly everything.
fn build(cache: &Cache, tools: &BTreeSet<Tool>) -> Result<(), RigError> {
    let Some(module) = tools.first().map(|it| it.module()) else { return Ok(()) };
    let go = Go::find(cache)?;
    let _lock = cache.lock(module.name)?;
    // Somebody else may have built them while we waited.
    let tools: Vec<Tool> =
        tools.iter().copied().filter(|it| !place(cache, *it).is_file()).collect();
    if tools.is_empty() {
        return Ok(());
    }

    let names = tools.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
    eprintln!("building {names} ({}) once; minutes, if Go's cache is cold", module.version);
    let scratch = cache.scratch()?;
    module.write_to(scratch.path())?;
    let mut target = scratch.path().join("bin").into_os_string();
    target.push("/");
    let output = go
        .command(scratch.path())
        .args(["build", "-trimpath"])
        .args(module.build_flags)
        .arg("-o")
        .arg(&target)
        .args(tools.iter().map(|it| it.package()))
        .output()
        .map_err(RigError::start(go.program()))?;
    if !output.status.success() {
        return Err(RigError::Build { what: names, tail: tail(&output.stderr) });
    }
    for tool in tools {
        let built = scratch.path().join("bin").join(tool.built_as());
        cache::settle(&built, &place(cache, tool))?;
    }
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |it: u8| char::from(DIGITS[usize::from(it)]);
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_requires_the_version_it_is_named_after() {
        for tool in Tool::ALL {
            let module = tool.module();
            let required = module.go_mod.lines().any(|line| {
                let mut words = line.trim().trim_start_matches("require ").split_whitespace();
                words.next().is_some_and(|it| tool.package().starts_with(it))
                    && words.next() == Some(module.version)
            });
            assert!(required, "{}: go.mod does not say {}", tool.name(), module.version);
            assert!(module.go_mod.contains(tool.package()), "{} is no tool there", tool.name());
        }
    }

    #[test]
    fn the_servers_say_the_version_that_they_are() {
        let version = format!("gitVersion={KUBERNETES_VERSION} ");
        assert!(CONTROL_PLANE.build_flags.iter().any(|it| it.contains(&version)));
    }

    #[test]
    fn another_go_sum_is_another_place() {
        let key = |go_sum| Module::of_sources("etcd", "v1", "module a", go_sum).key();
        assert_ne!(key("one"), key("two"));
        assert_eq!(key("one"), key("one"));
        assert!(key("one").starts_with("etcd-v1-"));
    }
}
