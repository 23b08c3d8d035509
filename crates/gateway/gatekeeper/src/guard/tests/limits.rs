//! How often: counters, and what answers tell of them.

use super::*;

#[tokio::test]
async fn limits_are_counted_and_told() {
    let world = Arc::new(World::default());
    let limits = json!({"limits": {
        "by-user": {"rates": [{"limit": 2, "window": "10s"}], "counters": [{"expression": "auth.identity.metadata.name"}]},
        "reads": {"rates": [{"limit": 100, "window": "1m"}], "when": [{"predicate": "request.method == 'GET'"}]}}});
    let guard = guard(&world, Some(&keys()), Some(&limits));
    let (alice, bob) = (
        sent("GET / | authorization: APIKEY IAMALICE"),
        sent("GET / | authorization: APIKEY IAMBOB"),
    );
    for left in [1, 0] {
        let (verdict, waited) = alice.judge(&guard).await;
        let Verdict::Allow(passage) = verdict else {
            panic!("{left} left");
        };
        assert!(!waited);
        let headers = &passage.response_headers;
        assert_eq!(
            header(headers, "x-ratelimit-remaining"),
            Some(left.to_string().as_str())
        );
        let limit = "2, 2;w=10;name=\"by-user\", 100;w=60;name=\"reads\"";
        assert_eq!(header(headers, "x-ratelimit-limit"), Some(limit));
        assert_eq!(header(headers, "x-ratelimit-reset"), Some("10"));
    }
    let Verdict::Deny(refusal) = alice.judge(&guard).await.0 else {
        panic!("that was one too many");
    };
    assert_eq!(
        (refusal.status.as_u16(), refusal.body.as_ref()),
        (429, &b"Too Many Requests\n"[..])
    );
    assert_eq!(header(&refusal.headers, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(refusal.by, "RateLimitPolicy/team/slow");
    assert_eq!(
        status(&bob.judge(&guard).await.0),
        200,
        "bob has a counter of his own"
    );
    let mut later = sent("GET / | authorization: APIKEY IAMALICE");
    later.now += 10_000_000_000;
    assert_eq!(status(&later.judge(&guard).await.0), 200, "a new window");
    assert_eq!(
        status(&sent("GET /").judge(&guard).await.0),
        401,
        "who is refused before is not counted"
    );
}

fn slow() -> PolicyKey {
    PolicyKey {
        workspace: "root".to_owned(),
        kind: fairway_gateway_policy::object::Kind::RateLimitPolicy,
        namespace: "team".to_owned(),
        name: "slow".to_owned(),
    }
}

#[tokio::test]
async fn rates_of_one_window_count_a_request_once() {
    let world = Arc::new(World::default());
    let limits =
        json!({"limits": {"l": {"rates": [{"limit": 5, "window": "1m"}, {"limit": 10, "window": "60s"}]}}});
    let guard = guard(&world, None, Some(&limits));
    for (at, expected) in [200, 200, 200, 200, 200, 429].into_iter().enumerate() {
        assert_eq!(status(&sent("GET /").judge(&guard).await.0), expected, "{at}");
    }
}

#[tokio::test]
async fn a_probe_tries_what_requests_are_counted_by() {
    let world = Arc::new(World::default());
    let rates = json!([{"limit": 1, "window": "1m"}]);
    let missing = "fails for requests with nothing particular, which pass uncounted: request.headers['x-a']";
    for (limit, told) in [
        (json!({"rates": rates}), ""),
        (
            json!({"rates": rates, "counters": [{"expression": "source.address"}]}),
            "",
        ),
        (
            json!({"rates": rates, "counters": [{"expression": "request.headers['x-a']"}]}),
            missing,
        ),
        (
            json!({"rates": rates, "when": [{"predicate": "request.headers['x-a'] == ''"}]}),
            missing,
        ),
        (
            json!({"rates": rates, "when": [{"predicate": "request.method == 'PUT'"}],
                   "counters": [{"expression": "request.headers['x-a']"}]}),
            "",
        ),
        (
            json!({"rates": rates, "counters": [{"expression": "auth.identity.sub.more"}]}),
            "",
        ),
        (
            json!({"rates": [{"limit": -1, "window": "1m"}]}),
            "has a rate of -1",
        ),
    ] {
        let guard = guard(&world, None, Some(&json!({"limits": {"l": limit}})));
        let mut probe = sent("GET / | x-fairway-probe: RateLimitPolicy");
        probe.probe = true;
        assert_eq!(status(&probe.judge(&guard).await.0), 429, "{limit}");
        let troubles = guard.limit_troubles(&slow(), now());
        match told {
            "" => assert_eq!(troubles, [""; 0], "{limit}"),
            _ => assert!(
                troubles.len() == 1 && troubles[0].contains(told),
                "{limit}: {troubles:?}"
            ),
        }
    }
}

#[tokio::test]
async fn counters_are_told_apart() {
    let world = Arc::new(World::default());
    let limits = json!({"limits": {"l": {"rates": [{"limit": 1, "window": "1h"}], "counters": [
        {"expression": "request.headers['x-a']"}, {"expression": "request.headers['x-b']"}]}}});
    let guard = guard(&world, None, Some(&limits));
    for (request, expected, why) in [
        ("GET / | x-a: 1 | x-b: 2", 200, "the first"),
        ("GET / | x-a: 1 | x-b: 2", 429, "the same again"),
        ("GET / | x-a: 12 | x-b: ", 200, "not the same put together"),
        ("GET / | x-a: 1|1:2 | x-b: ", 200, "nor with our own signs in it"),
        (
            "GET / | x-a: 1",
            200,
            "who lacks a value passes, as a failure allows",
        ),
        ("GET / | x-a: 1", 200, "every time"),
    ] {
        assert_eq!(status(&sent(request).judge(&guard).await.0), expected, "{why}");
    }
    assert_eq!(guard.limit_troubles(&slow(), now()).len(), 1, "and it is told");
    assert!(
        guard.limit_troubles(&slow(), now() + 3600).is_empty(),
        "not for ever"
    );
    let other = PolicyKey {
        name: "other".to_owned(),
        ..slow()
    };
    assert!(
        guard.limit_troubles(&other, now()).is_empty(),
        "and not to others"
    );
    let long = |last: &str| sent(&format!("GET / | x-a: {}{last} | x-b: ", "x".repeat(300)));
    assert_eq!(status(&long("").judge(&guard).await.0), 200);
    assert_eq!(status(&long("").judge(&guard).await.0), 429);
    let strict = gatekeeper(
        &world,
        Settings {
            rate_limit_failure: FailureMode::Deny,
            rate_limit_headers: RateLimitHeaders::None,
            ..Settings::default()
        },
    );
    let (strict, _) = strict.guard(plans(None, Some(&limits)));
    assert_eq!(
        status(&sent("GET / | x-a: 1").judge(&strict).await.0),
        500,
        "what cannot be counted is refused"
    );
    let Verdict::Allow(passage) = sent("GET / | x-a: 1 | x-b: 2").judge(&strict).await.0 else {
        panic!("there is room");
    };
    assert_eq!(passage.response_headers, []);
}

#[tokio::test]
async fn a_policy_says_what_becomes_of_requests_that_cannot_be_counted() {
    let world = Arc::new(World::default());
    let limits = json!({"limits": {"l": {"rates": [{"limit": 1, "window": "1h"}], "counters": [
        {"expression": "request.headers['x-a']"}]}}});
    for (platform, annotation, expected, reason) in [
        (FailureMode::Allow, None, 200, "as the platform has it"),
        (FailureMode::Deny, None, 500, "as the platform has it"),
        (
            FailureMode::Allow,
            Some(Failure::Deny),
            500,
            "this policy is stricter",
        ),
        (
            FailureMode::Deny,
            Some(Failure::Allow),
            200,
            "this policy is milder",
        ),
    ] {
        let gatekeeper = gatekeeper(
            &world,
            Settings {
                rate_limit_failure: platform,
                ..Settings::default()
            },
        );
        let mut plan = plans(None, Some(&limits));
        let own = plan.limits.as_mut().map(Arc::make_mut).unwrap();
        own.limits[0].failure = annotation;
        let (guard, _) = gatekeeper.guard(plan);
        assert_eq!(status(&sent("GET /").judge(&guard).await.0), expected, "{reason}");
        let mut probe = sent("GET / | x-fairway-probe: RateLimitPolicy");
        probe.probe = true;
        assert_eq!(status(&probe.judge(&guard).await.0), 429, "{reason}");
        assert_eq!(
            guard.uncounted(&slow()).len(),
            usize::from(annotation.is_some()),
            "{reason}"
        );
        assert_eq!(guard.limit_troubles(&slow(), now()).len(), 1, "{reason}");
    }
}
