//! Dynamic resource allocation: classes, claims, templates, slices and taints of devices.

use serde_json::Value;

use crate::at::{At, Errors, NOT_POSITIVE};
use crate::pod::scheduling;
use crate::quantity;
use crate::read::{self, each_mut, has, int, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{conditions, meta, storage, validation};

const REQUESTS_MAX: usize = 32;
const DEVICES_MAX: usize = 128;
const SELECTORS_MAX: usize = 32;
const CEL_MAX: usize = 10 * 1024;

static CLASS: Profile = Profile {
    generation: &["spec"],
    ..Profile::CLUSTER
};
static CLAIM: Profile = Profile {
    status: true,
    ..Profile::NAMESPACED
};
static SLICE: Profile = Profile {
    generation: &["spec"],
    ..Profile::CLUSTER
};
static TAINT_RULE: Profile = Profile {
    status: true,
    generation: &["spec"],
    ..Profile::CLUSTER
};
static POOL_STATUS: Profile = Profile {
    status: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

fn default_request(request: &mut Value) {
    read::set_default_text(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        read::set_default_number(request, "count", 1);
    }
}

/// `exactly` and `firstAvailable` since v1beta2; v1beta1 had the fields of `exactly` in the request itself.
fn default_claim(spec: &mut Value) {
    let Some(devices) = spec.get_mut("devices") else {
        return;
    };
    for request in each_mut(devices, "requests") {
        let flat = has(request, "deviceClassName");
        if flat {
            default_request(request);
        }
        if let Some(exact) = request.get_mut("exactly") {
            default_request(exact);
        }
        each_mut(request, "firstAvailable").for_each(default_request);
    }
}

fn validate_selectors(errs: &mut Errors, at: &At<'_>, obj: &Value) {
    let at = at.field("selectors");
    let selectors = list(obj, "selectors");
    if selectors.len() > SELECTORS_MAX {
        errs.too_many(&at, selectors.len(), SELECTORS_MAX);
    }
    for (i, selector) in selectors.iter().enumerate() {
        let at = at.index(i);
        let cel_at = at.field("cel");
        match selector.get("cel") {
            None => errs.required(&cel_at, ""),
            Some(cel) if text(cel, "expression").len() > CEL_MAX => {
                errs.too_long(&cel_at.field("expression"), CEL_MAX);
            }
            Some(cel) => errs.require_text(&cel_at, cel, "expression"),
        }
    }
}

fn validate_request(errs: &mut Errors, at: &At<'_>, request: &Value) {
    match text(request, "deviceClassName") {
        "" => errs.required(&at.field("deviceClassName"), ""),
        name => errs.all_invalid(
            &at.field("deviceClassName"),
            name,
            validation::is_dns1123_subdomain(name),
        ),
    }
    validate_selectors(errs, at, request);
    let count = int(request, "count").unwrap_or(0);
    match text(request, "allocationMode") {
        "All" => {
            if count != 0 {
                let detail = "must not be specified when allocationMode is 'All'";
                errs.invalid(&at.field("count"), count, detail);
            }
        }
        "ExactCount" => {
            if count <= 0 {
                errs.invalid(&at.field("count"), count, NOT_POSITIVE);
            }
        }
        other => errs.not_supported(&at.field("allocationMode"), other, &["All", "ExactCount"]),
    }
}

fn validate_claim(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let devices = part(spec, "devices");
    let at = at.field("devices");
    let at = at.field("requests");
    let requests = list(devices, "requests");
    if requests.len() > REQUESTS_MAX {
        errs.too_many(&at, requests.len(), REQUESTS_MAX);
    }
    for (i, request) in requests.iter().enumerate() {
        let at = at.index(i);
        match text(request, "name") {
            "" => errs.required(&at.field("name"), ""),
            name => {
                errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
                if requests[..i].iter().any(|r| text(r, "name") == name) {
                    errs.duplicate(&at.field("name"), name);
                }
            }
        }
        if has(request, "deviceClassName") {
            validate_request(errs, &at, request);
            continue;
        }
        match (request.get("exactly"), list(request, "firstAvailable")) {
            (Some(_), [_, ..]) => errs.invalid(
                &at,
                Value::Null,
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
            ),
            (Some(exact), []) => validate_request(errs, &at.field("exactly"), exact),
            (None, []) => errs.required(&at, "exactly one of `exactly` or `firstAvailable` is required"),
            (None, alternatives) => {
                let at = at.field("firstAvailable");
                for (i, alternative) in alternatives.iter().enumerate() {
                    let at = at.index(i);
                    let name = text(alternative, "name");
                    errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
                    validate_request(errs, &at, alternative);
                }
            }
        }
    }
}

pub(crate) struct DeviceClass;

impl Strategy for DeviceClass {
    fn profile(&self) -> &'static Profile {
        &CLASS
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        validate_selectors(errs, &At::new("spec"), part(obj, "spec"));
    }
}

pub(crate) struct ResourceClaim;

impl Strategy for ResourceClaim {
    fn profile(&self) -> &'static Profile {
        &CLAIM
    }

    fn default(&self, obj: &mut Value) {
        default_claim(part_mut(obj, "spec"));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_none() {
            validate_claim(errs, &At::new("spec"), part(obj, "spec"));
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("spec"), obj.get("spec"), old.get("spec"));
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "status"), part(old, "status"));
        let at = At::new("status");
        if read::filled(new, "reservedFor") && !has(new, "allocation") {
            let detail = "may not be specified when `allocated` is not set";
            errs.forbidden(&at.field("reservedFor"), detail);
        }
        if has(old, "allocation") && has(new, "allocation") {
            errs.immutable(
                &at.field("allocation"),
                new.get("allocation"),
                old.get("allocation"),
            );
        }
    }
}

pub(crate) struct ResourceClaimTemplate;

impl Strategy for ResourceClaimTemplate {
    fn profile(&self) -> &'static Profile {
        &Profile::NAMESPACED
    }

    fn default(&self, obj: &mut Value) {
        default_claim(part_mut(part_mut(obj, "spec"), "spec"));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let template = part(obj, "spec");
        let at = At::new("spec");
        meta::validate_bare_template(errs, &at.field("metadata"), part(template, "metadata"));
        validate_claim(errs, &at.field("spec"), part(template, "spec"));
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("spec"), obj.get("spec"), old.get("spec"));
    }
}

pub(crate) struct ResourceSlice;

impl Strategy for ResourceSlice {
    fn profile(&self) -> &'static Profile {
        &SLICE
    }

    fn default(&self, obj: &mut Value) {
        for device in each_mut(part_mut(obj, "spec"), "devices") {
            // v1beta1 wrapped the fields of a device in `basic`.
            let fields = if has(device, "basic") {
                part_mut(device, "basic")
            } else {
                device
            };
            for (_, capacity) in fields
                .get_mut("capacity")
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten()
            {
                quantity::canonicalize(capacity, "value");
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        storage::csi_driver_name(errs, &at.field("driver"), text(spec, "driver"));
        let pool = part(spec, "pool");
        let pool_at = at.field("pool");
        match text(pool, "name") {
            "" => errs.required(&pool_at.field("name"), ""),
            name => {
                for part in name.split('/') {
                    errs.all_invalid(
                        &pool_at.field("name"),
                        part,
                        validation::is_dns1123_subdomain(part),
                    );
                }
            }
        }
        if int(pool, "resourceSliceCount").unwrap_or(0) <= 0 {
            let count = int(pool, "resourceSliceCount").unwrap_or(0);
            errs.invalid(&pool_at.field("resourceSliceCount"), count, NOT_POSITIVE);
        }
        errs.none_negative(&pool_at, pool, &["generation"]);
        let placements = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"]
            .iter()
            .filter(|k| has(spec, k));
        if has(spec, "nodeSelector") {
            scheduling::node_selector(errs, &at.field("nodeSelector"), part(spec, "nodeSelector"));
        }
        match placements.count() {
            0 if read::filled(spec, "sharedCounters") => {}
            0 => errs.required(
                &at,
                "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
            ),
            1 => {}
            _ => errs.invalid_unshown(
                &at,
                "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
            ),
        }
        let devices = list(spec, "devices");
        let at = at.field("devices");
        if devices.len() > DEVICES_MAX {
            errs.too_many(&at, devices.len(), DEVICES_MAX);
        }
        for (i, device) in devices.iter().enumerate() {
            let name = text(device, "name");
            let at = at.index(i);
            errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
            if devices[..i].iter().any(|d| text(d, "name") == name) {
                errs.duplicate(&at.field("name"), name);
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        let at = At::new("spec");
        for key in ["driver", "nodeName"] {
            errs.immutable(&at.field(key), new.get(key), old.get(key));
        }
        let name = |spec: &Value| text(part(spec, "pool"), "name").to_owned();
        if name(new) != name(old) {
            errs.invalid(&at.field("pool.name"), name(new), "field is immutable");
        }
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let spec = part(obj, "spec");
        vec![
            ("spec.nodeName", text(spec, "nodeName").to_owned()),
            ("spec.driver", text(spec, "driver").to_owned()),
        ]
    }
}

pub(crate) struct DeviceTaintRule;

impl Strategy for DeviceTaintRule {
    fn profile(&self) -> &'static Profile {
        &TAINT_RULE
    }

    fn prepare_create(&self, ctx: &WriteContext<'_>, obj: &mut Value) {
        crate::strategy::prepare_new(&TAINT_RULE, obj);
        if let Some(taint) = obj.get_mut("spec").and_then(|s| s.get_mut("taint")) {
            read::set_default(taint, "timeAdded", ctx.now);
        }
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        crate::strategy::prepare_changed(&TAINT_RULE, ctx, obj, old);
        if let Some(taint) = obj.get_mut("spec").and_then(|s| s.get_mut("taint")) {
            read::set_default(taint, "timeAdded", ctx.now);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let taint = part(part(obj, "spec"), "taint");
        let at = At::new("spec.taint");
        let (key, value) = (text(taint, "key"), text(taint, "value"));
        errs.all_invalid(&at.field("key"), key, validation::is_qualified_name(key));
        if !value.is_empty() {
            errs.all_invalid(&at.field("value"), value, validation::is_label_value(value));
        }
        errs.required_one_of(
            &at.field("effect"),
            text(taint, "effect"),
            &["NoExecute", "NoSchedule", "None"],
        );
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        conditions::validate(errs, &At::new("status"), part(obj, "status"));
    }
}

pub(crate) struct ResourcePoolStatusRequest;

impl Strategy for ResourcePoolStatusRequest {
    fn profile(&self) -> &'static Profile {
        &POOL_STATUS
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::unset(obj, "status");
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_none() {
            let spec = part(obj, "spec");
            storage::csi_driver_name(errs, &At::new("spec.driver"), text(spec, "driver"));
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("spec"), obj.get("spec"), old.get("spec"));
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![("spec.driver", text(part(obj, "spec"), "driver").to_owned())]
    }
}
