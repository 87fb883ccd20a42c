//! Is every belief held by a test that exists?
//!
//! `docs/assumptions.md × sources → rows that name no test, and tests that are not there`
//!
//! The last cell of a row names tests as `path::name`, with the path from the root or from `crates/`, or
//! a case of a table as `path::"its name"`; where there is none it says "no test".

use super::Source;

const PAGE: &str = "docs/assumptions.md";
const NONE: &str = "no test";

pub(super) fn held_by_nothing(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|it| it.path == PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    let rows: Vec<(&str, &str)> = page.text.lines().filter_map(row).collect();
    if rows.is_empty() {
        return vec![format!("{PAGE} has no rows that begin with a number")];
    }
    let mut findings = Vec::new();
    for (number, held_by) in rows {
        let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && !held_by.contains(NONE) {
            findings.push(format!("{PAGE}, row {number}: names no test; write \"{NONE}\" if so"));
        }
        let missing = named.into_iter().filter(|it| !exists(sources, it));
        findings.extend(missing.map(|it| format!("{PAGE}, row {number}: there is no test `{it}`")));
    }
    findings
}

/// Number and last cell.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (number, _) = cells.split_once('|')?;
    let (_, last) = cells.rsplit_once('|')?;
    number.trim().parse::<u32>().ok()?;
    Some((number.trim(), last.trim()))
}

fn exists(sources: &[Source], test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else { return false };
    let in_crate = format!("crates/{path}");
    let Some(source) = sources.iter().find(|it| it.path == path || it.path == in_crate) else {
        return false;
    };
    if name.starts_with('"') && name.ends_with('"') && name.len() > 2 {
        return source.text.contains(name);
    }
    let begins = format!("fn {name}()");
    source.text.match_indices(&begins).any(|(at, _)| {
        // Attributes stand between the last empty line or brace and the function.
        let before = &source.text[..at];
        let from = before.rfind(['}', ';']).map_or(0, |it| it + 1);
        before[from..].contains("test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(cell: &str) -> Vec<String> {
        let page = format!("| # | belief | held by |\n|--:|---|---|\n| 7 | it is so | {cell} |\n");
        let test =
            "use x;\n\n#[test]\nfn it_is_so() {}\n\nfn not_a_test() {}\n// (\"a case\", 1)\n";
        held_by_nothing(&[source(PAGE, &page), source("crates/core/tests/a.rs", test)])
    }

    #[test]
    fn a_test_that_is_there_holds() {
        let none: Vec<String> = Vec::new();
        assert_eq!(found("`core/tests/a.rs::it_is_so`"), none);
        assert_eq!(found("`crates/core/tests/a.rs::it_is_so`, and so on"), none);
        assert_eq!(found("`core/tests/a.rs::\"a case\"`"), none);
        assert_eq!(found("no test"), none);
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        for cell in [
            "`core/tests/a.rs::it_was_so`",
            "`core/tests/a.rs::not_a_test`",
            "`core/tests/b.rs::it_is_so`",
            "`core/tests/a.rs::\"another case\"`",
            "`core/tests/a.rs`",
            "the lives",
        ] {
            assert_eq!(found(cell).len(), 1, "{cell}");
        }
    }
}
