//! The directory of an installation: every file has its name here, and nowhere else.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// An installation's directory.
#[derive(Clone, Debug)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// The given directory, or the default one. It need not exist.
    pub(crate) fn find(given: Option<&Path>) -> anyhow::Result<Self> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => default_dir()?,
        };
        let path = std::path::absolute(&path)
            .with_context(|| format!("the data directory {} is not a usable path", path.display()))?;
        Ok(Self(path))
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, readable only by its owner.
    pub(crate) fn create(&self) -> anyhow::Result<()> {
        for dir in [self.0.clone(), self.0.join("pki"), self.0.join("keys")] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir)
                .with_context(|| format!("the directory {} could not be made", dir.display()))?;
        }
        Ok(())
    }

    /// Optional settings.
    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// The embedded store.
    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// How a node reaches its server.
    pub(crate) fn node_kubeconfig(&self) -> PathBuf {
        self.0.join("node.kubeconfig")
    }

    /// Held by the node that runs here.
    pub(crate) fn node_lock(&self) -> PathBuf {
        self.0.join("node.lock")
    }

    /// Disk images.
    pub(crate) fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    /// Disks and running machines of this host.
    pub(crate) fn machines(&self) -> PathBuf {
        self.0.join("machines")
    }

    /// Git repositories.
    pub(crate) fn repositories(&self) -> PathBuf {
        self.0.join("repositories")
    }

    /// Keys that encrypt what must not lie on disk in the clear.
    pub(crate) fn encryption_keys(&self) -> PathBuf {
        self.0.join("keys/encryption.keys")
    }

    /// The key that signs service-account tokens.
    pub(crate) fn token_key(&self) -> PathBuf {
        self.0.join("keys/service-account.pk8")
    }

    /// Held by whoever works on the certificates.
    pub(crate) fn pki_lock(&self) -> PathBuf {
        self.0.join("pki/lock")
    }

    /// Public keys that signed service-account tokens before.
    pub(crate) fn retired_token_keys(&self) -> PathBuf {
        self.0.join("keys/service-account.retired.json")
    }

    /// Until when tokens of the signing key are valid at most.
    pub(crate) fn token_key_until(&self) -> PathBuf {
        self.0.join("keys/service-account.until.json")
    }

    /// How far the server is with a rotation of the encryption key.
    pub(crate) fn rotation(&self) -> PathBuf {
        self.0.join("keys/rotation.json")
    }

    /// Certificate and key of a name (`ca`, `serving`, `admin`).
    pub(crate) fn pki(&self, name: &str) -> (PathBuf, PathBuf) {
        (
            self.0.join(format!("pki/{name}.crt")),
            self.0.join(format!("pki/{name}.key")),
        )
    }

    /// The audit log.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.0.join("audit.log")
    }

    /// What a detached server prints.
    pub(crate) fn server_log(&self) -> PathBuf {
        self.0.join("fairway.log")
    }

    /// Where other commands talk to the running server.
    pub(crate) fn control(&self) -> ControlSocket<'_> {
        ControlSocket(&self.0)
    }

    /// There while a restore is under way; what is in the directory is then not whole.
    pub(crate) fn unfinished_restore(&self) -> PathBuf {
        self.0.join("restore.unfinished")
    }

    /// What the running server says of itself.
    pub(crate) fn running(&self) -> PathBuf {
        self.0.join("running.json")
    }
}

/// The socket of a running server in its directory.
pub(crate) struct ControlSocket<'a>(&'a Path);

impl ControlSocket<'_> {
    /// Calls `with` with a path of it. A socket's path may have some hundred bytes only, and a data directory may lie deep, so
    /// it is named through the open directory.
    pub(crate) fn with_path<T>(&self, with: impl FnOnce(&Path) -> std::io::Result<T>) -> std::io::Result<T> {
        use std::os::fd::AsRawFd;
        let directory = fs::File::open(self.0)?;
        with(Path::new(&format!(
            "/proc/self/fd/{}/control.sock",
            directory.as_raw_fd()
        )))
    }
}

fn default_dir() -> anyhow::Result<PathBuf> {
    if let Some(share) = std::env::var_os("XDG_DATA_HOME").filter(|v| !v.is_empty()) {
        return Ok(PathBuf::from(share).join("fairway"));
    }
    match std::env::var_os("HOME").filter(|v| !v.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(".local/share/fairway")),
        None => bail!("there is no home directory to keep state in; name a directory with --data DIR"),
    }
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    write_whole(path, content, 0o600).with_context(|| format!("{} could not be written", path.display()))
}

/// Writes a file with a mode, whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let attempt = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(content)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        // The new name must outlive a power cut, too.
        path.parent()
            .filter(|directory| !directory.as_os_str().is_empty())
            .map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
    };
    let written = attempt();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Reads a file, or `None` if it is not there.
pub(crate) fn read_if_there(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} could not be read", path.display())),
    }
}
