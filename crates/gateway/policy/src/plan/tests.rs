//! Tiers.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_gateway_guard::Asked;
use fairway_gateway_routes::table::ListenerKey;
use http::{HeaderMap, Method, Uri, Version};
use serde_json::json;

use super::*;
use crate::expression::{Cel, Facts};

fn object() -> Value {
    json!({
    "metadata": {"name": "plans", "namespace": "team", "uid": "u"},
    "spec": {
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "shop"},
        "plans": [
            {"tier": "gold", "predicate": "auth.identity.tier == \"gold\"\n || auth.identity.vip",
             "limits": {"daily": 100, "monthly": 1000, "custom": [{"limit": 5, "window": "1m"}]}},
            {"tier": "basic \"x\"", "predicate": "auth.identity.tier == 'basic'", "limits": {"daily": 1}},
        ]}})
}

#[test]
fn plans_become_limits() {
    let made = rate_limit_policy(&object()).unwrap();
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
    let gold = &made["spec"]["limits"]["gold"];
    assert_eq!(gold["when"][0]["predicate"], "auth.kuadrant.plan == \"gold\"");
    assert_eq!(
        gold["rates"],
        json!([{"limit": 100, "window": "24h"}, {"limit": 1000, "window": "730h"}, {"limit": 5, "window": "1m"}])
    );
    let policy = Policy::read("root", Kind::RateLimitPolicy, &made);
    assert_eq!((policy.rules.len(), policy.invalid), (2, None));
    let mut twice = object();
    twice["spec"]["plans"][1]["tier"] = json!("gold");
    assert!(rate_limit_policy(&twice).is_err());
    assert!(rate_limit_policy(&json!({"spec": {}})).is_err());
}

#[test]
fn a_plan_is_as_enforced_as_its_limits() {
    let limits = |is_true: bool, message: &str| {
        let enforced = Condition {
            r#type: "Enforced",
            is_true,
            reason: "Any",
            message: message.to_owned(),
        };
        vec![crate::status::accepted(Kind::RateLimitPolicy), enforced]
    };
    for (problem, limits, expected) in [
        (
            None,
            limits(true, "RateLimitPolicy has been successfully enforced"),
            "Enforced True PlanPolicy has been successfully enforced",
        ),
        (
            None,
            limits(true, "RateLimitPolicy has been partially enforced, but: it leaks"),
            "Enforced True PlanPolicy has been partially enforced, but: it leaks",
        ),
        (
            None,
            limits(false, "no AuthPolicy"),
            "Accepted False PlanPolicy has encountered some issues: RateLimitPolicy plans is not enforced: no AuthPolicy",
        ),
        (
            None,
            vec![],
            "Accepted False PlanPolicy has encountered some issues: RateLimitPolicy plans is not enforced",
        ),
        (
            Some("no plans"),
            limits(true, "RateLimitPolicy has been successfully enforced"),
            "Accepted False PlanPolicy has encountered some issues: no plans",
        ),
    ] {
        let told = conditions(problem, &limits, "plans");
        let last = told.last().unwrap();
        let found = format!("{} {} {}", last.r#type, last.status(), last.message);
        assert_eq!(found, expected);
    }
}

#[test]
fn the_most_specific_policy_tells_the_plan() {
    let path = RuleKey {
        listener: ListenerKey {
            workspace: "root".into(),
            namespace: "team".into(),
            gateway: "gw".into(),
            listener: "web".into(),
        },
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: "shop".into(),
        rule: 0,
        section: None,
    };
    let route = Policy::read("root", Kind::PlanPolicy, &object());
    let mut above = object();
    above["metadata"]["name"] = json!("above");
    above["spec"]["targetRef"] =
        json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"});
    above["spec"]["plans"] = json!([]);
    let above = Policy::read("root", Kind::PlanPolicy, &above);
    let mut twice = object();
    twice["spec"]["plans"][1]["tier"] = json!("gold");
    let twice = Policy::read("root", Kind::PlanPolicy, &twice);
    assert_eq!(data(&[above.clone(), route.clone()], &path)[0].policy, route.key);
    assert_eq!(
        data(std::slice::from_ref(&above), &path)[0].expression.as_deref(),
        Ok("dyn(null)")
    );
    assert!(
        data(&[twice, above], &path)[0].expression.is_err(),
        "and then nothing may pass"
    );
    assert_eq!(data(&[], &path), []);
}

#[test]
fn somebody_has_the_first_tier_that_fits() {
    let cel = Cel::expression(&expression(&object()["spec"]).unwrap()).unwrap();
    let (uri, headers) = (Uri::from_static("/"), HeaderMap::new());
    let asked = Asked {
        method: &Method::GET,
        uri: &uri,
        host: "a",
        scheme: "http",
        version: Version::HTTP_11,
        headers: &headers,
        client: IpAddr::from([127, 0, 0, 1]),
        client_port: 1,
        door: ([192, 0, 2, 1], 443).into(),
        id: "",
        now: 0,
        probe: false,
    };
    for (identity, tier) in [
        (json!({"tier": "gold", "vip": false}), json!("gold")),
        (json!({"tier": "basic", "vip": true}), json!("gold")),
        (json!({"tier": "basic", "vip": false}), json!("basic \"x\"")),
        (json!({"tier": "none", "vip": false}), Value::Null),
    ] {
        let mut facts = Facts::new(&asked);
        facts.set_identity(Arc::new(identity.clone()));
        assert_eq!(cel.value(&facts), Ok(tier), "{identity}");
    }
}
