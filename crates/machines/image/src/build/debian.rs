//! The image `debian`: the whole system, put together by `mmdebstrap`, which runs the packages' own scripts in a directory of
//! its own: as root, or in a user namespace where the user has numbers for one (`/etc/subuid`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use fairway_machines_disk::{Tree, kernel};

use super::packages::Package;
use super::{FETCH, Guest, Inputs, LOADERS, Layout, folder, packages, publish, time};
use crate::{Cache, Image, ImageError, command, failed};

/// The name of the image.
pub const DEBIAN: &str = "debian";

/// What is installed beside the essential packages.
const ROOTS: [&str; 16] = [
    "linux-image-cloud-amd64",
    "systemd-sysv",
    "systemd-resolved",
    "dbus",
    "udev",
    "cloud-init",
    "cloud-guest-utils",
    "fdisk",
    "netplan.io",
    "openssh-server",
    "qemu-guest-agent",
    "iproute2",
    "iputils-ping",
    "ca-certificates",
    "sudo",
    "curl",
];
const LAYOUT: Layout = Layout {
    name: DEBIAN,
    disk: 2 << 30,
    uuid: *b"\xfa\x12\x3a\x79\x00\x00\x40\x00\x80\x00\x64\x65\x62\x69\x00\x01",
    // Links that the kernel's package keeps at its newest version.
    kernel: "/vmlinuz",
    initrd: "/initrd.img",
    command_line: "console=tty0 console=ttyS0,115200 quiet cryptomgr.notests",
};
/// Run in the finished system, whose directory is `$1`: an initrd for virtual machines alone, and nothing that would make two machines
/// of one image the same machine.
const FINISH: &str = include_str!("../../guest/debian-finish");
/// How long it may take, on a slow machine with a slow network.
const BUILD: Duration = Duration::from_secs(3600);

/// Builds `debian`, or finds that it is there already. It is built anew when one of all the packages that it consists of has
/// changed, or if `rebuild` says so.
pub fn debian(cache: &Cache, rebuild: bool, say: impl Fn(&str)) -> Result<Image, ImageError> {
    say("looking up packages");
    // The loaders are not in the system, and go into what it consists of all the same.
    let boot = packages::resolve(&LOADERS)?;
    let mut everything = packages::whole(&ROOTS)?;
    everything.extend(boot.iter().cloned());
    everything.sort();
    everything.dedup();
    let mut inputs = Inputs::new(everything, &[FINISH, LAYOUT.command_line]);
    if let Some(image) = inputs.built(cache, DEBIAN)?.filter(|_| !rebuild) {
        say("it is there already, from the same packages");
        return Ok(image);
    }
    let work = tempfile::tempdir_in(cache.directory())
        .map_err(failed("making a directory in", cache.directory()))?;
    say("installing packages; this takes minutes");
    let archive = work.path().join("root.tar");
    install(&archive, work.path())?;
    say("putting the disk together");
    let mut root = Tree::default();
    let file = std::fs::File::open(&archive).map_err(failed("reading", &archive))?;
    packages::read(tar::Archive::new(std::io::BufReader::new(file)), &[], &mut root)
        .map_err(failed("reading", &archive))?;
    for (path, mode) in [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755)] {
        root.directory(path, mode);
    }
    root.file(
        "etc/fstab",
        0o644,
        format!("UUID={} / ext4 errors=remount-ro 0 1\n", LAYOUT.uuid()),
    );
    let missing = |what: &str| ImageError::Build(format!("the installed system has no {what}"));
    let (_, image) = root.resolve(LAYOUT.kernel).ok_or_else(|| missing("kernel"))?;
    let (_, initrd) = root.resolve(LAYOUT.initrd).ok_or_else(|| missing("initrd"))?;
    let (kernel, initrd) = (image.clone(), initrd.clone());
    // mmdebstrap has looked up packages anew: what the image says of itself is what it has.
    let installed = root
        .bytes("var/lib/dpkg/status")
        .ok_or_else(|| missing("list of packages"))?;
    inputs.installed = packages::in_status(&String::from_utf8_lossy(installed));
    let loaders = loaders(&boot, cache)?;
    let guest = Guest {
        kernel: kernel::unpack(&kernel).map_or(kernel, Bytes::from),
        initrd,
        root,
    };
    publish(cache, &LAYOUT, &inputs, &guest, &loaders, work.path())
}

/// The boot loaders' packages with the libraries that their program needs.
fn loaders(needed: &[Package], cache: &Cache) -> Result<Tree, ImageError> {
    let folder = folder(cache, DEBIAN);
    packages::fetch(needed, &folder, FETCH)?;
    let mut tree = Tree::default();
    for package in needed {
        packages::unpack(package, &folder, &mut tree)?;
    }
    Ok(tree)
}

fn install(archive: &Path, work: &Path) -> Result<(), ImageError> {
    let finish = work.join("finish");
    std::fs::write(&finish, FINISH).map_err(failed("writing", &finish))?;
    let mut hook = String::from("sh ");
    let _ = write!(hook, "{} \"$1\"", finish.display());
    let mut make = Command::new("mmdebstrap");
    make.env("SOURCE_DATE_EPOCH", time().to_string())
        .env("TMPDIR", work)
        .args(["--quiet", "--variant=minbase", "--format=tar"])
        .arg(format!("--include={}", ROOTS.join(",")))
        .arg(format!("--customize-hook={hook}"))
        .arg(codename()?)
        .arg(archive)
        .args(sources());
    command::run(&mut make, BUILD).map(|_| ())
}

/// The release of this host, which is what apt's lists are for.
fn codename() -> Result<String, ImageError> {
    let path = Path::new("/etc/os-release");
    let text = std::fs::read_to_string(path).map_err(failed("reading", path))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| ImageError::Build("/etc/os-release names no release of Debian".to_owned()))
}

/// Where apt of this host gets its packages from.
fn sources() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/etc/apt/sources.list")];
    let folder = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten();
    found.extend(folder.flatten().map(|entry| entry.path()));
    found.retain(|path| {
        let is_list = path
            .extension()
            .is_some_and(|ending| ending == "list" || ending == "sources");
        is_list && std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
    });
    found.sort();
    found
}
