//! Who acts on a world file now?
//!
//! An act reads the file, lives it again, acts and saves: two at once would each save without the
//! other's. So whoever acts holds the lock on a file beside it; whoever looks needs none, because a world
//! is put in its place whole. The lock goes with the process, however that ends; the file stays, since
//! somebody may be waiting on it. What else lies under its name is never written over, and no link is
//! followed: it may be precious to somebody.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::output::Failure;

/// Long enough for an act on a world that has lived for days, short enough for a person.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many times that, where others act one after another.
const TURNS_MAX: u32 = 10;
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// What we write into it, with the process behind it, and the only thing besides nothing that we write over.
const MARK: &str = "last held by nodemolt, process ";
/// As many digits as the largest `u32` has: what is written is as long each time, so nothing is ever cut off.
const DIGITS: usize = 10;

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
        let mut file = open(&path).map_err(wrong)?.ok_or_else(|| foreign(&path))?;
        if !ours(&mut file).map_err(wrong)? {
            return Err(foreign(&path));
        }
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
        // Somebody else's program may have written while we waited.
        if !ours(&mut file).map_err(wrong)? {
            return Err(foreign(&path));
        }
        // Only for those who wait in vain; the lock holds without it.
        let said = format!("{MARK}{:>DIGITS$}\n", std::process::id());
        let _ = file.rewind().and_then(|()| file.write_all(said.as_bytes()));
        Ok(Self { _file: file })
    }
}

/// Not `FILE.lock`: that is a common name, and the catalogs of `nodemolt images lock` are called so.
fn beside(world: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(world.file_name().unwrap_or_default());
    name.push(".nodemolt-lock");
    world.with_file_name(name)
}

/// The regular file of this name, which is made where there is none; `None` for whatever else is there, links too.
fn open(path: &Path) -> io::Result<Option<File>> {
    // A new one is made in no link's place.
    match File::options().create_new(true).read(true).write(true).open(path) {
        Err(it) if it.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(Some),
    }
    let there = fs::symlink_metadata(path)?;
    if !there.is_file() {
        return Ok(None);
    }
    let file = File::options().read(true).write(true).open(path)?;
    let opened = file.metadata()?;
    Ok(same(&there, &opened).then_some(file))
}

/// Whether nobody has put a link in its place meanwhile.
#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same(one: &Metadata, other: &Metadata) -> bool {
    one.file_type() == other.file_type()
}

/// Its text, as far as ours are long.
fn text(file: &mut File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.rewind()?;
    let longest = u64::try_from(MARK.len() + DIGITS + 2).unwrap_or(u64::MAX);
    file.take(longest).read_to_end(&mut text)?;
    Ok(text)
}

/// Whether it is empty, or says what we say, as far as that was written.
fn ours(file: &mut File) -> io::Result<bool> {
    let text = text(file)?;
    Ok(match text.strip_prefix(MARK.as_bytes()) {
        Some(rest) => {
            rest.len() <= DIGITS + 1
                && rest.iter().all(|it| matches!(it, b' ' | b'0'..=b'9' | b'\n'))
        }
        None => MARK.as_bytes().starts_with(&text),
    })
}

/// The process that has it, as far as it has said so.
fn holder(file: &mut File) -> Option<u32> {
    let text = String::from_utf8(text(file).ok()?).ok()?;
    text.strip_prefix(MARK)?.trim().parse().ok()
}

fn foreign(path: &Path) -> Failure {
    Failure::new(format!(
        "cannot lock {}: what is there is no lock of nodemolt's, and was left as it is",
        path.display()
    ))
    .hint("nothing was changed; move it away, or name another world with `--sim FILE`")
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

    /// What people have is not written over, whatever it is called, and where a link leads nothing is made.
    #[test]
    fn what_is_no_lock_of_ours_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("nodemolt-foreign-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let world = folder.join("w");
        let (lock, victim) = (beside(&world), folder.join("victim"));
        let refused = || {
            let told = Lock::within(&world, Duration::ZERO).expect_err("it is not ours");
            assert!(told.talk.contains("no lock of nodemolt's"), "{}", told.talk);
        };
        let long = format!("{MARK}{:>DIGITS$}\nprecious", 7);
        for precious in ["precious", "12", "last held by", long.as_str()] {
            fs::write(&lock, precious).unwrap();
            // Whose writer was ended in the middle is ours.
            if MARK.starts_with(precious) {
                assert!(Lock::within(&world, Duration::ZERO).is_ok());
                continue;
            }
            refused();
            assert_eq!(fs::read_to_string(&lock).unwrap(), precious);
        }
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        refused();
        fs::remove_dir(&lock).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&victim, &lock).unwrap();
            refused();
            assert!(!victim.exists(), "a link was followed");
            fs::write(&victim, "").unwrap();
            refused();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "");
            fs::remove_file(&lock).unwrap();
        }
        fs::write(folder.join("w.lock"), "precious").unwrap();
        for _ in 0..2 {
            assert!(Lock::within(&world, Duration::ZERO).is_ok(), "our own is taken again");
        }
        assert_eq!(fs::read_to_string(folder.join("w.lock")).unwrap(), "precious");
        fs::remove_dir_all(&folder).unwrap();
    }
}
