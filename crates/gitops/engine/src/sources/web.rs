//! Fetching over HTTP: one request, within a time and a size, with redirections and the proxy. What is fetched, and with
//! which credentials, is decided elsewhere; here they are kept from everybody else.

mod tls;

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use fairway_gitops_chartrepo::{Url, proxy};
use http::header::{ACCEPT, AUTHORIZATION, HOST, IF_NONE_MATCH, LOCATION, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::SourceError;

/// How long it may take until somebody answers.
const CONNECT: Duration = Duration::from_secs(20);
/// How long an answer may stand still.
const STALL: Duration = Duration::from_secs(60);
/// How long all of it may take.
const WHOLE: Duration = Duration::from_secs(600);
/// How often one is sent on.
const MAX_REDIRECTIONS: usize = 10;

/// How a host is reached.
#[derive(Clone, Default)]
pub(super) struct Way {
    /// Certificates to trust, in PEM; those of the machine if there are none.
    pub(super) ca: Option<String>,
    /// A certificate and key of the client, in PEM.
    pub(super) client_certificate: Option<(String, String)>,
    /// Believe any certificate.
    pub(super) is_insecure: bool,
    /// The proxy, if it is not that of the environment.
    pub(super) proxy: Option<String>,
    /// What is reached without the proxy.
    pub(super) no_proxy: Option<String>,
}

/// What is asked for.
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    pub(super) accept: &'a str,
    /// `Authorization`, for this origin and no other.
    pub(super) authorization: Option<&'a str>,
    /// What is known already, by its tag.
    pub(super) known: Option<&'a str>,
    /// How large the answer may be.
    pub(super) limit: usize,
}

/// What was answered.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// By whom, in the end.
    pub(super) url: Url,
}

/// The value of `Authorization` for a name and a password.
pub(super) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{name}:{password}")))
}

/// The way out.
#[derive(Default)]
pub(super) struct Web {
    /// The certificates of the machine, once somebody has asked for them.
    trusted: OnceLock<RootCertStore>,
}

impl Web {
    /// Asks, and follows where it is sent.
    pub(super) async fn get(&self, way: &Way, ask: Ask<'_>) -> Result<Reply, SourceError> {
        let asked = ask.url.clone();
        match tokio::time::timeout(WHOLE, self.follow(way, ask)).await {
            Ok(answer) => answer,
            Err(_) => Err(SourceError::Unreachable(format!(
                "{asked} did not answer within {} s",
                WHOLE.as_secs()
            ))),
        }
    }

    async fn follow(&self, way: &Way, ask: Ask<'_>) -> Result<Reply, SourceError> {
        let mut url = ask.url.clone();
        let mut authorization = ask.authorization.map(str::to_owned);
        for _ in 0..=MAX_REDIRECTIONS {
            let sent = Ask {
                url: &url,
                authorization: authorization.as_deref(),
                ..ask
            };
            let reply = self
                .once(way, sent)
                .await
                .map_err(|why| SourceError::Unreachable(format!("{url} could not be read: {why}")))?;
            let is_redirection = matches!(reply.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let to = reply.headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let Some(to) = to.filter(|_| is_redirection) else {
                return Ok(reply);
            };
            let next = url
                .follow(to)
                .map_err(|why| SourceError::Missing(format!("{url} leads to nowhere: {why}")))?;
            if url.is_tls() && !next.is_tls() {
                return Err(SourceError::Missing(format!(
                    "{url} leads to {next}, which is not encrypted; such redirections are not followed"
                )));
            }
            if !url.is_same_origin(&next) {
                authorization = None;
            }
            url = next;
        }
        Err(SourceError::Missing(format!(
            "{} leads on and on, more than {MAX_REDIRECTIONS} times",
            ask.url
        )))
    }

    async fn once(&self, way: &Way, ask: Ask<'_>) -> Result<Reply, String> {
        let url = ask.url;
        let proxy = proxy_for(way, url)?;
        let connecting = self.connect(way, url, proxy.as_ref());
        let stream = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(stream) => stream?,
            Err(_) => return Err(format!("no connection within {} s", CONNECT.as_secs())),
        };
        let is_forwarded = proxy.is_some() && !url.is_tls();
        let target = match is_forwarded {
            true => url.to_string(),
            false => url.target(),
        };
        let mut request = Request::get(target)
            .header(HOST, url.authority())
            .header(ACCEPT, ask.accept)
            .header(USER_AGENT, "fairway");
        if let Some(authorization) = ask.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(known) = ask.known {
            request = request.header(IF_NONE_MATCH, known);
        }
        if let Some((name, password)) = proxy.as_ref().filter(|_| is_forwarded).and_then(Url::user) {
            request = request.header(PROXY_AUTHORIZATION, basic(name, password));
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(text)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(text)?;
        let exchange = async {
            let answer = tokio::time::timeout(STALL, sender.send_request(request)).await;
            let answer = answer
                .map_err(|_| format!("no answer within {} s", STALL.as_secs()))?
                .map_err(text)?;
            let (head, body) = answer.into_parts();
            Ok(Reply {
                status: head.status,
                headers: head.headers,
                body: gather(body, ask.limit).await?,
                url: url.clone(),
            })
        };
        // The connection is driven as long as the exchange takes, and not a moment longer.
        tokio::pin!(connection);
        tokio::pin!(exchange);
        tokio::select! {
            answer = &mut exchange => answer,
            ended = &mut connection => match ended {
                Err(error) => Err(text(error)),
                // What has arrived may still be read.
                Ok(()) => exchange.await,
            },
        }
    }

    async fn connect(&self, way: &Way, url: &Url, proxy: Option<&Url>) -> Result<Box<dyn Stream>, String> {
        let through = proxy.unwrap_or(url);
        let stream = TcpStream::connect((through.host(), through.port())).await;
        let mut stream = stream.map_err(text)?;
        let _ = stream.set_nodelay(true);
        if !url.is_tls() {
            return Ok(Box::new(stream));
        }
        if let Some(proxy) = proxy {
            tunnel(&mut stream, url, proxy).await?;
        }
        let connector = tls::connector(way, || self.trusted())?;
        let name = tls::server_name(url.host())?;
        let stream = connector.connect(name, stream).await.map_err(text)?;
        Ok(Box::new(stream))
    }

    fn trusted(&self) -> RootCertStore {
        let trusted = self.trusted.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        });
        trusted.clone()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

fn text(error: impl std::error::Error) -> String {
    let mut all = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !all.contains(&inner_text) {
            all = format!("{all}: {inner_text}");
        }
        source = inner.source();
    }
    all
}

/// The proxy of an address: the one that was given, or that of the environment.
fn proxy_for(way: &Way, url: &Url) -> Result<Option<Url>, String> {
    let from = |names: [&str; 2]| {
        let mut found = names.iter().filter_map(|name| std::env::var(name).ok());
        found.find(|text| !text.is_empty())
    };
    let no_proxy = way.no_proxy.clone().or_else(|| from(["NO_PROXY", "no_proxy"]));
    if proxy::is_direct(no_proxy.as_deref().unwrap_or_default(), url) {
        return Ok(None);
    }
    let given = way.proxy.clone().or_else(|| match url.is_tls() {
        true => from(["HTTPS_PROXY", "https_proxy"]),
        false => from(["HTTP_PROXY", "http_proxy"]),
    });
    let Some(given) = given else {
        return Ok(None);
    };
    let given = match given.contains("://") {
        true => given,
        false => format!("http://{given}"),
    };
    match Url::parse(&given) {
        Ok(proxy) if !proxy.is_tls() => Ok(Some(proxy)),
        Ok(proxy) => Err(format!(
            "the proxy {proxy} is reached over https, which is not supported"
        )),
        Err(why) => Err(format!("the proxy: {why}")),
    }
}

/// Has a proxy connect us to somebody.
async fn tunnel(stream: &mut TcpStream, to: &Url, proxy: &Url) -> Result<(), String> {
    let place = match to.host().contains(':') {
        true => format!("[{}]:{}", to.host(), to.port()),
        false => format!("{}:{}", to.host(), to.port()),
    };
    let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
    if let Some((name, password)) = proxy.user() {
        request.push_str(&format!("Proxy-Authorization: {}\r\n", basic(name, password)));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut answer = Vec::new();
    // Byte by byte: what follows belongs to the other side.
    while !answer.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.map_err(text)?;
        answer.push(byte);
        if answer.len() > 8192 {
            return Err(format!("the proxy {proxy} answers at too great length"));
        }
    }
    let line = String::from_utf8_lossy(&answer);
    let line = line.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some(status) if status.starts_with('2') => Ok(()),
        _ => Err(format!("the proxy {proxy} answers {line:?}")),
    }
}

async fn gather(mut body: Incoming, limit: usize) -> Result<Bytes, String> {
    let mut found = Vec::new();
    loop {
        let frame = match tokio::time::timeout(STALL, body.frame()).await {
            Ok(Some(frame)) => frame.map_err(text)?,
            Ok(None) => return Ok(found.into()),
            Err(_) => return Err(format!("nothing came for {} s", STALL.as_secs())),
        };
        if let Some(piece) = frame.data_ref() {
            if found.len() + piece.len() > limit {
                return Err(format!("it is larger than the limit of {limit} bytes"));
            }
            found.extend_from_slice(piece);
        }
    }
}
