//! What does a class's own status say about what can be launched?
//!
//! `status of a class → whether anything can be, and on what its images boot`
//!
//! Its controller has asked EC2, which nobody here can. A class that no controller has seen says nothing.

use nodemolt_fit::Written;

use crate::{
    ec2nodeclass::{EC2NodeClass, EC2NodeClassStatus},
    into_core::Reader,
};

const READY: &str = "Ready";
const FALSE: &str = "False";

/// Why no pool of this class launches anything, in words that follow "its class".
pub fn launches_none(class: &EC2NodeClass) -> Option<String> {
    if class.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    let status = class.status.as_ref()?;
    if let Some(why) = unready(status) {
        return Some(why);
    }
    let empty = |found: Option<usize>| found == Some(0);
    if empty(status.subnets.as_ref().map(Vec::len)) {
        return Some("has found no subnets".to_owned());
    }
    empty(status.amis.as_ref().map(Vec::len)).then(|| "has found no images".to_owned())
}

fn unready(status: &EC2NodeClassStatus) -> Option<String> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let mut failed = conditions.iter().filter(|it| it.status == FALSE);
    let ready = failed.clone().find(|it| it.kind == READY)?;
    // It says that others fail, and those say why.
    let others = failed.find(|it| it.kind != READY);
    let said = |text: &Option<String>| text.clone().filter(|it| !it.is_empty());
    let why = [Some(ready), others].into_iter().flatten();
    let why = why.map(|it| said(&it.message).or_else(|| said(&it.reason)));
    let why = why.flatten().next().map(|it| format!(" ({it})"));
    Some(format!("says that it is not ready{}", why.unwrap_or_default()))
}

/// What a machine must be for one of the class's images to boot on it. `None`: nobody has looked for images.
pub fn images(class: &EC2NodeClass) -> Option<Vec<Vec<Written>>> {
    let images = class.status.as_ref()?.amis.as_ref()?;
    let mut reader = Reader::new();
    let read = images.iter().map(|image| {
        let asked = image.requirements.iter().flatten();
        // What an image asks for that cannot be read is no reason against it.
        asked.filter_map(|it| reader.requirement("requirements", it)).collect()
    });
    Some(read.collect())
}

/// What the status of the live class says of the same class as somebody has written it: not whether that is ready, and
/// nothing of images that it does not ask for any more.
pub fn status_of_written(
    written: &EC2NodeClass,
    live: &EC2NodeClass,
) -> Option<EC2NodeClassStatus> {
    let mut status = live.status.clone()?;
    let (new, old) = (&written.spec, &live.spec);
    if new != old {
        status.conditions = None;
        status.subnets = status.subnets.filter(|it| !it.is_empty());
        let same_images =
            new.ami_selector_terms == old.ami_selector_terms && new.ami_family == old.ami_family;
        status.amis = status.amis.filter(|it| same_images && !it.is_empty());
    }
    Some(status)
}
