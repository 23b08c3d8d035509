//! Fields that a definition keeps without knowing them: whoever writes one should hear of it.

use serde_json::Value;

use super::Definition;
use crate::facts::{Form, Table};

/// So many are told at once.
const MOST: usize = 10;

impl Definition {
    /// Paths of fields that are not listed where others are, such as `spec.rules.typo`. Structures without any listed field are free,
    /// and nothing in them is told.
    pub fn unlisted(&self, object: &Value) -> Vec<String> {
        let Ok(table) = Table::parse(self.source.facts) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        look(&table, &Form::Type(self.kind.kind), object, "", &mut found);
        found
    }
}

fn look(table: &Table<'_>, form: &Form<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    if found.len() >= MOST {
        return;
    }
    match (form, value) {
        (Form::List(element), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                look(table, element, item, &format!("{path}[{at}]"), found);
            }
        }
        (Form::Map(element), Value::Object(fields)) => {
            for (name, item) in fields {
                look(table, element, item, &below(path, name), found);
            }
        }
        (Form::Type(name), Value::Object(fields)) => {
            let Some(facts) = table.types.get(name) else {
                return;
            };
            for (name, item) in fields {
                let at = below(path, name);
                match facts.fields.iter().find(|field| field.name == name) {
                    Some(field) => look(table, &field.form, item, &at, found),
                    None if facts.open && !facts.fields.is_empty() => found.push(at),
                    // What is neither listed nor kept is told by the schema.
                    None => {}
                }
            }
        }
        _ => {}
    }
}

fn below(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}
