//! CustomResourceDefinitions themselves, as the built-in kind that they are.

use fairway_kernel_kinds::at::Errors;
use fairway_kernel_kinds::meta::{self, NameRule};
use fairway_kernel_kinds::{Profile, Strategy, WriteContext};
use fairway_kernel_schema::crd;
use fairway_kernel_schema::field::{ErrorKind, FieldError};
use serde_json::Value;

/// The strategy of CRDs.
pub struct Definition;

static PROFILE: Profile = Profile {
    name: NameRule::Subdomain,
    status: true,
    generation: &["spec"],
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for Definition {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        crd::set_defaults(obj);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        crd::prepare_for_create(obj);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        match ctx.subresource {
            Some(_) => crd::prepare_for_status_update(obj, old),
            None => crd::prepare_for_update(obj, old),
        }
    }

    // The finalizer of CRDs has no domain, so the rule for built-in kinds does not hold for them.
    fn validate_create(&self, _ctx: &WriteContext<'_>, obj: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        meta::validate_create(&mut errors, obj, false, PROFILE.name);
        let mut errors = errors.into_vec();
        // The one name that a definition may have follows from its spec, and is judged with it.
        errors.retain(|e| e.path.as_str() != "metadata.name" || e.kind == ErrorKind::Required);
        errors.extend(crd::validate(obj));
        // Accepted names are our own work here, and repeat what the spec says.
        errors.retain(|e| !e.path.as_str().starts_with("status.acceptedNames"));
        errors
    }

    fn validate_update(&self, ctx: &WriteContext<'_>, obj: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        meta::validate_update(&mut errors, obj, old);
        let mut errors = errors.into_vec();
        errors.extend(match ctx.subresource {
            Some(_) => crd::validate_status_update(obj, old),
            None => crd::validate_update(obj, old),
        });
        errors
    }

    fn warnings(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = crd::warnings(obj, old);
        warnings.extend(super::provided::warning(obj));
        warnings
    }
}
