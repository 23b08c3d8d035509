//! Which Secrets are keys of which selector.

use serde_json::json;

use super::*;

fn secret(namespace: &str, name: &str, day: u8, key: &str, labels: &Value) -> Value {
    json!({"kind": "Secret", "metadata": {"namespace": namespace, "name": name, "labels": labels,
            "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"), "managedFields": [1]},
        "data": {"api_key": STANDARD.encode(key)}})
}

#[test]
fn keys_are_found() {
    let labels = json!({MANAGED_BY.0: MANAGED_BY.1, "app": "toys"});
    let mut leaving = secret("team", "leaving", 1, "leaving", &labels);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut broken = secret("team", "broken", 1, "", &labels);
    broken["data"]["api_key"] = json!("%%%");
    let secrets = [
        secret("team", "alice", 1, "IAMALICE", &labels),
        secret("kuadrant-system", "bob", 1, "IAMBOB", &labels),
        secret("other", "eve", 1, "IAMEVE", &labels),
        secret("team", "unmanaged", 1, "UNMANAGED", &json!({"app": "toys"})),
        secret(
            "team",
            "games",
            1,
            "GAMES",
            &json!({MANAGED_BY.0: MANAGED_BY.1, "app": "games"}),
        ),
        secret("team", "thief", 2, "IAMALICE", &labels),
        secret("team", "empty", 1, "", &labels),
        secret("team", "long", 1, &"x".repeat(5000), &labels),
        leaving,
        broken,
    ];
    let method = |namespaces: Option<&[&str]>| ApiKeyMethod {
        workspace: "root".into(),
        selector: serde_json::from_value(json!({"matchLabels": {"app": "toys"}})).unwrap(),
        namespaces: namespaces.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
    };
    let ring = Arc::new(KeyRing::default());
    let who = |ring: &KeyRing, key: &str| {
        ring.find(key)
            .map(|entry| entry.identity["metadata"]["name"].clone())
    };
    ring.fill(&method(Some(&["team", "kuadrant-system"])), &secrets);
    for (key, name) in [
        ("IAMALICE", Some("alice")),
        ("IAMBOB", Some("bob")),
        ("IAMEVE", None),
        ("UNMANAGED", None),
        ("GAMES", None),
        ("leaving", None),
        ("", None),
        ("IAMALIC", None),
        ("IAMALICEE", None),
        ("iamalice", None),
        (&"x".repeat(5000), None),
    ] {
        assert_eq!(who(&ring, key), name.map(Value::from), "{key:.20}");
    }
    assert_eq!(ring.len(), 2);
    assert!(
        ring.find("IAMALICE").unwrap().identity["metadata"]
            .get("managedFields")
            .is_none()
    );
    ring.fill(&method(None), &secrets);
    assert_eq!(who(&ring, "IAMEVE"), Some(Value::from("eve")), "all namespaces");
    ring.fill(&method(None), &[]);
    assert!(ring.is_empty(), "a key that is gone is gone at once");
}

#[test]
fn a_key_lets_through_for_as_long_as_its_secret_is_there() {
    let labels = json!({MANAGED_BY.0: MANAGED_BY.1, "app": "toys"});
    let method = ApiKeyMethod {
        workspace: "root".into(),
        selector: serde_json::from_value(json!({"matchLabels": {"app": "toys"}})).unwrap(),
        namespaces: None,
    };
    let alice = || secret("team", "alice", 1, "IAMALICE", &labels);
    let mut annotated = alice();
    annotated["metadata"]["annotations"] = json!({"secret.kuadrant.io/plan-id": "gold"});
    let mut moved = alice();
    moved["metadata"]["labels"]["app"] = json!("games");
    for (secrets, stands, reason) in [
        (vec![alice()], true, "nothing has changed"),
        (vec![annotated], true, "what is said of it is not what it is"),
        (
            vec![alice(), secret("team", "bob", 2, "IAMBOB", &labels)],
            true,
            "others come",
        ),
        (vec![], false, "it is gone"),
        (vec![moved], false, "the selector does not mean it any more"),
        (
            vec![secret("team", "alice", 1, "ANOTHER", &labels)],
            false,
            "the Secret has another key",
        ),
        (
            vec![secret("team", "eve", 1, "IAMALICE", &labels)],
            false,
            "it is somebody else's key now",
        ),
    ] {
        let ring = Arc::new(KeyRing::default());
        ring.fill(&method, &[alice()]);
        let entry = ring.find("IAMALICE").unwrap();
        assert_eq!(entry.lapsed(0), None, "{reason}: before");
        ring.fill(&method, &secrets);
        assert_eq!(entry.lapsed(0).is_none(), stands, "{reason}");
        drop(ring);
        assert!(entry.lapsed(0).is_some(), "{reason}: no policy knows it");
    }
}
