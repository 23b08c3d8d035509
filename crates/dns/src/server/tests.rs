//! The server with bytes in and bytes out, beside an upstream of its own.

use std::net::{Ipv4Addr, SocketAddr};

use hickory_proto::op::{MessageType, OpCode, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use proptest::prelude::*;
use tokio::net::{TcpListener, UdpSocket};

use super::*;
use crate::answer::addresses;
use crate::zone::{Kind, Machine, Service};

fn zone(last: u8) -> Zone {
    let machine = Machine {
        namespace: "shop".into(),
        name: "web".into(),
        hostname: None,
        subdomain: None,
        address: Ipv4Addr::new(10, 88, 0, last),
    };
    let docs = Service {
        namespace: "shop".into(),
        name: "docs".into(),
        kind: Kind::External("docs.example.org".into()),
    };
    let many = (0..100).map(|n| Machine {
        name: format!("m{n}"),
        hostname: None,
        subdomain: Some("all".into()),
        address: Ipv4Addr::new(10, 88, 1, n),
        ..machine.clone()
    });
    let all = Service {
        namespace: "shop".into(),
        name: "all".into(),
        kind: Kind::Headless(
            (0..100)
                .map(|n| crate::zone::Endpoint {
                    hostname: None,
                    address: Ipv4Addr::new(10, 88, 1, n),
                    ports: vec![],
                })
                .collect(),
        ),
    };
    let machines: Vec<Machine> = many.chain([machine.clone()]).collect();
    Zone::new("cluster.local", vec![], &[docs, all], &machines)
}

fn question(name: &str) -> Vec<u8> {
    let mut message = Message::new(77, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message.to_vec().unwrap()
}

async fn asked(server: &Server, workspace: &str, name: &str, transport: Transport) -> Message {
    let answer = server
        .answer(workspace, &question(name), transport)
        .await
        .unwrap();
    let message = Message::from_vec(&answer).unwrap();
    assert_eq!(message.metadata.id, 77);
    message
}

/// An upstream that knows one address for every name; over datagrams it says only that it would not fit, if `short`.
async fn upstream(short: bool) -> SocketAddr {
    // The same port for both, as a resolver has.
    let (stream, datagrams) = loop {
        let stream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(datagrams) = UdpSocket::bind(stream.local_addr().unwrap()).await {
            break (stream, datagrams);
        }
    };
    let address = stream.local_addr().unwrap();
    fn reply(message: &[u8]) -> Message {
        let question = Message::from_vec(message).unwrap();
        let mut reply = Message::response(question.metadata.id, OpCode::Query);
        let query = question.queries[0].clone();
        reply.add_answer(Record::from_rdata(
            query.name().clone(),
            60,
            RData::A(A::new(192, 0, 2, 1)),
        ));
        reply.add_query(query);
        reply
    }
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = datagrams.recv_from(&mut buffer).await.unwrap();
            let mut reply = reply(&buffer[..length]);
            if short {
                reply = reply.truncate();
            }
            datagrams.send_to(&reply.to_vec().unwrap(), from).await.unwrap();
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut client, _) = stream.accept().await.unwrap();
            let message = read_message(&mut client).await.unwrap();
            let answer = reply(&message).to_vec().unwrap();
            client
                .write_u16(u16::try_from(answer.len()).unwrap())
                .await
                .unwrap();
            client.write_all(&answer).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn the_asker_decides_what_exists() {
    let server = Server::new(None);
    server.set_zone("a", zone(1));
    server.set_zone("b", zone(2));
    for (workspace, expected) in [
        ("a", vec![Ipv4Addr::new(10, 88, 0, 1)]),
        ("b", vec![Ipv4Addr::new(10, 88, 0, 2)]),
        ("c", vec![]),
    ] {
        let reply = asked(
            &server,
            workspace,
            "web.shop.vm.cluster.local.",
            Transport::Datagram,
        )
        .await;
        assert_eq!(addresses(&reply), expected, "{workspace}");
    }
    server.remove_zone("a");
    let reply = asked(&server, "a", "web.shop.vm.cluster.local.", Transport::Datagram).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
}

#[tokio::test]
async fn the_rest_of_the_world_is_asked_for() {
    for short in [false, true] {
        let server = Server::new(Some(Upstream::new(vec![upstream(short).await])));
        server.set_zone("a", zone(1));
        let outside = Ipv4Addr::new(192, 0, 2, 1);
        for (name, answers) in [("example.org.", 1), ("docs.shop.svc.cluster.local.", 2)] {
            let reply = asked(&server, "a", name, Transport::Datagram).await;
            assert_eq!(addresses(&reply), [outside], "{name}");
            assert_eq!(reply.answers.len(), answers, "{name}: with its alias");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_is_silent_is_a_failure_and_not_a_hang() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut upstream = Upstream::new(vec![silent.local_addr().unwrap()]);
    upstream.timeout = Duration::from_millis(50);
    let server = Server::new(Some(upstream));
    let reply = asked(&server, "a", "example.org.", Transport::Datagram).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
}

#[tokio::test]
async fn what_does_not_fit_is_asked_again_over_a_stream() {
    let server = Server::new(None);
    server.set_zone("a", zone(1));
    let reply = asked(&server, "a", "all.shop.svc.cluster.local.", Transport::Datagram).await;
    assert!(reply.metadata.truncation && reply.answers.is_empty());

    let (mut client, end) = tokio::io::duplex(4096);
    let serving = server.serve_stream("a", end);
    let asking = async {
        for _ in 0..2 {
            let question = question("all.shop.svc.cluster.local.");
            client
                .write_u16(u16::try_from(question.len()).unwrap())
                .await
                .unwrap();
            client.write_all(&question).await.unwrap();
            let reply = Message::from_vec(&read_message(&mut client).await.unwrap()).unwrap();
            assert_eq!(addresses(&reply).len(), 100);
        }
        drop(client);
    };
    tokio::join!(serving, asking);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_messages_end(noise in prop::collection::vec(any::<u8>(), 0..120), cut in 0_usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let server = Server::new(None);
        server.set_zone("a", Zone::new("cluster.local", vec![], &[], &[]));
        let mut message = question("web.shop.svc.cluster.local.");
        message.truncate(message.len().saturating_sub(cut));
        message.extend(&noise);
        runtime.block_on(async {
            let _ = server.answer("a", &noise, Transport::Datagram).await;
            let _ = server.answer("a", &message, Transport::Stream).await;
        });
    }
}

#[tokio::test]
async fn what_is_published_is_known_in_every_workspace() {
    let server = Server::new(None);
    let service = Service {
        namespace: "shop".into(),
        name: "front".into(),
        kind: Kind::External("www.apps.example".into()),
    };
    server.set_zone("a", Zone::new("cluster.local", vec![], &[service], &[]));
    let published = [
        ("www.apps.example".to_owned(), vec![Ipv4Addr::new(192, 0, 2, 7)]),
        ("here.apps.example".to_owned(), vec![]),
    ];
    server.set_common(Zone::of_hosts("apps.example", published));
    let there = vec![Ipv4Addr::new(192, 0, 2, 7)];
    for (workspace, name, expected, found, why) in [
        (
            "a",
            "www.apps.example.",
            ResponseCode::NoError,
            &there,
            "published",
        ),
        (
            "b",
            "www.apps.example.",
            ResponseCode::NoError,
            &there,
            "where there is no zone, too",
        ),
        (
            "a",
            "front.shop.svc.cluster.local.",
            ResponseCode::NoError,
            &there,
            "an alias leads there",
        ),
        (
            "a",
            "no.apps.example.",
            ResponseCode::NXDomain,
            &vec![],
            "nobody else is asked below the domain",
        ),
        (
            "a",
            "here.apps.example.",
            ResponseCode::NoError,
            &vec![],
            "it exists, and cannot be reached",
        ),
        ("a", "example.org.", ResponseCode::Refused, &vec![], "nobody's"),
    ] {
        let reply = asked(&server, workspace, name, Transport::Datagram).await;
        assert_eq!(
            (reply.metadata.response_code, &addresses(&reply)),
            (expected, found),
            "{why}"
        );
    }
}
