//! Access, admission, scheduling, flow control and devices.

use serde_json::{Value, json};

use super::{CREATED, check};

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
