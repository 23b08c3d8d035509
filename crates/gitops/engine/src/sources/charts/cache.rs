//! Charts on disk, by what they are: `blobs/<SHA-256>`, and `refs/<SHA-256 of who asked for what>` with the digest of what that
//! was. Who has no reference to a chart does not get it, although it may be there for somebody else. When there is too much of
//! it, what was used least lately goes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use fairway_gitops_chartrepo::oci::Digest;

/// How many references there may be for each chart before those are looked through that lead nowhere.
const MAX_REFERENCES: usize = 20_000;

/// Charts on disk.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    limit: u64,
}

impl Cache {
    /// A cache in a directory, of at most so many bytes.
    pub(super) fn new(directory: PathBuf, limit: u64) -> Arc<Self> {
        Arc::new(Self { directory, limit })
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.directory.join("blobs").join(digest.digits())
    }

    fn reference(&self, named: &str) -> PathBuf {
        let name = Digest::of(named.as_bytes());
        self.directory.join("refs").join(name.digits())
    }

    /// What was kept under a name.
    pub(super) async fn get(self: &Arc<Self>, named: &str) -> Option<Arc<[u8]>> {
        let (this, named) = (Arc::clone(self), named.to_owned());
        let found = tokio::task::spawn_blocking(move || this.read(&named)).await;
        found.ok().flatten()
    }

    fn read(&self, named: &str) -> Option<Arc<[u8]>> {
        let reference = self.reference(named);
        let digest = Digest::parse(fs::read_to_string(&reference).ok()?.trim()).ok()?;
        let path = self.blob(&digest);
        let bytes = fs::read(&path).ok().filter(|bytes| Digest::of(bytes) == digest);
        let Some(bytes) = bytes else {
            // Gone, or not what it was: both are mended by fetching it again.
            let _ = fs::remove_file(reference);
            let _ = fs::remove_file(path);
            return None;
        };
        if let Ok(file) = fs::File::options().append(true).open(path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(bytes.into())
    }

    /// Keeps something under a name. A disk that is full only costs the next one who asks another download.
    pub(super) async fn put(self: &Arc<Self>, named: &str, bytes: Arc<[u8]>) {
        let (this, named) = (Arc::clone(self), named.to_owned());
        let written = tokio::task::spawn_blocking(move || this.write(&named, &bytes)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, directory = %self.directory.display(), "a chart could not be kept");
        }
    }

    fn write(&self, named: &str, bytes: &[u8]) -> io::Result<()> {
        let digest = Digest::of(bytes);
        for below in ["blobs", "refs"] {
            fs::create_dir_all(self.directory.join(below))?;
        }
        let path = self.blob(&digest);
        if !path.exists() {
            replace(&path, bytes)?;
        }
        replace(&self.reference(named), digest.to_string().as_bytes())?;
        self.sweep(&path)
    }

    /// Forgets what was kept under a name.
    pub(super) async fn forget(self: &Arc<Self>, named: &str) {
        let path = self.reference(named);
        let _ = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
    }

    /// Makes room, but not at the cost of `kept`.
    fn sweep(&self, kept: &Path) -> io::Result<()> {
        let mut blobs = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(self.directory.join("blobs"))? {
            let entry = entry?;
            let found = entry.metadata()?;
            total += found.len();
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            blobs.push((used, found.len(), entry.path()));
        }
        if total > self.limit {
            blobs.sort();
            for (_, size, path) in blobs.iter().filter(|(_, _, path)| path != kept) {
                if total <= self.limit {
                    break;
                }
                fs::remove_file(path)?;
                total = total.saturating_sub(*size);
            }
        }
        let references: Vec<PathBuf> = fs::read_dir(self.directory.join("refs"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        if references.len() > MAX_REFERENCES {
            for path in references {
                let digest = fs::read_to_string(&path).ok();
                let digest = digest.and_then(|text| Digest::parse(text.trim()).ok());
                if digest.is_none_or(|digest| !self.blob(&digest).exists()) {
                    let _ = fs::remove_file(path);
                }
            }
        }
        Ok(())
    }
}

/// Writes a file so that it is there whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let draft = path.with_extension(format!("{}-{number}.new", std::process::id()));
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_found_by_its_name_and_checked() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path().join("charts"), 1 << 20);
        assert_eq!(cache.get("a").await, None);
        cache.put("a", b"one"[..].into()).await;
        cache.put("b", b"one"[..].into()).await;
        assert_eq!(cache.get("a").await.as_deref(), Some(&b"one"[..]));
        assert_eq!(cache.get("c").await, None);
        cache.forget("a").await;
        assert_eq!(cache.get("a").await, None);
        assert_eq!(cache.get("b").await.as_deref(), Some(&b"one"[..]));
        // Somebody meddles with it.
        fs::write(cache.blob(&Digest::of(b"one")), b"two").unwrap();
        assert_eq!(cache.get("b").await, None);
        cache.put("b", b"one"[..].into()).await;
        assert_eq!(cache.get("b").await.as_deref(), Some(&b"one"[..]));
    }

    #[tokio::test]
    async fn what_was_used_least_lately_goes_first() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path().to_owned(), 250);
        let hour = Duration::from_secs(3600);
        for (age, name) in [(3, "a"), (2, "b")] {
            cache.put(name, vec![name.as_bytes()[0]; 100].into()).await;
            let path = cache.blob(&Digest::of(&[name.as_bytes()[0]; 100]));
            let file = fs::File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - age * hour).unwrap();
        }
        assert!(cache.get("a").await.is_some(), "and is now the younger");
        cache.put("c", vec![b'c'; 100].into()).await;
        assert!(cache.get("a").await.is_some() && cache.get("c").await.is_some());
        assert_eq!(cache.get("b").await, None);
        // Larger than the cache: kept until something else comes.
        cache.put("d", vec![b'd'; 1000].into()).await;
        assert!(cache.get("d").await.is_some() && cache.get("a").await.is_none());
    }
}
