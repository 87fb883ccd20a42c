//! Where is kept what took minutes to build, and who may build it now?
//!
//! In the user's cache folder, not in the checkout: all worktrees share it, and `cargo clean` leaves it alone.
//! A file that stands under its name is whole, because it was renamed into place; and one process at a time builds.

use std::{
    env,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use crate::error::RigError;

#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn open() -> Result<Self, RigError> {
        let variable = |name: &str| env::var_os(name).map(PathBuf::from);
        let folder = choose(variable("XDG_CACHE_HOME"), variable("HOME"))?;
        Self::at(folder)
    }

    pub(crate) fn at(folder: PathBuf) -> Result<Self, RigError> {
        fs::create_dir_all(&folder).map_err(RigError::file("create", &folder))?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Holds back other processes, and other threads, until the file is dropped. A process that dies lets go.
    pub(crate) fn lock(&self, name: &str) -> Result<File, RigError> {
        let path = self.path(&format!("{name}.lock"));
        let file = File::create(&path).map_err(RigError::file("create", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another process that builds {name}");
            }
            Err(TryLockError::Error(source)) => return Err(RigError::file("lock", &path)(source)),
        }
        file.lock().map_err(RigError::file("lock", &path))?;
        Ok(file)
    }

    /// A folder for half-built things, on the same file system as the finished ones.
    pub(crate) fn scratch(&self) -> Result<tempfile::TempDir, RigError> {
        tempfile::Builder::new()
            .prefix("unfinished-")
            .tempdir_in(&self.folder)
            .map_err(RigError::file("create a folder in", &self.folder))
    }
}

/// The rule of the XDG base directories: a relative path there is to be ignored.
fn choose(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, RigError> {
    let absolute = |it: Option<PathBuf>| it.filter(|it| it.is_absolute());
    let caches = absolute(xdg).or_else(|| absolute(home).map(|it| it.join(".cache")));
    Ok(caches.ok_or(RigError::NoCacheFolder)?.join("nodemolt").join("rig"))
}

/// Puts a finished file or folder under its name, in one step.
pub(crate) fn settle(unfinished: &Path, finished: &Path) -> Result<(), RigError> {
    if let Some(parent) = finished.parent() {
        fs::create_dir_all(parent).map_err(RigError::file("create", parent))?;
    }
    fs::rename(unfinished, finished).map_err(RigError::file("write", finished))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_comes_before_home_and_must_be_absolute() {
        let path = |it: &str| Some(PathBuf::from(it));
        let cases = [
            (path("/x"), path("/h"), Some("/x/nodemolt/rig")),
            (path("x"), path("/h"), Some("/h/.cache/nodemolt/rig")),
            (None, path("/h"), Some("/h/.cache/nodemolt/rig")),
            (path(""), path(""), None),
            (None, None, None),
        ];
        for (xdg, home, expected) in cases {
            let chosen = choose(xdg.clone(), home.clone()).ok();
            assert_eq!(chosen.as_deref(), expected.map(Path::new), "{xdg:?} {home:?}");
        }
    }

    #[test]
    fn one_builds_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let held = cache.lock("thing").unwrap();
        let second = File::create(cache.path("thing.lock")).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        second.try_lock().unwrap();
    }
}
