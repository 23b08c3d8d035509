//! How a domain completes and judges objects of its kinds, without knowing the kernel.
//!
//! Upstream's products do this by admission webhooks. Here a domain implements [`Admission`], and the kernel asks it at
//! the places where it would ask webhooks, in process: [`Admission::complete`] after the schema's defaults and before
//! anything is judged, [`Admission::judge`] last, after policies. What is completed has no field owner. A refusal has the
//! form that a client gets from a webhook's. [`Admission::impact`] is asked for dry runs, and is answered in annotations of
//! the object.
//!
//! A domain decides from what it is given: the request, and a [`World`] of objects as the kernel knows them now. It must
//! not wait for anything.
//!
//! ```
//! use fairway_admission::{Admission, Cause, Refusal, Request, Verdict};
//! use serde_json::Value;
//!
//! struct Lamps;
//!
//! impl Admission for Lamps {
//!     fn judge(&self, _: &Request<'_>, lamp: &Value) -> Verdict {
//!         if lamp["spec"]["lit"] == true && lamp["spec"]["oil"] == 0 {
//!             let cause = Cause::new("FieldValueInvalid", "spec.oil", "a lamp that is lit needs oil");
//!             return Err(Refusal::invalid("lamps.example.com", "a lamp that is lit needs oil", vec![cause]));
//!         }
//!         Ok(Vec::new())
//!     }
//! }
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

/// The annotation in which a dry run is told what the change does to what runs.
pub const IMPACT_ANNOTATION: &str = "fairway.dev/impact";
/// The annotation that says why.
pub const IMPACT_REASON_ANNOTATION: &str = "fairway.dev/impact-reason";

/// Warnings for who asked, or a refusal.
pub type Verdict = Result<Vec<String>, Refusal>;

/// What a domain makes of the objects of a kind.
pub trait Admission: Send + Sync {
    /// Completes an object that is to be created or updated. It may be called more than once for a request.
    fn complete(&self, _request: &Request<'_>, _object: &mut Value) -> Verdict {
        Ok(Vec::new())
    }

    /// Says no, or what is worth knowing. The object of a deletion is the one that goes.
    fn judge(&self, _request: &Request<'_>, _object: &Value) -> Verdict {
        Ok(Vec::new())
    }

    /// What the request does to what runs, asked for dry runs that were allowed. Nothing: nobody knows.
    fn impact(&self, _request: &Request<'_>, _object: &Value) -> Option<Impact> {
        None
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It does not exist yet.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// Who wants what.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// What is done.
    pub operation: Operation,
    /// `status`, `scale`; nothing for the object itself.
    pub subresource: Option<&'r str>,
    /// The object as it is; of a deletion, too.
    pub old: Option<&'r Value>,
    /// The namespace; empty for kinds without.
    pub namespace: &'r str,
    /// Who asks.
    pub user: &'r str,
    /// The user's identity holds in this workspace alone. Such a user never is one of the platform's own, whatever the name.
    pub is_local_user: bool,
    /// What else is known of who asks.
    pub subject: Subject<'r>,
    /// Now, RFC 3339.
    pub now: &'r str,
    /// Objects beside this one.
    pub world: &'r dyn World,
}

/// What is known of somebody beside the name, as an authenticator says it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'r> {
    /// An identifier that outlives renaming; often empty.
    pub uid: &'r str,
    /// Groups.
    pub groups: &'r [String],
    /// What the authenticator added.
    pub extra: Option<&'r BTreeMap<String, Vec<String>>>,
}

/// Where an object is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The workspace of the request.
    Here,
    /// The root workspace, where the platform keeps what is for all.
    Root,
}

/// A kind, as URLs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group; empty for the core.
    pub group: &'static str,
    /// Plural.
    pub plural: &'static str,
}

impl Resource {
    /// A resource of a group.
    pub const fn new(group: &'static str, plural: &'static str) -> Self {
        Self { group, plural }
    }

    /// `pods`, `virtualmachines.kubevirt.io`.
    pub fn qualified(self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

/// Something that somebody might want to do in the workspace of a request.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// Verb.
    pub verb: &'a str,
    /// Of what.
    pub resource: Resource,
    /// And which part; empty for the whole.
    pub subresource: &'a str,
    /// Where.
    pub namespace: &'a str,
    /// To which.
    pub name: &'a str,
}

/// A service account, whose rights may count in place of the user's.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Where it is.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// What else there is, as the kernel knows it now. Answers need no waiting.
pub trait World {
    /// An object; the namespace of a cluster-scoped one is empty.
    fn get(&self, place: Place, resource: Resource, namespace: &str, name: &str) -> Option<Value>;

    /// Objects of a namespace, or of all; at most so many.
    fn list(&self, place: Place, resource: Resource, namespace: Option<&str>, at_most: usize) -> Vec<Value>;

    /// Whether who asks may do something else, too; or whether an account may.
    fn may(&self, action: &Action<'_>, account: Option<Account<'_>>) -> bool;

    /// Five characters that make a name unlike others.
    fn name_suffix(&self) -> String;
}

/// One thing that is wrong: an entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid` and the like.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Path of the field; may be empty.
    pub field: String,
}

impl Cause {
    /// A cause.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            field: field.into(),
        }
    }
}

/// A refusal, as a webhook gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The webhook that says so upstream.
    pub webhook: &'static str,
    /// HTTP code.
    pub code: u16,
    /// `reason` of the `Status`; may be empty.
    pub reason: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What is wrong, one by one.
    pub causes: Vec<Cause>,
}

impl Refusal {
    /// The object is wrong: 422.
    pub fn invalid(webhook: &'static str, message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self {
            webhook,
            code: 422,
            reason: "Invalid",
            message: message.into(),
            causes,
        }
    }

    /// The request makes no sense as things are: 400.
    pub fn failed(webhook: &'static str, message: impl Into<String>) -> Self {
        Self {
            webhook,
            code: 400,
            reason: "",
            message: message.into(),
            causes: Vec::new(),
        }
    }

    /// The whole message, as API servers put a webhook's.
    pub fn text(&self) -> String {
        let Self { webhook, message, .. } = self;
        let denied = format!("admission webhook \"{webhook}\" denied the request");
        match (message.is_empty(), self.reason) {
            (false, _) => format!("{denied}: {message}"),
            (true, "") => format!("{denied} without explanation"),
            (true, reason) => format!("{denied}: {reason}"),
        }
    }
}

/// What a change does to what runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impact {
    /// In the domain's own words: `none`, `live change`, `restart`, ...
    pub class: String,
    /// Why; may be empty.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_webhooks() {
        let of = |message: &str, reason| Refusal {
            reason,
            ..Refusal::failed("a.example.com", message)
        };
        for (refusal, text) in [
            (
                of("no", ""),
                r#"admission webhook "a.example.com" denied the request: no"#,
            ),
            (
                of("", "Invalid"),
                r#"admission webhook "a.example.com" denied the request: Invalid"#,
            ),
            (
                of("", ""),
                r#"admission webhook "a.example.com" denied the request without explanation"#,
            ),
        ] {
            assert_eq!(refusal.text(), text);
        }
    }
}
