//! Secrets for tokens of service accounts: filled, valid while they exist, gone with their account.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, ROOT_CA, create, eventually, gone};

fn secret(name: &str, account: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
        "type": "kubernetes.io/service-account-token",
    })
}

async fn content(secrets: &Api<DynamicObject>, name: &str, key: &str) -> String {
    let secret = secrets.get(name).await.unwrap();
    let text = secret.data["data"][key].as_str().unwrap_or("").to_owned();
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_secrets_are_filled_and_end_with_their_account() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let accounts = cluster.api("v1", "ServiceAccount", "serviceaccounts", "n");
    let secrets = cluster.api("v1", "Secret", "secrets", "n");
    let account = create(&accounts, json!({"metadata": {"name": "robot"}})).await;
    for name in ["first", "second"] {
        create(&secrets, secret(name, "robot")).await;
        eventually("the Secret is filled", || async {
            !content(&secrets, name, "token").await.is_empty()
        })
        .await;
    }
    assert_eq!(content(&secrets, "first", "ca.crt").await, ROOT_CA);
    assert_eq!(content(&secrets, "first", "namespace").await, "n");
    let written = secrets.get("first").await.unwrap();
    assert_eq!(
        written
            .metadata
            .annotations
            .unwrap()
            .get("kubernetes.io/service-account.uid"),
        account.metadata.uid.as_ref()
    );
    let robot = Some("system:serviceaccount:n:robot".to_owned());
    let (first, second) = (
        content(&secrets, "first", "token").await,
        content(&secrets, "second", "token").await,
    );
    assert_eq!(
        (cluster.user_of(&first), cluster.user_of(&second)),
        (robot.clone(), robot.clone())
    );
    // What others spoil is put right, and the token stays.
    let spoilt = Patch::Merge(json!({"data": {"ca.crt": "eA=="}}));
    secrets
        .patch("second", &PatchParams::default(), &spoilt)
        .await
        .unwrap();
    eventually("the certificates are put right", || async {
        content(&secrets, "second", "ca.crt").await == ROOT_CA
    })
    .await;
    assert_eq!(content(&secrets, "second", "token").await, second);
    // A token ends with its Secret, and its Secret with the account.
    secrets.delete("first", &DeleteParams::default()).await.unwrap();
    assert_eq!((cluster.user_of(&first), cluster.user_of(&second)), (None, robot));
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    gone(&secrets, "second").await;
    assert_eq!(cluster.user_of(&second), None);
    // One for an account that does not exist goes as well; others are nobody's business.
    create(&secrets, json!({"metadata": {"name": "plain"}})).await;
    create(&secrets, secret("nobody", "missing")).await;
    gone(&secrets, "nobody").await;
    secrets.get("plain").await.unwrap();
    cluster.stop().await;
}
