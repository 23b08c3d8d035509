//! A run is struck right before and right after each single change that it makes, by every action: another process takes it up, and
//! everything is there once; or somebody stops it, and nothing is left.

use std::sync::Arc;

use fairway_controller::{Outcome, Shutdown, WorkspaceId};
use serde_json::{Value, json};

use super::Pass;
use crate::fake::{Fake, Strike, process};
use crate::voyage::Voyage;

const RUN: &str = "/apis/fairway.dev/v1alpha1/namespaces/default/voyages/run";
const TEMPLATE: &str = "/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates/t";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An action with what it is given.
struct Case {
    step: Value,
    /// It cannot know whether it was heard, and says it again: at least once, and documented so.
    says_again: bool,
    /// What it changed for good stays.
    stays: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "cases write them in place")]
fn case(action: &str, input: Value) -> Case {
    Case {
        step: json!({"id": "it", "action": action, "input": input}),
        says_again: false,
        stays: false,
    }
}

fn cases() -> Vec<Case> {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "new"}});
    vec![
        case("debug:log", json!({"message": "x"})),
        case("publish:gitea", json!({"repoUrl": "fairway?repo=web"})),
        case(
            "publish:gitea:pull-request",
            json!({"repoUrl": "fairway?repo=platform", "branchName": "add", "title": "Add"}),
        ),
        case(
            "argocd:create-resources",
            json!({"appName": "web", "repoUrl": "https://git.test/root/web", "path": ".", "namespace": "apps", "projectName": "team"}),
        ),
        case(
            "catalog:register",
            json!({"catalogInfoUrl": "https://git.test/root/web/src/branch/main/catalog-info.yaml"}),
        ),
        case("crossplane:create", json!({"object": map("made")})),
        case("kubernetes:apply", json!({"manifest": [map("one"), map("two")]})),
        // One that was there before is changed, and changed back.
        case("kubernetes:apply", json!({"object": map("known")})),
        case(
            "notification:send",
            json!({"title": "done", "email": "ann@example.com", "webhook": "https://hook.test/"}),
        ),
        Case {
            says_again: true,
            stays: true,
            ..case(
                "http:backstage:request",
                json!({"method": "POST", "path": "catalog/refresh", "body": {}}),
            )
        },
        Case {
            step: json!({"id": "it", "action": "crossplane:create", "each": ["x", "y"], "input": {"object": map("${{ each.value }}")}}),
            ..case("crossplane:create", json!({}))
        },
    ]
}

/// The world before the run.
fn before(case: &Case) -> Arc<Fake> {
    let fake = Arc::new(Fake::default());
    let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
    fake.put(
        "/api/v1",
        json!({"metadata": {}, "resources": [kind("configmaps", "ConfigMap")]}),
    );
    fake.put(
        "/apis/fairway.dev/v1alpha1",
        json!({"metadata": {}, "resources": [kind("cataloglocations", "CatalogLocation")]}),
    );
    fake.put(
        "/api/v1/namespaces/default",
        json!({"metadata": {"name": "default"}}),
    );
    fake.put(
        "/api/v1/namespaces/openshift-gitops",
        json!({"metadata": {"name": "openshift-gitops"}}),
    );
    fake.put(
        &format!("{MAPS}/known"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "known"}, "data": {"a": "old", "b": "kept"}}),
    );
    fake.put(
        "/apis/fairway.dev/v1alpha1/repositories/platform",
        json!({"metadata": {"name": "platform"}}),
    );
    fake.commit("platform/main", "begin");
    let steps = json!([
        {"id": "write", "action": "catalog:write", "input": {"filePath": "a.yaml", "entity": {"a": 1}}},
        case.step,
        {"id": "after", "action": "debug:log", "input": {"message": "${{ steps.it.output | dump }}"}},
    ]);
    fake.put(
        TEMPLATE,
        json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t", "namespace": "default"},
            "spec": {"type": "test", "steps": steps},
        }),
    );
    fake.put(
        RUN,
        json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage",
            "metadata": {"name": "run", "namespace": "default", "uid": "run-uid", "generation": 1},
            "spec": {"template": "template:default/t", "values": {}, "requestedBy": {"username": "ann"}},
        }),
    );
    fake
}

/// Whether a process drives the run as far as it goes; it does not if it is struck on the way.
async fn drive(fake: &Arc<Fake>) -> bool {
    for _ in 0..50 {
        let (_trigger, shutdown) = Shutdown::new();
        let voyage = Voyage::read(&WorkspaceId::root(), fake.get(RUN).unwrap());
        let pass = Pass::new(process(fake), voyage, shutdown).run();
        let outcome = tokio::select! {
            outcome = pass => outcome,
            () = fake.struck.notified() => return false,
        };
        match outcome.unwrap() {
            Outcome::Done => return true,
            Outcome::Again(_) | Outcome::Poll => {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    }
    panic!("the run does not end: {:#}", fake.get(RUN).unwrap());
}

fn phase(fake: &Fake) -> String {
    fake.get(RUN).unwrap()["status"]["phase"]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

fn told(fake: &Fake) -> usize {
    fake.get(RUN).unwrap()["status"]["notices"]
        .as_array()
        .map_or(0, Vec::len)
}

#[tokio::test]
async fn a_run_that_is_struck_at_any_change_does_everything_once_or_leaves_nothing() {
    let mut strikes = 0;
    for case in cases() {
        let untouched = before(&case).snapshot();
        let whole = before(&case);
        assert!(drive(&whole).await);
        assert_eq!(phase(&whole), "Succeeded", "{:#}", whole.get(RUN).unwrap());
        let (expected, changes) = (whole.snapshot(), whole.changes());
        for at in 1..=changes {
            for is_after in [false, true] {
                let strike = Strike { at, is_after };
                let named = format!("{} struck at {strike:?} of {changes}", case.step);
                let fake = before(&case);
                fake.strike(Some(strike));
                assert!(!drive(&fake).await, "{named}");
                strikes += 1;
                fake.strike(None);
                let was_running = fake.get(RUN).unwrap()["status"]["phase"] == "Running";
                let resumed = phase(&fake);
                assert!(drive(&fake).await, "{named}");
                assert_eq!(
                    phase(&fake),
                    "Succeeded",
                    "{named}, {resumed}: {:#}",
                    fake.get(RUN).unwrap()
                );
                let mut found = fake.snapshot();
                if case.says_again {
                    let said = found["asked"].as_array_mut().unwrap();
                    assert!((1..=2).contains(&said.len()), "{named}: {said:?}");
                    said.truncate(1);
                }
                assert_eq!(found, expected, "{named}");
                assert_eq!(told(&fake), told(&whole), "{named}");

                // The same, and who started it stops it.
                if !was_running {
                    continue;
                }
                let fake = before(&case);
                fake.strike(Some(strike));
                assert!(!drive(&fake).await, "{named}");
                fake.strike(None);
                let mut run = fake.get(RUN).unwrap();
                run["spec"]["cancel"] = true.into();
                run["metadata"]["generation"] = 2.into();
                fake.put(RUN, run);
                assert!(drive(&fake).await, "{named}");
                assert_eq!(phase(&fake), "Cancelled", "{named}: {:#}", fake.get(RUN).unwrap());
                if !case.stays {
                    assert_eq!(fake.snapshot(), untouched, "{named}, and stopped");
                }
            }
        }
    }
    assert!(strikes > 60, "{strikes}");
}
