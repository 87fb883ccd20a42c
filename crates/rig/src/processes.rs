//! How is one server started, watched and stopped?

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    error::{RigError, tail},
    guardian,
};

/// An idle API server needs one second to end, a busy one up to the length of its longest request. After this it has
/// had its chance; nothing of its state is worth more patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes its own number down before it becomes the server: so there is no moment at which the guardian does not
/// know of it.
const REGISTER: &str = r#"echo $$ >>"$0" && exec "$@""#;

#[derive(Debug)]
pub(crate) struct Process {
    part: &'static str,
    child: Child,
    log: PathBuf,
    /// How much its predecessors had already written.
    log_begins_at: usize,
}

impl Process {
    /// One of the arguments must name the rig's folder: by it the guardian knows its own.
    pub(crate) fn start(
        part: &'static str,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: &Path,
    ) -> Result<Self, RigError> {
        let log = folder.join(format!("{part}.log"));
        let opened = File::options().create(true).append(true).open(&log);
        let out = opened.map_err(RigError::file("write", &log))?;
        let before = out.metadata().map_err(RigError::file("read", &log))?.len();
        let err = out.try_clone().map_err(RigError::file("write", &log))?;
        let child = Command::new("sh")
            .args(["-c", REGISTER])
            .arg(guardian::pids_file(folder))
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            // Servers read variables too (etcd all that begin with ETCD_): ours are told by flags alone.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            // A Ctrl-C at the terminal must not end etcd before its API server.
            .process_group(0)
            .spawn()
            .map_err(RigError::start("sh"))?;
        let log_begins_at = usize::try_from(before).unwrap_or(usize::MAX);
        Ok(Self { part, child, log, log_begins_at })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Whether it has said this. A port may be a stranger's; a log is always its own.
    pub(crate) fn said(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.log()).contains(words)
    }

    /// Why it ended, which only its log knows.
    pub(crate) fn post_mortem(&self) -> RigError {
        let (part, tail) = (self.part, self.tail());
        if tail.contains("address already in use") {
            RigError::PortTaken { part, tail }
        } else {
            RigError::Ended { part, tail }
        }
    }

    pub(crate) fn late(&self, after: Duration, because: String) -> RigError {
        RigError::NotReady { part: self.part, seconds: after.as_secs(), because, tail: self.tail() }
    }

    fn tail(&self) -> String {
        format!("the end of {}:\n{}", self.log.display(), tail(&self.log()))
    }

    fn log(&self) -> Vec<u8> {
        let mut log = fs::read(&self.log).unwrap_or_default();
        log.drain(..self.log_begins_at.min(log.len()));
        log
    }

    /// Asks it to end, and after a while ends it.
    pub(crate) fn stop(&mut self) {
        // A child that was waited for has no number any more; somebody else may.
        if self.ended().is_some() {
            return;
        }
        // An error means that it ended just now.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let asked_at = Instant::now();
        while self.ended().is_none() {
            if asked_at.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}
