//! What covers what, and what a refused grant says.

use serde_json::json;

use super::{EscalationError, compact_rules, covers};
use crate::{Kind, Policy, PolicyRule, RoleRef, UserInfo};

/// `verbs groups resources [names]`, or `verbs /path,...`; lists are comma-separated, `-` is the core group.
fn rule(text: &str) -> PolicyRule {
    let list = |word: &str| {
        word.split(',')
            .map(|item| if item == "-" { "" } else { item }.to_owned())
            .collect()
    };
    let words: Vec<&str> = text.split(' ').collect();
    let mut rule = PolicyRule {
        verbs: list(words[0]),
        ..PolicyRule::default()
    };
    if words.len() == 2 {
        rule.non_resource_urls = list(words[1]);
        return rule;
    }
    rule.api_groups = list(words[1]);
    rule.resources = list(words[2]);
    if let Some(names) = words.get(3) {
        rule.resource_names = list(names);
    }
    rule
}

fn check(owner: &[&str], servant: &[&str], want: &[&str]) {
    let owner: Vec<_> = owner.iter().map(|text| rule(text)).collect();
    let servant: Vec<_> = servant.iter().map(|text| rule(text)).collect();
    let want: Vec<_> = want.iter().map(|text| rule(text)).collect();
    assert_eq!(covers(&owner, &servant), want, "{owner:?} covers {servant:?}");
}

#[test]
fn several_rules_together_cover_one() {
    check(&["get g r", "list g r"], &["get,list g r"], &[]);
    check(
        &["get g r", "list h r"],
        &["get,list g,h r"],
        &["list g r", "get h r"],
    );
    check(&["* * *"], &["get,list g,h r,s/t x"], &[]);
    check(&[], &["get g r"], &["get g r"]);
    check(&["get g r"], &[], &[]);
}

#[test]
fn stars_are_covered_only_by_stars() {
    check(&["get,list g r"], &["* g r"], &["* g r"]);
    check(&["* g r"], &["* * r"], &["* * r"]);
    check(&["* * r"], &["* * *"], &["* * *"]);
    check(&["* * *"], &["* * *", "* *"], &["* *"]);
}

#[test]
fn names_narrow_what_is_held() {
    check(&["get g r a"], &["get g r"], &["get g r"]);
    check(&["get g r"], &["get g r a"], &[]);
    check(&["get g r a,b"], &["get g r b,c"], &["get g r c"]);
}

#[test]
fn subresources_are_covered_by_their_star() {
    check(&["get g */scale"], &["get g r/scale,r"], &["get g r"]);
    check(&["get g r"], &["get g r/scale"], &["get g r/scale"]);
    check(&["get g r/scale"], &["get g */scale"], &["get g */scale"]);
}

#[test]
fn paths_are_covered_by_prefixes() {
    check(&["get /a/*"], &["get /a/b,/a/*,/a/b/*,/a"], &["get /a"]);
    check(&["get *"], &["get /a/*,*"], &[]);
    check(&["get /a/b"], &["get,put /a/b"], &["put /a/b"]);
    // A rule on everything in the API says nothing about paths.
    check(&["* * *"], &["get /a"], &["get /a"]);
}

#[test]
fn huge_products_end_quickly_and_are_not_covered() {
    let many = (0..100_000)
        .map(|n| format!("r{n}"))
        .collect::<Vec<_>>()
        .join(",");
    let product = format!("{many} {many} {many}");
    let started = std::time::Instant::now();
    assert_eq!(
        covers(&[rule("get g r")], &[rule(&product)]),
        vec![rule(&product)]
    );
    assert_eq!(covers(&[rule("* * *")], &[rule(&product)]), vec![]);
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn missing_permissions_are_joined_by_verb() {
    let split: Vec<_> = [
        "get g r",
        "list g r",
        "get g r a",
        "list g r a",
        "get /p",
        "list /p",
        "get,list g,h r",
    ]
    .map(rule)
    .to_vec();
    let want: Vec<_> = [
        "get,list g r",
        "get,list g r a",
        "get /p",
        "list /p",
        "get,list g,h r",
    ]
    .map(rule)
    .to_vec();
    assert_eq!(compact_rules(&split), want);
}

fn policy() -> Policy {
    let mut policy = Policy::new();
    let role = |rules: &[PolicyRule]| json!({"rules": rules});
    policy.upsert(Kind::ClusterRole, "", "held", &role(&[rule("get,list - pods")]));
    policy.upsert(
        Kind::ClusterRole,
        "",
        "more",
        &role(&[rule("get,list,delete - pods"), rule("get /metrics")]),
    );
    policy.upsert(
        Kind::ClusterRole,
        "",
        "escalator",
        &role(&[rule("escalate rbac.authorization.k8s.io clusterroles ok")]),
    );
    policy.upsert(
        Kind::ClusterRole,
        "",
        "binder",
        &role(&[rule("bind rbac.authorization.k8s.io clusterroles more")]),
    );
    for (name, user) in [("held", "ann"), ("escalator", "eve"), ("binder", "bob")] {
        let object = json!({
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user}],
        });
        policy.upsert(Kind::ClusterRoleBinding, "", name, &object);
    }
    policy
}

fn reference(name: &str) -> RoleRef {
    RoleRef {
        api_group: crate::RBAC_GROUP.into(),
        kind: "ClusterRole".into(),
        name: name.into(),
    }
}

#[test]
fn a_binding_needs_the_rules_or_the_verb() {
    let policy = policy();
    let ann = UserInfo::new("ann", ["dev"]);
    assert_eq!(policy.may_bind(&ann, &reference("held"), ""), Ok(()));
    let Err(EscalationError::NotHeld(message)) = policy.may_bind(&ann, &reference("more"), "ns") else {
        panic!("ann does not hold the role");
    };
    let want = "user \"ann\" (groups=[\"dev\"]) is attempting to grant RBAC permissions not currently held:\n\
                {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}\n\
                {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}";
    assert_eq!(message, want);
    assert_eq!(
        policy.may_bind(&UserInfo::new("bob", [""; 0]), &reference("more"), "ns"),
        Ok(())
    );
    assert!(
        policy
            .may_bind(&UserInfo::new("bob", [""; 0]), &reference("held"), "ns")
            .is_err()
    );
    assert_eq!(
        policy.may_bind(&UserInfo::new("root", ["system:masters"]), &reference("gone"), ""),
        Ok(())
    );
    let gone = policy.may_bind(&ann, &reference("gone"), "").unwrap_err();
    assert_eq!(
        gone.to_string(),
        r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#
    );
}

#[test]
fn a_role_needs_the_rules_or_the_verb() {
    let policy = policy();
    let write = |user: &UserInfo, name: &str, text: &str, aggregates: bool| {
        policy.may_write_role(user, Kind::ClusterRole, "", name, &[rule(text)], aggregates)
    };
    let ann = UserInfo::new("ann", ["dev"]);
    assert_eq!(write(&ann, "mine", "get - pods", false), Ok(()));
    assert!(matches!(
        write(&ann, "mine", "get - secrets", false),
        Err(EscalationError::NotHeld(_))
    ));
    assert_eq!(
        write(&ann, "mine", "get - pods", true),
        Err(EscalationError::AggregationRule)
    );
    let eve = UserInfo::new("eve", [""; 0]);
    assert_eq!(write(&eve, "ok", "* * *", true), Ok(()));
    assert!(write(&eve, "other", "* * *", false).is_err());
    assert_eq!(
        write(&UserInfo::new("root", ["system:masters"]), "any", "* * *", true),
        Ok(())
    );
}
