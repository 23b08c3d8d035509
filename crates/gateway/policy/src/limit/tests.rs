//! Limits as policies write them.

use std::collections::BTreeMap;

use fairway_gateway_routes::table::ListenerKey;
use serde_json::{Value, json};

use super::*;
use crate::object::Kind;

fn path() -> RuleKey {
    RuleKey {
        listener: ListenerKey {
            workspace: "root".into(),
            namespace: "infra".into(),
            gateway: "gw".into(),
            listener: "web".into(),
        },
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: "shop".into(),
        rule: 0,
        section: None,
    }
}

fn key() -> PolicyKey {
    PolicyKey {
        workspace: "root".into(),
        kind: Kind::RateLimitPolicy,
        namespace: "team".into(),
        name: "limits".into(),
    }
}

fn compiled(rules: &Value) -> LimitPlan {
    let rules: BTreeMap<String, Rule> = rules
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, spec)| {
            (
                name.clone(),
                Rule {
                    spec: spec.clone(),
                    source: key(),
                },
            )
        })
        .collect();
    compile(
        &Effective {
            rules,
            sources: vec![key()],
            broken: vec![],
        },
        &path(),
    )
}

#[test]
fn limits_are_compiled() {
    let plan = compiled(&json!({
        LIMITS_WHEN: [{"predicate": "request.method == 'GET'"}],
        "by user": {
            "rates": [{"limit": 5, "window": "10s"}, {"limit": -1, "window": "1h30m"}],
            "counters": [{"expression": "auth.identity.sub"}],
            "when": [{"predicate": "request.host == 'a'"}]}}));
    assert_eq!(plan.problems, []);
    let limit = &plan.limits[0];
    assert_eq!(limit.counters.len(), 1);
    let windows: Vec<(u64, u64)> = limit
        .rates
        .iter()
        .map(|rate| (rate.limit, rate.window.as_secs()))
        .collect();
    assert_eq!(windows, [(5, 10), (0, 5400)], "what is negative allows nothing");
    assert!(
        matches!(&limit.when, Predicate::All(both) if both.len() == 2),
        "the policy's and the limit's own"
    );
    assert!(
        limit.identifier.starts_with("limit.by_user__"),
        "{}",
        limit.identifier
    );
    assert_eq!(limit.scope, format!("root|team/shop|{}", limit.identifier));
}

#[test]
fn what_cannot_be_counted_is_a_problem() {
    for (spec, why) in [
        (json!({"rates": [{"limit": 1, "window": "10"}]}), "no unit"),
        (
            json!({"rates": [{"limit": 1, "window": "500ms"}]}),
            "less than a second",
        ),
        (json!({"rates": [{"limit": 1, "window": ""}]}), "no window"),
        (
            json!({"rates": [{"limit": 1, "window": "1h1m1s1ms1h"}]}),
            "five parts",
        ),
        (
            json!({"rates": [{"limit": 1, "window": "123456s"}]}),
            "six digits",
        ),
        (json!({"rates": [{"limit": 1, "window": "-1s"}]}), "a sign"),
        (json!({"rates": [{"window": "1s"}]}), "no limit"),
        (
            json!({"rates": vec![json!({"limit": 1, "window": "1s"}); 17]}),
            "too many",
        ),
        (
            json!({"when": [{"predicate": "nope"}]}),
            "CEL that does not compile",
        ),
        (
            json!({"counters": [{"expression": "("}]}),
            "CEL that does not compile",
        ),
        (json!("x"), "no object"),
    ] {
        let plan = compiled(&json!({ "l": spec }));
        assert_eq!((plan.problems.len(), plan.limits.len()), (1, 0), "{why}: {spec}");
        let is_cel = matches!(plan.problems[0].what, Fault::Cel(_));
        assert_eq!(is_cel, why.starts_with("CEL"), "{why}");
    }
}
