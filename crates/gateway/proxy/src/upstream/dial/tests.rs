//! Connections over HTTP/2 and the places that they take.

use std::net::SocketAddr;

use bytes::Bytes;
use fairway_fabric::PlainTcp;
use fairway_gateway_routes::table::{ClusterKey, Traffic};
use http_body_util::{BodyExt as _, Empty};
use hyper::service::service_fn;

use super::*;
use crate::options::{Breaker, Outliers};

/// A backend over HTTP/2 that answers with nothing.
async fn backend() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let answer =
                    service_fn(async |_| Ok::<_, std::io::Error>(http::Response::new(Empty::<Bytes>::new())));
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    address
}

fn endpoint(address: SocketAddr, connections: usize) -> (Cluster, Arc<Endpoint>) {
    let key = ClusterKey {
        workspace: "root".into(),
        namespace: "team".into(),
        service: "web".into(),
        port: 80,
        via: String::new(),
    };
    let at = table::Endpoint::Address(address);
    let breaker = Breaker {
        connections,
        ..Breaker::default()
    };
    let endpoint = Arc::new(Endpoint::new(
        key.clone(),
        at.clone(),
        "mark".into(),
        (breaker, Outliers::default()),
        1,
    ));
    let spec = table::Cluster {
        key,
        protocol: BackendProtocol::Http2,
        tls: None,
        traffic: Traffic::default(),
        endpoints: vec![at],
    };
    let cluster = Cluster::new(Arc::new(spec), None, vec![Arc::clone(&endpoint)]);
    (cluster, endpoint)
}

async fn ask((mut sender, _stream): (SendRequest<Body>, Open)) {
    let request = http::Request::get("http://web.team/").body(Body::Empty).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    answer.into_body().collect().await.unwrap();
}

/// Each client's address has connections of its own: those of clients that left must not keep the next ones out.
#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let (cluster, endpoint) = endpoint(backend().await, 1);
    let fabric: Arc<dyn Fabric> = Arc::new(PlainTcp::default());
    let dialler = Dialler {
        fabric: &fabric,
        worker: 0,
        connect: Duration::from_secs(2),
    };
    let client = |last: u8| Origin::Client(IpAddr::from([192, 0, 2, last]));
    for last in 1..5 {
        let line = http2(dialler, &cluster, &endpoint, client(last)).await;
        ask(line.unwrap_or_else(|error| panic!("client {last}: {error}"))).await;
    }
    let held = http2(dialler, &cluster, &endpoint, client(5)).await.unwrap();
    let again = http2(dialler, &cluster, &endpoint, client(5)).await.unwrap();
    assert_eq!(
        endpoint.http2[0].lock().unwrap().len(),
        1,
        "one connection carries several of one client"
    );
    drop(again);
    let busy = http2(dialler, &cluster, &endpoint, client(6)).await;
    assert!(
        matches!(busy, Err(ConnectError::Busy(_))),
        "one that is in use is not taken away"
    );
    ask(held).await;
    assert!(http2(dialler, &cluster, &endpoint, client(6)).await.is_ok());
}

#[tokio::test]
async fn connections_that_nobody_uses_end() {
    let (cluster, endpoint) = endpoint(backend().await, 4);
    let fabric: Arc<dyn Fabric> = Arc::new(PlainTcp::default());
    let dialler = Dialler {
        fabric: &fabric,
        worker: 0,
        connect: Duration::from_secs(2),
    };
    let held = http2(dialler, &cluster, &endpoint, Origin::Node).await.unwrap();
    pool::sweep(&endpoint, 0, Duration::ZERO).await;
    assert_eq!(endpoint.http2[0].lock().unwrap().len(), 1, "it is in use");
    ask(held).await;
    pool::sweep(&endpoint, 0, Duration::from_secs(60)).await;
    assert_eq!(endpoint.http2[0].lock().unwrap().len(), 1, "not yet");
    pool::sweep(&endpoint, 0, Duration::ZERO).await;
    assert_eq!(endpoint.http2[0].lock().unwrap().len(), 0);
    let all = endpoint.room.acquire_many(4);
    let closed = tokio::time::timeout(Duration::from_secs(5), all).await;
    assert!(closed.is_ok(), "its place is free again");
}

/// A server that allows so many requests at a time lets the next one wait; another connection does not.
#[tokio::test]
async fn many_requests_are_spread() {
    let (cluster, endpoint) = endpoint(backend().await, 2);
    let fabric: Arc<dyn Fabric> = Arc::new(PlainTcp::default());
    let dialler = Dialler {
        fabric: &fabric,
        worker: 0,
        connect: Duration::from_secs(2),
    };
    let mut held = Vec::new();
    for _ in 0..2 * STREAMS + 1 {
        held.push(http2(dialler, &cluster, &endpoint, Origin::Node).await.unwrap());
    }
    let lines = endpoint.http2[0].lock().unwrap();
    let streams: Vec<usize> = lines.iter().map(|line| line.activity.streams()).collect();
    assert_eq!(
        streams,
        [STREAMS + 1, STREAMS],
        "and when there is no room for another, it waits"
    );
}
