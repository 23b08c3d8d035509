//! The namespace of resources, and of the few fields that name one.

use std::collections::HashMap;

use serde_json::Value;

use super::Context;
use crate::error::{Error, Result, Within};
use crate::fieldspec::{FieldSpec, Make};
use crate::id::{Gvk, ResId};
use crate::node::{is_empty, text, wrong_kind};
use crate::openapi::OpenApi;
use crate::resmap::ResMap;
use crate::resource::Resource;

/// Which subjects of role bindings get the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// Those named `default`.
    Default,
    ServiceAccounts,
    None,
}

impl Subjects {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "" | "defaultOnly" => Ok(Self::Default),
            "allServiceAccounts" => Ok(Self::ServiceAccounts),
            "none" => Ok(Self::None),
            other => Err(Error::new(format!(
                "invalid value \"{other}\" for setRoleBindingSubjects: must be one of \"defaultOnly\", \"none\" or \
                 \"allServiceAccounts\""
            ))),
        }
    }
}

/// A namespace and where it goes.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) namespace: String,
    pub(crate) specs: Vec<FieldSpec>,
    /// Leave alone what has one.
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

impl Namespace {
    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        let mut count: HashMap<ResId, usize> = HashMap::with_capacity(resources.len());
        for resource in resources.iter() {
            *count
                .entry(resource.current_id(context.api).into_key())
                .or_default() += 1;
        }
        for resource in resources.list_mut() {
            if resource.is_gone() || resource.helm_generated {
                continue;
            }
            if let Some(same) = count.get_mut(&resource.current_id(context.api).into_key()) {
                *same -= 1;
            }
            resource.store_previous_id(context.api);
            self.set(resource, context.api)?;
            let id = resource.current_id(context.api);
            let same = count.entry(id.clone().into_key()).or_default();
            *same += 1;
            if *same != 1 {
                return Err(Error::new(format!(
                    "namespace transformation produces ID conflict: {same} resources are called {id}"
                )));
            }
        }
        Ok(())
    }

    /// Sets the namespace in one resource.
    pub(crate) fn set(&self, resource: &mut Resource, api: &OpenApi) -> Result<()> {
        if !resource.is_cluster_scoped(api) {
            FieldSpec::new(Gvk::default(), "metadata/namespace", true).apply(
                &mut resource.value,
                Make::Scalar,
                &mut |field| self.set_field(field),
            )?;
        }
        let kind = resource.kind().into_owned();
        let is_binding = is_role_binding(&kind);
        if is_binding {
            self.set_subjects(&mut resource.value)
                .within(|| "setting namespace on (cluster)role binding subjects".to_owned())?;
        }
        let is_core = resource.api_version() == "v1";
        for spec in &self.specs {
            let skipped = spec.path == "metadata/namespace"
                || !is_core && spec.path == "metadata/name"
                || is_binding && is_role_binding(&spec.gvk.kind) && spec.path == "subjects/namespace";
            if !skipped {
                spec.apply(&mut resource.value, Make::Scalar, &mut |field| {
                    self.set_field(field)
                })
                .within(|| "namespace transformation failed".to_owned())?;
            }
        }
        Ok(())
    }

    fn set_field(&self, field: &mut Value) -> Result<()> {
        if field.is_object() || field.is_array() {
            return match is_empty(field) && self.unset_only {
                true => Ok(()),
                false => {
                    Err(wrong_kind("ScalarNode", field)
                        .within("namespace field specs must target scalar nodes"))
                }
            };
        }
        if !self.unset_only || text(field).is_empty() {
            *field = Value::String(self.namespace.clone());
        }
        Ok(())
    }

    fn set_subjects(&self, object: &mut Value) -> Result<()> {
        let (field, wanted) = match self.subjects {
            Subjects::None => return Ok(()),
            Subjects::Default => ("name", "default"),
            Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
        };
        let subjects = match object.get_mut("subjects") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(subjects)) => subjects,
            Some(other) => return Err(wrong_kind("SequenceNode", other)),
        };
        for subject in subjects {
            let Value::Object(fields) = subject else {
                if subject.is_null() {
                    continue;
                }
                return Err(wrong_kind("MappingNode", subject));
            };
            if fields.get(field).is_some_and(|value| text(value) == wanted) {
                self.set_field(fields.entry("namespace").or_insert(Value::Null))?;
            }
        }
        Ok(())
    }
}

fn is_role_binding(kind: &str) -> bool {
    kind == "RoleBinding" || kind == "ClusterRoleBinding"
}
