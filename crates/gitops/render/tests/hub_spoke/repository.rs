//! `examples/hub-spoke` as a tree, rendered the way its plugin does it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairway_gitops_helm::Offline;
use fairway_gitops_render::{Params, Ports, Rendered, render, variables};
use fairway_gitops_tree::{Tree, TreeBuilder};
use fairway_text_yaml::{Limits, Resolution, documents_with};
use serde_json::Value;

pub(crate) type Variables = BTreeMap<String, String>;

pub(crate) struct Repository {
    pub(crate) tree: Tree,
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Where the repository is on disk.
pub(crate) fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    fs::canonicalize(root.join("examples/hub-spoke")).unwrap()
}

impl Repository {
    pub(crate) fn load() -> Self {
        let mut builder = Tree::builder();
        add(&mut builder, &folder(), "");
        Self {
            tree: builder.build(),
        }
    }

    /// What the ConfigMap of a cluster sets.
    pub(crate) fn variables(&self, cluster: &str) -> Variables {
        let path = format!(".bootstrap/environment/{cluster}.yaml");
        variables(&self.tree.reader().read_text(&path).unwrap(), &path).unwrap()
    }

    pub(crate) fn render(&self, directory: &str, variables: Option<&Variables>) -> Rendered {
        let params = Params {
            env: variables.cloned(),
            ..Params::default()
        };
        let offline = Offline::default();
        let ports = Ports {
            environment: &offline,
            fetcher: None,
        };
        render(&self.tree, directory, None, &params, ports)
            .unwrap_or_else(|error| panic!("{directory}: {error}"))
    }

    /// What the root Application of a cluster comes to.
    pub(crate) fn applications(&self, cluster: &str) -> Vec<Value> {
        let variables = self.variables(cluster);
        self.render(&format!("clusters/{cluster}"), Some(&variables))
            .objects
    }

    /// What an Application comes to on a cluster, with its own variables, which Argo CD gives a prefix.
    pub(crate) fn render_application(&self, cluster: &str, application: &Value) -> Rendered {
        let mut variables = self.variables(cluster);
        let source = &application["spec"]["source"];
        for variable in source["plugin"]["env"].as_array().into_iter().flatten() {
            let name = format!("ARGOCD_ENV_{}", text(&variable["name"]));
            variables.insert(name, text(&variable["value"]));
        }
        self.render(&text(&source["path"]), Some(&variables))
    }

    /// The objects of a file after its variables were substituted.
    pub(crate) fn substituted(&self, path: &str, cluster: &str) -> Vec<Value> {
        let file = self.tree.reader().read_text(path).unwrap();
        let substituted =
            fairway_gitops_render::envsubst(&file, &self.variables(cluster), Default::default()).unwrap();
        documents_with(&substituted, Limits::default(), Resolution::Yaml11)
            .unwrap()
            .into_iter()
            .map(|document| document.value)
            .collect()
    }

    /// Every directory that is a kustomization.
    pub(crate) fn kustomizations(&self) -> Vec<String> {
        let files = self.tree.reader().walk("").unwrap();
        files
            .iter()
            .filter_map(|file| file.strip_suffix("/kustomization.yaml"))
            .map(str::to_owned)
            .collect()
    }
}

fn add(builder: &mut TreeBuilder, directory: &Path, below: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        if entry.file_type().unwrap().is_dir() {
            add(builder, &entry.path(), &path);
        } else {
            builder.file(&path, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}
