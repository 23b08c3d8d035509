//! Requests to the provider: one connection each, bounded in time and size, with the authority of the cluster and those of this host.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const MAX: usize = 1024 * 1024;

/// A way to send requests.
pub(super) struct Http(TlsConnector);

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: http::HeaderMap,
    body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body).context("the answer is not JSON")
    }
}

impl Http {
    /// Believes these authorities, and those of this host.
    pub(super) fn new(trust: Vec<Vec<u8>>) -> anyhow::Result<Self> {
        // rustls wants to be told which cryptography to use, once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(Uri::from_static("https://localhost"));
        let known = rustls_native_certs::load_native_certs().certs;
        let all = trust.into_iter().chain(known.into_iter().map(|it| it.to_vec()));
        config.root_cert = Some(all.collect());
        let config = config
            .rustls_client_config()
            .context("the certificates to believe cannot be used")?;
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// A document.
    pub(super) async fn json(&self, url: &str) -> anyhow::Result<Value> {
        let answer = self.send("GET", url, &[], "").await?;
        match answer.status {
            200 => answer
                .json()
                .with_context(|| format!("{url} cannot be understood")),
            404 => bail!("{url} is not there: is the name of the organisation, or the issuer, right?"),
            status => bail!("{url} answered {status}"),
        }
    }

    /// Sends a form.
    pub(super) async fn post(&self, url: &str, form: &str) -> anyhow::Result<Answer> {
        self.send("POST", url, &[], form).await
    }

    /// Sends a request.
    pub(super) async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        form: &str,
    ) -> anyhow::Result<Answer> {
        let answered = timeout(PATIENCE, self.exchange(method, url, headers, form)).await;
        answered
            .with_context(|| format!("{url} did not answer within {} seconds", PATIENCE.as_secs()))?
            .with_context(|| format!("{url} could not be asked"))
    }

    async fn exchange(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        form: &str,
    ) -> anyhow::Result<Answer> {
        let uri: Uri = url.parse().context("this is not an address")?;
        let host = uri.host().context("the address has no host")?;
        if uri.scheme_str() != Some("https") {
            bail!("only https is spoken: passwords and tokens are sent there");
        }
        // Names below localhost are this host, whatever the resolver knows of that.
        let is_here = host == "localhost" || host.ends_with(".localhost");
        let address = if is_here {
            "127.0.0.1"
        } else {
            host.trim_matches(['[', ']'])
        };
        let tcp = TcpStream::connect((address, uri.port_u16().unwrap_or(443))).await?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let stream = self.0.connect(name, tcp).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // What goes wrong with it is the request's to tell.
        tokio::spawn(async move { connection.await.ok() });
        let target = uri.path_and_query().map_or("/", |it| it.as_str());
        let authority = uri.authority().map(|it| it.as_str()).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", authority);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if method == "POST" {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        let response = sender
            .send_request(request.body(Full::new(Bytes::from(form.to_owned())))?)
            .await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX).collect().await;
        let body = body
            .map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?
            .to_bytes();
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        })
    }
}
