//! The expressions of admission policies and webhooks: whether they compile, and to what.

use fairway_kernel_schema::field::FieldError;
use fairway_text_cel::{Env, Library, OpaqueType, Type};

use crate::at::{At, Errors};

/// What an expression may refer to.
pub(super) struct Expressions {
    env: Env,
}

impl Expressions {
    /// The variables of admission; `params` only where the policy has parameters.
    pub(super) fn new(params: bool) -> Self {
        let mut env = Env::new()
            .with_library(Library::Bindings)
            .with_variable("object", Type::Dyn)
            .with_variable("oldObject", Type::Dyn)
            .with_variable("authorizer", Type::Opaque(OpaqueType::Authorizer))
            .with_variable(
                "authorizer.requestResource",
                Type::Opaque(OpaqueType::ResourceCheck),
            )
            .with_variable("request", Type::Dyn)
            .with_variable("namespaceObject", Type::Dyn);
        if params {
            env = env.with_variable("params", Type::Dyn);
        }
        // The fields of what upstream declares with a type, so that expressions have the types that it finds.
        for field in [
            "uid",
            "kind.group",
            "kind.version",
            "kind.kind",
            "resource.group",
            "resource.version",
            "resource.resource",
            "subResource",
            "requestKind.group",
            "requestKind.version",
            "requestKind.kind",
            "requestResource.group",
            "requestResource.version",
            "requestResource.resource",
            "requestSubResource",
            "name",
            "namespace",
            "operation",
            "userInfo.username",
            "userInfo.uid",
        ] {
            env = env.with_variable(&format!("request.{field}"), Type::String);
        }
        for field in ["metadata.name", "metadata.generateName", "status.phase"] {
            env = env.with_variable(&format!("namespaceObject.{field}"), Type::String);
        }
        let texts = || Type::list(Type::String);
        for field in ["labels", "annotations"] {
            let name = format!("namespaceObject.metadata.{field}");
            env = env.with_variable(&name, Type::map(Type::String, Type::String));
        }
        env = env
            .with_variable("request.dryRun", Type::Bool)
            .with_variable("request.userInfo.groups", texts())
            .with_variable("request.userInfo.extra", Type::map(Type::String, texts()))
            .with_variable("namespaceObject.spec.finalizers", texts());
        Self { env }
    }

    /// Lets later expressions refer to `variables.name`.
    pub(super) fn add_variable(&mut self, name: &str, found: Type) {
        let env = std::mem::take(&mut self.env);
        self.env = env.with_variable(&format!("variables.{name}"), found);
    }

    /// Notes what is wrong with an expression, and returns its type. `results` are the types that it may have, any if
    /// none is given.
    pub(super) fn check(
        &self,
        errs: &mut Errors,
        at: &At<'_>,
        expression: &str,
        results: &[Type],
    ) -> Option<Type> {
        let mut refuse = |why: String| errs.push(FieldError::invalid(&at.path(), expression, why));
        let program = match self.env.compile(expression) {
            Ok(program) => program,
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                refuse(format!("compilation failed: {}", errors.join("\n")));
                return None;
            }
        };
        let found = program.result_type();
        let got = found.declared();
        match results {
            [] => {}
            _ if results.contains(found) => {}
            [one] => refuse(format!("must evaluate to {} but got {got}", one.declared())),
            several => {
                let names: Vec<String> = several.iter().map(Type::declared).collect();
                refuse(format!(
                    "must evaluate to one of [{}] but got {got}",
                    names.join(" ")
                ));
            }
        }
        Some(found.clone())
    }
}
