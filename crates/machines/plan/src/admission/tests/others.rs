//! Sizes, snapshots, clones, settings and networks.

use expect_test::expect;
use serde_json::json;

use super::super::{DATA_VOLUMES, HYPERCONVERGEDS, INSTANCES, KUBEVIRTS, MACHINES};
use super::*;

const SIZES: Resource = Resource::new("instancetype.kubevirt.io", "virtualmachineinstancetypes");
const TASTES: Resource = Resource::new("instancetype.kubevirt.io", "virtualmachineclusterpreferences");
const SNAPSHOTS: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinesnapshots");
const CONTENTS: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinesnapshotcontents");
const RESTORES: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinerestores");
const CLONES: Resource = Resource::new("clone.kubevirt.io", "virtualmachineclones");
const NETWORKS: Resource = Resource::new("k8s.cni.cncf.io", "network-attachment-definitions");
const IMPORTERS: Resource = Resource::new("cdi.kubevirt.io", "cdis");

/// What is said to a new object, by its spec.
fn answers(kind: Resource, world: &Fake, specs: &[&str]) -> String {
    let mut told = String::new();
    for spec in specs {
        let object = json!({"metadata": {"name": "it", "namespace": "vms"}, "spec": parse(spec)});
        let answer = match write(kind, &request(world, None, PERSON), &object) {
            Ok((_, warnings)) => format!("yes {}", warnings.join(" | ")).trim_end().to_owned(),
            Err(refusal) => refusal,
        };
        told += &format!("{spec}: {answer}\n");
    }
    told
}

#[test]
fn sizes_and_tastes() {
    let world = Fake::default();
    let sizes = answers(
        SIZES,
        &world,
        &[
            "{cpu: {guest: 1}, memory: {guest: 1Gi}}",
            "{memory: {overcommitPercent: 101}}",
            "{memory: {overcommitPercent: 10, hugepages: {pageSize: 2Mi}}}",
        ],
    );
    let tastes = answers(
        TASTES,
        &world,
        &[
            "{cpu: {preferredCPUTopology: cores}}",
            "{cpu: {preferredCPUTopology: preferCores}}",
            "{cpu: {preferredCPUTopology: sideways}}",
            "{cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads, ratio: 4}}}",
            "{cpu: {preferredCPUTopology: spread, spreadOptions: {across: Rooms}}}",
        ],
    );
    expect![[r#"
        {cpu: {guest: 1}, memory: {guest: 1Gi}}: yes
        {memory: {overcommitPercent: 101}}: 422 virtualmachineinstancetype-validator.instancetype.kubevirt.io spec.memory.overcommitPercent '101': must be in range between 0 and 100.
          FieldValueInvalid spec.memory.overcommitPercent: spec.memory.overcommitPercent '101': must be in range between 0 and 100.
        {memory: {overcommitPercent: 10, hugepages: {pageSize: 2Mi}}}: 422 virtualmachineinstancetype-validator.instancetype.kubevirt.io spec.memory.overcommitPercent and spec.memory.hugepages should not be requested together.
          FieldValueInvalid spec.memory.overcommitPercent: spec.memory.overcommitPercent and spec.memory.hugepages should not be requested together.
        {cpu: {preferredCPUTopology: cores}}: yes
        {cpu: {preferredCPUTopology: preferCores}}: yes PreferredCPUTopology preferCores is deprecated for removal in a future release, please use cores instead
        {cpu: {preferredCPUTopology: sideways}}: 422 virtualmachineclusterpreference-validator.instancetype.kubevirt.io unknown preferredCPUTopology sideways
          FieldValueInvalid spec.cpu.preferredCPUTopology: unknown preferredCPUTopology sideways
        {cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads, ratio: 4}}}: 422 virtualmachineclusterpreference-validator.instancetype.kubevirt.io only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores and threads
          FieldValueInvalid spec.cpu.spreadOptions.ratio: only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores and threads
        {cpu: {preferredCPUTopology: spread, spreadOptions: {across: Rooms}}}: 422 virtualmachineclusterpreference-validator.instancetype.kubevirt.io across Rooms is not supported
          FieldValueInvalid spec.cpu.spreadOptions.across: across Rooms is not supported
    "#]].assert_eq(&(sizes + &tastes));
}

#[test]
fn snapshots_and_restores() {
    let content = |domain: &str| {
        format!(
            "{{metadata: {{name: c, namespace: vms}}, spec: {{virtualMachineSnapshotName: s, source: {{virtualMachine: {{spec: {{template: {{spec: {{domain: {domain}, volumes: [{{name: root, dataVolume: {{name: a}}}}]}}}}}}}}}}}}}}"
        )
    };
    let world = Fake::default()
        .with(SNAPSHOTS, "{metadata: {name: s, namespace: vms}, status: {sourceUID: u1, virtualMachineSnapshotContentName: c}}")
        .with(CONTENTS, &content("{devices: {tpm: {persistent: true}}}"))
        .with(MACHINES, "{metadata: {name: web, namespace: vms, uid: u1}}")
        .with(RESTORES, "{metadata: {name: busy, namespace: vms}, spec: {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: other}}, status: {complete: false}}");
    let snapshots = answers(
        SNAPSHOTS,
        &world,
        &[
            "{source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}",
            "{source: {kind: VirtualMachine, name: web}}",
            "{source: {apiGroup: kubevirt.io, kind: Pod, name: web}}",
            "{source: {apiGroup: apps, kind: VirtualMachine, name: web}}",
        ],
    );
    let restores = answers(
        RESTORES,
        &world,
        &[
            "{target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s}",
            "{target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: new}, virtualMachineSnapshotName: s}",
            "{target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: other}, virtualMachineSnapshotName: none}",
            "{target: {kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s}",
            "{target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s, patches: ['{\"op\": \"replace\", \"path\": \"/metadata/name\", \"value\": \"x\"}', '{\"op\"}']}",
        ],
    );
    expect![[r#"
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}: yes
        {source: {kind: VirtualMachine, name: web}}: 422 virtualmachinesnapshot-validator.snapshot.kubevirt.io missing apiGroup
          FieldValueNotFound spec.source.apiGroup: missing apiGroup
        {source: {apiGroup: kubevirt.io, kind: Pod, name: web}}: 422 virtualmachinesnapshot-validator.snapshot.kubevirt.io invalid kind
          FieldValueInvalid spec.source.kind: invalid kind
        {source: {apiGroup: apps, kind: VirtualMachine, name: web}}: 422 virtualmachinesnapshot-validator.snapshot.kubevirt.io invalid apiGroup
          FieldValueInvalid spec.source.apiGroup: invalid apiGroup
        {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s}: yes
        {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: new}, virtualMachineSnapshotName: s}: yes
        {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: other}, virtualMachineSnapshotName: none}: 422 virtualmachinerestore-validator.snapshot.kubevirt.io VirtualMachineRestore "busy" in progress
          FieldValueInvalid spec.target: VirtualMachineRestore "busy" in progress
        {target: {kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s}: 422 virtualmachinerestore-validator.snapshot.kubevirt.io missing apiGroup
          FieldValueNotFound spec.target.apiGroup: missing apiGroup
        {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s, patches: ['{"op": "replace", "path": "/metadata/name", "value": "x"}', '{"op"}']}: 422 virtualmachinerestore-validator.snapshot.kubevirt.io patching is valid only for elements under /spec/ only:  "path": "/metadata/name", patch format is not valid - one ":" expected in a single key-value json patch: "op"
          FieldValueInvalid spec.patches: patching is valid only for elements under /spec/ only:  "path": "/metadata/name"
          FieldValueInvalid spec.patches: patch format is not valid - one ":" expected in a single key-value json patch: "op"
    "#]].assert_eq(&(snapshots + &restores));
    // A clone's restore: upstream's own validator does not read the colons of an address.
    let address = r#"{target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, virtualMachineSnapshotName: s, patches: ['{"op": "replace", "path": "/spec/x", "value": "02:00:00:00:00:01"}']}"#;
    let said = answers(RESTORES, &world, &[address]);
    assert!(said.trim_end().ends_with(": yes"), "{said}");
    let old = json!({"spec": {"source": {"name": "a"}}});
    let new = json!({"spec": {"source": {"name": "b"}}});
    for kind in [SNAPSHOTS, RESTORES] {
        let refusal = refused(kind, &request(&world, Some(&old), PERSON), &new);
        assert!(refusal.contains("spec in immutable after creation"), "{refusal}");
    }
    let restore = json!({"spec": {"target": {"name": "web"}}});
    assert_eq!(
        impact(RESTORES, &request(&world, None, PERSON), &restore),
        "data loss: what web wrote since the snapshot is gone"
    );
}

#[test]
fn clones() {
    let world = Fake::default()
        .with(SNAPSHOTS, "{metadata: {name: s, namespace: vms}, status: {virtualMachineSnapshotContentName: c}}")
        .with(
            CONTENTS,
            "{metadata: {name: c, namespace: vms}, spec: {virtualMachineSnapshotName: s, source: {virtualMachine: {spec: {template: {spec: {volumes: [{name: root, dataVolume: {name: a}}]}}}}}}}",
        )
        .with(SNAPSHOTS, "{metadata: {name: t, namespace: vms}, status: {virtualMachineSnapshotContentName: d}}")
        // State of firmware and TPM is not kept, so that there is none to be missed.
        .with(
            CONTENTS,
            "{metadata: {name: d, namespace: vms}, spec: {virtualMachineSnapshotName: t, source: {virtualMachine: {spec: {template: {spec: {domain: {devices: {tpm: {persistent: true}}, firmware: {bootloader: {efi: {persistent: true}}}}}}}}}}}",
        );
    let source = "source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}";
    let specs = [
        format!("{{{source}}}"),
        format!("{{{source}, target: {{apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}}}"),
        format!("{{{source}, target: {{kind: Pod, name: a}}}}"),
        format!("{{{source}, labelFilters: ['*', '!a', 'a!b', 'a*b', '!']}}"),
        format!("{{{source}, newMacAddresses: {{default: nonsense}}}}"),
        "{source: {kind: Pod}}".to_owned(),
        "{source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: none}}".to_owned(),
        "{source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: s}}".to_owned(),
        "{source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: t}}".to_owned(),
    ];
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    expect![[r#"
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}: yes
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}: 422 vm-clone-validator.kubevirt.io Target name cannot be equal to source name when both are VirtualMachines
          FieldValueInvalid spec.target.name: Target name cannot be equal to source name when both are VirtualMachines
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, target: {kind: Pod, name: a}}: 422 vm-clone-validator.kubevirt.io Target kind is not supported
          FieldValueInvalid spec.Target.Kind: Target kind is not supported
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, labelFilters: ['*', '!a', 'a!b', 'a*b', '!']}: 422 vm-clone-validator.kubevirt.io spec.labels filter a!b is invalid: cannot contain a negation character (!); FilterRules: NegationChar can be only used at the beginning of the filter, spec.labels filter a*b is invalid: cannot contain a wildcard character (*); FilterRules: WildcardChar can be only at the end of the filter, a negation character is not a valid filter
          FieldValueInvalid spec.labels: spec.labels filter a!b is invalid: cannot contain a negation character (!); FilterRules: NegationChar can be only used at the beginning of the filter
          FieldValueInvalid spec.labels: spec.labels filter a*b is invalid: cannot contain a wildcard character (*); FilterRules: WildcardChar can be only at the end of the filter
          FieldValueInvalid spec.labels: a negation character is not a valid filter
        {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}, newMacAddresses: {default: nonsense}}: 422 vm-clone-validator.kubevirt.io interface default has malformed MAC address (nonsense).
          FieldValueInvalid spec.newMacAddresses.default: interface default has malformed MAC address (nonsense).
        {source: {kind: Pod}}: 422 vm-clone-validator.kubevirt.io Source kind is not supported, Source's APIGroup cannot be empty, Source's name cannot be empty
          FieldValueInvalid spec.Source.Kind: Source kind is not supported
          FieldValueInvalid spec.Source.APIGroup: Source's APIGroup cannot be empty
          FieldValueInvalid spec.Source.Name: Source's name cannot be empty
        {source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: none}}: 422 vm-clone-validator.kubevirt.io VirtualMachineSnapshot none does not exist in namespace vms
          FieldValueInvalid spec.Source: VirtualMachineSnapshot none does not exist in namespace vms
        {source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: s}}: 422 vm-clone-validator.kubevirt.io volume root is not backed up in snapshot s
          FieldValueInvalid spec.Source: volume root is not backed up in snapshot s
        {source: {apiGroup: snapshot.kubevirt.io, kind: VirtualMachineSnapshot, name: t}}: yes
    "#]].assert_eq(&answers(CLONES, &world, &specs));
    let clone = json!({"metadata": {"name": "c"}, "spec": parse(specs[0])});
    let (made, _) = write(CLONES, &request(&world, None, PERSON), &clone).unwrap();
    assert_eq!(
        made["spec"]["target"],
        json!({"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "clone-web-x7x7x"})
    );
}

#[test]
fn settings_say_what_they_do_not_do() {
    let world = Fake::default();
    let kubevirt = answers(
        KUBEVIRTS,
        &world,
        &[
            "{}",
            "{imagePullPolicy: Always, configuration: {cpuModel: EPYC, smbios: {family: x}}}",
        ],
    );
    let operator = answers(
        HYPERCONVERGEDS,
        &world,
        &["{infra: {nodePlacement: {nodeSelector: {a: b}}}, configuration: {virtualMachineOptions: {}}}"],
    );
    expect![[r#"
        {}: yes
        {imagePullPolicy: Always, configuration: {cpuModel: EPYC, smbios: {family: x}}}: yes spec.imagePullPolicy: no effect: Fairway has nothing that follows it | spec.configuration.smbios: no effect: Fairway has nothing that follows it
        {infra: {nodePlacement: {nodeSelector: {a: b}}}, configuration: {virtualMachineOptions: {}}}: yes metadata.name: no effect: only the HyperConverged named kubevirt-hyperconverged counts | spec.infra: no effect: Fairway has nothing that follows it | spec.configuration: HyperConverged has no such field; its virtualMachineOptions are followed here all the same, and belong directly into spec
    "#]].assert_eq(&(kubevirt + &operator));
    let second = Fake::default().with(KUBEVIRTS, "{metadata: {name: kubevirt, namespace: kubevirt}}");
    expect![[r#"
        {}: 400 kubevirt-create-validator.kubevirt.io Kubevirt is already created
    "#]]
    .assert_eq(&answers(KUBEVIRTS, &second, &["{}"]));
    let blocks = json!({"spec": {"uninstallStrategy": "BlockUninstallIfWorkloadsExist"}, "status": {"phase": "Deployed"}});
    for (kind, resource, word) in [
        (KUBEVIRTS, INSTANCES, "Virtual Machine Instances"),
        (KUBEVIRTS, MACHINES, "Virtual Machines"),
        (IMPORTERS, DATA_VOLUMES, "DataVolumes"),
    ] {
        let world = Fake::default().with(resource, "{metadata: {name: a, namespace: vms}}");
        let gone = |object| Request {
            operation: Operation::Delete,
            ..request(&world, Some(object), PERSON)
        };
        let domain = of(kind.group, kind.plural).unwrap();
        let refusal = domain.judge(&gone(&blocks), &blocks).unwrap_err();
        assert!(
            refusal.message.contains(&format!("still {word} present")),
            "{refusal:?}"
        );
        assert!(domain.judge(&gone(&json!({})), &json!({})).is_ok());
    }
}

/// Every setting that the schema has below those that something follows, set to something else than nothing: followed or named.
#[test]
fn nested_settings_are_followed_or_named() {
    let table = include_str!("settings.txt");
    let mut told = String::new();
    for line in table.lines().filter(|it| !it.starts_with('#') && !it.is_empty()) {
        let (kind, rest) = line.split_once(" | ").unwrap();
        let (path, rest) = rest.split_once(" | ").unwrap();
        let value = rest.split_once(" | ").map_or(rest, |it| it.0);
        let mut spec = parse(value);
        for field in path.rsplit('.') {
            spec = json!({ field: spec });
        }
        let (kind, named) = match kind {
            "KubeVirt" => (KUBEVIRTS, "kubevirt"),
            _ => (HYPERCONVERGEDS, crate::settings::HYPERCONVERGED_NAME),
        };
        let object = json!({"metadata": {"name": named, "namespace": "kubevirt"}, "spec": spec});
        let (_, warnings) = write(kind, &request(&Fake::default(), None, PERSON), &object).unwrap();
        let said = match warnings.as_slice() {
            [] => "followed",
            [one] if one.starts_with(&format!("spec.{path}: no effect")) => "named",
            other => panic!("{line}: {other:?}"),
        };
        let kind = if kind == KUBEVIRTS {
            "KubeVirt"
        } else {
            "HyperConverged"
        };
        told += &format!("{kind} | {path} | {value} | {said}\n");
    }
    let table: String = table
        .lines()
        .filter(|it| !it.starts_with('#'))
        .map(|it| format!("{it}\n"))
        .collect();
    assert_eq!(told, table);
}

#[test]
fn networks() {
    let world = Fake::default();
    let told = answers(
        NETWORKS,
        &world,
        &[
            r#"{config: '{"type": "bridge", "bridge": "br1", "vlan": 100}'}"#,
            r#"{config: '{"type": "macvlan", "master": "ens192", "ipam": {"type": "dhcp"}}'}"#,
            r#"{config: 'type: bridge'}"#,
            r#"{config: '{"type": "bridge", "vlan": 9999}'}"#,
            "{}",
        ],
    );
    expect![[r#"
        {config: '{"type": "bridge", "bridge": "br1", "vlan": 100}'}: yes spec.config: bridge names a network between machines: a bridge br1 of the host is not joined
        {config: '{"type": "macvlan", "master": "ens192", "ipam": {"type": "dhcp"}}'}: yes spec.config: networks of type macvlan are not available; machines are connected to bridges
        {config: 'type: bridge'}: 400 net-attach-def-admission-controller-validating-config.k8s.io spec.config of NetworkAttachmentDefinition it is not JSON: expected ident at line 1 column 2
        {config: '{"type": "bridge", "vlan": 9999}'}: 400 net-attach-def-admission-controller-validating-config.k8s.io spec.config of NetworkAttachmentDefinition it: vlan must be between 0 and 4094, not 9999
        {}: yes spec.config: without it machines cannot be connected: there are no files of CNI here
    "#]].assert_eq(&told);
}

#[test]
fn snapshots_of_volumes() {
    const VOLUME_SNAPSHOTS: Resource = Resource::new("snapshot.storage.k8s.io", "volumesnapshots");
    let world = Fake::default();
    let said = answers(
        VOLUME_SNAPSHOTS,
        &world,
        &[
            "{source: {persistentVolumeClaimName: a}}",
            "{source: {}}",
            "{source: {persistentVolumeClaimName: a}, volumeSnapshotClassName: ''}",
        ],
    );
    expect![[r#"
        {source: {persistentVolumeClaimName: a}}: yes
        {source: {}}: 422 validation-webhook.snapshot.storage.k8s.io exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set
          FieldValueInvalid spec.source: exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set
        {source: {persistentVolumeClaimName: a}, volumeSnapshotClassName: ''}: 422 validation-webhook.snapshot.storage.k8s.io volumeSnapshotClassName must not be the empty string when set
          FieldValueInvalid spec.volumeSnapshotClassName: volumeSnapshotClassName must not be the empty string when set
    "#]]
    .assert_eq(&said);
    let old = json!({"spec": {"source": {"persistentVolumeClaimName": "a"}}});
    let new = json!({"spec": {"source": {"persistentVolumeClaimName": "b"}}});
    let refusal = refused(VOLUME_SNAPSHOTS, &request(&world, Some(&old), PERSON), &new);
    assert!(
        refusal.contains("persistentVolumeClaimName is immutable"),
        "{refusal}"
    );
}
