//! Which issuers are trusted, and how their claims become users: `AuthenticationConfiguration`, read strictly.
//!
//! Rules and messages are upstream's. Expressions are compiled here, so that a mistake is told when the file is read and
//! not when somebody logs in.

use std::collections::BTreeSet;

use fairway_kernel_scalar::names::is_dns1123_subdomain;
use fairway_kernel_schema::field::{FieldError, Path};
use fairway_text_cel::{DeclType, Env, Program, Type};
use http::Uri;
use serde_json::{Value, json};

use crate::strict::{self, Errors, Node};

const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
/// The most issuers.
const MAX_ISSUERS: usize = 64;

/// An issuer, and what its tokens mean.
#[derive(Clone, Debug)]
pub struct Authenticator {
    /// The issuer, as tokens name it.
    pub issuer: String,
    /// Where its discovery document is, if not below the issuer.
    pub discovery_url: Option<String>,
    /// Who vouches for its certificate (PEM); `None`: whom the machine trusts.
    pub authority: Option<String>,
    /// Tokens must be for one of these.
    pub audiences: Vec<String>,
    pub(super) required: Vec<(String, String)>,
    pub(super) claim_rules: Vec<Rule>,
    pub(super) username: Source,
    pub(super) groups: Option<Source>,
    pub(super) uid: Option<Source>,
    pub(super) extra: Vec<(String, Program)>,
    pub(super) user_rules: Vec<Rule>,
}

impl Authenticator {
    /// Whether the keys of one are the keys of the other.
    pub(super) fn is_same_issuer(&self, other: &Self) -> bool {
        self.issuer == other.issuer
            && self.discovery_url == other.discovery_url
            && self.authority == other.authority
    }
}

/// A condition, and what is said when it does not hold.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) program: Program,
    pub(super) message: String,
}

/// Where a part of the user comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Claim { claim: String, prefix: String },
    Expression(Program),
}

/// Reads a file's content. Tokens of `own_issuer` are ours, so it may not be among them.
pub fn parse(content: &[u8], own_issuer: &str) -> Result<Vec<Authenticator>, String> {
    read(&strict::parse(content)?, own_issuer)
}

/// What the `--oidc-*` flags say.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--oidc-issuer-url`
    pub issuer_url: String,
    /// `--oidc-client-id`
    pub client_id: String,
    /// `--oidc-username-claim`
    pub username_claim: Option<String>,
    /// `--oidc-username-prefix`
    pub username_prefix: Option<String>,
    /// `--oidc-groups-claim`
    pub groups_claim: Option<String>,
    /// `--oidc-groups-prefix`
    pub groups_prefix: Option<String>,
    /// `--oidc-required-claim`, each `key=value`
    pub required_claims: Vec<String>,
    /// The content of `--oidc-ca-file`
    pub authority: Option<String>,
}

/// The one issuer that flags name; the same rules hold for it.
pub fn from_flags(flags: &Flags, own_issuer: &str) -> Result<Vec<Authenticator>, String> {
    let claim = flags.username_claim.as_deref().unwrap_or("sub");
    let prefix = match flags.username_prefix.as_deref() {
        Some("-") => String::new(),
        Some(prefix) => prefix.to_owned(),
        // Names of different issuers must not meet; addresses of mail are unique as they are.
        None if claim == "email" => String::new(),
        None => format!("{}#", flags.issuer_url),
    };
    let mut rules = Vec::new();
    for required in &flags.required_claims {
        let (claim, value) = required
            .split_once('=')
            .ok_or_else(|| format!("--oidc-required-claim {required:?} must be KEY=VALUE"))?;
        rules.push(json!({"claim": claim, "requiredValue": value}));
    }
    let mut mappings = json!({"username": {"claim": claim, "prefix": prefix}});
    if let Some(claim) = &flags.groups_claim {
        mappings["groups"] = json!({
            "claim": claim, "prefix": flags.groups_prefix.as_deref().unwrap_or(""),
        });
    }
    let document = json!({
        "apiVersion": VERSIONS[0], "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": flags.issuer_url, "audiences": [flags.client_id],
                "certificateAuthority": flags.authority,
            },
            "claimValidationRules": rules, "claimMappings": mappings,
        }],
    });
    read(&document, own_issuer)
}

fn read(document: &Value, own_issuer: &str) -> Result<Vec<Authenticator>, String> {
    let errors = &mut Errors::default();
    let root = strict::document(
        document,
        "AuthenticationConfiguration",
        &VERSIONS,
        &["jwt"],
        errors,
    );
    let known = [
        "issuer",
        "claimValidationRules",
        "claimMappings",
        "userValidationRules",
    ];
    let nodes = root.nodes("jwt", &known, errors);
    if nodes.len() > MAX_ISSUERS {
        errors.push(FieldError::too_many(&root.at("jwt"), nodes.len(), MAX_ISSUERS));
    }
    let environment = Environment::new();
    let mut seen = (BTreeSet::new(), BTreeSet::new());
    let mut authenticators = Vec::new();
    for node in nodes.iter().take(MAX_ISSUERS) {
        let read = Reader {
            node,
            environment: &environment,
        };
        authenticators.extend(read.authenticator(own_issuer, &mut seen, errors));
    }
    std::mem::take(errors).into_result()?;
    Ok(authenticators)
}

/// What expressions can see.
struct Environment {
    claims: Env,
    user: Env,
}

impl Environment {
    fn new() -> Self {
        let claims = Env::new().with_variable("claims", Type::map(Type::String, Type::Dyn));
        let user = match user_type() {
            Some(decl) => Env::new().with_schema_variable("user", &decl),
            None => Env::new(),
        };
        Self { claims, user }
    }
}

/// What `user` looks like to an expression.
pub(super) fn user_type() -> Option<std::sync::Arc<DeclType>> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {
        "username": {"type": "string"}, "uid": {"type": "string"}, "groups": texts,
        "extra": {"type": "object", "additionalProperties": texts},
    }});
    DeclType::from_json_schema(&schema, false)
}

struct Reader<'a> {
    node: &'a Node<'a>,
    environment: &'a Environment,
}

impl Reader<'_> {
    fn authenticator(
        &self,
        own_issuer: &str,
        seen: &mut (BTreeSet<String>, BTreeSet<String>),
        errors: &mut Errors,
    ) -> Option<Authenticator> {
        let known = [
            "url",
            "discoveryURL",
            "certificateAuthority",
            "audiences",
            "audienceMatchPolicy",
        ];
        let issuer = self.node.node("issuer", &known, errors);
        let (at, url) = (issuer.at("url"), issuer.text("url", errors));
        if url.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            if url == own_issuer {
                let why = format!("URL must not overlap with disallowed issuers: [{own_issuer}]");
                errors.push(FieldError::invalid(&at, url.as_str(), why));
            }
            check_url(&url, &at, errors);
            if !seen.0.insert(url.clone()) {
                errors.push(FieldError::duplicate(&at, url.as_str()));
            }
        }
        let discovery = issuer.text("discoveryURL", errors);
        if !discovery.is_empty() {
            let at = issuer.at("discoveryURL");
            if discovery.trim_end_matches('/') == url.trim_end_matches('/') {
                let why = "discoveryURL must be different from URL";
                errors.push(FieldError::invalid(&at, discovery.as_str(), why));
            }
            check_url(&discovery, &at, errors);
            if !seen.1.insert(discovery.clone()) {
                errors.push(FieldError::duplicate(&at, discovery.as_str()));
            }
        }
        let authority = issuer.text("certificateAuthority", errors);
        if !authority.is_empty()
            && let Err(why) = super::fetch::roots_of(&authority)
        {
            let at = issuer.at("certificateAuthority");
            errors.push(FieldError::invalid(&at, "<omitted>", why));
        }
        let audiences = audiences(&issuer, errors);
        let (required, claim_rules) = self.claim_rules(errors);
        let known = ["username", "groups", "uid", "extra"];
        let mappings = self.node.node("claimMappings", &known, errors);
        let username = self.source(&mappings, "username", true, errors);
        let groups = self.source(&mappings, "groups", false, errors);
        let uid = self.source(&mappings, "uid", false, errors);
        let extra = self.extra(&mappings, errors);
        if let Some(Source::Expression(program)) = &username {
            let others = claim_rules
                .iter()
                .map(|r| &r.program)
                .chain(extra.iter().map(|(_, p)| p));
            let verified = others
                .chain([program])
                .any(|p| names_claim(p.source(), "email_verified"));
            if names_claim(program.source(), "email") && !verified {
                errors.push(FieldError::invalid(
                    &mappings.at("username").child("expression"),
                    program.source(),
                    "claims.email_verified must be used in claimMappings.username.expression or \
                     claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email \
                     is used in claimMappings.username.expression",
                ));
            }
        }
        Some(Authenticator {
            issuer: url,
            discovery_url: Some(discovery).filter(|d| !d.is_empty()),
            authority: Some(authority).filter(|a| !a.is_empty()),
            audiences,
            required,
            claim_rules,
            username: username?,
            groups,
            uid,
            extra,
            user_rules: self.user_rules(errors),
        })
    }

    fn claim_rules(&self, errors: &mut Errors) -> (Vec<(String, String)>, Vec<Rule>) {
        let (mut required, mut rules) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        let known = ["claim", "requiredValue", "expression", "message"];
        for node in self.node.nodes("claimValidationRules", &known, errors) {
            let claim = node.text("claim", errors);
            let value = node.text("requiredValue", errors);
            let expression = node.text("expression", errors);
            let message = node.text("message", errors);
            let repeated = !seen.insert((claim.clone(), expression.clone()));
            let mut invalid = |field: &str, value: &str, why: &str| {
                errors.push(FieldError::invalid(&node.at(field), value, why));
            };
            match (claim.is_empty(), expression.is_empty()) {
                (false, false) => errors.push(FieldError::invalid(
                    node.path(),
                    claim.as_str(),
                    "claim and expression can't both be set",
                )),
                (true, true) => {
                    errors.push(FieldError::required(
                        node.path(),
                        "claim or expression is required",
                    ));
                }
                (false, true) => {
                    if !message.is_empty() {
                        invalid("message", &message, "may not be specified when claim is set");
                    }
                    if repeated {
                        errors.push(FieldError::duplicate(&node.at("claim"), claim.as_str()));
                    }
                    required.push((claim, value));
                }
                (true, false) => {
                    if !value.is_empty() {
                        invalid(
                            "requiredValue",
                            &value,
                            "may not be specified when expression is set",
                        );
                    }
                    let at = node.at("expression");
                    if repeated {
                        errors.push(FieldError::duplicate(&at, expression.as_str()));
                    } else if let Some(program) =
                        compile(&self.environment.claims, &expression, true, &at, errors)
                    {
                        rules.push(Rule { program, message });
                    }
                }
            }
        }
        (required, rules)
    }

    fn user_rules(&self, errors: &mut Errors) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        for node in self
            .node
            .nodes("userValidationRules", &["expression", "message"], errors)
        {
            let (at, expression) = (node.at("expression"), node.text("expression", errors));
            let message = node.text("message", errors);
            if expression.is_empty() {
                errors.push(FieldError::required(&at, ""));
            } else if rules.iter().any(|rule| rule.program.source() == expression) {
                errors.push(FieldError::duplicate(&at, expression));
            } else if let Some(program) = compile(&self.environment.user, &expression, true, &at, errors) {
                rules.push(Rule { program, message });
            }
        }
        rules
    }

    fn source(
        &self,
        mappings: &Node<'_>,
        field: &str,
        required: bool,
        errors: &mut Errors,
    ) -> Option<Source> {
        // A uid is taken as it is.
        let prefixed = field != "uid";
        let known: &[&str] = if prefixed {
            &["claim", "prefix", "expression"]
        } else {
            &["claim", "expression"]
        };
        let node = mappings.node(field, known, errors);
        let claim = node.text("claim", errors);
        let expression = node.text("expression", errors);
        let prefix = if prefixed {
            node.optional_text("prefix", errors)
        } else {
            Some(String::new())
        };
        match (claim.is_empty(), expression.is_empty()) {
            (false, false) => {
                let why = "claim and expression can't both be set";
                errors.push(FieldError::invalid(node.path(), "", why));
                None
            }
            (true, true) if required => {
                errors.push(FieldError::required(
                    node.path(),
                    "claim or expression is required",
                ));
                None
            }
            (true, true) => None,
            (true, false) => {
                if let Some(prefix) = prefix.filter(|_| prefixed) {
                    let why = "may not be specified when expression is set";
                    errors.push(FieldError::invalid(&node.at("prefix"), prefix, why));
                }
                let at = node.at("expression");
                compile(&self.environment.claims, &expression, false, &at, errors).map(Source::Expression)
            }
            (false, true) => {
                if prefix.is_none() {
                    let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    errors.push(FieldError::required(&node.at("prefix"), why));
                }
                Some(Source::Claim {
                    claim,
                    prefix: prefix.unwrap_or_default(),
                })
            }
        }
    }

    fn extra(&self, mappings: &Node<'_>, errors: &mut Errors) -> Vec<(String, Program)> {
        let mut extra: Vec<(String, Program)> = Vec::new();
        for node in mappings.nodes("extra", &["key", "valueExpression"], errors) {
            let (at, key) = (node.at("key"), node.text("key", errors));
            let domain = match key.split_once('/') {
                Some((domain, path)) if !path.is_empty() && is_dns1123_subdomain(domain).is_empty() => domain,
                _ => {
                    let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                    errors.push(FieldError::invalid(&at, key.as_str(), why));
                    continue;
                }
            };
            if key.chars().any(char::is_uppercase) {
                errors.push(FieldError::invalid(&at, key.as_str(), "must be lowercase"));
            }
            let reserved = |of: &str| domain == of || domain.ends_with(&format!(".{of}"));
            if reserved("k8s.io") || reserved("kubernetes.io") {
                let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
                errors.push(FieldError::invalid(&at, key.as_str(), why));
            }
            if extra.iter().any(|(other, _)| *other == key) {
                errors.push(FieldError::duplicate(&at, key));
                continue;
            }
            let (at, expression) = (node.at("valueExpression"), node.text("valueExpression", errors));
            if expression.is_empty() {
                errors.push(FieldError::required(&at, ""));
            } else if let Some(program) = compile(&self.environment.claims, &expression, false, &at, errors) {
                extra.push((key, program));
            }
        }
        extra
    }
}

fn audiences(issuer: &Node<'_>, errors: &mut Errors) -> Vec<String> {
    let at = issuer.at("audiences");
    let audiences = issuer.texts("audiences", errors);
    let policy = issuer.text("audienceMatchPolicy", errors);
    if audiences.is_empty() {
        errors.push(FieldError::required(
            &at,
            format!("at least one {at} is required"),
        ));
    }
    for (index, audience) in audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.push(FieldError::required(&at.index(index), ""));
        } else if audiences[..index].contains(audience) {
            errors.push(FieldError::duplicate(&at.index(index), audience.as_str()));
        }
    }
    let why = match audiences.len() {
        0 => None,
        1 if policy.is_empty() || policy == "MatchAny" => None,
        1 => Some("audienceMatchPolicy must be empty or MatchAny for single audience"),
        _ if policy == "MatchAny" => None,
        _ => Some("audienceMatchPolicy must be MatchAny for multiple audiences"),
    };
    if let Some(why) = why {
        errors.push(FieldError::invalid(
            &issuer.at("audienceMatchPolicy"),
            policy,
            why,
        ));
    }
    audiences
}

fn check_url(url: &str, at: &Path, errors: &mut Errors) {
    let mut invalid = |why: &str| errors.push(FieldError::invalid(at, url, why));
    if url.contains('#') {
        invalid("URL must not contain a fragment");
        return;
    }
    let Ok(uri) = url.parse::<Uri>() else {
        invalid("is not a URL");
        return;
    };
    if uri.scheme_str() != Some("https") {
        invalid("URL scheme must be https");
    }
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        invalid("URL must not contain a username or password");
    }
    if uri.query().is_some_and(|q| !q.is_empty()) {
        invalid("URL must not contain a query");
    }
}

fn compile(env: &Env, expression: &str, condition: bool, at: &Path, errors: &mut Errors) -> Option<Program> {
    let compiled = if condition {
        env.compile_expecting(expression, &[Type::Bool])
    } else {
        env.compile(expression)
    };
    match compiled {
        Ok(program) => Some(program),
        Err(mistakes) => {
            let text: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            let why = format!("compilation failed: {}", text.join("; "));
            errors.push(FieldError::invalid(at, expression, why));
            None
        }
    }
}

/// Whether an expression reads this claim.
fn names_claim(expression: &str, claim: &str) -> bool {
    let dense: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    [
        format!("claims.{claim}"),
        format!("claims.?{claim}"),
        format!("claims[\"{claim}\"]"),
    ]
    .iter()
    .any(|name| {
        dense.match_indices(name.as_str()).any(|(at, found)| {
            let next = dense[at + found.len()..].chars().next();
            !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

#[cfg(test)]
mod tests;
