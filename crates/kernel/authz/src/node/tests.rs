//! The decision as a table.

mod services;

use serde_json::{Value, json};

use super::{Objects, check_write, decide, is_limited, is_own, name_of};
use crate::{Attributes, ResourceAttributes, UserInfo};

/// What there is.
struct World(Vec<(&'static str, Value)>);

impl World {
    fn all(&self, resource: &str, namespace: &str) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .filter(move |(of, it)| {
                *of == resource && it["metadata"]["namespace"].as_str().unwrap_or("") == namespace
            })
            .map(|(_, it)| it)
    }
}

impl Objects for World {
    fn get(&self, _: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.all(resource, namespace)
            .find(|it| it["metadata"]["name"] == name)
            .cloned()
    }

    fn instances(&self, namespace: &str) -> Vec<Value> {
        self.all("virtualmachineinstances", namespace).cloned().collect()
    }

    fn data_volumes(&self, namespace: &str) -> Vec<Value> {
        self.all("datavolumes", namespace).cloned().collect()
    }
}

fn meta(name: &str, node: &str) -> Value {
    json!({"name": name, "namespace": "ns", "annotations": {"volume.kubernetes.io/selected-node": node}})
}

fn volume(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]},
    ]}}}})
}

fn claimed(name: &str, node: &str, claim: &str) -> Value {
    let mut volume = volume(name, node);
    volume["spec"]["claimRef"] = json!({"namespace": "ns", "name": claim});
    volume
}

fn snapshot(name: &str, node: &str, uid: &str) -> Value {
    let mut metadata = meta(name, node);
    metadata["uid"] = json!(uid);
    json!({"metadata": metadata, "spec": {"source": {"persistentVolumeClaimName": "mine-disk"}}})
}

fn content(name: &str, node: &str, of: &str, uid: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"fairway.dev/node": node}},
        "spec": {"driver": "fairway.dev/local", "volumeSnapshotRef": {"namespace": "ns", "name": of, "uid": uid}},
    })
}

fn world() -> World {
    let instance = |name: &str, status: Value, secret: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ns"}, "status": status,
            "spec": {
                "volumes": [
                    {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": secret}}},
                    {"name": "map", "configMap": {"name": format!("{name}-map")}},
                    {"name": "account", "serviceAccount": {"serviceAccountName": format!("{name}-account")}},
                    {"name": "disk", "dataVolume": {"name": format!("{name}-disk")}},
                ],
                "accessCredentials": [
                    {"sshPublicKey": {"source": {"secret": {"secretName": format!("{name}-keys")}}}},
                ],
            },
        })
    };
    World(vec![
        (
            "virtualmachineinstances",
            instance("mine", json!({"nodeName": "n1"}), "mine-seed"),
        ),
        (
            "virtualmachineinstances",
            instance("theirs", json!({"nodeName": "n2"}), "their-seed"),
        ),
        (
            "virtualmachineinstances",
            instance(
                "coming",
                json!({"nodeName": "n2", "migrationState": {"sourceNode": "n2", "targetNode": "n1"}}),
                "coming-seed",
            ),
        ),
        (
            "virtualmachineinstances",
            instance(
                "gone",
                json!({"nodeName": "n2", "migrationState": {"sourceNode": "n1", "targetNode": "n2", "completed": true}}),
                "gone-seed",
            ),
        ),
        (
            "persistentvolumeclaims",
            json!({"metadata": meta("mine-disk", "n1")}),
        ),
        (
            "persistentvolumeclaims",
            json!({"metadata": meta("their-disk", "n2")}),
        ),
        (
            "datavolumes",
            json!({"metadata": meta("import", "n1"), "spec": {"source": {"http": {"secretRef": "import-login"}}}}),
        ),
        (
            "datavolumes",
            json!({"metadata": meta("their-import", "n2"), "spec": {"source": {"http": {"secretRef": "their-login"}}}}),
        ),
        (
            "persistentvolumeclaims",
            json!({"metadata": meta("coming-disk", "n2"), "spec": {"volumeName": "pv3"}}),
        ),
        (
            "datavolumes",
            json!({"metadata": {
                "name": "copy", "namespace": "ns", "annotations": {"volume.kubernetes.io/selected-node": "n1"},
                "ownerReferences": [{"kind": "VirtualMachine", "name": "copier", "controller": true}],
            }}),
        ),
        (
            "virtualmachines",
            json!({"metadata": {"name": "copier", "namespace": "ns"}}),
        ),
        ("volumesnapshots", snapshot("kept", "n1", "s1")),
        ("volumesnapshots", snapshot("their-kept", "n2", "s2")),
        ("volumesnapshotcontents", content("c1", "n1", "kept", "s1")),
        ("volumesnapshotcontents", content("c2", "n2", "their-kept", "s2")),
        ("persistentvolumes", volume("pv1", "n1")),
        // It says that it belongs to a claim which says otherwise.
        ("persistentvolumes", claimed("pv2", "n2", "mine-disk")),
        ("persistentvolumes", claimed("pv3", "n2", "coming-disk")),
    ])
}

#[test]
fn a_node_touches_what_is_its_own_and_reads_what_that_names() {
    let world = world();
    let user = UserInfo::new("system:node:n1", ["system:nodes", "system:authenticated"]);
    let vmis = "virtualmachineinstances.kubevirt.io";
    let dvs = "datavolumes.cdi.kubevirt.io";
    let claims = "persistentvolumeclaims";
    let snapshots = "volumesnapshots.snapshot.storage.k8s.io";
    let contents = "volumesnapshotcontents.snapshot.storage.k8s.io";
    for (verb, resource, namespace, name, expected) in [
        // Itself.
        ("create", "nodes", "", "", true),
        ("patch", "nodes", "", "n1", true),
        ("patch", "nodes", "", "n2", false),
        ("patch", "nodes/status", "", "n1", true),
        ("patch", "nodes/status", "", "n2", false),
        ("delete", "nodes", "", "n1", false),
        ("get", "nodes", "", "n2", true),
        (
            "patch",
            "leases.coordination.k8s.io",
            "kube-node-lease",
            "n1",
            true,
        ),
        (
            "patch",
            "leases.coordination.k8s.io",
            "kube-node-lease",
            "n2",
            false,
        ),
        ("get", "leases.coordination.k8s.io", "kube-system", "n1", false),
        ("list", "leases.coordination.k8s.io", "kube-node-lease", "", false),
        ("get", "nodes/link.machines.fairway.dev", "", "n1", true),
        ("get", "nodes/link.machines.fairway.dev", "", "n2", false),
        (
            "create",
            "certificatesigningrequests.certificates.k8s.io",
            "",
            "",
            true,
        ),
        (
            "list",
            "certificatesigningrequests.certificates.k8s.io",
            "",
            "",
            false,
        ),
        // Instances.
        ("list", vmis, "", "", true),
        ("watch", vmis, "", "", true),
        ("get", vmis, "ns", "mine", true),
        ("patch", vmis, "ns", "mine", true),
        ("get", vmis, "ns", "theirs", false),
        ("patch", vmis, "ns", "theirs", false),
        ("get", vmis, "ns", "coming", true),
        ("get", vmis, "ns", "gone", false),
        ("delete", vmis, "ns", "mine", false),
        ("create", vmis, "ns", "", false),
        ("patch", "virtualmachines.kubevirt.io", "ns", "mine", false),
        ("list", "virtualmachines.kubevirt.io", "", "", false),
        // What they name.
        ("get", "secrets", "ns", "mine-seed", true),
        ("get", "secrets", "ns", "mine-keys", true),
        ("get", "secrets", "other", "mine-seed", false),
        ("get", "secrets", "ns", "their-seed", false),
        ("get", "secrets", "ns", "coming-seed", true),
        ("get", "secrets", "ns", "gone-seed", false),
        ("get", "secrets", "ns", "else", false),
        ("get", "secrets", "ns", "import-login", true),
        ("get", "secrets", "ns", "their-login", false),
        ("list", "secrets", "ns", "", false),
        ("watch", "secrets", "ns", "mine-seed", false),
        ("patch", "secrets", "ns", "mine-seed", false),
        ("get", "configmaps", "ns", "mine-map", true),
        ("get", "configmaps", "ns", "theirs-map", false),
        ("create", "serviceaccounts/token", "ns", "mine-account", true),
        ("create", "serviceaccounts/token", "ns", "theirs-account", false),
        // Disks.
        ("watch", claims, "", "", true),
        ("patch", claims, "ns", "mine-disk", true),
        ("patch", "persistentvolumeclaims/status", "ns", "mine-disk", true),
        ("get", claims, "ns", "their-disk", false),
        ("get", claims, "ns", "nothing", true),
        ("deletecollection", claims, "ns", "", false),
        ("patch", dvs, "ns", "import", true),
        ("get", dvs, "ns", "mine-disk", true),
        ("get", dvs, "ns", "their-import", false),
        ("delete", "persistentvolumes", "", "pv1", true),
        ("get", "persistentvolumes", "", "pv2", false),
        ("get", "persistentvolumes", "", "pv3", true),
        ("patch", "persistentvolumes", "", "pv3", true),
        ("delete", "persistentvolumes", "", "pv3", false),
        // What their disks start from.
        ("get", "images.machines.fairway.dev", "", "tiny", true),
        ("list", "images.machines.fairway.dev", "", "", false),
        ("get", "blobs.machines.fairway.dev", "", "abc", true),
        ("get", "uploads.machines.fairway.dev", "ns", "mine-disk", true),
        (
            "get",
            "uploads/content.machines.fairway.dev",
            "ns",
            "mine-disk",
            true,
        ),
        (
            "get",
            "uploads/content.machines.fairway.dev",
            "ns",
            "their-disk",
            false,
        ),
        (
            "get",
            "uploads/content.machines.fairway.dev",
            "ns",
            "nothing",
            false,
        ),
        ("create", "uploads.machines.fairway.dev", "ns", "mine-disk", false),
        ("get", "virtualmachines.kubevirt.io", "ns", "copier", true),
        ("get", "virtualmachines.kubevirt.io", "ns", "mine", false),
        ("patch", "virtualmachines.kubevirt.io", "ns", "copier", false),
        // Snapshots of them.
        ("watch", snapshots, "", "", true),
        ("patch", snapshots, "ns", "kept", true),
        (
            "patch",
            "volumesnapshots/status.snapshot.storage.k8s.io",
            "ns",
            "kept",
            true,
        ),
        ("get", snapshots, "ns", "their-kept", false),
        (
            "patch",
            "volumesnapshots/status.snapshot.storage.k8s.io",
            "ns",
            "their-kept",
            false,
        ),
        ("delete", snapshots, "ns", "kept", false),
        ("create", snapshots, "ns", "", false),
        ("create", contents, "", "", true),
        ("get", contents, "", "c1", true),
        ("delete", contents, "", "c1", true),
        ("get", contents, "", "c2", false),
        ("list", contents, "", "", false),
        (
            "get",
            "volumesnapshotclasses.snapshot.storage.k8s.io",
            "",
            "local",
            true,
        ),
        (
            "create",
            "volumesnapshotclasses.snapshot.storage.k8s.io",
            "",
            "",
            false,
        ),
        // The rest.
        ("watch", "services", "", "", true),
        ("patch", "services", "ns", "web", false),
        ("patch", "services/status", "ns", "web", true),
        ("update", "services/status", "ns", "web", false),
        ("create", "events", "ns", "", true),
        ("get", "pods", "ns", "x", false),
        ("list", "tombstones.fairway.dev", "", "", false),
        (
            "create",
            "clusterrolebindings.rbac.authorization.k8s.io",
            "",
            "",
            false,
        ),
    ] {
        let (path, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (kind, subresource) = path.split_once('/').unwrap_or((path, ""));
        let attributes = Attributes {
            user: &user,
            verb,
            path: "",
            resource: Some(ResourceAttributes {
                group,
                resource: kind,
                subresource,
                namespace,
                name,
                ..ResourceAttributes::default()
            }),
        };
        let decided = decide("n1", true, &attributes, &world).is_allowed();
        assert_eq!(decided, expected, "{verb} {resource} {namespace}/{name}");
    }
}

#[test]
fn nodes_are_nodes_of_the_root_workspace_alone() {
    let user = UserInfo::new("system:node:n1", ["system:nodes"]);
    for (resource, namespace) in [("nodes", ""), ("leases", "kube-node-lease")] {
        let attributes = Attributes {
            user: &user,
            verb: "create",
            path: "",
            resource: Some(ResourceAttributes {
                group: if resource == "nodes" {
                    ""
                } else {
                    "coordination.k8s.io"
                },
                resource,
                namespace,
                ..ResourceAttributes::default()
            }),
        };
        assert!(decide("n1", true, &attributes, &world()).is_allowed());
        assert!(!decide("n1", false, &attributes, &world()).is_allowed());
    }
    assert_eq!(name_of(&user), Some("n1"));
    for (name, group) in [
        ("system:node:n1", "developers"),
        ("system:node:", "system:nodes"),
        ("anna", "system:nodes"),
    ] {
        assert_eq!(name_of(&UserInfo::new(name, [group])), None, "{name} {group}");
    }
}

#[test]
fn lists_show_a_node_what_is_its_own() {
    for (resource, group, object, expected) in [
        (
            "virtualmachineinstances",
            "kubevirt.io",
            json!({"status": {"nodeName": "n1"}}),
            true,
        ),
        (
            "virtualmachineinstances",
            "kubevirt.io",
            json!({"status": {"nodeName": "n2"}}),
            false,
        ),
        ("virtualmachineinstances", "kubevirt.io", json!({}), false),
        (
            "persistentvolumeclaims",
            "",
            json!({"metadata": meta("a", "n1")}),
            true,
        ),
        (
            "persistentvolumeclaims",
            "",
            json!({"metadata": {"name": "a"}}),
            false,
        ),
        (
            "datavolumes",
            "cdi.kubevirt.io",
            json!({"metadata": meta("a", "n2")}),
            false,
        ),
        ("persistentvolumes", "", volume("a", "n1"), true),
        (
            "volumesnapshots",
            "snapshot.storage.k8s.io",
            snapshot("a", "n1", "s"),
            true,
        ),
        (
            "volumesnapshots",
            "snapshot.storage.k8s.io",
            snapshot("a", "n2", "s"),
            false,
        ),
        ("persistentvolumes", "", json!({"metadata": {"name": "a"}}), false),
    ] {
        assert!(is_limited(group, resource), "{resource}");
        assert_eq!(
            is_own("n1", group, resource, &object),
            expected,
            "{resource} {object}"
        );
    }
    assert!(!is_limited("", "services"));
}

#[test]
fn a_node_cannot_make_more_its_own() {
    let world = world();
    let named = |name: &str| json!({"metadata": {"name": name}});
    let class = |provisioner: &str| json!({"metadata": {"name": "local"}, "provisioner": provisioner});
    let nodes = ("", "nodes");
    let claims = ("", "persistentvolumeclaims");
    let volumes = ("", "persistentvolumes");
    let kept = ("snapshot.storage.k8s.io", "volumesnapshots");
    let stands = ("snapshot.storage.k8s.io", "volumesnapshotcontents");
    let (dvs, vmis) = (
        ("cdi.kubevirt.io", "datavolumes"),
        ("kubevirt.io", "virtualmachineinstances"),
    );
    for (kind, object, expected) in [
        (nodes, named("n1"), true),
        (nodes, named("n2"), false),
        (
            nodes,
            json!({"metadata": {"name": "n1", "labels": {"node-restriction.kubernetes.io/vault": "yes"}}}),
            false,
        ),
        (("coordination.k8s.io", "leases"), named("n2"), false),
        // A claim that nobody asked for would bring the DataVolume of its name, and the Secrets of that.
        (claims, json!({"metadata": meta("their-import", "n1")}), false),
        (claims, json!({"metadata": meta("anything", "n1")}), false),
        (claims, json!({"metadata": meta("import", "n1")}), true),
        (claims, json!({"metadata": meta("coming-disk", "n1")}), true),
        (claims, json!({"metadata": meta("import", "n2")}), false),
        (volumes, claimed("pv", "n1", "mine-disk"), true),
        (volumes, claimed("pv", "n1", "their-disk"), false),
        (volumes, claimed("pv", "n2", "mine-disk"), false),
        (dvs, json!({"metadata": meta("a", "n1")}), false),
        (vmis, named("a"), false),
        (
            ("storage.k8s.io", "storageclasses"),
            class("fairway.dev/local"),
            true,
        ),
        (("storage.k8s.io", "storageclasses"), class("else"), false),
        (("", "events"), named("x"), true),
        (kept, snapshot("new", "n1", "s3"), false),
        (stands, content("c3", "n1", "kept", "s1"), true),
        // The files of others, a snapshot of others, one that has gone and come again.
        (stands, content("c3", "n2", "kept", "s1"), false),
        (stands, content("c3", "n1", "their-kept", "s2"), false),
        (stands, content("c3", "n1", "kept", "s0"), false),
        (("", "services"), named("web"), false),
    ] {
        let checked = check_write("n1", kind, &object, None, &world);
        assert_eq!(checked.is_ok(), expected, "{kind:?} {object}: {checked:?}");
    }
    let before = json!({
        "metadata": {"name": "n1", "namespace": "ns", "labels": {"app": "a", "kubevirt.io/nodeName": "n1"},
            "annotations": {"volume.kubernetes.io/selected-node": "n2"}},
        "spec": {"volumes": [], "taints": []}, "status": {},
    });
    for (kind, pointer, value, expected) in [
        (vmis, "/status", json!({"phase": "Running"}), true),
        (
            vmis,
            "/spec/volumes",
            json!([{"secret": {"secretName": "theirs"}}]),
            false,
        ),
        (vmis, "/metadata/labels/app", json!("web"), false),
        (vmis, "/metadata/labels/kubevirt.io~1nodeName", json!("n2"), true),
        (
            vmis,
            "/metadata/annotations/volume.kubernetes.io~1selected-node",
            json!("n1"),
            true,
        ),
        (dvs, "/status", json!({"phase": "Succeeded"}), true),
        (dvs, "/spec/volumes", json!([1]), false),
        (
            dvs,
            "/metadata/annotations/volume.kubernetes.io~1selected-node",
            json!("n1"),
            false,
        ),
        (
            claims,
            "/metadata/annotations/volume.kubernetes.io~1selected-node",
            json!("n1"),
            false,
        ),
        (claims, "/status", json!({"phase": "Bound"}), true),
        (nodes, "/spec/taints", json!([{"key": "a"}]), false),
        (nodes, "/status", json!({"phase": "x"}), true),
    ] {
        let mut after = before.clone();
        *after.pointer_mut(pointer).unwrap() = value;
        let checked = check_write("n1", kind, &after, Some(&before), &world);
        assert_eq!(checked.is_ok(), expected, "{kind:?} {pointer}: {checked:?}");
    }
    // A disk comes with its machine, to where that goes.
    for (claim, to, expected) in [
        ("coming-disk", "n1", true),
        ("coming-disk", "n3", false),
        ("theirs-disk", "n1", false),
    ] {
        let (old, new) = (
            json!({"metadata": meta(claim, "n2")}),
            json!({"metadata": meta(claim, to)}),
        );
        let checked = check_write("n1", claims, &new, Some(&old), &world);
        assert_eq!(checked.is_ok(), expected, "{claim} to {to}: {checked:?}");
    }
    let (old, new) = (
        claimed("pv3", "n2", "coming-disk"),
        claimed("pv3", "n1", "coming-disk"),
    );
    assert!(check_write("n1", volumes, &new, Some(&old), &world).is_ok());
    let mut owned = before.clone();
    owned["metadata"]["ownerReferences"] = json!([{"kind": "VirtualMachine", "name": "theirs"}]);
    assert!(check_write("n1", vmis, &owned, Some(&before), &world).is_err());

    // What the status says brings nothing.
    let told = json!({
        "metadata": {"name": "mine", "namespace": "ns"},
        "status": {"nodeName": "n1", "volumeStatus": [{"persistentVolumeClaimInfo": {"claimName": "their-disk"}}]},
    });
    let world = World(vec![
        ("virtualmachineinstances", told),
        (
            "persistentvolumeclaims",
            json!({"metadata": meta("their-disk", "n2")}),
        ),
        (
            "datavolumes",
            json!({"metadata": meta("their-disk", "n2"), "spec": {"source": {"http": {"secretRef": "their-login"}}}}),
        ),
    ]);
    let user = UserInfo::new("system:node:n1", ["system:nodes"]);
    for (resource, name) in [
        ("persistentvolumeclaims", "their-disk"),
        ("secrets", "their-login"),
    ] {
        let attributes = Attributes {
            user: &user,
            verb: "get",
            path: "",
            resource: Some(ResourceAttributes {
                resource,
                namespace: "ns",
                name,
                ..ResourceAttributes::default()
            }),
        };
        assert!(
            !decide("n1", true, &attributes, &world).is_allowed(),
            "{resource} {name}"
        );
    }
}
