//! The storage group: classes, CSI drivers and nodes, capacities, attachments.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::at::{At, Errors, FIELD_IMMUTABLE};
use crate::persistentvolume;
use crate::quantity;
use crate::read::{self, entries, has, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{resources, selector, validation};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;
const ERROR_MESSAGE_SIZE: usize = 1024;
const NODE_ID_MAX: usize = 256;

/// The name of a CSI driver: 63 characters, of any case.
pub(crate) fn csi_driver_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    if name.is_empty() {
        errs.required(at, "");
        return;
    }
    if name.len() > 63 {
        errs.too_long(at, 63);
    }
    errs.all_invalid(at, name, validation::is_dns1123_subdomain(&name.to_lowercase()));
}

fn provisioner(errs: &mut Errors, at: &At<'_>, name: &str) {
    if name.is_empty() {
        errs.required(at, "");
    } else {
        let name = name.to_lowercase();
        errs.all_invalid(at, &name, validation::is_qualified_name(&name));
    }
}

fn parameters(errs: &mut Errors, obj: &Value, may_be_empty: bool) {
    let at = At::new("parameters");
    let count = entries(obj, "parameters").count();
    if count > PARAMETERS_MAX {
        errs.too_long(&at, PARAMETERS_MAX);
        return;
    }
    let mut size = 0;
    for (key, value) in entries(obj, "parameters") {
        if key.is_empty() {
            errs.invalid(&at, key, "field can not be empty.");
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > PARAMETERS_SIZE {
        errs.too_long(&at, PARAMETERS_SIZE);
    }
    if count == 0 && !may_be_empty {
        errs.required(&at, "must contain at least one key/value pair");
    }
}

pub(crate) struct StorageClass;

impl Strategy for StorageClass {
    fn profile(&self) -> &'static Profile {
        &Profile::CLUSTER
    }

    fn default(&self, obj: &mut Value) {
        read::set_default(obj, "reclaimPolicy", "Delete");
        read::set_default(obj, "volumeBindingMode", "Immediate");
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        provisioner(errs, &At::new("provisioner"), text(obj, "provisioner"));
        parameters(errs, obj, true);
        errs.one_of(
            &At::new("reclaimPolicy"),
            text(obj, "reclaimPolicy"),
            &["Delete", "Retain"],
        );
        errs.one_of(
            &At::new("volumeBindingMode"),
            text(obj, "volumeBindingMode"),
            &["Immediate", "WaitForFirstConsumer"],
        );
        let at = At::new("allowedTopologies");
        // An empty term equals the zero terms with which upstream's list begins: one error for each of them.
        let terms = list(obj, "allowedTopologies");
        let mut seen = vec![Topology::new(); terms.len()];
        for (i, term) in terms.iter().enumerate() {
            let at = at.index(i);
            let topology = validate_topology(errs, &at, term);
            for _ in seen.iter().filter(|t| **t == topology) {
                errs.duplicate(&at.field("matchLabelExpressions"), "");
            }
            seen.push(topology);
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            errs.immutable(&At::new(key), obj.get(key), old.get(key));
        }
    }
}

/// The values that a term allows, by label.
type Topology<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn validate_topology<'a>(errs: &mut Errors, at: &At<'_>, term: &'a Value) -> Topology<'a> {
    let at = at.field("matchLabelExpressions");
    let mut topology = Topology::new();
    for (i, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
        let at = at.index(i);
        let key = text(expression, "key");
        if list(expression, "values").is_empty() {
            errs.required(&at.field("values"), "");
        }
        let mut values = BTreeSet::new();
        let values_at = at.field("values");
        for (i, value) in texts(expression, "values").enumerate() {
            if !values.insert(value) {
                errs.duplicate(&values_at.index(i), value);
            }
        }
        selector::validate_label_name(errs, &at.field("key"), key);
        if topology.insert(key, values).is_some() {
            errs.duplicate(&at.field("key"), key);
        }
    }
    topology
}

pub(crate) struct VolumeAttributesClass;

impl Strategy for VolumeAttributesClass {
    fn profile(&self) -> &'static Profile {
        &Profile::CLUSTER
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        provisioner(errs, &At::new("driverName"), text(obj, "driverName"));
        parameters(errs, obj, false);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        for key in ["driverName", "parameters"] {
            if !read::same(obj.get(key), old.get(key)) {
                errs.forbidden(&At::new(key), format!("updates to {key} are forbidden."));
            }
        }
    }
}

pub(crate) struct CsiDriver;

static CSI_DRIVER: Profile = Profile {
    generation: &["spec"],
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for CsiDriver {
    fn profile(&self) -> &'static Profile {
        &CSI_DRIVER
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "attachRequired", true);
        read::set_default(spec, "podInfoOnMount", false);
        read::set_default(spec, "storageCapacity", false);
        read::set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if !read::filled(spec, "volumeLifecycleModes") {
            read::set(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
        read::set_default(spec, "requiresRepublish", false);
        read::set_default(spec, "seLinuxMount", false);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, _obj: &mut Value) {}

    fn prepare_update(&self, _ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        crate::strategy::count_generation(&CSI_DRIVER, obj, old);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        errs.one_of(
            &at.field("fsGroupPolicy"),
            text(spec, "fsGroupPolicy"),
            &["File", "None", "ReadWriteOnceWithFSType"],
        );
        let tokens = at.field("tokenRequests");
        let mut audiences = HashSet::new();
        for (i, request) in list(spec, "tokenRequests").iter().enumerate() {
            let at = tokens.index(i);
            if !audiences.insert(text(request, "audience")) {
                errs.duplicate(&at.field("audience"), text(request, "audience"));
            }
            match int(request, "expirationSeconds") {
                Some(s) if s < 600 => errs.invalid(
                    &at.field("expirationSeconds"),
                    s,
                    "may not specify a duration less than 10 minutes",
                ),
                Some(s) if s > 1 << 32 => errs.invalid(
                    &at.field("expirationSeconds"),
                    s,
                    "may not specify a duration larger than 2^32 seconds",
                ),
                _ => {}
            }
        }
        for mode in texts(spec, "volumeLifecycleModes") {
            errs.one_of(
                &at.field("volumeLifecycleModes"),
                mode,
                &["Persistent", "Ephemeral"],
            );
        }
        if let Some(period) = int(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|p| *p < 10) {
            errs.invalid(
                &at.field("nodeAllocatableUpdatePeriodSeconds"),
                period,
                "must be greater than or equal to 10 seconds",
            );
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        for (key, shown) in [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ] {
            errs.immutable(&At::new("spec").field(shown), new.get(key), old.get(key));
        }
    }
}

pub(crate) struct CsiNode;

static CSI_NODE: Profile = Profile {
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for CsiNode {
    fn profile(&self) -> &'static Profile {
        &CSI_NODE
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("spec.drivers");
        let mut names = HashSet::new();
        for (i, driver) in list(part(obj, "spec"), "drivers").iter().enumerate() {
            let at = at.index(i);
            csi_driver_name(errs, &at.field("name"), text(driver, "name"));
            if !names.insert(text(driver, "name")) {
                errs.duplicate(&at.field("name"), text(driver, "name"));
            }
            let id = text(driver, "nodeID");
            if id.is_empty() {
                errs.required(&at.field("nodeID"), "");
            } else if id.len() > NODE_ID_MAX {
                errs.invalid(
                    &at.field("nodeID"),
                    id,
                    format!("must be {NODE_ID_MAX} characters or less"),
                );
            }
            let allocatable = at.field("allocatable");
            errs.none_negative(&allocatable, part(driver, "allocatable"), &["count"]);
            let mut keys = HashSet::new();
            for key in texts(driver, "topologyKeys") {
                if key.is_empty() {
                    errs.required(&at, "");
                }
                if !keys.insert(key) {
                    errs.duplicate(&at, key);
                }
                errs.all_invalid(&at, key, validation::is_qualified_name(key));
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        for driver in list(part(obj, "spec"), "drivers") {
            let name = text(driver, "name");
            let before = list(part(old, "spec"), "drivers")
                .iter()
                .find(|d| text(d, "name") == name);
            if let Some(before) = before {
                let plain = |driver: &Value| {
                    let mut copy = driver.clone();
                    read::unset(&mut copy, "allocatable");
                    copy
                };
                errs.immutable(
                    &At::new("spec.drivers"),
                    Some(&plain(driver)),
                    Some(&plain(before)),
                );
            }
        }
    }
}

pub(crate) struct CsiStorageCapacity;

static CSI_STORAGE_CAPACITY: Profile = Profile {
    unconditional_update: false,
    ..Profile::NAMESPACED
};

impl Strategy for CsiStorageCapacity {
    fn profile(&self) -> &'static Profile {
        &CSI_STORAGE_CAPACITY
    }

    fn default(&self, obj: &mut Value) {
        quantity::canonicalize(obj, "capacity");
        quantity::canonicalize(obj, "maximumVolumeSize");
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        selector::validate(errs, &At::new("nodeTopology"), part(obj, "nodeTopology"));
        let class = text(obj, "storageClassName");
        errs.all_invalid(
            &At::new("storageClassName"),
            class,
            validation::is_dns1123_subdomain(class),
        );
        if let Some(capacity) = obj.get("capacity") {
            resources::validate_non_negative(errs, &At::new("capacity"), capacity);
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        for key in ["nodeTopology", "storageClassName"] {
            errs.immutable(&At::new(key), obj.get(key), old.get(key));
        }
    }
}

pub(crate) struct VolumeAttachment;

static VOLUME_ATTACHMENT: Profile = Profile {
    status: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for VolumeAttachment {
    fn profile(&self) -> &'static Profile {
        &VOLUME_ATTACHMENT
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(obj, "status", json!({"attached": false}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        csi_driver_name(errs, &at.field("attacher"), text(spec, "attacher"));
        let source = part(spec, "source");
        let source_at = at.field("source");
        let exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        match (
            has(source, "inlineVolumeSpec"),
            has(source, "persistentVolumeName"),
        ) {
            (false, false) => errs.required(&source_at, exactly),
            (true, true) => errs.forbidden(&source_at, exactly),
            (false, true) => match text(source, "persistentVolumeName") {
                "" => errs.required(
                    &source_at.field("persistentVolumeName"),
                    "must specify non empty persistentVolumeName",
                ),
                name => errs.all_invalid(
                    &source_at.field("persistentVolumeName"),
                    name,
                    validation::is_dns1123_subdomain(name),
                ),
            },
            (true, false) => persistentvolume::validate_spec(
                errs,
                &source_at.field("inlineVolumeSpec"),
                part(source, "inlineVolumeSpec"),
                true,
            ),
        }
        let node = text(spec, "nodeName");
        errs.all_invalid(
            &at.field("nodeName"),
            node,
            validation::is_dns1123_subdomain(node),
        );
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        if !read::same(Some(new), Some(old)) {
            let source = [
                ("PersistentVolumeName", "persistentVolumeName", read::Unset::Null),
                ("InlineVolumeSpec", "inlineVolumeSpec", read::Unset::Null),
            ];
            let fields = [
                ("Attacher", "attacher", read::Unset::Text),
                ("Source", "source", read::Unset::Null),
                ("NodeName", "nodeName", read::Unset::Text),
            ];
            let mut shown = read::go_struct(new, &fields);
            shown["Source"] = read::go_struct(part(new, "source"), &source);
            errs.invalid(&At::new("spec"), shown, FIELD_IMMUTABLE);
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let status = part(obj, "status");
        let at = At::new("status");
        let size: usize = entries(status, "attachmentMetadata")
            .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
            .sum();
        if size > PARAMETERS_SIZE {
            errs.too_long(&at.field("attachmentMetadata"), PARAMETERS_SIZE);
        }
        for key in ["attachError", "detachError"] {
            if text(part(status, key), "message").len() > ERROR_MESSAGE_SIZE {
                let at = at.field(key);
                errs.too_long(&at.field("message"), PARAMETERS_SIZE);
            }
        }
    }
}
