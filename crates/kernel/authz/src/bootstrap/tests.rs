//! The default policy grants what it should, and equals upstream's.

use std::collections::BTreeMap;

use super::objects;
use crate::{Attributes, Kind, Policy, ResourceAttributes, UserInfo};

fn policy() -> Policy {
    let mut policy = Policy::new();
    for item in objects() {
        policy.upsert(item.kind, item.namespace, item.name, &item.object);
    }
    policy
}

/// Writes pending aggregations as the controller would, and says in how many rounds they settled.
fn settle(policy: &mut Policy) -> usize {
    let labels: BTreeMap<_, _> = objects()
        .into_iter()
        .filter(|item| item.kind == Kind::ClusterRole)
        .map(|item| (item.name, item.object))
        .collect();
    for round in 0..10 {
        let pending = policy.pending_aggregations();
        if pending.is_empty() {
            return round;
        }
        for role in pending {
            let mut object = labels[role.name.as_str()].clone();
            object["rules"] = serde_json::to_value(&role.rules).unwrap();
            policy.upsert(Kind::ClusterRole, "", &role.name, &object);
        }
    }
    panic!("aggregation does not settle");
}

fn may(policy: &Policy, user: &UserInfo, verb: &str, resource: &str, namespace: &str) -> bool {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let target = ResourceAttributes {
        group,
        resource,
        namespace,
        ..Default::default()
    };
    policy
        .authorize(&Attributes {
            user,
            verb,
            resource: Some(target),
            path: "",
        })
        .is_allowed()
}

#[test]
fn aggregated_roles_settle_and_nest() {
    let mut policy = policy();
    let names: Vec<_> = policy
        .pending_aggregations()
        .into_iter()
        .map(|role| role.name)
        .collect();
    assert_eq!(names, ["admin", "edit", "view"]);
    assert!((1..=4).contains(&settle(&mut policy)));
    for role in ["admin", "edit", "view"] {
        let binding = serde_json::json!({
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": role}],
        });
        policy.upsert(Kind::RoleBinding, "ns", role, &binding);
    }
    let user = |name: &str| UserInfo::new(name, ["system:authenticated"]);
    for (name, verb, resource, want) in [
        ("view", "list", "pods", true),
        ("view", "get", "secrets", false),
        ("view", "create", "pods", false),
        ("edit", "get", "secrets", true),
        ("edit", "create", "deployments.apps", true),
        ("edit", "create", "rolebindings.rbac.authorization.k8s.io", false),
        ("admin", "list", "pods", true),
        ("admin", "create", "rolebindings.rbac.authorization.k8s.io", true),
        ("admin", "create", "resourcequotas", false),
        ("view", "list", "virtualmachines.kubevirt.io", true),
        ("view", "create", "virtualmachines.kubevirt.io", false),
        ("view", "get", "datavolumes.cdi.kubevirt.io", true),
        ("edit", "create", "virtualmachines.kubevirt.io", true),
        ("edit", "deletecollection", "virtualmachines.kubevirt.io", false),
        ("edit", "deletecollection", "datavolumes.cdi.kubevirt.io", true),
        (
            "edit",
            "get",
            "virtualmachineinstancemigrations.kubevirt.io",
            true,
        ),
        (
            "edit",
            "create",
            "virtualmachineinstancemigrations.kubevirt.io",
            false,
        ),
        ("admin", "deletecollection", "virtualmachines.kubevirt.io", true),
        ("admin", "update", "kubevirts.kubevirt.io", false),
        ("view", "list", "httproutes.gateway.networking.k8s.io", true),
        ("view", "create", "httproutes.gateway.networking.k8s.io", false),
        ("edit", "create", "routes.route.openshift.io", true),
        ("edit", "patch", "authpolicies.kuadrant.io", true),
        (
            "edit",
            "delete",
            "gatewayclasses.gateway.networking.k8s.io",
            false,
        ),
    ] {
        assert_eq!(
            may(&policy, &user(name), verb, resource, "ns"),
            want,
            "{name} {verb} {resource}"
        );
    }
}

#[test]
fn anonymous_requests_reach_only_health_and_version() {
    let policy = policy();
    let anonymous = UserInfo::new("system:anonymous", ["system:unauthenticated"]);
    for (path, want) in [
        ("/healthz", true),
        ("/livez", true),
        ("/readyz", true),
        ("/version", true),
        ("/metrics", false),
        ("/api", false),
        ("/openapi/v3", false),
    ] {
        let attributes = Attributes {
            user: &anonymous,
            verb: "get",
            resource: None,
            path,
        };
        assert_eq!(policy.authorize(&attributes).is_allowed(), want, "{path}");
    }
    assert!(!may(&policy, &anonymous, "get", "namespaces", ""));
}

#[test]
fn controllers_have_least_privilege() {
    let policy = policy();
    let collector = UserInfo::new(
        "system:serviceaccount:kube-system:generic-garbage-collector",
        [""; 0],
    );
    assert!(may(&policy, &collector, "delete", "widgets.example.com", "ns"));
    assert!(!may(&policy, &collector, "create", "secrets", "ns"));
    let publisher = UserInfo::new(
        "system:serviceaccount:kube-system:root-ca-cert-publisher",
        [""; 0],
    );
    assert!(may(&policy, &publisher, "create", "configmaps", "ns"));
    assert!(!may(&policy, &publisher, "delete", "configmaps", "ns"));
    let node = UserInfo::new("system:serviceaccount:kube-system:fairway-machines-node", [""; 0]);
    assert!(may(
        &policy,
        &node,
        "patch",
        "virtualmachineinstances.kubevirt.io",
        "ns"
    ));
    assert!(!may(&policy, &node, "patch", "virtualmachines.kubevirt.io", "ns"));
    assert!(!may(&policy, &node, "patch", "secrets", "ns"));
}

#[test]
fn subresources_of_machines_are_granted_one_by_one() {
    let mut policy = policy();
    settle(&mut policy);
    for role in ["edit", "view", "kubevirt.io:migrate"] {
        let binding = serde_json::json!({
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": role}],
        });
        policy.upsert(Kind::RoleBinding, "ns", role, &binding);
    }
    for (name, verb, resource, subresource, want) in [
        ("edit", "get", "virtualmachineinstances", "console", true),
        ("edit", "get", "virtualmachineinstances", "vnc/screenshot", true),
        ("edit", "update", "virtualmachines", "start", true),
        ("edit", "update", "virtualmachines", "migrate", false),
        (
            "kubevirt.io:migrate",
            "update",
            "virtualmachines",
            "migrate",
            true,
        ),
        ("view", "get", "virtualmachineinstances", "console", false),
        ("view", "get", "virtualmachineinstances", "guestosinfo", true),
        ("view", "update", "virtualmachines", "stop", false),
        ("nobody", "get", "version", "", true),
    ] {
        let target = ResourceAttributes {
            group: "subresources.kubevirt.io",
            resource,
            subresource,
            namespace: if resource == "version" { "" } else { "ns" },
            ..Default::default()
        };
        let attributes = Attributes {
            user: &UserInfo::new(name, ["system:authenticated"]),
            verb,
            resource: Some(target),
            path: "",
        };
        let answer = policy.authorize(&attributes).is_allowed();
        assert_eq!(answer, want, "{name} {verb} {resource}/{subresource}");
    }
}

#[test]
fn names_are_unique() {
    let mut seen = std::collections::HashSet::new();
    for item in objects() {
        assert!(
            seen.insert((item.kind, item.namespace, item.name)),
            "{} twice",
            item.name
        );
    }
    assert_eq!(
        seen.len(),
        133 + 46 + 4 + 2 + 12 + 10 + 3 + 2 + 3 + 10 + 4 + 1 + 2 + 3 + 2,
        "upstream's, twenty-three roles of Fairway with their bindings, four of workspaces, two of GitOps, those of machines' six \
         parts, ten roles for people with machines and three bindings of them, one role of joining with its binding and three \
         bindings of nodes, those of gateways' five parts, four roles for people with gateways and one binding, that of the \
         catalog, three roles for people with it, two for people with runs of templates"
    );
}

/// Compares every object with the lists that upstream keeps for its own tests. They are in the Kubernetes Go module,
/// which `FAIRWAY_K8S_MODULE` points to.
#[test]
fn equals_upstream() {
    let Ok(module) = std::env::var("FAIRWAY_K8S_MODULE") else {
        println!("SKIPPED: FAIRWAY_K8S_MODULE is not set");
        return;
    };
    let folder =
        std::path::Path::new(&module).join("plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata");
    let mut upstream = BTreeMap::new();
    for file in [
        "cluster-roles.yaml",
        "cluster-role-bindings.yaml",
        "controller-roles.yaml",
        "controller-role-bindings.yaml",
        "namespace-roles.yaml",
        "namespace-role-bindings.yaml",
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let list = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default()).unwrap();
        for item in list["items"].as_array().unwrap() {
            // Namespaced objects are in lists within the list.
            let inner = item["items"]
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![item.clone()]);
            upstream.extend(inner.into_iter().map(|object| (identity(&object), object)));
        }
    }
    let ours: BTreeMap<_, _> = objects()
        .into_iter()
        .filter(|item| {
            ![
                "catalog.fairway.dev:",
                "cdi.kubevirt.io:",
                "gateway.fairway.dev:",
                "instancetype.kubevirt.io:",
                "kubevirt.io:",
                "system:argocd:",
                "system:controller:fairway-",
                "system:kcp:",
            ]
            .iter()
            .any(|own| item.name.starts_with(own))
        })
        .map(|item| (identity(&item.object), item.object))
        .collect();
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        upstream.keys().collect::<Vec<_>>()
    );
    for (name, mut object) in upstream {
        if object["subjects"].is_null() {
            object.as_object_mut().unwrap().shift_remove("subjects");
        }
        assert_eq!(ours[&name], object, "{name}");
    }
}

fn identity(object: &serde_json::Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}
