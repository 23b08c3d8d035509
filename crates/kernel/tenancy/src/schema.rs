//! APIResourceSchemas: definitions of kinds that are shared, and the CustomResourceDefinitions they amount to.

use fairway_kernel_schema::crd::{self, Names};
use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::{Map, Value, json};

use crate::cluster::ClusterId;
use crate::meta::Meta;
use crate::names::annotation;

/// Groups of a single word that Kubernetes itself has.
const SHORT_GROUPS: [&str; 5] = ["apps", "batch", "extensions", "policy", "autoscaling"];

/// An APIResourceSchema, as far as decisions need it.
#[derive(Clone, Debug)]
pub struct ApiResourceSchema {
    /// Its metadata.
    pub meta: Meta,
    /// The API group; empty for the core group.
    pub group: String,
    /// The names of the kind.
    pub names: Names,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// How many versions there are.
    pub versions: usize,
    /// Whether it says how to convert between versions.
    pub has_conversion: bool,
}

impl ApiResourceSchema {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let versions = spec
            .get("versions")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let storage = versions
            .iter()
            .find(|it| it.get("storage") == Some(&Value::Bool(true)));
        Self {
            meta: Meta::read(object),
            group: text(spec, "group").to_owned(),
            names: Names::parse(spec.get("names").unwrap_or(&Value::Null)),
            storage_version: storage.map(|it| text(it, "name").to_owned()).unwrap_or_default(),
            versions: versions.len(),
            has_conversion: spec.get("conversion").is_some_and(|it| !it.is_null()),
        }
    }

    /// `.<resource>.<group>`, which the name must end in.
    pub fn suffix(group: &str, resource: &str) -> String {
        let group = if group.is_empty() { "core" } else { group };
        format!(".{resource}.{group}")
    }
}

/// The parts of a schema's name: prefix, resource, group (empty for the core group).
pub fn split_name(name: &str) -> Option<(&str, &str, &str)> {
    let (prefix, rest) = name.split_once('.')?;
    let (resource, group) = rest.split_once('.')?;
    Some((prefix, resource, if group == "core" { "" } else { group }))
}

/// What is wrong with a schema that somebody wrote; `old` is the one before, if there was one.
pub fn objections(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let schema = ApiResourceSchema::read(object);
    let name_path = Path::new("metadata").child("name");
    let spec_path = Path::new("spec");
    let suffix = ApiResourceSchema::suffix(&schema.group, &schema.names.plural);
    if !schema.names.plural.is_empty() {
        match schema.meta.name.strip_suffix(&suffix) {
            None => errors.push(FieldError::invalid(
                &name_path,
                schema.meta.name.clone(),
                format!("must end in {suffix}"),
            )),
            Some(prefix) if !is_prefix(prefix) => errors.push(FieldError::invalid(
                &name_path,
                schema.meta.name.clone(),
                format!("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of {suffix}"),
            )),
            Some(_) => {}
        }
    }
    let group_path = spec_path.child("group");
    if schema.group == "core" {
        errors.push(FieldError::invalid(
            &group_path,
            "core",
            "must be empty string for the core group",
        ));
    } else if !schema.group.is_empty()
        && !schema.group.contains('.')
        && !SHORT_GROUPS.contains(&schema.group.as_str())
    {
        errors.push(FieldError::invalid(
            &group_path,
            schema.group.clone(),
            "should be a domain with at least one dot",
        ));
    }
    // kcp requires what CustomResourceDefinitions get by default.
    for (field, value) in [
        ("singular", &schema.names.singular),
        ("listKind", &schema.names.list_kind),
    ] {
        if value.is_empty() {
            errors.push(FieldError::required(&spec_path.child("names").child(field), ""));
        }
    }
    if errors.is_empty() {
        errors.extend(definition_errors(object));
    }
    if old.is_some_and(|old| old.get("spec") != object.get("spec")) {
        errors.push(FieldError::invalid_without_value(&spec_path, "is immutable"));
    }
    errors
}

/// What the rules for CustomResourceDefinitions say. The core group and the groups of single words are theirs alone to
/// refuse, so they are judged under a borrowed one.
fn definition_errors(object: &Value) -> Vec<FieldError> {
    let mut definition = to_crd(object);
    let plural = text(&definition["spec"]["names"], "plural").to_owned();
    if !text(&definition["spec"], "group").contains('.') {
        definition["spec"]["group"] = json!("core.invalid");
    }
    let group = text(&definition["spec"], "group").to_owned();
    definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
    crd::set_defaults(&mut definition);
    crd::prepare_for_create(&mut definition);
    crd::validate(&definition)
}

fn is_prefix(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes
            .last()
            .is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        && bytes
            .iter()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || *it == b'-')
}

/// The CustomResourceDefinition that a schema amounts to. It has the schema's UID, so that the same schema is the same
/// definition in every workspace that binds it.
pub fn to_crd(object: &Value) -> Value {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let meta = Meta::read(object);
    let group = text(spec, "group");
    let plural = text(spec.get("names").unwrap_or(&Value::Null), "plural");
    let mut annotations = json!({
        annotation::BOUND_CRD: "",
        annotation::SCHEMA_CLUSTER: meta.annotation(annotation::CLUSTER).unwrap_or_default(),
        annotation::SCHEMA_NAME: meta.name,
    });
    if let Some(approval) = meta.annotation(crd::APPROVAL_ANNOTATION) {
        annotations[crd::APPROVAL_ANNOTATION] = json!(approval);
    }
    let versions: Vec<Value> = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(to_crd_version)
        .collect();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": &ApiResourceSchema::suffix(group, plural)[1..],
            "uid": meta.uid,
            "annotations": annotations,
        },
        "spec": {
            "group": group,
            "names": spec.get("names").cloned().unwrap_or_default(),
            "scope": spec.get("scope").cloned().unwrap_or_default(),
        },
    });
    if versions.len() > 1
        && let Some(conversion) = spec.get("conversion")
    {
        definition["spec"]["conversion"] = conversion.clone();
    }
    definition["spec"]["versions"] = Value::Array(versions);
    definition
}

/// A version of a schema holds the OpenAPI schema itself, one of a definition a level deeper.
fn to_crd_version(version: &Value) -> Value {
    let mut version = version.as_object().cloned().unwrap_or_default();
    if let Some(schema) = version.get_mut("schema") {
        *schema = json!({"openAPIV3Schema": schema.take()});
    }
    Value::Object(version)
}

/// The APIResourceSchema for a CustomResourceDefinition, named `<prefix>.<resource>.<group>`.
pub fn from_crd(definition: &Value, prefix: &str) -> Value {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let group = text(spec, "group");
    let plural = text(spec.get("names").unwrap_or(&Value::Null), "plural");
    let versions: Vec<Value> = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(from_crd_version)
        .collect();
    let mut schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": format!("{prefix}{}", ApiResourceSchema::suffix(group, plural))},
        "spec": {
            "group": group,
            "names": with_defaults(spec.get("names")),
            "scope": spec.get("scope").cloned().unwrap_or_default(),
        },
    });
    if versions.len() > 1 {
        // A webhook of the definition's server cannot be reached from elsewhere.
        schema["spec"]["conversion"] = json!({"strategy": "None"});
    }
    schema["spec"]["versions"] = Value::Array(versions);
    let approval = Meta::read(definition);
    if let Some(approval) = approval.annotation(crd::APPROVAL_ANNOTATION) {
        schema["metadata"]["annotations"] = json!({crd::APPROVAL_ANNOTATION: approval});
    }
    schema
}

/// Names with those that a definition may leave out.
fn with_defaults(names: Option<&Value>) -> Value {
    let mut names: Map<String, Value> = names.and_then(Value::as_object).cloned().unwrap_or_default();
    let kind = names
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    names
        .entry("singular")
        .or_insert_with(|| json!(kind.to_lowercase()));
    names
        .entry("listKind")
        .or_insert_with(|| json!(format!("{kind}List")));
    Value::Object(names)
}

fn from_crd_version(version: &Value) -> Value {
    let mut version = version.as_object().cloned().unwrap_or_default();
    let schema = version
        .get_mut("schema")
        .and_then(|it| it.get_mut("openAPIV3Schema"));
    let schema = schema.map_or_else(|| json!({"type": "object"}), Value::take);
    version.insert("schema".to_owned(), schema);
    Value::Object(version)
}

/// The workspace that a schema lies in, for messages: `<cluster>|<name>`.
pub fn locate(cluster: &ClusterId, name: &str) -> String {
    format!("{cluster}|{name}")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
