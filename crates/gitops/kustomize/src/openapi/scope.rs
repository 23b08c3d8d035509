//! Which built-in kinds live in namespaces, as of the schema that the original has built in. Kinds that are not listed
//! are taken to live in one.

/// Kinds without a namespace, by group and versions.
const CLUSTER: &[(&str, &[&str], &[&str])] = &[
    (
        "admissionregistration.k8s.io",
        &["v1", "v1beta1"],
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
    (
        "apiextensions.k8s.io",
        &["v1", "v1beta1"],
        &["CustomResourceDefinition"],
    ),
    ("apiregistration.k8s.io", &["v1", "v1beta1"], &["APIService"]),
    (
        "certificates.k8s.io",
        &["v1", "v1beta1"],
        &["CertificateSigningRequest"],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1beta1"],
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("networking.k8s.io", &["v1", "v1beta1"], &["IngressClass"]),
    ("node.k8s.io", &["v1", "v1beta1"], &["RuntimeClass"]),
    ("policy", &["v1beta1"], &["PodSecurityPolicy"]),
    (
        "rbac.authorization.k8s.io",
        &["v1", "v1beta1"],
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    ("scheduling.k8s.io", &["v1", "v1beta1"], &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["v1", "v1beta1"],
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    (
        "",
        &["v1"],
        &[
            "ComponentStatus",
            "Namespace",
            "Node",
            "NodeProxyOptions",
            "PersistentVolume",
        ],
    ),
];

/// Kinds with a namespace, whatever else a schema says of them.
const NAMESPACED: &[(&str, &[&str], &[&str])] = &[
    (
        "apps",
        &["v1"],
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    ("autoscaling", &["v1"], &["HorizontalPodAutoscaler", "Scale"]),
    (
        "autoscaling",
        &["v2beta1", "v2beta2"],
        &["HorizontalPodAutoscaler"],
    ),
    ("batch", &["v1"], &["CronJob", "Job"]),
    ("batch", &["v1beta1"], &["CronJob"]),
    ("coordination.k8s.io", &["v1", "v1beta1"], &["Lease"]),
    ("discovery.k8s.io", &["v1", "v1beta1"], &["EndpointSlice"]),
    ("events.k8s.io", &["v1", "v1beta1"], &["Event"]),
    ("extensions", &["v1beta1"], &["Ingress"]),
    ("networking.k8s.io", &["v1"], &["Ingress", "NetworkPolicy"]),
    ("networking.k8s.io", &["v1beta1"], &["Ingress"]),
    ("policy", &["v1", "v1beta1"], &["PodDisruptionBudget"]),
    (
        "rbac.authorization.k8s.io",
        &["v1", "v1beta1"],
        &["Role", "RoleBinding"],
    ),
    ("storage.k8s.io", &["v1beta1"], &["CSIStorageCapacity"]),
    (
        "",
        &["v1"],
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
];

/// Whether a built-in kind lives in a namespace; none for all others.
pub(super) fn is_namespaced(api_version: &str, kind: &str) -> Option<bool> {
    let (group, version) = crate::id::split_api_version(api_version);
    let listed = |table: &[(&str, &[&str], &[&str])]| {
        table
            .iter()
            .any(|(g, versions, kinds)| *g == group && versions.contains(&version) && kinds.contains(&kind))
    };
    if listed(NAMESPACED) {
        return Some(true);
    }
    listed(CLUSTER).then_some(false)
}
