//! Keys are rotated under a server that is killed while it is at it, and nothing is lost.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use serde_json::Value;

use process::Process;

const SECRETS: usize = 300;

fn fairway(data: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(words)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// The keys of a kind: id and state.
fn keys(data: &Path, kind: &str) -> Vec<(String, String, u64)> {
    let (ok, text) = fairway(data, &["keys", "-o", "json"]);
    assert!(ok, "{text}");
    let listed: Value = serde_json::from_str(&text).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["kind"] == kind)
        .map(|key| {
            (
                text(&key["id"]),
                text(&key["state"]),
                key["values"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

fn secret(number: usize) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(format!("s{number:03}"));
    let value = ByteString(format!("value {number}").repeat(50).into_bytes());
    secret.data = Some(BTreeMap::from([("v".to_owned(), value)]));
    secret
}

async fn assert_all(server: &Process, round: usize) {
    let api: Api<Secret> = Api::namespaced(server.client().await, "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    let found: BTreeMap<&str, &Secret> = list
        .iter()
        .map(|s| (s.metadata.name.as_deref().unwrap(), s))
        .collect();
    for number in 0..SECRETS {
        let expected = secret(number);
        let name = expected.metadata.name.as_deref().unwrap();
        assert_eq!(found[name].data, expected.data, "round {round}");
    }
}

async fn is_valid(server: &Process, token: &str) -> bool {
    let reviews: Api<TokenReview> = Api::all(server.client().await);
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().authenticated == Some(true)
}

async fn new_token(server: &Process) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(server.client().await, "default");
    let request = TokenRequest::default();
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        // The account is made by a controller.
        match accounts
            .create_token_request("default", &PostParams::default(), &request)
            .await
        {
            Ok(answer) => return answer.status.unwrap().token.unwrap(),
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_a_rotation_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let mut server = Process::start(data);
    let api: Api<Secret> = Api::namespaced(server.client().await, "default");
    for number in 0..SECRETS {
        api.create(&PostParams::default(), &secret(number)).await.unwrap();
    }
    let mut tokens = vec![new_token(&server).await];
    for round in 0..4 {
        let (ok, text) = fairway(data, &["keys", "rotate"]);
        assert!(ok, "{text}");
        tokio::time::sleep(Duration::from_millis(40 * round as u64)).await;
        server.kill();
        server = Process::start(data);
        assert_all(&server, round).await;
        tokens.push(new_token(&server).await);
        for token in &tokens {
            assert!(is_valid(&server, token).await, "round {round}");
        }
    }
    assert_eq!(keys(data, "encryption").len(), 5);
    assert_eq!(keys(data, "service-account").len(), 5);
    // What was broken off is taken up again without being asked.
    let give_up = Instant::now() + Duration::from_secs(60);
    while keys(data, "encryption")
        .iter()
        .any(|(_, state, left)| *left > 0 || state == "unknown")
    {
        assert!(Instant::now() < give_up, "{:?}", keys(data, "encryption"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // History needs the old keys while the server runs; they are not given up.
    let (ok, text) = fairway(data, &["keys", "prune"]);
    assert!(!ok && text.contains("history"), "{text}");
    server.kill();
    let (ok, text) = fairway(data, &["keys", "prune"]);
    assert!(
        ok && text.contains("4 encryption keys and 0 signing keys"),
        "{text}"
    );
    assert_eq!(keys(data, "encryption").len(), 1);
    // And while nothing runs.
    let (ok, text) = fairway(data, &["keys", "rotate", "--only", "encryption"]);
    assert!(ok && text.contains("values were encrypted again"), "{text}");
    let (ok, text) = fairway(data, &["keys", "prune"]);
    assert!(ok && text.contains("1 encryption keys"), "{text}");
    let server = Process::start(data);
    assert_all(&server, 9).await;
    assert!(is_valid(&server, &tokens[0]).await);
}
