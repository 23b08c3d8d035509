//! Backstage's filters: addresses of repositories, references to entities, fields.

use super::super::error::Error;
use super::super::value::Value;
use super::Given;
use crate::names::{EntityRef, RepoUrl};

/// Applies one of them; nothing if it is none of them.
pub(super) fn apply(name: &str, of: &Value, given: &Given<'_>) -> Result<Option<Value>, Error> {
    let text = of.printed();
    Ok(Some(match name {
        "parseRepoUrl" => {
            let url = RepoUrl::parse(&text).map_err(Error::failed)?;
            Value::from_json(&url.to_json())
        }
        "projectSlug" => {
            let url = RepoUrl::parse(&text).map_err(Error::failed)?;
            Value::text(url.slug())
        }
        "parseEntityRef" => {
            let options = given.at(0, "context").cloned().unwrap_or(Value::Undefined);
            let default = |key: &str| {
                let value = options.member(&Value::text(key));
                (!value.is_missing()).then(|| value.shown().to_string())
            };
            let (kind, namespace) = (default("defaultKind"), default("defaultNamespace"));
            let entity = match of {
                // One that is taken apart already, of which a part may be missing.
                Value::Map(_) => {
                    let part = |key: &str| {
                        let value = of.member(&Value::text(key));
                        (!value.is_missing()).then(|| value.shown().to_string())
                    };
                    let kind = part("kind").or(kind).unwrap_or_default();
                    let namespace = part("namespace").or(namespace);
                    let name = part("name").unwrap_or_default();
                    let entity = EntityRef::of(&kind, namespace.as_deref().unwrap_or("default"), &name);
                    entity.ok_or_else(|| {
                        "parseEntityRef was given a map that is no reference to an entity: it needs kind (or defaultKind) and name"
                            .to_owned()
                    })
                }
                _ => EntityRef::parse(&text, kind.as_deref(), namespace.as_deref()),
            };
            Value::from_json(&entity.map_err(Error::failed)?.to_json())
        }
        "pick" => of.member(given.at(0, "key").unwrap_or(&Value::Undefined)),
        _ => return Ok(None),
    }))
}
