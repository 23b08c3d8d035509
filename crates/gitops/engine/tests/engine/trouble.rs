//! Bad input: each yields the condition that Argo CD's users know, and is recovered from without help.

use serde_json::{Value, json};

use crate::harness::{At, REPO, World, automated, eventually, everywhere, map};

fn condition<'a>(found: &'a Value, kind: &str) -> &'a str {
    let list = found["status"]["conditions"].as_array();
    let found = list
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind);
    found.map_or("", |condition| condition["message"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_rendered_leaves_what_runs_alone() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(REPO, &[("web/a.yaml", &map("a", "1", &[]))]);
        world.application("web", automated()).await;
        world.synced("web", &commit).await;
        world.sources.push(REPO, &[("web/a.yaml", "kind: [")]);
        let found = world
            .until("web", "in trouble", |found| {
                !condition(found, "ComparisonError").is_empty()
            })
            .await;
        assert!(
            condition(&found, "ComparisonError").starts_with("Failed to load target state: "),
            "{found}"
        );
        assert_eq!(found["status"]["sync"]["status"], "Unknown");
        assert!(world.config_map("a").await.is_some(), "what runs goes on");
        let commit = world.sources.push(REPO, &[("web/a.yaml", &map("a", "2", &[]))]);
        let found = world.synced("web", &commit).await;
        assert!(found["status"]["conditions"].is_null(), "{found}");
        // A repository that cannot be reached, and then can.
        world.sources.set_unreachable(REPO, true);
        world
            .patch_application(
                "web",
                json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
            )
            .await;
        world
            .until("web", "in trouble", |found| {
                condition(found, "ComparisonError").contains("cannot be reached")
            })
            .await;
        world
            .until("web", "looked at", |found| {
                let annotations = &found["metadata"]["annotations"];
                annotations.get("argocd.argoproj.io/refresh").is_none()
            })
            .await;
        world.sources.set_unreachable(REPO, false);
        world.synced("web", &commit).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spec_that_cannot_be_is_said_and_mended() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(REPO, &[("web/a.yaml", &map("a", "1", &[]))]);
        let mut wanted = automated();
        wanted["spec"]["project"] = json!("nobody");
        world.application("web", wanted).await;
        let says = async |what: &str, message: &str| {
            world.until("web", what, |found| condition(found, "InvalidSpecError").contains(message)).await;
        };
        says("without a project", "Application referencing project nobody which does not exist").await;
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "nobody"},
            "spec": {"sourceRepos": ["https://elsewhere/*"], "destinations": [{"server": "*", "namespace": "other"}]},
        });
        world.create("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", project).await;
        says("not permitted", "application repo https://git.example.com/shop/web.git is not permitted in project 'nobody'").await;
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/nobody";
        world.api.merge(path, &json!({"spec": {"sourceRepos": ["*"]}})).await.unwrap();
        says("nowhere", "do not match any of the allowed destinations").await;
        world.api.merge(path, &json!({"spec": {"destinations": [{"server": "*", "namespace": "shop"}]}})).await.unwrap();
        world.synced("web", &commit).await;
        world.patch_application("web", json!({"spec": {"destination": {"server": "https://nowhere.example.com"}}})).await;
        says("lost", "there are no clusters with this server: https://nowhere.example.com").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_the_api_refuses_fails_before_anything_is_done() {
    everywhere(|world: World| async move {
        let bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 99999\n";
        world.sources.commit(
            REPO,
            &[("web/a.yaml", &map("a", "1", &[])), ("web/bad.yaml", bad)],
        );
        let mut wanted = automated();
        wanted["spec"]["syncPolicy"]["retry"] = json!({"limit": 0});
        world.application("web", wanted).await;
        let found = world
            .until("web", "failed", |found| {
                found["status"]["operationState"]["phase"] == "Failed"
            })
            .await;
        let message = found["status"]["operationState"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("one or more objects failed to apply (dry run)"),
            "{message}"
        );
        assert!(
            condition(&found, "SyncError").starts_with("Failed last sync attempt to ["),
            "{found}"
        );
        assert!(world.config_map("a").await.is_none());
        let good = world.sources.push(REPO, &[("web/bad.yaml", "")]);
        world.synced("web", &good).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_and_repeated_objects_are_named() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                ("web/twice.yaml", &map("a", "1", &[])),
                ("other/a.yaml", &map("a", "1", &[])),
            ],
        );
        world.application("web", automated()).await;
        let found = world.synced("web", &commit).await;
        assert_eq!(
            condition(&found, "RepeatedResourceWarning"),
            "Resource /ConfigMap/shop/a appeared 2 times among application resources."
        );
        world
            .application("other", json!({"spec": {"source": {"path": "other"}}}))
            .await;
        let found = world
            .until("other", "told", |found| {
                !condition(found, "SharedResourceWarning").is_empty()
            })
            .await;
        assert_eq!(
            condition(&found, "SharedResourceWarning"),
            "ConfigMap/a is part of applications other and web"
        );
        world
            .patch_application(
                "other",
                json!({"operation": {"sync": {"syncOptions": ["FailOnSharedResource=true"]}}}),
            )
            .await;
        let found = world
            .until("other", "failed", |found| {
                found["status"]["operationState"]["phase"] == "Failed"
            })
            .await;
        assert!(
            found["status"]["operationState"]["message"]
                .as_str()
                .unwrap()
                .contains("is part of applications"),
            "{found}"
        );
        world.end().await;
    })
    .await;
}

/// Two machines of the golden path: each repository declares the Namespace that they share, and each Application says that it does not
/// mind whose mark it carries. What is shared without such a word is still told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_that_say_so_share_a_namespace() {
    everywhere(|world: World| async move {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shared\n  annotations:\n    \
                         argocd.argoproj.io/sync-options: Prune=false,Delete=false\n";
        let files = |value: &str| {
            let both = map("both", "1", &[]);
            [
                ("web/ns.yaml", namespace.to_owned()),
                ("web/a.yaml", map("a", value, &[])),
                ("web/both.yaml", both.clone()),
                ("other/ns.yaml", namespace.to_owned()),
                ("other/b.yaml", map("b", value, &[])),
                ("third/both.yaml", both),
            ]
        };
        let files_of = |value: &str| files(value).map(|(path, text)| (path.to_owned(), text));
        let first = files_of("1");
        let first: Vec<(&str, &str)> = first
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let commit = world.sources.commit(REPO, &first);
        let mut web = automated();
        web["metadata"] = json!({"finalizers": ["resources-finalizer.argocd.argoproj.io"]});
        web["spec"]["destination"] = json!({"namespace": "shared"});
        web["spec"]["ignoreDifferences"] = json!([
            {"kind": "Namespace", "jsonPointers": ["/metadata/annotations/argocd.argoproj.io~1tracking-id"]},
        ]);
        web["spec"]["syncPolicy"]["syncOptions"] =
            json!(["ServerSideApply=true", "RespectIgnoreDifferences=true"]);
        let (mut other, mut third) = (web.clone(), web.clone());
        other["spec"]["source"] = json!({"path": "other"});
        third["spec"]["source"] = json!({"path": "third"});
        third["spec"]["syncPolicy"] = json!({});
        world.application("web", web).await;
        world.synced("web", &commit).await;
        world.application("other", other).await;
        let found = world.synced("other", &commit).await;
        assert_eq!(condition(&found, "SharedResourceWarning"), "");
        let mark = async || {
            let found = world.api.get("/api/v1/namespaces/shared").await.unwrap().unwrap();
            found["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].clone()
        };
        assert_eq!(
            mark().await,
            "web:/Namespace:shared/shared",
            "who came first keeps it"
        );
        // Both are synced again and again, and neither takes it from the other.
        let second = files_of("2");
        let second: Vec<(&str, &str)> = second
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let commit = world.sources.push(REPO, &second);
        for name in ["web", "other"] {
            let found = world.synced(name, &commit).await;
            assert_eq!(condition(&found, "SharedResourceWarning"), "", "{name}");
        }
        assert_eq!(mark().await, "web:/Namespace:shared/shared");
        world.application("third", third).await;
        let found = world
            .until("third", "told", |found| {
                !condition(found, "SharedResourceWarning").is_empty()
            })
            .await;
        assert_eq!(
            condition(&found, "SharedResourceWarning"),
            "ConfigMap/both is part of applications third and web"
        );
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web";
        world.api.delete(path).await.unwrap();
        crate::harness::eventually("web goes", || async {
            world.get_application("web").await.is_null()
        })
        .await;
        assert_eq!(
            mark().await,
            "web:/Namespace:shared/shared",
            "the Namespace outlives who made it"
        );
        world.synced("other", &commit).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_account_may_do_what_its_roles_allow() {
    for at in [At::Root, At::Workspace] {
        if std::env::var("FAIRWAY_ENGINE_KUBECONFIG").is_ok() {
            return;
        }
        let world = World::start(at).await;
        let commit = world.sources.commit(REPO, &[("web/a.yaml", &map("a", "1", &[]))]);
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "tenant"},
            "spec": {
                "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                "destinationServiceAccounts": [{"server": "*", "namespace": "*", "defaultServiceAccount": "deployer"}],
            },
        });
        world
            .create(
                "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
                project,
            )
            .await;
        let mut wanted = automated();
        wanted["spec"]["project"] = json!("tenant");
        wanted["spec"]["syncPolicy"]["retry"] = json!({"limit": -1, "backoff": {"duration": "100ms"}});
        world.application("web", wanted).await;
        let found = world
            .until("web", "forbidden", |found| {
                found["status"]["operationState"]["message"]
                    .as_str()
                    .unwrap_or_default()
                    .contains("system:serviceaccount:shop:deployer")
            })
            .await;
        assert!(world.config_map("a").await.is_none(), "{found}");
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop";
        let role = json!({"metadata": {"name": "deploy"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]});
        world.create(&format!("{rbac}/roles"), role).await;
        let binding = json!({
            "metadata": {"name": "deploy"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deploy"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "shop"}],
        });
        world.create(&format!("{rbac}/rolebindings"), binding).await;
        world.synced("web", &commit).await;
        eventually("it is there", || async { world.config_map("a").await.is_some() }).await;
        world.end().await;
    }
}
