//! Roles about gateways: what each part that publishes services may do, and what people may with Gateways, routes and
//! policies.
//!
//! People get them through `admin`, `edit` and `view`, which gather them, as on clusters whose operators install these kinds.
//! Rules also name resources that only OpenShift serves, so that a role that was copied from there means the same here.

use super::Holder::Group;
use super::{CORE, EVENTS, Grant, READ, READ_WRITE, Role, Rule, on};

const GATEWAY_API: &[&str] = &["gateway.networking.k8s.io"];
const OPENSHIFT_ROUTES: &[&str] = &["route.openshift.io"];
const KUADRANT: &[&str] = &["extensions.kuadrant.io", "kuadrant.io"];
const DEVPORTAL: &[&str] = &["devportal.kuadrant.io"];

const PATCH: &[&str] = &["patch"];
/// What a controller does with objects that it makes.
const KEEP: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

const ROUTES: &[&str] = &[
    "backendtlspolicies",
    "gateways",
    "grpcroutes",
    "httproutes",
    "referencegrants",
    "tcproutes",
    "tlsroutes",
];
const POLICIES: &[&str] = &[
    "authpolicies",
    "dnspolicies",
    "planpolicies",
    "ratelimitpolicies",
    "tlspolicies",
];
const PORTAL: &[&str] = &["apikeyapprovals", "apikeys", "apiproducts"];
/// Made by the portal for the owners of APIs.
const REQUESTS: &[&str] = &["apikeyrequests"];

/// The parts, each with a service account in `kube-system`.
pub(super) const GATEWAY_CONTROLLER_ROLES: &[Role] = &[
    // Serves what Gateways and routes ask for, and says what became of them.
    Role {
        name: "system:controller:fairway-gateway-routes",
        rules: &[
            on(READ, GATEWAY_API, ROUTES),
            on(
                &["create", "get", "list", "watch"],
                GATEWAY_API,
                &["gatewayclasses"],
            ),
            on(
                PATCH,
                GATEWAY_API,
                &[
                    "backendtlspolicies/status",
                    "gatewayclasses/status",
                    "gateways/status",
                    "grpcroutes/status",
                    "httproutes/status",
                    "tcproutes/status",
                    "tlsroutes/status",
                ],
            ),
            on(READ, OPENSHIFT_ROUTES, &["routes"]),
            on(PATCH, OPENSHIFT_ROUTES, &["routes/status"]),
            // Certificates of listeners, and authorities of backends.
            on(READ, CORE, &["configmaps", "namespaces", "secrets"]),
            // A Gateway is a Service, too.
            on(KEEP, CORE, &["services"]),
            on(KEEP, &["discovery.k8s.io"], &["endpointslices"]),
            // Addresses of Gateways.
            on(KEEP, &["networking.k8s.io"], &["ipaddresses"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Judges requests, and says of policies whether they are enforced.
    Role {
        name: "system:controller:fairway-gateway-policies",
        rules: &[
            on(READ, KUADRANT, POLICIES),
            // A PlanPolicy is a RateLimitPolicy, too.
            on(
                &["create", "delete", "patch"],
                &["kuadrant.io"],
                &["ratelimitpolicies"],
            ),
            on(
                PATCH,
                KUADRANT,
                &[
                    "authpolicies/status",
                    "dnspolicies/status",
                    "planpolicies/status",
                    "ratelimitpolicies/status",
                    "tlspolicies/status",
                ],
            ),
            // API keys, client secrets.
            on(READ, CORE, &["secrets"]),
            on(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Makes certificates for listeners.
    Role {
        name: "system:controller:fairway-gateway-certificates",
        rules: &[
            on(READ, GATEWAY_API, &["gateways"]),
            on(READ, KUADRANT, &["tlspolicies"]),
            on(&["create", "get", "list", "patch", "watch"], CORE, &["secrets"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Remembers whose host names are, over a restart.
    Role {
        name: "system:controller:fairway-gateway-claims",
        namespace: "kube-system",
        rules: &[on(
            &["create", "delete", "get", "list", "patch"],
            CORE,
            &["configmaps"],
        )],
        ..Role::NONE
    },
    // Gives developers the keys that were approved.
    Role {
        name: "system:controller:fairway-gateway-portal",
        rules: &[
            on(READ, DEVPORTAL, PORTAL),
            // An approval is bound to the request that it is for, and products may approve by themselves.
            on(&["create", "patch"], DEVPORTAL, &["apikeyapprovals"]),
            on(KEEP, DEVPORTAL, REQUESTS),
            on(
                PATCH,
                DEVPORTAL,
                &[
                    "apikeyapprovals/status",
                    "apikeyrequests/status",
                    "apikeys/status",
                    "apiproducts/status",
                ],
            ),
            on(READ, GATEWAY_API, &["httproutes"]),
            on(READ, KUADRANT, &["authpolicies", "planpolicies"]),
            on(KEEP, CORE, &["secrets"]),
            // That of the Secrets which authentication reads.
            on(&["create"], CORE, &["namespaces"]),
            EVENTS,
        ],
        ..Role::NONE
    },
];

const fn of_people(verbs: &'static [&'static str]) -> [Rule; 5] {
    [
        on(verbs, GATEWAY_API, ROUTES),
        on(verbs, OPENSHIFT_ROUTES, &["routes"]),
        on(verbs, KUADRANT, POLICIES),
        on(verbs, DEVPORTAL, PORTAL),
        on(READ, DEVPORTAL, REQUESTS),
    ]
}

const WRITTEN: [Rule; 5] = of_people(READ_WRITE);
/// What those may who write, whether or not they rule the namespace.
const EDITED: [Rule; 6] = [
    WRITTEN[0],
    WRITTEN[1],
    CUSTOM_HOST,
    WRITTEN[2],
    WRITTEN[3],
    WRITTEN[4],
];
const SEEN: [Rule; 5] = of_people(READ);
/// Whether a Route may name its host itself.
const CUSTOM_HOST: Rule = on(&["create"], OPENSHIFT_ROUTES, &["routes/custom-host"]);

/// What people are given. An APIKey is approved by whoever may write APIKeyApprovals in the namespace of its APIProduct.
pub(super) const GATEWAY_ROLES: &[Role] = &[
    Role {
        name: "gateway.fairway.dev:admin",
        aggregates_to: Some("admin"),
        rules: &EDITED,
        ..Role::NONE
    },
    Role {
        name: "gateway.fairway.dev:classes",
        rules: &[on(READ, GATEWAY_API, &["gatewayclasses"])],
        ..Role::NONE
    },
    Role {
        name: "gateway.fairway.dev:edit",
        aggregates_to: Some("edit"),
        rules: &EDITED,
        ..Role::NONE
    },
    Role {
        name: "gateway.fairway.dev:view",
        aggregates_to: Some("view"),
        rules: &SEEN,
        ..Role::NONE
    },
];

/// Whoever may make a Gateway must see which classes there are.
pub(super) const GATEWAY_GRANTS: &[Grant] = &[Grant {
    name: "gateway.fairway.dev:classes",
    role: "gateway.fairway.dev:classes",
    subjects: &[Group("system:authenticated")],
    ..Grant::NONE
}];
