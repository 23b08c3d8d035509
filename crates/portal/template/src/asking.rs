//! Which questions of a page answers lead to: what is to be asked next, and for who reads a template, what may be asked and when.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{self, resolved};

/// How deeply questions are followed.
const MAX_DEPTH: usize = 20;
/// How many parts of a page are looked at: references may lead to the same again and again.
const MAX_WORK: usize = 5_000;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// By which answers and expressions name it.
    pub name: String,
    /// What is known of the answer, from every part of the page that speaks of it.
    pub schema: Value,
    /// There must be an answer.
    pub is_required: bool,
    /// When it is asked, and when it must be answered, in words; nothing if always.
    pub when: Vec<String>,
}

/// The questions to which what was answered leads, in the order of the page; those that are answered are among them.
pub fn questions(page: &Value, given: &Map<String, Value>) -> Vec<Question> {
    let mut walk = Walk::new(page);
    walk.led(page, &Value::Object(given.clone()), MAX_DEPTH);
    walk.done()
}

/// All questions that a page may ask, each with when it is asked.
pub fn possible(page: &Value) -> Vec<Question> {
    let mut walk = Walk::new(page);
    walk.any(page, "", MAX_DEPTH);
    walk.done()
}

/// The branch whose fixed answers are given: what has no answer yet and only some values to choose from does not speak against it.
pub(crate) fn chosen<'s>(
    root: &'s Value,
    options: &'s [Value],
    given: &Map<String, Value>,
) -> Option<&'s Value> {
    options.iter().find(|option| {
        let mut fixed = selectors(root, option)
            .filter(|(name, schema)| schema.get("const").is_some() || given.contains_key(*name))
            .peekable();
        fixed.peek().is_some()
            && fixed.all(|(name, schema)| {
                let value = given.get(name);
                value.is_some_and(|value| schema::check_within(root, schema, value).is_empty())
            })
    })
}

/// By which answers a branch is known.
fn selectors<'s>(root: &'s Value, option: &'s Value) -> impl Iterator<Item = (&'s String, &'s Value)> {
    let properties = resolved(root, option).and_then(|option| option.get("properties")?.as_object());
    let of = properties.into_iter().flatten();
    of.filter_map(move |(name, schema)| Some((name, resolved(root, schema)?)))
        .filter(|(_, schema)| schema.get("const").is_some() || schema.get("enum").is_some())
}

fn map<'s>(schema: &'s Value, keyword: &str) -> impl Iterator<Item = (&'s String, &'s Value)> {
    schema
        .get(keyword)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    let list = schema.get(keyword).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn names(list: &[Value]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(Value::as_str)
}

struct Walk<'s> {
    root: &'s Value,
    found: Vec<Question>,
    required: BTreeSet<String>,
    /// Questions that must be answered if something holds: their names, and what.
    required_if: Vec<(String, String)>,
    work: usize,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self {
            root,
            found: Vec::new(),
            required: BTreeSet::new(),
            required_if: Vec::new(),
            work: MAX_WORK,
        }
    }

    /// A part of the page, unless enough was looked at.
    fn part(&mut self, schema: &'s Value, depth: usize) -> Option<&'s Value> {
        let schema = resolved(self.root, schema).filter(|_| depth > 0 && self.work > 0)?;
        self.work -= 1;
        Some(schema)
    }

    fn done(mut self) -> Vec<Question> {
        for name in &self.required {
            match self.found.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.is_required = true,
                // Nobody says what it is, and there must be an answer all the same.
                None => self.found.push(Question {
                    name: name.clone(),
                    schema: json!({}),
                    is_required: true,
                    when: Vec::new(),
                }),
            }
        }
        for (name, why) in self.required_if {
            let known = self.found.iter_mut().find(|known| known.name == name);
            if let Some(known) = known.filter(|known| !known.is_required && !known.when.contains(&why)) {
                known.when.push(format!("required {why}"));
            }
        }
        // What can only be answered in one way is not asked.
        self.found.retain(|known| known.schema.get("const").is_none());
        self.found
    }

    fn add(&mut self, name: &str, property: &'s Value, why: &str) {
        let Some(schema) = resolved(self.root, property) else {
            return;
        };
        let mut schema = schema.clone();
        // What stands beside a reference is what the author says of this question.
        let beside = property.as_object().into_iter().flatten();
        for (key, value) in beside.filter(|(key, _)| *key != "$ref") {
            schema[key] = value.clone();
        }
        match self.found.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                let more = schema.as_object().into_iter().flatten();
                for (key, value) in more.filter(|(key, _)| *key != "const") {
                    if known.schema.get(key).is_none() {
                        known.schema[key] = value.clone();
                    }
                }
                // It may be asked for several reasons; one that always holds makes up for all.
                match (known.when.is_empty(), why) {
                    (true, _) => {}
                    (false, "") => known.when.clear(),
                    (false, why) if known.when.iter().any(|known| known == why) => {}
                    (false, why) => known.when.push(why.to_owned()),
                }
            }
            None => self.found.push(Question {
                name: name.to_owned(),
                schema,
                is_required: false,
                when: Some(why.to_owned())
                    .filter(|why| !why.is_empty())
                    .into_iter()
                    .collect(),
            }),
        }
    }

    fn led(&mut self, schema: &'s Value, given: &Value, depth: usize) {
        let Some(schema) = self.part(schema, depth) else {
            return;
        };
        self.required
            .extend(names(list(schema, "required")).map(str::to_owned));
        for (name, property) in map(schema, "properties") {
            self.add(name, property, "");
        }
        for inner in list(schema, "allOf") {
            self.led(inner, given, depth - 1);
        }
        if let Some(condition) = schema.get("if") {
            let holds = schema::check_within(self.root, condition, given).is_empty();
            if let Some(inner) = schema.get(if holds { "then" } else { "else" }) {
                self.led(inner, given, depth - 1);
            }
        }
        for keyword in ["dependencies", "dependentSchemas", "dependentRequired"] {
            for (_, inner) in map(schema, keyword).filter(|(name, _)| given.get(name.as_str()).is_some()) {
                match inner {
                    Value::Array(others) => self.required.extend(names(others).map(str::to_owned)),
                    inner => self.led(inner, given, depth - 1),
                }
            }
        }
        for keyword in ["oneOf", "anyOf"] {
            self.branches(list(schema, keyword), given, depth - 1);
        }
    }

    /// One of several branches: the chosen one, or by what it is chosen, or if nothing tells them apart, the questions of all.
    fn branches(&mut self, options: &'s [Value], given: &Value, depth: usize) {
        let none = Map::new();
        let answers = given.as_object().unwrap_or(&none);
        if let Some(option) = chosen(self.root, options, answers) {
            return self.led(option, given, depth);
        }
        let mut is_told_apart = false;
        for option in options {
            for (name, schema) in selectors(self.root, option) {
                is_told_apart = true;
                if answers.contains_key(name) {
                    continue;
                }
                let one = schema.get("const").map(std::slice::from_ref);
                let values = one.unwrap_or_else(|| list(schema, "enum")).to_vec();
                self.offer(name, schema, values);
            }
        }
        if is_told_apart {
            return;
        }
        let required = self.required.clone();
        for option in options {
            self.led(option, given, depth);
        }
        self.required = required;
    }

    /// A question that decides between branches, with the values of all of them.
    fn offer(&mut self, name: &str, schema: &Value, values: Vec<Value>) {
        self.required.insert(name.to_owned());
        match self.found.iter_mut().find(|known| known.name == name) {
            // The page itself says what it may be.
            Some(known) if known.schema.get("enum").is_none() || known.schema.get("type").is_some() => {}
            Some(known) => {
                if let Some(all) = known.schema["enum"].as_array_mut() {
                    let new: Vec<Value> = values.into_iter().filter(|value| !all.contains(value)).collect();
                    all.extend(new);
                }
            }
            None => {
                let mut offered = json!({"enum": values});
                if let Some(title) = schema.get("title") {
                    offered["title"] = title.clone();
                }
                self.found.push(Question {
                    name: name.to_owned(),
                    schema: offered,
                    is_required: true,
                    when: Vec::new(),
                });
            }
        }
    }

    fn any(&mut self, schema: &'s Value, why: &str, depth: usize) {
        let Some(schema) = self.part(schema, depth) else {
            return;
        };
        for (name, property) in map(schema, "properties") {
            self.add(name, property, why);
        }
        for name in names(list(schema, "required")) {
            self.must(name, why, schema);
        }
        for inner in list(schema, "allOf") {
            self.any(inner, why, depth - 1);
        }
        if let Some(condition) = schema.get("if") {
            let holds = said(self.root, condition);
            for (keyword, word) in [("then", "if"), ("else", "unless")] {
                if let Some(inner) = schema.get(keyword) {
                    self.any(inner, &format!("{word} {holds}"), depth - 1);
                }
            }
        }
        for keyword in ["dependencies", "dependentSchemas", "dependentRequired"] {
            for (name, inner) in map(schema, keyword) {
                let why = format!("if {name} is answered");
                match inner {
                    Value::Array(others) => {
                        for other in names(others) {
                            self.required_if.push((other.to_owned(), why.clone()));
                        }
                    }
                    inner => self.any(inner, &why, depth - 1),
                }
            }
        }
        for keyword in ["oneOf", "anyOf"] {
            for option in list(schema, keyword) {
                let mut why = why.to_owned();
                if selectors(self.root, option).next().is_some() {
                    why = format!("if {}", said(self.root, option));
                }
                self.any(option, &why, depth - 1);
            }
        }
    }

    fn must(&mut self, name: &str, why: &str, schema: &Value) {
        let is_here = schema
            .get("properties")
            .is_some_and(|here| here.get(name).is_some());
        let known = self.found.iter_mut().find(|known| known.name == name);
        match known {
            // If it is asked for this reason, it must be answered.
            Some(known) if is_here && known.when.iter().all(|known| known == why) => known.is_required = true,
            _ if why.is_empty() => {
                self.required.insert(name.to_owned());
            }
            _ => self.required_if.push((name.to_owned(), why.to_owned())),
        }
    }
}

/// A condition in words.
fn said(root: &Value, condition: &Value) -> String {
    let mut words: Vec<String> = selectors(root, condition)
        .map(|(name, schema)| match schema.get("const") {
            Some(value) => format!("{name} is {value}"),
            None => {
                let values: Vec<String> = list(schema, "enum").iter().map(Value::to_string).collect();
                format!("{name} is {}", values.join(" or "))
            }
        })
        .collect();
    if words.is_empty() {
        words.extend(names(list(condition, "required")).map(|name| format!("{name} is answered")));
    }
    match words.is_empty() {
        true => "other answers ask for it".to_owned(),
        false => words.join(" and "),
    }
}

#[cfg(test)]
mod tests;
