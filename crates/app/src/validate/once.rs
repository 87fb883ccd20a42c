//! Are these two findings one mistake?
//!
//! Where both know a rule, the API server says it of a whole list or object and the controller of the
//! member, or the other way round: one finding, in the server's words, at the closer place. When in doubt
//! they are two: a mistake told twice costs a line, one that is not told costs a run.

use nodemolt_api::problem::{Problem, Severity};

use super::{By, Said};

/// Fields that users fill with keys of their own.
const MAPS: [&str; 6] = [
    "spec.tags",
    "spec.kubelet.systemReserved",
    "spec.kubelet.kubeReserved",
    "spec.kubelet.evictionHard",
    "spec.kubelet.evictionSoft",
    "spec.kubelet.evictionSoftGracePeriod",
];

/// What the controller repeats goes into the server's findings, one into each.
pub(super) fn fold(said: &mut Vec<Said>) {
    let mut taken = vec![false; said.len()];
    let mut gone = vec![false; said.len()];
    for at in 0..said.len() {
        if !refuses(&said[at], By::Controller) {
            continue;
        }
        let twin = (0..said.len()).find(|it| {
            !taken[*it]
                && refuses(&said[*it], By::ApiServer)
                && same_mistake(&said[*it].problem, &said[at].problem)
        });
        let Some(twin) = twin else { continue };
        (taken[twin], gone[at]) = (true, true);
        let again = said[at].problem.clone();
        let problem = &mut said[twin].problem;
        if plain(&again.field).len() > plain(&problem.field).len() {
            (problem.line, problem.column) = (again.line, again.column);
        }
        problem.hint = problem.hint.take().or(again.hint);
    }
    let mut gone = gone.into_iter();
    said.retain(|_| !gone.next().unwrap_or(false));
}

fn refuses(said: &Said, by: By) -> bool {
    said.by == by && said.problem.severity == Severity::Error
}

fn same_mistake(server: &Problem, controller: &Problem) -> bool {
    let (whole, part) = (plain(&server.field), plain(&controller.field));
    if whole == part {
        // Only where they are written differently; else the server's is kept as it is.
        return server.field != controller.field;
    }
    if let Some(rest) = below(&whole, &part) {
        // The server tells of a member what the controller tells of its object.
        let missing = format!("`{rest}` is missing");
        let same_value = controller
            .message
            .split('`')
            .nth(1)
            .is_some_and(|it| !it.is_empty() && server.message.contains(&format!("\"{it}\"")));
        return controller.message == missing || (same_value && rest.split('.').count() <= 2);
    }
    let Some(rest) = below(&part, &whole) else { return false };
    if server.message.ends_with(&controller.message) {
        return true;
    }
    // Keys may hold dots, so an entry of a map may look like more than one step down.
    if MAPS.contains(&whole.as_str()) {
        let map = whole.rsplit('.').next().unwrap_or_default();
        return [map, map.trim_end_matches('s')].iter().any(|it| speaks_of(&server.message, it));
    }
    let steps: Vec<&str> =
        rest.split('.').filter(|it| !it.bytes().all(|it| it.is_ascii_digit())).collect();
    let direct = steps.len() == 1 || (whole.is_empty() && rest == "metadata.name");
    direct && steps.last().is_some_and(|it| speaks_of(&server.message, it))
}

/// The steps from one field down to another.
fn below<'f>(field: &'f str, above: &str) -> Option<&'f str> {
    if above.is_empty() {
        return Some(field).filter(|it| !it.is_empty());
    }
    field.strip_prefix(above)?.strip_prefix('.')
}

/// `a[0].b[x.y]` as `a.0.b.x.y`: the two write keys differently.
fn plain(field: &str) -> String {
    field.replace('[', ".").replace(']', "")
}

/// Whether the text has this word.
fn speaks_of(text: &str, word: &str) -> bool {
    !word.is_empty() && text.split(|it: char| !it.is_ascii_alphanumeric()).any(|it| it == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(field: &str, message: &str) -> Problem {
        Problem {
            severity: Severity::Error,
            file: String::new(),
            line: 1,
            column: 1,
            span: None,
            field: field.to_owned(),
            message: message.to_owned(),
            hint: None,
        }
    }

    #[test]
    fn one_mistake_is_told_from_two() {
        let exclusive = "'id' is mutually exclusive, cannot be set with other fields in a term";
        for (server, said, controller, told, one) in [
            ("spec.image", "Required value", "spec", "`image` is missing", true),
            ("spec", "Required value", "", "`spec` is missing", true),
            ("spec.image", "Required value", "spec", "`region` is missing", false),
            ("", "there is one ledger: name it `cluster`", "metadata.name", "is not it", true),
            ("", "there is one ledger: name it `cluster`", "spec.pause.since", "no date", false),
            ("spec", "`region` and `image.ref.region` differ", "spec.region", "differ", true),
            ("spec", "must specify exactly one of role and profile", "spec.userData", "no", false),
            (
                "spec.cpuOptions",
                "coreCount and x go together",
                "spec.cpuOptions.coreCount",
                "",
                true,
            ),
            ("spec.tags", "tag contains a key", "spec.tags[a.b/c]", "is AWS's", true),
            ("spec.a[0].key", "Invalid value: \"a b\": x", "spec.a[0]", "`a b` is no label", true),
            ("spec.a[0].key", "Invalid value: \"a b\": x", "spec.a[0]", "`c d` is no label", false),
            ("spec.a.m.n", "should match x", "spec.a[m.n]", "no percentage", true),
            ("spec.terms", exclusive, "spec.terms[0].id", "stands alone", true),
            ("spec.terms", exclusive, "spec.terms[1].owner", "nobody", false),
            ("spec.terms", "x", "spec.termsOfMine", "x", false),
        ] {
            let same = same_mistake(&problem(server, said), &problem(controller, told));
            assert_eq!(same, one, "{server}: {said} / {controller}: {told}");
        }
    }
}
