//! Machines as they are planned, in a real QEMU that does not let the guest run.

use std::collections::BTreeMap;
use std::path::Path;

use fairway_machines_image::overlay;
use fairway_machines_plan::argv::{Accelerator, Backing, Format};
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view;
use fairway_machines_qemu::launch::Adopted;
use fairway_machines_qemu::{Machine, adopt, start};
use serde_json::{Value, json};

use super::*;

const QEMU: &str = "qemu-system-x86_64";

fn planned(spec: &Value) -> MachinePlan {
    let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let vmi = view::read("VirtualMachineInstance", &object).unwrap();
    let origin = Origin {
        workspace: "root",
        mac_attempt: 0,
    };
    plan(&vmi, origin, &Capabilities::default(), &Settings::default())
}

fn many_devices() -> MachinePlan {
    planned(&json!({
        "architecture": "amd64",
        "domain": {
            "cpu": {"sockets": 1, "maxSockets": 2},
            "memory": {"guest": "1Gi", "maxGuest": "2Gi"},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "default", "disk": {"bus": "scsi"}},
                    {"name": "cd", "cdrom": {"bus": "sata"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
                "rng": {},
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "default", "emptyDisk": {"capacity": "1Mi"}},
            {"name": "cd", "emptyDisk": {"capacity": "1Mi"}},
        ],
    }))
}

/// The disks of a plan as empty files in the machine's directory.
fn host(plan: &MachinePlan, directory: &Path) -> Host {
    let mut backings = BTreeMap::new();
    for disk in &plan.disks {
        overlay::blank(directory, &disk.name, 1 << 20).unwrap();
        let backing = Backing {
            file: format!("{}.qcow2", disk.name),
            format: Format::Qcow2,
            block_device: false,
            direct: false,
        };
        backings.insert(disk.name.clone(), backing);
    }
    Host {
        sockets: sockets(),
        accelerator: Accelerator::Tcg,
        taps: BTreeMap::new(),
        backings,
        firmware: None,
        kernel: None,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        incoming: false,
        stopped: true,
    }
}

async fn sockets_answer(machine: &Machine, plan: &MachinePlan) {
    let mut names = vec![
        names::SERIAL.to_owned(),
        names::AGENT.to_owned(),
        names::VNC.to_owned(),
    ];
    names.extend(plan.cards.iter().map(|it| argv::card_socket(&it.name)));
    for name in names {
        machine
            .dial(&name)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What QEMU itself says of the limits of a disk.
async fn limits_hold(machine: &Machine) {
    use fairway_machines_qemu::devices::{Rate, Throttle};
    let limits = Throttle {
        bytes: Rate {
            reads: 4 << 20,
            ..Rate::default()
        },
        operations: Rate {
            both: 500,
            ..Rate::default()
        },
    };
    for (limits, expected) in [(limits, [500, 0, 4 << 20]), (Throttle::default(), [0, 0, 0])] {
        machine.limit_disk(&argv::disk_id("root"), &limits).await.unwrap();
        let all = machine.qmp().execute("query-block", Value::Null).await.unwrap();
        let device = argv::disk_id("root");
        let is_root = |it: &&Value| {
            let place = it["qdev"].as_str().unwrap_or_default();
            place.split('/').any(|part| part == device)
        };
        let found = &all.as_array().unwrap().iter().find(is_root).unwrap()["inserted"];
        let found = ["iops", "bps", "bps_rd"].map(|it| found[it].as_u64().unwrap());
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_planned_machine_starts_however_deep_its_directory_lies() {
    if std::process::Command::new(QEMU)
        .arg("--version")
        .output()
        .is_err()
    {
        fairway_machines_required::skipped(format_args!("{QEMU} is not installed (scripts/tools.sh qemu)"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // No socket could be opened by a path as long as this.
    let directory = folder.path().join("d".repeat(120));
    std::fs::create_dir(&directory).unwrap();
    let plan = many_devices();
    assert_eq!(plan.unsupported, []);
    let layout = Layout::of(&plan).unwrap();
    let launch = launch(
        Path::new(QEMU),
        &directory,
        &plan,
        &host(&plan, &directory),
        &layout,
    )
    .unwrap();
    let machine = start(&launch).await.unwrap();
    assert_eq!(machine.state().await.unwrap(), "prelaunch");
    sockets_answer(&machine, &plan).await;
    limits_hold(&machine).await;
    drop(machine);
    let Adopted::Running(machine) = adopt(&directory).await.unwrap() else {
        panic!("the machine is not found again");
    };
    machine.stop(std::time::Duration::ZERO).await.unwrap();
    assert!(matches!(adopt(&directory).await.unwrap(), Adopted::Gone));
}

#[test]
fn no_argument_has_two_owners() {
    let plan = many_devices();
    let layout = Layout::of(&plan).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host {
        backings: BTreeMap::new(),
        ..host(&planned(&json!({"domain": {"devices": {}}})), folder.path())
    };
    for disk in &plan.disks {
        let backing = Backing {
            file: "f".to_owned(),
            format: Format::Raw,
            block_device: false,
            direct: false,
        };
        host.backings.insert(disk.name.clone(), backing);
    }
    let launch = launch(Path::new("qemu"), Path::new("/d"), &plan, &host, &layout).unwrap();
    let line = launch.command();
    let mut once: Vec<&str> = line
        .iter()
        .map(String::as_str)
        .filter(|it| {
            it.starts_with('-')
                && ![
                    "-device",
                    "-object",
                    "-chardev",
                    "-blockdev",
                    "-netdev",
                    "-global",
                ]
                .contains(it)
        })
        .collect();
    let count = once.len();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), count, "an option is there twice: {line:?}");
    let mut ids: Vec<String> = line
        .iter()
        .filter(|it| it.starts_with('{'))
        .filter_map(|it| serde_json::from_str::<Value>(it).ok())
        .filter_map(|it| it.get("driver").and(it["id"].as_str().map(str::to_owned)))
        .collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(
        ids.len(),
        count,
        "a disk and a card of the same name have different devices"
    );
}
