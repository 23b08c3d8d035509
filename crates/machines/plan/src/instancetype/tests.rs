//! Sizes and tastes, by examples.

use expect_test::{Expect, expect};
use fairway_text_yaml as yaml;
use serde_json::Value;

use super::*;
use crate::view;

fn object(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

fn check(size: &str, taste: &str, template: &str, expected: &Expect) {
    let read = |text: &str| (!text.is_empty()).then(|| object(text));
    let size: Option<InstancetypeSpec> = read(size).map(|it| serde_json::from_value(it).unwrap());
    let taste: Option<PreferenceSpec> = read(taste).map(|it| serde_json::from_value(it).unwrap());
    let mut template = object(template);
    let shown = match expand(&mut template, size.as_ref(), taste.as_ref()) {
        Ok(()) => {
            let spec: InstanceSpec = view::read("VirtualMachineInstance", &template["spec"]).unwrap();
            let required = match check_requirements(size.as_ref(), taste.as_ref(), &spec) {
                Ok(()) => String::new(),
                Err(error) => format!("{error} ({})\n", error.fields.join(", ")),
            };
            format!("{template}\n{required}")
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&shown);
}

const SMALL: &str = "{cpu: {guest: 4}, memory: {guest: 8Gi}}";

#[test]
fn a_size_gives_processors_and_memory() {
    check(
        SMALL,
        "",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
        {"spec":{"domain":{"devices":{},"cpu":{"sockets":4,"cores":1,"threads":1},"memory":{"guest":"8Gi"}}}}
    "#]],
    );
    check(
        "{cpu: {guest: 2, model: Haswell, dedicatedCPUPlacement: true, maxSockets: 8}, annotations: {a: b}, nodeSelector: {x: y}, \
         memory: {guest: 8Gi, overcommitPercent: 25, maxGuest: 16Gi, hugepages: {pageSize: 2Mi}}, ioThreadsPolicy: auto, \
         gpus: [{name: g, deviceName: d}]}",
        "",
        "{metadata: {annotations: {c: d}}, spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"metadata":{"annotations":{"c":"d","a":"b"}},"spec":{"domain":{"devices":{"gpus":[{"name":"g","deviceName":"d"}]},"cpu":{"model":"Haswell","dedicatedCpuPlacement":true,"maxSockets":8,"sockets":2,"cores":1,"threads":1},"memory":{"guest":"8Gi","hugepages":{"pageSize":"2Mi"},"maxGuest":"16Gi"},"resources":{"requests":{"memory":"6Gi"}},"ioThreadsPolicy":"auto"},"nodeSelector":{"x":true}}}
        "#]],
    );
}

#[test]
fn processors_spread_by_taste() {
    let spread = |taste: &str| {
        let taste: PreferenceSpec = serde_json::from_value(object(taste)).unwrap();
        Topology::preferred(Some(&taste)).of(12)
    };
    for (taste, expected) in [
        ("{}", [12, 1, 1]),
        ("{cpu: {preferredCPUTopology: preferSockets}}", [12, 1, 1]),
        ("{cpu: {preferredCPUTopology: cores}}", [1, 12, 1]),
        ("{cpu: {preferredCPUTopology: threads}}", [1, 1, 12]),
        ("{cpu: {preferredCPUTopology: any}}", [12, 1, 1]),
        ("{cpu: {preferredCPUTopology: spread}}", [6, 2, 1]),
        (
            "{cpu: {preferredCPUTopology: preferSpread}, preferSpreadSocketToCoreRatio: 3}",
            [4, 3, 1],
        ),
        (
            "{cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads}}}",
            [1, 6, 2],
        ),
        (
            "{cpu: {preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads, ratio: 3}}}",
            [2, 3, 2],
        ),
    ] {
        assert_eq!(spread(taste), expected, "{taste}");
    }
}

#[test]
fn who_says_the_same_is_in_conflict() {
    check(
        SMALL,
        "",
        "{metadata: {}, spec: {nodeSelector: {a: b}, domain: {cpu: {cores: 2, sockets: 1}, memory: {guest: 1Gi}, \
         resources: {requests: {cpu: 1}}, devices: {}}}}",
        &expect![[r#"
            VM field(s) spec.template.spec.domain.resources.requests.cpu, spec.template.spec.domain.cpu.sockets, spec.template.spec.domain.cpu.cores, spec.template.spec.domain.memory conflicts with selected instance type
        "#]],
    );
    check(
        "{cpu: {guest: 1, dedicatedCPUPlacement: true}, memory: {guest: 1Gi}, annotations: {a: b}}",
        "",
        "{metadata: {annotations: {a: c}}, spec: {domain: {cpu: {dedicatedCpuPlacement: true}, devices: {}, \
         resources: {limits: {memory: 1Gi}}}}}",
        &expect![[r#"
            VM field(s) spec.template.spec.domain.cpu.dedicatedCPUPlacement, spec.template.spec.domain.resources.limits.memory, annotations.a conflicts with selected instance type
        "#]],
    );
}

#[test]
fn a_taste_fills_in_what_nobody_said() {
    let taste = "
clock: {preferredClockOffset: {utc: {offsetSeconds: 0}}, preferredTimer: {hpet: {present: false}}}
cpu: {preferredCPUFeatures: [{name: vmx}, {name: aes}]}
devices:
  preferredDiskBus: virtio
  preferredCdromBus: sata
  preferredDiskDedicatedIoThread: true
  preferredInterfaceModel: virtio
  preferredInterfaceMasquerade: {}
  preferredAutoattachGraphicsDevice: false
  preferredAutoattachSerialConsole: true
  preferredInputBus: virtio
  preferredRng: {}
  preferredTPM: {persistent: true}
features: {preferredAcpi: {}, preferredSmm: {enabled: true}, preferredHyperv: {relaxed: {}, vapic: {}}}
firmware: {preferredUseEfi: true, preferredUseSecureBoot: true}
machine: {preferredMachineType: pc-q35-7.2}
preferredSubdomain: lan
preferredTerminationGracePeriodSeconds: 180
annotations: {a: b}
";
    let template = "
spec:
  domain:
    cpu: {cores: 1, features: [{name: aes, policy: disable}]}
    devices:
      autoattachSerialConsole: false
      disks: [{name: a}, {name: b, disk: {bus: sata}}, {name: c, cdrom: {}}]
      interfaces: [{name: default}, {name: second}]
      inputs: [{name: tablet, type: tablet}]
    features: {hyperv: {relaxed: {enabled: false}}}
  networks: [{name: default, pod: {}}, {name: second, multus: {networkName: x}}]
";
    check(
        "",
        taste,
        template,
        &expect![[r#"
        {"spec":{"domain":{"cpu":{"cores":1,"features":[{"name":"aes","policy":"disable"},{"name":"vmx"}]},"devices":{"autoattachSerialConsole":false,"disks":[{"name":"a","disk":{"bus":"virtio"},"dedicatedIOThread":true},{"name":"b","disk":{"bus":"sata"}},{"name":"c","cdrom":{"bus":"sata"}}],"interfaces":[{"name":"default","model":"virtio","masquerade":{}},{"name":"second","model":"virtio"}],"inputs":[{"name":"tablet","type":"tablet","bus":"virtio"}],"autoattachGraphicsDevice":false,"rng":{},"tpm":{"persistent":true}},"features":{"hyperv":{"relaxed":{"enabled":false},"vapic":{}},"acpi":{},"smm":{"enabled":true}},"firmware":{"bootloader":{"efi":{"secureBoot":true}}},"machine":{"type":"pc-q35-7.2"},"clock":{"utc":{"offsetSeconds":0},"timer":{"hpet":{"present":false}}}},"networks":[{"name":"default","pod":{}},{"name":"second","multus":{"networkName":"x"}}],"subdomain":"lan","terminationGracePeriodSeconds":180},"metadata":{"annotations":{"a":"b"}}}
    "#]],
    );
    check(
        "",
        "{firmware: {preferredUseBios: true, preferredUseBiosSerial: true}}",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"spec":{"domain":{"devices":{},"firmware":{"bootloader":{"bios":{"useSerial":true}}}}}}
        "#]],
    );
    check(
        "",
        "{firmware: {preferredEfi: {persistent: true}, preferredUseSecureBoot: true}}",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"spec":{"domain":{"devices":{},"firmware":{"bootloader":{"efi":{"persistent":true}}}}}}
        "#]],
    );
}

#[test]
fn a_taste_demands() {
    let machine =
        "{spec: {domain: {cpu: {sockets: 1, cores: 2, threads: 1}, memory: {guest: 1Gi}, devices: {}}}}";
    check(
        "{cpu: {guest: 1}, memory: {guest: 1Gi}}",
        "{requirements: {cpu: {guest: 2}}}",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"spec":{"domain":{"devices":{},"cpu":{"sockets":1,"cores":1,"threads":1},"memory":{"guest":"1Gi"}}}}
            failure checking preference requirements: insufficient CPU resources of 1 vCPU provided by instance type, preference requires 2 vCPU (spec.instancetype)
        "#]],
    );
    check(
        "",
        "{requirements: {cpu: {guest: 2}}}",
        machine,
        &expect![[r#"
        {"spec":{"domain":{"cpu":{"sockets":1,"cores":2,"threads":1},"memory":{"guest":"1Gi"},"devices":{}}}}
        failure checking preference requirements: insufficient CPU resources of 1 vCPU provided by VirtualMachine, preference requires 2 vCPU provided as sockets (spec.template.spec.domain.cpu.sockets)
    "#]],
    );
    check(
        "",
        "{requirements: {cpu: {guest: 2}}, cpu: {preferredCPUTopology: cores}}",
        machine,
        &expect![[r#"
            {"spec":{"domain":{"cpu":{"sockets":1,"cores":2,"threads":1},"memory":{"guest":"1Gi"},"devices":{}}}}
        "#]],
    );
    check(
        "",
        "{requirements: {cpu: {guest: 4}}, cpu: {preferredCPUTopology: spread}}",
        machine,
        &expect![[r#"
            {"spec":{"domain":{"cpu":{"sockets":1,"cores":2,"threads":1},"memory":{"guest":"1Gi"},"devices":{}}}}
            failure checking preference requirements: insufficient CPU resources of 2 vCPU provided by VirtualMachine, preference requires 4 vCPU provided as SocketsCores (spec.template.spec.domain.cpu.sockets, spec.template.spec.domain.cpu.cores)
        "#]],
    );
    check(
        "",
        "{requirements: {memory: {guest: 2Gi}}}",
        machine,
        &expect![[r#"
        {"spec":{"domain":{"cpu":{"sockets":1,"cores":2,"threads":1},"memory":{"guest":"1Gi"},"devices":{}}}}
        failure checking preference requirements: insufficient Memory resources of 1Gi provided by VirtualMachine, preference requires 2Gi (spec.template.spec.domain.memory)
    "#]],
    );
    check(
        "{cpu: {guest: 1}, memory: {guest: 1Gi}}",
        "{requirements: {memory: {guest: 2Gi}}}",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"spec":{"domain":{"devices":{},"cpu":{"sockets":1,"cores":1,"threads":1},"memory":{"guest":"1Gi"}}}}
            failure checking preference requirements: insufficient Memory resources of 1Gi provided by instance type, preference requires 2Gi (spec.instancetype)
        "#]],
    );
    check(
        "",
        "{requirements: {cpu: {guest: 1}}}",
        "{spec: {domain: {devices: {}}}}",
        &expect![[r#"
            {"spec":{"domain":{"devices":{}}}}
            failure checking preference requirements: no CPU resources provided by VirtualMachine, preference requires 1 vCPU (spec.template.spec.domain.cpu)
        "#]],
    );
}
