//! Nodes that are lost, and their machines.

use std::time::Duration;

use fairway_machines_engine::Patience;
use serde_json::{Value, json};

use crate::harness::{At, World, a_while, condition, until};
use crate::host::Manner;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

const SOON: Patience = Patience {
    grace: Duration::from_millis(800),
    margin: Duration::from_millis(400),
};

async fn world(at: At) -> World {
    let mut world = World::without_nodes(at).await;
    world.kill_engine();
    world.patience = SOON;
    let namespace = json!({"metadata": {"name": "kube-node-lease"}});
    world.root.create("/api/v1/namespaces", &namespace).await.unwrap();
    world.start_engine();
    world
}

impl World {
    /// A node that renews its lease until it is lost.
    async fn join_with_lease(&self, name: &str, fence: Option<&str>) {
        let annotations = match fence {
            Some(seconds) => json!({"fairway.dev/fence-seconds": seconds}),
            None => json!({}),
        };
        self.host
            .join(name, json!({"metadata": {"annotations": annotations}}))
            .await;
        let lease =
            json!({"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}});
        self.root.create(LEASES, &lease).await.unwrap();
        self.host.keep_renewing(name);
    }

    async fn node(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until(&self.root, &format!("/api/v1/nodes/{name}"), what, holds).await
    }
}

fn is_tainted(node: &Value, key: &str) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_some_and(|it| it.iter().any(|it| it["key"] == key))
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

#[tokio::test]
async fn machines_of_a_lost_node_are_started_elsewhere_when_they_have_ended_there() {
    for at in [At::Root, At::Workspace] {
        let world = world(at).await;
        world.join_with_lease("n1", Some("1")).await;
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        world.join_with_lease("n2", Some("1")).await;
        world.host.lose("n1");
        world
            .node("n1", "lost", |it| {
                condition(it, "Ready").unwrap().0 == "Unknown" && is_tainted(it, UNREACHABLE)
            })
            .await;
        let after = world.runs_anew("web", &before).await;
        assert_eq!(after["status"]["nodeName"], "n2");
        world
            .event(
                "web",
                "NodeUnresponsive virt-handler on node n1 is not responsive, marking VMI as failed",
            )
            .await;
        world.shows("web", "Running").await;
        assert_eq!(world.host.starts("web"), 2);
        // It comes back, and when it is heard of says that it is well.
        world.host.join_again("n1");
        a_while().await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        world.root.merge("/api/v1/nodes/n1/status", &ready).await.unwrap();
        world.node("n1", "well", |it| !is_tainted(it, UNREACHABLE)).await;
        world.end().await;
    }
}

#[tokio::test]
async fn without_a_promise_only_an_operator_lets_machines_go() {
    for at in [At::Root, At::Workspace] {
        let world = world(at).await;
        world.join_with_lease("n1", None).await;
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        world.join_with_lease("n2", None).await;
        // A taint on a node that is there lets nothing go.
        let taint = json!({"spec": {"taints": [
            {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"},
        ]}});
        world.root.merge("/api/v1/nodes/n1", &taint).await.unwrap();
        tokio::time::sleep(SOON.grace + SOON.margin).await;
        a_while().await;
        assert_eq!(
            world.vmi("web").await["metadata"]["uid"],
            before["metadata"]["uid"]
        );
        let untaint = json!({"spec": {"taints": null}});
        world.root.merge("/api/v1/nodes/n1", &untaint).await.unwrap();
        world.host.lose("n1");
        world.node("n1", "lost", |it| is_tainted(it, UNREACHABLE)).await;
        let unready = |it: &Value| condition(it, "Ready").is_some_and(|it| it.1 == "NodeUnreachable");
        let vmi = world.until_instance("web", "not ready", unready).await;
        let (_, _, next) = condition(&vmi, "Ready").unwrap();
        assert!(
            next.contains("taint the node node.kubernetes.io/out-of-service"),
            "{next}"
        );
        world
            .until("web", "not ready", |it| it["status"]["ready"] != true)
            .await;
        tokio::time::sleep(SOON.grace + SOON.margin).await;
        a_while().await;
        let vmi = world.vmi("web").await;
        assert_eq!(
            vmi["metadata"]["uid"], before["metadata"]["uid"],
            "it may still run"
        );
        let node = world.root.get("/api/v1/nodes/n1").await.unwrap().unwrap();
        let mut taints = node["spec"]["taints"].clone();
        taints
            .as_array_mut()
            .unwrap()
            .push(taint["spec"]["taints"][0].clone());
        world
            .root
            .merge("/api/v1/nodes/n1", &json!({"spec": {"taints": taints}}))
            .await
            .unwrap();
        let after = world.runs_anew("web", &before).await;
        assert_eq!(after["status"]["nodeName"], "n2");
        world.end().await;
    }
}

#[tokio::test]
async fn a_node_that_is_taken_away_keeps_its_promise() {
    let world = world(At::Root).await;
    world.join_with_lease("n1", Some("1")).await;
    world.machine("web", json!({})).await;
    world.shows("web", "Running").await;
    let before = world.vmi("web").await;
    world.join_with_lease("n2", Some("1")).await;
    world.root.delete("/api/v1/nodes/n1").await.unwrap();
    a_while().await;
    assert_eq!(
        world.vmi("web").await["metadata"]["uid"],
        before["metadata"]["uid"]
    );
    world.host.lose("n1");
    let after = world.runs_anew("web", &before).await;
    assert_eq!(after["status"]["nodeName"], "n2");
    world.end().await;
}

const MIGRATIONS: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstancemigrations";

/// A machine on `n1` that is sent to `n2`, and never arrives.
async fn on_its_way(at: At) -> World {
    let world = world(at).await;
    world.join_with_lease("n1", Some("1")).await;
    world.machine("web", json!({})).await;
    world.shows("web", "Running").await;
    world.join_with_lease("n2", Some("1")).await;
    world.host.manner("web", Manner::Hang);
    let migration = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": "go"}, "spec": {"vmiName": "web"}});
    world.create(MIGRATIONS, migration).await;
    let path = format!("{MIGRATIONS}/go");
    until(&world.api, &path, "on its way", |it| {
        it["status"]["phase"] == "Running"
    })
    .await;
    world
}

#[tokio::test]
async fn a_target_that_is_lost_ends_the_migration_when_nothing_can_run_there() {
    for at in [At::Root, At::Workspace] {
        let world = on_its_way(at).await;
        world.host.lose("n2");
        let lost = until(&world.api, &format!("{MIGRATIONS}/go"), "failed", |it| {
            it["status"]["migrationState"]["failed"] == true
        })
        .await;
        assert_eq!(
            lost["status"]["migrationState"]["failureReason"],
            "Target node was lost during the migration"
        );
        let vmi = world.vmi("web").await;
        assert_eq!(
            vmi["status"]["nodeName"], "n1",
            "what becomes of it its source knows"
        );
        assert_eq!(world.host.starts("web"), 1);
        world.end().await;
    }
}

#[tokio::test]
async fn a_source_that_is_lost_lets_its_machine_go_when_the_target_has_ended_too() {
    for at in [At::Root, At::Workspace] {
        let world = on_its_way(at).await;
        let before = world.vmi("web").await;
        world.host.lose("n1");
        // The target says that it has nothing; then it may start anew.
        let given_up = |it: &Value| it["status"]["migrationState"]["failed"] == true;
        world.until_instance("web", "given up", given_up).await;
        world.host.manner("web", Manner::Well);
        let after = world.runs_anew("web", &before).await;
        assert_eq!(after["status"]["nodeName"], "n2");
        assert_eq!(world.host.starts("web"), 2);
        world.end().await;
    }
}
