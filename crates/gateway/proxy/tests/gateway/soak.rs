//! Requests of every kind without a pause while routes, endpoints, certificates and doors change all the time: not one may
//! fail, and no connection may be cut that is in use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
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

use crate::backend::Backend;
use crate::rig::{ANYWHERE, Rig, cluster, http_table, listener, rule};
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

    /// One that stays open all the time.
    async fn websocket(self, secure: bool) -> Result<(), String> {
        let io = self.connect(secure.then_some(&self.http1)).await?;
        let (mut socket, _) = tokio_tungstenite::client_async("ws://a.example/socket", io)
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
    let rig = Rig::new(turns.table(0));
    let opened = rig.serve(turns.table(0)).doors;
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
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0;
    while Instant::now() < until {
        rounds += 1;
        let applied = rig.proxy.serve(Arc::new(turns.table(rounds)), &Guards::default());
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
        "{served:?} of {KINDS:?}, {} clients failed, {rounds} tables in {seconds} s",
        failed.len()
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
