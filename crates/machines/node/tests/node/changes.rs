//! A real guest that is changed while it runs: it sees each change itself, and says so on its console.

use std::time::Duration;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_fabric::Connection;
use fairway_machines_guests::{Door, Guests as _};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::world::{NODE, PATIENCE, TEAM, World, condition};

/// The guest prints what it has, again and again.
const USER_DATA: &str = "#cloud-config
runcmd:
  - echo online >/sys/devices/system/memory/auto_online_blocks; modprobe virtio_mem
  - (while true; do echo cpus=$(cat /sys/devices/system/cpu/present) disks=$(ls /sys/block | tr '\\n' ,) root=$(cat /sys/block/vda/size); sleep 1; done) >/dev/ttyS0 2>&1 </dev/null &
";

fn machine() -> Value {
    json!({
        "domain": {
            "cpu": {"sockets": 1, "cores": 1, "threads": 1, "maxSockets": 4},
            "memory": {"guest": "1Gi", "maxGuest": "2Gi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "seed", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": USER_DATA}},
        ],
    })
}

/// The console, and what it has shown and nobody looked for yet.
struct Screen {
    console: Box<dyn Connection>,
    shown: String,
}

impl Screen {
    /// Waits until the guest says this.
    async fn shows(&mut self, wanted: impl Fn(&str) -> bool, what: &str) {
        let reading = async {
            let mut buffer = [0; 4096];
            while !self.shown.lines().any(&wanted) {
                let count = self.console.read(&mut buffer).await.unwrap();
                assert!(count > 0, "the console ends: {}", self.shown);
                self.shown += &String::from_utf8_lossy(&buffer[..count]);
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, reading).await;
        assert!(outcome.is_ok(), "not {what}: {}", self.shown);
        self.shown.clear();
    }
}

fn volume<'v>(object: &'v Value, name: &str) -> &'v Value {
    let all = object["status"]["volumeStatus"].as_array();
    let found = all.and_then(|all| all.iter().find(|it| it["name"] == name));
    found.unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_changes_while_it_runs() {
    let test = "a_guest_changes_while_it_runs";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    world.instance("web", machine()).await;
    let key = ObjectKey::new(&WorkspaceId::parse(TEAM).unwrap(), "shop", "web");
    world.until_running("web").await;
    let mut screen = Screen {
        console: world.node.open(NODE, &key, Door::Console).await.unwrap(),
        shown: String::new(),
    };
    screen
        .shows(
            |line| line.contains("cpus=0 disks="),
            "started with one processor",
        )
        .await;
    world
        .until("web", "connected to its agent", |it| {
            condition(it, "AgentConnected").is_some_and(|it| it.0 == "True")
        })
        .await;

    processors_and_memory(&world, &mut screen).await;
    disks(&world, &mut screen).await;
    cards(&world).await;
    growth(&world, &mut screen).await;

    // What was changed is known to the next Fairway, too.
    let before = world.get("web").await.unwrap();
    world.crash().await;
    world.begin();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = world
        .until("web", "found again", |it| it["status"]["phase"] == "Running")
        .await;
    for field in ["currentCPUTopology", "memory", "volumeStatus"] {
        assert_eq!(after["status"][field], before["status"][field], "{field}");
    }
    full(&world).await;
    world.delete("web").await;
    world.until_gone("web").await;
    world.stop().await;
}

async fn processors_and_memory(world: &World, screen: &mut Screen) {
    world
        .patch("web", json!({"spec": {"domain": {"cpu": {"sockets": 3}}}}))
        .await;
    let grown = world
        .until("web", "of three sockets", |it| {
            it["status"]["currentCPUTopology"]["sockets"] == 3
        })
        .await;
    assert_eq!(condition(&grown, "HotVCPUChange"), None);
    screen
        .shows(
            |line| line.contains("cpus=0-2 "),
            "of three processors in the guest",
        )
        .await;
    world
        .patch(
            "web",
            json!({"spec": {"domain": {"memory": {"guest": "1536Mi"}}}}),
        )
        .await;
    let grown = world
        .until("web", "of more memory", |it| {
            it["status"]["memory"]["guestCurrent"] == "1536Mi" && condition(it, "HotMemoryChange").is_none()
        })
        .await;
    assert_eq!(grown["status"]["memory"]["guestAtBoot"], "1Gi");
    assert_eq!(grown["status"]["memory"]["guestRequested"], "1536Mi");
}

async fn disks(world: &World, screen: &mut Screen) {
    let root = json!({"name": "root", "persistentVolumeClaim": {"claimName": "root"}});
    let seed = json!({"name": "seed", "cloudInitNoCloud": {"userData": USER_DATA}});
    let base = [
        json!({"name": "root", "disk": {"bus": "virtio"}}),
        json!({"name": "seed", "disk": {"bus": "virtio"}}),
    ];
    let data = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data", "hotpluggable": true}});
    let with = json!({"spec": {
        "volumes": [root, seed, data],
        "domain": {"devices": {"disks": [base[0], base[1], {"name": "data", "disk": {"bus": "scsi"}, "serial": "d1"}]}},
    }});
    let without = json!({"spec": {"volumes": [root, seed], "domain": {"devices": {"disks": base}}}});

    // Its claim comes later.
    world.patch("web", with).await;
    let waiting = world
        .until("web", "waiting for a claim", |it| {
            volume(it, "data")["phase"] == "Bound"
        })
        .await;
    assert!(
        volume(&waiting, "data")["message"]
            .as_str()
            .unwrap()
            .contains("PVC data does not exist"),
        "{waiting}"
    );
    world.claim("data", None).await;
    let plugged = world
        .until("web", "plugged in", |it| volume(it, "data")["phase"] == "Ready")
        .await;
    let status = volume(&plugged, "data");
    assert_eq!(status["target"], "sda");
    assert_eq!(status["hotplugVolume"], json!({}));
    assert_eq!(status["persistentVolumeClaimInfo"]["claimName"], "data");
    screen
        .shows(|line| line.contains("sda"), "seen by the guest")
        .await;

    world.patch("web", without).await;
    world
        .until("web", "unplugged", |it| volume(it, "data").is_null())
        .await;
    screen
        .shows(
            |line| line.contains("disks=") && !line.contains("sda"),
            "gone from the guest",
        )
        .await;
    world.until_told("web", "VolumeUnplugged").await;
}

async fn cards(world: &World) {
    let default = json!({"name": "default", "masquerade": {}});
    let pod = json!({"name": "default", "pod": {}});
    let lan = json!({"name": "lan", "multus": {"networkName": "lan"}});
    let with = json!({"spec": {
        "networks": [pod, lan],
        "domain": {"devices": {"interfaces": [default, {"name": "lan", "bridge": {}}]}},
    }});
    world.patch("web", with).await;
    let there = |it: &Value, count: usize| it["status"]["interfaces"].as_array().map_or(0, Vec::len) == count;
    world
        .until("web", "of two cards", |it| {
            there(it, 2) && it["status"]["interfaces"][1]["interfaceName"] == "eth1"
        })
        .await;
    assert_eq!(world.plugs.0.lock().unwrap()[0].1.len(), 2, "it is connected");
    let absent = json!({"spec": {
        "domain": {"devices": {"interfaces": [default, {"name": "lan", "bridge": {}, "state": "absent"}]}},
    }});
    world.patch("web", absent).await;
    world.until("web", "of one card", |it| there(it, 1)).await;
    assert_eq!(world.plugs.0.lock().unwrap()[0].1.len(), 1, "it is disconnected");
    let down = json!({"spec": {
        "networks": [pod],
        "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}, "state": "down"}]}},
    }});
    world.patch("web", down).await;
    world
        .until("web", "without a cable", |it| {
            it["status"]["interfaces"][0]["linkState"] == "down"
        })
        .await;
}

async fn growth(world: &World, screen: &mut Screen) {
    let volume = json!({"spec": {"capacity": {"storage": "2Gi"}}});
    world
        .admin
        .merge("/api/v1/persistentvolumes/pv-root", &volume)
        .await
        .unwrap()
        .unwrap();
    let claim = "/api/v1/namespaces/shop/persistentvolumeclaims/root/status";
    let told = json!({"status": {"conditions": [
        {"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    world.admin.merge(claim, &told).await.unwrap().unwrap();
    screen
        .shows(
            |line| line.contains("root=4194304"),
            "of a larger disk in the guest",
        )
        .await;
}

/// A machine has so many ports: what has none needs a restart, and that is said.
async fn full(world: &World) {
    let mut networks = vec![json!({"name": "default", "pod": {}})];
    let mut cards = vec![json!({"name": "default", "masquerade": {}, "state": "down"})];
    for number in 0..8 {
        let name = format!("lan{number}");
        networks.push(json!({"name": name, "multus": {"networkName": name}}));
        cards.push(json!({"name": name, "bridge": {}}));
    }
    let many = json!({"spec": {"networks": networks, "domain": {"devices": {"interfaces": cards}}}});
    world.patch("web", many).await;
    let full = world
        .until("web", "full", |it| {
            condition(it, "fairway.dev/HotplugFailed").is_some()
        })
        .await;
    let (status, reason, message) = condition(&full, "fairway.dev/HotplugFailed").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "RestartRequired"));
    assert!(message.contains("no free port for another device"), "{message}");
    assert!(full["status"]["interfaces"].as_array().unwrap().len() > 3);
}
