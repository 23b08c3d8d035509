//! What a realm says of itself: addresses, abilities, keys.

use fairway_portal_realm::{authorization, keys};
use http::Response;
use serde_json::{Value, json};

use crate::provider::{Call, Provider};
use crate::respond::{self, Body};

impl Provider {
    pub(crate) fn discovery(&self, call: &Call<'_>) -> Response<Body> {
        let issuer = self.realms.issuer(call.realm);
        let at = |path: &str| format!("{issuer}/{path}");
        let auth = json!(["none", "client_secret_basic", "client_secret_post"]);
        respond::public(&json!({
            "issuer": issuer,
            "authorization_endpoint": at("authorize"),
            "token_endpoint": at("token"),
            "userinfo_endpoint": at("userinfo"),
            "jwks_uri": at("jwks"),
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
        }))
    }

    pub(crate) fn jwks(&self, call: &Call<'_>) -> Response<Body> {
        let keys: Vec<Value> = self.realms.read(|all| {
            let verifying = keys::verifying(all.keys(call.realm), call.now);
            verifying.map(keys::PublicKey::jwk).collect()
        });
        respond::public(&json!({"keys": keys}))
    }
}
