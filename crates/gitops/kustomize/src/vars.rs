//! Vars: values of fields that are written into others as `$(NAME)`.

use std::collections::BTreeMap;

use fairway_text_yaml::to_string;
use serde_json::Value;

use crate::decode::Fields;
use crate::error::{Error, Result};
use crate::fieldspec::{FieldSpec, Make};
use crate::id::{Gvk, ResId, split_api_version};
use crate::node::{lookup, split_field_path};
use crate::openapi::OpenApi;
use crate::resmap::ResMap;
use crate::transform::Context;

/// A name for the value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Var {
    name: String,
    object: ResId,
    path: String,
}

impl Var {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let object = fields.decoded("objref", |reference| {
            let mut gvk = Gvk::decode(reference)?;
            let api_version = reference.string("apiVersion")?;
            if !api_version.is_empty() {
                let (group, version) = split_api_version(&api_version);
                if !group.is_empty() {
                    gvk.group = group.to_owned();
                }
                gvk.version = version.to_owned();
            }
            Ok(ResId {
                gvk,
                name: reference.string("name")?,
                namespace: reference.string("namespace")?,
            })
        })?;
        let path = fields.decoded("fieldref", |reference| reference.string("fieldPath"))?;
        Ok(Self {
            name: fields.string("name")?,
            object: object.unwrap_or_default(),
            path: path
                .filter(|path| !path.is_empty())
                .unwrap_or_else(|| "metadata.name".to_owned()),
        })
    }
}

/// Vars by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct VarSet(BTreeMap<String, Var>);

impl VarSet {
    pub(crate) fn merge(&mut self, vars: impl IntoIterator<Item = Var>) -> Result<()> {
        for var in vars {
            let name = var.name.clone();
            if self.0.insert(name.clone(), var).is_some() {
                return Err(Error::new(format!("var '{name}' already encountered")));
            }
        }
        Ok(())
    }

    pub(crate) fn into_vars(self) -> impl Iterator<Item = Var> {
        self.0.into_values()
    }

    /// Notes at the resources which vars take their value from them.
    pub(crate) fn bind(vars: &[Var], resources: &mut ResMap, api: &OpenApi) -> Result<()> {
        for var in vars {
            let in_namespace = !var.object.namespace.is_empty();
            let mut matched: Vec<usize> = Vec::new();
            for (at, resource) in resources.iter().enumerate() {
                let found = resource.any_id(api, |id| match in_namespace {
                    true => id.is(&var.object),
                    false => id.name == var.object.name && id.is_gvk(&var.object.gvk),
                });
                if found {
                    matched.push(at);
                }
            }
            match matched[..] {
                [] => {}
                [at] => resources.list_mut_same_ids()[at].vars.push(var.name.clone()),
                _ => {
                    return Err(Error::new(format!(
                        "found {} resId matches for var {} (unable to disambiguate)",
                        matched.len(),
                        var.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Writes the values of the vars wherever the specs allow.
    pub(crate) fn resolve(
        &self,
        resources: &mut ResMap,
        specs: &[FieldSpec],
        context: &Context<'_>,
    ) -> Result<()> {
        let mut values: BTreeMap<&str, Value> = BTreeMap::new();
        for var in self.0.values() {
            values.insert(&var.name, value_of(var, resources)?);
        }
        if values.is_empty() {
            return Ok(());
        }
        for resource in resources.list_mut() {
            for spec in specs {
                spec.apply(&mut resource.value, Make::Nothing, &mut |field| {
                    replace_in(field, &values, context)
                })?;
            }
        }
        Ok(())
    }
}

fn value_of(var: &Var, resources: &ResMap) -> Result<Value> {
    let resource = resources
        .iter()
        .find(|resource| resource.vars.contains(&var.name))
        .ok_or_else(|| {
            Error::new(format!(
                "var '{}' cannot be mapped to a field in the set of known resources",
                var.name
            ))
        })?;
    let path: Vec<String> = split_field_path(&var.path)
        .iter()
        .flat_map(|part| split_index(part))
        .collect();
    match lookup(&resource.value, &path) {
        Ok(Some(value)) => Ok(value.clone()),
        _ => Err(Error::new(format!(
            "field '{}' specified in var '{}' not found in corresponding resource",
            var.path, var.name
        ))),
    }
}

/// `ports[0]` as two parts.
fn split_index(part: &str) -> Vec<String> {
    let split = part.strip_suffix(']').and_then(|inner| inner.rsplit_once('['));
    match split {
        Some((name, index)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
            let name = Some(name).filter(|name| !name.is_empty());
            name.into_iter().chain([index]).map(str::to_owned).collect()
        }
        _ => vec![part.to_owned()],
    }
}

fn replace_in(field: &mut Value, values: &BTreeMap<&str, Value>, context: &Context<'_>) -> Result<()> {
    let replace = |field: &mut Value| -> Result<()> {
        if let Value::String(text) = field
            && text.contains('$')
        {
            *field = replaced(text, values, &|bytes| context.add(bytes))?;
        }
        Ok(())
    };
    match field {
        Value::Object(fields) => fields.values_mut().try_for_each(replace),
        Value::Array(items) => {
            if !items.iter().all(Value::is_string) {
                return Err(Error::new("invalid value type expect a string"));
            }
            items.iter_mut().try_for_each(replace)
        }
        other => replace(other),
    }
}

/// The text with references replaced. A text that is nothing but a reference takes the type of the value.
fn replaced(text: &str, values: &BTreeMap<&str, Value>, add: &dyn Fn(usize) -> Result<()>) -> Result<Value> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, dollar) = rest.split_at(at);
        out.push_str(before);
        let after = &dollar[1..];
        let mut chars = after.chars();
        match chars.next() {
            None => {
                out.push('$');
                rest = after;
            }
            Some('$') => {
                out.push('$');
                rest = chars.as_str();
            }
            Some('(') => match after.find(')') {
                Some(close) => {
                    let name = &after[1..close];
                    let whole = text.len() == close + 2;
                    match values
                        .get(name)
                        .filter(|value| !value.is_object() && !value.is_array())
                    {
                        Some(value) if whole && !value.is_null() => return Ok(value.clone()),
                        Some(value) => {
                            let shown = shown(value);
                            add(shown.len())?;
                            out.push_str(&shown);
                        }
                        None => out.push_str(&format!("$({name})")),
                    }
                    rest = &after[close + 1..];
                }
                None => {
                    out.push_str("$(");
                    rest = chars.as_str();
                }
            },
            Some(other) => {
                out.push('$');
                out.push(other);
                rest = chars.as_str();
            }
        }
    }
    out.push_str(rest);
    Ok(Value::String(out))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => to_string(other).trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{replaced, split_index};

    #[test]
    fn references_are_replaced() {
        let values: BTreeMap<&str, Value> = [("A", json!("x")), ("N", json!(8080)), ("M", json!({}))].into();
        for (text, expected) in [
            ("$(A)", json!("x")),
            ("$(N)", json!(8080)),
            ("a$(A)b$(N)", json!("axb8080")),
            ("$$(A)", json!("$(A)")),
            ("$(B)", json!("$(B)")),
            ("$(M)", json!("$(M)")),
            ("$(A", json!("$(A")),
            ("$é$", json!("$é$")),
        ] {
            assert_eq!(replaced(text, &values, &|_| Ok(())).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn indices_are_parts() {
        assert_eq!(split_index("ports[0]"), ["ports", "0"]);
        assert_eq!(split_index("[1]"), ["1"]);
        assert_eq!(split_index("a[b=c]"), ["a[b=c]"]);
    }
}
