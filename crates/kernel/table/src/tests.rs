//! Rows of built-in kinds, after the cases of upstream's printer tests.

mod pods;
mod upstream;

use serde_json::{Value, json};

use crate::{columns, row};

/// 2001-09-09T01:46:40Z.
const NOW: i64 = 1_000_000_000;
/// Five minutes before.
const CREATED: &str = "2001-09-09T01:41:40Z";

/// Checks an object's cells; the object is named `x` and five minutes old.
fn check(group: &str, resource: &str, mut object: Value, want: Value) {
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!(CREATED);
    let cells = row(group, resource, &object, NOW);
    assert_eq!(cells.len(), columns(group, "v1", resource).len(), "{resource}");
    assert_eq!(Value::Array(cells), want, "{resource} {object}");
}

/// A pod template with two containers.
fn template() -> Value {
    json!({"spec": {"containers": [{"name": "c1", "image": "i1"}, {"name": "c2", "image": "i2"}],
        "nodeSelector": {"b": "2", "a": "1"}}})
}

#[test]
fn workloads() {
    let spec = json!({"replicas": 5, "selector": {"matchLabels": {"foo": "bar"}}, "template": template()});
    let status = json!({"replicas": 4, "updatedReplicas": 2, "availableReplicas": 1, "readyReplicas": 3});
    let object = json!({"spec": spec, "status": status});
    check(
        "apps",
        "deployments",
        object.clone(),
        json!(["x", "3/5", 2, 1, "5m", "c1,c2", "i1,i2", "foo=bar"]),
    );
    check(
        "apps",
        "deployments",
        json!({}),
        json!(["x", "0/0", 0, 0, "5m", "", "", ""]),
    );
    check(
        "apps",
        "replicasets",
        object.clone(),
        json!(["x", 5, 4, 3, "5m", "c1,c2", "i1,i2", "foo=bar"]),
    );
    check(
        "apps",
        "replicasets",
        json!({}),
        json!(["x", 0, 0, 0, "5m", "", "", "<none>"]),
    );
    check(
        "apps",
        "statefulsets",
        object,
        json!(["x", "3/5", "5m", "c1,c2", "i1,i2"]),
    );
    check(
        "",
        "replicationcontrollers",
        json!({"spec": {"replicas": 5, "selector": {"b": "2", "a": "1"}, "template": template()}}),
        json!(["x", 5, 0, 0, "5m", "c1,c2", "i1,i2", "a=1,b=2"]),
    );
    let status = json!({"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
        "updatedNumberScheduled": 2, "numberAvailable": 1});
    check(
        "apps",
        "daemonsets",
        json!({"spec": {"template": template()}, "status": status}),
        json!(["x", 5, 4, 3, 2, 1, "a=1,b=2", "5m", "c1,c2", "i1,i2", "<none>"]),
    );
    let owner = |controller: bool| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1",
        "kind": "DaemonSet", "name": "foo", "controller": controller}]}, "revision": 7})
    };
    check(
        "apps",
        "controllerrevisions",
        owner(true),
        json!(["x", "daemonset.apps/foo", 7, "5m"]),
    );
    check(
        "apps",
        "controllerrevisions",
        owner(false),
        json!(["x", "<none>", 7, "5m"]),
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"minAvailable": 22}, "status": {"disruptionsAllowed": 5}}),
        json!(["x", "22", "N/A", 5, "5m"]),
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"maxUnavailable": "10%"}}),
        json!(["x", "N/A", "10%", 0, "5m"]),
    );
    let scale = json!({"spec": {"replicas": 2}, "status": {"replicas": 1}});
    check("autoscaling", "scale", scale, json!(["x", 2, 1, "5m"]));
}

#[test]
fn jobs() {
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    for (object, status) in [
        (condition("Complete"), "Complete"),
        (condition("Failed"), "Failed"),
        (condition("Suspended"), "Suspended"),
        (condition("FailureTarget"), "FailureTarget"),
        (condition("SuccessCriteriaMet"), "SuccessCriteriaMet"),
        (json!({"metadata": {"deletionTimestamp": CREATED}}), "Terminating"),
        (
            json!({"status": {"conditions": [{"type": "Complete", "status": "False"}]}}),
            "Running",
        ),
    ] {
        check(
            "batch",
            "jobs",
            object,
            json!(["x", status, "0/1", "", "5m", "", "", "<none>"]),
        );
    }
    for (spec, status, completions, duration) in [
        (json!({"completions": 2}), json!({"succeeded": 1}), "1/2", ""),
        (json!({"parallelism": 3}), json!({}), "0/1 of 3", ""),
        (
            json!({"parallelism": 1}),
            json!({"startTime": CREATED}),
            "0/1",
            "5m",
        ),
        (
            json!({}),
            json!({"startTime": "2001-09-09T01:00:00Z", "completionTime": "2001-09-09T01:20:00Z"}),
            "0/1",
            "20m",
        ),
    ] {
        let want = json!(["x", "Running", completions, duration, "5m", "", "", "<none>"]);
        check("batch", "jobs", json!({"spec": spec, "status": status}), want);
    }
    let job_template = json!({"spec": {"template": template(), "selector": {"matchLabels": {"a": "b"}}}});
    check(
        "batch",
        "cronjobs",
        json!({"spec": {"schedule": "0/5 * * * ?", "timeZone": "LOCAL", "suspend": false, "jobTemplate": job_template},
            "status": {"active": [{}], "lastScheduleTime": "2001-09-09T01:46:10Z"}}),
        json!([
            "x",
            "0/5 * * * ?",
            "LOCAL",
            "False",
            1,
            "30s",
            "5m",
            "c1,c2",
            "i1,i2",
            "a=b"
        ]),
    );
    let want = json!([
        "x", "@daily", "<none>", "<unset>", 0, "<none>", "5m", "", "", "<none>"
    ]);
    check("batch", "cronjobs", json!({"spec": {"schedule": "@daily"}}), want);
}

#[test]
fn autoscalers_show_two_metrics() {
    let metric = |kind: &str, field: &str, spec: Value| json!({"type": kind, field: spec});
    let average = json!({"name": "cpu", "target": {"averageValue": "100m"}});
    let value = json!({"target": {"value": "100m"}});
    let utilization = json!({"name": "cpu", "target": {"averageUtilization": 80}});
    for (spec, status, want) in [
        (
            metric("External", "external", average.clone()),
            json!({}),
            "<unknown>/100m (avg)",
        ),
        (
            metric("External", "external", average.clone()),
            json!({"external": {"current": {"averageValue": "50m"}}}),
            "50m/100m (avg)",
        ),
        (
            metric("Object", "object", value.clone()),
            json!({"object": {"current": {"value": "50m"}}}),
            "50m/100m",
        ),
        (metric("Object", "object", value), json!({}), "<unknown>/100m"),
        (
            metric("Pods", "pods", average.clone()),
            json!({"pods": {"current": {"averageValue": "50m"}}}),
            "50m/100m",
        ),
        (
            metric("Resource", "resource", average),
            json!({}),
            "cpu: <unknown>/100m",
        ),
        (
            metric("Resource", "resource", utilization.clone()),
            json!({"resource": {"current": {"averageUtilization": 50}}}),
            "cpu: 50%/80%",
        ),
        (
            metric("ContainerResource", "containerResource", utilization.clone()),
            json!({}),
            "cpu: <unknown>/80%",
        ),
        (
            metric("Resource", "resource", json!({"name": "cpu", "target": {}})),
            json!({}),
            "cpu: <unknown>/<auto>",
        ),
        (metric("Other", "other", json!({})), json!({}), "<unknown type>"),
    ] {
        let object = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2,
            "maxReplicas": 10, "metrics": [spec]}, "status": {"currentReplicas": 4, "currentMetrics": [status]}});
        let want = json!(["x", "Deployment/web", want, "2", 10, 4, "5m"]);
        check("autoscaling", "horizontalpodautoscalers", object, want);
    }
    let three = vec![metric("Resource", "resource", utilization); 3];
    let object = json!({"spec": {"scaleTargetRef": {"kind": "K", "name": "n"}, "metrics": three}});
    let cell = "cpu: <unknown>/80%, cpu: <unknown>/80% + 1 more...";
    check(
        "autoscaling",
        "horizontalpodautoscalers",
        object,
        json!(["x", "K/n", cell, "<unset>", 0, 0, "5m"]),
    );
    let first =
        json!({"spec": {"scaleTargetRef": {"kind": "K", "name": "n"}, "targetCPUUtilizationPercentage": 80}});
    let want = json!(["x", "K/n", "cpu: <unknown>/80%", "<unset>", 0, 0, "5m"]);
    check("autoscaling", "horizontalpodautoscalers", first, want);
}

#[test]
fn services() {
    let port = json!({"port": 2233, "protocol": "TCP"});
    let node_port = json!({"port": 8888, "nodePort": 9999, "protocol": "TCP"});
    let ingress =
        json!({"loadBalancer": {"ingress": [{"ip": "3.4.5.6"}, {"ip": "2.3.4.5"}, {"hostname": "lb.x"}]}});
    for (kind, spec, status, external, ports) in [
        (
            "ClusterIP",
            json!({"ports": [port]}),
            json!({}),
            "<none>",
            "2233/TCP",
        ),
        (
            "ClusterIP",
            json!({"externalIPs": ["1.1.1.1", "2.2.2.2"]}),
            json!({}),
            "1.1.1.1,2.2.2.2",
            "<none>",
        ),
        (
            "NodePort",
            json!({"ports": [node_port, port]}),
            json!({}),
            "<none>",
            "8888:9999/TCP,2233/TCP",
        ),
        ("LoadBalancer", json!({}), json!({}), "<pending>", "<none>"),
        (
            "LoadBalancer",
            json!({}),
            ingress.clone(),
            "2.3.4.5,3.4.5.6,lb.x",
            "<none>",
        ),
        (
            "LoadBalancer",
            json!({"externalIPs": ["9.9.9.9"]}),
            ingress,
            "2.3.4.5,3.4.5.6,lb.x,9.9.9.9",
            "<none>",
        ),
        (
            "ExternalName",
            json!({"externalName": "db.x"}),
            json!({}),
            "db.x",
            "<none>",
        ),
        ("", json!({}), json!({}), "<unknown>", "<none>"),
    ] {
        let mut object = json!({"spec": spec, "status": status});
        object["spec"]["type"] = json!(kind);
        object["spec"]["clusterIPs"] = json!(["10.9.8.7", "fd00::1"]);
        check(
            "",
            "services",
            object,
            json!(["x", kind, "10.9.8.7", external, ports, "5m", "<none>"]),
        );
    }
    let want = json!(["x", "ClusterIP", "<none>", "<none>", "<none>", "5m", "a=b"]);
    check(
        "",
        "services",
        json!({"spec": {"type": "ClusterIP", "selector": {"a": "b"}}}),
        want,
    );
}

#[test]
fn endpoints() {
    let addresses = json!([{"ip": "1.2.3.4"}, {"ip": "fd00::1"}]);
    let two_ports = json!([{"port": 80}, {"port": 443}]);
    for (subsets, want) in [
        (json!([]), "<none>"),
        (json!([{}]), ""),
        (json!([{"addresses": addresses}]), "1.2.3.4,fd00::1"),
        (
            json!([{"addresses": addresses, "ports": [{"port": 80}]}]),
            "1.2.3.4:80,[fd00::1]:80",
        ),
        (
            json!([{"addresses": addresses, "ports": two_ports}]),
            "1.2.3.4:80,[fd00::1]:80,1.2.3.4:443 + 1 more...",
        ),
    ] {
        check(
            "",
            "endpoints",
            json!({"subsets": subsets}),
            json!(["x", want, "5m"]),
        );
    }
    let slice = json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "web"}, {}, {"port": 443}],
        "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3"]}]});
    let want = json!([
        "x",
        "IPv4",
        "80,web,* + 1 more...",
        "10.0.0.1,10.0.0.2,10.0.0.3",
        "5m"
    ]);
    check("discovery.k8s.io", "endpointslices", slice, want);
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({}),
        json!(["x", "", "<unset>", "<unset>", "5m"]),
    );
}

#[test]
fn networking() {
    let rules = |hosts: &[&str]| hosts.iter().map(|host| json!({"host": host})).collect::<Vec<_>>();
    let group = "networking.k8s.io";
    for (hosts, want) in [
        (&["a", "b"][..], "a,b"),
        (&[], "*"),
        (&["", ""], "*"),
        (&["a", "b", "c"], "a,b,c"),
        (&["a", "b", "c", "d", "e"], "a,b,c + 2 more..."),
    ] {
        let object = json!({"spec": {"rules": rules(hosts)}});
        check(
            group,
            "ingresses",
            object,
            json!(["x", "<none>", want, "", "80", "5m"]),
        );
    }
    let object = json!({"spec": {"ingressClassName": "nginx", "tls": [{}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "2.3.4.5"}]}}});
    check(
        group,
        "ingresses",
        object,
        json!(["x", "nginx", "*", "2.3.4.5", "80, 443", "5m"]),
    );
    let object = json!({"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/c", "parameters": {"apiGroup": "g.io", "kind": "Params", "name": "p"}}});
    check(
        group,
        "ingressclasses",
        object,
        json!(["x (default)", "example.com/c", "Params.g.io/p", "5m"]),
    );
    let selector = json!({"matchLabels": {"z": "1"}, "matchExpressions": [
        {"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "NotIn", "values": ["x"]},
        {"key": "d", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]});
    let object = json!({"spec": {"podSelector": selector}});
    check(
        group,
        "networkpolicies",
        object,
        json!(["x", "!a,b in (x,y),c notin (x),d,z=1", "5m"]),
    );
    check(
        group,
        "networkpolicies",
        json!({"spec": {"podSelector": {}}}),
        json!(["x", "<none>", "5m"]),
    );
    check(
        group,
        "servicecidrs",
        json!({"spec": {"cidrs": ["10.0.0.0/8", "fd00::/64"]}}),
        json!(["x", "10.0.0.0/8,fd00::/64", "5m"]),
    );
    let parent =
        json!({"spec": {"parentRef": {"group": "g", "resource": "rs", "namespace": "ns", "name": "n"}}});
    check(group, "ipaddresses", parent, json!(["x", "rs.g/ns/n"]));
}

#[test]
fn storage() {
    let volume = json!({"spec": {"capacity": {"storage": "4Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "test"}, "storageClassName": "fast", "volumeMode": "Block",
        "persistentVolumeReclaimPolicy": "Retain"}, "status": {"phase": "Bound"}});
    let want = json!([
        "x",
        "4Gi",
        "RWO,RWX",
        "Retain",
        "Bound",
        "default/test",
        "fast",
        "<unset>",
        "",
        "5m",
        "Block"
    ]);
    check("", "persistentvolumes", volume, want);
    let want = json!([
        "x",
        "0",
        "",
        "",
        "Terminating",
        "",
        "old",
        "<unset>",
        "",
        "5m",
        "<unset>"
    ]);
    let old = json!({"metadata": {"deletionTimestamp": CREATED,
        "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": {"storageClassName": "new"}});
    check("", "persistentvolumes", old, want);
    let claim = json!({"spec": {"volumeName": "v", "storageClassName": "fast", "volumeAttributesClassName": "gold"},
        "status": {"phase": "Bound", "capacity": {"storage": "4Gi"}, "accessModes": ["ReadOnlyMany"]}});
    check(
        "",
        "persistentvolumeclaims",
        claim,
        json!(["x", "Bound", "v", "4Gi", "ROX", "fast", "gold", "5m", "<unset>"]),
    );
    let lost = json!({"status": {"phase": "Lost", "capacity": {"storage": "4Gi"}}});
    check(
        "",
        "persistentvolumeclaims",
        lost,
        json!(["x", "Lost", "", "", "", "", "<unset>", "5m", "<unset>"]),
    );
    let group = "storage.k8s.io";
    let class = json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "p"});
    check(
        group,
        "storageclasses",
        class,
        json!(["x (default)", "p", "Delete", "Immediate", false, "5m"]),
    );
    check(
        group,
        "volumeattributesclasses",
        json!({"driverName": "d"}),
        json!(["x", "d", "5m"]),
    );
    let attachment = json!({"spec": {"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n"},
        "status": {"attached": true}});
    check(
        group,
        "volumeattachments",
        attachment,
        json!(["x", "a", "v", "n", true, "5m"]),
    );
    check(
        group,
        "csinodes",
        json!({"spec": {"drivers": [{}, {}]}}),
        json!(["x", 2, "5m"]),
    );
    check(
        group,
        "csidrivers",
        json!({}),
        json!(["x", true, false, false, "<unset>", false, "<none>", "5m"]),
    );
    let driver = json!({"spec": {"attachRequired": false, "podInfoOnMount": true, "storageCapacity": true,
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}], "requiresRepublish": true,
        "volumeLifecycleModes": ["Persistent", "Ephemeral"]}});
    let want = json!(["x", false, true, true, "a,b", true, "Persistent,Ephemeral", "5m"]);
    check(group, "csidrivers", driver, want);
    check(
        group,
        "csistoragecapacities",
        json!({"storageClassName": "c", "capacity": "1Gi"}),
        json!(["x", "c", "1Gi"]),
    );
}

#[test]
fn nodes() {
    let info = json!({"kubeletVersion": "v1", "osImage": "Debian", "kernelVersion": "6.1", "architecture": "arm64",
        "containerRuntimeVersion": "cri://1"});
    let object = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge",
            "node-role.kubernetes.io/": "x", "other": "y"}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": info,
            "addresses": [{"type": "ExternalIP", "address": "1.1.1.1"}, {"type": "InternalIP", "address": "2.2.2.2"}]},
    });
    let want = json!([
        "x",
        "Ready,SchedulingDisabled",
        "edge,worker",
        "5m",
        "v1",
        "2.2.2.2",
        "1.1.1.1",
        "Debian",
        "6.1 (arm64)",
        "cri://1"
    ]);
    check("", "nodes", object, want);
    let rest = ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"];
    let want = |status: &str| {
        let mut cells = vec![json!("x"), json!(status), json!("<none>"), json!("5m"), json!("")];
        cells.extend(rest.map(Value::from));
        Value::Array(cells)
    };
    check("", "nodes", json!({}), want("Unknown"));
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    check("", "nodes", not_ready, want("NotReady"));
}

#[test]
fn events() {
    let time = |text: &str| json!(format!("2001-09-0{text}T01:46:40Z"));
    let core = json!({"involvedObject": {"kind": "Deployment", "name": "web", "fieldPath": "spec.containers{c}"},
        "reason": "R", "message": "\n What \n", "source": {"component": "kubelet", "host": "n1"}, "type": "Warning",
        "count": 6, "firstTimestamp": time("6"), "lastTimestamp": time("7")});
    let want = json!([
        "2d",
        "Warning",
        "R",
        "deployment/web",
        "spec.containers{c}",
        "kubelet, n1",
        "What",
        "3d",
        6,
        "x"
    ]);
    check("", "events", core.clone(), want);
    let mut series = core;
    series["series"] = json!({"count": 9, "lastObservedTime": "2001-09-09T01:46:30.000000Z"});
    let want = json!([
        "10s",
        "Warning",
        "R",
        "deployment/web",
        "spec.containers{c}",
        "kubelet, n1",
        "What",
        "3d",
        9,
        "x"
    ]);
    check("", "events", series, want);
    let newer = json!({"regarding": {"kind": "Pod"}, "note": "N", "reason": "R", "type": "Normal",
        "eventTime": "2001-09-06T01:46:40.000000Z", "reportingController": "c", "reportingInstance": "i"});
    check(
        "events.k8s.io",
        "events",
        newer,
        json!(["3d", "Normal", "R", "pod", "", "c, i", "N", "3d", 1, "x"]),
    );
    let bare = json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"]);
    check("", "events", json!({"firstTimestamp": null}), bare);
}

#[test]
fn the_rest_of_the_core() {
    check(
        "",
        "namespaces",
        json!({"status": {"phase": "Active"}}),
        json!(["x", "Active", "5m"]),
    );
    check(
        "",
        "secrets",
        json!({"type": "Opaque", "data": {"a": "", "b": ""}}),
        json!(["x", "Opaque", 2, "5m"]),
    );
    check(
        "",
        "configmaps",
        json!({"data": {"a": ""}, "binaryData": {"b": ""}}),
        json!(["x", 2, "5m"]),
    );
    check("", "serviceaccounts", json!({}), json!(["x", "5m"]));
    let quota = json!({"status": {"hard": {"pods": "10", "cpu": 100, "limits.cpu": "200", "limitsx": "1"},
        "used": {"cpu": "1"}}});
    let want = json!([
        "x",
        "cpu: 1/100, limitsx: 0/1, pods: 0/10",
        "limits.cpu: 0/200",
        "5m"
    ]);
    check("", "resourcequotas", quota, want);
    let healthy =
        json!({"conditions": [{"type": "Healthy", "status": "True", "message": "m", "error": "e"}]});
    check(
        "",
        "componentstatuses",
        healthy,
        json!(["x", "Healthy", "m", "e"]),
    );
    check(
        "",
        "componentstatuses",
        json!({}),
        json!(["x", "Unknown", "", ""]),
    );
    let template = json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": template()["spec"]}});
    check(
        "",
        "podtemplates",
        template,
        json!(["x", "c1,c2", "i1,i2", "a=b"]),
    );
}

#[test]
fn access() {
    let subjects = json!([{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "v"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "ns"}, {"kind": "ServiceAccount", "name": "t"}]);
    let binding = json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects});
    let want = json!(["x", "Role/r", "5m", "u, v", "g", "ns/s, t"]);
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        binding.clone(),
        want.clone(),
    );
    check("rbac.authorization.k8s.io", "clusterrolebindings", binding, want);
    check(
        "rbac.authorization.k8s.io",
        "clusterroles",
        json!({}),
        json!(["x", CREATED]),
    );
    let group = "certificates.k8s.io";
    for (conditions, certificate, want) in [
        (&[][..], "", "Pending"),
        (&["Approved"], "", "Approved"),
        (&["Approved"], "abc", "Approved,Issued"),
        (&["Approved", "Denied"], "", "Denied"),
        (&["Approved", "Failed"], "", "Approved,Failed"),
    ] {
        let conditions: Vec<_> = conditions.iter().map(|kind| json!({"type": kind})).collect();
        let object = json!({"spec": {"username": "u", "expirationSeconds": 608_400},
            "status": {"conditions": conditions, "certificate": certificate}});
        let want = json!(["x", "5m", "<none>", "u", "7d1h", want]);
        check(group, "certificatesigningrequests", object, want);
    }
    check(
        group,
        "clustertrustbundles",
        json!({"spec": {"signerName": "s"}}),
        json!(["x", "s"]),
    );
    let request = json!({"spec": {"podName": "p", "serviceAccountName": "s", "nodeName": "n", "signerName": "g",
        "unverifiedUserAnnotations": {"b": "2", "a": "1"}}, "status": {"conditions": [{"type": "Issued"}]}});
    check(
        group,
        "podcertificaterequests",
        request,
        json!(["x", "p", "s", "n", "g", "Issued", "a=1,b=2"]),
    );
}

#[test]
fn admission() {
    let group = "admissionregistration.k8s.io";
    for resource in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        check(
            group,
            resource,
            json!({"webhooks": [{}, {}]}),
            json!(["x", 2, "5m"]),
        );
    }
    let kind = json!({"apiVersion": "g/v1", "kind": "K"});
    let policy = json!({"spec": {"validations": [{}], "mutations": [{}, {}], "paramKind": kind}});
    check(
        group,
        "validatingadmissionpolicies",
        policy.clone(),
        json!(["x", 1, "g/v1/K", "5m"]),
    );
    check(
        group,
        "mutatingadmissionpolicies",
        policy,
        json!(["x", 2, "g/v1/K", "5m"]),
    );
    for (reference, want) in [
        (json!(null), "<unset>"),
        (json!({"name": "n"}), "*/n"),
        (json!({"name": "n", "namespace": "ns"}), "ns/n"),
        (
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
    ] {
        let object = json!({"spec": {"policyName": "p", "paramRef": reference}});
        check(
            group,
            "validatingadmissionpolicybindings",
            object.clone(),
            json!(["x", "p", want, "5m"]),
        );
        check(
            group,
            "mutatingadmissionpolicybindings",
            object,
            json!(["x", "p", want, "5m"]),
        );
    }
}

#[test]
fn everything_else() {
    check(
        "coordination.k8s.io",
        "leases",
        json!({"spec": {"holderIdentity": "h"}}),
        json!(["x", "h", "5m"]),
    );
    let candidate = json!({"spec": {"leaseName": "l", "binaryVersion": "1", "emulationVersion": "2"}});
    check(
        "coordination.k8s.io",
        "leasecandidates",
        candidate,
        json!(["x", "l", "1", "2", "5m"]),
    );
    check(
        "node.k8s.io",
        "runtimeclasses",
        json!({"handler": "h"}),
        json!(["x", "h", "5m"]),
    );
    let class = json!({"value": 7, "globalDefault": true, "preemptionPolicy": "Never"});
    check(
        "scheduling.k8s.io",
        "priorityclasses",
        class,
        json!(["x", 7, true, "5m", "Never"]),
    );
    let pod_group = json!({"spec": {"schedulingPolicy": {"gang": {}},
        "podGroupTemplateRef": {"workload": {"workloadName": "w"}}},
        "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]}});
    check(
        "scheduling.k8s.io",
        "podgroups",
        pod_group,
        json!(["x", "Gang", "w", "Unschedulable", "5m"]),
    );
    check(
        "scheduling.k8s.io",
        "podgroups",
        json!({}),
        json!(["x", "Basic", "<none>", "Pending", "5m"]),
    );
    let api = |conditions: Value| json!({"spec": {"service": {"namespace": "ns", "name": "s"}}, "status": {"conditions": conditions}});
    let unavailable = api(json!([{"type": "Available", "status": "False", "reason": "Gone"}]));
    check(
        "apiregistration.k8s.io",
        "apiservices",
        unavailable,
        json!(["x", "ns/s", "False (Gone)", "5m"]),
    );
    check(
        "apiregistration.k8s.io",
        "apiservices",
        json!({}),
        json!(["x", "Local", "Unknown", "5m"]),
    );
    let migration = json!({"spec": {"resource": {"resource": "r", "group": "g"}},
        "status": {"conditions": [{"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"}]}});
    check(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        migration,
        json!(["x", "r.g", "Succeeded"]),
    );
    let versions: Vec<_> = (1..5)
        .map(|n| json!({"apiServerID": n.to_string(), "encodingVersion": "v1"}))
        .collect();
    let object = json!({"status": {"commonEncodingVersion": "v1", "storageVersions": versions}});
    let want = json!(["x", "v1", "1=v1,2=v1,3=v1 + 1 more...", "5m"]);
    check("internal.apiserver.k8s.io", "storageversions", object, want);
    let flow = "flowcontrol.apiserver.k8s.io";
    let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 9,
        "distinguisherMethod": {"type": "ByUser"}}, "status": {"conditions": [{"type": "Dangling", "status": "True"}]}});
    check(
        flow,
        "flowschemas",
        schema,
        json!(["x", "l", 9, "ByUser", "5m", "True"]),
    );
    check(
        flow,
        "flowschemas",
        json!({}),
        json!(["x", "", 0, "<none>", "5m", "?"]),
    );
    let level = json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 42,
        "limitResponse": {"queuing": {"queues": 8, "handSize": 3, "queueLengthLimit": 4}}}}});
    check(
        flow,
        "prioritylevelconfigurations",
        level,
        json!(["x", "Limited", 42, 8, 3, 4, "5m"]),
    );
    let exempt = json!(["x", "Exempt", "<none>", "<none>", "<none>", "<none>", "5m"]);
    check(
        flow,
        "prioritylevelconfigurations",
        json!({"spec": {"type": "Exempt"}}),
        exempt,
    );
}

#[test]
fn devices() {
    let group = "resource.k8s.io";
    check(group, "deviceclasses", json!({}), json!(["x", "5m"]));
    check(group, "resourceclaims", json!({}), json!(["x", "pending", "5m"]));
    let allocated = json!({"status": {"allocation": {}, "reservedFor": [{}]}});
    check(
        group,
        "resourceclaims",
        allocated,
        json!(["x", "allocated,reserved", "5m"]),
    );
    let deleted = json!({"metadata": {"deletionTimestamp": CREATED}});
    check(group, "resourceclaims", deleted, json!(["x", "deleted", "5m"]));
    let slice = json!({"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}});
    check(group, "resourceslices", slice, json!(["x", "n", "d", "p", "5m"]));
    let rule =
        json!({"spec": {"taint": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": CREATED}}});
    check(
        group,
        "devicetaintrules",
        rule,
        json!(["x", "k", "v", "NoExecute", "5m", "5m"]),
    );
    let want = json!(["x", "d", "-", "-", "-", "-", "-", 0, "Pending", "<none>"]);
    check(
        group,
        "resourcepoolstatusrequests",
        json!({"spec": {"driver": "d"}}),
        want,
    );
    let pool =
        json!({"totalDevices": 9, "availableDevices": 4, "allocatedDevices": 3, "unavailableDevices": 2});
    let object = json!({"spec": {"driver": "d"}, "status": {"poolCount": 5, "pools": [pool, {"validationError": "e"}],
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": CREATED}]}});
    let want = json!(["x", "d", "9", "4", "3", "2", "1", 5, "Complete (2/5 pools)", "5m"]);
    check(group, "resourcepoolstatusrequests", object, want);
}

#[test]
fn kinds_without_columns_show_name_and_creation_time() {
    check("", "limitranges", json!({}), json!(["x", CREATED]));
    let names: Vec<&str> = columns("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .iter()
        .map(|c| c.name)
        .collect();
    assert_eq!(names, ["Name", "Created At"]);
    assert_eq!(
        row("", "limitranges", &json!({}), NOW),
        [json!(""), json!("0001-01-01T00:00:00Z")]
    );
}

#[test]
fn odd_objects_make_rows_too() {
    let odd = json!({"metadata": [], "spec": "x", "status": {"conditions": {"a": 1}, "containerStatuses": [1, null]},
        "subsets": [[]], "rules": 5, "data": "x"});
    for (group, resource, _) in upstream::PRINTERS {
        for object in [&odd, &Value::Null, &json!([])] {
            assert_eq!(
                row(group, resource, object, NOW).len(),
                columns(group, "v1", resource).len(),
                "{resource}"
            );
        }
    }
}
