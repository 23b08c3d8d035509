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

#[test]
fn namespaces_of_the_service_cluster_are_not_the_consumers_choice() {
    let cluster = ClusterId::parse("c1").unwrap();
    let of =
        |cluster: &str| json!({"metadata": {"labels": {"syncagent.kcp.io/remote-object-cluster": cluster}}});
    let (own, anothers, plain) = (of("c1"), of("c2"), json!({"metadata": {}}));
    for (namespace, existing, fixed, expected) in [
        ("primary", Some(&plain), false, true),
        ("own", Some(&own), false, true),
        ("anothers", Some(&anothers), false, false),
        ("kube-system", Some(&plain), false, false),
        ("absent", None, false, false),
        ("kube-system", Some(&plain), true, true),
        ("a/b", Some(&own), true, false),
    ] {
        let allowed = may_use(namespace, existing, "primary", fixed, &cluster);
        assert_eq!(allowed.is_ok(), expected, "{namespace}: {allowed:?}");
    }
    for (spec, expected) in [
        (json!({"template": {"template": "shared"}}), true),
        (json!({"template": {"template": "{{ .Object.spec.ns }}"}}), false),
        (
            json!({"reference": {"path": "metadata.name", "regex": {"replacement": "shared"}}}),
            true,
        ),
        (json!({"reference": {"path": "spec.ns"}}), false),
        (
            json!({"selector": {"matchLabels": {}, "rewrite": {"regex": {"replacement": "x"}}}}),
            false,
        ),
    ] {
        assert_eq!(is_fixed_namespace(&spec), expected, "{spec}");
    }
}

#[test]
fn copies_are_told_from_what_others_have_made() {
    let cluster = ClusterId::parse("c1").unwrap();
    let kind = crate::published::Served {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
        has_status: false,
    };
    let secret = json!({"metadata": {"name": "s", "namespace": "default", "uid": "u1"}, "type": "Opaque", "data": {"k": "dg=="}});
    let mutator = crate::mutation::Mutator::default();
    for origin in [Origin::Kcp, Origin::Service] {
        let relation = Relation {
            cluster: &cluster,
            publication: "machines",
            identifier: "creds",
            origin,
            agent: "agent",
        };
        let sync = |existing: Option<&Value>| {
            let place = ("there", "copy");
            relation
                .sync(&secret, &mutator, &kind, place, existing, "m")
                .unwrap()
        };
        let Sync::Apply(mut copy) = sync(None) else {
            panic!()
        };
        assert_eq!(copy["data"], secret["data"]);
        assert_eq!(copy["metadata"]["name"], "copy");
        assert_eq!(copy["metadata"].get("labels").is_some(), origin == Origin::Kcp);
        let stranger = json!({"metadata": {"name": "copy", "uid": "u2"}});
        assert_eq!(sync(Some(&stranger)), Sync::Taken);
        copy["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Apply"}]);
        copy["metadata"]["uid"] = json!("u3");
        let Sync::Apply(again) = sync(Some(&copy)) else {
            panic!()
        };
        assert_eq!(again["metadata"]["uid"], "u3");
        // The copy of another object, even by the same relation, is not this one's.
        let other = json!({"metadata": {"name": "t", "namespace": "default"}});
        assert_eq!(relation.owns(&other, &copy, "m"), origin == Origin::Service);
        assert!(relation.mark().values().all(|it| it.len() <= 63));
    }
    assert!(is_credential(
        &json!({"type": "kubernetes.io/service-account-token"})
    ));
    assert!(!is_credential(&secret));
}
