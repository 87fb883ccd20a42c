//! Is on this machine what the tests run beside us?
//!
//! The parts that we write for AL2 are shell with jq, and the readers of MIME beside ours are Python's and
//! cloud-init's. Whatever of them is missing is fetched from Debian's packages by name; where that cannot
//! be done, it says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::check::Check;

/// What is started, and the package that brings it.
const TOOLS: [(&str, &str); 3] = [("bash", "bash"), ("jq", "jq"), ("python3", "python3")];

/// Cloud-init, and what its reader of user data imports. They are unpacked and never installed: the
/// package would enable services that take a machine for one that just booted.
const CLOUD_INIT: [&str; 8] = [
    "cloud-init",
    "python3-certifi",
    "python3-chardet",
    "python3-idna",
    "python3-requests",
    "python3-six",
    "python3-urllib3",
    "python3-yaml",
];

/// Where Debian's packages keep modules of Python.
const MODULES: &str = "usr/lib/python3/dist-packages";

/// One check per tool, after an attempt to install those that are missing.
pub(crate) fn tools() -> Vec<Check> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(tool, _)| !starts(tool)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        install(&missing);
    }
    let mut checks: Vec<Check> = TOOLS
        .iter()
        .map(|(tool, package)| {
            let findings = if starts(tool) {
                Vec::new()
            } else {
                vec![format!("`{tool}` cannot be started; install the package `{package}`")]
            };
            Check { name: "tools", findings }
        })
        .collect();
    checks.push(Check { name: "tools", findings: cloud_init() });
    checks
}

fn starts(tool: &str) -> bool {
    quiet(Command::new(tool).arg("--version"))
}

/// As root on Debian this works; elsewhere the check that follows tells what is missing.
fn install(packages: &[&str]) {
    eprintln!("installing {}", packages.join(", "));
    apt(&["update"]);
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
}

fn apt(arguments: &[&str]) -> bool {
    quiet(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Unpacks cloud-init's modules where `crates/core/tests/bootstrap_shell/cloud_init.rs` looks for them.
fn cloud_init() -> Vec<String> {
    let Some(folder) = cache() else {
        return vec!["neither XDG_CACHE_HOME nor HOME tells where to unpack cloud-init".to_owned()];
    };
    if !reads(&folder) {
        eprintln!("unpacking cloud-init into {}", folder.display());
        if let Err(why) = unpack(&folder) {
            return vec![format!("cloud-init's own reader of user data cannot be had: {why}")];
        }
    }
    if reads(&folder) {
        return Vec::new();
    }
    let modules = folder.join(MODULES);
    vec![format!("python3 cannot import `cloudinit.user_data` from {}", modules.display())]
}

fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("nodemolt/cloud-init"))
}

fn reads(folder: &Path) -> bool {
    let modules = "import cloudinit.user_data, cloudinit.handlers.shell_script";
    let mut python = Command::new("python3");
    quiet(python.args(["-c", modules]).env("PYTHONPATH", folder.join(MODULES)))
}

fn unpack(folder: &Path) -> Result<(), String> {
    // Beside its place first: two checkouts may do this at once, and nobody may see half of it.
    let fresh = folder.with_extension(std::process::id().to_string());
    let done = unpack_into(&fresh).and_then(|()| {
        let _ = fs::remove_dir_all(folder);
        match fs::rename(&fresh, folder) {
            // The other was quicker.
            Err(_) if reads(folder) => Ok(()),
            Err(why) => Err(why.to_string()),
            Ok(()) => Ok(()),
        }
    });
    let _ = fs::remove_dir_all(&fresh);
    done
}

fn unpack_into(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|why| why.to_string())?;
    let download =
        || quiet(Command::new("apt-get").arg("download").args(CLOUD_INIT).current_dir(folder));
    // The lists may be absent or old.
    let downloaded = download() || (apt(&["update"]) && download());
    if !downloaded {
        return Err(format!("`apt-get download {}` failed", CLOUD_INIT.join(" ")));
    }
    let files = fs::read_dir(folder).map_err(|why| why.to_string())?;
    let packages = files.flatten().map(|it| it.path());
    for package in packages.filter(|it| it.extension().is_some_and(|it| it == "deb")) {
        if !quiet(Command::new("dpkg").arg("--extract").args([package.as_path(), folder])) {
            return Err(format!("`dpkg --extract {}` failed", package.display()));
        }
        let _ = fs::remove_file(package);
    }
    Ok(())
}

fn quiet(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}
