//! What does a PowerShell script leave open, or close that never was?
//!
//! PowerShell reads a script whole before it runs the first line, so a quote or a brace that is not closed
//! takes in what stands behind it, ours. Enough of its lexer to know what is text and what is not: comments,
//! the four kinds of quotes (typographic ones count), here-strings, `$( )` in text, backticks.

/// Something that does not close where it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unbalanced {
    /// Where it stands, in bytes.
    pub(super) at: usize,
    /// As written: `{`, `"`, `@'`, `<#`; or a closing one without its opening.
    pub(super) sign: &'static str,
    pub(super) opens: bool,
}

/// The first of each kind of trouble: what is still open at the end, innermost first; or what closes too
/// much.
pub(super) fn unbalanced(script: &str) -> Vec<Unbalanced> {
    let mut lexer = Lexer { script, at: 0, open: Vec::new() };
    if let Err(found) = lexer.run() {
        return vec![found];
    }
    let opened = lexer.open.iter().rev();
    opened.map(|(sign, at)| Unbalanced { at: *at, sign, opens: true }).collect()
}

const SINGLE_QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];
const DOUBLE_QUOTES: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];

struct Lexer<'a> {
    script: &'a str,
    at: usize,
    /// What is open, and where. A `"` here is text within which `$(` opened something again.
    open: Vec<(&'static str, usize)>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.script[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.script.len());
    }

    /// Past the first `end`, or to the end of all.
    fn skip_past(&mut self, end: &str) -> bool {
        let found = self.rest().find(end);
        self.skip(found.map_or(usize::MAX / 2, |it| it + end.len()));
        found.is_some()
    }

    fn run(&mut self) -> Result<(), Unbalanced> {
        let mut in_word = false;
        while let Some(char) = self.rest().chars().next() {
            let at = self.at;
            self.skip(char.len_utf8());
            let begins_word = !in_word;
            in_word = !(char.is_whitespace() || "(){}[];,|&=\"'".contains(char));
            match char {
                '`' => {
                    let next = self.rest().chars().next().map_or(0, char::len_utf8);
                    self.skip(next);
                }
                '<' if self.rest().starts_with('#') => {
                    self.skip(1);
                    if !self.skip_past("#>") {
                        self.open.push(("<#", at));
                    }
                    in_word = false;
                }
                '#' if begins_word => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.skip(end);
                }
                '@' if begins_word && self.here_string(at) => in_word = false,
                it if SINGLE_QUOTES.contains(&it) => self.single(at),
                it if DOUBLE_QUOTES.contains(&it) => self.double(at),
                '{' => self.open.push(("{", at)),
                '(' => self.open.push(("(", at)),
                // Elsewhere a bracket may be a letter of a word.
                '[' if self.indexes(at) => self.open.push(("[", at)),
                '}' | ')' => self.close(char, at)?,
                ']' if self.open.last().is_some_and(|(it, _)| *it == "[") => {
                    self.open.pop();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a bracket stands directly behind what can be indexed: `$a[`, `)[`, `][`.
    fn indexes(&self, at: usize) -> bool {
        let before = &self.script[..at];
        let word = before.rfind(|it: char| !(it.is_alphanumeric() || "_:.".contains(it)));
        before.ends_with([')', ']', '}']) || word.is_some_and(|it| before[it..].starts_with('$'))
    }

    fn close(&mut self, char: char, at: usize) -> Result<(), Unbalanced> {
        let (closing, opening) = if char == '}' { ("}", "{") } else { (")", "(") };
        match self.open.pop() {
            Some((it, _)) if it == opening => {}
            Some((sign, at)) => return Err(Unbalanced { at, sign, opens: true }),
            None => return Err(Unbalanced { at, sign: closing, opens: false }),
        }
        // Back in the text that `$(` interrupted.
        if closing == ")" && self.open.last().is_some_and(|(it, _)| *it == "\"") {
            let (_, began) = self.open.pop().unwrap_or(("\"", at));
            self.double(began);
        }
        if closing == ")" && self.open.last().is_some_and(|(it, _)| *it == "@\"") {
            let (_, began) = self.open.pop().unwrap_or(("@\"", at));
            self.here_text(began);
        }
        Ok(())
    }

    /// `''` is a quote within.
    fn single(&mut self, began: usize) {
        while let Some(found) = self.rest().find(SINGLE_QUOTES) {
            self.skip(found);
            let quote = self.rest().chars().next().map_or(1, char::len_utf8);
            self.skip(quote);
            if !self.rest().starts_with(SINGLE_QUOTES) {
                return;
            }
            let quote = self.rest().chars().next().map_or(1, char::len_utf8);
            self.skip(quote);
        }
        self.at = self.script.len();
        self.open.push(("'", began));
    }

    /// Until it closes, or `$(` opens code in it.
    fn double(&mut self, began: usize) {
        while let Some(char) = self.rest().chars().next() {
            let here = self.at;
            self.skip(char.len_utf8());
            match char {
                '`' => {
                    let next = self.rest().chars().next().map_or(0, char::len_utf8);
                    self.skip(next);
                }
                '$' if self.rest().starts_with('(') => {
                    self.skip(1);
                    self.open.push(("\"", began));
                    self.open.push(("(", here));
                    return;
                }
                it if DOUBLE_QUOTES.contains(&it) => {
                    if !self.rest().starts_with(DOUBLE_QUOTES) {
                        return;
                    }
                    let quote = self.rest().chars().next().map_or(1, char::len_utf8);
                    self.skip(quote);
                }
                _ => {}
            }
        }
        self.open.push(("\"", began));
    }

    /// `@'` or `@"` at the end of a line, until its mirror at the beginning of one.
    fn here_string(&mut self, began: usize) -> bool {
        let line = self.rest().lines().next().unwrap_or_default();
        let mut chars = line.chars();
        let Some(quote) = chars.next() else { return false };
        if !chars.as_str().trim().is_empty() || !self.rest()[line.len()..].contains('\n') {
            return false;
        }
        let length = line.len();
        if SINGLE_QUOTES.contains(&quote) {
            self.skip(length);
            if !self.skip_past("\n'@") {
                self.open.push(("@'", began));
            }
            return true;
        }
        if DOUBLE_QUOTES.contains(&quote) {
            self.skip(length);
            self.here_text(began);
            return true;
        }
        false
    }

    fn here_text(&mut self, began: usize) {
        loop {
            let end = self.rest().find("\n\"@");
            let code = self.rest().find("$(");
            match (end, code) {
                (Some(end), code) if code.is_none_or(|it| it > end) => {
                    self.skip(end + 3);
                    return;
                }
                (_, Some(code)) => {
                    let here = self.at + code;
                    self.skip(code + 2);
                    if self.script[..here].ends_with('`') {
                        continue;
                    }
                    self.open.push(("@\"", began));
                    self.open.push(("(", here));
                    return;
                }
                (_, None) => {
                    self.at = self.script.len();
                    self.open.push(("@\"", began));
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closes_is_left_alone() {
        for script in [
            "",
            "Write-Host 'a {b'\n",
            "Write-Host \"a {b `\" (\"",
            "if ($a) { Write-Host \"$(Get-Date -Format \"yy(\") }\" }",
            "$x = @'\nit's { open\n'@\n",
            "$x = @\"\n\"quoted\" $(if ($true) { 'x' }) {\n\"@\n",
            "$x = @\"\r\na\r\n\"@\r\n",
            "# don't {\nWrite-Host a#b\n<# it's\n{ #>\n",
            "$h = @{ a = 1; b = @(1, 2) }\n",
            "[string]$x = $h['a'][0]\n",
            "Write-Host `{ `\" `'\n",
            "'it''s' + \"say \"\"x\"\"\"",
            "'a\u{2019} | % { $_ }",
            "Get-Item [a",
            "echo a]b",
            "$a -replace '[\"{]', \"'\"",
        ] {
            assert_eq!(unbalanced(script), [], "{script:?}");
        }
    }

    #[test]
    fn what_takes_the_rest_in_is_found_where_it_opens() {
        for (script, at, sign) in [
            ("Write-Host 'a\n", 11, "'"),
            ("Write-Host \"a\n", 11, "\""),
            ("Write-Host don't", 14, "'"),
            ("if ($a) {\n", 8, "{"),
            ("Write-Host (1 + 2", 11, "("),
            ("a\n<# b", 2, "<#"),
            ("$x = @'\na '@\n", 5, "@'"),
            ("$x = @\"\na\n", 5, "@\""),
            ("\"a $(Get-Date\"", 13, "\""),
            ("$a[0", 2, "["),
            ("if ($a { }\n", 3, "("),
        ] {
            let found = unbalanced(script);
            let first = found.first().map(|it| (it.at, it.sign, it.opens));
            assert_eq!(first, Some((at, sign, true)), "{script:?}: {found:?}");
        }
        let stray = Unbalanced { at: 4, sign: "}", opens: false };
        assert_eq!(unbalanced("a {}}"), [stray]);
    }
}
