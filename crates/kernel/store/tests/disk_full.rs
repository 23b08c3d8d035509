//! A full disk makes writes fail, reads go on, nothing acknowledged is lost, and writes succeed when there is space.
//!
//! The scenario runs in a child process in two places: on a file system of four megabytes of its own (where the
//! machine lets an ordinary user mount one), and under a limit on the size of files (everywhere).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, and its child speaks by printing"
)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_store::{
    EmbeddedStore, KeyRange, Op, Options, Range, Revision, Store, StoreError, Txn, WatchRequest,
};
use futures::StreamExt;

const DIRECTORY: &str = "FAIRWAY_STORE_FULL_DIRECTORY";
const LIMIT: &str = "FAIRWAY_STORE_FULL_LIMIT";
const DONE: &str = "the scenario is complete";

fn put(n: usize) -> Txn {
    let (key, value) = (format!("k{n:05}"), vec![n as u8; 20_000]);
    Txn {
        success: vec![Op::Put {
            key: key.into(),
            value: value.into(),
            lease: None,
        }],
        ..Txn::default()
    }
}

async fn assert_holds(store: &EmbeddedStore, count: usize) {
    let keys = KeyRange::prefix(b"k");
    let range = Range {
        keys,
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    };
    let response = store.range(range).await.unwrap();
    assert_eq!(
        (response.kvs.len(), response.revision),
        (count, Revision(count as u64))
    );
    for (n, kv) in response.kvs.iter().enumerate() {
        assert_eq!(kv.key, format!("k{n:05}"));
        assert_eq!(kv.value, Bytes::from(vec![n as u8; 20_000]));
        assert_eq!(kv.mod_revision, Revision(n as u64 + 1));
    }
}

/// Gives space back, each place in its own way.
fn make_space(directory: &Path) {
    if env::var(LIMIT).as_deref() == Ok("file size") {
        let raised = Command::new("prlimit")
            .args([
                "--pid",
                &std::process::id().to_string(),
                "--fsize=unlimited:unlimited",
            ])
            .status()
            .unwrap();
        assert!(raised.success());
    } else {
        fs::remove_file(directory.join("ballast")).unwrap();
    }
}

#[tokio::test]
#[ignore = "started by the other tests of this file"]
async fn child() {
    let Ok(directory) = env::var(DIRECTORY) else {
        return;
    };
    let directory = Path::new(&directory);
    if env::var(LIMIT).as_deref() != Ok("file size") {
        fs::write(directory.join("ballast"), vec![1; 1 << 20]).unwrap();
    }
    let data = directory.join("store");
    let store = EmbeddedStore::open(&data, &Options::default()).unwrap();
    let mut written = 0;
    let refused = loop {
        match store.txn(put(written)).await {
            Ok(response) => {
                written += 1;
                assert_eq!(response.revision, Revision(written as u64));
            }
            Err(error) => break error,
        }
        assert!(written < 2000, "the disk never filled up");
    };
    assert!(matches!(refused, StoreError::DiskFull(_)), "{refused:?}");
    assert!(refused.to_string().contains("free some space"));
    assert!(written > 20, "only {written} fitted");

    // Writes go on failing, in batches too; reads and watches go on.
    let mut watch = store
        .watch(WatchRequest {
            keys: KeyRange::prefix(b""),
            from: Some(Revision(1)),
            prev: false,
        })
        .await
        .unwrap();
    let attempts = futures::future::join_all((0..8).map(|_| store.txn(put(written)))).await;
    for attempt in attempts {
        assert!(matches!(attempt, Err(StoreError::DiskFull(_))), "{attempt:?}");
    }
    assert_holds(&store, written).await;
    for n in 0..written {
        assert_eq!(
            watch.next().await.unwrap().unwrap().revision,
            Revision(n as u64 + 1)
        );
    }
    let more = tokio::time::timeout(Duration::from_millis(100), watch.next()).await;
    assert!(more.is_err(), "a write that failed is not shown: {more:?}");

    make_space(directory);
    let response = store.txn(put(written)).await.unwrap();
    assert_eq!(response.revision, Revision(written as u64 + 1));
    assert_eq!(watch.next().await.unwrap().unwrap().revision, response.revision);
    written += 1;
    assert_holds(&store, written).await;
    store.close().await.unwrap();
    let store = EmbeddedStore::open(&data, &Options::default()).unwrap();
    assert_holds(&store, written).await;
    println!("{DONE}: {written} writes");
}

/// The child, started by a shell script that gets the path of this program as `$1`.
fn run(script: &str, directory: &Path, limit: &str) -> Output {
    run_with(&mut Command::new("sh"), script, directory, limit)
}

fn run_with(command: &mut Command, script: &str, directory: &Path, limit: &str) -> Output {
    command
        .args(["-c", script, "sh"])
        .arg(env::current_exe().unwrap())
        .env(DIRECTORY, directory)
        .env(LIMIT, limit)
        .output()
        .unwrap()
}

fn assert_done(output: &Output) {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && out.contains(DONE), "{out}\n{err}");
}

const CHILD: &str = r#"exec "$1" --exact child --ignored --nocapture"#;

#[test]
fn a_limit_on_file_sizes() {
    let directory = tempfile::tempdir().unwrap();
    // Ignored signals stay ignored in the new program, so the write fails instead of the process. Blocks of 512.
    let script = format!(r#"trap "" XFSZ; ulimit -S -f 6000; {CHILD}"#);
    assert_done(&run(&script, directory.path(), "file size"));
}

#[test]
fn a_full_file_system() {
    let directory = tempfile::tempdir().unwrap();
    let mount = r#"mount -t tmpfs -o size=4m,mode=700 none "$FAIRWAY_STORE_FULL_DIRECTORY""#;
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh"]);
    let probe = run_with(&mut unshare, mount, directory.path(), "file system");
    if !probe.status.success() {
        // The scenario itself still runs, under the other limit.
        println!(
            "SKIPPED: no file system can be mounted here: {}",
            String::from_utf8_lossy(&probe.stderr)
        );
        return;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh"]);
    assert_done(&run_with(
        &mut unshare,
        &format!("{mount} && {CHILD}"),
        directory.path(),
        "file system",
    ));
}
