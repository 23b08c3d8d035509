//! Replacements: a value from one place put into others.

use serde_json::{Map, Value};

use super::Context;
use super::structured;
use crate::decode::Fields;
use crate::error::{Error, Result, Within};
use crate::id::ResId;
use crate::node::{
    is_empty, is_scalar, list_index, lookup, plain, set_text, split_field_path, text, wrong_kind,
};
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::selector::{CompiledSelector, Selector, regex};

const DEFAULT_PATH: &str = "metadata.name";

/// A source and its targets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replacement {
    pub(crate) source: Option<Source>,
    pub(crate) targets: Option<Vec<Target>>,
    pub(crate) source_value: Option<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    id: ResId,
    path: String,
    options: Option<FieldOptions>,
}

/// Where a value goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    select: Option<Selector>,
    reject: Vec<Selector>,
    paths: Vec<String>,
    options: Option<FieldOptions>,
}

/// Which part of a text is meant, and whether a field is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldOptions {
    delimiter: String,
    index: i64,
    create: bool,
}

impl Replacement {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let targets = fields.list("targets", Target::decode)?;
        Ok(Self {
            source: fields.decoded("source", Source::decode)?,
            targets: fields.has("targets").then_some(targets),
            source_value: fields.optional_string("sourceValue")?,
        })
    }
}

impl Source {
    fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            id: ResId::decode(fields)?,
            path: fields.string("fieldPath")?,
            options: fields.decoded("options", FieldOptions::decode)?,
        })
    }
}

impl Target {
    fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            select: fields.decoded("select", Selector::decode)?,
            reject: fields.list("reject", Selector::decode)?,
            paths: fields.strings("fieldPaths")?,
            options: fields.decoded("options", FieldOptions::decode)?,
        })
    }
}

impl FieldOptions {
    fn decode(fields: &Fields<'_>) -> Result<Self> {
        fields.string("encoding")?;
        Ok(Self {
            delimiter: fields.string("delimiter")?,
            index: fields.integer("index")?,
            create: fields.bool("create")?,
        })
    }
}

/// Carries out replacements, one after the other.
pub(crate) fn run(resources: &mut ResMap, replacements: &[Replacement], context: &Context<'_>) -> Result<()> {
    for replacement in replacements {
        let (Some(targets), true) = (
            &replacement.targets,
            replacement.source.is_some() || replacement.source_value.is_some(),
        ) else {
            return Err(Error::new(
                "replacements must specify a source and at least one target",
            ));
        };
        let (mut value, live) = value_of(resources, replacement)?;
        for target in targets {
            put(resources, &mut value, live.as_ref(), target, context)?;
        }
    }
    resources.drop_gone();
    Ok(())
}

/// The ids by which replacements know a resource. Scopes play no part in them.
fn ids(resource: &Resource) -> Vec<ResId> {
    let current = ResId {
        gvk: resource.gvk(),
        name: resource.name().into_owned(),
        namespace: resource.namespace().into_owned(),
    };
    std::iter::once(current).chain(resource.previous_ids()).collect()
}

/// A field whose value is looked up again for each target, because it may be a target itself.
type Live = (usize, Vec<String>);

fn value_of(resources: &ResMap, replacement: &Replacement) -> Result<(Value, Option<Live>)> {
    let source = match (&replacement.source, &replacement.source_value) {
        (Some(_), Some(_)) => {
            return Err(Error::new("value and resource selectors are mutually exclusive"));
        }
        (None, value) => return Ok((plain_text(value.as_deref().unwrap_or_default()), None)),
        (Some(source), None) => source,
    };
    let named = Some(source.id.name.as_str()).filter(|name| !name.is_empty());
    let mut selected = resources
        .at_name(named)
        .filter(|(_, resource)| ids(resource).iter().any(|id| id.is_selected_by(&source.id)));
    let (at, resource) = match (selected.next(), selected.next()) {
        (None, _) => return Err(Error::new(format!("nothing selected by {}", source.id))),
        (Some(_), Some(_)) => return Err(Error::new(format!("multiple matches for selector {}", source.id))),
        (Some(resource), None) => resource,
    };
    let path = match source.path.as_str() {
        "" => DEFAULT_PATH,
        path => path,
    };
    let parts = split_field_path(path);
    let found = lookup(&resource.value, &parts)
        .within(|| "error looking up replacement source".to_owned())?
        .filter(|found| !is_empty(found))
        .ok_or_else(|| {
            Error::new(format!(
                "fieldPath `{path}` is missing for replacement source {}",
                source.id
            ))
        })?;
    let Some(options) = source
        .options
        .as_ref()
        .filter(|options| !options.delimiter.is_empty())
    else {
        return Ok((found.clone(), Some((at, parts))));
    };
    if !is_scalar(found) {
        return Err(Error::new("delimiter option can only be used with scalar nodes"));
    }
    let whole = text(found);
    let parts: Vec<&str> = split_text(&whole, &options.delimiter);
    let part = usize::try_from(options.index)
        .ok()
        .and_then(|index| parts.get(index));
    let part = part.ok_or_else(|| {
        Error::new(format!(
            "options.index {} is out of bounds for value {whole}",
            options.index
        ))
    })?;
    // A part of a number is a text like any other here: what it is put into decides.
    let part = match found {
        Value::String(_) => Value::String((*part).to_owned()),
        _ => plain(part),
    };
    Ok((part, None))
}

/// A value that only its text is known of.
fn plain_text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn split_text<'t>(text: &'t str, delimiter: &str) -> Vec<&'t str> {
    text.split(delimiter).collect()
}

fn put(
    resources: &mut ResMap,
    value: &mut Value,
    live: Option<&Live>,
    target: &Target,
    context: &Context<'_>,
) -> Result<()> {
    let bytes = context.limits.regex_bytes;
    let select = target
        .select
        .as_ref()
        .ok_or_else(|| Error::new("target must specify resources to select"))?;
    let selected =
        CompiledSelector::new(select, bytes).within(|| "error creating target selector".to_owned())?;
    let mut rejected = Vec::new();
    for reject in &target.reject {
        rejected.push((reject, CompiledSelector::new(reject, bytes)?));
    }
    let default = [DEFAULT_PATH.to_owned()];
    let paths = match target.paths.is_empty() {
        true => &default[..],
        false => &target.paths,
    };
    let is_target = |resource: &Resource| {
        if !selected.selects_metadata(resource) {
            return false;
        }
        let by_metadata = rejected.iter().any(|(written, reject)| {
            !(written.annotations.is_empty() && written.labels.is_empty())
                && reject.selects_metadata(resource)
        });
        if by_metadata {
            return false;
        }
        let ids = ids(resource);
        let by_id = rejected
            .iter()
            .any(|(written, reject)| !written.id.is_empty() && ids.iter().any(|id| reject.selects_id(id)));
        !by_id && ids.iter().any(|id| selected.selects_id(id))
    };
    let places: Vec<usize> = resources
        .at_name(select.plain_name())
        .filter(|(_, resource)| is_target(resource))
        .map(|(at, _)| at)
        .collect();
    let shows_history = paths.iter().any(|path| path.starts_with("metadata.annotations"));
    for at in places {
        resources.edit(at, context.api, |resource| {
            let put_all = |object: &mut Value| -> Result<()> {
                paths
                    .iter()
                    .try_for_each(|path| put_into(object, value, path, target.options.as_ref(), context))
            };
            match shows_history && !resource.previous.is_empty() {
                true => resource.with_history(put_all)?,
                false => put_all(&mut resource.value)?,
            }
            if let Some((_, path)) = live.filter(|(source, _)| *source == at)
                && let Ok(Some(now)) = lookup(&resource.value, path)
            {
                *value = now.clone();
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts a value into the fields of an object that a path means.
fn put_into(
    object: &mut Value,
    value: &Value,
    path: &str,
    options: Option<&FieldOptions>,
    context: &Context<'_>,
) -> Result<()> {
    let regex_bytes = context.limits.regex_bytes;
    let create = options.is_some_and(|options| options.create);
    let parts = split_field_path(path);
    context.add(size(value))?;
    if structured::put(object, &parts, value, create, context)? {
        return Ok(());
    }
    let failed = || match create {
        true => format!("unable to find or create field \"{path}\" in replacement target"),
        false => format!("unable to find field \"{path}\" in replacement target"),
    };
    let mut walk = PathWalk {
        make: create.then_some(value),
        regex_bytes,
        set: &mut |field, made| {
            context.add(size(value) + text(field).len())?;
            set_field(field, value, options, made)
        },
    };
    match walk.visit(object, &parts, false).within(failed)? {
        0 => Err(Error::new(failed())),
        _ => Ok(()),
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields
                .iter()
                .map(|(key, value)| key.len() + size(value))
                .sum::<usize>()
                + 2
        }
        other => text(other).len() + 1,
    }
}

/// Sets one field; `made` if it was made for it.
fn set_field(field: &mut Value, value: &Value, options: Option<&FieldOptions>, made: bool) -> Result<()> {
    let mut new = text(value).into_owned();
    if let Some(options) = options.filter(|options| !options.delimiter.is_empty()) {
        if !is_scalar(field) {
            return Err(Error::new("delimiter option can only be used with scalar nodes"));
        }
        let old = text(field).into_owned();
        let mut parts = split_text(&old, &options.delimiter);
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, &new),
            Ok(index) if index >= parts.len() => parts.push(&new),
            Ok(index) => parts[index] = &new,
        }
        new = parts.join(&options.delimiter);
    }
    if !is_scalar(field) {
        *field = match options.is_some_and(|options| !options.delimiter.is_empty()) {
            true => plain(&new),
            false => value.clone(),
        };
        return Ok(());
    }
    if made {
        *field = plain(&new);
        return Ok(());
    }
    set_text(field, &new)
}

/// Visits the fields that a path with indices, wildcards and `[name=value]` means.
pub(super) struct PathWalk<'a> {
    /// The value that fields are made for; none if none are made.
    pub(super) make: Option<&'a Value>,
    pub(super) regex_bytes: usize,
    pub(super) set: &'a mut dyn FnMut(&mut Value, bool) -> Result<()>,
}

impl PathWalk<'_> {
    /// Returns how many fields were set.
    pub(super) fn visit(&mut self, value: &mut Value, path: &[String], made: bool) -> Result<usize> {
        let Some((first, rest)) = path.split_first() else {
            (self.set)(value, made)?;
            return Ok(1);
        };
        if let Ok(index) = first.parse::<usize>() {
            return self.index(value, index, rest);
        }
        if let Some(index) = list_index(first) {
            let (name, pattern) = index?;
            return self.items(value, name, pattern, rest);
        }
        if first == "*" {
            let mut count = 0;
            for item in items_mut(value)? {
                count += self.visit(item, rest, false)?;
            }
            return Ok(count);
        }
        self.field(value, first, rest)
    }

    /// What a field or item that is made begins as.
    fn begin(&self, next: Option<&String>) -> Value {
        match next {
            Some(next) if next.parse::<usize>().is_ok() || list_index(next).is_some() => {
                Value::Array(Vec::new())
            }
            Some(_) => Value::Object(Map::new()),
            None => match self.make {
                Some(Value::Array(_)) => Value::Array(Vec::new()),
                Some(Value::Object(_)) => Value::Object(Map::new()),
                _ => Value::Null,
            },
        }
    }

    fn field(&mut self, value: &mut Value, name: &str, rest: &[String]) -> Result<usize> {
        let begin = self.begin(rest.first());
        let create = self.make.is_some();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => return Ok(0),
            other => return Err(wrong_kind("MappingNode", other)),
        };
        let made = !fields.contains_key(name);
        if made && !create {
            return Ok(0);
        }
        let field = fields.entry(name).or_insert(begin);
        if !made && is_scalar(field) && !rest.is_empty() {
            // The text may be a document itself; what is found in it is found, and lost again.
            return structured::count(field, rest, create, self.regex_bytes);
        }
        self.visit(field, rest, made)
    }

    fn index(&mut self, value: &mut Value, index: usize, rest: &[String]) -> Result<usize> {
        let begin = self.begin(rest.first());
        let create = self.make.is_some();
        let items = items_mut(value)?;
        let made = items.len() == index && create;
        if made {
            items.push(begin);
        }
        let found = items.len();
        let item = items
            .get_mut(index)
            .ok_or_else(|| Error::new(format!("index {index} specified but only {found} elements found")))?;
        self.visit(item, rest, made)
    }

    fn items(&mut self, value: &mut Value, name: &str, pattern: &str, rest: &[String]) -> Result<usize> {
        let compiled = regex(pattern, self.regex_bytes)?;
        let mut count = 0;
        for item in items_mut(value)? {
            let found = match name {
                "" => compiled.is_match(text(item).trim()),
                name => item
                    .get(name)
                    .is_some_and(|field| compiled.is_match(text(field).trim())),
            };
            if found {
                count += match name {
                    "" => self.visit(item, &[], false)?,
                    _ => self.visit(item, rest, false)?,
                };
            }
        }
        if count > 0 || self.make.is_none() {
            return Ok(count);
        }
        let wanted = plain(pattern);
        let mut item = match name {
            "" => wanted,
            name => Value::Object(Map::from_iter([(name.to_owned(), wanted)])),
        };
        // An item that its own pattern does not match would be made again and again.
        if !compiled.is_match(pattern) {
            return Err(Error::new(format!(
                "no element can be made for [{name}={pattern}]"
            )));
        }
        count = match name {
            "" => self.visit(&mut item, &[], false)?,
            _ => self.visit(&mut item, rest, false)?,
        };
        items_mut(value)?.push(item);
        Ok(count)
    }
}

fn items_mut(value: &mut Value) -> Result<&mut Vec<Value>> {
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_kind("SequenceNode", other)),
    }
}
