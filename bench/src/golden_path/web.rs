//! Requests to the web listener, where people sign in and the portal's API is: one connection that is kept, as a browser keeps it,
//! so that a handshake is not counted with every request.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::kubeconfig;

pub(super) const PORTAL: &str = "portal.fairway.localhost";
pub(super) const SIGN_IN: &str = "id.fairway.localhost";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// A connection to one host of the web listener.
pub(super) struct Web {
    host: String,
    sender: SendRequest<Full<Bytes>>,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// The body, if the status is a success.
    pub(super) fn json(&self) -> Result<Value> {
        if !self.status.is_success() {
            bail!("the portal answered {}: {}", self.status, self.text());
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Web {
    /// Connects to a host of the Fairway whose data is in a directory.
    pub(super) async fn connect(data: &Path, name: &str) -> Result<Self> {
        let port = port(data)?;
        let authority = data.join("pki/ca.crt");
        let authority =
            std::fs::read(&authority).with_context(|| format!("cannot read {}", authority.display()))?;
        let mut tls = kubeconfig::tls(&authority, None)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Names below localhost are this host, whatever the resolver knows of that.
        let tcp = TcpStream::connect(("127.0.0.1", port))
            .await
            .context("cannot connect to the web listener")?;
        tcp.set_nodelay(true)?;
        let stream = TlsConnector::from(Arc::new(tls))
            .connect(ServerName::try_from(name.to_owned())?, tcp)
            .await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // What goes wrong with it is the request's to tell.
        tokio::spawn(async move { connection.await.ok() });
        Ok(Self {
            host: format!("{name}:{port}"),
            sender,
        })
    }

    pub(super) async fn get(&mut self, path: &str, token: Option<&str>) -> Result<Answer> {
        self.send(("GET", path), token, "", "", "").await
    }

    pub(super) async fn post(&mut self, path: &str, token: &str, body: &Value) -> Result<Answer> {
        self.send(("POST", path), Some(token), "", JSON, &body.to_string())
            .await
    }

    /// Sends a form, with a cookie if there is one.
    pub(super) async fn form(&mut self, path: &str, cookie: &str, form: &str) -> Result<Answer> {
        self.send(("POST", path), None, cookie, FORM, form).await
    }

    async fn send(
        &mut self,
        (method, path): (&str, &str),
        token: Option<&str>,
        cookie: &str,
        content_type: &str,
        body: &str,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, "fairway-bench");
        for (name, value) in [(header::COOKIE, cookie), (header::CONTENT_TYPE, content_type)] {
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.sender.ready().await?;
        let request = request.body(Full::new(Bytes::from(body.to_owned())))?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }
}

/// The port of the web listener of a running server.
pub(super) fn port(data: &Path) -> Result<u16> {
    let path = data.join("running.json");
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let running: Value = serde_json::from_slice(&text)?;
    let address = running["web_listen"].as_str().unwrap_or_default();
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    port.context("the server does not say where its web listener is")
}
