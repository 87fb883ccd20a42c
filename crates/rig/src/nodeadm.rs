//! Would the program that boots an AL2023 node take this?
//!
//! nodeadm's own `config check`, on a file instead of the instance's user data.

use std::{fs, process::Command};

use crate::{
    error::RigError,
    tools::{Tool, program},
};

/// What nodeadm says about a `NodeConfig`: nothing, or why it refuses.
pub fn check(node_config: &str) -> Result<Result<(), String>, RigError> {
    let program = program(Tool::Nodeadm)?;
    let folder =
        tempfile::tempdir().map_err(RigError::file("create a folder in", std::env::temp_dir()))?;
    let path = folder.path().join("node-config.yaml");
    fs::write(&path, node_config).map_err(RigError::file("write", &path))?;

    let output = Command::new(&program)
        .args(["config", "check", "--config-source"])
        .arg(format!("file://{}", path.display()))
        .env_clear()
        .current_dir(folder.path())
        .output()
        .map_err(RigError::start(&program))?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let said = [output.stdout, output.stderr].concat();
    Ok(Err(String::from_utf8_lossy(&said).trim_end().to_owned()))
}
