//! Containers: names, images, ports, environment, mounts, probes and lifecycle.

use std::collections::HashSet;

use serde_json::Value;

use super::security;
use crate::at::{At, Errors};
use crate::quantity::Quantity;
use crate::read::{self, filled, flag, has, int, list, part, text};
use crate::resources::{self, Level};
use crate::service::port_num_or_name;
use crate::validation;

/// What containers can refer to in their pod.
pub(super) struct Surroundings<'a> {
    pub(super) spec: &'a Value,
    pub(super) claims: Vec<&'a str>,
}

impl<'a> Surroundings<'a> {
    fn volume(&self, name: &str) -> Option<&'a Value> {
        list(self.spec, "volumes")
            .iter()
            .find(|v| text(v, "name") == name)
    }

    fn grace_period(&self) -> i64 {
        int(self.spec, "terminationGracePeriodSeconds").unwrap_or(30)
    }
}

pub(super) fn validate_all(errs: &mut Errors, at: &At<'_>, around: &Surroundings<'_>) {
    let containers = list(around.spec, "containers");
    let containers_at = at.field("containers");
    if containers.is_empty() {
        errs.required(&containers_at, "");
    }
    let mut names = HashSet::new();
    for (i, container) in containers.iter().enumerate() {
        let at = containers_at.index(i);
        validate_common(errs, &at, container, around);
        if !names.insert(text(container, "name")) {
            errs.duplicate(&at.field("name"), text(container, "name"));
        }
        validate_running(errs, &at, container, around);
        if has(container, "restartPolicy") || filled(container, "restartPolicyRules") {
            validate_restart_policy(errs, &at, container);
        }
    }
    validate_host_ports(errs, &containers_at, containers);
    let at_init = at.field("initContainers");
    for (i, container) in list(around.spec, "initContainers").iter().enumerate() {
        let at = at_init.index(i);
        validate_common(errs, &at, container, around);
        let name = text(container, "name");
        if !names.insert(name) {
            errs.duplicate(&at.field("name"), name);
        }
        if has(container, "restartPolicy") || filled(container, "restartPolicyRules") {
            validate_restart_policy(errs, &at, container);
        }
        if text(container, "restartPolicy") == "Always" {
            validate_running(errs, &at, container, around);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if has(container, key) {
                    errs.forbidden(
                        &at.field(key),
                        "may not be set for init containers without restartPolicy=Always",
                    );
                }
            }
        }
    }
    validate_ephemeral(errs, &at.field("ephemeralContainers"), around, names);
}

fn validate_ephemeral<'a>(
    errs: &mut Errors,
    at: &At<'_>,
    around: &Surroundings<'a>,
    mut names: HashSet<&'a str>,
) {
    const NOT_ALLOWED: &[&str] = &[
        "ports",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "resizePolicy",
    ];
    let targets = names.clone();
    for (i, container) in list(around.spec, "ephemeralContainers").iter().enumerate() {
        let at = at.index(i);
        validate_common(errs, &at, container, around);
        let name = text(container, "name");
        if !names.insert(name) {
            errs.duplicate(&at.field("name"), name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !targets.contains(target) {
            errs.not_found(&at.field("targetContainerName"), target);
        }
        let resources = part(container, "resources")
            .as_object()
            .is_some_and(|r| !r.is_empty());
        let forbidden = NOT_ALLOWED.iter().filter(|k| has(container, k)).copied();
        for key in forbidden.chain(resources.then_some("resources")) {
            errs.forbidden(&at.field(key), "cannot be set for an Ephemeral Container");
        }
        let mounts = at.field("volumeMounts");
        for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
            for key in ["subPath", "subPathExpr"] {
                if !text(mount, key).is_empty() {
                    errs.forbidden(
                        &mounts.index(i).field(key),
                        "cannot be set for an Ephemeral Container",
                    );
                }
            }
        }
    }
}

fn validate_common(errs: &mut Errors, at: &At<'_>, container: &Value, around: &Surroundings<'_>) {
    let name = text(container, "name");
    if name.is_empty() {
        errs.required(&at.field("name"), "");
    } else {
        errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
    }
    errs.require_text(at, container, "image");
    errs.required_one_of(
        &at.field("terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    validate_ports(errs, &at.field("ports"), list(container, "ports"));
    validate_env(errs, &at.field("env"), list(container, "env"), around);
    validate_env_from(errs, &at.field("envFrom"), list(container, "envFrom"));
    validate_mounts(errs, at, container, around);
    errs.required_one_of(
        &at.field("imagePullPolicy"),
        text(container, "imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
    );
    resources::validate_requirements(
        errs,
        &at.field("resources"),
        part(container, "resources"),
        Level::Container,
        &around.claims,
    );
    validate_resize_policy(errs, &at.field("resizePolicy"), container, around.spec);
    let host_users = part(around.spec, "hostUsers").as_bool().unwrap_or(true);
    security::container(
        errs,
        &at.field("securityContext"),
        part(container, "securityContext"),
        host_users,
    );
}

fn validate_running(errs: &mut Errors, at: &At<'_>, container: &Value, around: &Surroundings<'_>) {
    let lifecycle = part(container, "lifecycle");
    let lifecycle_at = at.field("lifecycle");
    for key in ["postStart", "preStop"] {
        if has(lifecycle, key) {
            let kinds = &["exec", "httpGet", "tcpSocket", "sleep"];
            validate_handler(
                errs,
                &lifecycle_at.field(key),
                part(lifecycle, key),
                kinds,
                around,
            );
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = part(container, key);
        if probe.is_null() {
            continue;
        }
        let at = at.field(key);
        validate_handler(
            errs,
            &at,
            probe,
            &["exec", "httpGet", "tcpSocket", "grpc"],
            around,
        );
        errs.none_negative(
            &at,
            probe,
            &[
                "initialDelaySeconds",
                "timeoutSeconds",
                "periodSeconds",
                "successThreshold",
                "failureThreshold",
            ],
        );
        let grace_at = at.field("terminationGracePeriodSeconds");
        match int(probe, "terminationGracePeriodSeconds") {
            Some(seconds) if key == "readinessProbe" => {
                errs.invalid(&grace_at, seconds, "must not be set for readinessProbes");
            }
            Some(seconds) if seconds <= 0 => errs.invalid(&grace_at, seconds, "must be greater than 0"),
            _ => {}
        }
        let threshold = int(probe, "successThreshold").unwrap_or(0);
        if key != "readinessProbe" && threshold != 1 {
            errs.invalid(&at.field("successThreshold"), threshold, "must be 1");
        }
    }
}

fn validate_handler(
    errs: &mut Errors,
    at: &At<'_>,
    handler: &Value,
    kinds: &[&str],
    around: &Surroundings<'_>,
) {
    let mut first = true;
    for kind in kinds.iter().filter(|k| has(handler, k)) {
        let at = at.field(kind);
        if !first {
            errs.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        first = false;
        let action = part(handler, kind);
        match *kind {
            "exec" if !filled(action, "command") => errs.required(&at.field("command"), ""),
            "httpGet" => {
                errs.require_text(&at, action, "path");
                port_num_or_name(errs, &at.field("port"), part(action, "port"));
                errs.one_of(&at.field("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
                for header in list(action, "httpHeaders") {
                    let name = text(header, "name");
                    let faults = validation::is_http_header_name(name);
                    errs.all_invalid(&at.field("httpHeaders"), name, faults);
                }
            }
            "tcpSocket" | "grpc" => port_num_or_name(errs, &at.field("port"), part(action, "port")),
            "sleep" => {
                let seconds = int(action, "seconds").unwrap_or(0);
                let grace = around.grace_period();
                if seconds < 0 || seconds > grace {
                    errs.invalid(
                        &at,
                        seconds,
                        format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})"),
                    );
                }
            }
            _ => {}
        }
    }
    if first {
        errs.required(at, "must specify a handler type");
    }
}

fn validate_ports(errs: &mut Errors, at: &At<'_>, ports: &[Value]) {
    let mut names = HashSet::new();
    for (i, port) in ports.iter().enumerate() {
        let at = at.index(i);
        let name = text(port, "name");
        if !name.is_empty() {
            let faults = validation::is_valid_port_name(name);
            if !faults.is_empty() {
                errs.all_invalid(&at.field("name"), name, faults);
            } else if !names.insert(name) {
                errs.duplicate(&at.field("name"), name);
            }
        }
        for key in ["containerPort", "hostPort"] {
            match int(port, key).unwrap_or(0) {
                0 if key == "containerPort" => errs.required(&at.field(key), ""),
                0 => {}
                number => {
                    for fault in validation::is_valid_port_num(number) {
                        errs.invalid(&at.field(key), number, fault);
                    }
                }
            }
        }
        errs.required_one_of(
            &at.field("protocol"),
            text(port, "protocol"),
            &["SCTP", "TCP", "UDP"],
        );
    }
}

fn validate_host_ports(errs: &mut Errors, at: &At<'_>, containers: &[Value]) {
    let mut used = HashSet::new();
    for (i, container) in containers.iter().enumerate() {
        let at = at.index(i);
        let at = at.field("ports");
        for (j, port) in list(container, "ports").iter().enumerate() {
            let number = int(port, "hostPort").unwrap_or(0);
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if number != 0 && !used.insert(key.clone()) {
                errs.duplicate(&at.index(j).field("hostPort"), key);
            }
        }
    }
}

const FIELD_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const VALUE_SOURCES: &[&str] = &[
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

fn validate_env(errs: &mut Errors, at: &At<'_>, variables: &[Value], around: &Surroundings<'_>) {
    for (i, variable) in variables.iter().enumerate() {
        let at = at.index(i);
        let name = text(variable, "name");
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_env_var_name(name));
        }
        let Some(source) = variable.get("valueFrom") else {
            continue;
        };
        let at = at.field("valueFrom");
        let mut count = 0;
        for kind in VALUE_SOURCES.iter().filter(|k| has(source, k)) {
            count += 1;
            let from = part(source, kind);
            let at = at.field(kind);
            match *kind {
                "fieldRef" => field_ref(errs, &at, from, FIELD_PATHS),
                "resourceFieldRef" => resource_field_ref(errs, &at, from, false),
                "fileKeyRef" => file_key_ref(errs, &at, from, around),
                _ => {
                    let name = text(from, "name");
                    errs.all_invalid(&at.field("name"), name, validation::is_dns1123_subdomain(name));
                    match text(from, "key") {
                        "" => errs.required(&at.field("key"), ""),
                        key => errs.all_invalid(&at.field("key"), key, validation::is_config_map_key(key)),
                    }
                }
            }
        }
        if count == 0 {
            errs.invalid(
                &at,
                "",
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            );
        } else if !text(variable, "value").is_empty() {
            errs.invalid(&at, "", "may not be specified when `value` is not empty");
        } else if count > 1 {
            errs.invalid(&at, "", "may not have more than one field specified at a time");
        }
    }
}

pub(super) fn field_ref(errs: &mut Errors, at: &At<'_>, from: &Value, known: &[&str]) {
    if text(from, "apiVersion").is_empty() {
        errs.required(&at.field("apiVersion"), "");
        return;
    }
    let path = text(from, "fieldPath");
    if path.is_empty() {
        errs.required(&at.field("fieldPath"), "");
        return;
    }
    let subscript = path.strip_suffix("']").and_then(|p| p.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            errs.all_invalid(at, key, validation::is_qualified_name(&key.to_lowercase()));
        }
        Some(("metadata.labels", key)) => errs.all_invalid(at, key, validation::is_qualified_name(key)),
        Some((path, _)) => errs.invalid(at, path, "does not support subscript"),
        None if !known.contains(&path) => {
            let detail = format!("error converting fieldPath: field label not supported: {path}");
            if matches!(path, "metadata.labels" | "metadata.annotations") {
                errs.not_supported(&at.field("fieldPath"), path, known);
            } else {
                errs.invalid(&at.field("fieldPath"), path, detail);
            }
        }
        None => {}
    }
}

pub(super) fn resource_field_ref(errs: &mut Errors, at: &At<'_>, from: &Value, volume: bool) {
    let resource = text(from, "resource");
    let huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if volume && text(from, "containerName").is_empty() {
        errs.required(&at.field("containerName"), "");
    } else if resource.is_empty() {
        errs.required(&at.field("resource"), "");
    } else if !RESOURCE_FIELDS.contains(&resource) && !huge {
        errs.not_supported(&at.field("resource"), resource, RESOURCE_FIELDS);
    }
    let Some(divisor) = from
        .get("divisor")
        .and_then(Quantity::from_value)
        .filter(|d| d.sign() != 0)
    else {
        return;
    };
    let divisor = divisor.canonical();
    let cpu = resource.ends_with(".cpu");
    let units: &[&str] = if cpu {
        &["1m", "1"]
    } else {
        &[
            "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
        ]
    };
    if !units.contains(&divisor.as_str()) {
        let what = match resource.split_once('.').map_or("", |(_, r)| r) {
            "cpu" => "1m and 1 are supported with the cpu resource".to_owned(),
            other => {
                let name = match other {
                    "ephemeral-storage" => "local ephemeral storage",
                    name if resources::is_huge_page(name) => "hugepages",
                    name => name,
                };
                format!("{} are supported with the {name} resource", units.join(", "))
            }
        };
        errs.invalid(
            &at.field("divisor"),
            resource,
            format!("only divisor's values {what}"),
        );
    }
}

fn file_key_ref(errs: &mut Errors, at: &At<'_>, from: &Value, around: &Surroundings<'_>) {
    match text(from, "key") {
        "" => errs.required(&at.field("key"), ""),
        key => errs.all_invalid(&at.field("key"), key, validation::is_env_var_name(key)),
    }
    match text(from, "path") {
        "" => errs.required(&at.field("path"), ""),
        path => backsteps(errs, &at.field("path"), path),
    }
    let volume = text(from, "volumeName");
    let volume_at = at.field("volumeName");
    if volume.is_empty() {
        errs.required(&volume_at, "");
        return;
    }
    errs.all_invalid(&volume_at, volume, validation::is_dns1123_label(volume));
    match around.volume(volume) {
        None => errs.not_found(&volume_at, volume),
        Some(source) if !has(source, "emptyDir") => {
            errs.invalid(&volume_at, volume, "referenced volume must be of type emptyDir");
        }
        Some(_) => {}
    }
}

fn validate_env_from(errs: &mut Errors, at: &At<'_>, sources: &[Value]) {
    for (i, source) in sources.iter().enumerate() {
        let item = at.index(i);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errs.all_invalid(&item.field("prefix"), prefix, validation::is_env_var_name(prefix));
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"]
            .into_iter()
            .filter(|k| has(source, k))
        {
            count += 1;
            let from_at = item.field(kind);
            match text(part(source, kind), "name") {
                "" => errs.required(&from_at.field("name"), ""),
                name => errs.all_invalid(
                    &from_at.field("name"),
                    name,
                    validation::is_dns1123_subdomain(name),
                ),
            }
        }
        match count {
            0 => errs.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errs.invalid(at, "", "may not have more than one field specified at a time"),
        }
    }
}

/// A path may not climb.
pub(crate) fn backsteps(errs: &mut Errors, at: &At<'_>, path: &str) {
    if path.split('/').any(|item| item == "..") {
        errs.invalid(at, path, "must not contain '..'");
    }
}

pub(super) fn local_descending_path(errs: &mut Errors, at: &At<'_>, path: &str) {
    if path.starts_with('/') {
        errs.invalid(at, path, "must be a relative path");
    }
    backsteps(errs, at, path);
}

/// A relative path that neither climbs nor begins with two dots.
pub(crate) fn local_non_reserved_path(errs: &mut Errors, at: &At<'_>, path: &str) {
    local_descending_path(errs, at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        errs.invalid(at, path, "must not start with '..'");
    }
}

fn validate_mounts(errs: &mut Errors, at: &At<'_>, container: &Value, around: &Surroundings<'_>) {
    let (mounts, devices) = (list(container, "volumeMounts"), list(container, "volumeDevices"));
    let mounts_at = at.field("volumeMounts");
    let mut points = HashSet::new();
    for (i, mount) in mounts.iter().enumerate() {
        let at = mounts_at.index(i);
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        errs.require_text(&at, mount, "name");
        if around.volume(name).is_none() {
            errs.not_found(&at.field("name"), name);
        }
        errs.require_text(&at, mount, "mountPath");
        if !points.insert(path) {
            errs.invalid(&at.field("mountPath"), path, "must be unique");
        }
        if devices.iter().any(|d| text(d, "name") == name) {
            errs.invalid(&at.field("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|d| text(d, "devicePath") == path) {
            errs.invalid(
                &at.field("mountPath"),
                path,
                "must not already exist as a path in volumeDevices",
            );
        }
        for key in ["subPath", "subPathExpr"] {
            if !text(mount, key).is_empty() {
                local_descending_path(errs, &mounts_at.field(key), text(mount, key));
            }
        }
        if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
            let shown = text(mount, "subPathExpr");
            errs.invalid(
                &at.field("subPathExpr"),
                shown,
                "subPathExpr and subPath are mutually exclusive",
            );
        }
        validate_mount_modes(errs, &mounts_at, mount, container);
    }
    let devices_at = at.field("volumeDevices");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for (i, device) in devices.iter().enumerate() {
        let at = devices_at.index(i);
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        errs.require_text(&at, device, "name");
        if !name.is_empty() && !names.insert(name) {
            errs.invalid(&at.field("name"), name, "must be unique");
        }
        match around.volume(name) {
            None => errs.not_found(&at.field("name"), name),
            Some(v) if !has(v, "persistentVolumeClaim") && !has(v, "ephemeral") => errs.invalid(
                &at.field("name"),
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ),
            Some(_) => {}
        }
        errs.require_text(&at, device, "devicePath");
        if path.split('/').any(|item| item == "..") {
            errs.invalid(&at.field("devicePath"), path, "can not contain backsteps ('..')");
        } else if !paths.insert(path) {
            errs.invalid(&at.field("devicePath"), path, "must be unique");
        }
    }
}

fn validate_mount_modes(errs: &mut Errors, at: &At<'_>, mount: &Value, container: &Value) {
    let propagation = text(mount, "mountPropagation");
    if has(mount, "mountPropagation") {
        let at = at.field("mountPropagation");
        errs.one_of(&at, propagation, &["Bidirectional", "HostToContainer", "None"]);
        if propagation == "Bidirectional" && !flag(part(container, "securityContext"), "privileged") {
            errs.forbidden(
                &at,
                "Bidirectional mount propagation is available only to privileged containers",
            );
        }
    }
    if has(mount, "recursiveReadOnly") {
        let at = at.field("recursiveReadOnly");
        match text(mount, "recursiveReadOnly") {
            "Disabled" => {}
            "Enabled" | "IfPossible" => {
                if !flag(mount, "readOnly") {
                    errs.forbidden(&at, "may only be specified when readOnly is true");
                }
                if !matches!(propagation, "" | "None") {
                    errs.forbidden(
                        &at,
                        "may only be specified when mountPropagation is None or not specified",
                    );
                }
            }
            other => errs.not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]),
        }
    }
}

fn validate_resize_policy(errs: &mut Errors, at: &At<'_>, container: &Value, spec: &Value) {
    let mut seen = HashSet::new();
    for (i, policy) in list(container, "resizePolicy").iter().enumerate() {
        let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(name) {
            errs.duplicate(&at.index(i), name);
        }
        errs.required_one_of(at, name, &["cpu", "memory"]);
        errs.required_one_of(at, restart, &["NotRequired", "RestartContainer"]);
        if text(spec, "restartPolicy") == "Never" && restart != "NotRequired" {
            errs.invalid(
                at,
                restart,
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            );
        }
    }
}

fn validate_restart_policy(errs: &mut Errors, at: &At<'_>, container: &Value) {
    let rules = list(container, "restartPolicyRules");
    if has(container, "restartPolicy") {
        let policy = text(container, "restartPolicy");
        errs.one_of(
            &at.field("restartPolicy"),
            policy,
            &["Always", "Never", "OnFailure"],
        );
    } else {
        errs.required(
            &at.field("restartPolicy"),
            "must specify restartPolicy when restart rules are used",
        );
    }
    let at = at.field("restartPolicyRules");
    if rules.len() > 20 {
        errs.too_many(&at, rules.len(), 20);
    }
    for (i, rule) in rules.iter().enumerate() {
        let at = at.index(i);
        errs.one_of(
            &at.field("action"),
            text(rule, "action"),
            &["Restart", "RestartAllContainers"],
        );
        let codes_at = at.field("exitCodes");
        match rule.get("exitCodes") {
            None => errs.required(&codes_at, "must be specified"),
            Some(codes) => {
                errs.one_of(
                    &codes_at.field("operator"),
                    text(codes, "operator"),
                    &["In", "NotIn"],
                );
                let values = read::list(codes, "values").len();
                if values > 255 {
                    errs.too_many(&codes_at.field("values"), values, 255);
                }
            }
        }
    }
}
