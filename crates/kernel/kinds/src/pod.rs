//! Pod: what is filled in, what is valid, and the few fields that may change while it lives.
//!
//! Every pod-bearing kind shares the template's defaults ([`defaults`]) and rules ([`validate`]).

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::quantity::Quantity;
use crate::read::{self, entries, filled, flag, int, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, count_generation, keep_all_but_status};
use crate::{ip, meta, validation};

pub mod account;
mod containers;
pub(crate) mod defaults;
mod environment;
mod mounts;
pub(crate) mod scheduling;
mod security;
pub(crate) mod validate;
mod volumes;

pub(crate) use mounts::{backsteps, local_non_reserved_path};
pub use scheduling::placement_faults;
pub(crate) use volumes::{ORDER as SOURCE_ORDER, required_parts, second_source};

pub(crate) struct Pod;

static PROFILE: Profile = Profile::WORKLOAD;

/// What users read when they store something that only a kubelet could run.
pub(crate) fn nothing_runs(kind: &str, obj: &Value) -> String {
    format!(
        "no node here runs pods: {kind} \"{}\" is stored, but nothing will run it",
        meta::name(obj)
    )
}

/// The warnings that every pod-bearing kind gives, on create and when its spec changes.
pub(crate) fn warnings(kind: &str, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
    let changed = old.is_none_or(|old| !read::same(obj.get("spec"), old.get("spec")));
    if ctx.subresource.is_some() || !changed {
        return Vec::new();
    }
    let mut found = vec![nothing_runs(kind, obj)];
    if kind != "Pod" || old.is_none() {
        pull_secret_warnings(&mut found, kind, obj);
    }
    let name_faults = validation::is_dns1123_label(meta::name(obj));
    if old.is_none() && !name_faults.is_empty() && !matches!(kind, "StatefulSet" | "DaemonSet") {
        let used = if kind == "Pod" {
            "the Pod's hostname"
        } else {
            "Pod names and hostnames"
        };
        found.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            name_faults.join(" ")
        ));
    }
    found
}

/// Pull secrets that are named twice, or not at all: valid, and surely not meant.
fn pull_secret_warnings(found: &mut Vec<String>, kind: &str, obj: &Value) {
    let path = match kind {
        "Pod" => "spec",
        "CronJob" => "spec.jobTemplate.spec.template.spec",
        "PodTemplate" => "template.spec",
        _ => "spec.template.spec",
    };
    let spec = path.split('.').fold(obj, part);
    let secrets = list(spec, "imagePullSecrets");
    for (i, secret) in secrets.iter().enumerate() {
        let name = text(secret, "name");
        if secrets[..i].iter().any(|s| text(s, "name") == name) {
            found.push(format!(
                "{path}.imagePullSecrets[{i}].name: duplicate name {name:?}"
            ));
        }
    }
    for i in (0..secrets.len()).filter(|i| text(&secrets[*i], "name").is_empty()) {
        found.push(format!(
            "{path}.imagePullSecrets[{i}].name: invalid empty name \"\""
        ));
    }
}

/// What of a status cannot be, or cannot change.
fn validate_status(errs: &mut Errors, new: &Value, old: &Value) {
    let at = At::new("status");
    if !text(old, "qosClass").is_empty() {
        errs.immutable(&at.field("qosClass"), new.get("qosClass"), old.get("qosClass"));
    }
    let addresses = at.field("podIPs");
    for (i, address) in list(new, "podIPs").iter().enumerate() {
        let before = list(old, "podIPs").iter().map(|a| text(a, "ip"));
        ip::validate_legacy(errs, &addresses.index(i), text(address, "ip"), before);
    }
}

impl Strategy for Pod {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        defaults::pod(obj);
    }

    fn prepare_create(&self, ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(part_mut(obj, "metadata"), "generation", 1);
        let mut status = json!({"phase": "Pending", "qosClass": qos_class(part(obj, "spec"))});
        if filled(part(obj, "spec"), "schedulingGates") {
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": ctx.now,
            }]);
        }
        read::set(obj, "status", status);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        match ctx.subresource {
            Some("status") => {
                keep_all_but_status(obj, old);
                read::copy(
                    part_mut(obj, "metadata"),
                    part(old, "metadata"),
                    "ownerReferences",
                );
                let status = part_mut(obj, "status");
                for key in ["qosClass", "observedGeneration"] {
                    if !read::has(status, key) {
                        read::copy(status, part(old, "status"), key);
                    }
                }
            }
            Some(only @ ("ephemeralcontainers" | "resize")) => {
                keep_spec_but(obj, old, only);
                read::copy(obj, old, "status");
                count_generation(&PROFILE, obj, old);
            }
            _ => {
                read::copy(obj, old, "status");
                count_generation(&PROFILE, obj, old);
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("spec");
        let spec = part(obj, "spec");
        validate::spec(errs, &at, spec, Some(obj));
        for key in ["containers", "initContainers"] {
            let at = at.field(key);
            for (i, container) in list(spec, key).iter().enumerate() {
                let image = text(container, "image");
                if image.trim() != image {
                    let at = at.index(i);
                    errs.invalid(
                        &at.field("image"),
                        image,
                        "must not have leading or trailing whitespace",
                    );
                }
            }
        }
        if old.is_none() {
            if filled(spec, "ephemeralContainers") {
                errs.forbidden(&at.field("ephemeralContainers"), "cannot be set on create");
            }
            if !text(spec, "nodeName").is_empty() && filled(spec, "schedulingGates") {
                errs.forbidden(
                    &at.field("nodeName"),
                    "cannot be set until all schedulingGates have been cleared",
                );
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate::change(errs, part(obj, "spec"), part(old, "spec"));
    }

    fn validate_subresource(&self, ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let at = At::new("spec");
        match ctx.subresource {
            Some("ephemeralcontainers") => {
                validate::spec(errs, &at, part(obj, "spec"), Some(obj));
                let (new, old) = (part(obj, "spec"), part(old, "spec"));
                let at = at.field("ephemeralContainers");
                for before in list(old, "ephemeralContainers") {
                    let name = text(before, "name");
                    let now = list(new, "ephemeralContainers")
                        .iter()
                        .find(|c| text(c, "name") == name);
                    match now {
                        None => errs.forbidden(
                            &at,
                            format!("existing ephemeral containers {name:?} may not be removed\n"),
                        ),
                        Some(now) if !read::same(Some(now), Some(before)) => errs.forbidden(
                            &at,
                            format!("existing ephemeral containers {name:?} may not be changed\n"),
                        ),
                        Some(_) => {}
                    }
                }
            }
            Some("resize") => validate::spec(errs, &at, part(obj, "spec"), Some(obj)),
            _ => {
                let old_obj = old;
                let (new, old) = (part(obj, "spec"), part(old, "spec"));
                if text(new, "nodeName") != text(old, "nodeName") {
                    errs.forbidden(&At::new("status.nodeName"), "may not be changed directly");
                }
                validate_status(errs, part(obj, "status"), part(old_obj, "status"));
            }
        }
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        warnings("Pod", ctx, obj, old)
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let (spec, status) = (part(obj, "spec"), part(obj, "status"));
        let ip = list(status, "podIPs")
            .first()
            .map_or("", |entry| text(entry, "ip"));
        vec![
            ("spec.nodeName", text(spec, "nodeName").to_owned()),
            ("spec.restartPolicy", text(spec, "restartPolicy").to_owned()),
            ("spec.schedulerName", text(spec, "schedulerName").to_owned()),
            (
                "spec.serviceAccountName",
                text(spec, "serviceAccountName").to_owned(),
            ),
            ("spec.hostNetwork", flag(spec, "hostNetwork").to_string()),
            ("status.phase", text(status, "phase").to_owned()),
            ("status.podIP", ip.to_owned()),
            (
                "status.nominatedNodeName",
                text(status, "nominatedNodeName").to_owned(),
            ),
        ]
    }

    fn reset_fields(&self, subresource: Option<&str>) -> &'static [&'static str] {
        match subresource {
            None => &["status"],
            Some("status") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            _ => &[],
        }
    }
}

/// `ephemeralcontainers` and `resize` change one thing each; all else stays.
fn keep_spec_but(obj: &mut Value, old: &Value, endpoint: &str) {
    let mut spec = part(old, "spec").clone();
    let new = part(obj, "spec");
    if endpoint == "ephemeralcontainers" {
        read::copy(&mut spec, new, "ephemeralContainers");
    } else {
        for key in ["containers", "initContainers"] {
            for container in read::each_mut(&mut spec, key) {
                let name = text(container, "name").to_owned();
                if let Some(wanted) = list(new, key).iter().find(|c| text(c, "name") == name) {
                    read::copy(container, wanted, "resources");
                    read::copy(container, wanted, "resizePolicy");
                }
            }
        }
    }
    read::set(obj, "spec", spec);
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        read::copy(part_mut(obj, "metadata"), part(old, "metadata"), key);
    }
}

/// Guaranteed, Burstable or BestEffort, by requests and limits of cpu and memory.
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    let whole_pod = part(spec, "resources");
    let pods_own = filled(whole_pod, "requests") || filled(whole_pod, "limits");
    let mut guaranteed = true;
    let mut sums: [[Quantity; 2]; 2] = [[Quantity::ZERO; 2]; 2];
    let mut add = |resources: &Value| {
        for (kind, key) in ["requests", "limits"].into_iter().enumerate() {
            let mut found = 0;
            for (name, value) in entries(resources, key) {
                let slot = match name {
                    "cpu" => 0,
                    "memory" => 1,
                    _ => continue,
                };
                if let Some(quantity) = Quantity::from_value(value).filter(|q| q.sign() > 0) {
                    sums[kind][slot] = sums[kind][slot].plus(quantity);
                    found += 1;
                }
            }
            guaranteed &= key != "limits" || found == 2;
        }
    };
    if pods_own {
        add(whole_pod);
    } else {
        for container in list(spec, "containers")
            .iter()
            .chain(list(spec, "initContainers"))
        {
            add(part(container, "resources"));
        }
    }
    let [requests, limits] = sums;
    if requests.iter().chain(&limits).all(|q| q.sign() == 0) {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// The grace period that a delete of this pod gets: none once nothing runs.
pub fn delete_grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let spec = part(pod, "spec");
    let period = asked
        .or_else(|| int(spec, "terminationGracePeriodSeconds"))
        .unwrap_or(0);
    let finished = matches!(text(part(pod, "status"), "phase"), "Failed" | "Succeeded");
    if text(spec, "nodeName").is_empty() || finished {
        0
    } else if period < 0 {
        1
    } else {
        period
    }
}

#[cfg(test)]
mod tests;
