//! What is foreseen of a machine is what becomes of it.

use fairway_controller::WorkspaceId;
use fairway_machines_engine::Foreseen;
use serde_json::{Value, json};

use crate::harness::{At, World, everywhere, machine};

const SIZES: &str = "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes";

async fn foreseen(world: &World, machines: &[Value]) -> Vec<Foreseen> {
    let workspace = WorkspaceId::parse(world.at.id()).unwrap();
    let found = world.foresight.places(&workspace, &world.api, machines).await;
    found.into_iter().map(|(_, foreseen)| foreseen).collect()
}

fn of_memory(guest: &str) -> Value {
    json!({"spec": {"template": {"spec": {"domain": {"memory": {"guest": guest}}}}}})
}

#[tokio::test]
async fn the_node_that_is_foreseen_is_the_node_that_a_machine_gets() {
    for at in [At::Root, At::Workspace] {
        let world = World::start(at).await;
        world.host.join("n2", json!({})).await;
        let large = of_memory("5Gi");
        let all: Vec<Value> = ["a", "b", "c"].map(|name| machine(name, &large)).into();
        let together = foreseen(&world, &all).await;
        // Asking holds no room and makes nothing.
        assert_eq!(foreseen(&world, &all).await, together);
        assert!(world.vm("a").await.is_null());
        let full = "0/2 nodes are available: 2 Insufficient memory.";
        assert_eq!(together[2], Foreseen::None(full.to_owned()));
        for (name, expected) in ["a", "b"].into_iter().zip(&together) {
            let alone = foreseen(&world, &[machine(name, &large)]).await;
            assert_eq!(&alone[0], expected, "{name}");
            world.machine(name, large.clone()).await;
            world.shows(name, "Running").await;
            let node = world.vmi(name).await["status"]["nodeName"]
                .as_str()
                .unwrap()
                .to_owned();
            assert_eq!(*expected, Foreseen::Node(node), "{name}");
        }
        let alone = foreseen(&world, &[machine("c", &large)]).await;
        assert_eq!(alone[0], Foreseen::None(full.to_owned()));
        world.end().await;
    }
}

#[tokio::test]
async fn sizes_disks_and_rest_are_foreseen() {
    everywhere(|world| async move {
        let size = json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
            "metadata": {"name": "huge"}, "spec": {"cpu": {"guest": 1}, "memory": {"guest": "64Gi"}},
        });
        world.create(SIZES, size).await;
        let disk = |name: &str| {
            json!({"spec": {"template": {"spec": {"volumes": [{"name": "root", "dataVolume": {"name": name}}]}}}})
        };
        let mut brought = disk("root");
        brought["spec"]["dataVolumeTemplates"] = json!([{"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}}}]);
        let mut huge = machine("m", &json!({"spec": {"instancetype": {"name": "huge"}}}));
        huge["spec"]["template"]["spec"]["domain"] = json!({"devices": {}});
        let none = |why: &str| Foreseen::None(why.to_owned());
        for (machine, expected) in [
            (machine("m", &brought), Foreseen::Node("n1".to_owned())),
            (machine("m", &disk("lost")), none("failed to find PVC vms/lost")),
            (
                machine("m", &json!({"spec": {"runStrategy": "Halted"}})),
                none("it is not started (runStrategy Halted)"),
            ),
            (huge, none("0/1 nodes are available: 1 Insufficient memory.")),
        ] {
            assert_eq!(foreseen(&world, &[machine]).await, [expected]);
        }
        // A size that was looked at is not copied.
        let copies = world.api.list("/apis/apps/v1/namespaces/vms/controllerrevisions").await.unwrap();
        assert!(copies.is_empty(), "{copies:?}");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn without_nodes_nothing_runs() {
    let world = World::without_nodes(At::Root).await;
    let found = foreseen(&world, &[machine("m", &json!({}))]).await;
    assert_eq!(found, [Foreseen::NoNodes]);
    world.end().await;
}
