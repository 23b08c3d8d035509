//! What the examples that measure policies need around these: an issuer of tokens, whose keys can be fetched, and rules made of
//! policies as they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_gateway_gatekeeper::{Cluster, NoRealms, Outside, Review, RulePlan, Web};
use fairway_gateway_policy::auth::{self, SecretRef};
use fairway_gateway_policy::effective::Effective;
use fairway_gateway_policy::limit;
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_gateway_routes::table::RuleKey;
use fairway_outbound::{Message, Reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// The issuer's documents, and nobody else.
struct World(BTreeMap<String, Value>);

impl Web for World {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Reply, String>> {
        let page = self.0.get(&message.url).map(ToString::to_string);
        async move {
            Ok(Reply {
                status: 200,
                body: page.ok_or("nobody")?.into(),
            })
        }
        .boxed()
    }
}

impl Cluster for World {
    fn secret(&self, _: SecretRef) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("there are none".to_owned()) }.boxed()
    }

    fn review(&self, _: Review) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("nobody reviews".to_owned()) }.boxed()
    }
}

/// An issuer and its tokens.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Self { key, random }
    }

    /// A world in which there is this issuer and nothing else.
    pub(crate) fn outside(&self) -> Outside {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": B64.encode(x), "y": B64.encode(y)});
        let pages = [
            (
                "https://issuer/.well-known/openid-configuration".to_owned(),
                json!({"issuer": "https://issuer", "jwks_uri": "https://issuer/jwks"}),
            ),
            ("https://issuer/jwks".to_owned(), json!({"keys": [key]})),
        ];
        let world = Arc::new(World(pages.into()));
        Outside {
            web: world.clone(),
            cluster: world,
            realms: Arc::new(NoRealms),
        }
    }

    /// A header with a token that says this.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": "k", "typ": "JWT"});
        let message = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = self.key.sign(&self.random, message.as_bytes()).unwrap();
        format!("Bearer {message}.{}", B64.encode(signature.as_ref()))
    }
}

fn effective(kind: Kind, spec: &Value) -> Effective {
    let object = json!({"metadata": {"name": "p", "namespace": "team"}, "spec": spec});
    let policy = Policy::read("root", kind, &object);
    Effective {
        sources: vec![policy.key.clone()],
        rules: policy.rules,
        broken: vec![],
    }
}

/// What policies with these specs mean for a rule.
pub(crate) fn plan(rule: &RuleKey, auth: Option<&Value>, limits: Option<&Value>) -> RulePlan {
    RulePlan {
        auth: auth.map(|spec| {
            let plan = auth::compile(
                &effective(Kind::AuthPolicy, spec),
                &[],
                &auth::Settings::default(),
            );
            assert_eq!(plan.problems, []);
            Arc::new(plan)
        }),
        limits: limits.map(|spec| {
            let plan = limit::compile(&effective(Kind::RateLimitPolicy, spec), rule);
            assert_eq!(plan.problems, []);
            Arc::new(plan)
        }),
    }
}
