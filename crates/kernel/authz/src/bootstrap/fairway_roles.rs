//! Roles of Fairway's own controllers, for what upstream does inside the server, in etcd, or with watches that may see
//! everything.

use super::{CORE, READ, READ_UPDATE, Role, named, on};

pub(super) const FAIRWAY_ROLES: &[Role] = &[
    Role {
        name: "system:controller:fairway-api-binding-controller",
        rules: &[
            on(READ_UPDATE, &["apis.kcp.io"], &["apibindings"]),
            on(&["patch"], &["apis.kcp.io"], &["apibindings/status"]),
            on(
                READ,
                &["apis.kcp.io"],
                &["apiexportendpointslices", "apiexports", "apiresourceschemas"],
            ),
            on(&["get", "patch"], &["core.kcp.io"], &["logicalclusters"]),
            on(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
            // Objects of what a binding brought go with it, and objects of any kind may be under a claim.
            on(&["delete", "get", "list", "patch"], &["*"], &["*"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-api-export-controller",
        rules: &[
            on(READ_UPDATE, &["apis.kcp.io"], &["apiexports"]),
            on(&["create", "get"], &["apis.kcp.io"], &["apiexportendpointslices"]),
            on(
                &["patch"],
                &["apis.kcp.io"],
                &["apiexportendpointslices/status", "apiexports/status"],
            ),
            on(&["create", "get"], CORE, &["namespaces", "secrets"]),
            on(&["list", "watch"], CORE, &["secrets"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-applicationset-controller",
        rules: &[
            on(
                &["get", "list", "patch", "watch"],
                &["argoproj.io"],
                &["applicationsets", "applicationsets/status"],
            ),
            on(
                &["create", "delete", "get", "list", "patch", "watch"],
                &["argoproj.io"],
                &["applications"],
            ),
            on(READ, &["argoproj.io"], &["appprojects"]),
            // Clusters, and tokens of services that have pull requests.
            on(READ, CORE, &["secrets"]),
            on(&["create", "patch"], &["", "events.k8s.io"], &["events"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-authentication-publisher",
        namespace: "kube-system",
        rules: &[
            on(&["create"], CORE, &["configmaps"]),
            named(
                READ_UPDATE,
                CORE,
                &["configmaps"],
                &["extension-apiserver-authentication"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-definition-controller",
        rules: &[
            on(
                READ_UPDATE,
                &["apiextensions.k8s.io"],
                &["customresourcedefinitions"],
            ),
            on(
                &["patch", "update"],
                &["apiextensions.k8s.io"],
                &["customresourcedefinitions/status"],
            ),
            on(&["delete", "deletecollection", "get", "list"], &["*"], &["*"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-event-ttl-controller",
        rules: &[on(
            &["delete", "get", "list", "watch"],
            &["", "events.k8s.io"],
            &["events"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-gitops-engine",
        rules: &[
            // Whatever an application may consist of is compared with what it declares.
            on(READ, &["*"], &["*"]),
            on(
                &["patch"],
                &["argoproj.io"],
                &["applications", "applications/status"],
            ),
            // Tokens of projects' roles: the key that signs them, and the list of those that hold.
            on(&["patch"], &["argoproj.io"], &["appprojects"]),
            on(&["create"], CORE, &["secrets"]),
            named(&["patch"], CORE, &["secrets"], &["argocd-secret"]),
            on(&["create", "patch"], &["", "events.k8s.io"], &["events"]),
            on(&["create", "delete"], &["fairway.dev"], &["tombstones"]),
        ],
        ..Role::NONE
    },
    // Syncs whose project names no service account. As Argo CD's controller it may do everything in the workspace that
    // the Application is in.
    Role {
        name: "system:controller:fairway-gitops-sync",
        rules: &[on(&["*"], &["*"], &["*"])],
        ..Role::NONE
    },
    // Signs people in to the realm of their organisation. It reads who there is and keeps sessions; people and groups are made
    // by administrators.
    Role {
        name: "system:controller:fairway-identity",
        rules: &[
            on(&["get", "list"], &["fairway.dev"], &["oidcclients"]),
            on(&["patch"], &["fairway.dev"], &["users/status"]),
            on(
                &["create", "delete", "get", "patch"],
                &["fairway.dev"],
                &["sessions"],
            ),
            on(&["create", "get", "patch"], &["fairway.dev"], &["credentials"]),
        ],
        ..Role::NONE
    },
    // People who come from other providers become users, and members of groups that follow those of the provider.
    Role {
        name: "system:controller:fairway-identity-entries",
        rules: &[
            on(&["create"], &["fairway.dev"], &["users"]),
            on(&["get", "patch"], &["fairway.dev"], &["groups"]),
        ],
        ..Role::NONE
    },
    // What a user leaves behind when somebody deletes him: what he signs in with, and his place in groups.
    Role {
        name: "system:controller:fairway-identity-departures",
        rules: &[
            on(&["delete"], &["fairway.dev"], &["credentials"]),
            on(&["get", "patch"], &["fairway.dev"], &["groups", "users"]),
        ],
        ..Role::NONE
    },
    // The first administrator of a new installation, once.
    Role {
        name: "system:controller:fairway-identity-bootstrap",
        rules: &[
            on(&["create"], &["fairway.dev"], &["users"]),
            on(&["create", "get", "patch"], &["fairway.dev"], &["credentials"]),
            on(
                &["create"],
                &["rbac.authorization.k8s.io"],
                &["clusterrolebindings"],
            ),
            named(
                &["bind"],
                &["rbac.authorization.k8s.io"],
                &["clusterroles"],
                &["cluster-admin"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-informer",
        rules: &[on(
            &["list", "watch"],
            CORE,
            &["configmaps", "namespaces", "pods", "serviceaccounts"],
        )],
        ..Role::NONE
    },
    // Of ConfigMaps and Secrets, those that configure it.
    Role {
        name: "system:controller:fairway-notifications-controller",
        rules: &[
            on(
                &["get", "list", "patch", "watch"],
                &["argoproj.io"],
                &["applications"],
            ),
            on(READ, &["argoproj.io"], &["appprojects"]),
            named(READ, CORE, &["configmaps"], &["argocd-notifications-cm"]),
            named(READ, CORE, &["secrets"], &["argocd-notifications-secret"]),
            on(&["create", "patch"], &["", "events.k8s.io"], &["events"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-local-apiservice-registrar",
        rules: &[
            on(
                &["create", "delete", "get", "list", "patch", "watch"],
                &["apiregistration.k8s.io"],
                &["apiservices"],
            ),
            on(&["patch"], &["apiregistration.k8s.io"], &["apiservices/status"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-informer",
        namespace: "kube-system",
        rules: &[named(
            READ,
            &["coordination.k8s.io"],
            &["leases"],
            &["kube-controller-manager"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-logical-cluster-controller",
        rules: &[
            on(READ_UPDATE, &["core.kcp.io"], &["logicalclusters"]),
            on(&["patch"], &["core.kcp.io"], &["logicalclusters/status"]),
            // A workspace is emptied before it goes.
            on(&["delete", "deletecollection", "get", "list"], &["*"], &["*"]),
            // And begins with these.
            on(&["create"], CORE, &["namespaces"]),
            on(&["create"], &["apis.kcp.io"], &["apibindings"]),
            on(
                &["create"],
                &["rbac.authorization.k8s.io"],
                &["clusterrolebindings"],
            ),
            named(
                &["bind"],
                &["rbac.authorization.k8s.io"],
                &["clusterroles"],
                &["cluster-admin"],
            ),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-workspace-controller",
        rules: &[
            on(
                &["create", "delete", "get", "list", "watch"],
                &["core.kcp.io"],
                &["logicalclusters"],
            ),
            on(READ_UPDATE, &["tenancy.kcp.io"], &["workspaces"]),
            on(
                &["patch"],
                &["tenancy.kcp.io"],
                &["workspaces/status", "workspacetypes/status"],
            ),
            on(READ, &["tenancy.kcp.io"], &["workspacetypes"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-kubernetes-service-publisher",
        rules: &[
            on(
                &["create", "get", "list", "patch", "update", "watch"],
                CORE,
                &["endpoints", "services"],
            ),
            on(&["create"], CORE, &["endpoints/restricted"]),
            on(
                &["create", "get", "list", "patch", "update", "watch"],
                &["discovery.k8s.io"],
                &["endpointslices"],
            ),
            on(&["create"], &["discovery.k8s.io"], &["endpointslices/restricted"]),
        ],
        ..Role::NONE
    },
    // What it publishes and where copies go, the workspace that it works in must allow it.
    Role {
        name: "system:controller:fairway-sync-agent",
        rules: &[
            on(
                &["get", "list", "patch", "watch"],
                &["apis.kcp.io"],
                &["apiexports"],
            ),
            on(&["*"], &["apis.kcp.io"], &["apiexports/content"]),
            on(&["create", "get"], &["apis.kcp.io"], &["apiresourceschemas"]),
            on(READ, &["apis.kcp.io"], &["apiexportendpointslices"]),
            on(READ, &["syncagent.kcp.io"], &["publishedresources"]),
            on(&["patch"], &["syncagent.kcp.io"], &["publishedresources/status"]),
            on(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
        ],
        ..Role::NONE
    },
    // It asks who somebody is and what he may do before it acts for him, in the workspace of the repository.
    Role {
        name: "system:controller:fairway-git-host",
        rules: &[
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["fairway.dev"],
                &["repositories"],
            ),
            on(&["patch"], &["fairway.dev"], &["repositories/status"]),
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            on(&["get"], &["core.kcp.io"], &["logicalclusters"]),
            // Credentials of mirrors: only Secrets that are labelled as such and name the address are used.
            on(&["get"], CORE, &["configmaps"]),
            // Webhooks of repositories, and what tokens for the Git host are bound to.
            on(
                &["create", "delete", "get", "list", "patch", "update"],
                CORE,
                &["secrets"],
            ),
            on(&["get"], CORE, &["serviceaccounts"]),
            // A token for an account that has shown who it is.
            on(&["create"], CORE, &["serviceaccounts/token"]),
        ],
        ..Role::NONE
    },
    // Runs of templates act as who started them. With its own rights it keeps their record, knows whether somebody still is who he was,
    // and looks at quotas before anything is written; of other objects it asks whether they exist, to count them.
    Role {
        name: "system:controller:fairway-scaffolder",
        rules: &[
            on(READ, &["fairway.dev"], &["voyages"]),
            // The second to let go of one that was deleted, once what it had begun is taken back.
            on(&["patch"], &["fairway.dev"], &["voyages", "voyages/status"]),
            on(&["get", "list"], &["fairway.dev"], &["groups", "users"]),
            on(
                &["create", "get", "patch"],
                &["scaffolder.backstage.io"],
                &["templates"],
            ),
            on(
                &["get"],
                CORE,
                &["persistentvolumeclaims", "serviceaccounts", "services"],
            ),
            on(&["get", "list"], CORE, &["resourcequotas"]),
            on(&["get"], &["core.kcp.io"], &["logicalclusters"]),
            on(&["get"], &["kubevirt.io"], &["virtualmachines"]),
            on(
                &["get"],
                &["gateway.networking.k8s.io"],
                &["gateways", "httproutes"],
            ),
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "system:controller:fairway-token-controller",
        rules: &[
            on(&["delete", "get", "list", "patch", "watch"], CORE, &["secrets"]),
            on(READ, CORE, &["serviceaccounts"]),
            on(&["create"], CORE, &["serviceaccounts/token"]),
        ],
        ..Role::NONE
    },
];
