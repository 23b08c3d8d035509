//! A browser as far as the portal needs one: cookies of each host, forms, redirections, and streams.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_portal_realm::params::query;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) const PORTAL: &str = "portal.fairway.localhost";
pub(crate) const ID: &str = "id.fairway.localhost";

pub(crate) struct Browser {
    authority: PathBuf,
    port: u16,
    portal: String,
    id: String,
    jars: BTreeMap<String, BTreeMap<String, String>>,
}

pub(crate) struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answered {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Path and query of where it leads, and the host.
    pub(crate) fn location(&self) -> (String, String) {
        let whole = self.header("location");
        let rest = whole.strip_prefix("https://").unwrap_or(whole);
        let at = rest.find('/').unwrap();
        let host = rest[..at].split(':').next().unwrap();
        (host.to_owned(), rest[at..].to_owned())
    }
}

impl Browser {
    pub(crate) fn new(data: &Path, port: u64) -> Self {
        Self::below(data, port, "fairway.localhost")
    }

    /// For a portal of another domain.
    pub(crate) fn below(data: &Path, port: u64, domain: &str) -> Self {
        Self {
            authority: data.join("pki/ca.crt"),
            port: u16::try_from(port).unwrap(),
            portal: format!("portal.{domain}"),
            id: format!("id.{domain}"),
            jars: BTreeMap::new(),
        }
    }

    pub(crate) fn origin(&self, host: &str) -> String {
        format!("https://{host}:{}", self.port)
    }

    pub(crate) fn cookies(&mut self, host: &str) -> &mut BTreeMap<String, String> {
        self.jars.entry(host.to_owned()).or_default()
    }

    /// Sends a request and does not wait for the end of its answer.
    pub(crate) async fn open(
        &mut self,
        (method, host, path): (&str, &str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&self.authority).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", format!("{host}:{}", self.port));
        let jar = self.jars.entry(host.to_owned()).or_default();
        if !jar.is_empty() {
            let pairs: Vec<String> = jar
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            request = request.header("cookie", pairs.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(bytes::Bytes::from(body.to_owned())))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        for cookie in response.headers().get_all("set-cookie") {
            let text = cookie.to_str().unwrap();
            let (pair, attributes) = text.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                jar.remove(name);
            } else {
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    pub(crate) async fn send(
        &mut self,
        (method, host, path): (&str, &str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let response = self.open((method, host, path), headers, body).await;
        Answered {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.into_body().collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answered {
        let portal = self.portal.clone();
        self.send(("GET", &portal, path), &[], "").await
    }

    /// From the portal's page over the provider's form to the address of the callback, which is not gone to.
    pub(crate) async fn fill_in(&mut self, login: &str, user: &str, password: &str) -> String {
        let begun = self.get(login).await;
        assert_eq!(begun.status, 303, "{}", begun.text());
        let (host, path) = begun.location();
        let id = self.id.clone();
        assert_eq!(host, id);
        let page = self.send(("GET", &id, &path), &[], "").await;
        let answered = if page.status == 200 {
            let text = page.text();
            let between = |before: &str| {
                let rest = text.split_once(before).unwrap().1;
                rest.split_once('"').unwrap().0.replace("&amp;", "&")
            };
            let (token, action) = (between("name=\"form_token\" value=\""), between("action=\""));
            let directory = &path[..=path.split('?').next().unwrap().rfind('/').unwrap()];
            let form = query([("username", user), ("password", password), ("form_token", &token)]);
            let origin = self.origin(&id);
            let headers = [
                ("content-type", "application/x-www-form-urlencoded"),
                ("origin", origin.as_str()),
            ];
            let path = format!("{directory}{action}");
            self.send(("POST", &id, &path), &headers, &form).await
        } else {
            page
        };
        assert_eq!(answered.status, 303, "{}", answered.text());
        let (host, path) = answered.location();
        assert_eq!(host, self.portal);
        path
    }

    /// Signs in; what the portal says of the session.
    pub(crate) async fn sign_in(&mut self, login: &str, user: &str, password: &str) -> Value {
        let callback = self.fill_in(login, user, password).await;
        let answered = self.get(&callback).await;
        assert_eq!(answered.status, 303, "{}", answered.text());
        let session = self.get("/auth/session").await;
        assert_eq!(session.status, 200, "{}", session.text());
        session.json()
    }
}
