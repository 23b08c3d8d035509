//! Service: defaults, what a change of type clears, and warnings. Validation and allocation have files of their own.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::ip;
use crate::meta::{self, NameRule};
use crate::read::{self, each_mut, filled, flag, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed};

mod plan;
mod validate;

pub use plan::{AllocationPlan, IpNeed, PortNeed, plan_allocation, plan_release};
pub(crate) use validate::{port_num_or_name, validate_load_balancer_status};

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(crate) struct Service;

static PROFILE: Profile = Profile {
    name: NameRule::Label,
    status: true,
    create_on_update: true,
    ..Profile::NAMESPACED
};

/// Whether traffic may come from outside the cluster.
fn externally_accessible(spec: &Value) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => filled(spec, "externalIPs"),
        _ => false,
    }
}

/// Whether load balancers ask nodes for their health on a port of its own.
fn needs_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn is_external_name(spec: &Value) -> bool {
    text(spec, "type") == "ExternalName"
}

/// `clusterIPs: ["None"]`.
fn is_headless(spec: &Value) -> bool {
    matches!(list(spec, "clusterIPs"), [Value::String(only)] if only == "None")
}

fn node_port(port: &Value) -> i64 {
    int(port, "nodePort").unwrap_or(0)
}

impl Strategy for Service {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default_text(spec, "sessionAffinity", "None");
        match text(spec, "sessionAffinity") {
            "None" => {
                read::unset(spec, "sessionAffinityConfig");
            }
            "ClientIP" => {
                let client = part(part(spec, "sessionAffinityConfig"), "clientIP");
                if !read::has(client, "timeoutSeconds") {
                    read::set(
                        spec,
                        "sessionAffinityConfig",
                        json!({"clientIP": {"timeoutSeconds": 10800}}),
                    );
                }
            }
            _ => {}
        }
        read::set_default_text(spec, "type", "ClusterIP");
        for port in each_mut(spec, "ports") {
            read::set_default_text(port, "protocol", "TCP");
            let unset = match part(port, "targetPort") {
                Value::Null => true,
                Value::Number(n) => n.as_i64() == Some(0),
                Value::String(s) => s.is_empty(),
                _ => false,
            };
            if unset {
                let number = part(port, "port").clone();
                read::set(port, "targetPort", number);
            }
        }
        if externally_accessible(spec) {
            read::set_default_text(spec, "externalTrafficPolicy", "Cluster");
        }
        if !is_external_name(spec) {
            read::set_default(spec, "internalTrafficPolicy", "Cluster");
        }
        if text(spec, "type") == "LoadBalancer" {
            read::set_default(spec, "allocateLoadBalancerNodePorts", true);
            let Some(balancer) = obj.get_mut("status").and_then(|s| s.get_mut("loadBalancer")) else {
                return;
            };
            for ingress in each_mut(balancer, "ingress") {
                if !text(ingress, "ip").is_empty() {
                    read::set_default(ingress, "ipMode", "VIP");
                }
            }
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(obj, "status", json!({"loadBalancer": {}}));
        drop_internal_policy(obj);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        prepare_changed(&PROFILE, ctx, obj, old);
        if ctx.subresource.is_none() {
            drop_type_dependent(obj, old);
            drop_internal_policy(obj);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        validate::service(errs, obj, old);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate::change(errs, part(obj, "spec"), part(old, "spec"));
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate_load_balancer_status(
            errs,
            &At::new("status.loadBalancer"),
            part(part(obj, "status"), "loadBalancer"),
            part(part(old, "status"), "loadBalancer"),
            text(part(obj, "spec"), "type") == "LoadBalancer",
        );
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>) -> Vec<String> {
        if ctx.subresource.is_some() {
            let at = At::new("status.loadBalancer.ingress");
            let ingress = list(part(part(obj, "status"), "loadBalancer"), "ingress");
            return ingress
                .iter()
                .enumerate()
                .filter_map(|(i, entry)| ip::warning(&at.index(i), text(entry, "ip")))
                .collect();
        }
        service_warnings(obj)
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let spec = part(obj, "spec");
        vec![
            ("spec.clusterIP", text(spec, "clusterIP").to_owned()),
            ("spec.type", text(spec, "type").to_owned()),
        ]
    }
}

fn service_warnings(obj: &Value) -> Vec<String> {
    let spec = part(obj, "spec");
    let mut found = Vec::new();
    if meta::annotation(obj, TOPOLOGY_HINTS).is_some() {
        found.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    let at = At::new("spec.clusterIPs");
    found.extend(
        texts(spec, "clusterIPs")
            .enumerate()
            .filter_map(|(i, v)| ip::warning(&at.index(i), v)),
    );
    let headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None";
    let external_ips = filled(spec, "externalIPs");
    if headless {
        if !text(spec, "loadBalancerIP").is_empty() {
            found.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if external_ips {
            found.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if text(spec, "sessionAffinity") != "None" {
            found.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    let at = At::new("spec.externalIPs");
    found.extend(
        texts(spec, "externalIPs")
            .enumerate()
            .filter_map(|(i, v)| ip::warning(&at.index(i), v)),
    );
    if external_ips && !headless && !is_external_name(spec) {
        found.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    found.extend(ip::warning(
        &At::new("spec.loadBalancerIP"),
        text(spec, "loadBalancerIP"),
    ));
    let at = At::new("spec.loadBalancerSourceRanges");
    found.extend(
        texts(spec, "loadBalancerSourceRanges")
            .enumerate()
            .filter_map(|(i, v)| ip::cidr_warning(&at.index(i), v)),
    );
    if is_external_name(spec) {
        if external_ips {
            found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
        }
    } else if !text(spec, "externalName").is_empty() {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        found.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    found
}

/// A name elsewhere has no traffic of its own to steer.
fn drop_internal_policy(obj: &mut Value) {
    let spec = part_mut(obj, "spec");
    if is_external_name(spec) {
        read::unset(spec, "internalTrafficPolicy");
    }
}

fn same_field(new: &Value, old: &Value, key: &str) -> bool {
    read::same(new.get(key), old.get(key))
}

/// Clears what no longer applies after a change of type, unless the user changed that field too: then validation
/// has something to say.
fn drop_type_dependent(obj: &mut Value, old: &Value) {
    let old = part(old, "spec");
    let new = part_mut(obj, "spec");
    if !is_external_name(old) && is_external_name(new) {
        if same_field(new, old, "clusterIP") && same_field(new, old, "clusterIPs") {
            read::unset(new, "clusterIP");
            read::unset(new, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if same_field(new, old, key) {
                read::unset(new, key);
            }
        }
    }
    let uses_node_ports = |spec: &Value| matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
    if uses_node_ports(old) && !uses_node_ports(new) {
        let known: Vec<i64> = list(old, "ports").iter().map(node_port).collect();
        if list(new, "ports")
            .iter()
            .all(|p| node_port(p) == 0 || known.contains(&node_port(p)))
        {
            for port in each_mut(new, "ports") {
                read::unset(port, "nodePort");
            }
        }
    }
    if needs_health_check(old) && !needs_health_check(new) && same_field(new, old, "healthCheckNodePort") {
        read::unset(new, "healthCheckNodePort");
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    let left_balancer = balanced(old) && !balanced(new);
    if left_balancer {
        let key = "allocateLoadBalancerNodePorts";
        if read::has(new, key) && flag(new, key) == flag(old, key) {
            read::unset(new, key);
        }
        if same_field(new, old, "loadBalancerClass") {
            read::unset(new, "loadBalancerClass");
        }
    }
    if externally_accessible(old)
        && !externally_accessible(new)
        && same_field(new, old, "externalTrafficPolicy")
    {
        read::unset(new, "externalTrafficPolicy");
    }
    if !balanced(new) {
        read::set(part_mut(obj, "status"), "loadBalancer", json!({}));
    }
}

#[cfg(test)]
mod tests;
