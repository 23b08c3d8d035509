//! The cache of images, opened when it is needed first: a server without machines does not touch it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fairway_machines_image::{Cache, ImageError};

/// Where images are.
#[derive(Debug)]
pub(crate) struct Images {
    directory: PathBuf,
    cache: Mutex<Option<Cache>>,
}

impl Images {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            cache: Mutex::new(None),
        }
    }

    /// The cache. Opening it blocks.
    pub(crate) fn open(&self) -> Result<Cache, ImageError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cache) = cache.as_ref() {
            return Ok(cache.clone());
        }
        let opened = Cache::open(&self.directory)?;
        *cache = Some(opened.clone());
        Ok(opened)
    }

    /// Where the records of named images are.
    pub(crate) fn records(&self) -> PathBuf {
        self.directory.join("images")
    }
}
