//! What makes a Service valid, and what may change in it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    TOPOLOGY_HINTS, TOPOLOGY_MODE, externally_accessible, is_external_name, is_headless, needs_health_check,
    node_port,
};
use crate::at::{At, Errors};
use crate::read::{self, filled, int, list, part, text, texts};
use crate::{ip, meta, selector, validation};

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME: &str = "may not be set for ExternalName services";
const AFFINITY_SECONDS_MAX: i64 = 86400;

pub(super) fn service(errs: &mut Errors, obj: &Value, old: Option<&Value>) {
    let spec = part(obj, "spec");
    let old_spec = old.map(|old| part(old, "spec"));
    let at = At::new("spec");
    validate_topology(errs, obj);
    if list(spec, "ports").is_empty() && !is_headless(spec) && !is_external_name(spec) {
        errs.required(&at.field("ports"), "");
    }
    validate_type(errs, &at, spec);
    validate_ports(errs, &at, spec);
    selector::validate_labels(errs, &at.field("selector"), read::entries(spec, "selector"));
    validate_affinity(errs, &at, spec);
    cluster_ips(errs, spec, old_spec);
    let ips = at.field("externalIPs");
    for (i, address) in texts(spec, "externalIPs").enumerate() {
        let before = errs.len();
        let stored = old_spec.into_iter().flat_map(|old| texts(old, "externalIPs"));
        ip::validate_legacy(errs, &ips.index(i), address, stored);
        if errs.len() == before {
            ip::validate_endpoint(errs, &ips.index(i), address);
        }
    }
    let kind = text(spec, "type");
    if kind.is_empty() {
        errs.required(&at.field("type"), "");
    } else {
        errs.one_of(
            &at.field("type"),
            kind,
            &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        );
    }
    validate_port_clashes(errs, &at, spec);
    validate_source_ranges(errs, obj, old);
    let balanced = kind == "LoadBalancer";
    let allocate = read::has(spec, "allocateLoadBalancerNodePorts");
    if allocate && !balanced {
        errs.forbidden(&at.field("allocateLoadBalancerNodePorts"), ONLY_BALANCER);
    }
    if balanced && !allocate {
        errs.required(&At::new("allocateLoadBalancerNodePorts"), "");
    }
    let class = at.field("loadBalancerClass");
    if read::has(spec, "loadBalancerClass") {
        if balanced {
            let name = text(spec, "loadBalancerClass");
            errs.all_invalid(&class, name, validation::is_qualified_name(name));
        } else {
            errs.forbidden(&class, ONLY_BALANCER);
        }
    }
    validate_traffic(errs, &at, spec);
}

fn validate_topology(errs: &mut Errors, obj: &Value) {
    if let (Some(mode), Some(hints)) = (
        meta::annotation(obj, TOPOLOGY_MODE),
        meta::annotation(obj, TOPOLOGY_HINTS),
    ) && mode != hints
    {
        errs.invalid(
            &At::new("metadata.annotations").key(TOPOLOGY_MODE),
            mode,
            format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"),
        );
    }
}

fn validate_type(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let ips = at.field("clusterIPs");
    match text(spec, "type") {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            errs.invalid(
                &ips.index(0),
                "None",
                format!("may not be set to 'None' for {kind} services"),
            );
        }
        "ExternalName" => {
            if filled(spec, "clusterIPs") {
                errs.forbidden(&ips, NOT_EXTERNAL_NAME);
            }
            if filled(spec, "ipFamilies") {
                errs.forbidden(&at.field("ipFamilies"), NOT_EXTERNAL_NAME);
            }
            if read::has(spec, "ipFamilyPolicy") {
                errs.forbidden(&at.field("ipFamilyPolicy"), NOT_EXTERNAL_NAME);
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errs.required(&at.field("externalName"), "");
            } else {
                errs.all_invalid(
                    &at.field("externalName"),
                    name,
                    validation::is_dns1123_subdomain(name),
                );
            }
        }
        _ => {}
    }
}

/// A port given by number or by name.
pub(crate) fn port_num_or_name(errs: &mut Errors, at: &At<'_>, port: &Value) {
    match port {
        Value::String(name) => errs.all_invalid(at, name, validation::is_valid_port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or(0);
            for fault in validation::is_valid_port_num(number) {
                errs.invalid(at, number, fault);
            }
        }
    }
}

fn validate_ports(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let ports = list(spec, "ports");
    let at = at.field("ports");
    let mut names = HashSet::new();
    for (i, port) in ports.iter().enumerate() {
        let at = at.index(i);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errs.required(&at.field("name"), "");
            }
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
            if !names.insert(name) {
                errs.duplicate(&at.field("name"), name);
            }
        }
        let number = int(port, "port").unwrap_or(0);
        for fault in validation::is_valid_port_num(number) {
            errs.invalid(&at.field("port"), number, fault);
        }
        match text(port, "protocol") {
            "" => errs.required(&at.field("protocol"), ""),
            protocol => errs.one_of(&at.field("protocol"), protocol, &["SCTP", "TCP", "UDP"]),
        }
        port_num_or_name(errs, &at.field("targetPort"), part(port, "targetPort"));
        if read::has(port, "appProtocol") {
            let protocol = text(port, "appProtocol");
            errs.all_invalid(
                &at.field("appProtocol"),
                protocol,
                validation::is_qualified_name(protocol),
            );
        }
    }
}

fn validate_port_clashes(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let at = at.field("ports");
    let ports = list(spec, "ports");
    if text(spec, "type") == "ClusterIP" {
        for (i, _) in ports.iter().enumerate().filter(|(_, p)| node_port(p) != 0) {
            errs.forbidden(
                &at.index(i).field("nodePort"),
                "may not be used when `type` is 'ClusterIP'",
            );
        }
    }
    let mut used = HashSet::new();
    for (i, port) in ports.iter().enumerate().filter(|(_, p)| node_port(p) != 0) {
        if !used.insert((text(port, "protocol"), node_port(port))) {
            errs.duplicate(&at.index(i).field("nodePort"), node_port(port));
        }
    }
    let mut used = HashSet::new();
    for (i, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), int(port, "port").unwrap_or(0));
        if !used.insert((protocol, number)) {
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0,
            });
            errs.duplicate(&at.index(i), shown);
        }
    }
}

fn validate_affinity(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let affinity = text(spec, "sessionAffinity");
    let config = part(spec, "sessionAffinityConfig");
    let config_at = at.field("sessionAffinityConfig");
    if affinity.is_empty() {
        errs.required(&at.field("sessionAffinity"), "");
    } else {
        errs.one_of(&at.field("sessionAffinity"), affinity, &["ClientIP", "None"]);
    }
    if affinity == "None" && !config.is_null() {
        errs.forbidden(&config_at, "must not be set when session affinity is None");
    }
    if affinity == "ClientIP" {
        let client_at = config_at.field("clientIP");
        let timeout_at = client_at.field("timeoutSeconds");
        let why = "when session affinity type is ClientIP";
        let client = part(config, "clientIP");
        match int(client, "timeoutSeconds") {
            _ if config.is_null() => errs.required(&config_at, why),
            _ if client.is_null() => errs.required(&client_at, why),
            None => errs.required(&timeout_at, why),
            Some(seconds) if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) => errs.invalid(
                &timeout_at,
                seconds,
                format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}"),
            ),
            Some(_) => {}
        }
    }
}

fn validate_source_ranges(errs: &mut Errors, obj: &Value, old: Option<&Value>) {
    let spec = part(obj, "spec");
    let balanced = text(spec, "type") == "LoadBalancer";
    if filled(spec, "loadBalancerSourceRanges") {
        // The capital letter is upstream's.
        let at = At::new("spec.LoadBalancerSourceRanges");
        if !balanced {
            errs.forbidden(&at, ONLY_BALANCER);
        }
        for (i, range) in texts(spec, "loadBalancerSourceRanges").enumerate() {
            let stored = old
                .into_iter()
                .flat_map(|old| texts(part(old, "spec"), "loadBalancerSourceRanges"));
            ip::validate_cidr_legacy(errs, &at.index(i), range.trim(), stored.map(str::trim));
        }
    } else if let Some(ranges) = meta::annotation(obj, SOURCE_RANGES) {
        let at = At::new("metadata.annotations");
        let at = at.key(SOURCE_RANGES);
        if !balanced {
            errs.forbidden(&at, ONLY_BALANCER);
        }
        let stored = old.and_then(|old| meta::annotation(old, SOURCE_RANGES));
        if stored != Some(ranges) && !ranges.trim().is_empty() {
            for range in ranges.split(',') {
                ip::validate_cidr_legacy(errs, &at, range.trim(), []);
            }
        }
    }
}

fn validate_traffic(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let external = text(spec, "externalTrafficPolicy");
    let external_at = at.field("externalTrafficPolicy");
    if !externally_accessible(spec) {
        if !external.is_empty() {
            errs.invalid(
                &external_at,
                external,
                "may only be set for externally-accessible services",
            );
        }
    } else if external.is_empty() {
        errs.required(&external_at, "");
    } else {
        errs.one_of(&external_at, external, &["Cluster", "Local"]);
    }
    let port = int(spec, "healthCheckNodePort").unwrap_or(0);
    let port_at = at.field("healthCheckNodePort");
    if !needs_health_check(spec) {
        if port != 0 {
            errs.invalid(
                &port_at,
                port,
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            );
        }
    } else if port == 0 {
        errs.required(&port_at, "");
    } else {
        for fault in validation::is_valid_port_num(port) {
            errs.invalid(&port_at, port, fault);
        }
    }
    let internal_at = at.field("internalTrafficPolicy");
    if read::has(spec, "internalTrafficPolicy") {
        errs.one_of(
            &internal_at,
            text(spec, "internalTrafficPolicy"),
            &["Cluster", "Local"],
        );
    } else if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        errs.required(&internal_at, "");
    }
    if read::has(spec, "trafficDistribution") {
        errs.one_of(
            &at.field("trafficDistribution"),
            text(spec, "trafficDistribution"),
            &["PreferClose", "PreferSameZone", "PreferSameNode"],
        );
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` must fit together; also asked before allocation.
pub(super) fn cluster_ips(errs: &mut Errors, spec: &Value, old: Option<&Value>) {
    if is_external_name(spec) {
        return;
    }
    let ips = list(spec, "clusterIPs");
    let families: Vec<&str> = texts(spec, "ipFamilies").collect();
    let at = At::new("spec.clusterIPs");
    let shown = || part(spec, "clusterIPs").clone();
    let primary = text(spec, "clusterIP");
    if primary.is_empty() {
        if !ips.is_empty() {
            errs.invalid(&at, shown(), "must be empty when `clusterIP` is not specified");
        }
    } else if ips.is_empty() {
        errs.required(&at, "");
    } else if ips[0].as_str() != Some(primary) {
        errs.invalid(&at, shown(), "first value must match `clusterIP`");
    }
    let families_at = At::new("spec.ipFamilies");
    for (i, family) in families.iter().enumerate() {
        errs.one_of(&families_at.index(i), family, &["IPv4", "IPv6"]);
        if families[..i].contains(family) {
            errs.duplicate(&families_at.index(i), *family);
        }
    }
    if read::has(spec, "ipFamilyPolicy") {
        errs.one_of(
            &At::new("spec.ipFamilyPolicy"),
            text(spec, "ipFamilyPolicy"),
            &["PreferDualStack", "RequireDualStack", "SingleStack"],
        );
    }
    let mut broken = false;
    for (i, address) in texts(spec, "clusterIPs").enumerate() {
        if i == 0 && address == "None" {
            if ips.len() > 1 {
                broken = true;
                errs.invalid(&at, shown(), "'None' must be the first and only value");
            }
            continue;
        }
        let before = errs.len();
        let stored = old.into_iter().flat_map(|old| texts(old, "clusterIPs"));
        ip::validate_legacy(errs, &at.index(i), address, stored);
        broken |= errs.len() != before;
    }
    if ips.len() > 2 {
        errs.invalid(&at, shown(), "may only hold up to 2 values");
    }
    if broken {
        return;
    }
    let versions: Vec<bool> = texts(spec, "clusterIPs").map(ip::is_ipv6).collect();
    if versions.len() > 1 && !(versions.contains(&true) && versions.contains(&false)) {
        errs.invalid(&at, shown(), "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (i, (family, address)) in families.iter().zip(texts(spec, "clusterIPs")).enumerate() {
        if (*family == "IPv4" && versions[i]) || (*family == "IPv6" && !versions[i]) {
            errs.invalid(
                &at.index(i),
                address,
                format!("expected an {family} value as indicated by `ipFamilies[{i}]`"),
            );
        }
    }
}

pub(super) fn change(errs: &mut Errors, new: &Value, old: &Value) {
    if !is_external_name(new) && !is_external_name(old) {
        if !(is_headless(old) && is_headless(new)) {
            change_list(errs, new, old, "clusterIPs", "clusterIP");
        }
        if !is_headless(old) && !is_headless(new) {
            change_list(errs, new, old, "ipFamilies", "ipFamily");
        }
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    if balanced(old)
        && balanced(new)
        && !read::same(new.get("loadBalancerClass"), old.get("loadBalancerClass"))
    {
        let shown = part(new, "loadBalancerClass").clone();
        errs.invalid(
            &At::new("spec.loadBalancerClass"),
            shown,
            "may not change once set",
        );
    }
    if needs_health_check(old)
        && needs_health_check(new)
        && int(old, "healthCheckNodePort").unwrap_or(0) != int(new, "healthCheckNodePort").unwrap_or(0)
    {
        errs.forbidden(&At::new("spec.healthCheckNodePort"), "field is immutable");
    }
}

/// Addresses and families may gain or lose their second value, but never change.
fn change_list(errs: &mut Errors, new: &Value, old: &Value, key: &str, singular: &str) {
    let at = At::new("spec");
    let at = at.field(key);
    let (new_list, old_list) = (list(new, key), list(old, key));
    let shown = || part(new, key).clone();
    if old_list.len() == new_list.len() {
        for (i, _) in old_list.iter().enumerate().filter(|(i, v)| new_list[*i] != **v) {
            let i = if key == "ipFamilies" { 0 } else { i };
            errs.invalid(&at.index(i), shown(), "may not change once set");
        }
        return;
    }
    let released = old_list.len() > new_list.len();
    if released && new_list.is_empty() {
        errs.invalid(
            &at.index(0),
            shown(),
            format!("primary {singular} can not be unset"),
        );
    }
    if let (Some(first), Some(before)) = (new_list.first(), old_list.first())
        && first != before
    {
        errs.invalid(&at.index(0), shown(), "may not change once set");
    }
    if released && new_list.len() == 1 && text(new, "ipFamilyPolicy") != "SingleStack" {
        errs.invalid(
            &At::new("spec.ipFamilyPolicy"),
            part(new, "ipFamilyPolicy").clone(),
            format!("must be set to 'SingleStack' when releasing the secondary {singular}"),
        );
    }
}

/// Addresses at which a load balancer answers, for Services and Ingresses alike.
pub(crate) fn validate_load_balancer_status(
    errs: &mut Errors,
    at: &At<'_>,
    status: &Value,
    old: &Value,
    balanced: bool,
) {
    let at = at.field("ingress");
    if !balanced {
        if filled(status, "ingress") {
            errs.forbidden(&at, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    for (i, ingress) in list(status, "ingress").iter().enumerate() {
        let at = at.index(i);
        let address = text(ingress, "ip");
        if !address.is_empty() {
            let stored = list(old, "ingress").iter().map(|entry| text(entry, "ip"));
            ip::validate_legacy(errs, &at.field("ip"), address, stored);
        }
        let mode_at = at.field("ipMode");
        match (read::has(ingress, "ipMode"), address.is_empty()) {
            (false, false) => errs.required(&mode_at, "must be specified when `ip` is set"),
            (true, true) => errs.forbidden(&mode_at, "may not be specified when `ip` is not set"),
            (true, false) => errs.one_of(&mode_at, text(ingress, "ipMode"), &["Proxy", "VIP"]),
            (false, true) => {}
        }
        let host = text(ingress, "hostname");
        if !host.is_empty() {
            errs.all_invalid(
                &at.field("hostname"),
                host,
                validation::is_dns1123_subdomain(host),
            );
            if ip::parse_sloppy(host).is_some() {
                errs.invalid(
                    &at.field("hostname"),
                    host,
                    "must be a DNS name, not an IP address",
                );
            }
        }
    }
}
