//! A real guest that moves between two nodes and back, with its disks, and goes on where it was.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_fabric::Connection;
use fairway_machines_guests::{Door, Guests as _, Refusal};
use fairway_machines_node::Node;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::world::{NODE, Neighbour, PATIENCE, TEAM, World, condition, eventually};

pub(crate) const THERE: &str = "there";
/// The guest counts, and checks each of its disks each time.
const USER_DATA: &str = "#cloud-config
runcmd:
  - (n=0; while true; do n=$((n+1)); echo $n | dd of=/dev/vdb conv=fsync 2>/dev/null; echo $n | dd of=/dev/vdc conv=fsync 2>/dev/null; echo $n >/root/count; sync; echo count=$n b=$(head -n1 /dev/vdb) c=$(head -n1 /dev/vdc) r=$(cat /root/count); sleep 0.5; done) >/dev/ttyS0 2>&1 </dev/null &
";

pub(crate) fn machine() -> Value {
    json!({
        "domain": {
            "cpu": {"sockets": 1, "cores": 1, "threads": 1, "maxSockets": 2},
            "memory": {"guest": "256Mi"},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "scratch", "disk": {"bus": "virtio"}},
                    {"name": "shared", "disk": {"bus": "virtio"}},
                    {"name": "seed", "disk": {"bus": "virtio"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "scratch", "emptyDisk": {"capacity": "64Mi"}},
            {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": USER_DATA}},
        ],
    })
}

/// The next number that the guest counts to; every disk has what was written to it.
pub(crate) async fn count(console: &mut Box<dyn Connection>) -> u32 {
    let mut shown = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        loop {
            let read = console.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the console ends: {shown}");
            shown += &String::from_utf8_lossy(&buffer[..read]);
            // Only whole lines, and none that began before.
            let lines: Vec<&str> = shown.split_inclusive('\n').skip(1).collect();
            let line = lines
                .iter()
                .rev()
                .find(|it| it.starts_with("count=") && it.ends_with('\n'));
            if let Some(line) = line {
                let mut words = line.split_whitespace().map(|it| it.split_once('=').unwrap().1);
                let number = words.next().unwrap().to_owned();
                assert!(words.all(|it| it == number), "{line}");
                return number.parse().unwrap();
            }
        }
    };
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(number) => number,
        Err(_) => panic!("the guest does not count: {shown}"),
    }
}

pub(crate) async fn console(node: &Node, name: &str) -> Box<dyn Connection> {
    let key = ObjectKey::new(&WorkspaceId::parse(TEAM).unwrap(), "shop", "web");
    let begun = Instant::now();
    loop {
        match node.open(name, &key, Door::Console).await {
            Ok(console) => return console,
            // The object says that a machine has come before its new node has heard of that.
            Err(Refusal::NotRunning(_)) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(why) => panic!("the console of {name} cannot be opened: {why}"),
        }
    }
}

/// Where a node has a volume.
pub(crate) fn own(directory: &Path, volume: &str) -> PathBuf {
    directory.join("volumes").join(TEAM).join(volume)
}

/// Lays down a migration, as the engine does.
pub(crate) async fn lay_down(world: &World, uid: &str, from: &str, to: &str, configuration: Value) {
    let cleared = json!({"status": {"migrationState": null}});
    world.patch("web", cleared).await;
    let state = json!({"status": {"migrationState": {
        "migrationUid": uid, "sourceNode": from, "targetNode": to, "migrationConfiguration": configuration,
    }}});
    world.patch("web", state).await;
}

pub(crate) fn is_over(object: &Value) -> bool {
    object["status"]["migrationState"]["completed"] == true
}

/// Lets another node have the same disk `pv-shared`, as hosts have that mount one storage.
pub(crate) fn share_disk(world: &World, there: &Neighbour) {
    let place = own(&there.directory, "pv-shared");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    // The way to it leads through the directory above both nodes', which their machines have to pass.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(world.folder.path(), open).unwrap();
    std::os::unix::fs::symlink(own(&world.directory(), "pv-shared"), place).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_moves_and_comes_back() {
    let test = "a_guest_moves_and_comes_back";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    // One on the node's own disk, and one that both nodes see.
    world.claim("root", Some(&image)).await;
    world.claim("shared", None).await;
    let mut there = world.neighbour(THERE, Some("another host"));
    share_disk(&world, &there);
    world.instance("web", machine()).await;
    world.until_running("web").await;
    let mut screen = console(&world.node, NODE).await;
    count(&mut screen).await;
    world
        .patch("web", json!({"spec": {"domain": {"cpu": {"sockets": 2}}}}))
        .await;
    world
        .until("web", "of two sockets", |it| {
            it["status"]["currentCPUTopology"]["sockets"] == 2
        })
        .await;

    moves_over_the_network(&world, &there, &mut screen).await;
    is_cancelled(&world, &there).await;
    // Both nodes are of one host from now on; the new Fairway there finds the machine that came.
    world.restart(&mut there, None).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    comes_back(&world, &there).await;

    world.delete("web").await;
    world.until_gone("web").await;
    there.stop().await;
    world.stop().await;
}

async fn moves_over_the_network(world: &World, there: &Neighbour, screen: &mut Box<dyn Connection>) {
    let before = count(screen).await;
    let said = world.get("web").await.unwrap();
    let runs_on = said["metadata"]["annotations"]["fairway.dev/runs-on"].as_str();
    let runs_on = runs_on.unwrap_or_default();
    assert!(runs_on == "tcg" || runs_on.starts_with("kvm/"), "{said}");
    // Disks are copied, and QEMU 7.2 may not come through agreeing on keys for them (docs/reference/machines.md); `restless` has TLS.
    lay_down(
        world,
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
    assert_eq!(moved["metadata"]["labels"]["kubevirt.io/nodeName"], THERE);
    for field in ["startTimestamp", "endTimestamp", "targetNodeDomainReadyTimestamp"] {
        assert!(state[field].is_string(), "{field}: {state}");
    }
    assert_eq!(state["targetNodeAddress"], "127.0.0.1");
    for name in ["fairway.dev/migration-source", "fairway.dev/migration-target"] {
        assert_eq!(moved["metadata"]["annotations"][name], Value::Null, "{name}");
    }
    eventually("the source has let go of it", || world.processes().is_empty()).await;
    assert_eq!(there.processes().len(), 1);
    let mut screen = console(&there.node, THERE).await;
    let after = count(&mut screen).await;
    assert!(after > before, "it goes on counting: {before}, {after}");
    eprintln!("counted from {before} to {after}");
    let found = world.get("web").await.unwrap();
    assert_eq!(found["status"]["currentCPUTopology"]["sockets"], 2);
    assert_eq!(condition(&found, "Ready").unwrap().0, "True");
    // The volume that was on the node has moved, the one that is shared has not.
    let affinity = |volume: &Value| {
        volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
            .clone()
    };
    let volume = async |name: &str| {
        let path = format!("/api/v1/persistentvolumes/{name}");
        world.admin.get(&path).await.unwrap().unwrap()
    };
    assert_eq!(affinity(&volume("pv-root").await), json!([THERE]));
    assert_eq!(affinity(&volume("pv-shared").await), json!([NODE]));
    assert!(own(&there.directory, "pv-root").join("disk.qcow2").exists());
    eventually("the disk that was left is gone", || {
        !own(&world.directory(), "pv-root").exists()
    })
    .await;
    assert!(own(&world.directory(), "pv-shared").join("disk.qcow2").exists());
    eventually("its card is where it is", || {
        world.plugs.0.lock().unwrap().is_empty() && there.plugs.0.lock().unwrap().len() == 1
    })
    .await;
    world
        .until_told(
            "web",
            "Migrated The VirtualMachineInstance migrated to node there.",
        )
        .await;
}

async fn is_cancelled(world: &World, there: &Neighbour) {
    lay_down(
        world,
        "m-2",
        THERE,
        NODE,
        json!({"bandwidthPerMigration": "1Mi", "disableTLS": true}),
    )
    .await;
    world
        .until("web", "on its way", |it| {
            it["status"]["migrationState"]["startTimestamp"].is_string()
        })
        .await;
    // At one MiB in a second there is time to see how far the disk is.
    let copying = world
        .until("web", "said to be copied", |it| {
            condition(it, "MigrationProgress").is_some()
        })
        .await;
    let (status, reason, message) = condition(&copying, "MigrationProgress").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "CopyingDisks"));
    assert!(
        message.contains("disk root: ") && message.contains(" of "),
        "{message}"
    );
    eprintln!("on its way: {message}");
    let figures = there.node.figures().await;
    let left = figures
        .lines()
        .find(|it| it.starts_with("kubevirt_vmi_migration_data_remaining_bytes{"));
    let left: f64 = left
        .unwrap_or_else(|| panic!("{figures}"))
        .rsplit_once(' ')
        .unwrap()
        .1
        .parse()
        .unwrap();
    assert!(
        left > 268_435_456.0,
        "{left}: all of the memory, and what is left of the disks"
    );
    world
        .patch(
            "web",
            json!({"status": {"migrationState": {"abortRequested": true}}}),
        )
        .await;
    let cancelled = world.until("web", "over", is_over).await;
    let state = &cancelled["status"]["migrationState"];
    assert_eq!(state["failed"], true, "{state}");
    assert_eq!(state["abortStatus"], "Succeeded");
    assert_eq!(cancelled["status"]["nodeName"], THERE);
    eventually("the target has let go of it", || world.processes().is_empty()).await;
    let mut screen = console(&there.node, THERE).await;
    count(&mut screen).await;
    let found = world.get("web").await.unwrap();
    assert_eq!(condition(&found, "Paused"), None);
    world
        .until("web", "without a word of it", |it| {
            condition(it, "MigrationProgress").is_none()
        })
        .await;
}

async fn comes_back(world: &World, there: &Neighbour) {
    lay_down(world, "m-3", THERE, NODE, json!({"disableTLS": true})).await;
    let moved = world.until("web", "over", is_over).await;
    let state = &moved["status"]["migrationState"];
    assert_eq!(state["failed"], Value::Null, "{state}");
    assert_eq!(moved["status"]["nodeName"], NODE);
    eventually("the source has let go of it", || there.processes().is_empty()).await;
    let mut screen = console(&world.node, NODE).await;
    count(&mut screen).await;
    assert!(own(&world.directory(), "pv-root").join("disk.qcow2").exists());
}
