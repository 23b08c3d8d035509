//! What a realm says of itself: addresses, abilities, keys.

use fairway_portal_realm::{authorization, keys};
use http::Response;
use serde_json::{Value, json};

use crate::provider::{Call, Provider};
use crate::realms::now;
use crate::respond::{self, Body};

/// Below a realm: what it is able to do, as discovery looks for it.
pub(crate) const CONFIGURATION: &str = ".well-known/openid-configuration";
/// Its keys.
pub(crate) const JWKS: &str = "jwks";

impl Provider {
    /// What is published at an address of a realm, for those in this process who need not call it: what discovery finds, and
    /// keys. None if the address is no realm's, or something else is there.
    pub fn published(&self, url: &str) -> Option<Value> {
        let (realm, rest) = self.realms.realm_of(url)?.split_once('/')?;
        self.realms.read(|all| all.cluster(realm).map(drop))?;
        match rest {
            CONFIGURATION => Some(self.configuration(realm)),
            JWKS => Some(self.key_set(realm, now())),
            _ => None,
        }
    }

    pub(crate) fn discovery(&self, call: &Call<'_>) -> Response<Body> {
        respond::public(&self.configuration(call.realm))
    }

    fn configuration(&self, realm: &str) -> Value {
        let issuer = self.realms.issuer(realm);
        let at = |path: &str| format!("{issuer}/{path}");
        let auth = json!(["none", "client_secret_basic", "client_secret_post"]);
        json!({
            "issuer": issuer,
            "authorization_endpoint": at("authorize"),
            "token_endpoint": at("token"),
            "userinfo_endpoint": at("userinfo"),
            "jwks_uri": at(JWKS),
            "device_authorization_endpoint": at("device_authorization"),
            "end_session_endpoint": at("logout"),
            "revocation_endpoint": at("revoke"),
            "introspection_endpoint": at("introspect"),
            "scopes_supported": authorization::SCOPES,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": [
                "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"
            ],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": auth,
            "revocation_endpoint_auth_methods_supported": auth,
            "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "claims_supported": [
                "sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "amr", "azp", "at_hash", "sid", "name",
                "preferred_username", "email", "email_verified", "groups"
            ],
            "prompt_values_supported": ["none", "login"],
            "authorization_response_iss_parameter_supported": true,
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
        })
    }

    pub(crate) fn jwks(&self, call: &Call<'_>) -> Response<Body> {
        respond::public(&self.key_set(call.realm, call.now))
    }

    fn key_set(&self, realm: &str, now: i64) -> Value {
        let keys: Vec<Value> = self.realms.read(|all| {
            let verifying = keys::verifying(all.keys(realm), now);
            verifying.map(keys::PublicKey::jwk).collect()
        });
        json!({"keys": keys})
    }
}
