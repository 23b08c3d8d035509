//! Which pages are asked: one whose `when` does not hold is not, and neither are answers to it taken.

use std::collections::BTreeSet;
use std::convert::Infallible;

use serde_json::{Map, Value};

use crate::answers::{complete_page, names_of, secret_questions};
use crate::expression::Variables;
use crate::input;
use crate::schema::Complaint;
use crate::template::{Page, Template, holds};

/// Pages and answers, once conditions were worked out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Of each page whether it is asked.
    pub is_shown: Vec<bool>,
    /// Answers that are taken, completed with defaults.
    pub values: Map<String, Value>,
    /// Questions that nobody is asked: those of hidden pages alone.
    pub left_out: BTreeSet<String>,
}

/// Works out page after page which is asked. A condition sees the answers of shown pages before it, with their defaults, and no secrets; what
/// was answered to a hidden page it does not see.
pub fn asked(template: &Template, given: &Map<String, Value>) -> Result<Asked, Complaint> {
    work_out(template, given, is_shown)
}

/// The same while answers are missing: a page whose condition cannot be worked out from those that there are is not asked yet.
pub fn asked_so_far(template: &Template, given: &Map<String, Value>) -> Asked {
    let Ok(asked) = work_out(template, given, |page, values, secret| {
        Ok::<bool, Infallible>(is_shown(page, values, secret).unwrap_or(false))
    });
    asked
}

fn work_out<E>(
    template: &Template,
    given: &Map<String, Value>,
    is_shown: impl Fn(&Page, &Map<String, Value>, &BTreeSet<String>) -> Result<bool, E>,
) -> Result<Asked, E> {
    let mut asked = Asked {
        values: given.clone(),
        ..Asked::default()
    };
    if template.pages.iter().all(|page| page.when.is_none()) {
        for page in &template.pages {
            complete_page(&page.schema, &mut asked.values);
        }
        asked.is_shown = vec![true; template.pages.len()];
        return Ok(asked);
    }
    let secret = secret_questions(template);
    let names: Vec<BTreeSet<String>> = template.pages.iter().map(|page| names_of(&page.schema)).collect();
    asked.left_out = names.iter().flatten().cloned().collect();
    asked.values.retain(|name, _| !asked.left_out.contains(name));
    for (page, names) in template.pages.iter().zip(&names) {
        let is_shown = is_shown(page, &asked.values, &secret)?;
        asked.is_shown.push(is_shown);
        if !is_shown {
            continue;
        }
        for name in names {
            asked.left_out.remove(name);
            if let Some(answer) = given.get(name) {
                asked.values.insert(name.clone(), answer.clone());
            }
        }
        complete_page(&page.schema, &mut asked.values);
    }
    Ok(asked)
}

fn is_shown(page: &Page, values: &Map<String, Value>, secret: &BTreeSet<String>) -> Result<bool, Complaint> {
    let Some(when) = &page.when else {
        return Ok(true);
    };
    let mut open = values.clone();
    open.retain(|name, _| !secret.contains(name));
    let variables = Variables::default().with("parameters", &Value::Object(open));
    let value = input::resolve(when, &variables, "when").map_err(|error| Complaint {
        path: String::new(),
        message: format!(
            "whether the page {:?} is asked cannot be worked out: {error}",
            page.title
        ),
    })?;
    Ok(holds(value.as_ref()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answers;

    fn template() -> Template {
        let page = |title: &str, when: Value, schema: Value| {
            let mut page = schema;
            page["title"] = json!(title);
            page["when"] = when;
            page
        };
        let object = json!({
            "apiVersion": crate::template::API_VERSION, "kind": "Template", "metadata": {"name": "t"},
            "spec": {
                "parameters": [
                    page("where", Value::Null, json!({"required": ["cloud"], "properties": {
                        "cloud": {"enum": ["A", "B", "C"]}, "token": {"type": "string", "ui:field": "Secret"},
                    }})),
                    page("A", json!("${{ parameters.cloud === 'A' }}"), json!({"required": ["zone"], "properties": {
                        "zone": {"type": "string"}, "deep": {"type": "boolean", "default": true}, "key": {"type": "string", "ui:field": "Secret"},
                    }})),
                    page("B", json!("${{ parameters.cloud === 'B' }}"), json!({"required": ["zone"], "properties": {"zone": {"enum": ["b1", "b2"]}}})),
                    page("after A", json!("${{ parameters.deep }}"), json!({"properties": {"more": {"default": 1}}})),
                    page("by a secret", json!("${{ parameters.token }}"), json!({"properties": {"never": {"default": 1}}})),
                    page("switched off", json!(false), json!({"required": ["off"], "properties": {"off": {}}})),
                ],
                "steps": [{"action": "debug:log"}],
            },
        });
        Template::read(&object).unwrap()
    }

    #[test]
    fn a_hidden_page_is_not_asked_and_not_answered() {
        for (what, given, shown, expected) in [
            (
                "one of two",
                json!({"cloud": "A", "zone": "a1"}),
                "10100",
                Ok(json!({"cloud": "A", "zone": "a1", "deep": true, "more": 1})),
            ),
            (
                "the other, and an answer to the first is not taken",
                json!({"cloud": "B", "zone": "b1", "deep": true, "more": 7, "off": 1}),
                "01000",
                Ok(json!({"cloud": "B", "zone": "b1"})),
            ),
            (
                "a question of two pages is judged by the one that is asked",
                json!({"cloud": "B", "zone": "a1"}),
                "01000",
                Err("zone: it must be one of b1, b2"),
            ),
            (
                "what a shown page requires is required",
                json!({"cloud": "A", "deep": false}),
                "10000",
                Err("zone: an answer is required"),
            ),
            (
                "neither",
                json!({"cloud": "C", "zone": "x"}),
                "00000",
                Ok(json!({"cloud": "C"})),
            ),
            (
                "a page that hangs on a secret is never asked",
                json!({"cloud": "C", "token": "t", "never": 3}),
                "00000",
                Ok(json!({"cloud": "C"})),
            ),
            (
                "what no page asks for stays",
                json!({"cloud": "C", "other": 3}),
                "00000",
                Ok(json!({"cloud": "C", "other": 3})),
            ),
        ] {
            let Value::Object(given) = given else {
                panic!("{what}: an object")
            };
            let template = template();
            let asked = asked(&template, &given).unwrap();
            let word: String = asked.is_shown[1..]
                .iter()
                .map(|is| if *is { '1' } else { '0' })
                .collect();
            assert_eq!(word, shown, "{what}");
            let judged = answers::judge(&template, &given);
            match (judged, expected) {
                (Ok(judged), Ok(expected)) => {
                    assert_eq!(Value::Object(judged.values), expected, "{what}");
                }
                (Err(complaints), Err(expected)) => {
                    assert_eq!(complaints[0].to_string(), expected, "{what}");
                }
                (judged, _) => panic!("{what}: {judged:?}"),
            }
        }
    }

    #[test]
    fn a_condition_that_wants_an_answer_waits_for_it() {
        let template = Template::read(&json!({
            "apiVersion": crate::template::API_VERSION, "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [{"action": "debug:log"}], "parameters": [
                {"properties": {"name": {"type": "string"}}},
                {"when": "${{ parameters.name.startsWith('a') }}", "properties": {"more": {}}},
            ]},
        }))
        .unwrap();
        for (given, expected) in [
            (json!({}), false),
            (json!({"name": "ab"}), true),
            (json!({"name": "b"}), false),
        ] {
            let given = given.as_object().unwrap();
            assert_eq!(
                asked_so_far(&template, given).is_shown,
                [true, expected],
                "{given:?}"
            );
            assert_eq!(asked(&template, given).is_err(), given.is_empty(), "{given:?}");
        }
    }

    #[test]
    fn a_secret_of_a_hidden_page_is_not_taken() {
        let Value::Object(given) = json!({"cloud": "B", "zone": "b1", "key": "s3cret", "token": "t"}) else {
            panic!("an object")
        };
        let judged = answers::judge(&template(), &given).unwrap();
        let names: Vec<&str> = judged.secrets.keys().map(String::as_str).collect();
        assert_eq!(names, ["token"]);
        assert!(judged.left_out.contains("key"), "{:?}", judged.left_out);
        assert!(!judged.left_out.contains("zone"), "a shown page asks for it, too");
    }
}
