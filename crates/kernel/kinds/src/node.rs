//! Node.

use std::collections::HashSet;

use fairway_kernel_schema::field::FieldError;
use serde_json::Value;

use crate::at::{At, Errors};
use crate::pod::scheduling;
use crate::quantity;
use crate::read::{self, filled, flag, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{ip, resources, selector, validation};

pub(crate) struct Node;

static PROFILE: Profile = Profile {
    status: true,
    ..Profile::CLUSTER
};

/// What typed servers show of a node even if its kubelet has not said it yet.
const INFO: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];

impl Strategy for Node {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        if let Some(spec) = obj.get_mut("spec") {
            pod_cidrs(spec);
        }
        let status = part_mut(obj, "status");
        if !read::has(status, "allocatable") && read::has(status, "capacity") {
            let capacity = part(status, "capacity").clone();
            read::set(status, "allocatable", capacity);
        }
        quantity::canonicalize_list(status, "capacity");
        quantity::canonicalize_list(status, "allocatable");
        read::set_default(
            part_mut(part_mut(status, "daemonEndpoints"), "kubeletEndpoint"),
            "Port",
            0,
        );
        let info = part_mut(status, "nodeInfo");
        for key in INFO {
            read::set_default(info, key, "");
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        // A kubelet registers itself with its status, so that stays; what left the API does not.
        read::unset(part_mut(obj, "spec"), "configSource");
        if let Some(status) = obj.get_mut("status") {
            read::unset(status, "config");
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        validate_taints(errs, list(spec, "taints"));
        validate_status(errs, part(obj, "status"));
        let at = At::new("spec.podCIDRs");
        for (i, cidr) in texts(spec, "podCIDRs").enumerate() {
            ip::validate_cidr_legacy(errs, &at.index(i), cidr, []);
        }
        let count = list(spec, "podCIDRs").len();
        let families: HashSet<bool> = texts(spec, "podCIDRs")
            .filter_map(ip::Cidr::parse_sloppy)
            .map(|cidr| cidr.ip.is_ipv4())
            .collect();
        if count > 2 || (count == 2 && families.len() == 1) {
            errs.invalid(
                &at,
                part(spec, "podCIDRs").clone(),
                "may specify no more than one CIDR for each IP family",
            );
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        if filled(old, "podCIDRs") && !read::same(new.get("podCIDRs"), old.get("podCIDRs")) {
            errs.forbidden(
                &At::new("spec.podCIDRs"),
                "node updates may not change podCIDR except from \"\" to valid",
            );
        }
        let provider = text(old, "providerID");
        if !provider.is_empty() && provider != text(new, "providerID") {
            errs.forbidden(
                &At::new("spec.providerID"),
                "node updates may not change providerID except from \"\" to valid",
            );
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        validate_status(errs, part(obj, "status"));
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![(
            "spec.unschedulable",
            flag(part(obj, "spec"), "unschedulable").to_string(),
        )]
    }
}

/// `podCIDR` is the first of `podCIDRs`; either brings the other.
fn pod_cidrs(spec: &mut Value) {
    let single = text(spec, "podCIDR").to_owned();
    let first = texts(spec, "podCIDRs").next().unwrap_or("").to_owned();
    if single.is_empty() && !first.is_empty() {
        read::set(spec, "podCIDR", first);
    } else if single != first {
        read::set(spec, "podCIDRs", vec![Value::from(single)]);
    }
}

fn validate_taints(errs: &mut Errors, taints: &[Value]) {
    // Upstream looks for them under metadata.
    let at = At::new("metadata.taints");
    let mut seen = HashSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let at = at.index(i);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        selector::validate_label_name(errs, &at.field("key"), key);
        let faults = validation::is_label_value(value);
        if !faults.is_empty() {
            errs.invalid(&at.field("value"), value, faults.join(";"));
        }
        scheduling::taint_effect(errs, &at.field("effect"), effect);
        if !seen.insert((key, effect)) {
            let fields = [
                ("Key", "key", read::Unset::Text),
                ("Value", "value", read::Unset::Text),
                ("Effect", "effect", read::Unset::Text),
                ("TimeAdded", "timeAdded", read::Unset::Null),
            ];
            errs.push(FieldError {
                detail: "taints must be unique by key and effect pair".to_owned(),
                ..FieldError::duplicate(&at.path(), read::go_struct(taint, &fields))
            });
        }
    }
}

fn validate_status(errs: &mut Errors, status: &Value) {
    let at = At::new("status");
    for key in ["capacity", "allocatable"] {
        let at = at.field(key);
        for (name, value) in read::entries(status, key) {
            resources::validate_amount(errs, &at.field(name), name, value);
        }
    }
    let at = at.field("addresses");
    let addresses = list(status, "addresses");
    let mut seen = HashSet::new();
    for (i, address) in addresses.iter().enumerate() {
        if !seen.insert((text(address, "type"), text(address, "address"))) {
            let fields = [
                ("Type", "type", read::Unset::Text),
                ("Address", "address", read::Unset::Text),
            ];
            errs.duplicate(&at.index(i), read::go_struct(address, &fields));
        }
    }
}
