//! Who may start runs of software templates: whoever may edit a namespace. What a run does, its user must be allowed to do.

use super::{READ, Role, on};

pub(super) const PORTAL_ROLES: &[Role] = &[
    Role {
        name: "fairway.dev:voyages:edit",
        aggregates_to: Some("edit"),
        rules: &[
            on(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["fairway.dev"],
                &["voyages"],
            ),
            on(&["create"], &["fairway.dev"], &["voyages/dryrun"]),
            on(READ, &["scaffolder.backstage.io"], &["templates"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "fairway.dev:voyages:view",
        aggregates_to: Some("view"),
        rules: &[
            on(READ, &["fairway.dev"], &["voyages"]),
            on(READ, &["scaffolder.backstage.io"], &["templates"]),
        ],
        ..Role::NONE
    },
];
