//! A guest that moves from one QEMU to another, and goes on where it was.

use std::time::Duration;

use fairway_machines_qemu::migrate::{self, Options};
use fairway_machines_qemu::{Agent, Console, Launch, start};

use super::bench::{Boot, QEMU, bench, eventually, shows};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_moves() {
    let Some(bench) = bench("a_guest_moves").await else {
        return;
    };
    let here = bench.machine("here");
    let there = bench.path("there");
    let disk = here.join("root.qcow2");
    let line = bench.arguments(&Boot::Direct, &disk, None, &[]);
    let mut waiting = line.clone();
    waiting.extend(["-incoming".to_owned(), "defer".to_owned()]);
    let source = start(&Launch::new(QEMU, &here, line)).await.unwrap();
    let console = Console::open(&here).unwrap();
    shows(&mut console.reader(), "login:").await;
    let agent = Agent::new(&here);
    eventually("the agent", || agent.ping()).await;
    let write = ["-c".to_owned(), "echo moved >/root/mark; echo memory >/run/mark; sync".to_owned()];
    agent.execute("/bin/sh", &write, None, Duration::from_secs(60)).await.unwrap();

    // To nowhere: the guest stays, and runs.
    let options = Options {
        timeout: Duration::from_secs(120),
        ..Options::default()
    };
    let nowhere = format!("unix:{}", bench.path("nowhere.sock").display());
    let failed = migrate::send(&source, &nowhere, &options, |_| {}).await.unwrap_err().to_string();
    assert!(failed.contains("migrat") || failed.contains("connect"), "{failed}");
    assert_eq!(source.state().await.unwrap(), "running");

    let destination = start(&Launch::new(QEMU, &there, waiting)).await.unwrap();
    assert_eq!(destination.state().await.unwrap(), "inmigrate");
    let address = format!("unix:{}", bench.path("migration.sock").display());
    migrate::prepare(&destination, &address, &options).await.unwrap();
    let mut seen = 0;
    let sent = migrate::send(&source, &address, &options, |_| seen += 1).await.unwrap();
    migrate::finish(&destination, Duration::from_secs(60)).await.unwrap();
    assert!(seen > 0 && sent.transferred > 0 && sent.downtime_ms.is_some(), "{sent:?}");
    eprintln!("moved in {:?} ms, stood still for {:?} ms", sent.total_ms, sent.downtime_ms);
    assert_eq!(source.state().await.unwrap(), "postmigrate");
    source.stop(Duration::ZERO).await.unwrap();

    let agent = Agent::new(&there);
    eventually("the agent after the move", || agent.ping()).await;
    let read = ["-c".to_owned(), "cat /root/mark /run/mark; echo again >/root/mark; sync".to_owned()];
    let executed = agent.execute("/bin/sh", &read, None, Duration::from_secs(60)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&executed.output), "moved\nmemory\n");
    destination.stop(Duration::ZERO).await.unwrap();
    let check = std::process::Command::new("qemu-img").arg("check").arg(&disk).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
