//! A Template: what it asks, what it does, and what it shows in the end.
//!
//! Everything that can be judged without answers is judged here, so that a template that cannot work is refused before anything is done.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::input;
use crate::restricted;
use crate::schema;
use crate::secret_fields;

/// The group and version of Templates.
pub const API_VERSION: &str = "scaffolder.backstage.io/v1beta3";
/// The most steps.
const MAX_STEPS: usize = 200;
/// The most pages of questions.
const MAX_PAGES: usize = 50;

/// A Template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// For people; the name if there is none.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// What it makes: `service`, `virtual-machine`.
    pub type_: String,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Labels for people.
    pub tags: Vec<String>,
    /// Where its files are, as annotations say: a directory.
    pub source: Option<String>,
    /// Questions, page by page.
    pub pages: Vec<Page>,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What is shown in the end.
    pub output: Value,
}

/// A page of questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Heading.
    pub title: String,
    /// What is asked and why.
    pub description: String,
    /// The questions as JSON Schema of an object.
    pub schema: Value,
    /// Whether it is asked at all, by the answers of pages before it; always if nothing is said.
    pub when: Option<Value>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// By which others refer to what it gives.
    pub id: String,
    /// For people.
    pub name: String,
    /// What is done.
    pub action: String,
    /// With what; may hold expressions.
    pub input: Value,
    /// Whether; always if nothing is said.
    pub condition: Option<Value>,
    /// Once for each item of this.
    pub each: Option<Value>,
}

impl Template {
    /// Reads a Template, or says everything that is wrong with it.
    pub fn read(object: &Value) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        if text("/apiVersion") != API_VERSION || text("/kind") != "Template" {
            return Err(vec![format!(
                "it is {} {:?}; software templates are {API_VERSION} Template",
                text("/kind"),
                text("/apiVersion")
            )]);
        }
        let annotation = |name: &str| {
            let all = object.pointer("/metadata/annotations")?;
            all.get(name)?.as_str().map(str::to_owned)
        };
        let source = annotation("backstage.io/source-location").or_else(|| {
            // The file itself: what is beside it is meant.
            let file = annotation("backstage.io/managed-by-location")?;
            let (directory, _) = file.rsplit_once('/')?;
            Some(format!("{directory}/"))
        });
        let name = text("/metadata/name");
        let spec = object.get("spec").cloned().unwrap_or_default();
        let pages = pages(spec.get("parameters"), &mut problems);
        let steps = steps(spec.get("steps"), &mut problems);
        problems.extend(restricted::problems(&spec));
        let output = spec.get("output").cloned().unwrap_or(Value::Object(Map::new()));
        if let Err(error) = input::check(&output, "spec.output") {
            problems.push(error.to_string());
        }
        if mentions_secrets(&output) {
            problems.push("spec.output: secrets cannot be shown in outputs".to_owned());
        }
        let template = Self {
            title: match text("/metadata/title") {
                title if title.is_empty() => name.clone(),
                title => title,
            },
            name,
            namespace: match text("/metadata/namespace") {
                none if none.is_empty() => "default".to_owned(),
                namespace => namespace,
            },
            description: text("/metadata/description"),
            type_: text("/spec/type"),
            owner: spec.get("owner").and_then(Value::as_str).map(str::to_owned),
            tags: object
                .pointer("/metadata/tags")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|tag| tag.as_str().map(str::to_owned))
                .collect(),
            source,
            pages,
            steps,
            output,
        };
        match problems.is_empty() {
            true => Ok(template),
            false => Err(problems),
        }
    }

    /// Steps whose action is none of these, with what to say of each.
    pub fn unknown_actions(&self, known: &[&str]) -> Vec<String> {
        let unknown = self
            .steps
            .iter()
            .filter(|step| !known.contains(&step.action.as_str()));
        unknown
            .map(|step| {
                format!(
                    "step {:?} ({}) has the action {:?}, which is not known here",
                    step.id, step.name, step.action
                )
            })
            .collect()
    }

    /// Its entity reference.
    pub fn reference(&self) -> String {
        format!("template:{}/{}", self.namespace, self.name)
    }
}

fn pages(parameters: Option<&Value>, problems: &mut Vec<String>) -> Vec<Page> {
    let given: Vec<&Value> = match parameters {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(pages)) => pages.iter().collect(),
        Some(page) => vec![page],
    };
    if given.len() > MAX_PAGES {
        problems.push(format!("spec.parameters: there are more than {MAX_PAGES} pages"));
        return Vec::new();
    }
    let mut pages = Vec::new();
    for (at, page) in given.into_iter().enumerate() {
        let place = format!("spec.parameters[{at}]");
        if !page.is_object() {
            problems.push(format!("{place}: a page is an object with properties"));
            continue;
        }
        problems.extend(schema::problems(page, &place));
        problems.extend(secret_fields::find(page, &place).problems);
        let mut schema = page.clone();
        let when = schema.as_object_mut().and_then(|page| page.shift_remove("when"));
        let when = when.filter(|when| !when.is_null());
        if let Some(when) = &when {
            check_when(when, &format!("{place}.when"), problems);
        }
        let text = |key: &str| page.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        pages.push(Page {
            title: text("title"),
            description: text("description"),
            schema,
            when,
        });
    }
    pages
}

/// A page's condition is one expression or a yes or no, and secrets have no part in it: whoever sees which page comes next would learn of them.
fn check_when(when: &Value, at: &str, problems: &mut Vec<String>) {
    if !when.is_string() && !when.is_boolean() {
        problems.push(format!("{at}: a condition is an expression, true or false"));
    }
    if let Err(error) = input::check(when, at) {
        problems.push(error.to_string());
    }
    if mentions_secrets(when) {
        problems.push(format!("{at}: secrets can be used in inputs only"));
    }
}

fn steps(given: Option<&Value>, problems: &mut Vec<String>) -> Vec<Step> {
    let Some(given) = given.and_then(Value::as_array).filter(|steps| !steps.is_empty()) else {
        problems.push("spec.steps: there are no steps".to_owned());
        return Vec::new();
    };
    if given.len() > MAX_STEPS {
        problems.push(format!("spec.steps: there are more than {MAX_STEPS} steps"));
        return Vec::new();
    }
    let mut ids = BTreeSet::new();
    let mut steps = Vec::new();
    for (at, step) in given.iter().enumerate() {
        let text = |key: &str| step.get(key).and_then(Value::as_str).map(str::to_owned);
        let action = text("action").unwrap_or_default();
        // As Backstage does.
        let id = text("id").unwrap_or_else(|| format!("step-{}", at + 1));
        let place = format!("spec.steps[{at}] ({id})");
        if action.is_empty() {
            problems.push(format!("{place}: it has no action"));
        }
        let is_id = |c: char| c.is_alphanumeric() || "-_".contains(c);
        if id.is_empty() || id.len() > 100 || !id.chars().all(is_id) {
            problems.push(format!(
                "{place}: an id has letters, digits, dashes and underscores"
            ));
        }
        if !ids.insert(id.clone()) {
            problems.push(format!("{place}: another step has the same id"));
        }
        let input = step.get("input").cloned().unwrap_or(Value::Object(Map::new()));
        let (condition, each) = (step.get("if").cloned(), step.get("each").cloned());
        let parts = [
            ("input", Some(&input)),
            ("if", condition.as_ref()),
            ("each", each.as_ref()),
        ];
        for (name, part) in parts {
            let Some(part) = part else { continue };
            if let Err(error) = input::check(part, &format!("{place}.{name}")) {
                problems.push(error.to_string());
            }
            if name != "input" && mentions_secrets(part) {
                problems.push(format!("{place}.{name}: secrets can be used in inputs only"));
            }
        }
        steps.push(Step {
            name: text("name").unwrap_or_else(|| id.clone()),
            id,
            action,
            input,
            condition,
            each,
        });
    }
    steps
}

/// Whether an expression somewhere in it speaks of secrets.
fn mentions_secrets(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some(at) = rest.find("${{").or_else(|| rest.find("{%")) {
                let inside = &rest[at..];
                let end = inside
                    .find("}}")
                    .or_else(|| inside.find("%}"))
                    .unwrap_or(inside.len());
                let words = inside[..end].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
                if words
                    .into_iter()
                    .any(|word| word == "secrets" || word.starts_with("secrets."))
                {
                    return true;
                }
                rest = inside.get(2..).unwrap_or("");
            }
            false
        }
        Value::Array(items) => items.iter().any(mentions_secrets),
        Value::Object(fields) => fields.values().any(mentions_secrets),
        _ => false,
    }
}

/// Whether a condition that was worked out holds, as Backstage judges it: lists by whether they hold something.
pub fn holds(condition: Option<&Value>) -> bool {
    match condition {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is)) => *is,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty() && text != "false",
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(_)) => true,
    }
}

/// What `each` was worked out to be, item by item: `{key, value}`.
pub fn items(each: Option<&Value>) -> Result<Vec<Value>, String> {
    const MOST: usize = 200;
    let items: Vec<Value> = match each {
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(at, value)| serde_json::json!({"key": at.to_string(), "value": value}))
            .collect(),
        Some(Value::Object(fields)) => fields
            .iter()
            .map(|(key, value)| serde_json::json!({"key": key, "value": value}))
            .collect(),
        _ => return Err("each wants a list or a map".to_owned()),
    };
    match items.len() > MOST {
        true => Err(format!("each has more than {MOST} items")),
        false => Ok(items),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sound() -> Value {
        json!({
            "apiVersion": API_VERSION, "kind": "Template",
            "metadata": {"name": "vm", "title": "A machine", "tags": ["vm"],
                "annotations": {"backstage.io/managed-by-location": "url:https://git/x/template.yaml"}},
            "spec": {
                "type": "service", "owner": "team",
                "parameters": [{"title": "Who", "required": ["name"], "properties": {"name": {"type": "string"}}}],
                "steps": [{"id": "log", "action": "debug:log", "input": {"message": "${{ parameters.name }}"}}, {"action": "x:y"}],
                "output": {"links": [{"title": "a", "url": "${{ steps.log.output.url }}"}]},
            },
        })
    }

    #[test]
    fn sound_templates_are_read() {
        let template = Template::read(&sound()).unwrap();
        assert_eq!(
            (template.title.as_str(), template.reference().as_str()),
            ("A machine", "template:default/vm")
        );
        assert_eq!(template.source.as_deref(), Some("url:https://git/x/"));
        assert_eq!(template.steps[1].id, "step-2");
        let unknown = template.unknown_actions(&["debug:log"]);
        assert_eq!(unknown.len(), 1);
        assert!(
            unknown[0].contains("step-2") && unknown[0].contains("x:y"),
            "{unknown:?}"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases: [(&str, Value, &str); 14] = [
            (
                "/apiVersion",
                json!("scaffolder.backstage.io/v1beta2"),
                "software templates are",
            ),
            ("/spec/steps", json!([]), "no steps"),
            ("/spec/steps/0/action", json!(null), "has no action"),
            ("/spec/steps/1/id", json!("log"), "same id"),
            ("/spec/steps/0/id", json!("a b"), "an id has"),
            (
                "/spec/steps/0/if",
                json!("${{ secrets.x }}"),
                "secrets can be used in inputs only",
            ),
            (
                "/spec/output/text",
                json!("{% if secrets.x %}a{% endif %}"),
                "cannot be shown",
            ),
            (
                "/spec/steps/0/input/message",
                json!("${{ parameters."),
                "spec.steps[0] (log).input.message",
            ),
            (
                "/spec/parameters/0/when",
                json!(["a"]),
                "spec.parameters[0].when: a condition is",
            ),
            (
                "/spec/parameters/0/when",
                json!("${{ secrets.x }}"),
                "secrets can be used in inputs only",
            ),
            (
                "/spec/parameters/0/when",
                json!("${{ parameters.x"),
                "spec.parameters[0].when",
            ),
            (
                "/spec/steps/0/backstage:permissions",
                json!({"tags": ["admin"]}),
                "spec.steps[0].backstage:permissions",
            ),
            (
                "/spec/parameters/0/properties/name/backstage:featureFlag",
                json!("beta"),
                "spec.parameters[0].properties.name.backstage:featureFlag",
            ),
            (
                "/spec/parameters/0/properties/name/pattern",
                json!("("),
                "spec.parameters[0].properties.name.pattern",
            ),
        ];
        for (pointer, value, expected) in cases {
            let mut object = sound();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap().as_object_mut().map_or_else(
                || panic!("{pointer}"),
                |fields| fields.insert(key.to_owned(), value),
            );
            let problems = Template::read(&object).unwrap_err().join("; ");
            assert!(problems.contains(expected), "{pointer}: {problems}");
        }
    }

    #[test]
    fn conditions_are_judged() {
        for (value, expected) in [
            (Some(json!(true)), true),
            (Some(json!("x")), true),
            (Some(json!("")), false),
            (Some(json!([])), false),
            (Some(json!([0])), true),
            (Some(json!({})), true),
            (Some(json!(0)), false),
            (None, false),
        ] {
            assert_eq!(holds(value.as_ref()), expected, "{value:?}");
        }
    }
}
