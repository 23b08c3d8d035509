//! A Secret found by each of the ways, on both sides.

use super::*;

fn with<T>(origin: Origin, then: impl FnOnce(&Pair<'_>) -> T) -> T {
    let remote = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"secretName": "creds", "users": [{"secret": "a"}, {"secret": "b"}]},
    });
    let local = json!({
        "metadata": {"name": "web-copy", "namespace": "ws-acme"},
        "spec": {"secretName": "creds-copy", "users": [{"secret": "a1"}, {"secret": "b1"}]},
        "status": {"one": "x"},
    });
    let (cluster, path) = (
        ClusterId::parse("c1").unwrap(),
        WorkspacePath::parse("root:acme").unwrap(),
    );
    then(&Pair {
        remote: &remote,
        local: &local,
        cluster: &cluster,
        path: &path,
        origin,
    })
}

fn named(pairs: &[(&str, &str)]) -> Result<Find, String> {
    Ok(Find::Named(
        pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect(),
    ))
}

#[test]
fn found() {
    use Origin::{Kcp, Service};
    for (origin, spec, expected) in [
        (
            Kcp,
            json!({"reference": {"path": "spec.secretName"}}),
            named(&[("creds", "creds-copy")]),
        ),
        (
            Service,
            json!({"reference": {"path": "spec.secretName"}}),
            named(&[("creds-copy", "creds")]),
        ),
        (
            Service,
            json!({"reference": {"path": "spec.users.#.secret"}}),
            named(&[("a1", "a"), ("b1", "b")]),
        ),
        (
            Kcp,
            json!({"reference": {"path": "metadata.name", "regex": {"pattern": "^(.*)$", "replacement": "$1-conf"}}}),
            named(&[("web-conf", "web-copy-conf")]),
        ),
        // Not there yet.
        (Kcp, json!({"reference": {"path": "status.secret"}}), named(&[])),
        (
            Service,
            json!({"reference": {"path": "status.one"}}),
            Err(
                "cannot sync related resources: found 1 names on the origin, but 0 on the destination side"
                    .to_owned(),
            ),
        ),
        (
            Service,
            json!({"template": {"template": "{{ .Object.metadata.name }}-{{ .Side }}"}}),
            named(&[("web-copy-service", "web-kcp")]),
        ),
        (
            Kcp,
            json!({"selector": {"matchLabels": {"app": "{{ .RemoteObject.metadata.name }}"}, "rewrite": {}}}),
            Ok(Find::Selected(json!({"matchLabels": {"app": "web"}}))),
        ),
        (
            Kcp,
            json!({}),
            Err("set one of reference, selector and template".to_owned()),
        ),
    ] {
        assert_eq!(with(origin, |pair| pair.find(&spec)), expected, "{spec}");
    }
}

#[test]
fn rewriting() {
    for (rewrite, expected) in [
        (
            json!({"regex": {"pattern": "^inner-", "replacement": "outer-"}}),
            Ok("outer-x"),
        ),
        (json!({"regex": {"replacement": "fixed"}}), Ok("fixed")),
        (
            json!({"template": {"template": "{{ .Value }}-{{ .RelatedObject.metadata.namespace }}-{{ .ClusterName }}"}}),
            Ok("inner-x-n-c1"),
        ),
        (json!({}), Err("invalid rewrite: set regex or template")),
    ] {
        let related = json!({"metadata": {"namespace": "n"}});
        let selector = json!({"rewrite": rewrite});
        let made = with(Origin::Service, |pair| {
            pair.rewritten(&selector, "inner-x", Some(&related))
        });
        assert_eq!(
            made,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{rewrite}"
        );
    }
}
