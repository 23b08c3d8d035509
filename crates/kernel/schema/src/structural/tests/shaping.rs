//! Shapes for server-side apply.

use serde_json::{Value, json};

use super::load;
use crate::shape::{Atom, ListRelationship, ShapeId, Shapes};

/// Follows a path of field names, `*` for undeclared keys, `[]` for list elements.
fn at(shapes: &Shapes, root: ShapeId, path: &str) -> Atom {
    let mut atom = shapes.get(root);
    for step in path.split('.').filter(|s| !s.is_empty()) {
        let next = match step {
            "[]" => atom.list.as_ref().map(|l| l.element),
            "*" => atom.map.as_ref().and_then(|m| m.element),
            name => atom.map.as_ref().and_then(|m| m.shape_of(name)),
        };
        atom = shapes.get(next.unwrap_or_else(|| panic!("nothing at {step} of {path}")));
    }
    atom.clone()
}

/// One word for the kind of an atom.
fn kind(atom: &Atom) -> String {
    let mut words = Vec::new();
    if let Some(scalar) = atom.scalar {
        words.push(format!("{scalar:?}").to_lowercase());
    }
    if let Some(list) = &atom.list {
        words.push(match &list.relationship {
            ListRelationship::Atomic => "atomic-list".into(),
            ListRelationship::Set => "set".into(),
            ListRelationship::Map(keys) => format!("map-list({})", keys.join(",")),
        });
    }
    if let Some(map) = &atom.map {
        let open = if map.element.is_some() { "+" } else { "" };
        words.push(format!("{}map{open}", if map.atomic { "atomic-" } else { "" }));
    }
    words.join("|")
}

#[test]
fn shapes_follow_the_schema() {
    let schema: Value = json!({"type": "object", "properties": {
    "metadata": {"type": "object"},
    "spec": {"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "number"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
        "time": {"type": "string", "format": "date-time"}, "bytes": {"type": "string", "format": "byte"},
        "odd": {"type": "string", "format": "odd"},
        "port": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object"},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"],
                "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}, "l": {"type": "string"}}}},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "strings": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": true, "properties": {"a": {"type": "string"}}},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "o": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }}}});
    let (shapes, root) = load(&schema).shapes();
    let cases = [
        ("", "map"),
        ("apiVersion", "string"),
        ("metadata", "map"),
        ("metadata.labels", "map+"),
        ("metadata.labels.*", "string"),
        ("metadata.finalizers", "set"),
        ("metadata.ownerReferences", "map-list(uid)"),
        ("metadata.ownerReferences.[]", "atomic-map"),
        ("metadata.managedFields", "atomic-list"),
        ("metadata.creationTimestamp", "untyped"),
        ("metadata.generation", "numeric"),
        ("spec", "map"),
        ("spec.s", "string"),
        ("spec.n", "numeric"),
        ("spec.i", "numeric"),
        ("spec.b", "boolean"),
        ("spec.time", "untyped"),
        ("spec.bytes", "string"),
        ("spec.odd", "untyped"),
        ("spec.port", "untyped|atomic-list|map+"),
        ("spec.free", "map+"),
        ("spec.free.*", "untyped|atomic-list|map+"),
        ("spec.free.*.*", "untyped|atomic-list|map+"),
        ("spec.free.*.[]", "untyped|atomic-list|atomic-map+"),
        ("spec.list", "atomic-list"),
        ("spec.list.[]", "string"),
        ("spec.set", "set"),
        ("spec.map", "map-list(k,l)"),
        ("spec.map.[]", "map"),
        ("spec.atomic", "atomic-map"),
        ("spec.strings", "map+"),
        ("spec.strings.*", "string"),
        ("spec.open.*", "untyped|atomic-list|map+"),
        ("spec.kept", "map+"),
        ("spec.kept.o", "map+"),
        ("spec.kept.o.a", "string"),
        ("spec.any", "untyped|atomic-list|map+"),
        ("spec.embedded", "map"),
        ("spec.embedded.metadata.labels", "map+"),
        ("spec.embedded.kind", "string"),
    ];
    for (path, expected) in cases {
        assert_eq!(kind(&at(&shapes, root, path)), expected, "{path}");
    }
    let item = at(&shapes, root, "spec.map.[]");
    assert_eq!(
        item.map
            .as_ref()
            .and_then(|m| m.field("k"))
            .and_then(|f| f.default.clone()),
        Some(json!("d"))
    );
    assert_eq!(
        shapes.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
        shapes.get(root).map.as_ref().and_then(|m| m.shape_of("metadata"))
    );
}
