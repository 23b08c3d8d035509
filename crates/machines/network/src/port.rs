//! One port: the connection to a QEMU process, its frames, and connecting again.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fairway_machines_frames::{PortId, Verdict};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use tokio::net::UnixStream;

use crate::state::{Core, FRAME, PREFIX, Shared};

/// What is read at once. All ports share one such buffer: nothing in it is needed after a batch but half a frame.
const BUFFER: usize = 256 * 1024;
/// How often a port may read before others have their turn.
const TURNS: usize = 4;
/// Pieces that one system call writes.
const PIECES: usize = 64;

const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// The buffers that all ports of the thread share.
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

pub(crate) type SharedScratch = Rc<RefCell<Scratch>>;

impl Scratch {
    pub(crate) fn new() -> SharedScratch {
        Rc::new(RefCell::new(Self {
            bytes: vec![0; BUFFER + FRAME + PREFIX],
            runs: Vec::new(),
        }))
    }
}

/// Neighbouring frames of a batch that go to the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    to: PortId,
    start: usize,
    end: usize,
    frames: u64,
}

/// Keeps a port connected for as long as it exists.
pub(crate) async fn run(core: Shared, scratch: SharedScratch, port: PortId, path: PathBuf) {
    let mut retry = FIRST_RETRY;
    loop {
        match connect(&path).await {
            Ok(socket) => {
                retry = FIRST_RETRY;
                tracing::debug!(port = port.0, path = %path.display(), "connected to a network card");
                if let Err(error) = serve(&core, &scratch, port, socket).await {
                    tracing::warn!(port = port.0, path = %path.display(), %error, "lost a network card; connecting again");
                }
                core.borrow_mut().port_mut(port).reconnect(None);
            }
            Err(error) => log_refusal(port, &path, &error),
        }
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(LAST_RETRY);
    }
}

/// Carries the frames of a link to another switch, for as long as it holds.
pub(crate) async fn run_link(
    core: Shared,
    scratch: SharedScratch,
    port: PortId,
    link: std::os::unix::net::UnixStream,
) {
    let served = match link
        .set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(link))
    {
        Ok(socket) => serve(&core, &scratch, port, socket).await,
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::debug!(port = port.0, %error, "lost the link to another node's switch");
    }
    core.borrow_mut().port_mut(port).reconnect(None);
}

/// Connects to a socket, also to one that lies deeper than a socket's path can say. QEMU can write to the directory, so that what is there
/// is opened and looked at first: frames of a guest are for a socket of its machine, and for no other that a link leads to.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(directory, flags | OFlags::DIRECTORY, Mode::empty())?;
    let socket = openat(&directory, name, flags, Mode::empty())?;
    let (found, owner) = (fstat(&socket)?, fstat(&directory)?.st_uid);
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket || found.st_uid != owner {
        let why = "it is not a socket of its machine";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

/// A machine that is not running has no socket, which is no news.
fn log_refusal(port: PortId, path: &Path, error: &io::Error) {
    if !matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    ) {
        tracing::warn!(port = port.0, path = %path.display(), %error, "cannot connect to a network card; trying again");
    }
}

async fn serve(core: &Shared, scratch: &SharedScratch, port: PortId, socket: UnixStream) -> io::Result<()> {
    let socket = Rc::new(socket);
    core.borrow_mut()
        .port_mut(port)
        .reconnect(Some(Rc::clone(&socket)));
    tokio::select! {
        ended = read_frames(core, scratch, port, &socket) => ended,
        ended = write_queue(core, port, &socket) => ended,
    }
}

/// Writes what other tasks could not.
async fn write_queue(core: &Shared, port: PortId, socket: &UnixStream) -> io::Result<()> {
    let has_queue = Rc::clone(&core.borrow_mut().port_mut(port).has_queue);
    loop {
        has_queue.notified().await;
        loop {
            socket.writable().await?;
            if core.borrow_mut().port_mut(port).flush()? {
                break;
            }
        }
    }
}

async fn read_frames(
    core: &Shared,
    scratch: &SharedScratch,
    port: PortId,
    socket: &UnixStream,
) -> io::Result<()> {
    // The beginning of a frame whose end has not come yet.
    let mut rest: Vec<u8> = Vec::new();
    loop {
        socket.readable().await?;
        for _ in 0..TURNS {
            let mut scratch = scratch.borrow_mut();
            let Scratch { bytes, runs } = &mut *scratch;
            bytes[..rest.len()].copy_from_slice(&rest);
            let room = bytes.len();
            match socket.try_read(&mut bytes[rest.len()..]) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    let filled = rest.len() + read;
                    let used = batch(&mut core.borrow_mut(), port, &mut bytes[..filled], runs)?;
                    rest.clear();
                    rest.extend_from_slice(&bytes[used..filled]);
                    if filled < room {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Decides on every whole frame in `bytes`, sends them on, and says how many bytes they were.
fn batch(core: &mut Core, port: PortId, bytes: &mut [u8], runs: &mut Vec<Run>) -> io::Result<usize> {
    runs.clear();
    let now = core.now();
    let mut at = 0;
    let mut frames = 0;
    while let Some(prefix) = bytes.get(at..).and_then(|rest| rest.first_chunk::<PREFIX>()) {
        let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        if length == 0 || length > FRAME {
            let what = format!("a frame of {length} bytes: this is not the protocol of -netdev stream");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let (start, end) = (at, at + PREFIX + length);
        let Some(frame) = bytes.get_mut(at + PREFIX..end) else {
            break;
        };
        at = end;
        frames += 1;
        match core.switch.decide(port, frame, now) {
            Verdict::Forward(to) => push(runs, to, start, end),
            Verdict::Flood(segment) => {
                let topology = std::sync::Arc::clone(core.switch.topology());
                for &to in topology.members(segment).iter().filter(|&&to| to != port) {
                    push(runs, to, start, end);
                }
            }
            Verdict::Announce => {
                let topology = std::sync::Arc::clone(core.switch.topology());
                for &to in topology.peers() {
                    push(runs, to, start, end);
                }
            }
            Verdict::Answer(answer) => {
                core.counters.answered += 1;
                core.send_frame(port, &answer);
            }
            Verdict::Refuse(answer, reason) => {
                core.count_drop(reason);
                core.send_frame(port, &answer);
            }
            Verdict::Gateway(arrival) => {
                core.counters.gateway += 1;
                core.arrive(&arrival, frame);
            }
            Verdict::Drop(reason) => core.count_drop(reason),
        }
    }
    core.counters.frames += frames;
    core.counters.bytes += at as u64 - frames * PREFIX as u64;
    send_runs(core, bytes, runs);
    // Answers to this port, all at once. An error is seen by the reading half as well.
    let _ = core.port_mut(port).flush();
    Ok(at)
}

fn push(runs: &mut Vec<Run>, to: PortId, start: usize, end: usize) {
    match runs.last_mut() {
        Some(last) if last.to == to && last.end == start => {
            last.end = end;
            last.frames += 1;
        }
        _ => runs.push(Run {
            to,
            start,
            end,
            frames: 1,
        }),
    }
}

/// Writes the batch: what goes to one port with one call, in the order in which it came.
fn send_runs(core: &mut Core, bytes: &[u8], runs: &mut [Run]) {
    runs.sort_by_key(|run| run.to);
    for group in runs.chunk_by(|a, b| a.to == b.to) {
        for pieces in group.chunks(PIECES) {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let mut frames = 0;
            for (slice, run) in slices.iter_mut().zip(pieces) {
                *slice = IoSlice::new(&bytes[run.start..run.end]);
                frames += run.frames;
            }
            core.counters.forwarded += frames;
            core.send(pieces[0].to, &slices[..pieces.len()], frames);
        }
    }
}

#[cfg(test)]
mod tests;
