//! Do some pods fit on some nodes, all of them at once?
//!
//! By trying: whoever asks for most first, on every node that would take it, until all have a place or nothing is
//! left to try. So many tries and no more: then nothing is said, and that is counted.

use serde_json::Value;

use super::read::{self, at, items, text};
use super::world::DISRUPTED_TAINT;

/// So many places are tried.
const TRIES: u32 = 20_000;

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// Processor and memory in thousandths, and pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) cpu: i128,
    pub(super) memory: i128,
    pub(super) pods: i128,
}

impl Amounts {
    pub(super) fn of(pod: &Value) -> Self {
        let of = |container: &Value, resource: &str| {
            read::quantity(at(container, &["resources", "requests", resource]))
        };
        let sum = |resource: &str| {
            items(pod, &["spec", "containers"]).map(|it| of(it, resource)).sum::<i128>()
        };
        Self { cpu: sum("cpu"), memory: sum("memory"), pods: 1 }
    }

    pub(super) fn fits(self, free: Self) -> bool {
        self.cpu <= free.cpu && self.memory <= free.memory && self.pods <= free.pods
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            memory: self.memory + other.memory,
            pods: self.pods + other.pods,
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            cpu: (self.cpu - other.cpu).max(0),
            memory: (self.memory - other.memory).max(0),
            pods: (self.pods - other.pods).max(0),
        }
    }
}

/// A node that takes pods.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) node: &'a Value,
    pub(super) free: Amounts,
    /// Those that are there already.
    pub(super) pods: Vec<&'a Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packed {
    Fit,
    /// And one that would not even fit alone, if there is such a one.
    Not(Option<String>),
    Unsure,
}

pub(super) fn pack(pods: &[&Value], places: &[Place<'_>]) -> Packed {
    let mut tray: Vec<Asks<'_>> = Vec::new();
    for pod in pods {
        let asks = Amounts::of(pod);
        let may: Vec<usize> = (0..places.len())
            .filter(|it| asks.fits(places[*it].free) && admits(places[*it].node, pod))
            .filter(|it| places[*it].pods.iter().all(|other| together(pod, other)))
            .collect();
        if may.is_empty() {
            let name = format!("{}/{}", read::namespace(pod), read::name(pod));
            return Packed::Not(Some(name));
        }
        tray.push(Asks { pod, amounts: asks, may });
    }
    let free = |all: &[Place<'_>]| all.iter().fold(Amounts::default(), |sum, it| sum.plus(it.free));
    let wanted = tray.iter().fold(Amounts::default(), |sum, it| sum.plus(it.amounts));
    if !wanted.fits(free(places)) {
        return Packed::Not(None);
    }
    // Who has fewest choices and asks for most is hardest to place.
    tray.sort_by_key(|it| (it.may.len(), -it.amounts.cpu, -it.amounts.memory));
    let mut left = TRIES;
    let mut places = places.to_vec();
    if place(&tray, &mut places, &mut left) {
        Packed::Fit
    } else if left == 0 {
        Packed::Unsure
    } else {
        Packed::Not(None)
    }
}

struct Asks<'a> {
    pod: &'a Value,
    amounts: Amounts,
    may: Vec<usize>,
}

fn place<'a>(tray: &[Asks<'a>], places: &mut [Place<'a>], left: &mut u32) -> bool {
    let Some((first, rest)) = tray.split_first() else { return true };
    for (nth, at) in first.may.iter().enumerate() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let here = &places[*at];
        // Of two that are alike one is enough.
        let tried = first.may[..nth].iter().any(|it| {
            places[*it].free == here.free
                && places[*it].pods.is_empty()
                && here.pods.is_empty()
                && read::labels(places[*it].node) == read::labels(here.node)
        });
        let fits = first.amounts.fits(here.free);
        if tried || !fits || !here.pods.iter().all(|it| together(first.pod, it)) {
            continue;
        }
        let before = here.free;
        places[*at].free = before.minus(first.amounts);
        places[*at].pods.push(first.pod);
        if place(rest, places, left) {
            return true;
        }
        places[*at].pods.pop();
        places[*at].free = before;
    }
    false
}

/// What a pod says that nobody here reads: then nothing is said about it.
pub(super) fn says_more(pod: &Value) -> bool {
    let affinity = |kind: &str| {
        let terms = "requiredDuringSchedulingIgnoredDuringExecution";
        at(pod, &["spec", "affinity", kind, terms]).and_then(Value::as_array).into_iter().flatten()
    };
    let fields = items(pod, NODE_TERMS).any(|it| at(it, &["matchFields"]).is_some());
    let far = affinity("podAntiAffinity").any(|it| {
        text(it, &["topologyKey"]) != Some(HOSTNAME)
            || at(it, &["namespaces"]).is_some()
            || at(it, &["namespaceSelector"]).is_some()
    });
    let spread = items(pod, &["spec", "topologySpreadConstraints"])
        .any(|it| text(it, &["whenUnsatisfiable"]) == Some("DoNotSchedule"));
    let volume = items(pod, &["spec", "volumes"])
        .any(|it| at(it, &["persistentVolumeClaim"]).is_some() || at(it, &["ephemeral"]).is_some());
    let ports = items(pod, &["spec", "containers"])
        .flat_map(|it| items(it, &["ports"]))
        .any(|it| at(it, &["hostPort"]).is_some());
    let near = affinity("podAffinity").next().is_some();
    let first = items(pod, &["spec", "initContainers"]).next().is_some();
    fields || far || spread || volume || ports || near || first
}

const NODE_TERMS: &[&str] = &[
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// Kubernetes puts them on in the moment in which a node stops being ready.
const UNREADY_TAINTS: [&str; 2] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Taints, the plain selector, and what the pod requires of a node's labels.
pub(super) fn admits(node: &Value, pod: &Value) -> bool {
    let selector = at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    let labels = read::labels(node);
    let selected = selector.is_none_or(|it| {
        it.iter().all(|(key, value)| labels.and_then(|it| it.get(key)) == Some(value))
    });
    let mut terms = items(pod, NODE_TERMS).peekable();
    let required = terms.peek().is_none() || terms.any(|it| term(it, node));
    selected
        && required
        && items(node, &["spec", "taints"]).all(|it| {
            let word = |key| text(it, &[key]).unwrap_or_default();
            // Ours may have come a moment ago, and so may those of a node that is not ready any more; whoever chose the
            // places has looked at both.
            word("key") == DISRUPTED_TAINT
                || UNREADY_TAINTS.contains(&word("key"))
                || word("effect") == "PreferNoSchedule"
                || read::tolerates(pod, word("key"), word("value"), word("effect"))
        })
}

fn term(term: &Value, node: &Value) -> bool {
    items(term, &["matchExpressions"]).all(|it| {
        let own = read::label(node, text(it, &["key"]).unwrap_or_default());
        let among = |own: &str| items(it, &["values"]).any(|value| value.as_str() == Some(own));
        let figure = items(it, &["values"]).find_map(|it| it.as_str()?.parse::<i64>().ok());
        let own_figure = own.and_then(|it| it.parse::<i64>().ok());
        match text(it, &["operator"]) {
            Some("In") => own.is_some_and(among),
            Some("NotIn") => !own.is_some_and(among),
            Some("Exists") => own.is_some(),
            Some("DoesNotExist") => own.is_none(),
            Some("Gt") => own_figure.zip(figure).is_some_and(|(own, it)| own > it),
            Some("Lt") => own_figure.zip(figure).is_some_and(|(own, it)| own < it),
            Some(_) | None => false,
        }
    })
}

/// Whether two pods can be on one node: neither keeps the other away.
fn together(one: &Value, other: &Value) -> bool {
    let keeps = |pod: &Value, away: &Value| {
        let path = [
            "spec",
            "affinity",
            "podAntiAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ];
        read::namespace(pod) == read::namespace(away)
            && items(pod, &path).any(|it| {
                text(it, &["topologyKey"]) == Some(HOSTNAME)
                    && read::selects(at(it, &["labelSelector"]), read::labels(away))
            })
    };
    !keeps(one, other) && !keeps(other, one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(cpu: &str, apart: bool) -> Value {
        let term =
            json!([{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}]);
        let affinity =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "db"}},
            "spec": {
                "affinity": if apart { affinity } else { json!({}) },
                "containers": [{"resources": {"requests": {"cpu": cpu}}}],
            },
        })
    }

    #[test]
    fn pods_fit_if_there_is_a_way() {
        let node = json!({"metadata": {"labels": {}}});
        let cases: [(&[&str], &[i128], bool, Packed); 5] = [
            (&["500m", "500m"], &[1000], false, Packed::Fit),
            // Each alone has a place, and all together are not too much; but no two fit on one node.
            (&["600m", "600m", "600m"], &[1000, 1000], false, Packed::Not(None)),
            // The largest first is not enough: it must be tried elsewhere.
            (&["600m", "500m", "500m"], &[1000, 600], false, Packed::Fit),
            (&["100m", "100m"], &[1000], true, Packed::Not(None)),
            (&["2"], &[1000, 1000], false, Packed::Not(Some("n/p".to_owned()))),
        ];
        for (asks, free, apart, packed) in cases {
            let pods: Vec<Value> = asks.iter().map(|it| pod(it, apart)).collect();
            let pods: Vec<&Value> = pods.iter().collect();
            let places: Vec<Place<'_>> = free
                .iter()
                .map(|it| Place {
                    node: &node,
                    free: Amounts { cpu: *it, memory: 1000, pods: 10 },
                    pods: Vec::new(),
                })
                .collect();
            assert_eq!(pack(&pods, &places), packed, "{asks:?} on {free:?}");
        }
    }
}
