//! Keys of a realm: which one signs, which verify, which go.
//!
//! A new key signs from the moment when it is made; clients that meet an unknown key read the list again. A key that was retired is
//! published until the last token that it signed has expired.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::time;

/// Seconds after which a key is replaced.
pub const ROTATION: i64 = 90 * 86_400;
/// Seconds for which a retired key is published: longer than any token that it can have signed lives.
pub const PUBLISHED: i64 = 2 * 3_600;

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// How tokens name it.
    pub id: String,
    /// An uncompressed point of P-256.
    pub point: Vec<u8>,
}

impl PublicKey {
    /// From its point; none if it is not one.
    pub fn new(point: &[u8]) -> Option<Self> {
        let is_point = point.len() == 65 && point[0] == 4;
        is_point.then(|| Self {
            id: B64.encode(ring::digest::digest(&ring::digest::SHA256, point)),
            point: point.to_vec(),
        })
    }

    /// As it is published.
    pub fn jwk(&self) -> Value {
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": B64.encode(&self.point[1..33]), "y": B64.encode(&self.point[33..65]),
        })
    }

    /// The claims of a token that this key has signed and that is of this type; none if it has not, or is not.
    pub fn verified(&self, token: &str, typ: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Value = serde_json::from_slice(&B64.decode(header).ok()?).ok()?;
        if header["alg"] != "ES256" || header["kid"] != self.id.as_str() || header["typ"] != typ {
            return None;
        }
        let signature = B64.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point)
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        serde_json::from_slice(&B64.decode(claims).ok()?).ok()
    }
}

/// How a token names its key; not believed.
pub fn key_of(token: &str) -> Option<String> {
    let header: Value = serde_json::from_slice(&B64.decode(token.split('.').next()?).ok()?).ok()?;
    header["kid"].as_str().map(str::to_owned)
}

/// What a realm's Credential says of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// What verifies.
    pub public: PublicKey,
    /// When it was made.
    pub created: i64,
    /// When another took its place.
    pub retired: Option<i64>,
}

/// The keys of a Credential, the newest first. What is damaged is left out.
pub fn read(credential: &Value) -> Vec<KeyEntry> {
    let entries = credential.pointer("/spec/keys").and_then(Value::as_array);
    let entry = |it: &Value| {
        Some(KeyEntry {
            public: PublicKey::new(&STANDARD.decode(it["publicKey"].as_str()?).ok()?)?,
            created: it["createdAt"].as_str().and_then(time::read).unwrap_or(0),
            retired: it["retiredAt"].as_str().and_then(time::read),
        })
    };
    entries
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(entry)
        .collect()
}

/// The keys that tokens are verified with now.
pub fn verifying(keys: &[KeyEntry], now: i64) -> impl Iterator<Item = &PublicKey> {
    keys.iter()
        .filter(move |key| key.retired.is_none_or(|at| now < at + PUBLISHED))
        .map(|key| &key.public)
}

/// The key that signs now; none if one must be made.
pub fn signing(keys: &[KeyEntry], now: i64) -> Option<&KeyEntry> {
    keys.iter()
        .find(|key| key.retired.is_none() && now < key.created + ROTATION)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    use super::*;

    fn pair() -> (EcdsaKeyPair, PublicKey) {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let public = PublicKey::new(pair.public_key().as_ref()).unwrap();
        (pair, public)
    }

    fn token(pair: &EcdsaKeyPair, header: &Value) -> String {
        let signed = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(r#"{"sub":"x"}"#)
        );
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", B64.encode(signature))
    }

    #[test]
    fn a_token_is_of_one_key_and_one_type() {
        let ((pair, public), (other, _)) = (self::pair(), self::pair());
        let right = json!({"alg": "ES256", "kid": public.id, "typ": "at+jwt"});
        let good = token(&pair, &right);
        assert_eq!(public.verified(&good, "at+jwt").unwrap()["sub"], "x");
        assert_eq!(key_of(&good).unwrap(), public.id);
        let changed = |field: &str, value: &str| {
            let mut header = right.clone();
            header[field] = json!(value);
            token(&pair, &header)
        };
        for (what, token) in [
            ("of another key", token(&other, &right)),
            ("an ID token", changed("typ", "JWT")),
            ("without a signature", changed("alg", "none")),
            ("with a shared secret", changed("alg", "HS256")),
            ("of an unknown key", changed("kid", "x")),
            ("cut", good[..good.len() - 4].to_owned()),
            (
                "other claims",
                good.replacen(&B64.encode(r#"{"sub":"x"}"#), &B64.encode(r#"{"sub":"y"}"#), 1),
            ),
            ("nonsense", "a.b.c".to_owned()),
            ("nothing", String::new()),
        ] {
            assert_eq!(public.verified(&token, "at+jwt"), None, "{what}");
        }
        let published = public.jwk();
        assert_eq!(published["x"].as_str().unwrap().len(), 43);
    }

    #[test]
    fn keys_are_replaced_and_published_while_their_tokens_live() {
        let entry = |created, retired| KeyEntry {
            public: pair().1,
            created,
            retired,
        };
        let keys = [entry(1000, None), entry(0, Some(1000))];
        assert_eq!(signing(&keys, 1001), Some(&keys[0]));
        assert_eq!(signing(&keys, 1000 + ROTATION), None);
        assert_eq!(verifying(&keys, 1000 + PUBLISHED - 1).count(), 2);
        assert_eq!(verifying(&keys, 1000 + PUBLISHED).count(), 1);
        assert_eq!(signing(&[], 0), None);
        assert_eq!(read(&json!({"spec": {"keys": [{"publicKey": "AAAA"}, {}]}})), []);
    }
}
