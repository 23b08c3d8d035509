//! Between the version of a request and the version that is stored.
//!
//! Kubernetes 1.36 serves nearly every built-in kind in one version; two have a second face (Event, and
//! HorizontalPodAutoscaler). Custom kinds convert by `None`: only `apiVersion` differs. Custom objects that were stored
//! under an earlier schema get its later defaults when they are read.

use fairway_kernel_kinds::{autoscaling, event};
use fairway_kernel_tenancy::convert as shared_apis;
use fairway_kernel_tenancy::names::APIS;
use serde_json::Value;

use crate::registry::{Nature, ResourceDef};

/// From the stored version to that of the definition.
pub(crate) fn to_request(def: &ResourceDef, object: &mut Value) {
    if !def.is_storage_version() {
        match (def.group.as_str(), def.resource.as_str()) {
            ("events.k8s.io", "events") => *object = event::core_to_events(object),
            ("autoscaling", "horizontalpodautoscalers") => *object = autoscaling::v2_to_v1(object),
            (APIS, "apiexports" | "apibindings") => shared_apis::to_v1alpha1(object),
            _ => {}
        }
        set_version(object, &def.api_version());
    }
    if let Nature::Custom(custom) = &def.nature {
        // Also in the storage version: the object may be older than the choice of that version.
        set_version(object, &def.api_version());
        custom.refresh(object);
    }
}

/// From the definition's version to the stored one.
pub(crate) fn to_storage(def: &ResourceDef, object: &mut Value) {
    if def.is_storage_version() {
        return;
    }
    match (def.group.as_str(), def.resource.as_str()) {
        ("events.k8s.io", "events") => *object = event::events_to_core(object),
        ("autoscaling", "horizontalpodautoscalers") => *object = autoscaling::v1_to_v2(object),
        (APIS, "apiexports" | "apibindings") => shared_apis::to_v1alpha2(object),
        _ => {}
    }
    set_version(object, &def.stored_as);
}

fn set_version(object: &mut Value, version: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), version.into());
    }
}
