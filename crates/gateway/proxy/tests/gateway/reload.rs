//! Tables that change while requests are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fairway_gateway_proxy::Guards;
use fairway_gateway_routes::table::{Door, HostPattern, Names, Table, TlsListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{ANYWHERE, Rig, cluster, http_table, rule};

/// One request on a connection that is kept; its answer, or nothing if the connection broke.
async fn again(stream: &mut TcpStream, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .split("content-length: ")
                .nth(1)?
                .split("\r\n")
                .next()?
                .parse()
                .ok()?;
            if body.len() >= length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer).await.ok()? {
            0 => return None,
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_connections_see_the_new_table() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let table =
        |backend: &Backend| http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let rig = Rig::new(table(&one));
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    assert!(again(&mut stream, "/").await.unwrap().contains("x-backend: one"));
    let applied = rig.serve(table(&two));
    assert_eq!(applied.generation, 2);
    assert_eq!(applied.doors[&ANYWHERE], Ok(rig.door), "the door stays open");
    assert!(
        again(&mut stream, "/").await.unwrap().contains("x-backend: two"),
        "on the same connection"
    );
    rig.serve(http_table(
        vec![("/else", rule("web"))],
        vec![cluster("web", &[two.address])],
    ));
    assert_eq!(raw::status(&again(&mut stream, "/").await.unwrap()), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_door_lets_requests_finish() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let mut idle = TcpStream::connect(rig.door).await.unwrap();
    assert!(again(&mut idle, "/").await.is_some());
    let door = rig.door;
    let slow = tokio::spawn(async move { raw::get(door, "/slow/500").await });
    while backend.seen() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rig.serve(Table::default());
    assert_eq!(
        raw::status(&slow.await.unwrap()),
        200,
        "what was under way ends well"
    );
    assert_eq!(
        idle.read(&mut [0; 8]).await.unwrap(),
        0,
        "what was idle is closed"
    );
    let refused = async {
        while TcpStream::connect(door).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), refused)
        .await
        .expect("nobody listens any longer");
}

/// A door that speaks TLS from now on: what came in the clear is not served by listeners that want TLS.
#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_changes_its_protocol() {
    let backend = Backend::start("web").await;
    let clusters = || vec![cluster("web", &[backend.address])];
    let rig = Rig::new(http_table(vec![("/", rule("web"))], clusters()));
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    assert!(again(&mut stream, "/").await.is_some());
    let listener = TlsListener::Terminate {
        certificates: Vec::new(),
        client_authorities: None,
        http: Arc::new(crate::rig::listener(vec![("/secret", rule("web"))])),
    };
    let mut names = Names::default();
    names.insert(HostPattern::Any, Arc::new(listener));
    rig.serve(crate::rig::table(Door::Tls(names), clusters()));
    let answer = again(&mut stream, "/").await.unwrap();
    assert!(
        answer.contains("connection: close"),
        "the last one, as it was: {answer}"
    );
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn doors_that_cannot_be_opened_are_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let backend = Backend::start("web").await;
    let mut table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let door = table.doors[&ANYWHERE].clone();
    table.doors.insert(address, door);
    let rig = Rig::new(http_table(vec![], vec![]));
    let applied = rig.serve(table.clone());
    let why = applied.doors[&address].clone().unwrap_err();
    assert!(
        why.contains(&address.to_string()) && why.contains("in use"),
        "{why}"
    );
    assert_eq!(
        raw::status(&raw::get(rig.door, "/").await),
        200,
        "the others are served"
    );
    drop(taken);
    assert!(
        rig.serve(table).is_whole(),
        "and it is tried again with the next table"
    );
    assert_eq!(raw::status(&raw::get(address, "/").await), 200);
}

/// Requests without a pause while the table changes all the time: not one may fail. `FAIRWAY_GATEWAY_SOAK` gives seconds.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_under_reloads() {
    let seconds = std::env::var("FAIRWAY_GATEWAY_SOAK")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let backends = [
        Backend::start("one").await,
        Backend::start("two").await,
        Backend::start("three").await,
    ];
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let table = move |round: usize| {
        let chosen: Vec<_> = (0..=round % 3).map(|at| addresses[(round + at) % 3]).collect();
        let mut rules = vec![("/", rule("web"))];
        if round.is_multiple_of(2) {
            rules.insert(0, ("/other", rule("web")));
        }
        http_table(rules, vec![cluster("web", &chosen)])
    };
    let rig = Rig::new(table(0));
    let (stop, served, failed) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let (door, stop, served, failed) = (
                rig.door,
                Arc::clone(&stop),
                Arc::clone(&served),
                Arc::clone(&failed),
            );
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(door).await.unwrap();
                let mut count = 0_usize;
                while !stop.load(Ordering::Relaxed) {
                    count += 1;
                    if client % 2 == 0 && count.is_multiple_of(7) {
                        stream = TcpStream::connect(door).await.unwrap();
                    }
                    let path = if count.is_multiple_of(3) { "/other/x" } else { "/x" };
                    match again(&mut stream, path).await {
                        Some(answer) if raw::status(&answer) == 200 => served.fetch_add(1, Ordering::Relaxed),
                        answer => {
                            eprintln!("failed: {answer:?}");
                            stream = TcpStream::connect(door).await.unwrap();
                            failed.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            })
        })
        .collect();
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0;
    while Instant::now() < until {
        rounds += 1;
        rig.proxy.serve(Arc::new(table(rounds)), &Guards::default());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    futures::future::join_all(clients).await;
    let (served, failed) = (served.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
    println!("{served} requests, {failed} failed, {rounds} tables in {seconds} s");
    assert_eq!(failed, 0, "of {} requests over {rounds} tables", served + failed);
    assert!(served > 100 && rounds > 50, "{served} requests, {rounds} tables");
}
