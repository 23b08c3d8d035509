//! Remote bases: repositories that a kustomization names by address, brought by `git`.
//!
//! Nothing is fetched unless the user asked for it. `git` fetches one commit without its history into a bare repository
//! in the cache, within a time and a size; its files are then read from there without being checked out, so that no
//! hook, filter or symbolic link of a stranger's repository takes effect.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_gitops_kustomize::{Fetcher, RepositorySpec};
use fairway_gitops_tree::{Limits, Tree, TreeBuilder};
use ring::digest::{SHA256, digest};

/// kustomize's own patience.
const TIMEOUT: Duration = Duration::from_secs(27);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
/// What a repository may take up in the cache.
const MAX_BYTES: u64 = 512 << 20;
const POLL: Duration = Duration::from_millis(20);

/// Fetches repositories into a cache.
pub(in crate::command) struct Remote {
    cache: PathBuf,
    max_bytes: u64,
    /// What this command has fetched already, by address and reference.
    trees: RefCell<Vec<(String, String, Tree)>>,
}

impl Remote {
    /// A cache in this directory.
    pub(in crate::command) fn new(cache: PathBuf) -> Self {
        Self {
            cache,
            max_bytes: MAX_BYTES,
            trees: RefCell::default(),
        }
    }

    /// Where programs of the user keep what they can get again.
    pub(in crate::command) fn default_cache() -> Option<PathBuf> {
        let set = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(base.join("fairway/remote-bases"))
    }

    fn fetch(&self, spec: &RepositorySpec) -> Result<Tree, String> {
        for (what, text) in [("address", &spec.clone_url), ("reference", &spec.reference)] {
            if text.starts_with('-') || text.contains(char::is_control) {
                return Err(format!("the {what} {text:?} is not one that git is given"));
            }
        }
        let name = digest(&SHA256, spec.clone_url.as_bytes());
        let name: String = name
            .as_ref()
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let repository = self.cache.join(name);
        let failed = |error: std::io::Error| format!("preparing {}: {error}", repository.display());
        fs::create_dir_all(&repository).map_err(failed)?;
        // Two commands may want the same repository at the same time.
        let lock = fs::File::create(repository.join("fairway.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let git = Git {
            repository: &repository,
            deadline: Instant::now() + spec.timeout().unwrap_or(TIMEOUT).min(LONGEST_TIMEOUT),
            max_bytes: self.max_bytes,
        };
        if !repository.join("HEAD").exists() {
            git.run(&["init", "--quiet", "--bare", "."])?;
        }
        let commit = git.commit(spec)?;
        let tree = git.tree(&commit)?;
        Ok(tree)
    }
}

impl Fetcher for Remote {
    /// Only repositories are fetched; what is no repository is refused by the build.
    fn file(&self, _: &str) -> Result<Option<Arc<[u8]>>, String> {
        Ok(None)
    }

    fn repository(&self, spec: &RepositorySpec) -> Result<Tree, String> {
        let known = self.trees.borrow().iter().find_map(|(url, reference, tree)| {
            (*url == spec.clone_url && *reference == spec.reference).then(|| tree.clone())
        });
        if let Some(tree) = known {
            return Ok(tree);
        }
        let tree = self.fetch(spec)?;
        let entry = (spec.clone_url.clone(), spec.reference.clone(), tree.clone());
        self.trees.borrow_mut().push(entry);
        Ok(tree)
    }

    fn chart(&self, _: &str, name: &str, _: &str) -> Result<Tree, String> {
        Err(format!(
            "charts are not fetched; put it under charts/{name}, as `helm pull --untar` does"
        ))
    }
}

/// `git` in one repository, until a point in time.
struct Git<'a> {
    repository: &'a Path,
    deadline: Instant,
    max_bytes: u64,
}

impl Git<'_> {
    /// The commit that a reference means now. A full hash that was fetched before is not fetched again.
    fn commit(&self, spec: &RepositorySpec) -> Result<String, String> {
        let reference = match spec.reference.as_str() {
            "" => "HEAD",
            reference => reference,
        };
        let is_hash = reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = format!("{reference}^{{commit}}");
        if is_hash && self.run(&["cat-file", "-e", &known]).is_ok() {
            return Ok(reference.to_owned());
        }
        let fetch = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            &spec.clone_url,
            reference,
        ];
        self.run(&fetch)?;
        let printed = self.run(&["rev-parse", "--verify", "FETCH_HEAD^{commit}"])?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// The files of a commit.
    fn tree(&self, commit: &str) -> Result<Tree, String> {
        let listed = self.run(&["ls-tree", "-r", "-z", "--long", "--full-tree", commit])?;
        let limits = Limits::default();
        let mut wanted = Vec::new();
        let mut total = 0;
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let entry = TreeEntry::parse(line).ok_or("git printed a list of files that is none")?;
            // Another repository's commit: its files are not here.
            if entry.mode == "160000" {
                continue;
            }
            if entry.size > limits.file_bytes {
                continue;
            }
            total += entry.size;
            if total > limits.total_bytes || wanted.len() >= limits.files {
                return Err(format!(
                    "the repository has more than {} files or {} bytes",
                    limits.files, limits.total_bytes
                ));
            }
            wanted.push(entry);
        }
        let mut questions = String::new();
        for entry in &wanted {
            questions.push_str(&entry.object);
            questions.push('\n');
        }
        let answers = self.run_with(&["cat-file", "--batch"], questions.as_bytes())?;
        let mut builder = TreeBuilder::new(limits);
        let mut rest = answers.as_slice();
        for entry in &wanted {
            let content = take_answer(&mut rest, entry.size).ok_or("git printed a file that is none")?;
            let added = match (entry.mode.as_str(), std::str::from_utf8(content)) {
                ("120000", Ok(target)) => builder.link(&entry.path, target),
                _ => builder.file(&entry.path, content),
            };
            added.map_err(|error| error.to_string())?;
        }
        Ok(builder.build())
    }

    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        self.run_with(arguments, b"")
    }

    fn run_with(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        let mut child = Command::new("git")
            // Nothing of the machine's or the user's configuration runs a program here, but a credential helper may.
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "protocol.ext.allow=never",
                "-c",
                "gc.auto=0",
            ])
            .args(arguments)
            .current_dir(self.repository)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("running git: {error}; is it installed?"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let limit = Limits::default().total_bytes * 2;
        let outcome = std::thread::scope(|scope| {
            let reading = scope.spawn(move || drain(stdout, limit));
            let complaining = scope.spawn(move || drain(stderr, 64 << 10));
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            let outcome = self.wait(&mut child);
            let printed = reading.join().unwrap_or_default();
            let complaint = complaining.join().unwrap_or_default();
            outcome.map(|success| (success, printed, complaint))
        });
        let (success, printed, complaint) = outcome?;
        match success {
            true => Ok(printed),
            false => Err(format!(
                "git failed: {}",
                String::from_utf8_lossy(&complaint).trim()
            )),
        }
    }

    /// Waits for git to end; ends it when it takes too long or too much room.
    fn wait(&self, child: &mut Child) -> Result<bool, String> {
        let why = loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) => {}
                Err(error) => break format!("waiting for git: {error}"),
            }
            if Instant::now() > self.deadline {
                break "it takes too long; ?timeout=SECONDS at the address allows more".to_owned();
            }
            if size_of(self.repository) > self.max_bytes {
                break format!(
                    "the repository has more than the limit of {} bytes",
                    self.max_bytes
                );
            }
            std::thread::sleep(POLL);
        };
        let _ = child.kill();
        let _ = child.wait();
        Err(why)
    }
}

fn drain(from: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _ = from.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// What a directory and those below it take up.
fn size_of(directory: &Path) -> u64 {
    let mut total = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => total += found.len(),
                Err(_) => {}
            }
        }
    }
    total
}

/// A line of `git ls-tree --long`.
#[derive(Debug, PartialEq, Eq)]
struct TreeEntry {
    mode: String,
    object: String,
    size: u64,
    path: String,
}

impl TreeEntry {
    /// `MODE KIND OBJECT SIZE<tab>PATH`; a repository in a repository has no size.
    fn parse(line: &[u8]) -> Option<Self> {
        let (head, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
        let mut words = head.split_whitespace();
        let (mode, _, object, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Self {
            mode: mode.to_owned(),
            object: object.to_owned(),
            size: if size == "-" { 0 } else { size.parse().ok()? },
            path: path.to_owned(),
        })
    }
}

/// The next answer of `git cat-file --batch`: a line about it, the content, a line feed.
fn take_answer<'a>(rest: &mut &'a [u8], size: u64) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let size = usize::try_from(size).ok()?;
    let content = rest.get(end + 1..end + 1 + size)?;
    *rest = rest.get(end + 2 + size..)?;
    Some(content)
}

#[cfg(test)]
mod tests;
