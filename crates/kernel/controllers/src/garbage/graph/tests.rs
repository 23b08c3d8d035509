//! What follows from what watches report, in scripts.

use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_controller::kinds::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::ObjectMeta;
use kube::core::ApiResource;

use super::{Graph, Work};

fn kind(plural: &str) -> Arc<Kind> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: plural.to_uppercase(),
        plural: plural.to_owned(),
    };
    Arc::new(Kind {
        resource,
        identity: String::new(),
        namespaced: true,
        verbs: Vec::new(),
    })
}

/// An object `name` in `n` whose UID is its name. `!x` is a blocking reference to the pod `x`.
fn object(name: &str, owners: &[&str]) -> ObjectMeta {
    let owners = owners.iter().map(|owner| {
        let name = owner.trim_start_matches('!');
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "PODS".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            block_owner_deletion: Some(owner.starts_with('!')),
            ..OwnerReference::default()
        }
    });
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("n".to_owned()),
        uid: Some(name.to_owned()),
        owner_references: Some(owners.collect()),
        ..ObjectMeta::default()
    }
}

fn deleting(finalizer: &str, meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        deletion_timestamp: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
        finalizers: Some(vec![finalizer.to_owned()]),
        ..meta
    }
}

fn root() -> WorkspaceId {
    WorkspaceId::root()
}

/// Work of which the place is clear.
fn plain(work: Vec<super::WorkAt>) -> Vec<Work> {
    work.into_iter().map(|(_, work)| work).collect()
}

fn delete(uids: &[&str]) -> Vec<Work> {
    uids.iter().map(|uid| Work::Delete((*uid).to_owned())).collect()
}

#[test]
fn objects_without_ties_cost_nothing() {
    let mut graph = Graph::default();
    assert!(
        graph
            .observe(&root(), &kind("pods"), &object("a", &[]))
            .work
            .is_empty()
    );
    assert_eq!(graph.len(), 0);
}

#[test]
fn a_claim_is_checked_until_the_owner_is_observed() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    assert_eq!(
        graph.observe(&root(), &pods, &object("child", &["owner"])).work,
        delete(&["child"])
    );
    assert!(!graph.glance(&root(), "child").unwrap().settled);
    assert!(
        graph
            .observe(&root(), &pods, &object("owner", &[]))
            .work
            .is_empty()
    );
    assert!(graph.glance(&root(), "child").unwrap().settled);
    assert!(
        graph
            .observe(&root(), &pods, &object("other", &["owner"]))
            .work
            .is_empty(),
        "the owner is known by now"
    );
    // Seen again, nothing is new.
    assert!(
        graph
            .observe(&root(), &pods, &object("child", &["owner"]))
            .work
            .is_empty()
    );
}

#[test]
fn dependents_of_the_deleted_are_looked_at() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&root(), &pods, &object("child", &["owner"]));
    graph.observe(&root(), &pods, &object("owner", &[]));
    assert_eq!(graph.remove(&root(), "owner"), delete(&["child"]));
    let reference = &object("", &["owner"]).owner_references.unwrap()[0];
    assert!(graph.is_absent(&root(), reference, "n"));
    assert!(
        !graph.is_absent(&root(), reference, "m"),
        "absence in one namespace says nothing about another"
    );
    assert!(graph.remove(&root(), "child").is_empty());
    assert_eq!(graph.len(), 0, "nothing is kept of what is gone");
}

#[test]
fn a_look_that_was_overtaken_by_the_end_confirms_nothing() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&root(), &pods, &object("child", &["owner"]));
    let looked = object("owner", &[]);
    assert_eq!(graph.remove(&root(), "owner"), delete(&["child"]));
    graph.confirm(&root(), &pods, &looked);
    assert!(!graph.glance(&root(), "child").unwrap().settled);
}

#[test]
fn foreground_deletion_presses_the_dependents_and_hears_of_their_end() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&root(), &pods, &object("child", &["!owner"]));
    let marked = deleting(super::FOREGROUND, object("owner", &[]));
    assert_eq!(
        graph.observe(&root(), &pods, &marked).work,
        delete(&["child", "owner"])
    );
    assert!(
        graph.observe(&root(), &pods, &marked).work.is_empty(),
        "it begins once"
    );
    let glance = graph.glance(&root(), "owner").unwrap();
    assert!(glance.deleting_dependents && glance.dependents[0].blocking);
    assert_eq!(graph.remove(&root(), "child"), delete(&["owner"]));
    assert!(graph.glance(&root(), "owner").unwrap().dependents.is_empty());
}

#[test]
fn a_dependent_that_no_longer_blocks_releases_its_owner() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&root(), &pods, &object("child", &["!owner"]));
    graph.observe(&root(), &pods, &deleting(super::FOREGROUND, object("owner", &[])));
    // The changed reference is itself a reason to look at the dependent again.
    assert_eq!(
        graph.observe(&root(), &pods, &object("child", &["owner"])).work,
        delete(&["child", "owner"])
    );
    graph.observe(&root(), &pods, &object("child", &["!owner"]));
    assert_eq!(
        graph.observe(&root(), &pods, &object("child", &[])).work,
        delete(&["owner"])
    );
}

#[test]
fn orphaning_begins_once() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&root(), &pods, &object("child", &["owner"]));
    let marked = deleting(super::ORPHAN, object("owner", &[]));
    assert_eq!(
        graph.observe(&root(), &pods, &marked).work,
        [Work::Orphan("owner".to_owned())]
    );
    assert!(graph.observe(&root(), &pods, &marked).work.is_empty());
}

#[test]
fn an_owner_in_another_namespace_is_no_owner() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    let elsewhere = ObjectMeta {
        namespace: Some("m".to_owned()),
        ..object("owner", &["x"])
    };
    graph.observe(&root(), &pods, &object("first", &["owner"]));
    let late = graph.observe(&root(), &pods, &elsewhere);
    assert_eq!(late.misplaced[0].0.name, "first");
    assert!(late.work.contains(&Work::Delete("first".to_owned())));
    let early = graph.observe(&root(), &pods, &object("second", &["owner"]));
    assert_eq!(early.misplaced[0].0.name, "second");
    assert_eq!(early.work, delete(&["second"]));
}

#[test]
fn a_list_tells_what_has_vanished() {
    let (pods, jobs, mut graph) = (kind("pods"), kind("jobs"), Graph::default());
    graph.list_begins(&pods);
    graph.observe(&root(), &pods, &object("owner", &["root"]));
    graph.observe(&root(), &jobs, &object("child", &["owner"]));
    assert!(graph.list_ends(&pods).is_empty());
    graph.list_begins(&pods);
    assert_eq!(
        plain(graph.list_ends(&pods)),
        delete(&["child"]),
        "the job is of another kind and stays"
    );
    assert!(graph.glance(&root(), "child").is_some());
}

#[test]
fn a_kind_that_is_gone_leaves_claims_behind() {
    let (pods, jobs, mut graph) = (kind("pods"), kind("jobs"), Graph::default());
    graph.observe(&root(), &pods, &object("owner", &[]));
    graph.observe(&root(), &jobs, &object("child", &["owner"]));
    graph.observe(&root(), &pods, &object("owner", &[]));
    assert!(graph.glance(&root(), "child").unwrap().settled);
    let (work, places) = graph.kind_gone(&pods);
    assert_eq!((plain(work), places), (delete(&["child"]), vec![root()]));
    assert!(!graph.glance(&root(), "child").unwrap().settled);
}

#[test]
fn what_is_known_to_be_absent_is_bounded() {
    let mut graph = Graph::default();
    for number in 0..2000 {
        let claim = object("", &[&number.to_string()])
            .owner_references
            .unwrap()
            .remove(0);
        graph.add_absent(super::Identity::claimed(&root(), &claim, "n"));
    }
    assert_eq!(
        (graph.absent.len(), graph.absent_order.len()),
        (super::ABSENT, super::ABSENT)
    );
}

#[test]
fn a_reference_never_leads_out_of_its_workspace() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    let team = WorkspaceId::parse("team").unwrap();
    graph.observe(&root(), &pods, &object("child", &["owner"]));
    graph.observe(&root(), &pods, &object("owner", &[]));
    // The neighbour names the very same owner, and would hold it up.
    let claim = graph.observe(&team, &pods, &object("thief", &["!owner"]));
    assert_eq!(claim.work, delete(&["thief"]), "its owner is unknown there");
    let marked = deleting(super::FOREGROUND, object("owner", &[]));
    assert_eq!(
        graph.observe(&root(), &pods, &marked).work,
        delete(&["child", "owner"])
    );
    let glance = graph.glance(&root(), "owner").unwrap();
    assert_eq!(glance.dependents.len(), 1);
    assert!(graph.glance(&team, "owner").unwrap().kind.is_none());
    assert!(graph.remove(&team, "child").is_empty(), "not there");
    graph.remove(&root(), "owner");
    let reference = &object("", &["owner"]).owner_references.unwrap()[0];
    assert!(graph.is_absent(&root(), reference, "n") && !graph.is_absent(&team, reference, "n"));
    graph.remove(&team, "thief");
    graph.remove(&root(), "child");
    assert!(graph.workspaces.is_empty(), "nothing is kept of what is gone");
}

#[test]
fn one_list_is_of_all_workspaces_and_of_one_identity() {
    let mut graph = Graph::default();
    let team = WorkspaceId::parse("team").unwrap();
    let widgets = |identity: &str| {
        let kind = kind("pods");
        Arc::new(Kind {
            identity: identity.to_owned(),
            ..Kind::clone(&kind)
        })
    };
    let (ours, theirs) = (widgets("1"), widgets("2"));
    graph.list_begins(&ours);
    graph.observe(&root(), &ours, &object("a", &["x"]));
    graph.observe(&team, &theirs, &object("a", &["x"]));
    graph.observe(&team, &ours, &object("b", &["x"]));
    graph.list_begins(&ours);
    graph.observe(&root(), &ours, &object("a", &["x"]));
    graph.list_ends(&ours);
    assert!(graph.glance(&root(), "a").is_some());
    assert!(
        graph.glance(&team, "b").is_none(),
        "it was in no list of its kind"
    );
    assert!(
        graph.glance(&team, "a").is_some(),
        "another kind of the same name"
    );
    assert_eq!(graph.kind_gone(&theirs).1, [team.clone()]);
    assert!(graph.glance(&root(), "a").unwrap().kind.is_some());
}
