//! The fields that transformers work on unless told otherwise.
//!
//! Most of them are in pod specs, which workloads hold in one of three places. So the table is written down by what a
//! pod spec holds, and multiplied by where pod specs are.

use std::sync::{Arc, OnceLock};

use super::{NameReference, TransformerConfig};
use crate::fieldspec::FieldSpec;
use crate::id::Gvk;

/// Workloads and where their pod spec is.
const POD: (&str, &str) = ("Pod", "spec");
const POD_TEMPLATE: (&str, &str) = ("PodTemplate", "template/spec");
const DEPLOYMENT: (&str, &str) = ("Deployment", "spec/template/spec");
const REPLICA_SET: (&str, &str) = ("ReplicaSet", "spec/template/spec");
const DAEMON_SET: (&str, &str) = ("DaemonSet", "spec/template/spec");
const STATEFUL_SET: (&str, &str) = ("StatefulSet", "spec/template/spec");
const REPLICATION_CONTROLLER: (&str, &str) = ("ReplicationController", "spec/template/spec");
const JOB: (&str, &str) = ("Job", "spec/template/spec");
const CRON_JOB: (&str, &str) = ("CronJob", "spec/jobTemplate/spec/template/spec");

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// The default configuration, made once.
pub(crate) fn default_config() -> &'static Arc<TransformerConfig> {
    static CONFIG: OnceLock<Arc<TransformerConfig>> = OnceLock::new();
    CONFIG.get_or_init(|| Arc::new(make()))
}

fn spec(group: &str, version: &str, kind: &str, path: &str) -> FieldSpec {
    FieldSpec::new(Gvk::new(group, version, kind), path, false)
}

fn created(group: &str, version: &str, kind: &str, path: &str) -> FieldSpec {
    FieldSpec::new(Gvk::new(group, version, kind), path, true)
}

fn make() -> TransformerConfig {
    let name = vec![spec("", "", "", "metadata/name")];
    let template_labels = metadata("labels");
    let mut common_labels = selectors();
    common_labels.extend(template_labels.iter().cloned());
    let mut config = TransformerConfig {
        name_prefix: name.clone(),
        name_suffix: name,
        namespace: vec![
            created("", "", "Namespace", "metadata/name"),
            created(
                "apiregistration.k8s.io",
                "",
                "APIService",
                "spec/service/namespace",
            ),
            spec(
                "apiextensions.k8s.io",
                "",
                "CustomResourceDefinition",
                "spec/conversion/webhook/clientConfig/service/namespace",
            ),
        ],
        common_labels,
        labels: Vec::new(),
        template_labels,
        common_annotations: metadata("annotations"),
        name_reference: name_references(),
        var_reference: var_references(),
        images: ["spec", "spec/template/spec"]
            .iter()
            .flat_map(|pod| {
                [
                    "containers[]/image",
                    "initContainers[]/image",
                    "volumes[]/image/reference",
                ]
                .map(|path| format!("{pod}/{path}"))
            })
            .map(|path| created("", "", "", &path))
            .collect(),
        replicas: ["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"]
            .map(|kind| created("", "", kind, "spec/replicas"))
            .to_vec(),
    };
    config.sort();
    config
}

/// Labels or annotations of objects and of the templates in them.
fn metadata(field: &str) -> Vec<FieldSpec> {
    let template = format!("spec/template/metadata/{field}");
    // The labels of a StatefulSet's template are those of its own group only; annotations are of any.
    let (stateful_group, is_labels) = if field == "labels" {
        ("apps", true)
    } else {
        ("", false)
    };
    let mut specs = vec![
        created("", "", "", &format!("metadata/{field}")),
        created("", "v1", "ReplicationController", &template),
        created("", "", "Deployment", &template),
        created("", "", "ReplicaSet", &template),
        created("", "", "DaemonSet", &template),
        created(stateful_group, "", "StatefulSet", &template),
        created("batch", "", "Job", &template),
        created(
            "batch",
            "",
            "CronJob",
            &format!("spec/jobTemplate/metadata/{field}"),
        ),
        created(
            "batch",
            "",
            "CronJob",
            &format!("spec/jobTemplate/spec/template/metadata/{field}"),
        ),
    ];
    if is_labels {
        specs.push(created(
            "apps",
            "",
            "StatefulSet",
            "spec/volumeClaimTemplates[]/metadata/labels",
        ));
    }
    specs
}

/// Label selectors.
fn selectors() -> Vec<FieldSpec> {
    let mut specs = vec![
        created("", "v1", "Service", "spec/selector"),
        created("", "v1", "ReplicationController", "spec/selector"),
        created("", "", "Deployment", "spec/selector/matchLabels"),
        created("", "", "ReplicaSet", "spec/selector/matchLabels"),
        created("", "", "DaemonSet", "spec/selector/matchLabels"),
        created("apps", "", "StatefulSet", "spec/selector/matchLabels"),
        spec("batch", "", "Job", "spec/selector/matchLabels"),
        spec(
            "batch",
            "",
            "CronJob",
            "spec/jobTemplate/spec/selector/matchLabels",
        ),
        spec("policy", "", "PodDisruptionBudget", "spec/selector/matchLabels"),
        spec(
            "networking.k8s.io",
            "",
            "NetworkPolicy",
            "spec/podSelector/matchLabels",
        ),
        spec(
            "networking.k8s.io",
            "",
            "NetworkPolicy",
            "spec/ingress/from/podSelector/matchLabels",
        ),
        spec(
            "networking.k8s.io",
            "",
            "NetworkPolicy",
            "spec/egress/to/podSelector/matchLabels",
        ),
    ];
    for kind in ["Deployment", "StatefulSet"] {
        for affinity in ["podAffinity", "podAntiAffinity"] {
            let at = format!("spec/template/spec/affinity/{affinity}");
            for term in [
                "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm",
                "requiredDuringSchedulingIgnoredDuringExecution",
            ] {
                specs.push(spec(
                    "apps",
                    "",
                    kind,
                    &format!("{at}/{term}/labelSelector/matchLabels"),
                ));
            }
        }
        let spread = "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels";
        specs.push(spec("apps", "", kind, spread));
    }
    specs
}

/// A path within the pod specs of some workloads.
fn in_pods(workloads: &[(&str, &str)], paths: &[&str]) -> Vec<FieldSpec> {
    let of = |(kind, pod): &(&str, &str)| -> Vec<FieldSpec> {
        // Pods are of the core group, which only their version says.
        let version = if *kind == "Pod" && paths.len() > 1 {
            "v1"
        } else {
            ""
        };
        paths
            .iter()
            .map(|path| spec("", version, kind, &format!("{pod}/{path}")))
            .collect()
    };
    workloads.iter().flat_map(of).collect()
}

fn reference(group: &str, version: &str, kind: &str, referrers: Vec<FieldSpec>) -> NameReference {
    NameReference {
        gvk: Gvk::new(group, version, kind),
        referrers,
    }
}

fn name_references() -> Vec<NameReference> {
    let templates = [
        POD,
        POD_TEMPLATE,
        DEPLOYMENT,
        REPLICA_SET,
        DAEMON_SET,
        STATEFUL_SET,
        JOB,
        CRON_JOB,
    ];
    let users = [
        POD,
        STATEFUL_SET,
        DEPLOYMENT,
        REPLICATION_CONTROLLER,
        CRON_JOB,
        JOB,
        DAEMON_SET,
    ];
    let roles = || ["Role", "ClusterRole"].map(|kind| spec("", "", kind, "rules/resourceNames"));
    let ingress = |path: &str| spec("", "", "Ingress", path);

    let mut config_maps = in_pods(
        &templates,
        &[
            "volumes/configMap/name",
            "containers/env/valueFrom/configMapKeyRef/name",
            "initContainers/env/valueFrom/configMapKeyRef/name",
            "containers/envFrom/configMapRef/name",
            "initContainers/envFrom/configMapRef/name",
            "volumes/projected/sources/configMap/name",
        ],
    );
    config_maps.push(spec("", "", "Node", "spec/configSource/configMap"));
    config_maps.extend(roles());
    config_maps.push(ingress(
        r"metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap",
    ));

    let mut secrets = in_pods(
        &templates,
        &[
            "volumes/secret/secretName",
            "containers/env/valueFrom/secretKeyRef/name",
            "initContainers/env/valueFrom/secretKeyRef/name",
            "containers/envFrom/secretRef/name",
            "initContainers/envFrom/secretRef/name",
            "imagePullSecrets/name",
            "volumes/projected/sources/secret/name",
        ],
    );
    secrets.extend([
        ingress("spec/tls/secretName"),
        ingress(r"metadata/annotations/ingress.kubernetes.io\/auth-secret"),
        ingress(r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-secret"),
        ingress(r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-tls-secret"),
        spec("", "", "ServiceAccount", "imagePullSecrets/name"),
    ]);
    secrets.extend(
        ["secretName", "adminSecretName", "userSecretName", "secretRef"]
            .map(|key| spec("", "", "StorageClass", &format!("parameters/{key}"))),
    );
    secrets.extend(roles());
    secrets.push(spec(
        "serving.knative.dev",
        "v1",
        "Service",
        "spec/template/spec/containers/env/valueFrom/secretKeyRef/name",
    ));
    secrets.push(spec("", "", "PersistentVolume", "spec/azureFile/secretName"));

    let services = vec![
        spec("apps", "", "StatefulSet", "spec/serviceName"),
        ingress("spec/rules/http/paths/backend/serviceName"),
        ingress("spec/backend/serviceName"),
        ingress("spec/rules/http/paths/backend/service/name"),
        ingress("spec/defaultBackend/service/name"),
        spec("apiregistration.k8s.io", "", "APIService", "spec/service/name"),
        spec(
            ADMISSION,
            "",
            "ValidatingWebhookConfiguration",
            "webhooks/clientConfig/service",
        ),
        spec(
            ADMISSION,
            "",
            "MutatingWebhookConfiguration",
            "webhooks/clientConfig/service",
        ),
    ];
    let mut accounts = vec![
        spec(RBAC, "", "RoleBinding", "subjects"),
        spec(RBAC, "", "ClusterRoleBinding", "subjects"),
    ];
    accounts.extend(in_pods(&users, &["serviceAccountName"]));

    let scaled = ["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"].map(|kind| {
        let target = spec("", "", "HorizontalPodAutoscaler", "spec/scaleTargetRef/name");
        reference("", "", kind, vec![target])
    });
    let mut references = scaled.to_vec();
    references.extend([
        reference("", "v1", "ConfigMap", config_maps),
        reference("", "v1", "Secret", secrets),
        reference("", "v1", "Service", services),
        reference(
            RBAC,
            "",
            "Role",
            vec![spec(RBAC, "", "RoleBinding", "roleRef/name")],
        ),
        reference(
            RBAC,
            "",
            "ClusterRole",
            vec![
                spec(RBAC, "", "RoleBinding", "roleRef/name"),
                spec(RBAC, "", "ClusterRoleBinding", "roleRef/name"),
            ],
        ),
        reference("", "v1", "ServiceAccount", accounts),
        reference(
            "",
            "v1",
            "PersistentVolumeClaim",
            in_pods(&users, &["volumes/persistentVolumeClaim/claimName"]),
        ),
        reference(
            "",
            "v1",
            "PersistentVolume",
            vec![
                spec("", "", "PersistentVolumeClaim", "spec/volumeName"),
                spec("", "", "ClusterRole", "rules/resourceNames"),
            ],
        ),
        reference(
            "storage.k8s.io",
            "v1",
            "StorageClass",
            vec![
                spec("", "", "PersistentVolume", "spec/storageClassName"),
                spec("", "", "PersistentVolumeClaim", "spec/storageClassName"),
                spec(
                    "",
                    "",
                    "StatefulSet",
                    "spec/volumeClaimTemplates/spec/storageClassName",
                ),
            ],
        ),
        reference(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            in_pods(&users, &["priorityClassName"]),
        ),
        // The group is written with a version in the original, too, so no IngressClass is ever meant.
        reference(
            "networking.k8s.io/v1",
            "v1",
            "IngressClass",
            vec![ingress("spec/ingressClassName")],
        ),
        reference(
            ADMISSION,
            "",
            "ValidatingAdmissionPolicy",
            vec![spec(
                ADMISSION,
                "",
                "ValidatingAdmissionPolicyBinding",
                "spec/policyName",
            )],
        ),
    ]);
    references
}

/// Fields in which `$(VAR)` is replaced.
fn var_references() -> Vec<FieldSpec> {
    let mut specs = Vec::new();
    for (kind, pod) in [
        CRON_JOB,
        DAEMON_SET,
        DEPLOYMENT,
        JOB,
        POD,
        REPLICA_SET,
        STATEFUL_SET,
    ] {
        for containers in ["containers", "initContainers"] {
            for field in ["args", "command", "env/value", "volumeMounts/mountPath"] {
                specs.push(spec("", "", kind, &format!("{pod}/{containers}/{field}")));
            }
        }
    }
    for (kind, path) in [
        ("CronJob", "spec/jobTemplate/spec/template/volumes/nfs/server"),
        ("DaemonSet", "spec/template/spec/volumes/nfs/server"),
        ("Deployment", "spec/template/spec/volumes/nfs/server"),
        ("Deployment", "spec/template/metadata/annotations"),
        ("Ingress", "spec/rules/host"),
        ("Ingress", "spec/tls/hosts"),
        ("Ingress", "spec/tls/secretName"),
        ("Job", "spec/template/spec/volumes/nfs/server"),
        ("Pod", "spec/volumes/nfs/server"),
        ("ReplicaSet", "spec/template/spec/volumes/nfs/server"),
        ("Service", "spec/ports/port"),
        ("Service", "spec/ports/targetPort"),
        ("StatefulSet", "spec/volumeClaimTemplates/spec/nfs/server"),
        ("PersistentVolume", "spec/nfs/server"),
        ("", "metadata/labels"),
        ("", "metadata/annotations"),
    ] {
        specs.push(spec("", "", kind, path));
    }
    specs
}
