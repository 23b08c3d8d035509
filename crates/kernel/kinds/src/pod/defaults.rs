//! Defaults of pods and pod templates.

use serde_json::{Value, json};

use crate::quantity;
use crate::read::{self, each_mut, flag, int, part, part_mut, text};

/// File mode of projected files: 0644.
const DEFAULT_MODE: i64 = 420;
const TOKEN_SECONDS: i64 = 3600;

/// Defaults of a Pod: those of a template, and what only real pods get.
pub(crate) fn pod(obj: &mut Value) {
    let spec = part_mut(obj, "spec");
    pod_spec(spec);
    for key in ["containers", "initContainers"] {
        for container in each_mut(spec, key) {
            requests_from_limits(container);
        }
    }
    pod_level_requests(spec);
    read::set_default(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for key in ["containers", "initContainers"] {
            for container in each_mut(spec, key) {
                for port in each_mut(container, "ports") {
                    if let Some(number) = int(port, "containerPort") {
                        read::set_default_number(port, "hostPort", number);
                    }
                }
            }
        }
    }
}

/// Defaults of the pod template below `parent`.
pub(crate) fn template(parent: &mut Value) {
    if let Some(template) = parent.get_mut("template") {
        read::set_default(template, "metadata", json!({}));
        pod_spec(part_mut(template, "spec"));
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = container
        .get_mut("resources")
        .filter(|r| read::filled(r, "limits"))
    else {
        return;
    };
    let limits = part(resources, "limits").clone();
    let requests = part_mut(resources, "requests");
    for (name, limit) in limits.as_object().into_iter().flatten() {
        read::set_default(requests, name, limit.clone());
    }
}

/// Requests of a whole pod default to what its containers ask for, then to its limits.
fn pod_level_requests(spec: &mut Value) {
    if !read::filled(part(spec, "resources"), "limits") {
        return;
    }
    let limits = part(part(spec, "resources"), "limits").clone();
    let sums: Vec<(String, String)> = ["cpu", "memory"]
        .iter()
        .filter_map(|name| {
            let sum = read::list(spec, "containers")
                .iter()
                .filter_map(|c| part(part(c, "resources"), "requests").get(*name))
                .filter_map(quantity::Quantity::from_value)
                .reduce(quantity::Quantity::plus)?;
            Some(((*name).to_owned(), sum.canonical()))
        })
        .collect();
    let requests = part_mut(part_mut(spec, "resources"), "requests");
    for (name, sum) in sums {
        read::set_default(requests, &name, sum);
    }
    for (name, limit) in limits.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            read::set_default(requests, name, limit.clone());
        }
    }
}

/// Defaults of a pod spec, wherever it stands.
pub(crate) fn pod_spec(spec: &mut Value) {
    read::set_default_text(spec, "restartPolicy", "Always");
    read::set_default(spec, "terminationGracePeriodSeconds", 30);
    read::set_default_text(spec, "dnsPolicy", "ClusterFirst");
    read::set_default(spec, "securityContext", json!({}));
    read::set_default_text(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    for volume in each_mut(spec, "volumes") {
        volume_defaults(volume);
    }
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each_mut(spec, key) {
            container_defaults(container);
        }
    }
    if let Some(resources) = spec.get_mut("resources") {
        resource_lists(resources);
    }
    quantity::canonicalize_list(spec, "overhead");
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always shown.
fn service_account(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = name.to_owned();
        read::set(spec, "serviceAccountName", name.as_str());
        read::set(spec, "serviceAccount", name);
    }
}

fn resource_lists(resources: &mut Value) {
    quantity::canonicalize_list(resources, "limits");
    quantity::canonicalize_list(resources, "requests");
}

/// `Always` for images whose tag can move.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or(name);
    let (path, tag) = match last.split_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], tag),
        None if digest => (name, ""),
        None => (name, "latest"),
    };
    let repository = path.split_once('/').map_or(path, |(_, rest)| rest);
    let malformed = path.is_empty() || repository.bytes().any(|b| b.is_ascii_uppercase() || b == b' ');
    if tag == "latest" && !malformed {
        "Always"
    } else {
        "IfNotPresent"
    }
}

fn container_defaults(container: &mut Value) {
    for port in each_mut(container, "ports") {
        read::set_default_text(port, "protocol", "TCP");
    }
    for variable in each_mut(container, "env") {
        if let Some(source) = variable.get_mut("valueFrom") {
            field_sources(source);
            if let Some(file) = source.get_mut("fileKeyRef") {
                read::set_default(file, "optional", false);
            }
        }
    }
    read::set_default(container, "resources", json!({}));
    if let Some(resources) = container.get_mut("resources") {
        resource_lists(resources);
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(key) {
            http_get(probe);
            if let Some(grpc) = probe.get_mut("grpc") {
                read::set_default(grpc, "service", "");
            }
            read::set_default_number(probe, "timeoutSeconds", 1);
            read::set_default_number(probe, "periodSeconds", 10);
            read::set_default_number(probe, "successThreshold", 1);
            read::set_default_number(probe, "failureThreshold", 3);
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.get_mut(key) {
                http_get(handler);
            }
        }
    }
    read::set_default_text(container, "terminationMessagePath", "/dev/termination-log");
    read::set_default_text(container, "terminationMessagePolicy", "File");
    if text(container, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "image"));
        read::set(container, "imagePullPolicy", policy);
    }
}

fn http_get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        read::set_default_text(get, "path", "/");
        read::set_default_text(get, "scheme", "HTTP");
    }
}

fn field_sources(source: &mut Value) {
    if let Some(field) = source.get_mut("fieldRef") {
        read::set_default_text(field, "apiVersion", "v1");
    }
    if let Some(resource) = source.get_mut("resourceFieldRef") {
        read::set_default(resource, "divisor", "0");
        quantity::canonicalize(resource, "divisor");
    }
}

fn volume_defaults(volume: &mut Value) {
    let named_only = volume.as_object().is_some_and(|v| v.keys().all(|k| k == "name"));
    if named_only {
        read::set(volume, "emptyDir", json!({}));
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(key) {
            read::set_default(source, "defaultMode", DEFAULT_MODE);
        }
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        each_mut(source, "items").for_each(field_sources);
    }
    if let Some(source) = volume.get_mut("projected") {
        for projection in each_mut(source, "sources") {
            if let Some(downward) = projection.get_mut("downwardAPI") {
                each_mut(downward, "items").for_each(field_sources);
            }
            if let Some(token) = projection.get_mut("serviceAccountToken") {
                read::set_default(token, "expirationSeconds", TOKEN_SECONDS);
            }
            if let Some(certificate) = projection.get_mut("podCertificate") {
                read::set_default(certificate, "maxExpirationSeconds", 86400);
            }
        }
    }
    if let Some(source) = volume.get_mut("emptyDir") {
        quantity::canonicalize(source, "sizeLimit");
    }
    if let Some(source) = volume.get_mut("hostPath") {
        read::set_default(source, "type", "");
    }
    if let Some(source) = volume
        .get_mut("image")
        .filter(|image| text(image, "pullPolicy").is_empty())
    {
        let policy = pull_policy(text(source, "reference"));
        read::set(source, "pullPolicy", policy);
    }
    if let Some(claim) = volume
        .get_mut("ephemeral")
        .and_then(|e| e.get_mut("volumeClaimTemplate"))
    {
        read::set_default(claim, "metadata", json!({}));
        claim_spec(part_mut(claim, "spec"));
    }
    legacy_sources(volume);
}

/// Sources of drivers that have left the tree keep the defaults of their fields.
pub(crate) fn legacy_sources(volume: &mut Value) {
    if let Some(disk) = volume.get_mut("azureDisk") {
        read::set_default(disk, "cachingMode", "ReadWrite");
        read::set_default(disk, "fsType", "ext4");
        read::set_default(disk, "readOnly", false);
        read::set_default(disk, "kind", "Shared");
    }
    if let Some(iscsi) = volume.get_mut("iscsi") {
        read::set_default_text(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = volume.get_mut("rbd") {
        read::set_default_text(rbd, "pool", "rbd");
        read::set_default_text(rbd, "user", "admin");
        read::set_default_text(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(scale) = volume.get_mut("scaleIO") {
        read::set_default_text(scale, "storageMode", "ThinProvisioned");
        read::set_default_text(scale, "fsType", "xfs");
    }
}

/// Defaults of the spec of a claim, by itself or in a template.
pub(crate) fn claim_spec(spec: &mut Value) {
    read::set_default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = spec.get_mut("resources") {
        resource_lists(resources);
    }
}
