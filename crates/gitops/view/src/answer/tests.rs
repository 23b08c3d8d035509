//! Scenarios: what is noticed, and exactly what is told.

use serde_json::json;

use super::*;

const OLD: &str = "0000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const NEW: &str = "1111111bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn key(kind: &str, name: &str) -> ResourceKey {
    ResourceKey::new("", kind, "house", name)
}

fn compared(revision: &str, changes: &[(&str, &str, Action)]) -> Notice {
    Notice::Compared {
        revisions: vec![revision.to_owned()],
        changes: changes
            .iter()
            .map(|(kind, name, action)| (key(kind, name), *action))
            .collect(),
    }
}

fn result(kind: &str, name: &str, status: Option<ResultCode>, message: &str) -> TaskResult {
    TaskResult {
        wave: 0,
        result: ResourceResult {
            key: key(kind, name),
            version: "v1".to_owned(),
            status,
            message: message.to_owned(),
            hook_type: None,
            hook_phase: Some(OperationPhase::Running),
            sync_phase: Phase::Sync,
        },
    }
}

fn hook(name: &str, phase: OperationPhase, message: &str) -> TaskResult {
    let mut task = result("Job", name, None, message);
    task.result.hook_type = Some(Phase::PreSync);
    task.result.sync_phase = Phase::PreSync;
    task.result.hook_phase = Some(phase);
    task
}

fn syncing(message: &str, results: &[TaskResult]) -> Notice {
    Notice::Syncing {
        revisions: vec![NEW.to_owned()],
        message: message.to_owned(),
        results: results.to_vec(),
    }
}

/// An Application that syncs by itself, at the new commit.
fn written(sync: &str, health: &str, more: Value) -> Notice {
    let mut status = json!({"sync": {"status": sync, "revision": NEW}, "health": {"status": health}});
    for (name, value) in more.as_object().cloned().unwrap_or_default() {
        status[name] = value;
    }
    Notice::Written(json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}, "status": status}))
}

/// Hears notices, a tenth of a second apart; the lines, and whether it is over.
fn told(brief: bool, notices: &[Notice]) -> (Vec<String>, bool) {
    let (before, wanted) = (vec![OLD.to_owned()], vec![NEW.to_owned()]);
    let mut teller = Teller::new("argocd/lamps", before, wanted, brief);
    let mut lines = Vec::new();
    for (at, notice) in (1_u32..).zip(notices) {
        lines.extend(teller.hear(notice, Duration::from_millis(100) * at));
    }
    (lines, teller.is_over())
}

fn check(notices: &[Notice], expected: &[&str]) {
    let (lines, is_over) = told(false, notices);
    assert_eq!(lines, expected);
    assert!(is_over);
}

#[test]
fn a_sync_from_the_commit_to_health() {
    let notices = [
        // A look that was under way when the push came.
        compared(OLD, &[("ConfigMap", "other", Action::Change)]),
        compared(
            NEW,
            &[
                ("ConfigMap", "green", Action::Create),
                ("ConfigMap", "red", Action::Change),
                ("ConfigMap", "blue", Action::Prune),
            ],
        ),
        syncing(AT_WORK, &[hook("migrate", OperationPhase::Running, "")]),
        syncing(
            "waiting for completion of hook batch/Job/migrate",
            &[hook("migrate", OperationPhase::Running, "")],
        ),
        syncing(
            AT_WORK,
            &[
                hook("migrate", OperationPhase::Succeeded, "done"),
                result("ConfigMap", "red", None, ""),
            ],
        ),
        syncing(
            AT_WORK,
            &[
                hook("migrate", OperationPhase::Succeeded, "done"),
                result(
                    "ConfigMap",
                    "red",
                    Some(ResultCode::Synced),
                    "configmap/red configured",
                ),
                result(
                    "ConfigMap",
                    "green",
                    Some(ResultCode::Synced),
                    "configmap/green created",
                ),
                result("ConfigMap", "blue", Some(ResultCode::Pruned), "pruned"),
            ],
        ),
        written(
            "Synced",
            "Progressing",
            json!({"operationState": {"phase": "Succeeded"}, "resources": [
                {"kind": "ConfigMap", "namespace": "house", "name": "red", "status": "Synced"},
                {"group": "apps", "kind": "Deployment", "namespace": "house", "name": "web", "status": "Synced",
                 "health": {"status": "Progressing"}}]}),
        ),
        written(
            "Synced",
            "Healthy",
            json!({"operationState": {"phase": "Succeeded"}, "resources": [
                {"group": "apps", "kind": "Deployment", "namespace": "house", "name": "web", "status": "Synced",
                 "health": {"status": "Healthy"}}]}),
        ),
        written("Synced", "Degraded", json!({})),
    ];
    check(
        &notices,
        &[
            "argocd/lamps at 1111111: 1 to create, 1 to change, 1 to prune",
            "  + ConfigMap house/green",
            "  ~ ConfigMap house/red",
            "  - ConfigMap house/blue",
            "argocd/lamps: PreSync: Job house/migrate is running",
            "argocd/lamps: waiting for completion of hook batch/Job/migrate",
            "argocd/lamps: PreSync: Job house/migrate succeeded",
            "argocd/lamps: wave 0: ConfigMap house/red configured",
            "argocd/lamps: wave 0: ConfigMap house/green created",
            "argocd/lamps: wave 0: ConfigMap house/blue pruned",
            "argocd/lamps: Deployment house/web is Progressing",
            "argocd/lamps: Deployment house/web is Healthy",
            "argocd/lamps: Synced and Healthy 0.8 s after the push",
        ],
    );
    assert_eq!(
        told(true, &notices).0,
        ["argocd/lamps: Synced and Healthy 0.8 s after the push"]
    );
}

#[test]
fn what_the_commit_does_not_change_is_not_named() {
    let synced =
        |kind: &str, name: &str, message: &str| result(kind, name, Some(ResultCode::Synced), message);
    let mut after = synced("ConfigMap", "after", "configmap/after serverside-applied");
    after.result.hook_type = Some(Phase::PostSync);
    after.result.sync_phase = Phase::PostSync;
    after.result.hook_phase = Some(OperationPhase::Succeeded);
    let applied = [
        synced("ConfigMap", "red", "configmap/red serverside-applied"),
        synced("ConfigMap", "same", "configmap/same serverside-applied"),
        synced("ConfigMap", "like", "configmap/like unchanged"),
        // Its health has come in the place of what the apply said.
        synced("Service", "well", "Running"),
        synced("ConfigMap", "moved", "configmap/moved configured"),
        result("ConfigMap", "bad", Some(ResultCode::SyncFailed), "refused"),
        result("ConfigMap", "old", Some(ResultCode::PruneSkipped), "ignored"),
        after,
    ];
    let changes = compared(NEW, &[("ConfigMap", "red", Action::Change)]);
    let cases: [(&str, Vec<Notice>, &[&str]); 4] = [
        (
            "one of many changes",
            vec![changes.clone(), syncing(AT_WORK, &applied)],
            &[
                "argocd/lamps at 1111111: 1 to change",
                "  ~ ConfigMap house/red",
                "argocd/lamps: wave 0: ConfigMap house/red serverside-applied",
                "argocd/lamps: wave 0: ConfigMap house/moved configured",
                "argocd/lamps: wave 0: ConfigMap house/bad failed: refused",
                "argocd/lamps: wave 0: ConfigMap house/old stays: ignored",
                "argocd/lamps: PostSync: ConfigMap house/after succeeded",
            ],
        ),
        (
            "a later comparison takes nothing back",
            vec![
                changes,
                compared(NEW, &[("ConfigMap", "like", Action::Change)]),
                syncing(AT_WORK, &applied[..3]),
            ],
            &[
                "argocd/lamps at 1111111: 1 to change",
                "  ~ ConfigMap house/red",
                "argocd/lamps: wave 0: ConfigMap house/red serverside-applied",
                "argocd/lamps: wave 0: ConfigMap house/like unchanged",
            ],
        ),
        (
            "nothing changes",
            vec![compared(NEW, &[]), syncing(AT_WORK, &applied[..4])],
            &["argocd/lamps at 1111111: no object changes"],
        ),
        (
            "compared with another commit alone",
            vec![compared(OLD, &[]), syncing(AT_WORK, &applied[..4])],
            &[
                "argocd/lamps: wave 0: ConfigMap house/red serverside-applied",
                "argocd/lamps: wave 0: ConfigMap house/same serverside-applied",
                "argocd/lamps: wave 0: ConfigMap house/like unchanged",
                "argocd/lamps: wave 0: Service house/well synced",
            ],
        ),
    ];
    for (reason, notices, expected) in cases {
        assert_eq!(told(false, &notices).0, expected, "{reason}");
    }
}

#[test]
fn ends() {
    let waiting = "waiting for approval: the sync would delete the disk house/d; approve it with `fairway app approve lamps` \
                   or the annotation fairway.dev/approve-sync: 0123456789abcdef";
    let by_hand = Notice::Written(json!({"spec": {}, "status": {
        "sync": {"status": "OutOfSync", "revision": NEW}, "health": {"status": "Healthy"}}}));
    let leaves = Notice::Written(json!({"spec": {"syncPolicy": {"automated": {}}}, "status": {
        "sync": {"status": "OutOfSync", "revision": NEW}, "health": {"status": "Healthy"},
        "operationState": {"phase": "Succeeded"},
        "resources": [{"kind": "ConfigMap", "name": "a", "status": "OutOfSync", "requiresPruning": true}]}}));
    let newer = Notice::Written(json!({"status": {"sync": {"status": "Synced", "revision": "2222222c"}}}));
    let older = Notice::Written(json!({"status": {"sync": {"status": "Synced", "revision": OLD}}}));
    let cases: Vec<(&str, Vec<Notice>, &[&str])> = vec![
        (
            "nothing changes",
            vec![compared(NEW, &[]), written("Synced", "Healthy", json!({}))],
            &[
                "argocd/lamps at 1111111: no object changes",
                "argocd/lamps: Synced and Healthy 0.2 s after the push",
            ],
        ),
        (
            "approval",
            vec![written(
                "OutOfSync",
                "Healthy",
                json!({"operationState": {"phase": "Running", "message": waiting}}),
            )],
            &[
                "argocd/lamps: waiting for approval: the sync would delete the disk house/d; approve it with `fairway app \
                 approve lamps` or the annotation fairway.dev/approve-sync: 0123456789abcdef",
            ],
        ),
        (
            "by hand",
            vec![by_hand],
            &["argocd/lamps: OutOfSync, and it does not sync by itself: fairway app sync argocd/lamps"],
        ),
        (
            "without pruning",
            vec![leaves],
            &[
                "argocd/lamps: OutOfSync: 1 objects are left that the commit does not have, and it does not prune by itself: \
                 fairway app sync argocd/lamps --prune",
            ],
        ),
        (
            "failed",
            vec![
                syncing(
                    "no",
                    &[result(
                        "ConfigMap",
                        "red",
                        Some(ResultCode::SyncFailed),
                        "it is\ninvalid",
                    )],
                ),
                written(
                    "OutOfSync",
                    "Missing",
                    json!({"operationState": {"phase": "Failed", "message": "one or more objects failed to apply",
                        "syncResult": {"revision": NEW}}}),
                ),
            ],
            &[
                "argocd/lamps: wave 0: ConfigMap house/red failed: it is invalid",
                "argocd/lamps: the sync failed: one or more objects failed to apply",
            ],
        ),
        (
            "refused",
            vec![written(
                "OutOfSync",
                "Healthy",
                json!({"conditions": [{"type": "SyncError", "message": "auto-sync will wipe out all resources"}]}),
            )],
            &["argocd/lamps: OutOfSync: auto-sync will wipe out all resources"],
        ),
        (
            "in a window",
            vec![
                Notice::Held("Sync operation blocked by sync window".to_owned()),
                written("OutOfSync", "Healthy", json!({})),
            ],
            &["argocd/lamps: OutOfSync: Sync operation blocked by sync window"],
        ),
        (
            "not rendered",
            vec![written(
                "Unknown",
                "Healthy",
                json!({"conditions": [{"type": "ComparisonError", "message": "Failed to load target state: bad"}]}),
            )],
            &["argocd/lamps: cannot be compared: Failed to load target state: bad"],
        ),
        (
            "superseded",
            vec![older, newer],
            &["argocd/lamps: a newer commit, 2222222, took its place"],
        ),
        ("gone", vec![Notice::Gone], &["argocd/lamps: is gone"]),
    ];
    for (reason, notices, expected) in cases {
        let (lines, is_over) = told(false, &notices);
        assert_eq!(lines, expected, "{reason}");
        assert!(is_over, "{reason}");
    }
}

#[test]
fn what_recovers_is_waited_for() {
    let degraded = json!({"resources": [{"kind": "Deployment", "namespace": "house", "name": "web", "status": "Synced",
        "health": {"status": "Degraded", "message": "no image"}}]});
    let mut teller = Teller::new("a", vec![], vec![], false);
    let mut hear =
        |notice: &Notice, at: u64| (teller.hear(notice, Duration::from_secs(at)), teller.is_over());
    let bad = written("Synced", "Degraded", degraded);
    assert_eq!(
        hear(&bad, 1),
        (
            vec!["a: Deployment house/web is Degraded: no image".to_owned()],
            false
        )
    );
    assert_eq!(
        hear(&written("Synced", "Progressing", json!({})), 4),
        (vec![], false)
    );
    assert_eq!(hear(&bad, 5), (vec![], false));
    assert_eq!(hear(&bad, 9), (vec![], false));
    assert_eq!(
        hear(&bad, 10),
        (
            vec!["a: Synced, but Degraded (Deployment house/web: no image): fairway app get a".to_owned()],
            true
        )
    );
}

#[test]
fn a_failed_try_is_told_and_the_next_waited_for() {
    let retry =
        json!({"operationState": {"phase": "Running", "message": "bad. Retrying attempt #1 at 3:04PM."}});
    let (lines, is_over) = told(
        false,
        &[
            written("OutOfSync", "Missing", retry.clone()),
            written("OutOfSync", "Missing", retry),
        ],
    );
    assert_eq!(lines, ["argocd/lamps: bad. Retrying attempt #1 at 3:04PM."]);
    assert!(!is_over);
}

#[test]
fn much_is_cut_short() {
    let names: Vec<String> = (0..30).map(|number| format!("m{number:02}")).collect();
    let changes: Vec<(&str, &str, Action)> = names
        .iter()
        .map(|name| ("ConfigMap", name.as_str(), Action::Create))
        .collect();
    let (lines, _) = told(false, &[compared(NEW, &changes)]);
    assert_eq!(lines.len(), 22);
    assert_eq!(lines[0], "argocd/lamps at 1111111: 30 to create");
    assert_eq!(lines[21], "    and 10 more");
    assert_eq!(
        out_of_time(&["a/b", "a/c"], Duration::from_secs(60)),
        "after 60 s this goes on in the background; follow it with: fairway app wait a/b a/c"
    );
}
