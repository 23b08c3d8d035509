//! `fairway template`, `fairway new` and `fairway voyage`: templates and runs are objects, so this is the API and nothing else.

mod ask;
mod follow;
mod new;
mod show;

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use fairway_api::fairway::VOYAGE;
use fairway_portal_scaffolder::builtin::DOMAIN;
use fairway_portal_template::template::Template as Read;
use serde_json::{Value, json};

use super::gitops::{Session, told};
use crate::cli::golden_path::{Template, TemplateCommand, Voyage, VoyageCommand, VoyageNamed};
use crate::server::scaffolder::builtins;

pub(crate) use new::run as new;

/// `fairway template`.
pub(crate) fn template(options: &Template) -> anyhow::Result<ExitCode> {
    super::runtime()?.block_on(async {
        match &options.command {
            TemplateCommand::List(list) => {
                let session = Session::open(&list.place).await?;
                let found =
                    fairway_portal_scaffolder::templates::list(&session.requests, &builtins(DOMAIN)).await;
                let found = found.map_err(|why| anyhow!("templates cannot be listed: {why}"))?;
                list.output
                    .print(&Value::Array(found.clone()), &show::templates(&found));
            }
            TemplateCommand::Show(one) => {
                let session = Session::open(&one.place).await?;
                let (entity, read) = find(&session, &one.template).await?;
                one.output.print(&entity, &show::template(&read));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A template by the name that somebody typed.
async fn find(session: &Session, name: &str) -> anyhow::Result<(Value, Read)> {
    let found = fairway_portal_scaffolder::templates::find(&session.requests, &builtins(DOMAIN), name).await;
    let entity = found.map_err(|why| anyhow!("{why}"))?;
    match Read::read(&entity) {
        Ok(read) => Ok((entity, read)),
        Err(problems) => bail!("template {name} cannot be used:\n  {}", problems.join("\n  ")),
    }
}

/// The path of a Voyage.
fn path(namespace: &str, name: &str) -> String {
    format!(
        "/apis/{}/namespaces/{namespace}/{}/{name}",
        VOYAGE.api_version(),
        VOYAGE.plural
    )
}

async fn get(session: &Session, named: &VoyageNamed) -> anyhow::Result<Value> {
    let found = session
        .requests
        .get(&path(&named.namespace, &named.name))
        .await
        .map_err(told)?;
    found.ok_or_else(|| {
        anyhow!(
            "there is no Voyage {} in namespace {}",
            named.name,
            named.namespace
        )
    })
}

/// `fairway voyage`.
pub(crate) fn voyage(options: &Voyage) -> anyhow::Result<ExitCode> {
    super::runtime()?.block_on(async {
        match &options.command {
            VoyageCommand::List(list) => {
                let session = Session::open(&list.place).await?;
                let root = match &list.namespace {
                    Some(namespace) => format!(
                        "/apis/{}/namespaces/{namespace}/{}",
                        VOYAGE.api_version(),
                        VOYAGE.plural
                    ),
                    None => format!("/apis/{}/{}", VOYAGE.api_version(), VOYAGE.plural),
                };
                let found = session.requests.list(&root).await.map_err(told)?;
                list.output
                    .print(&Value::Array(found.clone()), &show::voyages(&found));
                Ok(ExitCode::SUCCESS)
            }
            VoyageCommand::Get(named) => {
                let session = Session::open(&named.place).await?;
                let voyage = get(&session, named).await?;
                named.output.print(&voyage, &show::voyage(&voyage));
                Ok(ExitCode::SUCCESS)
            }
            VoyageCommand::Logs(named) => {
                let session = Session::open(&named.place).await?;
                get(&session, named).await?;
                follow::follow(&session, &named.namespace, &named.name).await
            }
            VoyageCommand::Retry(named) => {
                let session = Session::open(&named.place).await?;
                let voyage = get(&session, named).await?;
                let phase = voyage["status"]["phase"].as_str().unwrap_or("Pending");
                if !matches!(phase, "Failed" | "Cancelled") {
                    bail!(
                        "Voyage {} is {phase}; only one that has failed can be tried again",
                        named.name
                    );
                }
                let attempt = voyage["status"]["attempt"].as_u64().unwrap_or(0);
                wish(&session, named, json!({"attempt": attempt + 1, "cancel": false})).await?;
                follow::follow(&session, &named.namespace, &named.name).await
            }
            VoyageCommand::Cancel(named) => {
                let session = Session::open(&named.place).await?;
                get(&session, named).await?;
                wish(&session, named, json!({"cancel": true})).await?;
                follow::follow(&session, &named.namespace, &named.name).await
            }
            VoyageCommand::Decommission(named) => {
                let session = Session::open(&named.place).await?;
                let voyage = get(&session, named).await?;
                // A wish that came to nothing is taken back, so that this one is ours and acts with our rights.
                let phase = voyage["status"]["phase"].as_str().unwrap_or("");
                if voyage["spec"]["decommission"] == true && matches!(phase, "Failed" | "Cancelled") {
                    wish(&session, named, json!({"decommission": false})).await?;
                }
                wish(&session, named, json!({"decommission": true})).await?;
                follow::follow(&session, &named.namespace, &named.name).await
            }
        }
    })
}

async fn wish(session: &Session, named: &VoyageNamed, spec: Value) -> anyhow::Result<()> {
    let patch = json!({ "spec": spec });
    let changed = session
        .requests
        .merge(&path(&named.namespace, &named.name), &patch)
        .await;
    changed.map(drop).map_err(told)
}
