//! Endpoints and EndpointSlice.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::read::{self, each_mut, has, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{ip, meta, validation};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

pub(crate) struct Endpoints;

static ENDPOINTS: Profile = Profile {
    create_on_update: true,
    ..Profile::NAMESPACED
};

impl Strategy for Endpoints {
    fn profile(&self) -> &'static Profile {
        &ENDPOINTS
    }

    fn default(&self, obj: &mut Value) {
        for subset in each_mut(obj, "subsets") {
            for port in each_mut(subset, "ports") {
                read::set_default_text(port, "protocol", "TCP");
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        // What was stored under older rules may stay.
        if old.is_some_and(|old| read::same(old.get("subsets"), obj.get("subsets"))) {
            return;
        }
        let at = At::new("subsets");
        for (i, subset) in list(obj, "subsets").iter().enumerate() {
            let at = at.index(i);
            if !read::filled(subset, "addresses") && !read::filled(subset, "notReadyAddresses") {
                errs.required(&at, "must specify `addresses` or `notReadyAddresses`");
            }
            for key in ["addresses", "notReadyAddresses"] {
                let at = at.field(key);
                for (i, address) in list(subset, key).iter().enumerate() {
                    validate_address(errs, &at.index(i), address);
                }
            }
            let ports = list(subset, "ports");
            let at = at.field("ports");
            for (i, port) in ports.iter().enumerate() {
                validate_port(errs, &at.index(i), port, ports.len() > 1);
            }
        }
    }

    fn warnings(&self, _ctx: &WriteContext<'_>, _obj: &Value, _old: Option<&Value>) -> Vec<String> {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()]
    }
}

fn validate_address(errs: &mut Errors, at: &At<'_>, address: &Value) {
    let value = text(address, "ip");
    let ip_at = at.field("ip");
    ip::validate_legacy(errs, &ip_at, value, []);
    let host = text(address, "hostname");
    if !host.is_empty() {
        errs.all_invalid(&at.field("hostname"), host, validation::is_dns1123_label(host));
    }
    if has(address, "nodeName") {
        let node = text(address, "nodeName");
        errs.all_invalid(
            &at.field("nodeName"),
            node,
            validation::is_dns1123_subdomain(node),
        );
    }
    ip::validate_endpoint(errs, &ip_at, value);
}

fn validate_port(errs: &mut Errors, at: &At<'_>, port: &Value, need_name: bool) {
    let name = text(port, "name");
    if !name.is_empty() {
        errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
    } else if need_name {
        errs.required(&at.field("name"), "");
    }
    let number = int(port, "port").unwrap_or(0);
    for fault in validation::is_valid_port_num(number) {
        errs.invalid(&at.field("port"), number, fault);
    }
    errs.required_one_of(&at.field("protocol"), text(port, "protocol"), PROTOCOLS);
    validate_app_protocol(errs, at, port);
}

fn validate_app_protocol(errs: &mut Errors, at: &At<'_>, port: &Value) {
    if has(port, "appProtocol") {
        let protocol = text(port, "appProtocol");
        errs.all_invalid(
            &at.field("appProtocol"),
            protocol,
            validation::is_qualified_name(protocol),
        );
    }
}

pub(crate) struct EndpointSlice;

static SLICE: Profile = Profile {
    generation: &["endpoints", "ports", "addressType"],
    ..Profile::NAMESPACED
};

impl Strategy for EndpointSlice {
    fn profile(&self) -> &'static Profile {
        &SLICE
    }

    fn default(&self, obj: &mut Value) {
        for port in each_mut(obj, "ports") {
            read::set_default(port, "name", "");
            read::set_default(port, "protocol", "TCP");
        }
        for endpoint in each_mut(obj, "endpoints") {
            read::set_default(endpoint, "conditions", json!({}));
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        crate::strategy::prepare_new(&SLICE, obj);
        drop_topology(obj, None);
    }

    fn prepare_update(&self, _ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        drop_topology(obj, Some(old));
        crate::strategy::count_generation(&SLICE, obj, old);
        let before = part(old, "metadata");
        let same_labels = read::same(Some(meta::labels(obj)), Some(meta::labels(old)));
        let metadata = part_mut(obj, "metadata");
        if !same_labels && read::same(metadata.get("generation"), before.get("generation")) {
            let generation = int(before, "generation").unwrap_or(0) + 1;
            read::set(metadata, "generation", generation);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let kind = text(obj, "addressType");
        errs.required_one_of(&At::new("addressType"), kind, &["FQDN", "IPv4", "IPv6"]);
        validate_slice_ports(errs, list(obj, "ports"));
        if old.is_none_or(|old| !read::same(old.get("endpoints"), obj.get("endpoints"))) {
            validate_endpoints(errs, list(obj, "endpoints"), kind);
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(
            &At::new("addressType"),
            obj.get("addressType"),
            old.get("addressType"),
        );
    }

    fn warnings(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_none() && text(obj, "addressType") == "FQDN" {
            vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// `deprecatedTopology` is left over from v1beta1: written no more, except that a node it named becomes `nodeName`.
fn drop_topology(obj: &mut Value, old: Option<&Value>) {
    let before = old.map_or(&[][..], |old| list(old, "endpoints"));
    if old.is_some_and(|old| read::same(old.get("endpoints"), obj.get("endpoints"))) {
        return;
    }
    let host = |endpoint: &Value| text(part(endpoint, "deprecatedTopology"), HOSTNAME_LABEL).to_owned();
    for endpoint in each_mut(obj, "endpoints") {
        let node = host(endpoint);
        let known = !node.is_empty() && before.iter().any(|e| host(e) == node);
        if known && !has(endpoint, "nodeName") && validation::is_dns1123_subdomain(&node).is_empty() {
            read::set(endpoint, "nodeName", node);
        }
        read::unset(endpoint, "deprecatedTopology");
    }
}

fn validate_slice_ports(errs: &mut Errors, ports: &[Value]) {
    let at = At::new("ports");
    if ports.len() > PORTS_MAX {
        errs.too_many(&at, ports.len(), PORTS_MAX);
        return;
    }
    let mut names = HashSet::new();
    for (i, port) in ports.iter().enumerate() {
        let at = at.index(i);
        let name = text(port, "name");
        if !name.is_empty() {
            errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
        }
        if !names.insert(name) {
            errs.duplicate(&at.field("name"), name);
        }
        errs.required_one_of(&at.field("protocol"), text(port, "protocol"), PROTOCOLS);
        validate_app_protocol(errs, &at, port);
    }
}

fn validate_endpoints(errs: &mut Errors, endpoints: &[Value], kind: &str) {
    let at = At::new("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        errs.too_many(&at, endpoints.len(), ENDPOINTS_MAX);
        return;
    }
    for (i, endpoint) in endpoints.iter().enumerate() {
        let at = at.index(i);
        let addresses_at = at.field("addresses");
        match list(endpoint, "addresses").len() {
            0 => errs.required(&addresses_at, "must contain at least 1 address"),
            count if count > ADDRESSES_MAX => errs.too_many(&addresses_at, count, ADDRESSES_MAX),
            _ => {}
        }
        for (i, address) in texts(endpoint, "addresses").enumerate() {
            validate_slice_address(errs, &addresses_at, i, address, kind);
        }
        if has(endpoint, "nodeName") {
            let node = text(endpoint, "nodeName");
            errs.all_invalid(
                &at.field("nodeName"),
                node,
                validation::is_dns1123_subdomain(node),
            );
        }
        if has(endpoint, "hostname") {
            let host = text(endpoint, "hostname");
            errs.all_invalid(&at.field("hostname"), host, validation::is_dns1123_label(host));
        }
        validate_hints(errs, &at.field("hints"), part(endpoint, "hints"));
    }
}

fn validate_slice_address(errs: &mut Errors, at: &At<'_>, i: usize, address: &str, kind: &str) {
    let before = errs.len();
    let item = at.index(i);
    match kind {
        "IPv4" => ip::validate_legacy(errs, &item, address, []),
        "IPv6" => ip::validate(errs, &item, address),
        "FQDN" => {
            let name = address.strip_suffix('.').unwrap_or(address);
            let faults = validation::is_dns1123_subdomain(name);
            if name.is_empty() {
                errs.required(&item, "");
            } else if !faults.is_empty() {
                errs.invalid(&item, name, faults.join(","));
            } else if !name.contains('.') {
                errs.invalid(
                    &item,
                    name,
                    "should be a domain with at least two segments separated by dots",
                );
            }
            return;
        }
        _ => return,
    }
    if errs.len() == before {
        if (kind == "IPv6") != ip::is_ipv6(address) {
            errs.invalid(at, address, format!("must be an {kind} address"));
        }
        ip::validate_endpoint(errs, &item, address);
    }
}

fn validate_hints(errs: &mut Errors, at: &At<'_>, hints: &Value) {
    for (key, check) in [
        ("forZones", validation::is_label_value as fn(&str) -> Vec<String>),
        ("forNodes", validation::is_dns1123_subdomain),
    ] {
        let at = at.field(key);
        let names = list(hints, key);
        if names.len() > HINTS_MAX {
            errs.too_many(&at, names.len(), HINTS_MAX);
            return;
        }
        let mut seen = HashSet::new();
        for (i, hint) in names.iter().enumerate() {
            let name = text(hint, "name");
            let at = at.index(i);
            let at = at.field("name");
            if !seen.insert(name) {
                errs.duplicate(&at, name);
            }
            errs.all_invalid(&at, name, check(name));
        }
    }
}
