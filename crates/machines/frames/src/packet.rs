//! One look at a frame: what the switch must know of it to decide, with every length checked once.
//!
//! The hot path reads a frame once and carries a small copyable summary; `smoltcp::wire` is used where a format is read
//! in full (DHCP, ARP) or written. A field that is not summarised here is not believed anywhere.

use std::net::Ipv4Addr;

use crate::address::Mac;
use crate::track::Tuple;

pub const ETHERNET_HEADER: usize = 14;
/// Packets with options are refused, so every header that is let through has this length.
pub const IPV4_HEADER: usize = 20;

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const SCTP: u8 = 132;

/// What a frame carries, by its EtherType.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ipv4,
    Arp,
    /// QEMU announces a machine that has just been migrated by reverse ARP.
    Rarp,
    Ipv6,
    Other(u16),
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    pub dst: Mac,
    pub src: Mac,
    pub kind: Kind,
}

/// Why a frame cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the headers it claims to have.
    Short,
    /// A length field that contradicts the frame, or a version other than 4.
    Header,
    /// Source routes and other options: nobody needs them, and some lead around the rules.
    Options,
}

/// The six bytes at `at`. The caller has checked the length; a frame that is too short reads as zeros.
fn mac_at(frame: &[u8], at: usize) -> Mac {
    let mut mac = [0; 6];
    if let Some(bytes) = frame.get(at..at + 6) {
        mac.copy_from_slice(bytes);
    }
    Mac(mac)
}

fn u16_at(frame: &[u8], at: usize) -> u16 {
    match frame.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

fn address_at(frame: &[u8], at: usize) -> Ipv4Addr {
    match frame.get(at..at + 4) {
        Some(&[a, b, c, d]) => Ipv4Addr::new(a, b, c, d),
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

impl Ethernet {
    pub fn read(frame: &[u8]) -> Result<Self, Malformed> {
        if frame.len() < ETHERNET_HEADER {
            return Err(Malformed::Short);
        }
        Ok(Self {
            dst: mac_at(frame, 0),
            src: mac_at(frame, 6),
            kind: match u16_at(frame, 12) {
                0x0800 => Kind::Ipv4,
                0x0806 => Kind::Arp,
                0x8035 => Kind::Rarp,
                0x86dd => Kind::Ipv6,
                other => Kind::Other(other),
            },
        })
    }
}

/// The flags of a TCP segment that say where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    pub const fn fin(self) -> bool {
        self.0 & 0x01 != 0
    }

    pub const fn syn(self) -> bool {
        self.0 & 0x02 != 0
    }

    pub const fn rst(self) -> bool {
        self.0 & 0x04 != 0
    }

    pub const fn ack(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// The first segment of a connection.
    pub const fn opens(self) -> bool {
        self.syn() && !self.ack() && !self.rst() && !self.fin()
    }
}

/// What an IPv4 packet carries, as far as connections are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp(TcpFlags),
    Udp,
    Sctp,
    /// Asks for an echo.
    EchoRequest,
    EchoReply,
    /// An ICMP message about a packet that the receiver has sent: what that packet was.
    IcmpError(Option<Tuple>),
    /// ICMP of another type.
    Icmp,
    /// A protocol without ports.
    Other,
    /// A piece of a larger packet. Only the first piece has ports, so none is judged by them.
    Fragment,
}

/// An IPv4 packet inside a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub protocol: u8,
    pub transport: Transport,
    /// Zero where the protocol has none; an echo's identifier is the port of the one who asks.
    pub sport: u16,
    pub dport: u16,
    /// Where the packet ends in the frame; what follows is padding.
    pub end: usize,
}

impl Ipv4 {
    /// Reads the packet behind the Ethernet header.
    pub fn read(frame: &[u8]) -> Result<Self, Malformed> {
        let packet = frame.get(ETHERNET_HEADER..).ok_or(Malformed::Short)?;
        let mut read = Self::read_packet(packet)?;
        read.end += ETHERNET_HEADER;
        Ok(read)
    }

    /// Reads a packet that has no Ethernet header before it.
    pub fn read_packet(packet: &[u8]) -> Result<Self, Malformed> {
        if packet.len() < IPV4_HEADER {
            return Err(Malformed::Short);
        }
        if packet[0] >> 4 != 4 {
            return Err(Malformed::Header);
        }
        match packet[0] & 0x0f {
            5 => {}
            6.. => return Err(Malformed::Options),
            _ => return Err(Malformed::Header),
        }
        let end = usize::from(u16_at(packet, 2));
        if end < IPV4_HEADER {
            return Err(Malformed::Header);
        }
        let packet = packet.get(..end).ok_or(Malformed::Short)?;
        let protocol = packet[9];
        let mut read = Self {
            src: address_at(packet, 12),
            dst: address_at(packet, 16),
            protocol,
            transport: Transport::Other,
            sport: 0,
            dport: 0,
            end,
        };
        // More fragments, or an offset; "don't fragment" and the reserved bit do not matter.
        if u16_at(packet, 6) & 0x3fff != 0 {
            read.transport = Transport::Fragment;
            return Ok(read);
        }
        read.read_transport(&packet[IPV4_HEADER..])?;
        Ok(read)
    }

    fn read_transport(&mut self, segment: &[u8]) -> Result<(), Malformed> {
        match self.protocol {
            TCP => {
                if segment.len() < 20 {
                    return Err(Malformed::Short);
                }
                let header = usize::from(segment[12] >> 4) * 4;
                if header < 20 || header > segment.len() {
                    return Err(Malformed::Header);
                }
                self.ports(segment);
                self.transport = Transport::Tcp(TcpFlags(segment[13]));
            }
            UDP => {
                if segment.len() < 8 {
                    return Err(Malformed::Short);
                }
                let length = usize::from(u16_at(segment, 4));
                if length < 8 || length > segment.len() {
                    return Err(Malformed::Header);
                }
                self.ports(segment);
                self.transport = Transport::Udp;
            }
            SCTP => {
                if segment.len() < 12 {
                    return Err(Malformed::Short);
                }
                self.ports(segment);
                self.transport = Transport::Sctp;
            }
            ICMP => {
                if segment.len() < 8 {
                    return Err(Malformed::Short);
                }
                self.transport = match segment[0] {
                    8 => {
                        self.sport = u16_at(segment, 4);
                        Transport::EchoRequest
                    }
                    0 => {
                        self.dport = u16_at(segment, 4);
                        Transport::EchoReply
                    }
                    3 | 11 | 12 => Transport::IcmpError(quoted(&segment[8..])),
                    _ => Transport::Icmp,
                };
            }
            _ => {}
        }
        Ok(())
    }

    fn ports(&mut self, segment: &[u8]) {
        self.sport = u16_at(segment, 0);
        self.dport = u16_at(segment, 2);
    }

    pub fn tuple(&self) -> Tuple {
        Tuple {
            protocol: self.protocol,
            src: self.src,
            dst: self.dst,
            sport: self.sport,
            dport: self.dport,
        }
    }

    /// The bytes after the IPv4 header of a frame that was read.
    pub fn segment<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        frame
            .get(ETHERNET_HEADER + IPV4_HEADER..self.end)
            .unwrap_or_default()
    }
}

/// The connection of a packet that an ICMP error quotes: its header and at least eight bytes.
fn quoted(packet: &[u8]) -> Option<Tuple> {
    if packet.len() < IPV4_HEADER + 8 || packet[0] != 0x45 || u16_at(packet, 6) & 0x3fff != 0 {
        return None;
    }
    let protocol = packet[9];
    let mut tuple = Tuple {
        protocol,
        src: address_at(packet, 12),
        dst: address_at(packet, 16),
        sport: 0,
        dport: 0,
    };
    match protocol {
        TCP | UDP | SCTP => {
            tuple.sport = u16_at(packet, IPV4_HEADER);
            tuple.dport = u16_at(packet, IPV4_HEADER + 2);
        }
        ICMP if packet[IPV4_HEADER] == 8 => tuple.sport = u16_at(packet, IPV4_HEADER + 4),
        ICMP if packet[IPV4_HEADER] == 0 => tuple.dport = u16_at(packet, IPV4_HEADER + 4),
        _ => return None,
    }
    Some(tuple)
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    pub request: bool,
    pub sender_mac: Mac,
    pub sender: Ipv4Addr,
    pub target: Ipv4Addr,
}

impl Arp {
    pub fn read(frame: &[u8]) -> Result<Self, Malformed> {
        let packet = frame.get(ETHERNET_HEADER..).ok_or(Malformed::Short)?;
        if packet.len() < 28 {
            return Err(Malformed::Short);
        }
        // Ethernet, IPv4, and the lengths of their addresses.
        if packet[..6] != [0, 1, 8, 0, 6, 4] {
            return Err(Malformed::Header);
        }
        let request = match u16_at(packet, 6) {
            1 => true,
            2 => false,
            _ => return Err(Malformed::Header),
        };
        Ok(Self {
            request,
            sender_mac: mac_at(packet, 8),
            sender: address_at(packet, 14),
            target: address_at(packet, 24),
        })
    }
}

#[cfg(test)]
mod tests;
