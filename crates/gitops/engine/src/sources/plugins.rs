//! ConfigManagementPlugins that the operator has allowed, by putting their `plugin.yaml` into a directory: programs that make
//! manifests of a copy of the source. Nobody else can name a program.

mod definition;
mod sandbox;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_gitops_tree::Tree;
use tokio::sync::Semaphore;
use tracing::warn;

use super::{PluginRequest, SourceError};
use definition::{Definition, Discovery, Program};
use sandbox::Sandbox;

/// How many run at once.
const AT_ONCE: usize = 4;
/// The largest definition.
const MAX_DEFINITION: u64 = 256 << 10;
/// How large a copy of a source may be.
const MAX_COPY: u64 = 256 << 20;

/// The plugins that there are.
pub struct Plugins {
    definitions: Vec<Definition>,
    sandbox: Sandbox,
    places: Arc<Semaphore>,
}

impl Plugins {
    /// Reads the definitions in a directory: `*.yaml` and `*/plugin.yaml`. Sources are copied into `work`.
    pub fn load(directory: &Path, work: PathBuf) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            match path.is_dir() {
                true => paths.push(path.join("plugin.yaml")),
                false if path.extension().is_some_and(|ending| ending == "yaml") => paths.push(path),
                false => {}
            }
        }
        paths.sort();
        let mut definitions: Vec<Definition> = Vec::new();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            let wrong = |why: String| format!("{}: {why}", path.display());
            let size = std::fs::metadata(&path)
                .map_err(|error| wrong(error.to_string()))?
                .len();
            if size > MAX_DEFINITION {
                return Err(wrong(format!("it is larger than {MAX_DEFINITION} bytes")));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
            let definition = Definition::parse(&text).map_err(wrong)?;
            if definitions.iter().any(|known| known.name == definition.name) {
                return Err(wrong(format!("there is another plugin {}", definition.name)));
            }
            definitions.push(definition);
        }
        Ok(Self {
            definitions,
            sandbox: Sandbox::new(work),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// What a plugin makes of a source; none if no plugin is named and none wants it.
    pub(super) async fn generate(&self, request: &PluginRequest) -> Result<Option<String>, SourceError> {
        let missing = |why: String| SourceError::Missing(why);
        let named = match request.name.as_str() {
            "" => None,
            name => Some(
                self.definitions
                    .iter()
                    .find(|it| it.name == name)
                    .ok_or_else(|| {
                        let names: Vec<&str> = self.definitions.iter().map(|it| it.name.as_str()).collect();
                        missing(format!(
                            "plugin {name:?} is not known; there are {}",
                            names.join(", ")
                        ))
                    })?,
            ),
        };
        let _place = self.places.acquire().await;
        let copy = self.copy(&request.tree).await.map_err(missing)?;
        let run = async |program: &Program| {
            let at = copy.path().join("source").join(&request.directory);
            self.sandbox
                .run(program, copy.path(), &at, &request.environment)
                .await
        };
        let mut chosen = None;
        let candidates = match named {
            Some(named) => vec![named],
            None => self.definitions.iter().collect(),
        };
        for definition in candidates {
            let is_wanted = match &definition.discovery {
                Discovery::None => named.is_some(),
                Discovery::Glob(pattern) => {
                    let (tree, directory) = (request.tree.clone(), request.directory.clone());
                    let pattern = pattern.clone();
                    let work = move || definition::has_file(&tree, &directory, &pattern);
                    tokio::task::spawn_blocking(work).await.unwrap_or(false)
                }
                Discovery::Program(program) => match run(program).await {
                    Ok(printed) => !printed.trim().is_empty(),
                    Err(why) if named.is_some() => return Err(missing(why)),
                    Err(why) => {
                        warn!(plugin = definition.name, why, "a plugin's discovery failed");
                        false
                    }
                },
            };
            if is_wanted {
                chosen = Some(definition);
                break;
            }
        }
        let Some(definition) = chosen else {
            return match named {
                None => Ok(None),
                Some(named) => Err(missing(format!(
                    "plugin {} does not support this source: its discovery finds nothing",
                    named.name
                ))),
            };
        };
        let failed = |why: String| missing(format!("plugin {}: {why}", definition.name));
        if let Some(init) = &definition.init {
            run(init).await.map_err(failed)?;
        }
        run(&definition.generate).await.map(Some).map_err(failed)
    }

    /// A copy of a tree that a program may do with as it likes.
    async fn copy(&self, tree: &Tree) -> Result<tempfile::TempDir, String> {
        let (work, tree) = (self.sandbox.work().to_owned(), tree.clone());
        let copying = move || {
            std::fs::create_dir_all(&work).map_err(|error| error.to_string())?;
            let copy = tempfile::Builder::new().prefix("plugin-").tempdir_in(&work);
            let copy = copy.map_err(|error| error.to_string())?;
            sandbox::write(&tree, &copy.path().join("source"), MAX_COPY)?;
            std::fs::create_dir(copy.path().join("home")).map_err(|error| error.to_string())?;
            sandbox::hand_over(copy.path())?;
            Ok(copy)
        };
        let copied = tokio::task::spawn_blocking(copying).await;
        copied
            .map_err(|_| "copying was broken off".to_owned())?
            .map_err(|why: String| format!("the source could not be copied for a plugin: {why}"))
    }
}

/// The variables that parameters become.
pub(crate) fn parameters(list: &[serde_json::Value]) -> BTreeMap<String, String> {
    definition::parameters(list)
}
