//! Which rule is served, against the specification told in another way: of all matches that fit, none may be better than the
//! one that was found.

use std::cmp::Ordering;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use serde_json::{Value, json};

use super::read;
use crate::build::build;
use crate::lookup::{Matcher, Request};
use crate::observed::Kind;
use crate::table::Door;

const GATEWAY: &str = "
kind: Settings
---
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
";

/// One match, as it was written.
#[derive(Debug, Clone)]
struct Written {
    exact: bool,
    path: &'static str,
    method: Option<&'static str>,
    headers: usize,
    query: usize,
}

const HEADERS: [&str; 2] = ["x-a", "x-b"];
const QUERY: [&str; 2] = ["p", "q"];

impl Written {
    fn manifest(&self) -> Value {
        let pairs = |names: &[&str]| {
            names
                .iter()
                .map(|name| json!({"name": name, "value": "1"}))
                .collect::<Vec<_>>()
        };
        let kind = if self.exact { "Exact" } else { "PathPrefix" };
        let mut one = json!({
            "path": {"type": kind, "value": self.path},
            "headers": pairs(&HEADERS[..self.headers]),
            "queryParams": pairs(&QUERY[..self.query]),
        });
        if let Some(method) = self.method {
            one["method"] = method.into();
        }
        one
    }

    fn fits(&self, path: &str, method: &str, headers: usize, query: usize) -> bool {
        let by_path = if self.exact {
            path == self.path
        } else {
            let wanted: Vec<&str> = self.path.split('/').filter(|part| !part.is_empty()).collect();
            let given: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            given.starts_with(&wanted)
        };
        by_path
            && self.method.is_none_or(|own| own == method)
            && self.headers <= headers
            && self.query <= query
    }
}

/// A match with where it stands: the time and name of its route, and its place there.
#[derive(Debug, Clone)]
struct Placed {
    written: Written,
    created: u8,
    namespace: &'static str,
    name: String,
    rule: usize,
}

/// The specification's list, one criterion after the other.
fn better(one: &Placed, two: &Placed) -> Ordering {
    let (a, b) = (&one.written, &two.written);
    let mut order = b.exact.cmp(&a.exact);
    if order == Ordering::Equal && !a.exact {
        order = b.path.len().cmp(&a.path.len());
    }
    if order == Ordering::Equal {
        order = b.method.is_some().cmp(&a.method.is_some());
    }
    if order == Ordering::Equal {
        order = b.headers.cmp(&a.headers);
    }
    if order == Ordering::Equal {
        order = b.query.cmp(&a.query);
    }
    if order == Ordering::Equal {
        order = one.created.cmp(&two.created);
    }
    if order == Ordering::Equal {
        order = (one.namespace, &one.name).cmp(&(two.namespace, &two.name));
    }
    if order == Ordering::Equal {
        order = one.rule.cmp(&two.rule);
    }
    order
}

const PATHS: [&str; 5] = ["/", "/a", "/a/b", "/b", "/a/b/c"];

fn any_written() -> impl Strategy<Value = Written> {
    let method = prop_oneof![Just(None), Just(Some("GET")), Just(Some("POST"))];
    (
        proptest::bool::ANY,
        0..PATHS.len(),
        method,
        0..3_usize,
        0..3_usize,
    )
        .prop_map(|(exact, path, method, headers, query)| Written {
            exact,
            path: PATHS[path],
            method,
            headers,
            query,
        })
}

proptest! {
    #[test]
    fn nothing_better_than_what_was_found_fits(
        routes in proptest::collection::vec((0..3_u8, proptest::bool::ANY, proptest::collection::vec(any_written(), 1..4)), 1..8),
        path in 0..PATHS.len(),
        get in proptest::bool::ANY,
        headers in 0..3_usize,
        query in 0..3_usize,
    ) {
        let (mut observed, settings) = read(GATEWAY);
        let mut placed = Vec::new();
        for (at, (created, infra, rules)) in routes.into_iter().enumerate() {
            let name = format!("r{at}");
            let namespace = if infra { "infra" } else { "apps" };
            let manifests: Vec<Value> = rules.iter().map(|rule| json!({"matches": [rule.manifest()]})).collect();
            observed.put("one", Kind::HttpRoute, &json!({
                "metadata": {"name": name, "namespace": namespace, "creationTimestamp": format!("2026-01-0{}T00:00:00Z", created + 1)},
                "spec": {"parentRefs": [{"name": "gw", "namespace": "infra"}], "rules": manifests},
            }));
            placed.extend(rules.into_iter().enumerate().map(|(rule, written)| Placed { written, created, namespace, name: name.clone(), rule }));
        }
        let built = build(&observed, &settings);
        let Some(Door::Http(names)) = built.table.doors.get(&"127.0.0.1:80".parse().unwrap()) else { panic!("no door") };
        let matcher = Matcher::new(names.candidates("h").next().unwrap());

        let method = if get { "GET" } else { "POST" };
        let mut map = HeaderMap::new();
        for name in &HEADERS[..headers] {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        let asked = QUERY[..query].iter().map(|name| format!("{name}=1")).collect::<Vec<_>>().join("&");
        let as_method = Method::from_bytes(method.as_bytes()).unwrap();
        let found = matcher.find("h", &Request::new(&as_method, PATHS[path], Some(&asked), &map));

        let fitting: Vec<&Placed> = placed.iter().filter(|one| one.written.fits(PATHS[path], method, headers, query)).collect();
        match found {
            None => prop_assert!(fitting.is_empty(), "{fitting:?}"),
            Some(found) => {
                let key = &found.entry.rule.key;
                let chosen = fitting.iter().find(|one| one.name == key.name && one.rule == key.rule);
                prop_assert!(chosen.is_some(), "{key:?} does not fit");
                let chosen = chosen.unwrap();
                for other in &fitting {
                    prop_assert!(better(chosen, other) != Ordering::Greater, "{other:?} goes before {chosen:?}");
                }
            }
        }
    }
}
