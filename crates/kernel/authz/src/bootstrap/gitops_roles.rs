//! Who may ask the GitOps engine: a role to bind people to, and tokens of projects' roles, for whom the engine's own policies
//! decide what of it is answered.

use super::Holder::Group;
use super::{Grant, Role, on};

const API_USER: &str = "system:argocd:api-user";

pub(super) const GITOPS_ROLES: &[Role] = &[Role {
    name: API_USER,
    rules: &[
        on(
            &["get"],
            &["argoproj.io"],
            &["applications/tree", "applications/view"],
        ),
        on(
            &["create"],
            &["argoproj.io"],
            &[
                "applications/plan",
                "applications/rollback",
                "applications/sync",
                "applications/terminate",
            ],
        ),
    ],
    ..Role::NONE
}];

pub(super) const GITOPS_GRANTS: &[Grant] = &[Grant {
    name: API_USER,
    role: API_USER,
    subjects: &[Group("argocd:project-roles")],
    ..Grant::NONE
}];
