//! The OpenAPI document of a group-version that is defined by CRDs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::descriptions::{self, Descriptions};
use super::paths::{self, Resource, Subresource};
use super::schemas::{Schemas, gvk_value};
use super::{schema_ref, security_schemes};
use crate::builtin;
use crate::builtin::table::Gvk;

/// A custom kind in one version, as its CRD defines it.
#[derive(Clone, Debug)]
pub struct CrdKind<'a> {
    /// Kind.
    pub kind: &'a str,
    /// Kind of its lists.
    pub list_kind: &'a str,
    /// Plural name, as in URLs.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `openAPIV3Schema` of this version.
    pub schema: &'a Value,
    /// There is a status subresource.
    pub status: bool,
    /// There is a scale subresource.
    pub scale: bool,
}

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// A built-in kind whose common fields are described in the same words.
const MODEL: &str = "io.k8s.api.core.v1.ConfigMap";
/// Schemas are JSON and cannot be deeper than the parser allows; this only guards the recursion.
const MAX_DEPTH: usize = 128;

/// The document of a custom group-version, as JSON.
///
/// It is written as it is made, and `schema_of` is asked for the `openAPIV3Schema` of one kind after the other (of the kinds
/// themselves it is not looked at): a large kind takes tens of bytes in memory for each of its schema's text.
///
/// # Errors
/// Those of `schema_of`.
pub fn v3_crd_document<E>(
    group: &str,
    version: &str,
    kinds: &[CrdKind<'_>],
    mut schema_of: impl FnMut(usize) -> Result<Value, E>,
) -> Result<Vec<u8>, E> {
    let table = builtin::facts();
    let text = descriptions::text();
    let schemas = Schemas::new(&table, Descriptions::new(&text), group, version);
    let mut roots = BTreeSet::from(["meta.v1.ObjectMeta".to_owned(), "meta.v1.ListMeta".to_owned()]);
    let mut out = Fields::new();
    out.field("openapi", &"3.0.0".into());
    out.field(
        "info",
        &json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
    );
    out.open("paths");
    for kind in kinds {
        let object = type_name(group, version, kind.kind);
        let list = type_name(group, version, kind.list_kind);
        let resource = resource(group, version, kind, object, list);
        paths::resource(&resource, &schemas, &mut roots, &mut |path: &str, item: Value| {
            out.field(path, &item);
        });
    }
    out.close();
    out.open("components");
    out.open("schemas");
    for (place, kind) in kinds.iter().enumerate() {
        let object = type_name(group, version, kind.kind);
        let list = list_schema(group, version, kind, &object, &schemas.descriptions);
        let schema = schema_of(place)?;
        out.field(
            &object,
            &object_schema(group, version, kind, schema, &schemas.descriptions),
        );
        out.field(&type_name(group, version, kind.list_kind), &list);
    }
    for name in schemas.closure(&roots) {
        if let Some((name, schema)) = schemas.schema(name) {
            out.field(name, &schema);
        }
    }
    out.close();
    out.field("securitySchemes", &security_schemes());
    out.close();
    Ok(out.end())
}

/// Writes objects of JSON field by field.
struct Fields {
    text: Vec<u8>,
    is_first: bool,
}

impl Fields {
    fn new() -> Self {
        Self {
            text: vec![b'{'],
            is_first: true,
        }
    }

    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.text.push(b',');
        }
        self.value(&name.into());
        self.text.push(b':');
    }

    fn value(&mut self, value: &Value) {
        // Writing values to a vector cannot fail: their keys are strings.
        let _ = serde_json::to_writer(&mut self.text, value);
    }

    fn field(&mut self, name: &str, value: &Value) {
        self.name(name);
        self.value(value);
    }

    /// Begins an object inside of this one.
    fn open(&mut self, name: &str) {
        self.name(name);
        self.text.push(b'{');
        self.is_first = true;
    }

    fn close(&mut self) {
        self.text.push(b'}');
        self.is_first = false;
    }

    fn end(mut self) -> Vec<u8> {
        self.close();
        self.text
    }
}

/// `com.example.stable.v1.CronTab` for the group `stable.example.com`.
pub(super) fn type_name(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

pub(super) fn resource<'a>(
    group: &'a str,
    version: &'a str,
    kind: &CrdKind<'a>,
    object: String,
    list: String,
) -> Resource<'a> {
    let own = Gvk {
        group,
        version,
        kind: kind.kind,
    };
    let mut subresources = Vec::new();
    if kind.scale {
        subresources.push(("scale", SCALE.to_owned()));
    }
    if kind.status {
        subresources.push(("status", object.clone()));
    }
    Resource {
        group,
        version,
        name: kind.plural,
        kind: kind.kind,
        namespaced: kind.namespaced,
        verbs: &VERBS,
        object,
        list: Some(list),
        returns_deleted: false,
        built_in: false,
        subresources: subresources
            .into_iter()
            .map(|(name, object)| Subresource {
                name,
                // Also for scale, though what is read and written is of another kind.
                gvk: own,
                verbs: &SUBRESOURCE_VERBS,
                object: Some(object),
                query: &[],
            })
            .collect(),
    }
}

fn object_schema(
    group: &str,
    version: &str,
    kind: &CrdKind<'_>,
    mut schema: Value,
    descriptions: &Descriptions<'_>,
) -> Value {
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    add_embedded(&mut schema, descriptions, &|_| true, 0);
    add_type_and_meta(&mut schema, descriptions);
    let gvk = Gvk {
        group,
        version,
        kind: kind.kind,
    };
    schema["x-kubernetes-group-version-kind"] = json!([gvk_value(gvk)]);
    schema
}

/// Fields that every object has, whatever its CRD says about them.
pub(super) fn add_type_and_meta(schema: &mut Value, descriptions: &Descriptions<'_>) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        *properties = json!({});
    }
    for name in ["apiVersion", "kind"] {
        properties[name] = described(json!({"type": "string"}), MODEL, name, descriptions);
    }
    let reference = json!({"allOf": [schema_ref(OBJECT_META)]});
    properties["metadata"] = described(reference, MODEL, "metadata", descriptions);
}

fn described(mut schema: Value, owner: &str, field: &str, descriptions: &Descriptions<'_>) -> Value {
    if let Some(text) = descriptions.of_field(owner, field) {
        schema["description"] = text.into();
    }
    schema
}

/// Objects inside of objects (`x-kubernetes-embedded-resource`) have these fields too, if `wanted`.
pub(super) fn add_embedded(
    schema: &mut Value,
    descriptions: &Descriptions<'_>,
    wanted: &dyn Fn(&Value) -> bool,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties
            .values_mut()
            .for_each(|child| add_embedded(child, descriptions, wanted, depth + 1));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(keyword) {
            add_embedded(child, descriptions, wanted, depth + 1);
        }
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) && wanted(schema) {
        add_type_and_meta(schema, descriptions);
        require(schema, &["kind", "apiVersion"]);
    }
}

fn require(schema: &mut Value, names: &[&str]) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in names {
            if !required.iter().any(|r| r == name) {
                required.push((*name).into());
            }
        }
    }
}

pub(super) fn list_schema(
    group: &str,
    version: &str,
    kind: &CrdKind<'_>,
    object: &str,
    descriptions: &Descriptions<'_>,
) -> Value {
    let list_model = format!("{MODEL}List");
    let text = |field| described(json!({"type": "string"}), &list_model, field, descriptions);
    let meta = json!({"allOf": [schema_ref(LIST_META)]});
    let gvk = Gvk {
        group,
        version,
        kind: kind.list_kind,
    };
    json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text("apiVersion"),
            "items": {
                "description": format!("List of {}.", kind.plural),
                "type": "array",
                "items": schema_ref(object),
            },
            "kind": text("kind"),
            "metadata": described(meta, &list_model, "metadata", descriptions),
        },
        "x-kubernetes-group-version-kind": [gvk_value(gvk)],
    })
}
