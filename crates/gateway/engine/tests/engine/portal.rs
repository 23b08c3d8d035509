//! The developer portal on the real API server: from a wish to a key that passes, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{World, has};
use crate::{AUTH, GATEWAYS, ROUTES, gateway, policy, route};

const PRODUCTS: &str = "/apis/devportal.kuadrant.io/v1alpha1/namespaces/default/apiproducts";
const APPROVALS: &str = "/apis/devportal.kuadrant.io/v1alpha1/namespaces/default/apikeyapprovals";
const REQUESTS: &str = "/apis/devportal.kuadrant.io/v1alpha1/namespaces/default/apikeyrequests";
const KEYS: &str = "/apis/devportal.kuadrant.io/v1alpha1/namespaces/consumer/apikeys";
const SECRETS: &str = "/api/v1/namespaces/consumer/secrets";
const ENFORCED: &str = "/api/v1/namespaces/kuadrant-system/secrets";

fn product(mode: &str) -> Value {
    json!({
        "apiVersion": "devportal.kuadrant.io/v1alpha1", "kind": "APIProduct", "metadata": {"name": "toys"},
        "spec": {
            "displayName": "Toys", "approvalMode": mode,
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"},
        },
    })
}

fn key(secret: Option<&str>) -> Value {
    let mut key = json!({
        "apiVersion": "devportal.kuadrant.io/v1alpha1", "kind": "APIKey", "metadata": {"name": "mine"},
        "spec": {
            "apiProductRef": {"name": "toys", "namespace": "default"}, "planTier": "gold",
            "requestedBy": {"userId": "alice", "email": "alice@example.com"},
        },
    });
    if let Some(name) = secret {
        key["spec"]["secretRef"] = json!({"name": name});
    }
    key
}

fn approval(request: &str, approved: bool) -> Value {
    json!({
        "apiVersion": "devportal.kuadrant.io/v1alpha1", "kind": "APIKeyApproval", "metadata": {"name": "answer"},
        "spec": {
            "apiKeyRequestRef": {"name": request}, "approved": approved, "reviewedBy": "bob",
            "reviewedAt": "2026-01-01T00:00:00Z",
        },
    })
}

async fn started(mode: &str) -> World {
    let world = World::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "consumer"}});
    world.create("/api/v1/namespaces", &namespace).await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    world.create(ROUTES, &route()).await;
    world.create(AUTH, &policy()).await;
    world.create(PRODUCTS, &product(mode)).await;
    let told = world
        .until_condition(&format!("{PRODUCTS}/toys"), "AuthPolicyDiscovered", "True")
        .await;
    assert!(has(&told, "PlanPolicyDiscovered", "False"), "{told}");
    world
}

/// Waits until a key passes, or does not.
async fn until_passes(world: &World, key: &str, passes: bool) {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(&format!("Bearer {key}")).unwrap();
    headers.insert("authorization", value);
    world
        .until(&format!("a key that passes: {passes}"), async || {
            (world.plane.passes(&headers).await == passes).then_some(())
        })
        .await;
}

async fn value_of(world: &World, path: &str) -> String {
    let secret = world
        .until("the key", async || world.api.get(path).await.unwrap())
        .await;
    let value = STANDARD.decode(secret["data"]["api_key"].as_str().unwrap());
    String::from_utf8(value.unwrap()).unwrap()
}

async fn request_of(world: &World) -> Value {
    let found = world
        .until("a request", async || {
            world.api.list(REQUESTS).await.unwrap().pop()
        })
        .await;
    assert_eq!(found["spec"]["apiKeyRef"]["namespace"], "consumer");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_counts_while_it_is_approved() {
    let world = started("manual").await;
    world.create(KEYS, &key(None)).await;
    let path = format!("{KEYS}/mine");
    world.until_condition(&path, "Pending", "True").await;
    let request = request_of(&world).await;
    let name = request["metadata"]["name"].as_str().unwrap();
    assert!(world.api.list(ENFORCED).await.unwrap().is_empty());
    world.create(APPROVALS, &approval(name, true)).await;
    let told = world.until_condition(&path, "Approved", "True").await;
    assert_eq!(told["status"]["secretRef"]["name"], "mine-api-key");
    assert!(!has(&told, "Pending", "True"), "{told}");
    let first = value_of(&world, &format!("{SECRETS}/mine-api-key")).await;
    until_passes(&world, &first, true).await;
    world
        .until("the approval to be held by its request", async || {
            let approval = world.api.get(&format!("{APPROVALS}/answer")).await.unwrap()?;
            let owner = &approval["metadata"]["ownerReferences"][0]["uid"];
            (*owner == request["metadata"]["uid"] && has(&approval, "Valid", "True")).then_some(())
        })
        .await;
    world
        .until("the owner to see the same", async || {
            let request = world.api.get(&format!("{REQUESTS}/{name}")).await.unwrap()?;
            has(&request, "Approved", "True").then_some(())
        })
        .await;
    // Nobody has approved another plan: the request is made anew, and the approval counts no more.
    let richer = json!({"spec": {"planTier": "platinum"}});
    world.api.merge(&path, &richer).await.unwrap();
    world.until_condition(&path, "Pending", "True").await;
    until_passes(&world, &first, false).await;
    world
        .until("another request", async || {
            let again = world.api.get(&format!("{REQUESTS}/{name}")).await.unwrap()?;
            (again["metadata"]["uid"] != request["metadata"]["uid"]).then_some(())
        })
        .await;
    // The garbage collector, which does not run here, would have taken it away.
    let _ = world.api.delete(&format!("{APPROVALS}/answer")).await.is_ok();
    world.create(APPROVALS, &approval(name, true)).await;
    world.until_condition(&path, "Approved", "True").await;
    let second = value_of(&world, &format!("{SECRETS}/mine-api-key")).await;
    assert_ne!(first, second, "what was revoked does not come back");
    until_passes(&world, &second, true).await;
    let denied = json!({"spec": {"approved": false, "message": "no more"}});
    let answer = format!("{APPROVALS}/answer");
    world.api.merge(&answer, &denied).await.unwrap();
    let told = world.until_condition(&path, "Denied", "True").await;
    assert_eq!(
        told["status"]["conditions"][0]["message"],
        "API key request denied by bob: no more"
    );
    until_passes(&world, &second, false).await;
    assert!(world.api.list(ENFORCED).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_users_key_does_not_count_until_he_is_enabled() {
    let world = started("automatic").await;
    let mut mine = key(None);
    mine["spec"]["requestedBy"]["userId"] = json!("acme/alice");
    world.create(KEYS, &mine).await;
    let path = format!("{KEYS}/mine");
    world.until_condition(&path, "Approved", "True").await;
    let value = value_of(&world, &format!("{SECRETS}/mine-api-key")).await;
    until_passes(&world, &value, true).await;
    world.people.set_out(&["acme/alice"]);
    until_passes(&world, &value, false).await;
    let told = world.until_condition(&path, "Failed", "True").await;
    assert_eq!(told["status"]["conditions"][0]["reason"], "RequesterDisabled");
    world.people.set_out(&["acme/bob"]);
    until_passes(&world, &value, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_may_bring_a_key() {
    let world = started("automatic").await;
    world.create(KEYS, &key(Some("own"))).await;
    let path = format!("{KEYS}/mine");
    let told = world.until_condition(&path, "Failed", "True").await;
    assert_eq!(told["status"]["conditions"][0]["reason"], "SecretNotFound");
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "own"},
            "stringData": {"api_key": value},
        })
    };
    world.create(SECRETS, &secret("first")).await;
    world.until_condition(&path, "Approved", "True").await;
    until_passes(&world, "first", true).await;
    let other = json!({"stringData": {"api_key": "second"}});
    world.api.merge(&format!("{SECRETS}/own"), &other).await.unwrap();
    until_passes(&world, "second", true).await;
    until_passes(&world, "first", false).await;
    world.api.delete(&path).await.unwrap();
    until_passes(&world, "second", false).await;
    world
        .until("nothing to be left", async || {
            let requests = world.api.list(REQUESTS).await.unwrap();
            (requests.is_empty() && world.api.list(ENFORCED).await.unwrap().is_empty()).then_some(())
        })
        .await;
    let own = world.api.get(&format!("{SECRETS}/own")).await.unwrap();
    assert!(own.is_some(), "what a consumer made stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_ends() {
    let world = started("automatic").await;
    let mut key = key(None);
    let ends = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    key["spec"]["expiresAt"] = json!(ends.round(jiff::Unit::Second).unwrap().to_string());
    world.create(KEYS, &key).await;
    world
        .until_condition(&format!("{KEYS}/mine"), "Expired", "True")
        .await;
    assert!(world.api.list(ENFORCED).await.unwrap().is_empty());
}

/// Answers each connection with the next of these.
async fn documents(answers: Vec<String>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/openapi.yaml")
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_products_document_is_fetched() {
    let world = started("manual").await;
    let path = format!("{PRODUCTS}/toys");
    let text = "openapi: 3.1.0\ninfo: {title: Toys, version: '1'}\n";
    let url = documents(vec![
        answer("200 OK", text),
        answer("200 OK", &"x".repeat(600 * 1024)),
        answer("404 Not Found", ""),
    ])
    .await;
    let described =
        |note: &str| json!({"spec": {"description": note, "documentation": {"openAPISpecURL": url}}});
    world.api.merge(&path, &described("first")).await.unwrap();
    let told = world.until_condition(&path, "OpenAPISpecReady", "True").await;
    assert_eq!(told["status"]["openapi"]["raw"], text);
    // Another look at the product must not lose the document.
    world.api.delete(&format!("{AUTH}/api")).await.unwrap();
    let told = world
        .until_condition(&path, "AuthPolicyDiscovered", "False")
        .await;
    assert_eq!(told["status"]["openapi"]["raw"], text, "{told}");
    for (note, reason) in [("second", "SpecSizeTooLarge"), ("third", "FetchFailed")] {
        world.api.merge(&path, &described(note)).await.unwrap();
        world
            .until(reason, async || {
                let told = world.api.get(&path).await.unwrap()?;
                let mut conditions = told["status"]["conditions"].as_array()?.iter();
                conditions
                    .any(|condition| condition["reason"] == reason && condition["status"] == "False")
                    .then_some(())
            })
            .await;
    }
    let none = json!({"spec": {"documentation": null}});
    world.api.merge(&path, &none).await.unwrap();
    world
        .until("nothing to be told", async || {
            let told = world.api.get(&path).await.unwrap()?;
            (told["status"]["openapi"].is_null() && !has(&told, "OpenAPISpecReady", "False")).then_some(())
        })
        .await;
}
