//! How often somebody may guess: by user, whether there is such a user or not, and by address.
//!
//! What is remembered is bounded: two generations of entries, of which the older is dropped when the younger is full. To push an
//! entry out one needs thousands of wrong guesses, each of which costs a password hash and counts against its address.
//!
//! That a user waits is also written down, as a Session that is no browser's ([`lock`]): it outlives the process, every replica sees
//! it, and it goes with the sessions whose time is up. It is written once for each wait, and for users that there are, so that
//! guessing does not become writing.

use std::collections::HashMap;
use std::net::IpAddr;

use ring::digest::{SHA256, digest};

use crate::secret;
use crate::session::{Kind, Session};
use crate::time;

/// Entries of a generation.
const KEEP: usize = 8_192;
/// Wrong attempts of one address, over all users, for each that one user has.
const ADDRESS_FACTOR: u32 = 5;

/// What a realm allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wrong attempts in a row.
    pub attempts: u32,
    /// Seconds to wait then, and after which attempts are forgotten.
    pub seconds: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    failures: u32,
    /// Of the last failure.
    at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    User(Box<str>, Box<str>),
    Address(IpAddr),
}

/// Remembers wrong attempts.
#[derive(Debug, Default)]
pub struct Guard {
    young: HashMap<Who, Entry>,
    old: HashMap<Who, Entry>,
}

/// The address that attempts are counted for: of IPv6 the network that a customer has.
pub(crate) fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => {
            let mut octets = it.octets();
            octets[8..].fill(0);
            IpAddr::from(octets)
        }
        it @ IpAddr::V4(_) => it,
    }
}

impl Guard {
    /// Seconds to wait before the next attempt; none: go ahead.
    pub fn wait(&self, realm: &str, user: &str, address: IpAddr, now: i64, limits: Limits) -> Option<i64> {
        let user = self.left(
            &Who::User(realm.into(), user.into()),
            now,
            limits.attempts,
            limits.seconds,
        );
        user.max(self.left_of(address, now, limits))
    }

    /// The same for an address alone.
    pub fn left_of(&self, address: IpAddr, now: i64, limits: Limits) -> Option<i64> {
        let most = limits.attempts.saturating_mul(ADDRESS_FACTOR);
        self.left(&Who::Address(counted(address)), now, most, limits.seconds)
    }

    fn left(&self, who: &Who, now: i64, most: u32, seconds: i64) -> Option<i64> {
        let entry = self.young.get(who).or_else(|| self.old.get(who))?;
        let left = entry.at + seconds - now;
        (entry.failures >= most && left > 0).then_some(left)
    }

    /// A wrong attempt. True for the one from which on the user waits, and for none that follow.
    pub fn failed(&mut self, realm: &str, user: &str, address: IpAddr, now: i64, limits: Limits) -> bool {
        let failures = self.count(Who::User(realm.into(), user.into()), now, limits.seconds);
        self.count(Who::Address(counted(address)), now, limits.seconds);
        failures == limits.attempts
    }

    /// Something else that strangers must not do without end, such as guessing the code of a device.
    pub fn failed_at(&mut self, address: IpAddr, now: i64, limits: Limits) {
        self.count(Who::Address(counted(address)), now, limits.seconds);
    }

    fn count(&mut self, who: Who, now: i64, seconds: i64) -> u32 {
        let before = self.young.get(&who).or_else(|| self.old.get(&who));
        let failures = match before {
            Some(entry) if now < entry.at + seconds => entry.failures.saturating_add(1),
            _ => 1,
        };
        if self.young.len() >= KEEP && !self.young.contains_key(&who) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(who, Entry { failures, at: now });
        failures
    }

    /// The right password: what was wrong before is forgotten, but not what the address did to others.
    pub fn succeeded(&mut self, realm: &str, user: &str) {
        let who = Who::User(realm.into(), user.into());
        self.young.remove(&who);
        self.old.remove(&who);
    }

    /// How much is remembered.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The name of the Session by which it is remembered that a user waits.
pub fn lock_name(realm: &str, user: &str) -> String {
    let digest = digest(&SHA256, format!("lockout {realm} {user}").as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&digest.as_ref()[..16]);
    secret::name(&half)
}

/// That Session. It has no secret, so that no cookie fits it.
pub fn lock(user: &str, uid: &str, until: i64) -> Session {
    Session {
        kind: Kind::Browser,
        user: user.to_owned(),
        user_uid: uid.to_owned(),
        methods: vec!["lockout".to_owned()],
        expires_at: time::write(until),
        ..Session::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        attempts: 3,
        seconds: 60,
    };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn after_some_wrong_attempts_one_waits() {
        let mut guard = Guard::default();
        for at in 0..3 {
            assert_eq!(guard.wait("acme", "alice", address(1), at, LIMITS), None);
            guard.failed("acme", "alice", address(1), at, LIMITS);
        }
        // From anywhere, until the time is up; others are not concerned.
        assert_eq!(guard.wait("acme", "alice", address(2), 3, LIMITS), Some(59));
        assert_eq!(guard.wait("acme", "alice", address(2), 61, LIMITS), Some(1));
        assert_eq!(guard.wait("acme", "alice", address(2), 62, LIMITS), None);
        assert_eq!(guard.wait("acme", "bob", address(1), 3, LIMITS), None);
        assert_eq!(guard.wait("other", "alice", address(1), 3, LIMITS), None);
        // Then counting begins again.
        guard.failed("acme", "alice", address(1), 100, LIMITS);
        assert_eq!(guard.wait("acme", "alice", address(1), 100, LIMITS), None);
    }

    #[test]
    fn a_wait_begins_once() {
        let mut guard = Guard::default();
        let began: Vec<bool> = (0..6)
            .map(|at| guard.failed("acme", "alice", address(1), at, LIMITS))
            .collect();
        assert_eq!(began, [false, false, true, false, false, false]);
        assert!(!guard.failed("acme", "bob", address(1), 6, LIMITS));
    }

    #[test]
    fn nobody_is_signed_in_by_a_lock() {
        let lock = lock("alice", "u-1", 100);
        for offered in ["", "x"] {
            assert!(!secret::is_kept(&lock.secret_digest, offered));
        }
        assert_eq!(lock.code, None);
        let names = [
            lock_name("acme", "alice"),
            lock_name("acme", "bob"),
            lock_name("other", "alice"),
        ];
        assert!(names[0] != names[1] && names[0] != names[2]);
    }

    #[test]
    fn the_right_password_forgives_the_user_and_not_the_address() {
        let mut guard = Guard::default();
        for at in 0..15 {
            guard.failed("acme", &format!("u{}", at % 8), address(1), at, LIMITS);
        }
        guard.succeeded("acme", "u0");
        assert!(guard.wait("acme", "u0", address(1), 15, LIMITS).is_some());
        assert_eq!(guard.wait("acme", "u0", address(2), 15, LIMITS), None);
    }

    #[test]
    fn one_customer_has_one_network() {
        let mut guard = Guard::default();
        for last in 0..15 {
            let address: IpAddr = format!("2001:db8:0:1::{last}").parse().unwrap();
            guard.failed_at(address, 0, LIMITS);
        }
        assert!(
            guard
                .left_of("2001:db8:0:1:ffff::".parse().unwrap(), 1, LIMITS)
                .is_some()
        );
        assert_eq!(guard.left_of("2001:db8:0:2::1".parse().unwrap(), 1, LIMITS), None);
        let mapped: IpAddr = "::ffff:192.0.2.9".parse().unwrap();
        for _ in 0..15 {
            guard.failed_at(mapped, 0, LIMITS);
        }
        assert!(guard.left_of(address(9), 1, LIMITS).is_some());
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let mut guard = Guard::default();
        for n in 0..4 * KEEP {
            guard.failed("acme", &n.to_string(), address(1), 0, LIMITS);
        }
        assert!(guard.len() <= 2 * KEEP + 2, "{}", guard.len());
        assert!(guard.left_of(address(1), 1, LIMITS).is_some());
    }
}
