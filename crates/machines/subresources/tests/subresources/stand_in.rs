//! Machines and a network that are none: what is asked of them is written down, and their bytes are the tests'.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fairway_controller::ObjectKey;
use fairway_fabric::{Connection, Destination, DialError, Fabric};
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc;

/// How a machine behind a connection behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Manner {
    /// It greets and repeats what it hears until that ends.
    #[default]
    Echo,
    /// It sends without end and hears nothing.
    Flood,
    /// It greets and ends.
    Brief,
    /// It hears everything, and says how much that was.
    Count,
}

#[derive(Default)]
pub(crate) struct StandIn {
    /// What was asked for, in words.
    pub(crate) asked: Mutex<Vec<String>>,
    /// What to answer next instead of what is usual.
    pub(crate) answers: Mutex<VecDeque<Result<Value, Refusal>>>,
    pub(crate) manner: Mutex<Manner>,
    /// Bytes that a flooding machine got rid of.
    pub(crate) flooded: Arc<AtomicU64>,
    /// Machines whose connection has ended.
    pub(crate) ended: Mutex<Option<mpsc::UnboundedSender<()>>>,
}

impl StandIn {
    /// What was asked for since the last time.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn note(&self, text: String) {
        self.asked.lock().unwrap().push(text);
    }

    fn machine(&self, greeting: &'static [u8]) -> Box<dyn Connection> {
        let (ours, theirs) = duplex(4 << 10);
        let manner = *self.manner.lock().unwrap();
        let flooded = Arc::clone(&self.flooded);
        let ended = self.ended.lock().unwrap().clone();
        tokio::spawn(async move {
            let _ = behave(manner, theirs, greeting, &flooded).await;
            if let Some(ended) = ended {
                let _ = ended.send(());
            }
        });
        Box::new(ours)
    }
}

async fn behave(
    manner: Manner,
    mut stream: DuplexStream,
    greeting: &[u8],
    flooded: &AtomicU64,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 4 << 10];
    match manner {
        Manner::Echo => {
            stream.write_all(greeting).await?;
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return stream.write_all(b" bye").await,
                    count => stream.write_all(&buffer[..count]).await?,
                }
            }
        }
        Manner::Flood => loop {
            let count = stream.write(&buffer).await?;
            flooded.fetch_add(count as u64, Ordering::SeqCst);
        },
        Manner::Brief => stream.write_all(greeting).await,
        Manner::Count => {
            let mut heard = 0;
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return stream.write_all(format!("{heard} bytes").as_bytes()).await,
                    count => heard += count,
                }
            }
        }
    }
}

impl Guests for StandIn {
    fn can_plug(&self) -> bool {
        true
    }

    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        door: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move {
            self.note(format!("{door:?} of {key} on {node}"));
            if let Some(Err(refusal)) = self.answers.lock().unwrap().pop_front() {
                return Err(refusal);
            }
            Ok(self.machine(match door {
                Door::Console => b"login: ",
                Door::Vnc => b"RFB 003.008\n",
                Door::Backup { .. } => b"QFI\xfb",
            }))
        })
    }

    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            self.note(format!("{order:?} of {key} on {node}"));
            let scripted = self.answers.lock().unwrap().pop_front();
            scripted.unwrap_or_else(|| {
                Ok(match order {
                    // Eight bytes that every picture begins with.
                    Order::Screenshot => json!({"png": "iVBORw0KGgo="}),
                    Order::ConsoleTail { .. } => json!({"tail": "login: "}),
                    Order::GuestOsInfo => {
                        json!({"guestAgentVersion": "7.2", "hostname": "web", "os": {"id": "debian"}})
                    }
                    Order::CloudInit => {
                        json!({"status": {"v1": {"stage": null}}, "result": {"v1": {"errors": []}}})
                    }
                    Order::Usage => json!({"cpuSeconds": 1.5, "residentBytes": 4096}),
                    Order::UsageHistory => json!({"time": [7], "processors": [0.25]}),
                    Order::UserList => json!({"items": [{"userName": "alice", "loginTime": 1.5}]}),
                    Order::FilesystemList => {
                        json!({"items": [{"diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4",
                            "usedBytes": 1, "totalBytes": 2}]})
                    }
                    _ => Value::Null,
                })
            })
        })
    }
}

impl Fabric for StandIn {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        Box::pin(async move {
            self.note(format!("{to}"));
            match to.port {
                1 => Err(DialError::Refused { to }),
                _ => Ok(self.machine(b"SSH-2.0-x\r\n")),
            }
        })
    }
}
