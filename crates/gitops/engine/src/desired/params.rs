//! From what an Application says of a source to what the renderer is told.

use std::collections::{BTreeMap, HashMap};

use fairway_gitops_helm::{Capabilities, KubeVersion, Release};
use fairway_gitops_kustomize::LoadRestrictions;
use fairway_gitops_render::{Dialect, DirectorySource, HelmSource, Kind, Params, ValuesFile, envsubst};
use fairway_gitops_tree::{Inputs, Tree, path};
use serde_json::{Map, Value, json};

use super::Surroundings;
use super::overlay;
use crate::application::{Application, Helm, Kustomize, Plugin, Source};

/// Where and for whom something is rendered.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) project: String,
    pub(super) surroundings: Surroundings,
}

impl Context {
    pub(super) fn new(application: &Application, surroundings: &Surroundings) -> Self {
        Self {
            name: application.key.name.clone(),
            namespace: application.spec.destination.namespace.clone(),
            project: application.project().to_owned(),
            surroundings: surroundings.clone(),
        }
    }

    /// The addresses of files of values. What no scheme allows is found out when it is rendered.
    pub(super) fn remote_values(&self, source: &Source, revision: &str) -> Vec<String> {
        let environment = self.build_environment(source, revision);
        let files = source.helm.iter().flat_map(|helm| &helm.value_files);
        files
            .filter_map(|file| substituted(file, &environment).ok())
            .filter(|file| matches!(self.remote(file), Some(Ok(()))))
            .collect()
    }

    /// Whether a file of values is at an address, and may be fetched there.
    fn remote(&self, file: &str) -> Option<Result<(), String>> {
        let (scheme, _) = file.split_once("://")?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        if !is_scheme {
            return None;
        }
        let mut allowed = self.surroundings.value_schemes.iter();
        Some(
            match allowed.any(|allowed| allowed.eq_ignore_ascii_case(scheme)) {
                true => Ok(()),
                false => Err(format!("the URL scheme '{scheme}' is not allowed")),
            },
        )
    }

    /// What a plugin is told.
    pub(super) fn plugin_environment(
        &self,
        source: &Source,
        plugin: &Plugin,
        revision: &str,
    ) -> BTreeMap<String, String> {
        let mut environment = self.build_environment(source, revision);
        environment.insert(
            "KUBE_API_VERSIONS".to_owned(),
            self.surroundings.api_versions.join(","),
        );
        let given = given_variables(plugin, &environment);
        environment.extend(given);
        environment.extend(crate::sources::plugins::parameters(&plugin.parameters));
        environment
    }

    /// The variables that Argo CD offers to what it renders.
    fn build_environment(&self, source: &Source, revision: &str) -> BTreeMap<String, String> {
        let short = |length: usize| revision.get(..length).unwrap_or(revision).to_owned();
        [
            ("ARGOCD_APP_NAME", self.name.clone()),
            ("ARGOCD_APP_NAMESPACE", self.namespace.clone()),
            ("ARGOCD_APP_PROJECT_NAME", self.project.clone()),
            ("ARGOCD_APP_REVISION", revision.to_owned()),
            ("ARGOCD_APP_REVISION_SHORT", short(7)),
            ("ARGOCD_APP_REVISION_SHORT_8", short(8)),
            ("ARGOCD_APP_SOURCE_PATH", source.path.clone()),
            ("ARGOCD_APP_SOURCE_REPO_URL", source.repo_url.clone()),
            (
                "ARGOCD_APP_SOURCE_TARGET_REVISION",
                source.target_revision.clone(),
            ),
            ("KUBE_VERSION", self.surroundings.kube_version.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// What is given to the renderer.
pub(super) struct Job {
    pub(super) tree: Tree,
    pub(super) directory: String,
    pub(super) kind: Option<Kind>,
    pub(super) params: Params,
}

/// A job or why there is none, and what was read of which source on the way.
pub(super) struct Prepared {
    pub(super) job: Result<Job, String>,
    pub(super) inputs: Vec<(usize, Inputs)>,
}

/// Prepares one of several sources.
pub(super) fn prepare(
    context: &Context,
    sources: &[Source],
    revisions: &[String],
    trees: &[Tree],
    values: &HashMap<String, String>,
    place: usize,
) -> Prepared {
    let mut inputs = Vec::new();
    let revision = revisions.get(place).map_or("", String::as_str);
    let given = Given {
        context,
        sources,
        trees,
        values,
        place,
    };
    let job = job(&given, revision, &mut inputs);
    Prepared { job, inputs }
}

/// What there is to render from.
struct Given<'a> {
    context: &'a Context,
    sources: &'a [Source],
    trees: &'a [Tree],
    /// Files of values that were fetched, by their addresses.
    values: &'a HashMap<String, String>,
    /// Which of the sources is meant.
    place: usize,
}

/// The directory of a source in its tree. A chart of a repository of charts is all of its tree.
pub(super) fn directory(source: &Source) -> Result<String, String> {
    match source.chart.is_empty() {
        true => path::normalise(&source.path).map_err(text),
        false => Ok(String::new()),
    }
}

fn job(given: &Given<'_>, revision: &str, inputs: &mut Vec<(usize, Inputs)>) -> Result<Job, String> {
    let context = given.context;
    let (source, tree) = (&given.sources[given.place], &given.trees[given.place]);
    let directory = directory(source)?;
    let environment = context.build_environment(source, revision);
    let mut params = Params {
        helm: HelmSource {
            release: Release {
                name: context.name.clone(),
                namespace: context.namespace.clone(),
                ..Release::default()
            },
            capabilities: capabilities(context, "", &[])?,
            include_crds: true,
            skip_tests: false,
            ..HelmSource::default()
        },
        ..Params::default()
    };
    params.kustomize.load_restrictions = LoadRestrictions::RootOnly;
    params
        .kustomize
        .kube_version
        .clone_from(&context.surroundings.kube_version);
    params.kustomize.api_versions = context.surroundings.api_versions.to_vec();
    let mut job = Job {
        tree: tree.clone(),
        directory,
        kind: (!source.chart.is_empty()).then_some(Kind::Helm),
        params,
    };
    if let Some(directory) = &source.directory {
        if !directory.jsonnet.is_null() && directory.jsonnet != json!({}) {
            return Err("directory.jsonnet: Jsonnet is not rendered".to_owned());
        }
        job.kind = Some(Kind::Directory);
        job.params.directory = DirectorySource {
            recurse: directory.recurse,
            include: directory.include.clone(),
            exclude: directory.exclude.clone(),
        };
    }
    if let Some(helm) = &source.helm {
        job.kind = Some(Kind::Helm);
        charts(given, helm, &environment, &mut job, inputs)?;
    }
    if let Some(kustomize) = &source.kustomize {
        job.kind = Some(Kind::Kustomize);
        if !kustomize.kube_version.is_empty() {
            job.params
                .kustomize
                .kube_version
                .clone_from(&kustomize.kube_version);
        }
        if !kustomize.api_versions.is_empty() {
            job.params
                .kustomize
                .api_versions
                .clone_from(&kustomize.api_versions);
        }
        if let Some(text) = kustomization(kustomize, &job.directory, &environment)? {
            job.tree = overlay::over(tree, text);
            overlay::DIRECTORY.clone_into(&mut job.directory);
            // Files of patches are beside the kustomization below.
            job.params.kustomize.load_restrictions = LoadRestrictions::None;
        }
    }
    if let Some(plugin) = &source.plugin {
        let mut env = context.surroundings.variables.clone();
        let known = environment.clone();
        env.extend(environment);
        env.extend(given_variables(plugin, &known));
        job.params.env = Some(env);
        job.params.dialect = Dialect::Gnu;
    }
    Ok(job)
}

/// The variables that an Application gives to a plugin, in which those of the build environment may stand.
fn given_variables(plugin: &Plugin, environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let each = plugin.env.iter().map(|variable| {
        let value = substituted(&variable.value, environment);
        let value = value.unwrap_or_else(|_| variable.value.clone());
        (format!("ARGOCD_ENV_{}", variable.name), value)
    });
    each.collect()
}

fn capabilities(
    context: &Context,
    kube_version: &str,
    api_versions: &[String],
) -> Result<Capabilities, String> {
    let mut capabilities = Capabilities::default();
    let version = match kube_version {
        "" => context.surroundings.kube_version.as_str(),
        own => own,
    };
    if !version.is_empty() {
        capabilities.kube_version = KubeVersion::parse(version)?;
    }
    let served = match api_versions.is_empty() {
        true => &*context.surroundings.api_versions,
        false => api_versions,
    };
    if !served.is_empty() {
        capabilities.api_versions = served.to_vec();
    }
    Ok(capabilities)
}

fn charts(
    given: &Given<'_>,
    helm: &Helm,
    environment: &BTreeMap<String, String>,
    job: &mut Job,
    inputs: &mut Vec<(usize, Inputs)>,
) -> Result<(), String> {
    let context = given.context;
    let directory = job.directory.clone();
    let into = &mut job.params.helm;
    if !helm.release_name.is_empty() {
        into.release.name.clone_from(&helm.release_name);
    }
    if !helm.namespace.is_empty() {
        into.release.namespace.clone_from(&helm.namespace);
    }
    into.capabilities = capabilities(context, &helm.kube_version, &helm.api_versions)?;
    into.include_crds = !helm.skip_crds;
    into.skip_tests = helm.skip_tests;
    into.options.skip_schema_validation = helm.skip_schema_validation;
    for file in &helm.value_files {
        let file = substituted(file, environment)?;
        if let Some(allowed) = context.remote(&file) {
            allowed.map_err(|why| format!("helm.valueFiles: {file}: {why}"))?;
            let content = given.values.get(&file).cloned().unwrap_or_default();
            into.values_files.push(ValuesFile::Given(file, content));
            continue;
        }
        let (at, file) = given.file("helm.valueFiles", &file, &directory)?;
        let reader = given.trees[at].reader();
        let found = reader.read_text(&file);
        inputs.push((at, reader.inputs()));
        match found {
            Ok(content) => into.values_files.push(ValuesFile::Given(file, content)),
            Err(error) if error.is_not_found() && helm.ignore_missing_value_files => {}
            Err(error) => return Err(format!("helm.valueFiles: {error}")),
        }
    }
    // Argo CD takes the object where both are given.
    let inline = match &helm.values_object {
        Some(values) if !values.is_null() => values.to_string(),
        _ => helm.values.clone(),
    };
    if !inline.is_empty() {
        into.values_files
            .push(ValuesFile::Given("helm.values".to_owned(), inline));
    }
    for parameter in &helm.parameters {
        let value = substituted(&parameter.value, environment)?;
        let value = escaped(&value);
        let line = format!("{}={value}", parameter.name);
        match parameter.force_string {
            true => into.set_string.push(line),
            false => into.set.push(line),
        }
    }
    for parameter in &helm.file_parameters {
        let file = substituted(&parameter.path, environment)?;
        let (at, file) = given.file("helm.fileParameters", &file, &directory)?;
        let reader = given.trees[at].reader();
        let content = reader.read_text(&file);
        inputs.push((at, reader.inputs()));
        let content = content.map_err(|error| format!("helm.fileParameters: {error}"))?;
        into.set_json
            .push(format!("{}={}", parameter.name, Value::from(content)));
    }
    Ok(())
}

/// Commas separate values, unless they are in a list or escaped already.
fn escaped(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len());
    let mut before = '\0';
    for c in value.chars() {
        if c == ',' && before != '\\' {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

impl Given<'_> {
    /// Where a file is that a source names: in the tree of which source, and its path there.
    fn file(&self, field: &str, file: &str, directory: &str) -> Result<(usize, String), String> {
        if let Some(found) = referred(field, file, self.sources)? {
            return Ok(found);
        }
        // From the root, if the path begins there.
        let path = match file.strip_prefix('/') {
            Some(from_root) => path::normalise(from_root.trim_start_matches('/')),
            None => path::join(directory, file),
        };
        Ok((self.place, path.map_err(|error| format!("{field}: {error}"))?))
    }
}

/// `$name/path`: a file of the source that is referred to by that name.
fn referred(field: &str, file: &str, sources: &[Source]) -> Result<Option<(usize, String)>, String> {
    let Some((name, rest)) = file.strip_prefix('$').and_then(|rest| rest.split_once('/')) else {
        return Ok(None);
    };
    let found = sources.iter().position(|source| source.reference == name);
    let at = found.ok_or_else(|| format!("{field}: {file}: no source has ref {name:?}"))?;
    Ok(Some((at, path::normalise(rest).map_err(text)?)))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Variables of the build environment are put in; anything else with a dollar sign stays as it is.
fn substituted(value: &str, environment: &BTreeMap<String, String>) -> Result<String, String> {
    if !value.contains("ARGOCD_") && !value.contains("KUBE_VERSION") {
        return Ok(value.to_owned());
    }
    envsubst(value, environment, Dialect::Gnu)
}

/// The kustomization that says what the Application says; none if that is nothing.
fn kustomization(
    options: &Kustomize,
    below: &str,
    environment: &BTreeMap<String, String>,
) -> Result<Option<String>, String> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        let empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => true,
        };
        if !empty {
            fields.insert(name.to_owned(), value);
        }
    };
    put("namePrefix", json!(options.name_prefix));
    put("nameSuffix", json!(options.name_suffix));
    put("namespace", json!(options.namespace));
    put(
        "images",
        Value::Array(options.images.iter().map(|text| image(text)).collect()),
    );
    put(
        "replicas",
        Value::Array(options.replicas.iter().map(replica).collect()),
    );
    let up = |path: &str| match below {
        "" => format!("../{path}"),
        below => format!("../{below}/{path}"),
    };
    let patch = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(path) = entry["path"].as_str().map(up) {
            entry["path"] = path.into();
        }
        entry
    };
    put(
        "patches",
        Value::Array(options.patches.iter().map(patch).collect()),
    );
    put(
        "components",
        json!(options.components.iter().map(|path| up(path)).collect::<Vec<_>>()),
    );
    match options.label_without_selector {
        false => put("commonLabels", json!(options.common_labels)),
        true if options.common_labels.is_empty() => {}
        true => put(
            "labels",
            json!([{
                "pairs": options.common_labels,
                "includeSelectors": false,
                "includeTemplates": options.label_include_templates,
            }]),
        ),
    }
    let mut annotations = options.common_annotations.clone();
    if options.common_annotations_envsubst {
        for value in annotations.values_mut() {
            *value = substituted(value, environment)?;
        }
    }
    put("commonAnnotations", json!(annotations));
    if fields.is_empty() {
        return Ok(None);
    }
    let base = match below {
        "" => "..".to_owned(),
        below => format!("../{below}"),
    };
    fields.insert("resources".to_owned(), json!([base]));
    Ok(Some(Value::Object(fields).to_string()))
}

/// `[old=]new[:tag][@digest]`, as `kustomize edit set image` reads it.
fn image(text: &str) -> Value {
    let (name, new) = match text.split_once('=') {
        Some((name, new)) => (Some(name), new),
        None => (None, text),
    };
    let (rest, digest) = match new.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (new, None),
    };
    let after_host = rest.rfind('/').map_or(0, |at| at + 1);
    let (new_name, tag) = match rest[after_host..].split_once(':') {
        Some((short, tag)) => (&rest[..after_host + short.len()], Some(tag)),
        None => (rest, None),
    };
    let mut fields = Map::new();
    fields.insert("name".to_owned(), name.unwrap_or(new_name).into());
    if name.is_some() && !new_name.is_empty() {
        fields.insert("newName".to_owned(), new_name.into());
    }
    if let Some(tag) = tag {
        fields.insert("newTag".to_owned(), tag.into());
    }
    if let Some(digest) = digest {
        fields.insert("digest".to_owned(), digest.into());
    }
    Value::Object(fields)
}

/// Counts may be written as texts.
fn replica(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(count) = entry["count"].as_str().and_then(|text| text.parse::<i64>().ok()) {
        entry["count"] = count.into();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_as_kustomize_writes_them() {
        for (text, expected) in [
            ("nginx:1.2", json!({"name": "nginx", "newTag": "1.2"})),
            (
                "nginx=host:5000/own/nginx:1.2",
                json!({"name": "nginx", "newName": "host:5000/own/nginx", "newTag": "1.2"}),
            ),
            ("nginx@sha256:ab", json!({"name": "nginx", "digest": "sha256:ab"})),
            ("a=b", json!({"name": "a", "newName": "b"})),
        ] {
            assert_eq!(image(text), expected, "{text}");
        }
    }

    #[test]
    fn commas_in_values_are_no_lists() {
        for (value, expected) in [
            ("a,b", "a\\,b"),
            ("{a,b}", "{a,b}"),
            ("a\\,b", "a\\,b"),
            ("{a,b", "{a\\,b"),
        ] {
            assert_eq!(escaped(value), expected, "{value}");
        }
    }

    #[test]
    fn an_application_that_says_nothing_needs_no_overlay() {
        let none = kustomization(&Kustomize::default(), "apps/web", &BTreeMap::new()).unwrap();
        assert_eq!(none, None);
        let options = Kustomize {
            name_prefix: "dev-".to_owned(),
            replicas: vec![json!({"name": "web", "count": "3"})],
            components: vec!["../extra".to_owned()],
            ..Kustomize::default()
        };
        let made = kustomization(&options, "apps/web", &BTreeMap::new())
            .unwrap()
            .unwrap();
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(
            made,
            json!({"namePrefix": "dev-", "replicas": [{"name": "web", "count": 3}],
                "components": ["../apps/web/../extra"], "resources": ["../apps/web"]})
        );
    }
}
