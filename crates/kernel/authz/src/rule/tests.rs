//! Which requests a rule allows, after the cases of upstream's authorizer tests.

use serde_json::json;

use super::PolicyRule;
use crate::attributes::{Attributes, ResourceAttributes, UserInfo};

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], urls: &[&str]) -> PolicyRule {
    let own = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
    PolicyRule {
        verbs: own(verbs),
        api_groups: own(groups),
        resources: own(resources),
        non_resource_urls: own(urls),
        ..PolicyRule::default()
    }
}

/// Asks for `verb group resource[/subresource] [name]`, or for `verb /path`.
fn check(rule: &PolicyRule, request: &str, want: bool) {
    let words: Vec<&str> = request.split(' ').collect();
    let user = UserInfo::default();
    let attributes = if words[1].starts_with('/') {
        Attributes {
            user: &user,
            verb: words[0],
            resource: None,
            path: words[1],
        }
    } else {
        let (resource, subresource) = words[2].split_once('/').unwrap_or((words[2], ""));
        let name = words.get(3).copied().unwrap_or_default();
        let target = ResourceAttributes {
            group: words[1],
            resource,
            subresource,
            name,
            ..Default::default()
        };
        Attributes {
            user: &user,
            verb: words[0],
            resource: Some(target),
            path: "",
        }
    };
    assert_eq!(
        rule.allows(&attributes),
        want,
        "{request} by {}",
        rule.compact_string()
    );
}

#[test]
fn each_dimension_matches_exactly_or_by_star() {
    for (star, rule) in [
        (0, rule(&["*"], &["g1"], &["r1"], &[])),
        (1, rule(&["v1"], &["*"], &["r1"], &[])),
        (2, rule(&["v1"], &["g1"], &["*"], &[])),
    ] {
        for verb in ["v1", "v2"] {
            for group in ["g1", "g2"] {
                for resource in ["r1", "r2"] {
                    let want = (star == 0 || verb == "v1")
                        && (star == 1 || group == "g1")
                        && (star == 2 || resource == "r1");
                    check(&rule, &format!("{verb} {group} {resource}"), want);
                }
            }
        }
    }
    let product = rule(&["v1", "v2"], &["g1", "g2"], &["r1", "r2"], &[]);
    check(&product, "v2 g1 r2", true);
    check(&product, "v1 g2 r1", true);
    check(&product, "v3 g2 r1", false);
}

#[test]
fn subresources_need_their_own_mention() {
    let pods = rule(&["*"], &["*"], &["pods"], &[]);
    check(&pods, "get g pods", true);
    check(&pods, "get g pods/status", false);
    let parts = rule(&["*"], &["*"], &["pods/status", "*/scale"], &[]);
    for (request, want) in [
        ("get g pods/status", true),
        ("get g pods/scale", true),
        ("get g anything/scale", true),
        ("get g pods", false),
        ("get g services/status", false),
        ("get g pods/xscale", false),
    ] {
        check(&parts, request, want);
    }
    check(&rule(&["*"], &["*"], &["*"], &[]), "get g pods/status", true);
}

#[test]
fn names_limit_a_rule_to_objects() {
    let mut named = rule(&["get", "list"], &["g"], &["r"], &[]);
    named.resource_names = vec!["a".into(), "b".into()];
    check(&named, "get g r a", true);
    check(&named, "get g r c", false);
    check(&named, "list g r", false);
}

#[test]
fn paths_match_exactly_or_below_a_star() {
    for (urls, path, want) in [
        (&["*"][..], "/foo/bar", true),
        (&["/foo/*"], "/foo", false),
        (&["/foo/*"], "/foo/bar/one", true),
        (&["/foo/*"], "/notfoo/bar", false),
        (&["/foo", "/foo/bar/one"], "/foo", true),
        (&["/foo", "/foo/bar/one"], "/foo/bar", false),
        (&["/foo*"], "/foobar", true),
    ] {
        check(&rule(&["v1"], &[], &[], urls), &format!("v1 {path}"), want);
        check(&rule(&["v2"], &[], &[], urls), &format!("v1 {path}"), false);
    }
    check(&rule(&["*"], &["*"], &["*"], &[]), "get /metrics", false);
    check(&rule(&["*"], &[], &[], &["*"]), "get g pods", false);
}

#[test]
fn a_misshapen_rule_grants_nothing() {
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": "a"},
        {"verbs": ["get"], "apiGroups": null, "resources": ["pods"]},
        "get",
    ]);
    let read = PolicyRule::list_from(Some(&rules));
    assert_eq!(read, vec![rule(&["get"], &[], &["pods"], &[])]);
    assert_eq!(PolicyRule::list_from(Some(&json!(null))), vec![]);
}
