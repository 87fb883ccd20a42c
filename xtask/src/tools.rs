//! Is on this machine what the tests run beside us?
//!
//! The parts that we write for AL2 are shell with jq, and a second reader of MIME is Python's. Whatever
//! of them is missing is installed from Debian's packages by name; where that cannot be done, it says so.

use std::process::{Command, Stdio};

use crate::check::Check;

/// What is started, and the package that brings it.
const TOOLS: [(&str, &str); 3] = [("bash", "bash"), ("jq", "jq"), ("python3", "python3")];

/// One check per tool, after an attempt to install those that are missing.
pub(crate) fn tools() -> Vec<Check> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(tool, _)| !starts(tool)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        install(&missing);
    }
    TOOLS
        .iter()
        .map(|(tool, package)| {
            let findings = if starts(tool) {
                Vec::new()
            } else {
                vec![format!("`{tool}` cannot be started; install the package `{package}`")]
            };
            Check { name: "tools", findings }
        })
        .collect()
}

fn starts(tool: &str) -> bool {
    quiet(Command::new(tool).arg("--version"))
}

/// As root on Debian this works; elsewhere the check that follows tells what is missing.
fn install(packages: &[&str]) {
    eprintln!("installing {}", packages.join(", "));
    let apt = |arguments: &[&str]| {
        quiet(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"]);
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
}

fn quiet(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}
