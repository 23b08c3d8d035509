//! The one door of the tests: an object goes through a write as the API server does it, and out come the object, the
//! errors as users see them, and the warnings.

use serde_json::{Value, json};

use crate::meta::{self, Birth};
use crate::service::plan_allocation;
use crate::strategy::WriteContext;

pub(crate) const NOW: &str = "2026-01-02T03:04:05Z";

pub(crate) struct Outcome {
    pub(crate) object: Value,
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Outcome {
    /// The object, if nothing was wrong with it.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.errors.is_empty(), "unexpected errors: {:#?}", self.errors);
        self.object
    }

    /// The errors, one per line, must begin with these texts, in any order.
    #[track_caller]
    pub(crate) fn fails(self, expected: &[&str]) {
        assert_eq!(self.errors.len(), expected.len(), "errors: {:#?}", self.errors);
        for text in expected {
            assert!(
                self.errors.iter().any(|e| e.starts_with(text)),
                "no error begins with {text:?}: {:#?}",
                self.errors
            );
        }
    }
}

fn context<'a>(object: &'a Value, subresource: Option<&'a str>) -> WriteContext<'a> {
    WriteContext {
        now: NOW,
        subresource,
        namespace: object["metadata"]["namespace"].as_str(),
    }
}

fn texts(errors: &[fairway_kernel_schema::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Creates an object; namespaced kinds get the namespace `ns` unless they bring one.
pub(crate) fn create(group: &str, resource: &str, mut object: Value) -> Outcome {
    let strategy = crate::strategy(group, resource);
    if strategy.profile().scope == crate::Scope::Namespaced && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!("ns");
    }
    strategy.default(&mut object);
    meta::prepare_create(
        &mut object,
        &Birth {
            now: NOW,
            uid: "uid-1",
            name_suffix: "abcde",
        },
    );
    if (group, resource) == ("", "services")
        && let Err(errors) = plan_allocation(&mut object, None, &["IPv4"])
    {
        return Outcome {
            object,
            errors: texts(&errors),
            warnings: Vec::new(),
        };
    }
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    let ctx = WriteContext {
        now: NOW,
        subresource: None,
        namespace: namespace.as_deref(),
    };
    strategy.prepare_create(&ctx, &mut object);
    let errors = texts(&strategy.validate_create(&ctx, &object));
    let warnings = strategy.warnings(&ctx, &object, None);
    Outcome {
        object,
        errors,
        warnings,
    }
}

/// An object as it was stored.
#[track_caller]
pub(crate) fn stored(group: &str, resource: &str, object: Value) -> Value {
    let mut object = create(group, resource, object).ok();
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

/// Changes a stored object through the main endpoint.
pub(crate) fn update(group: &str, resource: &str, old: &Value, change: impl FnOnce(&mut Value)) -> Outcome {
    update_through(group, resource, None, old, change)
}

/// Changes a stored object through an endpoint.
pub(crate) fn update_through(
    group: &str,
    resource: &str,
    subresource: Option<&str>,
    old: &Value,
    change: impl FnOnce(&mut Value),
) -> Outcome {
    let strategy = crate::strategy(group, resource);
    let mut object = old.clone();
    change(&mut object);
    strategy.default(&mut object);
    meta::prepare_update(&mut object, old);
    if (group, resource) == ("", "services")
        && subresource.is_none()
        && let Err(errors) = plan_allocation(&mut object, Some(old), &["IPv4"])
    {
        return Outcome {
            object,
            errors: texts(&errors),
            warnings: Vec::new(),
        };
    }
    let ctx = context(old, subresource);
    strategy.prepare_update(&ctx, &mut object, old);
    let errors = texts(&strategy.validate_update(&ctx, &object, old));
    let warnings = strategy.warnings(&ctx, &object, Some(old));
    Outcome {
        object,
        errors,
        warnings,
    }
}
