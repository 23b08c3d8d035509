//! The front door of rendering: what a directory of a repository comes to.
//!
//! [`render`] takes a tree of files, a source in it and parameters, and gives objects. What kind of source a directory is,
//! it finds out as Argo CD does ([`detect`]): a chart, a kustomization, or plain manifests. Nothing is started and
//! nothing outside of the tree is reached, so that hundreds of renders can run at once.
//!
//! [`Rendered::inputs`] is the exact set of files that a result depends on: after a commit, only the results whose inputs it
//! touched must be made again. [`Dependents`] finds them, and [`attempt`] tells what failures depend on, too. The crate must not know Git, clusters or controllers.

mod charts;
mod dependents;
mod detect;
mod directory;
mod envsubst;
mod error;
mod glob;
mod variables;

use std::collections::BTreeMap;

use fairway_gitops_helm as helm;
use fairway_gitops_kustomize as kustomize;
use fairway_gitops_tree::{Inputs, Reader, Tree};
use fairway_text_yaml::{Limits as YamlLimits, Resolution, documents_with};
use serde_json::Value;

pub use charts::{Charts, HelmSource, ValuesFile};
pub use dependents::Dependents;
pub use detect::{Kind, detect};
pub use directory::DirectorySource;
pub use envsubst::{Dialect, envsubst};
pub use error::Error;
pub use variables::variables;

/// How each kind of source is rendered.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Variables that are substituted in the text of the result; none: nothing is.
    pub env: Option<BTreeMap<String, String>>,
    /// How they are written.
    pub dialect: Dialect,
    /// For charts: release, values, capabilities.
    pub helm: HelmSource,
    /// For kustomizations: order, restrictions, limits.
    pub kustomize: kustomize::Options,
    /// For plain manifests.
    pub directory: DirectorySource,
}

/// What is not in the tree.
#[derive(Clone, Copy)]
pub struct Ports<'p> {
    /// Clock, chance and cluster, for charts.
    pub environment: &'p dyn helm::Environment,
    /// Brings remote bases.
    pub fetcher: Option<&'p dyn kustomize::Fetcher>,
}

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// What the source was.
    pub kind: Kind,
    /// The objects, in their order.
    pub objects: Vec<Value>,
    /// The text, as the original tool would print it.
    pub text: String,
    /// What the author should know.
    pub warnings: Vec<String>,
    /// What the result depends on.
    pub inputs: Inputs,
}

/// Renders the source in a directory of a tree: as what `kind` says, or else as what the directory is.
pub fn render(
    tree: &Tree,
    directory: &str,
    kind: Option<Kind>,
    params: &Params,
    ports: Ports<'_>,
) -> Result<Rendered, Error> {
    attempt(tree, directory, kind, params, ports).map_err(|failure| failure.error)
}

/// Why there is no result, and what that depends on.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: Error,
    /// What a commit must touch to mend it.
    pub inputs: Inputs,
}

/// The same, for callers that will render again after a commit: a failure has inputs, too.
pub fn attempt(
    tree: &Tree,
    directory: &str,
    kind: Option<Kind>,
    params: &Params,
    ports: Ports<'_>,
) -> Result<Rendered, Failure> {
    let reader = tree.reader();
    let outcome = render_from(&reader, directory, kind, params, ports);
    let inputs = reader.inputs();
    match outcome {
        Ok(rendered) => Ok(Rendered { inputs, ..rendered }),
        Err(error) => Err(Failure { error, inputs }),
    }
}

fn render_from(
    reader: &Reader,
    directory: &str,
    kind: Option<Kind>,
    params: &Params,
    ports: Ports<'_>,
) -> Result<Rendered, Error> {
    let kind = match kind {
        Some(kind) => kind,
        None => detect(reader, directory)?,
    };
    // What a renderer has read already is not read again.
    let mut known = None;
    let (text, warnings) = match kind {
        Kind::Helm => {
            let (text, objects, warnings) =
                charts::render(reader, directory, &params.helm, ports.environment)?;
            known = Some(objects);
            (text, warnings)
        }
        Kind::Kustomize => {
            let charts = Charts::new(ports.environment);
            let ports = kustomize::Ports {
                charts: Some(&charts),
                fetcher: ports.fetcher,
            };
            let built = kustomize::build(reader, directory, &params.kustomize, ports)?;
            (built.to_yaml()?, built.warnings)
        }
        Kind::Directory => (
            directory::gather(reader, directory, &params.directory)?,
            Vec::new(),
        ),
    };
    let text = match &params.env {
        Some(env) => {
            known = None;
            envsubst(&text, env, params.dialect).map_err(Error::Variable)?
        }
        None => text,
    };
    let objects = match known {
        Some(objects) => objects,
        None => objects(&text, directory)?,
    };
    Ok(Rendered {
        kind,
        objects,
        text,
        warnings,
        inputs: Inputs::default(),
    })
}

/// How a result is read. Its parts were bounded where they came from; this is for all of them together.
const RESULT: YamlLimits = YamlLimits {
    bytes: 64 << 20,
    depth: 256,
    aliased: 1_000_000,
};

/// The objects of a text; lists are taken apart.
pub fn objects(text: &str, named: &str) -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    let documents = documents_with(text, RESULT, Resolution::Yaml11)
        .map_err(|error| malformed(named, error.to_string()))?;
    for document in documents {
        take_apart(document.value, named, &mut objects)?;
    }
    Ok(objects)
}

fn malformed(named: &str, why: String) -> Error {
    Error::Manifest {
        path: named.to_owned(),
        why,
    }
}

/// Adds the objects of a document: none, one, or those of a list.
pub(crate) fn take_apart(document: Value, named: &str, objects: &mut Vec<Value>) -> Result<(), Error> {
    if document.is_null() {
        return Ok(());
    }
    if !document.is_object() {
        return Err(malformed(named, "a document is not an object".to_owned()));
    }
    let before = objects.len();
    push(document, objects);
    for (at, object) in objects.iter().enumerate().skip(before) {
        for field in ["apiVersion", "kind"] {
            if object[field].as_str().unwrap_or_default().is_empty() {
                return Err(malformed(named, format!("object {} has no {field}", at + 1)));
            }
        }
    }
    Ok(())
}

fn push(object: Value, objects: &mut Vec<Value>) {
    let is_list =
        object["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && object["items"].is_array();
    match object {
        Value::Object(mut fields) if is_list => {
            if let Some(Value::Array(items)) = fields.shift_remove("items") {
                items.into_iter().for_each(|item| push(item, objects));
            }
        }
        object => objects.push(object),
    }
}

#[cfg(test)]
mod tests;
