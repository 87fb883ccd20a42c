//! What do all claims come to?
//!
//! `claims → whose node is which, what is in use, who is not settled`, kept from turn to turn
//!
//! Most claims are what they were in the turn before. Those that are not are looked at again, and what follows from
//! all of them is mended: nobody walks through a fleet to find out that nothing has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use nodemolt_core::explain::SuccessorTold;
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::{Changes, Claim, ClassKey, Looked, Stage, View};
use nodemolt_fit::capacity::Amounts;

use super::pools;
use crate::picture::{on_its_way, successor};

#[derive(Debug, Default)]
pub(crate) struct Roll {
    looked_at: Looked,
    /// By claim.
    entries: BTreeMap<String, Entry>,
    /// By node: the claims that say that they have become it.
    by_node: BTreeMap<String, BTreeSet<String>>,
    /// By class and image: how many run it.
    images: BTreeMap<ClassKey, BTreeMap<ImageId, usize>>,
    /// Claims that are deleted, or not set up yet.
    unsettled: BTreeSet<String>,
    /// Claims that do not say what their machine has.
    bare: BTreeSet<String>,
    /// By pool: what the others have. Added up when somebody asks, and again after one has changed.
    launched: OnceLock<BTreeMap<String, Amounts>>,
    /// What is told of those that are on their way or were made for a replacement, by claim.
    successors: Arc<BTreeMap<String, SuccessorTold>>,
    /// Nodes whose claim is another one, or has changed.
    nodes: Changes<String>,
}

/// What a claim has added.
#[derive(Debug)]
struct Entry {
    node: Option<String>,
    class: ClassKey,
    image: Option<ImageId>,
}

impl Roll {
    pub(crate) fn of(view: &View) -> Self {
        let mut roll = Self::default();
        roll.look(view);
        roll
    }

    /// As the view has them now.
    pub(crate) fn look(&mut self, view: &View) {
        let changed = view.claims.changes().since(&self.looked_at);
        let changed: Option<BTreeSet<&String>> = changed.map(Iterator::collect);
        if let Some(changed) = changed {
            if !changed.is_empty() {
                self.launched = OnceLock::new();
            }
            for name in changed {
                self.take_out(name);
                if let Some(claim) = view.claims.get(name) {
                    self.take_in(name, claim);
                }
            }
        } else {
            *self = Self::default();
            for (name, claim) in &view.claims {
                self.take_in(name, claim);
            }
            self.nodes.forget();
        }
        self.looked_at = view.claims.changes().looked();
    }

    fn take_in(&mut self, name: &str, claim: &Claim) {
        if let Some(node) = &claim.node {
            self.by_node.entry(node.clone()).or_default().insert(name.to_owned());
            self.nodes.note(node.clone());
        }
        if let Some(image) = &claim.image {
            let images = self.images.entry(claim.class.clone()).or_default();
            *images.entry(image.clone()).or_default() += 1;
        }
        if claim.deleting_since.is_some() || !claim.stages.contains_key(&Stage::Initialized) {
            self.unsettled.insert(name.to_owned());
        }
        if claim.capacity.is_empty() {
            self.bare.insert(name.to_owned());
        }
        if on_its_way(claim) || claim.successor_of.is_some() {
            Arc::make_mut(&mut self.successors).insert(name.to_owned(), successor(claim));
        }
        let Claim { node, class, image, .. } = claim;
        let (node, class, image) = (node.clone(), class.clone(), image.clone());
        self.entries.insert(name.to_owned(), Entry { node, class, image });
    }

    fn take_out(&mut self, name: &str) {
        let Some(Entry { node, class, image }) = self.entries.remove(name) else { return };
        if let Some(node) = node {
            if let Some(claims) = self.by_node.get_mut(&node) {
                claims.remove(name);
                if claims.is_empty() {
                    self.by_node.remove(&node);
                }
            }
            self.nodes.note(node);
        }
        if let Some(images) = self.images.get_mut(&class)
            && let Some(image) = image
            && let Some(count) = images.get_mut(&image)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                images.remove(&image);
            }
        }
        self.unsettled.remove(name);
        self.bare.remove(name);
        if self.successors.contains_key(name) {
            Arc::make_mut(&mut self.successors).remove(name);
        }
    }

    /// The claim that a node belongs to; of several that say so the last by name.
    pub(crate) fn claim_of(&self, node: &str) -> Option<&str> {
        self.by_node.get(node)?.last().map(String::as_str)
    }

    /// All claims that say that they have become this node.
    pub(crate) fn claims_of(&self, node: &str) -> impl Iterator<Item = &String> {
        self.by_node.get(node).into_iter().flatten()
    }

    /// By class: the images that its claims run.
    pub(crate) fn images(
        &self,
    ) -> impl Iterator<Item = (&ClassKey, impl Iterator<Item = &ImageId>)> {
        self.images.iter().map(|(class, images)| (class, images.keys()))
    }

    pub(crate) fn unsettled<'v>(&self, view: &'v View) -> impl Iterator<Item = &'v Claim> {
        self.unsettled.iter().filter_map(|it| view.claims.get(it))
    }

    /// Those that do not say what their machine has.
    pub(crate) fn bare<'v>(&self, view: &'v View) -> impl Iterator<Item = &'v Claim> {
        self.bare.iter().filter_map(|it| view.claims.get(it))
    }

    /// By pool: what all others have. Of the view that was looked at.
    pub(crate) fn launched(&self, view: &View) -> &BTreeMap<String, Amounts> {
        self.launched.get_or_init(|| pools::launched(view))
    }

    pub(crate) fn successors(&self) -> &Arc<BTreeMap<String, SuccessorTold>> {
        &self.successors
    }

    pub(crate) fn nodes(&self) -> &Changes<String> {
        &self.nodes
    }
}
