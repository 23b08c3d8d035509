//! `fairway undelete`: brings back what a sync has pruned, or what went with its Application, from its tombstone.
//!
//! What comes back is nobody's, unless its owner is kept: an Application that prunes would delete it again at once.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use fairway_api::fairway::TOMBSTONE;
use fairway_gitops_view::field::text;
use fairway_gitops_view::tombstone::{Wanted, chosen, restored, table};
use serde_json::Value;

use super::gitops::{Session, collection, now, print_value, run as run_command, told};
use crate::cli::gitops::ListFormat;
use crate::cli::undelete::Undelete;

/// Does what was asked for.
pub(crate) fn run(options: &Undelete) -> anyhow::Result<ExitCode> {
    run_command(async {
        let session = Session::open(&options.place).await?;
        let path = collection(TOMBSTONE, None);
        let all = session.requests.list(&path).await.map_err(told)?;
        let is_list = matches!(options.what.as_slice(), [] if options.app.is_none())
            || options.what.first().is_some_and(|word| word == "list");
        let words = options.what.iter().filter(|word| !is_list || *word != "list");
        let wanted = Wanted {
            names: words.cloned().collect(),
            namespace: options.namespace.clone(),
            application: options.app.clone(),
        };
        let found = chosen(&all, &wanted);
        if is_list {
            list(&found, options.output);
            return Ok(ExitCode::SUCCESS);
        }
        if found.is_empty() {
            bail!("no tombstone fits; see what there is with: fairway undelete list");
        }
        let mut failed = false;
        for stone in found {
            failed |= !bring_back(&session, stone, options.keep_owner).await?;
        }
        Ok(if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    })
}

fn list(found: &[&Value], output: ListFormat) {
    match output {
        ListFormat::Wide => print!("{}", table(found, now())),
        ListFormat::Name => found
            .iter()
            .for_each(|stone| println!("{}", text(stone, "/metadata/name"))),
        ListFormat::Json | ListFormat::Yaml => {
            print_value(&serde_json::json!(found), output == ListFormat::Yaml);
        }
    }
}

/// Makes an object again and forgets its tombstone; false if it is there already.
async fn bring_back(session: &Session, stone: &Value, keep_owner: bool) -> anyhow::Result<bool> {
    let object = restored(stone, keep_owner);
    let (kind, name, namespace) = (
        text(&object, "/kind"),
        text(&object, "/metadata/name"),
        text(&object, "/metadata/namespace"),
    );
    let shown = match namespace {
        "" => format!("{kind}/{name}"),
        namespace => format!("{kind}/{name} in {namespace}"),
    };
    let path = session
        .collection_of(text(&object, "/apiVersion"), kind, namespace)
        .await
        .with_context(|| format!("{shown} cannot be brought back"))?;
    let made = session.requests.create(&path, &object).await;
    if !made
        .map_err(told)
        .with_context(|| format!("{shown} cannot be brought back"))?
    {
        eprintln!("fairway: {shown} is there already; its tombstone stays");
        return Ok(false);
    }
    let own = format!(
        "{}/{}",
        collection(TOMBSTONE, None),
        text(stone, "/metadata/name")
    );
    session.requests.delete(&own).await.map_err(told)?;
    println!("{shown} is back");
    if !keep_owner {
        println!("  no Application owns it now: add it to its source to keep it as it is");
    }
    Ok(true)
}
