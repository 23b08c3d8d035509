//! A real guest that is backed up through its node: everything, then what has changed, with a node that is begun anew in between.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_machines_guests::{Backup, Door, Guests as _, Order, Refusal};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::world::{NODE, PATIENCE, TEAM, World, condition};

fn machine() -> Value {
    json!({
        "domain": {
            "memory": {"guest": "256Mi"},
            "devices": {"disks": [
                {"name": "root", "disk": {"bus": "virtio"}}, {"name": "data", "disk": {"bus": "virtio"}},
                {"name": "scratch", "disk": {"bus": "virtio"}},
            ]},
        },
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            // Nobody wants it back.
            {"name": "scratch", "emptyDisk": {"capacity": "64Mi"}},
        ],
    })
}

fn qemu_img(arguments: &[&str], paths: &[&Path]) {
    let output = Command::new("qemu-img")
        .args(arguments)
        .args(paths)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "qemu-img {arguments:?}: {said}{errors}");
}

struct Bench<'a> {
    world: &'a World,
    key: ObjectKey,
    files: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(world: &'a World, files: &Path) -> Self {
        Self {
            world,
            key: ObjectKey::new(&WorkspaceId::parse(TEAM).unwrap(), "shop", "web"),
            files: files.to_owned(),
        }
    }

    /// A node that has just begun finds its machines in a moment.
    async fn order(&self, order: Order) -> Result<Value, Refusal> {
        let give_up = std::time::Instant::now() + PATIENCE;
        loop {
            match self.world.node.order(NODE, &self.key, order.clone()).await {
                Err(Refusal::NotRunning(_)) if std::time::Instant::now() < give_up => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                answer => return answer,
            }
        }
    }

    async fn begin(&self, checkpoint: &str, since: Option<&str>) -> Result<Value, Refusal> {
        let behind =
            ["root", "data"].map(|disk| (disk.to_owned(), format!("{disk}.{}.qcow2", since.unwrap_or(""))));
        self.order(Order::BeginBackup(Backup {
            checkpoint: checkpoint.to_owned(),
            since: since.map(str::to_owned),
            behind: since.map(|_| behind.into()).unwrap_or_default(),
        }))
        .await
    }

    async fn done(&self) -> Value {
        let waiting = async {
            loop {
                match self.order(Order::BackupStatus).await {
                    Ok(status) if status["done"] == true => return status,
                    Ok(_) => {}
                    Err(refusal) => panic!("{refusal}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }

    /// Brings the files here, in two parts.
    async fn fetch(&self, status: &Value) -> Vec<u64> {
        let mut lengths = Vec::new();
        for disk in status["disks"].as_array().unwrap() {
            let name = disk["name"].as_str().unwrap();
            let bytes = disk["bytes"].as_u64().unwrap();
            let mut content = vec![0; 1000];
            self.open(name, 0).await.read_exact(&mut content).await.unwrap();
            self.open(name, 1000)
                .await
                .read_to_end(&mut content)
                .await
                .unwrap();
            assert_eq!(content.len() as u64, bytes, "{name}");
            let checkpoint = status["checkpoint"].as_str().unwrap();
            std::fs::write(self.files.join(format!("{name}.{checkpoint}.qcow2")), content).unwrap();
            lengths.push(bytes);
        }
        lengths
    }

    async fn open(&self, disk: &str, offset: u64) -> Box<dyn fairway_fabric::Connection> {
        let door = Door::Backup {
            disk: disk.to_owned(),
            offset,
        };
        self.world.node.open(NODE, &self.key, door).await.unwrap()
    }

    /// The backup, made one file, is what the disks are.
    fn compare(&self, checkpoint: &str) {
        for disk in ["root", "data"] {
            let whole = self.files.join("whole.qcow2");
            let top = self.files.join(format!("{disk}.{checkpoint}.qcow2"));
            qemu_img(&["convert", "-q", "-O", "qcow2"], &[&top, &whole]);
            let volume = self
                .world
                .directory()
                .join("volumes")
                .join(TEAM)
                .join(format!("pv-{disk}"));
            qemu_img(&["compare", "-q", "-U"], &[&whole, &volume.join("disk.qcow2")]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_backed_up() {
    let test = "a_guest_is_backed_up";
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    world.claim("data", None).await;
    world.instance("web", machine()).await;
    let connected = |it: &Value| condition(it, "AgentConnected").is_some_and(|it| it.0 == "True");
    world.until("web", "connected to its agent", connected).await;
    let files = tempfile::tempdir().unwrap();

    let now = Bench::new(&world, files.path());
    assert!(matches!(
        now.order(Order::BackupStatus).await,
        Err(Refusal::Lacks(_))
    ));
    assert!(matches!(now.begin("../x", None).await, Err(Refusal::Lacks(_))));
    let begun = now.begin("one", None).await.unwrap();
    assert_eq!(begun["frozen"], true);
    let names: Vec<&str> = (begun["disks"].as_array().unwrap().iter())
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["data", "root"]);
    // Another process of the node finds what this one began.
    world.crash().await;
    world.begin();
    world
        .until("web", "connected to its agent again", connected)
        .await;
    let now = Bench::new(&world, files.path());
    let full = now.fetch(&now.done().await).await;
    now.order(Order::EndBackup {
        keep: true,
        forget: None,
    })
    .await
    .unwrap();
    assert!(
        std::fs::read_dir(world.directory().join("backups"))
            .unwrap()
            .next()
            .is_none()
    );

    now.order(Order::Pause).await.unwrap();
    let begun = now.begin("two", Some("one")).await.unwrap();
    assert!(
        begun["disks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["since"] == "one"),
        "{begun}"
    );
    let changed = now.fetch(&now.done().await).await;
    assert!(changed[1] < full[1] / 2, "{changed:?} of {full:?}");
    now.compare("two");
    let forget = Some("one".to_owned());
    now.order(Order::EndBackup { keep: true, forget }).await.unwrap();

    // What is not known any more is said, and everything is copied.
    let begun = now.begin("three", Some("one")).await.unwrap();
    for disk in begun["disks"].as_array().unwrap() {
        assert!(disk["why"].as_str().unwrap().contains("no record"), "{disk}");
        assert!(disk["since"].is_null(), "{disk}");
    }
    now.done().await;
    // Nobody has it: its checkpoint goes, and the last one stays good.
    now.order(Order::EndBackup {
        keep: false,
        forget: None,
    })
    .await
    .unwrap();
    let begun = now.begin("four", Some("two")).await.unwrap();
    assert!(
        begun["disks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["since"] == "two"),
        "{begun}"
    );
    now.fetch(&now.done().await).await;
    now.compare("four");
    world.delete("web").await;
    world.until_gone("web").await;
}
