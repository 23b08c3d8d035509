//! Which strategy belongs to which resource of Kubernetes 1.36.

use crate::strategy::{Strategy, Unknown};
use crate::{configmap, namespace, rbac, secret, service, serviceaccount};

/// The strategy of a built-in resource; resources that Kubernetes does not have get what holds for every object.
pub fn strategy(group: &str, resource: &str) -> &'static dyn Strategy {
    match (group, resource) {
        ("", "namespaces") => &namespace::Namespace,
        ("", "configmaps") => &configmap::ConfigMap,
        ("", "secrets") => &secret::Secret,
        ("", "services") => &service::Service,
        ("", "serviceaccounts") => &serviceaccount::ServiceAccount,
        ("rbac.authorization.k8s.io", "roles") => &rbac::Role { namespaced: true },
        ("rbac.authorization.k8s.io", "clusterroles") => &rbac::Role { namespaced: false },
        ("rbac.authorization.k8s.io", "rolebindings") => &rbac::Binding { namespaced: true },
        ("rbac.authorization.k8s.io", "clusterrolebindings") => &rbac::Binding { namespaced: false },
        _ => &Unknown,
    }
}
