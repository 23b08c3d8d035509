//! What objects get, by examples.

use expect_test::{Expect, expect};
use fairway_text_yaml as yaml;

use super::*;

fn object(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

fn check_instance(settings: &Settings, spec: &str, expected: &Expect) {
    let mut vmi = json!({"metadata": {"name": "vm"}, "spec": object(spec)});
    match instance(&mut vmi, settings) {
        Ok(()) => {
            vmi.as_object_mut().unwrap().shift_remove("metadata");
            expected.assert_eq(&format!("{vmi:#}\n"));
        }
        Err(error) => expected.assert_eq(&format!("error: {error}\n")),
    }
}

#[test]
fn an_instance_with_little_said() {
    let spec = "domain: {memory: {guest: 1Gi}, devices: {}}\nvolumes: [{name: root, containerDisk: {image: registry/tiny}}]";
    check_instance(
        &Settings::default(),
        spec,
        &expect![[r#"
        {
          "spec": {
            "domain": {
              "memory": {
                "guest": "1Gi",
                "maxGuest": "4Gi"
              },
              "devices": {
                "interfaces": [
                  {
                    "name": "default",
                    "bridge": {}
                  }
                ],
                "disks": [
                  {
                    "name": "root",
                    "disk": {
                      "bus": "sata"
                    }
                  }
                ]
              },
              "machine": {
                "type": "q35"
              },
              "resources": {
                "requests": {
                  "memory": "1Gi"
                }
              },
              "cpu": {
                "sockets": 1,
                "cores": 1,
                "threads": 1,
                "model": "host-model",
                "maxSockets": 4
              },
              "firmware": {
                "uuid": "d633a622-2335-5606-93ae-d432b7c7f2d2"
              },
              "features": {
                "acpi": {
                  "enabled": true
                }
              }
            },
            "volumes": [
              {
                "name": "root",
                "containerDisk": {
                  "image": "registry/tiny",
                  "imagePullPolicy": "Always"
                }
              }
            ],
            "architecture": "amd64",
            "networks": [
              {
                "name": "default",
                "pod": {}
              }
            ]
          },
          "status": {
            "currentCPUTopology": {
              "sockets": 1,
              "cores": 1,
              "threads": 1
            },
            "memory": {
              "guestAtBoot": "1Gi",
              "guestCurrent": "1Gi",
              "guestRequested": "1Gi"
            }
          }
        }
    "#]],
    );
}

#[test]
fn what_is_said_stays() {
    let spec = "
domain:
  cpu: {cores: 2, model: Nehalem}
  resources: {limits: {memory: 256M, cpu: 3}}
  devices:
    autoattachPodInterface: false
    disks: [{name: cd, cdrom: {}}, {name: root, disk: {bus: virtio}}]
    inputs: [{name: tablet}]
    watchdog: {name: dog}
  features: {hyperv: {spinlocks: {}, relaxed: {enabled: false}}, smm: {}}
  clock: {timer: {hpet: {present: false}, rtc: {}}}
readinessProbe: {tcpSocket: {port: 22}, periodSeconds: 20}
volumes: [{name: root, containerDisk: {image: 'registry/tiny:v1'}}, {name: cd, emptyDisk: {capacity: 1Gi}}]
";
    check_instance(
        &Settings::default(),
        spec,
        &expect![[r#"
        {
          "spec": {
            "domain": {
              "cpu": {
                "cores": 2,
                "model": "Nehalem"
              },
              "resources": {
                "limits": {
                  "memory": "256M",
                  "cpu": 3
                },
                "requests": {
                  "cpu": 3,
                  "memory": "256M"
                }
              },
              "devices": {
                "autoattachPodInterface": false,
                "disks": [
                  {
                    "name": "cd",
                    "cdrom": {
                      "readonly": true,
                      "tray": "closed",
                      "bus": "sata"
                    }
                  },
                  {
                    "name": "root",
                    "disk": {
                      "bus": "virtio"
                    }
                  }
                ],
                "inputs": [
                  {
                    "name": "tablet",
                    "bus": "usb",
                    "type": "tablet"
                  }
                ],
                "watchdog": {
                  "name": "dog",
                  "i6300esb": {
                    "action": "reset"
                  }
                }
              },
              "features": {
                "hyperv": {
                  "spinlocks": {
                    "enabled": true,
                    "spinlocks": 4096
                  },
                  "relaxed": {
                    "enabled": false
                  }
                },
                "smm": {
                  "enabled": true
                },
                "acpi": {
                  "enabled": true
                }
              },
              "clock": {
                "timer": {
                  "hpet": {
                    "present": false
                  },
                  "rtc": {
                    "present": true
                  }
                }
              },
              "machine": {
                "type": "q35"
              },
              "memory": {
                "guest": "256M"
              },
              "firmware": {
                "uuid": "d633a622-2335-5606-93ae-d432b7c7f2d2"
              }
            },
            "readinessProbe": {
              "tcpSocket": {
                "port": 22
              },
              "periodSeconds": 20,
              "timeoutSeconds": 1,
              "successThreshold": 1,
              "failureThreshold": 3
            },
            "volumes": [
              {
                "name": "root",
                "containerDisk": {
                  "image": "registry/tiny:v1",
                  "imagePullPolicy": "IfNotPresent"
                }
              },
              {
                "name": "cd",
                "emptyDisk": {
                  "capacity": "1Gi"
                }
              }
            ],
            "architecture": "amd64"
          },
          "status": {
            "currentCPUTopology": {
              "cores": 2
            },
            "memory": {
              "guestAtBoot": "256M",
              "guestCurrent": "256M",
              "guestRequested": "256M"
            }
          }
        }
    "#]],
    );
}

#[test]
fn settings_decide() {
    let mut settings = Settings {
        memory_overcommit: 150,
        cpu_request: Some("250m".to_owned()),
        cpu_model: Some("Haswell".to_owned()),
        live_update: false,
        eviction_strategy: Some("LiveMigrate".to_owned()),
        default_binding: DefaultBinding::Masquerade,
        ..Settings::default()
    };
    let spec = "domain: {memory: {guest: 3Gi}, devices: {}}";
    check_instance(
        &settings,
        spec,
        &expect![[r#"
        {
          "spec": {
            "domain": {
              "memory": {
                "guest": "3Gi"
              },
              "devices": {
                "interfaces": [
                  {
                    "name": "default",
                    "masquerade": {}
                  }
                ]
              },
              "machine": {
                "type": "q35"
              },
              "resources": {
                "requests": {
                  "memory": "2Gi",
                  "cpu": "250m"
                }
              },
              "cpu": {
                "sockets": 1,
                "cores": 1,
                "threads": 1,
                "model": "Haswell"
              },
              "firmware": {
                "uuid": "d633a622-2335-5606-93ae-d432b7c7f2d2"
              },
              "features": {
                "acpi": {
                  "enabled": true
                }
              }
            },
            "architecture": "amd64",
            "evictionStrategy": "LiveMigrate",
            "networks": [
              {
                "name": "default",
                "pod": {}
              }
            ]
          },
          "status": {
            "currentCPUTopology": {
              "sockets": 1,
              "cores": 1,
              "threads": 1
            },
            "memory": {
              "guestAtBoot": "3Gi",
              "guestCurrent": "3Gi",
              "guestRequested": "3Gi"
            }
          }
        }
    "#]],
    );
    settings.default_binding = DefaultBinding::Bridge;
    settings.bridge_on_pod_network = false;
    check_instance(
        &settings,
        spec,
        &expect![[r#"
        error: bridge interface is not enabled in kubevirt-config
    "#]],
    );
    settings.default_binding = DefaultBinding::Slirp;
    check_instance(
        &settings,
        spec,
        &expect![[r#"
        error: slirp interface is deprecated as of v1.3
    "#]],
    );
}

#[test]
fn growth_has_bounds() {
    // Guest, settings' maximum, and what becomes of it.
    for (guest, most, sockets, expected) in [
        ("1Gi", None, 2, (Some("4Gi"), 8)),
        ("512Mi", None, 1, (None, 4)),
        ("1025M", None, 1, (None, 4)),
        ("2Gi", Some("3Gi"), 200, (Some("3Gi"), 512)),
        ("4Gi", Some("3Gi"), 600, (None, 600)),
    ] {
        let settings = Settings {
            max_guest: most.map(|it| serde_json::from_value(json!(it)).unwrap()),
            ..Settings::default()
        };
        let mut vmi = json!({"spec": {"domain": {"memory": {"guest": guest}, "cpu": {"sockets": sockets}}}});
        instance(&mut vmi, &settings).unwrap();
        let domain = &vmi["spec"]["domain"];
        let found = (
            domain["memory"]["maxGuest"].as_str(),
            domain["cpu"]["maxSockets"].as_u64().unwrap(),
        );
        assert_eq!(found, expected, "{guest} {most:?} {sockets}");
    }
}

#[test]
fn a_machine() {
    let mut vm = object(
        "
spec:
  instancetype: {name: u1.small}
  preference: {name: linux, kind: VirtualMachinePreference}
  template: {spec: {domain: {devices: {}}}}
  dataVolumeTemplates: [{metadata: {name: a}, spec: {storage: {}}}, {metadata: {name: b}, spec: {pvc: {storageClassName: x}}}]
",
    );
    let preference = json!({"machine": {"preferredMachineType": "pc-q35-7.2"}, "volumes": {"preferredStorageClassName": "fast"}});
    let preference: PreferenceSpec = serde_json::from_value(preference).unwrap();
    machine(&mut vm, &Settings::default(), Some(&preference));
    expect![[r#"
        {"spec":{"instancetype":{"name":"u1.small","kind":"virtualmachineclusterinstancetype"},"preference":{"name":"linux","kind":"VirtualMachinePreference"},"template":{"spec":{"domain":{"devices":{},"machine":{"type":"pc-q35-7.2"}},"architecture":"amd64"}},"dataVolumeTemplates":[{"metadata":{"name":"a"},"spec":{"storage":{"storageClassName":"fast"}}},{"metadata":{"name":"b"},"spec":{"pvc":{"storageClassName":"x"}}}]}}
    "#]].assert_eq(&format!("{vm}\n"));
    // What has no template is left to validation.
    let mut empty = json!({"spec": {}});
    machine(&mut empty, &Settings::default(), None);
    assert_eq!(empty, json!({"spec": {}}));
}
