//! Whom does a term about other pods mean?

use nodemolt_fit::{
    pod::{Namespace, Pod, PodTerm},
    selector::{Labels, Selector},
};

/// The selector of a term, with what the pod's own labels add to it.
pub fn meant(term: &PodTerm, own: &Labels) -> Selector {
    term.selector.with_own(&term.match_label_keys, &term.mismatch_label_keys, own)
}

/// Whether a term means pods of that namespace.
pub fn reaches(term: &PodTerm, own: &Namespace, theirs: &Namespace) -> bool {
    let named = term.namespaces.iter().any(|it| **it == *theirs.name);
    match &term.namespace_selector {
        None if term.namespaces.is_empty() => own.name == theirs.name,
        None => named,
        Some(selector) => named || selector.selects(&theirs.labels),
    }
}

/// Whether all terms mean this one.
pub(super) fn all_mean(terms: &[&PodTerm], of: &Pod, it: &Pod) -> bool {
    terms.iter().all(|term| {
        reaches(term, &of.namespace, &it.namespace)
            && meant(term, &of.demand.labels).selects(&it.demand.labels)
    })
}
