//! Signing in: a name, a password and perhaps a one-time code become a browser's session, or nothing.
//!
//! Whether there is such a user is told neither by the answer nor by the time it takes: a password is compared in any case, and
//! wrong attempts are counted for names that nobody has, too.

use std::time::Duration;

use fairway_api::identity::{CREDENTIAL, SESSION, USER};
use fairway_controller::Failure;
use fairway_portal_realm::session::Kind;
use fairway_portal_realm::{Member, Session, client, grant, guard, secret, time, totp};
use http::Response;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::objects::Objects;
use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};

/// The cookie that forms are tied to. No other site can set one of this name.
const FORM_COOKIE: &str = "__Host-fairway-form";
/// Sessions that a user may have of each kind; the one that would end first makes room.
const MAX_SESSIONS: usize = 64;
/// How long the note of a sign-in may take, which nobody waits for.
const NOTE: Duration = Duration::from_secs(10);
/// Seconds for which a note of a sign-in stands for those that follow.
const NOTED_FOR: i64 = 60;

/// Why somebody is not signed in.
pub(crate) enum Denied {
    /// Name, password or code are wrong; which, is nobody's business.
    Wrong,
    /// Too many attempts.
    Wait(i64),
    /// Too many others.
    Busy,
    /// The realm wants a one-time code, and the user, who has shown his password, has no seed yet.
    NeedsCode {
        /// He was shown one, and his code was not of it.
        wrong: bool,
    },
    /// Something of ours failed.
    Failed(Failure),
}

impl From<Failure> for Denied {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Denied {
    /// As a page says it.
    pub(crate) fn problem(&self) -> Problem {
        use http::StatusCode as S;
        let (status, told) = match self {
            Self::Wrong => (
                S::BAD_REQUEST,
                "User name, password or one-time code is wrong. Try again.".to_owned(),
            ),
            Self::Wait(seconds) => (
                S::TOO_MANY_REQUESTS,
                format!("There were too many wrong attempts. Try again in {seconds} seconds."),
            ),
            Self::Busy => (
                S::SERVICE_UNAVAILABLE,
                "Too many people are signing in at this moment. Try again soon.".to_owned(),
            ),
            Self::NeedsCode { wrong: false } => (
                S::FORBIDDEN,
                "Your organisation wants one-time codes, and none are set up for you yet. Set them up to go on.".to_owned(),
            ),
            Self::NeedsCode { wrong: true } => (
                S::BAD_REQUEST,
                "The code is not the one that your app should show. Check the clock of the device, and type the next one."
                    .to_owned(),
            ),
            Self::Failed(failure) => {
                warn!(%failure, "a sign-in failed");
                (
                    S::INTERNAL_SERVER_ERROR,
                    "The server could not sign you in. Try again; its log says why if it stays so.".to_owned(),
                )
            }
        };
        let wait = match self {
            Self::Wait(seconds) => Some(*seconds),
            _ => None,
        };
        Problem { status, told, wait }
    }
}

/// What was wrong with a form.
pub(crate) struct Problem {
    pub(crate) status: http::StatusCode,
    pub(crate) told: String,
    /// Seconds until it may be sent again.
    pub(crate) wait: Option<i64>,
}

impl Problem {
    /// The form did not come from a page that this browser was shown, or that was long ago.
    pub(crate) fn foreign() -> Self {
        Self {
            status: http::StatusCode::FORBIDDEN,
            told: "The page was open for too long, or your browser refuses cookies. Try again.".to_owned(),
            wait: None,
        }
    }

    /// Says in a header how long to wait.
    pub(crate) fn mark(problem: Option<&Self>, mut answer: Response<Body>) -> Response<Body> {
        if let Some(wait) = problem.and_then(|it| it.wait) {
            let wait = http::HeaderValue::from(wait);
            answer.headers_mut().insert(http::header::RETRY_AFTER, wait);
        }
        answer
    }
}

/// The fields of a form that sets one-time codes up: the seed that was offered, and a code that shows that the app has it.
pub(crate) const ENROL_SEED: &str = "enrol_seed";
pub(crate) const NEW_CODE: &str = "new_otp";

/// Somebody who has shown his password.
pub(crate) struct Shown {
    pub(crate) member: Member,
    /// What is kept for him, as it was before.
    pub(crate) credential: Option<Value>,
    /// Whether he has shown a one-time code, too: he has a seed.
    pub(crate) with_code: bool,
}

/// A browser that is signed in.
pub(crate) struct Browser {
    pub(crate) name: String,
    pub(crate) session: Session,
    pub(crate) member: Member,
}

/// The cookie of a browser's session. Other hosts of the platform, where tenants have pages, can set cookies for this one, and so sign
/// a browser in as somebody else; only not of a name that begins like this, which is why the realm is in the name and not in the path.
pub(crate) fn session_cookie(realm: &str) -> String {
    format!("__Host-fairway-session-{realm}")
}

fn set_session_cookie(realm: &str, value: &str, seconds: i64) -> String {
    let name = session_cookie(realm);
    format!("{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax")
}

/// The name of the Credential of a user.
pub(crate) fn credential_of(user: &str) -> String {
    format!("user.{user}")
}

/// Writes down until when a user waits. The lock before may still be there: sessions that are over are removed from time to time.
async fn keep_lock(objects: &Objects, cluster: &str, name: &str, lock: &Session) -> Result<(), Failure> {
    if objects.create(cluster, SESSION, name, &json!(lock)).await? {
        return Ok(());
    }
    match objects.get(cluster, SESSION, name).await? {
        Some(read) => objects
            .change(cluster, SESSION, &read, &json!(lock))
            .await
            .map(drop),
        None => Ok(()),
    }
}

impl Provider {
    /// The browser's session, if it has one that goes on.
    pub(crate) async fn browser(&self, call: &Call<'_>) -> Result<Option<Browser>, Failure> {
        let Some((name, offered)) = call.cookie(&session_cookie(call.realm)).and_then(grant::split) else {
            return Ok(None);
        };
        let object = self.objects.get(call.cluster, SESSION, name).await?;
        let Some(session) = object.as_ref().and_then(Session::read) else {
            return Ok(None);
        };
        let is_right = session.kind == Kind::Browser && secret::is_kept(&session.secret_digest, offered);
        if !is_right || session.is_over(call.now) {
            return Ok(None);
        }
        let member = self
            .realms
            .read(|all| all.signed_in(call.realm, &session.user, &session.user_uid, name, call.now));
        Ok(member.ok().map(|member| Browser {
            name: name.to_owned(),
            session,
            member,
        }))
    }

    /// Takes the sign-in form of a page and begins a browser's session; the cookie that it is known by.
    pub(crate) async fn sign_in(&self, call: &Call<'_>) -> Result<(Browser, String), Denied> {
        let (browser, cookie, ()) = self.sign_in_and(call, async |_| ()).await?;
        Ok((browser, cookie))
    }

    /// The same, and meanwhile what only needs to know who it is. Should the session not come to be, nobody learns what that has led to.
    pub(crate) async fn sign_in_and<T>(
        &self,
        call: &Call<'_>,
        next: impl AsyncFnOnce(&Browser) -> T,
    ) -> Result<(Browser, String, T), Denied> {
        let typed = call.form.text("username").trim().to_lowercase();
        // What cannot be a name is nobody's, and all of it is counted as one: texts of any length are not kept.
        let user = if client::is_name(&typed) {
            typed
        } else {
            String::new()
        };
        if let Some(seconds) = self.wait(call, &user) {
            return Err(Denied::Wait(seconds));
        }
        let (member, methods) = self.prove(call, &user).await?;
        self.guarded(|guard| guard.succeeded(call.realm, &user));
        self.enter(call, member, (methods, call.now), next).await
    }

    /// Begins the session of somebody who has shown who he is, how and when.
    pub(crate) async fn enter<T>(
        &self,
        call: &Call<'_>,
        member: Member,
        proof: (Vec<String>, i64),
        next: impl AsyncFnOnce(&Browser) -> T,
    ) -> Result<(Browser, String, T), Denied> {
        info!(realm = call.realm, user = member.name, address = %call.address, "a user signed in");
        let (browser, cookie) = Self::begin(call, member, proof)?;
        // Two writes at once are one on the disk.
        let begun = self.add_session(call, &browser.name, &browser.session);
        let (begun, next) = tokio::join!(begun, next(&browser));
        begun?;
        self.note(call, &browser.member);
        Ok((browser, cookie, next))
    }

    /// Writes down that somebody has signed in. Nobody waits for it, and programs that sign in time and again are noted once in a while.
    fn note(&self, call: &Call<'_>, member: &Member) {
        let noted = self.realms.read(|all| all.last_sign_in(call.realm, &member.name));
        if noted.is_some_and(|noted| (0..NOTED_FOR).contains(&(call.now - noted))) {
            return;
        }
        let (objects, cluster, user) = (self.objects.clone(), call.cluster.to_owned(), member.name.clone());
        let note = json!({"lastSignIn": time::write(call.now)});
        tokio::spawn(async move {
            let noting = objects.note(&cluster, USER, &user, &note);
            if let Ok(Err(failure)) = tokio::time::timeout(NOTE, noting).await {
                warn!(%failure, "a sign-in was not noted");
            }
        });
    }

    /// Seconds to wait: by what was counted since the start, and by what was written down.
    fn wait(&self, call: &Call<'_>, user: &str) -> Option<i64> {
        let counted =
            self.guarded(|guard| guard.wait(call.realm, user, call.address, call.now, call.limits()));
        counted.max(self.realms.read(|all| all.locked(call.realm, user, call.now)))
    }

    /// Counts a wrong attempt.
    fn wrong(&self, call: &Call<'_>, user: &str) -> Denied {
        let limits = call.limits();
        let waits = self.guarded(|guard| guard.failed(call.realm, user, call.address, call.now, limits));
        // The name is whatever somebody typed, which may be a password: it stays out of the log.
        warn!(realm = call.realm, address = %call.address, "somebody could not sign in");
        let member = self.realms.read(|all| all.member(call.realm, user));
        if let Some(member) = member.filter(|_| waits) {
            let lock = guard::lock(&member.name, &member.uid, call.now + limits.seconds);
            let name = guard::lock_name(call.realm, user);
            let (objects, cluster) = (self.objects.clone(), call.cluster.to_owned());
            // Nobody waits for the write: the time would tell that there is such a user.
            tokio::spawn(async move {
                let locking = keep_lock(&objects, &cluster, &name, &lock);
                if let Ok(Err(failure)) = tokio::time::timeout(NOTE, locking).await {
                    warn!(%failure, "a lockout was not written down");
                }
            });
        }
        Denied::Wrong
    }

    async fn prove(&self, call: &Call<'_>, user: &str) -> Result<(Member, Vec<String>), Denied> {
        let shown = self.show(call, user).await?;
        let methods = |all: &[&str]| all.iter().map(ToString::to_string).collect();
        if shown.with_code {
            return Ok((shown.member, methods(&["pwd", "otp"])));
        }
        if !call.settings.require_totp {
            return Ok((shown.member, methods(&["pwd"])));
        }
        // Whoever knows the password sets the codes up, as he would be asked to anyway.
        let Some(seed) = call.form.get(ENROL_SEED) else {
            return Err(Denied::NeedsCode { wrong: false });
        };
        let step = totp::enrolled(seed, call.form.text(NEW_CODE), call.now);
        let step = step.ok_or(Denied::NeedsCode { wrong: true })?;
        let change = json!({"totpSeed": seed, "totpLastStep": step});
        let is_kept = match &shown.credential {
            Some(read) => {
                self.objects
                    .change(call.cluster, CREDENTIAL, read, &change)
                    .await?
            }
            None => false,
        };
        match is_kept {
            true => {
                info!(
                    realm = call.realm,
                    user = shown.member.name,
                    "a user set up one-time codes at sign-in"
                );
                Ok((shown.member, methods(&["pwd", "otp"])))
            }
            // Somebody was quicker.
            false => Err(self.wrong(call, user)),
        }
    }

    /// Judges the password in a form, and the one-time code if the user has a seed.
    pub(crate) async fn show(&self, call: &Call<'_>, user: &str) -> Result<Shown, Denied> {
        // A name that cannot be one is looked up like any other: under one that nobody has.
        let looked_up = if client::is_name(user) {
            user
        } else {
            "no.such.user"
        };
        let credential = self
            .objects
            .get(call.cluster, CREDENTIAL, &credential_of(looked_up))
            .await?;
        let member = self.realms.read(|all| all.member(call.realm, user));
        let text = |pointer: &str| {
            let found = credential.as_ref().and_then(|it| it.pointer(pointer)?.as_str());
            found.map(str::to_owned)
        };
        let kept = text("/spec/passwordHash").filter(|_| member.is_some());
        let password = call.form.text("password").to_owned();
        let turn = self.hasher.turn().await.map_err(|_| Denied::Busy)?;
        // Those who had their turn meanwhile may have used the attempts up.
        if let Some(seconds) = self.wait(call, user) {
            return Err(Denied::Wait(seconds));
        }
        let is_right = self.hasher.is_right(&turn, kept, password).await;
        let seed = text("/spec/totpSeed").and_then(|seed| totp::decode(&seed));
        let last = credential
            .as_ref()
            .and_then(|it| it.pointer("/spec/totpLastStep").and_then(Value::as_i64));
        let step = seed
            .as_ref()
            .and_then(|seed| totp::check(seed, call.form.text("otp"), call.now, last));
        let Some(member) = member.filter(|_| is_right && (seed.is_none() || step.is_some())) else {
            return Err(self.wrong(call, user));
        };
        drop(turn);
        let Some(step) = step else {
            return Ok(Shown {
                member,
                credential,
                with_code: false,
            });
        };
        // A code counts once: who is second finds the credential changed.
        let used = match &credential {
            Some(read) => {
                self.objects
                    .change(call.cluster, CREDENTIAL, read, &json!({"totpLastStep": step}))
                    .await?
            }
            None => false,
        };
        match used {
            true => Ok(Shown {
                member,
                credential,
                with_code: true,
            }),
            false => Err(self.wrong(call, user)),
        }
    }

    /// A browser's session, and the cookie that it is known by.
    fn begin(
        call: &Call<'_>,
        member: Member,
        (methods, authenticated_at): (Vec<String>, i64),
    ) -> Result<(Browser, String), Denied> {
        let failed = |error: random::NoRandomness| Denied::Failed(Failure::NotYet(error.to_string()));
        let (name, secret_text) = (random::name().map_err(failed)?, random::secret().map_err(failed)?);
        let session = Session {
            kind: Kind::Browser,
            user: member.name.clone(),
            user_uid: member.uid.clone(),
            secret_digest: secret::digest(&secret_text),
            methods,
            authenticated_at: time::write(authenticated_at),
            expires_at: time::write(call.now + call.settings.session),
            ..Session::default()
        };
        let offered = grant::join(&name, &secret_text);
        let cookie = set_session_cookie(call.realm, &offered, call.settings.session);
        let browser = Browser {
            name,
            session,
            member,
        };
        Ok((browser, cookie))
    }

    /// Writes a session down. A user who has too many loses the one that would end first.
    pub(crate) async fn add_session(
        &self,
        call: &Call<'_>,
        name: &str,
        session: &Session,
    ) -> Result<(), Failure> {
        if !session.user.is_empty() {
            let others = self
                .realms
                .read(|all| all.sessions_of_user(call.realm, &session.user, session.kind));
            let too_many = others.len().saturating_sub(MAX_SESSIONS - 1);
            for other in others.iter().take(too_many) {
                self.objects.delete(call.cluster, SESSION, other).await?;
            }
        }
        match self
            .objects
            .create(call.cluster, SESSION, name, &json!(session))
            .await?
        {
            true => Ok(()),
            false => Err(Failure::NotYet("a session of that name exists".to_owned())),
        }
    }

    /// Whether a form came from a page that this browser was shown.
    pub(crate) fn is_own_form(&self, call: &Call<'_>) -> bool {
        let offered = call.form.text("form_token");
        call.cookie(FORM_COOKIE)
            .is_some_and(|cookie| secret::is_equal(secret::form_token(cookie).as_bytes(), offered.as_bytes()))
    }

    /// What a browser is known by that was here before.
    pub(crate) fn form_token_of(&self, call: &Call<'_>) -> Option<String> {
        call.cookie(FORM_COOKIE).map(secret::form_token)
    }

    /// What ties a form to the browser, and the cookie for it if the browser has none yet.
    pub(crate) fn form_token(&self, call: &Call<'_>) -> Result<(String, Option<String>), Failure> {
        if let Some(cookie) = call.cookie(FORM_COOKIE).filter(|it| it.len() == 43) {
            return Ok((secret::form_token(cookie), None));
        }
        let fresh = random::secret().map_err(|error| Failure::NotYet(error.to_string()))?;
        let token = secret::form_token(&fresh);
        Ok((
            token,
            Some(format!(
                "{FORM_COOKIE}={fresh}; Path=/; Secure; HttpOnly; SameSite=Lax"
            )),
        ))
    }

    /// Takes the cookie of the session away.
    pub(crate) fn forget_browser(call: &Call<'_>, response: Response<Body>) -> Response<Body> {
        respond::with_cookie(response, &set_session_cookie(call.realm, "", 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_host_can_set_the_cookie_of_a_session() {
        let cookie = set_session_cookie("acme", "s~x", 60);
        assert!(
            cookie.starts_with("__Host-fairway-session-acme=s~x; "),
            "{cookie}"
        );
        // Without these browsers refuse a name that begins so.
        assert!(cookie.contains("; Path=/;") && cookie.contains("; Secure") && !cookie.contains("Domain"));
        assert_ne!(session_cookie("acme"), session_cookie("other"));
    }
}
