//! Containers: names, images, ports, environment, mounts, probes and lifecycle.

use std::collections::HashSet;

use serde_json::Value;

use super::{environment, mounts, security};
use crate::at::{At, Errors};
use crate::read::{self, filled, has, int, list, part, text};
use crate::resources::{self, Level};
use crate::service::port_num_or_name;
use crate::validation;

/// What containers can refer to in their pod.
pub(super) struct Surroundings<'a> {
    pub(super) spec: &'a Value,
    pub(super) claims: Vec<&'a str>,
    /// Volumes without a fault.
    pub(super) volumes: Vec<&'a Value>,
}

impl<'a> Surroundings<'a> {
    pub(super) fn volume(&self, name: &str) -> Option<&'a Value> {
        self.volumes.iter().copied().find(|v| text(v, "name") == name)
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
        "restartPolicy",
        "restartPolicyRules",
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
    environment::validate(errs, &at.field("env"), list(container, "env"), around);
    environment::validate_from(errs, &at.field("envFrom"), list(container, "envFrom"));
    mounts::validate(errs, at, container, around);
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
