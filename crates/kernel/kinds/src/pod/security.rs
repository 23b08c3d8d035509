//! Security contexts of pods and containers.

use std::collections::HashSet;

use serde_json::Value;

use super::mounts::local_descending_path;
use crate::at::{At, Errors};
use crate::read::{self, flag, has, int, list, part, text, texts};
use crate::validation;

const SYSCTL_MAX: usize = 253;

fn ids(errs: &mut Errors, at: &At<'_>, context: &Value, keys: &[&str]) {
    for key in keys {
        if let Some(id) = int(context, key) {
            for fault in validation::is_valid_id(id) {
                errs.invalid(&at.field(key), id, fault);
            }
        }
    }
}

fn windows_options(errs: &mut Errors, at: &At<'_>, context: &Value) {
    let options = part(context, "windowsOptions");
    let at = at.field("windowsOptions");
    let name = text(options, "gmsaCredentialSpecName");
    if !name.is_empty() {
        errs.all_invalid(
            &at.field("gmsaCredentialSpecName"),
            name,
            validation::is_dns1123_subdomain(name),
        );
    }
}

fn profile(errs: &mut Errors, at: &At<'_>, context: &Value, key: &str, title: &str) {
    let Some(profile) = context.get(key) else { return };
    let at = at.field(key);
    let local_at = at.field("localhostProfile");
    match text(profile, "type") {
        "" => errs.required(&at.field("type"), format!("type is required when {key} is set")),
        "Localhost" => match profile.get("localhostProfile").and_then(Value::as_str) {
            None => errs.required(&local_at, format!("must be set when {title} type is Localhost")),
            Some(path) if title == "seccomp" => local_descending_path(errs, &local_at, path),
            Some("") => errs.required(&local_at, format!("must be set when {title} type is Localhost")),
            Some(name) if name.trim() != name => {
                errs.invalid(&local_at, name, "must not be padded with whitespace");
            }
            Some(_) => {}
        },
        "RuntimeDefault" | "Unconfined" => {
            if has(profile, "localhostProfile") {
                let shown = text(profile, "localhostProfile");
                errs.invalid(
                    &local_at,
                    shown,
                    format!("can only be set when {title} type is Localhost"),
                );
            }
        }
        other => {
            errs.not_supported(
                &at.field("type"),
                other,
                &["Localhost", "RuntimeDefault", "Unconfined"],
            );
            if title == "seccomp" && has(profile, "localhostProfile") {
                let shown = read::internal(profile);
                errs.invalid(&local_at, shown, "can only be set when seccomp type is Localhost");
            }
        }
    }
}

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A pod with users of its own shares no other namespace of its host.
pub(super) fn host_users(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    if !has(spec, "hostUsers") || flag(spec, "hostUsers") {
        return;
    }
    // The capital letters are upstream's.
    for (key, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, key) {
            errs.forbidden(&at.field(shown), "when `hostUsers` is false");
        }
    }
    for key in CONTAINERS {
        let at = at.field(key);
        for (i, container) in list(spec, key).iter().enumerate() {
            if read::filled(container, "volumeDevices") {
                let at = at.index(i);
                errs.forbidden(&at.field("volumeDevices"), "when `hostUsers` is false");
            }
        }
    }
}

/// What only Linux knows, in a pod that says it is for Windows.
pub(super) fn windows(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    const DETAIL: &str = "cannot be set for a windows pod";
    let mut forbid = |at: &At<'_>, from: &Value, keys: &[&str]| {
        for key in keys.iter().filter(|key| has(from, key)) {
            errs.forbidden(&at.field(key), DETAIL);
        }
    };
    forbid(at, spec, &["hostUsers", "shareProcessNamespace"]);
    for key in ["hostPID", "hostIPC"].iter().filter(|key| flag(spec, key)) {
        forbid(at, spec, &[key]);
    }
    let context = part(spec, "securityContext");
    let context_at = at.field("securityContext");
    forbid(
        &context_at,
        context,
        &[
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "fsGroup",
            "fsGroupChangePolicy",
            "runAsUser",
            "runAsGroup",
            "supplementalGroups",
            "supplementalGroupsPolicy",
            "seLinuxChangePolicy",
        ],
    );
    if read::filled(context, "sysctls") {
        forbid(&context_at, context, &["sysctls"]);
    }
    for key in CONTAINERS {
        let at = at.field(key);
        for (i, container) in list(spec, key).iter().enumerate() {
            let at = at.index(i);
            forbid(
                &at.field("securityContext"),
                part(container, "securityContext"),
                &[
                    "appArmorProfile",
                    "seLinuxOptions",
                    "seccompProfile",
                    "capabilities",
                    "readOnlyRootFilesystem",
                    "privileged",
                    "allowPrivilegeEscalation",
                    "procMount",
                    "runAsUser",
                    "runAsGroup",
                ],
            );
        }
    }
}

/// The security context of a container.
pub(super) fn container(errs: &mut Errors, at: &At<'_>, context: &Value, host_users: bool) {
    if context.is_null() {
        return;
    }
    ids(errs, at, context, &["runAsUser", "runAsGroup"]);
    if has(context, "procMount") {
        let mount = text(context, "procMount");
        errs.one_of(&at.field("procMount"), mount, &["Default", "Unmasked"]);
        if host_users && mount == "Unmasked" {
            errs.invalid(
                &at.field("procMount"),
                mount,
                "`hostUsers` must be false to use `Unmasked`",
            );
        }
    }
    profile(errs, at, context, "seccompProfile", "seccomp");
    if has(context, "allowPrivilegeEscalation") && !flag(context, "allowPrivilegeEscalation") {
        if flag(context, "privileged") {
            errs.invalid(
                at,
                go_security_context(context),
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            );
        }
        if texts(part(context, "capabilities"), "add").any(|c| c == "CAP_SYS_ADMIN") {
            errs.invalid(
                at,
                go_security_context(context),
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            );
        }
    }
    windows_options(errs, at, context);
    profile(errs, at, context, "appArmorProfile", "AppArmor");
}

/// The security context of a pod.
pub(super) fn pod(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let context = part(spec, "securityContext");
    let at = at.field("securityContext");
    ids(errs, &at, context, &["fsGroup", "runAsUser", "runAsGroup"]);
    let groups = at.field("supplementalGroups");
    for (i, group) in list(context, "supplementalGroups").iter().enumerate() {
        let id = group.as_i64().unwrap_or(-1);
        for fault in validation::is_valid_id(id) {
            errs.invalid(&groups.index(i), id, fault);
        }
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        errs.invalid(
            &at.field("shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
    sysctls(errs, &at.field("sysctls"), context);
    for (key, supported) in [
        ("fsGroupChangePolicy", ["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", ["Merge", "Strict"]),
    ] {
        if has(context, key) {
            errs.one_of(&at.field(key), text(context, key), &supported);
        }
    }
    if has(context, "seLinuxChangePolicy") {
        let policy = text(context, "seLinuxChangePolicy");
        errs.one_of(&at.field("seLinuxChangePolicy"), policy, &["Recursive"]);
    }
    profile(errs, &at, context, "seccompProfile", "seccomp");
    windows_options(errs, &at, context);
    profile(errs, &at, context, "appArmorProfile", "AppArmor");
}

fn sysctls(errs: &mut Errors, at: &At<'_>, context: &Value) {
    let mut names = HashSet::new();
    for (i, sysctl) in list(context, "sysctls").iter().enumerate() {
        let at = at.index(i);
        let at = at.field("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            errs.required(&at, "");
        } else if name.len() > SYSCTL_MAX || !name.split(['.', '/']).all(is_sysctl_segment) {
            errs.invalid(
                &at,
                name,
                format!(
                    "must have at most {SYSCTL_MAX} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
                ),
            );
        } else if !names.insert(name) {
            errs.duplicate(&at, name);
        }
    }
}

fn is_sysctl_segment(segment: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match segment.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => {
            edge(*first) && edge(*last) && middle.iter().all(|&b| edge(b) || b == b'-' || b == b'_')
        }
    }
}

/// A container's security context as upstream prints it.
fn go_security_context(context: &Value) -> Value {
    use read::Unset::Null;
    let mut shown = read::go_struct(
        context,
        &[
            ("Capabilities", "capabilities", Null),
            ("Privileged", "privileged", Null),
            ("SELinuxOptions", "seLinuxOptions", Null),
            ("WindowsOptions", "windowsOptions", Null),
            ("RunAsUser", "runAsUser", Null),
            ("RunAsGroup", "runAsGroup", Null),
            ("RunAsNonRoot", "runAsNonRoot", Null),
            ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Null),
            ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Null),
            ("ProcMount", "procMount", Null),
            ("SeccompProfile", "seccompProfile", Null),
            ("AppArmorProfile", "appArmorProfile", Null),
        ],
    );
    if has(context, "capabilities") {
        shown["Capabilities"] = read::go_struct(
            part(context, "capabilities"),
            &[("Add", "add", Null), ("Drop", "drop", Null)],
        );
    }
    for key in ["seccompProfile", "appArmorProfile"] {
        if has(context, key) {
            let name = if key == "seccompProfile" {
                "SeccompProfile"
            } else {
                "AppArmorProfile"
            };
            let fields = [
                ("Type", "type", read::Unset::Text),
                ("LocalhostProfile", "localhostProfile", Null),
            ];
            shown[name] = read::go_struct(part(context, key), &fields);
        }
    }
    shown
}
