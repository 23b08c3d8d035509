//! Arguments of QEMU for some machines, word for word, and what QEMU says to them where there is one ([`real`]).

mod real;

use expect_test::{Expect, expect};

use super::*;
use crate::plan::{Capabilities, Origin, plan};
use crate::settings::Settings;
use crate::unsupported::Unsupported;

fn host(plan: &MachinePlan, directory: &str) -> Host {
    let backing = |name: &str| Backing {
        file: format!("{directory}/disks/{name}"),
        format: if name.contains("seed") {
            Format::Raw
        } else {
            Format::Qcow2
        },
        block_device: false,
        direct: !name.contains("seed"),
    };
    Host {
        sockets: Sockets {
            serial: "serial.sock".to_owned(),
            agent: "agent.sock".to_owned(),
            vnc: "vnc.sock".to_owned(),
            tpm: "tpm.sock".to_owned(),
        },
        accelerator: Accelerator::Tcg,
        taps: BTreeMap::new(),
        backings: plan
            .disks
            .iter()
            .map(|it| (it.name.clone(), backing(&it.name)))
            .collect(),
        firmware: Some(FirmwareFiles {
            code: "/usr/share/OVMF/OVMF_CODE_4M.fd".to_owned(),
            variables: format!("{directory}/vars.fd"),
        }),
        kernel: None,
        now: "2026-01-01T12:00:00Z".parse().unwrap(),
        incoming: false,
        stopped: false,
    }
}

fn planned(spec: &str) -> MachinePlan {
    let capable = Capabilities {
        tpm: true,
        uefi: true,
        secure_boot: true,
        qemu: (7, 2),
        ..Capabilities::default()
    };
    let vmi = crate::plan::tests::instance(spec);
    let origin = Origin {
        workspace: "root",
        mac_attempt: 0,
    };
    plan(&vmi, origin, &capable, &Settings::default())
}

fn check(spec: &str, expected: &Expect) {
    let plan = planned(spec);
    // How long state is kept makes no difference to QEMU.
    let is_missing = |it: &&Unsupported| !it.field.ends_with(".persistent");
    assert_eq!(plan.unsupported.iter().find(is_missing), None);
    let layout = Layout::of(&plan).unwrap();
    let arguments = argv(&plan, &host(&plan, "/run/vm"), &layout).unwrap();
    let mut shown = String::new();
    for argument in arguments {
        let start = argument.starts_with('-') && !argument.starts_with("-{");
        shown += if start && !shown.is_empty() {
            "\n"
        } else if shown.is_empty() {
            ""
        } else {
            " "
        };
        shown += &argument;
    }
    expected.assert_eq(&format!("{shown}\n"));
}

const PLAIN: &str = "
domain:
  cpu: {cores: 2}
  memory: {guest: 512Mi}
  devices:
    disks: [{name: root, disk: {bus: virtio}}, {name: seed, disk: {bus: virtio}}]
    interfaces: [{name: default, masquerade: {}}]
    rng: {}
networks: [{name: default, pod: {}}]
volumes:
- {name: root, containerDisk: {image: registry/tiny}}
- {name: seed, cloudInitNoCloud: {userData: '#cloud-config'}}
";

const RICH: &str = "
startStrategy: Paused
domain:
  cpu: {sockets: 1, maxSockets: 4, threads: 2, model: Nehalem, features: [{name: aes, policy: require}, {name: vmx, policy: disable}]}
  memory: {guest: 1Gi, maxGuest: 2Gi}
  machine: {type: pc-q35-7.2}
  features: {smm: {}}
  firmware: {uuid: 5d307ca9-b3ef-428c-8861-06e72d69f223, serial: S-1, bootloader: {efi: {persistent: true}}}
  chassis: {manufacturer: 'Somebody, Inc.', asset: A-1}
  clock: {utc: {offsetSeconds: 3600}, timer: {hpet: {present: false}, rtc: {tickPolicy: catchup}}}
  ioThreadsPolicy: shared
  devices:
    blockMultiQueue: true
    tpm: {persistent: true}
    sound: {name: audio, model: ich9}
    watchdog: {name: dog, i6300esb: {action: poweroff}}
    inputs: [{name: tablet, type: tablet, bus: usb}, {name: touch, type: tablet, bus: virtio}]
    disks:
    - {name: root, disk: {bus: virtio}, bootOrder: 2, serial: R00T, cache: none, io: native, errorPolicy: enospace, dedicatedIOThread: true}
    - {name: data, disk: {bus: scsi}, cache: writethrough, shareable: true, blockSize: {custom: {logical: 512, physical: 4096}}}
    - {name: cd, cdrom: {bus: sata}, bootOrder: 1}
    - {name: sata-disk, disk: {bus: sata}}
    - {name: stick, disk: {bus: usb}}
    - {name: a-name-that-is-far-longer-than-what-block-nodes-can-have, disk: {bus: virtio, readonly: true}}
    interfaces:
    - {name: default, masquerade: {}, model: e1000e, macAddress: 'DE-AD-00-00-BE-EF', bootOrder: 3}
    - {name: lan, bridge: {}, model: rtl8139, acpiIndex: 101}
    - {name: third, bridge: {}, pciAddress: '0000:09:00.0'}
networks:
- {name: default, pod: {}}
- {name: lan, multus: {networkName: lan}}
- {name: third, multus: {networkName: other/lan}}
volumes:
- {name: root, dataVolume: {name: root}}
- {name: data, persistentVolumeClaim: {claimName: data}}
- {name: cd, containerDisk: {image: registry/installer}}
- {name: sata-disk, emptyDisk: {capacity: 1Gi}}
- {name: stick, ephemeral: {persistentVolumeClaim: {claimName: tools}}}
- {name: a-name-that-is-far-longer-than-what-block-nodes-can-have, secret: {secretName: s}}
";

#[test]
fn a_plain_machine() {
    check(
        PLAIN,
        &expect![[r#"
        -name guest=user-vms_web,debug-threads=on
        -uuid d32ff544-f682-571b-8677-3762f07ab8a4
        -smbios type=1,manufacturer=KubeVirt,product=None,uuid=d32ff544-f682-571b-8677-3762f07ab8a4,family=KubeVirt
        -machine q35,usb=off,vmport=off,dump-guest-core=off,acpi=on,smm=off,memory-backend=pc.ram
        -global ICH9-LPC.disable_s3=1
        -global ICH9-LPC.disable_s4=1
        -accel tcg,thread=multi,tb-size=128
        -cpu max
        -smp 2,maxcpus=2,sockets=1,cores=2,threads=1
        -m size=524288k
        -object {"qom-type":"memory-backend-ram","id":"pc.ram","size":536870912}
        -rtc base=utc
        -boot menu=off,strict=on
        -device {"driver":"pcie-root-port","id":"rp1","bus":"pcie.0","port":16,"chassis":1,"addr":"0x2.0x0","multifunction":true}
        -device {"driver":"pcie-root-port","id":"rp2","bus":"pcie.0","port":17,"chassis":2,"addr":"0x2.0x1"}
        -device {"driver":"pcie-root-port","id":"rp3","bus":"pcie.0","port":18,"chassis":3,"addr":"0x2.0x2"}
        -device {"driver":"pcie-root-port","id":"rp4","bus":"pcie.0","port":19,"chassis":4,"addr":"0x2.0x3"}
        -device {"driver":"pcie-root-port","id":"rp5","bus":"pcie.0","port":20,"chassis":5,"addr":"0x2.0x4"}
        -device {"driver":"pcie-root-port","id":"rp6","bus":"pcie.0","port":21,"chassis":6,"addr":"0x2.0x5"}
        -device {"driver":"pcie-root-port","id":"rp7","bus":"pcie.0","port":22,"chassis":7,"addr":"0x2.0x6"}
        -device {"driver":"pcie-root-port","id":"rp8","bus":"pcie.0","port":23,"chassis":8,"addr":"0x2.0x7"}
        -device {"driver":"pcie-root-port","id":"rp9","bus":"pcie.0","port":24,"chassis":9,"addr":"0x3.0x0","multifunction":true}
        -device {"driver":"pcie-root-port","id":"rp10","bus":"pcie.0","port":25,"chassis":10,"addr":"0x3.0x1"}
        -device {"driver":"pcie-root-port","id":"rp11","bus":"pcie.0","port":26,"chassis":11,"addr":"0x3.0x2"}
        -device {"driver":"pcie-root-port","id":"rp12","bus":"pcie.0","port":27,"chassis":12,"addr":"0x3.0x3"}
        -device {"driver":"pcie-root-port","id":"rp13","bus":"pcie.0","port":28,"chassis":13,"addr":"0x3.0x4"}
        -device {"driver":"virtio-scsi-pci","id":"scsi0","bus":"rp2","addr":"0x0"}
        -device {"driver":"virtio-serial-pci","id":"virtio-serial0","bus":"rp3","addr":"0x0"}
        -blockdev {"driver":"file","node-name":"f-root","filename":"/run/vm/disks/root","aio":"threads","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -blockdev {"driver":"qcow2","node-name":"d-root","file":"f-root","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"virtio-blk-pci","id":"ua-root","drive":"d-root","bus":"rp4","addr":"0x0","werror":"stop","rerror":"stop","write-cache":"on","bootindex":1}
        -blockdev {"driver":"file","node-name":"f-seed","filename":"/run/vm/disks/seed","aio":"threads","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap","locking":"off"}
        -blockdev {"driver":"raw","node-name":"d-seed","file":"f-seed","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap"}
        -device {"driver":"virtio-blk-pci","id":"ua-seed","drive":"d-seed","bus":"rp5","addr":"0x0","werror":"stop","rerror":"stop"}
        -netdev {"type":"stream","id":"net-default","server":true,"addr":{"type":"unix","path":"live/net-default.sock"}}
        -device {"driver":"virtio-net-pci","id":"card-default","netdev":"net-default","mac":"02:86:67:83:56:69","bus":"rp1","addr":"0x0","romfile":""}
        -chardev socket,id=charserial0,path=serial.sock,server=on,wait=off
        -device {"driver":"isa-serial","id":"serial0","chardev":"charserial0","index":0}
        -chardev socket,id=charagent0,path=agent.sock,server=on,wait=off
        -device {"driver":"virtserialport","id":"agent0","bus":"virtio-serial0.0","nr":1,"chardev":"charagent0","name":"org.qemu.guest_agent.0"}
        -display none
        -vnc unix:vnc.sock
        -device {"driver":"VGA","id":"video0","vgamem_mb":16,"bus":"pcie.0","addr":"0x1"}
        -object {"qom-type":"rng-random","id":"objrng0","filename":"/dev/urandom"}
        -device {"driver":"virtio-rng-pci","id":"rng0","bus":"rp6","addr":"0x0","rng":"objrng0"}
        -device {"driver":"virtio-balloon-pci","id":"balloon0","bus":"rp7","addr":"0x0","free-page-reporting":true}
    "#]],
    );
}

#[test]
fn a_rich_machine() {
    check(
        RICH,
        &expect![[r#"
        -name guest=user-vms_web,debug-threads=on
        -uuid 5d307ca9-b3ef-428c-8861-06e72d69f223
        -smbios type=1,manufacturer=KubeVirt,product=None,uuid=5d307ca9-b3ef-428c-8861-06e72d69f223,family=KubeVirt,serial=S-1
        -smbios type=3,manufacturer=Somebody,, Inc.,asset=A-1
        -blockdev {"driver":"file","node-name":"pflash0-storage","filename":"/usr/share/OVMF/OVMF_CODE_4M.fd","read-only":true}
        -blockdev {"driver":"raw","node-name":"pflash0","file":"pflash0-storage","read-only":true}
        -blockdev {"driver":"file","node-name":"pflash1-storage","filename":"/run/vm/vars.fd","read-only":false}
        -blockdev {"driver":"raw","node-name":"pflash1","file":"pflash1-storage","read-only":false}
        -global driver=cfi.pflash01,property=secure,value=on
        -machine pc-q35-7.2,usb=off,vmport=off,dump-guest-core=off,acpi=on,smm=on,memory-backend=pc.ram,hpet=off,pflash0=pflash0,pflash1=pflash1
        -global ICH9-LPC.disable_s3=1
        -global ICH9-LPC.disable_s4=1
        -accel tcg,thread=multi,tb-size=128
        -cpu Nehalem,aes=on,vmx=off
        -smp 2,maxcpus=8,sockets=4,cores=1,threads=2
        -m size=1048576k,maxmem=2097152k
        -object {"qom-type":"memory-backend-ram","id":"pc.ram","size":1073741824}
        -object {"qom-type":"memory-backend-ram","id":"vmem0","size":1073741824,"reserve":false}
        -rtc base=2026-01-01T13:00:00,driftfix=slew
        -boot menu=off,strict=on
        -device {"driver":"pcie-root-port","id":"rp1","bus":"pcie.0","port":16,"chassis":1,"addr":"0x2.0x0","multifunction":true}
        -device {"driver":"pcie-root-port","id":"rp2","bus":"pcie.0","port":17,"chassis":2,"addr":"0x2.0x1"}
        -device {"driver":"pcie-root-port","id":"rp3","bus":"pcie.0","port":18,"chassis":3,"addr":"0x2.0x2"}
        -device {"driver":"pcie-root-port","id":"rp4","bus":"pcie.0","port":19,"chassis":4,"addr":"0x2.0x3"}
        -device {"driver":"pcie-root-port","id":"rp5","bus":"pcie.0","port":20,"chassis":5,"addr":"0x2.0x4"}
        -device {"driver":"pcie-root-port","id":"rp6","bus":"pcie.0","port":21,"chassis":6,"addr":"0x2.0x5"}
        -device {"driver":"pcie-root-port","id":"rp7","bus":"pcie.0","port":22,"chassis":7,"addr":"0x2.0x6"}
        -device {"driver":"pcie-root-port","id":"rp8","bus":"pcie.0","port":23,"chassis":8,"addr":"0x2.0x7"}
        -device {"driver":"pcie-root-port","id":"rp9","bus":"pcie.0","port":24,"chassis":9,"addr":"0x3.0x0","multifunction":true}
        -device {"driver":"pcie-root-port","id":"rp10","bus":"pcie.0","port":25,"chassis":10,"addr":"0x3.0x1"}
        -device {"driver":"pcie-root-port","id":"rp11","bus":"pcie.0","port":26,"chassis":11,"addr":"0x3.0x2"}
        -device {"driver":"pcie-root-port","id":"rp12","bus":"pcie.0","port":27,"chassis":12,"addr":"0x3.0x3"}
        -device {"driver":"pcie-root-port","id":"rp13","bus":"pcie.0","port":28,"chassis":13,"addr":"0x3.0x4"}
        -device {"driver":"pcie-root-port","id":"rp14","bus":"pcie.0","port":29,"chassis":14,"addr":"0x3.0x5"}
        -device {"driver":"pcie-root-port","id":"rp15","bus":"pcie.0","port":30,"chassis":15,"addr":"0x3.0x6"}
        -device {"driver":"pcie-root-port","id":"rp16","bus":"pcie.0","port":31,"chassis":16,"addr":"0x3.0x7"}
        -device {"driver":"qemu-xhci","id":"usb","bus":"rp2","addr":"0x0","p2":15,"p3":15}
        -device {"driver":"virtio-scsi-pci","id":"scsi0","bus":"rp3","addr":"0x0"}
        -device {"driver":"virtio-serial-pci","id":"virtio-serial0","bus":"rp4","addr":"0x0"}
        -object {"qom-type":"iothread","id":"iothread0"}
        -object {"qom-type":"iothread","id":"iothread1"}
        -blockdev {"driver":"file","node-name":"f-root","filename":"/run/vm/disks/root","aio":"native","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -blockdev {"driver":"qcow2","node-name":"d-root","file":"f-root","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"virtio-blk-pci","id":"ua-root","drive":"d-root","bus":"rp5","addr":"0x0","werror":"enospc","rerror":"report","write-cache":"on","bootindex":2,"serial":"R00T","iothread":"iothread1","num-queues":2}
        -blockdev {"driver":"file","node-name":"f-data","filename":"/run/vm/disks/data","aio":"threads","cache":{"direct":false,"no-flush":false},"read-only":false,"discard":"unmap","locking":"off"}
        -blockdev {"driver":"qcow2","node-name":"d-data","file":"f-data","cache":{"direct":false,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"scsi-hd","id":"ua-data","drive":"d-data","bus":"scsi0.0","channel":0,"scsi-id":0,"lun":0,"device_id":"drive-data","werror":"stop","rerror":"stop","write-cache":"off","share-rw":true,"logical_block_size":512,"physical_block_size":4096}
        -blockdev {"driver":"file","node-name":"f-cd","filename":"/run/vm/disks/cd","aio":"threads","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap","locking":"off"}
        -blockdev {"driver":"qcow2","node-name":"d-cd","file":"f-cd","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap"}
        -device {"driver":"ide-cd","id":"ua-cd","drive":"d-cd","bus":"ide.0","werror":"stop","rerror":"stop","bootindex":1}
        -blockdev {"driver":"file","node-name":"f-sata-disk","filename":"/run/vm/disks/sata-disk","aio":"threads","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -blockdev {"driver":"qcow2","node-name":"d-sata-disk","file":"f-sata-disk","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"ide-hd","id":"ua-sata-disk","drive":"d-sata-disk","bus":"ide.1","werror":"stop","rerror":"stop","write-cache":"on"}
        -blockdev {"driver":"file","node-name":"f-stick","filename":"/run/vm/disks/stick","aio":"threads","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -blockdev {"driver":"qcow2","node-name":"d-stick","file":"f-stick","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"usb-storage","id":"ua-stick","drive":"d-stick","bus":"usb.0","port":"1","removable":false,"werror":"stop","rerror":"stop","write-cache":"on"}
        -blockdev {"driver":"file","node-name":"f-a-name-that-is-far-3320997716","filename":"/run/vm/disks/a-name-that-is-far-longer-than-what-block-nodes-can-have","aio":"threads","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap","locking":"off"}
        -blockdev {"driver":"qcow2","node-name":"d-a-name-that-is-far-3320997716","file":"f-a-name-that-is-far-3320997716","cache":{"direct":false,"no-flush":false},"read-only":true,"discard":"unmap"}
        -device {"driver":"virtio-blk-pci","id":"ua-a-name-that-is-far-longer-than-what-block-nodes-can-have","drive":"d-a-name-that-is-far-3320997716","bus":"rp6","addr":"0x0","werror":"stop","rerror":"stop","iothread":"iothread0","num-queues":2}
        -netdev {"type":"stream","id":"net-default","server":true,"addr":{"type":"unix","path":"live/net-default.sock"}}
        -device {"driver":"e1000e","id":"card-default","netdev":"net-default","mac":"de:ad:00:00:be:ef","bus":"rp1","addr":"0x0","bootindex":3}
        -netdev {"type":"stream","id":"net-lan","server":true,"addr":{"type":"unix","path":"live/net-lan.sock"}}
        -device {"driver":"rtl8139","id":"card-lan","netdev":"net-lan","mac":"02:dd:dd:d4:3f:ff","bus":"pcie.0","addr":"0x10","romfile":"","acpi-index":101}
        -netdev {"type":"stream","id":"net-third","server":true,"addr":{"type":"unix","path":"live/net-third.sock"}}
        -device {"driver":"virtio-net-pci","id":"card-third","netdev":"net-third","mac":"02:9c:3f:fc:fe:5b","bus":"rp9","addr":"0x0","romfile":""}
        -chardev socket,id=charserial0,path=serial.sock,server=on,wait=off
        -device {"driver":"isa-serial","id":"serial0","chardev":"charserial0","index":0}
        -chardev socket,id=charagent0,path=agent.sock,server=on,wait=off
        -device {"driver":"virtserialport","id":"agent0","bus":"virtio-serial0.0","nr":1,"chardev":"charagent0","name":"org.qemu.guest_agent.0"}
        -display none
        -vnc unix:vnc.sock
        -device {"driver":"VGA","id":"video0","vgamem_mb":16,"bus":"pcie.0","addr":"0x1"}
        -device {"driver":"usb-tablet","id":"input0","bus":"usb.0","port":"2"}
        -device {"driver":"virtio-tablet-pci","id":"input1","bus":"rp7","addr":"0x0"}
        -chardev socket,id=chartpm,path=tpm.sock
        -tpmdev emulator,id=tpm-tpm0,chardev=chartpm
        -device {"driver":"tpm-crb","id":"tpm0","tpmdev":"tpm-tpm0"}
        -device {"driver":"virtio-balloon-pci","id":"balloon0","bus":"rp8","addr":"0x0","free-page-reporting":true}
        -device {"driver":"virtio-mem-pci","id":"memory1","bus":"rp10","addr":"0x0","memdev":"vmem0","block-size":2097152,"requested-size":0}
        -device {"driver":"i6300esb","id":"watchdog0","bus":"pcie.0","addr":"0x11"}
        -action watchdog=poweroff
        -audiodev none,id=audio0
        -device {"driver":"ich9-intel-hda","id":"sound0","bus":"pcie.0","addr":"0x12"}
        -device {"driver":"hda-duplex","id":"sound0-codec0","bus":"sound0.0","cad":0,"audiodev":"audio0"}
        -S
    "#]],
    );
}

#[test]
fn a_bare_machine() {
    let spec = "
domain:
  memory: {guest: 128Mi}
  features: {acpi: {enabled: false}}
  firmware: {bootloader: {bios: {useSerial: true}}}
  devices: {disableHotplug: true, useVirtioTransitional: true, autoattachPodInterface: false, autoattachGraphicsDevice: false, autoattachMemBalloon: false, logSerialConsole: false, disks: [{name: root, disk: {bus: virtio}}]}
volumes: [{name: root, emptyDisk: {capacity: 1Gi}}]
";
    check(
        spec,
        &expect![[r#"
        -name guest=user-vms_web,debug-threads=on
        -uuid d32ff544-f682-571b-8677-3762f07ab8a4
        -smbios type=1,manufacturer=KubeVirt,product=None,uuid=d32ff544-f682-571b-8677-3762f07ab8a4,family=KubeVirt
        -machine q35,usb=off,vmport=off,dump-guest-core=off,acpi=off,smm=off,memory-backend=pc.ram,graphics=off
        -global ICH9-LPC.disable_s3=1
        -global ICH9-LPC.disable_s4=1
        -accel tcg,thread=multi,tb-size=128
        -cpu max
        -smp 1,maxcpus=4,sockets=4,cores=1,threads=1
        -m size=131072k
        -object {"qom-type":"memory-backend-ram","id":"pc.ram","size":134217728}
        -rtc base=utc
        -boot menu=off,strict=on
        -device {"driver":"virtio-serial-pci-transitional","id":"virtio-serial0","bus":"pcie.0","addr":"0x10"}
        -blockdev {"driver":"file","node-name":"f-root","filename":"/run/vm/disks/root","aio":"threads","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -blockdev {"driver":"qcow2","node-name":"d-root","file":"f-root","cache":{"direct":true,"no-flush":false},"read-only":false,"discard":"unmap"}
        -device {"driver":"virtio-blk-pci-transitional","id":"ua-root","drive":"d-root","bus":"pcie.0","addr":"0x11","werror":"stop","rerror":"stop","write-cache":"on"}
        -chardev socket,id=charserial0,path=serial.sock,server=on,wait=off
        -device {"driver":"isa-serial","id":"serial0","chardev":"charserial0","index":0}
        -chardev socket,id=charagent0,path=agent.sock,server=on,wait=off
        -device {"driver":"virtserialport","id":"agent0","bus":"virtio-serial0.0","nr":1,"chardev":"charagent0","name":"org.qemu.guest_agent.0"}
        -display none
    "#]],
    );
}

#[test]
fn limits_are_a_node_of_their_own() {
    let mut plan = planned(PLAIN);
    plan.disks[0].limits.iops = 500;
    plan.disks[0].limits.write_bytes_per_second = 10 << 20;
    let layout = Layout::of(&plan).unwrap();
    let disk = &plan.disks[0];
    let backing = &host(&plan, "/run/vm").backings["root"];
    let shown = format!(
        "{}\n{}\n{}\n",
        disks::throttle_group(disk).unwrap(),
        disk_nodes(disk, backing).last().unwrap(),
        disk_device(&plan, disk, &layout).unwrap()
    );
    expect![[r#"
        {"qom-type":"throttle-group","id":"limits-root","x-iops-total":500,"x-bps-write":10485760}
        {"driver":"throttle","node-name":"t-root","throttle-group":"limits-root","file":"d-root"}
        {"driver":"virtio-blk-pci","id":"ua-root","drive":"t-root","bus":"rp4","addr":"0x0","werror":"stop","rerror":"stop","write-cache":"on","bootindex":1}
    "#]].assert_eq(&shown);
}

#[test]
fn names_of_nodes_fit_and_differ() {
    let long = "a-name-that-is-far-longer-than-what-block-nodes-can-have";
    assert_eq!(node_name("d", "root"), "d-root");
    assert_eq!(node_name("d", long).len(), 31);
    assert_ne!(node_name("d", long), node_name("d", &format!("{long}-2")));
    assert_ne!(node_name("d", long), node_name("f", long));
}

#[test]
fn devices_keep_their_places() {
    let first = planned(PLAIN);
    let mut layout = Layout::of(&first).unwrap();
    let before = layout.clone();
    assert_eq!(layout.card("default"), Ok(Place::Port(0)));
    let more = PLAIN.replace(
        "[{name: default, masquerade: {}}]",
        "[{name: another, bridge: {}}, {name: default, masquerade: {}}]",
    );
    let more = more.replace(
        "[{name: default, pod: {}}]",
        "[{name: default, pod: {}}, {name: another, multus: {networkName: lan}}]",
    );
    let second = planned(&more);
    layout.extend(&second).unwrap();
    // The newcomer is listed first, but it was not there first.
    assert_eq!(layout.card("default"), Ok(Place::Port(0)));
    assert_eq!(layout.disk("root"), before.disk("root"));
    assert_eq!(layout.card("another"), Ok(Place::Port(7)));
    // And there was a port for it.
    assert_eq!(layout.ports(), before.ports());
    assert!(layout.fits_into(&before) && !before.fits_into(&Layout::default()));
    layout.extend(&first).unwrap();
    assert_eq!(layout, before);
    let kept: Layout = serde_json::from_value(serde_json::to_value(&layout).unwrap()).unwrap();
    assert_eq!(kept, layout);
}

#[test]
fn a_card_may_be_a_device_of_the_kernel_and_is_the_same_card() {
    let plan = planned(PLAIN);
    let layout = Layout::of(&plan).unwrap();
    let mut host = host(&plan, "/run/vm");
    let by_socket = argv(&plan, &host, &layout).unwrap();
    host.taps.insert("default".to_owned(), 100);
    let by_device = argv(&plan, &host, &layout).unwrap();
    let changed: Vec<_> = by_socket.iter().zip(&by_device).filter(|(a, b)| a != b).collect();
    let [(_, backend)] = changed.as_slice() else {
        panic!("{changed:?}");
    };
    assert_eq!(
        *backend,
        r#"{"type":"tap","id":"net-default","fd":"100","vhost":false}"#
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let mut plan = planned(PLAIN);
    let layout = Layout::of(&plan).unwrap();
    let mut host = host(&plan, "/run/vm");
    host.backings.remove("seed");
    let error = argv(&plan, &host, &layout).unwrap_err().to_string();
    assert_eq!(
        error,
        "disk \"seed\" of user-vms/web has no file on this node; its volume must be prepared first"
    );
    let disk = plan.disks[0].clone();
    plan.disks = (0..120)
        .map(|it| crate::machine::DiskPlan {
            name: format!("d{it}"),
            ..disk.clone()
        })
        .collect();
    assert!(matches!(Layout::of(&plan), Err(LayoutError::NoPort { .. })));
    let error = disk_device(&plan, &disk, &Layout::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not part of the layout"), "{error}");
}

#[test]
fn no_name_becomes_an_option() {
    let spec = PLAIN.replace(
        "memory: {guest: 512Mi}",
        "memory: {guest: 512Mi}\n  chassis: {asset: 'a,sku=b'}",
    );
    let plan = planned(&spec);
    let layout = Layout::of(&plan).unwrap();
    let mut host = host(&plan, "/run/vm");
    host.sockets.agent = "a,server=off".to_owned();
    host.backings.get_mut("root").unwrap().file = "/x\",\"driver\":\"host_device".to_owned();
    let arguments = argv(&plan, &host, &layout).unwrap();
    assert!(arguments.contains(&"type=3,asset=a,,sku=b".to_owned()));
    assert!(arguments.contains(&"socket,id=charagent0,path=a,,server=off,server=on,wait=off".to_owned()));
    let node = arguments.iter().find(|it| it.contains("f-root")).unwrap();
    let node: Value = serde_json::from_str(node).unwrap();
    assert_eq!(
        (&node["driver"], &node["filename"]),
        (&json!("file"), &json!("/x\",\"driver\":\"host_device"))
    );
}
