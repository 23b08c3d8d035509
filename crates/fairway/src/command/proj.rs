//! `fairway proj`: the projects that say what Applications may do.

mod roles;

use std::process::ExitCode;

use fairway_api::argoproj::APP_PROJECT;
use fairway_gitops_view::field::text;
use fairway_gitops_view::project::{summary, table};
use serde_json::{Value, json};

use super::cluster::{decoded, labelled, secrets};
use super::gitops::{Session, print_value, run as run_command};
use crate::cli::appset::{Project, ProjectCommand, TextFormat};
use crate::cli::gitops::ListFormat;

/// Does what was asked for.
pub(crate) fn run(options: &Project) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            ProjectCommand::List(list) => {
                let session = Session::open(&list.place).await?;
                let all = session.list(APP_PROJECT, None, None).await?;
                match list.output {
                    ListFormat::Wide => print!("{}", table(&all)),
                    ListFormat::Name => all
                        .iter()
                        .for_each(|it| println!("{}", text(it, "/metadata/name"))),
                    ListFormat::Json | ListFormat::Yaml => {
                        print_value(&json!(all), list.output == ListFormat::Yaml);
                    }
                }
            }
            ProjectCommand::Get(get) => {
                let session = Session::open(&get.place).await?;
                let project = session.find(APP_PROJECT, &get.name, None).await?;
                match get.output {
                    TextFormat::Wide => {
                        let (repositories, servers) = scoped(&session, &get.name).await?;
                        print!("{}", summary(&project, &repositories, &servers));
                    }
                    TextFormat::Json | TextFormat::Yaml => {
                        print_value(&project, get.output == TextFormat::Yaml);
                    }
                }
            }
            ProjectCommand::Role(role) => roles::run(role).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The repositories and the clusters that are a project's own.
async fn scoped(session: &Session, project: &str) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let clusters = secrets(session).await?.into_iter();
    let servers = clusters
        .filter(|(it, _)| it.project == project)
        .map(|(it, _)| it.server);
    let mut repositories = Vec::new();
    for secret in labelled(session, "repository").await? {
        let data = decoded(&secret);
        let value = |field: &str| data.get(field).and_then(Value::as_str).unwrap_or_default();
        if value("project") == project {
            repositories.push(value("url").to_owned());
        }
    }
    repositories.sort();
    Ok((repositories, servers.collect()))
}
