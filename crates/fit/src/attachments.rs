//! How many EBS volumes can pods attach to a new node?
//!
//! `attachments of the type − the node's own volumes − network interfaces, where they share one limit`
//!
//! This is what the EBS CSI driver (v1.62.0, `getVolumesLimit`) will write into the node's `CSINode` once it
//! runs there, and kube-scheduler goes by that. The number of a type, and whether network interfaces take from
//! it, is EC2's own word: `EbsInfo.MaximumEbsAttachments`, which leaves room for one interface, and
//! `EbsInfo.AttachmentLimitType`. How many interfaces are attached when the driver starts cannot be known before;
//! the default of the VPC CNI is two.

use std::collections::BTreeMap;

use crate::{capacity::NodeSettings, family::Family, instance_type::InstanceType};

pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// The primary interface, and the spare one that the VPC CNI attaches at once (`WARM_ENI_TARGET=1`).
const INTERFACES_AT_START: u32 = 2;
/// On Xen the driver does not go by EC2's number.
const ON_XEN: u32 = 39;
const XEN: &str = "xen";
const SHARED: &str = "shared";

/// By driver, as a machine has them. Empty, if EC2's answer does not tell.
pub fn volume_limits(it: &InstanceType, settings: &NodeSettings) -> BTreeMap<String, u32> {
    let limit = ebs_volumes(it, settings);
    limit.map(|it| (EBS_DRIVER.to_owned(), it)).into_iter().collect()
}

fn ebs_volumes(it: &InstanceType, settings: &NodeSettings) -> Option<u32> {
    let own = u32::try_from(settings.block_devices.len()).unwrap_or(u32::MAX);
    let own = if own == 0 { built_in(settings.family) } else { own };
    let (all, interfaces) = if it.hypervisor.as_deref() == Some(XEN) {
        (ON_XEN, 0)
    } else {
        let shared = it.ebs.attachments_share.as_deref() == Some(SHARED);
        let more = INTERFACES_AT_START.min(it.network.interfaces_max.unwrap_or(1)) - 1;
        (it.ebs.attachments_max?, if shared { more } else { 0 })
    };
    // The driver never writes less than one: Kubernetes would take none for no limit.
    Some(all.saturating_sub(own).saturating_sub(interfaces).max(1))
}

/// How many volumes a node has where the class does not say.
fn built_in(family: Family) -> u32 {
    match family {
        // One for the system, one for containers.
        Family::Bottlerocket => 2,
        Family::Al2
        | Family::Al2023
        | Family::Windows2019
        | Family::Windows2022
        | Family::Windows2025
        | Family::Custom => 1,
    }
}
