//! Signed tokens of others (JWS, JWT): taking them apart, verifying them with the keys that their issuer publishes (JWKS), and
//! judging who made them, for whom and when.
//!
//! A token never chooses how it is verified: the algorithm must fit the kind of key. There are no shared secrets and no `none`
//! here, so a public key cannot be taken for a password. Everything is a function of values: keys are fetched and clocks read
//! elsewhere. The crate must not know what claims mean beyond those that say whether a token is good.

mod claims;
mod jwks;
mod jws;

pub use claims::{ClaimError, Expected, judge};
pub use jwks::{Key, KeysError, keys, skipped};
pub use jws::{MalformedToken, Unverified, has_key_for, is_signed};
