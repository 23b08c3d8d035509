//! Volumes as directories of this host.
//!
//! ```text
//! DIR/volumes/WORKSPACE/PV/disk.qcow2     the disk: whole, or not there
//! DIR/volumes/WORKSPACE/PV/disk.base      what lies behind it, if anything does
//! DIR/volumes/WORKSPACE/.PV.new/...       one that is being made
//! DIR/snapshots/WORKSPACE/CONTENT/...     the same of a snapshot
//! ```
//!
//! The workspace is part of the path because PersistentVolumes are objects that tenants may write: one that names another's
//! volume leads nowhere. A directory gets its name when its disk is whole and on disk, so that whatever is killed when, nobody
//! sees half a disk. The functions block.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_controller::WorkspaceId;
use fairway_machines_image::{Image, ImageError, overlay};

use crate::moment::{self, Moment};

/// The disk and what lies behind it are named after this.
const DISK: &str = "disk";
/// How long it may take to write every block of a disk.
const PREALLOCATION: Duration = Duration::from_secs(6 * 3600);

/// What a disk starts from.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Nothing.
    Blank,
    /// An image of the cache, which it lies over.
    Image(Box<Image>),
    /// The disk of another volume, which nobody writes to.
    Volume(PathBuf),
    /// The disk of a snapshot, for a machine that goes on with the memory that was kept with it.
    Kept(PathBuf),
}

/// Where volumes of this host are.
#[derive(Debug)]
pub(crate) struct Place {
    machines: PathBuf,
}

/// The directory of a volume: of `machines`, the directory in which a node keeps what belongs to machines.
pub fn volume_directory(machines: &Path, workspace: &WorkspaceId, volume: &str) -> PathBuf {
    machines.join("volumes").join(workspace.as_str()).join(volume)
}

/// The directory behind a volume and a claim of a workspace, as they were read; nothing if they do not belong together, or are none of
/// this node's. Volumes are objects that the owners of workspaces may write: one that names a directory of somebody else, or of the
/// host, must not become a disk.
pub fn directory_of(
    machines: &Path,
    workspace: &WorkspaceId,
    claim: &serde_json::Value,
    volume: &serde_json::Value,
) -> Option<PathBuf> {
    let name = volume.pointer("/metadata/name")?.as_str()?;
    let directory = volume_directory(machines, workspace, name);
    let text = |object: &serde_json::Value, pointer: &str| {
        let found = object.pointer(pointer).and_then(serde_json::Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let same = |field: &str| {
        let (held, own) = (format!("/spec/claimRef/{field}"), format!("/metadata/{field}"));
        text(volume, &held) == text(claim, &own)
    };
    // A volume that was made for a claim before there was one names no UID.
    let has_uid = !text(volume, "/spec/claimRef/uid").is_empty();
    let is_its = same("name") && same("namespace") && (same("uid") || !has_uid);
    let path = Path::new(volume.pointer("/spec/local/path")?.as_str()?);
    // One that moved here says where it was made, on a node whose directory may be another; its name decides where it is.
    let is_made = path.ends_with(volume_directory(Path::new(""), workspace, name));
    (is_its && is_made && !name.contains('/')).then_some(directory)
}

impl Place {
    pub(crate) fn new(machines: PathBuf) -> Self {
        Self { machines }
    }

    /// The directory of a volume.
    pub(crate) fn directory(&self, workspace: &WorkspaceId, volume: &str) -> PathBuf {
        volume_directory(&self.machines, workspace, volume)
    }

    /// The directory of a snapshot.
    pub(crate) fn snapshot(&self, workspace: &WorkspaceId, content: &str) -> PathBuf {
        self.machines
            .join("snapshots")
            .join(workspace.as_str())
            .join(content)
    }

    /// Bytes of the disk in a directory; nothing if there is none.
    pub(crate) fn size(directory: &Path) -> Result<Option<u64>, ImageError> {
        let disk = crate::disk_path(directory);
        match disk.exists() {
            true => overlay::virtual_size(&disk).map(Some),
            false => Ok(None),
        }
    }

    /// Makes the disk of a volume, of `size` bytes, unless it is there; how many bytes it has.
    pub(crate) fn make(
        directory: &Path,
        content: &Content,
        size: u64,
        preallocation: bool,
    ) -> Result<u64, ImageError> {
        if let Some(size) = Self::size(directory)? {
            return Ok(size);
        }
        let draft = draft(directory);
        let _ = fs::remove_dir_all(&draft);
        fs::create_dir_all(&draft).map_err(failed("making", &draft))?;
        let made = Self::fill(&draft, content, size, preallocation);
        if made.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        let made = made?;
        Self::name(&draft, directory)?;
        Ok(made)
    }

    /// Makes an empty disk for whoever copies another one to it while it is written to; where. What was begun before is gone.
    pub(crate) fn begin(directory: &Path, like: &Path) -> Result<PathBuf, ImageError> {
        let draft = draft(directory);
        let _ = fs::remove_dir_all(&draft);
        fs::create_dir_all(&draft).map_err(failed("making", &draft))?;
        overlay::like(like, &draft, DISK)?;
        Ok(crate::disk_path(&draft))
    }

    /// Where such a disk is, if it was begun.
    pub(crate) fn begun(directory: &Path) -> PathBuf {
        crate::disk_path(&draft(directory))
    }

    /// Notes which moment a disk is of that was begun.
    pub(crate) fn note_moment(directory: &Path, name: &str) -> Result<(), ImageError> {
        let moment = Moment {
            moment: name.to_owned(),
            snapshot: String::new(),
        };
        moment::mark(&draft(directory), &moment)
    }

    /// Makes a disk that was begun one of ours: now it is whole. How many bytes it has.
    pub(crate) fn finish(directory: &Path) -> Result<u64, ImageError> {
        let draft = draft(directory);
        let disk = crate::disk_path(&draft);
        overlay::settle(&disk)?;
        let size = overlay::virtual_size(&disk)?;
        Self::name(&draft, directory)?;
        Ok(size)
    }

    /// Gives a draft its name, for good.
    fn name(draft: &Path, directory: &Path) -> Result<(), ImageError> {
        let parent = directory.parent().unwrap_or(directory);
        // Half of one that was being removed.
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("removing", directory)(error));
            }
            _ => {}
        }
        fs::rename(draft, directory).map_err(failed("naming", directory))?;
        fs::File::open(parent)
            .and_then(|parent| parent.sync_all())
            .map_err(failed("syncing", parent))
    }

    fn fill(draft: &Path, content: &Content, size: u64, preallocation: bool) -> Result<u64, ImageError> {
        let disk = draft.join(format!("{DISK}.qcow2"));
        match content {
            Content::Blank => overlay::blank(draft, DISK, size)?,
            Content::Image(image) => drop(overlay::over(image, draft, DISK, Some(size))?),
            Content::Volume(from) | Content::Kept(from) => {
                let before = seen(&crate::disk_path(from))?;
                let copied = overlay::copy(from, draft, DISK)?;
                if seen(&crate::disk_path(from))? != before {
                    let meanwhile = std::io::Error::other("somebody wrote to it meanwhile");
                    return Err(failed("copying", from)(meanwhile));
                }
                if size > copied {
                    overlay::grow(&disk, size)?;
                } else if matches!(content, Content::Kept(_)) {
                    // A guest that remembers a disk of another size would be wrong about it.
                    Self::keep_moment(from, draft)?;
                }
            }
        }
        if preallocation {
            overlay::preallocate(draft, DISK, PREALLOCATION)?;
        }
        overlay::virtual_size(&disk)
    }

    /// A disk that came out of a snapshot is of the same moment.
    fn keep_moment(from: &Path, draft: &Path) -> Result<(), ImageError> {
        let Some(found) = moment::moment_of(from) else {
            return Ok(());
        };
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let moment = Moment {
            snapshot: name.into_owned(),
            ..found
        };
        moment::mark(draft, &moment)
    }

    /// Makes the disk of a volume larger, which no machine uses.
    pub(crate) fn grow(directory: &Path, size: u64) -> Result<u64, ImageError> {
        moment::unmark(directory).map_err(failed("changing", directory))?;
        let disk = crate::disk_path(directory);
        overlay::grow(&disk, size)?;
        overlay::virtual_size(&disk)
    }

    /// Removes a volume, also one that was being made.
    pub(crate) fn remove(directory: &Path) -> Result<(), ImageError> {
        for path in [directory, &draft(directory)] {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("removing", path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn draft(directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.with_file_name(format!(".{name}.new"))
}

/// By what it is seen that somebody wrote to a file.
fn seen(path: &Path) -> Result<(u64, std::time::SystemTime), ImageError> {
    let found = fs::metadata(path).map_err(failed("reading", path))?;
    let modified = found.modified().map_err(failed("reading", path))?;
    Ok((found.len(), modified))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_directory_is_a_disk() {
        use serde_json::json;
        let machines = Path::new("/data/machines");
        let team = WorkspaceId::parse("2a8f0a9b1c3d4e5f").unwrap();
        let claim = json!({"metadata": {"uid": "u1"}});
        let volume = |path: &str, uid: &str| json!({"metadata": {"name": "pvc-u1"}, "spec": {"claimRef": {"uid": uid}, "local": {"path": path}}});
        let own = "/data/machines/volumes/2a8f0a9b1c3d4e5f/pvc-u1";
        assert_eq!(
            directory_of(machines, &team, &claim, &volume(own, "u1")),
            Some(own.into())
        );
        for (path, uid) in [
            (own, "u2"),
            ("/data/machines/volumes/root/pvc-u1", "u1"),
            ("/data/machines/volumes/2a8f0a9b1c3d4e5f/pvc-u2", "u1"),
            ("/data/machines/volumes/2a8f0a9b1c3d4e5f/../root/pvc-u1", "u1"),
            ("/etc", "u1"),
            ("", "u1"),
        ] {
            assert_eq!(
                directory_of(machines, &team, &claim, &volume(path, uid)),
                None,
                "{path} {uid}"
            );
        }
    }

    #[test]
    fn a_volume_is_whole_or_not_there() {
        let place = tempfile::tempdir().unwrap();
        let workspace = WorkspaceId::root();
        let of = |name: &str| volume_directory(place.path(), &workspace, name);
        let (one, two) = (of("one"), of("two"));
        assert_eq!(Place::size(&one).unwrap(), None);
        // What a killed process left.
        fs::create_dir_all(draft(&one)).unwrap();
        fs::write(draft(&one).join(".disk.draft"), b"half").unwrap();
        assert_eq!(
            Place::make(&one, &Content::Blank, 1 << 20, false).unwrap(),
            1 << 20
        );
        assert!(!draft(&one).exists());
        // Asked again, it is the same disk.
        assert_eq!(
            Place::make(&one, &Content::Blank, 2 << 20, false).unwrap(),
            1 << 20
        );
        let copied = Place::make(&two, &Content::Volume(one.clone()), 1 << 20, false).unwrap();
        assert_eq!(copied, 1 << 20);
        Place::remove(&one).unwrap();
        Place::remove(&one).unwrap();
        assert_eq!(Place::size(&one).unwrap(), None);
        assert_eq!(Place::size(&two).unwrap(), Some(1 << 20));
        // What comes out of a snapshot with memory is of its moment, as long as it is as large.
        let moment = Moment {
            moment: "m".to_owned(),
            snapshot: String::new(),
        };
        moment::mark(&two, &moment).unwrap();
        for (name, size, expected) in [("same", 1 << 20, Some("two")), ("larger", 2 << 20, None)] {
            let to = of(name);
            Place::make(&to, &Content::Kept(two.clone()), size, false).unwrap();
            let found = moment::moment_of(&to);
            assert_eq!(found.map(|it| it.snapshot).as_deref(), expected, "{name}");
        }
        // A copy of what is not there leaves nothing.
        let three = of("three");
        assert!(Place::make(&three, &Content::Volume(one), 1 << 20, false).is_err());
        assert!(!three.exists() && !draft(&three).exists());
    }
}
