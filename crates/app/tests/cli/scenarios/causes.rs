//! What is in the way on each page?
//!
//! Written by hand, from what each scenario puts into its world and not from what `explain` says of it:
//! every story that a page asks for names all of these, with kind, namespace and name, and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

/// A story that a page asked for.
pub(super) struct Asked {
    pub(super) about: String,
    pub(super) told: String,
    pub(super) story: Value,
    /// That the API server had made until then, in order.
    pub(super) claims: Vec<String>,
}

/// What has to be named. Names of pods and claims are made up as they come.
enum Is {
    /// Kind, namespace and name.
    Object(&'static str, &'static str, &'static str),
    /// A pod of this namespace whose name begins so.
    PodOf(&'static str, &'static str),
    /// The claim that was made as the first, the second and so on.
    Claim(usize),
}

use Is::{Claim, Object, PodOf};

const LEDGER: Is = Object("DisruptionLedger", "", "cluster");
const WEB: Is = Object("NodePool", "", "web");
const CART: Is = Object("PodDisruptionBudget", "shop", "cart");
const POLICY: Is = Object("ImagePolicy", "", "general");
const DEAD: Is = Object("Node", "", "ip-10-0-0-6");

macro_rules! parameter {
    ($flavour:literal) => {
        concat!(
            "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/",
            $flavour,
            "/recommended/image_id"
        )
    };
}

/// SSM is asked for all flavours at once.
const PARAMETERS: [Is; 5] = [
    Object("SSMParameter", "", parameter!("arm64/nvidia")),
    Object("SSMParameter", "", parameter!("arm64/standard")),
    Object("SSMParameter", "", parameter!("x86_64/neuron")),
    Object("SSMParameter", "", parameter!("x86_64/nvidia")),
    Object("SSMParameter", "", parameter!("x86_64/standard")),
];

/// Page, whom it asks about, what has to be named, and what has to be read. In the order of the page.
const ALL: &[(&str, &str, &[Is], &[&str])] = &[
    // Nothing holds it: the machine that was asked for before the crash is on its way, and there is one.
    ("crash-and-resume", "node-0", &[Claim(0)], &["successor web-"]),
    ("do-not-evict", "pool/web", &[Object("Pod", "shop", "import-0")], &["do-not-evict"]),
    ("do-not-evict", "shop/import-0", &[Object("Pod", "shop", "import-0")], &["do-not-evict"]),
    ("expiry", "node-1", &[LEDGER, WEB], &["node-0"]),
    // That it goes first is the policy's word. The other one waits for the slot, as everywhere.
    ("full-reservation", "node-0", &[POLICY], &["DeleteFirst", "before its successor"]),
    ("full-reservation", "node-1", &[LEDGER, WEB], &["node-0"]),
    ("kept-successor", "node-0", &[CART], &["5 healthy, 5 wanted"]),
    ("kept-successor", "node-0", &[CART, PodOf("shop", "cart-")], &["kept", "next try"]),
    ("limits-reached", "node-0", &[WEB], &["limits", "cpu"]),
    ("never-joins", "node-0", &[Claim(0)], &["to join, until"]),
    (
        "never-joins",
        "node-0",
        &[Claim(0), Object("Node", "", "node-1"), LEDGER, WEB],
        &["did not join", "next try"],
    ),
    ("never-joins", "node-1", &[Claim(1)], &["to join, until"]),
    ("pdb-never-allows", "node-0", &[CART], &["allows no disruption"]),
    ("scheduling-mishap", "node-a", &[Claim(0)], &["successor web-"]),
    ("successor-dies", "node-0", &[CART, DEAD], &["has ended", "next try"]),
    ("successor-dies", "node-0", &[DEAD], &["has ended", "next try"]),
    ("throttled-ssm", "node-0", &PARAMETERS, &["AWS SSM", "throttled", "asked again"]),
    // Two believe that they lead; what holds is the ledger, which has one slot for both.
    ("two-leaders", "node-1", &[LEDGER, WEB], &["node-0"]),
    ("two-nodes-budget-one", "node-0", &[Claim(0)], &["joining"]),
    (
        "two-nodes-budget-one",
        "node-1",
        &[Object("Node", "", "node-0"), LEDGER, WEB],
        &["ReplicaSet default/shop-"],
    ),
    ("two-nodes-budget-one", "", &[], &["0 drifted", "nothing to do"]),
    ("unequal-nodes-count", "large-0", &[POLICY], &["2 of 2 nodes", "small-1", "small-3"]),
    ("unequal-nodes-cpu", "large-0", &[POLICY], &["processors", "small-1", "small-2", "small-3"]),
    // Nothing holds it either: a person has decided, and it goes.
    ("user-deletes-the-node", "node-0", &[], &["(deleted)"]),
];

/// What the stories of a page do not name, and what they name besides.
pub(super) fn wrong(page: &str, asked: &[Asked]) -> Vec<String> {
    let expected: Vec<_> = ALL.iter().filter(|it| it.0 == page).collect();
    assert!(!expected.is_empty(), "nothing is expected of {page}; write it down in the table");
    let found: Vec<&str> = asked.iter().map(|it| it.about.as_str()).collect();
    let written: Vec<&str> = expected.iter().map(|it| it.1).collect();
    assert_eq!(found, written, "{page} asks for other stories than the table");
    let mut wrong = Vec::new();
    for (asked, (_, _, causes, words)) in asked.iter().zip(expected) {
        let mut named = named(&asked.story);
        for is in *causes {
            let before = named.len();
            named.retain(|it| !is.meant(it, &asked.claims));
            if named.len() == before {
                let is = is.shown(&asked.claims);
                wrong.push(format!("{is} is not named in\n{}", asked.told));
            }
        }
        wrong.extend(named.iter().map(|it| format!("{it:?} is named in\n{}", asked.told)));
        for word in words.iter().filter(|it| !asked.told.contains(**it)) {
            wrong.push(format!("`{word}` is not said in\n{}", asked.told));
        }
    }
    wrong
}

fn named(story: &Value) -> BTreeSet<(String, String, String)> {
    let causes = story["causes"].as_array().unwrap().iter().map(|it| &it["named"]);
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    causes.map(|it| (text(it, "kind"), text(it, "namespace"), text(it, "name"))).collect()
}

impl Is {
    fn meant(&self, (kind, namespace, name): &(String, String, String), claims: &[String]) -> bool {
        match self {
            Object(of, within, called) => kind == of && namespace == within && name == called,
            PodOf(within, begin) => kind == "Pod" && namespace == within && name.starts_with(begin),
            Claim(number) => kind == "NodeClaim" && Some(name) == claims.get(*number),
        }
    }

    fn shown(&self, claims: &[String]) -> String {
        match self {
            Object(kind, namespace, name) => format!("{kind} {namespace}/{name}"),
            PodOf(namespace, begin) => format!("a Pod {namespace}/{begin}…"),
            Claim(number) => format!("NodeClaim {number} of {claims:?}"),
        }
    }
}

/// Of what happened: the news come from the API server's own objects.
pub(super) fn claims_made(told: &str) -> Vec<String> {
    let made = |it: &str| {
        let (_, after) = it.split_once("   NodeClaim ")?;
        after.strip_suffix(" is made").map(str::to_owned)
    };
    told.lines().filter_map(made).collect()
}
