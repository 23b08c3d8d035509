//! The third phase: whether they may. Every rule must say so.

use fairway_gateway_policy::auth::{AccessReview, Authorization, AuthorizationMethod};
use fairway_gateway_policy::expression::{ValueFrom, shown, stringify};
use serde_json::{Value, json};
use std::sync::Arc;

use super::{Auth, Failure, Remembered, Run};
use crate::outside::Review;

impl Run<'_> {
    pub(super) async fn authorize(&mut self, auth: &Auth) -> Result<(), Failure> {
        for (at, rule) in auth.plan.authorization.iter().enumerate() {
            let name = &rule.common.name;
            let what = || format!("{} authorization {name:?}", auth.by);
            // A rule that cannot say whether it applies may be the one that matters.
            if !self.applies(&rule.common)? {
                self.note_unmet(&rule.common, what);
                continue;
            }
            let outcome = self.allows(auth, at, rule).await;
            if self.steps.is_some() {
                let seen = match (&rule.method, &outcome) {
                    (AuthorizationMethod::Patterns(patterns), _) => patterns.describe(&self.facts),
                    (_, Ok(value)) => shown(&self.facts, &[], value).0,
                    (_, Err(failure)) => failure.why().to_owned(),
                };
                self.note(Some(outcome.is_ok()), || (what(), seen));
            }
            let value = outcome.map_err(|failure| {
                let why = format!("authorization {name:?}: {}", failure.why());
                Failure {
                    why: Some(why),
                    ..failure
                }
            })?;
            self.facts.set_authorization(name, (*value).clone());
        }
        Ok(())
    }

    async fn allows(&self, auth: &Auth, at: usize, rule: &Authorization) -> Result<Arc<Value>, Failure> {
        let denied = || Failure::told("Unauthorized");
        let id = auth.ids.authorization.get(at).copied().unwrap_or_default();
        let place = self.remembered(id, &rule.common);
        if let Remembered::Known(value) = place {
            return Ok(value);
        }
        let value = match &rule.method {
            AuthorizationMethod::Patterns(patterns) => match patterns.test(&self.facts)? {
                true => Value::Bool(true),
                false => return Err(denied()),
            },
            AuthorizationMethod::Rego { .. } => {
                let module = auth.modules.get(at).and_then(Option::as_ref);
                let module = module.ok_or_else(denied)?;
                let document = self.facts.document();
                let outcome = match module.is_slow() {
                    false => module.allow(document),
                    true => {
                        let apart = async { Arc::clone(module).allow_apart(document.clone()).await };
                        self.wait(apart).await
                    }
                };
                outcome.map_err(|why| Failure::hidden("Unauthorized", why))?
            }
            AuthorizationMethod::SubjectAccessReview(review) => {
                self.review_access(auth, rule, review).await?
            }
        };
        let value = Arc::new(value);
        self.remember(place, &value);
        Ok(value)
    }

    async fn review_access(
        &self,
        auth: &Auth,
        rule: &Authorization,
        review: &AccessReview,
    ) -> Result<Value, Failure> {
        let text = |value: &ValueFrom| value.text(&self.facts);
        let mut spec = json!({});
        if let Some(user) = &review.user {
            spec["user"] = Value::from(text(user)?);
        }
        let mut groups: Vec<String> = review.groups.clone();
        if let Some(dynamic) = &review.authorization_groups {
            match dynamic.value(&self.facts)? {
                Value::Array(several) => groups.extend(several.iter().map(stringify)),
                Value::Null => {}
                one => groups.push(stringify(&one)),
            }
        }
        if !groups.is_empty() {
            spec["groups"] = Value::from(groups);
        }
        match &review.resource {
            Some(parts) => {
                let mut attributes = json!({});
                let names = ["group", "resource", "subresource", "name", "namespace", "verb"];
                for (name, part) in names.into_iter().zip(parts) {
                    attributes[name] = Value::from(text(part)?);
                }
                spec["resourceAttributes"] = attributes;
            }
            None => {
                let asked = self.facts.asked();
                let verb = asked.method.as_str().to_ascii_lowercase();
                spec["nonResourceAttributes"] = json!({"path": asked.uri.path(), "verb": verb});
            }
        }
        let answer = self.shared.outside.cluster.review(Review {
            workspace: rule.common.source.workspace.clone(),
            api_version: "authorization.k8s.io/v1",
            kind: "SubjectAccessReview",
            spec,
        });
        let status = self.wait(tokio::time::timeout(review.timeout, answer)).await;
        let failed = |why| Failure::hidden("not authorized", why);
        let status = status.unwrap_or_else(|_| Err("the SubjectAccessReview took too long".to_owned()));
        let status = status.map_err(|why| {
            auth.unanswered(self, "authorization", &rule.common, &why);
            failed(why)
        })?;
        match status["allowed"] == true {
            true => Ok(Value::Bool(true)),
            false => {
                let reason = status["reason"].as_str().filter(|reason| !reason.is_empty());
                Err(failed(format!(
                    "not authorized: {}",
                    reason.unwrap_or("unknown reason")
                )))
            }
        }
    }
}
