//! Which events ask for a count, and which kinds are watched.

use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::{ObjectKey, Reach, WorkspaceId};
use fairway_kernel_quota::Evaluator;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::quotas::Quotas;
use super::{choose, needs_only_common};

#[allow(clippy::needless_pass_by_value, reason = "the tests hand over JSON literals")]
fn quota(name: &str, wanted: Value, hard: Value, used: Value) -> DynamicObject {
    let object = json!({
        "metadata": {"name": name, "namespace": "n"}, "spec": {"hard": wanted}, "status": {"hard": hard, "used": used},
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_charge_asks_for_no_count() {
    let mut quotas = Quotas::new(&Reach::Every);
    let mut take = |event| {
        let consequences = quotas.take(event);
        (consequences.due.len(), consequences.names_changed)
    };
    let one = || json!({"secrets": "1"});
    let settled = |used: &str| quota("q", one(), one(), json!({"secrets": used}));
    assert_eq!(take(Event::Init), (0, false));
    assert_eq!(take(Event::InitApply(settled("0"))), (0, false));
    assert_eq!(take(Event::InitDone), (1, true), "what was missed is counted");
    assert_eq!(
        take(Event::Apply(settled("1"))),
        (0, false),
        "the server has charged it"
    );
    assert_eq!(
        take(Event::Apply(quota("q", json!({"secrets": "2"}), one(), one()))),
        (1, true),
        "other limits"
    );
    assert_eq!(
        take(Event::Apply(quota("q", json!({"secrets": "2"}), one(), one()))),
        (1, false),
        "limits that have not been taken over"
    );
    assert_eq!(
        take(Event::Apply(quota("new", one(), json!({}), json!({})))),
        (1, true),
        "a new one"
    );
    let secrets = Evaluator::of("", "secrets").unwrap();
    let (root, team) = (WorkspaceId::root(), WorkspaceId::parse("team").unwrap());
    let at = |namespace: &'static str| Some((&root, namespace));
    assert_eq!(quotas.concerned(&secrets, at("n")).len(), 2);
    assert_eq!(quotas.concerned(&secrets, at("m")).len(), 0);
    assert_eq!(quotas.concerned(&secrets, Some((&team, "n"))).len(), 0);
    assert_eq!(quotas.concerned(&secrets, None).len(), 2);
    assert_eq!(quotas.concerned(&Evaluator::Pods, None).len(), 0);
    quotas.take(Event::Delete(settled("1")));
    assert_eq!(quotas.concerned(&secrets, at("n")).len(), 1);
    let get = |name: &str| quotas.get(&ObjectKey::new(&root, "n", name));
    assert!(get("q").is_none() && get("new").is_some());
}

#[test]
fn only_kinds_that_are_limited_are_watched() {
    let kind = |group: &str, plural: &str, namespaced: bool| Kind {
        resource: ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: plural.to_owned(),
            plural: plural.to_owned(),
        },
        identity: String::new(),
        namespaced,
        verbs: vec!["list".to_owned(), "watch".to_owned()],
    };
    let mut served = Kinds::default();
    for kind in [
        kind("", "pods", true),
        kind("", "secrets", true),
        kind("", "events", true),
        kind("e.x", "widgets", true),
        kind("e.x", "worlds", false),
    ] {
        served.add(kind);
    }
    for (names, want) in [
        (&[][..], &[][..]),
        (&["requests.cpu"], &["pods"]),
        (&["secrets", "count/widgets.e.x"], &["secrets", "widgets"]),
        (&["count/worlds.e.x", "count/events"], &[]),
    ] {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = choose(&served, &names);
        let chosen: Vec<&str> = chosen.iter().map(|kind| kind.resource.plural.as_str()).collect();
        assert_eq!(chosen, want, "{names:?}");
    }
}

#[test]
fn a_workspace_is_asked_for_its_kinds_only_where_a_quota_counts_custom_ones() {
    let kind = |plural: &str, group: &str, identity: &str| Kind {
        resource: ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{group}/v1"),
            kind: plural.to_owned(),
            plural: plural.to_owned(),
        },
        identity: identity.to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    };
    let mut every = Kinds::default();
    every.add(kind("secrets", "", ""));
    every.add(kind("widgets", "e.x", "1"));
    for (limited, want) in [
        ("secrets", true),
        ("count/widgets.e.x", false),
        ("count/others.e.x", true),
    ] {
        let object = json!({"spec": {"hard": {limited: "1"}}});
        let quota = fairway_kernel_quota::Quota::from_object(&object);
        assert_eq!(needs_only_common(&quota, &every), want, "{limited}");
    }
}
