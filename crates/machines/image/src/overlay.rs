//! Disks of machines: an empty layer over a cached image, or an empty disk.
//!
//! The image is linked into the machine's own directory beside its layer, and the layer names it by that name alone. So
//! the directory can be moved and shut off from everything else, and taking the image out of the cache takes nothing from
//! a machine: its content stays for as long as anybody has a link to it.
//!
//! What a header says is judged before `qemu-img` opens a disk: a machine may have written to it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fairway_machines_disk::qcow2::{Backing, Header, MAX_HEADER, empty};

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
    // A base without its layer is of no use.
    remove(&base)?;
    std::fs::hard_link(&image.path, &base).map_err(|source| ImageError::File {
        action: "linking the image into the machine's directory (both must be on one file system):",
        path: base.clone(),
        source,
    })?;
    let file = format!("{name}.base");
    let backing = Backing {
        file: &file,
        format: image.format.word(),
    };
    write_empty(directory, name, size, Some(backing))
}

/// Makes `DIRECTORY/NAME.qcow2` over another disk, which stays where it is and must not change meanwhile. What was there stays.
pub fn above(disk: &Path, directory: &Path, name: &str) -> Result<u64, ImageError> {
    let layer = directory.join(format!("{name}.qcow2"));
    if layer.exists() {
        return virtual_size(&layer);
    }
    let size = judged(disk)?.virtual_size;
    let draft = directory.join(format!(".{name}.draft"));
    let mut create = Command::new("qemu-img");
    create
        .args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"])
        // Read from where the layer is.
        .arg(from(directory, disk))
        .arg(&draft)
        .arg(size.to_string());
    command::run(&mut create, QUICK)?;
    std::fs::rename(&draft, &layer).map_err(failed("naming", &layer))?;
    Ok(size)
}

/// The way to a file from a directory, if they have more in common than the root of all; else the whole path. Whoever is in the directory needs no
/// right to pass through what is above both.
pub fn from(directory: &Path, file: &Path) -> PathBuf {
    let mut parts = (directory.components().peekable(), file.components().peekable());
    let mut common = 0;
    while let (Some(one), Some(other)) = (parts.0.peek(), parts.1.peek())
        && one == other
    {
        common += 1;
        parts.0.next();
        parts.1.next();
    }
    if common < 2 {
        return file.to_owned();
    }
    let up = parts.0.map(|_| Component::ParentDir);
    up.chain(parts.1).collect()
}

/// Makes an empty disk, `DIRECTORY/NAME.qcow2`. What was there stays.
pub fn blank(directory: &Path, name: &str, size: u64) -> Result<(), ImageError> {
    match directory.join(format!("{name}.qcow2")).exists() {
        true => Ok(()),
        false => write_empty(directory, name, size, None).map(drop),
    }
}

/// Writes an empty file aside, brings it to disk and gives it its name; how many bytes the disk in it has.
fn write_empty(
    directory: &Path,
    name: &str,
    size: u64,
    backing: Option<Backing<'_>>,
) -> Result<u64, ImageError> {
    let disk = directory.join(format!("{name}.qcow2"));
    let content = empty(size, backing).map_err(|error| ImageError::Unusable {
        what: disk.display().to_string(),
        why: error.to_string(),
    })?;
    let draft = draft(directory, name);
    File::create(&draft)
        .and_then(|mut file| {
            file.write_all(&content)?;
            file.sync_all()
        })
        .map_err(failed("writing", &draft))?;
    finish(&draft, &disk)?;
    virtual_size(&disk)
}

/// Makes all blocks of a disk that no machine uses its own, so that the host's disk cannot be too full for them later.
pub fn preallocate(directory: &Path, name: &str, timeout: Duration) -> Result<(), ImageError> {
    let (disk, draft) = (directory.join(format!("{name}.qcow2")), draft(directory, name));
    judged(&disk)?;
    remove(&draft)?;
    let mut convert = Command::new("qemu-img");
    convert
        .args([
            "convert",
            "-q",
            "-f",
            "qcow2",
            "-O",
            "qcow2",
            "-o",
            "preallocation=falloc",
        ])
        .arg(&disk)
        .arg(&draft);
    command::run(&mut convert, timeout)?;
    sync(&draft)?;
    finish(&draft, &disk)?;
    // It stands alone now.
    remove(&directory.join(format!("{name}.base")))
}

/// Copies `FROM/NAME.qcow2` with what lies behind it to another directory. Nobody may write to it meanwhile. What lies behind is
/// shared, so that only what a machine wrote is copied, and on file systems that can share blocks not even that. What was there
/// stays, if there is such a disk already.
pub fn copy(from: &Path, directory: &Path, name: &str) -> Result<u64, ImageError> {
    let (layer, base) = (format!("{name}.qcow2"), format!("{name}.base"));
    let disk = directory.join(&layer);
    if disk.exists() {
        return virtual_size(&disk);
    }
    judged(&from.join(&layer))?;
    remove(&directory.join(&base))?;
    match std::fs::hard_link(from.join(&base), directory.join(&base)) {
        // A disk that stands alone.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("linking", &from.join(&base))(error)),
        Ok(()) => {}
    }
    let draft = draft(directory, name);
    remove(&draft)?;
    crate::copy::file(&from.join(&layer), &draft)?;
    finish(&draft, &disk)?;
    virtual_size(&disk)
}

/// Makes an empty `DIRECTORY/NAME.qcow2` of the size of `FROM/NAME.qcow2` and over the same image, for whoever copies the rest: a
/// machine that runs, and writes to the one meanwhile.
pub fn like(from: &Path, directory: &Path, name: &str) -> Result<u64, ImageError> {
    let file = format!("{name}.base");
    let (source, base) = (from.join(&file), directory.join(&file));
    let size = virtual_size(&from.join(format!("{name}.qcow2")))?;
    remove(&base)?;
    let backing = match std::fs::hard_link(&source, &base) {
        // A disk that stands alone.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("linking", &source)(error)),
        Ok(()) => Some(Backing {
            file: &file,
            format: format_of(&base)?.word(),
        }),
    };
    write_empty(directory, name, size, backing)
}

/// The format of an image: that is judged by what it begins with when it is imported, too.
fn format_of(image: &Path) -> Result<Format, ImageError> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let magic = fairway_machines_disk::qcow2::MAGIC;
    File::open(image)
        .and_then(|file| file.take(magic.len() as u64).read_to_end(&mut head))
        .map_err(failed("reading", image))?;
    Ok(match head == magic {
        true => Format::Qcow2,
        false => Format::Raw,
    })
}

/// Brings a disk that somebody else wrote to disk.
pub fn settle(disk: &Path) -> Result<(), ImageError> {
    sync(disk)?;
    sync(disk.parent().unwrap_or(disk))
}

fn draft(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!(".{name}.draft"))
}

fn remove(path: &Path) -> Result<(), ImageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("removing", path)(error)),
        _ => Ok(()),
    }
}

fn sync(path: &Path) -> Result<(), ImageError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(failed("syncing", path))
}

/// Gives a whole file its name, for good.
fn finish(draft: &Path, disk: &Path) -> Result<(), ImageError> {
    std::fs::rename(draft, disk).map_err(failed("naming", disk))?;
    sync(disk.parent().unwrap_or(disk))
}

/// Makes a disk that no machine uses larger. A smaller size is refused: it would cut off what the guest wrote.
pub fn grow(disk: &Path, size: u64) -> Result<(), ImageError> {
    let present = judged(disk)?.virtual_size;
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
    judged(disk)?;
    let mut convert = Command::new("qemu-img");
    convert
        .args(["convert", "-q", "-f", "qcow2", "-O", "qcow2"])
        .arg(disk)
        .arg(to);
    command::run(&mut convert, timeout).map(|_| ())
}

/// Bytes of the disk that a guest sees in a qcow2 file of ours.
pub fn virtual_size(disk: &Path) -> Result<u64, ImageError> {
    header(disk).map(|it| it.virtual_size)
}

fn header(disk: &Path) -> Result<Header, ImageError> {
    use std::io::Read as _;
    let mut head = Vec::new();
    File::open(disk)
        .and_then(|file| file.take(MAX_HEADER as u64).read_to_end(&mut head))
        .map_err(failed("reading", disk))?;
    Header::read(&head).map_err(|refusal| ImageError::Unusable {
        what: disk.display().to_string(),
        why: refusal.to_string(),
    })
}

/// The header of a disk that may have run, before a tool opens the file with our rights: it names no other file than the base that
/// lies beside it. A guest that has taken over its QEMU can write there what it likes, a file of the host's too.
fn judged(disk: &Path) -> Result<Header, ImageError> {
    let refused = |why: String| ImageError::Unusable {
        what: disk.display().to_string(),
        why: format!(
            "{why}, as it was not made: whoever ran the machine has changed it, and it is not opened; restore the disk from a snapshot or a backup"
        ),
    };
    let header = header(disk)?;
    if header.has_data_file {
        return Err(refused(
            "its header says that its data lies in another file".to_owned(),
        ));
    }
    let Some(name) = &header.backing_file else {
        return Ok(header);
    };
    let base = disk.with_extension("base");
    if base.file_name().is_none_or(|it| it != name.as_str()) {
        return Err(refused(format!("its header names the file {name:?}")));
    }
    let format = format_of(&base)?.word();
    if header.backing_format.as_deref() != Some(format) {
        let said = header.backing_format.as_deref().unwrap_or("unknown");
        return Err(refused(format!(
            "its header says that {name} is of the format {said:?}, which is {format}"
        )));
    }
    Ok(header)
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

#[cfg(test)]
mod tests;
