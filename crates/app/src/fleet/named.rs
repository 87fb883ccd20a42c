//! Whom does a person mean?
//!
//! `what was typed × what is there → node, pool or pod`, or what was probably meant.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_core::drain::PodId;
use nodemolt_core::explain::{self, Fact, Story};
use nodemolt_core::seen::ClassKey;
use nodemolt_engine::Picture;
use nodemolt_sim::{World, kinds};
use serde_json::Value;

use crate::output::Failure;
use crate::sim::nearest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Node(String),
    Pool(String),
    Pod { namespace: String, name: String },
}

/// All that has a name, and can be asked about.
#[derive(Debug, Default)]
pub(crate) struct Names {
    nodes: BTreeSet<String>,
    /// Each with its class, those without nodes too.
    pub(crate) pools: BTreeMap<String, Option<String>>,
    /// Namespace and name.
    pods: BTreeSet<(String, String)>,
    /// By claim: its node, once it has one.
    claims: BTreeMap<String, Option<String>>,
}

impl Names {
    pub(crate) fn new(world: &World, picture: &Picture) -> Self {
        let text = |it: &Value, at: &str| it.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let name = |it: &Value| text(it, "/metadata/name").unwrap_or_default();
        let mut pools: BTreeMap<String, Option<String>> = BTreeMap::new();
        // A pool may be gone, and its nodes still be there.
        for node in picture.fleet.nodes.values() {
            let pool = node.member.pool.clone().map(|it| (it, node.member.class.clone()));
            pools.extend(pool);
        }
        for it in world.objects(kinds::POOL) {
            let class = |key: &str| text(&it, &format!("/spec/template/spec/nodeClassRef/{key}"));
            let class = class("group").zip(class("name"));
            let class = class.map(|(group, name)| ClassKey { group, name }.to_string());
            pools.insert(name(&it), class);
        }
        let pods = world.objects(kinds::POD);
        let pods =
            pods.iter().map(|it| (text(it, "/metadata/namespace").unwrap_or_default(), name(it)));
        let claims = world.objects(kinds::CLAIM);
        let claims = claims.iter().map(|it| (name(it), text(it, "/status/nodeName")));
        // One that is missing can be asked about: that is when people ask.
        let missing = picture.doubted.missing_nodes().map(str::to_owned);
        Self {
            nodes: picture.fleet.nodes.keys().cloned().chain(missing).collect(),
            pools,
            pods: pods.collect(),
            claims: claims.collect(),
        }
    }

    pub(super) fn find(&self, asked: &str) -> Result<Named, Failure> {
        self.there(asked)?.ok_or_else(|| self.unknown_node_or_pool(asked))
    }

    /// A node before a pool before a pod, unless it says which.
    pub(super) fn there(&self, asked: &str) -> Result<Option<Named>, Failure> {
        Ok(match asked.split_once('/') {
            Some(("node" | "nodes" | "no", name)) if self.nodes.contains(name) => self.node(name),
            Some(("pool" | "pools" | "nodepool" | "nodepools", name))
                if self.pools.contains_key(name) =>
            {
                self.pool(name)
            }
            Some(("pod" | "pods" | "po", name)) => match self.pod(name)? {
                Some(it) => Some(it),
                // A namespace can have that name.
                None => self.pod(asked)?,
            },
            Some(_) => self.pod(asked)?,
            None => match self.node(asked).or_else(|| self.pool(asked)) {
                Some(it) => Some(it),
                None => self.pod(asked)?,
            },
        })
    }

    /// The story of a claim: of its node, or how far it is; or of what is gone, by its name or its claim's.
    pub(super) fn claim_or_gone(&self, picture: &Picture, asked: &str) -> Option<Story> {
        let (world, now) = (picture.world(), picture.at);
        let (is_node, name) = match asked.split_once('/') {
            Some(("node" | "nodes" | "no", name)) => (true, name),
            Some(("claim" | "nodeclaim" | "nodeclaims", name)) => (false, name),
            Some(_) => return None,
            None => (false, asked),
        };
        let claim = self.claims.get(name).filter(|_| !is_node);
        let there = claim.and_then(|node| match node {
            Some(node) => explain::explain(&world, node, now),
            None => explain::explain_claim(&world, name, now),
        });
        there.or_else(|| explain::explain_gone(&world, name, now))
    }

    fn node(&self, name: &str) -> Option<Named> {
        self.nodes.get(name).cloned().map(Named::Node)
    }

    fn pool(&self, name: &str) -> Option<Named> {
        self.pools.contains_key(name).then(|| Named::Pool(name.to_owned()))
    }

    /// In two namespaces: it has to be said which.
    fn pod(&self, asked: &str) -> Result<Option<Named>, Failure> {
        let (namespace, name) = match asked.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, asked),
        };
        let meant = |it: &&(String, String)| {
            it.1 == name && namespace.is_none_or(|namespace| namespace == it.0)
        };
        let found: Vec<&(String, String)> = self.pods.iter().filter(meant).collect();
        match found.as_slice() {
            [] => Ok(None),
            [(namespace, name)] => {
                Ok(Some(Named::Pod { namespace: namespace.clone(), name: name.clone() }))
            }
            [(first, _), ..] => {
                let all: Vec<String> = found.iter().map(|it| format!("in {}", it.0)).collect();
                let message = format!("there are pods `{name}` {}", all.join(" and "));
                Err(Failure::usage(message)
                    .hint(format!("say which, for example `{first}/{name}`")))
            }
        }
    }

    pub(super) fn unknown(&self, asked: &str) -> Failure {
        self.unknown_among(asked, "node, no pool, and no pod", true)
    }

    /// For whoever takes nodes and pools only.
    fn unknown_node_or_pool(&self, asked: &str) -> Failure {
        self.unknown_among(asked, "node, and no pool", false)
    }

    fn unknown_among(&self, asked: &str, all: &str, or_pod: bool) -> Failure {
        let (kind, name) = match asked.split_once('/') {
            Some(("node" | "nodes" | "no", name)) => ("node", name),
            Some(("pool" | "pools" | "nodepool" | "nodepools", name)) => ("pool", name),
            Some(("pod" | "pods" | "po", name)) => ("pod", name),
            Some(_) => ("pod", asked),
            None => ("", asked),
        };
        let failure = Failure::usage(match kind {
            "" => format!("`{name}` is no {all}"),
            kind => format!("there is no {kind} `{name}`"),
        });
        if let Some(node) = self.claims.get(name) {
            return failure.hint(match node {
                Some(node) => format!("it is a NodeClaim, of node `{node}`: ask for that one"),
                None => "it is a NodeClaim, and no node yet: ask for the node that it succeeds, \
                         which `nodemolt plan` lists"
                    .to_owned(),
            });
        }
        let pods: Vec<String> =
            self.pods.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        let of = |wanted: &str| kind == wanted || (kind.is_empty() && (or_pod || wanted != "pod"));
        let nodes = self.nodes.iter().map(String::as_str).filter(|_| of("node"));
        let pools = self.pools.keys().map(String::as_str).filter(|_| of("pool"));
        let pods = pods.iter().map(String::as_str).filter(|_| of("pod"));
        match nearest(name, nodes.chain(pools).chain(pods)) {
            Some(near) => {
                let lists = "`nodemolt status -o wide` lists all nodes";
                failure.hint(format!("is `{near}` meant? {lists}"))
            }
            None => failure.hint("`nodemolt status -o wide` lists all nodes"),
        }
    }
}

/// Of a pod of which the engine has nothing to tell: it is on no node that is ours to replace.
pub(super) fn bystander(world: &World, namespace: &str, name: &str) -> Option<Story> {
    let pods = world.objects(kinds::POD);
    let text = |it: &Value, at: &str| it.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let pod = pods.iter().find(|it| {
        text(it, "/metadata/namespace").as_deref() == Some(namespace)
            && text(it, "/metadata/name").as_deref() == Some(name)
    })?;
    let id = PodId { namespace: namespace.to_owned(), name: name.to_owned(), uid: String::new() };
    let mut facts = vec![
        Fact { label: "pod", text: id.to_string() },
        Fact {
            label: "node",
            text: text(pod, "/spec/nodeName").unwrap_or_else(|| "none".to_owned()),
        },
    ];
    let phase = text(pod, "/status/phase").unwrap_or_else(|| "Unknown".to_owned());
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let scheduled = conditions.into_iter().flatten().find(|it| it["type"] == "PodScheduled");
    let why = scheduled.filter(|it| it["status"] == "False").and_then(|it| text(it, "/message"));
    let phase = match why {
        Some(why) => format!("{}: {why}", phase.to_lowercase()),
        None => phase.to_lowercase(),
    };
    facts.push(Fact { label: "phase", text: phase });
    let next = "nothing to do: nodemolt did not move it, and launches nothing for it".to_owned();
    Some(Story { about: "pod", name: id.to_string(), facts, causes: Vec::new(), next })
}
