//! The first phase: who it is. One rule must know.

use std::sync::Arc;

use fairway_gateway_guard::{Passage, Standing};
use fairway_gateway_policy::auth::{Authentication, AuthenticationMethod};
use serde_json::{Map, Value, json};

use super::{Auth, Failure, Remembered, Run, Way};
use crate::calls;
use crate::issuer::{KeyServer, Proof};
use crate::outside::Review;
use crate::tokens::Token;

/// An identity, and what it is known by, if that can be looked at later.
type Found = (Arc<Value>, Option<Standing>);

const NOT_FOUND: Failure = Failure {
    told: std::borrow::Cow::Borrowed("credential not found"),
    why: None,
};
/// The longest token that is asked about.
const MAX_TOKEN: usize = 32 * 1024;

impl Run<'_> {
    pub(super) async fn authenticate(&mut self, auth: &Auth, passage: &mut Passage) -> Result<(), Failure> {
        let rules = &auth.plan.authentication;
        let mut failures: Vec<(&str, Failure)> = Vec::new();
        let mut last = None;
        for ((rule, way), id) in rules.iter().zip(&auth.ways).zip(&auth.ids.authentication) {
            let name = rule.common.name.as_str();
            // A rule that cannot say whether it applies lets nobody in.
            if !self.applies(&rule.common).unwrap_or(false) {
                self.note_unmet(&rule.common, || step(auth, rule));
                continue;
            }
            match self
                .identify(auth, rule, way, *id)
                .await
                .and_then(|(found, standing)| Ok((self.extend(rule, found)?, standing)))
            {
                Ok((identity, standing)) => {
                    self.note(Some(true), || (step(auth, rule), describe(&identity)));
                    if let Some(who) = who(&identity) {
                        passage.told.push(("user", who));
                    }
                    self.facts.set_identity(identity);
                    passage.standing = standing;
                    return Ok(());
                }
                Err(failure) => {
                    let why = failure.why().to_owned();
                    self.note(None, || (step(auth, rule), why));
                    last = self.steps.as_ref().map(|steps| steps.len() - 1);
                    failures.push((name, failure));
                }
            }
        }
        // Another rule might have known; where none does, the last one decides.
        if let (Some(steps), Some(last)) = (&mut self.steps, last) {
            steps[last].passes = Some(false);
        }
        match (rules.len(), failures.pop()) {
            (1, Some((_, only))) => Err(only),
            (_, last) => {
                failures.extend(last);
                let list = |text: fn(&Failure) -> &str| {
                    let map: Map<String, Value> = failures
                        .iter()
                        .map(|(name, failure)| ((*name).to_owned(), Value::from(text(failure))))
                        .collect();
                    Value::Object(map).to_string()
                };
                Err(Failure {
                    told: list(|failure| &failure.told).into(),
                    why: Some(list(Failure::why)),
                })
            }
        }
    }

    async fn identify(
        &mut self,
        auth: &Auth,
        rule: &Authentication,
        way: &Way,
        id: u64,
    ) -> Result<Found, Failure> {
        let asked = self.facts.asked();
        let unknown = |identity| (identity, None);
        match (&rule.method, way) {
            (AuthenticationMethod::Anonymous, _) => Ok(unknown(Arc::new(json!({"anonymous": true})))),
            (AuthenticationMethod::Plain(value), _) => match value.value(&self.facts)? {
                Value::Null => Err(Failure::told("could not retrieve identity object")),
                value => Ok(unknown(Arc::new(value))),
            },
            (_, Way::Keys(ring)) => {
                let key = rule.credentials.find(asked).ok_or(NOT_FOUND)?;
                let entry = ring
                    .find(&key)
                    .ok_or(Failure::told("the API Key provided is invalid"))?;
                Ok((Arc::clone(&entry.identity), Some(Standing(entry))))
            }
            (_, Way::Server(server)) => {
                let token = rule.credentials.find(asked).ok_or(NOT_FOUND)?;
                let token = self.token(server, &token).await?;
                Ok((Arc::clone(&token.claims), Some(Standing(token))))
            }
            (AuthenticationMethod::TokenReview { audiences, timeout }, _) => {
                let token = rule.credentials.find(asked).ok_or(NOT_FOUND)?;
                let review = self.review_token(auth, (rule, id), &token, (audiences, *timeout));
                review.await.map(unknown)
            }
            (AuthenticationMethod::Introspection { .. }, _) => {
                let token = rule.credentials.find(asked).ok_or(NOT_FOUND)?;
                self.introspect(auth, rule, id, &token).await.map(unknown)
            }
            (AuthenticationMethod::ApiKey(_) | AuthenticationMethod::Jwt(_), Way::Other) => {
                Err(Failure::told("not available"))
            }
        }
    }

    async fn token(&self, server: &KeyServer, token: &str) -> Result<Arc<Token>, Failure> {
        let now = self.now_seconds();
        match server.verify(token, now) {
            Proof::Good(token) => Ok(token),
            Proof::Bad(why) => Err(Failure::told(why)),
            Proof::Ask => {
                let verified = self.wait(server.verify_later(token, now)).await;
                verified.map_err(|why| Failure::hidden("the token could not be verified", why))
            }
        }
    }

    async fn review_token(
        &self,
        auth: &Auth,
        (rule, id): (&Authentication, u64),
        token: &str,
        (audiences, timeout): (&[String], std::time::Duration),
    ) -> Result<Arc<Value>, Failure> {
        let place = self.remembered(id, &rule.common);
        if let Remembered::Known(value) = place {
            return Ok(value);
        }
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(Failure::told("not authenticated"));
        }
        // Upstream: a token must be for the host that is asked, unless the rule says for whom.
        let audiences = match audiences {
            [] => vec![self.facts.asked().host.to_owned()],
            some => some.to_vec(),
        };
        let review = Review {
            workspace: rule.common.source.workspace.clone(),
            api_version: "authentication.k8s.io/v1",
            kind: "TokenReview",
            spec: json!({"token": token, "audiences": audiences}),
        };
        let answer = self.shared.outside.cluster.review(review);
        let status = self.wait(tokio::time::timeout(timeout, answer)).await;
        let failed = |why| Failure::hidden("not authenticated", why);
        let status = status.unwrap_or_else(|_| Err("the TokenReview took too long".to_owned()));
        let status = status.map_err(|why| {
            auth.unanswered(self, "authentication", &rule.common, &why);
            failed(why)
        })?;
        if status["authenticated"] != true {
            return Err(failed(
                status["error"].as_str().unwrap_or("not authenticated").to_owned(),
            ));
        }
        let status = Arc::new(status);
        self.remember(place, &status);
        Ok(status)
    }

    async fn introspect(
        &self,
        auth: &Auth,
        rule: &Authentication,
        id: u64,
        token: &str,
    ) -> Result<Arc<Value>, Failure> {
        let AuthenticationMethod::Introspection {
            endpoint,
            token_type_hint,
            credentials,
            timeout,
        } = &rule.method
        else {
            return Err(Failure::told("not available"));
        };
        let place = self.remembered(id, &rule.common);
        if let Remembered::Known(value) = place {
            return Ok(value);
        }
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(Failure::told("token is not active"));
        }
        let outside = &self.shared.outside;
        let answer = async {
            let fields = outside.cluster.secret(credentials.clone()).await?;
            let field = |name| calls::field(&fields, name).unwrap_or_default();
            let (id, secret) = (field("clientID"), field("clientSecret"));
            let message = calls::introspection(endpoint, token, token_type_hint, (&id, &secret), *timeout);
            let reply = outside.web.send(message).await?;
            calls::read(endpoint, &reply)
        };
        let answer: Result<Value, String> = self.wait(answer).await;
        let answer = answer.map_err(|why| {
            auth.unanswered(self, "authentication", &rule.common, &why);
            Failure::hidden("the token could not be verified", why)
        })?;
        if answer["active"] != true {
            return Err(Failure::told("token is not active"));
        }
        let answer = Arc::new(answer);
        self.remember(place, &answer);
        Ok(answer)
    }

    /// Sets the properties that the rule adds to an identity.
    fn extend(&mut self, rule: &Authentication, identity: Arc<Value>) -> Result<Arc<Value>, Failure> {
        if rule.overrides.is_empty() && rule.defaults.is_empty() {
            return Ok(identity);
        }
        let Value::Object(mut extended) = (*identity).clone() else {
            return Err(Failure::told("the identity has no properties that could be set"));
        };
        // Expressions see the identity as it was found.
        self.facts.set_identity(identity);
        for (name, value) in &rule.defaults {
            if !extended.contains_key(name) {
                extended.insert(name.clone(), value.value(&self.facts)?);
            }
        }
        for (name, value) in &rule.overrides {
            extended.insert(name.clone(), value.value(&self.facts)?);
        }
        Ok(Arc::new(Value::Object(extended)))
    }
}

fn step(auth: &Auth, rule: &Authentication) -> String {
    format!("{} authentication {:?}", auth.by, rule.common.name)
}

/// Somebody's name in logs: of a Secret its own name, never its contents.
fn who(identity: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if identity["kind"] == "Secret" || identity["data"].is_object() {
        return text(&identity["metadata"]["name"]);
    }
    [
        &identity["preferred_username"],
        &identity["sub"],
        &identity["user"]["username"],
    ]
    .into_iter()
    .find_map(text)
}

fn describe(identity: &Value) -> String {
    match who(identity) {
        Some(who) if identity["data"].is_object() => format!("Secret {who}"),
        Some(who) => who,
        None if identity["anonymous"] == true => "anonymous".to_owned(),
        None => "somebody without a name".to_owned(),
    }
}
