//! A definition for a kind that has none of its own: one that is built in, or that a workspace has bound from an export. What
//! there is to know about it, discovery and the OpenAPI document tell.

use serde_json::{Map, Value, json};

use super::{GroupVersionResource, Served, flag, text};

/// How deep a schema may nest, and how many parts it may have: types may refer to themselves.
const MAX_DEPTH: usize = 24;
const MAX_PARTS: usize = 20_000;

const GVK: &str = "x-kubernetes-group-version-kind";
/// What only Kubernetes' own documents have.
const NOT_FOR_DEFINITIONS: [&str; 4] = [
    GVK,
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// Makes a CustomResourceDefinition with one version of a kind. `resources` is discovery's list of the version's resources,
/// `document` its OpenAPI document.
pub fn definition_of(
    group: &str,
    version: &str,
    kind: &str,
    resources: &Value,
    document: &Value,
) -> Result<Value, String> {
    let list = resources.get("resources").and_then(Value::as_array);
    let entry = list
        .into_iter()
        .flatten()
        .find(|it| text(it, "kind") == kind && !text(it, "name").contains('/'))
        .ok_or_else(|| format!("{kind} is not served in {group}/{version}"))?;
    let plural = text(entry, "name");
    let named = GroupVersionResource {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: plural.to_owned(),
    };
    let has_status = Served::discovered(&named, resources).is_some_and(|it| it.has_status);
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object)
        .ok_or_else(|| format!("the OpenAPI document of {group}/{version} has no schemas"))?;
    let is_meant = |schema: &Value| {
        let kinds = schema.get(GVK).and_then(Value::as_array);
        kinds.into_iter().flatten().any(|it| {
            text(it, "group") == group && text(it, "version") == version && text(it, "kind") == kind
        })
    };
    let schema = schemas
        .values()
        .find(|it| is_meant(it))
        .ok_or_else(|| format!("the OpenAPI document of {group}/{version} does not describe {kind}"))?;
    let mut inline = Inline {
        schemas,
        within: Vec::new(),
        parts: 0,
    };
    let mut schema = inline.schema(schema, 0);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        // Every object has it, and definitions must not describe it.
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
    }
    let mut of_version = json!({
        "name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
    });
    if has_status {
        of_version["subresources"] = json!({"status": {}});
    }
    let mut names = json!({"plural": plural, "kind": kind, "listKind": format!("{kind}List")});
    let singular = match text(entry, "singularName") {
        "" => kind.to_lowercase(),
        singular => singular.to_owned(),
    };
    names["singular"] = json!(singular);
    for field in ["shortNames", "categories"] {
        if let Some(value) = entry.get(field).filter(|it| it.is_array()) {
            names[field] = value.clone();
        }
    }
    let scope = if flag(entry, "namespaced") {
        "Namespaced"
    } else {
        "Cluster"
    };
    Ok(json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [of_version]},
    }))
}

/// Replaces references by what they refer to.
struct Inline<'a> {
    schemas: &'a Map<String, Value>,
    /// The references that are being followed.
    within: Vec<String>,
    parts: usize,
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

impl Inline<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.parts += 1;
        let Some(fields) = schema.as_object() else {
            return anything();
        };
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return anything();
        }
        let only = fields
            .get("allOf")
            .and_then(Value::as_array)
            .and_then(|all| (all.len() == 1).then(|| &all[0]));
        let reference = fields
            .get("$ref")
            .or_else(|| only?.get("$ref"))
            .and_then(Value::as_str);
        let mut made = match reference {
            Some(reference) => self.referred(reference, depth),
            None => Map::new(),
        };
        if matches!(text(schema, "format"), "int-or-string") {
            made.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
            return Value::Object(made);
        }
        for (key, value) in fields {
            let part = match key.as_str() {
                "$ref" => continue,
                "allOf" if only.is_some() => continue,
                // Go's zero value of a structure, which its required fields would contradict; a definition may not.
                "default" if value.as_object().is_some_and(Map::is_empty) => continue,
                key if NOT_FOR_DEFINITIONS.contains(&key) => continue,
                "properties" => {
                    let each = value.as_object().into_iter().flatten();
                    let each = each.map(|(name, it)| (name.clone(), self.schema(it, depth + 1)));
                    Value::Object(each.collect())
                }
                "items" => self.schema(value, depth + 1),
                "additionalProperties" if value.is_object() => self.schema(value, depth + 1),
                _ => value.clone(),
            };
            made.insert(key.clone(), part);
        }
        let open = [
            "type",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
        ];
        if !open.iter().any(|it| made.contains_key(*it)) {
            if made.shift_remove("oneOf").is_some() {
                // A quantity: a number or a text.
                made.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
            } else {
                made.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
            }
        }
        Value::Object(made)
    }

    fn referred(&mut self, reference: &str, depth: usize) -> Map<String, Value> {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let found = match self.schemas.get(name) {
            Some(schema) if !self.within.iter().any(|it| it == name) => {
                self.within.push(name.to_owned());
                let made = self.schema(schema, depth + 1);
                self.within.pop();
                made
            }
            _ => anything(),
        };
        match found {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}
