//! A web server on the loopback that behaves as a scenario wants it to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request: its first line and headers, in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&prefix))
    }
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The connection breaks off after so many bytes.
    pub(crate) cut: Option<usize>,
    /// Between pieces of 64 KiB.
    pub(crate) pause: Duration,
}

impl Answer {
    pub(crate) fn ok(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            body,
            ..Self::default()
        }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A file with a version, of which the rest can be asked for.
    pub(crate) fn file(asked: &Asked, content: &[u8], tag: &str) -> Self {
        let tag = format!("\"{tag}\"");
        let from = asked
            .header("range")
            .filter(|_| asked.header("if-range").is_none_or(|wanted| wanted == tag))
            .and_then(|range| {
                range
                    .strip_prefix("bytes=")?
                    .strip_suffix('-')?
                    .parse::<usize>()
                    .ok()
            });
        match from {
            Some(from) => Self {
                status: 206,
                ..Self::ok(content[from..].to_vec())
            }
            .header(
                "content-range",
                &format!("bytes {from}-{}/{}", content.len() - 1, content.len()),
            ),
            None => Self::ok(content.to_vec()),
        }
        .header("etag", &tag)
    }
}

type Handler = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (handler, heard): (Handler, _) = (Arc::new(handler), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&heard)));
            }
        });
        Self { port, asked, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, handler: Handler, heard: Arc<Mutex<Vec<Asked>>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8_lossy(&head).replace("\r\n", "\n");
    let path = text.split(' ').nth(1)?.to_owned();
    // Names of headers in lower case, values as they are.
    let lines: Vec<String> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| format!("{}: {value}", name.to_lowercase()))
        .collect();
    let asked = Asked {
        path,
        head: lines.join("\n"),
    };
    heard.lock().unwrap().push(asked.clone());
    let answer = handler(&asked);
    let mut reply = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\n",
        answer.status,
        answer.body.len()
    );
    for (name, value) in &answer.headers {
        reply.push_str(&format!("{name}: {value}\r\n"));
    }
    reply.push_str("connection: close\r\n\r\n");
    stream.write_all(reply.as_bytes()).await.ok()?;
    let end = answer.cut.unwrap_or(answer.body.len()).min(answer.body.len());
    for piece in answer.body[..end].chunks(64 << 10) {
        stream.write_all(piece).await.ok()?;
        if !answer.pause.is_zero() {
            tokio::time::sleep(answer.pause).await;
        }
    }
    stream.shutdown().await.ok()
}
