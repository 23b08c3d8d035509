//! Machines that move, and machines that have to leave their node.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{World, a_while, condition, eventually, everywhere, until};
use crate::host::Manner;

const MIGRATIONS: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstancemigrations";

fn migration(name: &str, instance: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name, "namespace": "vms"}, "spec": {"vmiName": instance},
    })
}

fn strategy(word: &str) -> Value {
    json!({"spec": {"template": {"spec": {"evictionStrategy": word}}}})
}

fn node_of(vmi: &Value) -> &str {
    vmi["status"]["nodeName"].as_str().unwrap_or_default()
}

impl World {
    async fn until_migration(&self, name: &str, phase: &str) -> Value {
        let path = format!("{MIGRATIONS}/{name}");
        until(&self.api, &path, phase, |it| it["status"]["phase"] == phase).await
    }

    async fn cordon(&self, node: &str) {
        let cordon = json!({"spec": {"unschedulable": true}});
        self.root
            .merge(&format!("/api/v1/nodes/{node}"), &cordon)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_machine_moves() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        world.host.join("n2", json!({})).await;
        world.create(MIGRATIONS, migration("go", "web")).await;
        let done = world.until_migration("go", "Succeeded").await;
        let phases: Vec<&str> = done["status"]["phaseTransitionTimestamps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["phase"].as_str().unwrap())
            .collect();
        assert_eq!(phases.first(), Some(&"Pending"));
        assert_eq!(phases.last(), Some(&"Succeeded"));
        let after = world.vmi("web").await;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(node_of(&after), "n2");
        let state = &after["status"]["migrationState"];
        assert_eq!(
            (&state["sourceNode"], &state["targetNode"]),
            (&json!("n1"), &json!("n2"))
        );
        assert_eq!(
            state["migrationConfiguration"]["parallelOutboundMigrationsPerNode"],
            2
        );
        assert_eq!(
            after["metadata"]["labels"]["kubevirt.io/migrationTargetNodeName"],
            "n2"
        );
        let path = format!("{MIGRATIONS}/go");
        let kept = until(&world.api, &path, "finished", |it| {
            it["status"]["migrationState"]["completed"] == true && it["metadata"]["finalizers"].is_null()
        })
        .await;
        assert_eq!(kept["status"]["migrationState"]["targetNode"], "n2");
        world
            .event(
                "go",
                "SuccessfulMigration Source node reported migration succeeded",
            )
            .await;
        world.shows("web", "Running").await;
        assert_eq!(world.host.starts("web"), 1);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_guest_moves_only_where_it_can_go_on() {
    everywhere(|world| async move {
        let labels = |accelerator: &str, processor: &str| {
            json!({"metadata": {"labels": {"fairway.dev/accelerator": accelerator, "fairway.dev/processor": processor}}})
        };
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let node = "/api/v1/nodes/n1";
        world.root.merge(node, &labels("kvm", "Intel-6-85-7-aa")).await.unwrap();
        world.host.join("n2", labels("tcg", "Intel-6-85-7-aa")).await;
        world.create(MIGRATIONS, migration("go", "web")).await;
        world
            .event("go", "is currently unschedulable. 0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) had no KVM, on which the guest runs.")
            .await;
        let vmi = world.vmi("web").await;
        assert_eq!(node_of(&vmi), "n1");
        assert_eq!(vmi["status"]["migrationState"], Value::Null);
        world.host.join("n3", labels("kvm", "Intel-6-85-7-aa")).await;
        world.until_migration("go", "Succeeded").await;
        assert_eq!(node_of(&world.vmi("web").await), "n3");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_migration_is_cancelled_by_deleting_it() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        // There is no other node yet: it waits, and can be taken back.
        world.create(MIGRATIONS, migration("early", "web")).await;
        world
            .event("early", "is currently unschedulable. 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.")
            .await;
        world.api.delete(&format!("{MIGRATIONS}/early")).await.unwrap();
        until(&world.api, &format!("{MIGRATIONS}/early"), "gone", Value::is_null).await;
        world.host.join("n2", json!({})).await;
        world.host.manner("web", Manner::Hang);
        world.create(MIGRATIONS, migration("late", "web")).await;
        world.until_migration("late", "Running").await;
        world.shows("web", "Migrating").await;
        world.api.delete(&format!("{MIGRATIONS}/late")).await.unwrap();
        until(&world.api, &format!("{MIGRATIONS}/late"), "gone", Value::is_null).await;
        world.event("late", "FailedMigration Migration failed due to being canceled").await;
        let vmi = world.vmi("web").await;
        assert_eq!(node_of(&vmi), "n1");
        assert_eq!(vmi["status"]["migrationState"]["abortStatus"], "Succeeded");
        world.shows("web", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_emptied() {
    everywhere(|world| async move {
        for (name, word) in [
            ("a", "LiveMigrate"),
            ("b", "LiveMigrate"),
            ("c", "LiveMigrate"),
            ("stays", "None"),
        ] {
            world.machine(name, strategy(word)).await;
            world.shows(name, "Running").await;
        }
        world.host.join("n2", json!({})).await;
        for name in ["a", "b", "c"] {
            world.host.manner(name, Manner::Hang);
        }
        world.cordon("n1").await;
        eventually("two are on their way", || async {
            world.api.list(MIGRATIONS).await.unwrap().len() == 2
        })
        .await;
        a_while().await;
        let all = world.api.list(MIGRATIONS).await.unwrap();
        assert_eq!(all.len(), 2, "no more than two at once leave a node");
        assert_eq!(
            all[0]["metadata"]["annotations"]["kubevirt.io/evacuationMigration"],
            "n1"
        );
        for name in ["a", "b", "c"] {
            world.host.manner(name, Manner::Well);
        }
        for name in ["a", "b", "c"] {
            world
                .until_instance(name, "elsewhere", |it| node_of(it) == "n2")
                .await;
            assert_eq!(world.host.starts(name), 1);
        }
        assert_eq!(node_of(&world.vmi("stays").await), "n1");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_leaves_a_node_that_does_not_suit_it_any_more() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let labels = json!({"metadata": {"labels": {"disk": "ssd"}}});
        world.host.join("n2", labels).await;
        let ssd = json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}});
        world.patch("web", ssd).await;
        world
            .until_instance("web", "elsewhere", |it| node_of(it) == "n2")
            .await;
        assert_eq!(world.host.starts("web"), 1);
        let vm = world.vm("web").await;
        assert_eq!(condition(&vm, "RestartRequired"), None);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_leaves_a_node_whose_labels_do_not_suit_it_any_more() {
    everywhere(|world| async move {
        let label = |value: Value| json!({"metadata": {"labels": {"disk": value}}});
        let node = "/api/v1/nodes/n1";
        world.root.merge(node, &label(json!("ssd"))).await.unwrap();
        let ssd = json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}});
        world.machine("web", ssd).await;
        world.shows("web", "Running").await;
        world.host.join("n2", label(json!("ssd"))).await;
        world.root.merge(node, &label(json!("slow"))).await.unwrap();
        world
            .until_instance("web", "elsewhere", |it| node_of(it) == "n2")
            .await;
        assert_eq!(world.host.starts("web"), 1);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn settings_say_how_many_move_at_once_and_how() {
    everywhere(|world| async move {
        let settings = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "namespace": "default"},
            "spec": {"configuration": {"migrations": {
                "parallelMigrationsPerCluster": 1, "bandwidthPerMigration": "64Mi", "completionTimeoutPerGiB": 30,
            }}},
        });
        let kubevirts = "/apis/kubevirt.io/v1/namespaces/default/kubevirts";
        world.root.create(kubevirts, &settings).await.unwrap();
        for name in ["a", "b"] {
            world.machine(name, json!({})).await;
            world.shows(name, "Running").await;
            world.host.manner(name, Manner::Hang);
        }
        world.host.join("n2", json!({})).await;
        world.create(MIGRATIONS, migration("first", "a")).await;
        world.until_migration("first", "Running").await;
        let state = &world.vmi("a").await["status"]["migrationState"];
        let configuration = &state["migrationConfiguration"];
        assert_eq!(configuration["bandwidthPerMigration"], "64Mi");
        assert_eq!(configuration["completionTimeoutPerGiB"], 30);
        world.create(MIGRATIONS, migration("second", "b")).await;
        world.until_migration("second", "Pending").await;
        a_while().await;
        world.until_migration("second", "Pending").await;
        // The operator's object has the last word.
        let operator = json!({
            "apiVersion": "hco.kubevirt.io/v1beta1", "kind": "HyperConverged",
            "metadata": {"name": "kubevirt-hyperconverged", "namespace": "default"},
            "spec": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 2}},
        });
        let operators = "/apis/hco.kubevirt.io/v1beta1/namespaces/default/hyperconvergeds";
        world.root.create(operators, &operator).await.unwrap();
        world.until_migration("second", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn whoever_moves_a_machine_itself_is_told_that_it_should_go() {
    everywhere(|world| async move {
        world.machine("web", strategy("External")).await;
        world.shows("web", "Running").await;
        world.host.join("n2", json!({})).await;
        world.cordon("n1").await;
        world
            .until_instance("web", "marked", |it| it["status"]["evacuationNodeName"] == "n1")
            .await;
        a_while().await;
        assert!(world.api.list(MIGRATIONS).await.unwrap().is_empty());
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_migration_of_nothing_is_refused_and_goes_with_its_instance() {
    everywhere(|world| async move {
        let refused = world.api.create(MIGRATIONS, &migration("none", "none")).await;
        assert!(refused.is_err());
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        world.host.join("n2", json!({})).await;
        world.host.manner("web", Manner::Hang);
        world.create(MIGRATIONS, migration("go", "web")).await;
        world.until_migration("go", "Running").await;
        world
            .patch("web", json!({"spec": {"runStrategy": "Halted"}}))
            .await;
        world.settles("web", "Stopped").await;
        // There is nothing any more that it would be about.
        until(&world.api, &format!("{MIGRATIONS}/go"), "gone", Value::is_null).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(world.passes("machine-migrations", "error"), 0);
        world.end().await;
    })
    .await;
}
