//! ValidatingAdmissionPolicies: which are in force, and what they say of a request.
//!
//! Policies and bindings are compiled when they change, under the lock of their kind, so that a policy counts from the
//! moment when its write is acknowledged. A request that no policy is about pays one look at a list.

mod request;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use fairway_kernel_kinds::read::{part, text, texts};
use fairway_kernel_kinds::selector;
use fairway_kernel_policy::{Failure, Input, ParamKind, Policy, Verdict, matches};
use serde_json::{Value, json};
use tracing::info;

use self::request::Request;
use super::Operation;
use crate::cache::{Cache, Change, ChangeKind, Scope};
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix, scope_prefix, split_suffix};
use crate::rest::call::{Call, meta};
use crate::rest::present;
use crate::status::{ApiError, Cause};

/// The group of policies; its configuration is not subject to itself.
const GROUP: &str = "admissionregistration.k8s.io";
const CONFIGURATION: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// A policy and what binds it.
type Enforced = (Arc<Policy>, Vec<Arc<Value>>);

/// The policies that there are, by workspace: nobody is judged by his neighbour's.
#[derive(Default)]
pub struct Policies {
    known: Mutex<HashMap<Box<str>, Known>>,
    enforced: ArcSwap<HashMap<Box<str>, Arc<Vec<Enforced>>>>,
}

#[derive(Default)]
struct Known {
    policies: BTreeMap<String, (Value, Arc<Policy>)>,
    bindings: BTreeMap<String, Arc<Value>>,
}

impl Policies {
    /// Compiles the policies that there are, and every change from then on.
    pub fn follow(cache: &Cache) -> Arc<Self> {
        let policies = Arc::new(Self::default());
        for (resource, is_binding) in [
            ("validatingadmissionpolicies", false),
            ("validatingadmissionpolicybindings", true),
        ] {
            let prefix = KindPrefix::new(GROUP, resource, BUILTIN_IDENTITY);
            let watcher = Arc::clone(&policies);
            cache
                .kind(prefix.as_str())
                .observe(Box::new(move |change| watcher.take(change, is_binding)));
        }
        policies
    }

    fn take(&self, change: &Change, is_binding: bool) {
        let (cluster, _, name) = split_suffix(&change.suffix);
        let name = name.to_owned();
        let object = change
            .object
            .value()
            .ok()
            .filter(|_| change.kind != ChangeKind::Deleted);
        let mut clusters = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clusters.entry(cluster.into()).or_default();
        match (object, is_binding) {
            (Some(object), true) => drop(known.bindings.insert(name, Arc::new(object))),
            (None, true) => drop(known.bindings.remove(&name)),
            (None, false) => drop(known.policies.remove(&name)),
            (Some(object), false) => {
                let spec = part(&object, "spec");
                // A change of its status changes nothing here.
                if known.policies.get(&name).is_none_or(|(seen, _)| seen != spec) {
                    let compiled = Arc::new(Policy::compile(&object));
                    known.policies.insert(name, (spec.clone(), compiled));
                }
            }
        }
        let enforced = Arc::new(known.enforced());
        if known.policies.is_empty() && known.bindings.is_empty() {
            clusters.remove(cluster);
        }
        self.enforced.rcu(|all| {
            let mut all = HashMap::clone(all);
            if enforced.is_empty() {
                all.remove(cluster);
            } else {
                all.insert(cluster.into(), Arc::clone(&enforced));
            }
            all
        });
    }

    /// What is in force in a workspace.
    fn of(&self, cluster: &str) -> Option<Arc<Vec<Enforced>>> {
        self.enforced.load().get(cluster).cloned()
    }
}

impl Known {
    /// Only what is bound is in force.
    fn enforced(&self) -> Vec<Enforced> {
        let bound_to = |name: &str| {
            let bindings = self.bindings.values();
            bindings
                .filter(|binding| text(part(binding, "spec"), "policyName") == name)
                .cloned()
                .collect::<Vec<_>>()
        };
        self.policies
            .iter()
            .map(|(name, (_, policy))| (Arc::clone(policy), bound_to(name)))
            .filter(|(_, bindings)| !bindings.is_empty())
            .collect()
    }
}

/// One reason why a policy denies a request.
struct Denial {
    policy: String,
    binding: Option<String>,
    failure: Failure,
}

/// Lets the policies judge a write.
pub fn judge(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(enforced) = call.kernel.policies.of(call.cluster) else {
        return Ok(());
    };
    let configures = call.def.group == GROUP && CONFIGURATION.contains(&call.def.resource.as_str());
    if configures {
        return Ok(());
    }
    let request = Request::new(call, operation, object, old)?;
    let target = request.target();
    let mut denials = Vec::new();
    for (policy, bindings) in enforced.iter() {
        let Some(resource) = matches(&policy.constraints, &target) else {
            continue;
        };
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            let spec = part(binding, "spec");
            if matches(part(spec, "matchResources"), &target).is_none() {
                continue;
            }
            let params = match parameters(call, policy, part(spec, "paramRef"), request.namespace()) {
                Ok(params) => params,
                Err(why) => {
                    if policy.fails_closed {
                        denials.push(denial(
                            policy,
                            Some(binding),
                            format!("failed to configure binding: {why}"),
                        ));
                    }
                    continue;
                }
            };
            let versioned = request.in_version_of(call, resource)?;
            for params in &params {
                let verdict = policy.judge(&Input {
                    request: &versioned.request,
                    object: &versioned.object,
                    old_object: &versioned.old_object,
                    namespace: request.namespace_object(),
                    params,
                    authorizer: request.authorizer(call),
                    resource: request.attributes(),
                });
                act(call, policy, binding, verdict, &mut denials, &mut annotations);
            }
        }
        for (key, values) in annotations {
            info!(
                policy = policy.name,
                key,
                value = values.join(", "),
                "an audit annotation of a policy"
            );
        }
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(refusal(call, &request, &first)),
    }
}

fn denial(policy: &Policy, binding: Option<&Value>, message: String) -> Denial {
    Denial {
        policy: policy.name.clone(),
        binding: binding.map(|binding| meta(binding, "name").to_owned()),
        failure: Failure {
            index: 0,
            message,
            reason: String::new(),
        },
    }
}

/// Does with a verdict what the binding says.
fn act(
    call: &Call<'_>,
    policy: &Policy,
    binding: &Value,
    verdict: Verdict,
    denials: &mut Vec<Denial>,
    annotations: &mut BTreeMap<String, Vec<String>>,
) {
    let name = meta(binding, "name");
    for failure in verdict.failures {
        for action in texts(part(binding, "spec"), "validationActions") {
            match action {
                "Deny" => denials.push(Denial {
                    failure: failure.clone(),
                    ..denial(policy, Some(binding), String::new())
                }),
                "Warn" => call.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{name}': {}",
                    policy.name, failure.message
                )),
                _ => info!(
                    policy = policy.name,
                    binding = name,
                    expression = failure.index,
                    reason = failure.message,
                    user = call.user.name,
                    resource = call.def.resource,
                    namespace = call.namespace(),
                    "a request fails a policy that is only audited"
                ),
            }
        }
    }
    let errors = verdict.annotation_errors.into_iter();
    denials.extend(errors.map(|why| denial(policy, Some(binding), why)));
    for (key, value) in verdict.annotations {
        let values = annotations.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
}

/// The answer to a denied request. The first reason is the one that is told.
fn refusal(call: &Call<'_>, request: &Request<'_>, denial: &Denial) -> ApiError {
    let by = match &denial.binding {
        Some(binding) => format!(" with binding '{binding}'"),
        None => String::new(),
    };
    let message = format!(
        "ValidatingAdmissionPolicy '{}'{by} denied request: {}",
        denial.policy, denial.failure.message
    );
    let mut error = ApiError::forbidden(call.about(request.name()), &message);
    (error.code, error.reason) = match denial.failure.reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    if let Some(details) = &mut error.details {
        details.causes = vec![Cause {
            reason: String::new(),
            message,
            field: String::new(),
        }];
    }
    error
}

/// The objects that a binding names as parameters; a policy without them is judged once, with none.
fn parameters(
    call: &Call<'_>,
    policy: &Policy,
    reference: &Value,
    request_namespace: &str,
) -> Result<Vec<Value>, String> {
    let (Some(ParamKind { api_version, kind }), true) = (&policy.param_kind, reference.is_object()) else {
        return Ok(vec![Value::Null]);
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let registry = call.kernel.apis.of(call.cluster);
    let def = registry
        .find_kind(group, version, kind)
        .ok_or_else(|| format!("paramKind kind `{api_version}, Kind={kind}` not known"))?;
    let given = text(reference, "namespace");
    let namespace = match (def.namespaced, given.is_empty()) {
        (true, false) => given,
        (true, true) if request_namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, true) => request_namespace,
        (false, false) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned(),
            );
        }
        (false, true) => "",
    };
    let cache = call.kernel.storage.kind(def);
    let name = text(reference, "name");
    let scope = if name.is_empty() {
        let within = def.namespaced.then_some(namespace);
        Scope::Within(scope_prefix(call.cluster, within).into())
    } else {
        Scope::One(ObjectSuffix::new(call.cluster, namespace, name).as_str().into())
    };
    let (objects, _) = cache.snapshot(&scope, 0);
    let found: Vec<Value> = objects
        .iter()
        .filter_map(|object| present::value(def, object).ok())
        .filter(|object| {
            !name.is_empty()
                || selector::matches(
                    part(reference, "selector"),
                    part(part(object, "metadata"), "labels"),
                )
        })
        .collect();
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found)
}

/// The body of `request` that expressions see, without what depends on the policy.
fn user_info(call: &Call<'_>) -> Value {
    json!({
        "username": call.user.name, "uid": call.user.uid, "groups": call.user.groups, "extra": call.user.extra,
    })
}
