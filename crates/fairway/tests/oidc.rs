//! Login with tokens of a real OIDC provider: npm's `oidc-provider`, which `scripts/tools.sh oidc` installs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "oidc/provider.rs"]
mod provider;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::json;

use process::Process;
use provider::{Provider, modules};

/// A client that has nothing but a token.
async fn client(data: &Path, token: &str) -> kube::Client {
    let mut file = Kubeconfig::read_from(data.join("kubeconfig")).unwrap();
    for user in &mut file.auth_infos {
        user.auth_info = Some(AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        });
    }
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Who a token stands for; `None`: it is refused.
async fn who(data: &Path, token: &str) -> Option<UserInfo> {
    let api: Api<SelfSubjectReview> = Api::all(client(data, token).await);
    let review = SelfSubjectReview::default();
    match api.create(&PostParams::default(), &review).await {
        Ok(answer) => answer.status.unwrap().user_info,
        Err(kube::Error::Api(status)) if status.code == 401 => None,
        Err(other) => panic!("{other}"),
    }
}

/// Waits until a token stands for this user.
async fn becomes(data: &Path, token: &str, expected: Option<&str>) -> Option<UserInfo> {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let found = who(data, token).await;
        if found.as_ref().and_then(|user| user.username.as_deref()) == expected {
            return found;
        }
        assert!(Instant::now() < give_up, "{found:?} and not {expected:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn configuration(issuer: &str, authority: &str, prefix: &str) -> String {
    let mapping = |prefix: &str| json!({"claim": "groups", "prefix": prefix});
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            // Nobody is there; that must disturb nobody.
            "issuer": {"url": "https://127.0.0.1:9", "audiences": ["x"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }, {
            "issuer": {"url": issuer, "certificateAuthority": authority, "audiences": ["urn:fairway"]},
            "claimValidationRules": [
                {"claim": "aud", "requiredValue": "urn:fairway"},
                {"expression": "claims.exp - claims.iat <= 3600", "message": "a token may live an hour"},
            ],
            "claimMappings": {
                "username": {"claim": "sub", "prefix": "oidc:"},
                "groups": mapping(prefix),
                "uid": {"expression": "'id-' + claims.client_id"},
                "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
            },
            "userValidationRules": [
                {"expression": "user.groups.exists(g, g != '')", "message": "somebody without groups"},
            ],
        }],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_log_in_with_tokens_of_their_provider() {
    let Some(modules) = modules() else {
        println!("SKIPPED: needs node and the provider; run scripts/tools.sh oidc");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let (mut provider, authority) = Provider::start(&modules, data);
    let file = data.join("authentication.yaml");
    fs::write(&file, configuration(&provider.issuer, &authority, "oidc:")).unwrap();
    fs::write(
        data.join("config.yaml"),
        format!("authenticationConfig: {}\n", file.display()),
    )
    .unwrap();
    let server = Process::start(data);

    // RS256, ES256, PS256.
    let jane = becomes(data, &provider.token("jane"), Some("oidc:jane"))
        .await
        .unwrap();
    assert_eq!(
        jane.groups.unwrap(),
        ["oidc:dev", "oidc:ops", "system:authenticated"]
    );
    assert_eq!(jane.uid.as_deref(), Some("id-jane"));
    let extra = jane.extra.unwrap();
    assert_eq!(extra["example.com/tenant"], ["blue"]);
    assert!(extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    let joe = who(data, &provider.token("joe")).await.unwrap();
    assert_eq!(joe.groups.unwrap(), ["oidc:dev", "system:authenticated"]);
    let pat = who(data, &provider.token("pat")).await.unwrap();
    assert_eq!(
        pat.groups.unwrap(),
        ["oidc:system:masters", "system:authenticated"]
    );

    // What is signed cannot be changed, and what is not signed does not count.
    let token = provider.token("jane");
    let parts: Vec<&str> = token.split('.').collect();
    let other = provider.token("pat");
    let claims = other.split('.').nth(1).unwrap();
    assert!(who(data, &[parts[0], claims, parts[2]].join(".")).await.is_none());
    assert!(who(data, &[parts[0], parts[1], ""].join(".")).await.is_none());

    // Rights are given to the provider's groups.
    let pods: Api<Pod> = Api::namespaced(client(data, &provider.token("joe")).await, "default");
    let refused = pods.list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("oidc:joe"), "{refused}");
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "developers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "oidc:dev"}],
    }))
    .unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(server.client().await);
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());

    // The file is read again when it changes; a wrong one changes nothing. Groups of Kubernetes' own cannot be had.
    fs::write(&file, "jwt: {").unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(who(data, &provider.token("pat")).await.is_some());
    fs::write(&file, configuration(&provider.issuer, &authority, "")).unwrap();
    becomes(data, &provider.token("pat"), None).await;
    let jane = becomes(data, &provider.token("jane"), Some("oidc:jane"))
        .await
        .unwrap();
    assert_eq!(jane.groups.unwrap()[0], "dev");

    // New keys are found when a token names one; the provider does not publish the old ones any more.
    let before = provider.token("jane");
    provider.tell("rotate");
    becomes(data, &provider.token("jane"), Some("oidc:jane")).await;
    assert!(who(data, &before).await.is_none());
}
