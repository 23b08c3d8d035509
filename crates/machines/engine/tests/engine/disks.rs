//! Disks that machines bring along, and disks that are plugged in and out.

use serde_json::{Value, json};

use crate::harness::{DATA_VOLUMES, INSTANCES, MACHINES, World, a_while, condition, everywhere, until};

const CLAIMS: &str = "/api/v1/namespaces/vms/persistentvolumeclaims";

fn with_disk() -> Value {
    json!({"spec": {
        "dataVolumeTemplates": [{
            "metadata": {"name": "root", "labels": {"tier": "front"}},
            "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
        }],
        "template": {"spec": {"volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}},
    }})
}

impl World {
    /// A disk that is filled, on a node.
    pub(crate) async fn fill(&self, name: &str, node: &str) {
        let affinity = json!({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]},
        ]}});
        let volume = json!({
            "metadata": {"name": format!("pv-{name}")},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/somewhere"},
                "nodeAffinity": affinity,
            },
        });
        self.create("/api/v1/persistentvolumes", volume).await;
        let claim = json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": format!("pv-{name}"),
            },
        });
        self.create(CLAIMS, claim).await;
        let bound = json!({"status": {"phase": "Bound"}});
        self.api
            .merge(&format!("{CLAIMS}/{name}/status"), &bound)
            .await
            .unwrap();
    }

    async fn say_of_disk(&self, name: &str, status: Value) {
        let place = format!("{DATA_VOLUMES}/{name}/status");
        let patch = json!({"status": status});
        assert!(self.api.merge(&place, &patch).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_machine_waits_for_the_disks_that_it_brings_along() {
    everywhere(|world| async move {
        world.machine("web", with_disk()).await;
        let made = until(&world.api, &format!("{DATA_VOLUMES}/root"), "made", |it| {
            !it.is_null()
        })
        .await;
        let vm = world.vm("web").await;
        assert_eq!(
            made["metadata"]["ownerReferences"][0]["uid"],
            vm["metadata"]["uid"]
        );
        assert_eq!(made["metadata"]["labels"]["tier"], "front");
        assert_eq!(
            made["metadata"]["labels"]["kubevirt.io/created-by"],
            vm["metadata"]["uid"]
        );
        world.shows("web", "Provisioning").await;
        world
            .event("web", "SuccessfulDataVolumeCreate Created DataVolume root")
            .await;
        a_while().await;
        assert!(world.vmi("web").await.is_null());
        world.fill("root", "n1").await;
        world.say_of_disk("root", json!({"phase": "Succeeded"})).await;
        world.shows("web", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn disks_that_cannot_be_filled_are_told() {
    everywhere(|world| async move {
        world.machine("web", with_disk()).await;
        until(&world.api, &format!("{DATA_VOLUMES}/root"), "made", |it| {
            !it.is_null()
        })
        .await;
        let broken = json!({"phase": "ImportInProgress", "conditions": [
            {"type": "Running", "status": "False", "reason": "Error", "message": "no route to host"},
        ]});
        world.say_of_disk("root", broken).await;
        let vm = world.shows("web", "DataVolumeError").await;
        let (_, reason, message) = condition(&vm, "Failure").unwrap();
        assert_eq!(reason, "FailedCreate");
        assert!(message.contains("no route to host"), "{message}");
        world.event("web", "FailedDataVolumeImport").await;
        // It gets on, and the machine with it.
        world.fill("root", "n1").await;
        world
            .say_of_disk("root", json!({"phase": "Succeeded", "conditions": []}))
            .await;
        let vm = world.shows("web", "Running").await;
        assert_eq!(condition(&vm, "Failure"), None);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_that_is_halted_has_its_disks_made_all_the_same() {
    everywhere(|world| async move {
        let mut halted = with_disk();
        halted["spec"]["runStrategy"] = json!("Halted");
        world.machine("web", halted.clone()).await;
        until(&world.api, &format!("{DATA_VOLUMES}/root"), "made", |it| {
            !it.is_null()
        })
        .await;
        halted["metadata"] = json!({"annotations": {"kubevirt.io/immediate-data-volume-creation": "false"}});
        halted["spec"]["dataVolumeTemplates"][0]["metadata"]["name"] = json!("later");
        halted["spec"]["template"]["spec"]["volumes"][0]["dataVolume"]["name"] = json!("later");
        world.machine("later", halted).await;
        world.shows("later", "Stopped").await;
        a_while().await;
        let place = format!("{DATA_VOLUMES}/later");
        assert!(
            world.api.get(&place).await.unwrap().is_none(),
            "nobody needs it yet"
        );
        world
            .patch("later", json!({"spec": {"runStrategy": "Always"}}))
            .await;
        until(&world.api, &place, "made", |it| !it.is_null()).await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_instance_waits_for_claims_of_others() {
    everywhere(|world| async move {
        let claimed = json!({"spec": {"template": {"spec": {
            "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "data"}}],
        }}}});
        world.machine("web", claimed).await;
        let vm = world.shows("web", "ErrorPvcNotFound").await;
        let (_, reason, message) = condition(&vm, "Synchronized").unwrap();
        assert_eq!(reason, "FailedPvcNotFound");
        assert_eq!(message, "PVC vms/data does not exist, waiting for it to appear");
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        world.create(CLAIMS, claim).await;
        let vm = world.shows("web", "WaitingForVolumeBinding").await;
        assert_eq!(vm["status"]["created"], true);
        world.api.delete(&format!("{CLAIMS}/data")).await.unwrap();
        world.shows("web", "ErrorPvcNotFound").await;
        world.fill("data", "n1").await;
        world.shows("web", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn disks_are_plugged_in_and_out() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        world.fill("data", "n1").await;
        let add = json!({"addVolumeOptions": {
            "name": "data", "disk": {"name": "data", "disk": {"bus": "scsi"}},
            "volumeSource": {"persistentVolumeClaim": {"claimName": "data", "hotpluggable": true}},
        }});
        world.patch_status("web", json!({"volumeRequests": [add]})).await;
        let plugged = |it: &Value| {
            let volumes = it["spec"]["volumes"].as_array().unwrap();
            volumes
                .iter()
                .any(|it| it["name"] == "data" && it["persistentVolumeClaim"]["hotpluggable"] == true)
        };
        world.until_instance("web", "with the disk", plugged).await;
        let vm = world
            .until("web", "done", |it| it["status"]["volumeRequests"].is_null())
            .await;
        assert_eq!(
            vm["spec"]["template"]["spec"]["domain"]["devices"]["disks"][1]["name"],
            "data"
        );
        a_while().await;
        let vm = world.vm("web").await;
        assert_eq!(condition(&vm, "RestartRequired"), None);
        let remove = json!({"removeVolumeOptions": {"name": "data"}});
        world
            .patch_status("web", json!({"volumeRequests": [remove]}))
            .await;
        world
            .until_instance("web", "without the disk", |it| !plugged(it))
            .await;
        let vm = world
            .until("web", "done", |it| it["status"]["volumeRequests"].is_null())
            .await;
        assert_eq!(
            vm["spec"]["template"]["spec"]["volumes"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(condition(&vm, "RestartRequired"), None);
        assert_eq!(
            world.vmi("web").await["metadata"]["uid"],
            before["metadata"]["uid"]
        );
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_instance_that_nobody_made_a_machine_for() {
    everywhere(|world| async move {
        let spec = crate::harness::machine("own", &json!({}))["spec"]["template"]["spec"].clone();
        let own = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "own", "namespace": "vms"}, "spec": spec,
        });
        world.create(INSTANCES, own).await;
        world
            .until_instance("own", "running", |it| it["status"]["phase"] == "Running")
            .await;
        // A machine of that name takes it over.
        world.machine("own", json!({})).await;
        let vm = world.shows("own", "Running").await;
        let vmi = world.vmi("own").await;
        assert_eq!(
            vmi["metadata"]["ownerReferences"][0]["uid"],
            vm["metadata"]["uid"]
        );
        assert_eq!(world.host.starts("own"), 1);
        world.api.delete(&format!("{MACHINES}/own")).await.unwrap();
        world.until("own", "gone", Value::is_null).await;
        world.until_instance("own", "gone", Value::is_null).await;
        world.end().await;
    })
    .await;
}
