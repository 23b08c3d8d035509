//! Plain `git` and the whole program: repositories as objects, rights as roles, workspaces as owners, and nothing lost when
//! the server is killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[path = "githost/tools.rs"]
mod tools;

use std::process::Command;
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};

use process::Process;
use tools::{fairway, run, shell, web_port};

fn repositories(client: kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("fairway.dev", "v1alpha1", "Repository");
    Api::all_with(client, &ApiResource::from_gvk_with_plural(&kind, "repositories"))
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_are_objects_and_survive_a_kill() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    // The same port after each start, so that addresses stay.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let listen = ["--web-listen", &port.to_string()];
    let mut process = Process::start_with(&data, &listen);
    let url = fairway(
        &data,
        &[
            "repo",
            "create",
            "root/app",
            "--with-token",
            "--description",
            "An app",
        ],
    );
    assert!(
        url.starts_with("https://git:") && url.contains("@git.fairway.localhost:"),
        "{url}"
    );
    let plain = fairway(&data, &["repo", "list", "root"]);
    assert!(plain.contains("app") && plain.contains("True"), "{plain}");

    let first = "git init -q -b main . && echo one > one && git add . && git commit -qm one";
    let said = run(&data, &work, &format!("{first} && git push {url} main 2>&1"));
    assert!(said.contains("[new branch]"), "{said}");
    // Without a token, with a wrong one, and for another repository.
    let (_, tail) = url.split_once('@').unwrap();
    let other = fairway(&data, &["repo", "create", "root/other"]);
    for (address, expected) in [
        (format!("https://{tail}"), "could not read Username"),
        (format!("https://git:wrong@{tail}"), "Authentication failed"),
        (url.replace("/root/app", "/root/other"), "not found"),
        (url.replace("/root/app", "/nowhere/app"), "Authentication failed"),
    ] {
        let (success, said) = shell(&data, place.path(), &format!("git ls-remote {address} 2>&1"));
        assert!(!success && said.contains(expected), "{address}: {said}");
    }
    assert!(other.ends_with("/root/other.git"), "{other}");

    // Acknowledged is on disk, whatever happens then.
    for round in 0..3 {
        run(
            &data,
            &work,
            &format!(
                "echo {round} > f{round} && git add . && git commit -qm {round} && git push -q {url} main"
            ),
        );
        let head = run(&data, &work, "git rev-parse HEAD");
        process.kill();
        process = Process::start_with(&data, &listen);
        let listed = run(
            &data,
            place.path(),
            &format!("git ls-remote {url} refs/heads/main"),
        );
        assert!(listed.starts_with(&head), "{listed}");
        let bare = data.join("repositories/root/app.git");
        let fsck = run(
            &data,
            &bare,
            "git fsck --strict --connectivity-only 2>&1 | grep -v dangling || true",
        );
        assert_eq!(fsck, "");
    }

    // The object goes, and the repository with it.
    let client = process.client().await;
    repositories(client)
        .delete("app", &DeleteParams::default())
        .await
        .unwrap();
    let begun = Instant::now();
    while data.join("repositories/root/app.git").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the repository is still there"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        std::fs::read_dir(data.join("repositories/.removed"))
            .unwrap()
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_are_workspaces() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let _process = Process::start(&data);
    fairway(&data, &["workspace", "create", "acme"]);
    let url = fairway(&data, &["repo", "create", "acme/app", "--with-token"]);
    assert!(url.contains("/acme/app.git"), "{url}");
    let first = "git init -q -b main . && echo one > one && git add . && git commit -qm one";
    run(&data, &work, &format!("{first} && git push -q {url} main"));
    let in_root = fairway(&data, &["repo", "create", "root/app", "--with-token"]);
    // The same names in another workspace are somebody else's: a token is good in its own workspace only.
    for address in [
        url.replace("/acme/", "/root/"),
        in_root.replace("/root/", "/acme/"),
    ] {
        let (success, said) = shell(&data, place.path(), &format!("git ls-remote {address} 2>&1"));
        assert!(
            !success && said.contains("Authentication failed"),
            "{address}: {said}"
        );
    }
    assert_eq!(run(&data, place.path(), &format!("git ls-remote {in_root}")), "");
    // Another host name of the same listener.
    let port = web_port(&data);
    let script = format!(
        "curl -sk --resolve x.fairway.localhost:{port}:127.0.0.1 -o /dev/null -w '%{{http_code}}' https://x.fairway.localhost:{port}/"
    );
    if Command::new("curl").arg("--version").output().is_ok() {
        assert_eq!(run(&data, place.path(), &script), "421");
    }
}
