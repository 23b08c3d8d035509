//! Many objects, and objects that are made to hurt.

use serde_json::{Value, json};

use super::read;
use crate::build::build;
use crate::lookup::{Matcher, Request};
use crate::observed::{Kind, Observed};
use crate::settings::Settings;
use crate::status::Says;
use crate::table::Door;

const GATEWAY: &str = "
kind: Settings
---
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, port: 80, protocol: HTTP}]
";

fn route(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["parentRefs"] = json!([{"name": "gw"}]);
    json!({"metadata": {"name": name, "namespace": "infra", "generation": 1, "creationTimestamp": "2026-01-02T00:00:00Z"}, "spec": spec})
}

/// The first condition of the first parent: its status, reason and message.
fn accepted(
    observed: &Observed,
    settings: &Settings,
    kind: Kind,
    name: &str,
) -> (bool, &'static str, String) {
    let built = build(observed, settings);
    let status = built
        .statuses
        .iter()
        .find(|status| status.kind == kind && status.name.name == name)
        .unwrap();
    let Says::Parents(parents) = &status.says else {
        panic!("{status:?}")
    };
    let condition = &parents.first().unwrap().conditions[0];
    (condition.status, condition.reason, condition.message.clone())
}

#[test]
fn ten_thousand_routes_are_built_and_found() {
    let (mut observed, settings) = read(GATEWAY);
    for at in 0..10_000 {
        let spec = json!({"hostnames": [format!("h{at}.example.com")], "rules": [{"matches": [{"path": {"value": format!("/p{at}")}}]}]});
        observed.put("one", Kind::HttpRoute, &route(&format!("r{at}"), spec));
    }
    let built = build(&observed, &settings);
    let Some(Door::Http(names)) = built.table.doors.get(&"127.0.0.1:80".parse().unwrap()) else {
        panic!("no door")
    };
    let listener = names.candidates("h7.example.com").next().unwrap();
    let matcher = Matcher::new(listener);
    assert_eq!(matcher.len(), 10_000);
    let (method, headers) = (http::Method::GET, http::HeaderMap::new());
    let asked = |host: &'static str, path: &str| {
        matcher
            .find(host, &Request::new(&method, path, None, &headers))
            .map(|found| found.entry.rule.key.name.clone())
    };
    assert_eq!(asked("h9999.example.com", "/p9999/x").as_deref(), Some("r9999"));
    assert_eq!(asked("h9999.example.com", "/p1"), None, "of another host");
}

#[test]
fn rules_that_are_made_to_hurt() {
    let path =
        |kind: &str, value: &str| json!({"rules": [{"matches": [{"path": {"type": kind, "value": value}}]}]});
    let filter = |filter: Value| json!({"rules": [{"filters": [filter]}]});
    let huge = "a".repeat(5000);
    let cases = [
        (
            path("RegularExpression", "(a{1000}){1000}"),
            "UnsupportedValue",
            "an expression that compiles to gigabytes",
        ),
        (
            path("RegularExpression", &huge),
            "UnsupportedValue",
            "an expression that is too long",
        ),
        (
            path("RegularExpression", "a)|(b"),
            "UnsupportedValue",
            "one that leaves the brackets around it",
        ),
        (
            path("RegularExpression", "(?<!a)b"),
            "UnsupportedValue",
            "one that needs backtracking",
        ),
        (
            path("Exact", "/a/../b"),
            "UnsupportedValue",
            "a path that others would shorten",
        ),
        (path("Exact", "a"), "UnsupportedValue", "no path"),
        (
            path("PathPrefix", "/a%2fb"),
            "UnsupportedValue",
            "an encoded slash",
        ),
        (
            path("Glob", "/a*"),
            "UnsupportedValue",
            "a type that nobody knows",
        ),
        (
            json!({"rules": [{"matches": "all"}]}),
            "UnsupportedValue",
            "a text for a list",
        ),
        (json!({"rules": "none"}), "UnsupportedValue", "a text for rules"),
        (
            json!({"hostnames": ["*"]}),
            "UnsupportedValue",
            "a bare star, which must not become any",
        ),
        (
            json!({"hostnames": ["a.*.com", "b.com"]}),
            "UnsupportedValue",
            "a star in the middle",
        ),
        (
            json!({"hostnames": [7]}),
            "UnsupportedValue",
            "a number for a name",
        ),
        (
            json!({"rules": [{"timeouts": {"request": "10"}}]}),
            "UnsupportedValue",
            "a duration without a unit",
        ),
        (
            json!({"rules": [{"timeouts": {"request": "1s", "backendRequest": "2s"}}]}),
            "UnsupportedValue",
            "a part longer than the whole",
        ),
        (
            json!({"rules": [{"retry": {"attempts": 1_000_000}}]}),
            "UnsupportedValue",
            "a million attempts",
        ),
        (
            filter(
                json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x", "value": "a\r\nb: c"}]}}),
            ),
            "UnsupportedValue",
            "a value with a line break",
        ),
        (
            filter(
                json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["Content-Length"]}}),
            ),
            "UnsupportedValue",
            "a header that frames the request",
        ),
        (
            filter(json!({"type": "RequestRedirect", "requestRedirect": {"hostname": "*.com"}})),
            "UnsupportedValue",
            "a redirection to many hosts",
        ),
        (
            filter(json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "javascript"}})),
            "UnsupportedValue",
            "a redirection to a script",
        ),
        (
            filter(
                json!({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 1}, "fraction": {"numerator": 1, "denominator": 0}}}),
            ),
            "UnsupportedValue",
            "a division by zero",
        ),
        (
            json!({"rules": [{"filters": [
                {"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}},
                {"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}},
            ]}]}),
            "IncompatibleFilters",
            "a redirection and a rewrite",
        ),
    ];
    for (spec, reason, why) in cases {
        let (mut observed, settings) = read(GATEWAY);
        observed.put("one", Kind::HttpRoute, &route("r", spec));
        let (status, got, message) = accepted(&observed, &settings, Kind::HttpRoute, "r");
        assert_eq!((status, got), (false, reason), "{why}: {message}");
        assert!(!message.is_empty(), "{why}");
        assert!(
            message.len() < 6000,
            "{why}: a message of {} characters",
            message.len()
        );
    }
}

/// Whatever an object is, reading it and building with it ends.
#[test]
fn objects_that_are_none() {
    let (mut observed, settings) = read(GATEWAY);
    let shapes = [
        json!(null),
        json!(7),
        json!({}),
        json!({"metadata": 7, "spec": []}),
        json!({"metadata": {"name": "x", "namespace": "infra"}, "spec": null}),
        json!({"metadata": {"name": "gw", "namespace": "infra"}, "spec": {"gatewayClassName": "fairway", "listeners": [{"port": 70_000}]}}),
        json!({"metadata": {"name": "y", "namespace": "infra"}, "spec": {"parentRefs": [{"name": "gw"}], "rules": [null, 3, {}]}}),
        // A list where a mapping belongs reads as its fields in order.
        json!({"metadata": {"name": "y", "namespace": "infra"}, "spec": {"parentRefs": [[null, null, null, "gw", null, null]]}}),
        json!({"metadata": {"name": "z", "namespace": "infra", "labels": {"kubernetes.io/service-name": "s"}}, "endpoints": null, "ports": null, "data": {"tls.crt": "%%%", "tls.key": ""}}),
    ];
    for kind in Kind::ALL {
        for shape in &shapes {
            observed.put("one", kind, shape);
        }
    }
    let built = build(&observed, &settings);
    let gateway = built
        .statuses
        .iter()
        .find(|status| status.kind == Kind::Gateway && status.name.name == "gw")
        .unwrap();
    let Says::Gateway { conditions, .. } = &gateway.says else {
        panic!("{gateway:?}")
    };
    assert_eq!(
        (conditions[0].status, conditions[0].reason),
        (false, "Invalid"),
        "{}",
        conditions[0].message
    );
    for kind in Kind::ALL {
        let names: Vec<_> = ["x", "y", "z", "gw", ""]
            .iter()
            .flat_map(|name| ["infra", ""].map(|ns| crate::observed::Name::new(ns, *name)))
            .collect();
        for name in names {
            observed.remove("one", kind, &name);
        }
    }
    assert!(
        observed.workspaces.is_empty(),
        "what is removed leaves nothing behind: {observed:?}"
    );
}
