//! Objects out of a repository, one question at a time, from a `git cat-file --batch-command` that is kept for the next
//! question. It follows new packs and references by itself, so it may be older than what it is asked for.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::process::end_group;
use crate::reading::Items;
use crate::{GitError, ObjectId, Repository};

/// How long a child is kept for the next question.
const IDLE: Duration = Duration::from_secs(10);
/// How many are kept.
const MAX_IDLE: usize = 4;
/// How many names in directories are kept; each takes some 150 bytes.
const MAX_NAMES: usize = 50_000;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line about an object.
const MAX_LINE: u64 = 8192;

/// An object's kind and content.
#[derive(Debug)]
pub(crate) struct Object {
    pub id: ObjectId,
    pub kind: String,
    /// Its size, also where the content was not asked for.
    pub size: u64,
    pub content: Vec<u8>,
}

/// The answer to a question.
#[derive(Debug)]
pub(crate) enum Answer {
    Found(Object),
    /// Larger than asked for; nothing of it was read.
    TooLarge {
        size: u64,
    },
    Missing,
    Ambiguous,
}

/// A child that answers.
#[derive(Debug)]
struct Batch {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<Patient>,
}

impl Batch {
    fn start(repository: &Repository) -> Result<Self, GitError> {
        let command = repository.command("cat-file").arg("--batch-command");
        let mut child = command.spawn_blocking()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Self {
                child,
                stdin,
                stdout: BufReader::with_capacity(16 << 10, Patient(stdout)),
            }),
            _ => {
                end_group(&mut child);
                Err(nonsense("no pipes"))
            }
        }
    }

    /// What an error leaves behind is of no use: the answer to one question might be taken for that to the next.
    fn ask(&mut self, question: &str, revision: &str, limit: u64) -> Result<Answer, GitError> {
        let broken = || GitError::io("asking git cat-file");
        self.stdin
            .write_all(format!("{question} {revision}\n").as_bytes())
            .map_err(broken())?;
        let mut line = String::new();
        let read = self.stdout.by_ref().take(MAX_LINE).read_line(&mut line);
        if read.map_err(broken())? == 0 || !line.ends_with('\n') {
            return Err(nonsense(&line));
        }
        let line = line.trim_end_matches('\n');
        if line.ends_with(" missing") {
            return Ok(Answer::Missing);
        }
        if line.ends_with(" ambiguous") {
            return Ok(Answer::Ambiguous);
        }
        let mut words = line.split(' ');
        let (Some(id), Some(kind), Some(size), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(nonsense(line));
        };
        let size: u64 = size.parse().map_err(|_| nonsense(line))?;
        let mut content = Vec::new();
        if question == "contents" {
            if size > limit {
                return Ok(Answer::TooLarge { size });
            }
            let room = usize::try_from(size).map_err(|_| nonsense(line))?;
            content.resize(room + 1, 0);
            self.stdout.read_exact(&mut content).map_err(broken())?;
            content.pop();
        }
        Ok(Answer::Found(Object {
            id: ObjectId::parse(id)?,
            kind: kind.to_owned(),
            size,
            content,
        }))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

fn nonsense(said: &str) -> GitError {
    GitError::Nonsense {
        what: "cat-file".to_owned(),
        said: said.chars().take(200).collect(),
    }
}

/// A pipe whose reader does not wait for ever.
#[derive(Debug)]
struct Patient(ChildStdout);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let until = Timespec::try_from(PATIENCE).ok();
        let ready = {
            let mut descriptors = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
            poll(&mut descriptors, until.as_ref())?
        };
        match ready {
            0 => Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("no answer within {PATIENCE:?}"),
            )),
            _ => self.0.read(into),
        }
    }
}

/// Children that wait for the next question.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Arc<Mutex<Idle>>,
}

#[derive(Debug, Default)]
struct Idle {
    batches: Vec<(PathBuf, Instant, Batch)>,
    has_reaper: bool,
    /// Directories that were read, by repository and tree: a repository of thousands of applications has one directory with all
    /// of them, which each of them looks into.
    directories: HashMap<(PathBuf, ObjectId), Items>,
    /// How many names they hold.
    names: usize,
}

impl Idle {
    fn forget_directories(&mut self) {
        self.directories = HashMap::new();
        self.names = 0;
    }
}

impl Pool {
    /// What a revision is; its content at most `limit` bytes. The revision has been judged by the caller: it is one line.
    pub(crate) fn contents(
        &self,
        repository: &Repository,
        revision: &str,
        limit: u64,
    ) -> Result<Answer, GitError> {
        self.ask(repository, "contents", revision, limit)
    }

    /// What a revision is, without its content.
    pub(crate) fn info(&self, repository: &Repository, revision: &str) -> Result<Answer, GitError> {
        self.ask(repository, "info", revision, 0)
    }

    fn ask(
        &self,
        repository: &Repository,
        question: &str,
        revision: &str,
        limit: u64,
    ) -> Result<Answer, GitError> {
        if revision.contains(['\n', '\0']) || revision.len() as u64 > MAX_LINE / 2 {
            return Ok(Answer::Missing);
        }
        let kept = self.take(repository.objects_path());
        let was_kept = kept.is_some();
        let mut batch = match kept {
            Some(batch) => batch,
            None => Batch::start(repository)?,
        };
        let mut answer = batch.ask(question, revision, limit);
        if answer.is_err() && was_kept {
            // It may have died of something that is long past.
            batch = Batch::start(repository)?;
            answer = batch.ask(question, revision, limit);
        }
        if matches!(answer, Ok(Answer::Found(_) | Answer::Missing | Answer::Ambiguous)) {
            self.keep(repository.objects_path(), batch);
        }
        answer
    }

    /// Ends the children of a repository that is about to go.
    pub(crate) fn forget(&self, repository: &Path) {
        let mut idle = lock(&self.idle);
        idle.batches.retain(|(path, _, _)| path != repository);
        idle.forget_directories();
    }

    /// A directory that somebody has read lately.
    pub(crate) fn directory(&self, repository: &Repository, id: &ObjectId) -> Option<Items> {
        let at = (repository.objects_path().to_owned(), id.clone());
        lock(&self.idle).directories.get(&at).cloned()
    }

    /// Keeps a directory for as long as children are kept.
    pub(crate) fn keep_directory(&self, repository: &Repository, id: &ObjectId, items: &Items) {
        let mut idle = lock(&self.idle);
        // Without a reaper nobody would forget it.
        if !idle.has_reaper || items.len() > MAX_NAMES {
            return;
        }
        idle.names += items.len() + 1;
        if idle.names > MAX_NAMES {
            idle.forget_directories();
            idle.names = items.len() + 1;
        }
        let at = (repository.objects_path().to_owned(), id.clone());
        idle.directories.insert(at, Arc::clone(items));
    }

    fn take(&self, repository: &Path) -> Option<Batch> {
        let mut idle = lock(&self.idle);
        let at = idle.batches.iter().rposition(|(path, _, _)| path == repository)?;
        Some(idle.batches.remove(at).2)
    }

    fn keep(&self, repository: &Path, batch: Batch) {
        let mut idle = lock(&self.idle);
        idle.batches
            .push((repository.to_owned(), Instant::now() + IDLE, batch));
        let surplus = (idle.batches.len() > MAX_IDLE).then(|| idle.batches.remove(0));
        let needs_reaper = !std::mem::replace(&mut idle.has_reaper, true);
        drop(idle);
        drop(surplus);
        if needs_reaper {
            let shared = Arc::clone(&self.idle);
            let reaper = std::thread::Builder::new()
                .name("git-idle".to_owned())
                .stack_size(64 << 10)
                .spawn(move || reap(&shared));
            if reaper.is_err() {
                // Nobody would end them later, so now.
                let mut idle = lock(&self.idle);
                idle.has_reaper = false;
                idle.batches.clear();
                idle.forget_directories();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.idle).batches.clear();
    }
}

/// Ends children whose time is up, until there are none.
fn reap(shared: &Mutex<Idle>) {
    loop {
        std::thread::sleep(IDLE / 4);
        let now = Instant::now();
        let mut idle = lock(shared);
        let (over, kept) = std::mem::take(&mut idle.batches)
            .into_iter()
            .partition(|(_, until, _)| *until <= now);
        idle.batches = kept;
        let is_done = idle.batches.is_empty();
        idle.has_reaper = !is_done;
        if is_done {
            idle.forget_directories();
        }
        drop(idle);
        let _: Vec<_> = over;
        if is_done {
            return;
        }
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    // A thread that died while it moved children about has left a usable list.
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
