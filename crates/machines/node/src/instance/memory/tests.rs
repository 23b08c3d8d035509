//! Machines as they were and as they are: which of them may go on with memory that was kept.

use fairway_machines_plan::argv::Layout;
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view;
use serde_json::json;

use super::super::status::VolumeFacts;
use super::*;

fn planned(change: impl Fn(&mut Value)) -> MachinePlan {
    let mut spec = json!({
        "architecture": "amd64",
        "domain": {
            "cpu": {"sockets": 1, "maxSockets": 4},
            "memory": {"guest": "128Mi"},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "data", "disk": {"bus": "virtio"}},
                    {"name": "seed", "disk": {"bus": "virtio"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "root", "dataVolume": {"name": "web-root"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\n{}\n"}},
        ],
    });
    change(&mut spec);
    let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let vmi = view::read("VirtualMachineInstance", &object).unwrap();
    let origin = Origin {
        workspace: "root",
        mac_attempt: 0,
    };
    plan(&vmi, origin, &Capabilities::default(), &Settings::default())
}

fn kept() -> Kept {
    let plan = planned(|_| {});
    let facts = |size: u64| VolumeFacts {
        size: Some(size),
        ..VolumeFacts::default()
    };
    let volumes = [("root", 512), ("data", 64)].map(|(name, size)| (name.to_owned(), facts(size)));
    Kept {
        qemu: "7.2.22".to_owned(),
        accelerator: "tcg".to_owned(),
        machine_type: "pc-q35-7.2".to_owned(),
        built: Built {
            layout: Layout::of(&plan).unwrap(),
            sockets: plan.cpu.sockets,
            started_memory: plan.memory.guest,
            memory: plan.memory.guest,
            volumes: volumes.into(),
            runs_on: "tcg".to_owned(),
            plan,
        },
    }
}

/// Says what is wrong with a machine that differs in these ways from the one whose memory was kept; nothing if it goes on.
fn judged(
    change: impl Fn(&mut Value),
    moments: [Option<&str>; 2],
    sizes: [u64; 2],
    (qemu, accelerator): (&str, &str),
) -> Option<String> {
    let names = ["root", "data"].map(str::to_owned);
    let moments: BTreeMap<String, Option<Moment>> = names
        .iter()
        .cloned()
        .zip(moments.map(|it| {
            it.map(|it| Moment {
                moment: it.to_owned(),
                snapshot: "s".to_owned(),
            })
        }))
        .collect();
    let sizes = names.into_iter().zip(sizes).collect();
    let now = Now {
        plan: &planned(change),
        qemu,
        accelerator,
        moments: &moments,
        sizes: &sizes,
    };
    fits(&kept(), &now).err()
}

#[test]
fn the_same_machine_goes_on() {
    let both = [Some("m"), Some("m")];
    let (sizes, host) = ([512, 64], ("7.2.22", "tcg"));
    let restored = |spec: &mut Value| {
        spec["volumes"][0] = json!({"name": "root", "dataVolume": {"name": "restore-1-root"}});
        spec["volumes"][1] =
            json!({"name": "data", "persistentVolumeClaim": {"claimName": "restore-1-data"}});
        spec["terminationGracePeriodSeconds"] = json!(5);
    };
    assert_eq!(judged(restored, both, sizes, host), None);
    assert_eq!(
        judged(restored, both, sizes, ("7.2.23", "tcg")),
        None,
        "a correction of QEMU"
    );
    let same = |_: &mut Value| {};
    let memory = |spec: &mut Value| spec["domain"]["memory"]["guest"] = json!("256Mi");
    let processors = |spec: &mut Value| spec["domain"]["cpu"]["sockets"] = json!(2);
    let card = |spec: &mut Value| spec["domain"]["devices"]["interfaces"][0]["model"] = json!("e1000");
    let disk = |spec: &mut Value| {
        spec["domain"]["devices"]["disks"].as_array_mut().unwrap().pop();
        spec["volumes"].as_array_mut().unwrap().pop();
    };
    let cases: [(Option<String>, &str); 11] = [
        (judged(memory, both, sizes, host), "memory"),
        (judged(processors, both, sizes, host), "cpu"),
        (judged(card, both, sizes, host), "cards"),
        (judged(disk, both, sizes, host), "disks"),
        (judged(same, both, sizes, ("8.2.0", "tcg")), "QEMU 7.2.22"),
        (judged(same, both, sizes, ("7.2.22", "kvm")), "would run by kvm"),
        (judged(same, both, [512, 128], host), "data has another size"),
        (
            judged(same, [Some("m"), None], sizes, host),
            "data is not of the snapshot",
        ),
        (
            judged(same, [None, Some("m")], sizes, host),
            "root is not of the snapshot",
        ),
        (
            judged(same, [Some("m"), Some("n")], sizes, host),
            "another snapshot",
        ),
        (
            judged(memory, [Some("m"), Some("n")], sizes, host),
            "another snapshot",
        ),
    ];
    for (found, expected) in cases {
        let found = found.unwrap_or_default();
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn a_machine_that_grew_goes_on_as_it_was_built() {
    let mut kept = kept();
    kept.built.sockets = 2;
    kept.built.memory += 64 << 20;
    let now = planned(|spec| {
        spec["domain"]["cpu"]["sockets"] = json!(2);
        spec["volumes"][0] = json!({"name": "root", "dataVolume": {"name": "other"}});
    });
    let built = resumed(&kept, &now);
    assert_eq!(built.plan.cpu.sockets, 1, "more are plugged in");
    assert_eq!(built.plan.memory.guest, 128 << 20);
    assert_eq!(built.plan.memory.grown, 64 << 20);
    assert_eq!(built.plan.board.machine_type, "pc-q35-7.2");
    let source = &built.plan.disk("root").unwrap().source;
    assert_eq!(*source, now.disk("root").unwrap().source);
}

#[test]
fn what_would_be_missed_is_told() {
    assert_eq!(is_keepable(&planned(|_| {})), Ok(()));
    let with = |volume: Value| move |spec: &mut Value| spec["volumes"][1] = volume.clone();
    for volume in [
        json!({"name": "data", "emptyDisk": {"capacity": "1Mi"}}),
        json!({"name": "data", "containerDisk": {"image": "x"}}),
        json!({"name": "data", "ephemeral": {"persistentVolumeClaim": {"claimName": "x"}}}),
    ] {
        let why = is_keepable(&planned(with(volume.clone()))).unwrap_err();
        assert!(why.contains("the disk data"), "{volume}: {why}");
    }
    let shared = planned(|spec| spec["domain"]["devices"]["disks"][1]["shareable"] = json!(true));
    assert!(is_keepable(&shared).unwrap_err().contains("others may write"));
}

#[test]
fn nothing_is_found_where_nothing_was_kept() {
    let place = tempfile::tempdir().unwrap();
    let prepared = Prepared {
        volumes: BTreeMap::from([("root".to_owned(), place.path().to_owned())]),
        ..Prepared::default()
    };
    let plan = planned(|_| {});
    let root = WorkspaceId::root();
    let look = || find(place.path(), &root, &prepared, &plan, ("7.2.22", "tcg"));
    assert_eq!(look(), None);
    std::fs::write(
        place.path().join("moment.json"),
        r#"{"moment": "m", "snapshot": "snapcontent-1"}"#,
    )
    .unwrap();
    assert!(look().unwrap().unwrap_err().contains("is gone"));
    let snapshot = place.path().join("snapshots/root/snapcontent-1");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::write(snapshot.join("memory.luks"), "").unwrap();
    std::fs::write(snapshot.join("memory.json"), "{}").unwrap();
    assert!(look().unwrap().unwrap_err().contains("another version"));
}
