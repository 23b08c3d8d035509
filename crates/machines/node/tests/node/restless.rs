//! A real guest that writes to its memory faster than it may be sent: it stays where it is, and runs on; and it moves when it may.

use std::time::Instant;

use serde_json::{Value, json};

use super::moving::{THERE, console, count, is_over, lay_down, share_disk};
use super::world::{NODE, World, condition, eventually};

/// The guest counts, and goes on writing eight MB that are not zeros.
const USER_DATA: &str = "#cloud-config
runcmd:
  - (head -c 8000000 /dev/urandom >/run/a; while true; do cat /run/a >/run/b; done) >/dev/null 2>&1 </dev/null &
  - (n=0; while true; do n=$((n+1)); echo count=$n; sleep 0.5; done) >/dev/ttyS0 2>&1 </dev/null &
";

fn machine() -> Value {
    json!({
        "domain": {
            "memory": {"guest": "192Mi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "seed", "disk": {"bus": "virtio"}}],
                "autoattachGraphicsDevice": false,
            },
        },
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            // Both nodes see it: memory is all that has to be sent.
            {"name": "root", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": USER_DATA}},
        ],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_writes_faster_than_it_is_sent() {
    let test = "a_guest_that_writes_faster_than_it_is_sent";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("shared", Some(&image)).await;
    let mut there = world.neighbour(THERE, Some("another host"));
    share_disk(&world, &there);
    world.instance("web", machine()).await;
    world.until_running("web").await;
    let mut screen = console(&world.node, NODE).await;
    count(&mut screen).await;

    // Slower than the guest writes, and nobody may slow the guest down.
    for (uid, configuration, expected) in [
        (
            "stuck",
            json!({"bandwidthPerMigration": "8Mi", "allowAutoConverge": false, "progressTimeout": 4}),
            "Live migration stuck for 4 seconds and has been aborted",
        ),
        (
            "late",
            json!({"bandwidthPerMigration": "8Mi", "allowAutoConverge": false, "completionTimeoutPerGiB": 5}),
            "within 5 s",
        ),
    ] {
        let before = count(&mut screen).await;
        let begun = Instant::now();
        lay_down(&world, uid, NODE, THERE, configuration).await;
        let over = world.until("web", "over", is_over).await;
        let state = &over["status"]["migrationState"];
        let why = state["failureReason"].as_str().unwrap_or_default();
        eprintln!("{uid}: after {:?}: {why}", begun.elapsed());
        assert_eq!(state["failed"], true, "{uid}: {state}");
        assert!(why.contains(expected), "{uid}: {why}");
        assert_eq!(over["status"]["nodeName"], NODE);
        eventually("the target has let go of it", || there.processes().is_empty()).await;
        assert!(count(&mut screen).await > before, "{uid}: it goes on");
        assert_eq!(condition(&world.get("web").await.unwrap(), "Paused"), None);
    }

    // It was not the guest's fault: as fast as the host can, it moves.
    let before = count(&mut screen).await;
    lay_down(&world, "fast", NODE, THERE, json!({})).await;
    let moved = world.until("web", "over", is_over).await;
    let state = &moved["status"]["migrationState"];
    assert_eq!(state["failed"], Value::Null, "{state}");
    assert_eq!(moved["status"]["nodeName"], THERE);
    let mut screen = console(&there.node, THERE).await;
    assert!(count(&mut screen).await > before);

    world.delete("web").await;
    world.until_gone("web").await;
    there.stop().await;
    world.stop().await;
}
