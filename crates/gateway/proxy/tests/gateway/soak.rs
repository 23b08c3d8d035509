//! Requests of every kind without a pause while routes, endpoints, certificates, doors and policies change all the time: not one
//! may fail, no connection may be cut that is in use, and nobody without a key may come through in between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Credential, Guard, Judgement, Passage, Refusal, Standing, Step, Verdict};
use fairway_gateway_proxy::Guards;
use fairway_gateway_routes::table::{
    BackendProtocol, Certificate, Door, HostPattern, Names, Table, TlsListener,
};
use futures::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::backend::Backend;
use crate::rig::{ANYWHERE, Rig, cluster, http_table, listener, options, rule};
use crate::tls::{Authority, certificate_key};

/// The door that ends TLS; [`ANYWHERE`] is in the clear.
const SECURE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2)), 0);
/// One that is opened and closed.
const SOMETIMES: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 3)), 0);

/// What is served in turn.
struct Turns {
    addresses: Vec<SocketAddr>,
    certificates: Vec<Certificate>,
}

impl Turns {
    fn table(&self, round: usize) -> Table {
        let count = self.addresses.len();
        let chosen: Vec<_> = (0..=round % count)
            .map(|at| self.addresses[(round + at) % count])
            .collect();
        let mut modern = cluster("modern", &chosen);
        modern.protocol = BackendProtocol::Http2;
        let rules = || {
            let mut rules = vec![("/modern", rule("modern")), ("/", rule("web"))];
            if round.is_multiple_of(2) {
                rules.insert(0, ("/other", rule("web")));
            }
            rules
        };
        let mut table = http_table(rules(), vec![cluster("web", &chosen), modern]);
        let terminate = TlsListener::Terminate {
            certificates: vec![certificate_key("a")],
            client_authorities: None,
            http: Arc::new(listener(rules())),
        };
        let mut names = Names::default();
        names.insert(HostPattern::Any, Arc::new(terminate));
        table.doors.insert(SECURE, Door::Tls(names));
        if round % 3 == 1 {
            table.doors.insert(SOMETIMES, table.doors[&ANYWHERE].clone());
        }
        let certificate = self.certificates[round / 5 % self.certificates.len()].clone();
        table.certificates = [(certificate_key("a"), Arc::new(certificate))].into();
        table
    }
}

/// A policy as it changes: which keys there are beside the clients' own, whether somebody has to be asked, and what it asks for.
struct Doorman {
    keys: Vec<String>,
    later: bool,
    print: u64,
}

struct Good;

impl Credential for Good {
    fn lapsed(&self, _: u128) -> Option<&'static str> {
        None
    }
}

impl Doorman {
    fn verdict(&self, asked: &Asked<'_>) -> Verdict {
        let key = asked.headers.get("key").and_then(|key| key.to_str().ok());
        if key.is_some_and(|key| self.keys.iter().any(|known| known == key)) {
            return Verdict::Allow(Passage {
                withheld: Arc::new([http::HeaderName::from_static("x-user")]),
                request_headers: vec![(http::HeaderName::from_static("x-user"), "alice".parse().unwrap())],
                standing: Some(Standing(Arc::new(Good))),
                ..Passage::default()
            });
        }
        Verdict::Deny(Refusal {
            status: http::StatusCode::UNAUTHORIZED,
            headers: Vec::new(),
            body: Bytes::new(),
            by: "AuthPolicy/team/keys".into(),
            why: "no key".to_owned(),
        })
    }
}

impl Guard for Doorman {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        if self.later {
            return Judgement::Later(Box::pin(async move {
                tokio::task::yield_now().await;
                self.verdict(asked)
            }));
        }
        Judgement::Now(self.verdict(asked))
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> futures::future::BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async move { (self.verdict(asked), Vec::new()) })
    }

    fn print(&self) -> u64 {
        self.print
    }
}

/// The policies of a turn. Of the rule that WebSockets go through, only keys and what is told change: who asks for something else
/// there wants them to end.
fn guards(round: usize) -> Guards {
    let doorman = |print: usize| Doorman {
        keys: vec![format!("of-{round}"), "good".to_owned()],
        later: round % 3 == 2,
        print: u64::try_from(print).unwrap(),
    };
    let mut guards = Guards::default();
    guards.insert(crate::rig::rule_key("web"), Arc::new(doorman(1)));
    if round % 4 != 3 {
        guards.insert(crate::rig::rule_key("modern"), Arc::new(doorman(1 + round)));
    }
    guards
}

/// What clients have in common.
#[derive(Clone)]
struct Clients {
    plain: SocketAddr,
    secure: SocketAddr,
    /// By what they say that they speak.
    http1: TlsConnector,
    http2: TlsConnector,
    stop: Arc<AtomicBool>,
    served: Arc<[AtomicUsize; KINDS.len()]>,
}

const KINDS: [&str; 5] = [
    "HTTP/1.1",
    "HTTP/1.1 over TLS",
    "HTTP/2",
    "HTTP/2 over TLS",
    "WebSocket",
];

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

impl Clients {
    async fn connect(&self, tls: Option<&TlsConnector>) -> Result<Box<dyn Io>, String> {
        let address = if tls.is_some() { self.secure } else { self.plain };
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| format!("connecting: {error}"))?;
        let Some(tls) = tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from("a.example").unwrap();
        let stream = tls.connect(name, stream).await;
        Ok(Box::new(
            stream.map_err(|error| format!("the handshake: {error}"))?,
        ))
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn count(&self, kind: usize) {
        self.served[kind].fetch_add(1, Ordering::Relaxed);
    }

    /// Some requests on each connection.
    async fn http1(self, secure: bool) -> Result<(), String> {
        let mut count = 0_usize;
        while self.goes_on() {
            let io = TokioIo::new(self.connect(secure.then_some(&self.http1)).await?);
            let (mut sender, connection) = http1::handshake(io).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            for _ in 0..20 {
                count += 1;
                sender
                    .ready()
                    .await
                    .map_err(|error| format!("a kept connection: {error}"))?;
                let mut request = request(count, "");
                request.headers_mut().insert("host", "a.example".parse().unwrap());
                check(sender.send_request(request).await).await?;
                self.count(usize::from(secure));
            }
        }
        Ok(())
    }

    /// Several requests at a time on each connection.
    async fn http2(self, secure: bool) -> Result<(), String> {
        let mut count = 0_usize;
        let base = if secure {
            "https://a.example"
        } else {
            "http://a.example"
        };
        while self.goes_on() {
            let io = TokioIo::new(self.connect(secure.then_some(&self.http2)).await?);
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io)
                .await
                .map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            for _ in 0..10 {
                let at_once = (0..4).map(|at| {
                    let mut sender = sender.clone();
                    let request = request(count + at, base);
                    async move { check(sender.send_request(request).await).await }
                });
                futures::future::try_join_all(at_once).await?;
                count += 4;
                self.count(2 + usize::from(secure));
            }
        }
        Ok(())
    }

    /// Somebody whose key was never one.
    async fn stranger(self) -> Result<(), String> {
        while self.goes_on() {
            let io = TokioIo::new(self.connect(None).await?);
            let (mut sender, connection) = http1::handshake(io).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            for _ in 0..20 {
                sender.ready().await.map_err(|error| error.to_string())?;
                let mut request = request(3, "");
                request.headers_mut().insert("host", "a.example".parse().unwrap());
                request.headers_mut().insert("key", "bad".parse().unwrap());
                let answer = sender
                    .send_request(request)
                    .await
                    .map_err(|error| error.to_string())?;
                let status = answer.status();
                let _ = answer
                    .into_body()
                    .collect()
                    .await
                    .map_err(|error| error.to_string())?;
                if status != 401 {
                    return Err(format!("a stranger is answered with {status}"));
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// One that stays open all the time.
    async fn websocket(self, secure: bool) -> Result<(), String> {
        let io = self.connect(secure.then_some(&self.http1)).await?;
        let mut request = "ws://a.example/socket"
            .into_client_request()
            .map_err(|error| error.to_string())?;
        request.headers_mut().insert("key", "good".parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::client_async(request, io)
            .await
            .map_err(|error| format!("the upgrade: {error}"))?;
        let mut count = 0_usize;
        while self.goes_on() {
            count += 1;
            let sent = socket.send(Message::text(format!("message {count}"))).await;
            sent.map_err(|error| format!("message {count}: {error}"))?;
            match socket.next().await {
                Some(Ok(Message::Text(text))) if text.as_str() == format!("MESSAGE {count}") => self.count(4),
                other => return Err(format!("message {count}: {other:?}")),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

fn request(count: usize, base: &str) -> http::Request<Full<Bytes>> {
    let path = ["/x", "/other/x", "/modern/x"][count % 3];
    let body = if count.is_multiple_of(4) { "hello" } else { "" };
    let method = if body.is_empty() { "GET" } else { "PUT" };
    http::Request::builder()
        .method(method)
        .uri(format!("{base}{path}"))
        .header("key", "good")
        .body(Full::new(Bytes::from_static(body.as_bytes())))
        .unwrap()
}

async fn check(answer: hyper::Result<http::Response<hyper::body::Incoming>>) -> Result<(), String> {
    let answer = answer.map_err(|error| format!("no answer: {error:?}"))?;
    let status = answer.status();
    let body = answer.into_body().collect().await;
    let body = body
        .map_err(|error| format!("half an answer: {error:?}"))?
        .to_bytes();
    if status == 200 && !body.is_empty() {
        return Ok(());
    }
    Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
}

/// `FAIRWAY_GATEWAY_SOAK` gives seconds.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_under_reloads() {
    let seconds = std::env::var("FAIRWAY_GATEWAY_SOAK").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(4);
    let backends = [
        Backend::start("one").await,
        Backend::start("two").await,
        Backend::start("three").await,
    ];
    let authority = Authority::new();
    let turns = Turns {
        addresses: backends.iter().map(|backend| backend.address).collect(),
        certificates: (0..3).map(|_| authority.issue("a.example")).collect(),
    };
    let rig = Rig::with(turns.table(0), &guards(0), options());
    let opened = rig.proxy.serve(Arc::new(turns.table(0)), &guards(0)).doors;
    let clients = Clients {
        plain: rig.door,
        secure: *opened[&SECURE].as_ref().unwrap(),
        http1: authority.client(&[], None),
        http2: authority.client(&["h2"], None),
        stop: Arc::default(),
        served: Arc::default(),
    };
    let mut running = tokio::task::JoinSet::new();
    for secure in [false, true] {
        for _ in 0..2 {
            running.spawn(clients.clone().http1(secure));
            running.spawn(clients.clone().http2(secure));
        }
        running.spawn(clients.clone().websocket(secure));
    }
    running.spawn(clients.clone().stranger());
    let begun = Instant::now();
    let mut rounds = 0;
    let is_enough = |rounds: usize| {
        rounds > 50
            && (clients.served.iter()).all(|count| count.load(Ordering::Relaxed) > 20)
            && begun.elapsed() > Duration::from_secs(seconds)
    };
    // A busy machine takes longer for as much.
    while !is_enough(rounds) && begun.elapsed() < Duration::from_secs(seconds + 60) {
        rounds += 1;
        let applied = rig.proxy.serve(Arc::new(turns.table(rounds)), &guards(rounds));
        assert!(applied.is_whole(), "{applied:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    clients.stop.store(true, Ordering::Relaxed);
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        failed.extend(ended.unwrap().err());
    }
    let served: Vec<_> = clients
        .served
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    println!(
        "{served:?} of {KINDS:?}, {} clients failed, {rounds} tables in {:.0} s",
        failed.len(),
        begun.elapsed().as_secs_f64()
    );
    assert!(
        failed.is_empty(),
        "{failed:?}, over {rounds} tables, after {served:?} of {KINDS:?}"
    );
    assert!(
        rounds > 50 && served.iter().all(|count| *count > 20),
        "{rounds} tables, {served:?} of {KINDS:?}"
    );
    let failures = rig.metric("fairway_gateway_upstream_ejections_total");
    assert_eq!(failures, 0, "nobody was left out");
}
