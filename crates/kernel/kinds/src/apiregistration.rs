//! APIService: named by version and group, served here or by a Service.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{self, filled, flag, int, list, part, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::validation;

pub(crate) struct ApiService;

static PROFILE: Profile = Profile {
    name: NameRule::Own,
    status: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for ApiService {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        if let Some(service) = obj.get_mut("spec").and_then(|s| s.get_mut("service")) {
            read::set_default(service, "port", 443);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let (group, version) = (text(spec, "group"), text(spec, "version"));
        let at = At::new("spec");
        let name = format!("{version}.{group}");
        if meta::name(obj) != name {
            errs.invalid(
                &At::new("metadata.name"),
                meta::name(obj),
                format!("must be `spec.version+\".\"+spec.group`: {name:?}"),
            );
        }
        if group.is_empty() {
            if version != "v1" {
                let why = "only v1 may have an empty group and it better be legacy kube";
                errs.required(&at.field("group"), why);
            }
        } else {
            errs.all_invalid(&at.field("group"), group, validation::is_dns1123_subdomain(group));
        }
        errs.all_invalid(
            &at.field("version"),
            version,
            validation::is_dns1035_label(version),
        );
        for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
            let priority = int(spec, key).unwrap_or(0);
            if !(1..=most).contains(&priority) {
                let detail = format!("must be positive and less than {most}");
                errs.invalid(&at.field(key), priority, detail);
            }
        }
        let (bundle, insecure) = (filled(spec, "caBundle"), flag(spec, "insecureSkipTLSVerify"));
        let insecure_at = at.field("insecureSkipTLSVerify");
        let Some(service) = spec.get("service") else {
            if bundle {
                let shown = format!("{} bytes", text(spec, "caBundle").len() / 4 * 3);
                errs.invalid(
                    &at.field("caBundle"),
                    shown,
                    "local APIServices may not have a caBundle",
                );
            }
            if insecure {
                errs.invalid(
                    &insecure_at,
                    true,
                    "local APIServices may not have insecureSkipTLSVerify",
                );
            }
            return;
        };
        let service_at = at.field("service");
        errs.require_text(&service_at, service, "namespace");
        errs.require_text(&service_at, service, "name");
        let port = int(service, "port").unwrap_or(0);
        for fault in validation::is_valid_port_num(port) {
            errs.invalid(
                &service_at.field("port"),
                port,
                format!("port is not valid: {fault}"),
            );
        }
        if insecure && bundle {
            errs.invalid(&insecure_at, true, "may not be true if caBundle is present");
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let at = At::new("status.conditions");
        for (i, condition) in list(part(obj, "status"), "conditions").iter().enumerate() {
            let at = at.index(i);
            errs.one_of(
                &at.field("status"),
                text(condition, "status"),
                &["True", "False", "Unknown"],
            );
        }
    }
}
