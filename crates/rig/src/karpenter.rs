//! What does Karpenter itself say that its resources look like?
//!
//! Its CRDs as published in its Go modules, checked against the sums in `go/karpenter/go.sum`.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::{
    cache::{self, Cache},
    error::{RigError, tail},
    go::Go,
    tools::Module,
};

pub const VERSION: &str = "v1.14.1";

/// Upstream: NodePool and its like.
const CORE: &str = "sigs.k8s.io/karpenter";
/// EC2NodeClass, and upstream's again with the labels of AWS written into their rules.
const AWS: &str = "github.com/aws/karpenter-provider-aws";

static MODULE: Module = Module::of_sources(
    "karpenter",
    VERSION,
    include_str!("../go/karpenter/go.mod"),
    include_str!("../go/karpenter/go.sum"),
);

/// One published CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crd {
    /// For example `karpenter.sh_nodepools.yaml`.
    pub file: String,
    pub yaml: String,
}

/// The CRDs that a cluster on AWS has: those of karpenter-provider-aws. By file name.
pub fn crds() -> Result<Vec<Crd>, RigError> {
    published_by(AWS, "aws")
}

/// Upstream's, which any other provider builds upon. By file name.
pub fn core_crds() -> Result<Vec<Crd>, RigError> {
    published_by(CORE, "core")
}

fn published_by(module: &'static str, short: &str) -> Result<Vec<Crd>, RigError> {
    let cache = Cache::open()?;
    let kept = cache.path(&MODULE.key()).join(short);
    if !kept.is_dir() {
        let go = Go::find(&cache)?;
        let _lock = cache.lock(MODULE.name)?;
        if !kept.is_dir() {
            download(&cache, &go, module, &kept)?;
        }
    }
    read(&kept)
}

fn download(cache: &Cache, go: &Go, module: &'static str, kept: &Path) -> Result<(), RigError> {
    /// The answer of `go mod download -json`.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Downloaded {
        dir: std::path::PathBuf,
    }

    let scratch = cache.scratch()?;
    MODULE.write_to(scratch.path())?;
    let output = go
        .command(scratch.path())
        .args(["mod", "download", "-json", &format!("{module}@{VERSION}")])
        .output()
        .map_err(RigError::start(go.program()))?;
    let downloaded: Option<Downloaded> = serde_json::from_slice(&output.stdout).ok();
    let (true, Some(downloaded)) = (output.status.success(), downloaded) else {
        let said = [output.stdout, output.stderr].concat();
        return Err(RigError::Download { module, tail: tail(&said) });
    };

    let copy = scratch.path().join("crds");
    fs::create_dir(&copy).map_err(RigError::file("create", &copy))?;
    for crd in read(&downloaded.dir.join("pkg").join("apis").join("crds"))? {
        let path = copy.join(&crd.file);
        fs::write(&path, &crd.yaml).map_err(RigError::file("write", &path))?;
    }
    cache::settle(&copy, kept)
}

fn read(folder: &Path) -> Result<Vec<Crd>, RigError> {
    let listed = fs::read_dir(folder).map_err(RigError::file("read", folder))?;
    let mut crds = Vec::new();
    for entry in listed {
        let path = entry.map_err(RigError::file("read", folder))?.path();
        if path.extension().is_some_and(|it| it == "yaml") {
            let yaml = fs::read_to_string(&path).map_err(RigError::file("read", &path))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            crds.push(Crd { file, yaml });
        }
    }
    crds.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(crds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modules_are_required_and_have_their_sums() {
        for module in [CORE, AWS] {
            let line = format!("{module} {VERSION}");
            assert!(MODULE.go_mod.contains(&line), "go.mod lacks {line}");
            assert!(MODULE.go_sum.contains(&format!("{line} h1:")), "go.sum lacks {line}");
        }
    }
}
