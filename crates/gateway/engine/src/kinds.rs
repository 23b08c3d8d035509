//! The kinds that are read and written here, as URLs name them.

use fairway_api::{Kind, gateway};
use fairway_controller::ObjectKey;
use fairway_gateway_policy::object::Kind as Policy;
use fairway_gateway_routes::observed::Kind as Seen;
use kube::core::ApiResource;

const fn core(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: "",
        version: "v1",
        kind,
        plural,
    }
}

pub(crate) const SERVICE: Kind = core("Service", "services");
/// Not served here.
const TOKEN_RATE_LIMIT_POLICY: Kind = Kind {
    group: gateway::KUADRANT_GROUP,
    version: "v1alpha1",
    kind: "TokenRateLimitPolicy",
    plural: "tokenratelimitpolicies",
};
pub(crate) const ENDPOINT_SLICE: Kind = Kind {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
};
pub(crate) const IP_ADDRESS: Kind = Kind {
    group: "networking.k8s.io",
    version: "v1",
    kind: "IPAddress",
    plural: "ipaddresses",
};

/// Which kind of the API a build's kind is.
pub(crate) fn served(kind: Seen) -> Kind {
    match kind {
        Seen::GatewayClass => gateway::GATEWAY_CLASS,
        Seen::Gateway => gateway::GATEWAY,
        Seen::HttpRoute => gateway::HTTP_ROUTE,
        Seen::GrpcRoute => gateway::GRPC_ROUTE,
        Seen::TlsRoute => gateway::TLS_ROUTE,
        Seen::TcpRoute => gateway::TCP_ROUTE,
        Seen::ReferenceGrant => gateway::REFERENCE_GRANT,
        Seen::BackendTlsPolicy => gateway::BACKEND_TLS_POLICY,
        Seen::Route => gateway::ROUTE,
        Seen::Service => SERVICE,
        Seen::EndpointSlice => ENDPOINT_SLICE,
        Seen::Secret => core("Secret", "secrets"),
        Seen::ConfigMap => core("ConfigMap", "configmaps"),
        Seen::Namespace => core("Namespace", "namespaces"),
    }
}

/// Which kind of the API a policy's kind is.
pub(crate) fn policy(kind: Policy) -> Kind {
    match kind {
        Policy::AuthPolicy => gateway::AUTH_POLICY,
        Policy::RateLimitPolicy => gateway::RATE_LIMIT_POLICY,
        Policy::TokenRateLimitPolicy => TOKEN_RATE_LIMIT_POLICY,
        Policy::TlsPolicy => gateway::TLS_POLICY,
        Policy::DnsPolicy => gateway::DNS_POLICY,
        Policy::PlanPolicy => gateway::PLAN_POLICY,
    }
}

/// Whether objects of the kind are told what became of them.
pub(crate) fn has_status(kind: Seen) -> bool {
    match kind {
        Seen::GatewayClass
        | Seen::Gateway
        | Seen::HttpRoute
        | Seen::GrpcRoute
        | Seen::TlsRoute
        | Seen::TcpRoute
        | Seen::BackendTlsPolicy
        | Seen::Route => true,
        Seen::ReferenceGrant
        | Seen::Service
        | Seen::EndpointSlice
        | Seen::Secret
        | Seen::ConfigMap
        | Seen::Namespace => false,
    }
}

/// Kinds that every installation has very many of, for other reasons than gateways.
pub(crate) fn is_large(kind: Seen) -> bool {
    matches!(
        kind,
        Seen::Service | Seen::EndpointSlice | Seen::Secret | Seen::ConfigMap | Seen::Namespace
    )
}

/// A kind as clients want it.
pub(crate) fn resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: api_version(kind),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    }
}

/// `v1`, `apps/v1`.
pub(crate) fn api_version(kind: &Kind) -> String {
    match kind.group.is_empty() {
        true => kind.version.to_owned(),
        false => kind.api_version(),
    }
}

/// The path of a kind's objects in a namespace; of all of them where there is none.
pub(crate) fn collection(kind: &Kind, namespace: &str) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let (version, plural) = (api_version(kind), kind.plural);
    match namespace.is_empty() {
        true => format!("/{root}/{version}/{plural}"),
        false => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
    }
}

/// The path of an object.
pub(crate) fn path(kind: &Kind, key: &ObjectKey) -> String {
    format!("{}/{}", collection(kind, &key.namespace), key.name)
}
