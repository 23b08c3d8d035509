//! From a chart and values to what Helm would install.

use fairway_text_gotemplate::Limits;
use serde_json::{Map, Value as Json};

use crate::capabilities::Capabilities;
use crate::chart::{Chart, Place};
use crate::dependencies;
use crate::engine::{self, Run};
use crate::environment::Environment;
use crate::error::Error;
use crate::manifest::{self, Hook, Manifest, Reading};
use crate::schema;
use crate::values::coalesce_values;

/// The release that a rendering is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Where it is installed.
    pub namespace: String,
    /// How often it was installed, this time included.
    pub revision: i64,
    /// Whether it is there already.
    pub is_upgrade: bool,
}

impl Default for Release {
    /// What `helm template` assumes.
    fn default() -> Self {
        Self {
            name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            revision: 1,
            is_upgrade: false,
        }
    }
}

/// How a chart is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether a missing key is an error.
    pub strict: bool,
    /// Whether values are taken without looking at schemas.
    pub skip_schema_validation: bool,
    /// Whether the notes of sub-charts are rendered, too.
    pub sub_notes: bool,
    /// Whether what is under `crds/` is wanted.
    pub crds: bool,
    /// How much of the manifests is wanted as objects.
    pub reading: Reading,
    /// The bounds.
    pub limits: Limits,
}

/// A file under `crds/`, which Helm does not render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crd {
    /// Its path.
    pub source: String,
    /// Its text.
    pub content: String,
}

/// What a chart renders to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rendered {
    /// Manifests in the order in which Helm installs them.
    pub manifests: Vec<Manifest>,
    /// What is under `crds/` of the chart and its sub-charts, if it is wanted.
    pub crds: Vec<Crd>,
    /// Hooks, tests included.
    pub hooks: Vec<Hook>,
    /// What Helm tells the user afterwards.
    pub notes: String,
    /// What Helm would log.
    pub warnings: Vec<String>,
}

/// What [`Rendered::to_yaml`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    /// `--include-crds`
    pub crds: bool,
    /// `--no-hooks`
    pub no_hooks: bool,
    /// `--skip-tests`
    pub skip_tests: bool,
}

impl Rendered {
    /// The text that `helm template` prints.
    pub fn to_yaml(&self, output: Output) -> String {
        let crds: &[Crd] = if output.crds { &self.crds } else { &[] };
        let hooks = || {
            let is_shown = |hook: &&Hook| !(output.no_hooks || output.skip_tests && hook.is_test());
            self.hooks.iter().filter(is_shown)
        };
        let around = |source: &str| source.len() + 16;
        let size: usize = crds
            .iter()
            .map(|crd| crd.content.len() + around(&crd.source))
            .chain(
                self.manifests
                    .iter()
                    .map(|one| one.content.len() + around(&one.source)),
            )
            .chain(hooks().map(|hook| hook.content.len() + around(&hook.source)))
            .sum();
        let mut text = String::with_capacity(size + 1);
        let put = |text: &mut String, source: &str, content: &str| {
            for piece in ["---\n# Source: ", source, "\n", content, "\n"] {
                text.push_str(piece);
            }
        };
        for crd in crds {
            put(&mut text, &crd.source, &crd.content);
        }
        for manifest in &self.manifests {
            put(&mut text, &manifest.source, &manifest.content);
        }
        // It begins with a mark, so that there are no spaces before it.
        text.truncate(
            text.trim_end_matches(fairway_text_gotemplate::text::is_space)
                .len(),
        );
        text.push('\n');
        for hook in hooks() {
            put(&mut text, &hook.source, &hook.content);
        }
        text
    }

    /// The hooks that are tests.
    pub fn tests(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(|hook| hook.is_test())
    }
}

/// Renders a chart.
pub fn render(
    chart: &Chart,
    values: &Map<String, Json>,
    release: &Release,
    capabilities: &Capabilities,
    options: &Options,
    environment: &dyn Environment,
) -> Result<Rendered, Error> {
    check_release_name(&release.name)?;
    if chart.is_library() {
        return Err(Error::Chart("library charts are not installable".to_owned()));
    }
    let mut warnings = chart.warnings.clone();
    if chart.metadata.deprecated {
        warnings.push("This chart is deprecated".to_owned());
    }
    dependencies::check_present(chart)?;
    let mut chart = chart.clone();
    dependencies::process(&mut chart, values, &mut warnings)?;

    let coalesced = coalesce_values(&chart, values.clone(), false, &mut warnings)?;
    if !options.skip_schema_validation {
        schema::validate(&chart, &coalesced)?;
    }
    let wanted = &chart.metadata.kube_version;
    let found = &capabilities.kube_version.version;
    if !wanted.is_empty() && !dependencies::is_compatible(wanted, found) {
        return Err(Error::Chart(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {found}"
        )));
    }

    let run = Run {
        release,
        capabilities,
        options,
        environment,
    };
    let mut files = engine::render(&chart, &coalesced, &run)?;
    let own_notes = format!("{}/templates/NOTES.txt", chart.name());
    let mut notes = String::new();
    files.retain(|(path, text)| {
        if !path.ends_with("NOTES.txt") {
            return true;
        }
        if options.sub_notes || *path == own_notes {
            if !notes.is_empty() {
                notes.push('\n');
            }
            notes.push_str(text);
        }
        false
    });
    files.sort_by(|left, right| left.0.cmp(&right.0));
    let (manifests, hooks) = manifest::sort(files, options.reading, &mut warnings)?;
    let mut crds = Vec::new();
    if options.crds {
        collect_crds(&chart, &Place::root(chart.name()), &mut crds)?;
    }
    Ok(Rendered {
        manifests,
        crds,
        hooks,
        notes,
        warnings,
    })
}

fn collect_crds(chart: &Chart, place: &Place, crds: &mut Vec<Crd>) -> Result<(), Error> {
    for file in chart.files.iter() {
        let is_manifest = [".yaml", ".yml", ".json"]
            .iter()
            .any(|suffix| file.name.to_lowercase().ends_with(suffix));
        if file.name.starts_with("crds/") && is_manifest {
            crds.push(Crd {
                source: format!("{}/{}", place.now, file.name),
                content: fairway_text_gotemplate::text::lossy(&file.data.read()?).into_owned(),
            });
        }
    }
    for (subchart, place) in chart.places(place) {
        collect_crds(subchart, &place, crds)?;
    }
    Ok(())
}

/// A name that fits into labels, with room for what charts append.
fn check_release_name(name: &str) -> Result<(), Error> {
    const MAX: usize = 53;
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-')
    };
    match !name.is_empty() && name.len() <= MAX && name.split('.').all(part) {
        true => Ok(()),
        false => Err(Error::Chart(format!(
            "release name {name:?}: invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than {MAX}"
        ))),
    }
}
