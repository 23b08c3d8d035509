//! Real signatures by every kind of key, and what strangers try.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

use super::*;
use crate::jwks::keys;

enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
}

fn rsa() -> Signer {
    let key = include_bytes!("../../testdata/rsa-2048.pk8");
    Signer::Rsa(RsaKeyPair::from_pkcs8(key).unwrap())
}

fn ec(algorithm: &'static EcdsaSigningAlgorithm, curve: &'static str) -> Signer {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    Signer::Ec(
        EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(),
        curve,
    )
}

fn p256() -> Signer {
    ec(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")
}

fn p384() -> Signer {
    ec(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")
}

fn ed() -> Signer {
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Signer::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
}

impl Signer {
    fn jwk(&self, id: &str) -> Value {
        match self {
            Signer::Rsa(key) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "kid": id, "n": B64.encode(public.n), "e": B64.encode(public.e)})
            }
            Signer::Ec(key, curve) => {
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "kid": id, "x": B64.encode(x), "y": B64.encode(y)})
            }
            Signer::Ed(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": B64.encode(key.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let algorithm = serde_json::from_str::<Value>(header).unwrap()["alg"].clone();
        let message = format!("{}.{}", B64.encode(header), B64.encode(claims));
        let random = SystemRandom::new();
        let signature = match self {
            Signer::Rsa(key) => {
                let padding: &'static dyn RsaEncoding = match algorithm.as_str().unwrap() {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(padding, &random, message.as_bytes(), &mut signature)
                    .unwrap();
                signature
            }
            Signer::Ec(key, _) => key.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Signer::Ed(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", B64.encode(signature))
    }
}

fn verifies(token: &str, jwks: &Value) -> bool {
    let keys = keys(jwks).unwrap();
    Unverified::parse(token).is_ok_and(|token| has_key_for(&token, &keys) && is_signed(&token, &keys))
}

#[test]
fn every_kind_of_key_verifies_its_own_algorithms_and_no_other() {
    let algorithms: [(Signer, &[&str]); 4] = [
        (rsa(), &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]),
        (p256(), &["ES256"]),
        (p384(), &["ES384"]),
        (ed(), &["EdDSA"]),
    ];
    let every = [
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "HS256", "none",
    ];
    for (signer, own) in &algorithms {
        let jwks = json!({"keys": [signer.jwk("k")]});
        for algorithm in every {
            let token = signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"k"}}"#), "{}");
            assert_eq!(verifies(&token, &jwks), own.contains(&algorithm), "{algorithm}");
        }
        for (other, _) in &algorithms {
            let foreign = json!({"keys": [other.jwk("k")]});
            let token = signer.sign(&format!(r#"{{"alg":"{}","kid":"k"}}"#, own[0]), "{}");
            assert_eq!(
                verifies(&token, &foreign),
                signer.jwk("k") == other.jwk("k"),
                "{}",
                own[0]
            );
        }
    }
}

#[test]
fn a_public_key_is_no_password() {
    // The classic confusion: the modulus, or the whole published key, as the secret of an HMAC.
    let signer = rsa();
    let jwk = signer.jwk("k");
    let message = format!(
        "{}.{}",
        B64.encode(r#"{"alg":"HS256","kid":"k"}"#),
        B64.encode(r#"{"sub":"root"}"#)
    );
    for secret in [jwk["n"].as_str().unwrap().to_owned(), jwk.to_string()] {
        for bytes in [
            secret.as_bytes().to_vec(),
            B64.decode(&secret).unwrap_or_default(),
        ] {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &bytes);
            let tag = ring::hmac::sign(&key, message.as_bytes());
            let token = format!("{message}.{}", B64.encode(tag.as_ref()));
            assert!(!verifies(&token, &json!({"keys": [jwk]})));
            let oct = json!({"keys": [{"kty": "oct", "kid": "k", "k": B64.encode(&bytes)}]});
            assert!(keys(&oct).unwrap().is_empty(), "shared secrets are no keys here");
        }
    }
}

#[test]
fn a_key_is_found_by_its_name() {
    let (ours, other) = (p256(), p256());
    let token = ours.sign(r#"{"alg":"ES256","kid":"ours"}"#, r#"{"iss":"https://i"}"#);
    let parsed = Unverified::parse(&token).unwrap();
    assert_eq!(
        (parsed.issuer(), parsed.algorithm.as_str()),
        ("https://i", "ES256")
    );
    let nameless = |signer: &Signer| {
        let mut jwk = signer.jwk("");
        jwk.as_object_mut().unwrap().shift_remove("kid");
        jwk
    };
    for (jwks, known, genuine, why) in [
        (json!({"keys": [ours.jwk("ours")]}), true, true, "its key"),
        (
            json!({"keys": [other.jwk("other")]}),
            false,
            false,
            "another name",
        ),
        (
            json!({"keys": [ours.jwk("other")]}),
            false,
            false,
            "the key under another name",
        ),
        (
            json!({"keys": [other.jwk("ours")]}),
            true,
            false,
            "another key under its name",
        ),
        (
            json!({"keys": [nameless(&other)]}),
            true,
            false,
            "a nameless key is tried",
        ),
        (
            json!({"keys": [nameless(&other), nameless(&ours)]}),
            true,
            true,
            "all of them",
        ),
        (json!({"keys": []}), false, false, "no key"),
    ] {
        let keys = keys(&jwks).unwrap();
        assert_eq!(has_key_for(&parsed, &keys), known, "{why}");
        assert_eq!(is_signed(&parsed, &keys), genuine, "{why}");
    }
    let mut fixed = ours.jwk("ours");
    fixed["alg"] = json!("ES384");
    assert!(
        !verifies(&token, &json!({"keys": [fixed]})),
        "the key is for another algorithm"
    );
    let mut encrypting = ours.jwk("ours");
    encrypting["use"] = json!("enc");
    assert!(
        !verifies(&token, &json!({"keys": [encrypting]})),
        "the key is not for signatures"
    );
    assert!(keys(&json!({"key": []})).is_err());
}

#[test]
fn what_is_no_token_is_refused() {
    let signer = p256();
    let good = signer.sign(r#"{"alg":"ES256"}"#, "{}");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    for (token, why) in [
        (String::new(), MalformedToken::Parts),
        ("a".to_owned(), MalformedToken::Parts),
        ("..".to_owned(), MalformedToken::Json("header")),
        ("a.b.c".to_owned(), MalformedToken::Parts),
        (format!("{good}.more"), MalformedToken::Parts),
        (format!("{signed}.{signature}="), MalformedToken::Parts),
        (format!("{good}{}", "x".repeat(40_000)), MalformedToken::TooLong),
        (
            signer.sign(r#"{"alg":"ES256","crit":["exp"]}"#, "{}"),
            MalformedToken::Critical,
        ),
        (
            signer.sign(r#"{"alg":"ES256","alg":"ES256"}"#, "{}"),
            MalformedToken::Json("header"),
        ),
        (signer.sign(r#"{"alg":7}"#, "{}"), MalformedToken::Algorithm),
        (
            signer.sign(r#"{"alg":"ES256"}"#, r#"{"sub":"a","sub":"root"}"#),
            MalformedToken::Json("payload"),
        ),
        (
            signer.sign(r#"{"alg":"ES256"}"#, r#"{"a":{"b":1,"b":2}}"#),
            MalformedToken::Json("payload"),
        ),
        (
            signer.sign(r#"{"alg":"ES256"}"#, "[]"),
            MalformedToken::Json("payload"),
        ),
        (
            signer.sign(r#"{"alg":"ES256"}"#, &format!(r#"{{"a":{deep}}}"#)),
            MalformedToken::Json("payload"),
        ),
    ] {
        assert_eq!(Unverified::parse(&token).unwrap_err(), why, "{token:.80}");
    }
    // One bit more or less anywhere is another token.
    let jwks = json!({"keys": [signer.jwk("k")]});
    assert!(verifies(&good, &jwks));
    let stripped = format!("{signed}.");
    assert!(!verifies(&stripped, &jwks), "without its signature");
    let zero = format!("{signed}.{}", B64.encode([0u8; 64]));
    assert!(!verifies(&zero, &jwks), "r and s are zero");
}
