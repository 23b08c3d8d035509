//! What goes on for long ends with what let it through, and with nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Credential, Guard, Judgement, Passage, Standing, Step, Verdict};
use fairway_gateway_proxy::{Guards, Options, Timeouts};
use futures::future::BoxFuture;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, options, rule, rule_key};

#[derive(Default)]
struct Key(AtomicBool);

impl Credential for Key {
    fn lapsed(&self, now: u128) -> Option<&'static str> {
        assert!(now > 0, "the time is told");
        self.0.load(Ordering::SeqCst).then_some("it was taken back")
    }
}

/// Lets everybody through by its key, if it has one.
struct Door {
    key: Option<Arc<Key>>,
    print: u64,
}

impl Guard for Door {
    fn judge<'a>(&'a self, _: &'a Asked<'a>) -> Judgement<'a> {
        let key = self.key.clone();
        Judgement::Now(Verdict::Allow(Passage {
            standing: key.map(|key| Standing(key)),
            ..Passage::default()
        }))
    }

    fn explain<'a>(&'a self, _: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async { (Verdict::Allow(Passage::default()), Vec::new()) })
    }

    fn print(&self) -> u64 {
        self.print
    }
}

/// What changes while something is open.
#[derive(Debug, Clone, Copy)]
enum Change {
    Nothing,
    KeyGone,
    /// The guard is another one.
    Guard(u64),
    /// The guard of the rule beside it.
    Other,
    Missing,
    Open,
}

/// What is open.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Upgrade,
    /// Server-sent events, one each so many milliseconds.
    Events(u64),
    /// The same over HTTP/2.
    Streams(u64),
    /// A body that the client has not ended.
    Upload,
}

struct Scene {
    rig: Rig,
    key: Arc<Key>,
    backend: Backend,
}

impl Scene {
    async fn new(guarded: bool) -> Self {
        let backend = Backend::start("web").await;
        let (key, mut guards) = (Arc::new(Key::default()), Guards::default());
        if guarded {
            guards.insert(rule_key("web"), door(Some(&key), 7));
        }
        let options = Options {
            timeouts: Timeouts {
                body_idle: Duration::from_secs(60),
                tunnel_idle: Duration::from_secs(60),
                ..Timeouts::default()
            },
            ..options()
        };
        let rig = Rig::with(table(&backend), &guards, options);
        Self { rig, key, backend }
    }

    fn change(&self, change: Change) {
        let mut guards = Guards::default();
        match change {
            Change::Nothing => return,
            Change::KeyGone => return self.key.0.store(true, Ordering::SeqCst),
            Change::Guard(print) => guards.insert(rule_key("web"), door(None, print)),
            Change::Other => {
                guards.insert(rule_key("web"), door(None, 7));
                guards.insert(rule_key("other"), door(None, 8));
            }
            Change::Missing => guards.insert_missing(rule_key("web"), "nothing can be enforced"),
            Change::Open => {}
        }
        self.rig.proxy.serve(Arc::new(table(&self.backend)), &guards);
    }

    /// Opens it, and tells, when it is open, when it has ended.
    async fn open(&self, kind: Kind) -> BoxFuture<'static, ()> {
        let mut stream = TcpStream::connect(self.rig.door).await.unwrap();
        let head = match kind {
            Kind::Upgrade => {
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nhello".into()
            }
            Kind::Events(millis) => format!("GET /ticks/{millis} HTTP/1.1\r\nHost: a\r\n\r\n"),
            Kind::Upload => {
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".into()
            }
            Kind::Streams(millis) => return streams(stream, millis).await,
        };
        stream.write_all(head.as_bytes()).await.unwrap();
        let awaited = match kind {
            Kind::Upgrade => "HELLO",
            Kind::Events(_) => "tick",
            _ => "",
        };
        let mut answer = vec![0; 4096];
        let mut length = 0;
        while !String::from_utf8_lossy(&answer[..length]).contains(awaited) {
            length += stream.read(&mut answer[length..]).await.unwrap();
        }
        Box::pin(async move {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            let rest = String::from_utf8_lossy(&rest);
            assert!(
                !rest.contains("0\r\n\r\n"),
                "it ends in the middle, and not as if it were whole: {rest}"
            );
            if matches!(kind, Kind::Upload) {
                assert_eq!(raw::status(&rest), 401, "{rest}");
            }
        })
    }
}

fn door(key: Option<&Arc<Key>>, print: u64) -> Arc<dyn Guard> {
    let key = key.cloned();
    Arc::new(Door { key, print })
}

fn table(backend: &Backend) -> fairway_gateway_routes::table::Table {
    let mut web = cluster("web", &[backend.address]);
    web.protocol = fairway_gateway_routes::table::BackendProtocol::Http1;
    http_table(vec![("/", rule("web"))], vec![web])
}

async fn streams(stream: TcpStream, millis: u64) -> BoxFuture<'static, ()> {
    let executor = TokioExecutor::new();
    let handshake = hyper::client::conn::http2::handshake(executor, TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(format!("http://a.example/ticks/{millis}"))
        .version(Version::HTTP_2)
        .body(Empty::<Bytes>::new())
        .unwrap();
    let mut answer = sender.send_request(request).await.unwrap().into_body();
    assert!(answer.frame().await.unwrap().is_ok());
    Box::pin(async move {
        while let Some(frame) = answer.frame().await {
            if frame.is_err() {
                return;
            }
        }
        panic!("the stream ends as if it were whole");
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_ends_with_its_permit() {
    use Change::{Guard, KeyGone, Missing, Nothing, Open, Other};
    use Kind::{Events, Streams, Upgrade, Upload};
    let cases = [
        (true, Upgrade, KeyGone, true, "a tunnel"),
        (true, Events(20), KeyGone, true, "events that never pause"),
        (true, Events(60_000), KeyGone, true, "events that pause for long"),
        (true, Streams(20), KeyGone, true, "HTTP/2"),
        (
            true,
            Streams(60_000),
            KeyGone,
            true,
            "HTTP/2 that pauses for long",
        ),
        (true, Upload, KeyGone, true, "what the client sends"),
        (true, Upgrade, Guard(8), true, "other policies"),
        (
            true,
            Upgrade,
            Missing,
            true,
            "policies that cannot be enforced any more",
        ),
        (true, Upgrade, Open, true, "no policies"),
        (
            true,
            Events(60_000),
            Guard(8),
            true,
            "other policies, for a stream",
        ),
        (false, Upgrade, Guard(8), true, "policies where there were none"),
        (true, Upgrade, Guard(7), false, "a guard that asks for the same"),
        (true, Upgrade, Other, false, "policies of another rule"),
        (true, Upgrade, Nothing, false, "nothing has changed"),
        (
            true,
            Events(20),
            Nothing,
            false,
            "nothing has changed for a stream",
        ),
        (true, Upload, Nothing, false, "nothing has changed for an upload"),
        (false, Upgrade, Nothing, false, "nobody asks for anything"),
    ];
    let run = |(guarded, kind, change, ends, reason): (bool, Kind, Change, bool, &'static str)| async move {
        let scene = Scene::new(guarded).await;
        let ended = scene.open(kind).await;
        scene.change(change);
        // Longer than it takes, for a machine that does other things, too; some looks long for what goes on.
        let patience = if ends { 20_000 } else { 2_500 };
        let ended = tokio::time::timeout(Duration::from_millis(patience), ended).await;
        assert_eq!(ended.is_ok(), ends, "{reason}: {kind:?}, {change:?}");
        let counted = scene.rig.metric("fairway_gateway_permits_lost_total");
        assert_eq!(counted, u64::from(ends), "{reason}");
    };
    // Not one after the other: most of it is waiting.
    futures::future::join_all(cases.map(run)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_of_a_tunnel_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let backend = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).await.unwrap() > 0);
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nfirst";
        stream.write_all(answer).await.unwrap();
        stream.read(&mut head).await.unwrap()
    });
    let (key, mut guards) = (Arc::new(Key::default()), Guards::default());
    guards.insert(rule_key("web"), door(Some(&key), 7));
    let table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[address])]);
    let rig = Rig::with(table, &guards, options());
    let mut client = TcpStream::connect(rig.door).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
        .await
        .unwrap();
    let answer = raw::read(&mut client).await;
    assert!(answer.ends_with("first"), "{answer}");
    key.0.store(true, Ordering::SeqCst);
    let mut rest = Vec::new();
    let told = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut rest)).await;
    assert_eq!(told.unwrap().unwrap(), 0, "an end, and no reset");
    let told = tokio::time::timeout(Duration::from_secs(20), backend).await;
    assert_eq!(told.unwrap().unwrap(), 0, "the backend, too");
}
