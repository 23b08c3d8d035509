//! Roles about workspaces, as kcp has them: everybody may make workspaces of the common types where he may make any, and
//! there is a role that lets somebody into a workspace.

use super::Holder::Group;
use super::{Grant, Role, at, named};

pub(super) const TENANCY_ROLES: &[Role] = &[
    Role {
        name: "system:kcp:tenancy:common-types",
        rules: &[named(
            &["use"],
            &["tenancy.kcp.io"],
            &["workspacetypes"],
            &["organization", "team", "universal"],
        )],
        ..Role::NONE
    },
    Role {
        name: "system:kcp:workspace:access",
        rules: &[at(&["access"], &["/"])],
        ..Role::NONE
    },
];

pub(super) const TENANCY_GRANTS: &[Grant] = &[
    Grant {
        name: "system:kcp:admin:cluster-admin",
        role: "cluster-admin",
        subjects: &[Group("system:kcp:admin")],
        ..Grant::NONE
    },
    Grant {
        name: "system:kcp:tenancy:common-types",
        role: "system:kcp:tenancy:common-types",
        subjects: &[Group("system:authenticated")],
        ..Grant::NONE
    },
];
