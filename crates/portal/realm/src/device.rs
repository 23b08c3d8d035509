//! Signing in a device that has no browser (RFC 8628): codes that people can type, and what a device is told while it waits.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::guard;
use crate::secret;
use crate::session::{Kind, Session};
use crate::time;

/// Seconds in which a user must confirm.
pub const LIFE: i64 = 600;
/// Seconds between two questions of a device.
pub const INTERVAL: i64 = 5;
/// Devices of a realm that may wait at once: strangers may ask.
pub const MAX_WAITING: usize = 256;
/// Of those, devices of one address: a stranger must not take the places of all others.
pub const MAX_OF_ADDRESS: usize = 16;

/// Where the devices are that wait. What is remembered is bounded by how many may wait.
#[derive(Debug, Default)]
pub struct Queue(HashMap<IpAddr, Vec<i64>>);

impl Queue {
    /// A device of an address begins to wait; false if too many of that address do already.
    pub fn join(&mut self, address: IpAddr, now: i64) -> bool {
        self.0.retain(|_, begun| {
            begun.retain(|at| now < at + LIFE);
            !begun.is_empty()
        });
        let begun = self.0.entry(guard::counted(address)).or_default();
        let has_room = begun.len() < MAX_OF_ADDRESS;
        if has_room {
            begun.push(now);
        }
        has_room
    }

    /// A device of an address waits no longer.
    pub fn leave(&mut self, address: IpAddr) {
        let address = guard::counted(address);
        if let Some(begun) = self.0.get_mut(&address) {
            begun.pop();
            if begun.is_empty() {
                self.0.remove(&address);
            }
        }
    }
}

/// Consonants: no words come of them, and none looks like another.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// What a user types: eight letters in two groups, from random bytes; none if too many of them are of no use.
pub fn user_code(random: &[u8; 32]) -> Option<String> {
    // 240 is a multiple of twenty: bytes beyond would make some letters likelier.
    let mut letters = random
        .iter()
        .filter(|byte| **byte < 240)
        .map(|byte| char::from(ALPHABET[usize::from(byte % 20)]));
    let mut code = String::with_capacity(9);
    for place in 0..8 {
        if place == 4 {
            code.push('-');
        }
        code.push(letters.next()?);
    }
    Some(code)
}

/// What a user typed, as it was shown: without regard to case, spaces and the hyphen. None if it cannot be a code.
pub fn read_user_code(typed: &str) -> Option<String> {
    let letters: Vec<u8> = typed
        .bytes()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'-')
        .map(|b| b.to_ascii_uppercase())
        .collect();
    if letters.len() != 8 || !letters.iter().all(|b| ALPHABET.contains(b)) {
        return None;
    }
    let text: String = letters.into_iter().map(char::from).collect();
    Some(format!("{}-{}", &text[..4], &text[4..]))
}

/// What a device is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Tokens.
    Grant,
    /// Nobody has confirmed yet.
    Pending,
    /// It asks too often.
    SlowDown,
    /// The user has refused.
    Denied,
    /// Its time is up.
    Expired,
    /// It is nobody's code.
    Unknown,
}

/// Judges a question.
pub fn poll(session: &Session, secret: &str, client: &str, now: i64) -> Poll {
    let Some(device) = &session.device else {
        return Poll::Unknown;
    };
    if session.kind != Kind::Device || !secret::is_kept(&device.digest, secret) || session.client != client {
        return Poll::Unknown;
    }
    if session.is_over(now) {
        return Poll::Expired;
    }
    if device.denied {
        return Poll::Denied;
    }
    if device.approved {
        return Poll::Grant;
    }
    let last = device.last_poll.as_deref().and_then(time::read);
    // Objects have whole seconds.
    if last.is_some_and(|last| now - last < INTERVAL - 1) {
        return Poll::SlowDown;
    }
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_address_leaves_places_for_others() {
        let mut queue = Queue::default();
        for at in 0..MAX_OF_ADDRESS {
            assert!(queue.join(address(1), 0), "{at}");
        }
        assert!(!queue.join(address(1), LIFE - 1));
        assert!(queue.join(address(2), 1), "another one is not concerned");
        // Who is let in, or has waited in vain, makes room.
        queue.leave(address(1));
        assert!(queue.join(address(1), 1));
        assert!(!queue.join(address(1), 1));
        assert!(queue.join(address(1), LIFE));
        // Those who never joined take nobody's place, and nothing is kept of who is gone.
        queue.leave(address(9));
        assert!(queue.join(address(3), 3 * LIFE));
        assert_eq!(queue.0.len(), 1);
    }

    #[test]
    fn the_addresses_of_one_customer_are_one() {
        let mut queue = Queue::default();
        let of = |last: usize| -> IpAddr { format!("2001:db8:0:1::{last:x}").parse().unwrap() };
        assert!((0..MAX_OF_ADDRESS).all(|last| queue.join(of(last), 0)));
        assert!(!queue.join(of(999), 0));
    }
    use crate::session::Device;

    #[test]
    fn codes_can_be_typed() {
        let mut random = [255; 32];
        assert_eq!(user_code(&random), None);
        for (place, byte) in random.iter_mut().take(8).enumerate() {
            *byte = u8::try_from(place).unwrap() + 20;
        }
        let code = user_code(&random).unwrap();
        assert_eq!(code, "BCDF-GHJK");
        for typed in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "b-c-d-f-g-h-j-k"] {
            assert_eq!(read_user_code(typed).as_deref(), Some(code.as_str()), "{typed}");
        }
        for wrong in ["", "BCDF", "BCDF-GHJA", "BCDFGHJKL", "ÄÄÄÄ"] {
            assert_eq!(read_user_code(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_device_waits_until_somebody_decides() {
        let session = |change: fn(&mut Device)| {
            let mut device = Device {
                digest: secret::digest("right"),
                ..Device::default()
            };
            change(&mut device);
            Session {
                kind: Kind::Device,
                client: "fairway".to_owned(),
                expires_at: time::write(1000),
                device: Some(device),
                ..Session::default()
            }
        };
        for (what, session, secret, client, now, expected) in [
            ("first", session(|_| {}), "right", "fairway", 900, Poll::Pending),
            (
                "soon",
                session(|it| it.last_poll = Some(time::write(900))),
                "right",
                "fairway",
                902,
                Poll::SlowDown,
            ),
            (
                "in time",
                session(|it| it.last_poll = Some(time::write(900))),
                "right",
                "fairway",
                905,
                Poll::Pending,
            ),
            (
                "confirmed",
                session(|it| it.approved = true),
                "right",
                "fairway",
                900,
                Poll::Grant,
            ),
            (
                "refused",
                session(|it| it.denied = true),
                "right",
                "fairway",
                900,
                Poll::Denied,
            ),
            (
                "late",
                session(|it| it.approved = true),
                "right",
                "fairway",
                1000,
                Poll::Expired,
            ),
            (
                "a guess",
                session(|it| it.approved = true),
                "wrong",
                "fairway",
                900,
                Poll::Unknown,
            ),
            (
                "another program",
                session(|it| it.approved = true),
                "right",
                "other",
                900,
                Poll::Unknown,
            ),
        ] {
            assert_eq!(poll(&session, secret, client, now), expected, "{what}");
        }
        assert_eq!(poll(&Session::default(), "right", "", 0), Poll::Unknown);
    }
}
