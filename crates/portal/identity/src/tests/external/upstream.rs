//! A provider on this machine, without TLS, that says of somebody what a test wants, and lies where it wants that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_portal_realm::keys::PublicKey;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::realms::now;

/// What it knows the realm as.
pub(super) const CLIENT: &str = "fairway";

/// What it does instead of what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tale {
    Unsigned,
    SharedSecret,
    OtherKey,
    Endless,
    NoToken,
    Nonsense,
    Elsewhere,
    Error,
}

#[derive(Default)]
struct Says {
    claims: Value,
    tale: Option<Tale>,
    redeemed: String,
    basic: String,
}

pub(super) struct Upstream {
    pub(super) issuer: String,
    says: Arc<Mutex<Says>>,
    calls: Arc<AtomicUsize>,
}

fn pair() -> (EcdsaKeyPair, PublicKey) {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let public = PublicKey::new(pair.public_key().as_ref()).unwrap();
    (pair, public)
}

impl Upstream {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realms/acme", listener.local_addr().unwrap());
        let upstream = Self {
            issuer: issuer.clone(),
            says: Arc::default(),
            calls: Arc::default(),
        };
        let (says, calls) = (Arc::clone(&upstream.says), Arc::clone(&upstream.calls));
        tokio::spawn(async move {
            let (own, other) = (pair(), pair());
            while let Ok((stream, _)) = listener.accept().await {
                calls.fetch_add(1, Ordering::Relaxed);
                answer(stream, &issuer, &says, (&own, &other)).await;
            }
        });
        upstream
    }

    /// What its next tokens say beside what all say.
    pub(super) fn will_say(&self, claims: Value) {
        self.says.lock().unwrap().claims = claims;
    }

    pub(super) fn will_lie(&self, tale: Tale) {
        self.says.lock().unwrap().tale = Some(tale);
    }

    /// The form that the last code came in.
    pub(super) fn redeemed(&self) -> String {
        self.says.lock().unwrap().redeemed.clone()
    }

    /// How whoever redeemed it has shown who it is.
    pub(super) fn basic(&self) -> String {
        self.says.lock().unwrap().basic.clone()
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

type Keys<'a> = (&'a (EcdsaKeyPair, PublicKey), &'a (EcdsaKeyPair, PublicKey));

async fn answer(mut stream: TcpStream, issuer: &str, says: &Mutex<Says>, keys: Keys<'_>) {
    let (head, body) = read(&mut stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.strip_prefix("/realms/acme").unwrap_or_default();
    let (status, text) = match path {
        "/.well-known/openid-configuration" => (200, configuration(issuer).to_string()),
        "/certs" => (200, json!({"keys": [keys.0.1.jwk()]}).to_string()),
        "/token" => {
            let mut says = says.lock().unwrap();
            says.redeemed = body;
            let basic = head.lines().find_map(|line| line.strip_prefix("Authorization: "));
            says.basic = basic.unwrap_or_default().to_owned();
            token(issuer, &says, keys)
        }
        _ => (404, "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    // Whoever has read enough goes away.
    let _ = stream
        .write_all(&[head.as_bytes(), text.as_bytes()].concat())
        .await;
}

async fn read(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.map_or(0, |it| it.parse().unwrap());
            if body.len() >= length {
                return (head.to_owned(), body.to_owned());
            }
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await.unwrap_or(0) {
            0 => return (text, String::new()),
            count => bytes.extend_from_slice(&more[..count]),
        }
    }
}

fn configuration(issuer: &str) -> Value {
    json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/certs"),
    })
}

fn token(issuer: &str, says: &Says, (own, other): Keys<'_>) -> (u16, String) {
    let mut claims = json!({"iss": issuer, "aud": CLIENT, "exp": now() + 60, "iat": now()});
    for (claim, value) in says.claims.as_object().unwrap() {
        claims[claim] = value.clone();
    }
    let signed = |algorithm: &str| {
        let header = json!({"alg": algorithm, "kid": own.1.id, "typ": "JWT"});
        format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        )
    };
    let by = |pair: &EcdsaKeyPair| {
        let text = signed("ES256");
        let signature = pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", B64.encode(signature))
    };
    let token = match says.tale {
        Some(Tale::Unsigned) => format!("{}.", signed("none")),
        Some(Tale::SharedSecret) => {
            let (key, text) = (hmac::Key::new(hmac::HMAC_SHA256, &own.1.point), signed("HS256"));
            format!("{text}.{}", B64.encode(hmac::sign(&key, text.as_bytes())))
        }
        Some(Tale::OtherKey) => by(&other.0),
        _ => by(&own.0),
    };
    let whole = json!({"id_token": token, "access_token": "a", "token_type": "Bearer"}).to_string();
    match says.tale {
        Some(Tale::Endless) => (
            200,
            format!("{{\"x\":\"{}\",{}", "y".repeat(300_000), &whole[1..]),
        ),
        Some(Tale::NoToken) => (200, "{}".to_owned()),
        Some(Tale::Nonsense) => (200, "<html>".to_owned()),
        Some(Tale::Elsewhere) => (307, whole),
        Some(Tale::Error) => (400, json!({"error": "invalid_grant"}).to_string()),
        _ => (200, whole),
    }
}
