//! VirtualMachines.

use expect_test::expect;
use serde_json::json;

use super::super::{DATA_SOURCES, DATA_VOLUMES, HYPERCONVERGEDS, INSTANCES, KUBEVIRTS, MACHINES};
use super::*;

const SIZES: Resource = Resource::new("instancetype.kubevirt.io", "virtualmachineinstancetypes");
const EVERYBODYS_SIZES: Resource =
    Resource::new("instancetype.kubevirt.io", "virtualmachineclusterinstancetypes");
const TASTES: Resource = Resource::new("instancetype.kubevirt.io", "virtualmachineclusterpreferences");
const REVISIONS: Resource = Resource::new("apps", "controllerrevisions");

const SMALL: &str = "{metadata: {name: small}, spec: {cpu: {guest: 2}, memory: {guest: 1Gi}}}";

fn machine(more: &str) -> Value {
    let mut vm = parse(
        "
metadata: {name: web, namespace: vms}
spec:
  runStrategy: Always
  template:
    spec:
      domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}, memory: {guest: 1Gi}}
      volumes: [{name: root, containerDisk: {image: 'example.com/disk:1'}}]
",
    );
    merge(&mut vm, &parse(more));
    vm
}

/// Puts one object over another; null takes away.
fn merge(object: &mut Value, more: &Value) {
    match (object, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                match value {
                    Value::Null => {
                        fields.shift_remove(key);
                    }
                    value => merge(fields.entry(key.clone()).or_insert(Value::Null), value),
                }
            }
        }
        (object, more) => *object = more.clone(),
    }
}

fn created(world: &Fake, more: &str) -> Result<(Value, Vec<String>), String> {
    write(MACHINES, &request(world, None, PERSON), &machine(more))
}

#[test]
fn a_machine_is_completed() {
    let world = Fake::default()
        .with(TASTES, "{metadata: {name: fast}, spec: {machine: {preferredMachineType: pc-q35-7.2}, volumes: {preferredStorageClassName: quick}}}")
        .with_in_root(KUBEVIRTS, "{metadata: {name: kubevirt}, spec: {configuration: {machineType: pc-q35-6.2}}}");
    let (vm, warnings) = created(&world, "{}").unwrap();
    assert_eq!(warnings, [""; 0]);
    let spec = &vm["spec"]["template"]["spec"];
    assert_eq!(spec["architecture"], "amd64");
    assert_eq!(spec["domain"]["machine"]["type"], "pc-q35-6.2");
    let template = "{metadata: {name: a}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}}";
    let more = format!(
        "{{spec: {{preference: {{name: fast}}, dataVolumeTemplates: [{template}], template: {{spec: \
         {{domain: {{memory: {{guest: 2Gi}}}}, volumes: [{{name: root, dataVolume: {{name: a}}}}]}}}}}}}}"
    );
    let (vm, _) = created(&world, &more).unwrap();
    assert_eq!(
        vm["spec"]["preference"]["kind"],
        "virtualmachineclusterpreference"
    );
    assert_eq!(
        vm["spec"]["template"]["spec"]["domain"]["machine"]["type"],
        "pc-q35-7.2"
    );
    assert_eq!(
        vm["spec"]["dataVolumeTemplates"][0]["spec"]["storage"]["storageClassName"],
        "quick"
    );
}

#[test]
fn wrong_machines_are_refused_in_upstreams_words() {
    let world = Fake::default()
        .with(EVERYBODYS_SIZES, SMALL)
        .with(
            EVERYBODYS_SIZES,
            "{metadata: {name: odd}, spec: {cpu: {guest: 3}, memory: {guest: 1Gi}}}",
        )
        .with(
            TASTES,
            "{metadata: {name: spread}, spec: {cpu: {preferredCPUTopology: spread}}}",
        )
        .with(
            TASTES,
            "{metadata: {name: big}, spec: {requirements: {cpu: {guest: 8}}}}",
        );
    let cases = [
        (
            "neither way of saying when it runs",
            "{spec: {runStrategy: null}}",
        ),
        ("both ways", "{spec: {running: true}}"),
        ("a size that is not there", "{spec: {instancetype: {name: huge}}}"),
        (
            "a taste that is not there",
            "{spec: {preference: {name: sweet, kind: VirtualMachinePreference}}}",
        ),
        (
            "a size of a strange kind",
            "{spec: {instancetype: {name: small, kind: Pod}}}",
        ),
        (
            "a size beside what it says",
            "{spec: {instancetype: {name: small}}}",
        ),
        (
            "a size that cannot be spread",
            "{spec: {instancetype: {name: odd}, preference: {name: spread}, template: {spec: {domain: {memory: null}}}}}",
        ),
        (
            "too small for its taste",
            "{spec: {preference: {name: big}, template: {spec: {domain: {cpu: {sockets: 2}}}}}}",
        ),
        ("a size without a name", "{spec: {instancetype: {}}}"),
        (
            "a name beside a volume that knows it",
            "{spec: {preference: {name: a, inferFromVolume: root}}}",
        ),
        (
            "a volume that knows nothing",
            "{spec: {instancetype: {inferFromVolume: root}}}",
        ),
        (
            "a disk without a volume",
            "{spec: {template: {spec: {volumes: null}}}}",
        ),
        (
            "reserved labels",
            "{spec: {template: {metadata: {labels: {kubevirt.io/nodeName: a}}}}}",
        ),
        (
            "a disk for another namespace",
            "{spec: {dataVolumeTemplates: [{metadata: {name: a, namespace: other}, spec: {source: {blank: {}}, pvc: {}}}], template: {spec: {volumes: [{name: root, dataVolume: {name: a}}]}}}}",
        ),
        (
            "a disk from two sources",
            "{spec: {dataVolumeTemplates: [{metadata: {name: a}, spec: {source: {blank: {}, http: {url: 'http://a'}}, pvc: {}}}], template: {spec: {volumes: [{name: root, dataVolume: {name: a}}]}}}}",
        ),
    ];
    let mut told = String::new();
    for (why, more) in cases {
        let refusal = refused(MACHINES, &request(&world, None, PERSON), &machine(more));
        told += &format!("{why}:\n  {}\n", refusal.replace('\n', "\n  "));
    }
    expect![[r#"
        neither way of saying when it runs:
          422 virtualmachine-validator.kubevirt.io RunStrategy must be specified
            FieldValueInvalid spec.running: RunStrategy must be specified
        both ways:
          422 virtualmachine-validator.kubevirt.io Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead
            FieldValueInvalid spec.running: Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead
        a size that is not there:
          422 virtualmachine-validator.kubevirt.io Failure to find instancetype: virtualmachineclusterinstancetypes.instancetype.kubevirt.io "huge" not found
            FieldValueNotFound spec.instancetype: Failure to find instancetype: virtualmachineclusterinstancetypes.instancetype.kubevirt.io "huge" not found
        a taste that is not there:
          422 virtualmachine-validator.kubevirt.io Failure to find preference: virtualmachinepreferences.instancetype.kubevirt.io "sweet" not found
            FieldValueNotFound spec.preference: Failure to find preference: virtualmachinepreferences.instancetype.kubevirt.io "sweet" not found
        a size of a strange kind:
          422 virtualmachine-validator.kubevirt.io Failure to find instancetype: got unexpected kind in InstancetypeMatcher: Pod
            FieldValueNotFound spec.instancetype: Failure to find instancetype: got unexpected kind in InstancetypeMatcher: Pod
        a size beside what it says:
          422 virtualmachine-validator.kubevirt.io VM field(s) spec.template.spec.domain.memory conflicts with selected instance type
            FieldValueInvalid spec.template.spec.domain.memory: VM field(s) spec.template.spec.domain.memory conflicts with selected instance type
        a size that cannot be spread:
          422 virtualmachine-validator.kubevirt.io 3 vCPUs provided by the instance type are not divisible by the Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of 2 provided by the preference
            FieldValueInvalid instancetype.spec.cpu.guest: 3 vCPUs provided by the instance type are not divisible by the Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of 2 provided by the preference
        too small for its taste:
          422 virtualmachine-validator.kubevirt.io failure checking preference requirements: insufficient CPU resources of 2 vCPU provided by VirtualMachine, preference requires 8 vCPU provided as sockets
            FieldValueNotFound spec.template.spec.domain.cpu.sockets: failure checking preference requirements: insufficient CPU resources of 2 vCPU provided by VirtualMachine, preference requires 8 vCPU provided as sockets
        a size without a name:
          422 virtualmachines-mutator.kubevirt.io Either Name or InferFromVolume should be provided within the InstancetypeMatcher
            FieldValueNotFound spec.instancetype: Either Name or InferFromVolume should be provided within the InstancetypeMatcher
        a name beside a volume that knows it:
          422 virtualmachines-mutator.kubevirt.io Name should not be provided when InferFromVolume is used within the PreferenceMatcher
            FieldValueNotFound spec.preference.name: Name should not be provided when InferFromVolume is used within the PreferenceMatcher
        a volume that knows nothing:
          400 virtualmachines-mutator.kubevirt.io unable to infer defaults from volume root as type is not supported
        a disk without a volume:
          422 virtualmachine-validator.kubevirt.io spec.template.spec.domain.devices.disks[0].Name 'root' not found.
            FieldValueInvalid spec.template.spec.domain.devices.disks[0].name: spec.template.spec.domain.devices.disks[0].Name 'root' not found.
        reserved labels:
          422 virtualmachine-validator.kubevirt.io creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited
            FieldValueNotSupported spec.template.metadata.labels: creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited
        a disk for another namespace:
          422 virtualmachine-validator.kubevirt.io Embedded DataVolume namespace other differs from VM namespace vms
            FieldValueInvalid spec.dataVolumeTemplates[0]: Embedded DataVolume namespace other differs from VM namespace vms
        a disk from two sources:
          422 virtualmachine-validator.kubevirt.io Multiple dataVolume sources
            FieldValueInvalid spec.dataVolumeTemplate[0].source: Multiple dataVolume sources
    "#]].assert_eq(&told);
}

#[test]
fn sizes_are_those_that_a_machine_remembers() {
    let world = Fake::default()
        .with(SIZES, "{metadata: {name: own, namespace: vms}, spec: {cpu: {guest: 1}, memory: {guest: 1Gi}}}")
        .with(
            REVISIONS,
            "{metadata: {name: r1, namespace: vms, labels: {instancetype.kubevirt.io/object-name: own}}, data: {spec: {cpu: {guest: 1}, memory: {guest: 1Gi}}}}",
        );
    let base = "template: {spec: {domain: {memory: null}}}";
    for (matcher, status, expected) in [
        ("{name: own, kind: virtualmachineinstancetype}", "{}", Ok(())),
        ("{name: gone, revisionName: r1}", "{}", Ok(())),
        (
            "{name: own, revisionName: r2}",
            "{}",
            Err("Failure to find instancetype: controllerrevisions.apps \"r2\" not found"),
        ),
        (
            "{name: gone, kind: virtualmachineinstancetype}",
            "{instancetypeRef: {controllerRevisionRef: {name: r1}}}",
            Err(
                "Failure to find instancetype: virtualmachineinstancetypes.instancetype.kubevirt.io \"gone\" not found",
            ),
        ),
    ] {
        let vm = machine(&format!(
            "{{spec: {{instancetype: {matcher}, {base}}}, status: {status}}}"
        ));
        let got = write(MACHINES, &request(&world, None, PERSON), &vm);
        match expected {
            Ok(()) => assert!(got.is_ok(), "{matcher}: {got:?}"),
            Err(words) => assert!(
                got.as_ref().is_err_and(|it| it.contains(words)),
                "{matcher}: {got:?}"
            ),
        }
    }
    let remembering = machine(&format!(
        "{{spec: {{instancetype: {{name: own, revisionName: r1}}, {base}}}}}"
    ));
    let changed = machine(&format!(
        "{{spec: {{instancetype: {{name: other, revisionName: r1}}, {base}}}}}"
    ));
    expect![[r#"
        422 virtualmachines-mutator.kubevirt.io the Matcher Name has been updated without updating the RevisionName
          FieldValueInvalid spec.instancetype.revisionName: the Matcher Name has been updated without updating the RevisionName"#]].assert_eq(&refused(
        MACHINES,
        &request(&world, Some(&remembering), PERSON),
        &changed,
    ));
}

#[test]
fn volumes_know_sizes() {
    let labels = "labels: {instancetype.kubevirt.io/default-instancetype: small, instancetype.kubevirt.io/default-preference: fast}";
    let world = Fake::default()
        .with(EVERYBODYS_SIZES, SMALL)
        .with(TASTES, "{metadata: {name: fast}, spec: {}}")
        .with(
            DATA_VOLUMES,
            &format!("{{metadata: {{name: known, namespace: vms, {labels}}}, spec: {{}}}}"),
        )
        .with_in_root(
            DATA_SOURCES,
            &format!(
                "{{metadata: {{name: tiny, namespace: fairway-images, {labels}}}, spec: {{source: {{}}}}}}"
            ),
        );
    let both = "instancetype: {inferFromVolume: root}, preference: {inferFromVolume: root}";
    let template = "{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, name: tiny, namespace: fairway-images}, storage: {}}}";
    for (name, templates) in [("known", "[]"), ("a", &*format!("[{template}]"))] {
        let more = format!(
            "{{spec: {{{both}, dataVolumeTemplates: {templates}, template: {{spec: {{domain: {{memory: null}}, \
             volumes: [{{name: root, dataVolume: {{name: {name}}}}}]}}}}}}}}"
        );
        let (vm, _) = created(&world, &more).unwrap();
        assert_eq!(
            vm["spec"]["instancetype"],
            json!({"name": "small", "kind": "virtualmachineclusterinstancetype"})
        );
        assert_eq!(vm["spec"]["preference"]["name"], "fast");
    }
    // A machine may do without, and says so.
    let more = "{spec: {instancetype: {inferFromVolume: root, inferFromVolumeFailurePolicy: Ignore}}}";
    let (vm, _) = created(&world, more).unwrap();
    assert!(vm["spec"].get("instancetype").is_none());
    assert_eq!(vm["spec"]["template"]["spec"]["domain"]["memory"]["guest"], "1Gi");
}

#[test]
fn what_is_worth_knowing_is_told_to_who_brings_it() {
    let world = Fake::default();
    let more = "{spec: {runStrategy: null, running: true, template: {spec: {schedulerName: theirs, domain: {devices: {gpus: [{name: g, deviceName: nvidia.com/A100}]}}}}}}";
    let (vm, warnings) = created(&world, more).unwrap();
    expect![[r#"
        spec.running is deprecated, please use spec.runStrategy instead.
        spec.template.spec.domain.devices.gpus[0]: the machine will not start: this node has no device nvidia.com/A100
        spec.template.spec.schedulerName: there is no scheduler "theirs"; the built-in one places the machine"#]].assert_eq(&warnings.join("\n"));
    let pinned = "{spec: {template: {spec: {domain: {cpu: {cores: 1, dedicatedCpuPlacement: true, isolateEmulatorThread: true}}}}}}";
    let (_, told) = created(&world, pinned).unwrap();
    assert_eq!(
        told,
        Vec::<String>::new(),
        "such a machine is placed where it can be had"
    );
    // Later writers did not bring it; `running` upstream tells everybody.
    let (_, again) = write(MACHINES, &request(&world, Some(&vm), PERSON), &vm).unwrap();
    assert_eq!(
        again,
        ["spec.running is deprecated, please use spec.runStrategy instead."]
    );
}

#[test]
fn machines_on_their_way_out_are_let_go() {
    let world = Fake::default();
    let old = machine("{metadata: {deletionTimestamp: '2026-11-17T12:00:00Z'}, spec: {runStrategy: null}}");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    write(MACHINES, &request(&world, Some(&old), ENGINE), &new).unwrap();
}

#[test]
fn disks_stay_while_they_are_kept() {
    let world = Fake::default();
    let old = machine("{status: {snapshotInProgress: s1}}");
    let changes = [
        "{spec: {template: {spec: {volumes: [{name: root, containerDisk: {image: 'b:1'}}]}}}}",
        "{spec: {runStrategy: Halted}}",
        "{status: {snapshotInProgress: null, restoreInProgress: r1}, spec: {runStrategy: Halted}}",
    ];
    let mut told = Vec::new();
    for change in changes {
        let mut new = old.clone();
        merge(&mut new, &parse(change));
        let refusal = refused(MACHINES, &request(&world, Some(&old), PERSON), &new);
        told.push(refusal.lines().next().unwrap().to_owned());
    }
    expect![[r#"
        422 virtualmachine-validator.kubevirt.io Cannot update vm disks or volumes until snapshot "s1" completes
        422 virtualmachine-validator.kubevirt.io Cannot update vm running state until snapshot "s1" completes
        422 virtualmachine-validator.kubevirt.io Cannot update VM runStrategy until restore "r1" completes"#]].assert_eq(&told.join("\n"));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    write(MACHINES, &request(&world, Some(&old), PERSON), &new).unwrap();
}

#[test]
fn volumes_that_come_and_go_are_tried_out() {
    let world = Fake::default();
    let add = |name: &str, disk: &str| {
        format!(
            "{{addVolumeOptions: {{name: {name}, disk: {disk}, volumeSource: {{dataVolume: {{name: {name}}}}}}}}}"
        )
    };
    let scsi = "{disk: {bus: scsi}}";
    let cases = [
        ("one that comes", add("data", scsi), true),
        (
            "one that comes twice",
            format!("{}, {}", add("data", scsi), add("data", scsi)),
            false,
        ),
        ("one without a disk", add("data", "null"), false),
        ("one on another bus", add("data", "{disk: {bus: virtio}}"), false),
        ("one of a taken name", add("root", scsi), false),
        (
            "one that goes",
            "{removeVolumeOptions: {name: root}}".to_owned(),
            true,
        ),
        ("nothing", "{}".to_owned(), false),
    ];
    let mut told = String::new();
    for (why, requests, is_right) in cases {
        let vm = machine(&format!("{{status: {{volumeRequests: [{requests}]}}}}"));
        let old = machine("{}");
        let asked = Request {
            subresource: Some("status"),
            ..request(&world, Some(&old), ENGINE)
        };
        match write(MACHINES, &asked, &vm) {
            Ok(_) => assert!(is_right, "{why}"),
            Err(refusal) => told += &format!("{why}: {}\n", refusal.lines().next().unwrap()),
        }
    }
    expect![[r#"
        one that comes twice: 422 kubevirt-crd-status-validator.kubevirt.io AddVolume request for [data] aleady exists
        one without a disk: 422 kubevirt-crd-status-validator.kubevirt.io AddVolume request for [data] requires the disk field to be set.
        one on another bus: 422 kubevirt-crd-status-validator.kubevirt.io AddVolume request for [data] requires disk bus to be 'scsi'. [virtio] is not permitted
        one of a taken name: 422 kubevirt-crd-status-validator.kubevirt.io AddVolume request for [root] conflicts with an existing volume of the same name on the vmi template.
        nothing: 422 kubevirt-crd-status-validator.kubevirt.io VolumeRequests require one of either addVolumeOptions or removeVolumeOptions to be set
    "#]].assert_eq(&told);
}

#[test]
fn dry_runs_tell_what_a_change_does() {
    let running = "{metadata: {name: web, namespace: vms}, spec: {domain: {cpu: {maxSockets: 4}, memory: {maxGuest: 4Gi}}}, status: {phase: Running}}";
    let still = Fake::default().with(EVERYBODYS_SIZES, SMALL);
    let busy = Fake::default()
        .with(EVERYBODYS_SIZES, SMALL)
        .with(INSTANCES, running);
    let disk = "volumes: [{name: root, persistentVolumeClaim: {claimName: a}}]";
    let base = format!("{{spec: {{template: {{spec: {{domain: {{cpu: {{sockets: 1}}}}, {disk}}}}}}}}}");
    let cases = [
        ("{}", true),
        ("{metadata: {labels: {a: b}}}", true),
        ("{spec: {template: {spec: {domain: {cpu: {sockets: 2}}}}}}", true),
        ("{spec: {template: {spec: {domain: {cpu: {sockets: 8}}}}}}", true),
        (
            "{spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}}",
            true,
        ),
        ("{spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}}", true),
        ("{spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}}", false),
        ("{spec: {runStrategy: Halted}}", true),
        ("{spec: {template: {spec: {nodeSelector: {a: b}}}}}", true),
        (
            "{metadata: {annotations: {fairway.dev/restart: manual}}, spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}}",
            true,
        ),
    ];
    let mut told = String::new();
    let old = machine(&base);
    for (change, runs) in cases {
        let world = if runs { &busy } else { &still };
        let mut new = old.clone();
        merge(&mut new, &parse(change));
        told += &format!(
            "{change} {}: {}\n",
            if runs { "running" } else { "stopped" },
            impact(MACHINES, &request(world, Some(&old), PERSON), &new)
        );
    }
    let gone = Request {
        operation: Operation::Delete,
        ..request(&busy, Some(&old), PERSON)
    };
    told += &format!("deleted: {}\n", impact(MACHINES, &gone, &old));
    told += &format!(
        "made: {}\n",
        impact(MACHINES, &request(&busy, None, PERSON), &old)
    );
    expect![[r#"
        {} running: none
        {metadata: {labels: {a: b}}} running: none
        {spec: {template: {spec: {domain: {cpu: {sockets: 2}}}}}} running: live change: sockets grow from 1 to 2
        {spec: {template: {spec: {domain: {cpu: {sockets: 8}}}}}} running: restart: CPU sockets updated in template spec to a value higher than what's available
        {spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}} running: live change: memory grows from 1Gi to 2Gi
        {spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}} running: restart: spec.template.spec.domain.cpu.cores takes effect at the next start
        {spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}} stopped: none
        {spec: {runStrategy: Halted}} running: restart: the machine is stopped
        {spec: {template: {spec: {nodeSelector: {a: b}}}}} running: migration: spec.template.spec.nodeSelector: the machine moves if its node does not suit
        {metadata: {annotations: {fairway.dev/restart: manual}}, spec: {template: {spec: {domain: {cpu: {cores: 4}}}}}} running: restart: spec.template.spec.domain.cpu.cores takes effect at the next start; fairway.dev/restart is manual, so the restart waits for a person
        deleted: re-creation: the machine is deleted
        made: none
    "#]].assert_eq(&told);
}

#[test]
fn settings_of_a_workspace_do_not_open_the_host() {
    let gates = "{metadata: {name: kubevirt}, spec: {configuration: {developerConfiguration: {featureGates: [HostDisk]}}}}";
    let more =
        "{spec: {template: {spec: {volumes: [{name: root, hostDisk: {path: /etc/shadow, type: Disk}}]}}}}";
    let tenant = Fake::default().with(KUBEVIRTS, gates);
    let refusal = created(&tenant, more).unwrap_err();
    assert!(
        refusal.contains("HostDisk feature gate is not enabled"),
        "{refusal}"
    );
    let platform = Fake::default().with_in_root(KUBEVIRTS, gates);
    created(&platform, more).unwrap();
    let operator = Fake::default().with(
        HYPERCONVERGEDS,
        "{metadata: {name: kubevirt-hyperconverged}, spec: {evictionStrategy: LiveMigrate}}",
    );
    created(&operator, "{}").unwrap();
}
