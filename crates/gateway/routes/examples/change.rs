//! What a change of one route costs beside 9,999 others: `cargo run --release -p fairway-gateway-routes --example change`.
//!
//! Prints the median milliseconds of reading the route, of building the table anew, of telling whether it is another one, and of making
//! it ready for looking up: for routes that redirect, that lead to one Service, and that have a host name and a Service each.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::time::{Duration, Instant};

use fairway_gateway_routes::lookup::Matcher;
use fairway_gateway_routes::settings::CONTROLLER;
use fairway_gateway_routes::table::{Door, Table};
use fairway_gateway_routes::{Kind, Memo, Observed, Settings, build_with};
use serde_json::{Value, json};

const ROUTES: usize = 10_000;
const CHANGES: usize = 20;

/// What routes lead to.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Redirects,
    OneService,
    HostAndServiceEach,
}

fn main() {
    println!("shape read build compare match drop");
    for shape in [Shape::Redirects, Shape::OneService, Shape::HostAndServiceEach] {
        measure(shape);
    }
}

fn measure(shape: Shape) {
    let mut observed = Observed::default();
    observed.put(
        "root",
        Kind::Gateway,
        &json!({
            "metadata": {"namespace": "n", "name": "web", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"gatewayClassName": "fairway", "listeners": [{"name": "http", "port": 8080, "protocol": "HTTP"}]},
        }),
    );
    for at in 0..ROUTES {
        if matches!(shape, Shape::HostAndServiceEach) || at == 0 {
            observed.put("root", Kind::Service, &service(at));
            observed.put("root", Kind::EndpointSlice, &slice(at));
        }
        observed.put("root", Kind::HttpRoute, &route(shape, at, 0));
    }
    let settings = Settings {
        classes: [("fairway".to_owned(), CONTROLLER.to_owned())].into(),
        ..Settings::default()
    };
    let mut memo = Memo::default();
    let mut before = build_with(&observed, &settings, &mut memo);
    let mut matchers = ready(&before.table);
    let mut taken: [Vec<Duration>; 5] = Default::default();
    for change in 1..=CHANGES {
        let mut lap = Lap(Instant::now());
        observed.put("root", Kind::HttpRoute, &route(shape, ROUTES / 2, change));
        taken[0].push(lap.next());
        let built = build_with(&observed, &settings, &mut memo);
        taken[1].push(lap.next());
        let same = built.table.clone();
        assert!(built.table != before.table, "a route has changed");
        assert!(built.table == same, "nothing has changed");
        taken[2].push(lap.next());
        let made = ready(&built.table);
        taken[3].push(lap.next());
        (before, matchers) = (built, made);
        taken[4].push(lap.next());
    }
    assert_eq!(matchers.iter().map(Matcher::len).sum::<usize>(), ROUTES);
    let middle = taken.map(|mut all| {
        all.sort();
        format!("{:.2}", all[CHANGES / 2].as_secs_f64() * 1e3)
    });
    println!("{shape:?} {}", middle.join(" "));
}

struct Lap(Instant);

impl Lap {
    fn next(&mut self) -> Duration {
        let begun = std::mem::replace(&mut self.0, Instant::now());
        self.0 - begun
    }
}

fn ready(table: &Table) -> Vec<Matcher> {
    let listeners = table.doors.values().flat_map(|door| match door {
        Door::Http(names) => names.iter().map(|(_, listener)| listener).collect(),
        Door::Tls(_) | Door::Tcp(_) => Vec::new(),
    });
    listeners.map(|listener| Matcher::new(listener)).collect()
}

fn route(shape: Shape, at: usize, change: usize) -> Value {
    let service = match shape {
        Shape::HostAndServiceEach => at,
        Shape::Redirects | Shape::OneService => 0,
    };
    let mut rule =
        json!({"matches": [{"path": {"type": "PathPrefix", "value": format!("/crowd/{at}/{change}")}}]});
    match shape {
        Shape::Redirects => {
            rule["filters"] = json!([{
                "type": "RequestRedirect", "requestRedirect": {"statusCode": 302, "hostname": "elsewhere.example"},
            }]);
        }
        Shape::OneService | Shape::HostAndServiceEach => {
            rule["backendRefs"] = json!([{"name": format!("backend-{service}"), "port": 80}]);
        }
    }
    let hostnames = match shape {
        Shape::HostAndServiceEach => json!([format!("host-{at}.example.com")]),
        Shape::Redirects | Shape::OneService => json!([]),
    };
    json!({
        "metadata": {
            "namespace": "n", "name": format!("crowd-{at}"), "generation": change + 1,
            // Not in the order of the names.
            "creationTimestamp": format!("2026-01-01T{:02}:{:02}:{:02}Z", at % 24, at % 60, at % 59),
        },
        "spec": {"parentRefs": [{"name": "web"}], "hostnames": hostnames, "rules": [rule]},
    })
}

fn service(at: usize) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": format!("backend-{at}")},
        "spec": {"ports": [{"port": 80, "targetPort": 8080}]},
    })
}

fn slice(at: usize) -> Value {
    json!({
        "metadata": {
            "namespace": "n", "name": format!("backend-{at}"), "labels": {"kubernetes.io/service-name": format!("backend-{at}")},
        },
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["192.0.2.1"]}],
    })
}
