//! KubeVirt's own client. `scripts/peers.sh virtctl` builds it; without it the tests say that they were skipped.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::machines::{INSTANCES, MACHINES};
use crate::stand_in::Manner;
use crate::world::{World, everywhere};

const PATIENCE: Duration = Duration::from_secs(60);

fn program() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.tools/bin/virtctl");
    let found = [
        std::env::var_os("FAIRWAY_VIRTCTL").map(PathBuf::from),
        Some(built),
    ];
    let found = found.into_iter().flatten().find(|path| path.exists());
    if found.is_none() {
        fairway_machines_required::skipped("there is no virtctl; scripts/peers.sh virtctl builds it");
    }
    found
}

/// virtctl, while it runs. It ends with this.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    /// What it prints, to whichever stream; nothing more when it has ended.
    output: mpsc::UnboundedReceiver<Vec<u8>>,
    heard: String,
}

impl Running {
    fn start(program: &Path, world: &World, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .arg("--kubeconfig")
            .arg(world.kubeconfig())
            .args(arguments)
            .env("HOME", world.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (pieces, output) = mpsc::unbounded_channel();
        follow(child.stdout.take().unwrap(), pieces.clone());
        follow(child.stderr.take().unwrap(), pieces);
        Self {
            input: child.stdin.take(),
            child,
            output,
            heard: String::new(),
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Waits until it has printed something.
    async fn until(&mut self, wanted: &str) -> &str {
        while !self.heard.contains(wanted) {
            let piece = timeout(PATIENCE, self.output.recv()).await;
            let piece = piece.unwrap_or_else(|_| panic!("{wanted:?} does not come: {}", self.heard));
            let piece = piece.unwrap_or_else(|| panic!("{wanted:?} did not come: {}", self.heard));
            self.heard.push_str(&String::from_utf8_lossy(&piece));
        }
        &self.heard
    }

    /// Waits for its end: its code, and all that it printed.
    async fn end(mut self) -> (i32, String) {
        while let Some(piece) = timeout(PATIENCE, self.output.recv())
            .await
            .unwrap_or_else(|_| panic!("it does not end: {}", self.heard))
        {
            self.heard.push_str(&String::from_utf8_lossy(&piece));
        }
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), std::mem::take(&mut self.heard))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(mut stream: impl Read + Send + 'static, pieces: mpsc::UnboundedSender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let _ = pieces.send(buffer[..count].to_vec());
        }
    });
}

/// Runs it to its end, with nothing to read.
async fn run(program: &Path, world: &World, arguments: &[&str]) -> (i32, String) {
    let mut running = Running::start(program, world, arguments);
    running.input = None;
    running.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs() {
    let Some(program) = program() else { return };
    everywhere(|world| {
        let program = program.clone();
        async move {
            world.machine("vm", "Manual").await;
            world.machine("halted", "Halted").await;
            let check = async |arguments: &[&str], expected: &str| {
                let (code, text) = run(&program, &world, arguments).await;
                assert!(
                    code == 0 && text.contains(expected),
                    "{arguments:?}: {code} {text}"
                );
            };
            let refused = async |arguments: &[&str], expected: &str| {
                let (code, text) = run(&program, &world, arguments).await;
                assert!(
                    code == 1 && text.contains(expected),
                    "{arguments:?}: {code} {text}"
                );
                // It compares versions when something fails.
                assert!(!text.contains("You are using a client virtctl version"), "{text}");
            };
            check(&["version"], "GitVersion:\"v1.5.2+fairway-").await;
            check(&["start", "halted"], "VM halted was scheduled to start").await;
            let vm = world.get(&format!("{MACHINES}/halted")).await;
            assert_eq!(vm["spec"]["runStrategy"], "Always");
            check(&["stop", "halted"], "VM halted was scheduled to stop").await;
            check(&["start", "vm", "--paused"], "VM vm was scheduled to start").await;
            refused(&["restart", "vm"], "VM is not running: Halted").await;
            refused(
                &["start", "none"],
                "virtualmachine.kubevirt.io \"none\" not found",
            )
            .await;
            world.instance("vm", "Running").await;
            check(&["stop", "vm", "--dry-run"], "Dry Run execution").await;
            check(
                &["stop", "vm", "--force", "--grace-period=0"],
                "VM vm was scheduled to stop",
            )
            .await;
            let vmi = world.get(&format!("{INSTANCES}/vm")).await;
            assert_eq!(vmi["spec"]["terminationGracePeriodSeconds"], 0);
            let nothing = json!({"status": {"stateChangeRequests": null}});
            let status = format!("{MACHINES}/vm/status");
            world.api.merge(&status, &nothing).await.unwrap();
            check(&["restart", "vm"], "VM vm was scheduled to restart").await;
            check(&["pause", "vm", "vm"], "VMI vm was scheduled to pause").await;
            check(&["pause", "vmi", "vm"], "VMI vm was scheduled to pause").await;
            world.condition("vm", "Paused").await;
            refused(&["pause", "vmi", "vm"], "VMI is already paused").await;
            check(&["unpause", "vm", "vm"], "VMI vm was scheduled to unpause").await;
            world.says("vm", json!({"conditions": []})).await;
            check(&["soft-reboot", "vm"], "").await;
            check(&["reset", "vm"], "").await;
            refused(&["guestosinfo", "vm"], "VMI does not have guest agent connected").await;
            world.condition("vm", "AgentConnected").await;
            check(&["guestosinfo", "vm"], "\"hostname\": \"web\"").await;
            check(&["userlist", "vm"], "\"userName\": \"alice\"").await;
            check(&["fslist", "vm"], "\"mountPoint\": \"/\"").await;
            world
                .says(
                    "vm",
                    json!({"conditions": [{"type": "LiveMigratable", "status": "True"}]}),
                )
                .await;
            check(&["migrate", "vm"], "VM vm was scheduled to migrate").await;
            check(&["migrate-cancel", "vm"], "VM vm was scheduled to migrate-cancel").await;
            let picture = world.folder().join("screen.png");
            let file = picture.to_str().unwrap();
            check(&["vnc", "screenshot", "vm", "-f", file], "").await;
            assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
            refused(&["guestfs", "claim"], "").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes() {
    let Some(program) = program() else { return };
    everywhere(|world| {
        let program = program.clone();
        async move {
            world.machine("vm", "Always").await;
            world.instance("vm", "Running").await;
            world
                .create(
                    "/api/v1/namespaces/vms/persistentvolumeclaims",
                    json!({
                        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "more"},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                    }),
                )
                .await;
            let (code, text) = run(&program, &world, &["addvolume", "vm", "--volume-name=more"]).await;
            assert!(
                code == 0 && text.contains("Successfully submitted add volume request"),
                "{text}"
            );
            let vmi = world.get(&format!("{INSTANCES}/vm")).await;
            assert_eq!(vmi["spec"]["volumes"][1]["name"], "more");
            let arguments = ["addvolume", "vm", "--volume-name=more", "--persist"];
            let (code, text) = run(&program, &world, &arguments).await;
            assert_eq!(code, 0, "{text}");
            let vm = world.get(&format!("{MACHINES}/vm")).await;
            let request = &vm["status"]["volumeRequests"][0]["addVolumeOptions"];
            assert_eq!(request["name"], "more");
            let (code, text) = run(&program, &world, &["removevolume", "vm", "--volume-name=more"]).await;
            assert!(
                code == 0 && text.contains("Successfully submitted remove volume request"),
                "{text}"
            );
            let vmi = world.get(&format!("{INSTANCES}/vm")).await;
            assert_eq!(vmi["spec"]["volumes"].as_array().unwrap().len(), 1);
        }
    })
    .await;
}

/// What is said first on a port that virtctl listens on, or is about to.
async fn greeting(port: u16, length: usize) -> Vec<u8> {
    let reading = async {
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Ok(stream) => break stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let mut heard = vec![0; length];
        stream.read_exact(&mut heard).await.unwrap();
        heard
    };
    timeout(PATIENCE, reading).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams() {
    let Some(program) = program() else { return };
    everywhere(|world| {
        let program = program.clone();
        async move {
            world.machine("vm", "Always").await;
            world.instance("vm", "Running").await;
            let mut console = Running::start(&program, &world, &["console", "vm"]);
            console.until("login: ").await;
            console.say(b"alice\r");
            console.until("alice\r").await;
            // Control and a bracket, which end it.
            console.say(&[29]);
            let (code, text) = console.end().await;
            assert_eq!(code, 0, "{text}");
            assert!(
                text.contains("Successfully connected to vm console. The escape sequence is ^]"),
                "{text}"
            );

            let arguments = ["port-forward", "--stdio=true", "vm/vm", "22"];
            let mut port = Running::start(&program, &world, &arguments);
            port.until("SSH-2.0-x").await;
            port.say(b"hello");
            port.until("hello").await;

            let arguments = ["port-forward", "vmi/vm", "38477:8080"];
            let mut port = Running::start(&program, &world, &arguments);
            port.until("forwarding tcp 127.0.0.1:38477 to 8080").await;
            assert_eq!(greeting(38477, 9).await, b"SSH-2.0-x");

            let mut screen = Running::start(&program, &world, &["vnc", "vm", "--proxy-only"]);
            // Among its messages.
            let told = screen.until("{\"port\":").await;
            let digits = told.split("{\"port\":").nth(1).unwrap();
            let port = digits.split('}').next().unwrap().parse().unwrap();
            assert_eq!(greeting(port, 12).await, b"RFB 003.008\n");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_was_taken_away() {
    let Some(program) = program() else { return };
    everywhere(|world| {
        let program = program.clone();
        async move {
            world.machine("vm", "Always").await;
            world.instance("vm", "Running").await;
            *world.machines.manner.lock().unwrap() = Manner::Brief;
            let console = Running::start(&program, &world, &["console", "vm"]);
            let (code, text) = console.end().await;
            assert_eq!(code, 1, "{text}");
            assert!(
                text.contains("You were disconnected from the console. This could be caused by"),
                "{text}"
            );
        }
    })
    .await;
}
