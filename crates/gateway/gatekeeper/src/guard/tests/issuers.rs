//! Tokens, and the issuers whose keys they are verified by.

use super::*;

#[tokio::test]
async fn tokens_are_waited_for_once() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    let policy = json!({"rules": {
        "authentication": {"tokens": {"jwt": {"issuerUrl": "https://issuer"}}},
        "authorization": {"dev": {"patternMatching": {"patterns": [
            {"selector": "auth.identity.groups", "operator": "incl", "value": "dev"}]}}},
        "response": {"success": {"headers": {"x-user": {"plain": {"expression": "auth.identity.sub"}}}}}}});
    issuer.publish(&world);
    let guard = guard(&world, Some(&policy), None);
    let dev = sent(&format!(
        "GET / | authorization: Bearer {}",
        issuer.token(json!({"sub": "alice", "groups": ["dev"]}))
    ));
    let ops = sent(&format!(
        "GET / | authorization: Bearer {}",
        issuer.token(json!({"sub": "bob", "groups": ["ops"]}))
    ));
    let (verdict, waited) = dev.judge(&guard).await;
    let Verdict::Allow(passage) = verdict else {
        panic!("alice may");
    };
    assert!(waited, "the keys had to be read");
    assert_eq!(header(&passage.request_headers, "x-user"), Some("alice"));
    assert_eq!(passage.told, [("user", "alice".to_owned())]);
    let (verdict, waited) = dev.judge(&guard).await;
    assert_eq!((status(&verdict), waited), (200, false), "known by now");
    let (verdict, waited) = ops.judge(&guard).await;
    assert_eq!((status(&verdict), waited), (403, false));
    let mut later = sent(&format!(
        "GET / | authorization: Bearer {}",
        issuer.token(json!({"sub": "a", "groups": ["dev"]}))
    ));
    assert_eq!(status(&later.judge(&guard).await.0), 200);
    later.now += 61_000_000_000;
    assert_eq!(
        status(&later.judge(&guard).await.0),
        401,
        "it has expired, though it was verified"
    );
}

#[tokio::test]
async fn an_issuer_that_is_away_lets_nobody_in() {
    let world = Arc::new(World::default());
    let policy = json!({"rules": {"authentication": {"tokens": {"jwt": {"issuerUrl": "https://issuer"}}}}});
    let guard = guard(&world, Some(&policy), None);
    let request = sent(&format!(
        "GET / | authorization: Bearer {}",
        Issuer::new("k").token(json!({}))
    ));
    let (verdict, waited) = request.judge(&guard).await;
    assert_eq!((status(&verdict), waited), (401, true));
    let Verdict::Deny(refusal) = verdict else {
        unreachable!()
    };
    let told = header(&refusal.headers, "x-ext-auth-reason").unwrap();
    assert!(
        !told.contains("issuer"),
        "strangers learn nothing about it: {told}"
    );
    assert_eq!(guard.troubles(now()).len(), 1);
}
