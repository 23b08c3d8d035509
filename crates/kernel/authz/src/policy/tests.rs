//! Decisions over whole policies: scopes, subjects, reasons, updates, and their speed.

use serde_json::{Value, json};

use super::{EffectiveRules, Policy};
use crate::{Attributes, Kind, ResourceAttributes, UserInfo};

fn role(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"rules": [{"verbs": verbs, "apiGroups": [""], "resources": resources}]})
}

fn binding(role: &str, subjects: &[&str]) -> Value {
    let (kind, name) = role.split_once(':').unwrap();
    let subjects: Vec<Value> = subjects
        .iter()
        .map(|subject| {
            let (kind, name) = subject.split_once(':').unwrap();
            match name.split_once('/') {
                Some((namespace, name)) if kind == "ServiceAccount" => {
                    json!({"kind": kind, "name": name, "namespace": namespace})
                }
                _ => json!({"kind": kind, "name": name}),
            }
        })
        .collect();
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}, "subjects": subjects})
}

/// A policy with a role of each scope and bindings of each kind.
fn sample() -> Policy {
    let mut policy = Policy::new();
    policy.upsert(
        Kind::ClusterRole,
        "",
        "reader",
        &role(&["get", "list"], &["pods"]),
    );
    policy.upsert(Kind::Role, "ns1", "writer", &role(&["create"], &["pods"]));
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "all-read",
        &binding("ClusterRole:reader", &["Group:readers"]),
    );
    let subjects = [
        "User:nobody",
        "User:ann",
        "ServiceAccount:bot",
        "ServiceAccount:other/bot",
    ];
    policy.upsert(
        Kind::RoleBinding,
        "ns1",
        "write",
        &binding("Role:writer", &subjects),
    );
    policy.upsert(
        Kind::RoleBinding,
        "ns1",
        "read",
        &binding("ClusterRole:reader", &["User:ann"]),
    );
    policy
}

fn ask(policy: &Policy, user: &UserInfo, verb: &str, namespace: &str) -> crate::Decision {
    let target = ResourceAttributes {
        version: "v1",
        resource: "pods",
        namespace,
        ..Default::default()
    };
    policy.authorize(&Attributes {
        user,
        verb,
        resource: Some(target),
        path: "",
    })
}

fn check(policy: &Policy, user: &str, groups: &[&str], request: (&str, &str), want: Option<&str>) {
    let user = UserInfo::new(user, groups.iter().copied());
    let decision = ask(policy, &user, request.0, request.1);
    let reason = decision.is_allowed().then(|| decision.reason());
    assert_eq!(
        reason, want,
        "{} asks to {} in {:?}",
        user.name, request.0, request.1
    );
}

#[test]
fn grants_apply_in_their_scope_and_name_their_source() {
    let policy = sample();
    let by_group =
        r#"RBAC: allowed by ClusterRoleBinding "all-read" of ClusterRole "reader" to Group "readers""#;
    check(&policy, "joe", &["x", "readers"], ("get", ""), Some(by_group));
    check(&policy, "joe", &["x", "readers"], ("get", "ns2"), Some(by_group));
    check(&policy, "joe", &["x", "readers"], ("create", "ns1"), None);
    let in_ns = r#"RBAC: allowed by RoleBinding "read/ns1" of ClusterRole "reader" to User "ann""#;
    check(&policy, "ann", &[], ("list", "ns1"), Some(in_ns));
    check(&policy, "ann", &[], ("list", "ns2"), None);
    check(&policy, "ann", &[], ("list", ""), None);
    let write = r#"RBAC: allowed by RoleBinding "write/ns1" of Role "writer" to User "ann""#;
    check(&policy, "ann", &[], ("create", "ns1"), Some(write));
    check(&policy, "*", &["*"], ("create", "ns1"), None);
}

#[test]
fn service_accounts_default_to_the_bindings_namespace() {
    let policy = sample();
    let own = r#"RBAC: allowed by RoleBinding "write/ns1" of Role "writer" to ServiceAccount "bot/ns1""#;
    let foreign =
        r#"RBAC: allowed by RoleBinding "write/ns1" of Role "writer" to ServiceAccount "bot/other""#;
    check(
        &policy,
        "system:serviceaccount:ns1:bot",
        &[],
        ("create", "ns1"),
        Some(own),
    );
    check(
        &policy,
        "system:serviceaccount:other:bot",
        &[],
        ("create", "ns1"),
        Some(foreign),
    );
    check(
        &policy,
        "system:serviceaccount:ns2:bot",
        &[],
        ("create", "ns1"),
        None,
    );
    let mut policy = policy;
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "b",
        &binding("ClusterRole:reader", &["ServiceAccount:bot"]),
    );
    check(&policy, "system:serviceaccount::bot", &[], ("get", ""), None);
}

#[test]
fn the_first_matching_subject_is_named() {
    let mut policy = sample();
    let subjects = ["Group:readers", "User:ann"];
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "all-read",
        &binding("ClusterRole:reader", &subjects),
    );
    let want = r#"RBAC: allowed by ClusterRoleBinding "all-read" of ClusterRole "reader" to Group "readers""#;
    check(&policy, "ann", &["readers"], ("get", ""), Some(want));
}

#[test]
fn the_privileged_group_may_do_everything() {
    let user = UserInfo::new("root", ["system:masters"]);
    let decision = ask(&Policy::new(), &user, "delete", "ns1");
    assert!(
        decision.is_allowed() && decision.reason().contains("system:masters"),
        "{decision:?}"
    );
    let mut policy = Policy::new();
    for item in crate::bootstrap::objects() {
        policy.upsert(item.kind, item.namespace, item.name, &item.object);
    }
    let want = r#"RBAC: allowed by ClusterRoleBinding "cluster-admin" of ClusterRole "cluster-admin" to Group "system:masters""#;
    assert_eq!(ask(&policy, &user, "delete", "ns1").reason(), want);
}

#[test]
fn missing_roles_are_reported_with_the_refusal() {
    let mut policy = sample();
    let dangling = binding("ClusterRole:gone", &["User:joe"]);
    policy.upsert(Kind::ClusterRoleBinding, "", "a", &dangling);
    policy.upsert(Kind::RoleBinding, "ns1", "a", &dangling);
    let joe = UserInfo::new("joe", [""; 0]);
    let want = r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(ask(&policy, &joe, "get", "ns1").reason(), want);
    policy.upsert(
        Kind::RoleBinding,
        "ns1",
        "b",
        &binding("Role:lost", &["User:joe"]),
    );
    let want = r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "lost" not found]"#;
    assert_eq!(ask(&policy, &joe, "get", "ns1").reason(), want);
    assert_eq!(
        ask(&policy, &UserInfo::new("jim", [""; 0]), "get", "ns1").reason(),
        ""
    );
}

#[test]
fn updates_and_removals_take_effect() {
    let mut policy = sample();
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "all-read",
        &binding("ClusterRole:reader", &["User:joe"]),
    );
    check(&policy, "x", &["readers"], ("get", ""), None);
    assert!(ask(&policy, &UserInfo::new("joe", [""; 0]), "get", "").is_allowed());
    policy.upsert(Kind::ClusterRole, "", "reader", &role(&["watch"], &["pods"]));
    check(&policy, "joe", &[], ("get", ""), None);
    policy.remove(Kind::ClusterRoleBinding, "", "all-read");
    check(&policy, "joe", &[], ("watch", ""), None);
    policy.remove(Kind::RoleBinding, "ns1", "write");
    policy.remove(Kind::RoleBinding, "ns1", "read");
    policy.remove(Kind::Role, "ns1", "writer");
    policy.remove(Kind::ClusterRole, "", "reader");
    assert!(policy.is_empty() && policy.namespaced.is_none() && policy.cluster_roles.is_empty());
    // A binding that becomes unreadable must not go on granting what it did.
    let mut policy = sample();
    policy.upsert(Kind::ClusterRoleBinding, "", "all-read", &json!({"subjects": []}));
    check(&policy, "x", &["readers"], ("get", ""), None);
}

#[test]
fn a_rules_review_lists_what_holds_in_the_namespace() {
    let mut policy = sample();
    let paths = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]});
    policy.upsert(Kind::ClusterRole, "", "paths", &paths);
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "paths",
        &binding("ClusterRole:paths", &["Group:readers"]),
    );
    let ann = UserInfo::new("ann", ["readers"]);
    let EffectiveRules {
        resource_rules,
        non_resource_rules,
        incomplete,
        evaluation_error,
    } = policy.rules_for(&ann, "ns1");
    let verbs: Vec<String> = resource_rules.iter().map(|rule| rule.verbs.join(",")).collect();
    assert_eq!(verbs, ["get,list", "get,list", "create"]);
    assert_eq!(
        serde_json::to_value(&non_resource_rules).unwrap(),
        json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}])
    );
    assert_eq!((incomplete, evaluation_error), (false, None));
    assert_eq!(policy.rules_for(&ann, "").resource_rules.len(), 1);
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "z",
        &binding("ClusterRole:gone", &["User:ann"]),
    );
    let error = policy.rules_for(&ann, "ns1").evaluation_error;
    assert_eq!(
        error.as_deref(),
        Some(r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#)
    );
}

/// The index must make a decision's cost independent of how many bindings others have.
#[test]
fn decisions_do_not_slow_down_with_other_peoples_bindings() {
    let mut policy = sample();
    for item in crate::bootstrap::objects() {
        policy.upsert(item.kind, item.namespace, item.name, &item.object);
    }
    for n in 0..5_000 {
        let subject = format!("User:user-{n}");
        policy.upsert(
            Kind::ClusterRoleBinding,
            "",
            &format!("b-{n}"),
            &binding("ClusterRole:reader", &[&subject]),
        );
        policy.upsert(
            Kind::RoleBinding,
            "ns1",
            &format!("b-{n}"),
            &binding("Role:writer", &[&subject]),
        );
    }
    let user = UserInfo::new("user-77", ["system:authenticated"]);
    let rounds = 10_000;
    let started = std::time::Instant::now();
    for _ in 0..rounds {
        assert!(ask(&policy, &user, "create", "ns1").is_allowed());
        assert!(!ask(&policy, &user, "delete", "ns1").is_allowed());
    }
    let per_decision = started.elapsed() / (2 * rounds);
    println!("{per_decision:?} a decision");
    // Some microseconds even without optimisation; a scan of the bindings takes a hundred times as long.
    assert!(
        per_decision < std::time::Duration::from_micros(100),
        "{per_decision:?}"
    );
}

#[test]
fn a_workspace_inherits_roles_and_bindings_without_having_them() {
    let mut policy = Policy::inheriting(std::sync::Arc::new(sample()));
    assert!(policy.is_empty());
    let ann = UserInfo::new("ann", Vec::<String>::new());
    let reader = UserInfo::new("rea", ["readers"]);
    let may = |policy: &Policy, user: &UserInfo, verb: &str, resource: &str| {
        let attributes = Attributes {
            user,
            verb,
            path: "",
            resource: Some(ResourceAttributes {
                version: "v1",
                resource,
                namespace: "ns1",
                ..ResourceAttributes::default()
            }),
        };
        policy.authorize(&attributes).is_allowed()
    };
    assert!(
        may(&policy, &reader, "get", "pods"),
        "an inherited cluster-wide binding"
    );
    assert!(
        may(&policy, &ann, "create", "pods"),
        "an inherited binding of a namespace"
    );
    policy.upsert(
        Kind::ClusterRoleBinding,
        "",
        "mine",
        &binding("ClusterRole:reader", &["User:ann"]),
    );
    assert!(
        may(&policy, &ann, "list", "pods"),
        "an own binding to an inherited role"
    );
    policy.upsert(
        Kind::ClusterRole,
        "",
        "reader",
        &role(&["get", "list", "delete"], &["pods", "secrets"]),
    );
    assert!(
        may(&policy, &ann, "delete", "secrets"),
        "an own role comes first for own bindings"
    );
    assert!(
        !may(&policy, &reader, "delete", "secrets"),
        "and means nothing to inherited ones"
    );
}

#[test]
fn many_bindings_are_judged_like_few() {
    let (few, mut many) = (sample(), sample());
    for number in 0..30 {
        let name = format!("more-{number}");
        let theirs = binding("ClusterRole:reader", &[&format!("User:other-{number}")]);
        many.upsert(Kind::ClusterRoleBinding, "", &name, &theirs);
        many.upsert(Kind::RoleBinding, "ns1", &name, &theirs);
    }
    for round in 0..2 {
        for (user, groups) in [
            ("ann", vec![]),
            ("bob", vec!["readers"]),
            ("nobody", vec!["readers", "others"]),
            ("system:serviceaccount:ns1:bot", vec![]),
            ("system:serviceaccount:other:bot", vec!["readers"]),
            ("system:serviceaccount:third:bot", vec![]),
        ] {
            let user = UserInfo::new(user, groups);
            for (verb, namespace) in [("get", ""), ("get", "ns1"), ("create", "ns1"), ("create", "ns2")] {
                let asked = Attributes {
                    user: &user,
                    verb,
                    path: "",
                    resource: Some(ResourceAttributes {
                        version: "v1",
                        resource: "pods",
                        namespace,
                        ..ResourceAttributes::default()
                    }),
                };
                let (a, b) = (few.authorize(&asked), many.authorize(&asked));
                assert_eq!(
                    (a.is_allowed(), a.reason()),
                    (b.is_allowed(), b.reason()),
                    "{} {verb} {namespace:?} {round}",
                    user.name
                );
                assert_eq!(few.rules_for(&user, namespace), many.rules_for(&user, namespace));
            }
        }
        for number in 0..30 {
            let name = format!("more-{number}");
            many.remove(Kind::ClusterRoleBinding, "", &name);
            many.remove(Kind::RoleBinding, "ns1", &name);
        }
    }
}
