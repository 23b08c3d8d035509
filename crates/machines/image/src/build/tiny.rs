//! The image `tiny`.

use std::path::Path;

use bytes::Bytes;
use fairway_machines_disk::{Tree, cpio, kernel};

use super::{FETCH, Guest, Inputs, LOADERS, Layout, folder, packages, publish, root};
use crate::{Cache, Image, ImageError, failed};

/// The name of the image.
pub const TINY: &str = "tiny";

/// What the guest is made of.
const ROOTS: [&str; 5] = [
    "linux-image-cloud-amd64",
    "busybox-static",
    "dropbear-bin",
    "qemu-guest-agent",
    "e2fsprogs",
];
const LAYOUT: Layout = Layout {
    name: TINY,
    disk: 256 << 20,
    uuid: *b"\xfa\x12\x3a\x79\x00\x00\x40\x00\x80\x00\x74\x69\x6e\x79\x00\x01",
    kernel: "/boot/vmlinuz",
    initrd: "/boot/initrd",
    command_line: "console=tty0 console=ttyS0,115200 quiet cryptomgr.notests rcupdate.rcu_expedited=1 audit=0",
};

/// Builds `tiny`, or finds that it is there already from the same packages. `say` hears what is being done.
pub fn tiny(cache: &Cache, rebuild: bool, say: impl Fn(&str)) -> Result<Image, ImageError> {
    say("looking up packages");
    let wanted: Vec<&str> = ROOTS.into_iter().chain(LOADERS).collect();
    let mut others: Vec<&str> = root::SCRIPTS.iter().map(|(_, content)| *content).collect();
    others.extend([LAYOUT.command_line, root::LIST]);
    let inputs = Inputs::new(packages::resolve(&wanted)?, &others);
    if let Some(image) = inputs.built(cache, TINY)?.filter(|_| !rebuild) {
        say("it is there already, from the same packages");
        return Ok(image);
    }
    let folder = folder(cache, TINY);
    say(&format!("fetching {} packages", inputs.packages.len()));
    packages::fetch(&inputs.packages, &folder, FETCH)?;
    say("unpacking");
    let mut all = Tree::default();
    for package in &inputs.packages {
        packages::unpack(package, &folder, &mut all)?;
    }
    let work = tempfile::tempdir().map_err(failed("making a directory in", Path::new("/tmp")))?;
    let chosen = root::assemble(&all, work.path())?;
    say("putting the disk together");
    let initrd = Bytes::from(cpio::pack(&chosen.initrd));
    let mut tree = chosen.tree;
    tree.file("boot/initrd", 0o644, initrd.clone());
    let guest = Guest {
        root: tree,
        kernel: kernel::unpack(&chosen.kernel).map_or(chosen.kernel, Bytes::from),
        initrd,
    };
    publish(cache, &LAYOUT, &inputs, &guest, &all, work.path())
}
