//! From a request to a Secret, and back.

use serde_json::json;

use super::*;

fn key() -> Value {
    json!({"metadata": {"name": "mine", "namespace": "consumer", "generation": 2, "uid": "k1"}, "spec": {
        "apiProductRef": {"name": "toys", "namespace": "team"}, "secretRef": {"name": "mine-key"},
        "planTier": "gold", "useCase": "fun", "expiresAt": "2027-01-01T00:00:00Z",
        "requestedBy": {"userId": "alice", "email": "a@example.com"}}})
}

fn product(mode: &str) -> Value {
    json!({"metadata": {"name": "toys", "namespace": "team"}, "spec": {"approvalMode": mode}, "status": {
        "discoveredAuthScheme": {"authentication": {
            "tokens": {"jwt": {"issuerUrl": "https://i"}},
            "keys": {"apiKey": {"selector": {"matchLabels": {"app": "toys"}}},
                     "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}},
        "discoveredPlans": [{"tier": "gold", "limits": {"daily": 10}}]}})
}

/// The request of a key as it was made.
fn request(key: &Value, uid: &str) -> Value {
    let mut request = request::wanted(key);
    request["metadata"]["uid"] = json!(uid);
    request
}

fn approval(name: &str, day: u8, approved: bool) -> Value {
    json!({"metadata": {"name": name, "namespace": "team", "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": {"apiKeyRequestRef": {"name": request_name("consumer", "mine")}, "approved": approved, "reviewedBy": "bob",
                 "message": "fine"}})
}

fn changed(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(parent.shift_remove(field)),
        value => drop(parent.insert(field.to_owned(), value)),
    }
    object
}

struct Case {
    reason: &'static str,
    key: Value,
    product: Option<Value>,
    secret: Option<Value>,
    requests: Vec<Value>,
    approvals: Vec<Value>,
    requester_is_out: bool,
}

impl Case {
    /// Everything is there but an approval.
    fn new(reason: &'static str) -> Self {
        Self {
            reason,
            key: key(),
            product: Some(product("manual")),
            secret: Some(json!({"data": {"api_key": "c2VjcmV0"}})),
            requests: vec![request(&key(), "r1")],
            approvals: Vec::new(),
            requester_is_out: false,
        }
    }

    fn decide(&self) -> Decided {
        let requests: Vec<&Value> = self.requests.iter().collect();
        let approvals: Vec<&Value> = self.approvals.iter().collect();
        decide(
            &self.key,
            &Around {
                product: self.product.as_ref(),
                secret: self.secret.as_ref(),
                requests: &requests,
                approvals: &approvals,
                hostname: Some("toys.example.com"),
                requester_is_out: self.requester_is_out,
                system_namespace: "kuadrant-system",
                now: 1_780_000_000,
                timestamp: "2026-05-28T20:26:40Z",
            },
        )
    }

    /// Condition and reason; what is made, and what is thrown away.
    fn check(&self, expected: &str) -> Decided {
        let decided = self.decide();
        let mut found = vec![
            decided.condition.r#type.to_owned(),
            decided.condition.reason.to_owned(),
        ];
        let mut add = |is_there: bool, what: &str| {
            if is_there {
                found.push(what.to_owned());
            }
        };
        add(decided.request.is_some(), "+request");
        add(!decided.surplus.is_empty(), "-request");
        add(decided.approval.is_some(), "+approval");
        add(!decided.adopted.is_empty(), "adopted");
        add(decided.own == Own::Make, "+key");
        add(decided.own == Own::Remove, "-key");
        add(decided.secret.is_some(), "secret");
        assert_eq!(found.join(" "), expected, "{}", self.reason);
        decided
    }
}

#[test]
fn what_is_missing_is_told() {
    let open = changed(
        &product("manual"),
        "/status/discoveredAuthScheme/authentication",
        json!({"tokens": {"jwt": {}}}),
    );
    let expressions = json!({"keys": {"apiKey": {"selector": {"matchExpressions": [
        {"key": "tenant", "operator": "In", "values": ["a", "b"]}]}}}});
    let picky = changed(
        &product("manual"),
        "/status/discoveredAuthScheme/authentication",
        expressions,
    );
    let leaving = changed(
        &product("manual"),
        "/metadata/deletionTimestamp",
        json!("2026-01-01T00:00:00Z"),
    );
    let secret = |data: Value| Some(json!({"data": data}));
    for (reason, product, secret, expected) in [
        (
            "no product",
            None,
            secret(json!({})),
            "Failed APIProductNotFound -request",
        ),
        (
            "it is being deleted",
            Some(leaving),
            secret(json!({})),
            "Failed APIProductDeleting -request",
        ),
        (
            "no Secret",
            Some(product("manual")),
            None,
            "Failed SecretNotFound",
        ),
        (
            "no key in it",
            Some(product("manual")),
            secret(json!({})),
            "Failed SecretAPIKeyNotFound",
        ),
        (
            "an empty one",
            Some(product("manual")),
            secret(json!({"api_key": ""})),
            "Failed SecretAPIKeyEmpty",
        ),
        (
            "no policy",
            Some(changed(&product("manual"), "/status", Value::Null)),
            secret(json!({"api_key": "eA=="})),
            "Failed AuthSchemeNotFound",
        ),
        (
            "one without keys",
            Some(open),
            secret(json!({"api_key": "eA=="})),
            "Failed APIKeyAuthSchemeNotFound",
        ),
        (
            "one that selects by more than labels",
            Some(picky),
            secret(json!({"api_key": "eA=="})),
            "Failed SelectorNotSupported",
        ),
    ] {
        let case = Case {
            product,
            secret,
            ..Case::new(reason)
        };
        case.check(expected);
    }
    let case = Case {
        secret: None,
        requests: Vec::new(),
        ..Case::new("nothing is asked before it can be had")
    };
    case.check("Failed SecretNotFound");
}

#[test]
fn a_key_counts_while_its_requester_does() {
    let case = |approvals| Case {
        approvals,
        requester_is_out: true,
        ..Case::new("a disabled user's key")
    };
    // It loses neither request nor approval, so that it counts again when he does.
    let decided = case(vec![approval("a", 2, true)]).check("Failed RequesterDisabled adopted");
    assert!(
        decided.condition.message.starts_with("alice, who asked"),
        "{decided:?}"
    );
    case(Vec::new()).check("Failed RequesterDisabled");
}

#[test]
fn approvals_decide() {
    let (yes, no) = (approval("a", 2, true), approval("b", 1, false));
    let held = |by: &str| {
        let request = request(&key(), by);
        changed(
            &yes,
            "/metadata/ownerReferences",
            json!([owner_reference(&request)]),
        )
    };
    let stray = changed(&yes, "/metadata/namespace", json!("consumer"));
    for (reason, approvals, expected) in [
        ("nobody has looked", vec![], "Pending AwaitingApproval"),
        ("approved", vec![yes.clone()], "Approved Approved adopted secret"),
        ("approved and held", vec![held("r1")], "Approved Approved secret"),
        (
            "approved for another request",
            vec![held("r0")],
            "Pending AwaitingApproval",
        ),
        ("denied", vec![no.clone()], "Denied Denied adopted"),
        (
            "the oldest counts",
            vec![yes.clone(), no],
            "Denied Denied adopted",
        ),
        (
            "in the consumer's namespace",
            vec![stray],
            "Pending AwaitingApproval",
        ),
    ] {
        let case = Case {
            approvals,
            ..Case::new(reason)
        };
        case.check(expected);
    }
    let automatic = Case {
        product: Some(product("automatic")),
        ..Case::new("products may approve by themselves")
    };
    let made = automatic
        .check("Pending AwaitingApproval +approval")
        .approval
        .unwrap();
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "r1");
    let first = Case {
        requests: Vec::new(),
        product: Some(product("automatic")),
        ..Case::new("a request comes first")
    };
    first.check("Pending AwaitingApproval +request");
    for (when, reason) in [
        ("2026-01-01T00:00:00Z", "its time has passed"),
        ("some day", "it has a time that cannot be read"),
    ] {
        let key = changed(&key(), "/spec/expiresAt", json!(when));
        let case = Case {
            requests: vec![request(&key, "r1")],
            key,
            approvals: vec![held("r1")],
            ..Case::new(reason)
        };
        case.check("Expired KeyExpired");
    }
}

#[test]
fn what_was_not_approved_is_asked_again() {
    for (pointer, value, reason) in [
        (
            "/spec/planTier",
            json!("platinum"),
            "another plan was not approved",
        ),
        ("/spec/requestedBy/userId", json!("mallory"), "nor somebody else"),
        (
            "/spec/expiresAt",
            json!("2037-01-01T00:00:00Z"),
            "nor a longer time",
        ),
        ("/metadata/uid", json!("k2"), "nor another key of the same name"),
    ] {
        let case = Case {
            key: changed(&key(), pointer, value),
            approvals: vec![approval("a", 2, true)],
            ..Case::new(reason)
        };
        // The approval goes with the old request.
        case.check("Pending AwaitingApproval -request adopted");
    }
    let moved = Case {
        key: changed(&key(), "/spec/apiProductRef/namespace", json!("other")),
        ..Case::new("a request in the namespace of another product")
    };
    moved.check("Pending AwaitingApproval +request -request");
}

#[test]
fn keys_are_made_and_thrown_away() {
    let key = changed(&key(), "/spec/secretRef", Value::Null);
    let own = json!({"metadata": {"ownerReferences": [{"kind": "APIKey", "uid": "k1"}]}, "data": {"api_key": "eA=="}});
    let foreign = json!({"metadata": {}, "data": {"api_key": "eA=="}});
    for (reason, secret, approvals, expected) in [
        (
            "none before it is approved",
            None,
            vec![],
            "Pending AwaitingApproval",
        ),
        (
            "one when it is",
            None,
            vec![approval("a", 1, true)],
            "Approved Approved adopted +key",
        ),
        (
            "then it counts",
            Some(own.clone()),
            vec![approval("a", 1, true)],
            "Approved Approved adopted secret",
        ),
        (
            "who is approved again gets another one",
            Some(own.clone()),
            vec![],
            "Pending AwaitingApproval -key",
        ),
        (
            "denied",
            Some(own.clone()),
            vec![approval("a", 1, false)],
            "Denied Denied adopted -key",
        ),
        (
            "somebody else's is neither taken nor touched",
            Some(foreign),
            vec![approval("a", 1, true)],
            "Failed SecretExists adopted",
        ),
    ] {
        let case = Case {
            key: key.clone(),
            requests: vec![request(&key, "r1")],
            secret,
            approvals,
            ..Case::new(reason)
        };
        case.check(expected);
    }
    let orphan = Case {
        key: key.clone(),
        requests: vec![request(&key, "r1")],
        secret: Some(own),
        product: None,
        ..Case::new("nor does it outlive the product")
    };
    orphan.check("Failed APIProductNotFound -request -key");
    let made = consumers_secret(&key, "value");
    assert_eq!(made["metadata"]["name"], "mine-api-key");
    assert!(secrets::is_made_for(&made, &key));
}

#[test]
fn a_secret_says_whose_it_is() {
    let case = Case {
        approvals: vec![approval("a", 1, true)],
        ..Case::new("")
    };
    let decided = case.decide();
    let secret = decided.secret.unwrap();
    let (labels, annotations) = (&secret["metadata"]["labels"], &secret["metadata"]["annotations"]);
    assert_eq!(
        (&labels["app"], &labels[ENFORCEMENT]),
        (&json!("toys"), &json!("true"))
    );
    assert_eq!(labels[MANAGED_BY.0], MANAGED_BY.1);
    assert_eq!(annotations["secret.kuadrant.io/plan-id"], "gold");
    assert_eq!(annotations["secret.kuadrant.io/user-id"], "alice");
    assert_eq!(annotations[KEY_OF], "consumer/mine");
    assert_eq!(secret["metadata"]["namespace"], "kuadrant-system");
    assert_eq!(secret["data"]["api_key"], "c2VjcmV0");
    assert_eq!(decided.status["limits"], json!({"daily": 10}));
    assert_eq!(decided.status["apiHostname"], "toys.example.com");
    assert!(decided.again_in.is_some_and(|left| left > 0));
}

#[test]
fn approvals_are_told_what_they_are_for() {
    let request = request(&key(), "r1");
    let mut approval = approval("a", 1, true);
    let reason = |approval: &Value, request: Option<&Value>| approval_condition(approval, request).reason;
    assert_eq!(reason(&approval, None), "APIKeyRequestNotFound");
    assert_eq!(reason(&approval, Some(&request)), "Valid");
    approval["metadata"]["ownerReferences"] = json!([{"kind": "APIKeyRequest", "uid": "r0"}]);
    assert_eq!(reason(&approval, Some(&request)), "APIKeyRequestChanged");
}

#[test]
fn products_show_their_policies() {
    let product =
        json!({"metadata": {"namespace": "n", "generation": 3}, "spec": {"targetRef": {"name": "shop"}}});
    let route = json!({
        "metadata": {"namespace": "n", "name": "shop"}, "spec": {"parentRefs": [{"name": "web", "namespace": "infra"}]},
        "status": {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]},
    });
    let policy = |namespace: &str, kind: &str, target: &str, spec: Value| {
        let mut spec = spec;
        spec["targetRef"] = json!({"kind": kind, "name": target});
        let conditions =
            json!([{"type": "Accepted", "status": "True"}, {"type": "Enforced", "status": "True"}]);
        json!({"metadata": {"namespace": namespace, "name": target}, "spec": spec, "status": {"conditions": conditions}})
    };
    let plan = policy(
        "infra",
        "Gateway",
        "web",
        json!({"plans": [{"tier": "gold", "predicate": "true"}]}),
    );
    let auth = policy(
        "n",
        "HTTPRoute",
        "shop",
        json!({"defaults": {"rules": {"authentication": {}}}}),
    );
    let other = policy("n", "HTTPRoute", "other", json!({"rules": {}}));
    let above = policy("infra", "Gateway", "web", json!({"rules": {"authorization": {}}}));
    let forced = policy(
        "infra",
        "Gateway",
        "web",
        json!({"overrides": {"rules": {"metadata": {}}}}),
    );
    let none = product_status(&product, &Discovered::default(), None);
    assert!(none.0.iter().all(|condition| !condition.is_true));
    let found = discover(Some(&route), &[&above, &auth, &other], &[&plan]);
    assert_eq!(found.auth, Some(&auth), "the more specific one");
    let (conditions, status) = product_status(&product, &found, None);
    assert!(conditions.iter().all(|condition| condition.is_true));
    assert_eq!(status["discoveredPlans"], json!([{"tier": "gold", "limits": {}}]));
    assert_eq!(status["discoveredAuthScheme"], json!({"authentication": {}}));
    let found = discover(Some(&route), &[&auth, &forced], &[]);
    assert_eq!(found.auth, Some(&forced), "what overrides");
    let waiting = changed(&auth, "/status/conditions", json!([]));
    let found = discover(Some(&route), &[&waiting], &[]);
    let (conditions, status) = product_status(&product, &found, None);
    assert!(
        conditions
            .iter()
            .any(|it| it.reason == "AuthPolicyNotReady" && !it.is_true)
    );
    assert!(
        status.contains_key("discoveredAuthScheme"),
        "keys are not lost for a moment's sake"
    );
}
