//! The software catalog on the whole program: a push brings entities, another changes them, roles say who sees them, and what goes
//! takes them along.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "catalog/portal.rs"]
mod portal;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[path = "githost/until.rs"]
mod until;

use std::path::Path;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use portal::Portal;
use process::Process;
use tools::{fairway, run, shell, web_port};
use until::until;

const WEB: &str = "apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: Web
  description: A machine that serves pages
  annotations:
    backstage.io/kubernetes-id: web
spec:
  type: service
  lifecycle: production
  owner: team
  providesApis: [rest]
";
const MORE: &str = "apiVersion: backstage.io/v1alpha1
kind: Location
metadata:
  name: more
spec:
  targets: [./catalog/*.yaml]
";
const REST: &str = "apiVersion: backstage.io/v1alpha1
kind: API
metadata:
  name: rest
spec:
  type: openapi
  lifecycle: production
  owner: team
  definition:
    $text: ../openapi.yaml
";
const TEAM: &str = "apiVersion: backstage.io/v1alpha1
kind: Group
metadata:
  name: team
spec:
  type: team
  children: []
";

/// A service account of the root workspace with a role, and its token.
async fn account(client: &Client, name: &str, role: Option<&str>) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&PostParams::default(), &object).await.unwrap();
    if let Some(role) = role {
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        let binding = serde_json::from_value(json!({
            "metadata": {"name": format!("catalog-{name}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        }));
        bindings
            .create(&PostParams::default(), &binding.unwrap())
            .await
            .unwrap();
    }
    let request = TokenRequest::default();
    let made = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .unwrap();
    made.status.unwrap().token.unwrap()
}

fn write(work: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn references(list: &Value) -> Vec<String> {
    let text = |entity: &Value, pointer: &str| entity.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let all = list.as_array().unwrap().iter();
    // Those that stand for locations have names that nobody can foretell; people of the realm and built-in golden paths are
    // there from the start.
    let is_ours = |entity: &&Value| {
        let annotations = &entity["metadata"]["annotations"];
        let begins = |name: &str, with: &str| {
            annotations[name]
                .as_str()
                .is_some_and(|text| text.starts_with(with))
        };
        !text(entity, "/metadata/name").starts_with("generated-")
            && !begins("backstage.io/managed-by-location", "fairway:")
            && !begins("backstage.io/source-location", "builtin:")
    };
    all.filter(is_ours)
        .map(|entity| format!("{}:{}", text(entity, "/kind"), text(entity, "/metadata/name")))
        .collect()
}

async fn wait_for(portal: &Portal, expected: &[&str]) {
    until(&format!("{expected:?}"), async || {
        let list = portal.get("/entities").await;
        (references(&list) == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_come_from_pushes_and_go_with_their_repository() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    let viewer = Portal::new(
        &data,
        web_port(&data),
        &account(&client, "viewer", Some("view")).await,
    );
    let editor = Portal {
        token: account(&client, "editor", Some("edit")).await,
        ..viewer.clone()
    };
    assert_eq!(references(&viewer.get("/entities").await), [""; 0]);
    // The realm's people are in the catalog from the start.
    let people = viewer.get("/entities?filter=kind=user").await;
    assert_eq!(people[0]["metadata"]["name"], "admin", "{people}");

    // A push: the file, what it names, and what that is made of.
    let url = fairway(&data, &["repo", "create", "root/app", "--with-token"]);
    let begin = "git init -q -b main . && git config commit.gpgsign false";
    run(&data, &work, begin);
    write(
        &work,
        &[
            ("catalog-info.yaml", &format!("{WEB}---\n{MORE}")),
            ("catalog/rest.yaml", REST),
            ("catalog/team.yaml", TEAM),
            ("openapi.yaml", "openapi: 3.0.0\n"),
        ],
    );
    let push = format!("git add . && git commit -qm change && git push -q {url} main");
    run(&data, &work, &push);
    wait_for(
        &viewer,
        &["API:rest", "Component:Web", "Group:team", "Location:more"],
    )
    .await;
    let web = viewer.get("/entities/by-name/component/default/web").await;
    assert_eq!(
        web["relations"],
        json!([
            {"type": "ownedBy", "targetRef": "group:default/team"}, {"type": "providesApi", "targetRef": "api:default/rest"},
        ])
    );
    let team = viewer.get("/entities/by-name/Group/default/team").await;
    assert_eq!(team["relations"][0]["type"], "ownerOf");
    let rest = viewer.get("/entities/by-name/api/default/rest").await;
    assert_eq!(rest["spec"]["definition"], "openapi: 3.0.0\n");
    let ancestry = viewer.get("/entities/by-name/api/default/rest/ancestry").await;
    assert_eq!(ancestry["items"].as_array().unwrap().len(), 3, "{ancestry}");
    assert_eq!(
        ancestry["items"][0]["parentEntityRefs"][0],
        "location:default/more"
    );
    let shown = fairway(&data, &["catalog", "list", "-k", "component"]);
    assert!(
        shown.contains("component:default/web") && !shown.contains("api:"),
        "{shown}"
    );
    let shown = fairway(&data, &["catalog", "search", "serves", "pages"]);
    assert!(shown.contains("component:default/web"), "{shown}");

    // Another push: a change, an entity that is wrong, one that is gone.
    let uid = team["metadata"]["uid"].as_str().unwrap().to_owned();
    write(
        &work,
        &[
            (
                "catalog-info.yaml",
                &format!("{}---\n{MORE}", WEB.replace("service", "website")),
            ),
            ("catalog/rest.yaml", &REST.replace("  owner: team\n", "")),
        ],
    );
    std::fs::remove_file(work.join("catalog/team.yaml")).unwrap();
    run(&data, &work, &push);
    until("the changed component", async || {
        let web = viewer.get("/entities/by-name/component/default/web").await;
        (web["spec"]["type"] == "website").then_some(())
    })
    .await;
    // What is wrong stays as it was, and its location says why; what is gone is an orphan.
    until("the orphan", async || {
        let team = viewer.get("/entities/by-name/group/default/team").await;
        (team["metadata"]["annotations"]["backstage.io/orphan"] == "true").then_some(())
    })
    .await;
    let rest = viewer.get("/entities/by-name/api/default/rest").await;
    assert_eq!(rest["spec"]["owner"], "team");
    let errors = until("the location's errors", async || {
        let locations = viewer.get("/locations").await;
        let errors = locations[0]["data"]["status"]["errors"].clone();
        errors
            .as_array()
            .is_some_and(|errors| !errors.is_empty())
            .then_some(errors)
    })
    .await;
    assert!(
        errors[0].as_str().unwrap().contains("required property 'owner'"),
        "{errors}"
    );

    // An orphan is deleted by who may; what a file says comes back.
    let path = format!("/entities/by-uid/{uid}");
    assert_eq!(viewer.call("DELETE", &path, None).await.status, 403);
    assert_eq!(editor.call("DELETE", &path, None).await.status, 204);
    assert_eq!(viewer.call("GET", &path, None).await.status, 404);
    let before = web["metadata"]["uid"].as_str().unwrap();
    let path = format!("/entities/by-uid/{before}");
    assert_eq!(editor.call("DELETE", &path, None).await.status, 204);
    until("the component again", async || {
        let answered = viewer
            .call("GET", "/entities/by-name/component/default/web", None)
            .await;
        (answered.status == 200 && answered.body["metadata"]["uid"] != before).then_some(())
    })
    .await;

    // The repository goes, and everything with it.
    fairway(&data, &["repo", "delete", "root/app"]);
    wait_for(&viewer, &[]).await;
}

const MACHINE: &str = "apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, labels: {backstage.io/kubernetes-id: web}}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {memory: {guest: 64Mi}, devices: {}}
";
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: web, labels: {backstage.io/kubernetes-id: web}}
spec: {selector: {app: web}, ports: [{port: 8080}]}
";
const OTHER: &str = "apiVersion: v1
kind: Service
metadata: {name: other, labels: {backstage.io/kubernetes-id: other}}
spec: {selector: {app: other}, ports: [{port: 8080}]}
";

/// An Application with a label, that keeps `manifests` of a repository in the namespace `shop`.
async fn application(client: &Client, repository: &str) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    for name in ["argocd", "shop"] {
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &object).await.unwrap();
    }
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application");
    let kind = ApiResource::from_gvk_with_plural(&kind, "applications");
    let all: Api<DynamicObject> = Api::namespaced_with(client.clone(), "argocd", &kind);
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd", "labels": {"app": "web"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": repository, "path": "manifests", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "syncPolicy": {"automated": {"prune": true}},
        },
    });
    let object = serde_json::from_value(object).unwrap();
    all.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_for_an_entity_is_told_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    let viewer = Portal::new(
        &data,
        web_port(&data),
        &account(&client, "viewer", Some("view")).await,
    );
    let administrator = Portal {
        token: account(&client, "administrator", Some("cluster-admin")).await,
        ..viewer.clone()
    };
    let url = fairway(&data, &["repo", "create", "root/shop", "--with-token"]);
    let selector = "    argocd/app-selector: app=web\n    backstage.io/kubernetes-id: web\n";
    write(
        &work,
        &[
            (
                "catalog-info.yaml",
                &WEB.replace("    backstage.io/kubernetes-id: web\n", selector),
            ),
            ("manifests/machine.yaml", MACHINE),
            ("manifests/service.yaml", SERVICE),
            ("manifests/other.yaml", OTHER),
        ],
    );
    run(
        &data,
        &work,
        "git init -q -b main . && git config commit.gpgsign false",
    );
    let push = format!("git add -A . && git commit -qm change && git push -q {url} main");
    run(&data, &work, &push);
    wait_for(&viewer, &["Component:Web"]).await;
    let path = "/entities/by-name/component/default/web/live";
    let before = viewer.get(path).await;
    assert_eq!(
        (&before["applications"], &before["objects"]),
        (&json!([]), &json!([]))
    );

    let plain = format!("https://{}", url.split_once('@').unwrap().1);
    application(&client, plain.trim()).await;
    let live = until("what runs", async || {
        let live = administrator.get(path).await;
        let is_there =
            live["applications"][0]["sync"] == "Synced" && live["objects"][0]["status"] == "Stopped";
        is_there.then_some(live)
    })
    .await;
    let application = &live["applications"][0];
    assert_eq!(
        (
            &application["namespace"],
            &application["name"],
            &application["operation"]
        ),
        (&json!("argocd"), &json!("shop"), &json!("Succeeded")),
        "{live}"
    );
    let head = run(&data, &work, "git rev-parse HEAD");
    assert_eq!(application["revision"], head.trim(), "{live}");
    let objects: Vec<String> = live["objects"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(
        objects,
        ["VirtualMachine shop/web", "Service shop/web"],
        "what is another's is not told: {live}"
    );
    assert_eq!(live["hidden"], json!([]), "{live}");
    // Nobody is told more than he may list himself.
    let seen = viewer.get(path).await;
    assert_eq!(
        (&seen["applications"], &seen["hidden"], &seen["objects"]),
        (&json!([]), &json!(["Application"]), &live["objects"])
    );

    // It follows: what is pruned is told no longer.
    std::fs::remove_file(work.join("manifests/service.yaml")).unwrap();
    run(&data, &work, &push);
    until("the machine alone", async || {
        let live = viewer.get(path).await;
        let objects: Vec<String> = live["objects"].as_array().unwrap().iter().map(named).collect();
        (objects == ["VirtualMachine shop/web"]).then_some(())
    })
    .await;
}

fn named(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}/{}", text("kind"), text("namespace"), text("name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn locations_are_registered_by_who_may_and_workspaces_are_apart() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    let editor = Portal::new(
        &data,
        web_port(&data),
        &account(&client, "editor", Some("edit")).await,
    );
    let nobody = Portal {
        token: account(&client, "nobody", None).await,
        ..editor.clone()
    };

    // Who is not known, and who may nothing.
    for (token, status, name) in [
        (String::new(), 401, "AuthenticationError"),
        ("wrong".to_owned(), 401, "AuthenticationError"),
        (nobody.token.clone(), 403, "NotAllowedError"),
    ] {
        let portal = Portal {
            token,
            ..editor.clone()
        };
        for path in [
            "/entities",
            "/entities/by-query",
            "/entity-facets?facet=kind",
            "/locations",
        ] {
            let answered = portal.call("GET", path, None).await;
            assert_eq!(
                (answered.status, &answered.body["error"]["name"]),
                (status, &json!(name)),
                "{path}"
            );
        }
    }

    // A file that discovery does not look for.
    let url = fairway(&data, &["repo", "create", "root/org", "--with-token"]);
    run(&data, &work, "git init -q -b main .");
    let user =
        "apiVersion: backstage.io/v1alpha1\nkind: User\nmetadata:\n  name: jo\nspec:\n  memberOf: [team]\n";
    write(&work, &[("teams/all.yaml", &format!("{TEAM}---\n{user}"))]);
    run(
        &data,
        &work,
        &format!("git add . && git commit -qm one && git push -q {url} main"),
    );
    let origin = format!("https://git.fairway.localhost:{}", web_port(&data));
    let target = format!("{origin}/root/org/src/branch/main/teams/all.yaml");
    let body = || Some(json!({"type": "url", "target": target}));
    assert_eq!(nobody.call("POST", "/locations", body()).await.status, 403);
    let dry = editor.call("POST", "/locations?dryRun=true", body()).await;
    assert_eq!(
        (dry.status, references(&dry.body["entities"])),
        (201, vec!["Group:team".to_owned(), "User:jo".to_owned()])
    );
    assert_eq!(editor.get("/locations").await, json!([]));
    let made = editor.call("POST", "/locations", body()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(editor.call("POST", "/locations", body()).await.status, 409);
    wait_for(&editor, &["Group:team", "User:jo"]).await;
    let id = made.body["location"]["id"].as_str().unwrap().to_owned();
    assert_eq!(editor.get(&format!("/locations/{id}")).await["target"], target);
    assert_eq!(editor.get("/locations/by-entity/user/default/jo").await["id"], id);
    let refreshed = editor
        .call("POST", "/refresh", Some(json!({"entityRef": "user:default/jo"})))
        .await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);

    // Wrong requests.
    for (method, path, body, status) in [
        ("GET", "/entities?filter==x", None, 400),
        ("GET", "/entities?limit=x", None, 400),
        ("GET", "/entities/by-query?cursor=x", None, 400),
        ("GET", "/entity-facets", None, 400),
        ("GET", "/nothing", None, 404),
        ("GET", "/entities/by-name/component/default/none", None, 404),
        ("DELETE", "/locations/none", None, 404),
        (
            "POST",
            "/locations",
            Some(json!({"type": "file", "target": "/etc/passwd"})),
            400,
        ),
        (
            "POST",
            "/locations",
            Some(json!({"type": "url", "target": "file:///etc/passwd"})),
            400,
        ),
        (
            "POST",
            "/locations",
            Some(json!({"type": "url", "target": "https://u:p@example.com/x"})),
            400,
        ),
        (
            "POST",
            "/entities/by-refs",
            Some(json!({"entityRefs": ["no kind"]})),
            400,
        ),
        ("POST", "/entities/by-query", Some(json!({"query": "x"})), 400),
    ] {
        let answered = editor.call(method, path, body).await;
        assert_eq!(answered.status, status, "{method} {path}: {}", answered.body);
        assert!(answered.body["error"]["message"].is_string(), "{path}");
    }

    // Lists in pages, by the Link header.
    let first = editor
        .call(
            "GET",
            "/entities?filter=metadata.name=team&filter=metadata.name=jo&limit=1&fields=kind",
            None,
        )
        .await;
    assert_eq!(first.body, json!([{"kind": "Group"}]));
    let link = first.link.unwrap();
    let next = link.trim_start_matches('<').split_once('>').unwrap().0;
    assert_eq!(editor.get(next).await, json!([{"kind": "User"}]));

    // Another workspace has a catalog of its own, into which nobody looks with a token of this one.
    fairway(&data, &["workspace", "create", "acme"]);
    let theirs = Portal {
        prefix: "/clusters/root:acme".to_owned(),
        ..editor.clone()
    };
    assert_eq!(theirs.call("GET", "/entities", None).await.status, 401);
    assert_eq!(
        theirs.call("GET", "/entities?workspace=root", None).await.status,
        401
    );
    // A private repository of another workspace is not read for it.
    let (success, said) = shell(
        &data,
        place.path(),
        &command(&data, &["catalog", "register", &target, "-w", "root:acme"]),
    );
    assert!(!success && said.contains("not for this workspace"), "{said}");

    // Forgotten, with what was there.
    assert_eq!(
        editor
            .call("DELETE", &format!("/locations/{id}"), None)
            .await
            .status,
        204
    );
    wait_for(&editor, &[]).await;
}

/// The command itself, as a line for a shell.
fn command(data: &Path, words: &[&str]) -> String {
    format!(
        "KUBECONFIG={} {} {}",
        data.join("kubeconfig").display(),
        env!("CARGO_BIN_EXE_fairway"),
        words.join(" ")
    )
}
