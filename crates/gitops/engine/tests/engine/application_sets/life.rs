//! What a set does to its Applications over time: policies, strangers' changes, errors, and the end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{APPLICATIONS, SETS, condition, list, set, text};
use crate::harness::{At, REPO, World, eventually, everywhere, map};

fn path(application: &str) -> String {
    format!("{APPLICATIONS}/{application}")
}

/// Applications without a will of their own, which nobody syncs.
fn idle(name: &str, names: &[&str], more: Value) -> Value {
    let mut object = set(name, list(names), more);
    object["spec"]["template"]["spec"]["syncPolicy"] = Value::Null;
    object
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_say_what_may_be_done() {
    everywhere(|world: World| async move {
        for (policy, updates, deletes) in [
            ("create-only", false, false),
            ("create-update", true, false),
            ("create-delete", false, true),
            ("sync", true, true),
        ] {
            let (a, b, c) = (
                format!("a-{policy}"),
                format!("b-{policy}"),
                format!("c-{policy}"),
            );
            let object = idle(
                policy,
                &[&a, &b],
                json!({"syncPolicy": {"applicationsSync": policy, "preserveResourcesOnDeletion": true}}),
            );
            world.set(object).await;
            eventually("both are there", || async {
                let names = world.names().await;
                names.contains(&a) && names.contains(&b)
            })
            .await;
            let found = world.get_application(&a).await;
            assert!(
                found["metadata"].get("finalizers").is_none(),
                "what is deployed stays"
            );
            let change = json!({"spec": {"generators": list(&[&a, &c]),
                "template": {"spec": {"source": {"targetRevision": "v2"}}}}});
            world.patch_set(policy, change).await;
            eventually("the third is there", || async {
                world.names().await.contains(&c)
            })
            .await;
            // Everything is done in the pass that made the third.
            let done = || async {
                let a = world.get_application(&a).await;
                let is_updated = text(&a, "/spec/source/targetRevision") == "v2";
                let is_deleted = !world.names().await.contains(&b);
                (is_updated, is_deleted) == (updates, deletes)
            };
            eventually(policy, done).await;
            world.up_to_date(policy).await;
            assert!(done().await, "{policy}");
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changes_is_put_right_and_nothing_else_is_written() {
    everywhere(|world: World| async move {
        world.sources.commit(REPO, &[("README.md", "x")]);
        let more = json!({
            "preservedFields": {"annotations": ["mine"]},
            "ignoreApplicationDifferences": [{"jsonPointers": ["/spec/source/targetRevision"]}],
        });
        world.set(idle("all", &["a", "b"], more)).await;
        world.until_names(&["a", "b"]).await;
        let compared = |it: &Value| !text(it, "/status/sync/status").is_empty();
        let before = world.until("b", "compared", compared).await;
        let change = json!({
            "metadata": {"annotations": {"mine": "1", "theirs": "2"}, "labels": {"x": "y"}},
            "spec": {"project": "other", "source": {"targetRevision": "v9"}},
        });
        world.api.merge(&path("a"), &change).await.unwrap();
        let found = world
            .until("a", "as the set wants it", |it| {
                text(it, "/spec/project") == "default" && it["metadata"]["labels"].get("x").is_none()
            })
            .await;
        assert_eq!(
            text(&found, "/spec/source/targetRevision"),
            "v9",
            "that is not the set's"
        );
        let annotations = &found["metadata"]["annotations"];
        assert_eq!(
            (text(annotations, "/mine"), annotations.get("theirs")),
            ("1", None)
        );
        // What is deleted by hand is made again.
        world
            .api
            .merge(&path("a"), &json!({"metadata": {"finalizers": null}}))
            .await
            .unwrap();
        world.api.delete(&path("a")).await.unwrap();
        eventually("it is made again", || async {
            let found = world.get_application("a").await;
            !text(&found, "/metadata/uid").is_empty() && found["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
        // A refresh looks at everything, and writes nothing that is as it should be.
        let refresh =
            json!({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}});
        world.patch_set("all", refresh).await;
        world
            .until_set("all", "refreshed", |set| {
                let annotations = set["metadata"]["annotations"].as_object();
                annotations.is_none_or(|all| !all.contains_key("argocd.argoproj.io/application-set-refresh"))
            })
            .await;
        let after = world.get_application("b").await;
        assert_eq!(
            after["metadata"]["resourceVersion"],
            before["metadata"]["resourceVersion"]
        );
        let events = world.events("all").await;
        assert_eq!(
            events.iter().filter(|it| it.contains("\"b\"")).count(),
            1,
            "{events:?}"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_deletes_nothing() {
    everywhere(|world: World| async move {
        world
            .sources
            .commit(REPO, &[("apps/a/map.yaml", &map("a", "1", &[]))]);
        let git = json!({"git": {"repoURL": REPO, "revision": "main", "directories": [{"path": "apps/*"}]}});
        let mut object = set("dirs", json!([git, {"list": {"elements": []}}]), json!({}));
        object["spec"]["template"]["metadata"]["name"] = json!("{{ .path.basename }}");
        object["spec"]["template"]["spec"]["source"]["path"] = json!("{{ .path.path }}");
        world.set(object).await;
        world.until_names(&["a"]).await;
        world.up_to_date("dirs").await;
        world.sources.set_unreachable(REPO, true);
        let found = world.wrong("dirs", "cannot be reached").await;
        assert_eq!(
            found["status"]["resources"][0]["name"], "a",
            "what was known of them stays"
        );
        world.until_names(&["a"]).await;
        // It recovers by itself, with what was pushed meanwhile.
        world
            .sources
            .commit(REPO, &[("apps/b/map.yaml", &map("b", "1", &[]))]);
        world.sources.set_unreachable(REPO, false);
        world.until_names(&["a", "b"]).await;
        world.up_to_date("dirs").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_one_application_stops_no_other() {
    everywhere(|world: World| async move {
        let elements = json!([
            {"name": "good", "project": "default", "to": "in-cluster"},
            {"name": "twin", "project": "default", "to": "in-cluster"},
            {"name": "twin", "project": "default", "to": "in-cluster"},
            {"name": "lost", "project": "default", "to": "nowhere"},
            {"name": "poor", "project": "missing", "to": "in-cluster"},
        ]);
        let mut object = idle("mixed", &[], json!({}));
        object["spec"]["generators"] = json!([{"list": {"elements": elements}}]);
        object["spec"]["template"]["spec"]["project"] = json!("{{ .project }}");
        object["spec"]["template"]["spec"]["destination"] = json!({"name": "{{ .to }}", "namespace": "shop"});
        world.set(object).await;
        world.until_names(&["good"]).await;
        let found = world.wrong("mixed", "(and 2 more)").await;
        let (_, reason, message) = condition(&found, "ErrorOccurred");
        assert_eq!(reason, "ApplicationValidationError");
        assert_eq!(
            message,
            "ApplicationSet mixed contains applications with duplicate name: twin (and 2 more)"
        );
        assert_eq!(condition(&found, "ParametersGenerated").0, "True");
        // A project that is made wakes the set.
        let project = json!({"metadata": {"name": "missing", "namespace": "argocd"}, "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}});
        world
            .create("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", with_kind(project, "AppProject"))
            .await;
        world.until_names(&["good", "poor"]).await;

        // One that another set controls is left to it; one of nobody's is taken over.
        let application = |name: &str| {
            json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": {"project": "default",
                "source": {"repoURL": REPO, "path": "x"}, "destination": {"name": "in-cluster", "namespace": "shop"}}})
        };
        world.create(APPLICATIONS, with_kind(application("free"), "Application")).await;
        world.set(idle("second", &["good", "free"], json!({}))).await;
        let found = world.wrong("second", "is already owned by another ApplicationSet controller mixed").await;
        assert_eq!(condition(&found, "ErrorOccurred").1, "UpdateApplicationError");
        let free = world
            .until("free", "taken over", |it| !it["metadata"]["ownerReferences"].is_null())
            .await;
        assert_eq!(text(&free, "/spec/source/path"), "apps/free");
        assert_eq!(text(&free, "/metadata/ownerReferences/0/name"), "second");
        let good = world.get_application("good").await;
        assert_eq!(text(&good, "/metadata/ownerReferences/0/name"), "mixed");
        world.end().await;
    })
    .await;
}

fn with_kind(mut object: Value, kind: &str) -> Value {
    object["apiVersion"] = json!("argoproj.io/v1alpha1");
    object["kind"] = json!(kind);
    object
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_go_with_their_set_unless_they_may_not() {
    everywhere(|world: World| async move {
        let commit = world
            .sources
            .commit(REPO, &[("apps/a/map.yaml", &map("a", "1", &[]))]);
        world.set(set("all", list(&["a"]), json!({}))).await;
        world.synced("a", &commit).await;
        world.api.delete(&format!("{SETS}/all")).await.unwrap();
        world.until_names(&[]).await;
        eventually("what it deployed goes along", || async {
            world.config_map("a").await.is_none()
        })
        .await;
        // With a finalizer and a policy that deletes nothing they become nobody's.
        let mut kept = set(
            "kept",
            list(&["a"]),
            json!({"syncPolicy": {"applicationsSync": "create-update"}}),
        );
        kept["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        world.set(kept).await;
        world.synced("a", &commit).await;
        world.api.delete(&format!("{SETS}/kept")).await.unwrap();
        eventually("the set is gone", || async {
            world.get_set("kept").await.is_null()
        })
        .await;
        let found = world.get_application("a").await;
        assert!(found["metadata"].get("ownerReferences").is_none(), "{found}");
        assert!(world.config_map("a").await.is_some());
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_writes_nothing() {
    everywhere(|mut world: World| async move {
        let commit = world
            .sources
            .commit(REPO, &[("apps/a/map.yaml", &map("a", "1", &[]))]);
        world.set(set("all", list(&["a"]), json!({}))).await;
        let a = world.synced("a", &commit).await;
        let healthy = |set: &Value| text(set, "/status/resources/0/health/status") == "Healthy";
        let before = world.until_set("all", "told", healthy).await;
        world.stop_engine().await;
        world.start_engine();
        // It is at work again when it follows what changes.
        world
            .patch_set("all", json!({"spec": {"generators": list(&["a", "b"])}}))
            .await;
        world.until_names(&["a", "b"]).await;
        let version = |it: &Value| text(it, "/metadata/resourceVersion").to_owned();
        assert_eq!(version(&world.get_application("a").await), version(&a));
        let after = world.up_to_date("all").await;
        assert_eq!(
            after["status"]["conditions"], before["status"]["conditions"],
            "what says the same keeps its time"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_live_in_control_planes() {
    everywhere(|world: World| async move {
        // There may be one of an earlier scenario.
        let namespace = json!({"metadata": {"name": "openshift-gitops"}});
        let _ = world.api.create("/api/v1/namespaces", &namespace).await;
        let all =
            |namespace: &str, kind: &str| format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/{kind}");
        for namespace in ["shop", "openshift-gitops"] {
            let mut object = idle("all", &["there"], json!({}));
            object["metadata"]["namespace"] = json!(namespace);
            world.create(&all(namespace, "applicationsets"), object).await;
        }
        let found = format!("{}/there", all("openshift-gitops", "applications"));
        eventually("it is made", || async {
            world.api.get(&found).await.unwrap().is_some()
        })
        .await;
        let set = format!("{}/all", all("shop", "applicationsets"));
        let left = world.api.get(&set).await.unwrap().unwrap();
        assert!(left["status"].is_null(), "it is nobody's");
        for namespace in ["shop", "openshift-gitops"] {
            let set = format!("{}/all", all(namespace, "applicationsets"));
            world.api.delete(&set).await.unwrap();
        }
        eventually("it is gone", || async {
            world.api.get(&found).await.unwrap().is_none()
        })
        .await;
        world.end().await;
    })
    .await;
}

/// Run by hand: `cargo test -p fairway-gitops-engine --test engine -- --ignored --nocapture thousand`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
async fn a_thousand_applications_of_one_set() {
    let world = World::start(At::Root).await;
    let count: usize = std::env::var("APPLICATIONS").map_or(1000, |n| n.parse().unwrap());
    let names: Vec<String> = (0..count).map(|n| format!("app{n}")).collect();
    let files: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("apps/{name}/map.yaml"), map(name, "1", &[])))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world.sources.commit(REPO, &files);
    let git = json!([{"git": {"repoURL": REPO, "revision": "main", "directories": [{"path": "apps/*"}]}}]);
    let mut object = set("many", git, json!({}));
    object["spec"]["template"]["metadata"]["name"] = json!("{{ .path.basename }}");
    object["spec"]["template"]["spec"]["source"]["path"] = json!("{{ .path.path }}");
    let (begun, used) = (Instant::now(), crate::cost::cpu());
    world.set(object).await;
    let mut made = None;
    loop {
        let all = world.api.list(APPLICATIONS).await.unwrap();
        if all.len() == count && made.is_none() {
            made = Some((begun.elapsed(), crate::cost::cpu() - used));
        }
        let synced = all
            .iter()
            .filter(|it| text(it, "/status/sync/status") == "Synced")
            .count();
        if synced == count {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{synced} of {count}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!(
        "{count} made after {:?} (elapsed, processor), synced after {:?}, {:?} of a processor",
        made.unwrap(),
        begun.elapsed(),
        crate::cost::cpu() - used
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = crate::cost::cpu();
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!(
        "idle: {:.2} % of a processor",
        (crate::cost::cpu() - idle).as_secs_f64() * 10.0
    );
    let used = crate::cost::cpu();
    let begun = Instant::now();
    world
        .sources
        .push(REPO, &[("apps/extra/map.yaml", &map("extra", "1", &[]))]);
    world
        .until("extra", "synced", |it| {
            text(it, "/status/sync/status") == "Synced"
        })
        .await;
    println!(
        "one more after {:?}, {:?} of a processor",
        begun.elapsed(),
        crate::cost::cpu() - used
    );
    world.end().await;
}
