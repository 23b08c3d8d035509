//! CertificateSigningRequest, ClusterTrustBundle and PodCertificateRequest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_x509::{Certificate, CertificateError, Request};
use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{self, each_mut, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext, keep_all_but_status};
use crate::{conditions, validation};

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SIGNER_MAX: usize = 571;

/// The name of a signer: `domain/path`.
fn validate_signer_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    if name.is_empty() {
        errs.required(at, "");
        return;
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts[..] else {
        errs.invalid(
            at,
            name,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
        return;
    };
    if domain.len() > validation::SUBDOMAIN_MAX {
        errs.too_long(at, validation::SUBDOMAIN_MAX);
    }
    let labels: Vec<&str> = domain.split('.').collect();
    for (segment, checks) in [
        (domain, validation::is_dns1123_label as fn(&str) -> Vec<String>),
        (path, validation::is_dns1123_subdomain),
    ] {
        if let Some((label, faults)) = segment
            .split('.')
            .map(|l| (l, checks(l)))
            .find(|(_, faults)| !faults.is_empty())
        {
            for fault in faults {
                errs.invalid(at, segment, format!("validating label {label:?}: {fault}"));
            }
        }
    }
    if labels.len() < 2 {
        errs.invalid(
            at,
            domain,
            "should be a domain with at least two segments separated by dots",
        );
    }
    if name.len() > SIGNER_MAX {
        errs.too_long(at, SIGNER_MAX);
    }
}

/// What is wrong with a list of certificates in base64, if anything.
fn certificate_fault(encoded: &str) -> Option<String> {
    let text = STANDARD
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    Certificate::all_from_pem(&text).err().map(|e| e.to_string())
}

/// What is wrong with a request in base64: it must be one, and be signed by its own key.
fn request_fault(encoded: &str) -> Option<String> {
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    Request::from_pem(&pem)
        .and_then(|request| request.check_signature())
        .err()
        .map(|e| e.to_string())
}

/// Writes who asked into a request. Run it after `prepare_create`, which forgets what the client claimed.
pub fn set_requestor(csr: &mut Value, user: &Value) {
    let spec = part_mut(csr, "spec");
    for key in ["username", "uid", "groups", "extra"] {
        if read::filled(user, key) {
            read::copy(spec, user, key);
        }
    }
}

pub(crate) struct CertificateSigningRequest;

static CSR: Profile = Profile {
    name: NameRule::Own,
    status: true,
    ..Profile::CLUSTER
};

impl Strategy for CertificateSigningRequest {
    fn profile(&self) -> &'static Profile {
        &CSR
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        for key in ["username", "uid", "groups", "extra"] {
            read::unset(spec, key);
        }
        read::set(obj, "status", json!({}));
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        match ctx.subresource {
            Some("status") => {
                keep_all_but_status(obj, old);
                keep_verdict(obj, old);
                stamp_conditions(obj, old, ctx.now);
            }
            Some("approval") => {
                stamp_conditions(obj, old, ctx.now);
                let conditions = part(part(obj, "status"), "conditions").clone();
                read::copy(obj, old, "spec");
                read::copy(obj, old, "status");
                if conditions.is_null() {
                    read::unset(part_mut(obj, "status"), "conditions");
                } else {
                    read::set(part_mut(obj, "status"), "conditions", conditions);
                }
            }
            _ => {
                read::copy(obj, old, "spec");
                read::copy(obj, old, "status");
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_none() {
            validate_request(errs, part(obj, "spec"));
        }
    }

    fn validate_subresource(&self, ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate_conditions(errs, obj, old, ctx.subresource == Some("approval"));
        let at = At::new("status.certificate");
        let (new, old) = (
            text(part(obj, "status"), "certificate"),
            text(part(old, "status"), "certificate"),
        );
        if new != old {
            if ctx.subresource != Some("status") {
                errs.forbidden(&at, "updates may not set certificate content");
            } else if !old.is_empty() {
                errs.forbidden(&at, "updates may not modify existing certificate content");
            }
            if let Some(why) = certificate_fault(new).filter(|_| !new.is_empty()) {
                errs.invalid(&at, "<certificate data>", why);
            }
        }
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![(
            "spec.signerName",
            text(part(obj, "spec"), "signerName").to_owned(),
        )]
    }

    fn reset_fields(&self, subresource: Option<&str>) -> &'static [&'static str] {
        match subresource {
            None => &["spec", "status"],
            Some("approval") => &["spec", "status.certificate"],
            _ => &["spec", "status.conditions"],
        }
    }
}

fn validate_request(errs: &mut Errors, spec: &Value) {
    let at = At::new("spec");
    let request = text(spec, "request");
    if let Some(why) = request_fault(request) {
        // Bytes that are not there are null, as in Go.
        let shown = part(spec, "request").clone();
        errs.invalid(&at.field("request"), shown, why);
    }
    let usages: Vec<&str> = texts(spec, "usages").collect();
    let usages_at = at.field("usages");
    if usages.is_empty() {
        errs.required(&usages_at, "");
    }
    for (i, usage) in usages.iter().enumerate() {
        errs.one_of(&usages_at.index(i), usage, USAGES);
        if usages[..i].contains(usage) {
            errs.duplicate(&usages_at.index(i), *usage);
        }
    }
    let signer = text(spec, "signerName");
    let signer_at = at.field("signerName");
    if signer == LEGACY_SIGNER {
        errs.invalid(
            &signer_at,
            signer,
            "the legacy signerName is not allowed via this API version",
        );
    } else {
        validate_signer_name(errs, &signer_at, signer);
    }
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|s| *s < 600) {
        errs.invalid(
            &at.field("expirationSeconds"),
            seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        );
    }
}

fn of_kind<'a>(obj: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(part(obj, "status"), "conditions")
        .iter()
        .filter(|c| text(c, "type") == kind)
        .collect()
}

/// A verdict is not for the signer to change: as long as it is there, it stays as it was. Where one was added or removed,
/// validation says so.
fn keep_verdict(obj: &mut Value, old: &Value) {
    for kind in ["Approved", "Denied"] {
        let before: Vec<Value> = of_kind(old, kind).into_iter().cloned().collect();
        if of_kind(obj, kind).len() != before.len() {
            continue;
        }
        let Some(status) = obj.get_mut("status") else {
            return;
        };
        let mut kept = before.into_iter();
        for condition in each_mut(status, "conditions") {
            if text(condition, "type") == kind
                && let Some(before) = kept.next()
            {
                *condition = before;
            }
        }
    }
}

/// Conditions get the times that the client left out.
fn stamp_conditions(obj: &mut Value, old: &Value, now: &str) {
    let Some(status) = obj.get_mut("status") else {
        return;
    };
    for condition in each_mut(status, "conditions") {
        let before = of_kind(old, text(condition, "type")).into_iter().next();
        let same = before.filter(|b| text(b, "status") == text(condition, "status"));
        if !read::has(condition, "lastTransitionTime") {
            let time = same.map_or(now, |b| text(b, "lastTransitionTime")).to_owned();
            read::set(
                condition,
                "lastTransitionTime",
                if time.is_empty() { now.to_owned() } else { time },
            );
        }
        read::set_default(condition, "lastUpdateTime", now);
    }
}

fn validate_conditions(errs: &mut Errors, obj: &Value, old: &Value, approving: bool) {
    let at = At::new("status.conditions");
    let conditions = list(part(obj, "status"), "conditions");
    for (i, condition) in conditions.iter().enumerate() {
        let item = at.index(i);
        let kind = text(condition, "type");
        errs.require_text(&item, condition, "type");
        let statuses: &[&str] = if matches!(kind, "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        errs.required_one_of(&item.field("status"), text(condition, "status"), statuses);
        let earlier = |wanted: &str| conditions[..i].iter().any(|c| text(c, "type") == wanted);
        if (kind == "Denied" && earlier("Approved")) || (kind == "Approved" && earlier("Denied")) {
            errs.invalid(&at, kind, "Approved and Denied conditions are mutually exclusive");
        }
        if earlier(kind) {
            errs.duplicate(&item.field("type"), kind);
        }
    }
    for kind in ["Approved", "Denied", "Failed"] {
        let (new, before) = (of_kind(obj, kind), of_kind(old, kind));
        if new.len() < before.len() {
            errs.forbidden(
                &at,
                format!("updates may not remove a condition of type {kind:?}"),
            );
        } else if !approving && kind != "Failed" {
            if new.len() > before.len() {
                errs.forbidden(&at, format!("updates may not add a condition of type {kind:?}"));
            } else if new != before {
                errs.forbidden(
                    &at,
                    format!("updates may not modify a condition of type {kind:?}"),
                );
            }
        }
    }
}

pub(crate) struct ClusterTrustBundle;

static BUNDLE: Profile = Profile {
    name: NameRule::Own,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for ClusterTrustBundle {
    fn profile(&self) -> &'static Profile {
        &BUNDLE
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let (name, signer) = (meta::name(obj), text(spec, "signerName"));
        let name_at = At::new("metadata.name");
        if signer.is_empty() {
            if name.contains(':') {
                let detail = "ClusterTrustBundle without signer name must not have \":\" in its name";
                errs.invalid(&name_at, name, detail);
            } else {
                errs.all_invalid(&name_at, name, validation::is_dns1123_subdomain(name));
            }
        } else {
            validate_signer_name(errs, &At::new("spec.signerName"), signer);
            let prefix = format!("{}:", signer.replace('/', ":"));
            match name.strip_prefix(&prefix) {
                None => errs.invalid(
                    &name_at,
                    name,
                    format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"),
                ),
                Some(rest) => errs.all_invalid(&name_at, name, validation::is_dns1123_subdomain(rest)),
            }
        }
        let bundle = text(spec, "trustBundle");
        let at = At::new("spec.trustBundle");
        match Certificate::all_from_pem(bundle) {
            Err(CertificateError::None) => errs.invalid(
                &at,
                "<value omitted>",
                "at least one trust anchor must be provided",
            ),
            Err(why) => errs.invalid(&at, "<value omitted>", why.to_string()),
            Ok(_) => {}
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.signerName"),
            new.get("signerName"),
            old.get("signerName"),
        );
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![(
            "spec.signerName",
            text(part(obj, "spec"), "signerName").to_owned(),
        )]
    }
}

pub(crate) struct PodCertificateRequest;

static POD_REQUEST: Profile = Profile {
    status: true,
    unconditional_update: false,
    ..Profile::NAMESPACED
};

impl Strategy for PodCertificateRequest {
    fn profile(&self) -> &'static Profile {
        &POD_REQUEST
    }

    fn default(&self, obj: &mut Value) {
        read::set_default(part_mut(obj, "spec"), "maxExpirationSeconds", 86400);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        let spec = part(obj, "spec");
        let at = At::new("spec");
        validate_signer_name(errs, &at.field("signerName"), text(spec, "signerName"));
        for key in ["podName", "serviceAccountName", "nodeName"] {
            let name = text(spec, key);
            errs.all_invalid(&at.field(key), name, validation::is_dns1123_subdomain(name));
        }
        for key in ["podUID", "serviceAccountUID", "nodeUID"] {
            let uid = text(spec, key);
            if uid.is_empty() {
                errs.required(&at.field(key), "must not be empty");
            } else if uid.len() > 128 {
                errs.too_long(&at.field(key), 128);
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("spec"), obj.get("spec"), old.get("spec"));
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        conditions::validate(errs, &At::new("status"), part(obj, "status"));
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let spec = part(obj, "spec");
        vec![
            ("spec.signerName", text(spec, "signerName").to_owned()),
            ("spec.podName", text(spec, "podName").to_owned()),
            ("spec.nodeName", text(spec, "nodeName").to_owned()),
        ]
    }
}
