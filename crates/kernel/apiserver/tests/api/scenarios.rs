//! Scenarios of kcp's own tests that no other file has, each short. `docs/conformance/kcp-scenarios.md` lists them all.

use serde_json::{Value, json};

use crate::harness::{Client, Server, names};
use crate::workspaces::{enthrone, workspace};

const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn at(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

async fn two() -> (Server, Client) {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, "root", "b", B).await;
    let admin = server.admin();
    (server, admin)
}

fn definition(plural: &str, kind: &str, versions: &[&str]) -> Value {
    let last = versions.len() - 1;
    let versions: Vec<Value> = (versions.iter().enumerate())
        .map(|(place, name)| {
            json!({"name": name, "served": true, "storage": place == last,
                "selectableFields": [{"jsonPath": ".spec.colour"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"colour": {"type": "string"}}}}}}})
        })
        .collect();
    json!({"metadata": {"name": format!("{plural}.x.io")}, "spec": {
        "group": "x.io", "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": versions}})
}

fn object(kind: &str, version: &str, name: &str, colour: &str) -> Value {
    json!({"apiVersion": format!("x.io/{version}"), "kind": kind, "metadata": {"name": name}, "spec": {"colour": colour}})
}

#[tokio::test]
async fn a_workspace_within_a_workspaces_url_is_not_found() {
    let (_, admin) = two().await;
    for path in ["/api/v1/configmaps", "/apis", "/version", "/healthz"] {
        for first in [A, "root", "root:a"] {
            let url = format!("/clusters/{first}/clusters/{B}{path}");
            assert_eq!(admin.get(&url).await.code, 404, "{url}");
        }
    }
}

#[tokio::test]
async fn a_kind_may_be_called_clusters() {
    let (_, admin) = two().await;
    admin
        .post(&at(A, DEFINITIONS), &definition("clusters", "Cluster", &["v1"]))
        .await
        .expect(201);
    let clusters = at(A, "/apis/x.io/v1/clusters");
    admin
        .post(&clusters, &object("Cluster", "v1", "c", "red"))
        .await
        .expect(201);
    admin.get(&format!("{clusters}/c")).await.expect(200);
    assert_eq!(names(&admin.get(&clusters).await.expect(200)), ["c"]);
}

#[tokio::test]
async fn the_servers_own_figures_are_not_a_workspaces() {
    let (server, admin) = two().await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    assert_eq!(ann.get(&at(A, "/metrics")).await.code, 501);
    assert_eq!(ann.get("/metrics").await.code, 403);
    assert_eq!(admin.get("/metrics").await.code, 200);
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(ann.get(&at(A, path)).await.code, 200, "{path}");
    }
}

#[tokio::test]
async fn a_service_account_that_names_no_workspace_means_its_own() {
    let (server, admin) = two().await;
    for id in [A, "root"] {
        let accounts = at(id, "/api/v1/namespaces/default/serviceaccounts");
        admin
            .post(&accounts, &json!({"metadata": {"name": "bot"}}))
            .await
            .expect(201);
        let grant = json!({"metadata": {"name": "bot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}]});
        let path = at(id, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
        admin.post(&path, &grant).await.expect(201);
        let map = json!({"metadata": {"name": "here"}, "data": {"k": id}});
        admin.post(&at(id, MAPS), &map).await.expect(201);
    }
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    for id in [A, "root"] {
        let path = at(id, "/api/v1/namespaces/default/serviceaccounts/bot/token");
        let token = admin.post(&path, &request).await.expect(201)["status"]["token"].clone();
        let token = token.as_str().unwrap();
        let bot = server
            .anonymous()
            .with("authorization", &format!("Bearer {token}"));
        let here = bot.get(&format!("{MAPS}/here")).await.expect(200);
        assert_eq!(here["data"]["k"], id);
        // A claim that nobody has signed leads nowhere.
        let (head, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        for claims in [
            json!({"kubernetes.io": {"clusterName": B}}),
            json!({"kubernetes.io": {"clusterName": "*"}}),
            json!({"kubernetes.io": {"clusterName": "../root"}}),
            json!({"kubernetes.io": 1}),
        ] {
            let claims = base64::Engine::encode(
                &base64::engine::general_purpose::URL_SAFE_NO_PAD,
                claims.to_string(),
            );
            let forged = format!("Bearer {head}.{claims}.{signature}");
            let forger = server.anonymous().with("authorization", &forged);
            forger.get(&format!("{MAPS}/here")).await.expect(401);
        }
    }
}

#[tokio::test]
async fn metadata_of_all_workspaces_can_be_had_for_any_schema() {
    let (_, admin) = two().await;
    for (id, versions) in [(A, &["v1"][..]), (B, &["v1", "v2"])] {
        admin
            .post(&at(id, DEFINITIONS), &definition("masts", "Mast", versions))
            .await
            .expect(201);
        admin
            .post(&at(id, "/apis/x.io/v1/masts"), &object("Mast", "v1", "m", "red"))
            .await
            .expect(201);
        admin
            .post(&at(id, MAPS), &json!({"metadata": {"name": "m"}}))
            .await
            .expect(201);
    }
    let metadata = admin.with(
        "accept",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    );
    let maps = metadata.get("/clusters/*/api/v1/configmaps").await.expect(200);
    assert_eq!(
        (names(&maps), &maps["kind"]),
        (
            vec!["m".to_owned(), "m".to_owned()],
            &json!("PartialObjectMetadataList")
        )
    );
    assert!(maps["items"][0]["data"].is_null());
    // Whole objects of different schema are not in one list.
    assert_eq!(admin.get("/clusters/*/apis/x.io/v1/masts").await.code, 404);
    // To ask for metadata first does not cut what is read later.
    metadata.get(&at(A, "/apis/x.io/v1/masts")).await.expect(200);
    let whole = admin.get(&at(A, "/apis/x.io/v1/masts/m")).await.expect(200);
    assert_eq!(whole["spec"]["colour"], "red");
    // The version that only one of them serves.
    admin.get(&at(B, "/apis/x.io/v2/masts/m")).await.expect(200);
    assert_eq!(admin.get(&at(A, "/apis/x.io/v2/masts/m")).await.code, 404);
}

#[tokio::test]
async fn what_the_system_writes_into_metadata_cannot_be_changed() {
    let (server, admin) = two().await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    let made = admin
        .post(&at(A, MAPS), &json!({"metadata": {"name": "m"}}))
        .await
        .expect(201);
    let path = at(A, &format!("{MAPS}/m"));
    for patch in [
        json!({"metadata": {"creationTimestamp": null}}),
        json!({"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z"}}),
        json!({"metadata": {"generation": 7}}),
        json!({"metadata": {"selfLink": "/x"}}),
        json!({"metadata": {"deletionTimestamp": "2000-01-01T00:00:00Z"}}),
        json!({"metadata": {"annotations": {"kcp.io/cluster": B}}}),
        json!({"metadata": {"annotations": {"kcp.io/cluster": null}}}),
    ] {
        ann.patch("merge", &path, &patch).await;
        let now = admin.get(&path).await.expect(200);
        for field in [
            "uid",
            "creationTimestamp",
            "generation",
            "selfLink",
            "deletionTimestamp",
        ] {
            assert_eq!(now["metadata"][field], made["metadata"][field], "{patch}");
        }
        assert_eq!(now["metadata"]["annotations"]["kcp.io/cluster"], A, "{patch}");
    }
}

#[tokio::test]
async fn a_quota_counts_its_own_workspaces_objects_only() {
    let (_, admin) = two().await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    for (id, most) in [(A, "1"), (B, "3")] {
        let quota = json!({"metadata": {"name": "same"}, "spec": {"hard": {"count/secrets": most}}});
        admin.post(&at(id, quotas), &quota).await.expect(201);
        let status = json!({"status": {"hard": {"count/secrets": most}, "used": {"count/secrets": "0"}}});
        admin
            .patch("merge", &at(id, &format!("{quotas}/same/status")), &status)
            .await
            .expect(200);
    }
    let secrets = "/api/v1/namespaces/default/secrets";
    for (id, most) in [(A, 1), (B, 3)] {
        for number in 0..4 {
            let secret = json!({"metadata": {"name": format!("s{number}")}});
            let code = admin.post(&at(id, secrets), &secret).await.code;
            assert_eq!(code, if number < most { 201 } else { 403 }, "{id} {number}");
        }
    }
}

#[tokio::test]
async fn a_type_names_only_exports_that_its_author_may_bind() {
    let (server, admin) = two().await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    let exports = "/apis/apis.kcp.io/v1alpha2/apiexports";
    for (id, name) in [(A, "mine"), (B, "theirs")] {
        let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": name}, "spec": {}});
        admin.post(&at(id, exports), &export).await.expect(201);
    }
    let types = at(A, "/apis/tenancy.kcp.io/v1alpha1/workspacetypes");
    let offers = |list: Value| {
        json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "t"},
            "spec": {"defaultAPIBindings": list}})
    };
    let (mine, theirs) = (
        json!({"path": "root:a", "export": "mine"}),
        json!({"path": "root:b", "export": "theirs"}),
    );
    for list in [
        json!([theirs]),
        json!([mine, theirs]),
        json!([{"path": "root:b", "export": "nothing"}]),
        json!([{"path": "root:nowhere", "export": "nothing"}]),
    ] {
        let refused = ann.post(&types, &offers(list.clone())).await.expect(403);
        let why = refused["message"].as_str().unwrap();
        assert!(
            why.contains("create or update WorkspaceType: no permission to bind to export"),
            "{list}: {why}"
        );
    }
    ann.post(&types, &offers(json!([mine]))).await.expect(201);
    let path = format!("{types}/t");
    let more = json!({"spec": {"defaultAPIBindings": [mine, theirs]}});
    ann.patch("merge", &path, &more).await.expect(403);
    // What somebody else has put there stays, whoever changes the rest.
    admin.patch("merge", &path, &more).await.expect(200);
    let rest = json!({"spec": {"additionalWorkspaceLabels": {"x": "y"}}});
    ann.patch("merge", &path, &rest).await.expect(200);
}

#[tokio::test]
async fn a_binding_stays_with_its_export() {
    let (_, admin) = two().await;
    let bindings = at(A, "/apis/apis.kcp.io/v1alpha2/apibindings");
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "e"}, "spec": {}});
    admin
        .post(&at(B, "/apis/apis.kcp.io/v1alpha2/apiexports"), &export)
        .await
        .expect(201);
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "e"},
        "spec": {"reference": {"export": {"path": "root:b", "name": "e"}}}});
    admin.post(&bindings, &binding).await.expect(201);
    for other in [
        json!({"path": "root:b", "name": "f"}),
        json!({"path": "root:a", "name": "e"}),
    ] {
        let moved = json!({"spec": {"reference": {"export": other}}});
        admin
            .patch("merge", &format!("{bindings}/e"), &moved)
            .await
            .expect(422);
    }
}

#[tokio::test]
async fn the_audit_log_names_the_workspace() {
    let log = tempfile::tempdir().unwrap();
    let file = log.path().join("audit.log");
    let server = Server::start_audited(&file).await;
    workspace(&server, "root", "a", A).await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    ann.get(&format!("/clusters/root:a{MAPS}")).await.expect(200);
    let found = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|event| event["user"]["username"] == "ann")
            .find(|event| event["stage"] == "ResponseComplete")
    });
    let annotations = &found.expect("an event")["annotations"];
    assert_eq!(annotations["tenancy.kcp.io/workspace"], A);
    assert_eq!(annotations["kcp.io/path"], "root:a");
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
}
