//! One request over HTTP/1.1, to an address that was judged; or a connection there, for whoever speaks otherwise.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::hosts::AllowedHosts;

/// The longest address.
const MAX_URL: usize = 4096;
/// Of a name's addresses, how many are tried.
const MAX_ADDRESSES: usize = 4;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Message {
    /// How.
    pub method: Method,
    /// Where to.
    pub url: String,
    /// What beside the host and the length.
    pub headers: HeaderMap,
    /// What.
    pub body: Bytes,
    /// How long all of it may take.
    pub timeout: Duration,
    /// How much of the answer is read; the rest is left.
    pub max_reply: usize,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The beginning of the answer.
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Not an address that a request can go to.
    #[error("{0}")]
    Address(String),
    /// An address that is not allowed.
    #[error(
        "{host} is not among the hosts that may be called from here; the operator can allow it ({setting})"
    )]
    Forbidden {
        /// The host.
        host: String,
        /// What says which hosts may be called.
        setting: &'static str,
    },
    /// Nobody knows the name, or nobody answers there.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The host.
        host: String,
        /// What the system says.
        why: String,
    },
    /// It took too long.
    #[error("there was no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl SendError {
    /// Whether trying again is of no use before somebody changes something.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Address(_) | Self::Forbidden { .. })
    }
}

/// Scheme, host and port of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    is_tls: bool,
    host: String,
    port: u16,
    authority: String,
    path: String,
}

impl Target {
    /// Whether the connection is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Where to connect to.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Host and port as they were written.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Path and query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Takes an address apart. It may not hold a password: it would be shown to everybody who may see the address.
pub fn target(url: &str) -> Result<Target, SendError> {
    let wrong = |why: &str| SendError::Address(format!("the address cannot be used: {why}"));
    if url.len() > MAX_URL {
        return Err(wrong("it is too long"));
    }
    let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(wrong("it must begin with https:// or http://")),
    };
    let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("it holds a user name; give credentials as a header"));
    }
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    if host.is_empty() {
        return Err(wrong("it has no host"));
    }
    let has_port = authority.as_str() != authority.host();
    let port = match authority.port_u16() {
        Some(port) => port,
        None if has_port => return Err(wrong("its port is not a number")),
        None if is_tls => 443,
        None => 80,
    };
    Ok(Target {
        is_tls,
        host,
        port,
        authority: authority.as_str().to_owned(),
        path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
    })
}

/// Sends requests to where they may go.
#[derive(Debug, Default)]
pub struct Outbound {
    hosts: AllowedHosts,
    /// Authorities that are believed beside those of the machine.
    authorities: Vec<CertificateDer<'static>>,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    /// Where the hosts come from, for people who miss one among them.
    setting: Setting,
}

#[derive(Debug)]
struct Setting(&'static str);

impl Default for Setting {
    fn default() -> Self {
        Self("--webhook-allowed-hosts")
    }
}

impl Outbound {
    /// To these hosts.
    pub fn new(hosts: AllowedHosts) -> Self {
        Self {
            hosts,
            authorities: Vec::new(),
            tls: OnceLock::new(),
            setting: Setting::default(),
        }
    }

    /// Which setting the hosts come from, if not that of webhooks.
    #[must_use]
    pub fn set_by(mut self, setting: &'static str) -> Self {
        self.setting = Setting(setting);
        self
    }

    /// To these hosts, and to those of them whose certificates one of these authorities vouches for (PEM).
    pub fn trusting(hosts: AllowedHosts, authorities: &[u8]) -> Result<Self, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities).collect();
        let authorities =
            read.map_err(|error| format!("the authorities are no certificates in PEM: {error}"))?;
        match authorities.is_empty() {
            true => Err("there is no certificate in PEM among the authorities".to_owned()),
            false => Ok(Self {
                authorities,
                ..Self::new(hosts)
            }),
        }
    }

    /// Where requests may go.
    pub fn hosts(&self) -> &AllowedHosts {
        &self.hosts
    }

    /// Sends, and waits for the answer.
    pub async fn send(&self, message: Message) -> Result<Reply, SendError> {
        let timeout = message.timeout;
        match tokio::time::timeout(timeout, self.exchange(message)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SendError::Timeout(timeout)),
        }
    }

    async fn exchange(&self, message: Message) -> Result<Reply, SendError> {
        let target = target(&message.url)?;
        let (host, port) = target.address();
        match target.is_tls {
            false => talk(self.connect(host, port).await?, &target, message).await,
            true => talk(self.connect_tls(host, port).await?, &target, message).await,
        }
    }

    /// Connects with TLS to an address of the host that is allowed. How long it may take is for the caller to say.
    pub async fn connect_tls(&self, host: &str, port: u16) -> Result<TlsStream<TcpStream>, SendError> {
        let stream = self.connect(host, port).await?;
        let unreachable = unreachable(host);
        let config = self.trust().map_err(&unreachable)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| unreachable(error.to_string()))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|error| unreachable(error.to_string()))
    }

    /// Connects to an address of the host that is allowed. How long it may take is for the caller to say.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, SendError> {
        let unreachable = unreachable(host);
        let found = tokio::net::lookup_host((host, port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| unreachable(error.to_string()))?.collect();
        let any = self.hosts.allows_name(host);
        let allowed: Vec<SocketAddr> = found
            .iter()
            .filter(|address| any || self.hosts.allows_address(address.ip()))
            .copied()
            .take(MAX_ADDRESSES)
            .collect();
        if allowed.is_empty() && !found.is_empty() {
            let (host, setting) = (host.to_owned(), self.setting.0);
            return Err(SendError::Forbidden { host, setting });
        }
        let mut last = "the name has no address".to_owned();
        for address in allowed {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(unreachable(last))
    }

    /// Whom to believe: the authorities of the machine (`SSL_CERT_FILE`). Read when they are needed first.
    fn trust(&self) -> Result<Arc<ClientConfig>, String> {
        let made = self.tls.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots.add_parsable_certificates(self.authorities.iter().cloned());
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Ok(Arc::new(config))
        });
        made.clone()
    }
}

pub(crate) fn unreachable(host: &str) -> impl Fn(String) -> SendError + use<> {
    let host = host.to_owned();
    move |why| SendError::Unreachable {
        host: host.clone(),
        why,
    }
}

async fn talk<S>(stream: S, target: &Target, message: Message) -> Result<Reply, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = unreachable(&target.host);
    let failed = |error: hyper::Error| failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        // Some receivers compare names by case.
        .title_case_headers(true)
        .max_buf_size(64 << 10)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let mut request = Request::new(Full::new(message.body));
    *request.method_mut() = message.method;
    *request.uri_mut() = target
        .path
        .parse()
        .map_err(|_| SendError::Address("the address cannot be used: its path is wrong".to_owned()))?;
    *request.headers_mut() = message.headers;
    if let Ok(host) = target.authority.parse() {
        request.headers_mut().insert(header::HOST, host);
    }
    let limit = message.max_reply;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut read = Vec::new();
        // What is too long or breaks off is shown as far as it goes: the status is what counts.
        while read.len() < limit
            && let Some(Ok(frame)) = body.frame().await
        {
            if let Ok(data) = frame.into_data() {
                let rest = limit - read.len();
                read.extend_from_slice(&data[..data.len().min(rest)]);
            }
        }
        Ok(Reply {
            status,
            body: read.into(),
        })
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    // The connection is driven as long as the exchange takes, and not a moment longer.
    tokio::select! {
        answer = &mut exchange => answer,
        ended = &mut connection => match ended {
            Err(error) => Err(failed(error)),
            // What has arrived may still be read.
            Ok(()) => exchange.await,
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn message(url: String, seconds: u64) -> Message {
        Message {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"hello"),
            timeout: Duration::from_secs(seconds),
            max_reply: 8,
        }
    }

    #[test]
    fn addresses_are_taken_apart() {
        for (url, expected) in [
            ("https://example.com/a?b", Some(("example.com", 443, "/a?b"))),
            ("http://example.com", Some(("example.com", 80, "/"))),
            ("http://[::1]:8080/x", Some(("::1", 8080, "/x"))),
            ("ftp://example.com/", None),
            ("example.com", None),
            ("https://user:pass@example.com/", None),
            ("http://example.com:99999/", None),
            ("http:///x", None),
            ("", None),
        ] {
            let found = target(url).ok();
            let found = found.as_ref().map(|t| (t.host.as_str(), t.port, t.path.as_str()));
            assert_eq!(found, expected, "{url}");
        }
        assert!(target(&format!("http://a/{}", "x".repeat(5000))).is_err());
    }

    /// Answers one connection with these bytes; what was asked.
    async fn server(answer: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let count = stream.read(&mut asked).await.unwrap();
            stream.write_all(answer).await.unwrap();
            if answer.is_empty() {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            String::from_utf8_lossy(&asked[..count]).into_owned()
        });
        (port, serving)
    }

    #[tokio::test]
    async fn requests_go_where_they_may() {
        let open = Outbound::new(AllowedHosts::parse("loopback").unwrap());
        let (port, serving) = server(
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 12\r\n\r\nmore than 8!",
        )
        .await;
        let reply = open
            .send(message(format!("http://127.0.0.1:{port}/p?q"), 10))
            .await
            .unwrap();
        assert_eq!(reply.status, 302);
        assert_eq!(reply.body, "more tha");
        let asked = serving.await.unwrap();
        assert!(asked.starts_with("POST /p?q HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains(&format!("Host: 127.0.0.1:{port}\r\n")), "{asked}");

        let shut = Outbound::default();
        for url in [
            format!("http://127.0.0.1:{port}/"),
            format!("http://localhost:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            "http://169.254.169.254/latest".to_owned(),
        ] {
            let refused = shut.send(message(url.clone(), 10)).await.unwrap_err();
            assert!(
                matches!(refused, SendError::Forbidden { .. }) && refused.is_final(),
                "{url}: {refused}"
            );
        }
    }

    #[test]
    fn authorities_are_certificates() {
        for wrong in [
            &b""[..],
            b"hello",
            b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----",
        ] {
            assert!(Outbound::trusting(AllowedHosts::default(), wrong).is_err());
        }
        let pem = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        assert_eq!(
            Outbound::trusting(AllowedHosts::default(), pem)
                .unwrap()
                .authorities
                .len(),
            1
        );
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let open = Outbound::new(AllowedHosts::parse("*").unwrap());
        let (port, _serving) = server(b"").await;
        let late = open.send(message(format!("http://127.0.0.1:{port}/"), 1)).await;
        assert_eq!(late.unwrap_err(), SendError::Timeout(Duration::from_secs(1)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let free = listener.local_addr().unwrap().port();
        drop(listener);
        let refused = open
            .send(message(format!("http://127.0.0.1:{free}/"), 5))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, SendError::Unreachable { .. }) && !refused.is_final(),
            "{refused}"
        );
    }
}
