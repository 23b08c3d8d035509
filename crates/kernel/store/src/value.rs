//! What a stored value looks like, and how secrets are sealed. Pure but for the random source that it is given.
//!
//! Every value begins with a tag of five bytes: its encoding, and the id of the key that it needs (0: none).
//!
//! ```text
//! plain    01 | 00000000 | value
//! sealed   02 | key id   | wrapped data key (60) | nonce (12) | ciphertext and its mark (n + 16)
//! ```
//!
//! Sealing is envelope encryption with AES-256-GCM. The key-encryption key lives outside of the store ([`key_file`]);
//! it encrypts only data keys. A data key is made when a ring is loaded, and again after many uses; it travels, wrapped,
//! with each value, so that a ring needs no state of its own, a key-encryption key that sits behind a network is asked
//! once per data key and not once per value, and rotation is a matter of adding a key. The ciphertext is bound to its
//! store key: a value that was moved to another key does not open.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::SecureRandom;

pub mod key_file;
pub mod reseal;

/// The tag of a plain value. Whoever serialises into a buffer of their own starts it with this, and saves the copy
/// that [`plain`] makes.
pub const PLAIN_TAG: [u8; TAG_BYTES] = [PLAIN, 0, 0, 0, 0];

/// Bytes of a tag.
pub const TAG_BYTES: usize = 5;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

const PLAIN: u8 = 1;
const SEALED: u8 = 2;

/// What GCM adds to a ciphertext.
const MARK_BYTES: usize = 16;
const WRAPPED_BYTES: usize = NONCE_LEN + KEY_BYTES + MARK_BYTES;
const SEALED_OVERHEAD: usize = TAG_BYTES + WRAPPED_BYTES + NONCE_LEN + MARK_BYTES;

/// Uses of one data key. With random nonces NIST allows 2^32.
const DATA_KEY_USES: u64 = 1 << 31;

/// Data keys that are kept unwrapped. There is one per start of the server, so this is plenty; it bounds memory.
const CACHED_DATA_KEYS: usize = 1024;

/// Why a value could not be sealed or opened.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ValueError {
    /// It ends before it should.
    #[error("the stored value is cut off after {0} bytes")]
    Truncated(usize),
    /// The tag names an encoding that this version does not know.
    #[error(
        "the stored value has encoding {0}, which this version of Fairway does not know; a newer one wrote it"
    )]
    UnknownEncoding(u8),
    /// The tag names a key that the ring does not have.
    #[error("the stored value is encrypted with key {0:08x}, which is not in the key file")]
    UnknownKey(u32),
    /// It was changed, or moved to another store key, or the key is not the one that sealed it.
    #[error("the stored value does not decrypt: it was altered, or belongs to another key of the store")]
    NotAuthentic,
    /// The machine gave no random bytes.
    #[error("no random bytes could be had for encryption")]
    NoRandomness,
    /// There is nothing to seal with.
    #[error("the key ring has no key {0:08x}")]
    NoSuchKey(u32),
}

/// A value that is not secret: only tagged.
#[must_use]
pub fn plain(value: &[u8]) -> Bytes {
    let mut stored = Vec::with_capacity(TAG_BYTES + value.len());
    stored.extend_from_slice(&PLAIN_TAG);
    stored.extend_from_slice(value);
    Bytes::from(stored)
}

/// The keys that open values, one of which also seals them. They can be replaced while values are sealed and opened.
pub struct KeyRing {
    keys: RwLock<Arc<Keys>>,
    random: Arc<dyn SecureRandom + Send + Sync>,
    unwrapped: Mutex<HashMap<[u8; WRAPPED_BYTES], Arc<LessSafeKey>>>,
}

struct Keys {
    all: BTreeMap<u32, LessSafeKey>,
    current: u32,
    sealing: Mutex<DataKey>,
}

impl Keys {
    fn new(
        keys: impl IntoIterator<Item = (u32, [u8; KEY_BYTES])>,
        current: u32,
        random: &dyn SecureRandom,
    ) -> Result<Self, ValueError> {
        let all = keys
            .into_iter()
            .map(|(id, bytes)| Ok((id, aes_key(&bytes)?)))
            .collect::<Result<BTreeMap<_, _>, ValueError>>()?;
        let wrapping = all.get(&current).ok_or(ValueError::NoSuchKey(current))?;
        let sealing = Mutex::new(DataKey::create(wrapping, current, random)?);
        Ok(Self {
            all,
            current,
            sealing,
        })
    }

    fn data_key(
        &self,
        random: &dyn SecureRandom,
    ) -> Result<(Arc<LessSafeKey>, [u8; WRAPPED_BYTES]), ValueError> {
        let mut sealing = locked(&self.sealing);
        if sealing.uses_left == 0 {
            let wrapping = self
                .all
                .get(&self.current)
                .ok_or(ValueError::NoSuchKey(self.current))?;
            *sealing = DataKey::create(wrapping, self.current, random)?;
        }
        sealing.uses_left -= 1;
        Ok((Arc::clone(&sealing.key), sealing.wrapped))
    }
}

/// The data key in use.
struct DataKey {
    key: Arc<LessSafeKey>,
    wrapped: [u8; WRAPPED_BYTES],
    uses_left: u64,
}

impl KeyRing {
    /// A ring that opens with all of the keys and seals with the current one.
    pub fn new(
        keys: impl IntoIterator<Item = (u32, [u8; KEY_BYTES])>,
        current: u32,
        random: Arc<dyn SecureRandom + Send + Sync>,
    ) -> Result<Self, ValueError> {
        let keys = Keys::new(keys, current, random.as_ref())?;
        Ok(Self {
            keys: RwLock::new(Arc::new(keys)),
            random,
            unwrapped: Mutex::default(),
        })
    }

    /// From now on these keys open, and the current one seals. Values under a key that is not among them do not open any more.
    pub fn replace(
        &self,
        keys: impl IntoIterator<Item = (u32, [u8; KEY_BYTES])>,
        current: u32,
    ) -> Result<(), ValueError> {
        let keys = Keys::new(keys, current, self.random.as_ref())?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        locked(&self.unwrapped).clear();
        Ok(())
    }

    fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.keys().current
    }

    /// The ids of all keys.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        self.keys().all.keys().copied().collect()
    }

    /// Encrypts a value for one store key.
    pub fn seal(&self, store_key: &[u8], value: &[u8]) -> Result<Bytes, ValueError> {
        let keys = self.keys();
        let (key, wrapped) = keys.data_key(self.random.as_ref())?;
        let nonce = random_nonce(self.random.as_ref())?;
        let mut stored = Vec::with_capacity(SEALED_OVERHEAD + value.len());
        stored.push(SEALED);
        stored.extend_from_slice(&keys.current.to_be_bytes());
        stored.extend_from_slice(&wrapped);
        stored.extend_from_slice(&nonce);
        let body = stored.len();
        stored.extend_from_slice(value);
        let mark = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(store_key),
                &mut stored[body..],
            )
            .map_err(|_| ValueError::NotAuthentic)?;
        stored.extend_from_slice(mark.as_ref());
        Ok(Bytes::from(stored))
    }

    /// The value that was stored under a store key. A plain one is returned without being copied.
    pub fn open(&self, store_key: &[u8], stored: &Bytes) -> Result<Bytes, ValueError> {
        let truncated = ValueError::Truncated(stored.len());
        let Some((tag, _)) = stored.split_first_chunk::<TAG_BYTES>() else {
            return Err(truncated);
        };
        match tag[0] {
            PLAIN => Ok(stored.slice(TAG_BYTES..)),
            SEALED if stored.len() < SEALED_OVERHEAD => Err(truncated),
            SEALED => {
                let id = u32::from_be_bytes([tag[1], tag[2], tag[3], tag[4]]);
                self.open_sealed(store_key, id, &stored[TAG_BYTES..])
            }
            other => Err(ValueError::UnknownEncoding(other)),
        }
    }

    /// The id of the key that a stored value needs; `None`: it is plain. Tells what is left to do after a rotation.
    pub fn key_of(stored: &[u8]) -> Result<Option<u32>, ValueError> {
        match stored.split_first_chunk::<TAG_BYTES>() {
            Some(([PLAIN, ..], _)) => Ok(None),
            Some(([SEALED, id @ ..], _)) => Ok(Some(u32::from_be_bytes(*id))),
            Some(([other, ..], _)) => Err(ValueError::UnknownEncoding(*other)),
            None => Err(ValueError::Truncated(stored.len())),
        }
    }

    fn open_sealed(&self, store_key: &[u8], id: u32, sealed: &[u8]) -> Result<Bytes, ValueError> {
        let keys = self.keys();
        let wrapping = keys.all.get(&id).ok_or(ValueError::UnknownKey(id))?;
        let short = || ValueError::Truncated(TAG_BYTES + sealed.len());
        let (wrapped, rest) = sealed.split_first_chunk::<WRAPPED_BYTES>().ok_or_else(short)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(short)?;
        let key = self.unwrap_data_key(wrapping, id, wrapped)?;
        let mut value = ciphertext.to_vec();
        let length = key
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(store_key),
                &mut value,
            )
            .map_err(|_| ValueError::NotAuthentic)?
            .len();
        value.truncate(length);
        Ok(Bytes::from(value))
    }

    fn unwrap_data_key(
        &self,
        wrapping: &LessSafeKey,
        id: u32,
        wrapped: &[u8; WRAPPED_BYTES],
    ) -> Result<Arc<LessSafeKey>, ValueError> {
        if let Some(key) = locked(&self.unwrapped).get(wrapped) {
            return Ok(Arc::clone(key));
        }
        let (nonce, body) = wrapped
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(ValueError::NotAuthentic)?;
        let mut body = body.to_vec();
        let bytes = wrapping
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                wrapping_context(id),
                &mut body,
            )
            .map_err(|_| ValueError::NotAuthentic)?;
        let key = Arc::new(aes_key(bytes)?);
        let mut unwrapped = locked(&self.unwrapped);
        if unwrapped.len() >= CACHED_DATA_KEYS {
            unwrapped.clear();
        }
        unwrapped.insert(*wrapped, Arc::clone(&key));
        Ok(key)
    }
}

impl fmt::Debug for KeyRing {
    /// Ids only: keys never reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("keys", &self.ids())
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

impl DataKey {
    fn create(wrapping: &LessSafeKey, id: u32, random: &dyn SecureRandom) -> Result<Self, ValueError> {
        let mut bytes = [0; KEY_BYTES];
        random.fill(&mut bytes).map_err(|_| ValueError::NoRandomness)?;
        let key = Arc::new(aes_key(&bytes)?);
        let nonce = random_nonce(random)?;
        let mark = wrapping
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                wrapping_context(id),
                &mut bytes,
            )
            .map_err(|_| ValueError::NotAuthentic)?;
        let mut wrapped = [0; WRAPPED_BYTES];
        wrapped[..NONCE_LEN].copy_from_slice(&nonce);
        wrapped[NONCE_LEN..NONCE_LEN + KEY_BYTES].copy_from_slice(&bytes);
        wrapped[NONCE_LEN + KEY_BYTES..].copy_from_slice(mark.as_ref());
        Ok(Self {
            key,
            wrapped,
            uses_left: DATA_KEY_USES,
        })
    }
}

/// What a wrapped data key is bound to, so that it cannot be taken for a value or for another key's.
fn wrapping_context(id: u32) -> Aad<[u8; 20]> {
    let mut context = *b"fairway data key\0\0\0\0";
    context[16..].copy_from_slice(&id.to_be_bytes());
    Aad::from(context)
}

fn aes_key(bytes: &[u8]) -> Result<LessSafeKey, ValueError> {
    UnboundKey::new(&AES_256_GCM, bytes)
        .map(LessSafeKey::new)
        .map_err(|_| ValueError::NotAuthentic)
}

fn random_nonce(random: &dyn SecureRandom) -> Result<[u8; NONCE_LEN], ValueError> {
    let mut nonce = [0; NONCE_LEN];
    random.fill(&mut nonce).map_err(|_| ValueError::NoRandomness)?;
    Ok(nonce)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
