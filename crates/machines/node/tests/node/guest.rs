//! A real guest: it boots from a claim with a seed, is seen, let go of and found again, and shuts down when it is asked to.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{World, condition, eventually};

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
    let events = world.events("web").await;
    assert_eq!(
        events,
        [
            "Created VirtualMachineInstance defined.",
            "Started VirtualMachineInstance started."
        ]
    );

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
