//! The controllers on the real API server, in one process and with their own rights, and a data plane that remembers what it was
//! given.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod plane;
mod portal;
mod world;

use fairway_gateway_engine::DataPlane as _;
use serde_json::json;
use world::World;

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
const AUTH: &str = "/apis/kuadrant.io/v1/namespaces/default/authpolicies";

fn gateway(class: &str) -> serde_json::Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "web"},
        "spec": {"gatewayClassName": class, "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    })
}

fn route() -> serde_json::Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "api"},
        "spec": {
            "parentRefs": [{"name": "web"}], "hostnames": ["api.apps.fairway.localhost"],
            "rules": [{"backendRefs": [{"name": "backend", "port": 8080}]}],
        },
    })
}

fn policy() -> serde_json::Value {
    json!({
        "apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy", "metadata": {"name": "api"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"},
            "rules": {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"app": "api"}}}}}},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_served_before_there_is_something() {
    let world = World::start().await;
    world
        .until("the classes", async || {
            let path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/istio";
            let class = world.api.get(path).await.unwrap()?;
            world::has(&class, "Accepted", "True").then_some(())
        })
        .await;
    assert!(world.plane.table().doors.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_and_its_route_are_served_and_told() {
    let world = World::start().await;
    // As for somebody who may not have port 80.
    world.plane.needs_privilege(80);
    world.create(GATEWAYS, &gateway("istio")).await;
    world.create(ROUTES, &route()).await;
    let gateway = world
        .until_condition(&format!("{GATEWAYS}/web"), "Programmed", "True")
        .await;
    assert_eq!(gateway["status"]["addresses"][0]["value"], "127.0.0.1");
    let doors: Vec<String> = (world.plane.table().doors.keys())
        .map(ToString::to_string)
        .collect();
    assert_eq!(doors, ["127.0.0.1:8080"], "the port that stands in");
    let route = world
        .until("the route to be accepted", async || {
            let route = world.api.get(&format!("{ROUTES}/api")).await.unwrap()?;
            let parent = route["status"]["parents"][0].clone();
            world::has(&json!({"status": parent}), "Accepted", "True").then_some(route)
        })
        .await;
    let parent = &route["status"]["parents"][0];
    assert_eq!(parent["controllerName"], "fairway.dev/gateway-controller");
    // There is no such Service.
    assert!(
        world::has(&json!({"status": parent}), "ResolvedRefs", "False"),
        "{parent}"
    );
    let service = world
        .until("the Gateway's Service", async || {
            world
                .api
                .get("/api/v1/namespaces/default/services/web-istio")
                .await
                .unwrap()
        })
        .await;
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8080);
    assert_eq!(service["metadata"]["ownerReferences"][0]["name"], "web");
    world
        .until("its slice", async || {
            let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-istio";
            world.api.get(path).await.unwrap()
        })
        .await;
    // What is gone is no longer served.
    world.api.delete(&format!("{GATEWAYS}/web")).await.unwrap();
    world
        .until("the end", async || {
            world.plane.table().doors.is_empty().then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_of_somebody_else_is_left_alone() {
    let world = World::start().await;
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "theirs"},
        "spec": {"controllerName": "example.com/theirs"},
    });
    world
        .create("/apis/gateway.networking.k8s.io/v1/gatewayclasses", &class)
        .await;
    world.create(GATEWAYS, &gateway("theirs")).await;
    let mut own = gateway("fairway");
    own["metadata"]["name"] = json!("ours");
    world.create(GATEWAYS, &own).await;
    world
        .until_condition(&format!("{GATEWAYS}/ours"), "Programmed", "True")
        .await;
    let theirs = world.api.get(&format!("{GATEWAYS}/web")).await.unwrap().unwrap();
    for status in ["True", "False"] {
        assert!(!world::has(&theirs, "Accepted", status), "{theirs}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_enforced_when_a_probe_was_refused() {
    let world = World::start().await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    world.create(ROUTES, &route()).await;
    world.plane.lie(true);
    world.create(AUTH, &policy()).await;
    let path = format!("{AUTH}/api");
    // The data plane has taken it over and lets everybody pass all the same.
    let told = world.until_condition(&path, "Enforced", "False").await;
    assert!(world::has(&told, "Accepted", "True"), "{told}");
    assert_eq!(world.plane.guarded(), 1);
    world.plane.lie(false);
    // Any change leads to another look.
    let limits = json!({"metadata": {"labels": {"seen": "again"}}});
    world.api.merge(&path, &limits).await.unwrap();
    world.until_condition(&path, "Enforced", "True").await;
    // A policy that cannot be understood closes.
    let broken = json!({"spec": {"rules": {"authorization": {"who": {"patternMatching": {"patterns": [{"predicate": "1 +"}]}}}}}});
    world.api.merge(&path, &broken).await.unwrap();
    let told = world.until_condition(&path, "Enforced", "False").await;
    let reason = told["status"]["conditions"].as_array().unwrap().iter();
    let reason: Vec<&str> = reason.filter_map(|it| it["reason"].as_str()).collect();
    assert!(reason.contains(&"InvalidCelExpression"), "{told}");
    assert!(world.plane.refuses_all().await, "everything is refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_without_an_answer_stop_nobody() {
    let world = World::start().await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    world.create(ROUTES, &route()).await;
    world.plane.stall(true);
    world.create(AUTH, &policy()).await;
    world
        .until("the guard", async || (world.plane.guarded() == 1).then_some(()))
        .await;
    // While the probe waits, others are served.
    let mut other = gateway("fairway");
    other["metadata"]["name"] = json!("other");
    other["spec"]["listeners"][0]["port"] = json!(81);
    world.create(GATEWAYS, &other).await;
    world
        .until_condition(&format!("{GATEWAYS}/other"), "Programmed", "True")
        .await;
    let path = format!("{AUTH}/api");
    world.until_condition(&path, "Enforced", "False").await;
    // Until nothing changes any more. It is asked again all the same.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.plane.stall(false);
    let begun = std::time::Instant::now();
    world.until_condition(&path, "Enforced", "True").await;
    let took = begun.elapsed();
    assert!(
        took.as_secs() < 30,
        "only the conductor's tick led to it: {took:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_names_are_is_written_down() {
    let world = World::start().await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    let path = "/api/v1/namespaces/kube-system/configmaps/fairway-gateway-claims-root-0";
    let written = world
        .until("the claims", async || world.api.get(path).await.unwrap())
        .await;
    assert_eq!(written["data"]["claims"], "127.0.0.1:80 http", "{written}");
    world.api.delete(&format!("{GATEWAYS}/web")).await.unwrap();
    world
        .until("their end", async || match world.api.get(path).await.unwrap() {
            None => Some(()),
            Some(_) => None,
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_needs_a_place_for_its_limits() {
    let world = World::start().await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    world.create(ROUTES, &route()).await;
    let target = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"});
    let theirs = json!({
        "apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy", "metadata": {"name": "api"},
        "spec": {"targetRef": target, "limits": {"few": {"rates": [{"limit": 1, "window": "1m"}]}}},
    });
    let limits = "/apis/kuadrant.io/v1/namespaces/default/ratelimitpolicies";
    world.create(limits, &theirs).await;
    world
        .until_condition(&format!("{limits}/api"), "Enforced", "True")
        .await;
    let plan = json!({
        "apiVersion": "extensions.kuadrant.io/v1alpha1", "kind": "PlanPolicy", "metadata": {"name": "api"},
        "spec": {"targetRef": target, "plans": [{"tier": "gold", "predicate": "true", "limits": {"daily": 1}}]},
    });
    let plans = "/apis/extensions.kuadrant.io/v1alpha1/namespaces/default/planpolicies";
    world.create(plans, &plan).await;
    let path = format!("{plans}/api");
    let told = world.until_condition(&path, "Accepted", "False").await;
    assert!(!world::has(&told, "Enforced", "True"), "{told}");
    // When the other one is gone there is room, and nobody yet who says which plan somebody has.
    world.api.delete(&format!("{limits}/api")).await.unwrap();
    let told = world
        .until("the PlanPolicy to miss an AuthPolicy", async || {
            let plan = world.api.get(&path).await.unwrap()?;
            let told = plan["status"]["conditions"].to_string();
            told.contains("auth.kuadrant, and no AuthPolicy guards")
                .then_some(plan)
        })
        .await;
    assert!(world::has(&told, "Accepted", "False"), "{told}");
    assert!(!world::has(&told, "Enforced", "True"), "{told}");
    world
        .until_condition(&format!("{limits}/api"), "Enforced", "False")
        .await;
    world.create(AUTH, &policy()).await;
    world.until_condition(&path, "Enforced", "True").await;
    // What is wrong with the limits is wrong with the plan.
    let negative =
        json!({"spec": {"plans": [{"tier": "gold", "predicate": "true", "limits": {"daily": -1}}]}});
    world.api.merge(&path, &negative).await.unwrap();
    world
        .until("the PlanPolicy to tell its trouble", async || {
            let plan = world.api.get(&path).await.unwrap()?;
            let told = plan["status"]["conditions"].to_string();
            told.contains("PlanPolicy has been successfully enforced, but: limit")
                .then_some(())
        })
        .await;
    let broken = json!({"spec": {"plans": [{"tier": "gold", "predicate": "nope", "limits": {"daily": 1}}]}});
    world.api.merge(&path, &broken).await.unwrap();
    let told = world.until_condition(&path, "Accepted", "False").await;
    let told = told["status"]["conditions"].to_string();
    assert!(
        told.contains("requests are refused until this is mended"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_without_rules_is_not_enforced() {
    let world = World::start().await;
    world.create(GATEWAYS, &gateway("fairway")).await;
    world.create(ROUTES, &route()).await;
    let mut empty = policy();
    empty["spec"]["rules"] = json!({});
    world.create(AUTH, &empty).await;
    let path = format!("{AUTH}/api");
    let told = world.until_condition(&path, "Enforced", "False").await;
    assert!(world::has(&told, "Accepted", "True"), "{told}");
}
