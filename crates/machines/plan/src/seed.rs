//! What a guest is told when it starts: seeds for cloud-init, and disks with the content of objects.
//!
//! [`references`] says which Secrets and ConfigMaps a machine needs; whoever can read them puts them into [`Objects`],
//! and [`disk`] makes the files of one disk, which [`crate::iso::write`] turns into an image.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use thiserror::Error;

use crate::argv::Layout;
use crate::iso::File;
use crate::machine::{DiskSource, FilesOf, MachinePlan, SeedKind};
use crate::view::VirtualMachineInstance;

mod cloud_init;
mod object_files;

/// An object whose content goes into a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// A Secret.
    Secret(String),
    /// A ConfigMap.
    ConfigMap(String),
    /// A ServiceAccount, whose token is needed.
    ServiceAccount(String),
}

/// Content of objects: bytes by key.
pub type Content = BTreeMap<String, Vec<u8>>;

/// The objects that a machine needs, as far as they exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects(pub BTreeMap<Reference, Content>);

impl Objects {
    /// Adds a Secret or ConfigMap as the API returned it.
    pub fn add(&mut self, reference: Reference, object: &Value) -> Result<(), SeedError> {
        let content = object_files::content(object).map_err(|key| SeedError::Encoding {
            object: named(&reference),
            key,
        })?;
        self.0.insert(reference, content);
        Ok(())
    }

    fn get(&self, reference: &Reference) -> Option<&Content> {
        self.0.get(reference)
    }
}

/// What a disk of files is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFiles {
    /// What the guest sees as label.
    pub label: String,
    /// The files.
    pub files: Vec<File>,
}

/// Why a disk cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SeedError {
    /// An object that must exist does not.
    #[error("volume {volume:?} needs {object}, which does not exist; create it, or correct its name")]
    Missing {
        /// The volume.
        volume: String,
        /// The object.
        object: String,
    },
    /// An object does not have what it is there for.
    #[error("no cloud-init data-source found at volume: {volume} ({object} has none of the keys {keys})")]
    NoKey {
        /// The volume.
        volume: String,
        /// The object.
        object: String,
        /// The keys that were looked for.
        keys: String,
    },
    /// A value is not what it says it is.
    #[error("key {key:?} of {object} is not base64")]
    Encoding {
        /// The object.
        object: String,
        /// The key.
        key: String,
    },
    /// A field is not what it says it is.
    #[error("{field} of volume {volume:?} is not base64")]
    FieldEncoding {
        /// The volume.
        volume: String,
        /// The field.
        field: &'static str,
    },
    /// There is nothing in it.
    #[error(
        "volume {volume:?}: userDataBase64, userData, networkDataBase64 or networkData is required for a cloud-init \
         data source"
    )]
    NoData {
        /// The volume.
        volume: String,
    },
    /// Windows would not look at it.
    #[error(
        "volume {volume:?}: Sysprep drive should contain autounattend.xml or unattend.xml but neither were found."
    )]
    NoAnswers {
        /// The volume.
        volume: String,
    },
    /// A field of the machine's object that cannot be told.
    #[error("volume {volume:?}: there is no field {field:?} to tell the guest; metadata's can be told")]
    NoField {
        /// The volume.
        volume: String,
        /// The field.
        field: String,
    },
    /// The disk is not one of files.
    #[error("disk {disk:?} is not made of files")]
    NotFiles {
        /// The disk.
        disk: String,
    },
}

fn named(reference: &Reference) -> String {
    match reference {
        Reference::Secret(name) => format!("Secret {name:?}"),
        Reference::ConfigMap(name) => format!("ConfigMap {name:?}"),
        Reference::ServiceAccount(name) => format!("ServiceAccount {name:?}"),
    }
}

/// The objects whose content goes into a machine, passwords and keys for the agent included.
pub fn references(vmi: &VirtualMachineInstance) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    let mut secret = |name: Option<&str>| {
        if let Some(name) = name.filter(|it| !it.is_empty()) {
            found.insert(Reference::Secret(name.to_owned()));
        }
    };
    for volume in &vmi.spec.volumes {
        let seeds = [&volume.cloud_init_no_cloud, &volume.cloud_init_config_drive];
        for seed in seeds.into_iter().flatten() {
            secret(seed.secret_ref.as_ref().map(|it| it.name.as_str()));
            secret(seed.network_data_secret_ref.as_ref().map(|it| it.name.as_str()));
        }
        secret(volume.secret.as_ref().map(|it| it.secret_name.as_str()));
        secret(
            volume
                .sysprep
                .as_ref()
                .and_then(|it| it.secret.as_ref())
                .map(|it| it.name.as_str()),
        );
    }
    for credential in &vmi.spec.access_credentials {
        secret(credential.ssh_public_key.as_ref().and_then(|it| it.source.name()));
        secret(credential.user_password.as_ref().and_then(|it| it.source.name()));
    }
    for volume in &vmi.spec.volumes {
        let maps = [
            volume.config_map.as_ref().map(|it| &it.name),
            volume
                .sysprep
                .as_ref()
                .and_then(|it| it.config_map.as_ref())
                .map(|it| &it.name),
        ];
        found.extend(maps.into_iter().flatten().cloned().map(Reference::ConfigMap));
        let account = volume
            .service_account
            .as_ref()
            .map(|it| it.service_account_name.clone());
        found.extend(account.map(Reference::ServiceAccount));
    }
    found
}

/// A network card that the guest is told about by a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedCard {
    /// Where the guest sees it.
    pub pci_address: String,
    /// Its address.
    pub mac: String,
    /// The word.
    pub tag: String,
}

/// The cards of a machine that have a word for the guest.
pub fn tagged_cards(plan: &MachinePlan, layout: &Layout) -> Vec<TaggedCard> {
    let tagged = plan.cards.iter().filter(|it| !it.tag.is_empty());
    let found = tagged.filter_map(|card| {
        Some(TaggedCard {
            pci_address: layout.card(&card.name).ok()?.guest_address()?,
            mac: card.mac.clone(),
            tag: card.tag.clone(),
        })
    });
    found.collect()
}

/// The files of a machine's disk. `cards` are those with a word for the guest, for ConfigDrive.
pub fn disk(
    vmi: &VirtualMachineInstance,
    plan: &MachinePlan,
    disk: &str,
    objects: &Objects,
    cards: &[TaggedCard],
) -> Result<DiskFiles, SeedError> {
    let wrong = || SeedError::NotFiles {
        disk: disk.to_owned(),
    };
    let planned = plan.disk(disk).ok_or_else(wrong)?;
    let volume = vmi
        .spec
        .volumes
        .iter()
        .find(|it| it.name == disk)
        .ok_or_else(wrong)?;
    match &planned.source {
        DiskSource::Seed(SeedKind::NoCloud) => {
            let seed = volume.cloud_init_no_cloud.as_ref().ok_or_else(wrong)?;
            cloud_init::no_cloud(vmi, plan, disk, seed, objects)
        }
        DiskSource::Seed(SeedKind::ConfigDrive) => {
            let seed = volume.cloud_init_config_drive.as_ref().ok_or_else(wrong)?;
            cloud_init::config_drive(vmi, plan, disk, seed, objects, cards)
        }
        DiskSource::Files { of, label } => Ok(DiskFiles {
            label: label.clone(),
            files: files(vmi, disk, of, objects)?,
        }),
        _ => Err(wrong()),
    }
}

fn files(
    vmi: &VirtualMachineInstance,
    volume: &str,
    of: &FilesOf,
    objects: &Objects,
) -> Result<Vec<File>, SeedError> {
    let (reference, optional) = match of {
        FilesOf::ConfigMap { name, optional } => (Reference::ConfigMap(name.clone()), *optional),
        FilesOf::Secret { name, optional } => (Reference::Secret(name.clone()), *optional),
        FilesOf::ServiceAccount { name } => (Reference::ServiceAccount(name.clone()), false),
        FilesOf::Sysprep { name, secret: true } => (Reference::Secret(name.clone()), false),
        FilesOf::Sysprep { name, secret: false } => (Reference::ConfigMap(name.clone()), false),
        FilesOf::DownwardApi { fields } => return object_files::facts(vmi, volume, fields),
    };
    let Some(content) = objects.get(&reference) else {
        if optional {
            return Ok(Vec::new());
        }
        return Err(SeedError::Missing {
            volume: volume.to_owned(),
            object: named(&reference),
        });
    };
    if matches!(of, FilesOf::Sysprep { .. }) {
        let answers =
            |key: &String| ["autounattend.xml", "unattend.xml"].contains(&key.to_lowercase().as_str());
        if !content.keys().any(answers) {
            return Err(SeedError::NoAnswers {
                volume: volume.to_owned(),
            });
        }
    }
    Ok(content
        .iter()
        .map(|(key, value)| File::new(key, value.clone()))
        .collect())
}

/// Cards with a word, as the guest sees them.
fn tagged(cards: &[TaggedCard]) -> Value {
    let cards = cards.iter().map(|card| {
        json!({"type": "nic", "bus": "pci", "address": card.pci_address, "mac": card.mac, "tags": [card.tag]})
    });
    cards.collect()
}

#[cfg(test)]
mod tests;
