//! What objects use, and what quotas find when they count.

use serde_json::{Value, json};

use super::{NOW, pod, quota};
use crate::recount::Recount;
use crate::{Evaluator, Quota};

fn used(group: &str, resource: &str, object: &Value) -> Value {
    Evaluator::of(group, resource)
        .unwrap()
        .usage(object, NOW)
        .to_value()
}

#[test]
fn pods() {
    let both = json!({"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}});
    let everything = json!({
        "count/pods": "1", "pods": "1", "cpu": "100m", "requests.cpu": "100m", "limits.cpu": "1",
        "memory": "1Gi", "requests.memory": "1Gi", "limits.memory": "2Gi",
    });
    let alone = json!({"count/pods": "1"});
    let plain = json!({"count/pods": "1", "pods": "1"});
    let with = |mut pod: Value, path: &str, value: Value| {
        let (parent, field) = path.rsplit_once('/').unwrap();
        let parent = if parent.is_empty() {
            &mut pod
        } else {
            pod.pointer_mut(parent).unwrap()
        };
        parent[field] = value;
        pod
    };
    let container = |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
    let sidecar = |name: &str, cpu: &str| {
        let mut container = container(name, cpu);
        container["restartPolicy"] = "Always".into();
        container
    };
    let spec = |init: Value, main: Value| json!({"spec": {"initContainers": init, "containers": main}});
    let cpu = |amount: &str| json!({"count/pods": "1", "pods": "1", "cpu": amount, "requests.cpu": amount});
    let leaving = |at: &str, grace: i64| {
        let metadata = json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": grace});
        with(pod(json!({})), "/metadata", metadata)
    };
    let resized = |condition: Value| {
        json!({
            "spec": {"containers": [container("c", "3")]},
            "status": {
                "conditions": [condition],
                "containerStatuses": [{
                    "name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"},
                }],
            },
        })
    };
    for (case, object, want) in [
        ("says nothing", pod(json!({})), plain.clone()),
        ("says everything", pod(both.clone()), everything.clone()),
        (
            "has failed",
            with(pod(both.clone()), "/status", json!({"phase": "Failed"})),
            alone.clone(),
        ),
        (
            "has succeeded",
            with(pod(both.clone()), "/status", json!({"phase": "Succeeded"})),
            alone.clone(),
        ),
        (
            "runs",
            with(pod(both), "/status", json!({"phase": "Running"})),
            everything,
        ),
        (
            "is being deleted",
            leaving("2026-01-01T00:00:00Z", 30),
            plain.clone(),
        ),
        (
            "should have gone by now",
            leaving("2025-12-31T23:59:29Z", 30),
            alone,
        ),
        ("may still be going", leaving("2025-12-31T23:59:30Z", 30), plain),
        (
            "ephemeral storage, huge pages and extended resources",
            pod(json!({
                "requests": {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
                "limits": {"ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
            })),
            json!({
                "count/pods": "1", "pods": "1", "ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi",
                "limits.ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
                "requests.example.com/gpu": "2",
            }),
        ),
        (
            "containers add up",
            spec(json!([]), json!([container("a", "1"), container("b", "500m")])),
            cpu("1500m"),
        ),
        (
            "a large init container counts",
            spec(json!([container("i", "4")]), json!([container("a", "1")])),
            cpu("4"),
        ),
        (
            "a small one does not",
            spec(json!([container("i", "1")]), json!([container("a", "2")])),
            cpu("2"),
        ),
        (
            "init containers run one after the other",
            spec(
                json!([container("i", "2"), container("j", "3")]),
                json!([container("a", "1")]),
            ),
            cpu("3"),
        ),
        (
            "sidecars stay",
            spec(
                json!([sidecar("s", "1"), container("i", "3")]),
                json!([container("a", "2")]),
            ),
            cpu("4"),
        ),
        (
            "the pod's own figure counts",
            with(
                spec(json!([]), json!([container("a", "1")])),
                "/spec/resources",
                json!({"requests": {"cpu": "5"}}),
            ),
            cpu("5"),
        ),
        (
            "overhead comes on top",
            with(
                spec(json!([]), json!([container("a", "1")])),
                "/spec/overhead",
                json!({"cpu": "250m"}),
            ),
            cpu("1250m"),
        ),
        ("a wish to grow counts", resized(json!({})), cpu("3")),
        (
            "but not if it cannot be met",
            resized(json!({"type": "PodResizePending", "reason": "Infeasible"})),
            cpu("2"),
        ),
    ] {
        assert_eq!(used("", "pods", &object), sorted(&want), "{case}");
    }
}

/// In the order in which amounts are written.
fn sorted(value: &Value) -> Value {
    let mut entries: Vec<_> = value.as_object().unwrap().clone().into_iter().collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(entries.into_iter().collect())
}

#[test]
fn services() {
    let service = |spec: Value| json!({"spec": spec});
    let two = json!([{"port": 80}, {"port": 443, "nodePort": 30_000}]);
    for (case, spec, ports, balancers) in [
        ("plain", json!({"type": "ClusterIP", "ports": two}), "0", "0"),
        (
            "by node port",
            json!({"type": "NodePort", "ports": two}),
            "2",
            "0",
        ),
        (
            "by load balancer",
            json!({"type": "LoadBalancer", "ports": two}),
            "2",
            "1",
        ),
        (
            "without ports of its own",
            json!({"type": "LoadBalancer", "ports": two, "allocateLoadBalancerNodePorts": false}),
            "1",
            "1",
        ),
        ("by name", json!({"type": "ExternalName"}), "0", "0"),
    ] {
        let want = json!({
            "count/services": "1", "services": "1", "services.loadbalancers": balancers, "services.nodeports": ports,
        });
        assert_eq!(used("", "services", &service(spec)), want, "{case}");
    }
}

#[test]
fn claims() {
    let claim = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let asks = |storage: &str| json!({"resources": {"requests": {"storage": storage}}});
    let of_gold = json!({"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}});
    for (case, object, want) in [
        (
            "storage",
            claim(asks("1Gi"), json!({})),
            json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "1Gi"}),
        ),
        (
            "bytes are whole",
            claim(asks("1500m"), json!({})),
            json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2"}),
        ),
        (
            "what was given counts if it is more",
            claim(asks("1Gi"), json!({"allocatedResources": {"storage": "2Gi"}})),
            json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2Gi"}),
        ),
        (
            "by class",
            claim(of_gold, json!({})),
            json!({
                "count/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "persistentvolumeclaims": "1", "requests.storage": "1Gi",
            }),
        ),
    ] {
        assert_eq!(used("", "persistentvolumeclaims", &object), want, "{case}");
    }
}

#[test]
fn devices() {
    let claim = |requests: Value| json!({"spec": {"devices": {"requests": requests}}});
    let exactly = |class: &str, count: i64| json!({"exactly": {"deviceClassName": class, "allocationMode": "ExactCount", "count": count}});
    let all = json!({"exactly": {"deviceClassName": "nic", "allocationMode": "All"}});
    let either = json!({"firstAvailable": [
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 4},
        {"deviceClassName": "nic", "allocationMode": "ExactCount", "count": 2},
    ]});
    let want = |gpu: Option<&str>, nic: Option<&str>| {
        let mut want = json!({"count/resourceclaims.resource.k8s.io": "1"});
        for (class, number) in [("gpu", gpu), ("nic", nic)] {
            if let Some(number) = number {
                want[format!("{class}.deviceclass.resource.k8s.io/devices")] = number.into();
            }
        }
        want
    };
    for (case, requests, want) in [
        ("none", json!([]), want(None, None)),
        (
            "of one class",
            json!([exactly("gpu", 2), exactly("gpu", 1)]),
            want(Some("3"), None),
        ),
        ("as many as there are", json!([all]), want(None, Some("32"))),
        (
            "the worst of the alternatives",
            json!([either]),
            want(Some("4"), Some("2")),
        ),
    ] {
        assert_eq!(
            used("resource.k8s.io", "resourceclaims", &claim(requests)),
            want,
            "{case}"
        );
    }
}

#[test]
fn who_measures_what() {
    for (group, resource, name, want) in [
        ("", "pods", "pods", true),
        ("", "pods", "count/pods", true),
        ("", "pods", "limits.memory", true),
        ("", "pods", "limits.ephemeral-storage", true),
        ("", "pods", "requests.hugepages-1Gi", true),
        ("", "pods", "hugepages-1Gi", true),
        ("", "pods", "requests.example.com/gpu", true),
        ("", "pods", "example.com/gpu", false),
        ("", "pods", "requests.storage", false),
        ("", "pods", "services", false),
        ("", "services", "services.nodeports", true),
        ("", "services", "count/services", true),
        ("", "persistentvolumeclaims", "requests.storage", true),
        (
            "",
            "persistentvolumeclaims",
            "gold.storageclass.storage.k8s.io/requests.storage",
            true,
        ),
        (
            "",
            "persistentvolumeclaims",
            "gold.storageclass.storage.k8s.io/pods",
            false,
        ),
        ("", "secrets", "secrets", true),
        ("", "secrets", "count/secrets", true),
        ("", "serviceaccounts", "serviceaccounts", false),
        ("", "serviceaccounts", "count/serviceaccounts", true),
        ("apps", "deployments", "count/deployments.apps", true),
        ("apps", "deployments", "count/deployments", false),
        ("example.com", "widgets", "count/widgets.example.com", true),
        ("example.com", "secrets", "secrets", false),
    ] {
        let evaluator = Evaluator::of(group, resource).unwrap();
        assert_eq!(evaluator.measures(name), want, "{resource}.{group} {name}");
    }
    for (group, resource) in [("", "events"), ("events.k8s.io", "events"), ("", "bindings")] {
        assert_eq!(Evaluator::of(group, resource), None, "{resource}.{group}");
    }
}

#[test]
fn a_count_replaces_what_was_counted_and_keeps_what_was_not() {
    let mut object = quota(
        json!({"pods": "9", "requests.cpu": "9", "secrets": "9", "count/widgets.e.x": "9"}),
        json!({"pods": "7", "count/widgets.e.x": "3", "services": "1"}),
    );
    let quota = Quota::from_object(&object);
    let mut recount = Recount::new(&quota);
    let pods = Recount::needs(&quota, "", "pods").unwrap();
    recount.looked_at(&pods);
    recount.add(&pods, &pod(json!({"requests": {"cpu": "500m"}})), NOW);
    recount.add(&pods, &pod(json!({"requests": {"cpu": "600m"}})), NOW);
    let secrets = Recount::needs(&quota, "", "secrets").unwrap();
    recount.looked_at(&secrets);
    recount.add_number(&secrets, 4);
    assert_eq!(Recount::needs(&quota, "", "services"), None);
    let want = json!({"count/widgets.e.x": "3", "pods": "2", "requests.cpu": "1100m", "secrets": "4"});
    assert_eq!(recount.used().to_value(), want);

    object["spec"]["scopes"] = json!(["BestEffort"]);
    let quota = Quota::from_object(&object);
    let mut recount = Recount::new(&quota);
    recount.looked_at(&pods);
    recount.add(&pods, &pod(json!({"requests": {"cpu": "500m"}})), NOW);
    recount.add(&pods, &pod(json!({})), NOW);
    recount.looked_at(&secrets);
    recount.add_number(&secrets, 4);
    let want = json!({"count/widgets.e.x": "3", "pods": "1", "requests.cpu": "0", "secrets": "0"});
    assert_eq!(
        recount.used().to_value(),
        want,
        "only pods can be in a scope, and only one is"
    );
}
