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
            let defaults = (default("defaultKind"), default("defaultNamespace"));
            let entity = EntityRef::parse(&text, defaults.0.as_deref(), defaults.1.as_deref())
                .map_err(Error::failed)?;
            Value::from_json(&entity.to_json())
        }
        "pick" => of.member(given.at(0, "key").unwrap_or(&Value::Undefined)),
        _ => return Ok(None),
    }))
}
