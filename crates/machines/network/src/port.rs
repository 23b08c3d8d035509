//! One port: the connection to a QEMU process, by a socket or a device of the kernel, its frames, and connecting again.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fairway_machines_frames::decide::Landing;
use fairway_machines_frames::segment::TAG;
use fairway_machines_frames::{PortId, Verdict};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use tokio::net::UnixStream;

use crate::kernel::{Joined, Kernel};
use crate::state::{Core, FRAME, PREFIX, Shared};
use crate::wire::{Device, Wire};

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
            Err(error) if !is_no_news(&error) => {
                tracing::warn!(port = port.0, path = %path.display(), %error, "cannot connect to a network card; trying again");
            }
            Err(_) => {
                let kernel = core.borrow().kernel.clone();
                if let Some(kernel) = kernel
                    && serve_device(&core, &scratch, port, &kernel, &path).await
                {
                    retry = FIRST_RETRY;
                }
            }
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

/// A machine that is not running has no socket.
fn is_no_news(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

async fn serve(core: &Shared, scratch: &SharedScratch, port: PortId, socket: UnixStream) -> io::Result<()> {
    let wire = Rc::new(Wire::Socket(socket));
    core.borrow_mut().port_mut(port).reconnect(Some(Rc::clone(&wire)));
    let Wire::Socket(socket) = &*wire else {
        return Ok(());
    };
    tokio::select! {
        ended = read_frames(core, scratch, port, socket) => ended,
        ended = write_queue(core, port, &wire) => ended,
    }
}

/// Serves a card that is a device of the kernel, for as long as it is there. Whether it was.
async fn serve_device(
    core: &Shared,
    scratch: &SharedScratch,
    port: PortId,
    kernel: &Kernel,
    path: &Path,
) -> bool {
    let joined = match kernel.join(path).await {
        Ok(Some(joined)) => joined,
        Ok(None) => return false,
        Err(error) => {
            tracing::warn!(port = port.0, path = %path.display(), %error, "cannot connect to a network card's device; trying again");
            return false;
        }
    };
    let Joined { file, place } = joined;
    let device = match Device::new(file) {
        Ok(device) => device,
        Err(error) => {
            tracing::warn!(port = port.0, %error, "a network card's device is not used; trying again");
            return false;
        }
    };
    tracing::debug!(
        port = port.0,
        device = place.device,
        "connected to a network card's device"
    );
    let wire = Rc::new(Wire::Device(device));
    {
        let mut core = core.borrow_mut();
        core.devices.insert(port, place.clone());
        core.port_mut(port).reconnect(Some(Rc::clone(&wire)));
    }
    let Wire::Device(device) = &*wire else {
        return false;
    };
    tokio::select! {
        ended = read_device(core, scratch, port, device) => {
            if let Err(error) = ended {
                tracing::warn!(port = port.0, device = place.device, %error, "lost a network card's device; connecting again");
            }
        }
        _ = write_queue(core, port, &wire) => {}
        () = kernel.until_gone(&place) => {}
    }
    let mut core = core.borrow_mut();
    core.port_mut(port).reconnect(None);
    core.part_device(port);
    true
}

/// Reads what a device has, frame by frame, as if it had come from a socket.
async fn read_device(
    core: &Shared,
    scratch: &SharedScratch,
    port: PortId,
    device: &Device,
) -> io::Result<()> {
    loop {
        device.readable().await?;
        for _ in 0..TURNS {
            let mut scratch = scratch.borrow_mut();
            let Scratch { bytes, runs } = &mut *scratch;
            let mut filled = 0;
            let mut is_empty = false;
            while let Some(room) = bytes.get_mut(filled..filled + PREFIX + FRAME) {
                match device.try_read(&mut room[PREFIX..]) {
                    Ok(0) => return Ok(()),
                    Ok(length) => {
                        let prefix = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
                        room[..PREFIX].copy_from_slice(&prefix);
                        filled += PREFIX + length;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        is_empty = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            batch(&mut core.borrow_mut(), port, &mut bytes[..filled], runs)?;
            if is_empty {
                break;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Writes what other tasks could not.
async fn write_queue(core: &Shared, port: PortId, wire: &Wire) -> io::Result<()> {
    let has_queue = Rc::clone(&core.borrow_mut().port_mut(port).has_queue);
    loop {
        has_queue.notified().await;
        loop {
            wire.writable().await?;
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
                for &link in topology.links_of(segment) {
                    core.send_tagged(link, frame, segment);
                }
            }
            Verdict::Tunnel(link, segment) => core.send_tagged(link, frame, segment),
            Verdict::Landed(landing) => {
                // The length before the frame goes where its tag was.
                let start = start + TAG;
                let shorter = u32::try_from(length - TAG).unwrap_or(u32::MAX);
                bytes[start..start + PREFIX].copy_from_slice(&shorter.to_be_bytes());
                match landing {
                    Landing::Port(to) => push(runs, to, start, end),
                    Landing::All(segment) => {
                        let topology = std::sync::Arc::clone(core.switch.topology());
                        for &to in topology.members(segment) {
                            push(runs, to, start, end);
                        }
                    }
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
    core.pass_on_offers();
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
