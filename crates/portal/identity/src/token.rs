//! The token endpoint: a code, a refresh token or a confirmed device becomes tokens. And the ends of tokens: revoked, asked about.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_api::identity::SESSION;
use fairway_controller::Failure;
use fairway_portal_realm::claims::{self, Subject};
use fairway_portal_realm::grant::{self, Offer, Outcome};
use fairway_portal_realm::{Client, Session};
use http::{Response, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tracing::warn;

use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};

/// How long an ID token is valid: it says that somebody has signed in, and is read at once.
const ID_TOKEN: i64 = 300;
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// `invalid_grant`.
pub(crate) fn refused(why: &str) -> Response<Body> {
    respond::error(StatusCode::BAD_REQUEST, "invalid_grant", why)
}

impl Provider {
    pub(crate) async fn token(&self, call: &Call<'_>) -> Response<Body> {
        let client = match self.authenticated_client(call).await {
            Ok(client) => client,
            Err(answer) => return *answer,
        };
        let answered = match call.form.text("grant_type") {
            "authorization_code" => self.redeem(call, &client).await,
            "refresh_token" => self.refresh(call, &client).await,
            DEVICE_CODE => self.poll_device(call, &client).await,
            _ => {
                let why = "grant_type must be authorization_code, refresh_token or the one of devices";
                Ok(respond::error(
                    StatusCode::BAD_REQUEST,
                    "unsupported_grant_type",
                    why,
                ))
            }
        };
        answered.unwrap_or_else(|failure| respond::failed(&failure))
    }

    async fn redeem(&self, call: &Call<'_>, client: &Client) -> Result<Response<Body>, Failure> {
        let Some((name, secret)) = call.form.get("code").and_then(grant::split) else {
            return Ok(refused("the code is not one"));
        };
        let read = self.objects.get(call.cluster, SESSION, name).await?;
        let Some((read, session)) = read.and_then(|it| Session::read(&it).map(|session| (it, session)))
        else {
            return Ok(refused("the code is not known"));
        };
        let offer = Offer {
            client: &client.id,
            secret,
            redirect_uri: call.form.text("redirect_uri"),
            verifier: call.form.get("code_verifier"),
        };
        match grant::redeem(&session, offer, call.now) {
            Outcome::Refuse(why) => Ok(refused(why)),
            Outcome::Revoke(why) => self.revoked(call, name, why).await,
            Outcome::Grant => {
                let used = json!({"code": {"redeemed": true}});
                match self.objects.change(call.cluster, SESSION, &read, &used).await? {
                    true => self.issue(call, client, name, &session).await,
                    // Somebody used it in the same moment.
                    false => self.revoked(call, name, "the code was used before").await,
                }
            }
        }
    }

    async fn refresh(&self, call: &Call<'_>, client: &Client) -> Result<Response<Body>, Failure> {
        let token = call.form.text("refresh_token");
        let Some((name, _, _)) = grant::read_refresh(token) else {
            return Ok(refused("the refresh token is not one"));
        };
        let read = self.objects.get(call.cluster, SESSION, name).await?;
        let Some((read, mut session)) = read.and_then(|it| Session::read(&it).map(|session| (it, session)))
        else {
            return Ok(refused("the session has ended"));
        };
        let signer = self
            .signers
            .of(&self.realms, &self.objects, call.realm, call.now)
            .await?;
        match grant::refresh(&session, name, token, &signer.refresh_key, &client.id, call.now) {
            Outcome::Refuse(why) => Ok(refused(why)),
            Outcome::Revoke(why) => self.revoked(call, name, why).await,
            Outcome::Grant => {
                session.generation += 1;
                // A nonce belongs to the first token alone.
                session.nonce = None;
                let change = json!({"generation": session.generation, "nonce": null});
                match self.objects.change(call.cluster, SESSION, &read, &change).await? {
                    true => self.issue(call, client, name, &session).await,
                    false => {
                        self.revoked(call, name, "the refresh token was used before")
                            .await
                    }
                }
            }
        }
    }

    async fn revoked(&self, call: &Call<'_>, session: &str, why: &str) -> Result<Response<Body>, Failure> {
        warn!(realm = call.realm, session, address = %call.address, why, "a session was ended: its code or token was misused");
        self.objects.delete(call.cluster, SESSION, session).await?;
        Ok(refused(why))
    }

    /// The tokens of a session.
    pub(crate) async fn issue(
        &self,
        call: &Call<'_>,
        client: &Client,
        name: &str,
        session: &Session,
    ) -> Result<Response<Body>, Failure> {
        let member = self
            .realms
            .read(|all| all.signed_in(call.realm, &session.user, &session.user_uid, name, call.now));
        let member = match member {
            Ok(member) => member,
            Err(why) => return Ok(refused(why)),
        };
        let signer = self
            .signers
            .of(&self.realms, &self.objects, call.realm, call.now)
            .await?;
        let issuer = self.realms.issuer(call.realm);
        let subject = Subject {
            issuer: &issuer,
            member: &member,
            session_name: name,
            session,
            api_access: client.api_access,
        };
        let seconds = call.settings.access_token;
        let id = random::secret().map_err(|error| Failure::NotYet(error.to_string()))?;
        let access = signer.sign(claims::ACCESS, &claims::access(subject, &id, call.now, seconds))?;
        let mut answer = json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": seconds,
            "refresh_token": grant::refresh_token(&signer.refresh_key, name, session.generation),
            "scope": session.scope,
        });
        if session.has_scope("openid") {
            let hash = digest(&SHA256, access.as_bytes());
            let half = B64.encode(&hash.as_ref()[..16]);
            let said = claims::id(subject, call.now, ID_TOKEN, &half);
            answer["id_token"] = json!(signer.sign(claims::ID, &said)?);
        }
        Ok(respond::json(StatusCode::OK, &answer))
    }

    /// Ends the session of a token (RFC 7009). A token that is not known is as good as revoked.
    pub(crate) async fn revoke(&self, call: &Call<'_>) -> Response<Body> {
        let client = match self.authenticated_client(call).await {
            Ok(client) => client,
            Err(answer) => return *answer,
        };
        let ended = match self.session_of(call, &client).await {
            Ok(Some((name, _))) => self.objects.delete(call.cluster, SESSION, &name).await,
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(()) => respond::json(StatusCode::OK, &json!({})),
            Err(failure) => respond::failed(&failure),
        }
    }

    /// Whether a token is good (RFC 7662), for programs that have a secret.
    pub(crate) async fn introspect(&self, call: &Call<'_>) -> Response<Body> {
        let client = match self.authenticated_client(call).await {
            Ok(client) if !client.public => client,
            Ok(_) => {
                let why = "only a client with a secret may ask about tokens";
                return respond::error(StatusCode::FORBIDDEN, "unauthorized_client", why);
            }
            Err(answer) => return *answer,
        };
        match self.session_of(call, &client).await {
            Err(failure) => respond::failed(&failure),
            Ok(None) => respond::json(StatusCode::OK, &json!({"active": false})),
            Ok(Some((_, about))) => respond::json(StatusCode::OK, &about),
        }
    }

    /// The session of the token in a form, if it is a good one that was given to this client, and what is told of it.
    async fn session_of(&self, call: &Call<'_>, client: &Client) -> Result<Option<(String, Value)>, Failure> {
        let token = call.form.text("token");
        let issuer = self.realms.issuer(call.realm);
        if let Some((name, _, _)) = grant::read_refresh(token) {
            let read = self.objects.get(call.cluster, SESSION, name).await?;
            let Some(session) = read.as_ref().and_then(Session::read) else {
                return Ok(None);
            };
            let signer = self
                .signers
                .of(&self.realms, &self.objects, call.realm, call.now)
                .await?;
            let judged = grant::refresh(&session, name, token, &signer.refresh_key, &client.id, call.now);
            let about = json!({
                "active": true, "token_type": "refresh_token", "client_id": client.id, "iss": issuer,
                "scope": session.scope, "username": session.user, "sub": session.user_uid,
            });
            return Ok((judged == Outcome::Grant).then(|| (name.to_owned(), about)));
        }
        let found = self.realms.check(token, call.realm, &issuer, call.now);
        Ok(found.ok().filter(|it| it.access.client == client.id).map(|it| {
            let about = json!({
                "active": true, "token_type": "Bearer", "client_id": it.access.client, "iss": issuer,
                "username": it.member.name, "sub": it.member.uid, "exp": it.access.expires, "jti": it.access.id,
            });
            (it.access.session, about)
        }))
    }
}
