//! The life of an object on write: one [`Strategy`] per kind, with the behaviour that most kinds share as default.
//!
//! The API server calls, for a create: `meta::match_namespace`, `default`, `meta::prepare_create`, `prepare_create`,
//! `validate_create`, `warnings`; for an update or patch: `default`, `meta::match_namespace`, `meta::prepare_update`,
//! `prepare_update`, `validate_update`, `warnings`. Services take `service::plan_allocation` before preparation.

use fairway_kernel_schema::field::FieldError;
use serde_json::{Map, Value};

use crate::at::Errors;
use crate::meta::{self, NameRule};
use crate::read;

/// What a write is about, beyond the object.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext<'a> {
    /// RFC 3339, whole seconds, `Z`.
    pub now: &'a str,
    /// `status`, `scale`, `finalize`, ...; `None` on the main endpoint.
    pub subresource: Option<&'a str>,
    /// Namespace of the request.
    pub namespace: Option<&'a str>,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
    /// As the request says; for kinds that this crate does not know.
    AsRequested,
}

/// The facts in which kinds differ most often.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Where objects live.
    pub scope: Scope,
    /// How they are named.
    pub name: NameRule,
    /// Status is written by its own endpoint, so the main one keeps it.
    pub status: bool,
    /// Fields whose change raises `metadata.generation`; empty: the kind has none.
    pub generation: &'static [&'static str],
    /// PUT may create.
    pub create_on_update: bool,
    /// PUT works without a resourceVersion.
    pub unconditional_update: bool,
}

impl Profile {
    /// A namespaced kind named by a DNS subdomain, without status and generation.
    pub const NAMESPACED: Self = Self {
        scope: Scope::Namespaced,
        name: NameRule::Subdomain,
        status: false,
        generation: &[],
        create_on_update: false,
        unconditional_update: true,
    };
    /// The same without a namespace.
    pub const CLUSTER: Self = Self {
        scope: Scope::Cluster,
        ..Self::NAMESPACED
    };
    /// A namespaced kind with spec, status and generation.
    pub const WORKLOAD: Self = Self {
        status: true,
        generation: &["spec"],
        ..Self::NAMESPACED
    };
}

/// What a kind does on write.
///
/// Kinds with rules of their own implement the small methods (`default`, `validate`, `validate_change`, ...); the
/// large ones compose them with what holds for every kind.
pub trait Strategy: Sync {
    /// The facts of the kind.
    fn profile(&self) -> &'static Profile;

    /// Fills in versioned defaults: on create, update and on the result of a patch.
    fn default(&self, _obj: &mut Value) {}

    /// Drops what a client may not set on create.
    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(self.profile(), obj);
    }

    /// Keeps what this endpoint may not change, and counts the generation.
    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        prepare_changed(self.profile(), ctx, obj, old);
    }

    /// The kind's own rules for any object, new or changed.
    fn validate(&self, _ctx: &WriteContext<'_>, _obj: &Value, _old: Option<&Value>, _errs: &mut Errors) {}

    /// The kind's own rules for changes through the main endpoint.
    fn validate_change(&self, _ctx: &WriteContext<'_>, _obj: &Value, _old: &Value, _errs: &mut Errors) {}

    /// The kind's own rules for a write to a subresource.
    fn validate_subresource(&self, _ctx: &WriteContext<'_>, _obj: &Value, _old: &Value, _errs: &mut Errors) {}

    /// Everything that is wrong with a new object.
    fn validate_create(&self, ctx: &WriteContext<'_>, obj: &Value) -> Vec<FieldError> {
        let mut errs = Errors::new();
        let profile = self.profile();
        let namespaced = match profile.scope {
            Scope::Namespaced => true,
            Scope::Cluster => false,
            Scope::AsRequested => ctx.namespace.is_some(),
        };
        meta::validate_create(&mut errs, obj, namespaced, profile.name);
        meta::validate_builtin_finalizers(&mut errs, obj);
        self.validate(ctx, obj, None, &mut errs);
        errs.into_vec()
    }

    /// Everything that is wrong with a changed object.
    fn validate_update(&self, ctx: &WriteContext<'_>, obj: &Value, old: &Value) -> Vec<FieldError> {
        let mut errs = Errors::new();
        meta::validate_update(&mut errs, obj, old);
        meta::validate_builtin_finalizers(&mut errs, obj);
        if ctx.subresource.is_some() {
            self.validate_subresource(ctx, obj, old, &mut errs);
        } else {
            self.validate_change(ctx, obj, old, &mut errs);
            self.validate(ctx, obj, Some(old), &mut errs);
        }
        errs.into_vec()
    }

    /// What is accepted but worth saying.
    fn warnings(&self, _ctx: &WriteContext<'_>, _obj: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Whether PUT may create.
    fn allow_create_on_update(&self) -> bool {
        self.profile().create_on_update
    }

    /// Whether PUT works without a resourceVersion.
    fn allow_unconditional_update(&self) -> bool {
        self.profile().unconditional_update
    }

    /// Field selectors beyond `metadata.name` and `metadata.namespace`, with the values of this object.
    fn selectable_fields(&self, _obj: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Fields that an apply through this endpoint cannot own.
    fn reset_fields(&self, subresource: Option<&str>) -> &'static [&'static str] {
        match subresource {
            None if self.profile().status => &["status"],
            Some("status") => &["spec"],
            _ => &[],
        }
    }
}

/// The shared part of preparing a create.
pub(crate) fn prepare_new(profile: &Profile, obj: &mut Value) {
    if profile.status {
        // Typed servers show the empty status of a new object, so clients may look into it.
        read::set(obj, "status", Value::Object(Map::new()));
    }
    if !profile.generation.is_empty() {
        read::set(read::part_mut(obj, "metadata"), "generation", 1);
    }
}

/// The shared part of preparing an update.
pub(crate) fn prepare_changed(profile: &Profile, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
    if ctx.subresource == Some("status") {
        keep_all_but_status(obj, old);
        return;
    }
    if profile.status {
        read::copy(obj, old, "status");
    }
    count_generation(profile, obj, old);
}

/// On the status endpoint, everything but status and metadata stays as it was.
pub(crate) fn keep_all_but_status(obj: &mut Value, old: &Value) {
    let kept = |key: &str| !matches!(key, "status" | "metadata" | "apiVersion" | "kind");
    if let Some(map) = obj.as_object_mut() {
        map.retain(|key, _| !kept(key) || old.get(key).is_some());
    }
    for (key, value) in old.as_object().into_iter().flatten() {
        if kept(key) && obj.get(key) != Some(value) {
            read::set(obj, key, value.clone());
        }
    }
}

/// Raises the generation if one of the counted fields changed.
pub(crate) fn count_generation(profile: &Profile, obj: &mut Value, old: &Value) {
    if profile.generation.is_empty() {
        return;
    }
    let before = read::int(read::part(old, "metadata"), "generation").unwrap_or(0);
    let changed = profile
        .generation
        .iter()
        .any(|field| !read::same(obj.get(field), old.get(field)));
    if changed {
        read::set(read::part_mut(obj, "metadata"), "generation", before + 1);
    }
}

/// Kinds that this crate does not know.
pub(crate) struct Unknown;

static UNKNOWN: Profile = Profile {
    scope: Scope::AsRequested,
    ..Profile::NAMESPACED
};

impl Strategy for Unknown {
    fn profile(&self) -> &'static Profile {
        &UNKNOWN
    }
}
