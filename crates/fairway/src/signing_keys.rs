//! The keys of service-account tokens on disk: one that signs, and what is left of those before it.
//!
//! `keys/service-account.pk8` signs. `keys/service-account.retired.json` has the public keys that signed before, each with
//! the time when its last token expires; `keys/service-account.until.json` is that time for the key that signs,
//! written before a token that lives longer is issued. A rotation first writes the old key down as retired and then puts the
//! new one in its place: after a crash between the two, the old key still signs, and nothing is lost.

use anyhow::{Context, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use fairway_kernel_apiserver::authn::token::{PublicKey, Tokens};
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, read_if_there, write_private};

/// How long tokens of a key may live of which nothing was written down.
const UNKNOWN: i64 = 366 * 86_400;

/// A key that does not sign any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retired {
    /// Its point, base64.
    public_key: String,
    /// When it was retired, in Unix seconds.
    pub retired: i64,
    /// When its last token expires.
    pub until: i64,
}

impl Retired {
    /// The key itself.
    pub(crate) fn key(&self) -> anyhow::Result<PublicKey> {
        let point = B64.decode(&self.public_key);
        Ok(PublicKey::new(
            &point.context("a retired signing key is damaged")?,
        ))
    }
}

#[derive(Serialize, Deserialize)]
struct Until {
    key: String,
    until: i64,
}

/// The key that signs (PKCS#8); made if there is none.
pub(crate) fn load_or_create(data: &DataDir) -> anyhow::Result<Vec<u8>> {
    if let Some(key) = read_if_there(&data.token_key())? {
        return Ok(key);
    }
    let key = Tokens::generate_key().map_err(|e| anyhow!(e))?;
    write_private(&data.token_key(), &key)?;
    Ok(key)
}

/// Those that signed before.
pub(crate) fn retired(data: &DataDir) -> anyhow::Result<Vec<Retired>> {
    let path = data.retired_token_keys();
    match read_if_there(&path)? {
        None => Ok(Vec::new()),
        Some(content) => {
            serde_json::from_slice(&content).with_context(|| format!("{} is damaged", path.display()))
        }
    }
}

fn write_retired(data: &DataDir, keys: &[Retired]) -> anyhow::Result<()> {
    write_private(&data.retired_token_keys(), &serde_json::to_vec_pretty(keys)?)
}

/// Writes down that no token of a key is valid after this time.
pub(crate) fn remember(data: &DataDir, key: &str, until: i64) -> anyhow::Result<()> {
    let until = Until {
        key: key.to_owned(),
        until: until.max(remembered(data, key)?.unwrap_or(until)),
    };
    write_private(&data.token_key_until(), &serde_json::to_vec(&until)?)
}

fn remembered(data: &DataDir, key: &str) -> anyhow::Result<Option<i64>> {
    let path = data.token_key_until();
    let Some(content) = read_if_there(&path)? else {
        return Ok(None);
    };
    let until: Until =
        serde_json::from_slice(&content).with_context(|| format!("{} is damaged", path.display()))?;
    Ok((until.key == key).then_some(until.until))
}

/// A new key signs from now on, as soon as the server has read it.
pub(crate) fn rotate(data: &DataDir, now: i64) -> anyhow::Result<()> {
    let old = PublicKey::of(&load_or_create(data)?).map_err(|e| anyhow!(e))?;
    let until = remembered(data, &old.id)?.unwrap_or(now + UNKNOWN);
    let mut keys = retired(data)?;
    let public_key = B64.encode(&old.point);
    keys.retain(|key| key.public_key != public_key);
    keys.push(Retired {
        public_key,
        retired: now,
        until,
    });
    write_retired(data, &keys)?;
    let new = Tokens::generate_key().map_err(|e| anyhow!(e))?;
    write_private(&data.token_key(), &new)
}

/// A server may have issued a longer token with the old key after a rotation was written down: then that key is kept longer.
pub(crate) fn extend(data: &DataDir, key: &str, until: i64) -> anyhow::Result<()> {
    let mut keys = retired(data)?;
    let mut longer = false;
    for retired in &mut keys {
        if retired.until < until && retired.key()?.id == key {
            retired.until = until;
            longer = true;
        }
    }
    if longer {
        write_retired(data, &keys)?;
    }
    Ok(())
}

/// Drops keys whose last token has expired. Returns how many that were.
pub(crate) fn prune(data: &DataDir, now: i64) -> anyhow::Result<usize> {
    let mut keys = retired(data)?;
    let before = keys.len();
    keys.retain(|key| key.until > now);
    if keys.len() < before {
        write_retired(data, &keys)?;
    }
    Ok(before - keys.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_keeps_the_old_key_until_its_last_token_has_expired() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::find(Some(directory.path())).unwrap();
        data.create().unwrap();
        let first = PublicKey::of(&load_or_create(&data).unwrap()).unwrap();
        remember(&data, &first.id, 5_000).unwrap();
        remember(&data, &first.id, 4_000).unwrap();
        rotate(&data, 1_000).unwrap();
        let second = PublicKey::of(&load_or_create(&data).unwrap()).unwrap();
        assert_ne!(first, second);
        let kept = retired(&data).unwrap();
        assert_eq!((kept[0].key().unwrap(), kept[0].until), (first.clone(), 5_000));
        extend(&data, &first.id, 6_000).unwrap();
        // What is known of one key is not taken for another's.
        rotate(&data, 2_000).unwrap();
        let kept = retired(&data).unwrap();
        assert_eq!(kept[1].until, 2_000 + UNKNOWN);
        assert_eq!(prune(&data, 5_999).unwrap(), 0);
        assert_eq!(prune(&data, 6_000).unwrap(), 1);
        assert_eq!(retired(&data).unwrap()[0].key().unwrap(), second);
    }
}
