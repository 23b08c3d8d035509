//! Disks of machines: an empty layer over a cached image, or an empty disk.
//!
//! The image is linked into the machine's own directory beside its layer, and the layer names it by that name alone. So
//! the directory can be moved and shut off from everything else, and taking the image out of the cache takes nothing from
//! a machine: its content stays for as long as anybody has a link to it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Format, Image, ImageError, command, failed};

/// How long `qemu-img` may take for things that are done in a moment.
const QUICK: Duration = Duration::from_secs(60);

/// Makes `DIRECTORY/NAME.qcow2` over an image, of at least `size` bytes; the image lies beside it as `NAME.base`.
/// Returns how many bytes the disk has. What was there stays, if it is such a disk already.
pub fn over(image: &Image, directory: &Path, name: &str, size: Option<u64>) -> Result<u64, ImageError> {
    let size = size.unwrap_or(0).max(image.virtual_size);
    let layer = directory.join(format!("{name}.qcow2"));
    let base = directory.join(format!("{name}.base"));
    if layer.exists() {
        return virtual_size(&layer);
    }
    // Half a layer of an earlier attempt is under another name, and a base without its layer is of no use.
    let draft = directory.join(format!(".{name}.draft"));
    for leftover in [&draft, &base] {
        match std::fs::remove_file(leftover) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("removing", leftover)(error));
            }
            _ => {}
        }
    }
    std::fs::hard_link(&image.path, &base).map_err(|source| ImageError::File {
        action: "linking the image into the machine's directory (both must be on one file system):",
        path: base.clone(),
        source,
    })?;
    let mut create = Command::new("qemu-img");
    create
        .current_dir(directory)
        .args(["create", "-q", "-f", "qcow2", "-F", image.format.word(), "-b"])
        .arg(format!("{name}.base"))
        .arg(draft.file_name().unwrap_or_default())
        .arg(size.to_string());
    command::run(&mut create, QUICK)?;
    std::fs::rename(&draft, &layer).map_err(failed("naming", &layer))?;
    Ok(size)
}

/// Makes `DIRECTORY/NAME.qcow2` over another disk, which stays where it is and must not change meanwhile. What was there stays.
pub fn above(disk: &Path, directory: &Path, name: &str) -> Result<u64, ImageError> {
    let layer = directory.join(format!("{name}.qcow2"));
    if layer.exists() {
        return virtual_size(&layer);
    }
    let size = virtual_size(disk)?;
    let draft = directory.join(format!(".{name}.draft"));
    let mut create = Command::new("qemu-img");
    create
        .args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"])
        .arg(disk)
        .arg(&draft)
        .arg(size.to_string());
    command::run(&mut create, QUICK)?;
    std::fs::rename(&draft, &layer).map_err(failed("naming", &layer))?;
    Ok(size)
}

/// Makes an empty disk, `DIRECTORY/NAME.qcow2`. What was there stays.
pub fn blank(directory: &Path, name: &str, size: u64) -> Result<(), ImageError> {
    let disk = directory.join(format!("{name}.qcow2"));
    if disk.exists() {
        return Ok(());
    }
    let draft = directory.join(format!(".{name}.draft"));
    let mut create = Command::new("qemu-img");
    create
        .args(["create", "-q", "-f", "qcow2"])
        .arg(&draft)
        .arg(size.to_string());
    command::run(&mut create, QUICK)?;
    std::fs::rename(&draft, &disk).map_err(failed("naming", &disk))
}

/// Makes a disk that no machine uses larger. A smaller size is refused: it would cut off what the guest wrote.
pub fn grow(disk: &Path, size: u64) -> Result<(), ImageError> {
    let present = virtual_size(disk)?;
    if size < present {
        return Err(ImageError::Unusable {
            what: disk.display().to_string(),
            why: format!("it has {present} bytes, and disks do not become smaller (to {size} bytes)"),
        });
    }
    let mut resize = Command::new("qemu-img");
    resize
        .args(["resize", "-q", "-f", "qcow2"])
        .arg(disk)
        .arg(size.to_string());
    command::run(&mut resize, QUICK).map(|_| ())
}

/// Makes a disk that stands alone of one with layers, as a new qcow2 file. Nothing may write to it meanwhile.
pub fn flatten(disk: &Path, to: &Path, timeout: Duration) -> Result<(), ImageError> {
    let mut convert = Command::new("qemu-img");
    convert.args(["convert", "-q", "-O", "qcow2"]).arg(disk).arg(to);
    command::run(&mut convert, timeout).map(|_| ())
}

/// Bytes of the disk that a guest sees in a qcow2 file of ours.
pub fn virtual_size(disk: &Path) -> Result<u64, ImageError> {
    use std::io::Read as _;
    let mut head = Vec::new();
    std::fs::File::open(disk)
        .and_then(|file| file.take(4096).read_to_end(&mut head))
        .map_err(failed("reading", disk))?;
    match fairway_machines_disk::qcow2::Header::read(&head) {
        Ok(header) => Ok(header.virtual_size),
        Err(refusal) => Err(ImageError::Unusable {
            what: disk.display().to_string(),
            why: refusal.to_string(),
        }),
    }
}

/// Whether a disk's file is in order; for images from strangers, and after a crash.
pub(crate) fn check(disk: &Path, format: Format) -> Result<(), ImageError> {
    if format == Format::Raw {
        return Ok(());
    }
    let mut check = Command::new("qemu-img");
    check.args(["check", "-q", "-f", format.word()]).arg(disk);
    // 3 are clusters that nothing refers to: a waste, but no harm.
    command::run_accepting(&mut check, Duration::from_secs(600), &[0, 3]).map(|_| ())
}
