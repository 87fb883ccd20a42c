//! What does a node still have, and does it let this pod in?

use std::collections::BTreeMap;
use std::rc::Rc;

use nodemolt_fit::Quantity;
use serde_json::Value;

use super::terms;
use crate::json::{at, items, members, text, whole};
use crate::selector::tolerates;

/// What a pod requests, in thousandths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    amounts: Vec<(String, i128)>,
    ports: Vec<i64>,
}

impl Wants {
    /// All containers and sidecars together, or the init container that needs most, whichever is more.
    pub(super) fn of(pod: &Value) -> Self {
        let mut together: BTreeMap<String, i128> = BTreeMap::new();
        let mut ports = Vec::new();
        let requests = |container: &Value| -> Vec<(String, i128)> {
            let mut read: BTreeMap<String, i128> = BTreeMap::new();
            for path in [["resources", "limits"], ["resources", "requests"]] {
                let said = members(container, &path);
                read.extend(said.map(|(name, amount)| (name.clone(), millis(amount))));
            }
            read.into_iter().collect()
        };
        for container in items(pod, &["spec", "containers"]) {
            for (name, amount) in requests(container) {
                *together.entry(name).or_default() += amount;
            }
            let listed = items(container, &["ports"]).iter();
            ports.extend(listed.filter_map(|it| whole(it, &["hostPort"])).filter(|it| *it > 0));
        }
        let mut at_start: BTreeMap<String, i128> = BTreeMap::new();
        for container in items(pod, &["spec", "initContainers"]) {
            let stays = text(container, &["restartPolicy"]) == "Always";
            for (name, amount) in requests(container) {
                if stays {
                    *together.entry(name).or_default() += amount;
                } else {
                    let most = at_start.entry(name).or_default();
                    *most = (*most).max(amount);
                }
            }
        }
        for (name, amount) in at_start {
            let most = together.entry(name).or_default();
            *most = (*most).max(amount);
        }
        for (name, amount) in members(pod, &["spec", "overhead"]) {
            *together.entry(name.clone()).or_default() += millis(amount);
        }
        together.insert("pods".to_owned(), 1000);
        together.retain(|_, amount| *amount != 0);
        Self { amounts: together.into_iter().collect(), ports }
    }
}

#[derive(Debug)]
pub(crate) struct Room {
    pub(super) node: Rc<Value>,
    pub(super) pods: Vec<Rc<Value>>,
    /// Which of them want others away from them: few, and looked for at every pod that comes.
    keep_away: Vec<usize>,
    offers: BTreeMap<String, i128>,
    taken: BTreeMap<String, i128>,
    ports: Vec<i64>,
}

impl Room {
    pub(super) fn of(node: Rc<Value>) -> Self {
        let said = members(&node, &["status", "allocatable"]);
        let offers = said.map(|(name, amount)| (name.clone(), millis(amount))).collect();
        Self {
            node,
            pods: Vec::new(),
            keep_away: Vec::new(),
            offers,
            taken: BTreeMap::new(),
            ports: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        text(&self.node, &["metadata", "name"])
    }

    pub(super) fn take(&mut self, pod: Rc<Value>, wants: &Wants) {
        if !["Succeeded", "Failed"].contains(&text(&pod, &["status", "phase"])) {
            for (name, amount) in &wants.amounts {
                *self.taken.entry(name.clone()).or_default() += amount;
            }
            self.ports.extend(&wants.ports);
            if !terms::required(&pod, "podAntiAffinity").is_empty() {
                self.keep_away.push(self.pods.len());
            }
            self.pods.push(pod);
        }
    }

    pub(super) fn keep_away(&self) -> impl Iterator<Item = &Rc<Value>> {
        self.keep_away.iter().filter_map(|it| self.pods.get(*it))
    }

    /// All that concerns this node alone.
    pub(super) fn admits(&self, pod: &Value, wants: &Wants) -> bool {
        self.open_to(pod) && self.fits(wants) && terms::node_wanted(pod, &self.node)
    }

    fn fits(&self, wants: &Wants) -> bool {
        let free = |name: &str| {
            let taken = self.taken.get(name).copied().unwrap_or(0);
            self.offers.get(name).copied().unwrap_or(0) - taken
        };
        wants.amounts.iter().all(|(name, amount)| *amount <= free(name))
            && wants.ports.iter().all(|it| !self.ports.contains(it))
    }

    /// Taints and cordons.
    fn open_to(&self, pod: &Value) -> bool {
        let tolerations = items(pod, &["spec", "tolerations"]);
        let cordoned = at(&self.node, &["spec", "unschedulable"]) == Some(&Value::Bool(true));
        let cordon = serde_json::json!({
            "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
        });
        let stands = |taint: &Value| tolerations.iter().any(|it| tolerates(it, taint));
        (!cordoned || stands(&cordon))
            && items(&self.node, &["spec", "taints"])
                .iter()
                .filter(|it| text(it, &["effect"]) != "PreferNoSchedule")
                .all(stands)
    }

    pub(super) fn soft_taints(&self, pod: &Value) -> usize {
        let tolerations = items(pod, &["spec", "tolerations"]);
        items(&self.node, &["spec", "taints"])
            .iter()
            .filter(|it| text(it, &["effect"]) == "PreferNoSchedule")
            .filter(|taint| !tolerations.iter().any(|it| tolerates(it, taint)))
            .count()
    }

    /// How full CPU and memory would be together, in thousandths.
    pub(super) fn full(&self, wants: &Wants) -> i128 {
        let share = |name: &str| {
            let asked = wants.amounts.iter().find(|(it, _)| it == name).map_or(0, |(_, it)| *it);
            let taken = self.taken.get(name).copied().unwrap_or(0) + asked;
            taken * 1000 / self.offers.get(name).copied().unwrap_or(1).max(1)
        };
        share("cpu") + share("memory")
    }
}

/// What cannot be read is nothing; the API server would have refused it.
fn millis(amount: &Value) -> i128 {
    let read = match amount {
        Value::String(text) => text.parse::<Quantity>().ok(),
        Value::Number(number) => number.as_i64().map(Quantity::from_units),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    read.map_or(0, Quantity::ceil_millis)
}
