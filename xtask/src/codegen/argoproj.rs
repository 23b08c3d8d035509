//! The facts about Argo CD's kinds, out of the CustomResourceDefinitions of its Go module.
//!
//! Everything that a schema says is translated or refused, so that a new version cannot bring a fact that is silently
//! lost. Descriptions are left out: they are upstream's sentences. A structure that is used in several places is written
//! once; it is named after the field that it was first found in.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fairway_api::definitions;
use serde_json::{Map, Value};

use crate::upstream;

const FACTS: &str = "crates/api/data/argoproj.facts";
const FILES: [&str; 3] = ["application", "applicationset", "appproject"];

/// `cargo xtask codegen argoproj [--check]`.
pub(super) fn run(check: bool) -> Result<()> {
    let module = upstream::go_module(&format!("{}@{}", upstream::ARGO_CD_MODULE, upstream::ARGO_CD))?;
    let crds = read(&module)?;
    let mut table = Writer::default();
    for crd in &crds {
        table.kind(crd)?;
    }
    let text = format!(
        "# Facts about the kinds of Argo CD {}. Written by `cargo xtask codegen argoproj`; do not edit.\n{}{}",
        upstream::ARGO_CD,
        table.kinds,
        table.types
    );
    let file = upstream::root().join(FACTS);
    let lines = text.lines().count();
    if check {
        if fs::read_to_string(&file).unwrap_or_default() != text {
            bail!("the facts about Argo CD's kinds are out of date: run `cargo xtask codegen argoproj`");
        }
        // What is built into this program is what was just compared.
        confirm(&crds)?;
        println!("up to date: {lines} lines of facts about Argo CD's kinds");
    } else {
        fs::write(&file, text)?;
        println!("written: {lines} lines of facts about Argo CD's kinds");
    }
    Ok(())
}

fn read(module: &Path) -> Result<Vec<Value>> {
    let read = |name: &&str| {
        let path = module.join(format!("manifests/crds/{name}-crd.yaml"));
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut crd = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default())
            .with_context(|| format!("parsing {}", path.display()))?;
        for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
            drop_descriptions(&mut version["schema"]["openAPIV3Schema"]);
        }
        Ok(crd)
    };
    FILES.iter().map(read).collect()
}

fn drop_descriptions(schema: &mut Value) {
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

/// The definitions say what upstream's do.
fn confirm(crds: &[Value]) -> Result<()> {
    for crd in crds {
        let name = &crd["metadata"]["name"];
        let known = definitions().into_iter().map(|it| it.crd());
        let mut known = known
            .into_iter()
            .find(|it| it["metadata"]["name"] == *name)
            .with_context(|| format!("{name} is not among the definitions"))?;
        let ours = &mut known["spec"]["versions"][0];
        drop_descriptions(&mut ours["schema"]["openAPIV3Schema"]);
        let theirs = &crd["spec"]["versions"][0];
        for field in ["schema", "additionalPrinterColumns", "name", "served", "storage"] {
            if ours.get(field) != theirs.get(field) {
                bail!("{field} of {name} is not what upstream's definition says");
            }
        }
        let has_status = |version: &Value| version["subresources"].get("status").is_some();
        if has_status(ours) != has_status(theirs) || known["spec"]["names"] != crd["spec"]["names"] {
            bail!("names or subresources of {name} are not what upstream's definition says");
        }
    }
    Ok(())
}

#[derive(Default)]
struct Writer {
    kinds: String,
    types: String,
    /// Names of structures that are written, by their JSON.
    known: HashMap<String, String>,
    names: HashMap<String, usize>,
}

impl Writer {
    fn kind(&mut self, crd: &Value) -> Result<()> {
        let spec = &crd["spec"];
        let [version] = spec["versions"].as_array().map_or(&[][..], Vec::as_slice) else {
            bail!("{} does not have exactly one version", crd["metadata"]["name"]);
        };
        let names = &spec["names"];
        let mut line = format!(
            "kind {} {} {} {} {}",
            text(names, "kind")?,
            text(names, "plural")?,
            text(names, "singular")?,
            text(spec, "scope")?,
            text(version, "name")?
        );
        let short: Vec<&str> = names["shortNames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !short.is_empty() {
            line += &format!(" short={}", short.join(","));
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
        let found = self.structure(kind, schema).with_context(|| kind.to_owned())?;
        if found != kind {
            bail!("{kind} is the same as {found}");
        }
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
        let object = object(schema)?;
        let mut line = format!("type {name}");
        for (key, value) in object {
            match (key.as_str(), value) {
                ("type" | "properties" | "required", _) => {}
                ("x-kubernetes-map-type", Value::String(kind)) if kind == "atomic" => line += " atomic",
                ("x-kubernetes-preserve-unknown-fields", Value::Bool(true)) => line += " open",
                _ => bail!("{name}: {key}: {value} cannot be said of a type"),
            }
        }
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
        let mut left: Map<String, Value> = map.clone();
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
                let (form, more) = self.form(field, &element)?;
                if !more.is_empty() {
                    bail!("rules for the values of a map: {more}");
                }
                format!("{{}}{form}")
            }
            "object" if take("x-kubernetes-preserve-unknown-fields").is_some() => "open".to_owned(),
            "object" => "object".to_owned(),
            "array" => {
                let element = take("items").unwrap_or_default();
                let (form, more) = self.form(field, &element)?;
                if !more.is_empty() {
                    bail!("rules for the elements of a list: {more}");
                }
                format!("[]{form}")
            }
            "string" => match take("format").as_ref().and_then(Value::as_str) {
                None => "string".to_owned(),
                Some("date-time") => "time".to_owned(),
                Some(other) => bail!("format {other}"),
            },
            "integer" => match take("format").as_ref().and_then(Value::as_str) {
                None => "integer".to_owned(),
                Some(bits @ ("int64" | "int32")) => bits.to_owned(),
                Some(other) => bail!("format {other}"),
            },
            "boolean" => "boolean".to_owned(),
            "" if take("x-kubernetes-int-or-string").is_some() => {
                let either = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
                if take("anyOf") != Some(either) {
                    bail!("int-or-string without its usual anyOf");
                }
                "int-or-string".to_owned()
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
                ("enum", Value::Array(values)) => {
                    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
                    rules += &format!(" enum={}", values.join("|"));
                }
                ("minLength", Value::Number(limit)) => rules += &format!(" min={limit}"),
                ("maxLength", Value::Number(limit)) => rules += &format!(" max={limit}"),
                ("pattern", Value::String(expression)) => pattern = format!(" pattern={expression}"),
                _ => bail!("{key}: {value} cannot be said of a field"),
            }
        }
        Ok((form, rules + &pattern))
    }
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
