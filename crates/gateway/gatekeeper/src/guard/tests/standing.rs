//! What lets somebody through, as long as it does.

use super::*;
use crate::testing::NOW;

#[tokio::test]
async fn what_lets_through_is_looked_at_for_as_long_as_it_lasts() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    issuer.publish(&world);
    let tokens = json!({"rules": {"authentication": {"sso": {"jwt": {"issuerUrl": "https://issuer"}}}}});
    let anybody = json!({"rules": {"authentication": {"all": {"anonymous": {}}}}});
    let token = issuer.token(json!({"sub": "alice", "sid": "s1"}));
    let bearer = format!("GET / | authorization: Bearer {token}");
    let key = "GET / | authorization: APIKEY IAMALICE".to_owned();
    let nanos = |seconds: i64| u128::try_from(NOW + seconds).unwrap() * 1_000_000_000;
    let gatekeeper = gatekeeper(&world, Settings::default());
    let guards = [&tokens, &keys(), &anybody].map(|spec| gatekeeper.guard(plans(Some(spec), None)).0);
    let mut standings = Vec::new();
    for (guard, line) in guards.iter().zip([&bearer, &key, &key]) {
        match sent(line).judge(guard).await.0 {
            Verdict::Allow(passage) => standings.push(passage.standing),
            Verdict::Deny(refusal) => panic!("{line}: {refusal:?}"),
        }
    }
    let [Some(token), Some(key), None] = &standings[..] else {
        panic!("{standings:?}");
    };
    assert_eq!((token.0.lapsed(nanos(0)), key.0.lapsed(nanos(0))), (None, None));
    // The same, and no other, for each request: nothing is made for it.
    for (guard, line, known) in [
        (&guards[0], &bearer, token),
        (
            &guards[1],
            &"GET / | authorization: APIKEY IAMALICE".to_owned(),
            key,
        ),
    ] {
        let Verdict::Allow(passage) = sent(line).judge(guard).await.0 else {
            panic!("{line}");
        };
        assert_eq!(passage.standing.as_ref(), Some(known));
    }
    assert_eq!(token.0.lapsed(nanos(59)), None);
    assert_eq!(token.0.lapsed(nanos(60)), Some("the token has expired"));
    lock(&world.ended).push("s1".to_owned());
    assert_eq!(token.0.lapsed(nanos(0)), Some("the session has ended"));
    gatekeeper.set_secrets("root", Vec::new());
    assert_eq!(key.0.lapsed(nanos(0)), Some("the API key has been taken back"));
}

#[test]
fn a_guards_print_tells_who_may_pass() {
    let world = Arc::new(World::default());
    let gatekeeper = gatekeeper(&world, Settings::default());
    let print =
        |auth: Option<&Value>, limits: Option<&Value>| gatekeeper.guard(plans(auth, limits)).0.print();
    let mut other = keys();
    other["rules"]["authentication"]["api-key"]["apiKey"]["selector"]["matchLabels"]["app"] = json!("games");
    let mut telling = keys();
    telling["rules"]["response"]["success"]["filters"]["kuadrant"] = json!({"plain": {"value": "gold"}});
    let limits = json!({"limits": {"few": {"rates": [{"limit": 1, "window": "1m"}]}}});
    let keyed = print(Some(&keys()), None);
    assert_ne!(keyed, 0);
    for (auth, limits, same, reason) in [
        (Some(&keys()), None, true, "the same"),
        (
            Some(&keys()),
            Some(&limits),
            true,
            "how often says nothing of who",
        ),
        (Some(&telling), None, true, "nor do plans"),
        (Some(&other), None, false, "other keys"),
        (None, Some(&limits), false, "nobody in particular"),
    ] {
        assert_eq!(print(auth, limits) == keyed, same, "{reason}");
    }
    assert_eq!(print(None, Some(&limits)), 0, "whoever comes");
}
