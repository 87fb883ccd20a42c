//! Which release is an image, and who has pointed to it?
//!
//! The catalog turned round: it knows what each parameter says, people ask what was said of an image.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::catalog::{Catalog, Index, Kept, Parameter, ParameterValue};
use nodemolt_core::image::ImageId;
use nodemolt_core::lookup::{self, Flavour, Minor, Release};

#[derive(Debug)]
pub(super) struct Shelf<'a> {
    pub index: Index<'a>,
    named: BTreeMap<ImageId, Vec<Naming>>,
    releases: BTreeMap<ImageId, (Flavour, String)>,
}

/// A time during which a parameter named an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Naming {
    pub parameter: String,
    pub role: Role,
    /// The version that began to name it.
    pub version: Option<u64>,
    pub from: Option<Timestamp>,
    pub ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The public parameter of a flavour that always names the recommended release.
    Recommends,
    /// The public parameter of one release: it says which release an image is, and recommends nothing.
    Pins,
    /// Anybody's own.
    Names,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub at: Option<Timestamp>,
    /// None where the parameter itself is gone.
    pub to: Option<ImageId>,
}

/// What is known about who published a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Publisher {
    Known,
    /// Others publish this family, and this owner only uses the name.
    Stranger,
    /// No public parameter of the family is in the catalog, so nobody can tell.
    Untold,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(catalog: &'a Catalog, now: Timestamp) -> Self {
        let index = catalog.index(now);
        let mut named: BTreeMap<ImageId, Vec<Naming>> = BTreeMap::new();
        let mut releases = BTreeMap::new();
        for parameter in catalog.parameters.values() {
            let read = lookup::read_path(&parameter.name);
            for (id, naming) in namings(parameter, read.as_ref()) {
                named.entry(id.clone()).or_default().push(naming);
                if let Some((flavour, release)) = &read {
                    note_release(&mut releases, &index, &id, *flavour, release);
                }
            }
        }
        for kept in index.all() {
            for path in &kept.sighting.image.public_parameters {
                if let Some((flavour, release)) = lookup::read_path(path) {
                    note_release(&mut releases, &index, kept.id(), flavour, &release);
                }
            }
            // Its own name says it best.
            if let Some(release) = &kept.release {
                releases.insert(kept.id().clone(), release.clone());
            }
        }
        Self { index, named, releases }
    }

    pub(super) fn release(&self, id: &ImageId) -> Option<&(Flavour, String)> {
        self.releases.get(id)
    }

    /// Of its flavour, or else what the image says of its kubelet.
    pub(super) fn kubernetes(&self, kept: &Kept<'_>) -> Option<Minor> {
        self.release(kept.id())
            .map(|(flavour, _)| flavour.kubernetes)
            .or_else(|| lookup::kubelet_of(&kept.sighting.image))
    }

    pub(super) fn publisher(&self, kept: &Kept<'_>) -> Option<Publisher> {
        let (flavour, _) = self.release(kept.id())?;
        Some(if self.index.published_by(flavour.family, kept) {
            Publisher::Known
        } else if self.index.publishers(flavour.family).next().is_none() {
            Publisher::Untold
        } else {
            Publisher::Stranger
        })
    }

    /// All parameters that name or have named it, in the order of their names and then of time.
    pub(super) fn namings(&self, id: &ImageId) -> &[Naming] {
        self.named.get(id).map_or(&[], Vec::as_slice)
    }

    /// The parameters that name it now, in this role.
    pub(super) fn named_by(&self, id: &ImageId, role: Role) -> impl Iterator<Item = &str> {
        self.namings(id)
            .iter()
            .filter(move |it| it.ended.is_none() && it.role == role)
            .map(|it| it.parameter.as_str())
    }
}

fn note_release(
    releases: &mut BTreeMap<ImageId, (Flavour, String)>,
    index: &Index<'_>,
    id: &ImageId,
    flavour: Flavour,
    release: &Release,
) {
    let Some(kept) = index.get(id) else { return };
    match release {
        Release::Version(version) => {
            releases.insert(id.clone(), (flavour, version.clone()));
        }
        // It was recommended, but nobody says as which release.
        Release::Recommended => {
            releases.entry(id.clone()).or_insert_with(|| (flavour, kept.name().to_owned()));
        }
    }
}

/// Whom a parameter named, and from when to when. A value that cannot be read names nobody, and the last
/// good one stands.
fn namings(parameter: &Parameter, read: Option<&(Flavour, Release)>) -> Vec<(ImageId, Naming)> {
    let role = match read {
        Some((_, Release::Recommended)) => Role::Recommends,
        Some((_, Release::Version(_))) => Role::Pins,
        None => Role::Names,
    };
    let mut found: Vec<(ImageId, Naming)> = Vec::new();
    for value in parameter.values() {
        let Some(id) = value.image() else { continue };
        if let Some((before, naming)) = found.last_mut() {
            if *before == id {
                continue;
            }
            naming.ended = Some(Ended { at: value.modified.at(), to: Some(id.clone()) });
        }
        found.push((id, begin(parameter, value, role)));
    }
    if let (Some(at), Some((_, naming))) = (parameter.gone, found.last_mut()) {
        naming.ended = Some(Ended { at: Some(at), to: None });
    }
    found
}

fn begin(parameter: &Parameter, value: &ParameterValue, role: Role) -> Naming {
    Naming {
        parameter: parameter.name.clone(),
        role,
        version: value.version,
        from: value.modified.at(),
        ended: None,
    }
}
