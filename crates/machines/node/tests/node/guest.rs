//! A real guest: it boots from a claim with a seed, is seen, let go of and found again, and shuts down when it is asked to.

use std::time::{Duration, Instant};

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_machines_guests::{Door, Guests as _, Order, Refusal};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::world::{NODE, PATIENCE, TEAM, World, condition, eventually};

const USER_DATA: &str = "#cloud-config\nhostname: web-1\nruncmd:\n  - echo the seed was read >/dev/ttyS0\n";

fn machine() -> Value {
    json!({
        "domain": {
            "memory": {"guest": "256Mi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "seed", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}],
                "rng": {},
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 120,
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}},
        ],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_lives() {
    let test = "a_guest_lives";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    let secret = json!({"metadata": {"name": "seed"}, "stringData": {"userdata": USER_DATA}});
    world.create("/api/v1/namespaces/shop/secrets", secret).await;

    let begun = Instant::now();
    world.instance("web", machine()).await;
    let running = world.until_running("web").await;
    eprintln!("running after {:?}", begun.elapsed());
    assert_eq!(running["status"]["nodeName"], "here");
    let pids = world.processes();
    assert_eq!(pids.len(), 1);
    eventually("its card is plugged in", || {
        world.plugs.0.lock().unwrap().len() == 1
    })
    .await;
    // Whoever gives addresses writes it on the instance.
    world.address("web", "10.88.0.7").await;
    let connected = world
        .until("web", "connected to its agent", |it| {
            condition(it, "AgentConnected").is_some_and(|it| it.0 == "True")
                && it["status"]["interfaces"][0]["interfaceName"] == "eth0"
        })
        .await;
    let status = &connected["status"];
    assert_eq!(status["guestOSInfo"]["id"], "tiny");
    assert_eq!(status["interfaces"][0]["ipAddress"], "10.88.0.7");
    assert_eq!(status["interfaces"][0]["infoSource"], "domain, guest-agent");
    assert!(
        status["machine"]["type"].as_str().unwrap().starts_with("pc-q35-"),
        "{status}"
    );
    assert_eq!(status["memory"]["guestCurrent"], "256Mi");
    assert_eq!(status["volumeStatus"][0]["target"], "vda");
    assert_eq!(status["volumeStatus"][1]["target"], "vdb");
    assert_eq!(condition(&connected, "Ready").unwrap().0, "True");
    assert_eq!(condition(&connected, "LiveMigratable").unwrap().0, "True");
    let node = world
        .admin_of("root")
        .get("/api/v1/nodes/here")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(node["metadata"]["labels"]["kubevirt.io/schedulable"], "true");
    assert_eq!(condition(&node, "Ready").unwrap().0, "True");
    assert_ne!(condition(&node, "fairway.dev/Accelerated").unwrap().0, "Unknown");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/here";
    let lease = world.admin_of("root").get(lease).await.unwrap().unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "here");

    let events = world.events("web").await;
    assert_eq!(
        events,
        [
            "Created VirtualMachineInstance defined.",
            "Started VirtualMachineInstance started."
        ]
    );

    reached_through_the_node(&world).await;
    figures(&world).await;

    // The node ends and begins anew: the guest does not notice, and nothing is started twice.
    world.crash().await;
    assert_eq!(world.processes(), pids);
    world.plugs.0.lock().unwrap().clear();
    world.begin();
    eventually("its card is plugged in again", || {
        world.plugs.0.lock().unwrap().len() == 1
    })
    .await;
    world.stop().await;
    world.begin();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.processes(), pids);
    let again = world
        .until("web", "connected to its agent again", |it| {
            condition(it, "AgentConnected").is_some_and(|it| it.0 == "True")
        })
        .await;
    assert_eq!(
        again["status"]["phaseTransitionTimestamps"],
        connected["status"]["phaseTransitionTimestamps"]
    );
    assert_eq!(
        again["status"]["volumeStatus"],
        connected["status"]["volumeStatus"]
    );

    // It shuts down by itself when it is asked to.
    let asked = Instant::now();
    world.delete("web").await;
    world.until_gone("web").await;
    eprintln!("gone after {:?}", asked.elapsed());
    assert!(
        asked.elapsed() < Duration::from_secs(100),
        "the guest was not asked, but ended"
    );
    world
        .until_told("web", "ShuttingDown Signaled Graceful Shutdown")
        .await;
    world
        .until_told("web", "Stopped The VirtualMachineInstance was shut down.")
        .await;
    eventually("nothing is left", || {
        world.processes().is_empty() && world.homes().is_empty()
    })
    .await;
    assert!(world.plugs.0.lock().unwrap().is_empty());
    world.stop().await;
}

/// Figures of the instance and of its machine.
async fn figures(world: &World) {
    let begun = Instant::now();
    let mut written = world.figures().await;
    // Guests say how they use their memory a moment after somebody asked.
    while !written.contains("kubevirt_vmi_memory_usable_bytes{") {
        assert!(begun.elapsed() < PATIENCE, "{written}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        written = world.figures().await;
    }
    let value = |name: &str, with: &str| -> f64 {
        let is_it = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(with);
        let line = written
            .lines()
            .find(is_it)
            .unwrap_or_else(|| panic!("{name}: {written}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert_eq!(value("kubevirt_vmi_info", "name=\"web\",phase=\"running\""), 1.0);
    assert_eq!(value("kubevirt_vmi_phase_count", "phase=\"running\""), 1.0);
    for (name, with, least) in [
        ("kubevirt_vmi_cpu_usage_seconds_total", "node=\"here\"", 0.5),
        (
            "kubevirt_vmi_vcpu_seconds_total",
            "id=\"0\",state=\"running\"",
            0.5,
        ),
        ("kubevirt_vmi_memory_resident_bytes", "namespace=\"shop\"", 1e7),
        ("kubevirt_vmi_memory_domain_bytes", "", 268_435_456.0),
        ("kubevirt_vmi_memory_available_bytes", "", 1e8),
        ("kubevirt_vm_memory_usage_bytes", "name=\"web\"", 1e6),
        ("kubevirt_vm_memory_available_bytes", "name=\"web\"", 1e8),
        (
            "kubevirt_vmi_storage_read_traffic_bytes_total",
            "drive=\"root\"",
            1e6,
        ),
        ("kubevirt_vmi_storage_iops_read_total", "drive=\"root\"", 10.0),
        (
            "kubevirt_vmi_network_transmit_packets_total",
            "interface=\"default\"",
            0.0,
        ),
    ] {
        assert!(value(name, with) >= least, "{name}: {}", value(name, with));
    }
}

/// Console, screen, agent, and what people ask for.
async fn reached_through_the_node(world: &World) {
    let key = ObjectKey::new(&WorkspaceId::parse(TEAM).unwrap(), "shop", "web");
    let order = |order: Order| world.node.order(NODE, &key, order);
    let mut console = world.node.open(NODE, &key, Door::Console).await.unwrap();
    let mut shown = String::new();
    let mut buffer = [0; 4096];
    while !shown.contains("the seed was read") {
        let count = tokio::time::timeout(PATIENCE, console.read(&mut buffer)).await;
        let count = count
            .unwrap_or_else(|_| panic!("the console shows only: {shown}"))
            .unwrap();
        assert!(count > 0, "the console ends: {shown}");
        shown += &String::from_utf8_lossy(&buffer[..count]);
    }
    let mut screen = world.node.open(NODE, &key, Door::Vnc).await.unwrap();
    let mut greeting = [0; 12];
    screen.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"RFB 003.008\n");
    let picture = order(Order::Screenshot).await.unwrap();
    assert!(picture["png"].as_str().unwrap().starts_with("iVBOR"), "{picture}");
    let info = order(Order::GuestOsInfo).await.unwrap();
    assert_eq!(info["os"]["id"], "tiny");
    assert_eq!(info["hostname"], "web-1");
    // The guest keeps what cloud-init keeps, so that one answer is read of all.
    let begun = Instant::now();
    let mut seed = order(Order::CloudInit).await.unwrap();
    while seed["result"].is_null() {
        assert!(begun.elapsed() < PATIENCE, "{seed}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        seed = order(Order::CloudInit).await.unwrap();
    }
    let (told, came) = (&seed["status"]["v1"], &seed["result"]["v1"]);
    assert!(told["stage"].is_null(), "{seed}");
    assert!(told["modules-final"]["finished"].is_number(), "{seed}");
    assert_eq!(came["errors"], json!([]), "{seed}");
    let disks = order(Order::FilesystemList).await.unwrap();
    let mounted = disks["items"].as_array().unwrap();
    assert!(mounted.iter().any(|it| it["mountPoint"] == "/"), "{disks}");
    let tail = order(Order::ConsoleTail { bytes: 4096 }).await.unwrap();
    assert!(tail["tail"].as_str().unwrap().contains("login:"), "{tail}");
    // Measured every ten seconds, and from the second time on there is a difference.
    let begun = Instant::now();
    let mut told = order(Order::UsageHistory).await.unwrap();
    while !told["sentBytesPerSecond"]
        .as_array()
        .unwrap()
        .iter()
        .any(Value::is_number)
    {
        assert!(begun.elapsed() < PATIENCE, "{told}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        told = order(Order::UsageHistory).await.unwrap();
    }
    let last = told["time"].as_array().unwrap().len() - 1;
    assert!(told["residentBytes"][last].as_u64().unwrap() > 1 << 20, "{told}");
    assert!(
        told["processors"][last].is_number() && told["readsPerSecond"][last].is_number(),
        "{told}"
    );

    order(Order::Pause).await.unwrap();
    let paused = world
        .until("web", "paused", |it| condition(it, "Paused").is_some())
        .await;
    assert_eq!(condition(&paused, "Paused").unwrap().1, "PausedByUser");
    assert_eq!(condition(&paused, "Ready").unwrap().1, "GuestNotRunning");
    order(Order::Unpause).await.unwrap();
    world
        .until("web", "running again", |it| condition(it, "Paused").is_none())
        .await;
    order(Order::Freeze {
        unfreeze_seconds: Some(60),
    })
    .await
    .unwrap();
    world
        .until("web", "frozen", |it| it["status"]["fsFreezeStatus"] == "frozen")
        .await;
    order(Order::Unfreeze).await.unwrap();
    world
        .until("web", "thawed", |it| it["status"].get("fsFreezeStatus").is_none())
        .await;

    let elsewhere = world.node.order("there", &key, Order::Pause).await;
    assert!(
        matches!(elsewhere, Err(Refusal::NodeLost { .. })),
        "{elsewhere:?}"
    );
    let other = ObjectKey::new(&WorkspaceId::root(), "shop", "web");
    let other = world.node.order(NODE, &other, Order::Pause).await;
    assert!(
        matches!(other, Err(Refusal::NotRunning(_))),
        "another workspace's: {other:?}"
    );
}
