//! Plain `git` and the command itself, pointed at a server that runs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The port of the web listener of a running server.
pub(crate) fn web_port(data: &Path) -> u64 {
    let text = std::fs::read(data.join("running.json")).unwrap();
    let running: Value = serde_json::from_slice(&text).unwrap();
    let address = running["web_listen"].as_str().unwrap();
    address.rsplit(':').next().unwrap().parse().unwrap()
}

/// Runs a script in a directory, with a git that trusts the server and finds it; whether it succeeded, and what it printed.
pub(crate) fn shell(data: &Path, at: &Path, script: &str) -> (bool, String) {
    std::fs::create_dir_all(at).unwrap();
    let output = Command::new("bash")
        .args(["-ec", script])
        .current_dir(at)
        .envs([
            ("GIT_SSL_CAINFO", data.join("pki/ca.crt").to_str().unwrap()),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ("GIT_COMMITTER_NAME", "C"),
            ("GIT_COMMITTER_EMAIL", "c@example.com"),
            // Not every resolver knows that names below localhost are this machine.
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "http.curloptResolve"),
            (
                "GIT_CONFIG_VALUE_0",
                &format!("git.fairway.localhost:{}:127.0.0.1", web_port(data)),
            ),
        ])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).trim().to_owned(),
    )
}

pub(crate) fn run(data: &Path, at: &Path, script: &str) -> String {
    let (success, text) = shell(data, at, script);
    assert!(success, "{script}\n{text}");
    text
}

/// Runs the command itself with the administrator's kubeconfig.
pub(crate) fn fairway(data: &Path, words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(words)
        .env("KUBECONFIG", data.join("kubeconfig"))
        .env("HOME", "/nonexistent/home")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
