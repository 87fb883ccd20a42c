//! Against an API server that says what its script says, over a socket of its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use nodemolt_core::drain::PodId;
use nodemolt_core::seen::Kind;
use nodemolt_engine::port::{Cluster as _, ClusterError};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::Adapter;
use crate::resources::{LEASE, NODE, POD};

/// Long enough for a loaded machine; nothing waits for it unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the server does with one request.
#[derive(Clone)]
enum Reply {
    Answer {
        code: u16,
        headers: &'static str,
        body: String,
    },
    /// Lines of a watch, which then ends as every watch does.
    Lines(Vec<String>),
    /// Lines, then the connection is cut inside the next one.
    Cut(Vec<String>),
    /// The connection is cut before a word is said.
    Nothing,
}

fn answer(code: u16, body: &Value) -> Reply {
    Reply::Answer { code, headers: "", body: body.to_string() }
}

/// Answers in the order of its script, and then not at all.
struct Server {
    live: Live,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let script: VecDeque<Reply> = script.into_iter().collect();
        let (script, asked) = (Arc::new(Mutex::new(script)), Arc::default());
        let served = (Arc::clone(&script), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let mut all = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                all.spawn(serve(stream, Arc::clone(&served.0), Arc::clone(&served.1)));
            }
        });
        let mut live = Live::connect(Config::new(format!("http://{at}").parse().unwrap())).unwrap();
        live.pause = Duration::from_millis(2);
        Self { live, asked, task }
    }

    /// Method and path of every request.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// What a watch of nodes tells until it has told so much.
    async fn heard(&self, count: usize) -> Vec<Heard> {
        let (heard, enough) = (RefCell::new(Vec::new()), Notify::new());
        let watching = self.live.watch(NODE, |it| {
            heard.borrow_mut().push(it);
            if heard.borrow().len() == count {
                enough.notify_one();
            }
        });
        let until = async {
            tokio::select! {
                () = watching => {}
                () = enough.notified() => {}
            }
        };
        let ended = tokio::time::timeout(PATIENCE, until).await;
        assert!(ended.is_ok(), "told {:?} after {:?}", heard.borrow(), self.asked());
        heard.into_inner()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    while let Some(line) = request(&mut stream).await {
        asked.lock().unwrap().push(line);
        let next = script.lock().unwrap().pop_front();
        match next {
            None => std::future::pending::<()>().await,
            Some(Reply::Nothing) => return,
            Some(Reply::Answer { code, headers, body }) => {
                let length = body.len();
                let text = format!(
                    "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
                );
                stream.write_all(text.as_bytes()).await.unwrap();
            }
            Some(Reply::Lines(lines)) => {
                stream.write_all(chunks(&lines).as_bytes()).await.unwrap();
                stream.write_all(b"0\r\n\r\n").await.unwrap();
            }
            Some(Reply::Cut(lines)) => {
                let half = "{\"type\":\"MODIFIED\",\"object\":{";
                let text = format!("{}{:x}\r\n{half}", chunks(&lines), half.len() + 100);
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                return;
            }
        }
    }
}

fn chunks(lines: &[String]) -> String {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |it: &String| format!("{:x}\r\n{it}\n\r\n", it.len() + 1);
    head.to_owned() + &lines.iter().map(chunk).collect::<String>()
}

/// `GET /api/v1/nodes`; `None` at the end of a connection.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |it| it.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    head.lines().next()?.strip_suffix(" http/1.1").map(str::to_owned)
}

fn node(name: &str, revision: u32) -> Value {
    let meta = json!({"name": name, "uid": name, "resourceVersion": revision.to_string()});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": meta})
}

fn list(revision: u32, items: &[Value]) -> Reply {
    answer(200, &json!({"metadata": {"resourceVersion": revision.to_string()}, "items": items}))
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

fn expired() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410})
}

/// The revisions that watches began at.
fn watched_from(asked: &[String]) -> Vec<String> {
    let revision = |it: &String| {
        let (_, after) = it.split_once("resourceversion=")?;
        after.split('&').next().map(str::to_owned)
    };
    asked.iter().filter_map(revision).collect()
}

#[tokio::test]
async fn a_watch_goes_on_where_the_one_before_it_ended() {
    let (a, b) = (node("a", 3), node("b", 7));
    let bookmark =
        json!({"kind": "Node", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}});
    let server = Server::start([
        list(5, std::slice::from_ref(&a)),
        Reply::Lines(vec![event("ADDED", &b)]),
        Reply::Lines(vec![event("BOOKMARK", &bookmark)]),
        Reply::Lines(vec![event("DELETED", &node("a", 11))]),
    ])
    .await;
    let expected =
        [Heard::Listed(vec![a]), Heard::Applied(b), Heard::Current, Heard::Deleted(node("a", 11))];
    assert_eq!(server.heard(4).await, expected);
    assert_eq!(watched_from(&server.asked()), ["5", "7", "9"]);
}

#[tokio::test]
async fn a_watch_that_is_cut_tells_nothing_twice() {
    let told = vec![event("MODIFIED", &node("a", 11)), event("MODIFIED", &node("a", 12))];
    let strange = "{\"type\": 7}".to_owned();
    for broken in [Reply::Cut(told.clone()), Reply::Lines([told, vec![strange]].concat())] {
        let after = Reply::Lines(vec![event("MODIFIED", &node("a", 13))]);
        let server = Server::start([list(10, &[node("a", 10)]), broken, after]).await;
        let expected = [
            Heard::Listed(vec![node("a", 10)]),
            Heard::Applied(node("a", 11)),
            Heard::Applied(node("a", 12)),
            Heard::Applied(node("a", 13)),
        ];
        assert_eq!(server.heard(4).await, expected);
        assert_eq!(watched_from(&server.asked()), ["10", "12"]);
    }
}

#[tokio::test]
async fn what_a_lost_watch_missed_is_gone_only_when_a_whole_list_lacks_it() {
    let both = [node("a", 1), node("b", 2)];
    let unavailable = json!({"kind": "Status", "status": "Failure", "code": 503});
    let part = json!({"metadata": {"resourceVersion": "20", "continue": "more"}, "items": []});
    // 410 comes in the stream, or in its place.
    for lost in [Reply::Lines(vec![event("ERROR", &expired())]), answer(410, &expired())] {
        let server = Server::start([
            list(5, &both),
            lost,
            answer(503, &unavailable),
            answer(429, &unavailable),
            Reply::Nothing,
            answer(200, &json!({})),
            answer(200, &part),
            answer(200, &json!({"metadata": {}, "items": []})),
            list(30, &both[1..]),
        ])
        .await;
        let heard = server.heard(2).await;
        // Six answers of a server in trouble lie between the two, and none is told.
        assert_eq!(heard, [Heard::Listed(both.to_vec()), Heard::Listed(both[1..].to_vec())]);
        let asked = server.asked();
        assert_eq!(asked.len(), 9, "{asked:?}");
        assert!(asked[2..].iter().all(|it| it == "get /api/v1/nodes"), "{asked:?}");
        let eyes = Adapter::new(());
        for it in &heard {
            eyes.hear(NODE, it, Timestamp::UNIX_EPOCH);
        }
        assert_eq!(eyes.seen().nodes.keys().collect::<Vec<_>>(), ["b"]);
    }
}

#[tokio::test]
async fn a_watch_that_never_begins_is_listed_anew_and_not_asked_for_ever() {
    let nothing = || Reply::Lines(Vec::new());
    let script = [list(5, &[]), nothing(), nothing(), nothing(), nothing(), list(6, &[])];
    let server = Server::start(script).await;
    assert_eq!(server.heard(2).await, [Heard::Listed(Vec::new()), Heard::Listed(Vec::new())]);
    assert_eq!(watched_from(&server.asked()), ["5"; 4]);
}

#[tokio::test]
async fn each_kind_is_as_fresh_as_its_own_watch() {
    let server = Server::start([list(5, &[node("a", 3)])]).await;
    let heard = server.heard(1).await;
    let (early, late) =
        (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1));
    let eyes = Adapter::new(());
    eyes.hear(NODE, &heard[0], late);
    assert_eq!(eyes.seen().fresh.get(&Kind::Node), Some(&late));
    assert_eq!(eyes.seen().fresh.get(&Kind::Pod), None, "nobody has told of pods");
    eyes.hear(POD, &Heard::Listed(Vec::new()), early);
    assert_eq!(eyes.seen().fresh.get(&Kind::Pod), Some(&early));
    assert_eq!(eyes.seen().fresh.get(&Kind::Node), Some(&late));
}

/// A call that ends something, by its name.
async fn end(adapter: &Adapter<Live>, what: &str) -> String {
    let pod = PodId { namespace: "web".to_owned(), name: "a".to_owned(), uid: "uid-1".to_owned() };
    match what {
        "evict" => format!("{:?}", adapter.evict(&pod).await),
        "delete_pod" => format!("{:?}", adapter.delete_pod(&pod, 30).await),
        "delete_claim" => format!("{:?}", adapter.delete_claim("a", "uid-1").await),
        "delete_node" => format!("{:?}", adapter.delete_node("a", "uid-1").await),
        _ => {
            let revision = nodemolt_core::seen::Revision("7".to_owned());
            format!("{:?}", adapter.delete_replacement("a", &revision).await)
        }
    }
}

#[tokio::test]
async fn what_ends_something_is_sent_once_whatever_is_answered() {
    let status = |code: u16| {
        let body = json!({"kind": "Status", "status": "Failure", "code": code,
            "message": "not now", "details": {"retryAfterSeconds": 1}});
        Reply::Answer { code, headers: "retry-after: 0\r\n", body: body.to_string() }
    };
    for what in ["evict", "delete_pod", "delete_claim", "delete_node", "delete_replacement"] {
        for reply in [status(429), status(500), status(503), status(504), Reply::Nothing] {
            // More of the same would be there for whoever asks again; and there is a connection that was
            // good a moment ago, which is where libraries like to try again.
            let good = answer(200, &json!({"major": "1", "minor": "36"}));
            let again = [reply.clone(), reply.clone(), reply];
            let server = Server::start([good].into_iter().chain(again)).await;
            server.live.kubernetes().await.unwrap();
            let adapter = Adapter::new(server.live.clone());
            let said = end(&adapter, what).await;
            let asked = server.asked();
            assert_eq!(asked.len(), 2, "{what}: {said}, {asked:?}");
            let method = if what == "evict" { "post " } else { "delete " };
            assert!(asked[1].starts_with(method), "{what}: {asked:?}");
            assert!(said.starts_with("Err("), "{what}: {said}");
        }
    }
}

#[tokio::test]
async fn records_that_are_not_listed_whole_are_no_records() {
    let absent = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
    let part = json!({"metadata": {"resourceVersion": "20", "continue": "more"}, "items": []});
    for listed in [json!({}), part] {
        let server = Server::start([answer(200, &listed), answer(404, &absent)]).await;
        let read = Adapter::new(server.live.clone()).records().await;
        assert!(matches!(read, Err(ClusterError::Unreachable(_))), "{read:?}");
    }
}

#[test]
fn paths_are_those_of_kubernetes() {
    assert_eq!(path(NODE, None), "/api/v1/nodes");
    assert_eq!(path(POD, Some("default")), "/api/v1/namespaces/default/pods");
    assert_eq!(
        path(LEASE, Some("kube-system")),
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    );
}

#[test]
fn a_date_of_http_is_read() {
    let read = read_date("Mon, 16 Nov 2026 06:15:00 GMT");
    assert_eq!(read, "2026-11-16T06:15:00Z".parse().ok());
    assert_eq!(read_date("yesterday"), None);
}

#[test]
fn a_refusal_without_a_status_is_told_in_its_own_words() {
    let Refusal::Status { code, message, retry_after, .. } =
        refusal(502, b"bad gateway\n", Some(1))
    else {
        panic!("it was answered")
    };
    assert_eq!((code, message.as_str()), (502, "bad gateway"));
    assert_eq!(retry_after, Some(SignedDuration::from_secs(1)));
}
