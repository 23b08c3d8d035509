//! Signing in and out, and who is signed in.

use fairway_api::identity::workspace_of_realm;
use fairway_portal_identity::NotBegun;
use fairway_portal_realm::directory::ROOT;
use fairway_portal_realm::params::query;
use fairway_portal_realm::{Params, client, secret, time};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;
use tracing::{info, warn};

use crate::behind::unauthorized;
use crate::cookie::{self, Badge, SignIn};
use crate::sessions::NotSignedIn;
use crate::{Body, WebServer, origin, place, respond};

/// What is asked of the provider.
const SCOPE: &str = "openid profile email groups";

impl WebServer {
    /// Answers what is below `/auth/`.
    pub(crate) async fn auth(&self, what: &str, request: &Parts) -> Response<Body> {
        let is_reading = matches!(request.method, Method::GET | Method::HEAD);
        match what {
            "login" if is_reading => self.login(request),
            "callback" if is_reading => self.callback(request).await,
            "session" if is_reading => self.session(request).await,
            "logout" if request.method == Method::POST => self.logout(request).await,
            "style.css" if is_reading => respond::style(),
            "font.woff2" if is_reading => respond::font(),
            "login" | "callback" | "session" | "style.css" | "font.woff2" => {
                respond::not_allowed("GET, HEAD")
            }
            "logout" => respond::not_allowed("POST"),
            _ => respond::refuse(
                StatusCode::NOT_FOUND,
                "NotFound",
                "here are login, callback, session and logout",
            ),
        }
    }

    /// Sends the browser to the provider.
    fn login(&self, request: &Parts) -> Response<Body> {
        let wrong = |why: &str| respond::page(StatusCode::BAD_REQUEST, why);
        let Ok(params) = Params::parse(request.uri.query().unwrap_or_default()) else {
            return wrong("The address is too long, or says something twice.");
        };
        let endpoint_of = |realm: &str| match client::is_name(realm) {
            true => self.options.provider.authorization_endpoint(realm),
            false => None,
        };
        let realm = match params.get("org") {
            Some(realm) => realm,
            // Not every workspace is an organisation with people of its own.
            None => Some(place::realm_of(params.text("workspace")))
                .filter(|realm| endpoint_of(realm).is_some())
                .unwrap_or(ROOT),
        };
        let Some(endpoint) = endpoint_of(realm) else {
            return respond::page(StatusCode::NOT_FOUND, "There is no organisation of that name.");
        };
        let Some(fresh) = respond::random() else {
            warn!("the operating system gives no random numbers");
            return respond::page(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The server could not begin. Try again.",
            );
        };
        let sign_in = SignIn::new(fresh, realm, place::return_path(params.text("return")));
        let callback = self.options.provider.portal_callback();
        let (state, nonce, challenge) = (sign_in.state(), sign_in.nonce(), sign_in.challenge());
        let asked = query([
            ("response_type", "code"),
            ("client_id", client::PORTAL),
            ("redirect_uri", &callback),
            ("scope", SCOPE),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("login_hint", params.text("hint")),
        ]);
        respond::with_cookie(respond::redirect(&format!("{endpoint}?{asked}")), &sign_in.set())
    }

    /// The browser comes back with a code, or with what went wrong.
    async fn callback(&self, request: &Parts) -> Response<Body> {
        let over = |answer| respond::with_cookie(answer, &cookie::forget(cookie::SIGN_IN));
        let wrong = |why: &str| respond::page(StatusCode::BAD_REQUEST, why);
        let late = "The sign-in took too long, or was begun in another window or browser.";
        let Ok(params) = Params::parse(request.uri.query().unwrap_or_default()) else {
            return wrong("The address is too long, or says something twice.");
        };
        let Some(sign_in) = cookie::find(&request.headers, cookie::SIGN_IN).and_then(SignIn::read) else {
            return wrong(late);
        };
        if !secret::is_equal(sign_in.state().as_bytes(), params.text("state").as_bytes()) {
            return wrong(late);
        }
        if params.get("error").is_some() {
            return over(wrong("The provider has not signed you in."));
        }
        let (verifier, nonce) = (sign_in.verifier(), sign_in.nonce());
        let begun = self
            .options
            .provider
            .begin_portal(&sign_in.realm, params.text("code"), &verifier, &nonce)
            .await;
        let begun = match begun {
            Ok(begun) => begun,
            Err(NotBegun::Refused(why)) => {
                info!(realm = sign_in.realm, why, "a code was refused");
                return over(wrong(late));
            }
            Err(NotBegun::Failed(failure)) => {
                warn!(%failure, "a session of the portal could not be written down");
                let why = "The server could not sign you in. Try again; its log says why if it stays so.";
                return over(respond::page(StatusCode::INTERNAL_SERVER_ERROR, why));
            }
        };
        // Whoever was signed in with this browser is so no longer, and what he was known by is worth nothing.
        self.end(request, false).await;
        let badge = Badge {
            realm: &sign_in.realm,
            name: &begun.name,
            secret: &begun.secret,
        };
        let answer = over(respond::redirect(&sign_in.return_path));
        respond::with_cookie(answer, &cookie::set_session(&badge))
    }

    /// Who is signed in, and what the application needs to know from the start.
    async fn session(&self, request: &Parts) -> Response<Body> {
        let badge = cookie::find(&request.headers, cookie::SESSION).and_then(Badge::read);
        let Some(badge) = badge else {
            return unauthorized(&NotSignedIn::Unknown);
        };
        let signed_in = match self.sessions.of(badge).await {
            Ok(signed_in) => signed_in,
            Err(why) => return unauthorized(&why),
        };
        let member = &signed_in.member;
        let display_name = match member.display_name.as_str() {
            "" => &member.name,
            name => name,
        };
        respond::json(
            StatusCode::OK,
            &json!({
                "user": {
                    "name": member.username(), "displayName": display_name, "email": member.email, "groups": member.usergroups(),
                },
                "workspace": workspace_of_realm(&signed_in.realm),
                "csrf": badge.csrf(),
                "expires": time::write(signed_in.session.expires),
                "domain": self.options.domain,
                "version": self.options.version,
                "apiServer": self.options.api_server,
                "gitUrl": self.options.git_url,
            }),
        )
    }

    async fn logout(&self, request: &Parts) -> Response<Body> {
        if let Some(badge) = cookie::find(&request.headers, cookie::SESSION).and_then(Badge::read) {
            let judged = origin::judge(
                &request.method,
                &request.headers,
                &self.origins.own,
                &badge.csrf(),
            );
            if let Err(refusal) = judged {
                return respond::refuse(StatusCode::FORBIDDEN, "Forbidden", refusal.sentence());
            }
            self.end(request, true).await;
        }
        respond::with_cookie(
            respond::empty(StatusCode::NO_CONTENT),
            &cookie::forget(cookie::SESSION),
        )
    }

    /// Ends the session of a browser, if it has one.
    async fn end(&self, request: &Parts, with_sign_in: bool) {
        let badge = cookie::find(&request.headers, cookie::SESSION).and_then(Badge::read);
        let Some(badge) = badge else { return };
        let Ok(signed_in) = self.sessions.of(badge).await else {
            return;
        };
        let ended = self
            .options
            .provider
            .end_portal(badge.realm, badge.name, &signed_in.session, with_sign_in)
            .await;
        self.sessions.forget(badge.name);
        if let Err(failure) = ended {
            warn!(%failure, "a session of the portal could not be ended");
        }
    }
}
