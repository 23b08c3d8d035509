//! Machines as objects, in the states that matter.

use serde_json::{Value, json};

use crate::world::World;

pub(crate) const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines";
pub(crate) const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances";

impl World {
    /// A machine of this run strategy.
    pub(crate) async fn machine(&self, name: &str, strategy: &str) {
        self.create(
            MACHINES,
            json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
                "spec": {"runStrategy": strategy, "template": {"spec": spec()}},
            }),
        )
        .await;
    }

    /// Its instance, in a phase.
    pub(crate) async fn instance(&self, name: &str, phase: &str) {
        let vm = self.get(&format!("{MACHINES}/{name}")).await;
        self.create(
            INSTANCES,
            json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                "metadata": {"name": name, "ownerReferences": [{
                    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name,
                    "uid": vm["metadata"]["uid"], "controller": true,
                }]},
                "spec": spec(),
            }),
        )
        .await;
        let status = json!({
            "phase": phase, "nodeName": "n1",
            "interfaces": [{"name": "default", "ipAddress": "10.88.0.7"}],
        });
        self.says(name, status).await;
        let created = json!({"status": {"created": true, "ready": phase == "Running"}});
        let path = format!("{MACHINES}/{name}/status");
        self.api.merge(&path, &created).await.unwrap().unwrap();
    }

    /// The node says how an instance is.
    pub(crate) async fn says(&self, name: &str, status: Value) {
        let path = format!("{INSTANCES}/{name}");
        let patch = json!({"status": status});
        self.node.merge(&path, &patch).await.unwrap().unwrap();
    }

    /// A condition of an instance, alone.
    pub(crate) async fn condition(&self, name: &str, kind: &str) {
        let condition = json!({"conditions": [{"type": kind, "status": "True"}]});
        self.says(name, condition).await;
    }
}

fn spec() -> Value {
    json!({
        "domain": {
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]},
            "memory": {"guest": "128Mi"},
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 180,
        "volumes": [{"name": "root", "containerDisk": {"image": "registry.example.com/tiny:1"}}],
    })
}
