//! What is wrong with a definition that a client sent.
//!
//! Upstream keeps fields that all versions share at the level of `spec` while it validates, so the paths of errors in
//! them begin there: `spec.validation.openAPIV3Schema...` for a schema that is the same in all versions.

use serde_json::Value;

use super::conditions::{self, Approval, Condition};
use super::version_check::{self, Hoisted};
use super::{APPROVAL_ANNOTATION, flag, list, names_check, present, text, webhook_check};
use crate::field::{FieldError, Path};
use crate::structural::{validate_object_meta, validate_object_meta_update};
use fairway_kernel_scalar::names;

pub(super) const WEBHOOK_WARNING: &str = "conversion webhooks are not supported yet: objects are converted as with \
                                          strategy None, by changing apiVersion only";

/// What changes with the definition that is there already.
#[derive(Default)]
struct Leniency<'a> {
    old: Option<&'a Value>,
}

impl Leniency<'_> {
    /// Whether the schema of a version is the one that was accepted before.
    fn knows_schema(&self, version: &Value) -> bool {
        self.old.is_some_and(|old| {
            list(old, "versions").iter().any(|known| {
                text(known, "name") == text(version, "name") && known.get("schema") == version.get("schema")
            })
        })
    }
}

/// A definition about to be created, with defaults filled in.
pub fn validate(crd: &Value) -> Vec<FieldError> {
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let required = format!(
        "{}.{}",
        spec.get("names").map_or("", |n| text(n, "plural")),
        text(spec, "group")
    );
    let name_rule = |name: &str, prefix: bool| {
        let masked = if prefix {
            name.strip_suffix('-').map(|n| format!("{n}a"))
        } else {
            None
        };
        let mut wrong = names::is_dns1123_subdomain(masked.as_deref().unwrap_or(name));
        if name != required {
            wrong.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        wrong
    };
    let metadata = crd.get("metadata").unwrap_or(&Value::Null);
    let mut errors = validate_object_meta(metadata, false, &name_rule, &Path::new("metadata"));
    validate_spec(spec, &Leniency::default(), &mut errors);
    validate_rest(crd, None, &mut errors);
    errors
}

/// A definition about to be updated, with defaults filled in.
pub fn validate_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    let null = Value::Null;
    let metadata = crd.get("metadata").unwrap_or(&null);
    let mut errors = validate_object_meta_update(
        metadata,
        old.get("metadata").unwrap_or(&null),
        &Path::new("metadata"),
    );
    let spec = crd.get("spec").unwrap_or(&null);
    let old_spec = old.get("spec").unwrap_or(&null);
    validate_spec(spec, &Leniency { old: Some(old_spec) }, &mut errors);
    let mut immutable = |pointer: &str| {
        let (new, old) = (spec.pointer(pointer), old_spec.pointer(pointer));
        if new != old {
            let path = Path::new(&format!("spec{}", pointer.replace('/', ".")));
            errors.push(FieldError::invalid(
                &path,
                new.cloned().unwrap_or("".into()),
                "field is immutable",
            ));
        }
    };
    if Condition::holds(old, "Established") {
        immutable("/scope");
        immutable("/names/kind");
    }
    immutable("/group");
    immutable("/names/plural");
    validate_rest(crd, Some(old), &mut errors);
    errors
}

/// A definition whose status is about to be updated.
pub fn validate_status_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    let null = Value::Null;
    let metadata = crd.get("metadata").unwrap_or(&null);
    let mut errors = validate_object_meta_update(
        metadata,
        old.get("metadata").unwrap_or(&null),
        &Path::new("metadata"),
    );
    validate_status(crd, &mut errors);
    errors
}

/// What is not wrong but worth a warning.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let versions = |crd: &'_ Value| {
        crd.pointer("/spec/versions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let old_versions = old.map(versions).unwrap_or_default();
    let known = version_check::unrecognized_formats(&old_versions);
    let new_versions = versions(crd);
    let mut warnings: Vec<String> = version_check::unrecognized_formats(&new_versions)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {format:?}"))
        .collect();
    if crd
        .pointer("/spec/conversion/strategy")
        .is_some_and(|s| s == "Webhook")
    {
        warnings.push(WEBHOOK_WARNING.to_owned());
    }
    warnings
}

fn validate_status(crd: &Value, errors: &mut Vec<FieldError>) {
    let accepted = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    names_check::check(accepted, &Path::new("status.acceptedNames"), errors);
}

fn validate_rest(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    validate_status(crd, errors);
    stored_versions(crd, errors);
    api_approval(crd, old, errors);
    let preserves = |crd: &Value| crd.get("spec").is_some_and(|s| flag(s, "preserveUnknownFields"));
    if preserves(crd) && !old.is_some_and(preserves) {
        errors.push(FieldError::invalid(
            &Path::new("spec.preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::new("status.storedVersions");
    let stored = crd
        .get("status")
        .map_or(&[] as &[Value], |s| list(s, "storedVersions"));
    if stored.is_empty() {
        errors.push(FieldError::invalid(
            &path,
            Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    let versions = crd.get("spec").map_or(&[] as &[Value], |s| list(s, "versions"));
    for version in versions.iter().filter(|v| flag(v, "storage")) {
        let name = text(version, "name");
        if !stored.iter().any(|s| s == name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, Value::Array(stored.to_vec()), detail));
        }
    }
    for (i, stored) in stored.iter().enumerate() {
        let name = stored.as_str().unwrap_or("");
        if !versions.iter().any(|v| text(v, "name") == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(i), name, detail));
        }
    }
}

fn api_approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !conditions::is_protected_group(crd.get("spec").map_or("", |s| text(s, "group"))) {
        return;
    }
    let (state, reason) = conditions::approval(crd);
    // Somebody who changes something else is not asked for the approval.
    if old.is_some_and(|old| conditions::approval(old).0 == state) {
        return;
    }
    let path = Path::new("metadata.annotations").key(APPROVAL_ANNOTATION);
    match state {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(FieldError::required(&path, reason)),
        Approval::Invalid => {
            let annotation = crd
                .pointer("/metadata/annotations")
                .map_or("", |a| text(a, APPROVAL_ANNOTATION));
            errors.push(FieldError::invalid(&path, annotation, reason));
        }
    }
}

fn validate_spec(spec: &Value, leniency: &Leniency<'_>, errors: &mut Vec<FieldError>) {
    let path = Path::new("spec");
    let group = text(spec, "group");
    let wrong = names::is_dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&path.child("group"), ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(&path.child("group"), group, wrong.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&path.child("group"), group, detail));
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported_in_order(
            &path.child("scope"),
            other,
            ["Cluster", "Namespaced"],
        )),
    }
    let versions = list(spec, "versions");
    let versions_path = path.child("versions");
    for (i, version) in versions.iter().enumerate() {
        if version
            .get("schema")
            .and_then(|s| present(s, "openAPIV3Schema"))
            .is_none()
        {
            let at = versions_path.index(i).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&at, ""));
        }
    }
    let preserve = flag(spec, "preserveUnknownFields");
    if preserve
        && versions
            .iter()
            .filter_map(|v| v.get("schema"))
            .any(version_check::has_defaults)
    {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            true,
            detail,
        ));
    }
    let hoisted = Hoisted::new(versions);
    for (i, version) in versions.iter().enumerate() {
        validate_version(version, &hoisted, leniency, &versions_path.index(i), errors);
    }
    version_names(versions, &versions_path, errors);
    if let Some(first) = versions.first() {
        let wrong = names::is_dns1035_label(text(first, "name"));
        if !text(first, "name").is_empty() && !wrong.is_empty() {
            let at = path.child("version");
            errors.push(FieldError::invalid(&at, text(first, "name"), wrong.join(",")));
        }
    }
    let names = spec.get("names").unwrap_or(&Value::Null);
    names_check::required(names, &path.child("names"), errors);
    names_check::check(names, &path.child("names"), errors);
    validate_shared(versions, &hoisted, leniency, &path, errors);
    let conversion_path = path.child("conversion");
    if let Some(conversion) = present(spec, "conversion") {
        if preserve && text(conversion, "strategy") != "None" {
            let detail = "must be None if spec.preserveUnknownFields is true";
            let at = conversion_path.child("strategy");
            errors.push(FieldError::invalid(&at, text(conversion, "strategy"), detail));
        }
        let old_versions = leniency
            .old
            .and_then(|old| old.pointer("/conversion/webhook/conversionReviewVersions"))
            .and_then(Value::as_array)
            .map_or(&[] as &[Value], Vec::as_slice);
        let recognized = old_versions.is_empty()
            || old_versions
                .iter()
                .filter_map(Value::as_str)
                .any(webhook_check::is_recognized);
        webhook_check::check(conversion, recognized, &conversion_path, errors);
    }
}

fn version_names(versions: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    let shown = || Value::Array(versions.to_vec());
    let repeated = versions.iter().enumerate().any(|(i, v)| {
        versions[..i]
            .iter()
            .any(|before| text(before, "name") == text(v, "name"))
    });
    if repeated {
        errors.push(FieldError::invalid(
            path,
            shown(),
            "must contain unique version names",
        ));
    }
    if versions.iter().filter(|v| flag(v, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path, shown(), detail));
    }
}

/// The parts of a version that are its own.
fn validate_version(
    version: &Value,
    hoisted: &Hoisted<'_>,
    leniency: &Leniency<'_>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let wrong = names::is_dns1035_label(text(version, "name"));
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(
            &path.child("name"),
            text(version, "name"),
            wrong.join(","),
        ));
    }
    version_check::deprecation_warning(version, path, errors);
    if hoisted.validation.is_none()
        && let Some(schema) = present(version, "schema")
    {
        let status = match hoisted.subresources {
            Some(shared) => version_check::has_status(Some(shared)),
            None => version_check::has_status(version.get("subresources")),
        };
        let accepted = leniency.knows_schema(version);
        version_check::schema(schema, status, accepted, &path.child("schema"), errors);
    }
    if hoisted.subresources.is_none()
        && let Some(subresources) = present(version, "subresources")
    {
        version_check::subresources(subresources, &path.child("subresources"), errors);
    }
    if hoisted.columns.is_none() {
        let columns = list(version, "additionalPrinterColumns");
        version_check::columns(columns, &path.child("additionalPrinterColumns"), errors);
    }
    if hoisted.selectable_fields.is_none() {
        selectable(version, leniency, &path.child("selectableFields"), errors);
    }
}

/// The parts that all versions have in common.
fn validate_shared(
    versions: &[Value],
    hoisted: &Hoisted<'_>,
    leniency: &Leniency<'_>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(validation) = hoisted.validation {
        let status = versions
            .iter()
            .any(|v| version_check::has_status(v.get("subresources")));
        let accepted = versions.iter().all(|v| leniency.knows_schema(v));
        version_check::schema(validation, status, accepted, &path.child("validation"), errors);
    }
    if let Some(subresources) = hoisted.subresources {
        version_check::subresources(subresources, &path.child("subresources"), errors);
    }
    if let Some(columns) = hoisted.columns {
        version_check::columns(columns, &path.child("additionalPrinterColumns"), errors);
    }
    if hoisted.selectable_fields.is_some()
        && let Some(first) = versions.first()
    {
        selectable(first, leniency, &path.child("selectableFields"), errors);
    }
}

fn selectable(version: &Value, leniency: &Leniency<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let fields = version_check::selectable_list(version);
    if fields.is_empty() {
        return;
    }
    let Some(schema) = version.get("schema").and_then(|s| present(s, "openAPIV3Schema")) else {
        let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
        errors.push(FieldError::invalid(path, "", detail));
        return;
    };
    let unchanged = leniency.old.is_some_and(|old| {
        list(old, "versions")
            .iter()
            .any(|v| text(v, "name") == text(version, "name") && version_check::selectable_list(v) == fields)
    });
    version_check::selectable_fields(fields, schema, unchanged, path, errors);
}
