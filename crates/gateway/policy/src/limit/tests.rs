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
                    failure: None,
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
    let note = "limit \"by user\" has a rate of -1, which counts as 0: every request that it fits is refused";
    assert_eq!(
        plan.notes,
        [(key(), note.to_owned())],
        "upstream does so, too, and says nothing"
    );
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
fn limits_that_nobody_can_fit_are_found_beforehand() {
    let auth = |filters: &Value| {
        let object = json!({
            "metadata": {"namespace": "team", "name": "who"},
            "spec": {"rules": {
                "authentication": {"all": {"anonymous": {}}}, "response": {"success": {"filters": filters}}}},
        });
        let policy = crate::object::Policy::read("root", Kind::AuthPolicy, &object);
        let effective = Effective {
            sources: vec![policy.key.clone()],
            rules: policy.rules,
            broken: vec![],
        };
        crate::auth::compile(&effective, &[], &crate::auth::Settings::default())
    };
    let (who, plans) = (
        auth(&json!({})),
        auth(&json!({"kuadrant": {"plain": {"value": "gold"}}})),
    );
    let rates = json!([{"limit": 1, "window": "1m"}]);
    let of = |name: &str, value: &str| match name {
        "counters" => json!({"rates": rates, "counters": [{"expression": value}]}),
        "selector" => {
            json!({"rates": rates, "when": [{"any": [{"selector": value, "operator": "neq", "value": ""}]}]})
        }
        _ => json!({"rates": rates, "when": [{"predicate": value}]}),
    };
    let none = None;
    for (limit, auth, lacks) in [
        (of("when", "request.method == 'GET'"), none, ""),
        (of("counters", "source.address"), none, ""),
        (
            of("when", "auth.kuadrant.plan == 'gold'"),
            none,
            "auth.kuadrant, and no AuthPolicy",
        ),
        (
            of("when", "auth.kuadrant.plan == 'gold'"),
            Some(&who),
            "auth.kuadrant, and no PlanPolicy",
        ),
        (of("when", "auth.kuadrant.plan == 'gold'"), Some(&plans), ""),
        (
            of("counters", "auth.identity.sub"),
            none,
            "auth.identity, and no AuthPolicy",
        ),
        (of("counters", "auth.identity.sub"), Some(&who), ""),
        (of("counters", "auth.mine"), none, "auth, and no AuthPolicy"),
        (
            of("selector", "auth.identity.sub"),
            none,
            "auth, and no AuthPolicy",
        ),
        (
            of("selector", "auth.kuadrant.plan"),
            Some(&who),
            "auth.kuadrant, and no PlanPolicy",
        ),
        (of("selector", "request.method"), none, ""),
    ] {
        let plan = compiled(&json!({ "l": limit }));
        assert_eq!(plan.problems, []);
        let mut gaps = Gaps::default();
        gaps.look(&plan, auth, &path());
        let told = gaps.of(&key());
        match lacks {
            "" => assert_eq!(told, [""; 0], "{limit}"),
            _ => assert!(told.len() == 1 && told[0].contains(lacks), "{limit}: {told:?}"),
        }
    }
    let plan = compiled(&json!({"l": of("counters", "auth.identity.sub")}));
    let mut gaps = Gaps::default();
    for rule in 0..5 {
        gaps.look(&plan, none, &RuleKey { rule, ..path() });
    }
    let told = gaps.of(&key());
    assert!(
        told.len() == 1 && told[0].ends_with("rule 3, and 2 more]"),
        "{told:?}"
    );
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
