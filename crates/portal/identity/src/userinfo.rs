//! What a program may know of whoever signed in to it, as it is now.

use fairway_portal_realm::{Session, claims};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use crate::provider::{Call, Provider};
use crate::respond::{self, Body};

impl Provider {
    pub(crate) fn userinfo(&self, call: &Call<'_>) -> Response<Body> {
        let refuse = |why: &str| {
            let mut response = respond::error(StatusCode::UNAUTHORIZED, "invalid_token", why);
            let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            response
        };
        let header = call
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|text| text.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        // In a form it may be, in a URL never: those are written into logs.
        let Some(token) = bearer
            .map(|(_, token)| token.trim())
            .or(call.form.get("access_token"))
        else {
            return refuse("an access token is missing");
        };
        let issuer = self.realms.issuer(call.realm);
        let scope = self.realms.verified(token, call.realm, claims::ACCESS, call.now);
        match (self.realms.check(token, call.realm, &issuer, call.now), scope) {
            (Ok(found), Ok(said)) => {
                let asked = Session {
                    scope: said["scope"].as_str().unwrap_or_default().to_owned(),
                    ..Session::default()
                };
                respond::json(StatusCode::OK, &claims::about(&found.member, &asked))
            }
            _ => refuse("the access token is not good, or no longer"),
        }
    }
}
