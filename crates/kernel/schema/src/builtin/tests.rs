//! The table, the shapes and the kinds, against what upstream is known to say.

use super::table::{Body, Table};
use super::*;
use crate::shape::{Atom, ListRelationship, Scalar};

fn field(type_name: &str, field: &str) -> &'static Atom {
    let id = shape(type_name).unwrap_or_else(|| panic!("no type {type_name}"));
    let map = shapes().get(id).map.as_ref().unwrap();
    let id = map
        .field(field)
        .unwrap_or_else(|| panic!("no field {type_name}.{field}"))
        .shape;
    shapes().get(id)
}

fn relationship(type_name: &str, name: &str) -> String {
    match &field(type_name, name).list.as_ref().unwrap().relationship {
        ListRelationship::Atomic => "atomic".to_owned(),
        ListRelationship::Set => "set".to_owned(),
        ListRelationship::Map(keys) => format!("map {}", keys.join(",")),
    }
}

#[test]
fn table_survives_a_round_trip() {
    let table = Table::parse(FACTS).unwrap();
    let body: String = FACTS
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(table.render(), body);
}

#[test]
fn table_is_sorted_and_complete() {
    let table = facts();
    assert!(table.types.is_sorted_by_key(|t| t.name));
    for row in &table.types {
        if let Body::Struct(fields) = &row.body {
            assert!(fields.is_sorted_by_key(|f| f.name), "{}", row.name);
        }
    }
    // Counts of Kubernetes 1.36.3; they change with the version only.
    assert_eq!((table.types.len(), groups().len(), kinds().len()), (578, 21, 68));
    let served: usize = table
        .groups
        .iter()
        .flat_map(|g| &g.versions)
        .map(|v| v.resources.len())
        .sum();
    assert_eq!(kinds().len(), served, "every resource has a type");
}

#[test]
fn broken_tables_are_refused_with_the_line() {
    for (text, line) in [
        (" field string", 1),
        ("type a.b.C\n field", 2),
        ("type a.b.C = nothing", 1),
        ("type a.b.C\n field string map", 2),
        ("type a.b.C\n field string ={", 2),
        ("version v1", 1),
        ("group a\nversion v1\nresource pods pod", 3),
        ("nonsense", 1),
    ] {
        let error = Table::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line} ")), "{text:?}: {error}");
    }
}

#[test]
fn lists_relate_as_upstream_says() {
    for (type_name, name, expected) in [
        ("io.k8s.api.core.v1.PodSpec", "containers", "map name"),
        ("io.k8s.api.core.v1.PodSpec", "tolerations", "atomic"),
        (
            "io.k8s.api.core.v1.PodSpec",
            "topologySpreadConstraints",
            "map topologyKey,whenUnsatisfiable",
        ),
        (
            "io.k8s.api.core.v1.Container",
            "ports",
            "map containerPort,protocol",
        ),
        ("io.k8s.api.core.v1.Container", "command", "atomic"),
        ("io.k8s.api.core.v1.ServiceSpec", "ports", "map port,protocol"),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "finalizers",
            "set",
        ),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "ownerReferences",
            "map uid",
        ),
        ("io.k8s.api.core.v1.ServiceAccount", "secrets", "map name"),
        ("io.k8s.api.rbac.v1.Role", "rules", "atomic"),
        (
            "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
            "webhooks",
            "map name",
        ),
    ] {
        assert_eq!(relationship(type_name, name), expected, "{type_name}.{name}");
    }
}

#[test]
fn strategic_merge_has_keys_of_its_own() {
    let ports = field("io.k8s.api.core.v1.ServiceSpec", "ports")
        .list
        .as_ref()
        .unwrap();
    assert!(ports.patch.merge);
    assert_eq!(ports.patch.merge_key.as_deref(), Some("port"));
    let strategy = shape("io.k8s.api.apps.v1.DeploymentSpec").unwrap();
    let strategy = shapes()
        .get(strategy)
        .map
        .as_ref()
        .unwrap()
        .field("strategy")
        .unwrap();
    assert!(strategy.patch.retain_keys && !strategy.patch.merge);
    let volumes = field("io.k8s.api.core.v1.PodSpec", "volumes")
        .list
        .as_ref()
        .unwrap();
    assert!(volumes.patch.retain_keys && volumes.patch.merge);
}

#[test]
fn maps_are_atomic_where_upstream_says() {
    let atomic = |type_name, name| field(type_name, name).map.as_ref().unwrap().atomic;
    assert!(atomic("io.k8s.api.core.v1.ServiceSpec", "selector"));
    assert!(atomic("io.k8s.api.core.v1.PodSpec", "nodeSelector"));
    assert!(
        atomic("io.k8s.api.apps.v1.DeploymentSpec", "selector"),
        "LabelSelector is atomic as a type"
    );
    assert!(!atomic("io.k8s.api.core.v1.ConfigMap", "data"));
    assert!(!atomic(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "labels"
    ));
}

#[test]
fn scalars_are_as_wide_as_upstream_has_them() {
    assert_eq!(
        field("io.k8s.api.apps.v1.DeploymentSpec", "replicas").scalar,
        Some(Scalar::Numeric)
    );
    assert_eq!(
        field("io.k8s.api.core.v1.ServicePort", "targetPort").scalar,
        Some(Scalar::Untyped)
    );
    let raw = field("io.k8s.api.apps.v1.ControllerRevision", "data");
    assert!(raw.scalar.is_some() && raw.list.is_some() && raw.map.as_ref().unwrap().atomic);
    let protocol = shape("io.k8s.api.core.v1.ServicePort").unwrap();
    let protocol = shapes()
        .get(protocol)
        .map
        .as_ref()
        .unwrap()
        .field("protocol")
        .unwrap();
    assert_eq!(
        protocol.default,
        Some("TCP".into()),
        "a key of a list map needs its default"
    );
}

#[test]
fn kinds_are_found_by_either_name() {
    let deployment = resource("apps", "v1", "deployments").unwrap();
    assert_eq!(deployment.kind, "Deployment");
    assert_eq!(deployment.list_kind, Some("DeploymentList"));
    assert_eq!(deployment.short_names, ["deploy"]);
    assert_eq!(deployment.categories, ["all"]);
    assert_eq!(deployment.api_version(), "apps/v1");
    assert!(deployment.namespaced && deployment.storage_version && deployment.has_verb("watch"));
    assert_eq!(deployment.type_name, "io.k8s.api.apps.v1.Deployment");
    let scale = deployment.subresource("scale").unwrap();
    assert_eq!(
        (scale.group, scale.version, scale.kind),
        ("autoscaling", "v1", "Scale")
    );
    assert_eq!(scale.shape, shape("io.k8s.api.autoscaling.v1.Scale"));

    let pod = kind("", "v1", "Pod").unwrap();
    assert_eq!((pod.resource, pod.api_version().as_str()), ("pods", "v1"));
    assert!(
        pod.subresource("exec").unwrap().shape.is_none(),
        "its options are query parameters"
    );
    assert!(resource("apps", "v1", "deployment").is_none());
    assert!(resource("apps", "v2", "deployments").is_none());
    assert!(
        kind("authentication.k8s.io", "v1", "TokenReview")
            .unwrap()
            .list_kind
            .is_none()
    );
}

#[test]
fn one_version_of_each_kind_is_stored() {
    let stored = |group, version, name| resource(group, version, name).unwrap().storage_version;
    assert!(stored("autoscaling", "v2", "horizontalpodautoscalers"));
    assert!(!stored("autoscaling", "v1", "horizontalpodautoscalers"));
    assert!(stored("", "v1", "events"));
    assert!(!stored("events.k8s.io", "v1", "events"));
    assert!(
        !stored("authorization.k8s.io", "v1", "subjectaccessreviews"),
        "reviews are not stored"
    );
}

#[test]
fn groups_come_in_order_of_priority() {
    let names: Vec<_> = groups().iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names[..4],
        ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]
    );
    let autoscaling = groups().iter().find(|(name, _)| *name == "autoscaling").unwrap();
    assert_eq!(autoscaling.1, ["v2", "v1"], "the preferred version is the first");
}

#[test]
fn empty_objects_look_as_go_writes_them() {
    let mut seen = 0;
    for line in include_str!("../../testdata/zero-objects.tsv").lines() {
        let words: Vec<&str> = line.splitn(4, '\t').collect();
        let info = kind(words[0], words[1], words[2]).unwrap_or_else(|| panic!("no kind {line}"));
        let mut object = serde_json::json!({});
        encode(info, &mut object);
        assert_eq!(
            object,
            serde_json::from_str::<serde_json::Value>(words[3]).unwrap(),
            "{}",
            words[2]
        );
        seen += 1;
    }
    assert_eq!(seen, kinds().len());
}

/// Prints what the facts cost: `cargo test --release -p fairway-kernel-schema -- --ignored --nocapture costs`.
#[test]
#[ignore = "a measurement, not a test"]
fn costs() {
    use std::time::Instant;
    // Resident memory in KB, of which the second field of statm counts pages of 4 KB.
    let resident = || -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
    };
    let (before, start) = (resident(), Instant::now());
    let atoms = shapes().len();
    let loaded = start.elapsed();
    let count = kinds().len();
    println!(
        "{atoms} shapes in {loaded:?}, {count} kinds in {:?}, {} KB",
        start.elapsed() - loaded,
        resident() - before
    );

    let start = Instant::now();
    let mut bytes = 0;
    for (group, versions) in groups() {
        for version in versions {
            bytes += crate::openapi::v3_document(group, version).unwrap().len();
        }
    }
    println!(
        "all OpenAPI documents: {} KB in {:?}, {} KB resident after",
        bytes / 1024,
        start.elapsed(),
        resident() - before
    );

    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "a", "tier": "b"}},
        "spec": {"containers": [{
            "name": "c", "image": "i", "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "value": "b"}, {"name": "C", "value": "d"}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        }]},
    });
    let info = kind("", "v1", "Pod").unwrap();
    let rounds: u32 = 20_000;
    let mut copies = vec![pod; rounds as usize];
    let start = Instant::now();
    copies
        .iter_mut()
        .for_each(|p| assert!(check(info, p, UnknownFields::Report).errors.is_empty()));
    let checked = start.elapsed();
    copies.iter_mut().for_each(|p| encode(info, p));
    println!(
        "a small pod: check {:?}, encode {:?}",
        checked / rounds,
        (start.elapsed() - checked) / rounds
    );
}
