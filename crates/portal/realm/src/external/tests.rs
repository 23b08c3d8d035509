//! Settings of other providers, what they say of themselves and of people, and who those are here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::entry::{Entry, Move, Refusal, decide};
use super::visitor::{self, Visitor};
use super::*;
use crate::directory::{Directory, Fed, ROOT};

const ISSUER: &str = "https://keycloak.example/realms/acme";

fn provider(more: &Value) -> IdentityProvider {
    let mut entry = json!({"name": "keycloak", "issuer": ISSUER, "clientID": "fairway"});
    for (field, value) in more.as_object().unwrap() {
        entry[field] = value.clone();
    }
    IdentityProvider::read(&entry).unwrap()
}

#[test]
fn a_provider_has_defaults() {
    let plain = provider(&json!({}));
    assert_eq!(plain.display_name, "keycloak");
    assert_eq!(plain.scopes, "openid profile email");
    assert_eq!(plain.claims.username, "preferred_username");
    assert!(plain.create_users);
    let told = provider(&json!({
        "displayName": "Our Keycloak", "scopes": ["groups"], "createUsers": false,
        "claimMappings": {"username": "nickname", "groups": ""},
    }));
    assert_eq!(
        (told.scopes.as_str(), told.create_users),
        ("openid groups", false)
    );
    assert_eq!(
        (told.claims.username.as_str(), told.claims.groups.as_str()),
        ("nickname", "")
    );
    let broken = json!({"spec": {"identityProviders": [
        {"name": "a/b", "issuer": ISSUER, "clientID": "x"}, {"name": "a", "issuer": "http://keycloak", "clientID": "x"},
        {"name": "a", "issuer": ISSUER}, {}, {"name": "a", "issuer": ISSUER, "clientID": "x"},
    ]}});
    assert_eq!(IdentityProvider::all(&broken).len(), 1);
}

#[test]
fn only_this_machine_is_spoken_to_without_tls() {
    for (url, expected) in [
        ("https://keycloak.example", true),
        ("https://keycloak.example:8443/realms/acme", true),
        ("http://localhost:8080/realms/acme", true),
        ("http://127.0.0.1:1", true),
        ("http://[::1]:1/x", true),
        ("http://keycloak.example", false),
        ("http://localhost.evil.example/", false),
        ("http://127.0.0.1:1@evil.example/", false),
        ("http://127.0.0.1:x/", false),
        ("http://127.0.0.10/", false),
        ("https://", false),
        ("https:///x", false),
        ("javascript://x", false),
        ("https://a b", false),
        ("https://a#b", false),
        ("https://a\r\nb", false),
        ("", false),
    ] {
        assert_eq!(is_address(url), expected, "{url:?}");
    }
}

fn document() -> Value {
    json!({
        "issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/auth?kc=1"), "token_endpoint": format!("{ISSUER}/token"),
        "jwks_uri": format!("{ISSUER}/certs"), "userinfo_endpoint": format!("{ISSUER}/userinfo"),
    })
}

#[test]
fn a_configuration_is_that_of_the_issuer() {
    let read = endpoints(&document(), ISSUER).unwrap();
    assert!(read.takes_basic && !read.names_itself && read.userinfo.is_some());
    assert_eq!(
        discovery("https://a/"),
        "https://a/.well-known/openid-configuration"
    );
    for (field, value, complaint) in [
        ("issuer", json!("https://evil.example"), "letter by letter"),
        ("token_endpoint", Value::Null, "has no token_endpoint"),
        ("jwks_uri", json!("http://evil.example/"), "no address with https"),
        (
            "authorization_endpoint",
            json!("javascript:alert(1)"),
            "no address with https",
        ),
        (
            "userinfo_endpoint",
            json!("file:///etc/passwd"),
            "no address with https",
        ),
    ] {
        let mut document = document();
        document[field] = value;
        let why = endpoints(&document, ISSUER).unwrap_err();
        assert!(why.contains(complaint), "{field}: {why}");
    }
    let mut by_post = document();
    by_post["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    assert!(!endpoints(&by_post, ISSUER).unwrap().takes_basic);
}

#[test]
fn a_browser_is_sent_with_all_that_ties_the_answer_to_it() {
    let wanted = crate::Authorization {
        client: "portal".to_owned(),
        redirect_uri: String::new(),
        state: None,
        nonce: None,
        scope: String::new(),
        challenge: None,
        silent: false,
        afresh: true,
        max_age: Some(60),
        login_hint: "alice".to_owned(),
    };
    let question = Question {
        callback: "https://id/cb",
        state: "s",
        nonce: "n",
        challenge: "c",
        wanted: Some(&wanted),
    };
    let read = endpoints(&document(), ISSUER).unwrap();
    let sent = address(&provider(&json!({})), &read, question);
    assert_eq!(
        sent,
        format!(
            "{ISSUER}/auth?kc=1&response_type=code&client_id=fairway&redirect_uri=https%3A%2F%2Fid%2Fcb&scope=openid+profile+email\
             &state=s&nonce=n&code_challenge=c&code_challenge_method=S256&prompt=login&max_age=60&login_hint=alice"
        )
    );
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "fairway", "azp": "fairway", "sub": "u-1", "nonce": "n", "exp": 1_300, "iat": 1_000,
        "preferred_username": "Alice", "name": "Alice A.", "email": "alice@example.com", "groups": ["/developers", "/ops"],
    })
}

#[test]
fn a_token_is_of_the_issuer_for_us_now_and_answers_this_question() {
    let provider = provider(&json!({}));
    let changed = |field: &str, value: Value| {
        let mut claims = claims();
        claims[field] = value;
        claims
    };
    for (claims, fits, why) in [
        (claims(), true, "as it should be"),
        (changed("azp", Value::Null), true, "without a party"),
        (changed("aud", json!(["fairway"])), true, "a list of one"),
        (
            changed("aud", json!(["fairway", "x"])),
            true,
            "others, and the party is us",
        ),
        (changed("azp", json!("other")), false, "another party"),
        (changed("azp", json!(1)), false, "a party that is no text"),
        (changed("aud", json!("other")), false, "for somebody else"),
        (
            changed("iss", json!("https://evil.example")),
            false,
            "another issuer",
        ),
        (changed("exp", json!(1_100)), false, "its time is up"),
        (changed("exp", Value::Null), false, "for ever"),
        (changed("nbf", json!(1_500)), false, "not yet"),
        (changed("nonce", json!("m")), false, "another question"),
        (changed("nonce", Value::Null), false, "no question"),
        (changed("nonce", json!("")), false, "an empty question"),
        (changed("sub", Value::Null), false, "of nobody"),
        (
            changed("sub", json!("x".repeat(256))),
            false,
            "a name without end",
        ),
        (changed("sub", json!("a\nb")), false, "a name of two lines"),
    ] {
        assert_eq!(
            visitor::judge(&claims, &provider, "n", 1_100).is_ok(),
            fits,
            "{why}"
        );
    }
    let mut several = changed("aud", json!(["fairway", "x"]));
    several["azp"] = Value::Null;
    let refused = visitor::judge(&several, &provider, "n", 1_100);
    assert_eq!(
        refused,
        Err(visitor::Refusal::Party),
        "others, and nobody says who asked"
    );
    let unasked = visitor::judge(&changed("nonce", json!("")), &provider, "", 1_100);
    assert_eq!(unasked, Err(visitor::Refusal::Nonce));
}

#[test]
fn what_is_said_of_somebody_is_taken_within_bounds() {
    let provider = provider(&json!({}));
    let read = |claims: &Value, more: &Value| visitor::read(claims, more, &provider, 1_100).unwrap();
    let alice = read(&claims(), &Value::Null);
    assert_eq!((alice.username.as_str(), alice.said.as_str()), ("alice", "Alice"));
    assert_eq!(
        alice.groups,
        BTreeSet::from(["/developers".to_owned(), "/ops".to_owned()])
    );
    assert_eq!(alice.authenticated_at, 1_100);
    assert!(!visitor::lacks(&claims(), &provider));

    let few = json!({"sub": "u-1", "preferred_username": "a@b", "auth_time": 5_000});
    assert!(visitor::lacks(&few, &provider));
    let more = json!({"sub": "u-1", "preferred_username": "other", "email": "x\u{7}y", "groups": "one", "name": "x".repeat(257)});
    let found = read(&few, &more);
    assert_eq!(
        (found.username.as_str(), found.said.as_str()),
        ("", "a@b"),
        "the token goes before"
    );
    assert_eq!((found.email.as_str(), found.display_name.as_str()), ("xy", ""));
    assert_eq!(found.groups, BTreeSet::from(["one".to_owned()]));
    assert_eq!(found.authenticated_at, 1_100, "nobody has signed in tomorrow");
    let foreign = visitor::read(&few, &json!({"sub": "u-2"}), &provider, 1_100);
    assert_eq!(foreign, Err(visitor::Refusal::Userinfo));

    let many: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    let crowd = read(&json!({"sub": "u-1", "groups": many}), &Value::Null);
    assert_eq!(crowd.groups.len(), 1_024);
    let odd = read(
        &json!({"sub": "u-1", "groups": ["", 5, "x".repeat(300)]}),
        &Value::Null,
    );
    assert!(odd.groups.is_empty());
}

fn visitor(subject: &str, name: &str) -> Visitor {
    let claims = json!({"sub": subject, "preferred_username": name, "groups": ["/developers"]});
    visitor::read(&claims, &Value::Null, &provider(&json!({})), 0).unwrap()
}

fn directory() -> Directory {
    let mut all = Directory::default();
    let user = |identity: Value, disabled: bool| json!({"metadata": {"uid": "u"}, "spec": {"identity": identity, "disabled": disabled}});
    for (name, issuer, subject, disabled) in [
        ("alice", ISSUER, "1", false),
        ("dora", ISSUER, "4", true),
        ("twin", ISSUER, "5", false),
        ("double", ISSUER, "5", false),
        ("elsewhere", "https://other.example", "6", false),
    ] {
        let linked = user(json!({"issuer": issuer, "subject": subject}), disabled);
        all.take(Fed::User, ROOT, name, Some(&linked));
    }
    all.take(Fed::User, ROOT, "bob", Some(&user(Value::Null, false)));
    let awaited = json!({"spec": {"members": ["erin"]}});
    all.take(Fed::Group, ROOT, "admins", Some(&awaited));
    all
}

#[test]
fn a_name_makes_nobody_somebody_else() {
    let all = directory();
    let (open, closed) = (provider(&json!({})), provider(&json!({"createUsers": false})));
    let refused = |why: Refusal| Entry::Refused(why);
    for (provider, subject, name, expected, why) in [
        (&open, "1", "alice", Entry::Known("alice".into()), "linked"),
        (&open, "1", "bob", Entry::Known("alice".into()), "renamed there"),
        (
            &closed,
            "1",
            "x",
            Entry::Known("alice".into()),
            "linked needs no new user",
        ),
        (
            &open,
            "4",
            "dora",
            Entry::Known("dora".into()),
            "disabled is still she",
        ),
        (&open, "2", "carol", Entry::New("carol".into()), "the first time"),
        (&closed, "2", "carol", refused(Refusal::Closed), "nobody new"),
        (
            &open,
            "2",
            "bob",
            refused(Refusal::Taken("bob".into())),
            "a local user",
        ),
        (
            &open,
            "2",
            "Alice",
            refused(Refusal::Taken("alice".into())),
            "linked with another",
        ),
        (
            &open,
            "2",
            "admin",
            refused(Refusal::Taken("admin".into())),
            "has rights",
        ),
        (
            &open,
            "2",
            "erin",
            refused(Refusal::Taken("erin".into())),
            "a group waits for her",
        ),
        (
            &open,
            "2",
            "a@b",
            refused(Refusal::NoName("a@b".into())),
            "no name",
        ),
        (
            &open,
            "2",
            "",
            refused(Refusal::NoName(String::new())),
            "none at all",
        ),
        (
            &open,
            "5",
            "twin",
            refused(Refusal::Several),
            "two say that they are it",
        ),
        (
            &open,
            "6",
            "elsewhere",
            refused(Refusal::Taken("elsewhere".into())),
            "another issuer's subject",
        ),
    ] {
        let found = decide(&all, ROOT, provider, &visitor(subject, name));
        assert_eq!(found, expected, "{why}");
    }
    assert!(all.member(ROOT, "dora").is_none(), "and stays out");
}

#[test]
fn a_link_is_as_the_object_says_now() {
    let mut all = directory();
    let moved = json!({"metadata": {"uid": "u"}, "spec": {"identity": {"issuer": ISSUER, "subject": "9"}}});
    all.take(Fed::User, ROOT, "alice", Some(&moved));
    assert!(all.linked(ROOT, ISSUER, "1").is_empty());
    assert_eq!(all.linked(ROOT, ISSUER, "9"), ["alice"]);
    all.take(Fed::User, ROOT, "twin", None);
    assert_eq!(all.linked(ROOT, ISSUER, "5"), ["double"]);
    assert!(all.linked("acme", ISSUER, "9").is_empty(), "another realm");
    let half = json!({"metadata": {"uid": "u"}, "spec": {"identity": {"issuer": ISSUER, "subject": ""}}});
    all.take(Fed::User, ROOT, "alice", Some(&half));
    assert!(all.linked(ROOT, ISSUER, "").is_empty());
}

#[test]
fn groups_follow_those_of_the_provider_and_no_others() {
    let mut all = directory();
    for (name, external, members) in [
        ("joined", json!(["keycloak:/developers"]), json!(["bob"])),
        (
            "stays",
            json!(["keycloak:/x", "keycloak:/developers"]),
            json!(["alice"]),
        ),
        ("left", json!(["keycloak:/ops"]), json!(["alice"])),
        ("by-hand", json!([]), json!(["alice"])),
        ("of-another", json!(["okta:/developers"]), json!(["alice"])),
        ("not-yet", json!(["keycloak:/ops"]), json!([])),
        ("broken", json!(["/developers", "keycloak"]), json!([])),
    ] {
        let group = json!({"spec": {"externalGroups": external, "members": members}});
        all.take(Fed::Group, ROOT, name, Some(&group));
    }
    let groups = BTreeSet::from(["/developers".to_owned()]);
    let moves = |joins: bool, group: &str| Move {
        group: group.to_owned(),
        joins,
    };
    let found = all.moves(ROOT, "alice", "keycloak", &groups);
    assert_eq!(found, [moves(true, "joined"), moves(false, "left")]);
    let found = all.moves(ROOT, "alice", "keycloak", &BTreeSet::new());
    assert_eq!(found, [moves(false, "left"), moves(false, "stays")]);
    assert_eq!(all.moves(ROOT, "alice", "google", &groups), []);
}
