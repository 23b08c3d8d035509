//! The front door: one build, from its options to its result.

use std::rc::Rc;

use fairway_gitops_tree::Reader;
use fairway_text_yaml::to_string;
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result, Within};
use crate::fieldspec::FieldSpec;
use crate::helm::{ChartRenderer, Helm};
use crate::id::Gvk;
use crate::limits::Limits;
use crate::loader::{Fetcher, Loader, Shared};
use crate::openapi::OpenApi;
use crate::order;
use crate::origin::Origin;
use crate::resource::{ORIGIN, Resource, TRANSFORMATIONS};
use crate::target::{Accumulator, Target, World};
use crate::transform::{Context, hash, metadata};
use crate::{name_reference, resmap::ResMap};

/// Resources with this annotation are part of the build, and not of its result.
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kustomize-v5.8.1");

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The order of the result, where the kustomization does not say.
    pub reorder: Reorder,
    /// Which files may be read.
    pub load_restrictions: LoadRestrictions,
    /// The version of Kubernetes that charts are rendered for.
    pub kube_version: String,
    /// What charts find in `.Capabilities.APIVersions`.
    pub api_versions: Vec<String>,
    /// What the build may cost.
    pub limits: Limits,
}

/// The order of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reorder {
    /// By kind and name, so that what others need comes first.
    #[default]
    Legacy,
    /// As it was read.
    None,
}

/// Which files a kustomization may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoadRestrictions {
    /// Those in its own directory and below.
    #[default]
    RootOnly,
    /// Any in the tree.
    None,
}

/// What is not in the tree. Without a port, what would need it is an error.
#[derive(Clone, Copy, Default)]
pub struct Ports<'p> {
    /// Renders charts.
    pub charts: Option<&'p dyn ChartRenderer>,
    /// Brings remote files, repositories and charts.
    pub fetcher: Option<&'p dyn Fetcher>,
}

/// The result of a build.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The objects, in their order.
    pub objects: Vec<Value>,
    /// What the author should know.
    pub warnings: Vec<String>,
    limit: usize,
}

impl Built {
    /// The objects as `kustomize build` prints them.
    pub fn to_yaml(&self) -> Result<String> {
        let mut out = String::new();
        for object in &self.objects {
            if !out.is_empty() {
                out.push_str("---\n");
            }
            out.push_str(&to_string(object));
            if out.len() > self.limit {
                return Err(Error::of(
                    ErrorKind::Limit,
                    format!("the result has more than the limit of {} bytes", self.limit),
                ));
            }
        }
        Ok(out)
    }
}

/// Builds the kustomization in a directory of the tree.
pub fn build(reader: &Reader, directory: &str, options: &Options, ports: Ports<'_>) -> Result<Built> {
    let api = OpenApi::new();
    let shared = Rc::new(Shared::new(options.limits, ports.fetcher));
    let restricted = options.load_restrictions == LoadRestrictions::RootOnly;
    let loader = Loader::new(shared, reader, directory, restricted)?;
    let world = World {
        api: &api,
        helm: Helm {
            renderer: ports.charts,
            kube_version: &options.kube_version,
            api_versions: &options.api_versions,
        },
        warnings: std::cell::RefCell::default(),
        added: std::cell::Cell::default(),
    };
    let mut target = Target::load(&world, loader)?;
    target.set_schema()?;
    let asked = |option: &str| {
        target
            .kustomization
            .build_metadata
            .iter()
            .any(|known| known == option)
    };
    let (origins, transformations, managed_by) = (
        asked("originAnnotations"),
        asked("transformerAnnotations"),
        asked("managedByLabel"),
    );
    if !target.kustomization.build_metadata.is_empty() {
        target.origin = Some(Origin::default());
    }
    let sort_options = target.kustomization.sort_options.clone();
    let mut built = target.accumulate(Accumulator::default())?;
    let context = Context {
        api: &api,
        limits: &options.limits,
        added: &world.added,
    };
    let config = built.config.unwrap_or_default();
    let resources = &mut built.resources;
    hash::add_hashes(resources, &context)?;
    name_reference::fix(resources, &config.name_reference, &api)?;
    built.vars.resolve(resources, &config.var_reference, &context)?;
    drop_local(resources)?;
    match (&sort_options, options.reorder) {
        (Some(sort_options), _) => order::sort(resources, sort_options, &api)?,
        (None, Reorder::Legacy) => order::legacy(resources, None, &api)?,
        (None, Reorder::None) => {}
    }
    if managed_by {
        let pairs = [(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into();
        let spec = FieldSpec::new(Gvk::default(), "metadata/labels", true);
        metadata::set(resources, &pairs, &[spec], &context).within(|| "managedByLabel".to_owned())?;
    }
    let objects = built
        .resources
        .into_list()
        .into_iter()
        .map(|resource| finish(resource, origins, transformations));
    Ok(Built {
        objects: objects.collect(),
        warnings: world.warnings.take(),
        limit: options.limits.output_bytes,
    })
}

fn drop_local(resources: &mut ResMap) -> Result<()> {
    resources.drop_gone();
    for resource in resources.iter() {
        if resource.kind().is_empty() || resource.name().is_empty() && !resource.kind().ends_with("List") {
            return Err(Error::new(format!(
                "missing kind or metadata.name in object {{{} {} {:?}}} of the result",
                resource.api_version(),
                resource.kind(),
                resource.name()
            )));
        }
    }
    resources.list_mut().retain(|resource| {
        resource
            .annotation(LOCAL_CONFIG)
            .is_none_or(|local| local == "false")
    });
    Ok(())
}

/// The object without what only the build needs.
fn finish(mut resource: Resource, origins: bool, transformations: bool) -> Value {
    if !origins {
        resource.remove_annotation(ORIGIN);
    }
    if !transformations {
        resource.remove_annotation(TRANSFORMATIONS);
    }
    resource.tidy_annotations();
    resource.value
}
