//! Parts survive, and other readers find the same ones.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use mailparse::MailHeaderMap;
use nodemolt_core::bootstrap::mime::{self, Part};
use nodemolt_core::bootstrap::user_part;
use nodemolt_core::bootstrap::{Place, UserPart, render};
use nodemolt_core::fit::Family;
use proptest::prelude::*;
use serde_json::json;

use crate::{Dice, between, fuzz, scratch, settings};

/// What breaks readers: delimiters of all kinds, line ends, headers where none belong.
const FRAGMENTS: [&str; 26] = [
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "--",
    "--//",
    "--//--",
    "\n--//\n",
    "\n--//--\n",
    "--nodemolt-",
    "\n--nodemolt-000000000000000000000000\n",
    "#!/bin/bash",
    "echo 'x'",
    "MIME-Version: 1.0\n",
    "Content-Type: multipart/mixed; boundary=\"//\"\n\n",
    "Content-Type: text/x-shellscript\n",
    "$(id)",
    "]]>",
    ":",
    "=",
    "\"",
    "ä€",
    "\u{2028}",
    "END",
];

fn part() -> impl Strategy<Value = Part> {
    let name =
        prop::sample::select(&["Content-Type", "content-disposition", "X-Any", "Mime-Version"][..]);
    let value = prop::sample::select(
        &[
            "",
            " text/x-shellscript",
            "text/plain",
            " text/x-shellscript; charset=\"us-ascii\"",
            " attachment;\n filename=\"a b.sh\"",
            " x\r\n\ty",
            "  spaces  ",
            " \"un;closed",
        ][..],
    );
    let headers = prop::collection::vec((name, value), 0..4);
    let body = prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..14);
    (headers, body).prop_map(|(headers, body)| Part {
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: body.concat(),
    })
}

fn parts_of(text: &str) -> Vec<Part> {
    mime::read(text).unwrap().parts.into_iter().map(|it| it.part).collect()
}

fn boundary_of(text: &str) -> &str {
    text.split_once("boundary=\"").unwrap().1.split_once('"').unwrap().0
}

proptest! {
    #![proptest_config(fuzz::config(20_000))]

    #[test]
    fn parts_survive_byte_for_byte(parts in prop::collection::vec(part(), 1..4)) {
        let text = mime::compose(&parts);
        let boundary = boundary_of(&text);
        for part in &parts {
            prop_assert!(!part.body.contains(boundary), "it occurs in no part");
        }
        let read = parts_of(&text);
        prop_assert_eq!(&read, &parts);
        prop_assert_eq!(mime::compose(&read), text, "composing again changes nothing");
    }

    #[test]
    fn a_second_reader_finds_the_same_parts(parts in prop::collection::vec(part(), 1..4)) {
        let parts: Vec<Part> = parts.into_iter().filter(|it| !it.multipart()).collect();
        prop_assume!(!parts.is_empty());
        let text = mime::compose(&parts);
        let mail = mailparse::parse_mail(text.as_bytes()).unwrap();
        prop_assert_eq!(mail.headers.get_first_value("MIME-Version"), Some("1.0".to_owned()));
        prop_assert_eq!(mail.subparts.len(), parts.len());
        for (theirs, ours) in mail.subparts.iter().zip(&parts) {
            let mut head = String::new();
            for (name, value) in &ours.headers {
                writeln!(head, "{name}:{value}").unwrap();
            }
            let whole = format!("{head}\n{}", ours.body);
            prop_assert_eq!(theirs.raw_bytes, whole.as_bytes());
        }
    }

    #[test]
    fn no_text_stops_the_reader(text in any_text()) {
        for text in [text.clone(), format!("{HEAD}{text}")] {
            let lines = text.split('\n').count();
            if let Err(remark) = mime::read(&text) && let Place::UserPart { line, column } = remark.place {
                prop_assert!(line >= 1 && line <= lines && column >= 1);
            }
            let _ = user_part::read(&text);
        }
    }
}

const HEAD: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//";

fn any_text() -> impl Strategy<Value = String> {
    let fragments = prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..20);
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    (fragments, bytes)
        .prop_map(|(fragments, bytes)| fragments.concat() + &String::from_utf8_lossy(&bytes))
}

proptest! {
    #![proptest_config(fuzz::config(2_500))]

    #[test]
    fn no_text_stops_rendering(text in any_text(), placed in any::<bool>()) {
        for text in [text.clone(), format!("{HEAD}{text}")] {
            let settings = if placed { between() } else { settings() };
            let _ = render(Family::Al2, &settings, UserPart(&text));
            let _ = render(Family::Windows2022, &crate::settings(), UserPart(&text));
            let custom = render(Family::Custom, &crate::settings(), UserPart(&text)).unwrap();
            prop_assert_eq!(custom.text, text);
        }
    }
}

/// Whatever a person wrote as MIME: what we accept keeps its parts, beside ours, and rendering what was
/// rendered changes nothing.
#[test]
fn user_parts_stand_beside_ours_unchanged() {
    let mut dice = Dice(11);
    let mut rendered = 0;
    for index in 0..3_000 {
        let settings = if index % 2 == 0 { settings() } else { between() };
        let boundary = *dice.of(&["//", "==B==", "nodemolt-0", "a b"]);
        let mut text = format!(
            "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n"
        );
        for _ in 0..=dice.below(3) {
            let headers = *dice.of(&[
                "", "Content-Type: text/x-shellscript\n", "content-type: text/cloud-config\nX-Y: z\n",
                "Content-Type: text/x-shellscript\nContent-Disposition: attachment; filename=\"b.sh\"\n",
            ]);
            let body = dice.text(&FRAGMENTS, 9);
            writeln!(text, "--{boundary}\n{headers}\n{body}").unwrap();
        }
        writeln!(text, "--{boundary}--").unwrap();
        let Ok(theirs) = mime::read(&text) else { continue };
        let Ok(user_data) = render(Family::Al2, &settings, UserPart(&text)) else { continue };
        rendered += 1;
        let all = parts_of(&user_data.text);
        let first = usize::from(index % 2 == 1);
        assert_eq!(all.len(), theirs.parts.len() + 1 + first);
        for (found, part) in theirs.parts.iter().zip(&all[first..]) {
            assert_eq!(found.part, *part);
        }
        let again = render(Family::Al2, &settings, UserPart(&user_data.text)).unwrap();
        assert_eq!(again.text, user_data.text);
        assert_eq!(again.digest(), user_data.digest());
    }
    assert!(rendered > 1_000, "only {rendered} of them were rendered");
}

/// The same laws where there is one script: their lines come first and unchanged, ours last, and once.
#[test]
fn a_windows_script_holds_their_lines_and_then_ours() {
    let ours = render(Family::Windows2022, &settings(), UserPart("")).unwrap().text;
    let ours = ours.strip_prefix("<powershell>\n").unwrap();
    let mut dice = Dice(12);
    let mut rendered = 0;
    for index in 0..3_000 {
        let lines = dice.text(&FRAGMENTS, 12);
        let enclosed = format!("<powershell>\n{lines}</powershell>");
        let text = if index % 2 == 0 { &lines } else { &enclosed };
        let Ok(user_data) = render(Family::Windows2022, &settings(), UserPart(text)) else {
            continue;
        };
        rendered += 1;
        let theirs = if UserPart(&lines).text().is_some() { lines.as_str() } else { "" };
        let between = if theirs.is_empty() || theirs.ends_with('\n') { "" } else { "\n" };
        assert_eq!(user_data.text, format!("<powershell>\n{theirs}{between}{ours}"), "{text:?}");
        let again = render(Family::Windows2022, &settings(), UserPart(&user_data.text)).unwrap();
        assert_eq!(again.text, user_data.text, "merging again changes nothing");
    }
    assert!(rendered > 2_000, "only {rendered} of them were rendered");
}

/// And on AL2023, for parts that are no `NodeConfig`.
#[test]
fn parts_on_al2023_stand_before_ours_unchanged() {
    let mut dice = Dice(13);
    let mut rendered = 0;
    for _ in 0..2_000 {
        let mut text =
            "Content-Type: multipart/mixed; boundary=\"==B==\"\nMIME-Version: 1.0\n\n".to_owned();
        for _ in 0..=dice.below(3) {
            let headers = *dice.of(&[
                "",
                "Content-Type: text/x-shellscript\n",
                "content-type: text/cloud-config\nX-Y: z\n",
                "Content-Type: text/x-shellscript; charset\n",
            ]);
            writeln!(text, "--==B==\n{headers}\n{}", dice.text(&FRAGMENTS, 9)).unwrap();
        }
        writeln!(text, "--==B==--").unwrap();
        let Ok(theirs) = mime::read(&text) else { continue };
        let broken = text.contains("script; charset\n");
        let Ok(user_data) = render(Family::Al2023, &settings(), UserPart(&text)) else {
            assert!(broken, "refused: {text}");
            continue;
        };
        assert!(!broken, "nodeadm would drop all of it: {text}");
        rendered += 1;
        let all = parts_of(&user_data.text);
        assert_eq!(all.len(), theirs.parts.len() + 1);
        for (found, part) in theirs.parts.iter().zip(&all) {
            assert_eq!(found.part, *part);
        }
        let again = render(Family::Al2023, &settings(), UserPart(&user_data.text)).unwrap();
        assert_eq!(again.text, user_data.text, "merging again changes nothing");
    }
    assert!(rendered > 500, "only {rendered} of them were rendered");
}

/// Cloud-init reads with Python's `email`. One process, many documents.
#[test]
fn python_finds_the_same_parts() {
    let mut dice = Dice(23);
    let mut documents = Vec::new();
    for _ in 0..3_000 {
        let parts: Vec<Part> = (0..=dice.below(3))
            .map(|_| {
                let headers = (0..dice.below(3))
                    .map(|_| {
                        let value = *dice.of(&[
                            " text/x-shellscript",
                            "text/plain; x=y",
                            " a\n b",
                            " c\r\n\td ",
                        ]);
                        (
                            (*dice.of(&["Content-Type", "X-Y", "Content-Disposition"])).to_owned(),
                            value.to_owned(),
                        )
                    })
                    .collect();
                Part { headers, body: dice.text(&FRAGMENTS, 14) }
            })
            .collect();
        documents.push(json!({
            "text": mime::compose(&parts),
            "parts": parts.iter().map(|it| json!({"headers": it.headers, "body": it.body})).collect::<Vec<_>>(),
        }));
    }
    let file = scratch("python").join("documents.json");
    fs::write(&file, serde_json::to_vec(&documents).unwrap()).unwrap();
    let check = "
import email, json, sys
documents = json.load(open(sys.argv[1], encoding='utf-8'))
for document in documents:
    message = email.message_from_bytes(document['text'].encode())
    assert message.is_multipart() and not message.defects, document
    found = message.get_payload()
    assert len(found) == len(document['parts']), document
    for theirs, ours in zip(found, document['parts']):
        body = theirs.get_payload(decode=True).decode()
        assert body == ours['body'], (body, ours)
        headers = [[name, value.lstrip(' \\t').rstrip('\\r\\n')] for name, value in ours['headers']]
        assert [list(it) for it in theirs.items()] == headers, (theirs.items(), headers)
print(len(documents))
";
    let out = Command::new("python3").args(["-c", check]).arg(&file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "3000");
}
