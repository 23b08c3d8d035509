//! One guest with a seed: what the seed says is there, the agent answers, devices come and go, and nothing that happens to Fairway
//! happens to the guest.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fairway_machines_qemu::devices::Disk;
use fairway_machines_qemu::launch::Adopted;
use fairway_machines_qemu::{Agent, Console, Format, Launch, Machine, adopt, start};

use super::bench::{Boot, PATIENCE, QEMU, bench, eventually, free_port, has, shows};

const USER_DATA: &str = r#"#cloud-config
hostname: web-1
ssh_pwauth: true
users:
  - default
  - name: ada
    gecos: Ada Lovelace
    groups: [adm, engines]
    shell: /bin/bash
    lock_passwd: false
    plain_text_passwd: 'count: 7'
    ssh_authorized_keys:
      - KEY
write_files:
  - path: /etc/motd
    permissions: "0640"
    content: |
      Hello 'guest'
        indented
  - path: /srv/b64
    encoding: b64
    content: aGVsbG8=
    owner: ada:ada
    defer: true
runcmd:
  - [sh, -c, 'echo "list $0" > /run/list', "it's"]
  - echo text >/run/text
  - |
    for i in 1 2; do
      echo $i >>/run/loop
    done
packages:
  - nginx
"#;

/// Runs a command in the guest by the agent; what it prints.
async fn in_guest(agent: &Agent, script: &str) -> String {
    let arguments = ["-c".to_owned(), script.to_owned()];
    let executed = agent
        .execute("/bin/sh", &arguments, None, Duration::from_secs(60))
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&executed.errors);
    assert_eq!(executed.code, Some(0), "{script}: {errors}");
    String::from_utf8_lossy(&executed.output).trim().to_owned()
}

/// The process that starts the machine and is killed for it.
#[test]
#[ignore = "run by another test"]
fn starter() {
    let text = std::fs::read(std::env::var_os("FAIRWAY_TEST_LAUNCH").unwrap()).unwrap();
    let line: Vec<String> = serde_json::from_slice(&text).unwrap();
    let directory = std::env::var_os("FAIRWAY_TEST_DIRECTORY").unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let machine = start(&Launch::new(QEMU, directory, line)).await.unwrap();
        machine.ended().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_with_a_seed() {
    let Some(bench) = bench("a_guest_with_a_seed").await else {
        return;
    };
    let key = bench.path("key");
    let has_ssh = has("ssh")
        || Command::new("ssh")
            .arg("-V")
            .stderr(Stdio::null())
            .status()
            .is_ok();
    let mut public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDummy test".to_owned();
    if has_ssh {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&key)
            .status();
        assert!(made.unwrap().success());
        public = std::fs::read_to_string(key.with_extension("pub"))
            .unwrap()
            .trim()
            .to_owned();
    } else {
        fairway_machines_required::skipped("logging in by SSH: ssh is not installed (scripts/tools.sh qemu)");
    }
    let seed = bench.seed(&[
        ("user-data", &USER_DATA.replace("KEY", &public)),
        ("meta-data", "instance-id: i-1\nlocal-hostname: meta\n"),
    ]);
    let directory = bench.machine("vm");
    let port = free_port();
    let network = [
        "-netdev".to_owned(),
        format!("user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"),
        "-device".to_owned(),
        "virtio-net-pci,netdev=net,romfile=,id=nic".to_owned(),
    ];
    let line = bench.arguments(
        &Boot::Direct,
        &directory.join("root.qcow2"),
        Some(&seed),
        &network,
    );

    // Started by a process that is killed at once: the guest does not notice, and is found again.
    let launch = bench.path("launch.json");
    std::fs::write(&launch, serde_json::to_vec(&line).unwrap()).unwrap();
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "seed::starter", "--ignored", "--quiet"])
        .env("FAIRWAY_TEST_LAUNCH", &launch)
        .env("FAIRWAY_TEST_DIRECTORY", &directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the machine's record", || {
        let ended = starter.try_wait().unwrap();
        assert!(ended.is_none(), "the starter ended with {ended:?}");
        let is_there = directory.join("machine.json").exists();
        async move { is_there.then_some(()).ok_or("it is not there") }
    })
    .await;
    starter.kill().unwrap();
    starter.wait().unwrap();
    let Adopted::Running(machine) = adopt(&directory).await.unwrap() else {
        panic!("the machine of a killed Fairway is not found");
    };
    let pid = machine.pid();
    assert_eq!(machine.state().await.unwrap(), "running");
    assert_sandboxed(pid);

    let console = Console::open(&directory).unwrap();
    shows(&mut console.reader(), "web-1 login:").await;
    let shown = shows(&mut console.reader(), "cloud-init: finished").await;
    assert!(shown.contains("packages: this guest cannot do that"), "{shown}");
    type_a_password(&console).await;

    let agent = Agent::new(&directory);
    eventually("the agent", || agent.ping()).await;
    what_the_seed_says(&agent).await;
    what_the_agent_says(&agent).await;
    if has_ssh {
        let said = eventually("logging in by SSH", || async {
            ssh(&key, port, "id -un; hostname")
        })
        .await;
        assert_eq!(said, "ada\nweb-1");
    }
    devices(&machine, &agent).await;

    // Let go and found again, by the same process this time; the number is the same, and the agent still answers.
    drop(machine);
    let machine = eventually("the second adoption", || async {
        match adopt(&directory).await.unwrap() {
            Adopted::Running(machine) => Ok(machine),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(machine.pid(), pid);
    assert_eq!(in_guest(&agent, "cat /run/text").await, "text");

    // Somebody kills QEMU: that is a crash, and nothing is left that could be taken for a machine.
    kill(pid);
    let exit = tokio::time::timeout(PATIENCE, machine.ended()).await.unwrap();
    assert!(exit.is_crash() && !exit.by_guest, "{exit:?}");
    assert!(matches!(adopt(&directory).await.unwrap(), Adopted::Gone));
    assert!(String::from_utf8_lossy(&console.scrollback()).contains("web-1 login:"));
}

async fn what_the_seed_says(agent: &Agent) {
    for (script, expected) in [
        ("hostname", "web-1"),
        (
            "stat -c '%a %U' /etc/motd; cat /etc/motd",
            "640 root\nHello 'guest'\n  indented",
        ),
        ("cat /srv/b64; stat -c ' %U:%G' /srv/b64", "hello ada:ada"),
        ("cat /run/list /run/text /run/loop", "list it's\ntext\n1\n2"),
        ("id -Gn ada", "ada adm engines"),
        (
            "grep ^ada: /etc/passwd | cut -d: -f5-",
            "Ada Lovelace:/home/ada:/bin/bash",
        ),
        ("grep -c ^fairway: /etc/passwd", "1"),
        ("cloud-init status || true", "status: error"),
        ("cloud-init status --long | grep -c 'error: packages'", "1"),
        ("df -m / | awk 'NR == 2 { print ($2 > 800) }'", "1"),
    ] {
        assert_eq!(in_guest(agent, script).await, expected, "{script}");
    }
}

async fn what_the_agent_says(agent: &Agent) {
    let system = agent.os_info().await.unwrap();
    assert_eq!(system.id, "tiny");
    assert!(system.kernel_release.contains("cloud"), "{system:?}");
    assert_eq!(agent.host_name().await.unwrap(), "web-1");
    let interfaces = agent.interfaces().await.unwrap();
    let first = interfaces
        .iter()
        .find(|interface| interface.name == "eth0")
        .unwrap();
    assert!(
        first.addresses.contains(&("10.0.2.15".to_owned(), 24)),
        "{first:?}"
    );
    let roots = agent.filesystems().await.unwrap();
    assert!(
        roots
            .iter()
            .any(|found| found.mountpoint == "/" && found.kind == "ext4"),
        "{roots:?}"
    );
    assert!(!agent.is_frozen().await.unwrap());
    assert!(agent.freeze().await.unwrap() >= 1);
    assert!(agent.is_frozen().await.unwrap());
    assert!(agent.thaw().await.unwrap() >= 1);
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAnother other".to_owned();
    agent
        .set_ssh_keys("fairway", std::slice::from_ref(&key), false)
        .await
        .unwrap();
    assert_eq!(agent.ssh_keys("fairway").await.unwrap(), [key]);
    agent.set_password("fairway", "secret").await.unwrap();
    assert!(
        in_guest(agent, "grep ^fairway: /etc/shadow")
            .await
            .contains("$6$")
    );
    let refused = agent.call("guest-no-such-thing", serde_json::Value::Null).await;
    assert!(refused.unwrap_err().to_string().contains("refused"));
    agent.ping().await.unwrap();
}

/// Logs in at the console, with the password from the seed, and out again.
async fn type_a_password(console: &Console) {
    let writer = console.writer(false).unwrap();
    for (wanted, typed) in [("login:", "\n"), ("login:", "ada\n"), ("assword:", "count: 7\n")] {
        let mut reader = console.reader();
        reader.scrollback.clear();
        assert!(writer.write(typed.into()).await);
        if wanted == "login:" && typed == "\n" {
            shows(&mut reader, wanted).await;
            continue;
        }
        if typed.starts_with("ada") {
            shows(&mut reader, "assword:").await;
        } else {
            shows(&mut reader, "$").await;
        }
    }
    let mut reader = console.reader();
    reader.scrollback.clear();
    assert!(writer.write("echo I am $(id -un); exit\n".into()).await);
    shows(&mut reader, "I am ada").await;
}

async fn devices(machine: &Machine, agent: &Agent) {
    let timeout = Duration::from_secs(60);
    fairway_machines_image::overlay::blank(machine.directory(), "more", 64 << 20).unwrap();
    let disk = Disk {
        id: "more".to_owned(),
        file: "more.qcow2".to_owned(),
        format: Format::Qcow2,
        read_only: false,
        driver: "virtio-blk-pci".to_owned(),
        bus: "slot1".to_owned(),
        serial: Some("more-1".to_owned()),
    };
    machine.add_disk(&disk).await.unwrap();
    let twice = machine.add_disk(&disk).await.unwrap_err().to_string();
    assert!(twice.contains("refused"), "{twice}");
    let find = "for d in /sys/block/vd*; do [ \"$(cat $d/serial)\" = more-1 ] && cat $d/size; done; true";
    let seen = eventually("the new disk in the guest", || async {
        match in_guest(agent, find).await {
            size if size.is_empty() => Err("it is not there"),
            size => Ok(size),
        }
    })
    .await;
    assert_eq!(seen, "131072");
    machine.grow_disk("more-disk", 128 << 20).await.unwrap();
    eventually("the larger disk in the guest", || async {
        match in_guest(agent, find).await.as_str() {
            "262144" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    machine.remove_disk("more", timeout).await.unwrap();
    machine.remove_disk("more", timeout).await.unwrap();
    assert_eq!(in_guest(agent, find).await, "");

    assert_eq!(machine.set_processors(2).await.unwrap(), 2);
    assert!(machine.set_processors(3).await.is_err());
    eventually("the second processor in the guest", || async {
        match in_guest(agent, "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l")
            .await
            .as_str()
        {
            "2" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    machine.add_memory("dimm1", 128 << 20).await.unwrap();
    machine.pause().await.unwrap();
    assert_eq!(machine.state().await.unwrap(), "paused");
    machine.resume().await.unwrap();
    machine.wait_for_state("running", timeout).await.unwrap();
}

fn ssh(key: &Path, port: u16, command: &str) -> Result<String, String> {
    let output = Command::new("ssh")
        .args([
            "-F",
            "/dev/null",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "ConnectTimeout=20",
        ])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i"])
        .arg(key)
        .args(["-p", &port.to_string(), "ada@127.0.0.1", command])
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn assert_sandboxed(pid: u32) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let seccomp = status.lines().find(|line| line.starts_with("Seccomp:")).unwrap();
    assert!(seccomp.ends_with('2'), "{seccomp}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(3)
        .unwrap()
        .to_owned();
    assert_eq!(session, pid.to_string(), "it has a session of its own");
}

fn kill(pid: u32) {
    let status = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}
