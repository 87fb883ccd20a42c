//! How does `aws ec2 create-launch-template --cli-input-json` want it?
//!
//! `template → document`, with EC2's member names and nothing decided here.

use nodemolt_core::bootstrap::base64;
use nodemolt_core::launch::{
    BlockDevice, Cpu, Interface, PlacementGroup, Switch, Template, Tenancy, Volume, VolumeType,
    Where,
};
use serde::Serialize;

pub(crate) fn document(template: &Template) -> Document {
    Document {
        launch_template_name: template.name(),
        tag_specifications: vec![tagged("launch-template", template)],
        launch_template_data: content(template),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Document {
    launch_template_name: String,
    tag_specifications: Vec<TagSpecification>,
    launch_template_data: Content,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    image_id: String,
    iam_instance_profile: Profile,
    /// None means those of the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    block_device_mappings: Vec<Mapping>,
    network_interfaces: Vec<NetworkInterface>,
    metadata_options: MetadataOptions,
    monitoring: Enabled,
    capacity_reservation_specification: CapacityReservationSpecification,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_market_options: Option<MarketOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_options: Option<CpuOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enclave_options: Option<Enabled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    tag_specifications: Vec<TagSpecification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_data: Option<String>,
}

fn content(template: &Template) -> Content {
    let Template {
        image,
        instance_profile,
        block_devices,
        metadata,
        interfaces,
        detailed_monitoring,
        reservations,
        market,
        cpu,
        enclave,
        placement,
        tagged: kinds,
        tags: _,
        user_data,
    } = template;
    Content {
        image_id: image.clone(),
        iam_instance_profile: Profile { name: instance_profile.clone() },
        block_device_mappings: block_devices.iter().map(mapping).collect(),
        network_interfaces: interfaces.iter().map(interface).collect(),
        metadata_options: MetadataOptions {
            http_endpoint: metadata.endpoint.word(),
            http_protocol_ipv6: metadata.ipv6.map(Switch::word),
            http_put_response_hop_limit: metadata.hop_limit,
            http_tokens: metadata.tokens.word(),
            instance_metadata_tags: "disabled",
        },
        monitoring: Enabled { enabled: *detailed_monitoring },
        capacity_reservation_specification: CapacityReservationSpecification {
            capacity_reservation_preference: reservations.preference.word(),
            capacity_reservation_target: reservations
                .target
                .as_ref()
                .map(|it| Target { capacity_reservation_id: it.to_string() }),
        },
        instance_market_options: market.map(|it| MarketOptions { market_type: it.word() }),
        cpu_options: cpu.as_ref().map(cpu_options),
        enclave_options: enclave.then_some(Enabled { enabled: true }),
        placement: self::placement(placement),
        tag_specifications: kinds.iter().map(|it| tagged(it.word(), template)).collect(),
        user_data: user_data.as_ref().map(|it| base64::encode(it.as_bytes())),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Profile {
    name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Enabled {
    enabled: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mapping {
    #[serde(skip_serializing_if = "Option::is_none")]
    device_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ebs: Option<Ebs>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ebs {
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_on_termination: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iops: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_initialization_rate: Option<i64>,
}

fn mapping(device: &BlockDevice) -> Mapping {
    Mapping { device_name: device.name.clone(), ebs: device.volume.as_ref().map(ebs) }
}

fn ebs(volume: &Volume) -> Ebs {
    Ebs {
        volume_size: volume.size.map(|it| it.gib),
        volume_type: volume.kind.map(VolumeType::word),
        encrypted: volume.encrypted,
        delete_on_termination: volume.delete_on_termination,
        iops: volume.iops,
        throughput: volume.throughput,
        kms_key_id: volume.kms_key.clone(),
        snapshot_id: volume.snapshot.clone(),
        volume_initialization_rate: volume.initialization_rate,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkInterface {
    #[serde(skip_serializing_if = "Option::is_none")]
    network_card_index: Option<i64>,
    device_index: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface_type: Option<&'static str>,
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associate_public_ip_address: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_ipv6: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6_address_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv4_prefix_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6_prefix_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_tracking_specification: Option<ConnectionTracking>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_field_names, reason = "the names are EC2's")]
struct ConnectionTracking {
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_established_timeout: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_stream_timeout: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_timeout: Option<i64>,
}

fn interface(it: &Interface) -> NetworkInterface {
    NetworkInterface {
        network_card_index: it.card,
        device_index: it.device,
        // Said where the class or the EFA count says it; the ordinary one is EC2's own default.
        interface_type: it.card.map(|_| it.kind.word()),
        groups: it.security_groups.iter().map(ToString::to_string).collect(),
        associate_public_ip_address: it.public_ip,
        primary_ipv6: it.ipv6.then_some(true),
        ipv6_address_count: it.ipv6.then_some(1),
        ipv4_prefix_count: it.prefixes.filter(|it| !it.ipv6).map(|it| it.count),
        ipv6_prefix_count: it.prefixes.filter(|it| it.ipv6).map(|it| it.count),
        connection_tracking_specification: it.connection_tracking.map(|it| ConnectionTracking {
            tcp_established_timeout: it.tcp_established,
            udp_stream_timeout: it.udp_stream,
            udp_timeout: it.udp,
        }),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MetadataOptions {
    http_endpoint: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_protocol_ipv6: Option<&'static str>,
    http_put_response_hop_limit: i64,
    http_tokens: &'static str,
    instance_metadata_tags: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CapacityReservationSpecification {
    capacity_reservation_preference: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_reservation_target: Option<Target>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Target {
    capacity_reservation_id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MarketOptions {
    market_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CpuOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    core_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads_per_core: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amd_sev_snp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nested_virtualization: Option<&'static str>,
}

fn cpu_options(cpu: &Cpu) -> CpuOptions {
    CpuOptions {
        core_count: cpu.cores,
        threads_per_core: cpu.threads_per_core,
        amd_sev_snp: cpu.amd_sev_snp.map(Switch::word),
        nested_virtualization: cpu.nested_virtualization.map(Switch::word),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Placement {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenancy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_number: Option<u32>,
}

fn placement(placement: &Where) -> Option<Placement> {
    let (group_name, group_id) = match &placement.group {
        None => (None, None),
        Some(PlacementGroup::Name(name)) => (Some(name.clone()), None),
        Some(PlacementGroup::Id(id)) => (None, Some(id.to_string())),
    };
    (*placement != Where::default()).then(|| Placement {
        tenancy: placement.tenancy.map(Tenancy::word),
        group_name,
        group_id,
        partition_number: placement.partition,
    })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TagSpecification {
    resource_type: String,
    tags: Vec<Tag>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    value: String,
}

fn tagged(resource_type: &str, template: &Template) -> TagSpecification {
    let tags = template.tags.iter();
    TagSpecification {
        resource_type: resource_type.to_owned(),
        tags: tags.map(|(key, value)| Tag { key: key.clone(), value: value.clone() }).collect(),
    }
}
