//! `nodemolt images` as people see it: what was typed, what came out, how it ended.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use snapbox::{assert_data_eq, file};

/// Where the files that are named in the commands stand.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/images");

const EKS: &str = "owner=amazon,name=amazon-eks-node-*,include-deprecated";
const POINTER: &str = "parameter=/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";

#[derive(Debug)]
struct Ran {
    typed: String,
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// As it would stand in a terminal; the talk comes first there too.
    fn transcript(&self) -> String {
        format!("{}{}", self.told(), self.stdout)
    }

    fn told(&self) -> String {
        format!("$ {}\n[exit {}]\n{}", self.typed, self.code, self.stderr)
    }

    /// What was told, and the lines by which the data differ from what they were.
    fn since(&self, before: &Self) -> String {
        format!("{}{}", self.told(), changed_lines(&before.stdout, &self.stdout))
    }
}

fn run_in(folder: &str, typed: &str, input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(typed.split(' '))
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever fails before reading closes the pipe, and that is what some cases are about.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        typed: format!("nodemolt {typed}"),
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// From the folder of the examples.
fn example(typed: &str) -> String {
    let files = "--catalog catalog/images.json --catalog catalog/parameters.json";
    run_in(EXAMPLES, &typed.replace("CATALOG", files), "").transcript()
}

/// `images lock` over the fixtures, going on from a lock file that comes in on standard input.
fn lock(previous: Option<&Ran>, words: &str) -> Ran {
    match previous {
        None => run_in(FIXTURES, &format!("images lock {words}"), ""),
        Some(before) => {
            run_in(FIXTURES, &format!("images lock --previous - {words}"), &before.stdout)
        }
    }
}

fn list(lock: &Ran, words: &str) -> Ran {
    run_in(FIXTURES, &format!("images list --catalog - {words}"), &lock.stdout)
}

/// The lines that only one of the two has, by the longest common run of lines.
fn changed_lines(before: &str, after: &str) -> String {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let mut common = vec![vec![0usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i][j] = if before[i] == after[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < before.len() || j < after.len() {
        let same = i < before.len() && j < after.len() && before[i] == after[j];
        if same {
            (i, j) = (i + 1, j + 1);
        } else if j == after.len() || (i < before.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(text, "-{}", before[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "+{}", after[j]);
            j += 1;
        }
    }
    text
}

/// One image of our own, and then what EC2 says of Amazon's.
fn first() -> Ran {
    let own = lock(None, "--catalog own.json --seen 2026-11-09");
    lock(Some(&own), &format!("--catalog first.json --asked {EKS} --seen 2026-11-10"))
}

#[test]
fn images_are_listed_by_flavour() {
    let text =
        example("images list CATALOG --flavour al2023/x86_64 --kubernetes 1.35 --at 2026-11-15");
    assert_data_eq!(text, file!["goldens/images/list-flavour.txt"].raw());
}

#[test]
fn what_is_no_release_is_listed_with_its_name() {
    let text = example("images list CATALOG --flavour - --name *1.35* --at 2026-11-15");
    assert_data_eq!(text, file!["goldens/images/list-others.txt"].raw());
}

#[test]
fn a_wide_list_has_owner_source_and_processor() {
    let text = example(
        "images list CATALOG --name *v20261107 --kubernetes 1.35 --at 2026-11-15 -o wide --ascii",
    );
    assert_data_eq!(text, file!["goldens/images/list-wide.txt"].raw());
}

#[test]
fn programs_read_everything() {
    let text = example(
        "images list CATALOG --catalog catalog/history.json --flavour al2023/x86_64 --name *1.35-v20261107 --at 2026-11-15 -o json",
    );
    assert_data_eq!(text, file!["goldens/images/list-json.txt"].raw());
    let text = example("images list CATALOG --name *-encrypted --at 2026-11-15 -o yaml");
    assert_data_eq!(text, file!["goldens/images/list-yaml.txt"].raw());
    let text = example("images list CATALOG --flavour windows2025 --at 2026-11-15 -o name");
    assert_data_eq!(text, file!["goldens/images/list-name.txt"].raw());
}

/// Whatever others write into a name stays text, and every state has its word.
#[test]
fn strange_images_are_listed_too() {
    let list = "images list --catalog strange.json";
    let text = run_in(FIXTURES, &format!("{list} --ascii --no-headers"), "");
    // Without --at the ages would be those of today.
    let tomorrow = text.stdout.lines().find(|it| it.contains("tomorrow")).unwrap().to_owned();
    assert!(tomorrow.ends_with("+ available, ! from the future"), "{tomorrow}");
    let text = run_in(FIXTURES, &format!("{list} --at 2026-11-15"), "").transcript()
        + &run_in(FIXTURES, &format!("{list} --at 2026-11-15 --ascii --no-headers"), "")
            .transcript();
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    assert_data_eq!(text, file!["goldens/images/list-strange.txt"].raw());
    let get = "images get ami-00000014 ami-00000019 ami-00000021 --catalog strange.json";
    let text = run_in(FIXTURES, &format!("{get} --at 2026-11-15"), "").transcript();
    assert_data_eq!(text, file!["goldens/images/get-strange.txt"].raw());
}

#[test]
fn colours_only_repeat_what_words_say() {
    let list = "images list --catalog strange.json --at 2026-11-15";
    let painted = run_in(FIXTURES, &format!("{list} --color always"), "").stdout;
    let plain = run_in(FIXTURES, list, "").stdout;
    assert!(painted.contains('\u{1b}'));
    let mut bare = String::new();
    let mut in_escape = false;
    for character in painted.chars() {
        match character {
            '\u{1b}' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            other => bare.push(other),
        }
    }
    assert_eq!(bare, plain);
}

#[test]
fn a_flavour_that_nobody_publishes_is_refused_with_the_nearest() {
    let text = example("images list CATALOG --flavour al2024")
        + &example("images list CATALOG --flavour al2023/amd64")
        + &example("images list CATALOG --name nothing-like-this")
        + &run_in(EXAMPLES, "images list", "").transcript();
    assert_data_eq!(text, file!["goldens/images/list-nothing.txt"].raw());
}

#[test]
fn one_image_is_shown_with_all_that_is_known() {
    let text = example(
        "images get ami-081ff48028515f6db ami-0b32fb1ee116c2d70 CATALOG --catalog catalog/history.json --at 2026-11-15",
    );
    assert_data_eq!(text, file!["goldens/images/get.txt"].raw());
}

#[test]
fn an_unknown_image_is_told_with_the_nearest() {
    let text = example("images get ami-081ff48028515f6da CATALOG --at 2026-11-15")
        + &example("images get ami-081ff48028515f6db CATALOG --at 2026-11-01")
        + &example("images get ami-0123456789abcdef0 CATALOG --at 2026-11-15")
        + &example("images get ami-123 CATALOG");
    assert_data_eq!(text, file!["goldens/images/get-unknown.txt"].raw());
}

#[test]
fn the_first_answer_is_locked() {
    assert_data_eq!(first().transcript(), file!["goldens/images/lock-first.txt"].raw());
}

#[test]
fn an_image_that_appears_later_was_first_seen_then() {
    let first = first();
    let words = format!("--catalog second.json --asked {EKS} --seen 2026-11-13");
    let second = lock(Some(&first), &words);
    let shown = list(&second, "--name *v20261112 -o wide --at 2026-11-15");
    let text = second.since(&first) + &shown.transcript();
    assert_data_eq!(text, file!["goldens/images/lock-appears.txt"].raw());
}

#[test]
fn a_throttled_question_shrinks_nothing() {
    let first = first();
    let throttled =
        lock(Some(&first), &format!("--asked {EKS} --outcome throttled --seen 2026-11-13"));
    let shown = list(&throttled, "--at 2026-11-15");
    let text = throttled.since(&first) + &shown.transcript();
    assert_data_eq!(text, file!["goldens/images/lock-throttled.txt"].raw());
}

/// The own image stays, because nobody asked for it; the old one is gone, and not withdrawn.
#[test]
fn a_complete_answer_says_what_is_not_there_any_more() {
    let first = first();
    let fewer =
        lock(Some(&first), &format!("--catalog fewer.json --asked {EKS} --seen 2026-11-13"));
    let text = fewer.since(&first) + &list(&fewer, "--at 2026-11-15").transcript();
    assert_data_eq!(text, file!["goldens/images/lock-vanished.txt"].raw());

    // It comes back: unsharing is taken back, and when it was first seen is remembered.
    let back =
        lock(Some(&fewer), &format!("--catalog second.json --asked {EKS} --seen 2026-11-14"));
    assert_data_eq!(back.since(&fewer), file!["goldens/images/lock-returned.txt"].raw());
}

/// Our own account would see it, were it only disabled.
#[test]
fn our_own_image_that_is_not_there_is_deregistered() {
    let asked = "--asked owner=self,name=golden-*,include-disabled,include-deprecated --account 111122223333";
    let first = lock(None, &format!("--catalog own.json {asked} --seen 2026-11-10"));
    let gone = lock(Some(&first), &format!("--catalog nothing.json {asked} --seen 2026-11-13"));
    let text = gone.since(&first) + &list(&gone, "--at 2026-11-15").transcript();
    assert_data_eq!(text, file!["goldens/images/lock-gone.txt"].raw());
}

#[test]
fn where_two_files_disagree_the_later_one_stands() {
    let both = lock(None, "--catalog own.json --catalog own-differs.json --seen 2026-11-10");
    assert_data_eq!(both.told(), file!["goldens/images/lock-disagree.txt"].raw());
    assert!(both.stdout.contains("\"State\": \"disabled\""), "{}", both.stdout);
}

#[test]
fn a_pointer_that_moves_back_withdraws() {
    let first = lock(None, "--catalog second.json --catalog pointer.json --seen 2026-11-13");
    let words = format!("--catalog pointer-back.json --asked {POINTER} --seen 2026-11-15");
    let second = lock(Some(&first), &words);
    let text = second.since(&first) + &list(&second, "--at 2026-11-15").transcript();
    assert_data_eq!(text, file!["goldens/images/lock-moved-back.txt"].raw());
}

#[test]
fn a_parameter_that_is_not_there_is_written_down() {
    let first = lock(None, "--catalog second.json --catalog pointer.json --seen 2026-11-13");
    let words = format!("--catalog pointer-gone.json --asked {POINTER} --seen 2026-11-15");
    let told = lock(Some(&first), &words);
    let untold = lock(Some(&first), "--catalog pointer-gone.json --seen 2026-11-15");
    let text = told.since(&first) + &untold.since(&first);
    assert_data_eq!(text, file!["goldens/images/lock-parameter-gone.txt"].raw());
}

#[test]
fn a_page_with_a_token_is_incomplete() {
    let first = first();
    let words = format!("--catalog page.json --asked {EKS} --seen 2026-11-13");
    let page = lock(Some(&first), &words);
    let all = lock(Some(&first), &format!("{words} --catalog first.json --outcome complete"));
    let text = page.since(&first) + &all.since(&first);
    assert_data_eq!(text, file!["goldens/images/lock-next-token.txt"].raw());
}

#[test]
fn an_older_answer_is_merged_by_its_time() {
    let first = first();
    let words = format!("--catalog earlier.json --asked {EKS} --seen 2026-10-28");
    let text = lock(Some(&first), &words).since(&first);
    assert_data_eq!(text, file!["goldens/images/lock-earlier.txt"].raw());
}

#[test]
fn what_nobody_asked_for_is_added_and_told() {
    let files = "--catalog first.json --catalog own.json --catalog pointer.json";
    let text = lock(None, &format!("{files} --asked {EKS} --seen 2026-11-13"));
    assert_data_eq!(text.told(), file!["goldens/images/lock-foreign.txt"].raw());
    assert!(text.stdout.contains("\"seenBy\": [\n        \"untold\"\n      ]"), "{}", text.stdout);
}

#[test]
fn the_order_of_files_leaves_no_trace() {
    let one = lock(
        None,
        "--catalog first.json --catalog pointer.json --catalog second.json --catalog pointer-back.json --seen 2026-11-13",
    );
    let other = lock(
        None,
        "--catalog pointer-back.json --catalog second.json --catalog pointer.json --catalog first.json --seen 2026-11-13",
    );
    assert_eq!(one.stdout, other.stdout);
}

#[test]
fn lock_files_are_joined_and_come_out_as_they_are() {
    let first = first();
    let joined = run_in(FIXTURES, "images lock --catalog - --seen 2026-11-13", &first.stdout);
    assert_eq!(joined.stdout, first.stdout);
}

#[test]
fn what_cannot_be_locked_writes_nothing() {
    let cases = [
        ("images lock", ""),
        ("images lock --previous - --catalog first.json", "garbage"),
        ("images lock --previous - --catalog first.json", ""),
        ("images lock --previous - --catalog first.json", r#"{"Images":[]}"#),
        ("images lock --previous missing.lock --catalog first.json", ""),
        ("images lock --outcome throttled", ""),
        ("images lock --asked owner=self,name=golden-* --catalog first.json", ""),
        ("images lock --asked owner=amazon --catalog pointer.json", ""),
        ("images lock --asked owner=amazon --outcome complete", ""),
        ("images lock --asked owner=amazon,parameter=/a --catalog first.json", ""),
        ("images lock --asked owner=amazon --outcome lost", ""),
    ];
    let mut text = String::new();
    for (typed, input) in cases {
        let ran = run_in(FIXTURES, typed, input);
        assert_eq!(ran.stdout, "", "{typed}");
        text.push_str(&ran.transcript());
    }
    assert_data_eq!(text, file!["goldens/images/lock-refused.txt"].raw());
}
