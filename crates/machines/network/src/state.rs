//! The state of the switch's thread: what was decided on, who is connected, what waits to be written.
//!
//! Shared as `Rc<RefCell<_>>` between the tasks of one thread, and never borrowed over a wait.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{ErrorKind, IoSlice};
use std::net::Ipv4Addr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use fairway_dns::Server;
use fairway_machines_frames::build;
use fairway_machines_frames::packet::ETHERNET_HEADER;
use fairway_machines_frames::segment::{self, TAG};
use fairway_machines_frames::topology::{SegmentId, Topology};
use fairway_machines_frames::track::{Bounds, Tuple};
use fairway_machines_frames::{PortId, Reason, Switch};
use tokio::sync::Notify;

use crate::gateway::Flow;
use crate::kernel::{Kernel, Place};
use crate::tenants::Tenants;
use crate::wire::Wire;

pub(crate) type Shared = Rc<RefCell<Core>>;

/// The length before each frame.
pub(crate) const PREFIX: usize = 4;
/// The most that QEMU sends or takes as one frame.
pub(crate) const FRAME: usize = 68 * 1024;
/// What waits for a slow guest beyond its socket's own buffer. More is dropped, as a switch does.
const QUEUE: usize = 1024 * 1024;
/// Above this, the gateway's connections wait instead.
const CONGESTED: usize = 256 * 1024;

/// What has passed and what has not, since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    pub frames: u64,
    pub bytes: u64,
    pub forwarded: u64,
    pub answered: u64,
    /// Handed to the gateway's end of a connection.
    pub gateway: u64,
    pub dropped: BTreeMap<Reason, u64>,
    /// Frames for a guest that was too slow, or not connected.
    pub overflowed: u64,
    pub connections: usize,
    pub flows: usize,
    pub connected_ports: usize,
}

/// The writing half of a port.
pub(crate) struct PortState {
    pub(crate) wire: Option<Rc<Wire>>,
    /// Bytes that the socket did not take; `done` of them have been written since.
    queue: Vec<u8>,
    done: usize,
    pub(crate) has_queue: Rc<Notify>,
    waiting: Vec<Waker>,
    pub(crate) task: Option<tokio::task::AbortHandle>,
}

impl PortState {
    fn new() -> Self {
        Self {
            wire: None,
            queue: Vec::new(),
            done: 0,
            has_queue: Rc::new(Notify::new()),
            waiting: Vec::new(),
            task: None,
        }
    }

    fn queued(&self) -> usize {
        self.queue.len() - self.done
    }

    #[cfg(test)]
    pub(crate) fn waiting_bytes(&self) -> &[u8] {
        &self.queue[self.done..]
    }

    fn wake_all(&mut self) {
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Takes a new connection, or none. What was queued for the old one begins in the middle of a frame, perhaps.
    pub(crate) fn reconnect(&mut self, wire: Option<Rc<Wire>>) {
        self.wire = wire;
        self.queue.clear();
        self.done = 0;
        self.wake_all();
    }

    /// Writes pieces that consist of whole frames. Returns whether they were taken.
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> bool {
        let Some(wire) = &self.wire else {
            return false;
        };
        let mut written = 0;
        if self.queued() == 0 {
            written = match wire.try_write_vectored(pieces) {
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                // The reading half sees the end, too, and connects again.
                Err(_) => return false,
            };
        } else if self.queued() > QUEUE {
            return false;
        }
        let mut skip = written;
        for piece in pieces {
            if skip >= piece.len() {
                skip -= piece.len();
            } else {
                self.queue.extend_from_slice(&piece[skip..]);
                skip = 0;
            }
        }
        if self.queued() > 0 {
            self.has_queue.notify_one();
        }
        true
    }

    /// Puts pieces of one frame behind what waits, to be written with it. Returns whether there was room.
    fn enqueue(&mut self, pieces: &[&[u8]]) -> bool {
        if self.wire.is_none() || self.queued() > QUEUE {
            return false;
        }
        for piece in pieces {
            self.queue.extend_from_slice(piece);
        }
        self.has_queue.notify_one();
        true
    }

    /// Writes what waits. `Ok(true)`: nothing is left.
    pub(crate) fn flush(&mut self) -> std::io::Result<bool> {
        let Some(wire) = self.wire.clone() else {
            return Ok(true);
        };
        while self.queued() > 0 {
            match wire.try_write_vectored(&[IoSlice::new(&self.queue[self.done..])]) {
                Ok(written) => self.done += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.queued() == 0 {
            self.queue.clear();
            self.done = 0;
            // A burst must not keep its memory for ever.
            self.queue.shrink_to(CONGESTED);
        } else if self.done > self.queue.len() / 2 {
            self.queue.drain(..self.done);
            self.done = 0;
        }
        if self.queued() < CONGESTED / 2 {
            self.wake_all();
        }
        Ok(self.queued() == 0)
    }
}

/// Everything that the thread knows.
pub(crate) struct Core {
    me: Weak<RefCell<Core>>,
    clock: Instant,
    pub(crate) switch: Switch,
    pub(crate) ports: HashMap<PortId, PortState>,
    pub(crate) flows: HashMap<Tuple, Flow>,
    pub(crate) flows_of: HashMap<Ipv4Addr, usize>,
    pub(crate) next_flow: u64,
    pub(crate) names: Arc<Server>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) counters: Counters,
    pub(crate) flow_bounds: FlowBounds,
    /// Whoever works with devices of the kernel, and the ports that are some.
    pub(crate) kernel: Option<Kernel>,
    pub(crate) devices: HashMap<PortId, Place>,
}

/// How many connections may end at the gateway. Each is a file of the host's, of which the rest of the process needs
/// some, too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowBounds {
    pub(crate) total: usize,
    pub(crate) per_guest: usize,
}

impl FlowBounds {
    /// At most a quarter of the files that the process may open, and of those a quarter for one guest.
    pub(crate) fn of_process() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self::of_files(limit.current)
    }

    fn of_files(files: Option<u64>) -> Self {
        let files = files
            .and_then(|files| usize::try_from(files).ok())
            .unwrap_or(usize::MAX);
        let total = (files / 4).clamp(64, 4096);
        Self {
            total,
            per_guest: total / 4,
        }
    }
}

impl Core {
    pub(crate) fn new(
        topology: Arc<Topology>,
        bounds: Bounds,
        names: Arc<Server>,
        tenants: Arc<Tenants>,
    ) -> Shared {
        let mut switch = Switch::new(topology, bounds);
        let [low, high, ..] = RandomState::new().hash_one("ports").to_ne_bytes();
        switch.speak_from(u16::from_ne_bytes([low, high]));
        Rc::new_cyclic(|me| {
            RefCell::new(Self {
                me: Weak::clone(me),
                clock: Instant::now(),
                switch,
                ports: HashMap::new(),
                flows: HashMap::new(),
                flows_of: HashMap::new(),
                next_flow: 0,
                names,
                tenants,
                counters: Counters::default(),
                flow_bounds: FlowBounds::of_process(),
                kernel: None,
                devices: HashMap::new(),
            })
        })
    }

    /// Has the kernel carry what it can.
    pub(crate) fn work_with(&mut self, kernel: Option<Kernel>) {
        if kernel.is_some() {
            self.switch.offer_connections();
        }
        self.kernel = kernel;
    }

    /// The core itself, for tasks that outlive the borrow. `None` while the thread ends.
    pub(crate) fn shared(&self) -> Option<Shared> {
        self.me.upgrade()
    }

    /// Milliseconds since the switch started.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn stack_time(&self) -> smoltcp::time::Instant {
        smoltcp::time::Instant::from_micros(
            i64::try_from(self.clock.elapsed().as_micros()).unwrap_or(i64::MAX),
        )
    }

    pub(crate) fn port_mut(&mut self, port: PortId) -> &mut PortState {
        self.ports.entry(port).or_insert_with(PortState::new)
    }

    /// Sends pieces of a buffer, `frames` in number, to a port.
    pub(crate) fn send(&mut self, port: PortId, pieces: &[IoSlice<'_>], frames: u64) {
        let taken = self.ports.get_mut(&port).is_some_and(|state| state.send(pieces));
        if !taken {
            self.counters.overflowed += frames;
        }
    }

    /// Queues one frame that the switch made, without its length, for a port. Many answers are then one write.
    pub(crate) fn send_frame(&mut self, port: PortId, frame: &[u8]) {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.enqueue(port, &[&length, frame]);
    }

    /// Queues a frame of a segment for a link. One that would be too large with its tag is lost, as one that is too large for a wire is.
    pub(crate) fn send_tagged(&mut self, link: PortId, frame: &[u8], segment: SegmentId) {
        if frame.len() + TAG > FRAME {
            self.counters.overflowed += 1;
            return;
        }
        self.counters.forwarded += 1;
        self.send_frame(link, &segment::tag(frame, segment));
    }

    fn enqueue(&mut self, port: PortId, pieces: &[&[u8]]) {
        let taken = self
            .ports
            .get_mut(&port)
            .is_some_and(|state| state.enqueue(pieces));
        if !taken {
            self.counters.overflowed += 1;
        }
    }

    /// Sends a frame that the gateway made, to the guest who has this address now.
    pub(crate) fn send_to_guest(&mut self, address: Ipv4Addr, frame: &[u8]) {
        if let Some((port, _)) = self.switch.place_of(address) {
            self.send_frame(port, frame);
        }
    }

    /// Puts an IPv4 packet of the gateway into a guest's queue, to be flushed with others. The buffer has room for the
    /// headers before the packet.
    pub(crate) fn queue_packet(&mut self, address: Ipv4Addr, buffer: &mut [u8]) {
        let Some((port, mac)) = self.switch.place_of(address) else {
            return;
        };
        let gateway = self.switch.topology().gateway.mac;
        let length = u32::try_from(buffer.len() - PREFIX).unwrap_or(u32::MAX);
        buffer[..PREFIX].copy_from_slice(&length.to_be_bytes());
        buffer[PREFIX..PREFIX + ETHERNET_HEADER].copy_from_slice(&build::ethernet(gateway, mac));
        self.enqueue(port, &[buffer]);
    }

    /// Whether the gateway should wait before it sends more to a guest. If so, `waker` is woken when it may go on.
    pub(crate) fn must_wait(&mut self, address: Ipv4Addr, waker: Option<&Waker>) -> bool {
        let Some((port, _)) = self.switch.place_of(address) else {
            return false;
        };
        match self.ports.get_mut(&port) {
            Some(state) if state.queued() > CONGESTED => {
                // Once for each flow, however often it asks.
                if let Some(waker) = waker
                    && !state.waiting.iter().any(|known| known.will_wake(waker))
                {
                    state.waiting.push(waker.clone());
                }
                true
            }
            _ => false,
        }
    }

    pub(crate) fn count_drop(&mut self, reason: Reason) {
        *self.counters.dropped.entry(reason).or_default() += 1;
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            connections: self.switch.connections(),
            flows: self.flows.len(),
            connected_ports: self.ports.values().filter(|port| port.wire.is_some()).count(),
            ..self.counters.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_leave_files_to_the_rest_of_the_process() {
        for (files, total, per_guest) in [
            (Some(1024), 256, 64),
            (Some(100), 64, 16),
            (Some(1_048_576), 4096, 1024),
            (None, 4096, 1024),
        ] {
            let bounds = FlowBounds::of_files(files);
            assert_eq!((bounds.total, bounds.per_guest), (total, per_guest), "{files:?}");
        }
    }
}
