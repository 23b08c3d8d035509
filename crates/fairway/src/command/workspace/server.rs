//! The server of the user's kubeconfig, and the requests that are made to it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::navigation::WorkspaceUrl;
use kube::api::{Api, DynamicObject, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::Value;

use crate::cli::workspace::Where;
use crate::data_dir::DataDir;
use crate::kubeconfig::{contexts, files, files::Files};

/// How long a connection may take; an answer may take the server's own minute.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many workspaces are asked for at once.
const PAGE: u32 = 500;

/// The server, as the current context reaches it.
pub(crate) struct Server {
    /// The files of the kubeconfig.
    pub(super) paths: Vec<PathBuf>,
    /// Where one is.
    pub(crate) here: WorkspaceUrl,
    config: Config,
}

impl Server {
    /// The server of the current context.
    pub(super) async fn find(place: &Where) -> anyhow::Result<Self> {
        Self::of_context(place, None).await
    }

    /// The server of a context; the current one, if none is named.
    pub(crate) async fn of_context(place: &Where, context: Option<&str>) -> anyhow::Result<Self> {
        let data = DataDir::find(place.data.dir.as_deref())?;
        let paths = files::find(place.kubeconfig.as_deref(), data.kubeconfig());
        let files = Files::read(&paths)?;
        let server = match context {
            None => contexts::current_server(files.merged())?,
            Some(name) => contexts::server_of(files.merged(), name)?,
        };
        let here = WorkspaceUrl::parse(&server)
            .with_context(|| format!("the server {server} of the current context is no workspace"))?;
        let kubeconfig: Kubeconfig = serde_json::from_value(files.for_client())
            .context("the kubeconfig has entries that cannot be understood")?;
        // rustls wants to be told which cryptography to use, once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .context("the chosen context of the kubeconfig cannot be used")?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        Ok(Self { paths, here, config })
    }

    /// A client of what the context itself means, which need not be a workspace.
    pub(crate) fn own_client(&self) -> anyhow::Result<Client> {
        let url = &self.config.cluster_url;
        Client::try_from(self.config.clone()).with_context(|| format!("{url} cannot be used"))
    }

    /// The files of the kubeconfig.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How the context gets in.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// A client of one workspace.
    pub(crate) fn client(&self, path: &WorkspacePath) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        let url = self.here.of(path).to_string();
        config.cluster_url = url.parse().with_context(|| format!("{url} is not an address"))?;
        Client::try_from(config).with_context(|| format!("{url} cannot be used"))
    }

    /// The workspaces in one.
    pub(super) fn workspaces(&self, path: &WorkspacePath) -> anyhow::Result<Api<DynamicObject>> {
        let kind = GroupVersionKind::gvk("tenancy.kcp.io", "v1alpha1", "Workspace");
        let resource = ApiResource::from_gvk_with_plural(&kind, "workspaces");
        Ok(Api::all_with(self.client(path)?, &resource))
    }

    /// All workspaces in one, by name.
    pub(super) async fn list(&self, path: &WorkspacePath) -> Result<Vec<DynamicObject>, kube::Error> {
        let api = self
            .workspaces(path)
            .map_err(|error| kube::Error::Service(error.into()))?;
        let mut params = ListParams::default().limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = api.list(&params).await?;
            all.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        all.sort_by_key(|workspace| name(workspace).to_owned());
        Ok(all)
    }
}

/// The name of a workspace.
pub(super) fn name(workspace: &DynamicObject) -> &str {
    workspace.metadata.name.as_deref().unwrap_or_default()
}

/// A text below a pointer, or nothing.
pub(super) fn text<'a>(workspace: &'a DynamicObject, pointer: &str) -> &'a str {
    let found = workspace.data.pointer(pointer);
    found.and_then(Value::as_str).unwrap_or_default()
}

/// The type of a workspace, as it is written.
pub(super) fn type_of(workspace: &DynamicObject) -> String {
    match (
        text(workspace, "/spec/type/path"),
        text(workspace, "/spec/type/name"),
    ) {
        ("", name) => name.to_owned(),
        (path, name) => format!("{path}:{name}"),
    }
}

/// What a condition of a workspace says, if it does not hold.
pub(super) fn complaint(workspace: &DynamicObject, kind: &str) -> Option<String> {
    let conditions = workspace.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|it| it["type"] == kind && it["status"] != "True")?;
    Some(found["message"].as_str()?.to_owned())
}

/// Whether the server answered with this code.
pub(super) fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// An error of the server, in its own words.
pub(super) fn told(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{}", status.message),
        other => anyhow::Error::new(other),
    }
}

/// The name of a workspace, checked before it becomes part of a URL.
pub(super) fn checked_name(name: &str, here: &WorkspacePath) -> anyhow::Result<()> {
    if name.contains(':') {
        bail!("{name:?} is a path; go to its parent with `fairway workspace use`, and give the name alone");
    }
    here.join(name)
        .map(drop)
        .with_context(|| format!("{name:?} cannot be the name of a workspace"))
}
