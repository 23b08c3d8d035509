//! `fairway workspace use`: to another workspace, and what the current one is.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::claims::unanswered;
use fairway_kernel_tenancy::navigation::{Destination, WorkspaceUrl, destination, from_home};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};

use super::server::{Server, is_code, told, type_of};
use crate::cli::workspace::Use;
use crate::data_dir::DataDir;
use crate::kubeconfig::{contexts, files, files::Files};

/// How long a home workspace may take to be made.
const PATIENCE: Duration = Duration::from_secs(60);

/// Goes there.
pub(super) async fn run(options: &Use) -> anyhow::Result<ExitCode> {
    let home_directory = std::env::var("HOME").ok();
    let typed = options.path.as_deref().unwrap_or(".");
    // Where one is, and where one was, is known without a server.
    let data = DataDir::find(options.place.data.dir.as_deref())?;
    let paths = files::find(options.place.kubeconfig.as_deref(), data.kubeconfig());
    let server = contexts::current_server(Files::read(&paths)?.merged())?;
    let here = match WorkspaceUrl::parse(&server) {
        Ok(here) => here,
        Err(_) if typed == "-" => WorkspaceUrl {
            base: server,
            path: WorkspacePath::root(),
        },
        Err(error) => {
            return Err(error)
                .with_context(|| format!("the server {server} of the current context is no workspace"));
        }
    };
    match destination(&here.path, typed, home_directory.as_deref())? {
        Destination::Here => print_place(&here.path, None, options.short),
        Destination::Back => {
            let server = Files::change(&paths, contexts::go_back)?;
            match WorkspaceUrl::parse(&server) {
                Ok(there) => print_place(&there.path, None, options.short),
                Err(_) if options.short => {}
                Err(_) => println!("Current workspace is the URL {server:?}."),
            }
        }
        Destination::Path(path) => {
            let server = Server::find(&options.place).await?;
            enter(&server, &path, options.short).await?;
        }
        Destination::Home(steps) => {
            let server = Server::find(&options.place).await?;
            let path = from_home(&home(&server).await?, &steps)?;
            enter(&server, &path, options.short).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a workspace the current one, if it is there and the user may be in it.
pub(super) async fn enter(server: &Server, path: &WorkspacePath, short: bool) -> anyhow::Result<()> {
    let is_denied = match server.client(path)?.list_api_groups().await {
        Ok(groups) => groups.groups.is_empty(),
        Err(error) if is_code(&error, 403) || is_code(&error, 404) => true,
        Err(error) => return Err(told(error)).context("the workspace could not be asked what it serves"),
    };
    let mut kind = (*path == WorkspacePath::root()).then(|| "root".to_owned());
    let mut is_missing = false;
    if let Some((parent, name)) = path.split() {
        match server.workspaces(&parent)?.get(name).await {
            Ok(workspace) => kind = Some(type_of(&workspace)),
            Err(error) => is_missing = is_code(&error, 404),
        }
    }
    if is_denied && is_missing {
        bail!("workspace {:?} not found", path.as_str());
    }
    if is_denied {
        bail!("access to workspace {:?} denied", path.as_str());
    }
    let url = server.here.of(path).to_string();
    Files::change(&server.paths, |config| contexts::enter(config, &url))?;
    warn_of_claims(server, path).await;
    print_place(path, kind.as_deref(), short);
    Ok(())
}

/// Tells what providers ask for and nobody has answered. Who may not see bindings is not told.
async fn warn_of_claims(server: &Server, path: &WorkspacePath) {
    let kind = GroupVersionKind::gvk("apis.kcp.io", "v1alpha2", "APIBinding");
    let resource = ApiResource::from_gvk_with_plural(&kind, "apibindings");
    let Ok(client) = server.client(path) else {
        return;
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let bindings = api.list(&ListParams::default()).await.map(|list| list.items);
    for binding in bindings.into_iter().flatten() {
        for claim in unanswered(&binding.data) {
            let name = super::server::name(&binding);
            eprintln!(
                "Warning: the provider of APIBinding {name:?} asks for {claim}; accept or reject it in spec.permissionClaims."
            );
        }
    }
}

/// The user's own workspace.
async fn home(server: &Server) -> anyhow::Result<WorkspacePath> {
    let root = server.workspaces(&WorkspacePath::root())?;
    let begun = Instant::now();
    let workspace = loop {
        match root.get("~").await {
            Ok(workspace) => break workspace,
            // It is being made.
            Err(error) if is_code(&error, 429) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) if is_code(&error, 404) => bail!("this server has no home workspaces"),
            Err(error) => return Err(told(error)).context("your home workspace could not be had"),
        }
    };
    let url = super::server::text(&workspace, "/spec/URL").to_owned();
    let url =
        WorkspaceUrl::parse(&url).with_context(|| format!("{url:?} is not the address of a workspace"))?;
    Ok(url.path)
}

fn print_place(path: &WorkspacePath, kind: Option<&str>, short: bool) {
    match kind {
        _ if short => println!("{path}"),
        Some(kind) => println!("Current workspace is '{path}' (type {kind})."),
        None => println!("Current workspace is '{path}'."),
    }
}
