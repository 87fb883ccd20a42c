//! The two servers, side by side.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use nodemolt_cluster::Adapter;
use nodemolt_cluster::live::Live;
use nodemolt_cluster::resources::{LEDGER, WATCHED};
use nodemolt_cluster::transport::{Answer, Heard, Refusal, Request, Resource, Transport};
use nodemolt_rig::{Parts, Rig};
use nodemolt_sim::api_server::{ApiServer, What};
use nodemolt_sim::trace::{Actor, Trace};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::acts::{Act, Side};
use crate::same::{self, COMPARED};

/// Where pods of all sequences are.
pub(crate) const NAMESPACE: &str = "contract";
/// One that is being deleted, and never goes.
pub(crate) const GOING: &str = "contract-going";
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(30);

/// The simulated one, on the clock of the real one.
pub(crate) struct Simulated {
    server: RefCell<ApiServer>,
}

impl Transport for Simulated {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        self.server.borrow_mut().handle(Actor::Operator(0), request, Timestamp::now())
    }
}

/// By kind and name: what a watch told, as `ADDED` and so on.
type Told = BTreeMap<(Resource, String), Vec<(What, Value)>>;

pub(crate) struct Pair {
    _rig: Rig,
    real: Live,
    simulated: Simulated,
    /// What watches told of the real one.
    told: Rc<RefCell<Told>>,
    heard: Rc<Adapter<Live>>,
    /// The ledger is one for all: who writes it goes alone.
    pub(crate) alone: Mutex<()>,
}

impl Pair {
    /// With watches on the real one. Inside a `LocalSet`.
    pub(crate) async fn start() -> Self {
        // One of its own: there is one ledger, and both servers must have the same history.
        let rig = Rig::start(Parts::default()).unwrap_or_else(|it| panic!("{it}"));
        let crds: Vec<String> = nodemolt_api::crd::all()
            .iter()
            .map(|it| serde_json::to_string(&(it.definition)()).unwrap())
            .collect();
        rig.apply_crds(&crds.join("\n---\n")).unwrap();
        let kubeconfig = Kubeconfig::read_from(rig.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.proxy_url = None;
        let real = Live::connect(config).unwrap();
        let server = ApiServer::new(Trace::default(), Timestamp::now());
        let simulated = Simulated { server: RefCell::new(server) };
        let heard = Rc::new(Adapter::new(real.clone()));
        let pair = Self {
            _rig: rig,
            told: Rc::new(RefCell::new(BTreeMap::new())),
            alone: Mutex::new(()),
            real,
            simulated,
            heard,
        };
        let side = (pair.side_real("setup"), pair.side_simulated("setup"));
        for name in [NAMESPACE, GOING] {
            for made in [side.0.namespace(name).await, side.1.namespace(name).await] {
                assert!(["201", "409 AlreadyExists"].contains(&made.as_str()), "{made}");
            }
        }
        pair.listen().await;
        pair
    }

    async fn listen(&self) {
        for resource in COMPARED {
            let (real, told) = (self.real.clone(), Rc::clone(&self.told));
            let heard = Rc::clone(&self.heard);
            tokio::task::spawn_local(async move {
                let mut known = BTreeSet::new();
                real.watch(resource, |it| {
                    heard.hear(resource, &it, Timestamp::now());
                    let (what, object) = match it {
                        Heard::Applied(object) => {
                            let new = known.insert(uid(&object));
                            (if new { What::Added } else { What::Modified }, object)
                        }
                        Heard::Deleted(object) => (What::Deleted, object),
                        Heard::Listed(_) | Heard::Current => return,
                    };
                    let key = (resource, name(&object));
                    told.borrow_mut().entry(key).or_default().push((what, object));
                })
                .await;
            });
        }
        let all = COMPARED.map(|it| nodemolt_cluster::resources::watched(it).unwrap().kind());
        self.until("every list is there", || {
            let view = self.heard.seen();
            all.iter().all(|it| view.fresh.contains_key(it))
        })
        .await;
        assert_eq!(WATCHED.len(), COMPARED.len(), "a kind that is new has to be compared, too");
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let since = std::time::Instant::now();
        while !holds() {
            assert!(since.elapsed() < CAUGHT_UP_WITHIN, "not in time: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn side_real(&self, prefix: &str) -> Side<'_, Live> {
        Side::new(&self.real, prefix)
    }

    pub(crate) fn side_simulated(&self, prefix: &str) -> Side<'_, Simulated> {
        Side::new(&self.simulated, prefix)
    }

    /// Does the same on both, and says what both answered, or where they differ.
    pub(crate) async fn run(&self, prefix: &str, acts: &[Act]) -> Result<Vec<String>, String> {
        self.done(prefix, acts, false).await
    }

    /// And loses the watches afterwards.
    pub(crate) async fn run_and_lose(
        &self,
        prefix: &str,
        acts: &[Act],
    ) -> Result<Vec<String>, String> {
        self.done(prefix, acts, true).await
    }

    async fn done(&self, prefix: &str, acts: &[Act], lose: bool) -> Result<Vec<String>, String> {
        let (real, simulated) = (self.side_real(prefix), self.side_simulated(prefix));
        let since = self.simulated.server.borrow().revision();
        let mut answers = Vec::new();
        for (at, act) in acts.iter().enumerate() {
            let alone = self.alone.lock().await;
            let alone = act.of_all().then_some(alone);
            let (left, right) = (real.act(act).await, simulated.act(act).await);
            drop(alone);
            let (left, right) = (same::words(&left), same::words(&right));
            if let Some(how) = same::differs("answered", &left, &right) {
                return Err(format!("{prefix}, act {at} of {acts:?}: {how}"));
            }
            answers.push(left);
        }
        let mut compared = self.compare(prefix, since).await;
        if lose && compared.is_ok() {
            compared = self.lose(prefix, &real, &simulated).await;
        }
        real.clean().await;
        simulated.clean().await;
        compared.map_err(|how| format!("{prefix}, after {acts:?}: {how}"))?;
        Ok(answers)
    }

    /// Whoever heard the first word on each object only, and then a list, sees what all others see.
    async fn lose(
        &self,
        prefix: &str,
        real: &Side<'_, Live>,
        simulated: &Side<'_, Simulated>,
    ) -> Result<(), String> {
        let beginning: Vec<(Resource, Value)> = {
            let told = self.told.borrow();
            let ours = told.iter().filter(|((_, name), _)| name.contains(prefix));
            ours.filter_map(|((resource, _), all)| Some((*resource, all.first()?.1.clone())))
                .collect()
        };
        let all = same::shown(&self.heard.seen(), prefix).join("\n");
        let left = real.after_a_loss(&beginning).await;
        let right = simulated.after_a_loss(&beginning).await;
        let wrong =
            same::differs("seen after a loss of the real one, at first what all see", &all, &left)
                .or_else(|| same::differs("seen after a loss", &left, &right));
        wrong.map_or(Ok(()), Err)
    }

    /// The ledger is one for all sequences: everything that was ever told of it, in order.
    pub(crate) async fn compare_ledger(&self) -> Result<(), String> {
        let key = (LEDGER, nodemolt_api::disruptionledger::NAME.to_owned());
        let expected: Vec<Value> = {
            let server = self.simulated.server.borrow();
            let changes = server.changes(LEDGER, 0).map_err(|_| "too many changes".to_owned())?;
            let shown =
                |what: What, it: &Value| json!([format!("{what:?}"), same::object(LEDGER, it)]);
            changes.map(|it| shown(it.what, &it.object)).collect()
        };
        let heard = || self.told.borrow().get(&key).map_or(0, Vec::len);
        let since = std::time::Instant::now();
        while heard() < expected.len() && since.elapsed() < CAUGHT_UP_WITHIN {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = self.told.borrow();
        let real = told.get(&key).into_iter().flatten();
        let real: Vec<Value> =
            real.map(|(what, it)| json!([format!("{what:?}"), same::object(LEDGER, it)])).collect();
        assert!(!real.is_empty(), "nobody wrote the ledger");
        same::differs("told of the ledger", &pretty(&real), &pretty(&expected)).map_or(Ok(()), Err)
    }

    /// What is stored, what was told, and what eyes made of it.
    async fn compare(&self, prefix: &str, since: u64) -> Result<(), String> {
        let eyes = Adapter::new(());
        let mut expected: Told = BTreeMap::new();
        {
            let server = self.simulated.server.borrow();
            for resource in COMPARED {
                for change in server.changes(resource, since).unwrap() {
                    let object = (*change.object).clone();
                    if !name(&object).contains(prefix) {
                        continue;
                    }
                    let heard = match change.what {
                        What::Added | What::Modified => Heard::Applied(object.clone()),
                        What::Deleted => Heard::Deleted(object.clone()),
                    };
                    eyes.hear(resource, &heard, Timestamp::now());
                    let key = (resource, name(&object));
                    expected.entry(key).or_default().push((change.what, object));
                }
            }
        }
        let enough = || {
            let told = self.told.borrow();
            expected
                .iter()
                .all(|(key, it)| told.get(key).is_some_and(|told| told.len() >= it.len()))
        };
        let since = std::time::Instant::now();
        while !enough() && since.elapsed() < CAUGHT_UP_WITHIN {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = self.told.borrow();
        for resource in COMPARED {
            let of = |told: &Told| -> Vec<Value> {
                // Images are called after their ids.
                let begin = [prefix.to_owned(), format!("ami-{prefix}")];
                let ours = begin.iter().flat_map(|begin| {
                    let from = told.range((resource, begin.clone())..);
                    from.take_while(|((of, name), _)| {
                        *of == resource && name.starts_with(begin.as_str())
                    })
                });
                ours.flat_map(|(_, it)| it)
                    .map(|(what, it)| json!([format!("{what:?}"), same::object(resource, it)]))
                    .collect()
            };
            let (real, simulated) = (of(&told), of(&expected));
            let what = format!("told of {resource}");
            if let Some(how) = same::differs(&what, &pretty(&real), &pretty(&simulated)) {
                return Err(how);
            }
        }
        drop(told);
        let (real, simulated) = (self.heard.seen(), eyes.seen());
        let shown = |view| same::shown(view, prefix).join("\n");
        match same::differs("seen", &shown(&real), &shown(&simulated)) {
            Some(how) => Err(how),
            None => Ok(()),
        }
    }
}

fn pretty(all: &[Value]) -> String {
    all.iter().map(|it| format!("{it:#}")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
