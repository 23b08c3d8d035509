//! Users at home and abroad.

use serde_json::{Value, json};

use super::*;

fn user(name: &str, groups: &[&str], extra: Value) -> User {
    User {
        name: name.to_owned(),
        uid: String::new(),
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
        extra: serde_json::from_value(extra).unwrap(),
    }
}

fn here() -> ClusterId {
    ClusterId::parse("here").unwrap()
}

fn account(home: &str) -> User {
    user(
        "system:serviceaccount:default:robot",
        &["system:serviceaccounts", "system:authenticated"],
        json!({"authentication.kcp.io/cluster-name": [home]}),
    )
}

fn shown(identities: &[User]) -> Vec<String> {
    identities
        .iter()
        .map(|it| format!("{} [{}]", it.name, it.groups.join(" ")))
        .collect()
}

#[test]
fn scopes() {
    let scoped = |scopes: &[&str]| {
        user(
            "ann",
            &["system:authenticated"],
            json!({"authentication.kcp.io/scopes": scopes}),
        )
    };
    for (who, inside) in [
        (user("ann", &[], json!({})), true),
        (scoped(&["cluster:here"]), true),
        (scoped(&["cluster:there,cluster:here"]), true),
        (scoped(&["cluster:there"]), false),
        // All values must allow.
        (scoped(&["cluster:here", "cluster:there"]), false),
        (scoped(&["cluster:here", "cluster:there,cluster:here"]), true),
        (scoped(&["here"]), false),
        (scoped(&[""]), false),
        (account("here"), true),
        (account("there"), false),
        // One that a review names without its workspace is meant to be local.
        (user("system:serviceaccount:a:b", &[], json!({})), true),
    ] {
        assert_eq!(who.is_in_scope(&here()), inside, "{who:?}");
    }
}

#[test]
fn strangers() {
    assert_eq!(
        shown(&account("here").identities(&here())),
        ["system:serviceaccount:default:robot [system:serviceaccounts system:authenticated]"]
    );
    assert_eq!(
        shown(&account("there").identities(&here())),
        [
            "system:anonymous [system:authenticated system:cluster:there]",
            "system:kcp:serviceaccount:there:default:robot [system:authenticated]",
        ]
    );
    let confined = user(
        "ann",
        &["system:kcp:admin", "system:authenticated"],
        json!({"authentication.kcp.io/scopes": ["cluster:there"]}),
    );
    assert_eq!(
        shown(&confined.identities(&here())),
        ["system:anonymous [system:authenticated system:cluster:there]"]
    );
    assert!(!confined.effective_groups(&here()).contains("system:kcp:admin"));
    let nobody = user(
        "x",
        &[],
        json!({"authentication.kcp.io/scopes": ["cluster:there"]}),
    );
    assert_eq!(
        shown(&nobody.identities(&here())),
        ["system:anonymous [system:unauthenticated]"]
    );
}

#[test]
fn warrants() {
    let warrant = json!({
        "user": "system:serviceaccount:default:rest",
        "groups": ["system:kcp:admin"],
        "extra": {"authentication.kcp.io/cluster-name": ["here"]},
    });
    let with = |warrant: &str| {
        user(
            "ann",
            &["system:authenticated"],
            json!({"authorization.kcp.io/warrant": [warrant]}),
        )
    };
    assert_eq!(
        shown(&with(&warrant.to_string()).identities(&here())),
        [
            "ann [system:authenticated]",
            "system:serviceaccount:default:rest [system:kcp:admin]"
        ]
    );
    // It counts where it was given for.
    let there = ClusterId::parse("there").unwrap();
    assert!(
        !with(&warrant.to_string())
            .effective_groups(&there)
            .contains("system:kcp:admin")
    );
    for bad in [
        "rubbish".to_owned(),
        json!({"user": "system:serviceaccount:a:b", "groups": ["system:kcp:admin"]}).to_string(),
    ] {
        assert_eq!(with(&bad).identities(&here()).len(), 1, "{bad}");
    }
    // A warrant within a warrant within a warrant ends somewhere.
    let mut nested = json!({"user": "end"}).to_string();
    for _ in 0..50 {
        nested = json!({"user": "x", "extra": {"authorization.kcp.io/warrant": [nested]}}).to_string();
        if nested.len() > 1 << 16 {
            break;
        }
    }
    assert!(with(&nested).identities(&here()).len() <= MAX_IDENTITIES);
}

#[test]
fn prefixes() {
    let ann = user("ann", &["team"], json!({}));
    assert_eq!(shown(&[ann.prefixed("p:")]), ["p:ann [p:team]"]);
    assert_eq!(
        shown(&[account("there").prefixed("p:")]),
        ["p:system:kcp:serviceaccount:there:default:robot [p:system:serviceaccounts p:system:authenticated]"]
    );
    let homeless = user("system:serviceaccount:a:b", &["system:authenticated"], json!({}));
    assert_eq!(
        shown(&[homeless.prefixed("p:")]),
        ["p:system:anonymous [p:system:authenticated]"]
    );
    let warranted = user(
        "ann",
        &[],
        json!({"authorization.kcp.io/warrant": [json!({"user": "bob"}).to_string(), "rubbish"]}),
    );
    assert_eq!(
        shown(&warranted.prefixed("p:").identities(&here())),
        ["p:ann []", "p:bob []"]
    );
}

#[test]
fn impersonation() {
    let list = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for (held, wanted, allowed) in [
        (&["a"][..], &["b"][..], true),
        (&["a"], &["system:masters"], false),
        (&["a"], &["system:kcp:admin"], false),
        (&["system:kcp:admin"], &["system:kcp:admin"], true),
        (&["system:masters"], &["system:kcp:admin", "system:masters"], true),
        (&["a"], &["system:authenticated"], false),
        (&["a"], &["b", "system:kcp:logical-cluster-admin"], false),
    ] {
        assert_eq!(
            may_impersonate(&list(held), &list(wanted)),
            allowed,
            "{held:?} → {wanted:?}"
        );
    }
    let confined = user("ann", &["system:authenticated"], json!({})).confined_to(&here());
    assert!(confined.is_in_scope(&here()));
    assert!(!confined.is_in_scope(&ClusterId::root()));
}

#[test]
fn users_of_a_workspaces_own_issuer() {
    let hacker = user(
        "mallory",
        &["system:masters", "system:kcp:admin", "dev"],
        json!({"authentication.kcp.io/scopes": [], "authorization.kcp.io/warrant": ["{}"], "mail": ["m@x"]}),
    );
    let seen = from_workspace_issuer(&hacker, &here()).unwrap();
    assert_eq!(seen.groups, ["dev", "system:authenticated"]);
    assert!(seen.is_in_scope(&here()) && !seen.is_in_scope(&ClusterId::root()));
    assert!(!seen.extra.contains_key("authorization.kcp.io/warrant"));
    assert_eq!(seen.extra["mail"], ["m@x"]);
    assert!(from_workspace_issuer(&user("system:admin", &[], json!({})), &here()).is_err());
}
