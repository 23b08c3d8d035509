//! Randomness, all of it from the operating system.

use ring::rand::{SecureRandom as _, SystemRandom};

/// The system has none to give.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandomness;

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// A secret as a text.
pub(crate) fn secret() -> Result<String, NoRandomness> {
    Ok(fairway_portal_realm::secret::text(&bytes()?))
}

/// A name for a session.
pub(crate) fn name() -> Result<String, NoRandomness> {
    Ok(fairway_portal_realm::secret::name(&bytes()?))
}
