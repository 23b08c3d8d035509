//! The second phase: what else is known. What cannot be had is missing, and authorization decides what that means.

use std::sync::Arc;

use fairway_gateway_policy::auth::{AuthenticationMethod, Metadata, MetadataMethod, UserInfoEndpoint};
use fairway_gateway_policy::expression::shown;
use futures::future::join_all;
use serde_json::Value;

use super::{Auth, Failure, Remembered, Run, Way};
use crate::calls;

impl Run<'_> {
    pub(super) async fn metadata(&mut self, auth: &Auth) {
        if auth.plan.metadata.is_empty() {
            return;
        }
        // Rules of one priority at the same time, priorities one after the other.
        let rules: Vec<(&Metadata, u64)> = auth
            .plan
            .metadata
            .iter()
            .zip(auth.ids.metadata.iter().copied())
            .collect();
        for group in rules.chunk_by(|(a, _), (b, _)| a.common.priority == b.common.priority) {
            let fetched = join_all(group.iter().map(|(rule, id)| self.fetch(auth, rule, *id))).await;
            for ((rule, _), outcome) in group.iter().zip(fetched) {
                let name = &rule.common.name;
                let what = || format!("{} metadata {name:?}", auth.by);
                match outcome {
                    Ok(Some(value)) => {
                        if self.steps.is_some() {
                            let seen = format!("fetched {}", shown(&self.facts, &[], &value).0);
                            self.note(None, || (what(), seen));
                        }
                        self.facts.set_metadata(name, (*value).clone());
                    }
                    Ok(None) => self.note_unmet(&rule.common, what),
                    Err(failure) => self.note(None, || (what(), failure.why().to_owned())),
                }
            }
        }
    }

    async fn fetch(&self, auth: &Auth, rule: &Metadata, id: u64) -> Result<Option<Arc<Value>>, Failure> {
        if !self.applies(&rule.common)? {
            return Ok(None);
        }
        let place = self.remembered(id, &rule.common);
        if let Remembered::Known(value) = place {
            return Ok(Some(value));
        }
        let failed = |why| Failure::hidden("metadata could not be fetched", why);
        let unanswered = |url: &str, why: String| {
            let told = why.replace(url, &calls::origin(url));
            auth.unanswered(self, "metadata", &rule.common, &told);
            why
        };
        let outside = self.shared.outside.clone();
        let value = match &rule.method {
            MetadataMethod::Http(call) => {
                let prepared = calls::prepare(call, &self.facts)?;
                let url = prepared.url().to_owned();
                let answer = self.wait(calls::send(prepared, outside)).await;
                answer.map_err(|why| failed(unanswered(&url, why)))?
            }
            MetadataMethod::UserInfo { endpoint, timeout } => {
                let asked = async {
                    let (url, token) = self.userinfo(auth, endpoint).await?;
                    let message = calls::userinfo(url.clone(), &token, *timeout);
                    let reply = outside.web.send(message).await;
                    let answer = reply.and_then(|reply| calls::read(&url, &reply));
                    answer.map_err(|why| unanswered(&url, why))
                };
                self.wait(asked).await.map_err(failed)?
            }
        };
        let value = Arc::new(value);
        self.remember(place, &value);
        Ok(Some(value))
    }

    /// Where to ask, and with which token.
    async fn userinfo(&self, auth: &Auth, endpoint: &UserInfoEndpoint) -> Result<(String, String), String> {
        let asked = self.facts.asked();
        let issuers = auth
            .plan
            .authentication
            .iter()
            .zip(&auth.ways)
            .filter_map(|(rule, way)| match way {
                Way::Server(server) if matches!(rule.method, AuthenticationMethod::Jwt(_)) => {
                    Some((rule, server))
                }
                _ => None,
            });
        for (rule, server) in issuers {
            let token = rule.credentials.find(asked).map(|token| token.into_owned());
            match endpoint {
                UserInfoEndpoint::Url(url) => {
                    if let Some(token) = token {
                        return Ok((url.clone(), token));
                    }
                }
                UserInfoEndpoint::Authentication(name) if rule.common.name == *name => {
                    let url = server.userinfo().await;
                    let url = url.ok_or("the issuer has no userinfo_endpoint")?;
                    return Ok((url, token.ok_or("the request has no token of this issuer")?));
                }
                UserInfoEndpoint::Authentication(_) => {}
            }
        }
        Err("there is no authentication by tokens that userInfo could refer to".to_owned())
    }
}
