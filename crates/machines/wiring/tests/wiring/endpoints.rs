//! Endpoints of Services that select machines.

use serde_json::{Value, json};

use crate::harness::{TEAM, World, eventually, instance_path};

const SERVICES: &str = "/api/v1/namespaces/shop/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";

/// Endpoints of a Service as `address:port ready`.
async fn endpoints(world: &World, workspace: &str, service: &str) -> Vec<String> {
    let mut found = Vec::new();
    for slice in world.list(workspace, SLICES).await {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] != service {
            continue;
        }
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            found.push(format!(
                "{}:{} {}",
                endpoint["addresses"][0].as_str().unwrap(),
                slice["ports"][0]["port"],
                endpoint["conditions"]["ready"]
            ));
        }
    }
    found.sort();
    found
}

async fn until_endpoints(world: &World, workspace: &str, service: &str, expected: &[String]) {
    eventually(
        &format!("the endpoints of {service} are {expected:?}"),
        || async { endpoints(world, workspace, service).await == expected },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_follow_machines_and_services() {
    let mut world = World::start().await;
    // A second replica does the same and disturbs nobody.
    world.run(Default::default());
    let service = |selector: Value| {
        json!({"metadata": {"name": "web"}, "spec": {
            "selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}})
    };
    for workspace in ["root", TEAM] {
        world
            .create(workspace, SERVICES, service(json!({"app": "a"})))
            .await;
        world.instance(workspace, "a", json!({})).await;
    }
    let (root, team) = (world.address("root", "a").await, world.address(TEAM, "a").await);
    for (workspace, address) in [("root", &root), (TEAM, &team)] {
        until_endpoints(&world, workspace, "web", &[format!("{address}:8080 false")]).await;
    }
    world.set_ready(TEAM, "a", true).await;
    until_endpoints(&world, TEAM, "web", &[format!("{team}:8080 true")]).await;
    until_endpoints(&world, "root", "web", &[format!("{root}:8080 false")]).await;

    // Another label, another port, and a name that KubeVirt would give the machine's pod.
    world
        .merge(
            TEAM,
            &instance_path("a"),
            json!({"metadata": {"labels": {"app": "b"}}}),
        )
        .await;
    until_endpoints(&world, TEAM, "web", &[]).await;
    let by_name = json!({"spec": {"selector": {"app": null, "vm.kubevirt.io/name": "a"}, "ports": [{"port": 80, "targetPort": 9090}]}});
    world.merge(TEAM, &format!("{SERVICES}/web"), by_name).await;
    until_endpoints(&world, TEAM, "web", &[format!("{team}:9090 true")]).await;

    // Somebody removes or changes a slice.
    for slice in world.list(TEAM, SLICES).await {
        world
            .delete(
                TEAM,
                &format!("{SLICES}/{}", slice["metadata"]["name"].as_str().unwrap()),
            )
            .await;
    }
    until_endpoints(&world, TEAM, "web", &[format!("{team}:9090 true")]).await;
    for slice in world.list(TEAM, SLICES).await {
        let path = format!("{SLICES}/{}", slice["metadata"]["name"].as_str().unwrap());
        world.merge(TEAM, &path, json!({"endpoints": []})).await;
    }
    until_endpoints(&world, TEAM, "web", &[format!("{team}:9090 true")]).await;

    world.delete(TEAM, &instance_path("a")).await;
    until_endpoints(&world, TEAM, "web", &[]).await;
    world.delete("root", &format!("{SERVICES}/web")).await;
    eventually("the slices went with the Service", || async {
        let left = world.list("root", SLICES).await;
        left.iter()
            .all(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] != "web")
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_wrote_stays_as_it_is() {
    let mut world = World::start().await;
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}});
    world.create(TEAM, SERVICES, service).await;
    let slice = |name: &str, manager: &str| {
        json!({
            "metadata": {"name": name, "labels": {
                "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": manager,
            }},
            "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.4"]}], "ports": [{"port": 80}],
        })
    };
    // That of pods, by a kube-controller-manager, and one by hand.
    let kept = slice("pods", "endpointslice-controller.k8s.io");
    world.create(TEAM, SLICES, kept).await;
    world.create(TEAM, SLICES, slice("hand", "staff")).await;
    world.instance(TEAM, "a", json!({})).await;
    world.address(TEAM, "a").await;
    eventually("there are three slices", || async {
        world.list(TEAM, SLICES).await.len() == 3
    })
    .await;
    world.delete(TEAM, &instance_path("a")).await;
    eventually("the machine's slice is empty", || async {
        let slices = world.list(TEAM, SLICES).await;
        let sizes: usize = slices
            .iter()
            .filter_map(|slice| slice["endpoints"].as_array().map(Vec::len))
            .sum();
        sizes == 2
    })
    .await;
    world.stop().await;
}
