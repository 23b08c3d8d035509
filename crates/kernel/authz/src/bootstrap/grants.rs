//! To whom the default roles are granted.

use super::Grant;
use super::Holder::{Group, ServiceAccount, User};

pub(super) const CLUSTER_GRANTS: &[Grant] = &[
    Grant {
        name: "cluster-admin",
        role: "cluster-admin",
        subjects: &[Group("system:masters")],
        ..Grant::NONE
    },
    Grant {
        name: "system:basic-user",
        role: "system:basic-user",
        subjects: &[Group("system:authenticated")],
        ..Grant::NONE
    },
    Grant {
        name: "system:discovery",
        role: "system:discovery",
        subjects: &[Group("system:authenticated")],
        ..Grant::NONE
    },
    Grant {
        name: "system:kube-controller-manager",
        role: "system:kube-controller-manager",
        subjects: &[User("system:kube-controller-manager")],
        ..Grant::NONE
    },
    Grant {
        name: "system:kube-dns",
        role: "system:kube-dns",
        subjects: &[ServiceAccount("kube-system", "kube-dns")],
        ..Grant::NONE
    },
    Grant {
        name: "system:kube-scheduler",
        role: "system:kube-scheduler",
        subjects: &[User("system:kube-scheduler")],
        ..Grant::NONE
    },
    Grant {
        name: "system:monitoring",
        role: "system:monitoring",
        subjects: &[Group("system:monitoring")],
        ..Grant::NONE
    },
    Grant {
        name: "system:node",
        role: "system:node",
        subjects: &[],
        ..Grant::NONE
    },
    Grant {
        name: "system:node-proxier",
        role: "system:node-proxier",
        subjects: &[User("system:kube-proxy")],
        ..Grant::NONE
    },
    Grant {
        name: "system:public-info-viewer",
        role: "system:public-info-viewer",
        subjects: &[Group("system:authenticated"), Group("system:unauthenticated")],
        ..Grant::NONE
    },
    Grant {
        name: "system:service-account-issuer-discovery",
        role: "system:service-account-issuer-discovery",
        subjects: &[Group("system:serviceaccounts")],
        ..Grant::NONE
    },
    Grant {
        name: "system:volume-scheduler",
        role: "system:volume-scheduler",
        subjects: &[User("system:kube-scheduler")],
        ..Grant::NONE
    },
];

pub(super) const NAMESPACED_GRANTS: &[Grant] = &[
    Grant {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-public",
        role: "system:controller:bootstrap-signer",
        subjects: &[ServiceAccount("kube-system", "bootstrap-signer")],
    },
    Grant {
        name: "system::extension-apiserver-authentication-reader",
        namespace: "kube-system",
        role: "extension-apiserver-authentication-reader",
        subjects: &[
            User("system:kube-controller-manager"),
            User("system:kube-scheduler"),
        ],
    },
    Grant {
        name: "system::leader-locking-kube-controller-manager",
        namespace: "kube-system",
        role: "system::leader-locking-kube-controller-manager",
        subjects: &[
            User("system:kube-controller-manager"),
            ServiceAccount("kube-system", "kube-controller-manager"),
            ServiceAccount("kube-system", "leader-election-controller"),
        ],
    },
    Grant {
        name: "system::leader-locking-kube-scheduler",
        namespace: "kube-system",
        role: "system::leader-locking-kube-scheduler",
        subjects: &[
            User("system:kube-scheduler"),
            ServiceAccount("kube-system", "kube-scheduler"),
        ],
    },
    Grant {
        name: "system:controller:bootstrap-signer",
        namespace: "kube-system",
        role: "system:controller:bootstrap-signer",
        subjects: &[ServiceAccount("kube-system", "bootstrap-signer")],
    },
    Grant {
        name: "system:controller:cloud-provider",
        namespace: "kube-system",
        role: "system:controller:cloud-provider",
        subjects: &[ServiceAccount("kube-system", "cloud-provider")],
    },
    Grant {
        name: "system:controller:token-cleaner",
        namespace: "kube-system",
        role: "system:controller:token-cleaner",
        subjects: &[ServiceAccount("kube-system", "token-cleaner")],
    },
];
