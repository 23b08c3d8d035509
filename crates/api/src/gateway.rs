//! What publishes services: Gateway API's kinds, OpenShift's Route, and Kuadrant's policies.

use crate::Kind;
use crate::definition::Source;

/// Gateway API.
pub const GROUP: &str = "gateway.networking.k8s.io";
/// OpenShift's routes.
pub const ROUTE_GROUP: &str = "route.openshift.io";
/// Kuadrant's policies.
pub const KUADRANT_GROUP: &str = "kuadrant.io";
/// Kuadrant's policies that build on others.
pub const EXTENSIONS_GROUP: &str = "extensions.kuadrant.io";
/// Kuadrant's developer portal.
pub const DEVPORTAL_GROUP: &str = "devportal.kuadrant.io";

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
    }
}

/// Who serves Gateways, and how.
pub const GATEWAY_CLASS: Kind = kind(GROUP, "v1", "GatewayClass", "gatewayclasses");
/// Listeners.
pub const GATEWAY: Kind = kind(GROUP, "v1", "Gateway", "gateways");
/// Requests to Services.
pub const HTTP_ROUTE: Kind = kind(GROUP, "v1", "HTTPRoute", "httproutes");
/// Calls to Services.
pub const GRPC_ROUTE: Kind = kind(GROUP, "v1", "GRPCRoute", "grpcroutes");
/// Connections to Services, by server name.
pub const TLS_ROUTE: Kind = kind(GROUP, "v1alpha3", "TLSRoute", "tlsroutes");
/// Connections to Services.
pub const TCP_ROUTE: Kind = kind(GROUP, "v1alpha2", "TCPRoute", "tcproutes");
/// Who may refer to what from another namespace.
pub const REFERENCE_GRANT: Kind = kind(GROUP, "v1beta1", "ReferenceGrant", "referencegrants");
/// How a Service proves who it is.
pub const BACKEND_TLS_POLICY: Kind = kind(GROUP, "v1", "BackendTLSPolicy", "backendtlspolicies");
/// A host name that leads to a Service.
pub const ROUTE: Kind = kind(ROUTE_GROUP, "v1", "Route", "routes");
/// Who may pass.
pub const AUTH_POLICY: Kind = kind(KUADRANT_GROUP, "v1", "AuthPolicy", "authpolicies");
/// How often.
pub const RATE_LIMIT_POLICY: Kind = kind(KUADRANT_GROUP, "v1", "RateLimitPolicy", "ratelimitpolicies");
/// Certificates of a Gateway's listeners.
pub const TLS_POLICY: Kind = kind(KUADRANT_GROUP, "v1", "TLSPolicy", "tlspolicies");
/// Names of a Gateway's listeners.
pub const DNS_POLICY: Kind = kind(KUADRANT_GROUP, "v1", "DNSPolicy", "dnspolicies");
/// Limits by plan.
pub const PLAN_POLICY: Kind = kind(EXTENSIONS_GROUP, "v1alpha1", "PlanPolicy", "planpolicies");
/// An API that developers may ask for.
pub const API_PRODUCT: Kind = kind(DEVPORTAL_GROUP, "v1alpha1", "APIProduct", "apiproducts");
/// A developer's wish for access, and the key that it brings.
pub const API_KEY: Kind = kind(DEVPORTAL_GROUP, "v1alpha1", "APIKey", "apikeys");
/// The same wish, as the API's owner sees it.
pub const API_KEY_REQUEST: Kind = kind(DEVPORTAL_GROUP, "v1alpha1", "APIKeyRequest", "apikeyrequests");
/// The owner's answer.
pub const API_KEY_APPROVAL: Kind = kind(DEVPORTAL_GROUP, "v1alpha1", "APIKeyApproval", "apikeyapprovals");

/// The channel of Gateway API whose kinds these are, and their version; approval is asked of groups of Kubernetes'.
const GATEWAY_API: [(&str, &str); 3] = [
    (
        "api-approved.kubernetes.io",
        "https://github.com/kubernetes-sigs/gateway-api/pull/3328",
    ),
    ("gateway.networking.k8s.io/bundle-version", "v1.4.0"),
    ("gateway.networking.k8s.io/channel", "experimental"),
];

const WORDS: &str = include_str!("../data/gateway.words");

pub(crate) static SOURCES: [Source; 5] = [
    Source {
        annotations: &GATEWAY_API,
        ..source(GROUP, include_str!("../data/gateway_api.facts"))
    },
    source(ROUTE_GROUP, include_str!("../data/openshift_route.facts")),
    source(KUADRANT_GROUP, include_str!("../data/kuadrant.facts")),
    source(
        EXTENSIONS_GROUP,
        include_str!("../data/kuadrant_extensions.facts"),
    ),
    source(DEVPORTAL_GROUP, include_str!("../data/kuadrant_devportal.facts")),
];

/// Facts of a group; all groups share their words.
const fn source(group: &'static str, facts: &'static str) -> Source {
    Source {
        group,
        facts,
        words: WORDS,
        annotations: &[],
    }
}
