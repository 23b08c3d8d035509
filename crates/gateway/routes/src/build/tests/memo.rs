//! A build that remembers the one before comes to the same as one that does not, whatever has changed; and makes no more than it must.

use std::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};

use crate::build::{Memo, build, build_with};
use crate::observed::{Kind, Name, Observed};
use crate::settings::{Binding, CONTROLLER, Settings};
use crate::table::{Door, Entry, HostPattern, Table};

/// What somebody does between two builds.
#[derive(Debug, Clone)]
enum Change {
    Put(&'static str, Kind, usize, usize),
    Remove(&'static str, Kind, usize),
    /// What becomes of a port.
    Bind(Option<u16>),
}

const KINDS: [Kind; 12] = [
    Kind::Gateway,
    Kind::HttpRoute,
    Kind::HttpRoute,
    Kind::HttpRoute,
    Kind::GrpcRoute,
    Kind::TlsRoute,
    Kind::Route,
    Kind::Service,
    Kind::EndpointSlice,
    Kind::Namespace,
    Kind::ReferenceGrant,
    Kind::BackendTlsPolicy,
];
const VARIANTS: usize = 6;

fn any_change() -> impl Strategy<Value = Change> {
    let what = (0..2_usize, 0..KINDS.len(), 0..3_usize, 0..VARIANTS);
    let what = what
        .prop_map(|(workspace, kind, name, variant)| (["one", "two"][workspace], KINDS[kind], name, variant));
    prop_oneof![
        8 => what.clone().prop_map(|(workspace, kind, name, variant)| Change::Put(workspace, kind, name, variant)),
        2 => what.prop_map(|(workspace, kind, name, _)| Change::Remove(workspace, kind, name)),
        1 => (0..3_usize).prop_map(|at| Change::Bind([None, Some(8443), Some(9443)][at])),
    ]
}

fn namespace(kind: Kind, name: usize) -> &'static str {
    match kind {
        Kind::Namespace => "",
        // Some are referred to from elsewhere.
        _ => ["infra", "infra", "apps"][name],
    }
}

fn name(kind: Kind, name: usize) -> String {
    match kind {
        Kind::Namespace => ["infra", "apps", "other"][name].to_owned(),
        _ => format!("x{name}"),
    }
}

fn object(kind: Kind, at: usize, variant: usize) -> Value {
    let host = ["a.example.com", "*.example.com", "b.example.com"][variant % 3];
    let elsewhere = ["infra", "apps"][variant % 2];
    let parents = json!([
        {"name": "x0", "namespace": "infra"},
        {"name": format!("x{}", variant % 3), "namespace": "infra", "sectionName": if variant == 5 { "other" } else { "http" }},
    ]);
    let backends = json!([{"name": format!("x{}", variant % 3), "namespace": elsewhere, "port": 80}]);
    let spec = match kind {
        Kind::Gateway => {
            let from = match variant {
                0 | 1 => json!({"from": "All"}),
                2 => json!({"from": "Same"}),
                _ => json!({"from": "Selector", "selector": {"matchLabels": {"team": "1"}}}),
            };
            let mut listeners = vec![
                json!({"name": "http", "port": 80 + variant % 2, "protocol": "HTTP", "allowedRoutes": {"namespaces": from}}),
                json!({"name": "tls", "port": 443, "protocol": "TLS", "hostname": host, "tls": {"mode": "Passthrough"}}),
            ];
            if variant == 4 {
                listeners.push(json!({"name": "other", "port": 80, "protocol": "HTTP", "hostname": host}));
            }
            json!({"gatewayClassName": if variant == 5 { "unknown" } else { "fairway" }, "listeners": listeners})
        }
        Kind::HttpRoute => json!({
            "parentRefs": parents, "hostnames": if variant == 0 { json!([]) } else { json!([host]) },
            "rules": [
                {"matches": [{"path": {"value": format!("/{variant}")}}, {"path": {"type": "Exact", "value": "/"}}], "backendRefs": backends},
                {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]},
                {
                    "matches": [{"path": {"value": "/mirror"}}], "backendRefs": backends,
                    "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "x1", "port": 80}}}],
                },
            ],
        }),
        Kind::GrpcRoute => {
            json!({"parentRefs": parents, "hostnames": [host], "rules": [{"backendRefs": backends}]})
        }
        Kind::TlsRoute => {
            json!({"parentRefs": [{"name": "x0"}], "hostnames": [host], "rules": [{"backendRefs": backends}]})
        }
        Kind::Route => {
            json!({"host": host, "to": {"kind": "Service", "name": "x0"}, "port": {"targetPort": 80}})
        }
        Kind::Service => {
            let protocol = [
                Value::Null,
                json!("kubernetes.io/h2c"),
                json!("kubernetes.io/wss"),
            ];
            json!({"ports": [{"port": if variant == 5 { 81 } else { 80 }, "targetPort": 8080, "appProtocol": protocol[variant % 3]}]})
        }
        Kind::ReferenceGrant => json!({
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": elsewhere}],
            "to": [{"group": "", "kind": "Service"}],
        }),
        Kind::BackendTlsPolicy => json!({
            "targetRefs": [{"group": "", "kind": "Service", "name": format!("x{}", variant % 3)}],
            "validation": {"hostname": host, "wellKnownCACertificates": "System"},
        }),
        _ => Value::Null,
    };
    let labels = match kind {
        Kind::Namespace => json!({"team": format!("{}", variant % 2)}),
        Kind::EndpointSlice => json!({"kubernetes.io/service-name": format!("x{}", variant % 3)}),
        _ => json!({}),
    };
    let mut object = json!({
        "metadata": {
            "namespace": namespace(kind, at), "name": name(kind, at), "generation": variant, "labels": labels,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", 1 + (at + variant) % 3),
        },
        "spec": spec,
    });
    if kind == Kind::EndpointSlice {
        object["addressType"] = "IPv4".into();
        object["ports"] = json!([{"port": 8080}]);
        object["endpoints"] = json!([{"addresses": [format!("192.0.2.{variant}")]}]);
    }
    object
}

fn settings() -> Settings {
    Settings {
        classes: [("fairway".to_owned(), CONTROLLER.to_owned())].into(),
        operator: "one".to_owned(),
        ..Settings::default()
    }
}

proptest! {
    #[test]
    fn a_memo_changes_nothing(changes in proptest::collection::vec(any_change(), 1..60)) {
        let (mut observed, mut settings, mut memo) = (Observed::default(), settings(), Memo::default());
        for change in changes {
            match &change {
                Change::Put(workspace, kind, at, variant) => {
                    observed.put(workspace, *kind, &object(*kind, *at, *variant));
                }
                Change::Remove(workspace, kind, at) => {
                    observed.remove(workspace, *kind, &Name::new(namespace(*kind, *at), name(*kind, *at)));
                }
                Change::Bind(port) => {
                    let https = SocketAddr::from(([127, 0, 0, 1], 443));
                    settings.bindings = port.map(|port| (https, Binding::Port(port))).into_iter().collect();
                }
            }
            let anew = build(&observed, &settings);
            let remembered = build_with(&observed, &settings, &mut memo);
            prop_assert_eq!(&anew, &remembered, "after {:?}", change);
            settings.holders = Arc::new(anew.holders);
        }
    }
}

fn entries(table: &Table) -> Arc<Vec<Entry>> {
    let door = table.doors.values().next().unwrap();
    let Door::Http(names) = door else {
        panic!("{door:?}")
    };
    let listener = names.get(&HostPattern::Any).unwrap();
    Arc::clone(listener.routes.get(&HostPattern::Any).unwrap())
}

#[test]
fn only_what_has_changed_is_made() {
    let (mut observed, mut memo) = (Observed::default(), Memo::default());
    observed.put("one", Kind::Gateway, &object(Kind::Gateway, 0, 0));
    let route = |at: usize, path: &str| {
        let mut route = object(Kind::HttpRoute, 0, 0);
        route["metadata"]["name"] = format!("r{at}").into();
        route["spec"]["rules"] = json!([{"matches": [{"path": {"value": path}}]}]);
        route
    };
    for at in 0..100 {
        observed.put("one", Kind::HttpRoute, &route(at, &format!("/{at}")));
    }
    let before = build_with(&observed, &settings(), &mut memo);
    assert_eq!(memo.made(), 100, "nothing is known yet");
    build_with(&observed, &settings(), &mut memo);
    assert_eq!(memo.made(), 0, "nothing has changed");
    observed.put("one", Kind::HttpRoute, &route(7, "/other"));
    let after = build_with(&observed, &settings(), &mut memo);
    assert_eq!(memo.made(), 1, "one has changed");
    let known: Vec<_> = entries(&before.table)
        .iter()
        .map(|it| Arc::clone(&it.rule))
        .collect();
    let shared = |entry: &&Entry| known.iter().any(|rule| Arc::ptr_eq(rule, &entry.rule));
    assert_eq!(entries(&after.table).iter().filter(shared).count(), 99);
    let statuses = after.statuses.iter();
    let shared = statuses.filter(|one| before.statuses.iter().any(|other| Arc::ptr_eq(one, other)));
    assert_eq!(shared.count(), 99, "nobody need look at the others' statuses");
    observed.put("two", Kind::Service, &object(Kind::Service, 0, 0));
    build_with(&observed, &settings(), &mut memo);
    assert_eq!(memo.made(), 0, "another workspace is none of its business");
    observed.put("one", Kind::Service, &object(Kind::Service, 0, 0));
    build_with(&observed, &settings(), &mut memo);
    assert_eq!(memo.made(), 100, "any of them may lead there");
}
