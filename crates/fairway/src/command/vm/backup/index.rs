//! What a directory with backups holds, as it says itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const FILE: &str = "backup.json";

/// The backups of one machine, the last one last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Index {
    /// `NAMESPACE/NAME`.
    pub(super) machine: String,
    pub(super) checkpoints: Vec<Checkpoint>,
}

/// One of them: all disks at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Checkpoint {
    pub(super) name: String,
    pub(super) disks: BTreeMap<String, Kept>,
}

/// A disk in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) file: String,
    /// What it lies over, if it holds changes only.
    pub(super) behind: Option<String>,
    /// Bytes of the disk.
    pub(super) size: u64,
}

/// The file of a disk in a backup.
pub(super) fn file_name(disk: &str, checkpoint: &str) -> String {
    format!("{disk}.{checkpoint}.qcow2")
}

impl Index {
    /// What a directory says; nothing if it is new.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!(
                    "{} cannot be understood; back up to another directory",
                    path.display()
                )
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// Says it, in one step.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let (path, draft) = (directory.join(FILE), directory.join(".backup.json"));
        let written = fs::File::create(&draft).and_then(|mut file| {
            file.write_all(format!("{:#}\n", json!(self)).as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        });
        written.with_context(|| format!("{} cannot be written", path.display()))
    }

    /// A directory is one machine's.
    pub(super) fn claim(&mut self, machine: &str) -> Result<(), String> {
        if self.machine.is_empty() {
            machine.clone_into(&mut self.machine);
        }
        match self.machine == machine {
            true => Ok(()),
            false => Err(format!(
                "the directory holds backups of {}; give {machine} another one with --to",
                self.machine
            )),
        }
    }

    /// Whether the files are there that the next backup would lie over.
    pub(super) fn check(&self, is_there: impl Fn(&str) -> bool) -> Result<(), String> {
        let Some(last) = self.checkpoints.last() else {
            return Ok(());
        };
        for name in last.disks.keys() {
            let mut wanted = self.last_file(name);
            while let Some(file) = wanted {
                if !is_there(file) {
                    return Err(format!(
                        "{file} is missing, without which what has changed since is of no use; begin anew with --full"
                    ));
                }
                let all = self.checkpoints.iter().flat_map(|it| it.disks.values());
                let mut own = all.filter(|kept| kept.file == file);
                wanted = own.next().and_then(|kept| kept.behind.as_deref());
            }
        }
        Ok(())
    }

    /// The last file of a disk.
    pub(super) fn last_file(&self, disk: &str) -> Option<&str> {
        let last = self.checkpoints.last()?;
        last.disks.get(disk).map(|kept| kept.file.as_str())
    }

    /// What is ordered next.
    pub(super) fn order(&self, checkpoint: &str, full: bool) -> Value {
        let last = self.checkpoints.last().filter(|_| !full);
        let Some(last) = last else {
            return json!({"checkpoint": checkpoint});
        };
        let behind: BTreeMap<&str, &str> = last
            .disks
            .iter()
            .map(|(disk, kept)| (disk.as_str(), kept.file.as_str()))
            .collect();
        json!({"checkpoint": checkpoint, "since": last.name, "behind": behind})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(file: &str, behind: Option<&str>) -> (String, Kept) {
        let kept = Kept {
            file: file.to_owned(),
            behind: behind.map(str::to_owned),
            size: 1,
        };
        ("root".to_owned(), kept)
    }

    fn index() -> Index {
        let checkpoint = |name: &str, disk| Checkpoint {
            name: name.to_owned(),
            disks: BTreeMap::from([disk]),
        };
        Index {
            machine: "shop/web".to_owned(),
            checkpoints: vec![
                checkpoint("a", kept("root.a.qcow2", None)),
                checkpoint("b", kept("root.b.qcow2", Some("root.a.qcow2"))),
            ],
        }
    }

    #[test]
    fn the_next_backup_lies_over_the_last() {
        let index = index();
        assert_eq!(
            index.order("c", false),
            json!({"checkpoint": "c", "since": "b", "behind": {"root": "root.b.qcow2"}})
        );
        assert_eq!(index.order("c", true), json!({"checkpoint": "c"}));
        assert_eq!(Index::default().order("a", false), json!({"checkpoint": "a"}));
        assert_eq!(index.last_file("other"), None);
    }

    #[test]
    fn a_directory_is_one_machines_and_whole() {
        let mut index = index();
        assert!(index.claim("shop/web").is_ok());
        assert!(index.claim("shop/db").unwrap_err().contains("shop/web"));
        let mut new = Index::default();
        assert!(new.claim("shop/db").is_ok() && new.machine == "shop/db");
        assert_eq!(index.check(|_| true), Ok(()));
        for missing in ["root.a.qcow2", "root.b.qcow2"] {
            let checked = index.check(|file| file != missing);
            assert!(checked.unwrap_err().contains(missing), "{missing}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(Index::read(place.path()).unwrap(), Index::default());
        index().write(place.path()).unwrap();
        assert_eq!(Index::read(place.path()).unwrap(), index());
        fs::write(place.path().join(FILE), "{").unwrap();
        assert!(Index::read(place.path()).is_err());
    }
}
