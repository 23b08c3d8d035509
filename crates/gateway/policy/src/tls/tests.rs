//! Certificates of listeners.

use serde_json::{Value, json};

use super::*;
use crate::object::Kind;

const RIGHTS: Rights<'static> = Rights {
    domain: "apps.example.com",
    reserved: &[],
};

fn gateway() -> GatewayView {
    let listener = |name: &str, hostname: Option<&str>, secret: Option<&str>| ListenerView {
        name: name.into(),
        hostname: hostname.map(str::to_owned),
        certificates: secret
            .map(|secret| ("infra".to_owned(), secret.to_owned()))
            .into_iter()
            .collect(),
        attached_routes: 1,
        ..ListenerView::default()
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
    let whole = decide(&policy("p", 1, issuer.clone(), None), &[], &[gateway()], RIGHTS);
    assert_eq!(whole.certificates.len(), 1, "one Secret, two listeners");
    assert_eq!(
        whole.certificates[0].dns_names,
        ["*.example.com", "b.example.com"]
    );
    assert_eq!(whole.certificates[0].duration.as_secs(), 86_400);
    assert_eq!(whole.notes, [] as [String; 0]);
    let one = decide(&policy("p", 1, issuer, Some("a")), &[], &[gateway()], RIGHTS);
    assert_eq!(one.certificates[0].dns_names, ["b.example.com"]);
    let other = decide(
        &policy("p", 1, json!({"issuerRef": {"name": "acme"}, "usages": []}), None),
        &[],
        &[gateway()],
        RIGHTS,
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
        let found = match decide(policy, &all, &gateways, RIGHTS).standing {
            Standing::Attached { .. } => "attached",
            Standing::Refused(Refusal::Conflicted { .. }) => "conflicted",
            Standing::Refused(Refusal::TargetNotFound { .. }) => "lost",
            Standing::Refused(Refusal::Invalid { .. }) => "invalid",
        };
        assert_eq!(found, expected, "{}", policy.key);
    }
    let standing = decide(&old, &all, &[gateway()], RIGHTS).standing;
    let waiting = conditions(&old, &standing, (&["Secret (infra/shared)".to_owned()], &[]), &[]);
    assert_eq!((waiting[1].status(), waiting[1].reason), ("False", "Unknown"));
    let enforced = conditions(&old, &standing, (&[], &[]), &["a note".to_owned()]);
    assert_eq!(
        enforced[1].message,
        "TLSPolicy has been successfully enforced, but: a note"
    );
}

/// A policy of a workspace for a Gateway with one listener.
fn alone(workspace: &str, hostname: &str, change: impl FnOnce(&mut ListenerView)) -> Decided {
    let mut listener = ListenerView {
        name: "web".into(),
        hostname: Some(hostname.to_owned()),
        certificates: vec![("infra".to_owned(), "web".to_owned())],
        ..ListenerView::default()
    };
    change(&mut listener);
    let gateway = GatewayView {
        workspace: workspace.to_owned(),
        listeners: vec![listener],
        ..gateway()
    };
    let mut policy = policy("p", 1, json!({}), None);
    policy.key.workspace = workspace.to_owned();
    let reserved = [
        "api.apps.example.com".to_owned(),
        "*.team.apps.example.com".to_owned(),
    ];
    let rights = Rights {
        domain: "apps.example.com",
        reserved: &reserved,
    };
    decide(&policy, &[], &[gateway], rights)
}

#[test]
fn tenants_get_certificates_for_their_own_names_only() {
    for (workspace, hostname, issued, reason) in [
        ("root", "www.example.org", true, "the operator's names are any"),
        (
            "root",
            "api.apps.example.com",
            true,
            "the operator's, the API's too",
        ),
        (
            "tenant",
            "shop.apps.example.com",
            true,
            "below the platform's domain",
        ),
        (
            "tenant",
            "*.shop.apps.example.com",
            true,
            "a wildcard below a name of its own",
        ),
        ("tenant", "www.example.org", false, "somebody else's"),
        (
            "tenant",
            "notapps.example.com",
            false,
            "the end of the text alone",
        ),
        ("tenant", "apps.example.com", false, "the domain itself"),
        ("tenant", "*.apps.example.com", false, "every tenant's names"),
        ("tenant", "*.example.com", false, "above the domain"),
        ("tenant", "kubernetes.default.svc", false, "the API from inside"),
        ("tenant", "api.apps.example.com", false, "the API's name"),
        ("tenant", "API.apps.example.com", false, "case does not matter"),
        (
            "tenant",
            "a.team.apps.example.com",
            false,
            "the API's wildcard stands for it",
        ),
        ("tenant", "*.team.apps.example.com", false, "the API's wildcard"),
        (
            "tenant",
            "a.b.team.apps.example.com",
            true,
            "a wildcard stands for one label",
        ),
    ] {
        let decided = alone(workspace, hostname, |_| {});
        assert_eq!(
            decided.certificates.len(),
            usize::from(issued),
            "{hostname}: {reason}"
        );
        assert_eq!(decided.denied.is_empty(), issued, "{:?}", decided.denied);
    }
}

#[test]
fn what_is_denied_is_told() {
    let lost = alone("tenant", "shop.apps.example.com", |listener| {
        listener.not_served = Some("somebody else has port 443 and this host name".to_owned());
    });
    assert_eq!(lost.certificates, []);
    let policy = policy("p", 1, json!({}), None);
    let told = conditions(&policy, &lost.standing, (&[], &lost.denied), &[]);
    assert_eq!((told[1].status(), told[1].reason), ("False", "Unknown"));
    assert_eq!(
        told[1].message,
        "TLSPolicy has encountered some issues: listener web: somebody else has port 443 and this host name"
    );
    let elsewhere = alone("tenant", "shop.apps.example.com", |listener| {
        listener.certificates.clear();
        listener
            .not_permitted
            .push("Secret other/web is not permitted".to_owned());
    });
    assert_eq!(
        elsewhere.denied,
        ["listener web: Secret other/web is not permitted"]
    );
}
