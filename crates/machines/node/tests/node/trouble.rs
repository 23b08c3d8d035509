//! What goes wrong, on machines without a system: they sit in their firmware, which is all that is needed here.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{CLAIMS, World, condition, eventually};

/// A machine with an empty disk, and no more than the firmware to run.
fn empty() -> Value {
    json!({
        "terminationGracePeriodSeconds": 0,
        "domain": {
            "memory": {"guest": "64Mi"},
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "autoattachPodInterface": false},
        },
        "volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_never_lost_and_never_left() {
    let Some(mut world) = World::start("a_process_is_never_lost_and_never_left").await else {
        return;
    };
    for name in ["stays", "goes", "dies", "dies-meanwhile"] {
        world.instance(name, empty()).await;
    }
    for name in ["stays", "goes", "dies", "dies-meanwhile"] {
        world.until_running(name).await;
    }
    assert_eq!(world.processes().len(), 4);

    // Somebody kills QEMU: the instance has failed, and says why.
    let pid = pid_of(&world, "dies").await;
    kill(pid);
    let failed = world
        .until("dies", "failed", |it| it["status"]["phase"] == "Failed")
        .await;
    assert_eq!(condition(&failed, "Ready").unwrap().0, "False");
    world
        .until_told("dies", "Stopped The VirtualMachineInstance crashed.")
        .await;

    // Fairway is gone; meanwhile one instance is removed by force, and the QEMU of another dies.
    world.crash().await;
    let stays = pid_of(&world, "stays").await;
    world
        .patch("goes", json!({"metadata": {"finalizers": null}}))
        .await;
    world.delete("goes").await;
    world.until_gone("goes").await;
    kill(pid_of(&world, "dies-meanwhile").await);
    world.begin();
    world
        .until("dies-meanwhile", "failed", |it| it["status"]["phase"] == "Failed")
        .await;
    // The one whose instance is gone is ended; the one that has its instance is not touched.
    eventually("the machine of a removed instance is ended", || {
        world.processes() == [stays]
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.processes(), [stays]);
    assert_eq!(world.get("stays").await.unwrap()["status"]["phase"], "Running");

    for name in ["stays", "dies", "dies-meanwhile"] {
        world.delete(name).await;
        world.until_gone(name).await;
    }
    eventually("nothing is left", || {
        world.processes().is_empty() && world.homes().is_empty()
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_named_and_waited_for() {
    let Some(mut world) = World::start("what_is_missing_is_named_and_waited_for").await else {
        return;
    };
    let on_claim = json!({
        "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "autoattachPodInterface": false}},
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "later"}}],
    });
    world.instance("no-claim", on_claim).await;
    let mut with_seed = empty();
    with_seed["domain"]["devices"]["disks"] = json!([{"name": "seed", "disk": {"bus": "virtio"}}]);
    with_seed["volumes"] = json!([{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "later"}}}]);
    world.instance("no-secret", with_seed).await;
    let mut of_image = empty();
    of_image["volumes"] = json!([{"name": "root", "containerDisk": {"image": "registry.example/none"}}]);
    world.instance("no-image", of_image).await;
    let mut of_host = empty();
    of_host["volumes"] = json!([{"name": "root", "hostDisk": {"path": "/etc/passwd", "type": "Disk"}}]);
    // Admission refuses it without the gate; should one get past, the node does, too.
    let _ = of_host;

    let says = |kind: &'static str, reason: &'static str| {
        move |it: &Value| condition(it, kind).is_some_and(|it| it.0 == "False" && it.1 == reason)
    };
    world
        .until(
            "no-claim",
            "waiting for its claim",
            says("Synchronized", "FailedPvcNotFound"),
        )
        .await;
    let seed = world
        .until(
            "no-secret",
            "waiting for its Secret",
            says("Synchronized", "FailedCreate"),
        )
        .await;
    let message = condition(&seed, "Synchronized").unwrap().2;
    assert!(
        message.contains("Secret \"later\", which does not exist"),
        "{message}"
    );
    let image = world
        .until("no-image", "waiting for its image", |it| {
            says("Synchronized", "ErrImagePull")(it) || says("Synchronized", "ImagePullBackOff")(it)
        })
        .await;
    assert!(
        condition(&image, "Synchronized")
            .unwrap()
            .2
            .contains("registry.example/none")
    );
    assert_eq!(world.processes(), [] as [u32; 0]);

    world.claim("later", None).await;
    let running = world.until_running("no-claim").await;
    assert_eq!(condition(&running, "Synchronized"), None);
    let status = &running["status"]["volumeStatus"][0];
    assert_eq!(status["target"], "vda");
    assert_eq!(status["persistentVolumeClaimInfo"]["claimName"], "later");
    assert_eq!(status["persistentVolumeClaimInfo"]["capacity"]["storage"], "1Gi");
    let secret = json!({"metadata": {"name": "later"}, "stringData": {"userdata": "#cloud-config"}});
    world.create("/api/v1/namespaces/shop/secrets", secret).await;
    world.until_running("no-secret").await;

    // One that never started goes at once.
    world.delete("no-image").await;
    world.until_gone("no-image").await;
    for name in ["no-claim", "no-secret"] {
        world
            .patch(name, json!({"spec": {"terminationGracePeriodSeconds": 0}}))
            .await;
        world.delete(name).await;
        world.until_gone(name).await;
    }
    eventually("nothing is left", || {
        world.processes().is_empty() && world.homes().is_empty()
    })
    .await;
    world.stop().await;
}

/// The node reads that a claim is not bound, hears that it is, and only then looks at what it has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_bound_while_it_is_looked_at() {
    let Some(mut world) = World::start("a_claim_is_bound_while_it_is_looked_at").await else {
        return;
    };
    let on = |claim: &str| {
        let mut machine = empty();
        machine["volumes"] = json!([{"name": "root", "persistentVolumeClaim": {"claimName": claim}}]);
        machine
    };
    for claim in ["raced", "witness"] {
        world.unbound_claim(claim, None).await;
    }
    world.instance("witness", on("witness")).await;
    let mut answers = world.gate.close(&format!("{CLAIMS}/raced"));
    world.instance("raced", on("raced")).await;
    answers.asked().await;
    // Changes of claims are told in their order: when the witness has heard of its own, everybody has heard of the one before.
    world.bind("raced").await;
    world.bind("witness").await;
    world.until_running("witness").await;
    answers.open();
    world.until_running("raced").await;

    for name in ["raced", "witness"] {
        world.delete(name).await;
        world.until_gone(name).await;
    }
    world.stop().await;
}

/// The process of an instance's machine, found by its record.
async fn pid_of(world: &World, name: &str) -> u32 {
    for home in world.homes() {
        let record = std::fs::read_to_string(home.join("instance.json")).unwrap_or_default();
        let record: Value = serde_json::from_str(&record).unwrap_or_default();
        if record["owner"]["name"] == name {
            let text = std::fs::read_to_string(home.join("qemu.pid")).unwrap();
            return text.trim().parse().unwrap();
        }
    }
    panic!("{name} has no process");
}

fn kill(pid: u32) {
    let status = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}
