//! Read access to a JSONSchemaProps object as it stands in a CustomResourceDefinition.
//!
//! The checks of a schema need fields that the compiled form drops (titles, forbidden keywords), so they read the JSON
//! itself. A field of the wrong JSON type reads as absent here: [`super::parse`] reports it.

use serde_json::{Map, Value};

/// A schema object.
#[derive(Clone, Copy)]
pub(super) struct Props<'a>(pub(super) &'a Map<String, Value>);

/// `additionalProperties`: a schema or a boolean.
pub(super) enum Additional<'a> {
    Allowed(bool),
    Schema(Props<'a>),
}

impl<'a> Props<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Props)
    }

    /// The value of a field; JSON null counts as absent.
    pub(super) fn get(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|v| !v.is_null())
    }

    pub(super) fn text(self, field: &str) -> &'a str {
        self.get(field).and_then(Value::as_str).unwrap_or("")
    }

    pub(super) fn flag(self, field: &str) -> bool {
        self.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn schema_type(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn list(self, field: &str) -> &'a [Value] {
        self.get(field)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn schemas(self, field: &str) -> impl Iterator<Item = Props<'a>> {
        self.list(field).iter().filter_map(Props::of)
    }

    pub(super) fn schema(self, field: &str) -> Option<Props<'a>> {
        self.get(field).and_then(Props::of)
    }

    /// `items`, when it is one schema; a list of schemas is forbidden elsewhere.
    pub(super) fn items(self) -> Option<Props<'a>> {
        self.schema("items")
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        self.get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.as_str(), Props::of(schema)?)))
    }

    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties")?.get(name).and_then(Props::of)
    }

    pub(super) fn has_properties(self) -> bool {
        self.properties().next().is_some()
    }

    pub(super) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            Value::Object(schema) => Some(Additional::Schema(Props(schema))),
            _ => None,
        }
    }

    pub(super) fn list_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-list-type").and_then(Value::as_str)
    }

    pub(super) fn map_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-map-type").and_then(Value::as_str)
    }

    pub(super) fn map_keys(self) -> impl Iterator<Item = &'a str> {
        self.list("x-kubernetes-list-map-keys")
            .iter()
            .filter_map(Value::as_str)
    }

    pub(super) fn int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    pub(super) fn embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(super) fn preserve_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    /// Whether the schema says nothing but these fields (empty values count as nothing said).
    pub(super) fn only(self, fields: &[&str]) -> bool {
        self.0
            .iter()
            .all(|(name, value)| fields.contains(&name.as_str()) || is_zero(value))
    }
}

/// Whether a value is one that a typed decoder could not tell from absence.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        _ => false,
    }
}

/// Calls back with a schema and every schema in it.
pub(super) fn visit<'a>(schema: &'a Value, depth: usize, found: &mut dyn FnMut(Props<'a>)) {
    let Some(props) = Props::of(schema).filter(|_| depth <= super::parse::MAX_DEPTH) else {
        return;
    };
    found(props);
    for field in ["items", "additionalProperties", "not"] {
        if let Some(child) = props.get(field) {
            visit(child, depth + 1, found);
        }
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        for child in props.list(field) {
            visit(child, depth + 1, found);
        }
    }
    for (_, child) in props
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        visit(child, depth + 1, found);
    }
}
