//! Downloads from a server that breaks off, changes its mind, and lies.

use std::sync::{Arc, Mutex};

use fairway_outbound::AllowedHosts;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// What a server says to a request.
type Answer = Box<dyn Fn(&str) -> Vec<u8> + Send>;

/// A server with one file; how it behaves is decided by each request.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn server(answers: Vec<Answer>) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..count]).to_lowercase();
            let bytes = answer(&request);
            heard.lock().unwrap().push(request);
            stream.write_all(&bytes).await.unwrap();
        }
    });
    Server { port, asked }
}

fn content() -> Vec<u8> {
    (0..100_000_u32).map(|number| (number % 251) as u8).collect()
}

fn answer(status: &str, headers: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// The whole file, broken off after some bytes.
fn cut(tag: &'static str, after: usize) -> Answer {
    Box::new(move |_| {
        answer(
            "200 OK",
            &format!("etag: \"{tag}\"\r\n"),
            100_000,
            &content()[..after],
        )
    })
}

/// The rest from where it was asked for, if the version is still this one.
fn rest(tag: &'static str) -> Answer {
    Box::new(move |request| {
        let header = |name: &str| {
            request
                .lines()
                .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
        };
        let etag = format!("etag: \"{tag}\"\r\n");
        let start =
            header("range: bytes=").and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
        match start {
            Some(start) if header("if-range: ") == Some(format!("\"{tag}\"")) => {
                let headers = format!("{etag}content-range: bytes {start}-99999/100000\r\n");
                answer(
                    "206 Partial Content",
                    &headers,
                    100_000 - start,
                    &content()[start..],
                )
            }
            _ => answer("200 OK", &etag, 100_000, &content()),
        }
    })
}

async fn fetched(cache: &Cache, server: &Server, limit: u64) -> (Result<Fetched, ImageError>, Vec<Progress>) {
    let outbound = Outbound::new(AllowedHosts::parse("loopback").unwrap());
    let url = format!("http://127.0.0.1:{}/disk.raw", server.port);
    let mut seen = Vec::new();
    let outcome = fetch(cache, &outbound, &url, &[], limit, |progress| seen.push(progress)).await;
    (outcome, seen)
}

#[tokio::test]
async fn an_interrupted_download_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let server = server(vec![cut("a", 40_000), rest("a")]).await;
    let (first, _) = fetched(&cache, &server, 1 << 20).await;
    assert!(
        matches!(first, Err(ImageError::Download { is_final: false, .. })),
        "{first:?}"
    );
    // Another process goes on with what this one has.
    let cache = Cache::open(directory.path()).unwrap();
    let (second, seen) = fetched(&cache, &server, 1 << 20).await;
    let second = second.unwrap();
    assert_eq!(std::fs::read(second.path()).unwrap(), content());
    assert!(
        seen[0].done > 0 && seen[0].total == Some(100_000),
        "{:?}",
        seen[0]
    );
    assert_eq!(seen.last().unwrap().done, 100_000);
    let asked = server.asked.lock().unwrap();
    assert!(
        asked[1].contains("range: bytes=") && asked[1].contains("if-range: \"a\""),
        "{}",
        asked[1]
    );
    let path = second.path().to_owned();
    second.discard();
    assert!(!path.exists());
}

#[tokio::test]
async fn another_version_is_fetched_anew() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let server = server(vec![cut("old", 40_000), rest("new")]).await;
    assert!(fetched(&cache, &server, 1 << 20).await.0.is_err());
    let (second, seen) = fetched(&cache, &server, 1 << 20).await;
    assert_eq!(std::fs::read(second.unwrap().path()).unwrap(), content());
    assert_eq!(seen[0].done, 0);
}

#[tokio::test]
async fn a_wrong_part_is_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let lie = Box::new(|_: &str| {
        answer(
            "206 Partial Content",
            "content-range: bytes 5-99999/100000\r\n",
            99_995,
            &content()[5..],
        )
    });
    let server = server(vec![cut("a", 40_000), lie, rest("a")]).await;
    assert!(fetched(&cache, &server, 1 << 20).await.0.is_err());
    let (second, _) = fetched(&cache, &server, 1 << 20).await;
    assert_eq!(std::fs::read(second.unwrap().path()).unwrap(), content());
}

#[tokio::test]
async fn too_much_is_too_much() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let endless =
        Box::new(|_: &str| [&b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"[..], &content()].concat());
    let missing = Box::new(|_: &str| answer("404 Not Found", "", 0, b""));
    let server = server(vec![rest("a"), endless, missing]).await;
    for _ in 0..2 {
        let (outcome, _) = fetched(&cache, &server, 50_000).await;
        assert!(
            matches!(outcome, Err(ImageError::TooLarge { limit: 50_000, .. })),
            "{outcome:?}"
        );
    }
    let (outcome, _) = fetched(&cache, &server, 50_000).await;
    assert!(
        matches!(outcome, Err(ImageError::Download { is_final: false, .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_is_known_is_not_fetched_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let outbound = Outbound::new(AllowedHosts::parse("loopback").unwrap());
    let whole = |tag: &'static str| cut(tag, 100_000);
    let server = server(vec![
        whole("a"),
        whole("a"),
        whole("b"),
        cut("b", 70_000),
        whole("b"),
    ])
    .await;
    let url = format!("http://127.0.0.1:{}/disk", server.port);
    let fetch =
        async |known: Option<&str>| fetch_unless(&cache, &outbound, &url, &[], 1 << 20, known, |_| {}).await;
    let first = fetch(None).await.unwrap().unwrap();
    let version = first.version().unwrap().to_owned();
    assert_eq!(version, "\"a\" 100000");
    first.discard();
    assert!(fetch(Some(&version)).await.unwrap().is_none(), "the same version");
    let second = fetch(Some(&version)).await.unwrap().unwrap();
    assert_eq!(second.version(), Some("\"b\" 100000"));
    assert_eq!(std::fs::read(second.path()).unwrap(), content());
    second.discard();
    // One that breaks off is an error, and the next attempt knows nothing of it.
    assert!(fetch(Some(&version)).await.is_err());
    assert!(fetch(Some("\"b\" 100000")).await.unwrap().is_none());
}
