//! Sign-ins that were begun and wait for a browser to come back from another provider. Anybody may begin one, so what is remembered
//! is bounded: an address that has too many loses its own oldest, and all together do.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::{guard, secret};

/// Seconds in which a browser must come back.
pub const LIFE: i64 = 600;
/// Remembered at most, and of one address: many people may sit behind one.
const MAX: usize = 2048;
const MAX_OF_ADDRESS: usize = 256;
/// The longest question of a program that is remembered.
const MAX_GOAL: usize = 8 * 1024;

/// What somebody wants to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// A program's question, as it came: it is judged once more afterwards.
    Program(String),
    /// The code of a device.
    Device(String),
}

impl Goal {
    /// The page that it began at, below the address of a realm.
    pub fn page(&self) -> String {
        match self {
            Self::Program(query) => format!("authorize?{query}"),
            Self::Device(code) => format!("device?{}", crate::params::query([("user_code", code.as_str())])),
        }
    }
}

/// A sign-in that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The realm.
    pub realm: String,
    /// The name of the provider.
    pub provider: String,
    /// What the browser is known by.
    pub browser: String,
    /// What the token has to say.
    pub nonce: String,
    /// PKCE.
    pub verifier: String,
    /// What comes afterwards.
    pub goal: Goal,
    /// When it began.
    pub begun: i64,
    /// Where it came from.
    pub address: IpAddr,
}

/// Who comes back.
#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    /// What the browser was sent with.
    pub state: &'a str,
    /// The realm that it comes back to.
    pub realm: &'a str,
    /// The provider that it comes back from.
    pub provider: &'a str,
    /// What the browser is known by.
    pub browser: &'a str,
}

/// Those that wait, by the digest of their state.
#[derive(Debug, Default)]
pub struct Pending(HashMap<String, Waiting>);

impl Pending {
    /// Remembers one. False if the program asked for too much.
    pub fn add(&mut self, state: &str, mut waiting: Waiting) -> bool {
        let (Goal::Program(text) | Goal::Device(text)) = &waiting.goal;
        if text.len() > MAX_GOAL {
            return false;
        }
        waiting.address = guard::counted(waiting.address);
        let now = waiting.begun;
        self.0.retain(|_, it| now < it.begun + LIFE);
        let of_address = self.0.values().filter(|it| it.address == waiting.address).count();
        if of_address >= MAX_OF_ADDRESS {
            self.forget_oldest(Some(waiting.address));
        } else if self.0.len() >= MAX {
            self.forget_oldest(None);
        }
        self.0.insert(secret::digest(state), waiting);
        true
    }

    fn forget_oldest(&mut self, address: Option<IpAddr>) {
        let concerned = self
            .0
            .iter()
            .filter(|(_, it)| address.is_none_or(|address| it.address == address));
        let oldest = concerned
            .min_by_key(|(_, it)| it.begun)
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.0.remove(&key);
        }
    }

    /// The sign-in that somebody comes back to, which counts once. Another browser, realm or provider neither gets nor ends it.
    pub fn take(&mut self, back: Return<'_>, now: i64) -> Option<Waiting> {
        let key = secret::digest(back.state);
        let found = self.0.get(&key)?;
        let is_same = found.realm == back.realm
            && found.provider == back.provider
            && !back.browser.is_empty()
            && secret::is_equal(found.browser.as_bytes(), back.browser.as_bytes());
        if !is_same {
            return None;
        }
        self.0.remove(&key).filter(|it| now < it.begun + LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(address: [u8; 4], begun: i64) -> Waiting {
        Waiting {
            realm: "acme".to_owned(),
            provider: "keycloak".to_owned(),
            browser: "b".to_owned(),
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
            goal: Goal::Program("client_id=web".to_owned()),
            begun,
            address: IpAddr::from(address),
        }
    }

    const BACK: Return<'_> = Return {
        state: "s",
        realm: "acme",
        provider: "keycloak",
        browser: "b",
    };

    #[test]
    fn a_browser_comes_back_once_and_no_other_does() {
        let mut pending = Pending::default();
        assert!(pending.add("s", waiting([192, 0, 2, 1], 100)));
        for (back, why) in [
            (Return { state: "t", ..BACK }, "another state"),
            (Return { state: "", ..BACK }, "no state"),
            (
                Return {
                    realm: "other",
                    ..BACK
                },
                "another realm",
            ),
            (
                Return {
                    provider: "okta",
                    ..BACK
                },
                "another provider",
            ),
            (Return { browser: "c", ..BACK }, "another browser"),
            (Return { browser: "", ..BACK }, "a browser without cookies"),
        ] {
            assert_eq!(pending.take(back, 101), None, "{why}");
        }
        assert_eq!(pending.take(BACK, 101).unwrap().nonce, "n");
        assert_eq!(pending.take(BACK, 101), None, "a second time");
    }

    #[test]
    fn time_and_room_are_bounded() {
        let mut pending = Pending::default();
        pending.add("s", waiting([192, 0, 2, 1], 100));
        assert_eq!(pending.take(BACK, 100 + LIFE), None, "its time is up");
        let mut long = waiting([192, 0, 2, 1], 100);
        long.goal = Goal::Program("x".repeat(MAX_GOAL + 1));
        assert!(!pending.add("s", long));
        // One address pushes out its own, and not those of others.
        pending.add("s", waiting([192, 0, 2, 1], 100));
        for n in 0..2 * MAX_OF_ADDRESS {
            pending.add(&n.to_string(), waiting([192, 0, 2, 2], 101));
        }
        assert_eq!(pending.0.len(), MAX_OF_ADDRESS + 1);
        assert!(pending.take(BACK, 102).is_some());
        for n in 0..2 * MAX {
            let [high, low] = u16::try_from(n / 4).unwrap().to_be_bytes();
            pending.add(&n.to_string(), waiting([10, 0, high, low], 102));
        }
        assert_eq!(pending.0.len(), MAX);
        pending.add("s", waiting([192, 0, 2, 1], 102 + LIFE));
        assert_eq!(pending.0.len(), 1, "what is over goes");
    }

    #[test]
    fn a_goal_leads_back_to_where_it_began() {
        assert_eq!(Goal::Program("a=b".to_owned()).page(), "authorize?a=b");
        assert_eq!(Goal::Device("x&y".to_owned()).page(), "device?user_code=x%26y");
    }
}
