//! What can go wrong with the rig, and what should a developer do about it?

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum RigError {
    #[error(
        "cannot tell where to keep built tools: set XDG_CACHE_HOME to an absolute path, or HOME"
    )]
    NoCacheFolder,

    #[error("could not {act} `{path}`")]
    File { act: &'static str, path: PathBuf, source: io::Error },

    #[error("could not start `{program}`")]
    Start { program: PathBuf, source: io::Error },

    #[error(
        "cannot build the control plane: no Go 1.26 or newer here, and installing one failed: {why}\n\
         install Go from https://go.dev/dl/, or python3 with venv, or point KUBEBUILDER_ASSETS at binaries"
    )]
    NoGo { why: String },

    #[error(
        "could not build {what}: it needs a Go module proxy (see `go env GOPROXY`), and about 4 GB of disk\n{tail}"
    )]
    Build { what: String, tail: String },

    #[error("KUBEBUILDER_ASSETS points at `{folder}`, which is not a folder: correct or unset it")]
    NoAssets { folder: PathBuf },

    #[error("could not download module {module}: is the module proxy in reach?\n{tail}")]
    Download { module: &'static str, tail: String },

    #[error("could not make keys and certificates")]
    Credentials(#[from] rcgen::Error),

    #[error("could not find free ports on loopback")]
    Ports(#[source] io::Error),

    #[error("{part} found its port taken\n{tail}")]
    PortTaken { part: &'static str, tail: String },

    #[error("{part} ended before it was ready\n{tail}")]
    Ended { part: &'static str, tail: String },

    #[error("{part} was not ready after {seconds} s ({because})\n{tail}")]
    NotReady { part: &'static str, seconds: u64, because: String, tail: String },

    #[error("could not connect to the API server")]
    Connect(#[source] Box<kube::Error>),

    #[error("cannot read the kubeconfig of the rig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),

    #[error("`kubectl {arguments}` failed: {said}")]
    Refused { arguments: String, said: String },
}

impl RigError {
    pub(crate) fn file(
        act: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { act, path, source }
    }

    pub(crate) fn start(program: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let program = program.into();
        move |source| Self::Start { program, source }
    }
}

/// The last lines of what a program said: the cause is nearly always there.
pub(crate) fn tail(text: &[u8]) -> String {
    /// A Go stack trace with the panic above it fits.
    const LINES_MAX: usize = 40;
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end() {
        let long = (0..100).map(|it| it.to_string()).collect::<Vec<_>>().join("\n");
        let tail = tail(long.as_bytes());
        assert!(tail.starts_with("60\n") && tail.ends_with("\n99"), "{tail}");
        assert_eq!(super::tail(b"one"), "one");
        assert_eq!(super::tail(b""), "");
    }
}
