//! Who cleans up when we cannot?
//!
//! A shell that waits for the end of a pipe which only we hold. The system closes it whatever becomes of us (an
//! exit, a panic, a `kill -9`), and so the servers never outlive the process that started them. The system's own
//! way, a parent-death signal, is unsafe code, and would fire when the *thread* that started them ends: a test's.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::error::RigError;

const SCRIPT: &str = include_str!("guardian.sh");

#[derive(Debug)]
pub(crate) struct Guardian {
    shell: Child,
}

impl Guardian {
    /// Watches over the processes that write themselves into `pids_file(folder)`, and over the folder.
    pub(crate) fn over(folder: &Path, lifetime: Duration) -> Result<Self, RigError> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(folder)
            .arg(lifetime.as_secs().max(1).to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal is meant for us, not for it.
            .process_group(0)
            .spawn()
            .map_err(RigError::start("sh"))?;
        Ok(Self { shell })
    }
}

/// One process id per line, in the order of their start.
pub(crate) fn pids_file(folder: &Path) -> PathBuf {
    folder.join("pids")
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Its own waits are bounded; when it has ended nothing of the rig is left.
        if let Err(error) = self.shell.wait() {
            eprintln!("could not wait for the rig's guardian: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::Process;

    fn sleeper(folder: &Path) -> Process {
        // Waits for more text in its own log, for ever.
        let arguments = [PathBuf::from("-f"), folder.join("sleeper.log")];
        Process::start("sleeper", Path::new("tail"), &arguments, folder).unwrap()
    }

    #[test]
    fn what_was_started_ends_with_the_pipe_and_so_does_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let guardian = Guardian::over(folder.path(), Duration::from_mins(1)).unwrap();
        let mut sleepers = [sleeper(folder.path()), sleeper(folder.path())];
        assert!(sleepers.iter_mut().all(|it| it.ended().is_none()));
        wait_for(|| pids(folder.path()) == 2);
        drop(guardian);
        assert!(sleepers.iter_mut().all(|it| it.ended().is_some()));
        assert!(!folder.path().exists());
    }

    #[test]
    fn a_stranger_with_a_number_of_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let guardian = Guardian::over(folder.path(), Duration::from_mins(1)).unwrap();
        let mut stranger = sleeper(elsewhere.path());
        std::fs::write(pids_file(folder.path()), format!("{}\n", stranger.id())).unwrap();
        drop(guardian);
        assert!(stranger.ended().is_none());
    }

    #[test]
    fn time_is_bounded_even_if_nobody_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let _guardian = Guardian::over(folder.path(), Duration::from_secs(1)).unwrap();
        let mut sleeper = sleeper(folder.path());
        wait_for(|| sleeper.ended().is_some());
    }

    fn pids(folder: &Path) -> usize {
        std::fs::read_to_string(pids_file(folder)).map_or(0, |it| it.lines().count())
    }

    fn wait_for(mut happened: impl FnMut() -> bool) {
        let started_at = std::time::Instant::now();
        while !happened() {
            assert!(started_at.elapsed() < Duration::from_secs(30), "waited in vain");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
