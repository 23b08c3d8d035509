//! Probes that decide whether a machine is ready and alive, and keys that go into a running guest. Those that go by the network ask a
//! server of the test; those that go by the agent ask a real guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::world::{World, condition};

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|it| it.0 == status)
}

/// A server that answers well as long as it is told to.
async fn server(is_well: Arc<AtomicBool>) -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                return;
            };
            let is_well = is_well.load(Ordering::Relaxed);
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await;
                let answer: &[u8] = match is_well {
                    true => b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
                    false => b"HTTP/1.1 503 No\r\nConnection: close\r\n\r\n",
                };
                let _ = stream.write_all(answer).await;
            });
        }
    });
    (port, task)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_asked() {
    let Some(mut world) = World::start("the_network_is_asked").await else {
        return;
    };
    let is_well = Arc::new(AtomicBool::new(false));
    let (ready, _ready) = server(Arc::clone(&is_well)).await;
    let (alive, aliveness) = server(Arc::default()).await;
    let machine = json!({
        "terminationGracePeriodSeconds": 0,
        "domain": {
            "memory": {"guest": "64Mi"},
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]},
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}],
        "readinessProbe": {"httpGet": {"port": ready, "path": "/healthz"}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5},
        "livenessProbe": {"tcpSocket": {"port": alive}, "periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": 5},
    });
    world.instance("web", machine).await;
    world.until_running("web").await;
    world
        .until_told(
            "web",
            "Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 503",
        )
        .await;
    let found = world.get("web").await.unwrap();
    assert_eq!(condition(&found, "Ready").unwrap().1, "ContainersNotReady");
    is_well.store(true, Ordering::Relaxed);
    world.until("web", "ready", |it| is(it, "Ready", "True")).await;
    // It stays so when Fairway restarts.
    world.crash().await;
    world.begin();
    for _ in 0..30 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(is(&world.get("web").await.unwrap(), "Ready", "True"));
    }
    is_well.store(false, Ordering::Relaxed);
    world
        .until("web", "not ready", |it| is(it, "Ready", "False"))
        .await;
    assert_eq!(world.processes().len(), 1, "that does not end it");

    // Nothing listens any more.
    aliveness.abort();
    let failed = world
        .until("web", "ended", |it| it["status"]["phase"] == "Failed")
        .await;
    assert_eq!(condition(&failed, "Ready").unwrap().0, "False");
    world.until_told("web", "Unhealthy Liveness probe failed: ").await;
    world
        .until_told(
            "web",
            "Stopped The VirtualMachineInstance crashed. the liveness probe failed",
        )
        .await;
    assert!(world.processes().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guest_is_asked_and_has_its_keys() {
    let test = "the_guest_is_asked_and_has_its_keys";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    let secrets = "/api/v1/namespaces/shop/secrets";
    let words = json!({"metadata": {"name": "words"}, "stringData": {"root": "correct horse"}});
    world.create(secrets, words).await;
    let way = |users: Value| json!({"qemuGuestAgent": users});
    let machine = json!({
        "terminationGracePeriodSeconds": 0,
        "domain": {
            "memory": {"guest": "256Mi"},
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "autoattachPodInterface": false},
        },
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
        // It is ready when the second key has come.
        "readinessProbe": {
            "exec": {"command": ["grep", "-q", "second", "/root/.ssh/authorized_keys"]},
            "periodSeconds": 1, "timeoutSeconds": 20,
        },
        "livenessProbe": {"guestAgentPing": {}, "initialDelaySeconds": 2, "periodSeconds": 10, "failureThreshold": 30, "timeoutSeconds": 20},
        "accessCredentials": [
            {"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": way(json!({"users": ["root"]}))}},
            {"userPassword": {"source": {"secret": {"secretName": "words"}}, "propagationMethod": way(json!({}))}},
        ],
    });
    world.instance("web", machine).await;
    world.until_running("web").await;
    let kind = "AccessCredentialsSynchronized";
    let missing = world
        .until("web", "without its keys", |it| {
            condition(it, kind).is_some_and(|it| it.2.contains("keys"))
        })
        .await;
    assert_eq!(condition(&missing, kind).unwrap().0, "False");
    let keys = |name: &str| json!({"metadata": {"name": "keys"}, "stringData": {"key": format!("ssh-ed25519 AAAA {name}")}});
    world.create(secrets, keys("first")).await;
    let synchronized = world
        .until("web", "with its keys", |it| is(it, kind, "True"))
        .await;
    assert!(is(&synchronized, "Ready", "False"));
    world
        .until_told(
            "web",
            "AccessCredentialsSyncSuccess Access credentials sync successful.",
        )
        .await;
    // The Secret changes, and the guest follows.
    let path = format!("{secrets}/keys");
    world.admin.merge(&path, &keys("second")).await.unwrap().unwrap();
    world.until("web", "ready", |it| is(it, "Ready", "True")).await;
    world.delete("web").await;
    world.until_gone("web").await;
    world.stop().await;
}
