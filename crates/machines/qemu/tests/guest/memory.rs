//! A guest whose memory is kept with a copy of its disk, and that goes on in another process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairway_machines_image::{overlay, sealed};
use fairway_machines_qemu::{Agent, Launch, MemoryFile, start};

use super::bench::{Boot, PATIENCE, QEMU, bench, eventually};

async fn in_guest(agent: &Agent, script: &str) -> String {
    let arguments = ["-c".to_owned(), script.to_owned()];
    let executed = agent
        .execute("/bin/sh", &arguments, None, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(executed.code, Some(0), "{script}");
    String::from_utf8_lossy(&executed.output).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_goes_on_with_its_memory() {
    let Some(bench) = bench("a_guest_goes_on_with_its_memory").await else {
        return;
    };
    let directory = bench.machine("vm");
    let disk = directory.join("root.qcow2");
    let line = bench.arguments(&Boot::Direct, &disk, None, &[]);
    let machine = start(&Launch::new(QEMU, &directory, line)).await.unwrap();
    let agent = Agent::new(&directory);
    eventually("the agent", || agent.ping()).await;
    let boot = in_guest(&agent, "cat /proc/sys/kernel/random/boot_id").await;
    in_guest(&agent, "echo before >/root/mark; sync; echo kept >/run/mark").await;

    let keys = bench.path("memory.key");
    let key = sealed::key(&keys).unwrap();
    let memory = bench.path("memory.luks");
    sealed::make(&memory).unwrap();
    let file = MemoryFile {
        path: &memory,
        key: &key,
    };
    let refused = machine.save_memory(file, 1 << 30, PATIENCE).await.unwrap_err();
    assert!(refused.to_string().contains("stand still"), "{refused}");
    machine.pause().await.unwrap();
    // The copy of a disk begins before or after, and goes on meanwhile.
    let copied = bench.path("copied");
    std::fs::create_dir(&copied).unwrap();
    overlay::like(&directory, &copied, "root").unwrap();
    let copy = copied.join("root.qcow2");
    machine.begin_copy("root-disk", &copy, "copy").await.unwrap();
    machine.save_memory(file, 1 << 30, PATIENCE).await.unwrap();
    assert_eq!(machine.state().await.unwrap(), "paused");
    machine.resume().await.unwrap();
    in_guest(&agent, "echo after >/root/mark; sync; rm /run/mark").await;
    machine.finish_backup(&["copy"], PATIENCE).await.unwrap();
    machine.kill().await.unwrap();
    let found = Command::new("grep")
        .args(["-q", "-a", "-F", &boot])
        .arg(&memory)
        .status();
    assert_eq!(found.unwrap().code(), Some(1), "memory lies there in the clear");

    // In another process, on the copy. With another key there is nothing to be had.
    let again = bench.machine("again");
    let line = bench.arguments(&Boot::Direct, &copy, None, &["-S".to_owned()]);
    let machine = start(&Launch::new(QEMU, &again, line)).await.unwrap();
    let wrong = MemoryFile {
        path: Path::new("../memory.luks"),
        key: &"0".repeat(64),
    };
    machine.load_memory(wrong, PATIENCE).await.unwrap_err();
    let file = MemoryFile {
        path: Path::new("../memory.luks"),
        key: &key,
    };
    machine.load_memory(file, PATIENCE).await.unwrap();
    assert_ne!(machine.state().await.unwrap(), "running");
    machine.resume().await.unwrap();
    let agent = Agent::new(&again);
    eventually("the agent", || agent.ping()).await;
    assert_eq!(
        in_guest(&agent, "cat /proc/sys/kernel/random/boot_id").await,
        boot
    );
    assert_eq!(in_guest(&agent, "cat /root/mark /run/mark").await, "before\nkept");
    machine.kill().await.unwrap();
}
