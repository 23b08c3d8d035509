//! Whoever is told: a mail server, and an HTTP server that plays a webhook and Slack.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The Python of `scripts/tools.sh python`, if it has the mail server.
pub(crate) fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/venv/bin/python");
    let found = Command::new(&python).args(["-c", "import aiosmtpd"]).output();
    found.is_ok_and(|it| it.status.success()).then_some(python)
}

/// aiosmtpd, which wants STARTTLS and a login.
pub(crate) struct MailServer {
    child: Child,
    pub(crate) port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    pub(crate) fn start(python: &Path, certificate: &Path, key: &Path, login: (&str, &str)) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/notifications/mail.py");
        let mut child = Command::new(python)
            .arg(script)
            .args([certificate, key])
            .args([login.0, login.1])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails: Arc<Mutex<Vec<Value>>> = Arc::default();
        let taken = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                taken.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, port, mails }
    }

    pub(crate) fn mails(&self) -> Vec<Value> {
        self.mails.lock().unwrap().clone()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) body: String,
    /// Whether it was answered as a success.
    pub(crate) is_accepted: bool,
}

/// An HTTP server. To `/slack/` it says no the first time, as Slack does when it is asked too much; elsewhere it is content.
pub(crate) struct WebServer {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl WebServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let taken = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&taken)));
            }
        });
        Self { port, received }
    }

    /// What was received at paths that begin so.
    pub(crate) fn received(&self, prefix: &str) -> Vec<Received> {
        let all = self.received.lock().unwrap();
        all.iter()
            .filter(|it| it.path.starts_with(prefix))
            .cloned()
            .collect()
    }
}

async fn serve(mut stream: TcpStream, received: Arc<Mutex<Vec<Received>>>) {
    let (read, mut write) = stream.split();
    let mut read = tokio::io::BufReader::new(read);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let prefix = format!("{name}: ");
        let line = head
            .iter()
            .find(|line| line.to_ascii_lowercase().starts_with(&prefix));
        line.map(|line| line[prefix.len()..].to_owned())
            .unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    if read.read_exact(&mut body).await.is_err() {
        return;
    }
    let mut words = head[0].split(' ');
    let (method, path) = (
        words.next().unwrap_or("").to_owned(),
        words.next().unwrap_or("").to_owned(),
    );
    let answer = {
        let mut all = received.lock().unwrap();
        let is_slack = path.starts_with("/slack/");
        let is_accepted = !is_slack || all.iter().any(|it| it.path.starts_with("/slack/"));
        all.push(Received {
            method,
            path,
            authorization: header("authorization"),
            body: String::from_utf8(body).unwrap(),
            is_accepted,
        });
        match (is_slack, is_accepted) {
            (true, true) => r#"{"ok": true, "ts": "1"}"#,
            (true, false) => r#"{"ok": false, "error": "ratelimited"}"#,
            _ => "",
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    let _ = write.write_all((head + answer).as_bytes()).await;
}
