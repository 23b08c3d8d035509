//! What is created.

use serde_json::{Value, json};

use super::NAMESPACE;
use super::guest::Guest;
use super::login::USER;

pub(super) const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/bench/virtualmachines";
pub(super) const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/bench/virtualmachineinstances";
pub(super) const MIGRATIONS: &str = "/apis/kubevirt.io/v1/namespaces/bench/virtualmachineinstancemigrations";
pub(super) const SERVICES: &str = "/api/v1/namespaces/bench/services";
pub(super) const EVENTS: &str = "/api/v1/namespaces/bench/events";
pub(super) const NODES: &str = "/api/v1/nodes";

/// The port of iperf3.
pub(super) const IPERF: u16 = 5201;

pub(super) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// A machine that boots an image from a layer of its own, and lets `key` in.
pub(super) fn booting(name: &str, guest: &Guest, key: &str) -> Value {
    let seed = format!("#cloud-config\nusers:\n- name: {USER}\n  ssh_authorized_keys: [\"{key}\"]\n");
    let mut machine = machine(name, "Always", guest.memory);
    machine["spec"]["dataVolumeTemplates"] = json!([{
        "metadata": {"name": format!("{name}-root")},
        "spec": {
            "sourceRef": {"kind": "DataSource", "name": guest.image, "namespace": "fairway-images"},
            "storage": {"resources": {"requests": {"storage": format!("{}Mi", guest.disk)}}}
        }
    }]);
    let template = &mut machine["spec"]["template"]["spec"];
    template["domain"]["devices"]["disks"] = json!([
        {"name": "root", "disk": {"bus": "virtio"}},
        {"name": "seed", "disk": {"bus": "virtio"}}
    ]);
    template["volumes"] = json!([
        {"name": "root", "dataVolume": {"name": format!("{name}-root")}},
        {"name": "seed", "cloudInitNoCloud": {"userData": seed}}
    ]);
    machine
}

/// A machine without disks: its firmware finds nothing to start and waits.
pub(super) fn machine(name: &str, strategy: &str, memory: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {
            "runStrategy": strategy,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "domain": {
                        "cpu": {"cores": 1},
                        "memory": {"guest": memory},
                        "devices": {"interfaces": [{"name": "default", "masquerade": {}}]}
                    },
                    "networks": [{"name": "default", "pod": {}}]
                }
            }
        }
    })
}

/// The same, which stands still from the beginning.
pub(super) fn paused(name: &str, memory: &str) -> Value {
    let mut machine = machine(name, "Always", memory);
    machine["spec"]["template"]["spec"]["startStrategy"] = "Paused".into();
    machine
}

/// Ports of a machine at ports of the host: SSH and iperf3.
pub(super) fn service(machine: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": machine},
        "spec": {"type": "NodePort", "selector": {"app": machine}, "ports": [
            {"name": "ssh", "port": 22}, {"name": "iperf", "port": IPERF}
        ]}
    })
}

/// A machine is to move.
pub(super) fn migration(name: &str, machine: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name},
        "spec": {"vmiName": machine}
    })
}
