//! JSON schema, drafts 4 to 7, with the words and the order of the library that Helm 3.17 uses (gojsonschema).
//!
//! Written here and not taken from a crate because the messages are what a chart's user sees, and because that library
//! reads schemas its own way: `$ref` hides its siblings, a number with a zero fraction is an integer, unknown formats
//! pass.

use std::collections::HashMap;

use fairway_text_gotemplate::sprig::regexes::compile;
use serde_json::{Map, Value as Json};

use super::errors::{Outcome, Place};
use super::formats;

/// How many times a schema may be applied to a value.
const MAX_STEPS: usize = 1_000_000;
/// How deep schemas may lead into each other.
const MAX_DEPTH: usize = 150;

/// What is wrong with a document; an error if the schema cannot be used.
pub(super) fn check(schema: &Json, document: &Json) -> Result<Vec<String>, String> {
    let mut checker = Checker {
        root: schema,
        steps: 0,
        expressions: HashMap::new(),
    };
    let mut outcome = Outcome::default();
    checker.schema(schema, document, &Place::root(), &mut outcome, 0)?;
    Ok(outcome.errors)
}

struct Checker<'a> {
    root: &'a Json,
    steps: usize,
    expressions: HashMap<String, regex::bytes::Regex>,
}

type Step = Result<(), String>;

fn is_integer(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if is_integer(number) => "integer",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// A value as text that is equal for equal values.
fn canonical(value: &Json) -> String {
    match value {
        Json::Number(number) if is_integer(number) => match number.as_i64() {
            Some(int) => int.to_string(),
            None => format!("{:.0}", number.as_f64().unwrap_or(0.0)),
        },
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(fields) => {
            let mut fields: Vec<(&String, &Json)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}:{}", Json::String((*key).clone()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

fn count(schema: &Map<String, Json>, key: &str) -> Option<usize> {
    let number = schema.get(key)?.as_f64()?;
    (number >= 0.0).then_some(number as usize)
}

fn schemas<'s>(schema: &'s Map<String, Json>, key: &str) -> &'s [Json] {
    schema
        .get(key)
        .and_then(Json::as_array)
        .map_or(&[], Vec::as_slice)
}

impl<'a> Checker<'a> {
    fn schema(
        &mut self,
        schema: &'a Json,
        value: &Json,
        place: &Place<'_>,
        out: &mut Outcome,
        depth: usize,
    ) -> Step {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return Err(format!(
                "at {place}: checking takes more than the limit of {MAX_STEPS} steps or {MAX_DEPTH} nested schemas"
            ));
        }
        let depth = depth + 1;
        let schema = match schema {
            Json::Bool(true) => return Ok(()),
            Json::Bool(false) => {
                out.add(place, "False always fails validation");
                return Ok(());
            }
            Json::Object(schema) => schema,
            other => {
                return Err(format!(
                    "at {place}: a schema must be an object or a boolean, not {}",
                    type_name(other)
                ));
            }
        };
        if let Some(reference) = schema.get("$ref") {
            let target = self.resolve(reference)?;
            return self.schema(target, value, place, out, depth);
        }
        if let Some(expected) = wrong_type(schema, value) {
            out.add(
                place,
                format!("Invalid type. Expected: {expected}, given: {}", type_name(value)),
            );
            return Ok(());
        }
        self.combinations(schema, value, place, out, depth)?;
        match value {
            Json::Number(number) => numbers(schema, number.as_f64().unwrap_or(0.0), place, out),
            Json::Array(items) => self.array(schema, items, place, out, depth)?,
            Json::Object(fields) => self.object(schema, fields, place, out, depth)?,
            _ => {}
        }
        common(schema, value, place, out);
        match value {
            Json::String(text) => self.text(schema, text, place, out)?,
            Json::Object(fields) => {
                let properties = schema.get("properties").and_then(Json::as_object);
                for (name, inner) in properties.into_iter().flatten() {
                    if let Some(value) = fields.get(name) {
                        self.schema(inner, value, &place.field(name), out, depth)?;
                    }
                }
            }
            _ => {}
        }
        out.score += 1;
        Ok(())
    }

    fn resolve(&self, reference: &Json) -> Result<&'a Json, String> {
        let reference = reference.as_str().ok_or("$ref must be of type string")?;
        let Some(pointer) = reference.strip_prefix('#') else {
            // Files are not fetched: a rendering must not depend on what somebody else's server says today.
            let own = self
                .root
                .get("$id")
                .or_else(|| self.root.get("id"))
                .and_then(Json::as_str);
            return match own.filter(|own| *own == reference) {
                Some(_) => Ok(self.root),
                None => find_id(self.root, reference, 0).ok_or_else(|| {
                    format!(
                        "the schema refers to {reference:?}, which is not in the chart and is not fetched"
                    )
                }),
            };
        };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let found = find_id(self.root, reference, 0);
            return found.ok_or_else(|| format!("Object has no key '{pointer}'"));
        }
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
        self.root
            .pointer(&decoded)
            .ok_or_else(|| format!("Object has no key '{}'", pointer.rsplit('/').next().unwrap_or("")))
    }

    fn alone(
        &mut self,
        schema: &'a Json,
        value: &Json,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        self.schema(schema, value, place, &mut outcome, depth)?;
        Ok(outcome)
    }

    fn combinations(
        &mut self,
        schema: &'a Map<String, Json>,
        value: &Json,
        place: &Place<'_>,
        out: &mut Outcome,
        depth: usize,
    ) -> Step {
        let any_of = schemas(schema, "anyOf");
        if !any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut valid = false;
            for inner in any_of {
                let outcome = self.alone(inner, value, place, depth)?;
                if outcome.is_valid() {
                    valid = true;
                    break;
                }
                best = Outcome::better(best, outcome);
            }
            if !valid {
                out.add(place, "Must validate at least one schema (anyOf)");
                out.merge(best.unwrap_or_default());
            }
        }
        let one_of = schemas(schema, "oneOf");
        if !one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut valid = 0;
            for inner in one_of {
                let outcome = self.alone(inner, value, place, depth)?;
                match outcome.is_valid() {
                    true => valid += 1,
                    false if valid == 0 => best = Outcome::better(best, outcome),
                    false => {}
                }
            }
            if valid != 1 {
                out.add(place, "Must validate one and only one schema (oneOf)");
                if valid == 0 {
                    out.merge(best.unwrap_or_default());
                }
            }
        }
        let all_of = schemas(schema, "allOf");
        if !all_of.is_empty() {
            let mut valid = 0;
            for inner in all_of {
                let outcome = self.alone(inner, value, place, depth)?;
                valid += usize::from(outcome.is_valid());
                out.merge(outcome);
            }
            if valid != all_of.len() {
                out.add(place, "Must validate all the schemas (allOf)");
            }
        }
        if let Some(not) = schema.get("not")
            && self.alone(not, value, place, depth)?.is_valid()
        {
            out.add(place, "Must not validate the schema (not)");
        }
        if let (Some(Json::Object(dependencies)), Json::Object(fields)) = (schema.get("dependencies"), value)
        {
            for (name, dependency) in dependencies.iter().filter(|(name, _)| fields.contains_key(*name)) {
                match dependency {
                    Json::Array(names) => {
                        for wanted in names
                            .iter()
                            .filter_map(Json::as_str)
                            .filter(|wanted| !fields.contains_key(*wanted))
                        {
                            out.add(place, format!("Has a dependency on {wanted}"));
                        }
                    }
                    inner => self
                        .schema(inner, value, place, out, depth)
                        .map_err(|error| format!("{name}: {error}"))?,
                }
            }
        }
        if let Some(condition) = schema.get("if") {
            let met = self.alone(condition, value, place, depth)?.is_valid();
            let (branch, message) = match met {
                true => ("then", "Must validate \"then\" as \"if\" was valid"),
                false => ("else", "Must validate \"else\" as \"if\" was not valid"),
            };
            if let Some(branch) = schema.get(branch) {
                let outcome = self.alone(branch, value, place, depth)?;
                if !outcome.is_valid() {
                    out.add(place, message);
                    out.merge(outcome);
                }
            }
        }
        out.score += 1;
        Ok(())
    }

    fn array(
        &mut self,
        schema: &'a Map<String, Json>,
        items: &[Json],
        place: &Place<'_>,
        out: &mut Outcome,
        depth: usize,
    ) -> Step {
        match schema.get("items") {
            None => {}
            Some(Json::Array(positions)) => {
                for (at, (inner, item)) in positions.iter().zip(items).enumerate() {
                    let outcome = self.alone(inner, item, &place.item(at), depth)?;
                    out.merge(outcome);
                }
                if positions.len() < items.len() {
                    match schema.get("additionalItems") {
                        Some(Json::Bool(false)) => out.add(place, "No additional items allowed on array"),
                        None | Some(Json::Bool(true)) => {}
                        Some(inner) => {
                            for (at, item) in items.iter().enumerate().skip(positions.len()) {
                                let outcome = self.alone(inner, item, &place.item(at), depth)?;
                                out.merge(outcome);
                            }
                        }
                    }
                }
            }
            Some(inner) => {
                for (at, item) in items.iter().enumerate() {
                    let outcome = self.alone(inner, item, &place.item(at), depth)?;
                    out.merge(outcome);
                }
            }
        }
        if let Some(min) = count(schema, "minItems").filter(|min| items.len() < *min) {
            out.add(place, format!("Array must have at least {min} items"));
        }
        if let Some(max) = count(schema, "maxItems").filter(|max| items.len() > *max) {
            out.add(place, format!("Array must have at most {max} items"));
        }
        if schema.get("uniqueItems") == Some(&Json::Bool(true)) {
            let mut seen: HashMap<String, usize> = HashMap::new();
            for (at, item) in items.iter().enumerate() {
                if let Some(before) = seen.insert(canonical(item), at) {
                    out.add(place, format!("array items[{before},{at}] must be unique"));
                }
            }
        }
        if let Some(contains) = schema.get("contains") {
            let mut best: Option<Outcome> = None;
            let mut found = false;
            for (at, item) in items.iter().enumerate() {
                let outcome = self.alone(contains, item, &place.item(at), depth)?;
                if outcome.is_valid() {
                    found = true;
                    break;
                }
                best = Outcome::better(best, outcome);
            }
            if !found {
                out.add(place, "At least one of the items must match");
                out.merge(best.unwrap_or_default());
            }
        }
        out.score += 1;
        Ok(())
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Json>,
        fields: &Map<String, Json>,
        place: &Place<'_>,
        out: &mut Outcome,
        depth: usize,
    ) -> Step {
        if let Some(min) = count(schema, "minProperties").filter(|min| fields.len() < *min) {
            out.add(place, format!("Must have at least {min} properties"));
        }
        if let Some(max) = count(schema, "maxProperties").filter(|max| fields.len() > *max) {
            out.add(place, format!("Must have at most {max} properties"));
        }
        for name in schemas(schema, "required").iter().filter_map(Json::as_str) {
            match fields.contains_key(name) {
                true => out.score += 1,
                false => out.add(place, format!("{name} is required")),
            }
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let patterns = schema.get("patternProperties").and_then(Json::as_object);
        let mut names: Vec<&String> = fields.keys().collect();
        names.sort();
        for name in names {
            let value = &fields[name];
            let mut known = properties.is_some_and(|properties| properties.contains_key(name));
            for (pattern, inner) in patterns.into_iter().flatten() {
                if self.matches(pattern, name)? {
                    known = true;
                    let outcome = self.alone(inner, value, &place.field(name), depth)?;
                    out.merge(outcome);
                    out.score += 1;
                }
            }
            if known {
                continue;
            }
            match schema.get("additionalProperties") {
                Some(Json::Bool(false)) => {
                    out.add(place, format!("Additional property {name} is not allowed"));
                }
                None | Some(Json::Bool(true)) => {}
                Some(inner) => {
                    let outcome = self.alone(inner, value, &place.field(name), depth)?;
                    out.merge(outcome);
                }
            }
        }
        if let Some(inner) = schema.get("propertyNames") {
            for name in fields.keys() {
                let outcome = self.alone(inner, &Json::String(name.clone()), place, depth)?;
                if !outcome.is_valid() {
                    out.add(place, format!("Property name of \"{name}\" does not match"));
                    out.merge(outcome);
                }
            }
        }
        out.score += 1;
        Ok(())
    }

    fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, String> {
        if !self.expressions.contains_key(pattern) {
            let compiled = compile(pattern).map_err(|_| format!("Invalid regex pattern '{pattern}'"))?;
            self.expressions.insert(pattern.to_owned(), compiled);
        }
        Ok(self
            .expressions
            .get(pattern)
            .is_some_and(|regex| regex.is_match(text.as_bytes())))
    }

    fn text(
        &mut self,
        schema: &'a Map<String, Json>,
        text: &str,
        place: &Place<'_>,
        out: &mut Outcome,
    ) -> Step {
        let length = text.chars().count();
        if let Some(min) = count(schema, "minLength").filter(|min| length < *min) {
            out.add(
                place,
                format!("String length must be greater than or equal to {min}"),
            );
        }
        if let Some(max) = count(schema, "maxLength").filter(|max| length > *max) {
            out.add(
                place,
                format!("String length must be less than or equal to {max}"),
            );
        }
        if let Some(pattern) = schema.get("pattern").and_then(Json::as_str)
            && !self.matches(pattern, text)?
        {
            out.add(place, format!("Does not match pattern '{pattern}'"));
        }
        if let Some(format) = schema.get("format").and_then(Json::as_str)
            && !formats::is_valid(format, text)
        {
            out.add(place, format!("Does not match format '{format}'"));
        }
        out.score += 1;
        Ok(())
    }
}

/// The types that were wanted, if the value has none of them.
fn wrong_type(schema: &Map<String, Json>, value: &Json) -> Option<String> {
    let wanted: Vec<&str> = match schema.get("type")? {
        Json::String(one) => vec![one],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ => return None,
    };
    let found = type_name(value);
    let fits = wanted
        .iter()
        .any(|name| *name == found || (*name == "number" && found == "integer"));
    (!fits && !wanted.is_empty()).then(|| wanted.join(","))
}

fn common(schema: &Map<String, Json>, value: &Json, place: &Place<'_>, out: &mut Outcome) {
    if let Some(constant) = schema.get("const")
        && canonical(constant) != canonical(value)
    {
        out.add(place, format!("{place} does not match: {}", canonical(constant)));
    }
    let choices = schemas(schema, "enum");
    if !choices.is_empty() {
        let choices: Vec<String> = choices.iter().map(canonical).collect();
        if !choices.contains(&canonical(value)) {
            out.add(
                place,
                format!("{place} must be one of the following: {}", choices.join(", ")),
            );
        }
    }
    out.score += 1;
}

fn numbers(schema: &Map<String, Json>, number: f64, place: &Place<'_>, out: &mut Outcome) {
    let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
    let show = |number: f64| {
        fairway_text_gotemplate::json_text::write(
            &fairway_text_gotemplate::Value::Float(number),
            fairway_text_gotemplate::json_text::Style::default(),
        )
        .unwrap_or_default()
    };
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        let quotient = number / step;
        if (quotient - quotient.round()).abs() > 1e-9 {
            out.add(place, format!("Must be a multiple of {}", show(step)));
        }
    }
    // Draft 4 has a flag where later drafts have a second bound.
    let exclusive = |key: &str| schema.get(key) == Some(&Json::Bool(true));
    if let Some(max) = bound("maximum") {
        match exclusive("exclusiveMaximum") {
            true if number >= max => out.add(place, format!("Must be less than {}", show(max))),
            false if number > max => out.add(place, format!("Must be less than or equal to {}", show(max))),
            _ => {}
        }
    }
    if let Some(max) = bound("exclusiveMaximum").filter(|max| number >= *max) {
        out.add(place, format!("Must be less than {}", show(max)));
    }
    if let Some(min) = bound("minimum") {
        match exclusive("exclusiveMinimum") {
            true if number <= min => out.add(place, format!("Must be greater than {}", show(min))),
            false if number < min => {
                out.add(place, format!("Must be greater than or equal to {}", show(min)));
            }
            _ => {}
        }
    }
    if let Some(min) = bound("exclusiveMinimum").filter(|min| number <= *min) {
        out.add(place, format!("Must be greater than {}", show(min)));
    }
    out.score += 1;
}

/// The schema with an identifier.
fn find_id<'s>(schema: &'s Json, id: &str, depth: usize) -> Option<&'s Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    match schema {
        Json::Object(fields) => {
            let own = fields
                .get("$id")
                .or_else(|| fields.get("id"))
                .and_then(Json::as_str);
            if own == Some(id) {
                return Some(schema);
            }
            fields.values().find_map(|inner| find_id(inner, id, depth + 1))
        }
        Json::Array(items) => items.iter().find_map(|inner| find_id(inner, id, depth + 1)),
        _ => None,
    }
}
