//! `kill -9` at any moment loses no acknowledged write and leaves no half-written one.
//!
//! A child process writes with several writers at once and prints each acknowledgement; the parent kills it after a
//! random while, opens the store and compares. The script of each writer is a pure function of its step number, so the
//! parent knows what must be there: everything acknowledged, and of the one step under way either all or nothing.
//!
//! `FAIRWAY_STORE_KILLS` sets the number of kills.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, and its child speaks by printing"
)]

#[path = "script/pairs.rs"]
mod script;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_kernel_store::{EmbeddedStore, Options, Revision, Store, StoreError};

use script::{Expected, transaction};

const WRITERS: usize = 6;
const DIRECTORY: &str = "FAIRWAY_STORE_KILL_DIRECTORY";
const STEPS: &str = "FAIRWAY_STORE_KILL_STEPS";

/// The child. Does nothing unless it was started by the test below.
#[test]
#[ignore = "started by the other test of this file"]
fn child() {
    let (Ok(directory), Ok(steps)) = (env::var(DIRECTORY), env::var(STEPS)) else {
        return;
    };
    let steps: Vec<u64> = steps.split(',').map(|step| step.parse().unwrap()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Arc::new(EmbeddedStore::open(Path::new(&directory), &Options::default()).unwrap());
        let mut writers = Vec::new();
        for (writer, first) in steps.into_iter().enumerate() {
            let store = Arc::clone(&store);
            writers.push(tokio::spawn(async move {
                for step in first.. {
                    let revision = store.txn(transaction(writer, step)).await.unwrap().revision;
                    // One write, so that a line is whole or missing.
                    let line = format!("ack {writer} {step} {}\n", revision.0);
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                    if step % 40 == 0 {
                        match store.compact(Revision(revision.0.saturating_sub(30))).await {
                            Ok(()) | Err(StoreError::Future { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            }));
        }
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

fn start(directory: &Path, steps: &[u64]) -> Child {
    let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(STEPS, steps.join(","))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Acknowledgements of a child that is killed some time after the first.
fn run_and_kill(mut child: Child, after: Duration) -> Vec<(usize, u64, u64)> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    let mut killed = false;
    let mut first = None;
    loop {
        line.clear();
        if lines.read_line(&mut line).unwrap() == 0 {
            break;
        }
        if let Some(words) = line.strip_suffix('\n').and_then(|line| line.split_once("ack ")) {
            let numbers: Vec<u64> = words.1.split(' ').map(|word| word.parse().unwrap()).collect();
            acknowledged.push((numbers[0] as usize, numbers[1], numbers[2]));
            let first = *first.get_or_insert_with(Instant::now);
            if !killed && first.elapsed() >= after {
                child.kill().unwrap();
                killed = true;
            }
        }
    }
    child.wait().unwrap();
    assert!(
        killed,
        "the child ended by itself after {} acknowledgements",
        acknowledged.len()
    );
    acknowledged
}

#[tokio::test]
async fn no_acknowledged_write_is_lost_when_the_process_is_killed() {
    let wanted: u32 = env::var("FAIRWAY_STORE_KILLS").map_or(200, |count| count.parse().unwrap());
    let asked_for_more = env::var("FAIRWAY_STORE_KILLS").is_ok();
    let directory = tempfile::tempdir().unwrap();
    let mut expected = vec![Expected::default(); WRITERS];
    let mut last_revision = 0;
    let (mut acknowledged, mut under_way, mut kills) = (0, 0, 0);
    let began = Instant::now();
    while kills < wanted && (asked_for_more || began.elapsed() < Duration::from_secs(40)) {
        let steps: Vec<u64> = expected.iter().map(|writer| writer.next).collect();
        // Spread from the very first commits to where checkpoints and compactions run.
        let after = Duration::from_micros(u64::from(kills) * 7919 % 30_000);
        let acks = run_and_kill(start(directory.path(), &steps), after);
        kills += 1;
        acknowledged += acks.len();
        let before = last_revision;
        for (writer, step, revision) in acks {
            assert_eq!(
                step, expected[writer].next,
                "acknowledgements of a writer come in order"
            );
            expected[writer].apply(writer);
            assert!(
                revision > before,
                "revision {revision} was used before the last kill (it ended at {before})"
            );
            last_revision = last_revision.max(revision);
        }

        let store = EmbeddedStore::open(directory.path(), &Options::default()).unwrap();
        let now = store.revision().await.unwrap().0;
        assert!(
            now >= last_revision,
            "revision went back from {last_revision} to {now}"
        );
        assert!(
            now <= last_revision + WRITERS as u64,
            "at most one step per writer was under way"
        );
        last_revision = now;
        for (writer, expected) in expected.iter_mut().enumerate() {
            match expected.settle(&store, writer).await {
                Ok(landed) => under_way += u32::from(landed),
                Err(why) => panic!("after kill {kills}: {why}"),
            }
        }
        store.close().await.unwrap();
    }
    println!("{kills} kills, {acknowledged} acknowledged, {under_way} found that were under way");
    assert!(
        kills >= wanted.min(40),
        "only {kills} kills in {:?}",
        began.elapsed()
    );
    assert!(acknowledged > kills as usize);
}
