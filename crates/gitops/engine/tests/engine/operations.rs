//! Syncs with options: selective, dry, to an older revision, in windows, with namespaces, with approval.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{REPO, World, automated, eventually, everywhere, map};

fn phase(found: &Value) -> &str {
    found["status"]["operationState"]["phase"]
        .as_str()
        .unwrap_or_default()
}

fn message(found: &Value) -> &str {
    found["status"]["operationState"]["message"]
        .as_str()
        .unwrap_or_default()
}

async fn sync(world: &World, operation: Value) -> Value {
    world
        .patch_application("web", json!({"operation": {"sync": operation}}))
        .await;
    world
        .until("web", "done", |found| {
            found.get("operation").is_none() && phase(found) != "Running"
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_runs_selections_and_rollbacks() {
    everywhere(|world: World| async move {
        let first = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                ("web/b.yaml", &map("b", "1", &[])),
            ],
        );
        world.application("web", json!({})).await;
        let found = sync(&world, json!({"dryRun": true})).await;
        assert_eq!(phase(&found), "Succeeded");
        assert!(world.config_map("a").await.is_none(), "it was only tried");
        assert!(found["status"]["history"].is_null());

        let found = sync(&world, json!({"resources": [{"kind": "ConfigMap", "name": "b"}]})).await;
        assert_eq!(phase(&found), "Succeeded");
        assert!(world.config_map("a").await.is_none() && world.config_map("b").await.is_some());
        assert!(found["status"]["history"].is_null(), "a part is not a deployment");

        sync(&world, json!({})).await;
        let second = world
            .sources
            .push(REPO, &[("web/a.yaml", &map("a", "2", &[])), ("web/b.yaml", "")]);
        world
            .until("web", "behind", |found| {
                found["status"]["sync"]["revision"] == second
            })
            .await;
        let found = sync(&world, json!({"prune": false})).await;
        let kept = found["status"]["operationState"]["syncResult"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|result| result["name"] == "b")
            .unwrap()
            .clone();
        assert_eq!(
            (kept["status"].as_str(), kept["message"].as_str()),
            (Some("PruneSkipped"), Some("ignored (requires pruning)"))
        );
        assert_eq!(found["status"]["sync"]["status"], "OutOfSync");
        let found = sync(&world, json!({"prune": true})).await;
        assert_eq!(found["status"]["sync"]["status"], "Synced");
        assert!(world.config_map("b").await.is_none());

        // What was pruned can be brought back, where tombstones are served.
        if std::env::var("FAIRWAY_ENGINE_KUBECONFIG").is_err() {
            let stones = world
                .api
                .list("/apis/fairway.dev/v1alpha1/tombstones")
                .await
                .unwrap();
            assert_eq!(stones.len(), 1);
            assert_eq!(stones[0]["spec"]["object"]["metadata"]["name"], "b");
            assert_eq!(stones[0]["spec"]["application"], "argocd/web");
        }

        // As `argocd app rollback` writes it.
        let history = found["status"]["history"].as_array().unwrap().clone();
        assert_eq!(history[0]["revision"], first);
        let found = sync(
            &world,
            json!({"revision": first, "source": history[0]["source"], "prune": true}),
        )
        .await;
        assert_eq!(phase(&found), "Succeeded");
        assert_eq!(world.config_map("a").await.unwrap()["data"]["value"], "1");
        assert!(world.config_map("b").await.is_some());
        assert_eq!(
            found["status"]["sync"]["status"], "OutOfSync",
            "what is declared is newer"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_is_made_and_kept() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(REPO, &[("web/a.yaml", &map("a", "1", &[]))]);
        let mut wanted = automated();
        wanted["spec"]["destination"] = json!({"namespace": "made"});
        wanted["spec"]["syncPolicy"]["syncOptions"] = json!(["CreateNamespace=true"]);
        wanted["spec"]["syncPolicy"]["managedNamespaceMetadata"] = json!({"labels": {"team": "shop"}});
        world.application("web", wanted).await;
        world.synced("web", &commit).await;
        let namespace = world.api.get("/api/v1/namespaces/made").await.unwrap().unwrap();
        assert_eq!(namespace["metadata"]["labels"]["team"], "shop");
        assert!(
            world
                .api
                .get("/api/v1/namespaces/made/configmaps/a")
                .await
                .unwrap()
                .is_some()
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_side_apply_replace_and_force() {
    everywhere(|world: World| async move {
        let service = |ip: &str| format!("apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  clusterIP: {ip:?}\n  ports:\n  - port: 80\n");
        let own = |option: &str, value: &str| map("own", value, &[("argocd.argoproj.io/sync-options", option)]);
        let commit = world.sources.commit(REPO, &[
            ("web/ssa.yaml", &own("ServerSideApply=true", "1")),
            ("web/s.yaml", &service("None")),
        ]);
        world.application("web", automated()).await;
        world.synced("web", &commit).await;
        let applied = world.config_map("own").await.unwrap();
        let entry = &applied["metadata"]["managedFields"][0];
        assert_eq!((entry["manager"].as_str(), entry["operation"].as_str()), (Some("argocd-controller"), Some("Apply")));
        assert!(applied["metadata"]["annotations"].get("kubectl.kubernetes.io/last-applied-configuration").is_none());
        let commit = world.sources.push(REPO, &[("web/ssa.yaml", &own("Replace=true", "2"))]);
        let found = world.synced("web", &commit).await;
        let result = found["status"]["operationState"]["syncResult"]["resources"].as_array().unwrap().iter()
            .find(|result| result["name"] == "own").unwrap().clone();
        assert_eq!(result["message"], "configmap/own replaced");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_keep_syncs_back() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(REPO, &[("web/a.yaml", &map("a", "1", &[]))]);
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "closed"},
            "spec": {
                "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                "syncWindows": [{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}],
            },
        });
        world.create("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", project).await;
        let mut wanted = automated();
        wanted["spec"]["project"] = json!("closed");
        world.application("web", wanted).await;
        world.until("web", "OutOfSync", |found| found["status"]["sync"]["status"] == "OutOfSync").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(world.config_map("a").await.is_none());
        assert!(world.get_application("web").await["status"]["operationState"].is_null(), "nothing was begun");
        world.patch_application("web", json!({"operation": {"sync": {}}})).await;
        world.until("web", "held back", |found| message(found) == "Sync operation blocked by sync window").await;
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/closed";
        world.api.merge(path, &json!({"spec": {"syncWindows": null}})).await.unwrap();
        world.synced("web", &commit).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_made_good_waits_for_approval() {
    everywhere(|world: World| async move {
        let many: Vec<(String, String)> = (0..12)
            .map(|n| (format!("web/{n}.yaml"), map(&format!("m{n}"), "1", &[])))
            .collect();
        let files: Vec<(&str, &str)> = many
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let first = world.sources.commit(REPO, &files);
        world
            .sources
            .commit(REPO, &[("web/keep.yaml", &map("keep", "1", &[]))]);
        world.application("web", automated()).await;
        let _ = first;
        world
            .until("web", "Synced", |found| {
                found["status"]["sync"]["status"] == "Synced"
            })
            .await;
        let gone: Vec<(&str, &str)> = many.iter().map(|(path, _)| (path.as_str(), "")).collect();
        let second = world.sources.push(REPO, &gone);
        let found = world
            .until("web", "held", |found| {
                message(found).starts_with("waiting for approval")
            })
            .await;
        assert!(
            message(&found).contains("12 objects (more than 10)"),
            "{}",
            message(&found)
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(world.config_map("m0").await.is_some());
        let digest = message(&found).rsplit(": ").next().unwrap().to_owned();
        world
            .patch_application(
                "web",
                json!({"metadata": {"annotations": {"fairway.dev/approve-sync": digest}}}),
            )
            .await;
        let found = world.synced("web", &second).await;
        eventually("they go", || async { world.config_map("m0").await.is_none() }).await;
        let left = &found["metadata"]["annotations"]["fairway.dev/approve-sync"];
        assert!(left.is_null(), "it has been used: {left}");

        // Others of the same names are not those that somebody has approved of, though he says the same again.
        let third = world.sources.push(REPO, &files);
        world.synced("web", &third).await;
        let again = json!({"metadata": {"annotations": {"fairway.dev/approve-sync": digest}}});
        world.patch_application("web", again).await;
        world.sources.push(REPO, &gone);
        let found = world
            .until("web", "held again", |found| {
                message(found).starts_with("waiting for approval")
            })
            .await;
        assert!(!message(&found).ends_with(&digest), "{}", message(&found));
        assert!(world.config_map("m0").await.is_some());
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_approval_is_for_all_waves() {
    everywhere(|world: World| async move {
        let disk = |name: &str, wave: &str| {
            format!(
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {name}\n  finalizers: [example.com/held]\n  \
                 annotations:\n    argocd.argoproj.io/sync-wave: {wave:?}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                 resources:\n    requests:\n      storage: 1Gi\n"
            )
        };
        let path = |name: &str| format!("/api/v1/namespaces/shop/persistentvolumeclaims/{name}");
        let at = |name: &'static str| {
            let (api, path) = (&world.api, path(name));
            async move { api.get(&path).await.unwrap() }
        };
        let is_going = |found: Option<Value>| {
            found.is_none_or(|found| !found["metadata"]["deletionTimestamp"].is_null())
        };
        let keep = map("keep", "1", &[]);
        let (early, late) = (disk("early", "0"), disk("late", "1"));
        world.sources.commit(
            REPO,
            &[("web/a.yaml", &keep), ("web/early.yaml", &early), ("web/late.yaml", &late)],
        );
        world.application("web", automated()).await;
        for name in ["early", "late"] {
            eventually("the disk", || async { at(name).await.is_some() }).await;
            // Nobody else binds it, and the next wave waits for that.
            let bound = json!({"status": {"phase": "Bound"}});
            world.api.merge(&format!("{}/status", path(name)), &bound).await.unwrap();
        }
        let last = world.sources.push(REPO, &[("web/early.yaml", ""), ("web/late.yaml", "")]);
        let found = world
            .until("web", "held", |found| message(found).starts_with("waiting for approval"))
            .await;
        let digest = message(&found).rsplit(": ").next().unwrap();
        let approved = json!({"metadata": {"annotations": {"fairway.dev/approve-sync": digest}}});
        world.patch_application("web", approved).await;
        for name in ["late", "early"] {
            eventually("it goes", || async { is_going(at(name).await) }).await;
            if name == "late" {
                assert!(!is_going(at("early").await), "waves are pruned one after the other");
            }
            let finalizers = json!({"metadata": {"finalizers": null}});
            world.api.merge(&path(name), &finalizers).await.unwrap();
            eventually("it is gone", || async { at(name).await.is_none() }).await;
        }
        let found = world.synced("web", &last).await;
        let left = &found["metadata"]["annotations"]["fairway.dev/approve-sync"];
        assert!(left.is_null(), "it has been used: {left}");
        world.end().await;
    })
    .await;
}
