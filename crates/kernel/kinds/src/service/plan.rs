//! Which addresses and ports a Service needs, wants, and gives back: decided here, reserved by the API server.

use fairway_kernel_schema::field::FieldError;
use serde_json::{Value, json};

use super::validate::cluster_ips;
use super::{is_external_name, needs_health_check, node_port};
use crate::at::{At, Errors};
use crate::read::{self, each_mut, filled, flag, int, list, part, part_mut, text, texts};
use crate::{ip, read::has};

/// A cluster IP to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpNeed {
    /// Its place in `spec.clusterIPs`.
    pub index: usize,
    /// `IPv4` or `IPv6`.
    pub family: String,
    /// The address that the user asked for; otherwise any.
    pub requested: Option<String>,
}

/// A node port to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortNeed {
    /// Its place in `spec.ports`.
    pub index: usize,
    /// The port that the user asked for; otherwise any.
    pub requested: Option<u16>,
    /// Take the same port as this earlier entry of `spec.ports`: one number serves several protocols.
    pub same_as: Option<usize>,
}

/// What to reserve before the write and to release after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationPlan {
    /// Cluster IPs to reserve.
    pub cluster_ips: Vec<IpNeed>,
    /// Cluster IPs to release once the write has happened.
    pub released_ips: Vec<String>,
    /// Node ports to reserve, in this order.
    pub node_ports: Vec<PortNeed>,
    /// Node ports to release once the write has happened.
    pub released_ports: Vec<u16>,
    /// The health check port to reserve: `Some(None)` for any.
    pub health_check_port: Option<Option<u16>>,
}

impl AllocationPlan {
    /// Whether nothing has to be reserved or released.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Writes a reserved address into the Service.
    pub fn assign_ip(service: &mut Value, index: usize, address: &str) {
        let spec = part_mut(service, "spec");
        let mut ips = list(spec, "clusterIPs").to_vec();
        ips.resize(ips.len().max(index + 1), json!(""));
        ips[index] = json!(address);
        read::set(spec, "clusterIPs", ips);
        if index == 0 {
            read::set(spec, "clusterIP", address);
        }
    }

    /// Writes a reserved port into the Service.
    pub fn assign_port(service: &mut Value, index: usize, port: u16) {
        if let Some(slot) = each_mut(part_mut(service, "spec"), "ports").nth(index) {
            read::set(slot, "nodePort", port);
        }
    }

    /// Writes a reserved health check port into the Service.
    pub fn assign_health_check_port(service: &mut Value, port: u16) {
        read::set(part_mut(service, "spec"), "healthCheckNodePort", port);
    }
}

/// Completes the address fields of a Service and decides what it needs. `families` are those of the cluster, the
/// default one first. Run it after defaulting and before preparation, which clears what a change of type releases.
///
/// # Errors
/// What the user asked for and cannot have.
pub fn plan_allocation(
    service: &mut Value,
    old: Option<&Value>,
    families: &[&str],
) -> Result<AllocationPlan, Vec<FieldError>> {
    let old = old.map(|old| part(old, "spec"));
    let spec = part_mut(service, "spec");
    if let Some(old) = old {
        keep_allocated(spec, old);
    }
    normalize_cluster_ips(spec, old);
    complete_families(spec, old, families)?;
    let mut plan = AllocationPlan::default();
    plan_ips(&mut plan, spec, old);
    plan_ports(&mut plan, spec, old);
    plan_health_check(&mut plan, spec, old);
    Ok(plan)
}

/// What a Service that is deleted gives back.
pub fn plan_release(service: &Value) -> AllocationPlan {
    let spec = part(service, "spec");
    let mut plan = AllocationPlan::default();
    if !is_external_name(spec) {
        plan.released_ips = texts(spec, "clusterIPs")
            .filter(|ip| *ip != "None" && !ip.is_empty())
            .map(str::to_owned)
            .collect();
    }
    plan.released_ports = list(spec, "ports").iter().filter_map(requested_port).collect();
    if needs_health_check(spec) {
        plan.released_ports.extend(health_check_port(spec));
    }
    plan
}

fn requested_port(port: &Value) -> Option<u16> {
    u16::try_from(node_port(port)).ok().filter(|p| *p != 0)
}

fn health_check_port(spec: &Value) -> Option<u16> {
    int(spec, "healthCheckNodePort")
        .and_then(|p| u16::try_from(p).ok())
        .filter(|p| *p != 0)
}

fn wants_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => {
            let key = "allocateLoadBalancerNodePorts";
            !has(spec, key) || flag(spec, key)
        }
        _ => false,
    }
}

/// A client that sends a Service without its allocated values means to keep them.
fn keep_allocated(spec: &mut Value, old: &Value) {
    if !is_external_name(old) && !is_external_name(spec) {
        if text(spec, "clusterIP").is_empty() {
            read::copy(spec, old, "clusterIP");
        }
        if !filled(spec, "clusterIPs") && filled(old, "clusterIPs") {
            read::copy(spec, old, "clusterIPs");
        }
    }
    if wants_node_ports(old) && wants_node_ports(spec) {
        let taken: Vec<i64> = list(spec, "ports")
            .iter()
            .map(node_port)
            .filter(|p| *p != 0 && list(old, "ports").iter().any(|o| node_port(o) == *p))
            .collect();
        for port in each_mut(spec, "ports").filter(|p| node_port(p) == 0) {
            let before = list(old, "ports")
                .iter()
                .rev()
                .find(|o| text(o, "name") == text(port, "name"));
            if let Some(known) = before.map(node_port).filter(|p| *p != 0 && !taken.contains(p)) {
                read::set(port, "nodePort", known);
            }
        }
    }
    if needs_health_check(old) && needs_health_check(spec) && health_check_port(spec).is_none() {
        read::copy(spec, old, "healthCheckNodePort");
    }
}

/// Brings `clusterIP` and `clusterIPs` together when the user changed only one of them.
fn normalize_cluster_ips(spec: &mut Value, old: Option<&Value>) {
    let Some(old) = old else {
        if !text(spec, "clusterIP").is_empty() && !filled(spec, "clusterIPs") {
            let first = text(spec, "clusterIP").to_owned();
            read::set(spec, "clusterIPs", json!([first]));
        }
        return;
    };
    let same_primary = text(spec, "clusterIP") == text(old, "clusterIP");
    if same_primary && filled(old, "clusterIPs") && !filled(spec, "clusterIPs") {
        read::copy(spec, old, "clusterIPs");
    }
    if !same_primary && read::same(spec.get("clusterIPs"), old.get("clusterIPs")) {
        let first = text(spec, "clusterIP").to_owned();
        if first.is_empty() {
            read::unset(spec, "clusterIPs");
        } else {
            read::set(spec, "clusterIPs", json!([first]));
        }
    }
}

fn keeps_dual_stack_preference(spec: &Value, old: &Value) -> bool {
    let prefers = |s: &Value| text(s, "ipFamilyPolicy") == "PreferDualStack";
    prefers(spec)
        && (prefers(old) || !has(old, "ipFamilyPolicy"))
        && text(spec, "type") == text(old, "type")
        && ["clusterIP", "clusterIPs", "ipFamilies"]
            .iter()
            .all(|k| read::same(spec.get(k), old.get(k)))
}

/// Fills `ipFamilyPolicy` and `ipFamilies`, and refuses what the cluster cannot give.
fn complete_families(
    spec: &mut Value,
    old: Option<&Value>,
    families: &[&str],
) -> Result<(), Vec<FieldError>> {
    if is_external_name(spec) || old.is_some_and(|old| keeps_dual_stack_preference(spec, old)) {
        return Ok(());
    }
    let selectorless = text(spec, "clusterIP") == "None" && !filled(spec, "selector");
    if !has(spec, "ipFamilyPolicy") {
        match old.and_then(|old| old.get("ipFamilyPolicy")) {
            Some(policy) => read::set(spec, "ipFamilyPolicy", policy.clone()),
            None if selectorless => read::set(spec, "ipFamilyPolicy", "RequireDualStack"),
            None => read::set(spec, "ipFamilyPolicy", "SingleStack"),
        }
    }
    let mut errs = Errors::new();
    cluster_ips(&mut errs, spec, old);
    fail(errs)?;

    let mut errs = Errors::new();
    let single = text(spec, "ipFamilyPolicy") == "SingleStack";
    let policy = part(spec, "ipFamilyPolicy").clone();
    let policy_at = At::new("spec.ipFamilyPolicy");
    for (key, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let plural = if key == "clusterIPs" {
            "cluster IPs"
        } else {
            "IP families"
        };
        if let Some(old) = old {
            if single {
                if read::same(spec.get(key), old.get(key)) && list(spec, key).len() > 1 {
                    let first = list(spec, key)[0].clone();
                    read::set(spec, key, json!([first]));
                }
            } else if reduced(spec, old, key) {
                errs.invalid(
                    &policy_at,
                    policy.clone(),
                    format!("must be 'SingleStack' to release the secondary {what}"),
                );
            }
        }
        if single && list(spec, key).len() == 2 {
            errs.invalid(
                &policy_at,
                policy.clone(),
                format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {plural} are specified"
                ),
            );
        }
    }
    let mut chosen: Vec<String> = texts(spec, "ipFamilies").map(str::to_owned).collect();
    for (i, address) in texts(spec, "clusterIPs")
        .enumerate()
        .take_while(|(_, a)| *a != "None")
    {
        let family = if ip::is_ipv6(address) { "IPv6" } else { "IPv4" };
        if i >= chosen.len() {
            if families.contains(&family) {
                chosen.push(family.to_owned());
            } else {
                errs.invalid(
                    &At::new("spec.clusterIPs").index(i),
                    part(spec, "clusterIPs").clone(),
                    format!("{family} is not configured on this cluster"),
                );
            }
        }
    }
    fail(errs)?;

    let mut errs = Errors::new();
    let default = families.first().copied().unwrap_or("IPv4");
    if !selectorless {
        if text(spec, "ipFamilyPolicy") == "RequireDualStack" && families.len() < 2 {
            errs.invalid(
                &policy_at,
                policy,
                "this cluster is not configured for dual-stack services",
            );
        }
        let at = At::new("spec.ipFamilies");
        for (i, family) in chosen
            .iter()
            .enumerate()
            .filter(|(_, f)| !families.contains(&f.as_str()))
        {
            errs.invalid(&at.index(i), family.as_str(), "not configured on this cluster");
        }
        fail(errs)?;
    }
    if chosen.is_empty() {
        chosen.push(default.to_owned());
    }
    // Headless Services without a selector name both families whatever the cluster has: their endpoints are foreign.
    if !single && chosen.len() == 1 && (selectorless || families.len() == 2) {
        chosen.push(if chosen[0] == "IPv4" { "IPv6" } else { "IPv4" }.to_owned());
    }
    read::set(spec, "ipFamilies", chosen);
    Ok(())
}

fn fail(errs: Errors) -> Result<(), Vec<FieldError>> {
    if errs.is_empty() {
        Ok(())
    } else {
        Err(errs.into_vec())
    }
}

fn reduced(spec: &Value, old: &Value, key: &str) -> bool {
    let (new, old) = (list(spec, key), list(old, key));
    old.len() == 2 && new.len() == 1 && old[0] == new[0]
}

fn plan_ips(plan: &mut AllocationPlan, spec: &Value, old: Option<&Value>) {
    let families: Vec<&str> = texts(spec, "ipFamilies").collect();
    let need = |index: usize| IpNeed {
        index,
        family: families[index].to_owned(),
        requested: texts(spec, "clusterIPs")
            .nth(index)
            .filter(|ip| !ip.is_empty())
            .map(str::to_owned),
    };
    let headless = texts(spec, "clusterIPs").next() == Some("None");
    match old {
        Some(old) if is_external_name(spec) => {
            if !is_external_name(old) && texts(old, "clusterIPs").next() != Some("None") {
                plan.released_ips = texts(old, "clusterIPs").map(str::to_owned).collect();
            }
        }
        Some(old) if !is_external_name(old) => {
            if headless || texts(old, "clusterIPs").next() == Some("None") {
                return;
            }
            match (list(old, "ipFamilies").len(), families.len()) {
                (1, 2) => plan.cluster_ips.push(need(1)),
                (2, 1) => plan
                    .released_ips
                    .extend(texts(old, "clusterIPs").nth(1).map(str::to_owned)),
                _ => {}
            }
        }
        _ if is_external_name(spec) || headless => {}
        _ => plan.cluster_ips.extend((0..families.len()).map(need)),
    }
}

fn plan_ports(plan: &mut AllocationPlan, spec: &Value, old: Option<&Value>) {
    let exposed = |s: &Value| matches!(text(s, "type"), "NodePort" | "LoadBalancer");
    let ports = list(spec, "ports");
    let held: Vec<u16> = old
        .filter(|old| exposed(old))
        .map(|old| list(old, "ports").iter().filter_map(requested_port).collect())
        .unwrap_or_default();
    if exposed(spec) {
        let mut asked = held.clone();
        for (index, port) in ports.iter().enumerate() {
            let requested = requested_port(port);
            if requested.is_none() && !wants_node_ports(spec) {
                continue;
            }
            let number = int(port, "port");
            let earlier = |i: &usize| int(&ports[*i], "port") == number;
            match requested {
                // Another port of the new Service has it already: refused when it is reserved.
                Some(wanted)
                    if asked.contains(&wanted) && (old.is_some() || (0..index).any(|i| earlier(&i))) => {}
                Some(wanted) => {
                    asked.push(wanted);
                    plan.node_ports.push(PortNeed {
                        index,
                        requested,
                        same_as: None,
                    });
                }
                None if old.is_none() => {
                    // One port number for two protocols means one node port for both.
                    let named = ports
                        .iter()
                        .filter(|p| int(p, "port") == number)
                        .find_map(requested_port);
                    let same_as = (0..index).find(earlier);
                    let fresh = same_as.is_none() && named.is_none_or(|n| !asked.contains(&n));
                    if let (Some(n), true) = (named, fresh) {
                        asked.push(n);
                    }
                    plan.node_ports.push(PortNeed {
                        index,
                        requested: named,
                        same_as,
                    });
                }
                None => plan.node_ports.push(PortNeed {
                    index,
                    requested: None,
                    same_as: None,
                }),
            }
        }
    }
    let kept: Vec<u16> = if exposed(spec) {
        ports.iter().filter_map(requested_port).collect()
    } else {
        Vec::new()
    };
    plan.released_ports
        .extend(held.into_iter().filter(|p| !kept.contains(p)));
}

fn plan_health_check(plan: &mut AllocationPlan, spec: &Value, old: Option<&Value>) {
    let had = old.is_some_and(needs_health_check);
    match (had, needs_health_check(spec)) {
        (false, true) => plan.health_check_port = Some(health_check_port(spec)),
        (true, false) => plan.released_ports.extend(old.and_then(health_check_port)),
        _ => {}
    }
}
