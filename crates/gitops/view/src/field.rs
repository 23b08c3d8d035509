//! Reading objects: what is missing is empty.

use serde_json::Value;

/// The text at a pointer.
pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a pointer.
pub fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether there is a true at a pointer.
pub fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(true))
}

/// What is at a pointer, unless it is null.
pub fn present<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    value.pointer(pointer).filter(|it| !it.is_null())
}

/// `namespace/name`, or the name of what has no namespace.
pub fn qualified_name(object: &Value) -> String {
    match (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    ) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
