//! Asking in the terminal: one question after the other, each judged before the next.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use fairway_portal_template::answers;
use fairway_portal_template::schema;
use fairway_portal_template::template::Template;
use serde_json::{Map, Value};

/// Whether somebody is there to answer.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Asks what was not answered on the command line. Questions that an answer leads to are asked after it.
pub(super) fn missing(
    template: &Template,
    given: &mut Map<String, Value>,
    secrets: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let secret = answers::secret_questions(template);
    for page in &template.pages {
        println!("\n{}", page.title);
        ask_schema(&page.schema, given, secrets, &secret, 6)?;
    }
    println!();
    Ok(())
}

fn ask_schema(
    asked: &Value,
    given: &mut Map<String, Value>,
    secrets: &mut BTreeMap<String, String>,
    secret: &std::collections::BTreeSet<String>,
    depth: usize,
) -> anyhow::Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let required: Vec<&str> = asked["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, property) in asked["properties"].as_object().into_iter().flatten() {
        let is_known =
            given.contains_key(name) || secrets.contains_key(name) || property.get("const").is_some();
        if is_known {
            continue;
        }
        let answer = question(
            name,
            property,
            required.contains(&name.as_str()),
            secret.contains(name),
        )?;
        match answer {
            Some(Value::String(text)) if secret.contains(name) => {
                secrets.insert(name.clone(), text);
            }
            Some(answer) => {
                given.insert(name.clone(), answer);
            }
            None => {}
        }
    }
    for (name, inner) in asked["dependencies"].as_object().into_iter().flatten() {
        let Some(answer) = given.get(name).cloned() else {
            continue;
        };
        let options = inner["oneOf"].as_array().cloned().unwrap_or_default();
        let chosen = options
            .into_iter()
            .find(|option| schema::check(&option["properties"][name], &answer).is_empty());
        if let Some(chosen) = chosen {
            ask_schema(&chosen, given, secrets, secret, depth - 1)?;
        }
    }
    Ok(())
}

fn question(
    name: &str,
    property: &Value,
    is_required: bool,
    is_secret: bool,
) -> anyhow::Result<Option<Value>> {
    let title = property["title"].as_str().unwrap_or(name);
    let default = property.get("default");
    let kind = property["type"].as_str().unwrap_or("string");
    let mut hint = Vec::new();
    if let Some(options) = property["enum"].as_array() {
        let options: Vec<String> = options.iter().map(shown).collect();
        hint.push(options.join("/"));
    } else if kind == "boolean" {
        hint.push("yes/no".to_owned());
    } else if kind == "array" {
        hint.push("separated by commas".to_owned());
    }
    if let Some(default) = default {
        hint.push(format!("default {}", shown(default)));
    } else if !is_required {
        hint.push("optional".to_owned());
    }
    loop {
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!(" ({})", hint.join("; "))
        };
        print!("  {title}{hint}: ");
        std::io::stdout()
            .flush()
            .context("the terminal cannot be written to")?;
        let line = read_line(is_secret)?;
        let text = line.trim();
        if text.is_empty() {
            match (default, is_required) {
                (Some(default), _) => return Ok(Some(default.clone())),
                (None, false) => return Ok(None),
                (None, true) => {
                    println!("    an answer is required");
                    continue;
                }
            }
        }
        let answer = typed(kind, text);
        let complaints = schema::check(property, &answer);
        if complaints.is_empty() {
            return Ok(Some(answer));
        }
        for complaint in complaints {
            println!("    {complaint}");
        }
    }
}

fn typed(kind: &str, text: &str) -> Value {
    match kind {
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => Value::String(text.to_owned()),
        },
        "integer" | "number" => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        "array" => text
            .split(',')
            .map(|item| Value::String(item.trim().to_owned()))
            .collect(),
        "object" => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        _ => Value::String(text.to_owned()),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A line; one that is secret is not shown while it is typed.
fn read_line(is_secret: bool) -> anyhow::Result<String> {
    let input = std::io::stdin();
    let before = match is_secret {
        true => rustix::termios::tcgetattr(&input).ok(),
        false => None,
    };
    if let Some(before) = &before {
        let mut silent = before.clone();
        silent.local_modes.remove(rustix::termios::LocalModes::ECHO);
        let _ = rustix::termios::tcsetattr(&input, rustix::termios::OptionalActions::Now, &silent);
    }
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    if let Some(before) = &before {
        let _ = rustix::termios::tcsetattr(&input, rustix::termios::OptionalActions::Now, before);
        println!();
    }
    match read.context("the answer cannot be read")? {
        0 => bail!("the input has ended before all questions were answered"),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_typed_has_the_type_of_its_question() {
        for (kind, text, expected) in [
            ("boolean", "Yes", json!(true)),
            ("boolean", "perhaps", json!("perhaps")),
            ("integer", "12", json!(12)),
            ("integer", "x", json!("x")),
            ("array", "a, b", json!(["a", "b"])),
            ("string", "true", json!("true")),
        ] {
            assert_eq!(typed(kind, text), expected, "{kind} {text}");
        }
    }
}
