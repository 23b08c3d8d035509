//! `fairway repo`: make, list, delete, clone and mirror repositories. They are objects, so this is the API and nothing else.

mod token;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_gitops_githost::{catalog, owner};
use fairway_kernel_tenancy::WorkspacePath;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use super::workspace::reach;
use crate::cli::repo::{CloneRepo, Create, Delete, List, Mirror, Named, Repo, RepoCommand, WithToken};
use crate::data_dir::DataDir;

/// How long a new repository may take until it can be used.
const READY: Duration = Duration::from_secs(20);

/// Does what was asked for.
pub(crate) fn run(options: &Repo) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
    runtime.block_on(async {
        match &options.command {
            RepoCommand::Create(create) => make(create).await,
            RepoCommand::List(list) => show(list).await,
            RepoCommand::Delete(delete) => remove(delete).await,
            RepoCommand::Clone(clone) => copy(clone).await,
            RepoCommand::Mirror(mirror) => follow(mirror).await,
        }
    })
}

/// A repository by name, and the way to its workspace.
struct Found {
    client: Client,
    slug: String,
    name: String,
}

impl Found {
    async fn of(named: &Named) -> anyhow::Result<Self> {
        let (owner, name) = named
            .slug
            .split_once('/')
            .with_context(|| format!("{:?} is not OWNER/NAME, such as root/my-app", named.slug))?;
        if !owner::is_repository_name(name) {
            bail!(
                "{name:?} is not a name for a repository: lower-case letters, digits, dashes and single dots, beginning \
                 and ending with a letter or digit"
            );
        }
        let path = path_of(owner)?;
        Ok(Self {
            client: reach(&named.place, Some(&path)).await?.1,
            slug: named.slug.clone(),
            name: name.to_owned(),
        })
    }

    fn api(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &catalog::resource())
    }

    async fn create(&self, spec: Value) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Repository", "metadata": {"name": self.name}, "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object)?;
        let made = self.api().create(&PostParams::default(), &object).await;
        if let Err(kube::Error::Api(status)) = &made
            && status.code == 409
        {
            bail!(
                "there is a repository {} already; clone it with: fairway repo clone {}",
                self.slug,
                self.slug
            );
        }
        made.with_context(|| format!("repository {} could not be made", self.slug))?;
        Ok(())
    }

    async fn read(&self) -> anyhow::Result<DynamicObject> {
        let object = self.api().get(&self.name).await;
        object.with_context(|| format!("repository {} cannot be read", self.slug))
    }

    /// Waits until it can be used; where it is cloned from.
    async fn clone_url(&self) -> anyhow::Result<String> {
        let begun = Instant::now();
        loop {
            let object = self.read().await?;
            let text = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_str).unwrap_or("");
            let url = text("/status/cloneURL");
            if !url.is_empty() {
                return Ok(url.to_owned());
            }
            if begun.elapsed() > READY {
                bail!(
                    "repository {} is not served after {READY:?}: {}; does the Git host run?",
                    self.slug,
                    text("/status/conditions/0/message")
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The same, with a token in it if one is wanted.
    async fn address(&self, wish: &WithToken) -> anyhow::Result<String> {
        let url = self.clone_url().await?;
        if !wish.with_token {
            return Ok(url);
        }
        let token = token::issue(&self.client, &self.read().await?, wish.token_days).await?;
        Ok(url.replacen("://", &format!("://git:{token}@"), 1))
    }
}

fn path_of(owner: &str) -> anyhow::Result<WorkspacePath> {
    let path = owner::workspace_of(owner).with_context(|| {
        format!("{owner:?} is not an owner: owners are workspaces, root or a path below root with dots, such as org.team")
    })?;
    WorkspacePath::parse(&path).with_context(|| format!("{path} is not the path of a workspace"))
}

async fn make(options: &Create) -> anyhow::Result<ExitCode> {
    let found = Found::of(&options.named).await?;
    let mut spec = json!({"private": !options.public});
    if let Some(text) = &options.description {
        spec["description"] = text.as_str().into();
    }
    if let Some(branch) = &options.default_branch {
        spec["defaultBranch"] = branch.as_str().into();
    }
    found.create(spec).await?;
    println!("{}", found.address(&options.token).await?);
    Ok(ExitCode::SUCCESS)
}

async fn follow(options: &Mirror) -> anyhow::Result<ExitCode> {
    let found = Found::of(&options.named).await?;
    let mut mirror = json!({"url": options.url});
    if let Some(secret) = &options.secret {
        let (namespace, name) = secret
            .split_once('/')
            .with_context(|| format!("{secret:?} is not NAMESPACE/NAME"))?;
        mirror["secretRef"] = json!({"namespace": namespace, "name": name});
    }
    if let Some(interval) = &options.interval {
        mirror["interval"] = interval.as_str().into();
    }
    found
        .create(json!({"private": !options.public, "mirror": mirror}))
        .await?;
    println!("{}", found.clone_url().await?);
    Ok(ExitCode::SUCCESS)
}

async fn remove(options: &Delete) -> anyhow::Result<ExitCode> {
    let found = Found::of(&options.named).await?;
    let deleted = found.api().delete(&found.name, &DeleteParams::default()).await;
    deleted.with_context(|| format!("repository {} could not be deleted", found.slug))?;
    println!("{} deleted; its files are kept aside for a week.", found.slug);
    Ok(ExitCode::SUCCESS)
}

async fn show(options: &List) -> anyhow::Result<ExitCode> {
    let path = options.owner.as_deref().map(path_of).transpose()?;
    let (here, client) = reach(&options.place, path.as_ref()).await?;
    let api: Api<DynamicObject> = Api::all_with(client, &catalog::resource());
    let list = api.list(&ListParams::default()).await;
    let list = list.with_context(|| format!("the repositories of {here} cannot be listed"))?;
    let text = |object: &DynamicObject, pointer: &str| {
        let found = object.data.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or("").to_owned()
    };
    let mut table = format!("{:<30} {:<8} CLONE URL", "NAME", "READY");
    for object in &list.items {
        let name = object.metadata.name.as_deref().unwrap_or("");
        let conditions = object
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready");
        let ready = ready
            .and_then(|condition| condition["status"].as_str())
            .unwrap_or("Unknown");
        table.push_str(&format!(
            "\n{name:<30} {ready:<8} {}",
            text(object, "/status/cloneURL")
        ));
    }
    options.output.print(&serde_json::to_value(&list.items)?, &table);
    Ok(ExitCode::SUCCESS)
}

async fn copy(options: &CloneRepo) -> anyhow::Result<ExitCode> {
    let found = Found::of(&options.named).await?;
    let address = found.address(&options.token).await?;
    let mut git = Command::new("git");
    git.arg("clone");
    // The Fairway of this machine has an authority of its own.
    let data = DataDir::find(options.named.place.data.dir.as_deref())?;
    let authority = data.pki("ca").0;
    let url = found.clone_url().await?;
    let origin: String = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    if authority.exists() {
        git.arg("-c")
            .arg(format!("http.{origin}/.sslCAInfo={}", authority.display()));
        // It would have the last word, also about this host.
        git.env_remove("GIT_SSL_CAINFO");
    }
    git.arg("--").arg(&address).args(&options.directory);
    let status = git.status().context("running git failed; is it installed?")?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        code => Ok(ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))),
    }
}
