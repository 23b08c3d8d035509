//! The resources of a build, in their order, no two of them with the same name.
//!
//! A kustomization may have a patch for each of thousands of resources, so finding one by its name must not look at all
//! of them. What is known of ids and names is kept as long as it holds, and made anew when somebody needs it.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::id::ResId;
use crate::node::{is_empty, text};
use crate::openapi::OpenApi;
use crate::resource::{ORIGIN, Resource};
use crate::selector::{CompiledSelector, Selector};

/// Resources in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResMap {
    list: Vec<Resource>,
    /// The current ids, as long as nobody could have changed them.
    ids: Option<HashSet<ResId>>,
    /// Where resources are that have, or had, a name; maybe more, never fewer.
    names: OnceCell<HashMap<String, Vec<usize>>>,
    /// Whether somebody could have emptied a resource since they were last dropped.
    may_be_gone: bool,
}

impl ResMap {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.list.iter()
    }

    /// For changes; what was known of the resources is forgotten.
    pub(crate) fn list_mut(&mut self) -> &mut Vec<Resource> {
        self.forget();
        &mut self.list
    }

    fn forget(&mut self) {
        self.ids = None;
        self.names = OnceCell::new();
        self.may_be_gone = true;
    }

    /// Changes one resource. What is known of all is kept if the change leaves its names as they are.
    pub(crate) fn edit<T>(
        &mut self,
        at: usize,
        api: &OpenApi,
        change: impl FnOnce(&mut Resource) -> Result<T>,
    ) -> Result<T> {
        let resource = &mut self.list[at];
        let before = (resource.current_id(api).into_key(), resource.previous.clone());
        let done = change(resource);
        let is_same_id = !resource.is_gone() && resource.current_id(api).into_key() == before.0;
        let is_known =
            |name: &str| name == before.0.name || before.1.iter().any(|previous| previous.name == name);
        let previous = resource.previous.iter();
        if !is_same_id || !previous.map(|previous| previous.name.as_str()).all(is_known) {
            self.forget();
        }
        done
    }

    /// Whether no two resources are known to be called the same, and none is empty.
    pub(crate) fn is_known_unique(&self) -> bool {
        let ids = self.ids.as_ref();
        !self.may_be_gone && ids.is_some_and(|ids| ids.len() == self.list.len())
    }

    /// Resources that may have, or have had, a name; without one, all. In their order.
    pub(crate) fn at_name<'s>(
        &'s self,
        name: Option<&str>,
    ) -> impl Iterator<Item = (usize, &'s Resource)> + use<'s> {
        let (named, all) = match name {
            Some(name) => (self.named(name), 0..0),
            None => (&[][..], 0..self.list.len()),
        };
        let places = named.iter().copied().chain(all);
        places.map(|at| (at, &self.list[at]))
    }

    /// Where resources may be that have, or had, a name; in their order.
    fn named(&self, name: &str) -> &[usize] {
        let names = self.names.get_or_init(|| {
            let mut names = HashMap::new();
            for (at, resource) in self.list.iter().enumerate() {
                note_names(&mut names, at, resource);
            }
            names
        });
        names.get(name).map_or(&[], Vec::as_slice)
    }

    /// For changes that leave the ids as they are.
    pub(crate) fn list_mut_same_ids(&mut self) -> &mut [Resource] {
        &mut self.list
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn into_list(self) -> Vec<Resource> {
        self.list
    }

    /// Adds a resource whose id is new.
    pub(crate) fn append(&mut self, resource: Resource, api: &OpenApi, limit: usize) -> Result<()> {
        if self.list.len() >= limit {
            return Err(Error::of(
                ErrorKind::Limit,
                format!("the build has more than the limit of {limit} resources"),
            ));
        }
        let list = &self.list;
        let ids = self.ids.get_or_insert_with(|| {
            let ids = list.iter().filter(|resource| !resource.is_gone());
            ids.map(|resource| resource.current_id(api).into_key()).collect()
        });
        let id = resource.current_id(api);
        if !ids.insert(id.clone().into_key()) {
            return Err(Error::new(format!(
                "may not add resource with an already registered id: {id}"
            )));
        }
        if let Some(names) = self.names.get_mut() {
            note_names(names, self.list.len(), &resource);
        }
        self.may_be_gone |= resource.is_gone();
        self.list.push(resource);
        Ok(())
    }

    pub(crate) fn append_all(
        &mut self,
        resources: impl IntoIterator<Item = Resource>,
        api: &OpenApi,
        limit: usize,
    ) -> Result<()> {
        resources
            .into_iter()
            .try_for_each(|resource| self.append(resource, api, limit))
    }

    /// Refuses two resources with the same id.
    pub(crate) fn check_unique(&mut self, api: &OpenApi) -> Result<()> {
        let mut ids = HashSet::with_capacity(self.list.len());
        for resource in &self.list {
            let id = resource.current_id(api);
            if !ids.insert(id.clone().into_key()) {
                return Err(Error::new(format!(
                    "may not add resource with an already registered id: {id}"
                )));
            }
        }
        self.ids = Some(ids);
        Ok(())
    }

    /// Drops what patches have emptied.
    pub(crate) fn drop_gone(&mut self) {
        if self.may_be_gone && self.list.iter().any(Resource::is_gone) {
            self.forget();
            self.list.retain(|resource| !resource.is_gone());
        }
        self.may_be_gone = false;
    }

    /// Where the resources are that are or were called so.
    pub(crate) fn matching_any_id(&self, id: &ResId, api: &OpenApi) -> Vec<usize> {
        self.at_name(Some(&id.name))
            .filter(|(_, resource)| !resource.is_gone() && resource.any_id(api, |own| own.is(id)))
            .map(|(at, _)| at)
            .collect()
    }

    /// Where the one resource is that is or was called so.
    pub(crate) fn find(&self, id: &ResId, api: &OpenApi) -> Result<usize> {
        match self.matching_any_id(id, api)[..] {
            [at] => Ok(at),
            [] => Err(Error::new(format!(
                "no matches for Id {id}; failed to find unique target for patch {id}"
            ))),
            _ => Err(Error::new(format!(
                "multiple matches for Id {id}; failed to find unique target for patch {id}"
            ))),
        }
    }

    /// Where the resources are that a selector means.
    pub(crate) fn select(
        &self,
        selector: &Selector,
        api: &OpenApi,
        regex_bytes: usize,
    ) -> Result<Vec<usize>> {
        let compiled = CompiledSelector::new(selector, regex_bytes)?;
        Ok(self
            .at_name(selector.plain_name())
            .filter(|(_, resource)| compiled.selects(resource, api))
            .map(|(at, _)| at)
            .collect())
    }

    /// Adds what a generator made: a new resource, or one to replace or merge with.
    pub(crate) fn absorb(&mut self, mut incoming: Resource, api: &OpenApi, limit: usize) -> Result<()> {
        let id = incoming.current_id(api);
        let behavior = incoming.behavior.clone().unwrap_or_default();
        let at = match self.matching_any_id(&id, api)[..] {
            [] => {
                return match behavior.as_str() {
                    "merge" | "replace" => Err(Error::new(format!(
                        "id {id} does not exist; cannot merge or replace"
                    ))),
                    _ => self.append(incoming, api, limit),
                };
            }
            [at] => at,
            _ => {
                return Err(Error::new(format!(
                    "found multiple objects that could accept merge of {id}"
                )));
            }
        };
        let old = &self.list[at];
        match behavior.as_str() {
            "replace" => inherit(&mut incoming, old)?,
            "merge" => {
                inherit(&mut incoming, old)?;
                merge_data(&mut incoming.value, &old.value, "data");
                merge_data(&mut incoming.value, &old.value, "binaryData");
                if let Some(origin) = old.annotation(ORIGIN) {
                    let origin = origin.into_owned();
                    incoming.set_annotation(ORIGIN, &origin)?;
                }
            }
            _ => {
                return Err(Error::new(format!(
                    "id {id} exists; can not use behavior: '{}', behavior must be merge or replace",
                    if behavior.is_empty() { "create" } else { &behavior }
                )));
            }
        }
        self.edit(at, api, |old| {
            *old = incoming;
            Ok(())
        })
    }

    /// Sorts by keys made from the current ids.
    pub(crate) fn sort_by_cached_key<K>(
        &mut self,
        api: &OpenApi,
        key: impl Fn(&ResId) -> K,
        compare: impl Fn(&K, &K) -> Ordering,
    ) -> Result<()> {
        let list = std::mem::take(&mut self.list);
        let mut keyed: Vec<(K, Resource)> = list
            .into_iter()
            .map(|resource| (key(&resource.current_id(api)), resource))
            .collect();
        keyed.sort_by(|left, right| compare(&left.0, &right.0));
        self.list = keyed.into_iter().map(|(_, resource)| resource).collect();
        self.forget();
        self.check_unique(api)
    }
}

fn note_names(names: &mut HashMap<String, Vec<usize>>, at: usize, resource: &Resource) {
    let mut note = |name: &str| match names.get_mut(name) {
        Some(places) if places.last() == Some(&at) => {}
        Some(places) => places.push(at),
        None => {
            names.insert(name.to_owned(), vec![at]);
        }
    };
    note(&resource.name());
    resource.previous.iter().for_each(|previous| note(&previous.name));
}

/// Gives a generated resource the metadata and the past of the one that it takes the place of.
pub(crate) fn inherit(incoming: &mut Resource, old: &Resource) -> Result<()> {
    for field in ["labels", "annotations"] {
        let mut merged = Map::new();
        for (key, value) in old
            .string_map(field)
            .into_iter()
            .chain(incoming.string_map(field))
        {
            merged.insert(key.to_owned(), Value::String(value.into_owned()));
        }
        incoming.set_string_map(field, merged)?;
    }
    incoming.set_name(&old.name())?;
    incoming.set_namespace(&old.namespace())?;
    incoming.previous.clone_from(&old.previous);
    incoming.prefixes.clone_from(&old.prefixes);
    incoming.suffixes.clone_from(&old.suffixes);
    incoming.behavior.clone_from(&old.behavior);
    incoming.helm_generated = old.helm_generated;
    incoming.allow_name_change = old.allow_name_change;
    incoming.allow_kind_change = old.allow_kind_change;
    // A hash is wanted only if both want it.
    incoming.needs_hash &= old.needs_hash;
    incoming.vars.clone_from(&old.vars);
    Ok(())
}

fn merge_data(incoming: &mut Value, old: &Value, field: &str) {
    let entries = |value: &Value| -> Vec<(String, Value)> {
        match value.get(field) {
            Some(Value::Object(map)) => {
                let text = |value: &Value| Value::String(text(value).into_owned());
                map.iter()
                    .map(|(key, value)| (key.clone(), text(value)))
                    .collect()
            }
            _ => Vec::new(),
        }
    };
    let merged: Map<String, Value> = entries(old).into_iter().chain(entries(incoming)).collect();
    let Value::Object(fields) = incoming else { return };
    fields.shift_remove(field);
    let merged = Value::Object(merged);
    if !is_empty(&merged) {
        fields.insert(field.to_owned(), merged);
    }
}

#[cfg(test)]
mod tests;
