//! AuthPolicies that compile, and those that must not pass for ones that do.

use serde_json::{Value, json};

use super::*;
use crate::object::{Kind, Policy};

fn compiled(spec: &Value) -> AuthPlan {
    let object = json!({"metadata": {"name": "auth", "namespace": "team"}, "spec": spec});
    let policy = Policy::read("root", Kind::AuthPolicy, &object);
    let broken = policy.invalid.clone().map(|why| (policy.key.clone(), why));
    let effective = Effective {
        sources: vec![policy.key.clone()],
        rules: policy.rules,
        broken: broken.into_iter().collect(),
    };
    compile(&effective, &[], &Settings::default())
}

#[test]
fn a_whole_policy_is_compiled() {
    let plan = compiled(&json!({
        "patterns": {"api": {"allOf": [{"selector": "request.url_path", "operator": "matches", "value": "^/api"}]}},
        "when": [{"patternRef": "api"}],
        "rules": {
            "authentication": {
                "tokens": {"jwt": {"issuerUrl": "https://i", "ttl": 60}, "priority": 1},
                "keys": {"apiKey": {"selector": {"matchLabels": {"app": "toys"}}},
                         "credentials": {"authorizationHeader": {"prefix": "APIKEY"}},
                         "overrides": {"kind": {"value": "key"}}},
                "service-accounts": {"kubernetesTokenReview": {"audiences": ["toys"]}},
                "opaque": {"oauth2Introspection": {"endpoint": "https://i/introspect", "credentialsRef": {"name": "c"}}}},
            "metadata": {"geo": {"http": {"url": "http://geo/{source.address}", "sharedSecretRef": {"name": "s", "key": "k"}},
                                 "cache": {"key": {"selector": "source.address"}}},
                         "me": {"userInfo": {"identitySource": "tokens"}}},
            "authorization": {
                "rego": {"opa": {"rego": "allow { true }"}, "priority": 2},
                "rbac": {"kubernetesSubjectAccessReview": {"user": {"selector": "auth.identity.sub"}}},
                "cel": {"patternMatching": {"patterns": [{"predicate": "auth.identity.sub == 'alice'"}]}}},
            "response": {
                "unauthorized": {"code": 302, "headers": {"location": {"value": "https://login"}}},
                "success": {
                    "headers": {"x-user": {"plain": {"expression": "auth.identity.sub"}}},
                    "filters": {"identity": {"json": {"properties": {"userid": {"selector": "auth.identity.sub"}}}}}}},
            "callbacks": {"log": {"http": {"url": "http://log", "method": "POST"}}}}}));
    assert_eq!(plan.problems, []);
    let names = |all: Vec<&Common>| {
        all.iter()
            .map(|one| one.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let authentication = names(plan.authentication.iter().map(|one| &one.common).collect());
    assert_eq!(
        authentication, "keys opaque service-accounts tokens",
        "by priority, then by name"
    );
    assert_eq!(
        names(plan.authorization.iter().map(|one| &one.common).collect()),
        "cel rbac rego"
    );
    assert_eq!(plan.secrets().len(), 2);
    assert!(
        !plan.when.is_always() && !plan.refuses_strangers(),
        "it does not apply everywhere"
    );
    let AuthenticationMethod::ApiKey(keys) = &plan.authentication[0].method else {
        panic!("keys come first");
    };
    assert_eq!(
        keys.namespaces.as_deref(),
        Some(&["team".to_owned(), "kuadrant-system".to_owned()][..])
    );
}

#[test]
fn without_authentication_everybody_is_anonymous() {
    let plan = compiled(&json!({"rules": {"authorization": {
        "a": {"patternMatching": {"patterns": [{"predicate": "true"}]}}}}}));
    assert!(matches!(
        plan.authentication[0].method,
        AuthenticationMethod::Anonymous
    ));
    assert!(!plan.refuses_strangers());
    let keys = compiled(&json!({"rules": {"authentication": {"k": {"apiKey": {"selector": {}}}}}}));
    assert!(keys.refuses_strangers());
}

#[test]
fn what_cannot_be_enforced_is_a_problem_and_refuses() {
    let authentication = |spec: Value| json!({"rules": {"authentication": {"a": spec}}});
    let authorization = |spec: Value| json!({"rules": {"authorization": {"a": spec}}});
    let cel = "cel";
    for (spec, kind, why) in [
        (
            authentication(json!({"x509": {"selector": {}}})),
            "unsupported",
            "client certificates",
        ),
        (authentication(json!({"jwt": {}})), "invalid", "no issuer"),
        (authentication(json!({})), "invalid", "no method"),
        (
            authentication(json!({"apiKey": {"selector": 7}})),
            "invalid",
            "no selector",
        ),
        (
            authentication(json!({"anonymous": {}, "when": [{"predicate": "nope"}]})),
            cel,
            "when",
        ),
        (
            authentication(json!({"anonymous": {}, "overrides": {"a": {"expression": "1 +"}}})),
            cel,
            "override",
        ),
        (
            authentication(json!({"anonymous": {}, "credentials": {"customHeader": {"name": "a b"}}})),
            "invalid",
            "no header's name",
        ),
        (authorization(json!({"spicedb": {}})), "unsupported", "SpiceDB"),
        (
            authorization(json!({"opa": {"externalPolicy": {"url": "http://x"}}})),
            "unsupported",
            "Rego from elsewhere",
        ),
        (
            authorization(json!({"opa": {"rego": "x".repeat(70_000)}})),
            "invalid",
            "too long",
        ),
        (
            authorization(json!({"opa": {"rego": "", "version": "v9"}})),
            "invalid",
            "version",
        ),
        (
            authorization(json!({"kubernetesSubjectAccessReview": {}})),
            "invalid",
            "nobody",
        ),
        (
            authorization(json!({"patternMatching": {"patterns": [{"predicate": "("}]}})),
            cel,
            "CEL",
        ),
        (
            authorization(json!({"patternMatching": {"pattern": [{"predicate": "false"}]}})),
            "invalid",
            "a typing mistake must not open the route",
        ),
        (
            authorization(json!({"patternMatching": {"patterns": []}})),
            "invalid",
            "nothing to match",
        ),
        (
            authentication(json!({"anonymous": {}, "wen": [{"predicate": "false"}]})),
            "invalid",
            "another typing mistake",
        ),
        (
            json!({"rules": {"metadata": {"a": {"uma": {}}}}}),
            "unsupported",
            "UMA",
        ),
        (
            json!({"rules": {"metadata": {"a": {"http": {"url": "http://a", "oauth2": {}}}}}}),
            "unsupported",
            "OAuth client",
        ),
        (
            json!({"rules": {"response": {"success": {"headers": {"a": {"wristband": {}}}}}}}),
            "unsupported",
            "wristband",
        ),
        (
            json!({"rules": {"response": {"success": {"headers": {"a b": {"plain": {"value": 1}}}}}}}),
            "invalid",
            "header",
        ),
        (
            json!({"rules": {"response": {"unauthenticated": {"code": 200}}}}),
            "invalid",
            "200 is no refusal",
        ),
        (json!({"rules": {}, "defaults": {"rules": {}}}), "invalid", "both"),
        (
            json!({"rules": {}, "when": [{"predicate": "nope"}]}),
            cel,
            "the policy's when",
        ),
    ] {
        let plan = compiled(&spec);
        let found = plan.problems.first().map(|problem| match problem.what {
            Fault::Cel(_) => "cel",
            Fault::Invalid(_) => "invalid",
            Fault::Unsupported(_) => "unsupported",
        });
        assert_eq!(found, Some(kind), "{why}: {spec:.200}");
        assert!(plan.refuses_strangers(), "{why}");
    }
}

#[test]
fn what_other_policies_add_is_told_or_closes_the_route() {
    let plan = |expression: Result<&str, &str>| {
        let object = json!({"metadata": {"name": "auth", "namespace": "team"}, "spec": {"rules": {"authentication": {"a": {"anonymous": {}}}}}});
        let policy = Policy::read("root", Kind::AuthPolicy, &object);
        let effective = Effective {
            sources: vec![policy.key.clone()],
            rules: policy.rules,
            broken: vec![],
        };
        let added = Added {
            policy: policy.key,
            name: "plan".to_owned(),
            expression: expression.map(str::to_owned).map_err(str::to_owned),
        };
        compile(&effective, &[added], &Settings::default())
    };
    let told = plan(Ok("'gold'"));
    assert_eq!(
        (told.filters[0].key.as_str(), told.problems.len()),
        ("kuadrant", 0)
    );
    assert!(matches!(plan(Ok("(")).problems[0].what, Fault::Cel(_)));
    assert!(matches!(
        plan(Err("no plans")).problems[0].what,
        Fault::Invalid(_)
    ));
}
