//! Rules in CEL: on definitions and on objects.

use serde_json::{Value, json};

use super::{errors, load, spec_schema};
use crate::structural::{Budget, Structural};

/// A schema of `spec.x` with these rules.
fn ruled(x: &Value, rules: &Value) -> Value {
    let mut x = x.clone();
    x["x-kubernetes-validations"] = rules.clone();
    spec_schema(&json!({"x": x}))
}

fn refusals(x: &Value, rules: &Value) -> Vec<String> {
    match Structural::compile(&ruled(x, rules)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .iter()
            .map(|e| {
                let text = e.to_string();
                text.strip_prefix("properties[spec].properties[x].")
                    .unwrap_or(&text)
                    .to_owned()
            })
            .collect(),
    }
}

#[test]
fn rules_on_objects() {
    let x = json!({"type": "object", "properties": {
        "min": {"type": "integer"}, "max": {"type": "integer"},
        "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
        "port": {"x-kubernetes-int-or-string": true}}});
    let check = |rule: Value, value: Value, expected: &[&str]| {
        let schema = ruled(&x, &json!([rule]));
        assert_eq!(
            errors(&schema, &json!({"spec": {"x": value}}), None),
            expected,
            "{rule} on {value}"
        );
    };
    let rule = json!({"rule": "self.min <= self.max"});
    check(rule.clone(), json!({"min": 1, "max": 2}), &[]);
    check(
        rule.clone(),
        json!({"min": 3, "max": 2}),
        &["spec.x: Invalid value: failed rule: self.min <= self.max"],
    );
    check(
        rule,
        json!({"min": 3}),
        &[r#"spec.x: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max"#],
    );
    check(
        json!({"rule": "self.min > 1", "message": " too few "}),
        json!({"min": 1}),
        &["spec.x: Invalid value: too few"],
    );
    check(
        json!({"rule": "self.min > 1", "messageExpression": "'at least 2, not ' + string(self.min)"}),
        json!({"min": 1}),
        &["spec.x: Invalid value: at least 2, not 1"],
    );
    check(
        json!({"rule": "self.min > 1", "message": "plan B", "messageExpression": "string(self.max)"}),
        json!({"min": 1}),
        &["spec.x: Invalid value: plan B"],
    );
    check(
        json!({"rule": "self.min > 1", "fieldPath": ".min", "reason": "FieldValueForbidden", "message": "no"}),
        json!({"min": 1}),
        &["spec.x.min: Forbidden: no"],
    );
    check(
        json!({"rule": "has(self.min)", "reason": "FieldValueRequired", "fieldPath": ".min"}),
        json!({}),
        &["spec.x.min: Required value: failed rule: has(self.min)"],
    );
    check(
        json!({"rule": "false", "reason": "FieldValueDuplicate"}),
        json!({}),
        &["spec.x: Duplicate value"],
    );
    check(
        json!({"rule": "self.names.all(n, n.startsWith('a'))"}),
        json!({"names": ["ab", "b"]}),
        &["spec.x: Invalid value: failed rule: self.names.all(n, n.startsWith('a'))"],
    );
    check(
        json!({"rule": "self.port > 1"}),
        json!({"port": "http"}),
        &[
            r#"spec.x: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.port > 1"#,
        ],
    );
}

#[test]
fn rules_on_scalars_items_and_maps() {
    let schema = spec_schema(&json!({
        "s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]},
        "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}},
        "m": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}},
        "n": {"type": "string", "nullable": true, "x-kubernetes-validations": [{"rule": "false"}]},
    }));
    let value = json!({"spec": {"s": "b", "l": [1, 0], "m": {"k": 0}, "n": null}});
    assert_eq!(
        errors(&schema, &value, None),
        [
            r#"spec.s: Invalid value: "b": failed rule: self == 'a'"#,
            "spec.l[1]: Invalid value: 0: failed rule: self > 0",
            "spec.m[k]: Invalid value: 0: failed rule: self > 0",
        ]
    );
}

#[test]
fn rules_wait_for_right_types() {
    let schema = ruled(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        &json!([{"rule": "self.a == ''"}]),
    );
    assert_eq!(
        errors(&schema, &json!({"spec": {"x": {"a": 1}}}), None),
        [
            r#"spec.x.a: Invalid value: "integer": spec.x.a in body must be of type string: "integer""#,
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn the_root_sees_the_names_of_the_object() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.metadata.name.startsWith('a') && self.kind == 'K' && self.apiVersion == 'g/v1'"}]});
    assert!(Structural::compile(&schema).is_ok());
    let object =
        |name: &str| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": name, "labels": {}}});
    assert_eq!(errors(&schema, &object("ab"), None), [""; 0]);
    assert_eq!(errors(&schema, &object("b"), None).len(), 1);
}

#[test]
fn transitions() {
    let x = json!({"type": "object", "properties": {
    "a": {"type": "string"},
    "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
        "type": "object", "required": ["k"], "properties": {
            "k": {"type": "string"},
            "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "must not shrink"}]}}}},
    "once": {"type": "string", "x-kubernetes-validations": [
        {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true, "message": "is set once"}]},
    "born": {"type": "string", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true, "message": "begins as new"}]},
    }});
    let schema = ruled(
        &x,
        &json!([{"rule": "self.a == oldSelf.a", "message": "a is immutable"}]),
    );
    assert!(
        Structural::compile(&schema).is_ok(),
        "{:?}",
        Structural::compile(&schema)
    );
    let check = |new: Value, old: Option<Value>, expected: &[&str]| {
        let old = old.map(|old| json!({"spec": {"x": old}}));
        assert_eq!(
            errors(&schema, &json!({"spec": {"x": new}}), old.as_ref()),
            expected,
            "{new} from {old:?}"
        );
    };
    let a = |value: &str| json!({"a": value});
    check(a("1"), None, &[]);
    check(a("1"), Some(a("1")), &[]);
    check(a("2"), Some(a("1")), &["spec.x: Invalid value: a is immutable"]);
    let map = |v: i64| json!({"a": "", "map": [{"k": "q", "v": 0}, {"k": "z", "v": v}]});
    let old = json!({"a": "", "map": [{"k": "z", "v": 5}]});
    check(map(6), Some(old.clone()), &[]);
    check(
        map(4),
        Some(old),
        &["spec.x.map[1].v: Invalid value: 4: must not shrink"],
    );
    check(json!({"a": "", "once": "x"}), None, &[]);
    check(json!({"a": "", "once": "x"}), Some(a("")), &[]);
    check(
        json!({"a": "", "once": "x"}),
        Some(json!({"a": "", "once": "y"})),
        &[r#"spec.x.once: Invalid value: "x": is set once"#],
    );
    check(
        json!({"a": "", "born": "x"}),
        None,
        &[r#"spec.x.born: Invalid value: "x": begins as new"#],
    );
    check(
        json!({"a": "", "born": "x"}),
        Some(json!({"a": "", "born": "new"})),
        &[],
    );
}

#[test]
fn unchanged_violations_are_tolerated() {
    let x = json!({"type": "object", "properties": {
        "o": {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "self.a == 'ok'"}]},
        "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}},
        "b": {"type": "string"}}});
    let schema = spec_schema(&json!({"x": x}));
    let old = json!({"spec": {"x": {"o": {"a": "bad"}, "l": [0], "b": "1"}}});
    let check = |new: Value, expected: &[&str]| {
        assert_eq!(
            errors(&schema, &json!({"spec": {"x": new}}), Some(&old)),
            expected,
            "{new}"
        );
    };
    check(json!({"o": {"a": "bad"}, "l": [0], "b": "2"}), &[]);
    check(
        json!({"o": {"a": "worse"}, "l": [0, 1]}),
        &[
            "spec.x.o: Invalid value: failed rule: self.a == 'ok'",
            "spec.x.l[0]: Invalid value: 0: failed rule: self > 0",
        ],
    );
}

#[test]
fn rules_of_definitions() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert_eq!(refusals(&object, &json!([{"rule": "self.a == 'b'"}])), [""; 0]);
    let found = refusals(&object, &json!([{"rule": "self.b == 'b'"}]));
    assert_eq!(
        found,
        [
            "x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"self.b == 'b'\"}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 'b'\n | ....^"
        ]
    );
    assert_eq!(
        refusals(&object, &json!([{"rule": "self.a"}])),
        [
            "x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"self.a\"}: cel expression must evaluate to a bool"
        ]
    );
    assert_eq!(
        refusals(&object, &json!([{"rule": "true", "messageExpression": "1"}])),
        [
            "x-kubernetes-validations[0].messageExpression: Invalid value: {\"rule\":\"true\",\"messageExpression\":\"1\"}: messageExpression must evaluate to a string"
        ]
    );
    assert_eq!(
        refusals(&object, &json!([{"rule": "true", "optionalOldSelf": true}])),
        [
            "x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        ]
    );
    // Elements of atomic lists have no past.
    let list = json!({"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5,
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
    assert_eq!(
        refusals(&list, &json!([])),
        [
            "items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[spec].properties[x]"
        ]
    );
}

#[test]
fn costs_of_definitions() {
    let nested = |items: Value| json!({"type": "array", "items": {"type": "array", "items": items}});
    let rule = json!([{"rule": "self.all(a, self.all(b, a == b))"}]);
    let found = refusals(&nested(json!({"type": "string"})), &rule);
    assert!(found.iter().any(|e| e.starts_with("x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule")), "{found:?}");
    let bounded = json!({"type": "array", "maxItems": 4, "items": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 8}}});
    assert_eq!(refusals(&bounded, &rule), [""; 0]);
}

#[test]
fn defaults_obey_rules() {
    let x = json!({"type": "string", "default": "b"});
    assert_eq!(
        refusals(&x, &json!([{"rule": "self == 'a'"}])),
        ["default: Invalid value: \"b\": failed rule: self == 'a'"]
    );
    assert_eq!(refusals(&x, &json!([{"rule": "self == 'b'"}])), [""; 0]);
    assert_eq!(refusals(&x, &json!([{"rule": "self == oldSelf"}])), [""; 0]);
    assert_eq!(
        refusals(
            &x,
            &json!([{"rule": "oldSelf.hasValue()", "optionalOldSelf": true}])
        ),
        ["default: Invalid value: \"b\": failed rule: oldSelf.hasValue()"]
    );
}

#[test]
fn costs_at_run_time_are_bounded() {
    // Loaded without the static check, as if it came from an older definition.
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let schema = load(&ruled(
        &list,
        &json!([{"rule": "self.all(a, self.all(b, a + b >= 0))"}, {"rule": "false"}]),
    ));
    let value = json!({"spec": {"x": (0..3000).collect::<Vec<i32>>()}});
    let mut budget = Budget::default();
    let started = std::time::Instant::now();
    let found: Vec<String> = schema
        .validate(&value, None, &mut budget)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            r#"spec.x: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a + b >= 0))"#
        ]
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    // Many cheap rules share one budget.
    let items = json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1 > 0"}]}});
    let schema = load(&spec_schema(&json!({"x": items})));
    let mut budget = Budget {
        cost: 100,
        ..Budget::default()
    };
    let found: Vec<String> = schema
        .validate(&value, None, &mut budget)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].ends_with(
            "validation failed due to running out of cost budget, no further validation rules will be run"
        ),
        "{}",
        found[0]
    );
    assert_eq!(budget.cost, 0);
}
