//! Where objects of a kind are in the API, asked of the API itself.

use std::collections::HashMap;

use fairway_controller::Requests;
use serde_json::Value;

use crate::who::is_name;

/// A kind as URLs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Resource {
    /// The collection that an object belongs to.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = match self.group.is_empty() {
            true => format!("/api/{}", self.version),
            false => format!("/apis/{}/{}", self.group, self.version),
        };
        match self.namespaced {
            true => format!("{root}/namespaces/{namespace}/{}", self.plural),
            false => format!("{root}/{}", self.plural),
        }
    }
}

/// Kinds that were asked for, so that each group is asked once in a step.
#[derive(Default)]
pub(crate) struct Discovery {
    known: HashMap<String, Value>,
}

impl Discovery {
    /// The kind of an object.
    pub(crate) async fn of(&mut self, requests: &Requests, object: &Value) -> Result<Resource, String> {
        let api_version = object["apiVersion"].as_str().unwrap_or("");
        let kind = object["kind"].as_str().unwrap_or("");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_sound = is_name(version) && (group.is_empty() || is_name(group)) && !kind.is_empty();
        if !is_sound {
            return Err(format!(
                "an object has no sound apiVersion and kind: {api_version:?} {kind:?}"
            ));
        }
        if !self.known.contains_key(api_version) {
            let path = match group {
                "" => format!("/api/{version}"),
                _ => format!("/apis/{api_version}"),
            };
            let list = requests.get(&path).await.map_err(|failure| failure.sentence())?;
            let list = list.ok_or_else(|| format!("{api_version} is not served here"))?;
            self.known.insert(api_version.to_owned(), list);
        }
        let resources = self.known[api_version]["resources"].as_array();
        let found = resources.into_iter().flatten().find(|resource| {
            resource["kind"] == kind && resource["name"].as_str().is_some_and(|name| !name.contains('/'))
        });
        let found = found.ok_or_else(|| format!("{api_version} {kind} is not served here"))?;
        Ok(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: found["name"].as_str().unwrap_or("").to_owned(),
            namespaced: found["namespaced"] == true,
        })
    }
}
