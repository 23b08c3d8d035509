//! Signing out, as OpenID Connect's RP-initiated logout has it: the browser's session ends, and those of the programs that came of it.
//!
//! A program shows by the ID token that it got that it may end the session. Without one the person is asked, so that no other site
//! can sign anybody out; and nobody is sent to an address that is not registered.

use fairway_api::identity::SESSION;
use fairway_controller::Failure;
use fairway_portal_realm::{Params, authorization, claims};
use http::{Response, StatusCode};

use crate::page;
use crate::provider::{Call, Provider};
use crate::respond::{self, Body};

impl Provider {
    pub(crate) async fn logout(&self, call: &Call<'_>) -> Response<Body> {
        let answered = self.log_out(call).await;
        answered.unwrap_or_else(|failure| respond::failed(&failure))
    }

    async fn log_out(&self, call: &Call<'_>) -> Result<Response<Body>, Failure> {
        let query;
        let params = match call.is_post() {
            true => &call.form,
            false => match Params::parse(call.query) {
                Ok(read) => {
                    query = read;
                    &query
                }
                Err(why) => return Ok(page::tell(call, StatusCode::BAD_REQUEST, &why.to_string())),
            },
        };
        let browser = self.browser(call).await?;
        let hint = params.get("id_token_hint");
        // An ID token that has expired is still a sign of who got it.
        let hint = hint.and_then(|token| self.realms.verified(token, call.realm, claims::ID, call.now).ok());
        let text = |claim: &str| hint.as_ref().and_then(|it| it[claim].as_str()).map(str::to_owned);
        if hint.is_none() && !(call.is_post() && self.is_own_form(call)) {
            if browser.is_none() {
                return Ok(page::tell(call, StatusCode::OK, "You are signed out."));
            }
            let (token, cookie) = self.form_token(call)?;
            let answer = page::ask_logout(call, &token);
            return Ok(match cookie {
                Some(cookie) => respond::with_cookie(answer, &cookie),
                None => answer,
            });
        }
        let of_hint = text("sid").and_then(|sid| {
            self.realms
                .read(|all| all.session(call.realm, &sid).map(|it| it.browser.to_string()))
                .map(|browser| (sid, browser))
        });
        let mut ended = Vec::new();
        if let Some((session, browser)) = of_hint {
            match browser.as_str() {
                "" => ended.push(session),
                browser => ended.extend(
                    self.realms
                        .read(|all| all.sessions_of_browser(call.realm, browser)),
                ),
            }
        }
        // Of the browser only what the program got, unless the person says so.
        let is_same = |uid: &str| text("sub").is_none_or(|sub| sub == uid);
        if let Some(browser) = browser.filter(|it| is_same(&it.member.uid)) {
            ended.extend(
                self.realms
                    .read(|all| all.sessions_of_browser(call.realm, &browser.name)),
            );
        }
        ended.sort_unstable();
        ended.dedup();
        for session in ended {
            self.objects.delete(call.cluster, SESSION, &session).await?;
        }
        let client = text("aud").or_else(|| params.get("client_id").map(str::to_owned));
        let client = match client {
            Some(id) => self.client(call, &id).await?,
            None => None,
        };
        let back = params.get("post_logout_redirect_uri");
        let back = back.filter(|uri| client.is_some_and(|client| client.may_end_at(uri)));
        let answer = match back {
            Some(uri) => {
                let uri = match params.get("state") {
                    Some(state) => authorization::answer(uri, &[("state", state)]),
                    None => uri.to_owned(),
                };
                respond::redirect(&uri)
            }
            None => page::tell(call, StatusCode::OK, "You are signed out."),
        };
        Ok(Self::forget_browser(call, answer))
    }
}
