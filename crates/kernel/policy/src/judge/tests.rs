//! Tables of policies and requests.

use std::sync::Arc;

use fairway_text_cel::{AccessCheck, Authorizer, Decision, ResourceAttributes};
use serde_json::{Value, json};

use super::Input;
use crate::{Policy, Verdict};

struct Everybody;

impl Authorizer for Everybody {
    fn authorize(&self, check: &AccessCheck) -> Decision {
        Decision {
            allowed: &*check.verb == "get",
            ..Decision::default()
        }
    }
}

fn judge(spec: &Value, object: &Value, params: &Value) -> Verdict {
    let policy = Policy::compile(&json!({"metadata": {"name": "p"}, "spec": spec}));
    policy.judge(&Input {
        request: &json!({"operation": "CREATE", "userInfo": {"username": "ann", "groups": ["dev"]}, "dryRun": false}),
        object,
        old_object: &Value::Null,
        namespace: &json!({"metadata": {"name": "n", "labels": {"team": "a"}, "creationTimestamp": "2026-01-02T03:04:05Z"}}),
        params,
        authorizer: Arc::new(Everybody),
        resource: ResourceAttributes::default(),
    })
}

fn messages(verdict: &Verdict) -> Vec<&str> {
    verdict.failures.iter().map(|f| f.message.as_str()).collect()
}

#[test]
fn validations_fail_with_the_best_message_there_is() {
    let object = json!({"spec": {"replicas": 1}});
    for (name, validation, want) in [
        ("holds", json!({"expression": "object.spec.replicas == 1"}), None),
        (
            "no message",
            json!({"expression": " object.spec.replicas > 1 "}),
            Some("failed expression: object.spec.replicas > 1"),
        ),
        (
            "a message",
            json!({"expression": "object.spec.replicas > 1", "message": "too few"}),
            Some("too few"),
        ),
        (
            "a made message wins",
            json!({"expression": "false", "message": "m", "messageExpression": "'got ' + string(object.spec.replicas)"}),
            Some("got 1"),
        ),
        (
            "one that cannot be made does not",
            json!({"expression": "false", "message": "m", "messageExpression": "'got ' + object.spec.replicas"}),
            Some("m"),
        ),
        (
            "nor one of several lines",
            json!({"expression": "false", "message": "m", "messageExpression": "'a\\nb'"}),
            Some("m"),
        ),
        (
            "nor an empty one",
            json!({"expression": "false", "message": "m", "messageExpression": "' '"}),
            Some("m"),
        ),
        (
            "what is not there is an error",
            json!({"expression": "object.spec.nothing > 1"}),
            Some("expression 'object.spec.nothing > 1' resulted in error: no such key: nothing"),
        ),
        (
            "what does not compile is one, too",
            json!({"expression": "nobody"}),
            Some(
                "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nobody' \
                 (in container '')\n | nobody\n | ^",
            ),
        ),
        (
            "namespaces have times",
            json!({"expression": "namespaceObject.metadata.creationTimestamp < timestamp('2026-02-01T00:00:00Z')"}),
            None,
        ),
        (
            "the authorizer answers",
            json!({"expression": "authorizer.group('').resource('pods').check('get').allowed()"}),
            None,
        ),
        (
            "the user is known",
            json!({"expression": "request.userInfo.username == 'ann' && 'dev' in request.userInfo.groups"}),
            None,
        ),
    ] {
        let verdict = judge(&json!({"validations": [validation]}), &object, &Value::Null);
        assert_eq!(messages(&verdict), want.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_failure_policy_decides_about_errors() {
    let spec = |policy: &str| {
        json!({"failurePolicy": policy, "validations": [
        {"expression": "object.spec.nothing > 1"}, {"expression": "false", "message": "no", "reason": "Forbidden"}]})
    };
    let object = json!({"spec": {}});
    assert_eq!(judge(&spec("Fail"), &object, &Value::Null).failures.len(), 2);
    let ignoring = judge(&spec("Ignore"), &object, &Value::Null);
    assert_eq!(messages(&ignoring), ["no"]);
    assert_eq!(
        (ignoring.failures[0].index, ignoring.failures[0].reason.as_str()),
        (1, "Forbidden")
    );
}

#[test]
fn variables_are_evaluated_where_they_are_needed() {
    let spec = json!({
        "variables": [
            {"name": "replicas", "expression": "object.spec.replicas"},
            {"name": "odd", "expression": "variables.replicas % 2 == 1"},
            {"name": "broken", "expression": "object.spec.nothing"},
        ],
        "validations": [{"expression": "variables.replicas > 1"}, {"expression": "variables.odd"}],
    });
    for (replicas, want) in [
        (3, vec![]),
        (2, vec!["failed expression: variables.odd"]),
        (1, vec!["failed expression: variables.replicas > 1"]),
    ] {
        let verdict = judge(&spec, &json!({"spec": {"replicas": replicas}}), &Value::Null);
        assert_eq!(messages(&verdict), want, "{replicas}");
    }
    let broken = json!({"variables": [{"name": "broken", "expression": "object.spec.nothing"}],
        "validations": [{"expression": "variables.broken == 1"}]});
    let verdict = judge(&broken, &json!({"spec": {}}), &Value::Null);
    assert!(
        verdict.failures[0].message.contains("no such key: nothing"),
        "{verdict:?}"
    );
}

#[test]
fn conditions_choose_what_is_judged() {
    let failing = json!([{"expression": "false", "message": "judged"}]);
    for (name, policy, conditions, want) in [
        (
            "holds",
            "Fail",
            json!([{"name": "a", "expression": "true"}]),
            vec!["judged"],
        ),
        (
            "does not",
            "Fail",
            json!([{"name": "a", "expression": "object.a == 'c'"}]),
            vec![],
        ),
        (
            "one that does not hold decides, whatever became of the others",
            "Fail",
            json!([{"name": "a", "expression": "object.nothing"}, {"name": "b", "expression": "false"}]),
            vec![],
        ),
        (
            "an error fails",
            "Fail",
            json!([{"name": "a", "expression": "object.nothing == 1"}]),
            vec!["expression 'object.nothing == 1' resulted in error: no such key: nothing"],
        ),
        (
            "an error is ignored",
            "Ignore",
            json!([{"name": "a", "expression": "object.nothing == 1"}]),
            vec![],
        ),
    ] {
        let spec = json!({"failurePolicy": policy, "matchConditions": conditions, "validations": failing});
        let verdict = judge(&spec, &json!({"a": "b"}), &Value::Null);
        assert_eq!(messages(&verdict), want, "{name}");
    }
}

#[test]
fn parameters_are_seen() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null || object.n <= int(params.data.max)"}]});
    for (params, want) in [
        (Value::Null, 0),
        (json!({"data": {"max": "3"}}), 1),
        (json!({"data": {"max": "5"}}), 0),
    ] {
        assert_eq!(
            judge(&spec, &json!({"n": 4}), &params).failures.len(),
            want,
            "{params}"
        );
    }
}

#[test]
fn annotations_are_texts_or_nothing() {
    let spec = |policy: &str| {
        json!({"failurePolicy": policy, "auditAnnotations": [
        {"key": "name", "valueExpression": "'  ' + object.name + ' '"},
        {"key": "none", "valueExpression": "' '"},
        {"key": "broken", "valueExpression": "'a' + object.nothing"}]})
    };
    let verdict = judge(&spec("Fail"), &json!({"name": "x"}), &Value::Null);
    assert_eq!(verdict.annotations, [("name".to_owned(), "x".to_owned())]);
    assert_eq!(verdict.annotation_errors.len(), 1);
    assert!(
        judge(&spec("Ignore"), &json!({"name": "x"}), &Value::Null)
            .annotation_errors
            .is_empty()
    );
}

#[test]
fn the_budget_ends_what_costs_too_much() {
    let many: Vec<u32> = (0..3000).collect();
    let spec = json!({"validations": [{"expression": "object.l.all(a, object.l.all(b, a >= 0 && b >= 0))"}]});
    let verdict = judge(&spec, &json!({"l": many}), &Value::Null);
    assert!(verdict.failures[0].message.contains("cost budget"), "{verdict:?}");
}
