//! Each generator, and what wakes it.

use base64::Engine as _;
use fairway_gitops_appset::generator::PullRequest;
use serde_json::{Value, json};

use super::{APPLICATIONS, condition, list, set, text};
use crate::harness::{REPO, World, everywhere, map};
use crate::sources::HostOfPulls;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_becomes_applications_that_sync() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(
            REPO,
            &[
                ("apps/a/map.yaml", &map("a", "1", &[])),
                ("apps/b/map.yaml", &map("b", "1", &[])),
            ],
        );
        let patch = "{{ if eq .name \"b\" }}metadata: {labels: {last: \"true\"}}{{ end }}";
        world
            .set(set("all", list(&["a", "b"]), json!({"templatePatch": patch})))
            .await;
        for name in ["a", "b"] {
            world.synced(name, &commit).await;
        }
        let found = world.up_to_date("all").await;
        assert_eq!(
            condition(&found, "ParametersGenerated"),
            (
                "True".to_owned(),
                "ParametersGenerated".to_owned(),
                "Successfully generated parameters for all Applications".to_owned()
            )
        );
        assert_eq!(condition(&found, "ErrorOccurred").1, "ApplicationSetUpToDate");
        assert_eq!(
            condition(&found, "RolloutProgressing").0,
            "",
            "there is no rollout"
        );
        let b = world.get_application("b").await;
        assert_eq!(b["metadata"]["labels"], json!({"last": "true"}));
        assert_eq!(
            b["metadata"]["finalizers"],
            json!(["resources-finalizer.argocd.argoproj.io"])
        );
        let owner = &b["metadata"]["ownerReferences"][0];
        assert_eq!(
            (text(owner, "/kind"), text(owner, "/name")),
            ("ApplicationSet", "all")
        );
        assert_eq!(
            (&owner["controller"], &owner["blockOwnerDeletion"]),
            (&json!(true), &json!(true))
        );
        let found = world
            .until_set("all", "told of both", |set| {
                let all = set["status"]["resources"].as_array().cloned().unwrap_or_default();
                all.len() == 2 && all.iter().all(|it| text(it, "/health/status") == "Healthy")
            })
            .await;
        assert_eq!(found["status"]["resourcesCount"], 2);
        assert_eq!(found["status"]["resources"][0]["status"], "Synced");
        crate::harness::eventually("it is said", || async {
            let events = world.events("all").await;
            events.contains(&"created created Application \"a\"".to_owned())
        })
        .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_of_a_directory_is_an_application() {
    everywhere(|world: World| async move {
        let first = world.sources.commit(
            REPO,
            &[
                ("apps/a/map.yaml", &map("a", "1", &[])),
                ("apps/skipped/map.yaml", &map("no", "1", &[])),
            ],
        );
        let git = json!([{"git": {"repoURL": REPO, "revision": "main",
            "directories": [{"path": "apps/*"}, {"path": "apps/skipped", "exclude": true}]}}]);
        let mut object = set("dirs", git, json!({}));
        object["spec"]["template"]["metadata"]["name"] = json!("{{ .path.basename }}");
        object["spec"]["template"]["spec"]["source"]["path"] = json!("{{ .path.path }}");
        world.set(object).await;
        world.synced("a", &first).await;
        world.until_names(&["a"]).await;
        // Nothing polls for the next three minutes: the push is heard of.
        let second = world
            .sources
            .push(REPO, &[("apps/b/map.yaml", &map("b", "1", &[]))]);
        world.synced("b", &second).await;
        assert!(world.config_map("b").await.is_some());
        world.sources.push(REPO, &[("apps/b/map.yaml", "")]);
        world.until_names(&["a"]).await;
        crate::harness::eventually("its objects go along", || async {
            world.config_map("b").await.is_none()
        })
        .await;
        // That everything is gone is an accident until somebody says otherwise.
        world
            .sources
            .push(REPO, &[("apps/a/map.yaml", ""), ("README.md", "empty")]);
        let found = world.wrong("dirs", "yield no Applications at all").await;
        assert_eq!(condition(&found, "ParametersGenerated").0, "True");
        world.until_names(&["a"]).await;
        let allowed = json!({"metadata": {"annotations": {"fairway.dev/allow-empty": "true"}}});
        world.patch_set("dirs", allowed).await;
        world.until_names(&[]).await;
        world.up_to_date("dirs").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_products_of_generators() {
    everywhere(|world: World| async move {
        world.sources.commit(
            REPO,
            &[
                ("envs/dev.yaml", "env: dev\nsize: 1\n"),
                ("envs/prod.json", "{\"env\": \"prod\", \"size\": 2}"),
                ("envs/old.yaml", "env: old\n"),
            ],
        );
        let files = json!({"git": {"repoURL": REPO, "revision": "main",
            "files": [{"path": "envs/*"}, {"path": "envs/old.yaml", "exclude": true}]}});
        let matrix = json!([{
            "matrix": {"generators": [{"list": {"elements": [{"app": "web"}, {"app": "db"}]}}, files]},
            "selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
        }]);
        let mut object = set("products", matrix, json!({}));
        object["spec"]["template"]["metadata"] =
            json!({"name": "{{ .app }}-{{ .env }}", "labels": {"file": "{{ .path.filename }}"}});
        object["spec"]["template"]["spec"]["source"]["path"] = json!(".");
        world.set(object).await;
        world.until_names(&["web-dev", "web-prod"]).await;
        let found = world.get_application("web-prod").await;
        assert_eq!(found["metadata"]["labels"]["file"], "prod.json");

        // The older form of parameters, and one generator over the other.
        let base =
            json!({"list": {"elements": [{"name": "x", "team": "red"}, {"name": "y", "team": "red"}]}});
        let over = json!({"list": {"elements": [{"name": "y", "team": "blue"}]}});
        let merge = json!([{"merge": {"mergeKeys": ["name"], "generators": [base, over]}}]);
        let mut object = set(
            "merged",
            merge,
            json!({"goTemplate": false, "goTemplateOptions": []}),
        );
        object["spec"]["template"]["metadata"] = json!({"name": "{{name}}", "labels": {"team": "{{team}}"}});
        object["spec"]["template"]["spec"]["source"]["path"] = json!("{{unknown}}");
        world.set(object).await;
        world.until_names(&["web-dev", "web-prod", "x", "y"]).await;
        let teams = [world.get_application("x").await, world.get_application("y").await];
        assert_eq!(
            teams.map(|it| text(&it, "/metadata/labels/team").to_owned()),
            ["red", "blue"]
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_come_and_go() {
    everywhere(|world: World| async move {
        let secret = |name: &str, env: &str| {
            let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
            json!({
                "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": env}},
                "data": {"name": encode(name), "server": encode(&format!("https://127.0.0.1:9/{name}"))},
            })
        };
        let secrets = "/api/v1/namespaces/argocd/secrets";
        world.create(secrets, secret("east", "prod")).await;
        // These clusters do not answer: who goes without cleaning up, goes at once.
        let patch = "{{ if ne .name \"east\" }}metadata: {finalizers: null}{{ end }}";
        let mut object = set(
            "clusters",
            json!([{"clusters": {"values": {"kind": "{{ .name }}-x"}}}]),
            json!({"templatePatch": patch}),
        );
        object["spec"]["template"]["metadata"] = json!({"name": "on-{{ .nameNormalized }}",
            "labels": {"kind": "{{ .values.kind }}"}});
        object["spec"]["template"]["spec"]["source"]["path"] = json!("apps");
        object["spec"]["template"]["spec"]["destination"] = json!({"name": "{{ .name }}", "namespace": "shop"});
        world.set(object).await;
        world.until_names(&["on-east", "on-in-cluster"]).await;
        let found = world.get_application("on-east").await;
        assert_eq!(found["metadata"]["labels"]["kind"], "east-x");
        world.create(secrets, secret("west", "dev")).await;
        world.until_names(&["on-east", "on-in-cluster", "on-west"]).await;
        // With a selector the cluster that everything is in has no labels to be selected by.
        let selected = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}, "values": {"kind": "{{ .name }}"}}});
        world
            .patch_set("clusters", json!({"spec": {"generators": [selected]}}))
            .await;
        world.until_names(&["on-east"]).await;
        // An Application whose cluster is gone is not waited for until its objects are.
        world.create(secrets, secret("north", "prod")).await;
        world.until_names(&["on-east", "on-north"]).await;
        world.api.delete(&format!("{secrets}/east")).await.unwrap();
        world.until_names(&["on-north"]).await;
        world.end().await;
    })
    .await;
}

fn pull(number: u64, branch: &str) -> PullRequest {
    PullRequest {
        number,
        title: format!("Change {number}"),
        branch: branch.to_owned(),
        target_branch: "main".to_owned(),
        head: format!("c{number:039x}"),
        labels: vec!["preview".to_owned()],
        author: "anna".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_requests_are_previews() {
    everywhere(|world: World| async move {
        world
            .sources
            .commit(REPO, &[("web/map.yaml", &map("web", "1", &[]))]);
        world
            .pulls
            .set("shop/web", vec![pull(1, "feat/lamp"), pull(2, "wip")]);
        let provider =
            json!({"api": HostOfPulls::URL, "owner": "shop", "repo": "web", "labels": ["preview"]});
        let generator = json!([{"pullRequest": {"gitea": provider, "filters": [{"branchMatch": "^feat/"}]}}]);
        let mut object = set("previews", generator, json!({}));
        object["spec"]["template"]["metadata"]["name"] = json!("pr-{{ .number }}-{{ .branch_slug }}");
        object["spec"]["template"]["spec"]["source"]["path"] = json!("web");
        world.set(object).await;
        world.until_names(&["pr-1-feat-lamp"]).await;
        // They come to an end, and so do previews.
        world.pulls.set("shop/web", Vec::new());
        world.sources.push(REPO, &[("README.md", "merged")]);
        world.until_names(&[]).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_generators_cannot_do_is_said() {
    everywhere(|world: World| async move {
        let cases: [(&str, Value, &str); 5] = [
            (
                "plugin",
                json!({"plugin": {"configMapRef": {"name": "p"}}}),
                "the generator plugin is not supported",
            ),
            (
                "scm",
                json!({"scmProvider": {"gitea": {"owner": "o", "api": "https://x"}}}),
                "the generator scmProvider is not supported",
            ),
            (
                "github",
                json!({"pullRequest": {"github": {"owner": "o", "repo": "r"}}}),
                "the pull requests of github are not supported",
            ),
            (
                "nowhere",
                json!({"git": {"repoURL": "https://git.example.com/no/such.git", "revision": "main",
                    "directories": [{"path": "*"}]}}),
                "error generating params from git: error getting directories from repo: repository",
            ),
            (
                "half",
                json!({"matrix": {"generators": [{"list": {"elements": [{"name": "a"}]}}]}}),
                "found less than two generators, Matrix support only two",
            ),
        ];
        for (name, generator, words) in cases {
            world.set(set(name, json!([generator]), json!({}))).await;
            let found = world.wrong(name, words).await;
            assert_eq!(
                condition(&found, "ErrorOccurred").1,
                "ApplicationGenerationFromParamsError",
                "{name}"
            );
            assert_eq!(condition(&found, "ParametersGenerated").0, "False", "{name}");
            let (status, reason, _) = condition(&found, "ResourcesUpToDate");
            assert_eq!(
                (status.as_str(), reason.as_str()),
                ("False", "ErrorOccurred"),
                "{name}"
            );
        }
        let mut strict = set("strict", list(&["a"]), json!({}));
        strict["spec"]["template"]["metadata"]["name"] = json!("{{ .nome }}");
        world.set(strict).await;
        let found = world.wrong("strict", "map has no entry for key \"nome\"").await;
        assert_eq!(condition(&found, "ErrorOccurred").1, "RenderTemplateParamsError");
        assert!(world.api.list(APPLICATIONS).await.unwrap().is_empty());
        world.end().await;
    })
    .await;
}
