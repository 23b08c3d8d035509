//! Git repositories in a backup: what each has, as of the moment at which its references were read.
//!
//! ```text
//! repositories/<workspace>/<name>.git/HEAD             the default branch
//! repositories/<workspace>/<name>.git/fairway.json     whose it is
//! repositories/<workspace>/<name>.git/fairway/*.json   pull requests, comments, statuses, history of webhooks
//! repositories/<workspace>/<name>.git/refs             references: HASH NAME, a line each
//! repositories/<workspace>/<name>.git/refs.pack        everything that they lead to, as a Git pack
//! ```
//!
//! Nobody waits. Objects never change, so what the references lead to can be packed while others push. Records come before
//! references: a pull request that is open although its branch was merged is harmless, the reverse is not.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use fairway_gitops_git::{Git, ObjectId, Options, RefName, Repository, Running};
use fairway_kernel_backup::Writer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use crate::data_dir::DataDir;

/// Where they are, in the data directory and in a backup.
pub(crate) const DIRECTORY: &str = "repositories";
/// How long packing or unpacking one may take.
const TIMEOUT: Duration = Duration::from_secs(6 * 3600);
/// The largest file of records.
const MAX_RECORD: u64 = 64 << 20;
/// The most bytes of references.
const MAX_REFS: usize = 256 << 20;

fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")
}

fn git(home: &Path) -> anyhow::Result<Git> {
    Git::new(Options::new(home))
        .context("git cannot be used; repositories cannot be saved or restored without it")
}

/// Directories in the order of the paths in them, without hidden ones.
fn directories(path: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    if !path.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(path).with_context(|| format!("{} could not be read", path.display()))? {
        let entry = entry.with_context(|| format!("{} could not be read", path.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && entry.path().is_dir() {
            found.push((name, entry.path()));
        }
    }
    found.sort_by_key(|(name, _)| format!("{name}/"));
    Ok(found)
}

/// Adds every repository of a data directory; how many there are.
pub(crate) fn add<W: Write>(writer: &mut Writer<W>, data: &DataDir) -> anyhow::Result<u64> {
    let root = data.path().join(DIRECTORY);
    let mut count = 0;
    let mut tools = None;
    for (workspace, directory) in directories(&root)? {
        for (name, path) in directories(&directory)? {
            // Gone, or not made yet.
            if !path.join("fairway.json").exists() {
                continue;
            }
            let (runtime, git) = match &tools {
                Some(tools) => tools,
                None => tools.insert((runtime()?, git(&data.path().join("git-home"))?)),
            };
            let place = format!("{DIRECTORY}/{workspace}/{name}");
            let added = add_one(writer, runtime, git, &place, &path);
            added.with_context(|| format!("the repository in {} could not be saved", path.display()))?;
            count += 1;
        }
    }
    Ok(count)
}

fn add_one<W: Write>(
    writer: &mut Writer<W>,
    runtime: &Runtime,
    git: &Git,
    place: &str,
    path: &Path,
) -> anyhow::Result<()> {
    let repository = Repository::open(git, path)?;
    let head = repository.head()?;
    writer.file(&format!("{place}/HEAD"))?;
    writer.content(head.as_ref().map_or("", RefName::as_str).as_bytes())?;
    add_file(
        writer,
        &format!("{place}/fairway.json"),
        &path.join("fairway.json"),
    )?;
    let mut records: Vec<String> = fs::read_dir(path.join("fairway"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .collect();
    records.sort();
    for record in records {
        add_file(
            writer,
            &format!("{place}/fairway/{record}"),
            &path.join("fairway").join(&record),
        )?;
    }
    let references = runtime.block_on(repository.references(""))?;
    let mut lines = String::new();
    let mut tips = String::new();
    for reference in &references {
        lines.push_str(&format!("{} {}\n", reference.id, reference.name));
        tips.push_str(&format!("{}\n", reference.id));
    }
    writer.file(&format!("{place}/refs"))?;
    writer.content(lines.as_bytes())?;
    if references.is_empty() {
        return Ok(());
    }
    writer.file(&format!("{place}/refs.pack"))?;
    let packed =
        runtime.block_on(async { tokio::time::timeout(TIMEOUT, pack(writer, &repository, tips)).await });
    packed.context("packing took too long")?
}

/// Has git pack everything that these lead to.
async fn pack<W: Write>(writer: &mut Writer<W>, repository: &Repository, tips: String) -> anyhow::Result<()> {
    let mut running = repository
        .command("pack-objects")
        .args([
            "--revs",
            "--stdout",
            "--quiet",
            "--delta-base-offset",
            "--threads=1",
        ])
        .spawn()?;
    let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
    let asking = async {
        if let Some(mut stdin) = stdin {
            // Who stops listening says why on the other stream.
            let _ = stdin.write_all(tips.as_bytes()).await;
        }
        anyhow::Ok(())
    };
    let reading = async {
        let Some(mut stdout) = stdout else { return Ok(()) };
        let mut piece = vec![0; 1 << 20];
        loop {
            match stdout
                .read(&mut piece)
                .await
                .context("git's pack could not be read")?
            {
                0 => return Ok(()),
                count => writer.content(&piece[..count])?,
            }
        }
    };
    let complaining = async { anyhow::Ok(complaint(stderr).await) };
    let ((), (), said) = tokio::try_join!(asking, reading, complaining)?;
    if !running.wait().await? {
        bail!("git could not pack it: {said}");
    }
    Ok(())
}

async fn complaint(stderr: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    let mut said = Vec::new();
    if let Some(stderr) = stderr {
        let _ = stderr.take(16 << 10).read_to_end(&mut said).await;
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

fn add_file<W: Write>(writer: &mut Writer<W>, place: &str, path: &Path) -> anyhow::Result<()> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_RECORD).read_to_end(&mut content));
    read.with_context(|| format!("{} could not be read", path.display()))?;
    writer.file(place)?;
    writer.content(&content)?;
    Ok(())
}

/// Repositories that are being restored, from the parts of a backup.
pub(crate) struct Restoring {
    stage: PathBuf,
    runtime: Runtime,
    git: Git,
    /// The one that its parts belong to.
    current: Option<Current>,
    /// How many there were.
    pub(crate) count: u64,
}

struct Current {
    place: String,
    repository: Repository,
    head: Vec<u8>,
    refs: Vec<u8>,
    part: Option<Incoming>,
}

enum Incoming {
    Head,
    Refs,
    Record(File, PathBuf),
    Pack(Box<Running>),
}

impl Restoring {
    /// Repositories go below this directory.
    pub(crate) fn new(stage: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            stage: stage.to_owned(),
            runtime: runtime()?,
            git: git(&stage.join("git-home"))?,
            current: None,
            count: 0,
        })
    }

    /// A file begins.
    pub(crate) fn file(&mut self, path: &str) -> anyhow::Result<()> {
        self.end_part()?;
        let parts: Vec<&str> = path.splitn(4, '/').collect();
        let [DIRECTORY, workspace, name, part] = parts[..] else {
            bail!("{path:?} is not a file of a repository");
        };
        let place = format!("{DIRECTORY}/{workspace}/{name}");
        if self.current.as_ref().is_none_or(|current| current.place != place) {
            self.end_repository()?;
            if !name.ends_with(".git") || name.starts_with('.') || workspace.starts_with('.') {
                bail!("{place:?} is not the place of a repository");
            }
            let directory = self.stage.join(&place);
            fs::create_dir_all(directory.parent().unwrap_or(&self.stage))
                .with_context(|| format!("{} could not be made", directory.display()))?;
            let repository = self
                .runtime
                .block_on(Repository::init(&self.git, directory, "main"))?;
            self.current = Some(Current {
                place,
                repository,
                head: Vec::new(),
                refs: Vec::new(),
                part: None,
            });
            self.count += 1;
        }
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let directory = current.repository.path().to_owned();
        current.part = Some(match part {
            "HEAD" => Incoming::Head,
            "refs" => Incoming::Refs,
            "refs.pack" => {
                let command = current.repository.command("index-pack");
                let command = command.args(["--stdin", "--threads=1"]);
                // Within the runtime: it waits for the child.
                let _inside = self.runtime.enter();
                Incoming::Pack(Box::new(command.spawn()?))
            }
            "fairway.json" => record(directory.join(part))?,
            _ => match part.strip_prefix("fairway/") {
                Some(name) if !name.contains('/') && name.ends_with(".json") => {
                    fs::create_dir_all(directory.join("fairway"))?;
                    record(directory.join("fairway").join(name))?
                }
                _ => bail!("{path:?} is not a file of a repository"),
            },
        });
        Ok(())
    }

    /// More of it.
    pub(crate) fn content(&mut self, bytes: &Bytes) -> anyhow::Result<()> {
        let Some(current) = &mut self.current else {
            bail!("content has no file");
        };
        match &mut current.part {
            None => bail!("content has no file"),
            Some(Incoming::Head) if current.head.len() + bytes.len() > 4096 => bail!("HEAD is too long"),
            Some(Incoming::Head) => current.head.extend_from_slice(bytes),
            Some(Incoming::Refs) if current.refs.len() + bytes.len() > MAX_REFS => {
                bail!("there are too many references")
            }
            Some(Incoming::Refs) => current.refs.extend_from_slice(bytes),
            Some(Incoming::Record(file, path)) => {
                let written = file.write_all(bytes);
                written.with_context(|| format!("{} could not be written", path.display()))?;
            }
            Some(Incoming::Pack(running)) => {
                let fed = match &mut running.stdin {
                    Some(stdin) => self.runtime.block_on(stdin.write_all(bytes)),
                    None => Ok(()),
                };
                if fed.is_err() {
                    return self.end_part();
                }
            }
        }
        Ok(())
    }

    fn end_part(&mut self) -> anyhow::Result<()> {
        let part = self.current.as_mut().and_then(|current| current.part.take());
        match part {
            None | Some(Incoming::Head | Incoming::Refs) => Ok(()),
            Some(Incoming::Record(file, path)) => file
                .sync_all()
                .with_context(|| format!("{} could not be written", path.display())),
            Some(Incoming::Pack(mut running)) => self.runtime.block_on(async {
                drop(running.stdin.take());
                let stdout = running.stdout.take();
                let hearing = async {
                    let mut sink = Vec::new();
                    if let Some(stdout) = stdout {
                        let _ = stdout.take(4096).read_to_end(&mut sink).await;
                    }
                };
                let (said, ()) = tokio::join!(complaint(running.stderr.take()), hearing);
                match tokio::time::timeout(TIMEOUT, running.wait())
                    .await
                    .context("unpacking took too long")??
                {
                    true => Ok(()),
                    false => bail!("git could not unpack a repository: {said}"),
                }
            }),
        }
    }

    /// Puts the references in place, once everything that they lead to is there.
    fn end_repository(&mut self) -> anyhow::Result<()> {
        self.end_part()?;
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let finish = async {
            let text = std::str::from_utf8(&current.refs).context("its references are not text")?;
            let mut updates = Vec::new();
            for line in text.lines() {
                let (id, name) = line.split_once(' ').context("its references cannot be read")?;
                updates.push((RefName::parse(name)?, ObjectId::parse(id)?));
            }
            let all: Vec<_> = updates.iter().map(|(name, id)| (name, Some(id), None)).collect();
            if !all.is_empty() {
                current.repository.update_references(&all).await?;
                let whole = current
                    .repository
                    .command("rev-list")
                    .args(["--objects", "--all", "--quiet"]);
                whole.timeout(TIMEOUT).output().await?;
            }
            let head = std::str::from_utf8(&current.head).context("its HEAD is not text")?;
            if !head.is_empty() {
                current.repository.set_head(&RefName::parse(head)?).await?;
            }
            anyhow::Ok(())
        };
        let finished = self.runtime.block_on(finish);
        current.repository.close();
        finished.with_context(|| format!("{} could not be restored", current.place))
    }

    /// Ends the last one; how many there were.
    pub(crate) fn finish(mut self) -> anyhow::Result<u64> {
        self.end_repository()?;
        let home = self.stage.join("git-home");
        fs::remove_dir_all(&home).with_context(|| format!("{} could not be removed", home.display()))?;
        Ok(self.count)
    }
}

fn record(path: PathBuf) -> anyhow::Result<Incoming> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let file = file.with_context(|| format!("{} could not be written", path.display()))?;
    Ok(Incoming::Record(file, path))
}
