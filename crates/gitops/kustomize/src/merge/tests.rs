//! Tables of merges: the outcomes are what kustomize 5.8.1 makes of the same documents.

use fairway_text_yaml::{Limits, Resolution, from_str_with, to_string};
use serde_json::Value;

use super::{NewItems, merge};
use crate::openapi::OpenApi;

fn yaml(text: &str) -> Value {
    from_str_with(text, Limits::default(), Resolution::Yaml12)
        .unwrap()
        .value
}

/// Merges into the pod spec of a Deployment.
fn merged(target: &str, patch: &str) -> String {
    let deployment = |spec: &str| {
        let indented: String = spec.lines().map(|line| format!("      {line}\n")).collect();
        yaml(&format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\nspec:\n  template:\n    spec:\n{indented}"
        ))
    };
    let api = OpenApi::new();
    let outcome = merge(
        &deployment(patch),
        deployment(target),
        NewItems::First,
        Some(&api),
    )
    .unwrap();
    to_string(
        outcome
            .unwrap()
            .pointer("/spec/template/spec")
            .unwrap_or(&Value::Null),
    )
}

#[test]
fn maps_and_lists() {
    for (why, target, patch, expected) in [
        (
            "containers merge by name, and new ones come first",
            "containers:\n- name: a\n  image: x\n- name: b",
            "containers:\n- name: c\n- name: a\n  image: y",
            "containers:\n- name: c\n- image: \"y\"\n  name: a\n- name: b\n",
        ),
        (
            "an item is deleted by its name",
            "containers:\n- name: a\n- name: b",
            "containers:\n- name: a\n  $patch: delete",
            "containers:\n- name: b\n",
        ),
        (
            "a list is replaced",
            "containers:\n- name: a\n- name: b",
            "containers:\n- $patch: replace\n- name: c",
            "containers:\n- name: c\n",
        ),
        (
            "lists without merge keys replace each other",
            "tolerations:\n- key: a\n- key: b",
            "tolerations:\n- key: c",
            "tolerations:\n- key: c\n",
        ),
        (
            "null removes",
            "hostname: h\nnodeSelector:\n  a: b\n  c: d",
            "hostname: null\nnodeSelector:\n  a: null",
            "nodeSelector:\n  c: d\n",
        ),
        (
            "nulls in what is new are dropped",
            "hostname: h",
            "nodeSelector:\n  a: b\n  c: null",
            "hostname: h\nnodeSelector:\n  a: b\n",
        ),
        (
            "a map is replaced",
            "nodeSelector:\n  a: b",
            "nodeSelector:\n  $patch: replace\n  c: d",
            "nodeSelector:\n  c: d\n",
        ),
        (
            "ports are told apart by port and protocol if any has one",
            "containers:\n- name: a\n  ports:\n  - containerPort: 80\n    protocol: TCP\n  - containerPort: 80\n    protocol: UDP",
            "containers:\n- name: a\n  ports:\n  - containerPort: 80\n    protocol: UDP\n    name: u",
            "containers:\n- name: a\n  ports:\n  - containerPort: 80\n    protocol: TCP\n  - containerPort: 80\n    name: u\n    protocol: UDP\n",
        ),
    ] {
        assert_eq!(merged(target, patch), expected, "{why}");
    }
}

#[test]
fn unknown_kinds_have_no_merge_keys() {
    let object = |list: &str| {
        yaml(&format!(
            "apiVersion: example.com/v1\nkind: Foo\nspec:\n  list: {list}\n"
        ))
    };
    let api = OpenApi::new();
    let outcome = merge(
        &object("[{name: b}]"),
        object("[{name: a}]"),
        NewItems::First,
        Some(&api),
    )
    .unwrap();
    assert_eq!(outcome.unwrap()["spec"]["list"], yaml("[{name: b}]"));
}

#[test]
fn kinds_of_values_must_fit() {
    let api = OpenApi::new();
    for (target, patch) in [("a: {b: c}", "a: d"), ("a: d", "a: [b]"), ("a: [b]", "a: {b: c}")] {
        assert!(
            merge(&yaml(patch), yaml(target), NewItems::First, Some(&api)).is_err(),
            "{patch}"
        );
    }
    assert!(
        merge(
            &yaml("a: {$patch: wrong}"),
            yaml("a: {b: c}"),
            NewItems::First,
            Some(&api)
        )
        .is_err()
    );
}
