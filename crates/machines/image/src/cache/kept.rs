//! Images without a name: what was fetched for a volume, found again by where it came from.
//!
//! They are a matter of speed: whoever wants the same again has it without a copy. Nobody sees them by name, and finding one
//! gives nobody the right to it: who asks has to show first that its source would give it to him. One that no disk lies over is
//! forgotten after a while.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Cache, Image, sync_directory};
use crate::{ImageError, failed};

/// Blobs of the last moments may be waiting for their records.
const RECENT: Duration = Duration::from_secs(30);
/// How long an image is kept that nobody asks for.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

impl Cache {
    /// Keeps an image whose blob is there under a key, in place of what had it before. The key is made of letters and digits.
    pub fn keep(&self, key: &str, mut image: Image) -> Result<Image, ImageError> {
        let record = self.kept_record(key)?;
        image.path = self.blob(&image.digest);
        fs::metadata(&image.path).map_err(failed("keeping, reading", &image.path))?;
        let stage = self.stage()?;
        let text = serde_json::to_vec_pretty(&image)
            .map_err(|error| ImageError::Build(format!("writing the record: {error}")))?;
        stage
            .file()
            .write_all(&text)
            .and_then(|()| stage.file().sync_all())
            .map_err(failed("writing", stage.path()))?;
        fs::rename(stage.path(), &record).map_err(failed("naming", &record))?;
        sync_directory(&self.directory.join("kept"))?;
        Ok(image)
    }

    /// What is kept under a key. One that was damaged, or whose blob is gone, is not there.
    pub fn kept(&self, key: &str) -> Result<Option<Image>, ImageError> {
        let record = self.kept_record(key)?;
        let text = match fs::read(&record) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("reading", &record)(error)),
        };
        let Ok(mut image) = serde_json::from_slice::<Image>(&text) else {
            let _ = fs::remove_file(&record);
            return Ok(None);
        };
        image.path = self.blob(&image.digest);
        if !image.path.exists() {
            return Ok(None);
        }
        // The time of the record says when it was asked for last.
        let touched = File::options()
            .append(true)
            .open(&record)
            .and_then(|file| file.set_modified(SystemTime::now()));
        touched.map_err(failed("marking", &record))?;
        Ok(Some(image))
    }

    /// Forgets what is kept under a key. Its blob goes, too, if no other record stands for it; disks keep what they have.
    pub fn forget(&self, key: &str) -> Result<(), ImageError> {
        let record = self.kept_record(key)?;
        let image = self.kept(key)?;
        match fs::remove_file(&record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("removing", &record)(error));
            }
            _ => {}
        }
        let Some(image) = image else { return Ok(()) };
        let named = self.images()?;
        let kept = self.all_kept()?;
        let mut others = named.iter().chain(kept.iter().map(|(_, image)| image));
        if !others.any(|other| other.digest == image.digest) {
            let _ = fs::remove_file(&image.path);
        }
        Ok(())
    }

    /// Forgets what is kept and no disk lies over, to make room; how many bytes that gives back.
    pub fn forget_unused(&self) -> Result<u64, ImageError> {
        let mut freed = 0;
        for (record, image) in self.all_kept()? {
            if self.uses(&image) == 0 {
                freed += image.size;
                let _ = fs::remove_file(record);
            }
        }
        self.collect_younger(RECENT)?;
        Ok(freed)
    }

    /// Everything that is kept; records for which nobody asked for long are removed.
    pub(super) fn all_kept(&self) -> Result<Vec<(PathBuf, Image)>, ImageError> {
        let directory = self.directory.join("kept");
        let mut found = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed("listing", &directory))? {
            let path = entry.map_err(failed("listing", &directory))?.path();
            let age = fs::metadata(&path)
                .and_then(|found| found.modified())
                .ok()
                .and_then(|time| time.elapsed().ok());
            let image = fs::read(&path)
                .ok()
                .and_then(|text| serde_json::from_slice::<Image>(&text).ok());
            let Some(mut image) = image else {
                let _ = fs::remove_file(&path);
                continue;
            };
            image.path = self.blob(&image.digest);
            if age.is_some_and(|age| age > UNUSED) && self.uses(&image) == 0 {
                let _ = fs::remove_file(&path);
                continue;
            }
            found.push((path, image));
        }
        Ok(found)
    }

    fn kept_record(&self, key: &str) -> Result<PathBuf, ImageError> {
        let is_key = (1..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match is_key {
            true => Ok(self.directory.join("kept").join(format!("{key}.json"))),
            false => Err(ImageError::Name(key.to_owned())),
        }
    }
}
