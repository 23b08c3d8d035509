//! A compact JWS: three parts, of which nothing is believed before a key has verified them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_text_yaml::parse_json;
use serde_json::Value;

use crate::jwks::Key;

/// Longest token that is looked at.
const MAX_TOKEN: usize = 32 * 1024;
/// How deep claims may nest.
const MAX_DEPTH: usize = 32;

/// Why a text is no token that could be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedToken {
    #[error("the token is longer than {MAX_TOKEN} bytes")]
    TooLong,
    #[error("the token is not three parts in base64url separated by dots")]
    Parts,
    #[error("the token's {0} is not a JSON object, or names a field twice")]
    Json(&'static str),
    #[error("the token's header has extensions that must be understood (crit)")]
    Critical,
    #[error("the token's header names no algorithm")]
    Algorithm,
}

/// A token of which nothing has been verified.
#[derive(Debug)]
pub struct Unverified<'a> {
    pub(crate) signed: &'a str,
    pub(crate) signature: Vec<u8>,
    /// Its algorithm.
    pub algorithm: String,
    /// The key that it names.
    pub key_id: Option<String>,
    /// Its claims.
    pub claims: Value,
}

impl<'a> Unverified<'a> {
    /// Takes a compact JWS apart. A field that is named twice is refused: two readers could believe two values.
    pub fn parse(token: &'a str) -> Result<Self, MalformedToken> {
        if token.len() > MAX_TOKEN {
            return Err(MalformedToken::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(MalformedToken::Parts)?;
        let (header, claims) = signed.split_once('.').ok_or(MalformedToken::Parts)?;
        let json = |part: &str, name| -> Result<Value, MalformedToken> {
            let bytes = B64.decode(part).map_err(|_| MalformedToken::Parts)?;
            match parse_json(&bytes, MAX_DEPTH) {
                Ok((value, duplicates)) if value.is_object() && duplicates.is_empty() => Ok(value),
                _ => Err(MalformedToken::Json(name)),
            }
        };
        let header = json(header, "header")?;
        if header.get("crit").is_some() {
            return Err(MalformedToken::Critical);
        }
        Ok(Self {
            signed,
            signature: B64.decode(signature).map_err(|_| MalformedToken::Parts)?,
            algorithm: header["alg"]
                .as_str()
                .ok_or(MalformedToken::Algorithm)?
                .to_owned(),
            key_id: header["kid"].as_str().map(str::to_owned),
            claims: json(claims, "payload")?,
        })
    }

    /// The issuer that it claims.
    pub fn issuer(&self) -> &str {
        self.claims["iss"].as_str().unwrap_or("")
    }
}

/// Whether one of the keys may have signed the token; if not, the issuer may have newer ones.
pub fn has_key_for(token: &Unverified<'_>, keys: &[Key]) -> bool {
    keys.iter().any(|key| key.may_have_signed(token))
}

/// Whether one of the keys signed the token.
pub fn is_signed(token: &Unverified<'_>, keys: &[Key]) -> bool {
    keys.iter()
        .any(|key| key.may_have_signed(token) && key.verifies(token))
}

#[cfg(test)]
mod tests;
