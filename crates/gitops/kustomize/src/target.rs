//! One kustomization: what it takes in, what it makes of it, and in which order.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::config::{TransformerConfig, default_config, from_crds, merge_into};
use crate::error::{Error, ErrorKind, Result, Within};
use crate::fieldspec::{FieldSpec, merge_all, merge_one};
use crate::generate::Kind;
use crate::helm::{Helm, HelmGlobals};
use crate::id::Gvk;
use crate::kustomization::{COMPONENT, FILE_NAMES, Kustomization};
use crate::loader::Loader;
use crate::openapi::OpenApi;
use crate::origin::Origin;
use crate::plugin::{self, Generator};
use crate::read;
use crate::resmap::ResMap;
use crate::resource::{ORIGIN, Resource};
use crate::transform::namespace::{Namespace, Subjects};
use crate::transform::{Context, Transformer, image_transformer, patch};
use crate::vars::VarSet;

/// What a build has come to: resources, how to treat them, and vars.
#[derive(Default)]
pub(crate) struct Accumulator {
    pub(crate) resources: ResMap,
    /// None before anything was built.
    pub(crate) config: Option<Arc<TransformerConfig>>,
    pub(crate) vars: VarSet,
}

/// What all kustomizations of a build share.
pub(crate) struct World<'w> {
    pub(crate) api: &'w OpenApi,
    pub(crate) helm: Helm<'w>,
    pub(crate) warnings: std::cell::RefCell<Vec<String>>,
    /// The bytes that transformers have added.
    pub(crate) added: std::cell::Cell<usize>,
}

/// A kustomization that is being built.
pub(crate) struct Target<'w, 'f> {
    world: &'w World<'w>,
    loader: Rc<Loader<'f>>,
    pub(crate) kustomization: Kustomization,
    file: &'static str,
    /// None unless origins are asked for.
    pub(crate) origin: Option<Origin>,
    /// The namespace of the kustomization that refers to this, for charts.
    helm_namespace: String,
}

/// A transformer and where it is configured.
type Configured<T> = (T, Option<Origin>);

impl<'w, 'f> Target<'w, 'f> {
    /// Reads the kustomization of a directory.
    pub(crate) fn load(world: &'w World<'w>, loader: Rc<Loader<'f>>) -> Result<Self> {
        let mut found: Vec<(&'static str, Arc<[u8]>)> = Vec::new();
        for name in FILE_NAMES {
            match loader.load(name) {
                Ok(content) => found.push((name, content)),
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(_) => {}
            }
        }
        let (file, content) = match (found.pop(), found.pop()) {
            (Some(one), None) => one,
            (None, _) => {
                return Err(Error::new(format!(
                    "unable to find one of '{}' in directory '{}'",
                    FILE_NAMES.join("', '"),
                    loader.shown_root()
                )));
            }
            (Some(_), Some(_)) => {
                return Err(Error::new(format!(
                    "Found multiple kustomization files under: {}",
                    loader.shown_root()
                )));
            }
        };
        let shown = || format!("{}/{file}", loader.shown_root());
        let value = read::configuration(&content, loader.limits())
            .within(|| "invalid Kustomization".to_owned())
            .within(shown)?;
        let (kustomization, warnings) = Kustomization::decode(&value).within(shown)?;
        let mut known = world.warnings.borrow_mut();
        for warning in warnings {
            known.push(format!("{}: {warning}", shown()));
        }
        drop(known);
        Ok(Self {
            world,
            loader,
            kustomization,
            file,
            origin: None,
            helm_namespace: String::new(),
        })
    }

    /// Takes note of the schema that the kustomization names.
    pub(crate) fn set_schema(&self) -> Result<()> {
        let openapi = &self.kustomization.openapi;
        let document = match openapi.get("path") {
            Some(path) => Some(plugin::load_configuration(path, &self.loader)?),
            None => None,
        };
        self.world
            .api
            .set(openapi.get("version").map(String::as_str), document.as_ref())
    }

    fn limit(&self) -> usize {
        self.loader.limits().resources
    }

    fn context(&self) -> Context<'_> {
        Context {
            api: self.world.api,
            limits: self.loader.limits(),
            added: &self.world.added,
        }
    }

    /// Builds the kustomization into what is there: nothing, or, for a component, what its user has.
    pub(crate) fn accumulate(&mut self, mut into: Accumulator) -> Result<Accumulator> {
        let resources = std::mem::take(&mut self.kustomization.resources);
        into = self
            .accumulate_resources(into, &resources)
            .within(|| "accumulating resources".to_owned())?;
        merge_into(&mut into.config, default_config())?;
        for path in &self.kustomization.configurations {
            let document = plugin::load_configuration(path, &self.loader)?;
            let config = TransformerConfig::decode(&document).within(|| format!("configuration '{path}'"))?;
            merge_into(&mut into.config, &Arc::new(config))
                .within(|| format!("merging configuration '{path}'"))?;
        }
        for path in &self.kustomization.crds {
            let document = plugin::load_configuration(path, &self.loader)?;
            let config = from_crds(&document)
                .within(|| format!("unable to parse open API definition from '{path}'"))?;
            merge_into(&mut into.config, &Arc::new(config)).within(|| format!("merging CRDs '{path}'"))?;
        }
        self.run_generators(&mut into)?;
        let components = std::mem::take(&mut self.kustomization.components);
        into = self
            .accumulate_components(into, &components)
            .within(|| "accumulating components".to_owned())?;
        self.run_transformers(&mut into)?;
        self.run_validators(&mut into.resources)?;
        let vars = &self.kustomization.vars;
        VarSet::bind(vars, &mut into.resources, self.world.api)
            .and_then(|()| into.vars.merge(vars.iter().cloned()))
            .within(|| "merging vars".to_owned())?;
        Ok(into)
    }

    fn accumulate_resources(&mut self, mut into: Accumulator, paths: &[String]) -> Result<Accumulator> {
        for path in paths {
            let Err(as_file) = self.accumulate_file(&mut into.resources, path) else {
                continue;
            };
            if matches!(as_file.kind(), ErrorKind::Limit | ErrorKind::Remote) && !is_repository(path) {
                return Err(as_file);
            }
            let loader = match self.loader.enter(path) {
                Ok(loader) => loader,
                Err(_) if as_file.kind() == ErrorKind::MalformedYaml => return Err(as_file),
                Err(error) => return Err(error.within(format!("accumulation err='{as_file}'"))),
            };
            into = self
                .accumulate_directory(into, path, loader, false)
                .within(|| format!("accumulating '{path}'"))?;
        }
        Ok(into)
    }

    fn accumulate_file(&self, into: &mut ResMap, path: &str) -> Result<()> {
        let attempt = || format!("accumulating resources from '{path}'");
        let bytes = self.loader.load(path).within(attempt)?;
        let mut resources = read::resources(&bytes, self.loader.limits())
            .map_err(|error| match error.kind() {
                ErrorKind::MalformedYaml | ErrorKind::Limit => {
                    let kind = error.kind();
                    Error::of(kind, format!("{error} in File: {path}"))
                }
                _ => error,
            })
            .within(attempt)?;
        if let Some(origin) = &self.origin {
            let text = origin.append(path).text();
            for resource in &mut resources {
                resource.set_annotation(ORIGIN, &text)?;
            }
        }
        into.append_all(resources, self.world.api, self.limit())
            .within(|| format!("merging resources from '{path}'"))
    }

    fn accumulate_components(&mut self, mut into: Accumulator, paths: &[String]) -> Result<Accumulator> {
        for path in paths {
            let loader = self
                .loader
                .enter(path)
                .within(|| format!("loader.New '{path}'"))?;
            into = self
                .accumulate_directory(into, path, loader, true)
                .within(|| format!("accumulateDirectory '{path}'"))?;
        }
        Ok(into)
    }

    fn accumulate_directory(
        &mut self,
        mut into: Accumulator,
        path: &str,
        loader: Rc<Loader<'f>>,
        is_component: bool,
    ) -> Result<Accumulator> {
        let root = loader.shown_root().to_owned();
        let mut inner =
            Target::load(self.world, loader).within(|| format!("couldn't make target for path '{root}'"))?;
        inner
            .kustomization
            .build_metadata
            .clone_from(&self.kustomization.build_metadata);
        inner.origin = self.origin.as_ref().map(|origin| origin.append(path));
        inner.helm_namespace = match self.kustomization.namespace.is_empty() {
            true => self.helm_namespace.clone(),
            false => self.kustomization.namespace.clone(),
        };
        inner.set_schema()?;
        let kind = &inner.kustomization.kind;
        if is_component != (kind == COMPONENT) {
            let expected = if is_component { "" } else { "!= " };
            return Err(Error::new(format!(
                "expected kind {expected}'{COMPONENT}' for path '{root}' but got '{kind}'"
            )));
        }
        let recursed = || format!("recursed accumulation of path '{root}'");
        if is_component {
            return inner.accumulate(into).within(recursed);
        }
        let built = inner.accumulate(Accumulator::default()).within(recursed)?;
        into.resources
            .append_all(built.resources.into_list(), self.world.api, self.limit())
            .and_then(|()| match &built.config {
                Some(config) => merge_into(&mut into.config, config),
                None => Ok(()),
            })
            .and_then(|()| into.vars.merge(built.vars.into_vars()))
            .within(|| format!("recursed merging from path '{root}'"))?;
        Ok(into)
    }

    fn run_generators(&mut self, into: &mut Accumulator) -> Result<()> {
        let kustomization = &self.kustomization;
        let builtin = |kind: &str| {
            self.origin
                .as_ref()
                .map(|origin| origin.of_builtin(self.file, kind))
        };
        let globals = kustomization.generator_options.as_ref();
        let mut generators: Vec<Configured<Generator>> = Vec::new();
        for (kind, name, all) in [
            (Kind::ConfigMap, "ConfigMapGenerator", &kustomization.config_maps),
            (Kind::Secret, "SecretGenerator", &kustomization.secrets),
        ] {
            for args in all {
                let args = Box::new(args.with_globals(globals));
                generators.push((Generator::Data(kind, args), builtin(name)));
            }
        }
        for chart in &kustomization.helm_charts {
            let mut chart = Box::new(chart.clone());
            if chart.namespace.is_empty() {
                chart
                    .namespace
                    .clone_from(match kustomization.namespace.is_empty() {
                        true => &self.helm_namespace,
                        false => &kustomization.namespace,
                    });
            }
            let globals = kustomization.helm_globals.clone().unwrap_or_default();
            generators.push((
                Generator::Helm(globals, chart),
                builtin("HelmChartInflationGenerator"),
            ));
        }
        let entries = std::mem::take(&mut self.kustomization.generators);
        for config in self
            .plugin_configs(&entries)
            .within(|| "loading generator plugins".to_owned())?
        {
            let generator = plugin::generator(&config).within(|| "failed to load generator".to_owned())?;
            generators.push((generator, Origin::of_plugin(&config, self.loader.limits())));
        }
        for (generator, origin) in generators {
            for mut made in self.generate(generator)? {
                if let Some(origin) = origin.as_ref().filter(|_| made.annotation(ORIGIN).is_none()) {
                    made.set_annotation(ORIGIN, &origin.text())?;
                }
                into.resources
                    .absorb(made, self.world.api, self.limit())
                    .within(|| "merging from generator".to_owned())?;
            }
        }
        Ok(())
    }

    fn generate(&self, generator: Generator) -> Result<Vec<Resource>> {
        match generator {
            Generator::Data(kind, args) => Ok(vec![args.generate(kind, &self.loader)?]),
            Generator::Helm(globals, chart) => {
                let globals: HelmGlobals = globals;
                chart.generate(&globals, &self.world.helm, &self.loader)
            }
            Generator::Iam(resource) => Ok(vec![resource]),
        }
    }

    /// The resources that configure generators or transformers: written out, or in files.
    fn plugin_configs(&mut self, entries: &[String]) -> Result<Vec<Resource>> {
        let mut configs = Accumulator::default();
        let mut paths = Vec::new();
        for entry in entries {
            match read::resources(entry.as_bytes(), self.loader.limits()) {
                Ok(mut inline) => {
                    if let Some(origin) = &self.origin {
                        let text = origin.append(self.file).text();
                        for config in &mut inline {
                            config.set_annotation(ORIGIN, &text)?;
                        }
                    }
                    configs
                        .resources
                        .append_all(inline, self.world.api, self.limit())?;
                }
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(_) => paths.push(entry.clone()),
            }
        }
        let configs = self.accumulate_resources(configs, &paths)?;
        Ok(configs.resources.into_list())
    }

    fn run_transformers(&mut self, into: &mut Accumulator) -> Result<()> {
        let config = into.config.clone().unwrap_or_default();
        let mut transformers = self.builtin_transformers(&config)?;
        let entries = std::mem::take(&mut self.kustomization.transformers);
        for config in self.plugin_configs(&entries)? {
            let origin = Origin::of_plugin(&config, self.loader.limits());
            let made = plugin::transformers(&config, &self.loader)?;
            let last = made.len().saturating_sub(1);
            // Several transformers of one configuration are one to the reader.
            transformers.extend(made.into_iter().enumerate().map(|(at, transformer)| {
                let origin = origin.clone().filter(|_| at == last);
                (transformer, origin)
            }));
        }
        for (transformer, origin) in transformers {
            transformer.run(&mut into.resources, &self.context())?;
            into.resources.drop_gone();
            if let Some(origin) = origin {
                for resource in into.resources.list_mut_same_ids() {
                    origin.annotate_transformed(resource)?;
                }
            }
        }
        Ok(())
    }

    fn run_validators(&mut self, resources: &mut ResMap) -> Result<()> {
        let entries = std::mem::take(&mut self.kustomization.validators);
        for config in self.plugin_configs(&entries)? {
            for validator in plugin::transformers(&config, &self.loader)? {
                let before: Vec<Value> = resources.iter().map(|resource| resource.value.clone()).collect();
                validator.run(resources, &self.context())?;
                let same = before.len() == resources.len()
                    && resources
                        .iter()
                        .zip(&before)
                        .all(|(after, before)| without_mark(&after.value) == *before);
                if !same {
                    return Err(Error::new("validator shouldn't modify the resource map"));
                }
            }
        }
        Ok(())
    }

    /// The transformers of the kustomization's own fields, in the order in which they run.
    fn builtin_transformers(&self, config: &TransformerConfig) -> Result<Vec<Configured<Transformer>>> {
        let kustomization = &self.kustomization;
        let limits = self.loader.limits();
        let mut made: Vec<Configured<Transformer>> = Vec::new();
        let mut add = |transformer: Transformer, kind: &str| {
            let origin = self
                .origin
                .as_ref()
                .map(|origin| origin.of_builtin(self.file, kind));
            made.push((transformer, origin));
        };
        if !kustomization.patches_strategic_merge.is_empty() {
            let patches = plugin::strategic_patches(&kustomization.patches_strategic_merge, "", &self.loader)
                .within(|| "patchesStrategicMerge".to_owned())?;
            add(patches, "PatchStrategicMergeTransformer");
        }
        for (at, args) in kustomization.patches.iter().enumerate() {
            let patch = plugin::patch_transformer(args, &self.loader).within(|| format!("patches[{at}]"))?;
            add(patch, "PatchTransformer");
        }
        if !kustomization.namespace.is_empty() {
            let namespace = Namespace {
                namespace: kustomization.namespace.clone(),
                specs: config.namespace.clone(),
                unset_only: false,
                subjects: Subjects::Default,
            };
            add(Transformer::Namespace(namespace), "NamespaceTransformer");
        }
        if !kustomization.name_prefix.is_empty() {
            let prefix = Transformer::Prefix(kustomization.name_prefix.clone(), config.name_prefix.clone());
            add(prefix, "PrefixTransformer");
        }
        if !kustomization.name_suffix.is_empty() {
            let suffix = Transformer::Suffix(kustomization.name_suffix.clone(), config.name_suffix.clone());
            add(suffix, "SuffixTransformer");
        }
        if !kustomization.labels.is_empty() || !kustomization.common_labels.is_empty() {
            for label in &kustomization.labels {
                let mut specs = label.fields.clone();
                merge_all(&mut specs, &config.labels)
                    .and_then(|()| match (label.include_selectors, label.include_templates) {
                        (true, _) => merge_all(&mut specs, &config.common_labels),
                        (false, templates) => {
                            if templates {
                                merge_all(&mut specs, &config.template_labels)?;
                            }
                            merge_one(
                                &mut specs,
                                &FieldSpec::new(Gvk::default(), "metadata/labels", true),
                            )
                        }
                    })
                    .within(|| "failed to merge labels".to_owned())?;
                add(
                    Transformer::Labels(label.pairs.clone(), specs),
                    "LabelTransformer",
                );
            }
            let common =
                Transformer::Labels(kustomization.common_labels.clone(), config.common_labels.clone());
            add(common, "LabelTransformer");
        }
        if !kustomization.common_annotations.is_empty() {
            let pairs = kustomization.common_annotations.clone();
            let annotations = Transformer::Annotations(pairs, config.common_annotations.clone());
            add(annotations, "AnnotationsTransformer");
        }
        for (at, args) in kustomization.patches_json6902.iter().enumerate() {
            let load = |path: &str| self.loader.load(path);
            let patch = patch::JsonPatch::new(args.target.clone(), &args.path, &args.patch, load, limits)
                .within(|| format!("patchesJson6902[{at}]"))?;
            add(
                Transformer::JsonPatch(Box::new(patch)),
                "PatchJson6902Transformer",
            );
        }
        for replica in &kustomization.replicas {
            let replicas = Transformer::Replicas(replica.clone(), config.replicas.clone());
            add(replicas, "ReplicaCountTransformer");
        }
        for image in &kustomization.images {
            let image = image_transformer(image.clone(), config.images.clone(), limits)?;
            add(image, "ImageTagTransformer");
        }
        if !kustomization.replacements.is_empty() {
            let replacements = plugin::replacements(&kustomization.replacements, &self.loader)
                .within(|| "replacements".to_owned())?;
            add(replacements, "ReplacementTransformer");
        }
        Ok(made)
    }
}

fn is_repository(path: &str) -> bool {
    crate::git_url::parse(path).is_some()
}

/// The object without the label by which validators say that they were there.
fn without_mark(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(Value::Object(labels)) = value.pointer_mut("/metadata/labels") {
        labels.shift_remove("validated-by");
        if labels.is_empty()
            && let Some(Value::Object(metadata)) = value.get_mut("metadata")
        {
            metadata.shift_remove("labels");
        }
    }
    value
}
