//! Machines that people wrote, where `FAIRWAY_CONFORMANCE` names the folder that has them: each is a machine that QEMU can
//! be told of, and only what is known to be wrong with one is found to be wrong.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use fairway_machines_plan::argv::{self, Accelerator, Backing, Format, Host, Layout, Sockets};
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view::{self, VirtualMachine, VirtualMachineInstance};
use fairway_machines_plan::{defaults, validate};
use serde_json::{Value, json};

#[test]
fn machines_of_the_conformance_data() {
    let Some(folder) = std::env::var_os("FAIRWAY_CONFORMANCE") else {
        println!("SKIPPED: FAIRWAY_CONFORMANCE does not name a folder with machines");
        return;
    };
    let mut found = BTreeMap::new();
    machines(&Path::new(&folder).join("seeds"), &mut found);
    assert!(!found.is_empty(), "there are machines in {folder:?}");
    for (file, vm) in &found {
        check(file, vm);
    }
}

/// VirtualMachines in the files of a folder and those below, also inside of other objects.
fn machines(folder: &Path, found: &mut BTreeMap<String, Value>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            machines(&path, found);
        } else if path.extension().is_some_and(|it| it == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok(object) = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default()) else {
                continue;
            };
            inside(&path.display().to_string(), &object, found);
        }
    }
}

fn inside(name: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    if value["kind"] == "VirtualMachine" && value["apiVersion"] == "kubevirt.io/v1" {
        found.insert(format!("{name} ({})", found.len()), value.clone());
        return;
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|it| inside(name, it, found)),
        Value::Array(items) => items.iter().for_each(|it| inside(name, it, found)),
        _ => {}
    }
}

fn check(file: &str, vm: &Value) {
    let settings = Settings::default();
    let mut vm = vm.clone();
    // One inside of another object gets its name and size later.
    if vm["metadata"]["name"].is_null() {
        vm["metadata"] = json!({"name": "composed", "namespace": "default"});
        vm["spec"]["template"]["spec"]["domain"]["resources"] = json!({"requests": {"memory": "1Gi"}});
    }
    defaults::machine(&mut vm, &settings, None);
    let mut template = vm["spec"]["template"]["spec"].clone();
    defaults::instance_spec(&mut template, &settings).unwrap();
    let mut complete = vm.clone();
    complete["spec"]["template"]["spec"] = template;
    let read: VirtualMachine = view::read("VirtualMachine", &complete).unwrap();
    let causes = validate::virtual_machine(&read.spec, &settings, false);
    let told: Vec<&str> = causes.iter().map(|it| it.message.as_str()).collect();
    let without_strategy = vm["spec"]["running"].is_null() && vm["spec"]["runStrategy"].is_null();
    let expected: &[&str] = if without_strategy {
        &["RunStrategy must be specified"]
    } else {
        &[]
    };
    assert_eq!(told, expected, "{file}");

    let mut vmi = json!({"metadata": vm["metadata"], "spec": vm["spec"]["template"]["spec"]});
    defaults::instance(&mut vmi, &settings).unwrap();
    let vmi: VirtualMachineInstance = view::read("VirtualMachineInstance", &vmi).unwrap();
    let causes = validate::instance(&vmi.spec, &vmi.metadata, &settings, true);
    assert_eq!(causes, [], "{file}");
    let planned = plan(&vmi, Origin::default(), &Capabilities::default(), &settings);
    assert_eq!(planned.unsupported, [], "{file}");
    let layout = Layout::of(&planned).unwrap();
    let backing = |name: &str| Backing {
        file: format!("/disks/{name}"),
        format: Format::Qcow2,
        block_device: false,
        direct: true,
    };
    let socket = |name: &str| format!("{name}.sock");
    let host = Host {
        sockets: Sockets {
            serial: socket("serial"),
            agent: socket("agent"),
            vnc: socket("vnc"),
            tpm: socket("tpm"),
        },
        accelerator: Accelerator::Tcg,
        taps: std::collections::BTreeMap::new(),
        backings: planned
            .disks
            .iter()
            .map(|it| (it.name.clone(), backing(&it.name)))
            .collect(),
        firmware: None,
        kernel: None,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        incoming: false,
        stopped: false,
    };
    let arguments = argv::argv(&planned, &host, &layout).unwrap();
    assert!(
        arguments.iter().any(|it| it == "-machine"),
        "{file}: {arguments:?}"
    );
}
