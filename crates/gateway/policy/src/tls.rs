//! TLSPolicies: which certificates the listeners of a Gateway need. The platform's own authority issues them.

use std::time::Duration;

use crate::effective::{Refusal, Standing};
use crate::object::{Policy, PolicyKey, TargetKind};
use crate::status::{Condition, accepted, refused};

/// Whose names are everybody's.
const ROOT: &str = "root";

/// Ninety days, as cert-manager has it.
const DURATION: Duration = Duration::from_secs(90 * 86_400);

/// A Gateway, as far as policies about it look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayView {
    pub workspace: String,
    pub namespace: String,
    pub name: String,
    pub listeners: Vec<ListenerView>,
    /// `status.addresses`, IP addresses and host names.
    pub addresses: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenerView {
    pub name: String,
    pub hostname: Option<String>,
    /// It ends TLS itself, with certificates from these Secrets (namespace and name).
    pub certificates: Vec<(String, String)>,
    /// Secrets that it names and may not have, such as those of another namespace without a ReferenceGrant.
    pub not_permitted: Vec<String>,
    /// Why it is not served: it lost its port and host name to somebody else, or it is wrong.
    pub not_served: Option<String>,
    pub attached_routes: u32,
}

/// Which names certificates are given for. Whoever trusts the platform's authority believes every certificate of it, so no
/// tenant may have one for a name that is somebody else's.
#[derive(Debug, Clone, Copy)]
pub struct Rights<'a> {
    /// The platform's domain: tenants may have names below it.
    pub domain: &'a str,
    /// Names that the API server answers to, `*.example.com` among them.
    pub reserved: &'a [String],
}

impl Rights<'_> {
    /// Why a workspace gets no certificate for a name.
    fn refusal(&self, workspace: &str, name: &str) -> Option<String> {
        if workspace == ROOT {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let domain = self.domain;
        // The domain itself, and a wildcard right below it, stand for every tenant's names.
        let base = name.strip_prefix("*.").unwrap_or(&name);
        let is_below = base.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        if !is_below {
            let why =
                format!("{name} is not a name below {domain}: only the root workspace gets a certificate");
            return Some(why);
        }
        let own = self.reserved.iter().find(|own| overlap(own, &name))?;
        Some(format!("{name} is a name of the API server ({own})"))
    }
}

/// Whether a certificate for one name is good for a host of the other: a wildcard stands for one label.
fn overlap(one: &str, other: &str) -> bool {
    let covers = |pattern: &str, name: &str| {
        let suffix = pattern.strip_prefix('*');
        let label = suffix.and_then(|suffix| name.strip_suffix(suffix));
        label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
    };
    one.eq_ignore_ascii_case(other) || covers(one, other) || covers(other, one)
}

/// A certificate that a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The Secret that it goes to.
    pub namespace: String,
    pub secret: String,
    /// Sorted.
    pub dns_names: Vec<String>,
    pub duration: Duration,
    pub renew_before: Duration,
    pub policy: PolicyKey,
}

/// What was decided of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub certificates: Vec<Certificate>,
    /// What the policy asks for and does not get as it is written.
    pub notes: Vec<String>,
    /// Certificates that it does not get at all, and why.
    pub denied: Vec<String>,
    pub standing: Standing,
}

/// Decides about one policy among all of its kind in a workspace.
pub fn decide(policy: &Policy, all: &[Policy], gateways: &[GatewayView], rights: Rights<'_>) -> Decided {
    let refuse = |refusal| Decided {
        certificates: Vec::new(),
        notes: Vec::new(),
        denied: Vec::new(),
        standing: Standing::Refused(refusal),
    };
    let Some(gateway) = gateway_of(policy, gateways) else {
        return refuse(Refusal::TargetNotFound {
            name: policy.target.name.clone(),
        });
    };
    if let Some(by) = conflict(policy, all) {
        return refuse(Refusal::Conflicted { by });
    }
    let spec = &policy.spec;
    let length = |field: &str, otherwise: Duration| match spec[field].as_str() {
        None => Ok(otherwise),
        Some(text) => crate::limit::window(text).ok_or_else(|| format!("{field} {text:?} is not a duration")),
    };
    let (duration, renew_before) =
        match length("duration", DURATION).and_then(|d| Ok((d, length("renewBefore", d / 3)?))) {
            Ok((duration, renew_before)) if renew_before < duration => (duration, renew_before),
            Ok(_) => {
                let why = "renewBefore is not shorter than duration".to_owned();
                return refuse(Refusal::Invalid { why });
            }
            Err(why) => return refuse(Refusal::Invalid { why }),
        };
    let mut certificates: Vec<Certificate> = Vec::new();
    let mut denied = Vec::new();
    let section = policy.target.section.as_ref();
    for listener in &gateway.listeners {
        let Some(hostname) = listener.hostname.as_ref().filter(|name| !name.is_empty()) else {
            continue;
        };
        if section.is_some_and(|section| *section != listener.name) {
            continue;
        }
        if listener.certificates.is_empty() && listener.not_permitted.is_empty() {
            continue;
        }
        let refusal = (listener.not_served.clone())
            .or_else(|| rights.refusal(&policy.key.workspace, hostname))
            .map(|why| format!("listener {}: {why}", listener.name));
        if let Some(refusal) = refusal {
            denied.push(refusal);
            continue;
        }
        let not_permitted = listener.not_permitted.iter();
        denied.extend(not_permitted.map(|why| format!("listener {}: {why}", listener.name)));
        for (namespace, secret) in &listener.certificates {
            let same = certificates
                .iter_mut()
                .find(|one| (&one.namespace, &one.secret) == (namespace, secret));
            match same {
                Some(certificate) => {
                    certificate.dns_names.push(hostname.clone());
                    certificate.dns_names.sort();
                    certificate.dns_names.dedup();
                }
                None => certificates.push(Certificate {
                    namespace: namespace.clone(),
                    secret: secret.clone(),
                    dns_names: vec![hostname.clone()],
                    duration,
                    renew_before,
                    policy: policy.key.clone(),
                }),
            }
        }
    }
    let mut notes = Vec::new();
    if let Some(issuer) = spec["issuerRef"]["name"].as_str()
        && issuer != "fairway"
    {
        notes.push(format!(
            "issuerRef {issuer} is not asked: certificates come from the platform's own authority"
        ));
    }
    for field in ["commonName", "usages", "privateKey", "revisionHistoryLimit"] {
        if spec.get(field).is_some() {
            notes.push(format!("{field} is not supported"));
        }
    }
    Decided {
        certificates,
        notes,
        denied,
        standing: Standing::Attached {
            affects: Vec::new(),
            overridden_by: Vec::new(),
        },
    }
}

/// The Gateway that a policy targets.
pub(crate) fn gateway_of<'a>(policy: &Policy, gateways: &'a [GatewayView]) -> Option<&'a GatewayView> {
    let section = policy.target.section.as_ref();
    gateways.iter().find(|gateway| {
        policy.target.kind == TargetKind::Gateway
            && gateway.workspace == policy.key.workspace
            && gateway.namespace == policy.key.namespace
            && gateway.name == policy.target.name
            && section
                .is_none_or(|section| gateway.listeners.iter().any(|listener| listener.name == *section))
    })
}

/// An older policy with the same target. These kinds do not merge.
pub(crate) fn conflict(policy: &Policy, all: &[Policy]) -> Option<PolicyKey> {
    let age = |policy: &Policy| (policy.created.clone(), policy.key.clone());
    all.iter()
        .filter(|other| {
            !other.deleting
                && other.key != policy.key
                && other.key.namespace == policy.key.namespace
                && other.target == policy.target
                && age(other) < age(policy)
        })
        .min_by_key(|other| age(other))
        .map(|other| other.key.clone())
}

/// Conditions of a policy that leads to objects; `missing` are those that are not there yet, `denied` those that there will not
/// be.
pub fn conditions(
    policy: &Policy,
    standing: &Standing,
    (missing, denied): (&[String], &[String]),
    notes: &[String],
) -> Vec<Condition> {
    let kind = policy.key.kind;
    if let Standing::Refused(refusal) = standing {
        return vec![refused(kind, refusal)];
    }
    let (is_true, reason, mut message) = if !denied.is_empty() {
        let message = format!("{kind} has encountered some issues: {}", denied.join("; "));
        (false, "Unknown", message)
    } else if !missing.is_empty() {
        let message = format!(
            "{kind} waiting for the following components to sync: [{}]",
            missing.join(" ")
        );
        (false, "Unknown", message)
    } else {
        (true, "Enforced", format!("{kind} has been successfully enforced"))
    };
    if !notes.is_empty() {
        message = format!("{message}, but: {}", notes.join("; "));
    }
    let enforced = Condition {
        r#type: "Enforced",
        is_true,
        reason,
        message,
    };
    vec![accepted(kind), enforced]
}

#[cfg(test)]
mod tests;
