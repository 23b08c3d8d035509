//! Roles in the namespaces that the system keeps for itself.

use super::{CORE, EVENTS, READ, Role, named, on};

pub(super) const NAMESPACED_ROLES: &[Role] = &[
    Role {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-public",
        rules: &[
            on(READ, CORE, &["configmaps"]),
            named(&["update"], CORE, &["configmaps"], &["cluster-info"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    Role {
        name: "extension-apiserver-authentication-reader",
        namespace: "kube-system",
        rules: &[named(
            READ,
            CORE,
            &["configmaps"],
            &["extension-apiserver-authentication"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system::leader-locking-kube-controller-manager",
        namespace: "kube-system",
        rules: &[
            on(
                &["create", "get", "list", "update", "watch"],
                &["coordination.k8s.io"],
                &["leases"],
            ),
            on(
                &["create", "get", "list", "update", "watch"],
                &["coordination.k8s.io"],
                &["leasecandidates"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system::leader-locking-kube-scheduler",
        namespace: "kube-system",
        rules: &[
            on(
                &["create", "get", "list", "update", "watch"],
                &["coordination.k8s.io"],
                &["leases"],
            ),
            on(
                &["create", "get", "list", "update", "watch"],
                &["coordination.k8s.io"],
                &["leasecandidates"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-system",
        rules: &[on(READ, CORE, &["secrets"])],
        ..Role::NONE
    },
    Role {
        name: "system:controller:cloud-provider",
        namespace: "kube-system",
        rules: &[on(&["create", "get", "list", "watch"], CORE, &["configmaps"])],
        ..Role::NONE
    },
    Role {
        name: "system:controller:token-cleaner",
        namespace: "kube-system",
        rules: &[
            on(&["delete", "get", "list", "watch"], CORE, &["secrets"]),
            EVENTS,
        ],
        ..Role::NONE
    },
];
