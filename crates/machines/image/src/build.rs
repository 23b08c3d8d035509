//! Guests that are made here, from packages of the distribution, without root and without mounting anything.
//!
//! `tiny` is a kernel, busybox, an SSH server and QEMU's guest agent, with an init that applies the basics of a NoCloud seed
//! (see the folder `guest`). It boots in seconds even on a machine without hardware virtualization, and is meant for trying
//! things out and for tests. The disk boots by itself, by BIOS and by UEFI, as anybody expects of an image; beside it lie
//! its kernel and its initrd for machines that want to start it directly, which spares several seconds of unpacking
//! where the processor is emulated.
//!
//! The same packages give the same bytes: nothing in the image depends on who builds it, when and where.

mod modules;
mod packages;
mod root;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use fairway_machines_disk::ext4::Identity;
use fairway_machines_disk::mbr::{self, Partition};
use fairway_machines_disk::{LayoutError, Sparse, Tree, cpio, ext4, fat, kernel};
use ring::digest::{SHA256, digest};

use crate::cache::hex;
use crate::{Cache, DirectBoot, Format, Image, ImageError, Stage, command, failed};
use packages::Package;

/// The name of the image.
pub const TINY: &str = "tiny";
/// The label with the packages that an image was built from, and with what it was built from altogether.
pub const PACKAGES_LABEL: &str = "fairway.dev/packages";
/// The label with the digest of everything that went into an image.
pub const INPUTS_LABEL: &str = "fairway.dev/inputs";

/// What the guest is made of, and what makes it.
const ROOTS: [&str; 7] = [
    "linux-image-cloud-amd64",
    "busybox-static",
    "dropbear-bin",
    "qemu-guest-agent",
    "e2fsprogs",
    "grub-pc-bin",
    "grub-efi-amd64-bin",
];
/// Bytes of the disk. A larger one is filled by the guest when it boots.
const DISK: u64 = 256 << 20;
/// Bytes of the partition for UEFI.
const EFI: u64 = 8 << 20;
/// Everything in the image is from this moment, unless `SOURCE_DATE_EPOCH` says otherwise: 2026-01-01.
const TIME: u32 = 1_767_225_600;
/// The root file system's number. It is the same in every image, so that every image has the same bytes.
const ROOT_UUID: [u8; 16] = *b"\xfa\x12\x3a\x79\x00\x00\x40\x00\x80\x00\x74\x69\x6e\x79\x00\x01";
/// What the kernel is told in any case.
const COMMAND_LINE: &str = "console=tty0 console=ttyS0,115200 quiet cryptomgr.notests rcupdate.rcu_expedited=1 audit=0";
/// What spares time where the processor is emulated, and protects from nothing there.
const COMMAND_LINE_DIRECT: &str = "mitigations=off nokaslr lsm= random.trust_cpu=on";
/// How long fetching the packages may take.
const FETCH: Duration = Duration::from_secs(1800);

/// What went into an image.
#[derive(Debug)]
struct Inputs {
    packages: Vec<Package>,
    digest: String,
}

/// Builds `tiny`, or finds that it is there already from the same packages. `say` hears what is being done.
pub fn tiny(cache: &Cache, rebuild: bool, say: impl Fn(&str)) -> Result<Image, ImageError> {
    say("looking up packages");
    let inputs = inputs()?;
    if !rebuild
        && let Some(image) = cache.find(TINY)?
        && image.labels.get(INPUTS_LABEL) == Some(&inputs.digest)
    {
        say("it is there already, from the same packages");
        return Ok(image);
    }
    let folder = cache.directory().join("packages");
    say(&format!("fetching {} packages", inputs.packages.len()));
    packages::fetch(&inputs.packages, &folder, FETCH)?;
    say("unpacking");
    let mut all = Tree::default();
    for package in &inputs.packages {
        packages::unpack(package, &folder, &mut all)?;
    }
    let work = tempfile::tempdir().map_err(failed("making a directory in", Path::new("/tmp")))?;
    let root = root::assemble(&all, work.path())?;
    say("putting the disk together");
    let initrd = Bytes::from(cpio::pack(&root.initrd));
    let raw = disk(&all, root.tree, &initrd, work.path())?;
    let kernel = kernel::unpack(&root.kernel).map_or(root.kernel.clone(), Bytes::from);
    publish(cache, &inputs, &raw, &kernel, &initrd)
}

fn inputs() -> Result<Inputs, ImageError> {
    let packages = packages::resolve(&ROOTS)?;
    let mut text = format!("{DISK} {EFI} {} {COMMAND_LINE} {COMMAND_LINE_DIRECT}\n", time());
    for package in &packages {
        text.push_str(&format!("{} {} {}\n", package.name, package.version, package.sha256));
    }
    for (name, content) in root::SCRIPTS {
        text.push_str(&format!("{name} {}\n", hex(digest(&SHA256, content.as_bytes()).as_ref())));
    }
    Ok(Inputs {
        packages,
        digest: hex(digest(&SHA256, text.as_bytes()).as_ref()),
    })
}

fn time() -> u32 {
    std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(TIME)
}

/// The root file system's number as it is written.
fn uuid() -> String {
    let hex = hex(&ROOT_UUID);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The whole disk: boot loader, a partition for UEFI, the root file system.
fn disk(all: &Tree, mut root: Tree, initrd: &Bytes, work: &Path) -> Result<Sparse, ImageError> {
    root.file("boot/initrd", 0o644, initrd.clone());
    let loader = |target, modules| loader(all, work, target, modules);
    let core = loader("i386-pc", &["biosdisk", "part_msdos", "ext2", "search_fs_uuid", "linux", "boot"])?;
    let efi_program = loader("x86_64-efi", &["part_msdos", "ext2", "search_fs_uuid", "linux", "boot"])?;
    let boot = all
        .bytes("usr/lib/grub/i386-pc/boot.img")
        .ok_or_else(|| ImageError::Build("the package grub-pc-bin has no boot.img".to_owned()))?;
    let laid_out = |error: LayoutError| ImageError::Build(error.to_string());
    let mut efi = Tree::default();
    efi.file("EFI/BOOT/BOOTX64.EFI", 0o644, efi_program);
    let efi = fat::build(&efi, EFI, u32::from_le_bytes(*b"tiny"), "EFI").map_err(laid_out)?;
    let identity = Identity {
        uuid: ROOT_UUID,
        label: "tiny-root".to_owned(),
        time: time(),
    };
    let room = DISK - mbr::FIRST_PARTITION - EFI;
    let root = ext4::build(&root, room, &identity).map_err(laid_out)?;
    let partitions = vec![
        Partition {
            kind: mbr::EFI_SYSTEM,
            is_active: false,
            content: efi,
        },
        Partition {
            kind: mbr::LINUX,
            is_active: true,
            content: root,
        },
    ];
    mbr::disk(u32::from_le_bytes(*b"fwty"), boot, &core, partitions).map_err(laid_out)
}

/// A boot loader that finds the root file system and starts its kernel, made by GRUB's own program out of its package.
fn loader(all: &Tree, work: &Path, target: &str, modules: &[&str]) -> Result<Vec<u8>, ImageError> {
    let folder = format!("usr/lib/grub/{target}");
    let here = work.join(target);
    std::fs::create_dir_all(&here).map_err(failed("making", &here))?;
    for (name, _) in all.children(&folder) {
        if let Some(bytes) = all.bytes(&format!("{folder}/{name}")) {
            let path = here.join(name);
            std::fs::write(&path, bytes).map_err(failed("writing", &path))?;
        }
    }
    let configuration = work.join("load.cfg");
    let text = format!(
        "search.fs_uuid {uuid} root\nlinux /boot/vmlinuz root=UUID={uuid} {COMMAND_LINE}\ninitrd /boot/initrd\nboot\n",
        uuid = uuid()
    );
    std::fs::write(&configuration, text).map_err(failed("writing", &configuration))?;
    let out = work.join(format!("{target}.out"));
    let mut make = root::program(all, "usr/bin/grub-mkimage", work)?;
    make.args(["-O", target, "-p", "/boot/grub", "-d"])
        .arg(&here)
        .arg("-c")
        .arg(&configuration)
        .arg("-o")
        .arg(&out)
        .args(modules);
    command::run(&mut make, Duration::from_secs(60))?;
    std::fs::read(&out).map_err(failed("reading", &out))
}

fn publish(
    cache: &Cache,
    inputs: &Inputs,
    raw: &Sparse,
    kernel: &Bytes,
    initrd: &Bytes,
) -> Result<Image, ImageError> {
    let disk = qcow2(cache, raw)?;
    let size = std::fs::metadata(disk.path())
        .map_err(failed("reading", disk.path()))?
        .len();
    let blob = |bytes: &Bytes| {
        let stage = cache.stage()?;
        write(stage.file(), [(0, bytes)].into_iter()).map_err(failed("writing", stage.path()))?;
        cache.put(stage)
    };
    let direct_boot = DirectBoot {
        kernel: blob(kernel)?,
        initrd: blob(initrd)?,
        command_line: format!("root=UUID={} {COMMAND_LINE} {COMMAND_LINE_DIRECT}", uuid()),
    };
    let names: Vec<String> = inputs
        .packages
        .iter()
        .map(|package| format!("{}={}", package.name, package.version))
        .collect();
    let labels = BTreeMap::from([
        (INPUTS_LABEL.to_owned(), inputs.digest.clone()),
        (PACKAGES_LABEL.to_owned(), names.join(" ")),
    ]);
    let digest = cache.put(disk)?;
    cache.publish(Image {
        name: TINY.to_owned(),
        digest,
        format: Format::Qcow2,
        virtual_size: raw.len(),
        size,
        source: "built from packages".to_owned(),
        created: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        labels,
        direct_boot: Some(direct_boot),
        path: std::path::PathBuf::new(),
    })
}

/// The disk as a qcow2 file. It is not packed: every machine reads it, and unpacking would be done by each of them.
fn qcow2(cache: &Cache, raw: &Sparse) -> Result<Stage, ImageError> {
    let flat = cache.stage()?;
    flat.file()
        .set_len(raw.len())
        .and_then(|()| write(flat.file(), raw.pieces()))
        .map_err(failed("writing", flat.path()))?;
    let disk = cache.stage()?;
    let mut convert = Command::new("qemu-img");
    convert
        .args(["convert", "-q", "-f", "raw", "-O", "qcow2", "-o", "compat=1.1,cluster_size=64k"])
        .arg(flat.path())
        .arg(disk.path());
    command::run(&mut convert, Duration::from_secs(600))?;
    Ok(disk)
}

fn write<'a>(file: &File, pieces: impl Iterator<Item = (u64, &'a Bytes)>) -> std::io::Result<()> {
    pieces
        .into_iter()
        .try_for_each(|(offset, bytes)| file.write_all_at(bytes, offset))
}
