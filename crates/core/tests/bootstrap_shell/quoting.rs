//! A quoted value comes back as it was, whatever it holds.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use nodemolt_core::bootstrap::quote;
use proptest::prelude::*;

use crate::{Dice, fuzz, scratch};

const HOSTILE: [&str; 40] = [
    "'", "''", "\"", "\\", "\\'", "$", "$(", ")", "`", "${x}", ";", "&", "|", "<", ">", "\n", "\r",
    "\t", " ", "!", "!!", "#", "*", "?", "[", "]", "{", "}", "~", "-", "--", "=", "%", "\u{1}",
    "\u{7f}", "\u{2028}", "ä", "€", "\u{2019}", "a",
];

#[test]
fn a_shell_gives_back_what_was_quoted() {
    let mut dice = Dice(4);
    for _ in 0..fuzz::times() {
        check_shell(&mut dice);
    }
}

fn check_shell(dice: &mut Dice) {
    const STRINGS: usize = 120_000;
    let mut strings = Vec::with_capacity(STRINGS);
    for index in 0..STRINGS {
        strings.push(if index % 4 == 0 {
            let length = dice.below(24);
            (0..length)
                .map(|_| {
                    char::from_u32(u32::try_from(dice.below(0x2_ffff)).unwrap() + 1).unwrap_or('x')
                })
                .collect()
        } else {
            dice.text(&HOSTILE, 10)
        });
    }
    let mut script = String::new();
    for chunk in strings.chunks(500) {
        script.push_str("printf '%s\\0'");
        for text in chunk {
            write!(script, " {}", quote::shell(text).unwrap()).unwrap();
        }
        script.push('\n');
    }
    let file = scratch("quoting").join("words.sh");
    fs::write(&file, script).unwrap();
    let out = Command::new("bash").arg(&file).output().unwrap();
    assert!(
        out.status.success() && out.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&out.stderr)
    );
    let back: Vec<&[u8]> = out.stdout.split(|it| *it == 0).collect();
    assert_eq!(back.len(), STRINGS + 1);
    for (text, back) in strings.iter().zip(back) {
        assert_eq!(text.as_bytes(), back);
    }
}

/// As PowerShell's own tokenizer reads a single-quoted string; there is no PowerShell to ask here.
fn read_powershell(text: &str) -> Option<(String, &str)> {
    let quote = |it: char| matches!(it, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}');
    let mut chars = text.char_indices().peekable();
    chars.next().filter(|(_, it)| quote(*it))?;
    let mut read = String::new();
    while let Some((at, mut char)) = chars.next() {
        if quote(char) {
            match chars.peek().copied().filter(|(_, it)| quote(*it)) {
                None => return Some((read, &text[at + char.len_utf8()..])),
                Some((_, next)) => {
                    char = next;
                    chars.next();
                }
            }
        }
        read.push(char);
    }
    None
}

proptest! {
    #![proptest_config(fuzz::config(20_000))]

    #[test]
    fn powershell_gives_back_what_was_quoted(fragments in prop::collection::vec(prop::sample::select(&HOSTILE[..]), 0..12), other in ".{0,4}") {
        let text = fragments.concat() + &other;
        let quoted = quote::powershell(&text);
        if text.contains('\0') {
            prop_assert!(quoted.is_err());
        } else {
            let quoted = quoted.unwrap() + " -Next";
            prop_assert_eq!(read_powershell(&quoted), Some((text, " -Next")));
        }
    }
}
