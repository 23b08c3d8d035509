//! Cluster roles of the controllers, one each. The binding of each is derived from its name.

use super::{CORE, EVENTS, READ, READ_UPDATE, Role, named, on};

pub(super) const CONTROLLER_ROLES: &[Role] = &[
    Role {
        name: "system:controller:attachdetach-controller",
        rules: &[
            on(
                &["list", "watch"],
                CORE,
                &["persistentvolumeclaims", "persistentvolumes"],
            ),
            on(READ, CORE, &["nodes"]),
            on(&["patch", "update"], CORE, &["nodes/status"]),
            on(&["list", "watch"], CORE, &["pods"]),
            EVENTS,
            on(
                &["create", "delete", "get", "list", "watch"],
                &["storage.k8s.io"],
                &["volumeattachments"],
            ),
            on(READ, &["storage.k8s.io"], &["csidrivers"]),
            on(READ, &["storage.k8s.io"], &["csinodes"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:certificate-controller",
        rules: &[
            on(
                &["delete", "get", "list", "watch"],
                &["certificates.k8s.io"],
                &["certificatesigningrequests"],
            ),
            on(
                &["update"],
                &["certificates.k8s.io"],
                &[
                    "certificatesigningrequests/approval",
                    "certificatesigningrequests/status",
                ],
            ),
            named(
                &["approve"],
                &["certificates.k8s.io"],
                &["signers"],
                &["kubernetes.io/kube-apiserver-client-kubelet"],
            ),
            named(
                &["sign"],
                &["certificates.k8s.io"],
                &["signers"],
                &[
                    "kubernetes.io/kube-apiserver-client",
                    "kubernetes.io/kube-apiserver-client-kubelet",
                    "kubernetes.io/kubelet-serving",
                    "kubernetes.io/legacy-unknown",
                ],
            ),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:clusterrole-aggregation-controller",
        rules: &[on(
            &["escalate", "get", "list", "patch", "update", "watch"],
            &["rbac.authorization.k8s.io"],
            &["clusterroles"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:controller:cronjob-controller",
        rules: &[
            on(&["get", "list", "update", "watch"], &["batch"], &["cronjobs"]),
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["batch"],
                &["jobs"],
            ),
            on(&["update"], &["batch"], &["cronjobs/status"]),
            on(&["update"], &["batch"], &["cronjobs/finalizers"]),
            on(&["delete", "list", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:daemon-set-controller",
        rules: &[
            on(READ, &["apps", "extensions"], &["daemonsets"]),
            on(&["update"], &["apps", "extensions"], &["daemonsets/status"]),
            on(&["update"], &["apps", "extensions"], &["daemonsets/finalizers"]),
            on(&["list", "watch"], CORE, &["nodes"]),
            on(&["create", "delete", "list", "patch", "watch"], CORE, &["pods"]),
            on(&["create"], CORE, &["pods/binding"]),
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["apps"],
                &["controllerrevisions"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:deployment-controller",
        rules: &[
            on(
                &["get", "list", "update", "watch"],
                &["apps", "extensions"],
                &["deployments"],
            ),
            on(&["update"], &["apps", "extensions"], &["deployments/status"]),
            on(&["update"], &["apps", "extensions"], &["deployments/finalizers"]),
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["apps", "extensions"],
                &["replicasets"],
            ),
            on(&["get", "list", "update", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:device-taint-eviction-controller",
        rules: &[
            on(&["delete", "get", "list", "watch"], CORE, &["pods"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(READ, &["resource.k8s.io"], &["resourceclaims"]),
            on(READ, &["resource.k8s.io"], &["resourceslices"]),
            on(READ, &["resource.k8s.io"], &["deviceclasses"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:disruption-controller",
        rules: &[
            on(READ, &["apps", "extensions"], &["deployments"]),
            on(READ, &["apps", "extensions"], &["replicasets"]),
            on(READ, CORE, &["replicationcontrollers"]),
            on(READ, &["policy"], &["poddisruptionbudgets"]),
            on(READ, &["apps"], &["statefulsets"]),
            on(&["update"], &["policy"], &["poddisruptionbudgets/status"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(&["get"], &["*"], &["*/scale"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:endpoint-controller",
        rules: &[
            on(READ, CORE, &["pods", "services"]),
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                CORE,
                &["endpoints"],
            ),
            on(&["create"], CORE, &["endpoints/restricted"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:endpointslice-controller",
        rules: &[
            on(READ, CORE, &["nodes", "pods", "services"]),
            on(&["update"], CORE, &["services/finalizers"]),
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                &["discovery.k8s.io"],
                &["endpointslices"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:endpointslicemirroring-controller",
        rules: &[
            on(READ, CORE, &["endpoints", "services"]),
            on(&["update"], CORE, &["services/finalizers"]),
            on(&["update"], CORE, &["endpoints/finalizers"]),
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                &["discovery.k8s.io"],
                &["endpointslices"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:ephemeral-volume-controller",
        rules: &[
            on(READ, CORE, &["pods"]),
            on(&["update"], CORE, &["pods/finalizers"]),
            on(
                &["create", "get", "list", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:expand-controller",
        rules: &[
            on(READ_UPDATE, CORE, &["persistentvolumes"]),
            on(&["patch", "update"], CORE, &["persistentvolumeclaims/status"]),
            on(READ, CORE, &["persistentvolumeclaims"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:generic-garbage-collector",
        rules: &[
            on(
                &["delete", "get", "list", "patch", "update", "watch"],
                &["*"],
                &["*"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:horizontal-pod-autoscaler",
        rules: &[
            on(READ, &["autoscaling"], &["horizontalpodautoscalers"]),
            on(
                &["update"],
                &["autoscaling"],
                &["horizontalpodautoscalers/status"],
            ),
            on(&["get", "update"], &["*"], &["*/scale"]),
            on(&["list", "watch"], CORE, &["pods"]),
            on(&["list", "watch"], &["metrics.k8s.io"], &["pods"]),
            on(READ, &["custom.metrics.k8s.io"], &["*"]),
            on(READ, &["external.metrics.k8s.io"], &["*"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:job-controller",
        rules: &[
            on(READ_UPDATE, &["batch"], &["jobs"]),
            on(&["update"], &["batch"], &["jobs/status"]),
            on(&["update"], &["batch"], &["jobs/finalizers"]),
            on(&["create", "delete", "list", "patch", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:legacy-service-account-token-cleaner",
        rules: &[
            named(
                &["get"],
                CORE,
                &["configmaps"],
                &["kube-apiserver-legacy-service-account-token-tracking"],
            ),
            on(&["delete", "patch"], CORE, &["secrets"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:namespace-controller",
        rules: &[
            on(&["delete", "get", "list", "watch"], CORE, &["namespaces"]),
            on(&["update"], CORE, &["namespaces/finalize", "namespaces/status"]),
            on(
                &["delete", "deletecollection", "get", "list", "watch"],
                &["*"],
                &["*"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:node-controller",
        rules: &[
            on(
                &["delete", "get", "list", "patch", "update", "watch"],
                CORE,
                &["nodes"],
            ),
            on(&["patch", "update"], CORE, &["nodes/status"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(&["delete", "get", "list", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:persistent-volume-binder",
        rules: &[
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                CORE,
                &["persistentvolumes"],
            ),
            on(&["update"], CORE, &["persistentvolumes/status"]),
            on(
                &["get", "list", "update", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(&["update"], CORE, &["persistentvolumeclaims/status"]),
            on(&["create", "delete", "get", "list", "watch"], CORE, &["pods"]),
            on(READ, &["storage.k8s.io"], &["storageclasses"]),
            on(&["list", "watch"], CORE, &["nodes"]),
            EVENTS,
            on(&["watch"], CORE, &["events"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:pod-garbage-collector",
        rules: &[
            on(&["delete", "list", "watch"], CORE, &["pods"]),
            on(READ, CORE, &["nodes"]),
            on(&["patch"], CORE, &["pods/status"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:pv-protection-controller",
        rules: &[
            on(&["get", "list", "update", "watch"], CORE, &["persistentvolumes"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:pvc-protection-controller",
        rules: &[
            on(
                &["get", "list", "update", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(&["update"], CORE, &["persistentvolumeclaims/status"]),
            on(READ, CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:replicaset-controller",
        rules: &[
            on(
                &["get", "list", "update", "watch"],
                &["apps", "extensions"],
                &["replicasets"],
            ),
            on(&["update"], &["apps", "extensions"], &["replicasets/status"]),
            on(&["update"], &["apps", "extensions"], &["replicasets/finalizers"]),
            on(&["create", "delete", "list", "patch", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:replication-controller",
        rules: &[
            on(
                &["get", "list", "update", "watch"],
                CORE,
                &["replicationcontrollers"],
            ),
            on(&["update"], CORE, &["replicationcontrollers/status"]),
            on(&["update"], CORE, &["replicationcontrollers/finalizers"]),
            on(&["create", "delete", "list", "patch", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:resource-claim-controller",
        rules: &[
            on(READ, CORE, &["pods"]),
            on(&["update"], CORE, &["pods/finalizers"]),
            on(
                &["create", "delete", "get", "list", "watch"],
                &["resource.k8s.io"],
                &["resourceclaims"],
            ),
            on(
                &["patch", "update"],
                &["resource.k8s.io"],
                &["resourceclaims", "resourceclaims/status"],
            ),
            on(&["patch", "update"], CORE, &["pods/status"]),
            EVENTS,
            on(
                &["patch", "update"],
                &["resource.k8s.io"],
                &["resourceclaims/binding"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:resourcequota-controller",
        rules: &[
            on(&["list", "watch"], &["*"], &["*"]),
            on(&["update"], CORE, &["resourcequotas/status"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:root-ca-cert-publisher",
        rules: &[on(&["create", "update"], CORE, &["configmaps"]), EVENTS],
        ..Role::NONE
    },
    Role {
        name: "system:controller:route-controller",
        rules: &[
            on(&["list", "watch"], CORE, &["nodes"]),
            on(&["patch"], CORE, &["nodes/status"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:selinux-warning-controller",
        rules: &[
            EVENTS,
            on(READ, CORE, &["persistentvolumes"]),
            on(READ, CORE, &["persistentvolumeclaims"]),
            on(READ, CORE, &["pods"]),
            on(READ, &["storage.k8s.io"], &["csidrivers"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:service-account-controller",
        rules: &[on(&["create"], CORE, &["serviceaccounts"]), EVENTS],
        ..Role::NONE
    },
    Role {
        name: "system:controller:service-cidrs-controller",
        rules: &[
            on(READ_UPDATE, &["networking.k8s.io"], &["servicecidrs"]),
            on(
                &["patch", "update"],
                &["networking.k8s.io"],
                &["servicecidrs/finalizers"],
            ),
            on(
                &["patch", "update"],
                &["networking.k8s.io"],
                &["servicecidrs/status"],
            ),
            on(READ, &["networking.k8s.io"], &["ipaddresses"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:service-controller",
        rules: &[
            on(READ, CORE, &["services"]),
            on(&["patch", "update"], CORE, &["services/status"]),
            on(&["list", "watch"], CORE, &["nodes"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:statefulset-controller",
        rules: &[
            on(&["list", "watch"], CORE, &["pods"]),
            on(READ, &["apps"], &["statefulsets"]),
            on(&["update"], &["apps"], &["statefulsets/status"]),
            on(&["update"], &["apps"], &["statefulsets/finalizers"]),
            on(&["create", "delete", "get", "patch", "update"], CORE, &["pods"]),
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["apps"],
                &["controllerrevisions"],
            ),
            on(
                &["create", "get", "list", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(&["delete", "update"], CORE, &["persistentvolumeclaims"]),
            on(&["update"], CORE, &["pods/finalizers"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:ttl-after-finished-controller",
        rules: &[
            on(&["delete", "get", "list", "watch"], &["batch"], &["jobs"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:ttl-controller",
        rules: &[
            on(&["list", "patch", "update", "watch"], CORE, &["nodes"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:validatingadmissionpolicy-status-controller",
        rules: &[
            on(
                READ,
                &["admissionregistration.k8s.io"],
                &["validatingadmissionpolicies"],
            ),
            on(
                &["get", "patch", "update"],
                &["admissionregistration.k8s.io"],
                &["validatingadmissionpolicies/status"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:volumeattributesclass-protection-controller",
        rules: &[
            on(READ, CORE, &["persistentvolumeclaims"]),
            on(READ, CORE, &["persistentvolumes"]),
            on(
                &["get", "list", "update", "watch"],
                &["storage.k8s.io"],
                &["volumeattributesclasses"],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
];
