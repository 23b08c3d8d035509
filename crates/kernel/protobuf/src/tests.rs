//! Bodies through [`decode`](crate::decode): small ones by hand, hostile ones, and a baseline that Go wrote.

use serde_json::{Value, json};

use crate::{Error, MAGIC, decode};

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A field with a length.
fn bytes(number: usize, content: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2), &varint(content.len()), content].concat()
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), bytes(1, &type_meta), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
}

#[track_caller]
fn check(api_version: &str, kind: &str, raw: &[u8], expected: Value) {
    let mut object = json!({"kind": kind, "apiVersion": api_version});
    object.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
    assert_eq!(decode(&body(api_version, kind, raw)), Ok(object));
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    [bytes(1, key.as_bytes()), bytes(2, value)].concat()
}

#[test]
fn maps_and_bytes() {
    let name = bytes(1, &bytes(1, b"x"));
    let raw = [name, bytes(2, &entry("a", b"b")), bytes(3, &entry("c", &[1, 2])), bytes(2, &entry("d", b""))];
    check("v1", "ConfigMap", &raw.concat(), json!({
        "metadata": {"name": "x"}, "data": {"a": "b", "d": ""}, "binaryData": {"c": "AQI="},
    }));
}

#[test]
fn what_go_always_writes_is_there_and_the_rest_is_not() {
    check("v1", "ConfigMap", &[], json!({"metadata": {}}));
    check("apps/v1", "Deployment", &[], json!({
        "metadata": {}, "status": {},
        "spec": {
            "selector": null, "strategy": {},
            "template": {"metadata": {}, "spec": {"containers": null}},
        },
    }));
    // `name: ""`, and a creation time that is not set.
    let meta = bytes(1, &[bytes(1, b""), bytes(8, b"")].concat());
    check("v1", "ConfigMap", &meta, json!({"metadata": {}}));
}

#[test]
fn embedded_structs_are_beside_the_fields_around_them() {
    let source = bytes(2, &bytes(19, &bytes(1, &bytes(1, b"cm"))));
    let volume = bytes(1, &[bytes(1, b"v"), source].concat());
    let raw = [bytes(1, &[]), bytes(2, &volume)].concat();
    check("v1", "Pod", &raw, json!({
        "metadata": {}, "status": {},
        "spec": {"containers": null, "volumes": [{"name": "v", "configMap": {"name": "cm"}}]},
    }));
}

#[test]
fn a_message_in_pieces_is_one_message() {
    let piece = |name: &[u8], label: &str| bytes(1, &[bytes(1, name), bytes(11, &entry(label, b"1"))].concat());
    let raw = [piece(b"a", "x"), piece(b"", "y")].concat();
    check("v1", "ConfigMap", &raw, json!({"metadata": {"labels": {"x": "1", "y": "1"}}}));
}

#[test]
fn options_are_of_every_version() {
    let grace = [0x08, 0x1e];
    check("apps/v1", "DeleteOptions", &grace, json!({"gracePeriodSeconds": 30}));
    check("example.com/v7", "DeleteOptions", &grace, json!({"gracePeriodSeconds": 30}));
}

#[test]
fn raw_json_and_raw_bodies() {
    let inner = body("v1", "ConfigMap", &[]);
    let items = [bytes(2, &bytes(1, br#"{"a":[1]}"#)), bytes(2, &bytes(1, &inner)), bytes(2, &[])].concat();
    check("v1", "List", &items, json!({
        "metadata": {},
        "items": [{"a": [1]}, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, null],
    }));
}

#[test]
fn errors_say_what_is_wrong() {
    let wrong = |message, field| Error::WireType { message, field };
    let kind = |api_version: &str, kind: &str| Error::Kind { api_version: api_version.into(), kind: kind.into() };
    let truncated = {
        let mut whole = body("v1", "ConfigMap", &bytes(1, b""));
        whole.truncate(20);
        whole
    };
    for (bytes, error) in [
        (b"{}".to_vec(), Error::Magic),
        (b"k8s".to_vec(), Error::Magic),
        (MAGIC.to_vec(), Error::Missing("Kind")),
        (body("", "Pod", b""), Error::Missing("apiVersion")),
        (body("v1", "Deployment", b""), kind("v1", "Deployment")),
        (truncated, Error::Truncated),
        (body("v1", "ConfigMap", &[0x08, 0x01]), wrong("core.v1.ConfigMap", 1)),
        (body("v1", "ConfigMap", &[0x10, 0x01]), wrong("core.v1.ConfigMap", 2)),
        (body("v1", "ConfigMap", &[0x22, 0x01, 0x00]), wrong("core.v1.ConfigMap", 4)),
        (body("v1", "ConfigMap", &[0x07]), Error::Tag),
        (body("v1", "ConfigMap", &bytes(1, &bytes(1, &[0xff]))), Error::Utf8 { message: "meta.v1.ObjectMeta", field: 1 }),
        ([MAGIC, &[0x08, 0x01]].concat(), wrong("runtime.Unknown", 1)),
    ] {
        assert_eq!(decode(&bytes), Err(error), "{bytes:?}");
    }
}

#[test]
fn nesting_is_limited() {
    // spec.versions[].schema.openAPIV3Schema, then `not` upon `not`.
    let nested = |levels: usize| {
        let mut schema = bytes(5, b"object");
        for _ in 0..levels {
            schema = bytes(28, &schema);
        }
        let version = bytes(4, &bytes(1, &schema));
        body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &bytes(2, &bytes(7, &version)))
    };
    assert!(decode(&nested(50)).is_ok());
    assert_eq!(decode(&nested(200)), Err(Error::TooDeep));
    assert_eq!(decode(&nested(5_000)), Err(Error::TooDeep));
    let json = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let list = |levels| body("v1", "List", &bytes(2, &bytes(1, json(levels).as_bytes())));
    assert!(decode(&list(90)).is_ok());
    assert!(matches!(decode(&list(120)), Err(Error::Value { .. })));
}

#[test]
fn values_need_bytes() {
    // Empty containers take two bytes each, and much more in memory.
    let many = |count: usize| body("v1", "Pod", &bytes(2, &[0x12, 0x00].repeat(count)));
    assert!(decode(&many(1000)).is_ok());
    assert_eq!(decode(&many(1_000_000)), Err(Error::TooMany));
    // The same for a message in a great many pieces.
    assert_eq!(decode(&body("v1", "Pod", &[0x12, 0x00].repeat(1_000_000))), Err(Error::TooMany));
    // Many small values of an honest writer are fine.
    let ports: Vec<u8> = (0..20_000).flat_map(|_| bytes(6, &[0x0a, 0, 0x10, 0, 0x18, 80, 0x22, 0, 0x2a, 0])).collect();
    let raw = bytes(2, &bytes(2, &ports));
    assert_eq!(decode(&body("v1", "Pod", &raw)).unwrap()["spec"]["containers"][0]["ports"].as_array().unwrap().len(), 20_000);
}
