//! Statuses, word for word.

use expect_test::expect;
use fairway_machines_plan::phase::{self, Observed, Placement, Process};
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view;
use fairway_machines_qemu::agent::{Interface, OsInfo};

use super::*;

fn instance(phase: &str) -> VirtualMachineInstance {
    let object = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "u"},
        "spec": {
            "domain": {
                "cpu": {"sockets": 2, "cores": 1, "threads": 1, "maxSockets": 4},
                "memory": {"guest": "1Gi"},
                "resources": {"requests": {"memory": "1Gi"}},
                "devices": {
                    "disks": [
                        {"name": "root", "disk": {"bus": "virtio"}},
                        {"name": "cd", "cdrom": {"bus": "sata"}},
                        {"name": "data", "disk": {"bus": "scsi"}},
                    ],
                    "interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:05"}],
                },
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [
                {"name": "root", "dataVolume": {"name": "root"}},
                {"name": "cd", "cloudInitNoCloud": {"userData": "x"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data", "hotpluggable": true}},
            ],
        },
        "status": {"phase": phase},
    });
    view::read("VirtualMachineInstance", &object).unwrap()
}

fn shown(before: &Value, phase: &str, process: Process, runs: Option<(&Live, &Guest)>) -> String {
    let vmi = instance(phase);
    let plan = plan(
        &vmi,
        Origin::default(),
        &Capabilities::default(),
        &Settings::default(),
    );
    let decision = phase::decide(&Observed {
        vmi: &vmi,
        placement: Placement::Node("a".to_owned()),
        disks: None,
        agent: false,
        process,
        probe: None,
        lifeless: false,
        plan: &plan,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        asked_to_stop: None,
    });
    let volumes = BTreeMap::from([
        (
            "root".to_owned(),
            VolumeFacts {
                size: Some(1 << 30),
                claim: Some(json!({"claimName": "root"})),
                hotplug: None,
                ..VolumeFacts::default()
            },
        ),
        (
            "cd".to_owned(),
            VolumeFacts {
                size: Some(4096),
                ..VolumeFacts::default()
            },
        ),
        (
            "data".to_owned(),
            VolumeFacts {
                hotplug: Some(Hotplug::Ready),
                ..VolumeFacts::default()
            },
        ),
        (
            "old".to_owned(),
            VolumeFacts {
                hotplug: Some(Hotplug::Detaching),
                ..VolumeFacts::default()
            },
        ),
    ]);
    let seen = Seen {
        decision: &decision,
        vmi: &vmi,
        plan: &plan,
        live: runs.map(|it| it.0),
        guest: runs.map(|it| it.1),
        address: runs.map(|_| Ipv4Addr::new(10, 88, 0, 7)),
        volumes: &volumes,
        conditions: Vec::new(),
        reason: None,
        user: 107,
        now: "2026-01-01T00:00:00Z",
    };
    let status = document(before, &seen);
    let mut text = String::new();
    for (field, value) in status.as_object().unwrap() {
        match value {
            Value::Array(items) => {
                text += &format!("{field}:\n");
                for item in items {
                    text += &format!("  {item}\n");
                }
            }
            other => text += &format!("{field}: {other}\n"),
        }
    }
    text
}

#[test]
fn who_has_processors_alone_is_guaranteed_them() {
    for (domain, expected) in [
        (json!({}), "BestEffort"),
        (json!({"memory": {"guest": "1Gi"}}), "Burstable"),
        (
            json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}}),
            "Guaranteed",
        ),
        (
            json!({"cpu": {"cores": 1, "dedicatedCpuPlacement": true}, "resources": {"requests": {"memory": "1Gi"}}}),
            "Guaranteed",
        ),
    ] {
        let object = json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {"domain": domain}});
        let vmi = view::read("VirtualMachineInstance", &object).unwrap();
        assert_eq!(quality(&vmi), expected, "{domain}");
    }
}

#[test]
fn a_machine_that_is_about_to_start() {
    let before = json!({"nodeName": "a", "virtualMachineRevisionName": "r"});
    expect![[r#"
        nodeName: "a"
        virtualMachineRevisionName: "r"
        phase: "Scheduled"
        phaseTransitionTimestamps:
          {"phase":"Scheduled","phaseTransitionTimestamp":"2026-01-01T00:00:00Z"}
        conditions:
          {"type":"LiveMigratable","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}
          {"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"GuestNotRunning","message":"Guest VM is not reported as running"}
          {"type":"StorageLiveMigratable","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}
        volumeStatus:
          {"name":"cd","target":"","size":4096}
          {"name":"data","target":""}
          {"name":"root","target":"","persistentVolumeClaimInfo":{"claimName":"root"}}
        migrationMethod: "BlockMigration"
        qosClass: "Burstable"
        runtimeUser: 107
        guestOSInfo: {}
    "#]]
    .assert_eq(&shown(&before, "Scheduled", Process::Starting, None));
}

#[test]
fn a_machine_that_runs() {
    let live = Live {
        machine_type: "pc-q35-7.2".to_owned(),
        sockets: 2,
        memory_at_boot: 1 << 30,
        memory: (1 << 30) + (256 << 20),
        is_frozen: true,
    };
    let address = |text: &str| (text.to_owned(), 24);
    let guest = Guest {
        os: Some(OsInfo {
            id: "debian".to_owned(),
            name: "Debian GNU/Linux".to_owned(),
            ..OsInfo::default()
        }),
        interfaces: vec![
            Interface {
                name: "lo".to_owned(),
                mac: None,
                addresses: vec![address("127.0.0.1")],
            },
            Interface {
                name: "eth0".to_owned(),
                mac: Some("02:00:00:00:00:05".to_owned()),
                addresses: vec![address("10.88.0.7"), address("fe80::1"), address("192.168.1.1")],
            },
            Interface {
                name: "docker0".to_owned(),
                mac: Some("02:42:00:00:00:01".to_owned()),
                addresses: vec![address("172.17.0.1")],
            },
        ],
        version: "7.2.0".to_owned(),
    };
    let before = json!({"nodeName": "a", "migrationState": {"completed": true}});
    expect![[r#"
        nodeName: "a"
        migrationState: {"completed":true}
        phase: "Running"
        phaseTransitionTimestamps:
          {"phase":"Running","phaseTransitionTimestamp":"2026-01-01T00:00:00Z"}
        conditions:
          {"type":"LiveMigratable","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}
          {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}
          {"type":"StorageLiveMigratable","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}
        volumeStatus:
          {"name":"cd","target":"sda","size":4096}
          {"name":"data","target":"sdb","phase":"Ready","reason":"VolumeReady","message":"Successfully attach hotplugged volume data to VM","hotplugVolume":{}}
          {"name":"old","target":"","phase":"Detaching","reason":"VolumeUnplugging","message":"the guest was asked to let volume old go","hotplugVolume":{}}
          {"name":"root","target":"vda","persistentVolumeClaimInfo":{"claimName":"root"}}
        migrationMethod: "BlockMigration"
        qosClass: "Burstable"
        runtimeUser: 107
        interfaces:
          {"ipAddress":"10.88.0.7","ipAddresses":["10.88.0.7","192.168.1.1"],"mac":"02:00:00:00:00:05","name":"default","interfaceName":"eth0","infoSource":"domain, guest-agent","queueCount":1,"linkState":"up"}
          {"ipAddress":"172.17.0.1","ipAddresses":["172.17.0.1"],"mac":"02:42:00:00:00:01","interfaceName":"docker0","infoSource":"guest-agent"}
        guestOSInfo: {"name":"Debian GNU/Linux","id":"debian"}
        machine: {"type":"pc-q35-7.2"}
        currentCPUTopology: {"sockets":2,"cores":1,"threads":1}
        memory: {"guestAtBoot":"1Gi","guestCurrent":"1280Mi","guestRequested":"1Gi"}
        migrationTransport: "Unix"
        fsFreezeStatus: "frozen"
    "#]]
    .assert_eq(&shown(
        &before,
        "Running",
        Process::Running(None),
        Some((&live, &guest)),
    ));
}

#[test]
fn a_machine_that_has_ended() {
    let before = json!({
        "nodeName": "a", "interfaces": [{"name": "default"}], "guestOSInfo": {"id": "debian"},
        "conditions": [{"type": "AgentConnected", "status": "True"}, {"type": "Other", "status": "True"}],
    });
    let process = Process::Ended {
        well: true,
        message: String::new(),
    };
    expect![[r#"
        nodeName: "a"
        guestOSInfo: {"id":"debian"}
        conditions:
          {"type":"Other","status":"True"}
          {"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"PodTerminating","message":"the machine has ended"}
        phase: "Succeeded"
        phaseTransitionTimestamps:
          {"phase":"Running","phaseTransitionTimestamp":"2026-01-01T00:00:00Z"}
          {"phase":"Succeeded","phaseTransitionTimestamp":"2026-01-01T00:00:00Z"}
        volumeStatus:
          {"name":"cd","target":"","size":4096}
          {"name":"data","target":""}
          {"name":"root","target":"","persistentVolumeClaimInfo":{"claimName":"root"}}
        migrationMethod: "BlockMigration"
        qosClass: "Burstable"
        runtimeUser: 107
    "#]]
    .assert_eq(&shown(&before, "Running", process, None));
}

#[test]
fn the_same_again_changes_nothing() {
    let live = Live {
        sockets: 2,
        ..Live::default()
    };
    let vmi = instance("Running");
    let plan = plan(
        &vmi,
        Origin::default(),
        &Capabilities::default(),
        &Settings::default(),
    );
    let volumes = BTreeMap::new();
    let mut status = json!({"nodeName": "a", "phase": "Running"});
    for round in 0..2 {
        let now = if round == 0 {
            "2026-01-01T00:00:00Z"
        } else {
            "2026-02-02T00:00:00Z"
        };
        let mut object = json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {}, "status": status});
        object["spec"] = json!({"domain": {"devices": {}}});
        let seen_vmi: VirtualMachineInstance = view::read("VirtualMachineInstance", &object).unwrap();
        let decision = phase::decide(&Observed {
            vmi: &seen_vmi,
            placement: Placement::Node("a".to_owned()),
            disks: None,
            process: Process::Running(None),
            agent: false,
            probe: None,
            lifeless: false,
            plan: &plan,
            now: now.parse().unwrap(),
            asked_to_stop: None,
        });
        let after = document(
            &status,
            &Seen {
                decision: &decision,
                vmi: &vmi,
                plan: &plan,
                live: Some(&live),
                guest: None,
                address: None,
                volumes: &volumes,
                conditions: Vec::new(),
                reason: None,
                user: 0,
                now,
            },
        );
        if round == 1 {
            assert_eq!(after, status);
        }
        status = after;
    }
}

#[test]
fn quantities_are_the_apis() {
    for (bytes, expected) in [
        (0, "0"),
        (1, "1"),
        (1 << 10, "1Ki"),
        (1536 << 20, "1536Mi"),
        (2 << 30, "2Gi"),
        (1000, "1000"),
    ] {
        assert_eq!(quantity(bytes), expected);
    }
}
