//! Do whole lives tell themselves as they should?
//!
//! What happens in them changes with the engine; how it is told does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::words;

/// In a folder that begins empty.
fn home(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulated").join(name);
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).unwrap();
    home
}

fn nodemolt(typed: &str, home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(words(typed))
        .current_dir(home)
        .env("XDG_STATE_HOME", home)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_demo_without_a_terminal_prints_lines_and_ends_with_what_to_try() {
    let home = home("demo");
    let output = nodemolt("demo", &home);
    let told = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert!(!told.contains('\x1b'), "a picture is drawn where nobody sees it");
    // What others do is said, in order, and what comes of it: every node is new in the end.
    let said = [
        "# AWS publishes a new image",
        "is launching",
        "# nodemolt is killed",
        "operator-0 crashes",
        "operator-0 leads",
        "# for two minutes",
        "# the import is done",
        "What to try next:\n  nodemolt sim list",
    ];
    let mut rest = told.as_str();
    for words in said {
        let at = rest.find(words);
        rest =
            &rest[at.unwrap_or_else(|| panic!("`{words}` is not said, or too early:\n{told}"))..];
    }
    for node in 0..6 {
        let done = format!("replacement of node-{node} is done");
        assert!(told.contains(&done), "{done}: not so\n{told}");
    }
    let next = told.split("What to try next:\n").nth(1).unwrap();
    for line in next.lines() {
        let (typed, _) = line.trim().split_once("   ").unwrap();
        assert!(typed.starts_with("nodemolt ") || typed.starts_with("cargo demo"), "{line}");
    }
    assert_eq!(told, text(&nodemolt("demo --lines --seed 1", &home).stdout));
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "files are left");
}

#[test]
fn a_random_life_is_the_same_each_time_it_is_replayed() {
    let home = home("replay");
    let output = nodemolt("sim replay --seed 4711 --short", &home);
    let told = text(&output.stdout);
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(0), "no law was broken\n")
    );
    let last = told.lines().last().unwrap();
    let shape = ["it is 20", " steps   hash "];
    assert!(shape.iter().all(|it| last.contains(it)), "{last}");
    let whole = text(&nodemolt("sim replay --seed 4711", &home).stdout);
    assert_eq!(whole.lines().last(), Some(last));
    assert!(whole.lines().count() > told.lines().count());
    let other = text(&nodemolt("sim replay --seed 4712 --short", &home).stdout);
    assert_ne!(other.lines().last(), Some(last));
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "files are left");
}

#[test]
fn what_was_done_to_a_world_is_listed() {
    let home = home("list");
    for typed in ["sim load two-nodes-budget-one", "sim run 2m", "pause --reason 'release day'"] {
        assert!(nodemolt(typed, &home).status.success(), "{typed}");
    }
    let listed = text(&nodemolt("sim list --no-headers", &home).stdout);
    let (_, loaded) = listed.split_once("\n\n").unwrap();
    let expected = "loaded   two-nodes-budget-one   seed 1   2026-08-01T00:02:00Z after 2m\n\
                    2026-08-01T00:02:00Z   pause release day\n";
    assert_eq!(loaded, expected);
}

/// Which words there are changes with what can go wrong; that a wrong one is told the right ones does not.
#[test]
fn a_fault_that_is_none_is_told_what_to_write() {
    let home = home("faults");
    assert!(nodemolt("sim load two-nodes-budget-one", &home).status.success());
    for (typed, told) in [
        ("meteor", "`meteor` is no fault; write one of: crash WHOM"),
        ("crash", "it does not say whom; write `crash WHOM"),
        ("throttle s3", "`s3` cannot be throttled; write `throttle ec2|ssm|kubernetes"),
        ("lose-answers 120%", "`120%` is no share: PERCENT is a number from 0 to 100"),
        ("watch-lag 5s Unicorn", "`Unicorn` is no kind that is watched: KIND is one of"),
        ("watch-lag soon", "`soon` is no length of time"),
    ] {
        let output = nodemolt(&format!("sim fault {typed}"), &home);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{typed}: {said}");
        assert!(said.contains(told) && said.contains("sim fault --help"), "{typed}: {said}");
        assert!(output.stdout.is_empty());
    }
}

/// As after a restore of etcd, or where somebody took finalizers off: nothing is ended on a suspicion, and
/// whoever looks is told what does not fit together.
#[test]
fn what_is_left_for_a_person_to_look_at_is_told() {
    let home = home("doubted");
    let force = |what: &[(&str, &str, &str)]| {
        for (version, kind, name) in what {
            let bare = format!(
                "{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}, finalizers: []}}}}\n"
            );
            std::fs::write(home.join("bare.yaml"), bare).unwrap();
            for typed in ["sim apply -f bare.yaml".to_owned(), format!("sim delete {kind} {name}")]
            {
                let output = nodemolt(&typed, &home);
                assert!(output.status.success(), "{typed}: {}", text(&output.stderr));
            }
        }
    };
    let say = |typed: &str| text(&nodemolt(typed, &home).stdout);
    let load = || {
        for typed in ["sim load two-nodes-budget-one", "sim run 6m"] {
            assert!(nodemolt(typed, &home).status.success(), "{typed}");
        }
        let told = say("status");
        assert!(!told.contains("orphan") && !told.contains("missing"), "{told}");
    };

    load();
    force(&[("karpenter.sh/v1", "NodeClaim", "web-0")]);
    say("sim run 9m");
    for typed in ["status", "explain", "explain node-0"] {
        let told = say(typed);
        for words in [
            "orphan   i-",
            "(node node-0): no NodeClaim `web-0` has the UID",
            "kubectl drain node-0",
        ] {
            assert!(told.contains(words), "{typed}: {words}:\n{told}");
        }
    }
    let told = say("status -o json");
    assert!(
        told.contains("\"reason\": \"Orphan\"") && told.contains("\"about\": \"machines\""),
        "{told}"
    );
    let told = say("explain node-1");
    assert!(!told.contains("orphan"), "{told}");

    load();
    force(&[("v1", "Node", "node-0"), ("v1", "Node", "node-1")]);
    say("sim run 9m");
    for typed in ["status", "explain", "explain node-1"] {
        let told = say(typed);
        for words in
            ["missing  web-", "its node node-1 is missing", "kubectl delete nodeclaim web-"]
        {
            assert!(told.contains(words), "{typed}: {words}:\n{told}");
        }
    }
    let told = say("status -o json");
    assert!(told.contains("\"reason\": \"NodeMissing\""), "{told}");
}
