//! Is a world that was kept the same world?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_sim::{Act, WorldFile};
use support::{NEW, mins, scenario, text};

fn lived() -> (WorldFile, u64) {
    let mut file = WorldFile::new("two-nodes.yaml", scenario(&text()), 9);
    let mut world = file.replay().unwrap();
    for line in ["run 3m", "fault lose-answers 5% for 2m", &format!("publish {NEW}"), "run 4m"] {
        let act: Act = line.parse().unwrap();
        let at = world.now();
        world.act(&act).unwrap();
        file.note(&act, at, &world);
    }
    (file, world.hash())
}

#[test]
fn a_world_that_is_replayed_is_the_same_to_the_hash() {
    let (file, hash) = lived();
    assert_eq!(file.age(), mins(7));
    let again = WorldFile::read("again", &file.to_string()).unwrap();
    assert_eq!(again, file);
    assert_eq!(again.replay().unwrap().hash(), hash);
}

#[test]
fn a_file_is_saved_whole_and_loaded_again() {
    let folder = std::env::temp_dir().join(format!("nodemolt-world-{}", std::process::id()));
    let path = folder.join("deep").join("world.json");
    let file = WorldFile::new("two-nodes.yaml", scenario(&text()), 9);
    file.save(&path).unwrap();
    file.save(&path).unwrap();
    assert_eq!(WorldFile::load(&path).unwrap(), file);
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing lies beside it");
    // What has the name that is written first is somebody else's, or was left by who was ended.
    let taken = path.with_file_name(format!("world.json.new-{}", std::process::id()));
    std::fs::write(&taken, "precious").unwrap();
    file.save(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_broken_file_is_told_by_name_and_left_alone() {
    let (file, _) = lived();
    let good = file.to_string();
    for (bad, told) in [
        (String::new(), "no world file"),
        ("not a world".to_owned(), "no world file"),
        (good[..good.len() / 2].to_owned(), "no world file"),
        (good.replace("\"version\": 1", "\"version\": 2"), "version 2"),
        (good.replace("publish", "punish"), "punish"),
        (good.replace("\"seed\"", "\"sead\""), "sead"),
        (good.replace("\"seed\": 9", "\"seed\": 9, \"seed\": 7"), "duplicate field `seed`"),
        (good.replace("nodes: 2", "nodes: many"), "scenario"),
        (good.replace("2026-08-01T00:03:00Z publish", "2026-08-01T00:01:00Z publish"), "order"),
    ] {
        assert_ne!(bad, good, "{told}");
        let error = WorldFile::read("w.json", &bad).unwrap_err().to_string();
        assert!(error.contains("w.json") && error.contains(told), "{told}: {error}");
    }
}
