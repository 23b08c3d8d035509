//! The keys that an issuer publishes (RFC 7517, 7518, 8037), and verifying with them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::Value;

use crate::jws::Unverified;

/// The most keys of an issuer.
const MAX_KEYS: usize = 256;
/// The longest name of a kind of keys that is told.
const MAX_NAME: usize = 32;

/// Why a document is no key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the document has no list of keys")]
pub struct KeysError;

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
    Ed25519(Vec<u8>),
}

/// The signing keys of a JWKS; keys of unknown kinds are left out, and so are shared secrets (`oct`).
pub fn keys(jwks: &Value) -> Result<Vec<Key>, KeysError> {
    let keys = jwks.get("keys").and_then(Value::as_array).ok_or(KeysError)?;
    Ok(keys.iter().take(MAX_KEYS).filter_map(key).collect())
}

/// The kinds of the signing keys that [`keys`] leaves out, such as `EC P-521`; at most eight.
pub fn skipped(jwks: &Value) -> Vec<String> {
    let keys = jwks.get("keys").and_then(Value::as_array).into_iter().flatten();
    let others = keys
        .take(MAX_KEYS)
        .filter(|it| is_for_signatures(it) && key(it).is_none());
    let name = |jwk: &Value, field: &str| -> String {
        let name = jwk[field].as_str().unwrap_or_default();
        let printable = name.chars().filter(char::is_ascii_graphic);
        printable.take(MAX_NAME).collect()
    };
    let kinds = others.map(|jwk| format!("{} {}", name(jwk, "kty"), name(jwk, "crv")));
    let kinds: BTreeSet<String> = kinds.map(|kind| kind.trim().to_owned()).collect();
    kinds.into_iter().take(8).collect()
}

fn is_for_signatures(jwk: &Value) -> bool {
    jwk["use"].as_str().is_none_or(|used| used == "sig")
}

fn key(jwk: &Value) -> Option<Key> {
    if !is_for_signatures(jwk) {
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
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
        _ => return None,
    };
    Some(Key {
        id: jwk["kid"].as_str().map(str::to_owned),
        algorithm: jwk["alg"].as_str().map(str::to_owned),
        material,
    })
}

impl Key {
    pub(crate) fn may_have_signed(&self, token: &Unverified<'_>) -> bool {
        let same_id = token.key_id.is_none() || self.id.is_none() || self.id == token.key_id;
        same_id && self.algorithm.as_ref().is_none_or(|a| *a == token.algorithm)
    }

    /// The algorithm must fit the key: a token does not choose how it is verified.
    pub(crate) fn verifies(&self, token: &Unverified<'_>) -> bool {
        let (message, signature) = (token.signed.as_bytes(), &token.signature);
        let with = |algorithm, key| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature)
                .is_ok()
        };
        match (&self.material, token.algorithm.as_str()) {
            (Material::Rsa { modulus, exponent }, algorithm) => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                rsa(algorithm).is_some_and(|parameters| key.verify(parameters, message, signature).is_ok())
            }
            (Material::P256(point), "ES256") => with(&ECDSA_P256_SHA256_FIXED, point),
            (Material::P384(point), "ES384") => with(&ECDSA_P384_SHA384_FIXED, point),
            (Material::Ed25519(point), "EdDSA") => UnparsedPublicKey::new(&ED25519, point)
                .verify(message, signature)
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
