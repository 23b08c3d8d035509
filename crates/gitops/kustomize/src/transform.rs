//! Transformers: each changes the resources of a kustomization in one way.
//!
//! [`Transformer`] is what a kustomization's fields and the files under `transformers` are turned into before any of
//! them runs, so that a mistake in one is found before another has done its work.

pub(crate) mod hash;
pub(crate) mod image;
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod namespace;
pub(crate) mod patch;
pub(crate) mod replacement;
pub(crate) mod replicas;
mod structured;
pub(crate) mod value_add;

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::fieldspec::FieldSpec;
use crate::kustomization::{Image, Replica};
use crate::limits::Limits;
use crate::openapi::OpenApi;
use crate::resmap::ResMap;

/// What all transformers share.
pub(crate) struct Context<'a> {
    pub(crate) api: &'a OpenApi,
    pub(crate) limits: &'a Limits,
    /// The bytes that transformers have added, of all kustomizations together.
    pub(crate) added: &'a Cell<usize>,
}

impl Context<'_> {
    /// Notes that bytes are added. A few lines can multiply what is there, so this is bounded like the result.
    pub(crate) fn add(&self, bytes: usize) -> Result<()> {
        let added = self.added.get().saturating_add(bytes);
        self.added.set(added);
        let limit = self.limits.output_bytes;
        match added > limit {
            true => Err(Error::of(
                ErrorKind::Limit,
                format!("transformers add more than the limit of {limit} bytes"),
            )),
            false => Ok(()),
        }
    }
}

/// A transformer that is ready to run.
#[derive(Debug)]
pub(crate) enum Transformer {
    Labels(BTreeMap<String, String>, Vec<FieldSpec>),
    Annotations(BTreeMap<String, String>, Vec<FieldSpec>),
    Prefix(String, Vec<FieldSpec>),
    Suffix(String, Vec<FieldSpec>),
    Namespace(namespace::Namespace),
    StrategicPatches(Vec<crate::resource::Resource>),
    Patch(Box<patch::Patch>),
    JsonPatch(Box<patch::JsonPatch>),
    Replicas(Replica, Vec<FieldSpec>),
    Image(image::ImageUpdate),
    Replacements(Vec<replacement::Replacement>),
    ValueAdd(value_add::ValueAdd),
    Hash,
}

impl Transformer {
    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        match self {
            Self::Labels(pairs, specs) | Self::Annotations(pairs, specs) => {
                metadata::set(resources, pairs, specs, context)
            }
            Self::Prefix(prefix, specs) => {
                name::affix(resources, name::Affix::Prefix(prefix), specs, context)
            }
            Self::Suffix(suffix, specs) => {
                name::affix(resources, name::Affix::Suffix(suffix), specs, context)
            }
            Self::Namespace(namespace) => namespace.run(resources, context),
            Self::StrategicPatches(patches) => patch::strategic(resources, patches, context),
            Self::Patch(patch) => patch.run(resources, context),
            Self::JsonPatch(patch) => patch.run(resources, context),
            Self::Replicas(replica, specs) => replicas::set(resources, replica, specs, context),
            Self::Image(update) => update.run(resources, context),
            Self::Replacements(replacements) => replacement::run(resources, replacements, context),
            Self::ValueAdd(value_add) => value_add.run(resources, context),
            Self::Hash => hash::add_hashes(resources, context),
        }
    }
}

/// The old form of an image change, which the image transformer of this name takes.
pub(crate) fn image_transformer(image: Image, specs: Vec<FieldSpec>, limits: &Limits) -> Result<Transformer> {
    image::ImageUpdate::new(image, specs, limits).map(Transformer::Image)
}
