//! From the server's stream, or the store of a stopped one, to a file.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_backup::{Header, KeyFiles, Part, Reader, Totals, Writer};
use fairway_kernel_store::{EmbeddedStore, Options};

use super::{is_sealed, keys, repositories, snapshot};
use crate::data_dir::DataDir;

/// A server that says nothing for so long has a problem of its own.
const SILENCE: Duration = Duration::from_secs(120);

/// Keys to put in, and their passphrase.
pub(crate) struct Keys {
    /// The files.
    pub files: KeyFiles,
    /// What wraps them.
    pub passphrase: Vec<u8>,
}

/// Where a picture comes from.
pub(crate) enum Source {
    /// The server that runs on the directory.
    Running,
    /// The store itself; nobody else uses it.
    Stopped,
}

/// Takes a picture and writes it to a file that must not exist. Half a file is never left under that name.
pub(crate) fn create(
    data: &DataDir,
    source: &Source,
    path: &Path,
    keys: Option<&Keys>,
) -> anyhow::Result<(Header, Totals, u64)> {
    let (stream, sender) = match source {
        Source::Running => (connect(data)?, None),
        Source::Stopped => {
            let (stream, sender) = read_store(data)?;
            (stream, Some(sender))
        }
    };
    let temporary = Temporary::create(path)?;
    let copied = copy(stream, &temporary.file, data, keys);
    // Why the sender failed says more than that its stream broke off.
    if let Some(sender) = sender {
        sender
            .join()
            .map_err(|_| anyhow!("reading the store ended unexpectedly"))??;
    }
    let made = copied?;
    // A key that was changed meanwhile may be missing, although values need it.
    if let Some(keys) = keys
        && keys::read(data.path())? != keys.files
    {
        bail!("the installation's keys were changed while the backup was made; run the command again");
    }
    temporary.keep(path)?;
    Ok(made)
}

fn connect(data: &DataDir) -> anyhow::Result<UnixStream> {
    let connect = || -> std::io::Result<UnixStream> {
        let mut stream = data.control().with_path(|path| UnixStream::connect(path))?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.write_all(b"backup\n")?;
        Ok(stream)
    };
    connect().with_context(|| {
        format!(
            "the server on {} could not be asked for its state; `fairway status` says whether it runs",
            data.path().display()
        )
    })
}

type Sender = JoinHandle<anyhow::Result<()>>;

/// Opens the store, which locks it, and lets a thread send its picture.
fn read_store(data: &DataDir) -> anyhow::Result<(UnixStream, Sender)> {
    let directory = data.store();
    if !directory.join("store.db").exists() {
        bail!(
            "there is no state in {}; name the data directory with --data DIR",
            data.path().display()
        );
    }
    let (stream, out) = UnixStream::pair().context("no socket could be made")?;
    out.set_nonblocking(true).context("no socket could be made")?;
    let created = Clock.rfc3339();
    let thread = std::thread::Builder::new()
        .name("backup".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("the asynchronous runtime could not be started")?;
            runtime.block_on(async {
                let store = EmbeddedStore::open(&directory, &Options::default())
                    .with_context(|| format!("the state in {} could not be opened", directory.display()))?;
                let mut out = tokio::net::UnixStream::from_std(out).context("no socket could be made")?;
                snapshot::send(&store, created, &mut out).await
            })
        });
    Ok((stream, thread.context("no thread could be started")?))
}

fn copy(
    input: impl Read,
    file: &File,
    data: &DataDir,
    keys: Option<&Keys>,
) -> anyhow::Result<(Header, Totals, u64)> {
    let mut reader = Reader::new(std::io::BufReader::new(input))?;
    let header = reader.header().clone();
    let mut writer = Writer::new(BufWriter::with_capacity(256 * 1024, file), &header)?;
    loop {
        match reader.next_part()? {
            Some(Part::Entry(entry)) => writer.entry(&entry, is_sealed(&entry.key, &entry.value))?,
            Some(Part::End(totals)) => {
                writer.left_out(totals.leased);
                break;
            }
            Some(Part::Keys(_) | Part::File(_) | Part::Content(_)) | None => {
                bail!("the server's answer is not what it should be")
            }
        }
    }
    // After the objects: whoever was told of a repository finds it in the backup with everything that was pushed before.
    let repositories = repositories::add(&mut writer, data)?;
    let (_, totals) = match keys {
        None => writer.finish()?,
        Some(keys) => writer.finish_with_keys(&keys.files, &keys.passphrase, keys::chance()?)?,
    };
    Ok((header, totals, repositories))
}

/// A file that vanishes unless it is kept.
struct Temporary {
    file: File,
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    fn create(beside: &Path) -> anyhow::Result<Self> {
        refuse_existing(beside)?;
        let name = beside
            .file_name()
            .with_context(|| format!("{} is not the name of a file", beside.display()))?;
        let hidden = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let path = beside.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("{} could not be written", path.display()))?;
        Ok(Self {
            file,
            path,
            kept: false,
        })
    }

    /// Makes it durable and gives it its name.
    fn keep(mut self, path: &Path) -> anyhow::Result<()> {
        let failed = || format!("{} could not be written", path.display());
        self.file.sync_all().with_context(failed)?;
        refuse_existing(path)?;
        fs::rename(&self.path, path).with_context(failed)?;
        self.kept = true;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))
            .and_then(|opened| opened.sync_all())
            .with_context(failed)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        bail!(
            "{} exists already; choose another name, a backup is never overwritten",
            path.display()
        );
    }
    Ok(())
}
