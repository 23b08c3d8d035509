//! What a guest has beside memory and disks, and takes along when it moves: its UEFI variables, and what its TPM holds.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::moving::{THERE, is_over, lay_down};
use super::world::{NODE, World, condition, eventually, has};

/// The variables that every machine starts with.
const TEMPLATE: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

fn machine() -> Value {
    json!({
        "domain": {
            "memory": {"guest": "256Mi"},
            "firmware": {"bootloader": {"efi": {"secureBoot": false}}},
            "devices": {
                "tpm": {},
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                "autoattachGraphicsDevice": false,
            },
        },
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
    })
}

/// The only machine below a node's directory.
fn home(machines: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(machines.join("run")).unwrap();
    all.next().unwrap().unwrap().path()
}

/// The machine's variables, and the lasting part of what its TPM holds.
fn carried(home: &Path) -> [Vec<u8>; 2] {
    let read = |file: &str| std::fs::read(home.join(file)).unwrap_or_default();
    [read("vars.fd"), read("live/tpm/tpm2-00.permall")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_and_tpm_move_with_the_guest() {
    let test = "variables_and_tpm_move_with_the_guest";
    if !has("swtpm") || !Path::new(TEMPLATE).exists() {
        fairway_machines_required::skipped(format_args!("{test}: swtpm or OVMF is not installed"));
        return;
    }
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    let mut there = world.neighbour(THERE, Some("another host"));
    world.instance("web", machine()).await;
    let agent = |it: &Value| condition(it, "AgentConnected").is_some();
    world.until("web", "booted by UEFI", agent).await;
    let here = home(&world.directory());
    let template = std::fs::read(TEMPLATE).unwrap();
    let [variables, tpm] = carried(&here);
    assert_eq!(variables.len(), template.len());
    assert_ne!(variables, template, "the firmware has written some");
    assert!(!tpm.is_empty(), "each TPM has secrets of its own");

    lay_down(
        &world,
        "m-1",
        NODE,
        THERE,
        json!({"completionTimeoutPerGiB": 600, "disableTLS": true}),
    )
    .await;
    let moved = world.until("web", "over", is_over).await;
    let state = &moved["status"]["migrationState"];
    assert_eq!(state["failed"], Value::Null, "{state}");
    assert_eq!(moved["status"]["nodeName"], THERE);
    let arrived = carried(&home(&there.directory));
    assert!(arrived[0] == variables, "variables have not come along");
    assert!(arrived[1] == tpm, "the TPM is another one");
    world.until("web", "well", agent).await;
    eventually("the source has let go of it", || world.processes().is_empty()).await;
    eventually("nothing of the machine stays", || !here.exists()).await;

    world.delete("web").await;
    world.until_gone("web").await;
    there.stop().await;
    world.stop().await;
}
