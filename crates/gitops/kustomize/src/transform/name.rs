//! Prefixes and suffixes of names.

use super::Context;
use crate::error::Result;
use crate::fieldspec::{FieldSpec, Make};
use crate::id::selects;
use crate::node::{set_plain, text, wrong_kind};
use crate::resmap::ResMap;

/// What is added to a name, and on which side.
#[derive(Clone, Copy)]
pub(crate) enum Affix<'a> {
    Prefix(&'a str),
    Suffix(&'a str),
}

impl Affix<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Prefix(text) | Self::Suffix(text) => text,
        }
    }

    fn add_to(&self, name: &str) -> String {
        match self {
            Self::Prefix(prefix) => format!("{prefix}{name}"),
            Self::Suffix(suffix) => format!("{name}{suffix}"),
        }
    }
}

/// Adds to the names of resources, except of those whose name means something.
pub(crate) fn affix(
    resources: &mut ResMap,
    affix: Affix<'_>,
    specs: &[FieldSpec],
    context: &Context<'_>,
) -> Result<()> {
    for resource in resources.list_mut() {
        let original = resource.original_id(context.api);
        let skipped = match original.gvk.kind.as_str() {
            "CustomResourceDefinition" | "Namespace" => true,
            "APIService" => original.gvk.group == "apiregistration.k8s.io",
            _ => false,
        };
        if skipped {
            continue;
        }
        for spec in specs {
            if !selects(
                &spec.gvk,
                &original.gvk.group,
                &original.gvk.version,
                &original.gvk.kind,
            ) {
                continue;
            }
            if spec.path == "metadata/name" && !affix.text().is_empty() {
                match affix {
                    Affix::Prefix(prefix) => resource.prefixes.push(prefix.to_owned()),
                    Affix::Suffix(suffix) => resource.suffixes.push(suffix.to_owned()),
                }
                resource.store_previous_id(context.api);
            }
            spec.apply(&mut resource.value, Make::Scalar, &mut |field| {
                if field.is_object() || field.is_array() {
                    return Err(wrong_kind("ScalarNode", field));
                }
                context.add(affix.text().len())?;
                let new = affix.add_to(&text(field));
                set_plain(field, &new);
                Ok(())
            })?;
        }
    }
    Ok(())
}
