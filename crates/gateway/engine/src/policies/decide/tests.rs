//! Which rules of a table are guarded.

use fairway_gateway_routes as routes;
use serde_json::{Value, json};

use super::*;
use crate::classes;

#[test]
fn rules_that_the_same_policies_guard_share_a_plan() {
    let everybody = json!({"rules": {"authentication": {"everybody": {"anonymous": {}}}}});
    let gateway = policy(Kind::AuthPolicy, everybody.clone());
    let mut of_rule = everybody;
    of_rule["targetRef"] = json!({
        "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api", "sectionName": "own",
    });
    let object = json!({"metadata": {"namespace": "n", "name": "one"}, "spec": of_rule});
    let own = Policy::read("tenant", Kind::AuthPolicy, &object);
    let backends = json!([{"name": "backend", "port": 8080}]);
    let rules: Vec<Value> = ["a", "b", "own"]
        .map(|name| {
            let path = json!({"path": {"value": format!("/{name}")}});
            json!({"name": name, "matches": [path], "backendRefs": backends})
        })
        .into();
    let (observed, table) = built(routes::Kind::HttpRoute, &json!(rules));
    let decision = decide(&[&gateway, &own], &observed, &ways(&table));
    let plans: Vec<_> = (decision.plans.values())
        .filter_map(|plan| plan.auth.clone())
        .collect();
    assert_eq!(plans.len(), 3);
    assert!(Arc::ptr_eq(&plans[0], &plans[1]), "the Gateway's alone");
    assert!(!Arc::ptr_eq(&plans[0], &plans[2]), "the rule has its own");
}

/// A Gateway of a tenant, and what is served of it with one route.
pub(in crate::policies) fn built(kind: routes::Kind, rules: &Value) -> (Observed, Table) {
    let mut observed = Observed::default();
    let gateway = json!({
        "metadata": {"namespace": "n", "name": "web"},
        "spec": {"gatewayClassName": "fairway", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    });
    observed.put("tenant", routes::Kind::Gateway, &gateway);
    let route = json!({
        "metadata": {"namespace": "n", "name": "api"},
        "spec": {"parentRefs": [{"name": "web"}], "rules": rules},
    });
    observed.put("tenant", kind, &route);
    let settings = routes::Settings {
        controllers: classes::CONTROLLERS.iter().map(|&name| name.to_owned()).collect(),
        classes: classes::known(),
        ..routes::Settings::default()
    };
    let table = routes::build(&observed, &settings).table;
    (observed, table)
}

fn policy(kind: Kind, mut spec: Value) -> Policy {
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"});
    let object = json!({"metadata": {"namespace": "n", "name": "all"}, "spec": spec});
    Policy::read("tenant", kind, &object)
}

#[test]
fn policies_of_a_gateway_guard_routes_of_every_kind() {
    let auth = policy(
        Kind::AuthPolicy,
        json!({"rules": {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"app": "api"}}}}}}}),
    );
    let limits = policy(
        Kind::RateLimitPolicy,
        json!({"limits": {"few": {"rates": [{"limit": 1, "window": "1m"}]}}}),
    );
    for (kind, rules) in [
        (
            routes::Kind::HttpRoute,
            json!([{"backendRefs": [{"name": "backend", "port": 8080}]}]),
        ),
        (
            routes::Kind::GrpcRoute,
            json!([{
                "matches": [{"method": {"service": "shop.Orders", "method": "List"}}],
                "backendRefs": [{"name": "backend", "port": 8080}],
            }]),
        ),
    ] {
        let (observed, table) = built(kind, &rules);
        let ways = ways(&table);
        assert_eq!(ways.len(), 1, "{} is served", kind.name());
        let decision = decide(&[&auth, &limits], &observed, &ways);
        let (rule, plan) = decision.plans.first_key_value().unwrap();
        assert_eq!(rule.kind, kind.name());
        let guarded = plan.auth.as_ref().is_some_and(|plan| plan.refuses_strangers());
        assert!(guarded && plan.limits.is_some(), "{}", kind.name());
        for policy in [&auth, &limits] {
            let standing = &decision.standing[&policy.key];
            let affects = matches!(standing, Standing::Attached { affects, .. } if affects[..] == *std::slice::from_ref(rule));
            assert!(affects, "{standing:?}");
        }
    }
}
