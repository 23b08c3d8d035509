//! What an explanation says of each step: which values the expressions had, and never what lets somebody in.

use super::*;

/// The steps as lines.
async fn told(guard: &RuleGuard, request: &str) -> (u16, Vec<String>, Vec<Step>) {
    let (verdict, steps) = sent(request).explain(guard).await;
    let lines = steps.iter().map(|step| format!("{}: {}", step.what, step.seen));
    (status(&verdict), lines.collect(), steps)
}

#[tokio::test]
async fn explanations_tell_the_steps() {
    let world = Arc::new(World::default());
    let mut policy = keys();
    policy["rules"]["authorization"] = json!({"vip": {"patternMatching": {"patterns": [
        {"predicate": "auth.identity.metadata.name == 'alice'"},
        {"selector": "request.method", "operator": "eq", "value": "GET"}]}}});
    let limits = json!({"limits": {"l": {"rates": [{"limit": 3, "window": "1h"}],
        "when": [{"predicate": "request.host == 'shop.example.com'"}],
        "counters": [{"expression": "auth.identity.metadata.name"}]}}});
    let gatekeeper = gatekeeper(&world, Settings::default());
    let (guard, _) = gatekeeper.guard(plans(Some(&policy), Some(&limits)));
    let (code, text, _) = told(&guard, "GET / | authorization: APIKEY IAMALICE").await;
    assert_eq!(code, 200);
    let of_limit = "RateLimitPolicy/team/slow limit \"l\"";
    assert_eq!(
        text[..3],
        [
            "AuthPolicy/team/api authentication \"api-key\": Secret alice".to_owned(),
            "AuthPolicy/team/api authorization \"vip\": (auth.identity.metadata.name == 'alice' is true \
             (auth.identity.metadata.name = \"alice\") and request.method (\"GET\") eq \"GET\" is true)"
                .to_owned(),
            format!(
                "{of_limit}: applies: request.host == 'shop.example.com' is true (request.host = \"shop.example.com\")\n\
                 counts by \"alice\", from auth.identity.metadata.name (auth.identity.metadata.name = \"alice\")"
            ),
        ]
    );
    assert!(
        text[3].starts_with(&format!("{of_limit}: 3 of 3 in 3600 s left")),
        "{}",
        text[3]
    );
    assert!(!text.join("\n").contains("IAMALICE"), "keys are not shown");
    assert_eq!(gatekeeper.counters(sent("GET /").now), [], "nothing is counted");
    let (code, _, steps) = told(&guard, "GET / | authorization: APIKEY IAMBOB").await;
    assert_eq!(
        (code, steps.last().and_then(|step| step.passes)),
        (403, Some(false))
    );
}

#[tokio::test]
async fn what_does_not_apply_says_why() {
    let world = Arc::new(World::default());
    world.page(
        "http://geo",
        200,
        json!({"access_token": "KEEP", "country": "DE"}),
    );
    let on = |method: &str| json!([{"predicate": format!("request.method == '{method}'")}]);
    let policy = json!({
        "when": [{"predicate": "request.host != 'other'"}],
        "rules": {
            "authentication": {"nobody": {"anonymous": {}, "priority": 1},
                               "put": {"plain": {"selector": "request.host"}, "when": on("PUT")}},
            "metadata": {"geo": {"http": {"url": "http://geo"}}, "put": {"http": {"url": "http://geo"}, "when": on("PUT")}},
            "authorization": {"put": {"patternMatching": {"patterns": [{"predicate": "false"}]}, "when": on("PUT")}},
            "response": {"success": {
                "headers": {
                    "x-country": {"plain": {"expression": "auth.metadata.geo.country"}},
                    "x-put": {"plain": {"value": "1"}, "when": on("PUT")},
                    "x-token": {"plain": {"expression": "auth.metadata.geo.access_token"}},
                    "x-copy": {"plain": {"expression": "'a ' + auth.metadata.geo.access_token"}}},
                "filters": {"who": {"json": {"properties": {"host": {"selector": "request.host"}}}}}}}}});
    let guard = guard(&world, Some(&policy), None);
    let (code, text, _) = told(&guard, "GET /").await;
    let unmet = "does not apply: request.method == 'PUT' is false (request.method = \"GET\")";
    let expected = [
        " applies: request.host != 'other' is true (request.host = \"shop.example.com\")".to_owned(),
        format!(" authentication \"put\": {unmet}"),
        " authentication \"nobody\": anonymous".to_owned(),
        " metadata \"geo\": fetched {\"access_token\":\"(hidden)\",\"country\":\"DE\"}".to_owned(),
        format!(" metadata \"put\": {unmet}"),
        format!(" authorization \"put\": {unmet}"),
        " header \"x-copy\": (hidden), from 'a ' + auth.metadata.geo.access_token \
         (auth.metadata.geo.access_token = (hidden))"
            .to_owned(),
        " header \"x-country\": \"DE\", from auth.metadata.geo.country (auth.metadata.geo.country = \"DE\")"
            .to_owned(),
        format!(" header \"x-put\": {unmet}"),
        " header \"x-token\": (hidden)".to_owned(),
        " tells auth.who: host: \"shop.example.com\", from request.host".to_owned(),
    ];
    let expected = expected.map(|line| format!("AuthPolicy/team/api{line}"));
    assert_eq!((code, text), (200, expected.to_vec()));
}

#[tokio::test]
async fn what_strangers_are_told_is_told() {
    let world = Arc::new(World::default());
    let mut policy = keys();
    policy["rules"]["authentication"]["also"] = json!({"kubernetesTokenReview": {"audiences": ["toys"]}});
    policy["rules"]["response"] = json!({"unauthenticated": {"code": 302, "headers": {
        "location": {"expression": "'https://login/?from=' + request.host"}, "set-cookie": {"value": "a=KEEP"}}}});
    let guard = guard(&world, Some(&policy), None);
    let (code, text, steps) = told(&guard, "GET /?q=1").await;
    assert_eq!(code, 302);
    let last = text.last().unwrap();
    assert!(
        last.starts_with("AuthPolicy/team/api response.unauthenticated: code 302\n")
            && last.contains("header location: \"https://login/?from=shop.example.com\", from ")
            && !last.contains("KEEP"),
        "{last}"
    );
    let ends = |passes: Option<bool>| steps.iter().filter(|step| step.passes == passes).count();
    assert_eq!(
        (ends(Some(false)), ends(Some(true))),
        (1, 0),
        "it ends once: {text:?}"
    );
    // Somebody whom the second way knows is let in, and nothing says that the request ended at the first.
    let (code, text, steps) = told(&guard, "GET / | authorization: APIKEY IAMBOB").await;
    assert_eq!(code, 200);
    assert!(steps.iter().all(|step| step.passes != Some(false)), "{text:?}");
}

/// Whatever brings a credential is one, whatever its name.
#[tokio::test]
async fn keys_by_any_name_are_left_out() {
    let world = Arc::new(World::default());
    for (credentials, request) in [
        (
            json!({"customHeader": {"name": "X-Door"}}),
            "GET / | x-door: IAMBOB",
        ),
        (json!({"queryString": {"name": "door"}}), "GET /?a=b&door=IAMBOB"),
    ] {
        let mut policy = keys();
        policy["rules"]["authentication"]["api-key"]["credentials"] = credentials;
        policy["rules"]["authorization"] = json!({"all": {"patternMatching": {"patterns": [
            {"predicate": "request.headers.size() > 100 || request.path != '' || request.headers['x-door'] == ''"},
            {"selector": "request.headers.x-door", "operator": "neq", "value": "a"},
            {"selector": "request.query", "operator": "neq", "value": "a"}]}}});
        let limits = json!({"limits": {"l": {"rates": [{"limit": 3, "window": "1h"}],
            "counters": [{"expression": "request.path"}, {"expression": "auth.identity.data.api_key"}]}}});
        let guard = guard(&world, Some(&policy), Some(&limits));
        let (code, text, _) = told(&guard, request).await;
        let text = text.join("\n");
        assert_eq!(code, 200, "{text}");
        assert!(
            !text.contains("IAMBOB") && !text.contains("SUFNQk9C") && text.contains("(hidden)"),
            "{text}"
        );
    }
}
