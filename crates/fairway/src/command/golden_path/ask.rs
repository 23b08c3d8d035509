//! Asking in the terminal: one question after the other, each judged before the next.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use fairway_portal_template::asking::{self, Question};
use fairway_portal_template::template::Template;
use fairway_portal_template::{answers, pages, schema};
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
    for (at, page) in template.pages.iter().enumerate() {
        // Which pages come is for the answers of those before to say.
        let asked = pages::asked_so_far(template, given);
        if !asked.is_shown.get(at).copied().unwrap_or_default() {
            continue;
        }
        println!("\n{}", page.title);
        let mut asker = Asker {
            root: &page.schema,
            secret: &secret,
            secrets,
        };
        asker.ask(&page.schema, given, &mut question)?;
    }
    println!();
    Ok(())
}

/// How somebody is asked: a part of a page in which references lead on, the question, and whether nobody may see the answer.
type Ask<'a> = dyn FnMut(&Value, &Question, bool) -> anyhow::Result<Option<Value>> + 'a;

struct Asker<'p> {
    root: &'p Value,
    secret: &'p BTreeSet<String>,
    secrets: &'p mut BTreeMap<String, String>,
}

impl Asker<'_> {
    /// Asks one question after the other; after each it is seen anew what answers lead to.
    fn ask(
        &mut self,
        schema: &Value,
        given: &mut Map<String, Value>,
        ask: &mut Ask<'_>,
    ) -> anyhow::Result<()> {
        // What was left without an answer, and whether there had to be one: another answer may ask for it after all.
        let mut left: BTreeMap<String, bool> = BTreeMap::new();
        loop {
            // That there is a secret answer decides, too; what it is does not.
            let mut known = given.clone();
            for (name, secret) in self.secrets.iter() {
                known
                    .entry(name.as_str())
                    .or_insert_with(|| secret.as_str().into());
            }
            let next = asking::questions(schema, &known).into_iter().find(|one| {
                let was_left = left.get(&one.name).is_some_and(|must| *must || !one.is_required);
                !known.contains_key(&one.name) && !was_left
            });
            let Some(next) = next else {
                return Ok(());
            };
            let is_secret = self.secret.contains(&next.name);
            match ask(self.root, &next, is_secret)? {
                Some(Value::String(text)) if is_secret => {
                    self.secrets.insert(next.name, text);
                }
                Some(answer) => {
                    given.insert(next.name, answer);
                }
                None => {
                    left.insert(next.name, next.is_required);
                }
            }
        }
    }
}

fn question(root: &Value, one: &Question, is_secret: bool) -> anyhow::Result<Option<Value>> {
    let (property, is_required) = (&one.schema, one.is_required);
    let title = property["title"].as_str().unwrap_or(&one.name);
    let default = property.get("default");
    let kind = kind(property).unwrap_or("string");
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
        let answer = typed(property, text);
        let complaints = schema::check_within(root, property, &answer);
        if complaints.is_empty() {
            return Ok(Some(answer));
        }
        for complaint in complaints {
            println!("    {complaint}");
        }
    }
}

/// The type that a question declares. One that may also be nothing is of the other.
fn kind(property: &Value) -> Option<&str> {
    match property.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        _ => None,
    }
}

/// A text as the answer that its question wants; what cannot be that stays a text, about which the question complains.
pub(super) fn typed(property: &Value, text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    let read = || serde_json::from_str::<Value>(text).ok();
    match kind(property) {
        Some("boolean") => match text.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => plain(),
        },
        Some("integer" | "number" | "object") => read().unwrap_or_else(plain),
        Some("array") => match read() {
            Some(list @ Value::Array(_)) => list,
            _ if text.is_empty() => Value::Array(Vec::new()),
            _ => text
                .split(',')
                .map(|item| typed(&property["items"], item.trim()))
                .collect(),
        },
        Some(_) => plain(),
        // Only the answers are named, or nothing at all.
        None => {
            let options = property["enum"].as_array().into_iter().flatten();
            let named = options
                .chain(property.get("const"))
                .find(|option| shown(option) == text);
            match named {
                Some(option) => option.clone(),
                None => read().unwrap_or_else(plain),
            }
        }
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
        for (property, text, expected) in [
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"type": "boolean"}), "perhaps", json!("perhaps")),
            (json!({"type": "integer"}), "12", json!(12)),
            (json!({"type": "integer"}), "x", json!("x")),
            (json!({"type": "array"}), "[\"a\", 1]", json!(["a", 1])),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                "a, 2",
                json!(["a", "2"]),
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                "1,2",
                json!([1, 2]),
            ),
            (json!({"type": "array"}), "", json!([])),
            (json!({"type": "object"}), "{\"a\": 1}", json!({"a": 1})),
            (json!({"type": "string"}), "true", json!("true")),
            (json!({"type": "string"}), "123", json!("123")),
            (json!({"type": ["null", "string"]}), "123", json!("123")),
            (json!({"type": "string"}), "a=b", json!("a=b")),
            (json!({"enum": ["1", "2"]}), "1", json!("1")),
            (json!({"enum": [1, 2]}), "1", json!(1)),
            (json!({}), "3", json!(3)),
            (json!({}), "web", json!("web")),
            (Value::Null, "", json!("")),
        ] {
            assert_eq!(typed(&property, text), expected, "{property} {text}");
        }
    }

    /// Somebody who answers from a table, and leaves out what is not in it.
    fn asked(page: &Value, answers: &Value) -> (Vec<String>, Value, BTreeMap<String, String>) {
        let mut said = Vec::new();
        let mut given = Map::new();
        let mut secrets = BTreeMap::new();
        let secret = BTreeSet::from(["token".to_owned()]);
        let mut asker = Asker {
            root: page,
            secret: &secret,
            secrets: &mut secrets,
        };
        let mut answer = |_: &Value, one: &Question, _: bool| {
            said.push(format!("{}{}", one.name, if one.is_required { "!" } else { "" }));
            Ok(answers.get(&one.name).cloned())
        };
        asker.ask(page, &mut given, &mut answer).unwrap();
        (said, Value::Object(given), secrets)
    }

    #[test]
    fn one_question_leads_to_the_next() {
        let page = json!({
            "required": ["kind"],
            "properties": {"kind": {"enum": ["db", "web"]}, "note": {"type": "string"}, "token": {"type": "string"}},
            "if": {"properties": {"kind": {"const": "db"}}},
            "then": {"properties": {"engine": {"$ref": "#/definitions/engine"}}, "required": ["engine", "note"]},
            "dependentSchemas": {"token": {"properties": {"hint": {"type": "string"}}}},
            "definitions": {"engine": {"enum": ["pg", "my"]}},
        });
        for (answers, expected) in [
            (json!({"kind": "web"}), "kind! note token"),
            // The note could be left out until the kind was known; what cannot is asked once, since the question itself insists.
            (json!({"kind": "db", "engine": "pg"}), "kind! note! token engine!"),
            (json!({"kind": "web", "token": "t"}), "kind! note token hint"),
        ] {
            let (said, given, secrets) = asked(&page, &answers);
            assert_eq!(said.join(" "), expected, "{answers}");
            assert_eq!(given.get("token"), None, "a secret is not among the answers");
            assert_eq!(secrets.len(), usize::from(answers.get("token").is_some()));
        }
        let late = json!({"properties": {"note": {}, "kind": {}}, "if": {"required": ["kind"]}, "then": {"required": ["note"]}});
        let (said, ..) = asked(&late, &json!({"kind": "x"}));
        assert_eq!(
            said,
            ["note", "kind", "note!"],
            "an answer asks for what was left out before"
        );
    }
}
