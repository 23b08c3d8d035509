//! Migrations of real guests that come to nothing: there are never two that run, and no disk is lost.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::moving::{THERE, console, count, is_over, lay_down, machine, own, share_disk};
use super::world::{NODE, Neighbour, PATIENCE, World, eventually};

/// Kills a machine's process, as a host that fails does.
fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

async fn until_on_its_way(world: &World) {
    world
        .until("web", "on its way", |it| {
            it["status"]["migrationState"]["startTimestamp"].is_string()
        })
        .await;
}

/// As slow as a test wants it, and without TLS: while QEMU 7.2 agrees on keys for a disk it can come to wait for itself
/// (docs/reference/machines.md), which no test of ours can mend.
fn configuration(bandwidth: &str) -> Value {
    json!({"bandwidthPerMigration": bandwidth, "completionTimeoutPerGiB": 600, "disableTLS": true})
}

/// Waits until the first of its disks is at the target in part. A migration that fails before is told at once, and why.
async fn until_in_the_middle(world: &World, there: &Neighbour) {
    until_on_its_way(world).await;
    let copy = own(&there.directory, "pv-root").join("disk.qcow2");
    until(world, "no part of the disk has come", || {
        std::fs::metadata(&copy).is_ok_and(|it| it.len() > 1 << 20)
    })
    .await;
}

/// Waits until the source has nothing left to send, and returns what is known of the machine then.
async fn until_everything_was_sent(world: &World) -> Value {
    until(world, "something is still to be sent", || {
        world.plugs.0.lock().unwrap().is_empty()
    })
    .await
}

/// Waits for something while a migration is under way.
async fn until(world: &World, not_yet: &str, is_so: impl Fn() -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let found = world.get("web").await.unwrap();
        if is_so() {
            return found;
        }
        let state = &found["status"]["migrationState"];
        assert!(!is_over(&found), "it came to nothing: {state}");
        assert!(
            begun.elapsed() < PATIENCE,
            "{not_yet}: {state}; {:?}",
            world.events("web").await
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A machine whose migration has lost its target in the middle, and what is known of it then.
async fn with_a_lost_target(test: &str) -> Option<(World, Neighbour, Value)> {
    let (world, there) = begin(test).await?;
    lay_down(&world, "m-1", NODE, THERE, configuration("1Mi")).await;
    until_in_the_middle(&world, &there).await;
    kill(there.processes()[0]);
    let failed = world.until("web", "over", is_over).await;
    let mut screen = console(&world.node, NODE).await;
    count(&mut screen).await;
    eventually("nothing runs at the target", || there.processes().is_empty()).await;
    Some((world, there, failed))
}

/// The volume is still the source's, and so is the disk.
async fn disk_is_at_the_source(world: &World) {
    let volume = world
        .admin
        .get("/api/v1/persistentvolumes/pv-root")
        .await
        .unwrap()
        .unwrap();
    let node =
        &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"];
    assert_eq!(*node, json!([NODE]));
    assert!(own(&world.directory(), "pv-root").join("disk.qcow2").exists());
}

async fn begin(test: &str) -> Option<(World, Neighbour)> {
    let world = World::start(test).await?;
    let image = world.tiny(test)?;
    world.claim("root", Some(&image)).await;
    world.claim("shared", None).await;
    let there = world.neighbour(THERE, Some("another host"));
    share_disk(&world, &there);
    world.instance("web", machine()).await;
    world.until_running("web").await;
    let mut screen = console(&world.node, NODE).await;
    count(&mut screen).await;
    Some((world, there))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_lost() {
    // In the middle: the guest goes on where it was.
    let Some((mut world, mut there, failed)) = with_a_lost_target("a_target_is_lost").await else {
        return;
    };
    let state = &failed["status"]["migrationState"];
    assert_eq!(state["failed"], true, "{state}");
    assert!(
        state["failureReason"].as_str().is_some_and(|it| !it.is_empty()),
        "{state}"
    );
    assert_eq!(
        (&failed["status"]["nodeName"], &failed["status"]["phase"]),
        (&json!(NODE), &json!("Running"))
    );
    assert_eq!(world.processes().len(), 1);
    disk_is_at_the_source(&world).await;
    world.delete("web").await;
    world.until_gone("web").await;
    there.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_lost() {
    let Some((mut world, mut there)) = begin("a_source_is_lost").await else {
        return;
    };
    lay_down(&world, "m-1", NODE, THERE, configuration("1Mi")).await;
    until_on_its_way(&world).await;
    kill(world.processes()[0]);
    let failed = world
        .until("web", "failed", |it| it["status"]["phase"] == "Failed")
        .await;
    // Half of a guest is none: it never runs at the target.
    assert_eq!(failed["status"]["nodeName"], NODE);
    eventually("nothing runs any more", || {
        world.processes().is_empty() && there.processes().is_empty()
    })
    .await;
    disk_is_at_the_source(&world).await;
    world.delete("web").await;
    world.until_gone("web").await;
    there.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_lost_when_everything_was_sent() {
    // A first attempt that fails: what it leaves behind must not hinder the second.
    let begun = with_a_lost_target("a_target_is_lost_when_everything_was_sent").await;
    let Some((mut world, mut there, _)) = begun else {
        return;
    };
    // Its Fairway cannot say any more whether the guest runs: the source must not let it run either.
    lay_down(&world, "m-2", NODE, THERE, configuration("32Mi")).await;
    until_in_the_middle(&world, &there).await;
    there.crash().await;
    let waiting = until_everything_was_sent(&world).await;
    assert_eq!(waiting["status"]["nodeName"], NODE);
    assert_eq!(waiting["status"]["migrationState"]["completed"], Value::Null);
    assert_eq!(world.processes().len(), 1, "it stands still, and is kept");
    disk_is_at_the_source(&world).await;
    // Somebody makes sure that nothing runs there, and the engine says so.
    for pid in there.processes() {
        kill(pid);
    }
    let ended = json!({"status": {"migrationState": {"failed": true, "completed": true}}});
    world.patch("web", ended).await;
    let lost = world
        .until("web", "given up", |it| it["status"]["phase"] == "Failed")
        .await;
    assert_eq!(lost["status"]["nodeName"], NODE);
    eventually("nothing runs any more", || {
        world.processes().is_empty() && there.processes().is_empty()
    })
    .await;
    // The disk is as it was when the guest stood still: whoever starts the machine again starts it from there.
    disk_is_at_the_source(&world).await;
    world.delete("web").await;
    world.until_gone("web").await;
    world.stop().await;
}
