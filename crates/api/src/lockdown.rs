//! What may a class not even ask for?
//!
//! Admission policies that the API server evaluates itself: no webhook that could be down. They judge
//! what stands in the class; what only resolving finds out is refused there. `docs/lockdown.md`
//! explains them.

/// Each policy with its binding: the file's name under `deploy/policies`, and its text.
pub const POLICIES: [(&str, &str); 2] = [
    ("allowed-images.yaml", include_str!("../../../deploy/policies/allowed-images.yaml")),
    ("metadata-options.yaml", include_str!("../../../deploy/policies/metadata-options.yaml")),
];
