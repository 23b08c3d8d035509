//! Who the controllers are. Upstream's names where upstream has the controller, so that its default roles fit.

pub(crate) const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
pub(crate) const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
pub(crate) const ROOT_CA_PUBLISHER: &str = "system:serviceaccount:kube-system:root-ca-cert-publisher";
pub(crate) const SERVICE_ACCOUNT_CONTROLLER: &str =
    "system:serviceaccount:kube-system:service-account-controller";
pub(crate) const ROLE_AGGREGATOR: &str =
    "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
pub(crate) const RESOURCE_QUOTA_CONTROLLER: &str =
    "system:serviceaccount:kube-system:resourcequota-controller";
pub(crate) const MIRRORING_CONTROLLER: &str =
    "system:serviceaccount:kube-system:endpointslicemirroring-controller";
pub(crate) const DISRUPTION_CONTROLLER: &str = "system:serviceaccount:kube-system:disruption-controller";
pub(crate) const JOB_CONTROLLER: &str = "system:serviceaccount:kube-system:job-controller";
pub(crate) const CERTIFICATE_CONTROLLER: &str = "system:serviceaccount:kube-system:certificate-controller";
/// Upstream's bootstrap tokens may be used many times; ours say if they may not.
pub(crate) const NODE_JOINING: &str = "system:serviceaccount:kube-system:fairway-node-joining";
/// Upstream finalizes CRDs inside the server, with the rights of `system:masters`.
pub(crate) const DEFINITION_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-definition-controller";
/// Upstream leaves the expiry of events to etcd's leases.
pub(crate) const EVENT_TTL_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-event-ttl-controller";
/// Upstream writes the Service inside the server, with the rights of `system:masters`.
pub(crate) const SERVICE_PUBLISHER: &str =
    "system:serviceaccount:kube-system:fairway-kubernetes-service-publisher";
/// Upstream's tokens controller holds the signing key and the rights of `system:kube-controller-manager`.
pub(crate) const TOKEN_CONTROLLER: &str = "system:serviceaccount:kube-system:fairway-token-controller";
/// Upstream registers what it serves inside the server, with the rights of `system:masters`.
pub(crate) const API_SERVICE_REGISTRAR: &str =
    "system:serviceaccount:kube-system:fairway-local-apiservice-registrar";
/// Upstream writes the ConfigMap inside the server, with the rights of `system:masters`.
pub(crate) const AUTHENTICATION_PUBLISHER: &str =
    "system:serviceaccount:kube-system:fairway-authentication-publisher";
/// Upstream's controllers share the watches of `system:kube-controller-manager`, which may see everything.
pub(crate) const INFORMER: &str = "system:serviceaccount:kube-system:fairway-informer";

/// kcp's tenancy controllers are `system:masters`.
pub(crate) const WORKSPACE_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-workspace-controller";
pub(crate) const LOGICAL_CLUSTER_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-logical-cluster-controller";
pub(crate) const API_EXPORT_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-api-export-controller";
pub(crate) const API_BINDING_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-api-binding-controller";

/// Groups of every service account of the control plane. None of them is privileged by itself.
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// The groups of a user of [`USERS`]. Those that keep workspaces may write what workspaces say of themselves.
pub fn groups(user: &str) -> Vec<&'static str> {
    let keeps_workspaces = [
        WORKSPACE_CONTROLLER,
        LOGICAL_CLUSTER_CONTROLLER,
        API_EXPORT_CONTROLLER,
        API_BINDING_CONTROLLER,
    ];
    let mut groups = GROUPS.to_vec();
    if keeps_workspaces.contains(&user) {
        groups.push(fairway_kernel_tenancy::names::group::LOGICAL_CLUSTER_ADMIN);
    }
    groups
}

/// Every user that [`crate::run`] asks for a client of.
pub const USERS: &[&str] = &[
    NAMESPACE_CONTROLLER,
    GARBAGE_COLLECTOR,
    ROOT_CA_PUBLISHER,
    SERVICE_ACCOUNT_CONTROLLER,
    ROLE_AGGREGATOR,
    RESOURCE_QUOTA_CONTROLLER,
    MIRRORING_CONTROLLER,
    DISRUPTION_CONTROLLER,
    JOB_CONTROLLER,
    CERTIFICATE_CONTROLLER,
    NODE_JOINING,
    DEFINITION_CONTROLLER,
    EVENT_TTL_CONTROLLER,
    SERVICE_PUBLISHER,
    TOKEN_CONTROLLER,
    API_SERVICE_REGISTRAR,
    AUTHENTICATION_PUBLISHER,
    INFORMER,
    WORKSPACE_CONTROLLER,
    LOGICAL_CLUSTER_CONTROLLER,
    API_EXPORT_CONTROLLER,
    API_BINDING_CONTROLLER,
];

#[cfg(test)]
mod tests {
    use fairway_kernel_authz::{Attributes, Policy, ResourceAttributes, UserInfo, bootstrap};

    use super::{
        API_BINDING_CONTROLLER, API_EXPORT_CONTROLLER, AUTHENTICATION_PUBLISHER, CERTIFICATE_CONTROLLER,
        DEFINITION_CONTROLLER, DISRUPTION_CONTROLLER, EVENT_TTL_CONTROLLER, GARBAGE_COLLECTOR, INFORMER,
        JOB_CONTROLLER, LOGICAL_CLUSTER_CONTROLLER, MIRRORING_CONTROLLER, NAMESPACE_CONTROLLER,
        RESOURCE_QUOTA_CONTROLLER, ROLE_AGGREGATOR, ROOT_CA_PUBLISHER, SERVICE_ACCOUNT_CONTROLLER,
        SERVICE_PUBLISHER, TOKEN_CONTROLLER, WORKSPACE_CONTROLLER,
    };

    #[test]
    fn default_roles_grant_what_each_controller_does_and_no_more() {
        let mut policy = Policy::new();
        for item in bootstrap::objects() {
            policy.upsert(item.kind, item.namespace, item.name, &item.object);
        }
        let may = |user: &str, verb: &str, group: &str, resource: &str, subresource: &str| {
            let user = UserInfo::new(user, ["system:authenticated"]);
            let resource = ResourceAttributes {
                group,
                resource,
                subresource,
                namespace: "n",
                ..Default::default()
            };
            let attributes = Attributes {
                user: &user,
                verb,
                resource: Some(resource),
                path: "",
            };
            policy.authorize(&attributes).is_allowed()
        };
        let crds = ("apiextensions.k8s.io", "customresourcedefinitions");
        let csrs = ("certificates.k8s.io", "certificatesigningrequests");
        for (user, verb, group, resource, subresource, want) in [
            (
                NAMESPACE_CONTROLLER,
                "deletecollection",
                "example.com",
                "widgets",
                "",
                true,
            ),
            (NAMESPACE_CONTROLLER, "update", "", "namespaces", "finalize", true),
            (NAMESPACE_CONTROLLER, "update", "", "configmaps", "", false),
            (GARBAGE_COLLECTOR, "patch", "example.com", "widgets", "", true),
            (GARBAGE_COLLECTOR, "watch", crds.0, crds.1, "", true),
            (ROOT_CA_PUBLISHER, "update", "", "configmaps", "", true),
            (ROOT_CA_PUBLISHER, "list", "", "configmaps", "", false),
            (
                SERVICE_ACCOUNT_CONTROLLER,
                "create",
                "",
                "serviceaccounts",
                "",
                true,
            ),
            (
                SERVICE_ACCOUNT_CONTROLLER,
                "delete",
                "",
                "serviceaccounts",
                "",
                false,
            ),
            (
                ROLE_AGGREGATOR,
                "patch",
                "rbac.authorization.k8s.io",
                "clusterroles",
                "",
                true,
            ),
            (
                RESOURCE_QUOTA_CONTROLLER,
                "update",
                "",
                "resourcequotas",
                "status",
                true,
            ),
            (
                RESOURCE_QUOTA_CONTROLLER,
                "list",
                "example.com",
                "widgets",
                "",
                true,
            ),
            (
                RESOURCE_QUOTA_CONTROLLER,
                "update",
                "",
                "resourcequotas",
                "",
                false,
            ),
            (RESOURCE_QUOTA_CONTROLLER, "delete", "", "pods", "", false),
            (
                MIRRORING_CONTROLLER,
                "create",
                "discovery.k8s.io",
                "endpointslices",
                "",
                true,
            ),
            (MIRRORING_CONTROLLER, "update", "", "endpoints", "", false),
            (
                DISRUPTION_CONTROLLER,
                "update",
                "policy",
                "poddisruptionbudgets",
                "status",
                true,
            ),
            (DISRUPTION_CONTROLLER, "delete", "", "pods", "", false),
            (JOB_CONTROLLER, "update", "batch", "jobs", "status", true),
            (CERTIFICATE_CONTROLLER, "update", csrs.0, csrs.1, "approval", true),
            (CERTIFICATE_CONTROLLER, "update", csrs.0, csrs.1, "status", true),
            (CERTIFICATE_CONTROLLER, "delete", csrs.0, csrs.1, "", true),
            (CERTIFICATE_CONTROLLER, "create", csrs.0, csrs.1, "", false),
            (CERTIFICATE_CONTROLLER, "approve", csrs.0, "signers", "", false),
            (CERTIFICATE_CONTROLLER, "get", "", "secrets", "", false),
            (DEFINITION_CONTROLLER, "patch", crds.0, crds.1, "status", true),
            (DEFINITION_CONTROLLER, "patch", crds.0, crds.1, "", true),
            (DEFINITION_CONTROLLER, "delete", crds.0, crds.1, "", true),
            (
                DEFINITION_CONTROLLER,
                "deletecollection",
                "example.com",
                "widgets",
                "",
                true,
            ),
            (
                DEFINITION_CONTROLLER,
                "create",
                "example.com",
                "widgets",
                "",
                false,
            ),
            (EVENT_TTL_CONTROLLER, "delete", "", "events", "", true),
            (EVENT_TTL_CONTROLLER, "delete", "", "configmaps", "", false),
            (
                SERVICE_PUBLISHER,
                "patch",
                "discovery.k8s.io",
                "endpointslices",
                "",
                true,
            ),
            (SERVICE_PUBLISHER, "delete", "", "services", "", false),
            (TOKEN_CONTROLLER, "create", "", "serviceaccounts", "token", true),
            (TOKEN_CONTROLLER, "patch", "", "secrets", "", true),
            (TOKEN_CONTROLLER, "delete", "", "secrets", "", true),
            (TOKEN_CONTROLLER, "create", "", "secrets", "", false),
            (TOKEN_CONTROLLER, "patch", "", "serviceaccounts", "", false),
            (
                super::API_SERVICE_REGISTRAR,
                "delete",
                "apiregistration.k8s.io",
                "apiservices",
                "",
                true,
            ),
            (
                super::API_SERVICE_REGISTRAR,
                "patch",
                "apiregistration.k8s.io",
                "apiservices",
                "status",
                true,
            ),
            (super::API_SERVICE_REGISTRAR, "list", "", "services", "", false),
            (AUTHENTICATION_PUBLISHER, "create", "", "configmaps", "", false),
            (INFORMER, "watch", "coordination.k8s.io", "leases", "", false),
            (INFORMER, "watch", "", "namespaces", "", true),
            (INFORMER, "list", "", "pods", "", true),
            (INFORMER, "watch", "", "secrets", "", false),
            (
                WORKSPACE_CONTROLLER,
                "create",
                "core.kcp.io",
                "logicalclusters",
                "",
                true,
            ),
            (
                WORKSPACE_CONTROLLER,
                "patch",
                "tenancy.kcp.io",
                "workspaces",
                "status",
                true,
            ),
            (
                WORKSPACE_CONTROLLER,
                "patch",
                "core.kcp.io",
                "logicalclusters",
                "status",
                false,
            ),
            (WORKSPACE_CONTROLLER, "get", "", "secrets", "", false),
            (
                LOGICAL_CLUSTER_CONTROLLER,
                "deletecollection",
                "example.com",
                "widgets",
                "",
                true,
            ),
            (
                LOGICAL_CLUSTER_CONTROLLER,
                "patch",
                "example.com",
                "widgets",
                "",
                false,
            ),
            (LOGICAL_CLUSTER_CONTROLLER, "create", "", "configmaps", "", false),
            (API_EXPORT_CONTROLLER, "create", "", "secrets", "", true),
            (API_EXPORT_CONTROLLER, "watch", "", "secrets", "", true),
            (API_EXPORT_CONTROLLER, "delete", "", "secrets", "", false),
            (
                API_EXPORT_CONTROLLER,
                "patch",
                "apis.kcp.io",
                "apibindings",
                "status",
                false,
            ),
            (
                API_BINDING_CONTROLLER,
                "patch",
                "apis.kcp.io",
                "apibindings",
                "status",
                true,
            ),
            (API_BINDING_CONTROLLER, "patch", "", "configmaps", "", true),
            (API_BINDING_CONTROLLER, "create", "", "configmaps", "", false),
        ] {
            assert_eq!(
                may(user, verb, group, resource, subresource),
                want,
                "{user} {verb} {resource}.{group}/{subresource}"
            );
        }
    }
}
