//! Which extended resources are devices?
//!
//! A `DeviceClass` may give its devices out as an extended resource. Which node has one left then stands in resource
//! slices and claims, not in what the node can allocate.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

pub(super) const KIND: &str = "DeviceClass";
/// In every version: what is read here is the same in all.
pub(super) const GROUP: &str = "resource.k8s.io/";

/// Says of a pod that what it asks for as an extended resource was given to it as a device. The field is younger than the
/// types that pods are read with.
pub(crate) const GIVEN: &str = "status.extendedResourceClaimStatus";

/// The rest is named so that a misspelt field is told from one that is only of no interest here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeviceClass {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    extended_resource_name: Option<String>,
    #[serde(rename = "selectors")]
    _selectors: Option<Value>,
    #[serde(rename = "config")]
    _config: Option<Value>,
}

impl DeviceClass {
    /// The resource, and the name of the class.
    pub(super) fn gives_out(self) -> Option<(String, String)> {
        let resource = self.spec.extended_resource_name.filter(|it| !it.is_empty())?;
        Some((resource, super::name(&self.metadata).to_owned()))
    }
}
