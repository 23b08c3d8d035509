//! From CustomResourceDefinitions to the facts that are kept of them.
//!
//! Everything that a schema says is translated or refused, so that a new version cannot bring a fact that is silently
//! lost. A structure that is used in several places is written once; it is named after the field that it was first found
//! in.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use fairway_api::facts::{PERCENT, QUANTITY};
use serde_json::{Map, Value};

/// Takes upstream's sentences out of a schema.
pub(super) fn drop_descriptions(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.shift_remove("description");
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(drop_descriptions),
            ("items" | "additionalProperties", value) => drop_descriptions(value),
            _ => {}
        }
    }
}

#[derive(Default)]
pub(super) struct Writer {
    pub(super) kinds: String,
    pub(super) types: String,
    /// Names of structures that are written, by their JSON.
    known: HashMap<String, String>,
    names: HashMap<String, usize>,
}

impl Writer {
    /// Adds a kind. Its first version is the stored one; others have the same form.
    pub(super) fn kind(&mut self, crd: &Value) -> Result<()> {
        let spec = &crd["spec"];
        let [version, others @ ..] = spec["versions"].as_array().map_or(&[][..], Vec::as_slice) else {
            bail!("{} does not have any version", crd["metadata"]["name"]);
        };
        let mut also = Vec::new();
        for other in others {
            // Columns and subresources are those of the stored version.
            if other.get("schema") != version.get("schema") {
                bail!(
                    "the schema differs between versions of {}",
                    crd["metadata"]["name"]
                );
            }
            also.push(text(other, "name")?);
        }
        let names = &spec["names"];
        let mut line = format!(
            "kind {} {} {} {} {}",
            text(names, "kind")?,
            text(names, "plural")?,
            text(names, "singular")?,
            text(spec, "scope")?,
            text(version, "name")?
        );
        if !also.is_empty() {
            line += &format!(" also={}", also.join(","));
        }
        let short: Vec<&str> = names["shortNames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !short.is_empty() {
            line += &format!(" short={}", short.join(","));
        }
        let categories: Vec<&str> = names["categories"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !categories.is_empty() {
            line += &format!(" in={}", categories.join(","));
        }
        if version["subresources"].get("status").is_some() {
            line += " status";
        }
        self.kinds += &line;
        self.kinds.push('\n');
        for column in version["additionalPrinterColumns"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.kinds += &format!(
                "column {} {} {} {}\n",
                text(column, "type")?,
                column["priority"].as_i64().unwrap_or(0),
                text(column, "jsonPath")?,
                text(column, "name")?
            );
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        let kind = text(names, "kind")?;
        // Two kinds may have the same fields; each has its own type, which has the kind's name.
        self.reserve(kind);
        self.write(kind.to_owned(), schema)
            .with_context(|| kind.to_owned())?;
        Ok(())
    }

    /// The name of an object's type, which is written if it is not yet.
    fn structure(&mut self, wish: &str, schema: &Value) -> Result<String> {
        let identity = schema.to_string();
        if let Some(name) = self.known.get(&identity) {
            return Ok(name.clone());
        }
        let count = self.names.entry(wish.to_owned()).or_default();
        *count += 1;
        let name = if *count == 1 {
            wish.to_owned()
        } else {
            format!("{wish}{count}")
        };
        self.known.insert(identity, name.clone());
        self.write(name, schema)
    }

    /// Keeps a name for a kind.
    pub(super) fn reserve(&mut self, kind: &str) {
        self.names.entry(kind.to_owned()).or_insert(1);
    }

    fn write(&mut self, name: String, schema: &Value) -> Result<String> {
        let object = object(schema)?;
        let mut line = format!("type {name}");
        let mut more = Map::new();
        for (key, value) in object {
            match (key.as_str(), value) {
                ("type" | "properties" | "required", _) => {}
                ("nullable", Value::Bool(true)) => line += " nullable",
                ("x-kubernetes-map-type", Value::String(kind)) if kind == "atomic" => line += " atomic",
                ("x-kubernetes-preserve-unknown-fields", Value::Bool(true)) => line += " open",
                _ => {
                    more.insert(key.clone(), value.clone());
                }
            }
        }
        line += &written(&more);
        line.push('\n');
        let required: Vec<&str> = object
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields = object.get("properties").and_then(Value::as_object);
        let mut lines = line;
        for (field, schema) in fields.into_iter().flatten() {
            let (form, rules) = self.form(field, schema).with_context(|| field.clone())?;
            let mark = if required.contains(&field.as_str()) {
                "!"
            } else {
                ""
            };
            lines += &format!("  {field}{mark} {form}{rules}\n");
        }
        self.types += &lines;
        Ok(name)
    }

    fn form(&mut self, field: &str, schema: &Value) -> Result<(String, String)> {
        let map = object(schema)?;
        let mut rules = String::new();
        let mut pattern = String::new();
        let mut expression = String::new();
        let mut left: Map<String, Value> = map.clone();
        let mut more = Map::new();
        let mut take = |key: &str| left.shift_remove(key);
        let kind = take("type");
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        let form = match kind {
            "object" if map.contains_key("properties") => {
                // What else there is belongs to the type.
                return Ok((self.structure(&capital(field), schema)?, String::new()));
            }
            "object" if map.contains_key("additionalProperties") => {
                let element = take("additionalProperties").unwrap_or_default();
                let (form, rules) = self.form(field, &element)?;
                if !rules.is_empty() {
                    more.insert("additionalProperties".to_owned(), beside_form(&element)?);
                }
                format!("{{}}{form}")
            }
            "object" if take("x-kubernetes-preserve-unknown-fields").is_some() => "open".to_owned(),
            "object" => "object".to_owned(),
            "array" => {
                let element = take("items").unwrap_or_default();
                let (form, rules) = self.form(field, &element)?;
                if !rules.is_empty() {
                    more.insert("items".to_owned(), beside_form(&element)?);
                }
                format!("[]{form}")
            }
            "string" if map.get("pattern").and_then(Value::as_str) == Some(PERCENT) => {
                take("pattern");
                "percent".to_owned()
            }
            "string" => match take("format").as_ref().and_then(Value::as_str) {
                None => "string".to_owned(),
                Some("date-time") => "time".to_owned(),
                Some(other) => {
                    more.insert("format".to_owned(), other.into());
                    "string".to_owned()
                }
            },
            "integer" => match take("format").as_ref().and_then(Value::as_str) {
                None => "integer".to_owned(),
                Some(bits @ ("int64" | "int32")) => bits.to_owned(),
                Some(other) => bail!("format {other}"),
            },
            "boolean" => "boolean".to_owned(),
            "number" => "number".to_owned(),
            "" if take("x-kubernetes-int-or-string").is_some() => {
                let either = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
                if take("anyOf") != Some(either) {
                    bail!("int-or-string without its usual anyOf");
                }
                match take("pattern").as_ref().and_then(Value::as_str) {
                    None => "int-or-string".to_owned(),
                    Some(QUANTITY) => "quantity".to_owned(),
                    Some(other) => bail!("int-or-string with pattern {other}"),
                }
            }
            "" if take("x-kubernetes-preserve-unknown-fields").is_some() => "any".to_owned(),
            other => bail!("type {other:?}"),
        };
        for (key, value) in left {
            match (key.as_str(), &value) {
                ("x-kubernetes-list-type" | "x-kubernetes-map-type", Value::String(kind))
                    if kind == "atomic" =>
                {
                    rules += " atomic";
                }
                ("enum", Value::Array(values)) if values.iter().all(is_word) => {
                    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
                    rules += &format!(" enum={}", values.join("|"));
                }
                ("x-kubernetes-list-type", Value::String(kind)) if kind == "set" => rules += " set",
                ("x-kubernetes-list-type", Value::String(kind)) if kind == "map" => {}
                ("x-kubernetes-list-map-keys", Value::Array(keys)) => {
                    let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
                    rules += &format!(" key={}", keys.join(","));
                }
                ("nullable", Value::Bool(true)) => rules += " nullable",
                ("maxItems", Value::Number(limit)) => rules += &format!(" items={limit}"),
                ("minimum", Value::Number(limit)) => rules += &format!(" least={limit}"),
                ("maximum", Value::Number(limit)) => rules += &format!(" most={limit}"),
                ("default", Value::String(text)) if !text.contains(' ') => {
                    rules += &format!(" default={text}");
                }
                ("x-kubernetes-validations", Value::Array(checks)) if checks.len() == 1 => {
                    match (text(&checks[0], "message"), text(&checks[0], "rule")) {
                        (Ok(message), Ok(rule)) if checks[0].as_object().is_some_and(|it| it.len() == 2) => {
                            expression = format!(" check={message} if not {rule}");
                        }
                        _ => {
                            more.insert(key, value);
                        }
                    }
                }
                ("minLength", Value::Number(limit)) => rules += &format!(" min={limit}"),
                ("maxLength", Value::Number(limit)) => rules += &format!(" max={limit}"),
                ("pattern", Value::String(expression)) => pattern = format!(" pattern={expression}"),
                _ => {
                    more.insert(key, value);
                }
            }
        }
        // One of these can be the last; the others are then said in JSON.
        let last = [!pattern.is_empty(), !expression.is_empty(), !more.is_empty()];
        if last.iter().filter(|it| **it).count() > 1 {
            for key in ["pattern", "x-kubernetes-validations"] {
                if let Some(value) = map.get(key) {
                    more.insert(key.to_owned(), value.clone());
                }
            }
            return Ok((form, rules + &written(&more)));
        }
        Ok((form, rules + &pattern + &expression + &written(&more)))
    }
}

/// What has no word, at the end of a line.
fn written(more: &Map<String, Value>) -> String {
    if more.is_empty() {
        String::new()
    } else {
        format!(" more={}", Value::Object(more.clone()))
    }
}

/// What is said of elements beside their form.
fn beside_form(element: &Value) -> Result<Value> {
    let mut rules = object(element)?.clone();
    for part in ["properties", "items", "additionalProperties"] {
        if rules.contains_key(part) {
            bail!("elements have rules and {part}: {element}");
        }
    }
    rules.shift_remove("type");
    Ok(Value::Object(rules))
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|it| !it.contains([' ', '|']))
}

fn capital(field: &str) -> String {
    let mut letters = field.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn object(schema: &Value) -> Result<&Map<String, Value>> {
    schema.as_object().context("a schema is an object")
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value[field].as_str().with_context(|| format!("no text {field}"))
}
