//! Signing in a device without a browser (RFC 8628): it shows a code, a person types it elsewhere and allows it, the device gets tokens.

use fairway_api::identity::SESSION;
use fairway_controller::Failure;
use fairway_portal_realm::device::{self, INTERVAL, LIFE, MAX_WAITING, Poll};
use fairway_portal_realm::session::{Device, Kind};
use fairway_portal_realm::{Client, Params, Session, authorization, grant, params, secret, time};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::page::{self, SignInForm};
use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};
use crate::sign_in::{Browser, Problem};
use crate::token::refused;

/// How often a code is drawn that somebody has already.
const ATTEMPTS: usize = 5;

/// A device is found by what people type, so its session is called after that, as far as it may be known.
fn name_of(realm: &str, user_code: &str) -> String {
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        format!("device {realm} {user_code}").as_bytes(),
    );
    let mut half = [0; 16];
    half.copy_from_slice(&digest.as_ref()[..16]);
    secret::name(&half)
}

impl Provider {
    pub(crate) async fn device_authorization(&self, call: &Call<'_>) -> Response<Body> {
        let client = match self.authenticated_client(call).await {
            Ok(client) => client,
            Err(answer) => return *answer,
        };
        if !client.device_flow {
            let why = "the client may not sign in devices: spec.deviceFlow of its OIDCClient is not true";
            return respond::error(StatusCode::BAD_REQUEST, "unauthorized_client", why);
        }
        let is_full = self.realms.read(|all| all.waiting(call.realm, call.now)) >= MAX_WAITING;
        let wait = self.guarded(|guard| guard.left_of(call.address, call.now, call.limits()));
        if is_full || wait.is_some() {
            let why = "too many devices wait to be allowed; try again later";
            return respond::error(StatusCode::TOO_MANY_REQUESTS, "slow_down", why);
        }
        if !self.queued(|queue| queue.join(call.address, call.now)) {
            let why = "too many devices of this address wait to be allowed; try again later";
            return respond::error(StatusCode::TOO_MANY_REQUESTS, "slow_down", why);
        }
        let answered = self.new_device(call, &client).await;
        answered.unwrap_or_else(|failure| {
            self.queued(|queue| queue.leave(call.address));
            respond::failed(&failure)
        })
    }

    async fn new_device(&self, call: &Call<'_>, client: &Client) -> Result<Response<Body>, Failure> {
        let failed = |error: random::NoRandomness| Failure::NotYet(error.to_string());
        for _ in 0..ATTEMPTS {
            let Some(user_code) = device::user_code(&random::bytes().map_err(failed)?) else {
                continue;
            };
            let secret_text = random::secret().map_err(failed)?;
            let name = name_of(call.realm, &user_code);
            let session = Session {
                kind: Kind::Device,
                client: client.id.clone(),
                scope: authorization::known_scopes(call.form.text("scope")),
                expires_at: time::write(call.now + LIFE),
                device: Some(Device {
                    digest: secret::digest(&secret_text),
                    user_code: user_code.clone(),
                    ..Device::default()
                }),
                ..Session::default()
            };
            if !self
                .objects
                .create(call.cluster, SESSION, &name, &json!(session))
                .await?
            {
                continue;
            }
            let page = format!("{}/device", self.realms.issuer(call.realm));
            return Ok(respond::json(
                StatusCode::OK,
                &json!({
                    "device_code": grant::join(&name, &secret_text), "user_code": user_code, "verification_uri": page,
                    "verification_uri_complete": format!("{page}?user_code={user_code}"), "expires_in": LIFE,
                    "interval": INTERVAL,
                }),
            ));
        }
        Err(Failure::NotYet("no code could be drawn for a device".to_owned()))
    }

    /// What a device is told that asks whether it is allowed yet.
    pub(crate) async fn poll_device(
        &self,
        call: &Call<'_>,
        client: &Client,
    ) -> Result<Response<Body>, Failure> {
        let Some((name, secret_text)) = call.form.get("device_code").and_then(grant::split) else {
            return Ok(refused("the device code is not one"));
        };
        let read = self.objects.get(call.cluster, SESSION, name).await?;
        let Some((read, session)) = read.and_then(|it| Session::read(&it).map(|session| (it, session)))
        else {
            return Ok(respond::error(
                StatusCode::BAD_REQUEST,
                "expired_token",
                "the device code has expired",
            ));
        };
        let tell = |error, why| Ok(respond::error(StatusCode::BAD_REQUEST, error, why));
        match device::poll(&session, secret_text, &client.id, call.now) {
            Poll::Unknown => Ok(refused("the device code is not known")),
            Poll::Expired => tell("expired_token", "the device code has expired"),
            Poll::SlowDown => tell("slow_down", "the device asks too often"),
            Poll::Pending => {
                // Whoever asks twice at once has changed it already.
                let noted = json!({"device": {"lastPoll": time::write(call.now)}});
                self.objects.change(call.cluster, SESSION, &read, &noted).await?;
                tell("authorization_pending", "nobody has allowed the device yet")
            }
            Poll::Denied => {
                self.queued(|queue| queue.leave(call.address));
                self.objects.delete(call.cluster, SESSION, name).await?;
                tell("access_denied", "the user has refused")
            }
            Poll::Grant => self.grant_device(call, client, &read, session).await,
        }
    }

    async fn grant_device(
        &self,
        call: &Call<'_>,
        client: &Client,
        read: &Value,
        device: Session,
    ) -> Result<Response<Body>, Failure> {
        // The device's code counts once: whoever makes it a session of its own has used it.
        let used = json!({"device": {"approved": false, "denied": true}});
        if !self.objects.change(call.cluster, SESSION, read, &used).await? {
            return Ok(refused("the device code was used before"));
        }
        self.queued(|queue| queue.leave(call.address));
        let name = random::name().map_err(|error| Failure::NotYet(error.to_string()))?;
        let session = Session {
            kind: Kind::Grant,
            device: None,
            expires_at: time::write(call.now + call.settings.session),
            ..device
        };
        self.add_session(call, &name, &session).await?;
        let waiting = read
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.objects.delete(call.cluster, SESSION, waiting).await?;
        self.issue(call, client, &name, &session).await
    }

    /// The page where people type the code.
    pub(crate) async fn device_page(&self, call: &Call<'_>) -> Response<Body> {
        let Ok(params) = Params::parse(call.query) else {
            return page::ask_code(call, StatusCode::BAD_REQUEST, None);
        };
        match params.get("user_code") {
            None => page::ask_code(call, StatusCode::OK, None),
            Some(typed) => match self.browser(call).await {
                Err(failure) => respond::failed(&failure),
                Ok(None) => self.ask_sign_in(call, typed, None),
                Ok(Some(browser)) => self.ask_allow(call, typed, &browser).await,
            },
        }
    }

    /// What people send: who they are, or whether the device is allowed.
    pub(crate) async fn device_form(&self, call: &Call<'_>) -> Response<Body> {
        let typed = call.form.text("user_code");
        if !self.is_own_form(call) {
            return self.ask_sign_in(call, typed, Some(&Problem::foreign()));
        }
        if call.form.get("decision").is_some() {
            return self.decide(call, typed).await;
        }
        match self.sign_in(call).await {
            Ok((browser, cookie)) => {
                let answer = self.ask_allow(call, typed, &browser).await;
                respond::with_cookie(answer, &cookie)
            }
            Err(denied) => self
                .enrolment(call, &denied, ("device", None), &[("user_code", typed)])
                .unwrap_or_else(|| self.ask_sign_in(call, typed, Some(&denied.problem()))),
        }
    }

    async fn decide(&self, call: &Call<'_>, typed: &str) -> Response<Body> {
        let browser = match self.browser(call).await {
            Ok(Some(browser)) => browser,
            Ok(None) => return self.ask_sign_in(call, typed, None),
            Err(failure) => return respond::failed(&failure),
        };
        if let Some(answer) = self.too_many(call) {
            return answer;
        }
        let (read, session) = match self.waiting(call, typed).await {
            Ok(Some(found)) => found,
            Ok(None) => return self.no_such_code(call),
            Err(failure) => return respond::failed(&failure),
        };
        let is_allowed = call.form.text("decision") == "allow";
        let change = match is_allowed {
            true => json!({
                "user": browser.member.name, "userUID": browser.member.uid, "methods": browser.session.methods,
                "authenticatedAt": browser.session.authenticated_at, "device": {"approved": true},
            }),
            false => json!({"device": {"denied": true}}),
        };
        match self.objects.change(call.cluster, SESSION, &read, &change).await {
            Err(failure) => respond::failed(&failure),
            // The device may have asked in this moment.
            Ok(false) => {
                let code = session.device.map(|it| it.user_code).unwrap_or_default();
                self.ask_allow(call, &code, &browser).await
            }
            Ok(true) if is_allowed => page::tell(
                call,
                StatusCode::OK,
                "The device is signed in. You can close this page.",
            ),
            Ok(true) => page::tell(
                call,
                StatusCode::OK,
                "The device was refused. You can close this page.",
            ),
        }
    }

    /// The device that shows a code and still waits.
    async fn waiting(&self, call: &Call<'_>, typed: &str) -> Result<Option<(Value, Session)>, Failure> {
        let Some(code) = device::read_user_code(typed) else {
            return Ok(None);
        };
        let read = self
            .objects
            .get(call.cluster, SESSION, &name_of(call.realm, &code))
            .await?;
        let found = read.and_then(|it| Session::read(&it).map(|session| (it, session)));
        Ok(found.filter(|(_, session)| {
            let waits = session
                .device
                .as_ref()
                .is_some_and(|it| !it.approved && !it.denied);
            session.kind == Kind::Device && waits && !session.is_over(call.now)
        }))
    }

    fn no_such_code(&self, call: &Call<'_>) -> Response<Body> {
        self.guarded(|guard| guard.failed_at(call.address, call.now, call.limits()));
        let problem = "No device shows this code, or it has waited for too long.";
        page::ask_code(call, StatusCode::NOT_FOUND, Some(problem))
    }

    /// The answer to who has guessed too many codes; looked at before each code that somebody sends, whatever he sends it for.
    fn too_many(&self, call: &Call<'_>) -> Option<Response<Body>> {
        let seconds = self.guarded(|guard| guard.left_of(call.address, call.now, call.limits()))?;
        let told = format!("There were too many wrong attempts. Try again in {seconds} seconds.");
        Some(page::tell(call, StatusCode::TOO_MANY_REQUESTS, &told))
    }

    async fn ask_allow(&self, call: &Call<'_>, typed: &str, browser: &Browser) -> Response<Body> {
        if let Some(answer) = self.too_many(call) {
            return answer;
        }
        let session = match self.waiting(call, typed).await {
            Ok(Some((_, session))) => session,
            Ok(None) => return self.no_such_code(call),
            Err(failure) => return respond::failed(&failure),
        };
        let client = match self.client(call, &session.client).await {
            Ok(Some(client)) => client,
            Ok(None) => return self.no_such_code(call),
            Err(failure) => return respond::failed(&failure),
        };
        let (token, cookie) = match self.form_token(call) {
            Ok(found) => found,
            Err(failure) => return respond::failed(&failure),
        };
        let code = session.device.map(|it| it.user_code).unwrap_or_default();
        let answer = page::ask_device(&client.display_name, &browser.member.name, &code, &token);
        match cookie {
            Some(cookie) => respond::with_cookie(answer, &cookie),
            None => answer,
        }
    }

    fn ask_sign_in(&self, call: &Call<'_>, typed: &str, problem: Option<&Problem>) -> Response<Body> {
        let (token, cookie) = match self.form_token(call) {
            Ok(found) => found,
            Err(failure) => return respond::failed(&failure),
        };
        let question = params::query([("user_code", typed)]);
        let form = SignInForm {
            action: "device",
            token: &token,
            program: "a device",
            user: call.form.text("username"),
            problem: problem.map(|it| it.told.as_str()),
            hidden: &[("user_code", typed)],
            leads_to: None,
            question: &question,
        };
        let status = problem.map_or(StatusCode::OK, |it| it.status);
        let answer = Problem::mark(problem, page::sign_in(call, status, &form));
        match cookie {
            Some(cookie) => respond::with_cookie(answer, &cookie),
            None => answer,
        }
    }
}
