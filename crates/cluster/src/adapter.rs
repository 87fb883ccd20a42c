//! How do the engine's words become Kubernetes' verbs?

use std::cell::{Ref, RefCell};

use jiff::Timestamp;
use nodemolt_api::eyes::Eyes;
use nodemolt_core::lookup::Minor;
use nodemolt_core::seen::View;

use crate::resources;
use crate::transport::{Heard, Resource};

/// The port, over one API server. Whoever runs it feeds it what watches tell: [`Adapter::hear`], for each
/// of [`resources::WATCHED`].
#[derive(Debug)]
pub struct Adapter<T> {
    transport: T,
    eyes: RefCell<Eyes>,
}

impl<T> Adapter<T> {
    pub fn new(transport: T) -> Self {
        Self { transport, eyes: RefCell::new(Eyes::default()) }
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// What a watch told, and when by our own clock. Resources that are not watched are not heard.
    pub fn hear(&self, resource: Resource, heard: &Heard, now: Timestamp) {
        let Some(of) = resources::watched(resource) else { return };
        let mut eyes = self.eyes.borrow_mut();
        match heard {
            Heard::Listed(objects) => eyes.listed(of, objects, now),
            Heard::Applied(object) => {
                eyes.applied(of, object);
                eyes.current(of, now);
            }
            Heard::Deleted(object) => {
                eyes.deleted(of, object);
                eyes.current(of, now);
            }
            Heard::Current => eyes.current(of, now),
        }
    }

    /// The API server's version.
    pub fn kubernetes(&self, version: Minor) {
        self.eyes.borrow_mut().kubernetes(version);
    }

    /// What watches have told so far.
    pub fn seen(&self) -> Ref<'_, View> {
        Ref::map(self.eyes.borrow(), Eyes::view)
    }
}
