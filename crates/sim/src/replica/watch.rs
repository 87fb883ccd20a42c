//! What does a process get to see, and when?
//!
//! A watch per kind, each with its own lag: kinds are told in an order in which nothing happened.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_cluster::resources::WATCHED;
use nodemolt_cluster::transport::{Heard, Resource};

use super::{BOOKMARKS_APART, Process, ProcessEvent, after};
use crate::api_server::{ApiServer, What};

/// How far one watch has come.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Told up to here. `None`: everything has to be listed.
    told: Option<u64>,
    /// What is on its way: up to this revision.
    coming: Option<u64>,
}

pub(super) fn all() -> BTreeMap<Resource, Watch> {
    WATCHED.iter().map(|(it, _)| (*it, Watch::default())).collect()
}

impl Process {
    /// Something of this kind has changed. True if a delivery has to be put on the calendar.
    pub(crate) fn hears_of(&mut self, resource: Resource, revision: u64) -> bool {
        let Some(watch) = self.watches.get_mut(&resource) else { return false };
        if watch.coming.is_some() {
            return false;
        }
        watch.coming = Some(revision);
        true
    }

    /// Up to which revision it was told of this kind. Who was told nothing begins with a list.
    pub(crate) fn told(&self, resource: Resource) -> Option<u64> {
        self.watches.get(&resource)?.told
    }

    /// The watch is lost; whatever was on its way never arrives.
    pub(crate) fn lose_watch(&mut self, resource: Resource) {
        if let Some(watch) = self.watches.get_mut(&resource) {
            watch.told = None;
        }
    }

    /// What was on its way arrives. True if more has happened since.
    pub(crate) fn deliver(&mut self, resource: Resource, server: &ApiServer) -> bool {
        let now = self.now();
        let Some(watch) = self.watches.get_mut(&resource) else { return false };
        let Some(coming) = watch.coming.take() else { return false };
        let adapter = &self.adapter;
        let changes = watch.told.map(|since| server.changes(resource, since));
        if let Some(Ok(changes)) = changes {
            let mut told = coming;
            for change in changes {
                if change.revision > coming {
                    break;
                }
                told = told.max(change.revision);
                match change.what {
                    What::Added | What::Modified => {
                        adapter.hear_applied(resource, &change.object, now);
                    }
                    What::Deleted => adapter.hear_deleted(resource, &change.object, now),
                }
                self.stirred = true;
            }
            watch.told = Some(told);
        } else {
            adapter.hear_all(resource, server.all(resource).map(|(_, it)| &**it), now);
            self.stirred = true;
            watch.told = Some(server.revision());
        }
        let told = watch.told.unwrap_or_default();
        let more = server.changes(resource, told).is_ok_and(|mut it| it.next().is_some());
        more && self.hears_of(resource, server.revision())
    }

    /// Every watch that has nothing on its way says so.
    pub(crate) fn bookmarks(&mut self, now: Timestamp) -> (Timestamp, ProcessEvent) {
        let heard_at = self.now();
        for (resource, watch) in &self.watches {
            if watch.told.is_some() && watch.coming.is_none() {
                self.adapter.hear(*resource, &Heard::Current, heard_at);
            }
        }
        (after(now, BOOKMARKS_APART), ProcessEvent::Bookmarks)
    }

    /// For the driver: something may be due after what was delivered.
    pub(crate) fn stir(&mut self, now: Timestamp) -> super::Due {
        let mut due = Vec::new();
        self.next_turn(now, &mut due);
        due
    }
}
