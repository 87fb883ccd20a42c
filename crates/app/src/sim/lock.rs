//! Who acts on a world file now?
//!
//! An act reads the file, lives it again, acts and saves: two at once would each save without the
//! other's. So whoever acts holds the lock on a file beside it; whoever looks needs none, because a world
//! is put in its place whole. The lock goes with the process, however that ends; the file stays, since
//! somebody may be waiting on it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::output::Failure;

/// Long enough for an act on a world that has lived for days, short enough for a person.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many times that, where others act one after another.
const TURNS_MAX: u32 = 10;
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// The lock on this world, as soon as nobody else has it.
    pub(super) fn take(world: &Path) -> Result<Self, Failure> {
        Self::within(world, PATIENCE)
    }

    fn within(world: &Path, patience: Duration) -> Result<Self, Failure> {
        let path = beside(world);
        let wrong = |it: io::Error| {
            Failure::new(format!("could not lock {}: {it}", path.display()))
                .hint("name a file in a folder that can be written to with `--sim FILE`")
        };
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        let open = File::options().create(true).read(true).write(true).truncate(false).open(&path);
        let mut file = open.map_err(wrong)?;
        let begun = Instant::now();
        // By whom it is held, and since when: of several who wait each has its turn.
        let mut held = (holder(&mut file), begun);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(it)) => return Err(wrong(it)),
                Err(TryLockError::WouldBlock) => {}
            }
            let now_by = holder(&mut file);
            if now_by != held.0 {
                held = (now_by, Instant::now());
            }
            if held.1.elapsed() >= patience || begun.elapsed() >= patience * TURNS_MAX {
                return Err(taken(world, held.0, patience));
            }
            std::thread::sleep(LOOKS_EVERY);
        }
        // Only for those who wait in vain; the lock holds without it.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

fn beside(world: &Path) -> PathBuf {
    let mut path = world.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

/// The process that has it, as far as it has said so.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

fn taken(world: &Path, holder: Option<u32>, patience: Duration) -> Failure {
    let holder = holder.map(|it| format!(" (process {it})")).unwrap_or_default();
    Failure::new(format!(
        "could not act on {}: another nodemolt{holder} has been acting on it for {}s",
        world.display(),
        patience.as_secs()
    ))
    .hint("nothing was changed; try again when it is done, or end it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_second_waits_and_is_told_who_came_first() {
        let folder = std::env::temp_dir().join(format!("nodemolt-lock-{}", std::process::id()));
        let world = folder.join("deep").join("sim.json");
        let first = Lock::take(&world).expect("nobody has it");
        let told = Lock::within(&world, Duration::from_millis(50)).expect_err("somebody has it");
        let own = format!("another nodemolt (process {})", std::process::id());
        assert!(told.talk.contains(&own) && told.talk.contains("try again"), "{}", told.talk);
        drop(first);
        let second = Lock::within(&world, Duration::ZERO);
        let _ = fs::remove_dir_all(&folder);
        assert!(second.is_ok());
    }
}
