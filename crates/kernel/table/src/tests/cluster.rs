//! Storage, nodes, events and the rest of the core group.

use serde_json::{Value, json};

use super::{CREATED, check, template};

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
