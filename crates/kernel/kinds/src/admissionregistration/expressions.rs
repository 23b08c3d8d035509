//! The expressions of admission policies and webhooks: whether they compile, and to what.

use fairway_kernel_schema::field::FieldError;
use fairway_text_cel::{Env, Type};

use crate::admission_expressions::{Sight, compile, environment, variable_name};
use crate::at::{At, Errors};

/// What the expressions of one policy or webhook may refer to.
pub(super) struct Expressions {
    env: Env,
    message_env: Env,
}

impl Expressions {
    /// The variables of admission; `params` only where the policy has parameters.
    pub(super) fn new(params: bool) -> Self {
        let env = |authorizer| environment(Sight { params, authorizer });
        Self {
            env: env(true),
            message_env: env(false),
        }
    }

    /// Lets later expressions refer to `variables.name`.
    pub(super) fn add_variable(&mut self, name: &str, found: &Type) {
        let name = variable_name(name);
        for env in [&mut self.env, &mut self.message_env] {
            *env = std::mem::take(env).with_variable(&name, found.clone());
        }
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
        check(&self.env, errs, at, expression, results)
    }

    /// The same for the text of a message, which may not ask the authorizer.
    pub(super) fn check_message(&self, errs: &mut Errors, at: &At<'_>, expression: &str) {
        check(&self.message_env, errs, at, expression, &[Type::String]);
    }
}

fn check(env: &Env, errs: &mut Errors, at: &At<'_>, expression: &str, results: &[Type]) -> Option<Type> {
    match compile(env, expression, results) {
        Ok(program) => Some(program.result_type().clone()),
        Err(why) => {
            errs.push(FieldError::invalid(&at.path(), expression, why));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::check::create;

    #[test]
    fn expressions_see_what_their_place_lets_them_see() {
        for (name, spec, want) in [
            (
                "variables, in order",
                json!({"variables": [{"name": "n", "expression": "object.spec.replicas"},
                                     {"name": "odd", "expression": "variables.n % 2 == 1"}],
                       "validations": [{"expression": "variables.odd", "messageExpression": "'n: ' + string(variables.n)"}]}),
                vec![],
            ),
            (
                "a variable before it is there",
                json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}),
                vec!["spec.variables[0].expression"],
            ),
            (
                "no bool",
                json!({"validations": [{"expression": "object.spec.replicas"}, {"expression": "'yes'"}]}),
                vec!["spec.validations[0].expression", "spec.validations[1].expression"],
            ),
            (
                "parameters where the policy has none",
                json!({"validations": [{"expression": "params.max > 1"}]}),
                vec!["spec.validations[0].expression"],
            ),
            (
                "parameters where it has",
                json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                       "validations": [{"expression": "params.data.max == 'x'"}]}),
                vec![],
            ),
            (
                "fields of the request and its namespace are known",
                json!({"validations": [{"expression": "request.nobody == 'x'"},
                                       {"expression": "namespaceObject.metadata.labels['a'] == 'b'"},
                                       {"expression": "request.userInfo.groups.exists(g, g == 'a')"},
                                       {"expression": "request.options.dryRun == null"}]}),
                vec!["spec.validations[0].expression"],
            ),
            (
                "the authorizer is not for messages",
                json!({"validations": [{"expression": "authorizer.path('/').check('get').allowed()",
                        "messageExpression": "string(authorizer.path('/').check('get').allowed())"}]}),
                vec!["spec.validations[0].messageExpression"],
            ),
            (
                "conditions see no variables",
                json!({"variables": [{"name": "a", "expression": "true"}],
                       "matchConditions": [{"name": "c", "expression": "variables.a"}]}),
                vec!["spec.matchConditions[0].expression"],
            ),
            (
                "annotations are texts or nothing",
                json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"},
                                            {"key": "l", "valueExpression": "'v'"}]}),
                vec!["spec.auditAnnotations[0].valueExpression"],
            ),
        ] {
            let policy = json!({"metadata": {"name": "a"}, "spec": spec});
            let outcome = create(
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies",
                policy,
            );
            let found: Vec<&str> = (outcome.errors.iter())
                .filter_map(|e| Some(e.split_once(": ")?.0))
                .filter(|path| path.to_lowercase().ends_with("expression"))
                .collect();
            assert_eq!(found, want, "{name}");
        }
    }
}
