//! Images out of another cache: the content is fetched by its digest, goes on where it was interrupted, and is one of ours only when it is
//! what was promised.
//!
//! Whoever gives it is asked for bytes from a place on, and nothing else; how they get here is the caller's. What was received is judged like
//! any other file, so that a cache that was tampered with elsewhere harms nobody here.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use crate::cache::{digest, hex_digest};
use crate::import::{self, Request};
use crate::{Cache, Image, ImageError, failed, unpack};

/// So often the free room is looked at.
const LOOK_EVERY: u64 = 64 << 20;

/// Content that is on its way. What is there already stays when this value goes, and the next attempt goes on with it.
#[derive(Debug)]
pub struct Receiving {
    cache: Cache,
    record: Image,
    file: File,
    path: PathBuf,
    have: u64,
    next_look: u64,
    // Nobody else receives the same meanwhile.
    _lock: File,
}

impl Cache {
    /// The image with this digest, by whatever name or key it is here.
    pub fn by_digest(&self, digest: &str) -> Result<Option<Image>, ImageError> {
        if !hex_digest(digest) {
            return Ok(None);
        }
        let named = self.images()?.into_iter().find(|image| image.digest == digest);
        match named {
            Some(image) => Ok(Some(image)),
            None => self.kept(digest),
        }
    }

    /// Begins to receive what a record of another cache stands for, or goes on with it. The largest disk is given, as for any import.
    pub fn receive(&self, record: &Image, max_size: u64) -> Result<Receiving, ImageError> {
        let what = describe(record);
        if !hex_digest(&record.digest) {
            return Err(ImageError::Unusable {
                what,
                why: format!("{:?} is no SHA-256 digest", record.digest),
            });
        }
        if record.virtual_size > max_size || record.size > import::largest_file(max_size) {
            return Err(ImageError::TooLarge {
                what,
                limit: max_size,
            });
        }
        let path = self.partial().join(format!("{}.blob", record.digest));
        let lock_path = self.partial().join(format!("{}.lock", record.digest));
        let lock = File::create(&lock_path).map_err(failed("making", &lock_path))?;
        if lock.try_lock().is_err() {
            return Err(ImageError::Download {
                url: what,
                why: "it is being fetched already".to_owned(),
                is_final: false,
            });
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed("writing", &path))?;
        let length = file.metadata().map_err(failed("reading", &path))?.len();
        // More than there is of it cannot be its beginning.
        let have = if length > record.size { 0 } else { length };
        file.set_len(have)
            .and_then(|()| file.seek(SeekFrom::Start(have)))
            .map_err(failed("writing", &path))?;
        Ok(Receiving {
            cache: self.clone(),
            record: record.clone(),
            file,
            path,
            have,
            next_look: have,
            _lock: lock,
        })
    }
}

impl Receiving {
    /// How many bytes are here.
    pub fn have(&self) -> u64 {
        self.have
    }

    /// How many there will be.
    pub fn size(&self) -> u64 {
        self.record.size
    }

    /// Begins anew: whoever gives it cannot go on in the middle.
    pub fn restart(&mut self) -> Result<(), ImageError> {
        self.have = 0;
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)).map(drop))
            .map_err(failed("writing", &self.path))
    }

    /// Takes the next bytes. More than there should be are refused.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), ImageError> {
        let have = self.have.saturating_add(piece.len() as u64);
        if have > self.record.size {
            return Err(ImageError::TooLarge {
                what: describe(&self.record),
                limit: self.record.size,
            });
        }
        if have >= self.next_look {
            unpack::room(&self.path, &describe(&self.record))?;
            self.next_look = have.saturating_add(LOOK_EVERY);
        }
        self.file
            .write_all(piece)
            .map_err(failed("writing", &self.path))?;
        self.have = have;
        Ok(())
    }

    /// Makes it one of ours, if it is whole and what was promised; else what is here is thrown away, except if only the end is missing.
    pub fn finish(self) -> Result<Image, ImageError> {
        let what = describe(&self.record);
        if self.have < self.record.size {
            return Err(ImageError::Download {
                url: what,
                why: format!("{} of {} bytes arrived", self.have, self.record.size),
                is_final: false,
            });
        }
        let made = self.keep();
        if !matches!(made, Err(ImageError::NoRoom { .. })) {
            let _ = std::fs::remove_file(&self.path);
        }
        made
    }

    fn keep(&self) -> Result<Image, ImageError> {
        let file = File::open(&self.path).map_err(failed("reading", &self.path))?;
        let found = digest(&file).map_err(failed("reading", &self.path))?;
        let what = describe(&self.record);
        if found != self.record.digest {
            return Err(ImageError::Checksum {
                what,
                found: format!("sha256:{found}"),
                expected: format!("sha256:{}", self.record.digest),
            });
        }
        let mut request = Request::new(&self.record.name, &what);
        request.max_size = self.record.virtual_size;
        let (format, virtual_size) = import::judge(&self.path, &request)?;
        self.cache.put_file(&self.path)?;
        let image = Image {
            format,
            virtual_size,
            // A kernel beside it was not sent along; the disk boots by itself.
            direct_boot: None,
            ..self.record.clone()
        };
        self.cache.keep(&self.record.digest, image)
    }
}

fn describe(record: &Image) -> String {
    match record.name.is_empty() {
        true => format!("the image sha256:{}", record.digest),
        false => format!("the image {}", record.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(directory: &std::path::Path, byte: u8) -> (Cache, Image) {
        let cache = Cache::open(&directory.join(format!("given{byte}"))).unwrap();
        let content = vec![byte; 1 << 20];
        let image = import::stream(&cache, &content[..], &Request::new("tiny", "test"), |_| {}).unwrap();
        (cache, image)
    }

    #[test]
    fn what_was_interrupted_goes_on_and_is_whole_in_the_end() {
        let place = tempfile::tempdir().unwrap();
        let (_, record) = given(place.path(), 7);
        let content = std::fs::read(&record.path).unwrap();
        let cache = Cache::open(&place.path().join("own")).unwrap();
        let mut first = cache.receive(&record, 1 << 20).unwrap();
        first.write(&content[..300_000]).unwrap();
        // Somebody else waits meanwhile.
        assert!(cache.receive(&record, 1 << 20).is_err());
        // Half of it is not it.
        assert!(first.finish().unwrap_err().to_string().contains("300000 of"));
        assert!(cache.by_digest(&record.digest).unwrap().is_none());
        let mut second = cache.receive(&record, 1 << 20).unwrap();
        assert_eq!(second.have(), 300_000);
        second.write(&content[300_000..]).unwrap();
        assert!(second.write(b"more").is_err());
        let image = second.finish().unwrap();
        assert_eq!(std::fs::read(&image.path).unwrap(), content);
        assert_eq!(cache.by_digest(&record.digest).unwrap().unwrap().path, image.path);
        assert!(cache.images().unwrap().is_empty());
    }

    #[test]
    fn what_is_not_as_promised_is_refused_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (_, record) = given(place.path(), 1);
        let cache = Cache::open(&place.path().join("own")).unwrap();
        for (record, max_size, content, why) in [
            // Other bytes of the same length.
            (record.clone(), 1 << 20, vec![2; 1 << 20], "has the checksum"),
            // A digest is the name of a file.
            (
                Image {
                    digest: "../../etc/passwd".to_owned(),
                    ..record.clone()
                },
                1 << 20,
                vec![],
                "no SHA-256 digest",
            ),
            // The claim is smaller.
            (record.clone(), 1 << 19, vec![], "larger than the limit"),
            // A small disk in a large file.
            (
                Image {
                    size: 1 << 40,
                    ..record
                },
                1 << 20,
                vec![],
                "larger than the limit",
            ),
        ] {
            let refused = cache.receive(&record, max_size).and_then(|mut receiving| {
                receiving.write(&content)?;
                receiving.finish()
            });
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
            let left = |part: &str| std::fs::read_dir(cache.directory().join(part)).unwrap().count();
            assert_eq!((left("blobs"), left("kept")), (0, 0), "{why}");
            assert!(!cache.partial().join(format!("{}.blob", record.digest)).exists());
        }
    }
}
