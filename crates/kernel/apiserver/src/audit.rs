//! Who did what, as JSON lines in the form of `audit.k8s.io/v1` at level Metadata.
//!
//! Requests hand their line to a thread that writes; nobody waits for the disk. The queue is bounded: if the disk does not
//! keep up, lines are dropped and counted, and the next line that is written says how many.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use fairway_kernel_authz::UserInfo;

use crate::authn::Peer;
use crate::request::RequestInfo;

const QUEUE: usize = 8_192;
/// Between two batches of lines.
const PAUSE: Duration = Duration::from_millis(10);

/// The audit log.
pub struct Audit {
    lines: Option<SyncSender<String>>,
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
    /// The answer's code.
    pub code: u16,
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
            lines: None,
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends to a file, which only its owner can read.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let (lines, queue) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_lines(file, &queue))?;
        Ok(Self {
            lines: Some(lines),
            dropped: AtomicU64::new(0),
        })
    }

    /// Whether anybody will read an entry.
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes an entry, soon.
    pub fn record(&self, entry: &Entry<'_>) {
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(line::write(entry)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(file: File, queue: &Receiver<String>) {
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    while let Ok(line) = queue.recv() {
        let mut line = Some(line);
        while let Some(text) = line {
            if let Err(error) = out.write_all(text.as_bytes()) {
                tracing::error!(%error, "the audit log cannot be written");
            }
            line = queue.try_recv().ok();
        }
        if let Err(error) = out.flush() {
            tracing::error!(%error, "the audit log cannot be written");
        }
        // Under load, waking for every line would cost more than writing it.
        std::thread::sleep(PAUSE);
    }
}
