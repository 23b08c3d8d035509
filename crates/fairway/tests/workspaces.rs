//! `fairway workspace` against the whole program: the address that users are told, a home of one's own, and what a
//! kubeconfig is worth after it was used.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "certs/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use server::Server;

/// Runs `fairway workspace` with a kubeconfig; what it prints.
fn workspace(kubeconfig: &Path, words: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .arg("workspace")
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", "/nonexistent/home")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// A user's copy of the administrator's kubeconfig.
fn kubeconfig_of(server: &Server) -> PathBuf {
    let copy = server.path("users.kubeconfig");
    std::fs::copy(server.path("kubeconfig"), &copy).unwrap();
    copy
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_told_the_external_url() {
    let server = Server::start(&["--external-url", "https://api.example.test:7443/k8s/"]);
    let kubeconfig = kubeconfig_of(&server);
    workspace(&kubeconfig, &["create", "acme", "--enter"]).unwrap();
    // The way there stays the one that the kubeconfig knows.
    assert_eq!(workspace(&kubeconfig, &["--short"]).unwrap(), "root:acme\n");
    workspace(&kubeconfig, &["create", "team"]).unwrap();
    let listed = json(&workspace(&kubeconfig, &["list", "-o", "json"]).unwrap());
    assert_eq!(
        listed["items"][0]["spec"]["URL"],
        "https://api.example.test:7443/k8s/clusters/root:acme:team"
    );
    let names = server.certificate("serving").names;
    assert!(
        names.iter().any(|name| name.contains("api.example.test")),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_survives_its_use() {
    let server = Server::start(&[]);
    let kubeconfig = kubeconfig_of(&server);
    let before = std::fs::read_to_string(&kubeconfig).unwrap();
    // Nothing is written where nothing changes, and nothing is written where something fails.
    for words in [
        &["use", "."][..],
        &["use", "nowhere"],
        &["use", "-"],
        &["use", ".."],
        &["list"],
        &["tree"],
        &["delete", "nowhere"],
    ] {
        let _ = workspace(&kubeconfig, words);
        assert_eq!(std::fs::read_to_string(&kubeconfig).unwrap(), before, "{words:?}");
    }
    let home = workspace(&kubeconfig, &["use", "~"]).unwrap();
    assert!(
        home.contains("(type root:home)") || home.contains("Current workspace is 'user:"),
        "{home}"
    );
    workspace(&kubeconfig, &["create", "mine", "--enter"]).unwrap();
    let place = workspace(&kubeconfig, &["--short"]).unwrap();
    assert!(place.ends_with(":mine\n"), "{place}");
    workspace(&kubeconfig, &["use", ":root"]).unwrap();
    assert_eq!(
        workspace(&kubeconfig, &["-"]).unwrap().trim(),
        format!("Current workspace is '{}'.", place.trim())
    );
    // A server that is not there is told, with its address.
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let gone = kubeconfig.with_extension("gone");
    let port = text
        .split("https://127.0.0.1:")
        .nth(1)
        .unwrap()
        .split(['/', '\n'])
        .next()
        .unwrap();
    std::fs::write(&gone, text.replace(port, "1")).unwrap();
    let error = workspace(&gone, &["list"]).unwrap_err();
    assert!(error.contains("could not be listed"), "{error}");
}
