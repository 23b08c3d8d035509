//! The authorization endpoint: a program sends a browser here, a person signs in, the browser goes back with a code.

use fairway_controller::Failure;
use fairway_portal_realm::client::origin;
use fairway_portal_realm::grant::{self, CODE_LIFE};
use fairway_portal_realm::session::Code;
use fairway_portal_realm::{Authorization, Client, Params, Session, Verdict, authorization, secret, time};
use http::{Response, StatusCode};

use crate::page::{self, SignInForm};
use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};
use crate::sign_in::{Browser, Problem};

/// What was asked, by whom.
pub(crate) struct Asked {
    pub(crate) request: Authorization,
    client: Client,
}

impl Provider {
    pub(crate) async fn authorize(&self, call: &Call<'_>) -> Response<Body> {
        let asked = match self.asked(call).await {
            Ok(asked) => asked,
            Err(answer) => return *answer,
        };
        let browser = match self.browser(call).await {
            Ok(browser) => browser,
            Err(failure) => return respond::failed(&failure),
        };
        let recent =
            |it: &Browser| authorization::is_recent(&asked.request, it.session.authenticated_at(), call.now);
        match browser.filter(recent) {
            Some(browser) => {
                let code = self.new_code(call, &asked.request, &browser).await;
                self.send_code(call, &asked, code)
            }
            None if asked.request.silent => {
                self.send_back(call, &asked.request, "login_required", "nobody is signed in")
            }
            None => self.ask(call, &asked, None),
        }
    }

    pub(crate) async fn authorize_form(&self, call: &Call<'_>) -> Response<Body> {
        let asked = match self.asked(call).await {
            Ok(asked) => asked,
            Err(answer) => return *answer,
        };
        if !self.is_own_form(call) {
            return self.ask(call, &asked, Some(&Problem::foreign()));
        }
        let new_code = async |browser: &Browser| self.new_code(call, &asked.request, browser).await;
        match self.sign_in_and(call, new_code).await {
            Ok((_, cookie, code)) => {
                let answer = self.send_code(call, &asked, code);
                respond::with_cookie(answer, &cookie)
            }
            Err(denied) => {
                let action = format!("authorize?{}", call.query);
                let leads_to = origin(&asked.request.redirect_uri);
                self.enrolment(call, &denied, (&action, leads_to.as_deref()), &[])
                    .unwrap_or_else(|| self.ask(call, &asked, Some(&denied.problem())))
            }
        }
    }

    pub(crate) async fn asked(&self, call: &Call<'_>) -> Result<Asked, Box<Response<Body>>> {
        let tell = |why: &str| Box::new(page::tell(call, StatusCode::BAD_REQUEST, why));
        let params = Params::parse(call.query).map_err(|why| tell(&why.to_string()))?;
        let client = self.client(call, params.text("client_id")).await;
        let client = client.map_err(|failure| Box::new(respond::failed(&failure)))?;
        match (authorization::judge(&params, client.as_ref()), client) {
            (Verdict::Proceed(request), Some(client)) => Ok(Asked { request, client }),
            (
                Verdict::Return {
                    redirect_uri,
                    state,
                    error,
                    description,
                },
                _,
            ) => {
                let issuer = self.realms.issuer(call.realm);
                let pairs = [
                    ("error", error),
                    ("error_description", description),
                    ("state", state.as_deref().unwrap_or_default()),
                    ("iss", issuer.as_str()),
                ];
                Err(Box::new(respond::redirect(&authorization::answer(
                    &redirect_uri,
                    &pairs,
                ))))
            }
            (Verdict::Tell(why), _) => Err(tell(why)),
            (Verdict::Proceed(_), None) => Err(tell("The program that sent you here is not known.")),
        }
    }

    pub(crate) fn send_back(
        &self,
        call: &Call<'_>,
        request: &Authorization,
        error: &str,
        description: &str,
    ) -> Response<Body> {
        let issuer = self.realms.issuer(call.realm);
        let pairs = [
            ("error", error),
            ("error_description", description),
            ("state", request.state.as_deref().unwrap_or_default()),
            ("iss", issuer.as_str()),
        ];
        respond::redirect(&authorization::answer(&request.redirect_uri, &pairs))
    }

    fn ask(&self, call: &Call<'_>, asked: &Asked, problem: Option<&Problem>) -> Response<Body> {
        let (token, cookie) = match self.form_token(call) {
            Ok(found) => found,
            Err(failure) => return respond::failed(&failure),
        };
        let typed = call.form.text("username");
        let action = format!("authorize?{}", call.query);
        let leads_to = origin(&asked.request.redirect_uri);
        let form = SignInForm {
            action: &action,
            token: &token,
            program: &asked.client.display_name,
            user: if typed.is_empty() {
                &asked.request.login_hint
            } else {
                typed
            },
            problem: problem.map(|it| it.told.as_str()),
            hidden: &[],
            leads_to: leads_to.as_deref(),
            question: call.query,
        };
        let status = problem.map_or(StatusCode::OK, |it| it.status);
        let answer = Problem::mark(problem, page::sign_in(call, status, &form));
        match cookie {
            Some(cookie) => respond::with_cookie(answer, &cookie),
            None => answer,
        }
    }

    pub(crate) fn send_code(
        &self,
        call: &Call<'_>,
        asked: &Asked,
        code: Result<String, Failure>,
    ) -> Response<Body> {
        match code {
            Err(failure) => respond::failed(&failure),
            Ok(code) => {
                let issuer = self.realms.issuer(call.realm);
                let pairs = [
                    ("code", code.as_str()),
                    ("state", asked.request.state.as_deref().unwrap_or_default()),
                    ("iss", issuer.as_str()),
                ];
                respond::redirect(&authorization::answer(&asked.request.redirect_uri, &pairs))
            }
        }
    }

    pub(crate) async fn new_code(
        &self,
        call: &Call<'_>,
        request: &Authorization,
        browser: &Browser,
    ) -> Result<String, Failure> {
        let failed = |error: random::NoRandomness| Failure::NotYet(error.to_string());
        let (name, secret_text) = (random::name().map_err(failed)?, random::secret().map_err(failed)?);
        let session = Session {
            user: browser.member.name.clone(),
            user_uid: browser.member.uid.clone(),
            client: request.client.clone(),
            scope: request.scope.clone(),
            nonce: request.nonce.clone(),
            browser: browser.name.clone(),
            methods: browser.session.methods.clone(),
            authenticated_at: browser.session.authenticated_at.clone(),
            // A program's session does not outlive the sign-in that it came from.
            expires_at: browser.session.expires_at.clone(),
            code: Some(Code {
                digest: secret::digest(&secret_text),
                challenge: request.challenge.clone(),
                redirect_uri: request.redirect_uri.clone(),
                expires_at: time::write(call.now + CODE_LIFE),
                redeemed: false,
            }),
            ..Session::default()
        };
        self.add_session(call, &name, &session).await?;
        Ok(grant::join(&name, &secret_text))
    }
}
