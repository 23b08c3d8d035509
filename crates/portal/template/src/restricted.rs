//! Parts of a template that Backstage keeps from some people, or has changed by code of its own front end. Nothing here could do that; what is
//! kept from somebody must not be asked of everybody, nor be done for everybody, and answers that lack what code would have added are not
//! those that the template was written for: such a template is refused.

use serde_json::Value;

/// By what a permission policy judges who may see a part.
const PERMISSIONS: &str = "backstage:permissions";
/// Which switch of a person's own shows a part to him.
const FLAG: &str = "backstage:featureFlag";
/// Code of the front end that changes answers before they are sent, by its names.
const DECORATORS: [&str; 2] = ["EXPERIMENTAL_formDecorators", "formDecorators"];
/// How deeply questions are looked through; schemas may not be nested deeper.
const MAX_DEPTH: usize = 128;

/// What is said of each part of a template that is not for everybody, or not for here.
pub(crate) fn problems(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    marks(spec, "spec", &mut found);
    for name in DECORATORS {
        let decorators = spec.get(name).filter(|all| !all.is_null());
        if decorators.is_some_and(|all| all.as_array().is_none_or(|all| !all.is_empty())) {
            found.push(format!(
                "spec.{name}: code of Backstage's front end adds to the answers, and it is not here, so that they would lack what the steps \
                 expect; take it out, and ask for what it adds, or work it out in a step"
            ));
        }
    }
    match spec.get("parameters") {
        Some(Value::Array(pages)) => {
            for (at, page) in pages.iter().enumerate() {
                look(page, &format!("spec.parameters[{at}]"), MAX_DEPTH, &mut found);
            }
        }
        Some(page) => look(page, "spec.parameters", MAX_DEPTH, &mut found),
        None => {}
    }
    let steps = spec.get("steps").and_then(Value::as_array);
    for (at, step) in steps.into_iter().flatten().enumerate() {
        // What is in an input is the action's affair: it may write templates.
        marks(step, &format!("spec.steps[{at}]"), &mut found);
    }
    found
}

fn look(value: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(fields) => {
            marks(value, at, found);
            for (key, inner) in fields {
                look(inner, &format!("{at}.{key}"), depth - 1, found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                look(inner, &format!("{at}[{index}]"), depth - 1, found);
            }
        }
        _ => {}
    }
}

fn marks(value: &Value, at: &str, found: &mut Vec<String>) {
    let permissions = value.get(PERMISSIONS);
    // Without tags there is nothing by which a policy could tell it from other parts.
    let is_open = |mark: &Value| match mark {
        Value::Null => true,
        Value::Object(fields) => fields
            .values()
            .all(|tags| tags.is_null() || tags.as_array().is_some_and(Vec::is_empty)),
        _ => false,
    };
    if permissions.is_some_and(|mark| !is_open(mark)) {
        found.push(format!(
            "{at}.{PERMISSIONS}: a permission policy of Backstage says for whom this is, and there is none here, so that it would be for \
             everybody; take it out, and say by RBAC who may read the template"
        ));
    }
    let older = value.pointer("/ui:backstage/featureFlag");
    for (name, flag) in [(FLAG, value.get(FLAG)), ("ui:backstage.featureFlag", older)] {
        let Some(flag) = flag.filter(|flag| !flag.is_null()) else {
            continue;
        };
        found.push(format!(
            "{at}.{name}: this is for those who have switched on {flag}, and there are no such switches here, so that it would be for \
             everybody; take the mark out, or what is marked"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_code_of_a_front_end_would_add_is_named() {
        for name in DECORATORS {
            let found = problems(&json!({name: [{"id": "user-token"}]}));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(&format!("spec.{name}: ")), "{found:?}");
            for none in [json!([]), Value::Null] {
                assert!(problems(&json!({name: none})).is_empty());
            }
        }
    }

    #[test]
    fn what_is_not_for_everybody_is_named_with_its_place() {
        let tags = json!({"tags": ["ops"]});
        let cases: [(&str, Value, &[&str]); 9] = [
            (
                "a page",
                json!({"parameters": [{}, {PERMISSIONS: tags}]}),
                &["spec.parameters[1].backstage:permissions: "],
            ),
            (
                "the only page",
                json!({"parameters": {PERMISSIONS: tags}}),
                &["spec.parameters.backstage:permissions: "],
            ),
            (
                "a question, wherever it is",
                json!({"parameters": [{"dependencies": {"a": {"oneOf": [{"properties": {"b": {PERMISSIONS: tags}}}]}}}]}),
                &["spec.parameters[0].dependencies.a.oneOf[0].properties.b.backstage:permissions: "],
            ),
            (
                "a step, and a switch",
                json!({"steps": [{PERMISSIONS: tags, FLAG: "beta"}]}),
                &[
                    "spec.steps[0].backstage:permissions: ",
                    "spec.steps[0].backstage:featureFlag: ",
                ],
            ),
            (
                "the whole",
                json!({PERMISSIONS: tags}),
                &["spec.backstage:permissions: "],
            ),
            (
                "a switch as it was written before",
                json!({"parameters": [{"properties": {"a": {"ui:backstage": {"featureFlag": "beta"}}}}]}),
                &["spec.parameters[0].properties.a.ui:backstage.featureFlag: "],
            ),
            (
                "no tags are no restriction",
                json!({"parameters": [{PERMISSIONS: {"tags": []}}, {PERMISSIONS: null}], "steps": [{PERMISSIONS: {}}]}),
                &[],
            ),
            (
                "a template that writes templates",
                json!({"steps": [{"input": {"values": {PERMISSIONS: tags}}}]}),
                &[],
            ),
            (
                "how a question is reviewed",
                json!({"parameters": [{"properties": {"a": {"ui:backstage": {"review": {"show": false}}}}}]}),
                &[],
            ),
        ];
        for (what, spec, expected) in cases {
            let found = problems(&spec);
            assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    found.starts_with(expected) && found.contains("for everybody"),
                    "{what}: {found}"
                );
            }
        }
    }
}
