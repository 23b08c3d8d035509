//! Cluster roles for the components of a cluster and for its add-ons.

use super::{CORE, EVENTS, READ, READ_UPDATE, READ_WRITE, Role, named, on};

pub(super) const COMPONENT_ROLES: &[Role] = &[
    Role {
        name: "system:auth-delegator",
        rules: &[
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        rules: &[on(
            &["create"],
            &["certificates.k8s.io"],
            &["certificatesigningrequests/nodeclient"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        rules: &[on(
            &["create"],
            &["certificates.k8s.io"],
            &["certificatesigningrequests/selfnodeclient"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:kube-apiserver-client-approver",
        rules: &[named(
            &["approve"],
            &["certificates.k8s.io"],
            &["signers"],
            &["kubernetes.io/kube-apiserver-client"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        rules: &[named(
            &["approve"],
            &["certificates.k8s.io"],
            &["signers"],
            &["kubernetes.io/kube-apiserver-client-kubelet"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:kubelet-serving-approver",
        rules: &[named(
            &["approve"],
            &["certificates.k8s.io"],
            &["signers"],
            &["kubernetes.io/kubelet-serving"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:certificates.k8s.io:legacy-unknown-approver",
        rules: &[named(
            &["approve"],
            &["certificates.k8s.io"],
            &["signers"],
            &["kubernetes.io/legacy-unknown"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:heapster",
        rules: &[
            on(READ, CORE, &["events", "namespaces", "nodes", "pods"]),
            on(READ, &["extensions"], &["deployments"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:kube-aggregator",
        rules: &[on(READ, CORE, &["endpoints", "services"])],
        ..Role::NONE
    },
    Role {
        name: "system:kube-controller-manager",
        rules: &[
            EVENTS,
            on(&["create"], &["coordination.k8s.io"], &["leases"]),
            named(
                &["get", "update"],
                &["coordination.k8s.io"],
                &["leases"],
                &["kube-controller-manager"],
            ),
            on(&["create"], CORE, &["secrets", "serviceaccounts"]),
            on(&["delete"], CORE, &["secrets"]),
            on(
                &["get"],
                CORE,
                &["configmaps", "namespaces", "secrets", "serviceaccounts"],
            ),
            on(&["update"], CORE, &["secrets", "serviceaccounts"]),
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            on(&["list", "watch"], &["*"], &["*"]),
            on(&["create"], CORE, &["serviceaccounts/token"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:kube-dns",
        rules: &[on(&["list", "watch"], CORE, &["endpoints", "services"])],
        ..Role::NONE
    },
    Role {
        name: "system:kube-scheduler",
        rules: &[
            EVENTS,
            on(&["create"], &["coordination.k8s.io"], &["leases"]),
            named(
                &["get", "list", "update", "watch"],
                &["coordination.k8s.io"],
                &["leases"],
                &["kube-scheduler"],
            ),
            on(READ_WRITE, &["coordination.k8s.io"], &["leasecandidates"]),
            on(READ, CORE, &["nodes"]),
            on(&["delete", "get", "list", "watch"], CORE, &["pods"]),
            on(&["create"], CORE, &["bindings", "pods/binding"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(READ, CORE, &["replicationcontrollers", "services"]),
            on(READ, &["apps", "extensions"], &["replicasets"]),
            on(READ, &["apps"], &["statefulsets"]),
            on(READ, &["policy"], &["poddisruptionbudgets"]),
            on(READ, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            on(READ, &["storage.k8s.io"], &["csinodes"]),
            on(READ, &["storage.k8s.io"], &["volumeattachments"]),
            on(READ, CORE, &["namespaces"]),
            on(READ, &["storage.k8s.io"], &["csidrivers"]),
            on(READ, &["storage.k8s.io"], &["csistoragecapacities"]),
            on(READ, &["resource.k8s.io"], &["deviceclasses"]),
            on(READ_UPDATE, &["resource.k8s.io"], &["resourceclaims"]),
            on(READ_UPDATE, &["resource.k8s.io"], &["resourceclaims/status"]),
            on(&["update"], CORE, &["pods/finalizers"]),
            on(READ, &["resource.k8s.io"], &["resourceslices"]),
            on(&["create", "delete"], &["resource.k8s.io"], &["resourceclaims"]),
            on(
                &["patch", "update"],
                &["resource.k8s.io"],
                &["resourceclaims/binding"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:kubelet-api-admin",
        rules: &[
            on(READ, CORE, &["nodes"]),
            on(&["proxy"], CORE, &["nodes"]),
            on(
                &["*"],
                CORE,
                &["nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"],
            ),
            on(&["*"], CORE, &["nodes/configz", "nodes/healthz", "nodes/pods"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:node",
        rules: &[
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(
                &["create"],
                &["authorization.k8s.io"],
                &["localsubjectaccessreviews", "subjectaccessreviews"],
            ),
            on(READ, CORE, &["services"]),
            on(&["create", "get", "list", "watch"], CORE, &["nodes"]),
            on(&["patch", "update"], CORE, &["nodes/status"]),
            on(&["patch", "update"], CORE, &["nodes"]),
            EVENTS,
            on(READ, CORE, &["pods"]),
            on(&["create", "delete"], CORE, &["pods"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(&["create"], CORE, &["pods/eviction"]),
            on(READ, CORE, &["configmaps", "secrets"]),
            on(&["get"], CORE, &["persistentvolumeclaims", "persistentvolumes"]),
            on(&["get"], CORE, &["endpoints"]),
            on(
                &["create", "get", "list", "watch"],
                &["certificates.k8s.io"],
                &["certificatesigningrequests"],
            ),
            on(
                &["create", "delete", "get", "patch", "update"],
                &["coordination.k8s.io"],
                &["leases"],
            ),
            on(&["get"], &["storage.k8s.io"], &["volumeattachments"]),
            on(&["create"], CORE, &["serviceaccounts/token"]),
            on(
                &["get", "patch", "update"],
                CORE,
                &["persistentvolumeclaims/status"],
            ),
            on(READ, &["storage.k8s.io"], &["csidrivers"]),
            on(
                &["create", "delete", "get", "patch", "update"],
                &["storage.k8s.io"],
                &["csinodes"],
            ),
            on(READ, &["node.k8s.io"], &["runtimeclasses"]),
            on(&["get"], &["resource.k8s.io"], &["resourceclaims"]),
            on(&["deletecollection"], &["resource.k8s.io"], &["resourceslices"]),
            on(&["get"], CORE, &["serviceaccounts"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:node-bootstrapper",
        rules: &[on(
            &["create", "get", "list", "watch"],
            &["certificates.k8s.io"],
            &["certificatesigningrequests"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:node-problem-detector",
        rules: &[
            on(&["get"], CORE, &["nodes"]),
            on(&["patch"], CORE, &["nodes/status"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:node-proxier",
        rules: &[
            on(&["list", "watch"], CORE, &["endpoints", "services"]),
            on(READ, CORE, &["nodes"]),
            EVENTS,
            on(&["list", "watch"], &["networking.k8s.io"], &["servicecidrs"]),
            on(&["list", "watch"], &["discovery.k8s.io"], &["endpointslices"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:persistent-volume-provisioner",
        rules: &[
            on(
                &["create", "delete", "get", "list", "watch"],
                CORE,
                &["persistentvolumes"],
            ),
            on(
                &["get", "list", "update", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(READ, &["storage.k8s.io"], &["storageclasses"]),
            on(&["watch"], CORE, &["events"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:volume-scheduler",
        rules: &[
            on(READ_UPDATE, CORE, &["persistentvolumes"]),
            on(READ, &["storage.k8s.io"], &["storageclasses"]),
            on(READ_UPDATE, CORE, &["persistentvolumeclaims"]),
        ],
        ..Role::NONE
    },
];
