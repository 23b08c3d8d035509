//! Which certificates TLSPolicies come to, on tables that were built from manifests.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gateway_routes as routes;
use fairway_gateway_routes::settings::Addresses;
use serde_json::json;

use super::*;
use crate::classes;
use crate::policies::Held;

const TENANT: &str = "tenant";

struct World {
    observed: Observed,
    held: Held,
}

impl World {
    fn new() -> Self {
        Self {
            observed: Observed::default(),
            held: Held::new(),
        }
    }

    fn put(&mut self, workspace: &str, kind: routes::Kind, object: &Value) {
        self.observed.put(workspace, kind, object);
    }

    /// A Gateway with one HTTPS listener, and a TLSPolicy for it.
    fn gateway(&mut self, workspace: &str, name: &str, day: u8, hostname: &str, secret: &Value) {
        let metadata = json!({
            "namespace": "n", "name": name, "uid": name, "generation": 1,
            "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
        });
        let gateway = json!({
            "metadata": metadata,
            "spec": {"gatewayClassName": "fairway", "listeners": [{
                "name": "web", "port": 443, "protocol": "HTTPS", "hostname": hostname,
                "tls": {"certificateRefs": [secret]},
            }]},
        });
        self.put(workspace, routes::Kind::Gateway, &gateway);
        let policy = json!({
            "metadata": metadata,
            "spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name}},
        });
        let workspace = WorkspaceId::parse(workspace).unwrap();
        let key = ObjectKey::new(&workspace, "n", name);
        self.held.put(Kind::TlsPolicy, key, policy);
    }

    /// What the policies of a workspace get: Secrets with their names, and the message of each `Enforced`.
    fn decide(&self, workspace: &str) -> (Vec<String>, Vec<String>) {
        let of_routes = routes::Settings {
            controllers: classes::CONTROLLERS.iter().map(|&name| name.to_owned()).collect(),
            classes: classes::known(),
            addresses: Addresses::Shared(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ..routes::Settings::default()
        };
        let built = routes::build(&self.observed, &of_routes);
        let settings = Settings {
            reserved: vec!["api.apps.fairway.localhost".to_owned()],
            ..Settings::default()
        };
        let decided = decide(&self.held.seen(), &self.observed, &built.statuses, &settings);
        let certificates = decided.certificates.iter();
        let certificates = certificates
            .filter(|it| it.policy.workspace == workspace)
            .map(|it| format!("{}/{} {}", it.namespace, it.secret, it.dns_names.join(" ")));
        let conditions = decided.conditions.iter();
        let messages = conditions
            .filter(|(key, _)| key.workspace == workspace)
            .flat_map(|(_, conditions)| conditions)
            .filter(|it| it.r#type == "Enforced" && !it.is_true)
            .map(|it| it.message.clone());
        (certificates.collect(), messages.collect())
    }
}

#[test]
fn a_tenant_gets_no_certificate_for_names_of_others() {
    for (workspace, hostname, issued) in [
        (TENANT, "shop.apps.fairway.localhost", true),
        (TENANT, "www.example.com", false),
        (TENANT, "localhost", false),
        (TENANT, "api.apps.fairway.localhost", false),
        ("root", "www.example.com", true),
    ] {
        let mut world = World::new();
        world.gateway(workspace, "web", 1, hostname, &json!({"name": "web"}));
        let (certificates, messages) = world.decide(workspace);
        assert_eq!(
            certificates.len(),
            usize::from(issued),
            "{workspace} {hostname} {messages:?}"
        );
        let told = messages
            .iter()
            .any(|it| it.contains("has encountered some issues"));
        assert_eq!(told, !issued, "{messages:?}");
    }
}

#[test]
fn who_lost_a_conflict_gets_no_certificate() {
    let mut world = World::new();
    let host = "shop.apps.fairway.localhost";
    world.gateway("owner", "web", 1, host, &json!({"name": "web"}));
    world.gateway(TENANT, "late", 2, host, &json!({"name": "web"}));
    assert_eq!(world.decide("owner").0, [format!("n/web {host}")]);
    let (certificates, messages) = world.decide(TENANT);
    assert_eq!(certificates, [] as [String; 0]);
    assert!(messages[0].contains("it is not served"), "{messages:?}");
}

#[test]
fn secrets_of_other_namespaces_need_a_grant() {
    let host = "shop.apps.fairway.localhost";
    let grant = |from: &str, to: &Value| {
        json!({
            "metadata": {"namespace": "vault", "name": "g"},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": from}],
                "to": [to],
            },
        })
    };
    let secret = json!({"group": "", "kind": "Secret"});
    for (grant, issued, reason) in [
        (None, false, "no grant"),
        (Some(grant("n", &secret)), true, "all Secrets"),
        (Some(grant("other", &secret)), false, "for another namespace"),
        (
            Some(grant("n", &json!({"group": "", "kind": "Secret", "name": "x"}))),
            false,
            "another Secret",
        ),
    ] {
        let mut world = World::new();
        world.gateway(
            TENANT,
            "web",
            1,
            host,
            &json!({"name": "web", "namespace": "vault"}),
        );
        if let Some(grant) = &grant {
            world.put(TENANT, routes::Kind::ReferenceGrant, grant);
        }
        let (certificates, messages) = world.decide(TENANT);
        assert_eq!(certificates.len(), usize::from(issued), "{reason}: {messages:?}");
        let told = messages.iter().any(|it| it.contains("ReferenceGrant"));
        assert_eq!(told, !issued, "{reason}: {messages:?}");
    }
}

#[test]
fn names_that_are_not_answered_are_told() {
    const HOST: &str = "shop.apps.fairway.localhost";
    let named = |workspace: &str, host: &str, addresses: &[&str]| {
        let object = json!({
            "metadata": {"namespace": "n", "name": "web"},
            "spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}},
        });
        let policy = Policy::read(workspace, Kind::DnsPolicy, &object);
        let gateway = GatewayView {
            workspace: workspace.to_owned(),
            namespace: "n".to_owned(),
            name: "web".to_owned(),
            listeners: vec![ListenerView {
                name: "web".to_owned(),
                hostname: Some(host.to_owned()),
                attached_routes: 1,
                ..ListenerView::default()
            }],
            addresses: addresses.iter().map(|&address| address.to_owned()).collect(),
        };
        let decided = dns::decide(&policy, &[], &[gateway]);
        Named { policy, decided }
    };
    for (host, addresses, published, expected) in [
        (HOST, &["10.0.0.1"][..], Some([10, 0, 0, 1]), None),
        (
            "SHOP.apps.fairway.localhost",
            &["10.0.0.1"],
            Some([10, 0, 0, 1]),
            None,
        ),
        (
            HOST,
            &["10.0.0.1"],
            Some([10, 0, 0, 2]),
            Some("with other addresses"),
        ),
        (HOST, &["10.0.0.1"], None, Some("is not answered")),
        (HOST, &["fd00::1"], None, Some("IPv4 alone")),
        (HOST, &[], None, Some("has no address")),
    ] {
        let names: Names = published
            .map(|address| (HOST.to_owned(), [Ipv4Addr::from(address)].into()))
            .into_iter()
            .collect();
        let conditions = named(TENANT, host, addresses).conditions(&names);
        let enforced = conditions.iter().find(|it| it.r#type == "Enforced").unwrap();
        assert_eq!(enforced.is_true, expected.is_none(), "{}", enforced.message);
        let says = |text: &str| enforced.message.contains(text) && enforced.message.contains(host);
        assert!(expected.is_none_or(says), "{}", enforced.message);
    }
}

#[test]
fn a_secret_of_somebody_else_has_to_fit() {
    let host = "shop.apps.fairway.localhost";
    const ANY: &str = include_str!("tests/any.crt");
    const OTHER: &str = include_str!("tests/other.crt");
    // Nobody signs with it.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (certificate, is_ours, expected, reason) in [
        (ANY, false, None, "a wildcard is good for it"),
        (OTHER, false, Some("made by somebody else"), "for another name"),
        (OTHER, true, Some("waiting for"), "it is made anew soon"),
    ] {
        let labels = match is_ours {
            true => json!({"app.kubernetes.io/managed-by": crate::statuses::MANAGER}),
            false => json!({}),
        };
        let mut world = World::new();
        world.gateway(TENANT, "web", 1, host, &json!({"name": "web"}));
        let secret = json!({
            "metadata": {"namespace": "n", "name": "web", "labels": labels},
            "data": {"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(KEY)},
        });
        world.put(TENANT, routes::Kind::Secret, &secret);
        let (_, messages) = world.decide(TENANT);
        match expected {
            None => assert_eq!(messages, [] as [String; 0], "{reason}"),
            Some(text) => assert!(messages[0].contains(text), "{reason}: {messages:?}"),
        }
    }
}
