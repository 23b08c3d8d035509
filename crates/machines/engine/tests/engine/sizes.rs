//! Sizes and tastes that machines name.

use serde_json::{Value, json};

use crate::harness::{REVISIONS, World, a_while, condition, everywhere};

const SIZES: &str = "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes";
const OWN_SIZES: &str = "/apis/instancetype.kubevirt.io/v1beta1/namespaces/vms/virtualmachineinstancetypes";
const TASTES: &str = "/apis/instancetype.kubevirt.io/v1beta1/namespaces/vms/virtualmachinepreferences";

const VERSION: &str = "instancetype.kubevirt.io/v1beta1";

fn size(kind: &str, name: &str, count: u32) -> Value {
    json!({
        "apiVersion": VERSION, "kind": kind, "metadata": {"name": name},
        "spec": {"cpu": {"guest": count}, "memory": {"guest": "1Gi"}},
    })
}

/// A machine that leaves its size to others.
fn sized(instancetype: Value) -> Value {
    json!({"spec": {
        "instancetype": instancetype,
        "template": {"spec": {"domain": {"cpu": null, "memory": null}}},
    }})
}

impl World {
    async fn copies(&self) -> Vec<String> {
        let all = self.api.list(REVISIONS).await.unwrap();
        let names = all
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|it| !it.starts_with("revision-start")).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_machine_keeps_the_size_that_it_started_with() {
    everywhere(|world| async move {
        world
            .create(SIZES, size("VirtualMachineClusterInstancetype", "small", 1))
            .await;
        world.machine("web", sized(json!({"name": "small"}))).await;
        let vm = world.shows("web", "Running").await;
        let reference = &vm["status"]["instancetypeRef"];
        assert_eq!(reference["name"], "small");
        let copy = reference["controllerRevisionRef"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(copy.starts_with("web-small-v1beta1-"), "{copy}");
        assert!(
            vm["spec"]["instancetype"]["revisionName"].is_null(),
            "the spec is the author's"
        );
        let before = world.vmi("web").await;
        assert_eq!(before["spec"]["domain"]["cpu"]["sockets"], 1);
        assert_eq!(
            before["metadata"]["annotations"]["kubevirt.io/cluster-instancetype-name"],
            "small"
        );
        // The size changes, the machine does not: not even when it is started anew.
        let larger = json!({"spec": {"cpu": {"guest": 2}}});
        world.api.merge(&format!("{SIZES}/small"), &larger).await.unwrap();
        a_while().await;
        let stop = json!({"stateChangeRequests": [{"action": "Stop", "uid": before["metadata"]["uid"]}]});
        world.patch_status("web", stop).await;
        let after = world.runs_anew("web", &before).await;
        assert_eq!(after["spec"]["domain"]["cpu"]["sockets"], 1);
        assert_eq!(world.copies().await, [copy]);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn another_size_is_a_change_like_any_other() {
    everywhere(|world| async move {
        world
            .create(SIZES, size("VirtualMachineClusterInstancetype", "small", 1))
            .await;
        world
            .create(OWN_SIZES, size("VirtualMachineInstancetype", "large", 2))
            .await;
        world.machine("web", sized(json!({"name": "small"}))).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        let large = json!({"name": "large", "kind": "VirtualMachineInstancetype"});
        world.patch("web", json!({"spec": {"instancetype": large}})).await;
        // More sockets can be had while the guest runs.
        let after = world
            .until_instance("web", "grown", |it| it["spec"]["domain"]["cpu"]["sockets"] == 2)
            .await;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        let vm = world
            .until("web", "large", |it| {
                it["status"]["instancetypeRef"]["name"] == "large"
            })
            .await;
        assert_eq!(condition(&vm, "RestartRequired"), None);
        // Fewer cannot.
        let small = json!({"name": "small", "kind": "VirtualMachineClusterInstancetype"});
        world.patch("web", json!({"spec": {"instancetype": small}})).await;
        let vm = world
            .until("web", "in need of a restart", |it| {
                condition(it, "RestartRequired").is_some()
            })
            .await;
        assert_eq!(
            condition(&vm, "RestartRequired").unwrap().2,
            "Reduction of CPU socket count requires a restart"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn tastes_fill_in_what_nobody_said() {
    everywhere(|world| async move {
        let taste = json!({
            "apiVersion": VERSION, "kind": "VirtualMachinePreference",
            "metadata": {"name": "linux"}, "spec": {"devices": {"preferredDiskBus": "sata"}},
        });
        world.create(TASTES, taste).await;
        let mut vm = json!({"spec": {"preference": {"name": "linux", "kind": "VirtualMachinePreference"}}});
        vm["spec"]["template"] =
            json!({"spec": {"domain": {"devices": {"disks": [{"name": "root", "disk": {}}]}}}});
        world.machine("web", vm).await;
        let vm = world.shows("web", "Running").await;
        assert_eq!(vm["status"]["preferenceRef"]["name"], "linux");
        let vmi = world.vmi("web").await;
        assert_eq!(
            vmi["spec"]["domain"]["devices"]["disks"][0]["disk"]["bus"],
            "sata"
        );
        a_while().await;
        assert_eq!(condition(&world.vm("web").await, "RestartRequired"), None);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_copy_that_is_gone_is_told() {
    everywhere(|world| async move {
        world
            .create(SIZES, size("VirtualMachineClusterInstancetype", "small", 1))
            .await;
        let mut vm = sized(json!({"name": "small"}));
        vm["spec"]["runStrategy"] = json!("Halted");
        world.machine("web", vm).await;
        let copied =
            |it: &Value| it["status"]["instancetypeRef"]["controllerRevisionRef"]["name"].is_string();
        let vm = world.until("web", "with a copy", copied).await;
        let copy = vm["status"]["instancetypeRef"]["controllerRevisionRef"]["name"]
            .as_str()
            .unwrap();
        world.api.delete(&format!("{REVISIONS}/{copy}")).await.unwrap();
        // The API itself refuses what is wrong; this comes from elsewhere.
        world
            .patch_status("web", json!({"stateChangeRequests": [{"action": "Start"}]}))
            .await;
        let vm = world
            .until("web", "in trouble", |it| condition(it, "Failure").is_some())
            .await;
        let (_, reason, message) = condition(&vm, "Failure").unwrap();
        assert_eq!(reason, "FailedCreate");
        assert!(message.contains("not found"), "{message}");
        assert!(world.vmi("web").await.is_null());
        world.end().await;
    })
    .await;
}
