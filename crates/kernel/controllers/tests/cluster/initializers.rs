//! Workspaces that wait for controllers of others: these find them through the virtual workspaces of their type.

use http::Request;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, eventually, gone};
use crate::tenancy::{condition, create, ready, typed, workspaces};

const CLUSTERS: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters";

fn types(place: &View) -> Api<DynamicObject> {
    place.api("tenancy.kcp.io/v1alpha1", "WorkspaceType", "workspacetypes", "")
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    client
        .request(request.body(body.to_string().into_bytes()).unwrap())
        .await
}

/// The ids of workspaces that wait at a door.
async fn waiting(client: &Client, door: &str) -> Vec<String> {
    let path = format!("{door}/clusters/*{CLUSTERS}");
    let list = send(client, "GET", &path, &json!({})).await.unwrap();
    let ids = list["items"].as_array().unwrap().iter();
    ids.map(|it| {
        it["metadata"]["annotations"]["kcp.io/cluster"]
            .as_str()
            .unwrap()
            .to_owned()
    })
    .collect()
}

/// Takes a worker's name off, as it finds the others; they may be at work at the same time.
async fn leave(client: &Client, door: &str, id: &str, field: &str) {
    let cluster = format!("{door}/clusters/{id}{CLUSTERS}/cluster");
    eventually("the name is off", || async {
        let read = send(client, "GET", &cluster, &json!({})).await.unwrap();
        let all = read["status"][field].as_array().cloned().unwrap_or_default();
        let left: Vec<Value> = all.into_iter().filter(|it| *it != "root:slow").collect();
        let version = &read["metadata"]["resourceVersion"];
        let done = json!({"metadata": {"resourceVersion": version}, "status": {field: left}});
        let answer = send(client, "PATCH", &format!("{cluster}/status"), &done).await;
        if let Err(error) = &answer {
            assert!(
                matches!(error, kube::Error::Api(status) if status.code == 409),
                "{error}"
            );
        }
        answer.is_ok()
    })
    .await;
}

/// Both doors of a type, as its status tells them.
async fn doors(cluster: &Cluster, name: &str) -> [String; 2] {
    let api = types(cluster);
    eventually("the type says where its doors are", || async {
        api.get(name).await.unwrap().data["status"]["virtualWorkspaces"].is_array()
    })
    .await;
    let kind = api.get(name).await.unwrap();
    assert_eq!(condition(&kind, "VirtualWorkspaceURLsReady")["status"], "True");
    [0, 1].map(|place| {
        let url = kind.data["status"]["virtualWorkspaces"][place]["url"]
            .as_str()
            .unwrap();
        url.strip_prefix("https://192.0.2.7:6443").unwrap().to_owned()
    })
}

fn slow() -> Value {
    json!({"metadata": {"name": "slow"}, "spec": {
        "initializer": true, "terminator": true, "extend": {"with": [{"name": "universal", "path": "root"}]},
        "initializerPermissions": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
        "terminatorPermissions": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
    }})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_others_fills_a_workspace_and_clears_it() {
    let cluster = Cluster::start().await;
    create(&types(&cluster), slow()).await;
    let [first, last] = doors(&cluster, "slow").await;
    assert_eq!(first, "/services/initializingworkspaces/root:slow");
    assert_eq!(last, "/services/terminatingworkspaces/root:slow");
    let worker = cluster.everything("worker", &["system:masters"]);
    assert_eq!(waiting(&worker, &first).await, [""; 0]);
    let api = workspaces(&cluster);
    create(
        &api,
        json!({"metadata": {"name": "w"}, "spec": {"type": {"name": "slow"}}}),
    )
    .await;
    eventually("it waits", || async { waiting(&worker, &first).await.len() == 1 }).await;
    let id = waiting(&worker, &first).await.remove(0);
    let maps = format!("{first}/clusters/{id}/api/v1/namespaces/default/configmaps");
    send(&worker, "POST", &maps, &json!({"metadata": {"name": "welcome"}}))
        .await
        .unwrap();
    leave(&worker, &first, &id, "initializers").await;
    assert_eq!(ready(&api, "w").await, id);
    eventually("nobody waits", || async {
        waiting(&worker, &first).await.is_empty()
    })
    .await;
    assert!(
        send(&worker, "GET", &maps, &json!({})).await.is_err(),
        "the door is shut"
    );
    cluster
        .at(&id)
        .config_maps("default")
        .get("welcome")
        .await
        .unwrap();
    // Its end.
    api.delete("w", &DeleteParams::default()).await.unwrap();
    eventually("it waits again", || async {
        waiting(&worker, &last).await == [id.clone()]
    })
    .await;
    let welcome = format!("{last}/clusters/{id}/api/v1/namespaces/default/configmaps/welcome");
    send(&worker, "DELETE", &welcome, &json!({})).await.unwrap();
    leave(&worker, &last, &id, "terminators").await;
    gone(&api, "w").await;
    assert_eq!(waiting(&worker, &last).await, [""; 0]);
    assert_eq!(cluster.stored_in(&id).await, [""; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_may_be_deleted_while_it_is_initialized() {
    let cluster = Cluster::start().await;
    create(&types(&cluster), slow()).await;
    let [first, last] = doors(&cluster, "slow").await;
    let worker = cluster.everything("worker", &["system:masters"]);
    let api = workspaces(&cluster);
    create(
        &api,
        json!({"metadata": {"name": "w"}, "spec": {"type": {"name": "slow"}}}),
    )
    .await;
    eventually("it waits", || async { waiting(&worker, &first).await.len() == 1 }).await;
    let id = waiting(&worker, &first).await.remove(0);
    let maps = format!("{first}/clusters/{id}/api/v1/namespaces/default/configmaps");
    let half = json!({"metadata": {"name": "half", "finalizers": ["x.io/hold"]}});
    send(&worker, "POST", &maps, &half).await.unwrap();
    api.delete("w", &DeleteParams::default()).await.unwrap();
    eventually("the terminator has its turn", || async {
        waiting(&worker, &last).await == [id.clone()]
    })
    .await;
    // The initializer has lost it, in the middle of its work.
    let late = send(&worker, "POST", &maps, &json!({"metadata": {"name": "late"}})).await;
    assert!(late.is_err(), "the door is shut");
    leave(&worker, &last, &id, "terminators").await;
    eventually("it says what holds it", || async {
        let told = condition(&api.get("w").await.unwrap(), "WorkspaceContentDeleted");
        let message = told["message"].as_str().unwrap_or_default();
        told["reason"] == "SomeResourcesRemain" && message.contains("namespaces. has 1 resource instances")
    })
    .await;
    let held = cluster.at(&id).config_maps("default");
    let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    held.patch("half", &kube::api::PatchParams::default(), &free)
        .await
        .unwrap();
    gone(&api, "w").await;
    assert_eq!(cluster.stored_in(&id).await, [""; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_in_a_ring_and_names_at_their_limits() {
    let cluster = Cluster::start().await;
    let api = workspaces(&cluster);
    for (name, base) in [
        ("ring-a", "ring-b"),
        ("ring-b", "ring-c"),
        ("ring-c", "ring-a"),
        ("ring-self", "ring-self"),
    ] {
        let kind = json!({"metadata": {"name": name}, "spec": {"extend": {"with": [{"name": base, "path": "root"}]}}});
        create(&types(&cluster), kind).await;
    }
    let refused = async |api: &Api<DynamicObject>, name: &str, kind: &str, word: &str| {
        let object = json!({"metadata": {"name": name}, "spec": {"type": {"name": kind}}});
        let error = api
            .create(&PostParams::default(), &typed(api, object))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(word), "{name} {kind}: {error}");
    };
    refused(&api, "w", "ring-a", "circular dependency").await;
    refused(&api, "w", "ring-self", "circular dependency").await;
    // The longest name, and one more.
    refused(
        &api,
        &"n".repeat(64),
        "universal",
        "Too long: may not be more than 63 bytes",
    )
    .await;
    refused(&api, "-n", "universal", "should match").await;
    refused(&api, "n.n", "universal", "should match").await;
    let longest = "n".repeat(63);
    let object = json!({"metadata": {"name": longest}, "spec": {"type": {"name": "universal"}}});
    create(&api, object).await;
    let id = ready(&api, &longest).await;
    let url = api.get(&longest).await.unwrap().data["spec"]["URL"].clone();
    assert_eq!(url, format!("https://192.0.2.7:6443/clusters/root:{longest}"));
    // As deep as workspaces nest, each with the longest name; every one works, and they all go with the first.
    let mut place = cluster.at(&id);
    let mut ids = vec![id];
    for _ in 0..6 {
        let inside = workspaces(&place);
        let object = json!({"metadata": {"name": longest}, "spec": {"type": {"name": "universal"}}});
        create(&inside, object).await;
        let id = ready(&inside, &longest).await;
        place = cluster.at(&id);
        ids.push(id);
    }
    create(
        &place.config_maps("default"),
        json!({"metadata": {"name": "deep"}}),
    )
    .await;
    api.delete(&longest, &DeleteParams::default()).await.unwrap();
    gone(&api, &longest).await;
    for id in ids {
        assert_eq!(cluster.stored_in(&id).await, [""; 0]);
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_have_a_home() {
    let cluster = Cluster::start().await;
    let get = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/~";
    let ann = cluster.everything("ann", &["system:authenticated"]);
    assert!(send(&ann, "GET", get, &json!({})).await.is_err(), "only who may");
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "home"}, "rules": [{"apiGroups": ["tenancy.kcp.io"],
        "resources": ["workspaces"], "resourceNames": ["~"], "verbs": ["get", "create"]}]});
    create(&cluster.api(rbac, "ClusterRole", "clusterroles", ""), role).await;
    let grant = json!({"metadata": {"name": "home"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "home"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]});
    create(
        &cluster.api(rbac, "ClusterRoleBinding", "clusterrolebindings", ""),
        grant,
    )
    .await;
    let mut ids = Vec::new();
    for (user, path) in [("ann", Some("user:ann")), ("bob@example.com", None)] {
        let client = cluster.everything(user, &["system:authenticated"]);
        let home = send(&client, "GET", get, &json!({})).await.unwrap();
        let id = home["spec"]["cluster"].as_str().unwrap().to_owned();
        assert_eq!(home["status"]["phase"], "Ready");
        let path = path.unwrap_or(&id);
        assert_eq!(
            home["spec"]["URL"],
            format!("https://192.0.2.7:6443/clusters/{path}")
        );
        // The same one each time; it is his, with what every workspace has.
        assert_eq!(
            send(&client, "GET", get, &json!({})).await.unwrap()["spec"]["cluster"],
            id
        );
        let maps = format!("/clusters/{path}/api/v1/namespaces/default/configmaps");
        send(&client, "POST", &maps, &json!({"metadata": {"name": "mine"}}))
            .await
            .unwrap();
        let child =
            json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "w"}});
        let children = format!("/clusters/{path}/apis/tenancy.kcp.io/v1alpha1/workspaces");
        send(&client, "POST", &children, &child).await.unwrap();
        ready(&workspaces(&cluster.at(&id)), "w").await;
        let deep = format!("/clusters/{path}:w/api/v1/namespaces/default/configmaps");
        send(&client, "POST", &deep, &json!({"metadata": {"name": "mine"}}))
            .await
            .unwrap();
        ids.push(id);
    }
    for path in ["user:bob", &ids[1]] {
        let maps = format!("/clusters/{path}/api/v1/configmaps");
        assert!(send(&ann, "GET", &maps, &json!({})).await.is_err(), "{path}");
    }
    for nobody in ["system:anonymous", "system:serviceaccount:default:x"] {
        let client = cluster.everything(nobody, &["system:authenticated"]);
        assert!(send(&client, "GET", get, &json!({})).await.is_err(), "{nobody}");
    }
    cluster.stop().await;
}
