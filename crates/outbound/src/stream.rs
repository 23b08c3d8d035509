//! An answer that is too large for memory: a file that is fetched, piece by piece.
//!
//! Unlike a message, a file may be elsewhere than where it was asked for: redirections are followed, and every address on the
//! way is judged like the first. A connection on which nothing moves for a while is given up.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::send::{Outbound, SendError, Target, unreachable};
use crate::target;

/// As many redirections as browsers follow about.
const MAX_REDIRECTS: usize = 10;

/// An answer whose content is still to come.
#[derive(Debug)]
pub struct Download {
    /// The status.
    pub status: StatusCode,
    /// What the server says about the content.
    pub headers: HeaderMap,
    host: String,
    body: Incoming,
    idle: Duration,
    // The connection is driven by a task, which ends with this value.
    _connection: Connection,
}

#[derive(Debug)]
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Download {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            let frame = tokio::time::timeout(self.idle, self.body.frame()).await;
            match frame.map_err(|_| SendError::Timeout(self.idle))? {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(SendError::Unreachable {
                        host: self.host.clone(),
                        why: error.to_string(),
                    });
                }
            }
        }
    }
}

impl Outbound {
    /// Asks for a file. `idle` is how long nothing may happen, also before the answer begins.
    pub async fn get(&self, url: &str, headers: &HeaderMap, idle: Duration) -> Result<Download, SendError> {
        let mut url = url.to_owned();
        let mut headers = headers.clone();
        for _ in 0..=MAX_REDIRECTS {
            let place = target(&url)?;
            let answer = tokio::time::timeout(idle, self.ask(&place, &headers, idle)).await;
            let answer = answer.map_err(|_| SendError::Timeout(idle))??;
            let Some(next) = redirection(&answer, &place) else {
                return Ok(answer);
            };
            let next_place = target(&next)?;
            if place.is_tls() && !next_place.is_tls() {
                return Err(SendError::Address(format!(
                    "{} redirects to an address without encryption",
                    place.authority()
                )));
            }
            if next_place.authority() != place.authority() {
                // What proves who asks is for the server that it was given for.
                headers.remove(header::AUTHORIZATION);
                headers.remove(header::COOKIE);
            }
            url = next;
        }
        Err(SendError::Address(format!(
            "there are more than {MAX_REDIRECTS} redirections"
        )))
    }

    async fn ask(&self, place: &Target, headers: &HeaderMap, idle: Duration) -> Result<Download, SendError> {
        let (host, port) = place.address();
        match place.is_tls() {
            false => talk(self.connect(host, port).await?, place, headers, idle).await,
            true => talk(self.connect_tls(host, port).await?, place, headers, idle).await,
        }
    }
}

/// Where an answer sends to.
fn redirection(answer: &Download, place: &Target) -> Option<String> {
    let is_redirection = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = answer.headers.get(header::LOCATION)?.to_str().ok()?;
    if !is_redirection {
        return None;
    }
    let scheme = if place.is_tls() { "https" } else { "http" };
    Some(match location {
        whole if whole.contains("://") => whole.to_owned(),
        other_host if other_host.starts_with("//") => format!("{scheme}:{other_host}"),
        path if path.starts_with('/') => format!("{scheme}://{}{path}", place.authority()),
        relative => {
            let base = place.path().split('?').next().unwrap_or("/");
            let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{scheme}://{}{directory}/{relative}", place.authority())
        }
    })
}

async fn talk<S>(
    stream: S,
    place: &Target,
    headers: &HeaderMap,
    idle: Duration,
) -> Result<Download, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = unreachable(place.address().0);
    let failed = |error: hyper::Error| failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let connection = Connection(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = place
        .path()
        .parse()
        .map_err(|_| SendError::Address("the address cannot be used: its path is wrong".to_owned()))?;
    *request.headers_mut() = headers.clone();
    if let Ok(host) = place.authority().parse() {
        request.headers_mut().insert(header::HOST, host);
    }
    let response = sender.send_request(request).await.map_err(failed)?;
    let (parts, body) = response.into_parts();
    Ok(Download {
        status: parts.status,
        headers: parts.headers,
        host: place.authority().to_owned(),
        body,
        idle,
        _connection: connection,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::AllowedHosts;

    /// Answers one connection after the other.
    async fn server(answers: Vec<String>) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = vec![0; 4096];
                let count = stream.read(&mut asked).await.unwrap();
                assert!(count > 0);
                let answer = answer.replace("PORT", &port.to_string());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        port
    }

    async fn fetched(answers: &[&str]) -> Result<Vec<u8>, SendError> {
        let port = server(answers.iter().map(|answer| (*answer).to_owned()).collect()).await;
        let outbound = Outbound::new(AllowedHosts::parse("127.0.0.1").unwrap());
        let url = format!("http://127.0.0.1:{port}/a/b");
        let mut answer = outbound
            .get(&url, &HeaderMap::new(), Duration::from_secs(10))
            .await?;
        let mut out = Vec::new();
        while let Some(piece) = answer.next().await? {
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }

    #[tokio::test]
    async fn redirections_are_followed_and_judged() {
        let file = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        let to = |location: &str| {
            format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
        };
        for location in ["/c", "d", "http://127.0.0.1:PORT/e", "//127.0.0.1:PORT/f"] {
            assert_eq!(
                fetched(&[&to(location), file]).await.unwrap(),
                b"hello",
                "{location}"
            );
        }
        let elsewhere = fetched(&[&to("http://169.254.169.254/secret"), file]).await;
        assert!(
            matches!(elsewhere, Err(SendError::Forbidden { .. })),
            "{elsewhere:?}"
        );
        let circle = to("/again");
        let circle = fetched(&[circle.as_str(); 12]).await.unwrap_err();
        assert!(circle.to_string().contains("redirections"), "{circle}");
    }

    #[tokio::test]
    async fn a_file_that_breaks_off_is_an_error() {
        let cut = fetched(&["HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello"]).await;
        assert!(matches!(cut, Err(SendError::Unreachable { .. })), "{cut:?}");
    }
}
