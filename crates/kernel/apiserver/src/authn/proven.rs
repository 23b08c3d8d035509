//! Tokens whose signature has been checked already.
//!
//! Controllers send the same token with every request, and checking an elliptic-curve signature is a fifth of what such a request
//! costs. That a text carries our signature never changes while the keys stay, so the claims are remembered by the digest of the
//! whole text. Everything that does change is checked each time: the hour, the account, what the token is bound to.

use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde_json::Value;

use crate::generations::{Bound, Generations};

/// Tokens that are remembered, twice: those in use, and those that were until lately.
const KEEP: usize = 512;

type Digest = [u8; SHA256_OUTPUT_LEN];

/// Claims by the digest of their token.
#[derive(Default)]
pub(super) struct Proven(Mutex<Generations<Digest, Value>>);

const BOUND: Bound<Value> = Bound {
    keep: KEEP,
    weigh: |_| 1,
};

impl Proven {
    /// The claims of a token: remembered, or else as `check` finds them. Nothing is remembered of a token that it refuses.
    pub(super) fn get_or<E>(
        &self,
        token: &str,
        check: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Arc<Value>, E> {
        let Ok(id) = Digest::try_from(digest(&SHA256, token.as_bytes()).as_ref()) else {
            return check().map(Arc::new);
        };
        if let Some(claims) = self.with(|kept| kept.get(id, &BOUND)) {
            return Ok(claims);
        }
        let claims = Arc::new(check()?);
        self.with(|kept| kept.add(id, &claims, &BOUND));
        Ok(claims)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Generations<Digest, Value>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_checked_once_and_a_refused_one_always() {
        let proven = Proven::default();
        let mut checks = 0;
        for _ in 0..3 {
            let claims = proven.get_or("a", || {
                checks += 1;
                Ok::<_, ()>(json!({"sub": "a"}))
            });
            assert_eq!(claims.unwrap()["sub"], "a");
            let refused = proven.get_or("b", || Err::<Value, _>("no"));
            assert_eq!(refused, Err("no"));
        }
        assert_eq!(checks, 1);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_used_stays() {
        let proven = Proven::default();
        let mut checks_of_used = 0;
        for i in 0..10 * KEEP {
            let _ = proven.get_or(&i.to_string(), || Ok::<_, ()>(Value::Null));
            let _ = proven.get_or("used", || {
                checks_of_used += 1;
                Ok::<_, ()>(Value::Null)
            });
        }
        let kept = proven.with(|kept| kept.len());
        assert!(kept <= 2 * KEEP + 2, "{kept}");
        assert_eq!(checks_of_used, 1);
    }
}
