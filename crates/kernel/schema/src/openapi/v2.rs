//! The OpenAPI v2 document: one for all groups, as `kubectl` reads it for kinds that nobody can patch, and as older
//! tools read it for everything.
//!
//! It says the same as the documents of version 3, in the older grammar, so each path and each schema is made in the
//! newer form and brought over at once. What is done goes straight into the answer, which is JSON or protocol buffers;
//! the document as a whole exists only there, and nobody keeps it.

mod convert;
mod custom;
mod output;
mod parameters;
mod protobuf;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::crd::{CrdKind, list_schema, resource, type_name};
use super::descriptions::{self, Descriptions};
use super::schemas::{Schemas, gvk_value};
use super::{built_in_hash, content_hash, need, paths, served};
use crate::builtin;
use crate::builtin::table::{Gvk, reference};
use output::{Output, Section};
use parameters::Shared;

pub use output::Form;

/// Custom kinds of one group and version.
#[derive(Clone, Debug)]
pub struct CrdVersion<'a> {
    /// Group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kinds that are served in it.
    pub kinds: Vec<CrdKind<'a>>,
}

/// Paths and schemas of APIs that are neither built in nor custom, as OpenAPI v3 has them.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Path items by path.
    pub paths: serde_json::Map<String, Value>,
    /// Schemas by name.
    pub schemas: serde_json::Map<String, Value>,
}

/// What the built-in part of the document depends on, and `custom`, which tells the state of all CRDs, as a hash.
pub fn v2_hash(custom: &str) -> String {
    content_hash(&[b"v2 ", built_in_hash().as_bytes(), custom.as_bytes()])
}

/// The document, served at `/openapi/v2`: all built-in kinds, the given custom ones, and what else is served.
pub fn v2_document(form: Form, custom: &[CrdVersion<'_>], more: Served) -> Vec<u8> {
    let table = builtin::facts();
    let text = descriptions::text();
    let schemas = Schemas::new(&table, Descriptions::new(&text), "", "v1");
    let mut output = Output::new(form);
    let mut shared = Shared::default();
    let mut roots = BTreeSet::new();

    output.begin(Section::Paths);
    for group in &table.groups {
        for version in &group.versions {
            let mut sink = |path: &str, item: Value| {
                output.entry(path, &convert::path_item(item, true, &mut shared));
            };
            for row in &version.resources {
                let resource = served(&table, group.name, version.name, row);
                paths::resource(&resource, &schemas, &mut roots, &mut sink);
            }
            paths::discovery(group.name, version.name, &mut roots, &mut sink);
        }
    }
    for CrdVersion {
        group,
        version,
        kinds,
    } in custom
    {
        let mut sink = |path: &str, item: Value| {
            output.entry(path, &convert::path_item(item, false, &mut shared));
        };
        for kind in kinds {
            need(&mut roots, super::crd::OBJECT_META);
            need(&mut roots, super::crd::LIST_META);
            let object = type_name(group, version, kind.kind);
            let list = type_name(group, version, kind.list_kind);
            let resource = resource(group, version, kind, object, list);
            paths::resource(&resource, &schemas, &mut roots, &mut sink);
        }
    }
    for (path, item) in more.paths {
        output.entry(&path, &convert::path_item(item, false, &mut shared));
    }
    output.end();

    output.begin(Section::Definitions);
    let mut names = BTreeSet::new();
    for name in schemas.closure(&roots) {
        if let Some((name, mut schema)) = schemas.schema(name) {
            if schemas.is_everywhere(reference(name)) {
                schema["x-kubernetes-group-version-kind"] = everywhere(name);
            }
            output.entry(name, &convert::schema(schema));
            names.insert(name.to_owned());
        }
    }
    for CrdVersion {
        group,
        version,
        kinds,
    } in custom
    {
        for kind in kinds {
            let object = type_name(group, version, kind.kind);
            let list = type_name(group, version, kind.list_kind);
            let list_schema = list_schema(group, version, kind, &object, &schemas.descriptions);
            // A group may be called such that its kinds have the names of built-in types; those stay.
            if names.insert(object.clone()) {
                let schema = custom::object(group, version, kind, &schemas.descriptions);
                output.entry(&object, &convert::schema(schema));
            }
            if names.insert(list.clone()) {
                output.entry(&list, &convert::schema(list_schema));
            }
        }
    }
    for (name, schema) in more.schemas {
        if names.insert(name.clone()) {
            output.entry(&name, &convert::schema(schema));
        }
    }
    output.end();

    output.begin(Section::Parameters);
    for (name, parameter) in shared.all() {
        output.entry(name, parameter);
    }
    output.end();
    output.finish()
}

/// What exists in every group-version has all of these kinds here: whatever upstream's types know, served or not.
fn everywhere(type_name: &str) -> Value {
    let kind = type_name.rsplit('.').next().unwrap_or_default();
    REGISTERED
        .iter()
        .flat_map(|(group, versions)| {
            versions
                .iter()
                .map(move |version| gvk_value(Gvk { group, version, kind }))
        })
        .collect()
}

/// Groups and versions that Kubernetes has types for.
const REGISTERED: [(&str, &[&str]); 26] = [
    ("", &["v1"]),
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1", "v1beta1", "v1beta2", "v1beta3"],
    ),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];

/// Everything beside paths, definitions and parameters.
fn head() -> Value {
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}})
}

fn tail() -> Value {
    json!({"securityDefinitions": super::security_schemes(), "security": [{"BearerToken": []}]})
}

#[cfg(test)]
mod tests;
