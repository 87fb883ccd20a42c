//! What is a node told whose image we know nothing about?
//!
//! `user's text → the same bytes`
//!
//! Nobody but its builder knows how such an image joins a cluster. Labels, taints and kubelet settings
//! are not written anywhere; the reserved values still count for what a node can allocate.

use nodemolt_fit::Family;

use super::{
    MergeConflict, Place, Provenance, Remark, Settings, Source, UserData, UserPart, kubelet,
};

pub fn render(settings: &Settings, user: UserPart<'_>) -> Result<UserData, MergeConflict> {
    let mut remarks = kubelet::check(&settings.kubelet, Family::Custom)?;
    let mut provenance = Vec::new();
    if user.text().is_none() {
        remarks.push(
            Remark::new(Place::Whole, "is missing; a custom image is told nothing but this")
                .with_hint(
                    "write what joins the node to the cluster, or name the family it is built like",
                ),
        );
    } else {
        provenance.push(Provenance { what: "the whole text".to_owned(), source: Source::User });
    }
    if settings.instance_store_raid0 {
        let message = "RAID0 has no effect on a custom image";
        remarks.push(Remark::of_field("spec.instanceStorePolicy", message));
    }
    Ok(UserData { text: user.0.to_owned(), provenance, remarks })
}
