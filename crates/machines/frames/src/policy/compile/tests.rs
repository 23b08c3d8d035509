//! Policies as people write them, and who then reaches whom.

use serde_json::json;

use super::*;
use crate::policy::Attempt;

const SHOP: Tenant = Tenant(1);
const BANK: Tenant = Tenant(2);
const WEB: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
const DB: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 3);
const MONITOR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 4);
const FOREIGN_WEB: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 5);
const INTERNET: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 1);

fn endpoint(tenant: Tenant, namespace: &str, app: &str, address: Ipv4Addr, port: u16) -> Endpoint {
    Endpoint {
        tenant,
        namespace: namespace.into(),
        labels: json!({ "app": app }),
        address,
        ports: vec![("service".into(), TCP, port)],
    }
}

fn world() -> (Vec<Endpoint>, Vec<Namespace>) {
    let namespace = |tenant, name: &str, team: &str| Namespace {
        tenant,
        name: name.into(),
        labels: json!({ "team": team }),
    };
    (
        vec![
            endpoint(SHOP, "front", "web", WEB, 8080),
            endpoint(SHOP, "front", "db", DB, 5432),
            endpoint(SHOP, "ops", "monitor", MONITOR, 9090),
            endpoint(BANK, "front", "web", FOREIGN_WEB, 8080),
        ],
        vec![
            namespace(SHOP, "front", "shop"),
            namespace(SHOP, "ops", "ops"),
            namespace(BANK, "front", "ops"),
        ],
    )
}

fn compiled(specs: &[Value]) -> (Policies, Vec<Ignored>) {
    let sources: Vec<Source> = specs
        .iter()
        .map(|spec| Source {
            tenant: SHOP,
            namespace: "front".into(),
            name: "policy".into(),
            spec: spec.clone(),
        })
        .collect();
    let (endpoints, namespaces) = world();
    compile(&sources, &endpoints, &namespaces)
}

fn is_allowed(policies: &Policies, from: Ipv4Addr, to: Ipv4Addr, protocol: u8, port: u16) -> bool {
    let attempt = Attempt {
        from,
        to,
        protocol,
        port,
    };
    policies.of(from).is_none_or(|policy| policy.lets_out(&attempt))
        && policies.of(to).is_none_or(|policy| policy.admits(&attempt))
}

#[test]
fn policies_mean_what_kubernetes_says() {
    let of_db =
        |ingress: Value| json!({ "podSelector": { "matchLabels": { "app": "db" } }, "ingress": ingress });
    let from_web = json!([{ "from": [{ "podSelector": { "matchLabels": { "app": "web" } } }] }]);
    let port = |port: Value| json!([{ "ports": [port] }]);
    // Each row: what, policies, from, to, protocol, port, whether it is allowed.
    type Row = (&'static str, Vec<Value>, Ipv4Addr, Ipv4Addr, u8, u16, bool);
    let rows: Vec<Row> = vec![
        ("no policy", vec![], WEB, DB, TCP, 5432, true),
        (
            "deny all",
            vec![json!({ "podSelector": {} })],
            WEB,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "deny all does not select others",
            vec![json!({ "podSelector": {} })],
            WEB,
            MONITOR,
            TCP,
            9090,
            true,
        ),
        (
            "deny all isolates ingress only",
            vec![json!({ "podSelector": {} })],
            WEB,
            INTERNET,
            TCP,
            443,
            true,
        ),
        ("allow all", vec![of_db(json!([{}]))], MONITOR, DB, TCP, 1, true),
        (
            "by label",
            vec![of_db(from_web.clone())],
            WEB,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "by label, another",
            vec![of_db(from_web.clone())],
            MONITOR,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "by label, in a foreign workspace",
            vec![of_db(from_web.clone())],
            FOREIGN_WEB,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "they add up",
            vec![json!({ "podSelector": {} }), of_db(from_web)],
            WEB,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "by namespace",
            vec![of_db(
                json!([{ "from": [{ "namespaceSelector": { "matchLabels": { "team": "ops" } } }] }]),
            )],
            MONITOR,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "a foreign workspace's namespace of the same label",
            vec![of_db(
                json!([{ "from": [{ "namespaceSelector": { "matchLabels": { "team": "ops" } } }] }]),
            )],
            FOREIGN_WEB,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "namespace and label are both needed",
            vec![of_db(
                json!([{ "from": [{ "namespaceSelector": {}, "podSelector": { "matchLabels": { "app": "web" } } }] }]),
            )],
            MONITOR,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "every namespace of the workspace",
            vec![of_db(json!([{ "from": [{ "namespaceSelector": {} }] }]))],
            MONITOR,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "an empty label selector is the own namespace",
            vec![of_db(json!([{ "from": [{ "podSelector": {} }] }]))],
            MONITOR,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "expressions",
            vec![of_db(
                json!([{ "from": [{ "podSelector": { "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["web"] }] } }] }]),
            )],
            WEB,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "a block",
            vec![of_db(
                json!([{ "from": [{ "ipBlock": { "cidr": "1.0.0.0/8", "except": ["1.2.0.0/16"] } }] }]),
            )],
            INTERNET,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "a block's exception",
            vec![of_db(
                json!([{ "from": [{ "ipBlock": { "cidr": "1.0.0.0/8", "except": ["1.1.0.0/16"] } }] }]),
            )],
            INTERNET,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "a port",
            vec![of_db(port(json!({ "port": 5432 })))],
            WEB,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "another port",
            vec![of_db(port(json!({ "port": 5432 })))],
            WEB,
            DB,
            TCP,
            5433,
            false,
        ),
        (
            "another protocol",
            vec![of_db(port(json!({ "port": 5432 })))],
            WEB,
            DB,
            UDP,
            5432,
            false,
        ),
        (
            "a protocol",
            vec![of_db(port(json!({ "protocol": "UDP" })))],
            WEB,
            DB,
            UDP,
            9,
            true,
        ),
        (
            "a range",
            vec![of_db(port(json!({ "port": 5000, "endPort": 6000 })))],
            WEB,
            DB,
            TCP,
            6000,
            true,
        ),
        (
            "after a range",
            vec![of_db(port(json!({ "port": 5000, "endPort": 6000 })))],
            WEB,
            DB,
            TCP,
            6001,
            false,
        ),
        (
            "a name",
            vec![of_db(port(json!({ "port": "service" })))],
            WEB,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "a name means the receiver's port",
            vec![of_db(port(json!({ "port": "service" })))],
            WEB,
            DB,
            TCP,
            8080,
            false,
        ),
        (
            "a name that nobody has",
            vec![of_db(port(json!({ "port": "nobody" })))],
            WEB,
            DB,
            TCP,
            5432,
            false,
        ),
        (
            "egress by label",
            vec![
                json!({ "podSelector": { "matchLabels": { "app": "web" } }, "policyTypes": ["Egress"],
                "egress": [{ "to": [{ "podSelector": { "matchLabels": { "app": "db" } } }], "ports": [{ "port": "service" }] }] }),
            ],
            WEB,
            DB,
            TCP,
            5432,
            true,
        ),
        (
            "egress elsewhere",
            vec![
                json!({ "podSelector": { "matchLabels": { "app": "web" } }, "policyTypes": ["Egress"],
                "egress": [{ "to": [{ "podSelector": { "matchLabels": { "app": "db" } } }] }] }),
            ],
            WEB,
            INTERNET,
            TCP,
            443,
            false,
        ),
        (
            "egress alone does not isolate ingress",
            vec![json!({ "podSelector": {}, "policyTypes": ["Egress"] })],
            MONITOR,
            WEB,
            TCP,
            8080,
            true,
        ),
        (
            "egress rules without types isolate both",
            vec![json!({ "podSelector": {}, "egress": [{}] })],
            MONITOR,
            WEB,
            TCP,
            8080,
            false,
        ),
        (
            "both ends must agree",
            vec![
                json!({ "podSelector": { "matchLabels": { "app": "web" } }, "policyTypes": ["Egress"], "egress": [{}] }),
                of_db(json!([])),
            ],
            WEB,
            DB,
            TCP,
            5432,
            false,
        ),
    ];
    for (what, specs, from, to, protocol, port, expected) in rows {
        let (policies, ignored) = compiled(&specs);
        assert_eq!(ignored, [], "{what}");
        assert_eq!(
            is_allowed(&policies, from, to, protocol, port),
            expected,
            "{what}"
        );
    }
}

#[test]
fn what_is_not_understood_allows_nothing_and_is_told() {
    for (rule, told) in [
        (
            json!({ "from": [{ "ipBlock": { "cidr": "fd00::/8" } }] }),
            "spec.ingress[0].from[0].ipBlock is not an IPv4 network, so it allows nobody",
        ),
        (
            json!({ "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["fd00::/8"] } }] }),
            "spec.ingress[0].from[0].ipBlock is not an IPv4 network, so it allows nobody",
        ),
        (
            json!({ "ports": [{ "port": 70000 }] }),
            "spec.ingress[0].ports[0] names no port, so it allows nothing",
        ),
        (
            json!({ "ports": [{ "port": 10, "endPort": 9 }] }),
            "spec.ingress[0].ports[0] names no port, so it allows nothing",
        ),
        (
            json!({ "ports": [{ "protocol": "GRE" }] }),
            "spec.ingress[0].ports[0] names no port, so it allows nothing",
        ),
    ] {
        let (policies, ignored) = compiled(&[json!({ "podSelector": {}, "ingress": [rule] })]);
        assert_eq!(ignored.len(), 1, "{told}");
        assert_eq!(ignored[0].what, told);
        assert!(!is_allowed(&policies, WEB, DB, TCP, 5432), "{told}");
        assert!(!is_allowed(&policies, INTERNET, DB, TCP, 9), "{told}");
    }
}
