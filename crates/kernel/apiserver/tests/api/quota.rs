//! Quotas and limit ranges as clients see them, and what many clients at once can do to a quota.
//!
//! No controller runs here, so the tests write the status that it would.

#![allow(clippy::needless_pass_by_value, reason = "the tests hand over JSON literals")]

use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_authz::UserInfo;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, DEFINITIONS, Server, config_map, definition};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const LIMIT_RANGES: &str = "/api/v1/namespaces/default/limitranges";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a quota whose status says that this is used.
async fn quota(admin: &Client, name: &str, hard: Value, used: Value) {
    let made = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
    let mut made = admin.post(QUOTAS, &made).await.expect(201);
    made["status"] = json!({"hard": hard, "used": used});
    admin
        .put(&format!("{QUOTAS}/{name}/status"), &made)
        .await
        .expect(200);
}

async fn used(admin: &Client, name: &str) -> Value {
    admin.get(&format!("{QUOTAS}/{name}")).await.expect(200)["status"]["used"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_exactly_as_many_succeed_as_fit() {
    let server = Server::start().await;
    let admin = server.admin();
    quota(
        &admin,
        "few",
        json!({"configmaps": "10", "count/configmaps": "64"}),
        json!({"configmaps": "0", "count/configmaps": "0"}),
    )
    .await;
    quota(
        &admin,
        "other",
        json!({"count/configmaps": "64"}),
        json!({"count/configmaps": "0"}),
    )
    .await;
    let tries = (0..64).map(|i| {
        let admin = admin.clone();
        tokio::spawn(async move { admin.post(CONFIG_MAPS, &config_map(&format!("c{i}"))).await })
    });
    let mut made = 0;
    for reply in futures::future::join_all(tries).await {
        let reply = reply.unwrap();
        if reply.code == 201 {
            made += 1;
        } else {
            let words = "is forbidden: exceeded quota: few, requested: configmaps=1, used: configmaps=10, limited: configmaps=10";
            reply.refused(403, "Forbidden", words);
        }
    }
    assert_eq!(made, 10);
    let there = admin.get(CONFIG_MAPS).await.expect(200)["items"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(there, 10);
    assert_eq!(
        used(&admin, "few").await,
        json!({"configmaps": "10", "count/configmaps": "10"})
    );
    assert_eq!(used(&admin, "other").await, json!({"count/configmaps": "10"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_replicas_share_what_is_left() {
    let server = Server::start().await;
    let admin = server.admin();
    quota(
        &admin,
        "few",
        json!({"configmaps": "10"}),
        json!({"configmaps": "0"}),
    )
    .await;
    let second = server.restarted().await;
    let user = UserInfo::new("admin", ["system:masters".to_owned()]);
    let other = kube::Client::new(InProcess::new(second, user), "default");
    let theirs: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(other, "default");
    let tries = (0..32).map(|i| {
        let (admin, theirs) = (admin.clone(), theirs.clone());
        tokio::spawn(async move {
            if i % 2 == 0 {
                admin.post(CONFIG_MAPS, &config_map(&format!("c{i}"))).await.code == 201
            } else {
                let object = serde_json::from_value(config_map(&format!("c{i}"))).unwrap();
                theirs
                    .create(&kube::api::PostParams::default(), &object)
                    .await
                    .is_ok()
            }
        })
    });
    let made = futures::future::join_all(tries).await;
    let made = made.into_iter().filter(|made| *made.as_ref().unwrap()).count();
    assert!(made <= 10, "{made}");
    let there = admin.get(CONFIG_MAPS).await.expect(200)["items"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(there, made);
    assert_eq!(used(&admin, "few").await, json!({"configmaps": made.to_string()}));
}

#[tokio::test]
async fn an_object_and_its_charge_are_one_revision() {
    let server = Server::start().await;
    let admin = server.admin();
    quota(
        &admin,
        "few",
        json!({"configmaps": "5"}),
        json!({"configmaps": "0"}),
    )
    .await;
    let before = server.revision().await;
    let made = admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let charged = admin.get(&format!("{QUOTAS}/few")).await.expect(200);
    assert_eq!(
        made["metadata"]["resourceVersion"],
        charged["metadata"]["resourceVersion"]
    );
    assert_eq!(
        server.revision().await,
        before + 1,
        "one transaction: a crash leaves both or neither"
    );
    admin
        .post(CONFIG_MAPS, &config_map("a"))
        .await
        .refused(409, "AlreadyExists", "");
    assert_eq!(
        used(&admin, "few").await,
        json!({"configmaps": "1"}),
        "what was not stored is not charged"
    );
    assert_eq!(server.revision().await, before + 1);
    server.restarted().await;
    let refused = admin.delete(&format!("{CONFIG_MAPS}/a")).await;
    refused.expect(200);
    assert_eq!(
        used(&admin, "few").await,
        json!({"configmaps": "1"}),
        "only a count lowers it"
    );
}

#[tokio::test]
async fn a_dry_run_is_judged_and_not_charged() {
    let server = Server::start().await;
    let admin = server.admin();
    quota(
        &admin,
        "few",
        json!({"configmaps": "1", "services.nodeports": "0"}),
        json!({"configmaps": "0", "services.nodeports": "0"}),
    )
    .await;
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    for _ in 0..2 {
        admin.post(&dry, &config_map("a")).await.expect(201);
    }
    assert_eq!(used(&admin, "few").await["configmaps"], "0");
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    admin
        .post(&dry, &config_map("b"))
        .await
        .refused(403, "Forbidden", "exceeded quota: few");
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    admin.post(services, &service).await.expect(201);
    let change = json!({"spec": {"type": "NodePort"}});
    for query in ["", "?dryRun=All"] {
        let path = format!("{services}/s{query}");
        let words =
            "requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0";
        admin
            .patch("merge", &path, &change)
            .await
            .refused(403, "Forbidden", words);
    }
    assert_eq!(
        used(&admin, "few").await,
        json!({"configmaps": "1", "services.nodeports": "0"})
    );
}

#[tokio::test]
async fn an_update_is_charged_what_it_adds() {
    let server = Server::start().await;
    let admin = server.admin();
    quota(
        &admin,
        "ports",
        json!({"services.nodeports": "3"}),
        json!({"services.nodeports": "0"}),
    )
    .await;
    let services = "/api/v1/namespaces/default/services";
    let ports = |count: u16| {
        (0..count)
            .map(|i| json!({"name": format!("p{i}"), "port": 80 + i}))
            .collect::<Vec<_>>()
    };
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports(1)}});
    let made = admin.post(services, &service).await.expect(201);
    assert_eq!(used(&admin, "ports").await, json!({"services.nodeports": "1"}));
    let path = format!("{services}/s");
    let mut wider = made;
    wider["spec"]["ports"] = json!(ports(3));
    admin.put(&path, &wider).await.expect(200);
    assert_eq!(used(&admin, "ports").await, json!({"services.nodeports": "3"}));
    let four = json!({"spec": {"ports": ports(4)}});
    admin.patch("merge", &path, &four).await.refused(
        403,
        "Forbidden",
        "requested: services.nodeports=1, used: services.nodeports=3",
    );
}

#[tokio::test]
async fn custom_resources_count() {
    let server = Server::start().await;
    let admin = server.admin();
    let spec = json!({"type": "object"});
    admin
        .post(DEFINITIONS, &definition("widgets", "Widget", &spec))
        .await
        .expect(201);
    let hard = json!({"count/widgets.test.dev": "1"});
    quota(&admin, "few", hard, json!({"count/widgets.test.dev": "0"})).await;
    let widgets = "/apis/test.dev/v1/namespaces/default/widgets";
    let widget =
        |name: &str| json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": name}});
    admin.post(widgets, &widget("a")).await.expect(201);
    let refused = admin.post(widgets, &widget("b")).await;
    let status = refused.refused(403, "Forbidden", "");
    assert_eq!(
        status["message"],
        "widgets.test.dev \"b\" is forbidden: exceeded quota: few, requested: count/widgets.test.dev=1, used: \
         count/widgets.test.dev=1, limited: count/widgets.test.dev=1"
    );
    server.namespace("elsewhere").await;
    let free = "/apis/test.dev/v1/namespaces/elsewhere/widgets";
    admin.post(free, &widget("b")).await.expect(201);
}

#[tokio::test]
async fn a_quota_counts_when_its_limits_have_been_taken_over() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}});
    let mut made = admin.post(QUOTAS, &made).await.expect(201);
    admin.post(CONFIG_MAPS, &config_map("before")).await.expect(201);
    made["status"] = json!({"hard": {"configmaps": "0"}});
    let status = format!("{QUOTAS}/q/status");
    admin.put(&status, &made).await.expect(200);
    let words = "status unknown for quota: q, resources: configmaps";
    admin
        .post(CONFIG_MAPS, &config_map("uncounted"))
        .await
        .refused(403, "Forbidden", words);
    admin.delete(&format!("{QUOTAS}/q")).await.expect(200);
    admin.post(CONFIG_MAPS, &config_map("after")).await.expect(201);
}

#[tokio::test]
async fn limit_ranges_fill_in_and_bound() {
    let server = Server::start().await;
    let admin = server.admin();
    let limits = json!([
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "250m"}, "max": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]);
    // Pods run as it; the controller that makes it does not run.
    let account = json!({"metadata": {"name": "default"}});
    admin
        .post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await
        .expect(201);
    let range = json!({"metadata": {"name": "sizes"}, "spec": {"limits": limits}});
    admin.post(LIMIT_RANGES, &range).await.expect(201);
    let pod = |name: &str, resources: Value| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}});
    let small = admin.post(PODS, &pod("small", json!({}))).await.expect(201);
    let resources = json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "250m"}});
    assert_eq!(small["spec"]["containers"][0]["resources"], resources);
    assert_eq!(small["status"]["qosClass"], "Burstable");
    assert_eq!(
        small["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let owned = small["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(
        !owned.contains("limits") && !owned.contains("annotations"),
        "{owned}"
    );
    let large = pod("large", json!({"limits": {"cpu": "2"}}));
    let words = "pods \"large\" is forbidden: maximum cpu usage per Container is 1, but limit is 2";
    admin.post(PODS, &large).await.refused(403, "Forbidden", words);
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |storage: &str| json!({"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}});
    let words = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi";
    admin
        .post(claims, &claim("2Gi"))
        .await
        .refused(403, "Forbidden", words);
    admin.post(claims, &claim("1Gi")).await.expect(201);
    admin.delete(&format!("{LIMIT_RANGES}/sizes")).await.expect(200);
    let free = admin.post(PODS, &pod("free", json!({}))).await.expect(201);
    assert_eq!(free["spec"]["containers"][0]["resources"], json!({}));
}
