//! Client certificates on a real connection: ours are believed, those of strangers are answered 401 and not cut off.

use std::sync::Arc;

use arc_swap::ArcSwap;
use fairway_kernel_apiserver::http::listener;
use fairway_kernel_apiserver::pki::Pair;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::harness::Server;

struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::from_ca_cert_pem(&certificate, key).unwrap();
    Authority { certificate, issuer }
}

impl Authority {
    fn sign(&self, user: &str, usage: ExtendedKeyUsagePurpose) -> Pair {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        Pair {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Code and body of the answer to a GET.
async fn get(
    port: u16,
    roots: &str,
    client: Option<&Pair>,
    path: &str,
    token: Option<&str>,
) -> (u16, String) {
    let mut trusted = RootCertStore::empty();
    trusted
        .add(CertificateDer::from_pem_slice(roots.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let token = token
        .map(|t| format!("Authorization: Bearer {t}\r\n"))
        .unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    let code = answer.split(' ').nth(1).and_then(|c| c.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (code, body.to_owned())
}

#[tokio::test]
async fn certificates_of_strangers_are_answered_401() {
    let server = Server::start().await;
    let (ours, foreign) = (authority("ours"), authority("foreign"));
    let serving = ours.sign("server", ExtendedKeyUsagePurpose::ServerAuth);
    let tls = listener::tls(&serving, &ours.certificate).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(listener::serve(
        Arc::clone(&server.kernel),
        socket,
        Arc::new(ArcSwap::from(tls)),
    ));
    let admin = server.admin();
    admin
        .post(
            "/api/v1/namespaces/default/serviceaccounts",
            &json!({"metadata": {"name": "a"}}),
        )
        .await
        .expect(201);
    let token = admin
        .post(
            "/api/v1/namespaces/default/serviceaccounts/a/token",
            &json!({"spec": {}}),
        )
        .await
        .expect(201);
    let token = token["status"]["token"].as_str();
    let client = |authority: &Authority| authority.sign("root", ExtendedKeyUsagePurpose::ClientAuth);
    let (known, stranger) = (client(&ours), client(&foreign));
    let wrong_use = ours.sign("root", ExtendedKeyUsagePurpose::ServerAuth);
    for (why, pair, token, path, want) in [
        ("ours", Some(&known), None, "/api/v1/namespaces", 200),
        ("no certificate", None, None, "/api/v1/namespaces", 403),
        ("a stranger's", Some(&stranger), None, "/api/v1/namespaces", 401),
        (
            "a stranger's, for what everybody may see",
            Some(&stranger),
            None,
            "/version",
            401,
        ),
        (
            "nobody's, for what everybody may see",
            None,
            None,
            "/version",
            200,
        ),
        (
            "not for clients",
            Some(&wrong_use),
            None,
            "/api/v1/namespaces",
            401,
        ),
        (
            "a stranger's with a token",
            Some(&stranger),
            token,
            "/version",
            200,
        ),
        (
            "a stranger's with a wrong token",
            Some(&stranger),
            Some("x"),
            "/version",
            401,
        ),
    ] {
        let (code, body) = get(port, &ours.certificate, pair, path, token).await;
        assert_eq!(code, want, "{why}: {body}");
        if want == 401 {
            let status: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(status["reason"], "Unauthorized", "{why}");
        }
    }
}
