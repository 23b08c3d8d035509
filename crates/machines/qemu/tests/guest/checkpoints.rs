//! Backups of a guest that runs: everything, then what has changed, over the end of QEMU; and what is left after it was killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fairway_machines_qemu::checkpoint::Copy;
use fairway_machines_qemu::{Agent, Launch, Machine, Stopped, start};

use super::bench::{Bench, Boot, PATIENCE, QEMU, bench, eventually};

/// The node of the guest's disk.
const DISK: &str = "root-disk";

fn qemu_img(arguments: &[&str], paths: &[&Path]) -> String {
    let output = Command::new("qemu-img")
        .args(arguments)
        .args(paths)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "qemu-img {arguments:?}: {said}{errors}");
    said
}

async fn in_guest(agent: &Agent, script: &str) {
    let arguments = ["-c".to_owned(), script.to_owned()];
    let executed = agent
        .execute("/bin/sh", &arguments, None, Duration::from_secs(120))
        .await
        .unwrap();
    assert_eq!(executed.code, Some(0), "{script}");
}

struct Chain<'a> {
    bench: &'a Bench,
    /// The files so far, the last on top.
    files: Vec<PathBuf>,
}

impl Chain<'_> {
    /// Backs the disk up into one more file over the last one.
    async fn back_up(&mut self, machine: &Machine, checkpoint: &str, since: Option<&str>) -> u64 {
        let file = self.bench.path(&format!("root.{checkpoint}.qcow2"));
        let disks = machine.disks_to_back_up().await.unwrap();
        let size = disks.iter().find(|it| it.node == DISK).unwrap().size.to_string();
        match self.files.last().filter(|_| since.is_some()) {
            Some(last) => {
                let last = last.file_name().unwrap().to_str().unwrap();
                let arguments = ["create", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", last];
                qemu_img(&arguments, &[&file, Path::new(&size)]);
            }
            None => drop(qemu_img(
                &["create", "-q", "-f", "qcow2"],
                &[&file, Path::new(&size)],
            )),
        }
        let job = format!("backup-{checkpoint}");
        let copy = Copy {
            node: DISK,
            file: &file,
            job: &job,
            since,
        };
        machine.begin_backup(&[copy], checkpoint).await.unwrap();
        machine.finish_backup(&[&job], PATIENCE).await.unwrap();
        let length = std::fs::metadata(&file).unwrap().len();
        self.files.push(file);
        length
    }

    /// The chain, made one file, is what the disk is.
    fn is(&self, disk: &Path) {
        let whole = self.bench.path("whole.qcow2");
        let last = self.files.last().unwrap();
        qemu_img(&["convert", "-q", "-O", "qcow2"], &[last, &whole]);
        qemu_img(&["compare", "-U"], &[&whole, disk]);
        qemu_img(&["check", "-q"], &[last]);
    }
}

fn checkpoints(disks: &[fairway_machines_qemu::checkpoint::Disk]) -> (Vec<String>, Vec<String>) {
    let disk = disks.iter().find(|it| it.node == DISK).unwrap();
    (disk.checkpoints.clone(), disk.damaged.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_backed_up_by_what_has_changed() {
    let Some(bench) = bench("a_guest_is_backed_up_by_what_has_changed").await else {
        return;
    };
    let directory = bench.machine("vm");
    let disk = directory.join("root.qcow2");
    let line = bench.arguments(&Boot::Direct, &disk, None, &[]);
    let machine = start(&Launch::new(QEMU, &directory, line.clone())).await.unwrap();
    let agent = Agent::new(&directory);
    eventually("the agent", || agent.ping()).await;
    let mut chain = Chain {
        bench: &bench,
        files: Vec::new(),
    };

    // The guest runs while everything is copied, and writes.
    let full = chain.back_up(&machine, "one", None).await;
    in_guest(&agent, "dd if=/dev/urandom of=/root/a bs=1M count=3 && sync").await;
    machine.pause().await.unwrap();
    let second = chain.back_up(&machine, "two", Some("one")).await;
    chain.is(&disk);
    assert!(
        second < full / 2 && second >= 3 << 20,
        "what has changed is copied, and no more: {second} of {full} bytes"
    );
    // A backup that was lost on its way is made again from the same checkpoint.
    machine.forget_checkpoint("two").await.unwrap();
    std::fs::remove_file(chain.files.pop().unwrap()).unwrap();
    chain.back_up(&machine, "two", Some("one")).await;
    chain.is(&disk);
    machine.forget_checkpoint("one").await.unwrap();
    let known = checkpoints(&machine.disks_to_back_up().await.unwrap());
    assert_eq!(known, (vec!["two".to_owned()], vec![]));

    // A checkpoint that is not there is refused, and leaves nothing.
    let file = bench.path("nothing.qcow2");
    let size = machine.disks_to_back_up().await.unwrap()[0].size.to_string();
    qemu_img(&["create", "-q", "-f", "qcow2"], &[&file, Path::new(&size)]);
    let copy = Copy {
        node: DISK,
        file: &file,
        job: "backup-nothing",
        since: Some("one"),
    };
    assert!(machine.begin_backup(&[copy], "three").await.is_err());
    let known = checkpoints(&machine.disks_to_back_up().await.unwrap());
    assert_eq!(known, (vec!["two".to_owned()], vec![]));

    // The record outlives the end of QEMU.
    machine.resume().await.unwrap();
    in_guest(&agent, "dd if=/dev/urandom of=/root/b bs=1M count=2 && sync").await;
    assert_ne!(machine.stop(PATIENCE).await.unwrap(), Stopped::Killed);
    let machine = start(&Launch::new(QEMU, &directory, line.clone())).await.unwrap();
    eventually("the agent", || agent.ping()).await;
    in_guest(&agent, "dd if=/dev/urandom of=/root/c bs=1M count=2 && sync").await;
    machine.pause().await.unwrap();
    let third = chain.back_up(&machine, "three", Some("two")).await;
    chain.is(&disk);
    assert!(third >= 4 << 20, "{third}");

    // QEMU that was killed leaves a record that says so itself; the last one had not come to disk yet.
    machine.kill().await.unwrap();
    let machine = start(&Launch::new(QEMU, &directory, line)).await.unwrap();
    let known = checkpoints(&machine.disks_to_back_up().await.unwrap());
    assert_eq!(known, (vec![], vec!["two".to_owned()]));
    machine.forget_checkpoint("two").await.unwrap();
    let known = checkpoints(&machine.disks_to_back_up().await.unwrap());
    assert_eq!(known, (vec![], vec![]));
    machine.kill().await.unwrap();
}
