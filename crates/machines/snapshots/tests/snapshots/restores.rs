//! Machines that come back.

use serde_json::json;

use crate::world::{World, everywhere, one, qemu_io};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_the_same_machine() {
    everywhere(|mut world: World| async move {
        world.machine("web", "Halted").await;
        let (root, data) = (world.disk("web", "root").await, world.disk("web", "data").await);
        qemu_io(&root, "write -P 1 1M 64k");
        qemu_io(&data, "write -P 1 1M 64k");
        world.snapshot("s1", "web").await;
        world.taken("s1").await;
        qemu_io(&root, "write -P 2 1M 64k");
        qemu_io(&data, "write -P 2 1M 64k");
        let vm = one("virtualmachines", "web");
        let patch = json!({"spec": {"template": {"spec": {"domain": {"memory": {"guest": "96Mi"}}}}}});
        world.api.merge(&vm, &patch).await.unwrap();
        // It waits for a machine that runs.
        world.run("web", true).await;
        world.restore("r1", "s1", "web", json!({})).await;
        let path = one("virtualmachinerestores", "r1");
        let waits = world
            .until(&path, "waiting", |it| {
                World::conditions(it)
                    .iter()
                    .any(|it| it.contains("Waiting for target"))
            })
            .await;
        assert_eq!(
            World::conditions(&waits),
            [
                "Progressing=False Waiting for target to be ready",
                "Ready=False Waiting for target to be ready"
            ]
        );
        world.crash();
        world.stop("web").await;
        let done = world.restored("r1").await;
        assert_eq!(
            World::conditions(&done),
            [
                "Progressing=False Operation complete",
                "Ready=True Operation complete"
            ]
        );
        assert_eq!(done["status"]["deletedDataVolumes"], json!(["web-root"]));
        assert_eq!(done["status"]["restores"].as_array().unwrap().len(), 2);
        assert_eq!(done["metadata"]["ownerReferences"][0]["name"], "web");
        let machine = world.get(&vm).await;
        assert_eq!(
            machine["spec"]["template"]["spec"]["domain"]["memory"]["guest"],
            "64Mi"
        );
        assert_eq!(machine["spec"]["runStrategy"], "Halted");
        assert!(machine["status"]["restoreInProgress"].is_null());
        for volume in ["root", "data"] {
            let disk = world.disk("web", volume).await;
            assert!(disk != root && disk != data);
            qemu_io(&disk, "read -P 1 1M 64k");
        }
        world.gone(&one("datavolumes", "web-root")).await;
        // The snapshot is as good as before.
        world.restore("r2", "s1", "web", json!({})).await;
        world.restored("r2").await;
        qemu_io(&world.disk("web", "root").await, "read -P 1 1M 64k");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_another_machine() {
    everywhere(|world: World| async move {
        world.machine("web", "Always").await;
        qemu_io(&world.disk("web", "root").await, "write -P 1 1M 64k");
        world.run("web", true).await;
        world.snapshot("s1", "web").await;
        world.taken("s1").await;
        world.machine("busy", "Halted").await;
        world.restore("no", "s1", "busy", json!({})).await;
        let path = one("virtualmachinerestores", "no");
        let why = "restore source and restore target are different but restore target already exists";
        world
            .until(&path, "refused", |it| {
                World::conditions(it) == [format!("Progressing=False {why}"), format!("Ready=False {why}")]
            })
            .await;
        let patches = json!({"patches": [
            r#"{"op": "replace", "path": "/spec/template/spec/domain/devices/interfaces/0/macAddress", "value": "02:00:00:00:00:02"}"#,
        ]});
        world.restore("r1", "s1", "copy", patches).await;
        world.restored("r1").await;
        let copy = world.get(&one("virtualmachines", "copy")).await;
        assert_eq!(copy["spec"]["runStrategy"], "Halted");
        let cards = &copy["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"];
        assert_eq!(cards[0]["macAddress"], "02:00:00:00:00:02");
        qemu_io(&world.disk("copy", "root").await, "read -P 1 1M 64k");
        // Its disks are its own.
        for volume in ["root", "data"] {
            let restored = world.get(&one("virtualmachinerestores", "r1")).await;
            let all = restored["status"]["restores"].as_array().unwrap();
            let one_of = all.iter().find(|it| it["volumeName"] == volume).unwrap();
            let (plural, name) = match one_of["dataVolumeName"].as_str() {
                Some(name) => ("datavolumes", name),
                None => ("persistentvolumeclaims", one_of["persistentVolumeClaim"].as_str().unwrap()),
            };
            let disk = world.get(&one(plural, name)).await;
            assert_eq!(disk["metadata"]["ownerReferences"][0]["name"], "copy", "{volume}");
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_runs_is_treated_as_asked() {
    everywhere(|world: World| async move {
        world.machine("web", "Always").await;
        world.snapshot("s1", "web").await;
        world.taken("s1").await;
        world.run("web", false).await;
        world
            .restore(
                "r1",
                "s1",
                "web",
                json!({"targetReadinessPolicy": "FailImmediate"}),
            )
            .await;
        let path = one("virtualmachinerestores", "r1");
        let failed = world
            .until(&path, "failed", |it| {
                World::conditions(it).iter().any(|it| it.starts_with("Failure"))
            })
            .await;
        assert!(World::conditions(&failed).contains(&"Failure=True Restore target not ready".to_owned()));
        world.api.delete(&path).await.unwrap();
        world.gone(&path).await;
        world
            .restore("r2", "s1", "web", json!({"targetReadinessPolicy": "StopTarget"}))
            .await;
        let begun = std::time::Instant::now();
        while !world.asked.all.lock().unwrap().contains(&"stop".to_owned()) {
            assert!(begun.elapsed().as_secs() < 60, "nobody stopped it");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        world.stop("web").await;
        world.restored("r2").await;
        world.end().await;
    })
    .await;
}
