//! Claims: made, bound, grown, held and given up.

use serde_json::{Value, json};

use crate::harness::{NODE, World, claim_path, eventually, everywhere, qemu_io};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_gets_an_empty_disk() {
    everywhere(|world: World| async move {
        world.claim("data", "1Gi", json!({})).await;
        let claim = world.bound("data").await;
        assert_eq!(claim["spec"]["storageClassName"], "local");
        assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
        let class = world.get("/apis/storage.k8s.io/v1/storageclasses/local").await;
        assert_eq!(class["provisioner"], "fairway.dev/local");
        let is_default = "storageclass.kubernetes.io/is-default-class";
        assert_eq!(class["metadata"]["annotations"][is_default], "true");
        let name = claim["spec"]["volumeName"].as_str().unwrap();
        assert_eq!(
            name,
            format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap())
        );
        let path = format!("/api/v1/persistentvolumes/{name}");
        let volume = world
            .until(&path, "bound", |it| it["status"]["phase"] == "Bound")
            .await;
        assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
        let terms =
            &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
        assert_eq!(terms["values"], json!([NODE]));
        let directory = world.directory_of("data").await;
        qemu_io(&directory, "read -P 0 0 1M");

        // It grows.
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        world.api.merge(&claim_path("data"), &more).await.unwrap();
        world
            .until(&claim_path("data"), "larger", |it| {
                it["status"]["capacity"]["storage"] == "2Gi"
            })
            .await;
        qemu_io(&directory, "read -P 0 1900M 1M");
        assert_eq!(world.get(&path).await["spec"]["capacity"]["storage"], "2Gi");

        // It goes, and its files with it.
        world.api.delete(&claim_path("data")).await.unwrap();
        eventually("the volume is gone", || async {
            world.get(&path).await.is_null()
        })
        .await;
        assert!(world.get_claim("data").await.is_null());
        assert!(!directory.exists());
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_has_the_limits_of_the_class_that_it_names() {
    everywhere(|world: World| async move {
        let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
        let class = |name: &str, driver: &str| {
            json!({
                "metadata": {"name": name}, "driverName": driver, "parameters": {"iops": "500"},
            })
        };
        world.create(classes, class("modest", "fairway.dev/local")).await;
        world.create(classes, class("foreign", "example.com/disks")).await;
        world
            .claim(
                "data",
                "1Mi",
                json!({"spec": {"volumeAttributesClassName": "modest"}}),
            )
            .await;
        let has =
            |name: &'static str| move |it: &Value| it["status"]["currentVolumeAttributesClassName"] == name;
        let claim = world.until(&claim_path("data"), "limited", has("modest")).await;
        let volume = format!(
            "/api/v1/persistentvolumes/{}",
            claim["spec"]["volumeName"].as_str().unwrap()
        );
        let limits = |volume: &Value| {
            let text = volume["metadata"]["annotations"]["fairway.dev/disk-limits"]
                .as_str()
                .unwrap();
            serde_json::from_str::<Value>(text).unwrap()["iops"].clone()
        };
        assert_eq!(limits(&world.get(&volume).await), 500);

        let name = |class: &str| json!({"spec": {"volumeAttributesClassName": class}});
        for (wanted, status) in [("foreign", "Infeasible"), ("later", "Pending")] {
            world.api.merge(&claim_path("data"), &name(wanted)).await.unwrap();
            let claim = world
                .until(&claim_path("data"), status, |it| {
                    it["status"]["modifyVolumeStatus"]["status"] == status
                })
                .await;
            assert_eq!(
                claim["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
                wanted
            );
            assert_eq!(
                claim["status"]["currentVolumeAttributesClassName"], "modest",
                "as long as it has no other"
            );
        }
        let said = world.events("PersistentVolumeClaim", "data").await;
        assert!(said.iter().any(|it| it.contains("its driver is")), "{said:?}");
        let mut later = class("later", "fairway.dev/local");
        later["parameters"]["iops"] = json!("900");
        world.create(classes, later).await;
        let claim = world
            .until(&claim_path("data"), "limited anew", has("later"))
            .await;
        assert!(claim["status"]["modifyVolumeStatus"].is_null());
        assert_eq!(limits(&world.get(&volume).await), 900);
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn classes_say_what_becomes_of_volumes() {
    everywhere(|world: World| async move {
        let classes = "/apis/storage.k8s.io/v1/storageclasses";
        let class = |name: &str, provisioner: &str| {
            json!({"metadata": {"name": name}, "provisioner": provisioner, "reclaimPolicy": "Retain"})
        };
        world.create(classes, class("keep", "fairway.dev/local")).await;
        world.create(classes, class("other", "example.com/disks")).await;
        world.claim("kept", "1Mi", json!({"spec": {"storageClassName": "keep"}})).await;
        world.claim("foreign", "1Mi", json!({"spec": {"storageClassName": "other"}})).await;
        world.claim("none", "1Mi", json!({"spec": {"storageClassName": ""}})).await;
        world.claim("later", "1Mi", json!({"spec": {"storageClassName": "later"}})).await;
        let directory = world.directory_of("kept").await;
        eventually("it says what is missing", || async {
            let said = world.events("PersistentVolumeClaim", "later").await;
            said.iter().any(|it| it.contains("\"later\" not found"))
        })
        .await;
        world.create(classes, class("later", "fairway.dev/local")).await;
        world.bound("later").await;
        // A volume that does not grow says so.
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Mi"}}}});
        world.api.merge(&claim_path("kept"), &more).await.unwrap();
        eventually("it does not grow", || async {
            let said = world.events("PersistentVolumeClaim", "kept").await;
            said.iter().any(|it| it.starts_with("VolumeResizeFailed"))
        })
        .await;
        let kept = world.get_claim("kept").await;
        let name = kept["spec"]["volumeName"].as_str().unwrap();
        world.api.delete(&claim_path("kept")).await.unwrap();
        let path = format!("/api/v1/persistentvolumes/{name}");
        world.until(&path, "released", |it| it["status"]["phase"] == "Released").await;
        assert!(directory.join("disk.qcow2").exists());
        // Whoever looks after it may give it to another claim, by name, once it is nobody's.
        world.api.merge(&path, &json!({"spec": {"claimRef": null}})).await.unwrap();
        world
            .claim("heir", "1Mi", json!({"spec": {"storageClassName": "keep", "volumeName": name}}))
            .await;
        world.bound("heir").await;
        assert_eq!(world.directory_of("heir").await, directory);
        // Those of others stayed as they were.
        for name in ["foreign", "none"] {
            let claim = world.get_claim(name).await;
            assert_eq!(claim["status"]["phase"], "Pending");
            assert_eq!(claim["metadata"].get("finalizers"), None);
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_holds_its_disks() {
    everywhere(|world: World| async move {
        world.claim("root", "1Mi", json!({})).await;
        let directory = world.directory_of("root").await;
        world.instance("web", &["root"]).await;
        // It does not grow under the machine.
        let more = json!({"spec": {"resources": {"requests": {"storage": "4Mi"}}}});
        world.api.merge(&claim_path("root"), &more).await.unwrap();
        let claim = world
            .until(&claim_path("root"), "waiting", |it| {
                !it["status"]["conditions"].is_null()
            })
            .await;
        assert_eq!(
            claim["status"]["conditions"][0]["type"],
            "FileSystemResizePending"
        );
        assert_eq!(claim["status"]["capacity"]["storage"], "1Mi");
        let volume = format!(
            "/api/v1/persistentvolumes/{}",
            claim["spec"]["volumeName"].as_str().unwrap()
        );
        assert_eq!(
            world.get(&volume).await["spec"]["capacity"]["storage"],
            "4Mi",
            "its node is told"
        );
        // Nor does it go.
        world.api.delete(&claim_path("root")).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert!(world.get_claim("root").await["metadata"]["deletionTimestamp"].is_string());
        assert!(directory.exists());
        world.instance_phase("web", "Succeeded").await;
        eventually("the claim goes", || async {
            world.get_claim("root").await.is_null()
        })
        .await;
        eventually("its files go", || async { !directory.exists() }).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_grows_when_its_machine_stops() {
    let world = World::start(crate::harness::At::Workspace).await;
    world.claim("root", "1Mi", json!({})).await;
    world.bound("root").await;
    world.instance("web", &["root"]).await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "4Mi"}}}});
    world.api.merge(&claim_path("root"), &more).await.unwrap();
    world
        .until(&claim_path("root"), "waiting", |it| {
            !it["status"]["conditions"].is_null()
        })
        .await;
    world.instance_phase("web", "Succeeded").await;
    let claim = world
        .until(&claim_path("root"), "larger", |it| {
            it["status"]["capacity"]["storage"] == "4Mi"
        })
        .await;
    assert_eq!(claim["status"].get("conditions"), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_of_another_workspace_is_not_found() {
    let world = World::start(crate::harness::At::Workspace).await;
    world.claim("secret", "1Mi", json!({})).await;
    let theirs = world.directory_of("secret").await;
    let name = world.get_claim("secret").await["spec"]["volumeName"].clone();
    // The owner of another workspace writes a volume that names the files of this one, and claims it.
    let root = world.root();
    root.create("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}))
        .await
        .unwrap();
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "persistentVolumeReclaimPolicy": "Delete", "local": {"path": theirs},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]},
            ]}]}},
        },
    });
    root.create("/api/v1/persistentvolumes", &volume).await.unwrap();
    let claim = json!({
        "metadata": {"name": "thief", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "local",
            "volumeName": name,
        },
    });
    let claims = "/api/v1/namespaces/shop/persistentvolumeclaims";
    root.create(claims, &claim).await.unwrap();
    eventually("it says why", || async {
        let events = root.list("/api/v1/namespaces/shop/events").await.unwrap();
        events.iter().any(|it| it["reason"] == "FailedBinding")
    })
    .await;
    let thief = root.get(&format!("{claims}/thief")).await.unwrap().unwrap();
    assert_eq!(thief["status"]["phase"], "Pending");
    // Nor are the files removed with what names them.
    root.delete(&format!("/api/v1/persistentvolumes/{}", name.as_str().unwrap()))
        .await
        .unwrap();
    root.delete(&format!("{claims}/thief")).await.unwrap();
    eventually("the claim goes", || async {
        root.get(&format!("{claims}/thief")).await.unwrap().is_none()
    })
    .await;
    assert!(theirs.join("disk.qcow2").exists());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_git_pruned_is_kept_for_a_while() {
    everywhere(|world: World| async move {
        let machine = |name: &str| json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}});
        let tombstones = "/apis/fairway.dev/v1alpha1/tombstones";
        let owned = |uid: &str| {
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": uid, "controller": true},
            ]}})
        };
        // A machine with a disk, as its controller makes it.
        let machines = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines";
        let mut web = machine("web");
        web["spec"] = json!({"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}});
        world.create(machines, web.clone()).await;
        let uid = |found: &Value| found["metadata"]["uid"].as_str().unwrap().to_owned();
        let first = uid(&world.get(&format!("{machines}/web")).await);
        world.data_volume("root", json!({"blank": {}}), "1Mi", owned(&first)).await;
        let directory = world.directory_of("root").await;
        qemu_io(&directory, "write -P 7 0 64k");
        let volume = world.bound("root").await["spec"]["volumeName"].as_str().unwrap().to_owned();
        let volume = format!("/api/v1/persistentvolumes/{volume}");
        // Git prunes it: there is a tombstone, and then it goes.
        let now = jiff::Timestamp::now();
        let later = (now + jiff::SignedDuration::from_hours(1)).to_string();
        let mut kept = machine("web");
        kept["metadata"]["namespace"] = json!("shop");
        let stone = json!({"apiVersion": "fairway.dev/v1alpha1", "kind": "Tombstone", "metadata": {"name": "web"}, "spec": {
            "application": "argocd/web", "deletedAt": now.to_string(), "deletedBy": "argocd-controller", "expiresAt": later,
            "object": kept, "reason": "Pruned", "revision": "abc",
        }});
        world.create(tombstones, stone).await;
        world.api.delete(&format!("{machines}/web")).await.unwrap();
        let found = world.until(&volume, "released", |it| it["status"]["phase"] == "Released").await;
        assert!(found["metadata"]["annotations"]["fairway.dev/trash-until"].is_string());
        assert!(world.get_claim("root").await.is_null());
        assert!(directory.exists());
        // It comes back, and so does its disk.
        world.create(machines, web).await;
        let second = uid(&world.get(&format!("{machines}/web")).await);
        world.data_volume("root", json!({"blank": {}}), "1Mi", owned(&second)).await;
        world.phase("root", "Succeeded").await;
        assert_eq!(world.directory_of("root").await, directory);
        qemu_io(&directory, "read -P 7 0 64k");
        assert!(world.get(&volume).await["metadata"]["annotations"].get("fairway.dev/trash-until").is_none());
        eventually("it is told", || async {
            let said = world.events("DataVolume", "root").await;
            said.iter().any(|it| it.starts_with("RestoredFromTrash"))
        })
        .await;
        // Deleted by hand, after the tombstone is gone, it is gone for good.
        world.api.delete(&format!("{tombstones}/web")).await.unwrap();
        world.api.delete(&format!("{machines}/web")).await.unwrap();
        eventually("the files go", || async { !directory.exists() }).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_says_when_its_volume_is_lost() {
    let mut world = World::start(crate::harness::At::Root).await;
    world
        .data_volume("root", json!({"blank": {}}), "1Mi", json!({}))
        .await;
    world.phase("root", "Succeeded").await;
    let name = world.bound("root").await["spec"]["volumeName"]
        .as_str()
        .unwrap()
        .to_owned();
    world.stop().await;
    let path = format!("/api/v1/persistentvolumes/{name}");
    world
        .api
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    world.api.delete(&path).await.unwrap();
    world.begin();
    world
        .until(&claim_path("root"), "lost", |it| it["status"]["phase"] == "Lost")
        .await;
    let volume = world.phase("root", "Failed").await;
    assert_eq!(crate::harness::condition(&volume, "Bound").1, "ClaimLost");
    world.end().await;
}
