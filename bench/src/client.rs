//! One client: one TLS connection with HTTP/2 and JSON bodies, as a Kubernetes client would have, but with as little
//! work of its own as possible, because on a small machine the load generator takes the server's cores.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What Go's HTTP/2 client offers: large windows, so that a list is not slowed down by acknowledgements.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Host and port.
    pub(crate) authority: String,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) token: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Client {
    endpoint: Endpoint,
    sender: SendRequest<Full<Bytes>>,
}

pub(crate) struct Call {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Bytes,
    gzip: bool,
    user: Option<&'static str>,
}

impl Call {
    fn new(
        method: Method,
        path: impl Into<String>,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            method,
            path: path.into(),
            content_type,
            body: body.into(),
            gzip: false,
            user: None,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, "", Bytes::new())
    }

    pub(crate) fn create(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path, "application/json", body)
    }

    /// Server-side apply; JSON is YAML, and both servers take it so.
    pub(crate) fn apply(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::PATCH, path, "application/apply-patch+yaml", body)
    }

    pub(crate) fn merge(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::PATCH, path, "application/merge-patch+json", body)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, "", Bytes::new())
    }

    pub(crate) fn accepting_gzip(mut self) -> Self {
        self.gzip = true;
        self
    }

    /// In the name of somebody else, who has the rights that the API gives him.
    pub(crate) fn impersonating(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The body, or an error with the server's words when the status is not a success.
    pub(crate) fn success(self) -> Result<Bytes> {
        if !self.status.is_success() {
            bail!(
                "the server answered {}: {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            );
        }
        Ok(self.body)
    }
}

impl Client {
    pub(crate) async fn connect(endpoint: &Endpoint) -> Result<Self> {
        let tcp = TcpStream::connect(&endpoint.authority)
            .await
            .with_context(|| format!("cannot connect to {}", endpoint.authority))?;
        tcp.set_nodelay(true)?;
        let host = endpoint
            .authority
            .rsplit_once(':')
            .map_or(endpoint.authority.as_str(), |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        let tls = TlsConnector::from(Arc::clone(&endpoint.tls))
            .connect(name, tcp)
            .await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(Duration::from_secs(30))
            .handshake(TokioIo::new(tls))
            .await?;
        tokio::spawn(connection);
        Ok(Self {
            endpoint: endpoint.clone(),
            sender,
        })
    }

    pub(crate) async fn connect_many(endpoint: &Endpoint, count: usize) -> Result<Vec<Self>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(Self::connect(endpoint).await?);
        }
        Ok(clients)
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, call: Call) -> Result<Reply> {
        let response = self.request(call).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Reply {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Sends a request whose answer does not end: the caller reads it piece by piece.
    pub(crate) async fn stream(&self, path: impl Into<String>) -> Result<Incoming> {
        let response = self.request(Call::get(path)).await?;
        if !response.status().is_success() {
            bail!("the server answered {}", response.status());
        }
        Ok(response.into_body())
    }

    async fn request(&self, call: Call) -> Result<http::Response<Incoming>> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("https://{}{}", self.endpoint.authority, call.path))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "fairway-bench");
        if !call.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if call.gzip {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }
        if let Some(user) = call.user {
            request = request.header("impersonate-user", user);
        }
        if let Some(token) = &self.endpoint.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let mut sender = self.sender.clone();
        // A connection that nobody used for minutes may have been closed by the server.
        if sender.is_closed() {
            sender = Self::connect(&self.endpoint).await?.sender;
        }
        sender.ready().await?;
        Ok(sender.send_request(request.body(Full::new(call.body))?).await?)
    }
}
