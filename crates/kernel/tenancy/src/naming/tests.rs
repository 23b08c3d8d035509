//! Names of copies, and whose a namespace is.

use super::*;

fn cluster() -> ClusterId {
    ClusterId::parse("1084s8ceexsehjm2").unwrap()
}

fn with<T>(path: &str, object: &Value, then: impl FnOnce(&Original<'_>) -> T) -> T {
    let (cluster, path) = (cluster(), WorkspacePath::parse(path).unwrap());
    then(&Original {
        cluster: &cluster,
        path: &path,
        object,
    })
}

fn naming(namespace: &str, name: &str) -> Naming {
    Naming {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn names() {
    let vm = json!({"metadata": {"name": "web", "namespace": "default"}});
    let cluster_scoped = json!({"metadata": {"name": "web"}});
    let sha1_of_default = "7505d64a54e061b7acd5";
    for (path, object, pattern, expected) in [
        (
            "root:org-acme:frontend",
            &vm,
            naming("", ""),
            ("1084s8ceexsehjm2", "2747cabbb481a433679f-6a31816d04deed5f5bcd"),
        ),
        (
            "root:org-acme:frontend",
            &vm,
            naming(PROJECT_NAMESPACE, "{{ .Object.metadata.name }}"),
            ("ws-org-acme-frontend-default", "web"),
        ),
        (
            "root:org-acme:backend",
            &cluster_scoped,
            naming(PROJECT_NAMESPACE, "{{ .Object.metadata.name }}"),
            ("ws-org-acme-backend-cluster", "web"),
        ),
        (
            "root:a",
            &vm,
            naming("$remoteClusterName", "$remoteNamespaceHash-$remoteName"),
            ("1084s8ceexsehjm2", &format!("{sha1_of_default}-web")),
        ),
    ] {
        let (namespace, name) = with(path, object, |it| it.copy_name(&pattern)).unwrap();
        assert_eq!((namespace.as_str(), name.as_str()), expected, "{pattern:?}");
    }
    assert_eq!(
        with("root:a", &vm, |it| it.copy_name(&naming("{{ .Nope }}", ""))),
        Err("invalid namespace naming: a field that the template uses is not set".to_owned())
    );
}

#[test]
fn long_names_stay_different() {
    let object =
        |last: char| json!({"metadata": {"name": "x", "namespace": format!("{}{last}", "n".repeat(62))}});
    let path = format!("root:{}:{}", "o".repeat(63), "p".repeat(63));
    let pattern = naming(PROJECT_NAMESPACE, "");
    let first = with(&path, &object('a'), |it| it.copy_name(&pattern)).unwrap().0;
    let second = with(&path, &object('b'), |it| it.copy_name(&pattern)).unwrap().0;
    assert_eq!((first.len(), second.len()), (63, 63));
    assert_ne!(first, second);
    assert!(first.starts_with("ws-ooo"));
}

#[test]
fn there_and_back() {
    let vm = json!({"metadata": {"name": "web", "namespace": "default"}});
    let copy = with(
        "root:a",
        &vm,
        |it| json!({"metadata": {"labels": it.labels(), "annotations": it.annotations(true)}}),
    );
    assert_eq!(
        copy["metadata"]["labels"][NAME_HASH_LABEL]
            .as_str()
            .unwrap()
            .len(),
        40
    );
    assert_eq!(copy["metadata"]["annotations"][PATH_ANNOTATION], "root:a");
    assert_eq!(
        original_of(&copy),
        Some((cluster(), "default".to_owned(), "web".to_owned()))
    );
    assert_eq!(original_of(&json!({"metadata": {"name": "not ours"}})), None);
    let node = json!({"metadata": {"name": "n"}});
    let (labels, annotations) = with("root:a", &node, |it| (it.labels(), it.annotations(false)));
    assert!(!labels.contains_key(NAMESPACE_HASH_LABEL));
    assert_eq!(annotations.len(), 1);
}

#[test]
fn namespaces_are_not_shared() {
    let of = |cluster: &str| json!({"metadata": {"labels": {CLUSTER_LABEL: cluster}}});
    let name = "ws-a-b-c-default";
    assert_eq!(tenure(name, None, &cluster()), Tenure::Free);
    assert_eq!(
        tenure(name, Some(&of(cluster().as_str())), &cluster()),
        Tenure::Own
    );
    // `a-b` with `c`, and `a` with `b-c`, make the same name; so may somebody who was there before.
    for existing in [of("another"), json!({"metadata": {"name": name}})] {
        let Tenure::Taken { instead } = tenure(name, Some(&existing), &cluster()) else {
            panic!("{existing}")
        };
        assert!(
            instead.starts_with("ws-a-b-c-default-") && instead.len() <= 63,
            "{instead}"
        );
        let other = ClusterId::parse("other").unwrap();
        assert_ne!(tenure(name, Some(&existing), &other), Tenure::Taken { instead });
    }
    let long = "n".repeat(63);
    let Tenure::Taken { instead } = tenure(&long, Some(&of("another")), &cluster()) else {
        panic!()
    };
    assert_eq!(instead.len(), 63);
}

#[test]
fn what_is_no_name_is_refused() {
    for (field, pattern) in [
        ("kube-system/../x", naming("{{ .Object.spec.ns }}", "")),
        ("a/b?c", naming("", "{{ .Object.spec.ns }}")),
        ("UPPER", naming("{{ .Object.spec.ns }}", "")),
    ] {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"ns": field}});
        let made = with("root:a", &object, |it| it.copy_name(&pattern));
        assert!(made.is_err(), "{made:?}");
    }
    assert!(naming("shared", "").has_fixed_namespace());
    assert!(!naming("", "").has_fixed_namespace() && !naming("x-$remoteName", "").has_fixed_namespace());
}
