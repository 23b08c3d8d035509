//! The installation's own keys, wrapped by a passphrase.
//!
//! The passphrase becomes a key by Argon2id, whose parameters stand beside the ciphertext; the files are then sealed with
//! AES-256-GCM, bound to those parameters and to the digest of everything before them in the backup.

use std::collections::BTreeMap;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use crate::DIGEST_BYTES;
use crate::error::BackupError;

/// What a wrapping costs: 64 MiB and three passes, some tenths of a second.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 1;

/// A backup from a stranger must not cost more than this to try.
const MAX_MEMORY_KIB: u32 = 1024 * 1024;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 16;

/// Randomness for one wrapping, used once.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    /// For the derivation.
    pub salt: [u8; 16],
    /// For the cipher.
    pub nonce: [u8; 12],
}

/// Files of the data directory by their path in it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyFiles(pub BTreeMap<String, Vec<u8>>);

impl std::fmt::Debug for KeyFiles {
    /// Names only: contents are secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Parameters {
    kdf: String,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    cipher: String,
    nonce: String,
}

/// Keys in a backup, not opened yet.
#[derive(Clone, Debug)]
pub struct SealedKeys {
    parameters: Bytes,
    ciphertext: Bytes,
    bound_to: [u8; DIGEST_BYTES],
}

/// Whether a path may stand among the keys: a plain name in `keys` or `pki`.
#[must_use]
pub fn is_key_file(path: &str) -> bool {
    let Some((folder, name)) = path.split_once('/') else {
        return false;
    };
    matches!(folder, "keys" | "pki")
        && !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

impl KeyFiles {
    /// Wraps the files.
    pub(crate) fn seal(
        &self,
        passphrase: &[u8],
        chance: Chance,
        bound_to: &[u8; DIGEST_BYTES],
    ) -> Result<Vec<u8>, BackupError> {
        let parameters = serde_json::to_vec(&Parameters {
            kdf: "argon2id".to_owned(),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: STANDARD.encode(chance.salt),
            cipher: "aes-256-gcm".to_owned(),
            nonce: STANDARD.encode(chance.nonce),
        })
        .unwrap_or_default();
        let encoded: BTreeMap<&String, String> = self
            .0
            .iter()
            .map(|(path, content)| (path, STANDARD.encode(content)))
            .collect();
        let mut sealed = serde_json::to_vec(&encoded).unwrap_or_default();
        let key = derive(passphrase, &chance.salt, MEMORY_KIB, PASSES, LANES)?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(chance.nonce),
            Aad::from(bound(bound_to, &parameters)),
            &mut sealed,
        )
        .map_err(|_| BackupError::Keys("the files are too large to be sealed"))?;
        let length = u32::try_from(parameters.len()).unwrap_or(u32::MAX);
        let mut payload = length.to_be_bytes().to_vec();
        payload.extend_from_slice(&parameters);
        payload.extend_from_slice(&sealed);
        Ok(payload)
    }
}

impl SealedKeys {
    pub(crate) fn read(payload: &Bytes, bound_to: [u8; DIGEST_BYTES]) -> Option<Self> {
        let length: [u8; 4] = payload.get(..4)?.try_into().ok()?;
        let end = 4usize.checked_add(u32::from_be_bytes(length) as usize)?;
        if end > payload.len() {
            return None;
        }
        Some(Self {
            parameters: payload.slice(4..end),
            ciphertext: payload.slice(end..),
            bound_to,
        })
    }

    /// Opens them.
    pub fn open(&self, passphrase: &[u8]) -> Result<KeyFiles, BackupError> {
        let parameters: Parameters = serde_json::from_slice(&self.parameters)
            .map_err(|_| BackupError::Keys("how they were wrapped is not understood"))?;
        if parameters.kdf != "argon2id" || parameters.cipher != "aes-256-gcm" {
            return Err(BackupError::Keys(
                "they are wrapped in a way that this version does not know",
            ));
        }
        let Parameters {
            memory_kib,
            passes,
            lanes,
            ..
        } = parameters;
        if memory_kib > MAX_MEMORY_KIB || passes > MAX_PASSES || lanes > MAX_LANES {
            return Err(BackupError::Keys(
                "opening them would cost more than any backup of Fairway's",
            ));
        }
        let salt = STANDARD.decode(&parameters.salt).unwrap_or_default();
        let nonce: Option<[u8; 12]> = STANDARD
            .decode(&parameters.nonce)
            .ok()
            .and_then(|nonce| nonce.try_into().ok());
        let nonce = nonce.ok_or(BackupError::Keys("their nonce is not whole"))?;
        let key = derive(passphrase, &salt, memory_kib, passes, lanes)?;
        let mut opened = self.ciphertext.to_vec();
        let plain = key
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound(&self.bound_to, &self.parameters)),
                &mut opened,
            )
            .map_err(|_| BackupError::WrongPassphrase)?;
        let encoded: BTreeMap<String, String> = serde_json::from_slice(plain)
            .map_err(|_| BackupError::Keys("what they hold is not understood"))?;
        let mut files = BTreeMap::new();
        for (path, content) in encoded {
            if !is_key_file(&path) {
                return Err(BackupError::Keys(
                    "a file among them has a name that keys do not have",
                ));
            }
            let content = STANDARD
                .decode(content)
                .map_err(|_| BackupError::Keys("a file among them is not whole"))?;
            files.insert(path, content);
        }
        Ok(KeyFiles(files))
    }
}

fn bound(bound_to: &[u8; DIGEST_BYTES], parameters: &[u8]) -> Vec<u8> {
    [bound_to.as_slice(), parameters].concat()
}

fn derive(
    passphrase: &[u8],
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
) -> Result<LessSafeKey, BackupError> {
    let parameters = Params::new(memory_kib, passes, lanes, Some(32))
        .map_err(|_| BackupError::Keys("the parameters of the passphrase are out of range"))?;
    let mut key = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters)
        .hash_password_into(passphrase, salt, &mut key)
        .map_err(|_| BackupError::Keys("the passphrase or its salt cannot be used"))?;
    UnboundKey::new(&AES_256_GCM, &key)
        .map(LessSafeKey::new)
        .map_err(|_| BackupError::Keys("the passphrase's key cannot be used"))
}
