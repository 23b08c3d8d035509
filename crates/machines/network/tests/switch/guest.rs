//! A guest without a QEMU: a unix socket that listens as `-netdev stream,server=on` does, and a TCP/IP stack behind it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{dhcpv4, icmp, tcp, udp};
use smoltcp::wire::{
    EthernetAddress, HardwareAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, IpEndpoint,
    IpListenEndpoint,
};

/// The machine is shared and slow: conditions are waited for, never assumed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Guest {
    pub(crate) mac: [u8; 6],
    pub(crate) path: PathBuf,
    listener: UnixListener,
    connection: Option<UnixStream>,
    /// How often the switch has connected.
    pub(crate) connected: usize,
    partial: Vec<u8>,
    unsent: Vec<u8>,
    interface: Interface,
    sockets: SocketSet<'static>,
    card: Card,
    dhcp: Option<SocketHandle>,
    pub(crate) lease: Option<Lease>,
    echoes: Vec<SocketHandle>,
    pings: Vec<(SocketHandle, Ipv4Addr, u16)>,
    last_ping: Instant,
    /// Frames as they came, for tests that look at them.
    pub(crate) seen: Vec<Vec<u8>>,
    clock: Instant,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lease {
    pub(crate) address: Ipv4Addr,
    pub(crate) router: Option<Ipv4Addr>,
    pub(crate) resolvers: Vec<Ipv4Addr>,
}

#[derive(Default)]
struct Card {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

impl Device for Card {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Rx, Tx<'_>)> {
        let frame = self.incoming.pop_front()?;
        Some((Rx(frame), Tx(&mut self.outgoing)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

struct Rx(Vec<u8>);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Tx<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut frame = vec![0; length];
        let result = f(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Guest {
    /// A guest that listens in `directory`; its card's address ends with `number`.
    pub(crate) fn new(directory: &Path, number: u8) -> Self {
        let path = directory.join(format!("guest-{number}.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mac = [2, 0, 0, 0, 0, number];
        let mut card = Card::default();
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(mac)));
        config.random_seed = u64::from(number);
        let interface = Interface::new(config, &mut card, smoltcp::time::Instant::ZERO);
        Self {
            mac,
            path,
            listener,
            connection: None,
            connected: 0,
            partial: Vec::new(),
            unsent: Vec::new(),
            interface,
            sockets: SocketSet::new(Vec::new()),
            card,
            dhcp: None,
            lease: None,
            echoes: Vec::new(),
            pings: Vec::new(),
            last_ping: Instant::now(),
            seen: Vec::new(),
            clock: Instant::now(),
        }
    }

    /// Whether the switch is connected.
    #[allow(dead_code, reason = "for tests of those who drive the switch")]
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Starts to ask for an address.
    pub(crate) fn ask_for_address(&mut self) {
        let mut socket = dhcpv4::Socket::new();
        // A question that comes before the switch knows the card is lost, and ten seconds are long for a test.
        let mut retries = socket.get_retry_config();
        retries.discover_timeout = smoltcp::time::Duration::from_millis(300);
        socket.set_retry_config(retries);
        self.dhcp = Some(self.sockets.add(socket));
    }

    /// Takes an address without asking.
    pub(crate) fn take_address(&mut self, address: Ipv4Addr, router: Ipv4Addr) {
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            addresses.push(IpCidr::new(IpAddress::Ipv4(address), 16)).unwrap();
        });
        self.interface
            .routes_mut()
            .add_default_ipv4_route(router)
            .unwrap();
    }

    /// Leaves this card for another one, as a machine does that migrates: the stack stays as it is.
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.listener, &mut other.listener);
        std::mem::swap(&mut self.path, &mut other.path);
        self.connection = other.connection.take();
        self.connected = other.connected;
        self.partial.clear();
        self.unsent.clear();
    }

    /// Leaves its socket's path to somebody else.
    pub(crate) fn leave(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
        self.listener = UnixListener::bind(self.path.with_extension("elsewhere")).unwrap();
        self.connection = None;
    }

    /// What QEMU sends when a machine has arrived: a reverse ARP with its card's address.
    pub(crate) fn announce(&mut self) {
        let mut frame = vec![0xff; 6];
        frame.extend(self.mac);
        frame.extend([0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
        frame.extend(self.mac);
        frame.extend([0; 4]);
        frame.extend(self.mac);
        frame.resize(60, 0);
        self.send_frame(&frame);
    }

    /// One step: frames in, the stack's turn, frames out.
    pub(crate) fn turn(&mut self) {
        if let Ok((connection, _)) = self.listener.accept() {
            connection.set_nonblocking(true).unwrap();
            // As QEMU does: one connection, and nothing of the old one counts.
            if self.connection.is_none() {
                self.connection = Some(connection);
                self.connected += 1;
                self.partial.clear();
                self.unsent.clear();
            }
        }
        self.receive();
        let now =
            smoltcp::time::Instant::from_micros(i64::try_from(self.clock.elapsed().as_micros()).unwrap());
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        self.follow_dhcp();
        self.echo();
        self.ping_again();
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        for frame in std::mem::take(&mut self.card.outgoing) {
            self.send_frame(&frame);
        }
        self.flush();
    }

    fn receive(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let mut buffer = [0; 65_536];
        loop {
            match connection.read(&mut buffer) {
                Ok(0) => {
                    self.connection = None;
                    return;
                }
                Ok(read) => self.partial.extend(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.connection = None;
                    return;
                }
            }
        }
        while let Some(prefix) = self.partial.first_chunk::<4>() {
            let length = u32::from_be_bytes(*prefix) as usize;
            if self.partial.len() < 4 + length {
                break;
            }
            let frame: Vec<u8> = self.partial.drain(..4 + length).skip(4).collect();
            self.seen.push(frame.clone());
            self.card.incoming.push_back(frame);
        }
    }

    /// Puts any frame on the wire.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        if self.connection.is_some() {
            self.unsent
                .extend(u32::try_from(frame.len()).unwrap().to_be_bytes());
            self.unsent.extend(frame);
        }
    }

    fn flush(&mut self) {
        if let Some(connection) = &mut self.connection {
            while !self.unsent.is_empty() {
                match connection.write(&self.unsent) {
                    Ok(written) => drop(self.unsent.drain(..written)),
                    Err(_) => break,
                }
            }
        }
    }

    fn follow_dhcp(&mut self) {
        let Some(handle) = self.dhcp else {
            return;
        };
        let event = self.sockets.get_mut::<dhcpv4::Socket<'_>>(handle).poll();
        if let Some(dhcpv4::Event::Configured(config)) = event {
            let lease = Lease {
                address: config.address.address(),
                router: config.router,
                resolvers: config.dns_servers.iter().copied().collect(),
            };
            assert_eq!(config.address.prefix_len(), 16);
            self.take_address(lease.address, lease.router.unwrap());
            self.lease = Some(lease);
        }
    }

    /// Serves a few connections at a time on a port, repeating what it hears.
    pub(crate) fn echo_on(&mut self, port: u16) {
        for _ in 0..4 {
            let mut socket = tcp_socket();
            socket.listen(port).unwrap();
            let handle = self.sockets.add(socket);
            self.echoes.push(handle);
        }
    }

    fn echo(&mut self) {
        for &handle in &self.echoes {
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
            let port = socket.listen_endpoint();
            while socket.can_recv() && socket.can_send() {
                let room = socket.send_capacity() - socket.send_queue();
                let heard = socket
                    .recv(|data| {
                        let taken = data.len().min(room);
                        (taken, data[..taken].to_vec())
                    })
                    .unwrap();
                if heard.is_empty() {
                    break;
                }
                assert_eq!(socket.send_slice(&heard).unwrap(), heard.len());
            }
            if socket.state() == tcp::State::CloseWait && socket.recv_queue() == 0 {
                socket.close();
            }
            if matches!(socket.state(), tcp::State::Closed | tcp::State::TimeWait) {
                socket.abort();
                socket.listen(IpListenEndpoint { addr: None, ..port }).unwrap();
            }
        }
    }

    pub(crate) fn connect(&mut self, address: Ipv4Addr, port: u16, own_port: u16) -> SocketHandle {
        let handle = self.sockets.add(tcp_socket());
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        let there = IpEndpoint::new(IpAddress::Ipv4(address), port);
        socket.connect(self.interface.context(), there, own_port).unwrap();
        handle
    }

    pub(crate) fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Everything that a connection has received so far.
    pub(crate) fn heard(&mut self, handle: SocketHandle) -> Vec<u8> {
        let mut all = Vec::new();
        let socket = self.tcp(handle);
        while socket.can_recv() {
            socket
                .recv(|data| {
                    all.extend_from_slice(data);
                    (data.len(), ())
                })
                .unwrap();
        }
        all
    }

    /// Asks for an echo until there is one: an answer may be lost while its sender looks for its neighbour.
    pub(crate) fn ping(&mut self, address: Ipv4Addr, id: u16) -> SocketHandle {
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 512]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(id)).unwrap();
        let handle = self.sockets.add(socket);
        self.pings.push((handle, address, id));
        handle
    }

    fn ping_again(&mut self) {
        if self.last_ping.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.last_ping = Instant::now();
        for &(handle, address, id) in &self.pings {
            let socket = self.sockets.get_mut::<icmp::Socket<'_>>(handle);
            let message = Icmpv4Repr::EchoRequest {
                ident: id,
                seq_no: 1,
                data: b"anybody there?",
            };
            // A queue that is full sends later.
            if !socket.can_recv()
                && let Ok(room) = socket.send(message.buffer_len(), IpAddress::Ipv4(address))
            {
                message.emit(
                    &mut Icmpv4Packet::new_unchecked(room),
                    &smoltcp::phy::ChecksumCapabilities::default(),
                );
            }
        }
    }

    pub(crate) fn has_pong(&mut self, handle: SocketHandle) -> bool {
        self.sockets.get_mut::<icmp::Socket<'_>>(handle).can_recv()
    }

    pub(crate) fn send_datagram(
        &mut self,
        address: Ipv4Addr,
        port: u16,
        own_port: u16,
        payload: &[u8],
    ) -> SocketHandle {
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 16 * 1024]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(own_port).unwrap();
        socket
            .send_slice(payload, IpEndpoint::new(IpAddress::Ipv4(address), port))
            .unwrap();
        self.sockets.add(socket)
    }

    /// Waits for datagrams on a port.
    pub(crate) fn bind_datagrams(&mut self, port: u16) -> SocketHandle {
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 16 * 1024]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(port).unwrap();
        self.sockets.add(socket)
    }

    /// Answers what has come with the same, after some bytes.
    pub(crate) fn answer_datagrams(&mut self, handle: SocketHandle, prefix: &[u8]) {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        while let Ok((payload, from)) = socket.recv() {
            let answer = [prefix, payload].concat();
            socket.send_slice(&answer, from).unwrap();
        }
    }

    pub(crate) fn datagram(&mut self, handle: SocketHandle) -> Option<Vec<u8>> {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        socket.recv().ok().map(|(payload, _)| payload.to_vec())
    }
}

fn tcp_socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; 64 * 1024]);
    tcp::Socket::new(buffer(), buffer())
}

/// Gives the guests their turns until `wanted` says something.
pub(crate) fn until<T>(
    what: &str,
    guests: &mut [&mut Guest],
    mut wanted: impl FnMut(&mut [&mut Guest]) -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        for guest in guests.iter_mut() {
            guest.turn();
        }
        if let Some(found) = wanted(guests) {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
