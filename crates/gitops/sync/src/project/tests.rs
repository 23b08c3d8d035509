//! Sources, destinations and kinds, with denials.

use serde_json::{Value, json};

use super::*;

fn project(value: Value) -> ProjectSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn sources() {
    let cases = [
        (json!(["*"]), "https://example.com/a/b", true),
        (json!([]), "https://example.com/a/b", false),
        (
            json!(["https://example.com/A/b.git"]),
            "https://example.com/a/B",
            true,
        ),
        (json!(["https://example.com/*"]), "https://example.com/a/b", false),
        (json!(["https://example.com/**"]), "https://example.com/a/b", true),
        (
            json!(["https://example.com/*/*"]),
            "https://example.com/a/b",
            true,
        ),
        (
            json!(["*", "!https://example.com/bad/*"]),
            "https://example.com/bad/x",
            false,
        ),
        (
            json!(["*", "!https://example.com/bad/*"]),
            "https://example.com/good/x",
            true,
        ),
        (
            json!(["!https://example.com/bad/*"]),
            "https://example.com/good/x",
            true,
        ),
        (
            json!(["!*", "https://example.com/**"]),
            "https://example.com/a/b",
            false,
        ),
        (
            json!(["git@example.com:a/b.git"]),
            "ssh://git@example.com/a/b",
            true,
        ),
    ];
    for (repos, url, expected) in cases {
        assert_eq!(
            project(json!({"sourceRepos": repos})).permits_source(url),
            expected,
            "{repos} {url}"
        );
    }
}

#[test]
fn destinations() {
    let here = |namespace: &str| Destination {
        server: "https://one".to_owned(),
        name: "one".to_owned(),
        namespace: namespace.to_owned(),
    };
    let cases = [
        ("all", json!([{"server": "*", "namespace": "*"}]), "a", true),
        ("by name", json!([{"name": "one", "namespace": "a"}]), "a", true),
        (
            "another name",
            json!([{"name": "two", "namespace": "a"}]),
            "a",
            false,
        ),
        (
            "another namespace",
            json!([{"server": "https://one", "namespace": "a-*"}]),
            "b",
            false,
        ),
        (
            "a denied namespace",
            json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-*"}]),
            "kube-system",
            false,
        ),
        (
            "a namespace that is not denied",
            json!([{"server": "*", "namespace": "!kube-*"}]),
            "shop",
            true,
        ),
        (
            "a denied server",
            json!([{"server": "*", "namespace": "*"}, {"server": "!https://one", "namespace": "*"}]),
            "a",
            false,
        ),
        (
            "a denied name",
            json!([{"name": "!one", "namespace": "*"}, {"server": "*", "namespace": "*"}]),
            "a",
            false,
        ),
        (
            "a server denied elsewhere",
            json!([{"server": "!https://one", "namespace": "b"}, {"server": "*", "namespace": "a"}]),
            "a",
            true,
        ),
        ("nothing", json!([]), "a", false),
    ];
    for (reason, list, namespace, expected) in cases {
        let project = project(json!({"destinations": list}));
        assert_eq!(
            project.permits_destination(&here(namespace), &[]),
            expected,
            "{reason}"
        );
    }
    let own = project(
        json!({"destinations": [{"server": "*", "namespace": "*"}], "permitOnlyProjectScopedClusters": true}),
    );
    assert!(!own.permits_destination(&here("a"), &[]));
    assert!(own.permits_destination(&here("a"), &[here("")]));
}

#[test]
fn kinds() {
    let cases = [
        (
            "no lists, in a namespace",
            json!({}),
            ("apps", "Deployment", true),
            true,
        ),
        (
            "no lists, in the cluster",
            json!({}),
            ("", "Namespace", false),
            false,
        ),
        (
            "an empty list",
            json!({"namespaceResourceWhitelist": []}),
            ("apps", "Deployment", true),
            false,
        ),
        (
            "listed",
            json!({"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}),
            ("apps", "Deployment", true),
            true,
        ),
        (
            "denied",
            json!({"namespaceResourceBlacklist": [{"group": "", "kind": "ResourceQuota"}]}),
            ("", "ResourceQuota", true),
            false,
        ),
        (
            "allowed and denied",
            json!({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "clusterResourceBlacklist": [{"group": "", "kind": "Node"}]}),
            ("", "Node", false),
            false,
        ),
        (
            "in the cluster",
            json!({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}),
            ("a.io", "B", false),
            true,
        ),
        (
            "by name",
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "x*"}]}),
            ("", "Namespace", false),
            true,
        ),
        (
            "by another name",
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "y*"}]}),
            ("", "Namespace", false),
            false,
        ),
    ];
    for (reason, spec, (group, kind, namespaced), expected) in cases {
        assert_eq!(
            project(spec).permits_kind(group, kind, "xyz", namespaced),
            expected,
            "{reason}"
        );
    }
}

#[test]
fn refusals_say_why() {
    let spec = project(json!({"destinations": [{"server": "*", "namespace": "shop"}]}));
    let to = Destination {
        server: "https://one".to_owned(),
        ..Destination::default()
    };
    let refusal = |key: ResourceKey, namespaced| spec.refusal(&key, namespaced, &to, &[], "default");
    assert_eq!(
        refusal(ResourceKey::new("apps", "Deployment", "shop", "x"), true),
        None
    );
    assert_eq!(
        refusal(ResourceKey::new("apps", "Deployment", "bank", "x"), true).as_deref(),
        Some("namespace bank is not permitted in project 'default'")
    );
    assert_eq!(
        refusal(ResourceKey::new("", "Namespace", "", "x"), false).as_deref(),
        Some("resource core:Namespace is not permitted in project default")
    );
    let apps = project(json!({"sourceNamespaces": ["team-*", "/^prod-[0-9]+$/"]}));
    for (namespace, expected) in [
        ("team-a", true),
        ("prod-1", true),
        ("prod-x", false),
        ("other", false),
    ] {
        assert_eq!(apps.permits_application_in(namespace), expected, "{namespace}");
    }
}

#[test]
fn addresses_are_compared_as_argo_cd_compares_them() {
    for (url, expected) in [
        (" https://Example.com/A/b.git ", "https://example.com/a/b"),
        ("git@example.com:a/b.git", "git@example.com/a/b"),
        ("ssh://git@example.com/a/b", "git@example.com/a/b"),
        ("ssh://git@example.com:22/a", "git@example.com:22/a"),
        ("https://u:p@example.com/a", "https://u:p@example.com/a"),
        ("https://example.com/a/", "https://example.com/a/"),
        (
            "registry.example.com:5000/charts",
            "registry.example.com:5000/charts",
        ),
        ("oci://example.com/a", "oci://example.com/a"),
    ] {
        assert_eq!(normalize_url(url), expected, "{url}");
    }
    for (url, beginning, expected) in [
        ("https://h/a/b", "https://h/a", true),
        ("https://h/a/b", "https://h/", true),
        ("https://h/a", "https://h/a", true),
        ("https://h/ab", "https://h/a", false),
        ("https://h.evil.example/a", "https://h", false),
        ("https://h/a", "", false),
    ] {
        assert_eq!(is_below(url, beginning), expected, "{url} {beginning}");
    }
}
