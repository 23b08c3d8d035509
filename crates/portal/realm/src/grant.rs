//! Whether a code or a refresh token becomes tokens, and whether what was offered shows that somebody else has it, too.
//!
//! A code counts once. If it comes a second time, or from another program, the session that came from it is ended: one of the two
//! who had it was a thief (RFC 6749, section 10.5). The same holds for a refresh token that was renewed already (RFC 9700, section
//! 4.14). Whoever offers something that was never right cannot end anybody's session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::secret;
use crate::session::{Kind, Session};
use crate::time;

/// Seconds in which a code must be used.
pub const CODE_LIFE: i64 = 60;

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Tokens.
    Grant,
    /// `invalid_grant`, and nothing else.
    Refuse(&'static str),
    /// `invalid_grant`, and the session ends.
    Revoke(&'static str),
}

/// What a program offers for tokens.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The program, which has shown who it is.
    pub client: &'a str,
    /// The secret part of the code.
    pub secret: &'a str,
    /// Where it says that it got the code.
    pub redirect_uri: &'a str,
    /// PKCE.
    pub verifier: Option<&'a str>,
}

/// Name of the session and secret of a code or a cookie.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let (name, secret) = text.split_once('~')?;
    let is_name = name.len() == 33 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (is_name && !secret.is_empty() && secret.len() <= 64).then_some((name, secret))
}

/// The text of a code or a cookie.
pub fn join(name: &str, secret: &str) -> String {
    format!("{name}~{secret}")
}

/// Judges a code.
pub fn redeem(session: &Session, offer: Offer<'_>, now: i64) -> Outcome {
    let Some(code) = &session.code else {
        return Outcome::Refuse("the code is not known");
    };
    if session.kind != Kind::Grant || !secret::is_kept(&code.digest, offer.secret) {
        return Outcome::Refuse("the code is not known");
    }
    // From here on somebody has the true code.
    if code.redeemed {
        return Outcome::Revoke("the code was used before");
    }
    if session.client != offer.client {
        return Outcome::Revoke("the code was given to another client");
    }
    if time::read(&code.expires_at).is_none_or(|end| now >= end) {
        return Outcome::Revoke("the code has expired");
    }
    if code.redirect_uri != offer.redirect_uri {
        return Outcome::Revoke("redirect_uri is not the one that the code was sent to");
    }
    match (&code.challenge, offer.verifier) {
        (None, None) => {}
        // A verifier for a code without a challenge is a sign that the challenge was taken away (RFC 9700, section 2.1.1).
        (None, Some(_)) => return Outcome::Revoke("the code was asked for without a code_challenge"),
        (Some(_), None) => return Outcome::Revoke("code_verifier is missing"),
        (Some(challenge), Some(verifier)) => {
            if !is_verified(challenge, verifier) {
                return Outcome::Revoke("code_verifier does not fit the code_challenge");
            }
        }
    }
    Outcome::Grant
}

/// Whether a verifier is what a challenge was made of (RFC 7636, section 4.6).
pub fn is_verified(challenge: &str, verifier: &str) -> bool {
    let is_verifier = (43..=128).contains(&verifier.len())
        && verifier
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    let made = B64.encode(digest(&SHA256, verifier.as_bytes()));
    secret::is_equal(challenge.as_bytes(), made.as_bytes()) && is_verifier
}

/// A refresh token: the session, how often it was renewed, and a tag that only the realm can make.
pub fn refresh_token(key: &[u8], session: &str, generation: i64) -> String {
    format!(
        "fwr.{session}.{generation}.{}",
        B64.encode(tag(key, session, generation))
    )
}

fn tag(key: &[u8], session: &str, generation: i64) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, format!("refresh {session} {generation}").as_bytes())
}

/// Session and generation of a refresh token, not yet believed.
pub fn read_refresh(token: &str) -> Option<(&str, i64, &str)> {
    let mut parts = token.strip_prefix("fwr.")?.split('.');
    let (session, generation, tag) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = session.len() == 33
        && session
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_whole = parts.next().is_none() && tag.len() <= 64;
    (is_name && is_whole).then_some((session, generation.parse().ok()?, tag))
}

/// Judges a refresh token whose session was found by its name.
pub fn refresh(session: &Session, name: &str, token: &str, key: &[u8], client: &str, now: i64) -> Outcome {
    let Some((of, generation, offered)) = read_refresh(token) else {
        return Outcome::Refuse("the refresh token is not one");
    };
    let right = B64.encode(tag(key, of, generation));
    if of != name || !secret::is_equal(right.as_bytes(), offered.as_bytes()) {
        return Outcome::Refuse("the refresh token is not known");
    }
    // From here on somebody has a token that was true at some time.
    if session.kind != Kind::Grant || session.is_over(now) {
        return Outcome::Refuse("the session has ended");
    }
    if session.client != client {
        return Outcome::Revoke("the refresh token was given to another client");
    }
    if generation != session.generation {
        return Outcome::Revoke("the refresh token was used before");
    }
    Outcome::Grant
}

#[cfg(test)]
mod tests;
