//! Questions about tokens and rights: kinds that are asked, never stored.

use fairway_kernel_authz::{Attributes, Decision, ResourceAttributes, UserInfo};
use serde_json::{Value, json};

use crate::authn::authenticate_token;
use crate::behaviour;
use crate::http::negotiate::Accept;
use crate::http::respond;
use crate::registry::ResourceDef;
use crate::rest::call::{Answer, Call};
use crate::review_check;
use crate::service::Admitted;
use crate::status::{About, ApiError};

/// Whether a resource is a question rather than a thing.
pub(crate) fn is_review(def: &ResourceDef) -> bool {
    matches!(
        def.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    )
}

/// Answers a question.
pub(crate) async fn answer(call: &Call<'_>, request: &Admitted<'_>) -> Answer {
    if !call.path.name.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if request.info.verb != "create" {
        return Err(ApiError::method_not_allowed());
    }
    let accept = Accept::read_without_table(call.headers, call.query)?;
    let mut review = call.parse_body(&request.body)?.value;
    crate::rest::check_kind(call, &mut review)?;
    behaviour::prune(&call.def, &mut review)?;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    let spec = review["spec"].clone();
    let errors = review_check::faults(&call.def.resource, &review, call.namespace());
    if !errors.is_empty() {
        // Upstream's answer names the group and no kind here.
        let about = About {
            group: &call.def.group,
            resource: "",
            name: "",
        };
        return Err(ApiError::invalid(about, &errors));
    }
    review_check::missing(&call.def.resource, &spec)?;
    review["status"] = match call.def.resource.as_str() {
        "selfsubjectreviews" => json!({"userInfo": user_info(call.user)}),
        "tokenreviews" => token_review(call, &spec).await,
        "selfsubjectaccessreviews" => access(call, call.user, &spec),
        "selfsubjectrulesreviews" => rules(call, &spec),
        "subjectaccessreviews" => access(call, &subject(&spec), &spec),
        "localsubjectaccessreviews" => access(call, &subject(&spec), &spec),
        _ => return Err(ApiError::no_such_path()),
    };
    Ok(respond::value(201, accept.format, &review))
}

fn user_info(user: &UserInfo) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .map(|list| {
            list.iter()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
}

async fn token_review(call: &Call<'_>, spec: &Value) -> Value {
    let token = spec["token"].as_str().unwrap_or("");
    match authenticate_token(call.kernel, call.cluster, token, &texts(&spec["audiences"])).await {
        Ok(mut verified) => {
            verified.user.groups.push(crate::authn::AUTHENTICATED.to_owned());
            let user = verified.user;
            // Roles of a workspace may speak of everybody; that means everybody whom it lets in.
            if !crate::access::knows(call.kernel, &user, call.cluster) {
                tracing::debug!(
                    user = user.name,
                    "a reviewed token is of somebody who is not let in"
                );
                return json!({"user": {}, "error": "invalid bearer token"});
            }
            json!({"authenticated": true, "user": user_info(&user), "audiences": verified.audiences})
        }
        Err(error) => {
            tracing::debug!(%error, "a reviewed token was refused");
            json!({"user": {}, "error": "invalid bearer token"})
        }
    }
}

/// Whom the question is about.
fn subject(spec: &Value) -> UserInfo {
    let mut user = UserInfo::new(spec["user"].as_str().unwrap_or(""), texts(&spec["groups"]));
    user.uid = spec["uid"].as_str().unwrap_or("").to_owned();
    for (key, values) in spec["extra"].as_object().into_iter().flatten() {
        user.extra.insert(key.clone(), texts(values));
    }
    user
}

fn access(call: &Call<'_>, user: &UserInfo, spec: &Value) -> Value {
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |value: &'_ Value, field: &str| value[field].as_str().unwrap_or("").to_owned();
    let decision = if resource.is_object() {
        let parts = [
            "group",
            "version",
            "resource",
            "subresource",
            "namespace",
            "name",
            "verb",
        ]
        .map(|field| text(resource, field));
        let [group, version, resource, subresource, namespace, name, verb] = &parts;
        let attributes = Attributes {
            user,
            verb,
            path: "",
            resource: Some(ResourceAttributes {
                group,
                version,
                resource,
                subresource,
                namespace,
                name,
                ..ResourceAttributes::default()
            }),
        };
        call.kernel.decide(call.cluster, &attributes)
    } else {
        let (path, verb) = (text(other, "path"), text(other, "verb"));
        let attributes = Attributes {
            user,
            verb: &verb,
            resource: None,
            path: &path,
        };
        call.kernel.decide(call.cluster, &attributes)
    };
    status(&decision)
}

fn status(decision: &Decision) -> Value {
    let mut status = json!({"allowed": decision.is_allowed()});
    if let Decision::Deny { .. } = decision {
        status["denied"] = true.into();
    }
    if !decision.reason().is_empty() {
        status["reason"] = decision.reason().into();
    }
    status
}

fn rules(call: &Call<'_>, spec: &Value) -> Value {
    let namespace = spec["namespace"].as_str().unwrap_or("");
    let rules = call
        .kernel
        .authorizer
        .with(call.cluster, |policy| policy.rules_for(call.user, namespace));
    let mut status = json!({
        "resourceRules": rules.resource_rules,
        "nonResourceRules": rules.non_resource_rules,
        "incomplete": rules.incomplete,
    });
    if let Some(error) = rules.evaluation_error {
        status["evaluationError"] = error.into();
    }
    status
}
