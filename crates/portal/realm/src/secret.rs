//! Secrets: what is kept of them, and comparing without telling by the time it takes how much was right.
//!
//! Codes, cookies and clients' secrets are 256 random bits, so that one pass of SHA-256 is enough to keep them by; passwords are
//! not, and are kept elsewhere.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use ring::digest::{SHA256, digest as ring_digest};
use ring::hmac;

/// What is kept of a random secret.
pub fn digest(secret: &str) -> String {
    B64.encode(ring_digest(&SHA256, secret.as_bytes()))
}

/// Whether a secret is the one that was kept, whatever the two have in common.
pub fn is_kept(kept: &str, offered: &str) -> bool {
    is_equal(kept.as_bytes(), digest(offered).as_bytes())
}

/// Whether two texts are equal, in a time that depends on their lengths alone.
pub fn is_equal(one: &[u8], other: &[u8]) -> bool {
    // A keyed digest of both: comparing the digests of two texts tells nothing of the texts.
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"comparison");
    let tag = hmac::sign(&key, one);
    one.len() == other.len() && hmac::verify(&key, other, tag.as_ref()).is_ok()
}

/// 32 random bytes as a text.
pub fn text(random: &[u8; 32]) -> String {
    B64.encode(random)
}

/// 16 random bytes as the name of an object.
pub fn name(random: &[u8; 16]) -> String {
    let mut name = String::with_capacity(33);
    name.push('s');
    for byte in random {
        for half in [byte >> 4, byte & 15] {
            name.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    name
}

/// What a form must bring along to show that it came from a page of ours: derived from a cookie that no other site can read or set.
pub fn form_token(cookie: &str) -> String {
    digest(&format!("form:{cookie}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_recognised_by_its_digest() {
        let kept = digest("abc");
        assert!(is_kept(&kept, "abc"));
        for wrong in ["", "ab", "abd", "abcd"] {
            assert!(!is_kept(&kept, wrong), "{wrong}");
        }
        assert!(!is_kept("", ""));
        assert!(
            is_equal(b"", b"") && is_equal(b"a", b"a") && !is_equal(b"a", b"b") && !is_equal(b"a", b"ab")
        );
        assert_ne!(form_token("a"), digest("a"));
    }

    #[test]
    fn names_are_names_of_objects() {
        assert_eq!(name(&[0xa1; 16]), format!("s{}", "a1".repeat(16)));
    }
}
