//! How a host becomes a node: whoever shows a bootstrap token may ask for a node's certificate, and nodes for their next one. The names are
//! those of kubeadm, so that a token that it made is good here, too.
//!
//! What a node may do besides is not a matter of roles: see `crate::node`.

use super::Holder::Group;
use super::{CORE, Grant, Role, on};

/// Sees to it that a token is used once.
pub(super) const NODE_CONTROLLER_ROLES: &[Role] = &[Role {
    name: "system:controller:fairway-node-joining",
    namespace: "kube-system",
    rules: &[on(&["delete", "get", "list", "patch"], CORE, &["secrets"])],
    ..Role::NONE
}];

pub(super) const NODE_GRANTS: &[Grant] = &[
    Grant {
        name: "kubeadm:kubelet-bootstrap",
        role: "system:node-bootstrapper",
        subjects: &[Group("system:bootstrappers:kubeadm:default-node-token")],
        ..Grant::NONE
    },
    Grant {
        name: "kubeadm:node-autoapprove-bootstrap",
        role: "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        subjects: &[Group("system:bootstrappers:kubeadm:default-node-token")],
        ..Grant::NONE
    },
    Grant {
        name: "kubeadm:node-autoapprove-certificate-rotation",
        role: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        subjects: &[Group("system:nodes")],
        ..Grant::NONE
    },
];
