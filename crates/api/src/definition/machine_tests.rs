//! The definitions of virtual machines' kinds: valid, complete, and apart from the others.

use fairway_kernel_schema::crd;
use fairway_kernel_schema::structural::{Budget, Structural};

use super::*;
use crate::Kind;

fn of(kind: &str) -> Definition {
    machine_definitions()
        .into_iter()
        .find(|it| it.kind().kind == kind)
        .unwrap()
}

fn schema(definition: &Definition) -> Value {
    definition.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn every_definition_is_a_valid_one() {
    for definition in machine_definitions() {
        let mut whole = definition.crd();
        let name = whole["metadata"]["name"].clone();
        crd::set_defaults(&mut whole);
        crd::prepare_for_create(&mut whole);
        assert_eq!(crd::validate(&whole), [], "{name}");
        assert!(
            schema(&definition)["description"].is_string(),
            "{name} is not described"
        );
        Structural::load_shared(&definition.schema()).unwrap();
        crd::CrdSpec::parse(&definition.head()).unwrap();
    }
}

#[test]
fn names_are_those_of_the_definitions() {
    for Kind {
        group,
        version,
        kind,
        plural,
    } in [
        kubevirt::VIRTUAL_MACHINE,
        kubevirt::VIRTUAL_MACHINE_INSTANCE,
        kubevirt::VIRTUAL_MACHINE_INSTANCE_MIGRATION,
        kubevirt::KUBE_VIRT,
        kubevirt::DATA_VOLUME,
        kubevirt::DATA_SOURCE,
        kubevirt::NETWORK_ATTACHMENT_DEFINITION,
        kubevirt::HYPER_CONVERGED,
    ] {
        let definition = of(kind);
        let facts = definition.kind();
        assert_eq!(
            (definition.group(), facts.version, facts.plural),
            (group, version, plural)
        );
    }
    let known: Vec<&str> = machine_definitions().iter().map(|it| it.kind().kind).collect();
    assert_eq!(known.len(), 23, "{known:?}");
}

#[test]
fn no_kind_is_defined_twice() {
    let served = definitions();
    for definition in machine_definitions() {
        let kind = definition.kind().kind;
        assert!(!served.iter().any(|it| it.kind().kind == kind), "{kind}");
    }
}

#[test]
fn upstreams_words_are_there() {
    let vm = of("VirtualMachine");
    assert_eq!(vm.kind().short_names, ["vm", "vms"]);
    assert_eq!(vm.kind().categories, ["all"]);
    assert!(vm.kind().status && vm.kind().namespaced);
    let columns: Vec<&str> = vm.kind().columns.iter().map(|it| it.name).collect();
    assert_eq!(columns, ["Age", "Status", "Ready"]);
    let vmi = of("VirtualMachineInstance");
    assert!(!vmi.kind().status, "upstream writes status and labels at once");
    assert_eq!(vmi.kind().columns[2].path, ".status.interfaces[0].ipAddress");
    assert!(!of("VirtualMachineClusterPreference").kind().namespaced);
    let dv = of("DataVolume");
    let columns: Vec<&str> = dv.kind().columns.iter().map(|it| it.name).collect();
    assert_eq!(columns, ["Phase", "Progress", "Restarts", "Age"]);
}

#[test]
fn fingerprints_tell_files_apart_without_reading_them() {
    let mut apart: Vec<u64> = machine_definitions()
        .iter()
        .map(Definition::fingerprint)
        .collect();
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), 8);
    for source in kubevirt::SOURCES
        .iter()
        .filter(|it| it.group != kubevirt::HCO_GROUP)
    {
        assert!(
            source.facts.lines().next().unwrap().contains(" sum="),
            "{}",
            source.group
        );
    }
}

/// Unknown fields, then errors.
fn verdict(kind: &str, mut object: Value) -> Vec<String> {
    let structural = Structural::load_shared(&of(kind).schema()).unwrap();
    let mut found = structural.prune(&mut object);
    let errors = structural.validate(&object, None, &mut Budget::default());
    found.extend(errors.iter().map(ToString::to_string));
    found
}

#[test]
fn machines_that_people_write() {
    let domain =
        |more: Value| json!({"spec": {"runStrategy": "Always", "template": {"spec": {"domain": more}}}});
    let cases: [(&str, Value, &[&str]); 6] = [
        (
            "VirtualMachine",
            domain(json!({
                "cpu": {"cores": 4, "dedicatedCpuPlacement": true},
                "memory": {"guest": "8Gi"},
                "resources": {"requests": {"cpu": 2, "memory": "4Gi"}},
                "devices": {"disks": [{"name": "a", "disk": {"bus": "virtio"}}], "autoattachPodInterface": false},
            })),
            &[],
        ),
        (
            "VirtualMachine",
            domain(json!({"devices": {}, "cpus": 4})),
            &["spec.template.spec.domain.cpus"],
        ),
        (
            "VirtualMachine",
            json!({"spec": {}}),
            &["spec.template: Required value"],
        ),
        (
            "VirtualMachineInstancetype",
            json!({"spec": {"cpu": {"guest": 1}, "memory": {"guest": "1Gi", "overcommitPercent": 101}}}),
            &[
                "spec.memory.overcommitPercent: Invalid value: 101: spec.memory.overcommitPercent in body should be less than or equal to 100",
            ],
        ),
        (
            "DataVolume",
            json!({"spec": {"source": {"http": {"url": "u"}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}),
            &[],
        ),
        (
            "HyperConverged",
            json!({"spec": {"infra": {"nodePlacement": {"nodeSelector": {"a": ""}}}, "new": 1}}),
            &[],
        ),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(verdict(kind, object.clone()), expected, "{kind} {object}");
    }
}
