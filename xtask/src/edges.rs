//! Does every crate use only what it may?
//!
//! The cut of the design, as a table. A crate that the table does not know is a finding: whoever
//! adds one decides what it may touch, here, in the same change.

use crate::{
    cargo::{Metadata, Package},
    check::Check,
};

/// Every crate of the design and the crates it may use, without the prefix `nodemolt-`.
const EDGES: [(&str, &[&str]); 11] = [
    ("fit", &[]),
    ("core", &["fit"]),
    ("api", &["core", "fit"]),
    ("engine", &["core", "fit"]),
    ("aws", &["engine"]),
    ("cluster", &["api", "engine", "core", "fit"]),
    ("sim", &["api", "engine", "cluster", "core", "fit"]),
    ("app", &["fit", "core", "api", "engine", "aws", "cluster", "sim"]),
    ("rig", &["sim"]),
    // Nothing but tests, which may reach everywhere.
    ("e2e", &[]),
    // Generates from what the crates know; touches no world.
    ("xtask", &["fit", "core", "api"]),
];

/// One check per crate. Only what ends up in a build counts: tests may reach further.
pub(crate) fn edges(metadata: &Metadata) -> Vec<Check> {
    let names: Vec<&str> = metadata.packages.iter().map(|it| it.name.as_str()).collect();
    metadata
        .packages
        .iter()
        .map(|package| Check { name: "edges", findings: wrong_edges(package, &names) })
        .collect()
}

fn wrong_edges(package: &Package, workspace: &[&str]) -> Vec<String> {
    let from = short(&package.name);
    let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == from) else {
        return vec![format!("crate `{from}` is not in the table of edges")];
    };
    package
        .dependencies
        .iter()
        .filter(|it| it.kind.as_deref() != Some("dev") && workspace.contains(&it.name.as_str()))
        .map(|it| short(&it.name))
        .filter(|to| !allowed.contains(to))
        .map(|to| format!("`{from}` must not use `{to}`"))
        .collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("nodemolt-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::Dependency;

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
            })
            .collect();
        Package { name: name.to_owned(), dependencies, targets: Vec::new() }
    }

    fn found(package: &Package) -> Vec<String> {
        wrong_edges(package, &["nodemolt-fit", "nodemolt-core", "nodemolt-api", "nodemolt-app"])
    }

    #[test]
    fn core_may_use_fit_and_nothing_above_it() {
        let core = package("nodemolt-core", &[("nodemolt-fit", None), ("nodemolt-api", None)]);
        assert_eq!(found(&core), ["`core` must not use `api`"]);
    }

    #[test]
    fn build_scripts_count_and_tests_do_not() {
        let uses = [("nodemolt-api", Some("build")), ("nodemolt-app", Some("dev"))];
        assert_eq!(found(&package("nodemolt-fit", &uses)), ["`fit` must not use `api`"]);
    }

    #[test]
    fn crates_from_outside_are_not_our_edges() {
        assert!(found(&package("nodemolt-fit", &[("serde", None)])).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_a_finding() {
        let found = found(&package("nodemolt-misc", &[]));
        assert_eq!(found, ["crate `misc` is not in the table of edges"]);
    }

    #[test]
    fn the_table_has_no_circle() {
        // Every crate stands below those it is used by: the table can be walked bottom up.
        let mut settled: Vec<&str> = Vec::new();
        while settled.len() < EDGES.len() {
            let next = EDGES.iter().find(|(name, uses)| {
                !settled.contains(name) && uses.iter().all(|it| settled.contains(it))
            });
            settled.push(next.expect("some crate uses only settled ones").0);
        }
    }
}
