//! Do whole lives tell themselves as they should?
//!
//! What happens in them changes with the engine; how it is told does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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

/// Six at once: each that says it was done is kept, and time passes for each.
#[test]
fn acts_at_the_same_time_are_all_kept() {
    let home = home("together");
    assert!(nodemolt("sim load two-nodes-budget-one", &home).status.success());
    let at_once = |typed: &dyn Fn(u32) -> String| {
        let started: Vec<_> = (0..6)
            .map(|number| {
                Command::new(env!("CARGO_BIN_EXE_nodemolt"))
                    .args(words(&typed(number)))
                    .env("XDG_STATE_HOME", &home)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for it in started {
            let output = it.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    };
    at_once(&|number| format!("sim publish golden-{number} --arch arm64"));
    at_once(&|_| "sim run 1m".to_owned());
    let listed = text(&nodemolt("sim list", &home).stdout);
    for number in 0..6 {
        assert!(listed.contains(&format!("publish golden-{number}")), "{number}:\n{listed}");
    }
    assert!(listed.contains(" after 6m\n"), "{listed}");
    let mut left: Vec<_> = std::fs::read_dir(home.join("nodemolt"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["sim.json", "sim.json.lock"]);
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

/// What is documented to be done can be done: each word of the page is a verb, or `sim publish` takes it.
#[test]
fn every_act_of_the_page_can_be_typed() {
    let home = home("acts");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once("## What can be done to it").unwrap();
    let (_, block) = block.split_once("```text\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    // Acts are set apart by many spaces; what goes on begins with some.
    let acts = block.lines().filter(|it| !it.starts_with(' ')).flat_map(|it| it.split("      "));
    let words = acts.filter_map(|it| it.split(' ').next()).flat_map(|it| it.split('|'));
    let help = |typed: &str| nodemolt(&format!("{typed} --help"), &home);
    let published = text(&help("sim publish").stdout);
    let applied = text(&help("sim apply").stdout);
    let mut seen = 0;
    for word in words {
        let own = [word.to_owned(), format!("sim {word}")];
        let verb = own.iter().any(|it| help(it).status.success());
        let flag = word.strip_prefix("apply-").is_some_and(|it| applied.contains(it));
        assert!(verb || flag || published.contains(word), "`{word}` cannot be typed");
        seen += 1;
    }
    assert_eq!(seen, nodemolt_sim::Act::WORDS.len(), "the page has other acts than the program");
}

/// What is typed has to be done; what it says.
fn done(typed: &str, home: &Path) -> String {
    let output = nodemolt(typed, home);
    assert!(output.status.success(), "{typed}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_condition_of_another_controller_makes_a_node_drift() {
    let home = home("foreign");
    done("sim load two-nodes-budget-one", &home);
    let claim = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: web-0}\n\
                 status:\n  conditions:\n    - {type: security.example.com/Drifted, status: \"True\", \
                 reason: KernelTooOld, message: CVE-2026-0001}\n";
    std::fs::write(home.join("claim.yaml"), claim).unwrap();
    // As an API server does, and it says so.
    let ignored = done("sim apply -f claim.yaml", &home);
    assert!(ignored.contains("status was ignored"), "{ignored}");
    done("sim run 1m", &home);
    assert!(!done("drift -o json", &home).contains("KernelTooOld"));
    let written = done("sim apply -f claim.yaml --subresource status", &home);
    assert!(written.contains("status of NodeClaim web-0"), "{written}");
    done("sim run 10s", &home);
    let drift = done("drift node-0", &home);
    assert!(drift.contains("says KernelTooOld: CVE-2026-0001"), "{drift}");
    let drift = done("drift node-0 -o json", &home);
    for words in
        ["\"reason\": \"Foreign\"", "\"field\": \"KernelTooOld\"", "\"new\": \"CVE-2026-0001\""]
    {
        assert!(drift.contains(words), "{words}: {drift}");
    }
    done("sim run 20m", &home);
    let replaced = done("explain node-0", &home);
    assert!(replaced.contains("because it had drifted"), "{replaced}");
}

#[test]
fn what_another_version_let_in_counts_as_nought_and_says_so() {
    let home = home("unreadable");
    done("sim load two-nodes-budget-one", &home);
    let budget = "apiVersion: karpenter.sh/v1alpha1\nkind: NodeDisruptionBudget\nmetadata: {name: odd}\n\
                  spec: {labelSelectors: [{karpenter.sh/nodepool: web}], maxUnavailable: banana}\n";
    std::fs::write(home.join("budget.yaml"), budget).unwrap();
    let refused = nodemolt("sim apply -f budget.yaml", &home);
    assert_eq!(refused.status.code(), Some(1));
    done("sim apply -f budget.yaml --unchecked", &home);
    done("sim publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730", &home);
    done("sim run 10m", &home);
    let status = done("status", &home);
    let nothing = "NodeDisruptionBudget `odd`: nothing may go until it can be read";
    assert!(status.contains(nothing), "{status}");
    let story = done("explain node-0", &home);
    assert!(story.contains("NodeDisruptionBudget `odd`"), "{story}");
}

/// One rule for all verbs.
/// Its pool was current then, and there was nothing to replace.
#[test]
fn an_old_node_that_has_gone_first_is_told_until_it_is_followed() {
    let home = home("goes-first");
    let policy = "apiVersion: nodemolt.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {name: first}\n\
                  spec: {rollout: {replacement: DeleteFirst}}\n";
    std::fs::write(home.join("policy.yaml"), policy).unwrap();
    for typed in [
        "sim load two-nodes-budget-one",
        "sim apply -f policy.yaml",
        "sim run 2m",
        "sim publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730",
        "sim fault no-capacity",
        "sim run 12m",
    ] {
        done(typed, &home);
    }
    let status = done("status", &home);
    assert!(
        status
            .contains("node-0   web    -           -               -           gone   ◷ launching"),
        "{status}"
    );
    assert!(status.contains("was moved from node-0 and is pending for"), "{status}");
    assert!(status.contains("◷ replacing"), "{status}");
    let plan = nodemolt("plan --detailed-exitcode", &home);
    assert_eq!(plan.status.code(), Some(2));
    assert!(text(&plan.stdout).contains("node-0   web    drift   ◷ launching"));
    let json: Value = serde_json::from_str(&done("plan -o json", &home)).unwrap();
    assert_eq!(
        (&json["nodes"][0]["name"], &json["nodes"][0]["gone"]),
        (&"node-0".into(), &true.into())
    );
    let pod = &json["pendingPods"][0];
    assert_eq!((&pod["pool"], &pod["movedFrom"][0]), (&"web".into(), &"node-0".into()));
    assert_eq!(pod["waitsFor"][0]["named"]["kind"], "NodeClaim");
    // Nor has it drifted: it is not there.
    assert!(!done("drift -o wide", &home).contains("node-0"));
}

#[test]
fn names_that_are_not_there_are_mistyped() {
    let home = home("names");
    done("sim load two-nodes-budget-one", &home);
    for typed in [
        "explain node-9",
        "drift node-9",
        "upgrade node-9",
        "sim cordon node-9",
        "sim uncordon node-9",
        "sim untaint node-9",
        "sim delete node node-9",
        "sim delete unicorn node-0",
        "sim fault node-dies node-9",
        "sim fault crash operator-7",
        "sim fault pdb-never shop/none",
        "sim fault no-capacity m9z.large",
    ] {
        let output = nodemolt(typed, &home);
        assert_eq!(output.status.code(), Some(64), "{typed}: {}", text(&output.stderr));
    }
}

#[test]
fn scenarios_that_cannot_be_lived_are_refused_with_the_field() {
    let home = home("bounds");
    let scenario = include_str!("../../../../docs/scenarios/two-nodes-budget-one.yaml");
    let many = scenario.replacen("replicas: ", "replicas: 1000000", 1);
    let odd = scenario.replacen("names: [", "names: [\"knöten-0\", ", 1);
    for (name, changed, told) in [
        ("many.yaml", many, "more than 200000"),
        ("odd.yaml", odd, "`knöten-0` is no name for a node: `ö` may not be in it"),
    ] {
        assert_ne!(changed, scenario, "{name} is not what it should be");
        std::fs::write(home.join(name), changed).unwrap();
        let output = nodemolt(&format!("sim load {name}"), &home);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(told), "{name}: {said}");
    }
}

#[test]
fn programs_read_what_happens_in_a_world() {
    let home = home("json");
    let read = |typed: &str| {
        let told = done(typed, &home);
        told.lines().map(|it| serde_json::from_str(it).unwrap()).collect::<Vec<Value>>()
    };
    done("sim load two-nodes-budget-one", &home);
    done("sim publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730", &home);
    let ran = read("sim run 2m -o json");
    let (end, events) = ran.split_last().unwrap();
    assert_eq!(end["kind"], "SimulationEnd");
    assert_eq!(end["at"], "2026-08-01T00:02:00Z");
    assert!(
        events.len() > 5 && events.iter().all(|it| it["kind"] == "Event" && it["at"].is_string())
    );
    let lived = read("sim replay --short -o json");
    let again = lived.last().unwrap();
    assert_eq!((&again["hash"], &again["broken"]), (&end["hash"], &serde_json::json!([])));
    // A random life stops where it is told to, and does not begin before its start.
    let stops_at = |until: jiff::Timestamp| {
        let told = read(&format!("sim replay --seed 5 --short -o json --until {until}"));
        told.last().unwrap()["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let start = stops_at(jiff::Timestamp::UNIX_EPOCH);
    let later = start + jiff::SignedDuration::from_secs(30);
    assert!(start > jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(stops_at(later), later);
    let listed: Value = serde_json::from_str(&done("sim list -o json", &home)).unwrap();
    assert_eq!(listed["loaded"]["acts"].as_array().unwrap().len(), 1);
    // Whatever is under way says what it waits for, by name.
    let plan: Value = serde_json::from_str(&done("plan -o json", &home)).unwrap();
    for node in plan["nodes"].as_array().unwrap() {
        assert_eq!(node["divergences"][0]["field"], "Image", "{node:#}");
        let going = node["state"] == "Going" && node["phase"] != "terminating";
        assert!(!going || node["because"].as_str().unwrap().starts_with("waits"), "{node:#}");
    }
    let waiting = plan["nodes"].as_array().unwrap().iter().find(|it| it["state"] == "Waits");
    let causes = waiting.unwrap()["waitsFor"].as_array().unwrap();
    let user = causes.iter().find_map(|it| it["usedBy"].get(0)).unwrap();
    assert_eq!((&user["node"], user["since"].is_string()), (&Value::from("node-0"), true));
    let story: Value = serde_json::from_str(&done("explain node-0 -o json", &home)).unwrap();
    assert_eq!(
        (&story["apiVersion"], &story["kind"]),
        (&"nodemolt.dev/cli/v1".into(), &"Story".into())
    );
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
