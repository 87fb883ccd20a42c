//! Would the admission policies let this class through?
//!
//! `class × ImagePolicies of the same run → findings`, in the words of deploy/policies
//!
//! As docs/lockdown.md has it: owners and ids are compared as they are written, and what only resolving
//! can know passes. Whoever gives no `ImagePolicy` has none that could refuse.

use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::{Located, Object};
use nodemolt_api::imagepolicy::ImagePolicy;
use nodemolt_api::problem::Finding;
use nodemolt_core::policy::Rule;

/// The policies that could be read, each with what it means.
pub(super) struct Fences<'o> {
    policies: Vec<(&'o ImagePolicy, Rule)>,
}

impl<'o> Fences<'o> {
    pub(super) fn of(objects: &'o [Located<Object>]) -> Self {
        let policies = objects.iter().filter_map(|it| match &it.value {
            Object::Policy(policy) => Some((policy, Rule::try_from(policy).ok()?)),
            Object::Class(_)
            | Object::Pool(_)
            | Object::Claim(_)
            | Object::Quarantine(_)
            | Object::Budget(_)
            | Object::Replacement(_)
            | Object::Ledger(_)
            | Object::Image(_) => None,
        });
        Self { policies: policies.collect() }
    }

    /// What is said of a class that is created, or that was another one before.
    pub(super) fn judge(&self, class: &EC2NodeClass, old: Option<&EC2NodeClass>) -> Vec<Finding> {
        let mut found = metadata(class, old);
        let unchanged = |old: &EC2NodeClass| {
            old.spec.terms() == class.spec.terms() && old.metadata.labels == class.metadata.labels
        };
        if old.is_some_and(unchanged) {
            return found;
        }
        for (policy, rule) in &self.policies {
            if rule.classes.matches(&class.metadata.labels) {
                found.extend(images(class, policy));
            }
        }
        found
    }
}

fn images(class: &EC2NodeClass, policy: &ImagePolicy) -> Vec<Finding> {
    const ASK: &str = "ask whoever keeps the policy";
    let mut found = Vec::new();
    let name = &policy.metadata.name;
    for (at, term) in class.spec.terms().iter().enumerate() {
        let field = |member: &str| format!("spec.amiSelectorTerms[{at}].{member}");
        if let (Some(owner), Some(allowed)) = (&term.owner, &policy.spec.owners)
            && !allowed.contains(owner)
        {
            let (whose, instead) = match allowed.join(", ") {
                none if none.is_empty() => ("nobody".to_owned(), ""),
                some => (some, "write one of those, as it is written there, or "),
            };
            let message =
                format!("owner {owner} is not allowed by ImagePolicy {name}, which allows {whose}");
            let hint = format!("{instead}{ASK}");
            found.push(Finding::error(field("owner"), message).hint(hint));
        }
        // With patterns of names, an id may be of an image with an allowed name: that is found out later.
        if let (Some(id), Some(allowed)) = (&term.id, &policy.spec.allowed_images)
            && allowed.names.is_empty()
            && !allowed.ids.contains(id)
        {
            let message = format!("image {id} is not allowed by ImagePolicy {name}");
            let hint = format!("write one of its allowedImages, or {ASK}");
            found.push(Finding::error(field("id"), message).hint(hint));
        }
    }
    found
}

/// Whether the policy is installed nobody knows here, and much that exists says two hops: told, not
/// refused.
fn metadata(class: &EC2NodeClass, old: Option<&EC2NodeClass>) -> Vec<Finding> {
    fn options(class: &EC2NodeClass) -> (&str, i64) {
        let options = class.spec.metadata_options.as_ref();
        let tokens = options.and_then(|it| it.http_tokens.as_deref()).unwrap_or("required");
        (tokens, options.and_then(|it| it.http_put_response_hop_limit).unwrap_or(1))
    }
    let (tokens, hops) = options(class);
    let (old_tokens, old_hops) = old.map_or(("required", 1), options);
    let mut found = Vec::new();
    if tokens != "required" && tokens != old_tokens {
        let message = "`optional` lets anything on the node that can send a request take the node's \
                       credentials; metadata-options.nodemolt.dev refuses it where it is installed";
        let finding = Finding::warning("spec.metadataOptions.httpTokens", message);
        found.push(finding.hint("write `required`"));
    }
    if hops > 1 && hops > old_hops {
        let message = "more than 1 lets pods reach the instance metadata; metadata-options.nodemolt.dev \
                       refuses it where it is installed";
        let finding = Finding::note("spec.metadataOptions.httpPutResponseHopLimit", message);
        found.push(finding.hint("write 1, and give pods their own role"));
    }
    found
}
