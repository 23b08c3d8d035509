//! Handing requests on: with the session's token instead of its cookie, one place for each stream, and nothing of the browser's secrets.

use fairway_apiservice::{Upgrade, Upgraded};
use http::header::{AUTHORIZATION, COOKIE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::cookie::{self, Badge};
use crate::leash::{Held, Leash, Place};
use crate::origin::{self, CSRF};
use crate::sessions::{NotSignedIn, SignedIn};
use crate::{Body, WebServer, respond};

/// Requests of a session at once, with everything that it watches. A page has a dozen.
const MAX_STREAMS: usize = 256;

/// Nobody is signed in: why, and what to do.
pub(crate) fn unauthorized(why: &NotSignedIn) -> Response<Body> {
    match why {
        NotSignedIn::Unknown => respond::refuse(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "nobody is signed in, or the session has ended: sign in at /auth/login",
        ),
        NotSignedIn::Failed => respond::refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "the session could not be looked up; try again, and look into the server's log if it stays so",
        ),
    }
}

impl WebServer {
    pub(crate) async fn behind(&self, mut request: Request<Body>) -> Response<Body> {
        let cookie = cookie::find(request.headers(), cookie::SESSION).map(str::to_owned);
        let brings_token = request.headers().contains_key(AUTHORIZATION);
        request.headers_mut().remove(COOKIE);
        // A page of another site cannot add that header, so whoever has it says who he is by it alone.
        let Some(cookie) = cookie.filter(|_| !brings_token) else {
            return (self.options.behind)(request).await;
        };
        let Some(badge) = Badge::read(&cookie) else {
            return unauthorized(&NotSignedIn::Unknown);
        };
        let judged = origin::judge(
            request.method(),
            request.headers(),
            &self.origins.own,
            &badge.csrf(),
        );
        if let Err(refusal) = judged {
            return respond::refuse(StatusCode::FORBIDDEN, "Forbidden", refusal.sentence());
        }
        let signed_in = match self.sessions.of(badge).await {
            Ok(signed_in) => signed_in,
            Err(why) => return unauthorized(&why),
        };
        let Some(place) = Place::take(&signed_in.streams, MAX_STREAMS) else {
            let why =
                format!("this session has {MAX_STREAMS} requests under way; close some pages, or try again");
            let mut answer = respond::refuse(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", &why);
            answer
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return answer;
        };
        request.headers_mut().remove(CSRF);
        let Ok(mut token) = HeaderValue::from_str(&format!("Bearer {}", signed_in.token)) else {
            return unauthorized(&NotSignedIn::Failed);
        };
        token.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, token);
        match request.extensions_mut().remove::<OnUpgrade>() {
            Some(connection) => {
                let upgrade = self.leashed(connection, place, &signed_in);
                request.extensions_mut().insert(upgrade);
                (self.options.behind)(request).await
            }
            None => {
                let answer = (self.options.behind)(request).await;
                answer.map(|body| Held::new(body, place).boxed_unsync())
            }
        }
    }

    /// The connection, for whoever takes it over: it ends with the session.
    fn leashed(&self, connection: OnUpgrade, place: Place, signed_in: &SignedIn) -> Upgrade {
        let goes_on = self.sessions.watcher(signed_in);
        Upgrade::new(async move {
            let io = TokioIo::new(connection.await?);
            Ok(Upgraded::new(Leash::new(io, place, goes_on)))
        })
    }
}
