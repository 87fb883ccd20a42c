//! Does an object say the same as before, by what name is it kept, and what did somebody do?

use nodemolt_cluster::transport::Resource;
use serde_json::Value;

use super::read::{self, at};
use super::world::NOISE;
use crate::trace::Fact;

/// One name in two groups is two classes; namespaces keep names apart.
pub(super) fn key(resource: Resource, object: &Value) -> String {
    let name = read::name(object);
    if resource.kind == "EC2NodeClass" {
        format!("{}/{name}", resource.group)
    } else if resource.namespaced {
        format!("{}/{name}", read::namespace(object))
    } else {
        name.to_owned()
    }
}

/// The line of releases that an image is of: its name without the last word.
pub(super) fn line_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |it| it.0)
}

/// Whether two versions of what people write say the same. Labels choose, annotations do not.
pub(super) fn says_same(one: &Value, other: &Value) -> bool {
    const SAYS: [&[&str]; 3] =
        [&["spec"], &["metadata", "labels"], &["metadata", "deletionTimestamp"]];
    SAYS.iter().all(|it| at(one, it) == at(other, it))
}

/// Whether a limit is for other nodes than it was.
pub(super) fn other_members(one: &Value, other: &Value) -> bool {
    const CHOOSES: [&[&str]; 4] = [
        &["metadata", "labels"],
        &["spec", "labelSelectors"],
        &["spec", "classSelector"],
        &["spec", "gates"],
    ];
    let own = |it: &Value| at(it, &["spec", "rollout", "concurrency"]).is_some();
    own(one) != own(other) || CHOOSES.iter().any(|it| at(one, it) != at(other, it))
}

/// Whether two versions of an object say the same, whatever became of it.
pub(super) fn same_words(one: &Value, other: &Value) -> bool {
    const WORDS: [&[&str]; 4] = [
        &["spec"],
        &["metadata", "labels"],
        &["metadata", "annotations"],
        &["metadata", "deletionTimestamp"],
    ];
    WORDS.iter().all(|it| at(one, it) == at(other, it))
}

/// What one of us did to the world by this, if it did: nobody decides by leases and events. Who was refused an
/// eviction has asked for it.
pub(super) fn deed(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Stored { resource, object, .. } if !NOISE.contains(&resource.kind) => {
            Some(format!("wrote {} {}", resource.kind, read::name(object)))
        }
        Fact::Removed { resource, last } if !NOISE.contains(&resource.kind) => {
            Some(format!("removed {} {}", resource.kind, read::name(last)))
        }
        Fact::Evicted { namespace, pod, .. } => Some(format!("evicted {namespace}/{pod}")),
        Fact::PodDeleted { namespace, pod, .. } => Some(format!("deleted pod {namespace}/{pod}")),
        Fact::LaunchAsked { token, .. } => Some(format!("launched with {token}")),
        Fact::TerminateAsked { machine } => Some(format!("ended {machine}")),
        Fact::Stored { .. }
        | Fact::Removed { .. }
        | Fact::Answered { .. }
        | Fact::Machine(_)
        | Fact::Published { .. }
        | Fact::Image(_)
        | Fact::Turned(_)
        | Fact::Replica { .. }
        | Fact::Fault { .. }
        | Fact::FaultsEnd
        | Fact::HeldUp { .. }
        | Fact::Refused { .. }
        | Fact::Act { .. } => None,
    }
}
