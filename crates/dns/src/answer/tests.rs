//! Questions of a workspace's machines.

use super::*;
use crate::zone::{Endpoint, Kind, Machine, Port, Service};

const VIP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
const DB_0: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 5);
const DB_1: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 6);
const LONELY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 7);

fn zone() -> Zone {
    let port = |name: &str, port| Port {
        name: name.into(),
        protocol: "tcp".into(),
        port,
    };
    let service = |name: &str, kind| Service {
        namespace: "shop".into(),
        name: name.into(),
        kind,
    };
    let endpoint = |hostname: Option<&str>, address| Endpoint {
        hostname: hostname.map(Into::into),
        address,
        ports: vec![port("pg", 5432)],
    };
    let machine = |name: &str, subdomain: Option<&str>, address| Machine {
        namespace: "shop".into(),
        name: name.into(),
        hostname: Some(format!("{name}-host")),
        subdomain: subdomain.map(Into::into),
        address,
    };
    Zone::new(
        "cluster.local",
        vec![
            (Ipv4Addr::new(10, 88, 0, 0), 16),
            (Ipv4Addr::new(10, 96, 0, 0), 12),
        ],
        &[
            service(
                "web",
                Kind::Cluster {
                    addresses: vec![VIP],
                    ports: vec![port("http", 80), port("", 81)],
                },
            ),
            service(
                "db",
                Kind::Headless(vec![endpoint(Some("db-0"), DB_0), endpoint(None, DB_1)]),
            ),
            service("empty", Kind::Headless(vec![])),
            service("docs", Kind::External("docs.example.org.".into())),
            service("alias", Kind::External("web.shop.svc.cluster.local".into())),
            service("loop", Kind::External("loop.shop.svc.cluster.local".into())),
        ],
        &[
            machine("lonely", None, LONELY),
            machine("member", Some("db"), Ipv4Addr::new(10, 88, 0, 8)),
            machine("stray", Some("web"), Ipv4Addr::new(10, 88, 0, 9)),
        ],
    )
}

fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(0, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

/// The reply in words: its code, and the answers' data in order.
fn said(name: &str, kind: RecordType) -> String {
    match answer(&[&zone()], &question(name, kind), true) {
        Outcome::Reply(reply) => {
            let has_soa = reply
                .authorities
                .iter()
                .any(|record| record.record_type() == RecordType::SOA);
            assert_eq!(
                has_soa,
                reply.answers.is_empty(),
                "{name}: nothing comes with a SOA"
            );
            let answers: Vec<String> = reply
                .answers
                .iter()
                .map(|record| record.data.to_string())
                .collect();
            format!("{} {}", reply.metadata.response_code, answers.join(", "))
        }
        Outcome::Ask(query) => format!("ask {}", query.name()),
        Outcome::Complete { reply, ask } => {
            format!("{} answers, then ask {}", reply.answers.len(), ask.name())
        }
    }
}

#[test]
fn names_of_services_and_machines() {
    use RecordType::{A, AAAA, CNAME, MX, PTR, SRV, TXT};
    const NONE: &str = "No Error ";
    const NX: &str = "Non-Existent Domain ";
    for (name, kind, expected) in [
        ("web.shop.svc.cluster.local.", A, "No Error 10.96.0.10"),
        ("WEB.Shop.svc.cluster.LOCAL.", A, "No Error 10.96.0.10"),
        ("web.shop.svc.cluster.local.", AAAA, NONE),
        ("web.shop.svc.cluster.local.", MX, NONE),
        ("web.other.svc.cluster.local.", A, NX),
        ("nobody.shop.svc.cluster.local.", A, NX),
        ("shop.svc.cluster.local.", A, NONE),
        ("svc.cluster.local.", A, NONE),
        ("cluster.local.", A, NONE),
        (
            "_http._tcp.web.shop.svc.cluster.local.",
            SRV,
            "No Error 0 100 80 web.shop.svc.cluster.local.",
        ),
        ("_tcp.web.shop.svc.cluster.local.", SRV, NONE),
        ("_.81._tcp.web.shop.svc.cluster.local.", SRV, NX),
        ("db.shop.svc.cluster.local.", A, "No Error 10.88.0.5, 10.88.0.6"),
        ("db-0.db.shop.svc.cluster.local.", A, "No Error 10.88.0.5"),
        ("10-88-0-6.db.shop.svc.cluster.local.", A, "No Error 10.88.0.6"),
        (
            "_pg._tcp.db.shop.svc.cluster.local.",
            SRV,
            "No Error 0 100 5432 10-88-0-6.db.shop.svc.cluster.local., 0 100 5432 db-0.db.shop.svc.cluster.local.",
        ),
        ("empty.shop.svc.cluster.local.", A, NONE),
        (
            "docs.shop.svc.cluster.local.",
            CNAME,
            "No Error docs.example.org.",
        ),
        (
            "docs.shop.svc.cluster.local.",
            A,
            "1 answers, then ask docs.example.org.",
        ),
        (
            "alias.shop.svc.cluster.local.",
            A,
            "No Error web.shop.svc.cluster.local., 10.96.0.10",
        ),
        ("lonely.shop.vm.cluster.local.", A, "No Error 10.88.0.7"),
        ("lonely.other.vm.cluster.local.", A, NX),
        ("10-88-0-7.shop.pod.cluster.local.", A, "No Error 10.88.0.7"),
        ("member-host.db.shop.svc.cluster.local.", A, "No Error 10.88.0.8"),
        ("stray-host.web.shop.svc.cluster.local.", A, NX),
        (
            "10.0.96.10.in-addr.arpa.",
            PTR,
            "No Error web.shop.svc.cluster.local.",
        ),
        (
            "5.0.88.10.in-addr.arpa.",
            PTR,
            "No Error db-0.db.shop.svc.cluster.local.",
        ),
        (
            "7.0.88.10.in-addr.arpa.",
            PTR,
            "No Error lonely.shop.vm.cluster.local.",
        ),
        (
            "8.0.88.10.in-addr.arpa.",
            PTR,
            "No Error member-host.db.shop.svc.cluster.local.",
        ),
        ("99.0.88.10.in-addr.arpa.", PTR, NX),
        ("8.8.8.8.in-addr.arpa.", PTR, "ask 8.8.8.8.in-addr.arpa."),
        ("dns-version.cluster.local.", TXT, "No Error 1.1.0"),
        ("example.org.", A, "ask example.org."),
        ("evilcluster.local.", A, "ask evilcluster.local."),
    ] {
        assert_eq!(said(name, kind), expected, "{name} {kind}");
    }
    let looped = said("loop.shop.svc.cluster.local.", A);
    assert!(
        looped.starts_with("No Error loop"),
        "an alias of itself ends: {looped}"
    );
}

#[test]
fn another_workspace_has_other_names() {
    let empty = Zone::new("cluster.local", vec![], &[], &[]);
    let question = question("web.shop.svc.cluster.local.", RecordType::A);
    for (what, zone, can_ask, expected) in [
        ("an empty workspace", Some(&empty), true, ResponseCode::NXDomain),
        ("no workspace", None, false, ResponseCode::Refused),
    ] {
        let Outcome::Reply(reply) = answer(zone.as_slice(), &question, can_ask) else {
            panic!("{what}");
        };
        assert_eq!(reply.metadata.response_code, expected, "{what}");
    }
}

#[test]
fn addresses_take_turns() {
    let first = |id| {
        let mut question = question("db.shop.svc.cluster.local.", RecordType::A);
        question.metadata.id = id;
        match answer(&[&zone()], &question, false) {
            Outcome::Reply(reply) => addresses(&reply)[0],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((first(0), first(1), first(2)), (DB_0, DB_1, DB_0));
}

#[test]
fn odd_questions_are_refused() {
    let plain = question("web.shop.svc.cluster.local.", RecordType::A);
    let changed = |change: &dyn Fn(&mut Message)| {
        let mut message = plain.clone();
        change(&mut message);
        message
    };
    for (what, message, expected) in [
        (
            "an update",
            changed(&|m| m.metadata.op_code = OpCode::Update),
            ResponseCode::NotImp,
        ),
        (
            "no question",
            changed(&|m| m.queries.clear()),
            ResponseCode::FormErr,
        ),
        (
            "two questions",
            changed(&|m| m.queries.push(m.queries[0].clone())),
            ResponseCode::FormErr,
        ),
        (
            "another class",
            changed(&|m| {
                m.queries[0].set_query_class(DNSClass::CH);
            }),
            ResponseCode::Refused,
        ),
        (
            "a transfer",
            changed(&|m| {
                m.queries[0].set_query_type(RecordType::AXFR);
            }),
            ResponseCode::Refused,
        ),
    ] {
        let Outcome::Reply(reply) = answer(&[&zone()], &message, true) else {
            panic!("{what}");
        };
        assert_eq!(reply.metadata.response_code, expected, "{what}");
    }
    assert!(unreadable(&[0; 11]).is_none());
    assert!(unreadable(&[0; 12]).is_some());
    assert!(
        unreadable(&[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none(),
        "an answer"
    );
}
