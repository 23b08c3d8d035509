//! Rules one by one, and those that are none.

use super::*;

fn changed(rule: Value, object: &Value) -> Result<Value, String> {
    let mutator = Mutator::compile(&json!({"spec": [rule]}))?;
    mutator.spec(object, &json!({"metadata": {"name": "copy"}}))
}

#[test]
fn rules() {
    let object = json!({"metadata": {"name": "web"}, "spec": {"size": "small", "count": 2, "secret": "x"}});
    for (rule, path, expected) in [
        (json!({"delete": {"path": "spec.secret"}}), "/spec/secret", None),
        (
            json!({"delete": {"path": "spec.nothing.there"}}),
            "/spec/size",
            Some(json!("small")),
        ),
        (
            json!({"regex": {"path": "spec.size", "pattern": "^s(m)all$", "replacement": "${1}edium"}}),
            "/spec/size",
            Some(json!("medium")),
        ),
        (
            json!({"regex": {"path": "spec.count", "pattern": "2", "replacement": "two"}}),
            "/spec/count",
            Some(json!("two")),
        ),
        (
            json!({"regex": {"path": "spec.new", "replacement": "set"}}),
            "/spec/new",
            Some(json!("set")),
        ),
        (
            json!({"template": {"path": "spec.size", "template": "{{ .Value | upper }}-{{ .LocalObject.metadata.name }}-{{ .RemoteObject.metadata.name }}"}}),
            "/spec/size",
            Some(json!("SMALL-web-copy")),
        ),
        (
            json!({"cel": {"path": "spec.count", "expression": "value + 1"}}),
            "/spec/count",
            Some(json!(3)),
        ),
        (
            json!({"cel": {"path": "spec.size", "expression": "self.metadata.name + '/' + other.metadata.name"}}),
            "/spec/size",
            Some(json!("web/copy")),
        ),
    ] {
        let after = changed(rule.clone(), &object).unwrap();
        assert_eq!(after.pointer(path).cloned(), expected, "{rule}");
    }
}

#[test]
fn refused() {
    let object = json!({"spec": {"a": "b"}});
    for (rule, expected) in [
        (json!({}), "set exactly one of delete, regex, template and cel"),
        (
            json!({"delete": {"path": "a"}, "regex": {"path": "a"}}),
            "set exactly one of delete, regex, template and cel",
        ),
        (json!({"delete": {"path": ""}}), "has an empty part"),
        (json!({"regex": {"path": "a", "pattern": "("}}), "invalid pattern"),
        (
            json!({"cel": {"path": "a", "expression": "nonsense("}}),
            "failed to compile CEL expression",
        ),
        (
            json!({"cel": {"path": "spec.a", "expression": "[1]"}}),
            "only texts, numbers, truth values and null can be set",
        ),
        (
            json!({"cel": {"path": "spec.a", "expression": "self.missing.field"}}),
            "failed to evaluate CEL expression",
        ),
        (
            json!({"template": {"path": "spec.a", "template": "{{ .Missing }}"}}),
            "failed to execute template",
        ),
        (
            json!({"regex": {"path": "spec.a.b", "replacement": "x"}}),
            "cannot be set",
        ),
    ] {
        let error = changed(rule.clone(), &object).unwrap_err();
        assert!(error.contains(expected), "{rule}: {error}");
    }
    assert!(
        Mutator::compile(&json!({"status": [{"delete": {"path": "ok"}}, {}]}))
            .is_err_and(|it| it.starts_with("mutation.status[1]"))
    );
}

#[test]
fn in_order_and_by_side() {
    let mutator = Mutator::compile(&json!({
        "spec": [
            {"regex": {"path": "spec.a", "replacement": "1"}},
            {"template": {"path": "spec.b", "template": "{{ .LocalObject.spec.a }}2"}},
        ],
        "status": [{"delete": {"path": "status.inner"}}],
    }))
    .unwrap();
    let object = json!({"status": {"inner": 1, "ready": true}});
    assert_eq!(
        mutator.spec(&object, &Value::Null).unwrap()["spec"],
        json!({"a": "1", "b": "12"})
    );
    assert_eq!(
        mutator.status(&object, &Value::Null).unwrap(),
        json!({"status": {"ready": true}})
    );
    let none = Mutator::default();
    assert_eq!(none.spec(&object, &Value::Null).unwrap(), object);
}
