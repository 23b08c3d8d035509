//! Which certificates TLSPolicies come to, on tables that were built from manifests.

use std::net::{IpAddr, Ipv4Addr};

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
