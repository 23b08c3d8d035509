//! Backups of a running server and what is restored from them, through the program itself.
//!
//! `FAIRWAY_RESTORE_KILLS` sets how many restores are killed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "shared with the tests of faults, which use all of it")]
#[path = "faults/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use process::Process;

const PASSPHRASE: &str = "correct horse battery";

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("passphrase"), format!("{PASSPHRASE}\n")).unwrap();
        std::fs::write(root.path().join("wrong"), "wrong horse battery\n").unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

/// Runs `fairway backup` and returns whether it succeeded, and what it said.
fn backup(arguments: &[&str]) -> (bool, String) {
    let output = command(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    command
        .arg("backup")
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("FAIRWAY_DATA");
    command
}

#[track_caller]
fn done(arguments: &[&str]) -> String {
    let (succeeded, said) = backup(arguments);
    assert!(succeeded, "{arguments:?}: {said}");
    said
}

#[track_caller]
fn refused(arguments: &[&str], words: &str) {
    let (succeeded, said) = backup(arguments);
    assert!(!succeeded, "{arguments:?} succeeded: {said}");
    assert!(
        said.contains(words),
        "{arguments:?}: {said:?} does not say {words:?}"
    );
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn inspect(file: &Path) -> Value {
    serde_json::from_str(&done(&["inspect", text(file), "-o", "json"])).unwrap()
}

fn config_map(name: &str, content: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"content": content}})).unwrap()
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::namespaced(client.clone(), "default")
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn add_secret(client: &Client) {
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "login"}, "stringData": {"password": "swordfish"}}),
    )
    .unwrap();
    secrets(client)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

async fn password(client: &Client) -> Vec<u8> {
    secrets(client).get("login").await.unwrap().data.unwrap()["password"]
        .0
        .clone()
}

fn version(map: &ConfigMap) -> u64 {
    map.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}

/// Objects by name, with their UIDs and versions.
async fn all(client: &Client) -> BTreeMap<String, (String, u64)> {
    let list = maps(client).list(&ListParams::default()).await.unwrap();
    list.items
        .iter()
        .map(|map| {
            let meta = &map.metadata;
            (
                meta.name.clone().unwrap(),
                (meta.uid.clone().unwrap(), version(map)),
            )
        })
        .collect()
}

/// Creates, changes and deletes until told to stop; what was acknowledged, by version.
async fn write(client: Client, writer: usize, stop: Arc<AtomicBool>) -> Vec<(u64, String, bool)> {
    let api = maps(&client);
    let mut acknowledged = Vec::new();
    for step in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w{writer}-{step}");
        let made = api
            .create(&PostParams::default(), &config_map(&name, "x"))
            .await
            .unwrap();
        acknowledged.push((version(&made), name, true));
        if step % 5 == 4 {
            let old = format!("w{writer}-{}", step - 2);
            // The version of a deletion is not in its answer; what is written next is later than it.
            api.delete(&old, &DeleteParams::default()).await.unwrap();
            let marker = format!("d{writer}-{step}");
            let after = api
                .create(&PostParams::default(), &config_map(&marker, "x"))
                .await
                .unwrap();
            acknowledged.push((version(&after), marker, true));
            acknowledged.push((version(&after), old, false));
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_exactly_one_revision() {
    let place = Place::new();
    let (data, file, restored) = (
        place.path("data"),
        place.path("state.backup"),
        place.path("restored"),
    );
    let process = Process::start(&data);
    let client = process.client().await;
    add_secret(&client).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| tokio::spawn(write(client.clone(), writer, Arc::clone(&stop))))
        .collect();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let arguments = ["create", text(&file), "--data", text(&data), "--passphrase-file"];
    let said = {
        let passphrase = place.path("passphrase");
        let owned: Vec<String> = arguments
            .iter()
            .map(|a| (*a).to_owned())
            .chain([text(&passphrase).to_owned()])
            .collect();
        tokio::task::spawn_blocking(move || done(&owned.iter().map(String::as_str).collect::<Vec<_>>()))
            .await
            .unwrap()
    };
    assert!(said.contains("wrapped by your passphrase"), "{said}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let shown = inspect(&file);
    let revision = shown["revision"].as_u64().unwrap();
    assert_eq!(shown["keysIncluded"], true);
    // This test's Secret; that of the system's own export comes in its own time.
    assert!(
        shown["encrypted"].as_u64().is_some_and(|count| count >= 1),
        "{shown}"
    );
    let before = acknowledged.iter().filter(|(at, ..)| *at <= revision).count();
    println!(
        "{before} of {} acknowledged writes are before revision {revision}",
        acknowledged.len()
    );
    assert!(
        before > 0 && before < acknowledged.len(),
        "the backup was taken while nobody wrote"
    );

    let last = all(&client).await;
    // What a client of the old server remembers, from after the backup.
    let remembered = maps(&client)
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    drop(process);
    done(&[
        "restore",
        text(&file),
        "--data",
        text(&restored),
        "--passphrase-file",
        text(&place.path("passphrase")),
    ]);
    let process = Process::start(&restored);
    let client = process.client().await;
    let found = all(&client).await;
    for (at, name, there) in &acknowledged {
        match (*at <= revision, *there) {
            (true, false) => assert!(!found.contains_key(name), "{name} was deleted before {revision}"),
            (false, true) => assert!(
                !found.contains_key(name),
                "{name} was made at {at}, after {revision}"
            ),
            _ => {}
        }
        let deleted = acknowledged
            .iter()
            .any(|(_, other, there)| other == name && !there);
        if *at <= revision && *there && !deleted {
            assert_eq!(found.get(name), last.get(name), "{name}");
            assert_eq!(found[name].1, *at);
        }
    }
    assert_eq!(password(&client).await, b"swordfish");

    // Old kubeconfigs go on working: the authority is the same.
    let certificate = |data: &Path| std::fs::read(data.join("pki/ca.crt")).unwrap();
    assert_eq!(certificate(&data), certificate(&restored));
    clients_list_again(&client, &remembered, revision).await;
}

/// Whoever remembers the old server is told that its versions are gone; new versions are far above them.
async fn clients_list_again(client: &Client, remembered: &str, revision: u64) {
    let api = maps(client);
    for old in [remembered.to_owned(), revision.to_string(), "1".to_owned()] {
        let refused = match api.watch(&WatchParams::default(), &old).await {
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{other}"),
            Ok(stream) => match stream.boxed().try_next().await.unwrap() {
                Some(WatchEvent::Error(status)) => status.code,
                other => panic!("a watch from {old} gave {other:?}"),
            },
        };
        assert_eq!(refused, 410, "a watch from {old}");
    }
    let listed = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    assert!(
        listed.parse::<u64>().unwrap() >= revision + 1_000_000_000,
        "{listed}"
    );
    let stream = api.watch(&WatchParams::default(), &listed).await.unwrap();
    let mut stream = stream.boxed();
    api.create(&PostParams::default(), &config_map("after-the-restore", "x"))
        .await
        .unwrap();
    match stream.try_next().await.unwrap() {
        Some(WatchEvent::Added(map)) => assert_eq!(map.metadata.name.as_deref(), Some("after-the-restore")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_only_with_their_passphrase() {
    let place = Place::new();
    let (data, with, without) = (place.path("data"), place.path("with"), place.path("without"));
    let passphrase = place.path("passphrase");
    let mut process = Process::start(&data);
    add_secret(&process.client().await).await;
    process.kill();

    // Of a server that does not run.
    done(&[
        "create",
        text(&with),
        "--data",
        text(&data),
        "--passphrase-file",
        text(&passphrase),
    ]);
    let said = done(&["create", text(&without), "--data", text(&data)]);
    assert!(
        said.contains("NOT in it: ") && said.contains(" encrypted objects"),
        "{said}"
    );
    assert_eq!(inspect(&without)["keysIncluded"], false);
    refused(&["create", text(&with), "--data", text(&data)], "exists already");
    refused(
        &[
            "create",
            text(&place.path("x")),
            "--data",
            text(&place.path("nowhere")),
        ],
        "there is no state",
    );
    let secret = std::fs::read_to_string(data.join("keys/encryption.keys")).unwrap();
    let secret = secret
        .split_whitespace()
        .find(|word| word.len() == 64)
        .unwrap()
        .to_owned();
    for file in [&with, &without] {
        let content = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        assert!(
            !content.contains(&secret) && !content.contains("PRIVATE KEY") && !content.contains("swordfish")
        );
    }

    let target = place.path("target");
    let to = ["--data", text(&target)];
    refused(
        &[&["restore", text(&with)], &to[..]].concat(),
        "--passphrase-file",
    );
    let wrong = place.path("wrong");
    refused(
        &[
            &["restore", text(&with), "--passphrase-file", text(&wrong)],
            &to[..],
        ]
        .concat(),
        "passphrase is wrong",
    );
    refused(&[&["restore", text(&without)], &to[..]].concat(), "--keys-from");
    refused(
        &[
            &["restore", text(&without), "--passphrase-file", text(&passphrase)],
            &to[..],
        ]
        .concat(),
        "no keys in",
    );
    assert!(!target.exists(), "a refused restore left something");
    let other = place.path("other");
    drop(Process::start(&other));
    refused(
        &[&["restore", text(&without), "--keys-from", text(&other)], &to[..]].concat(),
        "those of another installation",
    );
    done(&[&["restore", text(&without), "--keys-from", text(&data)], &to[..]].concat());
    refused(
        &[&["restore", text(&without), "--keys-from", text(&data)], &to[..]].concat(),
        "is not empty",
    );
    let process = Process::start(&target);
    assert_eq!(password(&process.client().await).await, b"swordfish");
    refused(
        &[&["restore", text(&without), "--keys-from", text(&data)], &to[..]].concat(),
        "is running",
    );
    drop(process);

    let target = place.path("without-secrets");
    let said = done(&[
        "restore",
        text(&without),
        "--drop-sealed",
        "--data",
        text(&target),
    ]);
    assert!(
        said.contains(" encrypted objects (Secrets) were left out"),
        "{said}"
    );
    let process = Process::start(&target);
    let client = process.client().await;
    assert!(secrets(&client).get_opt("login").await.unwrap().is_none());
    add_secret(&client).await;
    assert_eq!(password(&client).await, b"swordfish");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_refused_and_leave_nothing() {
    let place = Place::new();
    let (data, file) = (place.path("data"), place.path("state"));
    drop(Process::start(&data));
    done(&["create", text(&file), "--data", text(&data)]);
    let whole = std::fs::read(&file).unwrap();
    let (damaged, target) = (place.path("damaged"), place.path("target"));
    let arguments = [
        "restore",
        text(&damaged),
        "--drop-sealed",
        "--data",
        text(&target),
    ];
    for sample in 0..12 {
        let at = whole.len() * sample / 12;
        std::fs::write(&damaged, &whole[..at]).unwrap();
        refused(
            &arguments,
            if at == 0 {
                "not a Fairway backup"
            } else {
                "cut off after"
            },
        );
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&damaged, &flipped).unwrap();
        refused(&arguments, "");
        refused(&["inspect", text(&damaged)], "");
    }
    assert!(!target.exists(), "a refused restore left something");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_restore_is_not_taken_for_an_installation() {
    let kills: u32 = std::env::var("FAIRWAY_RESTORE_KILLS").map_or(12, |n| n.parse().unwrap());
    let place = Place::new();
    let (data, file) = (place.path("data"), place.path("state"));
    let process = Process::start(&data);
    let client = process.client().await;
    let content = "y".repeat(100_000);
    for number in 0..100 {
        maps(&client)
            .create(
                &PostParams::default(),
                &config_map(&format!("m{number}"), &content),
            )
            .await
            .unwrap();
    }
    add_secret(&client).await;
    let passphrase = place.path("passphrase");
    done(&[
        "create",
        text(&file),
        "--data",
        text(&data),
        "--passphrase-file",
        text(&passphrase),
    ]);
    let expected = all(&client).await;
    drop(process);

    let target = place.path("target");
    let arguments = [
        "restore",
        text(&file),
        "--data",
        text(&target),
        "--passphrase-file",
        text(&passphrase),
    ];
    let began = Instant::now();
    done(&arguments);
    let whole = began.elapsed();
    std::fs::remove_dir_all(&target).unwrap();
    let (mut unfinished, mut untouched, mut finished) = (0, 0, 0);
    // The first restore may have been slower than the next ones, or quicker: one of them must be hit.
    for kill in 0..10 * kills {
        if kill >= kills && unfinished > 0 {
            break;
        }
        let mut child = command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(kill) * 0.618 % 1.0));
        child.kill().unwrap();
        child.wait().unwrap();
        if target.join("restore.unfinished").exists() {
            unfinished += 1;
            let mut started = Process::spawn(&target, None);
            assert!(!started.wait().unwrap().success(), "half a restore was started");
            // The next attempt begins again where nothing is.
            if kill % 5 == 0 {
                done(&arguments);
                assert_eq!(opened(&target).await, expected);
                std::fs::remove_dir_all(&target).unwrap();
            }
        } else if target.join("store").exists() {
            finished += 1;
            assert_eq!(opened(&target).await, expected);
            std::fs::remove_dir_all(&target).unwrap();
        } else {
            untouched += 1;
        }
    }
    println!("kills within {whole:?}: {untouched} before, {unfinished} during, {finished} after");
    assert!(unfinished > 0, "no kill hit a restore");
}

async fn opened(data: &Path) -> BTreeMap<String, (String, u64)> {
    let process = Process::start(data);
    let client = process.client().await;
    assert_eq!(password(&client).await, b"swordfish");
    all(&client).await
}
