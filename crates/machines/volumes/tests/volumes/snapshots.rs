//! Snapshots of volumes, and claims that are made from them.

use fairway_machines_guests::Order;
use serde_json::{Value, json};

use crate::harness::{World, condition, data_volume_path, eventually, everywhere, qemu_io};

pub(crate) const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots";

impl World {
    pub(crate) async fn snapshot(&self, name: &str, claim: &str) {
        let snapshot = json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": name},
            "spec": {"source": {"persistentVolumeClaimName": claim}},
        });
        self.create(SNAPSHOTS, snapshot).await;
    }

    pub(crate) async fn taken(&self, name: &str) -> Value {
        let path = format!("{SNAPSHOTS}/{name}");
        self.until(&path, "ready", |it| it["status"]["readyToUse"] == true)
            .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_stays_as_it_was() {
    everywhere(|world: World| async move {
        world.image("base", 4, 7);
        let source = json!({"spec": {
            "source": null, "sourceRef": {"kind": "DataSource", "name": "base", "namespace": "fairway-images"},
        }});
        world.data_volume("root", json!({}), "8Mi", source).await;
        let root = world.directory_of("root").await;
        qemu_io(&root, "write -P 1 5M 64k");
        let sources = "/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/datasources";
        let stands = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "golden"},
            "spec": {"source": {"snapshot": {"namespace": "shop", "name": "first"}}},
        });
        world.create(sources, stands).await;
        let golden = format!("{sources}/golden");
        world
            .until(&golden, "waiting", |it| condition(it, "Ready").2 == "Snapshot not found")
            .await;
        world.snapshot("first", "root").await;
        let taken = world.taken("first").await;
        world
            .until(&golden, "ready", |it| condition(it, "Ready").0 == "True")
            .await;
        assert_eq!(taken["status"]["restoreSize"], "8Mi");
        let content = taken["status"]["boundVolumeSnapshotContentName"].as_str().unwrap().to_owned();
        let kept = world
            .folder()
            .join("machines/snapshots")
            .join(world.workspace().as_str())
            .join(&content);
        qemu_io(&root, "write -P 2 5M 64k");
        qemu_io(&kept, "read -P 1 5M 64k");
        // Claims are made from it, in both ways.
        world
            .data_volume("back", json!({"snapshot": {"namespace": "shop", "name": "first"}}), "8Mi", json!({}))
            .await;
        let back = world.phase("back", "Succeeded").await;
        assert_eq!(condition(&back, "Running").2, "Clone Complete");
        qemu_io(&world.directory_of("back").await, "read -P 1 5M 64k");
        qemu_io(&world.directory_of("back").await, "read -P 7 0 4M");
        let named = json!({"spec": {"source": null, "sourceRef": {"kind": "DataSource", "name": "golden"}}});
        world.data_volume("named", json!({}), "8Mi", named).await;
        qemu_io(&world.directory_of("named").await, "read -P 1 5M 64k");
        let from = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "first"});
        world.claim("plain", "8Mi", json!({"spec": {"dataSource": from}})).await;
        qemu_io(&world.directory_of("plain").await, "read -P 1 5M 64k");
        // It outlives the claim, and goes with its files.
        world.api.delete(&data_volume_path("root")).await.unwrap();
        eventually("the claim goes", || async { world.get_claim("root").await.is_null() }).await;
        assert!(kept.exists());
        world.api.delete(&format!("{SNAPSHOTS}/first")).await.unwrap();
        eventually("it goes", || async {
            world.get(&format!("{SNAPSHOTS}/first")).await.is_null() && !kept.exists()
        })
        .await;
        let contents = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
        assert!(world.api.list(contents).await.unwrap().is_empty());
        world.end().await;
    })
    .await;
}

fn says(words: &'static str) -> impl Fn(&Value) -> bool {
    move |it: &Value| {
        let message = it["status"]["error"]["message"].as_str();
        message.is_some_and(|it| it.contains(words))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_runs_copies_its_disk() {
    everywhere(|mut world: World| async move {
        world.snapshot("early", "root").await;
        world
            .until(&format!("{SNAPSHOTS}/early"), "waiting", says("does not exist"))
            .await;
        world.claim("root", "8Mi", json!({})).await;
        world.taken("early").await;
        assert!(world.guests.orders.lock().unwrap().is_empty());
        let root = world.directory_of("root").await;
        qemu_io(&root, "write -P 1 1M 64k");
        world.instance("web", &["root"]).await;
        *world.guests.refusal.lock().unwrap() = Some("it moves".to_owned());
        world.snapshot("live", "root").await;
        let path = format!("{SNAPSHOTS}/live");
        world.until(&path, "waiting", says("it moves")).await;
        *world.guests.refusal.lock().unwrap() = None;
        // The moment comes before the copy is whole, and stays the same over a crash.
        let begun = world
            .until(&path, "begun", |it| !it["status"]["creationTime"].is_null())
            .await;
        assert_eq!(
            (&begun["status"]["readyToUse"], &begun["status"]["error"]),
            (&json!(false), &Value::Null)
        );
        qemu_io(&root, "write -P 2 1M 64k");
        world.kill();
        world.begin();
        *world.guests.end.lock().unwrap() = Some(Ok(()));
        let taken = world.taken("live").await;
        assert_eq!(taken["status"]["creationTime"], begun["status"]["creationTime"]);
        let from = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "live"});
        world
            .claim("plain", "8Mi", json!({"spec": {"dataSource": from}}))
            .await;
        qemu_io(&world.directory_of("plain").await, "read -P 1 1M 64k");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_copy_is_never_used() {
    everywhere(|world: World| async move {
        world.claim("root", "8Mi", json!({})).await;
        world.bound("root").await;
        world.instance("web", &["root"]).await;
        let folder = world
            .folder()
            .join("machines/snapshots")
            .join(world.workspace().as_str());
        let left = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
        // The machine cannot go on with it, or ends before it is whole.
        *world.guests.end.lock().unwrap() = Some(Err("copying a disk: No space left on device".to_owned()));
        world.snapshot("full", "root").await;
        let path = format!("{SNAPSHOTS}/full");
        world.until(&path, "lost", says("No space left")).await;
        *world.guests.end.lock().unwrap() = None;
        world.snapshot("cut", "root").await;
        let path = format!("{SNAPSHOTS}/cut");
        world
            .until(&path, "begun", |it| !it["status"]["creationTime"].is_null())
            .await;
        world.instance_phase("web", "Succeeded").await;
        let lost = world.until(&path, "lost", says("ended before")).await;
        assert_eq!(lost["status"]["readyToUse"], false);
        eventually("nothing is left", || async { left() == 0 }).await;
        // One that is deleted is broken off.
        world.instance_phase("web", "Running").await;
        world.snapshot("gone", "root").await;
        let path = format!("{SNAPSHOTS}/gone");
        world
            .until(&path, "begun", |it| !it["status"]["creationTime"].is_null())
            .await;
        world.api.delete(&path).await.unwrap();
        eventually("it goes", || async { world.get(&path).await.is_null() }).await;
        let orders = world.guests.orders.lock().unwrap().clone();
        let is_broken_off = |order: &Order| matches!(order, Order::BreakCopyOff { .. });
        assert!(orders.iter().any(is_broken_off) && left() == 0);
        world.end().await;
    })
    .await;
}
