//! Cloud-init's own reader, from Debian, finds the parts that we find, and runs ours first and last.
//!
//! `cargo verify` unpacks it; by hand, `cargo xtask tools` does. Without it these tests fail: a reader
//! that was not asked has accepted nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodemolt_core::bootstrap::al2::{BOOTSTRAP_FIRST, BOOTSTRAP_LAST, KUBELET_LAST};
use nodemolt_core::bootstrap::mime::{self, Found};
use nodemolt_core::bootstrap::user_part::{self, Kind};
use nodemolt_core::bootstrap::{Placement, Settings, UserPart, render};
use nodemolt_core::fit::Family;
use serde::Deserialize;

use crate::{Dice, between, goldens, scratch, settings};

/// What cloud-init made of one document.
#[derive(Debug, Deserialize)]
struct Seen {
    parts: Vec<Part>,
    /// In the order in which it would run them.
    scripts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Part {
    r#type: String,
    name: String,
    /// One character for each byte.
    body: String,
}

fn cloud_init(texts: &[String], called: &str) -> Vec<Seen> {
    let modules = modules();
    assert!(
        modules.join("cloudinit/user_data.py").is_file(),
        "cloud-init's own reader is not in {}, so nothing was shown; `cargo xtask tools` fetches it \
         from Debian",
        modules.display()
    );
    let folder = scratch(called);
    let file = folder.join("texts.json");
    fs::write(&file, serde_json::to_vec(texts).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bootstrap_shell/cloud_init.py");
    let out = Command::new("python3")
        .args([&script, &file, &folder])
        .env("PYTHONPATH", &modules)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let seen: Vec<Seen> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(seen.len(), texts.len());
    seen
}

/// Where `xtask/src/tools.rs` unpacks it.
fn modules() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    caches.unwrap_or_default().join("nodemolt/cloud-init/usr/lib/python3/dist-packages")
}

/// What we say of a document: its parts at every depth, as cloud-init counts and types them.
fn expected(text: &str) -> Vec<Part> {
    let document = mime::read(text).unwrap();
    let leaves = document.parts.iter().flat_map(|it| user_part::leaves(it).unwrap());
    (1..)
        .zip(leaves)
        .map(|(number, Found { part, .. })| {
            let kind = Kind::of_part(&part);
            let typed = if kind == Kind::Plain {
                part.content_type()
            } else {
                kind.content_type().to_owned()
            };
            Part {
                r#type: typed,
                name: part
                    .filename()
                    .filter(|it| !it.is_empty())
                    .unwrap_or(format!("part-{number:03}")),
                body: user_part::decoded(&part).unwrap().into_iter().map(char::from).collect(),
            }
        })
        .collect()
}

/// Same parts, same types, same names, same bytes; and our scripts run where they must.
fn check(texts: &[String], called: &str) {
    for (text, seen) in texts.iter().zip(cloud_init(texts, called)) {
        assert_eq!(seen.parts, expected(text), "{text}");
        let position = |name: &str| seen.scripts.iter().position(|it| it == name);
        let last = seen.scripts.len().wrapping_sub(1);
        for name in [BOOTSTRAP_LAST, KUBELET_LAST] {
            assert!(position(name).is_none_or(|it| it == last), "{:?}\n{text}", seen.scripts);
        }
        assert!(position(BOOTSTRAP_FIRST).is_none_or(|it| it == 0), "{:?}\n{text}", seen.scripts);
        assert_eq!(position(BOOTSTRAP_FIRST).is_some(), position(KUBELET_LAST).is_some());
    }
}

#[test]
fn cloud_init_reads_every_golden() {
    let mut texts: Vec<String> = goldens::texts();
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = [core.join("tests/bootstrap"), core.join("../app/tests/goldens/userdata")];
    for case in cases.iter().flat_map(|it| fs::read_dir(it).unwrap()) {
        let case = case.unwrap().path();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("custom-") {
            continue;
        }
        // Of AL2023, as rendered; and of the command line, as printed.
        if name.starts_with("al2023-") {
            texts.extend(fs::read_to_string(case.join("out.txt")));
        }
        let shown = fs::read_to_string(case.join("expected.txt")).unwrap_or_default();
        for printed in shown.split("$ nodemolt userdata render ").skip(1) {
            let printed = printed.split_once('\n').unwrap().1;
            texts.extend(printed.split("── ").next().map(str::to_owned));
        }
    }
    texts.retain(|it| mime::looks_like_mime(it));
    assert!(texts.len() >= 25, "only {} goldens are MIME", texts.len());
    check(&texts, "cloud-init-goldens");
}

#[test]
fn cloud_init_reads_whatever_is_rendered() {
    let mut dice = Dice(31);
    let mut texts = Vec::new();
    while texts.len() < 1_000 {
        let (family, settings) = match dice.below(3) {
            0 => (Family::Al2, settings()),
            1 => (Family::Al2, between()),
            _ => (Family::Al2023, Settings { placement: Placement::BeforeBootstrap, ..settings() }),
        };
        let user = if dice.below(4) == 0 { alone(&mut dice) } else { mime_text(&mut dice) };
        if let Ok(user_data) = render(family, &settings, UserPart(&user)) {
            texts.push(user_data.text);
        }
    }
    check(&texts, "cloud-init-random");
}

/// What bodies are made of. Beyond ASCII cloud-init garbles what is sent as text, and we say so.
const FRAGMENTS: [&str; 18] = [
    "\n",
    "\n",
    "\r\n",
    " ",
    "\t",
    "--",
    "--//",
    "--nodemolt-",
    "#!/bin/bash\n",
    "#cloud-config\n",
    "echo 'x'",
    "MIME-Version: 1.0\n",
    "Content-Type: text/x-shellscript\n",
    "$(id)",
    "]]>",
    "=3D",
    "\"",
    "END\n",
];

fn alone(dice: &mut Dice) -> String {
    let begin = *dice.of(&[
        "#!/bin/sh\n",
        "#cloud-config\n",
        "#cloud-boothook\n",
        "echo\n",
        "#!/bin/sh\n# ä€\n",
    ]);
    format!("{begin}{}", dice.text(&FRAGMENTS, 8))
}

fn mime_text(dice: &mut Dice) -> String {
    let boundary = *dice.of(&["//", "==B==", "nodemolt-0", "a b"]);
    let mut text =
        format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n");
    for _ in 0..=dice.below(4) {
        let kind = *dice.of(&[
            "",
            "Content-Type: text/plain\n",
            "content-type: text/cloud-config; charset=\"us-ascii\"\nX-Y: z\n",
            "Content-Type: application/octet-stream\n",
            "Content-Type: text/x-shellscript\n",
            "Content-Type: text/x-shellscript\n",
            "Content-Type: text/x-shellscript;\n name=\"c.sh\"\n",
        ]);
        let name = *dice.of(&[
            "",
            "",
            "Content-Disposition: attachment; filename=\"b.sh\"\n",
            "Content-Disposition: attachment;\n\tfilename=a/b.sh\n",
            "content-disposition: inline; filename=\"a \\\"b\\\" (1).sh\"\n",
        ]);
        // Newer readers than AL2's look into a script for what it begins with.
        let begin = if kind.contains("shellscript") { "#!/bin/sh\n" } else { "" };
        let body = dice.text(&FRAGMENTS, 9);
        write!(text, "--{boundary}\n{kind}{name}\n{begin}{body}\n").unwrap();
    }
    writeln!(text, "--{boundary}--").unwrap();
    text
}
