//! Guests that are made here, from packages of the distribution, without mounting anything.
//!
//! - [`tiny`]: a kernel, busybox, an SSH server and QEMU's guest agent, with an init that applies the basics of a NoCloud seed (see the
//!   folder `guest`). It boots in seconds even where processors are emulated, and is meant for trying things out and for tests. It is
//!   made without root, and the same packages give the same bytes: nothing in it depends on who builds it, when and where.
//! - [`debian`]: the whole system with systemd, cloud-init and OpenSSH.
//!
//! A disk boots by itself, by BIOS and by UEFI, as anybody expects of an image; beside it lie its kernel and its initrd for
//! machines that want to start it directly, which spares several seconds of unpacking where the processor is emulated.

mod debian;
mod modules;
mod packages;
mod root;
mod tiny;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use fairway_machines_disk::ext4::Identity;
use fairway_machines_disk::mbr::{self, Partition};
use fairway_machines_disk::{LayoutError, Sparse, Tree, ext4, fat};
use ring::digest::{SHA256, digest};

use crate::cache::hex;
use crate::{Cache, DirectBoot, Format, Image, ImageError, Stage, command, failed};
use packages::Package;

pub use debian::{DEBIAN, debian};
pub use tiny::{TINY, tiny};

/// The label with the packages that an image consists of.
pub const PACKAGES_LABEL: &str = "fairway.dev/packages";
/// The label with the digest of everything that went into an image.
pub const INPUTS_LABEL: &str = "fairway.dev/inputs";

/// Packages with the boot loaders, and the program that makes them.
const LOADERS: [&str; 3] = ["grub-pc-bin", "grub-efi-amd64-bin", "grub-common"];
/// Bytes of the partition for UEFI.
const EFI: u64 = 8 << 20;
/// Everything in an image is from this moment, unless `SOURCE_DATE_EPOCH` says otherwise: 2026-01-01.
const TIME: u32 = 1_767_225_600;
/// What spares time where the processor is emulated, and protects from nothing there.
const COMMAND_LINE_DIRECT: &str = "mitigations=off nokaslr random.trust_cpu=on";
/// How long fetching packages may take.
const FETCH: Duration = Duration::from_secs(1800);

/// What an image is called, and how its disk is laid out.
struct Layout {
    name: &'static str,
    /// Bytes of the disk. A larger one is filled by the guest when it boots.
    disk: u64,
    /// The root file system's number. It is the same in every image, so that every image has the same bytes.
    uuid: [u8; 16],
    /// Where in the root file system the kernel and the initrd are.
    kernel: &'static str,
    initrd: &'static str,
    /// What the kernel is told in any case.
    command_line: &'static str,
}

impl Layout {
    /// The root file system's number as it is written.
    fn uuid(&self) -> String {
        let hex = hex(&self.uuid);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        parts.join("-")
    }
}

/// What went into an image.
#[derive(Debug)]
struct Inputs {
    packages: Vec<Package>,
    digest: String,
    /// `NAME=VERSION` of what the image has. Where another program chose, these need not be those above.
    installed: Vec<String>,
}

impl Inputs {
    /// Packages, and everything else that decides what comes out.
    fn new(packages: Vec<Package>, others: &[&str]) -> Self {
        let mut text = format!("{} {COMMAND_LINE_DIRECT}\n", time());
        for package in &packages {
            text.push_str(&format!(
                "{} {} {}\n",
                package.name, package.version, package.sha256
            ));
        }
        for other in others {
            text.push_str(&format!("{}\n", hex(digest(&SHA256, other.as_bytes()).as_ref())));
        }
        let installed = packages.iter();
        let installed = installed
            .map(|it| format!("{}={}", it.name, it.version))
            .collect();
        Self {
            packages,
            installed,
            digest: hex(digest(&SHA256, text.as_bytes()).as_ref()),
        }
    }

    /// The image that was made of the same before.
    fn built(&self, cache: &Cache, name: &str) -> Result<Option<Image>, ImageError> {
        let found = cache.find(name)?;
        Ok(found.filter(|image| image.labels.get(INPUTS_LABEL) == Some(&self.digest)))
    }
}

/// Where the packages of an image are kept, so that building one does not forget those of another.
fn folder(cache: &Cache, name: &str) -> PathBuf {
    cache.directory().join("packages").join(name)
}

fn time() -> u32 {
    std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(TIME)
}

/// Everything that a guest consists of.
struct Guest {
    root: Tree,
    /// The kernel as QEMU starts it directly.
    kernel: Bytes,
    initrd: Bytes,
}

/// Makes the disk, and publishes it. `loaders` holds the packages with the boot loaders.
fn publish(
    cache: &Cache,
    layout: &Layout,
    inputs: &Inputs,
    guest: &Guest,
    loaders: &Tree,
    work: &Path,
) -> Result<Image, ImageError> {
    let raw = disk(layout, &guest.root, loaders, work)?;
    let disk = qcow2(cache, &raw)?;
    let size = std::fs::metadata(disk.path())
        .map_err(failed("reading", disk.path()))?
        .len();
    let blob = |bytes: &Bytes| {
        let stage = cache.stage()?;
        write(stage.file(), [(0, bytes)].into_iter()).map_err(failed("writing", stage.path()))?;
        cache.put(&stage)
    };
    let direct_boot = DirectBoot {
        kernel: blob(&guest.kernel)?,
        initrd: blob(&guest.initrd)?,
        command_line: format!(
            "root=UUID={} {} {COMMAND_LINE_DIRECT}",
            layout.uuid(),
            layout.command_line
        ),
    };
    let labels = BTreeMap::from([
        (INPUTS_LABEL.to_owned(), inputs.digest.clone()),
        (PACKAGES_LABEL.to_owned(), inputs.installed.join(" ")),
    ]);
    let digest = cache.put(&disk)?;
    cache.publish(Image {
        name: layout.name.to_owned(),
        digest,
        format: Format::Qcow2,
        virtual_size: raw.len(),
        size,
        source: "built from packages".to_owned(),
        created: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        labels,
        direct_boot: Some(direct_boot),
        path: PathBuf::new(),
    })
}

/// The whole disk: boot loader, a partition for UEFI, the root file system.
fn disk(layout: &Layout, root: &Tree, loaders: &Tree, work: &Path) -> Result<Sparse, ImageError> {
    let loader = |target, modules| loader(layout, loaders, work, target, modules);
    let core = loader(
        "i386-pc",
        &[
            "biosdisk",
            "part_msdos",
            "ext2",
            "search_fs_uuid",
            "linux",
            "boot",
        ],
    )?;
    let efi_program = loader(
        "x86_64-efi",
        &["part_msdos", "ext2", "search_fs_uuid", "linux", "boot"],
    )?;
    let boot = loaders
        .bytes("usr/lib/grub/i386-pc/boot.img")
        .ok_or_else(|| ImageError::Build("the package grub-pc-bin has no boot.img".to_owned()))?;
    let laid_out = |error: LayoutError| ImageError::Build(error.to_string());
    let mut efi = Tree::default();
    efi.file("EFI/BOOT/BOOTX64.EFI", 0o644, efi_program);
    let efi = fat::build(&efi, EFI, u32::from_le_bytes(*b"fway"), "EFI").map_err(laid_out)?;
    let identity = Identity {
        uuid: layout.uuid,
        label: format!("{}-root", layout.name),
        time: time(),
    };
    let room = layout.disk - mbr::FIRST_PARTITION - EFI;
    let root = ext4::build(root, room, &identity).map_err(laid_out)?;
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
fn loader(
    layout: &Layout,
    loaders: &Tree,
    work: &Path,
    target: &str,
    modules: &[&str],
) -> Result<Vec<u8>, ImageError> {
    let folder = format!("usr/lib/grub/{target}");
    let here = work.join(target);
    std::fs::create_dir_all(&here).map_err(failed("making", &here))?;
    for (name, _) in loaders.children(&folder) {
        if let Some(bytes) = loaders.bytes(&format!("{folder}/{name}")) {
            let path = here.join(name);
            std::fs::write(&path, bytes).map_err(failed("writing", &path))?;
        }
    }
    let configuration = work.join("load.cfg");
    let text = format!(
        "search.fs_uuid {uuid} root\nlinux {} root=UUID={uuid} {}\ninitrd {}\nboot\n",
        layout.kernel,
        layout.command_line,
        layout.initrd,
        uuid = layout.uuid()
    );
    std::fs::write(&configuration, text).map_err(failed("writing", &configuration))?;
    let out = work.join(format!("{target}.out"));
    let mut make = root::program(loaders, "usr/bin/grub-mkimage", work)?;
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
        .args(["convert", "-q", "-f", "raw", "-O", "qcow2", "-o"])
        .arg("compat=1.1,cluster_size=64k")
        .arg(flat.path())
        .arg(disk.path());
    command::run(&mut convert, Duration::from_secs(600))?;
    Ok(disk)
}

fn write<'a>(file: &File, mut pieces: impl Iterator<Item = (u64, &'a Bytes)>) -> std::io::Result<()> {
    pieces.try_for_each(|(offset, bytes)| file.write_all_at(bytes, offset))
}
