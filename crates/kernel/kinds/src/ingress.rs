//! Ingress.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::networking::object_reference;
use crate::read::{filled, has, int, list, part, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{ip, meta, read, validation};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const BAD_SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDINGS: [&str; 2] = ["/..", "/."];
const NO_IP: &str = "must be a DNS name, not an IP address";

pub(crate) struct Ingress;

static PROFILE: Profile = Profile::WORKLOAD;

impl Strategy for Ingress {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        crate::strategy::prepare_new(&PROFILE, obj);
        read::set(obj, "status", json!({"loadBalancer": {}}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        if !filled(spec, "rules") && !has(spec, "defaultBackend") {
            let shown = part(spec, "rules").clone();
            errs.invalid(&at, shown, "either `defaultBackend` or `rules` must be specified");
        }
        if has(spec, "defaultBackend") {
            validate_backend(errs, &at.field("defaultBackend"), part(spec, "defaultBackend"));
        }
        let rules_at = at.field("rules");
        for (i, rule) in list(spec, "rules").iter().enumerate() {
            validate_rule(errs, &rules_at.index(i), rule);
        }
        let tls_at = at.field("tls");
        for (i, tls) in list(spec, "tls").iter().enumerate() {
            let at = tls_at.index(i);
            let hosts_at = at.field("hosts");
            for (i, host) in texts(tls, "hosts").enumerate() {
                errs.all_invalid(&hosts_at.index(i), host, host_faults(host));
            }
            let secret = text(tls, "secretName");
            if !secret.is_empty() {
                errs.all_invalid(
                    &at.field("secretName"),
                    secret,
                    validation::is_dns1123_subdomain(secret),
                );
            }
        }
        if has(spec, "ingressClassName") {
            let class = text(spec, "ingressClassName");
            let class_at = at.field("ingressClassName");
            errs.all_invalid(&class_at, class, validation::is_dns1123_subdomain(class));
            if let Some(annotation) = meta::annotation(obj, CLASS_ANNOTATION)
                && old.is_none()
                && annotation != class
            {
                errs.invalid(
                    &At::new("annotations").field(CLASS_ANNOTATION),
                    annotation,
                    "must match `ingressClassName` when both are specified",
                );
            }
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let at = At::new("status.loadBalancer.ingress");
        let entries = |obj| list(part(part(obj, "status"), "loadBalancer"), "ingress");
        for (i, entry) in entries(obj).iter().enumerate() {
            let at = at.index(i);
            let address = text(entry, "ip");
            if !address.is_empty() {
                let stored = entries(old).iter().map(|e| text(e, "ip"));
                ip::validate_legacy(errs, &at.field("ip"), address, stored);
            }
            let host = text(entry, "hostname");
            if !host.is_empty() {
                errs.all_invalid(
                    &at.field("hostname"),
                    host,
                    validation::is_dns1123_subdomain(host),
                );
                if ip::parse_sloppy(host).is_some() {
                    errs.invalid(&at.field("hostname"), host, NO_IP);
                }
            }
        }
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_none() && ctx.subresource.is_none() && meta::annotation(obj, CLASS_ANNOTATION).is_some() {
            vec![format!(
                "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
            )]
        } else {
            Vec::new()
        }
    }
}

fn host_faults(host: &str) -> Vec<String> {
    if host.contains('*') {
        validation::is_wildcard_dns1123_subdomain(host)
    } else {
        validation::is_dns1123_subdomain(host)
    }
}

fn validate_rule(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    let host = text(rule, "host");
    if !host.is_empty() {
        if ip::parse_sloppy(host).is_some() {
            errs.invalid(&at.field("host"), host, NO_IP);
        }
        errs.all_invalid(&at.field("host"), host, host_faults(host));
    }
    let Some(http) = rule.get("http") else { return };
    let at = at.field("http");
    let at = at.field("paths");
    if !filled(http, "paths") {
        errs.required(&at, "");
    }
    for (i, path) in list(http, "paths").iter().enumerate() {
        validate_path(errs, &at.index(i), path);
    }
}

fn validate_path(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    let path = text(rule, "path");
    let path_at = at.field("path");
    let relative = !path.starts_with('/');
    match text(rule, "pathType") {
        "" => {
            errs.required(&at.field("pathType"), "pathType must be specified");
            return;
        }
        "Exact" | "Prefix" => {
            if relative {
                errs.invalid(&path_at, path, "must be an absolute path");
            }
            for bad in BAD_SEQUENCES.iter().filter(|bad| path.contains(**bad)) {
                errs.invalid(&path_at, path, format!("must not contain '{bad}'"));
            }
            for bad in BAD_ENDINGS.iter().filter(|bad| path.ends_with(**bad)) {
                errs.invalid(&path_at, path, format!("cannot end with '{bad}'"));
            }
        }
        "ImplementationSpecific" => {
            if relative && !path.is_empty() {
                errs.invalid(&path_at, path, "must be an absolute path");
            }
        }
        other => errs.not_supported(
            &at.field("pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
        ),
    }
    validate_backend(errs, &at.field("backend"), part(rule, "backend"));
}

fn validate_backend(errs: &mut Errors, at: &At<'_>, backend: &Value) {
    match (has(backend, "resource"), has(backend, "service")) {
        (true, true) => errs.invalid(at, "", "cannot set both resource and service backends"),
        (true, false) => object_reference(errs, &at.field("resource"), part(backend, "resource")),
        (false, false) => errs.invalid(at, "", "resource or service backend is required"),
        (false, true) => {
            let service = part(backend, "service");
            let service_at = at.field("service");
            match text(service, "name") {
                "" => errs.required(&service_at.field("name"), ""),
                name => errs.all_invalid(
                    &service_at.field("name"),
                    name,
                    validation::is_dns1123_label(name),
                ),
            }
            let port = part(service, "port");
            let port_at = service_at.field("port");
            match (text(port, "name"), int(port, "number").unwrap_or(0)) {
                ("", 0) => errs.required(at, "port name or number is required"),
                ("", number) => {
                    for fault in validation::is_valid_port_num(number) {
                        errs.invalid(&port_at.field("number"), number, fault);
                    }
                }
                (name, 0) => {
                    errs.all_invalid(&port_at.field("name"), name, validation::is_valid_port_name(name));
                }
                _ => errs.invalid(at, "", "cannot set both port name & port number"),
            }
        }
    }
}
