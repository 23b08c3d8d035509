//! One TCP connection between a guest and the gateway, ended by a `smoltcp` stack of its own.
//!
//! The stack has one socket, one address (the one that the guest speaks to) and no neighbours: frames around its packets
//! are the switch's business. Bytes are copied between the socket's buffers and the other side without a buffer in
//! between, and each side's end is passed on to the other.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fairway_dns::Server;
use fairway_machines_frames::build::{self, Route};
use fairway_machines_frames::packet::{ETHERNET_HEADER, IPV4_HEADER};
use fairway_machines_frames::track::Tuple;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::{FlowEnd, outside};
use crate::state::{PREFIX, Shared};

/// Window in each direction. The way to a guest is short, so this is enough for some gigabits per second.
const WINDOW: usize = 128 * 1024;
/// Packets that are taken before the socket's other side has its turn.
const BURST: usize = 64;

/// Where a guest wants to go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) named: bool,
}

/// Carries a guest's connection to the outside. The outside is asked first: a guest whose destination refuses is refused.
pub(super) async fn to_outside(end: FlowEnd, mut packets: mpsc::Receiver<Vec<u8>>, target: Target) {
    let Some(first) = packets.recv().await else {
        return;
    };
    match outside::connect(target.address, target.port, target.named).await {
        Ok(stream) => {
            let Some(mut stack) = Stack::accepting(&end) else {
                return;
            };
            stack.device.incoming.push_back(first);
            carry(&mut stack, &mut packets, stream).await;
        }
        Err(error) => {
            tracing::debug!(guest = %end.guest, to = %target.address, port = target.port, %error, "refused a guest's connection");
            refuse(&end, &first);
        }
    }
}

/// Answers a guest's questions about names over a stream.
pub(super) async fn to_resolver(
    end: FlowEnd,
    mut packets: mpsc::Receiver<Vec<u8>>,
    names: Arc<Server>,
    workspace: Option<String>,
) {
    let Some(mut stack) = Stack::accepting(&end) else {
        return;
    };
    let (near, far) = tokio::io::duplex(16 * 1024);
    let serving = async move {
        names
            .serve_stream(workspace.as_deref().unwrap_or_default(), far)
            .await;
    };
    tokio::join!(carry(&mut stack, &mut packets, near), serving);
}

fn refuse(end: &FlowEnd, first: &[u8]) {
    let tuple = end.tuple();
    let mut core = end.core().borrow_mut();
    if let Some((_, mac)) = core.switch.place_of(tuple.src) {
        let route = Route::new(core.switch.topology().gateway.mac, mac, tuple.dst, tuple.src);
        let answer = build::reset(route, first.get(IPV4_HEADER..).unwrap_or_default());
        if let Some(answer) = answer {
            core.send_to_guest(tuple.src, &answer);
        }
    }
}

/// The stack of one connection.
pub(super) struct Stack {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    pub(super) device: Wire,
}

impl Stack {
    /// Waits for a guest's SYN.
    fn accepting(end: &FlowEnd) -> Option<Self> {
        let tuple = end.tuple();
        let mut stack = Self::new(end.core(), tuple.dst, tuple.src)?;
        let here = IpEndpoint::new(IpAddress::Ipv4(tuple.dst), tuple.dport);
        stack.socket_mut().listen(here).ok()?;
        Some(stack)
    }

    /// Sends a SYN to a guest.
    pub(super) fn connecting(core: &Shared, tuple: Tuple) -> Option<Self> {
        let mut stack = Self::new(core, tuple.src, tuple.dst)?;
        let there = IpEndpoint::new(IpAddress::Ipv4(tuple.dst), tuple.dport);
        let here = IpEndpoint::new(IpAddress::Ipv4(tuple.src), tuple.sport);
        let socket = stack.sockets.get_mut::<Socket<'_>>(stack.socket);
        socket.connect(stack.interface.context(), there, here).ok()?;
        Some(stack)
    }

    fn new(core: &Shared, own: Ipv4Addr, guest: Ipv4Addr) -> Option<Self> {
        let (mtu, now) = {
            let core = core.borrow();
            (core.switch.topology().gateway.mtu, core.stack_time())
        };
        let mut device = Wire {
            core: Shared::clone(core),
            guest,
            mtu: usize::from(mtu),
            incoming: VecDeque::new(),
            buffer: Vec::new(),
            waker: None,
            is_blocked: false,
        };
        let mut config = Config::new(HardwareAddress::Ip);
        // Sequence numbers begin where nobody can guess.
        config.random_seed = RandomState::new().hash_one(own);
        let mut interface = Interface::new(config, &mut device, now);
        interface.update_ip_addrs(|addresses| {
            // One address is far below the interface's bound.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(own), 32));
        });
        interface.routes_mut().add_default_ipv4_route(guest).ok()?;
        let mut socket = Socket::new(
            SocketBuffer::new(vec![0; WINDOW]),
            SocketBuffer::new(vec![0; WINDOW]),
        );
        socket.set_nagle_enabled(false);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let socket = sockets.add(socket);
        Some(Self {
            interface,
            sockets,
            socket,
            device,
        })
    }

    pub(super) fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Takes what has come, sends what is due.
    fn turn(&mut self, cx: &Context<'_>) {
        self.device.is_blocked = false;
        self.device.waker = Some(cx.waker().clone());
        let now = self.device.core.borrow().stack_time();
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }

    /// When the stack wants its next turn although nothing has come.
    fn next_turn(&mut self) -> Option<Duration> {
        if self.device.is_blocked {
            // The guest's queue wakes the task.
            return None;
        }
        let now = self.device.core.borrow().stack_time();
        let delay = self.interface.poll_delay(now, &self.sockets)?;
        Some(Duration::from_micros(delay.total_micros()))
    }
}

/// Moves queued packets into the stack. `None`: the flow was ended from outside.
fn take_packets(
    stack: &mut Stack,
    packets: &mut mpsc::Receiver<Vec<u8>>,
    cx: &mut Context<'_>,
) -> Option<bool> {
    let mut any = false;
    while stack.device.incoming.len() < BURST {
        match packets.poll_recv(cx) {
            Poll::Ready(Some(packet)) => {
                stack.device.incoming.push_back(packet);
                any = true;
            }
            Poll::Ready(None) => return None,
            Poll::Pending => break,
        }
    }
    Some(any)
}

/// Arms the timer, and says whether it has already struck.
fn is_due(stack: &mut Stack, timer: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> bool {
    match stack.next_turn() {
        Some(delay) => {
            timer.as_mut().reset(tokio::time::Instant::now() + delay);
            timer.as_mut().poll(cx).is_ready()
        }
        None => false,
    }
}

/// Waits until a connection that we opened is there. False: it was refused.
pub(super) async fn established(stack: &mut Stack, packets: &mut mpsc::Receiver<Vec<u8>>) -> bool {
    let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        loop {
            let Some(any) = take_packets(stack, packets, cx) else {
                return Poll::Ready(false);
            };
            stack.turn(cx);
            match stack.socket_mut().state() {
                State::SynSent | State::SynReceived => {}
                State::Closed | State::TimeWait => return Poll::Ready(false),
                _ => return Poll::Ready(true),
            }
            if !any && !is_due(stack, &mut timer, cx) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Copies between the guest and the other side until both are done or one breaks off.
pub(super) async fn carry(
    stack: &mut Stack,
    packets: &mut mpsc::Receiver<Vec<u8>>,
    other: impl AsyncRead + AsyncWrite + Unpin,
) {
    let mut carrying = Carrying {
        other,
        other_is_done: false,
        guest_is_done: false,
        was_open: false,
    };
    let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        loop {
            let Some(mut any) = take_packets(stack, packets, cx) else {
                stack.socket_mut().abort();
                stack.turn(cx);
                return Poll::Ready(());
            };
            stack.turn(cx);
            any |= carrying.move_bytes(stack, cx);
            if any {
                // What was moved may now be sent, and room was made for what is waiting.
                stack.turn(cx);
            }
            if carrying.is_over(stack) {
                return Poll::Ready(());
            }
            if !any && !is_due(stack, &mut timer, cx) {
                return Poll::Pending;
            }
        }
    })
    .await;
}

struct Carrying<S> {
    other: S,
    /// The other side has sent its last byte.
    other_is_done: bool,
    /// The guest has, and the other side knows.
    guest_is_done: bool,
    was_open: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Carrying<S> {
    fn move_bytes(&mut self, stack: &mut Stack, cx: &mut Context<'_>) -> bool {
        let socket = stack.socket_mut();
        self.was_open |= socket.state() != State::Listen;
        let out = self.copy_out(socket, cx);
        let back = self.copy_in(socket, cx);
        out | back
    }

    fn copy_out(&mut self, socket: &mut Socket<'_>, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while socket.can_recv() {
            let other = Pin::new(&mut self.other);
            let written = socket.recv(|data| match other.poll_write(cx, data) {
                Poll::Ready(Ok(written)) => (written, Some(written)),
                Poll::Ready(Err(_)) => (0, None),
                Poll::Pending => (0, Some(0)),
            });
            match written {
                Ok(Some(0)) => return any,
                Ok(Some(_)) => any = true,
                Ok(None) | Err(_) => {
                    socket.abort();
                    return true;
                }
            }
        }
        let has_ended = matches!(
            socket.state(),
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait
        );
        if has_ended && !self.guest_is_done {
            // A side that does not take the end has broken off, which reading shows.
            self.guest_is_done = Pin::new(&mut self.other).poll_shutdown(cx).is_ready();
            any |= self.guest_is_done;
        }
        any
    }

    fn copy_in(&mut self, socket: &mut Socket<'_>, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while !self.other_is_done && socket.can_send() {
            let other = Pin::new(&mut self.other);
            let read = socket.send(|room| {
                let mut buffer = ReadBuf::new(room);
                match other.poll_read(cx, &mut buffer) {
                    Poll::Ready(Ok(())) => (buffer.filled().len(), Some(Some(buffer.filled().len()))),
                    Poll::Ready(Err(_)) => (0, None),
                    Poll::Pending => (0, Some(None)),
                }
            });
            match read {
                Ok(Some(None)) => return any,
                Ok(Some(Some(0))) => {
                    self.other_is_done = true;
                    socket.close();
                    any = true;
                }
                Ok(Some(Some(_))) => any = true,
                Ok(None) | Err(_) => {
                    socket.abort();
                    return true;
                }
            }
        }
        any
    }

    fn is_over(&self, stack: &mut Stack) -> bool {
        match stack.socket_mut().state() {
            State::Closed => true,
            // The last acknowledgement is sent; if it is lost, the guest is told that nobody is there.
            State::TimeWait => self.guest_is_done,
            // What opened the flow was no proper SYN.
            State::Listen => self.was_open || stack.device.incoming.is_empty(),
            _ => false,
        }
    }
}

/// The stack's end of the wire: packets that have come, and the guest's queue for those that go.
pub(super) struct Wire {
    core: Shared,
    guest: Ipv4Addr,
    mtu: usize,
    pub(super) incoming: VecDeque<Vec<u8>>,
    /// Room for one frame, used again and again.
    buffer: Vec<u8>,
    waker: Option<Waker>,
    is_blocked: bool,
}

impl Device for Wire {
    type RxToken<'a> = Packet;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Packet, Sending<'_>)> {
        let packet = self.incoming.pop_front()?;
        Some((Packet(packet), Sending(self)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sending<'_>> {
        if self.core.borrow_mut().must_wait(self.guest, self.waker.as_ref()) {
            self.is_blocked = true;
            return None;
        }
        Some(Sending(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

pub(super) struct Packet(Vec<u8>);

impl RxToken for Packet {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

pub(super) struct Sending<'a>(&'a mut Wire);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        const HEADERS: usize = PREFIX + ETHERNET_HEADER;
        let Wire {
            core, guest, buffer, ..
        } = self.0;
        buffer.resize(HEADERS + length, 0);
        let result = f(&mut buffer[HEADERS..]);
        core.borrow_mut().queue_packet(*guest, buffer);
        result
    }
}
