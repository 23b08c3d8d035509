//! Bytes in, bytes out: clients that are not as polite as libraries.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a connection may be silent before its answer is taken as whole.
const SILENCE: Duration = Duration::from_millis(500);

/// Sends `request` and reads until the end or silence.
pub(crate) async fn send(door: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(door).await.unwrap();
    // The other side may refuse and close before all of it is written.
    let _ = stream.write_all(request).await;
    read(&mut stream).await
}

pub(crate) async fn read(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(SILENCE, stream.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request of one line and `Connection: close`, read to its end.
pub(crate) async fn get(door: SocketAddr, path: &str) -> String {
    ask(door, "GET", path, &[("host", "a.example")], "").await
}

pub(crate) async fn ask(
    door: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let mut stream = TcpStream::connect(door).await.unwrap();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let request = format!("{method} {path} HTTP/1.1\r\n{headers}{length}connection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let whole = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    assert!(
        whole.is_ok(),
        "the connection stays open; so far: {}",
        String::from_utf8_lossy(&answer)
    );
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}
