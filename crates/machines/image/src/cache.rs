//! Finished images by their content.
//!
//! ```text
//! DIR/blobs/SHA256       the content: a disk, a kernel, an initrd; never changed once it has its name
//! DIR/images/NAME.json   what a name stands for
//! DIR/kept/KEY.json      what was fetched for a volume, and has no name (see [`Cache::keep`])
//! DIR/stage/...          what is being made; whoever makes it holds a lock on it
//! DIR/partial/...        downloads that go on where they were interrupted
//! ```
//!
//! A blob is written aside, brought to disk, and then linked to its name, which is one step: nobody sees half a blob, whatever
//! is killed when. A record is renamed into place after its blobs are there. What a killed process leaves in `stage` is removed by
//! the next that opens the cache, which knows it by the lock that nobody holds any more. How many machines use a
//! blob is the number of its links (see [`crate::overlay`]).

mod kept;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::{Format, ImageError, failed};

/// After that time nobody goes on with a download.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 3600);

/// A blob is there before its record is: one of the last minutes may be waiting for it.
const YOUNG: Duration = Duration::from_secs(600);

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// How the disk is kept.
    pub format: Format,
    /// Bytes of the disk that a guest sees.
    pub virtual_size: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Where it came from.
    pub source: String,
    /// When it was published, in RFC 3339.
    pub created: String,
    /// Things to know about it, such as the packages that it was built from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How it can be started without its boot loader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_boot: Option<DirectBoot>,
    /// Where the file is; not part of the record.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A kernel beside the image that starts what is on it, without firmware and boot loader. It is an offer: the disk boots by itself,
/// and must, as soon as the guest has changed its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectBoot {
    /// Digest of the kernel.
    pub kernel: String,
    /// Digest of the initrd.
    pub initrd: String,
    /// The kernel's command line.
    pub command_line: String,
}

/// A directory of images.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

/// A file that is being made. It disappears with this value, unless it was published.
#[derive(Debug)]
pub struct Stage {
    file: File,
    path: PathBuf,
}

impl Stage {
    /// Where it is, for programs that write it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// To write it.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Cache {
    /// Opens a cache, makes it if it is not there, and removes what killed processes left behind.
    pub fn open(directory: &Path) -> Result<Self, ImageError> {
        for part in ["blobs", "images", "kept", "stage", "partial"] {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(failed("making", &path))?;
        }
        let cache = Self {
            directory: directory.to_owned(),
        };
        cache.sweep()?;
        cache.collect()?;
        Ok(cache)
    }

    /// Where a blob is.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.directory.join("blobs").join(digest)
    }

    /// Where interrupted downloads lie.
    pub(crate) fn partial(&self) -> PathBuf {
        self.directory.join("partial")
    }

    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All images, by name.
    pub fn images(&self) -> Result<Vec<Image>, ImageError> {
        let directory = self.directory.join("images");
        let mut images = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed("listing", &directory))? {
            let entry = entry.map_err(failed("listing", &directory))?;
            let name = entry.file_name();
            if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json"))
                && let Some(image) = self.find(name)?
            {
                images.push(image);
            }
        }
        images.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(images)
    }

    /// The image with a name, if there is one.
    pub fn find(&self, name: &str) -> Result<Option<Image>, ImageError> {
        let record = self.record(name)?;
        let text = match fs::read(&record) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("reading", &record)(error)),
        };
        let mut image: Image = serde_json::from_slice(&text).map_err(|error| ImageError::Unusable {
            what: record.display().to_string(),
            why: format!("the record is damaged ({error}); remove it and import the image again"),
        })?;
        image.path = self.blob(&image.digest);
        // A blob that was removed by hand: the image is not there.
        Ok(image.path.exists().then_some(image))
    }

    /// The image with a name.
    pub fn get(&self, name: &str) -> Result<Image, ImageError> {
        self.find(name)?
            .ok_or_else(|| ImageError::NotFound(name.to_owned()))
    }

    /// How many machines have a disk over an image.
    pub fn uses(&self, image: &Image) -> u64 {
        fs::metadata(&image.path).map_or(0, |found| found.nlink().saturating_sub(1))
    }

    /// A new file, to be published when it is whole.
    pub fn stage(&self) -> Result<Stage, ImageError> {
        let directory = self.directory.join("stage");
        for attempt in 0_u32.. {
            let path = directory.join(format!("{}-{attempt}", std::process::id()));
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match opened {
                Ok(file) => {
                    file.lock().map_err(failed("locking", &path))?;
                    // Between the two steps somebody may have taken it for a leftover.
                    if path.exists() {
                        return Ok(Stage { file, path });
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("making", &path)(error)),
            }
        }
        Err(ImageError::Build(
            "no name is left for a temporary file".to_owned(),
        ))
    }

    /// Gives a whole file its name, which is its digest. The staged name is of no use after that.
    pub fn put(&self, stage: &Stage) -> Result<String, ImageError> {
        self.put_file(&stage.path)
    }

    /// The same of any file on the same file system.
    pub(crate) fn put_file(&self, path: &Path) -> Result<String, ImageError> {
        // Programs may have written a new file under the old name.
        let file = File::open(path).map_err(failed("reading", path))?;
        let digest = digest(&file).map_err(failed("reading", path))?;
        file.set_permissions(fs::Permissions::from_mode(0o444))
            .and_then(|()| file.sync_all())
            .map_err(failed("writing", path))?;
        let blob = self.blob(&digest);
        match fs::hard_link(path, &blob) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed("naming", &blob)(error));
            }
            _ => sync_directory(&self.directory.join("blobs"))?,
        }
        Ok(digest)
    }

    /// Publishes an image under its name, in place of what had the name before. Its blobs have to be there.
    pub fn publish(&self, mut image: Image) -> Result<Image, ImageError> {
        let record = self.record(&image.name)?;
        image.path = self.blob(&image.digest);
        let direct = image.direct_boot.iter();
        let needed = direct
            .flat_map(|boot| [&boot.kernel, &boot.initrd])
            .chain([&image.digest]);
        for digest in needed {
            let blob = self.blob(digest);
            fs::metadata(&blob).map_err(failed("publishing, reading", &blob))?;
        }
        let before = self.find(&image.name).ok().flatten();
        let stage = self.stage()?;
        let text = serde_json::to_vec_pretty(&image)
            .map_err(|error| ImageError::Build(format!("writing the record: {error}")))?;
        (&stage.file)
            .write_all(&text)
            .and_then(|()| stage.file.sync_all())
            .map_err(failed("writing", &stage.path))?;
        fs::rename(&stage.path, &record).map_err(failed("naming", &record))?;
        sync_directory(&self.directory.join("images"))?;
        if before.is_some() {
            self.collect()?;
        }
        Ok(image)
    }

    /// Takes a name away, and everything that only it stood for. Machines keep what they have.
    pub fn remove(&self, name: &str) -> Result<Image, ImageError> {
        let image = self.get(name)?;
        let record = self.record(name)?;
        fs::remove_file(&record).map_err(failed("removing", &record))?;
        self.collect()?;
        Ok(image)
    }

    /// Removes blobs that no record stands for.
    fn collect(&self) -> Result<(), ImageError> {
        self.collect_younger(YOUNG)
    }

    fn collect_younger(&self, than: Duration) -> Result<(), ImageError> {
        let images = self.images()?;
        let kept = self.all_kept()?;
        let named: Vec<&str> = images
            .iter()
            .chain(kept.iter().map(|(_, image)| image))
            .flat_map(|image| {
                let direct = image.direct_boot.iter();
                direct
                    .flat_map(|boot| [boot.kernel.as_str(), &boot.initrd])
                    .chain([image.digest.as_str()])
            })
            .collect();
        let directory = self.directory.join("blobs");
        for entry in fs::read_dir(&directory).map_err(failed("listing", &directory))? {
            let entry = entry.map_err(failed("listing", &directory))?;
            let name = entry.file_name();
            let age = entry.metadata().ok().and_then(|found| found.modified().ok());
            let is_young = age
                .and_then(|time| time.elapsed().ok())
                .is_none_or(|age| age < than);
            if !is_young && !named.iter().any(|digest| *digest == name) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn sweep(&self) -> Result<(), ImageError> {
        let directory = self.directory.join("stage");
        for entry in fs::read_dir(&directory).map_err(failed("listing", &directory))? {
            let path = entry.map_err(failed("listing", &directory))?.path();
            // A lock dies with the process that held it.
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(&path);
            }
        }
        // Nobody comes back for a download after a week.
        let directory = self.partial();
        for entry in fs::read_dir(&directory).map_err(failed("listing", &directory))? {
            let entry = entry.map_err(failed("listing", &directory))?;
            let age = entry
                .metadata()
                .ok()
                .and_then(|found| found.modified().ok()?.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn record(&self, name: &str) -> Result<PathBuf, ImageError> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = (1..=200).contains(&name.len())
            && name.bytes().all(|byte| is_letter(byte) || b"-.".contains(&byte))
            && name.bytes().next().is_some_and(is_letter);
        match is_name {
            true => Ok(self.directory.join("images").join(format!("{name}.json"))),
            false => Err(ImageError::Name(name.to_owned())),
        }
    }
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn digest(mut file: &File) -> std::io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            count => context.update(&buffer[..count]),
        }
    }
}

/// Whether a text is such a digest: it becomes the name of a file.
pub(crate) fn hex_digest(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(is_digit)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sync_directory(path: &Path) -> Result<(), ImageError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(failed("syncing", path))
}

#[cfg(test)]
mod tests;
