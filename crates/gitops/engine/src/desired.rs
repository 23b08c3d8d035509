//! What is declared: the sources of an application, resolved and rendered, and rendered again only when something that the
//! result depends on has changed.
//!
//! A result remembers which files it was made of. When a source moves to another commit, the paths that differ are
//! compared with these; if none of them matters, the result is as good for the new commit as for the old one. A failure
//! is a result, too.

mod dependencies;
mod inflated;
mod overlay;
mod params;
mod results;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairway_gitops_helm::Offline;
use fairway_gitops_render::{self as rendering, Ports};
use fairway_gitops_sync::project::ProjectSpec;
use fairway_gitops_tree::{Inputs, Tree};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::application::{Application, Source};
use crate::sources::{PluginRequest, Repository, SharedSources, SourceError};
use dependencies::Buyer;
use inflated::{Brought, ChartName, Shelf};
use params::{Context, Prepared};
pub(crate) use results::{Rendered, Results};

/// What rendering takes from around the sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The version of Kubernetes at the destination.
    pub(crate) kube_version: String,
    /// The group-versions that it serves.
    pub(crate) api_versions: Arc<[String]>,
    /// Variables of plugins.
    pub(crate) variables: BTreeMap<String, String>,
    /// By which schemes files of values may be fetched.
    pub(crate) value_schemes: Vec<String>,
    /// Whether charts of repositories are fetched for kustomizations.
    pub(crate) fetches_charts: bool,
    /// Where credentials may be used.
    pub(crate) permitted: ProjectSpec,
}

/// Renders.
#[derive(Clone)]
pub(crate) struct Renderer {
    sources: SharedSources,
    /// Rendering is work for processors: no more at once than there are.
    slots: Arc<Semaphore>,
    /// How often something was rendered.
    count: Arc<AtomicU64>,
}

/// The repository of a source.
pub(crate) fn repository(application: &Application, source: &Source) -> Repository {
    Repository {
        workspace: application.key.workspace.clone(),
        project: application.project().to_owned(),
        url: source.repo_url.clone(),
        chart: source.chart.clone(),
    }
}

impl Renderer {
    /// The same with other sources.
    pub(crate) fn with(&self, sources: SharedSources) -> Self {
        Self {
            sources,
            ..self.clone()
        }
    }

    pub(crate) fn new(sources: SharedSources, count: Arc<AtomicU64>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            sources,
            slots: Arc::new(Semaphore::new(processors)),
            count,
        }
    }

    /// The commits of sources. `wanted` are the revisions that somebody asked for, one for each source, where they are not
    /// those of the sources themselves.
    pub(crate) async fn resolve(
        &self,
        application: &Application,
        sources: &[Source],
        wanted: &[String],
    ) -> Result<Vec<String>, SourceError> {
        let mut commits = Vec::with_capacity(sources.len());
        for (place, source) in sources.iter().enumerate() {
            let asked = wanted.get(place).filter(|revision| !revision.is_empty());
            let revision = asked.unwrap_or(&source.target_revision);
            commits.push(
                self.sources
                    .resolve(&repository(application, source), revision)
                    .await?,
            );
        }
        Ok(commits)
    }

    /// The commit that a revision of a repository stands for now.
    pub(crate) async fn resolve_one(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<String, SourceError> {
        self.sources.resolve(repository, revision).await
    }

    /// The commit that a merge of one commit into another comes to.
    pub(crate) async fn merged(
        &self,
        repository: &Repository,
        base: &str,
        head: &str,
    ) -> Result<String, SourceError> {
        self.sources.merged(repository, base, head).await
    }

    /// What is declared at these commits; `known` is what was found before, which may still be right.
    pub(crate) async fn render(
        &self,
        application: &Application,
        sources: &[Source],
        revisions: Vec<String>,
        surroundings: &Surroundings,
        known: Option<&Rendered>,
    ) -> Result<Rendered, SourceError> {
        let digest = digest(application, sources, surroundings);
        let capabilities = hash(&(&surroundings.kube_version, &surroundings.api_versions));
        if let Some(known) = known
            && known.digest == digest
            && known.capabilities.is_none_or(|made_for| made_for == capabilities)
            && self.is_untouched(application, sources, known, &revisions).await?
        {
            return Ok(known.moved_to(revisions));
        }
        let mut trees = Vec::with_capacity(sources.len());
        for (source, revision) in sources.iter().zip(&revisions) {
            let repository = repository(application, source);
            let passes = source.helm.as_ref().is_some_and(|helm| helm.pass_credentials);
            trees.push(self.sources.chart(&repository, revision, passes).await?);
        }
        self.render_trees(application, sources, revisions, trees, surroundings)
            .await
    }

    /// What files declare that are in no repository.
    pub(crate) async fn render_files(
        &self,
        application: &Application,
        sources: &[Source],
        files: Tree,
        surroundings: &Surroundings,
    ) -> Result<Rendered, SourceError> {
        let revisions = vec![String::new(); sources.len()];
        let trees = vec![files; sources.len()];
        self.render_trees(application, sources, revisions, trees, surroundings)
            .await
    }

    async fn render_trees(
        &self,
        application: &Application,
        sources: &[Source],
        revisions: Vec<String>,
        trees: Vec<Tree>,
        surroundings: &Surroundings,
    ) -> Result<Rendered, SourceError> {
        let digest = digest(application, sources, surroundings);
        let capabilities = hash(&(&surroundings.kube_version, &surroundings.api_versions));
        let context = Context::new(application, surroundings);
        let values = self.values(application, sources, &revisions, &context).await?;
        let made = self
            .work(application, sources, &revisions, trees, context, values)
            .await?;
        let objects = serde_json::to_vec(&made.objects).unwrap_or_default();
        Ok(Rendered {
            revisions,
            objects: objects.into(),
            source_types: made.source_types,
            failure: made.failure,
            digest,
            capabilities: made.used_capabilities.then_some(capabilities),
            inputs: made.inputs.into(),
            asked: asked(application, sources),
        })
    }

    /// Renders, and brings what is found missing on the way, once for each source.
    async fn work(
        &self,
        application: &Application,
        sources: &[Source],
        revisions: &[String],
        mut trees: Vec<Tree>,
        context: Context,
        values: HashMap<String, String>,
    ) -> Result<Made, SourceError> {
        let mut read = vec![Inputs::default(); sources.len()];
        let generated = match self
            .generated(sources, revisions, &trees, &context, &mut read)
            .await
        {
            Ok(generated) => generated,
            Err(why @ SourceError::Unreachable(_)) => return Err(why),
            Err(SourceError::Missing(why)) => {
                return Ok(Made {
                    failure: Some(why),
                    inputs: read,
                    ..Made::default()
                });
            }
        };
        let whole = Arc::new((context, sources.to_vec(), revisions.to_vec(), values, generated));
        let mut brought = vec![false; sources.len()];
        let mut charts = Arc::new(Brought::new());
        loop {
            let (given, files, shelf) = (Arc::clone(&whole), trees.clone(), Arc::clone(&charts));
            let slot = self.slots.acquire().await;
            self.count.fetch_add(1, Ordering::Relaxed);
            let work = tokio::task::spawn_blocking(move || {
                let (context, sources, commits, values, generated) = &*given;
                render_all(context, sources, commits, &files, values, generated, &shelf)
            })
            .await;
            drop(slot);
            let mut made =
                work.map_err(|_| SourceError::Unreachable("rendering was broken off".to_owned()))?;
            for (inputs, more) in made.inputs.iter_mut().zip(&read) {
                inputs.extend(more);
            }
            let lacking = made
                .lacks_inflated
                .iter()
                .find(|name| !charts.contains_key(*name))
                .cloned();
            let place = match (&lacking, made.lacks_charts.filter(|place| !brought[*place])) {
                (Some(_), _) => made.failed_at,
                (None, Some(place)) => place,
                (None, None) => return Ok(made),
            };
            let source = &sources[place];
            let buyer = Buyer {
                sources: &self.sources,
                workspace: &application.key.workspace,
                project: application.project(),
                permitted: &whole.0.surroundings.permitted,
                passes_credentials: source.helm.as_ref().is_some_and(|helm| helm.pass_credentials),
            };
            if let Some(lacking) = lacking {
                if charts.len() >= inflated::MOST {
                    made.failure = Some(format!(
                        "more than {} charts of repositories are inflated",
                        inflated::MOST
                    ));
                    return Ok(made);
                }
                match buyer.inflated(&lacking).await {
                    Ok(tree) => {
                        let mut more = Brought::clone(&charts);
                        more.insert(lacking, tree);
                        charts = Arc::new(more);
                        continue;
                    }
                    Err(why @ SourceError::Unreachable(_)) => return Err(why),
                    Err(SourceError::Missing(why)) => {
                        made.failure = Some(why);
                        return Ok(made);
                    }
                }
            }
            brought[place] = true;
            let directory = params::directory(source).map_err(SourceError::Missing)?;
            match buyer.build(&trees[place], &directory).await {
                Ok(built) => {
                    trees[place] = built.tree;
                    read[place].extend(&built.inputs);
                }
                Err(why @ SourceError::Unreachable(_)) => return Err(why),
                Err(SourceError::Missing(why)) => {
                    // A commit may mend it: what was read until here is known.
                    made.failure = Some(why);
                    return Ok(made);
                }
            }
        }
    }

    /// What plugins make of the sources that are theirs. Such a result depends on every file.
    async fn generated(
        &self,
        sources: &[Source],
        revisions: &[String],
        trees: &[Tree],
        context: &Context,
        read: &mut [Inputs],
    ) -> Result<HashMap<usize, String>, SourceError> {
        let mut generated = HashMap::new();
        for (place, source) in sources.iter().enumerate() {
            let Some(plugin) = source.plugin.as_ref().filter(|plugin| !plugin.is_built_in()) else {
                continue;
            };
            let revision = revisions.get(place).map_or("", String::as_str);
            let request = PluginRequest {
                name: plugin.name.clone(),
                tree: trees[place].clone(),
                directory: params::directory(source).map_err(SourceError::Missing)?,
                environment: context.plugin_environment(source, plugin, revision),
            };
            let outcome = self.sources.generate(&request).await;
            if matches!(outcome, Ok(None)) {
                continue;
            }
            let tree = request.tree;
            let all = tokio::task::spawn_blocking(move || {
                let reader = tree.reader();
                for file in reader.walk("").unwrap_or_default() {
                    // Noted as read; what it holds is the plugin's to look at.
                    let _ = reader.size(&file);
                }
                reader.inputs()
            });
            if let Ok(all) = all.await {
                read[place].extend(&all);
            }
            if let Some(text) = outcome? {
                generated.insert(place, text);
            }
        }
        Ok(generated)
    }

    /// The files of values that are at addresses.
    async fn values(
        &self,
        application: &Application,
        sources: &[Source],
        revisions: &[String],
        context: &Context,
    ) -> Result<HashMap<String, String>, SourceError> {
        let mut found = HashMap::new();
        for (source, revision) in sources.iter().zip(revisions) {
            for url in context.remote_values(source, revision) {
                if let Entry::Vacant(free) = found.entry(url) {
                    let workspace = &application.key.workspace;
                    let text = self.sources.document(workspace, free.key()).await?;
                    free.insert(text);
                }
            }
        }
        Ok(found)
    }

    /// Forgets what revisions of an application's sources stand for; if `is_hard`, also what was fetched.
    pub(crate) async fn refresh(&self, application: &Application, known: Option<&Rendered>, is_hard: bool) {
        for (place, source) in application.sources().iter().enumerate() {
            let mut fetched = Vec::new();
            if is_hard {
                fetched.push(source.target_revision.clone());
                fetched.extend(known.and_then(|known| known.revisions.get(place)).cloned());
            }
            let repository = repository(application, source);
            // What could not be forgotten is told to whoever asks next.
            let _ = self.sources.refresh(&repository, &fetched).await;
        }
    }

    /// Whether what is known is as good for other commits.
    pub(crate) async fn is_untouched(
        &self,
        application: &Application,
        sources: &[Source],
        known: &Rendered,
        revisions: &[String],
    ) -> Result<bool, SourceError> {
        if known.revisions.len() != revisions.len() {
            return Ok(false);
        }
        for (place, (source, revision)) in sources.iter().zip(revisions).enumerate() {
            let before = &known.revisions[place];
            if before == revision {
                continue;
            }
            let repository = repository(application, source);
            let changed = match self.sources.changed(&repository, before, revision).await {
                Ok(changed) => changed,
                // The old commit may be gone, after somebody pushed with force.
                Err(_) => return Ok(false),
            };
            if known.depends_on(place, &changed) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn asked(application: &Application, sources: &[Source]) -> Arc<[(Repository, String)]> {
    sources
        .iter()
        .map(|source| (repository(application, source), source.target_revision.clone()))
        .collect()
}

/// What a result is made of beside files and what the cluster can do.
fn digest(application: &Application, sources: &[Source], surroundings: &Surroundings) -> u64 {
    let mut raw = application.raw_sources();
    let each: Vec<&mut Value> = match &mut raw {
        Value::Array(items) => items.iter_mut().collect(),
        single => vec![single],
    };
    for source in each {
        // Which commit it is, is known otherwise; unless it is told to what is rendered.
        if let Some(fields) = source.as_object_mut() {
            fields.shift_remove("targetRevision");
        }
    }
    let place = (
        &application.key.name,
        &application.key.namespace,
        &application.spec.destination.namespace,
        application.project(),
    );
    let has_plugin = sources.iter().any(|source| source.plugin.is_some());
    hash(&(
        place,
        raw.to_string(),
        format!("{sources:?}"),
        has_plugin.then_some(&surroundings.variables),
        surroundings.fetches_charts,
    ))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
struct Made {
    objects: Vec<Value>,
    source_types: Vec<&'static str>,
    failure: Option<String>,
    inputs: Vec<Inputs>,
    used_capabilities: bool,
    /// Which source is a chart that others are missing from.
    lacks_charts: Option<usize>,
    /// Charts of repositories that a kustomization inflates and that were not brought yet.
    lacks_inflated: BTreeSet<ChartName>,
    /// Which source that was.
    failed_at: usize,
}

fn render_all(
    context: &Context,
    sources: &[Source],
    revisions: &[String],
    trees: &[Tree],
    values: &HashMap<String, String>,
    generated: &HashMap<usize, String>,
    charts: &Brought,
) -> Made {
    let mut made = Made {
        objects: Vec::new(),
        source_types: Vec::new(),
        failure: None,
        inputs: vec![Inputs::default(); sources.len()],
        used_capabilities: false,
        lacks_charts: None,
        lacks_inflated: BTreeSet::new(),
        failed_at: 0,
    };
    for (place, source) in sources.iter().enumerate() {
        if source.is_only_referred_to() {
            continue;
        }
        if let Some(text) = generated.get(&place) {
            match rendering::objects(text, "the plugin's output") {
                Ok(objects) => made.objects.extend(objects),
                Err(why) => {
                    made.failure = Some(why.to_string());
                    made.objects.clear();
                    return made;
                }
            }
            made.source_types.push("Plugin");
            continue;
        }
        let prepared = params::prepare(context, sources, revisions, trees, values, place);
        for (at, inputs) in &prepared.inputs {
            made.inputs[*at].extend(inputs);
        }
        if let Err(failure) = render_one(context, source, prepared, &mut made, (place, charts)) {
            made.failed_at = place;
            made.failure = Some(match sources.len() {
                1 => failure,
                _ => format!("source {} of {}: {failure}", place + 1, sources.len()),
            });
            made.objects.clear();
            return made;
        }
    }
    made
}

fn render_one(
    context: &Context,
    source: &Source,
    prepared: Prepared,
    made: &mut Made,
    (place, charts): (usize, &Brought),
) -> Result<(), String> {
    let job = prepared.job?;
    // Clock and chance stand still, so that the same commit gives the same objects whenever it is rendered.
    let environment = Offline::new(0, hash(&(&context.name, &context.namespace)));
    let shelf = Shelf::new(charts, context.surroundings.fetches_charts);
    let ports = Ports {
        environment: &environment,
        fetcher: Some(&shelf),
    };
    let outcome = rendering::attempt(&job.tree, &job.directory, job.kind, &job.params, ports);
    made.lacks_inflated = shelf.lacks();
    let inputs = match &outcome {
        Ok(rendered) => &rendered.inputs,
        Err(failure) => &failure.inputs,
    };
    made.inputs[place].extend(inputs);
    let rendered = match outcome {
        Ok(rendered) => rendered,
        Err(failure) => {
            let why = failure.error.to_string();
            if let rendering::Error::Helm {
                source: fairway_gitops_helm::Error::MissingDependencies(_),
                ..
            } = failure.error
            {
                made.lacks_charts = Some(place);
            }
            return Err(why);
        }
    };
    let kind = match (source.plugin.is_some(), rendered.kind) {
        (true, _) => "Plugin",
        (false, rendering::Kind::Helm) => "Helm",
        (false, rendering::Kind::Kustomize) => "Kustomize",
        (false, rendering::Kind::Directory) => "Directory",
    };
    made.used_capabilities |= rendered.kind != rendering::Kind::Directory;
    made.source_types.push(kind);
    made.objects.extend(rendered.objects);
    Ok(())
}
