//! What the host supplies: schemas, documents that do not match them, and the authorizer.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::{Arc, Mutex};

use fairway_text_cel::{
    AccessCheck, AccessTarget, Activation, Authorizer, Decision, DeclType, Env, Error, Type, Value, eval,
};
use serde_json::{Value as Json, json};

fn check(schema: &Json, root: bool, value: &Json, expr: &str) -> Result<bool, String> {
    let decl = DeclType::from_json_schema(schema, root).ok_or("not visible")?;
    let env = Env::new().with_schema_variable("self", &decl);
    let program = env
        .compile_expecting(expr, &[Type::Bool])
        .map_err(|errors| errors[0].message.clone())?;
    let activation = Activation::new().bind_schema_value("self", value, &decl);
    let result = eval(&program, &activation, &mut 1_000_000).map_err(|error| error.to_string())?;
    result.as_bool().ok_or_else(|| "no bool".to_owned())
}

#[test]
fn resource_roots_and_embedded_resources_show_their_type_and_name() {
    let spec = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                         "x-kubernetes-preserve-unknown-fields": true}}}}});
    let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "labels": {}},
        "spec": {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {}}}});
    for expr in [
        "self.kind == 'X' && self.metadata.name == 'n' && self.apiVersion == 'v1'",
        "!has(self.metadata.generateName)",
        "self.spec.template.kind == 'Pod' && self.spec.template.metadata.generateName == 'p-'",
    ] {
        assert_eq!(check(&spec, true, &object, expr), Ok(true), "{expr}");
    }
    for (expr, why) in [
        ("has(self.metadata.labels)", "undefined field 'labels'"),
        ("has(self.spec.template.spec)", "undefined field 'spec'"),
        ("self.metadata", "must evaluate to bool"),
    ] {
        assert_eq!(check(&spec, true, &object, expr), Err(why.to_owned()), "{expr}");
    }
    assert_eq!(
        check(&spec, false, &object, "self.kind == 'X'"),
        Err("undefined field 'kind'".to_owned())
    );
}

#[test]
fn schemas_without_a_type_are_not_visible() {
    for schema in [
        json!({}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}),
        json!({"type": "object", "additionalProperties": {"type": "array"}}),
        json!(true),
    ] {
        assert!(DeclType::from_json_schema(&schema, false).is_none(), "{schema}");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(DeclType::from_json_schema(&deep, false).is_some());
}

#[test]
fn data_that_does_not_match_its_schema_fails_where_it_is_read() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "d": {"type": "string", "format": "duration"}, "o": {"type": "string", "nullable": true}}});
    let value = json!({"n": "text", "s": 1, "l": [1, null], "m": {"k": null}, "d": "soon", "o": null});
    for (expr, why) in [
        ("self.n == 1", "invalid data, expected int, got string"),
        ("self.s == ''", "invalid data, expected string, got int64"),
        (
            "self.l.all(e, e == 1)",
            "invalid data, got null for schema with nullable=false",
        ),
        (
            "self.m.k == ''",
            "invalid data, got null for schema with nullable=false",
        ),
        ("self.d == duration('1s')", "Invalid duration soon"),
        ("self.nope == 1", "undefined field 'nope'"),
    ] {
        assert_eq!(check(&schema, false, &value, expr), Err(why.to_owned()), "{expr}");
    }
    assert_eq!(
        check(&schema, false, &value, "!has(self.o) && self.l[0] == 1"),
        Ok(true)
    );
}

#[test]
fn optional_old_self_is_absent_on_creation() {
    let decl = DeclType::from_json_schema(&json!({"type": "integer"}), false).unwrap();
    let env = Env::new()
        .with_schema_variable("self", &decl)
        .with_optional_schema_variable("oldSelf", &decl);
    let program = env
        .compile("!oldSelf.hasValue() || oldSelf.value() < self")
        .unwrap();
    assert!(program.uses_variable("oldSelf") && !program.uses_variable("other"));
    let (new, old) = (json!(2), json!(3));
    for (old, expected) in [(None, true), (Some(&old), false)] {
        let activation = Activation::new()
            .bind_schema_value("self", &new, &decl)
            .bind_optional("oldSelf", old, &decl);
        assert_eq!(
            eval(&program, &activation, &mut 100).unwrap().as_bool(),
            Some(expected)
        );
    }
}

#[derive(Default)]
struct Recorder {
    checks: Mutex<Vec<AccessCheck>>,
}

impl Authorizer for Recorder {
    fn authorize(&self, check: &AccessCheck) -> Decision {
        self.checks.lock().unwrap().push(check.clone());
        let error = (&*check.verb == "explode").then(|| "boom".to_owned());
        Decision {
            allowed: &*check.verb == "get",
            reason: "because".to_owned(),
            error,
        }
    }
}

#[test]
fn the_authorizer_is_asked_what_the_expression_says() {
    let recorder = Arc::new(Recorder::default());
    let env = Env::new()
        .with_variable("authorizer", Type::authorizer())
        .with_variable("authorizer.requestResource", Type::resource_check());
    let run = |expr: &str| {
        let program = env.compile(expr).map_err(|errors| errors[0].message.clone())?;
        let request = Value::resource_check(recorder.clone(), Default::default());
        let activation = Activation::new()
            .bind("authorizer", Value::authorizer(recorder.clone()))
            .bind("authorizer.requestResource", request);
        let mut budget = 1_000_000;
        let value = eval(&program, &activation, &mut budget).map_err(|error| error.to_string())?;
        value.as_bool().ok_or_else(|| format!("{value:?}"))
    };
    for (expr, expected) in [
        ("authorizer.path('/healthz').check('get').allowed()", Ok(true)),
        (
            "authorizer.path(' ').check('get').allowed()",
            Err("path must not be empty".to_owned()),
        ),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            Err("resource must not be empty".to_owned()),
        ),
        (
            "authorizer.group('apps').resource('deployments').check('list').allowed()",
            Ok(false),
        ),
        (
            "authorizer.group('apps').resource('deployments').check('list').reason() == 'because'",
            Ok(true),
        ),
        (
            "authorizer.group('').resource('x').check('explode').errored()",
            Ok(true),
        ),
        (
            "authorizer.group('').resource('x').check('explode').error() == 'boom'",
            Ok(true),
        ),
        (
            "authorizer.group('').resource('x').check('get').error() == ''",
            Ok(true),
        ),
        (
            "authorizer.serviceAccount('a b', 'x').path('/').check('get').allowed()",
            Err("Invalid service account namespace".to_owned()),
        ),
        ("authorizer.requestResource.check('get').allowed()", Ok(true)),
        ("authorizer == authorizer", Ok(true)),
    ] {
        assert_eq!(run(expr), expected, "{expr}");
    }
    recorder.checks.lock().unwrap().clear();
    let long = "authorizer.serviceAccount('ns', 'sa').group('g').resource('r').subresource('s').namespace('n').name('m')\
                .fieldSelector('a=b').labelSelector('c').check('get').allowed()";
    assert_eq!(run(long), Ok(true));
    let checks = recorder.checks.lock().unwrap();
    let AccessTarget::Resource(attributes) = &checks[0].target else {
        panic!("{:?}", checks[0])
    };
    let found = [
        &attributes.group,
        &attributes.resource,
        &attributes.subresource,
        &attributes.namespace,
        &attributes.name,
        &attributes.field_selector,
        &attributes.label_selector,
    ];
    assert_eq!(found.map(|text| &**text), ["g", "r", "s", "n", "m", "a=b", "c"]);
    assert_eq!(checks[0].service_account, Some(("ns".into(), "sa".into())));
}

#[test]
fn two_authorization_checks_fit_a_call_and_three_do_not() {
    let env = Env::new().with_variable("authorizer", Type::authorizer());
    let one = "authorizer.path('/').check('get').allowed()";
    for (count, fits) in [(2, true), (3, false)] {
        let program = env.compile(&vec![one; count].join(" && ")).unwrap();
        let activation =
            Activation::new().bind("authorizer", Value::authorizer(Arc::new(Recorder::default())));
        let result = eval(&program, &activation, &mut 1_000_000);
        assert_eq!(matches!(result, Err(Error::CostExceeded)), !fits, "{count}");
    }
}

#[test]
fn programs_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let program = Env::new().compile("[1, 2].all(x, x > 0)").unwrap();
    shared(&program);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let result = eval(&program, &Activation::new(), &mut 100).unwrap();
                assert_eq!(result.as_bool(), Some(true));
            });
        }
    });
}
