//! What API servers keep about themselves (StorageVersion, StorageVersionMigration), and kinds that are questions
//! rather than objects: reviews, bindings, component statuses. Questions are answered, not stored.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{has, list, part, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{conditions, validation};

pub(crate) struct StorageVersion;

static STORAGE_VERSION: Profile = Profile {
    name: NameRule::Own,
    status: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for StorageVersion {
    fn profile(&self) -> &'static Profile {
        &STORAGE_VERSION
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        let name = meta::name(obj);
        let at = At::new("metadata.name");
        match name.rsplit_once('.') {
            None => errs.invalid(&at, name, "name must be in the form of <group>.<resource>"),
            Some((group, resource)) => {
                for fault in validation::is_dns1123_subdomain(group) {
                    errs.invalid(&at, name, format!("the group segment {fault}"));
                }
                for fault in validation::is_dns1035_label(resource) {
                    errs.invalid(&at, name, format!("the resource segment {fault}"));
                }
            }
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let at = At::new("status.storageVersions");
        let versions = list(part(obj, "status"), "storageVersions");
        for (i, version) in versions.iter().enumerate() {
            let at = at.index(i);
            let id = text(version, "apiServerID");
            if versions[..i].iter().any(|v| text(v, "apiServerID") == id) {
                errs.duplicate(&at.field("apiServerID"), id);
            }
            errs.all_invalid(&at.field("apiServerID"), id, validation::is_dns1123_subdomain(id));
            let encoding = text(version, "encodingVersion");
            let decodable = list(version, "decodableVersions");
            if !decodable.iter().any(|d| d.as_str() == Some(encoding)) {
                errs.invalid(
                    &at.field("decodableVersions"),
                    Value::from(decodable),
                    format!("decodableVersions must include encodingVersion {encoding}"),
                );
            }
        }
    }
}

pub(crate) struct StorageVersionMigration;

static MIGRATION: Profile = Profile {
    status: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for StorageVersionMigration {
    fn profile(&self) -> &'static Profile {
        &MIGRATION
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let resource = part(part(obj, "spec"), "resource");
        let at = At::new("spec.resource");
        let name = text(resource, "resource");
        let faults = validation::is_dns1035_label(name);
        if name.is_empty() {
            errs.required(&at.field("resource"), "resource is required to be set");
        } else if !faults.is_empty() {
            errs.invalid(&at.field("resource"), name, faults.join(","));
        }
        let group = text(resource, "group");
        let faults = validation::is_dns1123_subdomain(group);
        if !group.is_empty() && !faults.is_empty() {
            errs.invalid(&at.field("group"), group, faults.join(","));
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("spec"), obj.get("spec"), old.get("spec"));
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "status"), part(old, "status"));
        let at = At::new("status");
        conditions::validate(errs, &at, new);
        let version = text(old, "resourceVersion");
        if !version.is_empty() && version != text(new, "resourceVersion") {
            let shown = text(new, "resourceVersion");
            errs.invalid(&at.field("resourceVersion"), shown, "field is immutable");
        }
        let holds = |status: &Value, kind: &str| {
            list(status, "conditions")
                .iter()
                .any(|c| text(c, "type") == kind && text(c, "status") == "True")
        };
        let at = at.field("conditions");
        let shown = || part(new, "conditions").clone();
        if holds(new, "Succeeded") && holds(new, "Failed") {
            errs.invalid(
                &at,
                shown(),
                "Both success and failed conditions cannot be true at the same time",
            );
        }
        for (kind, title) in [("Succeeded", "Success"), ("Failed", "Failed")] {
            if holds(old, kind) && !holds(new, kind) {
                errs.invalid(
                    &at,
                    shown(),
                    format!("{title} condition cannot be set to false once it is true"),
                );
            }
        }
    }
}

/// TokenReview, SubjectAccessReview and their relatives.
pub(crate) struct Review {
    profile: &'static Profile,
    /// Asks about a resource or a path.
    attributes: bool,
}

static QUESTION: Profile = Profile {
    name: NameRule::Own,
    ..Profile::CLUSTER
};
static LOCAL_QUESTION: Profile = Profile {
    name: NameRule::Own,
    ..Profile::NAMESPACED
};

pub(crate) static PLAIN_REVIEW: Review = Review {
    profile: &QUESTION,
    attributes: false,
};
pub(crate) static ACCESS_REVIEW: Review = Review {
    profile: &QUESTION,
    attributes: true,
};
pub(crate) static LOCAL_ACCESS_REVIEW: Review = Review {
    profile: &LOCAL_QUESTION,
    attributes: true,
};

impl Strategy for Review {
    fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Reviews need no name, so only their content is checked.
    fn validate_create(
        &self,
        _ctx: &WriteContext<'_>,
        obj: &Value,
    ) -> Vec<fairway_kernel_schema::field::FieldError> {
        let mut errs = Errors::new();
        if !self.attributes {
            return errs.into_vec();
        }
        let spec = part(obj, "spec");
        let at = At::new("spec");
        match (
            has(spec, "resourceAttributes"),
            has(spec, "nonResourceAttributes"),
        ) {
            (true, true) => errs.invalid_unshown(
                &at.field("nonResourceAttributes"),
                "cannot be specified in combination with resourceAttributes",
            ),
            (false, false) => errs.invalid_unshown(
                &at.field("resourceAttributes"),
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ),
            _ => {}
        }
        errs.into_vec()
    }
}

/// A Binding names the node for a pod.
pub(crate) struct Binding;

impl Strategy for Binding {
    fn profile(&self) -> &'static Profile {
        &LOCAL_QUESTION
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let target = part(obj, "target");
        let at = At::new("target");
        let kind = text(target, "kind");
        if !kind.is_empty() && kind != "Node" {
            errs.not_supported(&at.field("kind"), kind, &["Node", "<empty>"]);
        }
        errs.require_text(&at, target, "name");
    }
}

/// Kinds that have nothing special beyond their profile.
pub(crate) struct Plain {
    profile: &'static Profile,
}

static COMPONENT_STATUS: Profile = Profile::CLUSTER;
static DEFINITION: Profile = Profile {
    status: true,
    generation: &["spec"],
    unconditional_update: false,
    ..Profile::CLUSTER
};

pub(crate) static COMPONENT_STATUSES: Plain = Plain {
    profile: &COMPONENT_STATUS,
};
/// Their own crate checks custom resource definitions; here they have the life of any kind with a status.
pub(crate) static DEFINITIONS: Plain = Plain { profile: &DEFINITION };

impl Strategy for Plain {
    fn profile(&self) -> &'static Profile {
        self.profile
    }
}
