//! The workspace as `cargo metadata` describes it, reduced to what the checks ask: which crates there are, what kind
//! each is, and what it depends on. Reading Cargo's own answer instead of the manifests means that renamed, inherited
//! and target-specific dependencies are all seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Where a crate stands: dependencies point from later to earlier variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// Wire types.
    Api,
    /// Decisions without input or output.
    Pure,
    /// One thing outside each: the store, a process, a protocol.
    Adapter,
    /// API servers, engines and controllers.
    Server,
    /// The command, which wires the parts.
    Binary,
    /// Chores and benchmarks: not part of the product.
    Tool,
}

/// A member of the workspace.
#[derive(Debug, Clone)]
pub(super) struct Crate {
    pub(super) name: String,
    /// Relative to the repository's root.
    pub(super) directory: PathBuf,
    pub(super) pure: bool,
    pub(super) declares_purity: bool,
    pub(super) layer: Layer,
    /// Members that it needs to build and run; tests are free to use more.
    pub(super) members: BTreeSet<String>,
    /// Foreign crates that it lists itself, as the registry names them.
    pub(super) direct: BTreeSet<String>,
    /// Every crate that gets linked in, with the way to it ("fairway-x > bytes").
    pub(super) reachable: BTreeMap<String, String>,
}

impl Crate {
    /// The product folder that the crate belongs to (`kernel`, `gitops`), or nothing for what all may share.
    pub(super) fn domain(&self) -> Option<&str> {
        const SHARED: &[&str] = &["text"];
        let mut folders = self.directory.iter().filter_map(|part| part.to_str());
        let (first, domain, rest) = (folders.next(), folders.next()?, folders.next());
        (first == Some("crates") && rest.is_some() && !SHARED.contains(&domain)).then_some(domain)
    }
}

#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) crates: Vec<Crate>,
}

impl Workspace {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // One platform: crates of other systems are neither downloaded nor shipped.
        let output = Command::new(cargo)
            .args([
                "metadata",
                "--format-version=1",
                "--locked",
                "--filter-platform=x86_64-unknown-linux-gnu",
            ])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!(
                "cargo metadata failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
        Self::from_metadata(root, &metadata)
    }

    pub(super) fn from_metadata(root: &Path, metadata: &Value) -> Result<Self> {
        let graph = Graph::read(metadata)?;
        let mut crates = Vec::new();
        for id in array(metadata, "workspace_members")? {
            let id = id.as_str().context("a member's id is a string")?;
            let package = graph.packages.get(id).context("a member is among the packages")?;
            crates.push(read_crate(root, id, package, &graph)?);
        }
        crates.sort_by(|a, b| a.directory.cmp(&b.directory));
        Ok(Self {
            root: root.to_path_buf(),
            crates,
        })
    }

    pub(super) fn named(&self, name: &str) -> Option<&Crate> {
        self.crates.iter().find(|member| member.name == name)
    }

    /// The crate whose folder holds a file; the innermost one where crates lie in each other.
    pub(super) fn crate_of(&self, file: &Path) -> Option<&Crate> {
        self.crates
            .iter()
            .filter(|member| file.starts_with(&member.directory))
            .max_by_key(|member| member.directory.components().count())
    }
}

/// Packages by id, and the edges that matter for what is built: normal and build dependencies.
struct Graph<'a> {
    packages: HashMap<&'a str, &'a Value>,
    needs: HashMap<&'a str, Vec<&'a str>>,
    members: BTreeSet<&'a str>,
}

impl<'a> Graph<'a> {
    fn read(metadata: &'a Value) -> Result<Self> {
        let mut packages = HashMap::new();
        for package in array(metadata, "packages")? {
            packages.insert(text(package, "id")?, package);
        }
        let mut needs = HashMap::new();
        for node in array(&metadata["resolve"], "nodes")? {
            let mut edges = Vec::new();
            for dependency in array(node, "deps")? {
                let only_for_tests = array(dependency, "dep_kinds")?
                    .iter()
                    .all(|kind| kind["kind"].as_str() == Some("dev"));
                if !only_for_tests {
                    edges.push(text(dependency, "pkg")?);
                }
            }
            needs.insert(text(node, "id")?, edges);
        }
        let members = array(metadata, "workspace_members")?
            .iter()
            .filter_map(Value::as_str)
            .collect();
        Ok(Self {
            packages,
            needs,
            members,
        })
    }

    fn name(&self, id: &str) -> &'a str {
        self.packages
            .get(id)
            .and_then(|package| package["name"].as_str())
            .unwrap_or("?")
    }

    fn reachable(&self, from: &'a str) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::from([from]);
        let mut queue = std::collections::VecDeque::from([(from, self.name(from).to_owned())]);
        while let Some((id, way)) = queue.pop_front() {
            for &next in self.needs.get(id).into_iter().flatten() {
                if seen.insert(next) {
                    let way = format!("{way} > {}", self.name(next));
                    found
                        .entry(self.name(next).to_owned())
                        .or_insert_with(|| way.clone());
                    // A procedural macro runs in the compiler: what it needs is not linked into the product.
                    if !is_proc_macro(self.packages.get(next)) {
                        queue.push_back((next, way));
                    }
                }
            }
        }
        found
    }
}

fn is_proc_macro(package: Option<&&Value>) -> bool {
    package
        .and_then(|package| package["targets"].as_array())
        .is_some_and(|targets| {
            targets.iter().any(|target| {
                target["kind"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
            })
        })
}

fn read_crate(root: &Path, id: &str, package: &Value, graph: &Graph<'_>) -> Result<Crate> {
    let manifest = Path::new(text(package, "manifest_path")?);
    let directory = manifest.parent().context("a manifest lies in a folder")?;
    let directory = directory.strip_prefix(root).unwrap_or(directory).to_path_buf();
    let fairway = &package["metadata"]["fairway"];
    let pure = fairway["pure"].as_bool().unwrap_or(false);
    let id = *graph.members.get(id).context("a member is in the graph")?;

    let mut members = BTreeSet::new();
    let mut direct = BTreeSet::new();
    for &dependency in graph.needs.get(id).into_iter().flatten() {
        let of_ours = graph.members.contains(dependency);
        if of_ours { &mut members } else { &mut direct }.insert(graph.name(dependency).to_owned());
    }
    Ok(Crate {
        name: text(package, "name")?.to_owned(),
        layer: layer_of(&directory, pure, fairway["layer"].as_str())?,
        directory,
        pure,
        declares_purity: fairway["pure"].is_boolean(),
        members,
        direct,
        reachable: graph.reachable(id),
    })
}

/// The layer by the names of the design's map; `layer = "..."` in `[package.metadata.fairway]` says otherwise.
fn layer_of(directory: &Path, pure: bool, declared: Option<&str>) -> Result<Layer> {
    match declared {
        Some("api") => return Ok(Layer::Api),
        Some("pure") => return Ok(Layer::Pure),
        Some("adapter") => return Ok(Layer::Adapter),
        Some("server") => return Ok(Layer::Server),
        Some("binary") => return Ok(Layer::Binary),
        Some("tool") => return Ok(Layer::Tool),
        Some(other) => bail!("{}: unknown layer \"{other}\"", directory.display()),
        None => {}
    }
    if !directory.starts_with("crates") || directory == Path::new("crates/testkit") {
        return Ok(Layer::Tool);
    }
    let last = directory
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let server =
        matches!(last, "apiserver" | "controllers" | "engine" | "syncagent") || last.ends_with("-server");
    Ok(match last {
        "api" => Layer::Api,
        "fairway" => Layer::Binary,
        _ if pure => Layer::Pure,
        _ if server => Layer::Server,
        _ => Layer::Adapter,
    })
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("cargo metadata has no list `{key}`"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .with_context(|| format!("cargo metadata has no text `{key}`"))
}
