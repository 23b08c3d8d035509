//! What is wrong with the expressions of a policy that somebody wants to store.

use fairway_kernel_kinds::read::{list, part, text};
use fairway_kernel_schema::field::{FieldError, Path};
use fairway_text_cel::{Env, Type};
use serde_json::Value;

use crate::environment::{Sight, compile, environment, variable_name};

/// The expressions of a ValidatingAdmissionPolicy that do not compile. Empty ones are for validation to miss.
pub fn expression_errors(policy: &Value) -> Vec<FieldError> {
    let spec = part(policy, "spec");
    let params = !text(part(spec, "paramKind"), "kind").is_empty();
    let mut env = environment(Sight {
        params,
        authorizer: true,
    });
    let mut message_env = environment(Sight {
        params,
        authorizer: false,
    });
    let mut errors = Vec::new();
    let mut check = |env: &Env, path: &Path, source: &str, results: &[Type]| {
        if source.trim().is_empty() {
            return Type::Dyn;
        }
        match compile(env, source, results) {
            Ok(program) => program.result_type().clone(),
            Err(why) => {
                errors.push(FieldError::invalid(path, source, why));
                Type::Dyn
            }
        }
    };
    let at = |list: &str, index: usize, field: &str| Path::new("spec").child(list).index(index).child(field);
    for (i, variable) in list(spec, "variables").iter().enumerate() {
        let path = at("variables", i, "expression");
        let ty = check(&env, &path, text(variable, "expression"), &[]);
        let name = variable_name(text(variable, "name"));
        env = env.with_variable(&name, ty.clone());
        message_env = message_env.with_variable(&name, ty);
    }
    // Conditions are evaluated before anything else, so they see no variables.
    let bare = environment(Sight {
        params,
        authorizer: true,
    });
    for (i, condition) in list(spec, "matchConditions").iter().enumerate() {
        let path = at("matchConditions", i, "expression");
        check(&bare, &path, text(condition, "expression"), &[Type::Bool]);
    }
    for (i, validation) in list(spec, "validations").iter().enumerate() {
        let path = at("validations", i, "expression");
        check(&env, &path, text(validation, "expression"), &[Type::Bool]);
        let path = at("validations", i, "messageExpression");
        check(
            &message_env,
            &path,
            text(validation, "messageExpression"),
            &[Type::String],
        );
    }
    for (i, annotation) in list(spec, "auditAnnotations").iter().enumerate() {
        let path = at("auditAnnotations", i, "valueExpression");
        let source = text(annotation, "valueExpression");
        check(&env, &path, source, &[Type::String, Type::Null]);
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::expression_errors;

    #[test]
    fn expressions_must_compile_to_the_right_type() {
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
            let errors = expression_errors(&json!({"spec": spec}));
            let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, want, "{name}: {errors:?}");
        }
    }
}
