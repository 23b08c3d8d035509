//! Certificates of listeners.

use serde_json::{Value, json};

use super::*;
use crate::object::Kind;

fn gateway() -> GatewayView {
    let listener = |name: &str, hostname: Option<&str>, secret: Option<&str>| ListenerView {
        name: name.into(),
        hostname: hostname.map(str::to_owned),
        certificates: secret
            .map(|secret| ("infra".to_owned(), secret.to_owned()))
            .into_iter()
            .collect(),
        attached_routes: 1,
    };
    GatewayView {
        workspace: "root".into(),
        namespace: "infra".into(),
        name: "gw".into(),
        listeners: vec![
            listener("a", Some("b.example.com"), Some("shared")),
            listener("b", Some("*.example.com"), Some("shared")),
            listener("c", None, Some("nameless")),
            listener("d", Some("plain.example.com"), None),
        ],
        addresses: vec![],
    }
}

fn policy(name: &str, day: u8, spec: Value, section: Option<&str>) -> Policy {
    let mut spec = spec;
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"});
    if let Some(section) = section {
        spec["targetRef"]["sectionName"] = json!(section);
    }
    let object = json!({"metadata": {"name": name, "namespace": "infra",
        "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")}, "spec": spec});
    Policy::read("root", Kind::TlsPolicy, &object)
}

#[test]
fn listeners_get_certificates() {
    let issuer = json!({"issuerRef": {"name": "fairway"}, "duration": "24h", "renewBefore": "8h"});
    let whole = decide(&policy("p", 1, issuer.clone(), None), &[], &[gateway()]);
    assert_eq!(whole.certificates.len(), 1, "one Secret, two listeners");
    assert_eq!(
        whole.certificates[0].dns_names,
        ["*.example.com", "b.example.com"]
    );
    assert_eq!(whole.certificates[0].duration.as_secs(), 86_400);
    assert_eq!(whole.notes, [] as [String; 0]);
    let one = decide(&policy("p", 1, issuer, Some("a")), &[], &[gateway()]);
    assert_eq!(one.certificates[0].dns_names, ["b.example.com"]);
    let other = decide(
        &policy("p", 1, json!({"issuerRef": {"name": "acme"}, "usages": []}), None),
        &[],
        &[gateway()],
    );
    assert_eq!(other.notes.len(), 2, "{:?}", other.notes);
}

#[test]
fn policies_are_refused() {
    let spec = json!({});
    let (old, new) = (
        policy("old", 1, spec.clone(), None),
        policy("new", 2, spec.clone(), None),
    );
    let all = [old.clone(), new.clone()];
    for (policy, gateways, expected) in [
        (&old, vec![gateway()], "attached"),
        (&new, vec![gateway()], "conflicted"),
        (&old, vec![], "lost"),
        (&self::policy("x", 3, spec, Some("none")), vec![gateway()], "lost"),
        (
            &self::policy("x", 3, json!({"duration": "x"}), Some("a")),
            vec![gateway()],
            "invalid",
        ),
        (
            &self::policy("x", 3, json!({"duration": "1h", "renewBefore": "1h"}), Some("a")),
            vec![gateway()],
            "invalid",
        ),
    ] {
        let found = match decide(policy, &all, &gateways).standing {
            Standing::Attached { .. } => "attached",
            Standing::Refused(Refusal::Conflicted { .. }) => "conflicted",
            Standing::Refused(Refusal::TargetNotFound { .. }) => "lost",
            Standing::Refused(Refusal::Invalid { .. }) => "invalid",
        };
        assert_eq!(found, expected, "{}", policy.key);
    }
    let standing = decide(&old, &all, &[gateway()]).standing;
    let waiting = conditions(&old, &standing, &["Secret (infra/shared)".to_owned()], &[]);
    assert_eq!((waiting[1].status(), waiting[1].reason), ("False", "Unknown"));
    let enforced = conditions(&old, &standing, &[], &["a note".to_owned()]);
    assert_eq!(
        enforced[1].message,
        "TLSPolicy has been successfully enforced, but: a note"
    );
}
