//! A guest that moves from one QEMU to another, and goes on where it was.

use std::time::Duration;

use fairway_machines_image::overlay;
use fairway_machines_qemu::backup::Extent;
use fairway_machines_qemu::migrate::{self, Options};
use fairway_machines_qemu::{Agent, Console, Launch, Machine, start};

use super::bench::{Bench, Boot, QEMU, bench, eventually, shows};

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
    let write = [
        "-c".to_owned(),
        "echo moved >/root/mark; echo memory >/run/mark; sync".to_owned(),
    ];
    agent
        .execute("/bin/sh", &write, None, Duration::from_secs(60))
        .await
        .unwrap();

    // To nowhere: the guest stays, and runs.
    let options = Options {
        timeout: Duration::from_secs(120),
        ..Options::default()
    };
    let nowhere = format!("unix:{}", bench.path("nowhere.sock").display());
    let failed = migrate::send(&source, &nowhere, &options, |_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(
        failed.contains("migrat") || failed.contains("connect"),
        "{failed}"
    );
    assert_eq!(source.state().await.unwrap(), "running");

    let destination = start(&Launch::new(QEMU, &there, waiting)).await.unwrap();
    assert_eq!(destination.state().await.unwrap(), "inmigrate");
    let address = format!("unix:{}", bench.path("migration.sock").display());
    migrate::prepare(&destination, &address, &options).await.unwrap();
    let mut seen = 0;
    let sent = migrate::send(&source, &address, &options, |_| seen += 1)
        .await
        .unwrap();
    migrate::finish(&destination, Duration::from_secs(60))
        .await
        .unwrap();
    assert!(
        seen > 0 && sent.transferred > 1 << 20 && sent.total_ms > Some(0),
        "{sent:?}"
    );
    eprintln!(
        "moved in {:?} ms, stood still for {:?} ms",
        sent.total_ms, sent.downtime_ms
    );
    assert_eq!(source.state().await.unwrap(), "postmigrate");
    source.stop(Duration::ZERO).await.unwrap();

    let agent = Agent::new(&there);
    eventually("the agent after the move", || agent.ping()).await;
    let read = [
        "-c".to_owned(),
        "cat /root/mark /run/mark; echo again >/root/mark; sync".to_owned(),
    ];
    let executed = agent
        .execute("/bin/sh", &read, None, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&executed.output), "moved\nmemory\n");
    copies(&destination, &agent, &bench).await;
    destination.stop(Duration::ZERO).await.unwrap();
    // Nothing of all this has touched the image that other machines share.
    let sum = std::process::Command::new("sha256sum")
        .arg(&bench.image.path)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&bench.image.digest));
    let check = std::process::Command::new("qemu-img")
        .arg("check")
        .arg(&disk)
        .output()
        .unwrap();
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stdout)
    );
}

/// What the guest has in a file, or nothing.
async fn content(agent: &Agent, path: &str) -> String {
    let read = ["-c".to_owned(), format!("cat {path} 2>/dev/null; true")];
    let executed = agent
        .execute("/bin/sh", &read, None, Duration::from_secs(60))
        .await
        .unwrap();
    String::from_utf8_lossy(&executed.output).trim().to_owned()
}

async fn put(agent: &Agent, text: &str, path: &str) {
    let write = ["-c".to_owned(), format!("{text} >{path} && sync")];
    let executed = agent
        .execute("/bin/sh", &write, None, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(executed.code, Some(0));
}

/// Saved states, layers and backups of a machine that runs.
async fn copies(machine: &Machine, agent: &Agent, bench: &Bench) {
    let minute = Duration::from_secs(120);
    let nodes = ["root-disk"];
    machine.save_state("before", &nodes, minute).await.unwrap();
    put(agent, "echo after", "/root/mark").await;
    machine.load_state("before", &nodes, minute).await.unwrap();
    assert_eq!(machine.state().await.unwrap(), "running");
    eventually("the agent in the past", || agent.ping()).await;
    assert_eq!(content(agent, "/root/mark").await, "again");
    machine.delete_state("before", &nodes, minute).await.unwrap();
    let unknown = machine
        .load_state("never", &nodes, minute)
        .await
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("never"), "{unknown}");
    assert_eq!(machine.state().await.unwrap(), "running");

    let layer = bench.path("layer.qcow2").display().to_string();
    machine.add_layer("root-disk", &layer, "layer").await.unwrap();
    put(agent, "echo layered", "/root/mark").await;
    machine.merge_layer("layer", "root-disk", minute).await.unwrap();

    machine.add_bitmap("root-disk", "changes").await.unwrap();
    let room = bench.directory.path();
    let size = 1 << 30;
    for name in ["full", "part"] {
        overlay::blank(room, name, size).unwrap();
    }
    let file = |name: &str| bench.path(&format!("{name}.qcow2"));
    let full = file("full").display().to_string();
    machine
        .back_up("root-disk", &full, &Extent::Full, minute)
        .await
        .unwrap();
    put(agent, "head -c 3000000 /dev/urandom", "/root/noise").await;
    let part = file("part").display().to_string();
    machine
        .back_up("root-disk", &part, &Extent::Since("changes"), minute)
        .await
        .unwrap();
    let bytes = |name: &str| std::fs::metadata(file(name)).unwrap().len();
    assert!(
        bytes("part") > 3_000_000 && bytes("part") < bytes("full") / 2,
        "{} {}",
        bytes("part"),
        bytes("full")
    );
    machine.remove_bitmap("root-disk", "changes").await.unwrap();
    assert_eq!(content(agent, "/root/mark").await, "layered");
    layer_of_one_moment(machine, agent, bench).await;
}

/// What was written to a disk until one moment, while the guest writes on.
async fn layer_of_one_moment(machine: &Machine, agent: &Agent, bench: &Bench) {
    let here = bench.path("here");
    let node = machine.node_of(&here.join("root.qcow2")).await.unwrap();
    assert_eq!(node.as_deref(), Some("root-disk"));
    assert_eq!(machine.node_of(&bench.path("full.qcow2")).await.unwrap(), None);
    let room = bench.path("copies");
    std::fs::create_dir(&room).unwrap();
    overlay::like(&here, &room, "root").unwrap();
    let file = room.join("root.qcow2");
    put(agent, "echo early-7d1f", "/root/early").await;
    machine.begin_copy("root-disk", &file, "copy-1").await.unwrap();
    machine.begin_copy("root-disk", &file, "copy-1").await.unwrap();
    put(agent, "echo late-7d1f", "/root/late").await;
    let begun = std::time::Instant::now();
    while !machine.copied("copy-1").await.unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = machine.copied("copy-1").await.unwrap_err().to_string();
    assert!(gone.contains("any more"), "{gone}");
    let flat = room.join("flat.raw");
    let done = std::process::Command::new("qemu-img")
        .args(["convert", "-O", "raw"])
        .args([&file, &flat])
        .status()
        .unwrap();
    assert!(done.success());
    let has = |text: &str| {
        let found = std::process::Command::new("grep")
            .args(["-a", "-q", text])
            .arg(&flat)
            .status();
        found.unwrap().success()
    };
    assert!(has("early-7d1f") && !has("late-7d1f"));
    // One that nobody wants any more.
    overlay::like(&here, &room, "root").unwrap();
    machine.begin_copy("root-disk", &file, "copy-2").await.unwrap();
    machine
        .break_copy_off("copy-2", Duration::from_secs(20))
        .await
        .unwrap();
    machine
        .break_copy_off("copy-2", Duration::from_secs(20))
        .await
        .unwrap();
}
