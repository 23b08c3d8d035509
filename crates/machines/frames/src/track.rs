//! Connections, remembered in bounded memory: who opened them, what their packets become, and how long they may rest.
//!
//! A connection is two tuples: `forward`, as the one who opened it sends, and `reply`, as the other one answers. Without
//! translation they mirror each other; with it, a packet of one direction becomes the mirror of the other's tuple.
//!
//! Memory is bounded in total and per guest, so a guest that opens connections without end is refused new ones and
//! hurts nobody else. Old connections are found by a hand that moves over the slots, a few per packet that opens one.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;

use crate::packet::{ICMP, TCP, TcpFlags, Transport};

/// What tells one connection from another, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuple {
    pub protocol: u8,
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub sport: u16,
    pub dport: u16,
}

impl Tuple {
    pub fn reversed(self) -> Self {
        Self {
            protocol: self.protocol,
            src: self.dst,
            dst: self.src,
            sport: self.dport,
            dport: self.sport,
        }
    }
}

impl Hash for Tuple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One write instead of five: this is the dearest step of the hot path.
        let addresses = u128::from(u32::from(self.src)) << 64 | u128::from(u32::from(self.dst)) << 32;
        let ports = u128::from(self.sport) << 16 | u128::from(self.dport);
        state.write_u128(u128::from(self.protocol) << 96 | addresses | ports);
    }
}

/// Where packets of one direction go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    /// An index of the topology of the connection's generation.
    Guest(u32),
    /// The gateway's end of the connection: out of the node, or to the node itself.
    Gateway,
}

/// What opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    Guest(Ipv4Addr),
    /// The node, in the name of `Some` client outside, or of itself.
    Node(Option<Ipv4Addr>),
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// One side has spoken.
    New,
    /// Both have.
    Answered,
    /// A side has said that it is done.
    Closing,
    /// Both have, or one has broken off.
    Closed,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    pub forward: Tuple,
    pub reply: Tuple,
    pub opener: Opener,
    pub to_responder: Hop,
    pub to_opener: Hop,
    /// Where the gateway connects to on the guest's behalf, if the connection ends there.
    pub target: Option<(Ipv4Addr, u16)>,
    /// The topology by which it was allowed; with another one it is judged again.
    pub generation: u64,
    pub stage: Stage,
    /// Which sides have sent a FIN: bit 0 the opener, bit 1 the responder.
    finished: u8,
    last: u64,
    /// How busy each direction is: to the responder, to the opener.
    pace: [Pace; 2],
}

/// How busy a direction of a connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pace {
    packets: u32,
    /// When it was last found busy.
    told: Option<u64>,
}

/// A direction with so many packets is busy.
const BUSY: u32 = 32;
/// Milliseconds after which one that was found busy may be found so again.
const AGAIN: u64 = 5000;

/// Which way a packet goes in its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToResponder,
    ToOpener,
}

/// What is being opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    pub forward: Tuple,
    pub reply: Tuple,
    pub opener: Opener,
    pub to_responder: Hop,
    pub to_opener: Hop,
    pub target: Option<(Ipv4Addr, u16)>,
    pub generation: u64,
}

/// Why a connection is not remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Node,
    Guest,
    /// Another connection has one of the tuples.
    Taken,
}

/// How many connections are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub total: usize,
    pub per_guest: usize,
}

impl Default for Bounds {
    /// Some 20 MiB at most.
    fn default() -> Self {
        Self {
            total: 65_536,
            per_guest: 8_192,
        }
    }
}

/// Milliseconds of silence after which a connection is forgotten.
fn patience(protocol: u8, stage: Stage) -> u64 {
    const SECOND: u64 = 1000;
    match (protocol, stage) {
        (TCP, Stage::New) => 60 * SECOND,
        (TCP, Stage::Answered) => 24 * 3600 * SECOND,
        (TCP, Stage::Closing) => 120 * SECOND,
        (TCP, Stage::Closed) => 10 * SECOND,
        (ICMP, _) => 30 * SECOND,
        (_, Stage::New) => 30 * SECOND,
        _ => 180 * SECOND,
    }
}

/// The memory.
#[derive(Debug)]
pub struct Tracker {
    bounds: Bounds,
    slots: Vec<Option<Connection>>,
    free: Vec<u32>,
    index: HashMap<Tuple, (u32, Direction)>,
    per_guest: HashMap<Ipv4Addr, usize>,
    hand: usize,
}

/// Names a connection until it is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

impl Tracker {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashMap::new(),
            per_guest: HashMap::new(),
            hand: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The connection that a packet with this tuple belongs to, if it has not been silent for too long.
    pub fn find(&mut self, tuple: &Tuple, now: u64) -> Option<(Slot, Direction)> {
        let &(slot, direction) = self.index.get(tuple)?;
        if self.is_over(slot, now) {
            self.forget(Slot(slot));
            return None;
        }
        Some((Slot(slot), direction))
    }

    pub fn get(&self, slot: Slot) -> Option<&Connection> {
        self.slots.get(usize::try_from(slot.0).ok()?)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.slots.get_mut(usize::try_from(slot.0).ok()?)?.as_mut()
    }

    fn is_over(&self, slot: u32, now: u64) -> bool {
        self.get(Slot(slot)).is_some_and(|connection| {
            now.saturating_sub(connection.last) > patience(connection.forward.protocol, connection.stage)
        })
    }

    /// Remembers a new connection.
    pub fn open(&mut self, opening: Opening, now: u64) -> Result<Slot, Full> {
        self.sweep(now, 8);
        if self.index.contains_key(&opening.forward) || self.index.contains_key(&opening.reply) {
            return Err(Full::Taken);
        }
        if let Opener::Guest(address) = opening.opener
            && self
                .per_guest
                .get(&address)
                .is_some_and(|&n| n >= self.bounds.per_guest)
        {
            return Err(Full::Guest);
        }
        if self.len() >= self.bounds.total {
            return Err(Full::Node);
        }
        let connection = Connection {
            forward: opening.forward,
            reply: opening.reply,
            opener: opening.opener,
            to_responder: opening.to_responder,
            to_opener: opening.to_opener,
            target: opening.target,
            generation: opening.generation,
            stage: Stage::New,
            finished: 0,
            last: now,
            pace: [Pace::default(); 2],
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).map_err(|_| Full::Node)?;
                self.slots.push(None);
                slot
            }
        };
        self.slots[slot as usize] = Some(connection);
        self.index.insert(opening.forward, (slot, Direction::ToResponder));
        self.index.insert(opening.reply, (slot, Direction::ToOpener));
        if let Opener::Guest(address) = opening.opener {
            *self.per_guest.entry(address).or_default() += 1;
        }
        Ok(Slot(slot))
    }

    /// Whether a tuple is free for a new connection.
    pub fn is_free(&self, tuple: &Tuple) -> bool {
        !self.index.contains_key(tuple)
    }

    pub fn forget(&mut self, slot: Slot) {
        let Some(connection) = self.slots.get_mut(slot.0 as usize).and_then(Option::take) else {
            return;
        };
        self.index.remove(&connection.forward);
        self.index.remove(&connection.reply);
        self.free.push(slot.0);
        if let Opener::Guest(address) = connection.opener
            && let Some(count) = self.per_guest.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.per_guest.remove(&address);
            }
        }
    }

    /// Looks at `steps` slots and forgets what has been silent for too long.
    pub fn sweep(&mut self, now: u64, steps: usize) {
        for _ in 0..steps.min(self.slots.len()) {
            self.hand = (self.hand + 1) % self.slots.len();
            let Ok(slot) = u32::try_from(self.hand) else {
                return;
            };
            if self.is_over(slot, now) {
                self.forget(Slot(slot));
            }
        }
    }
}

impl Connection {
    /// What a packet of this direction becomes.
    pub fn translated(&self, direction: Direction) -> Tuple {
        match direction {
            Direction::ToResponder => self.reply.reversed(),
            Direction::ToOpener => self.forward.reversed(),
        }
    }

    pub fn hop(&self, direction: Direction) -> Hop {
        match direction {
            Direction::ToResponder => self.to_responder,
            Direction::ToOpener => self.to_opener,
        }
    }

    /// A packet has passed.
    pub fn pass(&mut self, direction: Direction, transport: Transport, now: u64) {
        self.last = now;
        let side = match direction {
            Direction::ToResponder => 1,
            Direction::ToOpener => 2,
        };
        if self.stage == Stage::New && direction == Direction::ToOpener {
            self.stage = Stage::Answered;
        }
        if let Transport::Tcp(flags) = transport {
            self.follow(flags, side);
        }
    }

    /// Counts a packet of a connection that both sides have spoken on and none has ended, and says whether there have been many, now and then.
    pub fn is_busy(&mut self, direction: Direction, now: u64) -> bool {
        if self.stage != Stage::Answered {
            return false;
        }
        let [to_responder, to_opener] = &mut self.pace;
        let pace = match direction {
            Direction::ToResponder => to_responder,
            Direction::ToOpener => to_opener,
        };
        pace.packets = pace.packets.saturating_add(1);
        let is_news = pace.told.is_none_or(|told| now.saturating_sub(told) >= AGAIN);
        if pace.packets < BUSY || !is_news {
            return false;
        }
        *pace = Pace {
            packets: 0,
            told: Some(now),
        };
        true
    }

    fn follow(&mut self, flags: TcpFlags, side: u8) {
        if flags.rst() {
            self.stage = Stage::Closed;
        } else if flags.fin() {
            self.finished |= side;
            self.stage = if self.finished == 3 {
                Stage::Closed
            } else {
                Stage::Closing
            };
        }
    }
}

#[cfg(test)]
mod tests;
