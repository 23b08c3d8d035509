//! Authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
//!
//! The host supplies the decisions; this module builds the questions.

use std::fmt;
use std::sync::Arc;

use fairway_kernel_scalar::names;

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

/// Who answers authorization checks.
pub trait Authorizer: Send + Sync {
    /// Decides one question.
    fn authorize(&self, check: &AccessCheck) -> Decision;
}

/// A question to the authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCheck {
    /// The service account (namespace, name) to ask for instead of the user of the request.
    pub service_account: Option<(Arc<str>, Arc<str>)>,
    /// The API verb, or for paths the HTTP verb.
    pub verb: Arc<str>,
    /// What is to be accessed.
    pub target: AccessTarget,
}

/// What an authorization check is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// A path outside the resources.
    Path(Arc<str>),
    /// A resource.
    Resource(ResourceAttributes),
}

/// The resource of a check; empty strings are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// API group, empty for the core group.
    pub group: Arc<str>,
    /// Plural name of the resource.
    pub resource: Arc<str>,
    /// Subresource such as `status`.
    pub subresource: Arc<str>,
    /// Namespace, empty for the cluster scope.
    pub namespace: Arc<str>,
    /// Name of one object.
    pub name: Arc<str>,
    /// Field selector, not parsed.
    pub field_selector: Arc<str>,
    /// Label selector, not parsed.
    pub label_selector: Arc<str>,
}

/// The answer of the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether access is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding, if anything.
    pub error: Option<String>,
}

/// The value of the `authorizer` variable.
#[derive(Clone)]
pub struct AuthorizerValue {
    authorizer: Arc<dyn Authorizer>,
    service_account: Option<(Arc<str>, Arc<str>)>,
}

impl fmt::Debug for AuthorizerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizerValue")
            .field("service_account", &self.service_account)
            .finish_non_exhaustive()
    }
}

impl PartialEq for AuthorizerValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.authorizer, &other.authorizer) && self.service_account == other.service_account
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PathCheck {
    authorizer: AuthorizerValue,
    path: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GroupCheck {
    authorizer: AuthorizerValue,
    group: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResourceCheck {
    authorizer: AuthorizerValue,
    attributes: ResourceAttributes,
}

impl<'a> Value<'a> {
    /// The value to bind to a variable of type [`Type::authorizer`](crate::Type::authorizer).
    pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Value<'a> {
        Value::opaque(Opaque::Authorizer(AuthorizerValue {
            authorizer,
            service_account: None,
        }))
    }

    /// A resource check that is already filled in, as `authorizer.requestResource` is.
    pub fn resource_check(authorizer: Arc<dyn Authorizer>, attributes: ResourceAttributes) -> Value<'a> {
        let authorizer = AuthorizerValue {
            authorizer,
            service_account: None,
        };
        Value::opaque(Opaque::ResourceCheck(ResourceCheck {
            authorizer,
            attributes,
        }))
    }
}

/// One check may cost a call to a webhook; the price allows for two in an expression.
const CHECK: Cost = Cost::Fixed(350_000);

pub(super) fn register(r: &mut Registry) {
    r.add("path", "authorizer.(string) -> path_check", Cost::Fixed(1), path);
    r.add(
        "group",
        "authorizer.(string) -> group_check",
        Cost::Fixed(1),
        |_, args| {
            let authorizer = opaque!(args, 0, Authorizer).clone();
            Ok(Value::opaque(Opaque::GroupCheck(GroupCheck {
                authorizer,
                group: text(args, 1)?,
            })))
        },
    );
    r.add(
        "serviceAccount",
        "authorizer.(string, string) -> authorizer",
        Cost::Fixed(1),
        service_account,
    );
    r.add(
        "resource",
        "group_check.(string) -> resource_check",
        Cost::Fixed(1),
        resource,
    );
    r.add(
        "subresource",
        "resource_check.(string) -> resource_check",
        Cost::Fixed(1),
        |_, args| narrow(args, |attributes, value| attributes.subresource = value),
    );
    r.add(
        "namespace",
        "resource_check.(string) -> resource_check",
        Cost::Fixed(1),
        |_, args| narrow(args, |attributes, value| attributes.namespace = value),
    );
    r.add(
        "name",
        "resource_check.(string) -> resource_check",
        Cost::Fixed(1),
        |_, args| narrow(args, |attributes, value| attributes.name = value),
    );
    r.add(
        "fieldSelector",
        "resource_check.(string) -> resource_check",
        Cost::Selector,
        |_, args| narrow(args, |attributes, value| attributes.field_selector = value),
    );
    r.add(
        "labelSelector",
        "resource_check.(string) -> resource_check",
        Cost::Selector,
        |_, args| narrow(args, |attributes, value| attributes.label_selector = value),
    );
    r.add("check", "path_check.(string) -> decision", CHECK, |_, args| {
        let check = opaque!(args, 0, PathCheck);
        decide(
            &check.authorizer,
            AccessTarget::Path(check.path.clone()),
            text(args, 1)?,
        )
    });
    r.add(
        "check",
        "resource_check.(string) -> decision",
        CHECK,
        |_, args| {
            let check = opaque!(args, 0, ResourceCheck);
            decide(
                &check.authorizer,
                AccessTarget::Resource(check.attributes.clone()),
                text(args, 1)?,
            )
        },
    );
    r.add("errored", "decision.() -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(opaque!(args, 0, Decision).error.is_some()))
    });
    r.add("error", "decision.() -> string", Cost::Fixed(1), |_, args| {
        Ok(Value::string(
            opaque!(args, 0, Decision).error.as_deref().unwrap_or_default(),
        ))
    });
    r.add("allowed", "decision.() -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(opaque!(args, 0, Decision).allowed))
    });
    r.add("reason", "decision.() -> string", Cost::Fixed(1), |_, args| {
        Ok(Value::string(opaque!(args, 0, Decision).reason.as_str()))
    });
}

fn text(args: &[Value<'_>], index: usize) -> Result<Arc<str>, Error> {
    Ok(arg!(args, index, String).as_str().into())
}

fn path<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let path = text(args, 1)?;
    if path.trim().is_empty() {
        return Err(Error::invalid("path must not be empty"));
    }
    Ok(Value::opaque(Opaque::PathCheck(PathCheck {
        authorizer: opaque!(args, 0, Authorizer).clone(),
        path,
    })))
}

fn resource<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (check, resource) = (opaque!(args, 0, GroupCheck), text(args, 1)?);
    if resource.trim().is_empty() {
        return Err(Error::invalid("resource must not be empty"));
    }
    let attributes = ResourceAttributes {
        group: check.group.clone(),
        resource,
        ..ResourceAttributes::default()
    };
    Ok(Value::opaque(Opaque::ResourceCheck(ResourceCheck {
        authorizer: check.authorizer.clone(),
        attributes,
    })))
}

fn narrow<'a>(args: &[Value<'a>], set: fn(&mut ResourceAttributes, Arc<str>)) -> Result<Value<'a>, Error> {
    let mut check = opaque!(args, 0, ResourceCheck).clone();
    set(&mut check.attributes, text(args, 1)?);
    Ok(Value::opaque(Opaque::ResourceCheck(check)))
}

fn service_account<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (namespace, name) = (text(args, 1)?, text(args, 2)?);
    if !names::is_dns1123_subdomain(&name).is_empty() {
        return Err(Error::invalid("Invalid service account name"));
    }
    if !names::is_dns1123_label(&namespace).is_empty() {
        return Err(Error::invalid("Invalid service account namespace"));
    }
    let authorizer = opaque!(args, 0, Authorizer).authorizer.clone();
    Ok(Value::opaque(Opaque::Authorizer(AuthorizerValue {
        authorizer,
        service_account: Some((namespace, name)),
    })))
}

fn decide<'a>(
    authorizer: &AuthorizerValue,
    target: AccessTarget,
    verb: Arc<str>,
) -> Result<Value<'a>, Error> {
    let check = AccessCheck {
        service_account: authorizer.service_account.clone(),
        verb,
        target,
    };
    Ok(Value::opaque(Opaque::Decision(
        authorizer.authorizer.authorize(&check),
    )))
}
