//! Wrong machines and what they are told. Each line of the tables is one wrong thing in a machine that is right otherwise.

use fairway_text_yaml as yaml;
use serde_json::{Value, json};

use super::*;
use crate::defaults;
use crate::view::{self, VirtualMachine};

fn object(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

/// A merge in the sense of RFC 7386, but that a list is put in place as a whole.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn base() -> Value {
    object(
        "
domain:
  cpu: {cores: 1}
  memory: {guest: 1Gi}
  devices:
    disks: [{name: root, disk: {bus: virtio}}]
    interfaces: [{name: default, masquerade: {}}]
networks: [{name: default, pod: {}}]
volumes: [{name: root, containerDisk: {image: 'registry/tiny:v1'}}]
",
    )
}

fn told(causes: &[Cause]) -> Vec<String> {
    causes
        .iter()
        .map(|it| format!("{} {}: {}", it.kind.reason(), it.field, it.message))
        .collect()
}

fn check_instance(settings: &Settings, change: &str) -> Vec<String> {
    let mut spec = base();
    merge(&mut spec, object(change));
    let mut vmi = json!({"metadata": {"name": "vm"}, "spec": spec});
    defaults::instance(&mut vmi, settings).unwrap();
    let seen: view::VirtualMachineInstance = view::read("VirtualMachineInstance", &vmi).unwrap();
    told(&instance(&seen.spec, &seen.metadata, settings, false))
}

#[test]
fn a_machine_without_fault() {
    assert_eq!(check_instance(&Settings::default(), "{}"), Vec::<String>::new());
}

#[test]
fn wrong_instances() {
    let table = include_str!("tests/instances.txt");
    check_table(table, |change| check_instance(&Settings::default(), change));
}

#[test]
fn wrong_machines() {
    let table = include_str!("tests/machines.txt");
    check_table(table, |change| {
        let mut vm = json!({"spec": {"runStrategy": "Always", "template": {"spec": base()}}});
        merge(&mut vm["spec"], object(change));
        if vm["spec"]["runStrategy"] == "" {
            vm["spec"].as_object_mut().unwrap().shift_remove("runStrategy");
        }
        if vm["spec"]["template"] == "" {
            vm["spec"].as_object_mut().unwrap().shift_remove("template");
        } else {
            defaults::instance_spec(&mut vm["spec"]["template"]["spec"], &Settings::default()).unwrap();
        }
        let vm: VirtualMachine = view::read("VirtualMachine", &vm).unwrap();
        told(&virtual_machine(&vm.spec, &Settings::default(), false))
    });
}

/// Blocks of a change and what it is told, separated by empty lines.
fn check_table(table: &str, told: impl Fn(&str) -> Vec<String>) {
    let mut count = 0;
    let mut wrong = String::new();
    for block in table.split("\n\n").filter(|it| !it.trim().is_empty()) {
        let mut lines = block.trim().lines().filter(|it| !it.starts_with('#'));
        let change = lines.next().unwrap();
        let expected: Vec<&str> = lines.collect();
        let found = told(change);
        if found != expected {
            wrong += &format!(
                "{change}\nexpected:\n{}\nfound:\n{}\n\n",
                expected.join("\n"),
                found.join("\n")
            );
        }
        count += 1;
    }
    assert_eq!(wrong, "");
    assert!(count > 3, "the table was read");
}

#[test]
fn settings_open_and_close() {
    let mut settings = Settings::default();
    let host = "{volumes: [{name: root, hostDisk: {path: /data, type: DiskOrCreate, capacity: 1Gi}}]}";
    assert_eq!(
        check_instance(&settings, host),
        ["FieldValueInvalid spec.volumes[0]: HostDisk feature gate is not enabled"]
    );
    settings.feature_gates.insert("HostDisk".to_owned());
    assert_eq!(check_instance(&settings, host), Vec::<String>::new());

    let tpm = "{domain: {devices: {tpm: {persistent: true}}}}";
    assert_eq!(check_instance(&settings, tpm), Vec::<String>::new());
    settings.feature_gates.remove("VMPersistentState");
    assert_eq!(check_instance(&settings, tpm).len(), 1);

    // A machine that cannot grow must keep within its limit.
    let tight = "{domain: {memory: {guest: 2Gi}, resources: {limits: {memory: 1Gi}}}}";
    assert_eq!(check_instance(&settings, tight), Vec::<String>::new());
    settings.live_update = false;
    assert_eq!(
        check_instance(&settings, tight),
        [
            "FieldValueInvalid spec.domain.memory.guest: spec.domain.memory.guest '2Gi' must be equal to or less than the \
          memory limit spec.domain.resources.limits.memory '1Gi'"
        ]
    );
}

#[test]
fn ten_causes_are_told() {
    let cause = |number: usize| Cause {
        kind: CauseType::Invalid,
        message: format!("m{number}"),
        field: String::new(),
    };
    let causes: Vec<Cause> = (0..12).map(cause).collect();
    assert_eq!(message(&causes[..1]), "m0");
    assert_eq!(message(&causes[..2]), "m0, m1");
    assert!(message(&causes).ends_with("m9, and 2 more validation errors"));
}

#[test]
fn running_is_old() {
    let spec = VirtualMachineSpec {
        running: Some(true),
        ..VirtualMachineSpec::default()
    };
    assert_eq!(
        warnings(&spec),
        ["spec.running is deprecated, please use spec.runStrategy instead."]
    );
    assert_eq!(warnings(&VirtualMachineSpec::default()), Vec::<String>::new());
}
