//! Who rules one workspace tries everything to see or touch the next one.
//!
//! Both neighbours have objects of the same names. After every trick, nothing of B's may have appeared in an answer to A's
//! ruler, and nothing in B may have changed.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Client, Reply, Server};
use crate::workspaces::{enthrone, workspace};

const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";
/// Stands in every object of B, and nowhere else.
const MARK: &str = "treasure-of-b";

struct Neighbours {
    server: Server,
    ann: Client,
    uid_in_b: String,
}

async fn neighbours() -> Neighbours {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, "root", "b", B).await;
    enthrone(&server, A, "ann").await;
    let admin = server.admin();
    let mut uid_in_b = String::new();
    for (id, mark) in [(A, "plain"), (B, MARK)] {
        let objects = [
            (
                "/api/v1/namespaces/default/configmaps",
                json!({"metadata": {"name": "same", "labels": {"l": mark}}, "data": {"k": mark}}),
            ),
            (
                "/api/v1/namespaces/default/secrets",
                json!({"metadata": {"name": "same"}, "stringData": {"k": mark}}),
            ),
            (
                "/api/v1/namespaces/default/serviceaccounts",
                json!({"metadata": {"name": "same", "annotations": {"k": mark}}}),
            ),
            (
                "/apis/apps/v1/namespaces/default/deployments",
                json!({
                "metadata": {"name": "same", "annotations": {"k": mark}},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "a"}}, "template": {
                    "metadata": {"labels": {"a": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
            ),
            (
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                json!({
                "metadata": {"name": "widgets.x.io", "annotations": {"k": mark}},
                "spec": {"group": "x.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
            ),
            (
                "/apis/x.io/v1/namespaces/default/widgets",
                json!({
                "apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "same"}, "k": mark}),
            ),
        ];
        for (path, object) in objects {
            let made = admin
                .post(&format!("/clusters/{id}{path}"), &object)
                .await
                .expect(201);
            if id == B {
                uid_in_b = made["metadata"]["uid"].as_str().unwrap().to_owned();
            }
        }
    }
    Neighbours {
        ann: server.user("ann", &[]),
        server,
        uid_in_b,
    }
}

impl Neighbours {
    /// Everything that is in B, as the platform sees it.
    async fn state_of_b(&self) -> Vec<Value> {
        let admin = self.server.admin();
        let mut state = Vec::new();
        for path in [
            "/api/v1/namespaces",
            "/api/v1/configmaps",
            "/api/v1/secrets",
            "/api/v1/serviceaccounts",
            "/apis/apps/v1/deployments",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/x.io/v1/widgets",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/apis/core.kcp.io/v1alpha1/logicalclusters",
            "/apis/tenancy.kcp.io/v1alpha1/workspaces",
            "/apis/apis.kcp.io/v1alpha2/apibindings",
            "/api/v1/events",
        ] {
            let list = admin.get(&format!("/clusters/{B}{path}")).await.expect(200);
            state.push(list["items"].clone());
        }
        state
    }
}

fn check(reply: &Reply) {
    let body = String::from_utf8_lossy(&reply.body);
    assert!(!body.contains(MARK), "{} gave it away: {body}", reply.request);
    assert_ne!(reply.code, 500, "{}: {body}", reply.request);
}

/// The ways in which a URL may try to mean B.
fn detours(path: &str) -> Vec<String> {
    vec![
        format!("/clusters/{B}{path}"),
        format!("/clusters/root:b{path}"),
        format!("/clusters/root%3Ab{path}"),
        format!("/clusters/{A}/../{B}{path}"),
        format!("/clusters/{A}%2F..%2F{B}{path}"),
        format!("/clusters/{A}/clusters/{B}{path}"),
        format!("/clusters/{A},{B}{path}"),
        format!("/clusters/{A}:{B}{path}"),
        format!("/clusters/{A}:..:b{path}"),
        format!("/clusters/*{path}"),
        format!("/clusters/%2A{path}"),
        format!("//clusters/{B}{path}"),
        format!("/clusters//{B}{path}"),
        format!("/CLUSTERS/{B}{path}"),
        format!("/clusters/{}{path}", B.to_uppercase()),
        format!("/clusters/{B}%00{path}"),
        format!("/clusters/system:fairway{path}"),
        format!("/services/apiexport/{A}/x/clusters/{B}{path}"),
        format!("/services/apiexport/{B}/x/clusters/{B}{path}"),
        format!("/services/initializingworkspaces/root:universal/clusters/{B}{path}"),
        format!("/services/apiexport/{A}/..%2F..%2F..%2Fclusters%2F{B}{path}"),
    ]
}

#[tokio::test]
async fn no_url_leads_next_door() {
    let n = neighbours().await;
    let before = n.state_of_b().await;
    let body = json!({"metadata": {"name": "planted"}, "data": {"k": "v"}}).to_string();
    for path in [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/same",
        "/api/v1/secrets",
        "/apis/x.io/v1/widgets",
        "/apis/x.io/v1/namespaces/default/widgets/same",
        "/apis/apps/v1/namespaces/default/deployments/same/scale",
        "/apis/apps/v1/namespaces/default/deployments/same/status",
        "/api/v1/namespaces/default/serviceaccounts/same/token",
        "/api/v1/namespaces/default",
        "/openapi/v3/apis/x.io/v1",
        "/apis",
        "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster",
    ] {
        for url in detours(path) {
            let Ok(uri) = url.parse::<http::Uri>() else {
                continue;
            };
            for method in [
                Method::GET,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
                Method::HEAD,
                Method::OPTIONS,
            ] {
                let kind = if method == Method::PATCH {
                    "application/merge-patch+json"
                } else {
                    "application/json"
                };
                check(&n.ann.send(method, &uri.to_string(), kind, body.clone()).await);
            }
            let watch = format!("{uri}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true");
            let reply = n.ann.get(&watch).await;
            assert_ne!(reply.code, 200, "{watch}");
        }
    }
    assert_eq!(n.state_of_b().await, before);
}

#[tokio::test]
async fn no_selector_or_version_shows_the_neighbour() {
    let n = neighbours().await;
    let before = n.state_of_b().await;
    let revision = n.server.revision().await;
    for path in [
        "/api/v1/configmaps",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/secrets",
        "/apis/x.io/v1/widgets",
    ] {
        for query in [
            format!("labelSelector=l%3D{MARK}"),
            "labelSelector=l".to_owned(),
            "fieldSelector=metadata.name%3Dsame".to_owned(),
            "fieldSelector=metadata.namespace%3Ddefault".to_owned(),
            "limit=1".to_owned(),
            "resourceVersion=0".to_owned(),
            format!("resourceVersion={revision}&resourceVersionMatch=Exact"),
            format!("resourceVersion={revision}&resourceVersionMatch=NotOlderThan"),
            "watch=1&resourceVersion=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dsame".to_owned(),
            "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1".to_owned(),
        ] {
            let reply = n.ann.get(&format!("/clusters/{A}{path}?{query}")).await;
            check(&reply);
        }
        // A page of one's own cannot be continued in another's.
        let start = n
            .server
            .admin()
            .get(&format!("/clusters/{B}{path}?limit=1"))
            .await
            .expect(200);
        if let Some(token) = start["metadata"]["continue"].as_str() {
            check(
                &n.ann
                    .get(&format!("/clusters/{A}{path}?limit=5&continue={token}"))
                    .await,
            );
        }
    }
    for accept in [
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/yaml",
    ] {
        check(
            &n.ann
                .with("accept", accept)
                .get(&format!("/clusters/{A}/api/v1/configmaps"))
                .await,
        );
    }
    assert_eq!(n.state_of_b().await, before);
}

#[tokio::test]
async fn what_one_writes_at_home_stays_at_home() {
    let n = neighbours().await;
    let before = n.state_of_b().await;
    let maps = format!("/clusters/{A}/api/v1/namespaces/default/configmaps");
    let objects = [
        json!({"metadata": {"name": "o1", "annotations": {"kcp.io/cluster": B}}}),
        json!({"metadata": {"name": "o2", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "same", "uid": n.uid_in_b, "controller": true, "blockOwnerDeletion": true}]}}),
        json!({"metadata": {"name": "o3", "finalizers": ["x.io/hold"], "labels": {"claimed.internal.apis.kcp.io/x": "y"}}}),
        json!({"metadata": {"name": "o4", "namespace": "default", "uid": n.uid_in_b, "selfLink": format!("/clusters/{B}/x")}}),
        json!({"metadata": {"name": format!("../{B}/default/same")}}),
        json!({"metadata": {"name": "o5", "namespace": format!("{B}/default")}}),
        json!({"metadata": {"generateName": format!("{B}//")}}),
    ];
    for object in &objects {
        check(&n.ann.post(&maps, object).await);
    }
    for name in [
        "..%2F..%2Fbbbbbbbbbbbbbbbb%2Fdefault%2Fsame",
        "%2e%2e",
        "same%00",
        "same%2f..%2f..%2f",
    ] {
        check(&n.ann.get(&format!("{maps}/{name}")).await);
        check(&n.ann.delete(&format!("{maps}/{name}")).await);
    }
    for namespace in [
        format!("..%2F{B}%2Fdefault"),
        format!("{B}%2Fdefault"),
        "%2e%2e".to_owned(),
    ] {
        let path = format!("/clusters/{A}/api/v1/namespaces/{namespace}/configmaps");
        check(&n.ann.get(&path).await);
        check(&n.ann.post(&path, &json!({"metadata": {"name": "planted"}})).await);
        check(&n.ann.delete(&path).await);
    }
    for path in [
        "/api/v1/namespaces/default/configmaps",
        "/apis/x.io/v1/namespaces/default/widgets",
        "/api/v1/namespaces/default/secrets",
    ] {
        let uid = json!({"preconditions": {"uid": n.uid_in_b}});
        check(
            &n.ann
                .delete_with(&format!("/clusters/{A}{path}/same"), &uid)
                .await,
        );
        n.ann.delete(&format!("/clusters/{A}{path}")).await;
    }
    n.ann
        .delete(&format!(
            "/clusters/{A}/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.x.io"
        ))
        .await;
    n.ann
        .delete(&format!("/clusters/{A}/api/v1/namespaces/default"))
        .await;
    assert_eq!(n.state_of_b().await, before);
}

#[tokio::test]
async fn nobody_becomes_somebody_next_door() {
    let n = neighbours().await;
    let before = n.state_of_b().await;
    let disguises: Vec<Client> = vec![
        n.ann
            .with("impersonate-user", "admin")
            .with("impersonate-group", "system:masters"),
        n.ann
            .with("impersonate-user", "system:serviceaccount:default:same"),
        n.ann
            .with("impersonate-user", "bob")
            .with("impersonate-extra-authentication.kcp.io%2fcluster-name", B),
        n.ann.with("impersonate-user", "bob").with(
            "impersonate-extra-authentication.kcp.io%2fscopes",
            &format!("cluster:{B}"),
        ),
        n.ann
            .with("x-remote-user", "admin")
            .with("x-remote-group", "system:masters"),
        n.ann.with("x-kcp-internal-deep-subjectaccessreview", "true"),
        n.ann.with("x-kubernetes-cluster", B),
        n.ann.with("host", &format!("{B}.kernel.test")),
    ];
    for disguise in &disguises {
        for id in [A, B, "root", "*"] {
            for path in ["/api/v1/configmaps", "/api/v1/secrets"] {
                let reply = disguise.get(&format!("/clusters/{id}{path}")).await;
                check(&reply);
                assert!(id == A || reply.code >= 400, "{} {}", reply.request, reply.code);
            }
        }
    }
    // Reviews answer for the workspace that they are asked in.
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let admin = n.server.admin();
    let at_home = admin
        .post(&format!("/clusters/{A}{reviews}"), &review)
        .await
        .expect(201);
    let next_door = admin
        .post(&format!("/clusters/{B}{reviews}"), &review)
        .await
        .expect(201);
    assert_eq!(
        (&at_home["status"]["allowed"], &next_door["status"]["allowed"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        n.ann.post(&format!("/clusters/{B}{reviews}"), &review).await.code,
        403
    );
    // A workspace below one's own cannot be given the neighbour's place.
    let steal = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "mine",
        "annotations": {"internal.tenancy.kcp.io/cluster": B}}, "spec": {"cluster": B}});
    n.ann
        .post(
            &format!("/clusters/{A}/apis/tenancy.kcp.io/v1alpha1/workspaces"),
            &steal,
        )
        .await
        .expect(403);
    let named = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "mine",
        "annotations": {"internal.tenancy.kcp.io/cluster": B}}});
    let made = n
        .ann
        .post(
            &format!("/clusters/{A}/apis/tenancy.kcp.io/v1alpha1/workspaces"),
            &named,
        )
        .await
        .expect(201);
    assert!(
        made["metadata"]["annotations"]["internal.tenancy.kcp.io/cluster"].is_null(),
        "{made}"
    );
    let point = json!({"spec": {"cluster": B, "URL": format!("https://x/clusters/{B}")}});
    n.ann
        .patch(
            "merge",
            &format!("/clusters/{A}/apis/tenancy.kcp.io/v1alpha1/workspaces/mine"),
            &point,
        )
        .await
        .expect(403);
    assert_eq!(n.state_of_b().await, before);
}
