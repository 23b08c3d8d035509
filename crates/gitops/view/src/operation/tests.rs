//! Operations, as `argocd` would have written them.

use super::*;

fn application() -> Value {
    json!({
        "metadata": {"name": "a"},
        "spec": {
            "source": {"repoURL": "r", "path": "p", "targetRevision": "main"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"], "retry": {"limit": 3}},
        },
        "status": {"history": [
            {"id": 0, "revision": "old", "source": {"repoURL": "r"}},
            {"id": 1, "revision": "new", "source": {"repoURL": "r"}},
        ]},
    })
}

#[test]
fn a_sync_takes_what_the_application_says() {
    assert_eq!(
        sync(
            &application(),
            &SyncRequest {
                user: "ann".to_owned(),
                ..SyncRequest::default()
            }
        ),
        Ok(json!({
            "initiatedBy": {"username": "ann"},
            "sync": {
                "syncStrategy": {"hook": {}},
                "syncOptions": ["CreateNamespace=true"],
                "source": {"repoURL": "r", "path": "p", "targetRevision": "main"},
                "revision": "main",
            },
            "retry": {"limit": 3},
        }))
    );
}

#[test]
fn a_sync_takes_what_it_is_told() {
    let request = SyncRequest {
        revision: "v2".to_owned(),
        prune: true,
        dry_run: true,
        strategy: "apply".to_owned(),
        force: true,
        options: vec!["Replace=true".to_owned()],
        resources: vec![json!({"kind": "Service", "name": "s"})],
        retry: Some(json!({"limit": 1})),
        info: vec![("why".to_owned(), "because".to_owned())],
        ..SyncRequest::default()
    };
    let operation = sync(&application(), &request).unwrap();
    assert_eq!(
        operation["sync"],
        json!({
            "syncStrategy": {"apply": {"force": true}}, "prune": true, "dryRun": true,
            "syncOptions": ["Replace=true"], "resources": [{"kind": "Service", "name": "s"}],
            "source": {"repoURL": "r", "path": "p", "targetRevision": "main"}, "revision": "v2",
        })
    );
    assert_eq!(operation["retry"], json!({"limit": 1}));
    assert_eq!(operation["info"], json!([{"name": "why", "value": "because"}]));
}

#[test]
fn several_sources_have_their_revisions() {
    let application = json!({"spec": {"sources": [
        {"repoURL": "a", "targetRevision": "1"}, {"repoURL": "b", "targetRevision": "2"}]}});
    let request = |revisions: &[(usize, &str)], revision: &str| SyncRequest {
        revisions: revisions.iter().map(|(at, it)| (*at, (*it).to_owned())).collect(),
        revision: revision.to_owned(),
        ..SyncRequest::default()
    };
    let operation = sync(&application, &request(&[(2, "9")], "")).unwrap();
    assert_eq!(operation["sync"]["revisions"], json!(["1", "9"]));
    assert_eq!(operation["sync"]["sources"], application["spec"]["sources"]);
    assert_eq!(
        sync(&application, &request(&[(3, "9")], "")).unwrap_err(),
        "source position is out of range"
    );
    assert_eq!(
        sync(&application, &request(&[(0, "9")], "")).unwrap_err(),
        "source position is out of range"
    );
    assert!(
        sync(&application, &request(&[], "9"))
            .unwrap_err()
            .contains("takes no --revision")
    );
}

#[test]
fn refusals() {
    let request = |change: fn(&mut SyncRequest)| {
        let mut request = SyncRequest::default();
        change(&mut request);
        request
    };
    let busy = |field: &str, value: Value| {
        let mut application = application();
        *application.pointer_mut(&format!("/{field}")).unwrap() = value;
        application
    };
    let mut operating = application();
    operating["operation"] = json!({"sync": {}});
    let going = busy("metadata", json!({"deletionTimestamp": "2026-11-16T10:00:00Z"}));
    let mut automated = application();
    automated["spec"]["syncPolicy"]["automated"] = json!({});
    for (application, request, why) in [
        (
            &operating,
            SyncRequest::default(),
            "another operation is already in progress",
        ),
        (&going, SyncRequest::default(), "application is deleting"),
        (
            &automated,
            request(|it| it.revision = "v2".to_owned()),
            "Cannot sync to v2: auto-sync currently set to main",
        ),
        (
            &application(),
            request(|it| it.strategy = "odd".to_owned()),
            "Unknown sync strategy: 'odd'",
        ),
    ] {
        assert_eq!(sync(application, &request).unwrap_err(), why);
    }
    assert!(sync(&automated, &request(|it| it.revision = "main".to_owned())).is_ok());
    assert!(
        rollback(&automated, None, false, "")
            .unwrap_err()
            .contains("auto-sync is enabled")
    );
}

#[test]
fn a_rollback_goes_where_it_was() {
    let operation = rollback(&application(), None, true, "ann").unwrap();
    assert_eq!(
        operation["sync"],
        json!({"syncStrategy": {"apply": {}}, "prune": true, "revision": "old", "source": {"repoURL": "r"},
               "syncOptions": ["CreateNamespace=true"]})
    );
    assert_eq!(
        rollback(&application(), Some(1), false, "").unwrap()["sync"]["revision"],
        "new"
    );
    assert_eq!(
        rollback(&application(), Some(7), false, "").unwrap_err(),
        "application 'a' does not have deployment id '7' in history"
    );
    let once = json!({"metadata": {"name": "a"}, "status": {"history": [{"id": 0}]}});
    assert_eq!(
        rollback(&once, None, false, "").unwrap_err(),
        "application 'a' should have at least two successful deployments"
    );
}

#[test]
fn a_deletion_has_the_finalizer_that_it_needs() {
    const OURS: &str = "resources-finalizer.argocd.argoproj.io";
    const BACK: &str = "resources-finalizer.argocd.argoproj.io/background";
    for (present, cascade, policy, expected) in [
        (&[][..], true, "", Some(json!([OURS]))),
        (&[OURS], true, "foreground", None),
        (
            &["resources-finalizer.argocd.argoproj.io/foreground"],
            true,
            "",
            None,
        ),
        (&["x", OURS], true, "background", Some(json!(["x", BACK]))),
        (&["x", BACK], false, "", Some(json!(["x"]))),
        (&["x"], false, "", None),
    ] {
        let application = json!({"metadata": {"finalizers": present}});
        assert_eq!(
            finalizers(&application, cascade, policy),
            Ok(expected),
            "{present:?} {cascade} {policy}"
        );
    }
    assert_eq!(
        finalizers(&json!({}), true, "odd"),
        Err("invalid propagation policy: odd".to_owned())
    );
}

#[test]
fn an_approval_is_read_from_what_the_guard_says() {
    let held = fairway_gitops_sync::guard::Held {
        reasons: vec!["the machine web/vm".to_owned()],
        deletions: std::collections::BTreeMap::new(),
        digest: "0123456789abcdef".to_owned(),
    };
    let waiting = json!({"status": {"operationState": {"message": held.message("a")}}});
    assert_eq!(awaited_approval(&waiting), Some("0123456789abcdef"));
    assert_eq!(awaited_approval(&json!({})), None);
}
