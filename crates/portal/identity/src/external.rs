//! Signing in with another provider: a browser is sent there with a question that only it can bring the answer to, and goes on from
//! there as after a password. What the provider says is the proof, a second factor included; nothing that a browser brings is
//! believed, and it is sent nowhere but to the provider's own address and to where it came from.

use fairway_api::identity::CREDENTIAL;
use fairway_controller::Failure;
use fairway_portal_realm::external::entry::Refusal;
use fairway_portal_realm::external::pending::{Goal, Return, Waiting};
use fairway_portal_realm::external::visitor::Visitor;
use fairway_portal_realm::external::{self, IdentityProvider, Question};
use fairway_portal_realm::{Member, Params, authorization, secret};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tracing::warn;

use crate::authorize::Asked;
use crate::entries::NotIn;
use crate::page;
use crate::provider::{Call, Provider};
use crate::random;
use crate::respond::{self, Body};
use crate::sign_in::{Browser, Denied};
use crate::upstream::{Brought, Published};

/// Below a realm: where sign-in with other providers begins (`NAME`) and where they send browsers back to (`NAME/callback`). An address
/// for each, so that none can pass its answers off as another's.
pub(crate) const EXTERNAL: &str = "external/";
const CALLBACK: &str = "callback";
/// The longest code of a device that somebody brings along.
const MAX_CODE: usize = 64;
/// How much older a proof may be than the question that wanted a new one: clocks differ.
const LEEWAY: i64 = 60;
/// How somebody has shown who he is, in sessions and tokens.
const METHOD: &str = "external";

/// Why a browser that comes back is not signed in.
enum Turned {
    /// The provider says that it has not signed anybody in.
    Declined(String),
    /// The provider cannot be asked, or what it says is not believed.
    ByProvider(String),
    /// It has not asked again who it is, though it was told to.
    Stale,
    /// By what is known here.
    Here(NotIn),
}

impl From<NotIn> for Turned {
    fn from(why: NotIn) -> Self {
        Self::Here(why)
    }
}

impl From<Failure> for Turned {
    fn from(failure: Failure) -> Self {
        Self::Here(NotIn::Failed(failure))
    }
}

/// The name of the Credential with what a provider knows us by.
fn credential_of(provider: &str) -> String {
    format!("provider.{provider}")
}

impl Provider {
    pub(crate) async fn external(&self, call: &Call<'_>, rest: &str) -> Response<Body> {
        let (name, is_back) = match rest.split_once('/') {
            None => (rest, false),
            Some((name, CALLBACK)) => (name, true),
            Some(_) => return page::not_found(),
        };
        match call.settings.identity_provider(name) {
            None => page::not_found(),
            Some(provider) if is_back => self.come_back(call, provider).await,
            Some(provider) => self.send_off(call, provider).await,
        }
    }

    fn callback(&self, call: &Call<'_>, provider: &IdentityProvider) -> String {
        let issuer = self.realms.issuer(call.realm);
        format!("{issuer}/{EXTERNAL}{}/{CALLBACK}", provider.name)
    }

    async fn send_off(&self, call: &Call<'_>, provider: &IdentityProvider) -> Response<Body> {
        let tell = |status, sentence: &str| page::tell(call, status, sentence);
        let params = match Params::parse(call.query) {
            Ok(params) => params,
            Err(why) => return tell(StatusCode::BAD_REQUEST, &why.to_string()),
        };
        let (goal, asked) = match params.get("client_id") {
            None => {
                let code: String = params.text("user_code").chars().take(MAX_CODE).collect();
                (Goal::Device(code), None)
            }
            Some(_) => match self.asked(call).await {
                Err(answer) => return *answer,
                Ok(asked) if asked.request.silent => {
                    return self.send_back(call, &asked.request, "login_required", "nobody is signed in");
                }
                Ok(asked) => (Goal::Program(call.query.to_owned()), Some(asked)),
            },
        };
        let published = match self.upstreams.of(call.realm, provider) {
            Ok(upstream) => upstream.published(false).await,
            Err(why) => Err(why),
        };
        let published = match published {
            Ok(published) => published,
            Err(why) => return self.turn_away(call, provider, &goal, Turned::ByProvider(why), None),
        };
        match self.begin_external(call, provider, &published, goal, asked.as_ref()) {
            Ok(Some(answer)) => answer,
            Ok(None) => tell(
                StatusCode::BAD_REQUEST,
                "The program that sent you here sent too much along.",
            ),
            Err(failure) => respond::failed(&failure),
        }
    }

    fn begin_external(
        &self,
        call: &Call<'_>,
        provider: &IdentityProvider,
        published: &Published,
        goal: Goal,
        asked: Option<&Asked>,
    ) -> Result<Option<Response<Body>>, Failure> {
        let drawn = || random::secret().map_err(|error| Failure::NotYet(error.to_string()));
        let (state, nonce, verifier) = (drawn()?, drawn()?, drawn()?);
        let (browser, cookie) = self.form_token(call)?;
        let question = Question {
            callback: &self.callback(call, provider),
            state: &state,
            nonce: &nonce,
            challenge: &secret::digest(&verifier),
            wanted: asked.map(|it| &it.request),
        };
        let there = external::address(provider, &published.endpoints, question);
        let waiting = Waiting {
            realm: call.realm.to_owned(),
            provider: provider.name.clone(),
            browser,
            nonce,
            verifier,
            goal,
            begun: call.now,
            address: call.address,
        };
        if !self.awaited(|pending| pending.add(&state, waiting)) {
            return Ok(None);
        }
        let answer = respond::redirect(&there);
        Ok(Some(match cookie {
            Some(cookie) => respond::with_cookie(answer, &cookie),
            None => answer,
        }))
    }

    async fn come_back(&self, call: &Call<'_>, provider: &IdentityProvider) -> Response<Body> {
        let params = Params::parse(call.query).unwrap_or_default();
        let back = Return {
            state: params.text("state"),
            realm: call.realm,
            provider: &provider.name,
            browser: &self.form_token_of(call).unwrap_or_default(),
        };
        let Some(waiting) = self.awaited(|pending| pending.take(back, call.now)) else {
            let told = "This sign-in was begun in another browser, took too long, or was used before. Go back to the program and \
                        begin again.";
            return page::tell(call, StatusCode::BAD_REQUEST, told);
        };
        let visitor = match self.visitor(call, provider, &params, &waiting).await {
            Ok(visitor) => visitor,
            Err(why) => return self.turn_away(call, provider, &waiting.goal, why, None),
        };
        // What the program wants is read again: it may be gone by now.
        let inner = Call {
            query: match &waiting.goal {
                Goal::Program(query) => query,
                Goal::Device(_) => "",
            },
            settings: call.settings.clone(),
            form: Params::default(),
            ..*call
        };
        let asked = match &waiting.goal {
            Goal::Device(_) => None,
            Goal::Program(_) => match self.asked(&inner).await {
                Ok(asked) => Some(asked),
                Err(answer) => return *answer,
            },
        };
        let wanted = asked.as_ref().map(|it| &it.request);
        if wanted.is_some_and(|it| is_stale(it, &visitor, waiting.begun, call.now)) {
            return self.turn_away(call, provider, &waiting.goal, Turned::Stale, None);
        }
        let let_in = self.entries.let_in(&self.realms, call, provider, &visitor).await;
        match let_in {
            Ok(member) => {
                self.go_on(&inner, asked.as_ref(), member, &visitor, &waiting.goal)
                    .await
            }
            Err(why) => self.turn_away(call, provider, &waiting.goal, why.into(), Some(&visitor)),
        }
    }

    /// Who has signed in at the provider, by what a browser brings.
    async fn visitor(
        &self,
        call: &Call<'_>,
        provider: &IdentityProvider,
        params: &Params,
        waiting: &Waiting,
    ) -> Result<Visitor, Turned> {
        let turned = |why: &str| Turned::ByProvider(why.to_owned());
        let upstream = self
            .upstreams
            .of(call.realm, provider)
            .map_err(Turned::ByProvider)?;
        let published = upstream.published(false).await.map_err(Turned::ByProvider)?;
        let is_named = match params.get("iss") {
            Some(issuer) => issuer == provider.issuer,
            None => !published.endpoints.names_itself,
        };
        if !is_named {
            return Err(turned("the browser comes back from another issuer"));
        }
        if let Some(error) = params.get("error") {
            let description = params.text("error_description");
            return Err(Turned::Declined(format!("{error:?} {description:?}")));
        }
        let code = params
            .get("code")
            .ok_or_else(|| turned("the browser brings no code"))?;
        let kept = self
            .objects
            .get(call.cluster, CREDENTIAL, &credential_of(&provider.name))
            .await?;
        let secret = kept
            .as_ref()
            .and_then(|it| it.pointer("/spec/clientSecret").and_then(Value::as_str));
        let brought = Brought {
            code,
            verifier: &waiting.verifier,
            callback: &self.callback(call, provider),
            nonce: &waiting.nonce,
            secret: secret.filter(|it| !it.is_empty()),
        };
        upstream
            .visitor(brought, call.now)
            .await
            .map_err(Turned::ByProvider)
    }

    /// As after a password: a session of its own, and on to what the browser came for.
    async fn go_on(
        &self,
        call: &Call<'_>,
        asked: Option<&Asked>,
        member: Member,
        visitor: &Visitor,
        goal: &Goal,
    ) -> Response<Body> {
        let proof = (vec![METHOD.to_owned()], visitor.authenticated_at);
        let next = async |browser: &Browser| match asked {
            Some(asked) => Some(self.new_code(call, &asked.request, browser).await),
            None => None,
        };
        let entered = self.enter(call, member, proof, next).await;
        let (cookie, code) = match entered {
            Ok((_, cookie, code)) => (cookie, code),
            Err(denied) => {
                let problem = denied.problem();
                return page::tell(call, problem.status, &problem.told);
            }
        };
        let answer = match (asked, code) {
            (Some(asked), Some(code)) => self.send_code(call, asked, code),
            _ => respond::redirect(&format!("{}/{}", self.realms.issuer(call.realm), goal.page())),
        };
        respond::with_cookie(answer, &cookie)
    }

    /// Says why somebody is not signed in. The log has what an administrator can use; the page, what concerns him.
    fn turn_away(
        &self,
        call: &Call<'_>,
        provider: &IdentityProvider,
        goal: &Goal,
        why: Turned,
        visitor: Option<&Visitor>,
    ) -> Response<Body> {
        let (realm, name, there) = (call.realm, &provider.name, &provider.display_name);
        let (status, told, remedy) = match why {
            Turned::Declined(why) => {
                warn!(
                    realm,
                    provider = name,
                    why,
                    "another provider has not signed somebody in"
                );
                let told = format!("{there} has not signed you in. The server's log has its reason.");
                (StatusCode::FORBIDDEN, told, None)
            }
            Turned::ByProvider(why) => {
                warn!(
                    realm,
                    provider = name,
                    why,
                    "somebody could not sign in with another provider"
                );
                let told = format!(
                    "{there} could not sign you in. Try again; the server's log says why if it stays so."
                );
                (StatusCode::BAD_GATEWAY, told, None)
            }
            Turned::Stale => {
                let told = format!(
                    "{there} should have asked you again who you are, and has not. Sign out there first."
                );
                (StatusCode::FORBIDDEN, told, None)
            }
            Turned::Here(NotIn::Disabled) => {
                warn!(
                    realm,
                    provider = name,
                    "somebody is locked out and came by another provider"
                );
                let told =
                    format!("{there} knows you, but your user here is disabled. Ask your administrator.");
                (StatusCode::FORBIDDEN, told, None)
            }
            Turned::Here(NotIn::Refused(refusal)) => {
                warn!(realm, provider = name, %refusal, "somebody was not let in who came by another provider");
                let told = format!("{there} knows you, but you are not let in here. {refusal}");
                let remedy = visitor.map(|it| remedy(call, provider, it, &refusal));
                (StatusCode::FORBIDDEN, told, remedy)
            }
            Turned::Here(NotIn::Failed(failure)) => {
                let problem = Denied::Failed(failure).problem();
                (problem.status, problem.told, None)
            }
        };
        let again = format!("{}/{}", self.realms.issuer(call.realm), goal.page());
        page::not_signed_in(call, status, &told, remedy.as_deref(), Some(&again))
    }
}

/// Whether the provider has believed an old proof where a new one was wanted.
fn is_stale(wanted: &authorization::Authorization, visitor: &Visitor, begun: i64, now: i64) -> bool {
    let at = visitor.authenticated_at;
    let is_old = wanted.max_age.is_some_and(|age| now - at > age + LEEWAY);
    is_old || (wanted.afresh && at + LEEWAY < begun)
}

/// What an administrator can apply. Values are written as JSON, which YAML is, so that nothing in them is anything else.
fn remedy(call: &Call<'_>, provider: &IdentityProvider, visitor: &Visitor, refusal: &Refusal) -> String {
    let workspace = fairway_api::identity::workspace_of_realm(call.realm);
    let identity = json!({"issuer": provider.issuer, "subject": visitor.subject});
    if *refusal == Refusal::Several {
        return format!(
            "# In the workspace {workspace} several Users have this spec.identity:\n{identity}\n"
        );
    }
    let name = match refusal {
        Refusal::Taken(name) => name.as_str(),
        _ if !visitor.username.is_empty() => &visitor.username,
        _ => "NAME",
    };
    format!(
        "# In the workspace {workspace}:\napiVersion: fairway.dev/v1alpha1\nkind: User\nmetadata: {{name: {name}}}\nspec:\n  identity: \
         {identity}\n"
    )
}
