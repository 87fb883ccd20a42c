//! Who checks objects of our own kinds?
//!
//! The validators of `api`, made from the very definitions that are installed. Making them takes a while, so
//! that is done once and not once per world.

use std::sync::LazyLock;

use nodemolt_api::admission::Validator;
use nodemolt_api::crd;

use crate::kinds;

static SHARED: LazyLock<Validators> = LazyLock::new(Validators::new);

#[derive(Debug)]
pub(super) struct Validators {
    /// In the order of [`kinds::ALL`]; `None` for kinds of Kubernetes itself.
    by_kind: Vec<Option<Validator>>,
}

impl Validators {
    pub(super) fn shared() -> &'static Self {
        &SHARED
    }

    pub(super) fn of(&self, kind: usize) -> Option<&Validator> {
        self.by_kind.get(kind)?.as_ref()
    }

    fn new() -> Self {
        let definitions = crd::all();
        let by_kind = kinds::ALL.iter().map(|kind| {
            let found =
                definitions.iter().find(|it| it.group == kind.group && it.kind == kind.kind)?;
            let made = Validator::new(&(found.definition)());
            let made = made.expect("the definitions that we ship can be read: their tests say so");
            // Nothing comes onto a shelf but through these.
            Some(made.trusting())
        });
        Self { by_kind: by_kind.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_we_define_is_served_under_its_own_name() {
        let shared = Validators::shared();
        for defined in crd::all() {
            let definition = (defined.definition)();
            let names = &definition.spec.names;
            let at = kinds::ALL.iter().position(|it| {
                it.group == defined.group && it.kind == defined.kind && it.plural == names.plural
            });
            let at = at.unwrap_or_else(|| panic!("{} is not served", defined.name));
            assert!(shared.of(at).is_some(), "{}", defined.name);
            let kind = kinds::ALL[at];
            assert_eq!(kind.namespaced, definition.spec.scope == "Namespaced", "{}", defined.name);
            let stored = definition.spec.versions.iter().find(|it| it.storage).unwrap();
            assert_eq!(stored.name, kind.version, "{}", defined.name);
            for version in definition.spec.versions.iter().filter(|it| it.served) {
                let known = version.name == kind.version
                    || kinds::IMAGE_VERSIONS.contains(&version.name.as_str());
                assert!(known, "{} in {}", defined.name, version.name);
            }
        }
    }
}
