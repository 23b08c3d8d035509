//! The DHCP server of the machines' network, as a function from a message to its answer.
//!
//! There is nothing to allocate: a card's address is part of its machine and never changes, so every client is told the
//! same thing each time, and a lease that has run out is not given to anybody else. Only the card's own requests are
//! answered, whatever hardware address they name inside.

use std::net::Ipv4Addr;

use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpOptionWriter, DhcpPacket, EthernetAddress};

use crate::address::Mac;

/// What a guest is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub netmask: Ipv4Addr,
    /// Also the server's own address.
    pub router: Ipv4Addr,
    pub resolvers: Vec<Ipv4Addr>,
    pub mtu: u16,
    pub hostname: String,
    pub domain: String,
    pub search: Vec<String>,
    pub seconds: u32,
    /// What this guest alone is told, by number.
    pub options: Vec<(u8, Vec<u8>)>,
}

/// A message that answers another, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub message: Vec<u8>,
    /// An address that the client can already hear under, or the broadcast address.
    pub to: Ipv4Addr,
}

pub const SERVER_PORT: u16 = 67;
pub const CLIENT_PORT: u16 = 68;

/// BOOTP relays and old clients expect no less.
const LEAST: usize = 300;
/// What a client takes if it does not say how much: 576 bytes less the headers of IPv4 and UDP.
const USUAL: usize = 548;
/// What tells DHCP from BOOTP.
const MAGIC: u32 = 0x6382_5363;
/// Where the options begin.
const MAGIC_END: usize = 240;

const HOSTNAME: u8 = 12;
const DOMAIN: u8 = 15;
const MTU: u8 = 26;
const BROADCAST: u8 = 28;
const REQUESTED: u8 = 50;
const LEASE_TIME: u8 = 51;
const SERVER: u8 = 54;
const MAX_SIZE: u8 = 57;
const RENEWAL: u8 = 58;
const REBINDING: u8 = 59;
const CLIENT_ID: u8 = 61;
const SEARCH: u8 = 119;

/// What a client said, as far as it matters.
struct Request<'a> {
    kind: DhcpMessageType,
    requested: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    room: usize,
    id: Option<&'a [u8]>,
}

/// Answers a message of the card `mac`, whose lease is known. `None`: nothing is to be said.
pub fn answer(message: &[u8], mac: Mac, lease: &Lease) -> Option<Answer> {
    let packet = DhcpPacket::new_checked(message).ok()?;
    let is_request = packet.opcode() == smoltcp::wire::DhcpOpCode::Request && packet.magic_number() == MAGIC;
    if !is_request || packet.client_hardware_address() != EthernetAddress(mac.0) {
        return None;
    }
    // Requests through a relay come from elsewhere, and there is no elsewhere.
    if !packet.relay_agent_ip().is_unspecified() {
        return None;
    }
    let request = read(&packet)?;
    if request.server.is_some_and(|server| server != lease.router) {
        return None;
    }
    let (kind, has_address) = match request.kind {
        DhcpMessageType::Discover => (DhcpMessageType::Offer, false),
        DhcpMessageType::Request => {
            let wanted = request.requested.unwrap_or_else(|| packet.client_ip());
            if wanted == lease.address {
                (DhcpMessageType::Ack, !packet.client_ip().is_unspecified())
            } else {
                (DhcpMessageType::Nak, false)
            }
        }
        DhcpMessageType::Inform => (DhcpMessageType::Ack, true),
        // A released or declined address stays the machine's.
        _ => return None,
    };
    let to = if has_address {
        lease.address
    } else if packet.flags().contains(smoltcp::wire::DhcpFlags::BROADCAST) || kind == DhcpMessageType::Nak {
        Ipv4Addr::BROADCAST
    } else {
        // The frame is addressed to the card, which takes it before it has the address.
        lease.address
    };
    Some(Answer {
        message: write(&packet, &request, kind, lease)?,
        to,
    })
}

fn read<'a>(packet: &'a DhcpPacket<&'a [u8]>) -> Option<Request<'a>> {
    let mut kind = None;
    let mut requested = None;
    let mut server = None;
    let mut room = USUAL;
    let mut id = None;
    for option in packet.options() {
        let address = || <[u8; 4]>::try_from(option.data).ok().map(Ipv4Addr::from);
        match option.kind {
            53 => kind = option.data.first().copied().map(DhcpMessageType::from),
            REQUESTED => requested = address(),
            SERVER => server = address(),
            MAX_SIZE => {
                if let &[high, low] = option.data {
                    // Less the headers of IPv4 and UDP; less than the usual is not allowed.
                    room = usize::from(u16::from_be_bytes([high, low]))
                        .saturating_sub(28)
                        .clamp(USUAL, 1472);
                }
            }
            CLIENT_ID => id = Some(option.data),
            _ => {}
        }
    }
    Some(Request {
        kind: kind?,
        requested,
        server,
        room,
        id,
    })
}

fn write(
    asked: &DhcpPacket<&[u8]>,
    request: &Request<'_>,
    kind: DhcpMessageType,
    lease: &Lease,
) -> Option<Vec<u8>> {
    let is_nak = kind == DhcpMessageType::Nak;
    let is_inform = request.kind == DhcpMessageType::Inform;
    let options = options(request, kind, lease);
    let length = (MAGIC_END + options.len()).max(LEAST);
    let mut message = vec![0; length];
    let mut packet = DhcpPacket::new_unchecked(&mut message);
    packet.set_sname_and_boot_file_to_zero();
    packet.set_opcode(smoltcp::wire::DhcpOpCode::Reply);
    packet.set_hardware_type(smoltcp::wire::ArpHardware::Ethernet);
    packet.set_hardware_len(6);
    packet.set_transaction_id(asked.transaction_id());
    packet.set_client_hardware_address(asked.client_hardware_address());
    packet.set_flags(asked.flags());
    packet.set_relay_agent_ip(Ipv4Addr::UNSPECIFIED);
    packet.set_client_ip(if is_nak {
        Ipv4Addr::UNSPECIFIED
    } else {
        asked.client_ip()
    });
    packet.set_your_ip(if is_nak || is_inform {
        Ipv4Addr::UNSPECIFIED
    } else {
        lease.address
    });
    packet.set_server_ip(Ipv4Addr::UNSPECIFIED);
    packet.set_magic_number(MAGIC);
    message
        .get_mut(MAGIC_END..MAGIC_END + options.len())?
        .copy_from_slice(&options);
    Some(message)
}

/// The options of an answer: those that a client cannot do without first, then as many as it has room for.
fn options(request: &Request<'_>, kind: DhcpMessageType, lease: &Lease) -> Vec<u8> {
    let room = request.room.saturating_sub(MAGIC_END + 1);
    let mut buffer = vec![0; room];
    let mut writer = DhcpOptionWriter::new(&mut buffer);
    let mut used = 0;
    let mut add = |kind: u8, data: &[u8]| {
        if !data.is_empty() && data.len() <= 255 && writer.emit(DhcpOption { kind, data }).is_ok() {
            used += 2 + data.len();
        }
    };
    add(53, &[u8::from(kind)]);
    add(SERVER, &lease.router.octets());
    if let Some(id) = request.id {
        // RFC 6842: whoever says who it is hears it again.
        add(CLIENT_ID, id);
    }
    if kind != DhcpMessageType::Nak {
        if request.kind != DhcpMessageType::Inform {
            add(LEASE_TIME, &lease.seconds.to_be_bytes());
            add(RENEWAL, &(lease.seconds / 2).to_be_bytes());
            add(REBINDING, &(lease.seconds / 8 * 7).to_be_bytes());
        }
        add(1, &lease.netmask.octets());
        add(3, &lease.router.octets());
        let resolvers: Vec<u8> = lease
            .resolvers
            .iter()
            .take(3)
            .flat_map(Ipv4Addr::octets)
            .collect();
        add(6, &resolvers);
        add(MTU, &lease.mtu.to_be_bytes());
        let broadcast = u32::from(lease.address) | !u32::from(lease.netmask);
        add(BROADCAST, &broadcast.to_be_bytes());
        add(HOSTNAME, lease.hostname.as_bytes());
        add(DOMAIN, lease.search.first().unwrap_or(&lease.domain).as_bytes());
        for (kind, data) in &lease.options {
            add(*kind, data);
        }
        add(SEARCH, &search_list(&lease.search));
    }
    buffer.truncate(used);
    buffer.push(255);
    buffer
}

/// Search domains as RFC 3397 writes them. What is too long, or no name, is left out.
fn search_list(domains: &[String]) -> Vec<u8> {
    let mut list = Vec::new();
    for domain in domains {
        let mut name = Vec::new();
        let is_name = domain.trim_end_matches('.').split('.').all(|label| {
            let length = u8::try_from(label.len()).unwrap_or(u8::MAX);
            name.push(length);
            name.extend(label.bytes());
            (1..=63).contains(&length)
        });
        name.push(0);
        if is_name && list.len() + name.len() <= 255 {
            list.extend(name);
        }
    }
    list
}

#[cfg(test)]
mod tests;
