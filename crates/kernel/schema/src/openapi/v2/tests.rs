//! The v2 document as clients read it; `cargo xtask conformance openapi` compares it with upstream's as a whole.

use serde_json::{Value, json};

use super::super::tests::assert_closed;
use super::*;

fn document(custom: &[CrdVersion<'_>]) -> Value {
    serde_json::from_slice(&v2_document(Form::Json, custom, Served::default())).unwrap()
}

fn kind(schema: &Value) -> CrdKind<'_> {
    CrdKind {
        kind: "CronTab",
        list_kind: "CronTabList",
        plural: "crontabs",
        namespaced: true,
        schema,
        status: true,
        scale: true,
    }
}

fn crontabs(schema: &Value) -> [CrdVersion<'_>; 1] {
    [CrdVersion {
        group: "stable.example.com",
        version: "v1",
        kinds: vec![kind(schema)],
    }]
}

#[test]
fn the_document_is_closed_and_of_version_2() {
    let document = document(&[]);
    assert_closed(&document);
    assert_eq!(document["swagger"], "2.0");
    let text = document.to_string();
    assert!(!text.contains("#/components/") && !text.contains("\"requestBody\""));
}

#[test]
fn kubectl_finds_kinds_that_cannot_be_patched() {
    let document = document(&[]);
    let review = &document["definitions"]["io.k8s.api.authorization.v1.SubjectAccessReview"];
    assert_eq!(
        review["x-kubernetes-group-version-kind"],
        json!([{"group": "authorization.k8s.io", "version": "v1", "kind": "SubjectAccessReview"}])
    );
    assert_eq!(
        review["properties"]["spec"]["$ref"],
        "#/definitions/io.k8s.api.authorization.v1.SubjectAccessReviewSpec"
    );
    let post = &document["paths"]["/apis/authorization.k8s.io/v1/subjectaccessreviews"]["post"];
    assert_eq!(post["x-kubernetes-action"], "post");
    assert_eq!(post["parameters"][0]["in"], "body");
}

#[test]
fn parameters_are_shared_except_those_that_old_clients_look_for() {
    let document = document(&[]);
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let parameters: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["$ref"].as_str().or(p["name"].as_str()).unwrap())
        .collect();
    // The hashes are upstream's, as the content is.
    assert_eq!(
        parameters,
        [
            "#/parameters/body-78PwaGsr",
            "dryRun",
            "#/parameters/fieldManager-7c6nTn1T",
            "fieldValidation",
            "#/parameters/force-tOGGb0Yi"
        ]
    );
    assert_eq!(
        document["parameters"]["limit-1NfNmdNH"]["type"], "integer",
        "a parameter's type stands beside its name"
    );
}

#[test]
fn schemas_of_custom_kinds_lose_what_version_2_does_not_know() {
    let cases = [
        (
            "nothing special",
            json!({"type": "string", "default": "a", "minLength": 0, "enum": ["a"]}),
            json!({"type": "string", "minLength": 0, "enum": ["a"]}),
        ),
        (
            "nullable means any type",
            json!({"type": "object", "nullable": true, "description": "d", "properties": {"a": {"type": "string"}}}),
            json!({"description": "d"}),
        ),
        (
            "unknown fields",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}, "required": ["a"]}),
            json!({"x-kubernetes-preserve-unknown-fields": true, "required": ["a"]}),
        ),
        (
            "junctors",
            json!({"type": "string", "allOf": [{"minLength": 1}], "anyOf": [{}], "oneOf": [{}], "not": {}}),
            json!({"type": "string"}),
        ),
        (
            "integer or string",
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"x-kubernetes-int-or-string": true}),
        ),
        ("an array of what is unknown", json!({"type": "array"}), json!({})),
        (
            "what may be null is not required",
            json!({"type": "object", "required": ["a", "b"], "properties":
                {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
        ),
        (
            "null in maps",
            json!({"type": "object", "additionalProperties": {"type": "string", "nullable": true}}),
            json!({"type": "object", "additionalProperties": {}}),
        ),
        (
            "an embedded object of which all is allowed",
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}),
            json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            "fields that are called like keywords",
            json!({"type": "object", "properties": {"default": {"type": "string"}, "allOf": {"type": "string"}}}),
            json!({"type": "object", "properties": {"default": {"type": "string"}, "allOf": {"type": "string"}}}),
        ),
    ];
    for (reason, schema, expected) in cases {
        let whole = json!({"type": "object", "properties": {"spec": schema}});
        let document = document(&crontabs(&whole));
        let definition = &document["definitions"]["com.example.stable.v1.CronTab"];
        assert_eq!(definition["properties"]["spec"], expected, "{reason}");
        assert_eq!(
            definition["properties"]["metadata"]["$ref"],
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
    }
}

#[test]
fn custom_kinds_are_served_like_built_in_ones() {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": "d"});
    let document = document(&crontabs(&schema));
    assert_closed(&document);
    let gvk = json!({"group": "stable.example.com", "version": "v1", "kind": "CronTab"});
    assert_eq!(
        document["definitions"]["com.example.stable.v1.CronTab"],
        json!({"type": "object", "x-kubernetes-group-version-kind": [gvk]})
    );
    let patch =
        &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(
        patch["consumes"],
        json!([
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml"
        ])
    );
}

#[test]
fn a_custom_kind_cannot_take_the_place_of_a_built_in_type() {
    let schema = json!({"type": "object", "description": "Not that one."});
    let custom = [CrdVersion {
        group: "core.api.k8s.io",
        version: "v1",
        kinds: vec![CrdKind {
            kind: "Pod",
            list_kind: "PodList",
            ..kind(&schema)
        }],
    }];
    let bytes = v2_document(Form::Json, &custom, Served::default());
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("\"io.k8s.api.core.v1.Pod\":{").count(), 1);
    assert!(!text.contains("Not that one."));
}

/// The fields of a message: number, and the content of those that have a length.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            other => panic!("wire type {other}"),
        };
        let (content, rest) = bytes.split_at(length);
        found.push((tag >> 3, content));
        bytes = rest;
    }
    found
}

fn one(bytes: &[u8], number: u64) -> &[u8] {
    let found: Vec<_> = fields(bytes).into_iter().filter(|(n, _)| *n == number).collect();
    assert_eq!(found.len(), 1, "field {number}");
    found[0].1
}

fn named(bytes: &[u8], number: u64) -> Vec<(&str, &[u8])> {
    let entries = fields(bytes).into_iter().filter(|(n, _)| *n == number);
    entries
        .map(|(_, entry)| (std::str::from_utf8(one(entry, 1)).unwrap(), one(entry, 2)))
        .collect()
}

#[test]
fn protocol_buffers_have_the_same_entries_as_json() {
    let document = document(&[]);
    let bytes = v2_document(Form::Protobuf, &[], Served::default());
    for (key, number, entry) in [("paths", 8, 2), ("definitions", 9, 1), ("parameters", 10, 1)] {
        let expected: Vec<&str> = document[key]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let actual: Vec<&str> = named(one(&bytes, number), entry)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(actual, expected, "{key}");
    }
    assert_eq!(one(&bytes, 1), b"2.0");
}

#[test]
fn protocol_buffers_carry_what_a_schema_says() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "integer", "minLength": 300, "minimum": 0.5, "exclusiveMinimum": true,
        "enum": ["a\u{7f}\u{2028}b"], "x-kubernetes-int-or-string": true,
    }}});
    let bytes = v2_document(Form::Protobuf, &crontabs(&schema), Served::default());
    let definitions = named(one(&bytes, 9), 1);
    let crontab = definitions
        .iter()
        .find(|(name, _)| *name == "com.example.stable.v1.CronTab")
        .unwrap()
        .1;
    let properties = named(one(crontab, 25), 1);
    let spec = properties.iter().find(|(name, _)| *name == "spec").unwrap().1;
    assert_eq!(one(one(spec, 22), 1), b"integer");
    assert_eq!(one(spec, 9), 0.5f64.to_le_bytes());
    let numbers: Vec<u64> = fields(spec).into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, [9, 10, 12, 20, 22, 31]);
    assert!(
        spec.windows(3).any(|w| w == [12 << 3, 0xac, 0x02]),
        "300 takes two bytes"
    );
    let yaml = std::str::from_utf8(one(one(spec, 20), 2)).unwrap();
    assert_eq!(
        yaml, "\"a\\u007f\\u2028b\"\n",
        "YAML allows no control characters"
    );
    let (name, value) = named(spec, 31)[0];
    assert_eq!(
        (name, one(value, 2)),
        ("x-kubernetes-int-or-string", &b"true\n"[..])
    );
}

#[test]
fn the_hash_follows_the_custom_kinds() {
    assert_ne!(v2_hash(""), v2_hash("example.com/v1/things@1;"));
    assert_eq!(v2_hash("a"), v2_hash("a"));
}
