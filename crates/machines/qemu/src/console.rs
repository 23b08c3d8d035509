//! The serial console of a machine: one connection to QEMU, any number of people who look, one who types.
//!
//! A task reads what the guest prints, keeps the end of it on disk, and hands it to everybody who looks. Whoever comes later
//! sees the end first and then goes on, without a gap and without anything twice. One that is slow misses
//! pieces, and is told so; nobody waits for anybody. QEMU itself writes no log of the console: that would grow for as long as a guest
//! has something to say.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, mpsc, watch};

use crate::ring::Ring;
use crate::{MachineError, failed, names, socket};

/// How much of what the guest printed is kept.
const SCROLLBACK: u64 = 256 << 10;
/// How many pieces wait for somebody slow.
const PIECES: usize = 256;
/// How many pieces of typing wait for the guest.
const TYPED: usize = 64;
/// The number of nobody, when the console is gone.
const GONE: u64 = u64::MAX;
/// How long QEMU may take to be there again, after a connection was lost.
const AGAIN: Duration = Duration::from_millis(200);

/// The console of a machine. Clones are the same one; it is let go with the last of them.
#[derive(Debug, Clone)]
pub struct Console {
    shared: Arc<Shared>,
    _task: Arc<Task>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    typed: mpsc::Sender<(u64, Bytes)>,
    /// The number of whoever may type.
    current: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// Nothing for a console of which nothing is kept.
    ring: Option<Ring>,
    pieces: broadcast::Sender<Bytes>,
    /// Who may type: a number that grows with everyone who is allowed to.
    writer: u64,
    is_taken: bool,
}

impl State {
    fn scrollback(&self) -> Vec<u8> {
        let ring = self.ring.as_ref();
        ring.and_then(|it| it.read().ok()).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Task {
    serving: tokio::task::JoinHandle<()>,
    shared: Arc<Shared>,
}

impl Drop for Task {
    /// The console is gone: whoever still looks or types hears so.
    fn drop(&mut self) {
        self.serving.abort();
        self.shared.current.send_replace(GONE);
    }
}

/// Somebody who looks.
#[derive(Debug)]
pub struct Reader {
    /// What was printed before.
    pub scrollback: Vec<u8>,
    pieces: broadcast::Receiver<Bytes>,
}

impl Reader {
    /// What is printed next; `None` when the console is gone.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.pieces.recv().await {
            Ok(piece) => Some(piece),
            Err(broadcast::error::RecvError::Lagged(count)) => {
                Some(format!("\r\n[{count} pieces of output are missing here]\r\n").into())
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Whoever types.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    number: u64,
}

impl Writer {
    /// Types. False if somebody else has taken over, or the console is gone.
    pub async fn write(&self, bytes: Bytes) -> bool {
        self.is_current() && self.shared.typed.send((self.number, bytes)).await.is_ok()
    }

    /// Waits until somebody else takes over, or the console is gone.
    pub async fn relieved(&self) {
        let mut current = self.shared.current.subscribe();
        // The sender is as old as this.
        let _ = current.wait_for(|number| *number > self.number).await;
    }

    /// Whether nobody has taken over.
    pub fn is_current(&self) -> bool {
        lock(&self.shared).writer == self.number
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        if state.writer == self.number {
            state.is_taken = false;
        }
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, State> {
    // What is in there is consistent after every line.
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Console {
    /// Connects to the console of the machine in a directory. As long as the machine is there the connection is made again
    /// when it breaks.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, MachineError> {
        let directory = directory.into();
        let path = directory.join(names::SCROLLBACK);
        let ring = Ring::open(&path, SCROLLBACK).map_err(failed("opening", &path))?;
        Ok(Self::serving(directory, Some(ring)))
    }

    /// The same, but nothing of what the guest prints is kept: who comes later sees what comes later.
    pub fn open_forgetful(directory: impl Into<PathBuf>) -> Self {
        Self::serving(directory.into(), None)
    }

    fn serving(directory: PathBuf, ring: Option<Ring>) -> Self {
        let (pieces, _) = broadcast::channel(PIECES);
        let (typed, receiver) = mpsc::channel(TYPED);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                ring,
                pieces,
                writer: 0,
                is_taken: false,
            }),
            typed,
            current: watch::Sender::new(0),
        });
        let task = Task {
            serving: tokio::spawn(serve(directory, Arc::clone(&shared), receiver)),
            shared: Arc::clone(&shared),
        };
        Self {
            shared,
            _task: Arc::new(task),
        }
    }

    /// Looks.
    pub fn reader(&self) -> Reader {
        let state = lock(&self.shared);
        Reader {
            scrollback: state.scrollback(),
            pieces: state.pieces.subscribe(),
        }
    }

    /// Types, if nobody else does; with `take_over` even then, and the other can no more.
    pub fn writer(&self, take_over: bool) -> Option<Writer> {
        let mut state = lock(&self.shared);
        if state.is_taken && !take_over {
            return None;
        }
        state.is_taken = true;
        state.writer += 1;
        self.shared.current.send_replace(state.writer);
        Some(Writer {
            shared: Arc::clone(&self.shared),
            number: state.writer,
        })
    }

    /// The end of what was printed.
    pub fn scrollback(&self) -> Vec<u8> {
        lock(&self.shared).scrollback()
    }
}

/// The end of what the console of a machine printed that may have ended by now; nothing if nothing was kept.
pub fn kept(directory: &Path) -> Vec<u8> {
    let path = directory.join(names::SCROLLBACK);
    if !path.exists() {
        return Vec::new();
    }
    Ring::open(&path, SCROLLBACK)
        .and_then(|ring| ring.read())
        .unwrap_or_default()
}

async fn serve(directory: PathBuf, shared: Arc<Shared>, mut typed: mpsc::Receiver<(u64, Bytes)>) {
    loop {
        if let Ok(stream) = socket::dial(&directory, names::SERIAL).await {
            talk(stream, &shared, &mut typed).await;
        }
        if !directory.exists() {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Until the connection breaks.
async fn talk(stream: UnixStream, shared: &Shared, typed: &mut mpsc::Receiver<(u64, Bytes)>) {
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = vec![0; 16 << 10];
    loop {
        tokio::select! {
            count = reader.read(&mut buffer) => match count {
                Ok(count) if count > 0 => {
                    let piece = Bytes::copy_from_slice(&buffer[..count]);
                    let mut state = lock(shared);
                    if let Some(ring) = &mut state.ring
                        && let Err(error) = ring.write(&piece)
                    {
                        tracing::warn!(%error, "the scrollback of a console cannot be written");
                    }
                    let _ = state.pieces.send(piece);
                }
                _ => return,
            },
            Some((number, bytes)) = typed.recv() => {
                // What somebody typed before being relieved is not typed any more.
                let is_current = lock(shared).writer == number;
                if is_current && writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
