//! Default roles and bindings at the next start: what is missing comes back, what is added or protected stays.

use fairway_kernel_apiserver::bootstrap;
use serde_json::{Value, json};

use crate::harness::{Client, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

async fn get(admin: &Client, path: &str) -> Value {
    admin.get(&format!("{RBAC}/{path}")).await.expect(200)
}

async fn edit(admin: &Client, path: &str, edit: impl FnOnce(&mut Value)) {
    let mut object = get(admin, path).await;
    edit(&mut object);
    admin.put(&format!("{RBAC}/{path}"), &object).await.expect(200);
}

#[tokio::test]
async fn changed_defaults_are_repaired_and_additions_kept() {
    let server = Server::start().await;
    let admin = server.admin();
    let role = "clusterroles/system:node-proxier";
    let before = get(&admin, role).await;
    let extra = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["extras"]});
    edit(&admin, role, |role| role["rules"] = json!([extra])).await;
    let binding = "clusterrolebindings/system:node-proxier";
    edit(&admin, binding, |binding| {
        binding["subjects"] =
            json!([{"kind": "User", "name": "mine", "apiGroup": "rbac.authorization.k8s.io"}]);
    })
    .await;
    bootstrap::run(&server.kernel).await.unwrap();
    let rules = get(&admin, role).await["rules"].clone();
    assert_eq!(rules[0], extra);
    assert!(rules.as_array().unwrap().len() > 1, "{rules}");
    let subjects = get(&admin, binding).await["subjects"].clone();
    assert_eq!(
        (&subjects[0]["name"], &subjects[1]["name"]),
        (&json!("mine"), &json!("system:kube-proxy"))
    );
    // A start that finds everything as it should be writes nothing.
    let revision = server.revision().await;
    bootstrap::run(&server.kernel).await.unwrap();
    assert_eq!(server.revision().await, revision);
    assert_eq!(
        get(&admin, role).await["metadata"]["uid"],
        before["metadata"]["uid"]
    );
}

#[tokio::test]
async fn protected_defaults_are_left_alone() {
    let server = Server::start().await;
    let admin = server.admin();
    let role = "clusterroles/system:node-proxier";
    edit(&admin, role, |role| {
        role["rules"] = json!([]);
        role["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
    })
    .await;
    // Without the annotation an object is brought up to date, as upstream does.
    let open = "clusterroles/system:node-problem-detector";
    edit(&admin, open, |role| {
        role["rules"] = json!([]);
        role["metadata"]["annotations"] = json!({});
    })
    .await;
    bootstrap::run(&server.kernel).await.unwrap();
    assert!(
        get(&admin, role).await["rules"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    let open = get(&admin, open).await;
    assert!(!open["rules"].as_array().unwrap().is_empty(), "{open}");
    assert_eq!(open["metadata"]["annotations"][AUTO_UPDATE], "true");
}

#[tokio::test]
async fn a_binding_to_another_role_is_made_anew() {
    let server = Server::start().await;
    let admin = server.admin();
    let binding = "clusterrolebindings/system:node-proxier";
    let mut object = get(&admin, binding).await;
    let expected = object["roleRef"].clone();
    admin.delete(&format!("{RBAC}/{binding}")).await.expect(200);
    object["roleRef"]["name"] = "view".into();
    object["metadata"] = json!({"name": "system:node-proxier"});
    let changed = admin
        .post(&format!("{RBAC}/clusterrolebindings"), &object)
        .await
        .expect(201);
    bootstrap::run(&server.kernel).await.unwrap();
    let now = get(&admin, binding).await;
    assert_eq!(now["roleRef"], expected);
    assert_ne!(now["metadata"]["uid"], changed["metadata"]["uid"]);
}
