//! NetworkPolicy, IngressClass, IPAddress and ServiceCIDR; Ingress has a file of its own.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{self, each_mut, filled, has, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{ip, selector, validation};

pub(crate) struct NetworkPolicy;

static POLICY: Profile = Profile {
    generation: &["spec"],
    ..Profile::NAMESPACED
};

impl Strategy for NetworkPolicy {
    fn profile(&self) -> &'static Profile {
        &POLICY
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        if !filled(spec, "policyTypes") {
            let types = if filled(spec, "egress") {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
            read::set(spec, "policyTypes", types);
        }
        for key in ["ingress", "egress"] {
            for rule in each_mut(spec, key) {
                for port in each_mut(rule, "ports") {
                    read::set_default(port, "protocol", "TCP");
                }
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        selector::validate(errs, &at.field("podSelector"), part(spec, "podSelector"));
        let stored = old.map(stored_cidrs).unwrap_or_default();
        for (key, peers) in [("ingress", "from"), ("egress", "to")] {
            let at = at.field(key);
            for (i, rule) in list(spec, key).iter().enumerate() {
                let at = at.index(i);
                let ports_at = at.field("ports");
                for (i, port) in list(rule, "ports").iter().enumerate() {
                    validate_port(errs, &ports_at.index(i), port);
                }
                let peers_at = at.field(peers);
                for (i, peer) in list(rule, peers).iter().enumerate() {
                    validate_peer(errs, &peers_at.index(i), peer, &stored);
                }
            }
        }
        let types_at = at.field("policyTypes");
        if list(spec, "policyTypes").len() > 2 {
            let shown = part(spec, "policyTypes").clone();
            errs.invalid(&types_at, shown, "may not specify more than two policyTypes");
            return;
        }
        for (i, kind) in texts(spec, "policyTypes").enumerate() {
            errs.one_of(&types_at.index(i), kind, &["Ingress", "Egress"]);
        }
    }
}

fn blocks(block: &Value) -> impl Iterator<Item = &str> {
    std::iter::once(text(block, "cidr")).chain(texts(block, "except"))
}

fn stored_cidrs(old: &Value) -> Vec<String> {
    let spec = part(old, "spec");
    [("ingress", "from"), ("egress", "to")]
        .iter()
        .flat_map(|(key, peers)| list(spec, key).iter().flat_map(|rule| list(rule, peers)))
        .flat_map(|peer| blocks(part(peer, "ipBlock")))
        .map(str::to_owned)
        .collect()
}

fn validate_port(errs: &mut Errors, at: &At<'_>, port: &Value) {
    if has(port, "protocol") {
        errs.one_of(
            &at.field("protocol"),
            text(port, "protocol"),
            &["TCP", "UDP", "SCTP"],
        );
    }
    let end = int(port, "endPort");
    let (port_at, end_at) = (at.field("port"), at.field("endPort"));
    match part(port, "port") {
        Value::String(name) => {
            if let Some(end) = end {
                errs.invalid(&end_at, end, "may not be specified when `port` is non-numeric");
            }
            errs.all_invalid(&port_at, name, validation::is_valid_port_name(name));
        }
        Value::Null => {
            if let Some(end) = end {
                errs.invalid(&end_at, end, "may not be specified when `port` is not specified");
            }
        }
        number => {
            let number = number.as_i64().unwrap_or(0);
            for fault in validation::is_valid_port_num(number) {
                errs.invalid(&port_at, number, fault);
            }
            if let Some(end) = end {
                if end < number {
                    errs.invalid(&end_at, number, "must be greater than or equal to `port`");
                }
                for fault in validation::is_valid_port_num(end) {
                    errs.invalid(&end_at, end, fault);
                }
            }
        }
    }
}

fn validate_peer(errs: &mut Errors, at: &At<'_>, peer: &Value, stored: &[String]) {
    let mut count = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if has(peer, key) {
            count += 1;
            selector::validate(errs, &at.field(key), part(peer, key));
        }
    }
    let block = part(peer, "ipBlock");
    if !block.is_null() {
        count += 1;
        validate_block(errs, &at.field("ipBlock"), block, stored);
    }
    if count == 0 {
        errs.required(at, "must specify a peer");
    } else if count > 1 && !block.is_null() {
        errs.forbidden(at, "may not specify both ipBlock and another peer");
    }
}

fn validate_block(errs: &mut Errors, at: &At<'_>, block: &Value, stored: &[String]) {
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        errs.required(&at.field("cidr"), "");
        return;
    }
    let known = || stored.iter().map(String::as_str);
    ip::validate_cidr_legacy(errs, &at.field("cidr"), cidr, known());
    let Some(whole) = ip::Cidr::parse_sloppy(cidr) else {
        return;
    };
    let except_at = at.field("except");
    for (i, except) in texts(block, "except").enumerate() {
        ip::validate_cidr_legacy(errs, &except_at.index(i), except, known());
        if let Some(hole) = ip::Cidr::parse_sloppy(except)
            && (!whole.contains(hole.network()) || whole.prefix >= hole.prefix)
        {
            errs.invalid(&except_at.index(i), except, "must be a strict subset of `cidr`");
        }
    }
}

pub(crate) struct IngressClass;

static INGRESS_CLASS: Profile = Profile {
    generation: &["spec"],
    ..Profile::CLUSTER
};
const CONTROLLER_MAX: usize = 250;

impl Strategy for IngressClass {
    fn profile(&self) -> &'static Profile {
        &INGRESS_CLASS
    }

    fn default(&self, obj: &mut Value) {
        if let Some(parameters) = obj.get_mut("spec").and_then(|s| s.get_mut("parameters")) {
            read::set_default(parameters, "scope", "Cluster");
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let controller = text(spec, "controller");
        let controller_at = at.field("controller");
        if controller.len() > CONTROLLER_MAX {
            errs.too_long(&controller_at, CONTROLLER_MAX);
        }
        domain_prefixed_path(errs, &controller_at, controller);
        let parameters = part(spec, "parameters");
        if parameters.is_null() {
            return;
        }
        let at = at.field("parameters");
        object_reference(errs, &at, parameters);
        let namespace_at = at.field("namespace");
        match text(parameters, "scope") {
            "Namespace" => match text(parameters, "namespace") {
                "" => errs.required(&namespace_at, "`parameters.scope` is set to 'Namespace'"),
                name => errs.all_invalid(&namespace_at, name, validation::is_dns1123_label(name)),
            },
            "Cluster" if has(parameters, "namespace") => {
                errs.forbidden(&namespace_at, "`parameters.scope` is set to 'Cluster'");
            }
            "Cluster" => {}
            other => errs.not_supported(&at.field("scope"), other, &["Cluster", "Namespace"]),
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.controller"),
            new.get("controller"),
            old.get("controller"),
        );
    }
}

/// `domain/path`, such as `acme.io/foo`.
pub(crate) fn domain_prefixed_path(errs: &mut Errors, at: &At<'_>, value: &str) {
    let (domain, path) = value.split_once('/').unwrap_or(("", ""));
    if value.is_empty() {
        errs.required(at, "");
    } else if domain.is_empty() || path.is_empty() {
        errs.invalid(
            at,
            value,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        );
    } else {
        errs.all_invalid(at, domain, validation::is_dns1123_subdomain(domain));
        if !path
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b))
        {
            let fault = validation::regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
            errs.invalid(at, path, fault);
        }
    }
}

/// A reference by group, kind and name.
pub(crate) fn object_reference(errs: &mut Errors, at: &At<'_>, reference: &Value) {
    if has(reference, "apiGroup") {
        let group = text(reference, "apiGroup");
        errs.all_invalid(
            &at.field("apiGroup"),
            group,
            validation::is_dns1123_subdomain(group),
        );
    }
    for key in ["kind", "name"] {
        match text(reference, key) {
            "" => errs.required(&at.field(key), ""),
            value => errs.all_invalid(&at.field(key), value, validation::is_path_segment_name(value)),
        }
    }
}

/// IPAddress: named by the address it stands for.
pub(crate) struct IpAddress;

static IP_ADDRESS: Profile = Profile {
    name: NameRule::Own,
    ..Profile::CLUSTER
};

impl Strategy for IpAddress {
    fn profile(&self) -> &'static Profile {
        &IP_ADDRESS
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        ip::validate(errs, &At::new("metadata.name"), meta::name(obj));
        let at = At::new("spec.parentRef");
        let Some(parent) = part(obj, "spec").get("parentRef") else {
            errs.required(&at, "");
            return;
        };
        let group = text(parent, "group");
        if !group.is_empty() {
            errs.all_invalid(&at.field("group"), group, validation::is_dns1123_subdomain(group));
        }
        for key in ["resource", "name"] {
            match text(parent, key) {
                "" => errs.required(&at.field(key), ""),
                value => errs.all_invalid(&at.field(key), value, validation::is_path_segment_name(value)),
            }
        }
        let namespace = text(parent, "namespace");
        if !namespace.is_empty() {
            errs.all_invalid(
                &at.field("namespace"),
                namespace,
                validation::is_path_segment_name(namespace),
            );
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.parentRef"),
            new.get("parentRef"),
            old.get("parentRef"),
        );
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let parent = part(part(obj, "spec"), "parentRef");
        let of = |key: &str| text(parent, key).to_owned();
        vec![
            ("spec.parentRef.group", of("group")),
            ("spec.parentRef.resource", of("resource")),
            ("spec.parentRef.namespace", of("namespace")),
            ("spec.parentRef.name", of("name")),
        ]
    }
}

pub(crate) struct ServiceCidr;

static SERVICE_CIDR: Profile = Profile {
    status: true,
    ..Profile::CLUSTER
};

impl Strategy for ServiceCidr {
    fn profile(&self) -> &'static Profile {
        &SERVICE_CIDR
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        let cidrs: Vec<&str> = texts(part(obj, "spec"), "cidrs").collect();
        let at = At::new("spec.cidrs");
        if cidrs.is_empty() {
            errs.required(&at, "at least one CIDR required");
            return;
        }
        let shown = || part(part(obj, "spec"), "cidrs").clone();
        if cidrs.len() > 2 {
            errs.invalid(&at, json!({"CIDRs": shown()}), "may only hold up to 2 values");
        }
        for (i, cidr) in cidrs.iter().enumerate() {
            ip::validate_cidr(errs, &at.index(i), cidr);
        }
        let families: Vec<bool> = cidrs
            .iter()
            .filter_map(|c| ip::Cidr::parse_sloppy(c))
            .map(|c| c.ip.is_ipv4())
            .collect();
        if let [first, second] = families[..]
            && first == second
        {
            errs.invalid(
                &at,
                shown(),
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
            );
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (list(part(obj, "spec"), "cidrs"), list(part(old, "spec"), "cidrs"));
        // A single family may become two; nothing else may change.
        let upgraded = old.len() == 1 && new.len() == 2;
        let kept = if upgraded { &new[..1] } else { new };
        if kept != old {
            errs.invalid(&At::new("spec.cidrs"), Value::from(new), "field is immutable");
        }
        if upgraded {
            let at = At::new("spec.cidrs");
            ip::validate_cidr(errs, &at.index(1), new[1].as_str().unwrap_or(""));
        }
    }
}
