//! What nftables is told, as text. Pure.
//!
//! A packet is carried by the kernel if two tables know it: `from` has the card that it comes from, with both cards' addresses and the sender's
//! own, so that nobody speaks in another's name; `to` has the connection, one direction of it, and the device that it goes to. What opens or
//! ends a connection (SYN, FIN, RST), has options or is a piece of a packet goes to the switch, which has to see it.

use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

/// The table that everything is in.
const TABLE: &str = "netdev fairway";
/// How long the kernel carries a connection until the switch is asked again.
const SECONDS: u32 = 10;
/// So many directions of connections at most; others stay with the switch.
const SIZE: usize = 16_384;

/// One direction of a connection that the kernel carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The devices of the two cards.
    pub from: String,
    pub to: String,
    /// The cards' addresses.
    pub from_mac: [u8; 6],
    pub to_mac: [u8; 6],
    /// The number of the protocol, TCP's or UDP's.
    pub protocol: u8,
    /// Sender and receiver.
    pub source: (Ipv4Addr, u16),
    pub destination: (Ipv4Addr, u16),
}

struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// What is there before any card.
pub(crate) fn base() -> String {
    format!(
        "add table {TABLE}\n\
         add set {TABLE} from {{ type ifname . ether_addr . ether_addr . ipv4_addr; flags timeout; size {SIZE}; }}\n\
         add map {TABLE} to {{ type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service : iface_index; \
         flags timeout; size {SIZE}; }}\n"
    )
}

/// Joins the two devices of a card.
pub(crate) fn join(guest: &str, switch: &str) -> String {
    let known = "ether type ip ip hdrlength 5 ip frag-off & 0x3fff == 0 \
                 iifname . ether saddr . ether daddr . ip saddr @from";
    let carried = "fwd to ip saddr . ip daddr . meta l4proto . th sport . th dport map @to";
    let hook = |device: &str| {
        format!(
            "add chain {TABLE} {device} {{ type filter hook ingress device \"{device}\" priority 0; policy drop; }}\n"
        )
    };
    let mut text = hook(switch) + &hook(guest);
    let rules = [
        format!("{guest} {known} tcp flags & (fin|syn|rst) == 0 {carried}"),
        format!("{guest} {known} meta l4proto udp {carried}"),
        format!("{guest} fwd to \"{switch}\""),
        format!("{switch} fwd to \"{guest}\""),
    ];
    for rule in rules {
        let _ = writeln!(text, "add rule {TABLE} {rule}");
    }
    text
}

/// Takes the rules of a device away.
pub(crate) fn part(device: &str) -> String {
    format!("delete chain {TABLE} {device}\n")
}

/// Has the kernel carry connections.
pub(crate) fn carry(all: &[Carried]) -> String {
    let mut text = String::new();
    for it in all {
        let ((source, sport), (destination, dport)) = (it.source, it.destination);
        let _ = writeln!(
            text,
            "add element {TABLE} from {{ \"{}\" . {} . {} . {source} timeout {SECONDS}s }}\n\
             add element {TABLE} to {{ {source} . {destination} . {} . {sport} . {dport} timeout {SECONDS}s : \"{}\" }}",
            it.from,
            Mac(it.from_mac),
            Mac(it.to_mac),
            it.protocol,
            it.to
        );
    }
    text
}

/// Has it carry none.
pub(crate) fn forget() -> String {
    format!("flush map {TABLE} to\nflush set {TABLE} from\n")
}

/// Takes everything away.
pub(crate) fn end() -> String {
    format!("delete table {TABLE}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_in_full() {
        let carried = Carried {
            from: "g1".into(),
            to: "g2".into(),
            from_mac: [2, 0, 0, 0, 0, 0xa],
            to_mac: [2, 0, 0, 0, 0, 0xb],
            protocol: 6,
            source: (Ipv4Addr::new(10, 88, 0, 2), 80),
            destination: (Ipv4Addr::new(10, 88, 0, 3), 4000),
        };
        assert_eq!(
            carry(&[carried]),
            "add element netdev fairway from { \"g1\" . 02:00:00:00:00:0a . 02:00:00:00:00:0b . 10.88.0.2 timeout 10s }\n\
             add element netdev fairway to { 10.88.0.2 . 10.88.0.3 . 6 . 80 . 4000 timeout 10s : \"g2\" }\n"
        );
        assert_eq!(carry(&[]), "");
    }

    #[test]
    fn what_a_guest_sends_goes_to_the_switch_last() {
        let text = join("g1", "s1");
        let rules: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("add rule netdev fairway g1"))
            .collect();
        assert_eq!(rules.len(), 3);
        assert!(rules[0].contains("tcp flags & (fin|syn|rst) == 0"));
        assert_eq!(rules[2], "add rule netdev fairway g1 fwd to \"s1\"");
        assert!(text.contains("policy drop"));
    }
}
