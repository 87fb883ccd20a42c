//! What does a machine know when it boots?
//!
//! What its user data tells a kubelet is what the claim says that it was made for. Reading it back from
//! the user data of five families would test our readers and not our engine; that the text says the same
//! is tested where it is rendered.

use std::collections::BTreeMap;

use nodemolt_core::bootstrap::identity::registered_labels;
use nodemolt_core::image::{Architecture, ImageId};
use nodemolt_core::lookup;
use nodemolt_core::seen::{Class, UNREGISTERED_TAINT};
use nodemolt_engine::claims::CLAIM_TAG;
use nodemolt_engine::port::Machine;
use nodemolt_fit::capacity::{Amounts, NodeSettings, offer};
use nodemolt_fit::{Family, InstanceType, label};
use serde_json::Value;

use super::World;
use crate::kinds;
use crate::kube::{Fate, NewMachine};

impl World {
    /// A machine runs, and its kubelet will join if nothing goes wrong.
    pub(super) fn machine_runs(&mut self, id: &str) {
        let now = self.now();
        let Some(machine) = self.region.machine(id).cloned() else { return };
        let claim = machine.tags.get(CLAIM_TAG).cloned().unwrap_or_default();
        let claim = self.kube.borrow().server.get(kinds::CLAIM, "", &claim).cloned();
        let fate = self.weather.fate(self.region.behaviour(&machine.image));
        let mut new = self.new_machine(&machine, claim.as_deref(), fate);
        new.taints.push((UNREGISTERED_TAINT.to_owned(), String::new(), "NoExecute".to_owned()));
        let due = self.kube.borrow_mut().machine_runs(new, now, &mut self.dice.kube);
        self.put_kube(due);
    }

    pub(super) fn new_machine(
        &self,
        machine: &Machine,
        claim: Option<&Value>,
        fate: Fate,
    ) -> NewMachine {
        let labels: BTreeMap<String, String> = claim
            .and_then(|it| it.pointer("/metadata/labels")?.as_object())
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let allowed = registered_labels(&labels);
        let mut labels: BTreeMap<String, String> =
            allowed.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        labels.insert(label::CAPACITY_TYPE.to_owned(), machine.capacity_type.clone());
        let taints = |field: &str| -> Vec<(String, String, String)> {
            let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
            let all = claim.and_then(|it| it["spec"].get(field)?.as_array());
            let all = all.into_iter().flatten();
            all.map(|it| (text(it, "key"), text(it, "value"), text(it, "effect"))).collect()
        };
        let startup = taints("startupTaints");
        let startup_taints = startup.iter().map(|(key, _, _)| key.clone()).collect();
        let instance_type = self.region.types().find(&machine.instance_type).ok();
        let offered = instance_type.map(|it| self.offer(it, claim)).unwrap_or_default();
        NewMachine {
            id: machine.id.0.clone(),
            instance_type: machine.instance_type.clone(),
            zone: machine.zone.clone(),
            labels,
            taints: taints("taints").into_iter().chain(startup).collect(),
            startup_taints,
            node_name: machine.private_dns.clone().unwrap_or_else(|| machine.id.0.clone()),
            image: machine.image.to_string(),
            kubelet_version: self.kubelet(&machine.image),
            architecture: self.architecture(&machine.image),
            allocatable: offered.1,
            capacity: offered.0,
            fate,
        }
    }

    /// By what its class says, or what AL2023 offers where the class cannot be found.
    fn offer(&self, instance_type: &InstanceType, claim: Option<&Value>) -> (Texts, Texts) {
        let text = |at: &str| claim.and_then(|it| it.pointer(at)?.as_str());
        let class = text("/spec/nodeClassRef/name").and_then(|name| {
            let group = text("/spec/nodeClassRef/group").unwrap_or_default();
            self.class(group, name)
        });
        let settings = class.map_or_else(|| NodeSettings::of(Family::Al2023), |it| it.offers);
        let offered = offer(instance_type, &settings);
        (texts(&offered.capacity), texts(&offered.allocatable))
    }

    fn class(&self, group: &str, name: &str) -> Option<Class> {
        use nodemolt_api::eyes::{Eyes, Watched};
        let (resource, watched) = if group == kinds::CLASS.group {
            (kinds::CLASS, Watched::OwnClass)
        } else {
            (kinds::KARPENTER_CLASS, Watched::KarpenterClass)
        };
        let found = self.kube.borrow().server.get(resource, "", name).cloned()?;
        let mut eyes = Eyes::default();
        eyes.applied(watched, &found);
        eyes.view().classes.values().next().cloned()
    }

    /// As the image's name tells it, or else like the API server.
    fn kubelet(&self, image: &ImageId) -> String {
        let found = self.region.image(image).and_then(lookup::kubelet_of);
        format!("v{}.2", found.unwrap_or(self.simulation.kubernetes))
    }

    fn architecture(&self, image: &ImageId) -> String {
        let found = self.region.image(image).map(|it| it.architecture.clone());
        let found = found.unwrap_or(Architecture::X86_64);
        found.kubernetes().unwrap_or("amd64").to_owned()
    }
}

type Texts = BTreeMap<String, String>;

fn texts(amounts: &Amounts) -> Texts {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
}
