//! Snapshots: of machines that are stopped and that run.

use serde_json::json;

use crate::world::{World, all, everywhere, one, qemu_io};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_machine_that_is_stopped() {
    everywhere(|world: World| async move {
        // The source may come later.
        world.snapshot("s1", "web").await;
        let path = one("virtualmachinesnapshots", "s1");
        let waits = world
            .until(&path, "waiting", |it| it["status"]["phase"] == "InProgress")
            .await;
        assert_eq!(
            World::conditions(&waits),
            ["Progressing=False Source does not exist", "Ready=False Not ready"]
        );
        world.machine("web", "Halted").await;
        let taken = world.taken("s1").await;
        assert_eq!(taken["status"]["readyToUse"], true);
        assert_eq!(taken["status"].get("indications"), None);
        assert_eq!(
            taken["status"]["snapshotVolumes"],
            json!({"includedVolumes": ["root", "data"], "excludedVolumes": ["seed"]})
        );
        assert_eq!(
            World::conditions(&taken),
            ["Progressing=False Operation complete", "Ready=True Ready"]
        );
        let name = taken["status"]["virtualMachineSnapshotContentName"]
            .as_str()
            .unwrap();
        let content = one("virtualmachinesnapshotcontents", name);
        let kept = world.get(&content).await;
        assert_eq!(kept["status"]["readyToUse"], true);
        assert_eq!(
            kept["spec"]["source"]["virtualMachine"]["metadata"]["name"],
            "web"
        );
        // The machine was held, and is free again.
        let machine = world
            .until(&one("virtualmachines", "web"), "free", |it| {
                it["status"]["snapshotInProgress"].is_null()
            })
            .await;
        assert!(!machine["metadata"]["finalizers"].to_string().contains("snapshot"));
        assert!(world.asked.all.lock().unwrap().is_empty());
        // What it kept goes with it.
        world.api.delete(&path).await.unwrap();
        world.gone(&path).await;
        world.gone(&content).await;
        for volume in kept["spec"]["volumeBackups"].as_array().unwrap() {
            let name = volume["volumeSnapshotName"].as_str().unwrap();
            world.gone(&one("volumesnapshots", name)).await;
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_machine_that_runs() {
    everywhere(|world: World| async move {
        world.machine("web", "Always").await;
        let root = world.disk("web", "root").await;
        qemu_io(&root, "write -P 1 1M 64k");
        world.run("web", true).await;
        world.snapshot("s1", "web").await;
        let taken = world.taken("s1").await;
        assert_eq!(taken["status"]["indications"], json!(["GuestAgent", "Online"]));
        // Both disks are of one moment, at which nothing was written.
        let asked = std::mem::take(&mut *world.asked.all.lock().unwrap());
        assert_eq!(asked, ["freeze", "copy", "copy", "unfreeze"]);
        world.stop("web").await;
        world.run("web", false).await;
        world.snapshot("s2", "web").await;
        let taken = world.taken("s2").await;
        assert_eq!(taken["status"]["indications"], json!(["NoGuestAgent", "Online"]));
        let asked = std::mem::take(&mut *world.asked.all.lock().unwrap());
        assert_eq!(asked, ["pause", "copy", "copy", "unpause"]);
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_is_tried_again_until_the_deadline() {
    everywhere(|world: World| async move {
        world.machine("web", "Always").await;
        world.run("web", true).await;
        // A guest that cannot be frozen.
        *world.asked.no_freeze.lock().unwrap() = Some("the agent is stuck");
        world.snapshot("s1", "web").await;
        let path = one("virtualmachinesnapshots", "s1");
        let failing = world
            .until(&path, "failing", |it| !it["status"]["error"].is_null())
            .await;
        assert_eq!(
            failing["status"]["indications"],
            json!(["GuestAgent", "Online", "QuiesceFailed"])
        );
        assert_eq!(
            World::conditions(&failing),
            ["Progressing=False In error state", "Ready=False Not ready"]
        );
        // A disk that cannot be copied: the guest does not wait for it.
        *world.asked.no_freeze.lock().unwrap() = None;
        *world.asked.no_copy.lock().unwrap() = Some("the disk is full");
        world.asked.all.lock().unwrap().clear();
        let said = |it: &serde_json::Value| it["status"]["error"]["message"].to_string();
        world
            .until(&path, "failing", |it| said(it).contains("the disk is full"))
            .await;
        *world.asked.no_copy.lock().unwrap() = None;
        let taken = world.taken("s1").await;
        assert_eq!(taken["status"].get("error"), None);
        let asked = world.asked.all.lock().unwrap().clone();
        let thawed = asked.iter().filter(|it| *it == "unfreeze").count();
        let frozen = asked.iter().filter(|it| *it == "freeze").count();
        assert!(thawed >= 2 && thawed == frozen, "{asked:?}");
        // One that takes too long has failed, and lets everybody go.
        *world.asked.no_freeze.lock().unwrap() = Some("the agent is stuck");
        let hasty = json!({
            "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": "s2"},
            "spec": {
                "failureDeadline": "2s",
                "source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"},
            },
        });
        world.create(&all("virtualmachinesnapshots"), hasty).await;
        let path = one("virtualmachinesnapshots", "s2");
        let failed = world
            .until(&path, "failed", |it| it["status"]["phase"] == "Failed")
            .await;
        let conditions = World::conditions(&failed);
        assert!(conditions.contains(&"Failure=True snapshot deadline exceeded".to_owned()), "{conditions:?}");
        world
            .until(&one("virtualmachines", "web"), "free", |it| {
                it["status"]["snapshotInProgress"].is_null()
            })
            .await;
        world.end().await;
    })
    .await;
}
