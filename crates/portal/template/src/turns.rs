//! How often a step is done: once, not at all, or once for each item of `each` whose condition holds.
//!
//! Without `each` the condition of a step says whether it is done. With it the condition is asked again for each item and sees it; only a
//! plain `false` leaves out the whole step, whatever there is to go through. A step of whose items none is wanted is done, with nothing to
//! do: it has an output, which is empty.

use serde_json::{Map, Value};

use crate::expression::Variables;
use crate::input;
use crate::template::{Step, holds, items};

/// One repetition of a step, or the only one.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// What expressions know as `each`; none if the step is not repeated.
    pub each: Option<Value>,
    /// Whether it is done.
    pub is_wanted: bool,
}

impl Turn {
    /// What expressions see in it.
    #[must_use]
    pub fn variables(&self, variables: &Variables) -> Variables {
        match &self.each {
            Some(item) => variables.clone().with("each", item),
            None => variables.clone(),
        }
    }
}

/// The repetitions of a step; none if it is left out as a whole.
pub fn turns(step: &Step, variables: &Variables) -> Result<Option<Vec<Turn>>, String> {
    let is_wanted = |variables: &Variables| match &step.condition {
        None => Ok(true),
        Some(condition) => input::resolve(condition, variables, "if")
            .map(|value| holds(value.as_ref()))
            .map_err(|error| error.to_string()),
    };
    let Some(each) = &step.each else {
        let once = Turn {
            each: None,
            is_wanted: true,
        };
        return Ok(is_wanted(variables)?.then(|| vec![once]));
    };
    if step.condition == Some(Value::Bool(false)) {
        return Ok(None);
    }
    let over = input::resolve(each, variables, "each").map_err(|error| error.to_string())?;
    let turns = items(over.as_ref())?.into_iter().map(|item| {
        let mut turn = Turn {
            each: Some(item),
            is_wanted: true,
        };
        turn.is_wanted = is_wanted(&turn.variables(variables))?;
        Ok(turn)
    });
    turns.collect::<Result<_, String>>().map(Some)
}

/// Adds the output of one repetition to that of the step, in which each output is a list with an item for each repetition that was done.
pub fn gather(outputs: &mut Map<String, Value>, output: Value) {
    let Value::Object(output) = output else {
        return;
    };
    for (key, value) in output {
        let list = outputs.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Template;

    fn step(fields: &Value) -> Step {
        let mut step = json!({"id": "s", "action": "debug:log"});
        for (key, value) in fields.as_object().unwrap() {
            step[key] = value.clone();
        }
        let template = json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [step]},
        });
        Template::read(&template).unwrap().steps.remove(0)
    }

    /// What is done, as keys with their state; `left out` is a step that is not done at all.
    fn told(fields: &Value) -> String {
        let parameters = json!({
            "on": true, "off": false, "none": [], "word": "x",
            "list": [{"name": "a", "enabled": true}, {"name": "b", "enabled": false}, {"name": "c", "enabled": "yes"}],
            "map": {"k": 1, "l": 0},
        });
        let variables = Variables::default().with("parameters", &parameters);
        match turns(&step(fields), &variables) {
            Err(why) => format!("error: {why}"),
            Ok(None) => "left out".to_owned(),
            Ok(Some(turns)) => {
                let shown = turns.iter().map(|turn| {
                    let key = turn
                        .each
                        .as_ref()
                        .map_or("once", |each| each["key"].as_str().unwrap());
                    format!("{}{key}", if turn.is_wanted { "" } else { "not " })
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn a_condition_is_asked_once_or_for_each_item() {
        for (fields, expected) in [
            (json!({}), "once"),
            (json!({"if": "${{ parameters.on }}"}), "once"),
            (json!({"if": "${{ parameters.off }}"}), "left out"),
            (json!({"if": "${{ parameters.gone }}"}), "left out"),
            (json!({"if": false}), "left out"),
            (json!({"if": true}), "once"),
            // `each` is nothing where a step is not repeated.
            (json!({"if": "${{ each.value }}"}), "left out"),
            (json!({"each": "${{ parameters.list }}"}), "0 1 2"),
            (
                json!({"each": "${{ parameters.list }}", "if": "${{ each.value.enabled }}"}),
                "0 not 1 2",
            ),
            (
                json!({"each": ["a", "b"], "if": "${{ each.value === 'b' }}"}),
                "not 0 1",
            ),
            (
                json!({"each": "${{ parameters.map }}", "if": "${{ each.value }}"}),
                "k not l",
            ),
            (
                json!({"each": "${{ parameters.map }}", "if": "${{ each.key === 'l' }}"}),
                "not k l",
            ),
            // What holds for none leaves out each of them, and not the step: its output is there for those that come after.
            (json!({"each": ["a"], "if": "${{ parameters.off }}"}), "not 0"),
            (json!({"each": ["a"], "if": false}), "left out"),
            (json!({"each": "${{ parameters.none }}"}), ""),
            (
                json!({"each": "${{ parameters.none }}", "if": "${{ parameters.off }}"}),
                "",
            ),
            // What cannot be gone through is not looked at where the step is left out.
            (json!({"each": "${{ parameters.word }}", "if": false}), "left out"),
            (
                json!({"each": "${{ parameters.word }}"}),
                "error: each wants a list or a map",
            ),
            (
                json!({"each": "${{ parameters.gone }}"}),
                "error: each wants a list or a map",
            ),
        ] {
            assert_eq!(told(&fields), expected, "{fields}");
        }
    }

    #[test]
    fn outputs_of_repetitions_are_lists() {
        let mut outputs = Map::new();
        for output in [
            json!({"url": "a", "n": 1}),
            Value::Null,
            json!({"url": "b"}),
            json!({}),
        ] {
            gather(&mut outputs, output);
        }
        assert_eq!(Value::Object(outputs), json!({"url": ["a", "b"], "n": [1]}));
    }
}
