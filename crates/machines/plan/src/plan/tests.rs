//! Machines by examples, and what cannot be had.

use expect_test::expect;
use fairway_text_yaml as yaml;
use serde_json::json;

use super::*;
use crate::machine::{CardBinding, CardNetwork};
use crate::unsupported::{self, Effect};
use crate::{defaults, view};

pub(crate) fn instance(spec: &str) -> VirtualMachineInstance {
    let spec: Value = yaml::from_str(spec, yaml::Limits::default()).unwrap();
    let mut vmi = json!({"metadata": {"name": "web", "namespace": "user-vms"}, "spec": spec});
    defaults::instance(&mut vmi, &Settings::default()).unwrap();
    view::read("VirtualMachineInstance", &vmi).unwrap()
}

fn planned(spec: &str, host: &Capabilities) -> MachinePlan {
    let origin = Origin {
        workspace: "root",
        mac_attempt: 0,
    };
    plan(&instance(spec), origin, host, &Settings::default())
}

fn able() -> Capabilities {
    Capabilities {
        kvm: true,
        hugepages: BTreeSet::from([2 << 20]),
        dedicated_cpus: true,
        tpm: true,
        uefi: true,
        secure_boot: true,
        qemu: (7, 2),
    }
}

fn told(plan: &MachinePlan) -> String {
    plan.unsupported
        .iter()
        .map(|it| format!("{:?} {it}\n", it.effect))
        .collect()
}

const ALL_WISHES: &str = "
schedulerName: mine
domain:
  machine: {type: pc-q35-rhel9.4.0}
  memory: {guest: 1Gi, maxGuest: 3Gi, hugepages: {pageSize: 2Mi}}
  cpu:
    cores: 2
    model: host-passthrough
    dedicatedCpuPlacement: true
    isolateEmulatorThread: true
    numa: {guestMappingPassthrough: {}}
    realtime: {}
    features: [{name: vmx, policy: require}, {name: svm, policy: disable}]
  features: {hyperv: {relaxed: {}, spinlocks: {spinlocks: 8191}, evmcs: {}}, kvm: {hidden: true}}
  clock: {timezone: Europe/Vienna, timer: {pit: {tickPolicy: catchup}, hyperv: {}}}
  firmware: {bootloader: {efi: {}}, acpi: {slicNameRef: slic}}
  launchSecurity: {sev: {}}
  ioThreadsPolicy: supplementalPool
  ioThreads: {supplementalPoolThreadCount: 4}
  devices:
    gpus: [{name: g, deviceName: nvidia.com/A100}]
    hostDevices: [{name: h, deviceName: vendor.com/card}]
    filesystems: [{name: share, virtiofs: {}}]
    autoattachVSOCK: true
    tpm: {}
    sound: {name: audio}
    networkInterfaceMultiqueue: true
    disks:
    - {name: lun, lun: {bus: scsi}}
    - {name: far, disk: {bus: virtio, pciAddress: '0000:81:01.0'}, io: native, cache: writeback}
    - {name: ro, disk: {bus: sata}}
    interfaces:
    - {name: default, masquerade: {}, model: igb}
    - {name: fast, sriov: {}}
    - {name: old, passt: {}}
    - {name: plug, binding: {name: macvtap}}
networks:
- {name: default, pod: {vmNetworkCIDR: 10.9.0.0/24}}
- {name: fast, multus: {networkName: sriov-net}}
- {name: old, pod: {}}
- {name: plug, multus: {networkName: other/net}}
volumes:
- {name: lun, persistentVolumeClaim: {claimName: block}}
- {name: far, emptyDisk: {capacity: 1Gi}}
- {name: ro, persistentVolumeClaim: {claimName: data, readOnly: true}}
- {name: share, persistentVolumeClaim: {claimName: share}}
";

#[test]
fn what_cannot_be_had_is_named() {
    let poor = Capabilities {
        qemu: (7, 2),
        ..Capabilities::default()
    };
    let plan = planned(ALL_WISHES, &poor);
    expect![[r#"
        Ignored domain.clock.timer.hyperv: Windows' clock needs KVM, which this node does not have
        Ignored domain.clock.timer.pit.tickPolicy: late ticks of the interval timer are delayed
        Replaced domain.clock.timezone: the guest's clock runs in UTC; set the zone Europe/Vienna in the guest
        Ignored domain.cpu.dedicatedCpuPlacement: this node cannot give processors to one machine alone; its processors are shared
        Ignored domain.cpu.isolateEmulatorThread: no thread of a machine has a processor of this node for itself
        Replaced domain.cpu.model: guests are emulated here; they get every feature that can be emulated
        Ignored domain.cpu.numa.guestMappingPassthrough: the guest sees one node of memory and processors
        Ignored domain.cpu.realtime: real-time scheduling is not available on this node
        Ignored domain.devices.autoattachVSOCK: sockets between host and guest are not available
        Replaced domain.devices.disks[0].lun: volumes are files here; the guest gets a SCSI disk that takes no commands of its own
        Replaced domain.devices.disks[1].disk.pciAddress: 0000:81:01.0 cannot be given; buses are counted from 01, with one device each
        Replaced domain.devices.disks[1].io: the host's asynchronous interface goes past its memory, which cache writeback does not
        Blocks domain.devices.disks[2].disk.bus: a SATA disk cannot be read-only; use bus virtio or scsi, or a cdrom
        Blocks domain.devices.filesystems[0]: directories are not shared with guests; attach volume share as a disk
        Blocks domain.devices.gpus[0]: this node has no device nvidia.com/A100
        Blocks domain.devices.hostDevices[0]: this node has no device vendor.com/card
        Replaced domain.devices.interfaces[0].model: QEMU 7.2 is driven without igb; e1000e stands in for it
        Blocks domain.devices.interfaces[1].sriov: this node has no network card that can be divided
        Replaced domain.devices.interfaces[2].passt: the built-in switch connects the card in its place
        Replaced domain.devices.interfaces[3].binding: the built-in switch connects the card in place of the extension "macvtap"
        Ignored domain.devices.networkInterfaceMultiqueue: network cards have one queue each
        Blocks domain.devices.tpm: this node cannot emulate TPMs; install swtpm on it
        Ignored domain.features.hyperv: Windows' interfaces need KVM, which this node does not have
        Ignored domain.features.kvm.hidden: there is no KVM to hide
        Ignored domain.firmware.acpi.slicNameRef: licence tables are not passed to guests
        Blocks domain.firmware.bootloader.efi: this node has no UEFI firmware; install OVMF on it
        Replaced domain.ioThreads.supplementalPoolThreadCount: a disk is served by one thread of the pool, not by all
        Blocks domain.launchSecurity: memory encryption is not available on this node
        Replaced domain.machine.type: pc-q35-rhel9.4.0 belongs to another build of QEMU; q35 stands in for it
        Replaced domain.memory.hugepages: this node keeps no pages of 2Mi ready; ordinary memory stands in for them
        Ignored domain.memory.maxGuest: Memory hotplug is not compatible with realtime VMs
        Replaced networks[default].pod.vmNetworkCIDR: the guest gets the machine's own address, which is not out of 10.9.0.0/24
        Replaced schedulerName: there is no scheduler "mine"; the built-in one places the machine
    "#]].assert_eq(&told(&plan));
    let condition = unsupported::condition(&plan.unsupported);
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "CannotStart")
    );
    let plan = planned(ALL_WISHES, &able());
    expect![[r#"
        Ignored domain.clock.timer.pit.tickPolicy: late ticks of the interval timer are delayed
        Replaced domain.clock.timezone: the guest's clock runs in UTC; set the zone Europe/Vienna in the guest
        Ignored domain.cpu.numa.guestMappingPassthrough: the guest sees one node of memory and processors
        Ignored domain.cpu.realtime: real-time scheduling is not available on this node
        Ignored domain.devices.autoattachVSOCK: sockets between host and guest are not available
        Replaced domain.devices.disks[0].lun: volumes are files here; the guest gets a SCSI disk that takes no commands of its own
        Replaced domain.devices.disks[1].disk.pciAddress: 0000:81:01.0 cannot be given; buses are counted from 01, with one device each
        Replaced domain.devices.disks[1].io: the host's asynchronous interface goes past its memory, which cache writeback does not
        Blocks domain.devices.disks[2].disk.bus: a SATA disk cannot be read-only; use bus virtio or scsi, or a cdrom
        Blocks domain.devices.filesystems[0]: directories are not shared with guests; attach volume share as a disk
        Blocks domain.devices.gpus[0]: this node has no device nvidia.com/A100
        Blocks domain.devices.hostDevices[0]: this node has no device vendor.com/card
        Replaced domain.devices.interfaces[0].model: QEMU 7.2 is driven without igb; e1000e stands in for it
        Blocks domain.devices.interfaces[1].sriov: this node has no network card that can be divided
        Replaced domain.devices.interfaces[2].passt: the built-in switch connects the card in its place
        Replaced domain.devices.interfaces[3].binding: the built-in switch connects the card in place of the extension "macvtap"
        Ignored domain.devices.networkInterfaceMultiqueue: network cards have one queue each
        Ignored domain.features.hyperv.evmcs: not available on this node
        Ignored domain.firmware.acpi.slicNameRef: licence tables are not passed to guests
        Replaced domain.ioThreads.supplementalPoolThreadCount: a disk is served by one thread of the pool, not by all
        Blocks domain.launchSecurity: memory encryption is not available on this node
        Replaced domain.machine.type: pc-q35-rhel9.4.0 belongs to another build of QEMU; q35 stands in for it
        Ignored domain.memory.maxGuest: Memory hotplug is not compatible with realtime VMs
        Replaced networks[default].pod.vmNetworkCIDR: the guest gets the machine's own address, which is not out of 10.9.0.0/24
        Replaced schedulerName: there is no scheduler "mine"; the built-in one places the machine
    "#]].assert_eq(&told(&plan));
}

#[test]
fn a_plain_machine_has_no_wish_left() {
    let spec = "
domain:
  memory: {guest: 512Mi}
  devices: {disks: [{name: root, disk: {bus: virtio}}]}
volumes: [{name: root, containerDisk: {image: registry/tiny}}]
";
    let plan = planned(spec, &Capabilities::default());
    assert_eq!(plan.unsupported, []);
    assert_eq!(unsupported::condition(&plan.unsupported).status, "True");
    assert_eq!(plan.hostname, "web");
    assert_eq!(plan.memory.guest, 512 << 20);
    assert_eq!(plan.cards[0].binding, CardBinding::Bridge);
    assert_eq!(plan.cards[0].network, CardNetwork::Pod);
    assert_eq!(plan.grace_seconds, 30);
}

#[test]
fn sizes_are_whole_mebibytes() {
    for (guest, expected) in [
        ("1G", 954 << 20),
        ("128Mi", 128 << 20),
        ("1", 1 << 20),
        ("1048577", 2 << 20),
    ] {
        let plan = planned(
            &format!("domain: {{memory: {{guest: {guest}}}, devices: {{}}}}"),
            &able(),
        );
        assert_eq!(plan.memory.guest, expected, "{guest}");
    }
}

fn boot_order(disks: &str, volumes: &str) -> Vec<(String, Option<u32>)> {
    let spec = format!("domain: {{memory: {{guest: 1Gi}}, devices: {{disks: {disks}}}}}\nvolumes: {volumes}");
    let plan = planned(&spec, &able());
    plan.disks
        .into_iter()
        .map(|it| (it.name, it.boot_index))
        .collect()
}

#[test]
fn what_can_start_is_tried_in_order() {
    let volumes = "[{name: seed, cloudInitNoCloud: {userData: a}}, {name: cd, containerDisk: {image: i}}, {name: a, dataVolume: {name: a}}, {name: b, emptyDisk: {capacity: 1Gi}}]";
    let disks = "[{name: seed, disk: {bus: virtio}}, {name: cd, cdrom: {}}, {name: a, disk: {bus: virtio}}, {name: b, disk: {bus: virtio}}]";
    let found = boot_order(disks, volumes);
    let expected = [("seed", None), ("cd", Some(2)), ("a", Some(1)), ("b", None)];
    assert_eq!(found, expected.map(|(name, order)| (name.to_owned(), order)));
    // Who gives an order gives all of it.
    let disks = "[{name: seed, disk: {bus: virtio}}, {name: cd, cdrom: {}, bootOrder: 1}, {name: a, disk: {bus: virtio}}, {name: b, disk: {bus: virtio}}]";
    let found: Vec<Option<u32>> = boot_order(disks, volumes).into_iter().map(|(_, it)| it).collect();
    assert_eq!(found, [None, Some(1), None, None]);
}

#[test]
fn threads_by_policy() {
    let disks = "[{name: a, disk: {bus: virtio}}, {name: b, disk: {bus: virtio}, dedicatedIOThread: true}, {name: c, disk: {bus: virtio}}, {name: d, disk: {bus: sata}}]";
    let volumes = "[{name: a, emptyDisk: {capacity: 1Gi}}, {name: b, emptyDisk: {capacity: 1Gi}}, {name: c, emptyDisk: {capacity: 1Gi}}, {name: d, emptyDisk: {capacity: 1Gi}}]";
    for (policy, more, threads, expected) in [
        ("", "", 2, [Some(0), Some(1), Some(0), None]),
        (
            "ioThreadsPolicy: shared,",
            "",
            2,
            [Some(0), Some(1), Some(0), None],
        ),
        (
            "ioThreadsPolicy: auto,",
            "resources: {requests: {cpu: 1}},",
            2,
            [Some(0), Some(1), Some(0), None],
        ),
        (
            "ioThreadsPolicy: auto,",
            "resources: {requests: {cpu: 8}},",
            4,
            [Some(0), Some(3), Some(1), None],
        ),
    ] {
        let spec = format!(
            "domain: {{{policy} {more} memory: {{guest: 1Gi}}, devices: {{disks: {disks}}}}}\nvolumes: {volumes}"
        );
        let plan = planned(&spec, &able());
        let found: Vec<Option<u32>> = plan.disks.iter().map(|it| it.io_thread).collect();
        assert_eq!(
            (plan.io_threads, found),
            (threads, expected.to_vec()),
            "{policy} {more}"
        );
    }
}

#[test]
fn limits_come_from_an_annotation() {
    let spec = "domain: {memory: {guest: 1Gi}, devices: {disks: [{name: a, disk: {bus: virtio}}]}}\nvolumes: [{name: a, emptyDisk: {capacity: 1Gi}}]";
    let mut vmi = instance(spec);
    let with = |vmi: &VirtualMachineInstance| plan(vmi, Origin::default(), &able(), &Settings::default());
    vmi.metadata
        .annotations
        .insert(DISK_LIMITS.to_owned(), "{\"a\": {\"iops\": 500}}".to_owned());
    assert_eq!(with(&vmi).disks[0].limits.iops, 500);
    vmi.metadata
        .annotations
        .insert(DISK_LIMITS.to_owned(), "{\"a\": {\"iop\": 500}}".to_owned());
    let refused = with(&vmi);
    assert!(!refused.disks[0].limits.any());
    assert_eq!(refused.unsupported[0].effect, Effect::Ignored);
}

#[test]
fn hosts_have_names_that_hosts_can_have() {
    for (name, expected) in [
        ("web", "web"),
        ("web.example", "web"),
        (&*format!("{}-rest", "a".repeat(62)), &*"a".repeat(62)),
    ] {
        let mut vmi = instance("domain: {memory: {guest: 1Gi}, devices: {}}");
        vmi.metadata.name = name.to_owned();
        assert_eq!(hostname(&vmi), expected);
    }
}
