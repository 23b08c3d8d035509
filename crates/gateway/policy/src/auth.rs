//! An AuthPolicy as a plan: the phases of Authorino's pipeline with everything compiled that can be.
//!
//! ```text
//! when ─ authentication (one must succeed) ─ metadata (as far as it can be had) ─ authorization (all must allow) ─ response
//!            └ none: unauthenticated, 401                                           └ one does not: unauthorized, 403
//! ```
//!
//! Within a phase rules go by priority, and within a priority by name; upstream runs those at the same time, which shows
//! only in which of several refusals is told.

mod compile;
mod credentials;
mod spec;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value as Json;

pub use compile::{Added, Settings, compile};
pub use credentials::Credentials;

use crate::expression::{Predicate, ValueFrom};
use crate::labels::LabelSelector;
use crate::object::{FAILURE_MODE, PolicyKey};
use crate::status::Problem;

/// What an effective AuthPolicy comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthPlan {
    /// The policy that refusals name: the most specific of those that count.
    pub policy: PolicyKey,
    /// Whether the policy applies at all; if not, requests pass.
    pub when: Predicate,
    pub authentication: Vec<Authentication>,
    pub metadata: Vec<Metadata>,
    pub authorization: Vec<Authorization>,
    pub unauthenticated: Option<DenyWith>,
    pub unauthorized: Option<DenyWith>,
    /// Headers for the backend.
    pub headers: Vec<Response>,
    /// What rate limits see as `auth.<name>`.
    pub filters: Vec<Response>,
    pub callbacks: Vec<Callback>,
    /// Why it must refuse everything.
    pub problems: Vec<Problem>,
    /// Policies that say what is to become of requests that they cannot judge: nothing can be chosen there.
    pub failing_closed: BTreeSet<PolicyKey>,
}

/// What every rule of a pipeline has.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    pub name: String,
    /// The policy that the rule comes from; what it refers to is in that policy's namespace.
    pub source: PolicyKey,
    pub priority: i64,
    pub when: Predicate,
    pub cache: Option<Cache>,
}

/// Remembers what a rule came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    pub key: ValueFrom,
    pub ttl: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Authentication {
    pub common: Common,
    pub credentials: Credentials,
    /// Properties that are set on the identity, whatever it says.
    pub overrides: Vec<(String, ValueFrom)>,
    /// Properties that are set on the identity if it lacks them.
    pub defaults: Vec<(String, ValueFrom)>,
    pub method: AuthenticationMethod,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AuthenticationMethod {
    ApiKey(ApiKeyMethod),
    Jwt(JwtMethod),
    TokenReview {
        audiences: Vec<String>,
        timeout: Duration,
    },
    /// OAuth 2.0 token introspection; the client's credentials are in a Secret.
    Introspection {
        endpoint: String,
        token_type_hint: String,
        credentials: SecretRef,
        timeout: Duration,
    },
    /// What a selector finds is the identity.
    Plain(ValueFrom),
    Anonymous,
}

/// API keys in Secrets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKeyMethod {
    pub workspace: String,
    pub selector: LabelSelector,
    /// Where the Secrets may be; none means anywhere in the workspace.
    pub namespaces: Option<Vec<String>>,
}

/// Tokens of one issuer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JwtMethod {
    pub keys: KeySource,
    /// How long the issuer's configuration counts; zero is for ever, but for keys that are not known.
    pub ttl: Duration,
    pub timeout: Duration,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeySource {
    /// Found by OpenID Connect discovery; tokens must say that they are this issuer's.
    Issuer(String),
    /// Known beforehand; the tokens' issuer is not looked at.
    Jwks(String),
}

/// A Secret, and the field of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretRef {
    pub workspace: String,
    pub namespace: String,
    pub name: String,
    /// None: the fields have well-known names.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    pub common: Common,
    pub method: MetadataMethod,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MetadataMethod {
    Http(Box<HttpCall>),
    /// The OpenID Connect userinfo endpoint, asked with the request's own token.
    UserInfo {
        endpoint: UserInfoEndpoint,
        timeout: Duration,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum UserInfoEndpoint {
    /// What the issuer of the authentication rule of this name publishes.
    Authentication(String),
    Url(String),
}

/// A request to somebody else.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    pub url: ValueFrom,
    pub is_post: bool,
    pub body: Option<ValueFrom>,
    pub parameters: Vec<(String, ValueFrom)>,
    pub is_json: bool,
    pub headers: Vec<(String, ValueFrom)>,
    pub shared_secret: Option<(SecretRef, Credentials)>,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Authorization {
    pub common: Common,
    pub method: AuthorizationMethod,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AuthorizationMethod {
    Patterns(Predicate),
    Rego {
        module: String,
        all_values: bool,
        is_v1: bool,
    },
    SubjectAccessReview(Box<AccessReview>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct AccessReview {
    pub user: Option<ValueFrom>,
    pub groups: Vec<String>,
    pub authorization_groups: Option<ValueFrom>,
    /// Group, resource, subresource, name, namespace, verb; none: a review of the path of the request.
    pub resource: Option<[ValueFrom; 6]>,
    pub timeout: Duration,
}

/// What somebody is told who may not pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DenyWith {
    pub code: Option<u16>,
    pub message: Option<ValueFrom>,
    pub headers: Vec<(String, ValueFrom)>,
    pub body: Option<ValueFrom>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    pub common: Common,
    /// The header, or the name under which rate limits find it.
    pub key: String,
    pub value: ResponseValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResponseValue {
    Plain(ValueFrom),
    Json(Vec<(String, ValueFrom)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Callback {
    pub common: Common,
    pub call: HttpCall,
}

impl AuthPlan {
    /// Whether a request without credentials is refused: what a probe of the policy expects.
    pub fn refuses_strangers(&self) -> bool {
        !self.problems.is_empty()
            || (self.when.is_always()
                && !self.authentication.iter().any(|authentication| {
                    matches!(
                        authentication.method,
                        AuthenticationMethod::Anonymous | AuthenticationMethod::Plain(_)
                    )
                }))
    }

    /// What to tell a policy about that it says and that does nothing.
    pub fn note(&self, policy: &PolicyKey) -> Option<String> {
        self.failing_closed
            .contains(policy)
            .then(|| format!("annotation {FAILURE_MODE} is for RateLimitPolicies; an AuthPolicy always refuses whom it cannot judge"))
    }

    /// Secrets that the plan reads, beside API keys.
    pub fn secrets(&self) -> Vec<&SecretRef> {
        let calls = self
            .metadata
            .iter()
            .filter_map(|metadata| match &metadata.method {
                MetadataMethod::Http(call) => Some(call.as_ref()),
                MetadataMethod::UserInfo { .. } => None,
            })
            .chain(self.callbacks.iter().map(|callback| &callback.call));
        let introspections = self.authentication.iter().filter_map(|one| match &one.method {
            AuthenticationMethod::Introspection { credentials, .. } => Some(credentials),
            _ => None,
        });
        calls
            .filter_map(|call| call.shared_secret.as_ref().map(|(secret, _)| secret))
            .chain(introspections)
            .collect()
    }
}

/// A shared value for properties that a manifest leaves out.
pub(crate) fn nothing() -> ValueFrom {
    ValueFrom::Static(Json::Null)
}
