//! `fairway appset`: ApplicationSets.

mod generate;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use fairway_api::argoproj::{APPLICATION_SET, CONTROL_PLANES};
use fairway_gitops_appset::status::resources;
use fairway_gitops_view::application_set::{conditions, summary, table};
use fairway_gitops_view::field::{qualified_name, text};
use serde_json::{Value, json};

use super::gitops::{Answer, Session, collection, confirm, path_of, print_value, run as run_command, told};
use crate::cli::appset::{
    AppSet, AppSetCommand, AppSetCreate, AppSetDelete, AppSetGet, AppSetList, TextFormat,
};
use crate::cli::gitops::ListFormat;

/// The name under which the command owns what it applies.
const MANAGER: &str = "fairway";

/// Does what was asked for.
pub(crate) fn run(options: &AppSet) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            AppSetCommand::List(options) => list(options).await?,
            AppSetCommand::Get(options) => get(options).await?,
            AppSetCommand::Create(options) => create(options).await?,
            AppSetCommand::Delete(options) => delete(options).await?,
            AppSetCommand::Generate(options) => return generate::run(options).await,
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(options: &AppSetList) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let namespace = options.appset_namespace.as_deref();
    let mut all = session
        .list(APPLICATION_SET, namespace, options.selector.as_deref())
        .await?;
    if !options.project.is_empty() {
        all.retain(|it| {
            options
                .project
                .iter()
                .any(|wanted| wanted == text(it, "/spec/template/spec/project"))
        });
    }
    match options.output {
        ListFormat::Wide => print!("{}", table(&all, true)),
        ListFormat::Name => all.iter().for_each(|it| println!("{}", qualified_name(it))),
        ListFormat::Json | ListFormat::Yaml => print_value(&json!(all), options.output == ListFormat::Yaml),
    }
    Ok(())
}

fn show(set: &Value, format: TextFormat) {
    match format {
        TextFormat::Wide => {
            print!("{}", summary(set));
            let conditions = conditions(set);
            if !conditions.is_empty() {
                print!("\n{conditions}");
            }
        }
        TextFormat::Json | TextFormat::Yaml => print_value(set, format == TextFormat::Yaml),
    }
}

async fn get(options: &AppSetGet) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    show(
        &session.find(APPLICATION_SET, &options.name, None).await?,
        options.output,
    );
    Ok(())
}

async fn create(options: &AppSetCreate) -> anyhow::Result<()> {
    let sets = read(&read_file(&options.file)?)
        .with_context(|| format!("{} cannot be used", options.file.display()))?;
    let session = Session::open(&options.place).await?;
    for mut set in sets {
        if text(&set, "/metadata/namespace").is_empty() {
            set["metadata"]["namespace"] = json!(CONTROL_PLANES[0]);
        }
        let path = path_of(APPLICATION_SET, &set);
        let existing = session.requests.get(&path).await.map_err(told)?;
        let is_same = existing
            .as_ref()
            .is_some_and(|existing| says_all_of(existing, &set));
        if existing.is_some() && !is_same && !options.upsert {
            bail!("existing ApplicationSet spec is different, use upsert flag to force update");
        }
        let action = match (&existing, is_same) {
            (None, _) => "created",
            (Some(_), true) => "unchanged",
            (Some(_), false) => "updated",
        };
        let written = match (options.dry_run, existing) {
            (true, _) => {
                let made = generate::applications_of(&session, std::slice::from_ref(&set)).await?;
                set["status"] = json!({"resources": resources(&made)});
                set.clone()
            }
            (false, Some(existing)) if is_same => existing,
            (false, Some(_)) => session
                .requests
                .apply(&path, &set, MANAGER, true)
                .await
                .map_err(told)?,
            (false, None) => {
                let all = collection(APPLICATION_SET, Some(text(&set, "/metadata/namespace")));
                session.requests.create(&all, &set).await.map_err(told)?;
                session.requests.get(&path).await.map_err(told)?.unwrap_or(set)
            }
        };
        let note = if options.dry_run { " (dry-run)" } else { "" };
        eprintln!(
            "ApplicationSet '{}' {action}{note}",
            text(&written, "/metadata/name")
        );
        show(&written, options.output);
    }
    Ok(())
}

/// Whether a set that is there has the spec of another one, and its labels, annotations and finalizers.
fn says_all_of(existing: &Value, wanted: &Value) -> bool {
    let has = |field: &str| {
        let pointer = format!("/metadata/{field}");
        let all = wanted.pointer(&pointer).and_then(Value::as_object);
        all.into_iter()
            .flatten()
            .all(|(key, value)| existing["metadata"][field].get(key) == Some(value))
    };
    existing["spec"] == wanted["spec"]
        && has("labels")
        && has("annotations")
        && existing.pointer("/metadata/finalizers") == wanted.pointer("/metadata/finalizers")
}

/// A file, or standard input.
fn read_file(file: &Path) -> anyhow::Result<String> {
    if file.as_os_str() != "-" {
        return std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("standard input cannot be read")?;
    Ok(text)
}

/// The ApplicationSets of a file.
fn read(file: &str) -> anyhow::Result<Vec<Value>> {
    let mut sets = Vec::new();
    for object in fairway_text_yaml::documents(file, fairway_text_yaml::Limits::default())? {
        if object.is_null() {
            continue;
        }
        if text(&object, "/kind") != APPLICATION_SET.kind || text(&object, "/metadata/name").is_empty() {
            bail!(
                "{} {:?} is no ApplicationSet with a name",
                text(&object, "/kind"),
                text(&object, "/metadata/name")
            );
        }
        sets.push(object);
    }
    if sets.is_empty() {
        bail!("there is no ApplicationSet in it");
    }
    Ok(sets)
}

async fn delete(options: &AppSetDelete) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let mut without_asking = options.yes;
    for name in &options.names {
        let set = session.find(APPLICATION_SET, name, None).await?;
        let name = qualified_name(&set);
        if !without_asking {
            let question = format!("Are you sure you want to delete '{name}' and all its Applications?");
            match confirm(&question, options.names.len() > 1)? {
                Answer::No => {
                    println!("The command to delete '{name}' was cancelled.");
                    continue;
                }
                Answer::All => without_asking = true,
                Answer::Yes => {}
            }
        }
        let path = path_of(APPLICATION_SET, &set);
        session.requests.delete(&path).await.map_err(told)?;
        println!("applicationset '{name}' deleted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\n";
        assert_eq!(read(&format!("{set}---\n---\n{set}")).unwrap().len(), 2);
        for (file, why) in [
            ("", "there is no ApplicationSet in it"),
            (
                "kind: Pod\nmetadata: {name: p}\n",
                "Pod \"p\" is no ApplicationSet with a name",
            ),
        ] {
            assert_eq!(read(file).unwrap_err().to_string(), why);
        }
    }
}
