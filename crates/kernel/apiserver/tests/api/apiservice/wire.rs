//! The same service over TLS: what only a connection shows, and what kubectl makes of it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use fairway_kernel_apiserver::authn::Guests;
use fairway_kernel_apiserver::http::listener;
use fairway_kernel_apiserver::{Kernel, pki};
use futures::{SinkExt, StreamExt};
use http::Request;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{ECHO, ON_CONFIG_MAP, server};
use crate::guests::{Book, EXPIRED, MEMBER, UNKNOWN, WITHOUT_GROUP};

/// The server behind TLS, and who may connect to it.
struct Listening {
    address: std::net::SocketAddr,
    authority: pki::Pair,
    now: i64,
}

impl Listening {
    async fn start(kernel: &Arc<Kernel>) -> Self {
        let now = kernel.clock.unix();
        let authority = pki::new_authority(now).unwrap();
        let serving = pki::Authority::load(&authority)
            .unwrap()
            .serving(&["127.0.0.1".parse().unwrap()], &["localhost"], 3_600, now)
            .unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let tls = listener::tls(&serving, &authority.certificate).unwrap();
        tokio::spawn(listener::serve(
            Arc::clone(kernel),
            socket,
            Arc::new(ArcSwap::from(tls)),
        ));
        Self {
            address,
            authority,
            now,
        }
    }

    fn client(&self, user: &str, groups: &[&str]) -> pki::Pair {
        let authority = pki::Authority::load(&self.authority).unwrap();
        authority.client(user, groups, 3_600, self.now).unwrap()
    }

    async fn connect(&self, user: &str, groups: &[&str]) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.connect_by(Some(self.client(user, groups))).await
    }

    /// With a certificate, or without one.
    async fn connect_by(&self, pair: Option<pki::Pair>) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.authority.certificate.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match pair {
            None => config.with_no_client_auth(),
            Some(pair) => config
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        connector
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await
            .unwrap()
    }

    fn request(&self, path: &str, protocol: &'static str) -> Request<()> {
        let mut request = format!("wss://localhost:{}{path}", self.address.port())
            .into_client_request()
            .unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", http::HeaderValue::from_static(protocol));
        request
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_pass_through_tls() {
    let server = server().await;
    let listening = Listening::start(&server.kernel).await;
    let stream = listening.connect("admin", &["system:masters"]).await;
    let request = listening.request(ON_CONFIG_MAP, "echo.v1");
    let (mut socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "echo.v1");
    assert!(response.headers().contains_key("audit-id"));
    for number in 0..3 {
        socket
            .send(Message::text(format!("hello {number}")))
            .await
            .unwrap();
        let heard = socket.next().await.unwrap().unwrap();
        assert_eq!(heard.into_text().unwrap(), format!("settings: hello {number}"));
    }
    let long = "x".repeat(1_000_000);
    socket.send(Message::text(long.clone())).await.unwrap();
    assert_eq!(
        socket.next().await.unwrap().unwrap().into_text().unwrap().len(),
        long.len() + "settings: ".len()
    );
    socket.close(None).await.unwrap();

    // Without the right, or with the wrong protocol, there is no WebSocket.
    for (user, groups, protocol, code) in [
        ("eve", &[][..], "echo.v1", 403),
        ("admin", &["system:masters"][..], "other.v1", 400),
    ] {
        let stream = listening.connect(user, groups).await;
        match tokio_tungstenite::client_async(listening.request(ON_CONFIG_MAP, protocol), stream).await {
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
                assert_eq!(response.status(), code, "{user}");
            }
            other => panic!("{user}: {other:?}"),
        }
    }
}

/// A console that is open by a token goes on while others lose rights and when the token's time is over, and ends when its user has lost his.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_right_to_it() {
    let server = server().await;
    let listening = Listening::start(&server.kernel).await;
    let book = Arc::new(Book::in_the_root());
    server.kernel.guests.add(Arc::clone(&book) as Arc<dyn Guests>);
    let admin = server.admin();
    let rules =
        json!([{"apiGroups": ["echo.fairway.dev"], "resources": ["configmaps/echo"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "speak"}, "rules": rules});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    admin
        .post(&format!("{rbac}/clusterroles"), &role)
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "speak"},
        "subjects": [{"kind": "Group", "name": "acme/devs", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "speak", "apiGroup": "rbac.authorization.k8s.io"}});
    admin
        .post(&format!("{rbac}/clusterrolebindings"), &binding)
        .await
        .expect(201);
    let by_token = || {
        let mut request = listening.request(ON_CONFIG_MAP, "echo.v1");
        let token = http::HeaderValue::from_static("Bearer alice");
        request.headers_mut().insert("authorization", token);
        request
    };
    for (lost, why) in [
        (WITHOUT_GROUP, "he has left the group"),
        (UNKNOWN, "he is disabled"),
    ] {
        book.set(MEMBER);
        let stream = listening.connect_by(None).await;
        let (mut socket, _) = tokio_tungstenite::client_async(by_token(), stream).await.unwrap();
        for state in [MEMBER, EXPIRED] {
            book.set(state);
            server.kernel.guests.standing_changed();
            for _ in 0..3 {
                socket.send(Message::text("hello")).await.unwrap();
                let heard = socket.next().await.unwrap().unwrap();
                assert_eq!(heard.into_text().unwrap(), "settings: hello", "{why}");
            }
        }
        book.set(lost);
        server.kernel.guests.standing_changed();
        let ended = tokio::time::timeout(Duration::from_secs(5), socket.next()).await;
        let ended = ended.unwrap_or_else(|_| panic!("{why}, and the stream goes on"));
        assert!(
            ended.is_none_or(|last| last.is_err() || last.is_ok_and(|last| last.is_close())),
            "{why}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_stream_both_ways_without_an_end_in_sight() {
    let server = server().await;
    let listening = Listening::start(&server.kernel).await;
    let mut stream = listening.connect("admin", &["system:masters"]).await;
    let head =
        format!("POST {ECHO}/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut heard = String::new();
    for word in ["first", "second", "third"] {
        stream
            .write_all(format!("{:x}\r\n{word}\r\n", word.len()).as_bytes())
            .await
            .unwrap();
        // Each piece comes back before the next is sent.
        while !heard.contains(word) {
            let mut buffer = [0; 1024];
            let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut buffer)).await;
            let count = read.expect("an echo in time").unwrap();
            assert!(count > 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
}

/// `KUBECTL=/path/to/kubectl cargo test ... -- --ignored kubectl`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs kubectl, named by $KUBECTL"]
async fn kubectl_sees_it() {
    let kubectl = std::env::var("KUBECTL").unwrap();
    let server = server().await;
    let listening = Listening::start(&server.kernel).await;
    let directory = tempfile::tempdir().unwrap();
    let pair = listening.client("admin", &["system:masters"]);
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let arguments = [
        format!("--server=https://{}", listening.address),
        format!(
            "--certificate-authority={}",
            file("ca", &listening.authority.certificate)
        ),
        format!("--client-certificate={}", file("crt", &pair.certificate)),
        format!("--client-key={}", file("key", &pair.key)),
        format!("--cache-dir={}", directory.path().display()),
    ];
    let run = async |words: &[&str]| {
        let mut command = std::process::Command::new(&kubectl);
        command
            .args(&arguments)
            .args(words)
            .env("HOME", directory.path())
            .env_remove("KUBECONFIG");
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    let resources = run(&["api-resources", "--api-group=echo.fairway.dev"]).await;
    println!("{resources}");
    assert!(
        resources.contains("echoes") && resources.contains("echo.fairway.dev/v1"),
        "{resources}"
    );
    let raw = run(&["get", "--raw", ON_CONFIG_MAP]).await;
    assert!(raw.contains("\"user\":\"admin\""), "{raw}");
    let versions = run(&["api-versions"]).await;
    assert!(versions.contains("echo.fairway.dev/v1"), "{versions}");
}
