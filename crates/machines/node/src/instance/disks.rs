//! Disks made ready: a file behind each, in the form that QEMU is told.
//!
//! ```text
//! claim, DataVolume   the volume's own disk, where it is
//! containerDisk       a layer in the machine's directory over the cached image; changes go with the machine
//! ephemeral           a layer in the machine's directory over the claim's disk
//! emptyDisk           an empty disk in the machine's directory
//! seeds, files        an ISO image in the machine's directory
//! hostDisk            a file of the host
//! ```
//!
//! Everything can be done again: what is there already stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairway_controller::{ObjectKey, Requests};
use fairway_machines_image::{ImageError, overlay};
use fairway_machines_plan::argv::{Backing, FirmwareFiles, Format, KernelFiles, Layout};
use fairway_machines_plan::iso;
use fairway_machines_plan::machine::{DiskPlan, DiskSource, ImageRef, MachinePlan};
use fairway_machines_plan::phase::Obstacle;
use fairway_machines_plan::seed::{self, Objects};
use fairway_machines_plan::view::VirtualMachineInstance;
use fairway_machines_volumes::moment;
use fairway_machines_volumes::{ContainerDisk, PullPolicy};
use serde_json::Value;

use super::memory::Resume;
use super::seeds::{self, ObjectsError};
use crate::claims::{self, Claim, Place};
use crate::ports::Disks;

/// What is behind the disks of a machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prepared {
    /// Files, by the disks' names.
    pub(crate) backings: BTreeMap<String, Backing>,
    /// Bytes that the guest sees, by the disks' names.
    pub(crate) sizes: BTreeMap<String, u64>,
    /// Claims, by the disks' names.
    pub(crate) claims: BTreeMap<String, Value>,
    /// Disks of claims that others lie over, by the names of those.
    pub(crate) below: BTreeMap<String, PathBuf>,
    /// Directories of volumes that are written to, by the disks' names.
    pub(crate) volumes: BTreeMap<String, PathBuf>,
    /// The machine goes on with memory that was kept, or cannot.
    pub(crate) memory: Option<Result<Box<Resume>, String>>,
    /// UEFI firmware.
    pub(crate) firmware: Option<FirmwareFiles>,
    /// A kernel from outside of the disks.
    pub(crate) kernel: Option<KernelFiles>,
}

/// Why disks are not ready.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// Claims have to be bound first; when they are, somebody says so.
    Unbound(Vec<String>),
    /// Something is wrong; tried again later.
    Obstacle(Obstacle),
}

impl From<Obstacle> for NotReady {
    fn from(obstacle: Obstacle) -> Self {
        Self::Obstacle(obstacle)
    }
}

/// Everything that preparing needs to know.
pub(crate) struct Preparing<'a> {
    pub(crate) api: &'a Requests,
    pub(crate) images: &'a dyn Disks,
    pub(crate) key: &'a ObjectKey,
    pub(crate) vmi: &'a VirtualMachineInstance,
    pub(crate) plan: &'a MachinePlan,
    pub(crate) layout: &'a Layout,
    /// The machine's directory.
    pub(crate) directory: &'a Path,
    /// Files of the host may be disks: whoever looks after the nodes said so.
    pub(crate) host_disks: bool,
}

impl Preparing<'_> {
    /// What this node keeps of machines: the machine's directory is one of several in a directory of it.
    pub(crate) fn machines(&self) -> &Path {
        self.directory.ancestors().nth(2).unwrap_or(self.directory)
    }

    /// Makes the disks of a machine ready.
    pub(crate) async fn all(&self) -> Result<Prepared, NotReady> {
        let mut prepared = Prepared::default();
        // Claims first: as long as one is missing, everything else is in vain.
        let mut unbound = Vec::new();
        let mut claims = BTreeMap::new();
        for disk in &self.plan.disks {
            if let Some(name) = claim_of(&disk.source) {
                let claim = self.claim(name).await?;
                if claim.place.is_none() {
                    unbound.push(name.to_owned());
                }
                claims.insert(disk.name.clone(), claim);
            }
        }
        if !unbound.is_empty() {
            return Err(NotReady::Unbound(unbound));
        }
        let objects = match self.plan.disks.iter().any(|it| is_files(&it.source)) {
            true => self.objects().await?,
            false => Objects::default(),
        };
        for disk in &self.plan.disks {
            let claim = claims.remove(&disk.name);
            self.one(disk, claim, &objects, &mut prepared).await?;
        }
        Ok(prepared)
    }

    /// Makes one disk ready, which comes while the machine runs.
    pub(crate) async fn single(&self, disk: &DiskPlan) -> Result<Prepared, NotReady> {
        let mut prepared = Prepared::default();
        let claim = match claim_of(&disk.source) {
            None => None,
            Some(name) => Some(self.claim(name).await?),
        };
        if let Some(claim) = claim.as_ref().filter(|it| it.place.is_none()) {
            let name = claim.object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(NotReady::Unbound(vec![name.to_owned()]));
        }
        let objects = match is_files(&disk.source) {
            true => self.objects().await?,
            false => Objects::default(),
        };
        self.one(disk, claim, &objects, &mut prepared).await?;
        // Who writes to a disk makes it one that no memory knows any more.
        for directory in prepared.volumes.values() {
            let unmarked = moment::unmark(directory);
            unmarked.map_err(|error| Obstacle::Start(format!("{}: {error}", directory.display())))?;
        }
        Ok(prepared)
    }

    async fn claim(&self, name: &str) -> Result<Claim, NotReady> {
        match claims::find(self.api, self.key, name, self.machines()).await {
            Ok(Some(claim)) => Ok(claim),
            Ok(None) => Err(Obstacle::NoClaim(name.to_owned()).into()),
            Err(error) => Err(Obstacle::Start(error.to_string()).into()),
        }
    }

    async fn objects(&self) -> Result<Objects, NotReady> {
        let wanted = seed::references(self.vmi);
        seeds::read(self.api, self.key, wanted)
            .await
            .map_err(|error| match error {
                ObjectsError::Seed(error) => Obstacle::Seed(error.to_string()).into(),
                ObjectsError::Api(failure) => Obstacle::Start(failure.sentence()).into(),
            })
    }

    async fn one(
        &self,
        disk: &DiskPlan,
        claim: Option<Claim>,
        objects: &Objects,
        prepared: &mut Prepared,
    ) -> Result<(), NotReady> {
        let file = file_name(&disk.name);
        let own = |suffix: &str| self.directory.join(format!("{file}.{suffix}"));
        let place = claim.as_ref().and_then(|it| it.place.clone());
        if let Some(claim) = &claim {
            prepared.claims.insert(disk.name.clone(), claim.object.clone());
        }
        let (path, format, size) = match &disk.source {
            DiskSource::Claim { .. } | DiskSource::DataVolume { .. } => {
                let path = place.as_ref().map(Place::disk).unwrap_or_default();
                if let Some(place) = &place {
                    let directory = place.directory.clone();
                    prepared.volumes.insert(disk.name.clone(), directory);
                }
                let found = path.clone();
                let size = blocking(move || overlay::virtual_size(&found)).await?;
                (path, Format::Qcow2, size)
            }
            DiskSource::Ephemeral { .. } => {
                let below = place.map(|it| it.disk()).unwrap_or_default();
                prepared.below.insert(disk.name.clone(), below.clone());
                let (directory, name) = (self.directory.to_owned(), file.clone());
                let size = blocking(move || overlay::above(&below, &directory, &name)).await?;
                (own("qcow2"), Format::Qcow2, size)
            }
            DiskSource::ContainerDisk { image, path } => {
                let size = self.container_disk(image, path, &file).await?;
                (own("qcow2"), Format::Qcow2, size)
            }
            DiskSource::Empty { capacity } => {
                let (directory, name, size) = (self.directory.to_owned(), file.clone(), *capacity);
                blocking(move || overlay::blank(&directory, &name, size)).await?;
                (own("qcow2"), Format::Qcow2, *capacity)
            }
            DiskSource::HostFile { path, create } => {
                let path = PathBuf::from(path);
                let size = self.host_file(&path, *create)?;
                (path, Format::Raw, size)
            }
            DiskSource::Seed(_) | DiskSource::Files { .. } => {
                let image = self.image_of_files(disk, objects)?;
                let path = own("iso");
                let size = write(&path, &image).map_err(Obstacle::Seed)?;
                (path, Format::Raw, size)
            }
        };
        let backing = Backing {
            direct: takes_direct(&path),
            // QEMU runs in the machine's directory, and what is above the node's is closed to it.
            file: overlay::from(self.directory, &path).display().to_string(),
            format,
            block_device: false,
        };
        prepared.backings.insert(disk.name.clone(), backing);
        prepared.sizes.insert(disk.name.clone(), size);
        Ok(())
    }

    async fn container_disk(&self, image: &ImageRef, path: &str, file: &str) -> Result<u64, NotReady> {
        // A layer that is there stays over the image that it was made for, whatever its name means by now.
        let layer = self.directory.join(format!("{file}.qcow2"));
        if layer.exists() {
            return blocking(move || overlay::virtual_size(&layer)).await;
        }
        let secret = self.pull_secret(&image.pull_secret).await?;
        let wanted = ContainerDisk {
            image: &image.image,
            path: Some(path).filter(|it| !it.is_empty()),
            pull_policy: PullPolicy::of(&image.pull_policy, &image.image),
            secret: secret.as_deref(),
        };
        let fetched = self.images.fetch(wanted).await;
        let image = fetched.map_err(|error| Obstacle::ErrImagePull(with_source(&error)))?;
        let (directory, name) = (self.directory.to_owned(), file.to_owned());
        blocking(move || overlay::over(&image, &directory, &name, None)).await
    }

    async fn pull_secret(&self, name: &str) -> Result<Option<Vec<u8>>, NotReady> {
        if name.is_empty() {
            return Ok(None);
        }
        let wanted = std::collections::BTreeSet::from([seed::Reference::Secret(name.to_owned())]);
        let objects = seeds::read(self.api, self.key, wanted).await;
        let objects = objects.map_err(|error| Obstacle::ErrImagePull(error.to_string()))?;
        let content = objects.0.into_values().next();
        let found = content.and_then(|mut it| it.remove(".dockerconfigjson"));
        match found {
            Some(found) => Ok(Some(found)),
            None => Err(Obstacle::ErrImagePull(format!(
                "Secret {name:?} does not exist, or has no key .dockerconfigjson; create it with: kubectl create secret docker-registry {name}"
            ))
            .into()),
        }
    }

    fn host_file(&self, path: &Path, create: Option<u64>) -> Result<u64, NotReady> {
        let refused = |why: String| NotReady::from(Obstacle::Start(why));
        if !self.host_disks {
            return Err(refused(
                "hostDisk is not allowed on this installation: switch the feature gate HostDisk on in the KubeVirt object of the root workspace"
                    .to_owned(),
            ));
        }
        let problem = |doing: &str, error: std::io::Error| {
            refused(format!("could not {doing} {}: {error}", path.display()))
        };
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Ok(found.len()),
            Ok(_) => Err(refused(format!("{} is not a file", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => match create {
                None => Err(refused(format!(
                    "{} does not exist; create it, or use type DiskOrCreate with a capacity",
                    path.display()
                ))),
                Some(size) => {
                    let file = std::fs::OpenOptions::new()
                        .write(true)
                        .create_new(true)
                        .open(path);
                    let file = file.map_err(|error| problem("make", error))?;
                    file.set_len(size).map_err(|error| problem("make", error))?;
                    Ok(size)
                }
            },
            Err(error) => Err(problem("look at", error)),
        }
    }

    fn image_of_files(&self, disk: &DiskPlan, objects: &Objects) -> Result<Vec<u8>, NotReady> {
        let cards = seed::tagged_cards(self.plan, self.layout);
        let files = seed::disk(self.vmi, self.plan, &disk.name, objects, &cards);
        let files = files.map_err(|error| Obstacle::Seed(error.to_string()))?;
        let image = iso::write(&files.label, &files.files);
        image.map_err(|error| Obstacle::Seed(format!("volume {:?}: {error}", disk.name)).into())
    }
}

/// What is in the way, in a sentence.
pub(crate) fn sentence(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::NoClaim(name) => format!("PVC {name} does not exist; create it, or correct its name"),
        Obstacle::ErrImagePull(why)
        | Obstacle::ImagePullBackOff(why)
        | Obstacle::Seed(why)
        | Obstacle::Start(why) => why.clone(),
    }
}

/// The claim behind a disk: a DataVolume's has its name.
pub(crate) fn claim_of(source: &DiskSource) -> Option<&str> {
    match source {
        DiskSource::Claim { name }
        | DiskSource::DataVolume { name }
        | DiskSource::Ephemeral { claim: name } => Some(name),
        _ => None,
    }
}

fn is_files(source: &DiskSource) -> bool {
    matches!(source, DiskSource::Seed(_) | DiskSource::Files { .. })
}

/// The name of a disk's file in the machine's directory, without what says its format.
pub(crate) fn file_name(disk: &str) -> String {
    // Names of disks are labels, and the prefix keeps them apart from everything else there.
    format!("disk-{disk}")
}

/// Whether a file can be read and written past the host's memory, which not every file system lets one do.
fn takes_direct(path: &Path) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    open(
        path,
        OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .is_ok()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, NotReady> {
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Obstacle::Start(with_source(&error)).into()),
        Err(error) => Err(Obstacle::Start(error.to_string()).into()),
    }
}

pub(crate) fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    }
}

/// Disks of files are so large at least, as upstream's are. Programs that look for file systems give up on a disk that ends where
/// one of them would have its mark: busybox does below 68 KiB.
const LEAST: u64 = 1 << 20;

/// Writes a disk of files that only its owner can read, as it may hold what is in a Secret; how large it is.
fn write(path: &Path, content: &[u8]) -> Result<u64, String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let size = (content.len() as u64).next_multiple_of(LEAST);
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let written = made.and_then(|mut file| {
        file.write_all(content)?;
        file.set_len(size)
    });
    written
        .map(|()| size)
        .map_err(|error| format!("could not write {}: {error}", path.display()))
}
