//! Columns compared to the source from which kube-apiserver's are compiled.

use std::collections::HashMap;

use crate::columns;

/// Resources, and the name of the function that prints them upstream.
pub(super) const PRINTERS: &[(&str, &str, &str)] = &[
    ("", "pods", "printPod"),
    ("", "podtemplates", "printPodTemplate"),
    ("", "replicationcontrollers", "printReplicationController"),
    ("", "services", "printService"),
    ("", "endpoints", "printEndpoints"),
    ("", "nodes", "printNode"),
    ("", "events", "printEvent"),
    ("", "namespaces", "printNamespace"),
    ("", "secrets", "printSecret"),
    ("", "serviceaccounts", "printServiceAccount"),
    ("", "persistentvolumes", "printPersistentVolume"),
    ("", "persistentvolumeclaims", "printPersistentVolumeClaim"),
    ("", "componentstatuses", "printComponentStatus"),
    ("", "configmaps", "printConfigMap"),
    ("", "resourcequotas", "printResourceQuota"),
    ("policy", "poddisruptionbudgets", "printPodDisruptionBudget"),
    ("apps", "replicasets", "printReplicaSet"),
    ("apps", "daemonsets", "printDaemonSet"),
    ("apps", "statefulsets", "printStatefulSet"),
    ("apps", "deployments", "printDeployment"),
    ("apps", "controllerrevisions", "printControllerRevision"),
    ("batch", "jobs", "printJob"),
    ("batch", "cronjobs", "printCronJob"),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        "printHorizontalPodAutoscaler",
    ),
    ("autoscaling", "scale", "printScale"),
    ("networking.k8s.io", "ingresses", "printIngress"),
    ("networking.k8s.io", "ingressclasses", "printIngressClass"),
    ("networking.k8s.io", "networkpolicies", "printNetworkPolicy"),
    ("networking.k8s.io", "servicecidrs", "printServiceCIDR"),
    ("networking.k8s.io", "ipaddresses", "printIPAddress"),
    ("discovery.k8s.io", "endpointslices", "printEndpointSlice"),
    ("rbac.authorization.k8s.io", "rolebindings", "printRoleBinding"),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        "printClusterRoleBinding",
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        "printCertificateSigningRequest",
    ),
    (
        "certificates.k8s.io",
        "clustertrustbundles",
        "printClusterTrustBundle",
    ),
    (
        "certificates.k8s.io",
        "podcertificaterequests",
        "printPodCertificateRequest",
    ),
    ("coordination.k8s.io", "leases", "printLease"),
    ("coordination.k8s.io", "leasecandidates", "printLeaseCandidate"),
    ("storage.k8s.io", "storageclasses", "printStorageClass"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "printVolumeAttributesClass",
    ),
    ("storage.k8s.io", "volumeattachments", "printVolumeAttachment"),
    ("storage.k8s.io", "csinodes", "printCSINode"),
    ("storage.k8s.io", "csidrivers", "printCSIDriver"),
    (
        "storage.k8s.io",
        "csistoragecapacities",
        "printCSIStorageCapacity",
    ),
    ("scheduling.k8s.io", "priorityclasses", "printPriorityClass"),
    ("scheduling.k8s.io", "workloads", "printWorkload"),
    ("scheduling.k8s.io", "podgroups", "printPodGroup"),
    ("node.k8s.io", "runtimeclasses", "printRuntimeClass"),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "printMutatingWebhook",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "printValidatingWebhook",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        "printValidatingAdmissionPolicy",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        "printValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        "printMutatingAdmissionPolicy",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        "printMutatingAdmissionPolicyBinding",
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "printFlowSchema"),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        "printPriorityLevelConfiguration",
    ),
    (
        "internal.apiserver.k8s.io",
        "storageversions",
        "printStorageVersion",
    ),
    ("resource.k8s.io", "deviceclasses", "printDeviceClass"),
    ("resource.k8s.io", "resourceclaims", "printResourceClaim"),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        "printResourceClaimTemplate",
    ),
    ("resource.k8s.io", "resourceslices", "printResourceSlice"),
    (
        "resource.k8s.io",
        "resourcepoolstatusrequests",
        "printResourcePoolStatusRequest",
    ),
    ("resource.k8s.io", "devicetaintrules", "printDeviceTaint"),
    (
        "storagemigration.k8s.io",
        "storageversionmigrations",
        "printStorageVersionMigration",
    ),
];

/// Name, type, format and priority.
type Facts = (String, String, String, i32);

/// The value of a field in a Go literal on one line.
fn field(line: &str, name: &str) -> String {
    let rest = line.split_once(&format!("{name}: ")).map_or("", |(_, rest)| rest);
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
        None => rest.chars().take_while(char::is_ascii_digit).collect(),
    }
}

/// The columns that each printing function is registered with.
fn upstream_columns(source: &str) -> HashMap<String, Vec<Facts>> {
    let mut lists: HashMap<String, Vec<Facts>> = HashMap::new();
    let mut printers = HashMap::new();
    let mut current = String::new();
    for line in source.lines().map(str::trim) {
        if let Some((variable, _)) = line.split_once(" := []metav1.TableColumnDefinition{") {
            current = variable.to_owned();
        } else if line.starts_with("{Name: ") {
            let priority = field(line, "Priority").parse().unwrap_or_default();
            let facts = (
                field(line, "Name"),
                field(line, "Type"),
                field(line, "Format"),
                priority,
            );
            lists.entry(current.clone()).or_default().push(facts);
        } else if let Some((_, call)) = line.split_once("h.TableHandler(") {
            let (variable, printer) = call.trim_end_matches(')').split_once(", ").unwrap();
            printers.insert(printer.to_owned(), lists[variable].clone());
        }
    }
    printers
}

#[test]
fn columns_equal_upstream() {
    let Ok(module) = std::env::var("FAIRWAY_K8S_MODULE") else {
        println!("SKIPPED: FAIRWAY_K8S_MODULE is not set");
        return;
    };
    let path = std::path::Path::new(&module).join("pkg/printers/internalversion/printers.go");
    let upstream = upstream_columns(&std::fs::read_to_string(path).unwrap());
    for (group, resource, printer) in PRINTERS {
        let ours: Vec<Facts> = columns(group, "v1", resource)
            .iter()
            .map(|c| {
                (
                    c.name.to_owned(),
                    c.kind.to_owned(),
                    c.format.to_owned(),
                    c.priority,
                )
            })
            .collect();
        assert_eq!(ours, upstream[*printer], "{resource}");
    }
    // Lists are printed by functions of their own, and a Status is no resource.
    let unknown: Vec<&String> = upstream
        .keys()
        .filter(|name| !name.ends_with("List") && *name != "printStatus")
        .filter(|name| !PRINTERS.iter().any(|(_, _, printer)| printer == name))
        .collect();
    assert_eq!(unknown, Vec::<&String>::new());
}
