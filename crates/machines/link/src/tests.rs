//! Both ends over a pipe, with machines that are not real.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_fabric::{Connection, Destination, PlainTcp};
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::node::{Answers, answer_on};
use crate::{Links, wire};

/// Machines whose consoles say everything back.
struct Echo;

impl Guests for Echo {
    fn can_plug(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        door: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move {
            assert_eq!(node, "far");
            if key.name != "web" {
                return Err(Refusal::NotRunning(key.clone()));
            }
            if door == Door::Vnc {
                return Err(Refusal::Lacks("No graphics devices are present.".to_owned()));
            }
            let (near, far) = duplex(1024);
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
            Ok(Box::new(near) as Box<dyn Connection>)
        })
    }

    fn figures(&self) -> BoxFuture<'_, String> {
        Box::pin(async { "kubevirt_vmi_info{node=\"far\",name=\"web\"} 1\n".to_owned() })
    }

    fn order<'a>(
        &'a self,
        _: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            match order {
                Order::Screenshot => Ok(json!({"png": "x".repeat(3 << 20)})),
                order => Err(Refusal::Conflict(format!("{} {order:?}", key.name))),
            }
        })
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(&WorkspaceId::parse("team").unwrap(), "ns", name)
}

/// A node that is connected; ends when the task does.
async fn connect(links: &Links) -> JoinHandle<()> {
    let (server, node) = duplex(16 << 10);
    let taking = links.clone();
    tokio::spawn(async move { taking.take("far", server).await });
    let answers = Answers {
        node: "far".to_owned(),
        guests: Arc::new(Echo),
        fabric: Arc::new(PlainTcp::default()),
    };
    let answering = tokio::spawn(async move { drop(answer_on(&answers, node).await) });
    for _ in 0..500 {
        if links.connected() == ["far"] {
            return answering;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the node is not connected");
}

#[tokio::test]
async fn consoles_ports_and_orders_go_through_the_stream() {
    let links = Links::new(None, false);
    let lost = links.open("far", &key("web"), Door::Console).await.err().unwrap();
    assert!(
        matches!(&lost, Refusal::NodeLost { node, .. } if node == "far"),
        "{lost}"
    );
    let _answering = connect(&links).await;

    // Several at a time, with more than any buffer holds, and an end in each direction.
    let talk = |size: usize| {
        let links = links.clone();
        async move {
            let mut console = links.open("far", &key("web"), Door::Console).await.unwrap();
            let sent = vec![b'a'; size];
            let (mut from, mut to) = tokio::io::split(&mut console);
            let sending = async {
                to.write_all(&sent).await.unwrap();
                to.shutdown().await.unwrap();
            };
            let mut heard = Vec::new();
            let (_, read) = tokio::join!(sending, from.read_to_end(&mut heard));
            read.unwrap();
            assert!(heard == sent, "{} of {size} bytes came back", heard.len());
        }
    };
    tokio::join!(talk(5), talk(3 << 20), talk(1 << 20));

    let refused = links
        .open("far", &key("other"), Door::Console)
        .await
        .err()
        .unwrap();
    assert_eq!(refused.to_string(), Refusal::NotRunning(key("other")).to_string());
    let refused = links.open("far", &key("web"), Door::Vnc).await.err().unwrap();
    assert_eq!(refused.to_string(), "No graphics devices are present.");

    let told = links.order("far", &key("web"), Order::Screenshot).await.unwrap();
    assert_eq!(told["png"].as_str().unwrap().len(), 3 << 20);
    let refused = links.order("far", &key("web"), Order::Pause).await.unwrap_err();
    assert_eq!(refused.to_string(), "web Pause");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let to = Destination::new("team", address.ip(), address.port());
    let (dialled, accepted) = tokio::join!(links.dial("far", &to).unwrap(), listener.accept());
    let (mut near, mut far) = (dialled.unwrap(), accepted.unwrap().0);
    near.write_all(b"ping").await.unwrap();
    let mut heard = [0; 4];
    far.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"ping");
    drop(listener);
    let refused = links.dial("far", &to).unwrap().await.err().unwrap();
    assert!(refused.to_string().contains("refused"), "{refused}");
}

#[tokio::test]
async fn a_node_that_is_gone_is_told_and_may_come_back() {
    let links = Links::new(None, false);
    let first = connect(&links).await;
    let mut console = links.open("far", &key("web"), Door::Console).await.unwrap();
    console.write_all(b"x").await.unwrap();
    first.abort();
    let mut heard = Vec::new();
    // Whatever was open is cut.
    let _ = tokio::time::timeout(Duration::from_secs(10), console.read_to_end(&mut heard))
        .await
        .unwrap();
    for _ in 0..500 {
        if links.connected().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(links.order("far", &key("web"), Order::Pause).await.is_err());
    let _second = connect(&links).await;
    assert!(links.open("far", &key("web"), Door::Console).await.is_ok());
    assert_eq!(wire::ORDERS, "/orders");
}

/// Machines that never answer.
struct Silent;

impl Guests for Silent {
    fn can_plug(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        _: &'a str,
        key: &'a ObjectKey,
        _: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move { Err(Refusal::NotRunning(key.clone())) })
    }

    fn figures(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn order<'a>(
        &'a self,
        _: &'a str,
        key: &'a ObjectKey,
        _: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move { Err(Refusal::NotRunning(key.clone())) })
    }
}

#[tokio::test]
async fn figures_come_through_the_streams_and_nobody_waits_for_one_that_is_ill() {
    let links = Links::new(Some(("here".to_owned(), Arc::new(Echo))), true);
    let line = "kubevirt_vmi_info{node=\"far\",name=\"web\"} 1\n".to_owned();
    assert_eq!(links.figures().await, [(None, Ok(line.clone()))]);

    let _answering = connect(&links).await;
    let (server, node) = duplex(16 << 10);
    let taking = links.clone();
    tokio::spawn(async move { taking.take("ill", server).await });
    let answers = Answers {
        node: "ill".to_owned(),
        guests: Arc::new(Silent),
        fabric: Arc::new(PlainTcp::default()),
    };
    let _silent = tokio::spawn(async move { drop(answer_on(&answers, node).await) });
    while links.connected().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let began = std::time::Instant::now();
    let mut told = links.figures().await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    told.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(told[0], (None, Ok(line.clone())));
    assert_eq!(told[1], (Some("far".to_owned()), Ok(line)));
    let (node, why) = told.remove(2);
    assert_eq!(node.as_deref(), Some("ill"));
    assert!(why.unwrap_err().contains("no answer within"));
}

#[tokio::test]
async fn machines_of_this_process_need_no_stream() {
    let links = Links::new(Some(("far".to_owned(), Arc::new(Echo))), true);
    assert!(links.open("far", &key("web"), Door::Console).await.is_ok());
    assert!(
        links
            .dial("far", &Destination::new("team", [127, 0, 0, 1], 1))
            .is_none()
    );
    assert!(links.can_plug());
}
