//! A VirtualMachine with its size and its taste written out, as people ask to see it (`expand-spec`).

use serde_json::Value;
use thiserror::Error;

use crate::defaults::{self, DefaultsError};
use crate::edit::at;
use crate::instancetype::{self, Conflicts};
use crate::settings::Settings;
use crate::view::{InstancetypeSpec, PreferenceSpec};

/// Why a machine cannot be written out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpandError {
    /// The machine clashes with its size.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// Settings do not let it have what it needs.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// There is nothing to write it into.
    #[error("the VirtualMachine has no template")]
    NoTemplate,
}

/// Writes a machine out: nothing in the result depends on a size or a taste any more. One that has neither stays as it is.
pub fn machine(
    vm: &Value,
    size: Option<&InstancetypeSpec>,
    taste: Option<&PreferenceSpec>,
    settings: &Settings,
) -> Result<Value, ExpandError> {
    let mut vm = vm.clone();
    if at(&vm, &["spec", "instancetype"]).is_none() && at(&vm, &["spec", "preference"]).is_none() {
        return Ok(vm);
    }
    let template = vm
        .pointer_mut("/spec/template")
        .filter(|it| it["spec"].is_object());
    let template = template.ok_or(ExpandError::NoTemplate)?;
    let spec = &mut template["spec"];
    defaults::volume_disks(spec);
    defaults::network_interface(spec, settings)?;
    instancetype::expand(template, size, taste)?;
    // After the size, lest they clash with it.
    defaults::instance_spec(&mut template["spec"], settings)?;
    for (part, field) in [
        ("spec", "instancetype"),
        ("spec", "preference"),
        ("status", "instancetypeRef"),
        ("status", "preferenceRef"),
    ] {
        if let Some(part) = vm.get_mut(part).and_then(Value::as_object_mut) {
            part.shift_remove(field);
        }
    }
    Ok(vm)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fairway_text_yaml as yaml;

    use super::*;

    fn object(text: &str) -> Value {
        yaml::from_str(text, yaml::Limits::default()).unwrap()
    }

    fn size(text: &str) -> InstancetypeSpec {
        serde_json::from_value(object(text)).unwrap()
    }

    #[test]
    fn sizes_and_tastes_are_written_out() {
        let vm = object(
            "
metadata: {name: web}
spec:
  runStrategy: Always
  instancetype: {name: small}
  preference: {name: linux}
  template: {spec: {domain: {devices: {}}, volumes: [{name: root, containerDisk: {image: 'x:1'}}]}}
status: {printableStatus: Running, instancetypeRef: {name: small}}
",
        );
        let taste = object("{devices: {preferredDiskBus: virtio}}");
        let taste: PreferenceSpec = serde_json::from_value(taste).unwrap();
        let size = size("{cpu: {guest: 2}, memory: {guest: 1Gi}}");
        let expanded = machine(&vm, Some(&size), Some(&taste), &Settings::default()).unwrap();
        expect![[r#"
            metadata:
              name: web
            spec:
              runStrategy: Always
              template:
                spec:
                  architecture: amd64
                  domain:
                    cpu:
                      cores: 1
                      sockets: 2
                      threads: 1
                    devices:
                      disks:
                      - disk:
                          bus: virtio
                        name: root
                      interfaces:
                      - bridge: {}
                        name: default
                    machine:
                      type: q35
                    memory:
                      guest: 1Gi
                    resources:
                      requests:
                        memory: 1Gi
                  networks:
                  - name: default
                    pod: {}
                  volumes:
                  - containerDisk:
                      image: x:1
                      imagePullPolicy: IfNotPresent
                    name: root
            status:
              printableStatus: Running
        "#]]
        .assert_eq(&yaml::to_string(&expanded));
    }

    #[test]
    fn one_without_stays_as_it_is() {
        let vm = object("{spec: {template: {spec: {domain: {}}}}}");
        assert_eq!(machine(&vm, None, None, &Settings::default()), Ok(vm.clone()));
    }

    #[test]
    fn what_clashes_is_told() {
        let vm = object(
            "{spec: {instancetype: {name: small}, template: {spec: {domain: {cpu: {cores: 2}, memory: {guest: 1Gi}}}}}}",
        );
        let size = size("{cpu: {guest: 2}, memory: {guest: 1Gi}}");
        let refused = machine(&vm, Some(&size), None, &Settings::default()).unwrap_err();
        expect!["VM field(s) spec.template.spec.domain.cpu.cores, spec.template.spec.domain.memory conflicts with selected instance type"].assert_eq(&refused.to_string());
        let bare = object("{spec: {instancetype: {name: small}}}");
        let refused = machine(&bare, Some(&size), None, &Settings::default());
        assert_eq!(refused, Err(ExpandError::NoTemplate));
    }
}
