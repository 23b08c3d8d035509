//! The kinds that are read and written here, as URLs name them.

use fairway_api::Kind;
use fairway_controller::ObjectKey;
use kube::core::ApiResource;

pub(crate) const SERVICE: Kind = core("Service", "services");
pub(crate) const NODE: Kind = core("Node", "nodes");
pub(crate) const NAMESPACE: Kind = core("Namespace", "namespaces");
pub(crate) const ENDPOINT_SLICE: Kind = Kind {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
};
pub(crate) const NETWORK_POLICY: Kind = networking("NetworkPolicy", "networkpolicies");
pub(crate) const IP_ADDRESS: Kind = networking("IPAddress", "ipaddresses");

const fn core(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: "",
        version: "v1",
        kind,
        plural,
    }
}

const fn networking(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: "networking.k8s.io",
        version: "v1",
        kind,
        plural,
    }
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
    if kind.group.is_empty() {
        kind.version.to_owned()
    } else {
        kind.api_version()
    }
}

/// The path of a kind's objects in a namespace; of all of them where there is none.
pub(crate) fn collection(kind: &Kind, namespace: &str) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let version = api_version(kind);
    let plural = kind.plural;
    if namespace.is_empty() {
        format!("/{root}/{version}/{plural}")
    } else {
        format!("/{root}/{version}/namespaces/{namespace}/{plural}")
    }
}

/// The path of an object.
pub(crate) fn path(kind: &Kind, key: &ObjectKey) -> String {
    format!("{}/{}", collection(kind, &key.namespace), key.name)
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;

    use super::*;

    #[test]
    fn paths() {
        let key = |namespace| ObjectKey::new(&WorkspaceId::root(), namespace, "x");
        for (kind, namespace, expected) in [
            (&SERVICE, "n", "/api/v1/namespaces/n/services/x"),
            (&IP_ADDRESS, "", "/apis/networking.k8s.io/v1/ipaddresses/x"),
            (
                &fairway_api::kubevirt::VIRTUAL_MACHINE,
                "n",
                "/apis/kubevirt.io/v1/namespaces/n/virtualmachines/x",
            ),
        ] {
            assert_eq!(path(kind, &key(namespace)), expected);
        }
    }
}
