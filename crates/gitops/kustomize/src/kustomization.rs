//! The kustomization file: its fields, and what older forms of them mean today.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::decode::Fields;
use crate::error::{Error, Result, Within};
use crate::fieldspec::FieldSpec;
use crate::generate::{GeneratorArgs, GeneratorOptions};
use crate::helm::{HelmChart, HelmGlobals, split_legacy};
use crate::selector::Selector;
use crate::transform::replacement::Replacement;
use crate::vars::Var;

/// Names that a kustomization file may have.
pub(crate) const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";
pub(crate) const COMPONENT: &str = "Component";
const KUSTOMIZATION: &str = "Kustomization";

/// A kustomization file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kustomization {
    pub(crate) kind: String,
    pub(crate) openapi: BTreeMap<String, String>,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json6902: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) replacements: Vec<ReplacementField>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) vars: Vec<Var>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    pub(crate) config_maps: Vec<GeneratorArgs>,
    pub(crate) secrets: Vec<GeneratorArgs>,
    pub(crate) helm_globals: Option<HelmGlobals>,
    pub(crate) helm_charts: Vec<HelmChart>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<String>,
    pub(crate) generators: Vec<String>,
    pub(crate) transformers: Vec<String>,
    pub(crate) validators: Vec<String>,
    pub(crate) build_metadata: Vec<String>,
}

/// Labels and where they go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Label {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

/// A patch, in one of two forms that only its text tells apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patch {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// What an image becomes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) tag_suffix: String,
    pub(crate) new_tag: String,
    pub(crate) digest: String,
}

/// How many replicas a workload has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) count: i64,
}

/// A replacement, or the file that has some.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplacementField {
    pub(crate) path: String,
    pub(crate) replacement: Replacement,
}

/// The order of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct SortOptions {
    pub(crate) order: String,
    pub(crate) legacy: Option<LegacyOrder>,
}

/// Kinds that come first and last.
#[derive(Debug, Clone, Default)]
pub(crate) struct LegacyOrder {
    pub(crate) first: Vec<String>,
    pub(crate) last: Vec<String>,
}

impl Kustomization {
    /// Reads a kustomization and what is deprecated in it.
    pub(crate) fn decode(value: &Value) -> Result<(Self, Vec<String>)> {
        let fields = Fields::of(value, true).within(|| "invalid Kustomization".to_owned())?;
        let (mut read, warnings) = Self::fields(&fields).within(|| "invalid Kustomization".to_owned())?;
        fields.finish().within(|| "invalid Kustomization".to_owned())?;
        let says_nothing = match value {
            Value::Object(map) => map.iter().all(|(key, value)| {
                value.is_null()
                    || value == ""
                    || key.eq_ignore_ascii_case("kind")
                    || key.eq_ignore_ascii_case("apiVersion")
            }),
            _ => true,
        };
        if says_nothing {
            return Err(Error::new("kustomization.yaml is empty"));
        }
        let api_version = fields.string("apiVersion")?;
        if read.kind.is_empty() {
            read.kind = KUSTOMIZATION.to_owned();
        }
        if read.kind != KUSTOMIZATION && read.kind != COMPONENT {
            return Err(Error::new(format!(
                "kind should be {KUSTOMIZATION} or {COMPONENT}, not {}",
                read.kind
            )));
        }
        let required = if read.kind == COMPONENT {
            COMPONENT_VERSION
        } else {
            VERSION
        };
        if !api_version.is_empty() && api_version != required {
            return Err(Error::new(format!(
                "apiVersion for {} should be {required}, not {api_version}",
                read.kind
            )));
        }
        Ok((read, warnings))
    }

    fn fields(fields: &Fields<'_>) -> Result<(Self, Vec<String>)> {
        fields.string("apiVersion")?;
        fields.decoded("metadata", |metadata| {
            metadata.string("name")?;
            metadata.string("namespace")?;
            metadata.string_map("labels")?;
            metadata.string_map("annotations")
        })?;
        let generators = |name| fields.list(name, GeneratorArgs::decode);
        let mut read = Self {
            kind: fields.string("kind")?,
            openapi: fields.string_map("openapi")?,
            name_prefix: fields.string("namePrefix")?,
            name_suffix: fields.string("nameSuffix")?,
            namespace: fields.string("namespace")?,
            common_labels: fields.string_map("commonLabels")?,
            labels: fields.list("labels", Label::decode)?,
            common_annotations: fields.string_map("commonAnnotations")?,
            patches_strategic_merge: fields.strings("patchesStrategicMerge")?,
            patches_json6902: fields.list("patchesJson6902", Patch::decode)?,
            patches: fields.list("patches", Patch::decode)?,
            images: fields.list("images", Image::decode)?,
            replacements: fields.list("replacements", ReplacementField::decode)?,
            replicas: fields.list("replicas", Replica::decode)?,
            vars: fields.list("vars", Var::decode)?,
            sort_options: fields.decoded("sortOptions", SortOptions::decode)?,
            resources: fields.strings("resources")?,
            components: fields.strings("components")?,
            crds: fields.strings("crds")?,
            config_maps: generators("configMapGenerator")?,
            secrets: generators("secretGenerator")?,
            helm_globals: fields.decoded("helmGlobals", HelmGlobals::decode)?,
            helm_charts: fields.list("helmCharts", HelmChart::decode)?,
            generator_options: fields.decoded("generatorOptions", GeneratorOptions::decode)?,
            configurations: fields.strings("configurations")?,
            generators: fields.strings("generators")?,
            transformers: fields.strings("transformers")?,
            validators: fields.strings("validators")?,
            build_metadata: fields.strings("buildMetadata")?,
        };
        let warnings = deprecated(fields);
        read.resources.extend(fields.strings("bases")?);
        read.images.extend(fields.list("imageTags", Image::decode)?);
        let (charts, globals) = split_legacy(fields)?;
        read.helm_charts.extend(charts);
        if read.helm_globals.is_none() {
            read.helm_globals = globals;
        }
        for generator in read.config_maps.iter_mut().chain(&mut read.secrets) {
            generator.fold_env();
        }
        Ok((read, warnings))
    }
}

/// What to tell the author about fields that have successors.
fn deprecated(fields: &Fields<'_>) -> Vec<String> {
    const OLD: [(&str, &str); 6] = [
        ("bases", "resources"),
        ("commonLabels", "labels"),
        ("imageTags", "images"),
        ("patchesJson6902", "patches"),
        ("patchesStrategicMerge", "patches"),
        ("vars", "replacements"),
    ];
    OLD.iter()
        .filter(|(old, _)| fields.has(old))
        .map(|(old, new)| format!("'{old}' is deprecated. Please use '{new}' instead."))
        .collect()
}

impl Label {
    fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            pairs: fields.string_map("pairs")?,
            include_selectors: fields.bool("includeSelectors")?,
            include_templates: fields.bool("includeTemplates")?,
            fields: FieldSpec::decode_list(fields, "fields")?,
        })
    }
}

impl Patch {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let options = fields.decoded("options", |options| {
            Ok((options.bool("allowNameChange")?, options.bool("allowKindChange")?))
        })?;
        let (allow_name_change, allow_kind_change) = options.unwrap_or_default();
        Ok(Self {
            path: fields.string("path")?,
            patch: fields.string("patch")?,
            target: fields.decoded("target", Selector::decode)?,
            allow_name_change,
            allow_kind_change,
        })
    }
}

impl Image {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            name: fields.string("name")?,
            new_name: fields.string("newName")?,
            tag_suffix: fields.string("tagSuffix")?,
            new_tag: fields.string("newTag")?,
            digest: fields.string("digest")?,
        })
    }
}

impl Replica {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            name: fields.string("name")?,
            count: fields.integer("count")?,
        })
    }
}

impl ReplacementField {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            path: fields.string("path")?,
            replacement: Replacement::decode(fields)?,
        })
    }
}

impl SortOptions {
    fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            order: fields.string("order")?,
            legacy: fields.decoded("legacySortOptions", |legacy| {
                Ok(LegacyOrder {
                    first: legacy.strings("orderFirst")?,
                    last: legacy.strings("orderLast")?,
                })
            })?,
        })
    }
}
