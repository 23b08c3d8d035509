//! Who is woken by what, and what is kept of it.

use fairway_controller::kinds::Kind;
use fairway_controller::{ObjectKey, Shutdown, WorkspaceId};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::{State, Watch};
use fairway_gitops_sync::key::ResourceKey;

fn config_maps() -> Kind {
    Kind {
        resource: ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
        },
        identity: String::new(),
        namespaced: true,
        verbs: Vec::new(),
    }
}

fn state() -> State {
    let mut state = State::default();
    let kind = config_maps();
    state
        .watches
        .insert(kind.name(), Watch::new(&kind, Shutdown::new().0));
    state
}

fn map(name: &str, version: u64, owner: &str) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string()}});
    if !owner.is_empty() {
        let id = format!("{owner}:/ConfigMap:shop/{name}");
        object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
    }
    object
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::new("", "ConfigMap", "shop", name)
}

#[test]
fn applications_hear_of_what_is_declared_and_of_what_is_marked() {
    let root = WorkspaceId::root();
    let team = WorkspaceId::parse("team").unwrap();
    let web = ObjectKey::new(&root, "argocd", "web");
    let mut state = state();
    state.interest(&web, &root, [key("a")].into());
    let woken = |list: Vec<ObjectKey>| !list.is_empty();
    assert!(woken(state.put(&root, map("a", 1, ""), None)), "declared");
    assert!(!woken(state.put(&root, map("b", 2, ""), None)), "nobody's");
    assert!(woken(state.put(&root, map("c", 3, "web"), None)), "marked");
    assert!(!woken(state.put(&root, map("c", 3, "web"), None)), "known");
    assert!(!woken(state.put(&root, map("c", 2, "web"), None)), "older");
    assert!(
        !woken(state.put(&team, map("a", 5, ""), None)),
        "another workspace's"
    );
    assert!(woken(state.put(&root, map("c", 6, ""), None)), "the mark is gone");
    assert!(state.text(&root, &key("c")).is_none());
    assert!(woken(state.remove(&root, &key("a"), None)));
    state.interest(&web, &root, Default::default());
    assert!(
        !woken(state.put(&root, map("a", 9, ""), None)),
        "no interest any more"
    );
}

#[test]
fn a_list_finds_what_has_vanished() {
    let root = WorkspaceId::root();
    let name = config_maps().name();
    let mut state = state();
    for object in ["a", "b"] {
        state.put(&root, map(object, 1, "web"), Some(&name));
    }
    state.begin_list(&name);
    state.listed(&name, &root, &key("a"));
    state.end_list(&name);
    let texts = state.marked(&root, "web", "app.kubernetes.io/instance");
    assert_eq!(texts.len(), 1);
    state.end_watch(&name);
    assert!(
        state
            .marked(&root, "web", "app.kubernetes.io/instance")
            .is_empty()
    );
}

#[test]
fn a_namespace_with_objects_of_others_is_needed() {
    let root = WorkspaceId::root();
    let [web, shop] = ["web", "shop"].map(|name| ObjectKey::new(&root, "argocd", name));
    let namespace = ResourceKey::new("", "Namespace", "", "shop");
    let mut state = state();
    state.interest(&web, &root, [namespace.clone()].into());
    assert!(!state.is_needed_by_others(&web, &root, &namespace));
    state.interest(&shop, &root, [key("a")].into());
    assert!(state.is_needed_by_others(&web, &root, &namespace));
    assert!(state.is_needed_by_others(&web, &root, &key("a")));
    assert!(!state.is_needed_by_others(&shop, &root, &key("a")));
}

#[test]
fn an_answer_that_comes_late_brings_nothing_back() {
    let root = WorkspaceId::root();
    let mut state = state();
    state.put(&root, map("a", 1, "web"), None);
    state.remove(&root, &key("a"), Some(3));
    state.put(&root, map("a", 2, "web"), None);
    assert!(
        state.text(&root, &key("a")).is_none(),
        "it was answered before it went"
    );
    state.put(&root, map("a", 4, "web"), None);
    assert!(state.text(&root, &key("a")).is_some(), "it was made again");
}
