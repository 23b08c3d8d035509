//! How many connections each client has: nobody may have all that there are.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::options::Limits;

/// Connections by who has them: an address, or of IPv6 the 64 bits that one customer has.
#[derive(Debug)]
pub(crate) struct Clients {
    most: usize,
    /// Whoever comes from the host itself may be a balancer that stands for everybody.
    loopback_is_free: bool,
    held: Mutex<HashMap<IpAddr, usize>>,
}

impl Clients {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            most: limits
                .connections_per_client
                .unwrap_or(limits.connections / 4)
                .max(1),
            loopback_is_free: limits.connections_per_client.is_none(),
            held: Mutex::default(),
        }
    }

    /// A connection begins. Whose it is counted for, if for anybody; an error says that there are too many.
    pub(crate) fn enter(&self, client: IpAddr) -> Result<Option<IpAddr>, TooMany> {
        let client = of(client);
        if self.loopback_is_free && client.is_loopback() {
            return Ok(None);
        }
        let mut held = self.lock();
        let count = held.entry(client).or_default();
        if *count >= self.most {
            return Err(TooMany);
        }
        *count += 1;
        Ok(Some(client))
    }

    /// It ends.
    pub(crate) fn leave(&self, client: IpAddr) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                held.remove(&client);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client has all the connections that it may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

fn of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_share() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (most, addresses, expected, reason) in [
            (
                Some(2),
                ["10.0.0.1", "10.0.0.1", "10.0.0.1"],
                false,
                "one too many",
            ),
            (
                Some(2),
                ["10.0.0.1", "10.0.0.1", "10.0.0.2"],
                true,
                "somebody else",
            ),
            (
                Some(2),
                ["10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"],
                false,
                "the same, mapped",
            ),
            (
                Some(2),
                ["2001:db8::1", "2001:db8::2", "2001:db8::3"],
                false,
                "one customer",
            ),
            (
                Some(2),
                ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"],
                true,
                "another customer",
            ),
            (
                Some(2),
                ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
                false,
                "the host, if it was said",
            ),
            (
                None,
                ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
                true,
                "the host, if nobody said",
            ),
            (None, ["::1", "::1", "::1"], true, "the host by IPv6"),
            (
                None,
                ["10.0.0.1", "10.0.0.1", "10.0.0.1"],
                false,
                "a quarter of eight",
            ),
        ] {
            let clients = Clients::new(&Limits {
                connections: 8,
                connections_per_client: most,
                ..Limits::default()
            });
            let entered = addresses.map(|address| clients.enter(ip(address)));
            assert_eq!(entered[2].is_ok(), expected, "{reason}");
            assert!(entered[..2].iter().all(Result::is_ok), "{reason}");
            for client in entered.into_iter().flatten().flatten() {
                clients.leave(client);
            }
            assert!(clients.lock().is_empty(), "{reason}: nobody is forgotten here");
        }
    }
}
