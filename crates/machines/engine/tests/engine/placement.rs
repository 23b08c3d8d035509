//! Where instances run.

use serde_json::{Value, json};

use crate::harness::{At, MACHINES, World, a_while, administrator, condition, everywhere, machine};

fn spec(change: Value) -> Value {
    json!({"spec": {"template": {"spec": change}}})
}

fn node_of(vmi: &Value) -> &str {
    vmi["status"]["nodeName"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn machines_spread_over_nodes_until_there_is_no_room() {
    everywhere(|world| async move {
        world.host.join("n2", json!({})).await;
        let large = spec(json!({"domain": {"memory": {"guest": "5Gi"}}}));
        for name in ["a", "b"] {
            world.machine(name, large.clone()).await;
            world.shows(name, "Running").await;
        }
        let (a, b) = (world.vmi("a").await, world.vmi("b").await);
        assert_ne!(node_of(&a), node_of(&b));
        world.machine("c", large).await;
        let vm = world.shows("c", "ErrorUnschedulable").await;
        let (_, reason, message) = condition(&vm, "PodScheduled").unwrap();
        assert_eq!(reason, "Unschedulable");
        assert_eq!(message, "0/2 nodes are available: 2 Insufficient memory.");
        world.event("c", "FailedScheduling 0/2 nodes are available").await;
        // Somebody makes room.
        world.patch("a", json!({"spec": {"runStrategy": "Halted"}})).await;
        let vm = world.shows("c", "Running").await;
        assert_eq!(condition(&vm, "PodScheduled"), None);
        assert_eq!(node_of(&world.vmi("c").await), node_of(&a));
        world.event("c", "Scheduled Successfully assigned vms/c to").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn who_waits_is_placed_when_a_node_comes_or_changes() {
    for at in [At::Root, At::Workspace] {
        let world = World::without_nodes(at).await;
        world.machine("web", json!({})).await;
        let vm = world.shows("web", "ErrorUnschedulable").await;
        let why = condition(&vm, "PodScheduled").unwrap().2;
        assert_eq!(why, "no nodes available to schedule pods");
        world
            .host
            .join("n1", json!({"spec": {"unschedulable": true}}))
            .await;
        world
            .until("web", "told why", |it| {
                condition(it, "PodScheduled").is_some_and(|it| it.2.contains("1 node(s) were unschedulable"))
            })
            .await;
        let uncordon = json!({"spec": {"unschedulable": null}});
        world.root.merge("/api/v1/nodes/n1", &uncordon).await.unwrap();
        world.shows("web", "Running").await;
        world.end().await;
    }
}

#[tokio::test]
async fn neighbours_keep_apart() {
    everywhere(|world| async move {
        world.host.join("n2", json!({})).await;
        let term = json!({
            "labelSelector": {"matchLabels": {"group": "db"}}, "topologyKey": "kubernetes.io/hostname",
        });
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        let mut change = spec(json!({"affinity": apart}));
        change["spec"]["template"]["metadata"] = json!({"labels": {"group": "db"}});
        for name in ["a", "b", "c"] {
            world.machine(name, change.clone()).await;
        }
        let mut running = Vec::new();
        let mut waiting = 0;
        for name in ["a", "b", "c"] {
            let placed = |it: &Value| !node_of(it).is_empty() || condition(it, "PodScheduled").is_some();
            let vmi = world.until_instance(name, "placed or told", placed).await;
            match node_of(&vmi) {
                "" => waiting += 1,
                node => running.push(node.to_owned()),
            }
        }
        running.sort();
        assert_eq!((running, waiting), (vec!["n1".to_owned(), "n2".to_owned()], 1));
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn disks_say_where_a_machine_runs() {
    everywhere(|world| async move {
        world.host.join("n2", json!({})).await;
        world.fill("data", "n2").await;
        let claimed = spec(json!({
            "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "data"}}],
        }));
        world.machine("web", claimed).await;
        world.shows("web", "Running").await;
        assert_eq!(node_of(&world.vmi("web").await), "n2");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn machines_of_all_workspaces_share_the_nodes() {
    let world = World::start(At::Workspace).await;
    let root = administrator(&world.kernel, "root");
    root.create("/api/v1/namespaces", &json!({"metadata": {"name": "vms"}}))
        .await
        .unwrap();
    let large = spec(json!({"domain": {"memory": {"guest": "5Gi"}}}));
    world.machine("web", large.clone()).await;
    world.shows("web", "Running").await;
    root.create(MACHINES, &machine("web", &large)).await.unwrap();
    let path = format!("{MACHINES}/web");
    let full = crate::harness::until(&root, &path, "told why", |it| {
        condition(it, "PodScheduled").is_some()
    })
    .await;
    assert_eq!(
        condition(&full, "PodScheduled").unwrap().2,
        "0/1 nodes are available: 1 Insufficient memory."
    );
    a_while().await;
    assert_eq!(world.passes("machine-scheduler", "error"), 0);
    world.end().await;
}
