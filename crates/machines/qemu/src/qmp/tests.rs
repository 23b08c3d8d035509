//! The client against a QEMU that is played by the test.

use tokio::io::{AsyncReadExt as _, DuplexStream};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Played(DuplexStream);

impl Played {
    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next line that the client sends.
    async fn hear(&mut self) -> Value {
        let mut line = Vec::new();
        loop {
            let byte = self.0.read_u8().await.unwrap();
            if byte == b'\n' {
                return serde_json::from_slice(&line).unwrap();
            }
            line.push(byte);
        }
    }
}

async fn connected() -> (Qmp, Played) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let mut qemu = Played(theirs);
    let opening = tokio::spawn(Qmp::open(ours, 5 * SECOND));
    qemu.say("{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n")
        .await;
    assert_eq!(qemu.hear().await["execute"], "qmp_capabilities");
    qemu.say("{\"return\": {}, \"id\": 0}\r\n").await;
    (opening.await.unwrap().unwrap(), qemu)
}

#[tokio::test]
async fn answers_find_their_commands() {
    let (qmp, mut qemu) = connected().await;
    let one = tokio::spawn({
        let qmp = qmp.clone();
        async move { qmp.execute("one", json!({"a": 1})).await }
    });
    let first = qemu.hear().await;
    let other = tokio::spawn(async move { qmp.execute("other", Value::Null).await });
    let second = qemu.hear().await;
    assert_eq!(first["arguments"]["a"], 1);
    assert!(second.get("arguments").is_none());
    // In the other order, with an event in between and a line in two pieces.
    let text = format!(
        "{{\"error\": {{\"class\": \"GenericError\", \"desc\": \"no\"}}, \"id\": {}}}\n",
        second["id"]
    );
    qemu.say(&text[..10]).await;
    qemu.say(&text[10..]).await;
    qemu.say("{\"event\": \"STOP\", \"timestamp\": {}}\n\n").await;
    qemu.say(&format!(
        "{{\"return\": {{\"b\": 2}}, \"id\": {}}}\n",
        first["id"]
    ))
    .await;
    assert_eq!(one.await.unwrap().unwrap()["b"], 2);
    let refused = other.await.unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "QEMU refused other: no");
    assert!(refused.is_class("GenericError"));
}

#[tokio::test]
async fn a_late_answer_is_nobodys() {
    let (qmp, mut qemu) = connected().await;
    let late = qmp
        .execute_within("slow", Value::Null, Duration::from_millis(20))
        .await;
    assert!(matches!(late, Err(QmpError::Timeout { .. })));
    let slow = qemu.hear().await;
    let next = tokio::spawn({
        let qmp = qmp.clone();
        async move { qmp.execute("next", Value::Null).await }
    });
    let asked = qemu.hear().await;
    qemu.say(&format!("{{\"return\": \"slow\", \"id\": {}}}\n", slow["id"]))
        .await;
    qemu.say(&format!("{{\"return\": \"next\", \"id\": {}}}\n", asked["id"]))
        .await;
    assert_eq!(next.await.unwrap().unwrap(), "next");
}

#[tokio::test]
async fn the_end_is_heard_by_everybody() {
    let (qmp, mut qemu) = connected().await;
    let mut events = qmp.events();
    let waiting = tokio::spawn({
        let qmp = qmp.clone();
        async move { qmp.execute("quit", Value::Null).await }
    });
    qemu.hear().await;
    qemu.say("{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": false, \"reason\": \"host-qmp-quit\"}}\n")
        .await;
    drop(qemu);
    assert_eq!(waiting.await.unwrap(), Err(QmpError::Closed));
    assert!(matches!(
        events.next().await,
        Some(Event::Shutdown { by_guest: false, .. })
    ));
    assert_eq!(events.next().await, None);
    assert_eq!(qmp.execute("again", Value::Null).await, Err(QmpError::Closed));
    assert_eq!(qmp.events().next().await, None);
}

#[tokio::test]
async fn a_slow_listener_is_told_what_it_missed() {
    let (qmp, qemu) = connected().await;
    let mut qemu = qemu;
    let mut events = qmp.events();
    for _ in 0..EVENTS + 10 {
        qemu.say("{\"event\": \"RESUME\"}\n").await;
    }
    drop(qemu);
    let mut found = Vec::new();
    // The connection's task may lag behind: the listener starts when everything has been heard.
    while qmp.events.upgrade().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while let Some(event) = events.next().await {
        found.push(event);
    }
    assert_eq!(found.first(), Some(&Event::Missed(10)));
    assert_eq!(found.len(), EVENTS + 1);
}

#[tokio::test]
async fn who_does_not_greet_is_not_qemu() {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    theirs.write_all(b"SSH-2.0-x\n").await.unwrap();
    assert!(matches!(
        Qmp::open(ours, SECOND).await,
        Err(QmpError::Protocol(_))
    ));
    let (ours, _theirs) = tokio::io::duplex(1024);
    let silent = Qmp::open(ours, Duration::from_millis(20)).await.unwrap_err();
    assert!(silent.to_string().contains("another client"), "{silent}");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let mut theirs = theirs;
        while theirs.write_all(&[b' '; 4096]).await.is_ok() {}
    });
    assert!(matches!(
        Qmp::open(ours, 30 * SECOND).await,
        Err(QmpError::Protocol(_))
    ));
}
