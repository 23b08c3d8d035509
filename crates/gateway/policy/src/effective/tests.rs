//! Merging by upstream's rules (Kuadrant's RFC 0009), and what becomes of each policy.

mod auth;

use fairway_gateway_routes::table::ListenerKey;
use serde_json::{Value, json};

use super::*;
use crate::object::Kind;

fn path(listener: &str, route: &str, rule: usize, section: Option<&str>) -> RuleKey {
    RuleKey {
        listener: ListenerKey {
            workspace: "root".into(),
            namespace: "infra".into(),
            gateway: "gw".into(),
            listener: listener.into(),
        },
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: route.into(),
        rule,
        section: section.map(str::to_owned),
    }
}

fn topology() -> Topology {
    let name = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    Topology {
        gateways: [(name("infra", "gw"), ["web".to_owned(), "api".to_owned()].into())].into(),
        routes: [
            (name("team", "shop"), ["get".to_owned()].into()),
            (name("team", "lonely"), BTreeSet::new()),
        ]
        .into(),
        paths: vec![path("web", "shop", 0, Some("get")), path("web", "shop", 1, None)],
    }
}

/// A RateLimitPolicy: name, when it was made, target, how its limits are written, and its limits with their sizes.
fn policy(name: &str, day: u8, target: &str, how: &str, limits: &[(&str, u64)]) -> Policy {
    let (kind, target, section) = match target.split('/').collect::<Vec<_>>()[..] {
        ["gw"] => ("Gateway", "gw", None),
        ["gw", section] => ("Gateway", "gw", Some(section)),
        [route] => ("HTTPRoute", route, None),
        [route, section] => ("HTTPRoute", route, Some(section)),
        _ => unreachable!(),
    };
    let namespace = if kind == "Gateway" { "infra" } else { "team" };
    let limits: Value = limits
        .iter()
        .map(|(name, limit)| {
            (
                (*name).to_owned(),
                json!({"rates": [{"limit": limit, "window": "1s"}]}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut spec = match how.split_once(' ') {
        Some((part, strategy)) => json!({part: {"strategy": strategy, "limits": limits}}),
        None => json!({"limits": limits}),
    };
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": target});
    if let Some(section) = section {
        spec["targetRef"]["sectionName"] = json!(section);
    }
    let object = json!({
        "metadata": {"name": name, "namespace": namespace, "generation": 1,
                     "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": spec});
    Policy::read("root", Kind::RateLimitPolicy, &object)
}

/// `limit=size@policy` of one rule, sorted.
fn shown(effective: Option<&Effective>) -> String {
    let Some(effective) = effective else {
        return "-".to_owned();
    };
    let rules = effective
        .rules
        .iter()
        .map(|(name, rule)| format!("{name}={}@{}", rule.spec["rates"][0]["limit"], rule.source.name));
    rules.collect::<Vec<_>>().join(" ")
}

#[test]
fn policies_are_merged_from_the_most_specific_up() {
    let bare = "bare";
    let cases: &[(&str, Vec<Policy>, &str, &str)] = &[
        ("nothing", vec![], "-", "-"),
        (
            "a Gateway's policy reaches every rule below it",
            vec![policy("g", 1, "gw", bare, &[("a", 1)])],
            "a=1@g",
            "a=1@g",
        ),
        (
            "defaults give way as a whole",
            vec![
                policy("g", 1, "gw", "defaults atomic", &[("a", 1), ("b", 1)]),
                policy("r", 2, "shop", bare, &[("a", 2)]),
            ],
            "a=2@r",
            "a=2@r",
        ),
        (
            "merged defaults fill what is not named below",
            vec![
                policy("g", 1, "gw", "defaults merge", &[("a", 1), ("b", 1)]),
                policy("r", 2, "shop", bare, &[("a", 2)]),
            ],
            "a=2@r b=1@g",
            "a=2@r b=1@g",
        ),
        (
            "overrides leave nothing below",
            vec![
                policy("g", 1, "gw", "overrides atomic", &[("a", 1)]),
                policy("r", 2, "shop", bare, &[("a", 2), ("b", 2)]),
            ],
            "a=1@g",
            "a=1@g",
        ),
        (
            "merged overrides keep what they do not name",
            vec![
                policy("g", 1, "gw", "overrides merge", &[("a", 1)]),
                policy("r", 2, "shop", bare, &[("a", 2), ("b", 2)]),
            ],
            "a=1@g b=2@r",
            "a=1@g b=2@r",
        ),
        (
            "a rule is more specific than its route",
            vec![
                policy("r", 1, "shop", bare, &[("a", 1)]),
                policy("s", 2, "shop/get", bare, &[("b", 2)]),
            ],
            "b=2@s",
            "a=1@r",
        ),
        (
            "a rule without a name is called by its place",
            vec![policy("s", 2, "shop/rule-2", bare, &[("b", 2)])],
            "-",
            "b=2@s",
        ),
        (
            "a listener is between its Gateway and routes",
            vec![
                policy("g", 1, "gw", "overrides merge", &[("a", 1)]),
                policy("l", 2, "gw/web", "overrides merge", &[("a", 2), ("b", 2)]),
                policy("r", 3, "shop", bare, &[("b", 3), ("c", 3)]),
            ],
            "a=1@g b=2@l c=3@r",
            "a=1@g b=2@l c=3@r",
        ),
        (
            "another listener's policy does not count",
            vec![policy("l", 1, "gw/api", bare, &[("a", 1)])],
            "-",
            "-",
        ),
        (
            "overrides of a route against merged defaults of its Gateway",
            vec![
                policy("g", 1, "gw", "defaults merge", &[("a", 1), ("b", 1)]),
                policy("r", 2, "shop", "overrides atomic", &[("a", 2)]),
                policy("s", 3, "shop/get", bare, &[("c", 3)]),
            ],
            "a=2@r b=1@g",
            "a=2@r b=1@g",
        ),
        (
            "four levels of merged defaults",
            vec![
                policy(
                    "g",
                    1,
                    "gw",
                    "defaults merge",
                    &[("a", 1), ("b", 1), ("c", 1), ("d", 1)],
                ),
                policy(
                    "l",
                    1,
                    "gw/web",
                    "defaults merge",
                    &[("b", 2), ("c", 2), ("d", 2)],
                ),
                policy("r", 1, "shop", "defaults merge", &[("c", 3), ("d", 3)]),
                policy("s", 1, "shop/get", "defaults merge", &[("d", 4)]),
            ],
            "a=1@g b=2@l c=3@r d=4@s",
            "a=1@g b=2@l c=3@r d=3@r",
        ),
        (
            "of two on one target that give way, the newer counts",
            vec![
                policy("new", 2, "shop", bare, &[("a", 2)]),
                policy("old", 1, "shop", bare, &[("a", 1), ("b", 1)]),
            ],
            "a=2@new",
            "a=2@new",
        ),
        (
            "of two on one target that override, the older counts",
            vec![
                policy("new", 2, "shop", "overrides atomic", &[("a", 2)]),
                policy("old", 1, "shop", "overrides atomic", &[("a", 1)]),
            ],
            "a=1@old",
            "a=1@old",
        ),
        (
            "of the same age the name decides",
            vec![
                policy("y", 1, "shop", bare, &[("a", 2)]),
                policy("x", 1, "shop", bare, &[("a", 1)]),
            ],
            "a=2@y",
            "a=2@y",
        ),
        (
            "two on one rule that merge: both limits (upstream's guide)",
            vec![
                policy("alice", 2, "shop/get", "defaults merge", &[("alice", 5)]),
                policy("bob", 1, "shop/get", "defaults merge", &[("bob", 2)]),
            ],
            "alice=5@alice bob=2@bob",
            "-",
        ),
    ];
    for (why, policies, first, second) in cases {
        let topology = topology();
        let decided = decide(policies, &topology);
        let found = topology
            .paths
            .iter()
            .map(|path| shown(decided.effective.get(path)));
        assert_eq!(found.collect::<Vec<_>>(), [*first, *second], "{why}");
    }
}

#[test]
fn policies_are_told_how_they_fare() {
    let policies = [
        policy("over", 1, "gw", "overrides merge", &[("a", 1)]),
        policy("beaten", 2, "shop", "bare", &[("a", 2)]),
        policy("partly", 3, "shop/get", "bare", &[("a", 3), ("b", 3)]),
        policy("lost", 4, "nowhere", "bare", &[("a", 4)]),
        policy("unnamed", 4, "shop/post", "bare", &[("a", 4)]),
        policy("idle", 4, "lonely", "bare", &[("a", 4)]),
    ];
    let decided = decide(&policies, &topology());
    let standing = |name: &str| {
        let found = decided.standing.iter().find(|(key, _)| key.name == name);
        match found.unwrap().1 {
            Standing::Refused(Refusal::TargetNotFound { name }) => format!("no {name}"),
            Standing::Refused(other) => format!("{other:?}"),
            Standing::Attached {
                affects,
                overridden_by,
            } => {
                let by: Vec<&str> = overridden_by.iter().map(|key| key.name.as_str()).collect();
                format!("{} {}", affects.len(), by.join(","))
            }
        }
    };
    for (name, expected) in [
        ("over", "2 "),
        ("beaten", "0 over"),
        ("partly", "1 over"),
        ("lost", "no nowhere"),
        ("unnamed", "no shop"),
        ("idle", "0 "),
    ] {
        assert_eq!(standing(name), expected, "{name}");
    }
}

#[test]
fn what_is_not_understood_does_not_vanish() {
    let mut both = policy("both", 1, "shop", "bare", &[("a", 1)]);
    both = Policy::read(
        "root",
        Kind::RateLimitPolicy,
        &json!({"metadata": {"name": "both", "namespace": "team"}, "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": both.target.name},
            "defaults": {}, "overrides": {}}}),
    );
    let decided = decide(&[both.clone()], &topology());
    assert_eq!(decided.effective.len(), 2);
    assert!(
        decided
            .effective
            .values()
            .all(|effective| effective.broken.len() == 1)
    );
    assert!(matches!(
        decided.standing[&both.key],
        Standing::Refused(Refusal::Invalid { .. })
    ));
    let mut gone = both;
    gone.deleting = true;
    assert!(decide(&[gone], &topology()).effective.is_empty());
    let mut elsewhere = policy("r", 1, "shop", "bare", &[("a", 1)]);
    elsewhere.key.workspace = "other".to_owned();
    assert!(
        decide(&[elsewhere], &topology()).effective.is_empty(),
        "another workspace's"
    );
    let unmerged = Policy::read(
        "root",
        Kind::RateLimitPolicy,
        &json!({"spec": {"defaults": {"strategy": "some", "limits": {}}}}),
    );
    assert!(unmerged.invalid.is_some());
}
