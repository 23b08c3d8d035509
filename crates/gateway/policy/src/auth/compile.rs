//! From merged rules to a plan. What does not compile becomes a problem, and a plan with problems refuses everything.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::spec::{
    AccessReviewSpec, AuthenticationSpec, AuthorizationSpec, CallbackSpec, CommonSpec, DenySpec, HttpSpec,
    MetadataSpec, PatternsSpec, Properties, ResponseSpec,
};
use super::{
    AccessReview, ApiKeyMethod, AuthPlan, Authentication, AuthenticationMethod, Authorization,
    AuthorizationMethod, Cache, Callback, Common, Credentials, DenyWith, HttpCall, JwtMethod, KeySource,
    Metadata, MetadataMethod, Response, ResponseValue, SecretRef, UserInfoEndpoint, nothing,
};
use crate::effective::Effective;
use crate::expression::{CompileError, ConditionSpec, Named, Predicate, ValueFrom, ValueSpec};
use crate::object::{AUTH_WHEN, PolicyKey, Rule};
use crate::status::{Fault, Problem};

/// How long somebody else may take, if the rule does not say.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long somebody else may take at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an answer is remembered, if the rule does not say.
const CACHE_TTL: u64 = 60;
/// The longest Rego module.
const MAX_REGO: usize = 64 * 1024;

/// What the platform decides for all policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Secrets of this namespace serve every policy of a workspace, as those of Kuadrant's own namespace do upstream.
    pub system_namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system_namespace: "kuadrant-system".to_owned(),
        }
    }
}

/// A property that another policy adds, as PlanPolicies do: `auth.kuadrant.<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub policy: PolicyKey,
    pub name: String,
    /// CEL, or why there is none: then nothing may pass.
    pub expression: Result<String, String>,
}

/// Makes a plan. `data` is what other policies add.
pub fn compile(effective: &Effective, data: &[Added], settings: &Settings) -> AuthPlan {
    let mut compiler = Compiler {
        named: Named::new(),
        settings,
        problems: Vec::new(),
    };
    for (policy, why) in &effective.broken {
        compiler.problems.push(Problem {
            policy: policy.clone(),
            rule: "spec".to_owned(),
            what: Fault::Invalid(why.clone()),
        });
    }
    compiler.plan(effective, data)
}

struct Compiler<'a> {
    named: Named,
    settings: &'a Settings,
    problems: Vec<Problem>,
}

impl From<CompileError> for Fault {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Cel { .. } => Fault::Cel(error.to_string()),
            _ => Fault::Invalid(error.to_string()),
        }
    }
}

fn unsupported(what: &str) -> Fault {
    Fault::Unsupported(what.to_owned())
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault::Invalid(what.into())
}

fn read<T: DeserializeOwned>(spec: &Json) -> Result<T, Fault> {
    serde_json::from_value(spec.clone()).map_err(|error| invalid(format!("it cannot be read: {error}")))
}

/// What any rule may say beside its method.
const ANY: &[&str] = &["priority", "when", "cache", "metrics"];
const AUTHENTICATION: &[&str] = &[
    "credentials",
    "overrides",
    "defaults",
    "apiKey",
    "jwt",
    "oauth2Introspection",
    "kubernetesTokenReview",
    "x509",
    "plain",
    "anonymous",
];
const AUTHORIZATION: &[&str] = &[
    "patternMatching",
    "opa",
    "kubernetesSubjectAccessReview",
    "spicedb",
];

/// A field that nobody knows is a mistake, and a rule with a mistake must not decide who passes.
fn only(spec: &Json, fields: &[&str]) -> Result<(), Fault> {
    let unknown = (spec.as_object().into_iter().flatten())
        .map(|(name, _)| name.as_str())
        .find(|name| !ANY.contains(name) && !fields.contains(name));
    match unknown {
        Some(name) => Err(invalid(format!("it has a field {name:?} that is not known"))),
        None => Ok(()),
    }
}

/// Zero switches the bound off upstream; here somebody always gets an answer some day.
fn timeout(milliseconds: Option<u64>) -> Duration {
    match milliseconds {
        None => TIMEOUT,
        Some(0) => MAX_TIMEOUT,
        Some(milliseconds) => Duration::from_millis(milliseconds).min(MAX_TIMEOUT),
    }
}

fn optional(spec: Option<&ValueSpec>) -> Result<Option<ValueFrom>, CompileError> {
    spec.map(ValueFrom::compile).transpose()
}

fn properties(specs: &Properties) -> Result<Vec<(String, ValueFrom)>, CompileError> {
    specs
        .iter()
        .map(|(name, spec)| Ok((name.clone(), ValueFrom::compile(spec)?)))
        .collect()
}

fn header_properties(specs: &Properties) -> Result<Vec<(String, ValueFrom)>, Fault> {
    for name in specs.keys() {
        if HeaderName::try_from(name.as_str()).is_err() {
            return Err(invalid(format!("{name:?} is not the name of a header")));
        }
    }
    Ok(properties(specs)?)
}

impl Compiler<'_> {
    fn plan(mut self, effective: &Effective, data: &[Added]) -> AuthPlan {
        let groups = |group: &str| -> Vec<(String, &Rule)> {
            let prefix = format!("{group}#");
            let named = effective
                .rules
                .iter()
                .filter_map(|(name, rule)| Some((name.strip_prefix(&prefix)?.to_owned(), rule)));
            named.collect()
        };
        for (name, rule) in groups("patterns") {
            match read::<PatternsSpec>(&rule.spec) {
                Ok(spec) => {
                    self.named.insert(name, spec.all_of);
                }
                Err(fault) => self.problem(rule, format!("patterns#{name}"), fault),
            }
        }
        let when = effective.rules.get(AUTH_WHEN).and_then(|rule| {
            let compiled = read::<Vec<ConditionSpec>>(&rule.spec)
                .and_then(|when| Ok(Predicate::compile(&when, &self.named)?));
            self.keep(rule, AUTH_WHEN.to_owned(), compiled)
        });
        let mut plan = AuthPlan {
            policy: policy_of(effective),
            when: when.unwrap_or(Predicate::All(Vec::new())),
            authentication: self.each("authentication", groups("authentication"), Self::authentication),
            metadata: self.each("metadata", groups("metadata"), Self::metadata),
            authorization: self.each("authorization", groups("authorization"), Self::authorization),
            headers: self.each(
                "response.success.headers",
                groups("response.success.headers"),
                |this, common, spec| {
                    let response = this.response(common, spec)?;
                    match HeaderName::try_from(response.key.as_str()) {
                        Ok(_) => Ok(response),
                        Err(_) => Err(invalid(format!("{:?} is not the name of a header", response.key))),
                    }
                },
            ),
            filters: self.each(
                "response.success.metadata",
                groups("response.success.metadata"),
                Self::response,
            ),
            callbacks: self.each("callbacks", groups("callbacks"), Self::callback),
            unauthenticated: None,
            unauthorized: None,
            problems: Vec::new(),
            failing_closed: (effective.rules.values())
                .filter(|rule| rule.failure.is_some())
                .map(|rule| rule.source.clone())
                .collect(),
        };
        plan.unauthenticated = self.denial(effective, "response.unauthenticated#");
        plan.unauthorized = self.denial(effective, "response.unauthorized#");
        self.add_data(&mut plan, data);
        // Upstream: without any authentication everybody is let in, anonymously.
        if plan.authentication.is_empty() && self.problems.is_empty() {
            plan.authentication.push(anonymous(&plan.policy));
        }
        plan.authentication.sort_by_key(|one| one.common.priority);
        plan.metadata.sort_by_key(|one| one.common.priority);
        plan.authorization.sort_by_key(|one| one.common.priority);
        plan.headers.sort_by_key(|one| one.common.priority);
        plan.filters.sort_by_key(|one| one.common.priority);
        plan.callbacks.sort_by_key(|one| one.common.priority);
        plan.problems = self.problems;
        plan
    }

    fn problem(&mut self, rule: &Rule, name: String, what: Fault) {
        self.problems.push(Problem {
            policy: rule.source.clone(),
            rule: name,
            what,
        });
    }

    fn keep<T>(&mut self, rule: &Rule, name: String, compiled: Result<T, Fault>) -> Option<T> {
        match compiled {
            Ok(compiled) => Some(compiled),
            Err(fault) => {
                self.problem(rule, name, fault);
                None
            }
        }
    }

    fn each<T>(
        &mut self,
        group: &str,
        rules: Vec<(String, &Rule)>,
        compile: impl Fn(&Self, Common, &Json) -> Result<T, Fault>,
    ) -> Vec<T> {
        let mut compiled = Vec::with_capacity(rules.len());
        for (name, rule) in rules {
            let one = self
                .common(&name, rule)
                .and_then(|common| compile(self, common, &rule.spec));
            compiled.extend(self.keep(rule, format!("{group}#{name}"), one));
        }
        compiled
    }

    fn common(&self, name: &str, rule: &Rule) -> Result<Common, Fault> {
        let spec: CommonSpec = read(&rule.spec)?;
        let cache = spec.cache.as_ref().map(|cache| {
            Ok::<_, CompileError>(Cache {
                key: ValueFrom::compile(&cache.key)?,
                ttl: Duration::from_secs(cache.ttl.unwrap_or(CACHE_TTL)),
            })
        });
        Ok(Common {
            name: name.to_owned(),
            source: rule.source.clone(),
            priority: spec.priority,
            when: Predicate::compile(&spec.when, &self.named)?,
            cache: cache.transpose()?,
        })
    }

    fn authentication(&self, common: Common, spec: &Json) -> Result<Authentication, Fault> {
        only(spec, AUTHENTICATION)?;
        let spec: AuthenticationSpec = read(spec)?;
        let method = if let Some(keys) = spec.api_key {
            let namespaces = [
                common.source.namespace.clone(),
                self.settings.system_namespace.clone(),
            ];
            AuthenticationMethod::ApiKey(ApiKeyMethod {
                workspace: common.source.workspace.clone(),
                selector: keys.selector,
                namespaces: (!keys.all_namespaces).then(|| namespaces.to_vec()),
            })
        } else if let Some(jwt) = spec.jwt {
            let keys = match (jwt.issuer_url.as_str(), jwt.jwks_url.as_str()) {
                ("", "") => return Err(invalid("jwt has neither issuerUrl nor jwksUrl")),
                ("", url) => KeySource::Jwks(url.to_owned()),
                (issuer, _) => KeySource::Issuer(issuer.to_owned()),
            };
            AuthenticationMethod::Jwt(JwtMethod {
                keys,
                ttl: Duration::from_secs(jwt.ttl),
                timeout: timeout(jwt.timeout),
            })
        } else if let Some(spec) = spec.oauth2_introspection {
            AuthenticationMethod::Introspection {
                endpoint: spec.endpoint,
                token_type_hint: spec.token_type_hint.unwrap_or_else(|| "access_token".to_owned()),
                credentials: secret(&common, spec.credentials_ref.name, None),
                timeout: timeout(spec.timeout),
            }
        } else if let Some(review) = spec.kubernetes_token_review {
            AuthenticationMethod::TokenReview {
                audiences: review.audiences,
                timeout: timeout(review.timeout),
            }
        } else if spec.x509.is_some() {
            return Err(unsupported("x509: authentication by client certificates"));
        } else if let Some(plain) = spec.plain {
            AuthenticationMethod::Plain(ValueFrom::compile(&plain)?)
        } else if spec.anonymous.is_some() {
            AuthenticationMethod::Anonymous
        } else {
            return Err(invalid("it names no method of authentication that is known"));
        };
        Ok(Authentication {
            credentials: Credentials::compile(&spec.credentials).map_err(invalid)?,
            overrides: properties(&spec.overrides)?,
            defaults: properties(&spec.defaults)?,
            method,
            common,
        })
    }

    fn metadata(&self, common: Common, spec: &Json) -> Result<Metadata, Fault> {
        let spec: MetadataSpec = read(spec)?;
        let method = if let Some(http) = spec.http {
            MetadataMethod::Http(Box::new(call(&common, http)?))
        } else if let Some(info) = spec.user_info {
            let endpoint = match (info.identity_source, info.user_info_url) {
                (Some(source), _) if !source.is_empty() => UserInfoEndpoint::Authentication(source),
                (_, Some(url)) => UserInfoEndpoint::Url(url),
                _ => return Err(invalid("userInfo has neither identitySource nor userInfoUrl")),
            };
            MetadataMethod::UserInfo {
                endpoint,
                timeout: timeout(info.timeout),
            }
        } else if spec.uma.is_some() {
            return Err(unsupported("uma: metadata of User-Managed Access"));
        } else {
            return Err(invalid("it names no source of metadata that is known"));
        };
        Ok(Metadata { common, method })
    }

    fn authorization(&self, common: Common, spec: &Json) -> Result<Authorization, Fault> {
        only(spec, AUTHORIZATION)?;
        let spec: AuthorizationSpec = read(spec)?;
        let method = if let Some(patterns) = spec.pattern_matching {
            if patterns.patterns.is_empty() {
                return Err(invalid(
                    "patternMatching has no patterns, so everybody would pass",
                ));
            }
            AuthorizationMethod::Patterns(Predicate::compile(&patterns.patterns, &self.named)?)
        } else if let Some(opa) = spec.opa {
            if opa.rego.is_empty() && opa.external_policy.is_some() {
                return Err(unsupported("opa.externalPolicy: Rego from elsewhere"));
            }
            if opa.rego.len() > MAX_REGO {
                return Err(invalid(format!(
                    "the Rego module is longer than {MAX_REGO} bytes"
                )));
            }
            let is_v1 = match opa.version.as_deref() {
                None | Some("" | "v0") => false,
                Some("v1") => true,
                Some(other) => return Err(invalid(format!("unsupported OPA Rego version: {other}"))),
            };
            AuthorizationMethod::Rego {
                module: opa.rego,
                all_values: opa.all_values,
                is_v1,
            }
        } else if let Some(review) = spec.kubernetes_subject_access_review {
            AuthorizationMethod::SubjectAccessReview(Box::new(access_review(&review)?))
        } else if spec.spicedb.is_some() {
            return Err(unsupported("spicedb: authorization by SpiceDB"));
        } else {
            return Err(invalid("it names no method of authorization that is known"));
        };
        Ok(Authorization { common, method })
    }

    #[expect(
        clippy::unused_self,
        reason = "one of several that are called in the same way"
    )]
    fn response(&self, common: Common, spec: &Json) -> Result<Response, Fault> {
        let spec: ResponseSpec = read(spec)?;
        let value = if let Some(json) = spec.json {
            ResponseValue::Json(properties(&json.properties)?)
        } else if let Some(plain) = spec.plain {
            ResponseValue::Plain(ValueFrom::compile(&plain)?)
        } else if spec.wristband.is_some() {
            return Err(unsupported("wristband: Festival Wristband tokens"));
        } else {
            return Err(invalid("it names no kind of response that is known"));
        };
        let key = spec.key.filter(|key| !key.is_empty());
        Ok(Response {
            key: key.unwrap_or_else(|| common.name.clone()),
            common,
            value,
        })
    }

    #[expect(
        clippy::unused_self,
        reason = "one of several that are called in the same way"
    )]
    fn callback(&self, common: Common, spec: &Json) -> Result<Callback, Fault> {
        let spec: CallbackSpec = read(spec)?;
        let http = spec.http.ok_or_else(|| invalid("a callback has no http"))?;
        let call = call(&common, http)?;
        Ok(Callback { common, call })
    }

    fn denial(&mut self, effective: &Effective, name: &str) -> Option<DenyWith> {
        let rule = effective.rules.get(name)?;
        let compiled = read::<DenySpec>(&rule.spec).and_then(|spec| {
            let code = spec.code.filter(|code| *code != 0);
            if code.is_some_and(|code| !(300..=599).contains(&code) || StatusCode::from_u16(code).is_err()) {
                return Err(invalid("code is not a status between 300 and 599"));
            }
            Ok(DenyWith {
                code,
                message: optional(spec.message.as_ref())?,
                headers: header_properties(&spec.headers)?,
                body: optional(spec.body.as_ref())?,
            })
        });
        self.keep(rule, name.to_owned(), compiled)
    }

    /// What other policies have to say, under `auth.kuadrant`.
    fn add_data(&mut self, plan: &mut AuthPlan, data: &[Added]) {
        let mut added: BTreeMap<String, ValueFrom> = BTreeMap::new();
        for one in data {
            let compiled = one
                .expression
                .as_ref()
                .map_err(|why| Fault::Invalid(why.clone()))
                .and_then(|expression| Ok(crate::expression::Cel::expression(expression)?));
            match compiled {
                Ok(cel) => {
                    added.entry(one.name.clone()).or_insert(ValueFrom::Cel(cel));
                }
                Err(what) => self.problems.push(Problem {
                    policy: one.policy.clone(),
                    rule: one.name.clone(),
                    what,
                }),
            }
        }
        if !added.is_empty() {
            let common = plain_common("kuadrant", &plan.policy);
            plan.filters.push(Response {
                key: common.name.clone(),
                common,
                value: ResponseValue::Json(added.into_iter().collect()),
            });
        }
    }
}

fn plain_common(name: &str, source: &PolicyKey) -> Common {
    Common {
        name: name.to_owned(),
        source: source.clone(),
        priority: 0,
        when: Predicate::All(Vec::new()),
        cache: None,
    }
}

fn anonymous(policy: &PolicyKey) -> Authentication {
    Authentication {
        common: plain_common("anonymous", policy),
        credentials: Credentials::default(),
        overrides: Vec::new(),
        defaults: Vec::new(),
        method: AuthenticationMethod::Anonymous,
    }
}

/// The policy that refusals name.
fn policy_of(effective: &Effective) -> PolicyKey {
    let broken = effective.broken.first().map(|(policy, _)| policy);
    let by_authentication = effective
        .rules
        .iter()
        .find(|(name, _)| name.starts_with("authentication#"))
        .map(|(_, rule)| &rule.source);
    let policy = broken.or(by_authentication).or_else(|| effective.sources.first());
    policy.cloned().unwrap_or_else(|| PolicyKey {
        workspace: String::new(),
        kind: crate::object::Kind::AuthPolicy,
        namespace: String::new(),
        name: String::new(),
    })
}

fn secret(common: &Common, name: String, key: Option<String>) -> SecretRef {
    SecretRef {
        workspace: common.source.workspace.clone(),
        namespace: common.source.namespace.clone(),
        name,
        key,
    }
}

fn call(common: &Common, spec: HttpSpec) -> Result<HttpCall, Fault> {
    if spec.oauth2.is_some() {
        return Err(unsupported("http.oauth2: client credentials for calls"));
    }
    let is_post = match spec.method.as_deref() {
        None | Some("GET") => false,
        Some("POST") => true,
        Some(other) => return Err(invalid(format!("method {other:?} is neither GET nor POST"))),
    };
    let is_json = match spec.content_type.as_deref() {
        None | Some("application/x-www-form-urlencoded") => false,
        Some("application/json") => true,
        Some(other) => return Err(invalid(format!("contentType {other:?} is not known"))),
    };
    let url = match spec.url_expression.as_deref().filter(|text| !text.is_empty()) {
        Some(expression) => ValueFrom::Cel(crate::expression::Cel::expression(expression)?),
        None if spec.url.contains('{') => ValueFrom::selector(&spec.url)?,
        None => ValueFrom::Static(Json::from(spec.url)),
    };
    let credentials = Credentials::compile(&spec.credentials).map_err(invalid)?;
    let shared_secret = spec
        .shared_secret_ref
        .map(|reference| (secret(common, reference.name, Some(reference.key)), credentials));
    Ok(HttpCall {
        url,
        is_post,
        body: optional(spec.body.as_ref())?,
        parameters: properties(&spec.body_parameters)?,
        is_json,
        headers: header_properties(&spec.headers)?,
        shared_secret,
        timeout: timeout(spec.timeout),
    })
}

fn access_review(spec: &AccessReviewSpec) -> Result<AccessReview, Fault> {
    if spec.user.is_none() && spec.groups.is_empty() && spec.authorization_groups.is_none() {
        return Err(invalid("a SubjectAccessReview needs a user or groups"));
    }
    let resource = match &spec.resource_attributes {
        None => None,
        Some(resource) => {
            let parts = [
                &resource.group,
                &resource.resource,
                &resource.subresource,
                &resource.name,
                &resource.namespace,
                &resource.verb,
            ];
            let mut compiled = [(); 6].map(|()| nothing());
            for (slot, part) in compiled.iter_mut().zip(parts) {
                *slot = ValueFrom::compile(part)?;
            }
            Some(compiled)
        }
    };
    Ok(AccessReview {
        user: optional(spec.user.as_ref())?,
        groups: spec.groups.clone(),
        authorization_groups: optional(spec.authorization_groups.as_ref())?,
        resource,
        timeout: timeout(spec.timeout),
    })
}

#[cfg(test)]
mod tests;
