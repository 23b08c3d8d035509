//! The Applications of each cluster, in the order of their waves. `CLUSTER` in a path is the cluster's name.

/// A cluster, and the lists that its Applications come from.
pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    /// The first part of its domain.
    pub(crate) domain: &'static str,
    pub(crate) count: usize,
    lists: &'static [&'static [Expected]],
}

#[derive(Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) wave: i64,
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) namespace: &'static str,
    pub(crate) env: &'static [(&'static str, &'static str)],
    pub(crate) is_awaited: bool,
}

impl Cluster {
    pub(crate) fn applications(&self) -> impl Iterator<Item = &'static Expected> {
        self.lists.iter().flat_map(|list| list.iter())
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = String> {
        self.applications()
            .map(|expected| expected.path.replace("CLUSTER", self.name))
    }
}

pub(crate) const CLUSTERS: [Cluster; 3] = [
    Cluster {
        name: "hub",
        domain: "ocp3m0w-ic4s20",
        count: 25,
        lists: &[SHARED, CONFIGURATION_ON_HUB, HUB],
    },
    Cluster {
        name: "etl4",
        domain: "etl4",
        count: 18,
        lists: &[SHARED, CONFIGURATION_ON_SPOKES, PROD, SPOKE],
    },
    Cluster {
        name: "etl6",
        domain: "etl6",
        count: 18,
        lists: &[SHARED, CONFIGURATION_ON_SPOKES, PROD, SPOKE],
    },
];

const fn app(wave: i64, name: &'static str, path: &'static str, namespace: &'static str) -> Expected {
    Expected {
        wave,
        name,
        path,
        namespace,
        env: &[],
        is_awaited: true,
    }
}

const fn not_awaited(expected: Expected) -> Expected {
    Expected {
        is_awaited: false,
        ..expected
    }
}

/// From groups/all.
const SHARED: &[Expected] = &[
    app(
        20,
        "cert-manager-operator",
        "components/cert-manager-operator",
        "cert-manager-operator",
    ),
    app(
        20,
        "external-dns-operator",
        "components/external-dns-operator",
        "external-dns-operator",
    ),
    app(
        20,
        "metallb-operator",
        "components/metallb-operator",
        "metallb-system",
    ),
    app(
        20,
        "nmstate-operator",
        "components/nmstate-operator",
        "openshift-nmstate",
    ),
    app(
        25,
        "nmstate-instance",
        "components/nmstate-instance",
        "openshift-nmstate",
    ),
    app(30, "kube-ops-view", "components/kube-ops-view", "kube-ops-view"),
    app(
        30,
        "web-terminal-operator",
        "components/web-terminal-operator",
        "openshift-operators",
    ),
];

/// From groups/all, too; the hub has other names for these.
const CONFIGURATION_ON_SPOKES: &[Expected] = &[
    app(
        25,
        "cert-manager-configuration",
        "components/cert-manager-configuration",
        "cert-manager",
    ),
    app(
        25,
        "external-dns-configuration",
        "components/external-dns-configuration",
        "external-dns",
    ),
];

const CONFIGURATION_ON_HUB: &[Expected] = &[
    app(
        25,
        "cert-manager-config",
        "components/cert-manager-configuration",
        "cert-manager",
    ),
    app(
        25,
        "external-dns-config",
        "components/external-dns-configuration",
        "external-dns",
    ),
];

/// From groups/prod.
const PROD: &[Expected] = &[
    app(
        5,
        "openshift-virtualization",
        "components/openshift-virtualization-operator",
        "openshift-cnv",
    ),
    app(
        5,
        "descheduler-operator",
        "components/descheduler-operator",
        "openshift-kube-descheduler-operator",
    ),
    app(
        5,
        "node-health-check-operator",
        "components/node-health-check-operator",
        "openshift-workload-availability",
    ),
    app(
        15,
        "hyperconverged-instance",
        "components/openshift-virtualization-instance",
        "openshift-cnv",
    ),
    app(
        15,
        "descheduler-configuration",
        "components/descheduler-configuration",
        "openshift-kube-descheduler-operator",
    ),
    app(
        15,
        "node-health-check-config",
        "components/node-health-check-configuration",
        "openshift-workload-availability",
    ),
];

/// From the values of each spoke.
const SPOKE: &[Expected] = &[
    not_awaited(app(
        6,
        "metallb-configuration",
        "clusters/CLUSTER/overlays/metallb-configuration",
        "metallb-system",
    )),
    not_awaited(app(
        15,
        "nmstate-configuration",
        "clusters/CLUSTER/overlays/nmstate-configuration",
        "openshift-nmstate",
    )),
    app(
        16,
        "openshift-config",
        "clusters/CLUSTER/overlays/openshift-config",
        "openshift-config",
    ),
];

/// From the values of the hub.
const HUB: &[Expected] = &[
    app(
        5,
        "acm-operator",
        "components/acm-operator",
        "open-cluster-management",
    ),
    app(
        5,
        "reflector-operator",
        "components/reflector-operator",
        "reflector",
    ),
    app(5, "mtv-operator", "components/mtv-operator", "openshift-mtv"),
    app(
        15,
        "acm-instance",
        "components/acm-instance",
        "open-cluster-management",
    ),
    app(
        15,
        "mtv-configuration",
        "components/mtv-configuration",
        "openshift-mtv",
    ),
    app(20, "aap-operator", "components/aap-operator", "aap"),
    app(
        20,
        "gitops-boostrap-policy",
        "components/gitops-boostrap-policy",
        "open-cluster-management-global-set",
    ),
    app(20, "etl4", "clusters/hub/overlays/cluster-etl4", "etl4"),
    app(20, "etl6", "clusters/hub/overlays/cluster-etl6", "etl6"),
    app(20, "spoke1", "clusters/hub/overlays/cluster-spoke1", "spoke1"),
    app(
        25,
        "acm-configuration",
        "components/acm-configuration",
        "multicluster-engine",
    ),
    Expected {
        env: &[
            ("S3_BUCKET", "hub-observability"),
            ("S3_ENDPOINT", "s3.openshift-storage.svc"),
        ],
        ..app(
            25,
            "acm-observability",
            "components/acm-observability",
            "open-cluster-management-observability",
        )
    },
    app(
        25,
        "metallb-configuration",
        "clusters/hub/overlays/metallb-configuration",
        "metallb-system",
    ),
    app(
        25,
        "nmstate-configuration",
        "clusters/hub/overlays/nmstate-configuration",
        "openshift-nmstate",
    ),
    app(25, "aap-configuration", "components/aap-configuration", "aap"),
    app(
        25,
        "ova-server",
        "clusters/hub/overlays/ova-server",
        "openshift-mtv",
    ),
];
