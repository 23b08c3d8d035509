//! `fairway app delete`.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use fairway_api::argoproj::APPLICATION;
use fairway_gitops_view::field::{present, qualified_name, text};
use fairway_gitops_view::operation::finalizers;
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::super::gitops::{Answer, Session, confirm, path_of, told};
use super::follow::chosen;
use crate::cli::app::Delete;

pub(super) async fn run(options: &Delete) -> anyhow::Result<ExitCode> {
    if options.apps.names.is_empty() && options.apps.selector.is_none() {
        bail!("name an application, or choose some with --selector");
    }
    let session = Session::open(&options.apps.place).await?;
    let all = chosen(&session, &options.apps).await?;
    let mut without_asking = options.yes || !options.cascade;
    for application in &all {
        let name = qualified_name(application);
        if !without_asking {
            let question = format!("Are you sure you want to delete '{name}' and all its resources?");
            match confirm(&question, all.len() > 1)? {
                Answer::No => {
                    println!("The command to delete '{name}' was cancelled.");
                    continue;
                }
                Answer::All => without_asking = true,
                Answer::Yes => {}
            }
        }
        delete(&session, application, options).await?;
        println!("application '{name}' deleted");
    }
    Ok(ExitCode::SUCCESS)
}

async fn delete(session: &Session, application: &Value, options: &Delete) -> anyhow::Result<()> {
    let path = path_of(APPLICATION, application);
    let wanted = finalizers(application, options.cascade, &options.propagation_policy);
    let wanted = wanted.map_err(|error| anyhow!("{error}"))?;
    // What is being deleted gets no finalizer any more.
    let is_going = present(application, "/metadata/deletionTimestamp").is_some();
    if let Some(finalizers) = wanted.filter(|_| !is_going) {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        session.requests.merge(&path, &patch).await.map_err(told)?;
    }
    session.requests.delete(&path).await.map_err(told)?;
    if options.wait {
        let api = session.api(APPLICATION, text(application, "/metadata/namespace"));
        let mut states = std::pin::pin!(kube::runtime::watcher::watch_object(
            api,
            text(application, "/metadata/name")
        ));
        while let Some(state) = states.next().await {
            match state {
                Ok(None) => break,
                // Another one of the same name is not the one that was deleted.
                Ok(Some(object))
                    if object.metadata.uid.as_deref() != Some(text(application, "/metadata/uid")) =>
                {
                    break;
                }
                Ok(Some(_)) => {}
                Err(error) => bail!("{} cannot be followed: {error}", qualified_name(application)),
            }
        }
    }
    Ok(())
}
