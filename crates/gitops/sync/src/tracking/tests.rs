//! Marks, copies of marks, and conflicts.

use serde_json::json;

use super::*;

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}})
}

fn by(method: Method) -> Tracking {
    Tracking {
        method,
        ..Tracking::default()
    }
}

#[test]
fn ids_are_read_and_written() {
    for text in [
        "app:apps/Deployment:shop/web",
        "team_app:/ConfigMap:shop/a",
        "app:a.io/B:/c",
        "app:g/K:ns/na:me",
    ] {
        let id: TrackingId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
    }
    for text in [
        "",
        "app",
        "app:apps/Deployment",
        "app:Deployment:shop/web",
        "app:a/b/c:d/e",
        "app:a/b:c",
    ] {
        assert_eq!(text.parse::<TrackingId>(), Err(BadTrackingId), "{text}");
    }
}

#[test]
fn marks_are_found_again() {
    let long = "x".repeat(62) + "-y-z";
    let cases = [
        (
            Method::Annotation,
            "app",
            Some("app:apps/Deployment:shop/web"),
            None,
        ),
        (Method::Label, "app", None, Some("app")),
        (
            Method::AnnotationAndLabel,
            "app",
            Some("app:apps/Deployment:shop/web"),
            Some("app"),
        ),
        (Method::Label, long.as_str(), None, Some(long.as_str())),
    ];
    for (method, application, id, label) in cases {
        let tracking = by(method);
        let mut object = deployment();
        tracking.mark(&mut object, application, "default");
        assert_eq!(
            annotation::get(&object, TRACKING_ID),
            id.unwrap_or_default(),
            "{method:?}"
        );
        assert_eq!(
            annotation::label(&object, DEFAULT_LABEL),
            label.unwrap_or_default(),
            "{method:?}"
        );
        assert_eq!(
            tracking.owner(&object).as_deref(),
            Some(application),
            "{method:?}"
        );
        tracking.unmark(&mut object);
        assert_eq!(object, deployment(), "{method:?}");
    }
    let mut object = deployment();
    by(Method::AnnotationAndLabel).mark(&mut object, &long, "");
    assert_eq!(
        annotation::label(&object, DEFAULT_LABEL),
        "x".repeat(62),
        "cut before what a label cannot end in"
    );
    let mut cluster = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    Tracking::default().mark(&mut cluster, "app", "shop");
    assert_eq!(annotation::get(&cluster, TRACKING_ID), "app:/Namespace:shop/n");
}

#[test]
fn another_installation_s_objects_are_not_ours() {
    let ours = Tracking {
        installation: "one".to_owned(),
        ..Tracking::default()
    };
    let mut object = deployment();
    ours.mark(&mut object, "app", "");
    assert_eq!(ours.owner(&object).as_deref(), Some("app"));
    assert_eq!(Tracking::default().owner(&object), None);
    Tracking::default().mark(&mut object, "app", "");
    assert_eq!(ours.owner(&object), None, "the mark of the other was taken away");
}

#[test]
fn sharing_is_meant_where_the_mark_is_ignored() {
    use crate::diff::ignore::{IgnoreStatus, Ignored, ResourceIgnoreDifferences};
    let ignoring = |kind: &str, pointer: &str| {
        let entry = ResourceIgnoreDifferences {
            kind: kind.to_owned(),
            json_pointers: vec![pointer.to_owned()],
            ..Default::default()
        };
        Ignored::new(&[entry], &Default::default(), IgnoreStatus::All).unwrap()
    };
    let tracking = Tracking::default();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let (mut target, mut live) = (namespace.clone(), namespace.clone());
    tracking.mark(&mut target, "other", "shop");
    tracking.mark(&mut live, "web", "shop");
    let mark = "/metadata/annotations/argocd.argoproj.io~1tracking-id";
    let cases = [
        ("the mark is ignored", ignoring("Namespace", mark), &live, true),
        ("that of another kind", ignoring("ConfigMap", mark), &live, false),
        (
            "another field",
            ignoring("Namespace", "/metadata/labels"),
            &live,
            false,
        ),
        ("nobody's object", ignoring("Namespace", mark), &namespace, false),
    ];
    for (reason, ignored, live, expected) in cases {
        assert_eq!(
            tracking.is_shared_on_purpose(&target, live, &ignored),
            expected,
            "{reason}"
        );
    }
}

#[test]
fn copies_of_marks_are_no_ownership() {
    let tracking = Tracking::default();
    let mut original = deployment();
    tracking.mark(&mut original, "app", "");
    let mut copy = original.clone();
    copy["kind"] = json!("ReplicaSet");
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    tracking.mark(&mut namespace, "app", "shop");
    let unmarked = deployment();
    let mut old_group = original.clone();
    old_group["apiVersion"] = json!("extensions/v1beta1");
    let cases = [
        ("its own mark", &original, None, true),
        ("a copied mark", &copy, None, false),
        ("no mark", &unmarked, None, true),
        ("in the cluster", &namespace, None, true),
        ("the target decides", &copy, Some(&copy), true),
        ("a kind that moved", &old_group, Some(&original), false),
    ];
    for (reason, live, target, expected) in cases {
        assert_eq!(tracking.is_self_referenced(live, target), expected, "{reason}");
    }
    assert!(by(Method::Label).is_self_referenced(&copy, None));
}

#[test]
fn two_applications_that_claim_one_object_are_told() {
    let tracking = Tracking::default();
    let mut live = deployment();
    assert_eq!(tracking.conflict(&live, "app"), None);
    tracking.mark(&mut live, "app", "");
    assert_eq!(tracking.conflict(&live, "app"), None);
    assert_eq!(
        tracking.conflict(&live, "team_other").as_deref(),
        Some("Deployment/web is part of applications team/other and app")
    );
}

#[test]
fn a_change_of_method_is_no_difference() {
    let tracking = Tracking::default();
    let mut target = deployment();
    tracking.mark(&mut target, "app", "");
    let mut live = deployment();
    by(Method::Label).mark(&mut live, "app", "");
    tracking.normalize(&target, &mut live);
    assert_eq!(live, target);
    let mut moved = deployment();
    by(Method::AnnotationAndLabel).mark(&mut moved, "other", "");
    tracking.normalize(&target, &mut moved);
    assert_ne!(moved, target, "an object of another application is a difference");
}
