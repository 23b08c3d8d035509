//! The instance that a VirtualMachine starts.

use serde_json::{Value, json};
use thiserror::Error;

use crate::defaults::{self, DefaultsError};
use crate::edit::{at, is_set, set, set_if_unset};
use crate::instancetype::{self, Conflicts};
use crate::settings::Settings;
use crate::view::{InstancetypeSpec, PreferenceSpec};
use crate::{identity, lifecycle};

/// The generation of the machine that an instance was made of.
pub const GENERATION_ANNOTATION: &str = "kubevirt.io/vm-generation";

/// Why no instance can be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InstanceError {
    /// The machine clashes with its size.
    #[error("Error creating virtual machine instance: Failed to apply instancetype")]
    Conflicts(#[source] Conflicts),
    /// Settings do not let it have what it needs.
    #[error("Error creating virtual machine instance: its defaults cannot be filled in")]
    Defaults(#[source] DefaultsError),
    /// There is nothing to make it of.
    #[error("Error creating virtual machine instance: the machine has no template")]
    NoTemplate,
}

/// Makes an instance, before the defaults that it gets when it is written.
///
/// The order is upstream's: a taste may say that cards and pointers are not added, so it comes first; what was added is
/// then subject to size and taste like everything else.
pub fn of_machine(
    vm: &Value,
    size: Option<&InstancetypeSpec>,
    taste: Option<&PreferenceSpec>,
    settings: &Settings,
    paused: bool,
) -> Result<Value, InstanceError> {
    let mut template = at(vm, &["spec", "template"])
        .cloned()
        .ok_or(InstanceError::NoTemplate)?;
    if !template["spec"].is_object() {
        return Err(InstanceError::NoTemplate);
    }
    instancetype::expand(&mut template, None, taste).map_err(InstanceError::Conflicts)?;
    let spec = &mut template["spec"];
    defaults::volume_disks(spec);
    let pointer = at(spec, &["domain", "devices", "autoattachInputDevice"]) == Some(&Value::Bool(true));
    if pointer && !is_set(spec, &["domain", "devices", "inputs"]) {
        set(
            spec,
            &["domain", "devices", "inputs"],
            json!([{"name": "default-0"}]),
        );
    }
    defaults::network_interface(spec, settings).map_err(InstanceError::Defaults)?;
    instancetype::expand(&mut template, size, taste).map_err(InstanceError::Conflicts)?;
    let name = vm["metadata"]["name"].as_str().unwrap_or_default();
    let spec = &mut template["spec"];
    if paused {
        set(spec, &["startStrategy"], "Paused");
    }
    set_if_unset(
        spec,
        &["domain", "firmware", "uuid"],
        identity::firmware_uuid(name),
    );
    let mut vmi = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata(vm, &template),
        "spec": template["spec"],
    });
    size_annotation(vm, &mut vmi);
    Ok(vmi)
}

fn metadata(vm: &Value, template: &Value) -> Value {
    let mut metadata = json!({
        "name": vm["metadata"]["name"],
        "namespace": vm["metadata"]["namespace"],
        "finalizers": [lifecycle::FINALIZER],
        "ownerReferences": [{
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "name": vm["metadata"]["name"],
            "uid": vm["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    for field in ["labels", "annotations"] {
        if let Some(own) = at(template, &["metadata", field]) {
            metadata[field] = own.clone();
        }
    }
    let generation = vm["metadata"]["generation"].as_i64().unwrap_or(0).to_string();
    set(&mut metadata, &["annotations", GENERATION_ANNOTATION], generation);
    metadata
}

fn size_annotation(vm: &Value, vmi: &mut Value) {
    let Some(size) = at(vm, &["spec", "instancetype"]) else {
        return;
    };
    let kind = size["kind"].as_str().unwrap_or_default().to_lowercase();
    let annotation = match kind.as_str() {
        "virtualmachineinstancetype" | "virtualmachineinstancetypes" => "kubevirt.io/instancetype-name",
        _ => "kubevirt.io/cluster-instancetype-name",
    };
    set(
        vmi,
        &["metadata", "annotations", annotation],
        size["name"].clone(),
    );
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fairway_text_yaml as yaml;

    use super::*;

    fn object(text: &str) -> Value {
        yaml::from_str(text, yaml::Limits::default()).unwrap()
    }

    #[test]
    fn an_instance_belongs_to_its_machine() {
        let vm = object(
            "
metadata: {name: web, namespace: vms, uid: u-1, generation: 7}
spec:
  instancetype: {name: small}
  template:
    metadata: {labels: {app: web}}
    spec: {domain: {devices: {autoattachInputDevice: true}}, volumes: [{name: root, dataVolume: {name: root}}]}
",
        );
        let size: InstancetypeSpec =
            serde_json::from_value(object("{cpu: {guest: 2}, memory: {guest: 1Gi}}")).unwrap();
        let taste = object(
            "{devices: {preferredDiskBus: virtio, preferredInputBus: virtio, preferredAutoattachPodInterface: false}}",
        );
        let taste: PreferenceSpec = serde_json::from_value(taste).unwrap();
        let vmi = of_machine(&vm, Some(&size), Some(&taste), &Settings::default(), true).unwrap();
        expect![[r#"
            {
              "apiVersion": "kubevirt.io/v1",
              "kind": "VirtualMachineInstance",
              "metadata": {
                "name": "web",
                "namespace": "vms",
                "finalizers": [
                  "kubevirt.io/virtualMachineControllerFinalize"
                ],
                "ownerReferences": [
                  {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine",
                    "name": "web",
                    "uid": "u-1",
                    "controller": true,
                    "blockOwnerDeletion": true
                  }
                ],
                "labels": {
                  "app": "web"
                },
                "annotations": {
                  "kubevirt.io/vm-generation": "7",
                  "kubevirt.io/cluster-instancetype-name": "small"
                }
              },
              "spec": {
                "domain": {
                  "devices": {
                    "autoattachInputDevice": true,
                    "autoattachPodInterface": false,
                    "disks": [
                      {
                        "name": "root",
                        "disk": {
                          "bus": "virtio"
                        }
                      }
                    ],
                    "inputs": [
                      {
                        "name": "default-0",
                        "bus": "virtio"
                      }
                    ]
                  },
                  "cpu": {
                    "sockets": 2,
                    "cores": 1,
                    "threads": 1
                  },
                  "memory": {
                    "guest": "1Gi"
                  },
                  "firmware": {
                    "uuid": "d32ff544-f682-571b-8677-3762f07ab8a4"
                  }
                },
                "volumes": [
                  {
                    "name": "root",
                    "dataVolume": {
                      "name": "root"
                    }
                  }
                ],
                "startStrategy": "Paused"
              }
            }
        "#]]
        .assert_eq(&format!("{vmi:#}\n"));
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let none = of_machine(&json!({"spec": {}}), None, None, &Settings::default(), false);
        assert_eq!(none, Err(InstanceError::NoTemplate));
        let vm = object(
            "{metadata: {name: web}, spec: {template: {spec: {domain: {cpu: {cores: 1}, devices: {}}}}}}",
        );
        let size: InstancetypeSpec =
            serde_json::from_value(object("{cpu: {guest: 2}, memory: {guest: 1Gi}}")).unwrap();
        let clash = of_machine(&vm, Some(&size), None, &Settings::default(), false).unwrap_err();
        let InstanceError::Conflicts(fields) = clash else {
            panic!("{clash}");
        };
        assert_eq!(fields.0, ["spec.template.spec.domain.cpu.cores"]);
    }
}
