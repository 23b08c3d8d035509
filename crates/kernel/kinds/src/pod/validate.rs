//! The rules for a pod spec as a whole, and for pod templates.

use serde_json::Value;

use super::containers::{self, Surroundings};
use super::{scheduling, security, volumes};
use crate::at::{At, Errors};
use crate::read::{self, filled, flag, has, int, list, part, text, texts};
use crate::resources::{self, Level};
use crate::{go_dump, ip, meta, selector, validation};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARS_MAX: usize = 2048;

/// A pod spec; `pod` is the Pod itself, none in a template.
pub(crate) fn spec(errs: &mut Errors, at: &At<'_>, spec: &Value, pod: Option<&Value>) {
    let sound = volumes::validate(errs, &at.field("volumes"), list(spec, "volumes"), pod);
    let claims = list(spec, "resourceClaims")
        .iter()
        .map(|c| text(c, "name"))
        .collect();
    validate_claims(errs, &at.field("resourceClaims"), list(spec, "resourceClaims"));
    let around = Surroundings {
        spec,
        claims,
        volumes: sound,
    };
    containers::validate_all(errs, at, &around);
    if let Some(resources) = spec.get("resources") {
        if filled(resources, "claims") {
            let at = at.field("resources");
            errs.forbidden(
                &at.field("claims"),
                "claims may not be set for Resources at pod-level",
            );
        }
        resources::validate_requirements(
            errs,
            &at.field("resources"),
            resources,
            Level::Pod,
            &around.claims,
        );
    }
    if flag(spec, "hostNetwork") {
        validate_host_network_ports(errs, at, spec, pod.is_some());
    }
    let restart = text(spec, "restartPolicy");
    errs.required_one_of(
        &at.field("restartPolicy"),
        restart,
        &["Always", "OnFailure", "Never"],
    );
    errs.required_one_of(
        &at.field("dnsPolicy"),
        text(spec, "dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    selector::validate_labels(
        errs,
        &at.field("nodeSelector"),
        read::entries(spec, "nodeSelector"),
    );
    security::pod(errs, at, spec);
    security::host_users(errs, at, spec);
    if text(part(spec, "os"), "name") == "windows" {
        security::windows(errs, at, spec);
    }
    scheduling::affinity(errs, &at.field("affinity"), part(spec, "affinity"));
    validate_dns(errs, &at.field("dnsConfig"), spec);
    let gates = at.field("readinessGates");
    for (i, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let at = gates.index(i);
        errs.all_invalid(
            &at.field("conditionType"),
            kind,
            validation::is_qualified_name(kind),
        );
    }
    let gates = at.field("schedulingGates");
    for (i, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        errs.all_invalid(&gates.index(i), name, validation::is_qualified_name(name));
        if list(spec, "schedulingGates")[..i]
            .iter()
            .any(|g| text(g, "name") == name)
        {
            errs.duplicate(&gates.index(i), name);
        }
    }
    let spread = at.field("topologySpreadConstraints");
    scheduling::topology_spread(errs, &spread, list(spec, "topologySpreadConstraints"));
    validate_names(errs, at, spec);
    if let Some(seconds) = int(spec, "activeDeadlineSeconds") {
        let highest = i64::from(i32::MAX);
        if !(1..=highest).contains(&seconds) {
            errs.invalid(
                &at.field("activeDeadlineSeconds"),
                seconds,
                validation::in_range(1, highest),
            );
        }
    }
    scheduling::tolerations(errs, &at.field("tolerations"), list(spec, "tolerations"));
    let aliases = at.field("hostAliases");
    for (i, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = aliases.index(i);
        ip::validate_legacy(errs, &at.field("ip"), text(alias, "ip"), []);
        let hosts = at.field("hostnames");
        for (i, host) in texts(alias, "hostnames").enumerate() {
            errs.all_invalid(&hosts.index(i), host, validation::is_dns1123_subdomain(host));
        }
    }
    if has(spec, "preemptionPolicy") {
        errs.required_one_of(
            &at.field("preemptionPolicy"),
            text(spec, "preemptionPolicy"),
            &["PreemptLowerPriority", "Never"],
        );
    }
    let overhead = at.field("overhead");
    let overhead = overhead.field("limits");
    for (name, value) in read::entries(spec, "overhead") {
        resources::validate_container_name(errs, &overhead.key(name), name);
        resources::validate_amount(errs, &overhead.key(name), name, value);
    }
    if has(spec, "os") {
        let name = text(part(spec, "os"), "name");
        if name.is_empty() {
            errs.required(&at.field("os.name"), "cannot be empty");
        } else {
            errs.one_of(&at.field("os"), name, &["linux", "windows"]);
        }
    }
    if text(spec, "serviceAccountName").is_empty() && pod.is_some() {
        let volumes_at = at.field("volumes");
        for (i, volume) in list(spec, "volumes").iter().enumerate() {
            if volumes::has_service_account_token(volume) {
                errs.forbidden(
                    &volumes_at.index(i),
                    "must not be specified when serviceAccountName is not set",
                );
            }
        }
    }
}

fn validate_names(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    for key in [
        "serviceAccountName",
        "nodeName",
        "priorityClassName",
        "runtimeClassName",
    ] {
        let name = text(spec, key);
        if !name.is_empty() {
            errs.all_invalid(&at.field(key), name, validation::is_dns1123_subdomain(name));
        }
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            errs.all_invalid(&at.field(key), name, validation::is_dns1123_label(name));
        }
    }
    if let Some(name) = spec.get("hostnameOverride").and_then(Value::as_str) {
        let at = at.field("hostnameOverride");
        if flag(spec, "setHostnameAsFQDN") {
            errs.forbidden(&at, "may not be specified when setHostnameAsFQDN is true");
        }
        if flag(spec, "hostNetwork") {
            errs.forbidden(&at, "may not be specified when hostNetwork is true");
        }
        if name.len() > 64 {
            errs.too_long(&at, 64);
        }
        errs.all_invalid(&at, name, validation::is_dns1123_subdomain(name));
    }
}

fn validate_claims(errs: &mut Errors, at: &At<'_>, claims: &[Value]) {
    for (i, claim) in claims.iter().enumerate() {
        let at = at.index(i);
        let name = text(claim, "name");
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        } else if claims[..i].iter().any(|c| text(c, "name") == name) {
            errs.duplicate(&at.field("name"), name);
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
        }
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            let name = text(claim, key);
            if !name.is_empty() {
                errs.all_invalid(&at.field(key), name, validation::is_dns1123_subdomain(name));
            }
        }
        match (
            has(claim, "resourceClaimName"),
            has(claim, "resourceClaimTemplateName"),
        ) {
            (true, true) => errs.invalid(
                &at,
                go_claim(claim),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => errs.invalid(
                &at,
                go_claim(claim),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
            _ => {}
        }
    }
}

fn validate_host_network_ports(errs: &mut Errors, at: &At<'_>, spec: &Value, is_pod: bool) {
    let at = at.field("containers");
    for (i, container) in list(spec, "containers").iter().enumerate() {
        let at = at.index(i);
        let at = at.field("ports");
        for (i, port) in list(container, "ports").iter().enumerate() {
            let host = int(port, "hostPort").unwrap_or(0);
            if (is_pod || host != 0) && host != int(port, "containerPort").unwrap_or(0) {
                errs.invalid(
                    &at.index(i).field("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                );
            }
        }
    }
}

fn validate_dns(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let config = part(spec, "dnsConfig");
    let servers_at = at.field("nameservers");
    let servers = list(config, "nameservers").len();
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            errs.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers == 0 {
            errs.required(
                &servers_at,
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
            return;
        }
    }
    if servers > NAMESERVERS_MAX {
        errs.invalid(
            &servers_at,
            part(config, "nameservers").clone(),
            format!("must not have more than {NAMESERVERS_MAX} nameservers"),
        );
    }
    for (i, server) in texts(config, "nameservers").enumerate() {
        ip::validate_legacy(errs, &servers_at.index(i), server, []);
    }
    let searches_at = at.field("searches");
    let searches = list(config, "searches").len();
    let shown = || part(config, "searches").clone();
    if searches > SEARCHES_MAX {
        errs.invalid(
            &searches_at,
            shown(),
            format!("must not have more than {SEARCHES_MAX} search paths"),
        );
    }
    let characters = texts(config, "searches").map(str::len).sum::<usize>() + searches.saturating_sub(1);
    if characters > SEARCH_CHARS_MAX {
        errs.invalid(
            &searches_at,
            shown(),
            format!(
                "must not have more than {SEARCH_CHARS_MAX} characters (including spaces) in the search list"
            ),
        );
    }
    for (i, search) in texts(config, "searches").enumerate().filter(|(_, s)| *s != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let faults = validation::is_dns1123_subdomain_with_underscore(search);
        errs.all_invalid(&searches_at.index(i), search, faults);
    }
    let options = at.field("options");
    for (i, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errs.required(&options.index(i), "must not be empty");
        }
    }
}

/// A pod template: metadata and spec.
pub(crate) fn template(errs: &mut Errors, at: &At<'_>, template: &Value) {
    meta::validate_template(errs, at, part(template, "metadata"));
    let spec_at = at.field("spec");
    spec(errs, &spec_at, part(template, "spec"), None);
    if filled(part(template, "spec"), "ephemeralContainers") {
        errs.forbidden(
            &spec_at.field("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// What templates of controllers that keep pods running may not say.
pub(crate) fn long_running(errs: &mut Errors, at: &At<'_>, template: &Value, kind: &str) {
    let spec = part(template, "spec");
    let restart = text(spec, "restartPolicy");
    if restart != "Always" {
        errs.not_supported(&at.field("spec.restartPolicy"), restart, &["Always"]);
    }
    if has(spec, "activeDeadlineSeconds") {
        errs.forbidden(
            &at.field("spec.activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        );
    }
}

/// The selector of a controller must choose the pods of its own template.
pub(crate) fn selector_matches(errs: &mut Errors, at: &At<'_>, label_selector: &Value, template: &Value) {
    let labels = part(part(template, "metadata"), "labels");
    // What is not there selects nothing.
    if label_selector.is_null() || !selector::matches(label_selector, labels) {
        errs.invalid(
            &at.field("metadata.labels"),
            read::sorted(labels),
            "`selector` does not match template `labels`",
        );
    }
}

fn go_claim(claim: &Value) -> Value {
    let fields = [
        ("Name", "name", read::Unset::Text),
        ("ResourceClaimName", "resourceClaimName", read::Unset::Null),
        (
            "ResourceClaimTemplateName",
            "resourceClaimTemplateName",
            read::Unset::Null,
        ),
    ];
    read::go_struct(claim, &fields)
}

/// What may change in the spec of a pod: images, deadline, tolerations, gates.
pub(super) fn change(errs: &mut Errors, new: &Value, old: &Value) {
    let at = At::new("spec");
    for key in ["containers", "initContainers"] {
        if list(new, key).len() != list(old, key).len() {
            errs.forbidden(&at.field(key), "pod updates may not add or remove containers");
            return;
        }
    }
    let deadline_at = at.field("activeDeadlineSeconds");
    let highest = i64::from(i32::MAX);
    if let Some(seconds) = int(new, "activeDeadlineSeconds").filter(|s| !(0..=highest).contains(s)) {
        errs.invalid(&deadline_at, seconds, validation::in_range(0, highest));
        return;
    }
    match (
        int(new, "activeDeadlineSeconds"),
        int(old, "activeDeadlineSeconds"),
    ) {
        (Some(now), Some(before)) if now > before => {
            errs.invalid(&deadline_at, now, "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => errs.invalid(
            &deadline_at,
            Value::Null,
            "must not update from a positive integer to nil value",
        ),
        _ => {}
    }
    scheduling::only_added_tolerations(errs, &at.field("tolerations"), new, old);
    scheduling::only_deleted_gates(errs, &at.field("schedulingGates"), new, old);
    let mut munged = new.clone();
    for key in ["containers", "initContainers"] {
        for (container, before) in read::each_mut(&mut munged, key).zip(list(old, key)) {
            read::copy(container, before, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        read::copy(&mut munged, old, key);
    }
    let grace = "terminationGracePeriodSeconds";
    if int(old, grace).is_some_and(|s| s < 0) && int(&munged, grace) == Some(1) {
        read::copy(&mut munged, old, grace);
    }
    if filled(old, "schedulingGates") {
        // As long as a pod is gated it may be steered to nodes.
        read::copy(&mut munged, old, "nodeSelector");
        read::copy(&mut munged, old, "affinity");
    }
    if !read::same(Some(&munged), Some(old)) {
        let changed = go_dump::difference(&go_dump::pod_spec(old), &go_dump::pod_spec(&munged));
        errs.forbidden(
            &at,
            format!(
                "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n{changed}"
            ),
        );
    }
}
