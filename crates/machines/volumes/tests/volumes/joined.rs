//! Disks on a host that joined: filled there, with no more rights than a node has.

use fairway_apiservice::full;
use fairway_machines_image::Cache;
use fairway_machines_volumes::{ContainerDisk, ContainerDisks};
use fairway_outbound::AllowedHosts;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{FAR, NODE, World, claim_path, condition, eventually, everywhere, qemu_io};
use crate::snapshots::SNAPSHOTS;

/// A DataVolume that starts from an image, where it is told to.
fn image_on(image: &str, node: Option<&str>) -> Value {
    let source = json!({"kind": "DataSource", "name": image, "namespace": "fairway-images"});
    json!({
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}},
        "spec": {"source": null, "sourceRef": source},
    })
}

fn node_of(object: &Value) -> &str {
    let found = &object["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    found.as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_fetches_the_image_of_a_disk_once() {
    everywhere(|world: World| async move {
        let image = world.image("base", 4, 7);
        let far = world.join(FAR).await;
        // Half of it came before the node was restarted.
        let cache = Cache::open(&far.images()).unwrap();
        let content = std::fs::read(&image.path).unwrap();
        let mut receiving = cache.receive(&image, 8 << 20).unwrap();
        receiving.write(&content[..1_000_000]).unwrap();
        drop(receiving);

        world
            .data_volume("one", json!({}), "8Mi", image_on("base", Some(FAR)))
            .await;
        world.phase("one", "Succeeded").await;
        let claim = world.bound("one").await;
        assert_eq!(node_of(&claim), FAR);
        qemu_io(&far.directory_of(&claim), "read -P 7 0 4M");
        let kept = Cache::open(&far.images())
            .unwrap()
            .by_digest(&image.digest)
            .unwrap();
        assert!(kept.is_some(), "the next disk finds it");
        world
            .data_volume("two", json!({}), "8Mi", image_on("base", Some(FAR)))
            .await;
        qemu_io(&far.directory_of(&world.bound("two").await), "read -P 7 0 4M");

        // The same name, another content: what the control plane says holds.
        world.image("base", 4, 9);
        world
            .data_volume("three", json!({}), "8Mi", image_on("base", Some(FAR)))
            .await;
        qemu_io(&far.directory_of(&world.bound("three").await), "read -P 9 0 4M");

        // A machine without a volume starts from it, too.
        let disks =
            ContainerDisks::new(far.images(), AllowedHosts::parse("").unwrap()).with_server(&far.clients);
        let wanted = ContainerDisk {
            image: "fairway-images/base",
            ..ContainerDisk::default()
        };
        assert_eq!(disks.fetch(&wanted).await.unwrap().virtual_size, 4 << 20);
        let wanted = ContainerDisk {
            image: "fairway-images/nothing",
            ..wanted
        };
        assert!(disks.fetch(&wanted).await.is_err());

        // A disk that is too small is refused, as on any node.
        world
            .data_volume("small", json!({}), "1Mi", image_on("base", Some(FAR)))
            .await;
        world.phase("small", "Failed").await;
        // What does not exist is waited for.
        world
            .data_volume("missing", json!({}), "8Mi", image_on("nothing", Some(FAR)))
            .await;
        world
            .until(&crate::harness::data_volume_path("missing"), "waiting", |it| {
                condition(it, "Running").2.contains("doesn't exist")
                    || condition(it, "Bound").2.contains("doesn't exist")
            })
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_sent_to_a_disk_on_another_host() {
    everywhere(|mut world: World| async move {
        world.without_machines().await;
        let far = world.join(FAR).await;
        world
            .data_volume("disk", json!({"upload": {}}), "8Mi", json!({}))
            .await;
        world.phase("disk", "UploadReady").await;
        world
            .until(&claim_path("disk"), "ready", |it| {
                it["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.ready"] == "true"
            })
            .await;
        let config = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config";
        world
            .until(config, "says where to", |it| {
                it["status"]["uploadProxyURL"] == "https://uploads.example.com"
            })
            .await;
        let token = world.token("disk").await.unwrap();
        let (status, why) = world.send(Method::POST, &token, full("<html></html>")).await;
        assert!(status == StatusCode::BAD_REQUEST, "{status} {why}");
        let (status, why) = world.send(Method::POST, &token, full(vec![5; 4 << 20])).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let claim = world.bound("disk").await;
        assert_eq!(node_of(&claim), FAR);
        qemu_io(&far.directory_of(&claim), "read -P 5 0 4M");
        let left = |part: &str| std::fs::read_dir(world.images().join(part)).unwrap().count();
        assert_eq!(
            (left("kept"), left("blobs")),
            (0, 0),
            "the control plane keeps nothing"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_without_machines_chooses_nodes() {
    everywhere(|mut world: World| async move {
        world.without_machines().await;
        world.image("base", 4, 7);
        world
            .data_volume("early", json!({}), "8Mi", image_on("base", None))
            .await;
        world
            .until(&crate::harness::data_volume_path("early"), "waiting", |it| {
                condition(it, "Bound").2.contains("no node runs machines")
            })
            .await;
        let far = world.join(FAR).await;
        world.phase("early", "Succeeded").await;
        let early = world.bound("early").await;
        qemu_io(&far.directory_of(&early), "read -P 7 0 4M");
        world.claim("plain", "8Mi", json!({})).await;
        assert_eq!(node_of(&world.bound("plain").await), FAR);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_and_its_copies_stay_on_the_host_of_the_disk() {
    everywhere(|world: World| async move {
        world.image("base", 4, 7);
        let far = world.join(FAR).await;
        world
            .data_volume("root", json!({}), "8Mi", image_on("base", Some(FAR)))
            .await;
        let root = far.directory_of(&world.bound("root").await);
        qemu_io(&root, "write -P 1 5M 64k");
        world.snapshot("first", "root").await;
        let taken = world.taken("first").await;
        assert_eq!(node_of(&taken), FAR);
        let content = taken["status"]["boundVolumeSnapshotContentName"]
            .as_str()
            .unwrap();
        let kept = far.snapshot(content);
        qemu_io(&root, "write -P 2 5M 64k");
        qemu_io(&kept, "read -P 1 5M 64k");
        // Nobody says where the copies shall be: they are made where the originals are.
        let from = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "first"});
        world
            .claim("back", "8Mi", json!({"spec": {"dataSource": from}}))
            .await;
        let back = world.bound("back").await;
        assert_eq!(node_of(&back), FAR);
        qemu_io(&far.directory_of(&back), "read -P 1 5M 64k");
        let source = json!({"pvc": {"namespace": "shop", "name": "root"}});
        world.data_volume("copy", source, "8Mi", json!({})).await;
        let copy = world.bound("copy").await;
        qemu_io(&far.directory_of(&copy), "read -P 2 5M 64k");
        // One of this host is still made here.
        world.claim("near", "8Mi", json!({})).await;
        assert_eq!(node_of(&world.bound("near").await), NODE);
        // It goes with its files.
        world.api.delete(&format!("{SNAPSHOTS}/first")).await.unwrap();
        eventually("it goes", || async {
            world.get(&format!("{SNAPSHOTS}/first")).await.is_null() && !kept.exists()
        })
        .await;
    })
    .await;
}
