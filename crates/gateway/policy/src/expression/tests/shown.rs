//! What explanations say of an expression: what it read, and never what lets somebody in.

use super::*;

/// A request with keys in its headers and its query, by somebody who is known by a Secret.
fn with_secrets<T>(test: impl FnOnce(&Facts<'_>) -> T) -> T {
    let uri: Uri = "/toys?api_key=KEEP&size=2&door=KEEP".parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "APIKEY KEEP"),
        ("cookie", "sid=KEEP"),
        ("x-door", "KEEP"),
        ("x-team", "toys"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let asked = Asked {
        method: &Method::GET,
        uri: &uri,
        host: "shop.example.com",
        scheme: "https",
        version: Version::HTTP_11,
        headers: &headers,
        client: IpAddr::from([10, 0, 0, 9]),
        client_port: 4711,
        door: ([192, 0, 2, 1], 443).into(),
        id: "r-1",
        now: 1_700_000_000_500_000_000,
        probe: false,
    };
    let mut facts = Facts::new(&asked);
    facts.hide("X-Door");
    facts.hide("door");
    facts.set_identity(Arc::new(json!({
        "kind": "Secret", "plan": "free",
        "metadata": {"name": "alice", "annotations": {"secret.kuadrant.io/plan-id": "free",
            "kubectl.kubernetes.io/last-applied-configuration": "KEEP"}},
        "data": {"api_key": "KEEP", "other": "KEEP"}})));
    facts.set_metadata("geo", json!({"country": "DE", "access_token": "KEEP"}));
    facts.set_authorization("rules", json!({"level": 3}));
    test(&facts)
}

#[test]
fn what_was_read_is_told() {
    with_secrets(|facts| {
        for (expression, expected) in [
            (
                "auth.identity.plan == 'gold'",
                "auth.identity.plan == 'gold' is false (auth.identity.plan = \"free\")",
            ),
            (
                "request.method == 'PUT' || request.method == 'POST'",
                "request.method == 'PUT' || request.method == 'POST' is false (request.method = \"GET\")",
            ),
            (
                "auth.identity.metadata.annotations[?\"secret.kuadrant.io/plan-id\"].orValue(\"\") == 'gold'",
                "auth.identity.metadata.annotations[?\"secret.kuadrant.io/plan-id\"].orValue(\"\") == 'gold' is false \
                 (auth.identity.metadata.annotations[\"secret.kuadrant.io/plan-id\"] = \"free\")",
            ),
            (
                "request.headers['x-team'].startsWith('auth.identity')",
                "request.headers['x-team'].startsWith('auth.identity') is false (request.headers['x-team'] = \"toys\")",
            ),
            (
                "auth.authorization.rules.level > 2",
                "auth.authorization.rules.level > 2 is true (auth.authorization.rules.level = 3)",
            ),
            ("false", "false is false"),
        ] {
            let predicate = Predicate::Cel(Cel::predicate(expression).unwrap());
            assert_eq!(predicate.describe(facts), expected);
        }
        let missing = Predicate::Cel(Cel::predicate("auth.identity.nope == 1").unwrap()).describe(facts);
        assert!(
            missing.contains("fails") && missing.contains("(auth.identity.nope: "),
            "{missing}"
        );
    });
}

#[test]
fn what_lets_somebody_in_is_not() {
    with_secrets(|facts| {
        for source in [
            "request.headers.authorization",
            "request.headers['cookie']",
            "request.headers['x-door']",
            "request.headers",
            "request.query",
            "request.path",
            "request",
            "context",
            "context.request.http",
            "auth",
            "auth . identity . data . other",
            "auth.identity",
            "auth.identity.data.other",
            "auth[\"identity\"]['data']",
            "[auth.identity].map(i, i.data.other)[0]",
            "auth.identity.metadata",
            "auth.metadata.geo",
            "auth.metadata.geo.access_token",
            "\"\"\"a\"b\"\"\" + auth.identity.data.other",
            "'x' + request.headers.authorization",
        ] {
            let value = ValueFrom::Cel(Cel::expression(source).unwrap());
            let text = value.describe(facts);
            assert!(!text.contains("KEEP"), "{source}: {text}");
            assert!(text.contains("(hidden)"), "{source}: {text}");
        }
        for source in [
            "auth.identity.data.other",
            "auth.identity.d*.other",
            "auth.identity.data.other.@case:upper",
            "auth.identity.data.@values",
            "auth.identity.@values",
            "request.headers.authorization",
            "context.request.http.headers.cookie.@extract:{\"sep\":\"=\",\"pos\":1}",
            "Bearer {request.headers.x-door}",
        ] {
            let text = ValueFrom::selector(source).unwrap().describe(facts);
            assert!(!text.contains("KEEP"), "{source}: {text}");
        }
        let text = ValueFrom::selector("auth.identity.metadata.name.@case:upper");
        assert_eq!(
            text.unwrap().describe(facts),
            "\"ALICE\", from auth.identity.metadata.name.@case:upper"
        );
    });
}
