//! A ValidatingAdmissionPolicy, compiled.

use fairway_kernel_kinds::admission_expressions::{Sight, compile, environment, variable_name};
use fairway_kernel_kinds::read::{list, part, text};
use fairway_text_cel::{Program, Type};
use serde_json::Value;

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamKind {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
}

/// An expression. One that does not compile is kept with the reason: it fails when it is evaluated, and the policy says
/// what that means.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) source: String,
    pub(crate) program: Result<Program, String>,
}

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) expression: Expression,
    pub(crate) message: String,
    pub(crate) message_expression: Option<Expression>,
    pub(crate) reason: String,
}

/// A policy that is ready to judge.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// `spec.matchConstraints`.
    pub constraints: Value,
    /// The kind of its parameters, if it has any.
    pub param_kind: Option<ParamKind>,
    /// Whether what cannot be evaluated is denied.
    pub fails_closed: bool,
    pub(crate) conditions: Vec<Expression>,
    /// With the names under which expressions see them, in the order in which they may refer to each other.
    pub(crate) variables: Vec<(String, Expression)>,
    pub(crate) checks: Vec<Check>,
    pub(crate) annotations: Vec<(String, Expression)>,
}

impl Policy {
    /// Compiles a ValidatingAdmissionPolicy.
    pub fn compile(object: &Value) -> Self {
        let spec = part(object, "spec");
        let kind = part(spec, "paramKind");
        let param_kind = (!text(kind, "kind").is_empty()).then(|| ParamKind {
            api_version: text(kind, "apiVersion").to_owned(),
            kind: text(kind, "kind").to_owned(),
        });
        let params = param_kind.is_some();
        let mut env = environment(Sight {
            params,
            authorizer: true,
        });
        let mut message_env = environment(Sight {
            params,
            authorizer: false,
        });
        let make = |env: &fairway_text_cel::Env, source: &str, results: &[Type]| Expression {
            source: source.to_owned(),
            program: compile(env, source, results),
        };
        let conditions = list(spec, "matchConditions")
            .iter()
            .map(|condition| make(&env, text(condition, "expression"), &[Type::Bool]))
            .collect();
        let mut variables = Vec::new();
        for variable in list(spec, "variables") {
            let name = variable_name(text(variable, "name"));
            let expression = make(&env, text(variable, "expression"), &[]);
            let ty = expression
                .program
                .as_ref()
                .map_or(Type::Dyn, |program| program.result_type().clone());
            env = env.with_variable(&name, ty.clone());
            message_env = message_env.with_variable(&name, ty);
            variables.push((name, expression));
        }
        let checks = list(spec, "validations")
            .iter()
            .map(|check| Check {
                expression: make(&env, text(check, "expression"), &[Type::Bool]),
                message: text(check, "message").to_owned(),
                message_expression: Some(text(check, "messageExpression"))
                    .filter(|source| !source.is_empty())
                    .map(|source| make(&message_env, source, &[Type::String])),
                reason: text(check, "reason").to_owned(),
            })
            .collect();
        let annotations = list(spec, "auditAnnotations")
            .iter()
            .map(|annotation| {
                let expression = make(
                    &env,
                    text(annotation, "valueExpression"),
                    &[Type::String, Type::Null],
                );
                (text(annotation, "key").to_owned(), expression)
            })
            .collect();
        Self {
            name: text(part(object, "metadata"), "name").to_owned(),
            constraints: part(spec, "matchConstraints").clone(),
            param_kind,
            fails_closed: text(spec, "failurePolicy") != "Ignore",
            conditions,
            variables,
            checks,
            annotations,
        }
    }
}
