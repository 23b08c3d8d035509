//! Figures that describe: what machines may take, their cards, their disks, when they were made, and nodes that machines can run on.

use std::collections::BTreeMap;

use fairway_controller::ObjectKey;
use fairway_machines_plan::view::Amount;
use serde_json::Value;

use super::cluster::{CARDS, Known, list, seconds, text, whole, workspace};
use super::text::Page;

/// A machine may have any number of volumes.
const VOLUMES: usize = 64;
/// The resource of a node on which guests run on the processor itself.
const KVM: &str = "devices.kubevirt.io/kvm";

type Place<'p> = [(&'static str, &'p str); 3];

fn place(key: &ObjectKey) -> Place<'_> {
    [
        ("workspace", workspace(key)),
        ("namespace", key.namespace.as_str()),
        ("name", key.name.as_str()),
    ]
}

/// Adds them.
pub(super) fn add(known: &Known, page: &mut Page) {
    for (key, vm) in &known.machines {
        let place = place(key);
        if let Some(made) = seconds(vm, "/metadata/creationTimestamp") {
            let help = "Virtual Machine creation timestamp.";
            page.gauge("kubevirt_vm_create_date_timestamp_seconds", help)
                .put(&place, made);
        }
        let spec = &vm["spec"]["template"]["spec"];
        add_limits(spec, &place, page);
        let help = "Details of Virtual Machine (VM) vNIC interfaces, such as vNIC name, binding type, network name, and binding name for each vNIC defined in the VM's configuration.";
        add_cards("kubevirt_vm_vnic_info", help, spec, &place, page);
        add_disks(key, vm, &known.claims, page);
    }
    for (key, vmi) in &known.instances {
        let help = "Details of VirtualMachineInstance (VMI) vNIC interfaces, such as vNIC name, binding type, network name, and binding name for each vNIC of a running instance.";
        add_cards("kubevirt_vmi_vnic_info", help, &vmi["spec"], &place(key), page);
    }
    let allocatable = |it: &&Value| it["status"]["allocatable"].is_object();
    let has_kvm = |it: &&Value| {
        let amount = it["status"]["allocatable"][KVM].as_str();
        amount.is_some_and(|it| it != "0")
    };
    for (name, help, count) in [
        (
            "kubevirt_allocatable_nodes",
            "The number of allocatable nodes in the cluster.",
            known.nodes.values().filter(allocatable).count(),
        ),
        (
            "kubevirt_nodes_with_kvm",
            "The number of nodes in the cluster that have the devices.kubevirt.io/kvm resource available.",
            known.nodes.values().filter(has_kvm).count(),
        ),
    ] {
        page.gauge(name, help).put(&[], count);
    }
}

fn add_limits(spec: &Value, place: &Place<'_>, page: &mut Page) {
    let limits = &spec["domain"]["resources"]["limits"];
    let amount = |resource: &str| serde_json::from_value::<Amount>(limits[resource].clone()).ok();
    let found = [
        ("memory", "bytes", amount("memory").map(|it| whole(it.bytes()))),
        ("cpu", "cores", amount("cpu").map(|it| whole(it.milli()) / 1000.0)),
    ];
    for (resource, unit, value) in found {
        let Some(value) = value.filter(|it| *it > 0.0) else {
            continue;
        };
        let mut labels = place.to_vec();
        labels.extend([("resource", resource), ("unit", unit)]);
        let help = "Resources limits by Virtual Machine. Reports memory and CPU limits.";
        page.gauge("kubevirt_vm_resource_limits", help)
            .put(&labels, value);
    }
}

fn add_cards(name: &'static str, help: &'static str, spec: &Value, place: &Place<'_>, page: &mut Page) {
    for card in list(spec, "/domain/devices/interfaces").take(CARDS) {
        let own = text(card, "/name");
        let Some(network) = list(spec, "/networks").find(|it| it["name"] == own) else {
            continue;
        };
        let network = match network["pod"].is_object() {
            true => "pod networking",
            false => text(network, "/multus/networkName"),
        };
        let core = ["masquerade", "bridge", "sriov"]
            .into_iter()
            .find(|it| card[*it].is_object());
        let (kind, binding) = match core {
            Some(binding) => ("core", binding),
            None if card["binding"].is_object() => ("plugin", text(card, "/binding/name")),
            None => ("", ""),
        };
        let mut labels = place.to_vec();
        labels.extend([
            ("vnic_name", own),
            ("binding_type", kind),
            ("network", network),
            ("binding_name", binding),
        ]);
        page.gauge(name, help).put(&labels, 1);
    }
}

fn add_disks(key: &ObjectKey, vm: &Value, claims: &BTreeMap<ObjectKey, Value>, page: &mut Page) {
    for volume in list(vm, "/spec/template/spec/volumes").take(VOLUMES) {
        let claim = ["/persistentVolumeClaim/claimName", "/dataVolume/name"]
            .into_iter()
            .map(|it| text(volume, it))
            .find(|it| !it.is_empty());
        let Some(name) = claim else { continue };
        let of = ObjectKey::new(&key.workspace, &key.namespace, name);
        let Some(claim) = claims.get(&of) else { continue };
        let size = ["/status/capacity/storage", "/spec/resources/requests/storage"]
            .into_iter()
            .find_map(|it| serde_json::from_value::<Amount>(claim.pointer(it)?.clone()).ok());
        let Some(size) = size else { continue };
        let mode = match text(claim, "/spec/volumeMode") {
            "" => "Filesystem",
            mode => mode,
        };
        let mut labels = place(key).to_vec();
        labels.extend([
            ("persistentvolumeclaim", name),
            ("volume_mode", mode),
            ("device", text(volume, "/name")),
        ]);
        let help = "Allocated disk size of a Virtual Machine in bytes, based on its PersistentVolumeClaim. Includes persistentvolumeclaim (PVC name), volume_mode (disk presentation mode: Filesystem or Block), and device (disk name).";
        page.gauge("kubevirt_vm_disk_allocated_size_bytes", help)
            .put(&labels, size.bytes());
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    #[test]
    fn machines_and_nodes_are_described() {
        let key = |name: &str| ObjectKey::new(&WorkspaceId::root(), "shop", name);
        let spec = json!({
            "domain": {
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
                "devices": {"interfaces": [
                    {"name": "default", "masquerade": {}},
                    {"name": "lan", "bridge": {}},
                    {"name": "odd", "binding": {"name": "passt"}},
                    {"name": "none", "bridge": {}},
                ]},
            },
            "networks": [
                {"name": "default", "pod": {}},
                {"name": "lan", "multus": {"networkName": "vlan7"}},
                {"name": "odd", "pod": {}},
            ],
            "volumes": [
                {"name": "root", "dataVolume": {"name": "disk"}},
                {"name": "gone", "persistentVolumeClaim": {"claimName": "missing"}},
                {"name": "seed", "cloudInitNoCloud": {}},
            ],
        });
        let vm = json!({"metadata": {"creationTimestamp": "2026-11-18T20:00:00Z"}, "spec": {"template": {"spec": spec}}});
        let claim = json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"capacity": {"storage": "2Gi"}}});
        let node = |kvm: Value| json!({"status": {"allocatable": {"cpu": "2", KVM: kvm}}});
        let known = Known {
            machines: [(key("a"), vm)].into(),
            instances: [(
                key("a"),
                json!({"spec": {"domain": {"devices": {"interfaces": [{"name": "x", "bridge": {}}]}}, "networks": [{"name": "x", "pod": {}}]}}),
            )]
            .into(),
            claims: [(key("disk"), claim)].into(),
            nodes: [
                (key("n1"), node(json!("1k"))),
                (key("n2"), node(json!("0"))),
                (key("n3"), json!({})),
            ]
            .into(),
            ..Known::default()
        };
        let mut page = Page::default();
        add(&known, &mut page);
        let written = page.write();
        let lines: Vec<&str> = written.lines().filter(|it| !it.starts_with('#')).collect();
        expect![[r#"
            kubevirt_vm_create_date_timestamp_seconds{namespace="shop",name="a"} 1795032000
            kubevirt_vm_resource_limits{namespace="shop",name="a",resource="memory",unit="bytes"} 1073741824
            kubevirt_vm_resource_limits{namespace="shop",name="a",resource="cpu",unit="cores"} 1.5
            kubevirt_vm_vnic_info{namespace="shop",name="a",vnic_name="default",binding_type="core",network="pod networking",binding_name="masquerade"} 1
            kubevirt_vm_vnic_info{namespace="shop",name="a",vnic_name="lan",binding_type="core",network="vlan7",binding_name="bridge"} 1
            kubevirt_vm_vnic_info{namespace="shop",name="a",vnic_name="odd",binding_type="plugin",network="pod networking",binding_name="passt"} 1
            kubevirt_vm_disk_allocated_size_bytes{namespace="shop",name="a",persistentvolumeclaim="disk",volume_mode="Filesystem",device="root"} 2147483648
            kubevirt_vmi_vnic_info{namespace="shop",name="a",vnic_name="x",binding_type="core",network="pod networking",binding_name="bridge"} 1
            kubevirt_allocatable_nodes 2
            kubevirt_nodes_with_kvm 1"#]]
        .assert_eq(&lines.join("\n"));
    }
}
