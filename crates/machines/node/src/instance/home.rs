//! The directory of a machine, and what is written down there about whose it is.
//!
//! ```text
//! DIR/run/<hash of the instance>/instance.json   whose machine it is, as what it was built, how it ended
//!                                live/           its sockets, and what else QEMU writes to, while it runs
//!                                *.qcow2, *.iso  disks that live as long as the instance
//!                                qemu.log, console.ring
//! ```
//!
//! The record is there before the process is: whatever is killed when, a process that is found has a record beside it that says
//! which instance it belongs to. The name is a short hash, so that the paths of sockets stay short.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use fairway_controller::ObjectKey;
use fairway_machines_plan::argv::Layout;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::processors::Allotment;
use fairway_machines_qemu::names;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::memory::Remembered;
use super::status::VolumeFacts;

/// Where the directories of machines are.
pub(crate) const RUN: &str = "run";
/// The record.
const RECORD: &str = "instance.json";
/// What stays of a machine that has ended, until its instance is gone: people ask why.
const KEPT: [&str; 3] = [RECORD, names::LOG, names::SCROLLBACK];

/// A file of a machine's directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {}: {source}", .path.display())]
pub(crate) struct HomeError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Whose machine it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) workspace: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// One of the same name is another machine.
    pub(crate) uid: String,
}

impl Owner {
    pub(crate) fn new(key: &ObjectKey, uid: &str) -> Self {
        Self {
            workspace: key.workspace.as_str().to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: uid.to_owned(),
        }
    }

    /// The name of its directory.
    pub(crate) fn short(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.workspace, &self.namespace, &self.name, &self.uid] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A machine as it was built, and as what came and went since has made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Built {
    pub(crate) plan: MachinePlan,
    pub(crate) layout: Layout,
    /// Sockets that have processors in them.
    pub(crate) sockets: u32,
    /// Bytes of memory that it was started with, and those that it was last told to have.
    pub(crate) started_memory: u64,
    pub(crate) memory: u64,
    /// What was found about its disks.
    #[serde(default)]
    pub(crate) volumes: BTreeMap<String, VolumeFacts>,
    /// What its guest has run on since it started (`RunsOn`); empty if an earlier Fairway has started it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) runs_on: String,
}

/// How a machine ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) well: bool,
    pub(crate) message: String,
    /// Upstream's word for why, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// What is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) owner: Owner,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient"
    )]
    pub(crate) built: Option<Built>,
    /// When the guest was asked to shut down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_to_stop: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Ended>,
    /// Its memory is being brought back: it has not run yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_resuming: bool,
    /// Processors of the host that it has for itself.
    #[serde(default, skip_serializing_if = "Allotment::is_empty")]
    pub(crate) processors: Allotment,
    /// What became of memory that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remembered: Option<Remembered>,
}

/// What another version of Fairway wrote in another form is planned anew from the instance.
fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Built>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// A machine's directory.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    pub(crate) record: Record,
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError { doing, path, source }
}

impl Home {
    /// The directory of an instance's machine, with what was written down there before. It need not exist.
    pub(crate) fn of(directory: &Path, owner: &Owner) -> Self {
        let path = directory.join(RUN).join(owner.short());
        let record = read(&path).filter(|it| it.owner == *owner).unwrap_or(Record {
            owner: owner.clone(),
            built: None,
            asked_to_stop: None,
            ended: None,
            is_resuming: false,
            processors: Allotment::default(),
            remembered: None,
        });
        Self { path, record }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory, for its owner alone.
    pub(crate) fn make(&self) -> Result<(), HomeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(failed("make", &self.path))
    }

    /// Writes the record down, in one step.
    pub(crate) fn save(&self) -> Result<(), HomeError> {
        self.make()?;
        let path = self.path.join(RECORD);
        let draft = self.path.join(format!(".{RECORD}"));
        let text = serde_json::to_vec(&self.record).unwrap_or_default();
        // The machine's user passes through here, and has no business with it.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options
            .open(&draft)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| std::fs::rename(&draft, &path))
            .map_err(failed("write", &path))
    }

    /// Removes what lives as long as the process.
    pub(crate) fn tidy(&self) -> Result<(), HomeError> {
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry
                .file_name()
                .to_str()
                .is_some_and(|name| KEPT.contains(&name))
            {
                continue;
            }
            let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
            let removed = if is_folder {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.map_err(failed("remove", &path))?;
        }
        Ok(())
    }

    /// Removes everything.
    pub(crate) fn remove(&self) -> Result<(), HomeError> {
        remove(&self.path)
    }
}

fn remove(path: &Path) -> Result<(), HomeError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Option<Record> {
    let text = std::fs::read(path.join(RECORD)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// As what the machine in a directory was built, if that is known.
pub(crate) fn built(path: &Path) -> Option<Built> {
    read(path)?.built
}

/// What the machines of a node have for themselves of its processors, by the names of their directories.
pub(crate) fn processors(directory: &Path) -> BTreeMap<String, Allotment> {
    let found = all(directory).into_iter().filter_map(|it| {
        let record = read(&it.path).filter(|it| it.ended.is_none() && !it.processors.is_empty())?;
        let name = it.path.file_name()?.to_string_lossy().into_owned();
        Some((name, record.processors))
    });
    found.collect()
}

/// A directory that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
}

impl Found {
    /// Removes it.
    pub(crate) fn remove(&self) -> Result<(), HomeError> {
        remove(&self.path)
    }
}

/// All directories of machines.
pub(crate) fn all(directory: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(directory.join(RUN))
        .into_iter()
        .flatten()
        .flatten();
    let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    folders.map(|entry| Found { path: entry.path() }).collect()
}

/// The directory of the machine that an instance of this name has, or had last.
pub(crate) fn of_key(directory: &Path, key: &ObjectKey) -> Option<PathBuf> {
    let is_of = |owner: &Owner| {
        owner.workspace == key.workspace.as_str()
            && owner.namespace == key.namespace
            && owner.name == key.name
    };
    let found = all(directory).into_iter().map(|it| it.path);
    let of_key = found.filter(|path| read(path).is_some_and(|it| is_of(&it.owner)));
    let changed = |path: &PathBuf| {
        std::fs::metadata(path.join(RECORD))
            .and_then(|it| it.modified())
            .ok()
    };
    of_key.max_by_key(changed)
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;

    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner::new(&ObjectKey::new(&WorkspaceId::root(), "n", "web"), uid)
    }

    #[test]
    fn a_record_is_found_again_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let mut home = Home::of(folder.path(), &owner("1"));
        assert_eq!(home.record.ended, None);
        home.record.ended = Some(Ended {
            well: false,
            message: "signal 9".to_owned(),
            reason: None,
        });
        home.save().unwrap();
        assert_eq!(Home::of(folder.path(), &owner("1")).record, home.record);
        home.record.processors.guest = vec![2, 3];
        home.save().unwrap();
        assert!(processors(folder.path()).is_empty(), "it has ended");
        home.record.ended = None;
        home.save().unwrap();
        let has = BTreeMap::from([(owner("1").short(), home.record.processors.clone())]);
        assert_eq!(processors(folder.path()), has);
        let other = Home::of(folder.path(), &owner("2"));
        assert_ne!(other.path(), home.path());
        assert_eq!(other.record.ended, None);
        let found = all(folder.path());
        assert_eq!(found.len(), 1);
        assert!(found[0].path.ends_with(owner("1").short()));
    }

    #[test]
    fn a_record_of_another_form_still_says_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::of(folder.path(), &owner("1"));
        home.make().unwrap();
        let text = serde_json::json!({"owner": owner("1"), "built": {"plan": "in another form"}, "more": 1});
        std::fs::write(home.path().join(RECORD), text.to_string()).unwrap();
        let again = Home::of(folder.path(), &owner("1"));
        assert_eq!(again.record.built, None);
        assert_eq!(again.record.owner, owner("1"));
        std::fs::write(home.path().join(RECORD), "damaged").unwrap();
        assert_eq!(Home::of(folder.path(), &owner("1")).record.owner, owner("1"));
    }

    #[test]
    fn what_people_ask_for_stays_until_the_instance_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::of(folder.path(), &owner("1"));
        home.save().unwrap();
        for name in ["qemu.log", "console.ring", "seed.iso", "root.qcow2", "qmp.sock"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        std::fs::create_dir(home.path().join("tpm")).unwrap();
        home.tidy().unwrap();
        let mut left: Vec<String> = std::fs::read_dir(home.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["console.ring", "instance.json", "qemu.log"]);
        home.remove().unwrap();
        home.remove().unwrap();
        assert!(all(folder.path()).is_empty());
    }
}
