//! `metadata`: what every object, custom resources included, has prepared and checked on each write.

use serde_json::{Value, json};

use crate::at::{At, Errors, FIELD_IMMUTABLE, NOT_NEGATIVE};
use crate::read::{self, flag, int, list, text, texts};
use crate::{selector, validation};

/// Most bytes that all annotations of an object may have together.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;
/// Longest name that `generateName` leads to.
const GENERATED_MAX: usize = 63;
const FIELD_MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;

/// What the server gives to a new object.
#[derive(Clone, Copy, Debug)]
pub struct Birth<'a> {
    /// RFC 3339, whole seconds, `Z`.
    pub now: &'a str,
    /// A fresh UID.
    pub uid: &'a str,
    /// Random characters for `generateName`; upstream takes five.
    pub name_suffix: &'a str,
}

/// Namespace of the body and namespace of the URL differ; the text is the answer (400).
pub const NAMESPACE_MISMATCH: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// Rules for the names of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain: most kinds.
    Subdomain,
    /// DNS-1123 label: namespaces, services.
    Label,
    /// DNS-1035 label.
    Dns1035,
    /// Anything that fits into a URL path: RBAC.
    PathSegment,
    /// The kind checks its names itself.
    Own,
}

impl NameRule {
    /// What is wrong with a name; `prefix` if something will be appended to it.
    pub fn faults(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = if prefix && name.len() > 1 && name.ends_with('-') && self != Self::PathSegment {
            masked = format!("{}a", name.get(..name.len() - 2).unwrap_or_default());
            &masked
        } else {
            name
        };
        match self {
            Self::Subdomain => validation::is_dns1123_subdomain(name),
            Self::Label => validation::is_dns1123_label(name),
            Self::Dns1035 => validation::is_dns1035_label(name),
            Self::PathSegment => validation::is_path_segment_name(name),
            Self::Own if prefix => validation::is_path_segment_prefix(name),
            Self::Own => validation::is_path_segment_name(name),
        }
    }
}

/// The name of an object.
pub fn name(obj: &Value) -> &str {
    text(read::part(obj, "metadata"), "name")
}

/// The labels of an object.
pub fn labels(obj: &Value) -> &Value {
    read::part(read::part(obj, "metadata"), "labels")
}

/// An annotation of an object.
pub fn annotation<'a>(obj: &'a Value, key: &str) -> Option<&'a str> {
    obj.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// A name from `generateName`, short enough for a DNS label.
pub fn generate_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(GENERATED_MAX.saturating_sub(suffix.len()));
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Makes the namespace of the body that of the request (none for cluster-scoped kinds).
///
/// # Errors
/// [`NAMESPACE_MISMATCH`] if the body names another one.
pub fn match_namespace(obj: &mut Value, requested: Option<&str>) -> Result<(), &'static str> {
    let metadata = read::part_mut(obj, "metadata");
    match (text(metadata, "namespace"), requested.unwrap_or("")) {
        (own, wanted) if own == wanted => {}
        (_, "") => {
            read::unset(metadata, "namespace");
        }
        ("", wanted) => read::set(metadata, "namespace", wanted),
        _ => return Err(NAMESPACE_MISMATCH),
    }
    Ok(())
}

/// Gives a new object its system fields, and a name if it asked for one.
pub fn prepare_create(obj: &mut Value, birth: &Birth<'_>) {
    let metadata = read::part_mut(obj, "metadata");
    for key in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "resourceVersion",
    ] {
        read::unset(metadata, key);
    }
    if text(metadata, "name").is_empty() && !text(metadata, "generateName").is_empty() {
        let name = generate_name(text(metadata, "generateName"), birth.name_suffix);
        read::set(metadata, "name", name);
    }
    read::set(metadata, "uid", birth.uid);
    read::set(metadata, "creationTimestamp", birth.now);
    // A generation comes from the strategy of kinds that count one; nobody may bring his own. What cannot be one is
    // kept, to be refused.
    if read::int(metadata, "generation").unwrap_or(0) >= 0 {
        read::unset(metadata, "generation");
    }
}

/// Keeps what an update can never change. Run it before the strategy's own preparation.
pub fn prepare_update(obj: &mut Value, old: &Value) {
    let old = read::part(old, "metadata");
    let metadata = read::part_mut(obj, "metadata");
    read::unset(metadata, "selfLink");
    read::copy(metadata, old, "generation");
    if text(metadata, "uid").is_empty() {
        read::copy(metadata, old, "uid");
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if read::has(old, key) {
            read::copy(metadata, old, key);
        }
    }
    if !read::has(metadata, "deletionGracePeriodSeconds") {
        read::copy(metadata, old, "deletionGracePeriodSeconds");
    }
}

/// Checks the metadata of a new object.
pub fn validate_create(errs: &mut Errors, obj: &Value, namespaced: bool, rule: NameRule) {
    let at = At::new("metadata");
    let metadata = read::part(obj, "metadata");
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        errs.all_invalid(&at.field("generateName"), prefix, rule.faults(prefix, true));
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        errs.required(&at.field("name"), "name or generateName is required");
    } else {
        errs.all_invalid(&at.field("name"), name, rule.faults(name, false));
    }
    let namespace = text(metadata, "namespace");
    let namespace_at = at.field("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errs.required(&namespace_at, ""),
        (true, false) => errs.all_invalid(&namespace_at, namespace, validation::is_dns1123_label(namespace)),
        (false, false) => errs.forbidden(&namespace_at, "not allowed on this type"),
        (false, true) => {}
    }
    if let Some(generation) = int(metadata, "generation").filter(|g| *g < 0) {
        errs.invalid(&at.field("generation"), generation, NOT_NEGATIVE);
    }
    validate_parts(errs, &at, metadata);
    validate_finalizers(errs, &at, metadata);
}

/// Checks how metadata changed.
pub fn validate_update(errs: &mut Errors, obj: &Value, old: &Value) {
    let at = At::new("metadata");
    let (new, old) = (read::part(obj, "metadata"), read::part(old, "metadata"));
    if read::has(old, "deletionTimestamp") {
        let mut added: Vec<&str> = texts(new, "finalizers")
            .filter(|f| !texts(old, "finalizers").any(|o| o == *f))
            .collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|f| format!("{f:?}")).collect();
            errs.forbidden(
                &at.field("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            );
        }
    }
    if text(new, "resourceVersion").is_empty() {
        errs.invalid(
            &at.field("resourceVersion"),
            "",
            "must be specified for an update",
        );
    }
    let generation = int(new, "generation").unwrap_or(0);
    if generation < int(old, "generation").unwrap_or(0) {
        errs.invalid(&at.field("generation"), generation, "must not be decremented");
    }
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if !read::same(new.get(key), old.get(key)) {
            let shown = new.get(key).cloned().unwrap_or_else(|| match key {
                "name" | "namespace" | "uid" => json!(""),
                _ => Value::Null,
            });
            errs.invalid(&at.field(key), shown, FIELD_IMMUTABLE);
        }
    }
    validate_parts(errs, &at, new);
    validate_finalizers(errs, &at, new);
}

/// Labels, annotations, owners and managed fields: checked on every write.
fn validate_parts(errs: &mut Errors, at: &At<'_>, metadata: &Value) {
    selector::validate_labels(errs, &at.field("labels"), read::entries(metadata, "labels"));
    validate_annotations(errs, &at.field("annotations"), metadata);
    validate_owners(
        errs,
        &at.field("ownerReferences"),
        list(metadata, "ownerReferences"),
    );
    validate_managed_fields(errs, &at.field("managedFields"), list(metadata, "managedFields"));
}

/// Labels and annotations of an embedded template.
pub fn validate_template(errs: &mut Errors, at: &At<'_>, metadata: &Value) {
    selector::validate_labels(errs, &at.field("labels"), read::entries(metadata, "labels"));
    validate_annotations(errs, &at.field("annotations"), metadata);
}

/// Metadata of an embedded object that may have labels and annotations, and nothing else.
pub fn validate_bare_template(errs: &mut Errors, at: &At<'_>, metadata: &Value) {
    validate_template(errs, at, metadata);
    for (key, value) in metadata.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "labels" | "annotations") && !value.is_null() {
            let shown = if key == "uid" { "uID" } else { key };
            errs.forbidden(&at.field(shown), "cannot be set");
        }
    }
}

fn validate_annotations(errs: &mut Errors, at: &At<'_>, metadata: &Value) {
    let mut size = 0;
    for (key, value) in read::entries(metadata, "annotations") {
        let faults = validation::is_qualified_name(key);
        if !faults.is_empty() {
            // Upper case is allowed, so only what is still wrong in lower case counts.
            errs.all_invalid(at, key, validation::is_qualified_name(&key.to_lowercase()));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        errs.too_long(at, ANNOTATIONS_MAX);
    }
}

fn validate_owners(errs: &mut Errors, at: &At<'_>, owners: &[Value]) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let (api_version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
        let version = api_version
            .rsplit_once('/')
            .map_or(api_version, |(_, version)| version);
        if version.is_empty() || api_version.matches('/').count() > 1 {
            errs.invalid(&at.field("apiVersion"), api_version, "version must not be empty");
        }
        for key in ["kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                errs.invalid(&at.field(key), "", "must not be empty");
            }
        }
        if api_version == "v1" && kind == "Event" {
            errs.invalid(
                at,
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if flag(owner, "controller") {
            let this = format!("{kind}/{}", text(owner, "name"));
            if let Some(first) = &controller {
                errs.invalid(
                    at,
                    Value::from(owners),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                );
            } else {
                controller = Some(this);
            }
        }
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

fn validate_finalizers(errs: &mut Errors, at: &At<'_>, metadata: &Value) {
    let at = at.field("finalizers");
    let finalizers = list(metadata, "finalizers");
    for finalizer in texts(metadata, "finalizers") {
        errs.all_invalid(&at, finalizer, validation::is_qualified_name(finalizer));
    }
    let has = |wanted| finalizers.iter().any(|f| f.as_str() == Some(wanted));
    if has(ORPHAN) && has(FOREGROUND) {
        errs.invalid(
            &at,
            Value::from(finalizers),
            format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"),
        );
    }
}

/// Built-in kinds take only qualified finalizers and the few standard ones.
pub fn validate_builtin_finalizers(errs: &mut Errors, obj: &Value) {
    let at = At::new("metadata.finalizers");
    for (i, finalizer) in texts(read::part(obj, "metadata"), "finalizers").enumerate() {
        validate_builtin_finalizer(errs, &at.index(i), finalizer);
    }
}

/// One finalizer of a built-in kind.
pub(crate) fn validate_builtin_finalizer(errs: &mut Errors, at: &At<'_>, finalizer: &str) {
    if !finalizer.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&finalizer) {
        errs.invalid(
            at,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

/// Custom resources take any finalizer, but are warned about new ones without a domain.
pub fn finalizer_warnings(obj: &Value, old: Option<&Value>) -> Vec<String> {
    let had = |name: &str| {
        old.is_some_and(|old| texts(read::part(old, "metadata"), "finalizers").any(|f| f == name))
    };
    texts(read::part(obj, "metadata"), "finalizers")
        .filter(|f| !f.contains('/') && ![ORPHAN, FOREGROUND].contains(f) && !had(f))
        .map(|f| {
            format!(
                "metadata.finalizers: {f:?}: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

fn validate_managed_fields(errs: &mut Errors, at: &At<'_>, entries: &[Value]) {
    for (i, entry) in entries.iter().enumerate() {
        let at = at.index(i);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            errs.invalid(&at.field("operation"), operation, "must be `Apply` or `Update`");
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errs.invalid(&at.field("fieldsType"), fields_type, "must be `FieldsV1`");
        }
        validate_field_manager(errs, &at.field("manager"), text(entry, "manager"));
        if text(entry, "subresource").len() > SUBRESOURCE_MAX {
            errs.too_long(&at.field("subresource"), SUBRESOURCE_MAX);
        }
    }
}

/// The name of a field manager, in managed fields and in requests.
pub fn validate_field_manager(errs: &mut Errors, at: &At<'_>, manager: &str) {
    if manager.len() > FIELD_MANAGER_MAX {
        errs.too_long(at, FIELD_MANAGER_MAX);
    }
    for (position, c) in manager.char_indices() {
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            errs.invalid(
                at,
                manager,
                format!(
                    "invalid character U+{:04X} (at position {position})",
                    u32::from(c)
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests;
