//! Signed tokens of others: taking them apart, and verifying them with the keys that their issuer publishes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;

/// Longest token that is looked at.
const MAX_TOKEN: usize = 32 * 1024;
/// The most keys of an issuer.
const MAX_KEYS: usize = 256;

/// A token of which nothing has been verified.
#[derive(Debug)]
pub struct Unverified<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    /// Its algorithm.
    pub algorithm: String,
    /// The key that it names.
    pub key_id: Option<String>,
    /// Its claims.
    pub claims: Value,
}

impl<'a> Unverified<'a> {
    /// Takes a compact JWS apart.
    pub fn parse(token: &'a str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let json = |part: &str| -> Option<Value> {
            serde_json::from_slice(&B64.decode(part).ok()?)
                .ok()
                .filter(Value::is_object)
        };
        let header = json(header)?;
        // Extensions that must be understood are not.
        if header.get("crit").is_some() {
            return None;
        }
        Some(Self {
            signed,
            signature: B64.decode(signature).ok()?,
            algorithm: header["alg"].as_str()?.to_owned(),
            key_id: header["kid"].as_str().map(str::to_owned),
            claims: json(claims)?,
        })
    }

    /// The issuer that it claims.
    pub fn issuer(&self) -> &str {
        self.claims["iss"].as_str().unwrap_or("")
    }
}

/// A key that an issuer signs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// The signing keys of a JWKS; keys of unknown kinds are left out.
pub fn keys(jwks: &Value) -> Option<Vec<Key>> {
    let keys = jwks.get("keys")?.as_array()?;
    Some(keys.iter().take(MAX_KEYS).filter_map(key).collect())
}

fn key(jwk: &Value) -> Option<Key> {
    if jwk["use"].as_str().is_some_and(|used| used != "sig") {
        return None;
    }
    let bytes = |field: &str| B64.decode(jwk[field].as_str()?).ok();
    let point = |length: usize| -> Option<Vec<u8>> {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == length && y.len() == length).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
    };
    let material = match (jwk["kty"].as_str()?, jwk["crv"].as_str()) {
        ("RSA", _) => Material::Rsa {
            modulus: bytes("n")?,
            exponent: bytes("e")?,
        },
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        _ => return None,
    };
    Some(Key {
        id: jwk["kid"].as_str().map(str::to_owned),
        algorithm: jwk["alg"].as_str().map(str::to_owned),
        material,
    })
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

impl Key {
    fn may_have_signed(&self, token: &Unverified<'_>) -> bool {
        let same_id = token.key_id.is_none() || self.id.is_none() || self.id == token.key_id;
        same_id && self.algorithm.as_ref().is_none_or(|a| *a == token.algorithm)
    }

    /// The algorithm must fit the key: a token does not choose how it is verified.
    fn verifies(&self, token: &Unverified<'_>) -> bool {
        let message = token.signed.as_bytes();
        match (&self.material, token.algorithm.as_str()) {
            (Material::Rsa { modulus, exponent }, algorithm) => {
                let Some(parameters) = rsa(algorithm) else {
                    return false;
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, message, &token.signature).is_ok()
            }
            (Material::P256(point), "ES256") => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message, &token.signature)
                .is_ok(),
            (Material::P384(point), "ES384") => UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point)
                .verify(message, &token.signature)
                .is_ok(),
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    match algorithm {
        "RS256" => Some(&RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Some(&RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Some(&RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Some(&RSA_PSS_2048_8192_SHA256),
        "PS384" => Some(&RSA_PSS_2048_8192_SHA384),
        "PS512" => Some(&RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::token::{Grant, Tokens};

    fn token(tokens: &Tokens) -> String {
        tokens
            .issue(&Grant {
                cluster: "root",
                namespace: "n",
                account: "a",
                uid: "u",
                audiences: vec!["x".to_owned()],
                now: 0,
                lifetime: 600,
                bound: None,
                id: "i",
            })
            .unwrap()
    }

    #[test]
    fn a_signature_is_verified_with_the_key_that_is_named() {
        let make = || Tokens::new(&Tokens::generate_key().unwrap(), "https://i", "https://i/jwks").unwrap();
        let (ours, other) = (make(), make());
        let text = token(&ours);
        let unverified = Unverified::parse(&text).unwrap();
        assert_eq!(
            (unverified.issuer(), unverified.algorithm.as_str()),
            ("https://i", "ES256")
        );
        let (own, foreign) = (keys(&ours.jwks()).unwrap(), keys(&other.jwks()).unwrap());
        assert!(has_key_for(&unverified, &own) && is_signed(&unverified, &own));
        assert!(!has_key_for(&unverified, &foreign) && !is_signed(&unverified, &foreign));
        // A key without an id is tried, and does not fit.
        let mut nameless = other.jwks();
        nameless["keys"][0].as_object_mut().unwrap().shift_remove("kid");
        let nameless = keys(&nameless).unwrap();
        assert!(has_key_for(&unverified, &nameless) && !is_signed(&unverified, &nameless));
    }

    #[test]
    fn a_token_does_not_choose_its_algorithm() {
        let ours = Tokens::new(&Tokens::generate_key().unwrap(), "https://i", "https://i/jwks").unwrap();
        let text = token(&ours);
        let mut jwks = ours.jwks();
        jwks["keys"][0].as_object_mut().unwrap().shift_remove("alg");
        let known = keys(&jwks).unwrap();
        let (_, rest) = text.split_once('.').unwrap();
        for algorithm in ["none", "HS256", "RS256", "ES384"] {
            let forged = format!("{}.{rest}", B64.encode(format!("{{\"alg\":\"{algorithm}\"}}")));
            assert!(
                !is_signed(&Unverified::parse(&forged).unwrap(), &known),
                "{algorithm}"
            );
        }
        let critical = format!("{}.{rest}", B64.encode("{\"alg\":\"ES256\",\"crit\":[\"x\"]}"));
        assert!(Unverified::parse(&critical).is_none());
        for malformed in ["", "a", "a.b.c", "..", &"x".repeat(40_000)] {
            assert!(Unverified::parse(malformed).is_none());
        }
    }
}
