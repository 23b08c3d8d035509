//! From claims to a user: a function of the configuration and the claims alone.
//!
//! Names and groups that begin with `system:` are Kubernetes' own; no issuer can give them, whatever the mapping says.

use std::collections::BTreeMap;

use fairway_kernel_authz::UserInfo;
use fairway_text_cel::limits::PER_CALL_LIMIT;
use fairway_text_cel::{Activation, Program, eval};
use serde_json::{Value, json};

use super::config::{Authenticator, Rule, Source, user_type};

const RESERVED: &str = "system:";

/// Who the claims of a verified token stand for.
pub fn user(authenticator: &Authenticator, claims: &Value) -> Result<UserInfo, String> {
    let name = username(&authenticator.username, claims)?;
    if name.starts_with(RESERVED) {
        return Err(format!(
            "oidc: username {name:?} is reserved: it begins with {RESERVED}"
        ));
    }
    let groups = match &authenticator.groups {
        None => Vec::new(),
        Some(source) => groups(source, claims)?,
    };
    if let Some(group) = groups.iter().find(|group| group.starts_with(RESERVED)) {
        return Err(format!(
            "oidc: group {group:?} is reserved: it begins with {RESERVED}"
        ));
    }
    let mut user = UserInfo::new(name, groups);
    user.uid = match &authenticator.uid {
        None => String::new(),
        Some(Source::Claim { claim, .. }) => {
            text(claims, claim).map_err(|e| format!("oidc: parse uid claim {claim:?}: {e}"))?
        }
        Some(Source::Expression(program)) => evaluate(program, "claims", claims)
            .and_then(|value| only_text(&value, "uid claim expression must return a string"))
            .map_err(|e| format!("oidc: error evaluating uid claim expression: {e}"))?,
    };
    user.extra = extra(authenticator, claims)?;
    for (claim, wanted) in &authenticator.required {
        if claims.get(claim).is_none() {
            return Err(format!("oidc: required claim {claim} not present in ID token"));
        }
        let found = text(claims, claim).map_err(|e| format!("oidc: parse claim {claim}: {e}"))?;
        if found != *wanted {
            return Err(format!(
                "oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
            ));
        }
    }
    check(&authenticator.claim_rules, "claims", claims)
        .map_err(|e| format!("oidc: error evaluating claim validation expression: {e}"))?;
    if !authenticator.user_rules.is_empty() {
        let seen = json!({
            "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
        });
        check(&authenticator.user_rules, "user", &seen)
            .map_err(|e| format!("oidc: error evaluating user info validation rule: {e}"))?;
    }
    Ok(user)
}

fn username(source: &Source, claims: &Value) -> Result<String, String> {
    match source {
        Source::Expression(program) => {
            let name = evaluate(program, "claims", claims)
                .and_then(|value| only_text(&value, "username claim expression must return a string"))
                .map_err(|e| format!("oidc: error evaluating username claim expression: {e}"))?;
            if name.is_empty() {
                return Err("oidc: empty username via CEL expression is not allowed".to_owned());
            }
            Ok(name)
        }
        Source::Claim { claim, prefix } => {
            let name =
                text(claims, claim).map_err(|e| format!("oidc: parse username claims {claim:?}: {e}"))?;
            if name.is_empty() {
                return Err(format!("oidc: parse username claims {claim:?}: it is empty"));
            }
            if claim == "email" {
                match claims.get("email_verified") {
                    None | Some(Value::Bool(true)) => {}
                    Some(Value::Bool(false)) => return Err("oidc: email not verified".to_owned()),
                    Some(_) => return Err("oidc: parse 'email_verified' claim: not a boolean".to_owned()),
                }
            }
            Ok(format!("{prefix}{name}"))
        }
    }
}

fn groups(source: &Source, claims: &Value) -> Result<Vec<String>, String> {
    match source {
        Source::Expression(program) => evaluate(program, "claims", claims)
            .and_then(|value| texts(&value))
            .map_err(|e| format!("oidc: error evaluating group claim expression: {e}")),
        Source::Claim { claim, prefix } => {
            let Some(value) = claims.get(claim) else {
                return Ok(Vec::new());
            };
            // A single group may be given as a text.
            let groups = texts(value).map_err(|e| format!("oidc: parse groups claim {claim:?}: {e}"))?;
            Ok(groups
                .into_iter()
                .map(|group| format!("{prefix}{group}"))
                .collect())
        }
    }
}

fn extra(authenticator: &Authenticator, claims: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut extra = BTreeMap::new();
    if let Some(id) = claims
        .get("jti")
        .and_then(Value::as_str)
        .filter(|id| !id.is_empty())
    {
        let key = "authentication.kubernetes.io/credential-id".to_owned();
        extra.insert(key, vec![format!("JTI={id}")]);
    }
    for (key, program) in &authenticator.extra {
        let values = evaluate(program, "claims", claims)
            .and_then(|value| texts(&value))
            .map_err(|e| {
                format!(
                    "oidc: error evaluating extra claim expression: {}: {e}",
                    program.source()
                )
            })?;
        if !values.is_empty() {
            extra.insert(key.clone(), values);
        }
    }
    Ok(extra)
}

fn check(rules: &[Rule], variable: &str, value: &Value) -> Result<(), String> {
    for rule in rules {
        let holds = evaluate(&rule.program, variable, value)?;
        if holds != Value::Bool(true) {
            let why = if rule.message.is_empty() {
                format!("validation expression '{}' failed", rule.program.source())
            } else {
                format!(
                    "validation expression '{}' failed: {}",
                    rule.program.source(),
                    rule.message
                )
            };
            return Err(why);
        }
    }
    Ok(())
}

fn evaluate(program: &Program, variable: &str, value: &Value) -> Result<Value, String> {
    let mut budget = PER_CALL_LIMIT;
    let user = user_type();
    let activation = match (&user, variable) {
        (Some(decl), "user") => Activation::new().bind_schema_value(variable, value, decl),
        _ => Activation::new().bind_json(variable, value),
    };
    let result = eval(program, &activation, &mut budget).map_err(|e| e.to_string())?;
    result
        .to_json()
        .ok_or_else(|| format!("its result is of type {}", result.type_name()))
}

fn text(claims: &Value, claim: &str) -> Result<String, String> {
    match claims.get(claim) {
        None => Err("claim not present".to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err("not a string".to_owned()),
    }
}

fn only_text(value: &Value, otherwise: &str) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| otherwise.to_owned())
}

/// A text, a list of texts, or nothing.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| "expression must return a string or a list of strings".to_owned()),
        _ => Err("expression must return a string or a list of strings".to_owned()),
    }
}

#[cfg(test)]
mod tests;
