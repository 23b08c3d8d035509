//! One's own account: whoever is signed in changes his password and sets one-time codes up, without an administrator.
//!
//! Whatever is changed, the password of now is asked for, and a one-time code if there is a seed: a browser that was left open is not
//! enough. Wrong ones are counted as at sign-in. The seed that an app is told goes back and forth in the form and is kept only once a
//! code has shown that the app has it; it is nobody else's, so that changing it there gains nothing.

use fairway_api::identity::{CREDENTIAL, SESSION};
use fairway_controller::Failure;
use fairway_portal_realm::session::Kind;
use fairway_portal_realm::{password, totp};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tracing::info;

use crate::account_page::{self, Account, Enrolment};
use crate::page::{self, SignInForm};
use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};
use crate::sign_in::{Browser, Denied, ENROL_SEED, NEW_CODE, Problem, credential_of};

/// What an attempt to change something has led to.
enum Outcome {
    /// Something was changed, which is told.
    Done(&'static str),
    /// Nothing was, and why.
    Not(Problem),
    /// The app is told a seed first.
    Enrol(Option<Problem>),
}

fn not(why: impl Into<String>) -> Outcome {
    Outcome::Not(Problem {
        status: StatusCode::BAD_REQUEST,
        told: why.into(),
        wait: None,
    })
}

/// Whether somebody has a password and a seed.
fn what_is_kept(credential: Option<&Value>) -> (bool, bool) {
    let has = |pointer: &str| {
        let found = credential.and_then(|it| it.pointer(pointer)?.as_str());
        found.is_some_and(|text| !text.is_empty())
    };
    (has("/spec/passwordHash"), has("/spec/totpSeed"))
}

impl Provider {
    /// `GET account`.
    pub(crate) async fn account(&self, call: &Call<'_>) -> Response<Body> {
        match self.browser(call).await {
            Err(failure) => respond::failed(&failure),
            Ok(None) => self.ask_for_account(call, None),
            Ok(Some(browser)) => self.show_account(call, &browser, None, None).await,
        }
    }

    /// `POST account`: a sign-in, or one of the page's forms.
    pub(crate) async fn account_form(&self, call: &Call<'_>) -> Response<Body> {
        if !self.is_own_form(call) {
            return self.ask_for_account(call, Some(&Problem::foreign()));
        }
        let Some(does) = call.form.get("do") else {
            return match self.sign_in(call).await {
                // The page is asked for anew: what the form was sent with must not be sent again.
                Ok((_, cookie)) => {
                    let address = format!("/realms/{}/account", call.realm);
                    respond::with_cookie(respond::redirect(&address), &cookie)
                }
                Err(denied) => self
                    .enrolment(call, &denied, ("account", None), &[])
                    .unwrap_or_else(|| self.ask_for_account(call, Some(&denied.problem()))),
            };
        };
        let browser = match self.browser(call).await {
            Ok(Some(browser)) => browser,
            Ok(None) => return self.ask_for_account(call, None),
            Err(failure) => return respond::failed(&failure),
        };
        let outcome = match does {
            "password" => self.change_password(call, &browser).await,
            "enrol" => Ok(Outcome::Enrol(None)),
            "confirm" => self.set_up_codes(call, &browser).await,
            "remove" => self.remove_codes(call, &browser).await,
            _ => Ok(not("The form is not one of this page. Try again.")),
        };
        match outcome {
            Ok(Outcome::Done(what)) => self.show_account(call, &browser, Some(what), None).await,
            Ok(Outcome::Not(problem)) => self.show_account(call, &browser, None, Some(&problem)).await,
            Ok(Outcome::Enrol(problem)) => self.show_enrolment(call, &browser, problem.as_ref()).await,
            Err(failure) => respond::failed(&failure),
        }
    }

    /// Who sends a form shows his password once more, and a code if he has a seed.
    async fn shows_again(&self, call: &Call<'_>, browser: &Browser) -> Result<Option<Problem>, Failure> {
        let user = &browser.member.name;
        match self.show(call, user).await {
            Ok(_) => {
                self.guarded(|guard| guard.succeeded(call.realm, user));
                Ok(None)
            }
            Err(Denied::Failed(failure)) => Err(failure),
            Err(Denied::Wrong) => Ok(Some(Problem {
                status: StatusCode::BAD_REQUEST,
                told: "Your password or one-time code is wrong. Nothing was changed.".to_owned(),
                wait: None,
            })),
            Err(denied) => Ok(Some(denied.problem())),
        }
    }

    async fn change_password(&self, call: &Call<'_>, browser: &Browser) -> Result<Outcome, Failure> {
        let (user, chosen) = (&browser.member.name, call.form.text("new_password"));
        if chosen != call.form.text("repeated") {
            return Ok(not(
                "The new password was not typed the same twice. Nothing was changed.",
            ));
        }
        if let Err(weak) = password::judge(chosen, user, call.settings.password_min) {
            return Ok(not(format!("This password is not taken: {weak}.")));
        }
        if let Some(problem) = self.shows_again(call, browser).await? {
            return Ok(Outcome::Not(problem));
        }
        let Ok(turn) = self.hasher.turn().await else {
            return Ok(Outcome::Not(Denied::Busy.problem()));
        };
        let hash = self.hasher.hashed(&turn, chosen.to_owned()).await;
        drop(turn);
        let hash = hash.map_err(|error| Failure::NotYet(error.to_string()))?;
        if !self
            .change_credential(call, user, &json!({"passwordHash": hash}))
            .await?
        {
            return Ok(not("Somebody else has changed it in the same moment. Try again."));
        }
        self.end_others(call, browser).await?;
        info!(realm = call.realm, user, "a user changed his password");
        Ok(Outcome::Done(
            "Your password is changed. You are signed out everywhere else.",
        ))
    }

    async fn set_up_codes(&self, call: &Call<'_>, browser: &Browser) -> Result<Outcome, Failure> {
        let user = &browser.member.name;
        let seed = call.form.text(ENROL_SEED);
        let Some(step) = totp::enrolled(seed, call.form.text(NEW_CODE), call.now) else {
            return Ok(Outcome::Enrol(Some(Denied::NeedsCode { wrong: true }.problem())));
        };
        if let Some(problem) = self.shows_again(call, browser).await? {
            return Ok(Outcome::Enrol(Some(problem)));
        }
        let change = json!({"totpSeed": seed, "totpLastStep": step});
        if !self.change_credential(call, user, &change).await? {
            return Ok(not("Somebody else has changed it in the same moment. Try again."));
        }
        info!(realm = call.realm, user, "a user set up one-time codes");
        Ok(Outcome::Done(
            "One-time codes are set up. You are asked for one whenever you sign in.",
        ))
    }

    async fn remove_codes(&self, call: &Call<'_>, browser: &Browser) -> Result<Outcome, Failure> {
        let user = &browser.member.name;
        if call.settings.require_totp {
            return Ok(not(
                "Your organisation wants one-time codes: they cannot be removed.",
            ));
        }
        if let Some(problem) = self.shows_again(call, browser).await? {
            return Ok(Outcome::Not(problem));
        }
        let none = json!({"totpSeed": null, "totpLastStep": null});
        if !self.change_credential(call, user, &none).await? {
            return Ok(not("Somebody else has changed it in the same moment. Try again."));
        }
        info!(realm = call.realm, user, "a user removed one-time codes");
        Ok(Outcome::Done("You sign in without one-time codes from now on."))
    }

    /// False if there is none, or somebody else was quicker.
    async fn change_credential(&self, call: &Call<'_>, user: &str, change: &Value) -> Result<bool, Failure> {
        let name = credential_of(user);
        match self.objects.get(call.cluster, CREDENTIAL, &name).await? {
            Some(read) => self.objects.change(call.cluster, CREDENTIAL, &read, change).await,
            None => Ok(false),
        }
    }

    /// Ends every session but that of this browser and of what it has led to: whoever knew the old password may be signed in somewhere.
    async fn end_others(&self, call: &Call<'_>, browser: &Browser) -> Result<(), Failure> {
        let others: Vec<String> = self.realms.read(|all| {
            let kept = all.sessions_of_browser(call.realm, &browser.name);
            let of = |kind| all.sessions_of_user(call.realm, &browser.member.name, kind);
            let both = [of(Kind::Browser), of(Kind::Grant)].concat();
            both.into_iter().filter(|it| !kept.contains(it)).collect()
        });
        for other in others {
            self.objects.delete(call.cluster, SESSION, &other).await?;
        }
        Ok(())
    }

    async fn show_account(
        &self,
        call: &Call<'_>,
        browser: &Browser,
        done: Option<&str>,
        problem: Option<&Problem>,
    ) -> Response<Body> {
        let name = credential_of(&browser.member.name);
        let credential = match self.objects.get(call.cluster, CREDENTIAL, &name).await {
            Ok(found) => found,
            Err(failure) => return respond::failed(&failure),
        };
        let (has_password, has_codes) = what_is_kept(credential.as_ref());
        self.with_form(call, |token| {
            let shown = Account {
                user: &browser.member.name,
                token,
                has_password,
                has_codes,
                problem: problem.map(|it| it.told.as_str()),
                done,
            };
            let status = problem.map_or(StatusCode::OK, |it| it.status);
            Problem::mark(problem, account_page::account(call, status, &shown))
        })
    }

    async fn show_enrolment(
        &self,
        call: &Call<'_>,
        browser: &Browser,
        problem: Option<&Problem>,
    ) -> Response<Body> {
        let name = credential_of(&browser.member.name);
        let has_codes = match self.objects.get(call.cluster, CREDENTIAL, &name).await {
            Ok(found) => what_is_kept(found.as_ref()).1,
            Err(failure) => return respond::failed(&failure),
        };
        let hidden = [("do", "confirm")];
        self.enrol(
            call,
            &browser.member.name,
            ("account", None),
            (&hidden, has_codes),
            problem,
        )
    }

    /// The page for whoever has shown his password at a sign-in and must set up codes to go on; none for others.
    pub(crate) fn enrolment(
        &self,
        call: &Call<'_>,
        denied: &Denied,
        form: (&str, Option<&str>),
        hidden: &[(&str, &str)],
    ) -> Option<Response<Body>> {
        if !matches!(denied, Denied::NeedsCode { .. }) {
            return None;
        }
        let user = call.form.text("username").trim().to_lowercase();
        let hidden: Vec<(&str, &str)> = hidden
            .iter()
            .copied()
            .chain([("username", user.as_str())])
            .collect();
        Some(self.enrol(call, &user, form, (&hidden, false), Some(&denied.problem())))
    }

    fn enrol(
        &self,
        call: &Call<'_>,
        user: &str,
        (action, leads_to): (&str, Option<&str>),
        (hidden, has_codes): (&[(&str, &str)], bool),
        problem: Option<&Problem>,
    ) -> Response<Body> {
        // Whoever mistyped a code has told the app already.
        let offered = call.form.text(ENROL_SEED);
        let is_sound = totp::decode(offered).is_some_and(|seed| seed.len() == totp::SEED);
        let seed = match is_sound {
            true => offered.to_owned(),
            false => match random::bytes::<{ totp::SEED }>() {
                Ok(seed) => totp::encode(&seed),
                Err(error) => return respond::failed(&Failure::NotYet(error.to_string())),
            },
        };
        let uri = totp::uri(call.realm, user, &seed);
        self.with_form(call, |token| {
            let asked = Enrolment {
                action,
                token,
                hidden,
                seed: &seed,
                uri: &uri,
                has_codes,
                problem: problem.map(|it| it.told.as_str()),
                leads_to,
            };
            let status = problem.map_or(StatusCode::OK, |it| it.status);
            Problem::mark(problem, account_page::enrol(call, status, &asked))
        })
    }

    fn ask_for_account(&self, call: &Call<'_>, problem: Option<&Problem>) -> Response<Body> {
        self.with_form(call, |token| {
            let form = SignInForm {
                action: "account",
                token,
                program: "your account",
                user: call.form.text("username"),
                problem: problem.map(|it| it.told.as_str()),
                hidden: &[],
                leads_to: None,
                question: "",
            };
            let status = problem.map_or(StatusCode::OK, |it| it.status);
            Problem::mark(problem, page::sign_in(call, status, &form))
        })
    }

    /// A page with a form, and the cookie that the form is tied to if the browser has none yet.
    fn with_form(&self, call: &Call<'_>, page: impl FnOnce(&str) -> Response<Body>) -> Response<Body> {
        match self.form_token(call) {
            Err(failure) => respond::failed(&failure),
            Ok((token, None)) => page(&token),
            Ok((token, Some(cookie))) => respond::with_cookie(page(&token), &cookie),
        }
    }
}
