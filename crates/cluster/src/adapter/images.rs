//! What is remembered of an image?

use nodemolt_core::catalog::{Appeared, Because, Withdrawn};
use nodemolt_engine::port::{ClusterError, NewMemory};
use serde_json::{Map, Value, json};

use super::Adapter;
use super::call::object;
use crate::resources::IMAGE;
use crate::transport::{Request, Transport, Verb};

impl<T: Transport> Adapter<T> {
    pub(super) async fn note_image(&self, new: &NewMemory) -> Result<(), ClusterError> {
        let id = new.image.to_string();
        let mut memory = Map::new();
        let known = new.known.as_ref();
        // What is remembered stays: only what is missing is added.
        if known.is_none_or(|it| it.first_seen.is_none())
            && let Some(at) = new.first_seen
        {
            memory.insert("firstSeenAt".to_owned(), at.to_string().into());
        }
        if known.is_none_or(|it| it.appeared.is_none())
            && let Some(appeared) = new.appeared
        {
            let later = match appeared {
                Appeared::Later => true,
                Appeared::WithFirstAnswer => false,
            };
            memory.insert("appearedLater".to_owned(), later.into());
        }
        if known.is_none_or(|it| it.first_owner.is_none())
            && let Some(owner) = &new.first_owner
        {
            memory.insert("firstOwner".to_owned(), owner.to_string().into());
        }
        if known.is_none_or(|it| it.looks.is_none())
            && let Some(it) = &new.looks
        {
            memory.insert("name".to_owned(), it.name.clone().into());
            memory.insert("architecture".to_owned(), it.architecture.as_str().into());
            let alias = it.owner_alias.clone().map(|it| ("ownerAlias".to_owned(), it.into()));
            let created = it.created.map(|it| ("createdAt".to_owned(), it.to_string().into()));
            memory.extend(alias.into_iter().chain(created));
        }
        if known.is_none_or(|it| it.withdrawn.is_none())
            && let Some(it) = &new.withdrawn
        {
            memory.insert("withdrawn".to_owned(), withdrawn(it));
        }
        if let Some(at) = new.returned {
            memory.insert("returnedAt".to_owned(), at.to_string().into());
        }
        // This alone comes and goes: whoever asks finds it out again.
        if known.and_then(|it| it.not_listed_since).is_some() != new.not_listed_since.is_some() {
            let since = new.not_listed_since.map_or(Value::Null, |it| it.to_string().into());
            memory.insert("notListedSince".to_owned(), since);
        }
        match known {
            Some(known) if memory.is_empty() => {
                debug_assert_eq!(known.image, new.image, "a memory is of one image");
                Ok(())
            }
            Some(known) => {
                let patch = json!({"spec": {"memory": memory}});
                self.patch(IMAGE, None, &id, &known.revision, patch).await.map(drop)
            }
            None => {
                let mut image = object(IMAGE, &id);
                image["spec"] = json!({"image": {"ref": {"id": id}}, "memory": memory});
                if let Some(region) = &new.region {
                    image["spec"]["region"] = region.clone().into();
                }
                self.call(&Request::of(Verb::Create, IMAGE).body(image)).await.map(drop)
            }
        }
    }
}

fn withdrawn(it: &Withdrawn) -> Value {
    let mut wire = match &it.because {
        Because::PointerMovedBack { parameter, to } => json!({
            "because": "PointerMovedBack",
            "parameter": parameter,
            "movedBackTo": to.to_string(),
        }),
        Because::DeprecatedEarly => json!({"because": "DeprecatedEarly"}),
        Because::DisabledEarly => json!({"because": "DisabledEarly"}),
        Because::UnsharedEarly => json!({"because": "UnsharedEarly"}),
        Because::Recalled => json!({"because": "Recalled"}),
    };
    if let Some(at) = it.at {
        wire["at"] = at.to_string().into();
    }
    wire
}
