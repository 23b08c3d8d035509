//! What the domain of a kind says of its objects: completes them, judges them, and tells a dry run what would happen.
//!
//! This is where webhooks would be asked, and the order is theirs. The kernel does not know what a domain does with an
//! object; it carries out the answers.

use fairway_admission::{
    Account, Action, Admission, IMPACT_ANNOTATION, IMPACT_REASON_ANNOTATION, Place, Refusal, Request,
    Resource, World,
};
use fairway_kernel_authz::{Attributes, ResourceAttributes, UserInfo};
use fairway_kernel_tenancy::names::extra;
use serde_json::Value;

use super::Operation;
use crate::cache::Scope;
use crate::key::{ObjectSuffix, ROOT_CLUSTER, scope_prefix};
use crate::rest::call::{Call, metadata_mut};
use crate::status::{ApiError, Cause, Details};

/// Lets the domain complete an object.
pub(crate) fn complete(
    call: &Call<'_>,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(domain) = domain(call) else {
        return Ok(());
    };
    let world = Surroundings { call };
    let warnings = domain
        .complete(&request(call, operation, old, &world), object)
        .map_err(refused)?;
    warnings.into_iter().for_each(|warning| call.warn(warning));
    Ok(())
}

/// Lets the domain say no.
pub(crate) fn judge(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(domain) = domain(call) else {
        return Ok(());
    };
    let world = Surroundings { call };
    let warnings = domain
        .judge(&request(call, operation, old, &world), object)
        .map_err(refused)?;
    warnings.into_iter().for_each(|warning| call.warn(warning));
    Ok(())
}

/// Writes into the answer to a dry run what the change would do; whether somebody knows it.
pub(crate) fn tell_impact(
    call: &Call<'_>,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> bool {
    let Some(domain) = domain(call).filter(|_| call.subresource().is_none()) else {
        return false;
    };
    let world = Surroundings { call };
    let Some(impact) = domain.impact(&request(call, operation, old, &world), object) else {
        return false;
    };
    let annotations = metadata_mut(object)
        .entry("annotations")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(IMPACT_ANNOTATION.to_owned(), impact.class.into());
        // What an earlier answer said must not stay, if somebody stored it.
        annotations.shift_remove(IMPACT_REASON_ANNOTATION);
        if !impact.reason.is_empty() {
            annotations.insert(IMPACT_REASON_ANNOTATION.to_owned(), impact.reason.into());
        }
    }
    true
}

fn domain<'c>(call: &'c Call<'_>) -> Option<&'c dyn Admission> {
    call.def.custom()?.domain.as_deref()
}

fn request<'r>(
    call: &'r Call<'_>,
    operation: Operation,
    old: Option<&'r Value>,
    world: &'r Surroundings<'r>,
) -> Request<'r> {
    Request {
        operation: match operation {
            Operation::Create => fairway_admission::Operation::Create,
            Operation::Update => fairway_admission::Operation::Update,
            Operation::Delete => fairway_admission::Operation::Delete,
        },
        subresource: call.subresource(),
        old,
        namespace: call.namespace(),
        user: &call.user.name,
        // Accounts of a workspace, and whom its administrators pretend to be, say where they belong.
        is_local_user: [extra::CLUSTER_NAME, extra::SCOPES]
            .iter()
            .any(|key| call.user.extra.contains_key(*key)),
        subject: fairway_admission::Subject {
            uid: &call.user.uid,
            groups: &call.user.groups,
            extra: Some(&call.user.extra),
        },
        now: &call.now,
        world,
    }
}

fn refused(refusal: Refusal) -> ApiError {
    let message = refusal.text();
    let causes: Vec<Cause> = refusal
        .causes
        .into_iter()
        .map(|cause| Cause {
            reason: cause.reason.to_owned(),
            message: cause.message,
            field: cause.field,
        })
        .collect();
    ApiError {
        code: refusal.code,
        reason: refusal.reason,
        message,
        // Webhooks name no object, so clients say "the request is invalid" and list what is wrong.
        details: (!causes.is_empty()).then(|| Details {
            causes,
            ..Details::default()
        }),
        continue_token: None,
    }
}

/// Everything beside the object of a call.
struct Surroundings<'c> {
    call: &'c Call<'c>,
}

impl Surroundings<'_> {
    fn cluster(&self, place: Place) -> &str {
        match place {
            Place::Here => self.call.cluster,
            Place::Root => ROOT_CLUSTER,
        }
    }
}

impl World for Surroundings<'_> {
    fn get(&self, place: Place, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        let (kernel, cluster) = (self.call.kernel, self.cluster(place));
        let registry = kernel.apis.of(cluster);
        let def = registry.any_version(resource.group, resource.plural)?;
        let suffix = ObjectSuffix::new(cluster, namespace, name);
        kernel.storage.kind(def).get(suffix.as_str())?.value().ok()
    }

    fn list(&self, place: Place, resource: Resource, namespace: Option<&str>, at_most: usize) -> Vec<Value> {
        let (kernel, cluster) = (self.call.kernel, self.cluster(place));
        let registry = kernel.apis.of(cluster);
        let Some(def) = registry.any_version(resource.group, resource.plural) else {
            return Vec::new();
        };
        let scope = Scope::Within(scope_prefix(cluster, namespace).into());
        let (found, _) = kernel.storage.kind(def).list(&scope, None, at_most, 0);
        let objects = found.objects.iter();
        objects.filter_map(|(_, object)| object.value().ok()).collect()
    }

    fn may(&self, action: &Action<'_>, account: Option<Account<'_>>) -> bool {
        let account = account.map(|account| {
            let groups = [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{}", account.namespace),
                "system:authenticated".to_owned(),
            ];
            UserInfo::new(
                format!("system:serviceaccount:{}:{}", account.namespace, account.name),
                groups,
            )
        });
        // A provider has no rights of its own in the workspaces of its consumers.
        if account.is_none() && self.call.visit.is_some() {
            return false;
        }
        let attributes = Attributes {
            user: account.as_ref().unwrap_or(self.call.user),
            verb: action.verb,
            path: "",
            resource: Some(ResourceAttributes {
                group: action.resource.group,
                resource: action.resource.plural,
                subresource: action.subresource,
                namespace: action.namespace,
                name: action.name,
                ..ResourceAttributes::default()
            }),
        };
        self.call.kernel.authorize(self.call.cluster, &attributes).is_ok()
    }

    fn name_suffix(&self) -> String {
        self.call.kernel.random.name_suffix()
    }
}
