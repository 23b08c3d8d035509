//! Brings names that resources refer to each other by up to date, after resources were renamed.
//!
//! A field that may hold a name is compared with what resources were called before. Names are looked up in an index, so
//! the work grows with the number of references and not with the product of resources.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::config::NameReference;
use crate::error::{Error, Result, Within};
use crate::fieldspec::{FieldSpec, Make};
use crate::id::{Gvk, NOT_A_NAMESPACE, selects, split_api_version};
use crate::node::{set_plain, text};
use crate::openapi::OpenApi;
use crate::resmap::ResMap;
use crate::resource::{Previous, Resource};

/// Updates every reference in the resources.
pub(crate) fn fix(resources: &mut ResMap, references: &[NameReference], api: &OpenApi) -> Result<()> {
    let index = Index::new(resources, api);
    let mut by_kind: HashMap<String, Vec<(&FieldSpec, &Gvk)>> = HashMap::new();
    for (at, resource) in resources.list_mut_same_ids().iter_mut().enumerate() {
        let original = resource.original_id(api).gvk;
        let specs = by_kind.entry(original.kind.clone()).or_insert_with(|| {
            let all = references
                .iter()
                .flat_map(|reference| reference.referrers.iter().map(move |spec| (spec, &reference.gvk)));
            all.filter(|(spec, _)| spec.gvk.kind.is_empty() || spec.gvk.kind == original.kind)
                .collect()
        });
        if specs.is_empty() {
            continue;
        }
        let bound = match &index.candidates[at].cluster_scoped {
            true => HashSet::new(),
            false => subject_namespaces(resource)?,
        };
        for (spec, target) in specs.iter() {
            if !selects(&spec.gvk, &original.group, &original.version, &original.kind) {
                continue;
            }
            let role = match spec.path.ends_with("roleRef/name") {
                true => role_gvk(&resource.value),
                false => None,
            };
            let search = Search {
                index: &index,
                referrer: &index.candidates[at],
                bound: &bound,
                target,
                role,
            };
            spec.apply_unchecked(&mut resource.value, Make::Nothing, &mut |field| {
                search.update(field)
            })
            .within(|| {
                format!(
                    "updating name reference in '{}' field of '{} {}'",
                    spec.path, index.candidates[at].kind, index.candidates[at].name
                )
            })?;
        }
    }
    Ok(())
}

/// What is asked of a resource that could be referred to.
struct Candidate {
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
    /// Never empty.
    effective_namespace: String,
    cluster_scoped: bool,
    previous: Vec<Previous>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

impl Candidate {
    fn was(&self, selector: &Gvk) -> bool {
        self.previous
            .iter()
            .any(|previous| selects(selector, &self.group, &self.version, &previous.kind))
    }
}

struct Index {
    candidates: Vec<Candidate>,
    by_previous_name: HashMap<String, Vec<usize>>,
    by_original_namespace: HashMap<String, Vec<usize>>,
}

impl Index {
    fn new(resources: &ResMap, api: &OpenApi) -> Self {
        let mut index = Self {
            candidates: Vec::with_capacity(resources.len()),
            by_previous_name: HashMap::new(),
            by_original_namespace: HashMap::new(),
        };
        for (at, resource) in resources.iter().enumerate() {
            let mut names: Vec<&str> = resource
                .previous
                .iter()
                .map(|previous| previous.name.as_str())
                .collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                index
                    .by_previous_name
                    .entry(name.to_owned())
                    .or_default()
                    .push(at);
            }
            let original = resource.original_id(api);
            index
                .by_original_namespace
                .entry(original.effective_namespace().to_owned())
                .or_default()
                .push(at);
            let id = resource.id_ref(api);
            let (group, version) = split_api_version(resource.api_version());
            index.candidates.push(Candidate {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: id.kind.into_owned(),
                name: id.name.into_owned(),
                namespace: resource.namespace().into_owned(),
                cluster_scoped: id.namespace == NOT_A_NAMESPACE,
                effective_namespace: id.namespace.into_owned(),
                previous: resource.previous.clone(),
                prefixes: resource.prefixes.clone(),
                suffixes: resource.suffixes.clone(),
            });
        }
        index
    }
}

/// The search for what one field of one resource refers to.
struct Search<'a> {
    index: &'a Index,
    referrer: &'a Candidate,
    /// Namespaces whose service accounts the referrer binds.
    bound: &'a HashSet<String>,
    target: &'a Gvk,
    role: Option<Gvk>,
}

impl Search<'_> {
    fn update(&self, field: &mut Value) -> Result<()> {
        match field {
            Value::Null => Ok(()),
            Value::Object(_) => self.update_map(field),
            Value::Array(items) => items.iter_mut().try_for_each(|item| match item {
                Value::Null => Ok(()),
                Value::Object(_) => self.update_map(item),
                Value::Array(_) => Err(Error::new("expected to be either a string or a map of string")),
                _ => self.update_scalar(item),
            }),
            _ => self.update_scalar(field),
        }
    }

    fn update_scalar(&self, field: &mut Value) -> Result<()> {
        let old = text(field);
        let found = self.find(&old, None, |first, other| first.name == other.name)?;
        if let Some(found) = found.filter(|found| found.name != old) {
            let new = found.name.clone();
            set_plain(field, &new);
        }
        Ok(())
    }

    fn update_map(&self, field: &mut Value) -> Result<()> {
        let Value::Object(fields) = field else {
            return Ok(());
        };
        let Some(name) = fields.get("name") else {
            return Err(Error::new("path config error; no 'name' field in node"));
        };
        let old = text(name).into_owned();
        let namespace = fields
            .get("namespace")
            .map(|namespace| text(namespace).into_owned());
        let same = |first: &Candidate, other: &Candidate| {
            first.name == other.name && first.namespace == other.namespace
        };
        let Some(found) = self.find(&old, namespace.as_deref(), same)? else {
            return Ok(());
        };
        if found.name == old && found.namespace.is_empty() {
            return Ok(());
        }
        set_plain(fields.entry("name").or_insert(Value::Null), &found.name);
        if !found.namespace.is_empty() {
            set_plain(fields.entry("namespace").or_insert(Value::Null), &found.namespace);
        }
        Ok(())
    }

    /// Whether the referrer can refer to a resource at all.
    fn in_reach(&self, candidate: &Candidate) -> bool {
        self.referrer.cluster_scoped
            || candidate.cluster_scoped
            || candidate.effective_namespace == self.referrer.effective_namespace
            || self.bound.contains(&candidate.namespace)
    }

    /// Whether a resource is in the namespace that a reference names: as it was called at first, if any was.
    fn namespace_filter(&self, namespace: Option<&str>) -> impl Fn(usize) -> bool {
        let by_original = namespace.map(|namespace| {
            let named = self.index.by_original_namespace.get(namespace);
            let in_reach = |at: &&usize| self.in_reach(&self.index.candidates[**at]);
            let found = namespace != NOT_A_NAMESPACE
                && named.is_some_and(|named| named.iter().any(|at| in_reach(&at)));
            (namespace.to_owned(), found, named)
        });
        move |at| match &by_original {
            None => true,
            Some((_, true, named)) => named.is_some_and(|named| named.binary_search(&at).is_ok()),
            Some((namespace, false, _)) => {
                let candidate = &self.index.candidates[at];
                !candidate.cluster_scoped && candidate.effective_namespace == *namespace
            }
        }
    }

    fn find(
        &self,
        old: &str,
        namespace: Option<&str>,
        same: impl Fn(&Candidate, &Candidate) -> bool,
    ) -> Result<Option<&Candidate>> {
        let Some(named) = self.index.by_previous_name.get(old) else {
            return Ok(None);
        };
        let in_namespace = self.namespace_filter(namespace);
        let mut found: Vec<&Candidate> = named
            .iter()
            .filter(|at| in_namespace(**at))
            .map(|at| &self.index.candidates[*at])
            .filter(|candidate| self.in_reach(candidate))
            .filter(|candidate| candidate.was(self.target))
            .filter(|candidate| self.role.as_ref().is_none_or(|role| candidate.was(role)))
            .filter(|candidate| {
                self.referrer.cluster_scoped
                    || candidate.cluster_scoped
                    || candidate.kind == "ServiceAccount"
                    || candidate.effective_namespace == self.referrer.effective_namespace
            })
            .collect();
        if found.len() == 1 {
            return Ok(found.pop());
        }
        found.retain(|candidate| same_affixes(candidate, self.referrer, true));
        if found.len() > 1 {
            found.retain(|candidate| same_affixes(candidate, self.referrer, false));
        }
        match &found[..] {
            [] => Ok(None),
            [first, others @ ..] if others.iter().all(|other| same(first, other)) => Ok(Some(first)),
            all => {
                let names: Vec<String> = all
                    .iter()
                    .map(|one| format!("{} {} in {}", one.kind, one.name, one.effective_namespace))
                    .collect();
                Err(Error::new(format!(
                    "found multiple possible referrals: {}",
                    names.join(", ")
                )))
            }
        }
    }
}

fn same_affixes(left: &Candidate, right: &Candidate, allow_empty: bool) -> bool {
    let same = |left: &[String], right: &[String]| {
        (allow_empty && (left.is_empty() || right.is_empty())) || same_ending(left, right)
    };
    same(&left.prefixes, &right.prefixes) && same(&left.suffixes, &right.suffixes)
}

/// Whether the shorter list is the end of the longer one; an empty one is so only of another empty one.
fn same_ending(left: &[String], right: &[String]) -> bool {
    match left.is_empty() || right.is_empty() {
        true => left.len() == right.len(),
        false => left.ends_with(right) || right.ends_with(left),
    }
}

fn role_gvk(object: &Value) -> Option<Gvk> {
    let role = object.get("roleRef")?;
    Some(Gvk::new(
        &text(role.get("apiGroup")?),
        "",
        &text(role.get("kind")?),
    ))
}

/// The namespaces of the service accounts that a role binding binds.
fn subject_namespaces(resource: &Resource) -> Result<HashSet<String>> {
    let mut namespaces = HashSet::new();
    if resource.kind() != "RoleBinding" {
        return Ok(namespaces);
    }
    let Some(Value::Array(subjects)) = resource.value.get("subjects") else {
        return Ok(namespaces);
    };
    for subject in subjects {
        let Some(namespace) = subject.get("namespace") else {
            continue;
        };
        if subject.get("kind").and_then(Value::as_str) != Some("ServiceAccount") {
            continue;
        }
        match namespace {
            Value::String(namespace) => {
                namespaces.insert(namespace.clone());
            }
            _ => {
                return Err(Error::new(format!(
                    "Invalid Input: namespace is blank for resource RoleBinding {:?}",
                    resource.name()
                )));
            }
        }
    }
    Ok(namespaces)
}
