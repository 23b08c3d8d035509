//! A machine on a node that runs as root: its QEMU is a user's who has nothing but the machine, in a control group of its own, and nothing
//! of that is left when it has gone. Another user's processes try what a QEMU that was taken over would try.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::world::{World, eventually};

/// A machine that does not run on: what is looked at is there before its first instruction.
fn machine() -> Value {
    json!({
        "startStrategy": "Paused",
        "domain": {
            "memory": {"guest": "64Mi"},
            "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1500m"}},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "layer", "disk": {"bus": "virtio"}},
                    {"name": "scratch", "disk": {"bus": "virtio"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
            {"name": "layer", "ephemeral": {"persistentVolumeClaim": {"claimName": "below"}}},
            {"name": "scratch", "emptyDisk": {"capacity": "1Mi"}},
        ],
    })
}

fn is_root(test: &str) -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !is_root {
        eprintln!("SKIPPED: {test}: only root gives machines users of their own");
    }
    is_root
}

/// A field of a process's status.
fn status(pid: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|it| it.strip_prefix(field)).unwrap();
    line.trim_start_matches(':')
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a user can do something in a directory that somebody else has taken it to.
fn can(user: u32, directory: &Path, script: &str) -> bool {
    let user = user.to_string();
    let done = Command::new("setpriv")
        .args([
            "--reuid",
            &user,
            "--regid",
            &user,
            "--clear-groups",
            "sh",
            "-c",
            script,
        ])
        .current_dir(directory)
        .output()
        .unwrap();
    done.status.success()
}

fn links(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().into_string().ok()?, target.to_str()?.to_owned()))
    };
    entries.filter_map(read).collect()
}

/// The control group of a process, if version 2 is there.
fn group(pid: u32) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = fairway_machines_plan::confinement::groups::mount(&mounts)?;
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let own = fairway_machines_plan::confinement::groups::own(&own)?;
    Some(PathBuf::from(format!("{}{own}", mount.trim_end_matches('/'))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_has_what_is_its_own_and_no_more() {
    let test = "a_machine_has_what_is_its_own_and_no_more";
    if !is_root(test) {
        return;
    }
    let Some(mut world) = World::start(test).await else {
        return;
    };
    let Some(image) = world.tiny(test) else {
        return;
    };
    world.claim("root", Some(&image)).await;
    world.claim("below", Some(&image)).await;
    world.instance("one", machine()).await;
    world.claim("other", None).await;
    let mut other = machine();
    other["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!("other");
    world.instance("two", other).await;
    for name in ["one", "two"] {
        world.until_running(name).await;
    }

    // Two processes, each of a user of its own.
    let pids = world.processes();
    assert_eq!(pids.len(), 2, "{pids:?}");
    let home = |pid: u32| std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    let users: Vec<u32> = pids
        .iter()
        .map(|pid| status(*pid, "Uid").split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_ne!(users[0], users[1]);
    for (pid, user) in pids.iter().zip(&users) {
        assert!((1_900_000_000..1_901_000_000).contains(user), "{user}");
        let four = [user.to_string().as_str(); 4].join(" ");
        assert_eq!(status(*pid, "Uid"), four);
        assert_eq!(status(*pid, "Gid"), four);
        assert_eq!(status(*pid, "CapEff"), "0000000000000000");
        assert_eq!(status(*pid, "NoNewPrivs"), "1");
        assert_eq!(status(*pid, "Seccomp"), "2");
    }

    // What a QEMU can do that was taken over: as its user, where it works.
    let (directory, user, stranger) = (home(pids[0]), users[0], users[1]);
    let instance = if directory == home(pids[0]) {
        &pids[0]
    } else {
        &pids[1]
    };
    let line = std::fs::read(format!("/proc/{instance}/cmdline")).unwrap();
    let line = String::from_utf8_lossy(&line).into_owned();
    let has_root = line.contains("pv-root");
    let own = if has_root { "pv-root" } else { "pv-other" };
    let theirs = if has_root { "pv-other" } else { "pv-root" };
    let volumes = format!("../../volumes/{}", super::world::TEAM);
    for (script, allowed, reason) in [
        (
            format!("exec 3<>{volumes}/{own}/disk.qcow2"),
            true,
            "its own disk",
        ),
        (
            format!("exec 3<{volumes}/pv-below/disk.qcow2"),
            true,
            "what its layer lies over",
        ),
        (
            format!("exec 3<{volumes}/pv-below/disk.base"),
            true,
            "an image that several share",
        ),
        ("exec 3<>disk-layer.qcow2".to_owned(), true, "its layer"),
        (
            "echo x > live/new".to_owned(),
            true,
            "the one directory that is its own",
        ),
        (
            format!("exec 3<>{volumes}/pv-below/disk.qcow2"),
            false,
            "others read that",
        ),
        (
            format!("exec 3<>{volumes}/pv-below/disk.base"),
            false,
            "everybody reads that",
        ),
        (
            format!("chmod 666 {volumes}/pv-below/disk.base"),
            false,
            "it is not its own",
        ),
        (
            format!("exec 3<{volumes}/{theirs}/disk.qcow2"),
            false,
            "another machine's disk",
        ),
        (format!("ls {volumes}"), false, "whose volumes there are"),
        ("ls ..".to_owned(), false, "what other machines there are"),
        ("cat instance.json".to_owned(), false, "what Fairway relies on"),
        (
            "echo x > instance.json".to_owned(),
            false,
            "what Fairway relies on",
        ),
        ("rm -f instance.json".to_owned(), false, "what Fairway relies on"),
        ("echo x > new".to_owned(), false, "Fairway's directory"),
        ("mv live other".to_owned(), false, "Fairway's directory"),
        (
            "ls ../../../keys".to_owned(),
            false,
            "what is above the node's directory",
        ),
    ] {
        assert_eq!(can(user, &directory, &script), allowed, "{reason}: {script}");
    }
    assert!(
        !can(stranger, &directory, "ls live") && !can(stranger, &directory, "exec 3<disk-scratch.qcow2"),
        "another machine's user"
    );
    let base = world
        .directory()
        .join(format!("volumes/{}/pv-below/disk.base", super::world::TEAM));
    let base = std::fs::metadata(base).unwrap();
    assert_eq!((base.uid(), base.permissions().mode() & 0o777), (0, 0o444));

    // The control groups, as far as the host has any.
    let node = world
        .admin_of("root")
        .get("/api/v1/nodes/here")
        .await
        .unwrap()
        .unwrap();
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let isolated = conditions
        .iter()
        .find(|it| it["type"] == "fairway.dev/Isolated")
        .unwrap();
    let message = isolated["message"].as_str().unwrap();
    assert!(!message.contains("as root"), "{message}");
    let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
    let entered = group(pids[0]).filter(|it| it.display().to_string().contains(&name));
    assert_eq!(
        entered.is_some(),
        !message.contains("no limits beside their own size"),
        "the Node tells how it is: {message}"
    );
    if let Some(group) = &entered {
        assert_ne!(entered, self::group(pids[1]), "one each");
        let read = |file: &str| std::fs::read_to_string(group.join(file)).map(|it| it.trim().to_owned());
        match read("cpu.max") {
            Ok(limit) => assert_eq!(limit, "150000 100000"),
            Err(_) => assert!(message.contains("lack cpu"), "{message}"),
        }
        match read("memory.max") {
            // The guest's 64 MiB, and what QEMU needs.
            Ok(limit) => assert!(
                (256 << 20..512 << 20).contains(&limit.parse::<u64>().unwrap()),
                "{limit}"
            ),
            Err(_) => assert!(message.contains("memory"), "{message}"),
        }
    } else {
        eprintln!("SKIPPED: groups: {message}");
    }

    // A node that comes back finds user and group.
    let known = links(&world.directory().join("users"));
    assert_eq!(known.len(), 2, "{known:?}");
    world.crash().await;
    world.begin();
    world.until_running("one").await;
    assert_eq!(links(&world.directory().join("users")), known);
    assert_eq!(world.processes(), pids);

    for name in ["one", "two"] {
        world.delete(name).await;
        world.until_gone(name).await;
    }
    eventually("everything is gone", || {
        let users = links(&world.directory().join("users"));
        users.is_empty() && world.homes().is_empty() && entered.as_ref().is_none_or(|it| !it.exists())
    })
    .await;
    assert!(world.processes().is_empty());
}
