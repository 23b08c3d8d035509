//! From a request to a Secret, and back.

use serde_json::json;

use super::*;

fn key() -> Value {
    json!({"metadata": {"name": "mine", "namespace": "consumer", "generation": 2}, "spec": {
        "apiProductRef": {"name": "toys", "namespace": "team"}, "secretRef": {"name": "mine-key"},
        "planTier": "gold", "useCase": "fun", "requestedBy": {"userId": "alice", "email": "a@example.com"}}})
}

fn product(mode: &str) -> Value {
    json!({"metadata": {"name": "toys", "namespace": "team"}, "spec": {"approvalMode": mode}, "status": {
        "discoveredAuthScheme": {"authentication": {
            "tokens": {"jwt": {"issuerUrl": "https://i"}},
            "keys": {"apiKey": {"selector": {"matchLabels": {"app": "toys", ENFORCEMENT: "no"}}},
                     "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}},
        "discoveredPlans": [{"tier": "gold", "limits": {"daily": 10}}]}})
}

fn approval(name: &str, day: u8, approved: bool) -> Value {
    json!({"metadata": {"name": name, "namespace": "team", "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": {"apiKeyRequestRef": {"name": request_name(&key())}, "approved": approved, "reviewedBy": "bob", "message": "fine"}})
}

#[test]
fn keys_are_decided_about() {
    let secret = json!({"data": {"api_key": "c2VjcmV0"}});
    let empty = json!({"data": {"api_key": ""}});
    let without = json!({"data": {}});
    let (manual, automatic) = (product("manual"), product("automatic"));
    let mut leaving = manual.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut open = manual.clone();
    open["status"]["discoveredAuthScheme"]["authentication"] = json!({"tokens": {"jwt": {}}});
    let mut unknown = manual.clone();
    unknown["status"] = json!({});
    let mut expired = key();
    expired["spec"]["expiresAt"] = json!("2026-01-01T00:00:00Z");
    let mut unreadable = key();
    unreadable["spec"]["expiresAt"] = json!("some day");
    let mut lasting = key();
    lasting["spec"]["expiresAt"] = json!("2027-01-01T00:00:00Z");
    let (yes, no) = (approval("a", 2, true), approval("b", 1, false));
    let mut stray = yes.clone();
    stray["metadata"]["namespace"] = json!("consumer");
    // key, product, secret, approvals → condition, reason, request, automatic approval, Secret
    let cases = [
        (
            &expired,
            None,
            Some(&secret),
            Vec::<Value>::new(),
            "Failed APIProductNotFound - - -",
        ),
        (
            &expired,
            Some(&leaving),
            Some(&secret),
            vec![],
            "Failed APIProductDeleting - - -",
        ),
        (
            &expired,
            Some(&manual),
            None,
            vec![],
            "Failed SecretNotFound - - -",
        ),
        (
            &expired,
            Some(&manual),
            Some(&without),
            vec![],
            "Failed SecretAPIKeyNotFound - - -",
        ),
        (
            &expired,
            Some(&manual),
            Some(&empty),
            vec![],
            "Failed SecretAPIKeyEmpty - - -",
        ),
        (
            &expired,
            Some(&unknown),
            Some(&secret),
            vec![],
            "Failed AuthSchemeNotFound - - -",
        ),
        (
            &expired,
            Some(&open),
            Some(&secret),
            vec![],
            "Failed APIKeyAuthSchemeNotFound - - -",
        ),
        (
            &lasting,
            Some(&manual),
            Some(&secret),
            vec![],
            "Pending AwaitingApproval request - -",
        ),
        (
            &lasting,
            Some(&automatic),
            Some(&secret),
            vec![],
            "Pending AwaitingApproval request approval -",
        ),
        (
            &lasting,
            Some(&manual),
            Some(&secret),
            vec![yes.clone()],
            "Approved Approved request - secret",
        ),
        (
            &lasting,
            Some(&automatic),
            Some(&secret),
            vec![yes.clone()],
            "Approved Approved request - secret",
        ),
        (
            &lasting,
            Some(&manual),
            Some(&secret),
            vec![no.clone()],
            "Denied Denied request - -",
        ),
        (
            &lasting,
            Some(&manual),
            Some(&secret),
            vec![yes.clone(), no],
            "Denied Denied request - -",
        ),
        (
            &lasting,
            Some(&manual),
            Some(&secret),
            vec![stray],
            "Pending AwaitingApproval request - -",
        ),
        (
            &expired,
            Some(&manual),
            Some(&secret),
            vec![yes.clone()],
            "Expired KeyExpired request - -",
        ),
        (
            &unreadable,
            Some(&manual),
            Some(&secret),
            vec![yes],
            "Expired KeyExpired request - -",
        ),
    ];
    for (key, product, secret, approvals, expected) in cases {
        let around = Around {
            product,
            secret,
            approvals: &approvals,
            hostname: Some("toys.example.com"),
            system_namespace: "kuadrant-system",
            now: 1_780_000_000,
            timestamp: "2026-05-28T20:26:40Z",
        };
        let decided = decide(key, &around);
        let there = |value: &Option<Value>, name: &'static str| if value.is_some() { name } else { "-" };
        let found = format!(
            "{} {} {} {} {}",
            decided.condition.r#type,
            decided.condition.reason,
            there(&decided.request, "request"),
            there(&decided.approval, "approval"),
            there(&decided.secret, "secret")
        );
        assert_eq!(found, expected);
        if let Some(secret) = decided.secret {
            let labels = &secret["metadata"]["labels"];
            assert_eq!(
                (&labels["app"], &labels[ENFORCEMENT]),
                (&json!("toys"), &json!("true"))
            );
            assert_eq!(labels[MANAGED_BY.0], MANAGED_BY.1);
            assert_eq!(
                secret["metadata"]["annotations"]["secret.kuadrant.io/plan-id"],
                "gold"
            );
            assert_eq!(secret["metadata"]["namespace"], "kuadrant-system");
            assert_eq!(secret["data"]["api_key"], "c2VjcmV0");
            assert_eq!(decided.status["limits"], json!({"daily": 10}));
            assert!(decided.again_in.is_some_and(|left| left > 0));
        }
    }
    assert_eq!(request_name(&key()).len(), "consumer-mine-".len() + 8);
    assert_eq!(
        approval_condition(&approval("a", 1, true), None).reason,
        "APIKeyRequestNotFound"
    );
    assert_eq!(
        approval_condition(&approval("a", 1, true), Some(&json!({}))).reason,
        "Valid"
    );
}

#[test]
fn products_show_their_policies() {
    let product = json!({"metadata": {"generation": 3}, "spec": {"targetRef": {"name": "shop"}}});
    let plan = json!({"metadata": {"name": "p"}, "spec": {"plans": [{"tier": "gold", "predicate": "true"}]}});
    let auth = json!({"metadata": {"name": "a"}, "spec": {"defaults": {"rules": {"authentication": {}}}}});
    let none = product_status(&product, &Discovered::default());
    assert!(none.0.iter().all(|condition| !condition.is_true));
    let found = Discovered {
        route: Some(true),
        plan: Some(&plan),
        auth: Some(&auth),
    };
    let (conditions, status) = product_status(&product, &found);
    assert!(conditions.iter().all(|condition| condition.is_true));
    assert_eq!(status["discoveredPlans"], json!([{"tier": "gold", "limits": {}}]));
    assert_eq!(status["discoveredAuthScheme"], json!({"authentication": {}}));
}
