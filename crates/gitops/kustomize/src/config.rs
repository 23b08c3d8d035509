//! Transformer configuration: the fields that each transformer works on. There are defaults; `configurations` and `crds`
//! add to them.

mod crds;
mod defaults;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use crds::from_crds;
pub(crate) use defaults::default_config;

use crate::decode::Fields;
use crate::error::{Result, Within};
use crate::fieldspec::{FieldSpec, compare_gvk, merge_all};
use crate::id::Gvk;

/// Fields by transformer.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransformerConfig {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<NameReference>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

/// Fields that hold the name of a resource of some kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameReference {
    pub(crate) gvk: Gvk,
    pub(crate) referrers: Vec<FieldSpec>,
}

/// Adds one configuration to another. Most kustomizations have nothing but the defaults, which they then share.
pub(crate) fn merge_into(
    own: &mut Option<Arc<TransformerConfig>>,
    other: &Arc<TransformerConfig>,
) -> Result<()> {
    match own {
        None => *own = Some(other.clone()),
        Some(own) if Arc::ptr_eq(own, other) => {}
        Some(own) => Arc::make_mut(own).merge(other)?,
    }
    Ok(())
}

impl TransformerConfig {
    /// Reads a configuration file.
    pub(crate) fn decode(value: &Value) -> Result<Self> {
        let fields = Fields::of(value, false)?;
        let specs = |name| FieldSpec::decode_list(&fields, name);
        let mut config = Self {
            name_prefix: specs("namePrefix")?,
            name_suffix: specs("nameSuffix")?,
            namespace: specs("namespace")?,
            common_labels: specs("commonLabels")?,
            labels: specs("labels")?,
            template_labels: specs("templateLabels")?,
            common_annotations: specs("commonAnnotations")?,
            name_reference: fields.list("nameReference", |reference| {
                Ok(NameReference {
                    gvk: Gvk::decode(reference)?,
                    referrers: FieldSpec::decode_list(reference, "fieldSpecs")?,
                })
            })?,
            var_reference: specs("varReference")?,
            images: specs("images")?,
            replicas: specs("replicas")?,
        };
        config.sort();
        Ok(config)
    }

    /// Adds what another configuration has.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        let mut changed = false;
        let pairs = [
            ("namePrefix", &mut self.name_prefix, &other.name_prefix),
            ("nameSuffix", &mut self.name_suffix, &other.name_suffix),
            ("namespace", &mut self.namespace, &other.namespace),
            ("commonLabels", &mut self.common_labels, &other.common_labels),
            ("labels", &mut self.labels, &other.labels),
            (
                "templateLabels",
                &mut self.template_labels,
                &other.template_labels,
            ),
            (
                "commonAnnotations",
                &mut self.common_annotations,
                &other.common_annotations,
            ),
            ("varReference", &mut self.var_reference, &other.var_reference),
            ("images", &mut self.images, &other.images),
            ("replicas", &mut self.replicas, &other.replicas),
        ];
        for (name, own, incoming) in pairs {
            // Kustomizations that configure nothing all bring the same defaults.
            if own != incoming {
                changed = true;
                merge_all(own, incoming).within(|| format!("failed to merge {name} fieldSpec"))?;
            }
        }
        if self.name_reference != other.name_reference {
            changed = true;
            for reference in &other.name_reference {
                self.add_reference(reference)
                    .within(|| "failed to merge nameReference fieldSpec".to_owned())?;
            }
        }
        if changed {
            self.sort();
        }
        Ok(())
    }

    pub(crate) fn add_reference(&mut self, reference: &NameReference) -> Result<()> {
        let mut found = false;
        for known in self
            .name_reference
            .iter_mut()
            .filter(|known| known.gvk == reference.gvk)
        {
            merge_all(&mut known.referrers, &reference.referrers)?;
            found = true;
        }
        if !found {
            self.name_reference.push(reference.clone());
        }
        Ok(())
    }

    fn sort(&mut self) {
        for specs in [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.common_annotations,
            &mut self.var_reference,
            &mut self.images,
            &mut self.replicas,
        ] {
            specs.sort_by(|left, right| compare_gvk(&left.gvk, &right.gvk));
        }
        self.name_reference
            .sort_by(|left, right| compare_gvk(&left.gvk, &right.gvk));
    }
}
