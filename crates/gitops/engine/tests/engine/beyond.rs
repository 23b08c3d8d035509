//! What goes beyond Argo CD: what a push is told, plans, tombstones, and kinds that another Application brings.

use std::time::Duration;

use fairway_controller::WorkspaceId;
use fairway_gitops_engine::{Proposal, Wishes};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::harness::{At, REPO, World, automated, eventually, everywhere, map};

const TOMBSTONES: &str = "/apis/fairway.dev/v1alpha1/tombstones";

/// Whether a scenario runs where everything that Fairway serves is served.
fn is_fairway() -> bool {
    std::env::var("FAIRWAY_ENGINE_KUBECONFIG").is_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_pushed_hears_of_what_he_touched() {
    for at in [At::Root, At::Workspace] {
        if !is_fairway() {
            return;
        }
        let world = World::start(at).await;
        let first = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                ("other/b.yaml", &map("b", "1", &[])),
            ],
        );
        world.application("web", automated()).await;
        let mut other = automated();
        other["spec"]["source"] = json!({"path": "other"});
        world.application("other", other).await;
        world.synced("web", &first).await;
        world.synced("other", &first).await;
        let workspace = WorkspaceId::parse(at.id()).unwrap();
        let listen = |is_brief: bool, workspace: &WorkspaceId, files: &[(&str, &str)]| {
            let expected = world.answers.expect();
            world.sources.push_asked(REPO, files, expected.number);
            expected.lines(Wishes {
                workspace: workspace.clone(),
                limit: Duration::from_secs(30),
                is_brief,
            })
        };
        let more = [
            ("web/a.yaml", &*map("a", "2", &[])),
            ("web/c.yaml", &*map("c", "1", &[])),
        ];
        let lines: Vec<String> = listen(false, &workspace, &more).collect().await;
        let text = lines.join("\n");
        assert!(
            lines[0].starts_with("argocd/web at c000000: 1 to create, 1 to change"),
            "{text}"
        );
        assert!(
            text.contains("argocd/web: wave 0: ConfigMap shop/a configured"),
            "{text}"
        );
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("argocd/web: Synced and Healthy"),
            "{text}"
        );
        assert!(!text.contains("other"), "{text}");
        // When the answer has ended, it is done.
        assert_eq!(world.config_map("a").await.unwrap()["data"]["value"], "2");
        // Another workspace's pusher hears nothing of this one's.
        let elsewhere = WorkspaceId::parse("0123456789abcdef").unwrap();
        let touch = [("web/a.yaml", &*map("a", "3", &[]))];
        assert!(
            listen(true, &elsewhere, &touch)
                .collect::<Vec<_>>()
                .await
                .is_empty()
        );
        // Nobody waits for who has left.
        drop(listen(false, &workspace, &[("web/a.yaml", &map("a", "4", &[]))]));
        eventually("it is synced all the same", || async {
            world.config_map("a").await.unwrap()["data"]["value"] == "4"
        })
        .await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_pushed_hears_of_nothing_else() {
    if !is_fairway() {
        return;
    }
    let world = World::start(At::Root).await;
    let objects: Vec<(String, String)> = (0..12)
        .map(|n| (format!("web/m{n}.yaml"), map(&format!("m{n}"), "1", &[])))
        .collect();
    let files: Vec<(&str, &str)> = objects.iter().map(|(path, text)| (&**path, &**text)).collect();
    let first = world.sources.commit(REPO, &files);
    let mut wanted = automated();
    wanted["spec"]["syncPolicy"]["syncOptions"] = json!(["ServerSideApply=true"]);
    world.application("web", wanted).await;
    world.synced("web", &first).await;
    let expected = world.answers.expect();
    let changed = [("web/m7.yaml", &*map("m7", "2", &[]))];
    world.sources.push_asked(REPO, &changed, expected.number);
    let lines = expected.lines(Wishes {
        workspace: WorkspaceId::root(),
        limit: Duration::from_secs(30),
        is_brief: false,
    });
    let lines: Vec<String> = lines.collect().await;
    let results: Vec<&String> = lines.iter().filter(|line| line.contains(": wave ")).collect();
    assert_eq!(
        results,
        ["argocd/web: wave 0: ConfigMap shop/m7 serverside-applied"],
        "{lines:?}"
    );
    assert!(
        lines
            .last()
            .unwrap()
            .starts_with("argocd/web: Synced and Healthy"),
        "{lines:?}"
    );
    // The Application says it in Argo CD's words, of all that was applied.
    let found = world.get_application("web").await;
    let results = &found["status"]["operationState"]["syncResult"]["resources"];
    let results = results.as_array().map_or(&[][..], Vec::as_slice);
    let applied = |it: &&Value| {
        it["message"]
            .as_str()
            .is_some_and(|message| message.ends_with(" serverside-applied"))
    };
    assert_eq!(results.iter().filter(applied).count(), 12, "{results:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_changes_nothing_and_says_what_would() {
    everywhere(|world: World| async move {
        let fixed = |value: &str| map("fixed", value, &[]) + "immutable: true\n";
        let first = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                ("web/fixed.yaml", &fixed("1")),
                ("web/gone.yaml", &map("gone", "1", &[])),
            ],
        );
        world
            .application("web", json!({"spec": {"source": {"targetRevision": first}}}))
            .await;
        world
            .patch_application("web", json!({"operation": {"sync": {}}}))
            .await;
        let before = world.synced("web", &first).await;
        let second = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "2", &[])),
                ("web/fixed.yaml", &fixed("2")),
                ("web/new.yaml", &map("new", "1", &[])),
                ("web/gone.yaml", ""),
            ],
        );
        let proposal = Proposal {
            url: REPO.to_owned(),
            base: first.clone(),
            head: second,
        };
        let workspace = world.workspace();
        let plans = world.plans.of(&workspace, &proposal).await;
        assert_eq!(plans.len(), 1, "{plans:?}");
        let changes: Vec<String> = plans[0]["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| {
                let text = |field: &str| change[field].as_str().unwrap_or_default().to_owned();
                format!(
                    "{} {}: {} {}",
                    text("action"),
                    text("name"),
                    text("impact"),
                    change["fields"]
                )
            })
            .collect();
        let mut sorted = changes.clone();
        sorted.sort();
        assert_eq!(
            sorted,
            [
                "change a: live change [\"data.value\"]",
                "change fixed: re-creation [\"data.value\"]",
                "create new: none []",
                "prune gone: live change []",
            ],
            "{plans:?}"
        );
        assert_eq!(plans[0]["impact"], "re-creation");
        // An Application that follows something else has nothing to do with it.
        let other = Proposal {
            base: world.sources.commit(REPO, &[("web/x.yaml", &map("x", "1", &[]))]),
            ..proposal
        };
        assert!(world.plans.of(&workspace, &other).await.is_empty());
        // Nothing has happened, and the Application is watched as before.
        assert_eq!(world.config_map("a").await.unwrap()["data"]["value"], "1");
        assert!(world.config_map("new").await.is_none());
        let after = world.get_application("web").await;
        assert_eq!(
            after["metadata"]["resourceVersion"],
            before["metadata"]["resourceVersion"]
        );
        world
            .api
            .merge(
                "/api/v1/namespaces/shop/configmaps/gone",
                &json!({"data": {"value": "9"}}),
            )
            .await
            .unwrap();
        world
            .until("web", "drifted", |found| {
                found["status"]["sync"]["status"] == "OutOfSync"
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_is_kept_for_a_while_and_once() {
    for at in [At::Root, At::Workspace] {
        if !is_fairway() {
            return;
        }
        let world = World::start(at).await;
        let over = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Tombstone", "metadata": {"name": "over"},
            "spec": {"expiresAt": "2020-01-01T00:00:00Z", "object": {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "old", "namespace": "shop"}}},
        });
        world.create(TOMBSTONES, over).await;
        let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\nstringData:\n  word: xyzzy\n";
        let first = world.sources.commit(
            REPO,
            &[("web/a.yaml", &map("a", "1", &[])), ("web/key.yaml", secret)],
        );
        let mut wanted = automated();
        wanted["metadata"] = json!({"finalizers": ["resources-finalizer.argocd.argoproj.io"]});
        world.application("web", wanted).await;
        world.synced("web", &first).await;
        let second = world.sources.push(REPO, &[("web/key.yaml", "")]);
        world.synced("web", &second).await;
        let stones = || async { world.api.list(TOMBSTONES).await.unwrap() };
        let of = |stones: &[Value], kind: &str| -> Vec<String> {
            let all = stones
                .iter()
                .filter(|stone| stone["spec"]["object"]["kind"] == kind);
            all.map(|stone| {
                format!(
                    "{} {}",
                    stone["spec"]["reason"].as_str().unwrap_or_default(),
                    stone["spec"]["object"]["metadata"]["name"].as_str().unwrap()
                )
            })
            .collect()
        };
        assert_eq!(of(&stones().await, "Secret"), ["Pruned key"]);
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web";
        world.api.delete(path).await.unwrap();
        eventually("it goes", || async {
            world.get_application("web").await.is_null()
        })
        .await;
        // The one whose time was up goes, the others stay.
        eventually("the old one is collected", || async {
            let all = stones().await;
            all.iter().all(|stone| stone["metadata"]["name"] != "over")
        })
        .await;
        assert_eq!(of(&stones().await, "ConfigMap"), ["ApplicationDeleted a"]);
        assert_eq!(of(&stones().await, "Secret"), ["Pruned key"]);
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_may_come_from_another_application() {
    everywhere(|world: World| async move {
        let widget = "apiVersion: example.net/v1\nkind: Gadget\nmetadata:\n  name: g\n";
        let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gadgets.example.net\n\
                   spec:\n  group: example.net\n  scope: Namespaced\n  names: {plural: gadgets, singular: gadget, kind: Gadget, \
                   listKind: GadgetList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
                   openAPIV3Schema: {type: object}\n";
        let commit = world.sources.commit(
            REPO,
            &[("web/g.yaml", widget), ("web/a.yaml", &map("a", "1", &[])), ("kinds/crd.yaml", crd)],
        );
        world.application("web", automated()).await;
        world
            .until("web", "waiting for the kind", |found| {
                found["status"]["operationState"]["message"]
                    == "waiting for the kind example.net/Gadget of g to be defined"
            })
            .await;
        let mut kinds = automated();
        kinds["spec"]["source"] = json!({"path": "kinds"});
        world.application("kinds", kinds).await;
        world.synced("kinds", &commit).await;
        let found = world.synced("web", &commit).await;
        assert_eq!(found["status"]["operationState"]["phase"], "Succeeded", "{found}");
        assert!(found["status"]["operationState"]["retryCount"].is_null(), "it waited, and did not fail");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.net";
        world.patch_application("kinds", json!({"spec": {"syncPolicy": null}})).await;
        world.patch_application("web", json!({"spec": {"syncPolicy": null}})).await;
        world.api.delete(path).await.unwrap();
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_commit_does_not_wait_for_another_try_of_an_older_one() {
    everywhere(|world: World| async move {
        let bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 99999\n";
        world.sources.commit(
            REPO,
            &[("web/a.yaml", &map("a", "1", &[])), ("web/bad.yaml", bad)],
        );
        let mut wanted = automated();
        wanted["spec"]["syncPolicy"]["retry"] =
            json!({"limit": 5, "backoff": {"duration": "1h", "maxDuration": "2h"}});
        world.application("web", wanted).await;
        world
            .until("web", "waiting for another try", |found| {
                let message = found["status"]["operationState"]["message"].as_str();
                message.unwrap_or_default().contains("Retrying attempt #1")
            })
            .await;
        let good = world.sources.push(REPO, &[("web/bad.yaml", "")]);
        world.synced("web", &good).await;
        let wanted = "failed: superseded by a newer revision";
        eventually("it is said", || async {
            world
                .events("web")
                .await
                .iter()
                .any(|event| event.ends_with(wanted))
        })
        .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_wait_for_approval_unless_the_project_says_otherwise() {
    everywhere(|world: World| async move {
        let disk = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: d\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                    resources:\n    requests:\n      storage: 1Gi\n";
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "open", "annotations": {"fairway.dev/guard-precious": "false"}},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
        });
        world
            .create("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", project)
            .await;
        let path = "/api/v1/namespaces/shop/persistentvolumeclaims/d";
        let there = || async { world.api.get(path).await.unwrap().is_some() };
        for (project, waits) in [("default", true), ("open", false)] {
            world
                .sources
                .push(REPO, &[("web/a.yaml", &map("a", "1", &[])), ("web/d.yaml", disk)]);
            let mut wanted = automated();
            wanted["spec"]["project"] = json!(project);
            world.application(project, wanted).await;
            eventually("the disk", there).await;
            world.sources.push(REPO, &[("web/d.yaml", "")]);
            if waits {
                let found = world
                    .until(project, "held", |found| {
                        let message = found["status"]["operationState"]["message"].as_str();
                        message.unwrap_or_default().starts_with("waiting for approval")
                    })
                    .await;
                assert!(there().await, "{found}");
                let message = found["status"]["operationState"]["message"].as_str().unwrap();
                assert!(message.contains("the disk shop/d"), "{message}");
                let digest = message.rsplit(": ").next().unwrap();
                let approved = json!({"metadata": {"annotations": {"fairway.dev/approve-sync": digest}}});
                world.patch_application(project, approved).await;
            }
            eventually("it goes", || async {
                let found = world.api.get(path).await.unwrap();
                found.is_none_or(|found| !found["metadata"]["deletionTimestamp"].is_null())
            })
            .await;
            world
                .api
                .merge(path, &json!({"metadata": {"finalizers": null}}))
                .await
                .unwrap();
            eventually("it is gone", || async { !there().await }).await;
            let application = format!("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{project}");
            world.api.delete(&application).await.unwrap();
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_domain_that_owns_a_kind_says_what_a_change_does() {
    for at in [At::Root, At::Workspace] {
        if !is_fairway() {
            return;
        }
        let world = World::start(at).await;
        world.define("example.com", "machines", "Machine").await;
        let machine = |name: &str, impact: &str| {
            format!(
                "apiVersion: example.com/v1alpha1\nkind: Machine\nmetadata:\n  name: {name}\nspec:\n  impact: {impact}\n"
            )
        };
        let words = [
            "none",
            "live change",
            "migration",
            "restart",
            "re-creation",
            "data loss",
        ];
        let path = |word: &str| format!("web/{}.yaml", word.replace(' ', "-"));
        let files = |impact: &dyn Fn(&str) -> String| -> Vec<(String, String)> {
            let file = |word: &&str| (path(word), machine(&word.replace(' ', "-"), &impact(word)));
            words.iter().map(file).collect()
        };
        let texts = |files: &[(String, String)]| -> String {
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
            world.sources.commit(REPO, &files)
        };
        let first = texts(&files(&|_| "nothing yet".to_owned()));
        world
            .application("web", json!({"spec": {"source": {"targetRevision": first}}}))
            .await;
        world
            .patch_application("web", json!({"operation": {"sync": {}}}))
            .await;
        world.synced("web", &first).await;
        let proposal = Proposal {
            url: REPO.to_owned(),
            head: texts(&files(&str::to_owned)),
            base: first,
        };
        let plans = world.plans.of(&world.workspace(), &proposal).await;
        let changes = plans[0]["changes"].as_array().unwrap();
        assert_eq!(changes.len(), words.len(), "{plans:?}");
        for change in changes {
            let (name, impact) = (
                change["name"].as_str().unwrap(),
                change["impact"].as_str().unwrap(),
            );
            assert_eq!(impact.replace(' ', "-"), name, "{change}");
            assert!(
                change["target"]["metadata"]["annotations"]
                    .get("fairway.dev/impact")
                    .is_none()
            );
        }
        assert_eq!(plans[0]["impact"], "data loss");
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_say_what_a_change_does_to_them() {
    for at in [At::Root, At::Workspace] {
        if !is_fairway() {
            return;
        }
        let world = World::start(at).await;
        let machine = |name: &str, cores: u32, more: &str| {
            format!(
                "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {{name: {name}}}\nspec:\n  runStrategy: Always\n  \
                 template:\n    spec:\n      domain: {{cpu: {{cores: {cores}}}, memory: {{guest: 1Gi}}, devices: {{}}}}\n{more}"
            )
        };
        let disk = |size: &str| {
            format!(
                "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {{name: disk}}\nspec:\n  source: {{blank: {{}}}}\n  \
                 storage: {{resources: {{requests: {{storage: {size}}}}}}}\n"
            )
        };
        let first = world.sources.commit(
            REPO,
            &[
                ("web/busy.yaml", &machine("busy", 1, "")),
                ("web/still.yaml", &machine("still", 1, "")),
                ("web/gone.yaml", &machine("gone", 1, "")),
                ("web/disk.yaml", &disk("1Gi")),
            ],
        );
        world
            .application("web", json!({"spec": {"source": {"targetRevision": first}}}))
            .await;
        world
            .patch_application("web", json!({"operation": {"sync": {}}}))
            .await;
        // Nothing here makes machines run.
        world
            .until("web", "synced", |found| {
                let status = &found["status"];
                status["sync"]["status"] == "Synced" && status["operationState"]["phase"] == "Succeeded"
            })
            .await;
        let instance = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "busy", "namespace": "shop"},
            "spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}});
        let path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";
        world.api.create(path, &instance).await.unwrap();
        let proposal = Proposal {
            url: REPO.to_owned(),
            head: world.sources.commit(
                REPO,
                &[
                    ("web/busy.yaml", &machine("busy", 2, "")),
                    ("web/still.yaml", &machine("still", 2, "")),
                    ("web/gone.yaml", ""),
                    ("web/disk.yaml", &disk("2Gi")),
                    (
                        "web/wrong.yaml",
                        &machine("wrong", 1, "      volumes: [{name: a}]\n"),
                    ),
                ],
            ),
            base: first,
        };
        let plans = world.plans.of(&world.workspace(), &proposal).await;
        let mut told: Vec<String> = plans[0]["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| {
                let text = |field: &str| change[field].as_str().unwrap_or_default().to_owned();
                let message = text("message");
                let message = message.split(": ").last().unwrap_or_default().trim();
                format!(
                    "{} {}: {}: {message}",
                    text("action"),
                    text("name"),
                    text("impact")
                )
            })
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "change busy: restart: spec.template.spec.domain.cpu.cores takes effect at the next start",
                "change disk: data loss: Cannot update DataVolume Spec",
                "change still: none: ",
                "create wrong: unknown: spec.template.spec.volumes[0] must have exactly one source type set",
                "prune gone: re-creation: the machine is deleted",
            ]
        );
        world.end().await;
    }
}
