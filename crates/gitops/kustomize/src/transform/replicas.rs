//! The number of replicas of workloads.

use serde_json::Value;

use super::Context;
use crate::error::{Error, Result};
use crate::fieldspec::{FieldSpec, Make};
use crate::kustomization::Replica;
use crate::node::{is_scalar, wrong_kind};
use crate::resmap::ResMap;

/// Sets the number of replicas of what has the name, whenever it had it.
pub(crate) fn set(
    resources: &mut ResMap,
    replica: &Replica,
    specs: &[FieldSpec],
    context: &Context<'_>,
) -> Result<()> {
    let mut found = false;
    for spec in specs {
        for resource in resources.list_mut_same_ids() {
            let named = resource.any_id(context.api, |id| {
                id.name == replica.name && id.is_selected(&spec.gvk)
            });
            if !named || resource.is_gone() {
                continue;
            }
            found = true;
            spec.apply(&mut resource.value, Make::Scalar, &mut |field| {
                if !is_scalar(field) {
                    return Err(wrong_kind("ScalarNode", field));
                }
                *field = Value::from(replica.count);
                Ok(())
            })?;
        }
    }
    if found {
        return Ok(());
    }
    let kinds: Vec<String> = specs.iter().map(|spec| spec.gvk.to_string()).collect();
    Err(Error::new(format!(
        "resource with name {} does not match a config with the following GVK [{}]",
        replica.name,
        kinds.join(" ")
    )))
}
