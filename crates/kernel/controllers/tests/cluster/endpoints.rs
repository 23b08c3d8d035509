//! Endpoints written by hand get slices; disruption budgets are counted.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::harness::{Cluster, create, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_written_by_hand_are_mirrored() {
    let cluster = Cluster::start().await;
    let services = cluster.api("v1", "Service", "services", "default");
    let endpoints = cluster.api("v1", "Endpoints", "endpoints", "default");
    let slices = cluster.api(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        "default",
    );
    let addresses = || async {
        let own = ListParams::default().labels("kubernetes.io/service-name=db");
        let list = slices.list(&own).await.unwrap();
        list.iter()
            .map(|slice| {
                slice.data["endpoints"][0]["addresses"][0]
                    .as_str()
                    .unwrap_or("")
                    .to_owned()
            })
            .collect::<Vec<String>>()
    };
    create(
        &services,
        json!({"metadata": {"name": "db"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    let subset = |ip: &str| json!([{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}]);
    create(
        &endpoints,
        json!({"metadata": {"name": "db"}, "subsets": subset("10.1.2.3")}),
    )
    .await;
    eventually("a slice appears", || async { addresses().await == ["10.1.2.3"] }).await;
    let change = json!({"subsets": subset("10.2.3.4")});
    endpoints
        .patch("db", &PatchParams::default(), &Patch::Merge(&change))
        .await
        .unwrap();
    eventually("the slice follows", || async {
        addresses().await == ["10.2.3.4"]
    })
    .await;
    let other = slices
        .list(&ListParams::default().labels("kubernetes.io/service-name=db"))
        .await
        .unwrap();
    let name = other.items[0].metadata.name.clone().unwrap();
    slices.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("a deleted slice comes back", || async {
        addresses().await == ["10.2.3.4"]
    })
    .await;
    endpoints.delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the slice goes", || async { addresses().await.is_empty() }).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_count_pods() {
    let cluster = Cluster::start().await;
    let budgets = cluster.api(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "default",
    );
    let pods = cluster.api("v1", "Pod", "pods", "default");
    create(
        &budgets,
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}),
    )
    .await;
    let status = |field: &'static str| {
        let budgets = budgets.clone();
        async move { budgets.get("b").await.unwrap().data["status"][field].clone() }
    };
    eventually("the budget is seen", || async {
        status("observedGeneration").await == json!(1)
    })
    .await;
    for name in ["p", "q"] {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        create(&pods, pod).await;
        let mut pod = pods.get(name).await.unwrap();
        pod.data["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        pods.replace_status(name, &PostParams::default(), &pod)
            .await
            .unwrap();
    }
    eventually("one may go", || async {
        status("disruptionsAllowed").await == json!(1)
    })
    .await;
    pods.delete("q", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    eventually("none may go", || async {
        status("disruptionsAllowed").await == json!(0)
    })
    .await;
    cluster.stop().await;
}
