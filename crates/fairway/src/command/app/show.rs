//! `fairway app list`, `get`, `history` and `resources`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use fairway_api::argoproj::{APP_PROJECT, APPLICATION, REFRESH_ANNOTATION};
use fairway_gitops_view::application::{Filter, has_several_sources, project, sources, table};
use fairway_gitops_view::field::{list as items, present, qualified_name, text};
use fairway_gitops_view::{history as past, resource, summary};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::super::gitops::{Session, now, path_of, print_value, told};
use super::tree;
use crate::cli::app::{Get, History, HistoryFormat, List, Named, Resources};
use crate::cli::gitops::{DetailFormat, ListFormat};

pub(super) async fn list(options: &List) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let all = session
        .list(
            APPLICATION,
            options.app_namespace.as_deref(),
            options.selector.as_deref(),
        )
        .await?;
    let filter = Filter {
        projects: &options.project,
        repository: options.repo.as_deref().unwrap_or_default(),
        cluster: options.cluster.as_deref().unwrap_or_default(),
    };
    let wanted: Vec<Value> = all.into_iter().filter(|it| filter.wants(it)).collect();
    match options.output {
        ListFormat::Wide => print!("{}", table(&wanted, true)),
        ListFormat::Name => wanted.iter().for_each(|it| println!("{}", qualified_name(it))),
        ListFormat::Json | ListFormat::Yaml => {
            print_value(&json!(wanted), options.output == ListFormat::Yaml)
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The Application that is meant.
pub(super) async fn find(session: &Session, named: &Named) -> anyhow::Result<Value> {
    session
        .find(APPLICATION, &named.name, named.app_namespace.as_deref())
        .await
}

pub(super) async fn get(options: &Get) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.app.place).await?;
    let mut application = find(&session, &options.app).await?;
    if options.refresh || options.hard_refresh {
        let kind = if options.hard_refresh { "hard" } else { "normal" };
        application = refreshed(&session, application, kind, options.timeout).await?;
    }
    let place = source_place(&application, options)?;
    match options.output {
        DetailFormat::Json | DetailFormat::Yaml => {
            print_value(&application, options.output == DetailFormat::Yaml);
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    print!("{}", header(&session, &application).await);
    let conditions = summary::conditions(&application);
    if !conditions.is_empty() {
        println!("\n{conditions}");
    }
    if options.show_operation && present(&application, "/status/operationState").is_some() {
        print!("\n{}", summary::operation(&application, now()));
    }
    if options.show_params {
        print!("\n{}", summary::parameters(&application, place));
    }
    print_resources(&session, &application, options.output).await?;
    Ok(ExitCode::SUCCESS)
}

/// Which source parameters are asked of.
fn source_place(application: &Value, options: &Get) -> anyhow::Result<usize> {
    let all = sources(application);
    if let Some(name) = &options.source_name {
        let place = all.iter().position(|it| text(it, "/name") == name);
        return place.ok_or_else(|| anyhow!("Unknown source name '{name}'"));
    }
    if !options.show_params || !has_several_sources(application) {
        return Ok(0);
    }
    match options.source_position {
        Some(place @ 1..) if place <= all.len() => Ok(place - 1),
        Some(place @ 1..) => bail!("there are {} sources, and no number {place}", all.len()),
        _ => bail!(
            "an application with several sources needs --source-position, counted from 1, or --source-name"
        ),
    }
}

/// The summary, with the windows of the project.
pub(super) async fn header(session: &Session, application: &Value) -> String {
    let namespace = text(application, "/metadata/namespace");
    let project = session
        .find(APP_PROJECT, project(application), Some(namespace))
        .await;
    let windows = project
        .map(|it| items(&it, "/spec/syncWindows").to_vec())
        .unwrap_or_default();
    let url = format!("{}{}", session.address(), path_of(APPLICATION, application));
    summary::summary(application, &windows, &url, now())
}

/// The resources in the chosen form.
pub(super) async fn print_resources(
    session: &Session,
    application: &Value,
    format: DetailFormat,
) -> anyhow::Result<()> {
    if items(application, "/status/resources").is_empty() {
        return Ok(());
    }
    match format {
        DetailFormat::Wide => print!("\n{}", resource::table(application)),
        DetailFormat::Tree => print!(
            "\n{}",
            resource::tree(&tree::grow(session, application).await?, None)
        ),
        DetailFormat::TreeDetailed => {
            print!(
                "\n{}",
                resource::tree(&tree::grow(session, application).await?, Some(now()))
            );
        }
        DetailFormat::Json | DetailFormat::Yaml => {}
    }
    Ok(())
}

/// Asks for a comparison and waits until it was made.
pub(super) async fn refreshed(
    session: &Session,
    application: Value,
    kind: &str,
    seconds: u64,
) -> anyhow::Result<Value> {
    let patch = json!({"metadata": {"annotations": {REFRESH_ANNOTATION: kind}}});
    let path = path_of(APPLICATION, &application);
    let asked = session.requests.merge(&path, &patch).await.map_err(told)?;
    if asked.is_none() {
        bail!("application {} is gone", qualified_name(&application));
    }
    let api = session.api(APPLICATION, text(&application, "/metadata/namespace"));
    let name = text(&application, "/metadata/name").to_owned();
    let wait = async {
        let mut states = std::pin::pin!(kube::runtime::watcher::watch_object(api, &name));
        while let Some(state) = states.next().await {
            let Ok(state) = state else { continue };
            let Some(object) = state else { break };
            let annotations = object.metadata.annotations.as_ref();
            if annotations.is_none_or(|it| !it.contains_key(REFRESH_ANNOTATION)) {
                return serde_json::to_value(object).ok();
            }
        }
        None
    };
    let found = if seconds == 0 {
        wait.await
    } else {
        tokio::time::timeout(Duration::from_secs(seconds), wait)
            .await
            .ok()
            .flatten()
    };
    match found {
        Some(found) => Ok(found),
        // As argocd: what there is, if the comparison takes too long.
        None => {
            session
                .find(APPLICATION, &qualified_name(&application), None)
                .await
        }
    }
}

pub(super) async fn history(options: &History) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.app.place).await?;
    let application = find(&session, &options.app).await?;
    match options.output {
        HistoryFormat::Wide => print!("{}", past::table(&application)),
        HistoryFormat::Id => print!("{}", past::ids(&application)),
        HistoryFormat::Json | HistoryFormat::Yaml => {
            let all = json!(items(&application, "/status/history"));
            print_value(&all, options.output == HistoryFormat::Yaml);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn resources(options: &Resources) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.app.place).await?;
    let application = find(&session, &options.app).await?;
    match options.output {
        None | Some(DetailFormat::Wide) => {
            let all: Vec<_> = resource::states(&application, &[])
                .into_iter()
                .map(|it| (it, false))
                .collect();
            print!("{}", resource::short_table(&all));
        }
        Some(DetailFormat::Tree) => print!(
            "{}",
            resource::tree(&tree::grow(&session, &application).await?, None)
        ),
        Some(DetailFormat::TreeDetailed) => {
            print!(
                "{}",
                resource::tree(&tree::grow(&session, &application).await?, Some(now()))
            );
        }
        Some(format) => {
            let all = json!(items(&application, "/status/resources"));
            print_value(&all, format == DetailFormat::Yaml);
        }
    }
    Ok(ExitCode::SUCCESS)
}
