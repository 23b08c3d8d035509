//! Copies of claims, and images that everybody may start from.

use std::os::unix::fs::MetadataExt as _;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{At, World, condition, data_volume_path, eventually, everywhere, qemu_io};

fn of_claim(namespace: &str, name: &str) -> Value {
    json!({"pvc": {"namespace": namespace, "name": name}})
}

fn of_image(name: &str) -> Value {
    json!({"spec": {
        "source": null, "sourceRef": {"kind": "DataSource", "name": name, "namespace": "fairway-images"},
    }})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_copied_when_nobody_writes_to_it() {
    everywhere(|world: World| async move {
        world.image("base", 4, 7);
        world
            .data_volume("gold", json!({}), "8Mi", of_image("base"))
            .await;
        world.phase("gold", "Succeeded").await;
        let gold = world.directory_of("gold").await;
        qemu_io(&gold, "write -P 9 5M 64k");
        world.instance("web", &["gold"]).await;
        world
            .data_volume("copy", of_claim("shop", "gold"), "16Mi", json!({}))
            .await;
        let waiting = world
            .until(&data_volume_path("copy"), "waiting", |it| {
                condition(it, "Running").1 == "CloneSourceInUse"
            })
            .await;
        assert_eq!(waiting["status"]["phase"], "CloneScheduled");
        world.instance_phase("web", "Succeeded").await;
        let copied = world.phase("copy", "Succeeded").await;
        assert_eq!(condition(&copied, "Running").2, "Clone Complete");
        let copy = world.directory_of("copy").await;
        qemu_io(&copy, "read -P 7 0 4M");
        qemu_io(&copy, "read -P 9 5M 64k");
        qemu_io(&copy, "read -P 0 9M 1M");
        // What lies behind is shared.
        let inode =
            |directory: &std::path::Path| std::fs::metadata(directory.join("disk.base")).unwrap().ino();
        assert_eq!(inode(&gold), inode(&copy));
        eventually("it is told", || async {
            let said = world.events("DataVolume", "copy").await;
            said.iter()
                .any(|it| it == "CloneSucceeded Successfully cloned from shop/gold into shop/copy")
        })
        .await;
        // Without a size it is as large as its source; with too little it fails.
        world
            .data_volume(
                "same",
                of_claim("shop", "gold"),
                "1Mi",
                json!({"spec": {"storage": {"resources": null}}}),
            )
            .await;
        world.phase("same", "Succeeded").await;
        assert_eq!(world.bound("same").await["status"]["capacity"]["storage"], "8Mi");
        world
            .data_volume("small", of_claim("shop", "gold"), "2Mi", json!({}))
            .await;
        let failed = world.phase("small", "Failed").await;
        assert!(condition(&failed, "Running").2.contains("too small"), "{failed}");
        // A claim in the way of Kubernetes.
        let source = json!({"kind": "PersistentVolumeClaim", "name": "gold"});
        world
            .claim("plain", "8Mi", json!({"spec": {"dataSource": source}}))
            .await;
        qemu_io(&world.directory_of("plain").await, "read -P 9 5M 64k");
        // One that waits for its source.
        world
            .data_volume("early", of_claim("shop", "late"), "8Mi", json!({}))
            .await;
        world
            .until(&data_volume_path("early"), "waiting", |it| {
                condition(it, "Running").2 == "The source pvc late doesn't exist"
            })
            .await;
        world.claim("late", "8Mi", json!({})).await;
        world.phase("early", "Succeeded").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_namespaces_are_asked_first() {
    everywhere(|world: World| async move {
        world.namespace("gold").await;
        let claim = json!({
            "metadata": {"name": "os"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        });
        world
            .create("/api/v1/namespaces/gold/persistentvolumeclaims", claim.clone())
            .await;
        world
            .until(
                "/api/v1/namespaces/gold/persistentvolumeclaims/os",
                "bound",
                |it| it["status"]["phase"] == "Bound",
            )
            .await;
        // Who may, by name or through a DataSource.
        world
            .data_volume("direct", of_claim("gold", "os"), "1Mi", json!({}))
            .await;
        world.phase("direct", "Succeeded").await;
        let sources = "/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/datasources";
        let source = |namespace: &str, name: &str| {
            json!({
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "os"},
                "spec": {"source": {"pvc": {"namespace": namespace, "name": name}}},
            })
        };
        world.create(sources, source("gold", "os")).await;
        let by_name = json!({"spec": {"source": null, "sourceRef": {"kind": "DataSource", "name": "os"}}});
        world
            .data_volume("named", json!({}), "1Mi", by_name.clone())
            .await;
        world.phase("named", "Succeeded").await;
        // A DataSource that means something else than when the DataVolume was made.
        world.claim("harmless", "1Mi", json!({})).await;
        world.bound("harmless").await;
        world.instance("busy", &["harmless"]).await;
        let path = format!("{sources}/os");
        world
            .api
            .merge(
                &path,
                &json!({"spec": {"source": {"pvc": {"namespace": "shop", "name": "harmless"}}}}),
            )
            .await
            .unwrap();
        world.data_volume("moved", json!({}), "1Mi", by_name.clone()).await;
        // One of a machine that has a service account of its own.
        let machine = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "vm", "namespace": "shop"},
            "spec": {
                "runStrategy": "Halted",
                "dataVolumeTemplates": [{"metadata": {"name": "machines"}, "spec": {
                    "sourceRef": {"kind": "DataSource", "name": "os"},
                    "storage": {"resources": {"requests": {"storage": "1Mi"}}},
                }}],
                "template": {"spec": {
                    "domain": {
                        "memory": {"guest": "64Mi"},
                        "devices": {"disks": [{"name": "root", "disk": {}}, {"name": "sa", "disk": {}}]},
                    },
                    "volumes": [
                        {"name": "root", "dataVolume": {"name": "machines"}},
                        {"name": "sa", "serviceAccount": {"serviceAccountName": "app"}},
                    ],
                }},
            },
        });
        let machines = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines";
        world.create(machines, machine).await;
        let uid = world.get(&format!("{machines}/vm")).await["metadata"]["uid"].clone();
        let mut of_machine = by_name;
        of_machine["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm", "uid": uid, "controller": true,
        }]);
        world
            .data_volume("machines", json!({}), "1Mi", of_machine)
            .await;
        world
            .until(&data_volume_path("moved"), "waiting", |it| {
                condition(it, "Running").1 == "CloneSourceInUse"
            })
            .await;
        world
            .api
            .merge(
                &path,
                &json!({"spec": {"source": {"pvc": {"namespace": "gold", "name": "os"}}}}),
            )
            .await
            .unwrap();
        let refused = world
            .until(&data_volume_path("moved"), "refused", |it| {
                condition(it, "Running").1 == "ErrUnableToClone"
            })
            .await;
        assert_eq!(refused["status"]["phase"], "CloneScheduled");
        // Until its service account may.
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/gold";
        let role = json!({"metadata": {"name": "clone"}, "rules": [
            {"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]},
        ]});
        world.create(&format!("{roles}/roles"), role).await;
        let binding = |account: &str| {
            json!({
                "metadata": {"name": account},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "clone"},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "shop"}],
            })
        };
        let asks = |account: &'static str| {
            move |it: &Value| {
                condition(it, "Running")
                    .2
                    .contains(&format!("system:serviceaccount:shop:{account} may not"))
            }
        };
        world
            .until(&data_volume_path("machines"), "refused", asks("app"))
            .await;
        world
            .create(&format!("{roles}/rolebindings"), binding("app"))
            .await;
        world.phase("machines", "Succeeded").await;
        world
            .until(&data_volume_path("moved"), "refused", asks("default"))
            .await;
        world
            .create(&format!("{roles}/rolebindings"), binding("default"))
            .await;
        world.phase("moved", "Succeeded").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_found_from_everywhere() {
    everywhere(|world: World| async move {
        // It waits for an image that is built later.
        world
            .data_volume("early", json!({}), "8Mi", of_image("tiny"))
            .await;
        world
            .until(&data_volume_path("early"), "waiting", |it| {
                condition(it, "Running").2.contains("fairway image")
            })
            .await;
        let image = world.image("tiny", 4, 7);
        world.phase("early", "Succeeded").await;
        let directory = world.directory_of("early").await;
        qemu_io(&directory, "read -P 7 0 4M");
        assert_eq!(
            std::fs::metadata(directory.join("disk.base")).unwrap().ino(),
            std::fs::metadata(&image.path).unwrap().ino()
        );
        // Without a size it is as large as the image, and it takes no time.
        let mut more = of_image("tiny");
        more["spec"]["storage"] = json!({"resources": null});
        let begun = Instant::now();
        world.data_volume("second", json!({}), "1Mi", more).await;
        world.phase("second", "Succeeded").await;
        println!("a disk over an image took {:?}", begun.elapsed());
        assert_eq!(
            world.bound("second").await["status"]["capacity"]["storage"],
            "4Mi"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_filled_is_adopted() {
    let world = World::start(At::Workspace).await;
    let filled = json!({"metadata": {"annotations": {"cdi.kubevirt.io/storage.populatedFor": "disk"}}});
    world.claim("disk", "1Mi", filled).await;
    world.bound("disk").await;
    let before = world.directory_of("disk").await;
    world
        .data_volume(
            "disk",
            json!({"http": {"url": "http://127.0.0.1:1/never"}}),
            "1Mi",
            json!({}),
        )
        .await;
    world.phase("disk", "Succeeded").await;
    let claim = world.bound("disk").await;
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "DataVolume");
    assert_eq!(world.directory_of("disk").await, before);
    world.end().await;
}
