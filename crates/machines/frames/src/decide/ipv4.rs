//! IPv4 packets of guests: known connections go their way, new ones are resolved, judged and remembered.

use std::net::Ipv4Addr;

use super::{Arrival, GatewayService, Reason, Sender, Switch, Verdict};
use crate::address::Mac;
use crate::build::{self, Route, Unreachable};
use crate::dhcp;
use crate::outside::Judgement;
use crate::packet::{ETHERNET_HEADER, Ipv4, TCP, Transport, UDP};
use crate::policy::Attempt;
use crate::rewrite;
use crate::service::Found;
use crate::topology::{Tenant, Topology};
use crate::track::{Connection, Direction, Hop, Opener, Opening, Slot, Stage, Tuple};

/// Where names are asked.
const DNS: u16 = 53;

/// Where a new connection leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// A guest's address and port.
    Guest(u32, u16),
    Outside {
        address: Ipv4Addr,
        port: u16,
    },
    Resolver,
}

/// Why a new connection leads nowhere, and whether its sender is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: Reason,
    tell: Option<Unreachable>,
}

fn silently(reason: Reason) -> Refused {
    Refused { reason, tell: None }
}

fn loudly(reason: Reason, tell: Unreachable) -> Refused {
    Refused {
        reason,
        tell: Some(tell),
    }
}

impl Switch {
    pub(super) fn ipv4(&mut self, sender: &Sender<'_>, frame: &mut [u8], now: u64) -> Verdict {
        let Ok(packet) = Ipv4::read(frame) else {
            return Verdict::Drop(Reason::Malformed);
        };
        if packet.transport == Transport::Udp
            && (packet.sport, packet.dport) == (dhcp::CLIENT_PORT, dhcp::SERVER_PORT)
        {
            return answer_dhcp(sender, &packet, frame);
        }
        if packet.src != sender.guest.address {
            return Verdict::Drop(Reason::SpoofedAddress);
        }
        match packet.transport {
            Transport::IcmpError(about) => return self.icmp_error(sender, &packet, about, frame, now),
            Transport::Fragment => return self.fragment(sender, &packet, frame),
            // Redirects, router advertisements and the like tell a machine what only the switch may tell.
            Transport::Icmp => return Verdict::Drop(Reason::Unsolicited),
            _ => {}
        }
        if let Some((slot, direction)) = self.tracker.find(&packet.tuple(), now)
            && let Some(verdict) = self.known(sender, &packet, frame, slot, direction, now)
        {
            return verdict;
        }
        match self.fresh(sender, &packet, frame, now) {
            Ok(verdict) => verdict,
            Err(refused) => refuse(sender, &packet, frame, refused),
        }
    }

    /// A packet of a connection that is remembered. `None`: it is over, and the packet opens another one.
    fn known(
        &mut self,
        sender: &Sender<'_>,
        packet: &Ipv4,
        frame: &mut [u8],
        slot: Slot,
        direction: Direction,
        now: u64,
    ) -> Option<Verdict> {
        let topology = sender.topology;
        let connection = self.tracker.get_mut(slot)?;
        let opens_anew = direction == Direction::ToResponder
            && matches!(connection.stage, Stage::Closing | Stage::Closed)
            && matches!(packet.transport, Transport::Tcp(flags) if flags.opens());
        if opens_anew {
            self.tracker.forget(slot);
            return None;
        }
        if connection.generation != topology.generation {
            match judge_again(topology, connection) {
                Ok((to_responder, to_opener)) => {
                    connection.to_responder = to_responder;
                    connection.to_opener = to_opener;
                    connection.generation = topology.generation;
                }
                Err(Again::Elsewhere) => {
                    self.tracker.forget(slot);
                    return None;
                }
                Err(Again::Denied(reason)) => {
                    self.tracker.forget(slot);
                    return Some(Verdict::Drop(reason));
                }
            }
        }
        connection.pass(direction, packet.transport, now);
        let is_busy = self.offers.is_some() && connection.is_busy(direction, now);
        let connection = connection.clone();
        if is_busy {
            self.offer(sender, packet, &connection, direction);
        }
        Some(self.deliver(sender, packet, frame, slot, &connection, direction))
    }

    /// Sends a packet of an allowed connection on its way.
    fn deliver(
        &self,
        sender: &Sender<'_>,
        packet: &Ipv4,
        frame: &mut [u8],
        slot: Slot,
        connection: &Connection,
        direction: Direction,
    ) -> Verdict {
        let topology = sender.topology;
        match connection.hop(direction) {
            Hop::Guest(index) => {
                rewrite::translate(frame, packet.tuple(), connection.translated(direction));
                self.to_guest(topology, index, frame)
            }
            Hop::Gateway => {
                let service = match (connection.opener, connection.target) {
                    (Opener::Node(_), _) => GatewayService::Node,
                    (Opener::Guest(_), None) => GatewayService::Resolver,
                    (Opener::Guest(_), Some((address, port))) => GatewayService::Outside {
                        address,
                        port,
                        named: topology.outside.judge(address, port) == Judgement::Named,
                    },
                };
                Verdict::Gateway(Arrival {
                    slot,
                    tuple: connection.forward,
                    service,
                })
            }
        }
    }

    fn to_guest(&self, topology: &Topology, index: u32, frame: &mut [u8]) -> Verdict {
        let Some(guest) = topology.guest(index) else {
            return Verdict::Drop(Reason::NoSuchAddress);
        };
        let Some(port) = self.port_of(guest) else {
            return Verdict::Drop(Reason::NoPort);
        };
        // What was sent to the gateway comes from the gateway; neighbours speak directly.
        if frame[..6] == topology.gateway.mac.0 {
            frame[6..12].copy_from_slice(&topology.gateway.mac.0);
        }
        frame[..6].copy_from_slice(&guest.mac.0);
        Verdict::Forward(port)
    }

    fn fresh(
        &mut self,
        sender: &Sender<'_>,
        packet: &Ipv4,
        frame: &mut [u8],
        now: u64,
    ) -> Result<Verdict, Refused> {
        let (topology, guest) = (sender.topology, sender.guest);
        if sender.ethernet.dst.is_group() || is_group(topology, packet.dst) {
            return Err(silently(Reason::Broadcast));
        }
        if packet.dst == topology.gateway.address && packet.transport == Transport::EchoRequest {
            let route = Route::new(topology.gateway.mac, guest.mac, packet.dst, packet.src);
            return Ok(Verdict::Answer(build::echo_reply(route, packet.segment(frame))));
        }
        if packet.transport == Transport::EchoReply {
            return Err(silently(Reason::Unsolicited));
        }
        let tuple = packet.tuple();
        let destination = resolve(topology, guest.tenant, &tuple)?;
        self.must_open_or_be_picked_up(topology, packet, destination)?;
        let (end, port, hop, target) = match destination {
            Destination::Guest(index, port) => {
                let there = topology.guest(index).ok_or(silently(Reason::NoSuchAddress))?;
                (there.address, port, Hop::Guest(index), None)
            }
            Destination::Outside { address, port } => (address, port, Hop::Gateway, Some((address, port))),
            Destination::Resolver => (packet.dst, packet.dport, Hop::Gateway, None),
        };
        if destination != Destination::Resolver {
            let attempt = Attempt {
                from: guest.address,
                to: end,
                protocol: packet.protocol,
                port,
            };
            judge(topology, Some(sender.index), hop, &attempt).map_err(|reason| match reason {
                Reason::ClosedPort => loudly(reason, Unreachable::Port),
                _ => silently(reason),
            })?;
        }
        let reply = match destination {
            Destination::Guest(..) => self.reply_tuple(topology, &tuple, end, port)?,
            _ => tuple.reversed(),
        };
        let opening = Opening {
            forward: tuple,
            reply,
            opener: Opener::Guest(guest.address),
            to_responder: hop,
            to_opener: Hop::Guest(sender.index),
            target,
            generation: topology.generation,
        };
        let slot = self
            .tracker
            .open(opening, now)
            .map_err(|_| silently(Reason::Full))?;
        let Some(connection) = self.tracker.get_mut(slot) else {
            return Err(silently(Reason::Full));
        };
        connection.pass(Direction::ToResponder, packet.transport, now);
        let connection = connection.clone();
        Ok(self.deliver(sender, packet, frame, slot, &connection, Direction::ToResponder))
    }

    /// A TCP segment that opens nothing belongs to a connection that the switch has forgotten, most likely because it was
    /// restarted. Between guests it is taken up again; the policies judge it like a new one. The gateway's end of a
    /// connection is lost for good, and the guest is told.
    fn must_open_or_be_picked_up(
        &self,
        topology: &Topology,
        packet: &Ipv4,
        destination: Destination,
    ) -> Result<(), Refused> {
        let Transport::Tcp(flags) = packet.transport else {
            return Ok(());
        };
        if flags.opens() {
            return Ok(());
        }
        if flags.syn() || flags.rst() {
            return Err(silently(Reason::Unsolicited));
        }
        match destination {
            Destination::Guest(..) if packet.dst != topology.gateway.address => {
                // Perhaps the answering half of a connection to a Service: untranslated it would be refused by the
                // client and broken off. The client's next packet brings the connection back.
                if topology.services.is_behind_one(packet.src, TCP, packet.sport) {
                    return Err(silently(Reason::Unsolicited));
                }
                Ok(())
            }
            _ => Err(loudly(Reason::Unsolicited, Unreachable::Port)),
        }
    }

    /// What the other side's answers will look like. A machine that reaches itself through a Service hears the gateway
    /// instead of itself, or it would not know the answer.
    fn reply_tuple(
        &self,
        topology: &Topology,
        tuple: &Tuple,
        end: Ipv4Addr,
        port: u16,
    ) -> Result<Tuple, Refused> {
        let reply = Tuple {
            protocol: tuple.protocol,
            src: end,
            sport: port,
            dst: if end == tuple.src {
                topology.gateway.address
            } else {
                tuple.src
            },
            dport: tuple.sport,
        };
        let is_usable = |reply: &Tuple| self.tracker.is_free(reply) && reply != tuple;
        if reply == tuple.reversed() && self.tracker.is_free(&reply) {
            return Ok(reply);
        }
        if !rewrite::is_possible(tuple.protocol) {
            let is_plain = reply == tuple.reversed();
            let reason = if is_plain {
                Reason::Full
            } else {
                Reason::Untranslatable
            };
            return Err(silently(reason));
        }
        // Another connection of the guest may already use this port towards the same backend.
        (0..32_u16)
            .map(|step| Tuple {
                dport: if step == 0 {
                    reply.dport
                } else {
                    1024 + (reply.dport.wrapping_add(step.wrapping_mul(2017)) % 64_000)
                },
                ..reply
            })
            .find(is_usable)
            .ok_or(silently(Reason::Full))
    }

    /// Errors are let through if they are about a connection that the sender is part of, and nothing was translated.
    fn icmp_error(
        &mut self,
        sender: &Sender<'_>,
        packet: &Ipv4,
        about: Option<Tuple>,
        frame: &mut [u8],
        now: u64,
    ) -> Verdict {
        let Some(received) = about.filter(|about| about.dst == packet.src && about.src == packet.dst) else {
            return Verdict::Drop(Reason::Unsolicited);
        };
        let Some((slot, direction)) = self.tracker.find(&received.reversed(), now) else {
            return Verdict::Drop(Reason::Unsolicited);
        };
        match self.tracker.get(slot) {
            Some(connection) if connection.forward != connection.reply.reversed() => {
                Verdict::Drop(Reason::Untranslatable)
            }
            Some(connection) if connection.generation == sender.topology.generation => {
                match connection.hop(direction) {
                    Hop::Guest(index) => self.to_guest(sender.topology, index, frame),
                    Hop::Gateway => Verdict::Drop(Reason::Unsolicited),
                }
            }
            _ => Verdict::Drop(Reason::Unsolicited),
        }
    }

    /// Pieces have no ports to be judged by: they pass between machines that no policy selects, and nowhere else.
    fn fragment(&self, sender: &Sender<'_>, packet: &Ipv4, frame: &mut [u8]) -> Verdict {
        let topology = sender.topology;
        let Some((index, there)) = topology.guest_at(packet.dst) else {
            return Verdict::Drop(Reason::Fragment);
        };
        if there.tenant != sender.guest.tenant {
            return Verdict::Drop(Reason::Tenant);
        }
        let is_free = topology.policy(sender.index).is_none()
            && topology.policy(index).is_none()
            && there.accepts.is_none();
        if !is_free || sender.ethernet.dst.is_group() {
            return Verdict::Drop(Reason::Fragment);
        }
        self.to_guest(topology, index, frame)
    }
}

fn is_group(topology: &Topology, address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast() || address == topology.gateway.network.broadcast()
}

/// Where a new connection of a tenant's machine leads.
fn resolve(topology: &Topology, tenant: Tenant, tuple: &Tuple) -> Result<Destination, Refused> {
    let gateway = &topology.gateway;
    let (address, port) = match topology.services.find(tenant, tuple) {
        Found::Backend(backend) => (backend.address, backend.port),
        Found::NoService => (tuple.dst, tuple.dport),
        Found::Nobody if tuple.dst == gateway.address => (tuple.dst, tuple.dport),
        Found::Nobody => return Err(loudly(Reason::NoService, Unreachable::Port)),
    };
    if address == gateway.address {
        return if port == DNS && matches!(tuple.protocol, TCP | UDP) && tuple.dst == gateway.address {
            Ok(Destination::Resolver)
        } else {
            Err(loudly(Reason::NoService, Unreachable::Port))
        };
    }
    if let Some((index, guest)) = topology.guest_at(address) {
        // Whoever writes endpoints writes any address into them: this is judged after Services, not before.
        return if guest.tenant == tenant {
            Ok(Destination::Guest(index, port))
        } else {
            Err(silently(Reason::Tenant))
        };
    }
    if gateway.network.contains(address) || gateway.services.contains(address) {
        return Err(loudly(Reason::NoSuchAddress, Unreachable::Prohibited));
    }
    if !rewrite::is_possible(tuple.protocol) {
        return Err(loudly(Reason::Untranslatable, Unreachable::Prohibited));
    }
    match topology.outside.judge(address, port) {
        Judgement::Named | Judgement::UnlessOwn => Ok(Destination::Outside { address, port }),
        Judgement::Refused(refusal) => Err(loudly(Reason::Outside(refusal), Unreachable::Prohibited)),
    }
}

/// What policies say. A machine always reaches itself.
pub(super) fn judge(
    topology: &Topology,
    from: Option<u32>,
    to: Hop,
    attempt: &Attempt,
) -> Result<(), Reason> {
    if attempt.from == attempt.to {
        return Ok(());
    }
    if let Some(policy) = from.and_then(|index| topology.policy(index))
        && !policy.lets_out(attempt)
    {
        return Err(Reason::Egress);
    }
    if let Hop::Guest(index) = to
        && let Some(policy) = topology.policy(index)
        && !policy.admits(attempt)
    {
        return Err(Reason::Ingress);
    }
    must_accept(topology, to, attempt)
}

/// What the receiver's card lets through, whoever comes.
pub(super) fn must_accept(topology: &Topology, to: Hop, attempt: &Attempt) -> Result<(), Reason> {
    match to {
        Hop::Guest(index)
            if topology
                .guest(index)
                .is_some_and(|guest| !guest.accepts(attempt.protocol, attempt.port)) =>
        {
            Err(Reason::ClosedPort)
        }
        _ => Ok(()),
    }
}

/// What has become of a connection under a new topology.
enum Again {
    Denied(Reason),
    /// It would now lead elsewhere, and can.
    Elsewhere,
}

/// Judges a remembered connection by a newer topology, and finds its ends there. A TCP connection keeps its backend
/// when the Service drops it, so that it can end in peace; datagrams go to another one.
fn judge_again(topology: &Topology, connection: &Connection) -> Result<(Hop, Hop), Again> {
    let gone = || Again::Denied(Reason::NoSuchAddress);
    let end = connection.reply.src;
    let attempt = |from| Attempt {
        from,
        to: end,
        protocol: connection.reply.protocol,
        port: connection.reply.sport,
    };
    match connection.opener {
        Opener::Node(origin) => {
            let (index, _) = topology.guest_at(end).ok_or_else(gone)?;
            let there = Hop::Guest(index);
            match origin {
                Some(origin) => judge(topology, None, there, &attempt(origin)),
                None => must_accept(topology, there, &attempt(topology.gateway.address)),
            }
            .map_err(Again::Denied)?;
            Ok((there, Hop::Gateway))
        }
        Opener::Guest(address) => {
            let (opener, guest) = topology.guest_at(address).ok_or_else(gone)?;
            let back = Hop::Guest(opener);
            if connection.to_responder == Hop::Gateway {
                if let Some((to, port)) = connection.target {
                    if matches!(topology.outside.judge(to, port), Judgement::Refused(_)) {
                        return Err(gone());
                    }
                    let attempt = Attempt {
                        to,
                        port,
                        ..attempt(address)
                    };
                    judge(topology, Some(opener), Hop::Gateway, &attempt).map_err(Again::Denied)?;
                }
                return Ok((Hop::Gateway, back));
            }
            let (responder, there) = topology.guest_at(end).ok_or_else(gone)?;
            if there.tenant != guest.tenant {
                return Err(Again::Denied(Reason::Tenant));
            }
            let is_translated = connection.forward != connection.reply.reversed();
            if is_translated && connection.forward.protocol == UDP {
                let found = topology.services.find(guest.tenant, &connection.forward);
                let same = matches!(found, Found::Backend(backend) if backend.address == end && backend.port == connection.reply.sport);
                if !same {
                    return Err(Again::Elsewhere);
                }
            }
            let hop = Hop::Guest(responder);
            judge(topology, Some(opener), hop, &attempt(address)).map_err(Again::Denied)?;
            Ok((hop, back))
        }
    }
}

/// Says no, to be heard where that helps.
fn refuse(sender: &Sender<'_>, packet: &Ipv4, frame: &[u8], refused: Refused) -> Verdict {
    let back = Route::new(
        sender.topology.gateway.mac,
        sender.guest.mac,
        packet.dst,
        packet.src,
    );
    let told = match (refused.tell, packet.transport) {
        (None, _) => None,
        (Some(_), Transport::Tcp(_)) => build::reset(back, packet.segment(frame)),
        (Some(why), _) => frame.get(ETHERNET_HEADER..packet.end).map(|quoted| {
            let from_gateway = Route {
                src: sender.topology.gateway.address,
                ..back
            };
            build::unreachable(from_gateway, why, quoted)
        }),
    };
    match told {
        Some(answer) => Verdict::Refuse(answer, refused.reason),
        None => Verdict::Drop(refused.reason),
    }
}

fn answer_dhcp(sender: &Sender<'_>, packet: &Ipv4, frame: &[u8]) -> Verdict {
    let (topology, guest) = (sender.topology, sender.guest);
    if !packet.src.is_unspecified() && packet.src != guest.address {
        return Verdict::Drop(Reason::SpoofedAddress);
    }
    let gateway = &topology.gateway;
    if packet.dst != gateway.address && !is_group(topology, packet.dst) {
        return Verdict::Drop(Reason::Dhcp);
    }
    let message = packet.segment(frame).get(8..).unwrap_or_default();
    let Some(answer) = dhcp::answer(message, guest.mac, &topology.lease(guest)) else {
        return Verdict::Drop(Reason::Dhcp);
    };
    let to_mac = if answer.to.is_broadcast() {
        Mac::BROADCAST
    } else {
        guest.mac
    };
    let route = Route::new(gateway.mac, to_mac, gateway.address, answer.to);
    Verdict::Answer(build::udp(
        route,
        dhcp::SERVER_PORT,
        dhcp::CLIENT_PORT,
        &answer.message,
    ))
}
