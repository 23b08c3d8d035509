//! The gateway's ends of connections: packets that guests send beyond their neighbours arrive here.
//!
//! Every connection is a [`Flow`]: a task with a queue of packets. TCP flows end the guest's TCP in a stack of their own
//! and copy bytes to a socket of the host, to the resolver or to whoever dialled; datagram flows are a socket each. A
//! flow that ends is forgotten by the switch as well, and one that the switch has forgotten ends when its guest is gone.

mod dial;
mod outside;
mod tcp;
mod udp;

use std::net::Ipv4Addr;

use fairway_machines_frames::build::{self, Route};
use fairway_machines_frames::decide::{Arrival, GatewayService};
use fairway_machines_frames::packet::{ETHERNET_HEADER, Ipv4, TCP, Transport, UDP};
use fairway_machines_frames::track::Tuple;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::state::{Core, Shared};

pub(crate) use dial::{DialFailed, PATIENCE, dial, talk};
pub(crate) use outside::connect as connect_outside;

/// Packets that wait for a flow. More are dropped; TCP sends them again.
const WAITING: usize = 256;

/// A connection that ends at the gateway.
pub(crate) struct Flow {
    id: u64,
    guest: Ipv4Addr,
    packets: mpsc::Sender<Vec<u8>>,
    task: AbortHandle,
}

/// Ends a flow's traces when its task ends, however that comes.
struct Registration {
    core: Shared,
    tuple: Tuple,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Not to be had while the thread ends, when nothing is left to be forgotten.
        if let Ok(mut core) = self.core.try_borrow_mut() {
            core.remove_flow(&self.tuple, Some(self.id));
        }
    }
}

impl Core {
    /// Takes a packet, with its Ethernet header, that was decided to be the gateway's.
    pub(crate) fn arrive(&mut self, arrival: &Arrival, frame: &[u8]) {
        let Ok(packet) = Ipv4::read(frame) else {
            return;
        };
        match arrival.tuple.protocol {
            TCP => self.arrive_tcp(arrival, &packet, frame),
            UDP => self.arrive_udp(arrival, &packet, frame),
            _ => {}
        }
    }

    fn arrive_tcp(&mut self, arrival: &Arrival, packet: &Ipv4, frame: &[u8]) {
        let tuple = arrival.tuple;
        let opens = matches!(packet.transport, Transport::Tcp(flags) if flags.opens());
        let bytes = frame
            .get(ETHERNET_HEADER..packet.end)
            .unwrap_or_default()
            .to_vec();
        if let Some(flow) = self.flows.get(&tuple) {
            // A full queue is a lost packet.
            let _ = flow.packets.try_send(bytes);
            return;
        }
        let Some(core) = self.shared().filter(|_| opens) else {
            self.refuse_tcp(packet, frame);
            self.switch.close(&tuple);
            return;
        };
        let first = bytes;
        let accepted = match arrival.service {
            GatewayService::Outside { address, port, named } => {
                self.start_flow(core, tuple, tuple.src, |registration, packets| {
                    tcp::to_outside(registration, packets, tcp::Target { address, port, named })
                })
            }
            GatewayService::Resolver => {
                let workspace = self.workspace_of(tuple.src);
                let names = std::sync::Arc::clone(&self.names);
                self.start_flow(core, tuple, tuple.src, |registration, packets| {
                    tcp::to_resolver(registration, packets, names, workspace)
                })
            }
            // The dialler's flow exists before its first packet.
            GatewayService::Node => None,
        };
        match accepted {
            Some(packets) => {
                let _ = packets.try_send(first);
            }
            None => {
                self.refuse_tcp(packet, frame);
                self.switch.close(&tuple);
            }
        }
    }

    fn arrive_udp(&mut self, arrival: &Arrival, packet: &Ipv4, frame: &[u8]) {
        let tuple = arrival.tuple;
        let segment = packet.segment(frame);
        let length = segment
            .get(4..6)
            .map_or(0, |l| usize::from(u16::from_be_bytes([l[0], l[1]])));
        let payload = segment.get(8..length).unwrap_or_default().to_vec();
        if let Some(flow) = self.flows.get(&tuple) {
            let _ = flow.packets.try_send(payload);
            return;
        }
        let Some(core) = self.shared() else {
            return;
        };
        let started = match arrival.service {
            GatewayService::Outside { address, port, named } => {
                self.start_flow(core, tuple, tuple.src, |registration, packets| {
                    udp::to_outside(registration, packets, tcp::Target { address, port, named })
                })
            }
            GatewayService::Resolver => {
                let workspace = self.workspace_of(tuple.src);
                let names = std::sync::Arc::clone(&self.names);
                self.start_flow(core, tuple, tuple.src, |registration, packets| {
                    udp::to_resolver(registration, packets, names, workspace)
                })
            }
            GatewayService::Node => None,
        };
        if let Some(packets) = started {
            let _ = packets.try_send(payload);
        }
    }

    /// Starts a flow's task, unless there are too many.
    fn start_flow<F, T>(
        &mut self,
        core: Shared,
        tuple: Tuple,
        guest: Ipv4Addr,
        task: T,
    ) -> Option<mpsc::Sender<Vec<u8>>>
    where
        F: Future<Output = ()> + 'static,
        T: FnOnce(FlowEnd, mpsc::Receiver<Vec<u8>>) -> F,
    {
        let of_guest = self.flows_of.get(&guest).copied().unwrap_or(0);
        if self.flows.len() >= self.flow_bounds.total || of_guest >= self.flow_bounds.per_guest {
            return None;
        }
        let (sender, packets) = mpsc::channel(WAITING);
        self.next_flow += 1;
        let id = self.next_flow;
        let end = FlowEnd {
            registration: Registration { core, tuple, id },
            guest,
        };
        let task = tokio::task::spawn_local(task(end, packets)).abort_handle();
        let flow = Flow {
            id,
            guest,
            packets: sender.clone(),
            task,
        };
        self.flows.insert(tuple, flow);
        *self.flows_of.entry(guest).or_default() += 1;
        Some(sender)
    }

    /// Forgets a flow: the one with this id, or whichever has the tuple.
    fn remove_flow(&mut self, tuple: &Tuple, id: Option<u64>) {
        let is_it = self
            .flows
            .get(tuple)
            .is_some_and(|flow| id.is_none_or(|id| flow.id == id));
        if !is_it {
            return;
        }
        if let Some(flow) = self.flows.remove(tuple) {
            flow.task.abort();
            if let Some(count) = self.flows_of.get_mut(&flow.guest) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.flows_of.remove(&flow.guest);
                }
            }
        }
        self.switch.close(tuple);
    }

    /// Ends the flows of guests that are gone, or elsewhere.
    pub(crate) fn end_orphans(&mut self) {
        let topology = std::sync::Arc::clone(self.switch.topology());
        let is_here = |address: Ipv4Addr| {
            let guest = topology.guest_at(address);
            guest.is_some_and(|(_, guest)| guest.ports.iter().any(|port| !topology.is_peer(*port)))
        };
        let orphans: Vec<Tuple> = self
            .flows
            .iter()
            .filter(|(_, flow)| !is_here(flow.guest))
            .map(|(tuple, _)| *tuple)
            .collect();
        for tuple in orphans {
            self.remove_flow(&tuple, None);
        }
    }

    fn workspace_of(&self, guest: Ipv4Addr) -> Option<String> {
        let (_, guest) = self.switch.topology().guest_at(guest)?;
        self.tenants.name(guest.tenant)
    }

    /// Answers a segment that nothing here takes, as a closed port would.
    fn refuse_tcp(&mut self, packet: &Ipv4, frame: &[u8]) {
        let Some((_, mac)) = self.switch.place_of(packet.src) else {
            return;
        };
        let route = Route::new(self.switch.topology().gateway.mac, mac, packet.dst, packet.src);
        if let Some(answer) = build::reset(route, packet.segment(frame)) {
            self.send_to_guest(packet.src, &answer);
        }
    }
}

/// What a flow's task holds: its place among the others, and whom it speaks with.
pub(crate) struct FlowEnd {
    registration: Registration,
    guest: Ipv4Addr,
}

impl FlowEnd {
    fn core(&self) -> &Shared {
        &self.registration.core
    }

    fn tuple(&self) -> Tuple {
        self.registration.tuple
    }
}
