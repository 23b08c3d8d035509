//! CustomResourceDefinitions themselves, as the built-in kind that they are.

use fairway_kernel_kinds::at::Errors;
use fairway_kernel_kinds::meta::NameRule;
use fairway_kernel_kinds::{Profile, Strategy, WriteContext};
use fairway_kernel_schema::crd;
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

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let found = match old {
            None => crd::validate(obj),
            Some(old) => crd::validate_update(obj, old),
        };
        found.into_iter().for_each(|error| errs.push(error));
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        crd::validate_status_update(obj, old).into_iter().for_each(|error| errs.push(error));
    }

    fn warnings(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        crd::warnings(obj, old)
    }
}
