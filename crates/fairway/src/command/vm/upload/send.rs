//! The file on its way: one POST to the upload proxy, tried again if it breaks off.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::super::session::{Refused, Session};
use crate::cli::vm::storage::ImageUpload;

/// The path of the protocol.
const PATH: &str = "/v1beta1/upload";
/// How much of the file is read at once.
const PIECE: usize = 256 << 10;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The file as it is sent.
type Sent = StreamBody<Pieces>;
type Pieces = BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>;

/// Sends the file.
pub(super) async fn send(
    session: &Session,
    options: &ImageUpload,
    file: &Path,
    length: u64,
    proxy: &str,
    token: &str,
) -> anyhow::Result<()> {
    let url = match proxy.contains(PATH) {
        true => proxy.to_owned(),
        false => format!("{}{PATH}", proxy.trim_end_matches('/')),
    };
    let url: Uri = url.parse().with_context(|| format!("{url} is not an address"))?;
    let proxy = Proxy::new(session, &url, options.is_insecure)?;
    let host = url.authority().map(ToString::to_string).unwrap_or_default();
    let path = url.path_and_query().map_or("/", |it| it.as_str());
    let attempts = options.retry.max(1);
    let mut last = String::new();
    for attempt in 1..=attempts {
        let request = Request::post(path)
            .header(header::HOST, &host)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, length)
            .body(body(file, length).await?)
            .context("the request cannot be made")?;
        match proxy.answer(request).await {
            Ok(()) => return Ok(()),
            Err(refused) => {
                last = match refused.code {
                    0 => refused.message,
                    code => format!("unexpected return value {code}, {}", refused.message),
                };
                // It will not be taken the next time either.
                if matches!(refused.code, 400..=499) {
                    bail!("error uploading image: {last}");
                }
            }
        }
        if attempt < attempts {
            tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 50)).await;
        }
    }
    Err(anyhow!("error uploading image after {attempts} retries: {last}"))
}

/// The way to a proxy.
struct Proxy {
    address: (String, u16),
    /// Whose certificate is expected, and how it is judged; none for plain HTTP.
    tls: Option<(ServerName<'static>, TlsConnector)>,
}

impl Proxy {
    /// It believes the authority of the cluster, which Fairway's proxy is certified by, and those of this host.
    fn new(session: &Session, url: &Uri, is_insecure: bool) -> anyhow::Result<Self> {
        let host = url.host().unwrap_or_default();
        let is_plain = url.scheme_str() == Some("http");
        let port = url.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        // Names below localhost are this host, whatever the resolver knows of that.
        let is_here = host == "localhost" || host.ends_with(".localhost");
        let address = if is_here { "127.0.0.1" } else { host };
        let tls = if is_plain {
            None
        } else {
            let mut config = Config::new(url.clone());
            config.accept_invalid_certs = is_insecure;
            let own = session.config.root_cert.clone().unwrap_or_default();
            let known = rustls_native_certs::load_native_certs().certs;
            let all = own.into_iter().chain(known.into_iter().map(|it| it.to_vec()));
            config.root_cert = Some(all.collect());
            let config = config
                .rustls_client_config()
                .context("the certificates to believe cannot be used")?;
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
                .with_context(|| format!("{host:?} is not the name of a host"))?;
            Some((name, TlsConnector::from(Arc::new(config))))
        };
        Ok(Self {
            address: (address.trim_matches(['[', ']']).to_owned(), port),
            tls,
        })
    }

    async fn answer(&self, request: Request<Sent>) -> Result<(), Refused> {
        let failed = |what: &str, error: &dyn std::error::Error| Refused {
            code: 0,
            message: format!("{what}: {}", Refused::unreachable(error).message),
        };
        let (host, port) = (self.address.0.as_str(), self.address.1);
        let connected = timeout(CONNECT, TcpStream::connect((host, port))).await;
        let tcp = match connected {
            Ok(connected) => connected.map_err(|error| failed(&format!("{host}:{port}"), &error))?,
            Err(late) => return Err(failed(&format!("{host}:{port}"), &late)),
        };
        match &self.tls {
            None => exchange(TokioIo::new(tcp), request).await,
            Some((name, connector)) => {
                let stream = connector.connect(name.clone(), tcp).await;
                exchange(
                    TokioIo::new(stream.map_err(|error| failed("TLS", &error))?),
                    request,
                )
                .await
            }
        }
        .map_err(|error| failed("the upload broke off", &error))?
    }
}

/// One request over a connection of its own.
async fn exchange<I>(io: I, request: Request<Sent>) -> Result<Result<(), Refused>, hyper::Error>
where
    I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    // What goes wrong with it is the request's to tell.
    tokio::spawn(async move { connection.await.ok() });
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok(match status.is_success() {
        true => Ok(()),
        false => Err(Refused::of(status.as_u16(), &body)),
    })
}

/// The file, piece by piece, and how far it is for whoever looks.
async fn body(file: &Path, length: u64) -> anyhow::Result<Sent> {
    let open = tokio::fs::File::open(file).await;
    let open = open.with_context(|| format!("open {}", file.display()))?;
    let is_watched = std::io::stderr().is_terminal();
    let pieces = futures::stream::unfold((open, 0_u64, 0), move |(mut file, sent, shown)| async move {
        let mut piece = vec![0; PIECE];
        let count = match file.read(&mut piece).await {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) => return Some((Err(error), (file, sent, shown))),
        };
        piece.truncate(count);
        let sent = sent + count as u64;
        let percent = sent.saturating_mul(100).checked_div(length).unwrap_or(100);
        if is_watched && percent != shown {
            eprint!("\r{percent:3} %{}", if percent == 100 { "\n" } else { "" });
        }
        Some((Ok(Frame::data(Bytes::from(piece))), (file, sent, percent)))
    });
    let pieces: Pieces = pieces.boxed();
    Ok(StreamBody::new(pieces))
}
