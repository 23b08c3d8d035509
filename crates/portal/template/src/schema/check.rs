//! Whether a value fits a schema, and what is wrong with it.

use serde_json::{Map, Value};

use super::{formats, pattern, pickers};

/// How much work one check may be.
const MAX_WORK: usize = 200_000;
/// How much is said at most.
const MAX_COMPLAINTS: usize = 50;
/// How deeply schemas may lead on, references included.
const MAX_DEPTH: usize = 60;

/// One thing that is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where: `disk.size`; empty for the whole.
    pub path: String,
    /// What.
    pub message: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// What is wrong with a value by a schema.
pub fn check(schema: &Value, value: &Value) -> Vec<Complaint> {
    check_within(schema, schema, value)
}

/// The same by a part of a page, whose `$ref` are the page's.
pub fn check_within(root: &Value, schema: &Value, value: &Value) -> Vec<Complaint> {
    let mut checker = Checker {
        root,
        work: MAX_WORK,
        found: Vec::new(),
    };
    checker.value(schema, value, "", MAX_DEPTH);
    checker.found
}

struct Checker<'s> {
    root: &'s Value,
    work: usize,
    found: Vec<Complaint>,
}

impl<'s> Checker<'s> {
    fn say(&mut self, path: &str, message: impl Into<String>) {
        if self.found.len() < MAX_COMPLAINTS {
            self.found.push(Complaint {
                path: path.to_owned(),
                message: message.into(),
            });
        }
    }

    /// Whether a value fits, without saying why not.
    fn fits(&mut self, schema: &'s Value, value: &Value, depth: usize) -> bool {
        let before = std::mem::take(&mut self.found);
        self.value(schema, value, "", depth);
        let fits = self.found.is_empty();
        self.found = before;
        fits
    }

    fn value(&mut self, schema: &'s Value, value: &Value, path: &str, depth: usize) {
        if depth == 0 || self.work == 0 {
            self.say(path, "the questions are too complex to judge this");
            return;
        }
        self.work -= 1;
        let fields = match schema {
            Value::Bool(true) => return,
            Value::Object(fields) => fields,
            _ => return self.say(path, "no value is allowed here"),
        };
        if let Some(why) = pickers::complaint(fields, value) {
            self.say(path, why);
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let found = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            return match found {
                Some(found) => self.value(found, value, path, depth - 1),
                None => self.say(
                    path,
                    format!("the questions refer to {reference}, which is not there"),
                ),
            };
        }
        self.plain(fields, value, path);
        match value {
            Value::String(text) => self.text(fields, text, path),
            Value::Number(_) => self.number(fields, value.as_f64().unwrap_or(0.0), path),
            Value::Array(items) => self.list(fields, items, path, depth),
            Value::Object(entries) => self.map(fields, entries, path, depth),
            _ => {}
        }
        self.combined(fields, value, path, depth);
    }

    fn plain(&mut self, fields: &'s Map<String, Value>, value: &Value, path: &str) {
        let of_type = |wanted: &str| match wanted {
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        };
        match fields.get("type") {
            Some(Value::String(wanted)) if !of_type(wanted) => {
                self.say(path, format!("it must be {}", article(wanted)));
            }
            Some(Value::Array(several)) if !several.iter().filter_map(Value::as_str).any(of_type) => {
                let names: Vec<&str> = several.iter().filter_map(Value::as_str).map(article).collect();
                self.say(path, format!("it must be {}", names.join(" or ")));
            }
            _ => {}
        }
        if let Some(options) = fields.get("enum").and_then(Value::as_array)
            && !options.iter().any(|option| same(option, value))
        {
            let shown: Vec<String> = options.iter().take(20).map(shown).collect();
            self.say(path, format!("it must be one of {}", shown.join(", ")));
        }
        if let Some(constant) = fields.get("const")
            && !same(constant, value)
        {
            self.say(path, format!("it must be {}", shown(constant)));
        }
    }

    fn text(&mut self, fields: &'s Map<String, Value>, text: &str, path: &str) {
        let length = text.chars().count();
        let limit = |key: &str| {
            fields
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|it| usize::try_from(it).ok())
        };
        if let Some(least) = limit("minLength").filter(|least| length < *least) {
            self.say(path, format!("it must have at least {least} characters"));
        }
        if let Some(most) = limit("maxLength").filter(|most| length > *most) {
            self.say(path, format!("it must have at most {most} characters"));
        }
        if let Some(source) = fields.get("pattern").and_then(Value::as_str) {
            match pattern(source) {
                Ok(known) if known.is_match(text) => {}
                Ok(_) => {
                    // Authors say in words what the pattern means.
                    let words = fields.get("ui:help").or_else(|| fields.get("ui:patternError"));
                    match words.and_then(Value::as_str) {
                        Some(words) => self.say(path, format!("it does not have the wanted form: {words}")),
                        None => self.say(path, format!("it must match {source}")),
                    }
                }
                Err(why) => self.say(path, why),
            }
        }
        if let Some(format) = fields.get("format").and_then(Value::as_str)
            && formats::matches(format, text) == Some(false)
        {
            self.say(path, format!("it must be a valid {format}"));
        }
    }

    fn number(&mut self, fields: &'s Map<String, Value>, number: f64, path: &str) {
        let limit = |key: &str| fields.get(key).and_then(Value::as_f64);
        if let Some(least) = limit("minimum").filter(|least| number < *least) {
            self.say(path, format!("it must be at least {least}"));
        }
        if let Some(most) = limit("maximum").filter(|most| number > *most) {
            self.say(path, format!("it must be at most {most}"));
        }
        if let Some(least) = limit("exclusiveMinimum").filter(|least| number <= *least) {
            self.say(path, format!("it must be more than {least}"));
        }
        if let Some(most) = limit("exclusiveMaximum").filter(|most| number >= *most) {
            self.say(path, format!("it must be less than {most}"));
        }
        if let Some(step) = limit("multipleOf").filter(|step| *step > 0.0) {
            let quotient = number / step;
            if (quotient - quotient.round()).abs() > 1e-9 {
                self.say(path, format!("it must be a multiple of {step}"));
            }
        }
    }

    fn list(&mut self, fields: &'s Map<String, Value>, items: &[Value], path: &str, depth: usize) {
        let limit = |key: &str| {
            fields
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|it| usize::try_from(it).ok())
        };
        if let Some(least) = limit("minItems").filter(|least| items.len() < *least) {
            self.say(path, format!("it must have at least {least} items"));
        }
        if let Some(most) = limit("maxItems").filter(|most| items.len() > *most) {
            self.say(path, format!("it must have at most {most} items"));
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            // Compared as text: lists of answers are short, but nobody promises it.
            let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            if texts.windows(2).any(|pair| pair[0] == pair[1]) {
                self.say(path, "its items must be different");
            }
        }
        let rest = match fields.get("items") {
            Some(Value::Array(each)) => {
                for (at, (schema, item)) in each.iter().zip(items).enumerate() {
                    self.value(schema, item, &format!("{path}[{at}]"), depth - 1);
                }
                fields.get("additionalItems").map(|schema| (schema, each.len()))
            }
            Some(schema) => Some((schema, 0)),
            None => None,
        };
        if let Some((schema, from)) = rest {
            for (at, item) in items.iter().enumerate().skip(from) {
                self.value(schema, item, &format!("{path}[{at}]"), depth - 1);
            }
        }
        if let Some(schema) = fields.get("contains")
            && !items.iter().any(|item| self.fits(schema, item, depth - 1))
        {
            self.say(path, "it does not have an item that it must have");
        }
    }

    fn map(
        &mut self,
        fields: &'s Map<String, Value>,
        entries: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        let inner = |key: &str| match path.is_empty() {
            true => key.to_owned(),
            false => format!("{path}.{key}"),
        };
        for name in names(fields.get("required")) {
            if !entries.contains_key(name) {
                self.say(&inner(name), "an answer is required");
            }
        }
        let properties = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (key, value) in entries {
            let mut known = false;
            if let Some(schema) = properties.and_then(|all| all.get(key)) {
                known = true;
                self.value(schema, value, &inner(key), depth - 1);
            }
            for (source, schema) in patterns.into_iter().flatten() {
                if pattern(source).is_ok_and(|pattern| pattern.is_match(key)) {
                    known = true;
                    self.value(schema, value, &inner(key), depth - 1);
                }
            }
            match fields.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => self.say(&inner(key), "nobody asks for it"),
                Some(schema @ Value::Object(_)) if !known => {
                    self.value(schema, value, &inner(key), depth - 1);
                }
                _ => {}
            }
        }
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            for (key, then) in fields
                .get(keyword)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                if !entries.contains_key(key) {
                    continue;
                }
                match then {
                    Value::Array(_) => {
                        for name in names(Some(then)).filter(|name| !entries.contains_key(*name)) {
                            self.say(
                                &inner(name),
                                format!("an answer is required because there is one to {key}"),
                            );
                        }
                    }
                    schema => self.value(schema, &Value::Object(entries.clone()), path, depth - 1),
                }
            }
        }
    }

    fn combined(&mut self, fields: &'s Map<String, Value>, value: &Value, path: &str, depth: usize) {
        let several = |key: &str| fields.get(key).and_then(Value::as_array);
        for schema in several("allOf").into_iter().flatten() {
            self.value(schema, value, path, depth - 1);
        }
        for (keyword, wanted) in [("anyOf", None), ("oneOf", Some(1))] {
            let Some(options) = several(keyword) else { continue };
            let fitting = options
                .iter()
                .filter(|schema| self.fits(schema, value, depth - 1))
                .count();
            match (fitting, wanted) {
                (0, _) => {
                    // The one that speaks of this answer says best what is wrong; one alone does so anyway.
                    let closest = options.iter().find(|schema| chosen(schema, value));
                    match closest.or(options.first().filter(|_| options.len() == 1)) {
                        Some(schema) => self.value(schema, value, path, depth - 1),
                        None => self.say(path, "it fits none of what is allowed"),
                    }
                }
                (count, Some(wanted)) if count > wanted => {
                    self.say(path, "it fits more than one of what is allowed");
                }
                _ => {}
            }
        }
        if let Some(schema) = fields.get("not")
            && self.fits(schema, value, depth - 1)
        {
            self.say(path, "it must not be this");
        }
        if let Some(condition) = fields.get("if") {
            let branch = match self.fits(condition, value, depth - 1) {
                true => "then",
                false => "else",
            };
            if let Some(schema) = fields.get(branch) {
                self.value(schema, value, path, depth - 1);
            }
        }
    }
}

/// Whether the questions that a choice depends on are answered as this option wants: `dependencies` are written so.
fn chosen(schema: &Value, value: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut selectors = properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("const").is_some() || schema.get("enum").is_some())
        .peekable();
    selectors.peek().is_some()
        && selectors.all(|(key, schema)| {
            let Some(given) = value.get(key) else {
                return schema.get("const").is_none();
            };
            let options = schema.get("enum").and_then(Value::as_array);
            schema.get("const").is_some_and(|only| same(only, given))
                || options.is_some_and(|all| all.iter().any(|option| same(option, given)))
        })
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Whether two values are the same to JSON Schema: 1 and 1.0 are.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn article(kind: &str) -> &str {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        "null" => "null",
        other => other,
    }
}
