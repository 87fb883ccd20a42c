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
    // `cargo demo` is a word of our repository, and cargo runs this test in it.
    assert!(next.contains("cargo demo --images") && !next.contains("nodemolt resolve"), "{next}");
    let installed = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(["demo", "--lines"])
        .env_remove("CARGO_PKG_NAME")
        .output()
        .unwrap();
    let installed = text(&installed.stdout);
    let (_, next) = installed.split_once("What to try next:\n").unwrap();
    assert!(!next.contains("cargo") && next.contains("nodemolt resolve --help"), "{next}");
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
    assert_eq!(left, [".sim.json.nodemolt-lock", "sim.json"]);
}

/// What is wrong, and what to write instead: each mistake is blamed on what was typed.
#[test]
fn mistakes_are_blamed_on_what_was_typed() {
    let home = home("blamed");
    done("sim load two-nodes-budget-one", &home);
    for typed in ["sim publish g --arch arm64", "sim publish g --arch arm64 --id ami-01234567"] {
        done(typed, &home);
    }
    let twice = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nkind: Pod\n";
    std::fs::write(home.join("m.yaml"), twice).unwrap();
    for (typed, code, told) in [
        ("sim publish X --arch arm64 --parameter= --tag a=b", 64, "--parameter `` is empty"),
        ("sim publish X --arch arm64 --parameter 'a b'", 64, "--parameter `a b` has a blank"),
        ("sim publish X --tag 'a=b c'", 64, "--tag `a=b c` has a blank"),
        ("sim run 9999999w", 64, "more than a hundred years; write less"),
        ("sim delete foo bar", 64, "write one of Node, Pod, "),
        ("sim annotate foo bar a=b", 64, "write one of Node, Pod, "),
        ("sim hold foo bar", 64, "write one of Node, Namespace, "),
        ("sim hold pod bar", 64, "write one of Node, Namespace, "),
        ("sim apply -f m.yaml", 1, "m.yaml:4:1"),
        ("sim apply -f m.yaml", 1, "help: keep one of the two"),
        ("sim publish deprecate g", 64, "write the id of one: ami-01234567, ami-"),
        ("upgrade @successor", 64, "no Node is `@successor` now"),
    ] {
        let output = nodemolt(typed, &home);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{typed}: {said}");
        assert!(said.contains(told), "{typed}: {told}:\n{said}");
    }
    for (typed, told) in [
        // One that is gone is not meant by its name.
        ("sim publish deregister ami-01234567", "deregistered"),
        ("sim publish deprecate g", "is deprecated"),
        ("sim annotate node node-1 a-", "Node node-1 has no annotation a: nothing is changed"),
        ("sim annotate node node-1 a=b", "Node node-1 is annotated"),
        ("sim annotate node node-1 a-", "Node node-1 has no annotation a any more"),
        ("upgrade node/@any", "is asked to be replaced"),
        ("upgrade pool/@any", "NodePool web is asked to be replaced"),
        ("sim delete node node-1", "is deleted"),
    ] {
        let said = done(typed, &home);
        assert!(said.contains(told), "{typed}: {told}:\n{said}");
    }
    // They are there, and it cannot be done.
    let foreign = "apiVersion: v1\nkind: Node\nmetadata: {name: foreign}\n";
    std::fs::write(home.join("node.yaml"), foreign).unwrap();
    done("sim apply -f node.yaml", &home);
    for typed in ["sim hold node node-1", "upgrade foreign", "sim fault node-dies foreign"] {
        let output = nodemolt(typed, &home);
        assert_eq!(output.status.code(), Some(1), "{typed}: {}", text(&output.stderr));
    }
    let homeless = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .arg("status")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", "relative")
        .output()
        .unwrap();
    let said = text(&homeless.stderr);
    assert!(said.contains("HOME is `relative`, which does not begin with `/`"), "{said}");
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let mut help = Command::new(env!("CARGO_BIN_EXE_nodemolt"));
        let output = help.args(["sim", "--help"]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "help that did not come: {output:?}");
    }
}

/// Beside a world lies what people put there.
#[test]
fn what_lies_beside_a_world_is_left_as_it_is() {
    let home = home("beside");
    let lock = home.join(".catalog.nodemolt-lock");
    for path in [home.join("catalog.lock"), lock.clone()] {
        std::fs::write(path, "precious").unwrap();
    }
    let output = nodemolt("sim load demo --sim catalog", &home);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no lock of nodemolt's") && said.contains("--sim FILE"), "{said}");
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "precious");
    std::fs::remove_file(&lock).unwrap();
    // A link to where nothing is yet: the world begins there, and the link stays.
    std::fs::create_dir(home.join("deep")).unwrap();
    std::os::unix::fs::symlink("deep/world", home.join("catalog")).unwrap();
    done("sim load demo --sim catalog", &home);
    done("sim run 1m --sim catalog", &home);
    assert!(home.join("catalog").is_symlink() && home.join("deep/world").is_file());
    assert_eq!(std::fs::read_to_string(home.join("catalog.lock")).unwrap(), "precious");
    // Beside what is refused nothing is left.
    std::fs::write(home.join("notes"), "precious").unwrap();
    assert_eq!(nodemolt("sim load demo --sim notes", &home).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(home.join("notes")).unwrap(), "precious");
    assert!(!home.join(".notes.nodemolt-lock").exists());
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
    assert!(events.len() > 5);
    // Who reads one reads the other: the same members, and `text` is bare.
    let whole = read("sim replay -o json");
    for it in events.iter().chain(&whole[..whole.len() - 1]) {
        let members: Vec<&String> = it.as_object().unwrap().keys().collect();
        assert_eq!(members, ["apiVersion", "at", "by", "kind", "text"], "{it:#}");
        assert_eq!((&it["apiVersion"], &it["kind"]), (&end["apiVersion"], &"Event".into()));
        let told = it["text"].as_str().unwrap();
        assert!(!told.starts_with("2026-") && !told.contains("   "), "{told}");
    }
    assert!(events.iter().any(|it| it["by"] == "operator-0"), "{events:#?}");
    // What EC2 was asked for is told in its own words.
    let asked = "asks for images amazon-eks-node-al2023";
    let asks = |it: &Value| it["text"].as_str().unwrap().starts_with("asks for ");
    let told: Vec<&str> = whole[..whole.len() - 1]
        .iter()
        .filter(|it| asks(it))
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert!(told.iter().any(|it| it.starts_with(asked)), "{told:#?}");
    assert!(told.iter().all(|it| !it.contains(['{', '"'])), "{told:#?}");
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
    let status: Value = serde_json::from_str(&done("status -o json", &home)).unwrap();
    for (member, said) in
        [("cluster", "simulated"), ("kubernetes", "1.33"), ("region", "eu-central-1")]
    {
        assert_eq!(status[member], said);
    }
    let days = 20 * 24 * 60 * 60;
    assert!(
        status["nodes"].as_array().unwrap().iter().any(|it| it["upSeconds"].as_i64() >= Some(days)),
        "{status:#}"
    );
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

#[test]
fn who_reads_a_plan_by_program_is_told_that_nobody_leads() {
    let home = home("unled");
    done("sim load two-nodes-budget-one", &home);
    let warnings = |home: &Path| {
        let plan: Value = serde_json::from_str(&done("plan -o json", home)).unwrap();
        plan["warnings"].as_array().unwrap().clone()
    };
    done("sim run 1m", &home);
    assert!(warnings(&home).is_empty());
    // Whose clock is behind leads all the same: it is not its word that others go by.
    done("sim fault skew leader -30", &home);
    done("sim run 2m", &home);
    assert!(!warnings(&home).iter().any(|it| it.as_str().unwrap().contains("nobody leads")));
    done("sim fault end", &home);
    done("sim fault crash operator-0 for 1h", &home);
    done("sim run 2m", &home);
    let told = warnings(&home);
    assert!(told[0].as_str().unwrap().starts_with("nobody leads since"), "{told:?}");
}

/// What was told while time passed is what would have been told at its end.
#[test]
fn a_long_time_is_told_as_it_passes() {
    let home = home("long");
    let load = |world: &str| {
        done(&format!("sim load two-nodes-budget-one --sim {world}"), &home);
        let image = "amazon-eks-node-al2023-arm64-standard-1.33-v20260730";
        done(&format!("sim publish {image} --sim {world}"), &home);
    };
    load("whole");
    load("parts");
    let whole = done("sim run 30m --sim whole", &home);
    let parts: String = (0..30).map(|_| done("sim run 1m --sim parts", &home)).collect();
    let told = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|it| !it.starts_with("it is") && *it != "2026-08-01");
        lines.map(str::to_owned).collect()
    };
    assert_eq!(told(&whole), told(&parts));
    let end = |world: &str| {
        let lived = done(&format!("sim replay --short -o json --sim {world}"), &home);
        lived.lines().last().unwrap().to_owned()
    };
    assert_eq!(end("whole"), end("parts"));
    // Whoever cannot be told is told that it is done all the same.
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let output = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
            .args(["sim", "run", "5m", "--sim", "whole"])
            .current_dir(&home)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("could not write the answer") && said.contains("saved"), "{said}");
        assert!(done("sim list --sim whole", &home).contains("after 35m"));
    }
}

/// What does nothing is no act.
#[test]
fn what_was_not_locked_is_not_unlocked() {
    let home = home("unlock");
    done("sim load two-nodes-budget-one", &home);
    assert_eq!(done("unlock", &home), "it is not locked: there is nothing to release\n");
    assert_eq!(done("resume", &home), "it is not paused: there is nothing to resume\n");
    let listed: Value = serde_json::from_str(&done("sim list -o json", &home)).unwrap();
    assert_eq!(listed["loaded"]["acts"], serde_json::json!([]));
}

/// Two things are wrong at once: each says that it is an error.
#[test]
fn each_reason_why_a_scenario_cannot_begin_is_an_error() {
    let home = home("unlivable");
    let scenario = include_str!("../../../../docs/scenarios/two-nodes-budget-one.yaml");
    let odd = scenario.replacen("kind: NodePool", "kind: NodePol", 1);
    let odd = odd.replacen("kind: Deployment", "kind: Deploymnt", 1);
    let long = scenario.replacen("expireAfter: Never", "expireAfter: 9999999999h", 1);
    for (name, changed) in [("odd.yaml", odd), ("long.yaml", long)] {
        assert_ne!(changed, scenario);
        std::fs::write(home.join(name), changed).unwrap();
        let output = nodemolt(&format!("sim load {name}"), &home);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let whole = |it: &str| it.starts_with("error: ") || it.starts_with("hint: ");
        let framed = said.lines().any(|it| it.contains("-->"));
        assert!(framed || said.lines().all(whole), "{said}");
    }
}

/// Names of others do not move the cursor, paint the screen or begin a line.
#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let home = home("control");
    done("sim load two-nodes-budget-one --sim w", &home);
    let file = std::fs::read_to_string(home.join("w")).unwrap();
    let named = file.replacen("two-nodes-budget-one", "a\\u001b[31mred\\u0007\\nb", 1);
    assert_ne!(named, file);
    std::fs::write(home.join("w"), named).unwrap();
    for typed in ["sim list --color always --sim w", "status --color always --sim w"] {
        let told = done(typed, &home);
        let line = told.lines().find(|it| it.contains("red")).unwrap();
        assert!(line.contains("a\\u{1b}[31mred\\u{7}\\nb"), "{typed}: {told:?}");
    }
    let odd = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(["pause", "--sim", "w", "--reason", "red\x1b[31m"])
        .current_dir(&home)
        .output()
        .unwrap();
    let said = text(&odd.stderr);
    assert_eq!(odd.status.code(), Some(64));
    assert!(said.contains("its character 4") && !said.contains(['\x1b', '{']), "{said}");
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
