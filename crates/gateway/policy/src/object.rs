//! A policy as the API holds it, read into what merging needs: its target, its strategy, and its rules by name.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// The most rules of one policy.
const MAX_RULES: usize = 512;
/// Under this name the `when` of a whole RateLimitPolicy merges; no limit can have it, because limits are named by users.
pub const LIMITS_WHEN: &str = "###_TOP_LEVEL_PREDICATES_###";
/// Under this name the `when` of a whole AuthPolicy merges.
pub const AUTH_WHEN: &str = "conditions#";

/// The kinds that are policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    AuthPolicy,
    RateLimitPolicy,
    TokenRateLimitPolicy,
    TlsPolicy,
    DnsPolicy,
    PlanPolicy,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::AuthPolicy,
        Kind::RateLimitPolicy,
        Kind::TokenRateLimitPolicy,
        Kind::TlsPolicy,
        Kind::DnsPolicy,
        Kind::PlanPolicy,
    ];

    /// As manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::AuthPolicy => "AuthPolicy",
            Kind::RateLimitPolicy => "RateLimitPolicy",
            Kind::TokenRateLimitPolicy => "TokenRateLimitPolicy",
            Kind::TlsPolicy => "TLSPolicy",
            Kind::DnsPolicy => "DNSPolicy",
            Kind::PlanPolicy => "PlanPolicy",
        }
    }

    /// Group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::TokenRateLimitPolicy => "kuadrant.io/v1alpha1",
            Kind::PlanPolicy => "extensions.kuadrant.io/v1alpha1",
            _ => "kuadrant.io/v1",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyKey {
    /// The workspace's logical-cluster id.
    pub workspace: String,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

/// `AuthPolicy/team/api`, as logs, metrics and `explain` name it.
impl fmt::Display for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// What a policy applies to, in its own namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRef {
    pub kind: TargetKind,
    pub name: String,
    /// A listener of a Gateway, or a named rule of a route.
    pub section: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind {
    Gateway,
    HttpRoute,
    /// What Kuadrant allows and is not served here (`GRPCRoute`), or what it does not allow.
    Other(String),
}

impl TargetKind {
    pub fn as_str(&self) -> &str {
        match self {
            TargetKind::Gateway => "Gateway",
            TargetKind::HttpRoute => "HTTPRoute",
            TargetKind::Other(kind) => kind,
        }
    }
}

/// How a policy is merged into what more specific policies came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// What is below counts, if there is anything. Bare rules mean this, too.
    #[default]
    AtomicDefaults,
    /// What is below counts, and the rules that it does not name are added.
    MergeDefaults,
    /// What is below does not count.
    AtomicOverrides,
    /// The rules of this policy count, and those below that it does not name.
    MergeOverrides,
}

/// What becomes of requests that a limit cannot be counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Allow,
    Deny,
}

/// On a RateLimitPolicy: [`Failure`], in the place of what the platform has for all.
pub const FAILURE_MODE: &str = "gateway.fairway.dev/failure-mode";

/// One named rule, and the policy that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub spec: Value,
    pub source: PolicyKey,
    /// If the policy says so.
    pub failure: Option<Failure>,
}

/// A policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub key: PolicyKey,
    pub generation: i64,
    /// As the API writes it, so that the order of texts is the order of times.
    pub created: String,
    /// Is on its way out, and counts no more.
    pub deleting: bool,
    pub target: TargetRef,
    pub strategy: Strategy,
    /// By name: `authentication#api-key`, or a limit's name.
    pub rules: BTreeMap<String, Rule>,
    /// Nothing is asked for; defaults above it then count.
    pub is_empty: bool,
    /// Why it cannot be understood.
    pub invalid: Option<String>,
    /// The whole `spec`, for the kinds that do not merge.
    pub spec: Value,
}

impl Policy {
    /// Reads an object. What is wrong with it is told in [`Policy::invalid`], and never makes it vanish.
    pub fn read(workspace: &str, kind: Kind, object: &Value) -> Policy {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let key = PolicyKey {
            workspace: workspace.to_owned(),
            kind,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        };
        let spec = &object["spec"];
        let mut policy = Policy {
            generation: metadata["generation"].as_i64().unwrap_or(0),
            created: text(&metadata["creationTimestamp"]),
            deleting: metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null()),
            target: target(&spec["targetRef"]),
            strategy: Strategy::default(),
            rules: BTreeMap::new(),
            is_empty: true,
            invalid: None,
            spec: spec.clone(),
            key,
        };
        let read = failure(kind, &metadata["annotations"]).and_then(|failure| Ok((failure, proper(spec)?)));
        match read {
            Ok((failure, (proper, strategy))) => {
                policy.strategy = strategy;
                policy.read_rules(proper);
                for rule in policy.rules.values_mut() {
                    rule.failure = failure;
                }
            }
            Err(why) => policy.invalid = Some(why),
        }
        policy
    }

    /// Whether it can be understood and has nothing to say of any request.
    pub fn asks_nothing(&self) -> bool {
        let is_condition =
            |name: &String| name == AUTH_WHEN || name == LIMITS_WHEN || name.starts_with("patterns#");
        let has_rules = matches!(self.key.kind, Kind::AuthPolicy | Kind::RateLimitPolicy);
        has_rules && self.invalid.is_none() && self.rules.keys().all(is_condition)
    }

    fn read_rules(&mut self, proper: &Value) {
        match self.key.kind {
            Kind::AuthPolicy => {
                self.is_empty = !proper["rules"].is_object();
                for (name, spec) in auth_rules(proper) {
                    self.insert(name, spec);
                }
            }
            Kind::RateLimitPolicy | Kind::TokenRateLimitPolicy => {
                let limits = proper["limits"].as_object();
                self.is_empty = limits.is_none_or(Map::is_empty);
                if proper["when"].as_array().is_some_and(|when| !when.is_empty()) {
                    self.insert(LIMITS_WHEN.to_owned(), &proper["when"]);
                }
                for (name, limit) in limits.into_iter().flatten() {
                    self.insert(name.clone(), limit);
                }
            }
            Kind::TlsPolicy | Kind::DnsPolicy | Kind::PlanPolicy => {}
        }
        if self.key.kind == Kind::TokenRateLimitPolicy {
            let why = "tokens of language models are not counted here; use a RateLimitPolicy";
            self.invalid = Some(why.to_owned());
        }
        if self.rules.len() > MAX_RULES {
            self.invalid = Some(format!("it has more than {MAX_RULES} rules"));
        }
    }

    fn insert(&mut self, name: String, spec: &Value) {
        let rule = Rule {
            spec: spec.clone(),
            source: self.key.clone(),
            failure: None,
        };
        self.rules.insert(name, rule);
    }
}

fn failure(kind: Kind, annotations: &Value) -> Result<Option<Failure>, String> {
    let mode = annotations[FAILURE_MODE].as_str();
    match (kind, mode) {
        // It fails closed in any case; that somebody wants something else is told.
        (Kind::AuthPolicy, Some(_)) => return Ok(Some(Failure::Deny)),
        (Kind::RateLimitPolicy, _) => {}
        _ => return Ok(None),
    }
    match mode {
        None => Ok(None),
        Some("allow") => Ok(Some(Failure::Allow)),
        Some("deny") => Ok(Some(Failure::Deny)),
        Some(other) => Err(format!(
            "annotation {FAILURE_MODE}: {other:?} is neither allow nor deny"
        )),
    }
}

fn target(reference: &Value) -> TargetRef {
    let kind = match (reference["group"].as_str(), reference["kind"].as_str()) {
        (Some("gateway.networking.k8s.io"), Some("Gateway")) => TargetKind::Gateway,
        (Some("gateway.networking.k8s.io"), Some("HTTPRoute")) => TargetKind::HttpRoute,
        (_, kind) => TargetKind::Other(kind.unwrap_or("").to_owned()),
    };
    TargetRef {
        kind,
        name: reference["name"].as_str().unwrap_or("").to_owned(),
        section: reference["sectionName"].as_str().map(str::to_owned),
    }
}

/// The part of a spec that holds the rules, and how they merge. The three ways to write it exclude each other.
fn proper(spec: &Value) -> Result<(&Value, Strategy), String> {
    let (defaults, overrides) = (spec.get("defaults"), spec.get("overrides"));
    let has_bare = ["rules", "limits", "when", "patterns"]
        .iter()
        .any(|field| spec.get(field).is_some());
    let strategy = |part: &Value, atomic, merge| match part["strategy"].as_str() {
        None | Some("atomic") => Ok(atomic),
        Some("merge") => Ok(merge),
        Some(other) => Err(format!("strategy {other:?} is neither atomic nor merge")),
    };
    match (defaults, overrides) {
        (Some(_), Some(_)) => Err("Overrides and explicit defaults are mutually exclusive".to_owned()),
        (Some(_), None) if has_bare => {
            Err("Implicit and explicit defaults are mutually exclusive".to_owned())
        }
        (None, Some(_)) if has_bare => {
            Err("Overrides and implicit defaults are mutually exclusive".to_owned())
        }
        (Some(part), None) => {
            let strategy = strategy(part, Strategy::AtomicDefaults, Strategy::MergeDefaults)?;
            Ok((part, strategy))
        }
        (None, Some(part)) => {
            let strategy = strategy(part, Strategy::AtomicOverrides, Strategy::MergeOverrides)?;
            Ok((part, strategy))
        }
        (None, None) => Ok((spec, Strategy::AtomicDefaults)),
    }
}

/// The rules of an AuthPolicy under the names by which they merge.
fn auth_rules(proper: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let rules = &proper["rules"];
    let success = &rules["response"]["success"];
    for (group, map) in [
        ("patterns", &proper["patterns"]),
        ("authentication", &rules["authentication"]),
        ("metadata", &rules["metadata"]),
        ("authorization", &rules["authorization"]),
        ("callbacks", &rules["callbacks"]),
        ("response.success.headers", &success["headers"]),
        ("response.success.metadata", &success["filters"]),
    ] {
        for (name, spec) in map.as_object().into_iter().flatten() {
            found.push((format!("{group}#{name}"), spec));
        }
    }
    if proper["when"].as_array().is_some_and(|when| !when.is_empty()) {
        found.push((AUTH_WHEN.to_owned(), &proper["when"]));
    }
    for answer in ["unauthenticated", "unauthorized"] {
        if rules["response"][answer].is_object() {
            found.push((format!("response.{answer}#"), &rules["response"][answer]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_says_what_becomes_of_what_it_cannot_count() {
        for (kind, text, expected) in [
            (Kind::RateLimitPolicy, Some("deny"), Ok(Some(Failure::Deny))),
            (Kind::RateLimitPolicy, Some("allow"), Ok(Some(Failure::Allow))),
            (Kind::RateLimitPolicy, None, Ok(None)),
            (Kind::RateLimitPolicy, Some("Deny"), Err(())),
            (Kind::AuthPolicy, Some("allow"), Ok(Some(Failure::Deny))),
            (Kind::AuthPolicy, None, Ok(None)),
            (Kind::TlsPolicy, Some("deny"), Ok(None)),
        ] {
            let object = json!({
                "metadata": {"name": "p", "namespace": "n", "annotations": {FAILURE_MODE: text}},
                "spec": {"limits": {"l": {}}, "rules": {"authentication": {"l": {}}}},
            });
            let policy = Policy::read("root", kind, &object);
            let found: Vec<_> = policy.rules.values().map(|rule| rule.failure).collect();
            match expected {
                Ok(failure) => {
                    let count = usize::from(matches!(kind, Kind::RateLimitPolicy | Kind::AuthPolicy));
                    assert_eq!((found, policy.invalid), (vec![failure; count], None), "{text:?}");
                }
                Err(()) => assert!(policy.invalid.is_some() && found.is_empty(), "{text:?}"),
            }
        }
    }
}
