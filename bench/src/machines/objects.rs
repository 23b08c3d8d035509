//! What is created.

use serde_json::{Value, json};

use super::NAMESPACE;

pub(super) const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/bench/virtualmachines";
pub(super) const SERVICES: &str = "/api/v1/namespaces/bench/services";

pub(super) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// A machine that boots `tiny` from a layer of its own, and lets `key` in as root.
pub(super) fn tiny(name: &str, key: &str) -> Value {
    let seed = format!("#cloud-config\nusers:\n- name: root\n  ssh_authorized_keys: [\"{key}\"]\n");
    let mut machine = machine(name, "Always", "128Mi");
    machine["spec"]["dataVolumeTemplates"] = json!([{
        "metadata": {"name": format!("{name}-root")},
        "spec": {
            "sourceRef": {"kind": "DataSource", "name": "tiny", "namespace": "fairway-images"},
            "storage": {"resources": {"requests": {"storage": "512Mi"}}}
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
                "metadata": {"labels": {"app": "bench"}},
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

/// Port 22 of the machines at a port of the host.
pub(super) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "ssh"},
        "spec": {"type": "NodePort", "selector": {"app": "bench"}, "ports": [{"port": 22}]}
    })
}
