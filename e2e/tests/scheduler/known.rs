//! Where does the scheduler not do what is documented?
//!
//! A `namespaceSelector` in a pod's own term that a namespace without labels would meet (`NotIn`, `DoesNotExist`) means
//! all namespaces to kube-scheduler 1.36.4: `mergeAffinityTermNamespacesIfNotEmpty` clears the selector of a copy, and
//! the one that is left is then compared with no labels at all. Of pods to be avoided we count both whom it means and whom
//! the scheduler takes for them, and such terms are in the worlds. Of pods to be near, only whom it means: then both will
//! have the pod there. So in this one case the scheduler finds a node and we know none.

use std::{collections::BTreeMap, sync::Arc};

use nodemolt_fit::{
    Operator, Quantity, label,
    node::Node,
    pod::{Demand, Namespace, Pod, PodTerm},
    selector::Selector,
};

use crate::{
    generated::{asked, labels},
    worlds::{Case, NAMESPACES, canary},
};

/// A pod that wants to be near one of another team, and there is none.
pub(crate) fn misread_namespaces() -> Case {
    let (name, team) = NAMESPACES[0];
    let namespace = Arc::new(Namespace::new(name, labels(&[("team", team)])));
    let own_team = Demand { labels: labels(&[("app", "web")]), ..Demand::default() };
    let near = PodTerm {
        topology_key: label::ZONE.to_owned(),
        selector: Selector::labels([("app", "web")]),
        namespace_selector: Some(Selector::All(vec![asked("team", Operator::NotIn, &[team])])),
        ..PodTerm::default()
    };
    let choosy = Demand { affinity: vec![near], ..Demand::default() };
    let node = Node {
        name: "node".to_owned(),
        labels: labels(&[(label::ZONE, "a")]),
        initialised: true,
        allocatable: BTreeMap::from([("pods".to_owned(), Quantity::from_units(9))]),
        pods: vec![Pod::new(&namespace, "web", &Arc::new(own_team))],
        ..Node::default()
    };
    Case {
        number: 0,
        theme: "namespace selectors",
        nodes: vec![node, canary()],
        asked: vec![Pod::new(&namespace, "choosy", &Arc::new(choosy))],
        waiting: None,
    }
}
