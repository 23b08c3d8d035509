//! Cluster roles for people and for every client: the four roles that users are given, and what anyone may see.

use super::{CORE, READ, READ_WRITE, Role, WRITE, at, on};

pub(super) const USER_ROLES: &[Role] = &[
    Role {
        name: "admin",
        gathers: Some("admin"),
        ..Role::NONE
    },
    Role {
        name: "cluster-admin",
        rules: &[on(&["*"], &["*"], &["*"]), at(&["*"], &["*"])],
        ..Role::NONE
    },
    Role {
        name: "edit",
        aggregates_to: Some("admin"),
        gathers: Some("edit"),
        ..Role::NONE
    },
    Role {
        name: "system:aggregate-to-admin",
        aggregates_to: Some("admin"),
        rules: &[
            on(
                &["create"],
                &["authorization.k8s.io"],
                &["localsubjectaccessreviews"],
            ),
            on(
                READ_WRITE,
                &["rbac.authorization.k8s.io"],
                &["rolebindings", "roles"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:aggregate-to-edit",
        aggregates_to: Some("edit"),
        rules: &[
            on(
                READ,
                CORE,
                &[
                    "pods/attach",
                    "pods/exec",
                    "pods/portforward",
                    "pods/proxy",
                    "secrets",
                    "services/proxy",
                ],
            ),
            on(&["impersonate"], CORE, &["serviceaccounts"]),
            on(
                WRITE,
                CORE,
                &[
                    "pods",
                    "pods/attach",
                    "pods/exec",
                    "pods/portforward",
                    "pods/proxy",
                ],
            ),
            on(&["create"], CORE, &["pods/eviction"]),
            on(
                WRITE,
                CORE,
                &[
                    "configmaps",
                    "persistentvolumeclaims",
                    "replicationcontrollers",
                    "replicationcontrollers/scale",
                    "secrets",
                    "serviceaccounts",
                    "services",
                    "services/proxy",
                ],
            ),
            on(&["create"], CORE, &["serviceaccounts/token"]),
            on(WRITE, &["", "events.k8s.io"], &["events"]),
            on(
                WRITE,
                &["apps"],
                &[
                    "daemonsets",
                    "deployments",
                    "deployments/rollback",
                    "deployments/scale",
                    "replicasets",
                    "replicasets/scale",
                    "statefulsets",
                    "statefulsets/scale",
                ],
            ),
            on(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
            on(WRITE, &["batch"], &["cronjobs", "jobs"]),
            on(
                WRITE,
                &["extensions"],
                &[
                    "daemonsets",
                    "deployments",
                    "deployments/rollback",
                    "deployments/scale",
                    "ingresses",
                    "networkpolicies",
                    "replicasets",
                    "replicasets/scale",
                    "replicationcontrollers/scale",
                ],
            ),
            on(WRITE, &["policy"], &["poddisruptionbudgets"]),
            on(WRITE, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
            on(READ_WRITE, &["coordination.k8s.io"], &["leases"]),
            on(
                WRITE,
                &["resource.k8s.io"],
                &["resourceclaims", "resourceclaimtemplates"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:aggregate-to-view",
        aggregates_to: Some("view"),
        rules: &[
            on(
                READ,
                CORE,
                &[
                    "configmaps",
                    "endpoints",
                    "persistentvolumeclaims",
                    "persistentvolumeclaims/status",
                    "pods",
                    "replicationcontrollers",
                    "replicationcontrollers/scale",
                    "serviceaccounts",
                    "services",
                    "services/status",
                ],
            ),
            on(
                READ,
                CORE,
                &[
                    "bindings",
                    "limitranges",
                    "namespaces/status",
                    "pods/log",
                    "pods/status",
                    "replicationcontrollers/status",
                    "resourcequotas",
                    "resourcequotas/status",
                ],
            ),
            on(READ, CORE, &["namespaces"]),
            on(READ, &["", "events.k8s.io"], &["events"]),
            on(READ, &["discovery.k8s.io"], &["endpointslices"]),
            on(
                READ,
                &["apps"],
                &[
                    "controllerrevisions",
                    "daemonsets",
                    "daemonsets/status",
                    "deployments",
                    "deployments/scale",
                    "deployments/status",
                    "replicasets",
                    "replicasets/scale",
                    "replicasets/status",
                    "statefulsets",
                    "statefulsets/scale",
                    "statefulsets/status",
                ],
            ),
            on(
                READ,
                &["autoscaling"],
                &["horizontalpodautoscalers", "horizontalpodautoscalers/status"],
            ),
            on(
                READ,
                &["batch"],
                &["cronjobs", "cronjobs/status", "jobs", "jobs/status"],
            ),
            on(
                READ,
                &["extensions"],
                &[
                    "daemonsets",
                    "daemonsets/status",
                    "deployments",
                    "deployments/scale",
                    "deployments/status",
                    "ingresses",
                    "ingresses/status",
                    "networkpolicies",
                    "replicasets",
                    "replicasets/scale",
                    "replicasets/status",
                    "replicationcontrollers/scale",
                ],
            ),
            on(
                READ,
                &["policy"],
                &["poddisruptionbudgets", "poddisruptionbudgets/status"],
            ),
            on(
                READ,
                &["networking.k8s.io"],
                &["ingresses", "ingresses/status", "networkpolicies"],
            ),
            on(
                READ,
                &["resource.k8s.io"],
                &[
                    "resourceclaims",
                    "resourceclaims/status",
                    "resourceclaimtemplates",
                ],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:basic-user",
        rules: &[
            on(
                &["create"],
                &["authorization.k8s.io"],
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ),
            on(&["create"], &["authentication.k8s.io"], &["selfsubjectreviews"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:discovery",
        rules: &[at(
            &["get"],
            &[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:monitoring",
        rules: &[
            at(
                &["get"],
                &[
                    "/flagz",
                    "/healthz",
                    "/healthz/*",
                    "/livez",
                    "/livez/*",
                    "/metrics",
                    "/metrics/slis",
                    "/readyz",
                    "/readyz/*",
                    "/statusz",
                ],
            ),
            on(&["get"], CORE, &["nodes/metrics"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:public-info-viewer",
        rules: &[at(
            &["get"],
            &["/healthz", "/livez", "/readyz", "/version", "/version/"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:service-account-issuer-discovery",
        rules: &[at(
            &["get"],
            &[
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ],
        )],
        ..Role::NONE
    },
    Role {
        name: "view",
        aggregates_to: Some("edit"),
        gathers: Some("view"),
        ..Role::NONE
    },
];
