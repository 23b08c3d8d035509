//! Git repositories in a backup that is made while others push, and what is restored from it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use process::Process;
use tools::{fairway, run};

fn backup(words: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    let output = command
        .arg("backup")
        .args(words)
        .env_remove("FAIRWAY_DATA")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[track_caller]
fn done(words: &[&str]) -> String {
    let (succeeded, said) = backup(words);
    assert!(succeeded, "{words:?}: {said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_are_saved_while_others_push_and_come_back() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (data, work, file) = (at("data"), at("work"), at("one.backup"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(at("passphrase"), "correct horse battery\n").unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let mut process = Process::start_with(&data, &["--web-listen", &port]);
    let url = fairway(&data, &["repo", "create", "root/app", "--with-token"]);
    fairway(&data, &["repo", "create", "root/empty"]);
    let first =
        "git init -q -b main . && head -c 3000000 /dev/urandom > large && git add . && git commit -qm first";
    run(
        &data,
        &work,
        &format!(
            "{first} && git tag -a v1 -m v1 && git push -q {url} main v1 && git push -q {url} main:other"
        ),
    );
    let before = run(&data, &work, "git rev-parse HEAD");

    // Somebody pushes all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let pushing = std::thread::spawn({
        let (stop, data, work, url) = (Arc::clone(&stop), data.clone(), work.clone(), url.clone());
        move || {
            let mut pushed = 0;
            while !stop.load(Ordering::Relaxed) {
                let step = format!(
                    "date +%N > f{pushed} && git add . && git commit -qm {pushed} && git push -q {url} main"
                );
                run(&data, &work, &step);
                pushed += 1;
            }
            pushed
        }
    });
    let said = done(&[
        "create",
        text(&file),
        "--data",
        text(&data),
        "--passphrase-file",
        text(&at("passphrase")),
    ]);
    assert!(said.contains("2 Git repositories"), "{said}");
    let later = at("two.backup");
    done(&["create", text(&later), "--data", text(&data)]);
    stop.store(true, Ordering::Relaxed);
    assert!(pushing.join().unwrap() > 0);
    let last = run(&data, &work, "git rev-parse HEAD");
    process.kill();

    // Damage is found wherever it is: the larger part of the file is the repository.
    let bytes = std::fs::read(&file).unwrap();
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(at("damaged"), &damaged).unwrap();
    std::fs::write(at("cut"), &bytes[..middle]).unwrap();
    for (name, words) in [("damaged", "damaged"), ("cut", "cut off")] {
        let (succeeded, said) = backup(&["inspect", text(&at(name))]);
        assert!(!succeeded && said.contains(words), "{said}");
        let target = at("never");
        let (succeeded, said) = backup(&[
            "restore",
            text(&at(name)),
            "--data",
            text(&target),
            "--drop-sealed",
        ]);
        assert!(!succeeded && said.contains(words), "{said}");
        assert!(!target.exists());
    }
    let shown = done(&["inspect", text(&file), "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["repositories"], 2);
    assert!(shown["repositoryBytes"].as_u64().unwrap() > 3_000_000, "{shown}");

    let restored = at("restored");
    let said = done(&[
        "restore",
        text(&file),
        "--data",
        text(&restored),
        "--passphrase-file",
        text(&at("passphrase")),
    ]);
    assert!(said.contains("2 Git repositories"), "{said}");
    // As plain git sees it: whole, with everything that was acknowledged before the backup, and nothing that never was.
    let bare = restored.join("repositories/root/app.git");
    let fsck = run(
        &data,
        &bare,
        "git fsck --full --strict 2>&1 | grep -v dangling || true",
    );
    assert_eq!(fsck, "");
    let refs = run(&data, &bare, "git for-each-ref --format='%(refname)'");
    assert_eq!(refs, "refs/heads/main\nrefs/heads/other\nrefs/tags/v1");
    run(
        &data,
        &bare,
        &format!("git merge-base --is-ancestor {before} main"),
    );
    assert_eq!(run(&data, &bare, "git symbolic-ref HEAD"), "refs/heads/main");
    run(
        &data,
        &work,
        &format!(
            "git merge-base --is-ancestor {} {last}",
            run(&data, &bare, "git rev-parse main")
        ),
    );

    // As a server: the same address, the same token.
    let _process = Process::start_with(&restored, &["--web-listen", &port]);
    run(&restored, place.path(), &format!("git clone -q {url} clone"));
    run(
        &restored,
        &at("clone"),
        "test -s large && git rev-parse -q --verify v1^{commit}",
    );
    run(
        &restored,
        &at("clone"),
        &format!("git commit -q --allow-empty -m more && git push -q {url} main"),
    );
    let listed = fairway(&restored, &["repo", "list", "root"]);
    assert!(listed.contains("app") && listed.contains("empty"), "{listed}");
}
