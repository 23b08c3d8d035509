//! What follows from what watches report, in scripts.

use std::sync::Arc;

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

fn delete(uids: &[&str]) -> Vec<Work> {
    uids.iter().map(|uid| Work::Delete((*uid).to_owned())).collect()
}

#[test]
fn objects_without_ties_cost_nothing() {
    let mut graph = Graph::default();
    assert!(graph.observe(&kind("pods"), &object("a", &[])).work.is_empty());
    assert_eq!(graph.len(), 0);
}

#[test]
fn a_claim_is_checked_until_the_owner_is_observed() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    assert_eq!(
        graph.observe(&pods, &object("child", &["owner"])).work,
        delete(&["child"])
    );
    assert!(!graph.glance("child").unwrap().settled);
    assert!(graph.observe(&pods, &object("owner", &[])).work.is_empty());
    assert!(graph.glance("child").unwrap().settled);
    assert!(
        graph.observe(&pods, &object("other", &["owner"])).work.is_empty(),
        "the owner is known by now"
    );
    // Seen again, nothing is new.
    assert!(graph.observe(&pods, &object("child", &["owner"])).work.is_empty());
}

#[test]
fn dependents_of_the_deleted_are_looked_at() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&pods, &object("child", &["owner"]));
    graph.observe(&pods, &object("owner", &[]));
    assert_eq!(graph.remove("owner"), delete(&["child"]));
    let reference = &object("", &["owner"]).owner_references.unwrap()[0];
    assert!(graph.is_absent(reference, "n"));
    assert!(
        !graph.is_absent(reference, "m"),
        "absence in one namespace says nothing about another"
    );
    assert!(graph.remove("child").is_empty());
    assert_eq!(graph.len(), 0, "nothing is kept of what is gone");
}

#[test]
fn a_look_that_was_overtaken_by_the_end_confirms_nothing() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&pods, &object("child", &["owner"]));
    let looked = object("owner", &[]);
    assert_eq!(graph.remove("owner"), delete(&["child"]));
    graph.confirm(&pods, &looked);
    assert!(!graph.glance("child").unwrap().settled);
}

#[test]
fn foreground_deletion_presses_the_dependents_and_hears_of_their_end() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&pods, &object("child", &["!owner"]));
    let marked = deleting(super::FOREGROUND, object("owner", &[]));
    assert_eq!(graph.observe(&pods, &marked).work, delete(&["child", "owner"]));
    assert!(graph.observe(&pods, &marked).work.is_empty(), "it begins once");
    let glance = graph.glance("owner").unwrap();
    assert!(glance.deleting_dependents && glance.dependents[0].blocking);
    assert_eq!(graph.remove("child"), delete(&["owner"]));
    assert!(graph.glance("owner").unwrap().dependents.is_empty());
}

#[test]
fn a_dependent_that_no_longer_blocks_releases_its_owner() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&pods, &object("child", &["!owner"]));
    graph.observe(&pods, &deleting(super::FOREGROUND, object("owner", &[])));
    // The changed reference is itself a reason to look at the dependent again.
    assert_eq!(
        graph.observe(&pods, &object("child", &["owner"])).work,
        delete(&["child", "owner"])
    );
    graph.observe(&pods, &object("child", &["!owner"]));
    assert_eq!(
        graph.observe(&pods, &object("child", &[])).work,
        delete(&["owner"])
    );
}

#[test]
fn orphaning_begins_once() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    graph.observe(&pods, &object("child", &["owner"]));
    let marked = deleting(super::ORPHAN, object("owner", &[]));
    assert_eq!(
        graph.observe(&pods, &marked).work,
        [Work::Orphan("owner".to_owned())]
    );
    assert!(graph.observe(&pods, &marked).work.is_empty());
}

#[test]
fn an_owner_in_another_namespace_is_no_owner() {
    let (pods, mut graph) = (kind("pods"), Graph::default());
    let elsewhere = ObjectMeta {
        namespace: Some("m".to_owned()),
        ..object("owner", &["x"])
    };
    graph.observe(&pods, &object("first", &["owner"]));
    let late = graph.observe(&pods, &elsewhere);
    assert_eq!(late.misplaced[0].0.name, "first");
    assert!(late.work.contains(&Work::Delete("first".to_owned())));
    let early = graph.observe(&pods, &object("second", &["owner"]));
    assert_eq!(early.misplaced[0].0.name, "second");
    assert_eq!(early.work, delete(&["second"]));
}

#[test]
fn a_list_tells_what_has_vanished() {
    let (pods, jobs, mut graph) = (kind("pods"), kind("jobs"), Graph::default());
    graph.list_begins(&pods);
    graph.observe(&pods, &object("owner", &["root"]));
    graph.observe(&jobs, &object("child", &["owner"]));
    assert!(graph.list_ends(&pods).is_empty());
    graph.list_begins(&pods);
    assert_eq!(
        graph.list_ends(&pods),
        delete(&["child"]),
        "the job is of another kind and stays"
    );
    assert!(graph.glance("child").is_some());
}

#[test]
fn a_kind_that_is_gone_leaves_claims_behind() {
    let (pods, jobs, mut graph) = (kind("pods"), kind("jobs"), Graph::default());
    graph.observe(&pods, &object("owner", &[]));
    graph.observe(&jobs, &object("child", &["owner"]));
    graph.observe(&pods, &object("owner", &[]));
    assert!(graph.glance("child").unwrap().settled);
    assert_eq!(graph.kind_gone(&pods), delete(&["child"]));
    assert!(!graph.glance("child").unwrap().settled);
}

#[test]
fn what_is_known_to_be_absent_is_bounded() {
    let mut graph = Graph::default();
    for number in 0..2000 {
        let claim = object("", &[&number.to_string()])
            .owner_references
            .unwrap()
            .remove(0);
        graph.add_absent(super::Identity::claimed(&claim, "n"));
    }
    assert_eq!(
        (graph.absent.len(), graph.absent_order.len()),
        (super::ABSENT, super::ABSENT)
    );
}
