//! TLS: certificates by name, new ones without a pause, bytes passed through, and backends that prove who they are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_proxy::{Guards, Options, Problem, Proxy, Timeouts};
use fairway_gateway_routes::table::{
    BackendTls, Certificate, CertificateKey, Cluster, Door, Forward, HostPattern, Listener, ListenerKey,
    Names, Table, TlsListener,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::backend::Backend;
use crate::raw;
use crate::rig::{ANYWHERE, Rig, cluster, listener, listener_key, options, rule, rule_key, table, to};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, name: &str) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &self.0)
            .unwrap();
        Certificate {
            chain: certificate.pem().into(),
            key: key.serialize_pem().into(),
        }
    }

    pub(crate) fn client(&self, protocols: &[&str], with: Option<&Certificate>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match with {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let (chain, key) = der(certificate);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

fn der(certificate: &Certificate) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes())
        .map(Result::unwrap)
        .collect();
    (
        chain,
        PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap(),
    )
}

pub(crate) fn certificate_key(name: &str) -> CertificateKey {
    CertificateKey {
        workspace: "root".into(),
        namespace: "team".into(),
        secret: name.into(),
    }
}

fn terminate(name: &str, authorities: Option<&str>) -> TlsListener {
    let http = Listener {
        key: ListenerKey {
            listener: name.into(),
            ..listener_key()
        },
        ..listener(vec![("/", rule("web"))])
    };
    TlsListener::Terminate {
        certificates: vec![certificate_key(name)],
        client_authorities: authorities.map(Into::into),
        http: Arc::new(http),
    }
}

fn tls_table(
    listeners: Vec<(HostPattern, TlsListener)>,
    clusters: Vec<Cluster>,
    certificates: Vec<(&str, Certificate)>,
) -> Table {
    let mut names = Names::default();
    for (pattern, listener) in listeners {
        names.insert(pattern, Arc::new(listener));
    }
    let mut table = table(Door::Tls(names), clusters);
    table.certificates = certificates
        .into_iter()
        .map(|(name, certificate)| (certificate_key(name), Arc::new(certificate)))
        .collect();
    table
}

/// Over TLS, with the server name given: the answer to a request for `host`.
async fn get(connector: &TlsConnector, door: SocketAddr, name: &str, host: &str) -> Result<String, String> {
    let stream = TcpStream::connect(door).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    if answer.is_empty() {
        return Err(read
            .err()
            .map_or("nothing came".into(), |error| error.to_string()));
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn exact(name: &str) -> HostPattern {
    HostPattern::Exact(name.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_certificates() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let backend = Backend::start("web").await;
    let build = |certificate: Certificate| {
        tls_table(
            vec![
                (exact("a.example"), terminate("a", None)),
                (exact("m.example"), terminate("m", Some(&clients.pem()))),
            ],
            vec![cluster("web", &[backend.address])],
            vec![("a", certificate), ("m", authority.issue("m.example"))],
        )
    };
    let first = authority.issue("a.example");
    let rig = Rig::new(build(first.clone()));
    let plain = authority.client(&["http/1.1"], None);
    let answer = get(&plain, rig.door, "a.example", "a.example").await.unwrap();
    assert!(
        answer.contains("x-forwarded-proto: https") && answer.starts_with("HTTP/1.1 200"),
        "{answer}"
    );
    let answer = get(&plain, rig.door, "a.example", "m.example").await.unwrap();
    assert_eq!(
        raw::status(&answer),
        421,
        "another listener's host must come by its own way"
    );
    assert!(
        get(&plain, rig.door, "other.example", "other.example")
            .await
            .is_err(),
        "a name that nobody serves"
    );
    assert!(
        get(&plain, rig.door, "127.0.0.1", "a.example").await.is_err(),
        "no name, and no listener for all names"
    );
    assert!(
        get(&plain, rig.door, "m.example", "m.example").await.is_err(),
        "no client certificate"
    );
    let known = authority.client(&[], Some(&clients.issue("me")));
    assert!(
        get(&known, rig.door, "m.example", "m.example").await.is_ok(),
        "a client certificate"
    );
    let stranger = authority.client(&[], Some(&authority.issue("me")));
    assert!(
        get(&stranger, rig.door, "m.example", "m.example").await.is_err(),
        "of another authority"
    );
    // A new certificate: the connection that is open goes on, the next one sees it.
    let stream = TcpStream::connect(rig.door).await.unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let mut open = plain.connect(name.clone(), stream).await.unwrap();
    let second = authority.issue("a.example");
    assert!(rig.serve(build(second.clone())).is_whole());
    open.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    let _ = open.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let next = authority
        .client(&[], None)
        .connect(name, TcpStream::connect(rig.door).await.unwrap())
        .await
        .unwrap();
    let shown = next.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(shown, der(&second).0[0]);
    assert_ne!(shown, der(&first).0[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_told() {
    let authority = Authority::new();
    let other = authority.issue("b.example");
    let mixed = Certificate {
        key: other.key,
        ..authority.issue("a.example")
    };
    let table = tls_table(
        vec![
            (exact("a.example"), terminate("a", None)),
            (exact("c.example"), terminate("c", None)),
        ],
        vec![],
        vec![("a", mixed)],
    );
    let proxy = Proxy::start(options(), Arc::new(fairway_fabric::PlainTcp::default())).unwrap();
    let applied = proxy.serve(Arc::new(table), &Guards::default());
    let mut told: Vec<String> = applied.problems.iter().map(ToString::to_string).collect();
    told.sort();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("team/a") && told[0].contains("together"),
        "{told:?}"
    );
    assert!(
        matches!(&applied.problems[1], Problem::Certificate { key, .. } if key.secret == "c"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_agreed_on() {
    use http_body_util::{BodyExt, Empty};
    let authority = Authority::new();
    let backend = Backend::start("web").await;
    let rig = Rig::new(tls_table(
        vec![(HostPattern::Any, terminate("a", None))],
        vec![cluster("web", &[backend.address])],
        vec![("a", authority.issue("a.example"))],
    ));
    let stream = TcpStream::connect(rig.door).await.unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let stream = authority
        .client(&["h2", "http/1.1"], None)
        .connect(name, stream)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), io)
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("https://a.example/x")
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("web GET /x") && text.contains("x-forwarded-proto: https"),
        "{text}"
    );
}

/// A change of routes must not cost every client a whole handshake.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_outlive_tables_and_not_certificates() {
    use rustls::HandshakeKind::{Full, Resumed};
    let authority = Authority::new();
    let backend = Backend::start("web").await;
    let build = |certificate: &Certificate, path: &str| {
        let http = Listener {
            key: ListenerKey {
                listener: "a".into(),
                ..listener_key()
            },
            ..listener(vec![(path, rule("web"))])
        };
        let terminate = TlsListener::Terminate {
            certificates: vec![certificate_key("a")],
            client_authorities: None,
            http: Arc::new(http),
        };
        let web = cluster("web", &[backend.address]);
        tls_table(
            vec![(HostPattern::Any, terminate)],
            vec![web],
            vec![("a", certificate.clone())],
        )
    };
    let (first, second) = (authority.issue("a.example"), authority.issue("a.example"));
    let rig = Rig::new(build(&first, "/"));
    let client = authority.client(&[], None);
    for (table, expected, reason) in [
        (None, Full, "a stranger"),
        (None, Resumed, "who comes again"),
        (Some(build(&first, "/other")), Resumed, "after a change of routes"),
        (
            Some(build(&second, "/other")),
            Full,
            "after a change of the certificate",
        ),
    ] {
        if let Some(table) = table {
            assert!(rig.serve(table).is_whole());
        }
        let stream = TcpStream::connect(rig.door).await.unwrap();
        let name = ServerName::try_from("a.example").unwrap();
        let mut stream = client.connect(name, stream).await.unwrap();
        // What the session is remembered by comes with the answer.
        let request = b"GET /other HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{reason}: {answer}");
        assert_eq!(stream.get_ref().1.handshake_kind(), Some(expected), "{reason}");
    }
}

/// A server with a certificate of its own that answers one request.
pub(crate) async fn secure_backend(certificate: &Certificate) -> SocketAddr {
    let (chain, key) = der(certificate);
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let name = stream.get_ref().1.server_name().unwrap_or("none").to_owned();
                let _ = stream.read(&mut [0; 4096]).await;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\nname {name}",
                    name.len() + 5
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn passed_through_and_plain_tcp() {
    let authority = Authority::new();
    let secure = secure_backend(&authority.issue("inner.example")).await;
    let forward = || {
        Arc::new(Forward {
            key: rule_key("through"),
            backends: vec![to("secure")],
        })
    };
    let rig = Rig::new(tls_table(
        vec![
            (
                HostPattern::Wildcard("example".into()),
                TlsListener::Passthrough(forward()),
            ),
            (exact("a.example"), terminate("a", None)),
        ],
        vec![cluster("secure", &[secure]), cluster("web", &[])],
        vec![("a", authority.issue("a.example"))],
    ));
    let client = authority.client(&[], None);
    let answer = get(&client, rig.door, "inner.example", "x").await.unwrap();
    assert!(
        answer.ends_with("name inner.example"),
        "the backend's own certificate: {answer}"
    );
    let answer = get(&client, rig.door, "a.example", "a.example").await.unwrap();
    assert_eq!(raw::status(&answer), 503, "a listener beside it ends TLS itself");
    let rig = Rig::new(table(Door::Tcp(forward()), vec![cluster("secure", &[secure])]));
    assert!(
        get(&client, rig.door, "inner.example", "x").await.is_ok(),
        "bytes are bytes"
    );
    let mut nonsense = TcpStream::connect(rig.door).await.unwrap();
    nonsense.write_all(b"nonsense").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_instead_of_a_hello() {
    let authority = Authority::new();
    let rig = Rig::new(tls_table(
        vec![(HostPattern::Any, terminate("a", None))],
        vec![],
        vec![("a", authority.issue("a.example"))],
    ));
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x16, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff],
        &[0; 40_000],
    ] {
        let answer = raw::send(rig.door, bytes).await;
        assert!(!answer.contains("HTTP/"), "{answer:?}");
    }
    assert!(rig.metric("fairway_gateway_tls_failures_total") >= 2);
    assert_eq!(rig.door.ip(), ANYWHERE.ip());
}

/// A hello that does not end, one byte of it at a time, and one after which nothing comes: neither is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn slow_handshakes_are_cut_off() {
    let authority = Authority::new();
    let table = tls_table(
        vec![(HostPattern::Any, terminate("a", None))],
        vec![],
        vec![("a", authority.issue("a.example"))],
    );
    let options = Options {
        timeouts: Timeouts {
            handshake: Duration::from_millis(500),
            ..Timeouts::default()
        },
        ..options()
    };
    let rig = Rig::with(table, &Guards::default(), options);
    let name = ServerName::try_from("a.example").unwrap();
    let config = Arc::clone(authority.client(&[], None).config());
    let mut hello = Vec::new();
    let mut half = rustls::ClientConnection::new(config, name).unwrap();
    half.write_tls(&mut hello).unwrap();
    for (rest, reason) in [
        (Some(&hello[..]), "byte by byte"),
        (None, "whole, and then nothing"),
    ] {
        let mut stream = TcpStream::connect(rig.door).await.unwrap();
        let (mut from, mut to) = stream.split();
        let sending = async {
            match rest {
                None => to.write_all(&hello).await.unwrap(),
                Some(bytes) => {
                    for byte in bytes {
                        if to.write_all(std::slice::from_ref(byte)).await.is_err() {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
            std::future::pending::<()>().await;
        };
        let mut got = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), async {
            tokio::select! {
                // A reset is an end as well.
                _ = from.read_to_end(&mut got) => {}
                () = sending => {}
            }
        });
        assert!(closed.await.is_ok(), "{reason}: it is still waited for");
    }
    assert!(rig.metric("fairway_gateway_tls_failures_total") >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_prove_who_they_are() {
    let (authority, other) = (Authority::new(), Authority::new());
    let secure = secure_backend(&authority.issue("backend.example")).await;
    for (hostname, names, trusted, status, reason) in [
        ("backend.example", vec![], &authority, 200, "the right one"),
        ("other.example", vec![], &authority, 502, "another name"),
        (
            "other.example",
            vec!["backend.example"],
            &authority,
            200,
            "a name that is expected though another is asked for",
        ),
        (
            "backend.example",
            vec!["third.example"],
            &authority,
            502,
            "a name that is not expected",
        ),
        ("backend.example", vec![], &other, 502, "another authority"),
    ] {
        let mut web = cluster("web", &[secure]);
        web.tls = Some(BackendTls {
            hostname: hostname.into(),
            names: names.into_iter().map(Into::into).collect(),
            authorities: Some(trusted.pem().into()),
        });
        let rig = Rig::new(crate::rig::http_table(vec![("/", rule("web"))], vec![web]));
        let answer = raw::get(rig.door, "/").await;
        assert_eq!(raw::status(&answer), status, "{reason}: {answer}");
        if status == 200 {
            assert!(
                answer.ends_with(&format!("name {hostname}")),
                "{reason}: {answer}"
            );
        }
    }
}
