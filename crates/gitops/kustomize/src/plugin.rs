//! Generators and transformers that a file configures, of the kinds that are built in.

use serde_json::{Map, Value};

use crate::decode::Fields;
use crate::error::{Error, Result, Within};
use crate::fieldspec::FieldSpec;
use crate::generate::{GeneratorArgs, Kind};
use crate::helm::{HelmChart, HelmGlobals};
use crate::kustomization::{Image, Patch, ReplacementField, Replica};
use crate::limits::Limits;
use crate::loader::Loader;
use crate::read;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::transform::namespace::{Namespace, Subjects};
use crate::transform::replacement::Replacement;
use crate::transform::value_add::{Target, ValueAdd};
use crate::transform::{Transformer, image_transformer, patch};

/// A generator that is ready to run.
#[derive(Debug)]
pub(crate) enum Generator {
    Data(Kind, Box<GeneratorArgs>),
    Helm(HelmGlobals, Box<HelmChart>),
    /// A ServiceAccount with the identity of a cloud.
    Iam(Resource),
}

fn check_builtin(config: &Resource) -> Result<()> {
    match config.api_version() {
        "builtin" => Ok(()),
        _ => Err(Error::new(format!(
            "external plugins disabled; unable to load external plugin '{}'",
            config.kind()
        ))),
    }
}

fn unknown(config: &Resource) -> Error {
    Error::new(format!("unable to load builtin {}", config.gvk()))
}

/// The generator that a resource configures.
pub(crate) fn generator(config: &Resource) -> Result<Generator> {
    check_builtin(config)?;
    let fields = Fields::of(&config.value, false)?;
    let data = |kind: Kind| -> Result<Generator> {
        let mut args = GeneratorArgs::decode(&fields)?;
        if args.name.is_empty() {
            args.name = config.name().into_owned();
        }
        if args.namespace.is_empty() {
            args.namespace = config.namespace().into_owned();
        }
        Ok(Generator::Data(kind, Box::new(args)))
    };
    let made = match config.kind().as_ref() {
        "ConfigMapGenerator" => data(Kind::ConfigMap),
        "SecretGenerator" => data(Kind::Secret),
        "HelmChartInflationGenerator" => {
            let chart = HelmChart::decode(&fields)?;
            Ok(Generator::Helm(HelmGlobals::decode(&fields)?, Box::new(chart)))
        }
        "IAMPolicyGenerator" => iam(&fields),
        "HashTransformer" | "LabelTransformer" => {
            Err(Error::new(format!("plugin {} not a generator", config.gvk())))
        }
        _ => Err(unknown(config)),
    };
    made.within(|| format!("plugin {} {} fails configuration", config.gvk(), config.name()))
}

fn iam(fields: &Fields<'_>) -> Result<Generator> {
    let cloud = fields.string("cloud")?;
    if cloud != "gke" {
        return Err(Error::new(format!("cloud provider {cloud} not supported yet")));
    }
    let service = fields
        .decoded("kubernetesService", |service| {
            Ok((service.string("name")?, service.string("namespace")?))
        })?
        .unwrap_or_default();
    let account = fields
        .decoded("serviceAccount", |account| {
            Ok((account.string("name")?, account.string("projectId")?))
        })?
        .unwrap_or_default();
    let text = |text: String| Value::String(text);
    let annotation = format!("{}@{}.iam.gserviceaccount.com", account.0, account.1);
    let annotations = Map::from_iter([("iam.gke.io/gcp-service-account".to_owned(), text(annotation))]);
    let mut metadata = Map::new();
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    metadata.insert("name".to_owned(), text(service.0));
    if !service.1.is_empty() {
        metadata.insert("namespace".to_owned(), text(service.1));
    }
    let object = Map::from_iter([
        ("apiVersion".to_owned(), text("v1".to_owned())),
        ("kind".to_owned(), text("ServiceAccount".to_owned())),
        ("metadata".to_owned(), Value::Object(metadata)),
    ]);
    Ok(Generator::Iam(Resource::new(Value::Object(object))?))
}

/// The transformers that a resource configures.
pub(crate) fn transformers(config: &Resource, loader: &Loader<'_>) -> Result<Vec<Transformer>> {
    check_builtin(config)?;
    configure(config, loader)
        .within(|| format!("plugin {} {} fails configuration", config.gvk(), config.name()))
}

fn configure(config: &Resource, loader: &Loader<'_>) -> Result<Vec<Transformer>> {
    let fields = Fields::of(&config.value, false)?;
    let limits = loader.limits();
    let specs = || FieldSpec::decode_list(&fields, "fieldSpecs");
    let named_specs = || match fields.has("fieldSpecs") {
        true => specs(),
        false => Err(Error::new("fieldSpecs is not expected to be nil")),
    };
    let one = match config.kind().as_ref() {
        "AnnotationsTransformer" => Transformer::Annotations(fields.string_map("annotations")?, specs()?),
        "LabelTransformer" => Transformer::Labels(fields.string_map("labels")?, specs()?),
        "HashTransformer" => Transformer::Hash,
        "ImageTagTransformer" => {
            let image = fields.decoded("imageTag", Image::decode)?.unwrap_or_default();
            image_transformer(image, specs()?, limits)?
        }
        "NamespaceTransformer" => Transformer::Namespace(Namespace {
            namespace: fields
                .decoded("metadata", |metadata| metadata.string("namespace"))?
                .unwrap_or_default(),
            specs: specs()?,
            unset_only: fields.bool("unsetOnly")?,
            subjects: Subjects::parse(&fields.string("setRoleBindingSubjects")?)?,
        }),
        "PatchJson6902Transformer" => Transformer::JsonPatch(Box::new(patch::JsonPatch::new(
            fields.decoded("target", Selector::decode)?,
            &fields.string("path")?,
            &fields.string("jsonOp")?,
            |path| loader.load(path),
            limits,
        )?)),
        "PatchStrategicMergeTransformer" => {
            strategic_patches(&fields.strings("paths")?, &fields.string("patches")?, loader)?
        }
        "PatchTransformer" => patch_transformer(&Patch::decode(&fields)?, loader)?,
        "PrefixTransformer" => Transformer::Prefix(fields.string("prefix")?, named_specs()?),
        "SuffixTransformer" => Transformer::Suffix(fields.string("suffix")?, named_specs()?),
        "PrefixSuffixTransformer" => {
            return Ok(vec![
                Transformer::Prefix(fields.string("prefix")?, named_specs()?),
                Transformer::Suffix(fields.string("suffix")?, named_specs()?),
            ]);
        }
        "ReplacementTransformer" => {
            replacements(&fields.list("replacements", ReplacementField::decode)?, loader)?
        }
        "ReplicaCountTransformer" => {
            let replica = fields.decoded("replica", Replica::decode)?.unwrap_or_default();
            Transformer::Replicas(replica, specs()?)
        }
        "ValueAddTransformer" => value_add(&fields, loader)?,
        "ConfigMapGenerator" | "SecretGenerator" | "HelmChartInflationGenerator" | "IAMPolicyGenerator" => {
            return Err(Error::new(format!("plugin {} not a transformer", config.gvk())));
        }
        _ => return Err(unknown(config)),
    };
    Ok(vec![one])
}

/// The transformer for an entry of `patches`.
pub(crate) fn patch_transformer(args: &Patch, loader: &Loader<'_>) -> Result<Transformer> {
    let patch = patch::Patch::new(args, |path| loader.load(path), loader.limits())?;
    Ok(Transformer::Patch(Box::new(patch)))
}

/// The transformer for strategic merge patches: each is a patch, or the path of some.
pub(crate) fn strategic_patches(paths: &[String], inline: &str, loader: &Loader<'_>) -> Result<Transformer> {
    if paths.is_empty() && inline.is_empty() {
        return Err(Error::new("empty file path and empty patch content"));
    }
    let mut patches = Vec::new();
    for path in paths {
        match read::resources(path.as_bytes(), loader.limits()) {
            Ok(read) => patches.extend(read),
            Err(_) => {
                let bytes = loader.load(path)?;
                let read = read::resources(&bytes, loader.limits()).within(|| format!("in File: {path}"))?;
                patches.extend(read);
            }
        }
    }
    if !inline.is_empty() {
        patches.extend(read::resources(inline.as_bytes(), loader.limits())?);
    }
    if patches.is_empty() {
        return Err(Error::new(format!(
            "patch appears to be empty; files=[{}]",
            paths.join(" ")
        )));
    }
    Ok(Transformer::StrategicPatches(patches))
}

/// The transformer for replacements, of which some are in files.
pub(crate) fn replacements(entries: &[ReplacementField], loader: &Loader<'_>) -> Result<Transformer> {
    let mut all = Vec::new();
    for entry in entries {
        if entry.path.is_empty() {
            all.push(entry.replacement.clone());
            continue;
        }
        let has_targets = entry
            .replacement
            .targets
            .as_ref()
            .is_some_and(|targets| !targets.is_empty());
        if entry.replacement.source.is_some() || has_targets {
            return Err(Error::new("cannot specify both path and inline replacement"));
        }
        let document = load_configuration(&entry.path, loader)?;
        let decode = |value: &Value| Fields::of(value, false).and_then(|fields| Replacement::decode(&fields));
        match &document {
            Value::Array(items) => {
                for item in items {
                    all.push(decode(item).within(|| entry.path.clone())?);
                }
            }
            Value::Object(_) => all.push(decode(&document).within(|| entry.path.clone())?),
            _ => {
                return Err(Error::new(format!(
                    "unsupported replacement type encountered within replacement path: {}",
                    entry.path
                )));
            }
        }
    }
    Ok(Transformer::Replacements(all))
}

/// A YAML file that configures something.
pub(crate) fn load_configuration(path: &str, loader: &Loader<'_>) -> Result<Value> {
    let bytes = loader.load(path)?;
    let limits: &Limits = loader.limits();
    read::configuration(&bytes, limits).within(|| format!("in File: {path}"))
}

fn value_add(fields: &Fields<'_>, loader: &Loader<'_>) -> Result<Transformer> {
    let mut value = fields.string("value")?.trim().to_owned();
    if value.is_empty() {
        value = loader.root.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let mut targets = fields.list("targets", Target::decode)?;
    let file = fields.string("targetFilePath")?;
    if !file.is_empty() {
        let document = load_configuration(&file, loader)?;
        let listed = Fields::of(&document, false)?.list("targets", Target::decode)?;
        targets.extend(listed);
    }
    if targets.is_empty() {
        return Err(Error::new("must specify at least one target"));
    }
    Ok(Transformer::ValueAdd(ValueAdd { value, targets }))
}
