//! Roles about the software catalog: what the part that keeps it may do, and what people may with entities and locations.
//!
//! Entities and locations belong to a whole workspace, so people hold these through bindings of the workspace to `admin`, `edit` and
//! `view`, which gather them.

use super::{CORE, READ, READ_WRITE, Role, Rule, on};

const FAIRWAY: &[&str] = &["fairway.dev"];
const ENTITIES: &[&str] = &["catalogentities"];
const LOCATIONS: &[&str] = &["cataloglocations"];
const BOTH: &[&str] = &["catalogentities", "cataloglocations"];

/// Keeps entities in step with what repositories say, and answers who asks for them after asking who he is and what he may.
pub(super) const CATALOG_CONTROLLER_ROLES: &[Role] = &[Role {
    name: "system:controller:fairway-catalog",
    rules: &[
        on(
            &["create", "delete", "get", "list", "patch", "watch"],
            FAIRWAY,
            BOTH,
        ),
        on(&["patch"], FAIRWAY, &["cataloglocations/status"]),
        on(READ, FAIRWAY, &["groups", "repositories", "users"]),
        on(READ, &["scaffolder.backstage.io"], &["templates"]),
        on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
        on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
        on(&["get"], &["core.kcp.io"], &["logicalclusters"]),
        // What runs for an entity; who asks must have the right to list it himself.
        on(&["list"], &["argoproj.io"], &["applications"]),
        on(&["list"], &["cdi.kubevirt.io"], &["datavolumes"]),
        on(
            &["list"],
            &["gateway.networking.k8s.io"],
            &["gateways", "httproutes"],
        ),
        on(&["list"], &["kubevirt.io"], &["virtualmachines"]),
        on(&["list"], CORE, &["services"]),
    ],
    ..Role::NONE
}];

const fn of_people(verbs: &'static [&'static str]) -> [Rule; 2] {
    [on(verbs, FAIRWAY, LOCATIONS), on(READ, FAIRWAY, ENTITIES)]
}

const WRITTEN: [Rule; 2] = of_people(READ_WRITE);
/// An orphan is removed by who may change the catalog; what an entity says comes from its file. `update` asks for a refresh.
const ENTITY_CARE: Rule = on(&["delete", "update"], FAIRWAY, ENTITIES);

/// What people are given.
pub(super) const CATALOG_ROLES: &[Role] = &[
    Role {
        name: "catalog.fairway.dev:admin",
        aggregates_to: Some("admin"),
        rules: &[WRITTEN[0], WRITTEN[1], ENTITY_CARE],
        ..Role::NONE
    },
    Role {
        name: "catalog.fairway.dev:edit",
        aggregates_to: Some("edit"),
        rules: &[WRITTEN[0], WRITTEN[1], ENTITY_CARE],
        ..Role::NONE
    },
    Role {
        name: "catalog.fairway.dev:view",
        aggregates_to: Some("view"),
        rules: &of_people(READ),
        ..Role::NONE
    },
];
