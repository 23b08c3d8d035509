//! Who the controllers are. Upstream's names where upstream has the controller, so that its default roles fit.

pub(crate) const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
pub(crate) const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
pub(crate) const ROOT_CA_PUBLISHER: &str = "system:serviceaccount:kube-system:root-ca-cert-publisher";
pub(crate) const SERVICE_ACCOUNT_CONTROLLER: &str =
    "system:serviceaccount:kube-system:service-account-controller";
pub(crate) const ROLE_AGGREGATOR: &str =
    "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
pub(crate) const MIRRORING_CONTROLLER: &str =
    "system:serviceaccount:kube-system:endpointslicemirroring-controller";
pub(crate) const DISRUPTION_CONTROLLER: &str = "system:serviceaccount:kube-system:disruption-controller";
pub(crate) const JOB_CONTROLLER: &str = "system:serviceaccount:kube-system:job-controller";
/// Upstream finalizes CRDs inside the server, with the rights of `system:masters`.
pub(crate) const DEFINITION_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-definition-controller";
/// Upstream leaves the expiry of events to etcd's leases.
pub(crate) const EVENT_TTL_CONTROLLER: &str =
    "system:serviceaccount:kube-system:fairway-event-ttl-controller";
/// Upstream writes the Service inside the server, with the rights of `system:masters`.
pub(crate) const SERVICE_PUBLISHER: &str =
    "system:serviceaccount:kube-system:fairway-kubernetes-service-publisher";
/// Upstream's controllers share the watches of `system:kube-controller-manager`, which may see everything.
pub(crate) const INFORMER: &str = "system:serviceaccount:kube-system:fairway-informer";

/// Every user that [`crate::run`] asks for a client of.
pub const USERS: &[&str] = &[
    NAMESPACE_CONTROLLER,
    GARBAGE_COLLECTOR,
    ROOT_CA_PUBLISHER,
    SERVICE_ACCOUNT_CONTROLLER,
    ROLE_AGGREGATOR,
    MIRRORING_CONTROLLER,
    DISRUPTION_CONTROLLER,
    JOB_CONTROLLER,
    DEFINITION_CONTROLLER,
    EVENT_TTL_CONTROLLER,
    SERVICE_PUBLISHER,
    INFORMER,
];

#[cfg(test)]
mod tests {
    use fairway_kernel_authz::{Attributes, Policy, ResourceAttributes, UserInfo, bootstrap};

    use super::{
        DEFINITION_CONTROLLER, DISRUPTION_CONTROLLER, EVENT_TTL_CONTROLLER, GARBAGE_COLLECTOR, INFORMER,
        JOB_CONTROLLER, MIRRORING_CONTROLLER, NAMESPACE_CONTROLLER, ROLE_AGGREGATOR, ROOT_CA_PUBLISHER,
        SERVICE_ACCOUNT_CONTROLLER, SERVICE_PUBLISHER,
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
            (INFORMER, "watch", "", "namespaces", "", true),
            (INFORMER, "list", "", "pods", "", true),
            (INFORMER, "watch", "", "secrets", "", false),
        ] {
            assert_eq!(
                may(user, verb, group, resource, subresource),
                want,
                "{user} {verb} {resource}.{group}/{subresource}"
            );
        }
    }
}
