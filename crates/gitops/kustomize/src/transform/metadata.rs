//! Labels and annotations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Context;
use crate::error::Result;
use crate::fieldspec::{FieldSpec, Make};
use crate::node::wrong_kind;
use crate::resmap::ResMap;

/// Sets all pairs in all fields that the specs mean.
pub(crate) fn set(
    resources: &mut ResMap,
    pairs: &BTreeMap<String, String>,
    specs: &[FieldSpec],
    context: &Context<'_>,
) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let bytes: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
    // Labels are no part of an id.
    for resource in resources.list_mut_same_ids() {
        let gvk = resource.gvk();
        for spec in specs.iter().filter(|spec| gvk.is_selected(&spec.gvk)) {
            spec.apply_unchecked(&mut resource.value, Make::Map, &mut |field| match field {
                Value::Object(entries) => {
                    context.add(bytes)?;
                    for (key, value) in pairs {
                        entries.insert(key.clone(), Value::String(value.clone()));
                    }
                    Ok(())
                }
                Value::Null => Ok(()),
                other => Err(wrong_kind("MappingNode", other)),
            })?;
        }
    }
    Ok(())
}
