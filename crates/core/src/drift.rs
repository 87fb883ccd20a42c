//! Does it still match?
//!
//! `running × wanted → drift`
//!
//! There are three answers, not two. `Unknown` exists so that a missing fact can never be mistaken for a
//! difference: a failed lookup must not replace a fleet. And a node for which there is no image to be
//! replaced with has not drifted, whatever else is different: replacing it would only lose it. A node of a
//! kind that its pool does not ask for any more is replaced by one that it asks for, if that has an image.

mod words;

pub use words::Sides;

use std::collections::BTreeSet;

use nodemolt_fit::{Operator, Written, label};

use crate::image::ImageId;
use crate::lookup::{self, Minor};
use crate::node::{Foreign, ImageRef, Running, Stamp};
use crate::wanted::{Listed, NoImage, Replacing, Wanted, pinned};

/// How many minor versions a kubelet may be behind the API server: Kubernetes' own rule since 1.28.
const SKEW_MAX: u16 = 3;

/// Fields of the class that are the user data.
const USER_DATA_FIELDS: [&str; 2] = ["user_part", "after_bootstrap"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    InSync,
    /// Never empty, by construction. What could not be compared beside is told.
    Drifted {
        first: Divergence,
        more: Vec<Divergence>,
        unchecked: Vec<Missing>,
    },
    Unknown(Missing),
}

impl Drift {
    pub fn divergences(&self) -> impl Iterator<Item = &Divergence> {
        let (first, more) = match self {
            Self::Drifted { first, more, .. } => (Some(first), more.as_slice()),
            Self::InSync | Self::Unknown(_) => (None, &[][..]),
        };
        first.into_iter().chain(more)
    }

    pub fn drifted(&self) -> bool {
        matches!(self, Self::Drifted { .. })
    }
}

/// One difference, with what is and what should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divergence {
    Image {
        from: ImageRef,
        to: ImageRef,
        direction: Direction,
    },
    UserData {
        from: String,
        to: String,
    },
    /// A field of the class; none where only the digests are known.
    Class {
        field: Option<String>,
        from: String,
        to: String,
    },
    PoolTemplate {
        field: Option<String>,
        from: String,
        to: String,
    },
    Requirement {
        key: String,
        from: Option<String>,
        to: Written,
    },
    InstanceTypeGone {
        instance_type: String,
    },
    SecurityGroups {
        from: BTreeSet<String>,
        to: BTreeSet<String>,
    },
    Subnet {
        from: String,
        to: BTreeSet<String>,
    },
    Reservation {
        from: String,
        to: BTreeSet<String>,
    },
    PlacementGroup {
        from: Option<String>,
        to: Option<String>,
    },
    KubernetesSkew {
        kubelet: Minor,
        control_plane: Minor,
    },
    Foreign(Foreign),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Upgrade,
    Downgrade,
    /// Another family or variant, or nothing that tells which is newer.
    Sideways,
}

/// What would have to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    RunningImage,
    InstanceType,
    /// No image may boot on such a node now, and why.
    ReplacementImage {
        instance_type: String,
        because: NoImage,
    },
    ClassStamp,
    TemplateStamp,
    Instance,
    SecurityGroups,
    Subnets,
    /// EC2 was asked, and has nothing of what the class selects. It may be on its way.
    SelectsNothing {
        of: &'static str,
    },
    Reservations,
    InstanceTypes,
    /// The class names its placement group by id, and machines tell theirs by name.
    PlacementGroup,
    Kubelet,
    ControlPlane,
}

pub fn drift(running: &Running, wanted: &Wanted) -> Drift {
    let Some(instance_type) = &running.instance_type else {
        return Drift::Unknown(Missing::InstanceType);
    };
    let pool = running.pool.as_deref();
    let replacing = wanted.replacing(pool, instance_type);
    let no_image = || {
        let (because, instance_type) = (why_not(&replacing, pool), instance_type.clone());
        Drift::Unknown(Missing::ReplacementImage { instance_type, because })
    };
    let image = match &replacing {
        Replacing::Image(image) => Some(*image),
        // The pool asks for other machines by now, and one of those can boot.
        Replacing::NotResolved if wanted.bootable(pool).next().is_some() => None,
        // The pool asks for other machines by now, and none of those can.
        Replacing::NotResolved if wanted.none_boots(pool).is_some() => {
            return no_image_for_others(wanted, pool, instance_type).unwrap_or_else(no_image);
        }
        Replacing::HeldBack(_) | Replacing::NoImageFits | Replacing::NotResolved => {
            return no_image();
        }
    };
    // Whoever does not know what a node runs does not know what it would be replaced for.
    let Some(runs) = &running.image else { return Drift::Unknown(Missing::RunningImage) };
    let mut found = Found::default();
    if let Some(image) = image {
        found.image(runs, image, &wanted.in_sync);
    }
    found.stamps(running, wanted);
    found.requirements(running, wanted);
    found.machine(running, wanted, instance_type);
    if image.is_none() && !found.other_kind() {
        // Why no image was looked up for it is not known then.
        return no_image();
    }
    let same = image.is_some_and(|it| it.id == runs.id);
    found.skew(running, wanted, same.then_some((runs, instance_type)));
    found.divergences.extend(running.foreign.iter().cloned().map(Divergence::Foreign));
    found.answer()
}

/// What is missing is an image for what the pool asks for now, not for what the node is.
fn no_image_for_others(wanted: &Wanted, pool: Option<&str>, runs: &str) -> Option<Drift> {
    let (first, others, why) = wanted.none_boots(pool)?;
    let instance_type = match others {
        0 => first.to_owned(),
        1 => format!("{first} and another type"),
        others => format!("{first} and {others} other types"),
    };
    let because = match pool {
        Some(pool) => {
            format!("NodePool `{pool}` asks for that now and not for {runs}; {}", why.because)
        }
        None => why.because,
    };
    let object = why.object.or_else(|| pool.map(|it| ("NodePool", it.to_owned())));
    let because = NoImage { because, object, until: why.until };
    Some(Drift::Unknown(Missing::ReplacementImage { instance_type, because }))
}

fn why_not(replacing: &Replacing<'_>, pool: Option<&str>) -> NoImage {
    match replacing {
        Replacing::Image(image) => NoImage::because(format!("{} is wanted", image.id)),
        Replacing::HeldBack(why) => (*why).clone(),
        Replacing::NoImageFits => NoImage::because("no image fits it"),
        // Images are looked up for the types that pools ask for.
        Replacing::NotResolved => match pool {
            Some(pool) => NoImage {
                because: format!("NodePool `{pool}` does not ask for such a machine"),
                object: Some(("NodePool", pool.to_owned())),
                until: None,
            },
            None => NoImage::because("no image was looked up for it"),
        },
    }
}

#[derive(Default)]
struct Found {
    divergences: Vec<Divergence>,
    missing: Vec<Missing>,
}

impl Found {
    fn answer(self) -> Drift {
        let mut divergences = self.divergences.into_iter();
        let mut missing = self.missing.into_iter();
        match divergences.next() {
            Some(first) => {
                Drift::Drifted { first, more: divergences.collect(), unchecked: missing.collect() }
            }
            None => missing.next().map_or(Drift::InSync, Drift::Unknown),
        }
    }

    fn image(&mut self, runs: &ImageRef, wanted: &ImageRef, in_sync: &BTreeSet<ImageId>) {
        if runs.id != wanted.id && !in_sync.contains(&runs.id) {
            self.divergences.push(Divergence::Image {
                direction: direction(runs, wanted),
                from: runs.clone(),
                to: wanted.clone(),
            });
        }
    }

    fn stamps(&mut self, running: &Running, wanted: &Wanted) {
        let class = compare(running.class_stamp.as_ref(), wanted.beside.class_stamp.as_ref());
        match class {
            Compared::Missing => self.missing.push(Missing::ClassStamp),
            Compared::NotAsked | Compared::Same | Compared::OtherVersion => {}
            Compared::Different(fields) => {
                self.divergences.extend(fields.into_iter().map(|(field, from, to)| match &field {
                    Some(name) if USER_DATA_FIELDS.contains(&name.as_str()) => {
                        Divergence::UserData { from, to }
                    }
                    Some(_) | None => Divergence::Class { field, from, to },
                }));
            }
        }
        let template =
            compare(running.template_stamp.as_ref(), wanted.beside.template_stamp.as_ref());
        match template {
            Compared::Missing => self.missing.push(Missing::TemplateStamp),
            Compared::NotAsked | Compared::Same | Compared::OtherVersion => {}
            Compared::Different(fields) => {
                let told = |(field, from, to)| Divergence::PoolTemplate { field, from, to };
                self.divergences.extend(fields.into_iter().map(told));
            }
        }
    }

    /// Something says that nodes of its kind are not launched any more.
    fn other_kind(&self) -> bool {
        let kind = |it: &Divergence| {
            matches!(it, Divergence::Requirement { .. } | Divergence::InstanceTypeGone { .. })
        };
        self.divergences.iter().any(kind)
    }

    fn requirements(&mut self, running: &Running, wanted: &Wanted) {
        let asked = &wanted.beside.requirements;
        for written in asked {
            let key = label::normalise(&written.key);
            let named = running.labels.get(key).or_else(|| running.labels.get(&written.key));
            let have = named.map(String::as_str);
            // How a machine was bought is not all written on it, and what no node can have none lacks.
            let unseen = || {
                label::by_offering(key)
                    || (!label::by_type(key) && !pinned(asked).contains_key(key))
            };
            if !admits(written, have) && (have.is_some() || !unseen()) {
                self.divergences.push(Divergence::Requirement {
                    key: written.key.clone(),
                    from: have.map(str::to_owned),
                    to: written.clone(),
                });
            }
        }
    }

    fn machine(&mut self, running: &Running, wanted: &Wanted, instance_type: &str) {
        let beside = &wanted.beside;
        // An empty answer is no answer: EC2 offers something everywhere.
        let some = |it: &&Listed| !it.last.is_empty();
        match beside.instance_types.as_ref().filter(some).and_then(|it| it.has(instance_type)) {
            None => self.missing.push(Missing::InstanceTypes),
            Some(true) => {}
            Some(false) => self
                .divergences
                .push(Divergence::InstanceTypeGone { instance_type: instance_type.to_owned() }),
        }
        let Some(instance) = &running.instance else {
            self.missing.push(Missing::Instance);
            return;
        };
        let have = &instance.security_groups;
        match beside.security_groups.as_ref().filter(some) {
            None => self.missing.push(match &beside.security_groups {
                Some(_) => Missing::SelectsNothing { of: "security groups" },
                None => Missing::SecurityGroups,
            }),
            Some(to) if *to.last == *have => {}
            // Whatever is listed and not on the machine is a difference; what is on the machine and not listed
            // need not be.
            Some(to)
                if to.last.is_subset(have) && have.iter().all(|it| to.has(it) != Some(false)) =>
            {
                self.missing.push(Missing::SecurityGroups);
            }
            Some(to) => self
                .divergences
                .push(Divergence::SecurityGroups { from: have.clone(), to: (*to.last).clone() }),
        }
        let to = beside.subnets.as_ref().filter(some);
        match instance.subnet.as_ref().zip(to).map(|(it, to)| (it, to, to.has(it))) {
            None if beside.subnets.as_ref().is_some_and(|it| it.last.is_empty()) => {
                self.missing.push(Missing::SelectsNothing { of: "subnets" });
            }
            None | Some((_, _, None)) => self.missing.push(Missing::Subnets),
            Some((_, _, Some(true))) => {}
            Some((subnet, to, Some(false))) => {
                let (from, to) = (subnet.clone(), (*to.last).clone());
                self.divergences.push(Divergence::Subnet { from, to });
            }
        }
        if let Some(reservation) = &instance.reservation {
            match beside.reservations.as_ref().map(|to| (to, to.has(reservation))) {
                None | Some((_, None)) => self.missing.push(Missing::Reservations),
                Some((_, Some(true))) => {}
                Some((to, Some(false))) => {
                    let (from, to) = (reservation.clone(), (*to.last).clone());
                    self.divergences.push(Divergence::Reservation { from, to });
                }
            }
        }
        match &beside.placement_group {
            None => self.missing.push(Missing::PlacementGroup),
            Some(to) if *to == instance.placement_group => {}
            Some(to) => {
                let from = instance.placement_group.clone();
                self.divergences.push(Divergence::PlacementGroup { from, to: to.clone() });
            }
        }
    }

    /// Outside of what Kubernetes supports: newer than the API server, or more than three minors older. Where the image
    /// that would boot is the one that it runs, its successor would be no better, and so would each after that.
    fn skew(&mut self, running: &Running, wanted: &Wanted, same: Option<(&ImageRef, &String)>) {
        let Some(control_plane) = wanted.beside.control_plane else {
            self.missing.push(Missing::ControlPlane);
            return;
        };
        let Some(kubelet) = running.kubelet else {
            self.missing.push(Missing::Kubelet);
            return;
        };
        let too_old = kubelet.major == control_plane.major
            && control_plane.minor.saturating_sub(kubelet.minor) > SKEW_MAX;
        if !too_old && kubelet <= control_plane && kubelet.major == control_plane.major {
            return;
        }
        match same {
            None => self.divergences.push(Divergence::KubernetesSkew { kubelet, control_plane }),
            Some((image, instance_type)) => {
                let why = format!(
                    "{} is what would boot and what it runs, and its kubelet is of {kubelet}: \
                     Kubernetes {control_plane} supports none more than {SKEW_MAX} minor versions \
                     older, and none that is newer",
                    image.id
                );
                let (instance_type, because) = (instance_type.clone(), NoImage::because(why));
                self.missing.push(Missing::ReplacementImage { instance_type, because });
            }
        }
    }
}

enum Compared {
    NotAsked,
    Missing,
    Same,
    /// Stamped by another version of ours: to be stamped anew, never a difference.
    OtherVersion,
    Different(Vec<(Option<String>, String, String)>),
}

fn compare(have: Option<&Stamp>, want: Option<&Stamp>) -> Compared {
    let Some(want) = want else { return Compared::NotAsked };
    let Some(have) = have else { return Compared::Missing };
    if have.version() != want.version() {
        return Compared::OtherVersion;
    }
    if have.digest == want.digest {
        return Compared::Same;
    }
    let names: BTreeSet<&String> = have.fields.keys().chain(want.fields.keys()).collect();
    let told = |it: Option<&String>| it.cloned().unwrap_or_else(|| "nothing".to_owned());
    let mut fields: Vec<(Option<String>, String, String)> = names
        .into_iter()
        .filter(|it| have.fields.get(*it) != want.fields.get(*it))
        .map(|it| (Some(it.clone()), told(have.fields.get(it)), told(want.fields.get(it))))
        .collect();
    if have.fields.is_empty() || fields.is_empty() {
        fields = vec![(None, have.digest.clone(), want.digest.clone())];
    }
    Compared::Different(fields)
}

/// Which stamps to write anew: those of another version, on nodes that have not drifted. So a new version
/// of ours replaces no fleet, and forgives no drift.
pub fn restamps(running: &Running, wanted: &Wanted) -> Restamps {
    let mut all = Restamps { class: None, template: None };
    if drift(running, wanted).drifted() {
        return all;
    }
    let anew = |have: Option<&Stamp>, want: Option<&Stamp>| {
        matches!(compare(have, want), Compared::OtherVersion).then(|| want.cloned()).flatten()
    };
    let beside = &wanted.beside;
    all.class = anew(running.class_stamp.as_ref(), beside.class_stamp.as_ref());
    all.template = anew(running.template_stamp.as_ref(), beside.template_stamp.as_ref());
    all
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restamps {
    pub class: Option<Stamp>,
    pub template: Option<Stamp>,
}

/// Whether a label of a node that exists meets what a pool asks. Absent is a value like others.
fn admits(written: &Written, have: Option<&str>) -> bool {
    let listed = || have.is_some_and(|it| written.values.iter().any(|value| value == it));
    let number = || {
        // Only canonical decimals are numbers, as in the algebra of requirements.
        let have = have.and_then(|it| it.parse::<i64>().ok().filter(|n| n.to_string() == it))?;
        let bound = match written.values.as_slice() {
            [only] => only.parse::<i64>().ok()?,
            _ => return None,
        };
        Some((have, bound))
    };
    match written.operator {
        Operator::In => listed(),
        Operator::NotIn => !listed(),
        Operator::Exists => have.is_some(),
        Operator::DoesNotExist => have.is_none(),
        Operator::Gt => number().is_some_and(|(have, bound)| have > bound),
        Operator::Gte => number().is_some_and(|(have, bound)| have >= bound),
        Operator::Lt => number().is_some_and(|(have, bound)| have < bound),
        Operator::Lte => number().is_some_and(|(have, bound)| have <= bound),
    }
}

/// By flavour where the names tell it, then by date.
fn direction(from: &ImageRef, to: &ImageRef) -> Direction {
    let flavour = |it: &ImageRef| it.name.as_deref().and_then(lookup::read_name);
    let minors = match (flavour(from), flavour(to)) {
        (Some((from, _)), Some((to, _))) => {
            if (from.family, from.track, from.processor) != (to.family, to.track, to.processor) {
                return Direction::Sideways;
            }
            (Some(from.kubernetes), Some(to.kubernetes))
        }
        (Some(_), None) | (None, Some(_)) => return Direction::Sideways,
        (None, None) => (None, None),
    };
    let (Some(from_at), Some(to_at)) = (from.dated, to.dated) else { return Direction::Sideways };
    match (minors.0, from_at).cmp(&(minors.1, to_at)) {
        std::cmp::Ordering::Less => Direction::Upgrade,
        std::cmp::Ordering::Equal => Direction::Sideways,
        std::cmp::Ordering::Greater => Direction::Downgrade,
    }
}
