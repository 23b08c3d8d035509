//! Machines like others.

use serde_json::{Value, json};

use crate::world::{World, all, everywhere, one, qemu_io};

fn clone_of(name: &str, kind: &str, source: &str, more: &Value) -> Value {
    let group = match kind {
        "VirtualMachine" => "kubevirt.io",
        _ => "snapshot.kubevirt.io",
    };
    let mut spec = json!({
        "source": {"apiGroup": group, "kind": kind, "name": source},
        "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone", "metadata": {"name": name}, "spec": spec,
    })
}

async fn done(world: &World, name: &str) -> Value {
    let path = one("virtualmachineclones", name);
    world
        .until(&path, "done", |it| it["status"]["phase"] == "Succeeded")
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_machine() {
    everywhere(|mut world: World| async move {
        let more = json!({
            "newMacAddresses": {"default": "02:00:00:00:00:09"}, "newSMBiosSerial": "s9",
            "labelFilters": ["*", "!team"], "annotationFilters": ["*"], "template": {"labelFilters": ["*"]},
        });
        let clone = clone_of("copy", "VirtualMachine", "web", &more);
        world.create(&all("virtualmachineclones"), clone).await;
        let path = one("virtualmachineclones", "copy");
        let waits = world
            .until(&path, "waiting", |it| !it["status"]["conditions"].is_null())
            .await;
        assert_eq!(
            World::conditions(&waits),
            [
                "Progressing=False Pending",
                "Ready=False Source doesnt exist: VirtualMachine shop/web"
            ]
        );
        world.machine("web", "Always").await;
        qemu_io(&world.disk("web", "root").await, "write -P 1 1M 64k");
        world.run("web", true).await;
        world
            .until(&path, "begun", |it| !it["status"]["snapshotName"].is_null())
            .await;
        world.crash();
        let cloned = done(&world, "copy").await;
        assert_eq!(cloned["status"]["targetName"], "copy");
        assert_eq!(
            World::conditions(&cloned),
            ["Progressing=False Ready", "Ready=True Ready"]
        );
        let copy = world.get(&one("virtualmachines", "copy")).await;
        assert_eq!(copy["metadata"]["labels"], json!({"app": "web"}));
        let domain = &copy["spec"]["template"]["spec"]["domain"];
        assert_eq!(domain["firmware"]["serial"], "s9");
        assert_eq!(
            domain["devices"]["interfaces"][0]["macAddress"],
            "02:00:00:00:00:09"
        );
        let web = world.get(&one("virtualmachines", "web")).await;
        let uuid = |vm: &Value| vm["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"].clone();
        assert!(uuid(&copy).is_null() || uuid(&copy) != uuid(&web));
        // The disks outlive what they were made of.
        for plural in [
            "virtualmachinesnapshots",
            "virtualmachinerestores",
            "volumesnapshots",
        ] {
            let begun = std::time::Instant::now();
            while !world.api.list(&all(plural)).await.unwrap().is_empty() {
                assert!(begun.elapsed().as_secs() < 60, "{plural} are left");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
        qemu_io(&world.disk("copy", "root").await, "read -P 1 1M 64k");
        world.disk("copy", "data").await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_snapshot() {
    everywhere(|world: World| async move {
        world.machine("web", "Halted").await;
        world.snapshot("s1", "web").await;
        world.taken("s1").await;
        let clone = clone_of("copy", "VirtualMachineSnapshot", "s1", &json!({}));
        world.create(&all("virtualmachineclones"), clone).await;
        done(&world, "copy").await;
        let copy = world.get(&one("virtualmachines", "copy")).await;
        assert_eq!(copy["metadata"]["labels"], json!({"app": "web", "team": "a"}));
        // Somebody else's snapshot stays.
        assert!(!world.get(&one("virtualmachinesnapshots", "s1")).await.is_null());
        world.end().await;
    })
    .await;
}
