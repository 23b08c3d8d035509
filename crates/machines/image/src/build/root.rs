//! The guest's root file system and initrd, chosen from what is in the packages.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use fairway_machines_disk::{Tree, elf};

use super::modules::{ALIASES, EARLY, LATE, Modules, ON_DEMAND};
use crate::{ImageError, command, failed};

/// The guest's own scripts.
pub(super) const SCRIPTS: [(&str, &str); 15] = [
    ("initrd-init", include_str!("../../guest/initrd-init")),
    ("inittab", include_str!("../../guest/inittab")),
    ("boot", include_str!("../../guest/boot")),
    ("final", include_str!("../../guest/final")),
    ("ssh", include_str!("../../guest/ssh")),
    ("agent", include_str!("../../guest/agent")),
    ("halt", include_str!("../../guest/halt")),
    ("dhcp", include_str!("../../guest/dhcp")),
    ("power", include_str!("../../guest/power")),
    ("shutdown", include_str!("../../guest/shutdown")),
    ("chpasswd", include_str!("../../guest/chpasswd")),
    ("bash", include_str!("../../guest/bash")),
    ("cloud-init", include_str!("../../guest/cloud-init")),
    ("functions", include_str!("../../guest/functions")),
    ("cloud.awk", include_str!("../../guest/cloud.awk")),
];
/// Where those go that have a place of their own; all others go to `/etc/fairway`.
const PLACES: [(&str, &str); 6] = [
    ("inittab", "etc/inittab"),
    ("power", "etc/acpi/PWRF/00000080"),
    ("shutdown", "sbin/shutdown"),
    ("chpasswd", "usr/sbin/chpasswd"),
    ("bash", "bin/bash"),
    ("cloud-init", "usr/bin/cloud-init"),
];
/// Programs beside busybox.
const PROGRAMS: [&str; 4] = [
    "usr/sbin/dropbear",
    "usr/bin/dropbearkey",
    "usr/sbin/qemu-ga",
    "sbin/resize2fs",
];
/// What is chosen from the packages: a change of this source is a change of the image.
pub(super) const LIST: &str = concat!(include_str!("root.rs"), include_str!("modules.rs"));
/// What of busybox the initrd uses.
const INITRD_APPLETS: [&str; 14] = [
    "sh",
    "mount",
    "insmod",
    "cat",
    "ls",
    "findfs",
    "usleep",
    "readlink",
    "printf",
    "dd",
    "sync",
    "blockdev",
    "switch_root",
    "dmesg",
];
/// Where libraries are searched for.
const LIBRARIES: [&str; 4] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib64",
    "usr/lib64",
];

/// What the guest consists of.
pub(super) struct Root {
    pub(super) tree: Tree,
    pub(super) initrd: Tree,
    /// The kernel as the package has it.
    pub(super) kernel: Bytes,
}

/// Chooses what goes into the guest.
pub(super) fn assemble(all: &Tree, work: &Path) -> Result<Root, ImageError> {
    let missing = |what: &str| ImageError::Build(format!("no package has {what}"));
    let (release, kernel) = all
        .children("boot")
        .filter_map(|(name, _)| {
            let release = name.strip_prefix("vmlinuz-")?;
            Some((release.to_owned(), all.bytes(&format!("boot/{name}"))?.clone()))
        })
        .last()
        .ok_or_else(|| missing("a kernel"))?;
    let (_, busybox) = all
        .resolve("bin/busybox")
        .or_else(|| all.resolve("usr/bin/busybox"))
        .ok_or_else(|| missing("busybox"))?;
    let modules = Modules::of(all, &release);
    if modules.is_empty() {
        return Err(missing("the kernel's modules as plain files"));
    }

    let mut tree = skeleton();
    tree.file("bin/busybox", 0o755, busybox.clone());
    for applet in applets(busybox, work)? {
        // A program of its own, or a script of ours, goes before an applet.
        if tree.get(&applet).is_none() {
            tree.symlink(&applet, "/bin/busybox");
        }
    }
    for program in PROGRAMS {
        add_program(all, program, &mut tree)?;
    }
    let wanted: Vec<&str> = EARLY.into_iter().chain(LATE).chain(ON_DEMAND).collect();
    let wanted = modules.closure(&wanted)?;
    for module in wanted.iter().filter_map(|name| modules.get(name)) {
        let path = format!("lib/modules/{release}/{}", module.path);
        tree.file(&path, 0o644, module.content.clone());
    }
    let folder = format!("lib/modules/{release}");
    tree.file(
        &format!("{folder}/modules.dep"),
        0o644,
        modules.dependencies(&wanted)?,
    );
    tree.file(&format!("{folder}/modules.alias"), 0o644, ALIASES);
    tree.file("etc/modules", 0o644, modules.closure(&LATE)?.join("\n") + "\n");
    tree.file("boot/vmlinuz", 0o644, kernel.clone());
    Ok(Root {
        initrd: initrd(busybox, &modules)?,
        tree,
        kernel,
    })
}

fn script(name: &str) -> &'static str {
    SCRIPTS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, content)| content)
}

fn initrd(busybox: &Bytes, modules: &Modules) -> Result<Tree, ImageError> {
    let mut tree = Tree::default();
    for folder in ["dev", "proc", "sys", "root"] {
        tree.directory(folder, 0o755);
    }
    tree.file("bin/busybox", 0o755, busybox.clone());
    for applet in INITRD_APPLETS {
        tree.symlink(&format!("bin/{applet}"), "busybox");
    }
    tree.file("init", 0o755, script("initrd-init"));
    let mut order = String::new();
    for name in modules.closure(&EARLY)? {
        if let Some(module) = modules.get(name) {
            tree.file(&format!("modules/{name}.ko"), 0o644, module.content.clone());
            order.push_str(&format!("{name}.ko\n"));
        }
    }
    tree.file("modules/order", 0o644, order);
    Ok(tree)
}

/// Everything that is in no package.
fn skeleton() -> Tree {
    let mut tree = Tree::default();
    for (path, mode) in [
        ("dev", 0o755),
        ("proc", 0o755),
        ("sys", 0o755),
        ("run", 0o755),
        ("tmp", 0o1777),
        ("root", 0o700),
        ("home", 0o755),
        ("srv", 0o755),
        ("opt", 0o755),
        ("mnt", 0o755),
        ("var/log", 0o755),
        ("var/tmp", 0o1777),
        ("var/lib/cloud", 0o755),
    ] {
        tree.directory(path, mode);
    }
    for (name, content) in SCRIPTS {
        if name == "initrd-init" {
            continue;
        }
        let own = format!("etc/fairway/{name}");
        let path = PLACES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(own.as_str(), |(_, path)| path);
        tree.file(path, if name == "inittab" { 0o644 } else { 0o755 }, content);
    }
    tree.symlink("var/run", "/run");
    tree.symlink("etc/mtab", "/proc/self/mounts");
    for (path, mode, content) in [
        ("etc/hostname", 0o644, "tiny\n"),
        (
            "etc/hosts",
            0o644,
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
        ),
        (
            "etc/passwd",
            0o644,
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        ),
        (
            "etc/shadow",
            0o600,
            "root:$6$nobody$!:19000:0:99999:7:::\nnobody:$6$nobody$!:19000:0:99999:7:::\n",
        ),
        (
            "etc/group",
            0o644,
            "root:x:0:\ntty:x:5:\nadm:x:4:\nsudo:x:27:\nusers:x:100:\nnogroup:x:65534:\n",
        ),
        ("etc/shells", 0o644, "/bin/sh\n/bin/ash\n/bin/bash\n"),
        (
            "etc/nsswitch.conf",
            0o644,
            "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
        ),
        (
            "etc/profile",
            0o644,
            "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPS1='\\u@\\h:\\w\\$ '\n",
        ),
        ("etc/issue", 0o644, "Fairway tiny \\r \\n \\l\n\n"),
        ("etc/resolv.conf", 0o644, ""),
        (
            "etc/os-release",
            0o644,
            "ID=tiny\nID_LIKE=debian\nNAME=\"Fairway tiny\"\nPRETTY_NAME=\"Fairway tiny\"\nVERSION_ID=\"1\"\n",
        ),
    ] {
        tree.file(path, mode, content);
    }
    tree
}

/// Paths of busybox's applets, as it says itself.
fn applets(busybox: &Bytes, work: &Path) -> Result<Vec<String>, ImageError> {
    let path = work.join("busybox");
    write_program(&path, busybox)?;
    let list = command::run(Command::new(&path).arg("--list-full"), Duration::from_secs(20))?;
    Ok(String::from_utf8_lossy(&list)
        .lines()
        .map(|line| line.trim().trim_start_matches('/'))
        .filter(|line| !line.is_empty() && !line.ends_with("/busybox") && *line != "linuxrc")
        .map(str::to_owned)
        .collect())
}

/// Adds a program with its loader and its libraries, and theirs.
fn add_program(all: &Tree, path: &str, tree: &mut Tree) -> Result<(), ImageError> {
    let merged = path.strip_prefix("sbin/").map(|name| format!("usr/sbin/{name}"));
    let (_, content) = all
        .resolve(path)
        .or_else(|| all.resolve(&merged?))
        .ok_or_else(|| ImageError::Build(format!("no package has /{path}")))?;
    tree.file(path, 0o755, content.clone());
    for (path, content) in libraries(all, content)? {
        tree.file(&path, 0o755, content);
    }
    Ok(())
}

/// What a program needs beside itself: where it is searched for, and what it is.
fn libraries(all: &Tree, program: &Bytes) -> Result<Vec<(String, Bytes)>, ImageError> {
    let mut found: Vec<(String, Bytes)> = Vec::new();
    let mut waiting = vec![program.clone()];
    while let Some(file) = waiting.pop() {
        let needs = elf::needs(&file).unwrap_or_default();
        let loader = needs
            .loader
            .iter()
            .map(|path| path.trim_start_matches('/').to_owned());
        let named = needs
            .libraries
            .iter()
            .map(|name| format!("{}/{name}", LIBRARIES[0]));
        for path in loader.chain(named) {
            let name = path.rsplit('/').next().unwrap_or_default();
            if found
                .iter()
                .any(|(known, _)| known.ends_with(&format!("/{name}")))
            {
                continue;
            }
            let places = LIBRARIES.iter().map(|folder| format!("{folder}/{name}"));
            let (_, content) = [path.clone()]
                .into_iter()
                .chain(places)
                .find_map(|place| all.resolve(&place))
                .ok_or_else(|| ImageError::Build(format!("no package has the library {name}")))?;
            waiting.push(content.clone());
            found.push((path, content.clone()));
        }
    }
    Ok(found)
}

/// A program out of the packages, to be run here with the libraries of the packages.
pub(super) fn program(all: &Tree, path: &str, work: &Path) -> Result<Command, ImageError> {
    let missing = || ImageError::Build(format!("no package has /{path}"));
    let (_, content) = all.resolve(path).ok_or_else(missing)?;
    let loader = elf::needs(content)
        .and_then(|needs| needs.loader)
        .ok_or_else(missing)?;
    let loader = loader.rsplit('/').next().unwrap_or_default().to_owned();
    let folder = work.join("run");
    std::fs::create_dir_all(&folder).map_err(failed("making", &folder))?;
    for (library, bytes) in libraries(all, content)? {
        let name = library.rsplit('/').next().unwrap_or_default().to_owned();
        write_program(&folder.join(name), &bytes)?;
    }
    let own = folder.join(path.rsplit('/').next().unwrap_or_default());
    write_program(&own, content)?;
    let mut command = Command::new(folder.join(loader));
    command.arg("--library-path").arg(&folder).arg(own);
    Ok(command)
}

fn write_program(path: &Path, content: &Bytes) -> Result<(), ImageError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, content)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)))
        .map_err(failed("writing", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_its_place() {
        let tree = skeleton();
        assert!(tree.bytes("etc/fairway/cloud.awk").is_some());
        assert!(tree.bytes("etc/inittab").is_some());
        assert!(tree.bytes("sbin/shutdown").is_some());
        assert!(tree.get("etc/fairway/initrd-init").is_none());
        for (name, content) in SCRIPTS {
            assert!(content.starts_with('#') || content.starts_with("::"), "{name}");
        }
    }
}
