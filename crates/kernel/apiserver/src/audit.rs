//! Who did what, as JSON lines in the form of `audit.k8s.io/v1`; how much of it, a [`policy`] says.
//!
//! Requests hand their line to a thread that writes; nobody waits for the disk. The queue is bounded in lines and bytes: if
//! the disk does not keep up, lines are dropped and counted.

pub mod capture;
mod line;
pub mod policy;
pub mod rotation;
pub(crate) mod trail;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fairway_kernel_authz::UserInfo;
use serde_json::Value;

use crate::authn::Peer;
use crate::request::RequestInfo;
use capture::Outcome;
use policy::{Level, Policy, Stage, Verdict};
use rotation::RotatingFile;

/// Bytes of lines that may wait to be written. They are the queue's bound: a queue with a bound of its own sets its places
/// aside at once, a quarter of a megabyte of them.
const QUEUE_BYTES: usize = 32 << 20;
/// Bytes that are written at once.
const BATCH: usize = 64 * 1024;
/// Upstream's limit on what is kept of a client's name for itself.
const MAX_USER_AGENT: usize = 1024;
/// Between two batches of lines.
const PAUSE: Duration = Duration::from_millis(10);

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// What is kept.
    pub policy: Policy,
    /// For how long.
    pub limits: rotation::Limits,
}

impl Options {
    /// Metadata of everything, in this file.
    pub fn standard(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            policy: Policy::standard(),
            limits: rotation::Limits::default(),
        }
    }
}

/// The audit log.
pub struct Audit {
    policy: Policy,
    lines: Option<Sender<Vec<u8>>>,
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
}

/// One request, for the log.
pub struct Entry<'a> {
    /// Id of the request.
    pub id: &'a str,
    /// What was asked.
    pub info: &'a RequestInfo,
    /// The whole URI.
    pub uri: &'a str,
    /// Who asked.
    pub user: Option<&'a UserInfo>,
    /// As whom.
    pub impersonated: Option<&'a UserInfo>,
    /// From where.
    pub peer: &'a Peer,
    /// With what.
    pub user_agent: &'a str,
    /// How much is kept.
    pub level: Level,
    /// How far it has come.
    pub stage: Stage,
    /// How it was answered, once it was.
    pub outcome: Option<&'a Outcome>,
    /// What was sent.
    pub sent: Option<Value>,
    /// When it came in.
    pub received: &'a str,
    /// When it was answered.
    pub answered: &'a str,
    /// Why it was allowed, or not.
    pub decision: Option<(&'static str, &'a str)>,
}

impl Audit {
    /// Keeps no log.
    pub fn off() -> Self {
        Self {
            policy: Policy::default(),
            lines: None,
            waiting: Arc::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends to a file, which only its owner can read.
    pub fn open(options: Options) -> std::io::Result<Self> {
        let sink = match options.path.as_path() {
            path if path == Path::new("-") => Sink::Output,
            path => Sink::File(RotatingFile::open(path, options.limits)?),
        };
        let (lines, queue) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_lines(sink, &queue, &taken))?;
        Ok(Self {
            policy: options.policy,
            lines: Some(lines),
            waiting,
            dropped: AtomicU64::new(0),
        })
    }

    /// What is kept of a request by this user.
    pub fn decide(&self, user: Option<&UserInfo>, info: &RequestInfo) -> Verdict {
        match self.lines {
            None => Verdict::default(),
            Some(_) => self.policy.decide(user, info),
        }
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes an entry, soon.
    pub fn record(&self, entry: &Entry<'_>) {
        let Some(lines) = &self.lines else { return };
        let line = line::write(entry).into_bytes();
        let length = line.len();
        let fits = self.waiting.fetch_add(length, Ordering::Relaxed) + length <= QUEUE_BYTES;
        if !fits || lines.send(line).is_err() {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where lines go.
enum Sink {
    Output,
    File(RotatingFile),
}

impl Sink {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Output => std::io::stdout().lock().write_all(lines),
            Self::File(file) => file.write_lines(lines),
        }
    }
}

fn write_lines(mut sink: Sink, queue: &Receiver<Vec<u8>>, waiting: &AtomicUsize) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Ok(first) = queue.recv() {
        let mut line = Some(first);
        while let Some(next) = line {
            batch.extend_from_slice(&next);
            line = if batch.len() < BATCH {
                queue.try_recv().ok()
            } else {
                None
            };
        }
        if let Err(error) = sink.write(&batch) {
            tracing::error!(%error, "the audit log cannot be written");
        }
        waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        // Under load, waking for every line would cost more than writing it.
        if batch.len() < BATCH {
            std::thread::sleep(PAUSE);
        }
        batch.clear();
    }
}
