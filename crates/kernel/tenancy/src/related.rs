//! Objects that belong to a published one: how they are found, and where their copies go.
//!
//! A Secret with credentials may be named in a field, may carry a label, or may have a name that follows from the published
//! object's. The same rule names it on both sides, because both have a published object: the consumer's, and its copy.

use serde_json::{Map, Value, json};

use crate::cluster::{ClusterId, WorkspacePath};
use crate::dotted::Dotted;
use crate::mutation::compile_pattern;
use crate::published::Origin;
use crate::template;

/// The published object on both sides.
pub struct Pair<'a> {
    /// The consumer's, in its workspace.
    pub remote: &'a Value,
    /// The copy, on the service cluster.
    pub local: &'a Value,
    /// The workspace.
    pub cluster: &'a ClusterId,
    /// Its path.
    pub path: &'a WorkspacePath,
    /// Where the related originals are.
    pub origin: Origin,
}

/// How the related objects (or their namespaces) are found where the originals are.
#[derive(Clone, Debug, PartialEq)]
pub enum Find {
    /// By name: pairs of the original's name and its copy's.
    Named(Vec<(String, String)>),
    /// By label. The copies' names come from [`Pair::rewritten`].
    Selected(Value),
}

impl Pair<'_> {
    fn at_origin(&self) -> &Value {
        match self.origin {
            Origin::Kcp => self.remote,
            Origin::Service => self.local,
        }
    }

    fn at_destination(&self) -> &Value {
        match self.origin {
            Origin::Kcp => self.local,
            Origin::Service => self.remote,
        }
    }

    /// Reads a specification of objects or of their namespace. Nothing named yet means nothing to do yet.
    pub fn find(&self, spec: &Value) -> Result<Find, String> {
        let given = |field: &str| spec.get(field).filter(|it| it.is_object());
        if let Some(reference) = given("reference") {
            let origins = referred(self.at_origin(), reference)?;
            if origins.is_empty() {
                return Ok(Find::Named(Vec::new()));
            }
            let copies = referred(self.at_destination(), reference)?;
            if origins.len() != copies.len() {
                return Err(format!(
                    "cannot sync related resources: found {} names on the origin, but {} on the destination side",
                    origins.len(),
                    copies.len()
                ));
            }
            let pairs = origins.into_iter().zip(copies);
            return Ok(Find::Named(
                pairs
                    .filter(|(origin, copy)| !origin.is_empty() && !copy.is_empty())
                    .collect(),
            ));
        }
        if let Some(selector) = given("selector") {
            return Ok(Find::Selected(self.filled_in(selector)?));
        }
        if let Some(template) = given("template") {
            let text = template
                .get("template")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let (here, there) = match self.origin {
                Origin::Kcp => ("kcp", "service"),
                Origin::Service => ("service", "kcp"),
            };
            let origin = self.named_by(text, here, self.at_origin())?;
            let copy = self.named_by(text, there, self.at_destination())?;
            if origin.is_empty() || copy.is_empty() {
                return Ok(Find::Named(Vec::new()));
            }
            return Ok(Find::Named(vec![(origin, copy)]));
        }
        Err("set one of reference, selector and template".to_owned())
    }

    fn named_by(&self, text: &str, side: &str, object: &Value) -> Result<String, String> {
        let data = json!({
            "Side": side,
            "Object": object,
            "ClusterName": self.cluster.as_str(),
            "ClusterPath": self.path.as_str(),
        });
        template::render(text, &data)
            .map_err(|error| format!("failed to evaluate template on the {side} side: {error}"))
    }

    /// A selector whose labels may be templates, as a plain one.
    fn filled_in(&self, selector: &Value) -> Result<Value, String> {
        let data = json!({
            "LocalObject": self.local,
            "RemoteObject": self.remote,
            "ClusterName": self.cluster.as_str(),
            "ClusterPath": self.path.as_str(),
        });
        let fill = |text: &str| {
            if text.contains("{{") {
                template::render(text, &data)
                    .map_err(|error| format!("failed to evaluate label template: {error}"))
            } else {
                Ok(text.to_owned())
            }
        };
        let mut labels = Map::new();
        for (key, value) in selector
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let key = fill(key)?;
            if !key.is_empty() {
                labels.insert(key, json!(fill(value.as_str().unwrap_or_default())?));
            }
        }
        let mut plain = Map::new();
        if !labels.is_empty() {
            plain.insert("matchLabels".to_owned(), Value::Object(labels));
        }
        if let Some(expressions) = selector.get("matchExpressions") {
            plain.insert("matchExpressions".to_owned(), expressions.clone());
        }
        Ok(Value::Object(plain))
    }

    /// The name of the copy of an object that a selector found. `related` is that object; nothing for a namespace.
    pub fn rewritten(&self, selector: &Value, name: &str, related: Option<&Value>) -> Result<String, String> {
        let rewrite = selector.get("rewrite").unwrap_or(&Value::Null);
        if let Some(regex) = rewrite.get("regex").filter(|it| it.is_object()) {
            return replaced(name, regex);
        }
        let Some(text) = rewrite.pointer("/template/template").and_then(Value::as_str) else {
            return Err("invalid rewrite: set regex or template".to_owned());
        };
        let data = json!({
            "Value": name,
            "RelatedObject": related,
            "LocalObject": self.local,
            "RemoteObject": self.remote,
            "ClusterName": self.cluster.as_str(),
            "ClusterPath": self.path.as_str(),
        });
        template::render(text, &data)
    }
}

/// The names that a field holds: one, or a list.
fn referred(object: &Value, reference: &Value) -> Result<Vec<String>, String> {
    let path = reference.get("path").and_then(Value::as_str).unwrap_or_default();
    let names = match Dotted::parse(path)?.get(object) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
    };
    names
        .iter()
        .map(|it| match it {
            Value::String(text) => Ok(text.trim().to_owned()),
            Value::Null => Ok(String::new()),
            other => Ok(other.to_string()),
        })
        .map(
            |name: Result<String, String>| match reference.get("regex").filter(|it| it.is_object()) {
                Some(regex) => replaced(&name?, regex),
                None => name,
            },
        )
        .collect()
}

fn replaced(name: &str, regex: &Value) -> Result<String, String> {
    let text = |field: &str| regex.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("pattern") {
        "" => Ok(text("replacement").to_owned()),
        pattern => Ok(compile_pattern(pattern)?
            .replace_all(name, text("replacement"))
            .into_owned()),
    }
}

mod copies;

pub use copies::{Relation, Sync, is_credential, is_fixed_namespace, may_use};

/// Whether a text can name a relation: it becomes part of an annotation's key and a label's value.
pub(crate) fn is_identifier(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.len() <= 50 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Says what is wrong with the way in which objects are found, as far as it can be known in advance.
pub(crate) fn check(object: &Value) -> Result<(), String> {
    check_one(object)?;
    match object.get("namespace").filter(|it| it.is_object()) {
        Some(namespace) => check_one(namespace).map_err(|error| format!("namespace: {error}")),
        None => Ok(()),
    }
}

fn check_one(spec: &Value) -> Result<(), String> {
    let given: Vec<&str> = ["reference", "selector", "template"]
        .into_iter()
        .filter(|field| spec.get(field).is_some_and(Value::is_object))
        .collect();
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let pattern = |pointer: &str| match text(pointer) {
        "" => Ok(()),
        pattern => compile_pattern(pattern).map(drop),
    };
    match given.as_slice() {
        ["reference"] => {
            Dotted::parse(text("/reference/path"))?;
            pattern("/reference/regex/pattern")
        }
        ["template"] => template::check(text("/template/template")),
        ["selector"] => {
            let labels = spec.pointer("/selector/matchLabels").and_then(Value::as_object);
            for (key, value) in labels.into_iter().flatten() {
                template::check(key)?;
                template::check(value.as_str().unwrap_or_default())?;
            }
            template::check(text("/selector/rewrite/template/template"))?;
            pattern("/selector/rewrite/regex/pattern")
        }
        _ => Err("set exactly one of reference, selector and template".to_owned()),
    }
}

#[cfg(test)]
mod tests;
