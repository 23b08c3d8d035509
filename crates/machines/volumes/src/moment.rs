//! Disks of one moment, and the memory of the machine that had them then.
//!
//! ```text
//! DIR/snapshots/WORKSPACE/CONTENT/moment.json     which moment the disk is of
//! DIR/snapshots/WORKSPACE/CONTENT/memory.luks     beside one of the disks: the machine's memory, encrypted
//! DIR/snapshots/WORKSPACE/CONTENT/memory.json     what machine that was
//! DIR/volumes/WORKSPACE/PV/moment.json            a disk that came back, and has not been written to since
//! ```
//!
//! A machine goes on with its memory only if every disk of it is of the same moment: a disk that somebody wrote to since is none that the guest
//! remembers. So a node takes the mark away from every disk that a machine starts with, whether it brings memory back or not. The memory
//! itself stays with the snapshot, and goes with it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fairway_controller::WorkspaceId;
use fairway_machines_image::ImageError;
use serde::{Deserialize, Serialize};

/// On a VolumeSnapshot: the moment that it is of.
pub const MOMENT_ANNOTATION: &str = "fairway.dev/moment";
/// On a VolumeSnapshot: memory is kept with it. On a claim out of one: it is to go on with that.
pub const MEMORY_ANNOTATION: &str = "fairway.dev/memory";

/// The key of a node, by which memory is encrypted, in the directory in which it keeps what belongs to machines.
pub const MEMORY_KEY: &str = "memory.key";

const FILE: &str = "moment.json";
/// A mark is short: whatever is longer is none.
const MAX_MARK: u64 = 4096;

/// Which moment a disk is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The same for all disks of a machine.
    pub moment: String,
    /// The snapshot that it came out of; nothing on the snapshot itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
}

/// The memory in the directory of a snapshot: the file, and what machine it was.
pub fn memory_paths(directory: &Path) -> (PathBuf, PathBuf) {
    (directory.join("memory.luks"), directory.join("memory.json"))
}

/// The directory of the snapshot that a disk came out of: of `machines`, the directory in which a node keeps what belongs to machines.
pub fn snapshot_directory(machines: &Path, workspace: &WorkspaceId, moment: &Moment) -> Option<PathBuf> {
    let name = &moment.snapshot;
    // Ours has no such name.
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    is_name.then(|| machines.join("snapshots").join(workspace.as_str()).join(name))
}

/// The moment that a disk is of, if it is known.
pub fn moment_of(directory: &Path) -> Option<Moment> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let file = fs::File::open(directory.join(FILE)).ok()?;
    file.take(MAX_MARK).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Marks a disk, for good.
pub(crate) fn mark(directory: &Path, moment: &Moment) -> Result<(), ImageError> {
    let path = directory.join(FILE);
    let failed = |source| ImageError::File {
        action: "writing",
        path: path.clone(),
        source,
    };
    let text = serde_json::to_vec(moment).unwrap_or_default();
    fs::write(&path, text).map_err(failed)?;
    fs::File::open(&path)
        .and_then(|file| file.sync_all())
        .map_err(failed)
}

/// Takes the mark away from a disk that is about to be written to; not before that is on disk.
pub fn unmark(directory: &Path) -> std::io::Result<()> {
    match fs::remove_file(directory.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::File::open(directory)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_and_go() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(moment_of(place.path()), None);
        let moment = Moment {
            moment: "u1".to_owned(),
            snapshot: "snapcontent-1".to_owned(),
        };
        mark(place.path(), &moment).unwrap();
        assert_eq!(moment_of(place.path()), Some(moment));
        unmark(place.path()).unwrap();
        unmark(place.path()).unwrap();
        assert_eq!(moment_of(place.path()), None);
        fs::write(place.path().join(FILE), "damaged").unwrap();
        assert_eq!(moment_of(place.path()), None);
    }

    #[test]
    fn a_mark_leads_nowhere_else() {
        let root = WorkspaceId::root();
        let of = |snapshot: &str| {
            let moment = Moment {
                moment: String::new(),
                snapshot: snapshot.to_owned(),
            };
            snapshot_directory(Path::new("/m"), &root, &moment)
        };
        assert_eq!(
            of("snapcontent-1"),
            Some("/m/snapshots/root/snapcontent-1".into())
        );
        for wrong in ["", "..", "../x", "a/b", ".new"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
