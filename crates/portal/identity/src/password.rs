//! Passwords as they are kept: argon2id, in the form that everybody writes it (`$argon2id$v=19$m=...,t=...,p=...$salt$hash`).
//!
//! A hash is made to cost memory and time, so only as many are computed at once as there are cores, and only so many wait.

use std::sync::Arc;
use std::time::Duration;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as B64;
use fairway_portal_realm::secret;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::hash_memory::HashMemory;
use crate::random::{self, NoRandomness};

/// Memory in KiB, passes, lanes: OWASP's recommendation for argon2id.
const COST: (u32, u32, u32) = (19_456, 2, 1);
/// What a hash that was made elsewhere may cost: a hostile one must not take the server down.
const MOST: (u32, u32, u32) = (262_144, 10, 8);
const SALT: usize = 16;
const HASH: usize = 32;
/// How long an attempt waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// No salt.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// The library refused, which only too little memory makes it do.
    #[error("the password could not be hashed: {0}")]
    Argon(String),
}

/// What is kept of a password.
pub fn hash(password: &str) -> Result<String, HashError> {
    let salt: [u8; SALT] = random::bytes()?;
    let (memory, passes, lanes) = COST;
    let hash = derive(password, &salt, COST, HASH, None).map_err(HashError::Argon)?;
    let (salt, hash) = (B64.encode(salt), B64.encode(hash));
    Ok(format!(
        "$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}"
    ))
}

fn derive(
    password: &str,
    salt: &[u8],
    (memory, passes, lanes): (u32, u32, u32),
    length: usize,
    blocks: Option<&mut [Block]>,
) -> Result<Vec<u8>, String> {
    let params = Params::new(memory, passes, lanes, Some(length)).map_err(|error| error.to_string())?;
    let mut out = vec![0; length];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hashed = match blocks {
        Some(blocks) => argon.hash_password_into_with_memory(password.as_bytes(), salt, &mut out, blocks),
        None => argon.hash_password_into(password.as_bytes(), salt, &mut out),
    };
    hashed.map(|()| out).map_err(|error| error.to_string())
}

/// Whether a password is the one that was kept. A text that is no hash of ours, or would cost too much, fits none.
pub fn is_right(kept: &str, password: &str) -> bool {
    compare(kept, password, None)
}

fn compare(kept: &str, password: &str, memory: Option<&HashMemory>) -> bool {
    let Some((cost, salt, hash)) = read(kept) else {
        return false;
    };
    let password = if password.len() > fairway_portal_realm::password::MAX {
        ""
    } else {
        password
    };
    // Only hashes of our own cost: what was hashed elsewhere is seldom, and may want ten times as much.
    let made = match memory.filter(|_| cost == COST) {
        Some(memory) => memory.with(|blocks| derive(password, &salt, cost, hash.len(), Some(blocks))),
        None => derive(password, &salt, cost, hash.len(), None),
    };
    made.is_ok_and(|made| secret::is_equal(&made, &hash))
}

type Parts = ((u32, u32, u32), Vec<u8>, Vec<u8>);

fn read(kept: &str) -> Option<Parts> {
    let mut parts = kept.strip_prefix("$argon2id$v=19$")?.split('$');
    let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let mut cost = [0; 3];
    for (place, (text, name)) in cost.iter_mut().zip(costs.split(',').zip(["m=", "t=", "p="])) {
        *place = text.strip_prefix(name)?.parse().ok()?;
    }
    let [memory, passes, lanes] = cost;
    let is_bounded = memory <= MOST.0 && (1..=MOST.1).contains(&passes) && (1..=MOST.2).contains(&lanes);
    let (salt, hash) = (B64.decode(salt).ok()?, B64.decode(hash).ok()?);
    let is_sized = (8..=64).contains(&salt.len()) && (16..=64).contains(&hash.len());
    (is_bounded && is_sized).then_some(((memory, passes, lanes), salt, hash))
}

/// Compares passwords, a few at a time.
#[derive(Debug)]
pub(crate) struct Hasher {
    turns: Arc<Semaphore>,
    /// One for each turn at most.
    memory: Arc<HashMemory>,
    /// What is compared when there is nothing to compare with: it takes as long.
    dummy: Arc<str>,
    /// What each comparison was asked to cost, for tests: clocks are no judges.
    #[cfg(test)]
    pub(crate) costs: std::sync::Mutex<Vec<(u32, u32, u32)>>,
}

/// Too many wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Busy;

/// One of those that are computed at once.
#[derive(Debug, Clone)]
pub(crate) struct Turn(
    #[expect(dead_code, reason = "it is given back when it is dropped")] Arc<OwnedSemaphorePermit>,
);

impl Hasher {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // A hash of the right form and cost that no password has: the expected value is random.
        let (salt, hash): ([u8; SALT], [u8; HASH]) = (random::bytes()?, random::bytes()?);
        let (memory, passes, lanes) = COST;
        let (salt, hash) = (B64.encode(salt), B64.encode(hash));
        Ok(Self {
            turns: Arc::new(Semaphore::new(cores)),
            memory: HashMemory::new(memory),
            dummy: format!("$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}").into(),
            #[cfg(test)]
            costs: std::sync::Mutex::default(),
        })
    }

    /// A turn to compare. Whoever keeps it until a wrong attempt was counted lets nobody guess in between.
    pub(crate) async fn turn(&self) -> Result<Turn, Busy> {
        let turn = tokio::time::timeout(TURN, Arc::clone(&self.turns).acquire_owned()).await;
        match turn {
            Ok(Ok(turn)) => Ok(Turn(Arc::new(turn))),
            _ => Err(Busy),
        }
    }

    /// What is to be kept of a new password.
    pub(crate) async fn hashed(&self, turn: &Turn, password: String) -> Result<String, HashError> {
        let turn = turn.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            hash(&password)
        });
        hashed
            .await
            .unwrap_or_else(|error| Err(HashError::Argon(error.to_string())))
    }

    /// Whether a password is the one that was kept; without one it takes as long, and is not.
    pub(crate) async fn is_right(&self, turn: &Turn, kept: Option<String>, password: String) -> bool {
        // Whoever asked may go away; the work goes on, and so does the turn.
        let turn = turn.clone();
        // A hash that cannot be read would be told apart by how soon the answer comes.
        let kept = kept.filter(|text| read(text).is_some());
        let is_known = kept.is_some();
        let kept = kept.map_or_else(|| Arc::clone(&self.dummy), Into::into);
        #[cfg(test)]
        self.costs
            .lock()
            .unwrap()
            .extend(read(&kept).map(|(cost, ..)| cost));
        let memory = Arc::clone(&self.memory);
        let compared = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let fits = compare(&kept, &password, Some(&memory));
            memory.watch();
            fits
        });
        compared.await.is_ok_and(|fits| fits && is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_recognised_and_no_other() {
        let kept = hash("correct horse battery").unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert_ne!(kept, hash("correct horse battery").unwrap());
        assert!(is_right(&kept, "correct horse battery"));
        for wrong in ["", "correct horse batterY", "correct horse battery "] {
            assert!(!is_right(&kept, wrong), "{wrong}");
        }
    }

    /// Made by the reference implementation (`argon2 -id`), as the library's own tests have it.
    #[test]
    fn hashes_of_others_are_read_within_bounds() {
        let kept = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(is_right(kept, "password"));
        for hostile in [
            "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=65536,t=4000000,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$",
            "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "password",
            "",
        ] {
            assert!(!is_right(hostile, "password"), "{hostile}");
        }
    }

    #[tokio::test]
    async fn what_another_hash_has_left_in_memory_changes_nothing() {
        let hasher = Hasher::new().unwrap();
        let (alice, bob) = (
            hash("correct horse battery").unwrap(),
            hash("another horse").unwrap(),
        );
        for (kept, password, fits) in [
            (&alice, "correct horse battery", true),
            (&bob, "correct horse battery", false),
            (&bob, "another horse", true),
            (&alice, "another horse", false),
            (&alice, "correct horse battery", true),
        ] {
            let turn = hasher.turn().await.unwrap();
            let found = hasher
                .is_right(&turn, Some(kept.clone()), password.to_owned())
                .await;
            assert_eq!(found, fits, "{password}");
            assert_eq!(hasher.memory.kept(), 1);
        }
    }

    #[tokio::test]
    async fn without_a_hash_nothing_fits() {
        let hasher = Hasher::new().unwrap();
        let turn = hasher.turn().await.unwrap();
        assert!(!hasher.is_right(&turn, None, String::new()).await);
        let kept = hash("correct horse battery").unwrap();
        assert!(
            hasher
                .is_right(&turn, Some(kept), "correct horse battery".to_owned())
                .await
        );
    }
}
